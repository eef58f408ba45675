// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The program `eu`.

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cli::Options::parse().execute() {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{}", message.trim_end());
            ExitCode::FAILURE
        }
    }
}
