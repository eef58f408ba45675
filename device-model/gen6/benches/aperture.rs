// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses to the aperture a second, without a socket: reads and posted writes of 4 and 8 bytes, linear, through X and Y
//! fences, and with swizzling, in row order. A line for a register with stored bits is for comparison.
//!
//! The result of a line is the median of many short rounds that take turns, so that noise on the host affects all lines
//! equally. The last column relates it to linear accesses of the same kind.
#![allow(clippy::cast_possible_truncation, reason = "numbers are chosen by the benchmark")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arctic_base::gpu::{Gpu, Host};
use arctic_base::host::{Access, Dma, DmaView, Function, HostClock, NullHost};
use arctic_gen6::card::Card;
use arctic_gen6::profile::IntegratedProfile;
use vm_memory::mmap::MmapRegion;
use vm_memory::{VolatileMemory, VolatileSlice};

/// Size of the surface, and of the guest's memory behind it.
const SIZE: u64 = 4 << 20;
/// Accesses of a round.
const ACCESSES: u64 = 20_000;
const ROUNDS: usize = 101;

struct View(MmapRegion);

impl DmaView for View {
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        let at = usize::try_from(iova).ok()?;
        self.0.get_slice(at, len.min(self.0.size().checked_sub(at)?)).ok()
    }
}

struct Memory(Arc<View>);

impl Dma for Memory {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        self.0.clone()
    }
}

/// A card with the surface at address 0; `fence` is its register, and 31 further fences are behind the surface.
fn card(fence: u64, swizzled: u32) -> Arc<Card> {
    let profile: IntegratedProfile = toml::from_str(include_str!("../configs/ivb.toml")).expect("a card");
    let memory = Arc::new(Memory(Arc::new(View(MmapRegion::new(SIZE as usize).expect("memory")))));
    let host = Host { memory, interrupts: Arc::new(NullHost), clock: Arc::new(HostClock::default()) };
    let card = Card::power_on(&profile, host);
    let write = |at: u64, value: u64| card.write(Function::PF, 0, at, &value.to_le_bytes());
    let entry = |page: u64| page << 12 | 1;
    (0..SIZE >> 12).step_by(2).for_each(|page| write((2 << 20) + page * 4, entry(page) | entry(page + 1) << 32));
    card.write(Function::PF, 0, 0x10_1000, &swizzled.to_le_bytes());
    let others = (1..32).map(|number| (0x1000 + number) * 0x1000 | 1 | (0x1000 + number) << 44 | 3 << 32);
    for (at, fence) in (0x10_0000..).step_by(8).zip(std::iter::once(fence).chain(others)) {
        write(at, fence);
    }
    card
}

/// A kind of access, by BAR, bytes, and whether it is a write.
#[derive(Clone, Copy, PartialEq)]
struct Kind {
    bar: u8,
    bytes: usize,
    write: bool,
}

fn round(card: &Card, kind: Kind, round: u64) -> f64 {
    let begun = Instant::now();
    let mut data = [0x5a; 8];
    let data = &mut data[..kind.bytes];
    for n in 0..ACCESSES {
        // A register of the frequency, or the next bytes of the surface.
        let at = if kind.bar == 0 { 0xa010 } else { (round * ACCESSES + n) * kind.bytes as u64 % SIZE };
        match kind.write {
            true => card.write(Function::PF, kind.bar, at, data),
            false => card.read(Function::PF, kind.bar, at, data),
        }
        black_box(&data);
    }
    begun.elapsed().as_secs_f64() * 1e9 / ACCESSES as f64
}

fn main() {
    // A pitch of 4096 bytes: 31 units, minus 1. The last page is that of the surface.
    let fence = |walk: u64| ((SIZE >> 12) - 1) << 44 | 31 << 32 | walk << 1 | 1;
    let cards = [
        ("linear", card(0, 0)),
        ("X", card(fence(0), 0)),
        ("X, swizzled", card(fence(0), 1)),
        ("Y", card(fence(1), 0)),
        ("Y, swizzled", card(fence(1), 1)),
    ];
    let mut lines = vec![("register", &cards[0].1, Kind { bar: 0, bytes: 4, write: false }, Vec::new())];
    for (write, bytes) in [(false, 4), (false, 8), (true, 4), (true, 8)] {
        lines.extend(cards.iter().map(|(name, card)| (*name, card, Kind { bar: 2, bytes, write }, Vec::new())));
    }
    for number in 0..ROUNDS {
        for (_, card, kind, times) in &mut lines {
            times.push(round(card, *kind, number as u64));
        }
    }
    println!("{:<12} {:<6} bytes {:>8} {:>16} {:>10}", "layout", "access", "ns", "accesses/s", "to linear");
    let mut linear = 0.0;
    for (name, _, kind, times) in &mut lines {
        times.sort_by(f64::total_cmp);
        let median = times[ROUNDS / 2];
        if matches!(*name, "register" | "linear") {
            linear = median;
        }
        let access = if kind.write { "write" } else { "read" };
        let rate = 1e9 / median;
        println!("{name:<12} {access:<6} {:>5} {median:>8.1} {rate:>16.0} {:>10.2}", kind.bytes, median / linear);
    }
}
