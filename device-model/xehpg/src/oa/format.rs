// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Formats of reports (V13-219..227; OA-040..042).

use arctic_sriov::number::{high, low};

use super::values::{A_COUNTERS, Values};

/// Length of the longest report in memory, in bytes.
pub const LONGEST: usize = 448;

/// A format: what follows the header.
pub struct Format {
    /// Counter select, bits 4:2 of OAG_OACONTROL and 3:1 of OAR_OACONTROL and OAC_OACONTROL.
    pub select: u32,
    /// The fields of the header have 64 bits, otherwise 32.
    pub wide: bool,
    /// The counters.
    pub parts: &'static [Part],
    /// Length in memory in bytes, a multiple of 64; it is filled with zeros.
    pub bytes: usize,
}

/// Consecutive dwords of a report.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Bits 31:0 of A counters: the first, and their number.
    Low(u8, u8),
    /// Bits 39:32 of A counters, four in each dword: the first, and their number.
    High(u8, u8),
    /// A counters of 64 bits: the first, and their number.
    Wide(u8, u8),
    /// Dwords that are 0.
    Zeros(u8),
    /// The B counters.
    B,
    /// The C counters.
    C,
}

use Part::{B, C, High, Low, Wide, Zeros};

/// OAR, 101b (V13-220): A32u40_A4u32_B8_C8 of the drivers.
pub const OAR_40: Format = Format { select: 5, wide: false, parts: &[Low(0, 36), High(0, 32), B, C], bytes: 256 };
/// OAG, 101b (V13-221): A24u40_A14u32_B8_C8. A36 and A37 are where OAR has the high bytes of A0 to A3 and A24 to A27.
pub const OAG_40: Format = Format {
    select: 5,
    wide: false,
    parts: &[Low(0, 36), Low(36, 1), High(4, 20), Low(37, 1), High(28, 4), B, C],
    bytes: 256,
};
/// OAR, 001b (V13-223).
pub const OAR_64: Format = Format { select: 1, wide: true, parts: &[Wide(0, 36), B, C], bytes: 384 };
/// OAC, 001b (V13-224): A24u64_B8_C8. It has 288 bytes; xe expects reports 320 bytes apart. The 32 bytes after it are inferred.
pub const OAC_64: Format = Format {
    select: 1,
    wide: true,
    parts: &[Wide(0, 1), Wide(4, 1), Wide(7, 14), Wide(28, 5), Zeros(2), Wide(34, 2), B, C],
    bytes: 320,
};
/// OAG, 001b (V13-225). It has 416 bytes; that reports are 448 bytes apart, whole cache lines, is inferred.
pub const OAG_64: Format = Format { select: 1, wide: true, parts: &[Wide(0, 38), Zeros(4), B, C], bytes: 448 };
/// OAC, 010b (V13-227): A22u32_R2u32_B8_C8.
pub const OAC_32: Format = Format {
    select: 2,
    wide: true,
    parts: &[Low(0, 1), Low(4, 1), Low(7, 14), Low(30, 3), Zeros(1), Low(34, 2), Zeros(2), B, C],
    bytes: 192,
};
/// Every other value, and a context whose counters are off: a header and no counters, of the usual length. Inferred.
pub const HEADER: Format = Format { select: 0, wide: false, parts: &[], bytes: 256 };

/// The header of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// RPT_ID, or the identifier in the command.
    pub id: u64,
    /// OA time.
    pub time: u64,
    /// CTX_ID.
    pub context: u32,
    /// GPU_TICKS.
    pub ticks: u64,
}

/// RPT_ID (V13-231..234; OA-042).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportId {
    /// Where the report comes from.
    pub source: u8,
    /// Why the report was made: bits of [`reason`].
    pub reason: u8,
    /// CTX_ID is that of a context.
    pub context_valid: bool,
    /// Frequency in units of 16.67 MHz, if it is requested by OA_DEBUG.
    pub ratio: Option<u32>,
}

/// Reasons of a report, bits 25:19 of RPT_ID.
pub mod reason {
    /// The timer.
    pub const TIMER: u8 = 1 << 0;
    /// The first internal trigger.
    pub const INTERNAL: u8 = 1 << 1;
    /// A context switch of the render engine.
    pub const SWITCH: u8 = 1 << 3;
    /// The GT enters RC6.
    pub const SLEEP: u8 = 1 << 4;
    /// A change of the frequency.
    pub const FREQUENCY: u8 = 1 << 5;
    /// A write of OAG_MMIOTRIGGER.
    pub const MMIO: u8 = 1 << 6;
}

impl ReportId {
    /// The low dword. Bit 18: the start trigger has fired, which it does at the enable; bit 17: no threshold.
    pub fn bits(self) -> u64 {
        u64::from(self.source & 0x3f) << 26
            | u64::from(self.reason & 0x7f) << 19
            | 1 << 18
            | u64::from(self.context_valid) << 16
            | u64::from(self.ratio.unwrap_or(0) & 0x1ff)
    }
}

/// Writes dwords one after the other.
struct Dwords<'r>(std::slice::ChunksExactMut<'r, u8>);

impl Dwords<'_> {
    fn put(&mut self, value: u32) {
        if let Some(raw) = self.0.next() {
            raw.copy_from_slice(&value.to_le_bytes());
        }
    }

    fn put64(&mut self, value: u64) {
        self.put(low(value));
        self.put(high(value));
    }
}

/// The format of `formats` with this select.
pub fn find(formats: &'static [Format], select: u32) -> Option<&'static Format> {
    formats.iter().find(|format| format.select == select)
}

impl Format {
    /// Writes a report to the first [`Format::bytes`] of `report`. Returns these bytes.
    pub fn write<'r>(&self, header: Header, values: &Values, report: &'r mut [u8; LONGEST]) -> &'r [u8] {
        let report = report.get_mut(..self.bytes).unwrap_or_default();
        report.fill(0);
        let mut dwords = Dwords(report.chunks_exact_mut(4));
        let fields = [header.id, header.time, header.context.into(), header.ticks];
        fields.into_iter().for_each(|field| if self.wide { dwords.put64(field) } else { dwords.put(low(field)) });
        for part in self.parts {
            match *part {
                Low(first, count) => values.a(first, count).for_each(|value| dwords.put(low(value))),
                Wide(first, count) => values.a(first, count).for_each(|value| dwords.put64(value)),
                High(first, count) => {
                    let mut bytes = values.a(first, count).map(|value| high(value) & 0xff);
                    for _ in 0..count / 4 {
                        let packed = [0, 8, 16, 24].map(|shift: u32| bytes.next().unwrap_or(0) << shift);
                        dwords.put(packed.into_iter().fold(0, |dword, byte| dword | byte));
                    }
                }
                Zeros(count) => (0..count).for_each(|_| dwords.put(0)),
                B => values.b.iter().for_each(|value| dwords.put(low(*value))),
                C => values.c.iter().for_each(|value| dwords.put(low(*value))),
            }
        }
        report
    }

    /// Length of the header and the counters in bytes.
    #[allow(clippy::arithmetic_side_effects, reason = "small constants")]
    pub fn used(&self) -> usize {
        let dwords = |part: &Part| match *part {
            Low(_, count) | Zeros(count) => usize::from(count),
            Wide(_, count) => 2 * usize::from(count),
            High(_, count) => usize::from(count) / 4,
            B | C => 8,
        };
        let header = if self.wide { 8 } else { 4 };
        4 * (header + self.parts.iter().map(dwords).sum::<usize>())
    }
}

const _: () = assert!(A_COUNTERS == 38, "the formats have A0 to A37");
