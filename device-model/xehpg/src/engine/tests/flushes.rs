// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_FLUSH_DW and PIPE_CONTROL: flush, post-sync operation and notification, with and without privilege (V8-127,
//! V8-137).

use super::*;
use crate::registers::InterruptRegister;
use arctic_fidelity::proves;

const STATUS_PAGE: u64 = 0x38_0000;
const INDEX: u32 = 0x240;
/// Creates a bench with the PF's interrupts enabled, a status page, and the clock at 12000 ticks.
fn bench(class: EngineClass) -> EngineBench {
    let bench = EngineBench::new(class);
    bench.gt.registers.set(bench.base() + reg::HWS_PGA, STATUS_PAGE as u32);
    let tree = bench.gt.interrupts_of(Function::PF);
    for offset in [0x19_0030, 0x19_0034, 0x19_0048] {
        tree.write(InterruptRegister::Enable, offset, 0, u32::MAX);
    }
    tree.write(InterruptRegister::MasterTile, 0x19_0008, 0, 1 << 31);
    for at in [0x19_0090, 0x19_00a0, 0x19_00a8, 0x19_00ac, 0x19_00b0, 0x19_00d0] {
        bench.gt.write(at, 0);
    }
    bench.clock.advance(625_000);
    bench
}

/// Target of a post-sync operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Process,
    Global,
    OwnPage,
    GlobalPage,
}

impl Place {
    const ALL: [Place; 4] = [Place::Process, Place::Global, Place::OwnPage, Place::GlobalPage];

    fn address(self) -> u32 {
        match self {
            Place::Process => (VA + DATA) as u32,
            Place::Global => DATA as u32,
            Place::OwnPage | Place::GlobalPage => INDEX,
        }
    }

    fn global(self) -> bool {
        matches!(self, Place::Global | Place::GlobalPage)
    }

    fn index(self) -> bool {
        matches!(self, Place::OwnPage | Place::GlobalPage)
    }

    /// Returns the address of the target in local memory.
    fn local(self, bench: &EngineBench) -> u64 {
        match self {
            Place::Process | Place::Global => DATA,
            Place::OwnPage => bench.context_at(0).pphwsp() + u64::from(INDEX),
            Place::GlobalPage => STATUS_PAGE + u64::from(INDEX),
        }
    }
}

#[test]
fn pipe_control_matrix() {
    proves!(
        V8_137,
        "all combinations of stall, post-sync operation, target and privilege. The store has eight bytes. Earlier \
        stores are visible when it is, with or without stall. Without privilege, writes to a GGTT address or an \
        index are dropped, but the flush and the notification are executed"
    );
    const STALL: u32 = 1 << 20;
    const NOTIFY: u32 = 1 << 8;
    for class in [EngineClass::Render, EngineClass::Compute] {
        for place in Place::ALL {
            for (operation, written) in [(0u32, None), (1, Some(0x66_0000_0055)), (2, Some(0)), (3, Some(12_000))] {
                for stall in [0, STALL] {
                    for user in [false, true] {
                        let mut bench = bench(class);
                        let at = place.local(&bench);
                        bench.put64(at, u64::MAX);
                        let flags = operation << 14 | stall | NOTIFY;
                        let flags = flags | u32::from(place.global()) << 24 | u32::from(place.index()) << 21;
                        let commands = [
                            &store(VA + DATA + 0x20, 1)[..],
                            &[PIPE_CONTROL | 4, flags, place.address(), 0, 0x55, 0x66],
                            &store(VA + DATA + 0x24, 1),
                        ];
                        let commands = commands.concat();
                        let outcome = if user { bench.batch(&commands) } else { bench.ring(&commands) };
                        let what = format!("{class:?} {place:?} {operation} {stall:#x} {user}");
                        assert_eq!(outcome, Outcome::Complete, "{what}");
                        let refused = user && place != Place::Process && operation != 0;
                        let expected = written.filter(|_| !refused).unwrap_or(u64::MAX);
                        assert_eq!(bench.get64(at), expected, "{what}");
                        assert_eq!((bench.get(DATA + 0x20), bench.get(DATA + 0x24)), (1, 1), "{what}");
                        assert_eq!(bench.msis.take().len(), 1, "{what}: the flush reports its completion");
                        assert_eq!(bench.engine.counters().privilege_violations, u64::from(refused), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn l3_control_writes_its_immediate() {
    proves!(
        EU_015,
        "the immediate is written to an address of the context or, with privilege, of the GGTT, with and without ranges to flush; \
        a command that is too short is an error"
    );
    const L3_CONTROL: u32 = 0x7d80_0003;
    for place in [Place::Process, Place::Global] {
        for (flags, user) in [(0u32, false), (1 << 14, false), (1 << 14 | 1 << 20, true)] {
            let mut bench = bench(EngineClass::Compute);
            bench.put64(DATA, u64::MAX);
            let header = L3_CONTROL | flags | u32::from(place.global()) << 21;
            let command = [header, place.address() | 7, 0, 0x55, 0x66];
            // With a range that is to be flushed, which has no effect.
            let ranged = [header + 2, place.address() | 7, 0, 0x55, 0x66, 0x1000, 0];
            assert_eq!(if user { bench.batch(&ranged) } else { bench.ring(&command) }, Outcome::Complete);
            let refused = user && place == Place::Global;
            let expected = if flags == 0 || refused { u64::MAX } else { 0x66_0000_0055 };
            assert_eq!(bench.get64(DATA), expected, "{place:?} {flags:#x} {user}");
            assert_eq!(bench.engine.counters().privilege_violations, u64::from(refused));
        }
    }
    let mut bench = bench(EngineClass::Compute);
    assert!(matches!(bench.ring(&[L3_CONTROL - 1, DATA as u32, 0, 0x55]), Outcome::Halted(_)));
}

#[test]
fn pipe_control_writes_a_register() {
    proves!(
        V8_137,
        "a post-sync register write in a non-privileged batch is permitted for whitelisted registers and denied for \
        privileged registers. The flush is executed in both cases"
    );
    const MMIO: u32 = 1 << 23;
    for class in [EngineClass::Render, EngineClass::Compute] {
        for stall in [0, 1 << 20] {
            for (register, kernels) in [(0x600, false), (0x218, true)] {
                for user in [false, true] {
                    let mut bench = bench(class);
                    let command = [PIPE_CONTROL | 4, MMIO | stall | 1 << 8, bench.base() + register, 0, 0x3, 0x66];
                    assert_eq!(if user { bench.batch(&command) } else { bench.ring(&command) }, Outcome::Complete);
                    let written = bench.own(register) == 3;
                    assert_eq!(written, !(user && kernels), "{class:?} {register:#x} {user}");
                    assert_eq!(bench.msis.take().len(), 1);
                    assert_eq!(bench.engine.counters().register_refusals, u64::from(user && kernels));
                }
            }
        }
    }
}

#[test]
fn flush_dw_matrix() {
    proves!(
        [V8_127, V8_201],
        "MI_FLUSH_DW writes a dword, a qword or a timestamp to each target, on each engine that implements it. \
        Without privilege, writes to a GGTT address or an index are dropped, but the flush is executed. Earlier \
        stores are visible when the write is (V8-201)"
    );
    for class in &EngineClass::BY_GUC[1..] {
        for place in Place::ALL {
            for (operation, dwords, written) in [
                (0u32, 4u32, None),
                (1, 4, Some(0xffff_ffff_0000_0055u64)),
                (1, 5, Some(0x66_0000_0055)),
                (3, 5, Some(12_000)),
            ] {
                for user in [false, true] {
                    let mut bench = bench(*class);
                    let at = place.local(&bench);
                    bench.put64(at, u64::MAX);
                    let header =
                        MI_FLUSH_DW | FLUSH_NOTIFY | (dwords - 2) | operation << 14 | u32::from(place.index()) << 21;
                    let low = place.address() | u32::from(place.global()) << 2;
                    let flush = [header, low, 0, 0x55, 0x66];
                    let commands = [&store(VA + DATA + 0x20, 1)[..], &flush[..dwords as usize]].concat();
                    let commands = [&commands[..], &store(VA + DATA + 0x24, 1)].concat();
                    let outcome = if user { bench.batch(&commands) } else { bench.ring(&commands) };
                    let what = format!("{class:?} {place:?} {operation} {dwords} {user}");
                    assert_eq!(outcome, Outcome::Complete, "{what}");
                    let refused = user && place != Place::Process && operation != 0;
                    assert_eq!(bench.get64(at), written.filter(|_| !refused).unwrap_or(u64::MAX), "{what}");
                    assert_eq!((bench.get(DATA + 0x20), bench.get(DATA + 0x24)), (1, 1), "{what}");
                    assert_eq!(bench.msis.take().len(), 1, "{what}: the flush reports its completion");
                    assert_eq!(bench.engine.counters().privilege_violations, u64::from(refused), "{what}");
                }
            }
        }
    }
}

#[test]
fn flushes_forget_translations() {
    proves!([V8_127, V8_137], "translations invalidated by a flush are read from the page tables again");
    for (class, flush) in [
        (EngineClass::Copy, &[MI_FLUSH_DW | FLUSH_TLB | 1, 0, 0][..]),
        (EngineClass::Render, &[PIPE_CONTROL | 4, 1 << 18 | 1 << 20, 0, 0, 0, 0]),
    ] {
        let mut bench = EngineBench::new(class);
        // The engine remaps 2 MiB of the PPGTT with a store to the page tables, which are in local memory.
        let entry = ROOT + 0x2000 + 8 * (DATA >> 21);
        let elsewhere = (DATA & !0x1f_ffff) + 0x40_0000;
        let redirect = [MI_STORE_DATA_IMM | GGTT | STORE_QWORD | 3, entry as u32, 0, elsewhere as u32 | 0x883, 0];
        let commands = [&store(VA + DATA, 1)[..], &redirect, flush, &store(VA + DATA, 2)].concat();
        assert_eq!(bench.ring(&commands), Outcome::Complete);
        assert_eq!((bench.get(DATA), bench.get(elsewhere + (DATA & 0x1f_ffff))), (1, 2), "{class:?}");
    }
}
