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
pub fn short(value: f64) -> String {
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

/// Heading of a class of engines: `RENDER`, for `video-decode` `VDEC`.
fn class_title(class: &str) -> String {
    let short = |text: &str, most: usize| text.chars().take(most).collect::<String>();
    let title = class.split_once('-').map_or(short(class, 7), |(first, second)| short(first, 1) + &short(second, 3));
    title.to_uppercase()
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

/// Quantities with a heading: the name, the heading, the width, and whether a column shows a rate, a total or a value. What is most
/// often zero or constant is last, for a narrow terminal.
const SHOWN: [(&str, &str, u16, Shows); 11] = [
    ("contexts", "CTX", 5, Shows::Value),
    ("eu_instructions", "INST/s", 7, Shows::Rate),
    ("interrupts", "IRQ/s", 6, Shows::Rate),
    ("messages", "MSG/s", 6, Shows::Rate),
    ("resets", "FLR", 5, Shows::Total),
    ("engine_resets", "HANG", 5, Shows::Total),
    ("translation_faults", "FAULT", 6, Shows::Total),
    ("kernel_faults", "KFAULT", 7, Shows::Total),
    ("local_memory_quota", "LOCAL", 7, Shows::Size),
    ("ggtt_quota", "GGTT", 7, Shows::Size),
    ("host_memory", "HOST", 7, Shows::Size),
];

#[derive(Clone, Copy)]
enum Shows {
    Value,
    Size,
    Rate,
    Total,
}

/// Number of columns, from the first, that fit with one cell between them. A column is not shortened: its numbers would be wrong.
pub fn fitting(columns: &[Column], width: u16) -> usize {
    let ends = columns.iter().scan(0_u16, |end, column| {
        *end = end.saturating_add(column.width).saturating_add(1);
        Some(*end - 1)
    });
    ends.take_while(|end| *end <= width).count()
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
        columns.push(column(name, &class_title(name), 8, |of, name| percent(class(of, name)), class));
    }
    let waiting = |of: &Function, _: &str| f64::from(of.waiting.values().sum::<u32>());
    columns.push(column("waiting", "WAIT", 5, |of, _| of.waiting.values().sum::<u32>().to_string(), waiting));
    columns.push(column("traps", "TRAP/s", 7, |of, _| short(of.traps), |of, _| of.traps));
    for (key, title, width, shows) in SHOWN {
        let has = |of: &Function| of.values.contains_key(key) || of.rates.contains_key(key);
        if !view.functions.iter().any(has) {
            continue;
        }
        columns.push(match shows {
            Shows::Value => column(key, title, width, |of, key| short(value(of, key)), value),
            Shows::Size => column(key, title, width, |of, key| size(of.values.get(key)), value),
            Shows::Rate => column(key, title, width, |of, key| short(of.rate(key)), |of, key| of.rate(key)),
            Shows::Total => column(key, title, width, |of, key| short(total(of, key)), total),
        });
    }
    columns
}
