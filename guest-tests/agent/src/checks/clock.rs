// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Compares timestamps with the CPU's clock.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use arctic_mi::{TIMESTAMP, TIMESTAMP_UDW};

use super::{CheckEnvironment, program};
use crate::device::Engine;
use crate::number::size;
use crate::vm::Place;

/// RING_TIMESTAMP is 36 bits wide (contract E.7; IVB-116).
pub(crate) const TIMESTAMP_MASK: u64 = (1 << 36) - 1;
/// Time between two readings.
const PAUSE: Duration = Duration::from_millis(60);
/// Permitted difference of the two clocks over [`PAUSE`], as a fraction of the time; emulated clocks are inexact.
const TOLERANCE: f64 = 0.10;

/// RING_TIMESTAMP never decreases within a batch. Between two batches it advances at the rate reported by the driver:
/// at least by the CPU time between the batches, at most by the CPU time from before the first to after the second.
pub fn timestamp(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    const READINGS: u64 = 16;
    let vm = env.device.vm()?;
    let queue = vm.queue(engine)?;
    let memory = vm.buffer(Place::System, 4096)?;
    let code = program(&vm, Place::System, |batch| {
        for index in 0..READINGS {
            let at = memory.address() + 8 * index;
            batch.store_register_mem(TIMESTAMP, at).store_register_mem(TIMESTAMP_UDW, at + 4);
        }
    })?;
    let read = || -> Result<Reading> {
        let before = Instant::now();
        let fence = queue.submit(code.address())?;
        queue.wait(&fence, env.timeout)?;
        let after = Instant::now();
        let ticks: Vec<_> =
            (0..READINGS).map(|index| memory.mapping().read_u64(size(8 * index)) & TIMESTAMP_MASK).collect();
        let back = decrease(&ticks);
        ensure!(back.is_none(), "timestamps in one batch must not decrease: {back:x?}");
        Ok((before, ticks[0], after))
    };
    rate(read, env.reference_clock)
}

/// The time before a batch, its first timestamp, and the time after it.
pub(crate) type Reading = (Instant, u64, Instant);

/// Reads twice, with a pause between. The timestamps must advance at `reference_clock` Hz: at least by the CPU time
/// between the two batches, at most by the CPU time from before the first to after the second.
pub(crate) fn rate(mut read: impl FnMut() -> Result<Reading>, reference_clock: u32) -> Result<String> {
    let (first_before, first, first_after) = read()?;
    sleep(PAUSE);
    let (second_before, second, second_after) = read()?;

    let ticks = second.wrapping_sub(first) & TIMESTAMP_MASK;
    let gpu = ticks as f64 / f64::from(reference_clock);
    let least = (second_before - first_after).as_secs_f64() * (1.0 - TOLERANCE);
    let most = (second_after - first_before).as_secs_f64() * (1.0 + TOLERANCE);
    ensure!(
        (least..=most).contains(&gpu),
        "between two batches the CPU measures {:.1} to {:.1} ms, the timestamp {ticks} ticks = {:.1} ms at {} Hz",
        least * 1e3,
        most * 1e3,
        gpu * 1e3,
        reference_clock
    );
    Ok(format!("{ticks} ticks in {:.1} ms of CPU time", (second_before - first_before).as_secs_f64() * 1e3))
}

/// The first two successive timestamps of which the second is before the first.
pub(crate) fn decrease(times: &[u64]) -> Option<&[u64]> {
    times.windows(2).find(|pair| pair[1].wrapping_sub(pair[0]) & TIMESTAMP_MASK > TIMESTAMP_MASK / 2)
}
