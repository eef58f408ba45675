//! Instructions that the command streamer needs for one MI_STORE_DATA_IMM through the PPGTT with TLB hits, counted by
//! callgrind (target: under 150), and the commands a second that this makes here.
//!
//! The count is the difference of two runs of this program under `valgrind`, so that what it takes to set the card up
//! falls out; without valgrind only the rate is told.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use arctic_device_model::engine::id::{EngineClass, EngineId};
use arctic_device_model::engine::{Engine, Load, Outcome};
use arctic_device_model::gt::Gt;
use arctic_device_model::memory::Memory;
use arctic_device_model::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use arctic_device_model::memory::local::SharedRegion;
use arctic_device_model::profile::CardProfile;
use arctic_device_model::world::{Function, HandWoundClock, Unconnected};
use vm_memory::Bytes;

/// Local memory: page tables, a context (ring, PPHWSP, image), a batch, and what it stores to.
const ROOT: u64 = 0x1000;
const CONTEXT: u64 = 0x1_0000;
const BATCH: u64 = 0x2_0000;
const DATA: u64 = 0x4_0000;
const LOCAL: usize = 2 << 20;
/// Stores of one round of the batch, in as many dwords of four pages.
const STORES: u64 = 1024;

fn card() -> (Gt, Engine) {
    let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).expect("memory"));
    (0..LOCAL as u64 >> 12).for_each(|page| ggtt.set_entry(page, GgttEntry(page << 12 | 3)));
    let memory = Memory::new(SharedRegion::anonymous(LOCAL).expect("memory"), ggtt, Arc::new(Unconnected));
    let put = |at: u64, value: u64| memory.local().slice(at, 8).expect("inside").write_obj(value, 0).expect("inside");
    let put32 = |at: u64, value: u32| memory.local().slice(at, 4).expect("inside").write_obj(value, 0).expect("inside");
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
    for (dword, value) in [(3, 0x0009_0009), (7, 16), (9, CONTEXT as u32), (11, 0x3001), (0x33, ROOT as u32)] {
        put32(CONTEXT + 0x5000 + dword * 4, value);
    }
    let profile: CardProfile = toml::from_str(include_str!("../../configs/flex170.toml")).expect("a card");
    let gt = Gt::new(&profile, memory, Arc::new(Unconnected), Arc::new(HandWoundClock::default()));
    let mut engine = Engine::new(EngineId::find(EngineClass::Copy, 0).expect("an engine"));
    let descriptor = (CONTEXT + 0x4000) | 0x119;
    engine.load(&gt, Load { function: Function::PF, context: 1, descriptor });
    (gt, engine)
}

/// Commands of one step, as the card's workers ask for.
const STEP: u32 = 1024;

fn run(steps: u32) {
    let (gt, mut engine) = card();
    for _ in 0..steps {
        assert_eq!(engine.step(&gt, STEP), Outcome::More);
    }
}

/// Instructions of a run of so many steps, if valgrind can tell.
fn instructions(steps: u32) -> Option<u64> {
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(["--steps", &steps.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("Collected : "))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--steps") {
        run(args.get(at + 1).and_then(|steps| steps.parse().ok()).expect("--steps N"));
        return;
    }
    let (short, long) = (4, 24);
    match instructions(long).zip(instructions(short)) {
        Some((many, few)) => {
            let each = (many - few) as f64 / f64::from((long - short) * STEP);
            println!("instructions for one MI_STORE_DATA_IMM: {each:.0} (target: under 150)");
        }
        None => println!("instructions for one MI_STORE_DATA_IMM: valgrind is not there to count them"),
    }
    let started = Instant::now();
    run(2000);
    let rate = f64::from(2000 * STEP) / started.elapsed().as_secs_f64() / 1e6;
    println!("commands a second: {rate:.1} million");
}
