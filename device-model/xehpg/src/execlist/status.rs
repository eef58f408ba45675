// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reports of a context switch: the status quadword and the switch reasons (V8-052..056), and EXECLIST_STATUS (V8-022).

use bitfield_struct::bitfield;

use super::descriptor::ContextId;
use crate::command::mi::{MiHeader, fields};

/// MI_SEMAPHORE_WAIT.
const SEMAPHORE_WAIT: u8 = 0x1c;
/// MI_WAIT_FOR_EVENT and MI_WAIT_FOR_EVENT_2.
const WAIT_FOR_EVENT: [u8; 2] = [0x03, 0x04];

/// Reason why a context left its engine (i915: intel_execlists_submission.c, "context switch detail").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The ring is empty.
    Complete,
    /// Waited for a flip, a vertical blank or a scan line; never reported, as the card has no display.
    Event,
    /// Stopped at an unsuccessful semaphore wait.
    Semaphore {
        /// The wait polls memory instead of waiting for a signal.
        polls: bool,
    },
    /// Preempted at another point.
    Preempted,
}

impl Detail {
    /// Reason of a context that left at the unsuccessful wait with this header.
    pub fn of_wait(header: u32) -> Self {
        match MiHeader::from(header).mi_opcode() {
            Some(SEMAPHORE_WAIT) => Detail::Semaphore { polls: fields::WAIT_MODE.is_set_in(header) },
            Some(opcode) if WAIT_FOR_EVENT.contains(&opcode) => Detail::Event,
            _ => Detail::Preempted,
        }
    }

    const fn number(self) -> u8 {
        match self {
            Detail::Complete => 0,
            Detail::Event => 1,
            Detail::Semaphore { .. } => 4,
            Detail::Preempted => 5,
        }
    }
}

/// Reasons for a switch (V8-056).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The first context of a queue starts on an idle engine.
    IdleToActive,
    /// A new queue preempted the running context, or an empty queue was loaded.
    NewQueue,
    /// Switch from one element of the queue to the next.
    ElementSwitch,
    /// The queue is complete.
    ActiveToIdle,
    /// The running context continues as an element of a new queue.
    LiteRestore,
}

/// CSB_INTERRUPT_MASK: reasons for a switch that are not reported (V8-056). No public document defines the register's
/// layout; the bits are those of the same reasons in the status dwords of older generations (i915: GEN8_CTX_STATUS_*).
#[bitfield(u32)]
pub struct CsbInterruptMask {
    idle_to_active: bool,
    new_queue: bool,
    element_switch: bool,
    active_to_idle: bool,
    #[bits(11)]
    __: u16,
    lite_restore: bool,
    __: u16,
}

impl CsbInterruptMask {
    /// Returns whether switches for `reason` are not reported.
    pub fn masks(self, reason: Reason) -> bool {
        match reason {
            Reason::IdleToActive => self.idle_to_active(),
            Reason::NewQueue => self.new_queue(),
            Reason::ElementSwitch => self.element_switch(),
            Reason::ActiveToIdle => self.active_to_idle(),
            Reason::LiteRestore => self.lite_restore(),
        }
    }
}

/// A context status quadword (V8-052) in the layout of this generation (i915: xehp_csb_parse).
#[bitfield(u64, new = false)]
#[derive(PartialEq, Eq)]
pub struct ContextStatus {
    /// Switch detail: 0 complete, 1 to 4 an unsuccessful wait, 5 preempted.
    #[bits(4)]
    pub detail: u8,
    /// Instance of the engine.
    #[bits(6)]
    instance: u8,
    #[bits(22)]
    to_bits: u32,
    /// The context left at a semaphore wait that polls memory.
    polled: bool,
    /// A new queue caused the switch.
    pub new_queue: bool,
    __: u8,
    #[bits(22)]
    away_bits: u32,
}

impl ContextStatus {
    /// The switch of engine instance `instance` from `away` to `to`.
    pub fn new(away: ContextId, to: ContextId, detail: Detail, new_queue: bool, instance: u8) -> Self {
        let status = ContextStatus::from(0).with_away_bits(away.bits()).with_to_bits(to.bits());
        let status = status.with_detail(detail.number()).with_polled(detail == (Detail::Semaphore { polls: true }));
        status.with_new_queue(new_queue).with_instance(instance & 0x3f)
    }

    /// Context that left.
    pub const fn away(self) -> ContextId {
        ContextId::new(self.away_bits())
    }

    /// Context that was started.
    pub const fn to(self) -> ContextId {
        ContextId::new(self.to_bits())
    }

    /// Reason of the switch.
    pub fn reason(self) -> Reason {
        let idle = |id| id == ContextId::IDLE;
        match (self.new_queue(), self.away(), self.to()) {
            (true, away, to) if idle(away) && !idle(to) => Reason::IdleToActive,
            (true, away, to) if away == to && !idle(to) => Reason::LiteRestore,
            (true, ..) => Reason::NewQueue,
            (false, _, to) if idle(to) => Reason::ActiveToIdle,
            (false, ..) => Reason::ElementSwitch,
        }
    }
}

/// EXECLIST_STATUS (Fuchsia: magma msd-intel-gen, registers.h, ExeclistStatusGen12, from the Tiger Lake volume 2c; xe:
/// reads bit 7).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct ExeclistStatus {
    /// The execution queue is not valid.
    pub queue_invalid: bool,
    /// More than one Load is pending.
    pub several_loads_pending: bool,
    /// The last pending Load has an empty queue.
    pub preempt_to_idle_pending: bool,
    /// The execution queue is valid.
    pub queue_valid: bool,
    /// The same as `queue_valid`.
    pub queue_valid_copy: bool,
    #[bits(2)]
    __: u8,
    /// A context is running.
    pub active: bool,
    /// Element of the running context.
    #[bits(4)]
    pub active_element: u8,
    /// Reason of the last switch, which has no public encoding.
    #[bits(15)]
    __: u16,
    /// Arbitration is enabled.
    pub arbitration: bool,
    #[bits(2)]
    __: u8,
    /// A Load is pending until the running context leaves the engine.
    pub load_pending: bool,
    __: bool,
    /// High dword of the running context's descriptor (i915 reads it).
    pub descriptor_high: u32,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use super::*;
    use arctic_fidelity::proves;

    #[test]
    fn fields_are_where_the_driver_reads_them() {
        proves!(
            [V8_052, V8_053],
            "positions of all fields as i915's parser reads them (to 31:10, detail 3:0, away 63:42, new queue bit \
            33). Idle is 0xFFFF in the whole field"
        );
        let (x, y) = (ContextId::new(0x2a_0123), ContextId::new(0x15_4567));
        let status = ContextStatus::new(x, y, Detail::Preempted, true, 3);
        let (low, high) = (u64::from(status) as u32, (u64::from(status) >> 32) as u32);
        assert_eq!((low >> 10, low >> 4 & 0x3f, low & 0xf), (0x15_4567, 3, 5));
        assert_eq!((high >> 10, high & 0x3ff), (0x2a_0123, 2));
        let idle = ContextStatus::new(ContextId::IDLE, x, Detail::Complete, true, 0);
        assert_eq!((u64::from(idle) >> 42, u64::from(idle) & 0xf), (0xffff, 0));
        let wait = ContextStatus::new(x, y, Detail::Semaphore { polls: true }, false, 0);
        assert_eq!((u64::from(wait) & 0xf, u64::from(wait) >> 32 & 0x3ff), (4, 1));
        let signal = ContextStatus::new(x, y, Detail::Semaphore { polls: false }, false, 0);
        assert_eq!((u64::from(signal) & 0xf, u64::from(signal) >> 32 & 0x3ff), (4, 0));
        assert_eq!((status.away(), status.to(), status.detail(), status.new_queue()), (x, y, 5, true));
    }

    #[test]
    fn cases_have_reasons() {
        proves!(V8_056, "the reasons for the ten cases of a switch");
        let (idle, x, y) = (ContextId::IDLE, ContextId::new(1), ContextId::new(2));
        let reason = |away, to, new| ContextStatus::new(away, to, Detail::Complete, new, 0).reason();
        assert_eq!(reason(idle, x, true), Reason::IdleToActive);
        for (away, to) in [(x, idle), (idle, idle), (x, y)] {
            assert_eq!(reason(away, to, true), Reason::NewQueue);
        }
        assert_eq!(reason(x, x, true), Reason::LiteRestore);
        assert_eq!(reason(x, y, false), Reason::ElementSwitch);
        assert_eq!(reason(x, idle, false), Reason::ActiveToIdle);
    }

    #[test]
    fn waits_have_details() {
        proves!(V8_081, "the detail of a wait follows from the command's header");
        assert_eq!(Detail::of_wait(0x0e00_8003), Detail::Semaphore { polls: true });
        assert_eq!(Detail::of_wait(0x0e00_0003), Detail::Semaphore { polls: false });
        assert_eq!((Detail::of_wait(0x0180_0000).number(), Detail::of_wait(0x0200_0000).number()), (1, 1));
    }
}
