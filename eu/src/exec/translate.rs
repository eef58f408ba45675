// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Translation of code to uops.

use std::collections::{BTreeSet, HashMap};

use super::fault::FaultKind;
use super::lanes::Host;
use super::message::Message;
use super::operand::{Input, Output, Store};
use super::thread::NEVER;
use super::uop::{Kind, Uop};
use super::{classify, dpas};
use crate::isa::table::{Control, Execute, Format};
use crate::isa::{self, Destination, Instruction, Place, Source};

/// Bytes of code that are translated at most.
pub const CODE_LIMIT: usize = 1 << 24;

/// An instruction at its address.
#[derive(Clone, Copy, Debug)]
pub struct Located {
    /// Byte offset from the start of the code.
    pub address: u32,
    /// Length in bytes.
    pub length: u32,
    /// The instruction; `None` for bytes that are none.
    pub instruction: Option<Instruction>,
}

/// Translated code. It is not changed by execution, so threads share it.
#[derive(Clone)]
pub struct Code {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Instructions in the order of their addresses.
    pub instructions: Vec<Located>,
    /// Micro-operations; the last ones are faults for ends and targets outside the code.
    pub uops: Vec<Uop>,
    /// Uop at which the instruction of an address begins.
    starts: HashMap<u32, u32>,
    /// Address of the code relative to the instruction base.
    pub base: u32,
    /// Registers of a thread.
    pub registers: u32,
}

/// A uop of this kind for an instruction.
fn plain(kind: Kind, from: Option<&Instruction>, index: u32) -> Uop {
    let null = Output::new(&Destination::NULL, 1, 128);
    let dst = null.unwrap_or(Output {
        store: Store::Null,
        base: 0,
        stride: 1,
        ty: isa::Type::Ub,
        indirect: None,
        general: false,
    });
    let zero = Input::constant(isa::Type::Ud, 0);
    let mut uop = Uop {
        kind,
        instruction: index,
        size: 1,
        channel: 0,
        no_mask: false,
        predicate: 0,
        invert: false,
        flag: 0,
        condition: None,
        saturate: false,
        acc_write: false,
        writes_modes: false,
        function: 0,
        float: false,
        dst,
        src: [zero; 3],
        jip: NEVER,
        uip: NEVER,
    };
    if let Some(from) = from {
        uop.size = from.size;
        uop.channel = from.channel;
        uop.no_mask = from.no_mask;
        uop.predicate = from.predicate;
        uop.invert = from.invert;
        uop.flag = from.flag;
        uop.function = from.function;
    }
    uop
}

impl Code {
    /// Translates code at the address `base`, for threads with this number of registers.
    pub fn translate(bytes: &[u8], base: u32, registers: u32, host: Host) -> Code {
        let bytes = &bytes[..bytes.len().min(CODE_LIMIT)];
        let instructions = locate(bytes);
        let targets = targets(&instructions);
        let mut code = Code {
            bytes: bytes.to_vec(),
            instructions,
            uops: Vec::new(),
            starts: HashMap::new(),
            base,
            registers: registers.clamp(128, 256),
        };
        let mut uops = Vec::with_capacity(code.instructions.len() + targets.len() + 2);
        for (index, located) in (0..).zip(&code.instructions) {
            let start = uops.len() as u32;
            code.starts.insert(located.address, start);
            if targets.contains(&located.address) {
                uops.push(plain(Kind::Rejoin, None, index));
            }
            let Some(instruction) = &located.instruction else {
                uops.push(plain(Kind::Fault(FaultKind::Undecodable), None, index));
                continue;
            };
            let uop = code
                .uop(instruction, located, index, host)
                .unwrap_or_else(|fault| plain(Kind::Fault(fault), Some(instruction), index));
            uops.push(uop);
        }
        let last = code.instructions.len().saturating_sub(1) as u32;
        let end = uops.len() as u32;
        uops.push(plain(Kind::Fault(FaultKind::End), None, last));
        uops.push(plain(Kind::Fault(FaultKind::Target), None, last));
        if let Some(located) = code.instructions.last() {
            code.starts.entry(located.address + located.length).or_insert(end);
        }
        code.uops = uops;
        code.resolve();
        code
    }

    /// Uop at an address relative to the start of the code; that of a fault if no instruction begins there.
    pub fn entry(&self, address: i64) -> u32 {
        let found = u32::try_from(address).ok().and_then(|address| self.starts.get(&address));
        found.copied().unwrap_or(self.uops.len() as u32 - 1)
    }

    /// Replaces addresses of targets by uops.
    fn resolve(&mut self) {
        for index in 0..self.uops.len() {
            let Kind::Control(control) = self.uops[index].kind else { continue };
            let located = self.instructions[self.uops[index].instruction as usize];
            let Some(instruction) = located.instruction else { continue };
            let at = i64::from(located.address);
            let jip = if control == Control::Calla {
                i64::from(instruction.jip) - i64::from(self.base)
            } else {
                at + i64::from(instruction.jip)
            };
            let mut uip = at + i64::from(instruction.uip);
            if control == Control::Break {
                uip = after_while(&self.instructions, uip);
            }
            let (jip, uip) = (self.entry(jip), self.entry(uip));
            (self.uops[index].jip, self.uops[index].uip) = (jip, uip);
        }
    }

    /// A source, with the instruction pointer as a constant. ISA-088.
    fn input(&self, source: &Source, size: u8, address: u32) -> Result<Input, FaultKind> {
        if let Source::Reg { place: Place::Arf { reg: 0xa0, .. }, ty, .. } = source {
            return Ok(Input::constant(*ty, u64::from(self.base.wrapping_add(address))));
        }
        Input::new(source, size, self.registers).ok_or(FaultKind::Register)
    }

    fn uop(&self, from: &Instruction, located: &Located, index: u32, host: Host) -> Result<Uop, FaultKind> {
        let kind = match from.row.execute {
            Execute::Nop => Kind::Nop,
            Execute::Illegal => return Err(FaultKind::Illegal),
            Execute::Unsupported => return Err(FaultKind::Unsupported),
            // ISA-102. ISA-243: a barrier's wait with an operand is that for a named one.
            Execute::Sync => match from.modifier {
                0 | 2 | 3 => Kind::Nop,
                14 if matches!(from.src[0], Source::Reg { place, .. } if place.is_null()) => Kind::Barrier,
                _ => return Err(FaultKind::Unsupported),
            },
            Execute::Send => Kind::Send(Box::new(Message::new(from, self.registers).ok_or(FaultKind::Register)?)),
            Execute::Control(control) => Kind::Control(control),
            Execute::Dpas => Kind::Dpas,
            Execute::Movi => Kind::Movi,
            Execute::Lane(_) => Kind::General,
        };
        let mut uop = plain(kind, Some(from), index);
        match from.row.execute {
            Execute::Dpas if !dpas::has_types(from) => return Err(FaultKind::Types),
            Execute::Lane(_) | Execute::Dpas | Execute::Movi => {
                uop.dst = Output::new(&from.dst, from.size, self.registers).ok_or(FaultKind::Register)?;
                for (input, source) in uop.src.iter_mut().zip(&from.src).take(from.sources()) {
                    *input = self.input(source, from.size, located.address)?;
                }
            }
            Execute::Control(_) => {
                if from.row.format == Format::Call {
                    uop.dst = Output::new(&from.dst, 2, self.registers).ok_or(FaultKind::Register)?;
                }
                if from.register_target {
                    uop.src[0] = self.input(&from.src[0], 1, located.address)?;
                }
            }
            _ => {}
        }
        if let Execute::Lane(lane) = from.row.execute {
            uop.writes_modes = matches!(from.dst.place, Place::Arf { reg: 0x80, .. });
            classify::classify(from, lane, &mut uop, host)?;
        }
        Ok(uop)
    }
}

/// Divides bytes into instructions.
fn locate(bytes: &[u8]) -> Vec<Located> {
    let mut all = Vec::with_capacity(bytes.len() / 12);
    let mut at = 0;
    while at < bytes.len() {
        let length = isa::length(&bytes[at..]);
        all.push(Located { address: at as u32, length: length as u32, instruction: isa::decode(&bytes[at..]).ok() });
        at += length;
    }
    all
}

/// The address behind the `while` at `address`; `address` itself if there is none.
fn after_while(instructions: &[Located], address: i64) -> i64 {
    let found = instructions.binary_search_by_key(&address, |located| i64::from(located.address));
    match found.ok().map(|index| &instructions[index]) {
        Some(Located { length, instruction: Some(instruction), .. })
            if instruction.row.execute == Execute::Control(Control::While) =>
        {
            address + i64::from(*length)
        }
        _ => address,
    }
}

/// Addresses at which channels can wait.
fn targets(instructions: &[Located]) -> BTreeSet<u32> {
    let mut targets = BTreeSet::new();
    for located in instructions {
        let Some(instruction) = &located.instruction else { continue };
        let Execute::Control(control) = instruction.row.execute else { continue };
        let at = i64::from(located.address);
        let next = at + i64::from(located.length);
        let mut add = |address: i64| {
            if let Ok(address) = u32::try_from(address) {
                targets.insert(address);
            }
        };
        match control {
            // Channels that do not jump wait behind the instruction.
            Control::Goto | Control::While | Control::Call | Control::Calla => add(next),
            // Channels wait wherever the register says.
            Control::Brd | Control::Brc if instruction.register_target => {
                return instructions.iter().map(|located| located.address).collect();
            }
            _ => {}
        }
        if !instruction.register_target {
            add(at + i64::from(instruction.jip));
            if instruction.row.format == Format::JipUip {
                add(at + i64::from(instruction.uip));
            }
        }
    }
    targets
}
