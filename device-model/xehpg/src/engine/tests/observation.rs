// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Counters of contexts (OAR, OAC), MI_REPORT_PERF_COUNT, and reports of OAG that engines request.

use arctic_fidelity::proves;

use super::*;
use crate::oa::format::reason;

/// The OA buffer in local memory, and its GGTT address.
const STREAM: u64 = 0x50_0000;
const AT: u64 = VA + DATA;

const OACTXCONTROL: u32 = 0x360;
/// Masked: OAR and OAC are kept with the context.
const KEEP: u32 = 1 << 24 | 1 << 8;

impl EngineBench {
    /// Enables OAG with a buffer of 128 KiB.
    fn observe(&self, debug: u32) {
        let base = STREAM as u32;
        for (register, value) in [(0xdaf8, debug), (0xdb00, base), (0xdb08, base | 1), (0xdb04, base), (0x2b28, 1)] {
            self.gt.write(register, value);
        }
        self.gt.write(0xdaf4, 5 << 2 | 1);
    }

    /// Reasons, sources and contexts of the reports in the buffer.
    fn stream(&self) -> Vec<(u8, u32, u32)> {
        let reports = (STREAM..u64::from(self.gt.read(0xdb04))).step_by(256);
        reports.map(|at| ((self.get(at) >> 19 & 0x7f) as u8, self.get(at) >> 26, self.get(at + 8))).collect()
    }

    /// A report of MI_REPORT_PERF_COUNT at `n` times 512 bytes in the data.
    fn snapshot(&self, n: u64, dwords: u64) -> Vec<u32> {
        (0..dwords).map(|dword| self.get(DATA + 512 * n + 4 * dword)).collect()
    }

    fn load_with(&mut self, context: Context, high: u32) -> Outcome {
        let load = context.load();
        let descriptor = load.descriptor | u64::from(high) << 32;
        self.engine.load(&self.gt, Load { function: self.function, descriptor, ..load });
        self.run()
    }
}

/// LRI of a register at an absolute offset.
fn write(register: u32, value: u32) -> [u32; 3] {
    mi::load_register_imm(Reg::Mmio(register), value)
}

fn own(register: u32, value: u32) -> [u32; 3] {
    mi::load_register_imm(Reg::Own(register), value)
}

/// MI_REPORT_PERF_COUNT to place `n`.
fn snapshot(n: u64) -> [u32; 4] {
    [MI_REPORT_PERF_COUNT | 2, (AT + 512 * n) as u32, 0, 0x100 + n as u32]
}

/// Commands that wait until the test has set the clock: a semaphore on a dword of the data.
fn pause(n: u64) -> [u32; 5] {
    super::wait(1, VA + DATA + 0x8000 + 4 * n, 1)
}

#[test]
fn a_report_has_the_contexts_id_clock_and_ticks() {
    proves!(
        [V13_211, V13_229],
        "the report has the id of the command, the timestamp of the unit, the high dword of the descriptor and render clocks"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    bench.clock.advance(625_000);
    (0..0x48).for_each(|n| bench.put(DATA + 4 * n, 0x5555_5555));
    let context = bench.context(0);
    // i915 compares the id with what this register shows.
    let status = mi::store_register_mem(Reg::Own(0x238), Process(AT + 0x1000));
    bench.emit(context, &[&snapshot(0)[..], &status].concat());
    assert_eq!(bench.load_with(context, 0x00ab_c000), Outcome::Complete);
    let report = bench.snapshot(0, 65);
    assert_eq!(report[..4], [0x100, 24_000, 0x00ab_c000, bench.gt.actual_ratio() * 50 * 625 / 3]);
    assert!(report[4..64].iter().all(|dword| *dword == 0), "OAR is off");
    assert_eq!((report[64], bench.get(DATA + 0x1000)), (0x5555_5555, 0x00ab_c000));
}

/// Restore and save are counted too, and are the same for each context but the first.
#[test]
fn single_dwords_of_commands_are_counted() {
    proves!(V13_246, "A36 and A37 have each dword that commands read from and write to device memory");
    let mut bench = EngineBench::new(EngineClass::Render);
    bench.observe(0);
    bench.gt.write(0x8718, 3 << 29);
    let mut counted = |number: u64, commands: &[u32]| {
        let counters = |bench: &EngineBench| [0xdb20, 0xdb28].map(|register| bench.gt.read(register));
        let before = counters(&bench);
        let context = bench.context(number);
        bench.emit(context, commands);
        assert_eq!(bench.load_with(context, 0), Outcome::Complete);
        let after = counters(&bench);
        [after[0] - before[0], after[1] - before[1]]
    };
    let stores: Vec<u32> = (0..512).flat_map(|n| mi::store_data_imm(Process(AT + 4 * n), 1)).collect();
    let loads: Vec<u32> = (0..512).flat_map(|n| mi::load_register_mem(Reg::Own(0x600), Process(AT + 4 * n))).collect();
    let commands = [(0, &[][..]), (1, &stores[..]), (2, &loads[..]), (3, &[])];
    let [_, stores, loads, others] = commands.map(|(number, commands)| counted(number, commands));
    // Units of 128 bytes: 512 commands of 16 bytes, which are read, and their dwords.
    for (found, expected) in [(stores, [64, 16]), (loads, [64 + 16, 0])] {
        let differences = [0, 1].map(|n: usize| found[n].abs_diff(others[n] + expected[n]));
        assert!(differences.iter().all(|difference| *difference <= 1), "{found:?} {others:?}");
    }
}

#[test]
fn oar_counts_the_time_of_its_context() {
    proves!(
        [V13_214, V13_217],
        "with OAR_OACONTROL and the context's OACTXCONTROL, A0 advances with the context's time, without OAG; with one of them \
        cleared it stands"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    let context = bench.context(0);
    let parts: [&[u32]; 13] = [
        &write(0x2960, 5 << 1 | 1),
        &pause(0),
        &snapshot(0),
        &own(OACTXCONTROL, 1),
        &pause(1),
        &snapshot(1),
        &own(OACTXCONTROL, 0),
        &pause(2),
        &snapshot(2),
        &own(OACTXCONTROL, 1),
        &write(0x2960, 5 << 1),
        &pause(3),
        &snapshot(3),
    ];
    bench.emit(context, &parts.concat());
    bench.engine.load(&bench.gt, context.load());
    for n in 0..4 {
        assert_eq!(bench.run(), Outcome::Waiting);
        bench.clock.advance(7_500);
        bench.put(DATA + 0x8000 + 4 * n, 1);
    }
    assert_eq!(bench.run(), Outcome::Complete);
    let clocks = bench.gt.actual_ratio() * 125;
    let a0 = [0, 1, 2, 3].map(|n| bench.snapshot(n, 5)[4]);
    assert_eq!(a0, [0, clocks, clocks, 0], "the last one has no counters");
    assert!(!bench.gt.observation.active(), "nobody counts any more");
    assert_eq!(bench.gt.read(0xd980), 0, "OAG is off");
}

#[test]
fn counters_are_kept_with_the_context() {
    proves!(
        [V13_217, V13_218],
        "with bit 8 of the context control, counters are saved and restored with the context, of a VF too; without it they begin \
        at 0. No context has those of another"
    );
    for (vf, class) in [(0, EngineClass::Render), (0, EngineClass::Compute), (1, EngineClass::Render)] {
        for keeps in [true, false] {
            let mut bench = EngineBench::new(class);
            bench.give(Function::new(vf).unwrap());
            let control = if class == EngineClass::Render { write(0x2960, 11) } else { write(0x1_5114, 5) };
            let setup = [&control[..], &own(OACTXCONTROL, 1), &pause(0)].concat();
            let context = bench.context(0);
            bench.emit(context, &setup);
            if keeps {
                let value = bench.get(context.image(3));
                bench.put(context.image(3), value | KEEP);
            }
            bench.engine.load(&bench.gt, Load { function: bench.function, ..context.load() });
            assert_eq!(bench.run(), Outcome::Waiting);
            bench.clock.advance(7_500);
            bench.put(DATA + 0x8000, 1);
            assert_eq!(bench.run(), Outcome::Complete);
            // Another context has its own, and does not count.
            let other = bench.context(1);
            bench.emit(other, &snapshot(0));
            bench.clock.advance(7_500);
            assert_eq!(bench.submit(other), Outcome::Complete);
            assert!(bench.snapshot(0, 64)[4..].iter().all(|dword| *dword == 0));
            bench.emit(context, &snapshot(1));
            assert_eq!(bench.submit(context), Outcome::Complete);
            let clocks = if keeps { bench.gt.actual_ratio() * 125 } else { 0 };
            let a0 = if class == EngineClass::Render { 4 } else { 8 };
            assert_eq!(bench.snapshot(1, 64)[a0], clocks, "{class:?} {vf} {keeps}");
            assert_eq!(bench.snapshot(1, 64)[0], 0x101);
        }
    }
}

#[test]
fn oac_is_of_the_selected_engine() {
    proves!(
        [V13_231, V13_238],
        "OAC counts for the compute engine that OAG_OACONTROL selects; its reports have 288 or 192 bytes and the engine's number"
    );
    for (instance, counts) in [(2, true), (1, false)] {
        for (select, ticks) in [(1, 6), (2, 6)] {
            let mut bench = EngineBench::on(XE_HPG.engines.find(EngineClass::Compute, instance).unwrap());
            bench.gt.write(0xdaf4, 2 << 16);
            let context = bench.context(0);
            let setup =
                [&write(0x1_5114, select << 1 | 1)[..], &own(OACTXCONTROL, 1), &pause(0), &snapshot(0)].concat();
            bench.emit(context, &setup);
            bench.engine.load(&bench.gt, context.load());
            assert_eq!(bench.run(), Outcome::Waiting);
            bench.clock.advance(7_500);
            bench.put(DATA + 0x8000, 1);
            assert_eq!(bench.run(), Outcome::Complete);
            let clocks = bench.gt.actual_ratio() * 125;
            let report = bench.snapshot(0, 80);
            assert_eq!(report[..3], [0x100, u32::from(instance) << 4, 288]);
            assert_eq!((report[ticks], report[8]), (clocks, if counts { clocks } else { 0 }), "{instance} {select}");
        }
    }
}

/// Registers of OAC are those of the engine, although all have the same offsets.
#[test]
fn oac_registers_are_context_state() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let context = bench.context(0);
    bench.emit(context, &[&write(0x1_5114, 0x14)[..], &write(0x1_511c, 3), &write(0x1_51e0, 9)].concat());
    assert_eq!(bench.submit(context), Outcome::Complete);
    let read = |n: u64, register| mi::store_register_mem(Reg::Mmio(register), Process(AT + 4 * n));
    let reads = [read(0, 0x1_5114), read(1, 0x1_511c), read(2, 0x1_51e0)].concat();
    let other = bench.context(1);
    bench.emit(other, &reads);
    assert_eq!(bench.submit(other), Outcome::Complete);
    assert_eq!([0, 4, 8].map(|at| bench.get(DATA + at)), [0; 3]);
    bench.emit(context, &reads);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!([0, 4, 8].map(|at| bench.get(DATA + at)), [0x14, 3, 9]);
}

#[test]
fn a_context_switch_makes_a_report() {
    proves!(
        [V13_229, V13_232, V13_234, V13_241],
        "a restore on the render engine and its idleness make reports with reason 3: the id of the context switched to, valid, or \
        0. The report is in the buffer before the context's first command"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    bench.observe(0x0024_0024);
    let context = bench.context(0);
    bench.emit(context, &mi::store_register_mem(Reg::Mmio(0xdb04), Process(AT)));
    assert_eq!(bench.load_with(context, 0x0012_3400), Outcome::Complete);
    assert_eq!(u64::from(bench.get(DATA)), STREAM + 256);
    bench.gt.step_observation(u64::MAX);
    assert_eq!(bench.stream(), [(reason::SWITCH, 8, 0x0012_3400), (reason::SWITCH, 8, 0)]);
    assert_eq!([0, 256].map(|at| bench.get(STREAM + at) >> 16 & 1), [1, 0], "valid");
    // Bit 1 of OA_DEBUG.
    bench.gt.write(0xdaf8, 0x0002_0002);
    assert_eq!(bench.submit(context), Outcome::Complete);
    bench.gt.step_observation(u64::MAX);
    assert_eq!(bench.stream().len(), 2);
    // Other engines make none.
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.observe(0x0024_0024);
    let context = bench.context(0);
    assert_eq!(bench.submit(context), Outcome::Complete);
    bench.gt.step_observation(u64::MAX);
    assert!(bench.stream().is_empty());
}

/// The step of a VF's engine writes nothing to the PF's memory; the unit does it later.
#[test]
fn reports_of_a_vfs_contexts_are_written_by_the_unit() {
    proves!(V13_218, "context switches of a VF appear in the PF's buffer, with its number; a VF requests no report");
    let mut bench = EngineBench::new(EngineClass::Render);
    bench.observe(0x0024_0024);
    bench.give(Function::new(3).unwrap());
    for page in 0..32 {
        let at = STREAM + page * 4096;
        bench.gt.memory.ggtt().set_entry(at >> 12, GgttEntry::from(at | 3));
    }
    let context = bench.context(0);
    bench.emit(context, &[&write(0xdb1c, 7)[..], &write(0xdaf4, 0), &write(0x2b28, 0), &write(0xd940, 9)].concat());
    assert_eq!(bench.load_with(context, 0x0077_0000), Outcome::Complete);
    assert!(bench.stream().is_empty());
    bench.gt.step_observation(u64::MAX);
    assert_eq!(bench.stream(), [(reason::SWITCH, 8, 0x0077_0003), (reason::SWITCH, 8, 0)]);
    assert_eq!([0xdaf4, 0x2b28, 0xd940].map(|register| bench.gt.read(register)), [5 << 2 | 1, 1, 0]);
}

#[test]
fn commands_trigger_reports_at_once() {
    proves!(
        [V13_216, V13_234],
        "a command's write of OAG_MMIOTRIGGER has written its report when the next command reads the tail; the source is the engine"
    );
    for (class, source) in [(EngineClass::Render, 8), (EngineClass::Compute, 9), (EngineClass::Copy, 10)] {
        let mut bench = EngineBench::new(class);
        bench.observe(0x0026_0026);
        let context = bench.context(0);
        let tail = |n: u64| mi::store_register_mem(Reg::Mmio(0xdb04), Process(AT + 4 * n));
        bench.emit(context, &[&tail(0)[..], &write(0xdb1c, 0xa), &tail(1), &write(0xdb1c, 0xb), &tail(2)].concat());
        assert_eq!(bench.submit(context), Outcome::Complete);
        let tails = [0, 1, 2].map(|n| u64::from(bench.get(DATA + 4 * n)) - STREAM);
        assert_eq!(tails, [0, 256, 512]);
        assert_eq!(bench.stream(), [(reason::MMIO, source, 0xa), (reason::MMIO, source, 0xb)]);
        assert_eq!(bench.engine.counters().dropped_requests, 0);
    }
}

/// OA-007: what the slots of xe's whitelist permit in a user's batch, with a stream and without.
#[test]
fn users_reach_the_trigger_by_slots_only() {
    proves!(
        V13_216,
        "a non-privileged batch reaches OAG_MMIOTRIGGER and the pointers only through slots that the driver programs"
    );
    for (slots, reports, tail) in [(None, 0, true), (Some(1 << 30), 0, false), (Some(0), 1, true)] {
        let mut bench = EngineBench::new(EngineClass::Render);
        bench.observe(0x0026_0026);
        if let Some(deny) = slots {
            for (n, slot) in (0..).zip([0xdb1c, 0x1000_dafc, 0x1000_db01]) {
                bench.gt.write(0x24d0 + 4 * n, slot | deny);
            }
        }
        bench.put(DATA, 0x5555_5555);
        let read = |n: u64, register| mi::store_register_mem(Reg::Mmio(register), Process(AT + 4 * n));
        let batch = [&write(0xdb1c, 1)[..], &read(0, 0xdb04), &read(1, 0xda94)].concat();
        bench.gt.write(0xda94, 0);
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        assert_eq!(bench.stream().len(), reports);
        let seen = u64::from(bench.get(DATA));
        assert_eq!(seen, if tail { STREAM + 256 * reports as u64 } else { 0 }, "a denied read stores 0");
    }
}
