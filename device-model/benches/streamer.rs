// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Number of host instructions of the command streamer for one MI_STORE_DATA_IMM through the PPGTT with TLB hits,
//! counted by callgrind (target: under 150), and its measured rate: of the PF, and of a VF in its own memory.
#![allow(clippy::cast_possible_truncation, reason = "numbers are chosen by the benchmark")]

use std::sync::Arc;

use arctic_device_model::card::STEP_BUDGET;
use arctic_device_model::engine::{Engine, Load, Outcome, Submitter};
use arctic_device_model::generation::XE_HPG;
use arctic_device_model::gt::Gt;
use arctic_device_model::host::{Function, ManualClock, NullHost};
use arctic_device_model::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::memory::{Memory, VfMemory};
use arctic_device_model::profile::CardProfile;
use arctic_device_model::topology::EngineClass;
use arctic_mi::{Process, batch_buffer_start, store_data_imm};
use arctic_test_support::measure::{self, Command};
use vm_memory::Bytes;

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

/// Parts of a context: the ring is at its start.
const PPHWSP: u64 = CONTEXT + 0x4000;
const IMAGE: u64 = PPHWSP + 0x1000;
/// Dwords of the image and their values: CTX_CONTROL (the engine context is not restored, no switch while it waits), RING_TAIL
/// (behind four dwords), RING_START, RING_CTL (valid, four pages) and PDP0.
const REGISTERS: [(u64, u32); 5] =
    [(0x03, 0x0009_0009), (0x07, 16), (0x09, CONTEXT as u32), (0x0b, 0x3001), (0x33, ROOT as u32)];
/// Low bits of the context descriptor: valid, a PPGTT of four levels, operands in the PPGTT.
const DESCRIPTOR: u64 = 1 | 3 << 3 | 1 << 8;
/// Entry of a PPGTT table or page: present and writable; of a page: in local memory.
const PRESENT: u64 = 3;
const LOCAL_PAGE: u64 = 1 << 11;
/// LMEM_CFG: the LMTT is valid.
const LMTT_VALID: u32 = 1 << 31;

/// A card with a context of `function`: everything it uses is in the first frame, which is assigned to `function` if it is a VF.
fn card(function: Function) -> (Gt, Engine) {
    let region = |len| SharedRegion::anonymous(len).expect("memory");
    let ggtt = Ggtt::new(region(GGTT_BYTES));
    let owner = u64::from(function.number()) << 2;
    (0..LOCAL as u64 >> 12).for_each(|page| ggtt.set_entry(page, GgttEntry::from(page << 12 | owner | 3)));
    let vf = VfMemory { local: region(LOCAL), ggtt: None };
    let memory = Memory::new(XE_HPG.page_tables, region(2 * LOCAL), ggtt, Arc::new(NullHost)).with_vfs(vec![vf]);
    let put = |at: u64, value: u64| memory.write_bar(Function::PF, at, &value.to_le_bytes());
    let put32 = |at: u64, value: u32| memory.write_bar(Function::PF, at, &value.to_le_bytes());
    // Before the contents: a frame that is assigned to a VF reads zeros.
    if function.is_vf() {
        put32(LMTT + 4 * u64::from(function.number()), ((LMTT >> 16) as u32 + 1) << 4 | 1);
        put32(LMTT + 0x1_0000, 1);
        memory.set_lmem_cfg(LMTT_VALID | (LMTT >> 16) as u32);
        memory.set_quota(function, LOCAL as u64);
        memory.adopt_lmtt();
    }
    put(ROOT, 0x2000 | PRESENT);
    put(0x2000, 0x3000 | PRESENT);
    put(0x3000, 0x4000 | PRESENT);
    (0..512).for_each(|page| put(0x4000 + page * 8, page << 12 | LOCAL_PAGE | PRESENT));
    let put_all = |at: u64, dwords: &[u32]| (at..).step_by(4).zip(dwords).for_each(|(at, dword)| put32(at, *dword));
    let start = batch_buffer_start(Process(BATCH));
    let stores = (0..STORES).flat_map(|n| store_data_imm(Process(store(n)), n as u32));
    put_all(BATCH, &stores.chain(start).collect::<Vec<_>>());
    put_all(CONTEXT, &start);
    for (n, dword) in (0u64..).zip(XE_HPG.blank_image()) {
        put32(IMAGE + n * 4, dword);
    }
    for (dword, value) in REGISTERS {
        put32(IMAGE + dword * 4, value);
    }
    let profile: CardProfile = toml::from_str(include_str!("../configs/flex170.toml")).expect("a card");
    let gt = Gt::new(&profile, memory, Arc::new(NullHost), Arc::new(ManualClock::default()));
    let mut engine = Engine::new(&XE_HPG, XE_HPG.engines.find(EngineClass::Copy, 0).expect("an engine"));
    let descriptor = PPHWSP | DESCRIPTOR;
    engine.load(&gt, Load { function, submitter: Submitter::Guc, context: 1, descriptor, members: 0 });
    (gt, engine)
}

/// Address of a store of the batch.
fn store(n: u64) -> u64 {
    DATA + n * 16
}

/// The last store of the batch is checked in the function's BAR. The stores of a VF are not in the PF's memory.
fn run(function: Function, steps: u32) {
    let (gt, mut engine) = card(function);
    for _ in 0..steps {
        assert_eq!(engine.step(&gt, STEP_BUDGET), Outcome::More);
    }
    let last = |function| {
        let mut bytes = [0; 4];
        gt.memory.read_bar(function, store(STORES - 1), &mut bytes);
        u64::from(u32::from_le_bytes(bytes))
    };
    assert_eq!(last(function), STORES - 1);
    if function.is_vf() {
        let bytes: u32 = gt.memory.local().slice(store(STORES - 1), 4).expect("a dword").read_obj(0).expect("a dword");
        assert_eq!(bytes, 0);
    }
}

fn main() {
    measure::commands(
        STEP_BUDGET,
        &[
            Command {
                name: "one MI_STORE_DATA_IMM of the PF",
                target: Some(150),
                run: &|steps| run(Function::PF, steps),
            },
            Command {
                name: "one MI_STORE_DATA_IMM of a VF, in the VF's local memory",
                target: None,
                run: &|steps| run(Function::new(1).unwrap(), steps),
            },
        ],
    );
}
