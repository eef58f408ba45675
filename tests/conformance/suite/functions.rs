// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Virtual functions: enabling, disabling, and resets that disable them.

use arctic_fidelity::proves;
use arctic_test_support::machine::bus::*;
use arctic_test_support::machine::driver::{MAILBOX, VF_CAP};
use arctic_test_support::machine::transport::{Machine, VFS};

/// Returns true if the VF is absent: reads return all ones, as on a bus.
fn absent(machine: &mut dyn Machine, vf: u8) -> bool {
    machine.config32(vf, 8) == u32::MAX && machine.register(vf, VF_CAP) == u32::MAX
}

fn present(machine: &mut dyn Machine, vf: u8) -> bool {
    machine.config32(vf, 8) != u32::MAX && machine.register(vf, VF_CAP) == 1
}

pub fn vf_enable_enables_num_vfs_functions(machine: &mut dyn Machine) {
    proves!(V13_016, "VFs 1 to NumVFs exist while VF Enable is set");
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

/// A VF's machine may go on while the VF is absent: it reads all ones, writes have no effect, and it can be reset. When
/// it exists again it is in reset state.
pub fn a_vf_that_is_absent_can_be_accessed_and_reset(machine: &mut dyn Machine) {
    bring_up(machine);
    for conventional in [false, true] {
        bring_up(machine);
        bring_up_vfs(machine, 1);
        machine.set_register(1, MAILBOX + 4, 7);
        if conventional {
            machine.reset(0);
        } else {
            enable_vfs(machine, 0);
        }
        for _ in 0..2 {
            enable(machine, 1);
            machine.set_register(1, MAILBOX + 4, 9);
            assert!(absent(machine, 1));
            assert_eq!(machine.register(1, MAILBOX + 4), u32::MAX);
            machine.reset(1);
        }
        bring_up(machine);
        enable_vfs(machine, 1);
        assert_eq!(machine.config16(1, COMMAND) & BUS_MASTER, 0);
        machine.reset(1);
        enable(machine, 1);
        assert!(present(machine, 1));
        assert_eq!(machine.register(1, MAILBOX + 4), 0, "conventional: {conventional}");
        enable_vfs(machine, 0);
    }
}

/// PCIe 9.3.3.7: the card enables no VF if NumVFs exceeds TotalVFs.
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

/// PCIe 9.3.3.7: NumVFs is read-only while VF Enable is set.
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

pub fn vf_bars_answer_with_vf_memory_space_only(machine: &mut dyn Machine) {
    proves!(V13_016, "VF MSE controls decoding of the VFs' BARs; without it the VFs still exist");
    bring_up(machine);
    bring_up_vfs(machine, 2);
    let control = sriov(machine) + SRIOV_CONTROL;
    machine.set_config16(0, control, VF_ENABLE);
    for vf in 1..=2 {
        assert_eq!(machine.register(vf, VF_CAP), u32::MAX, "VF MSE is cleared");
        machine.set_register(vf, MAILBOX, 9);
        assert_ne!(machine.config32(vf, 8), u32::MAX, "the VF is absent without VF MSE");
    }
    machine.set_config16(0, control, VF_ENABLE | VF_MEMORY_SPACE);
    assert!(present(machine, 1) && present(machine, 2));
    assert_eq!(machine.register(1, MAILBOX), 0, "a write had an effect without VF MSE");
}

pub fn vfs_have_separate_registers(machine: &mut dyn Machine) {
    proves!(
        V13_005,
        "each VF has separate registers, and the PF's window to them (contract A.4) accesses the right VF"
    );
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
    // A VF cannot access another VF's window or registers of the card.
    machine.set_register(1, MAILBOX + 4 + 0x800, 7);
    machine.set_register(1, 0xc180, 7);
    assert_eq!((machine.register(1, MAILBOX + 4 + 0x800), machine.register(1, 0xc180)), (0, 0));
    assert_eq!((machine.register(2, MAILBOX + 4), machine.register(0, 0xc180)), (0x102, 0));
}

pub fn vf_flr_leaves_other_vfs_unchanged(machine: &mut dyn Machine) {
    proves!(V13_116, "a VF's FLR does not affect another VF, and the VF remains enabled");
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

pub fn pf_reset_disables_vfs(machine: &mut dyn Machine) {
    proves!([V13_114, V13_115], "both kinds of reset of the PF disable all VFs");
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

pub fn enabled_vfs_are_in_reset_state(machine: &mut dyn Machine) {
    proves!(V13_113, "VFs are in reset state each time they are enabled");
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
