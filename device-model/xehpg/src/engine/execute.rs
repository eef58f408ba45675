// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Execution of a decoded command: rights, predication, and the choice of its handler.

use super::running::Pending;
use super::skipped::SkippedCommand;
use super::streamer::{Flow, Streamer};
use super::{Halt, error, reg, word};
use crate::blitter::Blit;
use crate::command::gfx::Gfx;
use crate::command::mi::fields;
use crate::command::mi::{self, MiCommand, Predication};
use crate::command::{Command, Mi, Origin, Requester};
use crate::memory::Fault;
use crate::profile::Unmodelled;
use crate::registers::engine_fields::PredicateResult;
use crate::trace::EventKind;

impl Streamer<'_> {
    /// Reports an instruction error (V8-095).
    pub(super) fn illegal(&mut self, header: u32) -> Halt {
        self.counters.illegal = self.counters.illegal.saturating_add(1);
        self.instruction_error(header);
        Halt::IllegalCommand { header, address: self.running.position.address() }
    }

    pub(super) fn instruction_error(&mut self, header: u32) {
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
        self.trace_event(|_| EventKind::Skipped { command: command.name().into(), origin, stopped });
        if origin == Origin::User && !self.running.skipped {
            self.running.skipped = true;
            *self.skipped = Some(SkippedCommand { name: command.name(), stopped });
        }
        if stopped { Flow::Unmodelled } else { Flow::Next }
    }

    #[inline]
    pub(super) fn execute(&mut self, command: &Command, words: &[u32]) -> Result<Flow, Fault> {
        match command {
            Command::Mi(command) => {
                let header = word(words, 0);
                if self.withheld(command, header, self.predicated()) {
                    return Ok(Flow::Next);
                }
                let requester = self.requester();
                if command.rule(requester).forbids_operand(word(words, 1)) {
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
                let skipped = own && !self.registers.fields::<PredicateResult>().result();
                if self.predicated() || skipped {
                    return Ok(Flow::Next);
                }
                match gfx.action {
                    Gfx::PipeControl if words.len() >= 6 => self.pipe_control(words),
                    Gfx::L3Control if words.len() >= 5 => self.l3_control(words),
                    Gfx::PipeControl | Gfx::L3Control => Ok(Flow::Illegal),
                    Gfx::State(state) => {
                        self.running.compute.execute(state, words);
                        Ok(Flow::Next)
                    }
                    Gfx::Walker => Ok(self.compute_walker(words)),
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

    pub(super) fn execute_mi(&mut self, action: Mi, words: &[u32]) -> Result<Flow, Fault> {
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
            Mi::BatchBufferEnd => self.batch_buffer_end(false),
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
    pub(super) fn withheld(&mut self, command: &MiCommand, header: u32, predicated: bool) -> bool {
        if predicated {
            let heeds = match command.predication {
                Predication::Global => true,
                Predication::Explicit => fields::PREDICATE.is_set_in(header),
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
}
