// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Isolation of memory: the GGTT, local memory, guest memory.

use arctic_fidelity::proves;
use arctic_test_support::firmware::READY;
use arctic_test_support::machine::bus::*;
use arctic_test_support::machine::driver::context::COPY;
use arctic_test_support::machine::driver::pf::{frames, share_of};
use arctic_test_support::machine::driver::{CTB, Driver, GGTT, SCRATCH};
use arctic_test_support::machine::transport::Machine;
use arctic_test_support::mi;
use arctic_test_support::poll::eventually;

pub fn lmtt_defines_the_local_memory_of_a_vf(machine: &mut dyn Machine) {
    proves!(
        [V13_101, V13_102, V13_103, V13_104, V13_105, V13_106],
        "the LMTT defines a VF's local memory. The VF and the PF's engines access the same memory. Accesses beyond \
        the VF's quota have no effect on any memory (contract D.5)"
    );
    let mut pf = Driver::pf_with_vfs(machine, 2);
    let share = share_of(1).local_bytes;
    let places = [0, share / 2, share - 8];
    for vf in [1, 2] {
        for at in places {
            machine.set_bar64(vf, 2, at, u64::from(vf) << 32 | at | 1);
        }
    }
    // VF 2's frames immediately follow VF 1's frames.
    machine.set_bar64(1, 2, share, 55);
    for vf in [1, 2] {
        for at in places {
            let value = u64::from(vf) << 32 | at | 1;
            assert_eq!(machine.bar64(vf, 2, at), value, "VF {vf} at {at:#x}");
            assert_eq!(
                pf.copy_dword(machine, frames(vf) + at),
                value as u32,
                "VF {vf} at {at:#x}, as read by the PF's engines"
            );
            assert_eq!(pf.copy_dword(machine, frames(vf) + at + 4), u32::from(vf));
            let mut beside = [0; 8];
            assert!(machine.read_beside(vf, 2, at, &mut beside), "no alternative path to a VF's local memory");
            assert_eq!(u64::from_le_bytes(beside), value);
        }
    }
}

pub fn a_vf_writes_entries_of_its_own_pages_only(machine: &mut dyn Machine) {
    proves!(
        [V13_030, V13_033],
        "a VF reads 0 from GGTT entries outside its range, whether they belong to another VF or to the PF, and its \
        writes to them have no effect"
    );
    let mut pf = Driver::pf_with_vfs(machine, 2);
    let mut two = Driver::vf(machine, 2);
    // VF 1 writes addresses of its local memory to the entries of the pages in which VF 2 and the PF's driver have CT
    // rings, results, ring and image.
    for base in [two.state.base, pf.state.base] {
        for offset in
            [CTB, CTB + 0x1000, CTB + 0x2000, SCRATCH, Driver::ring(1), Driver::image(1), Driver::image(1) + 0x1000]
        {
            machine.set_bar64(1, 0, GGTT + ((base + offset) >> 12) * 8, offset | 3);
        }
    }
    two.submit(machine, 1, COPY, &mi::store_data_imm(two.global(SCRATCH), 0x2222));
    two.wait_for(machine, SCRATCH, 0x2222);
    pf.submit(machine, 1, COPY, &mi::store_data_imm(pf.global(SCRATCH), 0x1111));
    pf.wait_for(machine, SCRATCH, 0x1111);
}

pub fn pf_assigns_and_revokes_ggtt_pages(machine: &mut dyn Machine) {
    proves!(
        V13_030,
        "the PF assigns the owner of a GGTT entry; the owning VF sets its address, until the entry is assigned to \
        another VF (contract D.4)"
    );
    let mut pf = Driver::pf_with_vfs(machine, 2);
    let mut one = Driver::vf(machine, 1);
    let entry = GGTT + (one.state.base >> 12) * 8;
    assert_eq!(machine.bar64(0, 0, entry) >> 2 & 0x3ff, 1, "owner as read by the PF");
    assert_eq!(machine.bar64(1, 0, entry) & !0xfff, one.address(0), "address as read by the VF");
    let mut beside = [0; 8];
    if machine.read_beside(1, 0, entry, &mut beside) {
        assert_eq!(u64::from_le_bytes(beside) & !0xfff, one.address(0));
    }
    one.submit(machine, 1, COPY, &mi::store_data_imm(one.global(SCRATCH), 1));
    one.wait_for(machine, SCRATCH, 1);
    // The next page, which VF 1 uses after the PF has reassigned it.
    let taken = SCRATCH + 0x1000;
    let page = GGTT + ((one.state.base + taken) >> 12) * 8;
    machine.set_bar64(0, 0, page, 2 << 2 | 1);
    pf.invalidate(machine);
    one.submit(machine, 2, COPY, &mi::store_data_imm(one.global(taken), 0xbad));
    one.wait_event(machine, &[0x9000_1008, 2]);
    assert_eq!(one.peek(machine, taken), 0);
}

/// PCI: without bus mastering the function does not access guest memory, so the GuC's firmware is not loaded.
pub fn guest_memory_access_requires_bus_mastering(machine: &mut dyn Machine) {
    place(machine);
    machine.set_config16(0, COMMAND, MEMORY_SPACE);
    let mut pf = Driver::pf(machine);
    assert_ne!(pf.start_guc(machine), READY, "firmware loaded without bus mastering");
    // GDRST: full reset, after which the firmware can be loaded again.
    machine.set_register(0, 0x941c, 1 << 3);
    eventually("the reset of the GuC", || machine.register(0, 0x941c) & 1 << 3 == 0);
    enable(machine, 0);
    assert_eq!(pf.start_guc(machine), READY);
}

/// Contract C.5: stores of a VF access the memory of that VF's guest and of no other guest.
pub fn each_function_reaches_its_own_guest_memory(machine: &mut dyn Machine) {
    let _pf = Driver::pf_with_vfs(machine, 2);
    for vf in [1, 2] {
        let mut driver = Driver::vf(machine, vf);
        let value = 0x5a00 + u32::from(vf);
        driver.submit(machine, 1, COPY, &mi::store_data_imm(driver.global(SCRATCH), value));
        driver.wait_for(machine, SCRATCH, value);
        if !machine.visibility().one_memory {
            for other in (0..=2).filter(|other| *other != vf) {
                let seen = machine.ram32(other, driver.address(SCRATCH));
                assert_eq!(seen, 0, "the memory of function {other} at the same address was written");
            }
        }
    }
}
