// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reports of each format, dword by dword.

use arctic_fidelity::{proves, proves_table};

use crate::oa::facts::XE_HPG_OBSERVATION as FACTS;
use crate::oa::format::{self, Format, Header, LONGEST, ReportId, reason};
use crate::oa::values::Values;
use crate::topology::XE_HPG_ENGINES;

/// A counter `n`: other bytes in each part.
fn a(n: u32) -> u64 {
    u64::from(0x40 + n) << 32 | u64::from(0xa000_0000 + n)
}

fn low(n: u32) -> u32 {
    0xa000_0000 + n
}

fn high(n: u32) -> u32 {
    0x40 + n
}

/// Bits 39:32 of four counters, the first in the lowest byte.
fn four(n: u32) -> u32 {
    high(n) | high(n + 1) << 8 | high(n + 2) << 16 | high(n + 3) << 24
}

const HEADER: Header =
    Header { id: 0x1000_0000_2000, time: 0x55_1234_5678, context: 0x0055_aa00, ticks: 0x77_8765_4321 };

fn report(format: &Format) -> Vec<u32> {
    let mut values = Values::default();
    for n in 0..38 {
        values.add(n as usize, a(n));
    }
    values.b = std::array::from_fn(|n| 0x1_b000_0000 + n as u64);
    values.c = std::array::from_fn(|n| 0x1_c000_0000 + n as u64);
    let mut bytes = [0xee; LONGEST];
    let bytes = format.write(HEADER, &values, &mut bytes);
    bytes.as_chunks().0.iter().map(|raw| u32::from_le_bytes(*raw)).collect()
}

fn b_and_c() -> impl Iterator<Item = u32> {
    (0..8).map(|n| 0xb000_0000 + n).chain((0..8).map(|n| 0xc000_0000 + n))
}

const NARROW: [u32; 4] = [0x2000, 0x1234_5678, 0x0055_aa00, 0x8765_4321];
const WIDE: [u32; 8] = [0x2000, 0x1000, 0x1234_5678, 0x55, 0x0055_aa00, 0, 0x8765_4321, 0x77];

fn wide(counters: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
    counters.flat_map(|n| [low(n), high(n)])
}

fn of(formats: &'static [Format], select: u32) -> &'static Format {
    format::find(formats, select).unwrap()
}

#[test]
fn reports_of_oar_and_oag_with_40_bits() {
    proves!(
        [V13_219, V13_238],
        "the header's dwords are in ascending order, each part follows in the order of the document"
    );
    proves_table!(V13_220, "select 101b of OAR: the low dwords of A0 to A35, high bytes, four a dword, B and C");
    proves_table!(
        V13_221,
        "select 101b of OAG: the same with A36 and A37 in place of the high bytes of A0 to A3 and A24 to A27"
    );
    let lows = || NARROW.into_iter().chain((0..36).map(low));
    let oar: Vec<u32> = lows().chain((0..8).map(|n| four(4 * n))).chain(b_and_c()).collect();
    assert_eq!(report(of(FACTS.render, 5)), oar);
    let highs = [low(36), four(4), four(8), four(12), four(16), four(20), low(37), four(28)];
    let oag: Vec<u32> = lows().chain(highs).chain(b_and_c()).collect();
    assert_eq!(report(of(FACTS.global, 5)), oag);
    assert_eq!((oar.len(), oag.len()), (64, 64));
}

#[test]
fn reports_of_oar_and_oag_with_64_bits() {
    proves!(V13_238, "the format of OAR and OAG by the counter select");
    proves_table!(V13_223, "OAR, select 001b: a header of 64-bit fields, A0 to A35 of 64 bits, B and C: 384 bytes");
    proves_table!(V13_225, "OAG, select 001b: the same with a row of A36, A37 and two blanks: 416 bytes");
    let oar: Vec<u32> = WIDE.into_iter().chain(wide(0..36)).chain(b_and_c()).collect();
    assert_eq!((report(of(FACTS.render, 1)), oar.len() * 4), (oar.clone(), 384));
    let oag: Vec<u32> = WIDE.into_iter().chain(wide(0..38)).chain([0; 4]).chain(b_and_c()).collect();
    assert_eq!(oag.len() * 4, 416);
    let (used, rest) = (&report(of(FACTS.global, 1))[..104], &report(of(FACTS.global, 1))[104..]);
    assert_eq!((used, rest), (&oag[..], &[0; 8][..]), "whole cache lines");
    assert_eq!(of(FACTS.global, 1).used(), 416);
}

#[test]
fn reports_of_oac() {
    proves!(V13_238, "the format of OAC by the counter select");
    proves_table!(
        V13_224,
        "OAC, select 001b: A0, A4, A7 to A20, A28 to A32, 0, A34, A35 of 64 bits, B and C: 288 bytes"
    );
    proves_table!(
        V13_227,
        "OAC, select 010b: A0, A4, A7 to A20, A30 to A32, 0, A34, A35 of 32 bits and two reserved dwords, B and C: 192 bytes"
    );
    let counters = [0, 4].into_iter().chain(7..21).chain(28..33);
    let expected: Vec<u32> =
        WIDE.into_iter().chain(wide(counters)).chain([0; 2]).chain(wide(34..36)).chain(b_and_c()).collect();
    assert_eq!(expected.len() * 4, 288);
    let seen = report(of(FACTS.compute, 1));
    assert_eq!((&seen[..72], &seen[72..]), (&expected[..], &[0; 8][..]), "xe expects reports 320 bytes apart");
    let counters = [0, 4].into_iter().chain(7..21).chain(30..33).map(low);
    let last = [0, low(34), low(35), 0, 0];
    let expected: Vec<u32> = WIDE.into_iter().chain(counters).chain(last).chain(b_and_c()).collect();
    assert_eq!((report(of(FACTS.compute, 2)), expected.len() * 4), (expected.clone(), 192));
}

#[test]
fn other_selects_have_no_counters() {
    for formats in [FACTS.global, FACTS.render, FACTS.compute] {
        assert!([0, 3, 4, 6, 7].iter().all(|select| format::find(formats, *select).is_none()));
    }
    let expected: Vec<u32> = NARROW.into_iter().chain([0; 60]).collect();
    assert_eq!(report(FACTS.other), expected);
}

#[test]
fn a_report_id_has_source_and_reason() {
    proves!(
        [V13_232, V13_233],
        "RPT_ID has the source in bits 31:26, the reason in 25:19, the start trigger in 18 and the validity of the context in 16"
    );
    let id = ReportId { source: 0x3f, reason: 0, context_valid: false, ratio: None };
    assert_eq!(id.bits(), 0xfc04_0000);
    let reasons = [reason::TIMER, reason::INTERNAL, reason::INTERNAL << 1, reason::SWITCH, reason::SLEEP];
    let reasons = reasons.into_iter().chain([reason::FREQUENCY, reason::MMIO]);
    for (bit, reason) in (19..).zip(reasons) {
        assert_eq!(ReportId { source: 0, reason, context_valid: true, ratio: None }.bits(), 1 << bit | 0x5_0000);
    }
    assert_eq!(ReportId { ratio: Some(123), ..id }.bits(), 0xfc04_0000 | 123);
}

#[test]
fn sources_of_reports() {
    proves!(
        V13_234,
        "RCS, CCS and BCS have the sources 01/000 to 01/010; media engines bit 5, their slice and their number in it"
    );
    let source = |name| (FACTS.source)(XE_HPG_ENGINES.info(XE_HPG_ENGINES.named(name).unwrap()));
    assert_eq!(["rcs0", "ccs0", "ccs3", "bcs0"].map(source), [8, 9, 9, 10]);
    assert_eq!(["vcs0", "vcs1", "vcs2", "vcs7", "vecs0", "vecs3"].map(source), [0x20, 0x21, 0x28, 0x39, 0x22, 0x3a]);
}
