//! This process' terminal as the guest's.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arctic_vmm::ports::Console;
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The terminal hands over each key as it is typed, unseen, until this is dropped. Ctrl-C stays a signal.
pub struct KeyByKey(Termios);

impl KeyByKey {
    /// Changes standard input, if it is a terminal.
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

/// A terminal that is gone needs no settings.
fn apply(settings: &Termios) {
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, settings);
}

/// Types what comes on standard input into the guest's serial port, as fast as that takes it, for the process' life.
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
