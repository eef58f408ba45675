// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Register isolation between functions.

use arctic_fidelity::proves;
use proptest::prelude::*;

use super::*;
use crate::host::ALL_FUNCTIONS;
use crate::registers::{Kind, Scope};

const VF: Function = Function::new(3).unwrap();

/// Returns all modelled registers with their values, except registers that show the running context.
fn values(bench: &EngineBench) -> Vec<(u32, u32)> {
    let shown = |found: &crate::registers::Decoded| {
        found.register.scope == Scope::Position || matches!(found.register.name, "PDP" | "RING_IPEHR")
    };
    let all = bench.gt.registers.listing().filter(|(_, found)| !shown(found));
    let all = all.map(|(offset, _)| (offset, bench.gt.registers.value(offset)));
    all.chain([(0xcf58, bench.gt.memory.lmem_cfg())]).collect()
}

/// Returns one MI_LOAD_REGISTER_IMM per modelled register, with the value given for its offset.
fn write_all(bench: &EngineBench, value: impl Fn(u32) -> u32) -> Vec<u32> {
    let offsets: Vec<u32> = bench.gt.registers.listing().map(|(offset, _)| offset).collect();
    offsets.iter().flat_map(|offset| [MI_LOAD_REGISTER_IMM | 1, *offset, value(*offset)]).collect()
}

/// Runs the commands in a batch of `bench`'s function, in the GGTT if `privileged`, otherwise in the PPGTT.
fn submit_long(bench: &mut EngineBench, commands: &[u32], privileged: bool) -> Outcome {
    const LONG: u64 = 0x80_0000;
    bench.write(LONG, commands);
    bench.put(LONG + 4 * commands.len() as u64, END);
    let context = bench.context(0);
    let start = if privileged { [MI_BATCH_BUFFER_START | 1, LONG as u32, 0] } else { start(VA + LONG) };
    bench.emit(context, &start);
    bench.submit(context)
}

#[test]
fn a_virtual_function_leaves_nothing_in_registers() {
    proves!(
        [V13_006, V13_052, V13_080, V13_128],
        "a VF writes every register. After its context is unloaded, all registers have their previous values"
    );
    for class in EngineClass::BY_GUC {
        for privileged in [true, false] {
            for value in [u32::MAX, 0, 0x0001_0001] {
                let mut bench = EngineBench::of_vf(class, VF.number());
                let before = values(&bench);
                let commands = write_all(&bench, |_| value);
                assert_eq!(submit_long(&mut bench, &commands, privileged), Outcome::Complete);
                assert_eq!(values(&bench), before, "{class:?} privileged {privileged}");
                assert_eq!(bench.engine.counters().dropped_requests, 0);
                assert_eq!(bench.msis.take(), []);
            }
        }
    }
}

#[test]
fn a_virtual_function_reads_nothing_of_others() {
    proves!(
        V13_080,
        "a VF cannot read register values of other functions, set by MMIO or by earlier contexts, except values \
        common to all functions"
    );
    const SECRET: u32 = 0x5ec2_e700;
    const OUT: u64 = 0x60_0000;
    for class in EngineClass::BY_GUC {
        for privileged in [true, false] {
            let mut bench = EngineBench::of_vf(class, VF.number());
            let readable = |found: &crate::registers::Decoded| {
                found.register.scope != Scope::Common && !matches!(found.register.kind, Kind::Live(_))
            };
            let offsets: Vec<u32> =
                bench.gt.registers.listing().filter(|(_, found)| readable(found)).map(|(offset, _)| offset).collect();
            let commands: Vec<u32> = offsets
                .iter()
                .enumerate()
                .flat_map(|(n, offset)| [MI_STORE_REGISTER_MEM | 2, *offset, (VA + OUT) as u32 + 4 * n as u32, 0])
                .collect();
            for offset in &offsets {
                bench.gt.registers.set_all(*offset, SECRET | offset & 0xff);
            }
            assert_eq!(submit_long(&mut bench, &commands, privileged), Outcome::Complete);
            for (n, offset) in offsets.iter().enumerate() {
                let seen = bench.get(OUT + 4 * n as u64);
                assert_ne!(seen & !0xff, SECRET, "{class:?} privileged {privileged}: {offset:#x}");
            }
        }
    }
}

#[test]
fn context_registers_are_not_visible_to_other_functions() {
    proves!(
        [V13_040, V13_043, V8_145],
        "register values of a context (GPRs, predicates, parser position, timestamps, report pointers) are restored \
        when it resumes, and are not visible to contexts of other functions"
    );
    for class in EngineClass::BY_GUC {
        let mut bench = EngineBench::of_vf(class, VF.number());
        let base = bench.base();
        let (mine, others) = (bench.context(0), bench.context(1));
        let kept: Vec<u32> = bench
            .gt
            .context_layout(bench.engine.id())
            .kept
            .iter()
            .map(|kept| kept.register)
            .filter(|register| !XE_HPG.contexts.in_ring_context(register.wrapping_sub(base)))
            // Excluded: the watchdog, which would start, predicates, which would skip later commands, and IPEHR, which
            // is not writable by software.
            .filter(|register| ![0x178, 0x3b4, 0x3b8, 0x21c, 0x68].contains(&register.wrapping_sub(base)))
            .collect();
        let write: Vec<u32> = kept.iter().flat_map(|register| [0x1100_0001, *register, 0x0077_0077]).collect();
        bench.emit(mine, &write);
        bench.emit(mine, &[MI_STORE_DATA_IMM | 2, (VA + DATA) as u32, 0, 1]);
        assert_eq!(bench.submit(mine), Outcome::Complete);
        let read = |bench: &mut EngineBench, context: Context| -> Vec<u32> {
            let commands: Vec<u32> = (0..)
                .zip(&kept)
                .flat_map(|(n, register)| [MI_STORE_REGISTER_MEM | 2, *register, (VA + DATA) as u32 + 4 * n, 0])
                .collect();
            bench.emit(context, &commands);
            assert_eq!(bench.submit(context), Outcome::Complete);
            (0..kept.len() as u64).map(|n| bench.get(DATA + 4 * n)).collect()
        };
        for requester in [Function::PF, Function::new(4).unwrap()] {
            bench.give(requester);
            let seen = read(&mut bench, others);
            assert!(seen.iter().all(|value| *value != 0x0077_0077 && *value != 0x77), "{class:?} {requester:?}");
        }
        bench.give(VF);
        let seen = read(&mut bench, mine);
        assert!(seen.iter().all(|value| value & 0xff == 0x77), "{class:?}: {seen:x?}");
    }
}

/// Two addresses that the LMTTs of two functions map differently: frames 2 and 3 are exchanged.
const SEEN: u64 = 0x40_0000;
const ELSEWHERE: u64 = 0x60_0000;

#[test]
fn no_translation_outlives_a_switch_of_functions() {
    proves!(
        [V13_041, V13_043],
        "contexts of two functions alternate on an engine. The same address in the same page tables is always \
        translated through the LMTT of the context's function, without an explicit invalidation"
    );
    let other = Function::new(4).unwrap();
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    let contexts = [(VF, bench.context(0), SEEN), (other, bench.context(1), ELSEWHERE)];
    bench.put(LMTT + 4 * u64::from(other.number()), ((LMTT + 0x2_0000) >> 16 << 4) as u32 | 1);
    for frame in 0..LOCAL as u64 >> 21 {
        let behind = if frame == 2 || frame == 3 { frame ^ 1 } else { frame };
        bench.put(LMTT + 0x2_0000 + 4 * frame, (behind << 5) as u32 | 1);
    }
    bench.gt.memory.set_quota(other, LOCAL as u64);
    for page in 0..16 {
        let at = contexts[1].1.at + page * 0x1000;
        bench.gt.memory.ggtt().set_entry(at >> 12, GgttEntry::from(at | u64::from(other.number()) << 2 | 3));
    }
    bench.gt.memory.invalidate(ALL_FUNCTIONS);
    for round in 1..5u32 {
        for (n, (function, context, at)) in (1..).zip(contexts) {
            bench.function = function;
            bench.emit(context, &[MI_STORE_DATA_IMM | 2, (VA + SEEN) as u32, 0, round << 8 | n]);
            assert_eq!(bench.submit(context), Outcome::Complete);
            assert_eq!(bench.get(at), round << 8 | n, "{function:?}");
        }
        assert_eq!([SEEN, ELSEWHERE].map(|at| bench.get(at)), [round << 8 | 1, round << 8 | 2]);
    }
}

#[test]
fn page_directories_belong_to_contexts() {
    proves!(
        V13_040,
        "the page directory is state of the running context: a context of the PF and one of a VF alternate on an \
        engine, and the same address is always translated by the tables of the context"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let other = ROOT + 0x1_0000;
    bench.put64(other, other + 0x1003);
    bench.put64(other + 0x1000 + 8, other + 0x2003);
    bench.put64(other + 0x2000 + (SEEN >> 21) * 8, ELSEWHERE | 0x883);
    let contexts = [(Function::PF, bench.context(0), SEEN), (VF, bench.context(1), ELSEWHERE)];
    bench.put(contexts[1].1.image(0x33), other as u32);
    for round in 1..4 {
        for (n, (function, context, at)) in (1..).zip(contexts) {
            bench.give(function);
            bench.emit(context, &store(VA + SEEN, round << 8 | n));
            assert_eq!(bench.submit(context), Outcome::Complete);
            assert_eq!(bench.get(at), round << 8 | n, "{function:?}");
        }
        assert_eq!([SEEN, ELSEWHERE].map(|at| bench.get(at)), [round << 8 | 1, round << 8 | 2]);
    }
}

#[test]
fn no_translation_outlives_a_context_or_a_reset() {
    proves!(
        [V13_041, V13_122],
        "translations do not become stale over a context switch or an engine reset. A page that was remapped while \
        the context was not loaded is accessed at its new address"
    );
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    let context = bench.context(0);
    let entry = ROOT + 0x2000 + (SEEN >> 21) * 8;
    let mut value = 0;
    for reset in [false, true, false] {
        for place in [SEEN, ELSEWHERE] {
            bench.put64(entry, place | 0x883);
            value += 1;
            let store = [MI_STORE_DATA_IMM | 2, (VA + SEEN) as u32, 0, value];
            let wait = [MI_SEMAPHORE_WAIT | SEMAPHORE_POLL | 4 << 12 | 3, 1, (VA + DATA) as u32, 0, 0];
            let commands: Vec<u32> = store.into_iter().chain(wait.into_iter().filter(|_| reset)).collect();
            bench.write(BATCH, &commands);
            bench.put(BATCH + 4 * commands.len() as u64, END);
            bench.put(DATA, 0);
            bench.emit(context, &start(VA + BATCH));
            if reset {
                assert_eq!(bench.submit(context), Outcome::Waiting);
                bench.engine.reset(&bench.gt);
                // Skips the wait at the next submission.
                bench.put(context.image(0x05), bench.get(context.image(0x07)));
            } else {
                assert_eq!(bench.submit(context), Outcome::Complete);
            }
            assert_eq!(bench.get(place), value, "reset {reset}");
        }
    }
}

#[test]
fn no_lmtt_translation_outlives_a_context() {
    proves!(
        [V13_111, V13_041],
        "a change of the LMTT takes effect when a context starts, without an invalidation by the PF, for another \
        context of the VF as well as for the same one"
    );
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    let contexts = [bench.context(0), bench.context(1)];
    let entry = LMTT + 0x1_0000 + 4 * (SEEN >> 21);
    for (round, context) in (1..).zip([contexts[0], contexts[0], contexts[1], contexts[1], contexts[0]]) {
        for place in [SEEN, ELSEWHERE] {
            let value = round << 8 | (place >> 21) as u32;
            bench.put(entry, (place >> 21 << 5) as u32 | 1);
            bench.emit(context, &store(VA + SEEN, value));
            assert_eq!(bench.submit(context), Outcome::Complete);
            assert_eq!(bench.get(place), value, "round {round}");
        }
    }
}

#[test]
fn image_changes_registers_of_its_context_only() {
    proves!(
        [V8_043, V8_046, V13_052],
        "a VF's image that loads every register of the card by absolute, relative and remapped offsets changes only \
        registers of its context"
    );
    for class in EngineClass::BY_GUC {
        let mut bench = EngineBench::of_vf(class, VF.number());
        let context = bench.context(0);
        assert_eq!(bench.submit(context), Outcome::Complete);
        let before = values(&bench);
        let all: Vec<u32> = bench.gt.registers.listing().map(|(offset, _)| offset).collect();
        let base = bench.base();
        for flags in [0, 1 << 17, 1 << 19] {
            let most = ((bench.gt.context_layout(bench.engine.id()).template.len() - 0x63) / 2).min(120);
            for registers in all.chunks(most) {
                // This value does not set the valid bit of a batch or the length of the indirect batch.
                let load = registers.iter().flat_map(|at| [*at, 0x0f70_0f40]);
                let of_class =
                    registers.iter().all(|at| bench.gt.generation.engines.takes_relative(bench.engine.id(), *at));
                if flags == 1 << 19 && !of_class {
                    continue;
                }
                let header = MI_LOAD_REGISTER_IMM | flags | (2 * registers.len() as u32 - 1);
                bench.put(context.image(0x60), 0);
                let image: Vec<u32> = [header].into_iter().chain(load).chain([MI_BATCH_BUFFER_END | 1]).collect();
                bench.write(context.image(0x61), &image);
                assert_eq!(bench.submit(context), Outcome::Complete, "{class:?} {:#x}", registers[0]);
                let kept = bench.get(context.image(0x83));
                if flags == 0 {
                    let own = registers.contains(&(base + 0x41c));
                    assert_eq!(kept, if own { 0x0f70_0f40 } else { 0 }, "{class:?} {:#x}", registers[0]);
                }
                assert!(values(&bench) == before, "{class:?} {:#x}", registers[0]);
            }
        }
        assert!(bench.engine.counters().register_refusals > 1000);
    }
}

#[test]
fn positions_are_the_running_contexts() {
    proves!(V8_065, "the position registers show the running context from its first command");
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    let (mine, others) = (bench.context(0), bench.context(1));
    bench.write(BATCH, &[MI_SEMAPHORE_WAIT | SEMAPHORE_POLL | 4 << 12 | 3, 1, (VA + DATA) as u32, 0, 0]);
    bench.emit(mine, &start(VA + BATCH));
    assert_eq!(bench.submit(mine), Outcome::Waiting);
    bench.engine.reset(&bench.gt);
    bench.give(Function::new(4).unwrap());
    let shown = [0x30, 0x34, 0x38, 0x5c, 0x74, 0x140, 0x168, 0x240];
    let read = (0..).zip(shown).flat_map(|(n, offset)| store_register(offset, VA + DATA + 0x40 + 4 * n));
    let read: Vec<u32> = read.collect();
    bench.emit(others, &read);
    let ring = others.at as u32;
    assert_eq!(bench.submit(others), Outcome::Complete);
    let seen: Vec<u32> = (0..8).map(|n| bench.get(DATA + 0x40 + 4 * n)).collect();
    assert_eq!(seen, [4 * 32, 0, ring, 0, ring, 0, 0, others.pphwsp() as u32 | 0x119]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 16 } else { 100 }))]

    #[test]
    fn hostile_images_affect_only_their_context(
        class in prop::sample::select(EngineClass::BY_GUC.to_vec()),
        image in prop::collection::vec(any::<u32>(), 0x200),
        valid in any::<bool>(),
    ) {
        proves!([V8_043, V13_052], "arbitrary contents of a VF's image affect only its context");
        let mut bench = EngineBench::of_vf(class, VF.number());
        let before = values(&bench);
        let context = bench.context(0);
        let kept: Vec<u32> = (0..0x60).map(|dword| bench.get(context.image(dword))).collect();
        bench.write(context.image(0), &image);
        if valid {
            // The ring context remains valid, so the context runs.
            bench.write(context.image(0), &kept);
            bench.put(context.image(0x03), 0);
            bench.emit(context, &store(VA + DATA, 1));
        }
        bench.engine.load(&bench.gt, Load { function: VF, ..context.load() });
        for _ in 0..10 {
            bench.engine.step(&bench.gt, 200);
        }
        bench.engine.reset(&bench.gt);
        prop_assert_eq!(values(&bench), before);
    }
}

#[test]
fn global_registers_have_a_copy_per_function() {
    proves!(
        [V8_142, V8_190, V13_052],
        "all contexts of a function share MI_PREDICATE_RESULT_2 and NOPID on an engine. Each function has a \
        separate copy, which is cleared by a reset of the function and not affected by other functions (trap T21)"
    );
    const WRITTEN: [(Function, u32); 3] = [(Function::PF, 0x11), (VF, 0x33), (Function::new(4).unwrap(), 0x44)];
    let write = |value| [MI_LOAD_REGISTER_IMM | 1, 0x3bc, value, 0, 0x0040_0000 | value, 0];
    for class in EngineClass::BY_GUC {
        let mut bench = EngineBench::new(class);
        let base = bench.base();
        let run = |bench: &mut EngineBench, function, number, commands: &[u32]| {
            bench.give(function);
            let context = bench.context(number);
            bench.emit(context, commands);
            assert_eq!(bench.submit(context), Outcome::Complete);
        };
        let absolute = |mut commands: [u32; 6]| {
            commands[1] += base;
            commands
        };
        let seen = |bench: &mut EngineBench, function| {
            let stores = [0x1200_0002, base + 0x3bc, (VA + DATA) as u32, 0, 0x1200_0002, base + 0x94];
            let stores = [&stores[..], &[(VA + DATA) as u32 + 4, 0]].concat();
            run(bench, function, 1, &stores);
            [bench.get(DATA), bench.get(DATA + 4)]
        };
        for (function, value) in WRITTEN {
            assert_eq!(seen(&mut bench, function), [0, 0], "{class:?} {function:?}: value of another function");
            run(&mut bench, function, 0, &absolute(write(value)));
        }
        assert_eq!(bench.own(0x3bc), 0x11, "the PF's values while no context is loaded");
        for (function, value) in WRITTEN {
            assert_eq!(seen(&mut bench, function), [value; 2], "{class:?} {function:?}");
        }
        bench.gt.vf(VF).unwrap().reset();
        assert_eq!(seen(&mut bench, VF), [0, 0]);
        assert_eq!(seen(&mut bench, Function::new(4).unwrap()), [0x44; 2]);
    }
}

/// The exchanged registers are exactly the registers with power context scope in the register table.
#[test]
fn the_exchanged_registers_are_the_tables() {
    let table = crate::registers::XE_HPG_REGISTERS.engine.iter().filter(|register| register.scope == Scope::Power);
    assert!(table.map(|register| register.offset).eq(GLOBALS));
}
