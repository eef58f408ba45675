// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of a VF in the GT: registers.

use std::sync::atomic::Ordering;

use zerocopy::little_endian::U32;

use super::Gt;
use crate::host::Function;
use crate::registers::Kind;
use crate::registers::engine_offsets::GLOBALS;
use crate::state::{Document, Record, RestoreError, SaveError, SaveState, SavedState, Tag, Writer, format};
use crate::topology::MAX_ENGINES;

/// The registers of a VF: offset and value of each register with one value per function, and by engine name the
/// registers that the function's contexts share on an engine. A register that is missing has its reset value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedRegisters {
    registers: Vec<(u32, u32)>,
    shared: Vec<(String, [u32; GLOBALS.len()])>,
}

impl SavedState for SavedRegisters {
    const UNIT: &'static str = "registers";
    const TAGS: &'static [Tag] = &[ValueRecord::TAG, SharedRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedRegisters { registers, shared } = self;
        let value = |(offset, value): &(u32, u32)| ValueRecord { offset: (*offset).into(), value: (*value).into() };
        to.records(registers.iter().map(value));
        to.records(shared.iter().map(|(name, values)| {
            let mut engine = [0; NAME_BYTES];
            engine.iter_mut().zip(name.bytes()).for_each(|(field, byte)| *field = byte);
            SharedRecord { engine, values: values.map(U32::new) }
        }));
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let value = |record: &ValueRecord| (record.offset.get(), record.value.get());
        let shared = |record: &SharedRecord| {
            let name = record.engine.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte));
            (name.collect(), record.values.map(U32::get))
        };
        Ok(SavedRegisters {
            registers: from.records(MOST_REGISTERS)?.iter().map(value).collect(),
            shared: from.records(MAX_ENGINES)?.iter().map(shared).collect(),
        })
    }
}

/// Bytes of the name of an engine.
const NAME_BYTES: usize = 8;
/// Largest number of registers with one value per function: their block has 1 KiB.
const MOST_REGISTERS: usize = 256;
/// Bytes of the sections, at most.
pub const MOST_BYTES: usize =
    format::section_bytes::<ValueRecord>(MOST_REGISTERS) + format::section_bytes::<SharedRecord>(MAX_ENGINES);

arctic_base::record! {
    /// A register with one value per function.
    struct ValueRecord[b"REGS", 8] {
        offset: U32,
        value: U32,
    }

    /// The registers that contexts share on an engine.
    struct SharedRecord[b"REGE", 16] {
        /// Name, padded with zeros.
        engine: [u8; NAME_BYTES],
        /// The registers [`GLOBALS`].
        values: [U32; GLOBALS.len()],
    }
}

/// The registers of a VF. The registers of its interrupt tree are saved with the tree as well, and restored by it.
pub struct Registers<'g> {
    /// The GT.
    pub gt: &'g Gt,
    /// The VF.
    pub function: Function,
}

impl Registers<'_> {
    /// Returns whether a register of this kind can hold `value` if it currently holds `now`.
    fn holds(&self, offset: u32, value: u32, now: u32) -> bool {
        match self.gt.registers.decode(offset).map(|decoded| decoded.register.kind) {
            Some(Kind::Storage(mask)) => (value ^ now) & !mask == 0,
            Some(Kind::ReadOnly) => value == now,
            Some(_) => true,
            None => false,
        }
    }
}

impl SaveState for Registers<'_> {
    type Saved = SavedRegisters;

    fn save(&self) -> Result<SavedRegisters, SaveError> {
        let vf = self.gt.vf(self.function).ok_or(SaveError::NotVirtual)?;
        let values = |engine| vf.power_context(engine).each_ref().map(|value| value.load(Ordering::Acquire));
        let engines = self.gt.generation.engines;
        let shared = engines.all().map(|engine| (engines.info(engine).name.to_owned(), values(engine)));
        let shared = shared.filter(|(_, values)| values.iter().any(|value| *value != 0));
        Ok(SavedRegisters { registers: vf.registers.save(), shared: shared.collect() })
    }

    fn restore(&mut self, saved: &SavedRegisters) -> Result<(), RestoreError> {
        let vf = self.gt.vf(self.function).ok_or(RestoreError::NotVirtual)?;
        let invalid = RestoreError::invalid::<SavedRegisters>;
        let mut copies = Vec::with_capacity(saved.registers.len());
        for (offset, value) in &saved.registers {
            let copy = vf.registers.copy_at(*offset).ok_or(invalid("an unknown register"))?;
            if !self.holds(*offset, *value, vf.registers.value(copy)) {
                return Err(invalid("a value that the register cannot hold"));
            }
            copies.push((copy, *value));
        }
        let engines = self.gt.generation.engines;
        let mut shared = Vec::with_capacity(saved.shared.len());
        for (name, values) in &saved.shared {
            let engine = engines.named(name).ok_or(invalid("an unknown engine"))?;
            let own = self.gt.registers.engine(engine);
            if GLOBALS.iter().zip(values).any(|(register, value)| !self.holds(own.offset(*register), *value, 0)) {
                return Err(invalid("a value that an engine's register cannot hold"));
            }
            shared.push((vf.power_context(engine), values));
        }
        vf.reset_registers();
        for (copy, value) in copies {
            vf.registers.set(copy, value);
        }
        for (held, values) in shared {
            for (held, value) in held.iter().zip(values) {
                held.store(*value, Ordering::Release);
            }
        }
        Ok(())
    }
}
