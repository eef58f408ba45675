// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Typed atomic operations on images: ISA-226.

mod common;

use std::thread;

use arctic_eu::exec::memory::{Component, Dimensions, Image, Levels};
use arctic_eu::exec::{self, Budget, Environment, FaultKind, Group, Host, Program, Stop, Thread, Way};
use arctic_eu::launch::memory::{Space, State};
use arctic_eu::launch::parse_image_format;
use arctic_eu::text::disassemble;
use common::{END, code};

const LANES: usize = 8;
/// Bytes between rows of the image of 8 by 2 texels.
const PITCH: u32 = 48;

struct Machine {
    space: Space,
    image: u64,
}

fn machine(format: &str) -> Machine {
    let mut space = Space::new();
    let image = space.allocate("image", PITCH as usize * 2).unwrap();
    space.add_state(State::Image(Image {
        base: image,
        width: 8,
        height: 2,
        depth: 1,
        pitch: PITCH.into(),
        slice: 0,
        dimensions: Dimensions::Two,
        array: false,
        cube: false,
        levels: Levels::ONE,
        format: parse_image_format(format).unwrap(),
        components: Component::COLOR,
        handle: 0,
    }));
    space.bindings = vec![(0, 0)];
    Machine { space, image }
}

impl Machine {
    fn texels(&self, row: u32) -> [u32; LANES] {
        let bytes = self.space.peek(self.image + u64::from(row * PITCH), LANES * 4);
        [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| u32::from_le_bytes(bytes[lane * 4..][..4].try_into().unwrap()))
    }

    fn set_texels(&self, row: u32, texels: [u32; LANES]) {
        self.space.poke(self.image + u64::from(row * PITCH), texels.map(u32::to_le_bytes).as_flattened());
    }

    /// Executes a message with u in r10, v in r11 and operands in r12 and r13. Returns its stop, r20 and the number of lanes
    /// outside.
    fn send(
        &self,
        text: &str,
        u: [u32; LANES],
        v: [u32; LANES],
        operands: [[u32; LANES]; 2],
    ) -> (Stop, [u32; LANES], u64) {
        let program = Program::translate(&code(&format!("{text}\n{END}")), 0, 128, Host::Portable);
        let mut thread = Thread::new(128, 0xff);
        let [first, second] = operands;
        for (register, values) in [(10, u), (11, v), (12, first), (13, second), (20, [0xeeee; LANES])] {
            for (lane, value) in values.into_iter().enumerate() {
                thread.set_grf(register, lane, value);
            }
        }
        let mut group = Group::default();
        let mut memory = &self.space;
        let mut environment = Environment::new(&mut memory, &mut group);
        let stop = exec::run(&program, &mut thread, &mut environment, Budget::instructions(10), Way::Fast, &mut ());
        let outside = environment.outside;
        (stop, [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| thread.grf(20, lane)), outside)
    }
}

type Apply = fn(u32, u32, u32) -> u32;

/// Operations by their codes: number of operands, and the texel behind it.
const OPERATIONS: [(u32, u32, Apply); 13] = [
    (1, 1, |old, a, _| old & a),
    (2, 1, |old, a, _| old | a),
    (3, 1, |old, a, _| old ^ a),
    (4, 1, |_, a, _| a),
    (5, 0, |old, _, _| old.wrapping_add(1)),
    (6, 0, |old, _, _| old.wrapping_sub(1)),
    (7, 1, |old, a, _| old.wrapping_add(a)),
    (8, 1, |old, a, _| old.wrapping_sub(a)),
    (10, 1, |old, a, _| old.cast_signed().max(a.cast_signed()).cast_unsigned()),
    (11, 1, |old, a, _| old.cast_signed().min(a.cast_signed()).cast_unsigned()),
    (12, 1, |old, a, _| old.max(a)),
    (13, 1, |old, a, _| old.min(a)),
    (14, 2, |old, a, b| if old == a { b } else { old }),
];

/// A message with this operation, with its result in r20 or without one.
fn message(operation: u32, operands: u32, returns: bool) -> String {
    let result = if returns { (1 << 20 | 1 << 13, "r20") } else { (0, "null") };
    let descriptor = 2 << 25 | 6 << 14 | operation << 8 | result.0;
    let data = if operands == 0 { "null:0".into() } else { format!("r12:{operands}") };
    format!("send.dc1 (8|M0) {} r10 {data} 0x0 {descriptor:#010X}", result.1)
}

#[test]
fn texels_change_by_each_operation() {
    let columns = [0, 1, 2, 3, 4, 5, 6, 7];
    let before = [0, 1, 5, 0x8000_0000, 0x7fff_ffff, u32::MAX, 0x1234, 7];
    let operands = [[3, 1, 4, 0x7fff_ffff, 0x8000_0001, 1, 0x1234, 9], [70, 71, 72, 73, 74, 75, 76, 77]];
    for format in ["r32ui", "r32i", "r32f"] {
        for (operation, count, apply) in OPERATIONS {
            for returns in [false, true] {
                let machine = machine(format);
                machine.set_texels(1, before);
                let text = message(operation, count, returns);
                let (stop, found, outside) = machine.send(&text, columns, [1; LANES], operands);
                assert_eq!((stop, outside), (Stop::End, 0), "{text}");
                let expected = columns.map(|lane| {
                    let lane = lane as usize;
                    apply(before[lane], operands[0][lane], operands[1][lane])
                });
                assert_eq!(machine.texels(1), expected, "{format} {text}");
                assert_eq!(found, if returns { before } else { [0xeeee; LANES] }, "{format} {text}");
                assert_eq!(machine.texels(0), [0; LANES]);
            }
        }
    }
}

/// Lanes at one texel are applied one after the other; those outside change nothing and return 0.
#[test]
fn lanes_at_one_texel_and_outside() {
    let machine = machine("r32ui");
    let text = message(7, 1, true);
    let (stop, found, outside) =
        machine.send(&text, [3, 3, 8, 3, u32::MAX, 3, 3, 0], [1, 1, 1, 1, 1, 2, 1, 0], [[10; LANES], [0; LANES]]);
    assert_eq!((stop, outside), (Stop::End, 3));
    assert_eq!(found, [0, 10, 0, 20, 0, 0, 30, 0]);
    assert_eq!((machine.texels(1)[3], machine.texels(0)[0]), (40, 10));
}

#[test]
fn other_operations_and_formats_are_faults() {
    let fault = |format: &str, text: &str| match machine(format).send(text, [0; LANES], [0; LANES], [[0; LANES]; 2]).0 {
        Stop::Fault(fault) => fault.kind,
        other => panic!("{text}: {other:?}"),
    };
    for operation in [0, 9, 15] {
        assert_eq!(fault("r32ui", &message(operation, 1, false)), FaultKind::Message, "{operation}");
    }
    for format in ["rgba8ui", "r16ui", "rg32ui"] {
        assert_eq!(fault(format, &message(7, 1, false)), FaultKind::Image, "{format}");
    }
    assert_eq!(fault("r32ui", &message(7, 0, false)), FaultKind::Length, "no operand");
    assert_eq!(fault("r32ui", &message(14, 1, false)), FaultKind::Length, "one operand of two");
}

/// Host threads share the memory: no addition is lost.
#[test]
fn additions_of_two_threads_are_in_the_sum() {
    let machine = machine("r32ui");
    let (machine, text) = (&machine, &message(7, 1, true));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    assert_eq!(machine.send(text, [5; LANES], [0; LANES], [[1; LANES], [0; LANES]]).0, Stop::End);
                }
            });
        }
    });
    assert_eq!(machine.texels(0)[5], 2 * 2000 * 8);
}

/// ISA-251: comments name messages as IGA does.
#[test]
fn comments_name_typed_and_sampler_messages() {
    for (text, expected) in [
        ("send.dc1 (8|M0) r20 r10 r12:1 0x0 0x0411A700", "wr:2+1, rd:1; typed atomic 32-bit integer integer add"),
        (
            "send.smpl (8|M0) r20 r10 null:0 0x0 0x06426000",
            "wr:3+0, rd:4; simd8 sample compare+override LOD using sampler index 0",
        ),
        (
            "send.smpl (16|M0) r20 r10 null:0 0x0 0x04848301",
            "wr:2+0, rd:8; simd16 sample gather4 using sampler index 3",
        ),
    ] {
        let text = disassemble(&code(text));
        assert!(text.trim_end().ends_with(&format!("// {expected}")), "{text}");
    }
}
