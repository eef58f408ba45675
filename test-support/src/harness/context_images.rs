// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harness of context images. An engine restores an image that it saved earlier, with some dwords changed, and
//! executes a few commands. Each preemption saves the image and restores it again.
//!
//! Byte 0 of the input selects the engine and the function, byte 1 the preemption interval and how the context is
//! submitted, byte 2 the number of image dwords to change. The following bytes select those dwords, then the commands.

use std::collections::BTreeMap;
use std::sync::Mutex;

use arctic_device_model::generation::XE_HPG;
use arctic_device_model::sync::IgnorePoison;
use arctic_device_model::topology::{EngineClass, EngineId};

use crate::bytes::Bytes;
use crate::differential::grammar::{Case, batch_address};
use crate::differential::initial::CANARY;
use crate::differential::layout::*;
use crate::differential::world::{STEP, Stop, TIMEOUT, Work, World};
use crate::mi::{self, Global, Process};

/// Maximum number of input bytes that are used; further bytes are ignored.
const MOST: usize = 2048;

// Dword offsets of ring context register values in the image (V8-046).
const CONTEXT_CONTROL: usize = 0x3;
const RING_HEAD: usize = 0x5;
const RING_TAIL: usize = 0x7;

/// A card, and for each engine the image that it saved of a context without commands.
struct Place {
    world: World,
    saved: BTreeMap<usize, Vec<u32>>,
}

static PLACES: Mutex<Vec<Place>> = Mutex::new(Vec::new());

impl Place {
    fn new(vf: bool) -> Place {
        Place { world: World::new(vf), saved: BTreeMap::new() }
    }

    /// Returns the image that `engine` saves of a context without commands.
    fn saved(&mut self, engine: EngineId) -> Vec<u32> {
        let world = &mut self.world;
        let save = |world: &mut World| {
            world.timeout = TIMEOUT;
            let state = world.run(&job(engine, vec![0; 2], None), &[]);
            assert_eq!(state.stop, Stop::Complete);
            let image = world.image_now();
            // The image ends with MI_BATCH_BUFFER_END.
            let end = image.iter().position(|word| word >> 23 == 0x0a).map_or(image.len(), |end| end + 1);
            image[..end].to_vec()
        };
        self.saved.entry(engine.index()).or_insert_with(|| save(world)).clone()
    }
}

fn job(engine: EngineId, ring: Vec<u32>, interruptions: Option<u32>) -> Work {
    Work { engine, head: 0, ring, batches: Vec::new(), fill: 1, interruptions, execlist: false }
}

/// Returns a dword that an attacker might write in place of `old`.
fn other(bytes: &mut Bytes<'_>, old: u32) -> u32 {
    match bytes.below(8) {
        0 => bytes.dword(),
        1 | 2 => old ^ 1 << bytes.below(32),
        3 => bytes.edge() as u32,
        // An address in the GGTT or the PPGTT.
        4 => (BASE + u64::from(bytes.byte() % 0x40) * PAGE) as u32 | u32::from(bytes.byte()),
        // A page of local memory, up to one page beyond [`LOCAL_BYTES`].
        5 => u32::from(bytes.byte() % 0x31) * PAGE as u32 | u32::from(bytes.byte() & 3),
        // MI_LOAD_REGISTER_IMM with another length or other flags.
        6 => 0x11 << 24 | u32::from(bytes.byte() & 0x19) << 16 | u32::from(bytes.byte()) | 0x1000,
        // A command header with an arbitrary opcode.
        _ => u32::from(bytes.byte()) << 23 | u32::from(bytes.word()),
    }
}

/// Runs one input; panics if an invariant is violated.
pub fn run(input: &[u8]) {
    let input = &input[..input.len().min(MOST)];
    let [requester, how, changes, rest @ ..] = input else { return };
    let mut bytes = Bytes(rest);
    let vf = requester & 0x80 != 0;
    let engines: Vec<EngineId> = EngineClass::BY_GUC
        .iter()
        .filter_map(|class| XE_HPG.engines.all().find(|id| XE_HPG.engines.info(*id).class == *class))
        .collect();
    let engine = engines[usize::from(requester & 0x7f) % engines.len()];
    let interruptions = (how & 1 != 0).then_some(u32::from(how >> 1 & 7) + 1);
    let execlist = !vf && how & 0x10 != 0;
    let mut places = PLACES.lock().ignore_poison();
    if places.is_empty() {
        places.extend([false, true].map(Place::new));
    }
    let place = &mut places[usize::from(vf)];
    let mut image = place.saved(engine);
    let mut changed = Vec::new();
    for _ in 0..changes % 24 {
        // One third of the changes are limited to the first 64 dwords, which contain the ring context.
        let at = match bytes.below(3) {
            0 => usize::from(bytes.byte()) % 0x40,
            _ => usize::from(bytes.word()),
        } % image.len();
        changed.push((at, other(&mut bytes, image[at])));
    }
    let mut case = Case::generate(&mut bytes, engine, vf, None, 12);
    let ring: Vec<u32> = match how & 0x20 != 0 {
        true => case.ring.concat(),
        false => {
            let batch = case.batches.iter_mut().find(|batch| batch.len() > 2);
            batch.map_or_else(Vec::new, std::mem::take).concat()
        }
    };
    let mut work = job(engine, ring, interruptions);
    work.execlist = execlist;
    if how & 0x40 != 0 {
        work.batches = vec![std::mem::take(&mut work.ring)];
        work.batches[0].push(mi::BATCH_BUFFER_END);
        work.ring = mi::padded(&mi::batch_buffer_start(Process(batch_address(0))));
    }
    work.ring.truncate(PAGE as usize / 4);
    work.ring.resize(work.ring.len().next_multiple_of(2), 0);
    work.batches.iter_mut().for_each(|batch| batch.truncate(PAGE as usize / 4));
    image[RING_HEAD] = 0;
    image[RING_TAIL] = work.ring.len() as u32 * 4;
    if how & 0x80 != 0 {
        // The value that a driver writes to an image that no engine has saved yet.
        image[CONTEXT_CONTROL] = 0x0009_0009;
    }
    for (at, value) in &changed {
        image[*at] = *value;
    }
    let world = &mut place.world;
    world.timeout = STEP;
    let state = world.run_with_image(&work, &image, &[]);
    if vf {
        if let Err(harm) = world.neighbours_unharmed() {
            panic!("{harm}");
        }
        // Images or commands that contain the canary may write it.
        let halves = [CANARY as u32, (CANARY >> 32) as u32];
        let given = image.iter().chain(&work.ring).chain(work.batches.iter().flatten());
        if !given.into_iter().any(|word| halves.contains(word)) {
            let seen = |bytes: &[u8]| bytes.chunks_exact(8).any(|qword| qword == CANARY.to_le_bytes());
            let saved: Vec<u8> = world.image_now().iter().flat_map(|word| word.to_le_bytes()).collect();
            let parts = [&state.memory.local, &state.memory.ram, &state.memory.remote, &saved];
            assert!(!parts.into_iter().any(|part| seen(part)), "another function's memory was read");
        }
    }
    // The context may have changed any state of its function.
    world.power_cycle();
    works(world, engine);
}

/// Checks that the engine completes a context with two stores.
fn works(world: &mut World, engine: EngineId) {
    let at = BASE + at::DATA * PAGE;
    let ring = [Process(at), Global(at + 8)].map(|at| mi::store_data_imm(at, 0x600d_600d)).concat();
    let state = world.run(&job(engine, ring, None), &[]);
    assert_eq!(state.stop, Stop::Complete, "the engine does not complete work after a reset");
    for at in [PPGTT_DATA, GGTT_DATA + 8] {
        assert_eq!(state.memory.local[at as usize..at as usize + 4], 0x600d_600du32.to_le_bytes(), "a store is lost");
    }
}
