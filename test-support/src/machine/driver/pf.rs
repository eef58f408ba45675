// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! PF-only operations of the driver: register-based interrupts, provisioning of VFs, handling of VF resets.

use arctic_guc_driver::actions::*;
use arctic_guc_driver::provision::{LMEM_CFG, Limits};

use super::context::COPY;
use super::{Driver, GGTT, LIST, MAILBOX, SCRATCH, SUCCESS, Share};
use crate::firmware;
use crate::machine::bus;
use crate::machine::transport::Machine;
use crate::mi::blt::{self, Area, Depth, Surface};
use crate::mi::{self, Global};

const LMTT_PAGE: u64 = 2 << 20;
/// Size of a VF's LMTT in bytes.
const LMTT_BYTES: u64 = 64 << 10;
/// Device address of the LMTT's directory, in local memory of the PF.
const LMTT: u64 = 256 << 20;
/// First device address of the range reserved for the PF's driver.
const PF_LOCAL: u64 = 512 << 20;

// Interrupt registers (contract B.10).
const MASTER: u32 = 0x19_0008;
const MASTER_ENABLE: u32 = 1 << 31;
const MASTER_GT: u32 = 0x19_0010;
const GT_DWORD: u32 = 0x19_0018;
const IDENTITY: u32 = 0x19_0060;
const SELECTOR: u32 = 0x19_0070;

/// Page tables of the PF's driver, in its own local memory.
const TABLES: u64 = PF_LOCAL + (16 << 20);
/// Device address of local memory that the PF's driver does not use.
pub const FREE: u64 = PF_LOCAL + (32 << 20);
/// Page size in these page tables, in bytes.
const LARGE_PAGE: u64 = 2 << 20;
/// GGTT address at which the PF's driver maps local memory for `look`.
const WINDOW: u64 = 0x3000_0000;
/// Offset in the driver's memory at which the PF driver's own commands store the ID of their context on completion.
const DONE: u64 = SCRATCH + 0x800;

/// First device address of a VF's local memory; the VFs' ranges are consecutive in VF order.
pub fn frames(vf: u8) -> u64 {
    u64::from(vf - 1) * share_of(vf).local_bytes
}

/// The resources provisioned for VF `vf`.
pub fn share_of(vf: u8) -> Share {
    let n = u64::from(vf - 1);
    Share {
        ggtt_start: 0x1000_0000 + n * (8 << 20),
        ggtt_bytes: 8 << 20,
        local_bytes: 4 << 20,
        contexts: 64,
        doorbells: 8,
    }
}

impl Driver {
    /// Returns the PF's driver after starting the GuC and enabling rings and interrupts.
    pub fn pf_up(machine: &mut dyn Machine) -> Self {
        bus::bring_up(machine);
        bus::enable_msi(machine, 0);
        let mut driver = Driver::pf(machine);
        assert_eq!(driver.start_guc(machine), firmware::READY, "the firmware has not started");
        driver.enable_rings(machine);
        driver.enable_interrupts(machine);
        driver
    }

    /// Contract B.3, B.4: enables the interrupts of the render engine, the copy engine and the GuC.
    fn enable_interrupts(&self, machine: &mut dyn Machine) {
        let registers = [
            (0x19_0030, 0x0011_0011),
            (0x19_0090, !0x0011_0000),
            (0x19_00a0, !0x0011_0000),
            (0x19_0038, 0x8000_0000),
            (0x19_00e8, !0x8000_0000),
            (MASTER, MASTER_ENABLE),
        ];
        for (register, value) in registers {
            machine.set_register(0, register, value);
        }
    }

    /// Sets or clears the master interrupt enable.
    pub fn set_master(&self, machine: &mut dyn Machine, on: bool) {
        machine.set_register(0, MASTER, if on { MASTER_ENABLE } else { 0 });
    }

    /// Acknowledges the pending interrupts with the accesses of xe's dg1_irq_handler. Returns their identities without
    /// the valid bit.
    pub fn handle_interrupt(&self, machine: &mut dyn Machine) -> Vec<u32> {
        let mut identities = Vec::new();
        machine.set_register(0, MASTER, 0);
        let tile = machine.register(0, MASTER);
        machine.set_register(0, MASTER, tile);
        let banks = machine.register(0, MASTER_GT);
        machine.set_register(0, MASTER_GT, banks);
        for bank in 0..2 {
            let dword = machine.register(0, GT_DWORD + bank * 4);
            for bit in (0..32).filter(|bit| dword >> bit & 1 != 0) {
                machine.set_register(0, SELECTOR + bank * 4, 1 << bit);
                let identity = machine.register(0, IDENTITY + bank * 4);
                assert!(identity >> 31 == 1, "identity not valid at the first read: {identity:#x}");
                machine.set_register(0, IDENTITY + bank * 4, identity);
                identities.push(identity & !(1 << 31));
            }
            machine.set_register(0, GT_DWORD + bank * 4, dword);
        }
        machine.set_register(0, MASTER, MASTER_ENABLE);
        identities
    }

    /// Returns the PF's driver with `vfs` VFs provisioned and enabled.
    pub fn pf_with_vfs(machine: &mut dyn Machine, vfs: u8) -> Self {
        let mut driver = Self::pf_up(machine);
        driver.share_out(machine, vfs);
        bus::bring_up_vfs(machine, vfs);
        driver
    }

    /// Contract D.4, D.5: provisions GGTT ranges, local memory, contexts, doorbells, execution quantum and preemption
    /// timeout.
    pub fn share_out(&mut self, machine: &mut dyn Machine, vfs: u8) {
        machine.set_register(0, LMEM_CFG, 1 << 31 | (LMTT >> 16) as u32);
        for vf in 1..=vfs {
            let share = share_of(vf);
            self.assign(machine, vf);
            let table = LMTT + LMTT_BYTES * u64::from(vf);
            let entries = (0..share.local_bytes / LMTT_PAGE).flat_map(|page| {
                let frame = (frames(vf) + page * LMTT_PAGE) / LMTT_PAGE;
                (frame as u32 * 32 | 1).to_le_bytes()
            });
            let entries: Vec<u8> = entries.collect();
            machine.fill(0, 2, table, &entries);
            machine.fill(0, 2, LMTT + u64::from(vf) * 4, &((table >> 16) as u32 * 16 | 1).to_le_bytes());
            let n = u32::from(vf - 1);
            let limits = Limits {
                first_context: 64 + n * 64,
                first_doorbell: n * 8,
                exec_quantum_ms: 5,
                preempt_timeout_us: 20_000,
            };
            let list = share.list(&limits);
            self.poke(machine, LIST, &list);
            let shown = (self.state.base + LIST) as u32;
            let taken = self.call(machine, UPDATE_VF_CFG, &[vf.into(), shown, 0, list.len() as u32]);
            assert_eq!(taken, SUCCESS | 9, "configuration of VF {vf}");
        }
        self.invalidate(machine);
    }

    /// Invalidates the TLBs of all engines and of the GuC, and waits for completion.
    pub fn invalidate(&mut self, machine: &mut dyn Machine) {
        self.request(machine, TLB_INVALIDATION_ALL, &[77, INVALIDATE_FLUSH]);
        self.wait_event(machine, &[TLB_INVALIDATION_DONE, 77]);
    }

    /// Assigns the GGTT entries of the VF's range to the VF, with address 0.
    fn assign(&self, machine: &mut dyn Machine, vf: u8) {
        let share = share_of(vf);
        let entry = u64::from(vf) << 2 | 1;
        let entries: Vec<u8> = (0..share.ggtt_bytes >> 12).flat_map(|_| entry.to_le_bytes()).collect();
        machine.fill(0, 0, GGTT + (share.ggtt_start >> 12) * 8, &entries);
    }

    /// Contract D.7: performs the PF's part of a VF reset, after the GuC's notification or on the PF's initiative.
    pub fn lead_reset(&mut self, machine: &mut dyn Machine, vf: u8) {
        assert_eq!(self.call(machine, VF_CONTROL, &[vf.into(), FLR_START]), SUCCESS, "FLR_START");
        // The GuC notifies again until FLR_START: these notices belong to this reset.
        while self.inbox.take_event(|event| event == [VF_STATE_NOTIFY, vf.into(), NOTIFY_FLR]).is_some() {}
        self.wait_event(machine, &[VF_STATE_NOTIFY, vf.into(), NOTIFY_FLR_DONE]);
        self.assign(machine, vf);
        self.wipe(machine, frames(vf), share_of(vf).local_bytes);
        for n in 0..4 {
            machine.set_register(0, MAILBOX + u32::from(vf) * 0x400 + n * 4, 0);
        }
        assert_eq!(self.call(machine, VF_CONTROL, &[vf.into(), FLR_FINISH]), SUCCESS, "FLR_FINISH");
    }

    /// Performs the PF's part of each VF reset for which a notification is pending. A VF is also reset when its VMM
    /// exits.
    pub fn lead_resets(&mut self, machine: &mut dyn Machine) {
        self.receive(machine);
        let is_notice = |event: &[u32]| event[0] == VF_STATE_NOTIFY && event[2] == NOTIFY_FLR;
        while let Some(event) = self.inbox.take_event(is_notice) {
            self.lead_reset(machine, event[1] as u8);
        }
    }

    /// Waits for one notification of the VF's reset.
    pub fn receive_reset_notice(&mut self, machine: &mut dyn Machine, vf: u8) {
        self.wait_event(machine, &[VF_STATE_NOTIFY, vf.into(), NOTIFY_FLR]);
    }

    /// Writes page tables with local memory from device address `from` on at virtual address 0, in pages of 2 MiB. They replace
    /// those of the last call. Returns their root.
    pub fn map(&mut self, machine: &mut dyn Machine, from: u64, bytes: u64) -> u64 {
        // Three levels: one entry in each of the upper two, large pages in the last.
        for level in 0..2 {
            machine.set_bar64(0, 2, TABLES + level * 0x1000, (TABLES + (level + 1) * 0x1000) | 3);
        }
        for page in 0..bytes / LARGE_PAGE {
            machine.set_bar64(0, 2, TABLES + 0x2000 + page * 8, (from + page * LARGE_PAGE) | 0x883);
        }
        self.invalidate(machine);
        TABLES
    }

    /// Clears local memory from device address `from` with the copy engine, as xe does. In this model, the PF's mapped
    /// BAR does not expose memory that is assigned to a VF.
    fn wipe(&mut self, machine: &mut dyn Machine, from: u64, bytes: u64) {
        let root = self.map(machine, from, bytes);
        // Each row is 4 KiB: 1024 pixels of 4 bytes (contract B.9).
        let commands =
            blt::fast_color(&Surface::linear(0, 4096), Depth::Bits32, Area::of(1024, (bytes >> 12) as u32), [0; 4]);
        let done = mi::store_data_imm(self.global(DONE), self.next_context);
        self.run(machine, root, &[&commands[..], &done].concat());
    }

    /// Returns a doubleword of local memory at device address `at`, as the PF's engines read it.
    pub fn copy_dword(&mut self, machine: &mut dyn Machine, at: u64) -> u32 {
        machine.set_bar64(0, 0, GGTT + (WINDOW >> 12) * 8, at & !0xfff | 3);
        self.invalidate(machine);
        let (from, to) = (Global(WINDOW + (at & 0xfff)), self.global(DONE + 8));
        let copy = mi::copy_mem_mem(to, from);
        let done = mi::store_data_imm(self.global(DONE), self.next_context);
        self.run(machine, 0, &[&copy[..], &done].concat());
        self.peek(machine, DONE + 8)
    }

    /// Runs `commands` in a new context of the copy engine and waits for their completion. `commands` must end with a
    /// store of `next_context` to [`DONE`].
    fn run(&mut self, machine: &mut dyn Machine, root: u64, commands: &[u32]) {
        let id = self.next_context;
        self.next_context += 1;
        self.submit_process(machine, id, COPY, root, commands);
        self.wait_for(machine, DONE, id);
    }
}
