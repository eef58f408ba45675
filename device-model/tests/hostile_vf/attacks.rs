// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operations of the hostile function.

use arctic_device_model::card::{GGTT_WINDOW, GTTMMADR_BYTES};
use arctic_device_model::doorbell;
use arctic_device_model::guc::actions::ACTIONS;
use arctic_device_model::topology::EngineClass;
use arctic_test_support::grammar;
use arctic_test_support::mi::{self, Process, Reg};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::canary;
use arctic_test_support::{context, ct};

use crate::{aim, kernels};

/// Returns `word`, or its complement if it equals a canary, so that a canary found later must have been read from
/// another function.
fn without_canary(word: u32) -> u32 {
    if canary::owner(word).is_some() { !word } else { word }
}

pub fn without_canaries(words: Vec<u32>) -> Vec<u32> {
    words.into_iter().map(without_canary).collect()
}

/// Returns a dword that may be an ID, an address, or any value.
fn operand(random: &mut Random) -> u32 {
    without_canary(match random.below(6) {
        0 => random.dword(),
        1 => random.below(70) as u32,
        2 => random.below(256) as u32,
        3 => aim::foreign_global(random) as u32,
        4 => PLACES.global_address(random) as u32,
        _ => 0,
    })
}

/// Enables the attacker's rings again if the GuC ignores them after an error.
fn ready(bench: &mut VfBench) {
    bench.work(4);
    if bench.attacker.rings_stopped() {
        bench.attacker_up();
    }
}

/// Submits a context with an image, a ring and a batch of random contents, or with commands that target other
/// functions.
fn context(bench: &mut VfBench, random: &mut Random, registers: &[u32]) {
    ready(bench);
    let vf = &mut bench.attacker;
    let id = random.below(u64::from(CONTEXTS)) as u32;
    let class = random.of(&EngineClass::BY_GUC);
    let words = |random: &mut Random, most| match random.below(3) {
        0 => without_canaries(PLACES.stream(random, class, registers, most)),
        _ => without_canaries(aim::stream(random, class, registers)),
    };
    let ring = if random.one_in(2) { words(random, 512) } else { vf.jump(id).to_vec() };
    let mut batch = words(random, 1024);
    batch.push(mi::BATCH_BUFFER_END);
    vf.request(0x4503, &[id]);
    vf.write_words(Vf::batch(id), &batch);
    vf.write_context(id, 0, &ring);
    let image = Vf::image(id, 0) + 0x1000;
    while random.one_in(5) {
        // Dwords of the ring, batch, workaround batches, page tables, and interrupt addresses.
        let at =
            random.of(&[3, 5, 7, 9, 0xb, 0xd, 0xf, 0x11, 0x13, 0x15, 0x31, 0x33, 0x50, 0x52, 0x57, 0x59, 0x63, 0x65]);
        let value = match random.below(4) {
            0 => PLACES.global_address(random) as u32 | 1,
            1 => aim::foreign_global(random) as u32 & !0xfff | 1,
            2 => aim::window(random) as u32 & !0xfff | 1,
            _ => operand(random),
        };
        vf.poke(image + at * 4, value);
        if at >= 0x50 {
            vf.poke(image + 0x50 * 4, mi::load_register_mem(Reg::Mmio(0), Process(0))[0]);
        }
    }
    let descriptor = match random.below(4) {
        0 => context::descriptor(aim::foreign_global(random) & 0xffff_f000),
        1 if random.one_in(2) => context::descriptor(aim::window(random) & 0xffff_f000),
        2 if random.one_in(4) => operand(random),
        _ => vf.descriptor(id, 0),
    };
    let class = if random.one_in(20) { random.dword() } else { u32::from(class.guc()) };
    let mask = if random.one_in(10) { random.dword() } else { 1 };
    let high = if random.one_in(8) { random.dword() } else { 0 };
    let name = if random.one_in(10) { operand(random) } else { id };
    vf.request(0x4502, &[1, name, class, mask, 0, 0, 0, 0, 0, descriptor, high]);
    if random.one_in(4) {
        let (quantum, timeout) = (random.dword(), random.dword());
        vf.request(0x100b, &[id, 0x2003_0001, random.below(5) as u32, 0x2001_0001, quantum, 0x2002_0001, timeout]);
    }
    vf.request(0x1001, &[id, 1]);
    bench.work(random.below(12) as u32);
    if random.one_in(3) {
        bench.attacker.request(0x4503, &[id]);
    }
}

/// Submits a parallel context with random contents and addresses of its work queue.
fn parallel(bench: &mut VfBench, random: &mut Random, registers: &[u32]) {
    let vf = &mut bench.attacker;
    let id = random.below(u64::from(CONTEXTS)) as u32;
    let width = 1 + random.below(4) as u32;
    vf.request(0x4503, &[id]);
    for member in 0..width {
        let words = without_canaries(aim::stream(random, EngineClass::VideoDecode, registers));
        vf.write_context(id, member, &words);
    }
    let bytes = random.of(&[0x1000, 0x800, 64, 0x1_0000, 4]);
    let items = grammar::work_items(random, id, width);
    let tail = if random.one_in(4) { random.dword() } else { items.len() as u32 * 4 };
    let head = if random.one_in(4) { random.dword() } else { 0 };
    vf.write_words(at::QUEUES + 0x1000, &without_canaries(items));
    vf.write_words(at::QUEUES, &[head, tail, 0, 0]);
    let (mut descriptor, mut ring) = (QUEUES as u32, QUEUES as u32 + 0x1000);
    match random.below(4) {
        0 => descriptor = aim::foreign_global(random) as u32,
        1 => ring = aim::foreign_global(random) as u32,
        2 => (descriptor, ring) = (aim::window(random) as u32, aim::window(random) as u32),
        _ => {}
    }
    let mut payload = vec![1, id, 3, 1 + random.below(3) as u32, descriptor, 0, ring, 0, bytes, width];
    for member in 0..width {
        let image = if random.one_in(6) { aim::foreign_global(random) } else { PLACES.image(id, member) };
        payload.extend([context::descriptor(image & 0xffff_f000), 0]);
    }
    if random.one_in(3) {
        let at = random.below(payload.len() as u64) as usize;
        payload[at] = operand(random);
    }
    vf.request(0x4601, &payload);
    vf.request(0x1001, &[id, 1]);
    for _ in 0..random.below(8) {
        vf.request(0x1000, &[id]);
        vf.poke(at::QUEUES + 12, 0);
    }
}

/// Sends a message for a random action, including PF-only ones, mostly with a valid length.
fn message(bench: &mut VfBench, random: &mut Random) {
    let action = &ACTIONS[random.below(ACTIONS.len() as u64) as usize];
    let len = grammar::payload_len(random, action.length);
    let mut payload: Vec<u32> = (0..len).map(|_| operand(random)).collect();
    if random.one_in(8) {
        payload.fill(u32::MAX);
    }
    let code = if random.one_in(10) { random.below(0x1_0000) as u32 } else { u32::from(action.code) };
    let mut words = vec![(random.any() as u32) << 16 | (payload.len() as u32 + 1), random.of(&[0, 1, 2]) << 28 | code];
    words.extend(payload);
    if random.one_in(10) {
        words[0] = without_canary(random.dword());
    }
    bench.attacker.send(&words);
}

/// Sends actions that affect resources: IDs of other functions' contexts, quotas, VF state changes, messages to the PF.
fn modify(bench: &mut VfBench, random: &mut Random) {
    let victim = u32::from(random.of(&VICTIMS).number());
    let id = random.of(&[0, 1, 63, 64, 127, 128, 191, 192, 65534, 65535, 65536, u32::MAX, 1024]);
    let vf = &mut bench.attacker;
    match random.below(10) {
        0 => vf.request(0x1000, &[id]),
        1 => vf.request(0x1001, &[id, random.below(2) as u32]),
        2 => vf.request(0x4503, &[id]),
        3 => vf.request(0x5506, &[victim, 1 + random.below(5) as u32]),
        4 => vf.request(0x5503, &[victim, 0, 0, 0]),
        5 => vf.request(0x5502, &[SCRATCH as u32, 0, 2]),
        6 => vf.request(0x5101, &[victim, 1, 0x9000_0001]),
        7 => {
            for n in 0..100 {
                vf.request(0x5103, &[n, random.of(&[0x1, 0x101, 0x7fff]), random.dword()]);
            }
        }
        8 => vf.request(0x7002, &[1, 1 << 31]),
        _ => vf.request(0x0010, &[id, random.below(10) as u32, 0x40_0000 + random.below(1024) as u32 * 4096, 0, 0]),
    }
}

/// Uses the mailbox to set addresses of rings and interrupts outside the attacker's range.
fn mail(bench: &mut VfBench, random: &mut Random) {
    let vf = &mut bench.attacker;
    match random.below(6) {
        0 | 1 => {
            let key = random.of(&ct::self_cfg::ADDRESSES);
            let address = match random.below(3) {
                0 => aim::foreign_global(random),
                1 => aim::window(random),
                _ => base(ATTACKER) + GLOBAL - random.below(0x1000),
            };
            vf.mail(&ct::configure(key, address & 0xffff_ffff));
            vf.mail(&ct::DISABLE);
            vf.mail(&ct::ENABLE);
        }
        2 => {
            let key = random.of(&ct::self_cfg::LENGTHS);
            vf.mail(&ct::configure(key, u64::from(random.dword() & !0xfff)));
            vf.mail(&ct::ENABLE);
        }
        3 => {
            vf.mail(&[0x4100, aim::foreign_global(random) as u32, 0, 0x1000]);
        }
        4 => {
            vf.mail(&[0x5509, random.dword(), 0, 0]);
        }
        _ => {
            let any = random.any() as u32;
            let code = random.of(&[0x0508, 0x4509, 0x4100, 0x5507, 0x5500, 0x5508, 0x550f, any]);
            vf.mail(&[without_canary(code), operand(random), operand(random), operand(random)]);
        }
    }
}

/// Accesses registers, GGTT entries and doorbells through the BAR with any width.
fn access(bench: &VfBench, random: &mut Random, registers: &[u32]) {
    for _ in 0..64 {
        let offset = match random.below(5) {
            0 => random.edge(),
            1 => u64::from(random.of(registers)),
            2 => doorbell::WINDOW + random.below(4 << 20),
            3 => GGTT_WINDOW + (aim::foreign_global(random) >> 12) * 8 + random.below(8),
            _ => random.below(GTTMMADR_BYTES + 64),
        };
        let width = random.of(&[1, 2, 4, 8, 3, 5]);
        let mut data = u64::from(operand(random)).to_le_bytes();
        if offset < GGTT_WINDOW || bench.attacker.table.is_none() || random.one_in(4) {
            bench.card.write_gttmmadr(ATTACKER, offset, &data[..width]);
        }
        bench.card.read_gttmmadr(ATTACKER, offset, &mut data[..width]);
        let offset = if random.one_in(2) { random.below(BAR) } else { aim::foreign_local(random) };
        bench.card.write_local(ATTACKER, offset, &data[..width]);
    }
}

/// Writes forged GGTT and PPGTT entries.
fn forge(bench: &VfBench, random: &mut Random) {
    let vf = &bench.attacker;
    for _ in 0..16 {
        let index = match random.below(4) {
            0 => aim::foreign_global(random) >> 12,
            1 => random.below(1 << 20),
            _ => aim::window(random) >> 12,
        };
        vf.set_global(index, aim::entry(random));
    }
    for _ in 0..random.below(4) {
        let entry = at::TABLES + random.below(0x8000 / 8) * 8;
        vf.poke64(entry, aim::process_entry(random));
    }
    if random.one_in(4) {
        vf.write_words(at::TABLES, &[0; 0x400]);
        vf.poke64(at::TABLES, (at::TABLES + 0x1000) | 3);
    }
}

/// One operation of a hostile function.
pub fn attack(bench: &mut VfBench, random: &mut Random, registers: &[u32]) {
    match random.below(36) {
        0..14 => context(bench, random, registers),
        14 => parallel(bench, random, registers),
        15 | 16 => message(bench, random),
        17 => modify(bench, random),
        18 => mail(bench, random),
        19 => access(bench, random, registers),
        20..24 => forge(bench, random),
        24 => {
            let word = without_canary(random.dword());
            bench.attacker.poke(random.of(&[0, 4, 8, 0x800, 0x804, 0x808]), word);
        }
        25 if random.one_in(2) => {
            bench.card.reset_function(ATTACKER);
            if random.one_in(2) {
                bench.attacker_up();
            }
        }
        26 => bench.attacker.consume(),
        32..36 => {
            ready(bench);
            kernels::attack(bench, random);
        }
        27 => bench.pass(random.below(50_000_000)),
        28 if random.one_in(2) => {
            bench.flr();
        }
        _ => drop(bench.work(random.below(40) as u32)),
    }
}
