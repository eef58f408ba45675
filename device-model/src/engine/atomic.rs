//! MI_ATOMIC: read-modify-write of 4, 8 or 16 bytes (V8-133).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use vm_memory::VolatileMemory;

use super::access::address;
use super::reg;
use super::streamer::{Flow, Streamer};
use crate::command::mi::fields;
use crate::memory::{Fault, Space};

/// Header bit 22: the address is global.
const GGTT: u32 = fields::GLOBAL.mask();
/// Header bit 18: the operands are in the command.
const INLINE: u32 = fields::INLINE_DATA.mask();
/// Header bit 16: the old value goes to GPR0 (and GPR1).
const RETURN: u32 = fields::RETURN_DATA.mask();
/// Compare and write, of 16 bytes.
const COMPARE_WRITE_16: u32 = 0x4e;

/// What memory holds after an operation of 8 * `bytes` bits; `None` where the code is none. Codes 0x0x are of four
/// bytes, 0x2x of eight (IGT: MI_ATOMIC_INC 5, DEC 6, ADD 7; i915: MI_ATOMIC_MOVE 4).
fn operate(opcode: u32, bytes: u32, old: u64, first: u64, second: u64) -> Option<u64> {
    let signed = |value: u64| if bytes == 4 { i64::from(value as i32) } else { value as i64 };
    Some(match opcode & 0x1f {
        0x01 => old & first,
        0x02 => old | first,
        0x03 => old ^ first,
        0x04 => first,
        0x05 => old.wrapping_add(1),
        0x06 | 0x0f => old.wrapping_sub(1),
        0x07 => old.wrapping_add(first),
        0x08 => old.wrapping_sub(first),
        0x09 => first.wrapping_sub(old),
        0x0a => {
            if signed(old) > signed(first) {
                old
            } else {
                first
            }
        }
        0x0b => {
            if signed(old) < signed(first) {
                old
            } else {
                first
            }
        }
        0x0c => old.max(first),
        0x0d => old.min(first),
        0x0e => {
            if old == first {
                second
            } else {
                old
            }
        }
        _ => return None,
    })
}

impl Streamer<'_> {
    /// MI_ATOMIC. Without inline data the first operand is GPR0 (GPR0 and 1 for 16 bytes), the second GPR2 (and 3).
    pub(super) fn atomic(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let header = words[0];
        let opcode = header >> 8 & 0xff;
        let space = self.space(header & GGTT != 0);
        let at = address(words[1], words[2]);
        let dword = |n: usize| u64::from(words.get(n).copied().unwrap_or(0));
        let [first, first_high, second, second_high] = if header & INLINE != 0 {
            [
                dword(5) << 32 | dword(3),
                dword(9) << 32 | dword(7),
                dword(6) << 32 | dword(4),
                dword(10) << 32 | dword(8),
            ]
        } else {
            [0, 1, 2, 3].map(|n| self.own64(reg::GPR + 8 * n))
        };
        let (old, high) = match opcode {
            0x00..=0x1f => (self.atomic32(space, at, opcode, first, second)?, None),
            0x20..=0x3f => (self.atomic64(space, at & !7, opcode, first, second)?, None),
            COMPARE_WRITE_16 => {
                let at = at & !15;
                let old = self.gam.read_u64(space, at)?;
                let high = self.gam.read_u64(space, at + 8)?;
                if (old, high) == (first, first_high) {
                    self.store64(space, at, second)?;
                    self.store64(space, at + 8, second_high)?;
                }
                self.counters.split_atomics += 1;
                (Some(old), Some(high))
            }
            _ => (None, None),
        };
        let Some(old) = old else { return Ok(Flow::Illegal) };
        self.loops().effect();
        if header & RETURN != 0 {
            match opcode {
                0x00..=0x1f => self.set_own(reg::GPR, old as u32),
                _ => self.set_own64(reg::GPR, old),
            }
            if let Some(high) = high {
                self.set_own64(reg::GPR + 8, high);
            }
        }
        Ok(Flow::Next)
    }

    /// The old dword, or `None` for a reserved operation.
    fn atomic32(&mut self, space: Space, at: u64, opcode: u32, a: u64, b: u64) -> Result<Option<u64>, Fault> {
        let (a, b) = (a & 0xffff_ffff, b & 0xffff_ffff);
        let new = |old: u32| operate(opcode, 4, u64::from(old), a, b).map(|value| value as u32);
        if let Some(cell) = self.cell(space, at, 4)?
            && let Ok(cell) = cell.get_atomic_ref::<AtomicU32>(0)
        {
            return Ok(cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, new).ok().map(u64::from));
        }
        let old = self.gam.read_u32(space, at)?;
        let Some(value) = new(old) else { return Ok(None) };
        self.store(space, at, value)?;
        Ok(Some(u64::from(old)))
    }

    /// The old qword, or `None` for a reserved operation.
    fn atomic64(&mut self, space: Space, at: u64, opcode: u32, a: u64, b: u64) -> Result<Option<u64>, Fault> {
        let new = |old: u64| operate(opcode, 8, old, a, b);
        if let Some(cell) = self.cell(space, at, 8)?
            && let Ok(cell) = cell.get_atomic_ref::<AtomicU64>(0)
        {
            return Ok(cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, new).ok());
        }
        let old = self.gam.read_u64(space, at)?;
        let Some(value) = new(old) else { return Ok(None) };
        self.store64(space, at, value)?;
        Ok(Some(old))
    }
}
