// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest compute`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cases::{Api, CASES, Case, named};
use crate::programs::FOLDER;
use crate::report::PciAddress;
use crate::supervisor;
use crate::worker::{self, Job};

/// The device, and the kernels to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Compute {
    /// Name of the card's function in the report
    #[arg(long, value_name = "NAME", default_value = "card")]
    function: String,
    /// PCI address of the device, like 0000:00:01.0; the first GPU by default
    #[arg(long, value_name = "ADDRESS")]
    device: Option<PciAddress>,
    /// Directory of the kernels' binaries
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    kernels: PathBuf,
    /// Run only these kernels; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Also run the kernel that the driver compiles in the guest
    #[arg(long)]
    source: bool,
    /// List the kernels
    #[arg(long)]
    list: bool,
    /// Write the results to FILE as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the Mandelbrot set to FILE, as a number of steps for each point
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Seconds that one kernel may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Run the kernels in this process
    #[arg(long, hide = true)]
    worker: bool,
}

/// Runs the kernels, prints a line for each, and writes the report. Returns true if all results are right.
pub fn run(compute: &Compute) -> Result<bool> {
    if compute.list {
        for case in CASES {
            println!("{:<19} {:<29} {}", case.name, case.api, case.what);
        }
        return Ok(true);
    }
    let cases = compute.cases()?;
    if compute.worker {
        let job =
            Job { address: compute.device, kernels: compute.kernels.clone(), picture: compute.picture.clone(), cases };
        // A descriptor of its own, since the process's stdout is another file while a kernel prints.
        let mut events = fs::File::from(rustix::io::dup(rustix::stdio::stdout())?);
        worker::run(&job, &mut events)?;
        events.flush()?;
        return Ok(true);
    }
    let limit = Duration::from_secs(compute.timeout);
    let function = &compute.function;
    let mut report = supervisor::follow(&|cases| compute.worker_command(cases), &cases, limit, &mut |line| {
        println!("{function:<5} {line}")
    })?;
    report.function.clone_from(function);
    println!("{}{function:<5} {report}", if report.ok { "" } else { "FAIL " });
    if let Some(path) = &compute.out {
        let text = serde_json::to_vec_pretty(&report)?;
        fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(report.ok)
}

impl Compute {
    /// The cases to run, in order.
    fn cases(&self) -> Result<Vec<&'static Case>> {
        if let Some(unknown) = self.only.iter().find(|name| named(name).is_none()) {
            bail!("there is no kernel {unknown}: `arctic guest compute --list` lists them");
        }
        let wanted = |case: &&Case| match self.only.is_empty() {
            true => !case.on_request && (self.source || case.api != Api::OpenClSource),
            false => self.only.iter().any(|name| name == case.name),
        };
        Ok(CASES.iter().filter(wanted).collect())
    }

    /// This program as the worker for `cases`.
    fn worker_command(&self, cases: &[&'static Case]) -> Result<Command> {
        let program = std::env::current_exe().context("the path of this program is not known")?;
        let mut command = Command::new(program);
        command.args(["guest", "compute", "--worker", "--kernels"]).arg(&self.kernels);
        if let Some(address) = self.device {
            command.args(["--device", &address.to_string()]);
        }
        if let Some(picture) = &self.picture {
            command.arg("--picture").arg(picture);
        }
        command.args(cases.iter().flat_map(|case| ["--only", case.name]));
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        compute: Compute,
    }

    fn names(words: &str) -> Result<Vec<&'static str>, String> {
        let line = Line::try_parse_from(["compute"].into_iter().chain(words.split_whitespace()));
        let cases = line.map_err(|error| error.to_string())?.compute.cases();
        Ok(cases.map_err(|error| error.to_string())?.iter().map(|case| case.name).collect())
    }

    #[test]
    fn vector_addition_is_first_and_the_compiler_runs_on_request() {
        let all = names("").unwrap();
        assert_eq!((all[0], all.len()), ("vadd", CASES.len() - 2));
        assert!(!all.contains(&"source") && names("--source").unwrap().contains(&"source"));
        assert_eq!(names("--only sgemm --only source --only vadd").unwrap(), ["vadd", "sgemm", "source"]);
        let error = names("--only nothing").unwrap_err();
        assert_eq!(error, "there is no kernel nothing: `arctic guest compute --list` lists them");
        assert!(names("--device 1:2").unwrap_err().contains("1:2 is no PCI address like 0000:00:01.0"));
    }
}
