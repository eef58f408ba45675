// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Predication of commands.

use super::*;
use arctic_fidelity::proves;
use arctic_mi::Alu;
use arctic_mi::Operand::{Accu, R, SrcA};

const EXPLICIT: u32 = 1 << 15;
const BY_RESULT: u32 = 1 << 8;

/// Returns MI_LOAD_REGISTER_IMM of an engine register.
fn lri(register: u32, value: u32) -> [u32; 3] {
    [MI_LOAD_REGISTER_IMM | CS_MMIO | 1, register, value]
}

/// Runs `command` with the given values of both predicates, then clears the global predicate with MI_SET_PREDICATE.
/// Returns the result of `seen`.
fn executed(command: &[u32], result: u32, set: u32, seen: fn(&EngineBench) -> bool) -> bool {
    let mut bench = EngineBench::new(EngineClass::Render);
    let other = BATCH + 0x1000;
    bench.write(other, &[MI_SET_PREDICATE, MI_NOOP | WRITE_NOPID | 2, END]);
    let batch = [&lri(0x600, 9)[..], &lri(0x418, result), &lri(0x3b8, set), command, &[MI_SET_PREDICATE]].concat();
    assert_eq!(bench.batch(&[&batch[..], &store(VA + DATA + 0x20, 1)].concat()), Outcome::Complete);
    seen(&bench)
}

#[test]
fn both_predicates() {
    proves!(
        [V8_140, V8_143, V8_112, V8_126, V8_134, V8_135, V8_137],
        "truth table of predication. Batch start, end and conditional end are skipped if their predicate enable and \
        MI_SET_PREDICATE_RESULT are set. All other commands are skipped if MI_SET_PREDICATE_RESULT is set, because \
        the global level takes precedence. Of these, commands with a predicate enable that is set are also skipped \
        if MI_PREDICATE_RESULT is clear. Covers the predicates of V8-112, V8-126, V8-134, V8-135 and V8-137 (trap \
        T2)"
    );
    let at = (VA + DATA) as u32;
    let other = (VA + BATCH + 0x1000) as u32;
    let stored = |bench: &EngineBench| bench.get(DATA) != 0;
    let counted = |bench: &EngineBench| bench.engine.counters().skipped.by_name().len() == 1;
    // The store after the command is not executed if the batch has ended or jumped.
    let ended = |bench: &EngineBench| bench.get(DATA + 0x20) == 0;
    let pipeline = |header: u32| [&[header][..], &vec![0; (header & 0xff) as usize + 1]].concat();
    // A walker without threads that writes an immediate.
    let mut walker = pipeline(0x7208_0025);
    (walker[26], walker[27], walker[29]) = (1, at, 9);
    type Seen = fn(&EngineBench) -> bool;
    let by_result: [(Vec<u32>, u32, Seen); 5] = [
        (vec![MI_STORE_REGISTER_MEM | CS_MMIO | 2, 0x600, at, 0], 1 << 21, stored),
        (vec![PIPE_CONTROL | 4, 0x4000, at, 0, 9, 0], BY_RESULT, stored),
        (pipeline(0x7b00_0005), BY_RESULT, counted),
        (walker, BY_RESULT, stored),
        (pipeline(0x7852_0003), BY_RESULT, counted),
    ];
    let explicit: [(Vec<u32>, Seen); 3] =
        [(vec![0x1880_0101, other, 0], ended), (vec![END], ended), (vec![0x1b20_5002, 0, at, 0], ended)];
    let always: [(Vec<u32>, Seen); 7] = [
        (store(VA + DATA, 1).to_vec(), stored),
        (vec![MI_NOOP | WRITE_NOPID | 3], |bench| bench.own(reg::NOPID) == 3),
        (lri(0x600, 5).to_vec(), |bench| bench.own(0x600) == 5),
        (mi::math(&[Alu::Load1(SrcA), Alu::Add, Alu::Store(R(0), Accu)]), |bench| bench.own(0x600) == u32::MAX),
        (vec![MI_ATOMIC | ATOMIC_INC << 8 | 1, at, 0], stored),
        (pipeline(0x7849_0001), counted),
        (vec![MI_COPY_MEM_MEM | 3, at, 0, (VA + BATCH) as u32, 0], stored),
    ];
    for (result, set) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for (command, enable, seen) in &by_result {
            let mut predicated = command.clone();
            predicated[0] |= enable;
            let what = format!("{:#x} result {result} set {set}", command[0]);
            assert_eq!(executed(command, result, set, *seen), set == 0, "{what}");
            assert_eq!(executed(&predicated, result, set, *seen), set == 0 && result == 1, "{what}, enabled");
        }
        for (command, seen) in &explicit {
            let mut predicated = command.clone();
            predicated[0] |= EXPLICIT;
            let what = format!("{:#x} result {result} set {set}", command[0]);
            assert!(executed(command, result, set, *seen), "{what}");
            assert_eq!(executed(&predicated, result, set, *seen), set == 0, "{what}, enabled");
        }
        for (command, seen) in &always {
            assert_eq!(executed(command, result, set, *seen), set == 0, "{:#x} result {result} set {set}", command[0]);
        }
    }
}

#[test]
fn blits_are_predicated() {
    proves!(V8_140, "blits also depend on the global predicate");
    for set in [0, 1] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        let at = (VA + DATA) as u32;
        let fill = [0x5110_000e, 63, 0, 1 << 16 | 16, at, 0, 0, 0xabcd, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(bench.batch(&[&lri(0x3b8, set)[..], &fill, &[MI_SET_PREDICATE]].concat()), Outcome::Complete);
        assert_eq!(bench.get(DATA), if set == 0 { 0xabcd } else { 0 });
    }
}

#[test]
fn the_global_predicate_is_sticky() {
    proves!(
        V8_141,
        "a predicate set in a batch also applies in the ring. It is saved in the image and persists over context \
        switches until it is cleared by a register write or by MI_SET_PREDICATE, which is always executed (trap T3)"
    );
    for by_command in [true, false] {
        let mut bench = EngineBench::new(EngineClass::VideoDecode);
        let context = bench.context(0);
        let marks = |bench: &EngineBench| [0, 4, 8].map(|n| bench.get(DATA + n));
        bench.write(BATCH, &[&lri(0x3b8, 1)[..], &store(VA + DATA, 1), &[END]].concat());
        bench.emit(context, &start(VA + BATCH));
        bench.emit(context, &store(VA + DATA + 4, 1));
        // A wait is also skipped.
        bench.emit(context, &wait(4, VA + DATA + 0x40, 7));
        assert_eq!((bench.submit(context), marks(&bench)), (Outcome::Complete, [0, 0, 0]));
        assert_eq!(bench.get(context.image(0xcb)), 1, "saved with the context");
        let other = bench.context(1);
        bench.emit(other, &store(VA + DATA + 8, 1));
        assert_eq!((bench.submit(other), marks(&bench)), (Outcome::Complete, [0, 0, 1]), "other contexts unaffected");
        bench.emit(context, &store(VA + DATA, 1));
        if by_command {
            bench.emit(context, &[MI_SET_PREDICATE]);
        } else {
            bench.engine.load(&bench.gt, context.load());
            bench.run();
            bench.put(context.image(0xcb), 0);
        }
        bench.emit(context, &store(VA + DATA + 4, 1));
        assert_eq!((bench.submit(context), marks(&bench)), (Outcome::Complete, [0, 1, 1]));
    }
}

#[test]
fn workaround_batches_are_not_predicated() {
    proves!(V8_141, "predication applies to rings and batches, not to workaround batches of a restore");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    bench.emit(context, &lri(0x3b8, 1));
    assert_eq!(bench.submit(context), Outcome::Complete);
    let batch = context.at + 0x6000;
    bench.write(batch, &[MI_STORE_DATA_IMM | GGTT | 2, DATA as u32, 0, 7, END]);
    bench.put(context.image(0x13), batch as u32 | 1);
    bench.emit(context, &store(VA + DATA + 4, 7));
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!((bench.get(DATA), bench.get(DATA + 4)), (7, 0));
}

#[test]
fn i915_recovers_from_a_stray_predicate() {
    proves!(V8_141, "i915 clears a stray predicate with a batch. Otherwise the ring would be skipped (contract G.5)");
    for stray in [false, true] {
        let mut bench = EngineBench::new(EngineClass::Render);
        let context = bench.context(0);
        let page = (context.at + 0x6000) as u32;
        let repair = u64::from(page) + 0x800;
        bench.write(
            repair,
            &[0x1040_0002, page + 0xff8, 0, 0, 0x0500_8000, 0x0080_0000, 0x1040_0002, page + 0xff8, 0, 1, END],
        );
        bench.write(BATCH, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x3b8, u32::from(stray), END]);
        bench.emit(context, &[MI_ARB_ON_OFF | 1, MI_LOAD_REGISTER_MEM | GGTT | CS_MMIO | 2, 0x3b8, page + 0xff8, 0]);
        bench.emit(context, &[0x1880_0101, (VA + BATCH) as u32, 0, 0x1880_0001, repair as u32, 0, 0x0400_0000]);
        bench.emit(context, &store(VA + DATA, 1));
        assert_eq!(bench.submit(context), Outcome::Complete);
        assert_eq!(bench.get(DATA), 1, "the ring continues");
        assert_eq!(bench.get(u64::from(page) + 0xff8), u32::from(stray));
    }
}

#[test]
fn set_predicate_sources() {
    proves!([V8_106, V8_142], "sources of MI_SET_PREDICATE, each tested separately");
    let cases: [(u32, u32, bool); 14] = [
        (0, 0, true),
        (1, 0, false),
        (2, 0, true),
        (3, 0, false),
        (4, 0, true),
        (5, 0, false),
        (6, 0, true),
        (1, 1, true),
        (2, 1, false),
        (3, 1, true),
        (4, 1, false),
        (5, 1, true),
        (6, 1, false),
        (15, 1, false),
    ];
    for (enable, result, executed) in cases {
        let mut bench = EngineBench::new(EngineClass::Compute);
        // All other sources have the opposite value.
        let source = |first: u32| if matches!(enable.wrapping_sub(first), 0 | 1) { result } else { result ^ 1 };
        let mut batch = vec![0x1108_0005, 0x3bc, source(1), 0x418, source(3), 0x41c, source(5), 0x0080_0000 | enable];
        batch.extend(store(VA + DATA, 1));
        batch.push(MI_SET_PREDICATE);
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        assert_eq!(bench.get(DATA) == 1, executed, "enable {enable} result {result}");
    }
}

#[test]
fn predicate_operations() {
    proves!(V8_114, "load, combine and compare operations of MI_PREDICATE (iVB-150)");
    for (sources, data) in [((5u32, 5u32), 0u32), ((7, 5), 2), ((7, 5), 3)] {
        let delta = sources.0.wrapping_sub(sources.1);
        for present in [false, true] {
            for combine in 0..4u32 {
                for load in [2u32, 3] {
                    for compare in 0..4u32 {
                        let compared = [true, false, delta == 0, delta == data][compare as usize];
                        let combined = match combine {
                            0 => compared,
                            1 => present & compared,
                            2 => present | compared,
                            _ => present ^ compared,
                        };
                        let mut bench = EngineBench::new(EngineClass::Render);
                        let batch = [
                            MI_LOAD_REGISTER_IMM | CS_MMIO | 7,
                            0x400,
                            sources.0,
                            0x408,
                            sources.1,
                            0x410,
                            data,
                            0x418,
                            u32::from(present),
                            MI_PREDICATE | load << 6 | combine << 3 | compare,
                        ];
                        assert_eq!(bench.batch(&batch), Outcome::Complete);
                        let expected = combined ^ (load == 3);
                        assert_eq!(bench.own(0x418), u32::from(expected), "{load} {combine} {compare} {present}");
                        if compare == 2 {
                            assert_eq!(bench.own(0x410), delta);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn set_predicate_by_partition() {
    proves!(
        V8_106,
        "MI_SET_PREDICATE also tests the workload partition ID masked by PREDICATION_MASK. Either condition is \
        sufficient"
    );
    proves!(V8_142, "the results are writable by MMIO and by commands");
    for (partition, mask, zero) in [(5, 2, true), (5, 4, false), (0, u32::MAX, true), (0x10, 0xfff0, false)] {
        for (enable, sets) in [(0 << 4, false), (1 << 4, zero), (2 << 4, !zero), (3 << 4, false), (2 << 4 | 2, true)] {
            let mut bench = EngineBench::new(EngineClass::Compute);
            bench.gt.write(bench.base() + 0x3bc, 1);
            let batch = [&lri(0x21c, partition)[..], &lri(0x1fc, mask), &[MI_SET_PREDICATE | enable]].concat();
            assert_eq!(bench.batch(&batch), Outcome::Complete);
            let seen = bench.gt.read(bench.base() + 0x3b8) == 1;
            assert_eq!(seen, sets, "{partition:#x} {mask:#x} {enable:#x}");
        }
    }
}

#[test]
fn predicate_results_belong_to_engine_or_context() {
    proves!(
        [V8_142, V8_144],
        "MI_PREDICATE_RESULT_2 is engine state, the other three results are context state. Every engine has \
        RESULT_1, RESULT_2 and MI_SET_PREDICATE_RESULT. Render and compute engines also have MI_PREDICATE_RESULT \
        and the registers of V8-144 (trap T21)"
    );
    for class in EngineClass::BY_GUC {
        let mut bench = EngineBench::new(class);
        let (first, second) = (bench.context(0), bench.context(1));
        let computes = matches!(class, EngineClass::Render | EngineClass::Compute);
        let mut registers = vec![0x3bc, 0x41c];
        if computes {
            registers.extend([0x418, 0x400, 0x404, 0x408, 0x40c, 0x410, 0x414]);
        }
        let write: Vec<u32> = registers.iter().flat_map(|register| lri(*register, 1)).collect();
        bench.write(BATCH, &[&write[..], &[END]].concat());
        bench.emit(first, &start(VA + BATCH));
        assert_eq!(bench.submit(first), Outcome::Complete);
        let read: Vec<u32> = (0..)
            .zip(&registers)
            .flat_map(|(n, register)| [MI_STORE_REGISTER_MEM | CS_MMIO | 2, *register, (VA + DATA) as u32 + 4 * n, 0])
            .collect();
        for (context, others) in [(second, 0), (first, 1)] {
            bench.emit(context, &read);
            assert_eq!(bench.submit(context), Outcome::Complete);
            for (n, register) in registers.iter().enumerate() {
                let expected = if *register == 0x3bc { 1 } else { others };
                assert_eq!(bench.get(DATA + 4 * n as u64), expected, "{class:?} {register:#x}");
            }
        }
        assert_eq!(bench.gt.registers.decode(bench.base() + 0x3bc).unwrap().register.name, "MI_PREDICATE_RESULT_2");
    }
}

#[test]
fn predicates_of_memory() {
    proves!(
        V8_144,
        "MI_LOAD_REGISTER_MEM loads the sources from memory. All 64 bits are compared, and SRCS_EQUAL writes the \
        difference to the data register"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    let at = (VA + DATA) as u32;
    bench.put64(DATA, 7 << 32 | 5);
    bench.put64(DATA + 8, 6 << 32 | 5);
    let sources: Vec<u32> =
        (0..4).flat_map(|n| [MI_LOAD_REGISTER_MEM | CS_MMIO | 2, 0x400 + 4 * n, at + 4 * n, 0]).collect();
    assert_eq!(bench.batch(&[&sources[..], &[MI_PREDICATE | 0x82]].concat()), Outcome::Complete);
    assert_eq!((bench.own(0x418), bench.own(0x410), bench.own(0x414)), (0, 0, 1), "only the low dwords are equal");
    bench.put64(DATA, 8 << 32 | 5);
    bench.put64(DATA + 8, 7 << 32 | 5);
    assert_eq!(bench.batch(&[&sources[..], &[MI_PREDICATE | 0x83]].concat()), Outcome::Complete);
    assert_eq!(bench.own(0x418), 0, "the data register is clear in a new context");
    let same = [&sources[..], &lri(0x410, 0), &lri(0x414, 1), &[MI_PREDICATE | 0x83]].concat();
    assert_eq!(bench.batch(&same), Outcome::Complete);
    assert_eq!(bench.own(0x418), 1, "the same difference");
    assert_eq!(bench.batch(&[&lri(0x418, 1)[..], &[MI_PREDICATE | 0x41]].concat()), Outcome::Complete);
    assert_eq!(bench.own(0x418), 1, "load operation 1 keeps the result");
}

#[test]
fn partitions_have_their_places() {
    proves!(
        [V8_126, V8_130, V8_122, V8_137, V8_120, V8_133],
        "commands add WPARID times CS_MI_ADDRESS_OFFSET to their address if they enable it (IGT: i915_crc.c indexes \
        a table with it)"
    );
    let at = (VA + DATA) as u32;
    for (partition, offset) in [(0u32, 0x100u32), (1, 0x40), (3, 0x40)] {
        let mut bench = EngineBench::new(EngineClass::Render);
        let place = DATA + u64::from(partition * offset);
        let there = [&lri(0x21c, partition)[..], &lri(0x3b4, offset)].concat();
        bench.put(place + 0x18, 0x99);
        let batch = [
            &there[..],
            &[MI_LOAD_REGISTER_MEM | CS_MMIO | 1 << 16 | 2, 0x600, at + 0x18, 0],
            &[MI_STORE_REGISTER_MEM | CS_MMIO | 1 << 16 | 2, 0x600, at, 0],
            &[MI_STORE_DATA_IMM | 1 << 11 | 2, at + 4, 0, 0x77],
            &[0x7a00_4004, 0x4000, at + 8, 0, 0x66, 0],
            &[MI_ATOMIC | ATOMIC_INC << 8 | 1, at + 0x10 + 1, 0],
            &[0x0e04_c003, 1, at + 0x10, 0, 0],
        ];
        assert_eq!(bench.batch(&batch.concat()), Outcome::Complete);
        let seen = [0, 4, 8, 0x10].map(|n| bench.get(place + n));
        assert_eq!(seen, [0x99, 0x77, 0x66, 1], "{partition} {offset:#x}");
    }
}
