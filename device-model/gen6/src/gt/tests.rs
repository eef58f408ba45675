// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of registers with behaviour.

use std::sync::Arc;

use arctic_base::gpu::Host;
use arctic_base::host::{ManualClock, NullHost};
use arctic_fidelity::proves;

use super::*;
use crate::profile::tests::ivb;

struct GtBench {
    gt: Gt,
    clock: Arc<ManualClock>,
}

fn bench() -> GtBench {
    let clock = Arc::new(ManualClock::default());
    let host = Host { memory: Arc::new(NullHost), interrupts: Arc::new(NullHost), clock: clock.clone() };
    GtBench { gt: Gt::new(&ivb(), host), clock }
}

impl GtBench {
    fn write(&self, offset: u32, value: u32) -> Option<SideEffect> {
        self.gt.write(offset, value, !0)
    }
}

/// G67-031, G67-032: a request is acknowledged at once, in the same bit.
#[test]
fn forcewake_is_acknowledged() {
    let bench = bench();
    for (value, acknowledged) in [(0x0001_0001, 1), (0x8000_8000, 0x8001), (0x0001_0000, 0x8000), (0x8000_0000, 0)] {
        bench.write(0xa188, value);
        assert_eq!(bench.gt.read(0x13_0040), acknowledged, "{value:#x}");
    }
    bench.write(0xa18c, 1);
    assert_eq!((bench.gt.read(0x13_0090), bench.gt.read(0xa180) >> 5 & 1, bench.gt.read(0x13_805c)), (1, 1, 0));
}

/// A write of one byte keeps the others of masks, enables, RC_CONTROL, FORCEWAKE, GMBUS1 and fault registers, also if the
/// write has side effects.
#[test]
fn writes_of_single_bytes_keep_the_others() {
    const IMR: u32 = 0x4_4014;
    const IER: u32 = 0x4_401c;
    const RC_CONTROL: u32 = 0xa090;
    const GMBUS1: u32 = 0xc_5104;
    for offset in [IMR, IER, RC_CONTROL, GMBUS1] {
        let bench = bench();
        bench.write(offset, 0x1122_3344);
        bench.gt.write(offset, 0x55_0000, 0xff_0000);
        assert_eq!(bench.gt.read(offset), 0x1155_3344, "{offset:#x}");
    }
    let bench = bench();
    bench.write(0xa18c, 1);
    bench.gt.write(0xa18c, 0xff00, 0xff00);
    assert_eq!(bench.gt.read(0x13_0090), 1);
    bench.gt.registers.set(0x4094, 0x1234_5001);
    bench.gt.write(0x4094, 0, 0xff00);
    assert_eq!(bench.gt.read(0x4094), 0x1234_5001);
    bench.gt.write(0x4094, 0, 0xff);
    assert_eq!(bench.gt.read(0x4094), 0);
}

/// G67-035: reads of the GT's registers without a forcewake request are reported.
#[test]
fn reads_while_asleep_are_reported() {
    let bench = bench();
    bench.gt.mmio_read(0x7008);
    bench.gt.mmio_read(0x4_4010);
    bench.write(0xa18c, 1);
    bench.gt.mmio_read(0x7004);
    let asleep = bench.gt.report().asleep;
    assert_eq!(asleep.iter().map(|register| register.name.as_deref()).collect::<Vec<_>>(), [Some("GT_MODE")]);
}

/// G67-037: a command is complete when its write is; its status replaces the command.
#[test]
fn the_mailbox_executes_commands() {
    let bench = bench();
    bench.write(0x13_8128, 0x1234);
    bench.write(0x13_8124, 0x8000_000c);
    assert_eq!((bench.gt.read(0x13_8124), bench.gt.read(0x13_8128)), (0, 0));
    bench.write(0x13_8124, 0x8000_007e);
    assert_eq!(bench.gt.read(0x13_8124), 1, "an illegal command");
}

/// G67-040: the residency counts units of 1.28 us while RC6 is enabled and nothing keeps the GT awake.
#[test]
fn rc6_residency_counts() {
    let bench = bench();
    bench.clock.advance(1_280_000);
    assert_eq!(bench.gt.read(0x13_8108), 0);
    bench.write(0xa090, 1 << 31 | 1 << 18);
    bench.clock.advance(1_280_000);
    assert_eq!(bench.gt.read(0x13_8108), 1000);
    bench.write(0xa188, 0x0001_0001);
    bench.clock.advance(1_280_000);
    assert_eq!(bench.gt.read(0x13_8108), 1000, "awake");
    bench.write(0xa188, 0x0001_0000);
    bench.write(0x2_203c, 1);
    bench.write(0x2_2030, 8);
    bench.write(0xa094, 4 << 16);
    bench.clock.advance(1280);
    assert_eq!(bench.gt.read(0x13_8108), 1000, "an engine has work");
}

/// G67-038: the current frequency is the requested one.
#[test]
fn the_frequency_follows_the_request() {
    let bench = bench();
    bench.write(0xa008, 13 << 25);
    assert_eq!(bench.gt.read(0xa01c) >> 8 & 0x7f, 13);
}

/// G67-025: a transfer of the display's bus ends with a missing acknowledgement at once, which the driver clears.
#[test]
fn the_bus_of_the_monitors_has_no_device() {
    let bench = bench();
    assert_eq!(bench.gt.read(0xc_5108), 1 << 11);
    bench.write(0xc_5104, 1 << 30 | 1 << 25 | 0xa1);
    assert_eq!(bench.gt.read(0xc_5108), 1 << 11 | 1 << 10);
    bench.write(0xc_5104, 1 << 31);
    bench.write(0xc_5104, 0);
    assert_eq!(bench.gt.read(0xc_5108), 1 << 11);
    assert_eq!(bench.gt.read(0xc_5010), 0x1010, "the lines are high");
}

/// IVB-055: the idle bit is computed; IVB-064: a sync flush is complete at once; IVB-181: writing 0 to the bit of a wait
/// keeps it, writing 1 clears it.
#[test]
fn modes_of_an_engine() {
    proves!(
        [IVB_055, IVB_057, IVB_065, IVB_181, ILK_099, ILK_112],
        "the idle bit is computed; a sync flush is complete at once; writing 0 to the bit of a wait keeps it"
    );
    let bench = bench();
    let bcs = EngineId::new(2);
    assert_eq!(bench.gt.read(0x2_209c), 1 << 9, "the ring is disabled");
    bench.write(0x2_203c, 0x3001);
    assert_eq!(bench.write(0x2_2030, 0x17), Some(SideEffect::Wake(bcs)));
    assert_eq!((bench.gt.read(0x2_2030), bench.gt.read(0x2_209c)), (0x10, 0));
    assert!(!bench.gt.engines_idle());
    bench.write(0x2_209c, 0x0100_0100);
    assert_eq!(bench.gt.read(0x2_209c), 1 << 9 | 1 << 8, "stopped");
    bench.write(0x20c0, 0x0220_0220);
    assert_eq!(bench.gt.read(0x20c0), 1 << 9);
    bench.gt.registers.set_bits(0x2_203c, 1 << 11 | 1 << 10);
    bench.write(0x2_203c, 0x3001);
    assert_eq!(bench.gt.read(0x2_203c), 0x3c01);
    bench.write(0x2_203c, 0x3801);
    assert_eq!(bench.gt.read(0x2_203c), 0x3401);
    bench.write(0x209c, 0x0001_0001);
    assert_eq!(bench.gt.read(0x209c), 1 << 9 | 1, "stored");
}

/// IVB-116: the timestamp has units of 80 ns and 36 bits, and a reset of the GT keeps it.
#[test]
fn timestamps() {
    proves!([IVB_116, ILK_093], "the timestamp has units of 80 ns and 36 bits, and a reset of the GT keeps it");
    let bench = bench();
    bench.clock.advance(80 << 32);
    bench.gt.reset_domains(1);
    for base in [0x2000, 0x1_2000, 0x2_2000] {
        assert_eq!((bench.gt.read(base + 0x358), bench.gt.read(base + 0x35c)), (0, 1));
    }
    bench.clock.advance(800);
    assert_eq!(bench.gt.read(0x2358), 10);
    bench.clock.advance(80 * (1 << 36));
    assert_eq!((bench.gt.read(0x2358), bench.gt.read(0x235c)), (10, 1));
}

/// G67-110, G67-113: a reset of a domain resets its engine; fences and power management are not changed.
#[test]
fn resets_of_domains() {
    proves!(
        [ILK_063, ILK_172, ILK_175],
        "a reset of a domain disables its ring and keeps the fences; a reset of the function clears them"
    );
    let bench = bench();
    let fill = || {
        for offset in [0x2038, 0x1_2038, 0x2_2038, 0x7008, 0x10_0000, 0xa010, 0x4_5000] {
            bench.write(offset, 0x1f00_1000);
        }
    };
    let values = || [0x2038, 0x1_2038, 0x2_2038, 0x10_0000, 0xa010].map(|offset| bench.gt.read(offset) != 0);
    fill();
    assert_eq!(bench.write(0x941c, 8), Some(SideEffect::Reset(8)));
    bench.gt.reset_domains(8);
    assert_eq!((values(), bench.gt.read(0x941c)), ([true, true, false, true, true], 0));
    fill();
    bench.gt.reset_domains(2);
    assert_eq!((values(), bench.gt.read(0x7008)), ([false, true, true, true, true], 0x200));
    fill();
    bench.gt.reset_domains(1);
    assert_eq!(values(), [false, false, false, true, true]);
    bench.gt.reset();
    assert_eq!(values(), [false; 5]);
}

/// Accesses to registers that are not modelled read 0 and are reported.
#[test]
fn unmodelled_registers_are_reported() {
    let bench = bench();
    assert_eq!(bench.gt.mmio_read(0x5_0000), 0);
    bench.write(0x5_0000, 1);
    let report = bench.gt.report();
    let found: Vec<_> =
        report.unmodelled.iter().map(|touched| (touched.offset, touched.reads, touched.writes)).collect();
    assert_eq!(found, [(0x5_0000, 1, 1)]);
}
