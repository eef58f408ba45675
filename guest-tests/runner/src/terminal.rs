// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Connects the user's terminal to the guest's interactive console, and restores the terminal's mode afterwards.

use std::io::{self, IsTerminal, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::interrupt;

/// The mode of stdin, if it is a terminal; dropping it restores this mode.
pub struct Mode {
    before: Option<libc::termios>,
}

impl Mode {
    /// Reads the mode.
    pub fn save() -> Result<Self> {
        if !io::stdin().is_terminal() {
            return Ok(Self { before: None });
        }
        // SAFETY: termios is plain data, for which all zeros is a valid value.
        let mut before: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer refers to a live termios on the stack.
        if unsafe { libc::tcgetattr(libc::STDIN_FILENO, &mut before) } != 0 {
            return Err(io::Error::last_os_error()).context("the terminal's mode cannot be read");
        }
        Ok(Self { before: Some(before) })
    }

    /// Switches stdin to raw mode if it is a terminal; dropping the result restores the previous mode.
    pub fn enter_raw() -> Result<Self> {
        let mode = Self::save()?;
        let Some(mut raw) = mode.before else { return Ok(mode) };
        // SAFETY: as above, for both calls.
        let set = unsafe {
            libc::cfmakeraw(&mut raw);
            libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &raw)
        };
        if set != 0 {
            return Err(io::Error::last_os_error()).context("the terminal's mode cannot be set");
        }
        Ok(mode)
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: the pointer refers to a live termios in `self`.
            unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, before) };
        }
    }
}

/// Returns rows and columns of the user's terminal, if stdin is a terminal.
pub fn size() -> Option<(u16, u16)> {
    // SAFETY: winsize is plain data, for which all zeros is a valid value.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGWINSZ writes one winsize, and the pointer refers to a live winsize on the stack.
    let status = unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCGWINSZ, &mut size) };
    (status == 0 && size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

/// Ctrl-] ends the run, as in telnet and virsh; Ctrl-C is passed to the guest.
const ESCAPE: u8 = 0x1d;
/// Ctrl-D: end of input to a terminal's reader, and to a shell with line editing at the start of a line.
const END_OF_INPUT: u8 = 4;
/// Interval at which the end of input is repeated.
const REPEAT: Duration = Duration::from_secs(1);

/// Starts a thread that copies stdin to the guest's console until either is closed; the end of stdin is that of the console's
/// input. Ctrl-] on a terminal interrupts the run.
pub fn feed(console: &UnixStream) -> Result<()> {
    let mut console = console.try_clone()?;
    let escape = io::stdin().is_terminal().then_some(ESCAPE);
    thread::spawn(move || {
        if copy(io::stdin(), &mut console, escape, REPEAT).is_break() {
            interrupt::request();
        }
    });
    Ok(())
}

/// Copies `input` to `console` until the console is closed. Breaks at the byte `escape`, which is not copied.
///
/// The end of input is repeated: a character that arrives before the shell has changed the terminal to line editing is
/// lost, and one that arrives during a command is read by that command. A last line without its end is completed, since
/// line editing does not take Ctrl-D as the end of input within a line.
fn copy(mut input: impl Read, console: &mut impl Write, escape: Option<u8>, repeat: Duration) -> ControlFlow<()> {
    let mut buffer = [0; 4096];
    let mut last = b'\n';
    while let Ok(length @ 1..) = input.read(&mut buffer) {
        let bytes = &buffer[..length];
        if escape.is_some_and(|escape| bytes.contains(&escape)) {
            return ControlFlow::Break(());
        }
        if console.write_all(bytes).is_err() {
            return ControlFlow::Continue(());
        }
        last = bytes[length - 1];
    }
    let end: &[u8] = if matches!(last, b'\n' | b'\r') { &[] } else { b"\n" };
    let mut written = console.write_all(end);
    while written.is_ok() {
        written = console.write_all(&[END_OF_INPUT]);
        thread::sleep(repeat);
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A console that is closed after so many bytes.
    struct Console {
        bytes: Vec<u8>,
        most: usize,
    }

    impl Write for Console {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = bytes.len().min(self.most - self.bytes.len());
            self.bytes.extend_from_slice(&bytes[..room]);
            Ok(room)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn copied(input: &[u8], escape: Option<u8>, most: usize) -> (Vec<u8>, bool) {
        let mut console = Console { bytes: Vec::new(), most };
        let flow = copy(input, &mut console, escape, Duration::ZERO);
        (console.bytes, flow.is_break())
    }

    /// The guest's shell loses a Ctrl-D that arrives before it edits lines: one is not enough.
    #[test]
    fn the_end_of_stdin_is_repeated_until_the_console_is_closed() {
        assert_eq!(copied(b"", None, 3), (b"\x04\x04\x04".to_vec(), false));
        assert_eq!(copied(b"ls\n", None, 5), (b"ls\n\x04\x04".to_vec(), false));
        assert_eq!(copied(b"ls", None, 5), (b"ls\n\x04\x04".to_vec(), false));
    }

    #[test]
    fn the_escape_character_interrupts_a_terminal_only() {
        assert_eq!(copied(b"ls\x1d", Some(ESCAPE), 9), (vec![], true));
        assert_eq!(copied(b"ls\x1d", None, 4), (b"ls\x1d\n".to_vec(), false));
    }
}
