// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands that move data between commands, registers and memory (V8-122..132), in cases not covered by driver
//! batches.

use super::commands::{gpr, gpr_of};
use super::*;
use crate::generation::XE_HPG;
use arctic_fidelity::proves;

const AT: u32 = (VA + DATA) as u32;

#[test]
fn identifications() {
    proves!(
        [V8_105, V8_107],
        "the 22-bit identification is written to NOPID only if the header enables it, including in a non-privileged \
        batch. MI_USER_INTERRUPT has one dword. The parser continues after both commands"
    );
    for class in EngineClass::BY_GUC {
        let mut bench = EngineBench::new(class);
        assert_eq!(bench.batch(&[MI_NOOP | WRITE_NOPID | 0x3fffff, 0x003f_1234, MI_USER_INTERRUPT]), Outcome::Complete);
        assert_eq!(bench.own(reg::NOPID), 0x3f_ffff, "{class:?}");
        assert_eq!(bench.batch(&[0x0040_0000]), Outcome::Complete);
        assert_eq!(bench.own(reg::NOPID), 0);
    }
}

#[test]
fn store_data_imm_writes_only_the_addressed_dwords() {
    proves!(
        V8_122,
        "the cache and completion flags of MI_STORE_DATA_IMM do not affect the stored data. Only the addressed \
        dwords are written"
    );
    let flags = [0, 1 << 10, 1 << 20 | 0x3f << 14];
    for flags in flags {
        let mut bench = EngineBench::new(EngineClass::VideoEnhance);
        bench.put64(DATA, u64::MAX);
        bench.put64(DATA + 8, u64::MAX);
        let batch =
            [MI_STORE_DATA_IMM | 2 | flags, AT + 4, 0, 7, MI_STORE_DATA_IMM | STORE_QWORD | 3 | flags, AT + 8, 0, 8, 9];
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        assert_eq!([0, 4, 8, 12].map(|n| bench.get(DATA + n)), [u32::MAX, 7, 8, 9]);
    }
}

#[test]
fn indexed_stores() {
    proves!(
        V8_123,
        "MI_STORE_DATA_INDEX writes a dword or a qword to the context's or the engine's status page, at the offset \
        in bits 11:2. In a non-privileged batch it is always a MI_NOOP"
    );
    const PAGE: u64 = 0x38_0000;
    for (own, index) in [(true, 0x100u32), (false, 0x3fc), (true, 0xffc), (false, 0x7100)] {
        let mut bench = EngineBench::new(EngineClass::Render);
        bench.gt.registers.set(bench.base() + reg::HWS_PGA, PAGE as u32);
        let page = if own { bench.context_at(0).pphwsp() } else { PAGE };
        let place = page + u64::from(index & 0xffc);
        let header = MI_STORE_DATA_INDEX | u32::from(own) << 21;
        assert_eq!(bench.ring(&[header | 1, index, 0x77]), Outcome::Complete);
        assert_eq!((bench.get(place), bench.get(place ^ 4)), (0x77, 0), "{own} {index:#x}");
        assert_eq!(bench.ring(&[header | 2, index & !4, 0x88, 0x99]), Outcome::Complete);
        assert_eq!(bench.get64(place & !7), 0x99_0000_0088);
        assert_eq!(bench.batch(&[header | 1, index, 0x55]), Outcome::Complete);
        assert_ne!(bench.get(place), 0x55);
        assert_eq!(bench.engine.counters().privilege_violations, 1);
    }
}

#[test]
fn register_pairs() {
    proves!(
        V8_124,
        "in a non-privileged batch, one privileged register turns a command with many pairs into a MI_NOOP. In the \
        PF's ring all registers are written. Bits 11:8 are byte write disables. If all four are set, the command is \
        a MI_NOOP (trap T35)"
    );
    let mut pairs = vec![MI_LOAD_REGISTER_IMM | CS_MMIO | (2 * 32 - 1)];
    pairs.extend((0..32).flat_map(|n| [0x600 + 4 * n, 100 + n]));
    for class in EngineClass::BY_GUC {
        let mut bench = EngineBench::new(class);
        assert_eq!(bench.batch(&pairs), Outcome::Complete);
        assert!((0..32).all(|n| bench.own(0x600 + 4 * n) == 100 + n), "{class:?}");
        // CSB_INTERRUPT_MASK, in the middle of the command, is privileged.
        let mixed = [MI_LOAD_REGISTER_IMM | CS_MMIO | 5, 0x600, 1, 0x218, 2, 0x604, 3];
        assert_eq!(bench.batch(&mixed), Outcome::Complete);
        assert_eq!([0x600, 0x604, 0x218].map(|at| bench.own(at)), [0, 0, 0], "{class:?}");
        assert_eq!(bench.ring(&mixed), Outcome::Complete);
        assert_eq!([0x600, 0x604].map(|at| bench.own(at)), [1, 3], "{class:?}");
    }
    for kept in 0..16u32 {
        let mut bench = EngineBench::new(EngineClass::Copy);
        let batch = [0x1108_0001, 0x600, 0x1122_3344, 0x1108_0001 | kept << 8, 0x600, 0xaabb_ccdd];
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        let byte = |n: u32| if kept >> n & 1 != 0 { 0x1122_3344u32 } else { 0xaabb_ccdd } >> (8 * n) & 0xff;
        assert_eq!(bench.own(0x600), (0..4).fold(0, |value, n| value | byte(n) << (8 * n)), "{kept:#x}");
    }
}

#[test]
fn registers_of_other_instances() {
    proves!(
        [V8_124, V8_126, V8_130, V8_131],
        "all 21 bits of a relative offset are added to the engine's base. The remap bit maps a register of instance \
        0 to the executing instance. LRR has separate bits for source and destination"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    // Example in the PRM: 0x18600 relative to the render streamer's base is the first GPR of a compute engine.
    assert_eq!(bench.ring(&[0x1108_0001, 0x1_8600, 7, 0x1100_0001, 0x1_a608, 8]), Outcome::Complete);
    assert_eq!((bench.gt.read(0x1_a600), bench.gt.read(0x1_a608)), (7, 8));
    let mut bench = EngineBench::new(EngineClass::VideoDecode);
    bench.engine = Engine::new(&XE_HPG, XE_HPG.engines.find(EngineClass::VideoDecode, 2).unwrap());
    bench.put(DATA, 5);
    let batch = [
        &[MI_LOAD_REGISTER_IMM | MMIO_REMAP | 1, 0x1c_0600, 3][..],
        &[MI_LOAD_REGISTER_MEM | MMIO_REMAP | 2, 0x1c_0608, AT, 0],
        &[MI_STORE_REGISTER_MEM | MMIO_REMAP | 2, 0x1c_0608, AT + 4, 0],
        // Remapped source and destination, remapped source only, and relative offsets without and with the remap bit.
        &[MI_LOAD_REGISTER_REG | MMIO_REMAP | SOURCE_MMIO_REMAP | 1, 0x1c_0600, 0x1c_0610],
        &[MI_LOAD_REGISTER_REG | SOURCE_MMIO_REMAP | 1, 0x1c_0608, 0x1d_0618],
        &[MI_LOAD_REGISTER_REG | CS_MMIO | SOURCE_CS_MMIO | 1, 0x600, 0x620],
        &[MI_LOAD_REGISTER_REG | CS_MMIO | SOURCE_CS_MMIO | MMIO_REMAP | SOURCE_MMIO_REMAP | 1, 0x608, 0x628],
    ];
    assert_eq!(bench.batch(&batch.concat()), Outcome::Complete);
    assert_eq!([0, 1, 2, 3, 4, 5].map(|n| gpr_of(&bench, n)), [3, 5, 3, 5, 3, 5]);
    assert_eq!((bench.get(DATA + 4), bench.gt.read(0x1c_0600), bench.gt.read(0x1c_0608)), (5, 0, 0));
    // Without the remap bit a batch cannot access another instance.
    assert_eq!(bench.batch(&[MI_LOAD_REGISTER_IMM | 1, 0x1c_0600, 3]), Outcome::Complete);
    assert_eq!((bench.gt.read(0x1c_0600), bench.engine.counters().register_refusals), (0, 1));
}

#[test]
fn global_entries() {
    proves!(V8_125, "MI_UPDATE_GTT writes consecutive entries, which subsequent commands use");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let page = 0x1000u32;
    let entries = [DATA as u32 | 3, 0, DATA as u32 + 0x1000 | 3, 0, DATA as u32 + 0x2000 | 3, 0];
    let update = [&[MI_UPDATE_GTT | 6, page << 12][..], &entries].concat();
    let stores: Vec<u32> = (0..3).flat_map(|n| [MI_STORE_DATA_IMM | GGTT | 2, (page + n) << 12, 0, n + 1]).collect();
    assert_eq!(bench.ring(&[&update[..], &stores].concat()), Outcome::Complete);
    assert_eq!([0, 1, 2].map(|n| bench.get(DATA + n * 0x1000)), [1, 2, 3]);
    let table = |bench: &EngineBench| [0, 1, 2].map(|n| bench.gt.memory.ggtt().entry(0x1000 + n));
    let before = table(&bench);
    assert_eq!(bench.batch(&[0x1180_0002, page << 12, 0, 0]), Outcome::Complete, "MI_NOOP in a non-privileged batch");
    assert_eq!(table(&bench), before);
}

#[test]
fn a_dropped_store_reads_its_register() {
    proves!(V8_126, "without privilege, a store to a GGTT address is dropped, but the register is read (trap T6)");
    let mut bench = EngineBench::new(EngineClass::Render);
    // A register that every engine can read and that is not modelled, so its reads are counted.
    let register = (0xd900..0xdc00).step_by(4).find(|at| bench.gt.registers.decode(*at).is_none()).unwrap();
    bench.put(DATA, 0x55);
    assert_eq!(bench.batch(&[MI_STORE_REGISTER_MEM | GGTT | 2, register, DATA as u32, 0]), Outcome::Complete);
    assert_eq!(bench.get(DATA), 0x55);
    assert_eq!(bench.gt.registers.unmodelled().get(&register).map(|touched| touched.reads), Some(1));
    assert_eq!(bench.engine.counters().privilege_violations, 1);
}

#[test]
fn performance_reports() {
    proves!(
        [V8_129, V13_211],
        "a report of 256 bytes with ID, timestamp, context and zero counters is written to the GGTT or the PPGTT. \
        Non-privileged batches can use only the PPGTT"
    );
    for class in [EngineClass::Render, EngineClass::Compute] {
        for (global, user) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut bench = EngineBench::new(class);
            bench.clock.advance(625_000);
            (0..0x44).for_each(|n| bench.put(DATA + 4 * n, 0x5555_5555));
            let at = if global { DATA as u32 | 1 } else { AT };
            let report = [MI_REPORT_PERF_COUNT | 2, at, 0, 0x1d];
            assert_eq!(if user { bench.batch(&report) } else { bench.ring(&report) }, Outcome::Complete);
            let seen = [0, 1, 2, 3].map(|n| bench.get(DATA + 4 * n));
            if global && user {
                assert_eq!(seen, [0x5555_5555; 4]);
                continue;
            }
            // 625 us at 38.4 MHz, and at the frequency of the render clock.
            let clocks = bench.gt.actual_ratio() * 50 * 625 / 3;
            assert_eq!(seen, [0x1d, 24_000, 0, clocks]);
            assert!((4..0x40).all(|n| bench.get(DATA + 4 * n) == 0) && bench.get(DATA + 0x100) == 0x5555_5555);
        }
    }
}

#[test]
fn posted_loads() {
    proves!(V8_130, "a posted register write (\"Async Mode\") is complete when the next command reads the register");
    let mut bench = EngineBench::new(EngineClass::Copy);
    bench.put(DATA, 7);
    let batch = [0x14a8_0002, 0x600, AT, 0, 0x150c_0001, 0x600, 0x608, 0x1208_0002, 0x608, AT + 4, 0];
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!((bench.own(0x600), bench.get(DATA + 4)), (7, 7));
    let refused = [MI_LOAD_REGISTER_MEM | CS_MMIO | 2, 0x30, AT, 0];
    assert_eq!(bench.batch(&refused), Outcome::Complete);
    assert_eq!(bench.engine.counters().register_refusals, 1, "a privileged register");
}

#[test]
fn register_to_register() {
    proves!(V8_131, "LRR always reads its source. Only the write of a privileged register is dropped");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let batch = [&gpr(0, 0x77)[..], &[0x150c_0001, 0x600, 0x218, 0x150c_0001, 0x600, 0x608]].concat();
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!((bench.own(0x218), bench.own(0x608)), (0, 0x77));
    assert_eq!(bench.engine.counters().register_refusals, 1);
}

#[test]
fn memory_to_memory() {
    proves!(
        V8_132,
        "MI_COPY_MEM_MEM copies a dword between GGTT and PPGTT in all combinations. Non-privileged batches can use \
        only the PPGTT"
    );
    for (source_global, destination_global) in [(false, false), (false, true), (true, false), (true, true)] {
        for user in [false, true] {
            let mut bench = EngineBench::new(EngineClass::VideoDecode);
            bench.put64(DATA, 0x1_0000_0007);
            let base = |global: bool| if global { DATA as u32 } else { AT };
            let header = MI_COPY_MEM_MEM | 3 | u32::from(source_global) << 22 | u32::from(destination_global) << 21;
            let command = [header, base(destination_global) + 0x10, 0, base(source_global), 0];
            assert_eq!(if user { bench.batch(&command) } else { bench.ring(&command) }, Outcome::Complete);
            let refused = user && (source_global || destination_global);
            assert_eq!(bench.get64(DATA + 0x10), if refused { 0 } else { 7 }, "{header:#x} {user}");
            assert_eq!(bench.engine.counters().privilege_violations, u64::from(refused));
        }
    }
}

#[test]
fn batches_with_an_offset() {
    proves!(V8_134, "BB_OFFSET is added to the address of a batch if the command enables it");
    for with_offset in [false, true] {
        let mut bench = EngineBench::new(EngineClass::Render);
        let (first, second) = (BATCH + 0x1000, BATCH + 0x1100);
        for (at, value) in [(first, 1), (second, 2)] {
            bench.write(at, &store(VA + DATA, value));
            bench.put(at + 16, END);
        }
        let start = [MI_BATCH_BUFFER_START | BATCH_PPGTT | 1 | u32::from(with_offset) << 16, (VA + first) as u32, 0];
        assert_eq!(bench.batch(&[&[0x1108_0001, 0x158, 0x100][..], &start].concat()), Outcome::Complete);
        assert_eq!(bench.get(DATA), if with_offset { 2 } else { 1 });
    }
}

#[test]
fn commands_without_effect_change_no_register_or_memory() {
    proves!(
        [V8_113, V8_117, V8_121, V8_128],
        "memory is coherent and engines are powered, so these commands do not affect registers or memory and are \
        not counted"
    );
    let values = |bench: &EngineBench| -> Vec<(u32, u32)> {
        let shown = |name: &str| name.starts_with("RING_") || name.contains("TIMESTAMP");
        let kept = bench.gt.registers.listing().filter(|(_, found)| !shown(found.register.name));
        kept.map(|(offset, _)| (offset, bench.gt.registers.value(offset))).collect()
    };
    let commands: [(&str, &[EngineClass], &[u32]); 4] = [
        ("MI_SUSPEND_FLUSH", &EngineClass::BY_GUC, &[MI_SUSPEND_FLUSH | 1, MI_SUSPEND_FLUSH]),
        ("MI_SET_CONTEXT", &[EngineClass::Render], &[MI_SET_CONTEXT, DATA as u32 | 0x10d]),
        ("MI_FORCE_WAKEUP", &EngineClass::BY_GUC[1..], &[MI_FORCE_WAKEUP, 0xffff_031f]),
        ("MI_CLFLUSH", &[EngineClass::Render], &[MI_CLFLUSH | 3, AT, 0, u32::MAX, u32::MAX]),
    ];
    for (name, classes, command) in commands {
        for class in classes {
            let mut bench = EngineBench::new(*class);
            bench.put64(DATA, 0x77);
            let context = bench.context(0);
            assert_eq!(bench.submit(context), Outcome::Complete);
            let before = values(&bench);
            bench.emit(context, command);
            bench.emit(context, &store(VA + DATA + 8, 7));
            assert_eq!(bench.submit(context), Outcome::Complete, "{name} on {class:?}");
            assert_eq!((bench.get64(DATA), bench.get(DATA + 8)), (0x77, 7), "{name} on {class:?}");
            assert_eq!(values(&bench), before, "{name} on {class:?}");
            assert_eq!(bench.engine.counters().nonzero(), [].into());
        }
    }
}

#[test]
fn arbitration() {
    proves!(
        V8_109,
        "the prefetch bits of MI_ARB_CHECK are ignored. Without a preemption request the command is a MI_NOOP, with \
        a request the context is preempted after it"
    );
    proves!(
        V8_111,
        "MI_ARB_ON_OFF in a non-privileged batch is a MI_NOOP, so it cannot block preemption. In the ring it also \
        applies to batches, on every engine including the copy engine (trap T7)"
    );
    for class in EngineClass::BY_GUC {
        for bits in [0, 0x0101, 0x0100, 0xff01] {
            let mut bench = EngineBench::new(class);
            assert_eq!(bench.batch(&[ARB_CHECK | bits, MI_NOOP | WRITE_NOPID | 1]), Outcome::Complete);
            assert_eq!(bench.own(reg::NOPID), 1);
        }
        for (by_ring, bits) in [(false, 0x0101), (true, 0x0100)] {
            let mut bench = EngineBench::new(class);
            let off = MI_ARB_ON_OFF;
            bench.write(BATCH, &[off, ARB_CHECK | bits, MI_NOOP | WRITE_NOPID | 1, ARB_CHECK, END]);
            let context = bench.context(0);
            if by_ring {
                bench.emit(context, &[off, 0]);
            }
            bench.emit(context, &start(VA + BATCH));
            bench.engine.load(&bench.gt, context.load());
            bench.engine.request_preemption();
            let left = bench.run() == Outcome::Preempted;
            assert_eq!((left, bench.own(reg::NOPID) == 1), (!by_ring, by_ring), "{class:?}");
            assert_eq!(bench.engine.counters().privilege_violations, 1);
        }
    }
}

#[test]
fn ends() {
    proves!(
        V8_112,
        "MI_BATCH_BUFFER_END ends one level of batches. The end of the outermost batch returns to the ring. It is \
        ignored in the ring and if it is predicated"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let inner = BATCH + 0x1000;
    bench.write(
        inner,
        &[&store(VA + DATA, 1)[..], &[0x1108_0001, 0x3b8, 1, END | 1 << 15, 0x0080_0000], &[END]].concat(),
    );
    let outer =
        [&[0x18c0_0101, (VA + inner) as u32, 0][..], &store(VA + DATA + 4, 2), &[END], &store(VA + DATA, 9)].concat();
    bench.write(BATCH, &outer);
    let ring = [&[END][..], &start(VA + BATCH), &store(VA + DATA + 8, 3), &[END], &store(VA + DATA + 12, 4)].concat();
    assert_eq!(bench.ring(&ring), Outcome::Complete);
    assert_eq!([0, 4, 8, 12].map(|n| bench.get(DATA + n)), [1, 2, 3, 4]);
}

#[test]
fn conditional_ends_compare() {
    proves!(
        V8_135,
        "the six comparisons of memory, with and without mask, with the command's dword. GGTT addresses are denied \
        without privilege"
    );
    let holds = [
        (4u32, [false, false, true, true, false, true, false, false]),
        (5, [false, true, false, true, true, false, false, false]),
        (6, [true, true, false, false, false, true, false, false]),
    ];
    for (value, holds) in holds {
        for (compare, holds) in (0..).zip(holds) {
            for masked in [false, true] {
                let mut bench = EngineBench::new(EngineClass::VideoEnhance);
                // The mask is the first dword, the data the second.
                bench.put64(DATA, if masked { (0xf0 | u64::from(value)) << 32 | 0xf } else { value.into() });
                let end = [0x1b20_0002 | compare << 12 | u32::from(masked) << 19, 5, AT, 0];
                assert_eq!(bench.batch(&[&end[..], &store(VA + DATA + 8, 1)].concat()), Outcome::Complete);
                assert_eq!(bench.get(DATA + 8) == 1, holds, "{value} {compare} {masked}");
            }
        }
    }
    let mut bench = EngineBench::new(EngineClass::Copy);
    assert_eq!(
        bench.batch(&[&[0x1b60_0002, 5, DATA as u32, 0][..], &store(VA + DATA + 8, 1)].concat()),
        Outcome::Complete
    );
    assert_eq!((bench.get(DATA + 8), bench.engine.counters().privilege_violations), (1, 1), "the batch is not ended");
}
