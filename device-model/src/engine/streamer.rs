//! The command streamer: fetches, decodes and executes the commands of one loaded context.

use vm_memory::VolatileSlice;

use super::counters::Counters;
use super::fetch::{Fetched, LONGEST, Window};
use super::id::{EngineClass, EngineId};
use super::lrc::{Image, Lrc, dword};
use super::stream::{Batch, Loops, Position, Workaround};
use super::whitelist::{self, Wanted};
use super::{Halt, Load, Outcome};
use crate::blitter::{Blit, Progress};
use crate::command::gfx::Gfx;
use crate::command::mi::{self, MiCommand, Predication, Privilege};
use crate::command::{Command, Mi};
use crate::gt::Gt;
use crate::interrupts::CS_ERROR;
use crate::memory::{Access, Fault, Gam, Space, Span};
use crate::registers::REGISTER_BYTES;

/// Offsets from an engine's base of the registers that the streamer itself keeps (xe: xe_engine_regs.h).
pub(super) mod reg {
    pub const RING_TAIL: u32 = 0x30;
    pub const RING_HEAD: u32 = 0x34;
    pub const RING_START: u32 = 0x38;
    pub const RING_CTL: u32 = 0x3c;
    pub const ACTHD_UDW: u32 = 0x5c;
    pub const IPEHR: u32 = 0x68;
    pub const ACTHD: u32 = 0x74;
    pub const NOPID: u32 = 0x94;
    pub const INT_SRC_RPT_PTR: u32 = 0xa4;
    pub const IMR: u32 = 0xa8;
    pub const INT_STATUS_RPT_PTR: u32 = 0xac;
    pub const EIR: u32 = 0xb0;
    pub const EMR: u32 = 0xb4;
    pub const ESR: u32 = 0xb8;
    pub const BBADDR: u32 = 0x140;
    pub const BB_OFFSET: u32 = 0x158;
    pub const BBADDR_UDW: u32 = 0x168;
    pub const PR_CTR_CTRL: u32 = 0x178;
    pub const PR_CTR_THRSH: u32 = 0x17c;
    pub const WPARID: u32 = 0x21c;
    pub const CURRENT_LRCA: u32 = 0x240;
    pub const CONTEXT_CONTROL: u32 = 0x244;
    pub const PDP0: u32 = 0x270;
    pub const TIMESTAMP: u32 = 0x358;
    pub const TIMESTAMP_UDW: u32 = 0x35c;
    pub const CTX_TIMESTAMP: u32 = 0x3a8;
    pub const MI_ADDRESS_OFFSET: u32 = 0x3b4;
    pub const SET_PREDICATE_RESULT: u32 = 0x3b8;
    pub const PREDICATE_RESULT_2: u32 = 0x3bc;
    pub const PREDICATE_SRC0: u32 = 0x400;
    pub const PREDICATE_SRC1: u32 = 0x408;
    pub const PREDICATE_DATA: u32 = 0x410;
    pub const PREDICATE_RESULT: u32 = 0x418;
    pub const PREDICATE_RESULT_1: u32 = 0x41c;
    pub const GPR: u32 = 0x600;
}

/// EIR, EMR, ESR bit 0 (i915: I915_ERROR_INSTRUCTION).
const INSTRUCTION_ERROR: u32 = 1 << 0;
/// Bytes of blits in one step: at memory speed well under a millisecond.
const BLIT_BYTES: usize = 2 << 20;
/// Host time after which a step ends at the next look at the clock, in nanoseconds.
const STEP_TIME: u64 = 500_000;
/// Header bits with which an engine-relative address below 4 KiB is meant (contract F.4).
const ENGINE_BLOCK: u32 = 0x1000;

/// How far a loaded context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The image has not been read yet.
    Restore,
    /// Commands are executed.
    Run,
}

/// What an engine keeps of its loaded context between steps.
pub(super) struct Running {
    pub load: Load,
    pub lrc: Lrc,
    pub position: Position,
    pub halted: Option<Halt>,
    pub preempt: bool,
    pub tail_moved: bool,
    phase: Phase,
    per_context: u32,
    arbitration: bool,
    loops: Loops,
    blit: Option<Blit>,
    /// Ticks at which the watchdog was started, by this context (V8-165).
    pub(super) watchdog: Option<u64>,
}

impl Running {
    pub fn new(load: Load) -> Self {
        Running {
            load,
            lrc: Lrc::new(load.descriptor),
            position: Position::default(),
            halted: None,
            preempt: false,
            tail_moved: false,
            phase: Phase::Restore,
            per_context: 0,
            arbitration: true,
            loops: Loops::default(),
            blit: None,
            watchdog: None,
        }
    }

    /// Whether the image has been read: before that there is nothing to save.
    pub fn restored(&self) -> bool {
        self.phase == Phase::Run
    }
}

/// What the parser does after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Goes on with the next command.
    Next,
    /// Goes on elsewhere: what was read ahead is void.
    Jump,
    /// Went round a loop that gets nowhere.
    Idle,
    /// The command's condition does not hold: it is tried again later.
    Wait,
    /// An arbitration point with a preemption request.
    Preempt,
    /// The command cannot be carried out.
    Illegal,
}

/// One step of one engine.
pub(super) struct Streamer<'s> {
    pub gt: &'s Gt,
    pub gam: Gam<'s>,
    pub id: EngineId,
    pub class: EngineClass,
    pub base: u32,
    pub running: &'s mut Running,
    pub counters: &'s mut Counters,
}

impl Streamer<'_> {
    /// Runs the context for about `budget` commands.
    pub fn run(&mut self, window: &mut Window, budget: u32) -> Outcome {
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
            Outcome::Halted(halt)
        });
        self.publish();
        outcome
    }

    /// Executes commands up to something that ends the step.
    fn parse(&mut self, window: &mut Window, budget: i64) -> Result<Outcome, Halt> {
        let started = self.gt.clock.now();
        let mut budget = budget;
        loop {
            if self.running.blit.is_none() {
                let halted = self.parse_straight(window, &mut budget);
                self.running.position.advance(window.lag());
                halted?;
            }
            if budget <= 0 || self.gt.clock.now() - started > STEP_TIME {
                return Ok(Outcome::More);
            }
            if let Some(outcome) = self.parse_one(window, &mut budget)? {
                return Ok(outcome);
            }
        }
    }

    /// Executes the commands that the parser goes straight on behind, as long as they have been read ahead; the
    /// position follows afterwards, all at once.
    #[inline]
    fn parse_straight(&mut self, window: &mut Window, budget: &mut i64) -> Result<(), Halt> {
        let ahead = window.ahead();
        let mut at = 0;
        let mut left = *budget;
        // Only commands that write registers change it; the host's writes are seen at the next fetch.
        let mut predicated = self.predicated();
        let result = loop {
            let rest = ahead.get(at..).unwrap_or_default();
            let Some(&header) = rest.first().filter(|header| **header >> 29 == 0 && left > 0) else { break Ok(()) };
            let Some(command) = mi::lookup(header).filter(|command| command.action.straight()) else { break Ok(()) };
            let len = command.length.dwords(header) as usize;
            let Some(words) = rest.get(..len) else { break Ok(()) };
            if !self.withheld(command, header, predicated) {
                // Page tables and fences are written by this one: it goes without the call.
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

    /// Executes one command of any kind, or reads ahead; an outcome means that the step ends here.
    fn parse_one(&mut self, window: &mut Window, budget: &mut i64) -> Result<Option<Outcome>, Halt> {
        if self.running.blit.is_some() {
            let progress = self.step_blit()?;
            return Ok((progress == Progress::More).then_some(Outcome::More));
        }
        let Some(header) = window.header() else {
            return self.refill(window, 1);
        };
        let Some(command) = Command::decode(header, self.class) else {
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
                // Changed meanwhile, or the end of an indirect batch: decoded anew.
                return Ok(None);
            }
        }
        if matches!(command, Command::Blit(_)) && self.may_leave() {
            return Ok(Some(Outcome::Preempted));
        }
        *budget -= 1 + i64::from(dwords / 16);
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
            Flow::Idle => Some(Outcome::Waiting),
            Flow::Wait => {
                self.running.position.rewind(dwords);
                Some(if self.may_leave() { Outcome::Preempted } else { Outcome::Waiting })
            }
            Flow::Preempt => Some(Outcome::Preempted),
            Flow::Illegal => {
                self.running.position.rewind(dwords);
                return Err(self.illegal(header));
            }
        })
    }

    /// Reads ahead; an outcome means that the step ends here.
    fn refill(&mut self, window: &mut Window, need: usize) -> Result<Option<Outcome>, Halt> {
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
                Ok(Some(Outcome::Waiting))
            }
        }
    }

    /// The instruction error: ESR, and EIR with its interrupt where EMR lets it through (V8-089, V8-095).
    fn illegal(&mut self, header: u32) -> Halt {
        self.counters.illegal += 1;
        self.gt.registers.set(self.base + reg::IPEHR, header);
        self.gt.registers.set(self.base + reg::ESR, self.own(reg::ESR) | INSTRUCTION_ERROR);
        if self.own(reg::EMR) & INSTRUCTION_ERROR == 0 {
            self.gt.registers.set(self.base + reg::EIR, self.own(reg::EIR) | INSTRUCTION_ERROR);
            self.gt.interrupts.raise_engine(self.id, CS_ERROR);
        }
        Halt::IllegalCommand { header, address: self.running.position.address() }
    }

    #[inline]
    fn execute(&mut self, command: &Command, words: &[u32]) -> Result<Flow, Fault> {
        match command {
            Command::Mi(command) => {
                let header = words[0];
                if self.withheld(command, header, self.predicated()) {
                    return Ok(Flow::Next);
                }
                if words.len() < usize::from(command.least) {
                    return Ok(Flow::Illegal);
                }
                self.execute_mi(command.action, words)
            }
            Command::Gfx(command) => {
                if self.predicated() {
                    return Ok(Flow::Next);
                }
                match command.action {
                    Gfx::PipeControl if words.len() >= 6 => self.pipe_control(words),
                    Gfx::PipeControl => Ok(Flow::Illegal),
                    Gfx::StateOnly => {
                        self.counters.state_only(command.name);
                        Ok(Flow::Next)
                    }
                }
            }
            Command::Blit(command) => {
                if self.predicated() {
                    return Ok(Flow::Next);
                }
                let swctrl = self.gt.registers.value(self.base + 0x200);
                match Blit::decode_with(words, swctrl) {
                    Ok(blit) => {
                        self.running.blit = Some(blit);
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
            Mi::Math => self.math(&words[1..]),
            Mi::Atomic => self.atomic(words),
            Mi::FlushDw => self.flush_dw(words),
            Mi::ReportPerfCount => self.report_perf_count(words),
            Mi::ReportHead => self.report_head(),
            Mi::SemaphoreWait => self.semaphore_wait(words),
            Mi::BatchBufferStart => self.batch_buffer_start(words),
            Mi::ConditionalBatchBufferEnd => self.conditional_batch_buffer_end(words),
            Mi::BatchBufferEnd => Ok(self.batch_buffer_end(false)),
            Mi::Noop => Ok(self.noop(words[0])),
            Mi::ArbCheck => Ok(if self.may_leave() { Flow::Preempt } else { Flow::Next }),
            Mi::ArbOnOff => {
                self.running.arbitration = words[0] & 1 != 0;
                Ok(Flow::Next)
            }
            Mi::UserInterrupt => Ok(self.user_interrupt()),
            Mi::SetPredicate => Ok(self.set_predicate(words[0])),
            Mi::Predicate => Ok(self.predicate(words[0])),
            // A signal is only a hint to look again, and every engine looks again after every step of another.
            Mi::SemaphoreSignal => Ok(Flow::Next),
            // Without a display no event is ever pending: the condition is inactive, and the wait is over at once.
            Mi::WaitForEvent | Mi::NoEffect => Ok(Flow::Next),
            Mi::DisplayFlip => Ok(Flow::Illegal),
            Mi::StateOnly => {
                self.counters.state_only(crate::command::mi::lookup(words[0]).map_or("MI", |command| command.name));
                Ok(Flow::Next)
            }
        }
    }

    /// Whether predication or the lack of privilege makes the command a MI_NOOP (V8-140, V8-171).
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
        let forbidden = match command.privilege {
            Privilege::User => false,
            Privilege::UserUnless(bits) => header & bits != 0 && !self.running.position.privileged(),
            Privilege::Kernel => !self.running.position.privileged(),
        };
        if forbidden {
            self.counters.privilege_violations += 1;
        }
        forbidden
    }

    /// MI_SET_PREDICATE_RESULT; a context's restore is not a part of its command stream.
    #[inline]
    pub fn predicated(&self) -> bool {
        self.gt.registers.value(self.base + reg::SET_PREDICATE_RESULT) & 1 != 0
            && self.running.position.workaround.is_none()
    }

    /// Whether a preemption request is to be honoured at an arbitration point (V8-076, V8-078).
    #[inline]
    fn may_leave(&self) -> bool {
        self.running.preempt && self.running.arbitration && self.running.position.workaround.is_none()
    }

    fn step_blit(&mut self) -> Result<Progress, Halt> {
        let space = self.running.lrc.space;
        let Some(blit) = &mut self.running.blit else { return Ok(Progress::Done) };
        let progress = blit.step(&mut self.gam, space, BLIT_BYTES).map_err(Halt::Fault)?;
        if progress == Progress::Done {
            self.running.blit = None;
            self.running.loops.effect();
        }
        Ok(progress)
    }

    fn take_tail(&mut self) -> Result<(), Halt> {
        self.running.tail_moved = false;
        let tail = self.running.lrc.tail(&mut self.gam).map_err(Halt::Fault)?;
        self.running.position.ring.set_tail(tail);
        Ok(())
    }

    /// Reads the image: ring context, engine context, then what runs before the ring (V8-043, V8-161, V8-162).
    fn restore(&mut self) -> Result<(), Halt> {
        let image = self.running.lrc.read(&mut self.gam).map_err(Halt::Fault)?;
        let running = &mut *self.running;
        running.tail_moved = false;
        running.position = running.lrc.position(&image);
        running.lrc.restore_registers(&image, &self.gt.registers, self.class, self.base);
        self.gt.context_clocks[self.id.index()].start(self.gt.timestamp(), image.dword(dword::CTX_TIMESTAMP));
        running.phase = Phase::Run;
        running.per_context = image.dword(dword::BB_PER_CTX_PTR);
        let set = |offset, value| self.gt.registers.set(self.base + offset, value);
        set(reg::CURRENT_LRCA, running.load.descriptor as u32);
        set(reg::CONTEXT_CONTROL, image.dword(dword::CONTEXT_CONTROL) & 0xffff);
        set(reg::PDP0, image.dword(dword::PDP0_LDW));
        set(reg::PDP0 + 4, image.dword(dword::PDP0_UDW));
        set(reg::RING_START, running.position.ring.start);
        set(reg::RING_CTL, image.dword(dword::RING_CTL));
        let indirect = image.dword(dword::INDIRECT_CTX);
        self.restore_interrupt_report(&image).map_err(Halt::Fault)?;
        let running = &mut *self.running;
        let left = (indirect & 0x3f) * 16;
        if left != 0 {
            let batch = Batch { ppgtt: false, address: u64::from(indirect & !0x3f) };
            running.position.workaround = Some((Workaround::Indirect { left }, batch));
        } else {
            self.enter_per_context();
        }
        Ok(())
    }

    /// Memory-based interrupts: the fixed places of the image, which only a driver without MMIO fills (contract C.3).
    fn restore_interrupt_report(&mut self, image: &Image) -> Result<(), Fault> {
        const LRM: u32 = 0x29 << 23;
        let set = |offset, value| self.gt.registers.set(self.base + offset, value);
        let filled = image.dword(dword::MEMIRQ_MASK - 2) & 0xff80_0000 == LRM;
        set(reg::INT_STATUS_RPT_PTR, if filled { image.dword(dword::MEMIRQ_STATUS) } else { 0 });
        set(reg::INT_SRC_RPT_PTR, if filled { image.dword(dword::MEMIRQ_SOURCE) } else { 0 });
        if filled {
            let mask = self.gam.read_u32(Space::Ggtt, u64::from(image.dword(dword::MEMIRQ_MASK)))?;
            self.gt.registers.set(self.base + reg::IMR, mask);
        }
        Ok(())
    }

    fn enter_per_context(&mut self) {
        let pointer = self.running.per_context;
        let batch = Batch { ppgtt: false, address: u64::from(pointer & !0xfff) };
        self.running.position.workaround = (pointer & 1 != 0).then_some((Workaround::PerContext, batch));
    }

    /// A workaround batch has ended: the next one, or the ring, follows.
    pub(super) fn end_workaround(&mut self) {
        match self.running.position.workaround.take() {
            Some((Workaround::Indirect { .. }, _)) => self.enter_per_context(),
            _ => self.running.loops.forget(),
        }
    }

    /// Saves the context; its clock stops.
    fn save(&mut self) -> Result<(), Halt> {
        let timestamp = self.gt.context_clocks[self.id.index()].stop(self.gt.timestamp());
        let running = &mut *self.running;
        let engine = (&self.gt.registers, self.class, self.base);
        running.lrc.save(&mut self.gam, &running.position, timestamp, engine).map_err(Halt::Fault)
    }

    /// Shows in the registers where the context stands: at the end of each step, not at each command.
    fn publish(&self) {
        let position = &self.running.position;
        let set = |offset, value| self.gt.registers.set(self.base + offset, value);
        set(reg::RING_HEAD, position.ring.head);
        set(reg::RING_TAIL, position.ring.tail);
        let address = position.address();
        set(reg::ACTHD, address as u32);
        set(reg::ACTHD_UDW, (address >> 32) as u32);
        let batch = position.batch().map_or(0, |batch| batch.address | 1);
        set(reg::BBADDR, batch as u32);
        set(reg::BBADDR_UDW, (batch >> 32) as u32);
    }

    /// The register that a command names: absolute, or in the engine's own block.
    #[inline]
    pub fn mmio(&self, raw: u32, relative: bool) -> u32 {
        let offset = raw & 0x7f_fffc;
        if relative && offset < ENGINE_BLOCK { self.base + offset } else { offset }
    }

    fn permits(&mut self, offset: u32, wanted: Wanted) -> bool {
        let permitted = offset < REGISTER_BYTES
            && (self.running.position.privileged() || whitelist::permits(&self.gt.registers, self.id, offset, wanted));
        if !permitted {
            self.counters.register_refusals += 1;
        }
        permitted
    }

    /// Whether a write of the register would be carried out.
    pub fn may_write(&mut self, offset: u32) -> bool {
        self.permits(offset, Wanted::Write)
    }

    /// Reads a register for a command; 0 where the batch may not.
    pub fn read_register(&mut self, offset: u32) -> u32 {
        if !self.permits(offset, Wanted::Read) {
            return 0;
        }
        if matches!(offset & (ENGINE_BLOCK - 1), reg::TIMESTAMP | reg::TIMESTAMP_UDW | reg::CTX_TIMESTAMP) {
            self.running.loops.clock_read();
        }
        self.gt.read(offset)
    }

    /// Writes a register for a command; dropped where the batch may not, or where it would command another unit.
    pub fn write_register(&mut self, offset: u32, value: u32) {
        if !self.permits(offset, Wanted::Write) {
            return;
        }
        self.running.loops.effect();
        let now = self.gt.timestamp();
        if offset == self.base + reg::CTX_TIMESTAMP {
            self.gt.context_clocks[self.id.index()].start(now, value);
        }
        if offset == self.base + reg::PR_CTR_CTRL {
            self.running.watchdog = (value & 0x7fff_ffff == 0).then_some(now);
        }
        if self.gt.write(offset, value).is_some() {
            self.counters.dropped_requests += 1;
        }
    }

    /// A register of the engine's own, by offset from its base.
    pub fn own(&self, offset: u32) -> u32 {
        self.gt.registers.value(self.base + offset)
    }

    /// Sets a register of the engine's own.
    pub fn set_own(&mut self, offset: u32, value: u32) {
        self.running.loops.effect();
        self.gt.registers.set(self.base + offset, value);
    }

    /// A 64-bit register of the engine's own.
    #[inline]
    pub fn own64(&self, offset: u32) -> u64 {
        u64::from(self.own(offset + 4)) << 32 | u64::from(self.own(offset))
    }

    /// Sets a 64-bit register of the engine's own.
    #[inline]
    pub fn set_own64(&mut self, offset: u32, value: u64) {
        self.set_own(offset, value as u32);
        self.set_own(offset + 4, (value >> 32) as u32);
    }

    /// The space of a memory operand: global if the command says so, else the context's.
    #[inline]
    pub fn space(&self, global: bool) -> Space {
        if global { Space::Ggtt } else { self.running.lrc.space }
    }

    /// Stores a dword.
    #[inline]
    pub fn store(&mut self, space: Space, address: u64, value: u32) -> Result<(), Fault> {
        self.running.loops.effect();
        self.gam.write_u32(space, address, value)
    }

    /// Stores a qword.
    #[inline]
    pub fn store64(&mut self, space: Space, address: u64, value: u64) -> Result<(), Fault> {
        self.running.loops.effect();
        self.gam.write_u64(space, address, value)
    }

    /// Memory of `len` bytes at `address` that can be changed atomically; `None` where it is not mapped in one piece.
    pub fn cell(&mut self, space: Space, address: u64, len: usize) -> Result<Option<VolatileSlice<'_>>, Fault> {
        match self.gam.span(space, address, len, Access::Write)? {
            Span::Mapped(slice) if slice.len() == len => Ok(Some(slice)),
            _ => Ok(None),
        }
    }

    /// The context's loop detector.
    pub fn loops(&mut self) -> &mut Loops {
        &mut self.running.loops
    }
}

/// Whether the command is passed over without a look at its dwords.
fn skipped(command: &Command) -> bool {
    matches!(command, Command::Gfx(gfx) if gfx.action == Gfx::StateOnly)
}

#[inline]
pub(super) fn address(low: u32, high: u32) -> u64 {
    (u64::from(high) << 32 | u64::from(low)) & 0xffff_ffff_fffc
}
