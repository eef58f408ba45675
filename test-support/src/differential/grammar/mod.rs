// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Generator of well-formed work for an engine: a ring, and the chained and nested batches that it starts.
//!
//! MI commands are selected from the device model's table and encoded by the arm of `Writer::command` for their `Mi`
//! variant. A variant without an arm is not generated.
//!
//! Choices are made from a seed or from a fuzzer's bytes. Behaviour that the documents leave open is not generated.
//! Commands without effect and commands that stop the parser are rare.

mod commands;
mod operands;

use std::fmt::Write;
use std::ops::Range;

use arctic_device_model::decode;
use arctic_device_model::generation::{EngineRef, XE_HPG};
use arctic_device_model::topology::{EngineClass, EngineId};

use crate::differential::choice::Choice;
use crate::differential::layout::*;
use crate::differential::world::Work;

/// Dwords of a command.
pub type Words = Vec<u32>;

/// Work of a context: a ring, and the batches that it starts.
#[derive(Clone, Debug)]
pub struct Case {
    /// The engine that executes it.
    pub engine: EngineId,
    /// The context belongs to a virtual function.
    pub vf: bool,
    /// Offset in the ring at which execution starts.
    pub head: u32,
    /// Commands of the ring.
    pub ring: Vec<Words>,
    /// Commands of the batches, one page each.
    pub batches: [Vec<Words>; BATCH_COUNT],
    /// Seed of the initial contents of the data pages.
    pub fill: u64,
    /// Number of commands between preemptions; `None` without preemption (`Work::interruptions`).
    pub interruptions: Option<u32>,
    /// Whether the host submits the context through the engine's execlist port (`Work::execlist`).
    pub execlist: bool,
    /// Whether starts of batches may add BB_OFFSET: each batch begins with a command that is 128 bytes of MI_NOOPs.
    pub offsets: bool,
}

/// A part of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A batch, by number.
    Batch(usize),
    /// The ring.
    Ring,
}

impl Part {
    /// Returns all parts: batches, then the ring.
    pub fn all() -> impl Iterator<Item = Part> {
        (0..BATCH_COUNT).map(Part::Batch).chain([Part::Ring])
    }
}

const END: u32 = 0x0a << 23;
/// Use Global GTT: the bit for most commands.
const GGTT: u32 = 1 << 22;
/// Register offsets are relative to the engine's base. In MI_LOAD_REGISTER_REG: the offset of the destination.
const RELATIVE: u32 = 1 << 19;

/// Register offsets are those of the class's first instance. In MI_LOAD_REGISTER_REG: the offset of the destination.
const REMAP: u32 = 1 << 17;

/// MI_LOAD_REGISTER_IMM of two registers, relative to the engine's base.
const LOAD_QWORD: u32 = 0x1108_0003;

/// Indirect accesses of MI_MATH (V8-148).
const LOADIND: u32 = 0x082;
const STOREIND: u32 = 0x181;

/// Add Offset Enable of MI_BATCH_BUFFER_START.
const ADD_OFFSET: u32 = 1 << 16;

/// Exclusive upper limit of BB_OFFSET, in bytes.
const OFFSETS: u32 = 128;

/// Generates the commands of the ring or of one batch. The location determines which commands may occur.
struct Writer<'c> {
    choice: &'c mut dyn Choice,
    engine: EngineId,
    class: EngineClass,
    vf: bool,
    /// Index of the batch, or `None` for the ring.
    batch: Option<usize>,
    /// Number of batch starts that may still be generated here.
    starts: u32,
    /// Whether commands that stop the parser may be generated.
    stops: bool,
    /// Whether batches begin with [`OFFSETS`] bytes of MI_NOOPs, so starts may add BB_OFFSET.
    offsets: bool,
    /// Whether the result must not depend on the place of the function in the GGTT, nor on time: see
    /// [`Case::generate_movable`].
    movable: bool,
}

impl Case {
    /// Generates a case of about `size` commands.
    pub fn generate(
        choice: &mut dyn Choice,
        engine: EngineId,
        vf: bool,
        interruptions: Option<u32>,
        size: u32,
    ) -> Case {
        let fill = u64::from(choice.below(FILLS));
        let head = choice.below(RING_BYTES / 8) * 8;
        let execlist = !vf && choice.one_in(2);
        let stops = choice.one_in(4);
        let offsets = choice.one_in(4);
        let mut grammar = Grammar { choice, engine, vf, stops, offsets, movable: false };
        let (batches, ring) = (grammar.batches(size), grammar.ring(size));
        Case { engine, vf, head, ring, batches, fill, interruptions, execlist, offsets }
    }

    /// Generates a case of about `size` commands of a VF that may be moved to another range of the GGTT between any two of them:
    /// no command has an address of the GGTT, and none of them stores a time, or what is not of the context. It does not stop, and
    /// allows preemption at all times.
    pub fn generate_movable(choice: &mut dyn Choice, engine: EngineId, size: u32) -> Case {
        let fill = u64::from(choice.below(FILLS));
        let head = choice.below(RING_BYTES / 8) * 8;
        let offsets = choice.one_in(4);
        let mut grammar = Grammar { choice, engine, vf: true, stops: false, offsets, movable: true };
        let (batches, ring) = (grammar.batches(size), grammar.ring(size));
        Case { engine, vf: true, head, ring, batches, fill, interruptions: None, execlist: false, offsets }
    }

    /// Inserts commands, each of them at a random place of the ring or of a batch.
    pub fn insert(&mut self, choice: &mut dyn Choice, commands: impl IntoIterator<Item = Words>) {
        for words in commands {
            let number = choice.below(BATCH_COUNT as u32 * 2) as usize;
            let (part, first) = match self.batches.get_mut(number) {
                Some(batch) => (batch, usize::from(self.offsets)),
                None => (&mut self.ring, 0),
            };
            // A batch ends with its last command.
            let last = part.len() - usize::from(number < BATCH_COUNT);
            let at = first + choice.below((last - first) as u32 + 1) as usize;
            part.insert(at, words);
        }
    }

    /// Returns the commands of a part.
    pub fn commands(&self, part: Part) -> &[Words] {
        match part {
            Part::Batch(n) => &self.batches[n],
            Part::Ring => &self.ring,
        }
    }

    /// Returns the case without the commands `range` of a part.
    pub fn without(&self, part: Part, range: Range<usize>) -> Case {
        let mut case = self.clone();
        match part {
            Part::Batch(n) => case.batches[n].drain(range),
            Part::Ring => case.ring.drain(range),
        };
        case
    }

    /// Returns whether the case keeps the grammar's rules, of a case whose commands are some of a generated one. Each
    /// batch ends with MI_BATCH_BUFFER_END. If a start of a batch adds BB_OFFSET, each batch begins with the MI_NOOPs. The
    /// address of an indirect access of MI_MATH is loaded by the command before it. Otherwise execution gets to places and
    /// addresses where the documents leave the behaviour open.
    pub fn is_well_formed(&self) -> bool {
        let mut starts = Part::all().flat_map(|part| self.commands(part));
        let adds_offset = self.offsets && starts.any(|words| words[0] >> 23 == 0x31 && words[0] & ADD_OFFSET != 0);
        let prefix = vec![0; OFFSETS as usize / 4];
        let is_batch = |commands: &Vec<Words>| {
            commands.last().is_some_and(|words| words[..] == [END]) && (!adds_offset || commands[0] == prefix)
        };
        let loads_addresses = |part| {
            let commands = self.commands(part);
            let before = [None].into_iter().chain(commands.iter().map(Some));
            commands.iter().zip(before).all(|(words, before)| loads_address(before, words))
        };
        self.batches.iter().all(is_batch) && Part::all().all(loads_addresses)
    }

    /// Returns the ring's dwords, starting at its head. No command wraps around the end of the ring, and the length is
    /// a multiple of a qword (V8-067).
    pub fn ring_words(&self) -> Words {
        let dwords = RING_BYTES as usize / 4;
        let first = self.head as usize / 4;
        let mut words = Words::new();
        for command in &self.ring {
            let at = (first + words.len()) % dwords;
            if at + command.len() > dwords {
                words.resize(words.len() + dwords - at, 0);
            }
            words.extend(command);
        }
        words.resize(words.len().next_multiple_of(2), 0);
        words
    }

    /// Returns the dwords of batch `n`.
    pub fn batch_words(&self, n: usize) -> Words {
        let mut words = self.batches[n].concat();
        words.truncate(PAGE as usize / 4);
        words
    }

    /// Returns the work for an engine.
    pub fn work(&self) -> Work {
        Work {
            engine: self.engine,
            head: self.head,
            ring: self.ring_words(),
            batches: (0..BATCH_COUNT).map(|n| self.batch_words(n)).collect(),
            fill: self.fill,
            interruptions: self.interruptions,
            execlist: self.execlist,
        }
    }

    /// Returns the names of the commands, which identify a finding.
    pub fn name(&self) -> String {
        let commands = self.ring.iter().chain(self.batches.iter().flatten()).filter(|words| words[..] != [END]);
        let engine = EngineRef { generation: &XE_HPG, id: self.engine };
        let names = commands.map(|words| decode::split(engine, words).next().and_then(|command| command.name));
        names.map(|name| name.unwrap_or("(none)")).collect::<Vec<_>>().join(" ")
    }

    /// Returns a human-readable listing.
    pub fn disassembled(&self) -> String {
        let mut text = format!(
            "{} of {}, ring from {:#x}, data {:#x}, interrupted every {:?}, execlist {}\n",
            XE_HPG.engines.info(self.engine).name,
            if self.vf { "a VF" } else { "the PF" },
            self.head,
            self.fill,
            self.interruptions,
            self.execlist
        );
        let mut part = |name: &str, commands: &[Words]| {
            let _ = writeln!(text, "{name}:");
            for words in commands {
                let command = decode::split(EngineRef { generation: &XE_HPG, id: self.engine }, words).next();
                let name = command.and_then(|command| command.name).unwrap_or("(none)");
                let dwords: Vec<String> = words.iter().map(|word| format!("{word:08x}")).collect();
                let _ = writeln!(text, "    {name} {}", dwords.join(" "));
            }
        };
        part("ring", &self.ring);
        for (n, commands) in self.batches.iter().enumerate() {
            if commands.iter().any(|words| words[..] != [END]) {
                part(&format!("batch {n} at {:#x}", batch_address(n)), commands);
            }
        }
        text
    }
}

/// What the commands of a case depend on.
struct Grammar<'c> {
    choice: &'c mut dyn Choice,
    engine: EngineId,
    vf: bool,
    stops: bool,
    offsets: bool,
    movable: bool,
}

impl Grammar<'_> {
    fn writer(&mut self, batch: Option<usize>, starts: u32) -> Writer<'_> {
        let Grammar { ref mut choice, engine, vf, stops, offsets, movable } = *self;
        let class = XE_HPG.engines.info(engine).class;
        Writer { choice: &mut **choice, engine, class, vf, batch, starts, stops, offsets, movable }
    }

    fn batches(&mut self, size: u32) -> [Vec<Words>; BATCH_COUNT] {
        std::array::from_fn(|n| {
            let mut writer = self.writer(Some(n), 2);
            let count = 2 + writer.choice.below(size / 3 + 1);
            let mut commands = writer.commands(count);
            commands.push(vec![END]);
            if self.offsets {
                commands.insert(0, vec![0; OFFSETS as usize / 4]);
            }
            commands
        })
    }

    fn ring(&mut self, size: u32) -> Vec<Words> {
        let mut writer = self.writer(None, 3);
        let mut ring = vec![writer.batch_buffer_start()];
        let count = 1 + writer.choice.below(size / 2 + 1);
        ring.extend(writer.commands(count));
        ring
    }
}

/// Returns whether `words` is no MI_MATH with an indirect access, or the command before it loads the address.
fn loads_address(before: Option<&Words>, words: &[u32]) -> bool {
    let is_indirect = |word: &u32| matches!(word >> 20, LOADIND | STOREIND);
    if words[0] >> 23 != 0x1a || !words[1..].iter().any(is_indirect) {
        return true;
    }
    // The first instruction loads an input of the ALU with the register that has the address.
    let low = 0x600 + (words[1] & 0x3ff) * 8;
    before.is_some_and(|load| load[0] == LOAD_QWORD && load[1] == low && load[3] == low + 4)
}

/// Returns the address of batch `n`, which is the same in GGTT and PPGTT.
pub fn batch_address(n: usize) -> u64 {
    BASE + (at::BATCHES + n as u64) * PAGE
}
