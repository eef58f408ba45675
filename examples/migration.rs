// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Moves a virtual function to another card while its guest works, as a VMM with live migration does: it copies guest memory, copies
//! again what was changed meanwhile, stops the guest, saves the function, restores it on the other card, and resumes it.
//! `cargo run --release -p arctic-gpu --example migration`
//!
//! The guest is a thread with a driver of a few lines, which exchanges messages with the GuC through buffers in guest memory. A
//! VMM with KVM also copies the pages of `KVM_GET_DIRTY_LOG`, which the guest's processors have written; here both write the
//! same bitmap.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arctic_gpu::vm_memory::bitmap::AtomicBitmap;
use arctic_gpu::vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, MmapRegion};
use arctic_gpu::{
    Function, GuestRam, Machine, MsiSink, PciDevice, SavedDevice, StateError, Topology, VirtualCard, card_file,
};

/// Guest memory with a bit for each page that was written.
type Ram = GuestMemoryMmap<AtomicBitmap>;

const RAM_BYTES: usize = 16 << 20;
const PAGE: usize = 4096;
/// A copy that leaves so few pages is followed by the stop.
const FEW_PAGES: usize = 16;
/// Most copies of memory while the guest works.
const MOST_COPIES: u32 = 30;
/// Time that the function has to come to rest.
const PAUSE_LIMIT: Duration = Duration::from_secs(5);

/// The machine, which has no interrupts: the guest of this example polls.
struct Interrupts;

impl MsiSink for Interrupts {
    fn trigger(&self) {}
}

impl Machine for Interrupts {
    fn msi(&self, _: Function) -> io::Result<Arc<dyn MsiSink>> {
        Ok(Arc::new(Interrupts))
    }
}

/// A virtual machine with a virtual function, of a card on which no guest has the physical function.
struct Vm {
    card: VirtualCard,
    ram: Arc<Ram>,
}

impl Vm {
    fn new() -> Result<Vm, Box<dyn Error>> {
        let ram = Arc::new(Ram::from_ranges(&[(GuestAddress(0), RAM_BYTES)])?);
        let memory = GuestRam::new(ram.clone());
        let card = VirtualCard::builder(card_file::load("small")?)
            .vfs(1)
            .topology(Topology::Provisioned)
            .plug_into(Arc::new(Interrupts), memory)?;
        Ok(Vm { card, ram })
    }

    fn vf(&self) -> &dyn PciDevice {
        &**self.card.functions().last().expect("the card has a virtual function")
    }

    fn saved(&self) -> Result<&dyn SavedDevice, StateError> {
        self.vf().saved_device().ok_or(StateError::Unsupported("this function cannot be saved"))
    }

    /// The pages that were written since the last call.
    fn take_dirty(&self) -> Vec<usize> {
        let region = self.ram.iter().next().expect("the memory has a region");
        let bits = MmapRegion::bitmap(region).get_and_reset();
        // The card marks a page before it writes it: the write is there when the steps in progress have ended.
        self.card.memory_changed();
        let is_set = |page: &usize| bits[page / 64] >> (page % 64) & 1 != 0;
        (0..RAM_BYTES / PAGE).filter(is_set).collect()
    }

    fn copy_to(&self, target: &Vm, pages: &[usize]) -> Result<(), Box<dyn Error>> {
        let mut bytes = [0; PAGE];
        for page in pages {
            let at = GuestAddress((page * PAGE) as u64);
            self.ram.read_slice(&mut bytes, at)?;
            target.ram.write_slice(&bytes, at)?;
        }
        Ok(())
    }
}

/// The guest's driver: positions in its buffers.
struct Driver {
    tail: u32,
    head: u32,
    answers: u32,
}

impl Driver {
    const MAILBOX: u64 = 0x19_0240;
    const NOTIFY_GUC: u64 = 0x19_01f0;
    /// The window of the GGTT in the BAR with the registers.
    const GGTT: u64 = 8 << 20;
    /// Guest address of the buffers: both descriptors, the ring to the GuC, the ring from the GuC.
    const BUFFERS: u64 = 0x10_0000;
    const RING_DWORDS: u32 = 1024;
    const SUCCESS: u32 = 0xf;

    fn mail(vf: &dyn PciDevice, request: [u32; 4]) -> Result<[u32; 4], String> {
        for (n, dword) in (0..).zip(request) {
            vf.write_bar(0, Self::MAILBOX + n * 4, &dword.to_le_bytes());
        }
        vf.write_bar(0, Self::NOTIFY_GUC, &[1, 0, 0, 0]);
        let begin = Instant::now();
        while begin.elapsed() < PAUSE_LIMIT {
            let answer = [0, 4, 8, 12].map(|at| {
                let mut dword = [0; 4];
                vf.read_bar(0, Self::MAILBOX + at, &mut dword);
                u32::from_le_bytes(dword)
            });
            match answer[0] >> 28 {
                Self::SUCCESS => return Ok(answer),
                0..8 => std::thread::yield_now(),
                _ => break,
            }
        }
        Err(format!("the GuC does not answer to {request:x?}"))
    }

    /// Sets the buffers up, as a driver does at its start.
    fn start(vm: &Vm) -> Result<Driver, Box<dyn Error>> {
        let vf = vm.vf();
        // Memory space and bus mastering.
        vf.write_config(4, &[6, 0]);
        Self::mail(vf, [0x5507, 0, 0, 0])?;
        Self::mail(vf, [0x5500, 0x0001_1b00, 0, 0])?;
        let start = Self::mail(vf, [0x5509, 1, 0, 0])?[1];
        for page in 0..3 {
            let entry = Self::BUFFERS + page * PAGE as u64 | 1;
            vf.write_bar(0, Self::GGTT + (u64::from(start) / PAGE as u64 + page) * 8, &entry.to_le_bytes());
        }
        let at = |offset: u32| start + offset;
        for (key, value) in [(0x903_0002, at(0)), (0x902_0002, at(0x1000)), (0x904_0001, Self::RING_DWORDS * 4)] {
            Self::mail(vf, [0x508, key, value, 0])?;
        }
        for (key, value) in [(0x906_0002, at(0x800)), (0x905_0002, at(0x2000)), (0x907_0001, Self::RING_DWORDS * 4)] {
            Self::mail(vf, [0x508, key, value, 0])?;
        }
        Self::mail(vf, [0x4509, 1, 0, 0])?;
        Ok(Driver { tail: 0, head: 0, answers: 0 })
    }

    fn poke(vm: &Vm, offset: u32, value: u32) {
        vm.ram.write_obj(value, GuestAddress(Self::BUFFERS + u64::from(offset))).expect("the buffers are in memory");
    }

    fn peek(vm: &Vm, offset: u32) -> u32 {
        vm.ram.read_obj(GuestAddress(Self::BUFFERS + u64::from(offset))).expect("the buffers are in memory")
    }

    /// Sends a request, and reads the answer to it.
    fn exchange(&mut self, vm: &Vm) -> Result<(), String> {
        // UPDATE_SCHEDULING_POLICIES_KLV, with a fence in the upper half of the first dword.
        for dword in [0x0077_0004, 0x509, 0x1001_0002, 80, 20] {
            Self::poke(vm, 0x1000 + self.tail * 4, dword);
            self.tail = (self.tail + 1) % Self::RING_DWORDS;
        }
        Self::poke(vm, 4, self.tail);
        vm.vf().write_bar(0, Self::NOTIFY_GUC, &[1, 0, 0, 0]);
        let begin = Instant::now();
        while Self::peek(vm, 0x804) == self.head {
            if begin.elapsed() > PAUSE_LIMIT {
                return Err(format!("no answer after {} answers", self.answers));
            }
            std::thread::yield_now();
        }
        let header = Self::peek(vm, 0x2000 + self.head * 4);
        let answer = Self::peek(vm, 0x2000 + (self.head + 1) % Self::RING_DWORDS * 4);
        if (header >> 16, answer >> 28) != (0x77, Self::SUCCESS) {
            return Err(format!("the answer is {header:#x}, {answer:#x}"));
        }
        self.head = (self.head + 1 + (header & 0xff)) % Self::RING_DWORDS;
        Self::poke(vm, 0x800, self.head);
        self.answers += 1;
        Ok(())
    }
}

/// Moves the guest with its function. `work` lets the guest's processors run for a while.
fn migrate(
    source: &Vm,
    target: &Vm,
    mut work: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    // All of memory, then what has changed, until it is little.
    source.take_dirty();
    let mut pages: Vec<usize> = (0..RAM_BYTES / PAGE).collect();
    for _ in 0..MOST_COPIES {
        source.copy_to(target, &pages)?;
        work()?;
        pages = source.take_dirty();
        println!("{} pages were written during the copy", pages.len());
        if pages.len() <= FEW_PAGES {
            break;
        }
    }
    // The processors are stopped here. Then the function: afterwards, the card does not access guest memory.
    source.saved()?.pause(PAUSE_LIMIT)?;
    pages.extend(source.take_dirty());
    source.copy_to(target, &pages)?;
    let mut state = Vec::new();
    source.saved()?.save(&mut state)?;
    println!("the function has {} bytes of state", state.len());
    // On the other side: a function with the same quotas.
    target.saved()?.pause(PAUSE_LIMIT)?;
    target.saved()?.restore(&mut &state[..])?;
    target.saved()?.resume()?;
    // The processors start there. The source is powered off.
    source.vf().power_off();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let (source, target) = (Vm::new()?, Vm::new()?);
    let mut driver = Driver::start(&source)?;
    migrate(&source, &target, || {
        (0..1000).try_for_each(|_| driver.exchange(&source))?;
        Ok(())
    })?;
    let before = driver.answers;
    (0..1000).try_for_each(|_| driver.exchange(&target))?;
    println!("{before} answers before the move, {} after it", driver.answers - before);

    // What cannot be saved says why.
    let pf = VirtualCard::builder(card_file::load("small")?)
        .vfs(1)
        .plug_into(Arc::new(Interrupts), GuestRam::new(target.ram.clone()))?;
    let refused = pf.pf().saved_device().map(|device| device.pause(PAUSE_LIMIT));
    if let Some(Err(error)) = refused {
        println!("the physical function: {error}");
    }
    Ok(())
}
