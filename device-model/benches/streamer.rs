// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Number of host instructions of the command streamer for one MI_STORE_DATA_IMM through the PPGTT with TLB hits,
//! counted by callgrind (target: under 150), and the resulting rate of commands per second.
//!
//! The count is the difference of two runs of this program under `valgrind`, which eliminates the setup of the card.
//! Without valgrind only the rate and a line `skipped: REASON` are printed.
#![allow(clippy::cast_possible_truncation, reason = "numbers are chosen by the benchmark")]

use std::sync::Arc;
use std::time::Instant;

use arctic_device_model::engine::{Engine, Load, Outcome, Submitter};
use arctic_device_model::generation::XE_HPG;
use arctic_device_model::gt::Gt;
use arctic_device_model::host::{Function, ManualClock, NullHost};
use arctic_device_model::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::memory::{Memory, VfMemory};
use arctic_device_model::profile::CardProfile;
use arctic_device_model::topology::EngineClass;
use arctic_test_support::measure;

/// Local memory: page tables, a context (ring, PPHWSP, image), a batch, and the destination of its stores.
const ROOT: u64 = 0x1000;
const CONTEXT: u64 = 0x1_0000;
const BATCH: u64 = 0x2_0000;
const DATA: u64 = 0x4_0000;
const LOCAL: usize = 2 << 20;
/// Address of the LMTT, above the other contents: directory and VF 1's table.
const LMTT: u64 = LOCAL as u64;
/// Number of stores in one round of the batch, each to a different dword in four pages.
const STORES: u64 = 1024;

/// A card with a context of `function`: everything it uses is in the first frame, which is assigned to VF 1.
fn card(function: Function) -> (Gt, Engine) {
    let region = |len| SharedRegion::anonymous(len).expect("memory");
    let ggtt = Ggtt::new(region(GGTT_BYTES));
    let owner = u64::from(function.0) << 2;
    (0..LOCAL as u64 >> 12).for_each(|page| ggtt.set_entry(page, GgttEntry::from(page << 12 | owner | 3)));
    let vf = VfMemory { local: region(LOCAL), ggtt: None };
    let memory = Memory::new(XE_HPG.page_tables, region(2 * LOCAL), ggtt, Arc::new(NullHost)).with_vfs(vec![vf]);
    let put = |at: u64, value: u64| memory.write_bar(Function::PF, at, &value.to_le_bytes());
    let put32 = |at: u64, value: u32| memory.write_bar(Function::PF, at, &value.to_le_bytes());
    // Before the contents: a frame that is assigned to a VF reads zeros.
    if function.is_vf() {
        put32(LMTT + 4, ((LMTT >> 16) as u32 + 1) << 4 | 1);
        put32(LMTT + 0x1_0000, 1);
        memory.set_lmem_cfg(1 << 31 | (LMTT >> 16) as u32);
        memory.set_quota(function, LOCAL as u64);
        memory.adopt_lmtt();
    }
    put(ROOT, 0x2003);
    put(0x2000, 0x3003);
    put(0x3000, 0x4003);
    (0..512).for_each(|page| put(0x4000 + page * 8, page << 12 | 0x803));
    let mut at = BATCH;
    let mut emit = |dwords: &[u32]| {
        for dword in dwords {
            put32(at, *dword);
            at += 4;
        }
    };
    for n in 0..STORES {
        emit(&[0x1000_0002, (DATA + n * 16) as u32, 0, n as u32]);
    }
    emit(&[0x1880_0101, BATCH as u32, 0]);
    for (n, dword) in [0x1880_0101, BATCH as u32, 0, 0].into_iter().enumerate() {
        put32(CONTEXT + 4 * n as u64, dword);
    }
    for (n, dword) in (0u64..).zip(XE_HPG.blank_image()) {
        put32(CONTEXT + 0x5000 + n * 4, dword);
    }
    for (dword, value) in [(3, 0x0009_0009), (7, 16), (9, CONTEXT as u32), (11, 0x3001), (0x33, ROOT as u32)] {
        put32(CONTEXT + 0x5000 + dword * 4, value);
    }
    let profile: CardProfile = toml::from_str(include_str!("../configs/flex170.toml")).expect("a card");
    let gt = Gt::new(&profile, memory, Arc::new(NullHost), Arc::new(ManualClock::default()));
    let mut engine = Engine::new(&XE_HPG, XE_HPG.engines.find(EngineClass::Copy, 0).expect("an engine"));
    let descriptor = (CONTEXT + 0x4000) | 0x119;
    engine.load(&gt, Load { function, submitter: Submitter::Guc, context: 1, descriptor });
    (gt, engine)
}

/// Number of commands of one step, as in the card's workers.
const STEP: u32 = 1024;

fn run(function: Function, steps: u32) {
    let (gt, mut engine) = card(function);
    for _ in 0..steps {
        assert_eq!(engine.step(&gt, STEP), Outcome::More);
    }
}

/// Number of host instructions of a run with this number of steps, or why they cannot be counted.
fn instructions(function: Function, steps: u32) -> Result<u64, String> {
    measure::instructions(&["--steps".into(), steps.to_string(), "--function".into(), function.0.to_string()])
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number =
        |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1)?.parse::<u32>().ok());
    if let Some(steps) = number("--steps") {
        run(Function(number("--function").unwrap_or(0) as u8), steps);
        return;
    }
    let (short, long) = (4, 24);
    let names = ["instructions for one MI_STORE_DATA_IMM", "instructions for a VF, in its own file"];
    for (function, name) in [Function::PF, Function(1)].into_iter().zip(names) {
        match instructions(function, long).and_then(|many| Ok((many, instructions(function, short)?))) {
            Ok((many, few)) => {
                let each = (many - few) as f64 / f64::from((long - short) * STEP);
                println!("{name}: {each:.1}{}", if function.is_vf() { "" } else { " (target: under 150)" });
            }
            Err(why) => println!("skipped: {why}"),
        }
        let started = Instant::now();
        run(function, 2000);
        let rate = f64::from(2000 * STEP) / started.elapsed().as_secs_f64() / 1e6;
        println!("commands per second: {rate:.1} million");
    }
}
