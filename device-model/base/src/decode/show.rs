// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Display of a command's fields.

use arctic_sriov::number::low;
use serde::Serialize;

use crate::command::{Addressing, Field, FieldKind, Group};

/// Names for the values of fields, as an engine's family knows them.
pub trait Names {
    /// Name of the register at `offset`, relative to the engine's registers or absolute; an unknown register by its
    /// offset.
    fn register(&self, offset: u32, addressing: Addressing) -> String;

    /// What is at this graphics address, if that is known.
    fn address(&self, _address: u64) -> Option<String> {
        None
    }

    /// Text for an element of a repeated group, with its fields and dwords. By default, an element of a register and
    /// data is an assignment, and other elements are the texts of their fields.
    fn element(&self, fields: &[Shown], _words: &[u32]) -> String {
        element(fields)
    }
}

impl<N: Names + ?Sized> Names for &N {
    fn register(&self, offset: u32, addressing: Addressing) -> String {
        (**self).register(offset, addressing)
    }

    fn address(&self, address: u64) -> Option<String> {
        (**self).address(address)
    }

    fn element(&self, fields: &[Shown], words: &[u32]) -> String {
        (**self).element(fields, words)
    }
}

/// A field with its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// Name as in the PRM; with its index if the field is repeated.
    pub name: String,
    /// The value: addresses and offsets unshifted.
    pub value: u64,
    /// Name of the value, if it has one: register, operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<String>,
    /// Text for display; empty if the field is not displayed.
    #[serde(skip)]
    pub text: String,
}

/// Decodes the fields of a command. Fields beyond the last dword in `words` are omitted.
pub fn fields(words: &[u32], fields: &[Field], group: Option<Group>, names: &impl Names) -> Vec<Shown> {
    let mut shown: Vec<_> = fields.iter().filter_map(|field| show(field, words, words, names)).collect();
    let Some(group) = group else { return shown };
    let rest = words.get(usize::from(group.first)..).unwrap_or_default();
    for (n, words_of_one) in rest.chunks(usize::from(group.dwords)).enumerate() {
        let one: Vec<_> = group.fields.iter().filter_map(|field| show(field, words_of_one, words, names)).collect();
        let text = names.element(&one, words_of_one);
        for (at, mut field) in one.into_iter().enumerate() {
            field.name = format!("{}[{n}]", field.name);
            field.text = if at == 0 { text.clone() } else { String::new() };
            shown.push(field);
        }
    }
    shown
}

/// Text for an element of a repeated group: an assignment, if it is a register and data.
pub fn element(fields: &[Shown]) -> String {
    match fields {
        [register, data] if register.meaning.is_some() => {
            format!("{} = {:#x}", register.meaning.clone().unwrap_or_default(), data.value)
        }
        fields => fields.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" "),
    }
}

/// Decodes a field of `words`, a command or an element of its repeated group. `all` is the command.
#[allow(clippy::arithmetic_side_effects, reason = "the table checks the bit positions")]
fn show(field: &Field, words: &[u32], all: &[u32], names: &impl Names) -> Option<Shown> {
    words.get(usize::from(field.dword))?;
    let value = field.wide(words);
    let name = field.name;
    let bit_is_set = |dword: u8, bit: u8| all.get(usize::from(dword)).is_some_and(|word| word >> bit & 1 != 0);
    let address = || {
        let meaning = names.address(value);
        let of = meaning.as_ref().map_or_else(String::new, |meaning| format!(" ({meaning})"));
        (meaning, format!("{name} {value:#x}{of}"))
    };
    let is_dword = field.mask() == u32::MAX;
    let (meaning, text) = match field.kind {
        FieldKind::Flag => (None, if value != 0 { name.into() } else { String::new() }),
        FieldKind::Value => (None, if value != 0 || is_dword { format!("{name} {value}") } else { String::new() }),
        FieldKind::Signed => {
            let bits = field.high - field.low + 1;
            let signed = low(value) << (32 - bits);
            let signed = signed as i32 >> (32 - bits);
            (None, format!("{name} {signed}"))
        }
        FieldKind::Hex if is_dword => (None, format!("{name} {value:#x}")),
        FieldKind::Hex => (None, if value != 0 { format!("{name} {value:#x}") } else { String::new() }),
        FieldKind::Enum(values) => {
            let named = values.iter().find(|(code, _)| u64::from(*code) == value).map(|(_, named)| *named);
            let quiet = matches!(named, Some("none" | "never"));
            let named = named.map_or_else(|| format!("reserved {value:#x}"), Into::into);
            let text = if quiet { String::new() } else { format!("{name} {named}") };
            (Some(named), text)
        }
        FieldKind::Address | FieldKind::Base => address(),
        FieldKind::AddressOrRegister(dword, bit) if bit_is_set(dword, bit) => {
            let register = names.register(low(value), Addressing::default());
            (Some(register.clone()), format!("Register {register}"))
        }
        FieldKind::AddressOrRegister(..) => address(),
        FieldKind::Qword => (None, format!("{name} {value:#x}")),
        FieldKind::Register(bits) => {
            let addressing = all.first().map_or(Addressing::default(), |header| bits.of(*header));
            let register = names.register(low(value), addressing);
            (Some(register.clone()), format!("{name} {register}"))
        }
        FieldKind::Mbz => (None, if value != 0 { format!("{name} {value:#x}, must be 0") } else { String::new() }),
    };
    Some(Shown { name: name.into(), value, meaning, text })
}
