// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The checks of the engines. The guest's CPU compares the GPU's results with the expected values.

mod blits;
pub(super) mod clock;
mod fences;
mod flow;
mod handover;
pub mod observation;
mod slices;
pub mod smoke;
pub(super) mod stores;

use std::time::Duration;

use anyhow::{Result, ensure};

use super::batch::Batch;
use super::device::{Device, Engine};
use super::vm::{Buffer, Place, Queue, Vm};

/// A check of one engine. Returns the details of a success, or an error with the expected value, the value found and
/// its location.
pub type EngineCheck = fn(&CheckEnvironment<'_>, Engine) -> Result<String>;
/// A check that uses all engines together.
pub type SharedCheck = fn(&CheckEnvironment<'_>, &[Engine]) -> Result<String>;

/// Checks for every engine.
pub const EVERY_ENGINE: [(&str, EngineCheck); 9] = [
    ("stores", stores::stores),
    ("registers", stores::registers),
    ("flush writes", stores::flush_writes),
    ("mi_math", flow::alu),
    ("mi_math loop", flow::fibonacci),
    ("nested batches", flow::nested),
    ("timestamp", clock::timestamp),
    ("fence chain", fences::chain),
    ("time slices", slices::time_slices),
];

/// Checks for every engine if the driver supports user fences in memory (xe only).
pub const FENCES_IN_MEMORY: [(&str, EngineCheck); 1] = [("user fence", fences::user_fence)];

/// Checks for copy engines.
pub const COPY_ENGINES: [(&str, EngineCheck); 4] = [
    ("fills", blits::fills),
    ("copies", blits::copies),
    ("tiled copies", blits::tiled_copies),
    ("tiled round trips", blits::round_trips),
];

/// Checks for all engines together.
pub const TOGETHER: [(&str, SharedCheck); 3] =
    [("semaphore ring", handover::ring), ("semaphore pairs", handover::pairs), ("shared atomics", handover::atomics)];

/// The environment of a check.
pub struct CheckEnvironment<'d> {
    /// The card.
    pub device: &'d Device,
    /// Time limit of one batch.
    pub timeout: Duration,
    /// Rate of the timestamps in Hz, as reported by the driver.
    pub reference_clock: u32,
}

impl CheckEnvironment<'_> {
    /// Builds a batch in a new buffer and runs it to completion.
    fn run(&self, vm: &Vm<'_>, queue: &Queue<'_>, place: Place, build: impl FnOnce(&mut Batch)) -> Result<()> {
        let buffer = program(vm, place, build)?;
        let fence = queue.submit(buffer.address())?;
        Ok(queue.wait(&fence, self.timeout)?)
    }
}

/// Loads a batch of up to 60 KiB into a new buffer and appends MI_BATCH_BUFFER_END.
fn program<'v>(vm: &'v Vm<'_>, place: Place, build: impl FnOnce(&mut Batch)) -> Result<Buffer<'v>> {
    let buffer = vm.buffer(place, 64 << 10)?;
    let mut batch = Batch::at(buffer.address());
    build(&mut batch);
    batch.batch_buffer_end();
    buffer.load(&batch)?;
    Ok(buffer)
}

/// Deterministic pseudo-random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn quadword(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns `len` bytes; `len` must be a multiple of 8.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len / 8).flat_map(|_| self.quadword().to_le_bytes()).collect()
    }
}

/// Compares the contents of `buffer` with `expected`. Returns their CRC-32.
fn compare(what: &str, buffer: &Buffer<'_>, expected: &[u8]) -> Result<u32> {
    let found = buffer.mapping().read(expected.len());
    let (want, got) = (crc32fast::hash(expected), crc32fast::hash(&found));
    if let Some(at) = expected.iter().zip(&found).position(|(want, got)| want != got) {
        let at = at & !7;
        let wrong = expected.iter().zip(&found).filter(|(want, got)| want != got).count();
        ensure!(
            false,
            "{what}, {:?} memory: CRC-32 expected {want:08x}, got {got:08x}; {wrong} of {} bytes differ, first at \
             {at:#x}: expected {:02x?}, got {:02x?}",
            buffer.place(),
            expected.len(),
            &expected[at..at + 8],
            &found[at..at + 8]
        );
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference values of splitmix64 for seed 0.
    #[test]
    fn random_equals_splitmix64() {
        let mut random = Random(0);
        assert_eq!(random.quadword(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.quadword(), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(Random(0).bytes(8), 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
    }
}
