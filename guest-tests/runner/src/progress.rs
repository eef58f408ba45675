// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Progress output: steps and percentages, always on stderr, never on stdout.

use std::io::{IsTerminal, Stderr, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Carriage return, and the escape sequence that erases the line from there.
const ERASE_LINE: &str = "\r\x1b[K";

/// Receives progress messages of a run.
pub trait Progress: Sync {
    /// Reports the start or end of a step, or a line that a guest has printed; `line` has no line break.
    fn print_line(&self, line: &str);
    /// Reports that step `what` has completed `percent` (0 to 100) of its work.
    fn percent(&self, what: &str, percent: u8);
}

/// Progress on stderr. Dropping it erases a line with a percentage, so that an error printed afterwards begins on a line
/// of its own.
pub type StderrProgress = TextProgress<Stderr>;

/// Progress as text: a percentage is a line that is updated on a terminal, and at most a line per quarter elsewhere.
pub struct TextProgress<W: Write> {
    terminal: bool,
    output: Mutex<Output<W>>,
}

struct Output<W> {
    writer: W,
    /// The step whose percentage was printed last, and the number of that part of it.
    last: Option<(String, u8)>,
    /// The cursor of the terminal is behind a percentage.
    line_is_open: bool,
}

impl Default for StderrProgress {
    fn default() -> Self {
        let stderr = std::io::stderr();
        let terminal = stderr.is_terminal();
        Self::new(stderr, terminal)
    }
}

impl<W: Write> TextProgress<W> {
    /// Progress on `writer`, which is a terminal or not.
    pub fn new(writer: W, terminal: bool) -> Self {
        let output = Output { writer, last: None, line_is_open: false };
        Self { terminal, output: Mutex::new(output) }
    }

    fn output(&self) -> MutexGuard<'_, Output<W>> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> Output<W> {
    /// Returns what erases an open line.
    fn close_line(&mut self) -> &'static str {
        if std::mem::take(&mut self.line_is_open) { ERASE_LINE } else { "" }
    }
}

// Errors in writing to stderr are ignored: they must not end the run.
impl<W: Write + Send> Progress for TextProgress<W> {
    fn print_line(&self, line: &str) {
        let mut output = self.output();
        let erase = output.close_line();
        let end = match self.terminal {
            true => {
                // The percentage was erased, so it is printed again even if it has not changed.
                output.last = None;
                // In a run with a guest's console the terminal is in raw mode, where a line feed leaves the column.
                "\r\n"
            }
            false => "\n",
        };
        let _ = write!(output.writer, "{erase}{line}{end}");
    }

    fn percent(&self, what: &str, percent: u8) {
        let mut output = self.output();
        let step = if self.terminal { 1 } else { 25 };
        let part = percent / step;
        if output.last.as_ref().is_some_and(|(name, last)| name == what && *last == part) {
            return;
        }
        output.last = Some((what.to_owned(), part));
        output.line_is_open = self.terminal;
        let _ = match self.terminal {
            true => write!(output.writer, "{ERASE_LINE}{what} {percent}%"),
            false => writeln!(output.writer, "{what} {percent}%"),
        };
    }
}

impl<W: Write> Drop for TextProgress<W> {
    fn drop(&mut self) {
        let mut output = self.output();
        let erase = output.close_line();
        let _ = output.writer.write_all(erase.as_bytes());
    }
}

/// Discards all progress messages; for tests.
pub struct NullProgress;

impl Progress for NullProgress {
    fn print_line(&self, _line: &str) {}
    fn percent(&self, _what: &str, _percent: u8) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(terminal: bool, steps: impl FnOnce(&dyn Progress)) -> String {
        let mut text = Vec::new();
        steps(&TextProgress::new(&mut text, terminal));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn percentages_elsewhere_are_printed_once_per_quarter() {
        let text = printed(false, |progress| {
            for percent in [0, 0, 3, 24, 26, 30] {
                progress.percent("unpacking", percent);
            }
            progress.print_line("another step");
            for percent in [40, 49, 50, 99, 100, 100] {
                progress.percent("unpacking", percent);
            }
            progress.percent("loading", 100);
        });
        let expected = "unpacking 0%\nunpacking 26%\nanother step\nunpacking 50%\nunpacking 99%\nunpacking 100%\n\
            loading 100%\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn percentage_on_a_terminal_replaces_the_last_one() {
        let text = printed(true, |progress| {
            progress.percent("unpacking", 40);
            progress.percent("unpacking", 40);
            progress.percent("unpacking", 41);
            progress.print_line("done");
            progress.percent("unpacking", 41);
            progress.print_line("again");
            progress.print_line("without a percentage");
        });
        let expected = "\r\x1b[Kunpacking 40%\r\x1b[Kunpacking 41%\r\x1b[Kdone\r\n\r\x1b[Kunpacking 41%\
            \r\x1b[Kagain\r\nwithout a percentage\r\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn error_after_an_open_line_begins_on_its_own_line() {
        for (terminal, expected) in
            [(true, "\r\x1b[Kunpacking 40%\r\x1b[Kerror: no space\n"), (false, "unpacking 40%\nerror: no space\n")]
        {
            let text = printed(terminal, |progress| progress.percent("unpacking", 40)) + "error: no space\n";
            assert_eq!(text, expected);
        }
    }
}
