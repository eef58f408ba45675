// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Engine time by the card's clock: while two other functions always have work for an engine, the attacker gets at most
//! the share of its quantum, and the others get equal shares.

use arctic_device_model::gpu::Gpu;
use arctic_device_model::profile::provision::Quota;
use arctic_device_model::topology::EngineClass;
use arctic_fidelity::proves;
use arctic_test_support::actions;
use arctic_test_support::kernels::{ALONE_AT_BARRIER, ENDLESS, set_address};
use arctic_test_support::mi::compute::Walker;
use arctic_test_support::mi::{self, Compare, Global, Process};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::world::Time;

use crate::kernels::write_walker;

const SHARE: Quota = Quota { exec_quantum_ms: 1, preempt_timeout_us: 500, ..QUOTA };
/// Time by which the test advances the card's clock per step, in ns.
const STEP: u64 = 20_000;
const MS: u64 = 1_000_000;

/// Writes an endless batch of `vf` that increments a counter at `at::SCRATCH + 8 * id`, preceded by `first`; returns a
/// ring that starts it.
fn endless(vf: &Vf, id: u32, first: &[u32]) -> [u32; 3] {
    let round = vf.base() + Vf::batch(id) + first.len() as u64 * 4;
    let cell = vf.base() + at::SCRATCH + u64::from(id) * 8;
    let mut words = first.to_vec();
    words.extend(mi::atomic_increment(Process(cell)));
    words.push(mi::ARB_CHECK);
    words.extend(mi::batch_buffer_start(Process(round)));
    vf.write_words(Vf::batch(id), &words);
    vf.jump(id)
}

/// Registers a context of the attacker again with this ring.
fn restart(vf: &mut Vf, id: u32, class: EngineClass, ring: &[u32]) {
    vf.request(0x4503, &[id]);
    vf.submit(id, class, ring);
}

/// Makes a context non-preemptible: the batch that the engine runs before the ring is endless.
fn make_unpreemptible(vf: &Vf, id: u32, waits: bool) {
    let at = vf.base() + Vf::batch(id);
    let count = mi::atomic_increment(Global(SCRATCH + u64::from(id) * 8));
    let again = [count, mi::batch_buffer_start(Global(at))].concat();
    let wait = mi::semaphore_wait(Global(SCRATCH + 0x900), Compare::Equal, 0x7777);
    vf.write_words(Vf::batch(id), if waits { &wait } else { &again });
    vf.poke(Vf::image(id, 0) + 0x1000 + 0x13 * 4, at as u32 | 1);
}

/// Registers a non-preemptible context again.
fn spin(vf: &mut Vf, id: u32, class: EngineClass, waits: bool) {
    vf.request(0x4503, &[id]);
    vf.write_context(id, 0, &[0; 2]);
    make_unpreemptible(vf, id, waits);
    vf.register(id, u32::from(class.guc()), 1);
    vf.request(0x1001, &[id, 1]);
}

struct Contest {
    bench: VfBench,
    class: EngineClass,
    /// Time for which the host does not run the card's worker before one step in eight, in ns.
    held_up: u64,
}

fn used(bench: &VfBench) -> [u64; 3] {
    let functions = bench.card.status().functions;
    std::array::from_fn(|n| functions[n + 1].engine_time_ns.iter().flatten().map(|(_, time)| time).sum())
}

impl Contest {
    fn new(class: EngineClass) -> Self {
        let mut bench = VfBench::with(true, Some(SHARE), Time::manual());
        bench.victims.iter_mut().chain([&mut bench.attacker]).for_each(Vf::up);
        for victim in &mut bench.victims {
            let ring = endless(victim, 1, &[]);
            victim.submit(1, class, &ring);
        }
        Contest { bench, class, held_up: 0 }
    }

    /// Runs for `milliseconds`, with `attack` called before each step. The functions compete for one engine of the
    /// class.
    fn play(mut self, what: &str, milliseconds: u64, mut attack: impl FnMut(&mut VfBench, EngineClass, u64)) -> u64 {
        let bench = &mut self.bench;
        let resets = |bench: &VfBench| {
            VICTIMS.map(|victim| bench.card.status().functions[victim.index()].engine_resets.unwrap())
        };
        let mut random = Random::new(7);
        let (mut start, mut from) = (bench.now(), used(bench));
        let steps = milliseconds * MS / STEP;
        for step in 0..steps + 1500 {
            if step == 1500 {
                // The first steps are excluded as a settling phase.
                (start, from) = (bench.now(), used(bench));
            }
            attack(bench, self.class, step);
            bench.attacker.consume();
            bench.card.step();
            bench.pass(STEP);
            if self.held_up != 0 && random.one_in(8) {
                bench.pass(self.held_up);
            }
        }
        let elapsed = (bench.now() - start) as f64;
        let now = used(bench);
        let [one, attacker, other] = [0, 1, 2].map(|n| (now[n] - from[n]) as f64 / elapsed);
        let forced = bench.card.status().functions[ATTACKER.index()].engine_resets.unwrap();
        println!("{what} on {:?}: {one:.4} {attacker:.4} {other:.4}, {forced} resets", self.class);
        assert_eq!(resets(bench), [0; 2], "{what}: a preemptible context was reset");
        if self.held_up != 0 {
            // The pauses are charged to whichever function runs at that time, so shares are not checked.
            return forced;
        }
        assert!(attacker <= 1.05 / 3.0, "{what}: the attacker's share is {attacker:.4}");
        assert!(one.min(other) >= 0.95 * one.max(other), "{what}: the others' shares differ: {one:.4} and {other:.4}");
        assert!(one.min(other) >= 0.90 / 3.0, "{what}: the others' shares are {one:.4} and {other:.4}");
        assert_eq!(bench.card.panics(), 0);
        forced
    }
}

const ROUNDS: u64 = 180;

#[test]
fn endless_loops() {
    proves!(
        [V13_036, V13_037, V13_038, V13_039, V13_040, V13_041, V13_042, V13_043],
        "endless loops in one or many contexts of any priority (contract D.4)"
    );
    for class in [EngineClass::Render, EngineClass::Copy] {
        Contest::new(class).play("one loop", ROUNDS, |bench, class, step| {
            if step == 0 {
                let ring = endless(&bench.attacker, 1, &[]);
                bench.attacker.submit(1, class, &ring);
            }
        });
    }
    Contest::new(EngineClass::Copy).play("a loop without effect", ROUNDS, |bench, class, step| {
        if step == 0 {
            let vf = &mut bench.attacker;
            let ring = vf.jump(1);
            vf.write_words(Vf::batch(1), &[&[mi::ARB_CHECK][..], &ring].concat());
            vf.submit(1, class, &ring);
        }
    });
    Contest::new(EngineClass::Copy).play("sixteen loops", ROUNDS, |bench, class, step| {
        if step % 50 == 0 && step < 800 {
            let id = step as u32 / 50;
            let ring = endless(&bench.attacker, id, &[]);
            bench.attacker.submit(id, class, &ring);
            // Highest priority, unlimited quantum, no preemption timeout.
            bench.attacker.request(0x100b, &[id, 0x2003_0001, 0, 0x2001_0001, 0, 0x2002_0001, 0]);
        }
    });
}

/// Kernels that do not end, wait at a barrier for ever, or have endless groups with much state are preempted like commands.
#[test]
fn kernels_do_not_exceed_their_share() {
    let costly = Walker { groups: [u32::MAX; 3], threads: 16, slm: 7, ..Walker::of(0) };
    for (what, text, walker) in [
        ("an endless kernel", ENDLESS, Walker::of(0)),
        ("an incomplete barrier", ALONE_AT_BARRIER, Walker::of(0)),
        ("endless groups", "", costly),
    ] {
        Contest::new(EngineClass::Render).play(what, ROUNDS / 2, |bench, class, step| {
            if step % 1000 == 0 {
                let id = (step / 1000 % 4) as u32;
                let ring = write_walker(&bench.attacker, id, 128, text, &walker);
                restart(&mut bench.attacker, id, class, &ring);
            }
        });
    }
}

/// A short kernel ends after few time slices, while two other contexts, of its own function or of others, have endless kernels.
#[test]
fn short_kernels_end_beside_endless_ones() {
    for own in [true, false] {
        let mut bench = VfBench::with(true, Some(SHARE), Time::manual());
        bench.victims.iter_mut().chain([&mut bench.attacker]).for_each(Vf::up);
        let class = EngineClass::Render;
        for number in 0..2 {
            let vf = if own { &mut bench.attacker } else { &mut bench.victims[number] };
            let ring = write_walker(vf, number as u32, 128, ENDLESS, &Walker::of(0));
            vf.submit(number as u32, class, &ring);
        }
        for round in 1..=10 {
            let vf = &mut bench.attacker;
            let mut text = format!("(W) mov (1|M0) r10.0<1>:ud {round:#x}:ud\n");
            set_address(&mut text, 12, vf.base() + at::SCRATCH);
            text += "(W) send.ugm (1|M0) null r12 r10:1 0x0 0x08000584\n";
            let ring = write_walker(vf, 2, 128, &text, &Walker::of(0));
            restart(vf, 2, class, &ring);
            let start = bench.now();
            while bench.attacker.peek(at::SCRATCH) != round {
                bench.attacker.consume();
                bench.card.step();
                bench.pass(STEP);
                assert!(bench.now() - start < 100 * MS, "own {own}, round {round}");
            }
        }
        // The endless ones have their turns.
        let functions = if own { &[ATTACKER][..] } else { &VICTIMS };
        let start = bench.now();
        while !functions.iter().all(|of| bench.card.gt().kernels(*of).counts().instructions > 10_000) {
            bench.card.step();
            bench.pass(STEP);
            assert!(bench.now() - start < 100 * MS, "own {own}");
        }
    }
}

/// If the host does not run the card's worker for 100 ms repeatedly, a context that can be preempted is not reset; one
/// that cannot be preempted is.
#[test]
fn on_a_loaded_host() {
    for unpreemptible in [false, true] {
        let contest = Contest { held_up: 100 * MS, ..Contest::new(EngineClass::Copy) };
        let forced = contest.play("on a loaded host", ROUNDS, |bench, class, step| {
            if unpreemptible && step % 470 == 0 {
                spin(&mut bench.attacker, (step / 470 % 16) as u32, class, false);
            } else if step == 0 {
                let ring = endless(&bench.attacker, 1, &[]);
                bench.attacker.submit(1, class, &ring);
            }
        });
        assert_eq!(forced > 0, unpreemptible, "{forced} engine resets");
    }
}

/// A function that notifies the GuC before each step of the card does not stop other functions' engines.
#[test]
fn repeated_guc_doorbells_stop_no_engine() {
    let mut contest = Contest::new(EngineClass::Copy);
    let bench = &mut contest.bench;
    let rounds = |bench: &VfBench| bench.victims.each_ref().map(|victim| victim.peek(at::SCRATCH + 8));
    let from = rounds(bench);
    for _ in 0..20_000 {
        bench.card.notify_guc(ATTACKER);
        bench.card.step();
        bench.pass(STEP);
    }
    let now = rounds(bench);
    assert!(now.iter().zip(&from).all(|(now, from)| now > from), "{from:?} {now:?}");
}

/// Contract G.2: non-preemptible loops, started again after each reset.
#[test]
fn restarted_unpreemptible_loops_do_not_exceed_their_share() {
    for (what, waits, policy) in
        [("a spinner", false, false), ("a spinner with policies", false, true), ("a stubborn wait", true, true)]
    {
        let forced = Contest::new(EngineClass::Copy).play(what, ROUNDS * 2, |bench, class, step| {
            if step % 47 == 0 {
                let id = (step / 47 % 16) as u32;
                spin(&mut bench.attacker, id, class, waits);
                if policy {
                    bench.attacker.request(0x100b, &[id, 0x2003_0001, 0, 0x2001_0001, 0, 0x2002_0001, 0]);
                }
            }
        });
        assert!(forced > 4, "{what}: only {forced} engine resets");
    }
}

/// Loops of a function that resets itself, deregisters its contexts or floods its ring: its overrun is still charged.
#[test]
fn overrun_is_charged_after_resets_and_deregistration() {
    Contest::new(EngineClass::Copy).play("VF_RESET", ROUNDS * 2, |bench, class, step| {
        if step % 151 == 0 {
            bench.attacker.up();
            spin(&mut bench.attacker, 1, class, false);
        }
    });
    Contest::new(EngineClass::Copy).play("FLR", ROUNDS * 2, |bench, class, step| {
        if step % 271 == 0 {
            bench.card.reset_function(ATTACKER);
            bench.attacker.up();
            spin(&mut bench.attacker, 1, class, false);
        }
    });
    let mut random = Random::new(9);
    Contest::new(EngineClass::Copy).play("short jobs and floods", ROUNDS, |bench, class, step| {
        let id = random.below(16) as u32;
        match random.below(30) {
            0 => {
                let ring = endless(&bench.attacker, id, &[]);
                restart(&mut bench.attacker, id, class, &ring);
            }
            1 => {
                let job = mi::store_data_imm(Global(SCRATCH), step as u32);
                restart(&mut bench.attacker, id, class, &job);
            }
            2 => bench.attacker.request(0x1001, &[id, random.below(2) as u32]),
            3 => (0..20).for_each(|_| bench.attacker.request(0x1000, &[id])),
            4 => bench.attacker.request(actions::TLB_INVALIDATION, &[1, actions::INVALIDATE_FLUSH]),
            5 => {
                // A semaphore wait that is satisfied only intermittently.
                let wait = mi::semaphore_wait(Global(SCRATCH + 0x800), Compare::Equal, 1);
                restart(&mut bench.attacker, id, class, &wait);
                bench.attacker.poke(at::SCRATCH + 0x800, random.below(2) as u32);
            }
            _ => {}
        }
    });
}

/// Contract F.5: a parallel context occupies both video engines while it executes on one of them, and other functions
/// have work for the second.
#[test]
fn parallel_context_leaves_other_functions_their_shares() {
    let mut contest = Contest::new(EngineClass::VideoDecode);
    for victim in &mut contest.bench.victims {
        // A second loop, so that each victim has work for both engines.
        victim.consume();
        let ring = endless(victim, 2, &[]);
        victim.write_context(2, 0, &ring);
        victim.register(2, u32::from(EngineClass::VideoDecode.guc()), 3);
        victim.request(0x1001, &[2, 1]);
    }
    let bench = &mut contest.bench;
    let wide = |bench: &mut VfBench, id: u32| {
        let vf = &mut bench.attacker;
        vf.request(0x4503, &[id]);
        vf.write_context(id, 0, &[0; 2]);
        make_unpreemptible(vf, id, false);
        vf.write_context(id, 1, &[]);
        vf.write_words(at::QUEUES, &[0; 16]);
        let mut payload = vec![1, id, 1, 1, QUEUES as u32, 0, QUEUES as u32 + 0x1000, 0, 0x800, 2];
        for member in 0..2 {
            payload.extend([vf.descriptor(id, member), 0]);
        }
        vf.request(0x4601, &payload);
        vf.request(0x1001, &[id, 1]);
    };
    let steps = ROUNDS * 2 * MS / STEP;
    let mut from = used(bench);
    for step in 0..steps + 1500 {
        if step == 1500 {
            from = used(bench);
        }
        if step % 211 == 0 {
            wide(bench, (step / 211 % 8) as u32);
        }
        bench.attacker.consume();
        bench.card.step();
        bench.pass(STEP);
    }
    let now = used(bench);
    let [one, attacker, other] = [0, 1, 2].map(|n| (now[n] - from[n]) as f64 / (steps * STEP) as f64);
    println!("a parallel context: {one:.4} {attacker:.4} {other:.4} of two engines");
    assert!(one.min(other) >= 0.95 * one.max(other), "the victims' shares differ: {one:.4} and {other:.4}");
    assert!(one.min(other) >= 0.90 * 2.0 / 3.0, "the victims' shares are {one:.4} and {other:.4} of two engines");
}
