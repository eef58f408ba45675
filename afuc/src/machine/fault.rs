// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What stops a machine.

use super::Processor;

/// Why a machine stopped with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// The word at PC is no instruction.
    #[error("word {0:08x} is no instruction")]
    Illegal(u32),
    /// PC is not in the image.
    #[error("there is no word at PC")]
    OutsideImage,
    /// A packet has no handler.
    #[error("possible opcode={0:#04x}: the packet has no handler")]
    Opcode(u8),
    /// A packet header has a wrong type, reserved bits or parity.
    #[error("packet header {0:08x} is wrong")]
    Header(u32),
    /// `$data` was read, but the queue is empty.
    #[error("the packet needs more words than queue {0} has")]
    QueueEmpty(u32),
    /// A register that CP_PROTECT protects was written through `$usraddr`.
    #[error("register {0:#x} is protected")]
    Protected(u32),
    /// A ninth call.
    #[error("the call stack has eight entries")]
    StackOverflow,
    /// A return without a call.
    #[error("return without a call")]
    StackUnderflow,
    /// A taken branch in the delay slot of a taken branch (AFC-028).
    #[error("the branch and the one in its delay slot are both taken")]
    BothTaken,
    /// Memory that is not mapped was read or written.
    #[error("address {0:#x} is not mapped")]
    Unmapped(u64),
    /// More memory was accessed than a machine may have.
    #[error("the machine has the {} MiB of memory that it may have", super::memory::LIMIT_PAGES / 256)]
    MemoryFull,
    /// An address is not a multiple of 4.
    #[error("address {0:#x} is not a multiple of 4")]
    Unaligned(u64),
    /// BV or LPAC was started at an address where the image has no code.
    #[error("the image has no code at {0:#x}, where a processor is to start")]
    Start(u64),
    /// One packet took more instructions than the limit: a poll that nothing ends, or entries into `waitin` that take no
    /// word of the stream (AFC-040).
    #[error("the packet's handler did not end")]
    Endless,
    /// More words were taken than a stream has: a buffer that enters itself.
    #[error("the stream did not end after {} million words: a buffer enters itself", super::STREAM_WORDS >> 20)]
    EndlessStream,
}

impl FaultKind {
    /// The bit of CP_INTERRUPT_STATUS; LPAC and BV have separate bits (AFC-026).
    pub const fn interrupt_bit(self, processor: Processor) -> u32 {
        let (first, other) = match self {
            Self::Opcode(_) | Self::Header(_) => (0, 0),
            Self::Unmapped(_) | Self::Unaligned(_) | Self::MemoryFull => (2, 2),
            Self::Protected(_) => (4, 3),
            Self::Illegal(_) | Self::OutsideImage => (7, 4),
            _ => (1, 1),
        };
        match processor {
            Processor::First => first,
            Processor::Lpac => 8 + other,
            Processor::Bv => 13 + other,
        }
    }
}

/// A fault with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{processor}at PC {pc:#06x}, packet {header:08x} at {address:#x}: {kind}")]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// The processor.
    pub processor: Processor,
    /// Word of the instruction, from the start of the processor's section.
    pub pc: u32,
    /// Header of the current packet; 0 during bootstrap.
    pub header: u32,
    /// Address of the header.
    pub address: u64,
}

/// Why [`super::Machine::run`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The ring buffer is empty and the firmware of all processors waits for a packet.
    Idle,
    /// The number of instructions was executed.
    Budget,
    /// The machine cannot go on.
    Fault(Fault),
}
