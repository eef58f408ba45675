// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registered contexts: their registration, policies and scheduling state (contract F.1, F.2).

use crate::guc::functions::engine_map::{EngineMap, MAX_LOGICAL};
use crate::guc::functions::member::Member;
use crate::guc::functions::parallel::WorkQueue;
use crate::guc::functions::queue::PRIORITIES;
use crate::guc::messages::hxg::Error;
use crate::guc::messages::klv;
use crate::host::Function;
use crate::memory::Gam;
use crate::topology::EngineClass;
use serde::Serialize;

/// A registered context: the function that registered it, and that function's own id of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GucContextId {
    /// The function.
    pub function: Function,
    /// The function's own id of the context.
    pub local: u16,
}

/// Context ids are 0..=65534 (xe: GUC_ID_MAX).
pub const MAX_ID: u32 = 65534;
/// Scheduling policies of a context; times in nanoseconds of engine time ([`crate::gt::EngineClock`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Policies {
    /// Priority, 0 = highest; less than [`PRIORITIES`].
    pub priority: u8,
    /// Time slice; 0 = unlimited.
    #[serde(rename = "quantum_ns")]
    pub quantum: u64,
    /// Preemption timeout: maximum time to leave an engine before the engine is reset; 0 = unlimited.
    #[serde(rename = "preemption_timeout_ns")]
    pub preemption_timeout: u64,
    /// At the end of its time slice, the context is preempted even if no other context waits. It is queued again; if
    /// it exceeds its preemption timeout, it is reset.
    pub preempt_to_idle: bool,
    /// Frequency hint in MHz for SLPC; has no effect on the emulated engines.
    #[serde(rename = "frequency_mhz")]
    pub frequency: u32,
}

impl Default for Policies {
    /// Returns the drivers' default policies (contract F.2).
    fn default() -> Self {
        Policies {
            priority: 2,
            quantum: 1_000_000,
            preemption_timeout: 640_000_000,
            preempt_to_idle: false,
            frequency: 0,
        }
    }
}

impl Policies {
    /// Applies key-length-values (UPDATE_CONTEXT_POLICIES); unused keys are accepted and ignored.
    pub fn update(&mut self, list: &[u32]) -> Result<(), Error> {
        for item in klv::walk(list) {
            let (key, value) = item?;
            let microseconds = |value: &[u32]| value.first().map(|us| u64::from(*us) * 1000);
            match key {
                klv::SCHEDULING_PRIORITY => {
                    let priority = *value.first().ok_or(Error::MalformedKlv)?;
                    self.priority =
                        u8::try_from(priority).map_or(PRIORITIES - 1, |priority| priority.min(PRIORITIES - 1));
                }
                klv::EXECUTION_QUANTUM => self.quantum = microseconds(value).ok_or(Error::MalformedKlv)?,
                klv::PREEMPTION_TIMEOUT => self.preemption_timeout = microseconds(value).ok_or(Error::MalformedKlv)?,
                klv::PREEMPT_TO_IDLE => self.preempt_to_idle = *value.first().ok_or(Error::MalformedKlv)? != 0,
                klv::SLPM_GT_FREQUENCY => self.frequency = *value.first().ok_or(Error::MalformedKlv)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Scheduling state of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Home {
    /// Neither queued nor on an engine: it has no work, is not enabled, or is paused.
    Rest,
    /// In the queue of its class.
    Queued,
    /// Holds engines; the value is the logical instance of the first member.
    Placed(u8),
}

/// A registered context.
#[derive(Debug)]
pub struct Context {
    /// Number of the context on the card: the PF's ids are used unchanged, a VF's are offset by the start of its range.
    pub number: u16,
    /// Engine class.
    pub class: EngineClass,
    /// Logical instances on which the first member may run, one bit each.
    pub mask: u8,
    /// Its logical ring contexts.
    pub members: Vec<Member>,
    /// For parallel contexts: the queue that supplies the ring tails.
    pub work_queue: Option<WorkQueue>,
    /// Scheduling policies.
    pub policies: Policies,
    /// The host has enabled scheduling.
    pub enabled: bool,
    /// The host waits for the notification that scheduling is disabled.
    pub disabling: bool,
    /// The host waits for the notification that the context is deregistered.
    pub deregistering: bool,
    /// A command in a batch of user space was skipped, because the model does not execute it.
    pub skipped: bool,
    /// Scheduling state.
    pub home: Home,
}

/// Parameters of REGISTER_CONTEXT and REGISTER_CONTEXT_MULTI_LRC (contract B.6).
#[derive(Clone, Copy, Debug)]
pub struct Registration<'m> {
    /// Number of the context on the card ([`Context::number`]).
    pub number: u16,
    /// Engine class in the GuC's numbering.
    pub class: u32,
    /// Logical instances, one bit each.
    pub mask: u32,
    /// Work queue: addresses of descriptor and ring, size of the ring in bytes; zeros for a single context.
    pub work_queue: (u64, u64, u32),
    /// Descriptors: low and high dword of each.
    pub descriptors: &'m [u32],
}

impl Registration<'_> {
    /// Checks all parameters that do not depend on other contexts, and creates the context.
    #[allow(clippy::arithmetic_side_effects, reason = "base and width are at most MAX_LOGICAL")]
    pub fn check(&self, gam: &mut Gam<'_>, map: &EngineMap) -> Result<Context, Error> {
        if u32::from(self.number) > MAX_ID {
            return Err(Error::InvalidContextIndex);
        }
        let class = EngineClass::from_guc(self.class).ok_or(Error::InvalidEngineId)?;
        let members: Vec<Member> = self
            .descriptors
            .as_chunks()
            .0
            .iter()
            .map(|[low, high]| Member::new(u64::from(*low) | u64::from(*high) << 32))
            .collect();
        let width = members.len();
        if width == 0 || width > MAX_LOGICAL {
            return Err(Error::InvalidContextRegistration);
        }
        let exists = |logical| map.engine(class, logical).is_some();
        let mask = (0..MAX_LOGICAL)
            .filter(|base| self.mask >> base & 1 != 0 && (*base..base + width).all(exists))
            .fold(0, |mask, base| mask | 1 << base);
        if mask == 0 {
            return Err(Error::InvalidEngineId);
        }
        for member in &members {
            member.ring_has_work(gam).map_err(|_| Error::InvalidGgttAddress)?;
        }
        let work_queue = match width {
            1 => None,
            _ => Some(WorkQueue::check(gam, self.work_queue)?),
        };
        let context = Context {
            number: self.number,
            class,
            mask,
            members,
            work_queue,
            policies: Policies::default(),
            enabled: false,
            disabling: false,
            deregistering: false,
            skipped: false,
            home: Home::Rest,
        };
        Ok(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract K.5: policy keys, in microseconds. Unknown keys are accepted; values that are too short are rejected.
    #[test]
    fn policies() {
        let mut policies = Policies::default();
        let list = [0x2003_0001, 9, 0x2001_0001, 5000, 0x2002_0001, 1, 0x2004_0001, 1, 0x2005_0001, 300];
        assert_eq!(policies.update(&list), Ok(()));
        let expected = Policies {
            priority: 3,
            quantum: 5_000_000,
            preemption_timeout: 1000,
            preempt_to_idle: true,
            frequency: 300,
        };
        assert_eq!(policies, expected);
        assert_eq!(policies.update(&[0x2003_0000]), Err(Error::MalformedKlv));
        assert_eq!(policies.update(&[0x2003_0002, 1]), Err(Error::MalformedKlv));
    }
}
