// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `cargo xtask`: long tests by name, CI steps and their tools, corpora of the fuzz targets, mutants, the report on
//! the documents' items, licence lines, names in documents, and the word list of identifiers.

mod ci;
mod copy;
mod corpus;
mod documents;
mod fidelity;
mod groups;
mod jobs;
mod mutants;
mod names;
mod programs;
mod recipes;
mod spdx;
mod support;
mod timeline;
mod tools;
#[cfg(test)]
mod workspace;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Development tasks.
#[derive(Parser)]
#[command(name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run long tests, which are not in the full test tier
    #[command(after_help = "Examples:\n  cargo xtask long --list\n  cargo xtask long vfs-63 igt-i915")]
    Long {
        /// Names of jobs (see --list); `all` runs every job
        #[arg(required_unless_present = "list")]
        names: Vec<String>,
        /// Print the jobs with their descriptions and approximate durations
        #[arg(long)]
        list: bool,
        /// With --list: print JSON
        #[arg(long, requires = "list")]
        json: bool,
    },
    /// Run CI: lint, the full test tier, the fuzz targets, long tests that cover recently changed files; prints a table of times
    #[command(after_help = "Examples:\n  cargo xtask ci --list\n  cargo xtask ci --stage lint\n  \
        cargo xtask ci --group card --stage quick")]
    Ci(ci::CiArgs),
    /// Pack or unpack the corpora of the fuzz targets
    #[command(after_help = "To add a finding:\n  cargo xtask corpus unpack functions\n  \
        cp fuzz/artifacts/functions/crash-... fuzz/corpus/functions/\n  cargo xtask corpus pack functions")]
    Corpus {
        #[command(subcommand)]
        what: Corpus,
    },
    /// Install tools that CI uses, in the same versions, under target/tools/
    #[command(after_help = "Examples:\n  cargo xtask tools typos cargo-deny\n  target/tools/typos/bin/typos")]
    Tools {
        /// Any of typos, cargo-deny and mdbook; the last is compiled, which takes some minutes
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Run each mutant of the code against the tests that claim its item, and write docs/mutants.toml
    #[command(
        after_help = "Examples:\n  cargo xtask mutants V8-089 V13-020\n  cargo xtask mutants --changed --minutes 10\n  cargo xtask mutants --fix\n\n\
        A mutant is a violation of an item: rows of fidelity/mutants/, each a Rust item, a sequence of its tokens and their\n\
        replacement. They are applied to a copy of the sources. The tests that claim the item by proves! must fail with\n\
        it; if none does, the mutant survives and the item does not count as exact."
    )]
    Mutants(mutants::MutantsArgs),
    /// Write the report on the items of the documents: docs/fidelity.tsv and FIDELITY.md
    #[command(after_help = "Examples:\n  cargo xtask fidelity\n  cargo xtask fidelity --check\n\n\
        The report combines docs/spec, the claims of tests (proves!), docs/mutants.toml and docs/fidelity.toml. The program\n\
        contains it: `arctic fidelity` shows it.")]
    Fidelity(fidelity::FidelityArgs),
    /// Run packaged programs of OpenCL and Vulkan on the card, on the PF and on a VF, and write the table of docs/compute.md
    #[command(after_help = "Example:\n  cargo xtask programs OpenVINO wgpu")]
    Programs {
        /// Names of programs; all without names
        only: Vec<String>,
    },
    /// Boot guests with several kernels, drivers, firmwares, IOMMUs and memory backends, and write docs/support.md
    #[command(after_help = "Example:\n  cargo xtask support OVMF AMD-Vi")]
    Support {
        /// Only configurations with one of these texts in their names
        only: Vec<String>,
    },
    /// Carry out the worked examples of docs/recipes.md in a copy of the repository, and the commands of other documents,
    /// with guests
    Recipes {
        /// Only documents with one of these texts in their names
        only: Vec<String>,
    },
    /// Draw a timeline of `arctic trace --perfetto` or `arctic decode --perfetto`, such as docs/timeline.svg
    #[command(after_help = "Example:\n  cargo xtask timeline boot.perfetto boot.svg --from 20000 --to 20500")]
    Timeline(timeline::TimelineArgs),
    /// Check that the paths, functions, types and tests that documents name in backticks exist
    Documents,
    /// Check that every source file starts with the licence line
    Spdx,
    /// Check that identifiers contain no word of xtask/names.toml
    Names,
}

#[derive(Subcommand)]
enum Corpus {
    /// Write the inputs of the archives to fuzz/corpus/TARGET/, where cargo fuzz reads them
    Unpack {
        /// Targets; if none is named, all
        targets: Vec<String>,
    },
    /// Replace the archives with the inputs in fuzz/corpus/TARGET/
    Pack {
        /// Targets; if none is named, all with unpacked inputs
        targets: Vec<String>,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Long { list: true, json, .. } => jobs::print(json),
        Task::Long { names, .. } => jobs::run(&names),
        Task::Ci(arguments) => ci::run(&arguments),
        Task::Corpus { what: Corpus::Unpack { targets } } => corpus::unpack(&targets),
        Task::Corpus { what: Corpus::Pack { targets } } => corpus::pack(&targets),
        Task::Tools { names } => tools::install(&names),
        Task::Mutants(arguments) => mutants::run(&arguments),
        Task::Fidelity(arguments) => fidelity::run(&arguments),
        Task::Recipes { only } => recipes::check(&only),
        Task::Timeline(arguments) => timeline::run(&arguments),
        Task::Documents => documents::check(),
        Task::Spdx => spdx::check(),
        Task::Programs { only } => programs::run(&only),
        Task::Support { only } => support::run(&only),
        Task::Names => names::check(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the top directory of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository's top directory")
}

/// Calls `work` with each number below `count`, on all processors. Returns the results by number.
fn in_parallel<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < count));
        numbers.map(|n| (n, work(n))).collect::<Vec<_>>()
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut results: Vec<(usize, T)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no worker panics")).collect()
    });
    results.sort_by_key(|(n, _)| *n);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Runs git in the repository. Returns the lines of its output.
fn git(arguments: &[&str]) -> Result<Vec<String>> {
    let output = Command::new("git").args(arguments).current_dir(root()).output().context("cannot run git")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {} failed: {}", arguments.join(" "), error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// Runs a command line in the repository, split as by a shell. Leading `NAME=VALUE` words set environment variables.
fn step(line: &str) -> Result<()> {
    step_within(line, None)
}

/// Set by the first SIGINT or SIGTERM after the first step has begun: from then on the signals do not end this process.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Without the handler the signal ends this process, as before.
        let _ = signal_hook::flag::register(signal, flag.clone());
    }
    flag
});

/// As [`step`]; a command that does not end within `limit` is ended with its children, and has failed. SIGINT and SIGTERM end
/// the command too.
fn step_within(line: &str, limit: Option<Duration>) -> Result<()> {
    eprintln!("+ {line}");
    let started = Instant::now();
    let interrupted: &AtomicBool = &INTERRUPTED;
    let words = shlex::split(line).context("unbalanced quotes")?;
    let assignments = words.iter().take_while(|word| word.contains('=')).count();
    let (environment, command) = words.split_at(assignments);
    let (program, arguments) = command.split_first().context("an empty step")?;
    let environment = environment.iter().filter_map(|word| word.split_once('='));
    let mut command = Command::new(program);
    // A process group of its own, so that its children can be ended with it.
    command.args(arguments).envs(environment).current_dir(root()).process_group(0);
    let mut child = command.spawn().with_context(|| format!("cannot run {program}"))?;
    let end = |child: &mut Child| {
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = child.wait();
    };
    let status = loop {
        if let Some(status) = child.try_wait().with_context(|| format!("cannot wait for {program}"))? {
            break status;
        }
        if let Some(limit) = limit.filter(|limit| started.elapsed() > *limit) {
            end(&mut child);
            bail!("`{line}` did not end within its limit of {:.0} s", limit.as_secs_f64());
        }
        if interrupted.load(Ordering::Relaxed) {
            end(&mut child);
            bail!("interrupted: `{line}`");
        }
        thread::sleep(Duration::from_millis(20));
    };
    ensure!(status.success(), "`{line}` failed: {status}");
    eprintln!("+ done in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn every_subcommand_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
