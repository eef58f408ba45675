// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Random programs with branches of all kinds, loops, calls, halts, predicates and regions, executed by the interpreter, and
//! by the reference one channel after the other, each as if it were alone (ISA-170): the channel's registers and flags must
//! be the same at the end, and no other register may have changed.
//!
//! The long tier (`cargo test --release --features long-tests --test control_flow`) executes 10 million instructions of
//! threads, the quick one 100,000.

mod flow;
mod random;
mod reference;

use arctic_eu::exec::thread::{CR, FLAGS};
use arctic_eu::exec::{
    self, Budget, Environment, FaultKind, Group, Host, Program, SavedGroup, Stop, Thread, Way, Workgroup,
};
use arctic_eu::launch::memory::Space;
use arctic_eu::text::disassemble;

use flow::{FIRST_COUNTER, FIRST_VARIABLE, Generated, Generator, VARIABLES};
use random::Random;
use reference::state::State;
use reference::walk::{Walked, walk};

const INSTRUCTIONS: u64 = if cfg!(feature = "long-tests") { 10_000_000 } else { 100_000 };
/// Programs that execute more are left out.
const LIMIT: u64 = 20_000;

/// Registers at the start: those of variables and constants are random.
fn start(random: &mut Random, size: u8) -> State {
    let mut state = State {
        grf: random.bytes(128 * 32),
        acc: [0; 256],
        acc_high: [0; 256],
        a0: [0; 32],
        flags: [random.next() as u32, random.next() as u32],
        cr0: if random.below(2) == 0 { 0x4c0 } else { random.next() as u32 & 0x4f0 },
        mask: 0,
    };
    // Small numbers too, so that comparisons are true and false.
    for dword in state.grf.as_chunks_mut::<4>().0 {
        if random.below(2) == 0 {
            *dword = (random.next() as u32 >> random.below(32)).to_le_bytes();
        }
    }
    let all = u32::MAX >> (32 - size);
    state.mask = if random.below(2) == 0 { all } else { random.next() as u32 & all };
    state
}

/// How a program is translated and executed.
#[derive(Clone, Copy, Debug)]
struct Form {
    host: Host,
    way: Way,
    code: Code,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Code {
    /// Translated as a whole.
    Complete,
    /// Decoded where the thread comes to.
    OnDemand,
    /// The same, and after each slice the thread goes on from its saved bytes, with nothing decoded.
    Moved,
}

/// Saves a thread that is alone in its group, and restores it with a new program.
fn moved(thread: &Thread, code: &mut Program, host: Host) -> Thread {
    let mut group = Workgroup::new(1, 128, 0);
    group.threads_mut()[0] = thread.clone();
    let saved = group.save(code);
    let bytes = saved.to_bytes();
    assert!(bytes.len() <= SavedGroup::most_bytes(1, 128, 0));
    *code = Program::new(0, 0, 128, host);
    let restored = SavedGroup::from_bytes(&bytes).unwrap();
    assert_eq!(restored.shape(), (1, 128, 0));
    assert!(restored.to_bytes() == bytes);
    restored.into_group(code).threads()[0].clone()
}

/// Executes a program; returns the thread and the number of executed instructions.
fn execute(program: &Generated, state: &State, form: Form, budgets: &mut Random) -> Result<Thread, Stop> {
    let Form { host, way, code: form } = form;
    let space = Space::new();
    let mut group = Group::default();
    let mut memory = &space;
    let mut environment = Environment::new(&mut memory, &mut group);
    let mut thread = Thread::new(128, state.mask);
    for (index, dword) in state.grf.as_chunks::<4>().0.iter().enumerate() {
        thread.set_u32(index * 4, u32::from_le_bytes(*dword));
    }
    thread.set_u32(FLAGS, state.flags[0]);
    thread.set_u32(FLAGS + 4, state.flags[1]);
    thread.set_u32(CR, state.cr0);
    thread.update_modes();
    thread.base = program.program.base;
    let base = program.program.base;
    let mut code = Program::translate(&program.code, base, 128, host);
    if form != Code::Complete {
        code = Program::new(0, 0, 128, host);
        thread.start_at(base);
    }
    let mut fetch = |_: u64, address: u64, bytes: &mut [u8]| {
        let from = address.checked_sub(base.into()).and_then(|at| program.code.get(at as usize..)).unwrap_or_default();
        let count = bytes.len().min(from.len());
        bytes[..count].copy_from_slice(&from[..count]);
        if count > 0 { Ok(count) } else { Err(FaultKind::Address.into()) }
    };
    // In slices, ISA-180.
    loop {
        let budget = 1 + budgets.below(200) as u64;
        match exec::run(&code, &mut thread, &mut environment, Budget::instructions(budget), way, &mut ()) {
            Stop::End => return Ok(thread),
            Stop::Budget if thread.executed < 64 * LIMIT => {
                if form == Code::Moved {
                    thread = moved(&thread, &mut code, host);
                }
            }
            Stop::Fetch(address) if form != Code::Complete => {
                code.extend(address, &mut fetch).unwrap();
            }
            stop => return Err(stop),
        }
    }
}

/// Compares a thread with the walks of its channels. Returns what differs.
fn difference(program: &Generated, before: &State, walked: &[(u32, State)], thread: &Thread) -> Option<String> {
    let dwords = usize::from(program.size);
    let after: Vec<u32> = (0..128 * 8).map(|index| thread.u32(index * 4)).collect();
    let dword = |state: &State, index: usize| u32::from_le_bytes(state.grf[index * 4..][..4].try_into().unwrap());
    let owned = |channel: usize| {
        let variables =
            (0..VARIABLES).map(move |variable| usize::from(FIRST_VARIABLE) * 8 + variable * dwords + channel);
        variables.chain((0..3).map(move |level| usize::from(FIRST_COUNTER) * 8 + level * dwords + channel))
    };
    for (channel, state) in walked {
        for index in owned(*channel as usize) {
            if dword(state, index) != after[index] {
                return Some(format!(
                    "channel {channel}, r{}.{}: expected {:#x}, got {:#x}",
                    index / 8,
                    index % 8,
                    dword(state, index),
                    after[index]
                ));
            }
        }
        let flags: &[u32] = if program.size == 32 { &[0] } else { &[0, 16, 32] };
        for bit in flags.iter().map(|first| first + channel) {
            let got = thread.u32(FLAGS + bit as usize / 32 * 4) >> (bit % 32) & 1;
            let expected = state.flags[bit as usize / 32] >> (bit % 32) & 1;
            if got != expected {
                return Some(format!("channel {channel}, flag bit {bit}: expected {expected}, got {got}"));
            }
        }
    }
    // Dwords of channels that the dispatch has not enabled, and constants.
    let idle = (0..dwords).filter(|channel| before.mask >> channel & 1 == 0).flat_map(owned);
    let constants = usize::from(flow::CONSTANTS) * 8..128 * 8;
    idle.chain(constants).chain(0..usize::from(FIRST_VARIABLE) * 8).find_map(|index| {
        (dword(before, index) != after[index]).then(|| format!("r{}.{} was written", index / 8, index % 8))
    })
}

#[test]
fn each_channel_has_the_result_of_the_channel_alone() {
    let (mut executed, mut programs, mut long) = (0, 0, 0);
    let mut seed = 0u64;
    while executed < INSTRUCTIONS {
        seed += 1;
        let mut random = Random(seed ^ 0xc0f1_0e5e);
        let program = Generator::new(random.next()).generate();
        let before = start(&mut random, program.size);
        let mut walked = Vec::new();
        let mut ended = true;
        for channel in (0..32).filter(|channel| before.mask >> channel & 1 == 1) {
            let mut state = before.clone();
            match walk(&program.program, &mut state, channel, LIMIT) {
                Walked::End => walked.push((channel, state)),
                Walked::Limit => ended = false,
                lost @ Walked::Lost(_) => panic!("seed {seed}: {lost:?}\n{}", disassemble(&program.code)),
            }
        }
        if !ended {
            long += 1;
            continue;
        }
        for (index, (host, way, code)) in [
            (Host::detect(), Way::Fast, Code::Complete),
            (Host::Portable, Way::Fast, Code::Complete),
            (Host::Portable, Way::General, Code::Complete),
            (Host::detect(), Way::Fast, Code::OnDemand),
            (Host::detect(), Way::Fast, Code::Moved),
        ]
        .into_iter()
        .enumerate()
        {
            let form = Form { host, way, code };
            let fail = |what: String| -> ! {
                panic!(
                    "seed {seed}, {form:?}, mask {:#x}, cr0 {:#x}: {what}\n{}",
                    before.mask,
                    before.cr0,
                    disassemble(&program.code)
                )
            };
            let thread = match execute(&program, &before, form, &mut random) {
                Ok(thread) => thread,
                Err(stop) => fail(format!("the thread has not ended: {stop:?}")),
            };
            if index == 0 {
                executed += thread.executed;
            }
            if let Some(what) = difference(&program, &before, &walked, &thread) {
                fail(what);
            }
        }
        programs += 1;
    }
    println!("seeds 1 to {seed}: {programs} programs, {executed} instructions of threads, {long} programs left out");
    assert!(long * 20 < programs, "{long} of {programs} programs were left out");
}
