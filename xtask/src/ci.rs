// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The steps of CI, in order. CI stops at the first failed step.

use anyhow::{Result, ensure};

use crate::jobs::{JOBS, Job};
use crate::{git, step};

/// Steps that run for every change. They share one target directory and one profile, so nothing is built twice.
pub const STEPS: &[&str] = &[
    "cargo fmt --all --check",
    "cargo fmt --manifest-path fuzz/Cargo.toml --check",
    "cargo xtask spdx",
    "cargo xtask words",
    "cargo xtask tools typos cargo-deny",
    "target/tools/typos/bin/typos",
    "target/tools/cargo-deny/bin/cargo-deny --locked --workspace check bans licenses sources",
    "target/tools/cargo-deny/bin/cargo-deny --locked --manifest-path fuzz/Cargo.toml check bans licenses sources",
    "cargo clippy --release --workspace --all-targets --features arctic-gpu/long-tests,arctic-cli/long-tests,arctic-vmm/long-tests --quiet -- -D warnings",
    "RUSTDOCFLAGS=-Dwarnings cargo doc --release --workspace --no-deps --quiet",
    "cargo package --allow-dirty --no-verify --quiet -p arctic-fidelity -p arctic-sriov -p arctic-device-model -p arctic-gpu -p arctic-guest-tests -p arctic-cli",
    "cargo test --release --workspace --no-run --quiet",
    "cargo test --release --workspace",
    "cargo xtask mutants --changed --minutes 10 --check",
    "ARCTIC_FUZZ_SECONDS=30 cargo test --release --workspace --features arctic-gpu/long-tests --test fuzz",
];
/// Time limit of the long tests that follow, in minutes.
const LONG_MINUTES: u32 = 12;
/// Number of recent commits. The files that they change select the long tests.
const COMMITS: u32 = 20;

/// Runs the steps, or prints them.
pub fn run(list: bool) -> Result<()> {
    let (chosen, left_out) = choose(&changed_files()?);
    if list {
        STEPS.iter().for_each(|line| println!("{line}"));
        chosen.iter().for_each(|job| println!("cargo xtask long {}", job.name));
        return Ok(());
    }
    STEPS.iter().try_for_each(|line| step(line))?;
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().map(|job| job.name).collect();
        eprintln!("not run, since long tests are limited to {LONG_MINUTES} minutes: {}", names.join(", "));
    }
    for job in chosen {
        ensure!(job.passes(), "long test {} failed", job.name);
    }
    Ok(())
}

/// Returns the jobs for these files that fit into the time limit, and those that do not.
fn choose(files: &[String]) -> (Vec<&'static Job>, Vec<&'static Job>) {
    let touched = |job: &&Job| job.paths.iter().any(|path| files.iter().any(|file| file.starts_with(path)));
    let mut left = LONG_MINUTES;
    JOBS.iter().filter(touched).partition(|job| {
        let fits = job.minutes <= left;
        left -= if fits { job.minutes } else { 0 };
        fits
    })
}

/// Returns the files that the last commits changed; all files if the history is shorter.
fn changed_files() -> Result<Vec<String>> {
    let since = format!("HEAD~{COMMITS}");
    git(&["diff", "--name-only", &since, "HEAD"]).or_else(|_| git(&["ls-files"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &[&str]) -> (Vec<&'static str>, Vec<&'static str>) {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let (chosen, left_out) = choose(&files);
        let names = |jobs: Vec<&'static Job>| jobs.into_iter().map(|job| job.name).collect();
        (names(chosen), names(left_out))
    }

    /// The GitHub workflow runs every step, and every long job at night.
    #[test]
    fn the_workflow_has_every_step_and_job() {
        let workflow = std::fs::read_to_string(crate::root().join(".github/workflows/ci.yml")).unwrap();
        let lines: Vec<&str> = workflow.lines().map(str::trim).collect();
        for line in STEPS {
            assert!(lines.contains(&format!("- run: {line}").as_str()), "{line}");
        }
        for job in JOBS {
            assert!(lines.contains(&format!("- {}", job.name).as_str()), "{}", job.name);
        }
    }

    #[test]
    fn long_tests_follow_the_files_and_fit_into_the_time() {
        assert_eq!(names(&["README.md"]), (vec![], vec![]));
        assert_eq!(names(&["guest-tests/vmm/src/lib.rs"]), (vec!["nested"], vec![]));
        for files in [["device-model/src/card.rs"].as_slice(), &["src/card.rs", "guest-tests/vmm/src/lib.rs"]] {
            let (chosen, left_out) = names(files);
            assert!(chosen.contains(&"vfs-63"), "{chosen:?}");
            let minutes = |name: &&str| JOBS.iter().find(|job| job.name == *name).unwrap().minutes;
            assert!(chosen.iter().map(minutes).sum::<u32>() <= LONG_MINUTES);
            assert!(!left_out.contains(&"vfs-63"));
        }
    }
}
