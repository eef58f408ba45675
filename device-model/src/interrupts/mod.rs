//! The interrupt tree: GT banks with selector and identity, GFX_MSTR_IRQ, DG1_MSTR_TILE_INTR, one MSI (V13-257..288).
//!
//! From the leaf to the root every level is a level, not an edge: a source is ready while it holds an unmasked event, a
//! bank while it shows a source, the tile while a bank shows anything. An MSI is sent when "tile pending and master
//! enabled" becomes true, and again when a bank that has been cleared shows the events that came meanwhile. So nothing
//! is lost whatever the driver acknowledges when, and nothing repeats while the driver has the master disabled.

pub mod event;
pub mod memirq;
mod sources;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard};

use crate::engine::id::EngineId;
use crate::registers::Live;
use crate::world::{Function, InterruptSink};
pub use event::{
    CONTEXT_SWITCH, CS_ERROR, DOORBELL_RANG, FLUSH_COMPLETE, GUC2HOST, L3_PARITY, PAGE_FAULT, SEMAPHORE_WAIT,
    USER_INTERRUPT, WATCHDOG,
};
use sources::{GSC, GUC, Half, SOURCES, Source};

/// INTR_DATA_VALID of an identity register.
const DATA_VALID: u32 = 1 << 31;
/// DG1_MSTR_IRQ: the enable of DG1_MSTR_TILE_INTR.
const MASTER_ENABLE: u32 = 1 << 31;

/// The tree, from the sources' bits to the MSI.
pub struct Interrupts {
    function: Function,
    sink: Arc<dyn InterruptSink>,
    tree: Mutex<Tree>,
}

impl Interrupts {
    /// A quiet tree that sends the MSI of `function` to `sink`; every function has a tree of its own (V13-262).
    pub fn new(function: Function, sink: Arc<dyn InterruptSink>) -> Self {
        Interrupts { function, sink, tree: Mutex::default() }
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
        self.change(|tree| {
            tree.sources[engine.index()].past_mask |= bits;
            tree.raise(engine.index(), bits);
        });
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
        *self.tree() = Tree::default();
    }

    /// Reads a live register of the tree.
    pub fn read(&self, live: Live, ordinal: u16) -> u32 {
        let bank = usize::from(ordinal);
        let mut tree = self.tree();
        match live {
            Live::MasterTile => tree.master(),
            // A virtual function has no tile's register: its primary register has the enable (xe: MASTER_IRQ).
            Live::MasterGt if self.function.is_vf() => tree.gt() | u32::from(tree.enabled) << 31,
            Live::MasterGt => tree.gt(),
            Live::GtInterrupt => tree.banks.get_mut(bank).map_or(0, Bank::snapshot),
            Live::InterruptIdentity => tree.banks.get(bank).map_or(0, |bank| bank.identity),
            Live::InterruptSelector => tree.banks.get(bank).map_or(0, |bank| bank.selector),
            _ => 0,
        }
    }

    /// Writes the live register of the tree at `offset`.
    pub fn write(&self, live: Live, offset: u32, ordinal: u16, value: u32) {
        let bank = usize::from(ordinal);
        self.change(|tree| match live {
            Live::MasterTile => tree.enabled = value & MASTER_ENABLE != 0,
            Live::MasterGt if self.function.is_vf() => tree.enabled = value & MASTER_ENABLE != 0,
            Live::GtInterrupt => tree.clear(bank, value),
            Live::InterruptSelector => tree.select(bank, value),
            Live::InterruptIdentity => tree.served(bank, value),
            Live::InterruptEnable => tree.set_enables(offset, value),
            Live::InterruptMask => tree.set_masks(offset, value),
            // GFX_MSTR_IRQ: a written 1 clears a bit that its bank asserts again at once (V13-263, V13-279).
            _ => {}
        });
    }

    /// What the enable or mask register at `offset` holds.
    pub fn held(&self, offset: u32) -> u32 {
        let tree = self.tree();
        SOURCES.iter().zip(&tree.sources).fold(0, |value, (source, state)| {
            let half = |at: Half, bits| if at.register == offset { at.placed(bits) } else { 0 };
            value | half(source.enable, state.enable) | half(source.mask, state.mask)
        })
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Changes the tree and, with its lock given back, sends the MSI that follows from the change.
    fn change(&self, change: impl FnOnce(&mut Tree)) {
        let fire = {
            let mut tree = self.tree();
            change(&mut tree);
            tree.settle()
        };
        if fire {
            self.send();
        }
    }
}

/// State of one source, an engine or a firmware unit.
#[derive(Clone, Copy, Default)]
struct Collapsed {
    /// Its half of the enable register of its class.
    enable: u16,
    /// Its half of its mask register.
    mask: u16,
    /// Enabled events that no identity has shown yet (the collapsing register, V13-266).
    pending: u16,
    /// Those of them that the mask does not hold back.
    past_mask: u16,
}

impl Collapsed {
    /// The events that can be shown.
    const fn unmasked(&self) -> u16 {
        self.pending & (!self.mask | self.past_mask)
    }
}

/// One GT_INTR_DW with its selector and identity.
#[derive(Clone, Copy, Default)]
struct Bank {
    /// Sources with unmasked events.
    ready: u32,
    /// The snapshot that a read of GT_INTR_DW took, less what was cleared; 0 when none is open (V13-268).
    open: u32,
    /// IIR_REG_SELECTOR.
    selector: u32,
    /// INTR_IDENTITY_REG.
    identity: u32,
    /// Source whose events the identity holds.
    shown: usize,
}

impl Bank {
    fn visible(&self) -> u32 {
        if self.open != 0 { self.open } else { self.ready }
    }

    fn snapshot(&mut self) -> u32 {
        self.open = self.visible();
        self.open
    }
}

#[derive(Default)]
struct Tree {
    sources: [Collapsed; SOURCES.len()],
    banks: [Bank; 2],
    /// Bit 31 of DG1_MSTR_TILE_INTR.
    enabled: bool,
    /// Enabled and pending when last looked at: an MSI was sent for it.
    signalled: bool,
}

impl Tree {
    fn raise(&mut self, source: usize, bits: u16) {
        let state = &mut self.sources[source];
        state.pending |= bits & state.enable;
        self.refresh(source);
    }

    /// Brings the bank's bit of a source in line with its unmasked events.
    fn refresh(&mut self, source: usize) {
        let Source { bank, bit, .. } = SOURCES[source];
        let unmasked = self.sources[source].unmasked();
        let ready = &mut self.banks[usize::from(bank)].ready;
        if unmasked != 0 { *ready |= 1 << bit } else { *ready &= !(1 << bit) }
    }

    /// Whether an MSI has to be sent now.
    fn settle(&mut self) -> bool {
        let signal = self.enabled && self.gt() != 0;
        let fire = signal && !self.signalled;
        self.signalled = signal;
        fire
    }

    /// GFX_MSTR_IRQ: bit n shows that bank n has something.
    fn gt(&self) -> u32 {
        u32::from(self.banks[0].visible() != 0) | u32::from(self.banks[1].visible() != 0) << 1
    }

    /// DG1_MSTR_TILE_INTR: the enable, and bit 0 for the tile.
    fn master(&self) -> u32 {
        u32::from(self.enabled) << 31 | u32::from(self.gt() != 0)
    }

    /// Write-1-clear of GT_INTR_DW. When all of a snapshot is cleared, what came meanwhile is a new event (V13-268).
    fn clear(&mut self, bank: usize, value: u32) {
        let Some(bank) = self.banks.get_mut(bank) else { return };
        let open = bank.open;
        bank.open &= !value;
        if open != 0 && bank.open == 0 && bank.ready != 0 {
            self.signalled = false;
        }
    }

    /// A one-hot write of a shown source moves its unmasked events into the identity; any other leaves it invalid
    /// (V13-269, V13-270).
    fn select(&mut self, number: usize, value: u32) {
        let Some(bank) = self.banks.get_mut(number) else { return };
        let source = SOURCES
            .iter()
            .position(|source| usize::from(source.bank) == number && value == 1 << source.bit)
            .filter(|_| value & bank.visible() != 0);
        // Events that were shown and not acknowledged go back to their source.
        let unserved = (bank.identity & DATA_VALID != 0).then_some((bank.shown, bank.identity as u16));
        (bank.selector, bank.identity) = (value, 0);
        if let Some((shown, bits)) = unserved {
            self.sources[shown].pending |= bits;
            self.refresh(shown);
        }
        let Some(source) = source else { return };
        let state = &mut self.sources[source];
        let shown = state.unmasked();
        state.pending &= !shown;
        let bank = &mut self.banks[number];
        bank.identity = DATA_VALID | SOURCES[source].name() | u32::from(shown);
        bank.shown = source;
        self.refresh(source);
    }

    /// Writing DATA_VALID to the identity clears it and the selector (V13-270).
    fn served(&mut self, bank: usize, value: u32) {
        if let Some(bank) = self.banks.get_mut(bank)
            && value & DATA_VALID != 0
        {
            if bank.identity & DATA_VALID != 0 {
                self.sources[bank.shown].past_mask &= !(bank.identity as u16);
            }
            (bank.selector, bank.identity) = (0, 0);
        }
    }

    fn set_enables(&mut self, offset: u32, value: u32) {
        for (source, state) in SOURCES.iter().zip(&mut self.sources) {
            if source.enable.register == offset {
                state.enable = source.enable.of(value);
            }
        }
    }

    fn set_masks(&mut self, offset: u32, value: u32) {
        for (number, source) in SOURCES.iter().enumerate() {
            if source.mask.register == offset {
                self.sources[number].mask = source.mask.of(value);
                self.refresh(number);
            }
        }
    }
}
