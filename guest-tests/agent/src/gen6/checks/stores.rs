// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Immediate stores and the writes of flushes.

use anyhow::{Result, ensure};

use super::{CheckEnvironment, Found, Random, compare, passed};
use crate::batch::PostSync;
use crate::checks::stores::flushed;
use crate::device::Engine;
use crate::gen6::gem::{Context, Object, Program};
use crate::number::{count, low};

/// Stores of random dwords and quadwords. Adjacent bytes must not change.
pub fn stores(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    const SIZE: usize = 16 << 10;
    let mut random = Random(1);
    let memory = env.object(SIZE)?;
    let mut expected = random.bytes(SIZE);
    memory.memory().write(&expected);
    let mut written = 0;
    let program = Program::new(env.device, |batch| {
        // One dword per cache line, at a different offset in each line; then quadwords, some in the next page.
        for line in 0..64 {
            let (at, value) = (64 * line + 4 * (line % 16), low(random.quadword()));
            expected[at..at + 4].copy_from_slice(&value.to_le_bytes());
            batch.store_dword(&memory, count(at), value);
            written += 4;
        }
        for index in 0..64 {
            let (at, value) = (0x1800 + 72 * index, random.quadword());
            expected[at..at + 8].copy_from_slice(&value.to_le_bytes());
            batch.store_qword(&memory, count(at), value);
            written += 8;
        }
    })?;
    Context::new(env.device, engine)?.run(&program, env.timeout)?;
    compare("stores", &memory, &expected)?;
    passed(format!("{written} bytes in dwords and quadwords"))
}

/// PIPE_CONTROL or MI_FLUSH_DW writes a 64-bit value and timestamps.
pub fn flush_writes(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    const VALUE: u64 = 0x0123_4567_89ab_cdef;
    let memory = env.object(4096)?;
    let program = Program::new(env.device, |batch| {
        for (at, what) in [(0, PostSync::Immediate(VALUE)), (8, PostSync::Timestamp), (16, PostSync::Timestamp)] {
            batch.flush(engine, &memory, at, what);
        }
    })?;
    Context::new(env.device, engine)?.run(&program, env.timeout)?;
    passed(flushed(memory.memory(), VALUE, engine)?)
}

/// Objects at addresses that the program selects: the driver neither moves them nor changes the batch.
pub fn pinned_objects(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    /// Beyond the aperture, in the address space of every card file.
    const BASE: u64 = 0x2300_0000;
    const OBJECTS: u64 = 4;
    let objects = (0..OBJECTS)
        .map(|index| Ok(Object::pinned(env.device, 8 << 10, BASE + index * (1 << 20))?))
        .collect::<Result<Vec<_>>>()?;
    let mark = |index: usize| 0x9100_0000 | count(index);
    let program = Program::new(env.device, |batch| {
        for (index, object) in objects.iter().enumerate() {
            // Across the boundary of a page table's entry.
            batch.store_dword(object, 4092, mark(index)).store_dword(object, 4096, !mark(index));
        }
    })?;
    Context::new(env.device, engine)?.run(&program, env.timeout)?;
    for (index, object) in objects.iter().enumerate() {
        let found = [4092, 4096].map(|at| object.memory().read_u32(at));
        let want = [mark(index), !mark(index)];
        let address = BASE + index as u64 * (1 << 20);
        ensure!(object.presumed() == address, "object {index} is at {:#x}, not at {address:#x}", object.presumed());
        ensure!(found == want, "object at {address:#x}: expected {want:x?}, got {found:x?}");
    }
    passed(format!("{OBJECTS} objects from {BASE:#x}"))
}
