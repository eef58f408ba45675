// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Stale translations: entries that survive an unmap, a reset or new provisioning.

use arctic_device_model::gpu::Gpu;
use arctic_device_model::host::Function;
use arctic_device_model::profile::provision::Quota;
use arctic_device_model::topology::EngineClass;
use arctic_test_support::actions;
use arctic_test_support::mi::{self, Compare, Global, Process};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::world::read;
use vm_memory::Bytes;

/// PPGTT page that the batch writes. `OLD` and `NEW` are the local memory offsets to which it is mapped before and
/// after the change.
const PAGE: u64 = 5;
const OLD: u64 = at::DATA + PAGE * 4096;
const NEW: u64 = at::DATA + 0x8_0000;
const GATE: u64 = at::SCRATCH + 0x100;
const ID: u32 = 2;

fn entry(page: u64) -> u64 {
    at::TABLES + 3 * 0x1000 + page * 8
}

/// Submits a batch that stores to the page, waits for the semaphore at `GATE`, and stores to the page's next dword.
/// Returns when the batch waits.
fn at_the_gate(bench: &mut VfBench) {
    let attacker = &mut bench.attacker;
    let gate = attacker.process(GATE);
    let mut batch = mi::store_data_imm(Process(PAGE * 4096), 1).to_vec();
    batch.extend(mi::semaphore_wait(gate, Compare::Equal, 1));
    batch.extend(mi::store_data_imm(Process(PAGE * 4096 + 4), 2));
    batch.push(mi::BATCH_BUFFER_END);
    attacker.write_words(Vf::batch(ID), &batch);
    for at in [OLD, OLD + 4, NEW, NEW + 4, GATE] {
        attacker.poke(at, 0);
    }
    let ring = attacker.jump(ID);
    attacker.submit(ID, EngineClass::Copy, &ring);
    bench.until("the first store of the batch", 1000, |bench| bench.attacker.peek(OLD) == 1);
    bench.work(10);
}

fn dwords(bench: &VfBench) -> [u32; 4] {
    [OLD, OLD + 4, NEW, NEW + 4].map(|at| bench.attacker.peek(at))
}

/// CVE-2022-0330: memory was freed while a TLB still had a translation to it. Guard: `Memory::invalidate`, after which
/// no engine uses a cached translation, even within a batch.
#[test]
fn a_page_that_has_been_unmapped_is_not_written() {
    for moved in [true, false] {
        let mut bench = VfBench::new(true);
        bench.attacker_up();
        at_the_gate(&mut bench);
        bench.attacker.poke64(entry(PAGE), if moved { NEW | LOCAL_PAGE } else { 0 });
        bench.attacker.consume();
        bench.attacker.request(actions::TLB_INVALIDATION, &[77, actions::INVALIDATE_FLUSH]);
        bench.until("the invalidation", 1000, |bench| bench.attacker.peek(0x800) != bench.attacker.peek(0x804));
        bench.attacker.poke(GATE, 1);
        bench.work(200);
        let expected = if moved { [1, 0, 0, 2] } else { [1, 0, 0, 0] };
        assert_eq!(dwords(&bench), expected, "{moved}");
        let faults = bench.card.status().functions[ATTACKER.index()].cat_errors;
        assert_eq!(faults, Some(u64::from(!moved)), "faults of accesses without a translation");
    }
}

/// An FLR during a batch. The contexts and page tables of the next driver have the same addresses and other contents.
/// Guards: the FLR stops the context; `Memory::invalidate`.
#[test]
fn flr_drops_cached_translations_of_engines() {
    let mut bench = VfBench::new(true);
    bench.attacker_up();
    at_the_gate(&mut bench);
    bench.card.reset_function(ATTACKER);
    bench.attacker_up();
    // Signals the semaphore of the old batch, which no longer runs.
    bench.attacker.poke(GATE, 1);
    bench.work(60);
    assert_eq!(dwords(&bench), [0; 4], "the context still runs after its function's reset");
    bench.attacker.poke64(entry(PAGE), NEW | LOCAL_PAGE);
    let store = mi::store_data_imm(Process(PAGE * 4096), 3);
    let user = [&store[..], &[mi::BATCH_BUFFER_END]].concat();
    bench.attacker.write_words(Vf::batch(ID), &user);
    let ring = bench.attacker.jump(ID);
    bench.attacker.submit(ID, EngineClass::Copy, &ring);
    bench.until("the next driver's batch", 1000, |bench| bench.attacker.peek(NEW) == 3);
    assert_eq!(dwords(&bench), [0, 0, 3, 0]);
}

/// New provisioning during a batch assigns the attacker's frames to another VF. Guards: `Memory::set_quota` and
/// `set_lmem_cfg`, which invalidate translations; engines are stopped while frames are reassigned; contexts end.
#[test]
fn new_provisioning_invalidates_translations() {
    for (mapped, engine_idle) in [(true, false), (false, false), (true, true)] {
        let mut bench = VfBench::new(mapped);
        bench.attacker_up();
        if !engine_idle {
            at_the_gate(&mut bench);
        }
        let quota = |local: u64, ggtt: u64| Quota { local_memory: local, ggtt, ..QUOTA };
        // VF 1's new range includes frames of VF 2, the attacker.
        bench.card.provision(&[quota(8 << 20, GLOBAL), quota(2 << 20, GLOBAL), quota(2 << 20, GLOBAL)]).unwrap();
        let victim = &bench.victims[0];
        let secret = vec![0x5a; 8 << 20];
        victim.local.slice(0, secret.len()).unwrap().write_slice(&secret, 0).unwrap();
        bench.attacker.poke(GATE, 1);
        bench.work(200);
        assert_eq!(read(&bench.victims[0].local, 0, 8 << 20), secret, "mapped {mapped}");
        assert!(bench.card.status().engines.iter().all(|engine| engine.function.is_none()));
        assert_eq!(bench.card.status().functions[ATTACKER.index()].contexts, Some(0));
    }
}

/// LMEM_CFG changes during a batch, as when a PF driver reclaims a frame: the engine repeats the table walk. Guard:
/// `Memory::set_lmem_cfg`, which invalidates translations.
#[test]
fn a_frame_that_the_lmtt_no_longer_gives_is_not_written() {
    let mut bench = VfBench::new(false);
    bench.attacker_up();
    at_the_gate(&mut bench);
    let memory = &bench.card.gt().memory;
    let register = memory.lmem_cfg();
    // Without an LMTT directory no VF has local memory.
    bench.card.write_gttmmadr(Function::PF, 0xcf58, &0_u32.to_le_bytes());
    bench.attacker.poke(GATE, 1);
    bench.work(200);
    assert_eq!(bench.attacker.peek(OLD + 4), 0, "written to a reclaimed frame");
    assert_ne!(register, 0);
}

/// The PF assigns a GGTT page to another VF during a batch. Guard: `Ggtt::effective`, which is evaluated on each use;
/// GGTT entries are not cached.
#[test]
fn reassigned_ggtt_page_is_not_written() {
    for mapped in [true, false] {
        let mut bench = VfBench::new(mapped);
        bench.attacker_up();
        // Two stores to the page by GGTT address, with a semaphore wait between them.
        let base = bench.attacker.base();
        let mut ring = mi::store_data_imm(Global(base + OLD), 1).to_vec();
        ring.extend(mi::semaphore_wait(Global(base + GATE), Compare::Equal, 1));
        ring.extend(mi::store_data_imm(Global(base + OLD + 4), 2));
        [OLD, OLD + 4, GATE].into_iter().for_each(|at| bench.attacker.poke(at, 0));
        bench.attacker.submit(ID, EngineClass::Copy, &ring);
        bench.until("the first store of the ring", 1000, |bench| bench.attacker.peek(OLD) == 1);
        let index = (base + OLD) >> 12;
        let entry = bench.card.gt().memory.ggtt().entry(index).into_bits();
        let others = entry & !0xffc | u64::from(VICTIMS[0].number()) << 2;
        bench.card.write_gttmmadr(
            Function::PF,
            arctic_device_model::card::GGTT_WINDOW + index * 8,
            &others.to_le_bytes(),
        );
        bench.attacker.poke(GATE, 1);
        bench.work(200);
        assert_eq!(bench.attacker.peek(OLD + 4), 0, "mapped {mapped}");
        assert_eq!(bench.card.status().functions[ATTACKER.index()].cat_errors, Some(1));
    }
}
