// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Programs: micro-operations of code in an address space, for a whole kernel at once or decoded where threads come to.
//!
//! Uops are in one array; a thread and its waiting channels name them by index. Each address that a thread can come to or wait
//! at has one index for ever: that of its uop, or of a uop that leads there.

use std::collections::HashMap;

use super::fault::{FaultKind, MemoryFault};
use super::lanes::Host;
use super::translate::{self, Located};
use super::uop::{Kind, Uop};
use crate::isa;
use crate::isa::table::{Control, Execute};

/// Bytes of code that are translated at most.
pub const CODE_LIMIT: usize = 1 << 24;
/// Bytes of the longest instruction.
const LONGEST: usize = 16;
/// Instructions that are decoded at once, and those of a chain of products of matrices, which is not cut before.
const BLOCK: usize = 64;
const CHAIN: usize = 4 * BLOCK;
/// Instructions begin at multiples of this.
const ALIGNMENT: u32 = 8;

/// Reads code.
pub trait Fetch {
    /// Reads bytes of code of an address space from a virtual address on, and returns how many of them there are: at least
    /// one, and fewer than wanted where memory ends.
    ///
    /// # Errors
    /// If the first byte is in no memory.
    fn fetch(&mut self, space: u64, address: u64, bytes: &mut [u8]) -> Result<usize, MemoryFault>;
}

impl<F: FnMut(u64, u64, &mut [u8]) -> Result<usize, MemoryFault>> Fetch for F {
    fn fetch(&mut self, space: u64, address: u64, bytes: &mut [u8]) -> Result<usize, MemoryFault> {
        self(space, address, bytes)
    }
}

/// Bytes of code that were decoded.
#[derive(Clone, Debug)]
struct Run {
    /// Address of the first.
    start: u32,
    bytes: Vec<u8>,
}

/// Translated code. It is not changed by execution, so threads share it; [`Program::extend`] adds to it.
#[derive(Clone)]
pub struct Program {
    /// Instructions: of a whole kernel in the order of their addresses, otherwise in that of their decoding.
    pub instructions: Vec<Located>,
    /// Micro-operations.
    pub uops: Vec<Uop>,
    /// Address of the code relative to the instruction base.
    pub base: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Uop of an address.
    starts: HashMap<u32, u32>,
    /// Uop of the fault for addresses at which no instruction begins.
    lost: u32,
    /// Uop of the fault for code beyond the limit, if a thread has come to some.
    full: Option<u32>,
    host: Host,
    /// Code is decoded where threads come to.
    grows: bool,
    space: u64,
    origin: u64,
    runs: Vec<Run>,
    /// Bytes in `runs`, and how many of them there may be.
    used: usize,
    limit: usize,
}

impl Program {
    /// A program without code, of the address space with this id, which only [`Fetch`] looks at, and the virtual address
    /// `origin` of the instruction base. Threads have this number of registers. Their addresses are relative to the instruction
    /// base; a thread that comes to code that is not decoded stops with [`super::Stop::Fetch`].
    pub fn new(space: u64, origin: u64, registers: u32, host: Host) -> Program {
        let mut program = Program::empty(0, registers, host);
        program.grows = true;
        program.space = space;
        program.origin = origin;
        program.uops.push(translate::plain(Kind::Fault(FaultKind::Target), None, 0));
        program
    }

    /// Translates a whole kernel at the address `base`, from its first byte to its last.
    pub fn translate(bytes: &[u8], base: u32, registers: u32, host: Host) -> Program {
        let bytes = &bytes[..bytes.len().min(CODE_LIMIT)];
        let mut program = Program::empty(base, registers, host);
        program.instructions = translate::locate(bytes);
        program.remember(0, bytes);
        let targets = translate::targets(&program.instructions);
        program.uops.reserve(program.instructions.len() + targets.len() + 2);
        for index in 0..program.instructions.len() {
            let address = program.instructions[index].address;
            let start = program.uops.len() as u32;
            program.starts.insert(address, start);
            if targets.contains(&address) {
                program.push_link(Kind::Rejoin, index as u32, start + 1);
            }
            program.push_instruction(index as u32);
        }
        let last = program.instructions.len().saturating_sub(1) as u32;
        let end = program.uops.len() as u32;
        program.uops.push(translate::plain(Kind::Fault(FaultKind::End), None, last));
        program.lost = program.uops.len() as u32;
        program.uops.push(translate::plain(Kind::Fault(FaultKind::Target), None, last));
        if let Some(located) = program.instructions.last() {
            program.starts.entry(located.address + located.length).or_insert(end);
        }
        for index in 0..program.uops.len() {
            let Some(targets) = program.targets_of(index as u32) else { continue };
            let own = i64::from(program.located_of(index as u32).address);
            let (jip, mut uip) = (targets.jip.unwrap_or(own), targets.uip.unwrap_or(own));
            if program.is_break(index as u32) {
                uip = translate::after_while(program.at(uip)).unwrap_or(uip);
            }
            let (jip, uip) = (program.entry(jip), program.entry(uip));
            let uop = &mut program.uops[index];
            (uop.jip, uop.uip, uop.next) = (jip, uip, index as u32 + 1);
        }
        program
    }

    fn empty(base: u32, registers: u32, host: Host) -> Program {
        Program {
            instructions: Vec::new(),
            uops: Vec::new(),
            base,
            registers: registers.clamp(128, 256),
            starts: HashMap::new(),
            lost: 0,
            full: None,
            host,
            grows: false,
            space: 0,
            origin: 0,
            runs: Vec::new(),
            used: 0,
            limit: CODE_LIMIT,
        }
    }

    /// Sets how many bytes of code are decoded at most. A thread that comes to more ends in a fault.
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes.min(CODE_LIMIT);
    }

    /// Id of the address space, and virtual address of the instruction base.
    pub fn space(&self) -> (u64, u64) {
        (self.space, self.origin)
    }

    /// Bytes of the host's memory that it has, about.
    pub fn host_bytes(&self) -> usize {
        let places = self.starts.capacity() * size_of::<(u32, u32)>();
        let code = self.runs.capacity() * size_of::<Run>() + self.used;
        self.uops.capacity() * size_of::<Uop>() + self.instructions.capacity() * size_of::<Located>() + places + code
    }

    /// Uop at an address relative to the start of the code; that of a fault if no instruction of the program begins there.
    pub fn entry(&self, address: i64) -> u32 {
        let found = u32::try_from(address).ok().and_then(|address| self.starts.get(&address));
        found.copied().unwrap_or(self.lost)
    }

    /// True if the uop behind a product of matrices is one that writes the same registers.
    ///
    /// The instructions of a chain do not wait for one another: a product that the next one overwrites is not read by it, although
    /// it may be its source 0. Compilers begin chains with such a product, of whatever is in its registers, because of an
    /// erratum of the hardware. ISA-189.
    pub(super) fn is_overwritten(&self, uop: &Uop, next: u32) -> bool {
        let behind = match self.uops.get(next as usize) {
            Some(Uop { kind: Kind::Jump, jip, .. }) => self.uops.get(*jip as usize),
            other => other,
        };
        let place = |uop: &Uop| {
            let mask = (uop.size, uop.channel, uop.no_mask, uop.predicate, uop.invert, uop.flag);
            (uop.dst.base, uop.dst.ty, uop.dst.store, mask)
        };
        behind.is_some_and(|behind| {
            matches!(behind.kind, Kind::Dpas(_) | Kind::Dpasw)
                && place(behind) == place(uop)
                && behind.repeat >= uop.repeat
        })
    }

    /// Index of the instruction of a uop.
    pub fn instruction_of(&self, uop: u32) -> u32 {
        self.uops.get(uop as usize).map_or(0, |uop| uop.instruction)
    }

    /// What a uop does.
    pub(super) fn kind(&self, uop: u32) -> Option<&Kind> {
        self.uops.get(uop as usize).map(|uop| &uop.kind)
    }

    /// Address of the instruction of a uop, relative to the instruction base, or of the one to which it leads; `None` if there is
    /// no instruction.
    pub(super) fn address_of(&self, mut index: u32) -> Option<u32> {
        // A link leads to an instruction or to code that is not decoded, not to itself.
        for _ in 0..self.uops.len() {
            let uop = self.uops.get(index as usize)?;
            match uop.kind {
                Kind::Jump | Kind::Rejoin => index = uop.jip,
                Kind::Fetch { address, .. } => return Some(self.base.wrapping_add(address)),
                Kind::Fault(FaultKind::Target | FaultKind::TooMuchCode) => return None,
                _ => return Some(self.base.wrapping_add(self.located_of(index).address)),
            }
        }
        None
    }

    /// Uop at which channels can wait for an address relative to the instruction base; that of a fault if no instruction can begin
    /// there.
    pub(super) fn place(&mut self, address: u32) -> u32 {
        self.reserve(i64::from(address) - i64::from(self.base), true)
    }

    /// The bytes that were decoded, with their addresses relative to the instruction base.
    pub fn used_bytes(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.runs.iter().map(|run| (self.base.wrapping_add(run.start), run.bytes.as_slice()))
    }

    /// True if memory still has the bytes that were decoded: then the program is that of the memory, whatever has been written
    /// since, and otherwise it is not to be used for new threads.
    pub fn is_current(&self, fetch: &mut dyn Fetch) -> bool {
        let mut buffer = [0; 256];
        self.used_bytes().all(|(address, bytes)| {
            let mut at = self.origin.wrapping_add(address.into());
            let mut rest = bytes;
            while !rest.is_empty() {
                let most = rest.len().min(buffer.len());
                let Ok(count) = fetch.fetch(self.space, at, &mut buffer[..most]) else { return false };
                let count = count.min(most);
                if count == 0 || buffer[..count] != rest[..count] {
                    return false;
                }
                at = at.wrapping_add(count as u64);
                rest = &rest[count..];
            }
            true
        })
    }

    /// Uop at which a thread goes on at an address that is not in the code itself, as one in a register; `None` if the program
    /// has to be extended for it. With `waits`, channels can wait there.
    pub(super) fn find(&self, address: i64, waits: bool) -> Option<u32> {
        if !self.grows {
            return Some(self.entry(address));
        }
        let Some(address) = instruction_address(address) else { return Some(self.lost) };
        let Some(found) = self.starts.get(&address).copied() else { return self.full };
        let ready = !waits || matches!(self.uops[found as usize].kind, Kind::Rejoin);
        ready.then_some(found)
    }

    /// Decodes the code at an address relative to the instruction base, at which a thread has stopped with
    /// [`super::Stop::Fetch`] or is to begin, up to the next branch, at most 256 instructions. Returns its uop.
    ///
    /// # Errors
    /// If `fetch` fails. The program is as before.
    pub fn extend(&mut self, address: u32, fetch: &mut dyn Fetch) -> Result<u32, MemoryFault> {
        if !self.grows || !address.is_multiple_of(ALIGNMENT) {
            return Ok(self.entry(address.into()));
        }
        match self.starts.get(&address).copied() {
            Some(index) => match self.uops[index as usize].kind {
                Kind::Fetch { address, .. } => {
                    let first = if self.used < self.limit {
                        let first = self.uops.len() as u32;
                        self.decode(address, fetch)?;
                        first
                    } else {
                        self.end_of_limit()
                    };
                    // The block may have made this a place at which channels wait.
                    let uop = &mut self.uops[index as usize];
                    let waits = matches!(uop.kind, Kind::Fetch { waits: true, .. });
                    uop.kind = if waits { Kind::Rejoin } else { Kind::Jump };
                    uop.jip = first;
                    Ok(index)
                }
                _ => {
                    self.let_wait(index);
                    Ok(index)
                }
            },
            // No place is made for it: a program at its limit does not grow with the addresses that threads come to.
            None if self.used >= self.limit => Ok(self.end_of_limit()),
            None => {
                // Its block may lead to it.
                self.reserve(address.into(), false);
                self.extend(address, fetch)
            }
        }
    }

    /// Uop of the fault for code beyond the limit.
    fn end_of_limit(&mut self) -> u32 {
        let end = self.uops.len() as u32;
        if self.full.is_none() {
            let last = self.instructions.len().saturating_sub(1) as u32;
            self.uops.push(translate::plain(Kind::Fault(FaultKind::TooMuchCode), None, last));
        }
        *self.full.get_or_insert(end)
    }

    /// Decodes from an address to the next branch, end of thread, or code that is decoded: at most [`CHAIN`] instructions, so that
    /// its cost is bounded.
    fn decode(&mut self, address: u32, fetch: &mut dyn Fetch) -> Result<(), MemoryFault> {
        let mut at = address;
        let before = self.instructions.len();
        loop {
            let first = at == address;
            if !first && self.used >= self.limit {
                break;
            }
            let (bytes, length) = match self.read(at, fetch) {
                Ok(read) => read,
                Err(fault) if first => return Err(fault),
                // The thread comes to it, or does not.
                Err(_) => break,
            };
            let bytes = &bytes[..length];
            self.remember(at, bytes);
            let index = self.instructions.len() as u32;
            let located = Located::new(at, bytes);
            self.instructions.push(located);
            let uop = self.uops.len() as u32;
            if !first {
                self.starts.insert(at, uop);
            }
            self.push_instruction(index);
            let Some(next) = at.checked_add(located.length) else { return Ok(()) };
            if let Some(targets) = self.targets_of(uop) {
                let uip = match targets.uip {
                    Some(uip) if self.is_break(uop) => Some(self.after_while(uip, fetch)),
                    uip => uip,
                };
                let next = self.reserve(next.into(), targets.waits_behind);
                let jip = targets.jip.map_or(self.lost, |address| self.reserve(address, true));
                let uip = uip.map_or(self.lost, |address| self.reserve(address, true));
                // It has moved if it leads to itself.
                let moved = matches!(self.uops[uop as usize].kind, Kind::Rejoin);
                let uop = if moved { self.uops[uop as usize].jip } else { uop };
                let uop = &mut self.uops[uop as usize];
                (uop.jip, uop.uip, uop.next) = (jip, uip, next);
                return Ok(());
            }
            at = next;
            match &self.uops[uop as usize].kind {
                Kind::Send(message) if message.eot => return Ok(()),
                // What follows is not code, but for a thread that passes over illegal instructions.
                Kind::Fault(_) => break,
                _ if self.starts.contains_key(&at) => break,
                _ => {}
            }
            let count = self.instructions.len() - before;
            if count >= if self.uops[uop as usize].chained { CHAIN } else { BLOCK } {
                break;
            }
        }
        let index = self.instructions.len() as u32 - 1;
        let link = self.uops.len() as u32;
        self.push_link(Kind::Jump, index, 0);
        let next = self.reserve(at.into(), false);
        self.uops[link as usize].jip = next;
        Ok(())
    }

    /// Reads the bytes of an instruction, and its length.
    fn read(&self, address: u32, fetch: &mut dyn Fetch) -> Result<([u8; LONGEST], usize), MemoryFault> {
        let mut bytes = [0; LONGEST];
        let start = self.origin.wrapping_add(address.into());
        let mut count = 0;
        while count < ALIGNMENT as usize || count < isa::length(&bytes) {
            let at = start.wrapping_add(count as u64);
            let more = fetch.fetch(self.space, at, &mut bytes[count..])?;
            if more == 0 {
                return Err(FaultKind::Address.into());
            }
            count = (count + more).min(LONGEST);
        }
        Ok((bytes, isa::length(&bytes)))
    }

    /// The address behind the `while` at an address; that itself if there is none.
    fn after_while(&mut self, address: i64, fetch: &mut dyn Fetch) -> i64 {
        let Some(at) = instruction_address(address) else { return address };
        let Ok((bytes, length)) = self.read(at, fetch) else { return address };
        let bytes = &bytes[..length];
        self.remember(at, bytes);
        translate::after_while(Some(&Located::new(at, bytes))).unwrap_or(address)
    }

    fn remember(&mut self, start: u32, bytes: &[u8]) {
        self.used += bytes.len();
        match self.runs.last_mut() {
            Some(run) if u64::from(run.start) + run.bytes.len() as u64 == u64::from(start) => {
                run.bytes.extend_from_slice(bytes);
            }
            _ => self.runs.push(Run { start, bytes: bytes.to_vec() }),
        }
    }

    /// Uop of an address, for which a place is made if it has none. With `waits`, channels can wait there.
    fn reserve(&mut self, address: i64, waits: bool) -> u32 {
        let Some(address) = instruction_address(address) else { return self.lost };
        if let Some(index) = self.starts.get(&address).copied() {
            if waits {
                self.let_wait(index);
            }
            return index;
        }
        let index = self.uops.len() as u32;
        let instruction = self.instructions.len().saturating_sub(1) as u32;
        self.push_link(Kind::Fetch { address, waits }, instruction, index);
        self.starts.insert(address, index);
        index
    }

    /// Makes the uop of an address one at which channels can wait.
    fn let_wait(&mut self, index: u32) {
        let end = self.uops.len() as u32;
        let uop = &mut self.uops[index as usize];
        match &mut uop.kind {
            Kind::Rejoin => {}
            Kind::Jump => uop.kind = Kind::Rejoin,
            Kind::Fetch { waits, .. } => *waits = true,
            _ => {
                // The uop moves, and the place leads to it.
                let instruction = uop.instruction;
                let mut link = translate::plain(Kind::Rejoin, None, instruction);
                link.jip = end;
                let moved = std::mem::replace(uop, link);
                let goes_on = !matches!(moved.kind, Kind::Control(_));
                self.uops.push(moved);
                if goes_on {
                    self.push_link(Kind::Jump, instruction, index + 1);
                }
            }
        }
    }

    /// A uop that leads to another.
    fn push_link(&mut self, kind: Kind, instruction: u32, to: u32) {
        let mut link = translate::plain(kind, None, instruction);
        link.jip = to;
        self.uops.push(link);
    }

    fn push_instruction(&mut self, index: u32) {
        let uop = translate::uop(self.instructions[index as usize], index, self.base, self.registers, self.host);
        self.uops.push(uop);
    }

    fn located_of(&self, uop: u32) -> &Located {
        &self.instructions[self.uops[uop as usize].instruction as usize]
    }

    /// Targets of a uop that is a branch.
    fn targets_of(&self, uop: u32) -> Option<translate::Targets> {
        match self.uops[uop as usize].kind {
            Kind::Control(control) => translate::targets_of(self.located_of(uop), control, self.base),
            _ => None,
        }
    }

    fn is_break(&self, uop: u32) -> bool {
        let instruction = self.located_of(uop).instruction;
        instruction.is_some_and(|instruction| instruction.row.execute == Execute::Control(Control::Break))
    }

    /// The instruction at an address of a whole kernel.
    fn at(&self, address: i64) -> Option<&Located> {
        let found = self.instructions.binary_search_by_key(&address, |located| i64::from(located.address));
        found.ok().map(|index| &self.instructions[index])
    }
}

/// An address as one that an instruction can have.
fn instruction_address(address: i64) -> Option<u32> {
    u32::try_from(address).ok().filter(|address| address.is_multiple_of(ALIGNMENT))
}
