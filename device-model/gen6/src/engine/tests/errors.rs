// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Errors, faults and the status page.

use arctic_fidelity::{proves, proves_table};

use super::*;

/// ILK-145, ILK-157: errors.
#[test]
fn a_bad_header_is_a_fatal_error() {
    proves!(
        [IVB_090, IVB_093, IVB_183, ILK_097, ILK_098, ILK_145, ILK_157],
        "a header of a reserved client or opcode, or a command that is too short, stops the engine. Bit 0 of ESR is set, \
         of EIR too unless EMR masks it, with interrupt 3; only a reset clears it"
    );
    for header in [0x2000_0000, 0x8000_0000, 0xe000_0000, 0x0080_0000, 0x0d00_0001, 0x1000_0001, 0x54c0_0006] {
        for masked in [true, false] {
            let mut bench = EngineBench::new(RCS);
            bench.write(0x20b4, if masked { !0 } else { !1 });
            assert_eq!(bench.gt.read(0x20b4), if masked { !0 } else { !1 });
            assert_eq!(bench.run(&[0, header, MI_NOOP | WRITE_NOPID | 1]), Outcome::Halted, "{header:#x}");
            assert_eq!([0x68, 0x64, 0x74].map(|at| bench.register(at)), [header, RING + 4, RING + 4]);
            assert_eq!([0xb0, 0xb8].map(|at| bench.register(at)), [u32::from(!masked), 1]);
            assert_eq!((bench.gt.read(0x4_4018), bench.register(0x94)), (if masked { 0 } else { 8 }, 0));
            bench.write(0x20b0, !0);
            assert_eq!([0xb0, 0xb8].map(|at| bench.register(at)), [u32::from(!masked), 1], "not cleared");
            bench.gt.reset_domains(1 << 1);
            assert_eq!([0xb0, 0xb8, 0xb4].map(|at| bench.register(at)), [0, 0, !0]);
        }
    }
    let bench = EngineBench::new(RCS);
    bench.write(0x20b4, 0);
    assert_eq!(bench.gt.read(0x20b4), 0xffff_ff00, "the upper bits are one");
}

/// ILK-156, ILK-162: the order in which errors are cleared.
#[test]
fn an_interrupt_lasts_as_long_as_its_error() {
    proves!(
        [IVB_091, IVB_092, IVB_093, IVB_095, ILK_144, ILK_155, ILK_156, ILK_162],
        "the status register and the status page show an error while it lasts; an interrupt that is cleared before its \
         cause is raised again, also when it is unmasked"
    );
    let mut bench = EngineBench::new(RCS);
    bench.write(0x2098, !(1 << 7));
    bench.run(&[MI_STORE_DATA_IMM | GGTT | 2, 0, 0x20_0000, 1]);
    assert_eq!([0x4_4010, 0x4_4018].map(|at| bench.gt.read(at)), [1 << 7; 2]);
    assert_eq!(bench.get(STATUS), 1 << 7);
    bench.write(0x4_4018, 1 << 7);
    assert_eq!(bench.gt.read(0x4_4018), 1 << 7, "the fault lasts");
    bench.write(0x4094, 0);
    assert_eq!((bench.gt.read(0x4_4010), bench.get(STATUS)), (0, 0), "written at the falling edge too");
    bench.write(0x4_4018, 1 << 7);
    assert_eq!(bench.gt.read(0x4_4018), 0);
    // Masked, then unmasked.
    bench.write(0x4_4014, !0);
    bench.run(&[MI_STORE_DATA_IMM | GGTT | 2, 0, 0x20_0000, 1]);
    assert_eq!((bench.gt.read(0x4_4018), bench.gt.read(0x4_4010)), (0, 1 << 7));
    bench.write(0x4_4014, !(1 << 7));
    assert_eq!(bench.gt.read(0x4_4018), 1 << 7);
}

/// ILK-144, ILK-155: writes to the status page.
#[test]
fn the_status_page_is_written_only_for_unmasked_sources() {
    proves!(
        [IVB_091, IVB_092, ILK_144, ILK_155],
        "a source that HWSTAM and IMR unmask has the status written to dword 0 of the page, as 0 for events without a \
         state; the watchdog's has not"
    );
    for (index, imr, shift) in [(0, 0x20a8, 0), (2, 0x2_20a8, 22)] {
        let mut bench = EngineBench::new(EngineId::new(index));
        for (hwstam, mask, written) in [(!1, 0, true), (!1, 1 << shift, false), (!0, 0, false), (!2, 0, false)] {
            bench.put(STATUS, 0xffff);
            bench.write(bench.base() + 0x98, hwstam);
            bench.write(imr, mask);
            bench.run(&[MI_USER_INTERRUPT]);
            assert_eq!(bench.get(STATUS), if written { 0 } else { 0xffff }, "{hwstam:#x} {mask:#x}");
        }
    }
    let bench = EngineBench::new(RCS);
    bench.put(STATUS, 0xffff);
    bench.write(0x2098, 0);
    bench.write(0x217c, 1);
    bench.write(0x2178, 0);
    bench.clock.advance(1_000_000);
    bench.gt.poll_watchdog(RCS);
    assert_eq!((bench.gt.read(0x4_4018), bench.get(STATUS)), (1 << 6, 0xffff));
}

/// ILK-159, ILK-161: faults.
#[test]
fn one_fault_is_in_all_registers() {
    proves!(
        [IVB_038, IVB_039, IVB_040, IVB_095, IVB_184, ILK_017, ILK_159, ILK_161],
        "the first fault of an engine stays in its register until software clears the valid bit, which clears all; the \
         error register collects the types, the log has the pages of those of the PPGTT, and interrupt 7 reports them"
    );
    for (index, fault, bit) in [(0, 0x4094, 7), (1, 0x4194, 19), (2, 0x4294, 29)] {
        let mut bench = EngineBench::new(EngineId::new(index));
        bench.write(bench.base() + 0x220, 1);
        // A write to the GGTT, a read of a page table without the page, an invalid directory entry, an unloaded one.
        let cases: [(&[u32], u32, u32); 4] = [
            (&[MI_STORE_DATA_IMM | GGTT | 2, 0, 0x20_0010, 1], 0x20_0000 | 1 << 11 | 8 << 3 | 1, 1),
            (&[0x0b30_0001, 0, 0x30_0000], 0x30_0000 | 1, 1),
            (&[MI_STORE_DATA_IMM | 2, 0, 0x40_0000, 1], 0x40_0000 | 8 << 3 | 1 << 1 | 1, 1 << 2),
            (&[0x1000_0002, 0, 0x0400_0000, 1], 0x0400_0000 | 8 << 3 | 2 << 1 | 1, 1 << 8),
        ];
        for (n, (words, latched, error)) in cases.into_iter().enumerate() {
            bench.write(0x40a0, 0);
            bench.run(words);
            bench.run(&[MI_STORE_DATA_IMM | GGTT | 2, 0, 0x50_0000, 1]);
            assert_eq!(bench.gt.read(fault), latched, "the first is kept");
            assert_eq!(bench.gt.read(0x40a0), error | 1);
            assert_eq!(bench.gt.read(0x4_4018), 1 << bit);
            // The log has the pages of the PPGTT only.
            let logged = (0..4).map(|entry| bench.gt.read(0x4580 + entry * 4));
            let pages = cases.iter().skip(1).take(n).map(|(_, latched, _)| latched & 0xffff_f000);
            assert!(logged.eq(pages.chain([0; 4]).take(4)));
            bench.write(fault, latched);
            assert_eq!(bench.gt.read(fault), latched, "the valid bit is not cleared");
            bench.write(fault, latched & !1);
            assert_eq!(bench.gt.read(fault), 0);
            bench.write(0x4_4018, !0);
        }
    }
    // The log begins anew after 32 entries; a read of a missing page is 0.
    let mut bench = EngineBench::new(RCS);
    (0..33).for_each(|n| {
        bench.run(&[MI_STORE_DATA_IMM | 2, 0, 0x40_0000 + (n << 12), 1]);
    });
    assert_eq!([0x4580, 0x4584].map(|at| bench.gt.read(at)), [0x42_0000, 0x40_1000]);
    bench.write(0x4580, !0);
    assert_eq!(bench.gt.read(0x4580), 0x42_0000, "read-only");
}

#[test]
fn no_translation_is_shown() {
    proves!(
        [IVB_041, IVB_042, IVB_043],
        "the windows of the TLBs read as without valid entries, and their registers are no unmodelled accesses"
    );
    let bench = EngineBench::new(RCS);
    for range in [0x4400..0x4500, 0x4700..0x4708, 0x4720..0x4770, 0x4780..0x47a0, 0x4800..0x4c00] {
        range.step_by(4).for_each(|at| {
            bench.write(at, !0);
            assert_eq!(bench.gt.read(at), 0, "{at:#x}");
        });
    }
    assert!(bench.gt.report().unmodelled.is_empty());
}

#[test]
fn execlists_do_not_exist() {
    proves_table!(IVB_188, "no engine has registers for the submission or the status of execlists");
    let bench = EngineBench::new(RCS);
    for at in [0x230, 0x234, 0x370, 0x510, 0x514] {
        let missing = [0x2000, 0x1_2000, 0x2_2000].map(|base| bench.gt.registers.decode(base + at).is_none());
        assert_eq!(missing, [true; 3], "{at:#x}");
    }
}
