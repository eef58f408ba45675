// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `afuc patch`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use arctic_afuc::isa::Generation;
use arctic_afuc::patch::{PatchError, patch};

use super::{Result, generation, is_standard, print, print_errors, print_warnings, read_image, read_text, write_file};

/// Add handlers for packets to a firmware file.
///
/// In the source, a packet's label (`UNKN90:` or a name) precedes its code. The code is inserted before the packet table of
/// the first section; targets, tables and sizes are adapted. Prints the new words, the entry of each packet and the sizes.
#[derive(clap::Args)]
#[command(after_help = "Example: printf 'UNKN90:\\n(rep)mov $00, $data\\nwaitin\\nmov $01, $data\\n' > change.asm
         afuc patch base.fw change.asm -o new.fw")]
pub struct PatchArgs {
    /// The firmware file; `-` is standard input.
    base: PathBuf,
    /// The source of the handlers.
    change: PathBuf,
    /// The firmware file to write. With `-` it is standard output, and the report goes to standard error.
    #[arg(short, long)]
    output: PathBuf,
    /// Replace handlers that the firmware has. The old code stays as `old_NAME`; code that refers to it still does.
    #[arg(long)]
    replace: bool,
    /// Generation: 5, 6 or 7. Needed if the file's id is unknown.
    #[arg(long = "gen", value_parser = generation)]
    generation: Option<Generation>,
}

pub fn run(arguments: &PatchArgs) -> Result<ExitCode> {
    let image = read_image(&arguments.base, arguments.generation)?;
    let path = &arguments.change;
    let change = read_text(path)?;
    let patched = match patch(&image, &change, arguments.replace) {
        Ok(patched) => patched,
        Err(PatchError::Source(errors)) => {
            print_errors(&errors, &change, path);
            eprintln!("afuc: {} was not written", arguments.output.display());
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
    print_warnings(&patched.warnings, &change, path);
    write_file(&arguments.output, &patched.image.to_bytes())?;
    let mut out = String::new();
    for line in &patched.lines {
        for label in &line.labels {
            let _ = writeln!(out, "+ {label}:");
        }
        let _ = writeln!(out, "+ {:04x}: {:08x}  {}", line.address, line.word, line.text);
    }
    for (label, old, new) in &patched.handlers {
        let _ = writeln!(out, "packet table, {label}: {old:#x} -> {new:#x}");
    }
    let _ = writeln!(out, "{} words -> {} words", image.words.len(), patched.image.words.len());
    if is_standard(&arguments.output) {
        eprint!("{out}");
    } else {
        print(&out)?;
    }
    Ok(ExitCode::SUCCESS)
}
