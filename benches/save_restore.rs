// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Time to save a virtual function with 256 MiB of local memory through the library, and to restore it, beside a plain copy of the
//! same bytes between the same kinds of memory with one pass of the checksum; then of one with no data.
//!
//! What is saved goes to a buffer whose pages exist; what is restored goes to a memory file without pages, as that of a new
//! function.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arctic_gpu::vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, MmapRegion, VolatileMemory};
use arctic_gpu::{GuestRam, PciDevice, SavedDevice, Topology, VirtualCard, card_file};
use arctic_test_support::null_machine::NullMachine;
use rustix::fs::{MemfdFlags, memfd_create};

const LOCAL: usize = 256 << 20;
/// Bytes beside the contents.
const REST: usize = 1 << 20;
const ROUNDS: usize = 9;
const LIMIT: Duration = Duration::from_secs(5);
/// Bytes that are copied at once.
const PIECE: usize = 64 << 10;

/// A card with one virtual function.
fn card() -> VirtualCard {
    let ram = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 20)]).expect("guest memory");
    let text = include_str!("../configs/small.toml");
    let text = format!("{text}\n[provision]\nlocal_memory = \"256MiB\"\n");
    let file = card_file::parse("small.toml", &text).expect("a card file");
    let ram = GuestRam::new(Arc::new(ram));
    let card = VirtualCard::builder(file)
        .vfs(1)
        .topology(Topology::Provisioned)
        .plug_into(Arc::new(NullMachine), ram)
        .expect("a card");
    vf(&card).write_config(4, &[6, 0]);
    card
}

fn vf(card: &VirtualCard) -> &dyn PciDevice {
    &**card.functions().last().expect("the virtual function")
}

fn saved(card: &VirtualCard) -> &dyn SavedDevice {
    vf(card).saved_device().expect("it can be saved")
}

/// The local memory as the VMM maps it.
fn local(card: &VirtualCard) -> MmapRegion {
    let part = vf(card).mappings(2)[0];
    let place = FileOffset::new(part.file.try_clone().expect("a descriptor"), part.file_offset);
    MmapRegion::from_file(place, LOCAL).expect("a mapping")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begin = Instant::now();
    let result = work();
    (begin.elapsed(), result)
}

/// A mapping of a memory file without pages.
fn fresh() -> MmapRegion {
    let file = File::from(memfd_create(c"copy", MemfdFlags::CLOEXEC).expect("a memory file"));
    file.set_len(LOCAL as u64).expect("a sparse file");
    MmapRegion::from_file(FileOffset::new(file, 0), LOCAL).expect("a mapping")
}

/// Times of saving and restoring, and bytes.
fn measure(source: &VirtualCard) -> (Duration, Duration, usize) {
    let mut buffer = vec![1; LOCAL + REST];
    let (mut saves, mut restores, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let mut left = &mut buffer[..];
        let (time, ()) = timed(|| saved(source).save(&mut left).expect("it is saved"));
        bytes = LOCAL + REST - left.len();
        saves.push(time);
        let target = card();
        saved(&target).pause(LIMIT).expect("it is paused");
        let (time, ()) = timed(|| saved(&target).restore(&mut &buffer[..bytes]).expect("it is restored"));
        restores.push(time);
    }
    (median(saves), median(restores), bytes)
}

fn main() {
    let source = card();
    let memory = local(&source);
    saved(&source).pause(LIMIT).expect("it is paused");
    let empty = measure(&source);
    let all = memory.as_volatile_slice();
    let random: Vec<u8> = (0..PIECE as u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[4]).collect();
    (0..LOCAL).step_by(PIECE).for_each(|at| all.subslice(at, PIECE).expect("a piece").copy_from(&random));
    let full = measure(&source);

    let mut buffer = vec![1; LOCAL];
    let to_buffer = (0..ROUNDS).map(|_| {
        let (time, sum) = timed(|| {
            all.copy_to(&mut buffer[..]);
            crc32c::crc32c(&buffer)
        });
        assert_ne!(sum, 0);
        time
    });
    let to_buffer = median(to_buffer.collect());
    let from_buffer = (0..ROUNDS).map(|_| {
        let target = fresh();
        let (time, sum) = timed(|| {
            target.as_volatile_slice().copy_from(&buffer[..]);
            crc32c::crc32c(&buffer)
        });
        assert_ne!(sum, 0);
        time
    });
    let from_buffer = median(from_buffer.collect());

    let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    println!("256 MiB       library   plain copy   ratio");
    println!("save        {:>9.1?} {:>12.1?} {:>7.2}", full.0, to_buffer, ratio(full.0, to_buffer));
    println!("restore     {:>9.1?} {:>12.1?} {:>7.2}", full.1, from_buffer, ratio(full.1, from_buffer));
    println!("{} bytes beside the contents", full.2 - LOCAL);
    println!("no data       library");
    println!("save        {:>9.1?}", empty.0);
    println!("restore     {:>9.1?}", empty.1);
    println!("{} bytes", empty.2);
}
