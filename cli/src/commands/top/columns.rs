// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The columns of the table of functions.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Display;

use super::view::{Function, View};

const MIB: u64 = 1 << 20;

/// A column.
pub struct Column {
    /// Name of what it shows: a class of engines, a quantity, or a name of its own.
    pub key: String,
    /// Heading.
    pub title: String,
    /// Width in cells, with room for the mark of the sorted column.
    pub width: u16,
    /// Aligned to the left.
    pub left: bool,
    /// The text of a function.
    pub text: fn(&Function, &str) -> String,
    /// The number by which the table is sorted; a name is sorted by number of the function.
    pub number: fn(&Function, &str) -> f64,
}

impl Column {
    /// The order of two functions: the largest number first, names in their own order.
    pub fn order(&self, a: &Function, b: &Function) -> Ordering {
        let number = |function| (self.number)(function, &self.key);
        number(b).total_cmp(&number(a))
    }
}

/// Formats a count with a suffix above 10,000.
fn short(value: f64) -> String {
    let suffixed = |value: f64, suffix: &dyn Display| {
        if value < 10.0 { format!("{value:.1}{suffix}") } else { format!("{value:.0}{suffix}") }
    };
    match value {
        ..0.05 => "0".into(),
        0.05..9.95 if (value - value.round()).abs() >= 0.05 => format!("{value:.1}"),
        ..1e4 => format!("{value:.0}"),
        ..1e6 => suffixed(value / 1e3, &"k"),
        ..1e9 => suffixed(value / 1e6, &"M"),
        _ => suffixed(value / 1e9, &"G"),
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

fn size(bytes: Option<&u64>) -> String {
    match bytes {
        None | Some(0) => "-".into(),
        Some(bytes) => format!("{} M", bytes.div_ceil(MIB)),
    }
}

fn class(function: &Function, class: &str) -> f64 {
    function.busy.get(class).copied().unwrap_or(0.0)
}

fn value(function: &Function, name: &str) -> f64 {
    function.values.get(name).map_or(0.0, |value| *value as f64)
}

fn total(function: &Function, name: &str) -> f64 {
    function.totals.get(name).map_or(0.0, |value| *value as f64)
}

/// Quantities with a heading: the name, the heading, and whether a column shows a rate, a total or a value.
const SHOWN: [(&str, &str, Shows); 11] = [
    ("contexts", "CTX", Shows::Value),
    ("local_memory_quota", "LOCAL", Shows::Size),
    ("ggtt_quota", "GGTT", Shows::Size),
    ("host_memory", "HOST", Shows::Size),
    ("interrupts", "IRQ/s", Shows::Rate),
    ("messages", "MSG/s", Shows::Rate),
    ("eu_instructions", "INST/s", Shows::Rate),
    ("resets", "FLR", Shows::Total),
    ("engine_resets", "HANG", Shows::Total),
    ("translation_faults", "FAULT", Shows::Total),
    ("kernel_faults", "KFAULT", Shows::Total),
];

#[derive(Clone, Copy)]
enum Shows {
    Value,
    Size,
    Rate,
    Total,
}

/// The columns of this card: what no function has is omitted.
pub fn columns(view: &View) -> Vec<Column> {
    let column = |key: &str, title: &str, width, text, number| Column {
        key: key.into(),
        title: title.into(),
        width,
        left: false,
        text,
        number,
    };
    let position = |function: &Function, _: &str| {
        // The PF is first.
        -function.function.strip_prefix("vf").and_then(|number| number.parse().ok()).unwrap_or(0.0)
    };
    let name = column("function", "FUNC", 5, |of, _| of.function.clone(), position);
    let state = column("state", "STATE", 10, |of, _| of.state.into(), position);
    let mut columns = vec![Column { left: true, ..name }, Column { left: true, ..state }];
    let classes: BTreeSet<&String> = view.functions.iter().flat_map(|of| of.busy.keys()).collect();
    for name in classes {
        let title: String = name.to_uppercase().chars().take(8).collect();
        columns.push(column(name, &title, 9, |of, name| percent(class(of, name)), class));
    }
    let waiting = |of: &Function, _: &str| f64::from(of.waiting.values().sum::<u32>());
    columns.push(column("waiting", "WAIT", 5, |of, _| of.waiting.values().sum::<u32>().to_string(), waiting));
    columns.push(column("traps", "TRAP/s", 7, |of, _| short(of.traps), |of, _| of.traps));
    for (key, title, shows) in SHOWN {
        let has = |of: &Function| of.values.contains_key(key) || of.rates.contains_key(key);
        if !view.functions.iter().any(has) {
            continue;
        }
        columns.push(match shows {
            Shows::Value => column(key, title, 6, |of, key| short(value(of, key)), value),
            Shows::Size => column(key, title, 8, |of, key| size(of.values.get(key)), value),
            Shows::Rate => column(key, title, 7, |of, key| short(of.rate(key)), |of, key| of.rate(key)),
            Shows::Total => column(key, title, 7, |of, key| short(total(of, key)), total),
        });
    }
    columns
}
