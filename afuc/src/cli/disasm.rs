// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `afuc disasm`

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use arctic_afuc::isa::Generation;
use arctic_afuc::text::{LineKind, Listing, Syntax, disassemble, disassemble_raw};
use serde_json::json;

use super::{Result, generation, print, read_image};

/// Disassemble a firmware file.
///
/// `afuc asm` makes the same bytes from the text, for any file with a length that is a multiple of 4. A word that no
/// instruction text encodes is printed as a literal, `[hex]`.
#[derive(clap::Args)]
#[command(after_help = "Example: afuc disasm sqe.fw > sqe.asm")]
pub struct DisasmArgs {
    /// The firmware file; `-` is standard input.
    file: PathBuf,
    /// Generation: 5, 6 or 7. Needed if the file's id is unknown.
    #[arg(long = "gen", value_parser = generation)]
    generation: Option<Generation>,
    /// Print what Mesa's disassembler prints; of the GPU registers, only those of the command processor of a6xx and a7xx have
    /// names in comments.
    #[arg(long)]
    peer_syntax: bool,
    /// Do not search sections and packet tables.
    #[arg(long)]
    raw: bool,
    /// Print address and word before each text.
    #[arg(short, long, conflicts_with_all = ["peer_syntax", "raw"])]
    verbose: bool,
    /// Print one JSON document: sections with their words, labels, targets.
    #[arg(long, conflicts_with_all = ["peer_syntax", "raw", "verbose"])]
    json: bool,
}

pub fn run(arguments: &DisasmArgs) -> Result<ExitCode> {
    let image = read_image(&arguments.file, arguments.generation)?;
    let syntax = if arguments.peer_syntax { Syntax::Mesa } else { Syntax::Native };
    let text = if arguments.json {
        serde_json::to_string_pretty(&document(&image))? + "\n"
    } else if arguments.verbose {
        verbose(&Listing::of(&image))
    } else if arguments.raw {
        disassemble_raw(&image, syntax)
    } else {
        disassemble(&image, syntax)
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn verbose(listings: &[Listing]) -> String {
    let mut out = String::new();
    for listing in listings {
        if let Some(name) = listing.section.name {
            let _ = writeln!(out, "\n.section {name}");
        }
        for line in &listing.lines {
            line.labels.iter().for_each(|label| {
                let _ = writeln!(out, "{label}:");
            });
            let _ = writeln!(out, "\t{:04x}: {:08x}  {}", line.address, line.word, line.text);
        }
    }
    out
}

fn document(image: &arctic_afuc::container::Image) -> serde_json::Value {
    let sections: Vec<_> = Listing::of(image)
        .iter()
        .map(|listing| {
            let lines: Vec<_> = listing
                .lines
                .iter()
                .map(|line| {
                    let kind = match line.kind {
                        LineKind::Instruction(_) => "instruction",
                        LineKind::Literal => "literal",
                        LineKind::Table => "table",
                    };
                    json!({
                        "address": line.address, "word": format!("{:08x}", line.word), "kind": kind,
                        "text": line.text, "labels": line.labels, "target": line.target, "reached": line.reached,
                    })
                })
                .collect();
            json!({
                "name": listing.section.name,
                "start": listing.section.range.start,
                "packet_table": listing.section.table.as_ref().map(|table| table.start),
                "words": lines,
            })
        })
        .collect();
    json!({
        "generation": image.generation().number(),
        "chip": image.chip().map(|chip| chip.name),
        "sections": sections,
    })
}
