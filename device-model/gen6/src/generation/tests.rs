// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of what differs between the generations, on whole cards: each test has the expectations of both.

mod items;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arctic_base::gpu::{Gpu, Host, WorkStatus};
use arctic_base::host::{Function, InterruptSink, ManualClock};
use arctic_fidelity::{proves, proves_table};

use super::*;
use crate::card::Card;
use crate::guest::Guest;
use crate::profile::IntegratedProfile;
use crate::profile::tests::{ivb, snb};
use crate::registers::arbiter::{FAULT_SOURCE, SOURCE_WRITE};

/// Addresses in the GGTT, which maps page n to page n of the guest; the PPGTT maps page n to page n + 16.
const RING: u32 = 0x1000;
const STATUS: u32 = 0x2000;
const DATA: u32 = 0x5000;
const CONTEXTS: [u32; 2] = [0x6000, 0x8000];
const TABLE: u32 = 0xe000;
/// Offset of the PPGTT's pages in the guest.
const BEHIND: u32 = 0x1_0000;
/// Index of the page directory in the GGTT's table.
const DIRECTORY: u32 = 0x1000;

const RCS: u32 = 0x2000;
const VCS: u32 = 0x1_2000;
const BCS: u32 = 0x2_2000;

#[derive(Default)]
struct Counter(AtomicU32);

impl InterruptSink for Counter {
    fn raise(&self, _: Function, _: u16) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn set_line(&self, _: Function, _: bool) {}
}

struct GenerationBench {
    card: Arc<Card>,
    guest: Guest,
    sent: Arc<Counter>,
}

/// A card with the tables of both spaces; no ring is enabled.
fn bench(profile: &IntegratedProfile) -> GenerationBench {
    let (guest, sent) = (Guest::new(0, 0x2_0000), Arc::new(Counter::default()));
    let host =
        Host { memory: Arc::new(guest.clone()), interrupts: sent.clone(), clock: Arc::new(ManualClock::default()) };
    let bench = GenerationBench { card: Card::power_on(profile, host), guest, sent };
    let entry = |page: u32, value: u32| bench.write((2 << 20) + page * 4, value);
    (1..16).for_each(|page| entry(page, page << 12 | 1));
    entry(DIRECTORY, TABLE | 1);
    (0..16).for_each(|page| bench.put(TABLE + page * 4, (page + 16) << 12 | 1));
    bench.write(0x4_4014, 0);
    bench
}

/// Cards of both generations, for expectations in this order.
fn both() -> [GenerationBench; 2] {
    [bench(&snb()), bench(&ivb())]
}

impl GenerationBench {
    fn write(&self, offset: u32, value: u32) {
        self.card.write(Function::PF, 0, offset.into(), &value.to_le_bytes());
    }

    fn read(&self, offset: u32) -> u32 {
        let mut data = [0; 4];
        self.card.read(Function::PF, 0, offset.into(), &mut data);
        u32::from_le_bytes(data)
    }

    fn put(&self, at: u32, value: u32) {
        self.guest.put(at.into(), value);
    }

    fn get(&self, at: u32) -> u32 {
        self.guest.get(at.into())
    }

    fn work(&self) {
        while self.card.work() == WorkStatus::Busy {}
    }

    /// Starts the ring of the engine at `base` with the PPGTT's tables, and executes `commands` alone.
    fn run(&self, base: u32, commands: &[u32]) {
        // A ring that is not empty when it is disabled keeps the state of its engine (IVB-078).
        self.write(base + 0x30, self.read(base + 0x34) + 8);
        for (offset, value) in [(0x3c, 0), (0x34, 0), (0x30, 0), (0x38, RING), (0x220, !0), (0x228, DIRECTORY << 12)] {
            self.write(base + offset, value);
        }
        self.write(base + 0xa8, 0);
        self.write(base + 0x3c, 1);
        (RING..).step_by(4).zip(commands).for_each(|(at, command)| self.put(at, *command));
        let tail = u32::try_from(commands.len().next_multiple_of(2) * 4).unwrap();
        self.put(RING + tail - 4, if commands.len().is_multiple_of(2) { commands[commands.len() - 1] } else { 0 });
        self.write(base + 0x30, tail);
        self.work();
    }

    /// Executes a store to the PPGTT and returns the values in the GGTT and the PPGTT.
    fn store(&self, base: u32) -> (u32, u32) {
        self.put(DATA, 0);
        self.put(BEHIND + DATA, 0);
        self.run(base, &[0x1000_0002, 0, DATA, 7]);
        (self.get(DATA), self.get(BEHIND + DATA))
    }
}

/// ILK-003, ILK-012, G67-061: one register enables the PPGTT of all engines of Sandy Bridge; on Ivy Bridge each has its own.
/// While it is disabled, the GGTT is used.
#[test]
fn the_ppgtt_of_each_engine_is_enabled_by_its_register() {
    proves!(
        [ILK_003, ILK_012],
        "GFX_MODE enables the PPGTT: at 2520h for all engines of Sandy Bridge, at 29Ch of each engine of Ivy Bridge"
    );
    let (global, own) = ((7, 0), (0, 7));
    let enables = [&[0x2520][..], &[0x229c, 0x2_229c]];
    let enabled = [[own, own, own], [own, global, own]];
    let disabled_again = [[global, global, global], [global, global, own]];
    for (n, bench) in both().into_iter().enumerate() {
        let stores = || [RCS, VCS, BCS].map(|base| bench.store(base));
        assert_eq!(stores(), [global; 3], "disabled after a reset");
        enables[n].iter().for_each(|register| bench.write(*register, 0x0200_0200));
        assert_eq!(stores(), enabled[n]);
        bench.write(enables[n][0], 0x0200_0000);
        assert_eq!(stores(), disabled_again[n]);
    }
}

/// G67-076, ILK-088: the bit of PIPE_CONTROL that selects the GGTT is in the address dword on Sandy Bridge, in the flags on
/// Ivy Bridge.
#[test]
fn pipe_control_selects_the_space_by_the_bit_of_its_generation() {
    for (bench, [by_flag, by_address]) in both().into_iter().zip([[false, true], [true, false]]) {
        bench.write(0x2520, 0x0200_0200);
        bench.write(0x229c, 0x0200_0200);
        for (flags, address, global) in [(1 << 24, DATA, by_flag), (0, DATA | 4, by_address)] {
            bench.put(DATA, 0);
            bench.put(BEHIND + DATA, 0);
            bench.run(RCS, &[0x7a00_0002, 1 << 14 | flags, address, 9]);
            let expected = if global { (9, 0) } else { (0, 9) };
            assert_eq!((bench.get(DATA), bench.get(BEHIND + DATA)), expected, "{flags:#x} {address:#x}");
        }
    }
}

/// ILK-088: a batch without privilege writes to the GGTT with PIPE_CONTROL on Sandy Bridge only. With MI_FLUSH_DW and to the
/// status page it writes on neither.
#[test]
fn pipe_control_without_privilege_writes_to_the_ggtt_on_sandy_bridge() {
    for (bench, expected) in both().into_iter().zip([9, 0]) {
        bench.write(0x2520, 0x0200_0200);
        [0x229c, 0x2_229c].iter().for_each(|register| bench.write(*register, 0x0200_0200));
        let batch = |base: u32, commands: &[u32]| {
            (BEHIND + DATA + 0x100..).step_by(4).zip(commands).for_each(|(at, command)| bench.put(at, *command));
            bench.put(DATA, 0);
            bench.run(base, &[0x1880_0100, DATA + 0x100]);
            (bench.get(DATA), bench.get(BEHIND + DATA))
        };
        // Both fields that select the GGTT: each generation ignores that of the other.
        let flush = |flags: u32| batch(RCS, &[0x7a00_0002, 1 << 14 | 1 << 24 | flags, DATA | 4, 9, 0x0500_0000]);
        assert_eq!(flush(0), (expected, 0));
        bench.put(STATUS, 0);
        [0x4080, 0x1_4080].iter().for_each(|register| bench.write(*register, STATUS));
        flush(1 << 21);
        assert_eq!(bench.get(STATUS), 0);
        assert_eq!(batch(BCS, &[0x1300_4001, DATA | 4, 9, 0x0500_0000]), (0, 0), "MI_FLUSH_DW");
    }
}

/// G67-072, IVB-044, ILK-174: place and reset value of the registers with the addresses of the status pages.
#[test]
fn status_page_address_registers_set_the_status_pages() {
    let places = [[0x4080, 0x1_4080, 0x2_4080], [0x4080, 0x4180, 0x4280]];
    for ((bench, registers), reset) in both().into_iter().zip(places).zip([0x1fff_f000, 0]) {
        assert_eq!(registers.map(|register| bench.read(register)), [reset; 3]);
        for (base, register) in [RCS, VCS, BCS].into_iter().zip(registers) {
            bench.put(STATUS + 0x100, 0);
            bench.write(register, STATUS);
            bench.run(base, &[0x1080_0001, 0x100, base]);
            assert_eq!(bench.get(STATUS + 0x100), base, "{register:#x}");
            bench.write(register, 0x3000);
        }
    }
}

/// ILK-161, IVB-039: the fault registers of Sandy Bridge do not tell the type of a fault. The first fault stays until
/// software clears its valid bit, which clears the other fields.
#[test]
fn the_first_fault_stays_until_its_valid_bit_is_cleared() {
    for (bench, kind) in both().into_iter().zip([0, 1 << 1]) {
        bench.write(0x2520, 0x0200_0200);
        bench.write(0x2_229c, 0x0200_0200);
        // The directory has no second entry.
        let store = |address: u32| bench.run(BCS, &[0x1000_0002, 0, address, 7]);
        store(0x40_1000);
        store(0x40_2000);
        let kind = kind | FAULT_SOURCE.of(SOURCE_WRITE);
        assert_eq!(bench.read(0x4294), 0x40_1000 | kind | 1);
        bench.write(0x4294, bench.read(0x4294));
        assert_eq!(bench.read(0x4294), 0x40_1000 | kind | 1, "locked");
        bench.write(0x4294, 0x40_1000 | kind);
        assert_eq!(bench.read(0x4294), 0);
        store(0x40_3000);
        assert_eq!(bench.read(0x4294), 0x40_3000 | kind | 1);
        assert_eq!((bench.read(0x4094), bench.read(0x4194)), (0, 0), "of other engines");
    }
}

/// G67-078: the driver's sequence for a new tail of the video engine of Sandy Bridge: the engine does not sleep while its
/// messages are disabled, and sleeps when it is idle and they are enabled again.
#[test]
fn the_video_engine_wakes_for_a_new_tail() {
    let bench = bench(&snb());
    let asleep = || bench.read(VCS + 0x50) >> 3 & 1 != 0;
    assert!(asleep(), "idle after a reset");
    bench.write(VCS + 0x50, 0x0001_0001);
    bench.card.write(Function::PF, 0, (VCS + 0x198).into(), &[0; 8]);
    assert!(!asleep());
    bench.write(0x4_401c, 1 << 12);
    bench.write(0x4_400c, 1 << 31);
    bench.write(0x1_4080, STATUS);
    bench.run(VCS, &[0x1324_4001, 0x104, 0x77, 0x0100_0000]);
    assert_eq!((bench.get(STATUS + 0x100), bench.read(0x4_4018)), (0x77, 1 << 12));
    assert_eq!(bench.sent.0.load(Ordering::SeqCst), 1, "the MSI of the user interrupt");
    assert!(!asleep());
    bench.write(VCS + 0x50, 0x0001_0000);
    assert!(asleep());
    bench.write(VCS + 0x50, 0x0008_0000);
    assert!(asleep(), "read-only");
    // With work and the parser running, the engine is awake by itself.
    bench.write(VCS + 0x30, 0x100);
    assert!(!asleep());
    assert_eq!(bench.card.report().unmodelled.len(), 0);
}

/// ILK-019..022: the page directory is read through an index and a data register, without entries that PP_DCLV excludes;
/// base and groups have read-only copies.
#[test]
fn the_page_directory_of_sandy_bridge_can_be_read() {
    proves!(
        [ILK_019, ILK_020, ILK_021, ILK_022],
        "PP_DCIR has the index of the entry of the page directory that PP_DCDR has, with its address and valid bit; \
         PP_DIR_BASE and PP_DCLV, which software loads, are read at 2518h and 2508h"
    );
    let bench = bench(&snb());
    assert_eq!([0x2220, 0x2508, 0x250c].map(|at| bench.read(at)), [!0; 3], "all groups after a reset");
    bench.write((2 << 20) + (DIRECTORY + 17) * 4, 0xabcd_e125);
    bench.write(0x2228, DIRECTORY << 12);
    bench.write(0x2518, 0);
    assert_eq!(bench.read(0x2518), DIRECTORY << 12);
    let entry = |index: u32| {
        bench.write(0x2500, index << 2 | 0xf000_0003);
        assert_eq!(bench.read(0x2500), index << 2, "the index alone is stored");
        bench.read(0x2504)
    };
    assert_eq!([0, 17, 18, 512, 1023].map(entry), [TABLE | 1, 0xabcd_e021, 0, 0, 0]);
    bench.write(0x2220, 1);
    assert_eq!((bench.read(0x2508), [0, 17].map(entry)), (1, [TABLE | 1, 0]));
}

/// ILK-027..029: the read ports of the TLBs have their extent, without gaps. Those of the command streamer show its
/// translations while they are in use; the other units do not exist, and theirs read 0.
#[test]
fn the_ports_of_the_tlbs_show_translations_in_use() {
    proves!(
        [ILK_027, ILK_029],
        "the six ports of the command streamer from 0xB200 on show the pages that it has translated last, with the GGTT's \
         marked, until they are invalidated; the others up to the extent in 0x251C read 0"
    );
    proves_table!(ILK_028, "the extent of the read ports is 0x780 bytes");
    let bench = bench(&snb());
    let extent = bench.read(0x251c);
    assert_eq!(extent, 0x780);
    let ports = || (0xb000..0xb000 + extent).step_by(4).map(|at| (at, bench.read(at)));
    let shown = || ports().filter(|(_, page)| *page != 0).collect::<Vec<_>>();
    assert_eq!(shown(), []);
    bench.write(0x2520, 0x0200_0200);
    let stores =
        |pages: std::ops::Range<u32>| pages.flat_map(|page| [0x1000_0002, 0, page << 12, 7]).collect::<Vec<_>>();
    bench.run(RCS, &stores(4..6));
    let pages = |pages: &[u32]| (0xb200..).step_by(4).zip(pages.iter().copied()).collect::<Vec<_>>();
    assert_eq!(shown(), pages(&[RING | 3, 0x4001, 0x5001]), "the ring is in the GGTT");
    // Of other engines nothing is shown.
    bench.run(BCS, &stores(7..8));
    assert_eq!(shown().len(), 3);
    bench.run(RCS, &stores(6..14));
    assert_eq!(shown(), pages(&[0xb001, RING | 3, 0xc001, 0xd001, 0x9001, 0xa001]), "the latest six");
    bench.write(0xb200, 0);
    assert_eq!(bench.read(0xb200), 0xb001, "read-only");
    // The load of the directory in `run` has invalidated, and so does a command. An invalid page is not shown.
    bench.run(RCS, &[&stores(4..5)[..], &[0x7a00_0002, 1 << 18, 0, 0], &stores(0x4000..0x4001)].concat());
    assert_eq!(shown(), pages(&[RING | 3]));
    // A write of an entry invalidates the pages of the GGTT.
    bench.run(RCS, &stores(4..5));
    assert_eq!(shown().len(), 2);
    bench.write((2 << 20) + 15 * 4, 0xf001);
    assert_eq!(shown().iter().map(|(_, page)| *page).collect::<Vec<_>>(), [0x4001]);
    bench.write(0x2220, 1);
    assert_eq!(shown(), []);
    assert!(bench.card.report().unmodelled.is_empty());
    bench.read(0xb000 + extent);
    assert_eq!(bench.card.report().unmodelled.len(), 1);
}

/// ILK-030, ILK-031: the mirror of the memory controller's registers is read by CPUs in any width; commands store 0.
#[test]
fn commands_cannot_read_the_memory_controller() {
    for bench in both() {
        let mut data = [0; 8];
        bench.card.read(Function::PF, 0, 0x14_5004, &mut data);
        let words = u64::from_le_bytes(data);
        assert_eq!(words, u64::from(bench.read(0x14_5008)) << 32 | u64::from(bench.read(0x14_5004)));
        assert_ne!(words, 0);
        let mut half = [0; 2];
        bench.card.read(Function::PF, 0, 0x14_5d12, &mut half);
        assert_eq!(u32::from(u16::from_le_bytes(half)), bench.read(0x14_5d10) >> 16);
        bench.put(DATA, 5);
        bench.run(RCS, &[0x1240_0001, 0x14_5004, DATA, 0x1100_0001, 0x14_5004, 1]);
        assert_eq!((bench.get(DATA), bench.read(0x14_5004)), (0, bench.card.gt().registers.reset_value(0x14_5004)));
    }
}

/// G67-120: MI_LOAD_REGISTER_MEM is an instruction error on Sandy Bridge.
#[test]
fn a_command_of_the_next_generation_is_an_error() {
    for (bench, expected) in both().into_iter().zip([(0, 1), (0x77, 0)]) {
        bench.put(DATA, 0x77);
        bench.write(RCS + 0xb4, 0xfe);
        bench.run(RCS, &[0x14c0_0001, 0x2310, DATA]);
        assert_eq!((bench.read(0x2310), bench.read(RCS + 0xb0)), expected);
    }
}

/// ILK-163, ILK-167, ILK-168, ILK-170: contexts keep the cache mode, the arbitration state and the statistics; the image is
/// a list of register loads.
#[test]
fn contexts_of_sandy_bridge_keep_their_registers() {
    let bench = bench(&snb());
    let switch = |context: u32, flags: u32| bench.run(RCS, &[0x0c00_0000, context | 0x100 | flags]);
    let values = || [0x2120, 0x20e4, 0x2310].map(|at| bench.read(at));
    let set = |value: u32| [0x2120, 0x20e4, 0x2310].map(|at| bench.write(at, 0xffff_0000 | value));
    switch(CONTEXTS[0], 1);
    set(0x11);
    bench.write(0x20d0, 0x0200_0200);
    switch(CONTEXTS[1], 1);
    assert_eq!(bench.get(CONTEXTS[0] + 4) >> 23, 0x22, "MI_LOAD_REGISTER_IMM");
    assert_eq!(values()[0], 0x11, "the restore was inhibited");
    set(0x22);
    switch(CONTEXTS[0], 0);
    assert_eq!(values(), [0x11, 0x11, 0xffff_0011]);
    switch(CONTEXTS[1], 0);
    assert_eq!((values(), bench.read(0x20d0)), ([0x22, 0x22, 0xffff_0022], 0x200));
}

/// G67-090: a context has the size that the driver derives from CXT_SIZE, and the registers of contexts fit into it.
#[test]
fn the_image_of_a_context_has_its_size() {
    let lines = |value: u32, fields: &[(u32, u32)]| -> u32 { fields.iter().map(|(at, mask)| value >> at & mask).sum() };
    for (profile, register, fields) in
        [(snb(), 0x21a0, &[(18, 0x3f), (6, 0x3f), (0, 0x3f)][..]), (ivb(), 0x21a8, &[(9, 0x7f), (0, 0x3f)])]
    {
        let registers = profile.registers();
        let bytes = lines(registers.value(register), fields) * 64;
        assert_eq!(profile.generation.context_bytes, usize::try_from(bytes).unwrap());
        assert!(profile.generation.context_bytes <= LARGEST_CONTEXT);
        let context = registers.listing().filter(|(_, found)| found.register.scope.of_contexts()).count();
        assert!(context > 10 && context * 8 + 64 <= profile.generation.context_bytes, "{context} registers");
    }
}

/// G67-031, G67-032, G67-061, G67-070: registers that one generation has and the other does not.
#[test]
fn registers_of_one_generation_are_unmodelled_in_the_other() {
    let only = [
        &[0x2084, 0x20d0, 0x2120, 0x21a0, 0x2518, 0x2520, 0x1_2198, 0x1_4080, 0x7_00c0, 0x7_3180][..],
        &[0x2048, 0x21a8, 0x2418, 0x4180, 0x7000, 0x9424, 0xe100, 0xa188, 0x13_0040, 0x4_4040, 0x7_2008, 0x10_0080][..],
    ];
    for (n, bench) in both().into_iter().enumerate() {
        let has = |offset: &u32| bench.card.gt().registers.decode(*offset).is_some();
        assert!(only[n].iter().all(has), "{n}");
        assert!(!only[1 - n].iter().any(has), "{n}");
        let shared =
            [0x2090, 0x2358, 0x4030, 0x4094, 0x4_4050, 0xa18c, 0x13_0090, 0x10_0000, 0x13_8110, 0x4_400c, 0xc_5104];
        assert!(shared.iter().all(has), "{n}");
        // G67-031, G67-032: a request with the mask of the other kind is acknowledged at once.
        bench.write(0xa18c, 0x0001_0001);
        assert_eq!(bench.read(0x13_0090), 1);
        bench.write(0xa18c, 0x0001_0000);
        assert_eq!(bench.read(0x13_0090), 0);
    }
}
