// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Properties of images of contexts and of commands of any dwords, on both generations.

use std::collections::BTreeMap;

use arctic_base::command::Decode;
use arctic_base::decode::batch;
use proptest::prelude::*;

use super::*;
use crate::generation::EngineRef;
use crate::registers::engine::{HEAD_OFFSET, INSTPM, MI_MODE, SYNC_FLUSH};
use crate::registers::{Kind, Scope};

/// The other image.
const OTHER: u32 = CONTEXT + 0x2000;

fn card(sandy_bridge: bool) -> IntegratedProfile {
    if sandy_bridge { snb() } else { ivb() }
}

/// The registers that an image must have, with their values: those with a scope of contexts, and of the engine INSTPM,
/// BB_STATE and PP_DCLV.
fn of_contexts(gt: &Gt, extended: bool) -> BTreeMap<u32, u32> {
    let in_image = |offset: u32, scope| match scope {
        Scope::Context => true,
        Scope::Extended => extended,
        _ => [0x20c0, 0x2110, 0x2220].contains(&offset),
    };
    let registers = gt.registers.listing().filter(|(offset, found)| in_image(*offset, found.register.scope));
    registers.map(|(offset, _)| (offset, gt.registers.value(offset))).collect()
}

/// All registers but those that tell the position in the ring and the batch, and CCID.
fn others(gt: &Gt) -> BTreeMap<u32, u32> {
    let position = [0x2030, 0x2034, 0x2068, 0x2074, 0x2078, 0x2140, 0x2154, 0x2180];
    let registers = gt.registers.listing().filter(|(offset, _)| !position.contains(offset));
    registers.map(|(offset, _)| (offset, gt.registers.value(offset))).collect()
}

/// The pairs of offset and value that the loads of an image have, up to its end or to a dword that is no load.
fn pairs(bench: &EngineBench, image: u32) -> Vec<(u32, u32)> {
    let mut dwords =
        (image..image + 0x2000).step_by(4).map(|at| bench.get(at)).skip_while(|dword| *dword == 0).peekable();
    let mut all = Vec::new();
    while let Some(header) = dwords.next_if(|header| header >> 23 == 0x22) {
        for _ in 0..(header & 0xff).div_ceil(2) {
            all.push((dwords.next().unwrap(), dwords.next().unwrap()));
        }
    }
    all
}

/// Writes the values to the registers in turn: modes with all bits selected. The ring and the mode of the parser remain.
fn scramble(bench: &EngineBench, values: &[u32]) {
    let kept = [0x30, 0x34, 0x38, 0x3c, MI_MODE, 0x134, 0x180, 0x228].map(|register| 0x2000 + register);
    let plain = |kind| {
        matches!(kind, Kind::Storage(_) | Kind::Masked)
            || kind == bench.gt.registers.decode(0x20c0).unwrap().register.kind
    };
    let registers = bench.gt.registers.listing().filter(|(offset, found)| {
        let arbiter = found.range.is_some() && (0x4000..0x5000).contains(offset);
        let mode = bench.gt.generation.engines.iter().any(|info| info.translation_mode == *offset);
        plain(found.register.kind) && !kept.contains(offset) && !arbiter && !mode
    });
    for ((offset, found), value) in registers.zip(values.iter().cycle()) {
        let value = if matches!(found.register.kind, Kind::Storage(_)) { *value } else { value | 0xffff_0000 };
        bench.write(offset, value & !if offset == 0x2000 + INSTPM { SYNC_FLUSH.mask() } else { 0 });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// IVB-006, IVB-106, ILK-163, ILK-170: the image has exactly the registers of contexts, with the values at the switch;
    /// those of the extended state if the current context's command asked for it. The switch back sets these registers to
    /// the values in the image, and no other.
    #[test]
    fn an_image_has_exactly_the_registers_of_contexts(
        sandy_bridge: bool,
        extended: bool,
        restored: bool,
        first in prop::collection::vec(any::<u32>(), 1..40),
        second in prop::collection::vec(any::<u32>(), 1..40),
    ) {
        let mut bench = EngineBench::of(&card(sandy_bridge), RCS);
        let flags = if extended { 0x108 } else { 0x100 };
        bench.run(&[0x0c00_0000, CONTEXT | flags | 1]);
        scramble(&bench, &first);
        let expected = of_contexts(&bench.gt, extended);
        bench.run(&[0x0c00_0000, OTHER | 0x101]);
        let image = pairs(&bench, CONTEXT);
        let found: BTreeMap<u32, u32> = image.iter().copied().collect();
        prop_assert_eq!(image.len(), found.len(), "no register twice");
        let selected = |offset: u32, value: u32| match bench.gt.registers.decode(offset).map(|found| found.register.kind) {
            Some(Kind::Masked) => value | 0xffff_0000,
            _ if offset == 0x20c0 => value | 0xffff_0000,
            _ => value,
        };
        let expected_pairs: BTreeMap<u32, u32> = expected.iter().map(|(at, value)| (*at, selected(*at, *value))).collect();
        prop_assert_eq!(found, expected_pairs);

        scramble(&bench, &second);
        let before = others(&bench.gt);
        bench.run(&[0x0c00_0000, CONTEXT | 0x100 | if restored { 4 } else { 0 }]);
        let loaded = |at: &u32| {
            let scope = bench.gt.registers.decode(*at).map(|found| found.register.scope);
            expected.contains_key(at) && (restored || scope != Some(Scope::Extended))
        };
        // The batch's state is set by each command that is fetched from the ring, and read-only ones are not loaded.
        for (offset, value) in others(&bench.gt).into_iter().filter(|(offset, _)| *offset != 0x2110) {
            let read_only = bench.gt.registers.decode(offset).is_some_and(|found| {
                found.register.kind == Kind::ReadOnly && found.register.scope == Scope::Context
            });
            let wanted = if loaded(&offset) && !read_only { expected[&offset] } else { before[&offset] };
            prop_assert_eq!(value, wanted, "{:#x}", offset);
        }
    }

    /// IVB-093, IVB-140: whatever the dwords are, the disassembler shows each once, and the engine continues behind a command
    /// where the disassembler shows the next one; it stops at a header that the disassembler does not know.
    #[test]
    fn the_disassembler_has_the_lengths_of_the_engine(
        sandy_bridge: bool,
        engine in 0..3u8,
        header in prop_oneof![
            any::<u32>(),
            (0..64u32, any::<u32>(), 0..8u32).prop_map(|(opcode, flags, length)| opcode << 23 | flags & 0x7f_ff00 | length),
            (0..128u32, any::<u32>(), 0..9u32).prop_map(|(opcode, flags, length)| 2 << 29 | opcode << 22 | flags & 0x3f_ff00 | length),
            (0..0x2000u32, 0..9u32).prop_map(|(opcode, length)| 3 << 29 | opcode << 16 | length),
        ],
        operands in prop::collection::vec(prop_oneof![any::<u32>(), Just(DATA), 0..64u32], 0..12),
    ) {
        let id = EngineId::new(engine);
        let mut bench = EngineBench::of(&card(sandy_bridge), id);
        let engine = EngineRef { generation: bench.gt.generation, id };
        let words: Vec<u32> = [header].into_iter().chain(operands).chain([0; 4]).collect();
        let batch = batch::Batch { ends: false, ..batch::Batch::new(&words, 0x1000, engine) };
        let commands: Vec<_> = batch.commands().collect();
        let lines = commands.iter().map(|command| command.to_string().len() + command.text().len()).sum::<usize>();
        prop_assert!(lines > 0);
        let shown: usize = commands.iter().map(|command| command.dwords.len() * command.times).sum();
        prop_assert_eq!(shown, words.len());

        let described = engine.describe(header);
        (RING..).step_by(4).zip(&words).for_each(|(at, word)| bench.put(at, *word));
        bench.write(bench.base() + 0x30, 0x1000);
        let outcome = bench.steps(1);
        let head = bench.register(0x34) & HEAD_OFFSET.mask();
        match (described, outcome) {
            (None, outcome) => prop_assert_eq!((outcome, head), (Outcome::Halted, 0)),
            // Too short for the command.
            (Some(_), Outcome::Halted) => prop_assert_eq!((head, bench.register(0xb0) | bench.register(0xb8)), (0, 1)),
            (Some(_), Outcome::Waiting) => prop_assert_eq!(head, 0),
            (Some(_), _) if bench.engine.in_command() => prop_assert_eq!(head, 0),
            // A command that is longer than the ring leaves a head beyond it, which is taken as its offset in it.
            (Some(command), _) => prop_assert_eq!(head % 0x2000, command.dwords * 4 % 0x2000),
        }
    }
}
