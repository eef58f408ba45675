// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Resources that the functions of a card divide among themselves, and the limits of what a function can have.

use std::ops::Range;

use crate::memory::ggtt::GGTT_PAGE;
use crate::memory::storage::FRAME;

/// Format of the SR-IOV implementation of a generation. The entries of the GGTT and of the LMTT, which state the owner
/// of a page, are defined in `crate::gate`.
pub struct SriovFormat {
    /// GGTT addresses that functions may own.
    pub ggtt: Range<u64>,
    /// Unit of GGTT shares in bytes.
    pub ggtt_page: u64,
    /// Unit of local memory shares in bytes: the memory that an entry of the LMTT maps.
    pub local_page: u64,
    /// Number of context ids of all functions.
    pub contexts: u32,
    /// Number of doorbells of all functions, at most [`crate::doorbell::DOORBELLS`].
    pub doorbells: u32,
    /// Maximum execution quantum in ms; larger values are clamped.
    pub longest_quantum_ms: u32,
    /// Maximum preemption timeout in us; larger values are clamped.
    pub longest_preemption_us: u32,
    /// Maximum number of scheduling groups in a list of values.
    pub groups: usize,
    /// Offsets of the fuse and clock registers whose values a PF driver tells VF drivers, ascending, as the search of
    /// VF drivers requires.
    pub runtime_registers: &'static [u32],
    /// Versions, major and minor, of the interface between PF and VF drivers.
    pub relay_version: (u32, u32),
}

/// SR-IOV of Xe-HPG.
pub static XE_HPG_SRIOV: SriovFormat = SriovFormat {
    // WOPCM is below (xe: xe_ggtt.c, xe_ggtt_init_early), the APIC window above (xe: GUC_GGTT_TOP).
    ggtt: 4 << 20..0xfee0_0000,
    ggtt_page: GGTT_PAGE,
    // V13-101, contract D.5.
    local_page: FRAME,
    // xe: GUC_ID_MAX.
    contexts: 65535,
    // V13-035, V13-091.
    doorbells: 256,
    // xe: abi/guc_klvs_abi.h, GUC_KLV_VF_CFG_EXEC_QUANTUM_MAX_VALUE, GUC_KLV_VF_CFG_PREEMPT_TIMEOUT_MAX_VALUE.
    longest_quantum_ms: 100_000,
    longest_preemption_us: 100_000_000,
    // This card only has the first.
    groups: 8,
    // xe: ats_m_runtime_regs.
    runtime_registers: &[0x0d00, 0x9118, 0x911c, 0x9134, 0x913c, 0x9140, 0x9144, 0xc1dc],
    relay_version: (1, 0),
};
