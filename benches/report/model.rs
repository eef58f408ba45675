//! The device model's own benches, run as programs of their own: `blit` and `streamer`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs one of them to its end and returns what it printed; its build tells its progress on stderr.
pub fn run(bench: &str) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["bench", "--quiet", "--package", "arctic-device-model", "--bench", bench]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cargo cannot be started")?;
    ensure!(output.status.success(), "the device model's bench {bench} ended with {}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("the device model's bench {bench} printed no text"))
}

/// The first number behind `name` in `text`.
pub fn number(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    rest.trim_start_matches([':', ' ']).split_whitespace().next()?.parse().ok()
}
