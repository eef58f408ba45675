// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Ranges of GT registers: their forcewake domain and replication (V13-129..134, V13-140..164).

use super::Replicated;
use super::engine_offsets::RING_TAIL;
use super::guc::GUC_SEND_INTERRUPT;
use super::power::{FORCEWAKE_GT, FORCEWAKE_MEDIA_VDBOX, FORCEWAKE_MEDIA_VEBOX_LAST, FORCEWAKE_RENDER, RPNSWREQ};
use super::steering::{GAM_SELECTOR, MCFG_SELECTOR, MCR_SELECTOR, SF_SELECTOR, Steering};
use crate::topology::EngineTable;
use crate::topology::WakeDomain::{self, AlwaysOn, Gt, Render, Vdbox, Vebox};
use Replication::{Dss, Gam, Gslice, L3Bank, Lncf, Mslice, Single, Sqidi};

/// Unit by which the registers of a range are replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// One register.
    Single,
    /// Super queue and IDI: 8, by subslice id (V13-153). Firmware steers reads to one that exists (xe: xe_gt_mcr.c,
    /// dg2_implicit_steering_table).
    Sqidi,
    /// Geometry slice: 8, by slice id (V13-154).
    Gslice,
    /// Dual subslice: 32, by slice id and subslice id (V13-155).
    Dss,
    /// L3 bank: 32, by slice id and subslice id (V13-156).
    L3Bank,
    /// Memory slice: 4, by slice id (V13-157).
    Mslice,
    /// Replicas of the graphics access manager in the memory slices; the primary one responds (V13-158).
    Gam,
    /// L3 node: two per memory slice, by slice id (V13-159).
    Lncf,
}

/// Replicated units that the fuses leave enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuses {
    /// Dual subslices that support geometry or compute.
    pub dss: u32,
    /// Memory slices with L3 (MEML3).
    pub meml3: u32,
}

impl Fuses {
    /// A full die.
    pub const FULL: Fuses = Fuses { dss: u32::MAX, meml3: 0xf };
}

impl Replication {
    /// All replications.
    pub const ALL: [Replication; 8] = [Single, Sqidi, Gslice, Dss, L3Bank, Mslice, Gam, Lncf];

    /// Number of instances on a full die, each with its own value of a register. The replicas of the GAM have one
    /// value, because only the primary one may be read (V13-158).
    pub const fn instances(self) -> u16 {
        match self {
            Single | Gam => 1,
            Mslice => 4,
            Sqidi | Gslice | Lncf => 8,
            Dss | L3Bank => 32,
        }
    }

    /// The instance that a steering register selects. `None` if no die has it.
    #[allow(clippy::arithmetic_side_effects, reason = "a slice or subslice has four bits")]
    pub fn selected(self, steering: Steering) -> Option<u16> {
        let (slice, subslice) = (u16::from(steering.slice()), u16::from(steering.subslice()));
        match self {
            Single | Gam => Some(0),
            Sqidi => Some(subslice),
            Gslice | Lncf => (slice < 8).then_some(slice),
            Dss => (slice < 8 && subslice < 4).then_some(slice * 4 + subslice),
            // Bit 3 of the slice id and bit 2 of the subslice id are not used.
            L3Bank => Some((slice & 7) * 4 + (subslice & 3)),
            Mslice => (slice < 4).then_some(slice),
        }
    }

    /// The instances that exist, one bit each. A fused-off instance reads 0 and drops writes (V13-161).
    #[allow(clippy::arithmetic_side_effects, reason = "`n` is at most 8, and an instance at most 31")]
    pub fn enabled(self, fuses: Fuses) -> u32 {
        let dss = |first: u16, n: u32| fuses.dss >> first & ((1 << n) - 1) != 0;
        let mslice = |quadrant: u16| fuses.meml3 >> quadrant & 1 != 0 || dss(quadrant * 8, 8);
        let exists = |instance: u16| match self {
            Single | Gam => true,
            // The parts with 512, 256 and 128 EUs have 32, 16 and 8 dual subslices.
            Sqidi => match 32 - fuses.dss.leading_zeros() {
                17.. => true,
                9..=16 => (2..=5).contains(&instance),
                _ => (2..=3).contains(&instance),
            },
            Gslice => dss(instance * 4, 4),
            Dss => dss(instance, 1),
            L3Bank => mslice(instance / 8),
            Mslice => mslice(instance),
            Lncf => mslice(instance / 2),
        };
        (0..self.instances()).filter(|instance| exists(*instance)).fold(0, |enabled, instance| enabled | 1 << instance)
    }
}

/// A range of registers with one forcewake domain and one replication.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// First byte.
    pub start: u32,
    /// Last byte.
    pub end: u32,
    /// Forcewake domain of the range.
    pub wake: WakeDomain,
    /// Replication of the range.
    pub replication: Replication,
}

impl Replicated for Range {
    #[inline]
    fn replication(&self) -> usize {
        self.replication as usize
    }

    #[inline]
    fn instances(&self) -> u16 {
        self.replication.instances()
    }
}

impl Range {
    /// Offset of the register that steers the CPU's accesses to the range (V13-140, V13-148).
    pub fn selector(&self) -> u32 {
        match (self.replication, self.start) {
            (Sqidi, MCFG) => MCFG_SELECTOR,
            (Sqidi, _) => SF_SELECTOR,
            (Gam, _) => GAM_SELECTOR,
            _ => MCR_SELECTOR,
        }
    }
}

/// Start of the range of the MCFG endpoints (xe: xe_gt_mcr.c).
const MCFG: u32 = 0x8700;

const fn range(start: u32, end: u32, wake: WakeDomain, replication: Replication) -> Range {
    Range { start, end, wake, replication }
}

/// Forcewake domains and replication of the registers of a generation's GT.
pub struct Ranges {
    /// The ranges by offset.
    pub list: &'static [Range],
    /// First byte, last byte and second domain of registers that are accessible while either domain is awake.
    pub second_domains: &'static [(u32, u32, WakeDomain)],
    /// First and last byte of registers outside the engines' blocks for which shadow registers hold a write while the
    /// domain is asleep.
    pub shadowed: &'static [(u32, u32)],
    /// The same in an engine's block, relative to its base.
    pub shadowed_by_engine: &'static [(u32, u32)],
}

impl Ranges {
    /// The range that contains `offset`; `None` if the document reserves or does not describe it.
    pub fn find(&self, offset: u32) -> Option<&'static Range> {
        let after = self.list.partition_point(|range| range.start <= offset);
        self.list.get(after.checked_sub(1)?).filter(|range| offset <= range.end)
    }

    /// Returns whether a write at `offset` is accepted while its domain is asleep, because a shadow register holds it.
    pub fn shadowed(&self, offset: u32, engines: EngineTable) -> bool {
        let within =
            |list: &[(u32, u32)], offset: u32| list.iter().any(|(first, last)| (*first..=*last).contains(&offset));
        within(self.shadowed, offset)
            || engines.at_offset(offset).is_some_and(|engine| {
                within(self.shadowed_by_engine, offset.wrapping_sub(engines.info(engine).mmio_base))
            })
    }

    /// Second domain of the register at `offset`.
    pub fn second_domain(&self, offset: u32) -> Option<WakeDomain> {
        let row = self.second_domains.iter().find(|(first, last, _)| (*first..=*last).contains(&offset));
        row.map(|(_, _, domain)| *domain)
    }
}

/// The registers of Xe-HPG.
pub static XE_HPG_RANGES: Ranges = Ranges {
    list: RANGES,
    // Document and drivers disagree on these (V13-134).
    second_domains: &[(0x1_4000, 0x1_41ff, Vdbox(2)), (0x1_4400, 0x1_47ff, Vdbox(2)), (0x2_0000, 0x2_0fff, Render)],
    // V13-130; i915: intel_uncore.c dg2_shadowed_regs.
    shadowed: &[
        (RPNSWREQ, RPNSWREQ),
        (FORCEWAKE_GT, FORCEWAKE_GT),
        (FORCEWAKE_RENDER, FORCEWAKE_RENDER),
        (GUC_SEND_INTERRUPT, GUC_SEND_INTERRUPT),
        (FORCEWAKE_MEDIA_VDBOX, FORCEWAKE_MEDIA_VEBOX_LAST),
        // Registers that are not modelled.
        (0xa00c, 0xa00c),
        (0xc4e0, 0xc4e0),
        (0xc600, 0xc600),
        (0xc658, 0xc658),
    ],
    shadowed_by_engine: &[(RING_TAIL, RING_TAIL), (0x510, 0x550)],
};

/// The document's table (V13-129) by offset, adjacent rows with equal attributes merged, reserved rows omitted.
const RANGES: &[Range] = &[
    range(0x0b00, 0x0bff, AlwaysOn, Sqidi),
    range(0x0c00, 0x0fff, AlwaysOn, Single),
    range(0x1000, 0x1fff, AlwaysOn, Sqidi),
    range(0x2000, 0x26ff, Render, Single),
    range(0x2700, 0x3fff, Gt, Single),
    range(0x4000, 0x4aff, Gt, Gam),
    range(0x5000, 0x51ff, AlwaysOn, Single),
    range(0x5200, 0x52ff, Render, Gslice),
    range(0x5300, 0x53ff, Render, Single),
    range(0x5400, 0x7fff, Render, Gslice),
    range(0x8000, 0x813f, Gt, Single),
    range(0x8140, 0x814f, Render, Gslice),
    range(0x8150, 0x815f, Render, Dss),
    range(0x8180, 0x81ff, AlwaysOn, Single),
    range(0x8200, 0x82ff, Gt, Single),
    range(0x8300, 0x84ff, Render, Single),
    range(0x8500, 0x86ff, Gt, Single),
    range(MCFG, 0x87ff, Gt, Sqidi),
    range(0x8c80, 0x8cff, Gt, L3Bank),
    range(0x8d00, 0x8dff, Render, Dss),
    range(0x9000, 0x947f, Gt, Single),
    range(0x94d0, 0x951f, Render, Gslice),
    range(0x9520, 0x955f, Render, Dss),
    range(0x9560, 0x95ff, AlwaysOn, Single),
    range(0x9680, 0x96ff, Render, Dss),
    range(0x9800, 0xafff, Gt, Single),
    range(0xb000, 0xb0ff, Gt, Lncf),
    range(0xb100, 0xb3ff, Gt, L3Bank),
    range(0xb400, 0xb4ff, Gt, Single),
    range(0xc000, 0xc7ff, Gt, Single),
    range(0xc800, 0xcfff, Gt, Gam),
    range(0xd000, 0xd7ff, AlwaysOn, Single),
    range(0xd800, 0xd87f, Render, Gslice),
    range(0xd880, 0xd8ff, Gt, Lncf),
    range(0xd900, 0xdbff, Gt, Single),
    range(0xdc00, 0xdcff, Render, Gslice),
    range(0xdd00, 0xddff, Gt, Mslice),
    range(0xde80, 0xdfff, Render, Dss),
    range(0xe100, 0xe8ff, Render, Dss),
    range(0xe900, 0xe9ff, Gt, Mslice),
    range(0xf000, 0xffff, Gt, Gam),
    range(0x1_2000, 0x1_27ff, AlwaysOn, Single),
    range(0x1_3000, 0x1_31ff, Vdbox(0), Single),
    range(0x1_3200, 0x1_33ff, Vdbox(2), Single),
    range(0x1_4000, 0x1_41ff, Vdbox(0), Single),
    range(0x1_4200, 0x1_43ff, Vdbox(2), Single),
    range(0x1_4400, 0x1_45ff, Vdbox(4), Single),
    range(0x1_4600, 0x1_47ff, Vdbox(6), Single),
    range(0x1_4800, 0x1_4fff, Render, Single),
    range(0x1_5000, 0x1_5fff, Gt, Single),
    range(0x1_6e00, 0x1_6fff, Render, Single),
    range(0x1_7000, 0x1_7fff, Render, Gslice),
    range(0x1_8000, 0x1_ffff, Render, Single),
    range(0x2_0000, 0x2_0fff, Vdbox(0), Single),
    range(0x2_2000, 0x2_3fff, Gt, Single),
    range(0x2_4000, 0x2_407f, AlwaysOn, Single),
    range(0x2_4180, 0x2_41ff, Gt, Single),
    range(0x2_4a00, 0x2_4a7f, Render, Dss),
    range(0x2_5200, 0x2_52ff, Gt, Single),
    range(0x2_6000, 0x2_7fff, Render, Single),
    range(0x3_0000, 0x3_ffff, Gt, Single),
    range(0x1c_0000, 0x1c_2bff, Vdbox(0), Single),
    range(0x1c_2d00, 0x1c_3dff, Vdbox(0), Single),
    range(0x1c_3f00, 0x1c_3fff, Vdbox(0), Single),
    range(0x1c_4000, 0x1c_6bff, Vdbox(1), Single),
    range(0x1c_6d00, 0x1c_6dff, Vdbox(1), Single),
    range(0x1c_8000, 0x1c_a0ff, Vebox(0), Single),
    range(0x1c_c000, 0x1c_cfff, Vdbox(0), Single),
    range(0x1c_d000, 0x1c_dfff, Vdbox(2), Single),
    range(0x1c_e000, 0x1c_efff, Vdbox(4), Single),
    range(0x1c_f000, 0x1c_ffff, Vdbox(6), Single),
    range(0x1d_0000, 0x1d_2bff, Vdbox(2), Single),
    range(0x1d_2d00, 0x1d_2dff, Vdbox(2), Single),
    range(0x1d_3f00, 0x1d_3fff, Vdbox(2), Single),
    range(0x1d_4000, 0x1d_5fff, Vdbox(3), Single),
    range(0x1d_6800, 0x1d_6bff, Vdbox(3), Single),
    range(0x1d_6d00, 0x1d_6dff, Vdbox(3), Single),
    range(0x1d_8000, 0x1d_a0ff, Vebox(1), Single),
    range(0x1e_0000, 0x1e_1fff, Vdbox(4), Single),
    range(0x1e_2800, 0x1e_2bff, Vdbox(4), Single),
    range(0x1e_2d00, 0x1e_2dff, Vdbox(4), Single),
    range(0x1e_3f00, 0x1e_3fff, Vdbox(4), Single),
    range(0x1e_4000, 0x1e_5fff, Vdbox(5), Single),
    range(0x1e_6800, 0x1e_6bff, Vdbox(5), Single),
    range(0x1e_6d00, 0x1e_6dff, Vdbox(5), Single),
    range(0x1e_8000, 0x1e_a0ff, Vebox(2), Single),
    range(0x1f_0000, 0x1f_2bff, Vdbox(6), Single),
    range(0x1f_2d00, 0x1f_2dff, Vdbox(6), Single),
    range(0x1f_3f00, 0x1f_3fff, Vdbox(6), Single),
    range(0x1f_4000, 0x1f_5fff, Vdbox(7), Single),
    range(0x1f_6800, 0x1f_6bff, Vdbox(7), Single),
    range(0x1f_6d00, 0x1f_6dff, Vdbox(7), Single),
    range(0x1f_8000, 0x1f_a0ff, Vebox(3), Single),
];

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    /// A row of the document's table: first and last byte, and its attributes.
    type Printed = (u32, u32, Option<(WakeDomain, Replication)>);

    /// Rows of the document's table: first and last byte, domain, replication; `None` for a gap or a row without
    /// attributes.
    fn printed() -> Vec<Printed> {
        let row = |line: &str| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let (start, end) = cells.get(1)?.split_once('-')?;
            let at = |digits: &str| u32::from_str_radix(digits, 16).ok();
            at(start)?;
            let wake = match *cells.get(2)? {
                "AON" => Some(AlwaysOn),
                "GT" => Some(Gt),
                "RENDER" | "RENDER*" => Some(Render),
                unit if unit.starts_with("VD") => Some(Vdbox(unit[2..].parse().unwrap())),
                unit if unit.starts_with("VE") => Some(Vebox(unit[2..].parse().unwrap())),
                "reserved" | "(no row)" => None,
                other => panic!("{other}"),
            };
            let replication = match (cells[3], at(start)?) {
                ("SQIDI", _) => Sqidi,
                ("GSLICE", _) => Gslice,
                ("DSS", _) => Dss,
                ("L3BANK", _) => L3Bank,
                ("LNCF", _) => Lncf,
                // The registers of the replicated GAM: its primary instance responds (V13-158).
                ("MSLICE", 0x4000 | 0xc800 | 0xf000) => Gam,
                ("MSLICE", _) => Mslice,
                _ => Single,
            };
            Some((at(start)?, at(end)?, wake.map(|wake| (wake, replication))))
        };
        let text = include_str!("../../spec/vol13.md");
        let (_, section) = text.split_once("### H. ").unwrap();
        section.split_once("### I. ").unwrap().0.lines().filter_map(row).collect()
    }

    #[test]
    fn the_table_is_the_documents() {
        proves!(
            [V13_129, V13_133],
            "every dword of the document's rows has the domain and the replication of its row; reserved rows and \
            gaps have neither"
        );
        for pair in RANGES.windows(2) {
            assert!(pair[0].start <= pair[0].end && pair[0].end < pair[1].start, "{:#x}", pair[1].start);
        }
        let rows = printed();
        assert_eq!((rows[0].0, rows.last().unwrap().1), (0, 0x23_ffff));
        for pair in rows.windows(2) {
            assert_eq!(pair[0].1 + 1, pair[1].0, "the rows of the document must be contiguous");
        }
        for (start, end, attributes) in rows {
            for offset in (start..=end).step_by(4) {
                let found = XE_HPG_RANGES.find(offset).map(|range| (range.wake, range.replication));
                assert_eq!(found, attributes, "{offset:#x}");
            }
        }
    }

    #[test]
    fn fused_off_instances_are_absent() {
        proves!(
            [V13_154, V13_155, V13_156, V13_157, V13_159, V13_161, V13_162],
            "instances of a half-fused die; the instance selected by the reset value of steering may be missing"
        );
        let fuses = Fuses { dss: 0xffff_00f0, meml3: 0b1101 };
        let present = |replication: Replication, slice: u32, subslice: u32| {
            let selected = replication.selected(Steering::from(1 << 31 | slice << 27 | subslice << 24));
            selected.is_some_and(|instance| replication.enabled(fuses) >> instance & 1 != 0)
        };
        assert!(!present(Dss, 0, 0) && present(Dss, 1, 3) && !present(Dss, 1, 4));
        assert!(!present(Gslice, 0, 0) && present(Gslice, 7, 0));
        assert!(present(Mslice, 0, 0) && !present(Mslice, 1, 0) && !present(Mslice, 4, 0));
        assert!(!present(Lncf, 2, 0) && !present(Lncf, 3, 0) && present(Lncf, 4, 0));
        assert!(!present(L3Bank, 3, 1) && present(L3Bank, 4, 3));
        assert!(present(Sqidi, 0, 7) && present(Gam, 1, 0));
    }

    #[test]
    fn one_dual_subslice_keeps_its_slices() {
        proves!(
            [V13_154, V13_155, V13_156, V13_157, V13_159],
            "a geometry slice is terminated when all four of its dual subslices are, and not before; a quadrant of \
            the L3 and its memory slice with the last of its eight dual subslices, if it has no L3 memory of its \
            own"
        );
        for n in 0..32 {
            let (only, but) = (Fuses { dss: 1 << n, meml3: 0 }, Fuses { dss: !(1 << n), meml3: 0 });
            let (slice, quadrant) = (n / 4, n / 8);
            let enabled = [Dss, Gslice, Mslice, Lncf, L3Bank].map(|replication| replication.enabled(only));
            assert_eq!(enabled, [1 << n, 1 << slice, 1 << quadrant, 3 << (2 * quadrant), 0xff << (8 * quadrant)]);
            assert_eq!([Dss, Gslice, Mslice].map(|replication| replication.enabled(but)), [!(1 << n), 0xff, 0xf]);
        }
        for slice in 0..8 {
            let without = Fuses { dss: !(0xf << (4 * slice)), meml3: 0 };
            assert_eq!((Gslice.enabled(without), Mslice.enabled(without)), (0xff & !(1 << slice), 0xf));
        }
    }

    #[test]
    fn steering_selects_every_instance() {
        proves!(
            [V13_153, V13_154, V13_155, V13_156, V13_157, V13_159],
            "steering reaches each instance of a full die by the ids of the document, and only the smaller dies \
            have fewer super queues"
        );
        let at = |slice: u16, subslice: u16| Steering::from(u32::from(slice) << 27 | u32::from(subslice) << 24);
        for bank in 0..32 {
            assert_eq!(L3Bank.selected(at(bank >> 2, bank & 3)), Some(bank));
            assert_eq!(L3Bank.selected(at(bank >> 2 | 8, bank & 3 | 4)), Some(bank), "two bits are not used");
            assert_eq!(Dss.selected(at(bank >> 2, bank & 3)), Some(bank));
        }
        for n in 0..8 {
            assert_eq!((Sqidi.selected(at(3, n)), Gslice.selected(at(n, 3))), (Some(n), Some(n)));
            assert_eq!((Lncf.selected(at(n, 0)), Mslice.selected(at(n, 0))), (Some(n), (n < 4).then_some(n)));
        }
        let queues = [u32::MAX, 0xffff, 0xff].map(|dss| Sqidi.enabled(Fuses { dss, meml3: 1 }));
        assert_eq!(queues, [0xff, 0b0011_1100, 0b0000_1100]);
        for replication in Replication::ALL {
            let all = replication.enabled(Fuses::FULL);
            assert_eq!((all.count_ones(), all.trailing_ones()), [u32::from(replication.instances()); 2].into());
        }
    }

    #[test]
    fn a_quadrant_is_a_quarter_of_the_die() {
        proves!(
            V13_151,
            "a quadrant has eight dual subslices, two geometry slices, one memory slice and eight L3 banks; with \
            one quadrant, the units of the others are absent"
        );
        for quadrant in 0..4 {
            let fuses = Fuses { dss: 0xff << (8 * quadrant), meml3: 1 << quadrant };
            let enabled = [Dss, Gslice, Mslice, L3Bank, Lncf].map(|replication| replication.enabled(fuses));
            let [eight, two, one] = [0xff << (8 * quadrant), 3 << (2 * quadrant), 1 << quadrant];
            assert_eq!(enabled, [eight, two, one, eight, two], "quadrant {quadrant}");
        }
        let counts = [Dss, Gslice, Mslice, L3Bank].map(Replication::instances);
        assert_eq!(counts, [8, 2, 1, 8].map(|of_quadrant| 4 * of_quadrant));
    }

    #[test]
    fn one_dual_subslice_enables_its_quadrant() {
        proves!(V13_152, "a quadrant is enabled if any of its eight dual subslices is");
        for dss in 0..32 {
            let fuses = Fuses { dss: 1 << dss, meml3: 0 };
            let quadrant = dss / 8;
            assert_eq!((Mslice.enabled(fuses), Gslice.enabled(fuses)), (1 << quadrant, 1 << (dss / 4)), "{dss}");
            assert_eq!(L3Bank.enabled(fuses), 0xff << (8 * quadrant), "{dss}");
        }
        assert_eq!(Mslice.enabled(Fuses { dss: 0, meml3: 0 }), 0);
    }

    #[test]
    fn each_range_has_a_selector() {
        proves!([V13_140, V13_148], "the offset of an access determines the register that steers it");
        let selector = |offset| XE_HPG_RANGES.find(offset).unwrap().selector();
        assert_eq!([0xb00, 0x1000, 0x8724].map(selector), [0xfd8, 0xfd8, 0xfd0]);
        assert_eq!([0xcf58, 0xe18c, 0xb100, 0xb020, 0x5200].map(selector), [0xfe0, 0xfdc, 0xfdc, 0xfdc, 0xfdc]);
    }
}
