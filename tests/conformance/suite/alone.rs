// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! VFs without a PF driver: the card provisions them from its card file and performs the PF driver's tasks.

use arctic_fidelity::proves;
use arctic_test_support::machine::bus::*;
use arctic_test_support::machine::driver::context::COPY;
use arctic_test_support::machine::driver::{Driver, SCRATCH, VF_CAP};
use arctic_test_support::machine::transport::{Machine, VFS};
use arctic_test_support::mi;

use super::work::{store_and_interrupt, work_in_local_memory};

/// Contract A.4: identity, capabilities and BARs of an ordinary function that any operating system can enumerate and
/// drive.
pub fn vf_has_ids_and_bars_of_an_ordinary_function(machine: &mut dyn Machine) {
    for vf in 1..=VFS {
        assert_eq!(machine.config32(vf, 0), 0x56c0_8086);
        assert_eq!(machine.config32(vf, 8), 0x0380_0008);
        let mut ids: Vec<_> = capabilities(machine, vf).iter().map(|(id, _)| *id).collect();
        ids.sort();
        assert_eq!(ids, [MSI, EXPRESS]);
        assert!(extended(machine, vf).iter().all(|(id, _)| *id != SRIOV));
        // 64-bit, prefetchable.
        assert_eq!(size_bar(machine, vf, BAR0), (16 << 20, 0xc));
        assert_eq!(size_bar(machine, vf, BAR0 + 8), (512 << 20, 0xc));
        assert_eq!(machine.register(vf, VF_CAP), u32::MAX, "memory space is disabled");
        enable(machine, vf);
        assert_eq!(machine.register(vf, VF_CAP), 1);
    }
}

pub fn vf_bar_addresses_do_not_affect_accesses(machine: &mut dyn Machine) {
    proves!(
        V13_014,
        "a VMM routes accesses by its own copy of the BARs, so the value in the VF's BAR registers has no effect. \
        (Cloud Hypervisor leaves the all ones of BAR sizing in them.)"
    );
    for address in [0, 0x40_0000_0000, u64::MAX] {
        machine.set_config16(1, COMMAND, 0);
        for at in [BAR0, BAR0 + 8] {
            machine.set_config32(1, at, address as u32);
            machine.set_config32(1, at + 4, (address >> 32) as u32);
        }
        enable(machine, 1);
        machine.set_bar64(1, 2, 0x4000, address);
        assert_eq!((machine.register(1, VF_CAP), machine.bar64(1, 2, 0x4000)), (1, address));
    }
}

/// Contract C.1: each VF has the resources of the card file. The GGTT ranges do not overlap.
pub fn vf_has_the_resources_of_the_card_file(machine: &mut dyn Machine) {
    let mut end = 0;
    for vf in 1..=VFS {
        enable(machine, vf);
        let share = Driver::vf(machine, vf).share(machine);
        assert!(share.ggtt_start >= end && share.ggtt_bytes >= 4 << 20, "{share:x?}");
        assert!(share.local_bytes >= 64 << 20 && share.contexts > 0, "{share:x?}");
        end = share.ggtt_start + share.ggtt_bytes;
        let mut last = [0; 8];
        assert!(
            machine.read_beside(vf, 2, share.local_bytes.min(512 << 20) - 8, &mut last),
            "the last bytes of local memory cannot be mapped"
        );
    }
}

/// Contract C.3, C.5: a VF's commands access its memory, and its interrupt is delivered to this VF only.
pub fn a_vf_stores_and_interrupts(machine: &mut dyn Machine) {
    for (vf, other) in [(1, 2), (2, 3), (3, 1)] {
        enable(machine, vf);
        store_and_interrupt(machine, vf, other);
    }
}

/// Contract D.5, E.1: a VF's process has page tables and pages in the VF's local memory.
pub fn a_vf_works_in_its_local_memory(machine: &mut dyn Machine) {
    let vfs = [1, 3];
    vfs.into_iter().for_each(|vf| enable(machine, vf));
    work_in_local_memory(machine, vfs);
}

/// Contract D.7: without a PF driver the card completes the reset and clears the VF's local memory.
pub fn vf_works_after_its_reset(machine: &mut dyn Machine) {
    for round in 1..=3 {
        enable(machine, 1);
        assert_eq!(machine.bar64(1, 2, 0x3000), 0);
        machine.set_bar64(1, 2, 0x3000, 42);
        let mut driver = Driver::vf(machine, 1);
        driver.submit(machine, 1, COPY, &mi::store_data_imm(driver.global(SCRATCH), round));
        driver.wait_for(machine, SCRATCH, round);
        flr(machine, 1);
    }
}

/// After a VMM has disconnected, each VF is in reset state and still has its resources.
pub fn vf_is_in_reset_state_after_a_disconnect(machine: &mut dyn Machine) {
    for _ in 0..3 {
        for vf in 1..=VFS {
            assert_eq!(machine.config16(vf, COMMAND), 0);
            enable(machine, vf);
            assert_eq!(machine.bar64(vf, 2, 0x20_0000), 0);
            machine.set_bar64(vf, 2, 0x20_0000, 42);
            let mut driver = Driver::vf(machine, vf);
            driver.submit(machine, 1, COPY, &mi::store_data_imm(driver.global(SCRATCH), 7));
            driver.wait_for(machine, SCRATCH, 7);
        }
        machine.power_cycle();
    }
}
