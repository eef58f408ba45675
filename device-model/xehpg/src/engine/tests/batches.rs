// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Rings, batches, and batches that run during a context restore.

use super::*;
use arctic_fidelity::proves;

#[test]
fn a_ring_is_two_mebibytes_at_the_most() {
    proves!(
        [V8_065, V8_066],
        "RING_START is 4 KiB aligned and its low bits are ignored. A ring has at most 2 MiB and wraps. Head equals \
        tail when the ring is idle"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    let ring = 0x40_0000u64;
    bench.put(context.image(0x09), ring as u32 | 0xfff);
    bench.put(context.image(0x0b), 0x001f_f001);
    bench.put(context.image(0x05), 0x1f_fff0);
    bench.put(context.image(0x07), 0x10);
    bench.write(ring + 0x1f_fff0, &store(VA + DATA, 1));
    bench.write(ring, &store(VA + DATA + 4, 2));
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!([0, 4].map(|n| bench.get(DATA + n)), [1, 2]);
    assert_eq!(bench.own(0x38), ring as u32);
    assert_eq!([0x05, 0x07].map(|dword| bench.get(context.image(dword))), [0x10, 0x10]);
}

#[test]
fn a_ring_that_is_not_enabled_is_empty() {
    proves!(
        [V8_065, V8_212],
        "a ring that RING_CTL of the image does not enable is empty, regardless of head and tail: the engine has no \
        default for it"
    );
    for (ctl, stored) in [(0x3001, 1), (0x3000, 0)] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        let context = bench.context(0);
        bench.put(context.image(0x0b), ctl);
        bench.emit(context, &store(VA + DATA, 1));
        assert_eq!(bench.submit(context), Outcome::Complete);
        assert_eq!(bench.get(DATA), stored, "{ctl:#x}");
    }
}

#[test]
fn the_tail_counts_qwords() {
    proves!(
        V8_067,
        "the tail has qword granularity, in a restore and in a lite restore. A dword after the last complete qword \
        is not executed. Sequences of odd length are padded"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    bench.write(context.at, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x600, 7]);
    bench.put(context.image(0x07), 16 + 4);
    bench.put(context.at + 16, u32::MAX);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!((bench.own(0x600), bench.own(0x30)), (7, 16));
    bench.write(context.at + 16, &wait(4, VA + DATA, 1));
    bench.put(context.image(0x07), 16 + 24);
    assert_eq!(bench.submit(context), Outcome::Waiting);
    bench.write(context.at + 40, &[u32::MAX]);
    bench.put(context.image(0x07), 40 + 4);
    bench.engine.tail_moved();
    bench.put(DATA, 1);
    assert_eq!((bench.run(), bench.own(0x30)), (Outcome::Complete, 40));
}

#[test]
fn each_context_has_a_ring() {
    proves!(
        V8_068,
        "each context has a separate ring. Two contexts that are switched at MI_ARB_CHECK each continue at their \
        head"
    );
    let mut bench = EngineBench::new(EngineClass::VideoEnhance);
    let contexts = [bench.context(0), bench.context(1)];
    for (n, context) in (0..).zip(contexts) {
        for round in 0..3 {
            bench.emit(context, &store(VA + DATA + 4 * n, 0x10 * (round + 1) + n as u32));
            bench.emit(context, &[ARB_CHECK, 0]);
        }
    }
    for round in 1..=3u32 {
        for (n, context) in (0..).zip(contexts) {
            bench.engine.load(&bench.gt, context.load());
            bench.engine.request_preemption();
            assert_eq!(bench.run(), Outcome::Preempted);
            assert_eq!(bench.get(DATA + 4 * n), 0x10 * round + n as u32);
            assert_eq!(bench.get(context.image(0x05)), 24 * round - 4);
        }
    }
}

#[test]
fn a_batch_of_64_mebibytes() {
    proves!(V8_158, "a batch of 64 MiB is executed from the first to the last qword before the ring continues");
    const LONG: u64 = 3 << 30;
    const PAGE: u64 = 2 << 20;
    let mut bench = EngineBench::new(EngineClass::Copy);
    let (tables, fill, last) = (0xe0_0000u64, 0x40_0000u64, 0x60_0000u64);
    bench.put64(ROOT + 0x1000 + 24, tables | 3);
    for frame in 0..32 {
        bench.put64(tables + 8 * frame, if frame == 31 { last } else { fill } | 0x883);
    }
    // An atomic increment, followed by store commands that are 4 KiB long.
    for page in [fill, last] {
        bench.write(page, &[MI_ATOMIC | ATOMIC_INC << 8 | 1, (VA + DATA) as u32, 0]);
        for at in (4096..PAGE).step_by(4096) {
            bench.write(page + at, &[MI_STORE_DATA_IMM | 1022, (VA + 0x70_0000) as u32, 0]);
        }
    }
    bench.put(last + PAGE - 4096, 0);
    bench.put(last + PAGE - 4092, 0);
    bench.put(last + PAGE - 8, END);
    let context = bench.context(0);
    bench.emit(context, &start(LONG));
    bench.emit(context, &store(VA + DATA + 8, 1));
    bench.engine.load(&bench.gt, context.load());
    let outcome = (0..10_000).map(|_| bench.engine.step(&bench.gt, 10_000)).find(|outcome| *outcome != Outcome::More);
    assert_eq!(outcome, Some(Outcome::Complete));
    assert_eq!([0, 8].map(|n| bench.get(DATA + n)), [32, 1]);
}

#[test]
fn batches_in_the_ggtt_are_privileged() {
    proves!(
        V8_159,
        "the ring and batches in the GGTT are privileged and can write a privileged register. The same commands in \
        a PPGTT batch cannot"
    );
    let commands = [MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x24c, 0x77, END];
    for (start, written) in [(Some(0x1880_0001), true), (Some(0x1880_0101), false), (None, true)] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        bench.write(BATCH, &commands);
        let outcome = match start {
            Some(start) => bench.ring(&[start, (if start & 0x100 != 0 { VA } else { 0 } + BATCH) as u32, 0]),
            None => bench.ring(&commands[..3]),
        };
        assert_eq!(outcome, Outcome::Complete);
        assert_eq!(bench.own(0x24c) == 0x77, written, "{start:x?}");
    }
}

/// Returns MI_PRT_BATCH_BUFFER_START with Persistence Enable.
fn persistent(at: u64, ppgtt: bool) -> [u32; 3] {
    [MI_PRT_BATCH_BUFFER_START | 1 << 9 | 1 | u32::from(ppgtt) << 8, at as u32, (at >> 32) as u32]
}

/// Returns an MI_ATOMIC increment of a dword in the PPGTT.
fn increment(at: u64) -> [u32; 3] {
    [MI_ATOMIC | ATOMIC_INC << 8 | 1, at as u32, (at >> 32) as u32]
}

#[test]
fn a_persistent_batch_runs_at_each_restore() {
    proves!(
        [V8_136, V8_160],
        "a persistent batch runs when it is started and at each later restore, before the interrupted stream \
        continues. Only the latest persistent batch is active. PRT_BB_STATE is saved in the image (trap T26)"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    let context = bench.context(0);
    let (first, second) = (BATCH, BATCH + 0x100);
    for (n, batch) in (0..).zip([first, second]) {
        bench.write(batch, &increment(VA + DATA + 4 * n));
        bench.put(batch + 12, END);
    }
    // The counter is copied directly after each point at which the context is preempted.
    let copy = |n: u64| [MI_COPY_MEM_MEM | 3, (VA + DATA + 0x40 + 4 * n) as u32, 0, (VA + DATA) as u32, 0, ARB_CHECK];
    bench.emit(context, &persistent(VA + first, true));
    for n in 0..4 {
        bench.emit(context, &copy(n));
    }
    bench.emit(context, &persistent(VA + second, true));
    bench.emit(context, &[ARB_CHECK, 0]);
    for n in 0..5 {
        bench.engine.load(&bench.gt, context.load());
        bench.engine.request_preemption();
        assert_eq!(bench.run(), Outcome::Preempted, "{n}");
    }
    assert_eq!([0, 1, 2, 3].map(|n| bench.get(DATA + 0x40 + 4 * n)), [1, 2, 3, 4], "1 + restores, before the stream");
    assert_eq!([0x1d, 0x1f].map(|dword| bench.get(context.image(dword))), [(VA + second) as u32 | 3, 0]);
    assert_eq!([0, 4].map(|n| bench.get(DATA + n)), [5, 1]);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!([0, 4].map(|n| bench.get(DATA + n)), [5, 3], "only the latest");
    // Without Persistence Enable the batch runs once, and the recorded batch is cleared.
    bench.emit(context, &[MI_PRT_BATCH_BUFFER_START | BATCH_PPGTT | 1, (VA + first) as u32, 0]);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!([0, 4].map(|n| bench.get(DATA + n)), [6, 4]);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!([0, 4].map(|n| bench.get(DATA + n)), [6, 4]);
}

#[test]
fn a_persistent_batch_interrupts_batches() {
    proves!(
        V8_160,
        "a persistent batch started from a batch returns to it. At a restore it runs first, then the interrupted \
        batches continue, including nested batches. If started from a non-privileged batch, it is not privileged, \
        at restores either (trap T5). It can be preempted at MI_ARB_CHECK"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    let context = bench.context(0);
    let (inner, prt, nested) = (BATCH + 0x100, BATCH + 0x200, BATCH + 0x300);
    bench.write(BATCH, &[MI_BATCH_BUFFER_START | SECOND_LEVEL | BATCH_PPGTT | 1, (VA + inner) as u32, 0]);
    bench.write(BATCH + 12, &store(VA + DATA + 12, 3));
    bench.put(BATCH + 28, END);
    // The command requests the GGTT, which is denied to the batch.
    bench.write(inner, &persistent(prt, false));
    bench.write(inner + 12, &[ARB_CHECK]);
    bench.write(inner + 16, &store(VA + DATA + 8, 2));
    bench.put(inner + 32, END);
    let at_prt = VA + prt;
    bench.write(inner, &persistent(at_prt, false));
    bench.write(prt, &increment(VA + DATA));
    bench.write(prt + 12, &[0x18c0_0101, (VA + nested) as u32, 0, 0x1108_0001, 0x24c, 0x77, ARB_CHECK, END]);
    bench.write(nested, &increment(VA + DATA + 4));
    bench.put(nested + 12, END);
    bench.emit(context, &start(VA + BATCH));
    for round in 1..4 {
        bench.engine.load(&bench.gt, context.load());
        bench.engine.request_preemption();
        assert_eq!(bench.run(), Outcome::Preempted);
        // In the first round the context is preempted in the started batch, later in the restored batch.
        assert_eq!([0, 4, 8].map(|n| bench.get(DATA + n)), [round, round, 0]);
    }
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!([0, 4, 8, 12].map(|n| bench.get(DATA + n)), [4, 4, 2, 3]);
    assert_eq!(bench.own(0x24c), 0, "a restore does not grant privilege");
    assert_eq!(bench.get(context.image(0x1d)), at_prt as u32 | 3);
}

#[test]
fn the_indirect_batch_runs_within_the_restore() {
    proves!(
        [V8_161, V8_162],
        "INDIRECT_CTX runs at the image cacheline given by INDIRECT_CTX_OFFSET. It observes registers restored \
        before it, and registers restored after it override its writes. BB_PER_CTX_PTR runs after the complete \
        restore. Both run before the ring. If the offset is outside the engine context, the default is cacheline \
        0xd, after the GPRs (trap T16)"
    );
    for (offset, seen_indirect, seen_ring) in [
        (0x06 << 6, 0, 0x1111),
        (0x08 << 6, 0, 0x1111),
        (0x09 << 6, 0x1111, 0x2222),
        (0x0d << 6, 0x1111, 0x2222),
        (0, 0x1111, 0x2222),
        (0x03 << 6, 0x1111, 0x2222),
    ] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        let context = bench.context(0);
        bench.emit(context, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x600, 0x1111]);
        assert_eq!(bench.submit(context), Outcome::Complete);
        let (indirect, per_context) = (context.at + 0x6000, context.at + 0x7000);
        let see = |at: u64| [MI_STORE_REGISTER_MEM | GGTT | CS_MMIO | 2, 0x600, at as u32, 0];
        bench.write(indirect, &see(DATA));
        bench.write(indirect + 16, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x600, 0x2222]);
        bench.write(per_context, &see(DATA + 4));
        bench.put(per_context + 16, END);
        bench.put(context.image(0x13), per_context as u32 | 1);
        bench.put(context.image(0x15), indirect as u32 | 1);
        bench.put(context.image(0x17), offset);
        bench.emit(context, &see(DATA + 8));
        bench.gt.registers.set(bench.base() + 0x600, 0x9999);
        assert_eq!(bench.submit(context), Outcome::Complete);
        assert_eq!([0, 4, 8].map(|n| bench.get(DATA + n)), [seen_indirect, seen_ring, seen_ring], "{offset:#x}");
    }
}

/// The batch that xe's configfs attribute `ctx_restore_mid_bb` adds to INDIRECT_CTX writes scratch registers, which keep
/// their values after the restore.
#[test]
fn the_indirect_batch_writes_scratch_registers() {
    let mut bench = EngineBench::new(EngineClass::Render);
    let context = bench.context(0);
    let indirect = context.at + 0x6000;
    bench.write(indirect, &[MI_LOAD_REGISTER_IMM | 3, 0x4_f100, 0xdea1_bee1, 0x4_f104, 0xdea2_bee2]);
    bench.put(context.image(0x15), indirect as u32 | 1);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!([0x4_f100, 0x4_f104].map(|at| bench.gt.registers.value(at)), [0xdea1_bee1, 0xdea2_bee2]);
}

#[test]
fn workaround_batches_are_the_contexts() {
    proves!(
        [V8_161, V8_162],
        "both workaround batches belong to the context and run at each restore. They do not run if their registers \
        disable them"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let (with, without) = (bench.context(0), bench.context(1));
    let (indirect, per_context) = (with.at + 0x6000, with.at + 0x7000);
    let global = |at: u64| [MI_ATOMIC | GGTT | ATOMIC_INC << 8 | 1, at as u32, 0];
    bench.write(indirect, &global(DATA));
    bench.write(per_context, &global(DATA + 4));
    bench.put(per_context + 12, END);
    bench.put(with.image(0x15), indirect as u32 | 1);
    bench.put(with.image(0x13), per_context as u32 | 1);
    bench.put(without.image(0x13), per_context as u32);
    bench.put(without.image(0x15), indirect as u32);
    for round in 1..4 {
        assert_eq!(bench.submit(with), Outcome::Complete);
        assert_eq!(bench.submit(without), Outcome::Complete);
        assert_eq!([0, 4].map(|n| bench.get(DATA + n)), [round, round]);
    }
}

#[test]
fn three_levels_of_batches_are_resumed() {
    proves!(
        V8_163,
        "a context preempted in the innermost of three batches, including GGTT batches, resumes there and completes \
        all three. The image contains the outer batches and the start of the current one"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    let (context, other) = (bench.context(0), bench.context(1));
    let (second, third) = (BATCH + 0x100, BATCH + 0x200);
    bench.write(BATCH, &[MI_BATCH_BUFFER_START | SECOND_LEVEL | 1, second as u32, 0]);
    bench.write(BATCH + 12, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x24c, 0x77, END]);
    bench.write(second, &[MI_BATCH_BUFFER_START | SECOND_LEVEL | BATCH_PPGTT | 1, (VA + third) as u32, 0]);
    bench.write(second + 12, &store(VA + DATA + 4, 2));
    bench.put(second + 28, END);
    bench.write(third, &[0, 0, ARB_CHECK]);
    bench.write(third + 12, &store(VA + DATA, 1));
    bench.put(third + 28, END);
    bench.emit(context, &[MI_BATCH_BUFFER_START | 1, BATCH as u32, 0]);
    bench.emit(context, &store(VA + DATA + 8, 3));
    bench.engine.load(&bench.gt, context.load());
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    let image = |dwords: &[usize]| dwords.iter().map(|dword| bench.get(context.image(*dword))).collect::<Vec<_>>();
    assert_eq!(
        image(&[0x63, 0x65, 0x67, 0x69, 0x6b, 0x6d]),
        [BATCH as u32 + 12 | 1, 0, second as u32 + 12 | 1, 0, 0, 0]
    );
    let at = (VA + third) as u32;
    assert_eq!(image(&[0x0d, 0x0f, 0x11]), [0, at + 12 | 1, 1 << 5], "BBADDR_UDW, BBADDR, BB_STATE");
    assert_eq!(image(&[0x7b, 0x7d, 0x7f]), [0, at, 12], "BB_START_ADDR_UDW, BB_START_ADDR, BB_ADD_DIFF (IVB: 0x2154)");
    assert_eq!(bench.submit(other), Outcome::Complete);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!([0, 4, 8].map(|n| bench.get(DATA + n)), [1, 2, 3]);
    assert_eq!(bench.own(0x24c), 0x77, "the outermost batch is still privileged");
    assert_eq!(bench.get(context.image(0x0f)), 0);
}
