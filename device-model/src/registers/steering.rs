// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Steering registers of the replicated ranges (V13-140..143).

use super::{Register, STORED, register};

/// MCR_SELECTOR: the driver's steering for all units except SQIDI and GAM; bit 31 multicast, bits 30:27 slice, bits
/// 26:24 subslice.
pub const MCR_SELECTOR: u32 = 0xfdc;

/// The register table.
pub const TABLE: &[Register] = &[
    register(0xfd0, "STEER_SEMAPHORE", STORED, 0x8000_0000, "V13-140; MCFG endpoints"),
    register(0xfd4, "MTL_MCR_SELECTOR", STORED, 0x8000_0000, "V13-140; hardware agents"),
    register(0xfd8, "SF_MCR_SELECTOR", STORED, 0x8000_0000, "V13-140; SF endpoints"),
    register(MCR_SELECTOR, "MCR_SELECTOR", STORED, 0x8000_0000, "V13-140, V13-143"),
    register(0xfe0, "GAM_MCR_SELECTOR", STORED, 0x8800_0000, "V13-140, V13-158; instance 1 is the primary GAM"),
    register(0xc060, "GUC_MCR_SELECTOR", STORED, 0x8000_0000, "V13-141"),
];
