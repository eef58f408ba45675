// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Layout of the card's local memory: usable memory, compression metadata, GGTT, stolen memory (contract B.2).

/// 1 MiB in bytes.
const MIB: u64 = 1 << 20;
/// Alignment of the end of usable memory, required by the driver's migration map (xe: xe_migrate.c).
const USABLE_ALIGNMENT: u64 = 2 * MIB;
/// Size of stolen memory at the top, including the WOPCM at its end.
const STOLEN: u64 = 64 * MIB;
/// Size reserved for the GGTT.
const GSM: u64 = 8 * MIB;

/// Boundaries of the areas of local memory, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// End of the memory that a driver may use, and start of the flat compression metadata (1/256 of local memory).
    pub usable: u64,
    /// Start of the GGTT.
    pub gsm_base: u64,
    /// Start of stolen memory, which extends to the end of local memory.
    pub stolen_base: u64,
}

impl MemoryLayout {
    /// Computes the layout for `local` bytes of local memory, 1 GiB or more.
    #[allow(clippy::arithmetic_side_effects, reason = "the reserved areas take less than 1 GiB")]
    pub const fn of(local: u64) -> Self {
        let stolen_base = local - STOLEN;
        let gsm_base = stolen_base - GSM;
        let usable = (gsm_base - local / 256) / USABLE_ALIGNMENT * USABLE_ALIGNMENT;
        MemoryLayout { usable, gsm_base, stolen_base }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]

    use super::MemoryLayout;

    /// Contract B.2: order and alignment of the areas, for cards of 1, 2 and 16 GiB.
    #[test]
    fn the_parts_are_in_order_and_aligned() {
        for gibibytes in [1, 2, 16_u64] {
            let local = gibibytes << 30;
            let MemoryLayout { usable, gsm_base, stolen_base } = MemoryLayout::of(local);
            assert_eq!((usable % (2 << 20), gsm_base - usable >= local / 256), (0, true));
            assert!(usable < gsm_base && gsm_base < stolen_base && stolen_base < local);
        }
        assert_eq!(MemoryLayout::of(16 << 30).usable, 16248 << 20);
    }
}
