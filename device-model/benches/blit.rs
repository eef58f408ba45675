// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Linear 2 MiB copy and fill by the copy engine, compared with non-temporal `memcpy` and `memset` on the same core.
//!
//! Prints the ratio of the two speeds (1.0: equal; the target is 0.9). A run's result is the median of many short
//! alternating rounds, so that noise on the host affects both equally; the median and the spread of several runs are
//! printed. The ratio depends on the cache that the host leaves to this process, because the copy engine uses cached
//! stores: it is faster than the reference for data in the cache, and slower for other data. Therefore both sides are
//! compared with working sets of several sizes.
//!
//! Then prints the speed of fills with zeros and of tiled copies relative to other fills and to a linear copy.
#![allow(clippy::cast_possible_truncation, reason = "numbers are chosen by the benchmark")]

use std::hint::black_box;
use std::sync::Arc;

use arctic_device_model::blitter::{Blit, Progress};
use arctic_device_model::generation::XE_HPG;
use arctic_device_model::host::{Function, NullHost};
use arctic_device_model::memory::ggtt::{GGTT_BYTES, Ggtt};
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::memory::{Memory, Space, Tlb};
use arctic_test_support::measure::{self, Comparison};
use vm_memory::Bytes;
use vmm_sys_util::tempfile::TempFile;

const SIZE: usize = 2 << 20;
const BUFFERS: usize = 16;
const ROUNDS: usize = 301;
/// Number of runs of the linear comparisons, each with new memory.
const RUNS: usize = 7;
/// Numbers of buffers that a side of a linear comparison uses in turn: 4 fit into the caches of most hosts, 128 do not.
const WORKING_SETS: [usize; 3] = [4, BUFFERS, 128];
const ROOT: u64 = 0x1000;
/// Start of the buffers in local memory; the tables are below.
const FIRST: u64 = 2 << 20;

/// The card's memory; each buffer is one 2 MiB page, at addresses 0, 2 MiB, 4 MiB …
struct BlitBench {
    memory: Memory,
    tlb: Tlb,
}

impl BlitBench {
    fn with(buffers: usize) -> Self {
        BlitBench::on(SharedRegion::anonymous(FIRST as usize + buffers * SIZE).expect("memory"), buffers)
    }

    /// Like [`BlitBench::with`], with a sparse file in memory as `arctic` uses it.
    fn sparse() -> Self {
        let file = TempFile::new_with_prefix("/dev/shm/arctic").expect("a file in memory").into_file();
        let len = FIRST as usize + BUFFERS * SIZE;
        file.set_len(len as u64).expect("a sparse file");
        BlitBench::on(SharedRegion::from_file(file, len).expect("memory"), BUFFERS)
    }

    fn on(local: SharedRegion, buffers: usize) -> Self {
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).expect("memory"));
        let memory = Memory::new(XE_HPG.page_tables, local, ggtt, Arc::new(NullHost));
        let entry = |at: u64, value: u64| {
            memory.local().slice(at, 8).expect("inside").write_obj(value, 0).expect("inside");
        };
        entry(ROOT, 0x2003);
        entry(0x2000, 0x3003);
        for buffer in 0..buffers as u64 {
            entry(0x3000 + buffer * 8, (FIRST + buffer * SIZE as u64) | 0x883);
        }
        memory
            .local()
            .slice(FIRST, buffers * SIZE)
            .expect("inside")
            .write_slice(&vec![0x11; buffers * SIZE], 0)
            .expect("inside");
        BlitBench { memory, tlb: Tlb::default() }
    }

    fn run(&mut self, dwords: &[u32]) {
        let mut blit = Blit::decode(dwords).expect("a blit");
        let views = self.memory.views();
        loop {
            let mut gam = self.memory.gam(Function::PF, &views, &mut self.tlb);
            if blit.step(&mut gam, Space::Ppgtt(ROOT), 1 << 20).expect("mapped") == Progress::Done {
                return;
            }
        }
    }
}

/// The copy command of xe's migration, with tiling codes (0 linear, 1 X, 2 Tile4).
fn copy(from: u32, to: u32, from_tiling: u32, to_tiling: u32) -> [u32; 10] {
    let pitch = |tiling: u32| if tiling == 0 { 4096 } else { 1024 };
    let header = 2 << 29 | 0x42 << 22 | from_tiling << 20 | to_tiling << 13 | 8;
    let corner = (SIZE as u32 / 4096) << 16 | 1024;
    [header, 3 << 24 | 3 << 30 | pitch(to_tiling), 0, corner, to, 0, 0, pitch(from_tiling), from, 0]
}

fn fill(to: u32, colour: u32) -> [u32; 16] {
    let corner = (SIZE as u32 / 4096) << 16 | 1024;
    [2 << 29 | 0x44 << 22 | 2 << 19 | 14, 4095, 0, corner, to, 0, 0, colour, colour, colour, colour, 0, 0, 0, 0, 0]
}

/// Buffers of the reference, aligned for 16-byte stores.
fn reference(buffers: usize) -> Vec<[u64; 8]> {
    vec![[0x11; 8]; buffers * SIZE / 64]
}

#[cfg(target_arch = "x86_64")]
mod streaming {
    use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_set1_epi32, _mm_sfence, _mm_stream_si128};

    /// Copies `lines` 64-byte lines with non-temporal stores.
    pub fn copy(from: &[[u64; 8]], to: &mut [[u64; 8]]) {
        assert!(
            from.len() == to.len()
                && (from.as_ptr() as usize).is_multiple_of(16)
                && (to.as_ptr() as usize).is_multiple_of(16)
        );
        let (from, to) = (from.as_ptr().cast::<__m128i>(), (to.as_mut_ptr().cast::<__m128i>(), to.len() * 4));
        // SAFETY: SSE2 is part of x86-64; both slices hold `to.1` aligned 16-byte units and do not overlap.
        unsafe {
            for unit in 0..to.1 {
                _mm_stream_si128(to.0.add(unit), _mm_load_si128(from.add(unit)));
            }
            _mm_sfence();
        }
    }

    /// Fills 64-byte lines with non-temporal stores.
    pub fn fill(to: &mut [[u64; 8]], colour: u32) {
        assert!((to.as_ptr() as usize).is_multiple_of(16));
        let (first, units) = (to.as_mut_ptr().cast::<__m128i>(), to.len() * 4);
        // SAFETY: SSE2 is part of x86-64; the slice holds `units` aligned 16-byte units.
        unsafe {
            let value = _mm_set1_epi32(colour as i32);
            for unit in 0..units {
                _mm_stream_si128(first.add(unit), value);
            }
            _mm_sfence();
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod streaming {
    /// Copies lines with the standard library, as a substitute for non-temporal stores.
    pub fn copy(from: &[[u64; 8]], to: &mut [[u64; 8]]) {
        to.copy_from_slice(from);
    }

    /// Fills lines with the standard library, as a substitute for non-temporal stores.
    pub fn fill(to: &mut [[u64; 8]], colour: u32) {
        to.fill([u64::from(colour) << 32 | u64::from(colour); 8]);
    }
}

/// Measures alternating rounds. Consecutive rounds use different buffers.
fn compare(ours: impl FnMut(usize), reference: impl FnMut(usize)) -> Comparison {
    measure::compare(ROUNDS, SIZE, ours, reference)
}

/// Fills with zeros over holes of the file, and over data.
fn zeros() {
    let (mut bench, mut other) = (BlitBench::sparse(), BlitBench::sparse());
    let at = |buffer: usize| (buffer % BUFFERS * SIZE) as u32;
    let result = compare(|round| bench.run(&fill(at(round), 0)), |round| other.run(&fill(at(round), 0x0101_0101)));
    result.print("zeros on data / other fill");
    bench.memory.local().clear(FIRST..bench.memory.local().len());
    let result = compare(|round| bench.run(&fill(at(round), 0)), |round| other.run(&fill(at(round), 0x0101_0101)));
    result.print("zeros on holes / other fill");
}

/// Copies and fills, each side in turn in `buffers` buffers of 2 MiB of its own.
fn linear(buffers: usize) -> [Comparison; 2] {
    let mut bench = BlitBench::with(buffers);
    let mut lines = reference(buffers);
    let per_buffer = SIZE / 64;
    let at = |buffer: usize| (buffer % buffers * SIZE) as u32;
    let copies = compare(
        |round| bench.run(&copy(at(round * 2), at(round * 2 + 1), 0, 0)),
        |round| {
            let first = round * 2 % buffers * per_buffer;
            let (from, to) = lines[first..first + 2 * per_buffer].split_at_mut(per_buffer);
            streaming::copy(black_box(from), black_box(to));
        },
    );
    let fills = compare(
        |round| bench.run(&fill(at(round), 0x1234_5678)),
        |round| {
            let first = round % buffers * per_buffer;
            streaming::fill(black_box(&mut lines[first..first + per_buffer]), 0x1234_5678);
        },
    );
    [copies, fills]
}

/// Prints the results of [`RUNS`] runs: the median and the spread of their medians, and the median speeds.
fn linear_runs() {
    for buffers in WORKING_SETS {
        let runs: Vec<[Comparison; 2]> = (0..RUNS).map(|_| linear(buffers)).collect();
        for (n, name) in ["copy / non-temporal memcpy", "fill / non-temporal memset"].into_iter().enumerate() {
            let sorted = |key: &dyn Fn(&Comparison) -> f64| {
                let mut values: Vec<f64> = runs.iter().map(|run| key(&run[n])).collect();
                values.sort_by(f64::total_cmp);
                values
            };
            let ratios = sorted(&|run| run.quartiles[1]);
            let quartiles = [ratios[0], ratios[RUNS / 2], ratios[RUNS - 1]];
            let speeds = [0, 1].map(|side| sorted(&|run| run.speeds[side])[RUNS / 2]);
            // The report of `cargo bench` finds these rows by their names.
            let name = match buffers {
                BUFFERS => format!("linear {name}"),
                _ => format!("{} MiB in use: {name}", buffers * SIZE >> 20),
            };
            Comparison { quartiles, speeds }.print(&name);
        }
    }
}

fn main() {
    let at = |buffer: usize| (buffer % BUFFERS * SIZE) as u32;
    println!("speed of the copy engine relative to the reference: median, and spread of the medians of {RUNS} runs");
    linear_runs();
    println!("the same of one run: median and quartiles");
    zeros();
    let mut bench = BlitBench::with(BUFFERS);
    for (name, from, to) in [
        ("linear to X / linear copy", 0, 1),
        ("X to linear / linear copy", 1, 0),
        ("linear to Tile4 / linear copy", 0, 2),
        ("Tile4 to linear / linear copy", 2, 0),
    ] {
        let mut other = BlitBench::with(BUFFERS);
        let result = compare(
            |round| bench.run(&copy(at(round * 2), at(round * 2 + 1), from, to)),
            |round| other.run(&copy(at(round * 2), at(round * 2 + 1), 0, 0)),
        );
        result.print(name);
    }
}
