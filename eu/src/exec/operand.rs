// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operands of uops: offsets in the register file, and the ways to read and write lanes.

use super::thread::{ACC, ACCUMULATORS, FILE_BYTES, GRF_BYTES, REG, Thread, arf_offset};
use crate::float::{narrowed_half, widened_half};
use crate::isa::{Destination, Place, Region, Source, Type};

/// How the lanes of a source are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// Consecutive elements of 32 bits, all inside the file.
    Packed,
    /// One element of 32 bits for all lanes.
    Scalar,
    /// The value in `bits` for all lanes.
    Constant,
    /// Elements of 8, 16 or 32 bits at the distances of the region, all inside the file.
    Strided,
    /// Lane by lane.
    Gather,
}

/// A source, translated.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// How to read it.
    pub fetch: Fetch,
    /// True if `and`, `xor`, `add` and `unused` change the value.
    pub modified: bool,
    /// Modifier of a 32-bit value: `(value & and ^ xor) + add`, of which the bits below `32 - unused` are extended by their sign.
    pub and: u32,
    /// See `and`.
    pub xor: u32,
    /// See `and`.
    pub add: u32,
    /// See `and`.
    pub unused: u8,
    /// Byte offset of the first element in the file.
    pub base: u32,
    /// Value of an immediate.
    pub bits: u64,
    /// Type of the elements.
    pub ty: Type,
    /// Bytes between rows.
    pub vstride: u16,
    /// Log2 of the elements in a row.
    pub row: u8,
    /// Bytes between elements.
    pub hstride: u16,
    /// Address word, if register-indirect.
    pub indirect: Option<u8>,
    /// Offset that is added to the address.
    pub offset: i16,
    /// Each row has an address word of its own.
    pub row_addresses: bool,
    /// The base is a general register.
    pub general: bool,
    /// Absolute value.
    pub abs: bool,
    /// Negation.
    pub negate: bool,
}

impl Input {
    /// A constant.
    pub fn constant(ty: Type, bits: u64) -> Input {
        Input {
            fetch: Fetch::Constant,
            modified: false,
            and: !0,
            xor: 0,
            add: 0,
            unused: 0,
            base: 0,
            bits,
            ty,
            vstride: 0,
            row: 0,
            hstride: 0,
            indirect: None,
            offset: 0,
            row_addresses: false,
            general: false,
            abs: false,
            negate: false,
        }
    }

    /// Translates a source of an instruction with `size` lanes. `None` for a register that does not exist.
    pub fn new(from: &Source, size: u8, registers: u32) -> Option<Input> {
        let (place, region, ty, abs, negate) = match *from {
            Source::Imm { ty, value } => return Some(Input::immediate(ty, value)),
            Source::Reg { place, region, ty, abs, negate } => (place, region, ty, abs, negate),
        };
        if place.is_null() {
            return Some(Input { abs, negate, ..Input::constant(ty, 0) });
        }
        let unit = ty.size() as u16;
        let Region { vstride, width, hstride } = region;
        let mut into = Input {
            fetch: Fetch::Gather,
            vstride: u16::from(vstride.unwrap_or(0)) * unit,
            row: width.max(1).trailing_zeros() as u8,
            hstride: u16::from(hstride) * unit,
            row_addresses: vstride.is_none(),
            abs,
            negate,
            ..Input::constant(ty, 0)
        };
        match place {
            Place::Grf { reg, byte } => {
                if u32::from(reg) >= registers {
                    return None;
                }
                into.general = true;
                into.base = u32::from(reg) * REG as u32 + u32::from(byte);
            }
            Place::Arf { reg, byte } => into.base = arf_offset(reg)? as u32 + u32::from(byte),
            Place::Indirect { sub, offset } => {
                into.indirect = Some(sub);
                into.offset = offset;
                return Some(into);
            }
        }
        if unit == 4 {
            let limit = if into.general { (registers as usize * REG).min(GRF_BYTES) } else { FILE_BYTES };
            let packed = match (vstride, width, hstride) {
                (Some(1), 1, _) => true,
                (Some(vstride), width, 1) => vstride == width || width >= size,
                _ => false,
            };
            // A lane count below 8 is read as 1, 2 or 4 elements.
            if size == 1 || (vstride == Some(0) && (width == 1 || hstride == 0)) {
                into.fetch = Fetch::Scalar;
            } else if packed && into.base as usize + usize::from(size) * 4 <= limit {
                into.fetch = Fetch::Packed;
            }
        }
        if into.fetch == Fetch::Gather && vstride.is_some() && unit <= 4 {
            let limit = if into.general { registers as usize * REG } else { FILE_BYTES };
            let last = usize::from(size.max(1)) - 1;
            let (row, column) = (last >> into.row, last.min((1 << into.row) - 1));
            let end = row * usize::from(into.vstride) + column * usize::from(into.hstride) + usize::from(unit);
            if into.base as usize + end <= limit {
                into.fetch = Fetch::Strided;
            }
        }
        Some(into)
    }

    /// ISA-014, ISA-042.
    fn immediate(ty: Type, value: u64) -> Input {
        match ty {
            Type::V | Type::Uv | Type::Vf => Input { fetch: Fetch::Gather, ..Input::constant(ty, value) },
            _ => Input::constant(ty, value),
        }
    }

    /// Sets the modifier of the fast path. Returns false if it has none for this operand.
    pub fn set_modifier(&mut self, float: bool, logic: bool) -> bool {
        self.modified = self.abs || self.negate;
        if !self.modified {
            return true;
        }
        if float {
            // Applied to the value as F, or to the raw bits of an integer type of the same size.
            let sign = if self.ty.size() == 2 && !self.ty.is_float() { 0x8000 } else { 1 << 31 };
            self.and = if self.abs { !sign } else { !0 };
            self.xor = if self.negate { sign } else { 0 };
            return true;
        }
        if self.abs {
            return false;
        }
        self.xor = !0;
        self.add = u32::from(!logic);
        // ISA-058: a negated word is a word.
        if self.ty.is_signed() {
            self.unused = 32 - self.ty.size().min(4) as u8 * 8;
        }
        true
    }

    /// Byte offset of a lane's element.
    #[inline(always)]
    pub fn lane_offset(&self, thread: &Thread, lane: u32) -> usize {
        let (row, column) = (lane >> self.row, lane & ((1 << self.row) - 1));
        let inside = column * u32::from(self.hstride);
        if let Some(sub) = self.indirect {
            let (sub, step) = if self.row_addresses {
                (u32::from(sub) + row, 0)
            } else {
                (u32::from(sub), row * u32::from(self.vstride))
            };
            let address = i32::from(thread.address(sub as usize)) + i32::from(self.offset);
            // ISA-057: addresses wrap in the thread's registers.
            return (address as u32).wrapping_add(step).wrapping_add(inside) as usize & thread.grf_mask as usize;
        }
        let at = self.base + row * u32::from(self.vstride) + inside;
        if self.general { (at & thread.grf_mask) as usize } else { (at as usize).min(FILE_BYTES - 8) }
    }

    /// Bits of a lane's element, without modifiers, as many as its type has.
    #[inline(always)]
    pub fn raw(&self, thread: &Thread, lane: u32) -> u64 {
        match self.ty {
            // ISA-042.
            Type::Uv => self.bits >> ((lane & 7) * 4) & 15,
            Type::V => {
                let nibble = (self.bits >> ((lane & 7) * 4) & 15) as i64;
                ((nibble << 60 >> 60) as u64) & 0xffff
            }
            Type::Vf => u64::from(restricted_float((self.bits >> ((lane & 3) * 8)) as u8)),
            _ if self.fetch == Fetch::Constant => self.bits,
            ty => {
                let at = self.lane_offset(thread, lane);
                let size = ty.size() as usize;
                if (self.general || self.indirect.is_some()) && at + size > thread.grf_mask as usize + 1 {
                    // The element begins in the last register and ends in the first.
                    return (0..size).rev().fold(0, |value, byte| {
                        value << 8 | u64::from(thread.file[(at + byte) & thread.grf_mask as usize])
                    });
                }
                match size {
                    1 => u64::from(thread.file.get(at).copied().unwrap_or(0)),
                    2 => u64::from(thread.u16(at)),
                    4 => u64::from(thread.u32(at)),
                    _ => u64::from(thread.u32(at)) | u64::from(thread.u32(at + 4)) << 32,
                }
            }
        }
    }

    /// A lane as 32 bits: integers widened by their type, floats as F.
    #[inline(always)]
    pub fn widened(&self, thread: &Thread, lane: u32) -> u32 {
        if matches!(self.ty, Type::Ud | Type::D | Type::F) && self.fetch != Fetch::Constant {
            let at = self.lane_offset(thread, lane);
            // Aligned elements do not cross the end of the registers.
            if at.is_multiple_of(4) {
                return thread.u32(at);
            }
        }
        let raw = self.raw(thread, lane) as u32;
        match self.ty {
            Type::Ub => raw & 0xff,
            Type::B => raw as i8 as u32,
            Type::Uw | Type::Uv => raw & 0xffff,
            Type::W | Type::V => raw as i16 as u32,
            Type::Hf => widened_half(raw),
            Type::Bf => raw << 16,
            _ => raw,
        }
    }
}

/// The value of an 8-bit restricted float: sign, exponent of 3 bits with bias 3, mantissa of 4 bits. ISA-042.
fn restricted_float(bits: u8) -> u32 {
    let sign = u32::from(bits & 0x80) << 24;
    if bits & 0x7f == 0 {
        return sign;
    }
    let exponent = u32::from(bits >> 4 & 7) + 127 - 3;
    sign | exponent << 23 | u32::from(bits & 15) << 19
}

/// A destination, translated.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// How to write it.
    pub store: Store,
    /// Byte offset of the first element in the file.
    pub base: u32,
    /// Bytes between elements.
    pub stride: u16,
    /// Type.
    pub ty: Type,
    /// Address word and offset, if register-indirect. ISA-056.
    pub indirect: Option<(u8, i16)>,
    /// The base is a general register.
    pub general: bool,
}

/// How the lanes of a destination are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Nowhere.
    Null,
    /// Consecutive elements of 32 bits, all inside the file.
    Packed,
    /// Lane by lane.
    Scatter,
}

impl Output {
    /// A destination without effect.
    pub const NULL: Output =
        Output { store: Store::Null, base: 0, stride: 1, ty: Type::Ub, indirect: None, general: false };

    /// Translates a destination. `None` for a register that does not exist.
    pub fn new(from: &Destination, size: u8, registers: u32) -> Option<Output> {
        let unit = from.ty.size() as u16;
        let mut into = Output {
            store: Store::Scatter,
            base: 0,
            stride: u16::from(from.stride.max(1)) * unit,
            ty: from.ty,
            indirect: None,
            general: false,
        };
        match from.place {
            place if place.is_null() => into.store = Store::Null,
            Place::Grf { reg, byte } => {
                if u32::from(reg) >= registers {
                    return None;
                }
                into.general = true;
                into.base = u32::from(reg) * REG as u32 + u32::from(byte);
            }
            Place::Arf { reg, byte } => into.base = arf_offset(reg)? as u32 + u32::from(byte),
            Place::Indirect { sub, offset } => into.indirect = Some((sub, offset)),
        }
        let limit = if into.general { registers as usize * REG } else { FILE_BYTES };
        let direct = into.indirect.is_none() && into.store != Store::Null;
        if direct
            && into.stride == 4
            && unit == 4
            && into.base as usize + usize::from(size) * 4 <= limit.min(FILE_BYTES)
        {
            into.store = Store::Packed;
        }
        Some(into)
    }

    /// Byte offset of a lane's element.
    #[inline(always)]
    pub fn lane_offset(&self, thread: &Thread, lane: u32) -> usize {
        let inside = lane * u32::from(self.stride);
        if let Some((sub, offset)) = self.indirect {
            let address = i32::from(thread.address(sub.into())) + i32::from(offset);
            return (address as u32).wrapping_add(inside) as usize & thread.grf_mask as usize;
        }
        let at = self.base + inside;
        if self.general { (at & thread.grf_mask) as usize } else { (at as usize).min(FILE_BYTES - 8) }
    }

    /// The destination at the place where it is now: an address register is read once, before the first write.
    #[inline]
    pub fn resolved(&self, thread: &Thread) -> Output {
        let mut fixed = *self;
        if self.indirect.is_some() {
            fixed.base = self.lane_offset(thread, 0) as u32;
            fixed.indirect = None;
            fixed.general = true;
        }
        fixed
    }

    /// Byte offset in the accumulators, if this is one.
    #[inline]
    pub fn accumulator(&self) -> Option<usize> {
        let is_named = !self.general && self.indirect.is_none() && self.store != Store::Null;
        (self.base as usize).checked_sub(ACC).filter(|at| is_named && *at < ACCUMULATORS)
    }

    /// Byte offset in acc0 of the first element of an implicit accumulator: that of the destination in its register. IGC's
    /// destinations begin at 0; oneDNN takes carries and low dwords from acc0 at the place of the destination. ISA-069.
    #[inline]
    pub fn accumulator_offset(&self) -> usize {
        if self.general && self.store != Store::Null { self.base as usize % REG } else { 0 }
    }

    /// Writes the low bits of a value to a lane's element.
    #[inline(always)]
    pub fn write(&self, thread: &mut Thread, lane: u32, value: u64) {
        if self.store == Store::Null {
            return;
        }
        let at = self.lane_offset(thread, lane);
        let size = self.ty.size() as usize;
        let wraps = (self.general || self.indirect.is_some()) && at + size > thread.grf_mask as usize + 1;
        let bytes = value.to_le_bytes();
        if wraps {
            for (index, byte) in bytes[..size].iter().enumerate() {
                thread.file[(at + index) & thread.grf_mask as usize] = *byte;
            }
            return;
        }
        match size {
            4 => thread.set_u32(at, value as u32),
            1 => {
                if let Some(into) = thread.file.get_mut(at) {
                    *into = value as u8;
                }
            }
            _ => {
                if let Some(into) = thread.file.get_mut(at..at + size) {
                    into.copy_from_slice(&bytes[..size]);
                }
            }
        }
    }

    /// A 32-bit lane as bits of this type, which is not BF; a float is F.
    #[inline(always)]
    pub fn narrowed(&self, value: u32, is_float: bool) -> u32 {
        match self.ty {
            Type::Hf if is_float => narrowed_half(value),
            _ => value,
        }
    }

    /// Writes 32-bit lanes, floats as F, to elements of this type.
    pub fn scatter(&self, thread: &mut Thread, values: &[u32], mask: u32, is_float: bool) {
        let fixed = self.resolved(thread);
        let last = (32 - mask.leading_zeros()).saturating_sub(1) as usize;
        let at = fixed.base as usize;
        let stride = usize::from(fixed.stride);
        let size = fixed.ty.size() as usize;
        let limit = if fixed.general { thread.grf_mask as usize + 1 } else { FILE_BYTES - 8 };
        let is_inside = at + last * stride + size <= limit;
        if is_inside && size <= 2 {
            for (lane, value) in values.iter().enumerate().filter(|(lane, _)| mask >> lane & 1 != 0) {
                match size {
                    2 => thread.set_u16(at + lane * stride, fixed.narrowed(*value, is_float) as u16),
                    _ => thread.file[at + lane * stride] = *value as u8,
                }
            }
            return;
        }
        for (lane, value) in (0..).zip(values) {
            if mask >> lane & 1 != 0 {
                fixed.write(thread, lane, u64::from(self.narrowed(*value, is_float)));
            }
        }
    }
}
