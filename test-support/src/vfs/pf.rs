// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A minimal PF driver that provisions and resets virtual functions through registers, tables and GuC messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arctic_device_model::card::Card;
use arctic_device_model::gate::{ggtt, lmtt};
use arctic_device_model::host::Function;
use arctic_device_model::memory::layout::MemoryLayout;
use arctic_device_model::memory::region::SharedRegion;
use vm_memory::Bytes;

use crate::ct::{self, Rings};
use crate::driver::{GucDriver, Places};
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
const FIRMWARE: u64 = 0x2_0000;
const ADS: u64 = 0x3_0000;

const LMEM_CFG: u32 = 0xcf58;

/// The PF's driver.
pub struct Pf {
    card: Arc<Card>,
    rings: Rings,
    /// Number of messages from virtual functions that the GuC has relayed.
    pub relayed: u64,
}

impl Pf {
    /// Returns a driver that has provisioned and enabled three virtual functions.
    pub fn up(card: &Arc<Card>) -> Pf {
        let mut pf = Pf { card: card.clone(), rings: Rings::default(), relayed: 0 };
        for page in 0..OWN_BYTES >> 12 {
            pf.set_entry((SHOWN >> 12) + page, (OWN + (page << 12)) | 3);
        }
        pf.upload();
        pf.enable_rings(SHOWN + ct::G2H);
        pf.share_out();
        card.enable_vfs(3);
        pf
    }

    /// Writes local memory at a device address.
    fn poke_card(&self, at: u64, value: u32) {
        self.card.gt().memory.local().slice(at, 4).unwrap().store(value, 0, Ordering::SeqCst).unwrap();
    }

    /// Contract B.4: loads the firmware.
    fn upload(&self) {
        for (at, words) in firmware::image() {
            self.write_words(FIRMWARE + at, &words);
        }
        let (at, words) = firmware::ads(SHOWN + ADS, &firmware::engines(&self.card));
        self.write_words(ADS + at, &words);
        for (register, value) in firmware::start(SHOWN + FIRMWARE, SHOWN + ADS) {
            self.set(register, value);
        }
        assert_eq!(self.get(firmware::STATUS), firmware::READY, "the firmware has not started");
    }

    /// Provisions the VFs: quotas as key-length-value lists, GGTT ranges and frames of local memory (contract D.4,
    /// D.5).
    pub fn share_out(&mut self) {
        let directory = self.directory();
        self.set(LMEM_CFG, lmtt::register(directory));
        for n in 0..3u32 {
            let vf = Function(n as u8 + 1);
            let table = directory + lmtt::TABLE_ENTRIES * 4 * u64::from(vf.0);
            self.poke_card(directory + u64::from(vf.0) * 4, lmtt::directory_entry(table));
            for page in 0..LOCAL / lmtt::PAGE {
                let frame = u64::from(n) * LOCAL + page * lmtt::PAGE;
                self.poke_card(table + page * 4, lmtt::table_entry(frame));
            }
            self.assign(vf);
            let mut list = Vec::new();
            for (key, value) in [(1, base(vf)), (2, GLOBAL), (3, LOCAL)] {
                list.extend([key << 16 | 2, value as u32, (value >> 32) as u32]);
            }
            let dwords = [
                (0x8a0b, n * 64),
                (0x0004, QUOTA.contexts),
                (0x8a0a, n * 8),
                (0x0006, QUOTA.doorbells),
                (0x8a01, QUOTA.exec_quantum_ms),
                (0x8a02, QUOTA.preempt_timeout_us),
                // Thresholds: resets, faults, doorbells of all kinds.
                (0x8a04, 5),
                (0x8a07, 5),
                (0x8a08, 5),
            ];
            list.extend(dwords.iter().flat_map(|(key, value)| [key << 16 | 1, *value]));
            let at = LIST + u64::from(n) * 0x1000;
            self.write_words(at, &list);
            self.request(0x5503, &[u32::from(vf.0), (SHOWN + at) as u32, 0, list.len() as u32]);
        }
        self.write_words(LIST + 0x3000, &[0x8002_0001, 10]);
        self.request(0x5502, &[(SHOWN + LIST + 0x3000) as u32, 0, 2]);
        self.request(0x7002, &[1, 1 << 31]);
    }

    fn directory(&self) -> u64 {
        MemoryLayout::of(self.card.gt().memory.local().len()).usable - (8 << 20)
    }

    fn assign(&self, vf: Function) {
        for page in base(vf) >> 12..(base(vf) + GLOBAL) >> 12 {
            self.set_entry(page, ggtt::assigned(vf.0));
        }
    }

    /// Handles all pending messages from the GuC.
    pub fn serve(&mut self) {
        while let Some(message) = self.take() {
            match (message[1], &message[2..]) {
                (0x9000_5106, [vf, notice]) => self.life(Function(*vf as u8), *notice),
                (0x9000_5100, [vf, ..]) => {
                    assert!((1..4).contains(vf));
                    self.relayed += 1;
                }
                (header, _) => assert_eq!(header >> 28, 9, "the PF's own request failed: {message:x?}"),
            }
        }
    }

    /// Contract D.7: performs the PF's part of an FLR.
    fn life(&mut self, vf: Function, notice: u32) {
        match notice {
            1 => self.request(0x5506, &[u32::from(vf.0), 4]),
            2 => {
                self.assign(vf);
                let first = u64::from(vf.0 - 1) * LOCAL;
                self.card.write_local(PF, first, &vec![0; LOCAL as usize]);
                let usable = MemoryLayout::of(self.card.gt().memory.local().len()).usable;
                self.card.write_local(PF, usable + first / 256, &vec![0; LOCAL as usize / 256]);
                self.request(0x5506, &[u32::from(vf.0), 5]);
            }
            _ => {}
        }
    }
}

impl GucDriver for Pf {
    fn function(&self) -> Function {
        PF
    }

    fn card(&self) -> &Card {
        &self.card
    }

    fn memory(&self) -> (&SharedRegion, u64) {
        (self.card.gt().memory.local(), OWN)
    }

    fn base(&self) -> u64 {
        SHOWN
    }

    fn places(&self) -> &'static Places {
        &LAYOUT
    }

    fn root(&self) -> u64 {
        0
    }

    fn rings(&mut self) -> &mut Rings {
        &mut self.rings
    }
}
