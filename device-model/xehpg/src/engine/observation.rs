// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Observation of the context on an engine: the counters of OAR and OAC, MI_REPORT_PERF_COUNT, and the reports that a command
//! or a context switch requests (OA-003, OA-056, OA-061..063).

use arctic_sriov::number::high;

use super::access::address;
use super::streamer::{Flow, Streamer};
use super::{Engine, reg};
use crate::command::mi::fields;
use crate::gt::Gt;
use crate::memory::Fault;
use crate::oa::format::{self, Format, Header, LONGEST};
use crate::registers::engine_fields::ContextControl;
use crate::registers::observation::{OAC, OAR_OACONTROL, OaControl};
use crate::topology::EngineClass;

/// OAR_OACONTROL, OAC_OACONTROL: the unit is enabled.
const ENABLE: u32 = 1 << 0;
/// The format, bits 3:1.
const SELECT: u32 = 1;
/// OACTXCONTROL: counter stop and resume.
const RESUME: u32 = 1 << 0;

impl Engine {
    /// The context has left the engine: nobody needs its counters.
    pub(super) fn stop_counting(&mut self, gt: &Gt) {
        if self.observed.counting() {
            drop(gt.use_activity(self.id, false));
        }
        self.observed.clear();
    }
}

impl Streamer<'_> {
    /// OAR_OACONTROL, or OAC_OACONTROL on a compute engine.
    fn observation_control(&self) -> u32 {
        match self.class {
            EngineClass::Render => self.gt.registers.value(OAR_OACONTROL),
            EngineClass::Compute => self.observed.oac.first().copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns whether the counters of the context advance (V13-214).
    fn counts(&self) -> bool {
        let resumed = self.registers.get(reg::OACTXCONTROL) & RESUME != 0;
        if self.observation_control() & ENABLE == 0 || !resumed {
            return false;
        }
        let instance = self.gt.engine(self.id).instance;
        self.class == EngineClass::Render || self.gt.registers.fields::<OaControl>().compute() == instance
    }

    /// Lets the counters advance or stand, after a change of the registers that decide about it.
    #[cold]
    pub(super) fn observe_context(&mut self) {
        let counts = self.counts();
        if counts || self.observed.counting() {
            let state = self.gt.use_activity(self.id, counts);
            self.observed.settle(&state.now, counts);
        }
    }

    /// Reads a register of OAC.
    #[cold]
    pub(super) fn read_oac(&self, offset: u32) -> u32 {
        let registers = OAC.iter().zip(self.observed.oac);
        registers.filter(|(at, _)| **at == offset).map(|(_, value)| value).next().unwrap_or(0)
    }

    /// Writes a register of OAC.
    #[cold]
    pub(super) fn write_oac(&mut self, offset: u32, value: u32) {
        for (at, register) in OAC.iter().zip(&mut self.observed.oac) {
            if *at == offset {
                *register = value;
            }
        }
        // What the PF reads by MMIO is the last value of any engine.
        self.gt.registers.set(offset, value);
        self.observe_context();
    }

    /// Restores the counters of the context, and requests the report of the switch. Called when the registers are restored.
    pub(super) fn restore_counters(&mut self, inhibited: bool) -> Result<(), Fault> {
        if self.observation_control() & ENABLE != 0 {
            if self.registers.fields::<ContextControl>().keeps_counters() && !inhibited {
                self.observed.restore(&self.running.lrc.read_counters(&mut self.gam)?);
            }
            self.observe_context();
        }
        let load = self.running.load;
        if self.gt.report_switch(self.id, load.function, Some(load.descriptor)) {
            self.write_due_reports();
        }
        Ok(())
    }

    /// Saves the counters of the context.
    pub(super) fn save_counters(&mut self) -> Result<(), Fault> {
        if self.observation_control() & ENABLE == 0 || !self.registers.fields::<ContextControl>().keeps_counters() {
            return Ok(());
        }
        self.settle_counters();
        self.running.lrc.save_counters(&mut self.gam, &self.observed.saved())
    }

    /// Computes the counters up to now. Returns GPU_TICKS.
    fn settle_counters(&mut self) -> u64 {
        let (state, _) = self.gt.observed_now();
        let counting = self.observed.counting();
        self.observed.settle(&state.now, counting);
        state.now.ticks
    }

    /// Writes the reports that are due. Steps of the unit may wait for the PF's client, so an engine does it for contexts of the
    /// PF only; reports that a VF's context causes are written by the unit.
    #[cold]
    pub(super) fn write_due_reports(&mut self) {
        if !self.running.load.function.is_vf() {
            self.gt.write_due_reports(&mut self.gam);
        }
    }

    /// The format of the context's reports.
    fn report_format(&self) -> &'static Format {
        let facts = self.gt.generation.observation;
        let control = self.observation_control();
        let formats = if self.class == EngineClass::Render { facts.render } else { facts.compute };
        let format = format::find(formats, control >> SELECT & 7).filter(|_| control & ENABLE != 0);
        format.unwrap_or(facts.other)
    }

    /// MI_REPORT_PERF_COUNT: writes the context's counters (V13-211).
    pub(super) fn report_perf_count(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let &[_, lower, upper, id, ..] = words else { return Ok(Flow::Illegal) };
        self.loops().effect();
        let (space, at) = (self.space(fields::REPORT_GLOBAL.is_set(words)), address(lower, upper) & !0x3f);
        let ticks = self.settle_counters();
        let format = self.report_format();
        let engine = self.gt.engine(self.id);
        let number = if self.class == EngineClass::Compute { u64::from(engine.instance) << 36 } else { 0 };
        let header = Header {
            id: u64::from(id) | number,
            time: self.gt.oa_time(),
            context: high(self.running.load.descriptor),
            ticks,
        };
        let mut report = [0; LONGEST];
        let report = format.write(header, self.observed.values(), &mut report);
        self.gam.write(space, at, report)?;
        Ok(Flow::Next)
    }
}
