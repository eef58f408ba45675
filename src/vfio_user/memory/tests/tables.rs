// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Compares the table of sections with a set of pages as reference model, for every sequence of three operations in a
//! small address space.

use super::*;
use crate::vfio_user::memory::sections::Sections;
use arctic_device_model::host;

/// Number of pages in the tested space, at either end of the 64-bit addresses.
const PAGES: u64 = 8;
const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Map(u64, u64),
    Unmap(u64, u64),
}

/// The reference model: the set of mapped pages.
#[derive(Clone, Default)]
struct Model([bool; PAGES as usize]);

impl Model {
    fn apply(&mut self, operation: Operation) -> Result<(), Errno> {
        let (Operation::Map(page, count) | Operation::Unmap(page, count)) = operation;
        let map = matches!(operation, Operation::Map(..));
        let pages = &mut self.0[page as usize..][..count as usize];
        if map && pages.contains(&true) {
            return Err(Errno::EEXIST);
        }
        pages.fill(map);
        Ok(())
    }

    /// First page and number of pages of the run of mapped pages that contains `page`.
    fn section(&self, page: u64) -> Option<(u64, u64)> {
        let mapped = |page: &u64| self.0[*page as usize];
        let first = (0..=page).rev().take_while(mapped).last()?;
        Some((first, (first..PAGES).take_while(mapped).count() as u64))
    }

    /// All runs of mapped pages.
    fn sections(&self) -> Vec<(u64, u64)> {
        let mut sections: Vec<_> = (0..PAGES).filter_map(|page| self.section(page)).collect();
        sections.dedup();
        sections
    }
}

fn operations() -> Vec<Operation> {
    let ranges = (0..PAGES).flat_map(|page| (1..=PAGES - page).map(move |count| (page, count)));
    ranges.flat_map(|(page, count)| [Operation::Map(page, count), Operation::Unmap(page, count)]).collect()
}

fn apply(memory: &GuestMemory, base: u64, operation: Operation) -> Result<(), Errno> {
    match operation {
        Operation::Map(page, count) => memory.map(base + page * PAGE, count * PAGE, RW, 0, None),
        Operation::Unmap(page, count) => memory.unmap(Some((base + page * PAGE, count * PAGE))),
    }
}

/// Asserts that the sections equal the model's, in order, and that each page is found in its section.
fn compare(memory: &GuestMemory, base: u64, model: &Model, what: &[Operation]) {
    let table = memory.table.load();
    let pages = |it: &Section| ((it.iova - base) / PAGE, (it.last - it.iova) / PAGE + 1);
    assert!(table.sections.iter().map(pages).eq(model.sections()), "{what:?}");
    for page in 0..PAGES {
        let first = base + page * PAGE;
        for address in [first, first + (PAGE - 1)] {
            let found = table.sections.find(address).map(pages);
            assert_eq!(found, model.section(page), "{what:?} {address:#x}");
        }
    }
}

/// Every sequence of three maps and unmaps of every range of 8 pages, at the bottom and at the very top of the address
/// space: 36 ranges, 72 operations, 2 * 72^3 = 746 496 sequences. The result of each operation and the table after it
/// are compared.
#[test]
fn every_sequence_of_three_operations() {
    let operations = operations();
    assert_eq!(operations.len(), 72);
    for base in [0, 0_u64.wrapping_sub(PAGES * PAGE)] {
        let mut sequences = 0;
        for first in &operations {
            let fresh = || {
                let (memory, mut model) = (GuestMemory::default(), Model::default());
                assert_eq!(apply(&memory, base, *first), model.apply(*first), "{first:?}");
                (memory, model)
            };
            for second in &operations {
                let (memory, mut model) = fresh();
                assert_eq!(apply(&memory, base, *second), model.apply(*second), "{first:?} {second:?}");
                compare(&memory, base, &model, &[*first, *second]);
                assert_eq!(memory.account.in_use(), [0, 0, model.sections().len() as u64, 0], "{first:?} {second:?}");
                let before = memory.table.load_full();
                for third in &operations {
                    memory.table.store(before.clone());
                    let mut model = model.clone();
                    let all = [*first, *second, *third];
                    assert_eq!(apply(&memory, base, *third), model.apply(*third), "{all:?}");
                    compare(&memory, base, &model, &all);
                    sequences += 1;
                }
            }
        }
        assert_eq!(sequences, 72 * 72 * 72);
    }
}

/// Every access of 0 to 9 bytes at every address of 6 one-byte sections, with every combination of rights: all bytes
/// before the first inaccessible address are accessed, and that address is reported. Sections of one byte each
/// represent pages. 4 rights for each of 6 bytes, 4^6 * 8 addresses * 10 lengths * 2 directions = 655 360 accesses.
#[test]
fn every_access_across_sections() {
    const BYTES: u64 = 6;
    let mut accesses = 0_u64;
    for rights in 0..4_u32.pow(BYTES as u32) {
        // Byte n of the space: none, readable, writable, both.
        let right = |n: u64| rights >> (2 * n) & 3;
        let rights_of = |n: u64| [0, DMA_READABLE, DMA_WRITABLE, RW][right(n) as usize];
        // The bytes are not consecutive in the file, so that no section is merged.
        let section = |n| Section { iova: 1 + n, last: 1 + n, offset: 2 * n, backing: 0, rights: rights_of(n) };
        let bytes = (0..BYTES).filter(|n| right(*n) != 0);
        let sections = bytes.fold(Sections::default(), |all, n| all.insert(section(n)).sections);
        let table = Table { sections, ..Table::default() };
        for (needs, bit) in [(DMA_READABLE, 1), (DMA_WRITABLE, 2)] {
            for iova in 0..BYTES + 2 {
                for len in 0..10_usize {
                    let allowed = |at: u64| (1..=BYTES).contains(&at) && right(at - 1) & bit != 0;
                    let first_bad = (iova..iova + len as u64).find(|at| !allowed(*at));
                    let mut seen = Vec::new();
                    let outcome = table.pieces(iova, len, needs, |section, at, range| {
                        assert!(section.iova <= at && at <= section.last);
                        seen.push((at, range));
                        Some(())
                    });
                    assert_eq!(outcome, first_bad.map_or(Ok(()), |iova| Err(DmaFault { iova })));
                    let reached = first_bad.map_or(len, |bad| (bad - iova) as usize);
                    let expected = (0..reached).map(|n| (iova + n as u64, n..n + 1));
                    assert!(seen.into_iter().eq(expected), "{rights:#x} {iova} {len}");
                    accesses += 1;
                }
            }
        }
    }
    assert_eq!(accesses, 4096 * 8 * 10 * 2);
}

/// The last byte of the address space can be accessed; an access beyond it faults.
#[test]
fn accesses_at_the_top_of_the_address_space() {
    let memory = GuestMemory::default();
    let base = 0_u64.wrapping_sub(PAGE);
    memory.map(base, PAGE, RW, 0, Some(file(1))).unwrap();
    let view = memory.view();
    assert_eq!(view.slice(u64::MAX, 16, host::Access::Read).unwrap().len(), 1);
    for len in 0..=16_usize {
        for iova in [u64::MAX, u64::MAX - 7, u64::MAX - 15] {
            let fits = len as u64 <= u64::MAX - iova + 1 || len == 0;
            let mut data = vec![0; len];
            assert_eq!(view.read_remote(iova, &mut data).is_ok(), fits, "{iova:#x} {len}");
            assert_eq!(view.write_remote(iova, &data).is_ok(), fits, "{iova:#x} {len}");
        }
    }
}
