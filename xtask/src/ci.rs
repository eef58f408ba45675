// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! CI, in stages. It stops at the first failed step. The last stages, whose work depends on what has changed, take the
//! time that is left of [`TOTAL`].

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::groups::{GROUPS, Group, Stage};
use crate::jobs::{self, Job};
use crate::{git, step};

/// Time limit of a run. No further mutant or long test starts if it would not end in time; what is left out is printed.
const TOTAL: Duration = Duration::from_secs(45 * 60);
/// Time limit of the mutants.
const MUTANTS: Duration = Duration::from_secs(10 * 60);
/// Time limit of the long tests, in minutes, without their builds.
const LONG_MINUTES: u32 = 12;
/// Time for building a long test: its features differ from those of the tests before it.
const LONG_BUILD: Duration = Duration::from_secs(3 * 60);
/// Number of recent commits. The files that they change select the long tests.
const COMMITS: u32 = 20;

#[derive(Args)]
pub struct CiArgs {
    /// Run only these stages
    #[arg(long = "stage", value_name = "STAGE")]
    stages: Vec<Stage>,
    /// Run only the steps of these groups of packages, without those of the whole repository
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Print the steps without running them
    #[arg(long)]
    list: bool,
}

/// Runs the steps, or prints them.
pub fn run(arguments: &CiArgs) -> Result<()> {
    let stages = if arguments.stages.is_empty() { Stage::ALL } else { &arguments.stages };
    let find = |name: &String| Group::find(name).with_context(|| format!("no group {name}: {}", names(GROUPS.iter())));
    let groups: Vec<&Group> = match arguments.groups.as_slice() {
        [] => GROUPS.iter().collect(),
        chosen => chosen.iter().map(find).collect::<Result<_>>()?,
    };
    let started = Instant::now();
    for &stage in stages {
        let common = if arguments.groups.is_empty() { stage.steps() } else { &[] };
        let steps =
            common.iter().map(|line| (*line).to_owned()).chain(groups.iter().flat_map(|group| group.steps(stage)));
        for line in steps {
            let line = line.replace("{minutes}", &mutant_minutes(started.elapsed()).to_string());
            if arguments.list {
                println!("{line}");
            } else {
                step(&line)?;
            }
        }
        if stage == Stage::Long {
            long_tests(&groups, arguments.list, started)?;
        }
    }
    Ok(())
}

/// Returns the time limit of the mutants in minutes, if CI began `elapsed` ago. Half of the time left is for them.
#[allow(clippy::arithmetic_side_effects, reason = "division by a constant")]
fn mutant_minutes(elapsed: Duration) -> u64 {
    (TOTAL.saturating_sub(elapsed) / 2).min(MUTANTS).as_secs() / 60
}

fn names<'a>(groups: impl Iterator<Item = &'a Group>) -> String {
    format!("the groups are {}", groups.map(|group| group.name).collect::<Vec<_>>().join(", "))
}

/// Runs the long tests of `groups` for the files that the last commits changed, or prints them.
fn long_tests(groups: &[&'static Group], list: bool, started: Instant) -> Result<()> {
    let jobs = groups.iter().flat_map(|group| group.jobs.iter().map(|job| (*group, job)));
    let (chosen, left_out) = choose(jobs, &changed_files()?);
    if list {
        chosen.iter().for_each(|(_, job)| println!("cargo xtask long {}", job.name));
        return Ok(());
    }
    let mut left_out: Vec<&str> = left_out.iter().map(|(_, job)| job.name).collect();
    for (group, job) in chosen {
        if ends_in_time(job, started.elapsed()) {
            ensure!(jobs::passes(group, job), "long test {} failed", job.name);
        } else {
            left_out.push(job.name);
        }
    }
    if !left_out.is_empty() {
        let (minutes, names) = (TOTAL.as_secs() / 60, left_out.join(", "));
        eprintln!("not run, since long tests have {LONG_MINUTES} minutes, and CI {minutes}: {names}");
    }
    Ok(())
}

/// Returns whether a long test that starts `elapsed` after CI began ends within [`TOTAL`].
fn ends_in_time(job: &Job, elapsed: Duration) -> bool {
    let run = Duration::from_secs(60 * u64::from(job.minutes));
    elapsed.saturating_add(LONG_BUILD).saturating_add(run) <= TOTAL
}

/// A long test and its group.
type GroupJob = (&'static Group, &'static Job);

/// Returns the jobs for these files that fit into the time limit, and those that do not.
fn choose(jobs: impl Iterator<Item = GroupJob>, files: &[String]) -> (Vec<GroupJob>, Vec<GroupJob>) {
    let mut left = LONG_MINUTES;
    jobs.filter(|(_, job)| job.paths.iter().any(|path| files.iter().any(|file| file.starts_with(path)))).partition(
        |(_, job)| {
            let fits = job.minutes <= left;
            left -= if fits { job.minutes } else { 0 };
            fits
        },
    )
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
        let (chosen, left_out) = choose(jobs::all(), &files);
        let names = |jobs: Vec<GroupJob>| jobs.into_iter().map(|(_, job)| job.name).collect();
        (names(chosen), names(left_out))
    }

    /// The GitHub workflow runs every stage, and every long job at night.
    #[test]
    fn the_workflow_has_every_stage_and_job() {
        let workflow = std::fs::read_to_string(crate::root().join(".github/workflows/ci.yml")).unwrap();
        let lines: Vec<&str> = workflow.lines().map(str::trim).collect();
        for line in [
            "cargo xtask ci --stage lint",
            "cargo xtask ci --stage quick --stage check",
            "cargo xtask ci --stage test --stage long",
        ] {
            assert!(lines.contains(&format!("- run: {line}").as_str()), "{line}");
        }
        for (_, job) in jobs::all() {
            assert!(lines.contains(&format!("- {}", job.name).as_str()), "{}", job.name);
        }
    }

    #[test]
    fn long_tests_follow_the_files_and_fit_into_the_time() {
        assert_eq!(names(&["README.md"]), (vec![], vec![]));
        assert_eq!(names(&["guest-tests/vmm/src/lib.rs"]), (vec!["nested"], vec![]));
        for files in [["device-model/xehpg/src/card.rs"].as_slice(), &["src/card.rs", "guest-tests/vmm/src/lib.rs"]] {
            let (chosen, left_out) = names(files);
            assert!(chosen.contains(&"vfs-63"), "{chosen:?}");
            let minutes = |name: &&str| jobs::all().find(|(_, job)| job.name == *name).unwrap().1.minutes;
            assert!(chosen.iter().map(minutes).sum::<u32>() <= LONG_MINUTES);
            assert!(!left_out.contains(&"vfs-63"));
        }
    }

    #[test]
    fn mutants_and_long_tests_end_within_the_time_limit_of_ci() {
        const MINUTE: Duration = Duration::from_secs(60);
        assert_eq!(mutant_minutes(20 * MINUTE), 10);
        assert_eq!(mutant_minutes(35 * MINUTE), 5);
        assert_eq!(mutant_minutes(90 * MINUTE), 0);
        let (_, job) = jobs::all().find(|(_, job)| job.minutes == 2).unwrap();
        assert!(ends_in_time(job, 40 * MINUTE) && !ends_in_time(job, 41 * MINUTE));
    }

    #[test]
    fn an_unknown_group_is_named() {
        let arguments = CiArgs { stages: vec![], groups: vec!["cards".into()], list: true };
        assert_eq!(run(&arguments).unwrap_err().to_string(), "no group cards: the groups are card, afuc, eu");
    }
}
