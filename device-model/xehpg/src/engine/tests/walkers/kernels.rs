// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Kernels that do not end, wait for each other or cannot be executed, beside other contexts.

use arctic_eu::text::assemble;
use arctic_fidelity::proves;
pub(super) use arctic_mi::kernels::{ALONE_AT_BARRIER, COUNT, END_OF_THREAD, ENDLESS};

use super::*;
use crate::memory::FaultReason;
use crate::profile::Unmodelled;

/// Stores 7 at the address in r1.0 and r1.1, the inline data.
pub(super) const STORE: &str = "
(W)     mov (1|M0) r10.0<1>:ud 0x7:ud
(W)     mov (2|M0) r12.0<1>:ud r1.0<1;1,0>:ud
(W)     send.ugm (1|M0) null r12 r10:1 0x0 0x08000584
";
/// Assembles a kernel that ends its thread.
pub(super) fn kernel(text: &str) -> Vec<u32> {
    let bytes = assemble(&format!("{text}{END_OF_THREAD}")).unwrap();
    let mut dwords: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|raw| u32::from_le_bytes(*raw)).collect();
    dwords.resize(dwords.len().next_multiple_of(4), 0);
    dwords
}

/// Kernels lie here in local memory; the instruction base is [`VA`].
pub(super) const KERNELS: u64 = 0x48_0000;

/// COMPUTE_WALKER of groups of one thread of SIMD8, with inline data.
pub(super) fn walker(kernel: u64, groups: u32, inline: &[u32]) -> Vec<u32> {
    let mut data = [0; 8];
    data[..inline.len()].copy_from_slice(inline);
    let walker = arctic_mi::compute::Walker::of(kernel as u32);
    arctic_mi::compute::Walker { groups: [groups, 1, 1], inline: Some(data), ..walker }.words().to_vec()
}

/// STATE_BASE_ADDRESS with this instruction base.
pub(super) fn instruction_base(address: u64) -> [u32; 22] {
    let mut words = [0; 22];
    (words[0], words[10], words[11]) = (0x6101_0014, address as u32 | 1, (address >> 32) as u32);
    words
}

pub(super) fn target(at: u64) -> [u32; 2] {
    [(VA + at) as u32, ((VA + at) >> 32) as u32]
}

impl EngineBench {
    /// A context whose batch has a walker of this kernel.
    pub(super) fn kernel_context(&self, number: u64, text: &str, groups: u32, inline: &[u32]) -> Context {
        let at = KERNELS + number * 0x1000;
        self.write(at, &kernel(text));
        let batch = [&instruction_base(VA)[..], &walker(at, groups, inline), &[END]].concat();
        self.write(BATCH + number * 0x1000, &batch);
        let context = self.context(number);
        self.emit(context, &start(VA + BATCH + number * 0x1000));
        context
    }

    pub(super) fn begin(&mut self, context: Context) {
        self.engine.load(&self.gt, Load { function: self.function, ..context.load() });
    }

    /// Steps the engine until the context has left it.
    pub(super) fn leave(&mut self) {
        self.engine.request_preemption();
        assert_eq!(self.run(), Outcome::Preempted);
    }

    /// Executes the context, which leaves the engine after each step. Returns how often it was preempted.
    pub(super) fn preempt_each_step(&mut self, context: Context) -> u64 {
        let mut preemptions = 0;
        loop {
            self.begin(context);
            let mut outcome = self.engine.step(&self.gt, 1000);
            if outcome == Outcome::More {
                self.engine.request_preemption();
                outcome = self.run();
            }
            if outcome == Outcome::Complete {
                return preemptions;
            }
            assert_eq!(outcome, Outcome::Preempted);
            preemptions += 1;
        }
    }
}

#[test]
fn others_compute_beside_an_endless_kernel() {
    proves!(
        [EU_070, EU_074],
        "an endless kernel leaves the engine at once, and others compute meanwhile. It continues where it was. After its \
        reset, the next context with the same address computes at once: it has nothing of the kernel"
    );
    for vf in [0, 3] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        bench.give(Function::new(vf).unwrap());
        let endless = bench.kernel_context(0, ENDLESS, 1, &[]);
        let other = bench.kernel_context(1, STORE, 1, &target(DATA));
        for round in 0..3 {
            bench.begin(endless);
            for _ in 0..3 {
                assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
            }
            bench.leave();
            assert_eq!(bench.gt.parked.count(bench.function), 1);
            bench.put(DATA, round);
            // Once more from the start of its ring.
            bench.put(other.image(0x05), 0);
            assert_eq!((bench.submit(other), bench.get(DATA)), (Outcome::Complete, 7), "{round}");
        }
        bench.begin(endless);
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
        assert_eq!(bench.gt.parked.count(bench.function), 0);
        bench.engine.reset(&bench.gt);
        let next = bench.kernel_context(0, STORE, 1, &target(DATA + 4));
        assert_eq!((bench.submit(next), bench.get(DATA + 4)), (Outcome::Complete, 7));
    }
}

/// A workaround batch of the context runs before a kernel goes on, and the kernel leaves the engine again.
#[test]
fn workaround_batches_run_before_a_kernel_continues() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let endless = bench.kernel_context(0, ENDLESS, 1, &[]);
    let batch = endless.at + 0x6000;
    bench.write(batch, &mi::store_data_imm(mi::Global(DATA), 9));
    bench.put(batch + 16, END);
    // BB_PER_CTX_PTR, valid.
    bench.put(endless.image(0x13), batch as u32 | 1);
    for round in 0..3 {
        bench.put(DATA, 0);
        bench.begin(endless);
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More, "{round}");
        assert_eq!(bench.get(DATA), 9, "{round}");
        bench.leave();
    }
}

/// A new context at the address of one that was parked, and one whose driver has moved the head of the ring, have nothing of
/// its kernel. The parked object is dropped.
#[test]
fn parked_kernels_belong_to_their_context() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let endless = bench.kernel_context(0, ENDLESS, 1, &[]);
    for moved in [false, true] {
        bench.begin(endless);
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
        bench.leave();
        assert_eq!(bench.gt.parked.count(bench.function), 1);
        let next = if moved {
            bench.write(KERNELS, &kernel(STORE));
            bench.emit(endless, &store(VA + DATA, 9));
            // Behind the start of the batch.
            bench.put(endless.image(0x05), 16);
            endless
        } else {
            bench.kernel_context(0, STORE, 1, &target(DATA))
        };
        assert_eq!((bench.submit(next), bench.get(DATA)), (Outcome::Complete, if moved { 9 } else { 7 }));
        assert_eq!(bench.gt.parked.count(bench.function), 0);
        if !moved {
            bench.kernel_context(0, ENDLESS, 1, &[]);
        }
    }
}

#[test]
fn groups_in_flight_are_not_repeated() {
    proves!(
        EU_070,
        "no group is executed twice, not even in part: the sum of atomic additions is right whenever the context leaves"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    bench.engine.unit = ComputeUnit::with_costs(7, 7);
    let [low, high] = target(DATA);
    let context = bench.kernel_context(0, COUNT, 5, &[low, high, 10]);
    let mut left = 0;
    loop {
        bench.begin(context);
        let outcome = bench.engine.step(&bench.gt, 1000);
        if outcome == Outcome::Complete {
            break;
        }
        bench.leave();
        left += 1;
    }
    assert_eq!((bench.get(DATA), left > 20), (50, true), "{left}");
    assert_eq!(bench.engine.counters().walkers.executed.groups, 5);
}

#[test]
fn forged_tickets_find_nothing() {
    proves!(
        EU_070,
        "a ticket in memory that is not the context's own has no effect on another context: the group of this one is begun \
        again"
    );
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.engine.unit = ComputeUnit::with_costs(50, 50);
    let victim = bench.kernel_context(0, ENDLESS, 1, &[]);
    let [low, high] = target(DATA);
    let forger = bench.kernel_context(1, COUNT, 2, &[low, high, 100]);
    for context in [victim, forger] {
        bench.begin(context);
        for _ in 0..8 {
            assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
        }
        bench.leave();
    }
    let counted = bench.get(DATA);
    assert!(counted > 0 && counted < 100, "{counted}");
    let layout = bench.gt.context_layout(bench.engine.id());
    let ticket = layout.compute.unwrap() + crate::compute::STATE_DWORDS + 13;
    assert_eq!(bench.get(victim.image(ticket)) + 1, bench.get(forger.image(ticket)));
    bench.put(forger.image(ticket), bench.get(victim.image(ticket)));
    bench.begin(forger);
    while bench.engine.step(&bench.gt, 1000) == Outcome::More {}
    assert_eq!(bench.get(DATA), 200 + counted, "from the start of its group");
    assert_eq!(bench.gt.parked.count(bench.function), 1, "the victim's");
}

/// Beyond the limit of parked walkers a group runs to its end, and the context leaves then.
#[test]
fn parked_walkers_are_limited() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.engine.unit = ComputeUnit::with_costs(50, 50);
    let [low, high] = target(DATA);
    let context = bench.kernel_context(0, COUNT, 2, &[low, high, 100]);
    // As if so many contexts of the function were parked.
    let parked = &bench.gt.parked;
    for page in 1..=64 {
        let words = walker(KERNELS, 1, &[]);
        let walker = crate::compute::Walker::new(&words, &Default::default(), [0; 3]).unwrap();
        let run = crate::compute::WalkerRun::new(walker, Default::default(), &mut ComputeUnit::default());
        parked.park(crate::compute::Owner { function: bench.function, page }, parked.ticket(), run);
    }
    let owner = |function| crate::compute::Owner { function, page: 65 };
    let none = Room::default();
    assert!(!parked.reserve(owner(bench.function), none) && parked.reserve(owner(Function::new(1).unwrap()), none));
    bench.begin(context);
    assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
    bench.leave();
    assert_eq!((bench.get(DATA), bench.gt.parked.count(bench.function)), (100, 64));
    bench.begin(context);
    while bench.engine.step(&bench.gt, 1000) == Outcome::More {}
    assert_eq!(bench.get(DATA), 200);
    bench.gt.parked.drop_function(bench.function);
    assert_eq!(bench.gt.parked.count(bench.function), 0);
}

/// The limit on the memory of parked walkers holds for engines that park at the same time: room is taken before the context is
/// saved, and is given back with the context's walker.
#[test]
fn parked_walkers_are_limited_in_bytes() {
    let parked = crate::compute::ParkedWalkers::default();
    let function = Function::new(2).unwrap();
    let owner = |page| crate::compute::Owner { function, page };
    let most = 64 << 20;
    let room = |host| Room { host, saved: 1 };
    let taken = (1..).take_while(|page| parked.reserve(owner(*page), room(most / 4 - 1))).count();
    assert_eq!((taken, parked.count(function)), (4, 0));
    assert_eq!(parked.bytes(function), most - 4);
    // Another size for the same context.
    assert!(!parked.reserve(owner(4), room(most / 4 + 4)) && parked.reserve(owner(4), room(most / 4 + 3)));
    assert!(parked.take(owner(1), 0).is_none() && parked.reserve(owner(5), room(most / 4 - 1)));
    parked.drop_context(owner(2));
    assert!(parked.reserve(owner(6), room(most / 4 - 1)) && !parked.reserve(owner(7), room(1)));
    let words = walker(KERNELS, 1, &[]);
    let walker = crate::compute::Walker::new(&words, &Default::default(), [0; 3]).unwrap();
    let run = crate::compute::WalkerRun::new(walker, Default::default(), &mut ComputeUnit::default());
    let bytes = run.room().host;
    parked.park(owner(6), parked.ticket(), run);
    assert_eq!((parked.count(function), parked.bytes(function)), (1, most - most / 4 + 1 + bytes));
    parked.drop_function(function);
    assert_eq!((parked.count(function), parked.bytes(function)), (0, 0));
    // What the GuC saves of a function is limited, too.
    parked.limit(function, 15 << 18);
    let room = Room { host: 0, saved: 1 << 20 };
    let taken = (1..).take_while(|page| parked.reserve(owner(*page), room)).count();
    assert_eq!(taken, 3);
    assert!(!parked.reserve(owner(9), Room { host: 0, saved: (3 << 18) + 1 }));
    assert!(parked.reserve(owner(9), Room { host: 0, saved: 3 << 18 }));
}

#[test]
fn a_deadlock_at_a_barrier_keeps_the_engine_busy() {
    proves!(
        EU_053,
        "a group of which all threads wait for ever keeps the engine busy until its reset, or until its context leaves; \
        other contexts compute meanwhile"
    );
    let mut bench = EngineBench::new(EngineClass::Compute);
    let context = bench.kernel_context(0, ALONE_AT_BARRIER, 1, &[]);
    bench.begin(context);
    for _ in 0..3 {
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::Spinning);
    }
    bench.leave();
    bench.begin(context);
    assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::Spinning);
    bench.leave();
    let other = bench.kernel_context(1, STORE, 1, &target(DATA));
    assert_eq!((bench.submit(other), bench.get(DATA)), (Outcome::Complete, 7));
    bench.begin(context);
    assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::Spinning);
    assert!(bench.engine.reset(&bench.gt).is_some());
    let next = bench.kernel_context(2, STORE, 1, &target(DATA + 4));
    assert_eq!((bench.submit(next), bench.get(DATA + 4)), (Outcome::Complete, 7));
}

/// Stores for ever.
const ENDLESS_STORE: &str = "
(W)     mov (1|M0) r10.0<1>:ud 0x7:ud
(W)     mov (2|M0) r12.0<1>:ud r1.0<1;1,0>:ud
L0:
(W)     send.ugm (1|M0) null r12 r10:1 0x0 0x08000584
(W)     jmpi L0
";

#[test]
fn steps_are_bounded_and_use_current_translations() {
    proves!(
        EU_071,
        "each step of an endless kernel ends after at most 200,000 instructions. After the page that it stores to has been \
        unmapped, and translations have been invalidated, none of its stores reaches the memory behind it"
    );
    let mut bench = EngineBench::new(EngineClass::Compute);
    let context = bench.kernel_context(0, ENDLESS_STORE, 1, &target(DATA));
    bench.begin(context);
    for _ in 0..3 {
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
        assert_eq!(bench.get(DATA), 7);
    }
    // Another frame for the 2 MiB of the data.
    let elsewhere = DATA & !0x1f_ffff | 0x60_0000;
    bench.put64(ROOT + 0x2000 + 8 * (DATA >> 21), elsewhere & !0x1f_ffff | 0x883);
    bench.gt.memory.invalidate(crate::host::ALL_FUNCTIONS);
    bench.put(DATA, 0);
    for _ in 0..3 {
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
    }
    assert_eq!((bench.get(DATA), bench.get((elsewhere & !0x1f_ffff) + (DATA & 0x1f_ffff))), (0, 7));
    bench.leave();
    let instructions = bench.engine.counters().walkers.executed.instructions;
    assert!((60_000..=1_200_100).contains(&instructions), "{instructions}");
}

#[test]
fn accesses_without_translation_fault() {
    proves!(
        EU_073,
        "an access without a translation halts the context, with its address; so does code that does not exist"
    );
    for (text, inline, address) in [(STORE, [0x1000, 0x7000], 0x7000_0000_1000), (ENDLESS, [0; 2], 0x3_0000_0000)] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        let context = bench.kernel_context(0, text, 1, &inline);
        if text == ENDLESS {
            let batch = [&instruction_base(0x3_0000_0000)[..], &walker(0, 1, &[]), &[END]].concat();
            bench.write(BATCH, &batch);
        }
        match bench.submit(context) {
            Outcome::Halted(Halt::Fault(fault)) => {
                assert_eq!(fault.address, address);
                assert!(matches!(fault.reason, FaultReason::NotPresent { .. }));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn instructions_that_are_not_supported_end_their_thread() {
    proves!(
        EU_073,
        "an instruction that is not supported ends its thread, and is counted; with `unmodelled` as `fault` it halts the context"
    );
    for unmodelled in [Unmodelled::Skip, Unmodelled::Fault] {
        let mut profile = crate::registers::tests::profile();
        profile.unmodelled = unmodelled;
        let mut bench = EngineBench::of(profile, EngineClass::Compute, Arc::new(NullHost));
        let context = bench.kernel_context(0, "(W) jmpi L0\nL0:\n", 2, &[]);
        // madm.
        bench.write(KERNELS + 16, &[0x5d, 0, 0, 0]);
        bench.emit(context, &store(VA + DATA, 7));
        let outcome = bench.submit(context);
        if unmodelled == Unmodelled::Skip {
            assert_eq!((outcome, bench.get(DATA)), (Outcome::Complete, 7));
            let expected = ("threads ended at instructions that cannot be executed".to_owned(), 2);
            assert_eq!(bench.engine.counters().nonzero(), [expected].into());
        } else {
            assert!(matches!(outcome, Outcome::Halted(Halt::Unmodelled { .. })), "{outcome:?}");
        }
    }
}

#[test]
fn contexts_have_their_own_state() {
    proves!(
        [EU_002, EU_014],
        "what one batch has set applies to walkers in later batches of its context, and to no other context"
    );
    let mut bench = EngineBench::new(EngineClass::Compute);
    let contexts = [0, 1].map(|number| {
        let at = KERNELS + 0x10_0000 * number;
        let value = 5 + number as u32;
        bench.write(at, &kernel(&STORE.replace("0x7:ud", &format!("{value:#x}:ud"))));
        let context = bench.context(number);
        bench.write(BATCH + number * 0x1000, &[&instruction_base(VA + at)[..], &[END]].concat());
        bench.emit(context, &start(VA + BATCH + number * 0x1000));
        assert_eq!(bench.submit(context), Outcome::Complete);
        context
    });
    for round in 0..4 {
        for (number, context) in (0..).zip(contexts) {
            let batch = BATCH + 0x8000 + number * 0x1000;
            bench.write(batch, &[&walker(0, 1, &target(DATA))[..], &[END]].concat());
            bench.emit(context, &start(VA + batch));
            assert_eq!((bench.submit(context), bench.get(DATA)), (Outcome::Complete, 5 + number as u32), "{round}");
        }
    }
}

#[test]
fn code_that_has_changed_is_decoded_again() {
    proves!(EU_047, "code that was written between two walkers at one address is executed as it is");
    let mut bench = EngineBench::new(EngineClass::Compute);
    for value in [3, 4, 4, 3] {
        let context = bench.kernel_context(0, &STORE.replace("0x7:ud", &format!("{value:#x}:ud")), 1, &target(DATA));
        assert_eq!((bench.submit(context), bench.get(DATA)), (Outcome::Complete, value));
    }
}
