// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Resources that the functions of a card divide among themselves, and the limits of what a function can have.

use std::ops::Range;

use arctic_sriov::number::low;

use crate::doorbell::DOORBELLS;
use crate::memory::ggtt::GGTT_PAGE;
use crate::memory::storage::FRAME;
use crate::registers::fuses::{
    COMPUTE_DSS_ENABLE, EU_ENABLE, GEOMETRY_DSS_ENABLE, MIRROR_FUSE1, MIRROR_FUSE3, VEBOX_VDBOX_DISABLE,
};
use crate::registers::guc::HUC_KERNEL_LOAD_INFO;
use crate::registers::tile::RPM_CONFIG0;

/// Resources and limits of the SR-IOV implementation of a generation. The entries of the GGTT, which state the owner of
/// a page, and of the LMTT, whose directory has an entry per function, are defined in `crate::gate`.
pub struct SriovLimits {
    /// GGTT addresses that functions may own.
    pub ggtt: Range<u64>,
    /// Unit of GGTT shares in bytes.
    pub ggtt_page: u64,
    /// Unit of local memory shares in bytes: the memory that an entry of the LMTT maps.
    pub local_page: u64,
    /// Number of context ids of all functions.
    pub contexts: u32,
    /// Number of doorbells of all functions, at most [`DOORBELLS`].
    pub doorbells: u32,
    /// Maximum execution quantum in ms. Larger values are clamped in KLVs, and refused in card files.
    pub max_exec_quantum_ms: u32,
    /// Maximum preemption timeout in us. Larger values are clamped in KLVs, and refused in card files.
    pub max_preempt_timeout_us: u32,
    /// Maximum number of scheduling groups for which a KLV has values.
    pub max_sched_groups: usize,
    /// Offsets of the registers whose values a PF driver tells VF drivers: fuses, clock, and state of the HuC. Ascending,
    /// as the search of VF drivers requires.
    pub runtime_registers: &'static [u32],
    /// Version of the interface between PF and VF drivers.
    pub relay_version: RelayVersion,
}

/// Version of the interface between PF and VF drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayVersion {
    /// Incompatible changes.
    pub major: u16,
    /// Compatible changes.
    pub minor: u16,
}

/// xe: ats_m_runtime_regs.
const RUNTIME_REGISTERS: &[u32] = &[
    RPM_CONFIG0,
    MIRROR_FUSE3,
    MIRROR_FUSE1,
    EU_ENABLE,
    GEOMETRY_DSS_ENABLE,
    VEBOX_VDBOX_DISABLE,
    COMPUTE_DSS_ENABLE,
    HUC_KERNEL_LOAD_INFO,
];

const _: () = assert!(is_ascending(RUNTIME_REGISTERS));

const fn is_ascending(mut offsets: &[u32]) -> bool {
    while let [first, rest @ ..] = offsets {
        if let [second, ..] = rest
            && *first >= *second
        {
            return false;
        }
        offsets = rest;
    }
    true
}

/// SR-IOV of Xe-HPG.
pub static XE_HPG_SRIOV: SriovLimits = SriovLimits {
    // WOPCM is below (xe: xe_ggtt.c, xe_ggtt_init_early), the APIC window above (xe: GUC_GGTT_TOP).
    ggtt: 4 << 20..0xfee0_0000,
    ggtt_page: GGTT_PAGE,
    // V13-105, contract D.5.
    local_page: FRAME,
    // xe: GUC_ID_MAX.
    contexts: 65535,
    // V13-093.
    doorbells: low(DOORBELLS as u64),
    // xe: abi/guc_klvs_abi.h, GUC_KLV_VF_CFG_EXEC_QUANTUM_MAX_VALUE, GUC_KLV_VF_CFG_PREEMPT_TIMEOUT_MAX_VALUE.
    max_exec_quantum_ms: 100_000,
    max_preempt_timeout_us: 100_000_000,
    // xe: abi/guc_klvs_abi.h, 1 to 8 values. The card has no engine groups, and uses the first value.
    max_sched_groups: 8,
    runtime_registers: RUNTIME_REGISTERS,
    // xe: abi/guc_relay_actions_abi.h, GUC_RELAY_VERSION_LATEST_MAJOR, GUC_RELAY_VERSION_LATEST_MINOR.
    relay_version: RelayVersion { major: 1, minor: 0 },
};
