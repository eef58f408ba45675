// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Additional data structure (ADS) that the driver prepares in memory for the GuC: engine map, the engine-reset flag of the
//! scheduler policies, and capture register lists (contract B.7, K.2; xe: xe_guc_ads.c, xe_guc_fwif.h).

use bitfield_struct::bitfield;

use crate::engine::Engines;
use crate::generation::{AdsFormat, Generation};
use crate::guc::functions::engine_map::{EngineMap, MapError};
use crate::guc::load::capture::Lists;
use crate::memory::{Fault, Gam, Space};
use crate::topology::EngineClass;

/// Global flags of the scheduler policies (xe: xe_guc_fwif.h, GLOBAL_POLICY_).
#[bitfield(u32)]
struct PolicyFlags {
    /// Engines are not reset.
    disable_engine_reset: bool,
    #[bits(31)]
    __: u32,
}

/// The ADS contents that the GuC uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ads {
    /// Logical to physical instances.
    pub map: EngineMap,
    /// Engines are not reset, neither if their context exceeds the preemption timeout nor if it has halted.
    pub engine_reset_disabled: bool,
    /// Registers to capture before an engine is reset.
    pub lists: Lists,
}

/// Reason for which the GuC does not start with an ADS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdsError {
    /// The driver has not set the ADS's address, or a pointer in it.
    #[error("the ADS or its {0} has address 0")]
    NoAddress(&'static str),
    /// It cannot be read.
    #[error("the ADS cannot be read at {:#x} of the {:?}: {:?}", .0.address, .0.space, .0.reason)]
    Memory(Fault),
    /// The card does not have the engine, or it is fused off. A context on it would never run.
    #[error("the engine map names {0:?} instance {1}, which the card does not have")]
    NoEngine(EngineClass, u8),
    /// The engine cannot have this logical instance.
    #[error("the engine map names {0:?} instance {1} as logical instance {2}: {3}")]
    Map(EngineClass, u8, usize, MapError),
}

impl From<Fault> for AdsError {
    fn from(fault: Fault) -> Self {
        AdsError::Memory(fault)
    }
}

impl Ads {
    /// Reads the ADS at address `at` of the PF's GGTT. Each field is read once. The mapping table has the physical instance
    /// of each logical instance of a class; an instance that is not in the class's mask of enabled physical instances is
    /// ignored. Engine resets are enabled if the policies are not marked valid.
    pub fn read(gam: &mut Gam<'_>, at: u64, generation: &Generation, engines: &Engines) -> Result<Ads, AdsError> {
        let format = &generation.firmware.ads;
        let set = |address: u64, name| if address == 0 { Err(AdsError::NoAddress(name)) } else { Ok(address) };
        let at = set(at, "start")?;
        let policies_at = u64::from(gam.read_u32(Space::Ggtt, at.wrapping_add(format.scheduler_policies))?);
        let system_info_at = u64::from(gam.read_u32(Space::Ggtt, at.wrapping_add(format.gt_system_info))?);
        let policies_at = set(policies_at, "scheduler policies")?;
        let system_info_at = set(system_info_at, "system info")?;
        Ok(Ads {
            map: read_map(gam, system_info_at, generation, engines)?,
            engine_reset_disabled: read_policies(gam, policies_at, format)?.unwrap_or(false),
            lists: Lists::read(gam, at, format)?,
        })
    }
}

/// Reads the engine map of the system info at `at`.
#[allow(clippy::arithmetic_side_effects, reason = "offsets in the ADS are small")]
fn read_map(gam: &mut Gam<'_>, at: u64, generation: &Generation, engines: &Engines) -> Result<EngineMap, AdsError> {
    let format = &generation.firmware.ads;
    let mut map = EngineMap::default();
    for class in EngineClass::BY_GUC {
        let row = u64::from(class.guc());
        let enabled = gam.read_u32(Space::Ggtt, at.wrapping_add(format.enabled_masks + row * 4))?;
        let mut physical = [AdsFormat::UNUSED; AdsFormat::INSTANCES];
        gam.read(Space::Ggtt, at.wrapping_add(row * AdsFormat::INSTANCES as u64), &mut physical)?;
        for (logical, instance) in physical.into_iter().enumerate() {
            if instance >= AdsFormat::UNUSED || enabled >> instance & 1 == 0 {
                continue;
            }
            let engine = generation.engines.find(class, instance).filter(|engine| engines.has(*engine));
            let engine = engine.ok_or(AdsError::NoEngine(class, instance))?;
            map.insert(class, logical, engine).map_err(|error| AdsError::Map(class, instance, logical, error))?;
        }
    }
    Ok(map)
}

/// Reads the engine-reset flag of the policies at GGTT address `at`; `None` if the policies are not marked valid (xe:
/// xe_guc_fwif.h guc_policies).
pub fn read_policies(gam: &mut Gam<'_>, at: u64, format: &AdsFormat) -> Result<Option<bool>, Fault> {
    let valid = gam.read_u32(Space::Ggtt, at.wrapping_add(format.policies_is_valid))? == 1;
    let flags = gam.read_u32(Space::Ggtt, at.wrapping_add(format.policies_global_flags))?;
    Ok(valid.then_some(PolicyFlags::from(flags).disable_engine_reset()))
}
