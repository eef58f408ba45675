// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Explores every order of events: the PF's guest, the VMM that executes writes late or refuses them, the replies,
//! resets and clients. The search covers all states that can be reached.

use std::collections::HashSet;

use super::*;

const ASSIGNED: BarAddresses = [0x10_0000_0000, 0x20_0000_0000];
const SIZING: BarAddresses = [0xffff_ffff_ff00_0000, 0xffff_ffff_e000_0000];

/// The function of the VF in the VMM, the writes that the VMM has received, and the card's state.
#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    placement: Placement,
    /// `None`: the VMM has no such function.
    function: Option<Registers>,
    /// A machine reset has reached the PF, but not this VF yet. The guest does not run.
    resetting: bool,
    /// Writes that the VMM has not executed, oldest first. The last one is the one in flight, unless it was answered.
    queue: Vec<Step>,
    reply: Option<Outcome>,
    wanted: Option<BarAddresses>,
}

impl World {
    fn new(attached: bool) -> Self {
        let mut placement = Placement::new(1);
        if attached {
            placement.attach(0, true);
        }
        let function = Some(Registers::default());
        World { placement, function, resetting: false, queue: Vec::new(), reply: None, wanted: None }
    }

    fn waiting(&self) -> bool {
        self.placement.flight.is_some()
    }

    fn want(&mut self, wanted: Option<BarAddresses>) {
        self.wanted = wanted;
        self.placement.want(wanted.as_slice());
    }

    fn begin(&mut self) -> bool {
        let Some((vf, step)) = self.placement.begin() else { return false };
        assert_eq!(vf, 0);
        match step {
            Step::MemoryOff => {}
            Step::Bars(bars) => assert_eq!(Some(bars), self.wanted, "only the current addresses are written"),
            Step::MemoryOn => assert!(self.wanted.is_some(), "nothing is decoded while VF MSE is off"),
        }
        self.queue.push(step);
        true
    }

    /// The VMM takes the oldest write.
    fn execute(&mut self, outcome: Outcome) {
        let awaited = self.queue.len() == 1 && self.waiting() && self.reply.is_none();
        let step = self.queue.remove(0);
        if outcome == Outcome::Done
            && let Some(function) = &mut self.function
        {
            match step {
                Step::MemoryOff => function.memory_space = false,
                Step::Bars(bars) => function.bars = bars,
                Step::MemoryOn => function.memory_space = true,
            }
            self.observe();
        }
        if awaited {
            self.reply = Some(outcome);
        }
    }

    /// The VMM passes the function's registers on, if the VF has a client.
    fn observe(&mut self) {
        let Some(Registers { memory_space, bars }) = self.function else { return };
        self.placement.memory_space(0, memory_space);
        bars.iter().enumerate().for_each(|(n, bar)| self.placement.bar(0, n, *bar));
    }

    fn finish(&mut self) {
        if let Some(outcome) = self.reply.take() {
            self.placement.finish(outcome);
        }
    }

    /// The states that follow by one event. `attached`: the VF has a client that passes its writes on.
    fn successors(&self, attached: bool) -> Vec<World> {
        let mut all = Vec::new();
        let mut add = |event: &dyn Fn(&mut World)| {
            let mut next = self.clone();
            event(&mut next);
            all.push(next);
        };
        add(&|world| world.finish());
        if self.waiting() && self.reply.is_none() {
            // The card does not wait any longer; the write remains in the queue.
            add(&|world| {
                world.placement.finish(Outcome::Unanswered);
            });
        }
        if self.resetting {
            add(&|world| world.reset_function());
            return all;
        }
        for wanted in [None, Some(ASSIGNED), Some(SIZING)] {
            add(&|world| world.want(wanted));
        }
        if self.queue.len() < 2 {
            add(&|world| {
                world.begin();
            });
            add(&|world| {
                if world.begin() {
                    world.queue.pop();
                    world.placement.finish(Outcome::Unsent);
                }
            });
        }
        if !self.queue.is_empty() {
            add(&|world| world.execute(Outcome::Done));
            add(&|world| world.execute(Outcome::Refused));
        }
        add(&|world| {
            world.want(None);
            world.placement.machine_reset();
            // Bus mastering is off after a reset.
            while !world.queue.is_empty() {
                world.execute(Outcome::Refused);
            }
            world.resetting = true;
        });
        add(&|world| {
            world.want(None);
            world.placement.client_gone();
            (world.queue, world.reply) = (Vec::new(), None);
            world.reset_function();
        });
        if attached {
            for on in [false, true] {
                add(&|world| {
                    // The guest writes the VF's command register.
                    if let Some(function) = &mut world.function {
                        function.memory_space = on;
                    }
                    world.observe();
                });
            }
            add(&|world| {
                let plugged = world.function.is_none();
                world.function = plugged.then(Registers::default);
                world.placement.attach(0, plugged);
            });
        }
        all
    }

    fn reset_function(&mut self) {
        self.resetting = false;
        if let Some(function) = &mut self.function {
            *function = Registers::default();
        }
        self.observe();
    }

    /// Executes everything that is due. Returns the number of writes.
    fn settle(mut self) -> (World, usize) {
        if self.resetting {
            self.reset_function();
        }
        for writes in 0..8 {
            while !self.queue.is_empty() {
                self.execute(Outcome::Done);
            }
            if self.waiting() && self.reply.is_none() {
                panic!("the card waits for a reply that does not come");
            }
            self.finish();
            if !self.begin() {
                return (self, writes);
            }
        }
        panic!("writes without end");
    }
}

/// From every state, once the VMM executes what it receives, the function decodes exactly what the PF's SR-IOV
/// capability requires, and no more writes are due.
#[test]
fn every_order_of_events_ends_with_the_wanted_bars() {
    for attached in [false, true] {
        let mut seen = HashSet::new();
        let mut new = vec![World::new(attached)];
        let mut most = 0;
        while let Some(world) = new.pop() {
            if !seen.insert(world.clone()) {
                continue;
            }
            let (quiet, writes) = world.clone().settle();
            most = most.max(writes);
            if let Some(function) = quiet.function {
                let decoded = function.memory_space.then_some(function.bars);
                assert_eq!(
                    decoded, quiet.wanted,
                    "attached: {attached}, {:?} after {:?}",
                    quiet.placement, world.queue
                );
            }
            assert!(quiet.placement.vfs[0].placed() && !quiet.placement.withheld(0), "{:?}", quiet.placement);
            new.extend(world.successors(attached));
        }
        assert!(seen.len() > 500, "{}", seen.len());
        assert!(most <= 4, "{most}: off, BARs, on, and one that confirms");
    }
}

/// The record is not that of before the update: the addresses return to the previous ones while an update is in flight.
#[test]
fn addresses_that_return_during_an_update_are_written_again() {
    let mut world = World::new(false);
    world.want(Some(ASSIGNED));
    world = world.settle().0;
    world.want(Some(SIZING));
    assert!(world.begin());
    world.want(Some(ASSIGNED));
    world.execute(Outcome::Done);
    let (world, writes) = world.settle();
    assert_eq!((world.function.unwrap().bars, writes), (ASSIGNED, 1), "memory space on again");
}

#[test]
fn a_vf_is_withheld_while_the_vmm_does_not_execute_the_writes() {
    let mut placement = Placement::new(2);
    assert!(!placement.withheld(0) && !placement.due(), "not enabled");
    placement.want(&[ASSIGNED]);
    assert_eq!(placement.begin(), Some((0, Step::Bars(ASSIGNED))));
    assert!(!placement.withheld(0), "in flight");
    placement.finish(Outcome::Unsent);
    assert!(!placement.withheld(0) && placement.due(), "nothing was refused");
    placement.begin();
    placement.finish(Outcome::Refused);
    assert!(placement.withheld(0) && !placement.withheld(1));
    placement.begin();
    placement.finish(Outcome::Unanswered);
    assert!(placement.withheld(0));
    placement.begin();
    placement.finish(Outcome::Done);
    assert!(!placement.withheld(0), "the VMM executes the writes");
    placement.give_up();
    assert!(placement.withheld(0));
    placement.want(&[]);
    placement.want(&[ASSIGNED]);
    assert!(!placement.withheld(0), "enabled again");
    placement.give_up();
    while placement.begin().is_some() {
        placement.finish(Outcome::Done);
    }
    assert!(!placement.withheld(0), "in place");
}

/// A write that the VMM has refused has changed nothing, so nothing has to be undone.
#[test]
fn a_vf_that_was_never_placed_is_not_written_when_it_is_disabled() {
    let mut placement = Placement::new(1);
    for _ in 0..3 {
        placement.want(&[ASSIGNED]);
        placement.begin();
        placement.finish(Outcome::Refused);
        placement.want(&[]);
        assert!(!placement.due());
    }
}
