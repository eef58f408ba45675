// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Jumps and conditional ends of batches.

use anyhow::{Result, ensure};

use super::{CheckEnvironment, Found, passed};
use crate::device::Engine;
use crate::gen6::gem::{Context, Program};

/// A batch jumps to a second one. The end of that is the end of both: there are no second-level batches.
pub fn chained(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    let memory = env.object(4096)?;
    let second = Program::new(env.device, |batch| {
        batch.store_dword(&memory, 4, 2);
    })?;
    let first = Program::new(env.device, |batch| {
        batch.store_dword(&memory, 0, 1).jump(second.object(), 0).store_dword(&memory, 8, 3);
    })?;
    let context = Context::new(env.device, engine)?;
    // The driver resolves the addresses of one batch at a submission, and the second batch needs its own.
    context.run(&second, env.timeout)?;
    memory.memory().write_u64(0, 0);
    context.run(&first, env.timeout)?;
    let found = [0, 4, 8].map(|at| memory.memory().read_u32(at));
    ensure!(found == [1, 2, 0], "before the jump, behind it, after its command: expected [1, 2, 0], got {found:?}");
    passed("one batch jumped to another, which ended both")
}

/// MI_CONDITIONAL_BATCH_BUFFER_END continues if the memory is greater than its data, and ends the batch otherwise.
pub fn conditional_end(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    let context = Context::new(env.device, engine)?;
    let cases = [(0, 0, false), (1, 0, true), (7, 7, false), (7, 8, false), (8, 7, true), (u32::MAX, 1, true)];
    for (value, data, continues) in cases {
        let memory = env.object(4096)?;
        memory.memory().write_u32(64, value);
        let program = Program::new(env.device, |batch| {
            batch.store_dword(&memory, 0, 1).end_unless_greater(&memory, 64, data).store_dword(&memory, 4, 1);
        })?;
        context.run(&program, env.timeout)?;
        let found = [0, 4].map(|at| memory.memory().read_u32(at));
        let want = [1, u32::from(continues)];
        ensure!(
            found == want,
            "memory {value}, data {data}: stores before and after: expected {want:?}, got {found:?}"
        );
    }
    passed(format!("{} comparisons", cases.len()))
}

/// No engine of these generations has MI_MATH.
pub fn math(_bench: &CheckEnvironment<'_>, _engines: &[Engine]) -> Result<Found> {
    Ok(Found::NotApplicable("not applicable: MI_MATH and its registers exist from Haswell on".into()))
}
