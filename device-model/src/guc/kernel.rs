//! The GuC's kernel while it runs: what it has been told, and its steps.

use crate::engine::EngineReport;
use crate::gt::Gt;
use crate::world::Function;

use super::Step;
use super::action;
use super::ads::Ads;
use super::adverse::{Adverse, Kind};
use super::ctb::{Channel, Location};
use super::doorbell::{self, DoorbellTable};
use super::firmware::Firmware;
use super::hxg::{Error, MAX_DWORDS, Outgoing, Reply, Type, action as action_of};
use super::scheduler::{Scheduler, Turn};
use super::slpc::Slpc;

/// Requests taken from the CT buffer in one step.
const REQUESTS_A_STEP: usize = 32;
/// When to try again while the host's ring is full, in nanoseconds.
const RING_FULL_PAUSE: u64 = 200_000;
/// Complaints about requests that are written to the log in one boot.
const COMPLAINTS: u32 = 32;

/// Requests that did not go as the host may have wished, for observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Requests carried out.
    pub done: u64,
    /// Requests that were answered with an error.
    pub failed: u64,
    /// Requests for actions that do not exist.
    pub unknown: u64,
    /// Messages that were no requests.
    pub malformed: u64,
}

/// State of one boot.
pub struct Kernel {
    /// What was loaded.
    pub firmware: Firmware,
    /// Contexts and engines.
    pub scheduler: Scheduler,
    /// Doorbells and their contexts.
    pub doorbells: DoorbellTable,
    /// What VFs do that costs the others.
    pub adverse: Adverse,
    /// TLB invalidations (their sequence numbers) that are to be answered.
    pub invalidations: Vec<u32>,
    /// Share of compute beside render: quantum in ms and percent.
    pub render_compute_yield: Option<(u32, u32)>,
    /// Where the rings are to be: host to GuC, GuC to host.
    pub rings: (Location, Location),
    /// The rings in use.
    pub channel: Option<Channel>,
    /// How requests went.
    pub counters: Counters,
    slpc: Slpc,
    log_control: u32,
}

impl Kernel {
    /// A kernel that has just come up with the data of `ads`; `loads` is [`Scheduler::loads`] of the last boot.
    pub fn new(gt: &Gt, firmware: Firmware, ads: Ads, loads: u16) -> Self {
        Kernel {
            firmware,
            doorbells: DoorbellTable::boot(&gt.doorbells),
            adverse: Adverse::default(),
            scheduler: Scheduler::new(ads, &firmware, loads),
            invalidations: Vec::new(),
            render_compute_yield: None,
            rings: Default::default(),
            channel: None,
            counters: Counters::default(),
            slpc: Slpc::default(),
            log_control: 0,
        }
    }

    /// Drops contexts and rings; configuration of the boot stays (CLIENT_SOFT_RESET).
    pub fn soft_reset(&mut self, turn: &mut Turn<'_>) {
        self.scheduler.drop_all(turn);
        self.doorbells.release_function(&turn.gt.doorbells, turn.function);
        self.invalidations.clear();
        self.channel = None;
        self.rings = Default::default();
    }

    /// `function` is the cause of something adverse: the PF may have to hear of it (contract D.10).
    pub fn note(&mut self, turn: &mut Turn<'_>, function: Function, kind: Kind) {
        if let Some(message) = self.adverse.note(function, kind, turn.now) {
            turn.tell(Function::PF, message);
        }
    }

    /// An SLPC request.
    pub fn slpc_request(&mut self, turn: &mut Turn<'_>, data: &[u32]) -> Reply {
        let reply = self.slpc.request(turn.gt, &mut turn.own(), data);
        self.slpc.show(turn.gt, self.scheduler.busy());
        reply
    }

    /// UK_LOG_ENABLE_LOGGING: kept; there is no firmware log.
    pub fn set_log_control(&mut self, control: u32) -> Reply {
        self.log_control = control;
        Ok(0)
    }

    /// One step: reports of engines, requests of the host, schedules.
    pub fn step(&mut self, turn: &mut Turn<'_>, reports: &[EngineReport], rang: u64) -> Step {
        let _ = rang;
        let was_busy = self.scheduler.busy();
        for report in reports {
            self.scheduler.report(turn, report);
        }
        let more = self.take_requests(turn);
        doorbell::serve(self, turn);
        action::finish_invalidations(self, turn);
        let next = self.scheduler.schedule(turn);
        let busy = self.scheduler.busy();
        if busy != was_busy {
            self.slpc.show(turn.gt, busy);
        }
        let (interrupt, waiting) = self.send(turn);
        let retry = waiting.then_some(turn.now.saturating_add(RING_FULL_PAUSE));
        let more = more.then_some(turn.now);
        Step { next: [next, retry, more].into_iter().flatten().min(), interrupts: interrupt.into(), messages: 0 }
    }

    /// Moves messages to the host's ring; tells whether it has new ones, and whether some found no room.
    fn send(&mut self, turn: &mut Turn<'_>) -> (bool, bool) {
        let Some(channel) = &mut self.channel else {
            turn.out.clear();
            return (false, false);
        };
        turn.out.drain(..).for_each(|(_, message)| channel.post(message));
        (channel.flush(&mut turn.own()), channel.waiting() > 0)
    }

    /// Takes requests out of the host's ring; true where there may be more.
    fn take_requests(&mut self, turn: &mut Turn<'_>) -> bool {
        let Some(mut channel) = self.channel.take() else { return false };
        let mut room = [0; MAX_DWORDS];
        let before = channel.h2g.offset();
        let mut more = channel.waiting() == 0;
        for _ in 0..REQUESTS_A_STEP {
            if !more {
                break;
            }
            match channel.h2g.receive(&mut turn.own(), &mut room) {
                None => more = false,
                Some(request) if request.format != 0 => self.counters.malformed += 1,
                Some(request) => self.take_request(turn, request.fence, request.hxg),
            }
        }
        channel.h2g.publish_head(&mut turn.own(), before);
        self.channel = Some(channel);
        more
    }

    fn take_request(&mut self, turn: &mut Turn<'_>, fence: u16, hxg: &[u32]) {
        let [header, payload @ ..] = hxg else { return };
        let kind = Type::of(*header).filter(|_| header >> 31 == 0);
        let code = action_of(*header);
        let (Some(kind @ (Type::Request | Type::FastRequest | Type::Event)), known) =
            (kind, kind.and_then(|_| action::carry_out(self, turn, code, payload)))
        else {
            self.counters.malformed += 1;
            return;
        };
        let reply = match known {
            Some(reply) => reply,
            None => {
                self.counters.unknown += 1;
                self.complain(code, Error::UnknownAction);
                // A sender that wants no answer could make nothing of this one.
                if kind == Type::Request {
                    turn.tell(turn.function, Outgoing::reply(fence, Err(Error::UnknownAction)));
                }
                return;
            }
        };
        match reply {
            Ok(_) => self.counters.done += 1,
            Err(error) => {
                self.counters.failed += 1;
                self.complain(code, error);
            }
        }
        match kind {
            Type::Request => turn.tell(turn.function, Outgoing::reply(fence, reply)),
            Type::FastRequest if reply.is_err() => turn.tell(turn.function, Outgoing::reply(fence, reply)),
            _ => {}
        }
    }

    fn complain(&self, code: u16, error: Error) {
        if self.counters.failed + self.counters.unknown <= u64::from(COMPLAINTS) {
            log::warn!("GuC action {code:#06x} failed: {error:?}");
        }
    }
}
