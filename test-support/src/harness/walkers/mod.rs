// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harness of walkers: the input has the code of a kernel and chooses the walker that runs it, its state, its surfaces, and
//! how often its context leaves the engine. The kernel must not violate isolation, must not leave data for the next one, and the
//! engine must execute work afterwards.
//!
//! # Input
//! Five bytes of choices ([`Choices`]); the number of changes, modulo 16; for each change a byte that selects what is changed (a
//! dword of a walker, of the commands of the state, or of the surface states), a byte with the index of the dword, and its
//! value; then the code.

mod seeds;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use arctic_device_model::generation::XE_HPG;
use arctic_device_model::sync::IgnorePoison;
use arctic_device_model::topology::{EngineClass, EngineId};

use crate::bytes::Bytes;
use crate::differential::compare::Worlds;
use crate::differential::grammar::batch_address;
use crate::differential::layout::*;
use crate::differential::world::{FinalState, STEP, Stop, Work, World};
use crate::harness::command_streamer::{Place, check_isolation, check_works};
use crate::kernels::{self, PROBE_BYTES, kernel};
use crate::mi::compute::{Bases, Walker, cfe_state, state_base_address, state_compute_mode};
use crate::mi::{self, Process};

/// Pages of the batches: the commands, the code, surface states with the binding table behind them, and other data.
const COMMANDS: usize = 0;
const CODE: usize = 1;
const CODE_PAGES: usize = 2;
const SURFACES: usize = 3;
const DATA: usize = 4;
/// Dword of the binding table in the page of the surface states; states are at multiples of 64 bytes below it.
const BINDINGS: usize = 0x100;
/// Surface states: a buffer, one of texels, scratch memory, an image, none.
const STATES: usize = 5;
/// Steps of the engine for an input.
const STEPS: u32 = 24;
/// Costs of a step, of which the input chooses one: a context that leaves after each step executes at least an instruction.
const COSTS: [u64; 4] = [1, 60, 1_000, 10_000];
/// Cost of a step in which a probe ends.
const PROBE_COST: u64 = 1 << 24;

pub use seeds::seeds;

static WORLDS: Mutex<Option<Worlds>> = Mutex::new(None);

/// Choices of an input, one byte each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// Bit 0: of a VF; 1: on a compute engine; 2: 256 registers; 3: the walker twice; 4: the batch is repeated; 5: the context
    /// leaves the engine after each step; 7:6: cost of a step.
    pub flags: u8,
    /// Bits 1:0: SIMD size; 4:2: shared local memory; 7:5: number of threads.
    pub shape: u8,
    /// Bits 1:0, 3:2, 5:4: groups in each dimension; 6: inline data.
    pub groups: u8,
    /// Lanes of the last thread: this many.
    pub lanes: u8,
    /// Offset of the second walker's kernel, in 64 bytes.
    pub second: u8,
}

impl Choices {
    fn is_vf(self) -> bool {
        self.flags & 1 != 0
    }

    fn engine(self) -> EngineId {
        let class = if self.flags & 2 != 0 { EngineClass::Compute } else { EngineClass::Render };
        XE_HPG.engines.find(class, 0).expect("the card has both engines")
    }

    fn registers(self) -> u32 {
        if self.flags & 4 != 0 { 256 } else { 128 }
    }

    fn repeats(self) -> bool {
        self.flags & 0x10 != 0
    }

    fn leaves(self) -> bool {
        self.flags & 0x20 != 0
    }

    fn slm(self) -> u32 {
        u32::from(self.shape >> 2 & 7)
    }

    fn slm_bytes(self) -> u32 {
        if self.slm() == 0 { 0 } else { 512 << self.slm() }
    }

    fn walker(self, kernel: u32) -> Walker {
        let groups = [0, 2, 4].map(|shift| [1, 2, 7, u32::MAX][usize::from(self.groups >> shift & 3)]);
        let data = batch_address(DATA);
        let inline = [data as u32, (data >> 32) as u32, 3, 0, 0x1234_5678, 5, 6, 7];
        Walker {
            groups,
            threads: [1, 2, 3, 4, 8, 16, 32, 128][usize::from(self.shape >> 5)],
            simd: u32::from(self.shape & 3),
            last_mask: u32::MAX >> (31 - self.lanes % 32),
            slm: self.slm(),
            bindings: BINDINGS as u32 * 4,
            inline: (self.groups & 0x40 != 0).then_some(inline),
            ..Walker::of(kernel)
        }
    }
}

/// A change of a dword.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// What is changed: the walker, the second walker, the state, the surface states.
    pub what: u8,
    /// Index of the dword.
    pub at: u8,
    /// The new value.
    pub value: u32,
}

/// An input, decoded.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Choices.
    pub choices: Choices,
    /// Changes.
    pub changes: Vec<Change>,
    /// The kernel's code.
    pub code: Vec<u8>,
}

impl Input {
    /// Decodes an input.
    pub fn decode(input: &[u8]) -> Input {
        let mut bytes = Bytes(input);
        let [flags, shape, groups, lanes, second, count] = std::array::from_fn(|_| bytes.byte());
        let change = |_| Change { what: bytes.byte(), at: bytes.byte(), value: bytes.dword() };
        let changes = (0..count % 16).map(change).collect();
        let choices = Choices { flags, shape, groups, lanes, second };
        Input { choices, changes, code: bytes.take(CODE_PAGES * PAGE as usize).to_vec() }
    }

    /// Encodes the input.
    pub fn encode(&self) -> Vec<u8> {
        let Choices { flags, shape, groups, lanes, second } = self.choices;
        let mut bytes = vec![flags, shape, groups, lanes, second, self.changes.len() as u8];
        for Change { what, at, value } in &self.changes {
            bytes.extend([*what, *at]);
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(&self.code);
        bytes
    }

    fn work(&self) -> Work {
        let choices = self.choices;
        let mut state = state(choices.registers());
        let mut walkers = [0, u32::from(choices.second) * 64].map(|at| choices.walker(at).words());
        let mut surfaces = surfaces();
        for Change { what, at, value } in &self.changes {
            let [first, second] = &mut walkers;
            let words = match what % 4 {
                0 => &mut first[..],
                1 => &mut second[..],
                2 => &mut state[..],
                _ => &mut surfaces[..],
            };
            let at = usize::from(*at) % words.len();
            words[at] = *value;
        }
        let [first, second] = walkers;
        let mut commands = [&state[..], &first].concat();
        if choices.flags & 8 != 0 {
            commands.extend(second);
        }
        let end = if choices.repeats() {
            mi::batch_buffer_start(Process(batch_address(COMMANDS))).to_vec()
        } else {
            vec![mi::BATCH_BUFFER_END]
        };
        commands.extend(end);
        let mut code = self.code.clone();
        code.resize(code.len().next_multiple_of(16), 0);
        let mut code: Vec<u32> = code.as_chunks::<4>().0.iter().map(|raw| u32::from_le_bytes(*raw)).collect();
        code.extend(kernel(""));
        work(choices.engine(), commands, code, surfaces)
    }
}

/// The work of each input from which a fuzzer starts that ends, with its name.
pub fn works() -> Vec<(String, Work)> {
    /// They do not end, or change what the context executes.
    const OTHERS: [&str; 4] = ["endless", "alone", "own-code", "own-commands"];
    let ending = seeds().into_iter().filter(|(name, _)| !OTHERS.contains(&name.as_str()));
    ending.map(|(name, input)| (name, input.work())).collect()
}

/// Commands of the state.
fn state(registers: u32) -> Vec<u32> {
    let bases = Bases {
        general: batch_address(DATA),
        surface: batch_address(SURFACES),
        dynamic: batch_address(DATA),
        instruction: batch_address(CODE),
        bindless: batch_address(SURFACES),
    };
    // The state with this number in the heap, as the driver places it in r0.5.
    [&state_base_address(&bases)[..], &state_compute_mode(registers == 256), &cfe_state(2 << 10)].concat()
}

/// Surface states and the binding table.
fn surfaces() -> Vec<u32> {
    let mut words = vec![0; PAGE as usize / 4];
    let data = BASE + at::DATA * PAGE;
    let ram = BASE + at::RAM * PAGE;
    let states = [
        // A buffer of bytes: 4 pages.
        (4 << 29 | 0x1ff << 18, 0x7f << 16 | 0x7f, 0, data),
        // A buffer of texels of RGBA8.
        (4 << 29 | 0xc7 << 18, 0x1f << 16 | 0x7f, 3, data),
        // Scratch memory: 64 bytes for each of 128 threads.
        (6 << 29 | 0x1ff << 18, 0x7f, 63, ram),
        // An image of 16 x 16 texels of RGBA8.
        (1 << 29 | 0xc7 << 18, 15 << 16 | 15, 63, data + PAGE),
        // None.
        (7 << 29, 0, 0, 0),
    ];
    for (n, (first, size, pitch, base)) in states.into_iter().enumerate() {
        let state = &mut words[n * 16..];
        (state[0], state[2], state[3]) = (first, size, pitch);
        state[7] = 4 << 25 | 5 << 22 | 6 << 19 | 7 << 16;
        (state[8], state[9]) = (base as u32, (base >> 32) as u32);
        words[BINDINGS + n] = n as u32 * 64;
    }
    debug_assert_eq!(states.len(), STATES);
    words
}

fn work(engine: EngineId, commands: Vec<u32>, mut code: Vec<u32>, surfaces: Vec<u32>) -> Work {
    let mut batches = vec![vec![mi::BATCH_BUFFER_END]; BATCH_COUNT];
    code.resize(CODE_PAGES * PAGE as usize / 4, 0);
    for (page, words) in code.chunks(PAGE as usize / 4).enumerate() {
        batches[CODE + page] = words.to_vec();
    }
    (batches[COMMANDS], batches[SURFACES]) = (commands, surfaces);
    let ring = mi::padded(&mi::batch_buffer_start(Process(batch_address(COMMANDS))));
    Work { engine, head: 0, ring, batches, fill: 1, interruptions: None, execlist: false }
}

/// Runs one input; panics if an invariant is violated.
pub fn run(input: &[u8]) {
    outcome(input);
}

/// Like [`run`]; returns the state after the walkers.
pub fn outcome(input: &[u8]) -> FinalState {
    let input = Input::decode(input);
    let choices = input.choices;
    let work = Work { interruptions: choices.leaves().then_some(STEP), ..input.work() };
    let mut worlds = WORLDS.lock().ignore_poison();
    let world = worlds.get_or_insert_with(Worlds::default).of(choices.is_vf());
    // A step executes many short walkers of a batch that is repeated.
    world.timeout = if choices.repeats() && !choices.leaves() { STEP } else { STEPS * STEP };
    let engine = choices.engine();
    world.set_walker_cost(engine, COSTS[usize::from(choices.flags >> 6)]);
    let state = world.run(&work, &[]);
    check_isolation(world, &work, Place::User, &state, &words_of(&input, &work));
    assert!(world.parked() <= 1, "{} parked walkers of one context", world.parked());
    if choices.leaves() && state.stop == Stop::Complete {
        check_without_leaving(world, &work, &state);
    }
    world.set_walker_cost(engine, PROBE_COST);
    check_residue(world, choices);
    check_works(world, engine);
    state
}

/// Dwords of the input at any offset: if one of them is a canary, canaries in memory are no reads.
fn words_of(input: &Input, work: &Work) -> Vec<u32> {
    let code = input.code.windows(4).map(|raw| u32::from_le_bytes(raw.try_into().unwrap()));
    code.chain(work.batches[COMMANDS].iter().copied()).chain(work.batches[SURFACES].iter().copied()).collect()
}

/// Checks that the walkers have the same result if their context does not leave the engine. Commands that a kernel writes while
/// they are prefetched have none that is defined.
fn check_without_leaving(world: &mut World, work: &Work, state: &FinalState) {
    let commands = |state: &FinalState| {
        state.memory.local[BATCHES as usize + COMMANDS * PAGE as usize..][..PAGE as usize].to_vec()
    };
    world.set_walker_cost(work.engine, COSTS[COSTS.len() - 1]);
    let full = world.run(&Work { interruptions: None, ..work.clone() }, &[]);
    let initial = crate::differential::initial::initial_local(work);
    let unchanged = initial[BATCHES as usize..][..PAGE as usize] == commands(state);
    if unchanged && commands(&full) == commands(state) && full.stop == Stop::Complete {
        assert_eq!(full.memory, state.memory, "the result depends on where the context leaves the engine");
    }
}

/// Checks that a kernel with as many threads, registers and bytes of shared local memory starts with zeros.
fn check_residue(world: &mut World, choices: Choices) {
    let to = BASE + at::DATA * PAGE;
    let code = probe(choices.registers(), choices.slm_bytes(), to);
    let shape = choices.walker(0);
    let walker = Walker { groups: [1; 3], last_mask: u32::MAX, inline: None, simd: shape.simd % 3, ..shape };
    let mut commands = state(choices.registers());
    commands.extend(walker.words());
    commands.push(mi::BATCH_BUFFER_END);
    let state = world.run(&work(choices.engine(), commands, code.to_vec(), surfaces()), &[]);
    assert_eq!(state.stop, Stop::Complete, "the probe does not end");
    for thread in 0..u64::from(walker.threads) {
        let seen = &state.memory.local[(PPGTT_DATA + thread * PROBE_BYTES) as usize..][..PROBE_BYTES as usize];
        assert!(seen.iter().all(|byte| *byte == 0), "thread {thread} starts with {seen:02x?}");
    }
}

/// Code of probes, by registers and bytes of shared local memory.
type Probes = HashMap<(u32, u32), Arc<[u32]>>;

/// The assembled probe.
fn probe(registers: u32, slm: u32, to: u64) -> Arc<[u32]> {
    static PROBES: OnceLock<Mutex<Probes>> = OnceLock::new();
    let mut probes = PROBES.get_or_init(Mutex::default).lock().ignore_poison();
    probes.entry((registers, slm)).or_insert_with(|| kernel(&kernels::probe(registers, slm, to)).into()).clone()
}
