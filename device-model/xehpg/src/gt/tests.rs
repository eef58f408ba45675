// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the live registers with driver access sequences.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod domains;
mod functions;
mod guc;
mod hardware_errors;
mod observation;
mod steering;

use std::time::Duration;

use super::*;
use crate::generation::XE_HPG;
use crate::host::{Function, ManualClock, NullHost};
use crate::interrupts::USER_INTERRUPT;
use crate::memory::ggtt::{GGTT_BYTES, Ggtt};
use crate::memory::region::SharedRegion;
use crate::registers::REGISTER_BYTES;
use crate::topology::EngineClass;
use crate::trace::{EventKind, Filter};
use arctic_fidelity::proves;

#[derive(Default)]
struct Msis(AtomicU64);

impl InterruptSink for Msis {
    fn raise(&self, _: Function, _: u16) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn set_line(&self, _: Function, _: bool) {}
}

struct GtBench {
    gt: Gt,
    clock: Arc<ManualClock>,
    msis: Arc<Msis>,
}

fn bench() -> GtBench {
    bench_of(&crate::registers::tests::profile())
}

fn bench_of(profile: &CardProfile) -> GtBench {
    let region = |len| SharedRegion::anonymous(len).unwrap();
    let memory = Memory::new(XE_HPG.page_tables, region(1 << 20), Ggtt::new(region(GGTT_BYTES)), Arc::new(NullHost));
    let clock = Arc::new(ManualClock::default());
    let msis = Arc::new(Msis::default());
    GtBench { gt: Gt::new(profile, memory, msis.clone(), clock.clone()), clock, msis }
}

#[test]
fn forcewake_is_acknowledged() {
    proves!(
        V13_135,
        "the acknowledgement follows the masked request in every domain, for the lowest and the highest request bit \
        (contract B.2 step 7)"
    );
    let GtBench { gt, .. } = bench();
    let media = (0..8).map(|n| (0xa540 + 4 * n, 0xd50 + 4 * n)).chain((0..4).map(|n| (0xa560 + 4 * n, 0xd70 + 4 * n)));
    for (request, ack) in [(0xa188, 0x13_0044), (0xa278, 0xd84)].into_iter().chain(media) {
        assert_eq!(gt.write(request, 0x0001_0001), None);
        assert_eq!(gt.read(ack), 1, "{request:#x}");
        gt.write(request, 0x8000_8000);
        assert_eq!(gt.read(ack), 0x8001);
        gt.write(request, 0x0001_0000);
        assert_eq!(gt.read(ack), 0x8000);
        gt.write(request, 0xffff_0000);
        assert_eq!(gt.read(ack), 0);
        gt.write(ack, 1);
        assert_eq!(gt.read(ack), 0);
    }
}

/// Contract E.8, B.11: RC6 is reported while neither an engine nor a forcewake request is active; the counter's unit is
/// 1.28 us.
#[test]
fn rc6_is_reported_and_counted() {
    let GtBench { gt, clock, .. } = bench();
    let copy = &gt.context_clocks[XE_HPG.engines.find(EngineClass::Copy, 0).unwrap().index()];
    let status = || gt.read(0x13_8060) & 7;
    assert_eq!(status(), 0, "RC6 before the GuC permits it");
    gt.permit_rc6(true);
    clock.advance(1_280_000);
    assert_eq!((status(), gt.read(0x13_8108)), (3, 1000));
    assert_eq!(gt.read(0x13_81b4), 0);
    gt.write(0xa188, 0x0001_0001);
    clock.advance(1_280_000);
    assert_eq!((status(), gt.read(0x13_8108)), (0, 1000));
    assert_eq!(gt.read(0x13_81b4) >> 11 & 0x1ff, 18);
    gt.start_context_clock(XE_HPG.engines.find(EngineClass::Copy, 0).unwrap());
    gt.write(0xa188, 0x0001_0000);
    assert_eq!(status(), 0);
    copy.stop(gt.timestamp());
    clock.advance(1_280);
    assert_eq!((status(), gt.read(0x13_8108)), (3, 1001));
    gt.permit_rc6(false);
    assert_eq!(status(), 0, "RC6 after the GuC forbids it");
}

/// Contract B.11, B.12: the host controls RC6 by RC_CONTROL and RC_STATE while the GuC does not permit it (i915:
/// intel_rc6.c, live_rc6_manual).
#[test]
fn the_host_controls_rc6() {
    let GtBench { gt, .. } = bench();
    let state = || gt.read(0x13_8060) & 7;
    let control = |value| gt.write(0xa090, value);
    let request = |value| gt.write(0xa094, value);
    // The hardware enters RC6.
    control(0x8804_0000);
    assert_eq!((gt.read(0xa090), state()), (0x8804_0000, 3));
    control(0);
    assert_eq!(state(), 0);
    // The host requests RC6; neither the enable bit nor the target suffices alone.
    control(1 << 18);
    assert_eq!(state(), 0);
    request(4 << 16);
    assert_eq!((gt.read(0xa094), state()), (4 << 16, 3));
    gt.write(0xa188, 0x0001_0001);
    assert_eq!(state(), 0, "a forcewake request");
    gt.write(0xa188, 0x0001_0000);
    control(0);
    assert_eq!(state(), 0);
    // The GuC's permission does not depend on the host.
    gt.permit_rc6(true);
    assert_eq!(state(), 3);
    gt.permit_rc6(false);
    assert_eq!(state(), 0);
    control(0x8804_0000);
    gt.reset();
    assert_eq!(state(), 0, "a reset clears the registers");
}

/// Contract B.4 step 19, G.4: the first write locks the register; later writes are ignored; a power-on unlocks it.
#[test]
fn wopcm_registers_lock() {
    let GtBench { gt, .. } = bench();
    for (register, value, stored) in [(0xc050, 0x003f_3000, 0x003f_3001), (0xc340, 0x4002, 0x4003)] {
        assert_eq!(gt.read(register), 0);
        gt.write(register, value);
        assert_eq!(gt.read(register), stored);
        gt.write(register, 0xffff_0000);
        assert_eq!(gt.read(register), stored);
    }
    gt.reset();
    assert_eq!((gt.read(0xc050), gt.read(0xc340)), (0, 0));
}

/// Contract B.4, B.6, G.1, B.12: writes that trigger an action return a request, and read back the value that the
/// driver polls for.
#[test]
fn requests_reach_the_card() {
    let GtBench { gt, .. } = bench();
    assert_eq!(gt.write(0x941c, 8), Some(SideEffect::Reset(8)));
    assert_eq!(gt.read(0x941c), 0);
    assert_eq!(gt.write(0xc314, 0x0011_0011), Some(SideEffect::StartGucDma));
    assert_eq!(gt.read(0xc314), 0x11);
    assert_eq!(gt.write(0xc314, 0x0011_0000), None);
    assert_eq!(gt.write(0x19_01f0, 1), Some(SideEffect::NotifyGuc));
    assert_eq!(gt.write(0x10_1010, 0x8000_0000), Some(SideEffect::DriverFlr));
    assert_eq!(gt.read(0x10_1010), 0x80);
    gt.finish_driver_flr();
    assert_eq!(gt.read(0x10_1018), 0x8000_0000);
    gt.write(0x10_1018, 0x8000_0000);
    assert_eq!(gt.read(0x10_1018), 0);
    let trace = gt.trace.subscribe(Filter::default());
    for register in [0xced8, 0xcedc, 0xcee0, 0xcee4, 0xcee8, 0xceec, 0xcf04] {
        assert_eq!(gt.write(register, 1), Some(SideEffect::TlbInvalidate));
        assert_eq!(gt.read(register), 0);
        let [event] = &trace.take(Duration::ZERO)[..] else { panic!("one event of {register:#x}") };
        assert!(matches!(&event.what, EventKind::TlbInvalidation { by, all: true } if by.contains("TLB_INV_CR")));
    }
}

/// Contract G.1 step 5: the reset handshake of an engine.
#[test]
fn engine_reset_request_is_acknowledged() {
    let GtBench { gt, .. } = bench();
    let engine = XE_HPG.engines.find(EngineClass::Render, 0).unwrap();
    assert_eq!(gt.write(0x20d0, 0x0001_0001), Some(SideEffect::EngineReset(engine, 0x0001_0001)));
    assert_eq!(gt.read(0x20d0), 3);
    gt.write(0x20d0, 0x0001_0000);
    assert_eq!(gt.read(0x20d0), 0);
    gt.registers.set(0x20d0, 4);
    gt.write(0x20d0, 0x0001_0001);
    assert_eq!(gt.read(0x20d0), 7);
    gt.write(0x20d0, 0x0004_0004);
    assert_eq!(gt.read(0x20d0), 3);
}

/// Contract E.7, E.8, K.4: timestamps count at 19.2 MHz; an engine's timestamp has 36 bits.
#[test]
fn timestamps_advance() {
    proves!(EU_093, "the timestamps of engines and of the card count at 19.2 MHz");
    let GtBench { gt, clock, .. } = bench();
    clock.advance(1_000_000_000);
    for low in [0xc3e8, 0x2358, 0x1d_0358] {
        assert_eq!((gt.read(low), gt.read(low + 4)), (19_200_000, 0), "{low:#x}");
    }
    clock.advance(4000 * 1_000_000_000);
    let ticks = 4001 * 19_200_000_u64;
    assert_eq!((gt.read(0xc3e8), gt.read(0xc3ec)), (ticks as u32, (ticks >> 32) as u32));
    let ticks = 2 * ticks;
    assert_eq!((gt.read(0xa500), gt.read(0xa504)), (ticks as u32, (ticks >> 32) as u32));
    let ticks = ticks / 2;
    assert_eq!(gt.read(0x235c), (ticks >> 32 & 0xf) as u32);
    let engine = XE_HPG.engines.find(EngineClass::Render, 0).unwrap();
    gt.start_context_clock(engine);
    gt.context_clock(engine).set(gt.timestamp(), 100);
    clock.advance(625_000);
    assert_eq!(gt.read(0x23a8), 12_100);
}

/// Contract B.1 step 3, B.5b: the mailbox through its registers, and a sensor reading.
#[test]
fn pcode_answers() {
    let GtBench { gt, clock, .. } = bench();
    gt.write(0x13_8128, 0);
    gt.write(0x13_812c, 0);
    gt.write(0x13_8124, 0x8000_007e);
    assert_eq!((gt.read(0x13_8124) >> 31, gt.read(0x13_8124) & 0xff, gt.read(0x13_8128)), (0, 0, 1));
    let energy = gt.read(0x14_593c);
    clock.advance(1_000_000_000);
    assert!(gt.read(0x14_593c) > energy);
}

/// Contract B.10, G.9: a HECI window raises the GSC's interrupt, bit 15 for HECI1 and 14 for HECI2.
#[test]
fn heci_interrupts() {
    for (window, bit) in [(0x37_3000, 15), (0x37_4000, 14)] {
        let GtBench { gt, msis, .. } = bench();
        assert_eq!(gt.read(window + 0xc48) & 8, 8);
        gt.write(0x19_0044, 0xc000);
        gt.write(0x19_00f4, !0xc000);
        gt.write(0x19_0008, 0x8000_0000);
        // H_CSR: reset with interrupt enable.
        gt.write(window + 4, 0x11);
        assert_eq!(msis.0.load(Ordering::SeqCst), 1);
        gt.write(0x19_0070, 1 << 31);
        assert_eq!(gt.read(0x19_0060), 1 << 31 | 6 << 20 | 4 << 16 | 1 << bit);
    }
}

/// Contract B.3 step 15 to 17, B.4 step 26: after the driver's reset and install sequence an engine's interrupt reaches
/// the host.
#[test]
fn the_interrupt_registers_work_through_mmio() {
    let GtBench { gt, msis, .. } = bench();
    gt.write(0x19_0008, 0);
    gt.write(0x4_44f8, !0);
    assert_eq!(gt.read(0x4_44f8), 0);
    gt.write(0x19_0008, 0x8000_0000);
    gt.write(0x19_0030, 0x0011_0011);
    gt.write(0x19_00a0, !0x0011_0000);
    assert_eq!(gt.read(0x19_00a0), !0x0011_0000);
    gt.interrupts.raise_engine(XE_HPG.engines.find(EngineClass::Copy, 0).unwrap(), USER_INTERRUPT);
    assert_eq!(msis.0.load(Ordering::SeqCst), 1);
    assert_eq!((gt.read(0x19_0008), gt.read(0x19_0010), gt.read(0x19_0018)), (0x8000_0001, 1, 1 << 15));
    gt.reset();
    assert_eq!((gt.read(0x19_0008), gt.read(0x19_0030)), (0, 0));
}

#[test]
fn unmodelled_reads_zero() {
    proves!(V13_161, "an unmodelled register reads 0, and the access is counted. VF_CAP ignores writes");
    let GtBench { gt, .. } = bench();
    gt.write(0x6_0000, 0xffff_ffff);
    assert_eq!(gt.read(0x6_0000), 0);
    assert_eq!(gt.registers.unmodelled().len(), 1);
    gt.write(0x19_01f8, 0xffff_ffff);
    assert_eq!(gt.read(0x19_01f8), 0);
    assert_eq!(gt.registers.unmodelled().len(), 1);
}

#[test]
fn accesses_to_a_sleeping_domain_are_counted() {
    proves!(
        [V13_130, V13_131, V13_138],
        "an access to a sleeping domain is counted under the register's name and still performed. An access to an \
        awake domain, to a register without domain, or a write to a shadowed register is not counted"
    );
    let GtBench { gt, .. } = bench();
    gt.read(0xa024);
    gt.permit_rc6(true);
    gt.read(0x19_0008);
    gt.read(0xd00);
    gt.write(0x2030, 8);
    gt.write(0xa188, 0x0001_0001);
    gt.write(0xa024, 0x400);
    gt.write(0x1d_0080, 0x1000);
    assert!(gt.registers.asleep().is_empty());
    // Media power gating is enabled.
    gt.write(0xa210, 2);
    assert_eq!(gt.read(0x1d_0080), 0x1000);
    gt.write(0xa548, 0x0001_0001);
    gt.read(0x1d_0080);
    gt.write(0xa548, 0x0001_0000);
    gt.write(0xa188, 0x0001_0000);
    assert_eq!(gt.read(0xa024), 0x400);
    let asleep = gt.report().asleep;
    let reported: Vec<_> = asleep.iter().map(|r| (r.name.as_deref().unwrap(), r.reads, r.writes)).collect();
    assert_eq!(reported, [("RP_CONTROL", 1, 0), ("vcs2.RING_HWS_PGA", 1, 0)]);
}

/// The report of unimplemented registers states the known reasons, and lists registers without one.
#[test]
fn the_report_explains_what_is_left_out() {
    let GtBench { gt, .. } = bench();
    gt.write(0x4_6000, 1);
    gt.read(0x3_0000);
    let report = gt.report();
    assert_eq!(report.unmodelled.len(), 2);
    let unexplained: Vec<_> = report.unexplained().map(|register| (register.offset, register.reads)).collect();
    assert_eq!(unexplained, [(0x3_0000, 1)]);
}

#[test]
fn the_hosts_writes_do_not_arm_doorbells() {
    proves!(
        [V13_083, V13_085, V13_087, V13_093, V13_100],
        "the doorbell block has 256 registers of 8 bytes, starting at 0x3ff000, and a write by the host does not \
        arm a doorbell (trap 38)"
    );
    let GtBench { gt, .. } = bench();
    let name = |offset| gt.registers.decode(offset).map(|found| gt.registers.name(found)).unwrap_or_default();
    assert_eq!((name(0x3f_f000), name(0x3f_f7f8)), ("DOORBELL_ADDRESS[0]".into(), "DOORBELL_ADDRESS[255]".into()));
    assert_eq!((name(0x3f_f7fc), name(0x3f_f800)), ("DOORBELL_FUNCTION[255]".into(), String::new()));
    assert_eq!((name(0x1900), name(0x191c)), ("GTI_DOORBELL_STATUS[0]".into(), "GTI_DOORBELL_STATUS[7]".into()));
    let named = |name| gt.registers.listing().filter(|(_, decoded)| decoded.register.name == name).count();
    assert_eq!((named("GUC_DB_ISR"), named("DOORBELL_CTRL")), (8, 1));
    for offset in (0x3f_f000..0x3f_f800).step_by(4).chain((0x1900..0x1920).step_by(4)) {
        assert_eq!(gt.write(offset, 0x40_0001), None);
        assert_eq!(gt.read(offset), 0, "{offset:#x}");
    }
    gt.doorbells.arm(2, Function::new(63).unwrap(), crate::doorbell::Page::at(0x7f_f000).unwrap()).unwrap();
    assert_eq!((gt.read(0x3f_f010), gt.read(0x3f_f014)), (0x7f_f001, 63));
    gt.write(0x3f_f010, 0);
    assert_eq!(gt.read(0x3f_f010), 0x7f_f001);
    gt.reset();
    assert_eq!((gt.read(0x3f_f010), gt.read(0x3f_f014)), (0, 0));
}

#[test]
fn lmem_cfg() {
    proves!(V13_107, "LMEM_CFG exists only in the PF's BAR, not in a VF's (contract D.5)");
    let gt = bench().gt;
    gt.write(0xcf58, 0x8000_0123);
    assert_eq!((gt.read(0xcf58), gt.memory.lmem_cfg()), (0x8000_0123, 0x8000_0123));
    gt.mmio_write(Function::new(1).unwrap(), 0xcf58, 7, !0);
    assert_eq!((gt.mmio_read(Function::new(1).unwrap(), 0xcf58), gt.memory.lmem_cfg()), (0, 0x8000_0123));
}

#[test]
fn unimplemented_registers_read_zero() {
    proves!(
        V13_018,
        "every dword of the register space without a register reads 0 and drops writes, for the PF and for a VF. The \
        PF's views of the VFs' registers are such dwords where the VF has no register"
    );
    let gt = bench().gt;
    let missing = |offset: u32| gt.registers.decode(offset).is_none();
    let is_hole = |offset: u32| missing(offset) && decode_vf_view(offset).is_none_or(|(_, register)| missing(register));
    let holes: Vec<u32> = (0..REGISTER_BYTES).step_by(4).filter(|offset| is_hole(*offset)).collect();
    assert!(holes.len() > 900_000, "{}", holes.len());
    for function in [Function::PF, Function::new(1).unwrap()] {
        for offset in &holes {
            assert_eq!(gt.mmio_write(function, *offset, !0, !0), None, "{function:?} {offset:#x}");
            assert_eq!(gt.mmio_read(function, *offset), 0, "{function:?} {offset:#x}");
        }
    }
}
