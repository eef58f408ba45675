// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Register accesses by commands, for four requester levels and all commands that write or read registers.

use super::*;
use crate::engine::whitelist::Wanted;
use crate::generation::XE_HPG;
use crate::registers::{Kind, Scope};
use crate::topology::Classes;
use arctic_fidelity::proves;

/// Requester: function and location of the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requester {
    PfRing,
    PfBatch,
    VfRing,
    VfBatch,
}

const REQUESTERS: [Requester; 4] = [Requester::PfRing, Requester::PfBatch, Requester::VfRing, Requester::VfBatch];
const VF: Function = Function::new(7).unwrap();
/// Address of the dword that loads read, and address of a dword that never has the expected value of the wait.
const VALUE: u64 = DATA + 0x40;
const NEVER: u64 = DATA + 0x80;

/// Runs commands followed by a wait, which keeps the context loaded.
fn run(bench: &mut EngineBench, requester: Requester, commands: &[u32]) {
    let vf = matches!(requester, Requester::VfRing | Requester::VfBatch);
    bench.give(if vf { VF } else { Function::PF });
    bench.put(NEVER, 0);
    let mut commands = commands.to_vec();
    commands.extend(wait(4, VA + NEVER, 0xdead));
    let context = bench.context(0);
    match requester {
        Requester::PfRing | Requester::VfRing => bench.emit(context, &commands),
        Requester::PfBatch | Requester::VfBatch => {
            bench.write(BATCH, &commands);
            bench.emit(context, &start(VA + BATCH));
        }
    }
    assert_eq!(bench.submit(context), Outcome::Waiting, "{requester:?}");
}

/// Returns all commands that write `value` to a register, with their names.
fn writers(bench: &EngineBench, register: u32, value: u32) -> Vec<(&'static str, Vec<u32>)> {
    bench.put(VALUE, value);
    let address = (VA + VALUE) as u32;
    vec![
        ("MI_LOAD_REGISTER_IMM", vec![MI_LOAD_REGISTER_IMM | 1, register, value]),
        // With one byte write disabled, which requires a read.
        ("MI_LOAD_REGISTER_IMM, bytes", vec![MI_LOAD_REGISTER_IMM | 0x8 << 8 | 1, register, value]),
        ("MI_LOAD_REGISTER_MEM", vec![MI_LOAD_REGISTER_MEM | 2, register, address, 0]),
        ("MI_LOAD_REGISTER_REG", vec![0x1108_0001, 0x608, value, 0x1504_0001, 0x608, register]),
        ("PIPE_CONTROL", vec![PIPE_CONTROL | 4, PIPE_REGISTER | PIPE_WRITE, register, 0, value, 0]),
    ]
}

#[test]
fn four_levels_of_requesters() {
    proves!(
        [V13_006, V13_052, V13_053, V13_054, V13_060, V13_077, V13_078, V13_079, V13_080],
        "write permission per register and requester, for each command that can write registers. Columns: PF ring, \
        PF batch, VF ring, VF batch (trap 7)"
    );
    let slots = [
        (0x24d0, 0x224c),           // SEMA_WAIT_POLL, for users
        (0x24d4, 0x223c | 1 << 31), // RING_IDLEDLY, for VF drivers
        (0x24d8, 0x2b00),           // OACONTROL, for users
        (0x24dc, 0x2b00 | 1 << 31),
    ];
    let targets: [(u32, &str, [bool; 4]); 19] = [
        (0x2600, "CS_GPR: whitelisted, context state", [true, true, true, true]),
        (0x2304, "STATISTICS: whitelisted, context state, outside the engine's block", [true, true, true, true]),
        (0x2150, "BB_START_ADDR: context state, not whitelisted", [true, false, true, false]),
        (0x6604, "FF_MODE2: context state, not whitelisted", [true, false, true, false]),
        (0x224c, "slot for users, not context state", [true, true, false, false]),
        (0x223c, "slot for VF drivers", [true, false, true, false]),
        (0x2b00, "OACONTROL", [true, false, false, false]),
        (0x2080, "RING_HWS_PGA", [true, false, false, false]),
        (0x2098, "RING_HWSTAM", [true, false, false, false]),
        (0x20a8, "RING_IMR", [true, false, false, false]),
        (0x20b4, "RING_EMR", [true, false, false, false]),
        (0x229c, "GFX_MODE", [true, false, false, false]),
        (0x2510, "RING_EXECLIST_SQ_CONTENTS", [true, false, false, false]),
        (0x24f0, "RING_FORCE_TO_NONPRIV", [true, false, false, false]),
        (0x2_2608, "CS_GPR of another engine", [true, false, false, false]),
        (0xcf28, "memory interface", [true, false, false, false]),
        (0xcf58, "LMEM_CFG", [true, false, false, false]),
        (0xa210, "POWERGATE_ENABLE", [true, false, false, false]),
        (0x4580, "TRTT of a compute engine", [true, false, false, false]),
    ];
    for (register, name, permitted) in targets {
        for (requester, permitted) in REQUESTERS.into_iter().zip(permitted) {
            for way in 0..5 {
                let mut bench = EngineBench::new(EngineClass::Render);
                for (slot, value) in slots {
                    bench.gt.registers.set(slot, value);
                }
                let value = 0x0011_0011;
                let (command, words) = writers(&bench, register, value).swap_remove(way);
                // The value of the register while a context of the function is loaded.
                run(&mut bench, requester, &[]);
                let before = bench.gt.read(register);
                bench.engine.reset(&bench.gt);
                run(&mut bench, requester, &words);
                let changed = bench.gt.read(register) != before;
                assert_eq!(changed, permitted, "{name} by {command} of {requester:?}");
                let refused = bench.engine.counters().register_refusals != 0;
                assert_eq!(refused, !permitted, "{name} by {command} of {requester:?}");
            }
        }
    }
}

#[test]
fn loads_from_the_global_space() {
    proves!(V13_054, "a load from the GGTT is dropped in a non-privileged batch and executed for a driver");
    for (requester, loaded) in REQUESTERS.into_iter().zip([true, false, true, false]) {
        let mut bench = EngineBench::new(EngineClass::Copy);
        bench.put(VALUE, 0x77);
        run(&mut bench, requester, &[MI_LOAD_REGISTER_MEM | GGTT | CS_MMIO | 2, 0x600, VALUE as u32, 0]);
        assert_eq!(bench.own(0x600) == 0x77, loaded, "{requester:?}");
    }
}

#[test]
fn commands_with_several_registers() {
    proves!(
        V13_052,
        "in a non-privileged batch, one denied register turns the whole command into a MI_NOOP. In a VF's ring, \
        only that register is skipped (trap T35)"
    );
    for (requester, first) in REQUESTERS.into_iter().zip([5, 0, 5, 0]) {
        let mut bench = EngineBench::new(EngineClass::Copy);
        let base = bench.base();
        run(&mut bench, requester, &[MI_LOAD_REGISTER_IMM | 5, base + 0x600, 5, base + 0x98, 7, base + 0x608, 5]);
        assert_eq!((bench.own(0x600), bench.own(0x608)), (first, first), "{requester:?}");
        assert_eq!(bench.own(0x98), if requester == Requester::PfRing { 7 } else { 0xffff_ffff }, "{requester:?}");
    }
}

#[test]
fn slots_keep_their_value_over_switches_and_rc6() {
    proves!(
        V13_078,
        "the slots belong to the engine. They are not changed by context switches or VFs (trap 8), and keep their \
        value over RC6"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let base = bench.base();
    let slots = (0..12).map(|n| base + 0x4d0 + 4 * n).chain((0..4).map(|n| base + 0x10 + 4 * n));
    let slots: Vec<u32> = slots.chain((0..4).map(|n| base + 0x1d0 + 4 * n)).collect();
    for slot in &slots {
        bench.gt.registers.set(*slot, 0x1_0000 | 1 << 30);
    }
    for requester in REQUESTERS {
        for slot in &slots {
            let commands =
                if requester == Requester::PfRing { [0; 3] } else { [MI_LOAD_REGISTER_IMM | 1, *slot, 0x2_2098] };
            run(&mut bench, requester, &commands);
            bench.engine.reset(&bench.gt);
        }
    }
    bench.gt.permit_rc6(true);
    assert!(bench.gt.residency.asleep());
    bench.gt.permit_rc6(false);
    assert!(slots.iter().all(|slot| bench.gt.registers.value(*slot) == 0x1_0000 | 1 << 30));
    // Each of the twenty slots permits accesses of non-privileged batches to its register range.
    for slot in &slots {
        bench.gt.registers.set(*slot, (base + 0x2c0) | 2);
        run(&mut bench, Requester::PfBatch, &[MI_LOAD_REGISTER_IMM | 3, base + 0x2c0, 3, base + 0x2e8, 4]);
        assert_eq!((bench.own(0x2e8), bench.own(0x2c0)), (4, 3), "slot at {slot:#x}");
        bench.engine.reset(&bench.gt);
        bench.gt.registers.set(base + 0x2e8, 0);
        bench.gt.registers.set(*slot, 0);
    }
}

#[test]
fn writable_registers_are_state_of_the_context() {
    proves!(
        [V13_052, V13_077, V8_142, V8_190],
        "whitelisted writable registers are context state and therefore private to the context (IGT: \
        gem_ctx_isolation). This includes the registers of OAR and OAC, and OACTXCONTROL, which drivers expect in the image \
        (i915: i915_perf.c). MI_PREDICATE_RESULT_2 and NOPID, which belong to the engine, are excepted (V8-142, V8-190)"
    );
    let bench = EngineBench::new(EngineClass::Copy);
    for engine in XE_HPG.engines.all() {
        let writable = bench.gt.registers.listing().filter(|(offset, found)| {
            let plain = matches!(found.register.kind, Kind::Storage(_) | Kind::Masked);
            plain
                && found.engine.is_none_or(|at| at == engine)
                && bench.gt.registers.whitelist(engine).permits(*offset, Wanted::Write)
        });
        for (offset, found) in writable {
            let name = found.register.name;
            let expected = !["MI_PREDICATE_RESULT_2", "RING_NOPID"].contains(&name);
            let kept = found.register.scope.kept_by(XE_HPG.engines.info(engine));
            assert_eq!(kept, expected, "{} {offset:#x} {name}", XE_HPG.engines.info(engine).name);
        }
    }
    assert!(
        Scope::Context(Classes::COPY).kept_by(XE_HPG.engines.info(XE_HPG.engines.find(EngineClass::Copy, 0).unwrap()))
    );
}

#[test]
fn vf_commands_cannot_trigger_card_actions() {
    proves!(
        [V13_128, V13_006],
        "a VF cannot reset an engine or trigger other card actions by commands. By MMIO, these registers are not \
        accessible to it"
    );
    let orders = [0x20d0, 0x941c, 0x19_01f0, 0xc314, 0xced8, 0x10_1010, 0x13_8124, 0x19_0008, 0x19_0018, 0xa188];
    for register in orders {
        for requester in [Requester::VfRing, Requester::VfBatch, Requester::PfBatch] {
            for way in 0..5 {
                let mut bench = EngineBench::new(EngineClass::Render);
                let before = bench.gt.registers.value(register);
                let (command, words) = writers(&bench, register, 0x0001_0001).swap_remove(way);
                run(&mut bench, requester, &words);
                let counters = bench.engine.counters();
                assert_eq!((counters.register_refusals, counters.dropped_requests), (1, 0), "{register:#x} {command}");
                assert_eq!(bench.gt.registers.value(register), before, "{register:#x} {command} of {requester:?}");
                assert!(bench.engine.loaded().is_some());
            }
        }
    }
}

#[test]
fn register_commands_do_not_use_the_steering_of_mmio() {
    proves!(
        V13_142,
        "register reads by commands are steered by the streamer's steering register, base + 0xcc, independently of \
        the host's selector. Writes are multicast to all instances. Host accesses use the host's selector (xe: \
        xe_gt.c, emit_wa_job)"
    );
    const SAMPLER_MODE: u32 = 0xe18c;
    const SELECTIVE: u32 = 1 << 30;
    let at = (VA + DATA) as u32;
    for class in [EngineClass::Render, EngineClass::Compute, EngineClass::Copy] {
        let mut bench = EngineBench::new(class);
        bench.gt.write(SAMPLER_MODE, 0x0001_0001);
        // The host selects an instance that does not exist.
        bench.gt.write(0xfdc, 4 << 24);
        let instances = [(7 << 23 | 3 << 16, 1), (4 << 16, 0), (8 << 23, 0), (0x10 << 23, 0), (0x10 << 16, 0)];
        let all = instances.map(|(select, seen)| (SELECTIVE | select, seen));
        for (select, seen) in all.into_iter().chain([(0, 1), (4 << 16, 1)]) {
            bench.put(DATA, 0x55);
            let steer = [MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0xcc, select];
            let commands = [&steer[..], &[MI_STORE_REGISTER_MEM | 2, SAMPLER_MODE, at, 0]].concat();
            assert_eq!(bench.ring(&commands), Outcome::Complete);
            assert_eq!(bench.get(DATA), seen, "{class:?} {select:#x}");
            assert_eq!(bench.gt.read(SAMPLER_MODE), 0, "host read");
        }
        let write = [0x1108_0001, 0xcc, SELECTIVE | 4 << 16, 0x1100_0001, SAMPLER_MODE, 0x0002_0002];
        assert_eq!(bench.ring(&write), Outcome::Complete);
        bench.gt.write(0xfdc, 0);
        assert_eq!(bench.gt.read(SAMPLER_MODE), 3);
    }
}
