// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Error capture: contents of the log after an engine reset.

use super::*;
use crate::registers::whitelist::Wanted;
use arctic_fidelity::proves;

/// Log with a section of one page each: states, events, crash dump, captures.
const LOG: u64 = 0x88_0000;
const SECTION: u64 = LOG + 0x3000;
const READ_POINTER: u64 = LOG + 72 + 8;

fn host() -> Host {
    let mut host = Host::new();
    let list = |at: u64, registers: &[u32]| {
        host.poke(at, registers.len() as u32);
        for (n, offset) in (0u64..).zip(registers) {
            for (at, value) in (at + 4 + n * 16..).step_by(4).zip([*offset, 0, 5, 6]) {
                host.poke(at, value);
            }
        }
        at as u32
    };
    host.poke(ADS + 0x119c, list(SCRATCH + 0x100, &[0xa008]));
    host.poke(ADS + 0x111c + 3 * 4, list(SCRATCH + 0x200, &[]));
    host.poke(ADS + 0x109c + 3 * 4, list(SCRATCH + 0x300, &[0x068, 0x034]));
    host.gt.registers.set(0xc180 + 4, LOG as u32 | 1);
    assert_eq!(host.upload(), 0x8001_f0ec);
    host.enable_rings(CTB + ct::G2H);
    host
}

fn hang(host: &mut Host, id: u32) -> Vec<Vec<u32>> {
    host.start(id, EngineClass::Copy, 1, 2);
    host.gt.registers.set(0xa008, 0x1111);
    host.gt.registers.set(0x2_2068, 0x2222);
    host.gt.registers.set(0x2_2034, 0x3333);
    host.end("bcs0", Outcome::Halted(Halt::Fault(FAULT)));
    host.stepped()
}

/// Contract B.13: global, class and instance registers are captured as one group, which is reported before the reset
/// (xe: xe_guc_capture.c).
#[test]
fn a_reset_leaves_the_engines_registers() {
    let mut host = host();
    let notified = hang(&mut host, 1);
    assert_eq!(notified, [vec![2, 0x9000_6000, 1], vec![2, 0x9000_8002, 0], vec![2, 0x9000_1008, 1]]);
    let group: Vec<u32> = (SECTION..SECTION + 29 * 4).step_by(4).map(|at| host.peek(at)).collect();
    let none = u32::MAX;
    let lrca = Host::image(1, 0) as u32;
    let expected = [
        &[0, 3][..],
        &[0, 0, none, none, 1, 0xa008, 0x1111, 5, 6],
        &[0, 0x31, none, none, 0],
        &[0, 0x32, lrca, 1, 2, 0x068, 0x2222, 5, 6, 0x034, 0x3333, 5, 6],
    ];
    assert_eq!(group, expected.concat());
    let state = [0x8, 0xc, 0x10, 0x14, 0x1c].map(|at| host.peek(LOG + 72 + at));
    assert_eq!(state, [0, 116, 0x1000, 116, 1], "read, written, size, sampled, to be flushed");
}

/// Contract B.13: the section is a ring. If the host does not read it, the status is "no space". Invalid pointers in
/// the state are treated as 0.
#[test]
fn the_section_is_a_ring() {
    let mut host = host();
    let no_space = (1..=40).find(|id| hang(&mut host, *id)[1] == [2, 0x9000_8002, 1]);
    assert_eq!(no_space, Some(36), "35 groups of 116 bytes in a page");
    host.poke(READ_POINTER, 35 * 116);
    assert_eq!(hang(&mut host, 50)[1], [2, 0x9000_8002, 0]);
    let wrapped = 36 * 116 - 0x1000;
    assert_eq!(host.peek(LOG + 72 + 0xc), wrapped);
    assert_eq!(host.peek(SECTION + u64::from(wrapped) - 12), 0x3333);
    host.poke(LOG + 72 + 0xc, 0xffff_fffd);
    host.poke(READ_POINTER, 0xffff_ffff);
    assert_eq!(hang(&mut host, 51)[1], [2, 0x9000_8002, 0]);
    assert_eq!(host.peek(LOG + 72 + 0xc), 116);
}

#[test]
fn the_guc_reads_registers_without_a_whitelist() {
    proves!(
        V13_177,
        "the GuC reads any register, also those that no whitelist opens to a context. It submits to the engine, \
        notices the hang, and notifies the host"
    );
    let mut host = host();
    let engine = engine_named("bcs0");
    let listed = [(SCRATCH + 0x104, 0xa210, 0xa210, 6), (SCRATCH + 0x304, 0x80, 0x2_2080, 20)];
    for (entry, listed, register, _) in listed {
        host.poke(entry, listed);
        host.gt.registers.set(register, 0x1234_5000 + listed);
        assert!(!host.gt.registers.whitelist(engine).permits(register, Wanted::Read), "{register:#x}");
    }
    let reports = hang(&mut host, 1);
    assert_eq!(reports.last().unwrap()[1..], [0x9000_1008, 1], "CONTEXT_RESET_NOTIFICATION");
    for (_, listed, register, dword) in listed {
        let at = SECTION + (1 + dword) * 4;
        assert_eq!([host.peek(at), host.peek(at + 4)], [listed, 0x1234_5000 + listed], "{register:#x}");
    }
}

#[test]
fn the_guc_steers_by_its_own_register() {
    proves!(
        V13_141,
        "the GuC's accesses to replicated registers of all kinds of units are steered by 0xC060, and not by the \
        registers of the CPU or of a streamer. A list entry that names an instance is read from it, and the steering \
        is restored"
    );
    // A register of a DSS, an LNCF, an L3 bank, an MSLICE and a GSLICE.
    let units = |host: &Host| {
        let replicated = |offset: &u32| host.gt.registers.decode(*offset).is_some_and(|found| found.replicated());
        [(0xe100, 0xe8ff), (0xb000, 0xb0ff), (0xb100, 0xb3ff), (0xdd00, 0xddff), (0x5400, 0x7fff)]
            .map(|(first, last): (u32, u32)| (first..last).step_by(4).find(replicated))
    };
    let found = units(&host());
    assert!(found.iter().flatten().count() >= 4, "{found:x?}");
    for offset in found.into_iter().flatten() {
        let mut host = host();
        let range = host.gt.registers.decode(offset).unwrap().range.unwrap();
        let of = |slice: u32, subslice: u32| range.replication.selected((slice << 27 | subslice << 24).into()).unwrap();
        // Two instances of the unit.
        let (first, second) = ((0, 0), if of(2, 0) == of(0, 0) { (0, 1) } else { (2, 0) });
        host.gt.registers.set_instance(offset, of(first.0, first.1), 0x1111);
        host.gt.registers.set_instance(offset, of(second.0, second.1), 0x2222);
        host.poke(SCRATCH + 0x104, offset);
        let captured = |host: &mut Host, id: u32, flags: u32| {
            host.poke(SCRATCH + 0x10c, flags);
            host.poke(READ_POINTER, host.peek(LOG + 72 + 0xc));
            let at = SECTION + u64::from(host.peek(LOG + 72 + 0xc)) + 8 * 4;
            hang(host, id);
            assert_eq!([host.peek(at - 4), host.peek(at + 4)], [offset, flags]);
            host.peek(at)
        };
        let steered = second.0 << 12 | second.1 << 20;
        assert_eq!(captured(&mut host, 1, 2), 0x1111, "{offset:#x}: the named instance");
        assert_eq!(captured(&mut host, 2, 2 | steered), 0x2222, "{offset:#x}: the named instance");
        assert_eq!(captured(&mut host, 3, steered), 0x2222, "{offset:#x}: without the flag, as i915");
        assert_eq!(host.gt.read(0xc060), 1 << 31, "the steering is restored");
        host.gt.write(0xc060, second.0 << 27 | second.1 << 24);
        assert_eq!(captured(&mut host, 4, 0), 0x2222, "{offset:#x}: the GuC's steering");
        host.gt.write(0xc060, 1 << 31);
        for other in [0xfd0, 0xfd4, 0xfd8, 0xfdc, 0xfe0, 0x20cc, 0x2_20cc] {
            host.gt.registers.set(other, second.0 << 27 | second.1 << 24);
        }
        assert_eq!(captured(&mut host, 5, 0), 0x1111, "{offset:#x}: the steering of others");
        assert_eq!(host.gt.read(0xc060), 1 << 31);
    }
}
