// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Contexts that compete for the same engine.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::{CheckEnvironment, program};
use crate::batch::Compare;
use crate::device::Engine;
use crate::vm::Place;

/// Two endless batches on two queues of one engine, each of which counts its rounds. Both must progress repeatedly,
/// which requires preemption of both. Both must end when the CPU sets the stop flag, and not before.
pub fn time_slices(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    /// Number of observations in which both must have progressed.
    const LOOKS: u32 = 3;
    const STOP: usize = 0;
    let counter = |queue: usize| 64 * (1 + queue);
    let vm = env.device.vm()?;
    let queues = [vm.queue(engine)?, vm.queue(engine)?];
    let memory = vm.buffer(Place::System, 4096)?;
    for at in (0..256).step_by(8) {
        memory.mapping().write_u64(at, 0);
    }
    let address = |at: usize| memory.address() + at as u64;
    let program = |queue| {
        program(&vm, Place::Vram, |batch| {
            let head = batch.here();
            batch.atomic_increment(address(counter(queue)));
            batch.end_unless(address(STOP), Compare::Equal, 0).arbitration_check().batch_buffer_start(head);
        })
    };
    let programs = [program(0)?, program(1)?];
    let fences = [queues[0].submit(programs[0].address())?, queues[1].submit(programs[1].address())?];
    let rounds = || [0, 1].map(|queue| memory.mapping().read_u32(counter(queue)));
    let start = Instant::now();
    let mut before = rounds();
    let mut looks = 0;
    while looks < LOOKS && start.elapsed() < env.timeout {
        let now = rounds();
        if now[0] != before[0] && now[1] != before[1] {
            (before, looks) = (now, looks + 1);
        }
        std::thread::yield_now();
    }
    memory.mapping().write_u32(STOP, 1);
    let at_end = rounds();
    for (queue, fence) in queues.iter().zip(&fences) {
        queue.wait(fence, env.timeout)?;
    }
    ensure!(looks == LOOKS, "both contexts progressed only {looks} times in {:?}: rounds {before:?}", env.timeout);
    Ok(format!("both progressed {LOOKS} times in {:.0} ms, {at_end:?} rounds", start.elapsed().as_secs_f64() * 1e3))
}
