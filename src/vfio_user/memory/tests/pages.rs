// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Compares merged and cut sections with a map of bytes as reference model, and maps pages as a VMM with a guest IOMMU
//! does.

use arctic_device_model::host;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use vm_memory::VolatileSlice;

use super::*;
use crate::vfio_user::memory::sections::Sections;

/// Addresses of the tested space, at both ends of the 64-bit addresses.
const SPACE: u64 = 96;
const PAGE: u64 = 4096;
const FILE_PAGES: u64 = 2;
/// Number of files: two that are mapped, one that may be truncated.
const FILES: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Map {
        iova: u64,
        size: u64,
        rights: u32,
        /// The file; none for memory that is accessed by messages.
        file: Option<usize>,
        /// Offset of address 0 of the space in the file, so that equal values continue each other.
        base: u64,
    },
    Unmap(u64, u64),
    UnmapAll,
}

fn operation() -> impl Strategy<Value = Operation> {
    let range = || (0..SPACE, 1..17_u64).prop_map(|(iova, size)| (iova, size.min(SPACE - iova)));
    let rights = prop_oneof![6 => Just(RW), 1 => Just(DMA_READABLE), 1 => Just(DMA_WRITABLE)];
    let file = prop_oneof![Just(None), (0..FILES).prop_map(Some)];
    let base = prop_oneof![4 => Just(0), 1 => Just(1), 1 => Just(PAGE - 40), 1 => Just(2 * PAGE - SPACE)];
    let map = (range(), rights, file, base).prop_map(|((iova, size), rights, file, base)| Operation::Map {
        iova,
        size,
        rights,
        file,
        base,
    });
    prop_oneof![30 => map, 12 => range().prop_map(|(iova, size)| Operation::Unmap(iova, size)), 1 => Just(Operation::UnmapAll)]
}

/// What an address is mapped to.
#[derive(Clone, Copy, PartialEq)]
struct Byte {
    file: Option<usize>,
    /// Offset in the file minus the address, or 0.
    base: u64,
    rights: u32,
}

/// Each mapped address.
type Model = BTreeMap<u64, Byte>;

/// Number of runs of addresses with bytes that continue each other.
fn runs(model: &Model) -> u64 {
    let begins = |(at, byte): &(&u64, &Byte)| at.checked_sub(1).and_then(|at| model.get(&at)) != Some(byte);
    model.iter().filter(begins).count() as u64
}

fn content(file: usize, offset: u64) -> u8 {
    (offset % 251) as u8 ^ (file as u8) << 6
}

fn files() -> [File; FILES] {
    let seals = [SealFlags::SHRINK, SealFlags::SHRINK | SealFlags::GROW, SealFlags::empty()];
    std::array::from_fn(|number| {
        let file = memory_file(c"guest", FILE_PAGES * PAGE, seals[number]);
        let bytes: Vec<_> = (0..FILE_PAGES * PAGE).map(|offset| content(number, offset)).collect();
        file.write_all_at(&bytes, 0).unwrap();
        file
    })
}

fn apply(memory: &GuestMemory, files: &[File; FILES], start: u64, operation: Operation) -> Result<(), Errno> {
    match operation {
        Operation::Map { iova, size, rights, file, base } => {
            let file = file.map(|file| files[file].try_clone().unwrap());
            memory.map(start + iova, size, rights, base + iova, file)
        }
        Operation::Unmap(iova, size) => memory.unmap(Some((start + iova, size))),
        Operation::UnmapAll => memory.unmap(None),
    }
}

fn apply_to_model(model: &mut Model, operation: Operation) -> Result<(), Errno> {
    match operation {
        Operation::Map { iova, size, rights, file, base } => {
            if model.range(iova..iova + size).next().is_some() {
                return Err(Errno::EEXIST);
            }
            let base = if file.is_some() { base } else { 0 };
            model.extend((iova..iova + size).map(|at| (at, Byte { file, base, rights })));
        }
        Operation::Unmap(iova, size) => model.retain(|at, _| !(iova..iova + size).contains(at)),
        Operation::UnmapAll => model.clear(),
    }
    Ok(())
}

fn check(memory: &GuestMemory, model: &Model, start: u64) {
    let view = memory.view();
    for at in 0..SPACE {
        let byte = model.get(&at);
        let expected = byte.and_then(|byte| Some(content(byte.file?, byte.base + at)));
        let readable = byte.is_some_and(|byte| byte.rights & DMA_READABLE != 0);
        let mut data = [0];
        let read = view.read_remote(start + at, &mut data).ok().map(|()| data[0]);
        assert_eq!(read, expected.filter(|_| readable), "{at}");
        let direct = byte.is_some_and(|byte| byte.rights == RW && byte.file.is_some_and(|file| file < 2));
        let slice = view.slice(start + at, SPACE as usize, host::Access::Read);
        assert_eq!(slice.is_some(), direct, "{at}");
        if let Some(slice) = slice {
            let run = (at..SPACE).take_while(|next| model.get(next) == byte).count();
            assert_eq!(slice.len(), run, "{at}");
        }
    }
    let used: BTreeSet<_> = model.values().filter_map(|byte| byte.file).collect();
    let mapped = used.iter().filter(|file| **file < 2).count() as u64;
    let expected = [mapped * FILE_PAGES * PAGE, mapped, runs(model), used.len() as u64];
    assert_eq!(memory.account.in_use(), expected, "address space, mappings, sections, descriptors");
    assert_eq!(memory.sections() as u64, runs(model));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Random maps and unmaps of bytes of three files and of the client's memory: every byte, every span, and what is
    /// charged equal the model's after each operation; nothing is charged at the end.
    #[test]
    fn sections_are_the_runs_of_bytes(operations in prop::collection::vec(operation(), 1..60), top: bool) {
        let start = if top { 0_u64.wrapping_sub(SPACE) } else { 0 };
        let (memory, files, mut model) = (GuestMemory::default(), files(), Model::new());
        for operation in operations {
            let expected = apply_to_model(&mut model, operation);
            prop_assert_eq!(apply(&memory, &files, start, operation), expected, "{:?}", operation);
            check(&memory, &model, start);
        }
        memory.clear();
        prop_assert_eq!(memory.account.in_use(), [0; 4]);
    }

    /// The set of sections with many chunks, against a map: random pages, of which some continue each other.
    #[test]
    fn many_sections_equal_a_map(seed in 1..u64::MAX, order in 0..3_usize) {
        let (mut sections, mut model) = (Sections::default(), BTreeMap::new());
        let mut state: u64 = seed;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        const COUNT: u64 = 6000;
        for n in 0..COUNT {
            let page = [n, COUNT - n, random(COUNT)][order] * 2;
            if model.contains_key(&page) {
                continue;
            }
            let section = Section { iova: page, last: page, offset: page, backing: random(2) as u32, rights: RW };
            model.insert(page, section);
            sections = sections.insert(section).sections;
        }
        for _ in 0..200 {
            let (first, size) = (random(2 * COUNT), random(100) + 1);
            sections = sections.remove(first, first + size).sections;
            model.retain(|page, _| !(first..=first + size).contains(page));
            let section = Section { iova: first, last: first, offset: 0, backing: 3, rights: RW };
            model.insert(first, section);
            sections = sections.insert(section).sections;
        }
        // Thin out: one section of each hundred is left, in descending order of the chunks.
        for first in (0..COUNT / 50).rev().map(|n| n * 100) {
            sections = sections.remove(first + 2, first + 99).sections;
            model.retain(|page, _| !(first + 2..=first + 99).contains(page));
        }
        prop_assert!(sections.iter().eq(model.values()));
        prop_assert_eq!(sections.len(), model.len());
        prop_assert!(sections.chunks().all(|len| (1..=512).contains(&len)));
        prop_assert!(sections.chunks().count() <= 1 + model.len() / 64, "few chunks are sparse");
        prop_assert!((0..2 * COUNT).all(|page| sections.find(page) == model.get(&page)));
    }
}

/// Pages in ascending, descending and scattered order become one section of one mapping, whichever neighbour is mapped
/// first, and are removed in the ranges in which QEMU removes them: aligned powers of two over the whole space.
#[test]
fn pages_of_a_guest_iommu_are_one_section() {
    const PAGES: u64 = 1024;
    let backing = file(1);
    backing.set_len(PAGES * PAGE).unwrap_err();
    let backing = memory_file(c"guest", PAGES * PAGE, SealFlags::SHRINK);
    for order in [|n| n, |n| PAGES - 1 - n, |n| n * 389 % PAGES] as [fn(u64) -> u64; 3] {
        let memory = GuestMemory::default();
        for n in 0..PAGES {
            let page = order(n);
            let map = memory.map((1 << 32) + page * PAGE, PAGE, RW, page * PAGE, Some(backing.try_clone().unwrap()));
            map.unwrap();
        }
        assert_eq!(memory.account.in_use(), [PAGES * PAGE, 1, 1, 1]);
        assert_eq!(memory.view().slice(1 << 32, usize::MAX, host::Access::Read).unwrap().len() as u64, PAGES * PAGE);
        memory.unmap(Some(((1 << 32) + 5 * PAGE, PAGE))).unwrap();
        assert_eq!(memory.sections(), 2);
        let mut at = 0_u64;
        while at != 1 << 63 {
            let size = if at == 0 { PAGE } else { at & at.wrapping_neg() };
            memory.unmap(Some((at, size))).unwrap();
            at += size;
        }
        assert_eq!(memory.account.in_use(), [0; 4]);
    }
}

/// Pages that are scattered over the file are entries of the table: they need one mapping, however many they are. This is
/// an inner guest of 640 MiB in pages of 4 KiB.
#[test]
fn scattered_pages_need_one_mapping() {
    const PAGES: u64 = 163_840;
    let backing = memory_file(c"guest", PAGES * PAGE, SealFlags::SHRINK);
    let memory = GuestMemory::default();
    for page in 0..PAGES {
        // 61 and the number of pages have no common factor.
        let place = page * 61 % PAGES;
        memory.map(page * PAGE, PAGE, RW, place * PAGE, Some(backing.try_clone().unwrap())).unwrap();
    }
    assert_eq!(memory.account.in_use(), [PAGES * PAGE, 1, PAGES, 1]);
    backing.write_all_at(b"found", 61 * 1000 % PAGES * PAGE).unwrap();
    let mut data = [0; 5];
    memory.view().read_remote(1000 * PAGE, &mut data).unwrap();
    assert_eq!(&data, b"found");
    memory.unmap(Some((0, 1 << 40))).unwrap();
    assert_eq!(memory.account.in_use(), [0; 4]);
}

/// A file that as a whole exceeds the limit of address space is mapped section by section.
#[test]
fn a_file_beyond_the_limit_is_mapped_in_parts() {
    let limits = Limits { mapped: 4 * PAGE, mappings: 3, ..Limits::default() };
    let memory = GuestMemory::new(Function::PF, "pf".into(), Ledger::new(limits, false));
    let backing = numbered(memory_file(c"guest", 8 * PAGE, SealFlags::SHRINK), 8);
    let map = |page: u64, offset| memory.map(page * PAGE, PAGE, RW, offset, Some(backing.try_clone().unwrap()));
    map(0, 7 * PAGE).unwrap();
    map(10, 100).unwrap();
    assert_eq!(memory.account.in_use(), [2 * PAGE + 100, 2, 2, 1]);
    assert_eq!(byte(&*memory.view(), 0), Some(8));
    assert_eq!(byte(&*memory.view(), 10 * PAGE), Some(1));
    assert_eq!(byte(&*memory.view(), 11 * PAGE - 1), Some(2));
    map(20, 0).unwrap();
    assert_eq!(memory.account.in_use()[1..], [2, 3, 1], "the range is mapped already");
    map(30, 4 * PAGE).unwrap();
    assert_eq!(map(40, 6 * PAGE), Err(Errno::ENOSPC));
    assert_eq!(memory.account.in_use()[1..], [3, 4, 1]);
}

/// Address of the first byte of a span in this process.
fn address(slice: &VolatileSlice<'_>) -> usize {
    slice.ptr_guard().as_ptr() as usize
}

/// A step's span stays valid when another part of its section is unmapped: the file is not mapped anew. The unmap waits
/// for the step.
#[test]
fn a_span_outlasts_a_cut_of_its_section() {
    let memory = Arc::new(GuestMemory::default());
    memory.map(0, 4 * PAGE, RW, 0, Some(file(4))).unwrap();
    let view = memory.view();
    let span = view.slice(0, usize::MAX, host::Access::Read).unwrap();
    let unmapper = {
        let memory = memory.clone();
        thread::spawn(move || memory.unmap(Some((PAGE, PAGE))))
    };
    while memory.sections() != 2 {
        thread::yield_now();
    }
    thread::sleep(Duration::from_millis(5));
    assert!(!unmapper.is_finished(), "completed while a view is in use");
    span.write_slice(&[9; 3 * PAGE as usize], 0).unwrap();
    let now = memory.view();
    assert_eq!(address(&now.slice(0, usize::MAX, host::Access::Read).unwrap()), address(&span));
    assert_eq!(
        address(&now.slice(2 * PAGE, usize::MAX, host::Access::Read).unwrap()),
        address(&span) + 2 * PAGE as usize
    );
    assert_eq!((byte(&*now, 2 * PAGE), byte(&*now, 3 * PAGE), byte(&*now, PAGE)), (Some(9), Some(4), None));
    drop(view);
    assert_eq!(unmapper.join().unwrap(), Ok(()), "views of later tables are not waited for");
}

/// A step that outlasts the time limit of one unmap is waited for by the next.
#[test]
fn an_unmap_waits_for_views_that_an_earlier_one_gave_up() {
    let memory = GuestMemory::default();
    memory.map(0, 2 * PAGE, RW, 0, Some(file(2))).unwrap();
    let view = memory.view();
    assert_eq!(memory.unmap(Some((0, PAGE))), Err(Errno::EBUSY));
    assert_eq!(memory.unmap(Some((PAGE, PAGE))), Err(Errno::EBUSY), "the view has this page, too");
    assert_eq!(byte(&*view, PAGE), Some(2));
    drop(view);
    assert_eq!(memory.unmap(None), Ok(()));
    assert_eq!(memory.account.in_use(), [0; 4]);
}
