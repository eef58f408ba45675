// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The unit: reset, functions, registers, status.

use super::*;

#[test]
fn only_a_reset_of_the_gt_resets_oag() {
    proves!(V13_212, "the reset of an engine keeps OAG's registers and counters; a reset of the GT clears them");
    let stream = Stream::new();
    let gt = &stream.gt;
    stream.enable(Some(5));
    gt.start_context_clock(XE_HPG.engines.find(EngineClass::Render, 0).unwrap());
    stream.at(2880);
    let (ticks, busy) = (gt.read(0xda90), gt.read(0xd980));
    gt.registers.reset_engine(XE_HPG.engines.find(EngineClass::Render, 0).unwrap());
    stream.settle();
    assert_eq!((gt.read(CONTROL), gt.read(BUFFER), gt.read(GLOBAL_CONTROL)), (5 << 2 | 1, BASE | 1, 3 | 5 << 2));
    assert_eq!((gt.read(0xda90), gt.read(0xd980), stream.tail()), (ticks, busy, 45 * 256));
    gt.reset_observation();
    let all = [CONTROL, DEBUG, STATUS, HEAD, TAIL, BUFFER, GLOBAL_CONTROL, 0xda90, 0xd980, 0xd940];
    assert!(all.iter().all(|register| gt.read(*register) == 0));
    stream.at(5000);
    stream.settle();
    assert_eq!(gt.read(TAIL), 0);
    assert_ne!(gt.read(0xda90), 0, "the clock runs");
}

/// A VF reaches nothing of OAG by MMIO.
#[test]
fn a_vf_has_no_oag() {
    proves!(V13_218, "OAG is the PF's: its registers read 0 for a VF, which cannot write them");
    let stream = Stream::new();
    stream.enable(Some(5));
    stream.at(1000);
    stream.settle();
    let vf = Function::vf(1).unwrap();
    for register in (0xd900..0xdc00).step_by(4).chain([GLOBAL_CONTROL, 0x2b00, 0x9888, 0xd04]) {
        assert_eq!(stream.gt.mmio_read(vf, register), 0, "{register:#x}");
        let before = stream.gt.registers.value(register);
        assert_eq!(stream.gt.mmio_write(vf, register, !0, !0), None);
        assert_eq!(stream.gt.registers.value(register), before);
    }
}

/// The step is one of the unit, so that whatever waits for its steps does.
#[test]
fn a_step_is_recorded_as_the_units() {
    let stream = Stream::new();
    assert!(!stream.gt.memory.used_by(UnitId::Observation, 1));
    let _views = stream.gt.memory.step_views(UnitId::Observation);
}

#[test]
fn the_registers_of_observation_exist() {
    proves!(
        [V13_235, V13_236],
        "context id, status, pointers and buffer, triggers, the sixteen registers of the comparisons, those of the flexible \
        counters, and the counters themselves"
    );
    let GtBench { gt, .. } = bench();
    let run = |first: u32, dwords: u32| (0..dwords).map(move |n| first + 4 * n);
    let registers = [0x2364, 0x2968, 0x1_511c, 0xdafc, 0xdb00, 0xdb04, 0xdb08, 0xd924, 0xd934, 0xda90, 0xdb20, 0xdb28];
    let flexible = [0xe458, 0xe558, 0xe658, 0xe758, 0xe45c, 0xe55c, 0xe65c];
    let counters = run(0xd980, 64).chain(run(0xda80, 4)).chain(run(0xda94, 16));
    let all = registers.into_iter().chain(flexible).chain(run(0xd940, 16)).chain(counters);
    for register in all {
        assert!(gt.registers.decode(register).is_some(), "{register:#x}");
    }
    for (register, value) in flexible.into_iter().zip(1..) {
        gt.write(register, value << 24 | 0x5a);
        assert_eq!(gt.read(register), value << 24 | 0x5a);
    }
}

#[test]
fn the_status_shows_the_stream() {
    let stream = Stream::new();
    assert_eq!(stream.gt.stream_status(), None);
    stream.enable(Some(5));
    stream.at(100);
    stream.settle();
    let status = stream.gt.stream_status().unwrap();
    assert_eq!((status.unit.as_str(), status.enabled, status.period_ns), ("OAG", true, Some(1667)));
    assert_eq!((status.bytes, status.written, status.lost), (256, 2, 0));
    stream.write(CONTROL, 1 << 2);
    let status = stream.gt.stream_status().unwrap();
    assert_eq!((status.enabled, status.bytes, status.written), (false, 448, 2));
}
