// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Steering registers of the replicated ranges (V13-140..143).

use bitfield_struct::bitfield;

use super::engine_fields::EngineFields;
use super::engine_offsets::CS_SELECTOR;
use super::{Register, STORED, register};

/// STEER_SEMAPHORE: steering of the MCFG endpoints.
pub const MCFG_SELECTOR: u32 = 0xfd0;
/// SF_MCR_SELECTOR: the CPU's steering of the SF endpoints.
pub const SF_SELECTOR: u32 = 0xfd8;
/// GAM_MCR_SELECTOR: steering of the GAM.
pub const GAM_SELECTOR: u32 = 0xfe0;
/// MCR_SELECTOR: the driver's steering for all units except SQIDI and GAM.
pub const MCR_SELECTOR: u32 = 0xfdc;

/// GUC_MCR_SELECTOR: steering of the GuC's accesses to all units (V13-141).
pub const GUC_SELECTOR: u32 = 0xc060;

/// A steering register (V13-143).
#[bitfield(u32)]
pub struct Steering {
    #[bits(24)]
    __: u32,
    /// Subslice id of the selected instance.
    #[bits(3)]
    pub subslice: u8,
    /// Slice id of the selected instance.
    #[bits(4)]
    pub slice: u8,
    /// A write reaches all instances.
    pub multicast: bool,
}

impl Steering {
    /// The reset value.
    pub const MULTICAST: Steering = Steering::new().with_multicast(true);

    /// The selection of an instance; `None` if the register has no place for its ids.
    pub fn unicast(slice: u32, subslice: u32) -> Option<Self> {
        let (slice, subslice) = (u8::try_from(slice).ok()?, u8::try_from(subslice).ok()?);
        Steering::new().with_slice_checked(slice).ok()?.with_subslice_checked(subslice).ok()
    }

    /// The selection of an instance by the low four and three bits of its ids.
    pub fn unicast_truncated(slice: u8, subslice: u8) -> Self {
        Steering::new().with_slice(slice & 0xf).with_subslice(subslice & 7)
    }
}

/// CS_MMIO_GROUP_INSTANCE_SELECT: steering of a streamer's commands (V13-142; xe: xe_engine_regs.h).
#[bitfield(u32)]
pub struct CsSteering {
    __: u16,
    /// Subslice id of the selected instance.
    #[bits(7)]
    pub instance: u32,
    /// Slice id of the selected instance.
    #[bits(7)]
    pub group: u32,
    /// Reads are steered; otherwise, any instance may respond.
    pub selective_read: bool,
    __: bool,
}

impl EngineFields for CsSteering {
    const OWN: u32 = CS_SELECTOR;
}

const DEFAULT: u32 = Steering::MULTICAST.into_bits();

/// The register table.
pub const TABLE: &[Register] = &[
    register(MCFG_SELECTOR, "STEER_SEMAPHORE", STORED, DEFAULT, "V13-140; MCFG endpoints"),
    register(0xfd4, "MTL_MCR_SELECTOR", STORED, DEFAULT, "V13-140; hardware agents"),
    register(SF_SELECTOR, "SF_MCR_SELECTOR", STORED, DEFAULT, "V13-140; SF endpoints"),
    register(MCR_SELECTOR, "MCR_SELECTOR", STORED, DEFAULT, "V13-140, V13-143"),
    register(
        GAM_SELECTOR,
        "GAM_MCR_SELECTOR",
        STORED,
        Steering::MULTICAST.with_slice(1).into_bits(),
        "V13-140, V13-158; instance 1 is the primary GAM",
    ),
    register(GUC_SELECTOR, "GUC_MCR_SELECTOR", STORED, DEFAULT, "V13-141"),
];
