//! This process' terminal as the guest's.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arctic_vmm::ports::Console;

/// The terminal hands over each key as it is typed, unseen, until this is dropped. Ctrl-C stays a signal.
pub struct KeyByKey(libc::termios);

impl KeyByKey {
    /// Changes standard input, if it is a terminal.
    pub fn set() -> Option<Self> {
        let mut before = MaybeUninit::<libc::termios>::uninit();
        // SAFETY: the call fills all of `before` when it succeeds, which is looked at before it is used.
        let before = unsafe {
            if libc::tcgetattr(libc::STDIN_FILENO, before.as_mut_ptr()) != 0 {
                return None;
            }
            before.assume_init()
        };
        let mut now = before;
        now.c_lflag &= !(libc::ICANON | libc::ECHO);
        now.c_iflag &= !libc::ICRNL;
        apply(&now);
        Some(KeyByKey(before))
    }
}

impl Drop for KeyByKey {
    fn drop(&mut self) {
        apply(&self.0);
    }
}

fn apply(settings: &libc::termios) {
    // SAFETY: `settings` is a whole structure that outlives the call. A terminal that is gone needs no settings.
    unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, settings) };
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
