// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Test helpers: read a function's configuration space and collect the events of a write.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use crate::bar::Bar;
use crate::capability::Capability;
use crate::config::Field;
use crate::event::{Event, Events};
use crate::function::{FunctionError, PciFunction};
use crate::header::Identity;
use crate::sriov_capability::SriovLayout;

/// The example of the tests is an Intel Data Center GPU Flex 170 at stepping C0 (include/drm/intel/pciids.h,
/// INTEL_ATS_M150_IDS), with two BARs.
pub const FLEX_170: Identity = Identity {
    vendor: 0x8086,
    device: 0x56c0,
    revision: 8,
    class: 0x03_80_00,
    subsystem_vendor: 0x8086,
    subsystem: 0x4905,
    serial: 0,
    pin: None,
};
/// The BAR with registers.
pub const REGISTERS_BAR: u8 = 0;
/// The BAR with memory.
pub const MEMORY_BAR: u8 = 2;
/// Offsets of the capabilities.
pub const EXPRESS: u16 = 0x70;
pub const MSI: u16 = 0xac;

/// The BARs, with `memory` bytes of memory.
pub fn bars(memory: u64) -> Result<Vec<Bar>, FunctionError> {
    Ok(vec![Bar::memory_64(REGISTERS_BAR, 16 << 20, true)?, Bar::memory_64(MEMORY_BAR, memory, true)?])
}

/// `total_vfs` VFs with `memory` bytes of memory each after reset, and these sizes to select.
pub fn layout(total_vfs: u16, sizes: &[u64], memory: u64) -> SriovLayout {
    let bars = bars(memory).unwrap();
    SriovLayout { total_vfs, at: 0x320, vf_rebar: 0x420, bars, resizable: MEMORY_BAR, sizes: sizes.to_vec() }
}

/// The physical function with `memory` bytes of memory.
pub fn physical(memory: u64, sriov: Option<&SriovLayout>) -> Result<PciFunction, FunctionError> {
    let mut capabilities = vec![
        Capability::express(EXPRESS),
        Capability::msi(MSI),
        Capability::power_management(0xd0),
        Capability::serial_number(0x100, 0),
    ];
    capabilities.extend(sriov.filter(|layout| layout.total_vfs != 0).map(|_| Capability::ari(0x200)));
    PciFunction::physical(&FLEX_170, bars(memory)?, &[Field::word(0x50, 0x00c0)], capabilities, sriov)
}

/// The capabilities of a virtual function.
pub fn vf_capabilities() -> [Capability; 3] {
    [Capability::express_virtual(EXPRESS), Capability::msi(MSI), Capability::ari(0x100)]
}

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
