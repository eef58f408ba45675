// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The signals that the NOA network connects to the B and C counters, as far as they are known: those of the self-test are in
//! [`cec`](super::cec), the activity of engines is here (OA-052). Which writes of NOA_WRITE connect what is in no public source, so a
//! set is known by its writes as a whole.

use super::cec::BLOCKS;

/// Number of signals that a set of [`EngineSignals`] connects to input 0 of the comparisons.
const INPUTS: usize = 5;

/// A set of writes that connects the activity of engines. Engines are masks, one bit each, by
/// [`EngineId::bit`](crate::topology::EngineId::bit).
#[derive(Debug, PartialEq, Eq)]
pub struct EngineSignals {
    /// The die.
    pub die: &'static str,
    /// [`Writes`] of the set.
    pub writes: Writes,
    /// Signals of input 0 of the comparisons, from bit 0 on.
    pub inputs: [u32; INPUTS],
    /// B counters that count an engine's clocks; 0 for those that count what their comparison finds.
    pub b: [u32; BLOCKS],
    /// C counters.
    pub c: [u32; BLOCKS],
}

impl EngineSignals {
    /// The signals of input 0 while these engines are busy.
    pub fn input(&self, busy: u32) -> u32 {
        let bits = self.inputs.iter().rev();
        bits.fold(0, |signals, engine| signals.wrapping_shl(1) | u32::from(busy & engine != 0))
    }
}

/// The writes of NOA_WRITE since the network was switched on, in their order: FNV-1a.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writes(pub u64);

impl Default for Writes {
    fn default() -> Self {
        Writes(0xcbf2_9ce4_8422_2325)
    }
}

impl Writes {
    /// Adds a write.
    #[must_use]
    pub fn then(self, value: u32) -> Self {
        let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Writes(value.to_le_bytes().into_iter().fold(self.0, add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the known sets are those of this function: a published vector of FNV-1a.
    #[test]
    fn writes_are_hashed_by_fnv() {
        assert_eq!(Writes::default().then(u32::from_le_bytes(*b"foob")), Writes(0xdd12_0e79_0c25_12af));
    }
}
