// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `afuc coverage`

use std::fmt::Write;
use std::process::ExitCode;

use arctic_afuc::coverage::{Coverage, Part};
use arctic_afuc::names::packet_label;
use arctic_afuc::replay::{Replay, ReplayError};
use arctic_afuc::text::{LineKind, Listing};
use serde_json::json;

use super::run::{FAULT, Input, explain};
use super::{Result, print};

/// Print which instructions of a firmware a trace executes.
///
/// Without --listing one line for each handler: instructions of its code that were executed, their share, and how many
/// instructions were executed in all. The bootstrap is not counted.
#[derive(clap::Args)]
#[command(after_help = "Example: afuc coverage --firmware open --rd trace.rd.gz --listing")]
pub struct CoverageArgs {
    #[command(flatten)]
    input: Input,
    /// Print the disassembly with the number of executions of each instruction.
    #[arg(long, conflicts_with = "json")]
    listing: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &CoverageArgs) -> Result<ExitCode> {
    let Some((firmware, records)) = arguments.input.open()? else { return Ok(ExitCode::FAILURE) };
    let mut replay = Replay::new(&firmware.image, &arguments.input.options(false, false))?;
    let mut coverage = Coverage::default();
    let result = records.iter().try_for_each(|record| replay.record(record, &mut |machine| coverage.run(machine)));
    let listing = Listing::of(&firmware.image).into_iter().next();
    let lines = listing.map(|listing| listing.lines).unwrap_or_default();
    let is_code = |word: u32| {
        lines.get(word as usize).is_some_and(|line| line.reached && matches!(line.kind, LineKind::Instruction(_)))
    };
    let code = u32::try_from(firmware.image.sections().first().map_or(0, |section| section.code_len()))?;
    let parts = coverage.parts(&replay.machine, code, &is_code);
    let name = |part: &Part| {
        let generation = replay.machine.bus.set().generation();
        match part.opcodes[..] {
            [] => "start".to_owned(),
            [opcode] => packet_label(opcode, generation).into_owned(),
            [opcode, .., _] => format!("{} and {} others", packet_label(opcode, generation), part.opcodes.len() - 1),
        }
    };
    let mut out = String::new();
    if arguments.json {
        let rows = parts.iter().map(|part| {
            json!({
                "start": part.start, "handler": name(part), "opcodes": part.opcodes, "words": part.words,
                "executed": part.executed, "instructions": part.instructions,
            })
        });
        out = format!("{:#}\n", json!({ "parts": rows.collect::<Vec<_>>(), "counts": coverage.counts }));
    } else if arguments.listing {
        for line in lines.iter().filter(|line| !matches!(line.kind, LineKind::Table)) {
            for label in &line.labels {
                let _ = writeln!(out, "{label}:");
            }
            let count = coverage.count(line.address);
            let count = if count == 0 { String::new() } else { count.to_string() };
            let _ = writeln!(out, "{count:>10}  {:04x}: {}", line.address, line.text);
        }
    } else {
        let _ = writeln!(out, "{:40}{:>10}{:>8}{:>14}", "handler", "words", "share", "instructions");
        for part in &parts {
            let words = format!("{}/{}", part.executed, part.words);
            let _ = writeln!(out, "{:40}{words:>10}{:>7}%{:>14}", name(part), part.percent(), part.instructions);
        }
    }
    print(&out)?;
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(ReplayError::Fault(fault)) => {
            eprintln!("afuc: {}", explain(&firmware, &replay.machine, &fault));
            Ok(ExitCode::from(FAULT))
        }
        Err(error) => Err(error.into()),
    }
}
