// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Steering registers of the replicated ranges (V13-140..143).

use super::{Bits, Register, STORED, register};

/// STEER_SEMAPHORE: steering of the MCFG endpoints; the fields are those of `MCR_SELECTOR`.
pub const MCFG_SELECTOR: u32 = 0xfd0;
/// SF_MCR_SELECTOR: the CPU's steering of the SF endpoints.
pub const SF_SELECTOR: u32 = 0xfd8;
/// GAM_MCR_SELECTOR: steering of the GAM.
pub const GAM_SELECTOR: u32 = 0xfe0;
/// MCR_SELECTOR: the driver's steering for all units except SQIDI and GAM.
pub const MCR_SELECTOR: u32 = 0xfdc;

/// GUC_MCR_SELECTOR: steering of the GuC's accesses to all units (V13-141).
pub const GUC_SELECTOR: u32 = 0xc060;

/// Steering registers: a write reaches all instances (V13-143; default 1).
pub const MULTICAST: Bits = Bits::bit(31);
/// Steering registers: slice id of the selected instance (V13-143).
pub const SLICE: Bits = Bits::new(30, 27);
/// Steering registers: subslice id of the selected instance (V13-143).
pub const SUBSLICE: Bits = Bits::new(26, 24);

/// CS_MMIO_GROUP_INSTANCE_SELECT: reads are steered; otherwise, any instance may respond.
pub const CS_SELECTIVE_READ: Bits = Bits::bit(30);
/// CS_MMIO_GROUP_INSTANCE_SELECT: slice id of the selected instance.
pub const CS_GROUP: Bits = Bits::new(29, 23);
/// CS_MMIO_GROUP_INSTANCE_SELECT: subslice id of the selected instance.
pub const CS_INSTANCE: Bits = Bits::new(22, 16);

/// Reset value: multicast.
const DEFAULT: u32 = MULTICAST.mask();

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
        DEFAULT | SLICE.of(1),
        "V13-140, V13-158; instance 1 is the primary GAM",
    ),
    register(GUC_SELECTOR, "GUC_MCR_SELECTOR", STORED, DEFAULT, "V13-141"),
];
