// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of memory isolation between functions: GGTT pages and local memory.

mod random;
mod storage;

use arctic_fidelity::proves;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;

use vm_memory::mmap::MmapRegion;

use super::*;
use crate::generation::XE_HPG;
use crate::memory::tests::sparse;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Sixteen frames, of which the first twelve can be assigned to functions.
const LOCAL: u64 = 16 * FRAME;
const USABLE: u64 = 12 * FRAME;
/// Pages of a VF's LMEM BAR.
const PAGES: u64 = 4;
/// The directory of the LMTT; the table of VF n is n * 64 KiB above it.
const DIRECTORY: u64 = 64 * KIB;
/// Guest memory of each function, by guest address.
const GUEST: Range<u64> = MIB..MIB + 64 * KIB;

const VF1: Function = Function::new(1).unwrap();
const VF2: Function = Function::new(2).unwrap();
/// The only VF with a trapped GGTT window.
const VF3: Function = Function::new(3).unwrap();

struct GuestMemory(MmapRegion);

impl DmaView for GuestMemory {
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        let at = iova.checked_sub(GUEST.start).filter(|at| *at < GUEST.end - GUEST.start)? as usize;
        self.0.get_slice(at, len.min(self.0.size() - at)).ok()
    }
}

#[derive(Default)]
struct Guests(Mutex<HashMap<Function, Arc<GuestMemory>>>);

impl Guests {
    fn of(&self, function: Function) -> Arc<GuestMemory> {
        let new = || Arc::new(GuestMemory(MmapRegion::new((GUEST.end - GUEST.start) as usize).unwrap()));
        self.0.lock().unwrap().entry(function).or_insert_with(new).clone()
    }
}

impl Dma for Guests {
    fn view(&self, function: Function) -> Arc<dyn DmaView> {
        self.of(function)
    }
}

/// A card with three VFs.
struct MemoryBench {
    memory: Memory,
    guests: Arc<Guests>,
}

impl MemoryBench {
    fn new() -> Self {
        MemoryBench::on(&|len| sparse(len as usize))
    }

    fn on(region: &dyn Fn(u64) -> SharedRegion) -> Self {
        let guests = Arc::new(Guests::default());
        let vf =
            |mapped: bool| VfMemory { local: region(PAGES * FRAME), ggtt: mapped.then(|| region(GGTT_BYTES as u64)) };
        let memory =
            Memory::new(XE_HPG.page_tables, region(LOCAL), Ggtt::new(region(GGTT_BYTES as u64)), guests.clone())
                .with_flat_ccs(USABLE)
                .with_vfs(vec![vf(true), vf(true), vf(false)]);
        let bench = MemoryBench { memory, guests };
        for vf in [VF1, VF2, VF3] {
            let table = (DIRECTORY >> 16) as u32 + u32::from(vf.number());
            bench.put32(DIRECTORY + u64::from(vf.number()) * 4, table << 4 | 1);
        }
        bench.memory.set_lmem_cfg(1 << 31 | (DIRECTORY >> 16) as u32);
        bench
    }

    /// Sets entry `page` of the VF's LMTT table: a frame, or not valid.
    fn grant(&self, vf: Function, page: u64, frame: Option<u64>) {
        let entry = frame.map_or(0, |frame| (frame as u32) << 5 | 1);
        self.put32(DIRECTORY + u64::from(vf.number()) * 64 * KIB + page * 4, entry);
    }

    /// Assigns these frames to `vf`, in the order of its pages, and moves them to its region.
    fn provision(&self, vf: Function, frames: &[u64]) {
        for page in 0..PAGES {
            self.grant(vf, page, frames.get(page as usize).copied());
        }
        self.memory.set_quota(vf, frames.len() as u64 * FRAME);
        self.memory.adopt_lmtt();
    }

    fn put32(&self, at: u64, value: u32) {
        self.memory.storage.slice(at, 4).unwrap().store(value, 0, Ordering::Release).unwrap();
    }

    fn put(&self, at: u64, value: u64) {
        self.memory.storage.slice(at, 8).unwrap().store(value, 0, Ordering::Release).unwrap();
    }

    fn get(&self, at: u64) -> u64 {
        self.memory.storage.slice(at, 8).unwrap().load(0, Ordering::Acquire).unwrap()
    }

    fn write(&self, function: Function, space: Space, address: u64, value: u64) -> Result<(), FaultReason> {
        let (views, mut tlb) = (self.memory.views(), Tlb::default());
        let mut gam = self.memory.gam(function, &views, &mut tlb);
        gam.write_u64(space, address, value).map_err(|fault| fault.reason)
    }

    fn read(&self, function: Function, space: Space, address: u64) -> Result<u64, FaultReason> {
        let (views, mut tlb) = (self.memory.views(), Tlb::default());
        let mut gam = self.memory.gam(function, &views, &mut tlb);
        gam.read_u64(space, address).map_err(|fault| fault.reason)
    }

    fn guest(&self, function: Function, at: u64) -> u64 {
        self.guests.of(function).0.get_slice(at as usize, 8).unwrap().load(0, Ordering::Acquire).unwrap()
    }

    /// Reads the LMEM BAR as the VMM of `vf` maps it.
    fn window(&self, vf: Function, at: u64) -> u64 {
        self.memory.storage.region(vf).unwrap().slice(at, 8).unwrap().load(0, Ordering::Acquire).unwrap()
    }

    fn bar(&self, function: Function, at: u64) -> u64 {
        let mut data = [0; 8];
        self.memory.read_bar(function, at, &mut data);
        u64::from_le_bytes(data)
    }

    fn ggtt(&self, function: Function, index: u64) -> u64 {
        let mut data = [0; 8];
        self.memory.ggtt().read(function, index * 8, &mut data);
        u64::from_le_bytes(data)
    }

    fn set_ggtt(&self, function: Function, index: u64, value: u64) {
        self.memory.ggtt().write(function, index * 8, &value.to_le_bytes());
    }
}

const VALID: u64 = 1;
const LMEM: u64 = 2;

fn owned(vf: Function, entry: u64) -> GgttEntry {
    GgttEntry::from(entry | u64::from(vf.number()) << 2)
}

#[test]
fn a_vf_and_entries() {
    proves!(
        [V13_019, V13_022, V13_023, V13_024, V13_025, V13_026, V13_033],
        "a VF reads its own entries without the function number, and its writes change neither the function number \
        nor the valid bit, whether its window is trapped or mapped by its VMM. Entries of other functions read zero \
        and drop writes. Includes partial accesses of entries"
    );
    for vf in [VF1, VF3] {
        let bench = MemoryBench::new();
        let ggtt = bench.memory.ggtt();
        ggtt.set_entry(10, owned(vf, 0x12_3456_7000 | LMEM | VALID));
        ggtt.set_entry(11, owned(VF2, 0x7000 | VALID));
        ggtt.set_entry(12, owned(vf, 0x9000));
        ggtt.set_entry(13, GgttEntry::from(0xa000 | VALID));
        assert_eq!(bench.ggtt(vf, 10), 0x12_3456_7000 | LMEM | VALID);
        assert_eq!((bench.ggtt(vf, 11), bench.ggtt(vf, 12), bench.ggtt(vf, 13)), (0, 0x9000, 0));
        for index in 10..14 {
            bench.set_ggtt(vf, index, !0);
        }
        let all = !(0x3ff << 2);
        assert_eq!((bench.ggtt(vf, 10), bench.ggtt(vf, 11)), (all, 0));
        assert_eq!((bench.ggtt(vf, 12), bench.ggtt(vf, 13)), (all & !VALID, 0), "the VF cannot set the valid bit");
        assert_eq!(ggtt.effective(10), owned(vf, all));
        assert_eq!((ggtt.effective(11), ggtt.effective(13)), (owned(VF2, 0x7001), GgttEntry::from(0xa001)));
        // A dword within an entry, an access across three entries, and the end of the table.
        bench.set_ggtt(vf, 10, 0x5000);
        ggtt.write(vf, 84, &[0x34, 0x12, 0, 0]);
        assert_eq!(ggtt.effective(10), owned(vf, 0x1234_0000_5001));
        ggtt.write(vf, 87, &[0xff; 10]);
        assert_eq!(bench.ggtt(vf, 10), 0xff00_1234_0000_5001);
        assert_eq!((bench.ggtt(VF2, 11), bench.ggtt(vf, 12)), (0x7001, all & !VALID), "the byte was already all ones");
        let mut bytes = [1; 3];
        ggtt.read(vf, 86, &mut bytes);
        assert_eq!(bytes, [0, 0xff, 0]);
        for offset in [GGTT_BYTES as u64 - 4, GGTT_BYTES as u64, u64::MAX - 3] {
            let mut bytes = [1; 8];
            ggtt.write(vf, offset, &bytes);
            ggtt.read(vf, offset, &mut bytes);
            assert_eq!(bytes, [0; 8]);
        }
        assert_eq!(ggtt.entry(ggtt.entries() - 1), GgttEntry::from(0));
        // The PF reads the function number, and reassigns the page.
        assert_eq!(bench.ggtt(Function::PF, 11), owned(VF2, 0x7001).into_bits());
        bench.set_ggtt(Function::PF, 10, owned(VF2, VALID).into_bits());
        assert_eq!((bench.ggtt(vf, 10), bench.ggtt(VF2, 10)), (0, 1));
    }
}

#[test]
fn global_pages_by_owner() {
    proves!(
        [V13_020, V13_021, V13_026, V13_028, V13_030, V13_031, V13_042, V13_108],
        "a VF can use only its own pages; the PF can use all pages, translated to the owner's guest memory and by \
        the owner's LMTT. The separate table of a VF determines only the addresses of its own pages"
    );
    let bench = MemoryBench::new();
    let ggtt = bench.memory.ggtt();
    bench.provision(VF1, &[5]);
    bench.provision(VF2, &[7, 6]);
    for (page, vf, entry) in [
        (0, Function::PF, GUEST.start | VALID),
        (1, VF1, GUEST.start | VALID),
        (2, VF2, GUEST.start | VALID),
        (3, VF2, FRAME + 0x3000 | LMEM | VALID),
        (4, VF1, 0x3000 | LMEM | VALID),
        (5, VF1, FRAME | LMEM | VALID),
        (6, VF1, GUEST.start),
        (7, Function::new(63).unwrap(), GUEST.start | VALID),
    ] {
        ggtt.set_entry(page, owned(vf, entry));
    }
    ggtt.set_entry(8, GgttEntry::from(64 << 2 | VALID));
    let write = |function, page: u64, value| bench.write(function, Space::Ggtt, page * 4096 + 0x10, value);
    // Accesses by the VFs.
    assert_eq!(write(VF1, 1, 0x11), Ok(()));
    assert_eq!(write(VF2, 2, 0x22), Ok(()));
    assert_eq!(write(VF2, 3, 0x33), Ok(()));
    assert_eq!(write(VF1, 4, 0x44), Ok(()));
    assert_eq!((bench.guest(VF1, 0x10), bench.guest(VF2, 0x10), bench.guest(Function::PF, 0x10)), (0x11, 0x22, 0));
    assert_eq!((bench.get(6 * FRAME + 0x3010), bench.get(5 * FRAME + 0x3010)), (0x33, 0x44));
    // Pages of other functions, pages without local memory, entries that are not valid.
    for (function, page) in [(VF1, 0), (VF1, 2), (VF1, 3), (VF2, 1), (VF2, 4), (VF3, 1), (VF1, 7), (VF1, 8)] {
        assert_eq!(write(function, page, 1), Err(FaultReason::NotOwned), "{function:?} {page}");
        assert_eq!(bench.read(function, Space::Ggtt, page * 4096), Err(FaultReason::NotOwned));
    }
    assert_eq!(write(VF1, 5, 1), Err(FaultReason::NotGiven));
    assert_eq!(write(VF1, 6, 1), Err(FaultReason::NotPresent { level: 0 }));
    // Accesses by the PF, and by the GuC on its behalf, use the owner's second level of translation.
    assert_eq!(bench.read(Function::PF, Space::Ggtt, 0x1010), Ok(0x11));
    assert_eq!(bench.read(Function::PF, Space::Ggtt, 0x3010), Ok(0x33));
    assert_eq!(write(Function::PF, 2, 0x99), Ok(()));
    assert_eq!((bench.guest(VF2, 0x10), bench.guest(Function::PF, 0x10)), (0x99, 0));
    assert_eq!(write(Function::PF, 5, 1), Err(FaultReason::NotGiven), "must not be the PF's own frame 1");
    assert_eq!(write(Function::PF, 8, 1), Err(FaultReason::NotOwned), "no such function");
    // One step of the PF combines data of several functions.
    let (views, mut tlb) = (bench.memory.views(), Tlb::default());
    let mut gam = bench.memory.gam(Function::PF, &views, &mut tlb);
    let read = [0x1010, 0x2010, 0x3010, 0x4010].map(|at| gam.read_u64(Space::Ggtt, at).ok());
    assert_eq!(read, [Some(0x11), Some(0x99), Some(0x33), Some(0x44)]);
    // VF 1's separate table changes the addresses of its own pages, but not of other functions' pages, regardless of
    // the owner that it writes.
    let table = ggtt_table(&bench, VF1);
    for (page, entry) in [(1, 0x4000 | LMEM | 2 << 2), (2, 0x4000 | LMEM | 1 << 2 | VALID), (6, GUEST.start | VALID)] {
        table.slice(page * 8, 8).unwrap().store::<u64>(entry, 0, Ordering::Release).unwrap();
    }
    assert_eq!(write(VF1, 1, 0x55), Ok(()));
    assert_eq!((bench.get(5 * FRAME + 0x4010), bench.guest(VF1, 0x10)), (0x55, 0x11));
    assert_eq!(write(VF1, 2, 1), Err(FaultReason::NotOwned));
    assert_eq!(write(VF1, 6, 1), Err(FaultReason::NotPresent { level: 0 }), "only the PF sets the valid bit");
    assert_eq!(
        (bench.read(VF2, Space::Ggtt, 0x2010), bench.read(Function::PF, Space::Ggtt, 0x1010)),
        (Ok(0x99), Ok(0x55))
    );
}

fn ggtt_table(bench: &MemoryBench, vf: Function) -> &SharedRegion {
    bench.memory.ggtt().table_of(vf).unwrap()
}

#[test]
fn pause_copies_vf_entries_and_reset_clears_them() {
    proves!(
        [V13_020, V13_021],
        "PAUSE_DONE copies the VF's entries to the PF's table; a new configuration and FLR_FINISH clear the VF's \
        table, after which the PF's entry is effective again"
    );
    for (vf, mapped) in [(VF1, true), (VF3, false)] {
        let bench = MemoryBench::new();
        let ggtt = bench.memory.ggtt();
        ggtt.assign(vf, 0x10_0000..0x10_3000);
        assert_eq!(ggtt.entry(0x100), owned(vf, VALID));
        assert_eq!((ggtt.entry(0xff), ggtt.entry(0x103)), (GgttEntry::from(0), GgttEntry::from(0)));
        bench.set_ggtt(vf, 0x101, 0x8000 | LMEM);
        bench.set_ggtt(vf, 0x103, 0x8000 | LMEM);
        if mapped {
            assert_eq!(ggtt.entry(0x101), owned(vf, VALID));
            ggtt_table(&bench, vf).slice(0x103 * 8, 8).unwrap().store(0x7003_u64, 0, Ordering::Release).unwrap();
        }
        ggtt.settle_vf(vf);
        let read = |index| bench.ggtt(Function::PF, index);
        assert_eq!(
            (read(0x100), read(0x101), read(0x103)),
            (owned(vf, VALID).into_bits(), owned(vf, 0x8003).into_bits(), 0)
        );
        // The PF sanitizes the entries after an FLR.
        ggtt.empty_vf(vf);
        ggtt.assign(vf, 0x10_0000..0x10_3000);
        if mapped {
            assert_eq!(ggtt_table(&bench, vf).first_data(&(0..GGTT_BYTES as u64)), None, "must be released");
        }
        assert_eq!(ggtt.effective(0x101), owned(vf, VALID));
    }
}

#[test]
fn ranges_of_the_cards_own() {
    proves!(
        [V13_011, V13_012, V13_034],
        "the PF's BAR exposes local memory without translation and does not include the GGTT; memory above the \
        usable part is not assigned to a VF, regardless of the contents of the LMTT"
    );
    let bench = MemoryBench::new();
    bench.memory.ggtt().set_entry(0, GgttEntry::from(0x5001));
    for frame in 0..16 {
        bench.memory.write_bar(Function::PF, frame * FRAME + 0x7f0, &[0xee; 16]);
        assert_eq!(bench.bar(Function::PF, frame * FRAME + 0x7f0), u64::from_le_bytes([0xee; 8]));
    }
    assert_eq!(bench.memory.ggtt().entry(0), GgttEntry::from(0x5001));
    assert!((1..bench.memory.ggtt().entries()).all(|index| bench.memory.ggtt().entry(index) == GgttEntry::from(0)));
    bench.provision(VF1, &[11, 12, 15, 16]);
    bench.memory.write_bar(Function::PF, 11 * FRAME + 0x7f0, &[0xee; 16]);
    bench.memory.ggtt().assign(VF1, 0..0x8000);
    for page in 0..4 {
        bench.set_ggtt(VF1, page, page * FRAME | LMEM);
    }
    let read = |page: u64| bench.read(VF1, Space::Ggtt, page * 4096 + 0x7f0);
    assert_eq!(read(0), Ok(u64::from_le_bytes([0xee; 8])));
    assert_eq!(
        (read(1), read(2), read(3)),
        (Err(FaultReason::OutsideLocal), Err(FaultReason::OutsideLocal), Err(FaultReason::OutsideLocal))
    );
    assert_eq!((bench.bar(VF1, FRAME), bench.bar(VF1, 0x7f0)), (u64::MAX, u64::from_le_bytes([0xee; 8])));
    assert_eq!((bench.bar(Function::PF, LOCAL), bench.bar(Function::PF, u64::MAX)), (u64::MAX, u64::MAX));
    assert_eq!(bench.bar(Function::PF, LOCAL - 4), u64::MAX << 32, "only the lower half exists");
}

#[test]
fn a_vfs_bar_by_message() {
    proves!(
        [V13_010, V13_101, V13_102, V13_105, V13_107, V13_109],
        "trapped accesses of a VF's LMEM BAR are translated by the LMTT, limited by the quota; the engines see the \
        same bytes. LMEM_CFG alone gives both the directory"
    );
    let bench = MemoryBench::new();
    assert_eq!(bench.bar(VF1, 0), u64::MAX, "no memory yet");
    bench.grant(VF1, 0, Some(9));
    bench.grant(VF1, 1, Some(3));
    bench.grant(VF2, 0, Some(4));
    assert_eq!(bench.bar(VF1, 0), u64::MAX, "no quota yet");
    bench.memory.set_quota(VF1, 2 * FRAME - 1);
    bench.memory.set_quota(VF2, 4 * FRAME);
    // Before and after the frames have moved.
    for round in 1..3 {
        bench.memory.write_bar(VF1, FRAME - 4, &[round; 8]);
        assert_eq!(bench.bar(VF1, FRAME - 4), u64::from_le_bytes([round, round, round, round, 255, 255, 255, 255]));
        bench.memory.write_bar(VF2, 8, &[7; 8]);
        assert_eq!(bench.get(9 * FRAME + FRAME - 8) >> 32, u64::from(u32::from_le_bytes([round; 4])));
        assert_eq!((bench.get(3 * FRAME), bench.get(4 * FRAME + 8)), (0, u64::from_le_bytes([7; 8])));
        for at in [FRAME, 2 * FRAME, 32 << 30, u64::MAX - 3] {
            bench.memory.write_bar(VF1, at, &[9; 8]);
            assert_eq!(bench.bar(VF1, at), u64::MAX);
        }
        bench.memory.set_quota(VF1, FRAME);
        bench.memory.adopt_lmtt();
    }
    assert_eq!(bench.window(VF1, FRAME - 8) >> 32, 0x0202_0202);
    // Quota and table are checked per page.
    bench.memory.set_quota(VF1, 2 * FRAME);
    bench.memory.write_bar(VF1, FRAME - 4, &[5; 8]);
    assert_eq!((bench.bar(VF1, FRAME - 4), bench.get(3 * FRAME)), (u64::from_le_bytes([5; 8]), 0x0505_0505));
    bench.memory.set_lmem_cfg((DIRECTORY >> 16) as u32);
    assert_eq!(bench.bar(VF1, 0), u64::MAX, "the LMTT is off");
    // Values of the PF's LMEM_CFG that are not a valid address.
    bench.memory.set_lmem_cfg(!0);
    assert_eq!(bench.bar(VF1, 0), u64::MAX);
}

const DM: u64 = 1 << 11;
const PS: u64 = 1 << 7;

#[test]
fn a_vfs_own_page_tables() {
    proves!(
        [V13_029, V13_038, V13_102, V13_105, V13_108],
        "system memory is the guest memory of the function for which the engine runs; all local addresses in a VF's \
        own tables, both of tables and of pages, are guest addresses. A page of 1 GiB is split into the frames that \
        the LMTT maps (contract C.5)"
    );
    let bench = MemoryBench::new();
    for step in 0..2 {
        // Guest page 1 contains the tables; tested before and after the frames have moved to the VF.
        bench.grant(VF1, 0, Some(8));
        bench.grant(VF1, 1, Some(2));
        bench.grant(VF1, 2, Some(1));
        bench.grant(VF1, 3, None);
        bench.memory.set_quota(VF1, 4 * FRAME);
        if step == 1 {
            bench.memory.adopt_lmtt();
        }
        let table = |n: u64| 2 * FRAME + n * 0x1000;
        bench.put(table(0), FRAME + 0x1003);
        bench.put(table(1), FRAME + 0x2003);
        bench.put(table(1) + 8, 3 | DM | PS);
        bench.put(table(2), FRAME + 0x3003);
        bench.put(table(2) + 8, 2 * FRAME | 3 | DM | PS);
        bench.put(table(2) + 16, 3 * FRAME | 3 | DM | PS);
        bench.put(table(2) + 24, 5 * FRAME | 3);
        bench.put(table(3), 0x7000 | 3 | DM);
        bench.put(table(3) + 8, GUEST.start | 3);
        bench.put(table(3) + 16, 4 * FRAME | 3 | DM);
        let space = Space::Ppgtt(FRAME);
        let mark = 0x1000 + step;
        for (address, host) in [
            (0x123 * 8, 8 * FRAME + 0x7000 + 0x123 * 8),
            (FRAME + 0x12_3450, FRAME + 0x12_3450),
            (1 << 30 | 0x5000, 8 * FRAME + 0x5000),
            (1 << 30 | FRAME | 0x5000, 2 * FRAME + 0x5000),
            (1 << 30 | 2 * FRAME | 0x5000, FRAME + 0x5000),
        ] {
            assert_eq!(bench.write(VF1, space, address, mark + address), Ok(()));
            assert_eq!(bench.get(host), mark + address, "{address:#x}");
            assert_eq!(bench.read(VF1, space, address), Ok(mark + address));
        }
        assert_eq!(bench.write(VF1, space, 0x1018, 0x77), Ok(()));
        assert_eq!((bench.guest(VF1, 0x18), bench.guest(Function::PF, 0x18)), (0x77, 0));
        for address in [0x2000, 2 * FRAME, 3 * FRAME, 1 << 30 | 3 * FRAME, 1 << 30 | 100 * FRAME] {
            assert_eq!(bench.write(VF1, space, address, 1), Err(FaultReason::NotGiven), "{address:#x}");
        }
        // Here the root is the card's address of the tables instead of the guest's.
        assert_eq!(bench.read(VF1, Space::Ppgtt(2 * FRAME), 0), Err(FaultReason::NotPresent { level: 3 }));
        assert_eq!(bench.read(VF1, Space::Ppgtt(3 * FRAME), 0), Err(FaultReason::NotGiven));
        assert_eq!(bench.read(VF2, space, 0), Err(FaultReason::NotGiven));
    }
}

#[test]
fn cached_translation_is_used_until_invalidation() {
    proves!(
        V13_111,
        "a cached translation of a VF is used until the invalidation, a change of quota, or a switch to another \
        function"
    );
    let bench = MemoryBench::new();
    bench.provision(VF1, &[1, 2]);
    bench.provision(VF2, &[3, 4]);
    // Both have a table at the same guest address, which maps guest page 1 at address 0.
    for (frame, mark) in [(1, 0x100), (3, 0x300)] {
        bench.put(frame * FRAME, 0x1003);
        bench.put(frame * FRAME + 0x1000, 0x2003);
        bench.put(frame * FRAME + 0x2000, FRAME | 3 | DM | PS);
        bench.put(frame * FRAME + FRAME, mark);
    }
    let views = bench.memory.views();
    let mut tlb = Tlb::default();
    let mut read = |vf: Function| {
        bench.memory.gam(vf, &views, &mut tlb).read_u64(Space::Ppgtt(0), 0).map_err(|fault| fault.reason)
    };
    assert_eq!((read(VF1), read(VF2), read(VF1)), (Ok(0x100), Ok(0x300), Ok(0x100)));
    // A change of the LMTT takes effect after the invalidation.
    bench.grant(VF1, 1, Some(5));
    bench.put(5 * FRAME, 0x500);
    assert_eq!(read(VF1), Ok(0x100));
    bench.memory.invalidate(ALL_FUNCTIONS);
    assert_eq!(read(VF1), Ok(0x500));
    bench.memory.set_quota(VF1, FRAME);
    assert_eq!(read(VF1), Err(FaultReason::NotGiven));
}
