// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Context switches: restore by executing the image, workaround batches during and after the restore, lite restore,
//! save, and updates of the position registers.

use arctic_sriov::number::{count, high, low, qword};

use super::addressing::image_register;
use super::image::{Cursor, Entry, Image, Load, Value};
use super::lrc::{Clocks, Lrc, Saved};
use super::running::{Pending, Phase, Restoring};
use super::stream::{ADDRESS, Batch, BatchEntry, LEVELS, ParserState, Ring, Workaround};
use super::streamer::{Flow, Streamer};
use super::{Halt, access, reg};
use crate::command::Requester;
use crate::command::gfx::Gfx;
use crate::command::mi::fields;
use crate::compute::ComputeState;
use crate::interrupts::memirq::Report;
use crate::memory::Fault;
use crate::registers::Kind;
use crate::registers::engine_fields::{BbPerCtxPtr, BbState, ContextControl, IndirectCtx, IndirectCtxOffset};
use crate::registers::observation::OAC;
use crate::topology::EngineClass;
use crate::trace::EventKind;

/// Dwords per cacheline.
const CACHELINE: usize = 16;

impl Streamer<'_> {
    pub(super) fn take_tail(&mut self) -> Result<(), Halt> {
        let tail = self.running.lrc.tail(&mut self.gam).map_err(Halt::Fault)?;
        self.running.tail_moved = false;
        self.running.position.ring.set_tail(tail.into());
        self.trace_event(|position| EventKind::LiteRestore { tail: position.ring.tail });
        Ok(())
    }

    /// Executes the ring context and, unless the ring context inhibits it, the engine context, with the workaround
    /// batches during and after it (V8-043, V8-044, V8-161, V8-162). Registers that the image does not load are set to
    /// their reset values, so a context does not observe the state of another.
    #[allow(clippy::arithmetic_side_effects, reason = "the field has 6 bits")]
    pub(super) fn restore(&mut self) -> Result<(), Halt> {
        let layout = self.gt.context_layout(self.id);
        let format = layout.format;
        let ring_context = format.engine_context;
        let image = self.running.lrc.read(&mut self.gam, layout).map_err(Halt::Fault)?;
        self.check(&image, ring_context)?;
        self.gt.start_context_clock(self.id);
        layout.clear(&self.gt.registers);
        self.running.tail_moved = false;
        self.running.report = None;
        self.running.mask_address = 0;
        self.running.compute = ComputeState::default();
        self.observed.clear();
        self.registers.set(reg::CURRENT_LRCA, low(self.running.load.descriptor));
        let mut restoring = Restoring {
            image,
            next: Cursor::default(),
            stack: [0; 2 * LEVELS],
            pushed: 0,
            mask: None,
            walker: None,
            inhibited: false,
        };
        self.execute_image(&mut restoring, ring_context).map_err(Halt::Fault)?;
        self.take_report(restoring.mask);
        restoring.inhibited = self.registers.fields::<ContextControl>().restore_inhibit();
        if !restoring.inhibited {
            self.check(&restoring.image, format.dwords)?;
        }
        self.running.position = ParserState::in_ring(self.ring());
        self.running.phase = Phase::Run;
        let indirect: IndirectCtx = self.registers.fields();
        let left = u32::from(indirect.cachelines()) * count(CACHELINE);
        if left == 0 {
            self.finish_restore(&mut restoring).map_err(Halt::Fault)?;
        } else {
            let pause = self.indirect_offset();
            self.execute_engine_context(&mut restoring, pause).map_err(Halt::Fault)?;
            let batch = Batch { ppgtt: false, address: indirect.address() };
            self.running.position.workaround = Some((Workaround::Indirect { left }, batch));
            self.running.restoring = Some(Box::new(restoring));
        }
        self.trace_event(|position| EventKind::Restore {
            ring: position.ring.start,
            head: position.ring.head,
            tail: position.ring.tail,
            batch: position.batches().last().map(|batch| batch.address),
        });
        // Commands of this context may read the position registers, which otherwise still show another context until
        // the end of the step.
        self.publish();
        Ok(())
    }

    /// Checks the image up to dword `until`. Reports an instruction error at the first command that the engine cannot
    /// execute (V8-007).
    fn check(&mut self, image: &Image, until: usize) -> Result<(), Halt> {
        image.check(self.gt.generation.engines, self.id, until).map_err(|at| {
            self.illegal(image.dword(at));
            Halt::IllegalCommand { header: image.dword(at), address: self.running.lrc.address(at) }
        })
    }

    /// Returns the dword of the image at which INDIRECT_CTX runs, the start of a cacheline of the engine context
    /// (V8-161, trap T16).
    #[allow(clippy::arithmetic_side_effects, reason = "a cacheline lies within the image")]
    fn indirect_offset(&self) -> usize {
        let cacheline = usize::from(self.registers.fields::<IndirectCtxOffset>().cacheline());
        let format = self.gt.generation.contexts;
        let within = format.engine_context / CACHELINE..format.dwords / CACHELINE;
        CACHELINE * if within.contains(&cacheline) { cacheline } else { format.indirect_ctx_offset }
    }

    /// Executes the engine context up to dword `until`. Fails only if an access is not answered; the whole restore is then
    /// to be repeated.
    fn execute_engine_context(&mut self, restoring: &mut Restoring, until: usize) -> Result<(), Fault> {
        if restoring.inhibited {
            return Ok(());
        }
        // A fault of an LRM ends this pass over the engine context but does not halt the context, unlike a fault in the
        // ring context.
        let executed = self.execute_image(restoring, until);
        if executed.is_err() && self.gam.unanswered() {
            self.running.phase = Phase::Restore;
            self.running.position.workaround = None;
            return executed;
        }
        Ok(())
    }

    /// Executes the rest of the restore after the indirect batch, if any, and enters the per-context batch, if any.
    fn finish_restore(&mut self, restoring: &mut Restoring) -> Result<(), Fault> {
        self.execute_engine_context(restoring, self.gt.generation.contexts.dwords)?;
        self.running.position = self.position(restoring);
        let resumed = match restoring.walker {
            Some(walker) if !restoring.inhibited && !Lrc::head_moved(&restoring.image) => self.resumed_walker(&walker),
            _ => {
                self.gt.parked.drop_context(self.owner());
                None
            }
        };
        self.running.resumed = resumed;
        if let Some(batch) = Batch::from_entry(self.registers.get64(reg::PRT_BB_STATE)) {
            self.running.position.interrupt(batch);
        }
        self.control_watchdog();
        self.restore_counters(restoring.inhibited)?;
        self.running.restored_at = low(self.gt.timestamp());
        let pointer: BbPerCtxPtr = self.registers.fields();
        let batch = Batch { ppgtt: false, address: pointer.address() };
        self.running.position.workaround = pointer.valid().then_some((Workaround::PerContext, batch));
        if self.running.position.workaround.is_none() {
            self.go_on_with_walker();
        }
        Ok(())
    }

    fn execute_image(&mut self, restoring: &mut Restoring, until: usize) -> Result<(), Fault> {
        while let Some(entry) = restoring.image.next(&mut restoring.next, until) {
            let load = match entry {
                Entry::Load(load) => load,
                Entry::Compute(Gfx::State(state), at, dwords) => {
                    self.running.compute.execute(state, restoring.image.dwords(at, dwords));
                    continue;
                }
                Entry::Compute(_, at, dwords) => {
                    restoring.walker = restoring.image.dwords(at, dwords).try_into().ok();
                    continue;
                }
            };
            let register =
                image_register(self.gt.generation.engines, self.id, load.register, fields::ADDRESSING.of(load.header));
            let value = match load.value {
                Value::Immediate(value) => value,
                // Address 0: not set up by software.
                Value::At(0) => continue,
                Value::At(address) => self.load_from_memory(&load, address)?,
            };
            self.restore_register(restoring, register, load.header, value);
        }
        Ok(())
    }

    fn load_from_memory(&mut self, load: &Load, address: u64) -> Result<u32, Fault> {
        self.running.mask_address = address;
        let space = self.space(fields::GLOBAL.is_set_in(load.header));
        self.gam.read_u32(space, address & ADDRESS)
    }

    /// Writes a register that the image loads. Registers of the context are writable for every requester. Other
    /// registers are written with the rights of the requester's ring (V8-043, V13-052).
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "the index is below 2 * LEVELS, counts do not overflow, and there is a clock for each engine"
    )]
    fn restore_register(&mut self, restoring: &mut Restoring, register: u32, header: u32, value: u32) {
        let own = self.registers.own(register);
        match own {
            reg::CTX_TIMESTAMP => {
                return self.gt.context_clock(self.id).set(self.gt.timestamp(), value);
            }
            // A free-running clock cannot be set back (V8-215).
            reg::TIMESTAMP | reg::TIMESTAMP_UDW => return,
            reg::IMR => {
                restoring.mask = Some(value);
                return;
            }
            reg::BB_STACK_WRITE_PORT => {
                restoring.stack[restoring.pushed % (2 * LEVELS)] = value;
                restoring.pushed += 1;
                return;
            }
            _ => {}
        }
        if self.class == EngineClass::Compute
            && let Some(number) = OAC.iter().position(|offset| *offset == register)
        {
            self.observed.oac[number] = value;
        }
        let registers = &self.gt.registers;
        let decoded = registers.decode(register);
        let kept = decoded.filter(|decoded| {
            decoded.engine.is_none_or(|engine| engine == self.id)
                && (decoded.register.scope.kept_by(self.gt.engine(self.id))
                    || decoded.engine.is_some() && self.gt.generation.contexts.in_ring_context(own))
        });
        match kept.map(|decoded| (decoded, decoded.register.kind)) {
            // Read-only for commands, but the image restores the saved value.
            Some((_, Kind::ReadOnly)) => registers.set_all(register, value),
            Some((decoded, kind)) => {
                let bytes = access::bytes_kept(header);
                let value = if bytes == 0 { value } else { registers.value(register) & bytes | value & !bytes };
                registers.write_all(register, decoded, kind, value);
                if matches!(own.wrapping_sub(reg::PDP0), 0 | 4) {
                    self.running.lrc.set_page_directory(self.registers.get64(reg::PDP0));
                }
            }
            None if self.requester() == Requester::PfKernel => self.write_register(register, value),
            None => self.counters.register_refusals += 1,
        }
    }

    /// Enables memory-based interrupts if the image loaded the mask from memory and specifies both pages (V8-049;
    /// contract C.3).
    fn take_report(&mut self, mask: Option<u32>) {
        let (status, source) = (self.registers.get(reg::INT_STATUS_RPT_PTR), self.registers.get(reg::INT_SRC_RPT_PTR));
        let report = mask.map(|enable| Report { status, source, enable });
        self.running.report = report.filter(|_| status != 0 && source != 0);
        if self.running.report.is_none() {
            self.registers.set(reg::INT_STATUS_RPT_PTR, 0);
            self.registers.set(reg::INT_SRC_RPT_PTR, 0);
        }
    }

    fn ring(&self) -> Ring {
        let [start, head, tail] =
            [reg::RING_START, reg::RING_HEAD, reg::RING_TAIL].map(|offset| self.registers.get(offset));
        Ring::new(start, self.registers.fields(), head.into(), tail.into())
    }

    /// Returns the position at which the context resumes: in its ring, or in the batch in which it was preempted
    /// (V8-163).
    #[allow(clippy::indexing_slicing, reason = "chunks of two")]
    fn position(&self, restoring: &Restoring) -> ParserState {
        let ring = self.running.position.ring;
        let present = BatchEntry::from(qword(self.registers.get(reg::BBADDR), self.registers.get(reg::BBADDR_UDW)));
        if restoring.inhibited || !present.valid() || Lrc::head_moved(&restoring.image) {
            return ParserState::in_ring(ring);
        }
        let mut stack = [0; LEVELS];
        for (entry, halves) in stack.iter_mut().zip(restoring.stack.chunks_exact(2)) {
            *entry = qword(halves[0], halves[1]);
        }
        let present = Batch { ppgtt: self.registers.fields::<BbState>().ppgtt(), address: present.address() };
        let started = qword(self.registers.get(reg::BB_START_ADDR), self.registers.get(reg::BB_START_ADDR_UDW));
        ParserState::in_batch(ring, &stack, present, started & ADDRESS)
    }

    /// Reports events in memory if the image enables it, otherwise in the function's interrupt registers (V13-262,
    /// V13-273).
    pub(super) fn signal(&mut self, bits: u16) -> Result<(), Fault> {
        if !self.running.load.function.is_vf() {
            let written = self.gt.write_status(&mut self.gam, self.id, bits);
            // Other faults are ignored: the driver has not mapped a status page.
            if written.is_err() && self.gam.unanswered() {
                return written;
            }
        }
        self.trace_event(|_| EventKind::Interrupt { bits });
        let interrupts = self.gt.interrupts_of(self.running.load.function);
        match self.running.report {
            Some(report) => {
                if report.write(&mut self.gam, self.gt.engine(self.id), bits)? {
                    interrupts.send();
                }
            }
            None => interrupts.raise_engine(self.id, bits),
        }
        Ok(())
    }

    /// Ends a workaround batch. Execution continues with the rest of the restore or at the resumed position.
    pub(super) fn end_workaround(&mut self) -> Result<(), Fault> {
        self.running.position.workaround = None;
        match self.running.restoring.take() {
            Some(mut restoring) => self.finish_restore(&mut restoring)?,
            None => {
                self.go_on_with_walker();
                self.running.loops.forget();
            }
        }
        Ok(())
    }

    /// MI_PRT_BATCH_BUFFER_START: starts a batch one level deeper. With Persistence Enable, each later restore of the
    /// context runs the batch again before the interrupted commands. Only the most recent such batch is recorded
    /// (V8-160). The command has the layout of MI_BATCH_BUFFER_START, with the additional field [`fields::PERSISTENT`].
    /// PRT_BB_STATE contains the address, the PPGTT flag (bit 1) and the valid flag (bit 0). Without Persistence Enable
    /// the command runs its batch and clears the record.
    pub(super) fn persistent_batch(&mut self, words: &[u32]) -> Flow {
        let [_, low, high, ..] = *words else { return Flow::Illegal };
        let target = access::address(low, high);
        let position = &mut self.running.position;
        let from_batch = position.batch().is_some();
        position.enter(target, fields::BATCH_SPACE.get(words) != 0, true);
        let batch = position.batch().copied().unwrap_or_default();
        self.set_own64(reg::PRT_BB_STATE, if fields::PERSISTENT.get(words) != 0 { batch.entry() } else { 0 });
        if from_batch && self.loops().jump(target) { Flow::Idle } else { Flow::Jump }
    }

    /// Saves the context and stops its clock.
    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine")]
    pub(super) fn save(&mut self) -> Result<(), Halt> {
        let now = self.gt.timestamp();
        let context = self.gt.stop_context_clock(self.id, now);
        let clocks = Clocks { context, card: low(now), restored: self.running.restored_at };
        self.publish();
        let position = &self.running.position;
        let registers = self.registers;
        if let Some(batch) = position.batches().last() {
            registers.set(reg::BB_START_ADDR, low(position.started));
            registers.set(reg::BB_START_ADDR_UDW, high(position.started));
            registers.set(reg::BB_ADD_DIFF, low(batch.address.wrapping_sub(position.started)));
        }
        // The next restore must include the engine context (V8-044).
        registers.set_fields(registers.fields::<ContextControl>().with_restore_inhibit(false));
        let ticket = self.ticket();
        let walker = match &self.running.pending {
            Some(Pending::Walker(walker)) => Some(walker.resume_words(ticket)),
            _ => None,
        };
        let (mask, compute) = (self.running.mask_address, &self.running.compute);
        let state = Saved { position, clocks, mask, compute, walker, oac: self.observed.oac };
        let layout = self.gt.context_layout(self.id);
        let saved = self.running.lrc.save(&mut self.gam, layout, &self.gt.registers, &state);
        let saved = saved.and_then(|()| self.save_counters());
        if saved.is_err() && self.gam.unanswered() {
            // The context stays on the engine.
            self.gt.start_context_clock(self.id);
            self.gt.context_clock(self.id).set(now, context);
        }
        if saved.is_ok() {
            self.park(ticket);
        }
        saved.map_err(Halt::Fault)
    }

    /// Updates the position registers. Called at the end of each step, not for each command.
    pub(super) fn publish(&self) {
        let position = &self.running.position;
        let set = |own, value| self.registers.set(own, value);
        set(reg::RING_HEAD, position.ring.head);
        set(reg::RING_TAIL, position.ring.tail);
        let address = position.address();
        set(reg::ACTHD, low(address));
        set(reg::ACTHD_UDW, high(address));
        // During a restore the registers hold the batch state of the image, which is replaced when the restore is
        // complete.
        if self.running.restoring.is_some() {
            return;
        }
        let batch = position.batches().last();
        let at = batch.map_or(0, |batch| BatchEntry::from(batch.address).with_valid(true).into());
        set(reg::BBADDR, low(at));
        set(reg::BBADDR_UDW, high(at));
        self.registers.set_fields(BbState::new().with_ppgtt(batch.is_some_and(|batch| batch.ppgtt)));
    }
}
