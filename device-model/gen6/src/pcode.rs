// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The power controller's mailbox: its commands as rows (G67-037).
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

/// Status of an executed command (i915: intel_pcode.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PcodeStatus {
    /// Executed.
    Success = 0,
    /// The controller has no such command.
    IllegalCommand = 1,
}

/// A command of the power controller.
struct Command {
    code: u8,
    /// Executes the command with the value of the data register; returns the register's new value.
    run: fn(&mut Pcode, u32) -> u32,
}

/// Voltage in RC6 of 450 mV, in units of 5 mV above 245 mV (i915: gt/intel_rc6.c), for each of the three levels.
const RC6_VOLTAGES: u32 = 0x0029_2929;

/// The commands (i915: include/drm/intel/intel_pcode_regs.h).
const COMMANDS: &[Command] = &[
    // WRITE_RC6VIDS: the voltages are fixed.
    Command { code: 0x04, run: |_, data| data },
    // READ_RC6VIDS.
    Command { code: 0x05, run: |_, _| RC6_VOLTAGES },
    // WRITE_MIN_FREQ_TABLE: frequencies of CPU and ring for a frequency of the GT, bits 7:0.
    Command {
        code: 0x08,
        run: |pcode, data| {
            if let Some(entry) = pcode.frequencies.get_mut((data & 0xff) as usize) {
                *entry = data;
            }
            data
        },
    },
    // READ_MIN_FREQ_TABLE.
    Command {
        code: 0x09,
        run: |pcode, data| pcode.frequencies.get((data & 0xff) as usize).copied().unwrap_or_default(),
    },
    // READ_OC_PARAMS: overclocking is not supported, bit 31.
    Command { code: 0x0c, run: |_, _| 0 },
];

/// State of the power controller.
pub struct Pcode {
    /// Minimum frequencies of CPU and ring by frequency of the GT.
    frequencies: [u32; 256],
}

impl Default for Pcode {
    fn default() -> Self {
        Pcode { frequencies: [0; 256] }
    }
}

impl Pcode {
    /// The entries of the frequency table that are not 0. The lowest byte of an entry is its index.
    pub fn save(&self) -> Vec<u32> {
        let Pcode { frequencies } = self;
        frequencies.iter().copied().filter(|entry| *entry != 0).collect()
    }

    /// The controller with saved entries; `None` if one is 0, or if two have the same index or are not in order.
    pub fn restored(saved: &[u32]) -> Option<Pcode> {
        let mut pcode = Pcode::default();
        for entry in saved {
            *pcode.frequencies.get_mut((entry & 0xff) as usize)? = *entry;
        }
        (pcode.save() == saved).then_some(pcode)
    }

    /// Executes `command` with the value of the data register; returns the register's new value.
    pub fn run(&mut self, command: u8, data: u32) -> (PcodeStatus, u32) {
        match COMMANDS.iter().find(|row| row.code == command) {
            Some(row) => (PcodeStatus::Success, (row.run)(self, data)),
            None => (PcodeStatus::IllegalCommand, data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G67-037: the commands of a probe succeed, and the frequency table keeps its entries.
    #[test]
    fn commands_of_a_probe() {
        let mut pcode = Pcode::default();
        assert_eq!(pcode.run(0x0c, 0), (PcodeStatus::Success, 0));
        assert_eq!(pcode.run(0x08, 0x0012_0817), (PcodeStatus::Success, 0x0012_0817));
        assert_eq!(pcode.run(0x09, 0x17), (PcodeStatus::Success, 0x0012_0817));
        assert_eq!(pcode.run(0x09, 0x18), (PcodeStatus::Success, 0));
        assert_eq!(pcode.run(0x05, 0).1, 0x0029_2929);
        assert_eq!(pcode.run(0x7f, 5), (PcodeStatus::IllegalCommand, 5));
    }
}
