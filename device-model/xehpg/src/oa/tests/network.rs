// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Counters of the activity of engines, which a set of writes connects to the network.

use super::with_activity;
use crate::oa::context::ContextCounters;
use crate::oa::counters::{Activity, Setting};
use crate::oa::facts::{ObservationFacts, XE_HPG_OBSERVATION, XE_HPG_SIGNALS};
use crate::oa::network::{EngineSignals, Writes};
use crate::oa::state::State;
use crate::topology::XE_HPG_ENGINES;

const DIE: &str = "a die";

/// The signals of GpuBusyness, connected by three writes.
fn facts() -> &'static ObservationFacts {
    let [known, _] = &XE_HPG_SIGNALS;
    let writes = [1, 2, 3].into_iter().fold(Writes::default(), Writes::then);
    let signals = EngineSignals { die: DIE, writes, inputs: known.inputs, b: known.b, c: known.c };
    Box::leak(Box::new(ObservationFacts { signals: Vec::leak(vec![signals]), ..XE_HPG_OBSERVATION }))
}

/// Engines that are busy.
fn busy(names: &[&str]) -> Activity {
    let engines = names.iter().map(|name| XE_HPG_ENGINES.named(name).unwrap().bit());
    Activity { busy: engines.fold(0, |all, engine| all | engine), awake: true, ratio: 288 }
}

/// Clocks of the B and the C counters while the engines are busy for 8 ticks, of 125 clocks each at this frequency.
fn clocks(state: &mut State, names: &[&str]) -> ([u64; 8], [u64; 8]) {
    let before = state.now.values.clone();
    state.note(state.now.at, busy(names));
    state.settle(state.now.at + 8, 0);
    let now = &state.now.values;
    let part = |now: [u64; 8], before: [u64; 8]| std::array::from_fn(|n| (now[n] - before[n]) / 1000);
    (part(now.b, before.b), part(now.c, before.c))
}

/// Switches the network on or off, and connects what these writes connect.
fn connect(state: &mut State, die: &str, on: bool, writes: &[u32]) {
    let now = state.now.at;
    state.switch_network(now, on);
    writes.iter().for_each(|value| state.write_network(now, die, *value));
}

/// With OAG enabled and its counters on.
fn with_counters(test: impl FnOnce(&mut State)) {
    with_activity(facts(), busy(&[]), |state| {
        state.set(0, Setting::Control(1));
        state.enable(0);
        test(state);
    });
}

/// Each engine of the set has a counter; B0 and B1 combine engines.
#[test]
fn engines_have_their_counters() {
    with_counters(|state| {
        // The comparisons of GpuBusyness: RCS and any CCS, any CCS; the others compare nothing.
        for (block, first, second) in [(0, 0x81, 0xffe0), (1, 0, 0xfff0)] {
            state.set(0, Setting::Block(2 * block, first));
            state.set(0, Setting::Block(2 * block + 1, second));
        }
        (2..8).for_each(|block| state.set(0, Setting::Block(2 * block + 1, 0xffff)));
        connect(state, DIE, true, &[1, 2, 3]);
        for (names, b, c) in [
            (&[][..], &[][..], &[][..]),
            (&["rcs0"], &[], &[7]),
            (&["ccs0"], &[1], &[6]),
            (&["ccs1"], &[1], &[5]),
            (&["ccs2"], &[1], &[4]),
            (&["ccs3"], &[1], &[3]),
            (&["bcs0"], &[], &[1]),
            (&["vcs0"], &[], &[0]),
            (&["vecs0"], &[7], &[]),
            (&["vcs2"], &[6], &[]),
            (&["vecs1"], &[5], &[]),
            (&["rcs0", "ccs3"], &[0, 1], &[3, 7]),
            (&["rcs0", "bcs0", "ccs0", "ccs1", "vecs1"], &[0, 1, 5], &[1, 5, 6, 7]),
        ] {
            let only = |counters: &[usize]| std::array::from_fn(|n| u64::from(counters.contains(&n)));
            assert_eq!(clocks(state, names), (only(b), only(c)), "{names:?}");
        }
    });
}

/// A set is connected by its writes, all of them, in their order, since the network was switched on, for its die.
#[test]
fn a_set_is_known_by_its_writes() {
    with_counters(|state| {
        for (writes, connected) in [
            (&[1, 2, 3][..], true),
            (&[1, 3, 2], false),
            (&[1, 2], false),
            (&[1, 2, 3, 4], false),
            (&[4, 1, 2, 3], false),
            (&[1, 2, 3], true),
        ] {
            connect(state, DIE, true, writes);
            assert_eq!(clocks(state, &["rcs0"]).1[7], u64::from(connected), "{writes:?}");
        }
        connect(state, DIE, false, &[1, 2, 3]);
        assert_eq!(clocks(state, &["rcs0"]).1[7], 0, "the network is off");
        connect(state, "another die", true, &[1, 2, 3]);
        assert_eq!(clocks(state, &["rcs0"]).1[7], 0, "another die");
    });
}

/// OAR and OAC have the same signals, while their context counts and whether OAG is enabled or not.
#[test]
fn contexts_have_the_signals() {
    with_activity(facts(), busy(&[]), |state| {
        connect(state, DIE, true, &[1, 2, 3]);
        let mut context = ContextCounters::default();
        context.settle(&state.now, true);
        clocks(state, &["rcs0", "vecs0"]);
        context.settle(&state.now, false);
        clocks(state, &["rcs0", "vecs0"]);
        context.settle(&state.now, true);
        let values = context.values();
        assert_eq!((values.c[7], values.b[7], values.c[6]), (1000, 1000, 0));
    });
}
