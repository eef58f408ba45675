// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Errors, faults and the status page.

use arctic_fidelity::{proves, proves_table};

use super::*;
use crate::memory::FaultType;
use crate::registers::arbiter::{
    ERROR, FAULT_GGTT, FAULT_LOG, FAULT_LOG_ENTRIES, FAULT_SOURCE, FAULT_TYPE, FAULT_VALID, SOURCE_WRITE,
};
use crate::registers::engine::{
    ACTHD, EIR, EMR, EMR_RESERVED, ESR, HWSTAM, IMR, IPEHR, IPEIR, NOPID, PP_DCLV, WATCHDOG_CONTROL, WATCHDOG_THRESHOLD,
};
use crate::registers::interrupt::{ERROR_INTERRUPT, PAGE_FAULT_INTERRUPT, USER_INTERRUPT, WATCHDOG_INTERRUPT};

/// Fault register of the render engine.
const RENDER_FAULT: u32 = 0x4094;

#[test]
fn a_reserved_header_or_a_short_command_halts_the_engine_until_reset() {
    proves!(
        [IVB_090, IVB_093, IVB_183, ILK_097, ILK_098, ILK_145, ILK_157],
        "a header of a reserved client or opcode, or a command that is too short, stops the engine. Bit 0 of ESR is set, \
         of EIR too unless EMR masks it, with interrupt 3; only a reset clears it"
    );
    // Reserved: the clients 1, 4 and 7, the MI opcodes 0x01 and 0x1a, and on the render engine the copy engine's client
    // 2. A store without data is too short.
    let headers = [1 << 29, 4 << 29, 7 << 29, MI_SET_PREDICATE, MI_MATH | 1, xy(0x53, 8), MI_STORE_DATA_IMM | 1];
    for header in headers {
        for masked in [true, false] {
            let mut bench = EngineBench::new(RCS);
            bench.write_register(EMR, if masked { !0 } else { !1 });
            assert_eq!(bench.register(EMR), if masked { !0 } else { !1 });
            assert_eq!(bench.run(&[MI_NOOP, header, MI_NOOP | WRITE_NOPID | 1]), Outcome::Halted, "{header:#x}");
            assert_eq!([IPEHR, IPEIR, ACTHD].map(|at| bench.register(at)), [header, RING + 4, RING + 4]);
            assert_eq!([EIR, ESR].map(|at| bench.register(at)), [u32::from(!masked), 1]);
            let sent = if masked { 0 } else { ERROR_INTERRUPT };
            assert_eq!((bench.gt.read(GT_IIR), bench.register(NOPID)), (sent, 0));
            bench.write_register(EIR, !0);
            assert_eq!([EIR, ESR].map(|at| bench.register(at)), [u32::from(!masked), 1], "not cleared");
            bench.gt.reset_domains(bench.gt.generation.engine(RCS).reset_mask);
            assert_eq!([EIR, ESR, EMR].map(|at| bench.register(at)), [0, 0, !0]);
        }
    }
    let bench = EngineBench::new(RCS);
    bench.write_register(EMR, 0);
    assert_eq!(bench.register(EMR), EMR_RESERVED, "the upper bits are one");
}

#[test]
fn a_cleared_interrupt_is_raised_again_while_its_cause_lasts() {
    proves!(
        [IVB_091, IVB_092, IVB_093, IVB_095, ILK_144, ILK_155, ILK_156, ILK_162],
        "the status register and the status page show an error while it lasts; an interrupt that is cleared before its \
         cause is raised again, also when it is unmasked"
    );
    let mut bench = EngineBench::new(RCS);
    bench.write_register(HWSTAM, !PAGE_FAULT_INTERRUPT);
    bench.run(&[MI_STORE_DATA_IMM | GGTT | 2, 0, 0x20_0000, 1]);
    assert_eq!([GT_ISR, GT_IIR].map(|at| bench.gt.read(at)), [PAGE_FAULT_INTERRUPT; 2]);
    assert_eq!(bench.get(STATUS), PAGE_FAULT_INTERRUPT);
    bench.write(GT_IIR, PAGE_FAULT_INTERRUPT);
    assert_eq!(bench.gt.read(GT_IIR), PAGE_FAULT_INTERRUPT, "the fault lasts");
    bench.write(RENDER_FAULT, 0);
    assert_eq!((bench.gt.read(GT_ISR), bench.get(STATUS)), (0, 0), "written at the falling edge too");
    bench.write(GT_IIR, PAGE_FAULT_INTERRUPT);
    assert_eq!(bench.gt.read(GT_IIR), 0);
    // Masked, then unmasked.
    bench.write(GT_IMR, !0);
    bench.run(&[MI_STORE_DATA_IMM | GGTT | 2, 0, 0x20_0000, 1]);
    assert_eq!((bench.gt.read(GT_IIR), bench.gt.read(GT_ISR)), (0, PAGE_FAULT_INTERRUPT));
    bench.write(GT_IMR, !PAGE_FAULT_INTERRUPT);
    assert_eq!(bench.gt.read(GT_IIR), PAGE_FAULT_INTERRUPT);
}

#[test]
fn the_status_page_is_written_only_for_unmasked_sources() {
    proves!(
        [IVB_091, IVB_092, ILK_144, ILK_155],
        "an event that neither HWSTAM nor IMR masks writes the status to dword 0 of the status page, 0 if its source has \
         no state; an event of the watchdog writes nothing"
    );
    for (index, shift) in [(0, 0), (2, 22)] {
        let mut bench = EngineBench::new(EngineId::new(index));
        let cases = [
            (!USER_INTERRUPT, 0, true),
            (!USER_INTERRUPT, USER_INTERRUPT << shift, false),
            (!0, 0, false),
            (!(USER_INTERRUPT << 1), 0, false),
        ];
        for (hwstam, mask, written) in cases {
            bench.put(STATUS, 0xffff);
            bench.write_register(HWSTAM, hwstam);
            bench.write_register(IMR, mask);
            bench.run(&[MI_USER_INTERRUPT]);
            assert_eq!(bench.get(STATUS), if written { 0 } else { 0xffff }, "{hwstam:#x} {mask:#x}");
        }
    }
    let bench = EngineBench::new(RCS);
    bench.put(STATUS, 0xffff);
    bench.write_register(HWSTAM, 0);
    bench.write_register(WATCHDOG_THRESHOLD, 1);
    bench.write_register(WATCHDOG_CONTROL, 0);
    bench.clock.advance(1_000_000);
    bench.gt.poll_watchdog(RCS);
    assert_eq!((bench.gt.read(GT_IIR), bench.get(STATUS)), (WATCHDOG_INTERRUPT, 0xffff));
}

#[test]
fn the_first_fault_of_an_engine_is_kept_until_its_valid_bit_is_cleared() {
    proves!(
        [IVB_038, IVB_039, IVB_040, IVB_095, IVB_184, ILK_017, ILK_159, ILK_161],
        "the first fault of an engine stays in its register until software clears the valid bit, which clears all; the \
         error register collects the types, the log has the pages of those of the PPGTT, and interrupt 7 reports them"
    );
    let valid = FAULT_VALID.mask();
    let write = FAULT_SOURCE.of(SOURCE_WRITE) | valid;
    let kind = |kind: FaultType| FAULT_TYPE.of(kind as u32);
    for (index, fault, shift) in [(0, RENDER_FAULT, 0), (1, 0x4194, 12), (2, 0x4294, 22)] {
        let mut bench = EngineBench::new(EngineId::new(index));
        bench.write_register(PP_DCLV, 1);
        // A store to a missing page of the GGTT, a read of a missing page of the PPGTT, a store by an invalid entry of the
        // directory, and by one that is not loaded.
        let read = MI_SEMAPHORE_MBOX | MAILBOX_UPDATE | MAILBOX_COMPARE | 1;
        let cases: [(&[u32], u32, u32); 4] = [
            (&[MI_STORE_DATA_IMM | GGTT | 2, 0, 0x20_0010, 1], 0x20_0000 | FAULT_GGTT.mask() | write, 1),
            (&[read, 0, 0x30_0000], 0x30_0000 | valid, 1),
            (&[MI_STORE_DATA_IMM | 2, 0, 0x40_0000, 1], 0x40_0000 | write | kind(FaultType::InvalidDirectory), 1 << 2),
            (
                &[MI_STORE_DATA_IMM | 2, 0, 0x0400_0000, 1],
                0x0400_0000 | write | kind(FaultType::UnloadedDirectory),
                1 << 8,
            ),
        ];
        for (n, (words, latched, error)) in cases.into_iter().enumerate() {
            bench.write(ERROR, 0);
            bench.run(words);
            bench.run(&[MI_STORE_DATA_IMM | GGTT | 2, 0, 0x50_0000, 1]);
            assert_eq!(bench.gt.read(fault), latched, "the first is kept");
            assert_eq!(bench.gt.read(ERROR), error | 1);
            assert_eq!(bench.gt.read(GT_IIR), PAGE_FAULT_INTERRUPT << shift);
            // The log has the pages of the PPGTT only.
            let logged: Vec<_> = (0..4).map(|entry| bench.gt.read(FAULT_LOG + entry * 4)).collect();
            let pages = cases.iter().skip(1).take(n).map(|(_, latched, _)| latched & 0xffff_f000);
            assert_eq!(logged, pages.chain([0; 4]).take(4).collect::<Vec<_>>());
            bench.write(fault, latched);
            assert_eq!(bench.gt.read(fault), latched, "the valid bit is not cleared");
            bench.write(fault, latched & !valid);
            assert_eq!(bench.gt.read(fault), 0);
            bench.write(GT_IIR, !0);
        }
    }
    // The log begins anew after 32 entries, and is read-only.
    let mut bench = EngineBench::new(RCS);
    (0..=FAULT_LOG_ENTRIES).for_each(|n| {
        bench.run(&[MI_STORE_DATA_IMM | 2, 0, 0x40_0000 + (n << 12), 1]);
    });
    assert_eq!([FAULT_LOG, FAULT_LOG + 4].map(|at| bench.gt.read(at)), [0x42_0000, 0x40_1000]);
    bench.write(FAULT_LOG, !0);
    assert_eq!(bench.gt.read(FAULT_LOG), 0x42_0000, "read-only");
}

#[test]
fn tlb_windows_read_zero_after_writes() {
    proves!(
        [IVB_041, IVB_042, IVB_043],
        "the windows of the TLBs read as without valid entries, and accesses to them are not reported as unmodelled"
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
fn execlist_registers_are_decoded_on_no_engine() {
    proves_table!(IVB_188, "no engine has registers for the submission or the status of execlists");
    let bench = EngineBench::new(RCS);
    for at in [0x230, 0x234, 0x370, 0x510, 0x514] {
        let missing = [0x2000, 0x1_2000, 0x2_2000].map(|base| bench.gt.registers.decode(base + at).is_none());
        assert_eq!(missing, [true; 3], "{at:#x}");
    }
}
