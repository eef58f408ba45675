// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Engines that access the same memory concurrently, ordered by semaphores or by atomics.

use anyhow::{Context, Result, ensure};
use arctic_mi::Alu::*;
use arctic_mi::Operand::*;
use arctic_mi::gpr;

use super::{CheckEnvironment, program};
use crate::batch::Compare;
use crate::device::Engine;
use crate::number::count;
use crate::vm::Place;

/// A semaphore passed around a ring of all engines.
pub fn ring(env: &CheckEnvironment<'_>, engines: &[Engine]) -> Result<String> {
    const ROUNDS: u32 = 16;
    baton(env, engines, ROUNDS, Place::System)?;
    Ok(format!("{} hand-overs in order through {} engines", ROUNDS as usize * engines.len(), engines.len()))
}

/// A semaphore passed back and forth between each pair of engines.
pub fn pairs(env: &CheckEnvironment<'_>, engines: &[Engine]) -> Result<String> {
    const ROUNDS: u32 = 8;
    let mut count = 0;
    for (index, one) in engines.iter().enumerate() {
        for other in &engines[index + 1..] {
            baton(env, &[*one, *other], ROUNDS, Place::Vram)
                .with_context(|| format!("between {} and {}", one.name(), other.name()))?;
            count += 1;
        }
    }
    Ok(format!("{count} pairs of engines, {ROUNDS} rounds each"))
}

/// Runs one batch per engine concurrently. In each round engine `i` waits for its semaphore, increments a counter in
/// memory with three non-atomic commands, logs the sum and signals the next engine. Only the semaphores protect the
/// counter, so a lost or early signal is visible in the log.
fn baton(env: &CheckEnvironment<'_>, engines: &[Engine], rounds: u32, place: Place) -> Result<()> {
    let vm = env.device.vm()?;
    let memory = vm.buffer(place, 64 << 10)?;
    for at in (0..64 << 10).step_by(8) {
        memory.mapping().write_u64(at, 0);
    }
    const COUNTER: usize = 0x0;
    const LOG: usize = 0x8000;
    // Each in a separate cache line.
    let semaphore = |engine: usize| 64 * (1 + engine % engines.len());
    let turn = |round: u32, engine: usize| round as usize * engines.len() + engine;
    let address = |at: usize| memory.address() + at as u64;

    let queues = engines.iter().map(|engine| vm.queue(*engine)).collect::<Result<Vec<_>, _>>()?;
    let programs = (0..engines.len())
        .map(|engine| {
            program(&vm, Place::System, |batch| {
                for round in 0..rounds {
                    batch.semaphore_wait(address(semaphore(engine)), Compare::GreaterOrEqual, round + 1);
                    batch.load_gpr(0, 0).load_gpr(1, 1).load_register_mem(gpr(0), address(COUNTER));
                    batch.math(&[Load(SrcA, R(0)), Load(SrcB, R(1)), Add, Store(R(0), Accu)]);
                    batch.store_register_mem(gpr(0), address(COUNTER));
                    batch.store_register_mem(gpr(0), address(LOG + 4 * turn(round, engine)));
                    let next = if engine + 1 == engines.len() { round + 2 } else { round + 1 };
                    batch.store_dword(address(semaphore(engine + 1)), next);
                }
            })
        })
        .collect::<Result<Vec<_>>>()?;
    // Submitted in reverse order. No engine can pass its semaphore before all batches are submitted, since the first
    // engine waits for the CPU's signal.
    let mut fences = Vec::new();
    for (queue, program) in queues.iter().zip(&programs).rev() {
        fences.push((queue, queue.submit(program.address())?));
    }
    memory.mapping().write_u32(semaphore(0), 1);
    for (queue, fence) in fences {
        let waited = queue.wait(&fence, env.timeout);
        waited.with_context(|| {
            let counts: Vec<_> =
                (0..engines.len()).map(|engine| memory.mapping().read_u32(semaphore(engine))).collect();
            let done = memory.mapping().read_u32(COUNTER);
            format!("after {done} of {} hand-overs, semaphores at {counts:?}", turn(rounds, 0))
        })?;
    }
    for index in 0..turn(rounds, 0) {
        let (want, got) = (count(index) + 1, memory.mapping().read_u32(LOG + 4 * index));
        let engine = engines[index % engines.len()].name();
        ensure!(got == want, "turn {want} ({engine}): expected a counter of {want}, got {got}");
    }
    Ok(())
}

/// All engines concurrently increment the same dword in a loop. No increment may be lost.
pub fn atomics(env: &CheckEnvironment<'_>, engines: &[Engine]) -> Result<String> {
    const ROUNDS: u32 = 500;
    let vm = env.device.vm()?;
    let memory = vm.buffer(Place::Vram, 64 << 10)?;
    for at in (0..4096).step_by(8) {
        memory.mapping().write_u64(at, 0);
    }
    let own = |engine: usize| 64 * (1 + engine);
    let queues = engines.iter().map(|engine| vm.queue(*engine)).collect::<Result<Vec<_>, _>>()?;
    let programs = (0..engines.len())
        .map(|engine| {
            let count = memory.address() + own(engine) as u64;
            program(&vm, Place::System, |batch| {
                let head = batch.here();
                batch.atomic_increment(memory.address()).atomic_increment(count);
                batch.end_unless(count, Compare::NotEqual, ROUNDS).batch_buffer_start(head);
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let mut fences = Vec::new();
    for (queue, program) in queues.iter().zip(&programs) {
        fences.push((queue, queue.submit(program.address())?));
    }
    for (engine, (queue, fence)) in engines.iter().zip(fences) {
        queue.wait(&fence, env.timeout).with_context(|| engine.name())?;
    }
    for (index, engine) in engines.iter().enumerate() {
        let got = memory.mapping().read_u32(own(index));
        ensure!(got == ROUNDS, "rounds of {}: expected {ROUNDS}, got {got}", engine.name());
    }
    let (want, got) = (ROUNDS * count(engines.len()), memory.mapping().read_u32(0));
    ensure!(got == want, "shared counter: expected {want}, got {got}");
    Ok(format!("{got} increments of one dword by {} engines", engines.len()))
}
