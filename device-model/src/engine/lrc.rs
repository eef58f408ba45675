//! The logical ring context in memory: PPHWSP, then the register image that an engine restores and saves
//! (V8-040..051; contract F.3, F.4, K.1). The image is taken as a fixed layout, as both drivers write it.

use super::id::{EngineClass, EngineId};
use super::layout::{self, IMAGE_DWORDS, RENDER_REGISTERS};
use super::stream::{ADDRESS, Batch, LEVELS, Position, Ring};
use crate::memory::{Fault, Gam, Space};
use crate::registers::RegisterFile;

/// Bytes from the PPHWSP to the image.
const IMAGE: u64 = 0x1000;

/// Dword positions in the image (contract K.1).
pub mod dword {
    /// CONTEXT_CONTROL: bit 0 inhibits the restore of the engine context.
    pub const CONTEXT_CONTROL: usize = 0x03;
    /// RING_HEAD.
    pub const RING_HEAD: usize = 0x05;
    /// RING_TAIL.
    pub const RING_TAIL: usize = 0x07;
    /// RING_START.
    pub const RING_START: usize = 0x09;
    /// RING_CTL.
    pub const RING_CTL: usize = 0x0b;
    /// BBADDR_UDW.
    pub const BBADDR_UDW: usize = 0x0d;
    /// BBADDR: bit 0 valid.
    pub const BBADDR: usize = 0x0f;
    /// BB_STATE: bit 5 the batch is in the process's space.
    pub const BB_STATE: usize = 0x11;
    /// BB_PER_CTX_PTR: bit 0 valid.
    pub const BB_PER_CTX_PTR: usize = 0x13;
    /// INDIRECT_CTX: address, and cachelines in bits 5:0.
    pub const INDIRECT_CTX: usize = 0x15;
    /// CTX_TIMESTAMP.
    pub const CTX_TIMESTAMP: usize = 0x23;
    /// PDP0_UDW and PDP0_LDW.
    pub const PDP0_UDW: usize = 0x31;
    /// PDP0_LDW.
    pub const PDP0_LDW: usize = 0x33;
    /// Memory-based interrupts: address of the word that RING_IMR is loaded from.
    pub const MEMIRQ_MASK: usize = 0x52;
    /// Memory-based interrupts: status page.
    pub const MEMIRQ_STATUS: usize = 0x57;
    /// Memory-based interrupts: source page.
    pub const MEMIRQ_SOURCE: usize = 0x59;
    /// First dword of the engine context (V8-050).
    pub const ENGINE_CONTEXT: usize = 0x60;
    /// First of the six values of BB_STACK_WRITE_PORT.
    pub const BB_STACK: usize = 0x63;
    /// BB_ADD_DIFF: holds RING_HEAD at the save, so that a driver that moves HEAD also leaves the saved batch.
    pub const BB_ADD_DIFF: usize = 0x7f;
    /// First dword behind the part of the engine context that can be read as commands.
    pub const ENGINE_CONTEXT_END: usize = 0xf4;
    /// First dword of the ring context behind what every engine has: NOOPs, but for the render engine's LRI.
    pub const RING_CONTEXT_REST: usize = 0x34;
}

/// RING_CONTEXT_CONTROL bit 0 (xe: CTX_CTRL_ENGINE_CTX_RESTORE_INHIBIT).
const RESTORE_INHIBIT: u32 = 1 << 0;
/// BB_STATE bit 5: the batch is in the process's space.
const BB_STATE_PPGTT: u32 = 1 << 5;
/// BBADDR bit 0, and an entry of the batch stack: there is a batch.
const BATCH_VALID: u32 = 1 << 0;
/// Entry of the batch stack, bit 1: the batch is in the process's space.
const STACK_PPGTT: u32 = 1 << 1;
/// MI_BATCH_BUFFER_END with bit 0: the end of the image.
const END: u32 = 0x0500_0001;
/// First dword of an LRI with `n` registers, engine-relative and posted (V8-046).
const fn lri(n: u32) -> u32 {
    0x1108_1000 | (2 * n - 1)
}

/// A context's place in memory and its address spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lrc {
    /// Global address of the PPHWSP.
    pub pphwsp: u64,
    /// The space of addresses that a command does not ask to be global: the process's own, or, where the descriptor's
    /// bit 8 gives it none, the global one too.
    pub space: Space,
    inhibited: Option<u32>,
}

/// The register image as it was read.
pub struct Image([u32; IMAGE_DWORDS]);

impl Image {
    /// Dword `index`; 0 beyond what is read.
    pub fn dword(&self, index: usize) -> u32 {
        self.0.get(index).copied().unwrap_or(0)
    }
}

impl Lrc {
    /// The context of a descriptor (contract F.1).
    pub fn new(descriptor: u64) -> Self {
        let space = if descriptor & 1 << 8 != 0 { Space::Ppgtt(0) } else { Space::Ggtt };
        Lrc { pphwsp: descriptor & 0xffff_f000, space, inhibited: None }
    }

    fn address(&self, index: usize) -> u64 {
        self.pphwsp + IMAGE + index as u64 * 4
    }

    /// Reads the image and takes the page directory from it.
    pub fn read(&mut self, gam: &mut Gam<'_>) -> Result<Image, Fault> {
        let mut bytes = [0; IMAGE_DWORDS * 4];
        gam.read(Space::Ggtt, self.pphwsp + IMAGE, &mut bytes)?;
        let mut image = Image([0; IMAGE_DWORDS]);
        for (word, raw) in image.0.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
        }
        if let Space::Ppgtt(root) = &mut self.space {
            *root = u64::from(image.dword(dword::PDP0_UDW)) << 32 | u64::from(image.dword(dword::PDP0_LDW));
        }
        let control = image.dword(dword::CONTEXT_CONTROL);
        self.inhibited = (control & RESTORE_INHIBIT != 0).then_some(control);
        Ok(image)
    }

    /// Reads RING_TAIL alone, for a lite restore (V8-079).
    pub fn tail(&self, gam: &mut Gam<'_>) -> Result<u32, Fault> {
        gam.read_u32(Space::Ggtt, self.address(dword::RING_TAIL))
    }

    /// Where the image says that the context goes on: in its ring, or in the batch that it was preempted in (V8-163).
    pub fn position(&self, image: &Image) -> Position {
        let head = image.dword(dword::RING_HEAD);
        let ring = Ring::new(
            image.dword(dword::RING_START),
            image.dword(dword::RING_CTL),
            head,
            image.dword(dword::RING_TAIL),
        );
        let mut position = Position::in_ring(ring);
        let address = image.dword(dword::BBADDR);
        if self.inhibited.is_some() || address & BATCH_VALID == 0 || image.dword(dword::BB_ADD_DIFF) != head {
            return position;
        }
        // The ring must be left by a privileged step, so the outer batches go first, whatever their space.
        for entry in 0..LEVELS - 1 {
            let low = image.dword(dword::BB_STACK + 4 * entry);
            let high = image.dword(dword::BB_STACK + 4 * entry + 2);
            if low & BATCH_VALID != 0 {
                position.enter(u64::from(high) << 32 | u64::from(low), low & STACK_PPGTT != 0, true);
            }
        }
        let address = u64::from(image.dword(dword::BBADDR_UDW)) << 32 | u64::from(address);
        position.enter(address, image.dword(dword::BB_STATE) & BB_STATE_PPGTT != 0, true);
        position
    }

    /// Gives the engine's registers what the image has of the engine context; what an inhibited restore leaves out gets
    /// its reset value, so that no context sees another's (V8-043, V8-044).
    pub fn restore_registers(&self, image: &Image, registers: &RegisterFile, engine: EngineId) {
        if self.inhibited.is_some() {
            return layout::clear(engine, registers);
        }
        for kept in layout::layout(engine) {
            registers.set(kept.register, kept.restored(image.dword(kept.dword)));
        }
    }

    /// Writes the context back as it stands (V8-045). RING_TAIL is the driver's: it may have moved on by now.
    pub fn save(
        &mut self,
        gam: &mut Gam<'_>,
        position: &Position,
        timestamp: u32,
        (registers, engine): (&RegisterFile, EngineId),
    ) -> Result<(), Fault> {
        let (class, base) = (engine.info().class, engine.info().mmio_base);
        let mut image = [0u32; IMAGE_DWORDS];
        let mut end = dword::ENGINE_CONTEXT_END;
        for kept in layout::layout(engine) {
            image[kept.dword] = kept.saved(registers.value(kept.register));
            if kept.named {
                image[kept.dword - 1] = kept.register;
            }
            end = end.max(kept.dword + 1);
        }
        let mut place = |at: usize, register: u32, value: u32| {
            image[at - 1] = register;
            image[at] = value;
        };
        place(0x79, base + 0x358, 0);
        place(dword::BB_ADD_DIFF, base + 0x154, position.ring.head);
        let (present, outer) = match position.batches() {
            [] => (None, &[][..]),
            [outer @ .., present] => (Some(present), outer),
        };
        for entry in 0..LEVELS {
            let (low, high) = outer.get(entry).map_or((0, 0), |batch| {
                let flags = BATCH_VALID | if batch.ppgtt { STACK_PPGTT } else { 0 };
                (batch.address as u32 | flags, (batch.address >> 32) as u32)
            });
            place(dword::BB_STACK + 4 * entry, base + 0x588, low);
            place(dword::BB_STACK + 4 * entry + 2, base + 0x588, high);
        }
        image[0x61] = lri(55);
        if matches!(class, EngineClass::Render | EngineClass::Compute) {
            image[0xd1] = lri(7);
        }
        if class == EngineClass::Render {
            image[0xe1] = lri(RENDER_REGISTERS);
            image[0xf2] = END;
        } else {
            image[0xe0] = END;
        }
        self.write_dwords(gam, dword::ENGINE_CONTEXT, &image[dword::ENGINE_CONTEXT..end])?;
        // A driver ends the image that it makes behind what it knows; the engine's goes on there (V8-047, V8-048).
        match class {
            EngineClass::Render => self.write_dwords(gam, 0x44, &[0])?,
            EngineClass::Copy => {
                image[0x41] = lri(2);
                self.write_dwords(gam, dword::RING_CONTEXT_REST, &image[dword::RING_CONTEXT_REST..0x46])?;
            }
            _ => self.write_dwords(gam, dword::RING_CONTEXT_REST, &[0])?,
        }
        if let Some(control) = self.inhibited.take() {
            gam.write_u32(Space::Ggtt, self.address(dword::CONTEXT_CONTROL), control & !RESTORE_INHIBIT)?;
        }
        self.save_ring(gam, position, present.copied(), timestamp)
    }

    /// Writes back only what tells where the context stopped: an engine reset leaves the rest as it was saved last.
    pub fn save_stopped(&self, gam: &mut Gam<'_>, position: &Position, timestamp: u32) -> Result<(), Fault> {
        self.save_ring(gam, position, None, timestamp)
    }

    fn save_ring(
        &self,
        gam: &mut Gam<'_>,
        position: &Position,
        batch: Option<Batch>,
        timestamp: u32,
    ) -> Result<(), Fault> {
        let mut put = |at, value| gam.write_u32(Space::Ggtt, self.address(at), value);
        let address = batch.map_or(0, |batch| batch.address & ADDRESS | u64::from(BATCH_VALID));
        put(dword::BBADDR_UDW, (address >> 32) as u32)?;
        put(dword::BBADDR, address as u32)?;
        put(dword::BB_STATE, if batch.is_some_and(|batch| batch.ppgtt) { BB_STATE_PPGTT } else { 0 })?;
        put(dword::RING_HEAD, position.ring.head)?;
        put(dword::CTX_TIMESTAMP, timestamp)?;
        Ok(())
    }

    fn write_dwords(&self, gam: &mut Gam<'_>, at: usize, dwords: &[u32]) -> Result<(), Fault> {
        let mut bytes = [0; IMAGE_DWORDS * 4];
        let mut len = 0;
        for (raw, word) in bytes.chunks_exact_mut(4).zip(dwords) {
            raw.copy_from_slice(&word.to_le_bytes());
            len += 4;
        }
        gam.write(Space::Ggtt, self.address(at), &bytes[..len])
    }
}
