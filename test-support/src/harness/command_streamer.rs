// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harness of the command streamer. The input becomes commands for one engine, in the ring or in a batch,
//! privileged or not, of the PF or a VF. The commands must not violate isolation, and the engine must execute work
//! afterwards.
//!
//! Byte 0 of the input selects the engine and the kind of input, byte 1 the function, the privilege of the commands and
//! the submission path, byte 2 the preemption interval. The other bytes are raw dwords, or choices for the differential
//! test's grammar. Generated commands either have bits flipped, or their result is compared with the reference.

use std::sync::Mutex;

use arctic_device_model::generation::XE_HPG;
use arctic_device_model::sync::IgnorePoison;
use arctic_device_model::topology::{EngineClass, EngineId};

use crate::bytes::Bytes;
use crate::differential::compare::{Worlds, compare};
use crate::differential::grammar::{Case, batch_address};
use crate::differential::initial::{CANARY, initial_local};
use crate::differential::layout::*;
use crate::differential::minimise::minimise;
use crate::differential::world::{FinalState, STEP, Stop, TIMEOUT, Work, World};
use crate::mi::{self, At, Global, Process};

/// Maximum number of input bytes that are used; further bytes are ignored.
const MOST: usize = 4096;

static WORLDS: Mutex<Option<Worlds>> = Mutex::new(None);

/// Location of the commands, which determines their privilege.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Ring,
    Privileged,
    User,
}

/// Runs one input; panics if an invariant is violated.
pub fn run(input: &[u8]) {
    outcome(input);
}

/// Like [`run`]; returns the state after the commands, or `None` if the input contains no commands.
pub fn outcome(input: &[u8]) -> Option<FinalState> {
    let input = &input[..input.len().min(MOST)];
    let [kind, requester, often, rest @ ..] = input else { return None };
    let class = EngineClass::BY_GUC[usize::from(kind & 7) % EngineClass::BY_GUC.len()];
    let instances: Vec<EngineId> =
        XE_HPG.engines.all().filter(|engine| XE_HPG.engines.info(*engine).class == class).collect();
    let engine = instances[usize::from(kind >> 5) % instances.len()];
    let vf = requester & 1 != 0;
    let interruptions = (often & 1 != 0).then_some(u32::from(often >> 1) % 32 + 1);
    let mut worlds = WORLDS.lock().ignore_poison();
    let worlds = worlds.get_or_insert_with(Worlds::default);
    worlds.of(vf).timeout = TIMEOUT;
    if kind >> 3 & 3 == 3 {
        let case = Case::generate(&mut Bytes(rest), engine, vf, interruptions, 24);
        let comparison = compare(worlds, &case);
        if let Some(found) = comparison.disagreement {
            let (small, found) = minimise(worlds, case, found);
            panic!("{}{found}", small.disassembled());
        }
        return Some(comparison.engine);
    }
    let place = [Place::Ring, Place::Privileged, Place::User, Place::User][usize::from(requester >> 1 & 3)];
    let words: Vec<u32> = match kind >> 3 & 3 {
        // Raw dwords.
        0 => rest.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect(),
        // Commands of the grammar, with some bits flipped.
        _ => {
            let (flips, choices) = rest.split_at(rest.len().min(8));
            let mut case = Case::generate(&mut Bytes(choices), engine, vf, None, 24);
            let mut words =
                case.batches.iter_mut().find(|batch| batch.len() > 2).map_or(case.ring, std::mem::take).concat();
            for flip in flips.chunks_exact(2) {
                let at = usize::from(flip[0]);
                if let Some(word) = words.get_mut(at) {
                    *word ^= 1 << (flip[1] & 31);
                }
            }
            words
        }
    };
    let execlist = !vf && requester >> 3 & 1 != 0;
    Some(raw(
        worlds.of(vf),
        place,
        words,
        Work { engine, head: 0, ring: Vec::new(), batches: Vec::new(), fill: 1, interruptions, execlist },
    ))
}

/// Executes `words` and checks the memory that they must not change.
fn raw(world: &mut World, place: Place, mut words: Vec<u32>, work: Work) -> FinalState {
    words.truncate(PAGE as usize / 4 - 4);
    let mut batches = vec![vec![mi::BATCH_BUFFER_END]; BATCH_COUNT];
    let ring = match place {
        Place::Ring => {
            words.resize(words.len().next_multiple_of(2), 0);
            words.clone()
        }
        Place::Privileged | Place::User => {
            batches[0] = words.clone();
            batches[0].push(mi::BATCH_BUFFER_END);
            let start = mi::batch_buffer_start(At::new(place == Place::Privileged, batch_address(0)));
            mi::padded(&start)
        }
    };
    let work = Work { ring, batches, ..work };
    // Bounds the execution time of endless loops.
    world.timeout = 4 * STEP;
    let state = world.run(&work, &[]);
    let is_privileged = place != Place::User && !world.function.is_vf();
    if !is_privileged {
        check_isolation(world, &work, place, &state, &words);
    } else {
        world.power_cycle();
    }
    check_works(world, work.engine);
    state
}

/// Checks that commands without privilege have changed only memory that they may write, and have read no canary. `words` are the
/// dwords of the input: commands that contain the canary may write it.
pub(super) fn check_isolation(world: &World, work: &Work, place: Place, state: &FinalState, words: &[u32]) {
    check_memory(world);
    check_state(work, place, state);
    let halves = [CANARY as u32, (CANARY >> 32) as u32];
    if !words.iter().any(|word| halves.contains(word)) {
        let seen = |bytes: &[u8]| bytes.chunks_exact(8).any(|qword| qword == CANARY.to_le_bytes());
        let memory = &state.memory;
        let parts = [&memory.local[PPHWSP as usize..], &memory.ram, &memory.remote];
        assert!(!parts.into_iter().any(seen), "another function's memory was read");
    }
}

/// Checks memory that only the PF's kernel driver may change.
fn check_memory(world: &World) {
    if let Err(harm) = world.unharmed() {
        panic!("{harm}");
    }
}

/// Checks that page tables are unchanged, and that only privileged commands changed the ring, the status page and GGTT
/// data.
fn check_state(work: &Work, place: Place, state: &FinalState) {
    let (before, after) = (initial_local(work), &state.memory.local);
    let unchanged = |from: u64, to: u64| after[from as usize..to as usize] == before[from as usize..to as usize];
    assert!(unchanged(ROOT, BATCHES), "a page table was written");
    if place == Place::User {
        assert!(unchanged(RING, PPHWSP), "a user wrote the ring");
        assert!(unchanged(HWSP, PPGTT_DATA), "a user wrote GGTT memory");
        assert!(unchanged(GGTT_BEHIND_NULL, READ_ONLY + PAGE), "a user wrote a NULL or read-only page");
    }
}

/// Checks that the engine completes a context with two stores after a reset.
pub(super) fn check_works(world: &mut World, engine: EngineId) {
    let at = BASE + at::DATA * PAGE;
    let ring = [Process(at), Global(at + 8)].map(|at| mi::store_data_imm(at, 0x600d_600d)).concat();
    let work = Work { engine, head: 0, ring, batches: Vec::new(), fill: 1, interruptions: None, execlist: false };
    let state = world.run(&work, &[]);
    assert_eq!(state.stop, Stop::Complete, "the engine does not complete work after a reset");
    for at in [PPGTT_DATA, GGTT_DATA + 8] {
        assert_eq!(state.memory.local[at as usize..at as usize + 4], 0x600d_600du32.to_le_bytes(), "a store is lost");
    }
}
