// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Command table of the copy engine (Mesa genxml gen125; IGT lib/intel_blt.c; xe_migrate.c).

mod fields;

use arctic_base::command::Length;
use arctic_base::command::row::ClientCommand;

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

/// A command of the 2D client (header bits 31:29 = 2); its opcode has the header bits 28:22.
pub type BlitCommand = ClientCommand<Blt>;

/// Bits 7:0: the length minus two.
const LENGTH: Length = Length::field(0xff);

/// The commands. XY_SETUP_CLIP_BLT is a no-op: only the text, scanline and pixel commands use its rectangle, and the
/// card does not have them. IGT emits it after a copy within one surface.
#[rustfmt::skip]
pub static COMMANDS: [BlitCommand; 7] = [
    BlitCommand { opcode: 0x03, name: "XY_SETUP_CLIP_BLT",     length: LENGTH, lengths: &[3],      fields: fields::SETUP_CLIP,     action: Blt::SetupClip },
    BlitCommand { opcode: 0x41, name: "XY_BLOCK_COPY_BLT",     length: LENGTH, lengths: &[12, 22], fields: fields::BLOCK_COPY,     action: Blt::BlockCopy },
    BlitCommand { opcode: 0x42, name: "XY_FAST_COPY_BLT",      length: LENGTH, lengths: &[10],     fields: fields::FAST_COPY,      action: Blt::FastCopy },
    BlitCommand { opcode: 0x44, name: "XY_FAST_COLOR_BLT",     length: LENGTH, lengths: &[11, 16], fields: fields::FAST_COLOR,     action: Blt::FastColor },
    BlitCommand { opcode: 0x48, name: "XY_CTRL_SURF_COPY_BLT", length: LENGTH, lengths: &[5],      fields: fields::CTRL_SURF_COPY, action: Blt::ControlSurfaceCopy },
    BlitCommand { opcode: 0x50, name: "XY_COLOR_BLT",          length: LENGTH, lengths: &[7],      fields: fields::COLOR,          action: Blt::Color },
    BlitCommand { opcode: 0x53, name: "XY_SRC_COPY_BLT",       length: LENGTH, lengths: &[10],     fields: fields::SRC_COPY,       action: Blt::SourceCopy },
];

/// Header bits 31:29 of the 2D client.
const CLIENT_2D: u32 = 2;

/// Finds the command of `commands` with this header.
pub fn lookup(commands: &'static [BlitCommand], header: u32) -> Option<&'static BlitCommand> {
    let opcode = (header >> 22 & 0x7f) as u16;
    if header >> 29 == CLIENT_2D { ClientCommand::find(commands, opcode) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_consistent() {
        ClientCommand::check(&COMMANDS, 0xffc0_0000);
    }
}
