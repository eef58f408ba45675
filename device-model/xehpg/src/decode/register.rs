// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Names of registers by offset, from the register tables.

use arctic_base::registers::name_at;

use crate::generation::Generation;

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
