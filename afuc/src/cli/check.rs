// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `afuc check`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arctic_afuc::container::{Image, SecondWord};
use arctic_afuc::isa::Generation;
use arctic_afuc::machine::{Machine, Processor, Stop};
use arctic_afuc::text::{Options, Syntax, assemble, disassemble};

use super::{Result, cannot, generation, image_by_id, print, read};

/// Instructions that a bootstrap may take (AFC-058).
const BOOT_BUDGET: u64 = 10_000_000;

/// Check all firmware files of a directory: round trip and bootstrap.
///
/// One line for each file: id, chip, generation, sections, packet tables; if the text of the disassembler assembles to the
/// same bytes; and if the bootstrap reaches waitin. Use it for files with a licence that permits disassembly. A directory that
/// does not exist is reported as skipped. Exit code 1: a file has a different round trip.
#[derive(clap::Args)]
#[command(after_help = "Example: afuc check ~/firmware")]
pub struct CheckArgs {
    /// The directory.
    directory: PathBuf,
    /// Generation of files with an unknown id: 5, 6 or 7.
    #[arg(long = "gen", value_parser = generation)]
    generation: Option<Generation>,
}

pub fn run(arguments: &CheckArgs) -> Result<ExitCode> {
    let directory = &arguments.directory;
    if !directory.exists() {
        print(&format!("{}: skipped, there is no such directory\n", directory.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let entries = std::fs::read_dir(directory).and_then(|entries| entries.collect::<std::io::Result<Vec<_>>>());
    let entries = entries.map_err(cannot("read", directory))?;
    let mut files: Vec<PathBuf> = entries.iter().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    let mut is_good = true;
    for file in &files {
        let (line, is_identical) = check(file, arguments.generation);
        is_good &= is_identical;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        print(&format!("{name}: {line}\n"))?;
    }
    print(&format!("{} files\n", files.len()))?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The line of a file, and false if its round trip is different.
fn check(file: &Path, generation: Option<Generation>) -> (String, bool) {
    let bytes = match read(file) {
        Ok(bytes) => bytes,
        Err(error) => return (error.to_string(), true),
    };
    let image = match image_by_id(&bytes, generation) {
        Ok(image) => image,
        Err(error) => return (format!("skipped, {error}"), true),
    };
    let first = image.words.first().copied().unwrap_or_default();
    let first_name = Processor::First.name(image.generation());
    let sections: Vec<String> = image
        .sections()
        .iter()
        .map(|section| {
            let name = section.name.unwrap_or(first_name);
            let table =
                section.table.as_ref().map_or("no table".to_owned(), |table| format!("table {:#x}", table.start));
            let second = match section.second_word {
                SecondWord::TableOffset => ", word 2 is its offset",
                SecondWord::TotalWords => ", word 2 is the size",
                SecondWord::Unknown => "",
            };
            format!("{name} {} words, {table}{second}", section.range.len())
        })
        .collect();
    let options = Options { generation: image.chip().is_none().then(|| image.generation()) };
    let again = assemble(&disassemble(&image, Syntax::Native), &options);
    let is_identical = again.is_ok_and(|assembled| assembled.image.to_bytes() == bytes);
    let line = format!(
        "id {:03x} ({}), a{}xx; {}; round trip {}; {}",
        first >> 12 & 0xfff,
        image.chip().map_or("unknown", |chip| chip.name),
        image.generation().number(),
        sections.join("; "),
        if is_identical { "identical" } else { "DIFFERENT" },
        boot(&image),
    );
    (line, is_identical)
}

fn boot(image: &Image) -> String {
    if image.generation() == Generation::A5 {
        return "bootstrap not executed on a5xx".to_owned();
    }
    let mut machine = Machine::new(image);
    machine.packet_budget = BOOT_BUDGET;
    match machine.run(BOOT_BUDGET) {
        Stop::Idle => {
            let others =
                machine.processors().skip(1).map(|other| format!(", {} too", other.processor.name(image.generation())));
            format!("boots: {} instructions to waitin{}", machine.executed, others.collect::<String>())
        }
        Stop::Budget => format!("does not boot: {BOOT_BUDGET} instructions without waitin"),
        Stop::Fault(fault) => format!("does not boot: {fault}"),
    }
}
