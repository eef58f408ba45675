// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Exceptions and the system routine, with kernels that do what those of IGT's `xe_exec_sip` do.

use super::kernels::*;
use super::*;
use crate::memory::FaultReason;
use crate::profile::Unmodelled;

/// Rows of 16 dwords at [`DATA`]: one for each thread, then one for its system routine.
const THREADS: u64 = 512;
const ROW: u64 = 64;
/// The surface state of the rows and the binding table, both relative to this address.
const STATES: u64 = DATA + 0x3_0000;
/// The system routine: before the kernel, at any multiple of 16.
const ROUTINE: u64 = KERNELS - 0xff0;

/// What memory has before, and what kernel and system routine store.
const BEFORE: u32 = 0xc4c4_c4c4;
const CANARY: u32 = 0x0101_0101;
const CANARY2: u32 = 0x0202_0202;
const ROUTINE_CANARY: u32 = 0x0303_0303;
const ROUTINE_CANARY2: u32 = 0x0404_0404;

/// cr0.1.
const ILLEGAL_ENABLE: u32 = 1 << 12;
const ILLEGAL: u32 = 1 << 28;

/// The header of a media block of one dword at column `x` of the thread's row and `rows`, and the dword.
fn header(value: u32, x: u32, rows: u64) -> String {
    format!(
        "
(W)     mov (1|M0) r5.0<1>:ud {value:#x}:ud
(W)     mov (8|M0) r4.0<1>:ud 0x0:ud
(W)     shl (1|M0) r4.0<1>:ud r0.1<0;1,0>:ud 0x2:ud
(W)     add (1|M0) r4.0<1>:ud r4.0<0;1,0>:ud {:#x}:ud
(W)     add (1|M0) r4.1<1>:ud r0.6<0;1,0>:ud {rows:#x}:ud
(W)     mov (1|M0) r4.2<1>:ud 0x3:ud
(W)     mov (1|M0) r4.4<1>:ud r0.5<0;1,0>:ud
",
        4 * x
    )
}

/// Stores a dword in the first column.
fn store_dword(value: u32, rows: u64) -> String {
    format!("{}(W) send.dc1 (1|M0) null r4 null:0 0x0 0x040A8000\n", header(value, 0, rows))
}

/// Stores a dword in column `x` if the bits of cr0.1 that `mask` selects are `expected`.
fn store_if(value: u32, x: u32, rows: u64, mask: u32, expected: u32) -> String {
    format!(
        "{}
(W)     and (1|M0) r3.0<1>:ud cr0.1<0;1,0>:ud {mask:#x}:ud
(W)     mov (1|M0) f0.0<1>:ud 0x0:ud
(W)     cmp (1|M0) (eq)f0.0 null<1>:ud r3.0<0;1,0>:ud {expected:#x}:ud
(W&f0.0) send.dc1 (1|M0) null r4 null:0 0x0 0x040A8000
",
        header(value, x, rows)
    )
}

/// Clears all exceptions and leaves the system routine.
const LEAVE: &str = "
(W)     and (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud 0x47FFFFF:ud
(W)     and (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x7FFFFFFD:ud
";
/// Passes over the instruction that has raised the exception.
const PASS: &str = "(W) add (1|M0) cr0.2<1>:ud cr0.2<0;1,0>:ud 0x10:ud\n";
const ENABLE: &str = "(W) or (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud 0x1000:ud\n";
const ILLEGALS: [&str; 2] = ["illegal\n", ".inst 0x0000007f 0 0 0\n"];

/// What enables the exception of illegal opcodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enable {
    No,
    Thread,
    Walker,
}

/// The kernel: it stores that it runs, whether the exception is enabled as it should be, and afterwards, over that, whether
/// the routine has left it pending.
fn illegal_kernel(enable: Enable, illegal: &str) -> String {
    let expected = if enable == Enable::No { 0 } else { ILLEGAL_ENABLE };
    [
        store_dword(CANARY, 0).as_str(),
        if enable == Enable::Thread { ENABLE } else { "" },
        &store_if(CANARY2, 1, 0, ILLEGAL_ENABLE, expected),
        illegal,
        &store_if(CANARY2, 0, 0, ILLEGAL, ILLEGAL),
    ]
    .concat()
}

/// The routine: it stores that it runs, and over that whether no exception is pending.
fn routine() -> String {
    let pending = store_if(ROUTINE_CANARY2, 0, THREADS, ILLEGAL, 0);
    [store_dword(ROUTINE_CANARY, THREADS).as_str(), &pending, PASS, LEAVE].concat()
}

/// STATE_SIP.
fn state_sip(offset: u64) -> [u32; 3] {
    [0x6102_0001, offset as u32, (offset >> 32) as u32]
}

impl EngineBench {
    /// A context with a walker of `threads` groups of one thread each, in a column.
    fn exception_context(
        &self,
        number: u64,
        kernel_text: &str,
        routine: Option<&str>,
        enable: Enable,
        threads: u64,
    ) -> Context {
        let at = KERNELS + number * 0x4000;
        self.write(at, &kernel(kernel_text));
        self.write(DATA, &vec![BEFORE; (2 * THREADS * ROW / 4) as usize]);
        // R8_UNORM, a plane of which the width counts dwords, as IGT's.
        let mut surface = [0; 16];
        let (width, height) = (ROW as u32 / 4, 2 * THREADS as u32);
        (surface[0], surface[2], surface[3]) =
            (1 << 29 | 0x140 << 18, (height - 1) << 16 | (width - 1), ROW as u32 - 1);
        (surface[7], surface[8], surface[9]) = (4 << 25 | 5 << 22 | 6 << 19 | 7 << 16, (VA + DATA) as u32, 0);
        self.write(STATES + 0x40, &surface);
        self.write(STATES + 0x80, &[0x40]);
        let mut bases = instruction_base(VA);
        (bases[4], bases[5]) = ((VA + STATES) as u32 | 1, 0);
        let mut words = walker(at, 1, &target(DATA));
        (words[8], words[22]) = (threads as u32, 0x80);
        words[20] |= if enable == Enable::Walker { 1 << 13 } else { 0 };
        let sip = routine.map(|text| {
            self.write(ROUTINE, &assembled(text));
            state_sip(ROUTINE)
        });
        let batch = [&bases[..], sip.as_ref().map_or(&[], |sip| &sip[..]), &words, &[END]].concat();
        self.write(BATCH + number * 0x1000, &batch);
        let context = self.context(number);
        self.emit(context, &start(VA + BATCH + number * 0x1000));
        context
    }

    /// What is in each row of the threads and of their routines: the first two dwords; the others are unchanged.
    fn check_rows(&self, threads: u64, kernel: [u32; 2], routine: [u32; 2], what: &str) {
        for row in 0..2 * THREADS {
            let dwords: Vec<u32> = (0..ROW / 4).map(|dword| self.get(DATA + row * ROW + dword * 4)).collect();
            let expected = match row {
                row if row % THREADS >= threads => [BEFORE; 2],
                row if row < THREADS => kernel,
                _ => routine,
            };
            assert_eq!((&dwords[..2], &dwords[2..]), (&expected[..], &[BEFORE; 14][..]), "{what}: row {row}");
        }
    }
}

/// Code as it is, without an end of the thread.
fn assembled(text: &str) -> Vec<u32> {
    arctic_eu::text::assemble(text).unwrap().as_chunks::<4>().0.iter().map(|raw| u32::from_le_bytes(*raw)).collect()
}

#[test]
fn illegal_opcodes_enter_the_system_routine_if_that_is_enabled() {
    proves!(
        [EU_008, EU_060, EU_061],
        "512 threads of IGT's kernels, with the enable in the descriptor, in cr0.1 and without: with it each thread executes the \
        routine at the instruction base plus STATE_SIP once, with the exception pending, and behind it no exception is pending; \
        without it no thread does"
    );
    proves!(EU_021, "the descriptor enables the exception of illegal opcodes");
    for (class, illegal) in CLASSES.iter().flat_map(|class| ILLEGALS.map(|illegal| (*class, illegal))) {
        for enable in [Enable::No, Enable::Thread, Enable::Walker] {
            let mut bench = EngineBench::new(class);
            let text = illegal_kernel(enable, illegal);
            let context = bench.exception_context(0, &text, Some(&routine()), enable, THREADS);
            assert_eq!(bench.submit(context), Outcome::Complete, "{class:?} {enable:?}");
            let by_routine = if enable == Enable::No { BEFORE } else { ROUTINE_CANARY };
            bench.check_rows(THREADS, [CANARY, CANARY2], [by_routine, BEFORE], &format!("{class:?} {enable:?}"));
            let executed = bench.engine.counters().walkers.executed;
            let passed_over = if enable == Enable::No { THREADS } else { 0 };
            assert_eq!((executed.threads, executed.faults, executed.passed_over), (THREADS, 0, passed_over));
            let counted = bench.engine.counters().nonzero().get("illegal instructions passed over by threads").copied();
            assert_eq!(counted.unwrap_or(0), passed_over);
        }
    }
}

#[test]
fn kernels_run_after_one_that_did_not_end() {
    proves!(
        EU_074,
        "512 threads of IGT's endless kernel, then a reset of the engine: the next kernel of each context runs at once, with and \
        without a system routine"
    );
    for (class, has_routine) in CLASSES.iter().flat_map(|class| [false, true].map(|has| (*class, has))) {
        let mut bench = EngineBench::new(class);
        let (store, routine) = (store_dword(CANARY, 0), routine());
        let routine = has_routine.then_some(routine.as_str());
        let sane = bench.exception_context(0, &store, routine, Enable::No, THREADS);
        assert_eq!(bench.submit(sane), Outcome::Complete);
        bench.check_rows(THREADS, [CANARY, BEFORE], [BEFORE; 2], "sanity");
        let text = format!("{store}LOOP:\nnop\n(W) jmpi LOOP\n");
        let endless = bench.exception_context(1, &text, routine, Enable::No, THREADS);
        bench.begin(endless);
        for _ in 0..3 {
            assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
        }
        assert!(bench.engine.reset(&bench.gt).is_some());
        for number in [1, 2] {
            let next = bench.exception_context(number, &store, routine, Enable::No, THREADS);
            assert_eq!(bench.submit(next), Outcome::Complete);
            bench.check_rows(THREADS, [CANARY, BEFORE], [BEFORE; 2], "after the reset");
        }
    }
}

/// Adds 1 to the dword at the address in r1.0 by an atomic operation.
const ADD: &str = "
(W)     mov (1|M0) r110.0<1>:ud 0x1:ud
(W)     mov (2|M0) r112.0<1>:ud r1.0<1;1,0>:ud
(W)     send.ugm (1|M0) null r112 r110:1 0x0 0x0800058C
";

#[test]
fn threads_leave_the_engine_in_the_system_routine() {
    proves!(
        [EU_061, EU_070],
        "each instruction of kernel and routine ends a step, and the context leaves the engine after each of them: the routine \
        is executed once for each exception, and its thread has its registers"
    );
    for class in CLASSES {
        let mut bench = EngineBench::new(class);
        bench.engine.unit = ComputeUnit::with_costs(1, 1);
        let text = [
            "(W) mov (8|M0) r20.0<1>:ud 0x55:ud\n(W) mov (1|M0) r30.0<1>:ud 0x3:ud\nLOOP:\n",
            ILLEGALS[0],
            "(W) add (1|M0) r30.0<1>:d r30.0<0;1,0>:d -1:w\n(W) mov (1|M0) f0.0<1>:ud 0x0:ud\n\
            (W) cmp (1|M0) (ne)f0.0 null<1>:d r30.0<0;1,0>:d 0:w\n(W&f0.0) jmpi LOOP\n\
            (W) mov (2|M0) r12.0<1>:ud r1.0<1;1,0>:ud\n(W) add (1|M0) r12.0<1>:ud r12.0<0;1,0>:ud 0x40:uw\n\
            (W) send.ugm (1|M0) null r12 r20:1 0x0 0x08000584\n",
        ]
        .concat();
        // An illegal instruction in the routine is passed over.
        let add = "(W) add (1|M0) r20.0<1>:ud r20.0<0;1,0>:ud 0x100:uw\n";
        let routine = [ADD, add, ILLEGALS[1], PASS, LEAVE].concat();
        let context = bench.exception_context(0, &text, Some(&routine), Enable::Walker, 4);
        bench.put(DATA, 0);
        let preemptions = bench.preempt_each_step(context);
        assert_eq!((bench.get(DATA), bench.get(DATA + 0x40)), (4 * 3, 0x355), "{class:?}");
        let executed = bench.engine.counters().walkers.executed;
        assert!(preemptions >= executed.instructions, "{preemptions} {executed:?}");
        assert_eq!((executed.faults, executed.passed_over, bench.gt.parked.count(bench.function)), (0, 4 * 3, 0));
    }
}

#[test]
fn software_exceptions_enter_the_system_routine_if_they_are_enabled() {
    proves!(
        EU_062,
        "a thread that sets bit 29 of cr0.1 continues behind that write, after the system routine if the descriptor or bit 13 of \
        cr0.1 enables it: the routine reads the bit and the address of the next instruction"
    );
    proves!(EU_021, "the descriptor enables software exceptions");
    let raise = "(W) or (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud 0x20000000:ud\n";
    let enable = "(W) or (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud 0x2000:ud\n";
    let dump = "(W) mov (4|M0) r20.0<1>:ud cr0.0<4;4,1>:ud\n";
    let end = "(W) mov (2|M0) r12.0<1>:ud r1.0<1;1,0>:ud\n(W) send.ugm (1|M0) null r12 r20:1 0x0 0x0800B584\n";
    for (descriptor, text, next) in [
        (1 << 7, [raise, end].concat(), Some(16)),
        (0, [enable, raise, end].concat(), Some(32)),
        (1 << 13 | 1 << 11, [raise, end].concat(), None),
    ] {
        let mut bench = EngineBench::new(EngineClass::Render);
        let context = bench.exception_context(0, &text, Some(&[dump, LEAVE].concat()), Enable::No, 1);
        let at = BATCH + 4 * (22 + 3 + 20);
        bench.put(at, bench.get(at) | descriptor);
        assert_eq!(bench.submit(context), Outcome::Complete);
        let found = [0, 4, 8].map(|dword| bench.get(DATA + dword));
        let expected = next.map_or([0; 3], |next| [1 << 31, 1 << 29 | 1 << 13, KERNELS as u32 + next]);
        assert_eq!((found, bench.engine.counters().walkers.executed.faults), (expected, 0), "{descriptor:#x}");
    }
}

/// An exception that is enabled ends its thread if the context has no system routine. In a routine that is not mapped, the fetch
/// of its code is a page fault of the context. Another context computes afterwards.
#[test]
fn exceptions_without_a_system_routine_cost_their_own_context() {
    for routine in [None, Some(0x3_0000_0000_u64 - VA), Some(0xfff0_0000)] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        let context = bench.exception_context(0, &illegal_kernel(Enable::Walker, ILLEGALS[0]), None, Enable::Walker, 3);
        if let Some(offset) = routine {
            let batch: Vec<u32> = (0..64).map(|dword| bench.get(BATCH + dword * 4)).collect();
            bench.write(BATCH, &[&state_sip(offset)[..], &batch].concat());
        }
        let outcome = bench.submit(context);
        let executed = bench.engine.counters().walkers.executed;
        match routine {
            None => {
                assert_eq!((outcome, executed.faults), (Outcome::Complete, 3));
                bench.check_rows(3, [CANARY, CANARY2], [BEFORE; 2], "without a routine");
            }
            Some(offset) => match outcome {
                Outcome::Halted(Halt::Fault(fault)) => {
                    // The address of an instruction has 32 bits behind the instruction base.
                    assert_eq!(fault.address, VA + (offset & 0xffff_ffff));
                    assert!(matches!(fault.reason, FaultReason::NotPresent { .. }));
                }
                other => panic!("{other:?}"),
            },
        }
        bench.engine.reset(&bench.gt);
        let next = bench.kernel_context(2, STORE, 1, &target(DATA));
        assert_eq!((bench.submit(next), bench.get(DATA)), (Outcome::Complete, 7));
    }
}

/// Kernels that do not come out of their exceptions: steps are bounded, the context leaves its engine, and others compute.
#[test]
fn endless_exceptions_are_bounded() {
    let raise = "(W) or (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud 0x20002000:ud\n";
    let endless = "LOOP:\n(W) jmpi LOOP\n";
    for (text, routine) in
        [(ILLEGALS[0], LEAVE), (ILLEGALS[1], endless), (raise, LEAVE), (ILLEGALS[0], "LOOP:\nillegal\n(W) jmpi LOOP\n")]
    {
        let mut bench = EngineBench::new(EngineClass::Compute);
        // The software exception stays pending: the routine does not clear its bit.
        let routine = if text == raise { LEAVE.lines().last().unwrap() } else { routine };
        let context = bench.exception_context(0, text, Some(&format!("{routine}\n")), Enable::Walker, 2);
        for _ in 0..3 {
            bench.begin(context);
            assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More, "{text}");
            bench.leave();
            let other = bench.kernel_context(3, STORE, 1, &target(DATA + 0x8000));
            assert_eq!(bench.submit(other), Outcome::Complete);
        }
        let executed = bench.engine.counters().walkers.executed;
        assert!(executed.instructions < 7 * 200_000 && executed.groups == 3, "{executed:?}");
    }
}

/// With `unmodelled` as `fault`, an illegal instruction that is passed over halts the context; one that raises an exception does
/// not.
#[test]
fn illegal_opcodes_halt_a_context_that_is_watched() {
    for (enable, halts) in [(Enable::No, true), (Enable::Walker, false)] {
        let mut profile = crate::registers::tests::profile();
        profile.unmodelled = Unmodelled::Fault;
        let mut bench = EngineBench::of(profile, EngineClass::Compute, Arc::new(NullHost));
        let text = illegal_kernel(enable, ILLEGALS[1]);
        let context = bench.exception_context(0, &text, Some(&routine()), enable, 1);
        let outcome = bench.submit(context);
        assert_eq!(matches!(outcome, Outcome::Halted(Halt::Unmodelled { .. })), halts, "{outcome:?}");
    }
}
