//! The hardware configuration table that GET_HWCONFIG hands out: key, length in dwords, values (contract B.4 step 21).

/// MAX_SLICES_SUPPORTED and MAX_SUBSLICE: what the kernel driver itself looks up.
const TABLE: &[u32] = &[1, 1, 8, 70, 1, 32];

/// The whole table.
pub fn table() -> &'static [u32] {
    TABLE
}
