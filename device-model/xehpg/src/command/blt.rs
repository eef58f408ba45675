// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Command table of the copy engine (Mesa genxml gen125; IGT lib/intel_blt.c; xe_migrate.c).

mod fields;

use crate::command::Field;

/// Operations of the copy engine's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blt {
    /// Sets the clip rectangle of commands that the card does not have.
    SetupClip,
    /// XY_BLOCK_COPY_BLT.
    BlockCopy,
    /// XY_FAST_COPY_BLT.
    FastCopy,
    /// XY_FAST_COLOR_BLT.
    FastColor,
    /// XY_CTRL_SURF_COPY_BLT.
    ControlSurfaceCopy,
    /// XY_COLOR_BLT.
    Color,
    /// XY_SRC_COPY_BLT.
    SourceCopy,
}

/// A command of the 2D client (header bits 31:29 = 2).
pub struct BlitCommand {
    /// Header bits 28:22.
    pub opcode: u8,
    /// Name as in the documents.
    pub name: &'static str,
    /// Valid lengths in dwords.
    pub lengths: &'static [usize],
    /// Its fields, except opcode and length.
    pub fields: &'static [Field],
    /// Its operation, by which the copy engine selects the decoder.
    pub operation: Blt,
}

impl BlitCommand {
    /// Length in dwords of a command with this header: bits 7:0 plus two.
    #[allow(clippy::arithmetic_side_effects, reason = "the field has 8 bits")]
    pub fn dwords(&self, header: u32) -> u32 {
        (header & 0xff) + 2
    }
}

impl std::fmt::Debug for BlitCommand {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

/// The commands. XY_SETUP_CLIP_BLT is a no-op: only the text, scanline and pixel commands use its rectangle, and the
/// card does not have them. IGT emits it after a copy within one surface.
#[rustfmt::skip]
pub static COMMANDS: [BlitCommand; 7] = [
    BlitCommand { opcode: 0x03, name: "XY_SETUP_CLIP_BLT",     lengths: &[3],      fields: fields::SETUP_CLIP,     operation: Blt::SetupClip },
    BlitCommand { opcode: 0x41, name: "XY_BLOCK_COPY_BLT",     lengths: &[12, 22], fields: fields::BLOCK_COPY,     operation: Blt::BlockCopy },
    BlitCommand { opcode: 0x42, name: "XY_FAST_COPY_BLT",      lengths: &[10],     fields: fields::FAST_COPY,      operation: Blt::FastCopy },
    BlitCommand { opcode: 0x44, name: "XY_FAST_COLOR_BLT",     lengths: &[11, 16], fields: fields::FAST_COLOR,     operation: Blt::FastColor },
    BlitCommand { opcode: 0x48, name: "XY_CTRL_SURF_COPY_BLT", lengths: &[5],      fields: fields::CTRL_SURF_COPY, operation: Blt::ControlSurfaceCopy },
    BlitCommand { opcode: 0x50, name: "XY_COLOR_BLT",          lengths: &[7],      fields: fields::COLOR,          operation: Blt::Color },
    BlitCommand { opcode: 0x53, name: "XY_SRC_COPY_BLT",       lengths: &[10],     fields: fields::SRC_COPY,       operation: Blt::SourceCopy },
];

/// Header bits 31:29 of the 2D client.
const CLIENT_2D: u32 = 2;

/// Finds the command of `commands` with this header.
pub fn lookup(commands: &'static [BlitCommand], header: u32) -> Option<&'static BlitCommand> {
    let opcode = (header >> 22 & 0x7f) as u8;
    (header >> 29 == CLIENT_2D).then(|| commands.iter().find(|command| command.opcode == opcode)).flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use super::*;
    use crate::command::field::check_layout;

    /// The fields of each command are within its longest form, outside opcode and length, and do not overlap.
    #[test]
    fn fields_lie_in_their_commands() {
        for command in &COMMANDS {
            let longest = command.lengths.iter().max().map_or(0, |dwords| *dwords as u32);
            check_layout(command.name, command.fields, None, longest, 0xffc0_00ff);
        }
    }
}
