// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Test helpers: read a function's configuration space and collect the events of a write.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use crate::event::{Event, Events};
use crate::function::PciFunction;
use crate::header::Identity;

/// An Intel Data Center GPU Flex 170 at stepping C0 (include/drm/intel/pciids.h, INTEL_ATS_M150_IDS).
pub const FLEX_170: Identity = Identity::data_center_gpu(0x56c0, 8);

/// SR-IOV Control: VF Enable, VF MSE and ARI Capable Hierarchy (PCIe 9.3.3.3).
pub const VF_ENABLE: u16 = 1 << 0;
pub const VF_MEMORY_SPACE_ENABLE: u16 = 1 << 3;
pub const ARI_CAPABLE_HIERARCHY: u16 = 1 << 4;
/// Device Control: Initiate Function Level Reset (PCIe 7.5.3.4).
pub const INITIATE_FLR: u16 = 1 << 15;
/// Command: Memory Space Enable and Bus Master Enable (PCIe 7.5.1.1.3).
pub const COMMAND_MEMORY_SPACE: u16 = 1 << 1;
pub const COMMAND_BUS_MASTER: u16 = 1 << 2;

/// The dword at `offset` in configuration space.
pub fn dword(function: &PciFunction, offset: u64) -> u32 {
    let mut data = [0; 4];
    function.read_config(offset, &mut data);
    u32::from_le_bytes(data)
}

/// The word at `offset`.
pub fn word(function: &PciFunction, offset: u64) -> u16 {
    dword(function, offset) as u16
}

/// The events of one access, in order.
pub fn events(events: Events) -> Vec<Event> {
    events.into_iter().collect()
}
