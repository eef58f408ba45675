// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Configuration that the PF assigns to each function, as key-length-values (contract D.4, D.6, K.5; xe:
//! abi/guc_klvs_abi.h).

pub mod threshold_event;

use std::ops::Range;

use arctic_sriov::number::{self, high, low};
use serde::{Deserialize, Serialize};

use crate::generation::SriovLimits;
use crate::guc::messages::hxg::Error;
use crate::guc::messages::klv;
use crate::guc::provisioning::threshold_event::{KINDS, Kind};

/// A contiguous range of ids assigned to a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// First id.
    pub begin: u32,
    /// Number of ids.
    pub count: u32,
}

impl Quota {
    /// Returns the global id for the function's own id `local`; `None` if `local` is out of range.
    pub fn global(self, local: u32) -> Option<u32> {
        self.begin.checked_add(local).filter(|_| local < self.count)
    }

    #[allow(clippy::arithmetic_side_effects, reason = "the sum of two 32-bit values in 64 bits")]
    fn range(self) -> Range<u64> {
        u64::from(self.begin)..u64::from(self.begin) + u64::from(self.count)
    }

    fn overlaps(self, other: Quota) -> bool {
        let (a, b) = (self.range(), other.range());
        !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end
    }
}

/// A function's share of the engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    /// Execution quantum in milliseconds; 0 = unlimited.
    pub exec_quantum_ms: u32,
    /// Preemption timeout in microseconds; 0 = none.
    pub preempt_timeout_us: u32,
    /// 0 low, 1 normal, 2 high.
    pub priority: u32,
}

/// Configuration of a function. For the PF, zero means "no limit" (contract D.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfConfig {
    /// First GGTT address.
    pub ggtt_start: u64,
    /// Size of the GGTT range in bytes.
    pub ggtt_size: u64,
    /// Local memory in bytes.
    pub local_memory: u64,
    /// Context ids.
    pub contexts: Quota,
    /// Doorbells.
    pub doorbells: Quota,
    /// Share of the engines.
    pub scheduling: Scheduling,
    /// Thresholds of adverse events, by [`Kind`].
    pub thresholds: [u32; KINDS],
}

impl VfConfig {
    /// Returns the GGTT range of the function.
    pub fn ggtt(&self) -> Range<u64> {
        self.ggtt_start..self.ggtt_start.saturating_add(self.ggtt_size)
    }

    /// Returns whether the function has the minimum resources that its driver needs.
    pub fn provisioned(&self) -> bool {
        self.ggtt_size != 0 && self.contexts.count != 0
    }

    /// Applies a list and returns the number of values in it. Changes nothing on error.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a list has fewer keys than dwords, of which there are at most 512"
    )]
    pub fn update(&mut self, limits: &SriovLimits, list: &[u32]) -> Result<u32, Error> {
        let mut config = *self;
        let mut applied = 0;
        for item in klv::walk(list) {
            let (key, value) = item?;
            config.set(limits, key, value)?;
            applied += 1;
        }
        *self = config;
        Ok(applied)
    }

    #[allow(clippy::indexing_slicing, reason = "there is a threshold for each kind")]
    fn set(&mut self, limits: &SriovLimits, key: u16, value: &[u32]) -> Result<(), Error> {
        let qword = || match value {
            [low, high] => Ok(number::qword(*low, *high)),
            _ => Err(Error::MalformedKlv),
        };
        let dword = || match value {
            [value] => Ok(*value),
            _ => Err(Error::MalformedKlv),
        };
        let first_of_groups = || match value {
            [first, ..] if value.len() <= limits.max_sched_groups => Ok(*first),
            _ => Err(Error::MalformedKlv),
        };
        let Scheduling { exec_quantum_ms, preempt_timeout_us, priority } = &mut self.scheduling;
        match key {
            0x0001 => self.ggtt_start = qword()?,
            0x0002 => self.ggtt_size = qword()?,
            0x0003 => self.local_memory = qword()?,
            0x0004 => self.contexts.count = dword()?,
            // TILE_MASK: ignored, because the card has only one tile.
            0x0005 => drop(dword()?),
            0x0006 => self.doorbells.count = dword()?,
            0x8a01 => *exec_quantum_ms = dword()?.min(limits.max_exec_quantum_ms),
            0x8a02 => *preempt_timeout_us = dword()?.min(limits.max_preempt_timeout_us),
            0x8a0a => self.doorbells.begin = dword()?,
            0x8a0b => self.contexts.begin = dword()?,
            0x8a0c => {
                *priority = dword().and_then(|value| if value <= 2 { Ok(value) } else { Err(Error::InvalidKlvData) })?
            }
            0x8a0e => *exec_quantum_ms = first_of_groups()?.min(limits.max_exec_quantum_ms),
            0x8a0f => *preempt_timeout_us = first_of_groups()?.min(limits.max_preempt_timeout_us),
            _ => {
                let kind = Kind::of_key(key).ok_or(Error::InvalidKlvKey)?;
                self.thresholds[kind as usize] = dword()?;
            }
        }
        Ok(())
    }

    /// Returns the thresholds of adverse events; 0 = never reported (contract D.10).
    pub fn thresholds(&self) -> impl Iterator<Item = (Kind, u32)> {
        Kind::ALL.into_iter().zip(self.thresholds)
    }

    /// Checks whether the configuration can be assigned to a VF: GGTT addresses must be within `ggtt`, and local memory
    /// must not exceed `local` bytes.
    pub fn check(&self, limits: &SriovLimits, ggtt: Range<u64>, local: u64) -> Result<(), Error> {
        let end = self.ggtt_start.checked_add(self.ggtt_size).ok_or(Error::InvalidKlvData)?;
        let aligned = (self.ggtt_start | self.ggtt_size).is_multiple_of(limits.ggtt_page)
            && self.local_memory.is_multiple_of(limits.local_page);
        let inside = self.ggtt_size == 0 || ggtt.start <= self.ggtt_start && end <= ggtt.end;
        let few = self.contexts.range().end <= u64::from(limits.contexts)
            && self.doorbells.range().end <= u64::from(limits.doorbells);
        if aligned && inside && few && self.local_memory <= local { Ok(()) } else { Err(Error::InvalidKlvData) }
    }

    /// Returns whether two VFs would share a context id or doorbell.
    pub fn collides(&self, other: &VfConfig) -> bool {
        self.contexts.overlaps(other.contexts) || self.doorbells.overlaps(other.doorbells)
    }

    /// Returns the value of a key that a VF may query (VF2GUC_QUERY_SINGLE_KLV), as the number of dwords and the
    /// dwords.
    pub fn query(&self, key: u32) -> Result<(u32, [u32; 2]), Error> {
        let qword = |value: u64| Ok((2, [low(value), high(value)]));
        let dword = |value: u32| Ok((1, [value, 0]));
        match key {
            0x0001 => qword(self.ggtt_start),
            0x0002 => qword(self.ggtt_size),
            0x0003 => qword(self.local_memory),
            0x0004 => dword(self.contexts.count),
            0x0005 => dword(1),
            0x0006 => dword(self.doorbells.count),
            // GROUP_SCHEDULING_AVAILABLE: engine groups are not supported.
            0x3001 => dword(0),
            _ => Err(Error::InvalidKlvKey),
        }
    }
}

/// Policies that apply to all functions (PF2GUC_UPDATE_VGT_POLICY, contract D.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VgtPolicy {
    /// Functions keep their turn even without work.
    pub sched_if_idle: bool,
    /// Sample period of adverse events in milliseconds; 0 disables counting.
    pub adverse_sample_period_ms: u32,
    /// Reset an engine when it switches between functions. Stored without effect: the model does not reset engines
    /// then.
    pub reset_after_switch: bool,
}

impl VgtPolicy {
    /// Applies a list and returns the number of values in it. Changes nothing on error.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a list has fewer keys than dwords, of which there are at most 512"
    )]
    pub fn update(&mut self, list: &[u32]) -> Result<u32, Error> {
        let mut policy = *self;
        let mut applied = 0;
        for item in klv::walk(list) {
            match item? {
                (0x8001, [value @ (0 | 1)]) => policy.sched_if_idle = *value == 1,
                (0x8002, [value]) => policy.adverse_sample_period_ms = *value,
                (0x8d00, [value @ (0 | 1)]) => policy.reset_after_switch = *value == 1,
                (0x8001 | 0x8d00, [_]) => return Err(Error::InvalidKlvData),
                (0x8001 | 0x8002 | 0x8d00, _) => return Err(Error::MalformedKlv),
                // ENGINE_GROUP_CONFIG without groups is the only supported configuration.
                (0x8004, []) => {}
                (0x8004, _) => return Err(Error::NotSupported),
                _ => return Err(Error::InvalidKlvKey),
            }
            applied += 1;
        }
        *self = policy;
        Ok(applied)
    }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;
    use crate::generation::XE_HPG_SRIOV;

    const GGTT: Range<u64> = 0x40_0000..0xfee0_0000;

    /// Contract D.2, K.5: the thirteen values of the PF's own configuration, as xe sends them.
    #[test]
    fn the_pf_pushes_its_own_configuration() {
        proves!(GUC_020, "the number of values is the answer");
        let mut list = vec![0x0004_0001, 0, 0x0006_0001, 0, 0x8a01_0001, 0, 0x8a02_0001, 0];
        for key in [0x8a03, 0x8a04, 0x8a05, 0x8a06, 0x8a07, 0x8a08, 0x8a0d] {
            list.extend([key << 16 | 1, 0]);
        }
        list.extend([0x0001_0002, 0x40_0000, 0, 0x0002_0002, 0xfea0_0000, 0]);
        let mut config = VfConfig::default();
        assert_eq!(config.update(&XE_HPG_SRIOV, &list), Ok(13));
        assert_eq!(config.ggtt(), GGTT);
    }

    /// Contract K.5: lengths are checked, unknown keys are rejected, and an invalid list changes nothing.
    #[test]
    fn list_with_an_error_changes_nothing() {
        proves!([GUC_020, GUC_021, GUC_026], "a list with an error changes nothing");
        let mut config = VfConfig::default();
        assert_eq!(config.update(&XE_HPG_SRIOV, &[0x0004_0001, 7, 0x0001_0001, 0]), Err(Error::MalformedKlv));
        assert_eq!(config.update(&XE_HPG_SRIOV, &[0x0004_0001, 7, 0x0002_0002, 0]), Err(Error::MalformedKlv));
        // The values are there, but of another length than the key's.
        assert_eq!(config.update(&XE_HPG_SRIOV, &[0x0004_0002, 7, 0]), Err(Error::MalformedKlv));
        assert_eq!(config.update(&XE_HPG_SRIOV, &[0x0003_0001, 7]), Err(Error::MalformedKlv));
        assert_eq!(config.update(&XE_HPG_SRIOV, &[0x0004_0001, 7, 0x7777_0001, 0]), Err(Error::InvalidKlvKey));
        assert_eq!(config.update(&XE_HPG_SRIOV, &[0x8a0c_0001, 3]), Err(Error::InvalidKlvData));
        assert_eq!(config, VfConfig::default());
        assert_eq!(config.update(&XE_HPG_SRIOV, &[0x8a01_0001, 1 << 31, 0x8a0f_0008, 5, 0, 0, 0, 0, 0, 0, 0]), Ok(2));
        assert_eq!(config.scheduling, Scheduling { exec_quantum_ms: 100_000, preempt_timeout_us: 5, priority: 0 });
    }

    #[test]
    fn quotas_are_checked() {
        proves!([GUC_022, GUC_023, GUC_025], "limits of each resource, and adjacent ranges");
        proves!(
            V13_035,
            "a VF cannot be assigned resources that do not exist, and VFs share no resources (contract F.1)"
        );
        let give = |ggtt: (u64, u64), local_memory, contexts: (u32, u32), doorbells: (u32, u32)| VfConfig {
            ggtt_start: ggtt.0,
            ggtt_size: ggtt.1,
            local_memory,
            contexts: Quota { begin: contexts.0, count: contexts.1 },
            doorbells: Quota { begin: doorbells.0, count: doorbells.1 },
            ..VfConfig::default()
        };
        let good = give((0x40_0000, 0x10_0000), 4 << 20, (64511, 1024), (252, 4));
        assert_eq!(good.check(&XE_HPG_SRIOV, GGTT, 1 << 30), Ok(()));
        let bad = [
            give((0x40_0100, 0x10_0000), 0, (0, 0), (0, 0)),
            give((0x3f_f000, 0x10_0000), 0, (0, 0), (0, 0)),
            give((0xfed0_0000, 0x20_0000), 0, (0, 0), (0, 0)),
            give((0x40_0000, !0xfff), 0, (0, 0), (0, 0)),
            give((0, 0), 1 << 20, (0, 0), (0, 0)),
            give((0, 0), 2 << 30, (0, 0), (0, 0)),
            give((0, 0), 0, (64512, 1024), (0, 0)),
            give((0, 0), 0, (u32::MAX, u32::MAX), (0, 0)),
            give((0, 0), 0, (0, 0), (253, 4)),
        ];
        for config in bad {
            assert_eq!(config.check(&XE_HPG_SRIOV, GGTT, 1 << 30), Err(Error::InvalidKlvData), "{config:?}");
        }
        assert!(good.collides(&give((0, 0), 0, (65000, 1), (0, 0))));
        assert!(good.collides(&give((0, 0), 0, (0, 0), (255, 1))));
        assert!(!good.collides(&give((0, 0), 0, (0, 64511), (0, 252))));
        assert_eq!((good.contexts.global(1023), good.contexts.global(1024)), (Some(65534), None));
    }

    /// Contract C.1 step 2: lengths and values of the keys that a VF may query.
    #[test]
    fn vf_query_returns_its_configuration() {
        proves!(GUC_024, "values and their lengths");
        let config = VfConfig { ggtt_start: 0x1_8000_0000, local_memory: 1 << 32, ..VfConfig::default() };
        assert_eq!(config.query(1), Ok((2, [0x8000_0000, 1])));
        assert_eq!(config.query(3), Ok((2, [0, 1])));
        assert_eq!(config.query(6), Ok((1, [0, 0])));
        assert_eq!(config.query(0x3001), Ok((1, [0, 0])));
        assert_eq!(config.query(0x3000), Err(Error::InvalidKlvKey));
    }

    /// Contract D.6: the three policies; engine groups are not supported.
    #[test]
    fn policies() {
        proves!([GUC_020, GUC_027], "values that are no switch, and their number");
        let mut policy = VgtPolicy::default();
        assert_eq!(policy.update(&[0x8001_0001, 1, 0x8002_0001, 100, 0x8d00_0001, 1]), Ok(3));
        assert_eq!(policy, VgtPolicy { sched_if_idle: true, adverse_sample_period_ms: 100, reset_after_switch: true });
        assert_eq!(policy.update(&[0x8001_0001, 2]), Err(Error::InvalidKlvData));
        assert_eq!(policy.update(&[0x8004_0000]), Ok(1));
        assert_eq!(policy.update(&[0x8004_0001, 1]), Err(Error::NotSupported));
    }
}
