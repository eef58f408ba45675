// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Output of commands. A closed pipe ends a command silently; a full disk is an error. `println!` would panic in both
//! cases.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};

/// An error in writing to stdout.
#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    /// The pipe was closed by its reader (`| head`): the command ends without a message, with exit status 0 (see
    /// [`super::run`]).
    #[error("the output pipe was closed")]
    Closed,
    /// Any other error, for example a full disk.
    #[error("the output cannot be written: {0}")]
    Failed(io::Error),
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Unwritten::Closed,
            _ => Unwritten::Failed(error),
        }
    }
}

/// Prints `text` without a newline and flushes stdout.
pub fn print(text: impl Display) -> Result<(), Unwritten> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "{text}")?;
    Ok(stdout.flush()?)
}

/// Prints `text` and a newline.
pub fn line(text: impl Display) -> Result<(), Unwritten> {
    print(format_args!("{text}\n"))
}

/// Prints `text`; a closed pipe is not an error. For commands that report the result of a run by their exit status.
pub fn print_if_read(text: impl Display) -> Result<(), Unwritten> {
    match print(text) {
        Err(Unwritten::Closed) => Ok(()),
        printed => printed,
    }
}

/// Writes a line to stderr, ignoring errors: `eprintln!` would panic.
pub fn complain(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Buffered stdout; must be flushed at the end. Write errors are wrapped as [`Unwritten`] in an [`io::Error`], which
/// distinguishes them from read errors.
pub struct Stdout(BufWriter<StdoutLock<'static>>);

impl Stdout {
    /// Locks stdout.
    pub fn new() -> Self {
        Stdout(BufWriter::new(io::stdout().lock()))
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(marked)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(marked)
    }
}

fn marked(error: io::Error) -> io::Error {
    // `write_all` retries a write that fails with `Interrupted`, so this error does not reach the command.
    if error.kind() == ErrorKind::Interrupted { error } else { io::Error::new(error.kind(), Unwritten::from(error)) }
}

/// Returns the [`Unwritten`] in the chain of causes of `error`, if any.
pub fn unwritten(error: &anyhow::Error) -> Option<&Unwritten> {
    error.chain().find_map(|cause| {
        let inner = cause.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
        cause.downcast_ref().or_else(|| inner.and_then(|inner| inner.downcast_ref()))
    })
}

/// Formats an error and its causes as one line. A cause is omitted if the preceding text ends with it.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn unwritten_is_found_in_the_error_chain() {
        let error = |kind| Err::<(), _>(marked(io::Error::from(kind))).context("somewhere").unwrap_err();
        assert!(matches!(unwritten(&error(ErrorKind::BrokenPipe)), Some(Unwritten::Closed)));
        let full = error(ErrorKind::StorageFull);
        assert!(matches!(unwritten(&full), Some(Unwritten::Failed(_))));
        assert_eq!(sentence(&full), "somewhere: the output cannot be written: no storage space");
        let other = anyhow::Error::from(io::Error::from(ErrorKind::BrokenPipe));
        assert!(unwritten(&other).is_none(), "a pipe other than stdout");
        assert!(matches!(unwritten(&Unwritten::Closed.into()), Some(Unwritten::Closed)));
    }

    #[test]
    fn a_cause_is_printed_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("no room: {0}")]
        struct Twice(#[source] io::Error);
        let cause = || io::Error::from_raw_os_error(24);
        let text = sentence(&anyhow::Error::from(Twice(cause())).context("card"));
        assert_eq!(text, format!("card: no room: {}", cause()));
    }
}
