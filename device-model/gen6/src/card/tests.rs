// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of accesses to the BARs, and of the PCI function.

mod aperture;
mod configuration;
mod inspect;
mod saved;

use arctic_base::gpu::{Gpu, Model, WorkStatus};
use arctic_base::host::{Function, ManualClock, NullHost};
use arctic_fidelity::proves;

use super::*;
use crate::guest::Guest;
use crate::profile::tests::ivb;

fn card() -> Arc<Card> {
    let memory = Arc::new(Guest::new(0, 0x1_0000));
    Card::power_on(&ivb(), Host { memory, interrupts: Arc::new(NullHost), clock: Arc::new(ManualClock::default()) })
}

fn read(card: &Card, bar: u8, offset: u64) -> u32 {
    let mut data = [0; 4];
    card.read(Function::PF, bar, offset, &mut data);
    u32::from_le_bytes(data)
}

fn write(card: &Card, bar: u8, offset: u64, value: u32) {
    card.write(Function::PF, bar, offset, &value.to_le_bytes());
}

/// G67-001..007: identity, class, BARs, and the size of the table in GGC.
#[test]
fn configuration_space_is_as_the_driver_expects() {
    proves!(
        [IVB_001, ILK_046, ILK_091, ILK_095],
        "registers and entries are in BAR 0, the aperture in BAR 2; no BAR has local memory"
    );
    let ivb = ivb();
    let function = ivb.physical_function(0).unwrap();
    let dword = |offset| {
        let mut data = [0; 4];
        function.read_config(offset, &mut data);
        u32::from_le_bytes(data)
    };
    assert_eq!((dword(0), dword(8), dword(0x50) & 0xffff, dword(0x5c)), (0x0162_8086, 0x0300_0009, 0x101, 0));
    let bars: Vec<_> = function.bars().iter().map(|bar| (bar.index(), bar.size())).collect();
    assert_eq!(bars, [(0, 4 << 20), (2, 256 << 20), (4, 64)]);
    assert_eq!(function.config_bytes(), 256, "conventional");
    assert_eq!(dword(0x3c) >> 8 & 0xff, 1, "INTA# (G67-004)");
    assert!(ivb.virtual_function().is_err() && ivb.total_vfs() == 0);
}

/// Registers are accessed in any width; a write of some bytes keeps the others.
#[test]
fn registers_have_bytes() {
    proves!([IVB_001, IVB_005], "registers are accessed as dwords, as two dwords, and in parts");
    let card = card();
    write(&card, 0, 0xa010, 0x1122_3344);
    card.write(Function::PF, 0, 0xa011, &[0xaa, 0xbb]);
    assert_eq!(read(&card, 0, 0xa010), 0x11bb_aa44);
    // Without the selecting half, nothing is written.
    card.write(Function::PF, 0, 0x7004, &[0xff, 0xff]);
    assert_eq!(read(&card, 0, 0x7004), 0x180);
    // Read-only.
    write(&card, 0, 0x40b0, 0);
    assert_eq!(read(&card, 0, 0x40b0), !0);
    card.write(Function::PF, 0, 0xa068, &0x1_0000_0002_u64.to_le_bytes());
    let mut data = [0; 8];
    card.read(Function::PF, 0, 0xa068, &mut data);
    assert_eq!(u64::from_le_bytes(data), 0x1_0000_0002);
}

/// G67-055, G67-068: the aperture follows the entries at each access; without one it reads all ones.
#[test]
fn the_aperture_follows_the_entries() {
    proves!(
        [ILK_004, ILK_034, ILK_071, ILK_072],
        "an entry that is written through its place in BAR 0 is what the aperture follows"
    );
    let card = card();
    assert_eq!(read(&card, 2, 0x3000), u32::MAX);
    write(&card, 0, (2 << 20) + 3 * 4, 0x2001);
    write(&card, 2, 0x3010, 0xcafe);
    assert_eq!(read(&card, 2, 0x3010), 0xcafe);
    write(&card, 0, (2 << 20) + 7 * 4, 0x2001);
    assert_eq!(read(&card, 2, 0x7010), 0xcafe, "the same page");
    assert_eq!(read(&card, 0, (2 << 20) + 3 * 4), 0x2001);
    write(&card, 0, (2 << 20) + 3 * 4, 0x5001);
    assert_eq!(read(&card, 2, 0x3010), 0);
    card.reset(Function::PF);
    assert_eq!((read(&card, 2, 0x7010), read(&card, 4, 0)), (u32::MAX, u32::MAX));
}

#[test]
fn kinds_of_accesses_are_counted_apart() {
    let card = card();
    let name = |bar, offset, write| card.access_kind(bar, offset, write).map(|kind| card.access_kinds()[kind]);
    assert_eq!([name(0, 0, false), name(0, 0, true)], [Some("register_reads"), Some("register_writes")]);
    assert_eq!([name(0, 2 << 20, false), name(0, 2 << 20, true)], [Some("ggtt"); 2]);
    assert_eq!([name(2, 0, false), name(2, 0, true)], [Some("aperture_reads"), Some("aperture_writes")]);
    assert_eq!(name(4, 0, true), None);
}

/// A request on the card: a stop of the parser keeps the position, a full reset ends an endless batch.
#[test]
fn workers_execute_rings_until_they_are_stopped_or_reset() {
    let card = card();
    for page in 1..8 {
        write(&card, 0, (2 << 20) + page * 4, u32::try_from(page << 12 | 1).unwrap());
    }
    // A batch in the GGTT that starts itself.
    for (at, dword) in [(0x1000, 0x1880_0000), (0x1004, 0x4000), (0x4000, 0x1880_0000), (0x4004, 0x4000)] {
        write(&card, 2, at, dword);
    }
    for (register, value) in [(0x38, 0x1000), (0x3c, 1), (0x30, 8)] {
        write(&card, 0, 0x2_2000 + register, value);
    }
    assert_eq!((card.work(), card.work()), (WorkStatus::Busy, WorkStatus::Busy));
    assert_eq!((read(&card, 0, 0x2_209c), read(&card, 0, 0x2_2074)), (0, 0x4000), "busy in the batch");
    let executing: Vec<_> = card.status().engines.iter().map(|engine| engine.function.is_some()).collect();
    assert_eq!(executing, [false, false, true]);
    write(&card, 0, 0x2_209c, 0x0100_0100);
    assert_eq!((card.work(), read(&card, 0, 0x2_209c) >> 9 & 1), (WorkStatus::Idle(None), 1));
    write(&card, 0, 0x2_209c, 0x0100_0000);
    assert_eq!(card.work(), WorkStatus::Busy);
    write(&card, 0, 0x941c, 1 << 3);
    assert_eq!((card.work(), read(&card, 0, 0x2_203c)), (WorkStatus::Idle(None), 0));
    // The ring begins at its head, not in the batch.
    write(&card, 2, 0x1000, 0x0040_0055);
    write(&card, 2, 0x1004, 0);
    for (register, value) in [(0x38, 0x1000), (0x3c, 1), (0x30, 8)] {
        write(&card, 0, 0x2_2000 + register, value);
    }
    assert_eq!((card.work(), card.work()), (WorkStatus::Busy, WorkStatus::Idle(None)));
    assert_eq!((read(&card, 0, 0x2_2094), read(&card, 0, 0x2_2034)), (0x55, 8));
    card.quiesce();
}

/// An engine is busy from the write of its tail until its step has executed the last command, while a command waits, and until
/// a reset; not while its parser is stopped.
#[test]
fn busy_time_is_that_of_commands() {
    let clock = Arc::new(ManualClock::default());
    let host = Host {
        memory: Arc::new(Guest::new(0, 0x1_0000)),
        interrupts: Arc::new(NullHost),
        clock: Arc::clone(&clock) as _,
    };
    let card = Card::power_on(&ivb(), host);
    let time = || card.status().functions[0].engine_time_ns.as_ref().unwrap().get("copy").copied();
    for page in 1..8 {
        write(&card, 0, (2 << 20) + page * 4, u32::try_from(page << 12 | 1).unwrap());
    }
    // MI_NOOP, a load of the batch that starts itself.
    for (at, dword) in
        [(0x1000, 0), (0x1004, 0), (0x1008, 0x1880_0000), (0x100c, 0x4000), (0x4000, 0x1880_0000), (0x4004, 0x4000)]
    {
        write(&card, 2, at, dword);
    }
    for (register, value) in [(0x38, 0x1000), (0x3c, 1)] {
        write(&card, 0, 0x2_2000 + register, value);
    }
    clock.advance(500);
    assert_eq!(time(), None, "an empty ring");
    write(&card, 0, 0x2_2030, 8);
    clock.advance(1000);
    assert_eq!(time(), Some(1000), "a command that has not been executed");
    while card.work() == WorkStatus::Busy {}
    clock.advance(100);
    assert_eq!(time(), Some(1000), "all commands have been executed");
    write(&card, 0, 0x2_2030, 16);
    assert_eq!(card.work(), WorkStatus::Busy);
    clock.advance(20);
    assert_eq!(time(), Some(1020), "a batch without an end");
    write(&card, 0, 0x2_209c, 0x0100_0100);
    clock.advance(100);
    assert_eq!(time(), Some(1020), "a parser that is stopped");
    write(&card, 0, 0x2_209c, 0x0100_0000);
    clock.advance(3);
    write(&card, 0, 0x941c, 1 << 3);
    clock.advance(100);
    assert_eq!(time(), Some(1023), "a reset");
    let engines: Vec<_> = card.status().engines.into_iter().map(|engine| engine.time_ns.unwrap()).collect();
    assert_eq!(engines, [[].into(), [].into(), [(0, 1023)].into()]);
}

/// Counts MSIs, and has the level of the pin.
#[derive(Default)]
struct Counter(std::sync::atomic::AtomicU32, std::sync::atomic::AtomicBool);

impl arctic_base::host::InterruptSink for Counter {
    fn raise(&self, _: Function, _: u16) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }

    fn set_line(&self, _: Function, requested: bool) {
        self.1.store(requested, std::sync::atomic::Ordering::SeqCst);
    }
}

/// G67-071, G67-074: the driver starts the render ring and submits a request with a change of context and a batch of user
/// space; its handler finds the user interrupt after the MSI (G67-047, G67-048), or while INTA# is asserted.
#[test]
fn a_request_of_the_driver_completes_with_an_msi() {
    proves!(ILK_094, "a request by registers, command stream and interrupt");
    const RING: u32 = 0x1000;
    const STATUS: u32 = 0x2000;
    const SCRATCH: u32 = 0x3000;
    const CONTEXT: u32 = 0x4000;
    const BATCH: u32 = 0x1_0000;
    let memory = Arc::new(Guest::new(0, 0x1_0000));
    let interrupts = Arc::new(Counter::default());
    let host = Host { memory, interrupts: interrupts.clone(), clock: Arc::new(ManualClock::default()) };
    let card = Card::power_on(&ivb(), host);
    let write = |offset: u32, value: u32| write(&card, 0, offset.into(), value);
    let read = |offset: u32| read(&card, 0, offset.into());
    let put = |address: u32, dwords: &[u32]| {
        let bytes: Vec<u8> = dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        for (at, part) in (address..).step_by(8).zip(bytes.chunks(8)) {
            card.write(Function::PF, 2, at.into(), part);
        }
    };
    // The GGTT maps the guest's pages in place; one page table, in the guest's page 8, maps the batch to its page 9.
    for page in 1..10 {
        write((2 << 20) + page * 4, page << 12 | 0b101);
    }
    write((2 << 20) + 0x8000 * 4, 0x8000 | 1);
    put(0x8000 + (BATCH >> 12) * 4, &[0x9000 | 0b101]);
    put(0x9000, &[0x1000_0002, 0, BATCH + 0x800, 0xcafe, 0x7805_0000, 0, 0x0500_0000, 0]);
    // Interrupts as after their installation.
    for (offset, value) in [(0x4_4014, !0x1), (0x4_401c, 0x0040_1021), (0x4_400c, 1 << 31), (0x20a8, !0x21)] {
        write(offset, value);
    }
    // The start of the ring.
    write(0x209c, 0x0100_0100);
    assert_eq!(read(0x209c) >> 9 & 1, 1, "idle");
    write(0x2034, read(0x2030));
    for (offset, value) in
        [(0x203c, 0), (0x2034, 0), (0x2030, 0), (0x4080, STATUS), (0x2098, !0), (0x20c0, 0x0220_0220)]
    {
        write(offset, value);
    }
    assert_eq!((read(0x2034), read(0x20c0) >> 5 & 1), (0, 0));
    for (offset, value) in
        [(0x2038, RING), (0x2220, !0), (0x2228, 0x0800_0000), (0x229c, 0x0200_0200), (0x2034, 0), (0x203c, 0x1)]
    {
        write(offset, value);
    }
    assert_eq!((read(0x203c) & 1, read(0x2034)), (1, 0));
    write(0x209c, 0x0100_0000);
    // The request.
    let flush = |flags: u32, address: u32, data: u32| [0x7a00_0002, 1 << 24 | 1 << 20 | 1 << 14 | flags, address, data];
    let mut request = flush(0x1c, SCRATCH, 0).to_vec();
    request.extend([0x1100_0001, 0x2220, !0, 0x1100_0001, 0x2228, 0x0800_0000, 0x1240_0001, 0x2228, SCRATCH]);
    request.extend([0x1100_0001, 0x20c0, 0x0200_0200]);
    request.extend([0x0400_0000, 0, 0x0c00_0000, CONTEXT | 0x10d, 0, 0x0400_0001]);
    request.extend([0x1880_0100, BATCH]);
    request.extend(flush(0x1020, STATUS + 0x100, 7));
    request.extend([0x0100_0000, 0]);
    if !request.len().is_multiple_of(2) {
        request.push(0);
    }
    put(RING, &request);
    let tail = u32::try_from(request.len() * 4).unwrap();
    write(0x2030, tail);
    while card.work() == arctic_base::gpu::WorkStatus::Busy {}
    let aperture = |at: u32| self::read(&card, 2, at.into());
    assert_eq!((aperture(STATUS + 0x100), aperture(0x9800)), (7, 0xcafe), "seqno and the store of the batch");
    assert_eq!((aperture(SCRATCH), read(0x2180)), (0x0800_0000, CONTEXT | 0x10d));
    assert_eq!((read(0x2034), read(0x209c) >> 9 & 1), (tail, 1));
    let sent = || interrupts.0.load(std::sync::atomic::Ordering::SeqCst);
    let pin = || interrupts.1.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!((sent(), pin(), read(0x4_4018)), (1, true, 1));
    // The handler.
    write(0x4_400c, 0);
    assert!(!pin(), "the master enable");
    write(0x4_4018, 1);
    write(0x4_400c, 1 << 31);
    assert_eq!((sent(), pin(), read(0x4_4018)), (1, false, 0));
    assert_eq!(card.report().skipped_commands.len(), 1, "the 3D command of the batch");
    assert!(card.report().unmodelled.is_empty());
}
