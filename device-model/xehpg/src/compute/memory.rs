// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory of a walker's threads during one step: addresses of messages, code, images and samplers (EU-040 to EU-047).

mod captured;
mod images;
mod lanes;

pub(super) use captured::{AccessRecord, CapturingMemory, CopiedPage};

use arctic_eu::exec::memory::{
    Access, Atomic, Extent, Image, LaneFault, LaneSpans, Memory, MemoryFault, Sampler, Surface, count_inside,
};
use arctic_eu::exec::{FaultKind, Fetch};

use super::bases::{ADDRESS, Bases};
use super::replay::AtomicAccess;
use super::sampler::{self, SAMPLER_BYTES};
use super::surface::{STATE_BYTES, SurfaceState};
use super::surfaces::{Heap, StateName, Surfaces};
use crate::memory::{self, CellValue, Fault, FaultReason, Gam, Space, Span, Updated, cell};

/// Cost of an access that is a message to a function's client, in instructions: more than that of any step, which ends after
/// the message of the kernel.
pub(super) const REMOTE_COST: u64 = 1 << 32;
/// Most messages to a client for a fetch of code in a step. Code in memory that is accessed by messages is translated anew for
/// each walker, and bit by bit.
const MOST_CODE_MESSAGES: u64 = 16;

/// Bytes of the longest access of a message, which is a block of 64 qwords (EU-045).
const MOST_BYTES: usize = 512;

/// The memory that threads of a walker access during one step. Every access is translated by the step's [`Gam`], and is one of a
/// message, which ends with [`Memory::take_cost`], or a fetch of code.
///
/// # Unanswered accesses
/// While [`Gam::unanswered`] returns true, a fault is no property of the address. The thread is then to execute the same
/// instruction again in a later step, before any other thread of the walker executes a message, with the same [`Surfaces`].
/// Atomic operations that were applied, and loads and stores that the client has answered, are not repeated; its loads and
/// stores of other memory are.
pub struct KernelMemory<'s, 'm> {
    gam: &'s mut Gam<'m>,
    space: Space,
    bases: &'s Bases,
    surfaces: &'s mut Surfaces,
    cost: u64,
    fault: Option<Fault>,
    /// Number of messages to a client.
    messages: u64,
    remote_atomics: u64,
    /// Accesses may be messages to a client.
    may_send: bool,
}

impl<'s, 'm> KernelMemory<'s, 'm> {
    /// The memory of a walker for the step of `gam`: the process's `space`, and addresses relative to the walker's `bases`.
    /// `surfaces` is kept by the walker from its first step to its last.
    pub fn new(gam: &'s mut Gam<'m>, space: Space, bases: &'s Bases, surfaces: &'s mut Surfaces) -> Self {
        KernelMemory {
            gam,
            space,
            bases,
            surfaces,
            cost: 0,
            fault: None,
            messages: 0,
            remote_atomics: 0,
            may_send: true,
        }
    }

    /// Permits accesses that are messages to a function's client, or makes them faults. At first they are permitted.
    pub(super) fn permit_messages(&mut self, may_send: bool) {
        self.may_send = may_send;
    }

    /// Takes the last access that has failed, for the report of a page fault. It explains a [`MemoryFault`] of the kind
    /// [`FaultKind::Address`].
    pub fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    /// Returns whether an access of the step was not answered by a function's client ([`Gam::unanswered`]).
    pub fn unanswered(&self) -> bool {
        self.gam.unanswered()
    }

    /// Takes the number of atomic operations that were executed as a read and a write, by messages to a function's client.
    pub fn take_remote_atomics(&mut self) -> u64 {
        std::mem::take(&mut self.remote_atomics)
    }

    /// Number of accesses of the step that were messages to a function's client.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Counts a message to a client.
    #[cold]
    fn count_message(&mut self) {
        self.cost = self.cost.saturating_add(REMOTE_COST);
        self.messages = self.messages.saturating_add(1);
    }

    /// Records an access of a message that has failed.
    #[cold]
    fn failed(&mut self, fault: Fault) -> MemoryFault {
        // The instruction is executed again.
        if self.gam.unanswered() || !self.may_send {
            self.surfaces.replay.fail();
        }
        self.record(fault)
    }

    fn record(&mut self, fault: Fault) -> MemoryFault {
        self.fault = Some(fault);
        MemoryFault { kind: FaultKind::Address, address: Some(fault.address) }
    }

    /// Where a surface is.
    #[inline]
    fn extent(&mut self, surface: Surface) -> Result<Extent, MemoryFault> {
        let Some(name) = StateName::of(surface) else {
            let is_flat = surface == Surface::Flat;
            return Ok(if is_flat { Extent::FLAT } else { Extent::stateless(self.bases.general) });
        };
        let memory = match self.surfaces.find(name) {
            Some(state) => state.memory,
            None => self.decode(name)?.memory,
        };
        Ok(memory.extent(surface)?)
    }

    /// Virtual address of the entry of the binding table that has the address of a state, if one has.
    fn entry_address(&self, name: StateName) -> Option<u64> {
        let StateName::Binding(index) = name else { return None };
        Some(self.bases.binding_table.wrapping_add(u64::from(index).wrapping_mul(4)) & ADDRESS)
    }

    /// Virtual address of a surface state.
    fn state_address(&mut self, name: StateName) -> Result<u64, MemoryFault> {
        let (base, offset) = match name {
            StateName::Binding(_) => {
                let mut bytes = [0; 4];
                if let Some(entry) = self.entry_address(name) {
                    self.load(entry, &mut bytes)?;
                }
                // Bits 5:0 of an entry are reserved (EU-007).
                (self.bases.surface, u32::from_le_bytes(bytes) & !0x3f)
            }
            StateName::Offset(Heap::Bindless, offset) => (self.bases.bindless_surfaces, offset),
            StateName::Offset(Heap::Surface, offset) => (self.bases.surface, offset),
        };
        Ok(base.wrapping_add(offset.into()) & ADDRESS)
    }

    /// Reads and decodes a surface state.
    #[cold]
    fn decode(&mut self, name: StateName) -> Result<SurfaceState, MemoryFault> {
        let at = self.state_address(name)?;
        let mut bytes = [0; STATE_BYTES];
        self.load(at, &mut bytes)?;
        let state = SurfaceState::decode(&dwords(&bytes));
        self.surfaces.insert(name, state);
        Ok(state)
    }

    /// Virtual address of a sampler state, and the base that its pointer to a color of the border is relative to (EU-081).
    fn sampler_address(&self, pointer: Option<u32>, index: u8) -> (u64, u64) {
        let (base, start) = match pointer {
            Some(pointer) => (self.bases.bindless_samplers, self.bases.bindless_samplers.wrapping_add(pointer.into())),
            None => (self.bases.dynamic, self.bases.samplers),
        };
        let distance = u64::from(index).wrapping_mul(SAMPLER_BYTES as u64);
        (start.wrapping_add(distance) & ADDRESS, base)
    }

    /// Reads at a virtual address.
    #[inline]
    fn load(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some(memory) = self.gam.undivided(self.space, at, bytes.len(), memory::Access::Read)
            && cell::read(&memory, 0, bytes)
        {
            return Ok(());
        }
        self.load_slowly(at, bytes)
    }

    /// Reads all bytes or none: they may be registers with the operands of the message, which may be executed again.
    #[inline(never)]
    fn load_slowly(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let mut buffer = [0; MOST_BYTES];
        for (chunk, at) in bytes.chunks_mut(MOST_BYTES).zip((at..).step_by(MOST_BYTES)) {
            let read = buffer.get_mut(..chunk.len()).unwrap_or_default();
            let (_, result) = self.load_parts(at & ADDRESS, read, true);
            result.map_err(|fault| self.failed(fault))?;
            chunk.copy_from_slice(read);
        }
        Ok(())
    }

    /// Reads from page to page. Returns how many bytes there are. Loads of a message are recorded to be replayed.
    #[inline(never)]
    fn load_parts(&mut self, mut at: u64, bytes: &mut [u8], replays: bool) -> (usize, Result<(), Fault>) {
        let mut done = 0_usize;
        let len = bytes.len();
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let span = match self.gam.span(self.space, at, rest.len(), memory::Access::Read) {
                Ok(span) => span,
                Err(fault) => return (done, Err(fault)),
            };
            let count = span.len();
            let part = rest.get_mut(..count).unwrap_or_default();
            let read = match &span {
                Span::Mapped(memory) => cell::read(memory, 0, part),
                Span::Null(_) => span.read(part).is_ok(),
                Span::Remote { .. } if !self.may_send => false,
                Span::Remote { .. } if replays && self.surfaces.replay.load(at, part) => true,
                Span::Remote { .. } => {
                    self.count_message();
                    let read = span.read(part).is_ok();
                    if read && replays {
                        self.surfaces.replay.record_load(at, part);
                    }
                    read
                }
            };
            if !read {
                return (done, Err(self.not_mapped(at, memory::Access::Read)));
            }
            done = done.saturating_add(count);
            at = at.wrapping_add(count as u64) & ADDRESS;
        }
        (len, Ok(()))
    }

    /// Writes at a virtual address.
    #[inline]
    fn store(&mut self, at: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some(memory) = self.gam.undivided(self.space, at, bytes.len(), memory::Access::Write)
            && cell::write(&memory, 0, bytes)
        {
            return Ok(());
        }
        self.store_parts(at, bytes)
    }

    /// Writes from page to page.
    #[inline(never)]
    fn store_parts(&mut self, at: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let span = self.gam.span(self.space, at, rest.len(), memory::Access::Write);
            let span = span.map_err(|fault| self.failed(fault))?;
            let (part, after) = rest.split_at_checked(span.len()).unwrap_or((rest, &[]));
            let written = match &span {
                Span::Mapped(memory) => cell::write(memory, 0, part),
                Span::Null(_) => true,
                Span::Remote { .. } if !self.may_send => false,
                Span::Remote { .. } if self.surfaces.replay.store(at, part.len()) => true,
                Span::Remote { .. } => {
                    self.count_message();
                    let written = span.write(part).is_ok();
                    if written {
                        self.surfaces.replay.record_store(at, part.len());
                    }
                    written
                }
            };
            if !written {
                let fault = self.not_mapped(at, memory::Access::Write);
                return Err(self.failed(fault));
            }
            (at, rest) = (at.wrapping_add(part.len() as u64) & ADDRESS, after);
        }
        Ok(())
    }

    fn not_mapped(&self, address: u64, access: memory::Access) -> Fault {
        Fault { space: self.space, address, access, reason: FaultReason::NotMapped }
    }

    /// Accesses that have bytes outside of their surface.
    #[cold]
    fn load_inside(&mut self, at: u64, inside: u64, element: usize, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let (within, rest) = bytes.split_at_mut(count_inside(inside, bytes.len(), element));
        self.load(at, within)?;
        rest.fill(0);
        Ok(())
    }

    #[cold]
    fn store_inside(&mut self, at: u64, inside: u64, element: usize, bytes: &[u8]) -> Result<(), MemoryFault> {
        let (within, _) = bytes.split_at(count_inside(inside, bytes.len(), element));
        self.store(at, within)
    }

    /// Updates an aligned element of 2, 4 or 8 bytes.
    fn update(&mut self, access: &AtomicAccess) -> Result<u64, MemoryFault> {
        let AtomicAccess { address, size, operation, operands } = *access;
        let apply = |old| Some(operation.apply(old, operands, size));
        let updated = match size {
            8 => self.update_cell::<u64>(address, apply),
            4 => self.update_cell::<u32>(address, apply),
            2 => {
                // A part of its dword.
                let shift = if address & 2 == 0 { 0 } else { u16::BITS };
                let mask = u64::from(u16::MAX);
                let part = move |dword: u64| dword.wrapping_shr(shift) & mask;
                let full = move |old| {
                    let new = operation.apply(part(old), operands, size) & mask;
                    Some(old & !mask.wrapping_shl(shift) | new.wrapping_shl(shift))
                };
                self.update_cell::<u32>(address & !3, full).map(part)
            }
            _ => return Err(FaultKind::Message.into()),
        };
        updated.map_err(|fault| self.failed(fault))
    }

    fn update_cell<T: CellValue>(&mut self, at: u64, new: impl Fn(u64) -> Option<u64>) -> Result<u64, Fault> {
        if !self.may_send
            && let Span::Remote { .. } = self.gam.span(self.space, at, T::BYTES, memory::Access::Write)?
        {
            return Err(self.not_mapped(at, memory::Access::Write));
        }
        let updated = self.gam.update::<T>(self.space, at, &mut self.surfaces.replay.begun, new)?;
        // Every operation has a value.
        let Updated { old, by_messages } = updated.unwrap_or(Updated { old: 0, by_messages: false });
        if by_messages {
            self.count_message();
            self.remote_atomics = self.remote_atomics.saturating_add(1);
        }
        Ok(old)
    }
}

/// The little-endian dwords of a structure in memory.
fn dwords<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut dwords = [0; N];
    for (dword, bytes) in dwords.iter_mut().zip(bytes.as_chunks().0) {
        *dword = u32::from_le_bytes(*bytes);
    }
    dwords
}

impl Memory for KernelMemory<'_, '_> {
    #[inline]
    fn read(
        &mut self,
        surface: Surface,
        address: u64,
        element: usize,
        bytes: &mut [u8],
    ) -> Result<Access, MemoryFault> {
        let (at, inside) = self.extent(surface)?.place(address);
        if inside >= bytes.len() as u64 {
            self.load(at, bytes)?;
            return Ok(Access::Inside);
        }
        self.load_inside(at, inside, element, bytes)?;
        Ok(Access::Outside)
    }

    #[inline]
    fn write(&mut self, surface: Surface, address: u64, element: usize, bytes: &[u8]) -> Result<Access, MemoryFault> {
        let (at, inside) = self.extent(surface)?.place(address);
        if inside >= bytes.len() as u64 {
            self.store(at, bytes)?;
            return Ok(Access::Inside);
        }
        self.store_inside(at, inside, element, bytes)?;
        Ok(Access::Outside)
    }

    fn read_lanes(&mut self, lanes: &LaneSpans<'_>, bytes: &mut [u8], outside: &mut u32) -> Result<(), LaneFault> {
        self.load_lanes(lanes, bytes, outside)
    }

    fn write_lanes(&mut self, lanes: &LaneSpans<'_>, bytes: &[u8], outside: &mut u32) -> Result<(), LaneFault> {
        self.store_lanes(lanes, bytes, outside)
    }

    fn atomic(
        &mut self,
        surface: Surface,
        address: u64,
        size: u32,
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<Option<u64>, MemoryFault> {
        let (address, inside) = self.extent(surface)?.place(address);
        if inside < size.into() {
            return Ok(None);
        }
        if !address.is_multiple_of(size.into()) {
            return Err(MemoryFault { kind: FaultKind::Alignment, address: Some(address) });
        }
        let access = AtomicAccess { address, size, operation, operands };
        if let Some(old) = self.surfaces.replay.result(&access) {
            return Ok(Some(old));
        }
        let old = self.update(&access)?;
        self.surfaces.replay.record(access, old);
        Ok(Some(old))
    }

    fn image(&mut self, surface: Surface) -> Result<Image, MemoryFault> {
        self.stored_image(surface)
    }

    /// A sampler by number is in the walker's table, a bindless one at the pointer from the bindless base on. The pointer
    /// of the border's color is relative to the same base (EU-080, EU-081).
    fn sampler(&mut self, pointer: Option<u32>, index: u8) -> Result<Sampler, MemoryFault> {
        let (at, base) = self.sampler_address(pointer, index);
        let mut bytes = [0; SAMPLER_BYTES];
        self.load(at, &mut bytes)?;
        let (mut sampler, border) = sampler::decode(&dwords(&bytes));
        if let Some(offset) = border {
            self.load(base.wrapping_add(offset) & ADDRESS, &mut bytes)?;
            sampler.border = dwords(&bytes);
        }
        Ok(sampler)
    }

    fn read_texel(&mut self, image: &Image, at: [u32; 3], bytes: &mut [u8]) -> Result<(), MemoryFault> {
        self.load_texel(image, at, bytes)
    }

    fn write_texel(&mut self, image: &Image, at: [u32; 3], bytes: &[u8]) -> Result<(), MemoryFault> {
        self.store_texel(image, at, bytes)
    }

    fn atomic_texel(
        &mut self,
        image: &Image,
        at: [u32; 3],
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<u64, MemoryFault> {
        self.update_texel(image, at, operation, operands)
    }

    fn read_row(&mut self, image: &Image, x: u32, y: u32, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        self.load_row(image, x, y, bytes)
    }

    fn write_row(&mut self, image: &Image, x: u32, y: u32, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.store_row(image, x, y, bytes)
    }

    /// [`REMOTE_COST`] for each message to a client. A message of the kernel has ended.
    fn take_cost(&mut self) -> u64 {
        self.surfaces.replay.end_message();
        std::mem::take(&mut self.cost)
    }
}

/// Code is read at its virtual address in the process's space, whatever id of an address space the program has. A fetch ends
/// where memory ends, and fails without a fault of the address after [`MOST_CODE_MESSAGES`].
impl Fetch for KernelMemory<'_, '_> {
    fn fetch(&mut self, _: u64, address: u64, bytes: &mut [u8]) -> Result<usize, MemoryFault> {
        if self.messages >= MOST_CODE_MESSAGES {
            return Err(FaultKind::Address.into());
        }
        match self.load_parts(address & ADDRESS, bytes, false) {
            (0, Err(fault)) => Err(self.record(fault)),
            (count, _) => Ok(count),
        }
    }
}

#[cfg(test)]
mod tests;
