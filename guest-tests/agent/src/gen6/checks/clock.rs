// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Compares timestamps with the CPU's clock, and with the timestamp that the driver reads.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::{CheckEnvironment, Found, passed};
use crate::batch::PostSync;
use crate::checks::clock::{self, Reading, TIMESTAMP_MASK};
use crate::device::Engine;
use crate::gen6::gem::{Context, Program};
use crate::uapi::i915;

/// TIMESTAMP of the render engine, the only register that the driver reads for a program.
const RENDER_TIMESTAMP: u64 = 0x2358;

/// Timestamps of one batch do not decrease. Between two batches they advance at the rate reported by the driver. All
/// engines have the same time: a batch's timestamp lies between two that the driver reads from the render engine.
pub fn timestamp(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    const READINGS: u32 = 16;
    let memory = env.object(4096)?;
    let program = Program::new(env.device, |batch| {
        for index in 0..READINGS {
            batch.flush(engine, &memory, 8 * index, PostSync::Timestamp);
        }
    })?;
    let context = Context::new(env.device, engine)?;
    let read = || -> Result<Reading> {
        let (before, early) = (Instant::now(), render_timestamp(env)?);
        context.run(&program, env.timeout)?;
        let (late, after) = (render_timestamp(env)?, Instant::now());
        let ticks: Vec<u64> =
            (0..READINGS as usize).map(|index| memory.memory().read_u64(8 * index) & TIMESTAMP_MASK).collect();
        let times: Vec<u64> = [early].into_iter().chain(ticks.iter().copied()).chain([late]).collect();
        let back = clock::decrease(&times);
        ensure!(back.is_none(), "timestamps before, in and after a batch must not decrease: {back:x?} of {times:x?}");
        Ok((before, ticks[0], after))
    };
    passed(clock::rate(read, env.reference_clock)?)
}

fn render_timestamp(env: &CheckEnvironment<'_>) -> Result<u64> {
    let mut read = i915::RegRead { offset: RENDER_TIMESTAMP | i915::REG_READ_8B, value: 0 };
    env.device.ioctl(&mut read)?;
    Ok(read.value & TIMESTAMP_MASK)
}
