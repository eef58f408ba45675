// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `afuc asm`

use std::path::PathBuf;
use std::process::ExitCode;

use arctic_afuc::isa::Generation;

use super::{Result, assemble_file, generation, write_file};

/// Assemble a source into a firmware file.
///
/// All errors of the source are printed in one run, each with its line, the reason and the cure. The output is written
/// only if there is none. The generation comes from the id in the first literal, from `.gen`, or from --gen.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  afuc asm sqe.asm -o sqe.fw\n  afuc asm firmware/sqe-open.asm --gen 7 -o sqe.fw")]
pub struct AsmArgs {
    /// The source; `-` is standard input.
    file: PathBuf,
    /// The firmware file to write; `-` is standard output.
    #[arg(short, long)]
    output: PathBuf,
    /// Generation: 5, 6 or 7.
    #[arg(long = "gen", value_parser = generation)]
    generation: Option<Generation>,
}

pub fn run(arguments: &AsmArgs) -> Result<ExitCode> {
    let Some(assembled) = assemble_file(&arguments.file, arguments.generation)? else {
        eprintln!("afuc: {} was not written", arguments.output.display());
        return Ok(ExitCode::FAILURE);
    };
    write_file(&arguments.output, &assembled.image.to_bytes())?;
    Ok(ExitCode::SUCCESS)
}
