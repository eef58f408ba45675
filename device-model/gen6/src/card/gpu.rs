// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card behind the interface of every GPU. No BAR can be mapped: the registers, the GGTT entries and the aperture
//! with its changing translation are trapped (G67-068).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arctic_base::event_count::EventCount;
use arctic_base::gpu::{
    ConfigRegisters, EngineStatus, FunctionStatus, Gpu, HardwareErrors, IoEvents, OwnMemory, OwnThreads, SaveRestore,
    Status, VirtualFunctions, WalkerCaptures, WorkStatus,
};
use arctic_base::host::{Clock, Function};
use arctic_base::report::Report;
use arctic_base::trace::Recorder;

use super::{Card, GMADR_BAR, GTTMMADR_BAR, register_map};
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

    fn reset(&self, _: Function) {
        self.reset_all();
        self.end_accesses();
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

    fn name_of(&self, _: Function, bar: u8, offset: u64) -> Option<String> {
        (bar == GTTMMADR_BAR).then(|| register_map::name(&self.gt, offset))?
    }

    fn clock(&self) -> &dyn Clock {
        &*self.gt.clock
    }

    fn work(&self) -> WorkStatus {
        if self.paused.load(Ordering::SeqCst) { WorkStatus::Idle(None) } else { self.step_engines() }
    }

    fn wakeups(&self) -> &EventCount {
        &self.gt.wakeups
    }

    fn quiesce(&self) {
        self.end_steps();
        self.end_accesses();
    }

    fn report(&self) -> Report {
        self.complete_report(self.gt.report())
    }

    fn status(&self) -> Status {
        let mut function = FunctionStatus::default();
        let mut times = BTreeMap::new();
        let mut engines = Vec::new();
        for (engine, info) in self.gt.generation.engines() {
            let busy = !self.gt.engine_idle(engine);
            let time = self.gt.busy_time(engine);
            if busy {
                function.on.push(info.name.to_owned());
            }
            if time != 0 {
                times.insert(info.class.name().to_owned(), time);
            }
            engines.push(EngineStatus {
                engine: info.name.to_owned(),
                function: busy.then_some(0),
                time_ns: Some((time != 0).then_some((0, time)).into_iter().collect()),
                ..EngineStatus::default()
            });
        }
        function.engine_time_ns = Some(times);
        Status { functions: vec![function], engines, power: Some(self.gt.power_status()), ..Status::default() }
    }

    fn trace(&self) -> &Arc<Recorder> {
        &self.gt.trace
    }

    fn vfs(&self) -> Option<&dyn VirtualFunctions> {
        None
    }

    /// The card uses guest memory alone.
    fn own_memory(&self) -> Option<&dyn OwnMemory> {
        None
    }

    /// The registers in configuration space have no effect on the card.
    fn config_registers(&self) -> Option<&dyn ConfigRegisters> {
        None
    }

    fn events(&self) -> Option<&dyn IoEvents> {
        None
    }

    fn own_threads(&self) -> Option<&dyn OwnThreads> {
        None
    }

    fn hardware_errors(&self) -> Option<&dyn HardwareErrors> {
        None
    }

    fn walker_captures(&self) -> Option<&dyn WalkerCaptures> {
        None
    }

    fn saved_state(&self) -> Option<&dyn SaveRestore> {
        Some(self)
    }
}
