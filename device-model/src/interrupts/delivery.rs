//! The tree as threads share it: changes one at a time, and the MSI that follows from one.

use std::sync::Arc;

use super::sources::{GSC, GUC};
use super::tree::Tree;
use crate::engine::id::EngineId;
use crate::registers::Live;
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use crate::world::{Function, InterruptSink};

/// The tree, from the sources' bits to the MSI.
pub struct Interrupts {
    function: Function,
    sink: Arc<dyn InterruptSink>,
    state: Mutex<State>,
    /// The last MSI that was on its way has been sent.
    drained: Condvar,
}

struct State {
    tree: Tree,
    /// MSIs that follow from the tree and are on their way to the sink.
    sending: u32,
    /// Who waits until there are none.
    draining: u32,
}

impl Interrupts {
    /// A quiet tree that sends the MSI of `function` to `sink`; every function has a tree of its own (V13-262).
    pub fn new(function: Function, sink: Arc<dyn InterruptSink>) -> Self {
        let state = State { tree: Tree::new(function), sending: 0, draining: 0 };
        Interrupts { function, sink, state: Mutex::new(state), drained: Condvar::new() }
    }

    /// Sends the function's MSI past the tree: what it is about is in memory (V13-274).
    pub fn send(&self) {
        self.sink.raise(self.function, 0);
    }

    /// An engine has `bits` to tell (USER_INTERRUPT ...); what its enable register forbids is dropped, what its mask
    /// register holds back is kept (V13-265, V13-266).
    pub fn raise_engine(&self, engine: EngineId, bits: u16) {
        self.change(|tree| tree.raise(engine.index(), bits));
    }

    /// The same for events that the mask register does not hold back (V8-088).
    pub fn raise_engine_past_mask(&self, engine: EngineId, bits: u16) {
        self.change(|tree| tree.raise_past_mask(engine.index(), bits));
    }

    /// The GuC has `bits` to tell (GUC2HOST).
    pub fn raise_guc(&self, bits: u16) {
        self.change(|tree| tree.raise(GUC, bits));
    }

    /// The GSC has `bits` to tell (bit 15 HECI1, bit 14 HECI2).
    pub fn raise_gsc(&self, bits: u16) {
        self.change(|tree| tree.raise(GSC, bits));
    }

    /// Everything quiet and disabled, as after power-on.
    pub fn reset(&self) {
        self.reset_with(|| ());
    }

    /// The same; `keep` brings what others keep of the tree's registers in line, and nobody sees one without the other.
    pub fn reset_with(&self, keep: impl FnOnce()) {
        self.change(|tree| {
            *tree = Tree::new(self.function);
            keep();
        });
    }

    /// Reads a live register of the tree.
    pub fn read(&self, live: Live, ordinal: u16) -> u32 {
        self.state().tree.read(live, ordinal)
    }

    /// Writes the live register of the tree at `offset`. Once the tree is disabled, no MSI of it comes any more.
    pub fn write(&self, live: Live, offset: u32, ordinal: u16, value: u32) {
        self.write_with(live, offset, ordinal, value, || ());
    }

    /// The same, with `keep` as [`Interrupts::reset_with`] has it.
    pub fn write_with(&self, live: Live, offset: u32, ordinal: u16, value: u32, keep: impl FnOnce()) {
        self.change(|tree| {
            tree.write(live, offset, ordinal, value);
            keep();
        });
    }

    /// What the enable or mask register at `offset` holds.
    pub fn held(&self, offset: u32) -> u32 {
        self.state().tree.held(offset)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the tree and, with its lock given back, sends the MSI that follows from the change. A change that disables
    /// the tree waits for those that are on their way, as a read of the device would on a bus.
    pub(super) fn change(&self, change: impl FnOnce(&mut Tree)) {
        let mut state = self.state();
        let was_enabled = state.tree.enabled();
        change(&mut state.tree);
        if state.tree.settle() {
            state.sending += 1;
            drop(state);
            let _sending = Sending(self);
            self.send();
        } else if was_enabled && !state.tree.enabled() {
            state.draining += 1;
            while state.sending != 0 {
                state = self.drained.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.draining -= 1;
        }
    }
}

/// An MSI on its way; a sink that panics has had it, too.
struct Sending<'a>(&'a Interrupts);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.sending -= 1;
        if state.sending == 0 && state.draining != 0 {
            self.0.drained.notify_all();
        }
    }
}
