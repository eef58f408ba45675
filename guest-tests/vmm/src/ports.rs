// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The VM's I/O ports: serial port, power control, legacy configuration access.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use std::sync::PoisonError;
use vm_superio::{Serial, Trigger};
use vmm_sys_util::eventfd::EventFd;

use crate::layout;
use crate::vm::Exit;

/// Destination of the guest's serial output.
pub type Output = Box<dyn Write + Send>;

/// An interrupt line that is raised through an irqfd.
struct Line(EventFd);

impl Trigger for Line {
    type E = io::Error;

    fn trigger(&self) -> io::Result<()> {
        self.0.write(1)
    }
}

/// The serial port, shared with the thread that forwards input.
pub struct Console(Mutex<Serial<Line, vm_superio::serial::NoEvents, Output>>);

impl Console {
    /// Creates a serial port that raises its interrupt through `event`.
    pub fn new(event: EventFd, output: Output) -> Self {
        Console(Mutex::new(Serial::new(Line(event), output)))
    }

    /// Enqueues input. Returns the number of bytes that were accepted.
    pub fn enter(&self, bytes: &[u8]) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).enqueue_raw_bytes(bytes).unwrap_or(0)
    }

    fn write(&self, register: u8, value: u8) {
        // A write error (closed pipe) does not stop the guest.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write(register, value);
    }

    fn read(&self, register: u8) -> u8 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read(register)
    }
}

/// Target of a legacy configuration access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigAccess {
    /// Bus, device and function as a routing ID.
    pub routing_id: u16,
    /// Byte offset in the function's configuration space.
    pub register: u64,
}

/// All I/O ports.
pub struct Ports {
    console: Arc<Console>,
    config_address: AtomicU32,
}

/// Effect of a port write that the caller must handle.
#[derive(Debug, PartialEq)]
pub enum PortEffect {
    /// None.
    Done,
    /// The guest has ended the VM.
    Exit(Exit),
    /// A write to configuration space.
    Config(ConfigAccess),
}

impl Ports {
    /// Creates the ports with this console.
    pub fn new(console: Arc<Console>) -> Self {
        Ports { console, config_address: AtomicU32::new(0) }
    }

    /// Handles a write by the guest.
    pub fn write(&self, port: u16, data: &[u8]) -> PortEffect {
        let value = data.iter().take(4).rev().fold(0u32, |value, byte| value << 8 | u32::from(*byte));
        match port {
            layout::SERIAL_PORT..=0x3ff => {
                if let [value] = data {
                    self.console.write((port - layout::SERIAL_PORT & 0xff) as u8, *value);
                }
            }
            layout::EXIT_PORT => return PortEffect::Exit(Exit::Value(value)),
            // Keyboard controller command: pulse the reset line.
            layout::KEYBOARD_PORT if value & 0xff == 0xfe => return PortEffect::Exit(Exit::Reset),
            // SLP_EN with the sleep type of S5 in the DSDT.
            layout::SLEEP_PORT if value & 1 << 5 != 0 && value >> 2 & 7 == u32::from(crate::boot::acpi::S5) => {
                return PortEffect::Exit(Exit::PowerOff);
            }
            layout::RESET_PORT if value == u32::from(crate::boot::acpi::RESET) => return PortEffect::Exit(Exit::Reset),
            layout::CONFIG_ADDRESS_PORT if data.len() == 4 => self.config_address.store(value, Ordering::Relaxed),
            _ => {
                if let Some(access) = self.config(port) {
                    return PortEffect::Config(access);
                }
            }
        }
        PortEffect::Done
    }

    /// Handles a read by the guest. Returns a configuration access that the caller must handle.
    pub fn read(&self, port: u16, data: &mut [u8]) -> Option<ConfigAccess> {
        data.fill(0xff);
        match (port, data.len()) {
            (layout::SERIAL_PORT..=0x3ff, 1) => data[0] = self.console.read((port - layout::SERIAL_PORT & 0xff) as u8),
            (layout::CONFIG_ADDRESS_PORT, 4) => {
                data.copy_from_slice(&self.config_address.load(Ordering::Relaxed).to_le_bytes());
            }
            // No sleep state, no event.
            (layout::SLEEP_PORT | layout::RESET_PORT, _) => data.fill(0),
            _ => return self.config(port),
        }
        None
    }

    /// Returns the access that the data port `port` currently selects.
    fn config(&self, port: u16) -> Option<ConfigAccess> {
        let byte = port.checked_sub(layout::CONFIG_ADDRESS_PORT + 4).filter(|byte| *byte < 4)?;
        let address = self.config_address.load(Ordering::Relaxed);
        let enabled = address & 1 << 31 != 0;
        enabled.then(|| ConfigAccess {
            routing_id: (address >> 8 & 0xffff) as u16,
            register: u64::from(address & 0xfc) + u64::from(byte),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::Transcript;

    fn ports() -> (Ports, Transcript) {
        let transcript = Transcript::default();
        let console = Console::new(EventFd::new(libc::EFD_NONBLOCK).unwrap(), Box::new(transcript.clone()));
        (Ports::new(Arc::new(console)), transcript)
    }

    #[test]
    fn serial_port_writes_to_the_transcript() {
        let (ports, transcript) = ports();
        for byte in b"hello" {
            assert_eq!(ports.write(0x3f8, &[*byte]), PortEffect::Done);
        }
        assert_eq!(transcript.text(), "hello");
        let mut status = [0];
        assert_eq!(ports.read(0x3fd, &mut status), None);
        assert_eq!(status[0] & 0x60, 0x60, "the transmitter is empty");
    }

    #[test]
    fn machines_end_by_their_ports() {
        let (ports, _) = ports();
        assert_eq!(ports.write(0xf4, &0x1234u32.to_le_bytes()), PortEffect::Exit(Exit::Value(0x1234)));
        assert_eq!(ports.write(0x64, &[0xfe]), PortEffect::Exit(Exit::Reset));
        assert_eq!(ports.write(0x64, &[0xaa]), PortEffect::Done);
        assert_eq!(ports.write(0x600, &[1 << 5 | 5 << 2]), PortEffect::Exit(Exit::PowerOff));
        assert_eq!(ports.write(0x600, &[5 << 2]), PortEffect::Done);
        assert_eq!(ports.write(0x601, &[crate::boot::acpi::RESET]), PortEffect::Exit(Exit::Reset));
    }

    #[test]
    fn configuration_by_ports_needs_the_enable_bit() {
        let (ports, _) = ports();
        let mut data = [0; 2];
        assert_eq!(ports.read(0xcfc, &mut data), None);
        assert_eq!(data, [0xff; 2]);
        ports.write(0xcf8, &0x8001_0040u32.to_le_bytes());
        let access = ConfigAccess { routing_id: 0x100, register: 0x42 };
        assert_eq!(ports.read(0xcfe, &mut data), Some(access));
        assert_eq!(ports.write(0xcfe, &[0; 2]), PortEffect::Config(access));
        let mut address = [0; 4];
        ports.read(0xcf8, &mut address);
        assert_eq!(u32::from_le_bytes(address), 0x8001_0040);
    }
}
