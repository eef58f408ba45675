// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic eu`: the program `eu` of the package `arctic-eu`.

use std::convert::Infallible;
use std::ffi::OsString;

use anyhow::Result;

use super::beside;

/// Run `eu`, which assembles, disassembles, runs and traces kernels of the execution units, from the directory of arctic
/// or from PATH
///
/// `eu` is in the package arctic-eu. All arguments are passed on: `arctic eu --help` prints the help of `eu`, and
/// `arctic help eu` this text.
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
#[command(after_help = "Examples:\n  \
    arctic eu disasm k.bin --kernel saxpy\n  \
    arctic eu run k.bin --kernel saxpy --global 4096 --local 64 --arg y=zeros:16384 --save y=y.f32\n  \
    arctic eu run walker.eu")]
pub struct EuArgs {
    /// Command and options of `eu`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Executes the command; returns only if that fails.
pub fn run(arguments: &EuArgs) -> Result<Infallible> {
    beside::run("eu", &arguments.arguments)
}
