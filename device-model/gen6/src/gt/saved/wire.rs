// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Records of the GT.

use arctic_base::state::{Document, Record, RestoreError, SavedState, Tag, Writer};
use zerocopy::little_endian::{U32, U64};

use super::{SavedActivity, SavedGt};
use crate::residency::Spent;

/// Bytes of the name of a generation.
const NAME_BYTES: usize = 16;
/// Largest number of registers: those of 2 MiB.
const MOST_REGISTERS: usize = 1 << 19;
/// Largest number of entries of the table of frequencies.
const MOST_FREQUENCIES: usize = 256;
/// Largest number of engines.
const MOST_ENGINES: usize = 16;

arctic_base::record! {
    /// The GT.
    struct GtRecord[b"GTST", 48] {
        /// Name of the generation, padded with zeros.
        generation: [u8; NAME_BYTES],
        /// The card's time in ns.
        now: U64,
        /// Start of the current sleep, if `is_asleep` is 1.
        asleep_since: U64,
        slept: U64,
        is_asleep: U32,
        /// Number of faults that the log has received.
        faults: U32,
    }

    /// A register with fuses.
    struct FuseRecord[b"FUSE", 8] {
        offset: U32,
        value: U32,
    }

    /// A register without its reset value.
    struct RegisterRecord[b"REGV", 8] {
        offset: U32,
        value: U32,
    }

    /// An entry of the table of frequencies.
    struct FrequencyRecord[b"FREQ", 4] {
        entry: U32,
    }

    /// What an engine is doing.
    struct ActivityRecord[b"ACTV", 16] {
        watchdog: U64,
        status: U32,
        /// 0 or 1.
        flushes_suspended: u8,
        /// 0 or 1.
        halted: u8,
        reserved: [u8; 2],
    }
}

/// The value of a field that is 0 or 1.
fn switch(field: impl Into<u32>) -> Result<bool, RestoreError> {
    match field.into() {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(RestoreError::invalid::<SavedGt>("a flag")),
    }
}

impl SavedState for SavedGt {
    const UNIT: &'static str = "GT";
    const TAGS: &'static [Tag] =
        &[GtRecord::TAG, FuseRecord::TAG, RegisterRecord::TAG, FrequencyRecord::TAG, ActivityRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedGt { generation, fuses, registers, faults, now, sleep, frequencies, engines } = self;
        let mut name = [0; NAME_BYTES];
        name.iter_mut().zip(generation.bytes()).for_each(|(field, byte)| *field = byte);
        let (since, slept) = sleep.parts();
        to.record(GtRecord {
            generation: name,
            now: (*now).into(),
            asleep_since: since.unwrap_or_default().into(),
            slept: slept.into(),
            is_asleep: u32::from(since.is_some()).into(),
            faults: (*faults).into(),
        });
        let (fuses, registers) = (fuses.iter(), registers.iter());
        to.records(fuses.map(|(offset, value)| FuseRecord { offset: (*offset).into(), value: (*value).into() }));
        to.records(
            registers.map(|(offset, value)| RegisterRecord { offset: (*offset).into(), value: (*value).into() }),
        );
        to.records(frequencies.iter().map(|entry| FrequencyRecord { entry: (*entry).into() }));
        to.records(engines.iter().map(|engine| {
            let SavedActivity { flushes_suspended, status, watchdog, halted } = *engine;
            ActivityRecord {
                watchdog: watchdog.into(),
                status: status.into(),
                flushes_suspended: flushes_suspended.into(),
                halted: halted.into(),
                reserved: [0; 2],
            }
        }));
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let GtRecord { generation, now, asleep_since, slept, is_asleep, faults } = from.record()?;
        let since = switch(is_asleep)?.then_some(asleep_since.get());
        let activity = |record: ActivityRecord| {
            Ok(SavedActivity {
                flushes_suspended: switch(record.flushes_suspended)?,
                status: record.status.get(),
                watchdog: record.watchdog.get(),
                halted: switch(record.halted)?,
            })
        };
        let value = |record: &RegisterRecord| (record.offset.get(), record.value.get());
        let fuse = |record: &FuseRecord| (record.offset.get(), record.value.get());
        let activities = from.records(MOST_ENGINES)?.into_iter().map(activity);
        Ok(SavedGt {
            generation: generation.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect(),
            fuses: from.records(MOST_REGISTERS)?.iter().map(fuse).collect(),
            registers: from.records(MOST_REGISTERS)?.iter().map(value).collect(),
            faults: faults.get(),
            now: now.get(),
            sleep: Spent::of(since, slept.get()),
            frequencies: from.records(MOST_FREQUENCIES)?.iter().map(|it: &FrequencyRecord| it.entry.get()).collect(),
            engines: activities.collect::<Result<_, RestoreError>>()?,
        })
    }
}
