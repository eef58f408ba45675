// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_ATOMIC: read-modify-write of 4, 8 or 16 bytes (V8-133; Intel media-driver mhw_mi_hwcmd_xe_xpm.h, mhw_mi.h).

use arctic_sriov::number::low;

use super::access::address;
use super::streamer::{Flow, Streamer};
use super::{reg, word};
use crate::command::mi::fields;
use crate::memory::{Access, CellValue, Fault, Space};

/// GPR4: a dword or qword is returned in it, or the low qword of an octword.
const RETURN_LOW: u32 = reg::gpr(4);
/// GPR5: the high qword of an octword is returned in it.
const RETURN_HIGH: u32 = reg::gpr(5);

/// Operations ([`fields::ATOMIC_OPERATION`]).
mod operation {
    pub const AND: u32 = 0x01;
    pub const OR: u32 = 0x02;
    pub const XOR: u32 = 0x03;
    pub const MOVE: u32 = 0x04;
    pub const INCREMENT: u32 = 0x05;
    pub const DECREMENT: u32 = 0x06;
    pub const ADD: u32 = 0x07;
    pub const SUBTRACT: u32 = 0x08;
    pub const REVERSE_SUBTRACT: u32 = 0x09;
    pub const SIGNED_MAX: u32 = 0x0a;
    pub const SIGNED_MIN: u32 = 0x0b;
    pub const UNSIGNED_MAX: u32 = 0x0c;
    pub const UNSIGNED_MIN: u32 = 0x0d;
    pub const COMPARE_WRITE: u32 = 0x0e;
    /// Like [`DECREMENT`], but the new value is returned in GPR4: inferred from the operation of this name of the data
    /// port (Mesa: BRW_AOP_PREDEC).
    pub const PREDECREMENT: u32 = 0x0f;
}

/// Operand size in memory ([`fields::ATOMIC_SIZE`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Dword,
    Qword,
    Octword,
}

impl Size {
    fn new(size: u32) -> Option<Size> {
        match size {
            0 => Some(Size::Dword),
            1 => Some(Size::Qword),
            2 => Some(Size::Octword),
            _ => None,
        }
    }
}

/// Operands of two qwords each, low qword first. Only comparisons use the second operand.
#[derive(Clone, Copy, Debug, Default)]
struct Operands {
    first: [u64; 2],
    second: [u64; 2],
}

/// Returns the new memory value of a dword or qword operation, or `None` for an invalid operation.
fn operate(operation: u32, size: Size, old: u64, first: u64, second: u64) -> Option<u64> {
    let signed = |value: u64| if size == Size::Dword { i64::from(low(value).cast_signed()) } else { value as i64 };
    Some(match operation {
        operation::AND => old & first,
        operation::OR => old | first,
        operation::XOR => old ^ first,
        operation::MOVE => first,
        operation::INCREMENT => old.wrapping_add(1),
        operation::DECREMENT | operation::PREDECREMENT => old.wrapping_sub(1),
        operation::ADD => old.wrapping_add(first),
        operation::SUBTRACT => old.wrapping_sub(first),
        operation::REVERSE_SUBTRACT => first.wrapping_sub(old),
        operation::SIGNED_MAX if signed(old) > signed(first) => old,
        operation::SIGNED_MIN if signed(old) < signed(first) => old,
        operation::SIGNED_MAX | operation::SIGNED_MIN => first,
        operation::UNSIGNED_MAX => old.max(first),
        operation::UNSIGNED_MIN => old.min(first),
        operation::COMPARE_WRITE if old == first => second,
        operation::COMPARE_WRITE => old,
        _ => return None,
    })
}

impl Streamer<'_> {
    /// MI_ATOMIC. "CS stall" and the flush of a post-sync operation have no effect, because the parser executes in
    /// order.
    pub(super) fn atomic(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let header = word(words, 0);
        let operation = fields::ATOMIC_OPERATION.get_in(header);
        let Some(size) = Size::new(fields::ATOMIC_SIZE.get_in(header)) else { return Ok(Flow::Illegal) };
        let compares = operation == operation::COMPARE_WRITE;
        // Octwords have only a comparison (mhw_mi.h). That post-sync operations have neither comparisons of qwords nor
        // octwords, and return no data, is the model's choice: no source of the project states it.
        let unsupported = match size {
            Size::Dword => false,
            Size::Qword => compares && fields::POST_SYNC.is_set_in(header),
            Size::Octword => !compares || fields::POST_SYNC.is_set_in(header),
        };
        if unsupported {
            return Ok(Flow::Illegal);
        }
        let space = self.space(fields::GLOBAL.is_set_in(header));
        let mut at = address(word(words, 1), word(words, 2));
        if fields::ATOMIC_PARTITION.is_set(words) {
            at = self.partitioned(at);
        }
        let operands = self.operands(words, compares);
        let (first, second) = (operands.first[0], operands.second[0]);
        let old = match size {
            Size::Dword => {
                let (first, second) = (u64::from(low(first)), u64::from(low(second)));
                let new = |old| operate(operation, size, old, first, second);
                self.update::<u32>(space, at, new)?.map(|old| [old, 0])
            }
            Size::Qword => {
                let new = |old| operate(operation, size, old, first, second);
                self.update::<u64>(space, at & !7, new)?.map(|old| [old, 0])
            }
            Size::Octword => Some(self.compare_write(space, at & !15, operands)?),
        };
        let Some([old, high]) = old else { return Ok(Flow::Illegal) };
        self.loops().effect();
        let old = if operation == operation::PREDECREMENT { old.wrapping_sub(1) } else { old };
        if fields::RETURN_DATA.is_set_in(header) && !fields::POST_SYNC.is_set_in(header) {
            match size {
                Size::Dword => self.set_own(RETURN_LOW, low(old)),
                Size::Qword => self.set_own64(RETURN_LOW, old),
                Size::Octword => {
                    self.set_own64(RETURN_LOW, old);
                    self.set_own64(RETURN_HIGH, high);
                }
            }
        }
        Ok(Flow::Next)
    }

    /// Returns the operands. They are in GPR0 and GPR1, and GPR2 and GPR3, or in the command from the fourth dword on,
    /// with alternating dwords. A post-sync operation always has its operands in the command: two dwords for a
    /// comparison, otherwise one qword.
    #[allow(clippy::arithmetic_side_effects, reason = "`n` is at most 4, and the registers lie in an engine's block")]
    fn operands(&self, words: &[u32], compares: bool) -> Operands {
        let dword = |n: usize| u64::from(word(words, n));
        if fields::POST_SYNC.is_set_in(word(words, 0)) {
            if compares {
                return Operands { first: [dword(3), 0], second: [dword(4), 0] };
            }
            return Operands { first: [dword(4) << 32 | dword(3), 0], ..Operands::default() };
        }
        if fields::INLINE_DATA.is_set_in(word(words, 0)) {
            let alternating = |n: usize| [dword(n + 2) << 32 | dword(n), dword(n + 6) << 32 | dword(n + 4)];
            return Operands { first: alternating(3), second: alternating(4) };
        }
        let gprs = |n: u32| [n, n + 1].map(|n| self.registers.get64(reg::gpr(n)));
        Operands { first: gprs(0), second: gprs(2) }
    }

    /// Executes an operation on the cell at `at`, which is aligned. Returns the old value, or `None` for a reserved
    /// operation. An operation on guest memory that is accessed by messages is counted.
    ///
    /// # Errors
    /// As [`Gam::update`](crate::memory::Gam::update).
    fn update<T: CellValue>(
        &mut self,
        space: Space,
        at: u64,
        new: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>, Fault> {
        let Some(updated) = self.gam.update::<T>(space, at, &mut self.running.begun_atomic, new)? else {
            return Ok(None);
        };
        if updated.by_messages {
            self.counters.remote_atomics = self.counters.remote_atomics.saturating_add(1);
        }
        Ok(Some(updated.old))
    }

    /// Compares and writes the 16 bytes at `at`, which is aligned to 16. Returns the old value. Each qword of mapped
    /// memory is accessed atomically, but the operation as a whole is not atomic, because 16-byte atomics are not
    /// available on shared host memory.
    ///
    /// # Errors
    /// If the address has no translation for a write, or an access fails.
    #[allow(clippy::arithmetic_side_effects, reason = "an address has 48 bits")]
    fn compare_write(&mut self, space: Space, at: u64, operands: Operands) -> Result<[u64; 2], Fault> {
        // The page must be writable regardless of the result of the comparison, as for the other sizes.
        self.gam.check(space, at, Access::Write)?;
        let old = [self.gam.read_u64(space, at)?, self.gam.read_u64(space, at + 8)?];
        if old == operands.first {
            self.store64(space, at, operands.second[0])?;
            self.store64(space, at + 8, operands.second[1])?;
        }
        self.counters.split_atomics = self.counters.split_atomics.saturating_add(1);
        Ok(old)
    }
}
