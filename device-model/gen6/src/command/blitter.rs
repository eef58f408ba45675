// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of the copy engine: the client 2D, header bits 31:29 = 2 (G67-121; i915: gt/intel_gpu_commands.h,
//! i915_cmd_parser.c; libdrm: intel/intel_decode.c). Addresses have 32 bits, one dword.

mod fields;

use arctic_base::command::Length;
use arctic_base::command::row::ClientCommand;

/// Action of a command of the copy engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blt {
    /// XY_SETUP_BLT: sets the setup registers and the clipping rectangle.
    Setup,
    /// XY_SETUP_MONO_PATTERN_SL_BLT: the same, with a monochrome pattern.
    SetupMono,
    /// XY_SETUP_CLIP_BLT: sets the clipping rectangle.
    SetupClip,
    /// XY_PIXEL_BLT: fills a pixel by the setup registers.
    Pixel,
    /// XY_SCANLINES_BLT: fills a rectangle by the setup registers.
    Scanlines,
    /// COLOR_BLT: fills a rectangle at an address.
    Color,
    /// SRC_COPY_BLT: copies a rectangle between addresses.
    SourceCopy,
    /// XY_COLOR_BLT: fills a rectangle of a surface.
    XyColor,
    /// XY_SRC_COPY_BLT: copies a rectangle between surfaces.
    XySourceCopy,
    /// A command that the model does not execute: it is skipped and counted.
    Skipped,
}

/// A command of the client 2D; its opcode has the header bits 28:22.
pub type BlitCommand = ClientCommand<Blt>;

/// Bits 7:0: the length minus two.
const LENGTH: Length = Length::field(0xff);

/// A command that is not executed: those with colour patterns in memory, monochrome patterns and monochrome sources.
const fn skipped(opcode: u16, name: &'static str) -> BlitCommand {
    BlitCommand { opcode, name, length: LENGTH, lengths: &[], fields: &[], action: Blt::Skipped }
}

/// The commands, by opcode.
#[rustfmt::skip]
pub static COMMANDS: [BlitCommand; 26] = [
    BlitCommand { opcode: 0x01, name: "XY_SETUP_BLT",                 length: LENGTH, lengths: &[8], fields: fields::SETUP,       action: Blt::Setup },
    BlitCommand { opcode: 0x03, name: "XY_SETUP_CLIP_BLT",            length: LENGTH, lengths: &[3], fields: fields::SETUP_CLIP,  action: Blt::SetupClip },
    BlitCommand { opcode: 0x11, name: "XY_SETUP_MONO_PATTERN_SL_BLT", length: LENGTH, lengths: &[9], fields: fields::SETUP_MONO,  action: Blt::SetupMono },
    BlitCommand { opcode: 0x24, name: "XY_PIXEL_BLT",                 length: LENGTH, lengths: &[2], fields: fields::PIXEL,       action: Blt::Pixel },
    BlitCommand { opcode: 0x25, name: "XY_SCANLINES_BLT",             length: LENGTH, lengths: &[3], fields: fields::SCANLINES,   action: Blt::Scanlines },
    skipped(0x26, "XY_TEXT_BLT"),
    skipped(0x31, "XY_TEXT_IMMEDIATE_BLT"),
    BlitCommand { opcode: 0x40, name: "COLOR_BLT",                    length: LENGTH, lengths: &[5], fields: fields::COLOR,       action: Blt::Color },
    BlitCommand { opcode: 0x43, name: "SRC_COPY_BLT",                 length: LENGTH, lengths: &[6], fields: fields::SRC_COPY,    action: Blt::SourceCopy },
    BlitCommand { opcode: 0x50, name: "XY_COLOR_BLT",                 length: LENGTH, lengths: &[6], fields: fields::XY_COLOR,    action: Blt::XyColor },
    skipped(0x51, "XY_PAT_BLT"),
    skipped(0x52, "XY_MONO_PAT_BLT"),
    BlitCommand { opcode: 0x53, name: "XY_SRC_COPY_BLT",              length: LENGTH, lengths: &[8], fields: fields::XY_SRC_COPY, action: Blt::XySourceCopy },
    skipped(0x54, "XY_MONO_SRC_COPY_BLT"),
    skipped(0x55, "XY_FULL_BLT"),
    skipped(0x56, "XY_FULL_MONO_SRC_BLT"),
    skipped(0x57, "XY_FULL_MONO_PATTERN_BLT"),
    skipped(0x58, "XY_FULL_MONO_PATTERN_MONO_SRC_BLT"),
    skipped(0x59, "XY_MONO_PAT_FIXED_BLT"),
    skipped(0x71, "XY_MONO_SRC_COPY_IMMEDIATE_BLT"),
    skipped(0x72, "XY_PAT_BLT_IMMEDIATE"),
    skipped(0x73, "XY_SRC_COPY_CHROMA_BLT"),
    skipped(0x74, "XY_FULL_IMMEDIATE_PATTERN_BLT"),
    skipped(0x75, "XY_FULL_MONO_SRC_IMMEDIATE_PATTERN_BLT"),
    skipped(0x76, "XY_PAT_CHROMA_BLT"),
    skipped(0x77, "XY_PAT_CHROMA_BLT_IMMEDIATE"),
];

/// Other opcodes, which are reserved.
static RESERVED: BlitCommand = skipped(0, "2D command");

/// Finds the command of `commands` with this header of the client 2D.
pub fn lookup(commands: &'static [BlitCommand], header: u32) -> &'static BlitCommand {
    let opcode = (header >> 22 & 0x7f) as u16;
    ClientCommand::find(commands, opcode).unwrap_or(&RESERVED)
}
