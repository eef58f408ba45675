// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the fences by their registers, as a driver uses them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use arctic_base::gpu::WorkStatus;
use arctic_base::host::{Access, Dma, DmaFault, DmaView, ManualClock, NullHost};
use vm_memory::VolatileSlice;

use super::*;

/// Page of the GGTT at which the fence of the tests begins.
const FENCE: u64 = 4;

/// A card. Pages 0 to 15 of its GGTT map the guest's pages in reverse order.
fn mapped() -> Arc<Card> {
    let card = card();
    (0..16).for_each(|page| map(&card, page, 15 - page));
    card
}

fn map(card: &Card, page: u64, frame: u64) {
    write(card, 0, (2 << 20) + page * 4, u32::try_from(frame << 12 | 1).unwrap());
}

/// Writes fence 0 as the driver does (G67-062).
fn fence(card: &Card, low: u32, high: u32) {
    for (at, value) in [(0x10_0000, 0), (0x10_0004, high), (0x10_0000, low)] {
        write(card, 0, at, value);
        read(card, 0, 0x10_0000);
    }
}

/// An X fence of pages 4 to 7, 2 tiles wide.
fn x_fence(card: &Card) {
    fence(card, 0x4001, 0x7007);
}

/// Address of the second row of the fence, and the place of its first byte in a linear aperture.
const SECOND_ROW: u64 = FENCE * 0x1000 + 1024;
const SECOND_ROW_LINEAR: u64 = FENCE * 0x1000 + 512;

/// ILK-034, ILK-044, ILK-055: a fence is in front of the GGTT: pages that are mapped anew show other memory in the same
/// order. Without the fence, the aperture is linear.
#[test]
fn a_fence_is_in_front_of_the_entries() {
    proves!([ILK_034, ILK_044, ILK_055], "a fence is in front of the entries");
    let card = mapped();
    x_fence(&card);
    write(&card, 2, SECOND_ROW, 0x1111);
    // The tile in the second column: page 5.
    write(&card, 2, FENCE * 0x1000 + 512, 0x2222);
    fence(&card, 0, 0);
    assert_eq!([read(&card, 2, SECOND_ROW_LINEAR), read(&card, 2, 0x5000)], [0x1111, 0x2222]);
    x_fence(&card);
    assert_eq!([read(&card, 2, SECOND_ROW), read(&card, 2, FENCE * 0x1000 + 512)], [0x1111, 0x2222]);
    map(&card, 4, 15 - 5);
    map(&card, 5, 15 - 4);
    assert_eq!(read(&card, 2, FENCE * 0x1000), 0x2222);
    // 0x1111 is in what is now the tile of the second column.
    assert_eq!(read(&card, 2, FENCE * 0x1000 + 1024 + 512), 0x1111);
    // Page 15, behind the fence.
    write(&card, 2, 0xf400, 0x3333);
    assert_eq!(read(&card, 2, 0xf400), 0x3333);
    assert!(card.report().undone.is_empty() && card.report().unmodelled.is_empty());
}

/// An access across rows, and one across the end of the fence, byte by byte.
#[test]
fn an_access_across_a_boundary_is_split() {
    let card = mapped();
    x_fence(&card);
    // The last four bytes of the first row are in page 5, the next four in the second row of page 4.
    card.write(Function::PF, 2, SECOND_ROW - 4, &[1, 2, 3, 4, 5, 6, 7, 8]);
    card.write(Function::PF, 2, 0x7ffe, &[9, 10, 11, 12]);
    let mut data = [0; 8];
    card.read(Function::PF, 2, SECOND_ROW - 4, &mut data);
    assert_eq!(data, [1, 2, 3, 4, 5, 6, 7, 8]);
    fence(&card, 0, 0);
    assert_eq!([read(&card, 2, 0x51fc), read(&card, 2, SECOND_ROW_LINEAR)], [0x0403_0201, 0x0807_0605]);
    assert_eq!([read(&card, 2, 0x7ffc), read(&card, 2, 0x8000)], [0x0a09_0000, 0x0c0b]);
    // A page without an entry: its bytes alone read all ones.
    write(&card, 0, (2 << 20) + 8 * 4, 0);
    assert_eq!(read(&card, 2, 0x7ffe), 0xffff_0a09);
}

/// ILK-058: a fence is written in any width; the last of 32 fences is the last.
#[test]
fn fences_are_written_in_any_width() {
    proves!(ILK_058, "a fence is written in any width");
    let card = mapped();
    // The page of the second row once more, behind all fences.
    map(&card, 20, 15 - 4);
    let tiled = |card: &Card| {
        write(card, 2, 0x1_4000 | SECOND_ROW & 0xfff, 1);
        write(card, 2, 0x1_4000 | SECOND_ROW_LINEAR & 0xfff, 2);
        read(card, 2, SECOND_ROW) == 2
    };
    let value = |offset| card.gt().registers.value(offset);
    assert!(!tiled(&card));
    card.write(Function::PF, 0, 0x10_00f8, &0x0000_7007_0000_4001_u64.to_le_bytes());
    assert!(tiled(&card) && (value(0x10_00f8), value(0x10_00fc)) == (0x4001, 0x7007));
    card.write(Function::PF, 0, 0x10_00f8, &[0]);
    assert!(!tiled(&card) && value(0x10_00f8) == 0x4000);
    card.write(Function::PF, 0, 0x10_00f8, &[1]);
    assert!(tiled(&card));
    card.write(Function::PF, 0, 0x10_00fd, &[0x30]);
    assert!(!tiled(&card) && value(0x10_00fc) == 0x3007, "the fence ends before it begins");
    write(&card, 0, 0x10_0100, 0x4001);
    write(&card, 0, 0x10_0104, 0x7007);
    assert!(!tiled(&card), "there is no fence 32");
}

/// ILK-057: an engine's access to a fenced region is linear.
#[test]
fn engines_do_not_see_fences() {
    proves!(
        [ILK_045, ILK_057],
        "an engine's access to a fenced region is linear; it reads what the CPU wrote through the aperture"
    );
    let card = mapped();
    // A ring in page 1: MI_STORE_DATA_IMM to the GGTT.
    let store = [0x1040_0002, 0, u32::try_from(SECOND_ROW).unwrap(), 0xcafe];
    for (at, dword) in (0x1000..).step_by(4).zip(store) {
        write(&card, 2, at, dword);
    }
    x_fence(&card);
    for (register, value) in [(0x38, 0x1000), (0x3c, 1), (0x30, 16)] {
        write(&card, 0, 0x2_2000 + register, value);
    }
    while card.work() == WorkStatus::Busy {}
    assert_ne!(read(&card, 2, SECOND_ROW), 0xcafe);
    fence(&card, 0, 0);
    assert_eq!(read(&card, 2, SECOND_ROW), 0xcafe);
}

/// ILK-063, G67-113: fences, and the tiles that they show, survive a reset of the GT, and not one of the function.
#[test]
fn fences_survive_a_reset_of_the_gt() {
    proves!([ILK_063, ILK_175], "fences survive a reset of the GT, and not one of the function");
    let card = mapped();
    x_fence(&card);
    write(&card, 2, SECOND_ROW, 0x1234);
    for domains in [1, 2, 8] {
        write(&card, 0, 0x941c, domains);
    }
    write(&card, 2, SECOND_ROW_LINEAR, 0x5678);
    assert_eq!((read(&card, 2, SECOND_ROW), read(&card, 0, 0x10_0004)), (0x1234, 0x7007));
    card.reset(Function::PF);
    (0..16).for_each(|page| map(&card, page, 15 - page));
    assert_eq!((read(&card, 2, SECOND_ROW_LINEAR), read(&card, 0, 0x10_0000)), (0x1234, 0));
}

/// G67-064, G67-065: the driver compares the two channels of memory, and switches swizzling on if they are equal.
#[test]
fn swizzling_is_applied_after_the_driver_enables_it() {
    let channels = |card: &Card| [0x14_5004, 0x14_5008].map(|at| read(card, 0, at) & 0xffff);
    let [first, second] = channels(&card());
    assert_ne!(first, second);
    let mut profile = ivb();
    profile.swizzling = true;
    let memory = Arc::new(Guest::new(0, 0x1_0000));
    let host = Host { memory, interrupts: Arc::new(NullHost), clock: Arc::new(ManualClock::default()) };
    let card = Card::power_on(&profile, host);
    (0..16).for_each(|page| map(&card, page, page));
    assert_eq!(channels(&card), [first; 2]);
    x_fence(&card);
    write(&card, 2, SECOND_ROW, 0x1111);
    // intel_gt_init_swizzling.
    for (at, bit) in [(0x4_5000, 1 << 13), (0x10_1000, 1)] {
        write(&card, 0, at, read(&card, 0, at) | bit);
    }
    assert_eq!(read(&card, 2, SECOND_ROW + 64), 0x1111, "bit 6 of the second row is inverted");
    write(&card, 2, SECOND_ROW, 0x2222);
    fence(&card, 0, 0);
    assert_eq!(read(&card, 2, SECOND_ROW_LINEAR + 64), 0x2222);
    write(&card, 2, SECOND_ROW_LINEAR, 0x3333);
    assert_eq!(read(&card, 2, SECOND_ROW_LINEAR), 0x3333, "linear accesses are not swizzled");
}

/// IVB-010: bit 5 of ARB_MODE, a masked register, is what the engines follow.
#[test]
fn engines_swizzle_by_the_mode_of_the_arbiter() {
    proves!([IVB_002, IVB_010], "bit 5 of ARB_MODE, a masked register, is what the engines follow");
    let card = card();
    for (value, swizzled) in [(0x20, false), (0x0020_0020, true), (0x0010_0000, true), (0x0020_0000, false)] {
        write(&card, 0, 0x4030, value);
        assert_eq!(card.gt().engines_swizzle(), swizzled, "{value:#x}");
    }
}

/// Guest memory that is not mapped: a read waits until the test lets it continue, or has dropped the sender.
struct Slow {
    entered: Mutex<Sender<()>>,
    proceed: Mutex<Receiver<()>>,
}

impl DmaView for Slow {
    fn slice(&self, _: u64, _: usize, _: Access) -> Option<VolatileSlice<'_>> {
        None
    }

    fn read_remote(&self, _: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        let _ = self.entered.lock().unwrap().send(());
        let _ = self.proceed.lock().unwrap().recv();
        data.fill(1);
        Ok(())
    }
}

/// A host with one view as its memory.
struct OneView(Arc<Slow>);

impl Dma for OneView {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        self.0.clone()
    }
}

/// Checks that a write of `value` to the register at `offset` completes only when an access in progress has: `begin` makes
/// it, to page 4 of the GGTT.
fn completes_after(begin: impl FnOnce(&Card) + Send, offset: u64, value: u32) {
    let ((entered, has_entered), (proceed, may_proceed), (done, is_done)) = (channel(), channel(), channel());
    let memory = Arc::new(OneView(Arc::new(Slow { entered: entered.into(), proceed: may_proceed.into() })));
    let host = Host { memory, interrupts: Arc::new(NullHost), clock: Arc::new(ManualClock::default()) };
    let card = Card::power_on(&ivb(), host);
    map(&card, 4, 4);
    let proceeded = AtomicBool::new(false);
    thread::scope(|scope| {
        let access = scope.spawn(|| begin(&card));
        has_entered.recv().unwrap();
        scope.spawn(|| {
            write(&card, 0, offset, value);
            assert!(proceeded.load(Ordering::SeqCst));
            done.send(()).unwrap();
        });
        assert!(is_done.recv_timeout(Duration::from_millis(50)).is_err(), "{offset:#x}: the access has not ended");
        proceeded.store(true, Ordering::SeqCst);
        drop(proceed);
        access.join().unwrap();
        is_done.recv().unwrap();
    });
}

fn read_by_cpu(card: &Card) {
    assert_eq!(read(card, 2, 0x4000), 0x0101_0101);
}

/// A step of the copy engine that fetches its ring.
fn step(card: &Card) {
    for (offset, value) in [(0x38, 0x4000), (0x3c, 1), (0x30, 8)] {
        write(card, 0, 0x2_2000 + offset, value);
    }
    card.work();
}

/// ILK-062: a write of a fence is complete when the accesses by the previous one are.
#[test]
fn a_change_of_a_fence_waits_for_accesses() {
    proves!(ILK_062, "a write of a fence is complete when the accesses by the previous one are");
    completes_after(read_by_cpu, 0x10_0000, 0x4001);
}

/// IVB-177: the driver may use the memory of a page for something else afterwards.
#[test]
fn a_flush_of_the_aperture_waits_for_accesses_and_steps() {
    proves!(
        IVB_177,
        "a write of GFX_FLSH_CNTL is complete when accesses of CPUs and steps of engines by earlier entries are"
    );
    completes_after(read_by_cpu, 0x10_1008, 1);
    completes_after(step, 0x10_1008, 1);
}

/// An engine that has another step after each one, of a batch that starts itself, does not keep a CPU from completing.
#[test]
fn a_flush_of_the_aperture_waits_for_one_step_at_most() {
    let card = super::card();
    (1..5).for_each(|page| write(&card, 0, (2 << 20) + page * 4, u32::try_from(page << 12 | 1).unwrap()));
    for (at, dword) in [(0x1000, 0x1880_0000), (0x1004, 0x4000), (0x4000, 0x1880_0000), (0x4004, 0x4000)] {
        write(&card, 2, at, dword);
    }
    for (register, value) in [(0x38, 0x1000), (0x3c, 1), (0x30, 8)] {
        write(&card, 0, 0x2_2000 + register, value);
    }
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::SeqCst) {
                assert_eq!(card.work(), WorkStatus::Busy);
            }
        });
        (0..20).for_each(|_| write(&card, 0, 0x10_1008, 1));
        ended.store(true, Ordering::SeqCst);
    });
    card.work();
    assert_eq!(read(&card, 0, 0x2_2074), 0x4000, "still in the batch");
}

/// Operations of a CPU that invalidate translations of an engine are complete when no step uses them.
#[test]
fn an_invalidation_waits_for_the_step_of_the_engine() {
    proves!(
        [IVB_033, IVB_036],
        "a load of the page directory and a sync flush by a CPU are complete at the end of the engine's step"
    );
    completes_after(step, 0x2_2228, 0x0100_0000);
    completes_after(step, 0x2_2220, 1);
    completes_after(step, 0x2_20c0, 0x0020_0020);
}
