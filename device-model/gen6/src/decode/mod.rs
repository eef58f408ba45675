// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Disassembler for a card's batches, rings and context images, and the fields of registers in error states. It uses the
//! tables with which the card executes commands, but does not need a card. Its run time is bounded by the length of the
//! input.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod context;
pub mod family;
#[cfg(test)]
mod lengths;
mod register;
pub mod state;
#[cfg(test)]
mod tests;

use arctic_base::command::{Addressing, Decode, Description, Next, Remarks, Requester, Target};
use arctic_base::decode::batch;
use arctic_base::decode::show::Names;

use crate::command::mi::fields;
use crate::command::{Command, Mi, MiCommand};
use crate::generation::EngineRef;

/// Input of the disassembler.
pub type Batch<'b> = batch::Batch<'b, EngineRef>;

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
            Some(Command::Mi(mi)) => Remarks { notes: mi.remarks(words, requester), next: next(mi, words, requester) },
            Some(Command::Blit(row)) => Remarks { notes: row.remarks(header), next: Next::Following },
            Some(Command::Pipeline(row)) => Remarks { notes: row.remarks(header), next: Next::Following },
        }
    }
}

/// The command that is executed after `mi`. A start in a batch chains it: execution does not return (IVB-164).
fn next(mi: &MiCommand, words: &[u32], requester: Requester) -> Next {
    match mi.action {
        Mi::BatchStart if words.len() > 1 => {
            let target = Target {
                address: fields::BATCH_ADDRESS.wide(words),
                ppgtt: fields::BATCH_SPACE.is_set(words),
                returns: requester.privileged(),
            };
            Next::Start { target, conditional: false }
        }
        Mi::BatchEnd => Next::End,
        _ => Next::Following,
    }
}

impl Names for EngineRef {
    fn register(&self, offset: u32, _: Addressing) -> String {
        register::name(self.generation, offset)
    }
}
