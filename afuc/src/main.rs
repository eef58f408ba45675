// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The program `afuc`.
#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Assembler, disassembler and emulator for Adreno command-processor microcode (a5xx, a6xx, a7xx).
#[derive(Parser)]
#[command(name = "afuc", version, after_help = "`afuc help COMMAND` describes a command with an example.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Disasm(cli::disasm::DisasmArgs),
    Asm(cli::asm::AsmArgs),
    Isa(cli::isa::IsaArgs),
    Run(cli::run::RunArgs),
    Debug(cli::debug::DebugArgs),
    Coverage(cli::coverage::CoverageArgs),
    Check(cli::check::CheckArgs),
    Patch(cli::patch::PatchArgs),
    Vectors(cli::vectors::Words),
    Alu(cli::vectors::Steps),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Disasm(arguments) => cli::disasm::run(&arguments),
        Command::Asm(arguments) => cli::asm::run(&arguments),
        Command::Isa(arguments) => cli::isa::run(&arguments),
        Command::Run(arguments) => cli::run::run(&arguments),
        Command::Debug(arguments) => cli::debug::run(&arguments),
        Command::Coverage(arguments) => cli::coverage::run(&arguments),
        Command::Patch(arguments) => cli::patch::run(&arguments),
        Command::Vectors(arguments) => cli::vectors::run_words(&arguments),
        Command::Alu(arguments) => cli::vectors::run_steps(&arguments),
        Command::Check(arguments) => cli::check::run(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("afuc: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn every_subcommand_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
