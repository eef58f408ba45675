// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the fuzz targets check. The tests of `arctic-eu` include this file and give it generated inputs.

use arctic_eu::exec::{self, Code, Environment, Group, Host, Stop, Thread, Way};
use arctic_eu::launch::memory::{Space, State};
use arctic_eu::launch::{Argument, Launch, Range, Settings};
use arctic_eu::text::{assemble, disassemble};
use arctic_eu::zebin::Zebin;

/// Instructions that a thread may execute.
const BUDGET: u64 = 2_000;

/// The input is a file: it is read, or an error. Its kernels are launched with a buffer for each argument, and end.
pub fn zebin(input: &[u8]) {
    let Ok(zebin) = Zebin::parse(input.to_vec()) else { return };
    for (_, code) in zebin.code() {
        let text = disassemble(code);
        assert_eq!(assemble(&text).as_deref(), Ok(code));
    }
    for kernel in zebin.info.kernels.iter().take(3) {
        // Memory for 4,096 hardware threads is too much for a fuzzer.
        if kernel.buffers.iter().any(|buffer| buffer.size > 4096) {
            continue;
        }
        let arguments: Vec<_> =
            kernel.arguments.iter().map(|argument| (argument.name.clone(), Argument::Buffer(vec![7; 64]))).collect();
        let local = kernel.group_size.unwrap_or([8, 1, 1]);
        let range = Range { global: local, local, offset: [0; 3] };
        let settings = Settings { workers: 1, limit: BUDGET, ..Settings::default() };
        if let Ok(launch) = Launch::new(&zebin, Some(&kernel.name), range, &arguments, settings) {
            launch.run(&|_| {});
        }
    }
}

/// The input is code: its text makes the same bytes again.
pub fn instructions(input: &[u8]) {
    let text = disassemble(input);
    let again = assemble(&text).unwrap_or_else(|errors| panic!("{}", errors.render(&text, "text")));
    assert_eq!(again, input);
}

/// Memory with a buffer, surfaces and a scratch surface.
fn space() -> (Space, u64) {
    let mut space = Space::new();
    let buffer = space.allocate("buffer", 1 << 16).unwrap_or(0);
    let scratch = space.allocate("scratch", 1 << 16).unwrap_or(0);
    space.add_state(State::Buffer { start: buffer, size: 1000 });
    space.add_state(State::Scratch { start: scratch, pitch: 64 });
    let format = arctic_eu::launch::parse_image_format("rgba8unorm");
    if let Some(format) = format {
        let image = arctic_eu::exec::memory::Image {
            base: buffer,
            width: 16,
            height: 16,
            depth: 1,
            pitch: 64,
            slice: 1024,
            dimensions: 2,
            array: false,
            format,
        };
        space.add_state(State::Image(image));
    }
    space.bindings = vec![(0, 0), (1, 2)];
    let sampler = arctic_eu::exec::memory::Sampler {
        addressing: arctic_eu::exec::memory::Addressing::Mirror,
        linear: true,
        normalized: true,
    };
    space.samplers.push(sampler);
    space.sampler_table.push((0, 0));
    (space, buffer)
}

/// The first bytes fill registers, the others are code. The thread keeps its budget; in parts, with a copy of its state between
/// them, it has the same result.
pub fn kernel(input: &[u8]) {
    let Some((first, rest)) = input.split_at_checked(32) else { return };
    let large = first[0] & 1 != 0;
    let way = [Way::Fast, Way::Plain, Way::General][usize::from(first[1]) % 3];
    let host = if first[2] & 1 != 0 { Host::detect() } else { Host::Portable };
    let registers = if large { 256 } else { 128 };
    let code = Code::translate(rest, u32::from(first[3]) << 16, registers, host);
    let start = |buffer: u64| {
        let mut thread = Thread::new(registers, u32::from_le_bytes([first[4], first[5], first[6], first[7]]));
        for register in 0..registers as usize {
            for dword in 0..8 {
                let byte = u32::from(first[8 + (register + dword) % 24]);
                // Addresses of the buffer, small numbers, and wild ones.
                let value = match byte % 4 {
                    0 => buffer as u32 + byte * 16,
                    1 => byte,
                    2 => 0,
                    _ => byte.wrapping_mul(0x9e37_79b9),
                };
                thread.set_grf(register, dword, value);
            }
        }
        thread
    };
    let run = |budgets: &[u64]| {
        let (space, buffer) = space();
        let mut thread = start(buffer);
        let mut group = Group { slm: vec![0; 1024], ..Group::default() };
        let mut stop = Stop::Budget;
        for budget in budgets {
            let mut environment = Environment { memory: &space, group: &mut group, outside: 0, first_outside: None };
            let before = thread.executed;
            if stop == Stop::Budget {
                thread = thread.clone();
                stop = exec::run(&code, &mut thread, &mut environment, *budget, way, &mut ());
            }
            assert!(thread.executed - before <= *budget);
        }
        (stop, thread.executed, thread.next, thread.mask, thread.file, space.peek(buffer, 1 << 16))
    };
    let at_once = run(&[BUDGET]);
    let parts = run(&[1, BUDGET / 3, BUDGET - 1 - BUDGET / 3]);
    assert!(at_once == parts, "{:?} {:?}", at_once.0, parts.0);
}
