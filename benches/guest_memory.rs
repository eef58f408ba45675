// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Cost of a DMA_MAP and a DMA_UNMAP of a page of 4 KiB without the socket, with up to 100,000 sections: of pages that
//! are scattered over the client's file, so that none continues another, and of pages that become one section.
//!
//! A guest's IOMMU makes a client map its memory page by page.

use std::fs::File;
use std::time::{Duration, Instant};

use arctic_gpu::vfio_user::memory::GuestMemory;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

const PAGE: u64 = 4096;
const PAGES: u64 = 100_000;
/// DMA_MAP flags: readable, writable.
const RW: u32 = 3;

/// A permutation of the pages, with its name.
type Order = (&'static str, fn(u64) -> u64);

/// The factors have no common factor with their number.
const ORDERS: [Order; 3] =
    [("ascending", |n| n), ("descending", |n| PAGES - 1 - n), ("random", |n| n * 61_803 % PAGES)];

fn file() -> File {
    let file = memfd_create(c"guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("a memory file");
    let file = File::from(file);
    file.set_len(PAGES * PAGE).expect("a sparse file");
    fcntl_add_seals(&file, SealFlags::SHRINK).expect("a seal");
    file
}

/// Time of one call of `step`, which is called for all pages.
fn each(mut step: impl FnMut(u64)) -> Duration {
    let begun = Instant::now();
    (0..PAGES).for_each(&mut step);
    begun.elapsed() / u32::try_from(PAGES).expect("few pages")
}

fn main() {
    println!("{PAGES} pages of 4 KiB          map        unmap      unmap of all    sections");
    let file = file();
    let places: [Order; 2] = [("scattered", |page| page * 7919 % PAGES), ("merged", |page| page)];
    for (layout, place) in places {
        for (name, order) in ORDERS {
            let memory = GuestMemory::default();
            let map = |n| {
                let page = order(n);
                let file = Some(file.try_clone().expect("a descriptor"));
                memory.map(page * PAGE, PAGE, RW, place(page) * PAGE, file).expect("a section");
            };
            let maps = each(map);
            let sections = memory.sections();
            let unmaps = each(|n| memory.unmap(Some((order(n) * PAGE, PAGE))).expect("a page"));
            each(map);
            let begun = Instant::now();
            memory.unmap(None).expect("all pages");
            let all = begun.elapsed();
            assert_eq!(memory.sections(), 0);
            println!("{layout:<10} {name:<11} {maps:>10.1?} {unmaps:>12.1?} {all:>14.1?} {sections:>13}");
        }
    }
}
