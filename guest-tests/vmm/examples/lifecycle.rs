// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs a test ("theme") of the bare-metal guest and prints its output:
//! `cargo run --release -p arctic-vmm --example life -- vf`. Themes: enumerate, pf, vf, many, two, moves, races, chaos,
//! bench.

use std::process::ExitCode;
use std::time::Duration;

use arctic_gpu::card_file;
use arctic_vmm::{Boot, CardConfig, Config, Exit, Vm, elf_guest};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let command_line = if words.is_empty() { "pf".to_owned() } else { words.join(" ") };
    match run(command_line) {
        Ok(Exit::Value(elf_guest::exit::PASS)) => ExitCode::SUCCESS,
        Ok(exit) => {
            eprintln!("life: the VM ended with {exit:?}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("life: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command_line: String) -> Result<Exit, Box<dyn std::error::Error>> {
    let boot = Boot::Elf { elf: elf_guest::build()?.into(), command_line };
    let card = Some(CardConfig { profile: card_file::load("small")?.flex()?, vfs: 4 });
    let config = Config { boot, memory: 32 << 20, cpus: 2, card, output: Box::new(std::io::stdout()) };
    Ok(Vm::new(config)?.run(Duration::from_secs(60))?)
}
