// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Command line.

mod asm;
mod capture;
mod disasm;
mod info;
mod isa;
mod launch;
mod run;
mod trace;

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

/// Assembles, disassembles and executes kernels for Intel Xe-HPG GPUs (DG2, Flex), on a machine without such a GPU.
///
/// Kernels are made by `ocloc compile -file k.cl -device dg2`.
#[derive(clap::Parser)]
#[command(name = "eu", version)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Disasm(disasm::Options),
    Asm(asm::Options),
    Info(info::Options),
    Isa(isa::Options),
    Run(run::Options),
    Trace(trace::Options),
}

/// Result of a command: an exit status, or an error for standard error.
pub type Result = std::result::Result<ExitCode, String>;

impl Options {
    /// Executes the command.
    pub fn execute(self) -> Result {
        match self.command {
            Command::Disasm(options) => options.execute(),
            Command::Asm(options) => options.execute(),
            Command::Info(options) => options.execute(),
            Command::Isa(options) => options.execute(),
            Command::Run(options) => options.execute(),
            Command::Trace(options) => options.execute(),
        }
    }
}

/// Reads a file; `-` is standard input.
fn read(path: &Path) -> std::result::Result<Vec<u8>, String> {
    let result = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    result.map_err(|error| format!("error: cannot read {}: {error}", path.display()))
}

/// Writes a file; `-` is standard output.
fn write(path: &Path, bytes: &[u8]) -> std::result::Result<(), String> {
    let result = if path.as_os_str() == "-" { io::stdout().write_all(bytes) } else { fs::write(path, bytes) };
    result.map_err(|error| format!("error: cannot write {}: {error}", path.display()))
}

/// Writes text to standard output. A closed pipe is no error.
fn print(text: &str) -> Result {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("error: cannot write the output: {error}"))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn every_subcommand_is_consistent() {
        super::Options::command().debug_assert();
    }
}
