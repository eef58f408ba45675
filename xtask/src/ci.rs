// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! CI, in stages. It stops at the first failed step. Each step has a limit; the last stages, whose work depends on what has
//! changed, take the time that is left of [`TOTAL`]. At the end a table has the time of each step.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::groups::{GROUPS, Group, Stage};
use crate::jobs::{self, Job};
use crate::{git, step_within};

/// Time limit of a run: 40 minutes with the build of xtask before it. No mutant or long test starts if it would not end in time;
/// what is left out is printed.
const TOTAL: Duration = Duration::from_secs(38 * 60);
/// Time of all fuzz targets together, builds included.
const FUZZ: Duration = Duration::from_secs(7 * 60);
/// Time for building the fuzz targets and cargo-fuzz, of [`FUZZ`].
const FUZZ_BUILD: Duration = Duration::from_secs(3 * 60);
/// Fuzz targets that run at the same time (`arctic_libfuzzer`).
const FUZZERS: u32 = 2;
/// Time limit of the mutants, with their build.
const MUTANTS: Duration = Duration::from_secs(10 * 60);
/// Time for building the mutants. They are left out if they would have less.
const MUTANTS_BUILD: Duration = Duration::from_secs(5 * 60);
/// Time limit of the long tests, in minutes, without their builds.
const LONG_MINUTES: u32 = 12;
/// Time for building a long test: its features differ from those of the tests before it.
const LONG_BUILD: Duration = Duration::from_secs(5 * 60);
/// Number of recent commits. The files that they change select the long tests.
const COMMITS: u32 = 20;
const MINUTE: Duration = Duration::from_secs(60);

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
    let mut ci = Ci { started: Instant::now(), list: arguments.list, rows: Vec::new(), left_out: Vec::new() };
    let result = stages.iter().try_for_each(|&stage| ci.stage(stage, &groups, arguments.groups.is_empty()));
    if !ci.list {
        eprint!("{}", ci.table());
    }
    result
}

/// A run of CI.
struct Ci {
    started: Instant,
    /// Steps are printed, not run.
    list: bool,
    /// What each step has taken.
    rows: Vec<Row>,
    /// Work for which no time was left.
    left_out: Vec<String>,
}

/// A step that has run.
struct Row {
    line: String,
    took: Duration,
    limit: Duration,
    passed: bool,
}

impl Ci {
    fn stage(&mut self, stage: Stage, groups: &[&'static Group], repository: bool) -> Result<()> {
        if repository {
            for step in stage.steps() {
                self.step(step.line, step.minutes)?;
            }
        }
        for (group, (line, minutes)) in
            groups.iter().flat_map(|group| group.steps(stage).into_iter().map(move |step| (group, step)))
        {
            let fuzzes = line.contains("{fuzz_seconds}");
            if fuzzes && !self.list && !(group.is_changed(&changed_files()?) && self.has_time_to_fuzz()) {
                self.left_out.push(format!("the fuzz targets of {}", group.name));
                continue;
            }
            let line = line.replace("{fuzz_seconds}", &fuzz_seconds(fuzz_targets()?).to_string());
            self.step(&line, minutes)?;
        }
        match stage {
            Stage::Check if groups.iter().any(|group| group.name == "card") => self.mutants(),
            Stage::Long => self.long_tests(groups),
            _ => Ok(()),
        }
    }

    /// Runs a command line, or prints it. It fails if it does not end within `minutes`.
    #[allow(clippy::arithmetic_side_effects, reason = "limits are minutes")]
    fn step(&mut self, line: &str, minutes: u32) -> Result<()> {
        if self.list {
            println!("{line}");
            return Ok(());
        }
        let limit = MINUTE * minutes;
        let started = Instant::now();
        let result = step_within(line, Some(limit));
        self.rows.push(Row { line: line.to_owned(), took: started.elapsed(), limit, passed: result.is_ok() });
        result
    }

    /// Returns whether fuzz targets that are built now end in time.
    #[allow(clippy::arithmetic_side_effects, reason = "limits are minutes")]
    fn has_time_to_fuzz(&self) -> bool {
        self.started.elapsed() + FUZZ <= TOTAL
    }

    /// Runs the mutants of changed files for the time that is left for them.
    #[allow(clippy::arithmetic_side_effects, reason = "limits are minutes")]
    fn mutants(&mut self) -> Result<()> {
        let minutes = mutant_minutes(self.started.elapsed());
        if minutes == 0 && !self.list {
            self.left_out.push("the mutants".into());
            return Ok(());
        }
        // The builds that have begun when the time is over are completed.
        let limit = minutes + 2 * u32::try_from(MUTANTS_BUILD.as_secs() / 60).unwrap_or(0);
        self.step(&format!("cargo xtask mutants --changed --minutes {minutes} --check"), limit)
    }

    /// Runs the long tests of `groups` for the files that the last commits changed, or prints them.
    fn long_tests(&mut self, groups: &[&'static Group]) -> Result<()> {
        let jobs = groups.iter().flat_map(|group| group.jobs.iter().map(|job| (*group, job)));
        let (chosen, left_out) = choose(jobs, &changed_files()?);
        if self.list {
            chosen.iter().for_each(|(_, job)| println!("cargo xtask long {}", job.name));
            return Ok(());
        }
        self.left_out.extend(left_out.iter().map(|(_, job)| job.name.to_owned()));
        for (group, job) in chosen {
            if !ends_in_time(job, self.started.elapsed()) {
                self.left_out.push(job.name.to_owned());
                continue;
            }
            let (started, limit) = (Instant::now(), long_limit(job));
            let passed = jobs::passes(group, job, Some(limit));
            self.rows.push(Row { line: format!("long test {}", job.name), took: started.elapsed(), limit, passed });
            ensure!(passed, "long test {} failed", job.name);
        }
        Ok(())
    }

    /// Returns the table of the steps.
    fn table(&self) -> String {
        let mut text = format!("\n{:>7} {:>7}  step\n", "seconds", "limit");
        for Row { line, took, limit, passed } in &self.rows {
            let line = GROUPS.iter().fold(line.clone(), |line, group| group.fold(&line));
            let failed = if *passed { "" } else { "  FAILED" };
            text += &format!("{:>7} {:>7}  {line}{failed}\n", took.as_secs(), limit.as_secs());
        }
        text += &format!("{:>7} {:>7}  all steps\n", self.started.elapsed().as_secs(), TOTAL.as_secs());
        if !self.left_out.is_empty() {
            let minutes = TOTAL.as_secs() / 60;
            text += &format!(
                "left out, since their files have not changed, long tests have {LONG_MINUTES} minutes, or CI {minutes}: {}\n",
                self.left_out.join(", ")
            );
        }
        text
    }
}

/// Returns the number of fuzz targets of all groups.
fn fuzz_targets() -> Result<u32> {
    let mut count: u32 = 0;
    for manifest in GROUPS.iter().filter_map(|group| group.fuzz) {
        let folder = crate::root().join(manifest).with_file_name("fuzz_targets");
        let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        count = count.saturating_add(u32::try_from(entries.count()).unwrap_or(u32::MAX));
    }
    Ok(count)
}

/// Returns the seconds for each of `targets` fuzz targets, so that all of them take [`FUZZ`] with their builds.
#[allow(clippy::arithmetic_side_effects, reason = "division by at least one")]
fn fuzz_seconds(targets: u32) -> u64 {
    // A package with an odd number of targets leaves a fuzzer without work at its end.
    let rounds = targets.div_ceil(FUZZERS).saturating_add(1);
    (FUZZ.saturating_sub(FUZZ_BUILD) / rounds).as_secs().max(1)
}

/// Returns the time limit of the mutants in minutes, if CI began `elapsed` ago: half of the time left, and 0 if that is less
/// than their build takes.
#[allow(clippy::arithmetic_side_effects, reason = "division by a constant")]
fn mutant_minutes(elapsed: Duration) -> u32 {
    let share = (TOTAL.saturating_sub(elapsed) / 2).min(MUTANTS);
    if share <= MUTANTS_BUILD { 0 } else { u32::try_from(share.as_secs() / 60).unwrap_or(0) }
}

/// Returns the time after which a long test is ended and has failed.
#[allow(clippy::arithmetic_side_effects, reason = "limits are minutes")]
fn long_limit(job: &Job) -> Duration {
    LONG_BUILD * 2 + MINUTE * job.minutes * 3
}

fn names<'a>(groups: impl Iterator<Item = &'a Group>) -> String {
    format!("the groups are {}", groups.map(|group| group.name).collect::<Vec<_>>().join(", "))
}

/// Returns whether a long test that starts `elapsed` after CI began ends within [`TOTAL`].
fn ends_in_time(job: &Job, elapsed: Duration) -> bool {
    let run = MINUTE.saturating_mul(job.minutes);
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
        assert_eq!(mutant_minutes(15 * MINUTE), 10);
        assert_eq!(mutant_minutes(26 * MINUTE), 6);
        // Less than the build takes.
        assert_eq!(mutant_minutes(30 * MINUTE), 0);
        assert_eq!(mutant_minutes(90 * MINUTE), 0);
        let (_, job) = jobs::all().find(|(_, job)| job.minutes == 2).unwrap();
        assert!(ends_in_time(job, 31 * MINUTE) && !ends_in_time(job, 32 * MINUTE));
    }

    #[test]
    fn fuzz_targets_share_seven_minutes() {
        let targets = fuzz_targets().unwrap();
        assert!(targets >= 14, "{targets}");
        for targets in [targets, 20, 40] {
            let seconds = fuzz_seconds(targets) * u64::from(targets.div_ceil(FUZZERS) + 1);
            assert!(seconds <= (FUZZ - FUZZ_BUILD).as_secs() && fuzz_seconds(targets) >= 10, "{targets}: {seconds}");
        }
    }

    /// A step that does not end is ended with its children, and the table has its time.
    #[test]
    fn step_over_its_limit_fails_and_leaves_no_process() {
        let folder = std::env::temp_dir().join(format!("arctic-xtask-limit-{}", std::process::id()));
        let line = format!("sh -c 'touch {0}.begun; sleep 3; touch {0}.ended & wait'", folder.display());
        let [begun, ended] = ["begun", "ended"].map(|name| folder.with_extension(name));
        let error = step_within(&line, Some(Duration::from_millis(500))).unwrap_err().to_string();
        assert!(error.contains("did not end within") && begun.exists(), "{error}");
        std::thread::sleep(Duration::from_secs(4));
        assert!(!ended.exists());
        std::fs::remove_file(begun).unwrap();
    }

    #[test]
    fn table_has_each_step_and_what_was_left_out() {
        let row = |line: &str, passed| Row { line: line.into(), took: 61 * MINUTE / 60, limit: MINUTE, passed };
        let build = Group::find("card").unwrap().expand("cargo test {packages} --no-run");
        let rows = vec![row(&build, true), row("cargo doc", false)];
        let ci = Ci { started: Instant::now(), list: false, rows, left_out: vec!["the mutants".into()] };
        let table = ci.table();
        for line in ["     61      60  cargo test [card] --no-run", "     61      60  cargo doc  FAILED"] {
            assert!(table.lines().any(|found| found == line), "{table}");
        }
        assert!(table.contains("or CI 38: the mutants"), "{table}");
    }

    #[test]
    fn an_unknown_group_is_named() {
        let arguments = CiArgs { stages: vec![], groups: vec!["cards".into()], list: true };
        assert_eq!(run(&arguments).unwrap_err().to_string(), "no group cards: the groups are card, afuc, eu");
    }
}
