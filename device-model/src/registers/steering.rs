// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Steering registers of the replicated ranges (V13-140..143).

use super::{Register, STORED, register};

/// STEER_SEMAPHORE: steering of the MCFG endpoints; the fields are those of [`MCR_SELECTOR`].
pub const MCFG_SELECTOR: u32 = 0xfd0;
/// SF_MCR_SELECTOR: the CPU's steering of the SF endpoints.
pub const SF_SELECTOR: u32 = 0xfd8;
/// GAM_MCR_SELECTOR: steering of the GAM.
pub const GAM_SELECTOR: u32 = 0xfe0;
/// MCR_SELECTOR: the driver's steering for all units except SQIDI and GAM; bit 31 multicast, bits 30:27 slice, bits
/// 26:24 subslice.
pub const MCR_SELECTOR: u32 = 0xfdc;

/// Bit of a steering register: a write reaches all instances (V13-143; default 1).
pub const MULTICAST: u32 = 1 << 31;

/// The register table.
pub const TABLE: &[Register] = &[
    register(MCFG_SELECTOR, "STEER_SEMAPHORE", STORED, 0x8000_0000, "V13-140; MCFG endpoints"),
    register(0xfd4, "MTL_MCR_SELECTOR", STORED, 0x8000_0000, "V13-140; hardware agents"),
    register(SF_SELECTOR, "SF_MCR_SELECTOR", STORED, 0x8000_0000, "V13-140; SF endpoints"),
    register(MCR_SELECTOR, "MCR_SELECTOR", STORED, 0x8000_0000, "V13-140, V13-143"),
    register(GAM_SELECTOR, "GAM_MCR_SELECTOR", STORED, 0x8800_0000, "V13-140, V13-158; instance 1 is the primary GAM"),
    register(0xc060, "GUC_MCR_SELECTOR", STORED, 0x8000_0000, "V13-141"),
];
