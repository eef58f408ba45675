// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Restore, save, preemption, workaround batches and waiting loops.

use super::*;
use crate::generation::XE_HPG;
use arctic_fidelity::proves;
use arctic_mi::{Alu, Operand};

/// Contract B.8, B.9: xe's WA and NOP jobs complete on every engine class.
#[test]
fn the_probe_jobs_run() {
    for class in EngineClass::BY_GUC {
        let mut bench = EngineBench::new(class);
        let context = bench.context(0);
        let base = bench.base();
        // The batch as built by xe's emit_wa_job: it changes register bits with the ALU and, on render, contains
        // 3DSTATE commands.
        bench.gt.registers.set(base + 0x24c, 0xf0f);
        let changed = Reg::Mmio(base + 0x24c);
        let mut batch = mi::load_register_reg(Reg::Own(0x600), changed).to_vec();
        batch.extend(mi::load_registers_imm(&[(0x608, 0x00f), (0x610, 0x0a0)]));
        batch.extend(mi::math(&[
            Alu::Load(Operand::SrcA, Operand::R(0)),
            Alu::LoadInv(Operand::SrcB, Operand::R(1)),
            Alu::And,
            Alu::Store(Operand::R(0), Operand::Accu),
            Alu::Load(Operand::SrcA, Operand::R(0)),
            Alu::Load(Operand::SrcB, Operand::R(2)),
            Alu::Or,
            Alu::Store(Operand::R(0), Operand::Accu),
        ]));
        batch.extend(mi::load_register_reg(changed, Reg::Own(0x600)));
        if class == EngineClass::Render {
            batch.extend([0x7815_0009, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            batch.extend([0x7809_0043]);
            batch.extend([0; 68]);
        }
        batch.push(END);
        bench.write(BATCH, &batch);
        // The post-restore batch stores ENGINE_ID to the PPHWSP and 1 to CTX_TIMESTAMP in the image.
        let engine_id = (context.pphwsp() + 0x400) as u32;
        bench.write(
            context.at + 0x6000,
            &[0x1248_0002, 0x8c, engine_id, 0, 0x1040_0002, context.image(0x23) as u32, 0, 1, END],
        );
        bench.put(context.image(0x13), (context.at + 0x6000) as u32 | 1);
        let seqno = DATA as u32;
        bench.emit(context, &[MI_ARB_ON_OFF | 1, 0]);
        bench.emit(context, &[MI_STORE_REGISTER_MEM | GGTT | CS_MMIO | 2, 0x3a8, (context.pphwsp() + 0x200) as u32, 0]);
        bench.emit(context, &[0x1040_0002, seqno + 8, 0, 1, 0x1880_0001, BATCH as u32, 0, 0x0400_0000]);
        if matches!(class, EngineClass::Render | EngineClass::Compute) {
            bench.emit(context, &[PIPE_CONTROL | 4, 0x0101_4080 | 1 << 20, seqno, 0, 1, 0]);
        } else {
            bench.emit(context, &[MI_FLUSH_DW | FLUSH_WRITE | 2, seqno | 4, 0, 1]);
        }
        bench.emit(context, &[MI_USER_INTERRUPT, MI_ARB_ON_OFF | 1, ARB_CHECK]);
        // The context has no PPGTT, so all addresses of its job are in the GGTT.
        let load = Load { descriptor: context.pphwsp() | 0x19, ..context.load() };
        bench.engine.load(&bench.gt, load);
        bench.clock.advance(6250);
        assert_eq!(bench.engine.loaded(), Some(load));
        assert_eq!(bench.run(), Outcome::Complete, "{class:?}");
        assert_eq!((bench.get(DATA), bench.get(DATA + 8)), (1, 1), "{class:?}");
        assert_eq!(bench.gt.registers.value(base + 0x24c), 0xfa0);
        assert_eq!(bench.get(context.pphwsp() + 0x400), class as u32, "ENGINE_ID of instance 0");
        assert_ne!(bench.get(context.image(0x23)), 1, "the marker of the post-restore batch is overwritten");
        assert_eq!(bench.get(context.image(0x05)), bench.get(context.image(0x07)), "head equals tail");
        assert_eq!(bench.get(context.image(0x03)) & 1, 0, "restore is no longer inhibited");
        assert_eq!(bench.engine.loaded(), None);
        let skipped = if class == EngineClass::Render { 2 } else { 0 };
        assert_eq!(bench.engine.counters().skipped.by_name().values().sum::<u64>(), skipped);
        assert_eq!(bench.engine.counters().illegal, 0);
    }
}

#[test]
fn registers_belong_to_the_context() {
    proves!(
        [V8_045, V8_050, V8_145],
        "GPRs and predicates are saved with the context and not visible to other contexts"
    );
    let mut bench = EngineBench::new(EngineClass::Compute);
    let (a, b) = (bench.context(0), bench.context(1));
    bench.emit(a, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 7, 0x600, 0xaaaa, 0x67c, 0xbbbb, 0x41c, 1, 0x400, 0x1234]);
    assert_eq!(bench.submit(a), Outcome::Complete);
    assert_eq!((bench.get(a.image(0x85)), bench.get(a.image(0xc3))), (0xaaaa, 0xbbbb));
    bench.emit(b, &store_register(0x600, VA + DATA));
    bench.emit(b, &store_register(0x41c, VA + DATA + 4));
    bench.put(DATA, 7);
    assert_eq!(bench.submit(b), Outcome::Complete);
    assert_eq!((bench.get(DATA), bench.get(DATA + 4)), (0, 0), "no state of another context is visible");
    for (n, offset) in [0x600, 0x67c, 0x41c, 0x400].into_iter().enumerate() {
        bench.emit(a, &store_register(offset, VA + DATA + 4 * n as u64));
    }
    assert_eq!(bench.submit(a), Outcome::Complete);
    assert_eq!([0, 4, 8, 12].map(|n| bench.get(DATA + n)), [0xaaaa, 0xbbbb, 1, 0x1234]);
}

#[test]
fn copy_engine_state_is_saved() {
    proves!(V8_048, "BCS_SWCTRL and BLIT_CCTL are context state of the copy engine, at dwords 0x43 and 0x45");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    bench.emit(context, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 3, 0x200, 0x0003_0003, 0x204, 0x0800_0800]);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!((bench.get(context.image(0x43)), bench.get(context.image(0x45)) & 0xffff), (0xffff_0003, 0x0800));
    for offset in [0x200, 0x204] {
        bench.gt.registers.set(bench.base() + offset, 0);
        bench.emit(context, &store_register(offset, VA + DATA + u64::from(offset)));
    }
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!([0x200, 0x204].map(|n| bench.get(DATA + n) & 0xffff), [3, 0x0800]);
}

#[test]
fn a_saved_image_is_a_list_of_commands() {
    proves!(
        [V8_046, V8_047],
        "a saved image is a complete command list. It includes the registers that drivers program per context, even \
        if the driver's image ended before them (xe: xe_lrc.c, xe_lrc_lookup_default_reg_value)"
    );
    for (class, end, register) in [(EngineClass::Render, 0x44, 0x7004), (EngineClass::Copy, 0x34, 0x2_2204)] {
        let mut bench = EngineBench::new(class);
        let (context, other) = (bench.context(0), bench.context(1));
        bench.put(context.image(end), MI_BATCH_BUFFER_END | 1);
        bench.emit(context, &[MI_LOAD_REGISTER_IMM | 1, register, 0x0800_0800]);
        assert_eq!(bench.submit(context), Outcome::Complete);
        assert_eq!(bench.submit(other), Outcome::Complete);
        assert_eq!(bench.gt.registers.value(register) & 0xffff, 0, "no state of another context is visible");
        let (mut at, mut found) = (end, None);
        while found.is_none() && at < 0x400 {
            let header = bench.get(context.image(at));
            match header >> 23 {
                0 => at += 1,
                0x29 => at += 4,
                0x22 => {
                    let dwords = (header & 0xff) as usize + 2;
                    found = (at + 1..at + dwords).step_by(2).find(|at| bench.get(context.image(*at)) == register);
                    at += dwords;
                }
                _ => break,
            }
        }
        let at = found.unwrap_or_else(|| panic!("{class:?}: register {register:#x} is missing in the image"));
        assert_eq!(bench.get(context.image(at + 1)) & 0xffff, 0x0800);
    }
}

#[test]
fn preemption_resumes_in_the_batch() {
    proves!(
        [V8_075, V8_076, V8_163],
        "a nested batch is preempted at MI_ARB_CHECK and resumes at the same position with the same GPRs"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    let (a, b) = (bench.context(0), bench.context(1));
    let inner = BATCH + 0x1000;
    bench.write(BATCH, &[0x1108_0001, 0x600, 5, 0x18c0_0101, (VA + inner) as u32, 0]);
    bench.write(BATCH + 24, &store_register(0x600, VA + DATA + 8));
    bench.put(BATCH + 40, END);
    bench.write(inner, &store(VA + DATA, 1));
    bench.write(inner + 16, &[ARB_CHECK]);
    bench.write(inner + 20, &store(VA + DATA + 4, 2));
    bench.put(inner + 36, END);
    bench.emit(a, &start(VA + BATCH));
    bench.emit(a, &store(VA + DATA + 12, 4));
    bench.engine.load(&bench.gt, a.load());
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    assert_eq!([0, 4].map(|n| bench.get(DATA + n)), [1, 0]);
    assert_eq!(bench.engine.loaded(), None);
    bench.emit(b, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x600, 99]);
    assert_eq!(bench.submit(b), Outcome::Complete);
    bench.put(DATA, 0);
    assert_eq!(bench.submit(a), Outcome::Complete);
    assert_eq!([0, 4, 8, 12].map(|n| bench.get(DATA + n)), [0, 2, 5, 4], "only the remaining commands are executed");
}

/// If the driver changes RING_HEAD of a preempted context, the saved batch position is ignored.
#[test]
fn changed_ring_head_discards_the_saved_batch_position() {
    let mut bench = EngineBench::new(EngineClass::Render);
    let context = bench.context(0);
    bench.write(BATCH, &[ARB_CHECK]);
    bench.write(BATCH + 4, &store(VA + DATA, 1));
    bench.put(BATCH + 20, END);
    bench.emit(context, &start(VA + BATCH));
    bench.engine.load(&bench.gt, context.load());
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    bench.emit(context, &[0, 0]);
    bench.put(context.image(0x05), bench.get(context.image(0x07)));
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!(bench.get(DATA), 0);
}

#[test]
fn arbitration_gates_preemption() {
    proves!(
        [V8_078, V8_109, V8_111],
        "with arbitration disabled, the context is not preempted at MI_ARB_CHECK or in a wait"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    bench.emit(context, &[MI_ARB_ON_OFF, ARB_CHECK]);
    bench.emit(context, &store(VA + DATA, 1));
    bench.emit(context, &wait(4, VA + DATA + 8, 1));
    bench.emit(context, &[MI_ARB_ON_OFF | 1, ARB_CHECK]);
    bench.emit(context, &store(VA + DATA + 4, 2));
    bench.engine.load(&bench.gt, context.load());
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Waiting);
    assert_eq!(bench.get(DATA), 1);
    bench.put(DATA + 8, 1);
    assert_eq!(bench.run(), Outcome::Preempted);
    assert_eq!(bench.get(DATA + 4), 0);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!(bench.get(DATA + 4), 2);
}

#[test]
fn a_semaphore_waits_for_another_engine() {
    proves!([V8_119, V8_120], "an engine waits for a store of another engine and can be preempted during the wait");
    let mut bench = EngineBench::new(EngineClass::VideoDecode);
    let (waiter, signaller) = (bench.context(0), bench.context(1));
    bench.emit(waiter, &wait(1, VA + DATA, 3));
    bench.emit(waiter, &store(VA + DATA + 4, 7));
    bench.emit(signaller, &store(VA + DATA, 3));
    bench.emit(signaller, &[MI_SEMAPHORE_SIGNAL, 0]);
    assert_eq!(bench.submit(waiter), Outcome::Waiting);
    assert_eq!(bench.run(), Outcome::Waiting);
    let mut other = Engine::new(&XE_HPG, XE_HPG.engines.find(EngineClass::VideoEnhance, 0).unwrap());
    other.load(&bench.gt, signaller.load());
    assert_eq!(other.step(&bench.gt, 100), Outcome::Complete);
    assert_eq!(bench.run(), Outcome::Complete);
    assert_eq!(bench.get(DATA + 4), 7);

    bench.put(DATA, 0);
    bench.emit(waiter, &wait(1, VA + DATA, 3));
    assert_eq!(bench.submit(waiter), Outcome::Waiting);
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    assert_eq!(bench.submit(waiter), Outcome::Waiting, "the wait is executed again");
}

#[test]
fn context_time_is_the_time_on_the_engine() {
    proves!(V8_214, "the ticks of a context continue from its image and stop at the save (contract F.4, E.8)");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    bench.put(context.image(0x23), 1000);
    bench.emit(context, &wait(4, VA + DATA, 1));
    bench.emit(context, &store_register(0x3a8, VA + DATA + 4));
    assert_eq!(bench.submit(context), Outcome::Waiting);
    bench.clock.advance(625 * 100);
    bench.put(DATA, 1);
    assert_eq!(bench.run(), Outcome::Complete);
    assert_eq!(bench.get(DATA + 4), 1000 + 1200);
    bench.clock.advance(625 * 100);
    assert_eq!(bench.get(context.image(0x23)), 2200);
    assert_eq!(bench.gt.read(bench.base() + 0x3a8), 2200, "the value by MMIO");
}

#[test]
fn the_tail_moves_under_a_loaded_context() {
    proves!(V8_079, "a lite restore reads the new tail of a loaded context");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    bench.emit(context, &wait(4, VA + DATA, 1));
    assert_eq!(bench.submit(context), Outcome::Waiting);
    bench.emit(context, &store(VA + DATA + 4, 5));
    bench.engine.tail_moved();
    bench.put(DATA, 1);
    assert_eq!(bench.run(), Outcome::Complete);
    assert_eq!(bench.get(DATA + 4), 5);
}

#[test]
fn the_ring_wraps() {
    proves!(V8_065, "the ring wraps, and a command may straddle the wrap (contract F.8)");
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    for dword in [0x05, 0x07] {
        bench.put(context.image(dword), 0x3ff8);
    }
    bench.emit(context, &store(VA + DATA, 1));
    bench.emit(context, &store(VA + DATA + 4, 2));
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!((bench.get(DATA), bench.get(DATA + 4)), (1, 2));
    assert_eq!(bench.get(context.image(0x05)), 0x18);
}

#[test]
fn the_indirect_batch_has_a_length_and_no_end() {
    proves!(V8_161, "i915's indirect context batch runs for its length, before the per-context batch (contract G.5)");
    let mut bench = EngineBench::new(EngineClass::Compute);
    let context = bench.context(0);
    let ggtt_store = |at: u64, value| [MI_STORE_DATA_IMM | GGTT | 2, at as u32, 0, value];
    let batch = context.at + 0x6000;
    bench.write(batch, &ggtt_store(DATA, 1));
    bench.write(batch + 64, &ggtt_store(DATA + 4, 2));
    bench.write(batch + 0x1000, &ggtt_store(DATA, 3));
    bench.put(batch + 0x1010, END);
    bench.put(context.image(0x15), batch as u32 | 1);
    bench.put(context.image(0x13), (batch + 0x1000) as u32 | 1);
    bench.emit(context, &store(VA + DATA + 8, 4));
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!([0, 4, 8].map(|n| bench.get(DATA + n)), [3, 0, 4]);
}

/// Contract F.2: an engine reset stops the context, unloads it and saves its position to the image.
#[test]
fn reset_unloads_a_spinning_context() {
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    bench.write(BATCH, &start(VA + BATCH));
    bench.emit(context, &start(VA + BATCH));
    bench.emit(context, &store(VA + DATA, 1));
    bench.engine.load(&bench.gt, context.load());
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Spinning, "not preempted without MI_ARB_CHECK");
    bench.clock.advance(625 * 8);
    assert_eq!(bench.engine.reset(&bench.gt), Some(context.load()));
    assert_eq!(bench.get(context.image(0x05)), 12);
    assert_eq!(bench.get(context.image(0x23)), 96);
    assert_eq!(bench.get(context.image(0x0f)) & 1, 0, "no batch to resume");
    assert_eq!(bench.engine.step(&bench.gt, 10), Outcome::Idle);
    assert_eq!(bench.get(DATA), 0);
}

/// Contract H.3: a spinner (IGT's xe_spin) executes one iteration per step, ends when signalled, and can be preempted.
#[test]
fn a_spinner_waits() {
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    let end = DATA + 8;
    bench.put(end, u32::MAX);
    bench.write(BATCH, &store(VA + DATA, 0xc0ffee));
    let top = BATCH + 16;
    bench.write(top, &[ARB_CHECK, MI_CONDITIONAL_BATCH_BUFFER_END | COMPARE_SEMAPHORE | 2, 0, (VA + end) as u32, 0]);
    bench.write(top + 20, &start(VA + top));
    bench.emit(context, &start(VA + BATCH));
    assert_eq!(bench.submit(context), Outcome::Spinning);
    assert_eq!(bench.get(DATA), 0xc0ffee);
    assert_eq!(bench.run(), Outcome::Spinning);
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    assert_eq!(bench.submit(context), Outcome::Spinning);
    bench.put(end, 0);
    assert_eq!(bench.run(), Outcome::Complete);
}

/// A counting loop makes progress and is executed continuously. A loop that reads a clock is deferred.
#[test]
fn counting_loop_is_not_deferred() {
    let mut bench = EngineBench::new(EngineClass::Copy);
    // Subtracts one from GPR0 until it is zero. ZF is copied to MI_SET_PREDICATE_RESULT, which predicates the jump.
    bench.write(BATCH, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 7, 0x600, 500, 0x604, 0, 0x608, 1, 0x60c, 0]);
    let top = BATCH + 36;
    let body = [
        &mi::math(&[
            Alu::Load(Operand::SrcA, Operand::R(0)),
            Alu::Load(Operand::SrcB, Operand::R(1)),
            Alu::Sub,
            Alu::Store(Operand::R(0), Operand::Accu),
            Alu::Store(Operand::R(2), Operand::Zf),
        ])[..],
        &mi::load_register_reg(Reg::Own(0x3b8), Reg::Own(0x610)),
        &[MI_BATCH_BUFFER_START | BATCH_PPGTT | 1 << 15 | 1, (VA + top) as u32, 0, MI_SET_PREDICATE, END],
    ]
    .concat();
    bench.write(top, &body);
    assert_eq!(bench.ring(&start(VA + BATCH)), Outcome::Complete);
    assert_eq!(bench.own(0x600), 0);

    let context = bench.context(1);
    bench.write(BATCH, &store_register(0x3a8, VA + DATA));
    bench.write(BATCH + 16, &start(VA + BATCH));
    bench.emit(context, &start(VA + BATCH));
    assert_eq!(bench.submit(context), Outcome::Spinning);
}

/// Contract E.10: a batch in NULL pages is executed in constant time and reported as spinning.
#[test]
fn null_pages_are_endless_noops() {
    let mut bench = EngineBench::new(EngineClass::Render);
    let context = bench.context(0);
    bench.emit(context, &start(NULL_VA + 0x1000));
    assert_eq!(bench.submit(context), Outcome::Spinning);
    bench.clock.advance(625);
    assert_eq!(bench.gt.read(bench.base() + 0x3a8), 12);
    // These page tables do not map addresses after 1 GiB of NULL pages.
    assert!(matches!(bench.run(), Outcome::Halted(Halt::Fault(fault)) if fault.address == 3 << 30));
}

/// A fault persists until the engine is reset, and ACTHD contains the address of the command.
#[test]
fn a_fault_halts() {
    let mut bench = EngineBench::new(EngineClass::Copy);
    let outcome = bench.batch(&store(5 << 40, 1));
    assert!(matches!(outcome, Outcome::Halted(Halt::Fault(fault)) if fault.address == 5 << 40), "{outcome:?}");
    assert_eq!(bench.engine.step(&bench.gt, 10), outcome);
    assert_eq!(u64::from(bench.own(reg::ACTHD)), VA + BATCH);
    assert!(bench.engine.reset(&bench.gt).is_some());
    assert_eq!(bench.batch(&store(VA + DATA, 1)), Outcome::Complete);
}

/// Contract G.5: the dword that delays i915's switch-out on compute engines is cleared.
#[test]
fn switch_out_hold_of_compute_engines_is_cleared() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let context = bench.context(0);
    let hold = context.pphwsp() as u32 + 0x540;
    bench.emit(context, &[0x17c6_0409, hold, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    bench.emit(context, &[MI_SEMAPHORE_WAIT | GGTT | SEMAPHORE_POLL | 4 << 12 | 2, 0, hold, 0]);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!(bench.get(u64::from(hold)), 0);
}
