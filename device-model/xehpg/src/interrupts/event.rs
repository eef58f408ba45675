// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Events of an engine, as data: the bits of its interrupt vector, which are also the byte offsets of its status in
//! memory (V13-259, V13-275, V13-276).

use bitfield_struct::bitfield;

use crate::topology::{Classes, EngineClass};

/// The interrupt vector of an engine, or of the GuC, with the events that the model raises.
#[bitfield(u16)]
pub struct Vector {
    /// MI_USER_INTERRUPT.
    user_interrupt: bool,
    #[bits(2)]
    __: u8,
    /// Command streamer error.
    cs_error: bool,
    /// Flush with notify complete: PIPE_CONTROL or MI_FLUSH_DW.
    flush_complete: bool,
    /// L3 cache parity error.
    l3_parity: bool,
    /// The watchdog's threshold was reached.
    watchdog: bool,
    /// Page fault of a context with a private address space.
    page_fault: bool,
    /// Context switch.
    context_switch: bool,
    /// The GuC: its DMA engine has completed a transfer (xe: GUC_INTR_DMA_DONE).
    dma_done: bool,
    /// The GuC: a doorbell rang for which the host requested a notification (xe: GUC_INTR_DOORBELL_RANG).
    doorbell_rang: bool,
    /// Waiting on a semaphore.
    semaphore_wait: bool,
    #[bits(3)]
    __: u8,
    /// The GuC: message to the host.
    guc2host: bool,
}

/// [`Vector`] with only the event of MI_USER_INTERRUPT.
pub const USER_INTERRUPT: u16 = Vector::new().with_user_interrupt(true).into_bits();
/// [`Vector`] with only a command streamer error.
pub const CS_ERROR: u16 = Vector::new().with_cs_error(true).into_bits();
/// [`Vector`] with only the completion of a flush.
pub const FLUSH_COMPLETE: u16 = Vector::new().with_flush_complete(true).into_bits();
/// [`Vector`] with only an L3 cache parity error.
pub const L3_PARITY: u16 = Vector::new().with_l3_parity(true).into_bits();
/// [`Vector`] with only the event of the watchdog.
pub const WATCHDOG: u16 = Vector::new().with_watchdog(true).into_bits();
/// [`Vector`] with only a page fault.
pub const PAGE_FAULT: u16 = Vector::new().with_page_fault(true).into_bits();
/// [`Vector`] with only a context switch.
pub const CONTEXT_SWITCH: u16 = Vector::new().with_context_switch(true).into_bits();
/// [`Vector`] with only the completion of a transfer by the GuC's DMA engine.
pub const DMA_DONE: u16 = Vector::new().with_dma_done(true).into_bits();
/// [`Vector`] with only a doorbell that rang.
pub const DOORBELL_RANG: u16 = Vector::new().with_doorbell_rang(true).into_bits();
/// [`Vector`] with only a wait on a semaphore.
pub const SEMAPHORE_WAIT: u16 = Vector::new().with_semaphore_wait(true).into_bits();
/// [`Vector`] with only a message of the GuC to the host.
pub const GUC2HOST: u16 = Vector::new().with_guc2host(true).into_bits();

/// Bits of the GSC's interrupt vector for HECI1 and HECI2 (contract B.10).
pub const HECI_INTERRUPTS: [u16; 2] = [1 << 15, 1 << 14];

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
