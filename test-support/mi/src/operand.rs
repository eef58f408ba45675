// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operands of commands: addresses, registers, comparisons, values that flushes write.

/// Returns bits 31:0.
pub const fn low(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}

/// Returns bits 63:32.
pub const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

/// An address in the GGTT or in the PPGTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// In the GGTT.
    Global(u64),
    /// In the PPGTT of the context.
    Process(u64),
}

pub use At::{Global, Process};

impl At {
    /// Returns an address in the GGTT if `global`, else in the PPGTT.
    pub const fn new(global: bool, address: u64) -> Self {
        if global { Global(address) } else { Process(address) }
    }

    const fn address(self) -> u64 {
        match self {
            Global(address) | Process(address) => address,
        }
    }

    pub(crate) const fn low(self) -> u32 {
        low(self.address())
    }

    pub(crate) const fn high(self) -> u32 {
        high(self.address())
    }

    /// Returns `bit` for an address in the GGTT.
    pub(crate) const fn global(self, bit: u32) -> u32 {
        match self {
            Global(_) => bit,
            Process(_) => 0,
        }
    }

    /// Returns `bit` for an address in the PPGTT.
    pub(crate) const fn process(self, bit: u32) -> u32 {
        bit ^ self.global(bit)
    }
}

/// A register operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reg {
    /// By its offset in GTTMMADR.
    Mmio(u32),
    /// By its offset from the base of the engine that executes the command.
    Own(u32),
}

impl Reg {
    pub(crate) const fn offset(self) -> u32 {
        match self {
            Reg::Mmio(offset) | Reg::Own(offset) => offset,
        }
    }

    /// Returns `bit` for an offset from the engine's base.
    pub(crate) const fn relative(self, bit: u32) -> u32 {
        match self {
            Reg::Mmio(_) => 0,
            Reg::Own(_) => bit,
        }
    }
}

/// Comparison of a semaphore wait or a conditional batch end: memory (left) with the command's data (right).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Compare {
    /// Memory > data.
    Greater = 0,
    /// Memory >= data.
    GreaterOrEqual = 1,
    /// Memory < data.
    Less = 2,
    /// Memory <= data.
    LessOrEqual = 3,
    /// Memory == data.
    Equal = 4,
    /// Memory != data.
    NotEqual = 5,
}

impl Compare {
    /// All comparisons, by their encoding.
    pub const ALL: [Compare; 6] = [
        Compare::Greater,
        Compare::GreaterOrEqual,
        Compare::Less,
        Compare::LessOrEqual,
        Compare::Equal,
        Compare::NotEqual,
    ];

    pub(crate) const fn field(self) -> u32 {
        (self as u32) << 12
    }
}

/// The 64-bit value that a flush writes after completion of all preceding work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostSync {
    /// This value.
    Immediate(u64),
    /// The engine's timestamp.
    Timestamp,
}

impl PostSync {
    /// The two-bit field [15:14] that MI_FLUSH_DW and PIPE_CONTROL have in common, shifted into position.
    pub(crate) const fn field(self) -> u32 {
        match self {
            PostSync::Immediate(_) => 1 << 14,
            PostSync::Timestamp => 3 << 14,
        }
    }

    pub(crate) const fn immediate(self) -> u64 {
        match self {
            PostSync::Immediate(value) => value,
            PostSync::Timestamp => 0,
        }
    }
}
