// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The reference's memory: byte arrays, and two address spaces with a lookup per access.

use std::collections::BTreeMap;

use crate::differential::initial::{canaries, initial_local, initial_memory};
use crate::differential::layout::*;
use crate::differential::world::{Fault, FinalMemory, Work, without_undefined};

/// Address bits of a GGTT entry (V13-027). Not the device model's constant: the two are to be compared.
const ENTRY_ADDRESS: u64 = 0x3fff_ffff_f000;
/// Bits of a GGTT entry: valid, and in local memory. The number of the owner is in the bits between them and the address.
const VALID: u64 = 1 << 0;
const IN_LOCAL: u64 = 1 << 1;

/// A byte array with a part of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Array {
    Local,
    Ram,
    Remote,
    Foreign,
}

/// Location of a dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    /// In an array, by offset.
    In(Array, usize),
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

pub struct Memory {
    local: Vec<u8>,
    ram: Vec<u8>,
    remote: Vec<u8>,
    foreign: Vec<u8>,
    /// The mappings and entries of [`GGTT_PAGES`].
    ggtt: BTreeMap<u64, (Page, u64)>,
    vf: bool,
}

impl Memory {
    /// Returns the memory before the work of a VF's or the PF's context.
    pub fn new(vf: bool, work: &Work) -> Self {
        let initial = initial_memory(work.fill);
        Memory {
            local: initial_local(work),
            ram: initial.ram.clone(),
            remote: initial.remote.clone(),
            foreign: canaries(PAGE as usize).to_vec(),
            ggtt: GGTT_PAGES.map(|page| (page, (ggtt(page), ggtt_entry(page, vf)))).collect(),
            vf,
        }
    }

    /// Writes a dword of local memory by its offset, without translation and without an access check.
    pub fn put_local(&mut self, at: u64, word: u32) {
        self.local[at as usize..at as usize + 4].copy_from_slice(&word.to_le_bytes());
    }

    /// Returns the location of the dword at an address, which is a multiple of 4 (V8-159, V13-020).
    fn translate(&self, space: Space, address: u64, access: Access) -> Result<Location, Fault> {
        assert!(address.is_multiple_of(4), "the reference has no unaligned accesses: {address:#x}");
        let page = match space {
            Space::Ggtt => self.ggtt.get(&(address / PAGE)).map_or(Page::Unmapped, |(page, _)| *page),
            Space::Ppgtt => ppgtt(address / PAGE),
        };
        let offset = (address % PAGE) as usize;
        Ok(match page {
            Page::Local(at) => Location::In(Array::Local, at as usize + offset),
            Page::LocalReadOnly(at) if access == Access::Read => Location::In(Array::Local, at as usize + offset),
            Page::Guest(iova) if iova >= REMOTE.0 => Location::In(Array::Remote, (iova - REMOTE.0) as usize + offset),
            Page::Guest(iova) => Location::In(Array::Ram, (iova - RAM.0) as usize + offset),
            Page::Null => Location::Null,
            // The PF's engines may access any function's pages, a VF's only its own (V13-042, V13-047).
            Page::Foreign if !self.vf => Location::In(Array::Foreign, offset),
            Page::LocalReadOnly(_) | Page::Foreign | Page::Unmapped => {
                return Err(Fault { space, page: address & !(PAGE - 1) });
            }
        })
    }

    fn array(&mut self, array: Array) -> &mut Vec<u8> {
        match array {
            Array::Local => &mut self.local,
            Array::Ram => &mut self.ram,
            Array::Remote => &mut self.remote,
            Array::Foreign => &mut self.foreign,
        }
    }

    /// Reads a dword. The address is a multiple of 4.
    pub fn load(&mut self, space: Space, address: u64) -> Result<u32, Fault> {
        Ok(match self.translate(space, address, Access::Read)? {
            Location::In(array, at) => u32::from_le_bytes(self.array(array)[at..at + 4].try_into().unwrap()),
            Location::Null => 0,
        })
    }

    /// Writes a dword. The address is a multiple of 4.
    pub fn store(&mut self, space: Space, address: u64, word: u32) -> Result<(), Fault> {
        if let Location::In(array, at) = self.translate(space, address, Access::Write)? {
            self.array(array)[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        Ok(())
    }

    /// Reads a qword, by two accesses. The address is a multiple of 4.
    pub fn load64(&mut self, space: Space, address: u64) -> Result<u64, Fault> {
        Ok(u64::from(self.load(space, address)?) | u64::from(self.load(space, address + 4)?) << 32)
    }

    /// Writes a qword, by two accesses: the first one has its effect if the second one faults. The address is a multiple of
    /// 4.
    pub fn store64(&mut self, space: Space, address: u64, value: u64) -> Result<(), Fault> {
        self.store(space, address, value as u32)?;
        self.store(space, address + 4, (value >> 32) as u32)
    }

    /// Writes the GGTT entry of a page, as the PF's driver does (V13-027). The grammar generates entries of three kinds: not
    /// valid, a page of the context's part of local memory, and a page of guest memory, both owned by the PF.
    pub fn set_entry(&mut self, page: u64, entry: u64) {
        let address = entry & ENTRY_ADDRESS;
        let guest = |(start, len): (u64, usize)| (start..start + len as u64).contains(&address);
        let mapped = match entry & !ENTRY_ADDRESS {
            flags if flags & VALID == 0 => Page::Unmapped,
            flags if flags == VALID | IN_LOCAL && address < LOCAL_BYTES as u64 => Page::Local(address),
            VALID if guest(RAM) || guest(REMOTE) => Page::Guest(address),
            _ => panic!("the reference does not model the GGTT entry {entry:#x}"),
        };
        self.ggtt.insert(page, (mapped, entry));
    }

    /// Returns the memory after the run.
    pub fn into_final(self) -> FinalMemory {
        FinalMemory {
            local: without_undefined(self.local),
            ram: self.ram,
            remote: self.remote,
            foreign: self.foreign,
            entries: GGTT_PAGES.map(|page| self.ggtt[&page].1).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(vf: bool) -> Memory {
        let engine = arctic_device_model::generation::XE_HPG.engines.all().next().unwrap();
        let work = Work {
            engine,
            head: 0,
            ring: Vec::new(),
            batches: Vec::new(),
            fill: 1,
            interruptions: None,
            execlist: false,
        };
        Memory::new(vf, &work)
    }

    #[test]
    fn addresses_from_high_on_have_other_data_than_those_below() {
        let mut memory = memory(false);
        for (first, pages) in [(at::DATA, 4), (at::RAM, 2)] {
            for page in 0..pages {
                let [low, high] = [0, HIGH].map(|half| half + BASE + (first + page) * PAGE);
                assert_ne!(ppgtt(low / PAGE), ppgtt(high / PAGE));
                memory.store(Space::Ppgtt, low, 1).unwrap();
                memory.store(Space::Ppgtt, high, 2).unwrap();
                assert_eq!((memory.load(Space::Ppgtt, low), memory.load(Space::Ppgtt, high)), (Ok(1), Ok(2)));
                // The other half has the page at another offset.
                let next = HIGH + BASE + (first + (page + pages - 1) % pages) * PAGE;
                assert_eq!(memory.load(Space::Ppgtt, next), Ok(1));
            }
        }
    }

    #[test]
    fn address_that_the_page_tables_do_not_map_is_a_fault_with_its_page() {
        let mut memory = memory(false);
        let data = BASE + at::DATA * PAGE;
        for address in [data + 2 * HIGH, data + (1 << 48), HIGH + BASE + at::HOLE * PAGE, BASE - PAGE, 0] {
            let fault = Fault { space: Space::Ppgtt, page: address };
            assert_eq!(memory.load(Space::Ppgtt, address + 8), Err(fault), "{address:#x}");
            assert_eq!(memory.store(Space::Ppgtt, address + 8, 0), Err(fault), "{address:#x}");
        }
        for address in [data + HIGH, data + (1 << 32), BASE - PAGE] {
            assert_eq!(memory.load(Space::Ggtt, address), Err(Fault { space: Space::Ggtt, page: address }));
        }
    }

    #[test]
    fn entries_of_the_pf_map_pages() {
        let mut memory = memory(false);
        let window = BASE / PAGE + at::WINDOW;
        for (entry, expected) in [
            (GGTT_DATA | 3, Ok(fill(1, GGTT_DATA))),
            (RAM.0 + PAGE | 1, Ok(fill(1, RAM.0 + PAGE))),
            (GGTT_DATA | 2, Err(Fault { space: Space::Ggtt, page: window * PAGE })),
        ] {
            memory.set_entry(window, entry);
            assert_eq!(memory.load(Space::Ggtt, window * PAGE), expected, "{entry:#x}");
        }
    }

    #[test]
    #[should_panic(expected = "does not model the GGTT entry")]
    fn entry_of_another_function_is_not_taken_for_one_of_the_pf() {
        memory(false).set_entry(BASE / PAGE + at::WINDOW, GGTT_DATA | 1 << 2 | 3);
    }

    #[test]
    #[should_panic(expected = "does not model the GGTT entry")]
    fn entry_beyond_the_context_memory_is_not_modelled() {
        memory(false).set_entry(BASE / PAGE + at::WINDOW, LOCAL_BYTES as u64 | 3);
    }
}
