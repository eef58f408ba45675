// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The families of GPUs that files are decoded for, and the engines by the names that users and drivers give them.

use arctic_device_model::decode::{Message, family::FlexSeries};
use arctic_device_model::disassembler;
use arctic_device_model::gen6::decode::family::{IVY_BRIDGE, SANDY_BRIDGE};
use arctic_device_model::topology::EngineClass;
use arctic_gpu::card_file::CardFile;
use arctic_gpu::gpu::Model;

/// A family of GPUs, or a generation of one: its engines have the same commands and registers.
pub type Family = &'static dyn disassembler::Family<Message>;

/// An engine of a family.
pub type Engine = &'static dyn disassembler::Engine<Message>;

/// Input of the disassembler.
pub type Batch<'b> = disassembler::Batch<'b, Engine>;

/// The Flex series, which files are of that do not say what they are of.
pub const FLEX: Family = &FlexSeries;

/// All families.
pub static FAMILIES: [Family; 3] = [FLEX, &SANDY_BRIDGE, &IVY_BRIDGE];

/// Names of engines in error states that Linux wrote before 4.11: of the registers (`blt`), of the objects (`blitter ring`).
/// Source: ring_str in i915_gpu_error.c, and the names in intel_ringbuffer.c and intel_lrc.c.
const OLD_NAMES: [(&str, &str); 14] = [
    ("render", "rcs0"),
    ("render ring", "rcs0"),
    ("rcs", "rcs0"),
    ("blt", "bcs0"),
    ("blitter ring", "bcs0"),
    ("bcs", "bcs0"),
    ("bsd", "vcs0"),
    ("bsd ring", "vcs0"),
    ("vcs", "vcs0"),
    ("bsd2", "vcs1"),
    ("bsd2 ring", "vcs1"),
    ("vebox", "vecs0"),
    ("video enhancement ring", "vecs0"),
    ("vecs", "vecs0"),
];

/// The names of the classes of engines, which the families have in common.
pub fn classes() -> [&'static str; 5] {
    EngineClass::BY_GUC.map(EngineClass::name)
}

/// The family of a card.
pub fn of_card(card: &CardFile) -> Option<Family> {
    of_device(card.identity().device)
}

/// The family with this name in a capture.
pub fn named(name: Option<&str>) -> Option<Family> {
    FAMILIES.into_iter().find(|family| family.name() == name)
}

/// The family with this PCI device ID: its tables hold for all parts, also for those that no card file describes.
pub fn of_device(device: u16) -> Option<Family> {
    FAMILIES.into_iter().find(|family| family.has_device(device))
}

/// The family with this name of a platform in i915.
pub fn of_platform(platform: &str) -> Option<Family> {
    FAMILIES.into_iter().find(|family| platform.eq_ignore_ascii_case(family.platform()))
}

/// Names of the engines of a family.
pub fn names(family: Family) -> Vec<&'static str> {
    family.engines().iter().map(|engine| engine.name()).collect()
}

/// Finds an engine by its name in an error state of any version of i915.
pub fn of_i915(family: Family, name: &str) -> Option<Engine> {
    let old = OLD_NAMES.iter().find(|(old, _)| *old == name).map(|(_, name)| *name);
    family.engine(old.unwrap_or(name))
}

/// Name of the command with this header; `None` if the engine does not have it.
pub fn command(engine: Engine, header: u32) -> Option<&'static str> {
    engine.describe(header).map(|command| command.name)
}
