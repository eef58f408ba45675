// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Carries out the instructions of documents: the worked examples of `docs/recipes.md` in a copy of the repository, and
//! commands of other pages in an empty folder, with the program `arctic` in the search path and the path of the repository in
//! `$ARCTIC`. What a page tells a reader to
//! write and to run is written and run literally, so that the page cannot be out of date.
//!
//! A sentence that begins a paragraph or a list item, and the block of code behind it, are one instruction:
//!
//! ```text
//! After `LINE` in `PATH`:            inserts the block behind the line
//! Before `LINE` in `PATH`:           inserts it before the line
//! Instead of `TEXT` in `PATH`:       replaces the text
//! At the end of `PATH`:              appends the block
//! `PATH`, a new file:                writes the block to it
//! Run:                               runs the block as a script
//! ```
//!
//! LINE and TEXT must be in the file once; leading spaces of a line do not matter, and the block gets them too. A block of
//! `docs/recipes.md` without an instruction is an error; other pages have blocks that are not carried out.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};

use crate::{copy, root};

/// The page of which every block is an instruction.
const PAGE: &str = "docs/recipes.md";

/// Pages with commands that start cards and guests.
const GUEST_PAGES: [&str; 4] = ["docs/debugging.md", "docs/integrated.md", "docs/nested.md", "docs/sriov.md"];

/// A change of a file, or commands.
#[derive(Debug, PartialEq, Eq)]
enum Instruction<'p> {
    After { line: &'p str, path: &'p str },
    Before { line: &'p str, path: &'p str },
    Instead { text: &'p str, path: &'p str },
    Append { path: &'p str },
    Create { path: &'p str },
    Run,
}

impl<'p> Instruction<'p> {
    /// The file that it changes; `None` for commands.
    fn path(&self) -> Option<&'p str> {
        match self {
            Instruction::After { path, .. }
            | Instruction::Before { path, .. }
            | Instruction::Instead { path, .. }
            | Instruction::Append { path }
            | Instruction::Create { path } => Some(path),
            Instruction::Run => None,
        }
    }
}

/// An instruction with its block of code.
#[derive(Debug, PartialEq, Eq)]
struct Step<'p> {
    /// Line of the page, counted from 1.
    at: usize,
    instruction: Instruction<'p>,
    block: String,
}

/// The instruction of a line that introduces a block; `None` if it is none.
fn instruction(line: &str) -> Option<Instruction<'_>> {
    let line = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(". ");
    let line = line.trim().strip_suffix(':')?;
    if line == "Run" {
        return Some(Instruction::Run);
    }
    // A text with backquotes is between two of them.
    let mark = if line.contains("``") { "``" } else { "`" };
    let (verb, quoted) = line.split_once(mark)?;
    let (one, behind) = quoted.split_once(mark)?;
    let two = behind.split('`').nth(1);
    match (verb.trim(), two) {
        ("After", Some(path)) => Some(Instruction::After { line: one, path }),
        ("Before", Some(path)) => Some(Instruction::Before { line: one, path }),
        ("Instead of", Some(path)) => Some(Instruction::Instead { text: one, path }),
        ("At the end of", None) => Some(Instruction::Append { path: one }),
        ("", None) if line.ends_with(", a new file") => Some(Instruction::Create { path: one }),
        _ => None,
    }
}

/// The blocks of code of a page, each with its instruction, if it has one.
fn blocks(page: &str) -> Vec<(usize, &str, Option<Instruction<'_>>, String)> {
    let mut blocks = Vec::new();
    let mut before = "";
    let mut lines = page.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        let Some(indent) = line.find("```") else {
            before = if line.trim().is_empty() { before } else { line };
            continue;
        };
        let block = lines.by_ref().map(|(_, line)| line).take_while(|line| !line.trim_start().starts_with("```"));
        let block = block.map(|line| format!("{}\n", line.get(indent..).unwrap_or_default())).collect();
        blocks.push((n.saturating_add(1), before, instruction(before), block));
        before = "";
    }
    blocks
}

/// The steps of [`PAGE`]. A block of code without an instruction is an error: a reader would not know what to do with it.
fn steps(page: &str) -> Result<Vec<Step<'_>>> {
    let step = |(at, before, instruction, block)| {
        let instruction: Option<Instruction<'_>> = instruction;
        let instruction = instruction.with_context(|| format!("{PAGE}:{at}: `{before}` is no instruction"))?;
        Ok(Step { at, instruction, block })
    };
    blocks(page).into_iter().map(step).collect()
}

/// The steps of one of [`GUEST_PAGES`].
fn steps_with_guests(page: &str) -> Vec<Step<'_>> {
    let step = |(at, _, instruction, block)| Some(Step { at, instruction: instruction?, block });
    blocks(page).into_iter().filter_map(step).collect()
}

/// `text` after the change; an error says what is not there, or more than once.
fn changed(text: &str, step: &Step<'_>) -> Result<String> {
    let once = |found: usize, what: &str, path: &str| {
        ensure!(found == 1, "{PAGE}:{}: `{what}` is {found} times in {path}", step.at);
        Ok(())
    };
    let around = |wanted: &str, path: &str, behind: bool| {
        once(text.lines().filter(|line| line.trim() == wanted.trim()).count(), wanted, path)?;
        let mut new = String::new();
        for line in text.lines() {
            let found = line.trim() == wanted.trim();
            let indent = line.get(..line.len().saturating_sub(line.trim_start().len())).unwrap_or_default();
            let indented = |block: &str| {
                let put = |line: &str| if line.is_empty() { "\n".into() } else { format!("{indent}{line}\n") };
                block.lines().map(put).collect::<String>()
            };
            if found && !behind {
                new.push_str(&indented(&step.block));
            }
            new.push_str(line);
            new.push('\n');
            if found && behind {
                new.push_str(&indented(&step.block));
            }
        }
        Ok(new)
    };
    match step.instruction {
        Instruction::After { line, path } => around(line, path, true),
        Instruction::Before { line, path } => around(line, path, false),
        Instruction::Instead { text: old, path } => {
            once(text.matches(old).count(), old, path)?;
            Ok(text.replace(old, step.block.trim_end()))
        }
        Instruction::Append { .. } => Ok(format!("{text}{}", step.block)),
        Instruction::Create { .. } => Ok(step.block.clone()),
        Instruction::Run => bail!("{PAGE}:{}: commands change no text", step.at),
    }
}

/// Carries out the steps of `page` in `folder`, with these variables for commands.
fn carry_out(page: &str, steps: &[Step<'_>], folder: &Path, environment: &[(&str, &OsStr)]) -> Result<()> {
    for step in steps {
        let Some(path) = step.instruction.path() else {
            eprintln!("{page}:{}:\n{}", step.at, step.block.trim_end());
            let mut shell = Command::new("sh");
            shell.args(["-ec", &step.block]).current_dir(folder).envs(environment.iter().copied());
            let status = shell.status().context("cannot run sh")?;
            ensure!(status.success(), "{page}:{}: the script failed: {status}", step.at);
            continue;
        };
        let file = folder.join(path);
        let old = match step.instruction {
            Instruction::Create { .. } => {
                ensure!(!file.exists(), "{page}:{}: {path} exists", step.at);
                String::new()
            }
            _ => fs::read_to_string(&file).with_context(|| format!("{page}:{}: cannot read {path}", step.at))?,
        };
        fs::write(&file, changed(&old, step)?).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}

fn read(page: &str) -> Result<String> {
    fs::read_to_string(root().join(page)).with_context(|| format!("cannot read {page}"))
}

/// Carries out the pages with a name that contains one of `only`; all if it is empty. [`PAGE`] is carried out in
/// `target/recipes/tree` and built in `target/recipes/build`, another page in an empty folder `target/recipes/PAGE`.
pub fn check(only: &[String]) -> Result<()> {
    let wanted = |page: &&str| only.is_empty() || only.iter().any(|name| page.contains(name.as_str()));
    let top = root().join("target/recipes");
    if wanted(&PAGE) {
        let (folder, build) = (top.join("tree"), top.join("build"));
        copy::write(&folder, |_| None)?;
        carry_out(PAGE, &steps(&read(PAGE)?)?, &folder, &[("CARGO_TARGET_DIR", build.as_os_str())])?;
    }
    let pages: Vec<&str> = GUEST_PAGES.into_iter().filter(|page| wanted(page)).collect();
    if pages.is_empty() {
        return Ok(());
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--package", "arctic-cli"]).current_dir(root());
    ensure!(cargo.status().context("cannot run cargo")?.success(), "the program does not build");
    let path = env::var_os("PATH").unwrap_or_default();
    let programs = env::join_paths([root().join("target/release")].into_iter().chain(env::split_paths(&path)))?;
    for page in pages {
        let folder = top.join(Path::new(page).file_stem().unwrap_or_default());
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let environment = [("PATH", programs.as_os_str()), ("ARCTIC", root().as_os_str())];
        carry_out(page, &steps_with_guests(&read(page)?), &folder, &environment)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str =
        "# Title\n\n1. After `    b,` in `src/a.rs`:\n\n   ```rust\n   c,\n     d\n   ```\n\nRun:\n\n```\ntrue\n```\n";

    #[test]
    fn a_page_is_split_into_instructions() {
        let found = steps(SAMPLE).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].instruction, Instruction::After { line: "    b,", path: "src/a.rs" });
        assert_eq!((found[0].block.as_str(), found[0].at), ("c,\n  d\n", 5));
        assert_eq!((&found[1].instruction, found[1].block.as_str()), (&Instruction::Run, "true\n"));
        let mixed = "Some text:\n```\nx\n```\nRun:\n```\ny\n```\n";
        assert!(steps(mixed).unwrap_err().to_string().contains("no instruction"));
        let run = Step { at: 6, instruction: Instruction::Run, block: "y\n".into() };
        assert_eq!(steps_with_guests(mixed), [run]);
    }

    #[test]
    fn text_changes_at_one_place_only() {
        let step = &steps(SAMPLE).unwrap()[0];
        assert_eq!(changed("    a,\n    b,\n}\n", step).unwrap(), "    a,\n    b,\n    c,\n      d\n}\n");
        for (text, times) in [("a\n", 0), ("b,\nb,\n", 2)] {
            let error = changed(text, step).unwrap_err().to_string();
            assert!(error.contains(&format!("is {times} times in src/a.rs")), "{error}");
        }
        let step =
            Step { at: 1, instruction: Instruction::Instead { text: "1, 2", path: "p" }, block: "1, 2, 3\n".into() };
        assert_eq!(changed("[1, 2]", &step).unwrap(), "[1, 2, 3]");
    }

    /// The pages with guests have commands, the files of which they write themselves.
    #[test]
    fn pages_with_guests_have_commands() {
        for page in GUEST_PAGES {
            let text = read(page).unwrap();
            let steps = steps_with_guests(&text);
            assert!(steps.iter().any(|step| step.instruction == Instruction::Run), "{page}");
            let own = |step: &Step<'_>| matches!(step.instruction, Instruction::Run | Instruction::Create { .. });
            assert!(steps.iter().all(own), "{page}");
        }
    }

    /// The README says so.
    #[test]
    fn the_smallest_blit_has_40_lines() {
        let text = read("docs/integrated.md").unwrap();
        let files = steps_with_guests(&text).into_iter().filter(|step| step.instruction != Instruction::Run);
        let lines: Vec<usize> = files.map(|step| step.block.lines().count()).collect();
        assert!(matches!(lines[..], [1..=40]), "{lines:?}");
    }

    /// Every instruction of the page fits the sources; the long job `recipes` also builds and tests the result.
    #[test]
    fn the_page_fits_the_sources() {
        let page = read(PAGE).unwrap();
        let mut files: std::collections::BTreeMap<&str, String> = std::collections::BTreeMap::new();
        let steps = steps(&page).unwrap();
        assert!(steps.iter().filter(|step| step.instruction == Instruction::Run).count() >= 3);
        for step in &steps {
            let Some(path) = step.instruction.path() else { continue };
            let old = files.remove(path).or_else(|| fs::read_to_string(root().join(path)).ok()).unwrap_or_default();
            files.insert(path, changed(&old, step).unwrap());
        }
    }
}
