// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! CI, in stages. It stops at the first failed step.

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::groups::{GROUPS, Group, Stage};
use crate::jobs::{self, Job};
use crate::{git, step};

/// Time limit of the long tests, in minutes.
const LONG_MINUTES: u32 = 12;
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
    for &stage in stages {
        let common = if arguments.groups.is_empty() { stage.steps() } else { &[] };
        let steps =
            common.iter().map(|line| (*line).to_owned()).chain(groups.iter().flat_map(|group| group.steps(stage)));
        for line in steps {
            if arguments.list {
                println!("{line}");
            } else {
                step(&line)?;
            }
        }
        if stage == Stage::Long {
            long_tests(&groups, arguments.list)?;
        }
    }
    Ok(())
}

fn names<'a>(groups: impl Iterator<Item = &'a Group>) -> String {
    format!("the groups are {}", groups.map(|group| group.name).collect::<Vec<_>>().join(", "))
}

/// Runs the long tests of `groups` for the files that the last commits changed, or prints them.
fn long_tests(groups: &[&'static Group], list: bool) -> Result<()> {
    let jobs = groups.iter().flat_map(|group| group.jobs.iter().map(|job| (*group, job)));
    let (chosen, left_out) = choose(jobs, &changed_files()?);
    if list {
        chosen.iter().for_each(|(_, job)| println!("cargo xtask long {}", job.name));
        return Ok(());
    }
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().map(|(_, job)| job.name).collect();
        eprintln!("not run, since long tests are limited to {LONG_MINUTES} minutes: {}", names.join(", "));
    }
    for (group, job) in chosen {
        ensure!(jobs::passes(group, job), "long test {} failed", job.name);
    }
    Ok(())
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
    fn an_unknown_group_is_named() {
        let arguments = CiArgs { stages: vec![], groups: vec!["cards".into()], list: true };
        assert_eq!(run(&arguments).unwrap_err().to_string(), "no group cards: the groups are card, afuc, eu");
    }
}
