// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the memory of a walker keeps between steps: decoded surface states, and what a message that is to be
//! executed again has done.

use arctic_eu::exec::memory::Surface;

use super::replay::MessageReplay;
use super::surface::SurfaceState;

/// Entries of a binding table that messages can name.
const BINDINGS: usize = 256;
/// Surface states by offset that are kept; a state with the same slot as another one replaces it.
const SLOTS: usize = 128;
/// No state is kept.
const EMPTY: u16 = u16::MAX;

/// What the offset of a surface state is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heap {
    /// The bindless surface state base.
    Bindless,
    /// The surface state base.
    Surface,
}

/// The name of a surface in a message, as far as it selects a surface state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateName {
    /// Entry of the binding table.
    Binding(u8),
    /// Byte offset of a state.
    Offset(Heap, u32),
}

impl StateName {
    /// The name of the state of a surface; `None` for addresses without one.
    #[inline]
    pub(super) fn of(surface: Surface) -> Option<StateName> {
        match surface {
            Surface::Flat | Surface::Stateless => None,
            Surface::Binding(index) => Some(StateName::Binding(index)),
            Surface::Bindless(offset) => Some(StateName::Offset(Heap::Bindless, offset)),
            Surface::State(offset, _) => Some(StateName::Offset(Heap::Surface, offset)),
        }
    }
}

/// What is kept between the steps of one walker: at most 384 decoded surface states, and accesses of one message. A state is
/// read and decoded at its first use; one that messages name by its offset again after another one has replaced it.
#[derive(Clone, Debug)]
pub struct Surfaces {
    /// Index of the state of each entry of the binding table.
    bindings: [u16; BINDINGS],
    /// Name and index of states that messages name by their offsets.
    slots: [Option<(Heap, u32, u16)>; SLOTS],
    states: Vec<SurfaceState>,
    pub(super) replay: MessageReplay,
}

impl Default for Surfaces {
    fn default() -> Self {
        Surfaces {
            bindings: [EMPTY; BINDINGS],
            slots: [None; SLOTS],
            states: Vec::new(),
            replay: MessageReplay::default(),
        }
    }
}

/// Slot of an offset: neighbouring states, which have 64 bytes, have different ones.
fn slot(offset: u32) -> usize {
    (offset / 64) as usize % SLOTS
}

#[allow(clippy::indexing_slicing, reason = "a binding has 8 bits, and slots are reduced modulo their number")]
impl Surfaces {
    /// Forgets everything, for the next walker.
    pub fn clear(&mut self) {
        // Without a state, no binding and no slot has one.
        if !self.states.is_empty() {
            self.bindings = [EMPTY; BINDINGS];
            self.slots = [None; SLOTS];
            self.states.clear();
        }
        self.replay.clear();
    }

    /// Bytes of the host's memory that it has, about; at most 128 KiB.
    pub fn host_bytes(&self) -> usize {
        let states = self.states.capacity().saturating_mul(size_of::<SurfaceState>());
        size_of::<Surfaces>().saturating_add(states).saturating_add(self.replay.host_bytes())
    }

    /// The decoded state of this name.
    #[inline]
    pub(super) fn find(&self, name: StateName) -> Option<&SurfaceState> {
        self.state(self.index(name))
    }

    /// The state with this index.
    #[inline]
    pub(super) fn state(&self, index: u16) -> Option<&SurfaceState> {
        self.states.get(usize::from(index))
    }

    /// Index of the state of this name, which it has until the next one is inserted.
    #[inline]
    pub(super) fn index(&self, name: StateName) -> u16 {
        match name {
            StateName::Binding(index) => self.bindings[usize::from(index)],
            StateName::Offset(heap, offset) => match self.slots[slot(offset)] {
                Some((found, at, index)) if (found, at) == (heap, offset) => index,
                _ => EMPTY,
            },
        }
    }

    /// Keeps a decoded state.
    pub(super) fn insert(&mut self, name: StateName, state: SurfaceState) {
        let old = match name {
            StateName::Binding(index) => self.bindings[usize::from(index)],
            StateName::Offset(_, offset) => self.slots[slot(offset)].map_or(EMPTY, |(.., index)| index),
        };
        // Each binding and slot has at most one state, so there are far fewer than 65,535.
        let index = if old == EMPTY { u16::try_from(self.states.len()).unwrap_or(EMPTY) } else { old };
        match self.states.get_mut(usize::from(index)) {
            Some(replaced) => *replaced = state,
            None => self.states.push(state),
        }
        match name {
            StateName::Binding(number) => self.bindings[usize::from(number)] = index,
            StateName::Offset(heap, offset) => self.slots[slot(offset)] = Some((heap, offset, index)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arctic_eu::exec::memory::SurfaceMemory;

    fn state(bytes: u64) -> SurfaceState {
        let memory = SurfaceMemory::Buffer { base: 0, bytes };
        SurfaceState { memory, image: Err(arctic_eu::exec::FaultKind::Surface) }
    }

    #[test]
    fn states_are_kept_by_name_and_bounded() {
        let mut surfaces = Surfaces::default();
        let name = |n: u32| match n % 3 {
            0 => StateName::Binding(n.to_le_bytes()[0]),
            1 => StateName::Offset(Heap::Bindless, n * 64),
            _ => StateName::Offset(Heap::Surface, n * 64),
        };
        for n in 0..10_000 {
            surfaces.insert(name(n), state(u64::from(n)));
            assert_eq!(surfaces.find(name(n)), Some(&state(u64::from(n))));
        }
        assert_eq!(surfaces.states.len(), BINDINGS + SLOTS);
        assert!(surfaces.host_bytes() < 128 << 10, "{}", surfaces.host_bytes());
        // The last state of a slot is found by its own name only.
        assert_eq!(surfaces.find(StateName::Offset(Heap::Surface, 9998 * 64)), Some(&state(9998)));
        assert_eq!(surfaces.find(StateName::Offset(Heap::Bindless, 9998 * 64)), None);
        surfaces.clear();
        assert!((0..10_000).all(|n| surfaces.find(name(n)).is_none()));
        surfaces.insert(name(3), state(3));
        assert_eq!((surfaces.find(name(3)), surfaces.find(name(6))), (Some(&state(3)), None));
    }
}
