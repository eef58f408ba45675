// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fills the state of the functions other than the attacker with canaries, checks it for changes, and checks all data
//! that the attacker can read.

use arctic_device_model::card::GGTT_WINDOW;
use arctic_device_model::host::Function;
use arctic_device_model::memory::ggtt::{GGTT_BYTES, GgttEntry};
use vm_memory::Bytes;

use crate::vfs::bench::*;
use crate::vfs::canary;
use crate::vfs::world::read;

const FRAME: u64 = 2 << 20;
/// Device address of the PF's own local memory, after the VFs' quotas.
const PF_LOCAL: u64 = 3 * LOCAL;
/// GGTT address of the PF's own pages.
pub const PF_GLOBAL: u64 = 0x4000_0000;
/// Bytes of compression control data per frame.
const CONTROL_BYTES: u64 = FRAME / 256;
/// The fields of a GGTT entry that only the PF can write: Valid and the owner.
const PF_ONLY: GgttEntry = GgttEntry::new().with_valid(true).with_owner(0x3ff);
/// Ranges of a victim's local memory that change while the victim works.
const LIVELY: [std::ops::Range<u64>; 3] = [0..0x1_0000, at::SCRATCH..at::IMAGES, at::IMAGES..at::DATA];

/// Fills memory, compression control data and mailboxes of the PF and the victims with canaries, except memory in use.
pub fn fill(bench: &VfBench) {
    let home = bench.card.gt().memory.local();
    for function in [Function::PF, VICTIMS[0], VICTIMS[1]] {
        let owner = function.number();
        let guest = bench.guests.of(function);
        guest.fill(&canary::bytes(owner, guest.bytes().len()));
        let (region, first) = match bench.victims.iter().find(|victim| victim.function == function) {
            None => (home, PF_LOCAL),
            Some(victim) => (&victim.local, 0),
        };
        for (at, len) in [(0x1_0000, at::RINGS - 0x1_0000), (at::DATA, LOCAL - at::DATA)] {
            let bytes = canary::bytes(owner, len as usize);
            region.slice(first + at, bytes.len()).unwrap().write_slice(&bytes, 0).unwrap();
        }
        let frame = if function.is_vf() { u64::from(owner - 1) * LOCAL / FRAME } else { PF_LOCAL / FRAME };
        let control = canary::bytes(owner, (2 * CONTROL_BYTES) as usize);
        let at = bench.layout.usable + frame * CONTROL_BYTES;
        home.slice(at, control.len()).unwrap().write_slice(&control, 0).unwrap();
    }
    for page in 0..32 {
        let target = if page < 16 { PF_LOCAL + page * 4096 | 2 } else { crate::vfs::world::RAM.0 + page * 4096 };
        let index = (PF_GLOBAL >> 12) + page;
        bench.card.write_gttmmadr(Function::PF, GGTT_WINDOW + index * 8, &(target | 1).to_le_bytes());
    }
    for victim in &bench.victims {
        for n in 1..4 {
            victim.set(MAILBOX + n * 4, canary::word(victim.function.number(), n.into()));
        }
    }
}

/// Returns the compression control data of the attacker's frames.
pub fn own_control(bench: &VfBench) -> Vec<u8> {
    let frame = u64::from(ATTACKER.number() - 1) * LOCAL / FRAME;
    read(bench.card.gt().memory.local(), bench.layout.usable + frame * CONTROL_BYTES, 2 * CONTROL_BYTES as usize)
}

/// State of the other functions, as named parts.
pub struct Snapshot(Vec<(String, Vec<u8>)>);

/// Returns the state of the other functions. `idle`: only the attacker works, so no part may change.
pub fn snapshot(bench: &VfBench, idle: bool) -> Snapshot {
    let mut parts = Vec::new();
    let memory = &bench.card.gt().memory;
    for function in [Function::PF, VICTIMS[0], VICTIMS[1]] {
        parts.push((format!("{function:?}'s guest memory"), bench.guests.of(function).bytes()));
    }
    for victim in &bench.victims {
        let mut local = read(&victim.local, 0, BAR as usize);
        for part in LIVELY.into_iter().filter(|_| !idle) {
            local[part.start as usize..part.end as usize].fill(0);
        }
        parts.push((format!("{:?}'s local memory", victim.function), local));
        if let Some(table) = &victim.table {
            parts.push((format!("{:?}'s GGTT window", victim.function), read(table, 0, GGTT_BYTES)));
        }
        let mailbox = (1..4).flat_map(|n| victim.get(MAILBOX + n * 4).to_le_bytes());
        parts.push((format!("{:?}'s mailbox", victim.function), mailbox.collect()));
    }
    // The PF's local memory with the LMTT and the compression control data, without the attacker's control data.
    let home = memory.local();
    parts.push(("PF's local memory".into(), read(home, 0, 32 << 20)));
    let mut top = read(home, bench.layout.usable - (8 << 20), 12 << 20);
    let own = (8 << 20) + (u64::from(ATTACKER.number() - 1) * LOCAL / FRAME * CONTROL_BYTES) as usize;
    top[own..own + 2 * CONTROL_BYTES as usize].fill(0);
    parts.push(("top of the PF's local memory".into(), top));
    let mut table = vec![0; GGTT_BYTES];
    bench.card.read_gttmmadr(Function::PF, GGTT_WINDOW, &mut table);
    for entry in table.chunks_exact_mut(8) {
        let value = u64::from_le_bytes((&*entry).try_into().unwrap());
        let trapped = bench.attacker.table.is_none();
        if trapped && GgttEntry::from(value).owned_by(ATTACKER.number()) {
            entry.copy_from_slice(&(value & u64::from(PF_ONLY)).to_le_bytes());
        }
    }
    parts.push(("the GGTT".into(), table));
    let registers = &bench.card.gt().registers;
    let values: Vec<u8> = registers
        .listing()
        .filter(|(_, found)| found.engine.is_none())
        .flat_map(|(offset, _)| registers.value(offset).to_le_bytes())
        .collect();
    parts.push(("the PF's registers".into(), values));
    Snapshot(parts)
}

/// Panics if `after` differs from `before`.
pub fn unharmed(before: &Snapshot, after: &Snapshot) {
    for ((name, before), (_, after)) in before.0.iter().zip(&after.0) {
        if before != after {
            let at = before.iter().zip(after).position(|(a, b)| a != b).unwrap_or(before.len().min(after.len()));
            let show = |bytes: &[u8]| format!("{:02x?}", &bytes[at & !7..(at & !7) + 16]);
            panic!("{name} has changed at {at:#x}: {} is now {}", show(before), show(after));
        }
    }
}

fn keeps_secret(what: &str, bytes: &[u8]) {
    if let Some((at, owner)) = canary::find(bytes) {
        let from = at.saturating_sub(16) & !3;
        let around = &bytes[from..(at + 32).min(bytes.len())];
        panic!("the attacker can read data of function {owner} in {what} at {at:#x}: {around:02x?} from {from:#x}");
    }
}

/// Checks that the attacker can read no canary in its guest memory, local memory, compression control data and GGTT
/// window; with `bars` also in registers and GGTT entries.
pub fn nothing_leaked(bench: &VfBench, bars: bool) {
    keeps_secret("guest memory", &bench.guests.of(ATTACKER).bytes());
    keeps_secret("its LMEM BAR", &read(&bench.attacker.local, 0, BAR as usize));
    keeps_secret("its compression control", &own_control(bench));
    if let Some(table) = &bench.attacker.table {
        keeps_secret("its GGTT window", &read(table, 0, GGTT_BYTES));
    }
    if bars {
        nothing_leaks_from_bars(bench);
    }
}

/// Checks that trapped reads by the attacker return no canary.
pub fn nothing_leaks_from_bars(bench: &VfBench) {
    let mut seen = vec![0; 16 << 20];
    for (at, dword) in (0..).step_by(4).zip(seen.chunks_exact_mut(4)) {
        bench.card.read_gttmmadr(ATTACKER, at, dword);
    }
    keeps_secret("GTTMMADR", &seen);
    let mut seen = vec![0; 4096];
    for at in (0..64 << 20).step_by(4096) {
        bench.card.read_local(ATTACKER, at, &mut seen);
        keeps_secret("its LMEM BAR, trapped", &seen);
        if at >= LOCAL {
            assert!(seen.iter().all(|byte| *byte == 0xff), "read of local memory at {at:#x}, beyond the quota");
        }
    }
}
