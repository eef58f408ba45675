// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Thread-safe interrupt tree: serialises changes and sends the resulting MSI.

use std::sync::Arc;

use super::sources::InterruptMap;
use super::tree::{SavedTree, Tree};
use crate::hardware_error::Severity;
use crate::host::{Function, InterruptSink};
use crate::registers::InterruptRegister;
use crate::state::{RestoreError, SaveError, SaveState};
use crate::sync::{Condvar, IgnorePoison, Mutex, MutexGuard};
use crate::topology::EngineId;

/// The interrupt tree of one function, from the sources' event bits to the MSI.
pub struct Interrupts {
    function: Function,
    map: &'static InterruptMap,
    sink: Arc<dyn InterruptSink>,
    state: Mutex<State>,
    /// Notified when the last MSI in flight has been sent.
    drained: Condvar,
}

struct State {
    tree: Tree,
    /// Number of MSIs in flight to the sink.
    sending: u32,
    /// Number of threads that wait until no MSI is in flight.
    draining: u32,
}

impl Interrupts {
    /// Creates an idle tree with the sources of `map` that sends the MSI of `function` to `sink`; every function has a
    /// separate tree (V13-262).
    pub fn new(function: Function, map: &'static InterruptMap, sink: Arc<dyn InterruptSink>) -> Self {
        let state = State { tree: Tree::new(function, map), sending: 0, draining: 0 };
        Interrupts { function, map, sink, state: Mutex::new(state), drained: Condvar::new() }
    }

    /// Sends the function's MSI without involving the tree, for events reported in memory (V13-274).
    pub fn send(&self) {
        self.sink.raise(self.function, 0);
    }

    /// Raises `bits` of an engine (USER_INTERRUPT ...). Events disabled in the enable register are dropped, events
    /// masked in the mask register stay pending (V13-265, V13-266).
    pub fn raise_engine(&self, engine: EngineId, bits: u16) {
        self.change(|tree| tree.raise(engine.index(), bits));
    }

    /// Like [`Interrupts::raise_engine`], for events that ignore the mask register (V8-088).
    pub fn raise_engine_past_mask(&self, engine: EngineId, bits: u16) {
        self.change(|tree| tree.raise_past_mask(engine.index(), bits));
    }

    /// Raises `bits` of the GuC (GUC2HOST).
    pub fn raise_guc(&self, bits: u16) {
        self.change(|tree| tree.raise(self.map.guc, bits));
    }

    /// Raises `bits` of the GSC (bit 15 HECI1, bit 14 HECI2).
    pub fn raise_gsc(&self, bits: u16) {
        self.change(|tree| tree.raise(self.map.gsc, bits));
    }

    /// Reports a hardware error of this severity: sets its bit in the primary register, and sends the message of a fatal
    /// error (V13-286). Only for the PF.
    pub fn raise_error(&self, severity: Severity) {
        self.change(|tree| tree.raise_error(severity));
        if severity == Severity::Fatal {
            self.sink.fatal_error(self.function);
        }
    }

    /// Resets the tree to its power-on state: no events, all disabled.
    pub fn reset(&self) {
        self.reset_with(|| ());
    }

    /// Like [`Interrupts::reset`]; `keep` updates copies of the tree's registers, atomically with the tree.
    pub fn reset_with(&self, keep: impl FnOnce()) {
        self.change(|tree| {
            *tree = Tree::new(self.function, self.map);
            keep();
        });
    }

    /// Reads a live register of the tree.
    pub fn read(&self, register: InterruptRegister, ordinal: u16) -> u32 {
        self.state().tree.read(register, ordinal)
    }

    /// Writes the live register of the tree at `offset`. After a write that disables the tree has returned, the tree
    /// sends no MSI.
    pub fn write(&self, register: InterruptRegister, offset: u32, ordinal: u16, value: u32) {
        self.write_with(register, offset, ordinal, value, || ());
    }

    /// Like [`Interrupts::write`], with `keep` as for [`Interrupts::reset_with`].
    pub fn write_with(&self, register: InterruptRegister, offset: u32, ordinal: u16, value: u32, keep: impl FnOnce()) {
        self.change(|tree| {
            tree.write(register, offset, ordinal, value);
            keep();
        });
    }

    /// Value of the enable or mask register at `offset`.
    pub fn held(&self, offset: u32) -> u32 {
        self.state().tree.held(offset)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().ignore_poison()
    }

    /// Changes the tree, releases its lock, and sends the MSI that results from the change. A change that disables the
    /// tree waits for MSIs in flight, as a read from a PCIe device pushes its posted MSI writes.
    pub(super) fn change(&self, change: impl FnOnce(&mut Tree)) {
        let mut state = self.state();
        let was_enabled = state.tree.enabled();
        change(&mut state.tree);
        if state.tree.settle() {
            state.sending = state.sending.saturating_add(1);
            drop(state);
            let _sending = Sending(self);
            self.send();
        } else if was_enabled && !state.tree.enabled() {
            state.draining = state.draining.saturating_add(1);
            while state.sending != 0 {
                state = self.drained.wait(state).ignore_poison();
            }
            state.draining = state.draining.saturating_sub(1);
        }
    }
}

impl SaveState for &Interrupts {
    type Saved = SavedTree;

    fn save(&self) -> Result<SavedTree, SaveError> {
        Ok(self.state().tree.save())
    }

    /// Replaces the state of the tree. Sends no MSI.
    fn restore(&mut self, saved: &SavedTree) -> Result<(), RestoreError> {
        let restored = Tree::restored(self.function, self.map, saved)?;
        self.change(|tree| *tree = restored);
        Ok(())
    }
}

/// An MSI in flight; completes on drop, also if the sink panics.
struct Sending<'a>(&'a Interrupts);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.sending = state.sending.saturating_sub(1);
        if state.sending == 0 && state.draining != 0 {
            self.0.drained.notify_all();
        }
    }
}
