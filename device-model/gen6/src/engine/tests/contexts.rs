// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Logical contexts and resets.

use arctic_fidelity::proves;

use super::*;

const OTHER: u32 = CONTEXT + 0x2000;
/// Registers of contexts that contexts have in all cases, and a value that each stores.
const ALWAYS: [u32; 3] = [0x2300, 0x7020, 0x2220];
/// Registers of the extended state.
const EXTENDED: [u32; 4] = [0x2400, 0x2430, 0x2500, 0x5200];

fn switch(bench: &mut EngineBench, context: u32, flags: u32) {
    bench.run(&[MI_SET_CONTEXT, context | 0x100 | flags, 0, 0]);
}

fn fill(bench: &EngineBench, value: u32) {
    ALWAYS.iter().chain(&EXTENDED).for_each(|at| bench.write(*at, value));
}

fn values(bench: &EngineBench, registers: &[u32]) -> Vec<u32> {
    registers.iter().map(|at| bench.gt.read(*at)).collect()
}

/// ILK-163, ILK-165, ILK-167, ILK-168: switches.
#[test]
fn a_switch_saves_and_restores_the_registers_of_contexts() {
    proves!(
        [IVB_006, IVB_100, IVB_155, IVB_187, ILK_163, ILK_165, ILK_167, ILK_168],
        "a switch saves the registers of the old context, if CCID is valid, loads those of the new one unless that is \
         inhibited, and sets CCID without the bits 1:0. The image sets PP_DCLV"
    );
    let mut bench = EngineBench::new(RCS);
    assert_eq!(bench.register(0x180), 0);
    fill(&bench, 0x11);
    switch(&mut bench, CONTEXT, 0xd);
    assert_eq!((bench.register(0x180), bench.get(CONTEXT + 4)), (CONTEXT | 0x10d, 0), "nothing was saved");
    switch(&mut bench, OTHER, 0xd);
    assert!(bench.get(CONTEXT + 4) != 0 && bench.get(OTHER + 4) == 0);
    assert_eq!(values(&bench, &ALWAYS), [0x11; 3], "the restore is inhibited");
    fill(&bench, 0x22);
    bench.write(0x20c0, 0x0040_0040);
    bench.write(0x7000, 0x0008_0008);
    switch(&mut bench, CONTEXT, 0xc);
    assert_eq!((values(&bench, &ALWAYS), values(&bench, &EXTENDED)), (vec![0x11; 3], vec![0x11; 4]));
    assert_eq!((bench.register(0xc0), bench.gt.read(0x7000)), (0, 4));
    switch(&mut bench, OTHER, 0xc);
    assert_eq!((values(&bench, &ALWAYS), values(&bench, &EXTENDED)), (vec![0x22; 3], vec![0x22; 4]));
    assert_eq!((bench.register(0xc0), bench.gt.read(0x7000)), (0x40, 0xc));
    // A context that is not valid is not saved.
    bench.write(0x2180, OTHER | 0x10c);
    bench.put(OTHER + 4, 0xdead);
    switch(&mut bench, CONTEXT, 0xc);
    assert_eq!((bench.get(OTHER + 4), values(&bench, &ALWAYS)), (0xdead, vec![0x11; 3]));
}

/// ILK-169 says that a forced restore saves first; the Ivy Bridge document has it refresh the state from an image that
/// was changed, which a save would undo.
#[test]
fn a_restore_of_the_current_context_must_be_forced() {
    proves!(
        [IVB_100, IVB_155, ILK_167, ILK_169],
        "the same address as in CCID is a NOOP, unless the restore is forced: then changes of the image take effect"
    );
    let mut bench = EngineBench::new(RCS);
    fill(&bench, 0x11);
    switch(&mut bench, CONTEXT, 0xd);
    switch(&mut bench, OTHER, 0xd);
    switch(&mut bench, CONTEXT, 0xc);
    let place = (CONTEXT..CONTEXT + 0x800).step_by(4).find(|at| bench.get(*at) == 0x7020).unwrap();
    bench.put(place + 4, 0x55);
    bench.write(0x7020, 0x66);
    switch(&mut bench, CONTEXT, 0xc);
    assert_eq!((bench.gt.read(0x7020), bench.get(place + 4)), (0x66, 0x55));
    switch(&mut bench, CONTEXT, 0xe);
    assert_eq!((bench.gt.read(0x7020), bench.register(0x180)), (0x55, CONTEXT | 0x10d));
}

#[test]
fn an_inhibited_restore_does_not_read_the_image() {
    proves!([IVB_155, ILK_168], "a switch with the inhibit bit keeps the registers, whatever the image has");
    for (inhibit, value) in [(1, 0x11), (0, 0x99)] {
        let mut bench = EngineBench::new(RCS);
        bench.write(0x2300, 0x11);
        bench.batch(CONTEXT, &[MI_LOAD_REGISTER_IMM | 1, 0x2300, 0x99]);
        switch(&mut bench, CONTEXT, 0xc | inhibit);
        assert_eq!(bench.gt.read(0x2300), value);
    }
}

#[test]
fn an_image_may_have_more_than_two_kibibytes() {
    proves!(ILK_164, "registers behind the first 2 KiB of an image are loaded");
    let mut bench = EngineBench::new(RCS);
    // Zeros are MI_NOOP.
    bench.batch(CONTEXT + 0x1000, &[MI_LOAD_REGISTER_IMM | 1, 0x2300, 0x99]);
    switch(&mut bench, CONTEXT, 0xc);
    assert_eq!(bench.gt.read(0x2300), 0x99);
}

#[test]
fn a_switch_completes_the_stores_before_it() {
    proves!(ILK_128, "a command behind MI_SET_CONTEXT reads what a command before it has stored");
    let mut bench = EngineBench::new(RCS);
    bench.write(0x2180, CONTEXT);
    let commands = [0x1100_0001, 0x2434, 7, 0x1240_0001, 0x2434, DATA, 0x0c00_0000, OTHER | 0x101, 0];
    bench.run(&[&commands[..], &[MI_LOAD_REGISTER_MEM | GGTT | 1, 0x2438, DATA]].concat());
    assert_eq!((bench.register(0x180), bench.gt.read(0x2438)), (OTHER | 0x101, 7));
}

#[test]
fn the_extended_state_takes_part_if_it_is_enabled() {
    proves!(
        [IVB_106, IVB_155, IVB_185, ILK_170],
        "the save bit that CCID has, and the restore bit of the command, decide whether the extended state is saved and \
         restored. A restore sets SO_PRIM_STORAGE_NEEDED, which software cannot write"
    );
    for (save, restore) in [(0, 0), (0, 4), (8, 0), (8, 4)] {
        let mut bench = EngineBench::new(RCS);
        // Both images have a first version with 0x11 in all registers.
        fill(&bench, 0x11);
        bench.gt.registers.set(0x5240, 0x11);
        switch(&mut bench, CONTEXT, 9);
        switch(&mut bench, OTHER, 9);
        switch(&mut bench, CONTEXT, save | 4);
        fill(&bench, 0x33);
        switch(&mut bench, OTHER, 0xc);
        fill(&bench, 0x22);
        bench.gt.registers.set(0x5240, 0x22);
        switch(&mut bench, CONTEXT, 8 | restore);
        let expected = match (save, restore) {
            (_, 0) => 0x22,
            (0, _) => 0x11,
            _ => 0x33,
        };
        assert_eq!(values(&bench, &EXTENDED), [expected; 4], "{save} {restore}");
        assert_eq!(
            (values(&bench, &ALWAYS), bench.gt.read(0x5240)),
            (vec![0x33; 3], if restore == 0 { 0x22 } else { 0x11 })
        );
    }
}

/// ILK-164, ILK-170: the image.
#[test]
fn the_image_is_a_list_of_register_loads_of_105_lines() {
    proves!(
        [IVB_101, IVB_155, ILK_164, ILK_170],
        "the image is within the lines of CXT_SIZE, extended and VF, and has MI_LOAD_REGISTER_IMM commands"
    );
    let mut bench = EngineBench::new(RCS);
    let size = bench.gt.read(0x21a8);
    assert_eq!((size >> 9 & 0x7f) + (size & 0x3f), 105);
    (CONTEXT..CONTEXT + 0x2000).step_by(4).for_each(|at| bench.put(at, 0xcccc_cccc));
    switch(&mut bench, CONTEXT, 0xd);
    switch(&mut bench, OTHER, 0xd);
    assert_eq!((bench.get(CONTEXT), bench.get(CONTEXT + 4) >> 23), (0, 0x22));
    assert_eq!(bench.get(CONTEXT + 105 * 64), 0xcccc_cccc, "nothing is written behind");
}

/// ILK-166: MI_SET_CONTEXT is of the ring and the render engine.
#[test]
fn contexts_are_switched_by_the_render_ring_only() {
    proves!([IVB_155, ILK_166], "MI_SET_CONTEXT has no effect in a batch, and is an error on another engine");
    let mut bench = EngineBench::new(RCS);
    bench.batch(BATCH, &[MI_SET_CONTEXT, CONTEXT | 0x10d, 0]);
    bench.run(&[MI_BATCH_BUFFER_START, BATCH]);
    assert_eq!((bench.register(0x180), bench.engine.skipped().len()), (0, 1));
    let mut bench = EngineBench::new(BCS);
    assert_eq!(bench.run(&[MI_SET_CONTEXT, CONTEXT | 0x10d]), Outcome::Halted);
}

#[test]
fn a_matching_context_is_reset() {
    proves!(
        IVB_102,
        "a request with the current context resets the render engine and sets the match bit; with another, or a context \
         that is not valid, it clears it. The pending bit reads 0"
    );
    let mut bench = EngineBench::new(RCS);
    assert_eq!(bench.gt.write(0x222c, 1, !0), None, "no context is valid");
    switch(&mut bench, CONTEXT, 0xd);
    assert_eq!((bench.gt.write(0x222c, OTHER | 1, !0), bench.gt.read(0x222c)), (None, OTHER));
    assert_eq!((bench.gt.write(0x222c, CONTEXT, !0), bench.gt.read(0x222c)), (None, CONTEXT), "not requested");
    assert_eq!(bench.gt.write(0x222c, CONTEXT | 1, !0), Some(crate::gt::SideEffect::Reset(1 << 1)));
    bench.gt.reset_domains(1 << 1);
    assert_eq!((bench.gt.read(0x222c), bench.register(0x180)), (CONTEXT | 2, 0));
}

/// ILK-171..174, ILK-177..179: the state after a reset.
#[test]
fn a_reset_of_one_engine_leaves_the_others() {
    proves!(
        [IVB_092, IVB_116, ILK_171, ILK_172, ILK_173, ILK_177, ILK_178, ILK_179],
        "a reset of an engine sets its registers, but neither the time nor the other engines"
    );
    let mut bench = EngineBench::new(RCS);
    let mut other = Engine::new(BCS);
    bench.clock.advance(8000);
    bench.run_other(&mut other, 0x8000, &[MI_NOOP | WRITE_NOPID | 5, 0]);
    bench.run(&[MI_NOOP | WRITE_NOPID | 7, 0]);
    bench.write(0x2_2098, 0);
    bench.write(0x2_20c0, 0x0040_0040);
    bench.gt.reset_domains(1 << 3);
    assert_eq!([0x94, 0x3c].map(|at| bench.register(at)), [7, 0x1001]);
    assert_eq!([0x2_2094, 0x2_203c, 0x2_2098, 0x2_20a8].map(|at| bench.gt.read(at)), [0, 0, !0, !0]);
    assert_eq!([0x2_2358, 0x2_206c, 0x2_20c0, 0x2_2034].map(|at| bench.gt.read(at)), [100, !0, 0, 0]);
}
