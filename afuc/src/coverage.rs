// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Which instructions of a firmware were executed.

use crate::machine::{Machine, Stop};

/// Counts of executed instructions by word.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// How often the instruction of a word was executed; `(rep)` counts once.
    pub counts: Vec<u64>,
}

/// A handler with the number of its instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// First word.
    pub start: u32,
    /// Opcodes that it handles.
    pub opcodes: Vec<u8>,
    /// Words to the next handler or the end of the code.
    pub words: u32,
    /// Words that were executed.
    pub executed: u32,
    /// Instructions executed.
    pub instructions: u64,
}

impl Part {
    /// Share of the words that were executed, in percent.
    pub fn percent(&self) -> u32 {
        (self.executed * 100).checked_div(self.words).unwrap_or(100)
    }
}

impl Coverage {
    /// Executes until the machine is idle or stops, and counts.
    pub fn run(&mut self, machine: &mut Machine) -> Stop {
        loop {
            let pc = machine.pc as usize;
            if self.counts.len() <= pc {
                self.counts.resize(pc + 1, 0);
            }
            let before = machine.executed;
            match machine.run(1) {
                // The processor waits while others execute their packets.
                Stop::Budget if machine.executed == before => {}
                Stop::Budget => self.counts[pc] += 1,
                stop => return stop,
            }
        }
    }

    /// How often a word was executed.
    pub fn count(&self, word: u32) -> u64 {
        self.counts.get(word as usize).copied().unwrap_or_default()
    }

    /// Sums by handler, in order of their place; the code before the first one comes first, without opcodes. `code` is
    /// the number of words before the packet table, and `is_code` tells instructions from data.
    pub fn parts(&self, machine: &Machine, code: u32, is_code: &dyn Fn(u32) -> bool) -> Vec<Part> {
        let mut starts: Vec<u32> = machine.bus.packet_table.iter().copied().filter(|start| *start < code).collect();
        starts.push(0);
        starts.sort_unstable();
        starts.dedup();
        let ends = starts[1..].iter().copied().chain([code]);
        starts
            .iter()
            .zip(ends)
            .map(|(start, end)| {
                let words = (*start..end).filter(|word| is_code(*word));
                let handles = |(opcode, handler): (u8, u32)| (*start != 0 && handler == *start).then_some(opcode);
                Part {
                    start: *start,
                    opcodes: (0_u8..).zip(machine.bus.packet_table).filter_map(handles).collect(),
                    words: u32::try_from(words.clone().count()).unwrap_or(u32::MAX),
                    executed: u32::try_from(words.clone().filter(|word| self.count(*word) != 0).count())
                        .unwrap_or(u32::MAX),
                    instructions: words.map(|word| self.count(word)).sum(),
                }
            })
            .collect()
    }
}
