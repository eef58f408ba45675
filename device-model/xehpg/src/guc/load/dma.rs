// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GuC's DMA engine: transfers between graphics memory, WOPCM and SRAM, and those that it rejects (V13-186..195).

use std::ops::Range;

use arctic_sriov::number::size;

use crate::gt::Gt;
use crate::memory::{Access, Gam, Space};
use crate::registers::guc::{
    DMA_ADDR_0, DMA_ADDR_1, DMA_COPY_SIZE, DMA_GUC_WOPCM_OFFSET, DMA_PDP0, DmaAddressHigh, DmaCtrl, GucWopcmSize,
    LOCKED, PPGTT_ENABLE, PPGTT_ENABLED,
};

/// Values of [`DmaAddressHigh::space`]: those of WOPCM and the GGTT are the drivers' (V13-187), the others chosen by the model.
const SPACE_WOPCM: u8 = 7;
const SPACE_GGTT: u8 = 8;
const SPACE_PPGTT: u8 = 9;
const SPACE_SRAM: u8 = 6;
/// Also the GGTT: i915 does not set the field of the source (i915: intel_uc_fw.c uc_fw_xfer).
const SPACE_DEFAULT: u8 = 0;

/// Size of the SRAM in bytes (V13-182).
const SRAM_BYTES: u64 = 512 << 10;
/// Source and destination must have the same offset in a block of this size, and a kernel starts at one (V13-190).
const BLOCK: u64 = 64;

/// Memory that a transfer reads or writes (V13-186).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segment {
    Graphics(Space),
    Wopcm,
    Sram,
}

/// A place in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    segment: Segment,
    /// Bits 47:0 of the address.
    address: u64,
}

/// A transfer that the DMA registers describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    source: Place,
    target: Place,
    /// Length in bytes.
    size: u32,
    /// The transfer loads the GuC's kernel.
    kernel: bool,
}

/// Reason for which a transfer is rejected; nothing is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// WOPCM is not set up, or the transfer exceeds it or is empty.
    Wopcm,
    /// A place is not in a segment that the transfer can use, or is not accessible.
    Location,
}

impl Transfer {
    /// Reads the DMA registers; `control` is the value of DMA_CTRL.
    ///
    /// # Errors
    /// If a place is in no segment.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "an address is the offset of a register, with its high half behind it"
    )]
    pub fn programmed(gt: &Gt, control: DmaCtrl) -> Result<Self, Rejection> {
        let value = |offset| gt.registers.value(offset);
        let place = |offset: u32| {
            let high = DmaAddressHigh::from(value(offset + 4));
            let address = u64::from(value(offset)) | u64::from(high.address()) << 32;
            let segment = match high.space() {
                SPACE_GGTT | SPACE_DEFAULT => Segment::Graphics(Space::Ggtt),
                SPACE_PPGTT if PPGTT_ENABLED.is_set(value(PPGTT_ENABLE)) => {
                    let root = u64::from(value(DMA_PDP0)) | u64::from(value(DMA_PDP0 + 4)) << 32;
                    Segment::Graphics(Space::Ppgtt(root))
                }
                SPACE_WOPCM => Segment::Wopcm,
                SPACE_SRAM => Segment::Sram,
                _ => return Err(Rejection::Location),
            };
            Ok(Place { segment, address })
        };
        let (first, second) = (place(DMA_ADDR_0)?, place(DMA_ADDR_1)?);
        let (source, target) = if control.reverse() { (second, first) } else { (first, second) };
        Ok(Transfer { source, target, size: value(DMA_COPY_SIZE), kernel: control.kernel() })
    }

    /// Range of the target's addresses.
    fn range(&self) -> Range<u64> {
        self.target.address..self.target.address.saturating_add(self.size.into())
    }

    /// Returns why the engine rejects the transfer, if it does (V13-190, V13-195).
    #[allow(clippy::arithmetic_side_effects, reason = "sums of an address of 48 bits and 32-bit values")]
    fn check(&self, gt: &Gt) -> Result<(), Rejection> {
        let Transfer { source, target, size, kernel } = *self;
        if kernel && (source.segment != Segment::Graphics(Space::Ggtt) || target.segment != Segment::Wopcm) {
            return Err(Rejection::Location);
        }
        let interface = gt.generation.firmware;
        let wopcm: GucWopcmSize = gt.registers.fields();
        let base = gt.registers.value(DMA_GUC_WOPCM_OFFSET);
        let set_up = wopcm.locked() && LOCKED.is_set(base);
        let reserved = if kernel { interface.wopcm_reserved } else { 0 };
        for place in [source, target] {
            let end = place.address + u64::from(size) + u64::from(reserved);
            let fits = match place.segment {
                // A longer transfer between two places in graphics memory would hold the GuC's lock for too long.
                Segment::Graphics(_) => size != 0 && size <= interface.wopcm_bytes,
                Segment::Wopcm => size != 0 && set_up && end <= u64::from(wopcm.bytes().min(interface.wopcm_bytes)),
                Segment::Sram => size != 0 && end <= SRAM_BYTES,
            };
            if !fits {
                return Err(Rejection::Wopcm);
            }
        }
        let aligned = (source.address ^ target.address) % BLOCK == 0 && (!kernel || target.address % BLOCK == 0);
        if aligned { Ok(()) } else { Err(Rejection::Location) }
    }
}

/// The DMA engine, with the memory that only it and the GuC's core can access.
#[derive(Default)]
pub struct DmaEngine {
    /// WOPCM, allocated up to the highest address written; the rest is zero.
    wopcm: Vec<u8>,
    /// SRAM, likewise.
    sram: Vec<u8>,
    /// Bytes of WOPCM that contain the running kernel (V13-192).
    protected: Range<u64>,
}

impl DmaEngine {
    /// Carries out `transfer`, or rejects it and changes no memory.
    pub fn run(&mut self, gt: &Gt, gam: &mut Gam<'_>, transfer: Transfer) -> Result<(), Rejection> {
        transfer.check(gt)?;
        let Transfer { source, target, .. } = transfer;
        let mut data = vec![0; transfer.size as usize];
        match source.segment {
            Segment::Graphics(space) => gam.read(space, source.address, &mut data).map_err(|_| Rejection::Location)?,
            Segment::Wopcm => read(&self.wopcm, source.address, &mut data),
            Segment::Sram => read(&self.sram, source.address, &mut data),
        }
        let end = transfer.range().end;
        match target.segment {
            Segment::Graphics(space) => {
                // All pages must be there before the first is written.
                let mut at = target.address;
                while at < end {
                    let rest = size(end.wrapping_sub(at));
                    let span = gam.span(space, at, rest, Access::Write).map_err(|_| Rejection::Location)?;
                    at = at.saturating_add(span.len().max(1) as u64);
                }
                gam.write(space, target.address, &data).map_err(|_| Rejection::Location)
            }
            Segment::Wopcm if target.address < self.protected.end && self.protected.start < end => {
                Err(Rejection::Wopcm)
            }
            Segment::Wopcm => {
                write(&mut self.wopcm, target.address, &data);
                Ok(())
            }
            Segment::Sram => {
                write(&mut self.sram, target.address, &data);
                Ok(())
            }
        }
    }

    /// Bytes of WOPCM; empty if some of them were never written.
    pub fn wopcm_bytes(&self, range: Range<u64>) -> &[u8] {
        self.wopcm.get(size(range.start)..size(range.end)).unwrap_or_default()
    }

    /// The kernel that `transfer` has copied into WOPCM, with its header.
    pub fn kernel(&self, transfer: Transfer) -> &[u8] {
        self.wopcm_bytes(transfer.range())
    }

    /// Protects the kernel that `transfer` has copied, until [`DmaEngine::release`].
    pub fn protect(&mut self, transfer: Transfer) {
        self.protected = transfer.range();
    }

    /// Ends the protection of the kernel, because the GuC was reset.
    pub fn release(&mut self) {
        self.protected = 0..0;
    }
}

/// Reads from memory whose bytes beyond the end of `memory` are zero.
fn read(memory: &[u8], at: u64, into: &mut [u8]) {
    let there = memory.get(size(at)..).unwrap_or_default();
    let length = there.len().min(into.len());
    into.fill(0);
    for (to, from) in into.iter_mut().zip(there.iter().take(length)) {
        *to = *from;
    }
}

/// Writes to memory, which is extended to the end of `data`.
fn write(memory: &mut Vec<u8>, at: u64, data: &[u8]) {
    let at = size(at);
    let end = at.saturating_add(data.len());
    if memory.len() < end {
        memory.resize(end, 0);
    }
    if let Some(into) = memory.get_mut(at..end) {
        into.copy_from_slice(data);
    }
}
