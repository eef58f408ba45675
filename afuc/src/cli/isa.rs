// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `afuc isa`

use std::fmt::Write;
use std::process::ExitCode;

use arctic_afuc::isa::{ENCODINGS, Encoding, Generation};
use serde_json::json;

use super::{Result, generation, print};

/// Print the reference of all encodings, from the table that the decoder and the encoder use.
#[derive(clap::Args)]
#[command(after_help = "Example: afuc isa --gen 7")]
pub struct IsaArgs {
    /// Only this generation: 5, 6 or 7.
    #[arg(long = "gen", value_parser = generation)]
    generation: Option<Generation>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &IsaArgs) -> Result<ExitCode> {
    let rows = ENCODINGS.iter().filter(|row| arguments.generation.is_none_or(|g| row.generations.has(g)));
    if arguments.json {
        let rows: Vec<_> = rows.map(object).collect();
        print(&(serde_json::to_string_pretty(&rows)? + "\n"))?;
    } else {
        let mut out = String::new();
        rows.for_each(|row| write(&mut out, row));
        print(&out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn object(row: &Encoding) -> serde_json::Value {
    let fields: Vec<_> = row.fields.iter().map(|f| json!({ "name": f.name, "high": f.high, "low": f.low })).collect();
    json!({
        "mnemonic": row.mnemonic,
        "form": format!("{:?}", row.op),
        "generations": row.generations.iter().map(Generation::number).collect::<Vec<_>>(),
        "match": format!("{:08x}", row.matching),
        "mask": format!("{:08x}", row.mask),
        "ignored": format!("{:08x}", row.ignored),
        "fields": fields,
        "semantics": row.doc,
        "items": row.items,
    })
}

/// `add   a5 a6 a7   10011rss...` and the fields below.
fn write(out: &mut String, row: &Encoding) {
    let generations: Vec<String> = row.generations.iter().map(|g| format!("a{}", g.number())).collect();
    let bits: String = (0..32)
        .rev()
        .map(|bit| match (row.mask >> bit & 1, row.ignored >> bit & 1) {
            (1, _) => char::from(b'0' + u8::from(row.matching >> bit & 1 != 0)),
            (_, 1) => 'x',
            _ => '-',
        })
        .collect();
    let _ = writeln!(out, "{:<10} {:<9} {bits}  {} ({})", row.mnemonic, generations.join(" "), row.doc, row.items);
    if !row.fields.is_empty() {
        let field = |f: &arctic_afuc::isa::Field| {
            if f.high == f.low { format!("{}={}", f.name, f.low) } else { format!("{}={}:{}", f.name, f.high, f.low) }
        };
        let fields: Vec<String> = row.fields.iter().map(field).collect();
        let _ = writeln!(out, "{:<10} {}", "", fields.join(" "));
    }
}
