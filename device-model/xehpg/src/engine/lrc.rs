// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The logical ring context in memory: the PPHWSP, followed by the register image that an engine restores and saves
//! (V8-040, V8-041, V8-045; contract F.3, F.4, K.1).

use arctic_sriov::number::{high, low};

use super::image::Image;
use super::stream::{LEVELS, ParserState};
use crate::compute::{ComputeState, STATE_DWORDS, WalkerWords};
use crate::context_image::{IMAGE_DWORDS, Layout};
use crate::execlist::descriptor::Descriptor;
use crate::memory::{Fault, Gam, Space};
use crate::oa::context::{OAC_REGISTERS, SAVED_BYTES};
use crate::registers::RegisterFile;

/// Offset in bytes from the PPHWSP to the image (V8-040).
const IMAGE: u64 = 0x1000;

/// Dword indices of image values that need special handling (contract K.1).
pub mod dword {
    /// RING_HEAD.
    pub const RING_HEAD: usize = 0x05;
    /// RING_TAIL.
    pub const RING_TAIL: usize = 0x07;
    /// BBADDR_UDW.
    pub const BBADDR_UDW: usize = 0x0d;
    /// BBADDR. Bit 0: valid.
    pub const BBADDR: usize = 0x0f;
    /// BB_STATE. Bit 5: the batch is in the PPGTT.
    pub const BB_STATE: usize = 0x11;
    /// CTX_TIMESTAMP.
    pub const CTX_TIMESTAMP: usize = 0x23;
    /// Address of the interrupt mask in memory, low and high dword.
    pub const MASK_ADDRESS: usize = 0x52;
    /// MI_NOOP before the engine context. Its identification field contains RING_HEAD at the time of the save.
    pub const SAVED_HEAD: usize = 0x60;
    /// First of the six values of BB_STACK_WRITE_PORT.
    pub const BB_STACK: usize = 0x63;
    /// TIMESTAMP.
    pub const TIMESTAMP: usize = 0x79;
}

/// [`dword::SAVED_HEAD`], bit 0: the engine has saved the image.
const SAVED: u32 = 1 << 0;

/// Location of a context in memory and its address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lrc {
    /// Global address of the PPHWSP.
    pub pphwsp: u64,
    /// Address space of non-global operands: the PPGTT, or the GGTT if the descriptor does not enable the PPGTT.
    pub space: Space,
}

/// Values that are saved with a context but are not in the register file.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// CTX_TIMESTAMP.
    pub context: u32,
    /// TIMESTAMP. Not restored (V8-215).
    pub card: u32,
    /// TIMESTAMP at the end of the restore.
    pub restored: u32,
}

/// What is saved with a context beside the registers of the register file.
pub struct Saved<'s> {
    /// Position of the parser.
    pub position: &'s ParserState,
    /// Clocks.
    pub clocks: Clocks,
    /// Address from which the image loads the interrupt mask.
    pub mask: u64,
    /// State of the compute pipeline.
    pub compute: &'s ComputeState,
    /// The command that resumes the walker in progress.
    pub walker: Option<WalkerWords>,
    /// Registers of OAC.
    pub oac: [u32; OAC_REGISTERS],
}

/// Offset in the PPHWSP of the report written by a save: TIMESTAMP at the restore, TIMESTAMP at the save, and
/// CTX_TIMESTAMP. The PRM specifies the first cachelines and defines the layout elsewhere. The offset is specific to
/// this model (V8-041, V8-214).
const REPORT: u64 = 64;

impl Lrc {
    /// Creates the context described by `descriptor` (contract F.1).
    pub fn new(descriptor: u64) -> Self {
        let descriptor = Descriptor::from(descriptor);
        let space = if descriptor.ppgtt() { Space::Ppgtt(0) } else { Space::Ggtt };
        Lrc { pphwsp: descriptor.lrca().into(), space }
    }

    /// Returns the global address of dword `index` of the image.
    #[allow(clippy::arithmetic_side_effects, reason = "the page has a 32-bit address")]
    pub fn address(&self, index: usize) -> u64 {
        self.pphwsp + IMAGE + index as u64 * 4
    }

    /// Reads the image.
    pub fn read(&self, gam: &mut Gam<'_>, layout: &Layout) -> Result<Image, Fault> {
        Image::read(gam, self.address(0), layout)
    }

    /// Sets the page directory from PDP0 (V8-213).
    pub fn set_page_directory(&mut self, pdp0: u64) {
        if let Space::Ppgtt(root) = &mut self.space {
            *root = pdp0;
        }
    }

    /// Reads only RING_TAIL, for a lite restore (V8-079).
    pub fn tail(&self, gam: &mut Gam<'_>) -> Result<u32, Fault> {
        gam.read_u32(Space::Ggtt, self.address(dword::RING_TAIL))
    }

    /// Returns whether the driver has changed RING_HEAD since the image was saved. The ring must then be executed from
    /// the new head, and the saved batch position must be ignored (i915: guc_reset_state; xe: guc_exec_queue_start).
    pub fn head_moved(image: &Image) -> bool {
        let saved = image.dword(dword::SAVED_HEAD);
        saved & SAVED != 0 && saved & !SAVED != image.dword(dword::RING_HEAD)
    }

    /// Writes the image with the current state (V8-044, V8-045), except RING_TAIL, which the driver may have advanced
    /// since the restore.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "the layout's positions lie below IMAGE_DWORDS, and the page has a 32-bit address"
    )]
    pub fn save(
        &self,
        gam: &mut Gam<'_>,
        layout: &Layout,
        registers: &RegisterFile,
        &Saved { position, clocks, mask, compute, walker, oac }: &Saved<'_>,
    ) -> Result<(), Fault> {
        let mut words = [0u32; IMAGE_DWORDS];
        let len = layout.template.len().min(IMAGE_DWORDS);
        words[..len].copy_from_slice(&layout.template[..len]);
        for kept in &layout.kept {
            words[kept.dword] = kept.saved(registers.value(kept.register));
        }
        for (dword, value) in layout.oac.iter().zip(oac) {
            words[*dword] = value;
        }
        if let Some(at) = layout.compute {
            words[at..at + STATE_DWORDS].copy_from_slice(compute.commands());
            if let Some(walker) = walker {
                words[at + STATE_DWORDS..at + STATE_DWORDS + walker.len()].copy_from_slice(&walker);
            }
        }
        words[dword::CTX_TIMESTAMP] = clocks.context;
        words[dword::TIMESTAMP] = clocks.card;
        words[dword::MASK_ADDRESS] = low(mask);
        words[dword::MASK_ADDRESS + 1] = high(mask);
        words[dword::SAVED_HEAD] = position.ring.head | SAVED;
        for (level, entry) in position.stack().iter().enumerate().take(LEVELS) {
            words[dword::BB_STACK + 4 * level] = low(*entry);
            words[dword::BB_STACK + 4 * level + 2] = high(*entry);
        }
        let mut bytes = [0; IMAGE_DWORDS * 4];
        for (raw, word) in bytes.chunks_exact_mut(4).zip(&words[..len]) {
            raw.copy_from_slice(&word.to_le_bytes());
        }
        gam.write(Space::Ggtt, self.address(0), &bytes[..dword::RING_TAIL * 4])?;
        gam.write(Space::Ggtt, self.address(dword::RING_TAIL + 1), &bytes[(dword::RING_TAIL + 1) * 4..len * 4])?;
        for (n, time) in (0..).zip([clocks.restored, clocks.card, clocks.context]) {
            gam.write_u32(Space::Ggtt, self.pphwsp + REPORT + 4 * n, time)?;
        }
        Ok(())
    }

    /// Writes the counters of OAR or OAC. They are behind the registers, where drivers allocate more pages for the context of a
    /// render or compute engine; the place is specific to this model.
    pub fn save_counters(&self, gam: &mut Gam<'_>, bytes: &[u8; SAVED_BYTES]) -> Result<(), Fault> {
        gam.write(Space::Ggtt, self.address(IMAGE_DWORDS), bytes)
    }

    /// Reads what [`Lrc::save_counters`] has written.
    pub fn read_counters(&self, gam: &mut Gam<'_>) -> Result<[u8; SAVED_BYTES], Fault> {
        let mut bytes = [0; SAVED_BYTES];
        gam.read(Space::Ggtt, self.address(IMAGE_DWORDS), &mut bytes)?;
        Ok(bytes)
    }

    /// Writes only the position at which the context stopped and CTX_TIMESTAMP, for an engine reset. The rest of the
    /// image keeps the last saved state, without the walker that was in progress then.
    pub fn save_stopped(
        &self,
        gam: &mut Gam<'_>,
        layout: &Layout,
        position: &ParserState,
        timestamp: u32,
    ) -> Result<(), Fault> {
        let mut put = |at, value| gam.write_u32(Space::Ggtt, self.address(at), value);
        put(dword::BBADDR_UDW, 0)?;
        put(dword::BBADDR, 0)?;
        put(dword::BB_STATE, 0)?;
        put(dword::RING_HEAD, position.ring.head)?;
        put(dword::CTX_TIMESTAMP, timestamp)?;
        match layout.compute {
            Some(at) => put(at.saturating_add(STATE_DWORDS), 0),
            None => Ok(()),
        }
    }
}
