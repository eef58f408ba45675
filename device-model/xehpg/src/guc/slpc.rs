// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Frequency management (SLPC) and render-C states: the shared data in memory and the registers that reflect them
//! (contract B.11, K.6).

use crate::gt::Gt;
use crate::guc::messages::hxg::{Answer, Error, Reply, global_address};
use crate::memory::{Fault, Gam, Space};
use crate::registers::power_fields::RpStateCap;

/// Shared data: global state.
const GLOBAL_STATE: u64 = 0x04;
/// Shared data: status and frequencies of the tasks.
const TASK_STATE: u64 = 0x80;
/// Shared data: bit set of the parameters that the host overrides, followed by their values.
const OVERRIDES: u64 = 0xc0;
const OVERRIDE_VALUES: u64 = OVERRIDES + 32;

const STATE_RUNNING: u32 = 3;
const STATE_SHUTTING_DOWN: u32 = 4;
const STATE_NOT_RUNNING: u32 = 0;
/// Task status: the frequency task is enabled.
const GTPERF_TASK_ENABLED: u32 = 1 << 0;

/// Number of parameters (xe: abi/guc_actions_slpc_abi.h SLPC_MAX_PARAM).
const PARAMS: usize = 32;
const PARAM_DISABLE_GTPERF: usize = 1;
const PARAM_MIN_UNSLICE: usize = 6;
const PARAM_MAX_UNSLICE: usize = 7;

/// Events of an SLPC request.
const EVENT_RESET: u32 = 0;
const EVENT_SHUTDOWN: u32 = 1;
const EVENT_QUERY_TASK_STATE: u32 = 5;
const EVENT_PARAMETER_SET: u32 = 6;
const EVENT_PARAMETER_UNSET: u32 = 7;

/// Parameters set by the host.
#[derive(Debug, Default)]
pub struct Slpc {
    shared: Option<u64>,
    params: [Option<u32>; PARAMS],
}

/// Converts MHz to units of 16.67 MHz, rounded (xe: encode_freq).
fn ratio(mhz: u32) -> u32 {
    mhz.saturating_mul(3).saturating_add(25) / 50
}

impl Slpc {
    /// Executes a request of the host: event and argument count, then the arguments.
    #[allow(clippy::arithmetic_side_effects, reason = "a GGTT address has 32 bits")]
    pub fn request(&mut self, gt: &Gt, gam: &mut Gam<'_>, data: &[u32]) -> Reply {
        let [head, args @ ..] = data else { return Err(Error::InvalidSize) };
        if (head & 0xff) as usize != args.len() {
            return Err(Error::InvalidSize);
        }
        let fault = |_: Fault| Error::InvalidGgttAddress;
        match (head >> 8 & 0xff, args) {
            (EVENT_RESET, [low, high]) => {
                let at = global_address(*low, *high)?;
                self.read_overrides(gam, at).map_err(fault)?;
                self.shared = Some(at);
                self.write_task_state(gt, gam, at).map_err(fault)?;
                gam.write_u32(Space::Ggtt, at + GLOBAL_STATE, STATE_RUNNING).map_err(fault)?;
            }
            (EVENT_SHUTDOWN, _) => {
                if let Some(at) = self.shared.take() {
                    gam.write_u32(Space::Ggtt, at + GLOBAL_STATE, STATE_SHUTTING_DOWN).map_err(fault)?;
                    gam.write_u32(Space::Ggtt, at + GLOBAL_STATE, STATE_NOT_RUNNING).map_err(fault)?;
                }
            }
            (EVENT_QUERY_TASK_STATE, [low, high]) => {
                let at = global_address(*low, *high)?;
                self.write_task_state(gt, gam, at).map_err(fault)?;
            }
            (EVENT_PARAMETER_SET, [id, value]) => self.set(*id, Some(*value))?,
            (EVENT_PARAMETER_UNSET, [id]) => self.set(*id, None)?,
            _ => return Err(Error::InvalidParams),
        }
        Ok(Answer::default())
    }

    fn set(&mut self, id: u32, value: Option<u32>) -> Result<(), Error> {
        *self.params.get_mut(id as usize).ok_or(Error::InvalidParams)? = value;
        Ok(())
    }

    #[allow(clippy::arithmetic_side_effects, reason = "a GGTT address has 32 bits, and there are 32 parameters")]
    fn read_overrides(&mut self, gam: &mut Gam<'_>, at: u64) -> Result<(), Fault> {
        let bits = gam.read_u32(Space::Ggtt, at + OVERRIDES)?;
        for (id, param) in self.params.iter_mut().enumerate() {
            *param = match bits >> id & 1 {
                0 => None,
                _ => Some(gam.read_u32(Space::Ggtt, at + OVERRIDE_VALUES + id as u64 * 4)?),
            };
        }
        Ok(())
    }

    /// Returns the minimum and maximum frequency in units of 16.67 MHz: the host's values, clamped to the range of the
    /// die. A minimum above the maximum takes precedence, which results in a fixed frequency (IGT: xe_gt_freq.c,
    /// test_freq_low_max).
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "a frequency has eight bits, and the parameters are constants below PARAMS"
    )]
    fn limits(&self, gt: &Gt) -> (u32, u32) {
        let caps: RpStateCap = gt.registers.fields();
        let (lowest, highest) = (u32::from(caps.rpn()) * 3, u32::from(caps.rp0()) * 3);
        let (lowest, highest) = (lowest.min(highest), highest);
        let requested = |id: usize| self.params[id].map(|mhz| ratio(mhz).clamp(lowest, highest));
        let min = requested(PARAM_MIN_UNSLICE).unwrap_or(lowest);
        let max = requested(PARAM_MAX_UNSLICE).unwrap_or(highest).max(min);
        (min, max)
    }

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a GGTT address has 32 bits, and the parameter is a constant below PARAMS"
    )]
    fn write_task_state(&self, gt: &Gt, gam: &mut Gam<'_>, at: u64) -> Result<(), Fault> {
        let (min, max) = self.limits(gt);
        let (min, max) = (min.min(0xff), max.min(0xff));
        let status = if self.params[PARAM_DISABLE_GTPERF] == Some(1) { 0 } else { GTPERF_TASK_ENABLED };
        gam.write_u32(Space::Ggtt, at + TASK_STATE, status)?;
        gam.write_u32(Space::Ggtt, at + TASK_STATE + 4, max | min << 8 | max << 16 | min << 24)
    }

    /// Requests a frequency: the maximum while an engine is busy, the minimum otherwise.
    pub fn show(&self, gt: &Gt, busy: bool) {
        if self.shared.is_none() {
            return;
        }
        let (min, max) = self.limits(gt);
        let ratio = if busy { max } else { min };
        gt.request_ratio(ratio);
    }
}

/// SETUP_PC_GUCRC: selects the owner of render-C states. The GuC (1) lets the GT sleep, the host (0) keeps it awake.
pub fn set_guc_rc(gt: &Gt, mode: u32) -> Reply {
    if mode > 1 {
        return Err(Error::InvalidParams);
    }
    gt.permit_rc6(mode == 1);
    Ok(Answer::default())
}
