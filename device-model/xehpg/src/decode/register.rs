// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Names of registers by offset, from the register tables.

use arctic_base::registers::name_at;

use crate::generation::{EngineRef, Generation, XE_HPG};
use crate::topology::EngineClass;

/// Name of the register at `offset` of a card of `generation`: `rcs0.CS_GPR[3]`, `GDRST`. Where no register is modelled: the
/// offset from the base of the engine in whose block it is, `rcs0.0x123`, else the offset.
pub fn name(generation: &Generation, offset: u32) -> String {
    let offset = offset & !3;
    let tables = generation.registers;
    let of_engine = || {
        let info = generation.engines.info(generation.engines.at_offset(offset)?);
        let own = offset.checked_sub(info.mmio_base)?;
        let name = name_at(tables.engine, own).unwrap_or_else(|| format!("{own:#05x}"));
        Some(format!("{}.{name}", info.name))
    };
    let of_card = || tables.card.iter().find_map(|rows| name_at(rows, offset));
    of_card().or_else(of_engine).unwrap_or_else(|| format!("{offset:#08x}"))
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
