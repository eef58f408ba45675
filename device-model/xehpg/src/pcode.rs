// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! PCODE: the power controller's mailbox, and the card's power, energy and temperature sensors.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

/// Mailbox: run bit, parameters and command; reads back the error code of the last command.
pub const MAILBOX: u32 = 0x13_8124;
/// First data register of the mailbox.
pub const DATA0: u32 = 0x13_8128;
/// Second data register of the mailbox.
pub const DATA1: u32 = 0x13_812c;

/// Mailbox: runs the command; reads 1 while it runs.
const RUN: u32 = 1 << 31;

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
    /// Bits 7:0.
    command: u8,
    /// Parameter 1, bits 15:8.
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
        if value & RUN == 0 {
            return;
        }
        let error = match self.run((value & 0xff) as u8, (value >> 8 & 0xff) as u8) {
            Ok(data) => {
                self.data = data;
                0
            }
            Err(error) => {
                self.refused = self.refused.saturating_add(1);
                error as u32
            }
        };
        self.mailbox = value & !RUN & !0xff | error;
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

/// Fractional bits of a power in PCU registers: 1/8 watt.
const POWER_SHIFT: u32 = 3;
/// Fractional bits of an energy: 1/16384 joule.
const ENERGY_SHIFT: u32 = 14;
/// Fractional bits of a time: 1/1024 second.
const TIME_SHIFT: u32 = 10;

/// Power of a card in watts, which the sensors report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Power of the board: the limit, and the power while an engine is busy.
    pub board: u16,
    /// Power of the idle card, at most `board`.
    pub idle: u16,
}

impl Power {
    /// A Flex 170. The power of the idle card is an assumption of this model: it is in no source that this project has.
    pub const FLEX_170: Power = Power { board: 150, idle: 40 };

    /// Power of the board in PCU registers.
    fn board_units(self) -> u32 {
        u32::from(self.board) << POWER_SHIFT
    }

    /// Reset value of the power limit ([`RAPL_LIMIT`]): the board's power, enabled, averaged over 28 s (1.75 * 2^14
    /// time units).
    pub fn limit(self) -> u32 {
        self.board_units() & 0x7fff | 1 << 15 | 14 << 17 | 3 << 22
    }
}

/// PCU_CR_PACKAGE_RAPL_LIMIT, a read/write register; [`RAPL_LIMIT_MASK`] are its writable bits.
pub const RAPL_LIMIT: u32 = 0x14_59a0;
/// Writable bits: limit, enable, clamp and time window.
pub const RAPL_LIMIT_MASK: u32 = 0x00ff_ffff;

/// Activity of the card, from which the sensor readings are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Power of the card.
    pub power: Power,
    /// Time since power-on in ns.
    pub now: u64,
    /// Time during which an engine was busy, in ns; clamped to `now`.
    pub busy: u64,
}

/// Energy consumed by the package, in units of 1/16384 joule: board power while busy, idle power otherwise.
#[allow(clippy::arithmetic_side_effects, reason = "times have 64 bits, watts fewer than 16")]
fn package_energy(activity: Activity) -> u32 {
    let busy = activity.busy.min(activity.now);
    let Power { board, idle } = activity.power;
    let nanojoules =
        u128::from(activity.now) * u128::from(idle) + u128::from(busy) * u128::from(board.saturating_sub(idle));
    // The counter is 32 bits and wraps (xe: xe_hwmon_energy_get).
    ((nanojoules << ENERGY_SHIFT) / 1_000_000_000 & 0xffff_ffff) as u32
}

/// A read-only sensor register.
struct Reading {
    offset: u32,
    value: fn(Activity) -> u32,
}

/// The sensor registers (xe: regs/xe_mchbar_regs.h, regs/xe_pcode_regs.h, xe_hwmon.c). Temperatures are assumptions of
/// this model: typical values of an idle card in a cooled room.
const READINGS: [Reading; 7] = [
    // PCU_CR_PACKAGE_POWER_SKU: thermal design power; no minimum.
    Reading { offset: 0x14_5930, value: |activity| activity.power.board_units() },
    // Upper half: maximum power, longest time window 2^18 time units (256 s).
    Reading { offset: 0x14_5934, value: |activity| activity.power.board_units() | 0x12 << 16 },
    // PCU_CR_PACKAGE_POWER_SKU_UNIT
    Reading { offset: 0x14_5938, value: |_| TIME_SHIFT << 16 | ENERGY_SHIFT << 8 | POWER_SHIFT },
    // PCU_CR_PACKAGE_ENERGY_STATUS
    Reading { offset: 0x14_593c, value: package_energy },
    // PCU_CR_PACKAGE_TEMPERATURE, degrees Celsius
    Reading { offset: 0x14_5978, value: |_| 45 },
    // VRAM temperature, degrees Celsius
    Reading { offset: 0x13_82c0, value: |_| 46 },
    // PCU_PWM_FAN_SPEED (i915): the card has no fan, so the pulse counter does not change.
    Reading { offset: 0x13_8140, value: |_| 0 },
];

/// The sensor value at `offset` of GTTMMADR, `None` if there is no such register.
pub fn reading(offset: u32, activity: Activity) -> Option<u32> {
    READINGS.iter().find(|reading| reading.offset == offset).map(|reading| (reading.value)(activity))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn field(value: u32, high: u32, low: u32) -> u32 {
        value >> low & ((1 << (high - low + 1)) - 1)
    }

    fn at(now: u64, busy: u64) -> Activity {
        Activity { power: Power::FLEX_170, now, busy }
    }

    /// Contract B.5b: the arithmetic of xe_hwmon.c on these registers gives plausible watts, seconds and joules.
    #[test]
    fn hwmon_reads_sane_values() {
        let second = 1_000_000_000;
        let power_on = at(0, 0);
        let limit = power_on.power.limit();
        let units = reading(0x14_5938, power_on).unwrap();
        let (power, energy, time) = (field(units, 3, 0), field(units, 12, 8), field(units, 19, 16));
        assert_eq!((u64::from(field(limit, 14, 0)) * 1_000_000) >> power, 150_000_000);
        assert_eq!(limit & 1 << 15, 1 << 15);
        let window = u64::from(4 | field(limit, 23, 22)) << field(limit, 21, 17);
        assert_eq!((window * 1000) >> (time + 2), 28_000);
        assert_eq!((u64::from(reading(0x14_5930, power_on).unwrap()) * 1_000_000) >> power, 150_000_000);

        let joules = |now, busy| u64::from(reading(0x14_593c, at(now, busy)).unwrap()) >> energy;
        assert_eq!(joules(10 * second, 0), 400);
        assert_eq!(joules(10 * second, 10 * second), 1500);
        assert_eq!(joules(10 * second, u64::MAX), 1500);
    }

    /// The counter wraps at 32 bits: differences across the wrap are correct, regardless of the card's uptime.
    #[test]
    fn energy_wraps() {
        let counter = |now| reading(0x14_593c, at(now, 0)).unwrap();
        // 2^32 / 2^14 J at 40 W: 6553.6 s.
        let wrap = 6_553_600_000_000;
        assert_eq!(counter(wrap), 0);
        assert_eq!(counter(wrap + 1_000_000_000).wrapping_sub(counter(wrap - 1_000_000_000)), 80 << ENERGY_SHIFT);
        assert!(reading(0x14_593c, at(u64::MAX, u64::MAX)).is_some());
        assert_eq!(reading(0x14_5900, at(0, 0)), None);
    }
}
