// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Error detection and reporting of an engine: the error registers ESR, EMR and EIR, the status that it writes to its
//! global status page, and page faults (V8-085..090).

use std::sync::atomic::{Ordering, fence};

use super::reg;
use super::streamer::Streamer;
use crate::gt::Gt;
use crate::interrupts::memirq::Report;
use crate::interrupts::{CS_ERROR, FLUSH_COMPLETE, PAGE_FAULT, USER_INTERRUPT};
use crate::memory::{Fault, Gam, Space};
use crate::registers::engine_fields::Errors;
use crate::topology::{Classes, EngineId, EngineInfo};

/// The bit of [`Errors::instruction`].
pub const INSTRUCTION: u32 = Errors::new().with_instruction(true).into_bits();
/// The bit of [`Errors::privilege`].
pub const PRIVILEGE: u32 = Errors::new().with_privilege(true).into_bits();

/// One error condition, identified by its bit in ESR, EMR and EIR.
struct Condition {
    bits: u32,
    /// Engine classes that detect the condition. The PRM refers to a structure per class (V8-090) but does not include
    /// one. The two conditions here are in all public structures.
    classes: Classes,
    /// Whether software can clear the condition. If not, only an engine reset clears it.
    recoverable: bool,
}

const CONDITIONS: &[Condition] = &[
    Condition { bits: INSTRUCTION, classes: Classes::ALL, recoverable: false },
    Condition { bits: PRIVILEGE, classes: Classes::ALL, recoverable: true },
];

/// Returns the conditions of an engine, or only the recoverable conditions if `recoverable` is set.
fn conditions(engine: &EngineInfo, recoverable: bool) -> u32 {
    let has = |condition: &&Condition| condition.classes.has(engine.class) && (condition.recoverable || !recoverable);
    CONDITIONS.iter().filter(has).fold(0, |bits, condition| bits | condition.bits)
}

/// Implemented bits of EMR. The other bits read 1 (IVB-093).
pub const MASKABLE: u32 = 0xff;

/// Events that write the interrupt status to the status page if unmasked in HWSTAM. Other events do not (V8-087, trap
/// T25).
const STATUS_EVENTS: u16 = USER_INTERRUPT | CS_ERROR | FLUSH_COMPLETE;

impl Gt {
    /// Sets the bits of EIR that are set in ESR and not masked in EMR. Returns whether this raised the error bit of the
    /// interrupt status (V8-089).
    fn identify_errors(&self, engine: EngineId) -> bool {
        // Ordering: either the thread that detects an error observes the new mask, or the thread that changes the mask
        // observes the error.
        fence(Ordering::SeqCst);
        let registers = self.registers.engine(engine);
        let masked = registers.get(reg::EMR);
        let through = registers.get(reg::ESR) & !masked;
        through != 0 && registers.set_bits(reg::EIR, through) == 0
    }

    /// Records errors detected by an engine. Returns whether this raised the error bit of its interrupt status.
    pub(super) fn detect_errors(&self, engine: EngineId, errors: u32) -> bool {
        let detected = errors & conditions(self.engine(engine), false);
        self.registers.engine(engine).set_bits(reg::ESR, detected);
        self.identify_errors(engine)
    }

    /// Handles a write to EIR. Writing 1 clears a recoverable condition in EIR and ESR. Returns whether this cleared
    /// the error bit of the interrupt status.
    pub fn clear_errors(&self, engine: EngineId, value: u32) -> bool {
        let cleared = value & conditions(self.engine(engine), true);
        let registers = self.registers.engine(engine);
        registers.clear_bits(reg::ESR, cleared);
        let before = registers.clear_bits(reg::EIR, cleared);
        before != 0 && before & !cleared == 0
    }

    /// Handles a write to EMR. Returns whether this raised the error bit of the interrupt status.
    pub fn mask_errors(&self, engine: EngineId, value: u32) -> bool {
        self.registers.engine(engine).set(reg::EMR, value | !MASKABLE);
        self.identify_errors(engine)
    }

    /// Reports a change of an engine's error bit that was not caused by the engine's commands, in the status page of
    /// the PF's driver and, if the bit is set, by interrupt. `gam` must be that of the PF, which owns the page.
    pub fn report_error_bit(&self, gam: &mut Gam<'_>, engine: EngineId) {
        // Errors are ignored: the driver has not mapped a status page.
        let _ = self.write_status(gam, engine, CS_ERROR);
        if self.registers.engine(engine).get(reg::EIR) != 0 {
            self.interrupts.raise_engine(engine, CS_ERROR);
        }
    }

    /// Writes an engine's interrupt status to the first dword of its global status page if at least one of `events` is
    /// unmasked in HWSTAM. Only the error bit is level-triggered. It is written as 1 only if unmasked in HWSTAM
    /// (V8-087, "when unmasked via HWSTAM"). The bits of the user interrupt and of the flush are written as 0. `gam`
    /// must be that of the PF, which owns the page.
    pub(super) fn write_status(&self, gam: &mut Gam<'_>, engine: EngineId, events: u16) -> Result<(), Fault> {
        let registers = self.registers.engine(engine);
        let unmasked = STATUS_EVENTS & (!registers.get(reg::HWSTAM) & 0xffff) as u16;
        if events & unmasked == 0 {
            return Ok(());
        }
        let page = registers.get(reg::HWS_PGA) & !0xfff;
        let error = registers.get(reg::EIR) != 0;
        let status = if error { unmasked & CS_ERROR } else { 0 };
        gam.write_u32(Space::Ggtt, page.into(), status.into())
    }
}

impl Streamer<'_> {
    /// Reports errors caused by the context's commands. The error registers belong to the PF, so errors of a VF are not
    /// recorded in them. Only the GuC may report those.
    #[cold]
    pub(super) fn error(&mut self, errors: u32) {
        if !self.running.load.function.is_vf() && self.gt.detect_errors(self.id, errors) {
            // Errors are ignored: a failed report does not affect the context.
            let _ = self.signal(CS_ERROR);
        }
    }

    /// Reports a fault in the context's address space, which halts the context. If the descriptor selects fault repair
    /// instead of a hang, the interrupt mask does not apply (V8-088).
    pub(super) fn page_fault(&mut self, fault: &Fault) {
        if !matches!(fault.space, Space::Ppgtt(_)) {
            return;
        }
        let interrupts = self.gt.interrupts_of(self.running.load.function);
        let handling = self.running.load.descriptor().fault_handling();
        let repaired = handling != FAULT_AND_HANG;
        match self.running.report {
            Some(report) if repaired => {
                let unmasked = Report { enable: u32::MAX, ..report };
                if unmasked.write(&mut self.gam, self.gt.engine(self.id), PAGE_FAULT) == Ok(true) {
                    interrupts.send();
                }
            }
            None if repaired => interrupts.raise_engine_past_mask(self.id, PAGE_FAULT),
            // Errors are ignored: a failed report does not affect the context.
            _ => drop(self.signal(PAGE_FAULT)),
        }
    }
}

/// [`Descriptor::fault_handling`](crate::execlist::descriptor::Descriptor::fault_handling): the fault hangs the context.
const FAULT_AND_HANG: u8 = 0;
