// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A minimal PF driver that provisions and resets virtual functions through registers, tables and GuC messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arctic_device_model::card::Card;
use arctic_device_model::gate::{ggtt, lmtt};
use arctic_device_model::gpu::VirtualFunctions;
use arctic_device_model::host::Function;
use arctic_device_model::memory::layout::MemoryLayout;
use arctic_guc_driver::actions::*;
use arctic_guc_driver::provision::{self, LMEM_CFG, Limits, Share};
use vm_memory::Bytes;

use crate::ct;
use crate::driver::{CardAccess, DriverState, GucDriver, instances};
use crate::firmware;
use crate::vfs::bench::{GLOBAL, LAYOUT, LOCAL, QUOTA, base};

const PF: Function = Function::PF;
/// Device address of the driver's memory.
const OWN: u64 = 64 << 20;
/// GGTT address at which the driver's memory is mapped.
const SHOWN: u64 = 0x2000_0000;
const OWN_BYTES: u64 = 8 << 20;
// Offsets in the driver's memory, between the CT buffers and the rest of the layout.
const LIST: u64 = 0x1_0000;

/// The PF's driver.
pub struct Pf {
    card: Arc<Card>,
    /// Accesses of the driver.
    pub access: CardAccess,
    state: DriverState,
    /// Number of messages from virtual functions that the GuC has relayed.
    pub relayed: u64,
    /// A bit for each virtual function whose reset has begun and is not finished.
    resetting: u64,
}

impl Pf {
    /// Returns a driver that has provisioned and enabled three virtual functions.
    pub fn up(card: &Arc<Card>) -> Pf {
        let mut pf = Pf {
            card: card.clone(),
            access: CardAccess::of_pf(card, OWN),
            state: DriverState::new(SHOWN, LAYOUT.layout, 0),
            relayed: 0,
            resetting: 0,
        };
        for page in 0..OWN_BYTES >> 12 {
            pf.access.set_entry((SHOWN >> 12) + page, (OWN + (page << 12)) | 3);
        }
        pf.write_firmware(&instances(card));
        pf.start_firmware();
        assert_eq!(pf.get(firmware::STATUS), firmware::READY, "the firmware has not started");
        pf.enable_rings(SHOWN + ct::G2H);
        pf.share_out();
        card.enable_vfs(3);
        pf
    }

    /// Writes local memory at a device address.
    fn poke_card(&self, at: u64, value: u32) {
        self.card.gt().memory.local().slice(at, 4).unwrap().store(value, 0, Ordering::SeqCst).unwrap();
    }

    /// Provisions the VFs: quotas as key-length-value lists, GGTT ranges and frames of local memory (contract D.4,
    /// D.5).
    pub fn share_out(&mut self) {
        let directory = self.directory();
        self.set(LMEM_CFG, lmtt::register(directory));
        for n in 0..3u32 {
            let vf = Function::new(n as u8 + 1).unwrap();
            let table = directory + lmtt::TABLE_ENTRIES * 4 * u64::from(vf.number());
            self.poke_card(directory + u64::from(vf.number()) * 4, lmtt::directory_entry(table));
            for page in 0..LOCAL / lmtt::PAGE {
                let frame = u64::from(n) * LOCAL + page * lmtt::PAGE;
                self.poke_card(table + page * 4, lmtt::table_entry(frame));
            }
            self.assign(vf);
            let share = Share {
                ggtt_start: base(vf),
                ggtt_bytes: GLOBAL,
                local_bytes: LOCAL,
                contexts: QUOTA.contexts,
                doorbells: QUOTA.doorbells,
            };
            let limits = Limits {
                first_context: n * 64,
                first_doorbell: n * 8,
                exec_quantum_ms: QUOTA.exec_quantum_ms,
                preempt_timeout_us: QUOTA.preempt_timeout_us,
            };
            let mut list = share.list(&limits);
            // Thresholds: resets, faults, doorbells of all kinds.
            list.extend(provision::list(&[(0x8a04, 5), (0x8a07, 5), (0x8a08, 5)]));
            let at = LIST + u64::from(n) * 0x1000;
            self.write_words(at, &list);
            self.request(UPDATE_VF_CFG, &[u32::from(vf.number()), (SHOWN + at) as u32, 0, list.len() as u32]);
        }
        self.write_words(LIST + 0x3000, &[0x8002_0001, 10]);
        self.request(UPDATE_VGT_POLICY, &[(SHOWN + LIST + 0x3000) as u32, 0, 2]);
        self.request(TLB_INVALIDATION_ALL, &[1, INVALIDATE_FLUSH]);
    }

    fn directory(&self) -> u64 {
        MemoryLayout::of(self.card.gt().memory.local().len()).usable - (8 << 20)
    }

    fn assign(&self, vf: Function) {
        for page in base(vf) >> 12..(base(vf) + GLOBAL) >> 12 {
            self.access.set_entry(page, ggtt::GgttEntry::assigned(vf.number()).into());
        }
    }

    /// Handles all pending messages from the GuC.
    pub fn serve(&mut self) {
        while let Some(message) = self.take() {
            match (message[1], &message[2..]) {
                (VF_STATE_NOTIFY, [vf, notice]) => self.lead_reset(Function::new(*vf as u8).unwrap(), *notice),
                (RELAY_FROM_VF, [vf, ..]) => {
                    assert!((1..4).contains(vf));
                    self.relayed += 1;
                }
                (header, _) => assert_eq!(header >> 28, 9, "the PF's own request failed: {message:x?}"),
            }
        }
    }

    /// Contract D.7: performs the PF's part of an FLR. The GuC notifies again until FLR_START; notices after the first
    /// are dropped, as xe drops them.
    fn lead_reset(&mut self, vf: Function, notice: u32) {
        let bit = 1 << vf.number();
        match notice {
            NOTIFY_FLR if self.resetting & bit == 0 => {
                self.resetting |= bit;
                self.request(VF_CONTROL, &[u32::from(vf.number()), FLR_START]);
            }
            NOTIFY_FLR_DONE => {
                self.assign(vf);
                let first = u64::from(vf.number() - 1) * LOCAL;
                self.card.write_local(PF, first, &vec![0; LOCAL as usize]);
                let usable = MemoryLayout::of(self.card.gt().memory.local().len()).usable;
                self.card.write_local(PF, usable + first / 256, &vec![0; LOCAL as usize / 256]);
                self.request(VF_CONTROL, &[u32::from(vf.number()), FLR_FINISH]);
                self.resetting &= !bit;
            }
            _ => {}
        }
    }
}

impl GucDriver for Pf {
    fn access(&self) -> &dyn arctic_guc_driver::Access {
        &self.access
    }

    fn state(&self) -> &DriverState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut DriverState {
        &mut self.state
    }
}
