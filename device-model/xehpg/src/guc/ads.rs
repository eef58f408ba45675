// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Additional data structure (ADS) that the driver prepares in memory for the GuC: engine map, scheduler policies and
//! capture register lists (contract B.7, K.2).

use crate::generation::{AdsFormat, Generation};
use crate::memory::{Fault, Gam, Space};
use crate::topology::{EngineClass, EngineId, EngineTable};

use super::capture::Lists;

/// Global flag: do not reset an engine if its context exceeds the preemption timeout.
const DISABLE_ENGINE_RESET: u32 = 1 << 0;

/// Maximum number of logical instances per class on this card.
pub const MAX_LOGICAL: usize = 8;

/// Physical engine of each logical instance of each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineMap([[Option<EngineId>; MAX_LOGICAL]; EngineClass::BY_GUC.len()]);

impl EngineMap {
    /// Returns the engine of a logical instance.
    #[allow(clippy::indexing_slicing, reason = "`guc` is a position in BY_GUC, and there is a row for each")]
    pub fn engine(&self, class: EngineClass, logical: usize) -> Option<EngineId> {
        self.0[usize::from(class.guc())].get(logical).copied().flatten()
    }

    /// Returns the drivers' default map: the present engines of each class in instance order.
    #[allow(clippy::indexing_slicing, reason = "`guc` is a position in BY_GUC, and there is a row for each")]
    pub fn of(engines: EngineTable, present: impl Iterator<Item = EngineId>) -> Self {
        let mut map = EngineMap::default();
        for engine in present {
            let row = &mut map.0[usize::from(engines.info(engine).class.guc())];
            if let Some(slot) = row.iter_mut().find(|slot| slot.is_none()) {
                *slot = Some(engine);
            }
        }
        map
    }

    /// Returns the class and the logical instance of an engine.
    pub fn logical(&self, engine: EngineId) -> Option<(EngineClass, usize)> {
        let rows = EngineClass::BY_GUC.into_iter().zip(&self.0);
        rows.filter_map(|(class, row)| Some((class, row.iter().position(|e| *e == Some(engine))?))).next()
    }
}

/// The ADS contents that the GuC uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ads {
    /// Logical to physical instances.
    pub map: EngineMap,
    /// Engines are not reset if their context exceeds the preemption timeout.
    pub engine_reset_disabled: bool,
    /// Registers to capture before an engine is reset.
    pub lists: Lists,
}

impl Ads {
    /// Reads the ADS at GGTT address `at`, of a card of `generation`.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "`guc` is a position in BY_GUC, and there is a row for each, with MAX_LOGICAL slots; offsets in the ADS are small"
    )]
    pub fn read(gam: &mut Gam<'_>, at: u64, generation: &Generation) -> Result<Ads, Fault> {
        let format = &generation.firmware.ads;
        let policies = u64::from(gam.read_u32(Space::Ggtt, at.wrapping_add(format.scheduler_policies))?);
        let info = u64::from(gam.read_u32(Space::Ggtt, at.wrapping_add(format.gt_system_info))?);
        let mut ads = Ads {
            engine_reset_disabled: engine_reset_disabled(gam, policies, format)?.unwrap_or(false),
            lists: Lists::read(gam, at, format)?,
            ..Ads::default()
        };
        for class in EngineClass::BY_GUC {
            let row = u64::from(class.guc());
            let enabled = gam.read_u32(Space::Ggtt, info.wrapping_add(format.enabled_masks + row * 4))?;
            let mut physical = [0; MAX_LOGICAL];
            gam.read(Space::Ggtt, info.wrapping_add(row * format.mapping_row), &mut physical)?;
            for (logical, instance) in physical.into_iter().enumerate() {
                // The value 32 marks an unused slot.
                if instance < 32 && enabled >> instance & 1 != 0 {
                    ads.map.0[usize::from(class.guc())][logical] = generation.engines.find(class, instance);
                }
            }
        }
        Ok(ads)
    }
}

/// Reads the engine reset flag of the policies at GGTT address `at`; `None` if the policies are not marked valid (xe:
/// xe_guc_fwif.h guc_policies).
pub fn engine_reset_disabled(gam: &mut Gam<'_>, at: u64, format: &AdsFormat) -> Result<Option<bool>, Fault> {
    let valid = gam.read_u32(Space::Ggtt, at.wrapping_add(format.policies_is_valid))? == 1;
    let flags = gam.read_u32(Space::Ggtt, at.wrapping_add(format.policies_global_flags))?;
    Ok(valid.then_some(flags & DISABLE_ENGINE_RESET != 0))
}
