// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The rows of the table "User Mode Privileged Commands" on every engine: effect and error of each command in a
//! non-privileged batch, with privilege checks enabled and disabled.

use super::*;
use crate::engine::error;
use crate::generation::XE_HPG;
use crate::interrupts::{CS_ERROR, FLUSH_COMPLETE};
use arctic_fidelity::proves;

/// Masked write to GFX_MODE that sets Privilege Check Disable.
const UNCHECKED: u32 = 0x0001_0001;
const GLOBAL: u32 = DATA as u32;
const PROCESS: u32 = (VA + DATA) as u32;
/// Address of a dword in local memory that contains 0x77.
const SOURCE: u64 = DATA + 0x100;
const STATUS_PAGE: u64 = 0x38_0000;
const INDEX: u32 = 0x240;
/// Target of a store that follows the tested command.
const BEHIND: u64 = DATA + 0x800;
/// A register that every engine can read and that is not modelled, so its reads are counted.
const TRACED: u32 = 0x2700;

/// Kind of batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Batch {
    /// Not privileged.
    User,
    /// Not privileged, but privilege checks are disabled.
    Unchecked,
    /// In the GGTT, privileged.
    Privileged,
}

struct Run {
    bench: EngineBench,
    outcome: Outcome,
    /// Events raised by the engine.
    identity: u16,
}

impl Run {
    fn new(engine: EngineId, batch: Batch, commands: &[u32], preempt: bool) -> Run {
        let mut bench = EngineBench::on(engine);
        bench.listen(Function::PF);
        bench.gt.mask_errors(engine, !error::PRIVILEGE);
        bench.put(SOURCE, 0x77);
        bench.gt.registers.set(bench.base() + reg::HWS_PGA, STATUS_PAGE as u32);
        if batch == Batch::Unchecked {
            bench.gt.write(bench.base() + reg::GFX_MODE, UNCHECKED);
        }
        let mut commands = commands.to_vec();
        commands.extend(store(if batch == Batch::Privileged { BEHIND } else { VA + BEHIND }, 1));
        commands.push(END);
        if batch == Batch::Privileged {
            let at = commands.len() - 5;
            commands[at] |= 1 << 22;
        }
        bench.write(BATCH, &commands);
        let context = bench.context(0);
        let start =
            if batch == Batch::Privileged { [MI_BATCH_BUFFER_START | 1, BATCH as u32, 0] } else { start(VA + BATCH) };
        bench.emit(context, &start);
        bench.engine.load(&bench.gt, context.load());
        if preempt {
            bench.engine.request_preemption();
        }
        let outcome = bench.run();
        let identity = bench.take_identity(Function::PF, engine).map_or(0, |(.., events)| events);
        Run { bench, outcome, identity }
    }

    fn wrote(&self, at: u64) -> bool {
        self.bench.get(at) == 0x77
    }

    fn traced(&self) -> u64 {
        self.bench.gt.registers.unmodelled().get(&TRACED).map_or(0, |touches| touches.reads)
    }

    fn own_page(&self) -> u64 {
        self.bench.context_at(0).pphwsp()
    }
}

/// A command, its effect, and the part of its effect that does not require privilege.
struct Row {
    name: &'static str,
    classes: &'static [EngineClass],
    commands: Vec<u32>,
    effect: fn(&Run) -> bool,
    partial: fn(&Run) -> bool,
}

const EVERY: &[EngineClass] = &EngineClass::BY_GUC;
const PIPELINES: &[EngineClass] = &[EngineClass::Render, EngineClass::Compute];
const WITH_FLUSH: &[EngineClass] =
    &[EngineClass::Copy, EngineClass::VideoDecode, EngineClass::VideoEnhance, EngineClass::Compute];
const WITH_FLIP: &[EngineClass] = &[EngineClass::Render, EngineClass::Copy];

fn row(name: &'static str, commands: &[u32], effect: fn(&Run) -> bool) -> Row {
    Row { name, classes: EVERY, commands: commands.to_vec(), effect, partial: |_| true }
}

impl Row {
    fn on(self, classes: &'static [EngineClass]) -> Row {
        Row { classes, ..self }
    }

    fn doing(self, partial: fn(&Run) -> bool) -> Row {
        Row { partial, ..self }
    }
}

fn flush(flags: u32, low: u32) -> [u32; 4] {
    [MI_FLUSH_DW | FLUSH_WRITE | FLUSH_NOTIFY | 2 | flags, low, 0, 0x77]
}

fn pipe(flags: u32, low: u32) -> [u32; 6] {
    [PIPE_CONTROL | 4, 0x4100 | flags, low, 0, 0x77, 0]
}

/// Returns the rows in the order of the PRM, without MI_BATCH_BUFFER_START and MI_ARB_ON_OFF, which affect later
/// commands.
fn rows() -> Vec<Row> {
    let data = |run: &Run| run.wrote(DATA);
    let notified = |run: &Run| run.identity & FLUSH_COMPLETE != 0;
    vec![
        row("MI_UPDATE_GTT", &[MI_UPDATE_GTT | 2, 0x30_0000, 0x31_0003, 0], |run| {
            run.bench.gt.memory.ggtt().entry(0x300).into_bits() == 0x31_0003
        }),
        row("MI_STORE_DATA_IMM, global", &[MI_STORE_DATA_IMM | GGTT | 2, GLOBAL, 0, 0x77], data),
        row("MI_STORE_DATA_INDEX, own page", &[MI_STORE_DATA_INDEX | PER_PROCESS_PAGE | 1, INDEX, 0x77], |run| {
            run.wrote(run.own_page() + u64::from(INDEX))
        }),
        row("MI_STORE_DATA_INDEX, global page", &[MI_STORE_DATA_INDEX | 1, INDEX, 0x77], |run| {
            run.wrote(STATUS_PAGE + u64::from(INDEX))
        }),
        // The register is always read (trap T6).
        row("MI_STORE_REGISTER_MEM, global", &[0x1240_0002, TRACED, GLOBAL + 0x100, 0], |run| !run.wrote(SOURCE))
            .doing(|run| run.traced() == 1),
        // One register outside the whitelist turns the whole command into a MI_NOOP (trap T35).
        row("MI_LOAD_REGISTER_IMM", &[0x1108_0005, 0x600, 0x77, 0x98, 0x77, 0x608, 0x77], |run| {
            [0x600, 0x98, 0x608].map(|register| run.bench.own(register)) != [0, u32::MAX, 0]
        }),
        row("MI_LOAD_REGISTER_MEM, global", &[0x14c8_0002, 0x600, GLOBAL + 0x100, 0], |run| {
            run.bench.own(0x600) == 0x77
        }),
        row("MI_LOAD_REGISTER_MEM, privileged register", &[0x1488_0002, 0x98, PROCESS + 0x100, 0], |run| {
            run.bench.own(0x98) == 0x77
        }),
        // Only the write is dropped.
        row("MI_LOAD_REGISTER_REG", &[0x1508_0001, TRACED, 0x98], |run| run.bench.own(0x98) != u32::MAX)
            .doing(|run| run.traced() == 1),
        row("MI_REPORT_PERF_COUNT, global", &[MI_REPORT_PERF_COUNT | 2, GLOBAL | 1, 0, 0x77], data).on(PIPELINES),
        // Flush and notification are always executed, but the post-sync operation requires privilege (trap T6).
        row("PIPE_CONTROL, global", &pipe(1 << 24, GLOBAL), data).on(PIPELINES).doing(notified),
        row("PIPE_CONTROL, own page", &pipe(1 << 21, INDEX), |run| run.wrote(run.own_page() + u64::from(INDEX)))
            .on(PIPELINES)
            .doing(notified),
        row("PIPE_CONTROL, global page", &pipe(1 << 21 | 1 << 24, INDEX), |run| {
            run.wrote(STATUS_PAGE + u64::from(INDEX))
        })
        .on(PIPELINES)
        .doing(notified),
        row("PIPE_CONTROL, privileged register", &pipe(1 << 23, 0x2098), |run| {
            run.bench.gt.registers.value(0x2098) == 0x77
        })
        .on(PIPELINES)
        .doing(notified),
        row("MI_ATOMIC, global", &[0x17c4_0409, GLOBAL, 0, 0x77, 0, 0, 0, 0, 0, 0, 0], data),
        row("MI_COPY_MEM_MEM, source global", &[MI_COPY_MEM_MEM | GGTT | 3, PROCESS, 0, GLOBAL + 0x100, 0], data),
        row("MI_COPY_MEM_MEM, destination global", &[0x1720_0003, GLOBAL, 0, PROCESS + 0x100, 0], data),
        row("MI_COPY_MEM_MEM, both global", &[0x1760_0003, GLOBAL, 0, GLOBAL + 0x100, 0], data),
        row("MI_SEMAPHORE_WAIT, global", &[0x0e40_c003, 1, GLOBAL, 0, 0], |run| run.outcome == Outcome::Waiting),
        row("MI_DISPLAY_FLIP", &[0x0a00_0001, 0, 0], |run| {
            // Without a display, the command is illegal or skipped and counted.
            run.outcome != Outcome::Complete || !run.bench.engine.counters().skipped.by_name().is_empty()
        })
        .on(WITH_FLIP),
        row("MI_CONDITIONAL_BATCH_BUFFER_END, global", &[0x1b60_0002, 0, GLOBAL, 0], |run| run.bench.get(BEHIND) == 0),
        row("MI_FLUSH_DW, global", &flush(0, GLOBAL | 4), data).on(WITH_FLUSH).doing(notified),
        row("MI_FLUSH_DW, own page", &flush(1 << 21, INDEX), |run| run.wrote(run.own_page() + u64::from(INDEX)))
            .on(WITH_FLUSH)
            .doing(notified),
        row("MI_FLUSH_DW, global page", &flush(1 << 21, INDEX | 4), |run| run.wrote(STATUS_PAGE + u64::from(INDEX)))
            .on(WITH_FLUSH)
            .doing(notified),
    ]
}

fn check(row: &Row, engine: EngineId, batch: Batch) {
    // For a GGTT batch, PPGTT operands are converted to the corresponding GGTT addresses.
    let move_home = |word: &u32| if (PROCESS..PROCESS + 0x200).contains(word) { word - VA as u32 } else { *word };
    let commands: Vec<u32> = match batch {
        Batch::Privileged if row.name.contains("_MEM") && row.classes.len() == EVERY.len() => {
            let mut commands: Vec<u32> = row.commands.iter().map(move_home).collect();
            commands[0] |= if row.name.starts_with("MI_COPY") { 3 << 21 } else { 1 << 22 };
            commands
        }
        _ => row.commands.clone(),
    };
    let run = Run::new(engine, batch, &commands, false);
    let case = format!("{} on {}, {batch:?}: {:?}", row.name, XE_HPG.engines.info(engine).name, run.outcome);
    let violates = batch == Batch::User;
    assert_eq!((row.effect)(&run), !violates, "{case}");
    let errors = [reg::ESR, reg::EIR].map(|register| run.bench.own(register) & error::PRIVILEGE != 0);
    assert_eq!((errors, run.identity & CS_ERROR != 0), ([violates; 2], violates), "{case}");
    if violates {
        assert_eq!((run.outcome, run.bench.get(BEHIND)), (Outcome::Complete, 1), "{case}: parsing continues");
    }
    if run.outcome == Outcome::Complete {
        assert!((row.partial)(&run), "{case}: effect that does not require privilege");
    }
}

#[test]
fn each_command_on_each_engine() {
    proves!(
        [
            V8_170, V8_171, V8_116, V8_120, V8_122, V8_123, V8_124, V8_125, V8_126, V8_127, V8_129, V8_130, V8_131,
            V8_132, V8_133, V8_135, V8_137
        ],
        "tests each row on each engine. In a non-privileged batch the command has no effect except the row's \
        partial effect, EIR and the error event are set, and parsing continues. In a privileged batch, and in any \
        batch with privilege checks disabled, the command has its effect and raises no error. Covers the \
        requirements of V8-116, V8-120, V8-122, V8-123, V8-124, V8-125, V8-126, V8-127, V8-129, V8-130, V8-131, \
        V8-132, V8-133, V8-135 and V8-137 for non-privileged batches (traps T6, T35)"
    );
    for row in rows() {
        for engine in XE_HPG.engines.all().filter(|engine| row.classes.contains(&XE_HPG.engines.info(*engine).class)) {
            for batch in [Batch::User, Batch::Unchecked, Batch::Privileged] {
                check(&row, engine, batch);
            }
        }
    }
}

#[test]
fn arbitration_stays_on() {
    proves!(
        [V8_111, V8_170, V8_171],
        "MI_ARB_ON_OFF, which disables preemption, is a MI_NOOP in a non-privileged batch and raises an error, \
        unless privilege checks are disabled"
    );
    for engine in XE_HPG.engines.all() {
        for (batch, outcome, errors) in [
            (Batch::User, Outcome::Preempted, error::PRIVILEGE),
            (Batch::Unchecked, Outcome::Complete, 0),
            (Batch::Privileged, Outcome::Complete, 0),
        ] {
            let run = Run::new(engine, batch, &[MI_ARB_ON_OFF, ARB_CHECK], true);
            assert_eq!(
                (run.outcome, run.bench.own(reg::EIR)),
                (outcome, errors),
                "{} {batch:?}",
                XE_HPG.engines.info(engine).name
            );
        }
    }
}

#[test]
fn children_are_clamped() {
    proves!(
        [V8_134, V8_171],
        "a child batch has at most its parent's privilege. A GGTT batch started from a non-privileged batch, \
        chained or nested, runs in the PPGTT and is not privileged (trap T5)"
    );
    let child = BATCH + 0x1000;
    for engine in XE_HPG.engines.all() {
        for nested in [0, 1 << 22] {
            for batch in [Batch::User, Batch::Unchecked, Batch::Privileged] {
                let mut bench = EngineBench::on(engine);
                bench.gt.mask_errors(engine, !error::PRIVILEGE);
                bench.write(child, &[MI_STORE_DATA_IMM | GGTT | 2, GLOBAL, 0, 0x77, END]);
                if batch == Batch::Unchecked {
                    bench.gt.write(bench.base() + reg::GFX_MODE, UNCHECKED);
                }
                // A clamped batch is fetched from the PPGTT.
                let at = child + if batch == Batch::User { VA } else { 0 };
                bench.write(BATCH, &[MI_BATCH_BUFFER_START | 1 | nested, at as u32, (at >> 32) as u32, END]);
                let start = if batch == Batch::Privileged { [0x1880_0001, BATCH as u32, 0] } else { start(VA + BATCH) };
                assert_eq!(bench.ring(&start), Outcome::Complete, "{} {batch:?}", XE_HPG.engines.info(engine).name);
                assert_eq!(
                    bench.get(DATA) == 0x77,
                    batch != Batch::User,
                    "{} {batch:?}",
                    XE_HPG.engines.info(engine).name
                );
                let errors = if batch == Batch::User { error::PRIVILEGE } else { 0 };
                assert_eq!(bench.own(reg::EIR), errors);
            }
        }
    }
}

#[test]
fn vf_batch_without_checks_has_the_rights_of_the_vf_ring() {
    proves!([V8_170, V13_080], "with privilege checks disabled a VF's batch has exactly the rights of the VF's ring");
    let mut bench = EngineBench::of_vf(EngineClass::Copy, 4);
    bench.gt.write(bench.base() + reg::GFX_MODE, UNCHECKED);
    bench.put(DATA, 0);
    let hwstam = bench.own(reg::HWSTAM);
    let update = [MI_UPDATE_GTT | 2, 0x30_0000, 0x31_0003, 0];
    let commands = [&[0x1040_0002, GLOBAL, 0, 0x77][..], &update, &[0x1108_0001, 0x98, 0x77]].concat();
    assert_eq!(bench.batch(&commands), Outcome::Complete);
    assert_eq!((bench.get(DATA), bench.own(reg::HWSTAM)), (0x77, hwstam));
    assert_ne!(bench.gt.memory.ggtt().entry(0x300).into_bits(), 0x31_0003);
}
