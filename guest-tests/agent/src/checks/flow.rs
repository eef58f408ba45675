// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Arithmetic, loops and calls inside batches.

use anyhow::{Result, ensure};
use arctic_mi::Alu::{self, *};
use arctic_mi::Operand::*;
use arctic_mi::gpr;

use super::{CheckEnvironment, Random};
use crate::batch::{Batch, Compare};
use crate::device::Engine;
use crate::vm::Place;

/// Reference implementation of an ALU operation on the CPU.
type Reference = fn(u64, u64) -> u64;

/// One ALU operation: name, the instructions before the store, the store, and the CPU reference.
const OPERATIONS: [(&str, [Alu; 3], Alu, Reference); 12] = [
    ("add", [Load(SrcA, R(0)), Load(SrcB, R(1)), Add], Store(R(2), Accu), |a, b| a.wrapping_add(b)),
    ("sub", [Load(SrcA, R(0)), Load(SrcB, R(1)), Sub], Store(R(2), Accu), |a, b| a.wrapping_sub(b)),
    ("and", [Load(SrcA, R(0)), Load(SrcB, R(1)), And], Store(R(2), Accu), |a, b| a & b),
    ("or", [Load(SrcA, R(0)), Load(SrcB, R(1)), Or], Store(R(2), Accu), |a, b| a | b),
    ("xor", [Load(SrcA, R(0)), Load(SrcB, R(1)), Xor], Store(R(2), Accu), |a, b| a ^ b),
    ("and not", [Load(SrcA, R(0)), LoadInv(SrcB, R(1)), And], Store(R(2), Accu), |a, b| a & !b),
    ("nor", [Load(SrcA, R(0)), Load(SrcB, R(1)), Or], StoreInv(R(2), Accu), |a, b| !(a | b)),
    ("decrement", [Load(SrcA, R(0)), Load1(SrcB), Add], Store(R(2), Accu), |a, _| a.wrapping_sub(1)),
    ("move", [Load(SrcA, R(1)), Load0(SrcB), Or], Store(R(2), Accu), |_, b| b),
    ("carry", [Load(SrcA, R(0)), Load(SrcB, R(1)), Add], Store(R(2), Cf), |a, b| mask(a.checked_add(b).is_none())),
    ("borrow", [Load(SrcA, R(0)), Load(SrcB, R(1)), Sub], Store(R(2), Cf), |a, b| mask(a < b)),
    ("equal", [Load(SrcA, R(0)), Load(SrcB, R(1)), Sub], Store(R(2), Zf), |a, b| mask(a == b)),
];

fn mask(flag: bool) -> u64 {
    if flag { u64::MAX } else { 0 }
}

/// Every ALU operation on pairs of corner cases and random values.
pub fn alu(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    let vm = env.device.vm()?;
    let queue = vm.queue(engine)?;
    let memory = vm.buffer(Place::System, 64 << 10)?;
    let mut random = Random(3);
    let same = random.quadword();
    let pairs = [
        (0, 0),
        (u64::MAX, 1),
        (1, u64::MAX),
        (same, same),
        (1 << 32, 1 << 31),
        (random.quadword(), random.quadword()),
    ];
    let mut cases = Vec::new();
    env.run(&vm, &queue, Place::Vram, |batch| {
        for (a, b) in pairs {
            for (name, work, store, reference) in OPERATIONS {
                let at = 8 * cases.len();
                batch.load_gpr(0, a).load_gpr(1, b).load_gpr(2, !reference(a, b));
                batch.math(&[work[0], work[1], work[2], store]).store_gpr(2, memory.address() + at as u64);
                cases.push((name, a, b, reference(a, b)));
            }
        }
    })?;
    for (index, (name, a, b, want)) in cases.iter().enumerate() {
        let got = memory.mapping().read_u64(8 * index);
        ensure!(got == *want, "{name} of {a:#x} and {b:#x}: expected {want:#018x}, got {got:#018x}");
    }
    Ok(format!("{} operations in 64 bits, flags included", cases.len()))
}

/// Number of Fibonacci numbers that fit into 64 bits, without the two initial ones.
const FIBONACCI_STEPS: u64 = 92;

/// A counted loop, terminated by MI_CONDITIONAL_BATCH_BUFFER_END, that computes the Fibonacci sequence in 64 bits.
pub fn fibonacci(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    let vm = env.device.vm()?;
    let queue = vm.queue(engine)?;
    let memory = vm.buffer(Place::System, 4096)?;
    let [value, turns, left, scratch] = [0, 8, 16, 64].map(|at| memory.address() + at);
    env.run(&vm, &queue, Place::Vram, |batch| {
        // R0, R1: the last two numbers. R4: remaining rounds. R5: completed rounds.
        batch.load_gpr(0, 0).load_gpr(1, 1).load_gpr(4, FIBONACCI_STEPS).load_gpr(5, 0);
        let head = batch.here();
        batch.math(&[Load(SrcA, R(0)), Load(SrcB, R(1)), Add, Store(R(2), Accu)]);
        batch.math(&[Load(SrcA, R(1)), Load0(SrcB), Add, Store(R(0), Accu)]);
        batch.load_register_reg(gpr(1), gpr(2)).load_register_reg(gpr(1) + 4, gpr(2) + 4);
        batch.math(&[Load(SrcA, R(4)), Load1(SrcB), Add, Store(R(4), Accu)]);
        batch.math(&[Load0(SrcA), Load1(SrcB), Sub, Store(R(6), Accu)]);
        batch.math(&[Load(SrcA, R(5)), Load(SrcB, R(6)), Add, Store(R(5), Accu)]);
        batch.store_gpr(1, value).store_gpr(5, turns).store_gpr(4, left);
        // Register stores are posted on hardware. The further stores let them complete before the comparison reads the
        // value.
        for _ in 0..8 {
            batch.store_dword(scratch, 0xc0ffee);
        }
        batch.end_unless(left, Compare::Greater, 0).batch_buffer_start(head);
    })?;
    let (mut last, mut want) = (0u64, 1u64);
    for _ in 0..FIBONACCI_STEPS {
        (last, want) = (want, last + want);
    }
    let [got, rounds, left] = [0, 8, 16].map(|at| memory.mapping().read_u64(at));
    ensure!(left == 0, "rounds left: expected 0, got {left}");
    ensure!(rounds == FIBONACCI_STEPS, "rounds done: expected {FIBONACCI_STEPS}, got {rounds}");
    ensure!(got == want, "Fibonacci number {}: expected {want}, got {got}", FIBONACCI_STEPS + 1);
    Ok(format!("{FIBONACCI_STEPS} rounds to {got}"))
}

/// A batch that calls a second-level batch several times.
pub fn nested(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    const CALLS: u32 = 5;
    const DONE: u32 = 0x600d_600d;
    let vm = env.device.vm()?;
    let queue = vm.queue(engine)?;
    let memory = vm.buffer(Place::Vram, 4096)?;
    let code = vm.buffer(Place::System, 64 << 10)?;
    let mut batch = Batch::at(code.address());
    batch.atomic_increment(memory.address()).batch_buffer_end();
    let main = batch.here();
    for _ in 0..CALLS {
        batch.call(code.address());
    }
    batch.store_dword(memory.address() + 64, DONE).batch_buffer_end();
    code.load(&batch)?;
    memory.mapping().write_u64(0, 0);
    memory.mapping().write_u64(64, 0);
    let fence = queue.submit(main)?;
    queue.wait(&fence, env.timeout)?;
    let [calls, done] = [0, 64].map(|at| memory.mapping().read_u32(at));
    ensure!(calls == CALLS, "runs of the second-level batch: expected {CALLS}, got {calls}");
    ensure!(done == DONE, "store after the calls: expected {DONE:#x}, got {done:#x}");
    Ok(format!("{CALLS} calls of a second-level batch"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_64_bit_fibonacci_number_is_the_last() {
        let mut pair = (0u64, 1u64);
        for _ in 0..FIBONACCI_STEPS {
            pair = (pair.1, pair.0.checked_add(pair.1).unwrap());
        }
        assert_eq!(pair.1, 12_200_160_415_121_876_738);
        assert_eq!(pair.0.checked_add(pair.1), None);
    }
}
