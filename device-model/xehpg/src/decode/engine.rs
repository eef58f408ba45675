// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the disassembler gets of an engine: its commands, their effect on a batch, the names of its registers.

use arctic_base::command::{Addressing, Decode, Description, Next, Remarks, Target};
use arctic_base::decode::show::{Names, Shown, element};

use super::register;
use crate::command::mi::{MiCommand, fields};
use crate::command::{Command, Mi, Requester};
use crate::engine::addressing::command_register;
use crate::generation::EngineRef;

impl Decode for EngineRef {
    fn name(&self) -> &str {
        self.info().name
    }

    fn describe(&self, header: u32) -> Option<Description> {
        self.generation.commands.decode(header, self.info().class).map(|command| command.describe(header))
    }

    fn remarks(&self, words: &[u32], requester: Requester) -> Remarks {
        let header = words.first().copied().unwrap_or(0);
        match self.generation.commands.decode(header, self.info().class) {
            None => Remarks::default(),
            Some(Command::Mi(mi)) => {
                let mut remarks = Remarks { notes: mi.remarks(words, requester), next: next(mi, words, requester) };
                if mi.action == Mi::BatchBufferEnd && remarks.next == Next::Following {
                    remarks.notes.push("ends the batch unless MI_SET_PREDICATE_RESULT is set".into());
                }
                remarks
            }
            Some(Command::Gfx(gfx)) => Remarks { notes: gfx.remarks(header), next: Next::Following },
            Some(Command::Blit(blit)) => Remarks { notes: blit.remarks(header), next: Next::Following },
        }
    }
}

/// The command that is executed after `mi`.
fn next(mi: &MiCommand, words: &[u32], requester: Requester) -> Next {
    let conditional = fields::PREDICATE.is_set(words);
    match mi.action {
        Mi::BatchBufferStart if words.len() > 2 => {
            let target = Target {
                address: fields::BATCH_ADDRESS.wide(words),
                ppgtt: fields::BATCH_SPACE.is_set(words),
                returns: requester.privileged() || fields::SECOND_LEVEL.is_set(words),
            };
            Next::Start { target, conditional }
        }
        Mi::BatchBufferEnd if !conditional => Next::End,
        _ => Next::Following,
    }
}

impl Names for EngineRef {
    fn register(&self, offset: u32, addressing: Addressing) -> String {
        let engines = self.generation.engines;
        let offset = command_register(engines, self.id, self.info().mmio_base, offset, addressing);
        register::name(self.generation, offset)
    }

    fn element(&self, fields: &[Shown], words: &[u32]) -> String {
        match fields {
            [opcode, first, second] if opcode.name == "ALU Opcode" => alu(opcode, first, second, words),
            fields => element(fields),
        }
    }
}

/// Text for an instruction of MI_MATH.
fn alu(opcode: &Shown, first: &Shown, second: &Shown, words: &[u32]) -> String {
    let operand = |field: &Shown| field.meaning.clone().unwrap_or_else(|| format!("{:#x}", field.value));
    let name = operand(opcode);
    match (opcode.value >> 7 & 7, name.as_str()) {
        // LOAD0 and LOAD1 have no source.
        (1, "LOAD0" | "LOAD1") => format!("{name} {}", operand(first)),
        (1 | 3, _) => format!("{name} {}, {}", operand(first), operand(second)),
        (0 | 2, _) => name,
        _ => format!("{:#010x}", words.first().copied().unwrap_or(0)),
    }
}
