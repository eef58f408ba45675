// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The members of a parallel context advance together. xe relies on it: each member writes the user fence of a job after
//! its own batch, without a handshake (xe: emit_job_gen12_video), and the first one allows the user to unmap what the
//! others still execute.

use arctic_mi::{self as mi, BATCH_BUFFER_END, Global};

use super::*;
use crate::engine::{Load, Submitter};
use crate::generation::XE_HPG;
use crate::topology::EngineId;

/// GGTT addresses that are mapped one to one to local memory.
const MAPPED: std::ops::Range<u64> = 0x40_0000..0x60_0000;
/// Images, rings and batches of the members, each at a multiple of [`MEMBER`].
const IMAGES: u64 = 0x40_0000;
const RINGS: u64 = 0x44_0000;
const BATCHES: u64 = 0x48_0000;
const MEMBER: u64 = 0x1_0000;
/// What member n signals after its batch, and what it saw of the other's signal: in its batch, in its ring before its
/// own signal, and at its end.
const SIGNALS: u64 = 0x50_0000;
const SEEN: u64 = 0x50_0100;

/// Runs two members with batches of `commands` stores each. Returns what each has seen.
fn run(engines: [EngineId; 2], commands: u32, members: u32) -> [[u32; 3]; 2] {
    let (card, _) = card();
    let gt = card.gt();
    for page in MAPPED.step_by(4096) {
        gt.memory.ggtt().set_entry(page >> 12, GgttEntry::from(page | 3));
    }
    let cell = |at: u64| gt.memory.local().slice(at, 4).unwrap();
    let write = |at: u64, words: &[u32]| {
        for (n, word) in (0u64..).zip(words) {
            cell(at + n * 4).store(*word, 0, Ordering::SeqCst).unwrap();
        }
    };
    for (n, engine) in (0u64..).zip(engines) {
        let seen = |at: u64| mi::copy_mem_mem(Global(SEEN + n * 16 + at), Global(SIGNALS + (1 - n) * 4));
        let (image, ring) = (IMAGES + n * MEMBER, RINGS + n * MEMBER);
        let work = (0..commands).flat_map(|value| mi::store_data_imm(Global(SIGNALS + 0x10 + n * 4), value));
        write(BATCHES + n * MEMBER, &work.chain(seen(0)).chain([BATCH_BUFFER_END]).collect::<Vec<_>>());
        let commands = [
            &mi::batch_buffer_start(Global(BATCHES + n * MEMBER))[..],
            &seen(4),
            &mi::store_data_imm(Global(SIGNALS + n * 4), 1),
            &seen(8),
        ];
        let commands = mi::padded(&commands.concat());
        write(ring, &commands);
        write(image + 0x1000, &XE_HPG.blank_image());
        let tail = u32::try_from(commands.len() * 4).unwrap();
        for (dword, value) in [(3, 0x0009_0009), (5, 0), (7, tail), (9, ring as u32), (0xb, 1)] {
            write(image + 0x1000 + dword * 4, &[value]);
        }
        let load = Load {
            function: Function::PF,
            submitter: Submitter::Guc,
            context: n as u32 + 1,
            descriptor: image | 0x19,
            members,
        };
        card.engines.lock(engine).load(gt, load);
        card.engines.set_runnable(engine, true);
    }
    for _ in 0..1000 {
        card.step();
    }
    let value = |at: u64| cell(at).load::<u32>(0, Ordering::SeqCst).unwrap();
    assert_eq!([0, 4].map(|at| value(SIGNALS + at)), [1, 1], "both members are complete");
    [0, 16].map(|member| [0, 4, 8].map(|at| value(SEEN + member + at)))
}

#[test]
fn no_member_of_a_parallel_context_signals_before_the_batches_of_all_have_ended() {
    for names in [["vcs0", "vcs2"], ["vecs0", "vecs1"]] {
        let engines = names.map(|name| XE_HPG.engines.named(name).unwrap());
        let members = engines.iter().fold(0, |set, engine| set | engine.bit());
        for commands in [1, 100, 2500] {
            let [first, second] = run(engines, commands, members);
            assert_eq!([first, second], [[0, 0, 1]; 2], "{names:?}, {commands} commands");
        }
        let [_, second] = run(engines, 1, 0);
        assert_eq!(second, [1, 1, 1], "separate contexts: the first engine's is complete before the second's begins");
    }
}
