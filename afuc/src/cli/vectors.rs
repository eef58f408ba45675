// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `afuc vectors` and `afuc alu`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arctic_afuc::vectors::{Report, alu, words};

use super::{Result, print, read_text};

/// Differences that are printed.
const PRINTED: usize = 20;

/// Compare the disassembler with a table of words and their texts.
///
/// Columns, with tabs between them: generation, word, text in Mesa's syntax, note. Each word must have the text, and its own
/// text must assemble to the same word. A note `offset is 0xN` replaces the offset in the text. Exit code 1: a difference.
#[derive(clap::Args)]
#[command(after_help = "Example: afuc vectors words.tsv")]
pub struct Words {
    /// The table; `-` is standard input.
    file: PathBuf,
}

/// Compare what instructions compute with a table.
///
/// Columns, with tabs between them: generation, $02, $03, instructions with `;` between them, and then $04, $05. Numbers are
/// hexadecimal. Exit code 1: a difference.
#[derive(clap::Args)]
#[command(after_help = "Example: afuc alu steps.tsv")]
pub struct Steps {
    /// The table; `-` is standard input.
    file: PathBuf,
}

pub fn run_words(arguments: &Words) -> Result<ExitCode> {
    report(&arguments.file, "words", words)
}

pub fn run_steps(arguments: &Steps) -> Result<ExitCode> {
    report(&arguments.file, "steps", alu)
}

fn report(path: &Path, what: &str, check: fn(&str) -> Report) -> Result<ExitCode> {
    let table = read_text(path)?;
    let report = check(&table);
    if report.rows == 0 {
        return Err(format!("{} has no rows: the first column is the generation, 5 to 7", path.display()).into());
    }
    let mut out = String::new();
    for (line, reason) in report.differences.iter().take(PRINTED) {
        out += &format!("{}:{line}: {reason}\n", path.display());
    }
    out += &format!("{} {what}: {} equal", report.rows, report.rows - report.differences.len());
    if report.corrected > 0 {
        out += &format!(", {} of them with the text of their note", report.corrected);
    }
    print(&format!("{out}; {} different\n", report.differences.len()))?;
    Ok(if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
