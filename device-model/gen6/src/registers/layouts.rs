// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The bit fields of registers, for display: by the name of the row.

use arctic_base::registers::{Layout, Layouts};

use super::arbiter::SWIZZLED;
use super::engine as ring;
use super::fuses::{DISPLAY_DISABLED, RP0, RP1, RPN};
use super::power as pm;

/// Registers of the card.
pub const CARD: Layouts = &[
    ("RPNSWREQ", Layout::Bits(&[("requested", pm::REQUESTED)])),
    ("RPSTAT1", Layout::Bits(&[("current", pm::CURRENT)])),
    ("RC_CONTROL", Layout::Bits(&[("hw_enable", pm::RC_HW_ENABLE), ("rc6_enable", pm::RC6_ENABLE)])),
    ("RC_STATE", Layout::Bits(&[("rc6", pm::RC_STATE_RC6)])),
    ("PCODE_MAILBOX", Layout::Bits(&[("ready", pm::PCODE_READY), ("command", pm::PCODE_COMMAND)])),
    ("RP_STATE_CAP", Layout::Bits(&[("rp0", RP0), ("rp1", RP1), ("rpn", RPN)])),
    ("TILECTL", Layout::Bits(&[("swizzled", SWIZZLED)])),
    ("FUSE_STRAP", Layout::Bits(&[("display_disabled", DISPLAY_DISABLED)])),
];

/// Registers of each engine.
pub const ENGINE: Layouts = &[
    ("RING_BUFFER_TAIL", Layout::Bits(&[("offset_qwords", ring::TAIL_OFFSET)])),
    (
        "RING_BUFFER_HEAD",
        Layout::Bits(&[("offset_dwords", ring::HEAD_OFFSET), ("waits", ring::HEAD_WAITS), ("wraps", ring::HEAD_WRAPS)]),
    ),
    (
        "RING_BUFFER_CTL",
        Layout::Bits(&[
            ("enable", ring::CTL_ENABLE),
            ("report", ring::CTL_REPORT),
            ("semaphore_wait", ring::CTL_SEMAPHORE_WAIT),
            ("wait", ring::CTL_WAIT),
            ("pages", ring::CTL_PAGES),
        ]),
    ),
    ("MI_MODE", Layout::Bits(&[("stop", ring::MODE_STOP), ("idle", ring::MODE_IDLE), ("flush", ring::MODE_FLUSH)])),
    ("INSTPM", Layout::Bits(&[("sync_flush", ring::SYNC_FLUSH)])),
    ("EIR", Layout::Bits(&[("instruction_error", ring::INSTRUCTION_ERROR)])),
    ("BB_STATE", Layout::Bits(&[("ppgtt", ring::BB_PPGTT)])),
    ("BB_ADDR", Layout::Bits(&[("valid", ring::VALID)])),
    ("UHPTR", Layout::Bits(&[("valid", ring::VALID)])),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::{ivb, snb};

    #[test]
    fn each_layout_is_that_of_a_register() {
        let files = [ivb(), snb()].map(|profile| profile.registers());
        for (layouts, of_engine) in [(CARD, false), (ENGINE, true)] {
            for (name, _) in layouts {
                let mut rows = files.iter().flat_map(|file| file.listing());
                let is = rows.any(|(_, row)| row.register.name == *name && row.engine.is_some() == of_engine);
                assert!(is, "{name}");
            }
        }
    }
}
