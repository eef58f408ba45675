// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Why a thread cannot go on.

use super::surface::Surface;

/// A fault of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Reason.
    pub kind: FaultKind,
    /// Index of the instruction in the code.
    pub instruction: u32,
    /// Lane, if it concerns one.
    pub lane: Option<u32>,
    /// The access that failed, if it was one.
    pub access: Option<FaultAccess>,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes.
    Atomic,
}

/// An access that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultAccess {
    /// What it does.
    pub kind: AccessKind,
    /// What the address is relative to; `None` for shared local memory.
    pub surface: Option<Surface>,
    /// Address in the message; of a texel or a row, the address in a linear image; 0 if the surface
    /// itself is at fault.
    pub address: u64,
    /// Virtual address that has failed, if the memory has named it.
    pub virtual_address: Option<u64>,
}

/// Why an access of a [`super::memory::Memory`] fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFault {
    /// Reason.
    pub kind: FaultKind,
    /// Virtual address that has failed.
    pub address: Option<u64>,
}

impl From<FaultKind> for MemoryFault {
    fn from(kind: FaultKind) -> MemoryFault {
        MemoryFault { kind, address: None }
    }
}

/// Why an instruction cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FaultKind {
    /// ISA-025.
    #[error("the instruction is illegal")]
    Illegal,
    /// ISA-026.
    #[error("no instruction has this opcode")]
    Opcode,
    /// No instruction has these bytes, although one has their opcode.
    #[error("the bytes are no instruction")]
    Undecodable,
    /// ISA-164, ISA-190.
    #[error("the instruction is not supported")]
    Unsupported,
    /// A register that the thread does not have.
    #[error("a register does not exist")]
    Register,
    /// The types of the operands do not occur together.
    #[error("the types of the operands are not supported")]
    Types,
    /// A message that is not supported.
    #[error("the message is not supported")]
    Message,
    /// The lengths in a descriptor do not fit the message.
    #[error("the lengths in the descriptor do not fit the message")]
    Length,
    /// A branch to an address that is no instruction.
    #[error("the target of a branch is no instruction")]
    Target,
    /// The thread runs past the last instruction.
    #[error("the thread runs past the end of the code")]
    End,
    /// More code than the program may have.
    #[error("the thread comes to more code than is translated")]
    TooMuchCode,
    /// ISA-243.
    #[error("a named barrier, or one with other producers than consumers, is not supported")]
    Barrier,
    /// An exception that is enabled, without a system routine. EU-060.
    #[error("an exception is enabled, and there is no system routine")]
    Exception,
    /// An address outside all buffers.
    #[error("the address is outside all buffers")]
    Address,
    /// An atomic operation at an address that is not aligned.
    #[error("the address of an atomic operation is not aligned")]
    Alignment,
    /// A surface or sampler that does not exist.
    #[error("the surface or sampler does not exist")]
    Surface,
    /// An image that the implementor of memory has no access to.
    #[error("the tiling, compression or format of the image is not supported")]
    Image,
}

impl FaultKind {
    /// True if the hardware has no instruction with this opcode: that is an exception if cr0.1 enables it, and is passed over
    /// otherwise. All others are instructions that the interpreter cannot execute. EU-060.
    #[inline]
    pub(super) fn is_illegal_opcode(self) -> bool {
        matches!(self, FaultKind::Illegal | FaultKind::Opcode)
    }
}
