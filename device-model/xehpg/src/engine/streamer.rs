// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The command streamer: fetches, decodes and executes the commands of the loaded context.

use arctic_sriov::number::byte;

use super::counters::Counters;
use super::fetch::{Fetched, LONGEST, Window};
use super::running::{Pending, Phase, Running};
use super::skipped::SkippedCommand;
use super::stream::{ParserState, Workaround};
use super::{Halt, Outcome, Submitter, error, reg, word};
use crate::blitter::{Blit, Progress};
use crate::command::gfx::Gfx;
use crate::command::mi::{self, MiCommand, Predication};
use crate::command::{Command, Mi, Origin, Requester};
use crate::gt::Gt;
use crate::memory::{Fault, Gam};
use crate::profile::Unmodelled;
use crate::registers::EngineRegisters;
use crate::registers::engine_fields::{ContextControl, GfxMode};
use crate::topology::{EngineClass, EngineId};
use crate::trace::{EventKind, KEPT_DWORDS};

/// Maximum number of bytes that a blit processes in one step, which takes well under a millisecond at memory bandwidth.
const BLIT_BYTES: usize = 2 << 20;
/// Maximum host time of a step in nanoseconds, enforced when the clock is checked.
const STEP_TIME: u64 = 500_000;

/// Action of the parser after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Continue with the next command.
    Next,
    /// Continue at another address. Prefetched commands are invalid.
    Jump,
    /// An iteration of a loop completed without progress.
    Idle,
    /// The command's condition is not met. It is retried later.
    Wait,
    /// The engine was reset and the context continues. The step ends.
    Recovered,
    /// A preemption request is pending at an arbitration point.
    Preempt,
    /// The command cannot be executed.
    Illegal,
    /// The model does not execute the command, and the context must not continue after it.
    Unmodelled,
}

/// One step of one engine.
pub(super) struct Streamer<'s> {
    pub gt: &'s Gt,
    /// Start of the step, in ns of the card's clock.
    pub started: u64,
    pub gam: Gam<'s>,
    pub id: EngineId,
    pub class: EngineClass,
    /// The engine's registers.
    pub registers: EngineRegisters<'s>,
    pub running: &'s mut Running,
    pub counters: &'s mut Counters,
    pub skipped: &'s mut Option<SkippedCommand>,
}

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
            self.running.halted = Some(halt);
            if let Halt::Fault(fault) = &halt {
                self.page_fault(fault);
            }
            Outcome::Halted(halt)
        });
        if matches!(outcome, Outcome::Complete | Outcome::Preempted | Outcome::Halted(_)) {
            self.tell(|position| EventKind::Stop { outcome: format!("{outcome:x?}"), head: position.ring.head });
        }
        self.count_watchdog();
        self.publish();
        outcome
    }

    /// Executes commands until the step ends.
    fn parse(&mut self, window: &mut Window, budget: i64) -> Result<Outcome, Halt> {
        let mut budget = budget;
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
            let progress = self.step_pending()?;
            return Ok((progress == Progress::More).then_some(Outcome::More));
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
            self.tell_command(window.ahead(), dwords);
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

    /// Records a trace event if tracing is enabled.
    #[inline]
    pub fn tell(&self, what: impl FnOnce(&ParserState) -> EventKind) {
        let event = || (self.gt.engine(self.id).name, what(&self.running.position));
        self.gt.trace.record_of_engine(self.running.load.function, event);
    }

    /// Traces the command at the parser's position. A wait command is traced once, regardless of retries.
    #[cold]
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "there are at most LEVELS batches, the persistent batch and a workaround batch"
    )]
    fn tell_command(&mut self, ahead: &[u32], dwords: u32) {
        let address = self.running.position.address();
        if self.running.told == Some((address, self.gt.trace.followers())) {
            return;
        }
        self.running.told = None;
        self.tell(|position| EventKind::Command {
            address,
            ppgtt: !position.privileged(),
            level: byte(position.batches().len()) + u8::from(position.workaround.is_some()),
            length: dwords,
            dwords: ahead.iter().take((dwords as usize).min(KEPT_DWORDS)).copied().collect(),
        });
    }

    fn trace_wait(&mut self) {
        let told = Some((self.running.position.address(), self.gt.trace.followers()));
        if self.gt.trace.on() && self.running.told != told {
            self.running.told = told;
            self.tell(|_| EventKind::Wait);
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
                    self.end_workaround();
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

    /// Reports an instruction error (V8-095).
    pub(super) fn illegal(&mut self, header: u32) -> Halt {
        self.counters.illegal = self.counters.illegal.saturating_add(1);
        self.instruction_error(header);
        Halt::IllegalCommand { header, address: self.running.position.address() }
    }

    fn instruction_error(&mut self, header: u32) {
        self.registers.set(reg::IPEHR, header);
        self.error(error::INSTRUCTION);
    }

    /// Skips a command that the model has no unit for: counts it for its function, and notes the first one of a context
    /// in a batch of user space.
    #[cold]
    fn skip(&mut self, command: &Command) -> Flow {
        let function = self.running.load.function;
        let origin = Origin::new(self.running.position.privileged());
        self.counters.skipped.count(function, origin, self.gt.generation.commands.number(command));
        self.gt.skipped(function).count(origin);
        let stopped = origin == Origin::User && self.gt.unmodelled == Unmodelled::Fault;
        self.tell(|_| EventKind::Skipped { command: command.name().into(), origin, stopped });
        if origin == Origin::User && !self.running.skipped {
            self.running.skipped = true;
            *self.skipped = Some(SkippedCommand { name: command.name(), stopped });
        }
        if stopped { Flow::Unmodelled } else { Flow::Next }
    }

    #[inline]
    fn execute(&mut self, command: &Command, words: &[u32]) -> Result<Flow, Fault> {
        match command {
            Command::Mi(command) => {
                let header = word(words, 0);
                if self.withheld(command, header, self.predicated()) {
                    return Ok(Flow::Next);
                }
                let requester = self.requester();
                if command.rule(requester).forbids_operand(words) {
                    self.refuse(requester);
                    return Ok(Flow::Next);
                }
                if words.len() < usize::from(command.least) {
                    return Ok(Flow::Illegal);
                }
                self.execute_mi(command.action, words)
            }
            Command::Gfx(gfx) => {
                // Both levels of predication: the global predicate, then the command's predicate (V8-143).
                let own = gfx.predicated(word(words, 0));
                let skipped = own && self.registers.get(reg::PREDICATE_RESULT) & 1 == 0;
                if self.predicated() || skipped {
                    return Ok(Flow::Next);
                }
                match gfx.action {
                    Gfx::PipeControl if words.len() >= 6 => self.pipe_control(words),
                    Gfx::PipeControl => Ok(Flow::Illegal),
                    Gfx::StateOnly => Ok(self.skip(command)),
                }
            }
            Command::Blit(command) => {
                if self.predicated() {
                    return Ok(Flow::Next);
                }
                let swctrl = self.registers.get(reg::BCS_SWCTRL);
                match Blit::new(command, words, swctrl) {
                    Ok(blit) => {
                        self.running.pending = Some(Pending::Blit(blit));
                        Ok(Flow::Next)
                    }
                    Err(error) => {
                        self.counters.refuse_blit(command.name, error);
                        Ok(Flow::Illegal)
                    }
                }
            }
        }
    }

    fn execute_mi(&mut self, action: Mi, words: &[u32]) -> Result<Flow, Fault> {
        match action {
            Mi::StoreDataImm => self.store_data_imm(words),
            Mi::LoadRegisterImm => self.load_register_imm(words),
            Mi::LoadRegisterReg => self.load_register_reg(words),
            Mi::LoadRegisterMem => self.load_register_mem(words),
            Mi::StoreRegisterMem => self.store_register_mem(words),
            Mi::CopyMemMem => self.copy_mem_mem(words),
            Mi::StoreDataIndex => self.store_data_index(words),
            Mi::UpdateGtt => self.update_gtt(words),
            Mi::Math => self.math(words.get(1..).unwrap_or_default()),
            Mi::Atomic => self.atomic(words),
            Mi::FlushDw => self.flush_dw(words),
            Mi::ReportPerfCount => self.report_perf_count(words),
            Mi::ReportHead => self.report_head(),
            Mi::SemaphoreWait => self.semaphore_wait(words),
            Mi::BatchBufferStart => self.batch_buffer_start(words),
            Mi::PrtBatchBufferStart => Ok(self.persistent_batch(words)),
            Mi::ConditionalBatchBufferEnd => self.conditional_batch_buffer_end(words),
            Mi::BatchBufferEnd => Ok(self.batch_buffer_end(false)),
            Mi::Noop => Ok(self.noop(word(words, 0))),
            Mi::ArbCheck => Ok(if self.may_leave() { Flow::Preempt } else { Flow::Next }),
            Mi::ArbOnOff => {
                self.running.arbitration = word(words, 0) & 1 != 0;
                Ok(Flow::Next)
            }
            Mi::UserInterrupt => self.user_interrupt(),
            Mi::SetPredicate => Ok(self.set_predicate(word(words, 0))),
            Mi::Predicate => Ok(self.predicate(word(words, 0))),
            Mi::SemaphoreSignal => Ok(self.semaphore_signal()),
            // Without a display no event is pending, so the wait completes immediately (V8-108, IVB-143).
            Mi::WaitForEvent | Mi::NoEffect => Ok(Flow::Next),
            Mi::StateOnly => Ok(mi::lookup(self.gt.generation.commands.mi, word(words, 0))
                .map_or(Flow::Next, |command| self.skip(&Command::Mi(command)))),
        }
    }

    /// Returns whether predication or missing privilege turns the command into a MI_NOOP (V8-140, V8-171).
    #[inline(always)]
    fn withheld(&mut self, command: &MiCommand, header: u32, predicated: bool) -> bool {
        if predicated {
            let heeds = match command.predication {
                Predication::Global => true,
                Predication::Explicit => header & 1 << 15 != 0,
                Predication::Never => false,
            };
            if heeds {
                return true;
            }
        }
        command.may_be_restricted(header) && self.forbidden(command, header)
    }

    fn forbidden(&mut self, command: &MiCommand, header: u32) -> bool {
        let requester = self.requester();
        let forbidden = command.rule(requester).forbids(header);
        if forbidden {
            self.refuse(requester);
        }
        forbidden
    }

    /// Counts a command or part of a command that is denied to its requester. In a non-privileged batch this is an
    /// error (V8-170).
    #[cold]
    #[allow(clippy::arithmetic_side_effects, reason = "a 64-bit count does not overflow")]
    pub fn refuse(&mut self, requester: Requester) {
        match requester {
            Requester::VfKernel => self.counters.virtual_refusals += 1,
            _ => {
                self.counters.privilege_violations += 1;
                self.error(error::PRIVILEGE);
            }
        }
    }

    /// Returns the requester of the commands being executed.
    #[inline]
    pub fn requester(&self) -> Requester {
        let privileged = self.running.position.privileged() || self.unchecked();
        Requester::new(privileged, self.running.load.function.is_vf())
    }

    /// Returns whether privilege checks are disabled in GFX_MODE (Privilege Check Disable). Non-privileged batches then
    /// have the rights of the ring of their function (V8-170).
    #[inline]
    pub fn unchecked(&self) -> bool {
        self.registers.fields::<GfxMode>().privilege_check_disable()
    }

    /// Returns whether commands at the current position are predicated off by MI_SET_PREDICATE_RESULT. Workaround
    /// batches of a restore are not predicated.
    #[inline]
    pub fn predicated(&self) -> bool {
        self.registers.get(reg::SET_PREDICATE_RESULT) & 1 != 0 && self.running.position.workaround.is_none()
    }

    /// Returns whether a preemption request is honoured at an arbitration point (V8-076, V8-078).
    #[inline]
    fn may_leave(&self) -> bool {
        self.running.preempt && self.running.arbitration && self.running.position.workaround.is_none()
    }

    /// Returns whether an unsatisfied wait switches to the next element of the queue (V8-081). Requires that
    /// arbitration is enabled and that the context does not inhibit synchronous switches. Contexts of the GuC remain
    /// loaded.
    fn may_yield(&self) -> bool {
        self.running.load.submitter == Submitter::Execlist
            && !self.registers.fields::<ContextControl>().inhibit_synchronous_switch()
            && self.running.arbitration
            && self.running.position.workaround.is_none()
    }

    /// Executes a bounded part of the pending operation.
    fn step_pending(&mut self) -> Result<Progress, Halt> {
        let space = self.running.lrc.space;
        let progress = match &mut self.running.pending {
            None => return Ok(Progress::Done),
            Some(Pending::Blit(blit)) => blit.step(&mut self.gam, space, BLIT_BYTES).map_err(Halt::Fault)?,
        };
        if progress == Progress::Done {
            self.running.pending = None;
            self.running.loops.effect();
        }
        Ok(progress)
    }
}

/// Returns whether the command is skipped without reading its dwords.
fn skipped(command: &Command) -> bool {
    matches!(command, Command::Gfx(gfx) if gfx.action == Gfx::StateOnly)
}
