// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Errors, interrupts and status pages: ESR, EMR, EIR, HWSTAM, HWS_PGA, page faults, and interrupt vectors of all
//! engines.

use super::*;
use crate::engine::error;
use crate::generation::XE_HPG;
use crate::gt::SideEffect;
use crate::interrupts::{
    CONTEXT_SWITCH, CS_ERROR, FLUSH_COMPLETE, L3_PARITY, PAGE_FAULT, SEMAPHORE_WAIT, USER_INTERRUPT, WATCHDOG,
};
use arctic_fidelity::proves;

const VF: Function = Function::new(3).unwrap();
/// MI_ARB_ON_OFF, which is not permitted in non-privileged batches.
const PRIVILEGED: u32 = MI_ARB_ON_OFF | 1;
/// A command that no engine implements.
const ILLEGAL: u32 = 0x0f80_0000;
/// Two global status pages.
const PAGE: u64 = 0x38_0000;
const OTHER_PAGE: u64 = 0x39_7000;
const CANARY: u32 = 0xdead_beef;

/// Runs commands in a non-privileged batch and unloads the context regardless of the outcome.
fn batch(bench: &mut EngineBench, commands: &[u32]) {
    bench.batch(commands);
    bench.engine.reset(&bench.gt);
}

/// Writes an engine register by MMIO, including its side effects.
fn write(bench: &EngineBench, register: u32, value: u32) {
    match bench.gt.write(bench.base() + register, value) {
        Some(SideEffect::EngineStatus(engine)) => {
            let (views, mut tlb) = (bench.gt.memory.step_views(engine), Tlb::default());
            bench.gt.report_error_bit(&mut bench.gt.memory.gam(Function::PF, &views, &mut tlb), engine);
        }
        other => assert_eq!(other, None),
    }
}

/// Returns MI_FLUSH_DW or PIPE_CONTROL with notification.
fn flush(class: EngineClass) -> Vec<u32> {
    match class {
        EngineClass::Render => vec![PIPE_CONTROL | 4, 0x100, 0, 0, 0, 0],
        _ => vec![MI_FLUSH_DW | FLUSH_NOTIFY | 2, 0, 0, 0],
    }
}

#[test]
fn masked_errors_set_the_status_alone() {
    proves!(
        V8_089,
        "an error masked by EMR appears only in ESR. Unmasking it in EMR sets EIR and the error bit of the \
        interrupt status. Writing 1 to EIR clears both (contract G.7)"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let engine = bench.engine.id();
    bench.listen(Function::PF);
    assert_eq!((bench.own(reg::EMR), bench.own(reg::EIR), bench.own(reg::ESR)), (u32::MAX, 0, 0), "initial values");
    batch(&mut bench, &[PRIVILEGED]);
    assert_eq!((bench.own(reg::ESR), bench.own(reg::EIR), bench.msis.take()), (error::PRIVILEGE, 0, vec![]));
    write(&bench, reg::EMR, !error::INSTRUCTION);
    assert_eq!((bench.own(reg::EIR), bench.msis.take()), (0, vec![]), "still masked");
    write(&bench, reg::EMR, !error::PRIVILEGE);
    assert_eq!((bench.own(reg::EIR), bench.msis.take()), (error::PRIVILEGE, vec![Function::PF]));
    assert_eq!(bench.take_identity(Function::PF, engine), Some((3, 0, CS_ERROR)));
    // The error bit is not raised again while EIR contains an error.
    batch(&mut bench, &[PRIVILEGED]);
    assert_eq!((bench.msis.take(), bench.take_identity(Function::PF, engine)), (vec![], None));
    write(&bench, reg::EIR, error::INSTRUCTION);
    assert_eq!(bench.own(reg::EIR), error::PRIVILEGE, "EIR: writing 1 to another bit has no effect");
    write(&bench, reg::EIR, error::PRIVILEGE);
    assert_eq!((bench.own(reg::ESR), bench.own(reg::EIR)), (0, 0));
    batch(&mut bench, &[PRIVILEGED]);
    assert_eq!(bench.take_identity(Function::PF, engine), Some((3, 0, CS_ERROR)));
    // All recoverable errors are cleared as by i915 (enable_error_interrupt).
    write(&bench, reg::EMR, u32::MAX);
    write(&bench, reg::EIR, u32::MAX);
    assert_eq!((bench.own(reg::ESR), bench.own(reg::EIR)), (0, 0));
    write(&bench, reg::EMR, 0);
    assert_eq!(bench.own(reg::EMR), !error::MASKABLE, "unimplemented bits read 1 (IVB-093)");
}

#[test]
fn unrecoverable_errors_stay_until_reset() {
    proves!(V8_089, "only an engine reset clears an instruction error. ESR is read-only");
    let mut bench = EngineBench::new(EngineClass::Render);
    write(&bench, reg::EMR, !error::INSTRUCTION);
    batch(&mut bench, &[PRIVILEGED, ILLEGAL]);
    let both = error::INSTRUCTION | error::PRIVILEGE;
    assert_eq!((bench.own(reg::ESR), bench.own(reg::EIR)), (both, error::INSTRUCTION));
    write(&bench, reg::ESR, u32::MAX);
    assert_eq!(bench.own(reg::ESR), both);
    write(&bench, reg::EIR, u32::MAX);
    assert_eq!((bench.own(reg::ESR), bench.own(reg::EIR)), (error::INSTRUCTION, error::INSTRUCTION));
    bench.gt.registers.reset_engine(bench.engine.id());
    assert_eq!((bench.own(reg::ESR), bench.own(reg::EIR), bench.own(reg::EMR)), (0, 0, u32::MAX));
}

#[test]
fn every_engine_has_its_errors() {
    proves!(
        [V8_090, V8_170],
        "on every engine a privilege violation sets bit 2 and execution continues, and an instruction error sets \
        bit 0 and halts the context. Other engines do not report the error. Commands in a ring do not cause \
        privilege violations"
    );
    for engine in XE_HPG.engines.all() {
        let mut bench = EngineBench::on(engine);
        bench.listen(Function::PF);
        bench.gt.mask_errors(engine, 0);
        assert_eq!(bench.ring(&[PRIVILEGED, 0]), Outcome::Complete);
        assert_eq!((bench.own(reg::ESR), bench.msis.take()), (0, vec![]));
        bench.put(DATA, 0);
        let mut commands = vec![PRIVILEGED];
        commands.extend(store(VA + DATA, 7));
        assert_eq!(bench.batch(&commands), Outcome::Complete);
        assert_eq!(
            (bench.own(reg::ESR), bench.own(reg::EIR), bench.get(DATA)),
            (4, 4, 7),
            "{}",
            XE_HPG.engines.info(engine).name
        );
        let info = XE_HPG.engines.info(engine);
        assert_eq!(bench.take_identity(Function::PF, engine), Some((info.class as u8, info.instance, CS_ERROR)));
        assert!(matches!(bench.batch(&[ILLEGAL]), Outcome::Halted(Halt::IllegalCommand { .. })));
        assert_eq!(bench.own(reg::EIR), 5);
        for other in XE_HPG.engines.all().filter(|other| *other != engine) {
            let base = XE_HPG.engines.info(other).mmio_base;
            assert_eq!([reg::EIR, reg::ESR].map(|offset| bench.gt.registers.value(base + offset)), [0, 0]);
        }
    }
}

#[test]
fn vf_errors_are_not_reported_to_the_pf() {
    proves!(
        [V8_089, V13_075, V13_080],
        "error registers and HWSTAM belong to the PF. Errors in a VF's batches are not recorded or reported there, \
        and none of its events is written to a status page"
    );
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    bench.listen(VF);
    bench.listen(Function::PF);
    bench.gt.mask_errors(bench.engine.id(), 0);
    bench.gt.registers.set(bench.base() + reg::HWSTAM, 0);
    bench.gt.registers.set(bench.base() + reg::HWS_PGA, PAGE as u32);
    bench.put(PAGE, CANARY);
    bench.batch(&[PRIVILEGED, MI_USER_INTERRUPT, ILLEGAL]);
    assert_eq!((bench.own(reg::ESR), bench.own(reg::EIR), bench.get(PAGE)), (0, 0, CANARY));
    assert_eq!(bench.take_identity(VF, bench.engine.id()), Some((3, 0, USER_INTERRUPT)));
}

#[test]
fn each_cause_is_a_bit_of_the_engines_vector() {
    proves!(
        [V8_086, V8_091, V8_166],
        "each event on each engine sets its bit in the engine's interrupt vector, with class and instance. Nothing \
        in the model causes the render engine's L3 parity error; its event has bit 5"
    );
    for engine in XE_HPG.engines.all() {
        let info = XE_HPG.engines.info(engine);
        let watchdog = [&[MI_LOAD_REGISTER_IMM | CS_MMIO | 3, 0x17c, 5, 0x178, 0][..], &wait(4, VA + DATA, 1)].concat();
        let causes: [(Vec<u32>, u16, u32); 5] = [
            (vec![MI_USER_INTERRUPT], USER_INTERRUPT, 0),
            (vec![PRIVILEGED], CS_ERROR, 3),
            (flush(info.class), FLUSH_COMPLETE, 4),
            (watchdog, WATCHDOG, 6),
            (store(VA - 4096, 1).to_vec(), PAGE_FAULT, 7),
        ];
        for (commands, event, bit) in causes {
            assert_eq!(event, 1 << bit);
            let mut bench = EngineBench::on(engine);
            bench.listen(Function::PF);
            bench.gt.mask_errors(engine, 0);
            bench.gt.write(info.mmio_base + reg::GFX_MODE, 0x0008_0008);
            bench.put(DATA, 0);
            bench.batch(&commands);
            bench.clock.advance(XE_HPG.timebase.nanoseconds(6));
            bench.engine.step(&bench.gt, 10);
            let name = format!("{} bit {bit}", info.name);
            let (class, instance, events) = bench.take_identity(Function::PF, engine).unwrap();
            // The wait in which the watchdog expires is also reported.
            let events = if event == WATCHDOG { events & !SEMAPHORE_WAIT } else { events };
            assert_eq!((class, instance, events), (info.class as u8, info.instance, event), "{name}");
            assert!(XE_HPG.engines.all().all(|other| bench.take_identity(Function::PF, other).is_none()), "{name}");
        }
        let bench = EngineBench::on(engine);
        bench.listen(Function::PF);
        bench.gt.interrupts.raise_engine(engine, CONTEXT_SWITCH);
        assert_eq!(bench.take_identity(Function::PF, engine), Some((info.class as u8, info.instance, 1 << 8)));
    }
    let bench = EngineBench::new(EngineClass::Render);
    bench.listen(Function::PF);
    bench.gt.interrupts.raise_engine(bench.engine.id(), L3_PARITY);
    assert_eq!((bench.take_identity(Function::PF, bench.engine.id()), L3_PARITY), (Some((0, 0, 1 << 5)), 1 << 5));
}

#[test]
fn hardware_status_writes() {
    proves!(
        V8_087,
        "with one bit of HWSTAM clear at a time, only events 0, 3 and 4 write the status page. Only the error bit \
        is written as 1, while the error is active (trap T25)"
    );
    for open in 0..16 {
        for event in 0..16 {
            let bench = EngineBench::new(EngineClass::Copy);
            bench.gt.registers.set(bench.base() + reg::HWSTAM, !(1 << open));
            bench.gt.registers.set(bench.base() + reg::HWS_PGA, PAGE as u32);
            bench.put(PAGE, CANARY);
            let (views, mut tlb) = (bench.gt.memory.views(), Tlb::default());
            let mut gam = bench.gt.memory.gam(Function::PF, &views, &mut tlb);
            bench.gt.write_status(&mut gam, bench.engine.id(), 1 << event).unwrap();
            let writes = open == event && [0, 3, 4].contains(&event);
            assert_eq!(bench.get(PAGE), if writes { 0 } else { CANARY }, "HWSTAM {open}, event {event}");
        }
    }
    let unmasked = |events: u16| {
        let bench = EngineBench::new(EngineClass::Copy);
        bench.listen(Function::PF);
        bench.gt.mask_errors(bench.engine.id(), !error::PRIVILEGE);
        bench.gt.registers.set(bench.base() + reg::HWSTAM, !u32::from(events));
        bench.gt.registers.set(bench.base() + reg::HWS_PGA, PAGE as u32);
        bench.put(PAGE, CANARY);
        bench
    };
    for (commands, event) in [(vec![MI_USER_INTERRUPT], USER_INTERRUPT), (flush(EngineClass::Copy), FLUSH_COMPLETE)] {
        let mut bench = unmasked(event);
        bench.batch(&commands);
        assert_eq!(bench.get(PAGE), 0);
        // Other events also write the bit of an active error, unless it is masked.
        for (events, status) in [(event, 0), (event | CS_ERROR, u32::from(CS_ERROR))] {
            let mut bench = unmasked(events);
            bench.batch(&[&[PRIVILEGED][..], &commands].concat());
            assert_eq!(bench.get(PAGE), status);
        }
    }
    let mut bench = unmasked(CS_ERROR);
    bench.batch(&[MI_USER_INTERRUPT, PRIVILEGED]);
    assert_eq!((bench.get(PAGE), bench.get(PAGE + 4)), (u32::from(CS_ERROR), 0));
    write(&bench, reg::EIR, error::INSTRUCTION);
    assert_eq!(bench.get(PAGE), u32::from(CS_ERROR), "not cleared yet");
    write(&bench, reg::EIR, error::PRIVILEGE);
    assert_eq!(bench.get(PAGE), 0, "cleared together with the error");
}

#[test]
fn reports_move_with_the_status_page() {
    proves!(V8_085, "all reports are written to the page that HWS_PGA specifies at the time");
    for class in EngineClass::BY_GUC {
        let mut reports = vec![(vec![MI_STORE_DATA_INDEX | 1, 0x240, 7], 0x240u64), (vec![MI_USER_INTERRUPT], 0)];
        if class != EngineClass::Render {
            reports.push((vec![MI_FLUSH_DW | FLUSH_INDEX | FLUSH_WRITE | 2, 0x248 | 4, 0, 7], 0x248));
        }
        if matches!(class, EngineClass::Render | EngineClass::Compute) {
            reports.push((vec![PIPE_CONTROL | 4, 0x0120_4000, 0x250, 0, 7, 0], 0x250));
        }
        for (commands, offset) in reports {
            let mut bench = EngineBench::new(class);
            bench.gt.registers.set(bench.base() + reg::HWSTAM, !u32::from(USER_INTERRUPT));
            let expected = if offset == 0 { 0 } else { 7 };
            for (page, before) in [(PAGE, OTHER_PAGE), (OTHER_PAGE, PAGE)] {
                // The page is naturally aligned, so the low bits are not implemented.
                bench.gt.write(bench.base() + reg::HWS_PGA, page as u32 | 0xabc);
                assert_eq!(bench.own(reg::HWS_PGA), page as u32);
                [page, before].into_iter().for_each(|page| bench.put(page + offset, CANARY));
                assert_eq!(bench.ring(&commands), Outcome::Complete);
                assert_eq!((bench.get(page + offset), bench.get(before + offset)), (expected, CANARY), "{class:?}");
            }
        }
    }
}

#[test]
fn page_faults_pass_the_mask_in_repair_mode() {
    proves!(
        V8_088,
        "page faults are subject to the interrupt mask, except in contexts with fault repair. A fault at a GGTT \
        address is not reported as a page fault (trap T24)"
    );
    let unmapped = store(VA - 4096, 1);
    for (handling, seen) in [(0u64, false), (1, true), (2, true), (3, true)] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        let engine = bench.engine.id();
        bench.listen(Function::PF);
        bench.gt.write(0x19_00a0, u32::MAX);
        let context = bench.context(0);
        bench.emit(context, &[MI_USER_INTERRUPT, 0, unmapped[0], unmapped[1], unmapped[2], unmapped[3]]);
        let load = context.load();
        bench.engine.load(&bench.gt, Load { descriptor: load.descriptor | handling << 6, ..load });
        assert!(matches!(bench.run(), Outcome::Halted(Halt::Fault(_))));
        assert_eq!(bench.msis.take().len(), usize::from(seen), "{handling}");
        let event = seen.then_some((3, 0, PAGE_FAULT));
        assert_eq!(
            (bench.take_identity(Function::PF, engine), bench.take_identity(Function::PF, engine)),
            (event, None),
            "{handling}"
        );
        bench.gt.write(0x19_00a0, 0);
        let held = USER_INTERRUPT | if seen { 0 } else { PAGE_FAULT };
        assert_eq!(bench.take_identity(Function::PF, engine), Some((3, 0, held)), "other events stay masked");
    }
    let mut bench = EngineBench::new(EngineClass::Copy);
    bench.listen(Function::PF);
    assert!(matches!(bench.ring(&[MI_STORE_DATA_IMM | GGTT | 2, 0xf000_0000, 0, 1]), Outcome::Halted(Halt::Fault(_))));
    assert_eq!(bench.take_identity(Function::PF, bench.engine.id()), None);
}
