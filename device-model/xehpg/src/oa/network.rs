// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The signals that the NOA network connects to the B and C counters, as far as they are known: those of the self-test are in
//! [`cec`](super::cec), the activity of engines is here (OA-052). Which writes of NOA_WRITE connect what is in no public source, so a
//! set is known by its writes as a whole.

use super::cec::BLOCKS;
use crate::topology::{EngineClass, XE_HPG_ENGINES};

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
pub struct Writes(u64);

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

/// Mask of an engine of Xe-HPG.
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "evaluated at compile time")]
const fn engine(class: EngineClass, instance: u8) -> u32 {
    let engines = XE_HPG_ENGINES.list();
    let mut n = 0;
    while engines[n].class as u8 != class as u8 || engines[n].instance != instance {
        n += 1;
    }
    1 << n
}

/// The set GpuBusyness of i915, Mesa and Intel's Metrics Discovery. Video engines are named by slice: the second of each class is
/// in slice 1.
const fn gpu_busyness(die: &'static str, writes: u64) -> EngineSignals {
    let ccs = [
        engine(EngineClass::Compute, 0),
        engine(EngineClass::Compute, 1),
        engine(EngineClass::Compute, 2),
        engine(EngineClass::Compute, 3),
    ];
    let [rcs, bcs] = [engine(EngineClass::Render, 0), engine(EngineClass::Copy, 0)];
    let vcs = [engine(EngineClass::VideoDecode, 0), engine(EngineClass::VideoDecode, 2)];
    let vecs = [engine(EngineClass::VideoEnhance, 0), engine(EngineClass::VideoEnhance, 1)];
    EngineSignals {
        die,
        writes: Writes(writes),
        inputs: [ccs[0], ccs[1], ccs[2], ccs[3], rcs],
        b: [0, 0, 0, 0, 0, vecs[1], vcs[1], vecs[0]],
        c: [vcs[0], bcs, 0, ccs[3], ccs[2], ccs[1], ccs[0], rcs],
    }
}

/// What is known of Xe-HPG.
pub static XE_HPG_SIGNALS: [EngineSignals; 2] =
    [gpu_busyness("dg2-g10", 0x4ae6_570c_b38d_f7ee), gpu_busyness("dg2-g11", 0x63c1_f532_cefa_197f)];

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the known sets are those of this function: a published vector of FNV-1a.
    #[test]
    fn writes_are_hashed_by_fnv() {
        assert_eq!(Writes::default().then(u32::from_le_bytes(*b"foob")), Writes(0xdd12_0e79_0c25_12af));
    }
}
