// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The driver of one function.

use alloc::vec::Vec;

use arctic_mi::{self as mi, At, Global, Process};

use crate::Access;
use crate::context::{self, Context};
use crate::ct::{self, Rings};
use crate::{actions, firmware};

/// Locations of a driver's data structures, as offsets in its memory.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// CT buffers: the descriptors, followed by both rings; [`ct::BYTES`].
    pub ctb: u64,
    /// Firmware image; used by the PF only.
    pub firmware: u64,
    /// ADS; used by the PF only.
    pub ads: u64,
    /// Context images, 16 KiB each.
    pub images: u64,
    /// Context rings, one page each.
    pub rings: u64,
    /// Context batches, one page each.
    pub batches: u64,
    /// Number of images and rings of each context, for those with several members.
    pub members: u32,
}

impl Layout {
    /// Converts offsets in a driver's memory to addresses, for memory that is mapped at `base`.
    pub const fn at(self, base: u64) -> Self {
        Layout {
            ctb: base + self.ctb,
            firmware: base + self.firmware,
            ads: base + self.ads,
            images: base + self.images,
            rings: base + self.rings,
            batches: base + self.batches,
            members: self.members,
        }
    }

    const fn index(&self, id: u32, member: u32) -> u64 {
        (id * self.members + member) as u64
    }

    /// Returns the location of the image of a context's member.
    pub const fn image(&self, id: u32, member: u32) -> u64 {
        self.images + self.index(id, member) * 0x4000
    }

    /// Returns the location of the ring of a context's member.
    pub const fn ring(&self, id: u32, member: u32) -> u64 {
        self.rings + self.index(id, member) * 0x1000
    }

    /// Returns the location of a context's batch.
    pub const fn batch(&self, id: u32) -> u64 {
        self.batches + id as u64 * 0x1000
    }
}

/// What a driver knows about its function.
#[derive(Clone, Copy, Debug)]
pub struct DriverState {
    /// GGTT address at which the driver's memory is mapped.
    pub base: u64,
    /// Offsets of the driver's data structures.
    pub layout: Layout,
    /// Address of the root page table of the driver's contexts, or 0 if they have none.
    pub root: u64,
    /// Positions in the CT rings.
    pub rings: Rings,
}

impl DriverState {
    /// Returns the state of a driver whose rings are not enabled.
    pub fn new(base: u64, layout: Layout, root: u64) -> Self {
        DriverState { base, layout, root, rings: Rings::default() }
    }
}

/// A driver of one function. Offsets are relative to the driver's memory, which the GGTT maps.
pub trait GucDriver {
    /// Returns the driver's accesses.
    fn access(&self) -> &dyn Access;

    /// Returns the driver's state.
    fn state(&self) -> &DriverState;

    /// Returns the driver's state.
    fn state_mut(&mut self) -> &mut DriverState;

    /// Returns the GGTT address at which the driver's memory is mapped.
    fn base(&self) -> u64 {
        self.state().base
    }

    /// Returns the offsets of the driver's data structures.
    fn layout(&self) -> &Layout {
        &self.state().layout
    }

    /// Writes a register of the function.
    fn set(&self, register: u32, value: u32) {
        self.access().set(register, value);
    }

    /// Reads a register of the function.
    fn get(&self, register: u32) -> u32 {
        self.access().get(register)
    }

    /// Writes a dword of memory.
    fn poke(&self, at: u64, value: u32) {
        self.access().poke(at, value);
    }

    /// Reads a dword of memory.
    fn peek(&self, at: u64) -> u32 {
        self.access().peek(at)
    }

    /// Writes dwords to memory.
    fn write_words(&self, at: u64, words: &[u32]) {
        self.access().write_words(at, words);
    }

    /// Notifies the GuC of a mailbox request or of messages in the ring.
    fn notify(&mut self) {
        self.set(ct::GUC_HOST_INTERRUPT, 1);
    }

    /// Writes a qword of memory, the lower half first.
    fn poke64(&self, at: u64, value: u64) {
        self.write_words(at, &[mi::low(value), mi::high(value)]);
    }

    /// Returns the GGTT address of offset `at`.
    fn global(&self, at: u64) -> At {
        Global(self.base() + at)
    }

    /// Returns the PPGTT address of offset `at`. Valid only if the page tables map it at its GGTT address.
    fn process(&self, at: u64) -> At {
        Process(self.base() + at)
    }

    /// Writes the firmware and the ADS to memory; `engines` contains the instance numbers of each engine class, in the
    /// GuC's order.
    fn write_firmware(&self, engines: &[Vec<u8>]) {
        let layout = self.layout();
        for (at, words) in firmware::image() {
            self.write_words(layout.firmware + at, &words);
        }
        let (at, words) = firmware::ads(self.base() + layout.ads, engines);
        self.write_words(layout.ads + at, &words);
    }

    /// Contract B.4: starts the written firmware by register writes.
    fn start_firmware(&self) {
        let (base, layout) = (self.base(), self.layout());
        for (register, value) in firmware::start(base + layout.firmware, base + layout.ads) {
            self.set(register, value);
        }
    }

    /// Sends a mailbox request of up to four dwords.
    fn post(&mut self, message: &[u32]) {
        for (register, n) in (ct::MAILBOX..).step_by(4).zip(0..4) {
            self.set(register, message.get(n).copied().unwrap_or(0));
        }
        self.notify();
    }

    /// Sends a mailbox request of up to four dwords; returns the response, or the request if the GuC does not answer at
    /// once.
    fn mail(&mut self, message: &[u32]) -> [u32; 4] {
        self.post(message);
        self.response()
    }

    /// Returns the contents of the mailbox.
    fn response(&self) -> [u32; 4] {
        [0, 4, 8, 12].map(|at| self.get(ct::MAILBOX + at))
    }

    /// Sends a mailbox request; panics if the header of the response is not `answer`.
    fn must(&mut self, message: &[u32], answer: u32) {
        let answered = self.mail(message)[0];
        assert_eq!(answered, answer, "{answered:#x} to {message:x?}");
    }

    /// Contract B.6: registers, empties and enables the CT rings; the GuC-to-host ring is at GGTT address `g2h`.
    fn enable_rings(&mut self, g2h: u64) {
        let buffers = self.layout().ctb;
        for message in ct::registration(self.base() + buffers, g2h) {
            self.must(&message, ct::SUCCESS | 1);
        }
        self.write_words(buffers, &[0; ct::DESCRIPTOR_DWORDS]);
        self.state_mut().rings = Rings::default();
        self.must(&ct::ENABLE, ct::SUCCESS);
    }

    /// Writes `message` to the ring unmodified, without ringing the doorbell. A message at the end of the ring continues
    /// at its start.
    fn put(&mut self, message: &[u32]) {
        let (mut rings, buffers) = (self.state().rings, self.layout().ctb);
        rings.put(message, |at, value| self.poke(buffers + at, value));
        self.state_mut().rings = rings;
    }

    /// Same as [`GucDriver::put`], with zeros up to the end of the ring if the message does not fit, as xe does.
    fn put_padded(&mut self, message: &[u32]) {
        let (mut rings, buffers) = (self.state().rings, self.layout().ctb);
        rings.pad(message.len(), |at, value| self.poke(buffers + at, value));
        self.state_mut().rings = rings;
        self.put(message);
    }

    /// Writes `message` to the ring unmodified, and rings the doorbell.
    fn send(&mut self, message: &[u32]) {
        self.put(message);
        self.notify();
    }

    /// Sends a fast request, which has no response.
    fn request(&mut self, code: u32, payload: &[u32]) {
        self.send(&ct::fast_request(code, payload));
    }

    /// Returns the next message from the GuC, starting with the CT header; `None` if the ring is empty.
    fn take(&mut self) -> Option<Vec<u32>> {
        let (mut rings, buffers) = (self.state().rings, self.layout().ctb);
        let message = rings.take(|at| self.peek(buffers + at))?;
        self.poke(buffers + ct::G2H_DESCRIPTOR + ct::HEAD, rings.head());
        self.state_mut().rings = rings;
        Some(message)
    }

    /// Marks all messages from the GuC as read.
    fn consume(&self) {
        let descriptor = self.layout().ctb + ct::G2H_DESCRIPTOR;
        self.poke(descriptor + ct::HEAD, self.peek(descriptor + ct::TAIL));
    }

    /// Returns the descriptor of a context's member.
    fn descriptor(&self, id: u32, member: u32) -> u32 {
        context::descriptor(self.base() + self.layout().image(id, member))
    }

    /// Writes the image of a context's member, and its ring with `commands`.
    fn write_context(&self, id: u32, member: u32, commands: &[u32]) {
        let (image, ring) = (self.layout().image(id, member) + context::IMAGE, self.layout().ring(id, member));
        self.write_words(image, &[0; 0x400]);
        self.write_words(image, &Context::of(self.base() + ring, commands, self.state().root).image());
        self.write_words(ring, &mi::padded(commands));
    }

    /// Sets RING_TAIL in a context's image: `bytes` is the offset in the ring after the last command.
    fn set_ring_tail(&self, id: u32, bytes: u32) {
        self.poke(self.layout().image(id, 0) + context::IMAGE + context::TAIL * 4, bytes);
    }

    /// Registers a context for the engine instances in `mask` of a class.
    fn register(&mut self, id: u32, class: u32, mask: u32) {
        let descriptor = self.descriptor(id, 0);
        self.request(actions::REGISTER_CONTEXT, &context::registration(id, class, mask, descriptor));
    }

    /// Writes, registers and enables a context that executes `commands`, on the first engine of a class in the GuC's
    /// numbering.
    fn submit_to(&mut self, id: u32, class: u32, commands: &[u32]) {
        self.write_context(id, 0, commands);
        self.register(id, class, 1);
        self.request(actions::SCHED_CONTEXT_MODE_SET, &[id, 1]);
    }
}
