// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Time sharing of one engine among functions: the owner of the current turn, and the quantum used by each function
//! (contract D.4, K.5). A turn is the period for which one function owns the engine.
//!
//! The algorithm is deficit round robin. A turn adds a quantum to a function's credit. Time that the function uses
//! while another one claims the engine is deducted, including the time that its contexts need to leave. Overruns are
//! charged to its later turns. Time that no other function claims is not deducted, and unused time of a turn is not
//! carried over.
//!
//! A function with a context on the engine is charged in engine time ([`crate::gt::EngineClock`]); a turn kept by a
//! function without work is charged by the card's clock.
#![allow(clippy::indexing_slicing, reason = "there is a credit for each engine")]

use crate::guc::functions::Functions;
use crate::guc::functions::share::Priority;
use crate::host::{FUNCTIONS, Function, MAX_VFS, functions};

/// The current time of both clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The card's clock.
    pub card: u64,
    /// Engine time of the engine that determines the charge ([`DeficitRoundRobin::on`]).
    pub engine: u64,
}

/// State of the turns at one engine.
#[derive(Debug)]
pub struct DeficitRoundRobin {
    /// Index of the engine, for [`crate::guc::functions::GucFunction::credit`].
    engine: usize,
    turn: Option<Function>,
    /// Function that occupies the engine and is charged.
    charged: Option<Function>,
    /// Index of the engine that determines the charge by its engine time.
    on: usize,
    /// Time up to which the credits are up to date.
    since: Moment,
    /// Another function claims the engine too.
    contended: bool,
    /// The engine has been idle and unclaimed since `since`.
    idle: bool,
    /// The last function that had a turn, and the last one of high priority.
    last: (u8, u8),
    /// Functions of high priority that had a turn since the last turn of another priority.
    served: u64,
}

impl DeficitRoundRobin {
    /// Returns the state of an idle engine with this index.
    pub fn new(engine: usize) -> Self {
        DeficitRoundRobin {
            engine,
            turn: None,
            charged: None,
            on: engine,
            since: Moment::default(),
            contended: false,
            idle: true,
            last: (MAX_VFS, MAX_VFS),
            served: 0,
        }
    }

    fn credit<'f>(&self, all: &'f mut Functions, function: Function) -> &'f mut i64 {
        &mut all[function].credit[self.engine]
    }

    /// Records that `function` occupies the engine, or that the engine is idle. The function is charged by the engine
    /// time of the engine with index `on`, which is currently `time`.
    pub fn occupy(&mut self, now: Moment, function: Option<Function>, (on, time): (usize, u64), all: &mut Functions) {
        self.charge(now, all);
        self.charged = function;
        self.on = on;
        self.since.engine = time;
    }

    /// Returns the index of the engine that supplies [`Moment::engine`].
    pub fn on(&self) -> usize {
        self.on
    }

    /// Starts a turn for a function on an engine that no other function claims.
    pub fn enter(&mut self, now: Moment, function: Function, all: &mut Functions) {
        self.charge(now, all);
        self.begin_turn(function, all);
        (self.contended, self.idle) = (false, false);
        let quantum = signed(all[function].share.quantum);
        let credit = self.credit(all, function);
        if *credit >= 0 {
            *credit = quantum;
        }
    }

    /// Records that no other function claims the engine.
    pub fn relax(&mut self, now: Moment, all: &mut Functions) {
        self.charge(now, all);
        self.contended = false;
        self.idle = self.charged.is_none();
    }

    /// Selects the owner of the current turn among the functions that have work (`wants`) and those that keep their
    /// turns without work (`reserved`); `None` if there are none.
    pub fn turn(&mut self, now: Moment, wants: u64, reserved: u64, all: &mut Functions) -> Option<Function> {
        if wants == 0 && self.charged.is_none() {
            self.relax(now, all);
            return None;
        }
        if std::mem::take(&mut self.idle) {
            self.drift(now, reserved, all);
        }
        self.charge(now, all);
        let claims = wants | reserved;
        let own = self.turn.map_or(0, Function::bit);
        if claims & own == 0 {
            self.end_turn(all);
        }
        let over = |function: Function| {
            all[function].share.quantum != 0 && all[function].credit[self.engine] <= 0 && claims & !own != 0
        };
        if self.turn.is_none_or(over) {
            self.pass(claims, all);
        }
        self.contended = claims & !self.charged.or(self.turn).map_or(0, Function::bit) != 0;
        self.turn
    }

    /// Adopts the turn of another engine, owned by `lead`, because both engines share their turns.
    pub fn follow(&mut self, now: Moment, lead: Option<Function>, contended: bool, all: &mut Functions) {
        self.charge(now, all);
        (self.contended, self.idle) = (contended, false);
        if self.turn != lead {
            self.end_turn(all);
            if let Some(function) = lead {
                self.grant(function, all);
            }
        }
    }

    /// Returns whether a function claims the engine, other than the one that occupies it or is about to.
    pub fn contended(&self) -> bool {
        self.contended
    }

    /// Returns the remaining time of the turn, in ns from the time of the last call with a `now` argument. Returns
    /// `None` if no function waits for its end, if the quantum is unlimited, or if another function still occupies the
    /// engine.
    pub fn left(&self, all: &Functions) -> Option<u64> {
        let function =
            self.turn.filter(|turn| self.contended && self.charged.is_none_or(|charged| charged == *turn))?;
        let left = u64::try_from(all[function].credit[self.engine]).unwrap_or(0);
        (all[function].share.quantum != 0).then_some(left)
    }

    fn charge(&mut self, now: Moment, all: &mut Functions) {
        let spent = signed(match self.charged {
            Some(_) => now.engine.saturating_sub(self.since.engine),
            None => now.card.saturating_sub(self.since.card),
        });
        self.since = now;
        let Some(function) = self.charged.or(self.turn) else { return };
        let credit = self.credit(all, function);
        let left = credit.saturating_sub(spent);
        // A deficit arises only from time that another function claimed while the engine was occupied.
        let is_charged = self.contended && self.charged.is_some();
        *credit = if is_charged { left } else { left.max((*credit).min(0)) };
    }

    fn end_turn(&mut self, all: &mut Functions) {
        if let Some(function) = self.turn.take() {
            let credit = self.credit(all, function);
            *credit = (*credit).min(0);
        }
    }

    /// Adds a quantum to the function's credit and starts its turn; returns false if it is still in deficit.
    fn grant(&mut self, function: Function, all: &mut Functions) -> bool {
        let quantum = signed(all[function].share.quantum);
        let credit = self.credit(all, function);
        *credit = credit.saturating_add(quantum).min(quantum);
        let paid = *credit > 0 || quantum == 0;
        self.begin_turn(function, all);
        paid
    }

    fn begin_turn(&mut self, function: Function, all: &Functions) {
        if all[function].share.priority == Priority::High {
            self.served |= function.bit();
            self.last.1 = function.number();
        } else {
            self.served = 0;
            self.last.0 = function.number();
        }
        self.turn = Some(function);
    }

    /// Starts the turn of the next function of `claims`. High-priority functions that have had no turn since the last
    /// turn of another priority take precedence; they are followed by one other function.
    fn pass(&mut self, claims: u64, all: &mut Functions) {
        self.end_turn(all);
        self.skip_rounds(claims, all);
        let high = functions(claims)
            .filter(|function| all[*function].share.priority == Priority::High)
            .fold(0, |set, function| set | function.bit());
        // At least one function is within one quantum of its next turn, and each is tried once in two rounds.
        for _ in 0..2 * FUNCTIONS {
            let next = next(high & !self.served, self.last.1)
                .or_else(|| next(claims & !high, self.last.0))
                .or_else(|| next(high, self.last.1));
            match next {
                Some(function) if !self.grant(function, all) => {}
                _ => return,
            }
        }
    }

    /// Skips the rounds in which all functions of `claims` are in deficit.
    fn skip_rounds(&mut self, claims: u64, all: &mut Functions) {
        let rounds = functions(claims).map(|function| {
            let (credit, quantum) = (all[function].credit[self.engine], all[function].share.quantum);
            credit.unsigned_abs().checked_div(quantum).filter(|_| credit < 0).unwrap_or(0)
        });
        let rounds = rounds.min().unwrap_or(0);
        for function in functions(claims).filter(|_| rounds > 0) {
            let quanta = signed(all[function].share.quantum.saturating_mul(rounds));
            let credit = self.credit(all, function);
            *credit = credit.saturating_add(quanta);
        }
    }

    /// Accounts for the turns that were kept while the engine was idle.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "64 quanta of at most 100 s; what is subtracted is at most what is there"
    )]
    fn drift(&mut self, now: Moment, reserved: u64, all: &mut Functions) {
        let round = functions(reserved).fold(0u64, |sum, function| sum + all[function].share.quantum);
        let elapsed = now.card.saturating_sub(self.since.card);
        self.since = now;
        let Some(mut elapsed) = elapsed.checked_rem(round) else {
            self.end_turn(all);
            return;
        };
        for _ in 0..=FUNCTIONS {
            if let Some(function) = self.turn.filter(|turn| reserved & turn.bit() != 0) {
                let credit = self.credit(all, function);
                let left = u64::try_from(*credit).unwrap_or(0);
                if elapsed < left {
                    *credit -= signed(elapsed);
                    return;
                }
                elapsed -= left;
            }
            self.pass(reserved, all);
        }
    }
}

/// Returns the first function of `set` after `last`, wrapping around.
#[allow(clippy::arithmetic_side_effects, reason = "the sum of at most 256 and 64")]
fn next(set: u64, last: u8) -> Option<Function> {
    let from = u32::from(last) + 1;
    let ahead = set.rotate_right(from).trailing_zeros();
    Function::new((from + ahead & 0x3f) as u8).filter(|_| set != 0)
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guc::functions::share::Share;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// The function with this number.
    const fn numbered(number: u8) -> Function {
        Function::new(number).unwrap()
    }

    /// Returns the time of both clocks if engine steps have used all of the time.
    fn at(ns: u64) -> Moment {
        Moment { card: ns, engine: ns }
    }

    /// Simulates one engine. The functions in `wants` always have work; `slow` is the preemption latency of each
    /// function. Returns the time used by each function in `until` ns.
    fn run(shares: &mut Functions, wants: u64, slow: &[u64; FUNCTIONS], until: u64) -> [u64; FUNCTIONS] {
        let reserved = functions(u64::MAX)
            .filter(|f| shares[*f].share.priority == Priority::Normal && shares[*f].share.quantum > 0)
            .fold(0, |set, f| set | f.bit());
        let mut rotation = DeficitRoundRobin::new(0);
        let mut used = [0; FUNCTIONS];
        let mut now = 0;
        while now < until {
            let turn = rotation.turn(at(now), wants, reserved, shares).expect("no function owns the turn");
            let working = wants & turn.bit() != 0;
            rotation.occupy(at(now), working.then_some(turn), (0, now), shares);
            let end = rotation.left(shares).map_or(until, |left| now + left).max(now + 1);
            let gone = end + if working { slow[turn.index()] } else { 0 };
            used[turn.index()] += gone - now;
            now = end;
            rotation.turn(at(now), wants, reserved, shares);
            now = gone;
            rotation.occupy(at(now), None, (0, now), shares);
        }
        used
    }

    fn shares(list: &[(u8, u64, Priority)]) -> Functions {
        let mut shares = Functions::default();
        for (function, quantum, priority) in list {
            shares[numbered(*function)].share = Share { quantum: *quantum, preemption_timeout: 0, priority: *priority };
        }
        shares
    }

    const AT_ONCE: [u64; FUNCTIONS] = [0; FUNCTIONS];

    /// Contract D.4: time is shared in proportion to the quanta; idle functions are skipped.
    #[test]
    fn by_quanta() {
        let mut shares =
            shares(&[(1, 10 * MS, Priority::Low), (2, 20 * MS, Priority::Low), (3, 10 * MS, Priority::Low)]);
        let used = run(&mut shares, 0b0110, &AT_ONCE, 300 * MS);
        assert_eq!((used[1], used[2], used[3]), (100 * MS, 200 * MS, 0));
    }

    /// A function that leaves late is charged exactly for the overrun in its later turns.
    #[test]
    fn overrun_is_paid_back() {
        let mut shares = shares(&[(1, 10 * MS, Priority::Low), (2, 10 * MS, Priority::Low)]);
        let mut slow = AT_ONCE;
        slow[2] = 36 * MS;
        let used = run(&mut shares, 0b0110, &slow, 10_000 * MS);
        assert!(used[1].abs_diff(used[2]) <= 46 * MS, "{} {}", used[1], used[2]);
    }

    /// Policy SCHED_IF_IDLE: an idle function keeps its turn, so that the share of the others does not change.
    #[test]
    fn sched_if_idle_keeps_turns_of_idle_functions() {
        let list: Vec<_> = (1..=4).map(|f| (f, 10 * MS, Priority::Normal)).collect();
        let used = run(&mut shares(&list), 0b10, &AT_ONCE, 400 * MS);
        assert_eq!(used[1], 100 * MS);
    }

    /// Policy SCHED_IF_IDLE: turns also elapse while no function has work.
    #[test]
    fn kept_turns_elapse_on_an_idle_engine() {
        let list: Vec<_> = (0..4).map(|f| (f, 10 * MS, Priority::Normal)).collect();
        let mut shares = shares(&list);
        let mut rotation = DeficitRoundRobin::new(0);
        let turn = |rotation: &mut DeficitRoundRobin, shares: &mut Functions, ms| {
            rotation.turn(at(ms * MS), 0b1111, 0b1111, shares)
        };
        assert_eq!(turn(&mut rotation, &mut shares, 0), Some(Function::PF));
        rotation.relax(at(5 * MS), &mut shares);
        assert_eq!(turn(&mut rotation, &mut shares, 47), Some(Function::PF));
        assert_eq!(rotation.left(&shares), Some(3 * MS));
        rotation.relax(at(48 * MS), &mut shares);
        assert_eq!(turn(&mut rotation, &mut shares, 75), Some(numbered(3)));
        assert_eq!(rotation.left(&shares), Some(5 * MS), "75 ms is 5 ms into the fourth turn");
    }

    /// K.5 SCHED_PRIORITY: a function of high priority gets a turn after each turn of another function; the others are
    /// not starved.
    #[test]
    fn high_functions_come_next() {
        let list = [(1, 10 * MS, Priority::Low), (2, 10 * MS, Priority::Low), (3, 10 * MS, Priority::High)];
        let used = run(&mut shares(&list), 0b1110, &AT_ONCE, 400 * MS);
        assert_eq!((used[1], used[2], used[3]), (100 * MS, 100 * MS, 200 * MS));
    }

    /// A function that was alone on the engine for longer than its quantum is preempted immediately and has no deficit.
    #[test]
    fn function_alone_beyond_its_quantum_has_no_deficit() {
        let mut shares = shares(&[(1, 10 * MS, Priority::Low), (2, 10 * MS, Priority::Low)]);
        let mut rotation = DeficitRoundRobin::new(0);
        rotation.enter(at(0), numbered(1), &mut shares);
        rotation.occupy(at(0), Some(numbered(1)), (0, 0), &mut shares);
        assert_eq!(rotation.turn(at(1000 * MS), 0b110, 0, &mut shares), Some(numbered(2)));
        rotation.occupy(at(1000 * MS), Some(numbered(2)), (0, 1000 * MS), &mut shares);
        assert_eq!(rotation.turn(at(1010 * MS), 0b110, 0, &mut shares), Some(numbered(1)));
        assert_eq!(rotation.left(&shares), None, "the other function still occupies the engine");
        rotation.occupy(at(1010 * MS), None, (0, 1010 * MS), &mut shares);
        rotation.turn(at(1010 * MS), 0b110, 0, &mut shares);
        assert_eq!(rotation.left(&shares), Some(10 * MS));
    }

    /// K.5 EXEC_QUANTUM 0: a function without a quantum is not preempted.
    #[test]
    fn unlimited_quantum() {
        let mut shares = shares(&[(1, 10 * MS, Priority::Low)]);
        let mut rotation = DeficitRoundRobin::new(0);
        assert_eq!(rotation.turn(at(0), 0b01, 0, &mut shares), Some(Function::PF));
        rotation.occupy(at(0), Some(Function::PF), (0, 0), &mut shares);
        assert_eq!(rotation.turn(at(100_000 * MS), 0b11, 0, &mut shares), Some(Function::PF));
        assert_eq!(rotation.turn(at(100_001 * MS), 0b10, 0, &mut shares), Some(numbered(1)));
    }

    /// Issue point 7 (c): a function with a context on the engine is charged in engine time. While the host does not
    /// run the engine's steps, it is not charged and keeps its turn. An idle turn is charged by the card's clock.
    #[test]
    fn a_turn_counts_engine_time() {
        let mut shares = shares(&[(1, 10 * MS, Priority::Low), (2, 10 * MS, Priority::Normal)]);
        let reserved = numbered(2).bit();
        let mut rotation = DeficitRoundRobin::new(0);
        assert_eq!(rotation.turn(at(0), 0b010, 0, &mut shares), Some(numbered(1)));
        rotation.occupy(at(0), Some(numbered(1)), (5, 700 * MS), &mut shares);
        assert_eq!(rotation.on(), 5);
        for (card, engine, turn, left) in [(500, 702, 1, Some(8 * MS)), (900, 709, 1, Some(MS)), (901, 710, 2, None)] {
            let now = Moment { card: card * MS, engine: engine * MS };
            assert_eq!(rotation.turn(now, 0b010, reserved, &mut shares), Some(numbered(turn)), "after {card} ms");
            assert_eq!(rotation.left(&shares), left, "after {card} ms");
        }
        rotation.occupy(Moment { card: 901 * MS, engine: 710 * MS }, None, (5, 710 * MS), &mut shares);
        let idle = |card: u64| Moment { card: card * MS, engine: 710 * MS };
        assert_eq!(rotation.turn(idle(902), 0b010, reserved, &mut shares), Some(numbered(2)));
        assert_eq!(rotation.left(&shares), Some(9 * MS));
        assert_eq!(rotation.turn(idle(911), 0b010, reserved, &mut shares), Some(numbered(1)));
    }

    proptest! {
        /// Over many rounds, no function gets more than its share, regardless of its quantum and of the time that its
        /// contexts take to leave. All of the time is used.
        #[test]
        fn no_function_exceeds_its_share(
            list in prop::collection::vec((1u64..30, 0u64..200), 2..12),
        ) {
            let mut shares = Functions::default();
            let mut slow = AT_ONCE;
            let mut wants = 0;
            let mut sum = 0;
            for (n, (quantum, late)) in list.iter().enumerate() {
                shares[functions(2 << n).next().unwrap()].share.quantum = quantum * MS;
                slow[n + 1] = late * MS;
                wants |= 1 << (n + 1);
                sum += quantum;
            }
            let until = 4000 * MS;
            let used = run(&mut shares, wants, &slow, until);
            prop_assert!(used.iter().sum::<u64>() >= until);
            for (n, (quantum, late)) in list.iter().enumerate() {
                let part = until * quantum / sum;
                // The last round is not complete, and its overruns have not been charged yet.
                let open = (3 * quantum + late) * MS;
                prop_assert!(used[n + 1] <= part + open, "{n}: {} of {part}", used[n + 1]);
            }
        }
    }
}
