// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The reference's memory: byte arrays, and two address spaces with a lookup per access.

use std::collections::BTreeMap;

use crate::differential::layout::*;
use crate::differential::world::{Left, Start, canaries, start};

/// An unmapped address: its space, and its page counted from [`BASE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub global: bool,
    pub page: u64,
}

pub struct Memory {
    pub home: Vec<u8>,
    pub ram: Vec<u8>,
    pub remote: Vec<u8>,
    pub foreign: Vec<u8>,
    /// GGTT pages with their entries, by page number counted from [`BASE`].
    pub global: BTreeMap<u64, (Page, u64)>,
    vf: bool,
}

/// Location of the bytes of a page.
enum Bytes {
    Home(usize),
    Ram(usize),
    Remote(usize),
    Foreign,
    Null,
}

impl Memory {
    pub fn new(vf: bool, ring: &[(u64, u32)], batches: &[Vec<u32>], seed: u64) -> Self {
        let Start { home, ram, remote } = start(seed);
        let (home, ram, remote) = (home.clone(), ram.clone(), remote.clone());
        let foreign = canaries(PAGE as usize).to_vec();
        let mut memory = Memory { home, ram, remote, foreign, global: BTreeMap::new(), vf };
        for page in 0..at::END {
            memory.global.insert(page, (global(page), 0));
        }
        for (n, words) in (0u64..).zip(batches) {
            for (at, word) in (0u64..).zip(words) {
                memory.put_home(BATCHES + n * PAGE + at * 4, *word);
            }
        }
        for (at, word) in ring {
            memory.put_home(RING + at, *word);
        }
        memory
    }

    pub fn put_home(&mut self, at: u64, word: u32) {
        self.home[at as usize..at as usize + 4].copy_from_slice(&word.to_le_bytes());
    }

    /// Returns the location of an address, valid up to the end of its page (V8-159, V13-020).
    fn find(&self, is_global: bool, address: u64, write: bool) -> Result<Bytes, Fault> {
        let address = if is_global { address } else { address & (HIGH - 1) };
        let page = address.wrapping_sub(BASE) / PAGE;
        let fault = Fault { global: is_global, page };
        let found =
            if is_global { self.global.get(&page).map_or(Page::Nothing, |(page, _)| *page) } else { process(page) };
        let offset = (address % PAGE) as usize;
        match found {
            Page::Home(at) => Ok(Bytes::Home(at as usize + offset)),
            Page::HomeReadOnly(at) if !write => Ok(Bytes::Home(at as usize + offset)),
            Page::Guest(iova) if iova >= REMOTE.0 => Ok(Bytes::Remote((iova - REMOTE.0) as usize + offset)),
            Page::Guest(iova) => Ok(Bytes::Ram((iova - RAM.0) as usize + offset)),
            Page::Null => Ok(Bytes::Null),
            // The PF's engines may access any function's pages, a VF's only its own (V13-042, V13-047).
            Page::Foreign if !self.vf => Ok(Bytes::Foreign),
            _ => Err(fault),
        }
    }

    /// Reads a dword.
    pub fn load(&self, global: bool, address: u64) -> Result<u32, Fault> {
        let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        Ok(match self.find(global, address, false)? {
            Bytes::Home(at) => word(&self.home, at),
            Bytes::Ram(at) => word(&self.ram, at),
            Bytes::Remote(at) => word(&self.remote, at),
            Bytes::Foreign => word(&self.foreign, (address % PAGE) as usize),
            Bytes::Null => 0,
        })
    }

    /// Writes a dword.
    pub fn store(&mut self, global: bool, address: u64, word: u32) -> Result<(), Fault> {
        let found = self.find(global, address, true)?;
        let (bytes, at) = match found {
            Bytes::Home(at) => (&mut self.home, at),
            Bytes::Ram(at) => (&mut self.ram, at),
            Bytes::Remote(at) => (&mut self.remote, at),
            Bytes::Foreign => (&mut self.foreign, (address % PAGE) as usize),
            Bytes::Null => return Ok(()),
        };
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        Ok(())
    }

    pub fn load64(&self, global: bool, address: u64) -> Result<u64, Fault> {
        Ok(u64::from(self.load(global, address)?) | u64::from(self.load(global, address + 4)?) << 32)
    }

    pub fn store64(&mut self, global: bool, address: u64, value: u64) -> Result<(), Fault> {
        self.store(global, address, value as u32)?;
        self.store(global, address + 4, (value >> 32) as u32)
    }

    /// Writes a GGTT entry (V13-027: bit 0 valid, bit 1 local memory, address from bit 12).
    pub fn set_entry(&mut self, page: u64, entry: u64) {
        let address = entry & 0x3fff_ffff_f000;
        let found = match entry & 3 {
            3 => Page::Home(address),
            1 => Page::Guest(address),
            _ => Page::Nothing,
        };
        self.global.insert(page, (found, entry));
    }

    /// Moves the state into `left`, in the same form as the engine's state.
    pub fn into_left(mut self, left: &mut Left) {
        self.home[IMAGE as usize..HWSP as usize].fill(0);
        left.home = self.home;
        left.ram = self.ram;
        left.remote = self.remote;
        left.foreign = self.foreign;
        left.entries = (at::WINDOW..at::END).map(|page| self.global[&page].1).collect();
    }
}
