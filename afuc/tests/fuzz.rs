// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The checks of the fuzz targets on generated inputs; in the long tier each target under libFuzzer for a minute.
//!
//! `ARCTIC_FUZZ_SECONDS` changes the time. libFuzzer needs a C++ compiler; without one the test prints a message and passes.

#[path = "../fuzz/src/lib.rs"]
mod checks;
mod common;

use arctic_afuc::isa::Generation;
use arctic_afuc::pm4::operation;
use common::{Random, image};

const FIRMWARE: &str = include_str!("../firmware/sqe-open.asm");

/// Random images, and random changes of bytes in them.
#[test]
fn round_trip_of_changed_images_is_identical() {
    let mut random = Random(2);
    for number in 0..300 {
        let generation = Generation::ALL[number % 3];
        let length = 1 + random.below(200);
        let mut bytes = image(&mut random, generation, length).to_bytes();
        bytes.insert(0, u8::try_from(number % 3).unwrap());
        for _ in 0..random.below(8) {
            let at = random.below(bytes.len());
            bytes[at] = random.next().to_le_bytes()[0];
        }
        checks::round_trip(&bytes);
    }
}

/// The source of the open firmware with characters, words and lines removed, doubled and exchanged.
#[test]
fn assembler_reports_places_in_changed_sources() {
    let mut random = Random(3);
    let lines: Vec<&str> = FIRMWARE.lines().collect();
    for _ in 0..300 {
        let start = random.below(lines.len());
        let mut source = format!("[016ee001]\n{}", lines[start..lines.len().min(start + 30)].join("\n"));
        for _ in 0..random.below(6) {
            let mut at = random.below(source.len());
            while !source.is_char_boundary(at) {
                at -= 1;
            }
            match random.below(3) {
                0 => drop(source.remove(at)),
                1 => source.insert(at, ['$', '#', '[', '(', '0', '\u{e9}', '\n', '"'][random.below(8)]),
                _ => source.insert_str(at, ["0xffffffff", "(rep)", ".if a7xx\n", ".align ", "b99"][random.below(5)]),
            }
        }
        checks::assembler(source.as_bytes());
    }
}

/// Random images on random packets, and the open firmware on packets with random words.
#[test]
fn machine_keeps_its_budget_and_continues_after_a_snapshot() {
    let mut random = Random(4);
    for _ in 0..300 {
        let mut bytes = vec![random.next().to_le_bytes()[0], random.below(40).to_le_bytes()[0]];
        for _ in 0..random.below(80) {
            let opcode = random.next().to_le_bytes()[0] & 0x7f;
            let words: Vec<u32> = (0..random.below(6)).map(|_| random.next() % 0x10_0000 + 0xf_f000).collect();
            let words = if random.below(2) == 0 { operation(opcode, &words) } else { vec![random.next()] };
            bytes.extend(words.into_iter().flat_map(u32::to_le_bytes));
        }
        checks::machine(&bytes);
    }
}

#[cfg(feature = "long-tests")]
mod libfuzzer {
    use std::path::Path;

    use arctic_libfuzzer::{Fuzzing, Target};

    /// Targets and the maximum length of their inputs in bytes.
    const TARGETS: [(&str, u32); 3] = [("round_trip", 1000), ("assembler", 1000), ("machine", 1000)];

    /// Inputs to start from: the open firmware as image and source, and one that executes packets with it.
    fn inputs(target: &str) -> Vec<Vec<u8>> {
        let options = arctic_afuc::text::Options { generation: Some(arctic_afuc::isa::Generation::A6) };
        let image = arctic_afuc::text::assemble(super::FIRMWARE, &options).unwrap().image;
        let packets = [
            super::operation(0x48, &[0; 8]),
            super::operation(0x3d, &[0x10_0800, 0, 7]),
            super::operation(0x43, &[0x70_0002, 0x10_0000, 0]),
            super::operation(0x38, &[0; 3]),
            // Numbers of registers that wrap.
            super::operation(0x6d, &[0, u32::MAX, 1, 2]),
        ];
        // On a7xx also packets for BV, and for both with a barrier.
        let threads = |which| super::operation(0x17, &[which]);
        let scratch = super::operation(0x4c, &[1 << 20, 7]);
        let others = [threads(2), scratch.clone(), threads(3 | 1 << 31), scratch, threads(1)].concat();
        match target {
            "round_trip" => vec![[&[1], &image.to_bytes()[..900]].concat()],
            "assembler" => super::FIRMWARE.as_bytes().chunks(900).map(<[u8]>::to_vec).collect(),
            _ => {
                let words = [packets.concat(), others].concat();
                let (a6, a7) = (5, 6);
                [(a6, 0), (a6, 8), (a6, 24), (a7, 0), (a7, 8), (a7, 24)]
                    .map(|(generation, flags)| {
                        let count = if generation == a7 { words.len() } else { packets.concat().len() };
                        let words = words[..count].iter().flat_map(|word| word.to_le_bytes());
                        [generation | flags, 0].into_iter().chain(words).collect()
                    })
                    .to_vec()
            }
        }
    }

    fn fuzzing() -> Fuzzing<'static> {
        Fuzzing {
            package: Path::new(env!("CARGO_MANIFEST_DIR")),
            scratch: Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz"),
            targets: TARGETS.map(|(name, longest)| Target { name, longest, inputs: inputs(name) }).to_vec(),
        }
    }

    #[test]
    fn each_target_for_a_minute() {
        fuzzing().run().unwrap_or_else(|failures| panic!("{failures}"));
    }

    #[test]
    fn each_target_is_listed_with_inputs_that_fit() {
        fuzzing().check_targets();
    }
}
