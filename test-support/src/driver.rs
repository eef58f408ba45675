// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Drivers that submit work through the GuC, for the functions of a card in the same process.

use std::sync::atomic::Ordering;

use arctic_device_model::card::{Card, GGTT_WINDOW};
use arctic_device_model::host::Function;
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::topology::EngineClass;
use vm_memory::Bytes;

use crate::context::{self, Context};
use crate::ct::{self, Rings};
use crate::mi::{self, At, Global, Process};

/// Number of contexts. Each has an image and a ring for each of its four members, and one batch.
pub const CONTEXTS: u32 = 16;

/// Locations of a driver's data structures, as GGTT addresses or as offsets in the driver's memory.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// CT buffers: the descriptors, followed by both rings.
    pub ctb: u64,
    /// Context images, 16 KiB for each of the four members of a context.
    pub images: u64,
    /// Context rings, one page for each member.
    pub rings: u64,
    /// Context batches, one page each; the PPGTT maps them at the same addresses.
    pub batches: u64,
    /// Page tables.
    pub tables: u64,
    /// Work queues.
    pub queues: u64,
    /// Memory for results.
    pub scratch: u64,
    /// Mapped guest memory.
    pub ram: u64,
    /// Guest memory that is accessed by messages.
    pub remote: u64,
    /// Guest memory with a mapping that ends within a dword.
    pub odd: u64,
}

impl Places {
    /// Converts offsets in a driver's memory to addresses, for memory that is mapped at `base`.
    pub const fn at(self, base: u64) -> Self {
        Places {
            ctb: base + self.ctb,
            images: base + self.images,
            rings: base + self.rings,
            batches: base + self.batches,
            tables: base + self.tables,
            queues: base + self.queues,
            scratch: base + self.scratch,
            ram: base + self.ram,
            remote: base + self.remote,
            odd: base + self.odd,
        }
    }

    /// Returns the address of the image of a context's member.
    pub const fn image(&self, id: u32, member: u32) -> u64 {
        self.images + (id * 4 + member) as u64 * 0x4000
    }

    /// Returns the address of the ring of a context's member.
    pub const fn ring(&self, id: u32, member: u32) -> u64 {
        self.rings + (id * 4 + member) as u64 * 0x1000
    }

    /// Returns the address of a context's batch.
    pub const fn batch(&self, id: u32) -> u64 {
        self.batches + id as u64 * 0x1000
    }
}

/// A driver of one function: accesses to registers and memory, and GuC protocol operations. Offsets are relative to the
/// driver's memory.
pub trait GucDriver {
    /// Returns the function.
    fn function(&self) -> Function;

    /// Returns the card.
    fn card(&self) -> &Card;

    /// Returns the region that contains the driver's memory, and the memory's offset in the region.
    fn memory(&self) -> (&SharedRegion, u64);

    /// Returns the GGTT address at which the driver's memory is mapped.
    fn base(&self) -> u64;

    /// Returns the offsets of the driver's data structures.
    fn places(&self) -> &'static Places;

    /// Returns the address of the root page table of the driver's contexts, or 0 if they have none.
    fn root(&self) -> u64;

    /// Returns the driver's positions in the CT rings.
    fn rings(&mut self) -> &mut Rings;

    /// Sends a mailbox request; panics if the header of the response is not `answer`.
    fn must(&self, message: [u32; 4], answer: u32) {
        let answered = self.mail(message);
        assert_eq!(answered, answer, "{:?}: {answered:#x} to {message:x?}", self.function());
    }

    /// Writes a register.
    fn set(&self, register: u32, value: u32) {
        self.card().write(self.function(), u64::from(register), &value.to_le_bytes());
    }

    /// Reads a register.
    fn get(&self, register: u32) -> u32 {
        let mut data = [0; 4];
        self.card().read(self.function(), u64::from(register), &mut data);
        u32::from_le_bytes(data)
    }

    /// Writes a GGTT entry through a trapped access.
    fn set_entry(&self, index: u64, entry: u64) {
        self.card().write(self.function(), GGTT_WINDOW + index * 8, &entry.to_le_bytes());
    }

    /// Writes a dword of memory.
    fn poke(&self, at: u64, value: u32) {
        let (region, from) = self.memory();
        region.slice(from + at, 4).unwrap().store(value, 0, Ordering::SeqCst).unwrap();
    }

    /// Writes a qword of memory, the lower half first.
    fn poke64(&self, at: u64, value: u64) {
        self.poke(at, value as u32);
        self.poke(at + 4, (value >> 32) as u32);
    }

    /// Reads a dword of memory.
    fn peek(&self, at: u64) -> u32 {
        let (region, from) = self.memory();
        region.slice(from + at, 4).unwrap().load(0, Ordering::SeqCst).unwrap()
    }

    /// Writes dwords to memory.
    fn write_words(&self, at: u64, words: &[u32]) {
        for (n, word) in (0u64..).zip(words) {
            self.poke(at + n * 4, *word);
        }
    }

    /// Sends a mailbox request; returns the header of the response.
    fn mail(&self, message: [u32; 4]) -> u32 {
        for (n, value) in (0u32..).zip(message) {
            self.set(ct::MAILBOX + n * 4, value);
        }
        self.set(ct::BELL, 1);
        self.get(ct::MAILBOX)
    }

    /// Registers, empties and enables the CT rings; the GuC-to-host ring is at GGTT address `g2h`.
    fn enable_rings(&mut self, g2h: u64) {
        let buffers = self.places().ctb;
        for message in ct::registration(self.base() + buffers, g2h) {
            self.must(message, ct::SUCCESS | 1);
        }
        self.write_words(buffers, &[0; ct::H2G as usize / 4]);
        *self.rings() = Rings::default();
        self.must(ct::ENABLE, ct::SUCCESS);
    }

    /// Writes `message` to the ring unmodified, without notifying the GuC.
    fn put(&mut self, message: &[u32]) {
        let mut rings = *self.rings();
        rings.put(message, |at, value| self.poke(self.places().ctb + at, value));
        *self.rings() = rings;
    }

    /// Writes `message` to the ring unmodified, and notifies the GuC.
    fn send(&mut self, message: &[u32]) {
        self.put(message);
        self.set(ct::BELL, 1);
    }

    /// Sends a fast request, which has no response.
    fn request(&mut self, code: u32, payload: &[u32]) {
        self.send(&ct::fast_request(code, payload));
    }

    /// Returns the next message from the GuC, starting with the CT header; `None` if the ring is empty.
    fn take(&mut self) -> Option<Vec<u32>> {
        let (mut rings, buffers) = (*self.rings(), self.places().ctb);
        let message = rings.take(|at| self.peek(buffers + at))?;
        self.poke(buffers + ct::G2H_DESCRIPTOR + ct::HEAD, rings.head());
        *self.rings() = rings;
        Some(message)
    }

    /// Marks all messages from the GuC as read.
    fn consume(&self) {
        let descriptor = self.places().ctb + ct::G2H_DESCRIPTOR;
        self.poke(descriptor + ct::HEAD, self.peek(descriptor + ct::TAIL));
    }

    /// Returns the GGTT address of offset `at`.
    fn global(&self, at: u64) -> At {
        Global(self.base() + at)
    }

    /// Returns the PPGTT address of offset `at`. Valid only if the page tables map it at its GGTT address.
    fn process(&self, at: u64) -> At {
        Process(self.base() + at)
    }

    /// Returns the descriptor of a context's member.
    fn descriptor(&self, id: u32, member: u32) -> u32 {
        context::descriptor(self.base() + self.places().image(id, member))
    }

    /// Writes the image of a context's member, and its ring with `commands`.
    fn write_context(&self, id: u32, member: u32, commands: &[u32]) {
        let (image, ring) = (self.places().image(id, member) + context::IMAGE, self.places().ring(id, member));
        self.write_words(image, &[0; 0x400]);
        self.write_words(image, &Context::of(self.base() + ring, commands, self.root()).image());
        self.write_words(ring, &mi::padded(commands));
    }

    /// Registers a context for the engine instances in `mask` of a class.
    fn register(&mut self, id: u32, class: u32, mask: u32) {
        let descriptor = self.descriptor(id, 0);
        self.request(0x4502, &context::registration(id, class, mask, descriptor));
    }

    /// Writes, registers and enables a context that executes `commands`.
    fn submit(&mut self, id: u32, class: EngineClass, commands: &[u32]) {
        self.write_context(id, 0, commands);
        self.register(id, u32::from(class.guc()), 1);
        self.request(0x1001, &[id, 1]);
    }
}
