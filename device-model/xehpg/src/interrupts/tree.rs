// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! State of the levels of the tree: which events are visible, and when they trigger an MSI. Contains no locking.

mod inspect;

use arctic_base::interrupts::Sources;
use arctic_sriov::number::count;
use bitfield_struct::bitfield;
use zerocopy::little_endian::{U16, U32};

use super::sources::{Half, InterruptMap, MAX_SOURCES, Source};
use crate::hardware_error::Severity;
use crate::host::Function;
use crate::registers::InterruptRegister;
use crate::state::{Document, Record, RestoreError, SavedState, Tag, Writer, format};

/// INTR_IDENTITY_REG.
#[bitfield(u32)]
pub(super) struct Identity {
    /// The source's events.
    pub events: u16,
    /// Class and instance of the source ([`Source::name`]).
    #[bits(15)]
    pub source: u16,
    /// INTR_DATA_VALID.
    pub valid: bool,
}

impl Identity {
    fn of(source: &Source, events: u16) -> Self {
        Identity::from(source.name()).with_events(events).with_valid(true)
    }
}

/// DG1_MSTR_TILE_INTR. The GFX_MSTR_IRQ of a VF has the enable too.
#[bitfield(u32)]
pub(crate) struct MasterTile {
    /// The tile has something to report.
    pub tile_0: bool,
    #[bits(30)]
    __: u32,
    /// Interrupts are enabled.
    pub enable: bool,
}

/// GFX_MSTR_IRQ: an error of this severity has occurred (xe: regs/xe_irq_regs.h, ERROR_IRQ).
pub(crate) fn error_bit(severity: Severity) -> u32 {
    1 << 26 << severity.number()
}

/// State of one source, an engine or a firmware unit.
#[derive(Clone, Copy, Default)]
struct Collapsed {
    /// The source's half of the enable register of its class.
    enable: u16,
    /// The source's half of its mask register.
    mask: u16,
    /// Enabled events that no identity has shown yet (the collapsing register, V13-266).
    pending: u16,
    /// Pending events that ignore the mask.
    past_mask: u16,
}

impl Collapsed {
    /// The events that are not masked.
    const fn unmasked(&self) -> u16 {
        self.pending & (!self.mask | self.past_mask)
    }
}

/// One GT_INTR_DW with its selector and identity.
#[derive(Clone, Copy, Default)]
struct Bank {
    /// Sources with unmasked events.
    ready: u32,
    /// The snapshot taken by a read of GT_INTR_DW, without the bits cleared since; 0 if there is none (V13-268).
    open: u32,
    /// IIR_REG_SELECTOR.
    selector: u32,
    /// INTR_IDENTITY_REG.
    identity: u32,
    /// Source of the events in the identity.
    shown: usize,
}

impl Bank {
    fn visible(&self) -> u32 {
        if self.open != 0 { self.open } else { self.ready }
    }

    fn snapshot(&mut self) -> u32 {
        let visible = self.visible();
        self.open = visible;
        visible
    }
}

/// Saved state of one source: enable, mask, pending events, pending events that ignore the mask.
type SavedSource = (u16, u16, u16, u16);

/// Saved state of one GT_INTR_DW: snapshot, selector, identity, and the source of the events in the identity.
type SavedBank = (u32, u32, u32, u32);

/// Saved state of the tree of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedTree {
    sources: Vec<SavedSource>,
    banks: [SavedBank; 2],
    enabled: bool,
}

impl SavedState for SavedTree {
    const UNIT: &'static str = "interrupt tree";
    const TAGS: &'static [Tag] = &[SourceRecord::TAG, TreeRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedTree { sources, banks, enabled } = self;
        to.records(sources.iter().map(|(enable, mask, pending, past_mask)| SourceRecord {
            enable: (*enable).into(),
            mask: (*mask).into(),
            pending: (*pending).into(),
            past_mask: (*past_mask).into(),
        }));
        let banks = banks.map(|(open, selector, identity, shown)| [open, selector, identity, shown].map(U32::new));
        to.record(TreeRecord { banks, enabled: u32::from(*enabled).into() });
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let source = |record: &SourceRecord| {
            (record.enable.get(), record.mask.get(), record.pending.get(), record.past_mask.get())
        };
        let TreeRecord { banks, enabled } = from.record()?;
        Ok(SavedTree {
            sources: from.records(MAX_SOURCES)?.iter().map(source).collect(),
            banks: banks
                .map(|[open, selector, identity, shown]| (open.get(), selector.get(), identity.get(), shown.get())),
            enabled: match enabled.get() {
                0 => false,
                1 => true,
                _ => return Err(RestoreError::invalid::<SavedTree>("the enable bit")),
            },
        })
    }
}

arctic_base::record! {
    /// A source, in the order of the interrupt map.
    struct SourceRecord[b"ITRS", 8] {
        enable: U16,
        mask: U16,
        pending: U16,
        past_mask: U16,
    }

    /// The rest of the tree.
    struct TreeRecord[b"ITRE", 36] {
        /// Of each bank: snapshot, selector, identity, source of the events in the identity.
        banks: [[U32; 4]; 2],
        /// 0 or 1.
        enabled: U32,
    }
}

/// Bytes of the sections, at most.
pub const MOST_SAVED_BYTES: usize =
    format::section_bytes::<SourceRecord>(MAX_SOURCES) + format::section_bytes::<TreeRecord>(1);

/// The tree of one function.
pub struct Tree {
    function: Function,
    map: &'static InterruptMap,
    sources: [Collapsed; MAX_SOURCES],
    banks: [Bank; 2],
    /// Bits of hardware errors in GFX_MSTR_IRQ, which only the PF has. Not saved: a VF has none.
    errors: u32,
    /// Bit 31 of DG1_MSTR_TILE_INTR.
    enabled: bool,
    /// Whether an MSI was sent for the current "enabled and pending" state.
    signalled: bool,
}

impl Tree {
    /// The power-on state: no events, all disabled.
    pub fn new(function: Function, map: &'static InterruptMap) -> Self {
        Tree {
            function,
            map,
            sources: [Collapsed::default(); MAX_SOURCES],
            banks: [Bank::default(); 2],
            errors: 0,
            enabled: false,
            signalled: false,
        }
    }

    /// Returns the state of the tree.
    pub fn save(&self) -> SavedTree {
        let source = |of: &Collapsed| (of.enable, of.mask, of.pending, of.past_mask);
        let bank = |bank: &Bank| (bank.open, bank.selector, bank.identity, count(bank.shown));
        SavedTree {
            sources: self.sources.iter().take(self.map.sources.len()).map(source).collect(),
            banks: self.banks.each_ref().map(bank),
            enabled: self.enabled,
        }
    }

    /// Returns the tree of `function` with the sources of `map` and the saved state.
    pub fn restored(function: Function, map: &'static InterruptMap, saved: &SavedTree) -> Result<Self, RestoreError> {
        let invalid = RestoreError::invalid::<SavedTree>;
        let mut tree = Tree::new(function, map);
        if saved.sources.len() != map.sources.len() {
            return Err(invalid("the number of sources"));
        }
        for (state, (enable, mask, pending, past_mask)) in tree.sources.iter_mut().zip(&saved.sources) {
            *state = Collapsed { enable: *enable, mask: *mask, pending: *pending, past_mask: *past_mask };
        }
        for (number, ((open, selector, identity, shown), bank)) in
            saved.banks.into_iter().zip(&mut tree.banks).enumerate()
        {
            let known = (0..32).filter(|bit| {
                map.sources.iter().any(|source| usize::from(source.bank) == number && u32::from(source.bit) == *bit)
            });
            if open & !known.fold(0, |all, bit| all | 1 << bit) != 0 {
                return Err(invalid("a source of a snapshot"));
            }
            let shown = shown as usize;
            let source = map.sources.get(shown).filter(|source| usize::from(source.bank) == number);
            if shown != 0 && source.is_none() {
                return Err(invalid("the source of an identity"));
            }
            if identity != 0
                && source.is_none_or(|source| {
                    Identity::from(identity).with_events(0).into_bits() != Identity::of(source, 0).into_bits()
                })
            {
                return Err(invalid("an identity"));
            }
            *bank = Bank { ready: 0, open, selector, identity, shown };
        }
        (0..map.sources.len()).for_each(|source| tree.refresh(source));
        tree.enabled = saved.enabled;
        // The MSI for pending events was sent before the tree was saved.
        tree.settle();
        Ok(tree)
    }

    /// Reads a live register.
    pub fn read(&mut self, register: InterruptRegister, ordinal: u16) -> u32 {
        let bank = usize::from(ordinal);
        match register {
            InterruptRegister::MasterTile => self.master(),
            // A VF has no tile register: its primary register has the enable bit (xe: MASTER_IRQ).
            InterruptRegister::MasterGt if self.function.is_vf() => {
                self.gt() | MasterTile::new().with_enable(self.enabled).into_bits()
            }
            InterruptRegister::MasterGt => self.gt(),
            InterruptRegister::Bank => self.banks.get_mut(bank).map_or(0, Bank::snapshot),
            InterruptRegister::Identity => self.banks.get(bank).map_or(0, |bank| bank.identity),
            InterruptRegister::Selector => self.banks.get(bank).map_or(0, |bank| bank.selector),
            _ => 0,
        }
    }

    /// Writes the live register at `offset`.
    pub fn write(&mut self, register: InterruptRegister, offset: u32, ordinal: u16, value: u32) {
        let bank = usize::from(ordinal);
        match register {
            InterruptRegister::MasterTile => self.enabled = MasterTile::from(value).enable(),
            InterruptRegister::MasterGt if self.function.is_vf() => self.enabled = MasterTile::from(value).enable(),
            InterruptRegister::Bank => self.clear(bank, value),
            InterruptRegister::Selector => self.select(bank, value),
            InterruptRegister::Identity => self.served(bank, value),
            InterruptRegister::Enable => self.set_enables(offset, value),
            InterruptRegister::Mask => self.set_masks(offset, value),
            // Writing 1 also clears the bit of a bank, which the bank asserts again immediately (V13-263, V13-279).
            InterruptRegister::MasterGt => self.errors &= !value,
        }
    }

    /// Value of the enable or mask register at `offset`.
    pub fn enable_or_mask(&self, offset: u32) -> u32 {
        self.map.sources.iter().zip(&self.sources).fold(0, |value, (source, state)| {
            let half = |at: Half, bits| if at.register == offset { at.placed(bits) } else { 0 };
            value | half(source.enable, state.enable) | half(source.mask, state.mask)
        })
    }

    /// Raises `bits` of a source.
    pub fn raise(&mut self, source: usize, bits: u16) {
        let Some(state) = self.sources.get_mut(source) else { return };
        state.pending |= bits & state.enable;
        self.refresh(source);
    }

    /// Like [`Tree::raise`], for events that ignore the mask.
    pub fn raise_past_mask(&mut self, source: usize, bits: u16) {
        let Some(state) = self.sources.get_mut(source) else { return };
        state.past_mask |= bits;
        self.raise(source, bits);
    }

    /// Sets the bit of a hardware error of this severity. Only for the PF's tree.
    pub fn raise_error(&mut self, severity: Severity) {
        self.errors |= error_bit(severity);
    }

    /// Updates the bank's bit of a source from its unmasked events.
    fn refresh(&mut self, source: usize) {
        let Some((Source { bank, bit, .. }, state)) = self.map.sources.get(source).zip(self.sources.get(source)) else {
            return;
        };
        let unmasked = state.unmasked();
        let Some(Bank { ready, .. }) = self.banks.get_mut(usize::from(*bank)) else { return };
        if unmasked != 0 { *ready |= 1 << bit } else { *ready &= !(1 << bit) }
    }

    /// GFX_MSTR_IRQ: bit n is set if bank n shows a source; bits of hardware errors.
    fn gt(&self) -> u32 {
        u32::from(self.banks[0].visible() != 0) | u32::from(self.banks[1].visible() != 0) << 1 | self.errors
    }

    /// Returns whether the tile has something to report by its interrupt: fatal errors are reported by a PCI Express
    /// message (V13-286).
    fn pending(&self) -> bool {
        self.gt() & !error_bit(Severity::Fatal) != 0
    }

    /// DG1_MSTR_TILE_INTR.
    fn master(&self) -> u32 {
        MasterTile::new().with_enable(self.enabled).with_tile_0(self.pending()).into()
    }

    /// Write-1-clear of GT_INTR_DW. Once all of a snapshot is cleared, later events count as a new event (V13-268).
    fn clear(&mut self, bank: usize, value: u32) {
        let Some(bank) = self.banks.get_mut(bank) else { return };
        let open = bank.open;
        bank.open &= !value;
        if open != 0 && bank.open == 0 && bank.ready != 0 {
            self.signalled = false;
        }
    }

    /// A one-hot write of a shown source moves its unmasked events into the identity; any other value makes the
    /// identity invalid (V13-269, V13-270).
    fn select(&mut self, number: usize, value: u32) {
        let Some(bank) = self.banks.get_mut(number) else { return };
        let source = self
            .map
            .sources
            .iter()
            .position(|source| usize::from(source.bank) == number && value == 1 << source.bit)
            .filter(|_| value & bank.visible() != 0);
        // Events that were shown but not acknowledged return to their source.
        let identity = Identity::from(bank.identity);
        let unserved = identity.valid().then_some((bank.shown, identity.events()));
        (bank.selector, bank.identity) = (value, 0);
        if let Some((shown, bits)) = unserved {
            if let Some(state) = self.sources.get_mut(shown) {
                state.pending |= bits;
            }
            self.refresh(shown);
        }
        let Some(source) = source else { return };
        let Some((row, state)) = self.map.sources.get(source).zip(self.sources.get_mut(source)) else { return };
        let shown = state.unmasked();
        state.pending &= !shown;
        let Some(bank) = self.banks.get_mut(number) else { return };
        bank.identity = Identity::of(row, shown).into();
        bank.shown = source;
        self.refresh(source);
    }

    /// Acknowledges: writing INTR_DATA_VALID to the identity clears it and the selector (V13-270).
    fn served(&mut self, bank: usize, value: u32) {
        if let Some(bank) = self.banks.get_mut(bank)
            && Identity::from(value).valid()
        {
            let identity = Identity::from(bank.identity);
            if identity.valid()
                && let Some(state) = self.sources.get_mut(bank.shown)
            {
                state.past_mask &= !identity.events();
            }
            (bank.selector, bank.identity) = (0, 0);
        }
    }

    fn set_enables(&mut self, offset: u32, value: u32) {
        for (source, state) in self.map.sources.iter().zip(&mut self.sources) {
            if source.enable.register == offset {
                state.enable = source.enable.of(value);
            }
        }
    }

    fn set_masks(&mut self, offset: u32, value: u32) {
        for (number, source) in self.map.sources.iter().enumerate() {
            if source.mask.register == offset
                && let Some(state) = self.sources.get_mut(number)
            {
                state.mask = source.mask.of(value);
                self.refresh(number);
            }
        }
    }
}

impl Sources for Tree {
    /// Returns whether the master is enabled.
    fn enabled(&self) -> bool {
        self.enabled
    }

    fn settle(&mut self) -> bool {
        let signal = self.enabled && self.pending();
        let fire = signal && !self.signalled;
        self.signalled = signal;
        fire
    }
}
