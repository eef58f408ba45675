// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic man`: generates manual pages from the definition of the command line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::CommandFactory;

use super::stdout;

/// Write the manual pages: arctic(1), and one page for each command, like arctic-boot(1).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic man ~/.local/share/man/man1\n  \
    arctic man | man -l -")]
pub struct ManArgs {
    /// Directory for the pages, created if it does not exist; without it, arctic(1) is printed
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Writes all pages into the directory, or prints arctic(1).
pub fn run(arguments: &ManArgs) -> Result<()> {
    match &arguments.dir {
        Some(dir) => write(dir).with_context(|| format!("manual pages cannot be written to {}", dir.display())),
        None => Ok(stdout::print(String::from_utf8_lossy(&page()?))?),
    }
}

/// The command line without `help`, which has no page.
fn program() -> clap::Command {
    super::Arguments::command().disable_help_subcommand(true)
}

fn page() -> Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(program()).render(&mut page)?;
    Ok(page)
}

fn write(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)?;
    Ok(clap_mangen::generate_to(program(), dir)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn manual_pages_are_one_per_command() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("man1");
        write(&dir).unwrap();
        let program = program();
        let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
        let expected = commands.map(|command| format!("arctic-{}.1", command.get_name()));
        let expected: BTreeSet<String> = expected.chain(["arctic.1".into()]).collect();
        let pages = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(pages.collect::<BTreeSet<_>>(), expected);
        assert_eq!(fs::read(dir.join("arctic.1")).unwrap(), page().unwrap());
        let page = fs::read_to_string(dir.join("arctic-serve.1")).unwrap();
        assert!(page.contains("socket\\-group"), "{page}");
    }
}
