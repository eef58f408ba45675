// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Names of registers by offset, from the register tables.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::generation::{EngineRef, Generation, XE_HPG};
use crate::registers::{REGISTER_BYTES, Register, XE_HPG_REGISTERS};
use crate::topology::EngineClass;

#[allow(clippy::arithmetic_side_effects, reason = "rows of the tables lie below 4 MiB")]
fn by_offset(registers: impl Iterator<Item = &'static Register>) -> BTreeMap<u32, (&'static Register, u16)> {
    registers
        .flat_map(|register| {
            let place = move |n: u16| (register.offset + u32::from(n) * register.stride, (register, n));
            (0..register.count).map(place)
        })
        .collect()
}

static CARD: LazyLock<BTreeMap<u32, (&'static Register, u16)>> =
    LazyLock::new(|| by_offset(XE_HPG_REGISTERS.card.iter().flat_map(|table| table.iter())));
static ENGINE: LazyLock<BTreeMap<u32, (&'static Register, u16)>> =
    LazyLock::new(|| by_offset(XE_HPG_REGISTERS.engine.iter()));

fn element(register: &Register, ordinal: u16) -> String {
    if register.count > 1 { format!("{}[{ordinal}]", register.name) } else { register.name.into() }
}

/// Name of an engine's register by its offset from the engine's base.
pub fn of_engine(offset: u32) -> Option<String> {
    ENGINE.get(&(offset & !3)).map(|(register, n)| element(register, *n))
}

/// Name of the register at `offset` of a card of `generation`: `rcs0.CS_GPR[3]`, `GDRST`; the offset itself if no
/// register is modelled there.
#[allow(clippy::arithmetic_side_effects, reason = "`at_offset` returns the engine whose block contains the offset")]
pub fn name(generation: &Generation, offset: u32) -> String {
    let offset = offset & !3;
    if let Some((register, n)) = CARD.get(&offset) {
        return element(register, *n);
    }
    match generation.engines.at_offset(offset) {
        Some(engine) => {
            let info = generation.engines.info(engine);
            let within = offset - info.mmio_base;
            let name = of_engine(within).unwrap_or_else(|| format!("{within:#05x}"));
            format!("{}.{name}", info.name)
        }
        None => format!("{offset:#08x}"),
    }
}

/// The register offset that a command addresses: absolute, or relative to the block of `engine`.
pub fn meant(raw: u32, relative: bool, engine: EngineRef) -> u32 {
    if relative { engine.info().relative(raw) } else { raw & (REGISTER_BYTES * 2 - 4) }
}

/// Finds an engine by name (`rcs0`), or the first engine of a class by the class name (`render`, `copy`, `vcs`...).
pub fn engine(name: &str) -> Option<EngineRef> {
    let class = match name {
        "render" | "rcs" => "rcs0",
        "copy" | "bcs" => "bcs0",
        "compute" | "ccs" => "ccs0",
        "video-decode" | "vcs" => "vcs0",
        "video-enhance" | "vecs" => "vecs0",
        other => other,
    };
    Some(EngineRef { generation: &XE_HPG, id: XE_HPG.engines.named(class)? })
}

/// Names of the engines.
pub fn engines() -> impl Iterator<Item = &'static str> {
    XE_HPG.engines.list().iter().map(|engine| engine.name)
}

/// Name of the command with this header on an engine of `class`; `None` if the engine does not have it.
pub fn command(header: u32, class: EngineClass) -> Option<&'static str> {
    XE_HPG.commands.decode(header, class).map(|command| command.name())
}
