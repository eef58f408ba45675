// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Logical contexts and resets.

use arctic_fidelity::proves;

use super::*;
use crate::gt::SideEffect;
use crate::registers::engine::{CCID, CTL, HEAD, HWSTAM, IMR, INSTDONE, INSTPM, NOPID, PP_DCLV, TIMESTAMP, VALID};
use crate::registers::render::{MATCH_PENDING, MATCH_RESET, MATCHED, PREDICATE_SRC0, STATISTICS};

/// Address of a second image.
const OTHER_CONTEXT: u32 = CONTEXT + 0x2000;
/// MI_SET_CONTEXT, CCID: the image is in the GGTT.
const CONTEXT_GGTT: u32 = 1 << 8;
/// MI_SET_CONTEXT, CCID: the extended state is saved at the next switch.
const SAVE: u32 = 1 << 3;
/// MI_SET_CONTEXT, CCID: the extended state is restored.
const RESTORE: u32 = 1 << 2;
/// MI_SET_CONTEXT: the image is restored although the context is the current one.
const FORCE: u32 = 1 << 1;
/// MI_SET_CONTEXT: the image is not restored.
const INHIBIT: u32 = 1 << 0;
/// Flags in CCID after a switch with [`SAVE`] and [`RESTORE`].
const CURRENT: u32 = CONTEXT_GGTT | SAVE | RESTORE | VALID.mask();
/// Registers of the render engine that belong to contexts.
const FBC_RT_BASE: u32 = 0x7020;
const CACHE_MODE_0: u32 = 0x7000;
/// Five registers 3DPRIM, of the extended state.
const PRIMITIVE: u32 = 0x2430;
/// SO_PRIM_STORAGE_NEEDED, which software cannot write.
const SO_PRIM_STORAGE_NEEDED: u32 = 0x5240;
/// Sizes of the parts of an image in lines: bits 14:9 the extended state's, bits 5:0 the vertex fetch's.
const CXT_SIZE: u32 = 0x21a8;
/// Number of lines of an image, and bytes of a line.
const IMAGE_LINES: u32 = 105;
const LINE: u32 = 64;

/// Registers that every image has: STATISTICS, FBC_RT_BASE, PP_DCLV. They store any value.
const BASIC: [u32; 3] = [STATISTICS, FBC_RT_BASE, 0x2000 + PP_DCLV];
/// Registers of the extended state: MI_PREDICATE_SRC0, 3DPRIM, GPGPU_DISPATCHDIM, SO_NUM_PRIMS_WRITTEN.
const EXTENDED: [u32; 4] = [PREDICATE_SRC0, PRIMITIVE, 0x2500, 0x5200];

fn switch_context(bench: &mut EngineBench, context: u32, flags: u32) {
    bench.run(&[MI_SET_CONTEXT, context | CONTEXT_GGTT | flags, 0, 0]);
}

fn set_registers(bench: &EngineBench, value: u32) {
    BASIC.iter().chain(&EXTENDED).for_each(|at| bench.write(*at, value));
}

fn values(bench: &EngineBench, registers: &[u32]) -> Vec<u32> {
    registers.iter().map(|at| bench.gt.read(*at)).collect()
}

#[test]
fn a_switch_saves_and_restores_the_registers_of_contexts() {
    proves!(
        [IVB_006, IVB_100, IVB_155, IVB_187, ILK_163, ILK_165, ILK_167, ILK_168],
        "a switch saves the registers of the old context, if CCID is valid, loads those of the new one unless that is \
         inhibited, and sets CCID to the command's dword, with bit 0 for valid and without the force bit. The image sets \
         PP_DCLV"
    );
    let mut bench = EngineBench::new(RCS);
    assert_eq!(bench.register(CCID), 0);
    set_registers(&bench, 0x11);
    switch_context(&mut bench, CONTEXT, SAVE | RESTORE | INHIBIT);
    assert_eq!((bench.register(CCID), bench.get(CONTEXT + 4)), (CONTEXT | CURRENT, 0), "nothing was saved");
    switch_context(&mut bench, OTHER_CONTEXT, SAVE | RESTORE | INHIBIT);
    assert!(bench.get(CONTEXT + 4) != 0 && bench.get(OTHER_CONTEXT + 4) == 0);
    assert_eq!(values(&bench, &BASIC), [0x11; 3], "the restore is inhibited");
    set_registers(&bench, 0x22);
    bench.write_register(INSTPM, 0x0040_0040);
    bench.write(CACHE_MODE_0, 0x0008_0008);
    switch_context(&mut bench, CONTEXT, SAVE | RESTORE);
    assert_eq!((values(&bench, &BASIC), values(&bench, &EXTENDED)), (vec![0x11; 3], vec![0x11; 4]));
    assert_eq!((bench.register(INSTPM), bench.gt.read(CACHE_MODE_0)), (0, 4));
    switch_context(&mut bench, OTHER_CONTEXT, SAVE | RESTORE);
    assert_eq!((values(&bench, &BASIC), values(&bench, &EXTENDED)), (vec![0x22; 3], vec![0x22; 4]));
    assert_eq!((bench.register(INSTPM), bench.gt.read(CACHE_MODE_0)), (0x40, 0xc));
    // A context that is not valid is not saved.
    bench.write_register(CCID, OTHER_CONTEXT | CURRENT & !VALID.mask());
    bench.put(OTHER_CONTEXT + 4, 0xdead);
    switch_context(&mut bench, CONTEXT, SAVE | RESTORE);
    assert_eq!((bench.get(OTHER_CONTEXT + 4), values(&bench, &BASIC)), (0xdead, vec![0x11; 3]));
}

/// ILK-169 says that a forced restore saves first; the Ivy Bridge document has it refresh the state from an image that
/// was changed, which a save would undo.
#[test]
fn a_switch_to_the_current_context_restores_its_image_only_if_forced() {
    proves!(
        [IVB_100, IVB_155, ILK_167, ILK_169],
        "the same address as in CCID is a NOOP, unless the restore is forced: then changes of the image take effect"
    );
    let mut bench = EngineBench::new(RCS);
    set_registers(&bench, 0x11);
    switch_context(&mut bench, CONTEXT, SAVE | RESTORE | INHIBIT);
    switch_context(&mut bench, OTHER_CONTEXT, SAVE | RESTORE | INHIBIT);
    switch_context(&mut bench, CONTEXT, SAVE | RESTORE);
    let place = (CONTEXT..CONTEXT + 0x800).step_by(4).find(|at| bench.get(*at) == FBC_RT_BASE).unwrap();
    bench.put(place + 4, 0x55);
    bench.write(FBC_RT_BASE, 0x66);
    switch_context(&mut bench, CONTEXT, SAVE | RESTORE);
    assert_eq!((bench.gt.read(FBC_RT_BASE), bench.get(place + 4)), (0x66, 0x55));
    switch_context(&mut bench, CONTEXT, SAVE | RESTORE | FORCE);
    assert_eq!((bench.gt.read(FBC_RT_BASE), bench.register(CCID)), (0x55, CONTEXT | CURRENT));
}

#[test]
fn a_switch_with_restore_inhibited_keeps_the_registers() {
    proves!([IVB_155, ILK_168], "a switch with the inhibit bit keeps the registers, whatever the image has");
    for (inhibit, value) in [(INHIBIT, 0x11), (0, 0x99)] {
        let mut bench = EngineBench::new(RCS);
        bench.write(STATISTICS, 0x11);
        bench.batch(CONTEXT, &[MI_LOAD_REGISTER_IMM | 1, STATISTICS, 0x99]);
        switch_context(&mut bench, CONTEXT, SAVE | RESTORE | inhibit);
        assert_eq!(bench.gt.read(STATISTICS), value);
    }
}

/// As in a batch, MI_LOAD_REGISTER_IMM of an even length has a dword without a partner at its end; behind it, the next
/// command follows.
#[test]
fn an_image_may_have_register_loads_of_an_even_length() {
    let mut bench = EngineBench::new(RCS);
    bench.write(STATISTICS, 0x11);
    let loads = [
        &[MI_LOAD_REGISTER_IMM, STATISTICS][..],
        &[MI_LOAD_REGISTER_IMM | 2, FBC_RT_BASE, 0x22, STATISTICS],
        &[MI_LOAD_REGISTER_IMM | 1, PRIMITIVE, 0x33],
        // The length of the last one is beyond the image.
        &[MI_NOOP; 0x690 - 12][..],
        &[MI_LOAD_REGISTER_IMM | 6, PRIMITIVE + 4, 0x44],
    ];
    bench.batch(CONTEXT, &loads.concat());
    switch_context(&mut bench, CONTEXT, RESTORE);
    assert_eq!(values(&bench, &[STATISTICS, FBC_RT_BASE, PRIMITIVE, PRIMITIVE + 4]), [0x11, 0x22, 0x33, 0x44]);
}

#[test]
fn register_loads_of_an_image_disable_bytes_as_those_of_a_batch() {
    proves!(
        [IVB_155, IVB_159],
        "byte write disables apply to the registers of contexts, of modes and of the extended state, and to those that \
         software cannot write; offsets have bits 25:2"
    );
    let registers = [STATISTICS, PRIMITIVE, 0x2000 + PP_DCLV, SO_PRIM_STORAGE_NEEDED];
    for (disabled, expected, mode) in [(0, 0xaabb_ccdd, 0x40), (0x500, 0xaa22_cc44, 0), (0xf00, 0x1122_3344, 0)] {
        let mut bench = EngineBench::new(RCS);
        registers.iter().for_each(|at| bench.gt.registers.set(*at, 0x1122_3344));
        let pairs = registers.map(|at| [at | 0xfc00_0003, 0xaabb_ccdd]);
        // Bytes 0 and 2 of INSTPM: a bit, and its selection.
        let image = [&[MI_LOAD_REGISTER_IMM | disabled | 9][..], pairs.as_flattened(), &[0x2000 + INSTPM, 0x0040_0040]];
        bench.batch(CONTEXT, &image.concat());
        switch_context(&mut bench, CONTEXT, RESTORE);
        assert_eq!((values(&bench, &registers), bench.register(INSTPM)), (vec![expected; 4], mode), "{disabled:#x}");
    }
}

#[test]
fn registers_beyond_2_kib_of_an_image_are_loaded() {
    proves!(ILK_164, "registers behind the first 2 KiB of an image are loaded");
    let mut bench = EngineBench::new(RCS);
    // Zeros are MI_NOOP.
    bench.batch(CONTEXT + 0x1000, &[MI_LOAD_REGISTER_IMM | 1, STATISTICS, 0x99]);
    switch_context(&mut bench, CONTEXT, SAVE | RESTORE);
    assert_eq!(bench.gt.read(STATISTICS), 0x99);
}

#[test]
fn a_switch_completes_the_stores_before_it() {
    proves!(ILK_128, "a command behind MI_SET_CONTEXT reads what a command before it has stored");
    let mut bench = EngineBench::new(RCS);
    bench.write_register(CCID, CONTEXT);
    bench.run(
        &[
            &[MI_LOAD_REGISTER_IMM | 1, PRIMITIVE + 4, 7][..],
            &[MI_STORE_REGISTER_MEM | GGTT | 1, PRIMITIVE + 4, DATA],
            &[MI_SET_CONTEXT, OTHER_CONTEXT | CONTEXT_GGTT | INHIBIT, MI_NOOP],
            &[MI_LOAD_REGISTER_MEM | GGTT | 1, PRIMITIVE + 8, DATA],
        ]
        .concat(),
    );
    let current = OTHER_CONTEXT | CONTEXT_GGTT | VALID.mask();
    assert_eq!((bench.register(CCID), bench.gt.read(PRIMITIVE + 8)), (current, 7));
}

#[test]
fn the_extended_state_is_saved_and_restored_only_if_its_bits_are_set() {
    proves!(
        [IVB_106, IVB_155, IVB_185, ILK_170],
        "the save bit that CCID has, and the restore bit of the command, decide whether the extended state is saved and \
         restored. A restore sets SO_PRIM_STORAGE_NEEDED, which software cannot write"
    );
    for (save, restore) in [(0, 0), (0, RESTORE), (SAVE, 0), (SAVE, RESTORE)] {
        let mut bench = EngineBench::new(RCS);
        // Both images have a first version with 0x11 in all registers.
        set_registers(&bench, 0x11);
        bench.gt.registers.set(SO_PRIM_STORAGE_NEEDED, 0x11);
        switch_context(&mut bench, CONTEXT, SAVE | INHIBIT);
        switch_context(&mut bench, OTHER_CONTEXT, SAVE | INHIBIT);
        switch_context(&mut bench, CONTEXT, save | RESTORE);
        set_registers(&bench, 0x33);
        switch_context(&mut bench, OTHER_CONTEXT, SAVE | RESTORE);
        set_registers(&bench, 0x22);
        bench.gt.registers.set(SO_PRIM_STORAGE_NEEDED, 0x22);
        switch_context(&mut bench, CONTEXT, SAVE | restore);
        let expected = match (save, restore) {
            (_, 0) => 0x22,
            (0, _) => 0x11,
            _ => 0x33,
        };
        assert_eq!(values(&bench, &EXTENDED), [expected; 4], "save {save}, restore {restore}");
        assert_eq!(
            (values(&bench, &BASIC), bench.gt.read(SO_PRIM_STORAGE_NEEDED)),
            (vec![0x33; 3], if restore == 0 { 0x22 } else { 0x11 })
        );
    }
}

#[test]
fn an_image_begins_with_a_register_load_and_ends_within_its_105_lines() {
    proves!(
        [IVB_101, IVB_155, ILK_164, ILK_170],
        "the image is within the lines of CXT_SIZE, extended and VF, and has MI_LOAD_REGISTER_IMM commands"
    );
    let mut bench = EngineBench::new(RCS);
    let size = bench.gt.read(CXT_SIZE);
    assert_eq!((size >> 9 & 0x7f) + (size & 0x3f), IMAGE_LINES);
    (CONTEXT..CONTEXT + 0x2000).step_by(4).for_each(|at| bench.put(at, 0xcccc_cccc));
    switch_context(&mut bench, CONTEXT, SAVE | RESTORE | INHIBIT);
    switch_context(&mut bench, OTHER_CONTEXT, SAVE | RESTORE | INHIBIT);
    assert_eq!((bench.get(CONTEXT), bench.get(CONTEXT + 4) >> 23), (MI_NOOP, MI_LOAD_REGISTER_IMM >> 23));
    assert_eq!(bench.get(CONTEXT + IMAGE_LINES * LINE), 0xcccc_cccc, "nothing is written behind");
}

#[test]
fn mi_set_context_in_a_batch_or_on_another_engine_does_not_switch() {
    proves!([IVB_155, ILK_166], "MI_SET_CONTEXT has no effect in a batch, and is an error on another engine");
    let mut bench = EngineBench::new(RCS);
    bench.batch(BATCH, &[MI_SET_CONTEXT, CONTEXT | CONTEXT_GGTT | SAVE | RESTORE | INHIBIT, MI_NOOP]);
    bench.run(&[MI_BATCH_BUFFER_START, BATCH]);
    assert_eq!((bench.register(CCID), bench.engine.skipped().len()), (0, 1));
    let mut bench = EngineBench::new(BCS);
    assert_eq!(bench.run(&[MI_SET_CONTEXT, CONTEXT | CONTEXT_GGTT | SAVE | RESTORE | INHIBIT]), Outcome::Halted);
}

#[test]
fn a_match_reset_of_the_current_context_resets_the_render_engine() {
    proves!(
        IVB_102,
        "a request with the current context resets the render engine and sets the match bit; a request with another \
         context, or while CCID is not valid, clears the match bit. The pending bit reads 0"
    );
    let mut bench = EngineBench::new(RCS);
    let pending = MATCH_PENDING.mask();
    assert_eq!(bench.gt.write(MATCH_RESET, pending, !0), None, "no context is valid");
    switch_context(&mut bench, CONTEXT, SAVE | RESTORE | INHIBIT);
    let another = bench.gt.write(MATCH_RESET, OTHER_CONTEXT | pending, !0);
    assert_eq!((another, bench.gt.read(MATCH_RESET)), (None, OTHER_CONTEXT));
    let not_requested = bench.gt.write(MATCH_RESET, CONTEXT, !0);
    assert_eq!((not_requested, bench.gt.read(MATCH_RESET)), (None, CONTEXT));
    let reset_mask = bench.gt.generation.engine(RCS).reset_mask;
    assert_eq!(bench.gt.write(MATCH_RESET, CONTEXT | pending, !0), Some(SideEffect::Reset(reset_mask)));
    bench.gt.reset_domains(reset_mask);
    assert_eq!((bench.gt.read(MATCH_RESET), bench.register(CCID)), (CONTEXT | MATCHED, 0));
}

#[test]
fn a_reset_of_one_engine_keeps_the_registers_of_the_others() {
    proves!(
        [IVB_092, IVB_116, ILK_171, ILK_172, ILK_173, ILK_177, ILK_178, ILK_179],
        "a reset of an engine sets its registers, but neither the time nor the other engines"
    );
    let mut bench = EngineBench::new(RCS);
    let mut other = Engine::new(BCS);
    let copy = bench.gt.generation.engine(BCS);
    bench.clock.advance(8000);
    bench.run_other(&mut other, 0x8000, &[MI_NOOP | WRITE_NOPID | 5, MI_NOOP]);
    bench.run(&[MI_NOOP | WRITE_NOPID | 7, MI_NOOP]);
    bench.write(copy.base + HWSTAM, 0);
    bench.write(copy.base + INSTPM, 0x0040_0040);
    bench.gt.reset_domains(copy.reset_mask);
    assert_eq!([NOPID, CTL].map(|at| bench.register(at)), [7, 0x1001]);
    assert_eq!([NOPID, CTL, HWSTAM, IMR].map(|at| bench.gt.read(copy.base + at)), [0, 0, !0, !0]);
    assert_eq!([TIMESTAMP, INSTDONE, INSTPM, HEAD].map(|at| bench.gt.read(copy.base + at)), [100, !0, 0, 0]);
}
