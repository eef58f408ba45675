// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of V13, group D, in rings, privileged batches and non-privileged batches of the PF and of a VF.

use super::*;
use crate::command::Requester;
use crate::command::mi::{self, COMMANDS};
use crate::interrupts::USER_INTERRUPT;
use crate::registers::InterruptRegister;
use arctic_fidelity::proves;

/// Location of the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Ring,
    /// A batch in the GGTT.
    Privileged,
    /// A batch in the PPGTT.
    User,
}

/// State after running the commands.
struct Run {
    bench: EngineBench,
    outcome: Outcome,
}

impl Run {
    fn refused(&self) -> u64 {
        let counters = self.bench.engine.counters();
        counters.privilege_violations + counters.virtual_refusals + counters.register_refusals
    }

    fn wrote(&self, at: u64) -> bool {
        self.bench.get(at) == 0x77
    }
}

/// A row of the table: engine class, commands, check for their effect, and the requesters for which the effect is
/// expected. The requesters are the PF's ring and privileged batches, non-privileged batches of both functions, and a
/// VF's ring and privileged batches.
struct Row {
    name: &'static str,
    class: EngineClass,
    commands: Vec<u32>,
    effect: fn(&Run) -> bool,
    seen: [bool; 3],
}

fn row(name: &'static str, class: EngineClass, commands: &[u32], effect: fn(&Run) -> bool, seen: [bool; 3]) -> Row {
    Row { name, class, commands: commands.to_vec(), effect, seen }
}

const GLOBAL: u32 = DATA as u32;
const PROCESS: u32 = (VA + DATA) as u32;
/// Address of a dword that contains 0x77, the source of copies.
const SOURCE: u64 = DATA + 0x100;
/// Address of the engine's global status page, and offset used by index writes.
const STATUS_PAGE: u64 = 0x38_0000;
const INDEX: u32 = 0x240;
/// Target of a store that follows the commands.
const BEHIND: u64 = DATA + 0x800;

const KERNELS: [bool; 3] = [true, false, true];
const PF_ONLY: [bool; 3] = [true, false, false];
const ALL: [bool; 3] = [true; 3];

/// Returns MI_BATCH_BUFFER_START of the batch in its address space.
fn start_at(place: Place) -> [u32; 3] {
    if place == Place::User { start(VA + BATCH) } else { [MI_BATCH_BUFFER_START | 1, BATCH as u32, 0] }
}

fn run(row: &Row, function: Function, place: Place, preempt: bool) -> Run {
    let mut bench = EngineBench::new(row.class);
    bench.give(function);
    bench.put(SOURCE, 0x77);
    bench.gt.registers.set(bench.base() + reg::HWS_PGA, STATUS_PAGE as u32);
    bench.gt.registers.set(bench.base() + 0x98, u32::MAX);
    let tree = bench.gt.interrupts_of(function);
    for offset in [0x19_0030, 0x19_0034, 0x19_0048] {
        tree.write(InterruptRegister::Enable, offset, 0, u32::MAX);
    }
    tree.write(InterruptRegister::MasterTile, 0x19_0008, 0, 1 << 31);
    let context = bench.context(0);
    let mut commands = row.commands.clone();
    commands.extend(store(VA + BEHIND, 0x77));
    match place {
        Place::Ring => bench.emit(context, &commands),
        Place::Privileged | Place::User => {
            bench.write(BATCH, &commands);
            bench.put(BATCH + 4 * commands.len() as u64, END);
            bench.emit(context, &start_at(place));
        }
    }
    bench.engine.load(&bench.gt, Load { function, ..context.load() });
    if preempt {
        bench.engine.request_preemption();
    }
    let outcome = bench.run();
    Run { bench, outcome }
}

fn check(rows: &[Row], preempt: bool) {
    for row in rows {
        for function in [Function::PF, Function::new(5).unwrap()] {
            for place in [Place::Ring, Place::Privileged, Place::User] {
                let column = match (place, function.is_vf()) {
                    (Place::User, _) => 1,
                    (_, false) => 0,
                    (_, true) => 2,
                };
                let run = run(row, function, place, preempt);
                let case = format!("{}: {function:?} {place:?}: {:?}", row.name, run.outcome);
                assert_eq!((row.effect)(&run), row.seen[column], "{case}");
                if matches!(run.outcome, Outcome::Complete) {
                    assert!(run.wrote(BEHIND), "{case}: subsequent commands are executed (V13-046)");
                }
                if !row.seen[column] {
                    assert_eq!(run.outcome, Outcome::Complete, "{case}: a denied command is a MI_NOOP (V13-046)");
                }
            }
        }
    }
}

/// Returns MI_FLUSH_DW with a post-sync write of a dword.
fn flush(flags: u32, low: u32) -> [u32; 4] {
    [MI_FLUSH_DW | FLUSH_WRITE | 2 | flags, low, 0, 0x77]
}

/// Returns PIPE_CONTROL with a post-sync write of a qword.
fn pipe(flags: u32, low: u32) -> [u32; 6] {
    [PIPE_CONTROL | 4, 0x4000 | flags, low, 0, 0x77, 0]
}

#[test]
fn commands_that_write() {
    proves!(
        [
            V13_044, V13_046, V13_047, V13_048, V13_055, V13_056, V13_057, V13_059, V13_062, V13_065, V13_066, V13_069,
            V13_070, V13_076
        ],
        "commands of all engines that write memory, registers or the GGTT"
    );
    use EngineClass::{Copy, VideoDecode};
    let data = |run: &Run| run.wrote(DATA);
    let own_page = |run: &Run| run.wrote(run.bench.context_at(0).pphwsp() + u64::from(INDEX));
    let global_page = |run: &Run| run.wrote(STATUS_PAGE + u64::from(INDEX));
    let entry = |run: &Run| run.bench.gt.memory.ggtt().entry(0x300).into_bits() == 0x31_0003;
    check(
        &[
            row("MI_UPDATE_GTT", Copy, &[MI_UPDATE_GTT | 2, 0x30_0000, 0x31_0003, 0], entry, PF_ONLY),
            row("MI_STORE_DATA_INDEX, own page", Copy, &[0x10a0_0001, INDEX, 0x77], own_page, KERNELS),
            row("MI_STORE_DATA_INDEX, global page", Copy, &[0x1080_0001, INDEX, 0x77], global_page, PF_ONLY),
            row(
                "MI_STORE_REGISTER_MEM, global",
                Copy,
                &[0x1108_0001, 0x600, 0x77, 0x1248_0002, 0x600, GLOBAL, 0],
                data,
                KERNELS,
            ),
            row("MI_STORE_REGISTER_MEM", Copy, &[0x1108_0001, 0x600, 0x77, 0x1208_0002, 0x600, PROCESS, 0], data, ALL),
            row("MI_STORE_DATA_IMM, global", Copy, &[MI_STORE_DATA_IMM | GGTT | 2, GLOBAL, 0, 0x77], data, KERNELS),
            row("MI_STORE_DATA_IMM", Copy, &[MI_STORE_DATA_IMM | 2, PROCESS, 0, 0x77], data, ALL),
            row("MI_FLUSH_DW, global", VideoDecode, &flush(0, GLOBAL | 4), data, KERNELS),
            row("MI_FLUSH_DW", VideoDecode, &flush(0, PROCESS), data, ALL),
            row("MI_FLUSH_DW, own page", VideoDecode, &flush(1 << 21, INDEX), own_page, KERNELS),
            row("MI_FLUSH_DW, global page", VideoDecode, &flush(1 << 21, INDEX | 4), global_page, PF_ONLY),
            row("MI_ATOMIC, global", Copy, &[0x17c4_0409, GLOBAL, 0, 0x77, 0, 0, 0, 0, 0, 0, 0], data, KERNELS),
            row("MI_ATOMIC", Copy, &[0x1784_0409, PROCESS, 0, 0x77, 0, 0, 0, 0, 0, 0, 0], data, ALL),
            row("MI_COPY_MEM_MEM, source global", Copy, &[0x1740_0003, PROCESS, 0, SOURCE as u32, 0], data, KERNELS),
            row(
                "MI_COPY_MEM_MEM, destination global",
                Copy,
                &[MI_COPY_MEM_MEM | DESTINATION_GGTT | 3, GLOBAL, 0, PROCESS + 0x100, 0],
                data,
                KERNELS,
            ),
            row("MI_COPY_MEM_MEM", Copy, &[MI_COPY_MEM_MEM | 3, PROCESS, 0, PROCESS + 0x100, 0], data, ALL),
            row("MI_NOOP with an identification", Copy, &[0x0040_0077, 0x1208_0002, 0x94, PROCESS, 0], data, ALL),
            row(
                "MI_REPORT_HEAD",
                Copy,
                &[MI_REPORT_HEAD],
                |run| run.bench.get(run.bench.context_at(0).pphwsp() + 16) != 0,
                KERNELS,
            ),
        ],
        false,
    );
}

#[test]
fn a_virtual_function_does_not_reach_foreign_pages() {
    proves!(
        V13_047,
        "a VF's ring writes to the VF's own GGTT pages. A write to a page of the PF or of another VF changes nothing \
        and halts the context"
    );
    let row =
        row("", EngineClass::Copy, &[MI_STORE_DATA_IMM | GGTT | 2, GLOBAL, 0, 0x77], |run| run.wrote(DATA), KERNELS);
    assert!(run(&row, Function::new(5).unwrap(), Place::Ring, false).wrote(DATA));
    for owner in [Function::PF, Function::new(6).unwrap()] {
        let mut bench = EngineBench::of_vf(row.class, 5);
        let page = DATA >> 12;
        bench.gt.memory.ggtt().set_entry(page, GgttEntry::from(page << 12 | u64::from(owner.number()) << 2 | 3));
        bench.put(DATA, 1);
        let outcome = bench.ring(&row.commands);
        assert!(matches!(outcome, Outcome::Halted(Halt::Fault(_))), "{owner:?}: {outcome:?}");
        assert_eq!(bench.get(DATA), 1, "{owner:?}");
    }
}

#[test]
fn commands_of_render_and_compute() {
    proves!(
        [V13_060, V13_072],
        "a denied PIPE_CONTROL is executed in part. Performance reports of a VF can be written only to its PPGTT \
        (traps 6 and 9)"
    );
    use EngineClass::{Compute, Render};
    let data = |run: &Run| run.wrote(DATA);
    let own_page = |run: &Run| run.wrote(run.bench.context_at(0).pphwsp() + u64::from(INDEX));
    let global_page = |run: &Run| run.wrote(STATUS_PAGE + u64::from(INDEX));
    let mut rows = Vec::new();
    for class in [Render, Compute] {
        rows.extend([
            row("PIPE_CONTROL, global", class, &pipe(1 << 24, GLOBAL), data, KERNELS),
            row("PIPE_CONTROL", class, &pipe(0, PROCESS), data, ALL),
            row("PIPE_CONTROL, own page", class, &pipe(1 << 21, INDEX), own_page, KERNELS),
            row("PIPE_CONTROL, global page", class, &pipe(1 << 21 | 1 << 24, INDEX), global_page, PF_ONLY),
            row("MI_REPORT_PERF_COUNT, global", class, &[MI_REPORT_PERF_COUNT | 2, GLOBAL | 1, 0, 0x77], data, PF_ONLY),
            row("MI_REPORT_PERF_COUNT", class, &[MI_REPORT_PERF_COUNT | 2, PROCESS, 0, 0x77], data, ALL),
        ]);
    }
    // The register of a post-sync write is checked like a register of MI_LOAD_REGISTER_IMM. HWSTAM belongs to the PF.
    let hwstam = |run: &Run| run.bench.own(0x98) == 0x77;
    rows.push(row("PIPE_CONTROL, register", Render, &pipe(1 << 23, 0x2098), hwstam, PF_ONLY));
    check(&rows, false);
}

#[test]
fn commands_without_effect() {
    proves!(
        [V13_049, V13_050, V13_051, V13_061, V13_073],
        "display commands, as the card has no display, and other commands without effect. Denied commands are \
        counted (trap 6)"
    );
    use EngineClass::{Copy, Render};
    let accepted = |run: &Run| run.outcome == Outcome::Complete && run.refused() == 0;
    let not_for_vfs = [true, true, false];
    let mut rows = Vec::new();
    for class in [Render, Copy] {
        rows.extend([
            row("MI_LOAD_SCAN_LINES_INCL", class, &[0x0900_0000, 0], accepted, not_for_vfs),
            row("MI_LOAD_SCAN_LINES_EXCL", class, &[0x0980_0000, 0], accepted, not_for_vfs),
            row("MI_WAIT_FOR_EVENT", class, &[MI_WAIT_FOR_EVENT | 8], accepted, not_for_vfs),
            row("MI_WAIT_FOR_EVENT_2", class, &[0x0200_0008], accepted, not_for_vfs),
            row("MI_DISPLAY_FLIP", class, &[0x0a00_0001, 0, 0], accepted, PF_ONLY),
        ]);
    }
    rows.push(row("MI_CLFLUSH", Render, &[MI_CLFLUSH | 1, PROCESS, 0], accepted, ALL));
    rows.push(row("MI_SET_CONTEXT", Render, &[MI_SET_CONTEXT, 0], accepted, KERNELS));
    rows.push(row("MI_SEMAPHORE_SIGNAL, global", Copy, &[MI_SEMAPHORE_SIGNAL | GGTT, 0], accepted, KERNELS));
    check(&rows, false);
}

#[test]
fn commands_that_the_streamer_does_not_have() {
    proves!(
        [V13_058, V13_059, V13_071],
        "commands of older or other streamers are illegal for all requesters. Commands of media pipelines are \
        skipped and do not write a status"
    );
    use EngineClass::{Copy, VideoDecode};
    let halted = |run: &Run| matches!(run.outcome, Outcome::Halted(Halt::IllegalCommand { .. }));
    let skipped = |run: &Run| run.bench.get(DATA) == 0 && run.bench.engine.counters().skipped.by_name().len() == 1;
    check(
        &[
            row("MI_RS_STORE_DATA_IMM", Copy, &[0x1580_0002, PROCESS, 0, 0x77], halted, ALL),
            row("MI_SEMAPHORE_MBOX", Copy, &[0x0b00_0001, 0, 0], halted, ALL),
            row("CRYPTO_INLINE_STATUS_READ", VideoDecode, &[0x7409_0002, GLOBAL, 0, 0], skipped, ALL),
        ],
        false,
    );
}

#[test]
fn semaphores_and_interrupts() {
    proves!(V13_059, "a GGTT semaphore wait is executed if permitted");
    proves!([V13_068, V13_060], "interrupts are delivered to the context's function");
    use EngineClass::{Copy, Render};
    let waits = |run: &Run| run.outcome == Outcome::Waiting;
    let own_msi = |run: &Run| {
        let function = run.bench.function;
        run.bench.msis.take() == [function]
            && run.bench.gt.interrupts_of(function).read(InterruptRegister::MasterTile, 0) & 1 != 0
    };
    check(
        &[
            row("MI_SEMAPHORE_WAIT, global", Copy, &[0x0e40_c003, 1, GLOBAL, 0, 0], waits, KERNELS),
            row("MI_SEMAPHORE_WAIT", Copy, &[0x0e00_c003, 1, PROCESS, 0, 0], waits, ALL),
            row("MI_USER_INTERRUPT", Copy, &[MI_USER_INTERRUPT], own_msi, ALL),
            row("MI_FLUSH_DW, notify", Copy, &[MI_FLUSH_DW | FLUSH_NOTIFY | 2, 0, 0, 0], own_msi, ALL),
            row("PIPE_CONTROL, notify", Render, &[PIPE_CONTROL | 4, 0x100, 0, 0, 0, 0], own_msi, ALL),
            // The post-sync write is dropped, but the flush and its notification are executed (trap 9).
            row(
                "PIPE_CONTROL, notify and a write that is not permitted",
                Render,
                &[PIPE_CONTROL | 4, 0x0120_4100, INDEX, 0, 0x77, 0],
                own_msi,
                ALL,
            ),
        ],
        false,
    );
}

#[test]
fn conditional_ends() {
    proves!(
        V13_067,
        "MI_CONDITIONAL_BATCH_BUFFER_END on GGTT memory ends privileged batches but not non-privileged batches"
    );
    let ends = |commands: &[u32], function, place| {
        let row = row("MI_CONDITIONAL_BATCH_BUFFER_END", EngineClass::Copy, commands, |_| true, ALL);
        let run = run(&row, function, place, false);
        assert_eq!(run.outcome, Outcome::Complete);
        !run.wrote(BEHIND)
    };
    for function in [Function::PF, Function::new(63).unwrap()] {
        for (place, global) in [(Place::Privileged, true), (Place::User, false)] {
            assert_eq!(ends(&[0x1b60_0002, 0, GLOBAL, 0], function, place), global, "{function:?} {place:?}");
            assert!(ends(&[0x1b20_0002, 0, PROCESS, 0], function, place), "{function:?} {place:?}");
        }
    }
}

#[test]
fn arbitration() {
    proves!(
        [V13_063, V13_064],
        "all requesters can be preempted at MI_ARB_CHECK. Only the PF's driver can disable preemption, otherwise a \
        VF could block an engine"
    );
    let stays = |run: &Run| run.outcome == Outcome::Complete;
    let leaves = |run: &Run| run.outcome == Outcome::Preempted;
    let seen = |commands: &[u32], effect: fn(&Run) -> bool, function, place| {
        effect(&run(&row("", EngineClass::Copy, commands, effect, ALL), function, place, true))
    };
    for function in [Function::PF, Function::new(1).unwrap()] {
        for place in [Place::Ring, Place::Privileged, Place::User] {
            assert!(seen(&[ARB_CHECK], leaves, function, place), "{function:?} {place:?}");
            let permitted = function == Function::PF && place != Place::User;
            assert_eq!(seen(&[MI_ARB_ON_OFF, ARB_CHECK], stays, function, place), permitted, "{function:?} {place:?}");
        }
    }
}

#[test]
fn child_batch_has_at_most_the_privilege_of_its_parent() {
    proves!(
        [V13_045, V13_066],
        "a child batch has at most its parent's privilege, for both functions. A VF's batch never has more rights \
        than the VF"
    );
    let child = BATCH + 0x1000;
    for (function, nested) in [
        (Function::PF, false),
        (Function::PF, true),
        (Function::new(9).unwrap(), false),
        (Function::new(9).unwrap(), true),
    ] {
        for (place, written) in [(Place::Ring, true), (Place::Privileged, true), (Place::User, false)] {
            let header = if nested { 0x18c0_0001 } else { 0x1880_0001 };
            let address = if place == Place::User { VA + child } else { child } as u32;
            let mut bench = EngineBench::new(EngineClass::Copy);
            bench.give(function);
            bench.write(child, &[0x1040_0002, GLOBAL, 0, 0x77, 0x1180_0002, 0x30_0000, 0x31_0003, 0, END]);
            let context = bench.context(0);
            match place {
                Place::Ring => bench.emit(context, &[header, address, 0]),
                _ => {
                    bench.write(BATCH, &[header, address, 0, END]);
                    bench.emit(context, &start_at(place));
                }
            }
            assert_eq!(bench.submit(context), Outcome::Complete);
            assert_eq!(bench.get(DATA) == 0x77, written, "{function:?} {place:?} nested {nested}");
            let changed = bench.gt.memory.ggtt().entry(0x300).into_bits() == 0x31_0003;
            assert_eq!(changed, written && !function.is_vf(), "{function:?} {place:?} nested {nested}");
        }
    }
}

#[test]
fn context_switches_write_no_status_page() {
    proves!(
        V13_074,
        "context switches of a VF do not write the global status page, nor do context switches of the PF that are \
        submitted by the GuC (trap 10)"
    );
    proves!(
        V13_257,
        "in the model in which the GuC schedules, the host is told of no context switch, and still of the other events"
    );
    for function in [Function::PF, Function::new(2).unwrap()] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        bench.give(function);
        bench.gt.registers.set(bench.base() + reg::HWS_PGA, STATUS_PAGE as u32);
        (0..1024).for_each(|n| bench.put(STATUS_PAGE + 4 * n, 0x5a5a_5a5a));
        for number in 0..2 {
            let context = bench.context(number);
            bench.emit(context, &[MI_USER_INTERRUPT, 0]);
            bench.listen(function);
            assert_eq!(bench.submit(context), Outcome::Complete);
            assert_eq!(bench.take_identity(function, bench.engine.id()), Some((3, 0, USER_INTERRUPT)));
        }
        assert!((0..1024).all(|n| bench.get(STATUS_PAGE + 4 * n) == 0x5a5a_5a5a));
    }
}

#[test]
fn only_the_pf_writes_hwstam() {
    proves!(V13_075, "only the PF's driver can unmask HWSTAM");
    let commands = [MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x98, 0, MI_USER_INTERRUPT];
    let unmasked = |run: &Run| run.bench.own(0x98) == 0;
    check(&[row("MI_LOAD_REGISTER_IMM of HWSTAM", EngineClass::Copy, &commands, unmasked, PF_ONLY)], false);
}

/// No rule denies a command that passes the parser's fast check. The PF's ring is denied no command, so a VF's ring has
/// no additional rights.
#[test]
fn fast_check_passes_no_denied_command() {
    for command in COMMANDS {
        for bits in (0..29).map(|bit| 1u32 << bit).chain([0, 0x1fff_ffff, 0x0060_0000]) {
            let header = u32::from(command.opcode) << 23 | bits & 0x7f_ffff;
            assert!(matches!(mi::lookup(&mi::BY_OPCODE, header), Some(found) if found.opcode == command.opcode));
            let forbidden = Requester::ALL.map(|requester| command.rule(requester).forbids(header));
            assert!(command.may_be_restricted(header) || forbidden == [false; 4], "{} {header:#x}", command.name);
            assert_eq!(forbidden[0], forbidden[1], "user rules differ between functions");
            assert!(!forbidden[3], "{}: every command is permitted for the PF's driver", command.name);
        }
    }
}
