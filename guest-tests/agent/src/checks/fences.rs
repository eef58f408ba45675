// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fences: submissions ordered only by their fences, and user fences in memory.

use anyhow::{Context, Result, ensure};
use arctic_mi::Alu::*;
use arctic_mi::Operand::*;
use arctic_mi::gpr;

use super::{CheckEnvironment, program};
use crate::batch::Compare;
use crate::device::Engine;
use crate::number::size;
use crate::vm::Place;

/// Submissions alternate between two queues of one engine, and each depends on the previous one. The first waits for a
/// semaphore, which makes the driver or the GuC hold back all others. Each increments a counter non-atomically and logs
/// the value that it read.
pub fn chain(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    const LINKS: usize = 12;
    const COUNTER: u64 = 0;
    const SEMAPHORE: u64 = 64;
    const LOG: u64 = 128;
    let vm = env.device.vm()?;
    let queues = [vm.queue(engine)?, vm.queue(engine)?];
    let memory = vm.buffer(Place::System, 4096)?;
    for at in (0..size(LOG) + 4 * LINKS).step_by(8) {
        memory.mapping().write_u64(at, 0);
    }
    let at = |offset: u64| memory.address() + offset;
    let programs = (0..LINKS)
        .map(|link| {
            program(&vm, Place::Vram, |batch| {
                if link == 0 {
                    batch.semaphore_wait(at(SEMAPHORE), Compare::GreaterOrEqual, 1);
                }
                batch.load_gpr(0, 0).load_gpr(1, 1).load_register_mem(gpr(0), at(COUNTER));
                batch.store_register_mem(gpr(0), at(LOG + 4 * link as u64));
                batch.math(&[Load(SrcA, R(0)), Load(SrcB, R(1)), Add, Store(R(0), Accu)]);
                batch.store_register_mem(gpr(0), at(COUNTER));
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let mut last = queues[0].submit(programs[0].address())?;
    for (link, program) in programs.iter().enumerate().skip(1) {
        last = queues[link % 2].submit_after(program.address(), &last)?;
    }
    let early = memory.mapping().read_u32(size(COUNTER));
    memory.mapping().write_u32(size(SEMAPHORE), 1);
    queues[(LINKS - 1) % 2]
        .wait(&last, env.timeout)
        .with_context(|| format!("after {} of {LINKS} submissions", memory.mapping().read_u32(size(COUNTER))))?;
    ensure!(early == 0, "{early} submissions ran before the submission that they depend on");
    for link in 0..LINKS {
        let found = memory.mapping().read_u32(size(LOG) + 4 * link);
        ensure!(found as usize == link, "submission {link} of the chain ran after {found} others");
    }
    Ok(format!("{LINKS} submissions of two queues, each after the other's"))
}

/// A submission that signals its completion only through a value in memory. The driver wakes the waiter on the engine's
/// interrupt.
pub fn user_fence(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    const ROUNDS: u64 = 8;
    let vm = env.device.vm()?;
    let queue = vm.queue(engine)?;
    let memory = vm.buffer(Place::System, 4096)?;
    let code = program(&vm, Place::Vram, |batch| {
        batch.atomic_increment(memory.address() + 64);
    })?;
    for round in 1..=ROUNDS {
        let value = 0xfe9c_e000_0000_0000 | round;
        queue.submit_user_fence(code.address(), &memory, 0, value)?;
        queue.wait_user_fence(&memory, 0, value, env.timeout)?;
        let runs = memory.mapping().read_u64(64);
        ensure!(runs == round, "work of fence {round}: expected {round} runs, got {runs}");
    }
    Ok(format!("{ROUNDS} fences in memory"))
}
