// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Measurements of the benches: two operations in alternation, and host instructions by callgrind.
#![allow(clippy::cast_precision_loss, reason = "counts of a bench are small")]

use std::process;
use std::time::Instant;

/// Result of a comparison.
pub struct Comparison {
    /// Quartiles, over the rounds, of the reference's time divided by ours; the second is the median.
    pub quartiles: [f64; 3],
    /// Median speeds in GiB/s: ours and the reference's.
    pub speeds: [f64; 2],
}

impl Comparison {
    /// Prints a line with `name`: median, quartiles and speeds.
    pub fn print(&self, name: &str) {
        let ([low, median, high], [ours, reference]) = (self.quartiles, self.speeds);
        println!("{name:<48} {median:5.2}   {low:.2} to {high:.2}   ({ours:.1} GiB/s against {reference:.1} GiB/s)");
    }
}

/// Measures `rounds` alternating rounds of two operations on `bytes` bytes, which get the number of the round. The order
/// within a pair alternates too, so that noise on the host affects both equally.
pub fn compare(
    rounds: usize,
    bytes: usize,
    mut ours: impl FnMut(usize),
    mut reference: impl FnMut(usize),
) -> Comparison {
    let time = |work: &mut dyn FnMut(usize), round| {
        let start = Instant::now();
        work(round);
        start.elapsed().as_secs_f64()
    };
    let mut pair = |round| {
        if round % 2 == 0 {
            let ours = time(&mut ours, round);
            (ours, time(&mut reference, round))
        } else {
            let reference = time(&mut reference, round);
            (time(&mut ours, round), reference)
        }
    };
    let samples: Vec<(f64, f64)> = (0..rounds).map(&mut pair).collect();
    let sorted = |key: &dyn Fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(key).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let ratios = sorted(&|(ours, reference)| reference / ours);
    let speed = |seconds: Vec<f64>| bytes as f64 / seconds[rounds / 2] / f64::from(1 << 30);
    Comparison {
        quartiles: [1, 2, 3].map(|quarter| ratios[rounds * quarter / 4]),
        speeds: [speed(sorted(&|sample| sample.0)), speed(sorted(&|sample| sample.1))],
    }
}

/// A command that [`commands`] measures.
pub struct Command<'a> {
    /// What is measured, for the output.
    pub name: &'a str,
    /// The goal for the number of instructions.
    pub target: Option<u32>,
    /// Executes this number of steps of an engine, of [`commands`]' number of commands each.
    pub run: &'a dyn Fn(u32),
}

/// Measures commands in steps of `step` commands, and prints for each the number of host instructions and the rate. It is the
/// whole program of a bench: for the count it starts the program again under valgrind, with two numbers of steps, and takes
/// the difference, which eliminates the setup. Without valgrind it prints a line `skipped: REASON` and the rate.
pub fn commands(step: u32, commands: &[Command<'_>]) {
    const SHORT: u32 = 4;
    const LONG: u32 = 24;
    const TIMED: u32 = 2000;
    let args: Vec<String> = std::env::args().collect();
    let number = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1)?.parse().ok());
    if let Some(steps) = number("--steps") {
        let index = number("--command").unwrap_or_default();
        (commands[index as usize].run)(steps);
        return;
    }
    for (index, command) in commands.iter().enumerate() {
        let count =
            |steps: u32| instructions(&["--steps".into(), steps.to_string(), "--command".into(), index.to_string()]);
        let name = command.name;
        match count(LONG).and_then(|long| Ok(long - count(SHORT)?)) {
            Ok(difference) => {
                let each = difference as f64 / f64::from((LONG - SHORT) * step);
                let target = command.target.map(|target| format!(" (target: under {target})")).unwrap_or_default();
                println!("instructions for {name}: {each:.1}{target}");
            }
            Err(why) => println!("skipped: {why}"),
        }
        let started = Instant::now();
        (command.run)(TIMED);
        let rate = f64::from(TIMED * step) / started.elapsed().as_secs_f64() / 1e6;
        println!("rate of {name}: {rate:.1} million per second");
    }
}

/// Number of host instructions of a run of this program with `arguments`, counted by valgrind.
///
/// # Errors
///
/// The reason why they cannot be counted: valgrind cannot be started, or it failed.
pub fn instructions(arguments: &[String]) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of this program is unknown: {error}"))?;
    let output = process::Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("valgrind cannot be started to count instructions: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let count = text.lines().find(|line| line.contains("Collected : ")).and_then(|line| line.rsplit(' ').next());
    let count = count.filter(|_| output.status.success()).and_then(|count| count.parse().ok());
    count.ok_or_else(|| {
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
        format!("valgrind counted no instructions ({}): {last}", output.status)
    })
}
