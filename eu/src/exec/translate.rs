// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Translation of instructions to uops.

use std::collections::BTreeSet;

use super::fault::FaultKind;
use super::lanes::Host;
use super::message::Message;
use super::operand::{Input, Output};
use super::profile::InstructionClass;
use super::thread::{NEVER, Thread};
use super::uop::{Kind, Uop};
use super::{classify, dpas};
use crate::isa::table::{Control, Execute, Format};
use crate::isa::{self, DecodeError, Instruction, Place, Source};

/// An instruction at its address.
#[derive(Clone, Copy, Debug)]
pub struct Located {
    /// Byte offset from the start of the code.
    pub address: u32,
    /// Length in bytes.
    pub length: u32,
    /// The instruction; `None` for bytes that are none.
    pub instruction: Option<Instruction>,
    /// True if no instruction has the opcode of the bytes. ISA-026.
    pub has_reserved_opcode: bool,
    /// What performance counters count it as.
    pub class: InstructionClass,
}

impl Located {
    /// The instruction with these bytes at an address.
    pub(super) fn new(address: u32, bytes: &[u8]) -> Located {
        let decoded = isa::decode(bytes);
        let has_reserved_opcode = matches!(decoded, Err(DecodeError::Opcode(_)));
        let instruction = decoded.ok();
        let class = instruction.as_ref().map_or(InstructionClass::NONE, InstructionClass::of);
        Located { address, length: isa::length(bytes) as u32, instruction, has_reserved_opcode, class }
    }
}

/// A uop of this kind for an instruction.
pub fn plain(kind: Kind, from: Option<&Instruction>, index: u32) -> Uop {
    let zero = Input::constant(isa::Type::Ud, 0);
    let mut uop = Uop {
        kind,
        instruction: index,
        size: 1,
        all: 1,
        channel: 0,
        no_mask: false,
        predicate: 0,
        invert: false,
        flag: 0,
        condition: None,
        saturate: false,
        acc_write: false,
        accumulates: false,
        writes_state: false,
        depth: 0,
        repeat: 0,
        chained: false,
        function: 0,
        float: false,
        toward_zero: None,
        dst: Output::NULL,
        src: [zero; 3],
        jip: NEVER,
        uip: NEVER,
        next: NEVER,
        register_target: false,
        backward: false,
    };
    if let Some(from) = from {
        uop.size = from.size;
        uop.all = if from.size >= 32 { !0 } else { (1 << from.size) - 1 };
        uop.channel = from.channel;
        uop.no_mask = from.no_mask;
        uop.predicate = from.predicate;
        uop.invert = from.invert;
        uop.flag = from.flag;
        uop.function = from.function;
        uop.depth = from.depth;
        uop.repeat = from.repeat;
        uop.chained = from.atomic;
    }
    uop
}

/// The uop of an instruction; that of a fault if it cannot be executed. Targets are to be set.
pub fn uop(located: Located, index: u32, base: u32, registers: u32, host: Host) -> Uop {
    let Some(instruction) = &located.instruction else {
        let fault = if located.has_reserved_opcode { FaultKind::Opcode } else { FaultKind::Undecodable };
        return plain(Kind::Fault(fault), None, index);
    };
    let context = Context { address: base.wrapping_add(located.address), registers, host };
    context.uop(instruction, index).unwrap_or_else(|fault| plain(Kind::Fault(fault), Some(instruction), index))
}

/// What an instruction without effect does. It is an operation on lanes because those are dispatched fastest, and a tenth of all
/// instructions of compiled code are such ones.
fn nothing(_thread: &mut Thread, _uop: &Uop) {}

/// What the translation of an instruction depends on.
struct Context {
    /// Address relative to the instruction base.
    address: u32,
    registers: u32,
    host: Host,
}

impl Context {
    /// A source, with the instruction pointer as a constant. ISA-088.
    fn input(&self, source: &Source, size: u8) -> Result<Input, FaultKind> {
        if let Source::Reg { place: Place::Arf { reg: 0xa0, .. }, ty, .. } = source {
            return Ok(Input::constant(*ty, u64::from(self.address)));
        }
        Input::new(source, size, self.registers).ok_or(FaultKind::Register)
    }

    fn uop(&self, from: &Instruction, index: u32) -> Result<Uop, FaultKind> {
        let kind = match from.row.execute {
            Execute::Nop => Kind::Lanes(nothing),
            Execute::Illegal => return Err(FaultKind::Illegal),
            Execute::Unsupported => return Err(FaultKind::Unsupported),
            // ISA-102. ISA-243: a barrier's wait with an operand is that for a named one.
            Execute::Sync => match from.modifier {
                0 | 2 | 3 => Kind::Lanes(nothing),
                14 if matches!(from.src[0], Source::Reg { place, .. } if place.is_null()) => Kind::Barrier,
                _ => return Err(FaultKind::Unsupported),
            },
            Execute::Send => {
                let message = Message::new(from, self.registers, self.host).ok_or(FaultKind::Register)?;
                Kind::Send(Box::new(message))
            }
            Execute::Control(control) => Kind::Control(control),
            Execute::Dpas if from.row.code == dpas::WIDE => Kind::Dpasw,
            Execute::Dpas => Kind::Dpas(self.host.matrices()),
            Execute::Movi => Kind::Movi,
            Execute::Lane(_) => Kind::General,
        };
        let mut uop = plain(kind, Some(from), index);
        match from.row.execute {
            Execute::Dpas if !dpas::has_types(from) => return Err(FaultKind::Types),
            Execute::Lane(_) | Execute::Dpas | Execute::Movi => {
                uop.dst = Output::new(&from.dst, from.size, self.registers).ok_or(FaultKind::Register)?;
                for (input, source) in uop.src.iter_mut().zip(&from.src).take(from.sources()) {
                    *input = self.input(source, from.size)?;
                }
            }
            Execute::Control(_) => {
                if from.row.format == Format::Call {
                    uop.dst = Output::new(&from.dst, 2, self.registers).ok_or(FaultKind::Register)?;
                }
                uop.register_target = from.register_target && from.row.format != Format::Ret;
                // ISA-171: `goto.b`.
                uop.backward = from.row.has_branch_control() && from.acc_write;
                if from.register_target {
                    uop.src[0] = self.input(&from.src[0], 1)?;
                }
            }
            _ => {}
        }
        if let Execute::Lane(lane) = from.row.execute {
            uop.writes_state = matches!(from.dst.place, Place::Arf { reg: 0x70 | 0x80, .. });
            classify::classify(from, lane, &mut uop, self.host)?;
        }
        Ok(uop)
    }
}

/// Divides bytes into instructions.
pub fn locate(bytes: &[u8]) -> Vec<Located> {
    let mut all = Vec::with_capacity(bytes.len() / 12);
    let mut at = 0;
    while at < bytes.len() {
        let located = Located::new(at as u32, &bytes[at..]);
        all.push(located);
        at += located.length as usize;
    }
    all
}

/// The address behind an instruction, if it is a `while`.
pub fn after_while(located: Option<&Located>) -> Option<i64> {
    let located = located?;
    let is_while = located.instruction?.row.execute == Execute::Control(Control::While);
    is_while.then(|| i64::from(located.address) + i64::from(located.length))
}

/// Where a branch leads, relative to the start of the code, as far as the instruction says, and whether channels that do not take it wait behind it.
pub struct Targets {
    pub jip: Option<i64>,
    pub uip: Option<i64>,
    pub waits_behind: bool,
}

/// Targets of a branch.
pub fn targets_of(located: &Located, control: Control, base: u32) -> Option<Targets> {
    let instruction = located.instruction.as_ref()?;
    let at = i64::from(located.address);
    let absolute = control == Control::Calla;
    let jip = if absolute { i64::from(instruction.jip) - i64::from(base) } else { at + i64::from(instruction.jip) };
    let jip = (!instruction.register_target && instruction.row.format != Format::Ret).then_some(jip);
    let has_uip = !instruction.register_target && instruction.row.format == Format::JipUip;
    let uip = has_uip.then(|| at + i64::from(instruction.uip));
    let waits_behind = matches!(control, Control::Goto | Control::While | Control::Call | Control::Calla);
    Some(Targets { jip, uip, waits_behind })
}

/// Addresses of a whole kernel at which channels can wait.
pub fn targets(instructions: &[Located]) -> BTreeSet<u32> {
    let mut targets = BTreeSet::new();
    for located in instructions {
        let Some(instruction) = &located.instruction else { continue };
        let Execute::Control(control) = instruction.row.execute else { continue };
        let Some(to) = targets_of(located, control, 0) else { continue };
        let mut add = |address: i64| {
            if let Ok(address) = u32::try_from(address) {
                targets.insert(address);
            }
        };
        if to.waits_behind {
            add(i64::from(located.address) + i64::from(located.length));
        }
        // Channels wait wherever the register says.
        if instruction.register_target && matches!(control, Control::Brd | Control::Brc) {
            return instructions.iter().map(|located| located.address).collect();
        }
        to.jip.into_iter().chain(to.uip).for_each(add);
    }
    targets
}
