// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Initial state of a CPU that starts in 64-bit mode: flat segments and an identity map.

use std::ops::Range;

use arctic_sriov::number::size;
use kvm_bindings::{kvm_dtable, kvm_regs, kvm_segment, kvm_sregs};
use vm_memory::{Bytes, GuestAddress};

use crate::error::Error;
use crate::layout::{self, PAGE};
use crate::memory::Ram;

/// Present, writable, user-accessible.
const TABLE: u64 = 0b111;
/// Like [`TABLE`], for an entry that maps a page of 2 MiB, with accessed and dirty set. Not every KVM supports pages of
/// 1 GiB.
const LARGE_PAGE: u64 = TABLE | 1 << 5 | 1 << 6 | 1 << 7;
/// Bytes mapped by a page directory.
const DIRECTORY: u64 = 1 << 30;
/// Entries of a table at any level.
const ENTRIES: usize = 512;

/// Selectors of the code and data segments, as required by Linux' boot protocol.
const CODE: u16 = 0x10;
const DATA: u16 = 0x18;
/// Flat, present, 64-bit code; accessed is set, so that the CPU need not write the descriptor.
const CODE_DESCRIPTOR: u64 = 0x00af_9b00_0000_ffff;
/// Flat, present, writable data.
const DATA_DESCRIPTOR: u64 = 0x00cf_9300_0000_ffff;

const CR0_PE: u64 = 1 << 0;
const CR0_MP: u64 = 1 << 1;
const CR0_ET: u64 = 1 << 4;
const CR0_NE: u64 = 1 << 5;
const CR0_PG: u64 = 1 << 31;
const CR4_PAE: u64 = 1 << 5;
const EFER_LME: u64 = 1 << 8;
const EFER_LMA: u64 = 1 << 10;

/// Tables in RAM for CPUs that start in 64-bit mode at `entry`, with interrupts disabled.
pub struct LongMode {
    entry: u64,
    page_tables: u64,
}

impl LongMode {
    /// Writes the GDT, and page tables at `page_tables` that identity-map `ranges`, rounded to 1 GiB, for every
    /// privilege level.
    pub fn prepare(ram: &Ram, entry: u64, page_tables: u64, ranges: &[Range<u64>]) -> Result<Self, Error> {
        let no_room = |_| Error::NoRoom { what: "the first page table", ram: page_tables };
        for (number, descriptor) in [(CODE, CODE_DESCRIPTOR), (DATA, DATA_DESCRIPTOR)] {
            ram.write_obj(descriptor, GuestAddress(layout::GDT + u64::from(number))).map_err(no_room)?;
        }
        let tables = Tables::identity(page_tables, ranges);
        for (address, table) in (page_tables..).step_by(size(PAGE)).zip(&tables.0) {
            let bytes: Vec<u8> = table.iter().flat_map(|entry| entry.to_le_bytes()).collect();
            ram.write_slice(&bytes, GuestAddress(address)).map_err(no_room)?;
        }
        Ok(LongMode { entry, page_tables })
    }

    /// Returns control registers and segments, based on KVM's initial state of a CPU.
    pub fn segments(&self, mut sregs: kvm_sregs) -> kvm_sregs {
        let segment = |selector: u16, descriptor: u64| kvm_segment {
            base: 0,
            limit: 0xffff_ffff,
            selector,
            type_: (descriptor >> 40 & 0xf) as u8,
            present: 1,
            dpl: 0,
            db: (descriptor >> 54 & 1) as u8,
            s: 1,
            l: (descriptor >> 53 & 1) as u8,
            g: 1,
            ..Default::default()
        };
        sregs.cs = segment(CODE, CODE_DESCRIPTOR);
        let data = segment(DATA, DATA_DESCRIPTOR);
        (sregs.ds, sregs.es, sregs.fs, sregs.gs, sregs.ss) = (data, data, data, data, data);
        sregs.gdt = kvm_dtable { base: layout::GDT, limit: DATA + 7, ..Default::default() };
        sregs.idt = kvm_dtable::default();
        sregs.cr0 = CR0_PE | CR0_MP | CR0_ET | CR0_NE | CR0_PG;
        sregs.cr3 = self.page_tables;
        sregs.cr4 = CR4_PAE;
        sregs.efer = EFER_LME | EFER_LMA;
        sregs
    }

    /// Returns the general-purpose registers, with the program's arguments in `rdi` and `rsi`.
    pub fn registers(&self, rdi: u64, rsi: u64, rsp: u64) -> kvm_regs {
        kvm_regs { rip: self.entry, rflags: 1 << 1, rdi, rsi, rsp, ..Default::default() }
    }
}

/// The page tables as laid out in RAM, in sequence; the first is the root.
struct Tables(Vec<[u64; ENTRIES]>);

impl Tables {
    /// Creates tables at `base` that identity-map `ranges`.
    fn identity(base: u64, ranges: &[Range<u64>]) -> Self {
        let mut tables = Tables(vec![[0; ENTRIES]]);
        for range in ranges {
            for number in range.start / DIRECTORY..range.end.div_ceil(DIRECTORY) {
                let (upper, lower) = (size(number) / ENTRIES, size(number) % ENTRIES);
                let pointers = tables.below(base, 0, upper);
                let directory = tables.below(base, pointers, lower);
                for (page, entry) in (0..).zip(&mut tables.0[directory]) {
                    *entry = number * DIRECTORY | page << 21 | LARGE_PAGE;
                }
            }
        }
        tables
    }

    /// Returns the index of the table to which entry `index` of table `table` refers, creating it if necessary.
    fn below(&mut self, base: u64, table: usize, index: usize) -> usize {
        if self.0[table][index] == 0 {
            self.0[table][index] = base + PAGE * self.0.len() as u64 | TABLE;
            self.0.push([0; ENTRIES]);
        }
        size(((self.0[table][index] & !(PAGE - 1)) - base) / PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Translates an address as a CPU does.
    fn translate(ram: &Ram, cr3: u64, address: u64) -> Option<u64> {
        let entry = |table: u64, index: u64| {
            let entry: u64 = ram.read_obj(GuestAddress((table & !0xfff) + 8 * (index % 512))).unwrap();
            (entry & TABLE == TABLE).then_some(entry)
        };
        let directory = entry(entry(cr3, address >> 39)?, address >> 30)?;
        let page = entry(directory, address >> 21)?;
        assert_ne!(page & 1 << 7, 0, "a page of 2 MiB");
        Some(page & 0x000f_ffff_ffe0_0000 | address & 0x1f_ffff)
    }

    #[test]
    fn only_the_requested_range_is_identity_mapped() {
        let ram = crate::memory::ram(16 << 20).unwrap();
        let ranges = [0..layout::RAM_ABOVE_4G, layout::MMIO64];
        let tables = (16 << 20) - layout::ELF_PAGE_TABLES;
        let mode = LongMode::prepare(&ram, 0x10_0000, tables, &ranges).unwrap();
        let cr3 = mode.segments(kvm_sregs::default()).cr3;
        let last = layout::MMIO64.end - 1;
        for address in [0, 0x1234, layout::ECAM, layout::MMIO32.start, layout::LOCAL_APIC, layout::MMIO64.start, last] {
            assert_eq!(translate(&ram, cr3, address), Some(address));
        }
        for address in [layout::RAM_ABOVE_4G, layout::MMIO64.start - 1, layout::MMIO64.end] {
            assert_eq!(translate(&ram, cr3, address), None, "{address:#x}");
        }
    }

    /// Linux' tables fit into their range, and a bare-metal guest's tables fit even with the maximum RAM.
    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range, not a range of values")]
    fn tables_fit_into_their_places() {
        let len = |ranges: &[Range<u64>]| Tables::identity(0, ranges).0.len() as u64 * PAGE;
        assert!(layout::PAGE_TABLES + len(&[0..layout::RAM_ABOVE_4G]) <= layout::MAILBOX);
        assert!(len(&[0..layout::RAM_ABOVE_4G + layout::MOST_RAM, layout::MMIO64]) <= layout::ELF_PAGE_TABLES);
    }
}
