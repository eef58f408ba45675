// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Events of an engine, as data: the bits of its interrupt vector, which are also the byte offsets of its status in
//! memory (V13-259, V13-275, V13-276).

use crate::topology::{Classes, EngineClass};

/// MI_USER_INTERRUPT.
pub const USER_INTERRUPT: u16 = 1 << 0;
/// Command streamer error.
pub const CS_ERROR: u16 = 1 << 3;
/// Flush with notify complete: PIPE_CONTROL or MI_FLUSH_DW.
pub const FLUSH_COMPLETE: u16 = 1 << 4;
/// L3 cache parity error.
pub const L3_PARITY: u16 = 1 << 5;
/// The watchdog's threshold was reached.
pub const WATCHDOG: u16 = 1 << 6;
/// Page fault of a context with a private address space.
pub const PAGE_FAULT: u16 = 1 << 7;
/// Context switch.
pub const CONTEXT_SWITCH: u16 = 1 << 8;
/// The GuC: its DMA engine has completed a transfer (xe: GUC_INTR_DMA_DONE).
pub const DMA_DONE: u16 = 1 << 9;
/// The GuC: a doorbell rang for which the host requested a notification (xe: GUC_INTR_DOORBELL_RANG).
pub const DOORBELL_RANG: u16 = 1 << 10;
/// Waiting on a semaphore.
pub const SEMAPHORE_WAIT: u16 = 1 << 11;
/// The GuC: message to the host.
pub const GUC2HOST: u16 = 1 << 15;

/// One event of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Bit in the vector, and byte offset in the status.
    pub bit: u8,
    /// Display name.
    pub name: &'static str,
    /// Classes of engines that can raise the event.
    pub classes: Classes,
}

const fn event(bit: u8, name: &'static str, classes: Classes) -> Event {
    Event { bit, name, classes }
}

/// All events (V13-276, V8-086); bits 1, 2 and 10 have no meaning.
pub const EVENTS: &[Event] = &[
    event(0, "user interrupt", Classes::ALL),
    event(3, "error", Classes::ALL),
    event(4, "flush notify", Classes::ALL),
    event(5, "L3 parity", Classes::RENDER),
    event(6, "watchdog", Classes::ALL),
    event(7, "page fault of the legacy context", Classes::ALL),
    event(8, "context switch", Classes::ALL),
    event(9, "invalid tile of a tiled resource", Classes::RENDER_COMPUTE),
    event(11, "wait on semaphore", Classes::ALL),
    event(12, "EU error corrected", Classes::RENDER_COMPUTE),
    event(13, "context stall", Classes::RENDER_COMPUTE),
    event(14, "EU restart", Classes::RENDER_COMPUTE),
    event(15, "catastrophic error", Classes::ALL),
];

/// The bits that engines of `class` can raise.
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "the index is below the length of the table"
)]
pub const fn of_class(class: EngineClass) -> u16 {
    let mut bits = 0;
    let mut n = 0;
    while n < EVENTS.len() {
        if EVENTS[n].classes.has(class) {
            bits |= 1 << EVENTS[n].bit;
        }
        n += 1;
    }
    bits
}
