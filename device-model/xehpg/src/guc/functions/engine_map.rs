// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Map of logical to physical engine instances, which the GuC's scheduler uses for all functions.
#![allow(clippy::indexing_slicing, reason = "`guc` is a position in BY_GUC, and there is a row for each")]

use crate::topology::{EngineClass, EngineId, EngineTable};

/// Maximum number of logical instances of a class. No class of the family has more engines: Xe-HPG has up to eight video
/// engines.
pub const MAX_LOGICAL: usize = 8;

type Row = [Option<EngineId>; MAX_LOGICAL];

/// Physical engine of each logical instance of each class. An engine is in it at most once: the scheduler regards logical
/// instances as independent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineMap([Row; EngineClass::BY_GUC.len()]);

/// Reason for which an engine cannot be added to a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// The logical instance is not below [`MAX_LOGICAL`].
    #[error("a class has {MAX_LOGICAL} logical instances")]
    Instance,
    /// The engine has another logical instance already.
    #[error("it has another logical instance")]
    Repeated,
}

impl EngineMap {
    fn row(&self, class: EngineClass) -> &Row {
        &self.0[usize::from(class.guc())]
    }

    fn row_mut(&mut self, class: EngineClass) -> &mut Row {
        &mut self.0[usize::from(class.guc())]
    }

    /// Returns the drivers' default map: the engines of each class in the order of `present`, at most [`MAX_LOGICAL`] of a
    /// class.
    pub fn from_present(engines: EngineTable, present: impl Iterator<Item = EngineId>) -> Self {
        let mut map = EngineMap::default();
        for engine in present {
            let free = map.row_mut(engines.info(engine).class).iter_mut().find(|slot| slot.is_none());
            debug_assert!(free.is_some(), "a class has more than {MAX_LOGICAL} engines");
            if let Some(slot) = free {
                *slot = Some(engine);
            }
        }
        map
    }

    /// Makes `engine` the logical instance `logical` of its class.
    pub fn insert(&mut self, class: EngineClass, logical: usize, engine: EngineId) -> Result<(), MapError> {
        if self.position(engine).is_some() {
            return Err(MapError::Repeated);
        }
        *self.row_mut(class).get_mut(logical).ok_or(MapError::Instance)? = Some(engine);
        Ok(())
    }

    /// Returns the engine of a logical instance.
    pub fn engine(&self, class: EngineClass, logical: usize) -> Option<EngineId> {
        self.row(class).get(logical).copied().flatten()
    }

    /// Returns the class and the logical instance of an engine.
    pub fn position(&self, engine: EngineId) -> Option<(EngineClass, usize)> {
        EngineClass::BY_GUC.into_iter().find_map(|class| {
            let logical = self.row(class).iter().position(|slot| *slot == Some(engine))?;
            Some((class, logical))
        })
    }
}
