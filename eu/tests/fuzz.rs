// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The checks of the fuzz targets on generated inputs; in the long tier each target under libFuzzer for a minute.
//!
//! `ARCTIC_FUZZ_SECONDS` changes the time. libFuzzer needs a C++ compiler; without one the test prints a message and passes.

#[path = "../fuzz/src/lib.rs"]
mod checks;
mod common;
mod random;

use arctic_eu::isa::table::TABLE;
use common::END;
use random::Random;

const CASES: usize = if cfg!(feature = "long-tests") { 200_000 } else { 4_000 };

/// Words of instructions of the table with random fields.
fn word(random: &mut Random) -> Vec<u8> {
    let mut bytes = random.bytes(16);
    bytes[0] = TABLE[random.below(TABLE.len())].code;
    bytes[3] &= !0x20;
    if random.below(8) > 0 {
        bytes[2] = bytes[2] & !7 | random.below(6) as u8;
        // Types and strides that are legal more often.
        bytes[6] = bytes[6] & 0xfc | 1;
    }
    if random.below(3) == 0 {
        // Short distances of branches, in instructions.
        let distance = (random.below(17) as i32 - 8) * 16;
        bytes[12..16].copy_from_slice(&distance.to_le_bytes());
        bytes[8..12].copy_from_slice(&((random.below(9) as i32 - 4) * 16).to_le_bytes());
        bytes[5] |= 0xc0;
    }
    bytes
}

#[test]
fn random_instructions_run_within_their_budget_and_in_parts() {
    let mut random = Random(1);
    for _ in 0..CASES {
        let mut input = random.bytes(32);
        for _ in 0..1 + random.below(12) {
            input.extend(word(&mut random));
        }
        checks::resumed_execution(&input);
    }
}

/// Messages with lengths and operations of all kinds, on registers with addresses of buffers.
#[test]
fn random_messages_end_in_a_value() {
    let mut random = Random(2);
    let functions = ["ugm", "slm", "dc0", "dc1", "smpl", "gtwy", "tgm", "urb"];
    for _ in 0..CASES {
        let function = functions[random.below(functions.len())];
        let size = [1, 8, 16, 32][random.below(4)];
        let desc = random.next() as u32 & if random.below(2) == 0 { !0 } else { 0x67ff_ffff };
        let ex = match random.below(3) {
            0 => "0x0".to_string(),
            1 => format!("0x{:X}", random.next() as u32 & !0x7ff),
            _ => "a0.2".to_string(),
        };
        let (dst, src0, src1) = (random.below(128), random.below(128), random.below(128));
        let length = random.below(9);
        let length = if ex.starts_with('a') { String::new() } else { format!(":{length}") };
        let text = format!("send.{function} ({size}|M0) r{dst} r{src0} r{src1}{length} {ex} 0x{desc:08X}\n{END}");
        let mut input = random.bytes(32);
        input.extend(common::code(&text));
        checks::resumed_execution(&input);
    }
}

#[test]
fn messages_and_products_of_a_group_do_not_depend_on_its_steps() {
    let mut random = Random(5);
    for _ in 0..CASES {
        let mut input = random.bytes(32);
        for _ in 0..1 + random.below(6) {
            let mut description = random.bytes(12);
            if random.below(2) == 0 {
                // Lengths and operations of messages that compilers emit.
                let desc = [0x0420_0500, 0x0400_0504, 0x0420_050c, 0x0460_2500, 0x0824_11ff, 0x0220_d500];
                description[8..].copy_from_slice(&u32::to_le_bytes(desc[random.below(desc.len())]));
            }
            input.extend(description);
        }
        checks::messages(&input);
    }
}

#[test]
fn changed_files_are_read_or_refused() {
    let mut random = Random(3);
    let code = common::code(&format!("mov (16|M0) r20.0<1>:f r30.0<1;1,0>:f\n{END}"));
    let good = common::zebin(&[("k", code)], &common::info(16, &["a", "b"], "      slm_size: 64\n"));
    for _ in 0..CASES {
        let mut file = good.clone();
        for _ in 0..1 + random.below(6) {
            let at = random.below(file.len());
            file[at] = [0, 0xff, 0x7f, b'0', b'9', random.next() as u8][random.below(6)];
        }
        if random.below(8) == 0 {
            file.truncate(random.below(file.len()));
        }
        checks::zebin(&file);
    }
}

/// A captured walker with a surface, an image, samplers, and code that uses them or is changed.
fn captured(random: &mut Random) -> Vec<u8> {
    let mut code = Vec::new();
    for _ in 0..1 + random.below(6) {
        code.extend(word(random));
    }
    code.extend(common::code(END));
    common::capture(&code, 2, &[1, 2, 3]).to_bytes()
}

#[test]
fn changed_captures_are_read_or_refused() {
    let mut random = Random(6);
    for _ in 0..CASES {
        let mut file = captured(&mut random);
        for _ in 0..random.below(4) {
            // What is before the pages, more often.
            let end = if random.below(4) == 0 { file.len() } else { 480 };
            let at = random.below(end);
            file[at] = [0, 0xff, 1, 0x7f, 32, random.next() as u8][random.below(6)];
        }
        if random.below(8) == 0 {
            file.truncate(random.below(file.len()));
        }
        checks::capture(&file);
    }
}

#[test]
fn random_bytes_have_a_text_that_makes_them() {
    let mut random = Random(4);
    for _ in 0..CASES {
        let length = random.below(80);
        checks::text_round_trip(&random.bytes(length));
    }
}

#[cfg(feature = "long-tests")]
mod libfuzzer {
    use std::path::Path;

    use arctic_eu::zebin::Zebin;
    use arctic_libfuzzer::{Fuzzing, Target};

    use super::common::{self, END};

    /// Targets and the maximum length of their inputs in bytes.
    const TARGETS: [(&str, u32); 5] =
        [("capture", 30_000), ("zebin", 30_000), ("instructions", 4_000), ("kernel", 4_000), ("messages", 224)];

    /// Inputs to start from: recorded files of Intel's compiler, and their code.
    fn inputs(target: &str) -> Vec<Vec<u8>> {
        let files = [&include_bytes!("data/golden.zebin")[..], include_bytes!("data/limits.zebin")].map(<[u8]>::to_vec);
        if target == "zebin" {
            let small = common::zebin(&[("k", common::code(END))], &common::info(16, &["a", "b"], ""));
            return files.into_iter().chain([small]).filter(|file| file.len() <= 30_000).collect();
        }
        if target == "capture" {
            return vec![common::capture(&common::code(END), 2, &[1, 2, 3]).to_bytes()];
        }
        if target == "messages" {
            // A start, and messages or products of all kinds.
            return vec![(0..224).collect(), [vec![0xff; 40], (0..184).rev().collect()].concat()];
        }
        // A thread's start, in the first bytes of an input of `kernel`.
        let start = if target == "kernel" { 32 } else { 0 };
        let zebins = files.map(|file| Zebin::parse(file).expect("a recorded file"));
        let code = zebins.iter().flat_map(Zebin::code).map(|(_, code)| code.chunks(3_200).next().unwrap_or_default());
        code.map(|code| [&vec![0; start], code].concat()).collect()
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
