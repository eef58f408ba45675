// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Display of a command's fields.

use arctic_sriov::number::low;
use serde::Serialize;

use super::register;
use crate::command::{Field, FieldKind, Group};
use crate::generation::EngineRef;

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
pub fn fields(words: &[u32], fields: &[Field], group: Option<Group>, engine: EngineRef) -> Vec<Shown> {
    let header = words.first().copied().unwrap_or(0);
    let mut shown: Vec<_> = fields.iter().filter_map(|field| show(field, words, words, engine, header)).collect();
    let Some(group) = group else { return shown };
    let rest = words.get(usize::from(group.first)..).unwrap_or_default();
    for (n, words_of_one) in rest.chunks(usize::from(group.dwords)).enumerate() {
        let one: Vec<_> =
            group.fields.iter().filter_map(|field| show(field, words_of_one, words, engine, header)).collect();
        let text = together(&one, words_of_one);
        for (at, mut field) in one.into_iter().enumerate() {
            field.name = format!("{}[{n}]", field.name);
            field.text = if at == 0 { text.clone() } else { String::new() };
            shown.push(field);
        }
    }
    shown
}

/// Display of the fields of one element of a repeated group.
fn together(one: &[Shown], words: &[u32]) -> String {
    match one {
        [opcode, first, second] if opcode.name == "ALU Opcode" => {
            let operand = |field: &Shown| field.meaning.clone().unwrap_or_else(|| format!("{:#x}", field.value));
            let name = operand(opcode);
            match (opcode.value >> 7 & 7, name.as_str()) {
                // LOAD0 and LOAD1 have no source.
                (1, "LOAD0" | "LOAD1") => format!("{name} {}", operand(first)),
                (1 | 3, _) => format!("{name} {}, {}", operand(first), operand(second)),
                (0 | 2, _) => name,
                _ => format!("{:#010x}", words.first().copied().unwrap_or(0)),
            }
        }
        [register, data] if register.meaning.is_some() => {
            format!("{} = {:#x}", register.meaning.clone().unwrap_or_default(), data.value)
        }
        fields => fields.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" "),
    }
}

/// Decodes a field of `words`, a command or an element of its repeated group. `all` is the command.
#[allow(clippy::arithmetic_side_effects, reason = "the table checks the bit positions")]
fn show(field: &Field, words: &[u32], all: &[u32], engine: EngineRef, header: u32) -> Option<Shown> {
    words.get(usize::from(field.dword))?;
    let value = field.wide(words);
    let name = field.name;
    let register_at = |relative: bool| register::name(engine.generation, register::meant(low(value), relative, engine));
    let whole = field.mask() == u32::MAX;
    let (meaning, text) = match field.kind {
        FieldKind::Flag => (None, if value != 0 { name.into() } else { String::new() }),
        FieldKind::Value => (None, if value != 0 || whole { format!("{name} {value}") } else { String::new() }),
        FieldKind::Signed => {
            let bits = field.high - field.low + 1;
            let signed = low(value) << (32 - bits);
            let signed = signed as i32 >> (32 - bits);
            (None, format!("{name} {signed}"))
        }
        FieldKind::Hex if whole => (None, format!("{name} {value:#x}")),
        FieldKind::Hex => (None, if value != 0 { format!("{name} {value:#x}") } else { String::new() }),
        FieldKind::Enum(values) => {
            let named = values.iter().find(|(code, _)| u64::from(*code) == value).map(|(_, named)| *named);
            let quiet = matches!(named, Some("none" | "never"));
            let named = named.map_or_else(|| format!("reserved {value:#x}"), Into::into);
            let text = if quiet { String::new() } else { format!("{name} {named}") };
            (Some(named), text)
        }
        FieldKind::Address | FieldKind::Base => (None, format!("{name} {value:#x}")),
        FieldKind::AddressOrRegister(dword, bit) => {
            if all.get(usize::from(dword)).is_some_and(|word| word >> bit & 1 != 0) {
                let register = register_at(false);
                (Some(register.clone()), format!("Register {register}"))
            } else {
                (None, format!("{name} {value:#x}"))
            }
        }
        FieldKind::Qword => (None, format!("{name} {value:#x}")),
        FieldKind::Register(relative) => {
            let register = register_at(relative.is_some_and(|bit| header >> bit & 1 != 0));
            (Some(register.clone()), format!("{name} {register}"))
        }
        FieldKind::Mbz => (None, if value != 0 { format!("{name} {value:#x}, must be 0") } else { String::new() }),
    };
    Some(Shown { name: name.into(), value, meaning, text })
}
