// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Resources of VFs: the lists by which a PF's driver assigns them (contract D.4), and the queries by which a VF's
//! driver finds them (contract C.1).

use alloc::vec::Vec;

/// LMEM_CFG: address of the LMTT in units of 64 KiB, and the enable bit.
pub const LMEM_CFG: u32 = 0xcf58;
/// VF_CAP_REG: reads 1 on a VF.
pub const VF_CAP: u32 = 0x19_01f8;

/// A VF's resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// First address of its GGTT range.
    pub ggtt_start: u64,
    /// Bytes of its GGTT range.
    pub ggtt_bytes: u64,
    /// Bytes of its local memory.
    pub local_bytes: u64,
    /// Number of context IDs.
    pub contexts: u32,
    /// Number of doorbells.
    pub doorbells: u32,
}

/// What the PF's driver decides about a VF beside its [`Share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// First context ID of the VF among the card's.
    pub first_context: u32,
    /// First doorbell of the VF among the card's.
    pub first_doorbell: u32,
    /// Execution quantum in milliseconds.
    pub exec_quantum_ms: u32,
    /// Preemption timeout in microseconds.
    pub preempt_timeout_us: u32,
}

impl Share {
    /// Returns the list of KLVs with these resources for [`UPDATE_VF_CFG`](crate::actions::UPDATE_VF_CFG); it has 9
    /// KLVs.
    pub fn list(&self, limits: &Limits) -> Vec<u32> {
        let mut list = Vec::new();
        for (key, value) in [(1, self.ggtt_start), (2, self.ggtt_bytes), (3, self.local_bytes)] {
            list.extend([key << 16 | 2, arctic_mi::low(value), arctic_mi::high(value)]);
        }
        for (key, value) in [
            (0x8a0b, limits.first_context),
            (0x0004, self.contexts),
            (0x8a0a, limits.first_doorbell),
            (0x0006, self.doorbells),
            (0x8a01, limits.exec_quantum_ms),
            (0x8a02, limits.preempt_timeout_us),
        ] {
            list.extend([key << 16 | 1, value]);
        }
        list
    }

    /// Returns the resources that a VF finds by queries; `query` sends the request with a key, checks that the value
    /// has this number of dwords, and returns it.
    pub fn query(mut query: impl FnMut(u32, u32) -> u64) -> Self {
        Share {
            ggtt_start: query(1, 2),
            ggtt_bytes: query(2, 2),
            local_bytes: query(3, 2),
            contexts: arctic_mi::low(query(4, 1)),
            doorbells: arctic_mi::low(query(6, 1)),
        }
    }
}

/// Returns a list of KLVs of one dword each: keys and values.
pub fn list(keys: &[(u32, u32)]) -> Vec<u32> {
    keys.iter().flat_map(|(key, value)| [key << 16 | 1, *value]).collect()
}
