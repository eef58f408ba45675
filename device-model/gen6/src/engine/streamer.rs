// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fetch and dispatch of commands, and the position in the ring.

use arctic_base::host::{DmaView, Function};
use arctic_base::trace::{EventKind, KEPT_DWORDS};

use super::blit::BLIT_BYTES;
use super::store::StorePages;
use super::{Current, Engine, Fetch, Flow, Outcome};
use crate::command::mi::fields;
use crate::command::{Command, Mi, MiCommand, Pipeline};
use crate::gt::Gt;
use crate::memory::{Fault, Memory, PAGE, Space, Tlb};
use crate::registers::engine::{
    ACTHD, BB_ADDR, BB_ADDR_DIFF, BB_PPGTT, BB_STATE, CTL, CTL_PAGES, CTL_REPORT, CTL_WAIT, DMA_FADD, HEAD,
    HEAD_OFFSET, HEAD_WRAPS, IPEHR, IPEIR, MI_MODE, MODE_INVALIDATE_POINTER, NOPID, START, UHPTR, VALID,
};
use crate::registers::interrupt::USER_INTERRUPT;

/// Time for which an access that the client does not answer is tried again, in nanoseconds of the card's time.
const UNANSWERED: u64 = 30_000_000_000;

impl Engine {
    /// Executes at most `budget` commands, and blits up to a limit of their bytes. `view` is the guest's memory.
    pub fn step(&mut self, gt: &Gt, view: &dyn DmaView, budget: u32) -> Outcome {
        let memory = Memory::new(&gt.ggtt, view).with_tlb(self.tlb.take().unwrap_or_default());
        let outcome = self.commands(gt, &memory, budget);
        // Translations that were invalidated since the last command are not shown.
        memory.follow(gt.invalidations(self.id));
        let unanswered = memory.unanswered();
        self.tlb = memory.into_tlb().inspect(|tlb| gt.store_latest_pages(self.id, tlb));
        if unanswered {
            // It may have cached the absence of a translation that could not be read.
            self.tlb = Some(Tlb::default());
        } else {
            self.retry_time.end();
        }
        outcome
    }

    /// Returns whether the client has not answered the access at which the current command has failed. The command is then
    /// to be executed again later; after a limited time, the access is dropped.
    #[cold]
    pub(super) fn tries_again(&mut self, gt: &Gt, memory: &Memory<'_>) -> bool {
        memory.unanswered() && self.retry_time.may_repeat(gt.now(), UNANSWERED)
    }

    fn commands(&mut self, gt: &Gt, memory: &Memory<'_>, budget: u32) -> Outcome {
        let mut outcome = Outcome::Idle;
        let mut left = budget;
        let mut mapped = StorePages::default();
        self.blit_budget = BLIT_BYTES;
        gt.set_in_command(self.id, self.in_command());
        while left > 0 {
            if !gt.engine_runnable(self.id) {
                return outcome;
            }
            let stores = self.stores(gt, memory, &mut mapped, left);
            if stores > 0 {
                left = left.saturating_sub(stores);
                outcome = Outcome::Progress;
                continue;
            }
            left = left.saturating_sub(1);
            outcome = match self.command(gt, memory) {
                Flow::Next | Flow::Jumped => Outcome::Progress,
                Flow::Pause => return Outcome::Progress,
                Flow::Wait => return Outcome::Waiting,
                Flow::Halt => return Outcome::Halted,
            };
            gt.set_in_batch(self.id, self.in_batch());
        }
        outcome
    }

    /// Start and size of the ring in bytes.
    pub(super) fn ring(&self, gt: &Gt) -> (u32, u32) {
        let pages = CTL_PAGES.get(self.value(gt, CTL)).saturating_add(1);
        (self.value(gt, START), pages.saturating_mul(PAGE))
    }

    /// Address of the next command, and where it is fetched.
    pub(super) fn position(&self, gt: &Gt) -> (u32, Fetch) {
        if let Some(batch) = self.batch {
            let space = if batch.ppgtt { self.ppgtt(gt) } else { Space::Ggtt };
            return (batch.next, Fetch { space, ring: None });
        }
        let (start, size) = self.ring(gt);
        let head = HEAD_OFFSET.of(HEAD_OFFSET.get(self.value(gt, HEAD)));
        // A head beyond the ring is taken as its offset in it.
        let at = start.wrapping_add(head.checked_rem(size).unwrap_or(0));
        (at, Fetch { space: Space::Ggtt, ring: Some((start, size)) })
    }

    /// Executes the next command.
    fn command(&mut self, gt: &Gt, memory: &Memory<'_>) -> Flow {
        memory.follow(gt.invalidations(self.id));
        memory.bypass(gt.bypasses_translation());
        if self.pending.is_some() {
            return self.continue_blit(gt, memory);
        }
        let (address, fetch) = self.position(gt);
        gt.registers.set(self.offset(gt, ACTHD), address);
        gt.registers.set(self.offset(gt, DMA_FADD), address);
        self.publish_batch(gt);
        let header = match memory.read32(fetch.space, address) {
            Ok(header) => header,
            Err(_) if self.tries_again(gt, memory) => return Flow::Wait,
            Err(fault) => return self.halt(gt, fault),
        };
        gt.registers.set(self.offset(gt, IPEHR), header);
        let class = gt.generation.engine(self.id).class;
        let Some(command) = gt.generation.commands.decode(header, class) else {
            return self.instruction_error(gt, address);
        };
        let length = command.dwords(header);
        if length < command.least() {
            return self.instruction_error(gt, address);
        }
        let current = Current { header, length, address, name: command.name(), gt, memory, fetch };
        self.trace(&current);
        let flow = match self.dispatch(&current, command) {
            Ok(flow) => flow,
            Err(_) if self.tries_again(gt, memory) => Flow::Wait,
            Err(fault) => {
                // The access is dropped; the engine continues.
                gt.record_fault(self.id, &fault);
                Flow::Next
            }
        };
        if flow == Flow::Next {
            self.advance(gt, memory, length);
        }
        flow
    }

    /// Executes a command, or nothing if it is not allowed in the current batch (IVB-133).
    fn dispatch(&mut self, current: &Current<'_>, command: Command) -> Result<Flow, Fault> {
        match command {
            Command::Mi(row) if self.forbidden(current, row)? => Ok(Flow::Next),
            Command::Mi(row) => self.mi(current, row.action),
            Command::Blit(row) => self.blit(current, row),
            Command::Pipeline(row) => match row.action {
                Pipeline::PipeControl(global) => self.pipe_control(current, global),
                Pipeline::Draw => {
                    self.draw(current);
                    Ok(Flow::Next)
                }
                Pipeline::Skipped => {
                    self.skip(current.name);
                    Ok(Flow::Next)
                }
            },
        }
    }

    /// Returns whether the command is not allowed in the current batch (IVB-133, IVB-134).
    fn forbidden(&self, current: &Current<'_>, row: &MiCommand) -> Result<bool, Fault> {
        let rule = row.rule(self.requester());
        let by_operand = rule.depends_on_operand() && rule.forbids_operand(current.dword(1)?);
        Ok(by_operand || rule.forbids(current.header))
    }

    fn mi(&mut self, current: &Current<'_>, action: Mi) -> Result<Flow, Fault> {
        match action {
            Mi::Noop => {
                if current.has(fields::WRITE_NOPID) {
                    current.gt.registers.set(self.offset(current.gt, NOPID), fields::NOPID.get(&[current.header]));
                }
            }
            Mi::UserInterrupt => self.interrupt(current, USER_INTERRUPT),
            Mi::Flush => self.flush(current),
            Mi::FlushLines => self.flush_lines(current),
            Mi::SuspendFlush => current.gt.suspend_flushes(self.id, current.has(fields::SUSPEND)),
            Mi::Arbitration => self.arbitration = current.has(fields::ARBITRATION),
            Mi::Predicate => self.predicate(current),
            // Only of the ring (IVB-146).
            Mi::ReportHead if self.batch.is_none() => self.report_head(current.gt, current.memory)?,
            Mi::ReportHead => {}
            Mi::WaitForEvent => return Ok(self.wait_for_event(current)),
            Mi::ArbCheck => return Ok(self.arbitration_check(current)),
            Mi::BatchEnd => return Ok(self.batch_end(current)),
            Mi::BatchStart => return self.batch_start(current),
            Mi::ConditionalEnd => return self.conditional_end(current),
            Mi::Semaphore => return self.semaphore(current),
            Mi::SetContext => self.set_context(current)?,
            Mi::StoreData => self.store_data(current)?,
            Mi::StoreIndex => self.store_index(current)?,
            Mi::LoadRegister => self.load_register(current)?,
            Mi::UpdateGtt => self.update_gtt(current)?,
            Mi::StoreRegister => self.store_register(current)?,
            Mi::LoadRegisterMemory => self.load_register_memory(current)?,
            Mi::FlushDw => self.flush_dw(current)?,
            Mi::Skipped => self.skip(current.name),
        }
        Ok(Flow::Next)
    }

    /// Continues behind a command. The ring's head wraps at its end, which is counted (IVB-076).
    pub(super) fn advance(&mut self, gt: &Gt, memory: &Memory<'_>, length: u32) {
        let bytes = length.wrapping_mul(4);
        if let Some(batch) = &mut self.batch {
            batch.next = batch.next.wrapping_add(bytes);
            return;
        }
        let (_, size) = self.ring(gt);
        let (old, new) = gt.registers.update(self.offset(gt, HEAD), |old| {
            let head = HEAD_OFFSET.of(HEAD_OFFSET.get(old)).saturating_add(bytes);
            let wraps = HEAD_WRAPS.get(old);
            match head.checked_sub(size) {
                None => HEAD_WRAPS.of(wraps) | HEAD_OFFSET.mask() & head,
                Some(head) => HEAD_WRAPS.of(wraps.wrapping_add(1)) | HEAD_OFFSET.mask() & head,
            }
        });
        // The head is reported when it enters the next part of the ring (IVB-078); code 2 is not of ring mode.
        let part = match CTL_REPORT.get(self.value(gt, CTL)) {
            1 => 64 << 10,
            3 => 128 << 10,
            _ => 0,
        };
        let part_of = |head| HEAD_OFFSET.of(HEAD_OFFSET.get(head)).checked_div(part);
        if part != 0 && (part_of(old) != part_of(new) || HEAD_WRAPS.get(old) != HEAD_WRAPS.get(new)) {
            // A status page without a translation drops the write.
            let _ = self.report_head(gt, memory);
        }
        let pointer = self.value(gt, UHPTR);
        if VALID.is_set(pointer)
            && MODE_INVALIDATE_POINTER.is_set(self.value(gt, MI_MODE))
            && HEAD_OFFSET.mask() & (pointer ^ new) == 0
        {
            gt.registers.clear_bits(self.offset(gt, UHPTR), VALID.mask());
        }
    }

    /// Sets the registers that describe the batch (IVB-103..105).
    pub(super) fn publish_batch(&self, gt: &Gt) {
        let (address, state, difference) = match self.batch {
            Some(batch) => {
                let state = if batch.ppgtt { BB_PPGTT.mask() } else { 0 };
                (batch.next & !3 | VALID.mask(), state, batch.next.wrapping_sub(batch.start))
            }
            None => (self.value(gt, BB_ADDR) & !VALID.mask(), self.value(gt, BB_STATE), 0),
        };
        gt.registers.set(self.offset(gt, BB_ADDR), address);
        gt.registers.set(self.offset(gt, BB_STATE), state);
        gt.registers.set(self.offset(gt, BB_ADDR_DIFF), difference & !3);
    }

    /// Reports events of the engine.
    pub(super) fn interrupt(&self, current: &Current<'_>, bits: u32) {
        current.gt.trace.record_of_engine(Function::PF, || {
            let name = current.gt.generation.engine(self.id).name;
            (name, EventKind::Interrupt { bits: u16::try_from(bits).unwrap_or(u16::MAX) })
        });
        current.gt.update_status(self.id, bits);
    }

    /// The commands cannot be fetched.
    fn halt(&mut self, gt: &Gt, fault: Fault) -> Flow {
        gt.record_fault(self.id, &fault);
        Flow::Halt
    }

    /// The header is of no command: a fatal error, which a reset clears (IVB-093).
    fn instruction_error(&mut self, gt: &Gt, address: u32) -> Flow {
        gt.registers.set(self.offset(gt, IPEIR), address);
        gt.instruction_error(self.id);
        Flow::Halt
    }

    /// Returns whether software has ended the wait for an event by the ring's control register (IVB-078).
    pub(super) fn wait_ended(&self, gt: &Gt) -> bool {
        self.waiting && !CTL_WAIT.is_set(self.value(gt, CTL))
    }

    fn trace(&self, current: &Current<'_>) {
        current.gt.trace.record_of_engine(Function::PF, || {
            let kept = current.length.min(u32::try_from(KEPT_DWORDS).unwrap_or(1));
            let event = EventKind::Command {
                address: current.address.into(),
                ppgtt: current.fetch.space != Space::Ggtt,
                level: self.batch.is_some().into(),
                length: current.length,
                dwords: (0..kept).map_while(|n| current.dword(n).ok()).collect(),
            };
            (current.gt.generation.engine(self.id).name, event)
        });
    }
}
