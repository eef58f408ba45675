// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Connects the user's terminal to the guest's interactive console, and restores the terminal's mode afterwards.

use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

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

/// Starts a thread that copies stdin to the guest's console until either is closed. Ctrl-] on a terminal interrupts the
/// run.
pub fn feed(console: &UnixStream) -> Result<()> {
    let mut console = console.try_clone()?;
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = io::stdin().read(&mut buffer) {
            if buffer[..length].contains(&ESCAPE) && io::stdin().is_terminal() {
                interrupt::request();
                return;
            }
            if console.write_all(&buffer[..length]).is_err() {
                return;
            }
        }
        // Sends Ctrl-D on end of input. An error is ignored: the guest has ended.
        let _ = console.write_all(&[4]);
    });
    Ok(())
}
