// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `afuc patch`

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use arctic_afuc::isa::Generation;
use arctic_afuc::patch::{PatchError, patch};

use super::{Result, count, generation, print, read, read_image, write_file};

/// Add handlers for packets to a firmware file.
///
/// The source has a label for each packet, `UNKNn` or a name, and its code. The code comes before the packet table of the
/// first section; targets, tables and sizes that follow it move. Prints the new words and the changed table entries.
#[derive(clap::Args)]
#[command(after_help = "Example: printf 'UNKN90:\\n(rep)mov $00, $data\\nwaitin\\nmov $01, $data\\n' > change.asm
         afuc patch base.fw change.asm -o new.fw")]
pub struct PatchArgs {
    /// The firmware file.
    base: PathBuf,
    /// The source of the handlers.
    change: PathBuf,
    /// The firmware file to write.
    #[arg(short, long)]
    output: PathBuf,
    /// Replace handlers that the firmware has. Its other code keeps those that it uses, as `old_NAME`.
    #[arg(long)]
    replace: bool,
    /// Generation: 5, 6 or 7. Needed if the file's id is unknown.
    #[arg(long = "gen", value_parser = generation)]
    generation: Option<Generation>,
}

pub fn run(arguments: &PatchArgs) -> Result<ExitCode> {
    let image = read_image(&arguments.base, arguments.generation)?;
    let path = arguments.change.display().to_string();
    let change = String::from_utf8(read(&arguments.change)?).map_err(|_| format!("{path} is no text"))?;
    let patched = match patch(&image, &change, arguments.replace) {
        Ok(patched) => patched,
        Err(PatchError::Source(errors)) => {
            eprintln!("{}", errors.render(&change, &path, io::stderr().is_terminal()));
            eprintln!("\nafuc: {} in {path}; no file was written", count(errors.0.len()));
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
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
    print(&out)?;
    Ok(ExitCode::SUCCESS)
}
