// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reset values that depend on the card's profile or on the engine: memory layout, fuses, frequencies, instance
//! numbers.

use arctic_sriov::number::{high, low};

use super::CardProfile;
use crate::memory::layout::MemoryLayout;
use crate::registers::engine_offsets::ENGINE_ID;
use crate::registers::fuses::{
    COMPUTE_DSS_ENABLE, EU_ENABLE, GEOMETRY_DSS_ENABLE, MIRROR_FUSE3, SLICE_ENABLE, VDBOX, VEBOX, VEBOX_VDBOX_DISABLE,
};
use crate::registers::memory::{FLAT_CCS_BASE, FLAT_CCS_BASE_ADDR, TILE_GIBIBYTES, TILE0_ADDR_RANGE};
use crate::registers::power::{
    ACTUAL_RATIO, FREQ_INFO_REC, GT_PERF_STATUS, REQUESTED_RATIO, RP_STATE_CAP, RP0, RP1, RPA, RPE, RPN, RPNSWREQ,
};
use crate::registers::ranges::{Fuses, Replication};
use crate::registers::steering::{MCFG_SELECTOR, MULTICAST, SF_SELECTOR, SUBSLICE};
use crate::registers::tile::{DSMBASE, GSMBASE, SG_TILE_ADDR_RANGE, STOLEN_RESERVED, WOPCM_ENABLED, WOPCM_SIZE};
use crate::sensors::RAPL_LIMIT;

/// STOLEN_RESERVED, low dword: the WOPCM exists and has 4 MiB; it is at the end of stolen memory (contract B.2; i915:
/// icl_get_stolen_reserved).
const WOPCM_4M: u32 = WOPCM_SIZE.of(2) | WOPCM_ENABLED.mask();
const WOPCM_BYTES: u64 = 4 << 20;

/// Offsets and reset values that depend on the profile.
pub fn values(profile: &CardProfile) -> Vec<(u32, u32)> {
    let layout = MemoryLayout::of(profile.local_memory);
    let fuses = &profile.fuses;
    let gibibytes = low(profile.local_memory >> 30);
    let halves = |offset: u32, address: u64| [(offset, low(address)), (offset + 4, high(address))];
    let mut values = vec![
        (TILE0_ADDR_RANGE, TILE_GIBIBYTES.of(gibibytes)),
        (SG_TILE_ADDR_RANGE, TILE_GIBIBYTES.of(gibibytes)),
        (FLAT_CCS_BASE_ADDR, FLAT_CCS_BASE.of(low(layout.usable >> 16))),
        (GEOMETRY_DSS_ENABLE, fuses.dss_mask),
        (COMPUTE_DSS_ENABLE, fuses.dss_mask),
        (EU_ENABLE, u32::from(fuses.eu_mask)),
        (SLICE_ENABLE, slices(fuses.dss_mask)),
        (MIRROR_FUSE3, u32::from(fuses.mslice_mask)),
        (VEBOX_VDBOX_DISABLE, VEBOX.of(fuses.vebox_mask.into()) | VDBOX.of(fuses.vdbox_mask.into())),
    ];
    // Firmware steers reads to a super queue that exists.
    let instances = Fuses { dss: fuses.dss_mask, meml3: u32::from(fuses.mslice_mask) };
    let queue = Replication::Sqidi.enabled(instances).trailing_zeros();
    values.extend([MCFG_SELECTOR, SF_SELECTOR].map(|selector| (selector, MULTICAST.mask() | SUBSLICE.of(queue))));
    values.extend(halves(DSMBASE, layout.stolen_base));
    values.extend(halves(STOLEN_RESERVED, (profile.local_memory - WOPCM_BYTES) | u64::from(WOPCM_4M)));
    values.extend(halves(GSMBASE, layout.gsm_base));
    let step = |megahertz: u32| megahertz / 50;
    let frequency = &profile.frequency;
    values
        .push((RP_STATE_CAP, RP0.of(step(frequency.rp0)) | RP1.of(step(frequency.rp1)) | RPN.of(step(frequency.rpn))));
    values.push((RAPL_LIMIT, profile.power.limit()));
    values.push((FREQ_INFO_REC, RPE.of(step(frequency.rpn)) | RPA.of(step(frequency.rp0))));
    // Assumption: the efficient frequency (RPe) is the minimum, the attainable frequency (RPa) the maximum.
    values.push((RPNSWREQ, REQUESTED_RATIO.of(step(frequency.rpn) * 3)));
    values.push((GT_PERF_STATUS, ACTUAL_RATIO.of(step(frequency.rpn) * 3)));
    for info in profile.generation().engines.list() {
        values.push((info.register(ENGINE_ID), u32::from(info.instance) << 4 | info.class as u32));
    }
    values
}

/// Mask of slices that have at least one subslice, four subslices per slice (V13-155).
fn slices(dss_mask: u32) -> u32 {
    (0..8).filter(|slice| dss_mask >> (slice * 4) & 0xf != 0).map(|slice| 1 << slice).sum()
}
