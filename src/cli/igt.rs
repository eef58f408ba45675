//! `arctic igt`: the field's own test suite against the card, in a Linux guest.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use arctic_guest_tests::card::Functions;
use arctic_guest_tests::igt::{self, Job, PHYSICAL, VIRTUAL, agent, list};
use arctic_guest_tests::progress::Stderr;
use arctic_guest_tests::report::TestResult;

use super::boot::{GuestArgs, VfArgs, failure};

/// Run IGT's tests against the card in a Linux guest and report pass, fail or skip for each.
///
/// A test passes only where IGT itself says SUCCESS. A guest that hangs or crashes fails the line that ran, is
/// started anew, and the run goes on with the next line. The exit status is 0 where nothing failed.
///
/// With --vfs N the guest holds the PF and N VFs that no test finds enabled: lists for SR-IOV enable them themselves.
/// With --function vf the guest holds VF 1 alone, of N (1 unless --vfs says so) that the card provisions by its card file.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    guest: GuestArgs,
    /// The tests: a file with one `binary@subtest` a line; `igt@` in front, blank lines and # comments are fine
    #[arg(long, value_name = "FILE", required_unless_present = "agent")]
    list: Option<PathBuf>,
    /// Run only lines that contain TEXT; may be given several times
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Seconds that one subtest may take
    #[arg(long, value_name = "S", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// The function of the card under test: the physical one, or a virtual one
    #[arg(long, default_value = PHYSICAL, value_parser = [PHYSICAL, VIRTUAL])]
    function: String,
    #[command(flatten)]
    vfs: VfArgs,
    /// Print one JSON document on stdout and nothing else
    #[arg(long)]
    json: bool,
    /// Be the agent that runs the tests of PLAN; used inside the guest
    #[arg(long, value_name = "PLAN", hide = true)]
    agent: Option<PathBuf>,
}

/// How long a guest may take to come up.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// Runs `arctic igt`.
pub fn run(args: Args) -> Result<ExitCode> {
    if let Some(plan) = &args.agent {
        agent::run(plan)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = args.list.context("--list FILE is missing")?;
    let text = fs::read_to_string(&path).with_context(|| format!("the list {} cannot be read", path.display()))?;
    let mut tests = list::parse(&text).with_context(|| format!("the list {} is damaged", path.display()))?;
    tests.retain(|test| {
        let name = test.to_string();
        args.filter.is_empty() || args.filter.iter().any(|part| name.contains(part))
    });
    if tests.is_empty() {
        bail!("the list {} has no test to run", path.display());
    }
    let job = Job { tests, limit: Duration::from_secs(args.timeout) };
    let functions = match (args.function.as_str(), args.vfs.vfs) {
        (VIRTUAL, vfs) => Functions::Provisioned(vfs.unwrap_or(1)),
        (_, Some(vfs)) => Functions::Together(vfs),
        (_, None) => Functions::Physical,
    };
    let options = args.guest.options(functions, BOOT_LIMIT)?;
    let mut told = |result: &TestResult| match args.json {
        true => eprintln!("{result}"),
        false => println!("{result}"),
    };
    let report = match igt::run(&options, &job, &mut told, &Stderr::default()) {
        Ok(report) => report,
        Err(error) => return failure(error),
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("log {}\n{}", report.log.display(), report.totals);
    }
    Ok(ExitCode::from(u8::from(!report.ok)))
}
