// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Independent transcription of the whitelists in the order of the PRM (Volume 8, "Read Only User Mode Privilege MMIO
//! Access" and "User Mode Privileged Commands"), compared with the implementation for every dword.

use super::*;
use crate::command::Requester;
use crate::engine::whitelist::{Wanted, permits};
use crate::generation::XE_HPG;
use arctic_fidelity::proves;

/// Offset and size in dwords, as in the PRM.
type Row = (u32, u32);

/// Register Access and User Mode Privileges, "Base address": engine bases.
#[rustfmt::skip]
pub(super) const BASES: [(EngineClass, u8, u32); 18] = [
    (EngineClass::Render, 0, 0x2000), (EngineClass::Copy, 0, 0x22000),
    (EngineClass::Compute, 0, 0x1a000), (EngineClass::Compute, 1, 0x1c000),
    (EngineClass::Compute, 2, 0x1e000), (EngineClass::Compute, 3, 0x26000),
    (EngineClass::VideoDecode, 0, 0x1c0000), (EngineClass::VideoDecode, 1, 0x1c4000),
    (EngineClass::VideoDecode, 2, 0x1d0000), (EngineClass::VideoDecode, 3, 0x1d4000),
    (EngineClass::VideoDecode, 4, 0x1e0000), (EngineClass::VideoDecode, 5, 0x1e4000),
    (EngineClass::VideoDecode, 6, 0x1f0000), (EngineClass::VideoDecode, 7, 0x1f4000),
    (EngineClass::VideoEnhance, 0, 0x1c8000), (EngineClass::VideoEnhance, 1, 0x1d8000),
    (EngineClass::VideoEnhance, 2, 0x1e8000), (EngineClass::VideoEnhance, 3, 0x1f8000),
];
/// From the same table: AV1/VDBOX0..7 and HEVC0..7.
const AV1: [u32; 8] = [0x1c2b00, 0x1c6b00, 0x1d2b00, 0x1d6b00, 0x1e2b00, 0x1e6b00, 0x1f2b00, 0x1f6b00];
const HEVC: [u32; 8] = [0x1c2800, 0x1c6800, 0x1d2800, 0x1d6800, 0x1e2800, 0x1e6800, 0x1f2800, 0x1f6800];

/// Reads, all command streamers (V8-176).
#[rustfmt::skip]
const READ_ALL: &[Row] = &[
    (0x2700, 64), (0x2b00, 320), (0xd900, 192), (0xdafc, 1), (0xdb00, 1), (0xdb04, 1), (0x145040, 7), (0x145828, 13),
    (0x145928, 24), (0xa01c, 1), (0x138108, 1), (0x13810c, 1), (0xd00, 1),
];
/// Reads, render: absolute (V8-177).
#[rustfmt::skip]
const READ_RCS: &[Row] = &[
    (0x2358, 2), (0x18358, 2), (0x208c, 1), (0x1808c, 1), (0x2800, 192), (0xa288, 1), (0xa28c, 1), (0xa538, 1),
    (0xa53c, 1), (0xa058, 1), (0xa064, 1), (0xa068, 1), (0xa06c, 1), (0x138108, 1), (0x13810c, 1), (0x23a8, 1),
];
/// Reads, compute: relative to the base, and absolute (V8-178).
const READ_CCS_OWN: &[Row] = &[(0x358, 2), (0x8c, 1), (0x3a8, 1)];
#[rustfmt::skip]
const READ_CCS: &[Row] = &[
    (0xa288, 1), (0xa28c, 1), (0xa538, 1), (0xa53c, 1), (0xa058, 1), (0xa064, 1), (0xa068, 1), (0xa06c, 1),
    (0x138108, 1), (0x13810c, 1), (0x15000, 160),
];
/// Reads, copy: absolute, including the row CS_CTX_TIMESTAMP (BCS + 3A8) (V8-179).
#[rustfmt::skip]
const READ_BCS: &[Row] = &[
    (0x22358, 2), (0x2208c, 1), (0x223a8, 1), (0xa01c, 1), (0x91b8, 1), (0x91bc, 1), (0x91c0, 1), (0x91c4, 1),
    (0x145040, 7), (0x145828, 13), (0x145928, 24), (0xa288, 1), (0xa28c, 1), (0xa538, 1), (0xa53c, 1), (0xa058, 1),
    (0xa064, 1), (0xa068, 1), (0xa06c, 1),
];
/// Reads, video decode and video enhancement: relative to the base, and absolute. The list for video enhancement
/// repeats 138108 and 13810C, which are in the list for all engines (V8-180).
const READ_MEDIA_OWN: &[Row] = &[(0x358, 2), (0x3a8, 1), (0x8c, 1)];
#[rustfmt::skip]
const READ_MEDIA: &[Row] = &[
    (0x91b8, 1), (0x91bc, 1), (0x91c0, 1), (0x91c4, 1), (0xa288, 1), (0xa28c, 1), (0xa538, 1), (0xa53c, 1), (0xa058, 1),
    (0xa064, 1), (0xa068, 1), (0xa06c, 1),
];
/// Writes, render: absolute (V8-181).
#[rustfmt::skip]
const WRITE_RCS: &[Row] = &[
    (0x7000, 1), (0x7004, 1), (0x7008, 1), (0x2094, 1), (0x20c0, 1), (0x2310, 2), (0x2318, 2), (0x2320, 2),
    (0x2300, 2), (0x2308, 2), (0x2328, 2), (0x2330, 2), (0x5200, 2), (0x5208, 2), (0x5210, 2), (0x5218, 2),
    (0x5240, 2), (0x5248, 2), (0x5250, 2), (0x5258, 2), (0x5280, 1), (0x5284, 1), (0x5288, 1), (0x528c, 1),
    (0x2338, 2), (0x2340, 2), (0x2348, 2), (0x2350, 2), (0x22c8, 2), (0x22d8, 2), (0x22f0, 2), (0x22f8, 2),
    (0x2448, 2), (0x2450, 2), (0x2458, 2), (0x2460, 2), (0x2468, 2), (0x2470, 2), (0x24a0, 2), (0x24a8, 2),
    (0x25d0, 2), (0x25b0, 2), (0x25d8, 2), (0x25b8, 2), (0x2478, 2), (0x2500, 1), (0x2504, 1), (0x2508, 1),
    (0x2400, 1), (0x2404, 1), (0x2408, 1), (0x240c, 1), (0x2410, 1), (0x2414, 1), (0x2418, 1), (0x241c, 1),
    (0x23bc, 1), (0x2420, 1), (0x2430, 1), (0x2434, 1), (0x2438, 1), (0x243c, 1), (0x2440, 1), (0x2690, 1),
    (0x2694, 1), (0x2698, 1), (0x2290, 2), (0x2158, 1), (0x2600, 32), (0x2360, 1), (0x2aa0, 1), (0x2364, 1),
    (0x2960, 1), (0x2968, 1), (0x2178, 1), (0x217c, 1), (0xe518, 1), (0x17520, 1), (0x7038, 1), (0x2084, 1),
    (0x7040, 1), (0x4400, 1), (0x4404, 1), (0x4408, 1), (0x440c, 1), (0x4410, 1), (0x4414, 1), (0xb100, 1),
    (0xb118, 1), (0xb158, 1), (0xb15c, 1), (0xb134, 1), (0xb138, 1), (0x23b4, 1), (0x23b8, 1), (0x221c, 1),
    (0x21fc, 1), (0x26e8, 2), (0x26e0, 2), (0x26f0, 1), (0x26f4, 1), (0x26d8, 2),
];
/// Writes, compute: relative to the base, and absolute for all instances (V8-182).
#[rustfmt::skip]
const WRITE_CCS_OWN: &[Row] = &[
    (0x94, 1), (0xc0, 1), (0x500, 1), (0x504, 1), (0x508, 1), (0x400, 1), (0x404, 1), (0x408, 1), (0x40c, 1),
    (0x410, 1), (0x414, 1), (0x418, 1), (0x41c, 1), (0x3bc, 1), (0x290, 2), (0x158, 1), (0x600, 32), (0x178, 1),
    (0x17c, 1), (0x84, 1), (0x3b4, 1), (0x3b8, 1), (0x21c, 1), (0x1fc, 1), (0x360, 1), (0x364, 1),
];
const WRITE_CCS: &[Row] = &[(0x151e0, 1), (0x15114, 1), (0x1511c, 1)];
/// First of the six registers of each compute engine's tiled resource table (V8-182).
const TRTT_CCS: [u32; 4] = [0x4580, 0x45a0, 0x45c0, 0x45e0];
/// Writes, copy: absolute (V8-183).
#[rustfmt::skip]
const WRITE_BCS: &[Row] = &[
    (0x22600, 32), (0x22200, 1), (0x22204, 1), (0x22178, 1), (0x2217c, 1), (0x4480, 1), (0x4484, 1), (0x4488, 1),
    (0x448c, 1), (0x4490, 1), (0x4494, 1), (0x22094, 1), (0x2241c, 1), (0x223bc, 1), (0x220c0, 1), (0x223b4, 1),
    (0x223b8, 1), (0x2221c, 1), (0x221fc, 1),
];
/// Writes, video enhancement: relative to the base (V8-184).
#[rustfmt::skip]
const WRITE_VECS_OWN: &[Row] = &[
    (0x600, 32), (0x178, 1), (0x17c, 1), (0x94, 1), (0x41c, 1), (0x3bc, 1), (0xc0, 1), (0x3b4, 1), (0x3b8, 1),
    (0x21c, 1), (0x1fc, 1),
];
/// Writes, video decode: relative to the base, except HEVC + 0 x 64, which is relative to the HEVC block (V8-184).
#[rustfmt::skip]
const WRITE_VCS_OWN: &[Row] = &[
    (0x600, 32), (0x178, 1), (0x17c, 1), (0x800, 512), (0x94, 1), (0x41c, 1), (0x3bc, 1), (0xc0, 1), (0x3b4, 1),
    (0x3b8, 1), (0x21c, 1), (0x1fc, 1),
];
const WRITE_HEVC: Row = (0, 64);
/// First of the six registers of the media engines' tiled resource tables: VDBOX 0..3, VEBOX 0 and 1 (V8-185).
const TRTT_VCS: [u32; 4] = [0x4420, 0x4440, 0x4520, 0x4540];
const TRTT_VECS: [u32; 2] = [0x4460, 0x4560];

/// Dwords that non-privileged batches on an engine may read and write according to the PRM.
struct Expected {
    read: Vec<bool>,
    write: Vec<bool>,
}

impl Expected {
    fn of(class: EngineClass, instance: usize, base: u32) -> Self {
        let mut lists = Expected { read: vec![false; SPACE / 4], write: vec![false; SPACE / 4] };
        lists.readable(0, READ_ALL);
        match class {
            EngineClass::Render => {
                lists.readable(0, READ_RCS);
                lists.writable(0, WRITE_RCS);
            }
            EngineClass::Compute => {
                lists.readable(base, READ_CCS_OWN);
                lists.readable(0, READ_CCS);
                lists.writable(base, WRITE_CCS_OWN);
                lists.writable(0, WRITE_CCS);
                lists.writable(TRTT_CCS[instance], &[(0, 6)]);
            }
            EngineClass::Copy => {
                lists.readable(0, READ_BCS);
                lists.writable(0, WRITE_BCS);
            }
            EngineClass::VideoDecode => {
                lists.readable(base, READ_MEDIA_OWN);
                lists.readable(0, READ_MEDIA);
                lists.writable(base, WRITE_VCS_OWN);
                lists.writable(HEVC[instance], &[WRITE_HEVC]);
                TRTT_VCS.get(instance).into_iter().for_each(|first| lists.writable(*first, &[(0, 6)]));
            }
            EngineClass::VideoEnhance => {
                lists.readable(base, READ_MEDIA_OWN);
                lists.readable(0, READ_MEDIA);
                lists.writable(base, WRITE_VECS_OWN);
                TRTT_VECS.get(instance).into_iter().for_each(|first| lists.writable(*first, &[(0, 6)]));
            }
        }
        lists
    }

    fn readable(&mut self, base: u32, rows: &[Row]) {
        for (offset, dwords) in rows {
            (0..*dwords).for_each(|n| self.read[((base + offset) / 4 + n) as usize] = true);
        }
    }

    fn writable(&mut self, base: u32, rows: &[Row]) {
        self.readable(base, rows);
        for (offset, dwords) in rows {
            (0..*dwords).for_each(|n| self.write[((base + offset) / 4 + n) as usize] = true);
        }
    }
}

const SPACE: usize = 0x20_0000;

#[test]
fn every_dword_on_every_engine() {
    proves!(
        [
            V8_003, V8_004, V8_006, V8_175, V8_176, V8_177, V8_178, V8_179, V8_180, V8_181, V8_182, V8_183, V8_184,
            V8_185
        ],
        "read and write permission of every dword of 2 MiB, for non-privileged batches of every engine. No register \
        beyond 2 MiB is permitted (traps T20, T33, T34)"
    );
    let bench = EngineBench::new(EngineClass::Copy);
    for (class, instance, base) in BASES {
        let engine = XE_HPG.engines.find(class, instance).unwrap();
        let expected = Expected::of(class, usize::from(instance), base);
        let list = bench.gt.registers.whitelist(engine);
        let listed = |offset| (list.permits(offset, Wanted::Read), list.permits(offset, Wanted::Write));
        let verdict = |offset| {
            let permitted = |wanted| permits(&bench.gt.registers, engine, Requester::PfUser, offset, wanted);
            (permitted(Wanted::Read), permitted(Wanted::Write))
        };
        let mut last = (true, true);
        for n in 0..SPACE / 4 {
            let offset = n as u32 * 4;
            let due = (expected.read[n], expected.write[n]);
            assert_eq!(listed(offset), due, "{} {offset:#x}", XE_HPG.engines.info(engine).name);
            // The slots are empty. The check that includes them is tested only at the boundaries of the lists.
            if due != last {
                assert_eq!(verdict(offset), due, "{} {offset:#x}", XE_HPG.engines.info(engine).name);
                last = due;
            }
        }
        let beyond = (SPACE as u32..crate::registers::REGISTER_BYTES).step_by(4);
        assert!(beyond.into_iter().all(|offset| listed(offset) == (false, false)));
        let written = expected.write.iter().filter(|written| **written).count();
        // Totals in the PRM: 173 dwords for render, 58 + 3 + 6 for compute, 50 for copy, 618 and 42 for media, plus 6
        // for TRTT.
        let with_table =
            matches!((class, instance), (EngineClass::VideoDecode, 0..=3) | (EngineClass::VideoEnhance, 0..=1));
        let sum = match class {
            EngineClass::Render => 173,
            EngineClass::Compute => 67,
            EngineClass::Copy => 50,
            EngineClass::VideoDecode => 618 + 6 * usize::from(with_table),
            EngineClass::VideoEnhance => 42 + 6 * usize::from(with_table),
        };
        assert_eq!(written, sum, "{}", XE_HPG.engines.info(engine).name);
    }
}

#[test]
fn media_blocks_have_their_bases() {
    proves!(V8_003, "bases of the media blocks. No register of the AV1 blocks is whitelisted");
    for n in 0..8 {
        let info = XE_HPG.engines.info(XE_HPG.engines.find(EngineClass::VideoDecode, n).unwrap());
        let at = usize::from(n);
        assert_eq!((info.hevc_base(), info.av1_base()), (Some(HEVC[at]), Some(AV1[at])));
    }
    for class in [EngineClass::Render, EngineClass::Copy, EngineClass::Compute, EngineClass::VideoEnhance] {
        let info = XE_HPG.engines.info(XE_HPG.engines.find(class, 0).unwrap());
        assert_eq!((info.hevc_base(), info.av1_base()), (None, None));
    }
}

#[test]
fn a_decoder_reaches_its_hevc_block() {
    proves!(
        [V8_184, V8_003],
        "a non-privileged batch of a video decoder can write exactly the 64 dwords of its HEVC block"
    );
    for (offset, refused) in [(0x1c2800, 0), (0x1c28fc, 0), (0x1c2900, 1), (0x1c27fc, 1), (0x1c6800, 1)] {
        let mut bench = EngineBench::new(EngineClass::VideoDecode);
        assert_eq!(bench.batch(&[MI_LOAD_REGISTER_IMM | 1, offset, 5]), Outcome::Complete);
        assert_eq!(bench.engine.counters().register_refusals, refused, "{offset:#x}");
    }
}

#[test]
fn the_second_window_of_the_render_streamer() {
    proves!(
        V8_006,
        "timestamp and engine ID in the second register range of the render streamer are readable in a \
        non-privileged batch of the render engine, and denied on other engines"
    );
    for class in [EngineClass::Render, EngineClass::Copy] {
        let mut bench = EngineBench::new(class);
        bench.clock.advance(XE_HPG.timebase.nanoseconds(0x1_2345_6789));
        bench.put64(DATA, u64::MAX);
        bench.put(DATA + 8, u32::MAX);
        let mut commands = Vec::new();
        for (n, register) in [0x18358u32, 0x1835c, 0x1808c].into_iter().enumerate() {
            commands.extend([MI_STORE_REGISTER_MEM | 2, register, (VA + DATA) as u32 + 4 * n as u32, 0]);
        }
        assert_eq!(bench.batch(&commands), Outcome::Complete);
        let refused = bench.engine.counters().register_refusals;
        if class == EngineClass::Render {
            assert_eq!((bench.get64(DATA), bench.get(DATA + 8), refused), (bench.gt.timestamp(), 0, 0));
        } else {
            assert_eq!((bench.get64(DATA), bench.get(DATA + 8), refused), (0, 0, 3));
        }
    }
}

#[test]
fn slots_open_and_forbid() {
    proves!(
        V8_186,
        "each of the twenty slots permits or denies reads, writes or both for exactly the registers of its range. A \
        deny slot overrides whitelists and other slots (trap T22, contract K.3)"
    );
    const READ: u32 = 1 << 28;
    const WRITE: u32 = 2 << 28;
    const NONE: u32 = 3 << 28;
    const DENY: u32 = 1 << 30;
    let bench = EngineBench::new(EngineClass::Copy);
    let engine = bench.engine.id();
    let base = bench.base();
    let verdict = |offset| {
        [Wanted::Read, Wanted::Write]
            .map(|wanted| permits(&bench.gt.registers, engine, Requester::PfUser, offset, wanted))
    };
    let places =
        (0..12).map(|n| 0x4d0 + 4 * n).chain((0..4).map(|n| 0x10 + 4 * n)).chain((0..4).map(|n| 0x1d0 + 4 * n));
    let slots: Vec<u32> = places.map(|offset| base + offset).collect();
    assert_eq!(slots.len(), 20);
    for slot in &slots {
        for (range, dwords) in [(0, 1), (1, 4), (2, 16), (3, 64)] {
            for (access, expected) in
                [(0, [true; 2]), (READ, [true, false]), (WRITE, [false, true]), (NONE, [false; 2])]
            {
                bench.gt.registers.set(*slot, 0xc400 | range | access);
                assert_eq!([0xc400, 0xc400 + 4 * (dwords - 1)].map(verdict), [expected; 2], "{slot:#x} {range}");
                assert_eq!([0xc3fc, 0xc400 + 4 * dwords].map(verdict), [[false; 2]; 2], "{slot:#x} {range}");
            }
        }
        // The register is whitelisted on all engines, but a slot can deny it.
        for (access, expected) in [(0, [false; 2]), (READ, [false, true]), (WRITE, [true, false]), (NONE, [true; 2])] {
            bench.gt.registers.set(*slot, (base + 0x600) | access | DENY);
            assert_eq!(verdict(base + 0x600), expected, "{slot:#x}");
        }
        bench.gt.registers.set(*slot, 0);
        assert_eq!(verdict(base + 0x600), [true; 2]);
    }
    for (first, second) in [(0xc400 | DENY, 0xc400), (0xc400, 0xc400 | DENY)] {
        bench.gt.registers.set(slots[0], first);
        bench.gt.registers.set(slots[19], second);
        assert_eq!(verdict(0xc400), [false; 2]);
    }
    // Slots apply only to their engine.
    let other = XE_HPG.engines.find(EngineClass::Render, 0).unwrap();
    bench.gt.registers.set(slots[0], 0xc400);
    bench.gt.registers.set(slots[19], 0);
    assert!(!permits(&bench.gt.registers, other, Requester::PfUser, 0xc400, Wanted::Read));
}

/// i915: FtrPerCtxtPreemptionGranularityControl. IGT: gem_ctx_isolation@nonpriv, nonpriv-switch.
#[test]
fn preemption_control_belongs_to_the_context_while_the_driver_selects_that() {
    proves!(
        EU_012,
        "a user's batch of the render engine records CS_CHICKEN1 while the driver selects that it belongs to the context; \
        other writes are refused and counted"
    );
    const CS_CHICKEN1: u32 = 0x2580;
    const PER_CONTEXT: u32 = 1 << 14;
    let mut bench = EngineBench::new(EngineClass::Render);
    let load = [MI_LOAD_REGISTER_IMM | 1, CS_CHICKEN1, 0xffff_a5a5];
    let stored = store_register(CS_CHICKEN1 & 0x7ff, VA + DATA);
    let refused = |bench: &EngineBench| bench.engine.counters().register_refusals;

    assert_eq!((bench.batch(&load), refused(&bench), bench.own(0x580)), (Outcome::Complete, 1, 0));

    bench.gt.registers.set(bench.base() + 0x0e0, PER_CONTEXT);
    let first = bench.context(1);
    bench.write(BATCH, &[&load[..], &stored, &[END]].concat());
    bench.emit(first, &start(VA + BATCH));
    assert_eq!((bench.submit(first), refused(&bench)), (Outcome::Complete, 1));
    // After another context has written its own value, the first one gets its value back.
    let second = bench.context(2);
    bench.write(BATCH, &[0x1100_0001, CS_CHICKEN1, 0xffff_5a5a, stored[0], stored[1], stored[2], stored[3], END]);
    bench.emit(second, &start(VA + BATCH));
    assert_eq!((bench.submit(second), bench.get(DATA) & 0xffff), (Outcome::Complete, 0x5a5a));
    bench.write(BATCH, &[&stored[..], &[END]].concat());
    bench.emit(first, &start(VA + BATCH));
    bench.put(first.image(0x03), 0x0009_0008);
    assert_eq!((bench.submit(first), bench.get(DATA) & 0xffff), (Outcome::Complete, 0xa5a5));

    // The compute engines have no such register in their contexts.
    let compute = XE_HPG.engines.find(EngineClass::Compute, 0).unwrap();
    assert!(!permits(&bench.gt.registers, compute, Requester::PfUser, 0x1_a580, Wanted::Write));
}
