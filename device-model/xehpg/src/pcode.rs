// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! PCODE: the power controller's mailbox.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use bitfield_struct::bitfield;

/// Mailbox: run bit, parameters and command; reads back the error code of the last command.
pub const MAILBOX: u32 = 0x13_8124;
/// First data register of the mailbox.
pub const DATA0: u32 = 0x13_8128;
/// Second data register of the mailbox.
pub const DATA1: u32 = 0x13_812c;

/// The mailbox (xe: xe_pcode_api.h).
#[bitfield(u32)]
pub(crate) struct Mailbox {
    /// Command; the error code of the last command, when it has run.
    command: u8,
    /// Parameter 1.
    subcommand: u8,
    #[bits(15)]
    parameters: u16,
    /// Runs the command; reads 1 while it runs.
    run: bool,
}

/// Error codes in the mailbox's lowest byte (xe: xe_pcode_api.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PcodeError {
    /// Unknown command.
    IllegalCommand = 1,
    /// Unknown subcommand of a known command.
    IllegalSubcommand = 4,
}

/// A mailbox command.
struct Command {
    /// Its code.
    command: u8,
    /// Parameter 1.
    subcommand: u8,
    /// Executes the command; returns the new contents of the data registers.
    run: fn(&mut Pcode) -> [u32; 2],
}

/// The commands that drivers of this card use. POWER_SETUP's I1 limit (subcommands 4 and 5) is an illegal subcommand on
/// DG2; comments in xe and i915 document this. FREQUENCY_CONFIG (0x6e) is not implemented because the media frequency
/// fuses are not public.
const COMMANDS: [Command; 2] = [
    // DGFX_PCODE_STATUS, GET_INIT_STATUS: initialisation complete, link not downgraded (xe: xe_pcode_ready).
    Command { command: 0x7e, subcommand: 0, run: |_| [1, 0] },
    // POWER_SETUP, G8_ENABLE (i915: i915_enable_g8, Wa_14022698537).
    Command {
        command: 0x7c,
        subcommand: 6,
        run: |pcode| {
            pcode.g8_enabled = true;
            [0, 0]
        },
    },
];

/// The power controller's mailbox; a command completes within the write that starts it.
#[derive(Debug, Default)]
pub struct Pcode {
    mailbox: u32,
    data: [u32; 2],
    g8_enabled: bool,
    refused: u64,
}

impl Pcode {
    /// A power controller after initialisation of the card.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the mailbox: the run bit is always clear, bits 7:0 are the error code of the last command.
    pub fn read_mailbox(&self) -> u32 {
        self.mailbox
    }

    /// Writes the mailbox; runs the command if bit 31 is set.
    pub fn write_mailbox(&mut self, value: u32) {
        self.mailbox = value;
        let mailbox = Mailbox::from(value);
        if !mailbox.run() {
            return;
        }
        let error = match self.run(mailbox.command(), mailbox.subcommand()) {
            Ok(data) => {
                self.data = data;
                0
            }
            Err(error) => {
                self.refused = self.refused.saturating_add(1);
                error as u8
            }
        };
        self.mailbox = mailbox.with_run(false).with_command(error).into();
    }

    fn run(&mut self, command: u8, subcommand: u8) -> Result<[u32; 2], PcodeError> {
        let mut known = COMMANDS.iter().filter(|entry| entry.command == command).peekable();
        known.peek().ok_or(PcodeError::IllegalCommand)?;
        let entry = known.find(|entry| entry.subcommand == subcommand).ok_or(PcodeError::IllegalSubcommand)?;
        Ok((entry.run)(self))
    }

    /// Reads data register 0 or 1; any other reads 0.
    pub fn read_data(&self, index: usize) -> u32 {
        self.data.get(index).copied().unwrap_or(0)
    }

    /// Writes data register 0 or 1.
    pub fn write_data(&mut self, index: usize, value: u32) {
        if let Some(data) = self.data.get_mut(index) {
            *data = value;
        }
    }

    /// Returns whether a driver has enabled the G8 power state.
    pub fn g8_enabled(&self) -> bool {
        self.g8_enabled
    }

    /// Number of commands refused since power-on.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mailbox runs a command.
    const RUN: u32 = 1 << 31;

    /// Equivalent of the driver's `pcode_mailbox_rw`: returns the result, or the mailbox's error code.
    fn request(pcode: &mut Pcode, command: u32) -> Result<u32, u32> {
        assert_eq!(pcode.read_mailbox() & RUN, 0, "-EAGAIN");
        pcode.write_data(0, 0);
        pcode.write_data(1, 0);
        pcode.write_mailbox(RUN | command);
        assert_eq!(pcode.read_mailbox() & RUN, 0, "-ETIMEDOUT");
        match pcode.read_mailbox() & 0xff {
            0 => Ok(pcode.read_data(0)),
            error => Err(error),
        }
    }

    /// Contract B.1 step 3: initialisation is complete at the first request.
    #[test]
    fn initialisation_status() {
        let mut pcode = Pcode::new();
        assert_eq!(request(&mut pcode, 0x7e), Ok(1));
        assert_eq!(pcode.refused(), 0);
    }

    /// Contract B.1 step 3, G.1 step 6: G8 is stored; commands that DG2 lacks are refused with the correct error, and
    /// counted.
    #[test]
    fn power_setup_and_errors() {
        let mut pcode = Pcode::new();
        assert_eq!(request(&mut pcode, 0x06_7c), Ok(0));
        assert!(pcode.g8_enabled());
        assert_eq!(request(&mut pcode, 0x04_7c), Err(4));
        assert_eq!(request(&mut pcode, 0x01_7e), Err(4));
        assert_eq!(request(&mut pcode, 0x6e), Err(1));
        assert_eq!(pcode.refused(), 3);
        assert_eq!(request(&mut pcode, 0x7e), Ok(1));
    }

    /// A write without the run bit executes no command and reads back unchanged.
    #[test]
    fn mailbox_write_without_run_bit_executes_no_command() {
        let mut pcode = Pcode::new();
        pcode.write_data(0, 0x1234);
        pcode.write_mailbox(0x06_7c);
        assert_eq!((pcode.read_mailbox(), pcode.read_data(0), pcode.g8_enabled()), (0x06_7c, 0x1234, false));
        pcode.write_data(2, 1);
        assert_eq!(pcode.read_data(2), 0);
    }
}
