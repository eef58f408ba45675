// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card behind the interface of every GPU: its BARs, the kinds of its accesses, and the registers that may be
//! written by events.

use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::bar_files::FunctionFiles;
use super::{Card, GGTT_WINDOW, GTTMMADR_BYTES, register_map};
use crate::event_count::EventCount;
use crate::gpu::{
    BarMapping, ConfigRegisters, Gpu, HardwareErrors, IoEvents, IoRegister, OwnMemory, OwnThreads, ReportableError,
    SaveRestore, Status, Values, VirtualFunctions, WalkerCapture, WalkerCaptures, WalkerRequest, WorkStatus,
};
use crate::hardware_error::HardwareError;
use crate::host::{Clock, Function};
use crate::pci::{GTTMMADR_BAR, LMEM_BAR};
use crate::registers::REGISTER_BYTES;
use crate::report::Report;
use crate::trace::Recorder;

/// The kinds of accesses that are counted apart.
const ACCESS_KINDS: &[&str] = &["register_reads", "register_writes", "doorbells", "ggtt", "local_memory"];

/// VF_SW_FLAG(0..3), the mailbox. A driver writes a request dword by dword, then notifies the GuC (contract B.6). On a
/// busy host the event of a notification may be processed 50 ms late, for which a driver polls for the response (xe:
/// xe_guc_mmio_send_recv), and the next request must not be partly written by then.
const MAILBOX: Range<u64> = 0x19_0240..0x19_0250;

/// GUC_HOST_INTERRUPT (contract B.6): any write notifies the GuC. VF_CAP_REG: the drivers write it as a write barrier
/// after each submission, without effect (xe: xe_device_wmb).
const IO_REGISTERS: &[IoRegister] = &[
    IoRegister { bar: GTTMMADR_BAR, offset: 0x19_01f0, len: 4, effective: true, ordered: MAILBOX },
    IoRegister { bar: GTTMMADR_BAR, offset: 0x19_01f8, len: 4, effective: false, ordered: 0..0 },
];

/// Index of GUC_HOST_INTERRUPT in [`IO_REGISTERS`].
const GUC_HOST_INTERRUPT: usize = 0;

/// Returns the fields of `value`, which is a structure, as named values.
fn values(value: &impl Serialize) -> Values {
    match serde_json::to_value(value) {
        Ok(Value::Object(values)) => values,
        _ => Values::new(),
    }
}

impl Gpu for Card {
    fn read(&self, function: Function, bar: u8, offset: u64, data: &mut [u8]) {
        match bar {
            GTTMMADR_BAR => self.read_gttmmadr(function, offset, data),
            LMEM_BAR => self.read_local(function, offset, data),
            _ => data.fill(0xff),
        }
    }

    fn write(&self, function: Function, bar: u8, offset: u64, data: &[u8]) {
        match bar {
            GTTMMADR_BAR => self.write_gttmmadr(function, offset, data),
            LMEM_BAR => self.write_local(function, offset, data),
            _ => {}
        }
    }

    fn reset(&self, function: Function) {
        match function {
            Function::PF => self.reset_card(),
            vf => self.reset_function(vf),
        }
    }

    fn access_kinds(&self) -> &'static [&'static str] {
        ACCESS_KINDS
    }

    fn access_kind(&self, bar: u8, offset: u64, write: bool) -> Option<usize> {
        Some(match bar {
            LMEM_BAR => 4,
            GTTMMADR_BAR if offset >= GGTT_WINDOW => 3,
            GTTMMADR_BAR if offset >= REGISTER_BYTES.into() => 2,
            GTTMMADR_BAR if write => 1,
            GTTMMADR_BAR => 0,
            _ => return None,
        })
    }

    fn name_of(&self, function: Function, bar: u8, offset: u64) -> Option<String> {
        (bar == GTTMMADR_BAR).then(|| register_map::name(&self.gt, function, offset))?
    }

    fn clock(&self) -> &dyn Clock {
        &*self.gt.clock
    }

    /// If a step panics, only the unit that was stepped loses its work. The other units and functions continue.
    fn work(&self) -> WorkStatus {
        self.guarded(|| self.step()).unwrap_or(WorkStatus::Busy)
    }

    fn wakeups(&self) -> &EventCount {
        &self.event_count
    }

    fn quiesce(&self) {
        self.end_steps(None);
    }

    fn report(&self) -> Report {
        self.report_unmodelled()
    }

    fn status(&self) -> Status {
        self.snapshot()
    }

    fn trace(&self) -> &Arc<Recorder> {
        &self.gt.trace
    }

    fn vfs(&self) -> Option<&dyn VirtualFunctions> {
        Some(self)
    }

    fn own_memory(&self) -> Option<&dyn OwnMemory> {
        Some(self)
    }

    /// The card has no registers of its own in configuration space.
    fn config_registers(&self) -> Option<&dyn ConfigRegisters> {
        None
    }

    fn events(&self) -> Option<&dyn IoEvents> {
        Some(self)
    }

    fn own_threads(&self) -> Option<&dyn OwnThreads> {
        Some(self)
    }

    fn hardware_errors(&self) -> Option<&dyn HardwareErrors> {
        Some(self)
    }

    fn walker_captures(&self) -> Option<&dyn WalkerCaptures> {
        Some(self)
    }

    fn saved_state(&self) -> Option<&dyn SaveRestore> {
        Some(self)
    }
}

impl OwnMemory for Card {
    /// Registers and doorbells are never mapped. Accesses beyond a VF's quota are translated by the LMTT if they come to the
    /// card, and pages that a guest touches in a mapping are allocated on the host.
    fn mappings(&self, function: Function, bar: u8, limited: bool) -> Vec<BarMapping<'_>> {
        let Some(FunctionFiles { gttmmadr, local, local_bytes, maps_local }) = self.bar_files.of(function) else {
            return Vec::new();
        };
        let (file, area) = match bar {
            GTTMMADR_BAR => (gttmmadr.as_ref(), GGTT_WINDOW..GTTMMADR_BYTES),
            LMEM_BAR if !maps_local => (None, 0..0),
            LMEM_BAR if function.is_vf() && limited => {
                (Some(local), 0..self.gt.memory.quota(function).min(*local_bytes))
            }
            LMEM_BAR => (Some(local), 0..*local_bytes),
            _ => (None, 0..0),
        };
        let mapping = |file| BarMapping {
            offset: area.start,
            len: area.end.saturating_sub(area.start),
            file,
            file_offset: area.start,
        };
        file.filter(|_| !area.is_empty()).map(mapping).into_iter().collect()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.bar_files.descriptors().chain(self.gt.memory.descriptors()).collect()
    }

    fn allocated(&self, function: Function) -> u64 {
        self.bar_files.allocated(function)
    }

    /// The local memory of a VF is cleared here; the PF driver, or the card if no guest has the PF, clears its other
    /// resources as after every reset.
    fn clear(&self, function: Function) {
        match function {
            Function::PF => self.bar_files.empty(),
            vf => self.gt.memory.empty(vf, || false),
        }
    }
}

impl IoEvents for Card {
    fn io_registers(&self) -> &'static [IoRegister] {
        IO_REGISTERS
    }

    fn io_written(&self, function: Function, register: usize) {
        if register == GUC_HOST_INTERRUPT {
            self.post_guc_notification(function);
        }
    }

    fn poll(&self) {
        self.poll_guc();
    }
}

impl HardwareErrors for Card {
    fn reportable(&self) -> Vec<ReportableError> {
        let reportable = |error: &HardwareError| ReportableError { name: error.name, description: error.description };
        HardwareError::all().iter().map(reportable).collect()
    }

    fn raise(&self, name: &str) -> bool {
        let error = HardwareError::named(name);
        error.into_iter().for_each(|error| self.gt.raise_hardware_error(error));
        error.is_some()
    }

    fn error_registers(&self) -> Vec<Values> {
        self.gt.error_registers().iter().map(values).collect()
    }
}

impl WalkerCaptures for Card {
    fn capture_walker(&self, request: WalkerRequest) -> Result<Box<dyn WalkerCapture>, String> {
        Ok(Box::new(self.gt.captures.request(request)?))
    }
}
