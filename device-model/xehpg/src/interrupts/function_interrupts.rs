// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! [`Interrupts`]: the interrupt tree of a function, shared by threads, and delivery of its MSI.

use std::sync::Arc;

use arctic_base::inspect::Inspector;
use arctic_base::interrupts::Delivery;

use super::sources::InterruptMap;
use super::tree::{SavedTree, Tree};
use crate::hardware_error::Severity;
use crate::host::{Function, InterruptSink};
use crate::registers::InterruptRegister;
use crate::state::{RestoreError, SaveError, SaveState};
use crate::topology::{EngineId, EngineTable};

/// The interrupt tree of one function, from the sources' event bits to the MSI.
pub struct Interrupts {
    map: &'static InterruptMap,
    delivery: Delivery<Tree>,
}

impl Interrupts {
    /// Creates an idle tree with the sources of `map` that sends the MSI of `function` to `sink`; every function has a
    /// separate tree (V13-262).
    pub fn new(function: Function, map: &'static InterruptMap, sink: Arc<dyn InterruptSink>) -> Self {
        Interrupts { map, delivery: Delivery::new(function, sink, Tree::new(function, map)) }
    }

    /// Sends the function's MSI without involving the tree, for events reported in memory (V13-274).
    pub fn send(&self) {
        self.delivery.send();
    }

    /// Reports that the ranges of BAR `bar` that may be mapped have changed. Must be called without locks held.
    pub fn mappings_changed(&self, bar: u8) {
        self.delivery.mappings_changed(bar);
    }

    /// Raises `bits` of an engine (constants in [`super::event`]). Events disabled in the enable register are dropped, events
    /// masked in the mask register stay pending (V13-265, V13-266).
    pub fn raise_engine(&self, engine: EngineId, bits: u16) {
        self.change(|tree| tree.raise(engine.index(), bits));
    }

    /// Like [`Interrupts::raise_engine`], for events that ignore the mask register (V8-088).
    pub fn raise_engine_past_mask(&self, engine: EngineId, bits: u16) {
        self.change(|tree| tree.raise_past_mask(engine.index(), bits));
    }

    /// Raises `bits` of the GuC (constants in [`super::event`]). Events disabled in the enable register are dropped, events
    /// masked in the mask register stay pending (V13-265, V13-266).
    pub fn raise_guc(&self, bits: u16) {
        self.change(|tree| tree.raise(self.map.guc, bits));
    }

    /// Raises `bits` of the GSC ([`HECI_INTERRUPTS`](super::event::HECI_INTERRUPTS)). Events disabled in the enable
    /// register are dropped, events masked in the mask register stay pending (V13-265, V13-266).
    pub fn raise_gsc(&self, bits: u16) {
        self.change(|tree| tree.raise(self.map.gsc, bits));
    }

    /// Raises `bits` of observation, as [`Interrupts::raise_gsc`].
    pub fn raise_observation(&self, bits: u16) {
        self.change(|tree| tree.raise(self.map.observation, bits));
    }

    /// Reports a hardware error of this severity: sets its bit in the primary register, and sends the message of a fatal
    /// error (V13-286). Only for the PF.
    pub fn raise_error(&self, severity: Severity) {
        self.change(|tree| tree.raise_error(severity));
        if severity == Severity::Fatal {
            self.delivery.fatal_error();
        }
    }

    /// Resets the tree to its power-on state: no events, all disabled. `update_copies` updates copies of the tree's
    /// registers, atomically with the tree: it runs with the tree's lock held, and must not call the tree (**deadlock**).
    ///
    /// A reset that disables the tree returns after the MSIs in flight. One that finds it disabled already does not wait
    /// for them.
    pub fn reset_with(&self, update_copies: impl FnOnce()) {
        let function = self.delivery.function();
        self.change(|tree| {
            *tree = Tree::new(function, self.map);
            update_copies();
        });
    }

    /// Reads a live register of the tree.
    pub fn read(&self, register: InterruptRegister, ordinal: u16) -> u32 {
        self.delivery.with(|tree| tree.read(register, ordinal))
    }

    /// Writes the live register of the tree at `offset`. A write that disables the tree returns after the MSIs in flight:
    /// then, the tree sends no MSI. A write that finds it disabled already, by another thread whose write has not
    /// returned, does not wait for them.
    pub fn write(&self, register: InterruptRegister, offset: u32, ordinal: u16, value: u32) {
        self.write_with(register, offset, ordinal, value, || ());
    }

    /// Like [`Interrupts::write`], with `update_copies` as for [`Interrupts::reset_with`].
    pub fn write_with(
        &self,
        register: InterruptRegister,
        offset: u32,
        ordinal: u16,
        value: u32,
        update_copies: impl FnOnce(),
    ) {
        self.change(|tree| {
            tree.write(register, offset, ordinal, value);
            update_copies();
        });
    }

    /// Value of the enable or mask register at `offset`, for tests: the card reads the copies ([`Interrupts::write_with`]).
    pub fn enable_or_mask(&self, offset: u32) -> u32 {
        self.delivery.with(|tree| tree.enable_or_mask(offset))
    }

    /// Shows the tree ([`Tree::inspect`]).
    pub fn inspect(&self, engines: EngineTable, to: &mut Inspector<'_>) {
        self.delivery.with(|tree| tree.inspect(engines, to));
    }

    /// Changes the tree and sends the MSI that results from the change ([`Delivery::change`]).
    pub(super) fn change(&self, change: impl FnOnce(&mut Tree)) {
        self.delivery.change(change);
    }
}

impl SaveState for &Interrupts {
    type Saved = SavedTree;

    fn save(&self) -> Result<SavedTree, SaveError> {
        Ok(self.delivery.with(|tree| tree.save()))
    }

    /// Replaces the state of the tree. Sends no MSI.
    fn restore(&mut self, saved: &SavedTree) -> Result<(), RestoreError> {
        let restored = Tree::restored(self.delivery.function(), self.map, saved)?;
        self.change(|tree| *tree = restored);
        Ok(())
    }
}
