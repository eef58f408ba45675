// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the fuzz targets check. The tests of `arctic-afuc` include this file and give it generated inputs.

use std::sync::OnceLock;

use arctic_afuc::container::Image;
use arctic_afuc::isa::Generation;
use arctic_afuc::machine::{Machine, Stop};
use arctic_afuc::pm4::{Interpreter, Limit, operation};
use arctic_afuc::text::{Options, Syntax, assemble, disassemble, disassemble_raw};

/// Address of the buffer of packets.
const BUFFER: u64 = 0x10_0000;
/// Instructions that a run may take.
const BUDGET: u64 = 20_000;
/// Instructions that a packet may take.
const PACKET_BUDGET: u64 = 5_000;

/// The first byte chooses the generation, the others are an image: its text makes the same bytes again.
pub fn round_trip(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let generation = Generation::ALL[usize::from(*first) % 3];
    let Ok(image) = Image::from_bytes(&rest[..rest.len() & !3], Some(generation)) else { return };
    for text in [disassemble(&image, Syntax::Native), disassemble_raw(&image, Syntax::Native)] {
        let again = assemble(&text, &Options::default()).unwrap_or_else(|errors| {
            panic!("{}", errors.render(&text, "text", false));
        });
        assert_eq!(again.image.to_bytes(), image.to_bytes());
    }
    disassemble(&image, Syntax::Mesa);
}

/// The input is a source: errors have places in it, and an image has a text that makes it again.
pub fn assembler(input: &[u8]) {
    let Ok(source) = std::str::from_utf8(input) else { return };
    match assemble(source, &Options::default()) {
        Ok(assembled) => {
            let text = disassemble(&assembled.image, Syntax::Native);
            let again = assemble(&text, &Options { generation: None }).unwrap_or_else(|errors| {
                panic!("{}", errors.render(&text, "text", false));
            });
            assert_eq!(again.image.to_bytes(), assembled.image.to_bytes());
        }
        Err(errors) => {
            assert!((1..=20).contains(&errors.0.len()));
            for error in &errors.0 {
                let span = error.span.clone();
                assert!(span.start <= span.end && span.end <= source.len(), "{error:?}");
                assert!(source.is_char_boundary(span.start) && source.is_char_boundary(span.end), "{error:?}");
            }
            errors.render(source, "source", false);
        }
    }
}

fn open(generation: Generation) -> &'static Image {
    static IMAGES: OnceLock<[Image; 2]> = OnceLock::new();
    let images = IMAGES.get_or_init(|| {
        [Generation::A6, Generation::A7].map(|generation| {
            let options = Options { generation: Some(generation) };
            assemble(include_str!("../../firmware/sqe-open.asm"), &options).expect("the open firmware").image
        })
    });
    &images[usize::from(generation == Generation::A7)]
}

/// The first byte chooses generation, firmware and preemption, the second the number of words of an image; the others are
/// packets. The machine keeps its budget, a snapshot goes on like the original, and both ways of execution have the same
/// results. The interpreter ends too.
pub fn machine(input: &[u8]) {
    let [first, second, rest @ ..] = input else { return };
    let generation = Generation::ALL[usize::from(first & 3) % 3];
    let words: Vec<u32> = rest.as_chunks::<4>().0.iter().map(|chunk| u32::from_le_bytes(*chunk)).collect();
    let (code, packets) = words.split_at(usize::from(*second).min(words.len()));
    let own;
    let image = if first & 4 != 0 && generation != Generation::A5 {
        open(generation)
    } else {
        let bytes: Vec<u8> = std::iter::once(0).chain(code.iter().copied()).flat_map(u32::to_le_bytes).collect();
        let Ok(image) = Image::from_bytes(&bytes, Some(generation)) else { return };
        own = image;
        &own
    };
    let mut machine = Machine::new(image);
    machine.packet_budget = PACKET_BUDGET;
    machine.bus.record = true;
    machine.bus.memory.map(BUFFER, 0x1000);
    machine.bus.memory.map_on_demand = first & 8 != 0;
    machine.preempt_every = (first & 16 != 0).then_some(61);
    for (index, word) in (0..).zip(packets) {
        let _ = machine.bus.memory.write(BUFFER + index * 4, *word);
    }
    let length = u32::try_from(packets.len()).unwrap_or(0);
    if image.words != code {
        // The open firmware starts first.
        let _ = machine.run(BUDGET);
    }
    machine.submit(BUFFER, length);
    let start = machine.clock();
    let mut other = machine.clone();
    // A preemption that is never due: all instructions go the long way.
    other.preempt_every = other.preempt_every.or(Some(u64::MAX));
    let stop = machine.run(BUDGET);
    assert!(machine.clock() - start <= BUDGET + 3 * PACKET_BUDGET, "{}", machine.clock() - start);
    // In parts, with a snapshot between them.
    let mut parts = other.run(BUDGET / 7);
    if parts == Stop::Budget {
        other = other.clone();
        let left = (start + BUDGET).saturating_sub(other.clock());
        parts = other.run(left);
    }
    assert_eq!((stop, machine.gpr, machine.pc, machine.executed), (parts, other.gpr, other.pc, other.executed));
    assert!(machine.bus.effects == other.bus.effects);
    let mut interpreter = Interpreter::new(Limit { packets: 2_000, words: 100_000, ..Limit::default() });
    interpreter.map_on_demand = first & 8 != 0;
    let _ = interpreter.load(BUFFER, packets);
    #[expect(clippy::cast_possible_truncation, reason = "an address below 2^32")]
    let _ = interpreter.execute_ring(&operation(0x3f, &[BUFFER as u32, 0, length]), 0);
}
