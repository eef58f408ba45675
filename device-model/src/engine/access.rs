//! How commands reach registers and memory: by who gives them, and noted where a loop looks for it.

use vm_memory::VolatileSlice;

use super::stream::Loops;
use super::streamer::Streamer;
use super::whitelist::{self, Wanted};
use super::{image, layout, reg};
use crate::command::Requester;
use crate::memory::{Access, Fault, Space, Span};
use crate::registers::REGISTER_BYTES;

/// An engine-relative register has an offset below this; a header bit asks for the base to be added (contract F.4).
const ENGINE_BLOCK: u32 = 0x1000;

/// The address of two dwords of a command.
#[inline]
pub(super) fn address(low: u32, high: u32) -> u64 {
    (u64::from(high) << 32 | u64::from(low)) & 0xffff_ffff_fffc
}

/// The bits of a register that an LRI with this header keeps: its bits 11:8 disable the writes of bytes.
pub(super) const fn bytes_kept(header: u32) -> u32 {
    let (mut kept, mut byte) = (0, 0);
    while byte < 4 {
        if header >> (8 + byte) & 1 != 0 {
            kept |= 0xff << (8 * byte);
        }
        byte += 1;
    }
    kept
}

impl Streamer<'_> {
    /// The register that a command names: absolute, or in the engine's own block.
    #[inline]
    pub fn mmio(&self, raw: u32, relative: bool) -> u32 {
        if relative { self.id.relative(raw) } else { raw & 0x7f_fffc }
    }

    /// The register that an LRI or LRM with this header names: in the engine's own block, of the executing instance, or
    /// absolute (V8-046, trap T19). Where the engine has none, an offset that nobody may touch.
    #[inline]
    pub fn register(&self, header: u32, raw: u32) -> u32 {
        match header & (image::RELATIVE | image::REMAP) {
            0 => raw & 0x7f_fffc,
            image::REMAP => layout::remapped(self.id, raw & 0x7f_fffc).unwrap_or(u32::MAX),
            _ => self.id.relative(raw),
        }
    }

    fn permits(&mut self, offset: u32, wanted: Wanted) -> bool {
        let requester = self.requester();
        let permitted = offset < REGISTER_BYTES
            && (requester == Requester::Kernel
                || whitelist::permits(&self.gt.registers, self.id, requester, offset, wanted));
        if !permitted {
            self.counters.register_refusals += 1;
        }
        permitted
    }

    /// Whether a write of the register would be carried out.
    pub fn may_write(&mut self, offset: u32) -> bool {
        self.permits(offset, Wanted::Write)
    }

    /// Reads a register for a command; 0 where its requester may not.
    pub fn read_register(&mut self, offset: u32) -> u32 {
        if !self.permits(offset, Wanted::Read) {
            return 0;
        }
        if matches!(offset & (ENGINE_BLOCK - 1), reg::TIMESTAMP | reg::TIMESTAMP_UDW | reg::CTX_TIMESTAMP) {
            self.running.loops.clock_read();
        }
        self.gt.read(offset)
    }

    /// Writes a register for a command; dropped where its requester may not, or where it would command another unit.
    pub fn write_register(&mut self, offset: u32, value: u32) {
        if !self.permits(offset, Wanted::Write) {
            return;
        }
        self.running.loops.effect();
        let now = self.gt.timestamp();
        if offset == self.base + reg::CTX_TIMESTAMP {
            self.gt.context_clocks[self.id.index()].start(now, value);
        }
        if self.gt.write(offset, value).is_some() {
            self.counters.dropped_requests += 1;
        }
        if offset == self.base + reg::PR_CTR_CTRL {
            self.restart_watchdog();
        }
    }

    /// A register of the engine's own, by offset from its base.
    pub fn own(&self, offset: u32) -> u32 {
        self.gt.registers.value(self.base + offset)
    }

    /// Sets a register of the engine's own.
    pub fn set_own(&mut self, offset: u32, value: u32) {
        self.running.loops.effect();
        self.gt.registers.set(self.base + offset, value);
    }

    /// A 64-bit register of the engine's own.
    #[inline]
    pub fn own64(&self, offset: u32) -> u64 {
        u64::from(self.own(offset + 4)) << 32 | u64::from(self.own(offset))
    }

    /// Sets a 64-bit register of the engine's own.
    #[inline]
    pub fn set_own64(&mut self, offset: u32, value: u64) {
        self.set_own(offset, value as u32);
        self.set_own(offset + 4, (value >> 32) as u32);
    }

    /// The space of a memory operand: global if the command says so, else the context's.
    #[inline]
    pub fn space(&self, global: bool) -> Space {
        if global { Space::Ggtt } else { self.running.lrc.space }
    }

    /// Stores a dword.
    #[inline]
    pub fn store(&mut self, space: Space, address: u64, value: u32) -> Result<(), Fault> {
        self.running.loops.effect();
        self.gam.write_u32(space, address, value)
    }

    /// Stores a qword.
    #[inline]
    pub fn store64(&mut self, space: Space, address: u64, value: u64) -> Result<(), Fault> {
        self.running.loops.effect();
        self.gam.write_u64(space, address, value)
    }

    /// Memory of `len` bytes at `address` that can be changed atomically; `None` where it is not mapped in one piece.
    pub fn cell(&mut self, space: Space, address: u64, len: usize) -> Result<Option<VolatileSlice<'_>>, Fault> {
        match self.gam.span(space, address, len, Access::Write)? {
            Span::Mapped(slice) if slice.len() == len => Ok(Some(slice)),
            _ => Ok(None),
        }
    }

    /// The context's loop detector.
    pub fn loops(&mut self) -> &mut Loops {
        &mut self.running.loops
    }
}
