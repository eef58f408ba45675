// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Compares timestamps with the CPU's clock, and with the timestamp that the driver reads.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{Bench, Found, passed};
use crate::guest::batch::PostSync;
use crate::guest::device::Engine;
use crate::guest::gen6::gem::{Context, Program};
use crate::guest::uapi::i915;

/// TIMESTAMP is 36 bits wide (IVB-116).
const TIMESTAMP_MASK: u64 = (1 << 36) - 1;
/// TIMESTAMP of the render engine, the only register that the driver reads for a program.
const RENDER_TIMESTAMP: u64 = 0x2358;
/// Time between two readings.
const PAUSE: Duration = Duration::from_millis(60);
/// Permitted difference of the two clocks over [`PAUSE`], as a fraction of the time; emulated clocks are inexact.
const TOLERANCE: f64 = 0.10;

/// Timestamps of one batch do not decrease. Between two batches they advance at the rate reported by the driver. All
/// engines have the same time: a batch's timestamp lies between two that the driver reads from the render engine.
pub fn timestamp(bench: &Bench<'_>, engine: Engine) -> Result<Found> {
    const READINGS: u32 = 16;
    let memory = bench.object(4096)?;
    let program = Program::new(bench.device, |batch| {
        for index in 0..READINGS {
            batch.flush(engine, &memory, 8 * index, PostSync::Timestamp);
        }
    })?;
    let context = Context::new(bench.device, engine)?;
    let read = || -> Result<(Instant, u64, Instant)> {
        let (before, early) = (Instant::now(), render_timestamp(bench)?);
        context.run(&program, bench.timeout)?;
        let (late, after) = (render_timestamp(bench)?, Instant::now());
        let ticks: Vec<u64> =
            (0..READINGS as usize).map(|index| memory.memory().read_u64(8 * index) & TIMESTAMP_MASK).collect();
        let times: Vec<u64> = [early].into_iter().chain(ticks.iter().copied()).chain([late]).collect();
        let back = times.windows(2).find(|pair| pair[1].wrapping_sub(pair[0]) & TIMESTAMP_MASK > TIMESTAMP_MASK / 2);
        ensure!(back.is_none(), "timestamps before, in and after a batch must not decrease: {back:x?} of {times:x?}");
        Ok((before, ticks[0], after))
    };
    let (first_before, first, first_after) = read()?;
    sleep(PAUSE);
    let (second_before, second, second_after) = read()?;

    let ticks = second.wrapping_sub(first) & TIMESTAMP_MASK;
    let gpu = ticks as f64 / f64::from(bench.reference_clock);
    let least = (second_before - first_after).as_secs_f64() * (1.0 - TOLERANCE);
    let most = (second_after - first_before).as_secs_f64() * (1.0 + TOLERANCE);
    ensure!(
        (least..=most).contains(&gpu),
        "between two batches the CPU measures {:.1} to {:.1} ms, the timestamp {ticks} ticks = {:.1} ms at {} Hz",
        least * 1e3,
        most * 1e3,
        gpu * 1e3,
        bench.reference_clock
    );
    passed(format!("{ticks} ticks in {:.1} ms of CPU time", (second_before - first_before).as_secs_f64() * 1e3))
}

fn render_timestamp(bench: &Bench<'_>) -> Result<u64> {
    let mut read = i915::RegRead { offset: RENDER_TIMESTAMP | i915::REG_READ_8B, value: 0 };
    bench.device.ioctl(&mut read)?;
    Ok(read.value & TIMESTAMP_MASK)
}
