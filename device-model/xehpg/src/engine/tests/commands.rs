// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI commands in rings and in non-privileged batches.

use super::*;
use crate::generation::XE_HPG;
use arctic_fidelity::proves;

/// Returns an LRI of both dwords of a GPR.
pub(super) fn gpr(n: u32, value: u64) -> [u32; 5] {
    mi::load_gpr(n, value)
}

pub(super) fn gpr_of(bench: &EngineBench, n: u32) -> u64 {
    u64::from(bench.own(0x604 + 8 * n)) << 32 | u64::from(bench.own(0x600 + 8 * n))
}

#[test]
fn store_data_imm() {
    proves!(V8_122, "stores a dword, a qword, and multiple dwords across a page boundary");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let at = (VA + DATA) as u32;
    let mut batch =
        vec![MI_STORE_DATA_IMM | STORE_QWORD | 3, at, 0, 0x11, 0x22, MI_STORE_DATA_IMM | 2, at + 8, 0, 0x33];
    batch.extend([MI_STORE_DATA_IMM | STORE_QWORD | (3 + 64 - 2), at + 0xf80, 0]);
    batch.extend(100..164u32);
    batch.extend(store(VA + DATA + 16, 0x44));
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!([0, 4, 8, 16].map(|n| bench.get(DATA + n)), [0x11, 0x22, 0x33, 0x44]);
    assert!((0..64).all(|n| bench.get(DATA + 0xf80 + 4 * n) == 100 + n as u32));
}

/// Contract B.9: page table updates of 0x1fe qwords in one command, as emitted by xe, in the ring and in a batch.
#[test]
fn store_data_imm_of_the_greatest_length() {
    let command = |at: u64| {
        let mut command = vec![MI_STORE_DATA_IMM | STORE_QWORD | (2 * 0x1fe + 3 - 2), at as u32, (at >> 32) as u32];
        command.extend(1..=2 * 0x1fe);
        command
    };
    let stored = |bench: &EngineBench| (0..2 * 0x1fe).all(|n| bench.get(DATA + 4 * n) == n as u32 + 1);
    let mut bench = EngineBench::new(EngineClass::Copy);
    assert_eq!(bench.batch(&command(VA + DATA)), Outcome::Complete);
    assert!(stored(&bench));
    let mut bench = EngineBench::new(EngineClass::Copy);
    assert_eq!(bench.ring(&command(VA + DATA)), Outcome::Complete);
    assert!(stored(&bench));
}

#[test]
fn register_immediates() {
    proves!(V8_105, "NOPID");
    proves!(V8_124, "multiple registers, byte write disables, engine-relative offsets");
    let mut bench = EngineBench::new(EngineClass::Render);
    let base = bench.base();
    let batch = [0x0040_1234, 0x1100_0003, base + 0x600, 0xaabb_ccdd, base + 0x604, 1, 0x1108_0501, 0x600, 0x1122_3344];
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!(bench.own(0x94), 0x1234);
    assert_eq!((bench.own(0x600), bench.own(0x604)), (0x11bb_33dd, 1));
}

#[test]
fn registers_and_memory() {
    proves!([V8_126, V8_130, V8_131, V8_132], "transfers between registers and memory");
    let mut bench = EngineBench::new(EngineClass::VideoEnhance);
    let at = |offset| Process(VA + DATA + offset);
    bench.put(DATA, 0x5555);
    let batch = [
        &mi::load_register_mem(Reg::Own(0x600), at(0))[..],
        &mi::load_register_reg(Reg::Own(0x608), Reg::Own(0x600)),
        &mi::store_register_mem(Reg::Own(0x608), at(4)),
        &mi::copy_mem_mem(at(8), at(4)),
    ]
    .concat();
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!([4, 8].map(|n| bench.get(DATA + n)), [0x5555, 0x5555]);
}

#[test]
fn loads_see_stores() {
    proves!(V8_202, "the engine reads back its own stores without a flush");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let mut batch = store(VA + DATA, 9).to_vec();
    batch.extend([MI_LOAD_REGISTER_MEM | CS_MMIO | 2, 0x600, (VA + DATA) as u32, 0]);
    batch.extend(wait(4, VA + DATA, 9));
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!(bench.own(0x600), 9);
}

#[test]
fn flush_dw() {
    proves!(V8_127, "post-sync writes of MI_FLUSH_DW to memory and to the PPHWSP: dword, qword and timestamp");
    let mut bench = EngineBench::new(EngineClass::VideoDecode);
    let at = DATA as u32;
    bench.clock.advance(625_000);
    bench.put(DATA + 12, 0xffff_ffff);
    bench.put(DATA + 4, 0xffff_ffff);
    let ring = [
        &[MI_FLUSH_DW | FLUSH_WRITE | 2, at | FLUSH_GGTT, 0, 0x11][..],
        &[MI_FLUSH_DW | FLUSH_TLB | FLUSH_WRITE | 3, (at + 8) | FLUSH_GGTT, 0, 0x22, 0x33],
        &[MI_FLUSH_DW | FLUSH_TIMESTAMP | 2, (at + 16) | FLUSH_GGTT, 0, 0],
        &[MI_FLUSH_DW | FLUSH_INDEX | FLUSH_WRITE | 2, 0xd0, 0, 0x44],
        &[MI_FLUSH_DW | FLUSH_WRITE | 2, (VA + DATA) as u32 + 24, 0, 0x55],
    ]
    .concat();
    assert_eq!(bench.ring(&ring), Outcome::Complete);
    assert_eq!([0, 4, 8, 12, 24].map(|n| bench.get(DATA + n)), [0x11, 0xffff_ffff, 0x22, 0x33, 0x55]);
    assert_eq!(bench.get64(DATA + 16), 12_000);
    assert_eq!(bench.get(bench.context(0).pphwsp() + 0xd0), 0x44);
}

#[test]
fn pipe_control() {
    proves!(V8_137, "post-sync operations of PIPE_CONTROL write eight bytes");
    let mut bench = EngineBench::new(EngineClass::Render);
    let at = DATA as u32;
    bench.clock.advance(625_000);
    bench.put64(DATA, u64::MAX);
    bench.put64(DATA + 16, u64::MAX);
    let pipe_control = |flags, address, data: [u32; 2]| [PIPE_CONTROL | 4, flags, address, 0, data[0], data[1]];
    let ring = [
        pipe_control(PIPE_GGTT | PIPE_CS_STALL | PIPE_WRITE | PIPE_FLUSH_ENABLE, at, [0x11, 0]),
        pipe_control(PIPE_GGTT | PIPE_TIMESTAMP, at + 8, [0, 0]),
        pipe_control(PIPE_GGTT | PIPE_DEPTH_COUNT, at + 16, [0, 0]),
        pipe_control(PIPE_INDEX | PIPE_WRITE, 0xd0, [0x44, 0x55]),
        pipe_control(PIPE_REGISTER | PIPE_WRITE, 0x2600, [0x66, 0]),
        // No post-sync operation.
        pipe_control(1, 0xd0, [0, 0]),
    ]
    .concat();
    assert_eq!(bench.ring(&ring), Outcome::Complete);
    assert_eq!([0, 8, 16].map(|n| bench.get64(DATA + n)), [0x11, 12_000, 0]);
    assert_eq!(bench.get64(bench.context(0).pphwsp() + 0xd0), 0x55_0000_0044);
    assert_eq!(bench.own(0x600), 0x66);
    assert_eq!(bench.engine.counters().depth_counts, 1);
}

#[test]
fn privileged_commands_work_in_the_ring() {
    proves!([V8_110, V8_123, V8_125], "status page and GGTT writes from the ring");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let pphwsp = bench.context(0).pphwsp();
    let page = 0x1000u32;
    let ring = [
        &[MI_STORE_DATA_INDEX | PER_PROCESS_PAGE | 1, 0x100, 0x77, MI_REPORT_HEAD][..],
        &[MI_UPDATE_GTT | 2, page << 12, DATA as u32 | 3, 0],
        &[MI_STORE_DATA_IMM | GGTT | 2, page << 12, 0, 8, 0],
    ]
    .concat();
    assert_eq!(bench.ring(&ring), Outcome::Complete);
    assert_eq!(bench.get(pphwsp + 0x100), 0x77);
    assert_eq!(bench.get(pphwsp + 16), 16, "reported head");
    assert_eq!(bench.get(DATA), 8, "the store uses the new entry");
}

#[test]
fn a_users_batch_has_no_privilege() {
    proves!([V8_159, V8_170, V8_171], "commands and parts of commands that are denied to a non-privileged batch");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let (global, process, base) = (DATA as u32, (VA + DATA) as u32, bench.base());
    let dropped: &[&[u32]] = &[
        &[MI_STORE_DATA_IMM | GGTT | 2, global, 0, 1],
        &[MI_STORE_DATA_INDEX | 1, 0x100, 1],
        &[MI_UPDATE_GTT | 2, 0x30_0000, 3, 0],
        &[MI_STORE_REGISTER_MEM | GGTT | CS_MMIO | 2, 0x600, global, 0],
        &[MI_LOAD_REGISTER_MEM | GGTT | CS_MMIO | 2, 0x610, global, 0],
        &[MI_COPY_MEM_MEM | DESTINATION_GGTT | 3, global, 0, process, 0],
        &[MI_ATOMIC | GGTT | ATOMIC_INC << 8 | 1, global, 0],
        &[MI_FLUSH_DW | FLUSH_WRITE | 2, global | 4, 0, 1],
        &[MI_FLUSH_DW | FLUSH_INDEX | FLUSH_WRITE | 2, 0xd0, 0, 1],
        &[MI_SEMAPHORE_WAIT | GGTT | SEMAPHORE_POLL | 4 << 12 | 2, 1, global, 0],
        &[MI_CONDITIONAL_BATCH_BUFFER_END | GGTT | COMPARE_SEMAPHORE | 2, 0, global, 0],
        &[MI_ARB_ON_OFF],
        &[MI_REPORT_HEAD],
        // One privileged register turns the whole command into a MI_NOOP (trap T35).
        &[MI_LOAD_REGISTER_IMM | 3, base + 0x618, 1, base + 0x30, 1],
        &[MI_LOAD_REGISTER_REG | CS_MMIO | SOURCE_CS_MMIO | 1, 0x600, 0x38],
    ];
    for command in dropped {
        let violations = |bench: &EngineBench| {
            bench.engine.counters().privilege_violations + bench.engine.counters().register_refusals
        };
        let before = violations(&bench);
        bench.put(DATA, 0);
        let mut batch = command.to_vec();
        batch.extend(store(VA + DATA + 8, 0x77));
        bench.put(DATA + 8, 0);
        assert_eq!(bench.batch(&batch), Outcome::Complete, "{command:x?}");
        assert_eq!((bench.get(DATA), bench.get(DATA + 8)), (0, 0x77), "{command:x?}");
        assert_eq!(violations(&bench), before + 1, "{command:x?}");
        assert_eq!((bench.own(0x618), bench.own(0x610)), (0, 0));
    }
    assert_eq!(bench.gt.memory.ggtt().entry(0x300), GgttEntry::from(0x30_0003));
}

#[test]
fn unprivileged_batch_starts_no_privileged_batch() {
    proves!(
        V8_134,
        "a non-privileged batch cannot start a privileged batch. IGT starts its loops as \"global\" batches (trap \
        T5)"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let inner = BATCH + 0x1000;
    bench.write(inner, &[MI_STORE_DATA_IMM | GGTT | 2, DATA as u32, 0, 1]);
    bench.write(inner + 16, &store(VA + DATA + 4, 2));
    bench.put(inner + 32, END);
    assert_eq!(bench.batch(&[MI_BATCH_BUFFER_START | SECOND_LEVEL | 1, (VA + inner) as u32, 0]), Outcome::Complete);
    assert_eq!((bench.get(DATA), bench.get(DATA + 4)), (0, 2));
}

#[test]
fn slots_extend_the_whitelist() {
    proves!(V8_186, "a slot permits access to a register, and a deny slot denies it");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let register = bench.base() + 0x24c;
    let batch = [MI_LOAD_REGISTER_IMM | 1, register, 5];
    bench.batch(&batch);
    assert_eq!(bench.own(0x24c), 0);
    bench.gt.registers.set(bench.base() + 0x4d0, register);
    bench.batch(&batch);
    assert_eq!(bench.own(0x24c), 5);
    bench.gt.registers.set(bench.base() + 0x4d0, register | 1 << 28);
    bench.batch(&[MI_LOAD_REGISTER_IMM | 1, register, 6]);
    assert_eq!(bench.own(0x24c), 5, "read only");
    bench.gt.registers.set(bench.base() + 0x4d0, (bench.base() + 0x600) | 1 << 30);
    bench.batch(&[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x600, 6]);
    assert_eq!(bench.own(0x600), 0, "denied");
}

#[test]
fn conditional_end() {
    proves!(
        V8_135,
        "the batch continues if the comparison is true, with or without mask. Otherwise all levels of batches or \
        one level end"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    let inner = BATCH + 0x1000;
    let at = (VA + DATA + 0x100) as u32;
    let mut marks = |header: u32, data: u64, immediate: u32| {
        bench.put64(DATA + 0x100, data);
        (0..3).for_each(|n| bench.put(DATA + 4 * n, 0));
        bench.write(inner, &[header, immediate, at, 0]);
        bench.write(inner + 16, &store(VA + DATA, 1));
        bench.put(inner + 32, END);
        let mut batch = vec![MI_BATCH_BUFFER_START | SECOND_LEVEL | BATCH_PPGTT | 1, (VA + inner) as u32, 0];
        batch.extend(store(VA + DATA + 4, 1));
        bench.write(BATCH, &batch);
        bench.put(BATCH + 28, END);
        let mut ring = start(VA + BATCH).to_vec();
        ring.extend(store(VA + DATA + 8, 1));
        assert_eq!(bench.ring(&ring), Outcome::Complete);
        [0, 4, 8].map(|n| bench.get(DATA + n))
    };
    let compare = MI_CONDITIONAL_BATCH_BUFFER_END | COMPARE_SEMAPHORE | 2;
    assert_eq!(marks(compare, 1, 0), [1, 1, 1], "greater: continues");
    assert_eq!(marks(compare, 0, 0), [0, 0, 1], "not greater: all levels end");
    assert_eq!(marks(compare | 1 << 18, 0, 0), [0, 1, 1], "not greater: one level ends");
    assert_eq!(marks(compare | 5 << 12, 7, 7), [0, 0, 1], "IGT: until equal");
    assert_eq!(marks(compare | 4 << 12 | 1 << 19, 0xff34_0000_00ff, 0x34), [1, 1, 1], "masked");
    assert_eq!(marks(compare & !(1 << 21), 0, 0), [1, 1, 1], "comparison not enabled");
}

#[test]
fn chaining_and_nesting() {
    proves!([V8_158, V8_134], "a chained batch replaces its parent. A nested batch returns to it");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let second = BATCH + 0x1000;
    bench.write(second, &store(VA + DATA, 1));
    bench.put(second + 16, END);
    for (header, returned) in [(0x1880_0101, 0), (0x18c0_0101, 1)] {
        let mut batch = vec![header, (VA + second) as u32, 0];
        batch.extend(store(VA + DATA + 4, 1));
        bench.put(DATA + 4, 0);
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        assert_eq!((bench.get(DATA), bench.get(DATA + 4)), (1, returned));
    }
}

#[test]
fn display_commands_of_a_card_without_display() {
    proves!(
        [V8_108, V8_115, V8_116],
        "without a display, a wait for an event completes immediately and does not preempt. Scan line and flip \
        commands have no effect and are counted in the report. A flip in a non-privileged batch is dropped"
    );
    let commands =
        [MI_WAIT_FOR_EVENT | 8, 0x0200_0008, 0x0900_0000, 0x1234, 0x0980_0000, 0x1234, 0x0a00_0001, 0, DATA as u32];
    for class in [EngineClass::Render, EngineClass::Copy] {
        for user in [false, true] {
            let mut bench = EngineBench::new(class);
            let commands = [&commands[..], &store(VA + DATA, 7)].concat();
            let outcome = if user { bench.batch(&commands) } else { bench.ring(&commands) };
            assert_eq!((outcome, bench.get(DATA)), (Outcome::Complete, 7));
            let counters = bench.engine.counters();
            let of = |name| counters.skipped.by_name().get(name).copied().unwrap_or(0);
            assert_eq!((of("MI_LOAD_SCAN_LINES_INCL"), of("MI_LOAD_SCAN_LINES_EXCL")), (1, 1));
            assert_eq!((of("MI_DISPLAY_FLIP"), counters.privilege_violations), (u64::from(!user), u64::from(user)));
        }
    }
}

/// The streamer executes copy engine commands: xe's VRAM fill, followed by a store.
#[test]
fn blits_run() {
    let mut bench = EngineBench::new(EngineClass::Copy);
    let at = (VA + DATA) as u32;
    let mut batch = vec![0x5110_000e, 4095, 0, 2 << 16 | 1024, at, 0, 0, 0xabcd, 0, 0, 0, 0, 0, 0, 0, 0];
    batch.extend(store(VA + DATA, 1));
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!([0, 4, 0x1ffc, 0x2000].map(|n| bench.get(DATA + n)), [1, 0xabcd, 0xabcd, 0]);
}

#[test]
fn self_modifying_batches() {
    proves!(V8_206, "commands modified beyond the prefetch distance are executed as modified");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let next = BATCH + 12;
    let target = next + 16;
    let mut batch = vec![0, 0, 0];
    batch.extend(store(VA + target + 12, 5));
    batch[0..3].copy_from_slice(&[0, 0, 0]);
    batch.extend(store(VA + DATA, 1));
    let far = 200usize;
    batch.extend(vec![0; far]);
    batch.extend(store(VA + DATA + 4, 1));
    let at = 4 * (3 + 4 + 4 + far as u64 + 3);
    batch[3..7].copy_from_slice(&store(VA + BATCH + at, 6));
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!(bench.get(DATA + 4), 6);
}

/// Enables and unmasks every source of the first bank and sets the master enable.
fn open_interrupts(bench: &EngineBench) {
    bench.gt.write(0x19_0030, u32::MAX);
    for mask in [0x19_0090, 0x19_00a0] {
        bench.gt.write(mask, 0);
    }
    bench.gt.write(0x19_0008, 1 << 31);
}

#[test]
fn interrupts_leave_the_engine() {
    proves!(
        [V8_086, V8_091, V8_107, V8_127],
        "the user interrupt and the flush notification are raised, and the parser continues"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    open_interrupts(&bench);
    let mut ring = vec![MI_USER_INTERRUPT];
    ring.extend(store(VA + DATA, 1));
    assert_eq!(bench.ring(&ring), Outcome::Complete);
    assert_eq!((bench.get(DATA), bench.msis.0.load(Ordering::SeqCst)), (1, 1));
    // Register accesses as by the driver: bank 0, the copy engine's bit, and the identity after selection.
    assert_eq!(bench.gt.read(0x19_0018), 1 << 15);
    bench.gt.write(0x19_0070, 1 << 15);
    assert_eq!(bench.gt.read(0x19_0060), 0x8003_0001, "valid, class 3, instance 0, user interrupt");
    bench.gt.write(0x19_0060, 1 << 31);
    bench.gt.write(0x19_0018, 1 << 15);
    bench.gt.write(0x19_0008, 1 << 31);
    assert_eq!(bench.ring(&[MI_FLUSH_DW | FLUSH_NOTIFY | 2, 0, 0, 0]), Outcome::Complete);
    assert_eq!(bench.msis.0.load(Ordering::SeqCst), 2, "flush notify");
}

#[test]
fn illegal_commands_halt() {
    proves!(
        [V8_089, V8_095, V8_099],
        "an opcode that no engine implements raises an instruction error and halts the context"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let illegal = 0x0f80_0000;
    let outcome = bench.batch(&[0, illegal, 0]);
    assert_eq!(outcome, Outcome::Halted(Halt::IllegalCommand { header: illegal, address: VA + BATCH + 4 }));
    assert_eq!((bench.own(reg::ESR) & 1, bench.own(reg::EIR) & 1, bench.own(reg::IPEHR)), (1, 0, illegal));
    bench.engine.reset(&bench.gt);
    bench.gt.registers.set(bench.base() + reg::EMR, !1);
    bench.batch(&[illegal]);
    assert_eq!(bench.own(reg::EIR) & 1, 1);
    assert_eq!(bench.engine.counters().nonzero(), [("illegal commands".to_owned(), 2)].into());
}

/// Skipped commands are reported by engine and command.
#[test]
fn skipped_commands_are_reported() {
    let bench = EngineBench::new(EngineClass::Render);
    let engines = Engines::new(&XE_HPG, |id| XE_HPG.engines.info(id).class == EngineClass::Render);
    let context = bench.context(0);
    bench.emit(context, &[0x0700_0000, 0x0700_0000, 0x680b_0000, 0]);
    let id = engines.present().next().unwrap();
    engines.lock(id).load(&bench.gt, context.load());
    assert_eq!(engines.lock(id).step(&bench.gt, 100), Outcome::Complete);
    let expected = [("rcs0 3DSTATE_VF_STATISTICS: state only", 1), ("rcs0 MI_SET_APPID: state only", 2)];
    assert_eq!(engines.undone(), expected.map(|(what, n)| (what.to_owned(), n)).into());
}

/// A blit that the copy engine does not implement halts its context and is counted.
#[test]
fn refused_blits_halt() {
    let mut bench = EngineBench::new(EngineClass::Copy);
    let outcome = bench.batch(&[0x5080_0009]);
    assert!(matches!(outcome, Outcome::Halted(Halt::IllegalCommand { header: 0x5080_0009, .. })), "{outcome:?}");
    assert_eq!(bench.engine.counters().refused_blits.len(), 1);
}

#[test]
fn a_ring_mode_context_switch_has_no_effect() {
    proves!(
        V8_117,
        "MI_SET_CONTEXT is decoded and has no effect. A compute batch of IGT omits the length of a CFE_STATE and \
        thereby also executes MI_SET_CONTEXT on the compute engines (IGT: intel_compute.c, \
        xehp_compute_exec_compute)"
    );
    for class in [EngineClass::Render, EngineClass::Compute] {
        let mut bench = EngineBench::new(class);
        let context = bench.context(0);
        bench.emit(context, &[0x7200_0000, 0, 0, 0x0c00_8800, 0, 0]);
        bench.emit(context, &store(VA + DATA, 7));
        assert_eq!(bench.submit(context), Outcome::Complete);
        assert_eq!(bench.get(DATA), 7);
    }
}
