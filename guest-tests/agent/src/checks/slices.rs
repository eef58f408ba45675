// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Contexts that compete for the same engine.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{CheckEnvironment, program};
use crate::batch::Compare;
use crate::device::{DrmError, Engine};
use crate::vm::Place;

/// Two endless batches on two queues of one engine, each of which counts its rounds. Both must progress repeatedly,
/// which requires preemption of both. Both must end when the CPU sets the stop flag, and not before.
pub fn time_slices(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    /// Number of observations in which both must have progressed.
    const OBSERVATIONS: u32 = 3;
    /// Distance of the stop flag and the counters in bytes: each has its own cache line.
    const STRIDE: usize = 64;
    const STOP: usize = 0;
    const COUNTERS: [usize; 2] = [STRIDE, 2 * STRIDE];
    let vm = env.device.vm()?;
    let queues = [vm.queue(engine)?, vm.queue(engine)?];
    let memory = vm.buffer(Place::System, 4096)?;
    for at in [STOP, COUNTERS[0], COUNTERS[1]] {
        memory.mapping().write_u64(at, 0);
    }
    let address = |at: usize| memory.address() + at as u64;
    let program = |counter| {
        program(&vm, Place::Vram, |batch| {
            let head = batch.here();
            batch.atomic_increment(address(counter));
            batch.end_unless(address(STOP), Compare::Equal, 0).arbitration_check().batch_buffer_start(head);
        })
    };
    let programs = [program(COUNTERS[0])?, program(COUNTERS[1])?];
    let fences = [queues[0].submit(programs[0].address())?, queues[1].submit(programs[1].address())?];
    let rounds = || COUNTERS.map(|counter| memory.mapping().read_u32(counter));
    let start = Instant::now();
    let mut before = rounds();
    let mut observations = 0;
    while observations < OBSERVATIONS && start.elapsed() < env.timeout {
        let now = rounds();
        if now[0] != before[0] && now[1] != before[1] {
            (before, observations) = (now, observations + 1);
        }
        std::thread::yield_now();
    }
    let (elapsed, observed) = (start.elapsed(), rounds());
    let run_on = fences.each_ref().map(|fence| matches!(fence.wait(Duration::ZERO), Err(DrmError::Timeout(_))));
    memory.mapping().write_u32(STOP, 1);
    let ends = [queues[0].wait(&fences[0], env.timeout), queues[1].wait(&fences[1], env.timeout)];
    // Checked first: the state at the last observation explains a fence that does not signal.
    ensure!(
        observations == OBSERVATIONS,
        "both contexts progressed only {observations} times in {elapsed:?}: rounds {before:?} at the last time, \
         {observed:?} at the end of the wait"
    );
    ensure!(run_on == [true; 2], "batches that run before the stop flag is set: expected [true, true], got {run_on:?}");
    ends.into_iter().collect::<Result<Vec<()>, DrmError>>()?;
    let milliseconds = elapsed.as_secs_f64() * 1e3;
    Ok(format!("both progressed {OBSERVATIONS} times in {milliseconds:.0} ms, {:?} rounds", rounds()))
}
