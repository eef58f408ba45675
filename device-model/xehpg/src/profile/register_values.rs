// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reset values that depend on the card's profile or on the engine: memory layout, fuses, frequencies, instance
//! numbers.

use arctic_sriov::number::{high, low};

use super::CardProfile;
use crate::memory::layout::MemoryLayout;
use crate::registers::CardFields;
use crate::registers::engine_offsets::ENGINE_ID;
use crate::registers::fuses::{
    COMPUTE_DSS_ENABLE, EU_ENABLE, GEOMETRY_DSS_ENABLE, MIRROR_FUSE3, SLICE_ENABLE, VeboxVdboxDisable,
};
use crate::registers::memory::{FLAT_CCS_BASE, FLAT_CCS_BASE_ADDR, TILE_GIBIBYTES, TILE0_ADDR_RANGE};
use crate::registers::power_fields::{FreqInfoRec, FrequencyRequest, MAX_RATIO, PerfStatus, RpStateCap};
use crate::registers::ranges::{Fuses, Replication};
use crate::registers::steering::{MCFG_SELECTOR, SF_SELECTOR, Steering};
use crate::registers::tile::{DSMBASE, GSMBASE, SG_TILE_ADDR_RANGE, STOLEN_RESERVED, StolenReserved};

/// STOLEN_RESERVED, low dword: the WOPCM exists and has 4 MiB; it is at the end of stolen memory (contract B.2; i915:
/// icl_get_stolen_reserved).
const WOPCM_4M: u32 = StolenReserved::new().with_wopcm_size(2).with_wopcm_enabled(true).into_bits();
const WOPCM_BYTES: u64 = 4 << 20;

/// A register's offset and value.
fn value_of<R: CardFields>(register: R) -> (u32, u32) {
    (R::OFFSET, register.into())
}

/// A frequency in MHz in units of 50 MHz. A card file has at most 12750 MHz.
fn step(megahertz: u32) -> u8 {
    u8::try_from(megahertz / 50).unwrap_or(u8::MAX)
}

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
        value_of(VeboxVdboxDisable::new().with_vebox(fuses.vebox_mask & 0xf).with_vdbox(fuses.vdbox_mask)),
    ];
    // Firmware steers reads to a super queue that exists.
    let instances = Fuses { dss: fuses.dss_mask, meml3: u32::from(fuses.mslice_mask) };
    let queue = (0..8_u8).find(|queue| Replication::Sqidi.enabled(instances) >> queue & 1 != 0).unwrap_or(0);
    let steering = Steering::MULTICAST.with_subslice(queue).into();
    values.extend([MCFG_SELECTOR, SF_SELECTOR].map(|selector| (selector, steering)));
    values.extend(halves(DSMBASE, layout.stolen_base));
    values.extend(halves(STOLEN_RESERVED, (profile.local_memory - WOPCM_BYTES) | u64::from(WOPCM_4M)));
    values.extend(halves(GSMBASE, layout.gsm_base));
    let frequency = &profile.frequency;
    let [rp0, rp1, rpn] = [frequency.rp0, frequency.rp1, frequency.rpn].map(step);
    values.push(value_of(RpStateCap::new().with_rp0(rp0).with_rp1(rp1).with_rpn(rpn)));
    values.push(value_of(profile.power.limit()));
    // Assumption: the efficient frequency (RPe) is the minimum, the attainable frequency (RPa) the maximum.
    values.push(value_of(FreqInfoRec::new().with_rpe(rpn).with_rpa(rp0.into())));
    let ratio = (u32::from(rpn) * 3).min(MAX_RATIO);
    values.push(value_of(FrequencyRequest::new().with_ratio(ratio)));
    values.push(value_of(PerfStatus::new().with_ratio(ratio)));
    for info in profile.generation().engines.list() {
        values.push((info.register(ENGINE_ID), u32::from(info.instance) << 4 | info.class as u32));
    }
    values
}

/// Mask of slices that have at least one subslice, four subslices per slice (V13-155).
fn slices(dss_mask: u32) -> u32 {
    (0..8).filter(|slice| dss_mask >> (slice * 4) & 0xf != 0).map(|slice| 1 << slice).sum()
}
