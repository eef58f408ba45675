// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tables of the engines' commands, one per client (bits 31:29 of the header). The command streamer and the
//! disassembler use them.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod blt;
pub mod gfx;
pub mod mi;

use arctic_base::command::Description;
pub use arctic_base::command::{Field, FieldKind, Group, Length, Origin, Requester, Rule, field, origin, rule};

pub use crate::topology::Classes;
use crate::topology::EngineClass;
pub use mi::Mi;

/// A decoded command header: the variant is the client (bits 31:29), its value the description of the opcode.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// Memory interface (MI) command, executed by the command streamer itself.
    Mi(&'static mi::MiCommand),
    /// Command of the render, compute or media pipeline.
    Gfx(gfx::GfxCommand),
    /// Command of the copy engine.
    Blit(&'static blt::BlitCommand),
}

/// The commands of a generation's engines, one table per client.
pub struct CommandSet {
    /// Memory interface commands, by opcode.
    pub mi: &'static mi::Table,
    /// Names of the commands of the render, compute and media pipelines.
    pub gfx: &'static gfx::Pipelines,
    /// Commands of the copy engine.
    pub blt: &'static [blt::BlitCommand],
}

/// The commands of Xe-HPG.
pub static XE_HPG_COMMANDS: CommandSet =
    CommandSet { mi: &mi::BY_OPCODE, gfx: &gfx::XE_HPG_PIPELINES, blt: &blt::COMMANDS };

impl CommandSet {
    /// Decodes `header` on an engine of `class`; `None` if the engine does not have the command (V8-095, V8-099).
    pub fn decode(&self, header: u32, class: EngineClass) -> Option<Command> {
        match header >> 29 {
            0 => mi::lookup(self.mi, header).filter(|command| command.classes.has(class)).map(Command::Mi),
            2 if class == EngineClass::Copy => blt::lookup(self.blt, header).map(Command::Blit),
            3 => gfx::lookup(self.gfx, header, class).map(Command::Gfx),
            _ => None,
        }
    }

    /// Number of a command that is not a blit, for tables: an MI command's opcode, then the commands of the pipelines.
    /// 0 for a blit.
    pub fn number(&self, command: &Command) -> usize {
        match command {
            Command::Mi(command) => usize::from(command.opcode),
            Command::Gfx(command) => self.mi.len().saturating_add(usize::from(command.number)),
            Command::Blit(_) => 0,
        }
    }

    /// Number of values of [`CommandSet::number`] on an engine of `class`.
    pub fn numbers(&self, class: EngineClass) -> usize {
        self.mi.len().saturating_add(self.gfx.numbers(class))
    }

    /// Name of the command with this [`CommandSet::number`] on an engine of `class`.
    pub fn name_of(&self, number: usize, class: EngineClass) -> &'static str {
        let name = match number.checked_sub(self.mi.len()) {
            None => self.mi.get(number).and_then(|command| command.map(|command| command.name)),
            Some(number) => self.gfx.name_of(number, class),
        };
        name.unwrap_or("unnamed")
    }
}

impl Command {
    /// Length in dwords of the command, including its header.
    #[inline]
    pub fn dwords(&self, header: u32) -> u32 {
        match self {
            Command::Mi(command) => command.length.dwords(header),
            Command::Gfx(command) => command.length.dwords(header),
            Command::Blit(command) => command.dwords(header),
        }
    }

    /// Name as in the PRM.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Mi(command) => command.name,
            Command::Gfx(command) => command.name,
            Command::Blit(command) => command.name,
        }
    }

    /// Its description with this header.
    pub fn describe(&self, header: u32) -> Description {
        match self {
            Command::Mi(command) => command.describe(header),
            Command::Gfx(command) => command.describe(header),
            Command::Blit(command) => command.describe(header),
        }
    }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    #[test]
    fn reserved_headers_are_not_decoded() {
        proves!(
            [V8_095, V8_099],
            "headers with the reserved clients 1 and 4 to 7, or with a reserved MI opcode, are not decoded"
        );
        for client in [1u32, 4, 5, 6, 7] {
            assert!(XE_HPG_COMMANDS.decode(client << 29, EngineClass::Render).is_none());
        }
        for opcode in [0x10u32, 0x15, 0x17, 0x1f, 0x30, 0x32, 0x33, 0x37, 0x38, 0x3a, 0x3f] {
            assert!(XE_HPG_COMMANDS.decode(opcode << 23, EngineClass::Render).is_none(), "{opcode:#x}");
        }
    }

    #[test]
    fn commands_are_decoded_only_on_their_engine_classes() {
        proves!([V8_097, V8_098, V8_127], "a command is decoded only on the engine classes that have it");
        let has = |opcode: u32, class| XE_HPG_COMMANDS.decode(opcode << 23, class).is_some();
        assert!(has(0x26, EngineClass::Copy) && !has(0x26, EngineClass::Render));
        assert!(has(0x0c, EngineClass::Compute) && !has(0x0c, EngineClass::VideoDecode));
        assert!(has(0x08, EngineClass::Copy), "drivers emit MI_ARB_ON_OFF on the copy engine (vol8.md note T7)");
    }
}
