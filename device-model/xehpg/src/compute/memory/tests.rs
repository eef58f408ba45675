// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the memory of kernels: a process with local memory, guest memory with and without mapping, and a NULL page.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arctic_fidelity::proves;
use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes, VolatileMemory, VolatileSlice};

use super::*;
use crate::generation::XE_HPG;
use crate::host::{Dma, DmaFault, DmaView, Function};
use crate::memory::ggtt::{GGTT_BYTES, Ggtt};
use crate::memory::region::SharedRegion;
use crate::memory::{Memory as CardMemory, Tlb};

mod atomics;
mod captured;
mod images;
mod lanes;
mod retries;
mod surfaces;

const LOCAL: usize = 8 << 20;
/// Control data of compressed local memory, at its end.
const FLAT_CCS: u64 = (LOCAL - LOCAL / 256) as u64;
const ROOT: u64 = 0x1000;
const SPACE: Space = Space::Ppgtt(ROOT);

/// Guest memory from this I/O virtual address on is mapped, that from [`REMOTE`] on is not; 64 KiB each.
const GUEST: u64 = 0x10_0000;
const REMOTE: u64 = 0x20_0000;
const GUEST_BYTES: usize = 64 << 10;

/// Virtual addresses of the pages of 4 KiB that the process has one behind the other, as numbers of 48 bits.
const VA: u64 = 0x8000_0000_0000;
/// Number of these pages: two of local memory, one of guest memory, one of guest memory by messages, a NULL page, and one
/// more of local memory. The next one is not mapped.
const PAGES: u64 = 6;
const PAGE: u64 = 4 << 10;
const LOCAL_VA: u64 = VA;
const GUEST_VA: u64 = VA + 2 * PAGE;
const REMOTE_VA: u64 = VA + 3 * PAGE;
const NULL_VA: u64 = VA + 4 * PAGE;
const LAST_VA: u64 = VA + 5 * PAGE;
const UNMAPPED_VA: u64 = VA + PAGES * PAGE;
/// A page of surface states, binding table and samplers, in which the test has its bases, and a page of 2 MiB.
const STATE_VA: u64 = VA + 16 * PAGE;
const LARGE_VA: u64 = VA + (2 << 20);

const PRESENT: u64 = 3;
const DM: u64 = 1 << 11;
const NULL: u64 = 1 << 9;
const PS: u64 = 1 << 7;

/// Address in local memory of the first byte of a page of local memory.
fn local_of(va: u64) -> u64 {
    match va & !(PAGE - 1) {
        LOCAL_VA => 0x70_0000,
        STATE_VA => 0x71_0000,
        LAST_VA => 0x72_0000,
        second if second == LOCAL_VA + PAGE => 0x73_0000,
        large => 0x40_0000 + (large - LARGE_VA),
    }
}

/// A client with guest memory that is mapped in part.
struct Client {
    mapped: MmapRegion,
    remote: Mutex<Vec<u8>>,
    /// The client does not answer after so many more messages.
    answers: AtomicU64,
    /// Writes are performed although they are not answered.
    late: AtomicBool,
}

struct View(Arc<Client>, AtomicBool);

impl View {
    fn answer(&self, iova: u64) -> Result<(), DmaFault> {
        let left = self.0.answers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map(|_| ()).map_err(|_| {
            self.1.store(true, Ordering::SeqCst);
            DmaFault { iova }
        })
    }

    fn range(iova: u64, len: usize) -> Result<std::ops::Range<usize>, DmaFault> {
        let start = iova.checked_sub(REMOTE).ok_or(DmaFault { iova })? as usize;
        if start + len <= GUEST_BYTES { Ok(start..start + len) } else { Err(DmaFault { iova }) }
    }
}

impl DmaView for View {
    fn slice(&self, iova: u64, len: usize, _: memory::Access) -> Option<VolatileSlice<'_>> {
        let at = usize::try_from(iova.checked_sub(GUEST)?).ok()?;
        let rest = GUEST_BYTES.checked_sub(at).filter(|rest| *rest > 0)?;
        self.0.mapped.get_slice(at, len.min(rest)).ok()
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        let range = View::range(iova, data.len())?;
        self.answer(iova)?;
        data.copy_from_slice(&self.0.remote.lock().unwrap()[range]);
        Ok(())
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        let range = View::range(iova, data.len())?;
        let answer = self.answer(iova);
        if answer.is_ok() || self.0.late.load(Ordering::SeqCst) {
            self.0.remote.lock().unwrap()[range].copy_from_slice(data);
        }
        answer
    }

    fn unanswered(&self) -> bool {
        self.1.load(Ordering::SeqCst)
    }
}

struct OneClient(Arc<Client>);

impl Dma for OneClient {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(View(self.0.clone(), AtomicBool::new(false)))
    }
}

/// A card with a process.
struct World {
    card: CardMemory,
    client: Arc<Client>,
    bases: Bases,
}

impl World {
    fn new() -> World {
        let client = Arc::new(Client {
            mapped: MmapRegion::new(GUEST_BYTES).unwrap(),
            remote: Mutex::new(vec![0; GUEST_BYTES]),
            answers: AtomicU64::new(u64::MAX),
            late: AtomicBool::new(false),
        });
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        let local = SharedRegion::anonymous(LOCAL).unwrap();
        let card = CardMemory::new(XE_HPG.page_tables, local, ggtt, Arc::new(OneClient(client.clone())));
        let card = card.with_flat_ccs(FLAT_CCS);
        let entry = |table: u64, index: u64, value: u64| {
            card.local().slice(table + index * 8, 8).unwrap().store(value, 0, Ordering::Release).unwrap();
        };
        // The first page is the first one of the upper half of 48 bits.
        entry(ROOT, 256, 0x2000 | PRESENT);
        entry(0x2000, 0, 0x3000 | PRESENT);
        entry(0x3000, 0, 0x4000 | PRESENT);
        entry(0x3000, 1, local_of(LARGE_VA) | PRESENT | DM | PS);
        for va in [LOCAL_VA, LOCAL_VA + PAGE, STATE_VA, LAST_VA] {
            entry(0x4000, (va - VA) / PAGE, local_of(va) | PRESENT | DM);
        }
        entry(0x4000, 2, GUEST | PRESENT);
        entry(0x4000, 3, REMOTE | PRESENT);
        entry(0x4000, 4, PRESENT | NULL);
        // As the driver has them: some plain, some sign-extended (EU-006).
        let extended = |va: u64| va | 0xffff << 48;
        let bases = Bases {
            general: VA,
            surface: extended(STATE_VA),
            dynamic: extended(STATE_VA),
            instruction: VA,
            bindless_surfaces: extended(STATE_VA + 0x100),
            bindless_samplers: extended(STATE_VA + 0x800),
            binding_table: STATE_VA + 0xc00,
            samplers: STATE_VA + 0xa00,
        };
        World { card, client, bases }
    }

    /// Executes a step.
    fn step<R>(&self, surfaces: &mut Surfaces, work: impl FnOnce(&mut KernelMemory<'_, '_>) -> R) -> R {
        let (views, mut tlb) = (self.card.views(), Tlb::default());
        let mut gam = self.card.gam(Function::PF, &views, &mut tlb);
        work(&mut KernelMemory::new(&mut gam, SPACE, &self.bases, surfaces))
    }

    /// Executes the only step of a walker.
    fn once<R>(&self, work: impl FnOnce(&mut KernelMemory<'_, '_>) -> R) -> R {
        self.step(&mut Surfaces::default(), work)
    }

    fn write(&self, va: u64, bytes: &[u8]) {
        let (views, mut tlb) = (self.card.views(), Tlb::default());
        self.card.gam(Function::PF, &views, &mut tlb).write(SPACE, va, bytes).unwrap();
    }

    fn read<const N: usize>(&self, va: u64) -> [u8; N] {
        let (views, mut tlb) = (self.card.views(), Tlb::default());
        let mut bytes = [0; N];
        self.card.gam(Function::PF, &views, &mut tlb).read(SPACE, va, &mut bytes).unwrap();
        bytes
    }

    fn dword(&self, va: u64) -> u32 {
        u32::from_le_bytes(self.read(va))
    }

    /// Writes a surface state at an offset from the surface state base.
    fn put_state(&self, offset: u64, words: &[u32; 16]) {
        self.write(STATE_VA + offset, words.map(u32::to_le_bytes).as_flattened());
    }

    /// Sets an entry of the binding table.
    fn bind(&self, index: u64, offset: u32) {
        self.write(STATE_VA + 0xc00 + index * 4, &offset.to_le_bytes());
    }

    /// Lets the client answer so many more messages.
    fn answers(&self, messages: u64) {
        self.client.answers.store(messages, Ordering::SeqCst);
    }
}

/// The state of a buffer of bytes, as NEO writes it.
fn buffer(base: u64, bytes: u64) -> [u32; 16] {
    let last = (bytes - 1) as u32;
    let mut words = [0; 16];
    words[0] = 0x87fd_c000;
    words[2] = last & 0x7f | (last >> 7 & 0x3fff) << 16;
    words[3] = (last >> 21) << 21;
    words[8] = base as u32;
    // Sign-extended.
    words[9] = (base >> 32) as u32 | 0xffff_0000;
    words
}

/// Reads a dword.
fn load(memory: &mut KernelMemory<'_, '_>, surface: Surface, address: u64) -> Result<(u32, Access), MemoryFault> {
    let mut bytes = [0xee; 4];
    let access = memory.read(surface, address, 4, &mut bytes)?;
    Ok((u32::from_le_bytes(bytes), access))
}

fn store(memory: &mut KernelMemory<'_, '_>, surface: Surface, address: u64, value: u32) -> Result<Access, MemoryFault> {
    memory.write(surface, address, 4, &value.to_le_bytes())
}

#[test]
fn faults_name_the_address() {
    proves!(EU_073, "an access without translation is a fault with its address, of which the engine's report is kept");
    let world = World::new();
    world.once(|memory| {
        let fault = |address| MemoryFault { kind: FaultKind::Address, address: Some(address) };
        assert_eq!(load(memory, Surface::Flat, UNMAPPED_VA + 4), Err(fault(UNMAPPED_VA + 4)));
        let reported = memory.take_fault().unwrap();
        assert_eq!((reported.space, reported.address), (SPACE, UNMAPPED_VA + 4));
        assert_eq!(reported.reason, FaultReason::NotPresent { level: 0 });
        assert_eq!(reported.access, memory::Access::Read);
        assert_eq!(memory.take_fault(), None);
        // The second page of an access.
        assert_eq!(store(memory, Surface::Flat, UNMAPPED_VA - 2, 1), Err(fault(UNMAPPED_VA)));
        assert_eq!(memory.take_fault().unwrap().access, memory::Access::Write);
        assert_eq!(store(memory, Surface::Flat, 0, 1), Err(fault(0)));
        // A table of surfaces that is not there.
        assert_eq!(load(memory, Surface::Bindless(0xffff_ffc0), 0).unwrap_err().kind, FaultKind::Address);
        assert!(memory.take_fault().is_some() && !memory.unanswered());
    });
}

#[test]
fn code_is_fetched() {
    proves!(EU_047, "code is read over pages, up to the end of memory");
    let world = World::new();
    world.write(VA + PAGE - 8, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    world.once(|memory| {
        let mut bytes = [0; 16];
        assert_eq!(memory.fetch(0, VA + PAGE - 8 | 0xffff << 48, &mut bytes), Ok(16));
        assert_eq!(bytes[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(memory.fetch(0, UNMAPPED_VA - 5, &mut bytes), Ok(5));
        assert_eq!(memory.take_fault(), None);
        let fault = memory.fetch(0, UNMAPPED_VA, &mut bytes);
        assert_eq!(fault, Err(MemoryFault { kind: FaultKind::Address, address: Some(UNMAPPED_VA) }));
        assert!(memory.take_fault().is_some());
    });
}

/// Accesses that are messages to a client cost enough to end a step.
#[test]
fn messages_to_a_client_are_charged() {
    let world = World::new();
    world.once(|memory| {
        for (va, cost) in [(LOCAL_VA, 0), (GUEST_VA, 0), (NULL_VA, 0), (REMOTE_VA, REMOTE_COST)] {
            assert_eq!(load(memory, Surface::Flat, va).unwrap().1, Access::Inside);
            assert_eq!(memory.take_cost(), cost);
            assert_eq!(store(memory, Surface::Flat, va, 1), Ok(Access::Inside));
            assert_eq!(memory.take_cost(), cost);
            memory.atomic(Surface::Flat, va, 4, Atomic::Inc, [0; 2]).unwrap();
            assert_eq!(memory.take_cost(), cost);
        }
        assert_eq!(memory.take_remote_atomics(), 1);
    });
}
