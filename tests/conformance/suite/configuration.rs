// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Configuration space.

use arctic_fidelity::proves;
use arctic_test_support::machine::bus::*;
use arctic_test_support::machine::transport::{Machine, VFS};

const GTTMMADR_BYTES: u64 = 16 << 20;
/// Low four bits of a BAR: 64-bit, prefetchable.
const WIDE_PREFETCHABLE: u8 = 0xc;

/// Contract A.1: vendor, device, revision C0, a display controller that is not VGA compatible; a single-function header
/// type, and no INTx.
pub fn the_function_shows_its_identity(machine: &mut dyn Machine) {
    assert_eq!(machine.config32(0, 0), 0x56c0_8086);
    assert_eq!(machine.config32(0, 8), 0x0380_0008);
    assert_eq!(machine.config8(0, 0xe), 0, "header type");
    assert_eq!(machine.config32(0, 0x2c) as u16, 0x8086, "subsystem vendor");
    assert_eq!(machine.config8(0, 0x3d), 0, "interrupt pin");
    assert_eq!(machine.config16(0, COMMAND), 0);
    assert_ne!(machine.config16(0, 6) & 1 << 4, 0, "capabilities list");
    // Contract A.3: GGMS, from which i915 derives the size of the GGTT.
    assert_eq!(machine.config16(0, 0x50), 0x00c0);
}

/// Contract A.3: MSI and no MSI-X, FLR, power management, SR-IOV and ARI. Each capability list terminates and has no
/// duplicates.
pub fn capabilities_are_chained(machine: &mut dyn Machine) {
    let standard = capabilities(machine, 0);
    let mut ids: Vec<_> = standard.iter().map(|(id, _)| *id).collect();
    ids.sort();
    assert_eq!(ids, [POWER_MANAGEMENT, MSI, EXPRESS]);
    assert!(!ids.contains(&MSI_X));
    let express = capability(machine, 0, EXPRESS);
    assert_ne!(machine.config32(0, express + 4) & 1 << 28, 0, "FLR");
    let msi = capability(machine, 0, MSI);
    // 64-bit addresses, per-vector masking, one vector.
    assert_eq!(machine.config16(0, msi + 2) & 0x018e, 0x0180);
    let ids: Vec<_> = extended(machine, 0).iter().map(|(id, _)| *id).collect();
    assert!(ids.contains(&SRIOV) && ids.contains(&ARI), "{ids:x?}");
    let mut distinct = ids.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), ids.len(), "{ids:x?}");
    let capability = sriov(machine);
    assert_eq!(machine.config16(0, capability + TOTAL_VFS), u16::from(VFS));
    assert_eq!(machine.config16(0, capability + VF_OFFSET), 1);
    assert_eq!(machine.config16(0, capability + VF_STRIDE), 1);
    assert_eq!(machine.config16(0, capability + VF_DEVICE), 0x56c0);
}

/// PCIe 9.3.4.1, contract A.4: a VF has the PF's class and revision, MSI and FLR, but no power management, no SR-IOV
/// and no stolen memory. Its IDs read as defined by the transport.
pub fn vfs_have_class_msi_and_flr_and_no_power_management(machine: &mut dyn Machine) {
    bring_up(machine);
    enable_vfs(machine, VFS.into());
    let ids = if machine.visibility().vf_ids { 0x56c0_8086 } else { u32::MAX };
    for vf in 1..=VFS {
        assert_eq!(machine.config32(vf, 0), ids, "VF {vf}");
        assert_eq!(machine.config32(vf, 8), 0x0380_0008);
        let mut standard: Vec<_> = capabilities(machine, vf).iter().map(|(id, _)| *id).collect();
        standard.sort();
        assert_eq!(standard, [MSI, EXPRESS]);
        assert!(extended(machine, vf).iter().all(|(id, _)| *id != SRIOV));
        let express = capability(machine, vf, EXPRESS);
        assert_ne!(machine.config32(vf, express + 4) & 1 << 28, 0, "FLR");
        assert_eq!(machine.config16(vf, 0x50), 0);
    }
}

pub fn bars_are_sized_by_all_ones(machine: &mut dyn Machine) {
    proves!(
        V13_004,
        "GTTMMADR of 16 MiB and all of local memory, 64-bit and prefetchable. The sizes are read back after writing \
        all ones; no other BAR is implemented"
    );
    assert_eq!(size_bar(machine, 0, BAR0), (GTTMMADR_BYTES, WIDE_PREFETCHABLE));
    assert_eq!(size_bar(machine, 0, BAR0 + 8), (2 << 30, WIDE_PREFETCHABLE));
    for at in [BAR0 + 16, BAR0 + 20, 0x30] {
        machine.set_config32(0, at, u32::MAX);
        assert_eq!(machine.config32(0, at), 0, "{at:#x}");
    }
    place(machine);
    let low = machine.config32(0, BAR0 + 8);
    assert_eq!(low & 0xf, u32::from(WIDE_PREFETCHABLE));
    assert_ne!(machine.config32(0, BAR0 + 12), 0, "the BAR's upper half is still 0 after an address was assigned");
    if machine.visibility().vf_bars {
        enable_vfs(machine, 1);
        assert_eq!(size_bar(machine, 1, BAR0), (GTTMMADR_BYTES, WIDE_PREFETCHABLE));
        assert_eq!(size_bar(machine, 1, BAR0 + 8), (512 << 20, WIDE_PREFETCHABLE));
    } else {
        enable_vfs(machine, 1);
        machine.set_config32(1, BAR0, u32::MAX);
        assert_eq!(machine.config32(1, BAR0), 0, "a VF's own BAR register is not hardwired to 0");
    }
}

pub fn vf_bars_are_sized_in_the_capability(machine: &mut dyn Machine) {
    proves!(
        V13_001,
        "VF BARs 0 and 2 in the PF's SR-IOV capability, each with the size for one VF (contract A.3, A.4)"
    );
    let capability = sriov(machine);
    assert_eq!(size_bar(machine, 0, capability + VF_BAR0), (GTTMMADR_BYTES, WIDE_PREFETCHABLE));
    assert_eq!(size_bar(machine, 0, capability + VF_BAR0 + 8), (512 << 20, WIDE_PREFETCHABLE));
    for at in [16, 20] {
        machine.set_config32(0, capability + VF_BAR0 + at, u32::MAX);
        assert_eq!(machine.config32(0, capability + VF_BAR0 + at), 0);
    }
}

/// PCI: byte and word accesses to configuration space read and write the addressed bytes of a doubleword.
pub fn configuration_space_takes_every_width(machine: &mut dyn Machine) {
    let sriov = sriov(machine);
    for at in (0..0x100).chain(sriov..sriov + 0x40).step_by(4) {
        let dword = machine.config32(0, at);
        let bytes: [u8; 4] = std::array::from_fn(|n| machine.config8(0, at + n as u16));
        let words = [machine.config16(0, at), machine.config16(0, at + 2)];
        assert_eq!(u32::from_le_bytes(bytes), dword, "{at:#x}");
        assert_eq!(u32::from(words[1]) << 16 | u32::from(words[0]), dword, "{at:#x}");
    }
    let msi = capability(machine, 0, MSI);
    machine.set_config32(0, msi + 8, 0x1234_5678);
    machine.write_config(0, msi + 9, &[0xab]);
    machine.set_config16(0, msi + 10, 0xcdef);
    assert_eq!(machine.config32(0, msi + 8), 0xcdef_ab78);
}

/// PCI: writes to read-only registers have no effect.
pub fn read_only_registers_keep_their_values(machine: &mut dyn Machine) {
    let express = capability(machine, 0, EXPRESS);
    let capability = sriov(machine);
    let fixed = [0, 8, 0x2c, 0x34, 0x50, express + 4, capability, capability + 0xc, capability + 0x14, 0x100];
    for at in fixed {
        let before = machine.config32(0, at);
        for value in [0, u32::MAX] {
            machine.set_config32(0, at, value);
            assert_eq!(machine.config32(0, at), before, "{at:#x}");
        }
    }
}
