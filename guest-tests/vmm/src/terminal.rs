// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Connects this process's terminal to the guest's serial port.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arctic_vmm::ports::Console;
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Switches the terminal to unbuffered input without echo until dropped. Ctrl-C remains a signal.
pub struct KeyByKey(Termios);

impl KeyByKey {
    /// Changes the mode of stdin, if it is a terminal.
    pub fn set() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut now = before.clone();
        now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        now.input_modes.remove(InputModes::ICRNL);
        apply(&now);
        Some(KeyByKey(before))
    }
}

impl Drop for KeyByKey {
    fn drop(&mut self) {
        apply(&self.0);
    }
}

/// Errors are ignored: the terminal may have been closed.
fn apply(settings: &Termios) {
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, settings);
}

/// Starts a thread that forwards stdin to the guest's serial port, as fast as the port accepts it.
pub fn type_into(console: Arc<Console>) -> io::Result<()> {
    let forward = move || {
        let mut keys = [0; 64];
        while let Ok(len @ 1..) = io::stdin().read(&mut keys) {
            let mut rest = &keys[..len];
            while !rest.is_empty() {
                rest = &rest[console.enter(rest)..];
                if !rest.is_empty() {
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
    };
    thread::Builder::new().name("keyboard".into()).spawn(forward)?;
    Ok(())
}
