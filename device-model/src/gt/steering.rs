// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Steering of accesses to replicated registers, per initiator (V13-140..164).

use super::Gt;
use crate::registers::MCR_SELECTOR;
use crate::registers::ranges::{self, Range, Replication};

/// CS_MMIO_GROUP_INSTANCE_SELECT, relative to the engine's base: the steering of a streamer's commands (V13-142).
const CS_STEERING: u32 = 0xcc;
/// CS_MMIO_GROUP_INSTANCE_SELECT: reads are steered to the group in bits 29:23 and the instance in bits 22:16 (xe:
/// xe_engine_regs.h).
const SELECTIVE_READ: u32 = 1 << 30;

/// Initiator of a register access; each has separate steering (V13-140..142).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agent {
    /// Software, by MMIO.
    Host,
    /// Commands of the streamer at this base.
    Streamer(u32),
}

impl Gt {
    /// Returns whether an access to a GT register selects an instance that is not fused off. An access to a sleeping
    /// domain is counted and still performed, because drivers may rely on the time that a real GT takes to enter sleep.
    pub(super) fn mcr_access_allowed(&self, agent: Agent, offset: u32, range: &Range, write: bool) -> bool {
        if self.asleep(range.wake)
            && ranges::second_domain(offset).is_none_or(|domain| self.asleep(domain))
            && !(write && ranges::shadowed(offset, self.generation.engines))
        {
            self.registers.note_asleep(offset, write);
        }
        let steering = match (range.replication, agent) {
            (Replication::Single | Replication::Sqidi | Replication::Gam, _) => return true,
            (_, Agent::Host) => self.registers.value(MCR_SELECTOR),
            // A streamer's steering applies only to reads; without SELECTIVE_READ, any instance may respond.
            (_, Agent::Streamer(base)) => {
                let own = self.registers.value(base + CS_STEERING);
                if write || own & SELECTIVE_READ == 0 {
                    return true;
                }
                let (group, instance) = (own >> 23 & 0x7f, own >> 16 & 0x7f);
                if group > 0xf || instance > 0x7 {
                    return false;
                }
                group << 27 | instance << 24
            }
        };
        // A multicast write is delivered to all instances; a read always accesses the selected one (V13-144..146).
        if write && steering >> 31 != 0 {
            return true;
        }
        let fuses = ranges::Fuses {
            dss: self.registers.value(0x913c) | self.registers.value(0x9144),
            meml3: self.registers.value(0x9118),
        };
        range.replication.present(steering, fuses)
    }
}
