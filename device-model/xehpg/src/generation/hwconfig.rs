// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Hardware configuration table returned by GET_HWCONFIG: key, length in dwords, values (contract B.4 step 21).
//!
//! The table contains the attributes of DG2 that are publicly known; some depend on the die. Omitted because not
//! public: pixel pipes (4), cache ways (8, 9, 61), memory channels as counted by the firmware (10), local memory page
//! sizes as encoded by the firmware (13), pixel and position-only shader threads (20, 21), minimum URB entries of hull
//! and geometry shaders (33, 35), URB sizes, alignments and reservations (31, 32, 39 to 45, 47 to 49, 68, 69), L3
//! partitioning (50 to 59), bindless offset bits (60), context save size (62), geometry pipes (63), fill rates (66,
//! 67), task and mesh URB entries (77 to 80), synchronous ray tracing stacks (82). The keys marked deprecated (5 to 7,
//! 14, 22, 28), and the keys for other memories and engines (72, 74 to 76, 81, 83), do not apply.

use Key::*;

use super::Die;

/// Keys of the table (IGT: lib/intel_hwconfig_types.h; Mesa: src/intel/dev/intel_hwconfig_types.h).
#[derive(Clone, Copy)]
#[repr(u32)]
enum Key {
    MaxSlicesSupported = 1,
    MaxDualSubslicesSupported = 2,
    MaxNumEuPerDss = 3,
    MemoryType = 11,
    CacheTypes = 12,
    NumThreadsPerEu = 15,
    TotalVsThreads = 16,
    TotalGsThreads = 17,
    TotalHsThreads = 18,
    TotalDsThreads = 19,
    MaxRcs = 23,
    MaxCcs = 24,
    MaxVcs = 25,
    MaxVecs = 26,
    MaxCopyCs = 27,
    MinVsUrbEntries = 29,
    MaxVsUrbEntries = 30,
    MaxHsUrbEntries = 34,
    MaxGsUrbEntries = 36,
    MinDsUrbEntries = 37,
    MaxDsUrbEntries = 38,
    NumRtStacksPerDss = 46,
    L3BankSizeInKb = 64,
    SlmSizePerDss = 65,
    MaxSubslice = 70,
    MaxEuPerSubslice = 71,
}

/// MEMORY_TYPE: GDDR6.
const GDDR6: u32 = 4;
/// CACHE_TYPES: a level 3 cache, but no LLC or EDRAM.
const L3: u32 = 1 << 0;

/// Number of attributes.
const COUNT: usize = 26;

/// Returns the attributes of `die` and their values. All values have one dword.
fn attributes(die: &Die) -> [(Key, u32); COUNT] {
    [
        // Slices of four dual subslices of sixteen EUs of eight threads.
        (MaxSlicesSupported, die.slices.into()),
        (MaxDualSubslicesSupported, die.dual_subslices()),
        (MaxNumEuPerDss, 16),
        (MemoryType, GDDR6),
        (CacheTypes, L3),
        (NumThreadsPerEu, 8),
        // Mesa: intel_device_info.c, XEHP_FEATURES.
        (TotalVsThreads, 546),
        (TotalGsThreads, 336),
        (TotalHsThreads, 336),
        (TotalDsThreads, 546),
        // Engines present (contract K.3).
        (MaxRcs, 1),
        (MaxCcs, die.compute_engines()),
        (MaxVcs, 2),
        (MaxVecs, 2),
        (MaxCopyCs, 1),
        // Mesa: intel_device_info.c, XEHP_URB_MIN_MAX_ENTRIES.
        (MinVsUrbEntries, 64),
        (MaxVsUrbEntries, 3832),
        (MaxHsUrbEntries, 1548),
        (MaxGsUrbEntries, 1548),
        (MinDsUrbEntries, 34),
        (MaxDsUrbEntries, 3576),
        // NEO: ray_tracing_helper.h.
        (NumRtStacksPerDss, 2048),
        // DG2-G10: 16 MiB in 32 banks (contract B.4 step 23: four groups of eight).
        (L3BankSizeInKb, 512),
        // Maximum part of a dual subslice's 192 KiB that can be shared local memory.
        (SlmSizePerDss, 128),
        // Newer keys call a dual subslice a subslice; xe derives steering from them (xe: xe_gt_mcr.c).
        (MaxSubslice, die.dual_subslices()),
        (MaxEuPerSubslice, 16),
    ]
}

/// Returns the complete table of a card with `die`.
pub fn table(die: &Die) -> Vec<u32> {
    attributes(die).into_iter().flat_map(|(key, value)| [key as u32, 1, value]).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use super::*;
    use crate::generation::XE_HPG;

    /// Keys known to IGT: `__INTEL_HWCONFIG_KEY_LIMIT`.
    const KEY_LIMIT: u32 = 84;

    /// Parses the table as IGT's i915_query and `xe_guc_hwconfig_dump` do: key, length, values, and no trailing data.
    fn parsed(die: &Die) -> Vec<(u32, Vec<u32>)> {
        let table = table(die);
        let (mut rest, mut found) = (&table[..], Vec::new());
        while let [key, length, tail @ ..] = rest {
            let (values, next) = tail.split_at_checked(*length as usize).expect("values end with the table");
            assert!(*length > 0);
            found.push((*key, values.to_vec()));
            rest = next;
        }
        assert!(rest.is_empty(), "trailing data");
        found
    }

    fn lookup(die: &Die, key: u32) -> u32 {
        parsed(die).iter().find(|(found, _)| *found == key).unwrap().1[0]
    }

    /// Contract E.7: the table is well formed; all keys are known, unique and in ascending order.
    #[test]
    fn well_formed() {
        let keys: Vec<u32> = parsed(XE_HPG.dies[0]).iter().map(|(key, _)| *key).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert!(keys.iter().all(|key| (1..KEY_LIMIT).contains(key)));
    }

    /// Contract B.4 step 23, K.3: the table agrees with the fuses.
    #[test]
    fn agrees_with_the_fuses() {
        let die = XE_HPG.die("dg2-g10").unwrap();
        let lookup = |key| lookup(die, key);
        assert_eq!((lookup(2), lookup(70).div_ceil(lookup(1))), (32, 4));
        // 0x9134: eight bits of two EUs each.
        assert_eq!(lookup(3), 8 * 2);
        let present =
            |class| crate::topology::XE_HPG_ENGINES.list().iter().filter(|engine| engine.class == class).count() as u32;
        use crate::topology::EngineClass::*;
        assert_eq!((lookup(23), lookup(24), lookup(27)), (present(Render), present(Compute), present(Copy)));
        // 0x9140 enables video engines 0 and 2 and enhancement engines 0 and 1.
        assert_eq!((lookup(25), lookup(26)), (0x05_u32.count_ones(), 0x3_u32.count_ones()));
    }

    /// The table of DG2-G11 has two slices, eight dual subslices and one compute engine.
    #[test]
    fn the_smaller_die_has_fewer_units() {
        let die = XE_HPG.die("dg2-g11").unwrap();
        assert_eq!([1, 2, 70, 23, 24, 25, 26, 27].map(|key| lookup(die, key)), [2, 8, 8, 1, 1, 2, 2, 1]);
    }
}
