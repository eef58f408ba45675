// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The VM's devices, shared by the vCPU threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::pci::{Bars, Host};
use crate::ports::{PortEffect, Ports};
use crate::vm::Exit;
use std::sync::PoisonError;

/// The VM without its vCPUs.
pub struct Board {
    /// I/O ports.
    pub ports: Ports,
    /// Configuration space.
    pub host: Host,
    /// BARs with an assigned address.
    pub bars: Arc<Bars>,
    /// The exit of the VM.
    pub end: End,
}

impl Board {
    /// Handles a guest read of an address outside RAM. Unassigned addresses read as all ones.
    pub fn read(&self, address: u64, data: &mut [u8]) {
        let len = data.len();
        if self.bars.find(address, len, |bar, offset| bar.read(offset, data)).is_some() {
            return;
        }
        match Host::decode(address) {
            Some((routing_id, register)) => self.host.read(routing_id, register, data),
            None => data.fill(0xff),
        }
    }

    /// Handles a guest write to an address outside RAM. Writes to unassigned addresses are dropped.
    pub fn write(&self, address: u64, data: &[u8]) {
        if self.bars.find(address, data.len(), |bar, offset| bar.write(offset, data)).is_some() {
            return;
        }
        if let Some((routing_id, register)) = Host::decode(address) {
            self.host.write(routing_id, register, data);
        }
    }

    /// Handles a guest read of an I/O port.
    pub fn port_in(&self, port: u16, data: &mut [u8]) {
        if let Some(access) = self.ports.read(port, data) {
            self.host.read(access.routing_id, access.register, data);
        }
    }

    /// Handles a guest write to an I/O port. Returns the exit if the write ends the VM.
    pub fn port_out(&self, port: u16, data: &[u8]) -> Option<Exit> {
        match self.ports.write(port, data) {
            PortEffect::Exit(exit) => return Some(exit),
            PortEffect::Config(access) => self.host.write(access.routing_id, access.register, data),
            PortEffect::Done => {}
        }
        None
    }
}

/// The exit of the VM, once it has ended. Only the first call of [`End::set`] has an effect.
#[derive(Default)]
pub struct End {
    over: AtomicBool,
    exit: Mutex<Option<Exit>>,
    ended: Condvar,
}

impl End {
    /// Returns true if the VM has ended.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends the VM. Has no effect if it has already ended.
    pub fn set(&self, exit: Exit) {
        self.lock().get_or_insert(exit);
        self.over.store(true, Ordering::Release);
        self.ended.notify_all();
    }

    /// Waits until the VM has ended. Returns `None` if `deadline` is reached before.
    pub fn wait(&self, deadline: Option<Instant>) -> Option<Exit> {
        let mut exit = self.lock();
        loop {
            if exit.is_some() {
                return exit.clone();
            }
            exit = match deadline {
                None => self.ended.wait(exit).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left == Duration::ZERO {
                        return None;
                    }
                    self.ended.wait_timeout(exit, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Exit>> {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_exit_is_kept_and_wait_has_a_deadline() {
        let end = End::default();
        assert_eq!(end.wait(Some(Instant::now() + Duration::from_millis(5))), None);
        end.set(Exit::Value(3));
        end.set(Exit::Reset);
        assert!(end.is_over());
        assert_eq!(end.wait(None), Some(Exit::Value(3)));
    }
}
