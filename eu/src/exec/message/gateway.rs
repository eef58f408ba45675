// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages to the gateway: barrier and end of thread (group Q of the document on the ISA).

use super::operands::{MessageFault, Sent};
use crate::exec::environment::Group;
use crate::exec::fault::FaultKind;
use crate::exec::thread::Thread;

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// The thread ends.
    End,
    /// The thread arrives at the barrier.
    Barrier,
}

/// ISA-240.
pub(super) fn decode(desc: u32) -> Result<Operation, FaultKind> {
    match desc & 15 {
        0 => Ok(Operation::End),
        4 => Ok(Operation::Barrier),
        _ => Err(FaultKind::Message),
    }
}

impl Operation {
    /// Executes the message.
    pub(super) fn execute(self, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
        match self {
            Operation::End => Ok(()),
            Operation::Barrier => signal(sent),
        }
    }
}

/// A thread arrives at the barrier. ISA-241, EU-052: the payload's byte 11 is the number of arrivals that complete it. A thread
/// can arrive again before it waits: each completion is one notification for each thread of the group.
///
/// ISA-243: a barrier other than 0, and one where some threads only arrive and others only wait, are faults.
fn signal(sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Sent { operands, thread, environment, .. } = sent;
    let dword = thread.u32((operands.src0 as usize + 8) & thread.grf_mask as usize);
    let (number, kind, producers, expected) = (dword & 0xff, dword >> 14 & 3, dword >> 16 & 0xff, dword >> 24);
    if number != 0 || kind != 0 || producers != expected {
        return Err(FaultKind::Barrier.into());
    }
    let group = &mut *environment.group;
    group.arrived = group.arrived.wrapping_add(1);
    if group.arrived >= expected.max(1) {
        group.arrived = 0;
        group.completed = group.completed.wrapping_add(1);
    }
    Ok(())
}

/// Takes a notification of a completed barrier. Returns false if there is none. ISA-242.
pub fn notified(thread: &mut Thread, group: &Group) -> bool {
    let new = thread.notifications != group.completed;
    if new {
        thread.notifications = thread.notifications.wrapping_add(1);
    }
    new
}
