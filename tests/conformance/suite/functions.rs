//! Virtual functions: when they exist, and what takes them away.

use crate::bus::*;
use crate::door::{Machine, VFS};
use crate::driver::{MAILBOX, VF_CAP};

/// No such function: on a bus nobody answers.
fn absent(machine: &mut dyn Machine, vf: u8) -> bool {
    machine.config32(vf, 8) == u32::MAX && machine.register(vf, VF_CAP) == u32::MAX
}

fn present(machine: &mut dyn Machine, vf: u8) -> bool {
    machine.config32(vf, 8) != u32::MAX && machine.register(vf, VF_CAP) == 1
}

/// V13-016: VFs are there while VF Enable is set, and only as many as NumVFs says.
pub fn vf_enable_brings_vfs_into_being(machine: &mut dyn Machine) {
    bring_up(machine);
    for vf in 1..=VFS {
        assert!(absent(machine, vf), "VF {vf} before it is enabled");
    }
    bring_up_vfs(machine, 2);
    assert!(present(machine, 1) && present(machine, 2));
    assert!(absent(machine, 3), "NumVFs is 2");
    enable_vfs(machine, 0);
    for vf in 1..=VFS {
        assert!(absent(machine, vf), "VF {vf} after it is disabled");
    }
}

/// PCIe 9.3.3.7: more VFs than there are cannot be enabled; the card enables none.
pub fn more_vfs_than_there_are_cannot_be_enabled(machine: &mut dyn Machine) {
    bring_up(machine);
    for count in [u16::from(VFS) + 1, 64, u16::MAX] {
        enable_vfs(machine, count);
        assert!(absent(machine, 1), "{count}");
        enable_vfs(machine, 0);
    }
    bring_up_vfs(machine, VFS);
    assert!(present(machine, VFS));
}

/// PCIe 9.3.3.7: NumVFs keeps its value while VF Enable is set.
pub fn the_number_of_vfs_is_locked_while_they_are_enabled(machine: &mut dyn Machine) {
    bring_up(machine);
    bring_up_vfs(machine, 1);
    let capability = sriov(machine);
    for count in [0, 2, 3] {
        machine.set_config16(0, capability + NUM_VFS, count);
        assert_eq!(machine.config16(0, capability + NUM_VFS), 1);
    }
    assert!(present(machine, 1) && absent(machine, 2));
}

/// V13-016: VF MSE is what VFs' BARs answer by; the VFs themselves go on existing without.
pub fn vf_bars_answer_with_vf_memory_space_only(machine: &mut dyn Machine) {
    bring_up(machine);
    bring_up_vfs(machine, 2);
    let control = sriov(machine) + SRIOV_CONTROL;
    machine.set_config16(0, control, VF_ENABLE);
    for vf in 1..=2 {
        assert_eq!(machine.register(vf, VF_CAP), u32::MAX, "VF MSE is off");
        machine.set_register(vf, MAILBOX, 9);
        assert_ne!(machine.config32(vf, 8), u32::MAX, "and yet the VF is there");
    }
    machine.set_config16(0, control, VF_ENABLE | VF_MEMORY_SPACE);
    assert!(present(machine, 1) && present(machine, 2));
    assert_eq!(machine.register(1, MAILBOX), 0, "the write was lost");
}

/// V13-005: each VF has registers of its own, and the PF's window onto them (contract A.4) shows the right one.
pub fn vfs_are_apart(machine: &mut dyn Machine) {
    bring_up(machine);
    bring_up_vfs(machine, VFS);
    for function in 0..=VFS {
        machine.set_register(function, MAILBOX + 4, 0x100 + u32::from(function));
    }
    for function in 0..=VFS {
        let value = 0x100 + u32::from(function);
        assert_eq!(machine.register(function, MAILBOX + 4), value);
        assert_eq!(machine.register(0, MAILBOX + 4 + u32::from(function) * 0x400), value);
    }
    // Not the VF's to reach: another VF's window, registers of the card.
    machine.set_register(1, MAILBOX + 4 + 0x800, 7);
    machine.set_register(1, 0xc180, 7);
    assert_eq!((machine.register(1, MAILBOX + 4 + 0x800), machine.register(1, 0xc180)), (0, 0));
    assert_eq!((machine.register(2, MAILBOX + 4), machine.register(0, 0xc180)), (0x102, 0));
}

/// V13-116: a VF's FLR takes nothing from its neighbour, and the VF goes on existing.
pub fn a_vf_reset_reaches_its_own(machine: &mut dyn Machine) {
    bring_up(machine);
    bring_up_vfs(machine, 2);
    for vf in 1..=2 {
        machine.set_register(vf, MAILBOX, 7);
    }
    flr(machine, 1);
    assert!(present(machine, 1) && present(machine, 2));
    let master = |machine: &mut dyn Machine, vf| machine.config16(vf, COMMAND) & BUS_MASTER;
    assert_eq!((master(machine, 1), master(machine, 2)), (0, BUS_MASTER));
    assert_eq!((machine.register(1, MAILBOX), machine.register(2, MAILBOX)), (0, 7));
}

/// V13-114, V13-115: either reset of the PF takes all VFs.
pub fn a_reset_of_the_pf_takes_its_vfs(machine: &mut dyn Machine) {
    for conventional in [false, true] {
        bring_up(machine);
        bring_up_vfs(machine, 2);
        assert!(present(machine, 1) && present(machine, 2));
        if conventional {
            machine.reset(0);
        } else {
            flr(machine, 0);
        }
        assert!(absent(machine, 1) && absent(machine, 2), "conventional: {conventional}");
    }
}

/// V13-113: VFs that are enabled once more are out of reset.
pub fn vfs_enabled_again_are_as_new(machine: &mut dyn Machine) {
    bring_up(machine);
    for count in [1, 3, 2] {
        enable_vfs(machine, count.into());
        for vf in 1..=count {
            assert_eq!(machine.config16(vf, COMMAND) & BUS_MASTER, 0, "VF {vf} of {count}");
            enable(machine, vf);
            assert_eq!(machine.register(vf, MAILBOX), 0);
            machine.set_register(vf, MAILBOX, 7);
        }
        enable_vfs(machine, 0);
    }
}
