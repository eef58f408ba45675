// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A step of the command streamer: fetches and decodes the commands of the loaded context until the step ends.

use arctic_sriov::number::byte;

use super::fetch::{Fetched, LONGEST, Window};
use super::running::{Pending, Phase};
use super::stream::Workaround;
use super::streamer::{Flow, Pace, STEP_TIME, Streamer};
use super::{Halt, Outcome};
use crate::blitter::Progress;
use crate::command::gfx::Gfx;
use crate::command::mi;
use crate::command::{Command, Mi};
use crate::trace::{EventKind, KEPT_DWORDS};

/// Maximum number of bytes that a blit processes in one step, which takes well under a millisecond at memory bandwidth.
const BLIT_BYTES: usize = 2 << 20;
/// Time for which accesses that the client does not answer are tried again, in nanoseconds of the card's clock; as for CT
/// buffers. A context that is to leave the engine is given less: others wait for it.
const UNANSWERED: u64 = 30_000_000_000;
const UNANSWERED_IN_PREEMPTION: u64 = 100_000_000;

impl Streamer<'_> {
    /// Executes about `budget` commands of the context.
    pub fn run(&mut self, window: &mut Window, budget: u32) -> Outcome {
        self.running.wait_ends = None;
        self.running.waits_at = None;
        let result = match self.running.phase {
            Phase::Restore => self.restore(),
            Phase::Run if self.running.tail_moved => self.take_tail(),
            Phase::Run => Ok(()),
        };
        let outcome = result.and_then(|()| self.parse(window, i64::from(budget)));
        let outcome = outcome.and_then(|outcome| match outcome {
            Outcome::Complete | Outcome::Preempted => self.save().map(|()| outcome),
            _ => Ok(outcome),
        });
        let outcome = outcome.unwrap_or_else(|halt| {
            if matches!(halt, Halt::Fault(_)) && self.tries_again() {
                return self.leave_unanswered();
            }
            self.running.halted = Some(halt);
            if let Halt::Fault(fault) = &halt {
                self.page_fault(fault);
            }
            Outcome::Halted(halt)
        });
        if !self.gam.unanswered() {
            self.running.retry_time.end();
        }
        if matches!(outcome, Outcome::Complete | Outcome::Preempted | Outcome::Halted(_)) {
            self.trace_event(|position| EventKind::Stop { outcome: format!("{outcome:x?}"), head: position.ring.head });
        }
        self.count_watchdog();
        self.publish();
        self.gt.count_memory_traffic(self.gam.take_traffic());
        outcome
    }

    /// Returns whether the access at which the step has ended was not answered by a function's client and is tried again in
    /// the next step: for a limited time.
    #[cold]
    fn tries_again(&mut self) -> bool {
        if !self.gam.unanswered() {
            return false;
        }
        let limit = if self.running.preempt { UNANSWERED_IN_PREEMPTION } else { UNANSWERED };
        self.running.retry_time.may_repeat(self.started, limit)
    }

    /// Ends a step with an unanswered access. The next one begins with the same command. The time until then is the
    /// context's, which leaves the engine if it is to and can be saved: its image may be in local memory.
    #[cold]
    fn leave_unanswered(&mut self) -> Outcome {
        let between_commands = self.running.restored() && self.running.pending.is_none();
        let leaves = between_commands && self.may_leave() && self.save().is_ok();
        if leaves { Outcome::Preempted } else { Outcome::Spinning }
    }

    /// Executes commands until the step ends.
    fn parse(&mut self, window: &mut Window, budget: i64) -> Result<Outcome, Halt> {
        let together = self.running.load.members != 0;
        let in_ring = self.running.position.batch().is_none();
        let mut budget = if together && in_ring { 1 } else { budget };
        // With tracing enabled, all commands are executed on the slow path, one by one.
        let followed = self.gt.trace.on();
        loop {
            if self.running.pending.is_none() && !followed {
                let halted = self.parse_straight(window, &mut budget);
                self.running.position.advance(window.lag());
                halted?;
            }
            if budget <= 0 || self.gt.clock.now().saturating_sub(self.started) > STEP_TIME {
                return Ok(Outcome::More);
            }
            if let Some(outcome) = self.parse_one(window, &mut budget)? {
                return Ok(outcome);
            }
            if together && !in_ring && self.running.position.batch().is_none() {
                return Ok(Outcome::More);
            }
        }
    }

    /// Fast path: executes prefetched commands that do not change the control flow. The caller updates the parser
    /// position once afterwards.
    // Not inlined: in one function with the slow path, its values do not fit into registers.
    #[inline(never)]
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "`at` is at most the window's length, and the budget has 64 bits"
    )]
    fn parse_straight(&mut self, window: &mut Window, budget: &mut i64) -> Result<(), Halt> {
        let ahead = window.ahead();
        let commands = self.gt.generation.commands.mi;
        let mut at = 0;
        let mut left = *budget;
        // Commands that write registers update this value. Host writes of the register take effect at the next
        // prefetch.
        let mut predicated = self.predicated();
        let result = loop {
            let rest = ahead.get(at..).unwrap_or_default();
            let Some(&header) = rest.first().filter(|header| **header >> 29 == 0 && left > 0) else { break Ok(()) };
            let Some(command) = mi::lookup(commands, header).filter(|command| command.action.straight()) else {
                break Ok(());
            };
            let len = command.length.dwords(header) as usize;
            let Some(words) = rest.get(..len) else { break Ok(()) };
            if !self.withheld(command, header, predicated) {
                // Fast path for page table and fence writes, without the call of `execute_mi`.
                let flow = match command.action {
                    Mi::StoreDataImm => self.store_data_imm(words),
                    _ if len < usize::from(command.least) => break Ok(()),
                    action => {
                        let flow = self.execute_mi(action, words);
                        predicated = self.predicated();
                        flow
                    }
                };
                match flow {
                    Ok(Flow::Next) => {}
                    Ok(_) => break Ok(()),
                    Err(fault) => break Err(Halt::Fault(fault)),
                }
            }
            left -= 1 + (len / 16) as i64;
            at += len;
        };
        *budget = left;
        window.consume(at);
        result
    }

    /// Slow path: executes one command of any kind, or prefetches. A returned outcome ends the step.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a command takes less than 2^29 off the budget, which has 64 bits"
    )]
    fn parse_one(&mut self, window: &mut Window, budget: &mut i64) -> Result<Option<Outcome>, Halt> {
        if self.running.pending.is_some() {
            return Ok(match self.step_pending()? {
                Pace::Done => None,
                Pace::More => Some(Outcome::More),
                Pace::Stalled => Some(Outcome::Spinning),
                Pace::Leave => Some(Outcome::Preempted),
            });
        }
        let Some(header) = window.header() else {
            return self.refill(window, 1);
        };
        let Some(command) = self.gt.generation.commands.decode(header, self.class) else {
            return Err(self.illegal(header));
        };
        let dwords = command.dwords(header);
        let len = dwords as usize;
        if window.available() < len {
            if skipped(&command) {
                if self.running.position.source(self.running.lrc.space).dwords < len {
                    return Ok(Some(Outcome::Complete));
                }
            } else if len > LONGEST {
                return Err(self.illegal(header));
            } else if let Some(outcome) = self.refill(window, len)? {
                return Ok(Some(outcome));
            } else if window.header() != Some(header) {
                // The command was changed in memory, or the indirect batch ended. Decode again.
                return Ok(None);
            }
        }
        if matches!(command, Command::Blit(_)) && self.may_leave() {
            return Ok(Some(Outcome::Preempted));
        }
        *budget -= 1 + i64::from(dwords / 16);
        if self.gt.trace.on() {
            self.trace_command(window.ahead(), dwords);
        }
        self.running.position.advance(dwords);
        let flow = self.execute(&command, window.take(len)).map_err(|fault| {
            self.running.position.rewind(dwords);
            Halt::Fault(fault)
        })?;
        Ok(match flow {
            Flow::Next => None,
            Flow::Jump => {
                window.flush();
                None
            }
            Flow::Idle => Some(Outcome::Spinning),
            Flow::Recovered => {
                window.flush();
                Some(Outcome::More)
            }
            Flow::Wait => {
                self.running.position.rewind(dwords);
                self.trace_wait();
                self.running.waits_at = Some(header);
                Some(if self.may_leave() || self.may_yield() { Outcome::Preempted } else { Outcome::Waiting })
            }
            Flow::Preempt => Some(Outcome::Preempted),
            Flow::Illegal => {
                self.running.position.rewind(dwords);
                return Err(self.illegal(header));
            }
            Flow::Unmodelled => {
                self.running.position.rewind(dwords);
                self.instruction_error(header);
                return Err(Halt::Unmodelled { header, address: self.running.position.address() });
            }
        })
    }

    /// Traces the command at the parser's position. A wait command is traced once, regardless of retries.
    #[cold]
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "there are at most LEVELS batches, the persistent batch and a workaround batch"
    )]
    fn trace_command(&mut self, ahead: &[u32], dwords: u32) {
        let address = self.running.position.address();
        if self.running.last_traced == Some((address, self.gt.trace.followers())) {
            return;
        }
        self.running.last_traced = None;
        self.trace_event(|position| EventKind::Command {
            address,
            ppgtt: !position.privileged(),
            level: byte(position.batches().len()) + u8::from(position.workaround.is_some()),
            length: dwords,
            dwords: ahead.iter().take((dwords as usize).min(KEPT_DWORDS)).copied().collect(),
        });
    }

    fn trace_wait(&mut self) {
        let current = Some((self.running.position.address(), self.gt.trace.followers()));
        if self.gt.trace.on() && self.running.last_traced != current {
            self.running.last_traced = current;
            self.trace_event(|_| EventKind::Wait);
        }
    }

    /// Prefetches commands. A returned outcome ends the step.
    fn refill(&mut self, window: &mut Window, need: usize) -> Result<Option<Outcome>, Halt> {
        self.auto_report_head().map_err(Halt::Fault)?;
        let source = self.running.position.source(self.running.lrc.space);
        match window.fill(&mut self.gam, &source, need).map_err(Halt::Fault)? {
            Fetched::Ready => Ok(None),
            Fetched::Empty => match self.running.position.workaround {
                Some((Workaround::Indirect { .. }, _)) => {
                    self.end_workaround().map_err(Halt::Fault)?;
                    Ok(None)
                }
                _ => Ok(Some(Outcome::Complete)),
            },
            Fetched::Null(bytes) => {
                self.running.position.skip(bytes);
                Ok(Some(Outcome::Spinning))
            }
        }
    }

    /// Executes a bounded part of the pending operation.
    fn step_pending(&mut self) -> Result<Pace, Halt> {
        let space = self.running.lrc.space;
        match &mut self.running.pending {
            None => Ok(Pace::Done),
            Some(Pending::Walker(_)) => self.step_walker(),
            Some(Pending::Blit(blit)) => match blit.step(&mut self.gam, space, BLIT_BYTES).map_err(Halt::Fault)? {
                Progress::More => Ok(Pace::More),
                Progress::Done => {
                    self.running.pending = None;
                    self.running.loops.effect();
                    Ok(Pace::Done)
                }
            },
        }
    }
}

/// Returns whether the command is skipped without reading its dwords.
fn skipped(command: &Command) -> bool {
    matches!(command, Command::Gfx(gfx) if gfx.action == Gfx::StateOnly)
}
