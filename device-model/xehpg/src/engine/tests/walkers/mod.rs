// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Walkers: kernels as drivers submit them, their state, preemption and faults.

mod captures;
mod commands;
mod exceptions;
mod images;
mod kernels;
mod messages;
mod threads;
mod totals;
mod vectors;

use arctic_fidelity::proves;

use super::*;
use crate::compute::{ComputeUnit, Room};
use vectors::*;

/// Local memory of the buffers of the vectors.
const CODE: u64 = 0x40_0000;
const INDIRECT: u64 = 0x60_0000;
const SURFACE_HEAP: u64 = 0x80_0000;
const BUFFERS: u64 = 0xa0_0000;
const PACKETS: u64 = 0xe0_0000;
/// Page tables of the vectors' addresses.
const TABLES: u64 = ROOT + 0x1_0000;

/// Where the vectors' addresses are in local memory: pages of 2 MiB.
const MAPPED: [(u64, u64); 5] = [
    (0x8000_ffe0_0000, CODE),
    (0x8000_ffa0_0000, INDIRECT),
    (0x80ff_ffa0_0000, SURFACE_HEAP),
    (0x80ff_ffc0_0000, BUFFERS),
    (0x80ab_ffe0_0000, PACKETS),
];

/// Local memory of a virtual address of the vectors.
fn place(address: u64) -> u64 {
    let page = MAPPED.iter().find(|(page, _)| address & !0x1f_ffff == *page).unwrap();
    page.1 + (address & 0x1f_ffff)
}

const A: u64 = 0x80ff_ffdf_0000;
const B: u64 = 0x80ff_ffde_0000;
const C: u64 = 0x80ff_ffdd_0000;
const PACKET: u64 = 0x80ab_ffe8_0000;

impl EngineBench {
    /// Maps a page of 2 MiB of the PPGTT.
    fn map(&self, tables: &mut u64, address: u64, local: u64) {
        let mut table = ROOT;
        for shift in [39, 30] {
            let at = table + (address >> shift & 0x1ff) * 8;
            if self.get64(at) & 1 == 0 {
                self.put64(at, *tables | 3);
                *tables += 0x1000;
            }
            table = self.get64(at) & !0xfff;
        }
        self.put64(table + (address >> 21 & 0x1ff) * 8, local | 0x883);
    }

    /// Writes the buffers of the vectors, and what their walkers read.
    fn vector_add(&self, indirect: &[u32]) {
        let mut tables = TABLES;
        for (address, local) in MAPPED {
            self.map(&mut tables, address, local);
        }
        self.write(place(0x8000_fffe_0000), &KERNEL);
        self.write(place(0x8000_ffa5_0000), indirect);
        self.write(place(0x80ff_ffa0_1000), &SURFACES);
        self.write(place(PACKET), &[1; 4]);
        for i in 0..1024u32 {
            self.put(place(A) + 4 * u64::from(i), (i as f32).to_bits());
            self.put(place(B) + 4 * u64::from(i), (2.0 * i as f32 + 1.0).to_bits());
            self.put(place(C) + 4 * u64::from(i), 0x5555_5555);
        }
    }

    /// The sums, byte for byte, and the timestamps of the walker.
    fn check_vector_add(&self, what: &str) {
        for i in 0..1024u32 {
            let expected = if i < 1000 { (3.0 * i as f32 + 1.0).to_bits() } else { 0x5555_5555 };
            assert_eq!(self.get(place(C) + 4 * u64::from(i)), expected, "{what}: element {i}");
        }
        let times = [0, 4, 8, 12].map(|at| self.get(place(PACKET) + at));
        assert!(times.iter().all(|time| *time != 1), "{what}: {times:x?}");
        assert!(times[2] >= times[0] && times[3] >= times[1], "{what}: {times:x?}");
    }

    /// A batch with the state of the vectors and a walker, in context `number`.
    fn walker_context(&self, number: u64, walker: &[u32]) -> Context {
        let batch = [&PREAMBLE[..], walker, &[END]].concat();
        self.write(BATCH + number * 0x1000, &batch);
        let context = self.context(number);
        self.emit(context, &start(VA + BATCH + number * 0x1000));
        context
    }
}

/// The vectors: walker and indirect data.
const VECTORS: [(&str, &[u32], &[u32]); 2] =
    [("ids by hardware", &HARDWARE_IDS, &HARDWARE_IDS_DATA), ("ids from memory", &MEMORY_IDS, &MEMORY_IDS_DATA)];

const CLASSES: [EngineClass; 2] = [EngineClass::Render, EngineClass::Compute];

#[test]
fn vector_add_of_opencl() {
    proves!(
        [EU_016, EU_020, EU_029],
        "the vector additions of NEO on both engines: sums byte for byte, timestamps, number of groups and threads, and \
        no command that is skipped"
    );
    for class in CLASSES {
        for (what, walker, indirect) in VECTORS {
            let mut bench = EngineBench::new(class);
            bench.vector_add(indirect);
            let context = bench.walker_context(0, walker);
            assert_eq!(bench.submit(context), Outcome::Complete, "{class:?}, {what}");
            bench.check_vector_add(what);
            let skipped = bench.engine.counters().skipped.by_name();
            assert!(skipped.is_empty(), "{class:?}, {what}: {skipped:?}");
            let totals = bench.engine.counters().walkers;
            let groups = u64::from(walker[7]);
            assert_eq!((totals.walkers, totals.executed.groups, totals.executed.threads), (1, groups, 2 * groups));
        }
    }
}

#[test]
fn vector_add_with_preemption_at_every_instruction() {
    proves!(
        EU_070,
        "each instruction ends a step, and the context leaves the engine after each step. No group is executed twice"
    );
    for class in CLASSES {
        for (what, walker, indirect) in VECTORS {
            let mut bench = EngineBench::new(class);
            bench.engine.unit = ComputeUnit::with_costs(1, 1);
            bench.vector_add(indirect);
            let context = bench.walker_context(0, walker);
            let preemptions = bench.preempt_each_step(context);
            bench.check_vector_add(what);
            let executed = bench.engine.counters().walkers.executed;
            assert!(preemptions > executed.instructions, "{preemptions} {executed:?}");
            assert_eq!(executed.groups, u64::from(walker[7]));
            assert_eq!(bench.gt.parked.count(bench.function), 0);
        }
    }
}
