// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages to data ports and sampler with lengths, places and sources that compilers do not make.

mod common;

use arctic_eu::exec::memory::{Component, Dimensions, Image, Levels};
use arctic_eu::exec::{self, Budget, Environment, FaultKind, Group, Host, Program, Stop, Thread, Way};
use arctic_eu::launch::memory::{Space, State};
use arctic_eu::launch::parse_image_format;
use arctic_fidelity::proves;
use common::{END, code};

/// Texels in a row of the image, and rows.
const WIDTH: u32 = 8;
const HEIGHT: u32 = 4;
/// Bytes between rows: a texel of `rgba8ui` has four, so that four texels are between a row and the next.
const PITCH: u32 = 48;
/// Length of the buffer in bytes.
const BUFFER: u64 = 64;

/// Memory with an image as entry 0 of the binding table, a buffer as entry 1, and scratch memory of 1 KiB a thread.
struct Machine {
    space: Space,
    image: u64,
    buffer: u64,
    /// Shared local memory.
    slm: Vec<u8>,
    thread: Thread,
    outside: u64,
    first_outside: Option<(u32, u32)>,
}

impl Machine {
    fn new() -> Machine {
        let mut space = Space::new();
        let contents: Vec<u8> = (0..PITCH * HEIGHT).map(|index| index as u8).collect();
        let base = space.allocate_with("image", &contents).unwrap();
        let start = space.allocate_with("buffer", &contents).unwrap();
        let scratch = space.allocate("scratch", 1 << 16).unwrap();
        space.add_state(State::Image(Image {
            base,
            width: WIDTH,
            height: HEIGHT,
            depth: 1,
            pitch: PITCH.into(),
            slice: 0,
            dimensions: Dimensions::Two,
            array: false,
            cube: false,
            levels: Levels::ONE,
            format: parse_image_format("rgba8ui").unwrap(),
            components: Component::COLOR,
            handle: 0,
        }));
        space.add_state(State::Buffer { start, size: BUFFER });
        space.add_state(State::Scratch { start: scratch, pitch: 1024 });
        space.bindings = vec![(0, 0), (1, 1)];
        let mut thread = Thread::new(128, 0xffff);
        for register in 0..128 {
            for dword in 0..8 {
                thread.set_grf(register, dword, 0xee00_0000 | (register * 8 + dword) as u32);
            }
        }
        Machine { space, image: base, buffer: start, slm: Vec::new(), thread, outside: 0, first_outside: None }
    }

    /// Sets the dwords of registers from `register` on.
    fn set(&mut self, register: usize, dwords: &[u32]) {
        for (index, value) in dwords.iter().enumerate() {
            self.thread.set_grf(register, index, *value);
        }
    }

    fn dwords(&self, register: usize, count: usize) -> Vec<u32> {
        (0..count).map(|index| self.thread.grf(register, index)).collect()
    }

    fn bytes(&self, register: usize, count: usize) -> Vec<u8> {
        self.dwords(register, count.div_ceil(4)).iter().flat_map(|dword| dword.to_le_bytes()).take(count).collect()
    }

    /// The bytes of the buffer and those behind it, or of the local memory.
    fn contents(&self, function: &str) -> Vec<u8> {
        if function == "slm" { self.slm.clone() } else { self.space.peek(self.buffer, BUFFER as usize + 64) }
    }

    /// Executes a message, and no other instruction.
    fn send(&mut self, text: &str) -> Stop {
        let code = Program::translate(&code(&format!("{text}\n{END}")), 0, 128, Host::Portable);
        let mut group = Group { slm: std::mem::take(&mut self.slm), ..Group::default() };
        let mut memory = &self.space;
        let mut environment = Environment::new(&mut memory, &mut group);
        self.thread.next = 0;
        let stop = exec::run(&code, &mut self.thread, &mut environment, Budget::instructions(10), Way::Fast, &mut ());
        (self.outside, self.first_outside) = (environment.outside, environment.first_outside);
        self.slm = group.slm;
        stop
    }

    fn passes(&mut self, text: &str) {
        assert_eq!(self.send(text), Stop::End, "{text}");
    }

    /// Panics unless the message ends in this fault and changes no register.
    fn fails(&mut self, text: &str, expected: FaultKind) {
        let before = self.thread.file.clone();
        match self.send(text) {
            Stop::Fault(fault) => assert_eq!(fault.kind, expected, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
        assert!(self.thread.file == before, "{text}");
    }
}

/// ISA-200, ISA-226: coordinates that the image has, the components, and a register of the response for each component.
#[test]
fn typed_messages_have_the_lengths_that_they_need() {
    let mut machine = Machine::new();
    machine.set(10, &[0, 1, 2, 3, 4, 5, 6, 7]);
    machine.set(11, &[1; 8]);
    // Reads of all components: with u and v, and with u, v, r and the level.
    machine.passes("send.dc1 (8|M0) r20 r10 null:0 0x0 0x04415000");
    assert_eq!(machine.dwords(20, 8), [48, 52, 56, 60, 64, 68, 72, 76]);
    assert_eq!(machine.dwords(23, 2), [51, 55]);
    machine.set(13, &[0, 0, 0, 0, 1, 0, 0, 0]);
    machine.passes("send.dc1 (8|M0) r30 r10 null:0 0x0 0x08415000");
    assert_eq!(machine.dwords(30, 4), machine.dwords(20, 4));
    assert_eq!((machine.dwords(30, 5)[4], machine.outside), (0, 1), "a level that the image does not have");
    for (text, what) in [
        ("send.dc1 (8|M0) r20 r10 null:0 0x0 0x02415000", "no v"),
        ("send.dc1 (8|M0) r20 r10 null:0 0x0 0x0A415000", "five coordinates"),
        ("send.dc1 (8|M0) r20 r10 null:0 0x0 0x04315000", "a response of three registers for four components"),
        ("send.dc1 (8|M0) r20 r10 null:0 0x0 0x04495000", "a header in the place of u"),
        ("send.dc1 (8|M0) null r10 r40:3 0x0 0x04035000", "no register of the last component"),
        ("send.dc1 (8|M0) null r10 r40:7 0x0 0x04035000", "five coordinates before the components"),
        ("send.dc1 (8|M0) null r10 null:4 0x0 0x04035000", "components in null"),
    ] {
        println!("{what}");
        machine.fails(text, FaultKind::Length);
    }
    // A response to null is dropped.
    machine.passes("send.dc1 (8|M0) null r10 null:0 0x0 0x04015000");
}

/// ISA-221, ISA-226: the payload of a typed write is divided anywhere. A lane outside writes nothing, and is counted.
#[test]
fn typed_writes_take_their_components_from_both_sources() {
    for (first, text) in [
        (40, "send.dc1 (8|M0) null r10 r40:4 0x0 0x04035000"),
        (41, "send.dc1 (8|M0) null r10 r41:3 0x0 0x06035000"),
        (38, "send.dc1 (8|M0) null r10 r38:6 0x0 0x00035000"),
    ] {
        let mut machine = Machine::new();
        for from in [10, if first < 40 { first } else { 10 }] {
            machine.set(from, &[0, 1, 2, 3, 4, 5, 6, 8]);
            machine.set(from + 1, &[0; 8]);
        }
        // The first component, in either source.
        for from in [12, 40] {
            machine.set(from, &[1, 2, 3, 4, 5, 6, 7, 8]);
        }
        for from in 41..44 {
            machine.set(from, &[0x300; 8]);
        }
        machine.passes(text);
        let row = machine.space.peek(machine.image, 32);
        let expected: Vec<u8> = (1..=7u8).flat_map(|value| [value, 0xff, 0xff, 0xff]).chain([28, 29, 30, 31]).collect();
        assert_eq!(row, expected, "{text}");
        assert_eq!((machine.outside, machine.first_outside), (1, Some((0, 7))), "{text}");
    }
}

/// ISA-226: shared local memory has no images.
#[test]
fn typed_and_media_messages_to_local_memory_are_faults() {
    let mut machine = Machine::new();
    machine.set(10, &[0; 8]);
    machine.set(11, &[0; 8]);
    machine.fails("send.dc1 (8|M0) r20 r10 null:0 0x0 0x044150FE", FaultKind::Surface);
    machine.fails("(W) send.dc1 (1|M0) r20 r10 null:0 0x0 0x021900FE", FaultKind::Surface);
}

/// Header of a media block.
fn block(x: i32, y: i32, width: u32, height: u32) -> [u32; 3] {
    [x.cast_unsigned(), y.cast_unsigned(), width - 1 | height - 1 << 16]
}

/// EU-045, ISA-200: the response has as many registers as the rows of the block, so that no other register changes.
#[test]
fn media_blocks_fit_their_response_and_their_payload() {
    let mut machine = Machine::new();
    machine.set(10, &block(4, 1, 12, 3));
    // Three rows of 16 bytes are two registers.
    machine.passes("(W) send.dc1 (1|M0) r20 r10 null:0 0x0 0x02290000");
    for row in 0..3 {
        let from = PITCH as u8 * (row + 1) + 4;
        let bytes = machine.bytes(20, 64);
        assert_eq!(bytes[usize::from(row) * 16..][..12], (from..from + 12).collect::<Vec<u8>>(), "row {row}");
    }
    assert_eq!(machine.outside, 0);
    machine.fails("(W) send.dc1 (1|M0) r20 r10 null:0 0x0 0x02190000", FaultKind::Length);
    machine.fails("(W) send.dc1 (1|M0) null r10 r40:1 0x0 0x02028000", FaultKind::Message);
    machine.fails("(W) send.dc1 (1|M0) null r10 r40:1 0x0 0x020A8000", FaultKind::Length);
    machine.set(10, &block(0, 0, 64, 64));
    machine.fails("(W) send.dc1 (1|M0) r20 r10 null:0 0x0 0x03F90000", FaultKind::Length);
    machine.fails("(W) send.dc1 (1|M0) r20 null null:0 0x0 0x00190000", FaultKind::Length);
}

/// EU-045: data behind the header is in both sources.
#[test]
fn media_blocks_are_written_from_both_sources() {
    for text in [
        "(W) send.dc1 (1|M0) null r10 null:0 0x0 0x060A8000",
        "(W) send.dc1 (1|M0) null r10 r40:1 0x0 0x040A8000",
        "(W) send.dc1 (1|M0) null r10 r39:2 0x0 0x020A8000",
    ] {
        let mut machine = Machine::new();
        machine.set(10, &block(0, 0, 16, 4));
        for (register, value) in [(11, 0x0101_0101), (39, 0x0101_0101), (12, 0x0202_0202), (40, 0x0202_0202)] {
            machine.set(register, &[value; 4]);
            for dword in 4..8 {
                machine.thread.set_grf(register, dword, value + 0x1010_1010);
            }
        }
        machine.passes(text);
        for (row, value) in [0x01, 0x11, 0x02, 0x12].into_iter().enumerate() {
            let bytes = machine.space.peek(machine.image + row as u64 * u64::from(PITCH), 20);
            let after = PITCH as u8 * row as u8 + 16;
            assert_eq!(bytes, [[value; 16].as_slice(), &[after, after + 1, after + 2, after + 3]].concat(), "{text}");
        }
    }
}

/// EU-045: a media block is sent as a whole if its predicate holds for a lane, and otherwise not at all (IGT:
/// `gpgpu_shader__write_on_exception`).
#[test]
fn media_blocks_without_a_lane_are_not_sent() {
    for sent in [false, true] {
        let flag = format!("(W) mov (1|M0) f0.0<1>:ud {:#x}:ud\n", u32::from(sent));
        let mut machine = Machine::new();
        machine.set(10, &block(4, 1, 4, 1));
        machine.set(11, &[0xdddd_dddd; 8]);
        machine.set(20, &[0x5555_5555; 8]);
        machine.passes(&format!("{flag}(W&f0.0) send.dc1 (1|M0) r20 r10 null:0 0x0 0x02190000"));
        machine.passes(&format!("{flag}(W&f0.0) send.dc1 (1|M0) null r10 null:0 0x0 0x040A8000"));
        let read = u32::from_le_bytes([0, 1, 2, 3].map(|byte| PITCH as u8 + 4 + byte));
        assert_eq!(machine.dwords(20, 1), [if sent { read } else { 0x5555_5555 }]);
        let written = machine.space.peek(machine.image + u64::from(PITCH) + 4, 4);
        assert_eq!(written, if sent { [0xdd; 4] } else { read.to_le_bytes() });
        // Outside, too.
        machine.set(10, &block(-8, 1, 4, 1));
        machine.passes(&format!("{flag}(W&f0.0) send.dc1 (1|M0) null r10 null:0 0x0 0x040A8000"));
        assert_eq!(machine.outside, u64::from(sent));
    }
}

/// ISA-221: positions are signed; bytes outside read 0 and are not written, and rows with one are counted.
#[test]
fn media_blocks_beyond_an_edge_are_counted() {
    // Position, bytes of the first row of the block that are inside, rows with bytes outside.
    for (x, y, inside, outside) in [
        (-4, 1, 4..8, 2),
        (28, 1, 0..4, 2),
        (0, 3, 0..8, 1),
        (0, -1, 0..0, 1),
        (32, 0, 0..0, 2),
        (-8, 0, 0..0, 2),
        (i32::MIN, i32::MIN, 0..0, 2),
        (i32::MAX, i32::MAX, 0..0, 2),
    ] {
        let place = format!("{x} {y}");
        let mut machine = Machine::new();
        machine.set(10, &block(x, y, 8, 2));
        machine.passes("(W) send.dc1 (1|M0) r20 r10 null:0 0x0 0x02190000");
        let pixel = |column: i32| (y * PITCH as i32 + x + column) as u8;
        let expected: Vec<u8> = (0..8).map(|column| if inside.contains(&column) { pixel(column) } else { 0 }).collect();
        assert_eq!(machine.bytes(20, 8), expected, "{place}");
        assert_eq!((machine.outside, machine.first_outside), (outside, Some((0, 0))), "{place}");
        machine.set(11, &[0xdddd_dddd; 8]);
        let before = machine.space.peek(machine.image, (PITCH * HEIGHT) as usize);
        machine.passes("(W) send.dc1 (1|M0) null r10 null:0 0x0 0x040A8000");
        let after = machine.space.peek(machine.image, (PITCH * HEIGHT) as usize);
        for (at, (old, new)) in (0..).zip(before.iter().zip(&after)) {
            let (column, row) = (at % PITCH as i32, at / PITCH as i32);
            let written = column < 32
                && (i64::from(x)..i64::from(x) + 8).contains(&column.into())
                && (i64::from(y)..i64::from(y) + 2).contains(&row.into());
            assert_eq!(*new, if written { 0xdd } else { *old }, "{place}: {column} {row}");
        }
        assert_eq!(machine.outside, outside, "{place}");
    }
}

/// The address of a row far outside, or in an image with a pitch near 2^64, is not computed with an overflow.
#[test]
fn addresses_of_huge_images_wrap() {
    let mut machine = Machine::new();
    let State::Image(image) = &mut machine.space.states[0] else { unreachable!() };
    (image.width, image.height, image.pitch, image.slice) = (u32::MAX, u32::MAX, u64::MAX - 47, u64::MAX);
    machine.set(10, &block(0, i32::MAX, 4, 2));
    assert!(matches!(machine.send("(W) send.dc1 (1|M0) r20 r10 null:0 0x0 0x02190000"), Stop::Fault(_)));
    machine.set(10, &[3; 8]);
    machine.set(11, &[u32::MAX - 1; 8]);
    assert!(matches!(machine.send("send.dc1 (8|M0) r20 r10 null:0 0x0 0x04415000"), Stop::Fault(_)));
}

/// ISA-200, ISA-225, ISA-227: blocks of owords, blocks of registers in scratch memory and scattered elements.
#[test]
fn buffer_messages_have_the_lengths_that_they_need() {
    let mut machine = Machine::new();
    machine.set(10, &[0; 8]);
    for (text, what) in [
        ("(W) send.dc0 (8|M0) r20 r10 null:0 0x0 0x02184401", "8 owords in one register"),
        ("(W) send.dc0 (8|M0) null r10 r40:1 0x0 0x020A0301", "4 owords from one register"),
        ("(W) send.dc0 (8|M0) null null null:0 0x0 0x000A0301", "4 owords from none"),
        ("(W) send.dc1 (8|M0) r20 r10 null:0 0x0 0x021D03FF", "4 owords at a 64-bit address in one register"),
        ("(W) send.dc0 (8|M0) r20 r10 null:0 0x0 0x021C1000", "two registers of scratch memory in one"),
        ("(W) send.dc0 (8|M0) null r10 r40:1 0x0 0x020E1000", "two registers of scratch memory from one"),
        ("send.dc0 (16|M0) r20 r10 null:0 0x0 0x0410C101", "16 dwords in one register"),
        ("send.dc0 (16|M0) r20 r10 null:0 0x0 0x0220C101", "16 addresses in one register"),
        ("send.dc0 (16|M0) null r10 r40:1 0x0 0x0402C101", "16 dwords from one register"),
        ("send.dc1 (8|M0) r20 r10 null:0 0x0 0x02106001", "four components in one register"),
    ] {
        println!("{what}");
        machine.fails(text, FaultKind::Length);
    }
}

/// ISA-200, ISA-227: dwords of lanes are behind the addresses, in both sources.
#[test]
fn scattered_dwords_are_written_from_both_sources() {
    for text in [
        "send.dc0 (16|M0) null r10 null:0 0x0 0x0802C101",
        "send.dc0 (16|M0) null r10 r42:2 0x0 0x0402C101",
        "send.dc0 (16|M0) null r10 r43:1 0x0 0x0602C101",
        "send.dc0 (16|M0) null r10 r41:3 0x0 0x0202C101",
    ] {
        let mut machine = Machine::new();
        for register in [10, 11, 41] {
            let first = if register == 10 { 0 } else { 8 };
            machine.set(register, &[0, 1, 2, 3, 4, 5, 6, 7].map(|lane: u32| (first + lane) * 4));
        }
        for register in [12, 13, 42, 43] {
            let first = if register % 10 == 2 { 100 } else { 108 };
            machine.set(register, &[0, 1, 2, 3, 4, 5, 6, 7].map(|lane: u32| first + lane));
        }
        machine.passes(text);
        let State::Buffer { start, .. } = machine.space.states[1] else { unreachable!() };
        let written = common::dwords(&machine.space.peek(start, BUFFER as usize));
        assert_eq!(written, (100..116).collect::<Vec<u32>>(), "{text}");
        assert_eq!(machine.outside, 0, "{text}");
    }
}

/// ISA-221: a block with bytes outside its surface is counted.
#[test]
fn blocks_beyond_the_end_of_their_surface_are_counted() {
    let mut machine = Machine::new();
    machine.set(10, &[0, 0, 48]);
    machine.passes("(W) send.dc0 (8|M0) r20 r10 null:0 0x0 0x02184201");
    assert_eq!((machine.outside, machine.first_outside), (1, Some((0, 0))));
    let expected: Vec<u8> = (48..64).chain([0; 16]).collect();
    assert_eq!(machine.bytes(20, 32), expected);
    // In owords, of data in source 1.
    machine.set(10, &[0, 0, 3]);
    machine.set(40, &[7; 8]);
    machine.passes("(W) send.dc0 (8|M0) null r10 r40:1 0x0 0x020A0201");
    assert_eq!(machine.outside, 1);
    machine.set(10, &[0, 0, 32]);
    machine.passes("(W) send.dc0 (8|M0) r20 r10 null:0 0x0 0x02184201");
    assert_eq!((machine.outside, machine.first_outside), (0, None));
    assert_eq!(machine.dwords(20, 8)[4..], [7; 4]);
}

/// ISA-221, ISA-222: an element that is wholly or partly beyond the end reads 0 and is not written. Its neighbours in the same
/// access are.
#[test]
fn elements_beyond_the_end_of_their_memory_read_zero_and_are_dropped() {
    proves!(ISA_221, "elements just inside, straddling the end and outside of buffers and local memory");
    let contents: Vec<u8> = (0..BUFFER as u8).collect();
    let at = |address: usize, size: usize| match contents.get(address..address + size) {
        Some(bytes) => bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)),
        None => 0,
    };
    let addresses = [0, 40, 60, 61, 62, 63, 64, 0x1_0000];
    for (function, index, flags) in [("ugm", 0x100_0000, 0x6000_0000), ("slm", 0, 0)] {
        // Load, store, bytes of an element, elements of a lane.
        for (load, store, size, count) in [
            (0x0210_0900, Some(0x0200_0904), 1, 1),
            (0x0210_0b00, Some(0x0200_0b04), 2, 1),
            (0x0210_0500, Some(0x0200_0504), 4, 1),
            (0x0220_1500, Some(0x0200_1504), 4, 2),
            (0x0240_3500, Some(0x0200_3504), 4, 4),
            (0x0230_b502, None, 4, 2),
        ] {
            let mut machine = Machine::new();
            machine.slm = contents.clone();
            machine.set(10, &addresses.map(|address| address as u32));
            machine.passes(&format!("send.{function} (8|M0) r20 r10 null:0 {index:#x} {:#x}", load | flags));
            // The components of the mask 1011 are 0, 1 and 3; of this form only the first two are compared.
            for (component, lane) in (0..count).flat_map(|component| (0..8).map(move |lane| (component, lane))) {
                let seen = machine.dwords(20 + component, 8)[lane];
                let address = addresses[lane] + component * size;
                assert_eq!(seen, at(address, size), "{function} {load:#x}: component {component} at {address}");
            }
            assert!(machine.outside > 0, "{function} {load:#x}");
            let Some(store) = store else { continue };
            let before = machine.contents(function);
            machine.set(40, &[0xdddd_dddd; 32]);
            machine.passes(&format!("send.{function} (8|M0) null r10 r40:{count} {index:#x} {:#x}", store | flags));
            let mut expected = before;
            for address in addresses.iter().flat_map(|address| (0..count).map(move |n| address + n * size)) {
                if address + size <= BUFFER as usize {
                    expected[address..address + size].fill(0xdd);
                }
            }
            assert_eq!(machine.contents(function), expected, "{function} {store:#x}");
        }
    }
}

/// ISA-227: the messages of Intel's samples of inline assembly among them. Elements of a lane are consecutive in memory, and in
/// registers of their own.
#[test]
fn scattered_messages_have_addresses_of_64_bits() {
    // Descriptor without lengths and direction, bytes of an element in memory and in registers, elements.
    for (form, size, register_size, count) in [
        (0x00ff_u32, 1, 4, 1),
        (0x04ff, 2, 4, 1),
        (0x08ff, 4, 4, 1),
        (0x01ff, 4, 4, 1),
        (0x05ff, 4, 4, 2),
        (0x09ff, 4, 4, 4),
        (0x02ff, 8, 8, 1),
        (0x06ff, 8, 8, 2),
    ] {
        for lanes in [8usize, 16] {
            let mut machine = Machine::new();
            let offsets: Vec<u64> = (0..lanes as u64).map(|lane| (lane * 5 % 16) * 4).collect();
            let addresses: Vec<u32> = offsets
                .iter()
                .map(|offset| machine.buffer + offset)
                .flat_map(|address| [address as u32, (address >> 32) as u32])
                .collect();
            machine.set(10, &addresses);
            let registers = (count * lanes * register_size / 32) as u32;
            let flags = if lanes == 16 { 1 << 12 } else { 0 } | (lanes as u32 / 4) << 25 | form;
            let before = machine.contents("ugm");
            let read = flags | 0x10 << 14 | registers << 20;
            machine.passes(&format!("send.dc1 ({lanes}|M0) r20 r10 null:0 0x0 {read:#010X}"));
            let loaded = machine.bytes(20, count * lanes * register_size);
            for (lane, element) in (0..lanes).flat_map(|lane| (0..count).map(move |element| (lane, element))) {
                let at = (element * lanes + lane) * register_size;
                let from = offsets[lane] as usize + element * size;
                let mut expected = before[from..from + size].to_vec();
                expected.resize(register_size, 0);
                assert_eq!(loaded[at..at + register_size], expected, "{read:#x}: lane {lane}, element {element}");
            }
            // What was loaded, at places 16 bytes further.
            let further: Vec<u32> =
                addresses.iter().enumerate().map(|(n, value)| if n % 2 == 0 { value + 16 } else { *value }).collect();
            machine.set(10, &further);
            let write = flags | 0x1a << 14;
            machine.passes(&format!("send.dc1 ({lanes}|M0) null r10 r20:{registers} 0x0 {write:#010X}"));
            let mut expected = before.clone();
            for (lane, element) in (0..lanes).flat_map(|lane| (0..count).map(move |element| (lane, element))) {
                let from = offsets[lane] as usize + element * size;
                expected[from + 16..from + 16 + size].copy_from_slice(&before[from..from + size]);
            }
            assert_eq!(machine.contents("ugm"), expected, "{write:#x}");
        }
    }
    let mut machine = Machine::new();
    machine.fails("send.dc1 (16|M0) r20 r10 null:0 0x0 0x08241FFF", FaultKind::Message);
    machine.fails("send.dc1 (16|M0) r20 r10 null:0 0x0 0x081411FF", FaultKind::Length);
}

/// ISA-250: a header that is not in the payload.
#[test]
fn sampler_messages_have_the_header_of_their_descriptor() {
    let mut machine = Machine::new();
    machine.set(10, &[0; 8]);
    machine.fails("send.smpl (8|M0) r20 null null:0 0x0 0x004AA000", FaultKind::Length);
    machine.passes("send.smpl (8|M0) r20 r10 null:0 0x0 0x024AA000");
}

/// ISA-200, ISA-214, ISA-215, ISA-218: addresses, data and response of load/store cache messages.
#[test]
fn cache_messages_have_the_lengths_that_they_need() {
    let mut machine = Machine::new();
    for (text, what) in [
        ("send.ugm (8|M0) r20 r10 null:0 0x0 0x02100580", "eight 64-bit addresses in one register"),
        ("send.ugm (16|M0) r20 r10 null:0 0x1000000 0x64100500", "16 dwords in one register"),
        ("send.ugm (8|M0) r20 r10 null:0 0x1000000 0x62303500", "four dwords of a lane in three registers"),
        ("send.ugm (8|M0) r20 r10 null:0 0x1000000 0x62107502", "three components in one register"),
        ("(W) send.ugm (1|M0) r20 r10 null:0 0x1000000 0x6210D500", "a block of 16 dwords in one register"),
        ("send.ugm (8|M0) r20 r10 null:0 0x1000000 0x62000500", "a response of no registers"),
        ("send.ugm (8|M0) null r10 r40:1 0x1000000 0x62001504", "two dwords of a lane from one register"),
        ("send.ugm (8|M0) null r10 r40:1 0x1000000 0x62000512", "two operands from one register"),
        ("send.ugm (8|M0) r20 r10 r40:1 0x1000000 0x6210070C", "two registers of data from one"),
    ] {
        println!("{what}");
        machine.fails(text, FaultKind::Length);
    }
    machine.set(10, &[0, 4, 8, 12, 16, 20, 24, 28]);
    machine.set(11, &[32, 36, 40, 44, 48, 52, 56, 60]);
    machine.passes("send.ugm (16|M0) r20 r10 null:0 0x1000000 0x64200500");
    assert_eq!(machine.dwords(20, 16)[15], 0x3f3e_3d3c);
    // A load without destination has no response.
    machine.passes("send.ugm (16|M0) null r10 null:0 0x1000000 0x64000500");
    assert_eq!(machine.outside, 0);
}
