// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! PCI enumeration as performed by firmware and an operating system: walk the capability lists, size and place BARs,
//! enable VFs.

use crate::machine::transport::{Machine, VFS};

/// Command register.
pub const COMMAND: u16 = 0x04;
/// First BAR.
pub const BAR0: u16 = 0x10;
/// Memory Space Enable in Command.
pub const MEMORY_SPACE: u16 = 1 << 1;
/// Bus Master Enable in Command.
pub const BUS_MASTER: u16 = 1 << 2;

/// Capability ID: power management.
pub const POWER_MANAGEMENT: u8 = 0x01;
/// Capability ID: MSI.
pub const MSI: u8 = 0x05;
/// Capability ID: PCI Express.
pub const EXPRESS: u8 = 0x10;
/// Capability ID: MSI-X.
pub const MSI_X: u8 = 0x11;
/// Extended capability ID: ARI.
pub const ARI: u16 = 0x0e;
/// Extended capability ID: SR-IOV.
pub const SRIOV: u16 = 0x10;

/// SR-IOV Control, in the SR-IOV capability.
pub const SRIOV_CONTROL: u16 = 0x08;
/// TotalVFs, in the SR-IOV capability.
pub const TOTAL_VFS: u16 = 0x0e;
/// NumVFs, in the SR-IOV capability.
pub const NUM_VFS: u16 = 0x10;
/// First VF Offset, in the SR-IOV capability.
pub const VF_OFFSET: u16 = 0x14;
/// VF Stride, in the SR-IOV capability.
pub const VF_STRIDE: u16 = 0x16;
/// VF Device ID, in the SR-IOV capability.
pub const VF_DEVICE: u16 = 0x1a;
/// First VF BAR, in the SR-IOV capability.
pub const VF_BAR0: u16 = 0x24;
/// VF Enable in SR-IOV Control.
pub const VF_ENABLE: u16 = 1 << 0;
/// VF MSE in SR-IOV Control.
pub const VF_MEMORY_SPACE: u16 = 1 << 3;

/// Base address of the window for 64-bit BARs.
const WINDOW: u64 = 0x40_0000_0000;
/// Part of the window reserved for each BAR, in bytes.
const ROOM: u64 = 32 << 30;

/// Returns ID and offset of each standard capability, in list order.
pub fn capabilities(machine: &mut dyn Machine, function: u8) -> Vec<(u8, u16)> {
    let mut found = Vec::new();
    let mut at = u16::from(machine.config8(function, 0x34));
    while at != 0 {
        assert!(at >= 0x40 && at.is_multiple_of(4), "capability at an invalid offset {at:#x}");
        assert!(found.len() < 48, "the capability list has no end: {found:x?}");
        let header = machine.config16(function, at);
        found.push((header as u8, at));
        at = header >> 8;
    }
    found
}

/// Returns ID and offset of each extended capability, in list order.
pub fn extended(machine: &mut dyn Machine, function: u8) -> Vec<(u16, u16)> {
    let mut found = Vec::new();
    let mut at = 0x100_u16;
    while at != 0 {
        assert!(at >= 0x100 && at.is_multiple_of(4), "extended capability at an invalid offset {at:#x}");
        assert!(found.len() < 960, "the extended capability list has no end: {found:x?}");
        let header = machine.config32(function, at);
        if header == 0 {
            break;
        }
        found.push((header as u16, at));
        at = (header >> 20) as u16;
    }
    found
}

/// Returns the offset of the capability `id`; panics if there is none.
pub fn capability(machine: &mut dyn Machine, function: u8, id: u8) -> u16 {
    let found = capabilities(machine, function);
    found.iter().find(|(has, _)| *has == id).unwrap_or_else(|| panic!("no capability {id:#x} in {found:x?}")).1
}

/// Returns the offset of the PF's SR-IOV capability.
pub fn sriov(machine: &mut dyn Machine) -> u16 {
    let found = extended(machine, 0);
    found.iter().find(|(has, _)| *has == SRIOV).unwrap_or_else(|| panic!("no SR-IOV capability in {found:x?}")).1
}

/// Returns the size and the low four bits of the BAR at offset `at`; restores its value.
pub fn size_bar(machine: &mut dyn Machine, function: u8, at: u16) -> (u64, u8) {
    let before = [machine.config32(function, at), machine.config32(function, at + 4)];
    machine.set_config32(function, at, u32::MAX);
    machine.set_config32(function, at + 4, u32::MAX);
    let low = machine.config32(function, at);
    let high = machine.config32(function, at + 4);
    machine.set_config32(function, at, before[0]);
    machine.set_config32(function, at + 4, before[1]);
    let mask = u64::from(high) << 32 | u64::from(low & !0xf);
    ((!mask).wrapping_add(1), (low & 0xf) as u8)
}

fn place_bar(machine: &mut dyn Machine, function: u8, at: u16, address: u64) {
    machine.set_config32(function, at, address as u32);
    machine.set_config32(function, at + 4, (address >> 32) as u32);
}

/// Addresses that [`place`] assigns to BARs 0 and 2 of the PF and of VF 1.
pub const PLACES: [u64; 4] = [WINDOW, WINDOW + ROOM, WINDOW + 2 * ROOM, WINDOW + 3 * ROOM];

/// Assigns addresses to the BARs of the PF and of its VFs.
pub fn place(machine: &mut dyn Machine) {
    place_from(machine, WINDOW);
}

/// Same as [`place`], in a different address range.
pub fn place_elsewhere(machine: &mut dyn Machine) {
    place_from(machine, WINDOW + 8 * ROOM);
}

fn place_from(machine: &mut dyn Machine, window: u64) {
    let mut rooms = (window..).step_by(ROOM as usize);
    for bar in [0, 2] {
        let address = rooms.next().unwrap();
        place_bar(machine, 0, BAR0 + 4 * bar, address);
        machine.placed(0, bar as u8, address);
    }
    if !machine.visibility().places_vf_bars {
        return;
    }
    let capability = sriov(machine);
    for bar in [0, 2] {
        let (size, _) = size_bar(machine, 0, capability + VF_BAR0 + 4 * bar);
        let address = rooms.next().unwrap();
        place_bar(machine, 0, capability + VF_BAR0 + 4 * bar, address);
        for vf in 1..=VFS {
            machine.placed(vf, bar as u8, address + size * u64::from(vf - 1));
        }
    }
}

/// Sets memory space enable and bus master enable.
pub fn enable(machine: &mut dyn Machine, function: u8) {
    machine.set_config16(function, COMMAND, MEMORY_SPACE | BUS_MASTER);
}

/// Places all BARs and enables the PF.
pub fn bring_up(machine: &mut dyn Machine) {
    place(machine);
    enable(machine, 0);
}

/// Enables VFs 1 to `count` and their BARs, as a PCI core does; 0 disables all VFs.
pub fn enable_vfs(machine: &mut dyn Machine, count: u16) {
    let capability = sriov(machine);
    if count == 0 {
        machine.set_config16(0, capability + SRIOV_CONTROL, 0);
    }
    machine.set_config16(0, capability + NUM_VFS, count);
    if count != 0 {
        machine.set_config16(0, capability + SRIOV_CONTROL, VF_ENABLE | VF_MEMORY_SPACE);
    }
}

/// Enables VFs 1 to `count`, and sets memory space enable and bus master enable of each.
pub fn bring_up_vfs(machine: &mut dyn Machine, count: u8) {
    enable_vfs(machine, count.into());
    (1..=count).for_each(|vf| enable(machine, vf));
}

/// Programs and enables the function's MSI.
pub fn enable_msi(machine: &mut dyn Machine, function: u8) {
    let at = capability(machine, function, MSI);
    let (address, data) = machine.msi_message(function);
    machine.set_config32(function, at + 4, address as u32);
    machine.set_config32(function, at + 8, (address >> 32) as u32);
    machine.set_config16(function, at + 12, data);
    set_msi(machine, function, true);
}

/// Writes MSI Enable.
pub fn set_msi(machine: &mut dyn Machine, function: u8, on: bool) {
    let at = capability(machine, function, MSI);
    machine.set_config16(function, at + 2, u16::from(on));
}

/// Writes the mask bit of the function's only vector.
pub fn mask_msi(machine: &mut dyn Machine, function: u8, on: bool) {
    let at = capability(machine, function, MSI);
    machine.set_config32(function, at + 16, u32::from(on));
}

/// Starts a Function Level Reset.
pub fn flr(machine: &mut dyn Machine, function: u8) {
    let at = capability(machine, function, EXPRESS);
    let control = machine.config16(function, at + 8);
    machine.set_config16(function, at + 8, control | 1 << 15);
}
