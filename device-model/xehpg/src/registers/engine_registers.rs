// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The registers of one engine, by offset from its base.

use arctic_sriov::number::{high, low};

use super::RegisterFile;
use super::engine_fields::EngineFields;
use crate::topology::{ENGINE_BLOCK, EngineId};

/// A view of the registers that every engine has, on one engine. Offsets are those of
/// `engine_offsets`, from the engine's base. As in [`RegisterFile`], accesses have no side
/// effects, and a register that does not exist reads 0.
#[derive(Clone, Copy)]
pub struct EngineRegisters<'r> {
    file: &'r RegisterFile,
    base: u32,
}

impl RegisterFile {
    /// Returns the view of the registers of `engine`.
    #[inline]
    pub fn engine(&self, engine: EngineId) -> EngineRegisters<'_> {
        EngineRegisters { file: self, base: self.engines().info(engine).mmio_base }
    }

    /// Sets the registers of one engine's block to their reset values.
    pub fn reset_engine(&self, engine: EngineId) {
        let registers = self.engine(engine);
        self.reset_range(registers.offset(0)..registers.offset(ENGINE_BLOCK));
    }
}

impl EngineRegisters<'_> {
    /// Returns the offset in GTTMMADR of the register at `own` from the base. The sum wraps, to an offset that no engine
    /// has.
    #[inline]
    pub fn offset(self, own: u32) -> u32 {
        self.base.wrapping_add(own)
    }

    /// Returns the offset from the base of the register at `offset` in GTTMMADR. Below the base it wraps, to an offset
    /// that is not in an engine's block.
    #[inline]
    pub fn own(self, offset: u32) -> u32 {
        offset.wrapping_sub(self.base)
    }

    /// Returns the value of a register.
    #[inline]
    pub fn get(self, own: u32) -> u32 {
        self.file.value(self.offset(own))
    }

    /// Sets the value of a register, without write mask.
    #[inline]
    pub fn set(self, own: u32, value: u32) {
        self.file.set(self.offset(own), value);
    }

    /// Returns the bit fields of a register.
    #[inline]
    pub fn fields<R: EngineFields>(self) -> R {
        R::from(self.get(R::OWN))
    }

    /// Sets the bit fields of a register.
    #[inline]
    pub fn set_fields<R: EngineFields>(self, value: R) {
        self.set(R::OWN, value.into());
    }

    /// Returns the value of a register of two dwords, of which the low one is at `own`.
    #[inline]
    pub fn get64(self, own: u32) -> u64 {
        u64::from(self.get(own.wrapping_add(4))) << 32 | u64::from(self.get(own))
    }

    /// Sets the value of a register of two dwords: the low one, then the high one.
    #[inline]
    pub fn set64(self, own: u32, value: u64) {
        self.set(own, low(value));
        self.set(own.wrapping_add(4), high(value));
    }

    /// Atomically sets bits. Returns the previous value.
    pub fn set_bits(self, own: u32, bits: u32) -> u32 {
        self.file.set_bits(self.offset(own), bits)
    }

    /// Atomically clears bits. Returns the previous value.
    pub fn clear_bits(self, own: u32, bits: u32) -> u32 {
        self.file.clear_bits(self.offset(own), bits)
    }

    /// Atomically replaces the value with the result of `new`. Returns the old and the new value.
    pub fn update(self, own: u32, new: impl Fn(u32) -> u32) -> (u32, u32) {
        self.file.update(self.offset(own), new)
    }
}
