// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic trace --walker`: saves a walker with its memory.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::commands::stdout::{Stdout, complain};
use crate::operator::{CaptureStep, WaitingCapture};

/// Interval at which it is reported that the walker is still executed.
const STILL: Duration = Duration::from_secs(10);

/// Waits for the walker with this number and writes its file. `path` is that of the card's socket.
pub(super) fn save(
    mut waiting: WaitingCapture,
    number: u64,
    file: &Path,
    path: &Path,
    stop: &AtomicBool,
) -> Result<()> {
    fs::write(file, []).with_context(|| format!("{} cannot be created", file.display()))?;
    let captured = wait(&mut waiting, number, path, stop).and_then(|bytes| {
        fs::write(file, &bytes).with_context(|| format!("{} cannot be written", file.display()))?;
        let mut stdout = Stdout::new();
        let mib = bytes.len() as f64 / f64::from(1 << 20);
        writeln!(stdout, "{}: walker {number}, {mib:.1} MiB; `eu run {0}` executes it again", file.display())?;
        Ok(stdout.flush()?)
    });
    if captured.is_err() {
        // It is empty, or not written to its end.
        let _ = fs::remove_file(file);
    }
    captured
}

/// Waits for a capture, and returns its file.
fn wait(waiting: &mut WaitingCapture, number: u64, path: &Path, stop: &AtomicBool) -> Result<Vec<u8>> {
    let mut seen = 0;
    let mut since: Option<Instant> = None;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(match since {
                Some(_) => anyhow!("walker {number} was not captured: interrupted while it was executed"),
                None => anyhow!("walker {number} was not captured: interrupted after {seen} walkers"),
            });
        }
        match waiting.next() {
            Ok(None) if since.is_some_and(|since| since.elapsed() >= STILL) => {
                since = Some(Instant::now());
                complain(format_args!("walker {number} is still executed"));
            }
            Ok(None) => {}
            Ok(Some(CaptureStep::Waiting { begun: 0, .. })) => {
                complain(format_args!("connected to {}, waiting for walker {number}", path.display()));
            }
            Ok(Some(CaptureStep::Waiting { begun, kernel })) => {
                seen = begun;
                complain(format_args!("walker {begun}: kernel at {kernel:#x}"));
            }
            Ok(Some(CaptureStep::Capturing { kernel })) => {
                since = Some(Instant::now());
                complain(format_args!("walker {number}: kernel at {kernel:#x}, captured while it is executed"));
            }
            Ok(Some(CaptureStep::Done { bytes })) => {
                let file = waiting.file(bytes);
                return file.map_err(|error| anyhow!("the connection to {} failed: {error}", path.display()));
            }
            Ok(Some(CaptureStep::Failed { reason })) => {
                return Err(anyhow!("walker {number} was not captured: {reason}"));
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(anyhow!("walker {number} was not captured: the card is no longer served"));
            }
            Err(error) => return Err(anyhow!("the connection to {} failed: {error}", path.display())),
        }
    }
}
