// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Mesa's fixtures, from Debian's source package (long tier).
#![cfg(feature = "long-tests")]

mod mesa;

use arctic_afuc::container::Image;
use arctic_afuc::isa::Generation;
use arctic_afuc::pm4::Histogram;
use arctic_afuc::replay::{self, COUNTER, Replay, run_to_idle};
use arctic_afuc::text::{Options, Syntax, assemble, disassemble};
use arctic_afuc::trace::read;

/// Both fixtures, both directions: bytes and text are those of Mesa's tools (AF-107, AF-108).
#[test]
fn fixtures_are_assembled_and_disassembled_as_by_the_peer() {
    for name in ["afuc_test", "afuc_test_a7xx"] {
        let source = mesa::text(&format!("traces/{name}.asm"));
        let firmware = mesa::file(&format!("reference/{name}.fw"));
        let reference = mesa::text(&format!("reference/{name}.asm"));
        let assembled = assemble(&source, &Options::default()).unwrap();
        assert!(assembled.image.to_bytes() == firmware, "{name}");
        let image = Image::from_bytes(&firmware, None).unwrap();
        assert_eq!(disassemble(&image, Syntax::Mesa), reference, "{name}");
        for text in [reference, disassemble(&image, Syntax::Native)] {
            assert!(assemble(&text, &Options::default()).unwrap().image.to_bytes() == firmware, "{name}");
        }
    }
}

const TRACES: [&str; 3] =
    ["dEQP-VK.draw.indirect_draw.indexed.indirect_draw_count.triangle_list", "fd-clouds", "shadow"];

/// Opcodes of the traces with the number of packets in all three (AFC-067).
const PACKETS: [(u8, u64); 30] = [
    (0x04, 15_776),
    (0x26, 1_968),
    (0x46, 419),
    (0x65, 287),
    (0x3f, 272),
    (0x32, 271),
    (0x10, 237),
    (0x43, 203),
    (0x63, 177),
    (0x34, 169),
    (0x45, 150),
    (0x64, 113),
    (0x23, 103),
    (0x47, 89),
    (0x36, 86),
    (0x39, 86),
    (0x38, 86),
    (0x13, 74),
    (0x2f, 65),
    (0x1d, 16),
    (0x6d, 14),
    (0x2c, 6),
    (0x3c, 5),
    (0x14, 5),
    (0x12, 5),
    (0x5c, 4),
    (0x3d, 3),
    (0x42, 3),
    (0x3e, 3),
    (0x2a, 1),
];

fn run(name: &str, generation: Generation, options: &replay::Options) -> Replay {
    let source = include_str!("../firmware/sqe-open.asm");
    let open = assemble(source, &Options { generation: Some(generation) }).unwrap().image;
    let mut replay = Replay::new(&open, options).unwrap();
    for record in read(&mesa::file(&format!("traces/{name}.rd.gz"))).unwrap() {
        replay.record(&record, &mut run_to_idle).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    replay
}

/// The three a6xx traces end idle, have the published packets, and machine and interpreter write the same
/// (AFC-067, AFC-071), with the firmware of both generations.
#[test]
fn traces_end_idle_with_the_writes_of_the_interpreter() {
    for generation in [Generation::A6, Generation::A7] {
        let mut all = Histogram::default();
        for name in TRACES {
            let replay = run(name, generation, &replay::Options { compare: true, ..replay::Options::default() });
            let sums = replay.compare().unwrap().unwrap();
            let interpreter = replay.interpreter.as_ref().unwrap();
            assert_eq!(interpreter.packets, replay.machine.packets, "{name}");
            assert_eq!(replay.machine.left_words, 0, "{name}");
            println!("{generation:?} {name}: {sums:?}, {} groups", interpreter.groups_executed);
            for (sum, count) in all.packets.iter_mut().zip(replay.stream.packets) {
                *sum += count;
            }
            all.registers += replay.stream.registers;
            all.words += replay.stream.words;
            all.groups += replay.stream.groups;
            all.missing += replay.stream.missing;
        }
        let mut expected = Histogram { registers: 25_125, words: 59_566, groups: 1_237, ..Histogram::default() };
        PACKETS.iter().for_each(|(opcode, count)| expected.packets[usize::from(*opcode)] = *count);
        assert_eq!(all, expected);
    }
}

/// Preemption every 61 instructions changes no write (AFC-072).
#[test]
fn traces_have_the_same_writes_with_preemption() {
    for generation in [Generation::A6, Generation::A7] {
        let mut preemptions = 0;
        for name in TRACES {
            let options = replay::Options { compare: true, preempt_every: Some(61), ..replay::Options::default() };
            let mut replay = run(name, generation, &options);
            replay.compare().unwrap().unwrap();
            let machine = &mut replay.machine;
            assert_eq!(u64::from(machine.bus.memory.read(COUNTER).unwrap()), machine.preemptions);
            preemptions += machine.preemptions;
        }
        assert!(preemptions > 1_000, "{preemptions}");
    }
}
