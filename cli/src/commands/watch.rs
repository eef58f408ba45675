// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Asks a card again and again, until a signal ends the program or the card is no longer served.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::stdout::{self, complain};
use crate::operator::Failure;

/// Moves the cursor to the first column of the first line and clears the screen from there (ECMA-48: CUP, ED).
const REDRAW: &str = "\x1b[H\x1b[J";

/// Receives a message when a signal arrives that ends the program.
pub fn stop_signal() -> Result<Receiver<()>> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot install signal handlers")?;
    let (sender, stop) = channel();
    thread::spawn(move || {
        signals.forever().next();
        // The receiver is gone if the program ends for another reason.
        let _ = sender.send(());
    });
    Ok(stop)
}

/// Prints the text that `request` returns: once, or with `seconds` again after each such time, as [`watch`]; on a terminal in place of
/// the previous one, unless it is JSON.
///
/// # Errors
/// The card cannot be asked, or the text cannot be written.
pub fn print(
    path: &Path,
    seconds: Option<u64>,
    json: bool,
    request: impl Fn() -> Result<String, Failure>,
) -> Result<()> {
    let Some(seconds) = seconds else {
        return Ok(stdout::print(request().map_err(|failure| super::failure(path, &failure))?)?);
    };
    let redraws = !json && io::stdout().is_terminal();
    watch(path, Duration::from_secs(seconds), request, |text| {
        stdout::print(format_args!("{}{text}", if redraws { REDRAW } else { "" }))?;
        Ok(ControlFlow::Continue(()))
    })
}

/// Passes what `request` returns to `show`, now and after each interval, until `show` ends it, a signal arrives, or the card at
/// `path` is no longer served, which is reported.
///
/// # Errors
/// The card cannot be asked, or `show` fails.
pub fn watch<T>(
    path: &Path,
    interval: Duration,
    request: impl Fn() -> Result<T, Failure>,
    mut show: impl FnMut(T) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let stop = stop_signal()?;
    let failed = |failure| super::failure(path, &failure);
    let mut answer = request().map_err(failed)?;
    while show(answer)?.is_continue() && stop.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        answer = match request() {
            Ok(answer) => answer,
            Err(failure) if super::is_gone(&failure) => {
                complain("the card is no longer served");
                break;
            }
            Err(failure) => return Err(failed(failure)),
        };
    }
    Ok(())
}
