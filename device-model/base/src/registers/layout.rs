// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Names of the fields of registers, for display, and the registers of a card as a part of its state.

use super::{Bits, Decoded, Family, RegisterFile};
use crate::inspect::{Inspector, Node, fields_of};

/// The fields of a register.
#[derive(Clone, Copy)]
pub enum Layout {
    /// Those of a structure with bit fields, by [`fields_of`].
    Type(fn(u32) -> Vec<(String, Node)>),
    /// Fields with their names.
    Bits(&'static [(&'static str, Bits)]),
}

impl Layout {
    /// The fields of the structure `T`.
    pub const fn of<T: From<u32> + std::fmt::Debug>() -> Layout {
        Layout::Type(|value| fields_of(&T::from(value)))
    }

    /// The fields of a value, with their names.
    pub fn fields(self, value: u32) -> Vec<(String, Node)> {
        match self {
            Layout::Type(fields) => fields(value),
            Layout::Bits(bits) => bits.iter().map(|(name, bits)| ((*name).to_owned(), field(*bits, value))).collect(),
        }
    }
}

/// One bit is a flag.
fn field(bits: Bits, value: u32) -> Node {
    if bits.high() == bits.low() { Node::Flag(bits.is_set(value)) } else { Node::Number(bits.get(value).into()) }
}

/// Layouts of registers, by the name in their row.
pub type Layouts = &'static [(&'static str, Layout)];

/// The layout of the register in the row with this name.
pub fn layout_of(layouts: Layouts, name: &str) -> Option<Layout> {
    layouts.iter().find(|(of, _)| *of == name).map(|(_, layout)| *layout)
}

/// Shows the registers that `selects` selects, each with its offset and its fields. `value` returns the value of one, or `None`
/// if a read would have a side effect.
pub fn inspect_registers<F: Family>(
    file: &RegisterFile<F>,
    to: &mut Inspector<'_>,
    selects: impl Fn(&Decoded<F>) -> bool,
    layouts: Layouts,
    value: impl Fn(u32, &Decoded<F>) -> Option<u32>,
) {
    for (offset, decoded) in file.listing().filter(|(_, decoded)| selects(decoded)) {
        let value = value(offset, decoded);
        let shown = value.map_or_else(|| Node::from("not shown: a read changes it"), |value| Node::hex(value, 8));
        to.value_with_parts(&decoded.name(), shown, |to| {
            to.value("offset", Node::hex(offset, 5));
            let fields =
                layout_of(layouts, decoded.register.name).zip(value).map(|(layout, value)| layout.fields(value));
            fields.into_iter().flatten().for_each(|(name, value)| to.value(&name, value));
        });
        if to.is_full() {
            return;
        }
    }
}
