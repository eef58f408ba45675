// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card behind the interface of every GPU. No BAR can be mapped: the registers, the GGTT entries and the aperture
//! with its changing translation are trapped (G67-068).

use std::io;
use std::sync::Arc;

use arctic_base::event_count::EventCount;
use arctic_base::gpu::{BarMapping, Gpu, IoRegister, ReportableError, Status, Values, WorkStatus};
use arctic_base::host::{Clock, Function};
use arctic_base::report::Report;
use arctic_base::trace::Recorder;

use super::{Card, GMADR_BAR, GTTMMADR_BAR};
use crate::registers::REGISTER_BYTES;

/// The kinds of accesses that are counted apart.
const ACCESS_KINDS: &[&str] = &["register_reads", "register_writes", "aperture_reads", "aperture_writes", "ggtt"];
/// Indices in [`ACCESS_KINDS`] of the reads of a BAR; writes are the next ones.
const REGISTERS: usize = 0;
const APERTURE: usize = 2;
/// Index in [`ACCESS_KINDS`] of the accesses to GGTT entries.
const GGTT: usize = 4;

impl Gpu for Card {
    fn read(&self, _: Function, bar: u8, offset: u64, data: &mut [u8]) {
        match bar {
            GTTMMADR_BAR => self.read_gttmmadr(offset, data),
            GMADR_BAR => self.read_aperture(offset, data),
            _ => data.fill(0xff),
        }
    }

    fn write(&self, _: Function, bar: u8, offset: u64, data: &[u8]) {
        match bar {
            GTTMMADR_BAR => self.write_gttmmadr(offset, data),
            GMADR_BAR => self.write_aperture(offset, data),
            _ => {}
        }
    }

    /// The registers in configuration space have no effect on the card.
    fn config_written(&self, _: Function, _: u64, _: &[u8]) {}

    fn reset(&self, _: Function) {
        self.reset_all();
        self.end_accesses();
    }

    /// The card has no memory of its own.
    fn power_off(&self, _: Function) {}

    fn enable_vfs(&self, _: u8) {}

    fn disable_vfs(&self) {}

    fn vfs(&self) -> u8 {
        0
    }

    fn access_kinds(&self) -> &'static [&'static str] {
        ACCESS_KINDS
    }

    fn access_kind(&self, bar: u8, offset: u64, write: bool) -> Option<usize> {
        let kind = match bar {
            GTTMMADR_BAR if offset >= REGISTER_BYTES.into() => return Some(GGTT),
            GTTMMADR_BAR => REGISTERS,
            GMADR_BAR => APERTURE,
            _ => return None,
        };
        Some(kind.saturating_add(usize::from(write)))
    }

    fn mappings(&self, _: Function, _: u8, _: bool) -> Vec<BarMapping<'_>> {
        Vec::new()
    }

    fn allocated(&self, _: Function) -> u64 {
        0
    }

    fn io_registers(&self) -> &'static [IoRegister] {
        &[]
    }

    fn io_written(&self, _: Function, _: usize) {}

    fn poll(&self) {}

    fn clock(&self) -> &dyn Clock {
        &*self.gt.clock
    }

    fn work(&self) -> WorkStatus {
        self.step_engines()
    }

    fn wakeups(&self) -> &EventCount {
        &self.gt.wakeups
    }

    fn start(self: Arc<Self>) -> io::Result<()> {
        Ok(())
    }

    fn stop(&self) {}

    fn quiesce(&self) {
        self.end_steps();
        self.end_accesses();
    }

    fn delays_others(&self, _: Function) -> bool {
        false
    }

    fn report(&self) -> Report {
        self.complete_report(self.gt.report())
    }

    fn status(&self) -> Status {
        let generation = self.gt.generation;
        let busy = generation.engines().filter(|(engine, _)| !self.gt.engine_idle(*engine));
        let on: Vec<&str> = busy.map(|(_, info)| info.name).collect();
        let function = Values::from_iter([("function".to_owned(), 0.into()), ("on".to_owned(), on.into())]);
        let engines = generation.engines().map(|(engine, info)| {
            // The function for which the engine executes, if it does.
            let function = (!self.gt.engine_idle(engine)).then(|| ("function".to_owned(), 0.into()));
            Values::from_iter([("engine".to_owned(), info.name.into())].into_iter().chain(function))
        });
        Status { functions: vec![function], engines: engines.collect(), firmware: Values::new() }
    }

    fn trace(&self) -> &Arc<Recorder> {
        &self.gt.trace
    }

    fn hardware_errors(&self) -> Vec<ReportableError> {
        Vec::new()
    }

    fn raise_hardware_error(&self, _: &str) -> bool {
        false
    }

    fn error_registers(&self) -> Vec<Values> {
        Vec::new()
    }
}
