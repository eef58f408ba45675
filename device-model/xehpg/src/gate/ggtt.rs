// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Ownership of GGTT pages, and VF read and write access to their entries (V13-019..031).
//!
//! All functions share one table of 64-bit entries. The PF sets the owner in each entry. Access is checked per entry: a
//! VF reads and changes only entries that it owns (V13-026). The rule has four cases: read or write of an owned or
//! foreign entry.

use bitfield_struct::bitfield;

use super::PF;

/// Size in bytes of a GGTT page (V13-028).
pub const PAGE: u64 = 4096;

/// One GGTT entry (V13-027; xe: xelp_ggtt_pte_flags, XE_GGTT_PTE_DM, GGTT_PTE_VFID).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct GgttEntry {
    /// The entry is valid.
    pub valid: bool,
    /// The page is in local memory; if clear, in the owner's guest-physical memory (V13-027, V13-031).
    pub local: bool,
    /// Number of the owning function (xe: GGTT_PTE_VFID). V13-027 specifies bits 7:2, enough for 63 VFs.
    #[bits(10)]
    pub owner: u16,
    /// Bits 45:12 of the page's address.
    #[bits(34)]
    page: u64,
    #[bits(18)]
    __: u32,
}

impl GgttEntry {
    /// Returns the page address: an address in the owner's local memory, or guest-physical.
    pub const fn address(self) -> u64 {
        self.page() << 12
    }

    /// Returns the entry of a page that the PF has assigned to `function` and that is not mapped yet: valid, address 0
    /// (xe: xe_ggtt_assign).
    pub const fn assigned(function: u8) -> Self {
        GgttEntry::new().with_owner(function as u16).with_valid(true)
    }

    /// Returns whether the VF owns the page. Always false for the PF: owner 0 means that no VF owns the entry.
    pub const fn owned_by(self, vf: u8) -> bool {
        vf != PF && self.owner() == vf as u16
    }

    /// Returns the value that a VF reads: an owned entry without the owner field, or 0 for a foreign entry (V13-022,
    /// V13-023).
    pub const fn vf_read(self, vf: u8) -> Self {
        if self.owned_by(vf) { self.with_owner(0) } else { GgttEntry::new() }
    }

    /// Returns the entry after a VF writes `value`: all fields of an owned entry change except owner and Valid, which
    /// only the PF may write. Returns `None` for a foreign entry: the write is dropped (V13-024, V13-025).
    pub const fn vf_write(self, vf: u8, value: GgttEntry) -> Option<Self> {
        if self.owned_by(vf) { Some(value.with_owner(self.owner()).with_valid(self.valid())) } else { None }
    }

    /// Returns the effective entry when a VF's GGTT range is mapped into its guest and the guest writes a separate
    /// table without trapping. Owner and Valid come from `self`, the PF's entry; the other fields come from the VF's
    /// entry if it is nonzero, otherwise from the PF's entry.
    ///
    /// This applies [`GgttEntry::vf_write`] when the entry is used instead of when it is written, so it grants a VF no
    /// additional access: its entries for foreign pages are never used. Writing a full entry of 0 restores the PF's
    /// entry.
    pub const fn combine(self, vf_entry: GgttEntry, vf: u8) -> Self {
        match self.vf_write(vf, vf_entry) {
            Some(entry) if vf_entry.into_bits() != 0 => entry,
            _ => self,
        }
    }

    /// Returns whether an access on behalf of `function` may use the entry: the PF and the GuC may use any valid page,
    /// a VF only its own (V13-020, V13-047). The second-level translation is selected by [`GgttEntry::owner`], also for
    /// the PF (V13-030).
    pub const fn permits(self, function: u8) -> bool {
        self.valid() && (function == PF || self.owned_by(function))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use arctic_fidelity::proves;
    use proptest::prelude::*;

    use super::*;

    const VALID: u64 = 1 << 0;
    const LOCAL: u64 = 1 << 1;
    const OWNER: u64 = 0x3ff << 2;
    const ADDRESS: u64 = 0x3fff_ffff_f000;
    /// Bits that only the PF may write; VF writes do not change them (V13-024).
    const PF_ONLY: u64 = OWNER | VALID;

    const FIVES: u64 = 0x0000_0012_3456_7000 | 5 << 2 | LOCAL | VALID;

    fn vf_read(entry: u64, vf: u8) -> u64 {
        GgttEntry::from(entry).vf_read(vf).into()
    }

    fn vf_write(entry: u64, vf: u8, value: u64) -> Option<u64> {
        GgttEntry::from(entry).vf_write(vf, value.into()).map(u64::from)
    }

    fn combine(entry: u64, vf_entry: u64, vf: u8) -> u64 {
        GgttEntry::from(entry).combine(vf_entry.into(), vf).into()
    }

    fn permits(entry: u64, function: u8) -> bool {
        GgttEntry::from(entry).permits(function)
    }

    fn owner(entry: u64) -> u16 {
        GgttEntry::from(entry).owner()
    }

    fn assigned(function: u8) -> u64 {
        GgttEntry::assigned(function).into()
    }

    #[test]
    fn fields() {
        proves!(V13_027, "bit positions of the fields; the owner field is 10 bits wide as in xe");
        let fives = GgttEntry::from(FIVES);
        assert_eq!((fives.owner(), fives.address(), fives.local(), fives.valid()), (5, 0x12_3456_7000, true, true));
        let (all, lowest) = (GgttEntry::from(!0), GgttEntry::from(1 << 12));
        assert_eq!((all.owner(), all.address(), lowest.address()), (0x3ff, ADDRESS, 4096));
        assert_eq!(assigned(63), 63 << 2 | 1);
    }

    #[test]
    fn reads() {
        proves!(
            [V13_022, V13_023],
            "owned entries read without the owner field, foreign entries read 0, including the PF's"
        );
        assert_eq!(vf_read(FIVES, 5), 0x12_3456_7000 | LOCAL | VALID);
        assert_eq!(vf_read(FIVES, 4), 0);
        let ownerless = FIVES & !OWNER;
        assert_eq!((vf_read(ownerless, 1), vf_read(ownerless, 0)), (0, 0));
        // An owner number above the highest VF number, with low bits equal to 5.
        assert_eq!(vf_read(FIVES | 0x40 << 2, 5), 0);
    }

    #[test]
    fn writes() {
        proves!(
            [V13_024, V13_025],
            "writes of all ones and all zeros do not change owner and Valid; a foreign write is dropped"
        );
        assert_eq!(vf_write(FIVES, 5, !0), Some(!OWNER | 5 << 2));
        assert_eq!(vf_write(FIVES, 5, 0), Some(5 << 2 | VALID));
        assert_eq!(vf_write(5 << 2, 5, !0), Some(!OWNER & !VALID | 5 << 2), "not made valid");
        assert_eq!((vf_write(FIVES, 4, !0), vf_write(0, 0, !0)), (None, None));
    }

    #[test]
    fn two_tables() {
        proves!(
            [V13_020, V13_021, V13_030],
            "the VF's table applies to owned pages only; it also applies to the PF's accesses"
        );
        let given = assigned(5);
        assert_eq!(combine(given, 0, 5), given, "never written");
        assert_eq!(combine(FIVES, 0, 5), FIVES, "never written, and mapped by the PF");
        assert_eq!(combine(given, 0x7000 | LOCAL, 5), given | 0x7000 | LOCAL);
        assert_eq!(combine(given, 0x7000 | 9 << 2 | VALID, 5), given | 0x7000);
        assert_eq!(combine(given, 0x7000 | 4 << 2, 4), given, "VF 4 does not own the page");
        assert!(permits(given, 5) && permits(given, PF) && !permits(given, 4) && !permits(5 << 2, 5));
    }

    /// An entry as a record of fields, as the manual describes it. Reference model for the access rule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Plain {
        valid: bool,
        local: bool,
        owner: u16,
        /// Bits 63:12: address and reserved bits.
        rest: u64,
    }

    impl Plain {
        fn of(entry: u64) -> Plain {
            let (rest, low) = (entry / 4096, entry % 4096);
            Plain { valid: low % 2 == 1, local: low / 2 % 2 == 1, owner: (low / 4) as u16, rest }
        }

        fn entry(self) -> u64 {
            self.rest * 4096 + u64::from(self.owner) * 4 + u64::from(self.local) * 2 + u64::from(self.valid)
        }

        fn read(self, vf: u8) -> u64 {
            if vf == 0 || self.owner != u16::from(vf) { 0 } else { Plain { owner: 0, ..self }.entry() }
        }

        fn written(self, vf: u8, word: Plain) -> Plain {
            if vf == 0 || self.owner != u16::from(vf) {
                self
            } else {
                Plain { local: word.local, rest: word.rest, ..self }
            }
        }
    }

    /// Tests every owner (1024), valid or not and local or not (4), with bits 63:12 all zero, lowest bit set, highest
    /// bit set and all set (4): 16 384 entries. For each of 66 function numbers: read and use, and writes of 8 values
    /// that differ in owner, Valid, Local and address. 16 384 * 66 * (1 + 8) = 9 732 096 cases, compared with a
    /// reference model that uses division and records instead of masks.
    #[test]
    fn every_entry_and_owner() {
        let rests = [0, 1, 1 << 51, (1 << 52) - 1];
        let words = [0, VALID, LOCAL, OWNER, 63 << 2 | VALID, 0x1000 | LOCAL, 1 << 63 | 5 << 2, !0]
            .map(|word| (word, Plain::of(word)));
        let mut cases = 0_u64;
        for low in 0..4096_u64 {
            for rest in rests {
                let entry = rest << 12 | low;
                let plain = Plain::of(entry);
                let fields = GgttEntry::from(entry);
                assert_eq!((fields.owner(), fields.valid(), fields.local()), (plain.owner, plain.valid, plain.local));
                assert_eq!(fields.address(), plain.rest % (1 << 34) * 4096);
                for vf in 0..66_u8 {
                    let own = vf != 0 && plain.owner == u16::from(vf);
                    assert_eq!(fields.owned_by(vf), own);
                    assert_eq!(vf_read(entry, vf), plain.read(vf), "{entry:#x} {vf}");
                    assert_eq!(permits(entry, vf), plain.valid && (vf == 0 || own), "{entry:#x} {vf}");
                    cases += 1;
                    for (word, meaning) in words {
                        let after = plain.written(vf, meaning).entry();
                        assert_eq!(vf_write(entry, vf, word), own.then_some(after), "{entry:#x} {vf} {word:#x}");
                        let used = if word == 0 { entry } else { after };
                        assert_eq!(combine(entry, word, vf), used, "{entry:#x} {vf} {word:#x}");
                        cases += 1;
                    }
                }
            }
        }
        assert_eq!(cases, 16_384 * 66 * 9);
    }

    #[derive(Clone, Debug)]
    struct Access {
        vf: u8,
        index: usize,
        write: Option<u64>,
    }

    fn entry() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), (0..5_u64, any::<u64>()).prop_map(|(owner, rest)| rest & !OWNER | owner << 2)]
    }

    fn access() -> impl Strategy<Value = Access> {
        (1..5_u8, 0..32_usize, prop::option::of(any::<u64>())).prop_map(|(vf, index, write)| Access {
            vf,
            index,
            write,
        })
    }

    proptest! {
        #[test]
        fn a_vf_never_reaches_a_foreign_entry(
            table in prop::collection::vec(entry(), 32),
            accesses in prop::collection::vec(access(), 1..200),
        ) {
            proves!(
                [V13_019, V13_020, V13_021, V13_022, V13_023, V13_024, V13_025, V13_026],
                "for any VF accesses, owner and Valid do not change, and foreign entries do not change and read 0. \
                A VF reads back what it wrote, except the fields it may not write"
            );
            let mut now = table.clone();
            for Access { vf, index, write } in accesses {
                let own = owner(now[index]) == u16::from(vf);
                let before = now[index];
                if let Some(value) = write {
                    if let Some(new) = vf_write(before, vf, value) {
                        now[index] = new;
                    }
                    prop_assert_eq!(vf_read(now[index], vf), if own { value & !PF_ONLY | before & VALID } else { 0 });
                }
                prop_assert!(own || now[index] == before && vf_read(before, vf) == 0);
                prop_assert_eq!(vf_read(now[index], vf) & OWNER, 0);
            }
            for (new, old) in now.iter().zip(&table) {
                prop_assert_eq!(new & PF_ONLY, old & PF_ONLY);
                prop_assert!(new == old || (1..5).contains(&owner(*old)));
            }
        }

        #[test]
        fn mapped_table_is_equivalent_to_the_trapped_table(pf_entry in entry(), vf_entry in prop_oneof![3 => any::<u64>(), 1 => Just(0)], vf in 0..6_u8) {
            proves!(
                [V13_020, V13_021, V13_022, V13_023, V13_024, V13_025],
                "a separate table per VF is equivalent, entry by entry, to the shared table"
            );
            let used = combine(pf_entry, vf_entry, vf);
            prop_assert_eq!(used & PF_ONLY, pf_entry & PF_ONLY);
            prop_assert_eq!(permits(used, vf), permits(pf_entry, vf));
            prop_assert_eq!(permits(pf_entry, vf), pf_entry & VALID != 0 && (vf == PF || owner(pf_entry) == u16::from(vf)));
            let written = vf_write(pf_entry, vf, vf_entry).filter(|_| vf_entry != 0);
            prop_assert_eq!(used, written.unwrap_or(pf_entry));
        }
    }
}
