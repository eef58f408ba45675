// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic afuc`: the program `afuc` of the package `arctic-afuc`.

use std::convert::Infallible;
use std::ffi::OsString;

use anyhow::Result;

use super::beside;

/// Run `afuc`, the tools for Adreno microcode, from the directory of arctic or from PATH
///
/// `afuc` is in the package arctic-afuc. All arguments are passed on: `arctic afuc --help` prints the help of `afuc`, and
/// `arctic help afuc` this text.
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
#[command(after_help = "Example: arctic afuc disasm sqe.fw")]
pub struct AfucArgs {
    /// Command and options of `afuc`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Executes the command; returns only if that fails.
pub fn run(arguments: &AfucArgs) -> Result<Infallible> {
    beside::run("afuc", &arguments.arguments)
}
