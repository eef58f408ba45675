// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Measurements of the benches: two operations in alternation, and host instructions by callgrind.

use std::process::Command;
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

/// Number of host instructions of a run of this program with `arguments`, counted by valgrind.
///
/// # Errors
///
/// The reason why they cannot be counted: valgrind cannot be started, or it failed.
pub fn instructions(arguments: &[String]) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of this program is unknown: {error}"))?;
    let output = Command::new("valgrind")
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
