// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The context image: layout, execution, save and isolation.

use arctic_fidelity::proves;
use proptest::prelude::*;

use super::*;
use crate::context_image::IMAGE_DWORDS;
use crate::generation::XE_HPG;
use crate::registers::Kind;
use crate::topology::trtt;

/// Returns the register offsets of an LRI in an image. `first` is the dword index of the first offset.
fn offsets(bench: &EngineBench, context: Context, first: usize, registers: usize) -> Vec<u32> {
    (0..registers).map(|n| bench.get(context.image(first + 2 * n))).collect()
}

fn dwords(bench: &EngineBench, context: Context, range: std::ops::Range<usize>) -> Vec<u32> {
    range.map(|dword| bench.get(context.image(dword))).collect()
}

/// Returns a bench with `engine` and a context that the engine saved without executing commands.
fn saved(engine: EngineId) -> (EngineBench, Context) {
    let mut bench = EngineBench::new(XE_HPG.engines.info(engine).class);
    bench.engine = Engine::new(&XE_HPG, engine);
    let context = bench.context(0);
    assert_eq!(bench.submit(context), Outcome::Complete);
    (bench, context)
}

#[test]
fn every_engine_saves_the_common_ring_context() {
    proves!(
        [V8_040, V8_042, V8_046, V8_047],
        "on every engine, the PPHWSP is followed by the ring context with the headers and offsets of \
        dg2_xcs_offsets (xe, i915) up to dword 0x33 (traps T16, T17)"
    );
    const FIRST: [u32; 15] =
        [0x244, 0x034, 0x030, 0x038, 0x03c, 0x168, 0x140, 0x110, 0x1c0, 0x1c4, 0x1c8, 0x180, 0x2b4, 0x120, 0x124];
    const SECOND: [u32; 9] = [0x3a8, 0x28c, 0x288, 0x284, 0x280, 0x27c, 0x278, 0x274, 0x270];
    for engine in XE_HPG.engines.all() {
        let (bench, context) = saved(engine);
        let based =
            |list: &[u32]| list.iter().map(|offset| offset + XE_HPG.engines.info(engine).mmio_base).collect::<Vec<_>>();
        assert_eq!(dwords(&bench, context, 0..2), [0, MI_LOAD_REGISTER_IMM | CS_MMIO | FORCE_POSTED | 29]);
        // The value of RING_TAIL belongs to the driver, but its offset is written like all others.
        assert_eq!(offsets(&bench, context, 2, 15), based(&FIRST), "{}", XE_HPG.engines.info(engine).name);
        assert_eq!(dwords(&bench, context, 0x20..0x22), [0, MI_LOAD_REGISTER_IMM | CS_MMIO | FORCE_POSTED | 17]);
        assert_eq!(offsets(&bench, context, 0x22, 9), based(&SECOND));
        assert_eq!(bench.get(context.pphwsp() + 0x1000 + 4), 0x1108_101d, "after the 4 KiB of the PPHWSP");
    }
}

#[test]
fn the_cacheline_0x40_is_the_class_own() {
    proves!(
        V8_048,
        "dwords 0x34 to 0x4f contain BCS_SWCTRL and BLIT_CCTL with a header without bit 19 on the copy engine, \
        MI_NOOPs on media and compute engines, and the registers of dg2_rcs_offsets (xe, i915) on the render engine"
    );
    let (bench, context) = saved(XE_HPG.engines.find(EngineClass::Copy, 0).unwrap());
    let mut copy = vec![0; 28];
    copy[13..18].copy_from_slice(&[MI_LOAD_REGISTER_IMM | FORCE_POSTED | 3, 0x2_2200, 0xffff_0000, 0x2_2204, 0]);
    assert_eq!(dwords(&bench, context, 0x34..0x50), copy);
    for class in [EngineClass::VideoDecode, EngineClass::VideoEnhance, EngineClass::Compute] {
        let (bench, context) = saved(XE_HPG.engines.find(class, 1).unwrap());
        assert_eq!(dwords(&bench, context, 0x34..0x50), [0; 28]);
    }
    let (bench, context) = saved(XE_HPG.engines.find(EngineClass::Render, 0).unwrap());
    let mut render = vec![0; 28];
    render[0] = MI_LOAD_REGISTER_IMM | CS_MMIO | FORCE_POSTED | 5;
    (render[1], render[3], render[5]) = (0x21b0, 0x25a8, 0x25ac);
    (render[13], render[14]) = (MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x20c8);
    assert_eq!(dwords(&bench, context, 0x34..0x50), render);
}

#[test]
fn interrupt_reports_have_a_cacheline() {
    proves!(
        [V8_042, V8_049],
        "dwords 0x50 to 0x5f load the interrupt mask from memory and both report pointers. A save preserves the \
        values written by software (trap T18)"
    );
    for class in EngineClass::BY_GUC {
        let (mut bench, context) = saved(XE_HPG.engines.find(class, 0).unwrap());
        let base = bench.base();
        let block = |mask, status, source| {
            [0x14c8_0002, 0xa8, mask, 0, 0, 0x1108_1003, base + 0xac, status, base + 0xa4, source]
        };
        assert_eq!(dwords(&bench, context, 0x50..0x5a), block(0, 0, 0));
        assert_eq!(dwords(&bench, context, 0x5a..0x60), [0; 6]);
        assert_eq!(bench.get(context.image(0x60)) >> 23, 0, "{class:?}: the engine context begins with MI_NOOP");
        assert_eq!(bench.submit(context), Outcome::Complete, "no load from address 0");
        let (mask, status, source) = (DATA as u32 + 0x440, DATA as u32, DATA as u32 + 0x400);
        for (dword, value) in [(0x52, mask), (0x57, status), (0x59, source)] {
            bench.put(context.image(dword), value);
        }
        bench.emit(context, &[MI_USER_INTERRUPT, 0]);
        assert_eq!(bench.submit(context), Outcome::Complete);
        let bytes = |at: u64| (0..0x400).filter(|n| bench.get(at + (n & !3)) >> (8 * (n & 3)) & 0xff != 0).count();
        assert_eq!((bytes(DATA), bench.msis.take().len()), (1, 1), "{class:?}: the report is in memory");
        assert_eq!(dwords(&bench, context, 0x50..0x5a), block(mask, status, source));
    }
}

#[test]
fn the_engine_context_is_the_documents() {
    proves!(
        [V8_046, V8_050],
        "55 registers from dword 0x62 in the order of the PRM. MI_FORCE_WAKEUP is present only on media engines"
    );
    let mut list = vec![0x588; 6];
    list.extend([0x028, 0x09c, 0x0c0, 0x178, 0x17c, 0x358, 0x170, 0x150, 0x154, 0x158, 0x41c]);
    list.extend((0..32).map(|n| 0x600 + 4 * n));
    list.extend([0x068, 0x084, 0x3b4, 0x3b8, 0x21c, 0x1fc]);
    assert_eq!(list.len(), 55);
    for engine in XE_HPG.engines.all() {
        let (bench, context) = saved(engine);
        let based: Vec<u32> = list.iter().map(|offset| offset + XE_HPG.engines.info(engine).mmio_base).collect();
        assert_eq!(bench.get(context.image(0x61)), MI_LOAD_REGISTER_IMM | CS_MMIO | FORCE_POSTED | 109);
        assert_eq!(offsets(&bench, context, 0x62, 55), based, "{}", XE_HPG.engines.info(engine).name);
        let media = matches!(XE_HPG.engines.info(engine).class, EngineClass::VideoDecode | EngineClass::VideoEnhance);
        let wakeup = if media { 0x0e80_0000 } else { 0 };
        assert_eq!(dwords(&bench, context, 0xd0..0xd8), [wakeup, 0, 0, 0, 0, 0, 0, 0]);
        let end = (0xf0..IMAGE_DWORDS).find(|dword| bench.get(context.image(*dword)) == 0x0500_0001);
        assert_eq!(end.map(|end| (end + 1).next_multiple_of(16)), Some(bench.gt.context_layout(engine).template.len()));
    }
}

#[test]
fn trtt_registers_are_remapped_to_the_instance() {
    proves!(
        V8_051,
        "the TRTT section at dword 0xd8 has the offsets of the first instance of the class. They are remapped to \
        the executing instance, in the image and in commands (traps T18 and T19)"
    );
    let first = [
        (EngineClass::Render, 0x4400),
        (EngineClass::Compute, 0x4580),
        (EngineClass::Copy, 0x4480),
        (EngineClass::VideoDecode, 0x4420),
        (EngineClass::VideoEnhance, 0x4460),
    ];
    for engine in XE_HPG.engines.all() {
        let (mut bench, context) = saved(engine);
        let info = XE_HPG.engines.info(engine);
        let numbers = first.iter().find(|(class, _)| *class == info.class).unwrap().1;
        assert_eq!(dwords(&bench, context, 0xd8..0xda), [0, 0x1102_100b], "{}", info.name);
        let all: Vec<u32> = (0..6).map(|n| numbers + 4 * n).collect();
        assert_eq!(offsets(&bench, context, 0xda, 6), all);
        let others: Vec<u32> = XE_HPG
            .engines
            .all()
            .filter(|other| *other != engine)
            .filter_map(|other| trtt(XE_HPG.engines.info(other).class, XE_HPG.engines.info(other).instance))
            .collect();
        bench.put(context.image(0xdd), 0x1234);
        bench.emit(context, &[MI_LOAD_REGISTER_IMM | MMIO_REMAP | 1, numbers + 8, 0x5678]);
        assert_eq!(bench.submit(context), Outcome::Complete);
        if let Some(own) = trtt(info.class, info.instance) {
            assert_eq!([4, 8].map(|n| bench.gt.registers.value(own + n)), [0x1234, 0x5678], "{}", info.name);
            assert_eq!([0xdd, 0xdf].map(|n| bench.get(context.image(n))), [0x1234, 0x5678]);
        }
        assert!(others.iter().all(|at| (0..6).all(|n| bench.gt.registers.value(at + 4 * n) == 0)), "{}", info.name);
    }
    let vcs = |instance| trtt(EngineClass::VideoDecode, instance);
    assert_eq!([0, 1, 2, 3, 4].map(vcs), [Some(0x4420), Some(0x4440), Some(0x4520), Some(0x4540), None]);
    assert_eq!([0, 1].map(|n| trtt(EngineClass::VideoEnhance, n)), [Some(0x4460), Some(0x4560)]);
}

#[test]
fn relative_offsets_may_have_a_base_in_them() {
    proves!(
        [V8_004, V8_046],
        "bit 19 adds the engine's base, even if the offset contains the base of any instance (i915: get_lri_mask). \
        An image can therefore move between the instances of a class"
    );
    for (class, instance) in [(EngineClass::Compute, 2), (EngineClass::VideoDecode, 5), (EngineClass::VideoEnhance, 3)]
    {
        let mut bench = EngineBench::new(class);
        let context = bench.context(0);
        bench.emit(context, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x600, 0x77]);
        assert_eq!(bench.submit(context), Outcome::Complete);
        let first = bench.base();
        bench.engine = Engine::new(&XE_HPG, XE_HPG.engines.find(class, instance).unwrap());
        bench.gt.registers.set(first + 0x600, 0);
        assert_eq!(bench.submit(context), Outcome::Complete);
        assert_eq!((bench.own(0x600), bench.gt.registers.value(first + 0x600)), (0x77, 0));
        assert_eq!(bench.get(context.image(0x02)), bench.base() + 0x244, "saved with the base of this instance");
    }
}

#[test]
fn an_image_of_another_class_is_an_error() {
    proves!(
        V8_007,
        "an image of another class raises an instruction error at the command that loads registers of that class. \
        Memory and registers are unchanged, and the engine is usable after a reset"
    );
    let (copy, context) = saved(XE_HPG.engines.find(EngineClass::Copy, 0).unwrap());
    let image = dwords(&copy, context, 0..IMAGE_DWORDS);
    for class in [EngineClass::VideoDecode, EngineClass::VideoEnhance, EngineClass::Render, EngineClass::Compute] {
        let mut bench = EngineBench::new(class);
        let context = bench.context(0);
        bench.write(context.image(0), &image);
        let values = |bench: &EngineBench| -> Vec<(u32, u32)> {
            bench.gt.registers.listing().map(|(at, _)| (at, bench.gt.registers.value(at))).collect()
        };
        let before = values(&bench);
        let Outcome::Halted(Halt::IllegalCommand { header, address }) = bench.submit(context) else {
            panic!("{class:?}");
        };
        assert_eq!((header, address), (0x1108_101d, context.image(1)), "{class:?}");
        assert_eq!((bench.own(reg::ESR), bench.own(reg::IPEHR)), (1, 0x1108_101d));
        let changed = before.iter().zip(values(&bench)).filter(|(before, after)| **before != *after);
        let changed: Vec<u32> = changed.map(|(_, (at, _))| at - bench.base()).collect();
        assert!(changed.iter().all(|at| [reg::ESR, reg::IPEHR, 0x234, 0x238].contains(at)), "{class:?} {changed:x?}");
        assert!(bench.engine.reset(&bench.gt).is_some());
        assert_eq!(dwords(&bench, context, 0..IMAGE_DWORDS), image, "{class:?}");
        let context = bench.context(1);
        assert_eq!(bench.submit(context), Outcome::Complete);
    }
}

#[test]
fn garbage_in_the_engine_context_is_an_error() {
    proves!(
        V8_046,
        "an engine context that contains a command not valid in an image raises an instruction error at that \
        command"
    );
    let (mut bench, context) = saved(XE_HPG.engines.find(EngineClass::Copy, 0).unwrap());
    bench.write(context.image(0x60), &store(DATA, 7));
    bench.emit(context, &store(VA + DATA + 4, 1));
    let outcome = bench.submit(context);
    let expected = Halt::IllegalCommand { header: 0x1000_0002, address: context.image(0x60) };
    assert_eq!(outcome, Outcome::Halted(expected));
    assert_eq!([0, 4].map(|n| bench.get(DATA + n)), [0, 0]);
}

#[test]
fn an_inhibited_restore_makes_a_golden_image() {
    proves!(
        [V8_043, V8_044],
        "with restore inhibited, an invalid engine context is not read, and the next save writes it completely. The \
        saved image can be used as a template for new contexts, including register values"
    );
    for class in EngineClass::BY_GUC {
        let mut bench = EngineBench::new(class);
        let engine = bench.engine.id();
        let (first, copied) = (bench.context(0), bench.context(1));
        for dword in XE_HPG.contexts.engine_context..IMAGE_DWORDS {
            bench.put(first.image(dword), 0xdead_0000 | dword as u32);
        }
        bench.emit(first, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 5, 0x600, 0x1234, 0x67c, 0x5678, 0x41c, 1]);
        assert_eq!(bench.submit(first), Outcome::Complete, "{class:?}");
        let image = dwords(&bench, first, 0..bench.gt.context_layout(engine).template.len());
        assert!(image.iter().all(|word| *word >> 16 != 0xdead), "{class:?}: the whole engine context is written");
        assert_eq!(image[0x03] & 1, 0, "the next restore is not inhibited");
        let (start, pdp0) = (bench.get(copied.image(0x09)), bench.get(copied.image(0x33)));
        bench.write(copied.image(0), &image);
        for (dword, value) in [(0x05, 0), (0x07, 0), (0x09, start), (0x33, pdp0)] {
            bench.put(copied.image(dword), value);
        }
        for (n, offset) in [0x600, 0x67c, 0x41c].into_iter().enumerate() {
            bench.emit(copied, &store_register(offset, VA + DATA + 4 * n as u64));
        }
        assert_eq!(bench.submit(copied), Outcome::Complete);
        assert_eq!([0, 4, 8].map(|n| bench.get(DATA + n)), [0x1234, 0x5678, 1], "{class:?}");
    }
}

#[test]
fn every_switch_saves_the_context() {
    proves!(
        V8_045,
        "head, registers and ticks are saved to the image on completion, on preemption at a command and on \
        preemption in a wait"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    let saved = |bench: &EngineBench| [0x05, 0x85, 0x23].map(|dword| bench.get(context.image(dword)));
    bench.emit(context, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x600, 1, 0]);
    bench.clock.advance(625);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!(saved(&bench), [16, 1, 0]);
    bench.emit(context, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x600, 2, ARB_CHECK, 0, 0]);
    bench.engine.load(&bench.gt, context.load());
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    assert_eq!(saved(&bench), [32, 2, 0]);
    assert_eq!(bench.get(context.image(0x07)), 40, "the tail belongs to the driver");
    bench.emit(context, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x600, 3]);
    bench.emit(context, &wait(4, VA + DATA, 1));
    assert_eq!(bench.submit(context), Outcome::Waiting);
    bench.clock.advance(625);
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    assert_eq!(saved(&bench), [56, 3, 12], "the head is before the wait");
}

#[test]
fn page_directories_come_from_the_image() {
    proves!(
        [V8_212, V8_213],
        "the page directory is loaded from the image. The same address maps to different pages in two contexts, and \
        accesses of a context without a page directory fault"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let (mine, other, none) = (bench.context(0), bench.context(1), bench.context(2));
    // A second set of page tables that maps the address 2 MiB higher in local memory.
    let tables = 0xe0_0000;
    bench.put64(tables, tables + 0x1003);
    bench.put64(tables + 0x1000 + 8, tables + 0x2003);
    bench.put64(tables + 0x2000 + 8, 2 << 21 | 0x883);
    bench.put(other.image(0x33), tables as u32);
    let there = VA + (1 << 21);
    for (context, value) in [(mine, 1), (other, 2)] {
        bench.emit(context, &store(there, value));
        assert_eq!(bench.submit(context), Outcome::Complete);
    }
    assert_eq!([1 << 21, 2 << 21].map(|at| bench.get(at)), [1, 2]);
    bench.put(none.image(0x33), 0);
    bench.emit(none, &store(there, 3));
    assert!(matches!(bench.submit(none), Outcome::Halted(Halt::Fault(fault)) if fault.address == there));
}

#[test]
fn the_status_page_has_the_times() {
    proves!(
        [V8_041, V8_214],
        "the timestamps of the context's last run and the reported ring head are in the first cachelines of the \
        PPHWSP and immediately visible to a CPU. The rest of the PPHWSP is unchanged"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    for n in 0..0x400 {
        bench.put(context.pphwsp() + 4 * n, 0xeeee_0000 | n as u32);
    }
    bench.put(context.image(0x23), 1000);
    bench.clock.advance(625 * 10);
    bench.emit(context, &[MI_REPORT_HEAD, 0]);
    bench.emit(context, &[MI_STORE_DATA_INDEX | PER_PROCESS_PAGE | 1, 0x200, 7]);
    bench.emit(context, &wait(4, VA + DATA, 1));
    assert_eq!(bench.submit(context), Outcome::Waiting);
    assert_eq!(bench.get(context.pphwsp() + 0x200), 7, "MI_STORE_DATA_INDEX");
    bench.clock.advance(625 * 5);
    bench.put(DATA, 1);
    assert_eq!(bench.run(), Outcome::Complete);
    assert_eq!([16, 17, 18].map(|n| bench.get(context.pphwsp() + 4 * n)), [120, 180, 1060]);
    let left = |n: u64| bench.get(context.pphwsp() + 4 * n) == 0xeeee_0000 | n as u32;
    assert!((0..0x400).filter(|n| ![4, 16, 17, 18, 0x80].contains(n)).all(left));
}

#[test]
fn the_free_running_clock_is_not_restored() {
    proves!(
        [V8_214, V8_215],
        "CTX_TIMESTAMP continues from the image and is saved. TIMESTAMP is saved but not restored"
    );
    let mut bench = EngineBench::new(EngineClass::VideoDecode);
    let context = bench.context(0);
    bench.clock.advance(625 * 100);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!(bench.get(context.image(0x79)), 1200);
    bench.put(context.image(0x79), 5);
    bench.put(context.image(0x23), 700);
    bench.clock.advance(625);
    bench.emit(context, &store_register(0x358, VA + DATA));
    bench.emit(context, &store_register(0x3a8, VA + DATA + 4));
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!([0, 4].map(|n| bench.get(DATA + n)), [1212, 700]);
    assert_eq!([0x79, 0x23].map(|dword| bench.get(context.image(dword))), [1212, 700]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 16 } else { 100 }))]

    #[test]
    fn executing_an_image_restores_the_registers_of_its_table(
        class in prop::sample::select(EngineClass::BY_GUC.to_vec()),
        values in prop::collection::vec(any::<u32>(), IMAGE_DWORDS),
    ) {
        proves!(
            [V8_046, V8_050],
            "executing an image sets each register from its dword, according to the register's kind. Saving the \
            context reproduces the image"
        );
        let mut bench = EngineBench::new(class);
        let (engine, base) = (bench.engine.id(), bench.base());
        let context = bench.context(0);
        prop_assert_eq!(bench.submit(context), Outcome::Complete);
        // The watchdog is excluded because it would start. Predicates and offsets have no effect on an empty ring.
        let fixed = |at: u32| XE_HPG.contexts.in_ring_context(at) || matches!(at, 0x150 | 0x170 | 0x178);
        let kept: Vec<_> = bench.gt.context_layout(engine).kept.iter().filter(|kept| !fixed(kept.register.wrapping_sub(base))).collect();
        let mut expected = Vec::new();
        for kept in kept {
            let value = values[kept.dword];
            bench.put(context.image(kept.dword), value);
            let decoded = bench.gt.registers.decode(kept.register).unwrap();
            expected.push((kept.register, match decoded.register.kind {
                Kind::Masked => decoded.reset & !(value >> 16) | value & value >> 16,
                Kind::Storage(mask) => decoded.reset & !mask | value & mask,
                _ => value,
            }));
        }
        prop_assert_eq!(bench.submit(context), Outcome::Complete);
        for (register, value) in &expected {
            prop_assert_eq!(bench.gt.registers.value(*register), *value, "{:#x}", register);
        }
        let image = dwords(&bench, context, 0..IMAGE_DWORDS);
        prop_assert_eq!(bench.submit(context), Outcome::Complete);
        prop_assert_eq!(dwords(&bench, context, 0..IMAGE_DWORDS), image);
    }
}

#[test]
fn registers_have_places() {
    proves!(
        [V8_042, V8_050, V13_052],
        "every context register is stored exactly once in the image, within the image's size"
    );
    for engine in XE_HPG.engines.all() {
        let layout = XE_HPG.context_layout(engine);
        let dwords: std::collections::BTreeSet<_> = layout.kept.iter().map(|kept| kept.dword).collect();
        let registers: std::collections::BTreeSet<_> = layout.kept.iter().map(|kept| kept.register).collect();
        assert_eq!(
            (dwords.len(), registers.len()),
            (layout.kept.len(), layout.kept.len()),
            "{}",
            XE_HPG.engines.info(engine).name
        );
        assert!(
            layout.template.len() <= IMAGE_DWORDS,
            "{} {:#x}",
            XE_HPG.engines.info(engine).name,
            layout.template.len()
        );
        let gpr =
            layout.kept.iter().find(|kept| kept.register == XE_HPG.engines.info(engine).mmio_base + 0x67c).unwrap();
        assert_eq!(gpr.dword, 0xc3, "i915: lrc_ring_gpr0");
        let bench = EngineBench::new(XE_HPG.engines.info(engine).class);
        for (register, found) in bench.gt.registers.listing() {
            let own = found.engine.is_none_or(|at| at == engine);
            if own
                && found.register.scope.kept_by(XE_HPG.engines.info(engine))
                && !matches!(found.register.kind, Kind::Live(_))
            {
                assert!(registers.contains(&register), "{} {register:#x}", XE_HPG.engines.info(engine).name);
            }
        }
    }
}

#[test]
fn a_save_reads_the_first_instance_that_exists() {
    proves!(
        [V13_162, V13_163],
        "a save stores the value of the first instance that the fuses leave, not of instance 0; a restore writes \
        every instance"
    );
    const STATELESS_SCRATCH: u32 = 0xe518;
    let mut profile = crate::registers::tests::profile();
    profile.fuses.dss_mask = 0xffff_ff20;
    let mut bench = EngineBench::of(profile, EngineClass::Render, Arc::new(NullHost));
    let steer = |gt: &Gt, dss: u32| gt.registers.set(0xfdc, dss / 4 << 27 | dss % 4 << 24);
    let context = bench.context(0);
    bench.emit(context, &wait(4, VA + DATA, 7));
    assert_eq!(bench.submit(context), Outcome::Waiting);
    for dss in 0..32 {
        steer(&bench.gt, dss);
        bench.gt.write(STATELESS_SCRATCH, 0x100 + dss);
    }
    bench.put(DATA, 7);
    assert_eq!(bench.run(), Outcome::Complete);
    let kept = &bench.gt.context_layout(bench.engine.id()).kept;
    let dword = kept.iter().find(|kept| kept.register == STATELESS_SCRATCH).unwrap().dword;
    assert_eq!(bench.get(context.image(dword)), 0x105);
    bench.put(context.image(dword), 0x7777);
    bench.emit(context, &[0, 0]);
    assert_eq!(bench.submit(context), Outcome::Complete);
    for dss in 0..32 {
        steer(&bench.gt, dss);
        let expected = if 0xffff_ff20_u32 >> dss & 1 != 0 { 0x7777 } else { 0 };
        assert_eq!(bench.gt.read(STATELESS_SCRATCH), expected, "{dss}");
    }
}

#[test]
fn page_directories_can_be_above_four_gigabytes() {
    proves!(
        V8_213,
        "both halves of PDP0 are the address of the page directory, which may be above 4 GiB. A directory at the \
        same address below 4 GiB is not used"
    );
    let high = 1 << 32 | ROOT;
    let mut bench = EngineBench::with_local(EngineClass::Copy, (4 << 30) + LOCAL);
    let (low_root, high_root, beyond) = (bench.context(0), bench.context(1), bench.context(2));
    // Tables above 4 GiB that map the address 2 MiB higher in local memory.
    bench.put64(high, high + 0x1003);
    bench.put64(high + 0x1000 + 8, high + 0x2003);
    bench.put64(high + 0x2000 + 8, 2 << 21 | 0x883);
    bench.put(high_root.image(0x31), 1);
    bench.put(beyond.image(0x31), 2);
    let there = VA + (1 << 21);
    for (context, value) in [(low_root, 1), (high_root, 2)] {
        bench.emit(context, &store(there, value));
        assert_eq!(bench.submit(context), Outcome::Complete);
    }
    assert_eq!([1 << 21, 2 << 21].map(|at| bench.get(at)), [1, 2]);
    bench.emit(beyond, &store(there, 3));
    assert!(matches!(bench.submit(beyond), Outcome::Halted(Halt::Fault(fault)) if fault.address == there));
    assert_eq!([1 << 21, 2 << 21].map(|at| bench.get(at)), [1, 2]);
}
