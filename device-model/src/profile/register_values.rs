// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reset values that depend on the card's profile or on the engine: memory layout, fuses, frequencies, instance
//! numbers.

use arctic_sriov::number::{high, low};

use super::CardProfile;
use crate::memory::layout::MemoryLayout;
use crate::registers::ranges::{Fuses, Replication};
use crate::registers::{
    COMPUTE_DSS_ENABLE, FREQ_INFO_REC, GEOMETRY_DSS_ENABLE, GT_PERF_STATUS, MCFG_SELECTOR, MIRROR_FUSE3, MULTICAST,
    RP_STATE_CAP, RPNSWREQ, SF_SELECTOR,
};

/// STOLEN_RESERVED: bits 63:20 are the address of the WOPCM at the end of stolen memory, bits 9:7 = 2 encode its size
/// of 4 MiB, bit 0 is set if it exists (contract B.2; i915: icl_get_stolen_reserved).
const WOPCM_4M: u64 = 2 << 7 | 1;
const WOPCM_BYTES: u64 = 4 << 20;

/// Offsets and reset values that depend on the profile.
pub fn values(profile: &CardProfile) -> Vec<(u32, u32)> {
    let layout = MemoryLayout::of(profile.local_memory);
    let fuses = &profile.fuses;
    let gibibytes = low(profile.local_memory >> 30);
    let halves = |offset: u32, address: u64| [(offset, low(address)), (offset + 4, high(address))];
    let mut values = vec![
        (0x4900, gibibytes << 8),
        (0x10_83a0, gibibytes << 8),
        (0x4910, low(layout.usable >> 16) << 8),
        (GEOMETRY_DSS_ENABLE, fuses.dss_mask),
        (COMPUTE_DSS_ENABLE, fuses.dss_mask),
        (0x9134, u32::from(fuses.eu_mask)),
        (0x9138, slices(fuses.dss_mask)),
        (MIRROR_FUSE3, u32::from(fuses.mslice_mask)),
        (0x9140, u32::from(fuses.vebox_mask) << 16 | u32::from(fuses.vdbox_mask)),
    ];
    // Firmware steers reads to a super queue that exists.
    let instances = Fuses { dss: fuses.dss_mask, meml3: u32::from(fuses.mslice_mask) };
    let queue = Replication::Sqidi.enabled(instances).trailing_zeros();
    values.extend([MCFG_SELECTOR, SF_SELECTOR].map(|selector| (selector, MULTICAST | queue << 24)));
    values.extend(halves(0x10_80c0, layout.stolen_base));
    values.extend(halves(0x10_82c0, (profile.local_memory - WOPCM_BYTES) | WOPCM_4M));
    values.extend(halves(0x10_8100, layout.gsm_base));
    let step = |megahertz: u32| megahertz / 50;
    let frequency = &profile.frequency;
    values.push((RP_STATE_CAP, step(frequency.rp0) | step(frequency.rp1) << 8 | step(frequency.rpn) << 16));
    values.push((FREQ_INFO_REC, step(frequency.rpn) << 8 | step(frequency.rp0) << 16));
    // Assumption: the efficient frequency (RPe) is the minimum, the attainable frequency (RPa) the maximum.
    values.push((RPNSWREQ, (step(frequency.rpn) * 3) << 23));
    values.push((GT_PERF_STATUS, (step(frequency.rpn) * 3) << 11));
    for info in profile.generation().engines.list() {
        values.push((info.mmio_base + 0x8c, u32::from(info.instance) << 4 | info.class as u32));
    }
    values
}

/// Mask of slices that have at least one subslice, four subslices per slice (V13-155).
fn slices(dss_mask: u32) -> u32 {
    (0..8).filter(|slice| dss_mask >> (slice * 4) & 0xf != 0).map(|slice| 1 << slice).sum()
}
