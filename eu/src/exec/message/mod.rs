// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages (groups N to R of the document on the ISA): descriptors are decoded once, at translation, if they are
//! immediate.

mod color;
mod data_port;
pub(super) mod gateway;
mod lsc;
mod sampler;
mod typed;

use super::memory::{Access, Memory, Surface};
use super::thread::{A0, REG, SR, Thread};
use super::uop::{FaultKind, Uop};
use crate::isa::descriptor::{LENGTH, RESPONSE};
use crate::isa::{Descriptor, Instruction, Place, Source};

/// Barriers and shared local memory of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Shared local memory.
    pub slm: Vec<u8>,
    /// Arrivals at the barrier since it was complete.
    pub arrived: u32,
    /// Times that the barrier was complete.
    pub completed: u32,
}

/// What a thread's messages reach.
pub struct Environment<'e> {
    /// Memory of the dispatch.
    pub memory: &'e dyn Memory,
    /// State of the group.
    pub group: &'e mut Group,
    /// Accesses outside of a surface.
    pub outside: u64,
    /// Instruction and lane of the first of them.
    pub first_outside: Option<(u32, u32)>,
}

/// A fault of a message, and the lane if it concerns one.
pub type MessageFault = (FaultKind, Option<u32>);

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Shared function.
    pub sfid: u8,
    /// Operation; `None` if the descriptor is in a register.
    operation: Option<Result<Operation, FaultKind>>,
    desc: Descriptor,
    ex_desc: Descriptor,
    exbso: bool,
    /// Byte offsets of the operands in the register file; `None` for null.
    dst: Option<u32>,
    src0: u32,
    src1: Option<u32>,
    src1_length: u8,
    /// Last message of the thread.
    pub eot: bool,
}

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Lsc(lsc::Lsc),
    Block(data_port::Block),
    Scratch(data_port::Scratch),
    Scattered(data_port::Scattered),
    Typed(typed::TypedAccess),
    Media(typed::MediaBlock),
    Sampler(sampler::Sample),
    Barrier,
    End,
    Fence { response: u32 },
}

/// Registers of a message beside the addresses, as far as the instruction has them.
#[derive(Clone, Copy, Debug)]
struct Operands {
    /// There is a destination.
    dst: bool,
    /// Length of source 1; `None` if it is in a register.
    data: Option<u32>,
}

fn decode(sfid: u8, desc: u32, size: u8, operands: Operands) -> Result<Operation, FaultKind> {
    match sfid {
        2 => sampler::decode(desc).map(Operation::Sampler),
        3 => gateway::decode(desc),
        10 => data_port::decode_0(desc),
        12 => data_port::decode_1(desc, size),
        13..=15 => lsc::decode(sfid, desc, size, operands),
        _ => Err(FaultKind::Message),
    }
}

impl Message {
    /// Translates a message of an instruction. `None` for a register that does not exist.
    pub fn new(from: &Instruction, registers: u32) -> Option<Message> {
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
        let mut message = Message {
            sfid: from.modifier,
            operation: None,
            desc: from.send.desc,
            ex_desc: from.send.ex_desc,
            exbso: from.send.exbso,
            dst: base(from.dst.place)?,
            src0: source(0)?.unwrap_or(0),
            src1,
            src1_length: from.send.src1_length,
            eot: from.saturate,
        };
        if let Descriptor::Imm(desc) = message.desc {
            message.operation = Some(decode(message.sfid, desc, from.size, message.operands()));
        }
        Some(message)
    }

    fn operands(&self) -> Operands {
        let data = match self.ex_desc {
            _ if self.src1.is_none() => Some(0),
            Descriptor::Reg(_) if !self.exbso => None,
            _ => Some(u32::from(self.src1_length)),
        };
        Operands { dst: self.dst.is_some(), data }
    }

    /// The extended descriptor's value. ISA-020.
    fn extended(&self, thread: &Thread) -> u32 {
        match self.ex_desc {
            Descriptor::Imm(value) => value,
            Descriptor::Reg(sub) => thread.u32(A0 + usize::from(sub) * 4),
        }
    }

    /// Byte offset of the surface state in a register or immediate. EU-040, EU-041: with ExBSO bits 31:6 of the
    /// register are bytes, without it bits 31:12 are the offset divided by 64.
    fn state_offset(&self, thread: &Thread) -> u32 {
        let value = self.extended(thread);
        if self.exbso { value & !63 } else { value >> 12 << 6 }
    }

    /// The surface of a data-port message with this binding table index. EU-040.
    fn surface(&self, thread: &Thread, index: u8) -> Option<Surface> {
        match index {
            0xff | 0xfd => Some(Surface::Stateless),
            0xfe => None,
            0xfc => Some(Surface::Bindless(self.state_offset(thread))),
            _ => Some(Surface::Binding(index)),
        }
    }

    /// Executes the message.
    pub fn execute(
        &self,
        thread: &mut Thread,
        uop: &Uop,
        environment: &mut Environment<'_>,
    ) -> Result<(), MessageFault> {
        let operation = match &self.operation {
            Some(operation) => *operation,
            None => decode(self.sfid, thread.u32(A0), uop.size, self.operands()),
        };
        let enabled = uop.enabled(thread);
        match operation.map_err(|kind| (kind, None))? {
            Operation::Lsc(lsc) => lsc::execute(&lsc, self, thread, uop, enabled, environment),
            Operation::Block(block) => data_port::block(&block, self, thread, uop, environment),
            Operation::Scratch(scratch) => data_port::scratch(&scratch, self, thread, uop, enabled, environment),
            Operation::Scattered(scattered) => {
                data_port::scattered(&scattered, self, thread, uop, enabled, environment)
            }
            Operation::Typed(message) => typed::execute(&message, self, thread, uop, enabled, environment),
            Operation::Media(media) => typed::media(&media, self, thread, uop, environment),
            Operation::Sampler(sample) => sampler::execute(&sample, self, thread, uop, enabled, environment),
            Operation::Barrier => gateway::signal(self, thread, environment),
            Operation::Fence { response } => {
                std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
                if let Some(dst) = self.dst {
                    for index in 0..response {
                        let at = (dst + index * REG as u32) & thread.grf_mask;
                        thread.file[at as usize..at as usize + REG].fill(0);
                    }
                }
                Ok(())
            }
            Operation::End => Ok(()),
        }
    }

    /// Length of the response and of source 0 in registers.
    fn lengths(&self, thread: &Thread) -> (u32, u32) {
        let desc = match self.desc {
            Descriptor::Imm(value) => value,
            Descriptor::Reg(_) => thread.u32(A0),
        };
        (RESPONSE.get32(desc), LENGTH.get32(desc))
    }

    /// Length of source 1 in registers. ISA-020.
    fn second_length(&self, thread: &Thread) -> u32 {
        self.operands().data.unwrap_or_else(|| self.extended(thread) >> 6 & 31)
    }

    /// Length of the payload, which is source 0 and then source 1. ISA-200.
    fn payload_length(&self, thread: &Thread) -> u32 {
        self.lengths(thread).1 + self.second_length(thread)
    }

    /// A fault if the payload or the response has fewer registers than the message needs. ISA-200. A response to null
    /// is dropped.
    fn check_lengths(&self, thread: &Thread, payload: u32, response: u32) -> Result<(), MessageFault> {
        let (available, _) = self.lengths(thread);
        let short = self.payload_length(thread) < payload || self.dst.is_some() && available < response;
        if short { Err((FaultKind::Length, None)) } else { Ok(()) }
    }

    /// Byte offset in the file of dword `index` of the payload from its register `register` on.
    fn payload(&self, thread: &Thread, register: u32, index: u32) -> usize {
        let (register, index) = (register + index / 8, index % 8);
        let (_, length) = self.lengths(thread);
        let base = match self.src1 {
            Some(src1) if register >= length => src1 + (register - length) * REG as u32,
            _ => self.src0 + register * REG as u32,
        };
        ((base + index * 4) & thread.grf_mask) as usize
    }

    /// As [`Message::payload`], of byte `index`.
    fn payload_byte(&self, thread: &Thread, register: u32, index: u32) -> usize {
        self.payload(thread, register, index / 4) + index as usize % 4
    }
}

impl Environment<'_> {
    /// Counts an access outside of a surface.
    fn note(&mut self, access: Access, uop: &Uop, lane: u32) {
        if access == Access::Outside {
            self.outside += 1;
            self.first_outside.get_or_insert((uop.instruction, lane));
        }
    }
}

/// The hardware thread's number without the bits that are always 0. EU-032, EU-041.
pub fn thread_number(sr0: u32) -> u32 {
    sr0 & 7 | sr0 >> 1 & 0x18 | sr0 >> 2 & 0xfe0
}

/// Number of the thread that executes.
fn number(thread: &Thread) -> u32 {
    thread_number(thread.u32(SR))
}
