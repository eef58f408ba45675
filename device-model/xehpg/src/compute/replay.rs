// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What a message of a kernel has done that is executed again, because the client of a function has not answered one of its
//! accesses: atomic operations are not applied a second time, and accesses that the client has answered are not repeated, so that
//! a message with many of them comes to its end with a slow client.

use arctic_eu::exec::memory::Atomic;

use crate::memory::BegunAtomic;

/// Atomic operations of a message: one for each lane at most.
pub(super) const MOST_ATOMICS: usize = 32;
/// Loads and stores by messages to a client that are recorded at most, and their bytes: a block of 512 bytes for each of 32
/// lanes. Others are repeated.
pub(super) const MOST_ACCESSES: usize = 512;
pub(super) const MOST_BYTES: usize = 16 << 10;

/// An atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AtomicAccess {
    /// Virtual address.
    pub address: u64,
    /// Bytes.
    pub size: u32,
    pub operation: Atomic,
    pub operands: [u64; 2],
}

/// Accesses of the last message.
///
/// A thread that has not been answered executes its message again before any other thread executes one. Otherwise, another
/// message with the same accesses takes their results, as if it had been first; any other message ends the replay.
#[derive(Clone, Debug)]
pub(super) struct MessageReplay {
    /// Operations that were applied, with the values before.
    atomics: [Option<(AtomicAccess, u64)>; MOST_ATOMICS],
    /// Number of operations in `atomics`, and of those of the current execution of the message.
    applied: usize,
    position: usize,
    /// The operation with an access that was not answered.
    pub begun: BegunAtomic,
    /// Virtual addresses of loads from a client, with the place of their bytes in `bytes`.
    loads: Vec<(u64, std::ops::Range<usize>)>,
    bytes: Vec<u8>,
    /// Virtual addresses and lengths of stores to a client, and the number of those of the current execution.
    stores: Vec<(u64, usize)>,
    stored: usize,
    /// An access of the message was not answered.
    unanswered: bool,
}

/// A message that is to be executed again, to be saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SavedReplay {
    pub begun: Option<(u64, u64)>,
    /// Address, bytes, opcode, operands, value before.
    pub atomics: Vec<(u64, u32, u32, [u64; 2], u64)>,
    pub loads: Vec<(u64, Vec<u8>)>,
    pub stores: Vec<(u64, usize)>,
}

impl SavedReplay {
    /// Most bytes of one, with those of its group but the threads.
    pub const MOST_BYTES: usize = 30 << 10;

    /// The replay; `None` if it is none.
    pub fn replay(&self) -> Option<MessageReplay> {
        let mut replay = MessageReplay { begun: BegunAtomic::from_parts(self.begun), ..MessageReplay::default() };
        if self.atomics.len() > MOST_ATOMICS
            || self.loads.len() > MOST_ACCESSES
            || self.stores.len() > MOST_ACCESSES
            || self.loads.iter().fold(0, |sum: usize, (_, bytes)| sum.saturating_add(bytes.len())) > MOST_BYTES
        {
            return None;
        }
        for (address, size, opcode, operands, old) in &self.atomics {
            let operation = Atomic::from_opcode(*opcode)?;
            replay.record(AtomicAccess { address: *address, size: *size, operation, operands: *operands }, *old);
        }
        self.loads.iter().for_each(|(at, bytes)| replay.record_load(*at, bytes));
        self.stores.iter().for_each(|(at, len)| replay.record_store(*at, *len));
        (replay.position, replay.stored) = (0, 0);
        Some(replay)
    }
}

impl Default for MessageReplay {
    fn default() -> Self {
        MessageReplay {
            atomics: [None; MOST_ATOMICS],
            applied: 0,
            position: 0,
            begun: BegunAtomic::default(),
            loads: Vec::new(),
            bytes: Vec::new(),
            stores: Vec::new(),
            stored: 0,
            unanswered: false,
        }
    }
}

impl MessageReplay {
    /// The value before an operation that an earlier execution of the message has applied.
    #[inline]
    pub fn result(&mut self, access: &AtomicAccess) -> Option<u64> {
        if self.position >= self.applied {
            return None;
        }
        match self.atomics.get(self.position) {
            Some(Some((applied, old))) if applied == access => {
                self.position = self.position.saturating_add(1);
                Some(*old)
            }
            _ => {
                self.forget();
                None
            }
        }
    }

    /// Records an operation that was applied now, and the value before it.
    #[inline]
    pub fn record(&mut self, access: AtomicAccess, old: u64) {
        if let Some(next) = self.atomics.get_mut(self.applied) {
            *next = Some((access, old));
            self.applied = self.applied.saturating_add(1);
            self.position = self.applied;
        }
    }

    /// Copies the bytes of a load that the client has answered. Returns false if it is to be made.
    pub fn load(&self, at: u64, into: &mut [u8]) -> bool {
        let same = |load: &&(u64, std::ops::Range<usize>)| load.0 == at && load.1.len() == into.len();
        let Some((_, range)) = self.loads.iter().find(same) else { return false };
        let Some(bytes) = self.bytes.get(range.clone()) else { return false };
        into.copy_from_slice(bytes);
        true
    }

    /// Records a load that the client has answered.
    pub fn record_load(&mut self, at: u64, bytes: &[u8]) {
        let start = self.bytes.len();
        let end = start.saturating_add(bytes.len());
        if self.loads.len() < MOST_ACCESSES && end <= MOST_BYTES {
            self.bytes.extend_from_slice(bytes);
            self.loads.push((at, start..end));
        }
    }

    /// Returns whether the client has answered the store in an earlier execution of the message.
    pub fn store(&mut self, at: u64, len: usize) -> bool {
        match self.stores.get(self.stored) {
            None => false,
            Some(store) if *store == (at, len) => {
                self.stored = self.stored.saturating_add(1);
                true
            }
            Some(_) => {
                self.forget();
                false
            }
        }
    }

    /// Records a store that the client has answered.
    pub fn record_store(&mut self, at: u64, len: usize) {
        if self.stores.len() < MOST_ACCESSES {
            self.stores.push((at, len));
            self.stored = self.stores.len();
        }
    }

    /// Records that an access of the message was not answered.
    pub fn fail(&mut self) {
        self.unanswered = true;
    }

    /// Ends the execution of a message. It is to be executed again if an access was not answered, otherwise its accesses
    /// are forgotten.
    #[inline]
    pub fn end_message(&mut self) {
        if std::mem::take(&mut self.unanswered) {
            (self.position, self.stored) = (0, 0);
        } else {
            self.forget();
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.unanswered = false;
        self.forget();
    }

    /// Saves it between two executions.
    pub fn save(&self) -> SavedReplay {
        let atomics = self.atomics.iter().take(self.applied).flatten();
        let bytes = |range: &std::ops::Range<usize>| self.bytes.get(range.clone()).unwrap_or_default().to_vec();
        SavedReplay {
            begun: self.begun.parts(),
            atomics: atomics.map(|(it, old)| (it.address, it.size, it.operation.opcode(), it.operands, *old)).collect(),
            loads: self.loads.iter().map(|(at, range)| (*at, bytes(range))).collect(),
            stores: self.stores.clone(),
        }
    }

    /// Bytes of the host's memory beside its own.
    pub fn host_bytes(&self) -> usize {
        let accesses = self.loads.capacity().max(self.stores.capacity());
        accesses.saturating_mul(64).saturating_add(self.bytes.capacity())
    }

    #[inline]
    fn forget(&mut self) {
        (self.applied, self.position, self.stored) = (0, 0, 0);
        self.begun = BegunAtomic::default();
        self.loads.clear();
        self.bytes.clear();
        self.stores.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message that has been answered in part goes on from its saved form as from itself.
    #[test]
    fn a_saved_message_is_not_executed_twice() {
        let mut replay = MessageReplay::default();
        let add = |address| AtomicAccess { address, size: 4, operation: Atomic::Add, operands: [1, 0] };
        (0..3).for_each(|n| replay.record(add(0x1000 + n * 4), n));
        replay.record_load(0x2000, &[1, 2, 3]);
        replay.record_load(0x3000, &[4; 64]);
        replay.record_store(0x4000, 8);
        replay.begun = BegunAtomic::from_parts(Some((0x100c, 7)));
        replay.fail();
        replay.end_message();
        let mut restored = replay.save().replay().unwrap();
        assert_eq!(restored.save(), replay.save());
        assert_eq!(
            (0..4).map(|n| restored.result(&add(0x1000 + n * 4))).collect::<Vec<_>>(),
            [Some(0), Some(1), Some(2), None]
        );
        let mut bytes = [0; 64];
        assert!(restored.load(0x3000, &mut bytes) && bytes == [4; 64]);
        assert!(!restored.load(0x3001, &mut bytes));
        assert!(restored.store(0x4000, 8) && !restored.store(0x4008, 8));
        assert_eq!(restored.begun.parts(), Some((0x100c, 7)));
    }

    #[test]
    fn messages_that_are_none_are_refused() {
        assert!(SavedReplay::default().replay().is_some());
        let access = (0, 4, Atomic::Add.opcode(), [0; 2], 0);
        for replay in [
            SavedReplay { atomics: vec![access; 33], ..SavedReplay::default() },
            SavedReplay { atomics: vec![(0, 4, 7, [0; 2], 0)], ..SavedReplay::default() },
            SavedReplay { loads: vec![(0, vec![0; 64]); 513], ..SavedReplay::default() },
            SavedReplay { loads: vec![(0, vec![0; 1 << 14]); 2], ..SavedReplay::default() },
            SavedReplay { stores: vec![(0, 4); 513], ..SavedReplay::default() },
        ] {
            assert!(replay.replay().is_none());
        }
    }
}
