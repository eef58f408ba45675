// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Comparison of what a machine wrote with what the interpreter wrote.

use std::collections::HashSet;

use crate::machine::{Effect, Processor};

use super::Write;

/// What equal sequences of writes consist of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Writes to registers.
    pub register_writes: usize,
    /// Different registers.
    pub registers: usize,
    /// Writes to memory.
    pub memory_writes: usize,
    /// Different words of memory.
    pub memory_words: usize,
}

/// The first difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write {index}: the machine wrote {machine:x?}, the interpreter {interpreter:x?}")]
pub struct Difference {
    /// Number of the write.
    pub index: usize,
    /// Of the machine; `None` if it made no more writes.
    pub machine: Option<Write>,
    /// Of the interpreter; `None` if it made no more writes.
    pub interpreter: Option<Write>,
}

/// Compares writes of the first processor to registers and memory, in order and value. Those of other processors and of
/// preemption handlers do not count, nor do pipe registers.
///
/// # Errors
///
/// The first difference.
pub fn compare(machine: &[Effect], interpreter: &[Write]) -> Result<Sums, Difference> {
    let mut is_interrupted = false;
    let mut is_other = false;
    let mut others = interpreter.iter().copied();
    let mut registers = HashSet::new();
    let mut words = HashSet::new();
    let mut sums = Sums::default();
    for effect in machine {
        let write = match *effect {
            Effect::Preempted | Effect::Resumed => {
                is_interrupted = *effect == Effect::Preempted;
                continue;
            }
            Effect::Writer(processor) => {
                is_other = processor != Processor::First;
                continue;
            }
            _ if is_other => continue,
            Effect::Pipe(..) => continue,
            _ if is_interrupted => continue,
            Effect::Register(number, value) => Write::Register(number, value),
            Effect::Memory(address, value) => Write::Memory(address, value),
        };
        let other = others.next();
        if other != Some(write) {
            let index = sums.register_writes + sums.memory_writes;
            return Err(Difference { index, machine: Some(write), interpreter: other });
        }
        match write {
            Write::Register(number, _) => {
                sums.register_writes += 1;
                registers.insert(number);
            }
            Write::Memory(address, _) => {
                sums.memory_writes += 1;
                words.insert(address);
            }
        }
    }
    if let Some(other) = others.next() {
        let index = sums.register_writes + sums.memory_writes;
        return Err(Difference { index, machine: None, interpreter: Some(other) });
    }
    (sums.registers, sums.memory_words) = (registers.len(), words.len());
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_in_value_order_or_number_is_found() {
        let machine = [
            Effect::Register(1, 2),
            Effect::Preempted,
            Effect::Register(9, 9),
            Effect::Resumed,
            Effect::Pipe(0x80, 0),
            Effect::Writer(Processor::Bv),
            Effect::Register(9, 8),
            Effect::Writer(Processor::First),
            Effect::Memory(8, 3),
            Effect::Register(1, 4),
        ];
        let writes = [Write::Register(1, 2), Write::Memory(8, 3), Write::Register(1, 4)];
        let sums = Sums { register_writes: 2, registers: 1, memory_writes: 1, memory_words: 1 };
        assert_eq!(compare(&machine, &writes), Ok(sums));
        let index = |writes: &[Write]| compare(&machine, writes).unwrap_err().index;
        assert_eq!(index(&[writes[0], writes[2], writes[1]]), 1);
        assert_eq!(index(&writes[..2]), 2);
        assert_eq!(index(&[&writes[..], &writes[..1]].concat()), 3);
        assert_eq!(index(&[Write::Register(1, 3)]), 0);
    }
}
