// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the copy engine against an independent per-pixel reference.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tests: numbers are chosen by the test")]

mod compression;
mod drivers;
mod hostile;
mod pixels;
mod planes;
mod zeros;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arctic_fidelity::{proves, proves_table};
use vm_memory::{Bytes, VolatileMemory, VolatileSlice};

use super::{Blit, Progress};
use crate::generation::XE_HPG;
use crate::host::{Access, Dma, DmaFault, DmaView, Function};
use crate::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use crate::memory::region::SharedRegion;
use crate::memory::{Fault, Memory, Space, Tlb};

/// Guest memory: I/O virtual addresses 0 to `end`, at most 1 MiB, are directly mapped, the second MiB is accessed through
/// DMA read/write messages, and the rest is unmapped.
struct Guest {
    mapped: vm_memory::mmap::MmapRegion,
    end: u64,
    remote: vm_memory::mmap::MmapRegion,
}

const MIB: u64 = 1 << 20;

impl Guest {
    fn remote(&self, iova: u64, len: usize) -> Result<VolatileSlice<'_>, DmaFault> {
        let at = iova.checked_sub(MIB).ok_or(DmaFault { iova })?;
        self.remote.get_slice(at as usize, len).map_err(|_| DmaFault { iova })
    }
}

impl DmaView for Guest {
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        let rest = self.end.checked_sub(iova).filter(|rest| *rest > 0)?;
        self.mapped.get_slice(iova as usize, len.min(rest as usize)).ok()
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        self.remote(iova, data.len())?.read_slice(data, 0).map_err(|_| DmaFault { iova })
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        self.remote(iova, data.len())?.write_slice(data, 0).map_err(|_| DmaFault { iova })
    }
}

struct OneGuest(Arc<Guest>);

impl Dma for OneGuest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        self.0.clone()
    }
}

/// A card with an address space that consists, in this order, of
/// * 2 MiB of local memory in scattered 4 KiB pages,
/// * 1 MiB of NULL pages,
/// * 1 MiB of directly mapped guest memory,
/// * 1 MiB of remote guest memory,
/// * 1 MiB of which the first half is local memory and the second half is not present,
/// * 2 MiB of local memory in one page.
struct BlitBench {
    memory: Memory,
    tlb: Tlb,
}

const LOCAL: u64 = 16 * MIB;
const ROOT: u64 = 0x1000;
const SPACE: Space = Space::Ppgtt(ROOT);
const NULL_PAGES: u64 = 2 * MIB;
const MAPPED: u64 = 3 * MIB;
const REMOTE: u64 = 4 * MIB;
const HOLE: u64 = 5 * MIB + MIB / 2;
const LARGE: u64 = 6 * MIB;
/// Base addresses of the local memory that backs the first two MiB, the MiB with the hole, and the large page.
const FRAMES: [u64; 3] = [4 * MIB, 6 * MIB, 8 * MIB];
const CCS_BASE: u64 = LOCAL - LOCAL / 256;

impl BlitBench {
    fn new() -> Self {
        Self::with_mapped(MIB)
    }

    /// A card whose directly mapped guest memory ends at the I/O virtual address `end`.
    fn with_mapped(end: u64) -> Self {
        let mmap = || vm_memory::mmap::MmapRegion::new(MIB as usize).unwrap();
        let guest = Guest { mapped: mmap(), end, remote: mmap() };
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        let local = SharedRegion::anonymous(LOCAL as usize).unwrap();
        let memory =
            Memory::new(XE_HPG.page_tables, local, ggtt, Arc::new(OneGuest(Arc::new(guest)))).with_flat_ccs(CCS_BASE);
        let bench = BlitBench { memory, tlb: Tlb::default() };
        bench.entry(ROOT, 0, 0x2003);
        bench.entry(0x2000, 0, 0x3003);
        for page in 0..6 * 256 {
            let (mebibyte, inside) = (page / 256, page % 256);
            let (local, system, null) = (0x803, 0x3, 0x203);
            let entry = match mebibyte {
                // Multiplication by an odd number modulo 512 is a permutation of the 512 pages.
                0 | 1 => local | (FRAMES[0] + page * 77 % 512 * 4096),
                2 => null,
                3 | 4 => system | ((page - 3 * 256) * 4096),
                _ if inside < 128 => local | (FRAMES[1] + inside * 4096),
                _ => 0,
            };
            bench.entry(0x4000 + page / 512 * 4096, page % 512, entry);
        }
        for table in 0..3 {
            bench.entry(0x3000, table, (0x4000 + table * 4096) | 3);
        }
        bench.entry(0x3000, LARGE >> 21, FRAMES[2] | 0x883);
        bench
    }

    fn entry(&self, table: u64, index: u64, value: u64) {
        self.memory.local().slice(table + index * 8, 8).unwrap().store(value, 0, Ordering::Release).unwrap();
    }

    fn global_entry(&self, index: u64, frame: u64) {
        self.memory.ggtt().set_entry(index, GgttEntry::from(frame | 3));
    }

    fn read(&mut self, address: u64, len: u64) -> Vec<u8> {
        let views = self.memory.views();
        let mut data = vec![0; len as usize];
        self.memory.gam(Function::PF, &views, &mut self.tlb).read(SPACE, address, &mut data).unwrap();
        data
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        let views = self.memory.views();
        self.memory.gam(Function::PF, &views, &mut self.tlb).write(SPACE, address, data).unwrap();
    }

    fn step(&mut self, blit: &mut Blit, space: Space, budget: usize) -> Result<Progress, Fault> {
        let views = self.memory.views();
        blit.step(&mut self.memory.gam(Function::PF, &views, &mut self.tlb), space, budget)
    }

    /// Executes a command in steps of `budget` bytes; returns the number of steps.
    fn run(&mut self, dwords: &[u32], budget: usize) -> usize {
        let mut blit = Blit::decode(dwords).unwrap();
        let mut steps = 1;
        while self.step(&mut blit, SPACE, budget).unwrap() == Progress::More {
            steps += 1;
            assert!(steps < 4 << 20, "the blit does not complete");
        }
        steps
    }

    /// Fills `len` bytes with pseudo-random data derived from `seed`, and returns them.
    fn fill_random(&mut self, address: u64, len: u64, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let data: Vec<u8> = (0..len.div_ceil(8))
            .flat_map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()
            })
            .take(len as usize)
            .collect();
        self.write(address, &data);
        data
    }
}

fn low(address: u64) -> u32 {
    address as u32
}

fn high(address: u64) -> u32 {
    (address >> 32) as u32
}

fn point(x: i32, y: i32) -> u32 {
    (y as u32) << 16 | (x as u32 & 0xffff)
}
