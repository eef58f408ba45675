// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A plain interpreter of the commands of Gen7's command streamers, written from the documents' items and not from the
//! model: slow, without tables, with all state in maps.

use std::collections::BTreeMap;

use super::grammar::*;
use super::world::{Left, Stop, TIMEOUT, compared, contents, engine, registers};

/// A fault: page, in the GGTT, of a write, and its type.
struct Fault {
    page: u32,
    ggtt: bool,
    write: bool,
    kind: u32,
}

/// Where the parser continues.
enum Then {
    Following,
    Elsewhere,
    Again,
    Never,
}

/// The state of the card, as far as commands can reach it.
pub struct Reference {
    class: Class,
    base: u32,
    fault: u32,
    shift: u32,
    memory: BTreeMap<u32, u32>,
    entries: BTreeMap<u32, u32>,
    registers: BTreeMap<u32, u32>,
    /// The next command of the batch, its start, and whether the batch is in the PPGTT.
    batch: Option<(u32, u32, bool)>,
    /// Images of contexts by page.
    images: BTreeMap<u32, Image>,
    tail: u32,
}

/// The image of a context.
#[derive(Clone)]
enum Image {
    /// Commands that software has written.
    Written(Vec<Vec<u32>>),
    /// Values of the registers of a context, and of its extended state, by name: their form in memory is not compared.
    Saved(BTreeMap<u32, u32>, BTreeMap<u32, u32>),
}

/// Registers of contexts, and of their extended state.
const KEPT: [u32; 2] = [0x2300, 0x2350];
const EXTENDED: [u32; 12] =
    [0x2400, 0x2404, 0x2408, 0x240c, 0x2410, 0x2414, 0x2418, 0x2430, 0x2434, 0x2440, 0x2500, 0x5200];

impl Reference {
    /// The state at the start of `case`.
    pub fn new(case: &Case) -> Reference {
        let (_, base, fault, shift) = engine(case.class);
        let mut values = BTreeMap::new();
        for (at, value) in registers(case) {
            // Masked registers.
            let masked = [base + 0x28, base + 0x29c, base + 0x9c].contains(&at);
            values.insert(at, if masked { value & 0xffff } else { value });
        }
        values.insert(base + 0x34, case.head);
        values.insert(base + 0x3c, 0x1001);
        Reference {
            class: case.class,
            base,
            fault,
            shift,
            memory: contents(case).into_iter().collect(),
            entries: (1..16).map(|page| (page, page << 12 | 1)).chain([(DIRECTORY, TABLE | 1)]).collect(),
            registers: values,
            batch: None,
            images: CONTEXTS
                .into_iter()
                .map(|at| at >> 12)
                .zip(case.images.iter().cloned().map(Image::Written))
                .collect(),
            tail: (case.head + case.ring_words().len() as u32 * 4) % RING_BYTES,
        }
    }

    /// Executes the case.
    pub fn run(mut self) -> Left {
        let mut stop = Stop::Endless;
        for _ in 0..TIMEOUT {
            if self.batch.is_none() && self.own(0x34) & 0x1f_fffc == self.tail {
                stop = Stop::Done;
                break;
            }
            match self.one() {
                Then::Following | Then::Elsewhere => {}
                Then::Again => stop = Stop::Waiting,
                Then::Never => stop = Stop::Halted,
            }
            if stop != Stop::Endless {
                break;
            }
        }
        if stop == Stop::Endless && self.batch.is_none() && self.own(0x34) & 0x1f_fffc == self.tail {
            stop = Stop::Done;
        }
        let image = |at: &u32| !(CONTEXTS[0]..BATCHES[0]).contains(at);
        let word = |at: u32| self.memory.get(&at).copied().unwrap_or(0);
        Left {
            stop,
            memory: (0..GUEST).step_by(4).map(|at| if image(&at) { word(at) } else { 0 }).collect(),
            entries: (0..DIRECTORY).map(|page| self.entries.get(&page).copied().unwrap_or(0)).collect(),
            registers: compared(self.base, self.fault).into_iter().map(|at| (at, self.register(at))).collect(),
        }
    }

    fn register(&self, at: u32) -> u32 {
        self.registers.get(&at).copied().unwrap_or(0)
    }

    fn own(&self, at: u32) -> u32 {
        self.register(self.base + at)
    }

    fn set_own(&mut self, at: u32, value: u32) {
        self.registers.insert(self.base + at, value);
    }

    /// Translates an address: through the GGTT, or the directory in it.
    fn place(&self, ggtt: bool, address: u32, write: bool) -> Result<u32, Fault> {
        let global = ggtt || self.own(0x29c) >> 9 & 1 == 0;
        let page = address >> 12;
        let fault = |kind| Fault { page: page << 12, ggtt: global, write, kind };
        let entry = |page: u32| self.entries.get(&page).copied().unwrap_or(0);
        let found = if global {
            entry(page)
        } else {
            let directory = address >> 22;
            if directory >= 512 || self.own(0x220) >> (directory / 16) & 1 == 0 {
                return Err(fault(2));
            }
            let table = entry((self.own(0x228) >> 16) * 16 + directory);
            if table & 1 == 0 {
                return Err(fault(1));
            }
            self.memory.get(&((table & !0xfff) + (page & 0x3ff) * 4)).copied().unwrap_or(0)
        };
        if found & 1 == 0 { Err(fault(0)) } else { Ok(found & !0xfff | address & 0xfff) }
    }

    fn load(&self, ggtt: bool, address: u32) -> Result<u32, Fault> {
        Ok(self.memory.get(&self.place(ggtt, address, false)?).copied().unwrap_or(0))
    }

    fn store(&mut self, ggtt: bool, address: u32, value: u32) -> Result<(), Fault> {
        let place = self.place(ggtt, address, true)?;
        self.memory.insert(place, value);
        Ok(())
    }

    /// Records events: in IIR, and the states in the status register and the status page.
    fn events(&mut self, bits: u32) {
        let errors = self.own(0xb0) & !self.own(0xb4) != 0;
        let states = u32::from(errors) << 3 | (self.register(self.fault) & 1) << 7;
        let before = self.register(0x4_4010) >> self.shift;
        self.registers.insert(0x4_4010, states << self.shift);
        let sent = bits | states & !before;
        *self.registers.entry(0x4_4018).or_default() |= sent << self.shift;
        if (bits | before ^ states) & !self.own(0x98) & !0x140 != 0 {
            let _ = self.store(true, STATUS, states);
        }
    }

    fn record(&mut self, fault: &Fault) {
        if self.register(self.fault) & 1 == 0 {
            let latched = fault.page | u32::from(fault.ggtt) << 11 | u32::from(fault.write) << 6 | fault.kind << 1 | 1;
            self.registers.insert(self.fault, latched);
        }
        *self.registers.entry(0x40a0).or_default() |= [1, 1 << 2, 1 << 8][fault.kind as usize];
        self.events(0);
    }

    /// Executes the next command.
    fn one(&mut self) -> Then {
        let (address, ggtt) = match self.batch {
            Some((next, start, ppgtt)) => {
                self.set_own(0x140, next | 1);
                self.set_own(0x110, u32::from(ppgtt) << 5);
                self.set_own(0x154, next.wrapping_sub(start));
                (next, !ppgtt)
            }
            None => {
                self.leave();
                (RING + self.own(0x34) & 0x1f_fffc, true)
            }
        };
        self.set_own(0x74, address);
        let header = match self.load(ggtt, address) {
            Ok(header) => header,
            Err(fault) => {
                self.record(&fault);
                return Then::Never;
            }
        };
        self.set_own(0x68, header);
        let Some(length) = self.length(header) else {
            self.set_own(0xb8, 1);
            self.set_own(0xb0, 1 & !self.own(0xb4));
            self.events(0);
            return Then::Never;
        };
        let in_ring = self.batch.is_none();
        let wrapped = |at: u32| if in_ring { RING + (at - RING) % RING_BYTES } else { at };
        let operand = |reference: &Reference, n: u32| reference.load(ggtt, wrapped(address + n * 4));
        // Commands of this grammar do not cross a page without a translation.
        let words: Vec<u32> = (0..length).map(|n| operand(self, n).unwrap_or(0)).collect();
        let user = self.batch.is_some_and(|(.., ppgtt)| ppgtt);
        let then = match self.execute(&words, length, user) {
            Ok(then) => then,
            Err(fault) => {
                self.record(&fault);
                Then::Following
            }
        };
        if matches!(then, Then::Following) {
            self.forward(length);
        }
        then
    }

    /// No batch is being executed.
    fn leave(&mut self) {
        let address = self.own(0x140) & !1;
        self.set_own(0x140, address);
        self.set_own(0x154, 0);
    }

    /// The batch ends.
    fn ends(&mut self) -> Then {
        self.batch = None;
        self.leave();
        Then::Elsewhere
    }

    fn forward(&mut self, length: u32) {
        match &mut self.batch {
            Some((next, ..)) => *next += length * 4,
            None => {
                let head = self.own(0x34);
                let mut offset = (head & 0x1f_fffc) + length * 4;
                let mut wraps = head >> 21;
                if offset >= RING_BYTES {
                    offset -= RING_BYTES;
                    wraps = (wraps + 1) % 2048;
                }
                self.set_own(0x34, wraps << 21 | offset);
            }
        }
    }

    /// Length of the command with this header; `None` if there is none, or if it is too short.
    fn length(&self, header: u32) -> Option<u32> {
        let render = self.class == Class::Render;
        if header >> 16 == 0x7a00 && render {
            return Some((header & 0xff) + 2);
        }
        if header >> 29 != 0 {
            return None;
        }
        let (mask, least, present) = match header >> 23 {
            0x00 | 0x02 | 0x03 | 0x05 | 0x07 | 0x08 | 0x0a | 0x0b => (0, 1, true),
            0x04 | 0x0c | 0x0d => (0, 1, render),
            0x16 | 0x24 | 0x29 | 0x36 | 0x21 => (0x3f, 3, true),
            0x18 => (0x3f, 2, render),
            0x20 => (0x3ff, 4, true),
            0x22 => (0xff, 3, true),
            0x23 => (0xff, 2, true),
            0x26 => (0x3f, 3, !render),
            0x27 => (0x3ff, 3, render),
            0x31 => (0x3f, 2, true),
            _ => return None,
        };
        let length = if mask == 0 { 1 } else { (header & mask) + 2 };
        (present && length >= least).then_some(length)
    }

    /// Executes a command of `length` dwords.
    fn execute(&mut self, words: &[u32], length: u32, user: bool) -> Result<Then, Fault> {
        let header = words[0];
        let ggtt = header >> 22 & 1 != 0;
        if header >> 29 == 3 {
            let flags = words[1];
            if flags >> 19 & 1 != 0 {
                self.registers.insert(0x2300, 0);
                self.registers.insert(0x2350, 0);
            }
            let depth = [self.register(0x2350), 0];
            self.after_flush(flags >> 14 & 3, flags >> 21 & 1 != 0, flags >> 24 & 1 != 0, &words[2..], (user, depth))?;
            if flags >> 8 & 1 != 0 {
                self.events(1 << 4);
            }
            return Ok(Then::Following);
        }
        match header >> 23 {
            0x00 if ggtt => self.set_own(0x94, header & 0x3f_ffff),
            0x02 => self.events(1),
            0x03 if !user => {
                let code = header >> 16 & 0xf;
                let blocked = (1..6).contains(&code) && self.own(0x28) >> (code - 1) & 1 != 0;
                let control = self.own(0x3c);
                if blocked {
                    self.set_own(0x3c, control | 1 << 11);
                    if self.class == Class::Render {
                        self.registers.insert(0x22d0, 1 << (code - 1));
                        let head = self.own(0x34);
                        self.set_own(0x34, head | 1);
                    }
                    return Ok(Then::Again);
                }
            }
            0x04 if header >> 3 & 1 != 0 => {
                self.registers.insert(0x2300, 0);
                self.registers.insert(0x2350, 0);
            }
            0x07 if self.batch.is_none() => {
                let head = self.own(0x34);
                self.store(true, STATUS + 16, head)?;
            }
            0x0a if self.batch.is_some() => return Ok(self.ends()),
            0x0c => self.predicate(header),
            0x16 => return self.mailbox(words, ggtt && !user),
            0x18 if !user && self.batch.is_none() => self.context(words[1]),
            0x20 if !(user && ggtt) => {
                for (n, value) in words[3..].iter().enumerate() {
                    self.store(ggtt, words[2].wrapping_add(n as u32 * 4), *value)?;
                }
            }
            0x21 if !user => {
                for (n, value) in words[2..].iter().enumerate() {
                    self.store(true, STATUS + (words[1] + n as u32 * 4) % 4096, *value)?;
                }
            }
            0x22 if !user => self.load_registers(words, |_| true),
            0x23 if !user => {
                for (n, entry) in words[2..].iter().enumerate() {
                    self.entries.insert((words[1] >> 12) + n as u32, *entry);
                }
            }
            0x24 if !user => {
                let value = self.register(words[1] & OFFSET_MASK);
                self.store(ggtt, words[2], value)?;
            }
            0x26 => {
                let operands = [&[words[1] & !7], &words[2..]].concat();
                // Operation 2 is reserved here.
                let operation = if header >> 14 & 3 == 2 { 0 } else { header >> 14 & 3 };
                self.after_flush(operation, false, words[1] >> 2 & 1 != 0, &operands, (user, [0; 2]))?;
                if header >> 8 & 1 != 0 {
                    self.events(1 << 4);
                }
            }
            0x27 => {
                let mode = self.own(0xc0);
                self.set_own(0xc0, mode ^ 1 << 11);
            }
            0x29 if !(user && ggtt) => {
                let value = self.load(ggtt, words[2])?;
                self.registers.insert(words[1] & OFFSET_MASK, value);
            }
            0x31 => {
                let ppgtt = self.batch.map_or(header >> 8 & 1 != 0, |(.., ppgtt)| ppgtt);
                if self.batch.is_none() {
                    self.forward(length);
                }
                self.batch = Some((words[1], words[1], ppgtt));
                return Ok(Then::Elsewhere);
            }
            0x36 if !(user && ggtt) && header >> 21 & 1 != 0 => {
                let value = self.load(ggtt, words[2])?;
                return Ok(if value <= words[1] && self.batch.is_some() { self.ends() } else { Then::Following });
            }
            _ => {}
        }
        Ok(Then::Following)
    }

    /// The store after a flush. `operands` are the address and the data.
    fn after_flush(
        &mut self,
        operation: u32,
        index: bool,
        ggtt: bool,
        operands: &[u32],
        (user, depth): (bool, [u32; 2]),
    ) -> Result<(), Fault> {
        let data = match operation {
            0 => return Ok(()),
            1 => operands[1..].iter().take(2).copied().collect(),
            _ => depth.to_vec(),
        };
        if user && (index || ggtt) {
            return Ok(());
        }
        let (ggtt, address) = if index { (true, STATUS + (operands[0] & 0xff8)) } else { (ggtt, operands[0]) };
        for (n, value) in data.into_iter().enumerate() {
            self.store(ggtt, address.wrapping_add(n as u32 * 4), value)?;
        }
        Ok(())
    }

    fn predicate(&mut self, header: u32) {
        let wide = |at: u32| u64::from(self.register(at + 4)) << 32 | u64::from(self.register(at));
        let difference = wide(0x2400).wrapping_sub(wide(0x2408));
        let compared = match header & 3 {
            0 => true,
            1 => false,
            2 => wide(0x2400) == wide(0x2408),
            _ => difference == wide(0x2410),
        };
        let old = self.register(0x2418) == 1;
        let new = match header >> 3 & 3 {
            0 => compared,
            1 => old && compared,
            2 => old || compared,
            _ => old != compared,
        };
        if header & 3 == 2 {
            self.registers.insert(0x2410, difference as u32);
            self.registers.insert(0x2414, (difference >> 32) as u32);
        }
        match header >> 6 & 3 {
            2 => self.registers.insert(0x2418, new.into()),
            3 => self.registers.insert(0x2418, (!new).into()),
            _ => None,
        };
    }

    fn mailbox(&mut self, words: &[u32], ggtt: bool) -> Result<Then, Fault> {
        let (header, data, address) = (words[0], words[1], words[2]);
        let by_register = header >> 18 & 1 != 0;
        if header >> 20 & 1 != 0 {
            let value = match (by_register, header >> 16 & 3) {
                (true, 0) => self.own(0x40),
                (true, 1) => self.own(0x48),
                (true, 2) => self.own(0x44),
                (true, _) => self.register(address),
                _ => self.load(ggtt, address)?,
            };
            let control = self.own(0x3c);
            if value <= data {
                self.set_own(0x3c, control | 1 << 10);
                return Ok(Then::Again);
            }
        }
        if header >> 21 & 1 != 0 && !by_register {
            self.store(ggtt, address, data)?;
        }
        Ok(Then::Following)
    }

    /// MI_LOAD_REGISTER_IMM: loads the registers that `loads` accepts.
    fn load_registers(&mut self, words: &[u32], loads: impl Fn(u32) -> bool) {
        let enabled = (0..4).filter(|n| words[0] >> (8 + n) & 1 == 0);
        let mask = enabled.fold(0, |mask, n| mask | 0xff_u32 << (n * 8));
        for pair in words[1..].chunks_exact(2) {
            let at = pair[0] & OFFSET_MASK;
            if loads(at) {
                let old = self.register(at);
                self.registers.insert(at, old & !mask | pair[1] & mask);
            }
        }
    }

    /// MI_SET_CONTEXT.
    fn context(&mut self, operand: u32) {
        let old = self.own(0x180);
        let same = old & 1 != 0 && (old ^ operand) >> 12 == 0;
        if same && operand & 2 == 0 {
            return;
        }
        let modes = [self.base + 0xc0, self.base + 0x110, self.base + 0x220];
        if old & 1 != 0 && !same {
            let values = |names: &mut dyn Iterator<Item = u32>| names.map(|at| (at, self.register(at))).collect();
            let kept: BTreeMap<_, _> = values(&mut KEPT.into_iter().chain(modes));
            let extended: BTreeMap<_, _> = values(&mut EXTENDED.into_iter());
            let before = match self.images.remove(&(old >> 12)) {
                Some(Image::Saved(_, extended)) => extended,
                _ => BTreeMap::new(),
            };
            let extended = if old & 8 != 0 { extended } else { before };
            self.images.insert(old >> 12, Image::Saved(kept, extended));
        }
        let restores_extended = operand & 4 != 0;
        match self.images.get(&(operand >> 12)).cloned() {
            Some(Image::Saved(kept, extended)) if operand & 1 == 0 => {
                self.registers.extend(kept);
                if restores_extended {
                    self.registers.extend(extended);
                }
            }
            Some(Image::Written(commands)) if operand & 1 == 0 => {
                let of_context = |at: u32| KEPT.contains(&at) || restores_extended && EXTENDED.contains(&at);
                let loads = commands.iter().filter(|words| words[0] >> 23 == 0x22);
                loads.for_each(|words| self.load_registers(words, of_context));
            }
            _ => {}
        }
        self.set_own(0x180, operand & 0xffff_f10c | 1);
    }
}
