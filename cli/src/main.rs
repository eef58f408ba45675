// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The `arctic` program.

fn main() -> std::process::ExitCode {
    arctic_cli::run()
}
