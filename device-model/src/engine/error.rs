//! What an engine detects and reports: the error registers ESR, EMR and EIR, the status that it writes to its global status
//! page, page faults (V8-085..090).

use std::sync::atomic::{Ordering, fence};

use super::id::{Classes, EngineId};
use super::reg;
use super::streamer::Streamer;
use crate::gt::Gt;
use crate::interrupts::memirq::Report;
use crate::interrupts::{CS_ERROR, FLUSH_COMPLETE, PAGE_FAULT, USER_INTERRUPT};
use crate::memory::{Fault, Gam, Space, Tlb};
use crate::world::Function;

/// The parser met a command that the engine does not have (i915: I915_ERROR_INSTRUCTION).
pub const INSTRUCTION: u32 = 1 << 0;
/// A command, or a part of one, was withheld from a batch without privilege; parsing goes on (i915: "CP_PRIV (bit 2)" in
/// intel_execlists_submission.c; Kaby Lake's Volume 2c: Command Privilege Violation Error).
pub const PRIVILEGE: u32 = 1 << 2;

/// One condition, by its bit in ESR, EMR and EIR.
struct Condition {
    bits: u32,
    /// Engines that detect it. The volume names a structure a class (V8-090) and prints none; the two conditions here are
    /// those of all that are public.
    classes: Classes,
    /// Whether software can clear it; if not, the reset of the engine does.
    recoverable: bool,
}

const CONDITIONS: &[Condition] = &[
    Condition { bits: INSTRUCTION, classes: Classes::ALL, recoverable: false },
    Condition { bits: PRIVILEGE, classes: Classes::ALL, recoverable: true },
];

/// The conditions of an engine; of the recoverable ones alone if `recoverable`.
fn conditions(engine: EngineId, recoverable: bool) -> u32 {
    let has =
        |condition: &&Condition| condition.classes.has(engine.info().class) && (condition.recoverable || !recoverable);
    CONDITIONS.iter().filter(has).fold(0, |bits, condition| bits | condition.bits)
}

/// Bits of EMR that are there; the others read 1 (IVB-093).
pub const MASKABLE: u32 = 0xff;

/// Events whose change in the interrupt status may be written to the status page, if HWSTAM lets it: nothing else is
/// supported there (V8-087, trap T25).
const STATUS_EVENTS: u16 = USER_INTERRUPT | CS_ERROR | FLUSH_COMPLETE;

impl Gt {
    fn error_register(&self, engine: EngineId, offset: u32) -> u32 {
        self.registers.value(engine.info().mmio_base + offset)
    }

    /// Brings what EMR lets through of ESR into EIR; tells whether the error bit of the interrupt status rose (V8-089).
    fn identify_errors(&self, engine: EngineId) -> bool {
        // Either who detects an error sees what has just been unmasked here, or who unmasks sees the error.
        fence(Ordering::SeqCst);
        let through = self.error_register(engine, reg::ESR) & !self.error_register(engine, reg::EMR);
        through != 0 && self.registers.set_bits(engine.info().mmio_base + reg::EIR, through) == 0
    }

    /// An engine has detected errors; tells whether the error bit of its interrupt status rose.
    pub(super) fn detect_errors(&self, engine: EngineId, errors: u32) -> bool {
        self.registers.set_bits(engine.info().mmio_base + reg::ESR, errors & conditions(engine, false));
        self.identify_errors(engine)
    }

    /// EIR is written: a 1 clears the condition, and its status, where software can; tells whether the error bit of the
    /// interrupt status fell.
    pub fn clear_errors(&self, engine: EngineId, value: u32) -> bool {
        let cleared = value & conditions(engine, true);
        let base = engine.info().mmio_base;
        self.registers.clear_bits(base + reg::ESR, cleared);
        let before = self.registers.clear_bits(base + reg::EIR, cleared);
        before != 0 && before & !cleared == 0
    }

    /// EMR is written; tells whether the error bit of the interrupt status rose.
    pub fn mask_errors(&self, engine: EngineId, value: u32) -> bool {
        self.registers.set(engine.info().mmio_base + reg::EMR, value | !MASKABLE);
        self.identify_errors(engine)
    }

    /// The error bit of an engine's interrupt status has changed otherwise than by its own commands: the physical
    /// function's driver has it in the status page and, if it rose, as an interrupt.
    pub fn tell_error_bit(&self, engine: EngineId) {
        let (views, mut tlb) = (self.memory.views(), Tlb::default());
        self.write_status(&mut self.memory.gam(Function::PF, &views, &mut tlb), engine, CS_ERROR);
        if self.error_register(engine, reg::EIR) != 0 {
            self.interrupts.raise_engine(engine, CS_ERROR);
        }
    }

    /// Writes an engine's interrupt status to the first dword of its global status page, because of `events`, as far as
    /// HWSTAM lets them cause it. Of the status the error bit alone is a level, told where HWSTAM lets it through as well;
    /// the user interrupt and the flush's are written as 0 (V8-087: what is reported "when unmasked via HWSTAM"). `gam` is
    /// the physical function's, whose page it is.
    pub(super) fn write_status(&self, gam: &mut Gam<'_>, engine: EngineId, events: u16) {
        let unmasked = STATUS_EVENTS & !self.error_register(engine, reg::HWSTAM) as u16;
        if events & unmasked == 0 {
            return;
        }
        let page = u64::from(self.error_register(engine, reg::HWS_PGA) & !0xfff);
        let error = self.error_register(engine, reg::EIR) != 0;
        let status = if error { unmasked & CS_ERROR } else { 0 };
        // Where the page is not mapped there is nobody to tell.
        let _ = gam.write_u32(Space::Ggtt, page, status.into());
    }
}

impl Streamer<'_> {
    /// The context's commands caused an error. A virtual function's are told by the GuC, if at all: the error registers are
    /// the physical function's.
    #[cold]
    pub(super) fn error(&mut self, errors: u32) {
        if !self.running.load.function.is_vf() && self.gt.detect_errors(self.id, errors) {
            // A report that cannot be written changes nothing for the context.
            let _ = self.signal(CS_ERROR);
        }
    }

    /// The context halts at a fault of its own address space. Where its descriptor asks for faults to be repaired rather
    /// than to hang, the mask does not hold the event back (V8-088).
    pub(super) fn page_fault(&mut self, fault: &Fault) {
        if !matches!(fault.space, Space::Ppgtt(_)) {
            return;
        }
        let interrupts = self.gt.interrupts_of(self.running.load.function);
        let repaired = self.running.load.descriptor >> FAULT_HANDLING & 3 != FAULT_AND_HANG;
        match self.running.report {
            Some(report) if repaired => {
                let unmasked = Report { enable: u32::MAX, ..report };
                if unmasked.write(&mut self.gam, self.id, PAGE_FAULT) == Ok(true) {
                    interrupts.send();
                }
            }
            None if repaired => interrupts.raise_engine_past_mask(self.id, PAGE_FAULT),
            // As above.
            _ => drop(self.signal(PAGE_FAULT)),
        }
    }
}

/// Context descriptor, bits 7:6: what becomes of a fault; 0 hangs the context, 1 to 3 wait for it to be repaired
/// (i915: intel_lrc.h FAULT_AND_HANG).
const FAULT_HANDLING: u32 = 6;
const FAULT_AND_HANG: u64 = 0;
