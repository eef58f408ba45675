// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic afuc`: the program `afuc`, if it is installed beside `arctic`.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Error, Result, anyhow};

/// Run afuc, the tools for Adreno microcode, which must be installed beside arctic.
///
/// All arguments are passed on; `arctic afuc --help` is the help of afuc.
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
#[command(after_help = "Example: arctic afuc disasm sqe.fw")]
pub struct AfucArgs {
    /// Arguments of afuc
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Replaces this process by `afuc`; returns only if that fails.
pub fn run(arguments: &AfucArgs) -> Result<Infallible> {
    let own = std::env::current_exe().context("the path of arctic is unknown")?;
    Err(execute(&own.with_file_name("afuc"), &arguments.arguments))
}

fn execute(program: &Path, arguments: &[OsString]) -> Error {
    let error = Command::new(program).args(arguments).exec();
    match error.kind() {
        ErrorKind::NotFound => anyhow!(
            "there is no {}: install afuc beside arctic, from a clone with `cargo install --path afuc --locked`",
            program.display()
        ),
        _ => anyhow!("{} cannot be executed: {error}", program.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_error_names_the_install_command() {
        let folder = tempfile::tempdir().unwrap();
        let text = execute(&folder.path().join("afuc"), &[]).to_string();
        assert!(text.starts_with("there is no ") && text.contains("cargo install --path afuc"), "{text}");
        std::fs::write(folder.path().join("afuc"), "text").unwrap();
        let text = execute(&folder.path().join("afuc"), &[]).to_string();
        assert!(text.contains("cannot be executed: "), "{text}");
    }
}
