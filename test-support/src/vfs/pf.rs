// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A minimal PF driver that provisions and resets virtual functions by register accesses, tables and messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arctic_device_model::card::{Card, GGTT_WINDOW};
use arctic_device_model::memory::layout::MemoryLayout;
use arctic_device_model::world::Function;
use arctic_sriov::gate::{ggtt, lmtt};
use vm_memory::Bytes;

use crate::grammar;
use crate::vfs::bench::{BELL, GLOBAL, LOCAL, MAILBOX, QUOTA, base};

const PF: Function = Function::PF;
/// Device address of the driver's memory.
const OWN: u64 = 64 << 20;
/// GGTT address at which the driver's memory is mapped.
pub const SHOWN: u64 = 0x2000_0000;
const OWN_BYTES: u64 = 8 << 20;
// Offsets in the driver's memory.
const FIRMWARE: u64 = 0;
const ADS: u64 = 0x20_0000;
/// CT buffers: descriptors, and a ring in each direction.
pub const CTB: u64 = 0x30_0000;
/// Configuration lists.
pub const LIST: u64 = 0x31_0000;

const KERNEL_DWORDS: u32 = 0x100;
const DMA_BYTES: u32 = 128 + KERNEL_DWORDS * 4;
const RING_DWORDS: u32 = 1024;
const LMEM_CFG: u32 = 0xcf58;
const GUC_STATUS: u32 = 0xc000;

/// The PF's driver.
pub struct Pf {
    card: Arc<Card>,
    head: u32,
    tail: u32,
    /// Number of messages from virtual functions that the GuC has relayed.
    pub relayed: u64,
}

impl Pf {
    /// Returns a driver that has provisioned and enabled three virtual functions.
    pub fn up(card: &Arc<Card>) -> Pf {
        let mut pf = Pf { card: card.clone(), head: 0, tail: 0, relayed: 0 };
        for page in 0..OWN_BYTES >> 12 {
            pf.set_global((SHOWN >> 12) + page, (OWN + (page << 12)) | 3);
        }
        pf.upload();
        pf.enable_rings();
        pf.share_out();
        card.enable_vfs(3);
        pf
    }

    fn set(&self, register: u32, value: u32) {
        self.card.write(PF, u64::from(register), &value.to_le_bytes());
    }

    fn get(&self, register: u32) -> u32 {
        let mut data = [0; 4];
        self.card.read(PF, u64::from(register), &mut data);
        u32::from_le_bytes(data)
    }

    fn set_global(&self, index: u64, entry: u64) {
        self.card.write(PF, GGTT_WINDOW + index * 8, &entry.to_le_bytes());
    }

    /// Writes local memory at a device address.
    fn poke_card(&self, at: u64, value: u32) {
        self.card.gt().memory.local().slice(at, 4).unwrap().store(value, 0, Ordering::SeqCst).unwrap();
    }

    /// Writes the driver's memory.
    pub fn poke(&self, at: u64, value: u32) {
        self.poke_card(OWN + at, value);
    }

    fn peek(&self, at: u64) -> u32 {
        self.card.gt().memory.local().slice(OWN + at, 4).unwrap().load(0, Ordering::SeqCst).unwrap()
    }

    fn write_words(&self, at: u64, words: &[u32]) {
        for (n, word) in (0u64..).zip(words) {
            self.poke(at + n * 4, *word);
        }
    }

    /// Contract B.4.
    fn upload(&self) {
        let header = [6, 32 + 96 + 96 + 1, 0x1_0000, 0, 0x8086, 0x2024_0101, 32 + 193 + KERNEL_DWORDS, 96, 96, 1];
        self.write_words(FIRMWARE, &header);
        self.write_words(FIRMWARE + 0x40, &[70 << 16 | 53 << 8, 1 << 16 | 26 << 8]);
        self.poke(FIRMWARE + u64::from(DMA_BYTES), 0x1234_5678);
        let shown = (SHOWN + ADS) as u32;
        self.write_words(ADS + 0x1004, &[shown + 0x11dc, shown + 0x123c]);
        self.poke(ADS + 0x1220, 1);
        for (at, word) in grammar::engines_of_ads(&self.card, ADS) {
            self.poke(at, word);
        }
        let firmware = (SHOWN + FIRMWARE) as u32;
        let registers = [
            (0xc050, 0x3f_3000),
            (0xc340, 0x4000),
            (0xc180 + 5 * 4, shown >> 12 << 1),
            (0xc180 + 3 * 4, 0x14),
            (0xc180 + 2 * 4, 0x42_4800),
            (0xc200, firmware + DMA_BYTES),
            (0xc300, firmware),
            (0xc304, 0x8_0000),
            (0xc308, 0x2000),
            (0xc30c, 0x7_0000),
            (0xc310, DMA_BYTES),
            (0xc314, 0x11 << 16 | 0x11),
        ];
        registers.into_iter().for_each(|(register, value)| self.set(register, value));
        assert_eq!(self.get(GUC_STATUS), 0x8001_f0ec, "the firmware has not started");
    }

    fn mail(&self, message: [u32; 4]) -> u32 {
        for (n, value) in (0u32..).zip(message) {
            self.set(MAILBOX + n * 4, value);
        }
        self.set(BELL, 1);
        self.get(MAILBOX)
    }

    fn enable_rings(&self) {
        let shown = SHOWN + CTB;
        let keys: [(u32, u32, u64); 6] = [
            (0x0903, 2, shown),
            (0x0902, 2, shown + 0x1000),
            (0x0904, 1, u64::from(RING_DWORDS) * 4),
            (0x0906, 2, shown + 0x800),
            (0x0905, 2, shown + 0x2000),
            (0x0907, 1, u64::from(RING_DWORDS) * 4),
        ];
        for (key, len, value) in keys {
            assert_eq!(self.mail([0x0508, key << 16 | len, value as u32, 0]), 0xf000_0001);
        }
        self.write_words(CTB, &[0; 0x400]);
        assert_eq!(self.mail([0x4509, 1, 0, 0]), 0xf000_0000);
    }

    /// Writes a CT message including its header without changes, and rings the doorbell.
    pub fn send(&mut self, message: &[u32]) {
        for dword in message {
            self.poke(CTB + 0x1000 + u64::from(self.tail) * 4, *dword);
            self.tail = (self.tail + 1) % RING_DWORDS;
        }
        self.poke(CTB + 4, self.tail);
        self.set(BELL, 1);
    }

    fn request(&mut self, code: u32, payload: &[u32]) {
        let mut message = vec![0x8001 << 16 | (payload.len() as u32 + 1), 2 << 28 | code];
        message.extend(payload);
        self.send(&message);
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
            self.set_global(page, ggtt::assigned(vf.0));
        }
    }

    /// Handles the messages of the GuC.
    pub fn serve(&mut self) {
        let at = |dword: u32| CTB + 0x2000 + u64::from(dword % RING_DWORDS) * 4;
        let tail = self.peek(CTB + 0x804);
        while self.head != tail {
            let len = self.peek(at(self.head)) & 0xff;
            let message: Vec<u32> = (1..=len).map(|n| self.peek(at(self.head + n))).collect();
            self.head = (self.head + 1 + len) % RING_DWORDS;
            self.poke(CTB + 0x800, self.head);
            match (message[0], &message[1..]) {
                (0x9000_5106, [vf, notice]) => self.life(Function(*vf as u8), *notice),
                (0x9000_5100, [vf, ..]) => {
                    assert!((1..4).contains(vf));
                    self.relayed += 1;
                }
                (header, _) => assert_eq!(header >> 28, 9, "the PF's own request failed: {message:x?}"),
            }
        }
    }

    /// Contract D.7: the PF's part of an FLR.
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
