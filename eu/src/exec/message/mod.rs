// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages (groups N to R of the document on the ISA): descriptors are decoded once, at translation, if they are
//! immediate.

mod access;
mod color;
mod data_port;
pub(super) mod gateway;
mod lsc;
mod operands;
mod sampler;
mod texel;
mod typed;

pub use operands::{Lanes, thread_number};

use super::environment::{Environment, MessageKind};
use super::fault::FaultKind;
use super::lanes::Host;
use super::thread::{A0, REG, Thread};
use super::uop::Uop;
use crate::isa::{Descriptor, Instruction};
pub use lsc::Shape;
pub(super) use lsc::{consecutive_dwords, gathered_dwords, vectors_of_dwords};
pub use operands::MessageFault;
use operands::{Given, Operands, Sent};

/// Registers of a response at most: its length has five bits.
const MOST_REGISTERS: usize = 31;

/// Function of a message, which a uop sends.
pub type SendFunction = fn(&Message, &Uop, &mut Thread, &mut Environment<'_>) -> Result<(), MessageFault>;

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Sends it.
    function: SendFunction,
    /// What [`Message::function`] moves, if that is elements of lanes.
    lsc: Option<lsc::Lsc>,
    /// What it costs without its accesses: see [`super::Budget`].
    pub(super) cost: u64,
    /// Shared function.
    pub sfid: u8,
    /// Operation; `None` if the descriptor is in a register.
    operation: Option<Result<Operation, FaultKind>>,
    /// What it does; `None` if the descriptor is in a register.
    access: Option<MessageKind>,
    operands: Operands,
    /// Registers of the response may be ones of the payload.
    overlap: bool,
    /// Last message of the thread.
    pub eot: bool,
}

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Lsc(lsc::Operation),
    DataPort(data_port::Operation),
    Typed(typed::Operation),
    Sampler(sampler::Sample),
    Gateway(gateway::Operation),
}

/// Shared function of shared local memory.
pub const SLM: u8 = 14;

fn decode(sfid: u8, desc: u32, [size, channel]: [u8; 2], given: Given) -> Result<Operation, FaultKind> {
    match sfid {
        2 => sampler::decode(desc).map(Operation::Sampler),
        3 => gateway::decode(desc).map(Operation::Gateway),
        10 => data_port::decode_0(desc).map(Operation::DataPort),
        12 => match data_port::decode_1(desc)? {
            Some(operation) => Ok(Operation::DataPort(operation)),
            None => typed::decode(desc, size, channel).map(Operation::Typed),
        },
        13..=15 => lsc::decode(sfid, desc, size, given).map(Operation::Lsc),
        _ => Err(FaultKind::Message),
    }
}

fn message_kind(sfid: u8, operation: &Result<Operation, FaultKind>) -> MessageKind {
    match operation {
        Ok(Operation::Lsc(operation)) => operation.message_kind(sfid == SLM),
        _ => MessageKind::Other,
    }
}

impl Message {
    /// What the message does, as far as it is counted.
    #[inline]
    pub(super) fn message_kind(&self, thread: &Thread, size: u8) -> MessageKind {
        match self.access {
            Some(kind) => kind,
            None => self.message_kind_now(thread, size),
        }
    }

    /// The same of a message whose descriptor is in a register.
    #[cold]
    fn message_kind_now(&self, thread: &Thread, size: u8) -> MessageKind {
        // The channel does not decide about it.
        message_kind(self.sfid, &decode(self.sfid, thread.u32(A0), [size, 0], self.operands.given()))
    }

    /// Translates a message of an instruction. `None` for a register that does not exist.
    pub fn new(from: &Instruction, registers: u32, host: Host) -> Option<Message> {
        let operands = Operands::new(from, registers)?;
        let overlap = operands.overlap();
        let eot = from.saturate;
        let mut message = Message {
            function: send_any,
            lsc: None,
            cost: super::MESSAGE_COST - 1 + u64::from(from.size),
            sfid: from.modifier,
            operation: None,
            access: None,
            operands,
            overlap,
            eot,
        };
        if let Descriptor::Imm(desc) = operands.desc {
            let operation = decode(message.sfid, desc, [from.size, from.channel], operands.given());
            message.access = Some(message_kind(message.sfid, &operation));
            if let (Ok(Operation::Lsc(lsc::Operation::Access(lsc))), false) = (&operation, overlap) {
                message.lsc = Some(*lsc);
                message.function = match lsc.shape(from, &operands, registers) {
                    Some(shape) => host.message(shape),
                    None => send_elements,
                };
            }
            message.operation = Some(operation);
        }
        Some(message)
    }

    /// Executes the message. After a fault, the registers of its payload are as before, so that it can be executed again.
    #[inline(always)]
    pub fn execute(
        &self,
        uop: &Uop,
        thread: &mut Thread,
        environment: &mut Environment<'_>,
    ) -> Result<(), MessageFault> {
        (self.function)(self, uop, thread, environment)
    }

    /// Executes a message with the response in registers of its payload.
    #[inline(never)]
    fn execute_or_restore(
        &self,
        thread: &mut Thread,
        lanes: Lanes,
        environment: &mut Environment<'_>,
    ) -> Result<(), MessageFault> {
        let Some(dst) = self.operands.dst else { return self.send(thread, lanes, environment) };
        let mut buffer = [0; MOST_REGISTERS * REG];
        let (response, _) = self.operands.lengths(thread);
        let before = &mut buffer[..response as usize * REG];
        thread.copy_registers(dst, before);
        let result = self.send(thread, lanes, environment);
        if result.is_err() {
            thread.write_registers(dst, before);
        }
        result
    }

    #[inline]
    fn send(&self, thread: &mut Thread, lanes: Lanes, environment: &mut Environment<'_>) -> Result<(), MessageFault> {
        let decoded;
        let operation = match &self.operation {
            Some(operation) => operation,
            None => {
                let operands = &self.operands;
                decoded = decode(self.sfid, thread.u32(A0), [lanes.size, lanes.channel], operands.given());
                &decoded
            }
        };
        let sent = Sent { operands: &self.operands, thread, lanes, environment };
        match operation {
            Ok(Operation::Lsc(operation)) => operation.execute(sent),
            Ok(Operation::DataPort(operation)) => operation.execute(sent),
            Ok(Operation::Typed(operation)) => operation.execute(sent),
            Ok(Operation::Sampler(sample)) => sampler::execute(sample, sent),
            Ok(Operation::Gateway(operation)) => operation.execute(sent),
            Err(fault) => Err((*fault).into()),
        }
    }
}

/// Sends any message.
fn send_any(
    message: &Message,
    uop: &Uop,
    thread: &mut Thread,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    let lanes = uop.lanes(thread);
    if message.overlap {
        message.execute_or_restore(thread, lanes, environment)
    } else {
        message.send(thread, lanes, environment)
    }
}

/// Sends a message that moves elements of lanes, of which the response is in other registers than the payload.
fn send_elements(
    message: &Message,
    uop: &Uop,
    thread: &mut Thread,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    let lanes = uop.lanes(thread);
    match &message.lsc {
        Some(lsc) if lanes.enabled != 0 => {
            lsc.execute(Sent { operands: &message.operands, thread, lanes, environment })
        }
        _ => Ok(()),
    }
}
