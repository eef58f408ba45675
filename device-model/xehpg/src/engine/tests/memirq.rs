// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory-based interrupts, and the separate interrupt registers of each function.

use super::*;
use crate::generation::XE_HPG;
use crate::interrupts::event::{self, EVENTS};
use crate::interrupts::{CONTEXT_SWITCH, CS_ERROR, FLUSH_COMPLETE, USER_INTERRUPT, memirq};
use crate::memory::Tlb;
use crate::registers::InterruptRegister;
use arctic_fidelity::proves;

const VF: Function = Function::new(12).unwrap();
/// Report page with the layout used by xe: status at +0, sources at +0x400, mask at +0x440 (contract C.3).
const PAGE: u64 = 0x3a_0000;

/// Writes the report pointers to a context's image like xe (xe: set_memory_based_intr).
fn report(bench: &EngineBench, context: Context, page: u64, enable: u32) {
    for (dword, value) in [
        (0x50, MI_LOAD_REGISTER_MEM | GGTT | CS_MMIO | 2),
        (0x51, 0xa8),
        (0x52, page as u32 + 0x440),
        (0x53, 0),
        (0x55, MI_LOAD_REGISTER_IMM | CS_MMIO | FORCE_POSTED | 3),
        (0x56, 0xac),
        (0x57, page as u32),
        (0x58, 0xa4),
        (0x59, page as u32 + 0x400),
    ] {
        bench.put(context.image(dword), value);
    }
    bench.put(page + 0x440, enable);
}

fn byte(bench: &EngineBench, at: u64) -> u8 {
    (bench.get(at & !3) >> (8 * (at & 3))) as u8
}

/// Returns the offsets of the nonzero bytes of the page.
fn set_bytes(bench: &EngineBench) -> Vec<u64> {
    let set: Vec<u64> = (0..0x440).filter(|at| byte(bench, PAGE + at) != 0).collect();
    assert!(set.iter().all(|at| byte(bench, PAGE + at) == 0xff), "contract C.3: the value is 0xff");
    set
}

#[test]
fn a_user_interrupt_writes_status_and_source() {
    proves!(
        [V13_273, V13_275],
        "the user interrupt of every engine writes its status byte and its source byte and sends an MSI to its \
        function. It is not reported in interrupt registers (contract C.3, K.1)"
    );
    let engines = [
        (EngineClass::Render, 0, 0),
        (EngineClass::Copy, 0, 15),
        (EngineClass::Compute, 2, 6),
        (EngineClass::VideoDecode, 2, 34),
        (EngineClass::VideoEnhance, 1, 62),
    ];
    for (class, instance, source) in engines {
        // User interrupts are reported even while the driver has disabled them in the mask.
        for enable in [1, 0] {
            let mut bench = EngineBench::of_vf(class, VF.number());
            bench.engine = Engine::new(&XE_HPG, XE_HPG.engines.find(class, instance).unwrap());
            let context = bench.context(0);
            report(&bench, context, PAGE, enable);
            bench.emit(context, &[MI_USER_INTERRUPT, 0]);
            assert_eq!(bench.submit(context), Outcome::Complete);
            assert_eq!(set_bytes(&bench), [source * 16, 0x400 + source], "{class:?}");
            assert_eq!(bench.msis.take(), [VF]);
            for function in [Function::PF, VF] {
                assert_eq!(bench.gt.interrupts_of(function).read(InterruptRegister::MasterTile, 0), 0);
            }
        }
    }
}

#[test]
fn bytes_are_written_before_the_msi() {
    proves!(V13_274, "the report is written before the MSI is sent, the status before the source");
    // The source page is not mapped: the status is written, the context faults, and no MSI is sent.
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    let context = bench.context(0);
    report(&bench, context, PAGE, 1);
    bench.put(context.image(0x59), 0xfff0_0000);
    bench.emit(context, &[MI_USER_INTERRUPT, 0]);
    assert!(matches!(bench.submit(context), Outcome::Halted(Halt::Fault(fault)) if fault.address == 0xfff0_000f));
    assert_eq!(set_bytes(&bench), [15 * 16]);
    assert_eq!(bench.msis.take(), []);
}

#[test]
fn each_event_has_a_status_byte() {
    proves!(
        [V13_275, V13_276],
        "each event has its own status byte. All except the user interrupt are reported only if unmasked (contract \
        C.3)"
    );
    for (enable, enabled) in [(0u32, false), (1 << 4, true), (1, false), (u32::MAX, true)] {
        let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
        let context = bench.context(0);
        report(&bench, context, PAGE, enable);
        bench.emit(context, &[MI_FLUSH_DW | FLUSH_NOTIFY | 2, 0, 0, 0]);
        assert_eq!(bench.submit(context), Outcome::Complete);
        let expected: &[u64] = if enabled { &[15 * 16 + 4, 0x400 + 15] } else { &[] };
        assert_eq!(set_bytes(&bench), expected, "mask {enable:#x}");
        assert_eq!(bench.msis.take().len(), usize::from(enabled));
    }
    let bits: Vec<u8> = EVENTS.iter().map(|event| event.bit).collect();
    assert_eq!(bits, [0, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15]);
    assert_eq!(event::of_class(EngineClass::Copy), 0x89d9);
    assert_eq!(event::of_class(EngineClass::Render), 0xfbf9);
    assert_eq!(event::of_class(EngineClass::Compute), 0xfbd9, "only the render engine has L3 parity (V8-086)");
    for bit in [USER_INTERRUPT, CS_ERROR, FLUSH_COMPLETE] {
        assert!(EngineClass::BY_GUC.iter().all(|class| event::of_class(*class) & bit != 0));
    }
}

#[test]
fn each_class_has_its_events() {
    proves!(
        [V13_275, V13_276],
        "of all sixteen events, an engine reports those of its class, event n in byte n: the document's table, except \
        that L3 parity is the render engine's alone"
    );
    let all = [0u64, 3, 4, 6, 7, 8, 11, 15];
    let render_and_compute = [9, 12, 13, 14];
    for class in EngineClass::BY_GUC {
        let bench = EngineBench::of_vf(class, VF.number());
        let engine = XE_HPG.engines.info(bench.engine.id());
        let (views, mut tlb) = (bench.gt.memory.views(), Tlb::default());
        let mut gam = bench.gt.memory.gam(VF, &views, &mut tlb);
        let report = memirq::Report { status: PAGE as u32, source: PAGE as u32 + 0x400, enable: u32::MAX };
        assert_eq!(report.write(&mut gam, engine, 0xffff), Ok(true));
        let mut events = all.to_vec();
        if matches!(class, EngineClass::Render | EngineClass::Compute) {
            events.extend(render_and_compute);
        }
        if class == EngineClass::Render {
            events.push(5);
        }
        events.sort_unstable();
        let source = memirq::source(engine);
        let bytes = events.iter().map(|event| 16 * source + event).chain([0x400 + source]);
        assert_eq!(set_bytes(&bench), bytes.collect::<Vec<_>>(), "{class:?}");
    }
}

#[test]
fn a_switch_is_reported_to_the_scheduler() {
    proves!(
        [V13_257, V13_272],
        "a host that schedules takes the context switches of its queues. Those of contexts that the GuC submitted are \
        not reported to the host, even if it enables them. The other events reach the host in both models"
    );
    for (submitter, events) in
        [(Submitter::Execlist, USER_INTERRUPT | CONTEXT_SWITCH), (Submitter::Guc, USER_INTERRUPT)]
    {
        let mut bench = EngineBench::new(EngineClass::Copy);
        for (at, value) in [(0x19_0030, u32::MAX), (0x19_00a0, 0), (0x19_0008, 1 << 31)] {
            bench.gt.write(at, value);
        }
        let context = bench.context(0);
        bench.emit(context, &[MI_USER_INTERRUPT, 0]);
        bench.engine.load(&bench.gt, Load { submitter, ..context.load() });
        assert_eq!(bench.run(), Outcome::Complete);
        bench.gt.write(0x19_0070, 1 << 15);
        assert_eq!(bench.gt.read(0x19_0060) & 0xffff, u32::from(events), "{submitter:?}");
    }
}

/// Contract C.3: a GuC interrupt writes the GuC's status byte and source byte.
#[test]
fn the_guc_writes_memory_interrupts() {
    let bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    let (views, mut tlb) = (bench.gt.memory.views(), Tlb::default());
    let mut gam = bench.gt.memory.gam(VF, &views, &mut tlb);
    memirq::write(&mut gam, PAGE + 25 * 16, PAGE + 0x400 + 25, 15).unwrap();
    assert_eq!(set_bytes(&bench), [25 * 16 + 15, 0x400 + 25]);
    assert!(memirq::write(&mut gam, u64::from(u32::MAX), PAGE, 15).is_err());
}

#[test]
fn report_pointers_belong_to_the_context() {
    proves!(
        V13_273,
        "the report pointers are part of the context image. A following context without pointers uses the interrupt \
        registers of its function. Invalid pointers halt only their context"
    );
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    let (with, without) = (bench.context(0), bench.context(1));
    report(&bench, with, PAGE, 1);
    bench.emit(with, &wait(4, VA + DATA, 1));
    assert_eq!(bench.submit(with), Outcome::Waiting);
    assert_eq!((bench.own(reg::INT_STATUS_RPT_PTR), bench.own(reg::INT_SRC_RPT_PTR)), (0x3a_0000, 0x3a_0400));
    bench.engine.reset(&bench.gt);
    assert_eq!((bench.own(reg::INT_STATUS_RPT_PTR), bench.own(reg::INT_SRC_RPT_PTR)), (0, 0));
    bench.emit(without, &[MI_USER_INTERRUPT, 0]);
    assert_eq!(bench.submit(without), Outcome::Complete);
    assert!(set_bytes(&bench).is_empty());
    for page in [0xfff0_0000, 0xffff_fff8] {
        let context = bench.context(2);
        report(&bench, context, PAGE, 1);
        bench.put(context.image(0x57), page);
        bench.emit(context, &[MI_USER_INTERRUPT, 0]);
        assert!(matches!(bench.submit(context), Outcome::Halted(Halt::Fault(_))));
        bench.engine.reset(&bench.gt);
        let mask = bench.context(3);
        report(&bench, mask, PAGE, 1);
        bench.put(mask.image(0x52), page);
        assert!(matches!(bench.submit(mask), Outcome::Halted(Halt::Fault(_))));
        bench.engine.reset(&bench.gt);
    }
    assert_eq!(bench.msis.take(), []);
}

#[test]
fn interrupt_registers_are_per_function() {
    proves!(
        [V13_262, V13_068],
        "a context's events are reported only in the interrupt registers of its function. Each function has \
        separate enables, masks, snapshots and MSIs"
    );
    let functions = [Function::PF, Function::new(1).unwrap(), Function::new(63).unwrap()];
    let mut bench = EngineBench::new(EngineClass::Copy);
    for function in functions {
        let tree = bench.gt.interrupts_of(function);
        tree.write(InterruptRegister::Enable, 0x19_0030, 0, u32::MAX);
        tree.write(InterruptRegister::MasterTile, 0x19_0008, 0, 1 << 31);
    }
    for function in functions {
        bench.give(function);
        assert_eq!(bench.ring(&[MI_USER_INTERRUPT, 0]), Outcome::Complete);
        assert_eq!(bench.msis.take(), [function]);
        for other in functions {
            let bank = bench.gt.interrupts_of(other).read(InterruptRegister::Bank, 0);
            assert_eq!(bank, if other == function { 1 << 15 } else { 0 }, "{function:?} {other:?}");
        }
        let tree = bench.gt.interrupts_of(function);
        tree.write(InterruptRegister::Selector, 0x19_0070, 0, 1 << 15);
        assert_eq!(tree.read(InterruptRegister::Identity, 0), 0x8003_0001);
        tree.write(InterruptRegister::Identity, 0x19_0060, 0, 1 << 31);
        tree.write(InterruptRegister::Bank, 0x19_0018, 0, 1 << 15);
    }
}

#[test]
fn page_faults_pass_the_mask_in_memory_in_repair_mode() {
    proves!(
        [V8_088, V13_273],
        "a page fault that is reported in memory is subject to the mask dword, except in contexts with fault \
        repair. The mask of other events applies in every context"
    );
    for (handling, enable, seen) in
        [(0u64, 0, false), (1, 0, true), (2, 0, true), (3, 0, true), (0, 1 << 7, true), (1, 1 << 7, true)]
    {
        let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
        let context = bench.context(0);
        report(&bench, context, PAGE, enable);
        bench.emit(context, &[MI_FLUSH_DW | FLUSH_NOTIFY | 2, 0, 0, 0]);
        bench.emit(context, &store(VA - 4096, 1));
        let load = context.load();
        let descriptor = load.descriptor | handling << 6;
        bench.engine.load(&bench.gt, Load { function: VF, descriptor, ..load });
        assert!(matches!(bench.run(), Outcome::Halted(Halt::Fault(fault)) if fault.address == VA - 4096));
        let expected: &[u64] = if seen { &[15 * 16 + 7, 0x400 + 15] } else { &[] };
        assert_eq!(set_bytes(&bench), expected, "fault handling {handling}, mask {enable:#x}");
        assert_eq!(bench.msis.take(), if seen { vec![VF] } else { vec![] });
    }
}
