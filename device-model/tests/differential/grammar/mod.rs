//! Well-formed batches: rings, chained and nested batches of the commands that the tables have for an engine's class.
//!
//! Choices come from a seed or from a fuzzer's bytes. What the documents leave open is not generated; where they say that
//! a command has no effect, or stops the parser, it is, rarely.

mod commands;
mod operands;

use std::fmt::Write;

use arctic_device_model::command;
use arctic_device_model::engine::id::{EngineClass, EngineId};

use crate::choice::Choice;
use crate::layout::*;
use crate::world::Work;

/// A command's dwords.
pub type Words = Vec<u32>;

/// A context's work: a ring, and the batches that it starts.
#[derive(Clone, Debug)]
pub struct Case {
    pub engine: EngineId,
    /// The context is a virtual function's.
    pub vf: bool,
    /// Where in the ring it starts.
    pub head: u32,
    pub ring: Vec<Words>,
    pub batches: [Vec<Words>; 8],
    /// What the data pages start with.
    pub fill: u64,
    /// Whether, and how often, somebody else wants the engine ([`Work::interruptions`]).
    pub interruptions: Option<u32>,
    /// Whether the host submits it by the engine's queue ([`Work::execlist`]).
    pub execlist: bool,
}

const END: u32 = 0x0a << 23;
/// The address is global; in most commands.
const GGTT: u32 = 1 << 22;
/// Register offsets are from the engine's base; of the destination in MI_LOAD_REGISTER_REG.
const RELATIVE: u32 = 1 << 19;

/// Registers are named by the numbers of the class's first instance; of the destination in MI_LOAD_REGISTER_REG.
const REMAP: u32 = 1 << 17;

/// BB_OFFSET is less in any batch that heeds it.
const OFFSETS: u32 = 128;

/// Who is writing: where the commands go decides what can be among them.
struct Writer<'c> {
    choice: &'c mut dyn Choice,
    engine: EngineId,
    class: EngineClass,
    vf: bool,
    /// Number of the batch, or `None` in the ring.
    batch: Option<usize>,
    /// Starts of batches that may still be written here.
    starts: u32,
    /// Whether commands that stop the parser may be written.
    stops: bool,
    /// Whether batches begin with so many MI_NOOPs that BB_OFFSET may lead behind their start.
    offsets: bool,
}

impl Case {
    /// A case of about `size` commands.
    pub fn generate(
        choice: &mut dyn Choice,
        engine: EngineId,
        vf: bool,
        interruptions: Option<u32>,
        size: u32,
    ) -> Case {
        let class = engine.info().class;
        let fill = u64::from(choice.below(FILLS));
        let head = choice.below(RING_BYTES / 8) * 8;
        let execlist = !vf && choice.one_in(2);
        let stops = choice.one_in(4);
        let offsets = choice.one_in(4);
        let batches = std::array::from_fn(|n| {
            let mut writer =
                Writer { choice: &mut *choice, engine, class, vf, batch: Some(n), starts: 2, stops, offsets };
            let count = 2 + writer.choice.below(size / 3 + 1);
            let mut commands = writer.commands(count);
            commands.push(vec![END]);
            if offsets {
                commands.insert(0, vec![0; OFFSETS as usize / 4]);
            }
            commands
        });
        let mut writer = Writer { choice: &mut *choice, engine, class, vf, batch: None, starts: 3, stops, offsets };
        let mut ring = vec![writer.batch_buffer_start()];
        let count = 1 + writer.choice.below(size / 2 + 1);
        ring.extend(writer.commands(count));
        Case { engine, vf, head, ring, batches, fill, interruptions, execlist }
    }

    /// The ring as dwords from its head, no command across its end, padded to a qword (V8-067).
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

    /// Batch `n` as dwords.
    pub fn batch_words(&self, n: usize) -> Words {
        let mut words = self.batches[n].concat();
        words.truncate(PAGE as usize / 4);
        words
    }

    /// The case as an engine is given it.
    pub fn work(&self) -> Work {
        Work {
            engine: self.engine,
            head: self.head,
            ring: self.ring_words(),
            batches: (0..8).map(|n| self.batch_words(n)).collect(),
            fill: self.fill,
            interruptions: self.interruptions,
            execlist: self.execlist,
        }
    }

    /// How many commands it has.
    pub fn len(&self) -> usize {
        self.ring.len() + self.batches.iter().map(Vec::len).sum::<usize>()
    }

    /// What is in it, by the commands' names: by that, findings are told apart.
    pub fn name(&self) -> String {
        let commands = self.ring.iter().chain(self.batches.iter().flatten()).filter(|words| words[..] != [END]);
        let names = commands
            .map(|words| command::disassemble(words, self.engine.info().class).next().and_then(|line| line.name));
        names.map(|name| name.unwrap_or("(none)")).collect::<Vec<_>>().join(" ")
    }

    /// The case as a person reads it.
    pub fn disassembled(&self) -> String {
        let mut text = format!(
            "{} of {}, ring from {:#x}, data {:#x}, interrupted every {:?}, execlist {}\n",
            self.engine.info().name,
            if self.vf { "a VF" } else { "the PF" },
            self.head,
            self.fill,
            self.interruptions,
            self.execlist
        );
        let mut part = |name: &str, commands: &[Words]| {
            let _ = writeln!(text, "{name}:");
            for words in commands {
                let line = command::disassemble(words, self.engine.info().class).next();
                let name = line.and_then(|line| line.name).unwrap_or("(none)");
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

/// Address of batch `n`, in both spaces.
pub fn batch_address(n: usize) -> u64 {
    BASE + (at::BATCHES + n as u64) * PAGE
}
