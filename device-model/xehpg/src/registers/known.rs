// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that exist on the card and are intentionally not modelled, as ranges with a reason: they read 0, writes
//! are dropped.

/// A range of registers that is not modelled.
#[derive(Clone, Copy, Debug)]
pub struct LeftOut {
    /// First byte.
    pub start: u32,
    /// Last byte.
    pub end: u32,
    /// Contents of the range, and the reason why it is not modelled.
    pub reason: &'static str,
}

const fn left_out(start: u32, end: u32, reason: &'static str) -> LeftOut {
    LeftOut { start, end, reason }
}

const COUNTERS: &str = "observation (OA): registers that no driver uses, or of signals that the model does not have";
const RENDER: &str = "3D and media pipelines: no execution units are modelled, their commands are skipped";
const MEDIA: &str = "media engine internals: media commands are skipped";
const DISPLAY: &str = "display: not present";
const MCHBAR: &str = "mirror of the host bridge: only the sensor registers are modelled";
const DOORBELLS: &str = "doorbells in memory: they need a snooping bus, the card has only the windows (V13-090)";
const SOC: &str = "error registers inside the SoC: its errors are reported in DEV_ERR_STAT_REG only";

/// The ranges, sorted by offset.
pub const UNIMPLEMENTED: &[LeftOut] = &[
    left_out(0x0_0d98, 0x0_0fcf, "memory access fabric: not modelled"),
    left_out(0x0_1000, 0x0_18ff, DOORBELLS),
    left_out(0x0_1920, 0x0_1fff, DOORBELLS),
    left_out(0x0_2700, 0x0_29ff, COUNTERS),
    left_out(0x0_2aa0, 0x0_2fff, COUNTERS),
    left_out(0x0_5000, 0x0_7fff, RENDER),
    left_out(0x0_8140, 0x0_817f, RENDER),
    left_out(0x0_8300, 0x0_84ff, RENDER),
    left_out(0x0_9180, 0x0_91ff, COUNTERS),
    left_out(0x0_9840, 0x0_9cff, COUNTERS),
    left_out(0x0_d900, 0x0_dbff, COUNTERS),
    left_out(0x0_dc00, 0x0_efff, RENDER),
    left_out(0x1_5000, 0x1_5fff, COUNTERS),
    left_out(0x1_7000, 0x1_7fff, RENDER),
    left_out(0x1_8000, 0x1_9fff, RENDER),
    left_out(0x3_2000, 0x3_2fff, "content protection (PXP): not present"),
    left_out(0x4_0000, 0x7_7fff, DISPLAY),
    left_out(0x7_8000, 0x7_8fff, "GVT-g page: the card is not a GVT-g virtual GPU"),
    left_out(0x7_9000, 0x7_ffff, DISPLAY),
    left_out(0xc_0000, 0xf_ffff, DISPLAY),
    left_out(0x10_0000, 0x10_00ff, "fences: the card has no detiling aperture"),
    left_out(0x10_0184, 0x10_0fff, SOC),
    left_out(0x10_2040, 0x10_20bf, "flash memory (SPI): not present"),
    left_out(0x11_c000, 0x11_cfff, "timer of the GSC: its firmware is not executed"),
    left_out(0x14_0000, 0x14_ffff, MCHBAR),
    left_out(0x17_8000, 0x17_8fff, "intentionally empty (V13, trap 37)"),
    left_out(0x1c_0000, 0x1c_bfff, MEDIA),
    left_out(0x1d_0000, 0x1d_bfff, MEDIA),
    left_out(0x1e_0000, 0x1e_bfff, MEDIA),
    left_out(0x1f_0000, 0x1f_bfff, MEDIA),
    left_out(0x28_0000, 0x28_ffff, SOC),
    left_out(0x3f_f800, 0x3f_ffff, "remainder of the doorbell register page (V13, trap 38)"),
];

/// Reason why `offset` is not modelled; `None` if no reason is known.
pub fn reason(offset: u32) -> Option<&'static str> {
    let after = UNIMPLEMENTED.partition_point(|range| range.start <= offset);
    UNIMPLEMENTED.get(..after)?.last().filter(|range| offset <= range.end).map(|range| range.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranges are sorted and do not overlap; each has a reason and can be looked up by offset.
    #[test]
    fn the_ranges_are_sorted_and_explained() {
        for pair in UNIMPLEMENTED.windows(2) {
            assert!(pair[0].start <= pair[0].end && pair[0].end < pair[1].start, "{:#x}", pair[1].start);
        }
        assert!(UNIMPLEMENTED.iter().all(|range| range.reason.contains(':') || range.reason.contains('(')));
        assert_eq!(reason(0x4_0000), Some(DISPLAY));
        assert_eq!(reason(0x7_8ff8).map(|text| &text[..5]), Some("GVT-g"));
        assert_eq!((reason(0x6), reason(0x1c_c000), reason(u32::MAX)), (None, None, None));
    }
}
