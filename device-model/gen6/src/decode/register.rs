// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Names of registers by offset, from the register tables.

use arctic_base::registers::name_at;

use crate::generation::Generation;
use crate::registers::pipe;

/// Name of the register at `offset` of a card of `generation`: `rcs0.MI_MODE`, `FENCE[3]`; the offset itself if no
/// register is modelled there.
pub fn name(generation: &Generation, offset: u32) -> String {
    let offset = offset & !3;
    let tables = generation.registers;
    let card = || tables.card.iter().find_map(|rows| name_at(rows, offset));
    let engine = || {
        generation.engines.iter().find_map(|engine| {
            let relative = offset.checked_sub(engine.base)?;
            let name = tables.engine.iter().chain([&engine.rows]).find_map(|rows| name_at(rows, relative))?;
            Some(format!("{}.{name}", engine.name))
        })
    };
    let display = || {
        let mut distances = (0..tables.pipes).map(|pipe| pipe.saturating_mul(pipe::DISTANCE));
        distances.find_map(|distance| {
            let relative = offset.checked_sub(distance)?;
            tables.pipe.iter().find_map(|rows| name_at(rows, relative))
        })
    };
    card().or_else(engine).or_else(display).unwrap_or_else(|| format!("{offset:#08x}"))
}
