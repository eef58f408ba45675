// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! GPU work: GuC, contexts and interrupts, on the PF and on VFs.

use arctic_fidelity::proves;
use std::time::Duration;

use arctic_test_support::machine::bus::*;
use arctic_test_support::machine::driver::context::*;
use arctic_test_support::machine::driver::pf::share_of;
use arctic_test_support::machine::driver::{Driver, FAILURE, GGTT, SCRATCH, SUCCESS};
use arctic_test_support::machine::transport::Machine;
use arctic_test_support::mi::{self, Process};
use arctic_test_support::poll::eventually;
use arctic_test_support::vfs::bench::LOCAL_PAGE;

/// Identity of the user interrupt of the copy engine: class 3, bit 0.
const COPY_USER: u32 = 3 << 16 | 1;
/// Source index of the copy engine for memory-based interrupts.
const COPY_SOURCE: u64 = 15;
/// GDRST: resets all engines and the GuC.
const RESET: u32 = 0x941c;

/// Returns commands that store `value`, raise a user interrupt and store again. Once the second store is visible, the
/// interrupt has been raised.
fn stores_around_an_interrupt(driver: &Driver, value: u32) -> Vec<u32> {
    let mut commands = mi::store_data_imm(driver.global(SCRATCH), value).to_vec();
    commands.push(mi::USER_INTERRUPT);
    commands.extend(mi::store_data_imm(driver.global(SCRATCH + 8), value));
    commands
}

fn wait_for_both(driver: &Driver, machine: &mut dyn Machine, value: u32) {
    driver.wait_for(machine, SCRATCH + 8, value);
    assert_eq!(driver.peek(machine, SCRATCH), value, "the first store is missing after the second");
}

/// Contract B.6: the GuC responds to requests through the ring, rejects unknown actions, and raises an interrupt for
/// each response.
pub fn the_guc_answers(machine: &mut dyn Machine) {
    let mut pf = Driver::pf_up(machine);
    machine.take_msis(0);
    pf.handle_interrupt(machine);
    // An unknown action.
    assert_eq!(pf.call(machine, 0x7abc, &[]) & 0xf000_ffff, FAILURE | 0x30);
    machine.wait_msi(0);
    // Class 4, instance 0, bit 15: the GuC has sent a message to the host.
    let identities = pf.handle_interrupt(machine);
    assert_eq!(identities, [4 << 16 | 1 << 15]);
    // UPDATE_VF_CFG that resets the configuration of the PF.
    assert_eq!(pf.call(machine, 0x5503, &[0, 0, 0, 0]), SUCCESS);
    machine.wait_msi(0);
}

/// Contract B.9, B.10, F.2: the engine executes the commands of a batch in order, and its user interrupt is delivered
/// as an MSI.
pub fn a_batch_stores_and_interrupts(machine: &mut dyn Machine) {
    let mut pf = Driver::pf_up(machine);
    let batch = stores_around_an_interrupt(&pf, 0x1234_5678);
    pf.poke(machine, Driver::batch(1), &[&batch[..], &[mi::BATCH_BUFFER_END]].concat());
    pf.submit(machine, 1, COPY, &mi::batch_buffer_start(pf.global(Driver::batch(1))));
    wait_for_both(&pf, machine, 0x1234_5678);
    let mut identities = Vec::new();
    eventually("the engine's interrupt", || {
        if machine.take_msis(0) != 0 {
            identities.extend(pf.handle_interrupt(machine));
        }
        identities.contains(&COPY_USER)
    });
}

/// PCI: an interrupt of a masked vector sets the pending bit; unmasking sends exactly one MSI.
pub fn msi_waits_while_masked(machine: &mut dyn Machine) {
    let mut pf = Driver::pf_up(machine);
    let msi = capability(machine, 0, MSI);
    pf.handle_interrupt(machine);
    mask_msi(machine, 0, true);
    machine.take_msis(0);
    assert_eq!(machine.config32(0, msi + 20), 0, "the pending bit is set before the interrupt");
    let commands = stores_around_an_interrupt(&pf, 1);
    pf.submit(machine, 1, COPY, &commands);
    wait_for_both(&pf, machine, 1);
    eventually("the pending bit", || machine.config32(0, msi + 20) == 1);
    assert_eq!(machine.take_msis(0), 0, "masked");
    mask_msi(machine, 0, false);
    assert_eq!(machine.wait_msi(0), 1, "sent when unmasked");
    assert_eq!(machine.config32(0, msi + 20), 0);
}

/// PCI: an MSI is a memory write, which requires bus mastering. Events that occur without it stay pending in the card's
/// interrupt registers (contract B.10) and raise an MSI when the master interrupt is next enabled.
pub fn msi_requires_bus_mastering(machine: &mut dyn Machine) {
    let mut pf = Driver::pf_up(machine);
    pf.handle_interrupt(machine);
    pf.set_master(machine, false);
    machine.take_msis(0);
    let commands = stores_around_an_interrupt(&pf, 1);
    pf.submit(machine, 1, COPY, &commands);
    wait_for_both(&pf, machine, 1);
    machine.set_config16(0, COMMAND, MEMORY_SPACE);
    pf.set_master(machine, true);
    assert_eq!(machine.take_msis(0), 0, "no bus mastering");
    enable(machine, 0);
    pf.set_master(machine, false);
    pf.set_master(machine, true);
    machine.wait_msi(0);
    assert!(pf.handle_interrupt(machine).contains(&COPY_USER));
}

/// PCI: no MSI is sent while MSI Enable is cleared; after it is set, new interrupts send MSIs.
pub fn no_msi_without_enable(machine: &mut dyn Machine) {
    let mut pf = Driver::pf_up(machine);
    pf.handle_interrupt(machine);
    set_msi(machine, 0, false);
    machine.take_msis(0);
    let commands = stores_around_an_interrupt(&pf, 1);
    pf.submit(machine, 1, COPY, &commands);
    wait_for_both(&pf, machine, 1);
    assert_eq!(machine.take_msis(0), 0);
    set_msi(machine, 0, true);
    pf.handle_interrupt(machine);
    let commands = stores_around_an_interrupt(&pf, 2);
    pf.submit(machine, 2, COPY, &commands);
    wait_for_both(&pf, machine, 2);
    machine.wait_msi(0);
}

/// Contract F.2: a context that never completes is preempted, and another context on the same engine runs.
pub fn contexts_share_an_engine(machine: &mut dyn Machine) {
    let mut pf = Driver::pf_up(machine);
    let spinner = pf.global(Driver::batch(1));
    pf.poke(machine, Driver::batch(1), &[&[mi::ARB_CHECK][..], &mi::batch_buffer_start(spinner)].concat());
    pf.submit(machine, 1, COPY, &mi::batch_buffer_start(spinner));
    pf.submit(machine, 2, COPY, &mi::store_data_imm(pf.global(SCRATCH), 7));
    pf.wait_for(machine, SCRATCH, 7);
    // The first context runs until its batch is overwritten.
    pf.poke(machine, Driver::batch(1), &[mi::BATCH_BUFFER_END]);
    pf.disable(machine, 1);
    pf.wait_event(machine, &[0x9000_1002, 1, 0]);
}

/// Starts context `id`, which disables arbitration and never completes, and disables it. The GuC must reset its engine.
fn hang_and_be_reset(driver: &mut Driver, machine: &mut dyn Machine, id: u32) {
    let batch = driver.global(Driver::batch(id));
    driver.poke(machine, Driver::batch(id), &[&[mi::ARB_CHECK][..], &mi::batch_buffer_start(batch)].concat());
    let started = mi::store_data_imm(driver.global(SCRATCH + 16), 0x77);
    let commands = [&[mi::ARB_OFF][..], &started, &mi::batch_buffer_start(batch)].concat();
    driver.submit(machine, id, COPY, &commands);
    driver.wait_for(machine, SCRATCH + 16, 0x77);
    driver.disable(machine, id);
    driver.wait_event(machine, &[0x9000_1008, id]);
}

/// Contract F.2, F.6: a context that disables arbitration is reset after its preemption timeout. Its driver is
/// notified, and the engine runs other contexts.
pub fn a_context_that_hangs_is_reset(machine: &mut dyn Machine) {
    let mut pf = Driver::pf_up(machine);
    hang_and_be_reset(&mut pf, machine, 1);
    pf.submit(machine, 2, COPY, &mi::store_data_imm(pf.global(SCRATCH), 8));
    pf.wait_for(machine, SCRATCH, 8);
}

/// Contract C.1: handshake and queries through the mailbox. The responses match the resources that the PF provisioned.
pub fn vf_queries_its_provisioned_resources(machine: &mut dyn Machine) {
    let _pf = Driver::pf_with_vfs(machine, 2);
    for vf in [1, 2] {
        let mut driver = Driver::vf(machine, vf);
        assert_eq!(driver.share(machine), share_of(vf));
        // PF-only actions are rejected for a VF.
        assert_eq!(driver.mail(machine, &[0x5503, 1])[0] & FAILURE, FAILURE);
    }
}

pub fn a_vf_stores_and_interrupts(machine: &mut dyn Machine) {
    proves!(
        V13_273,
        "a VF's commands access its memory. Its interrupt is reported by a byte in that memory and by an MSI of \
        that VF, and is not delivered to other functions (contract C.3, C.5)"
    );
    let pf = Driver::pf_with_vfs(machine, 2);
    for vf in [1, 2] {
        pf.handle_interrupt(machine);
        machine.take_msis(0);
        store_and_interrupt(machine, vf, 3 - vf);
        assert_eq!(machine.take_msis(0), 0, "VF {vf}'s interrupt raised an MSI of the PF");
    }
}

/// VF `vf` stores and raises its interrupt; VF `other` must not receive an MSI.
pub(super) fn store_and_interrupt(machine: &mut dyn Machine, vf: u8, other: u8) {
    enable_msi(machine, vf);
    let mut driver = Driver::vf(machine, vf);
    [vf, other].into_iter().for_each(|function| _ = machine.take_msis(function));
    let commands = stores_around_an_interrupt(&driver, 0xabcd);
    driver.submit(machine, 3, COPY, &commands);
    wait_for_both(&driver, machine, 0xabcd);
    eventually("the VF's interrupt", || driver.memirq(machine, COPY_SOURCE, 0) == (0xff, 0xff));
    machine.wait_msi(vf);
    assert_eq!(machine.take_msis(other), 0, "VF {vf}'s interrupt raised an MSI of VF {other}");
}

/// Contract D.5, E.1: a VF's process has page tables and pages in the VF's local memory, at VF-relative addresses.
pub fn a_vf_works_in_its_local_memory(machine: &mut dyn Machine) {
    let _pf = Driver::pf_with_vfs(machine, 2);
    work_in_local_memory(machine, [1, 2]);
}

/// A process of each VF stores to the same PPGTT address, and each store goes to that VF's local memory.
pub(super) fn work_in_local_memory(machine: &mut dyn Machine, vfs: [u8; 2]) {
    const TABLES: u64 = 0x10_0000;
    const BATCH: u64 = 0x20_0000;
    const TARGET: u64 = 0x20_1000;
    let value = |vf| 0x4c4d_0000 + u32::from(vf);
    for vf in vfs {
        let mut driver = Driver::vf(machine, vf);
        // Four levels of page tables that identity-map the page of the batch and the next page to local memory.
        for level in 0..3 {
            let index = if level == 2 { BATCH >> 21 } else { 0 };
            machine.set_bar64(vf, 2, TABLES + level * 0x1000 + index * 8, (TABLES + (level + 1) * 0x1000) | 3);
        }
        for page in [BATCH, TARGET] {
            machine.set_bar64(vf, 2, TABLES + 0x3000 + (page >> 12 & 0x1ff) * 8, page | LOCAL_PAGE);
        }
        let batch = [&mi::store_data_imm(Process(TARGET), value(vf))[..], &[mi::BATCH_BUFFER_END]].concat();
        for (at, word) in (BATCH..).step_by(4).zip(batch) {
            machine.set_bar32(vf, 2, at, word);
        }
        let commands =
            [&mi::batch_buffer_start(Process(BATCH))[..], &mi::store_data_imm(driver.global(SCRATCH), 1)].concat();
        driver.submit_process(machine, 1, COPY, TABLES, &commands);
        driver.wait_for(machine, SCRATCH, 1);
    }
    for vf in vfs {
        assert_eq!(machine.bar32(vf, 2, TARGET), value(vf), "VF {vf}'s store");
    }
}

pub fn vf_access_to_a_foreign_ggtt_range_resets_the_context(machine: &mut dyn Machine) {
    proves!(
        V13_030,
        "a VF's context that accesses another VF's GGTT range is reset; the VF's other contexts and the other VF \
        are not affected (contract F.6)"
    );
    let _pf = Driver::pf_with_vfs(machine, 2);
    let [mut one, mut two] = [1, 2].map(|vf| Driver::vf(machine, vf));
    // VF 1 writes an address of its own memory to a GGTT entry that belongs to VF 2.
    machine.set_bar64(1, 0, GGTT + ((two.state.base + SCRATCH) >> 12) * 8, one.address(SCRATCH) | 1);
    one.submit(machine, 1, COPY, &mi::store_data_imm(two.global(SCRATCH), 0xbad));
    one.wait_event(machine, &[0x9000_1008, 1]);
    assert_eq!((two.peek(machine, SCRATCH), one.peek(machine, SCRATCH)), (0, 0));
    for (n, driver) in [&mut two, &mut one].into_iter().enumerate() {
        driver.submit(machine, 5, COPY, &mi::store_data_imm(driver.global(SCRATCH), 9 + n as u32));
        driver.wait_for(machine, SCRATCH, 9 + n as u32);
        assert!(driver.inbox.events.iter().all(|event| event[0] != 0x9000_1008), "another context was reset");
    }
}

/// Contract D.7: the PF's driver is notified of a VF's FLR and completes it. Afterwards the VF's memory is zero and its
/// driver can start again. Another VF is not affected.
pub fn vf_works_after_its_reset(machine: &mut dyn Machine) {
    let mut pf = Driver::pf_with_vfs(machine, 2);
    let [mut one, mut two] = [1, 2].map(|vf| Driver::vf(machine, vf));
    one.submit(machine, 1, COPY, &mi::store_data_imm(one.global(SCRATCH), 1));
    one.wait_for(machine, SCRATCH, 1);
    machine.set_bar64(1, 2, 0x3000, 42);
    flr(machine, 1);
    pf.receive_reset_notice(machine, 1);
    two.submit(machine, 1, COPY, &mi::store_data_imm(two.global(SCRATCH), 2));
    two.wait_for(machine, SCRATCH, 2);
    pf.lead_reset(machine, 1);
    enable(machine, 1);
    assert_eq!(machine.bar64(1, 2, 0x3000), 0);
    let mut one = Driver::vf(machine, 1);
    one.submit(machine, 1, COPY, &mi::store_data_imm(one.global(SCRATCH), 3));
    one.wait_for(machine, SCRATCH, 3);
}

/// Contract D.4, D.7: VFs that are disabled and enabled again keep their resources and work as before.
pub fn vfs_work_after_each_enable(machine: &mut dyn Machine) {
    let mut pf = Driver::pf_with_vfs(machine, 2);
    for round in 1..=3 {
        for vf in [1, 2] {
            let mut driver = Driver::vf_led(machine, vf, &mut pf);
            driver.submit(machine, round, COPY, &mi::store_data_imm(driver.global(SCRATCH), round));
            driver.wait_for(machine, SCRATCH, round);
        }
        enable_vfs(machine, 0);
        (1..=2).for_each(|vf| pf.lead_reset(machine, vf));
        bring_up_vfs(machine, 2);
    }
}

pub fn work_ends_with_a_reset_of_the_card(machine: &mut dyn Machine) {
    proves!(
        V13_115,
        "a reset of the card stops running contexts, and the engines then work for a newly started driver"
    );
    let mut pf = Driver::pf_up(machine);
    // This batch increments a counter in memory in an endless loop.
    let batch = pf.global(Driver::batch(1));
    let counted = pf.global(SCRATCH + 32);
    let add_one = mi::atomic_increment(counted);
    pf.poke(machine, Driver::batch(1), &[&add_one[..], &mi::batch_buffer_start(batch)].concat());
    pf.submit(machine, 1, COPY, &mi::batch_buffer_start(batch));
    eventually("the counter", || pf.peek(machine, SCRATCH + 32) > 1000);
    flr(machine, 0);
    let stopped = pf.peek(machine, SCRATCH + 32);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(pf.peek(machine, SCRATCH + 32), stopped, "guest memory was written after the reset");
    let mut pf = Driver::pf_up(machine);
    pf.submit(machine, 1, COPY, &mi::store_data_imm(pf.global(SCRATCH), 4));
    pf.wait_for(machine, SCRATCH, 4);
    assert_eq!(machine.register(0, RESET), 0);
}
