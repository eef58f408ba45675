// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Measures the time to provision a virtual function with local memory that is completely written, and to clear it
//! again.
//!
//! `cargo run --release -p arctic-device-model --example provision -- [GiB of the VF, default 1]` needs twice the VF's
//! size in host memory. The driver's timeouts are 1 s for the response to UPDATE_VF_CFG, and 5 s for the PF's clearing
//! during an FLR of a VF; the engines are stopped only during the adoption.
#![allow(clippy::cast_possible_truncation, reason = "numbers are chosen by the example")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arctic_device_model::blitter::{Blit, Progress};
use arctic_device_model::generation::XE_HPG;
use arctic_device_model::host::{Function, NullHost};
use arctic_device_model::memory::ggtt::{GGTT_BYTES, Ggtt};
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::memory::{Memory, Space, Tlb, VfMemory};
use vm_memory::Bytes;
use vmm_sys_util::tempfile::TempFile;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const VF: Function = Function::new(1).unwrap();
/// First byte of the VF's memory; tables are below.
const FIRST: u64 = GIB;
/// Bytes per command with which xe clears a VF's memory.
const CHUNK: u64 = 8 * MIB;
/// Budget of a blit per engine step in bytes.
const STEP: usize = 1 << 20;

fn region(len: u64) -> SharedRegion {
    let file = TempFile::new_with_prefix("/dev/shm/arctic").expect("a file in memory").into_file();
    file.set_len(len).expect("a sparse file");
    SharedRegion::from_file(file, len as usize).expect("memory")
}

fn write_all(region: &SharedRegion, from: u64) {
    let block = vec![0x5a; MIB as usize];
    for at in (from..region.len()).step_by(MIB as usize) {
        region.slice(at, block.len()).expect("inside").write_slice(&block, 0).expect("inside");
    }
}

fn stored(region: &SharedRegion) -> u64 {
    region.data(0..region.len()).map(|run| run.end - run.start).sum::<u64>() / MIB
}

fn timed(what: &str, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    println!("{what:58} {:9.1} ms", start.elapsed().as_secs_f64() * 1e3);
}

/// Calls `piece` until it returns false; prints the total time and the duration of the longest call.
fn in_pieces(what: &str, mut piece: impl FnMut() -> bool) {
    let (start, mut longest, mut pieces) = (Instant::now(), Duration::ZERO, 0);
    loop {
        let before = Instant::now();
        let more = piece();
        longest = longest.max(before.elapsed());
        pieces += 1;
        if !more {
            break;
        }
    }
    let (all, longest) = (start.elapsed().as_secs_f64() * 1e3, longest.as_secs_f64() * 1e3);
    println!("{what:58} {all:9.1} ms in {pieces} pieces, longest {longest:.1} ms");
}

fn main() {
    let gibibytes: u64 = std::env::args().nth(1).map_or(1, |arg| arg.parse().expect("a number of GiB"));
    let size = gibibytes * GIB;
    let local = region(FIRST + size);
    write_all(&local, FIRST);
    let vf = VfMemory { local: region(size), ggtt: None };
    let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).expect("memory"));
    let memory = Memory::new(XE_HPG.page_tables, local, ggtt, Arc::new(NullHost)).with_vfs(vec![vf]);
    let put = |at: u64, value: u32| {
        memory.local().slice(at, 4).expect("inside").store(value, 0, Ordering::Release).expect("inside");
    };
    // The PF's identity map in pages of 1 GiB; the LMTT.
    put(0x1000, 0x2003);
    (0..=gibibytes).for_each(|gib| {
        put(0x2000 + gib * 8, (gib << 30) as u32 | 0x883);
        put(0x2004 + gib * 8, (gib >> 2) as u32);
    });
    put(0x1_0004, 2 << 4 | 1);
    (0..size / (2 * MIB)).for_each(|page| put(0x2_0000 + 4 * page, ((FIRST / (2 * MIB) + page) as u32) << 5 | 1));
    memory.set_lmem_cfg(1 << 31 | 1);

    println!("a VF of {gibibytes} GiB");
    memory.set_quota(VF, size);
    timed("UPDATE_VF_CFG: preparation", || memory.prepare_adoption());
    timed("UPDATE_VF_CFG: adoption (engines stopped)", || memory.adopt_lmtt());
    in_pieces("afterwards: release of memory to the host", || memory.scrub());
    println!("MiB behind the PF's region: {}", stored(memory.local()));

    let fill = || {
        let block = vec![0xa5; MIB as usize];
        (0..size).step_by(MIB as usize).for_each(|at| memory.write_bar(VF, at, &block));
    };
    let clear = || {
        let mut tlb = Tlb::default();
        let mut blit = None;
        let mut at = FIRST;
        move |memory: &Memory| {
            let current = blit.get_or_insert_with(|| {
                let (rows, high) = ((CHUNK / 4096) as u32, (at >> 32) as u32);
                let mut fill = [0; 11];
                (fill[0], fill[1]) = (2 << 29 | 0x44 << 22 | 2 << 19 | 9, 4095);
                (fill[3], fill[4], fill[5]) = (rows << 16 | 1024, at as u32, high);
                at += CHUNK;
                Blit::decode(&fill).expect("a fill")
            });
            let views = memory.views();
            let mut gam = memory.gam(Function::PF, &views, &mut tlb);
            if current.step(&mut gam, Space::Ppgtt(0x1000), STEP).expect("mapped") == Progress::Done {
                blit = None;
            }
            blit.is_some() || at < FIRST + size
        }
    };
    let vf_region = || {
        (0..size).step_by(2 << 20).filter(|at| {
            let mut byte = [0];
            memory.read_bar(VF, *at, &mut byte);
            byte[0] != 0
        })
    };
    fill();
    let mut step = clear();
    in_pieces("FLR: clearing by the PF, VF memory fully written", || step(&memory));
    assert_eq!(vf_region().count(), 0);
    let mut step = clear();
    in_pieces("FLR: clearing by the PF, VF memory not written", || step(&memory));
    fill();
    timed("FLR without a PF: clearing (engines running)", || memory.clear_vf(VF));
    assert_eq!(vf_region().count(), 0);
    fill();
    memory.set_quota(VF, 0);
    timed("quota removed without an FLR (engines stopped)", || memory.adopt_lmtt());
    in_pieces("afterwards: release of memory to the host", || memory.scrub());
    fill_home(&memory);
    timed("clearing of the PF's own memory, fully written", || {
        let mut step = clear();
        while step(&memory) {}
    });
}

fn fill_home(memory: &Memory) {
    write_all(memory.local(), FIRST);
}
