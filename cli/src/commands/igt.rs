// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic igt`: runs IGT GPU Tools against the card, in a Linux guest.

use std::convert::Infallible;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use arctic_guest_runner::card::Functions;
use arctic_guest_runner::clocks;
use arctic_guest_runner::igt::{self, Job, PHYSICAL, VIRTUAL, agent, list};
use arctic_guest_runner::progress::StderrProgress;
use arctic_guest_runner::report::{self, TestResult};
use arctic_guest_runner::skipped;

use super::boot::{GuestArgs, STAGE_SECONDS, failure, seconds};
use super::card_args::VfArgs;
use super::stdout::{complain, print_if_read};
use super::{VERSION, usage};

/// Run IGT's tests against the card in a Linux guest and report pass, fail or skip for each.
///
/// A test passes only if IGT reports SUCCESS. If a guest hangs or crashes, the running test fails, the guest is
/// restarted, and the run continues with the next line. The exit status is 0 if no test failed, and 125 if the clocks
/// of a guest and of the host differ by more than 5 %: such a run is inconclusive.
///
/// With --vfs N the guest has the PF and N VFs, which are not enabled when a test starts: the tests of SR-IOV lists
/// enable them. With --function vf the guest has only VF 1, of N VFs (default 1) that the card provisions from its card
/// file.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    guest: GuestArgs,
    /// The tests: a file with one `binary@subtest` per line; a prefix `igt@`, blank lines and # comments are accepted
    #[arg(long, value_name = "FILE", required_unless_present = "agent")]
    list: Option<PathBuf>,
    /// Run only lines that contain TEXT; can be repeated
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// First run the workloads of `arctic boot`, in the same guest
    #[arg(long)]
    work: bool,
    /// Time limit in seconds for one subtest; up to four times as long on a host with more runnable tasks than cores
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = seconds())]
    timeout: u64,
    /// Time limit in seconds for a guest's boot, each load of the driver, and its shutdown
    #[arg(long, value_name = "SECONDS", default_value_t = STAGE_SECONDS, value_parser = seconds())]
    stage_timeout: u64,
    /// The function under test: the physical one, or a virtual one
    #[arg(long, default_value = PHYSICAL, value_parser = [PHYSICAL, VIRTUAL])]
    function: String,
    #[command(flatten)]
    vfs: VfArgs,
    /// Print only one JSON document on stdout
    #[arg(long)]
    json: bool,
    /// Refuses a test as an argument, with the way to run it
    #[arg(value_name = "TEST", value_parser = not_an_argument, hide = true)]
    _test: Option<Infallible>,
    /// Run as the agent that executes the tests of PLAN; used inside the guest
    #[arg(long, value_name = "PLAN", hide = true)]
    agent: Option<PathBuf>,
}

fn not_an_argument(_: &str) -> Result<Infallible, String> {
    Err("write the tests into a file, one `binary@subtest` per line, and name it with --list FILE".into())
}

/// Runs `arctic igt`.
pub fn run(args: Args) -> Result<ExitCode> {
    if let Some(plan) = &args.agent {
        agent::run(plan)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = args.list.context("--list FILE is missing")?;
    let text = fs::read_to_string(&path).with_context(|| format!("the list {} cannot be read", path.display()));
    let tests =
        text.and_then(|text| list::parse(&text).with_context(|| format!("the list {} is invalid", path.display())));
    let mut tests = tests.map_err(usage)?;
    tests.retain(|test| {
        let name = test.to_string();
        args.filter.is_empty() || args.filter.iter().any(|part| name.contains(part))
    });
    if tests.is_empty() {
        return Err(usage(anyhow!("no test to run in the list {}: check --list and --filter", path.display())));
    }
    let job = Job { tests, work: args.work, limit: Duration::from_secs(args.timeout) };
    let functions = match (args.function.as_str(), args.vfs.vfs) {
        (VIRTUAL, vfs) => Functions::Provisioned(vfs.unwrap_or(1)),
        (_, Some(vfs)) => Functions::Together(vfs),
        (_, None) => Functions::Physical,
    };
    let options = args.guest.options(functions, Duration::from_secs(args.stage_timeout))?;
    let mut on_result = |result: &TestResult| {
        if args.json {
            complain(result);
        } else {
            // An output error also fails the summary below; the results are in the run's log in any case.
            drop(print_if_read(format_args!("{result}\n")));
        }
    };
    // The progress is dropped, and its open line erased, before an error is printed.
    let result = igt::run(&options, &job, &mut on_result, &StderrProgress::default());
    let mut report = match result {
        Ok(report) => report,
        Err(error) => return failure(error),
    };
    report.versions.insert("arctic".into(), VERSION.into());
    let failures = report::failures(&report.results);
    if args.json {
        // Repeated at the end, because failures are hard to find in a long list.
        if !failures.is_empty() {
            complain(failures.trim_end());
        }
        print_if_read(format_args!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        let load = report.host_load.summary();
        let clocks: String = report.clocks.iter().map(|clock| format!("clock {clock}\n")).collect();
        let skipped = skipped::line(&report.skipped_commands, options.integrated);
        let skipped = skipped.map_or(String::new(), |line| format!("skipped {line}\n"));
        let inconclusive = clocks::inconclusive(&report.clocks).map_or(String::new(), |line| line + "\n");
        print_if_read(format_args!(
            "{failures}{clocks}{skipped}host {load}\nlog {}\n{inconclusive}{}\n",
            report.log, report.totals
        ))?;
    }
    Ok(ExitCode::from(clocks::exit_status(&report.clocks, u8::from(!report.ok))))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(words: &str) -> Result<(u64, u64), clap::Error> {
        let line = ["igt", "--list", "x"].into_iter().chain(words.split_whitespace());
        Line::try_parse_from(line).map(|line| (line.args.timeout, line.args.stage_timeout))
    }

    #[test]
    fn stage_timeout_is_separate_and_bounded() {
        assert_eq!(parse("").unwrap(), (120, 120));
        assert_eq!(parse("--timeout 5 --stage-timeout 600").unwrap(), (5, 600));
        for words in ["--stage-timeout 0", "--stage-timeout 604801", "--timeout 18446744073709551614", "--timeout 0"] {
            assert!(parse(words).is_err(), "{words}");
        }
    }

    #[test]
    fn a_test_as_an_argument_is_refused_with_the_option_for_it() {
        let error = parse("a@b").unwrap_err().to_string();
        assert!(error.contains("invalid value 'a@b'") && error.contains("--list FILE"), "{error}");
    }
}
