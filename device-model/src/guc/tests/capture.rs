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
    host.enable_rings();
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
    let told = hang(&mut host, 1);
    assert_eq!(told, [vec![2, 0x9000_6000, 1], vec![2, 0x9000_8002, 0], vec![2, 0x9000_1008, 1]]);
    let group: Vec<u32> = (SECTION..SECTION + 29 * 4).step_by(4).map(|at| host.peek(at)).collect();
    let nobody = u32::MAX;
    let lrca = Host::image(1, 0) as u32;
    let expected = [
        &[0, 3][..],
        &[0, 0, nobody, nobody, 1, 0xa008, 0x1111, 5, 6],
        &[0, 0x31, nobody, nobody, 0],
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
