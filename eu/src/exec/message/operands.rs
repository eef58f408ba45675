// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What all messages have: descriptors, the registers of payload and response, and the lanes that they are for.

use crate::exec::environment::Environment;
use crate::exec::fault::{AccessKind, FaultAccess, FaultKind, MemoryFault};
use crate::exec::memory::Surface;
use crate::exec::thread::{A0, REG, SR, Thread};
use crate::isa::descriptor::{LENGTH, RESPONSE};
use crate::isa::{Descriptor, Instruction, Place, Source};

/// A fault of a message. Boxed, because each access returns a place for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageFault(Box<FaultPlace>);

/// What a fault of a message is, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlace {
    /// Reason.
    pub kind: FaultKind,
    /// Lane, if it concerns one.
    pub lane: Option<u32>,
    /// The access that failed, if it was one.
    pub access: Option<FaultAccess>,
}

impl From<FaultKind> for MessageFault {
    #[cold]
    fn from(kind: FaultKind) -> MessageFault {
        MessageFault(Box::new(FaultPlace { kind, lane: None, access: None }))
    }
}

impl MessageFault {
    /// The fault of an access.
    #[cold]
    pub fn of_access(fault: MemoryFault, kind: AccessKind, surface: Surface, address: u64) -> MessageFault {
        let access = FaultAccess { kind, surface: Some(surface), address, virtual_address: fault.address };
        MessageFault::with_access(fault.kind, access)
    }

    /// The fault of an access that is not made.
    #[cold]
    pub fn with_access(kind: FaultKind, access: FaultAccess) -> MessageFault {
        MessageFault(Box::new(FaultPlace { kind, lane: None, access: Some(access) }))
    }

    /// The fault in this lane.
    #[cold]
    pub fn in_lane(mut self, lane: u32) -> MessageFault {
        self.0.lane = Some(lane);
        self
    }

    /// What it is, and where.
    pub fn place(&self) -> &FaultPlace {
        &self.0
    }
}

/// The lanes of a message.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    /// Number of lanes of the instruction.
    pub size: u8,
    /// First channel.
    pub channel: u8,
    /// Lanes are enabled regardless of the execution mask.
    pub no_mask: bool,
    /// Lanes that are enabled.
    pub enabled: u32,
    /// Index of the instruction.
    pub instruction: u32,
}

/// A message that a thread sends: what it works on, and what it reaches.
pub struct Sent<'s, 'e> {
    pub operands: &'s Operands,
    pub thread: &'s mut Thread,
    pub lanes: Lanes,
    pub environment: &'s mut Environment<'e>,
}

/// Registers of a message beside the addresses, as far as the instruction has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    /// There is a destination.
    pub dst: bool,
    /// Length of source 1; `None` if it is in a register.
    pub data: Option<u32>,
}

/// Descriptors and registers of a message.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    pub(super) desc: Descriptor,
    ex_desc: Descriptor,
    exbso: bool,
    /// Byte offsets of the operands in the register file; `None` for null.
    pub(super) dst: Option<u32>,
    pub(super) src0: u32,
    pub(super) src1: Option<u32>,
    src1_length: u8,
}

impl Operands {
    /// Translates the operands of an instruction. `None` for a register that does not exist.
    pub fn new(from: &Instruction, registers: u32) -> Option<Operands> {
        let base = |place: Place| match place {
            Place::Grf { reg, .. } if u32::from(reg) < registers => Some(Some(u32::from(reg) * REG as u32)),
            place if place.is_null() => Some(None),
            _ => None,
        };
        let source = |index: usize| match from.src[index] {
            Source::Reg { place, .. } => base(place),
            Source::Imm { .. } => None,
        };
        let src1 = source(1)?;
        Some(Operands {
            desc: from.send.desc,
            ex_desc: from.send.ex_desc,
            exbso: from.send.exbso,
            dst: base(from.dst.place)?,
            src0: source(0)?.unwrap_or(0),
            src1,
            src1_length: from.send.src1_length,
        })
    }

    pub(super) fn given(&self) -> Given {
        let data = match self.ex_desc {
            _ if self.src1.is_none() => Some(0),
            Descriptor::Reg(_) if !self.exbso => None,
            _ => Some(u32::from(self.src1_length)),
        };
        Given { dst: self.dst.is_some(), data }
    }

    /// The extended descriptor's value. ISA-020.
    #[inline]
    pub fn extended(&self, thread: &Thread) -> u32 {
        match self.ex_desc {
            Descriptor::Imm(value) => value,
            Descriptor::Reg(sub) => thread.u32(A0 + usize::from(sub) * 4),
        }
    }

    /// Byte offset of the surface state in a register or immediate. EU-040, EU-041: with ExBSO bits 31:6 of the
    /// register are bytes, without it bits 31:12 are the offset divided by 64.
    #[inline]
    pub fn state_offset(&self, thread: &Thread) -> u32 {
        let value = self.extended(thread);
        if self.exbso { value & !63 } else { value >> 12 << 6 }
    }

    /// The surface of a data-port message with this binding table index. EU-040.
    #[inline]
    pub fn surface(&self, thread: &Thread, index: u8) -> Option<Surface> {
        match index {
            0xff | 0xfd => Some(Surface::Stateless),
            0xfe => None,
            0xfc => Some(Surface::Bindless(self.state_offset(thread))),
            _ => Some(Surface::Binding(index)),
        }
    }

    /// Length of the response and of source 0 in registers.
    #[inline]
    pub fn lengths(&self, thread: &Thread) -> (u32, u32) {
        let desc = match self.desc {
            Descriptor::Imm(value) => value,
            Descriptor::Reg(_) => thread.u32(A0),
        };
        (RESPONSE.get32(desc), LENGTH.get32(desc))
    }

    /// Length of source 1 in registers. ISA-020.
    #[inline]
    pub fn second_length(&self, thread: &Thread) -> u32 {
        self.given().data.unwrap_or_else(|| self.extended(thread) >> 6 & 31)
    }

    /// Length of the payload, which is source 0 and then source 1. ISA-200.
    #[inline]
    pub fn payload_length(&self, thread: &Thread) -> u32 {
        self.lengths(thread).1 + self.second_length(thread)
    }

    /// True if registers of the response may be ones of the payload.
    pub fn overlap(&self) -> bool {
        let Some(dst) = self.dst else { return false };
        let Descriptor::Imm(desc) = self.desc else { return true };
        let end = dst + RESPONSE.get32(desc) * REG as u32;
        let meets = |start: u32, registers: u32| dst < start + registers * REG as u32 && start < end;
        let data = |src1| self.given().data.is_none_or(|registers| meets(src1, registers));
        meets(self.src0, LENGTH.get32(desc)) || self.src1.is_some_and(data)
    }

    /// A fault if the payload or the response has fewer registers than the message needs. ISA-200. A response to null
    /// is dropped.
    #[inline]
    pub fn check_lengths(&self, thread: &Thread, payload: u32, response: u32) -> Result<(), MessageFault> {
        let (available, _) = self.lengths(thread);
        let short = self.payload_length(thread) < payload || self.dst.is_some() && available < response;
        if short { Err(FaultKind::Length.into()) } else { Ok(()) }
    }

    /// Byte offset in the file of dword `index` of the payload from its register `register` on.
    #[inline]
    pub fn payload(&self, thread: &Thread, register: u32, index: u32) -> usize {
        let (register, index) = (register + index / 8, index % 8);
        let (_, length) = self.lengths(thread);
        let base = match self.src1 {
            Some(src1) if register >= length => src1 + (register - length) * REG as u32,
            _ => self.src0 + register * REG as u32,
        };
        ((base + index * 4) & thread.grf_mask) as usize
    }

    /// As [`Operands::payload`], of byte `index`.
    #[inline]
    pub fn payload_byte(&self, thread: &Thread, register: u32, index: u32) -> usize {
        self.payload(thread, register, index / 4) + index as usize % 4
    }
}

/// The hardware thread's number without the bits that are always 0. EU-032, EU-041.
#[inline]
pub fn thread_number(sr0: u32) -> u32 {
    sr0 & 7 | sr0 >> 1 & 0x18 | sr0 >> 2 & 0xfe0
}

/// Number of the thread that executes.
#[inline]
pub fn number(thread: &Thread) -> u32 {
    thread_number(thread.u32(SR))
}
