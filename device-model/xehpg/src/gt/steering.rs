// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Access to replicated registers: steering by the initiator (V13-140..164), and accesses to sleeping domains.

use super::Gt;
use crate::registers::ranges::Range;
use crate::registers::steering::{CsSteering, GUC_SELECTOR, Steering};
use crate::registers::{Decoded, Kind, Live};
use crate::topology::EngineId;

/// Initiator of a register access; each has separate steering (V13-140..142).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agent {
    /// Software, by MMIO.
    Host,
    /// Commands of the streamer of this engine.
    Streamer(EngineId),
    /// The GuC.
    Guc,
}

impl Gt {
    /// The steering register at `offset`.
    fn steering(&self, offset: u32) -> Steering {
        self.registers.value(offset).into()
    }

    /// Reads the instance of a replicated register that `agent` selects, whether it reads by multicast or unicast
    /// (V13-145, V13-146). An instance that does not exist reads 0 (V13-161).
    #[cold]
    pub(super) fn read_steered(&self, agent: Agent, offset: u32, range: &Range) -> u32 {
        let steering = match agent {
            Agent::Host => self.steering(range.selector()),
            Agent::Guc => self.steering(GUC_SELECTOR),
            Agent::Streamer(engine) => {
                let own: CsSteering = self.registers.engine(engine).fields();
                // Without SELECTIVE_READ, any instance may respond.
                if !own.selective_read() {
                    return self.registers.value(offset);
                }
                let Some(steering) = Steering::unicast(own.group(), own.instance()) else { return 0 };
                steering
            }
        };
        let selected = range.replication.selected(steering);
        selected.map_or(0, |instance| self.registers.instance_value(offset, instance))
    }

    /// Writes a replicated register: all instances by multicast, the selected one by unicast (V13-144, V13-146). A
    /// write to an instance that does not exist is dropped (V13-161). A streamer's steering applies only to reads.
    #[cold]
    pub(super) fn write_steered(
        &self,
        agent: Agent,
        offset: u32,
        decoded: &Decoded,
        range: &Range,
        written: (Kind<Live>, u32),
    ) {
        let (kind, value) = written;
        let steering = match agent {
            Agent::Host => self.steering(range.selector()),
            Agent::Guc => self.steering(GUC_SELECTOR),
            Agent::Streamer(_) => Steering::MULTICAST,
        };
        let multicast = steering.multicast();
        if multicast {
            self.registers.write_all(offset, decoded, kind, value);
        } else if let Some(instance) = range.replication.selected(steering) {
            self.registers.write_instance(offset, instance, kind, value);
        }
    }

    /// Reads the stored value of a register for the GuC, steered by GUC_MCR_SELECTOR alone (V13-141). With `instance`, the
    /// GuC selects this slice and subslice id for the read, and restores its steering.
    pub fn read_for_guc(&self, offset: u32, instance: Option<(u8, u8)>) -> u32 {
        let replicated = self.registers.decode(offset).filter(|decoded| decoded.replicated());
        let Some(range) = replicated.and_then(|decoded| decoded.range) else { return self.registers.value(offset) };
        let before = self.registers.value(GUC_SELECTOR);
        if let Some((slice, subslice)) = instance {
            self.registers.set(GUC_SELECTOR, Steering::unicast_truncated(slice, subslice).into());
        }
        let value = self.read_steered(Agent::Guc, offset, range);
        self.registers.set(GUC_SELECTOR, before);
        value
    }

    /// Counts an access to a sleeping domain. It is still performed, because drivers may rely on the time that a real
    /// GT takes to enter sleep.
    #[inline]
    pub(super) fn note_asleep(&self, offset: u32, range: &Range, write: bool) {
        let ranges = self.generation.registers.ranges;
        if self.asleep(range.wake)
            && ranges.second_domain(offset).is_none_or(|domain| self.asleep(domain))
            && !(write && ranges.shadowed(offset, self.generation.engines))
        {
            self.registers.note_asleep(offset, write);
        }
    }
}
