// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the fuzz targets check. The tests of `arctic-eu` include this file and give it generated inputs.

use arctic_eu::capture::{Capture, Replay, ReplayStop};
use arctic_eu::exec::memory::{Addressing, Component, Dimensions, Image, Levels, Sampler};
use arctic_eu::exec::{
    self, Budget, Environment, FaultKind, Group, GroupStop, Host, MemoryFault, Program, Stop, Thread, Way, Workgroup,
};
use arctic_eu::launch::memory::{Space, State};
use arctic_eu::launch::{Argument, Launch, Range, Settings, parse_image_format};
use arctic_eu::text::{assemble, disassemble};
use arctic_eu::zebin::Zebin;

/// Instructions that a thread may execute, per thread.
const MAX_INSTRUCTIONS: u64 = 2_000;
/// Kernels of a file that are run.
const MAX_KERNELS: usize = 3;
/// Largest per-thread buffer of a kernel that is run. A launch allocates each buffer `HARDWARE_THREADS` times.
const MAX_BUFFER_BYTES: u32 = 4096;
/// Size of the buffer and of the scratch surface of a thread that is run.
const FIXTURE_BYTES: usize = 1 << 16;

/// Parses the input as a zebin. If it is one, checks the text round trip of its code, and runs at most [`MAX_KERNELS`]
/// kernels, each with a 64-byte buffer for every argument. Panics if the text of the code makes other bytes. A launch may
/// end in a fault, which is ignored: only the end is checked.
pub fn zebin(input: &[u8]) {
    let Ok(zebin) = Zebin::parse(input.to_vec()) else { return };
    for (_, code) in zebin.code() {
        text_round_trip(code);
    }
    for kernel in zebin.info.kernels.iter().take(MAX_KERNELS) {
        if kernel.buffers.iter().any(|buffer| buffer.size > MAX_BUFFER_BYTES) {
            continue;
        }
        let arguments: Vec<_> =
            kernel.arguments.iter().map(|argument| (argument.name.clone(), Argument::Buffer(vec![7; 64]))).collect();
        let local = kernel.group_size.unwrap_or([8, 1, 1]);
        let range = Range { global: local, local, offset: [0; 3] };
        let settings = Settings { workers: 1, limit: MAX_INSTRUCTIONS, ..Settings::default() };
        if let Ok(launch) = Launch::new(&zebin, Some(&kernel.name), range, &arguments, settings) {
            // Faults are allowed.
            let _ = launch.run(&|_| {});
        }
    }
}

/// Parses the input as a captured walker. If it is one, checks that its file is read as it is written, and executes some steps of it.
/// It may end in any way: only the end is checked.
pub fn capture(input: &[u8]) {
    let Ok(capture) = Capture::parse(input) else { return };
    assert_eq!(Capture::parse(&capture.to_bytes()).as_ref(), Ok(&capture));
    let mut replay = Replay::new(&capture, Host::detect(), MAX_INSTRUCTIONS);
    for _ in 0..20 {
        if replay.step(1_000, Way::Fast, &mut ()) != ReplayStop::Budget {
            break;
        }
    }
    let _ = replay.compare();
}

/// The input is code. Panics unless its text makes the same bytes.
pub fn text_round_trip(code: &[u8]) {
    let text = disassemble(code);
    let reassembled = assemble(&text).unwrap_or_else(|errors| panic!("{}", errors.render(&text, "text")));
    assert_eq!(reassembled, code);
}

/// Memory with a buffer, surfaces and a scratch surface. Returns it with the addresses of the buffer and of the scratch
/// surface, of [`FIXTURE_BYTES`] each.
fn memory_fixture() -> (Space, [u64; 2]) {
    let mut space = Space::new();
    let buffer = space.allocate("buffer", FIXTURE_BYTES).expect("memory for the buffer");
    let scratch = space.allocate("scratch", FIXTURE_BYTES).expect("memory for scratch");
    space.add_state(State::Buffer { start: buffer, size: 1000 });
    space.add_state(State::Scratch { start: scratch, pitch: 64 });
    space.add_state(State::Image(Image {
        base: buffer,
        width: 16,
        height: 16,
        depth: 1,
        pitch: 64,
        slice: 1024,
        dimensions: Dimensions::Two,
        array: false,
        cube: false,
        levels: Levels::ONE,
        format: parse_image_format("rgba8unorm").expect("a known format"),
        components: Component::COLOR,
        handle: 0,
    }));
    space.bindings = vec![(0, 0), (1, 2)];
    space.samplers.push(Sampler::uniform(Addressing::Mirror, true, true));
    space.sampler_table.push((0, 0));
    (space, [buffer, scratch])
}

/// A thread's code and its start, from the input: the first 32 bytes give the rest of the state, the others are code.
struct KernelInput<'i> {
    header: &'i [u8; 32],
    bytes: &'i [u8],
    code: Program,
    /// The code is decoded where the thread comes to.
    on_demand: bool,
    registers: u32,
    way: Way,
}

/// A thread after a run, with everything that it can change.
struct Outcome {
    stop: Stop,
    thread: Thread,
    group: Group,
    /// Accesses outside of a surface.
    outside: u64,
    /// Instruction and lane of the first of them.
    first_outside: Option<(u32, u32)>,
    /// Contents of the buffer and of the scratch surface.
    memory: [Vec<u8>; 2],
}

impl<'i> KernelInput<'i> {
    fn new(input: &'i [u8]) -> Option<Self> {
        let (header, code_bytes) = input.split_first_chunk::<32>()?;
        let large_grf = header[0] & 1 != 0;
        let registers = if large_grf { 256 } else { 128 };
        let way = if header[1] % 3 == 2 { Way::General } else { Way::Fast };
        let host = if header[2] & 1 != 0 { Host::detect() } else { Host::Portable };
        let on_demand = header[2] & 2 != 0;
        let code = if on_demand {
            Program::new(0, 0, registers, host)
        } else {
            Program::translate(code_bytes, u32::from(header[3]) << 16, registers, host)
        };
        Some(KernelInput { header, bytes: code_bytes, code, on_demand, registers, way })
    }

    /// The thread before its first instruction.
    fn initial_thread(&self, buffer: u64) -> Thread {
        let header = self.header;
        let mut thread = Thread::new(self.registers, u32::from_le_bytes([header[4], header[5], header[6], header[7]]));
        let values = &header[8..];
        for register in 0..self.registers as usize {
            for dword in 0..8 {
                let at = (register + dword) % values.len();
                let (byte, next) = (values[at], values[(at + 1) % values.len()]);
                // Buffer addresses, small numbers, zeros and arbitrary values.
                let value = match byte % 4 {
                    0 => buffer as u32 + u32::from(u16::from_be_bytes([byte, next])),
                    1 => byte.into(),
                    2 => 0,
                    _ => u32::from(byte).wrapping_mul(0x9e37_79b9),
                };
                thread.set_grf(register, dword, value);
            }
        }
        thread
    }

    /// Reads code of the input, at most 20 bytes at once.
    fn fetch(&self, address: u64, bytes: &mut [u8]) -> Result<usize, MemoryFault> {
        let rest = usize::try_from(address).ok().and_then(|at| self.bytes.get(at..)).unwrap_or_default();
        let count = bytes.len().min(rest.len()).min(20);
        bytes[..count].copy_from_slice(&rest[..count]);
        if count > 0 { Ok(count) } else { Err(FaultKind::Address.into()) }
    }

    /// Runs the thread by these budgets, one after the other as long as it does not stop, with a copy of its state
    /// before each.
    fn run_in_parts(&self, budgets: &[u64]) -> Outcome {
        let (space, [buffer, scratch]) = memory_fixture();
        let mut thread = self.initial_thread(buffer);
        let mut code = self.code.clone();
        if self.on_demand {
            // Illegal instructions are passed over.
            thread.exceptions = self.header[2] & 4 != 0;
            thread.start_at(0);
        }
        let mut group = Group { slm: vec![0; 1024], ..Group::default() };
        let (mut stop, mut outside, mut first_outside) = (Stop::Budget, 0, None);
        for budget in budgets {
            if stop != Stop::Budget {
                break;
            }
            let mut memory = &space;
            let mut environment = Environment::new(&mut memory, &mut group);
            let before = thread.executed;
            thread = thread.clone();
            loop {
                let left = Budget::instructions(*budget - (thread.executed - before));
                stop = exec::run(&code, &mut thread, &mut environment, left, self.way, &mut ());
                let Stop::Fetch(address) = stop else { break };
                // A branch out of the input ends the run.
                let mut fetch = |_: u64, address: u64, bytes: &mut [u8]| self.fetch(address, bytes);
                if code.extend(address, &mut fetch).is_err() {
                    break;
                }
            }
            outside += environment.outside;
            first_outside = first_outside.or(environment.first_outside);
            assert!(thread.executed - before <= *budget, "more instructions than the budget");
        }
        let memory = [buffer, scratch].map(|start| space.peek(start, FIXTURE_BYTES));
        Outcome { stop, thread, group, outside, first_outside, memory }
    }
}

/// Runs the code of the input, with the state that its first bytes give. Panics if a thread exceeds its budget, or if it
/// ends in another state when it is stopped and resumed.
pub fn resumed_execution(input: &[u8]) {
    let Some(input) = KernelInput::new(input) else { return };
    let uninterrupted = input.run_in_parts(&[MAX_INSTRUCTIONS]);
    let third = MAX_INSTRUCTIONS / 3;
    let resumed = input.run_in_parts(&[1, third, MAX_INSTRUCTIONS - 1 - third]);
    assert_eq!(resumed.stop, uninterrupted.stop, "reason of the stop");
    let (thread, expected) = (&resumed.thread, &uninterrupted.thread);
    assert_eq!(thread.executed, expected.executed, "executed instructions");
    assert_eq!(thread.next, expected.next, "next instruction");
    assert_eq!(thread.mask, expected.mask, "enabled channels");
    assert_eq!(thread.dispatch, expected.dispatch, "dispatched channels");
    assert_eq!(thread.call_mask, expected.call_mask, "channels of the subroutine");
    assert_eq!(thread.waiting, expected.waiting, "places of the waiting channels");
    assert_eq!(thread.notifications, expected.notifications, "notifications");
    assert_eq!((thread.base, thread.grf_mask), (expected.base, expected.grf_mask), "base and register count");
    assert_eq!(thread.plain_floats, expected.plain_floats, "mode of floats");
    assert!(thread.file == expected.file, "registers differ");
    assert_eq!(resumed.group, uninterrupted.group, "shared local memory and barrier");
    assert_eq!(resumed.outside, uninterrupted.outside, "accesses outside of a surface");
    assert_eq!(resumed.first_outside, uninterrupted.first_outside, "first access outside of a surface");
    for (name, found, expected) in [
        ("buffer", &resumed.memory[0], &uninterrupted.memory[0]),
        ("scratch surface", &resumed.memory[1], &uninterrupted.memory[1]),
    ] {
        let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
        assert_eq!(differs, None, "byte of the {name} that differs");
    }
}

/// Bytes of an input of [`messages`] that describe an instruction.
const DESCRIPTION_BYTES: usize = 12;
/// Instructions of an input of [`messages`].
const MAX_DESCRIPTIONS: usize = 16;
/// Threads of a group: two pairs, for dpasw.
const GROUP_THREADS: usize = 4;

/// The text of a message, or of a product of matrices of a pair of threads.
fn described([kind, dst, src0, src1, size, length, ex, types, desc @ ..]: [u8; DESCRIPTION_BYTES]) -> String {
    let functions = ["ugm", "slm", "tgm", "dc0", "dc1"];
    let [dst, src0, src1] = [dst, src0, src1].map(|register| register % 128);
    let Some(function) = functions.get(usize::from(kind % 8)) else {
        let [result, columns, rows] =
            [["f", "hf", "hf"], ["f", "bf", "bf"], ["d", "b", "ub"], ["ud", "u4", "s4"]][usize::from(types % 4)];
        let (repeat, addend) = (size % 8 + 1, ex % 128);
        return format!(
            "dpasw.8x{repeat} (8|M0) r{dst}:{result} r{addend}:{result} r{src0}:{columns} r{src1}.0:{rows}\n"
        );
    };
    let (size, length) = ([1, 8, 16, 32][usize::from(size % 4)], length % 9);
    let ex = if ex % 2 == 0 { "0x0".into() } else { format!("0x{:X}", u32::from(ex) << 24 | u32::from(types) << 12) };
    let desc = u32::from_le_bytes(desc);
    format!("send.{function} ({size}|M0) r{dst} r{src0} r{src1}:{length} {ex} 0x{desc:08X}\n")
}

/// A group of threads that executes the code, and what the launch's memory has then.
fn run_group(input: &KernelInput<'_>, step: u64) -> (GroupStop, Workgroup, [Vec<u8>; 2]) {
    let (space, [buffer, scratch]) = memory_fixture();
    let mut group = Workgroup::new(GROUP_THREADS, input.registers, 1024);
    group.set_limit(MAX_INSTRUCTIONS);
    for (number, thread) in (0..).zip(group.threads_mut()) {
        *thread = input.initial_thread(buffer);
        thread.set_grf(1, 0, number);
    }
    let stop = loop {
        match group.step(&input.code, &mut &space, step, input.way, &mut ()) {
            GroupStop::Budget => {}
            stop => break stop,
        }
    };
    (stop, group, [buffer, scratch].map(|start| space.peek(start, FIXTURE_BYTES)))
}

/// The input describes a thread's start, as that of [`resumed_execution`], and messages and products that a group of threads
/// executes. Panics if the group ends in another state when it is stepped by small budgets.
pub fn messages(input: &[u8]) {
    let Some((header, rest)) = input.split_first_chunk::<32>() else { return };
    let mut header = *header;
    // All of the code is decoded before.
    header[2] &= !2;
    let descriptions = rest.as_chunks::<DESCRIPTION_BYTES>().0.iter().take(MAX_DESCRIPTIONS);
    let mut text: String = descriptions.map(|bytes| described(*bytes)).collect();
    text += "(W) send.gtwy (1|M0) null r127 null:0 0x0 0x02000010 {EOT}\n";
    let Ok(code) = assemble(&text) else { return };
    let bytes = [&header[..], &code].concat();
    let Some(input) = KernelInput::new(&bytes) else { return };
    let (expected_stop, expected, expected_memory) = run_group(&input, u64::MAX);
    let (stop, group, memory) = run_group(&input, 1);
    assert_eq!(stop, expected_stop, "{text}");
    for (thread, expected) in group.threads().iter().zip(expected.threads()) {
        assert_eq!((thread.executed, thread.next), (expected.executed, expected.next), "{text}");
        assert!(thread.file == expected.file, "registers differ: {text}");
    }
    assert_eq!(group.shared(), expected.shared(), "{text}");
    assert_eq!((group.cost(), group.outside()), (expected.cost(), expected.outside()), "{text}");
    assert!(memory == expected_memory, "memory differs: {text}");
}
