// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Facts of a generation's observation units.

use super::cec::TestPattern;
use super::format::{self, Format};
use super::network::{EngineSignals, Writes};
use crate::host::Timebase;
use crate::topology::{EngineClass, EngineInfo, XE_HPG_ENGINES};

/// Observation of a generation.
pub struct ObservationFacts {
    /// Rate of the timestamps of reports.
    pub timebase: Timebase,
    /// Render clocks in one tick of the timestamps, for a frequency of one unit (16.67 MHz): a fraction.
    pub clocks: (u64, u64),
    /// Formats of OAG by counter select.
    pub global: &'static [Format],
    /// Formats of OAR by counter select.
    pub render: &'static [Format],
    /// Formats of OAC by counter select.
    pub compute: &'static [Format],
    /// The format of all other values of counter select.
    pub other: &'static Format,
    /// Source of a report in RPT_ID, by engine.
    pub source: fn(&EngineInfo) -> u8,
    /// The writes of NOA_WRITE that connect the self-test's pattern: the node of each die's generator and its data.
    pub patterns: &'static [TestPattern],
    /// The sets of writes of NOA_WRITE that connect the activity of engines.
    pub signals: &'static [EngineSignals],
}

/// Observation of Xe-HPG.
pub static XE_HPG_OBSERVATION: ObservationFacts = ObservationFacts {
    // The unit does not divide the crystal's clock (xe, i915: Wa_18013179988).
    timebase: Timebase::new(38_400_000),
    // 50/3 MHz in units of 38.4 MHz.
    clocks: (125, 288),
    global: &[format::OAG_40, format::OAG_64],
    render: &[format::OAR_40, format::OAR_64],
    compute: &[format::OAC_64, format::OAC_32],
    other: &format::HEADER,
    source,
    // The only set with this write, of 1,043 and of 345 (set TestOa of i915 and Mesa).
    patterns: &[
        TestPattern { die: "dg2-g10", node: 0x1008, data: 0x0ff3 },
        TestPattern { die: "dg2-g11", node: 0x1003, data: 0x0ff3 },
    ],
    signals: &XE_HPG_SIGNALS,
};

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

/// The sets that are known of Xe-HPG.
pub static XE_HPG_SIGNALS: [EngineSignals; 2] =
    [gpu_busyness("dg2-g10", 0x4ae6_570c_b38d_f7ee), gpu_busyness("dg2-g11", 0x63c1_f532_cefa_197f)];

/// Source of reports that the CPU has triggered.
pub const SOURCE_CPU: u8 = 1;

/// V13-234: the document's binary codes 01/000 to 01/010 for RCS, CCS and BCS, and slice and engine of a media slice.
fn source(engine: &EngineInfo) -> u8 {
    match engine.class {
        EngineClass::Render => 8,
        EngineClass::Compute => 9,
        EngineClass::Copy => 10,
        EngineClass::VideoDecode => 0x20 | (engine.instance / 2 & 3) << 3 | engine.instance % 2,
        EngineClass::VideoEnhance => 0x20 | (engine.instance & 3) << 3 | 2,
    }
}
