// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Observation: effects of its registers, what other units report to it, and the reports that it writes.

use std::cmp::max;
use std::num::NonZeroU64;

use arctic_base::status::StreamStatus;
use arctic_sriov::number::{high, low};

use super::{Gt, SideEffect};
use crate::host::Function;
use crate::memory::Gam;
use crate::oa::buffer::Buffer;
use crate::oa::counters::{Activity, Setting};
use crate::oa::facts::SOURCE_CPU;
use crate::oa::flexible::{FlexibleCounts, REGISTERS};
use crate::oa::format::{self, Format, Header, LONGEST, ReportId, reason};
use crate::oa::queue::Trigger;
use crate::oa::state::{Due, Flags, State};
use crate::oa::timer;
use crate::oa::work::KernelWork;
use crate::oa::writer::{Batch, MOST_REPORTS, Writer};
use crate::registers::observation::{
    EU_PERF_CNTL, EVENTS_OFF, NOA_WRITE, OAG_BLOCK, OAG_OAHEADPTR, OAG_OASTATUS, OAG_OATAILPTR, OAGLBCTXCTRL, OaBuffer,
    OaControl, OaDebug, OaStatus, RPM_CONFIG1, SuperQueueControl,
};
use crate::registers::{Access, ObservationRegister, Unit, XeHpg};
use crate::sync::MutexGuard;
use crate::topology::{EngineClass, EngineId, UnitId};
use crate::trace::EventKind;

/// Most reports of a step.
const STEP_REPORTS: usize = 512;
/// Most reports that an access to a register or a command writes before it is complete. Later ones are lost if OAG is disabled,
/// and otherwise written by a step.
const ACCESS_REPORTS: usize = 4096;
/// Time between two steps in ns, unless one has left reports.
const STEP_INTERVAL: u64 = 1_000_000;
/// Time after a step with an access that the function's client has not answered, in ns.
const UNANSWERED_INTERVAL: u64 = 10_000_000;

/// Name of the unit for users.
const OAG: &str = "OAG";

/// Event of the interrupt: the buffer is half full. Bit 28 of the unit's layout (V13-237); that it is bit 12 of the vector is
/// inferred.
const HALF_FULL: u16 = 1 << 12;

/// RPM_CONFIG1: GT_NOA_ENABLE.
const NOA_ENABLE: u32 = 1 << 9;
/// OAREPORTTRIG2 and OAREPORTTRIG6: the trigger is on, and its condition is inverted: a change makes a report.
const TRIGGER_ON: u32 = 1 << 31;
const TRIGGER_INVERTED: u32 = 1 << 22;

/// Units of A36 and A37 in bytes: 128 bytes, or four transactions of 64 bytes.
const BYTES_128: NonZeroU64 = NonZeroU64::new(128).unwrap();
const FOUR_TRANSACTIONS: NonZeroU64 = NonZeroU64::new(256).unwrap();

/// Result of writing reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// None is left that is due.
    All,
    /// The limit is reached.
    More,
    /// An access was not answered.
    Unanswered,
}

impl Gt {
    /// OA time: the counter of the timestamps of reports.
    pub fn oa_time(&self) -> u64 {
        self.generation.observation.timebase.ticks(self.clock.now())
    }

    /// What the card does now.
    fn activity(&self) -> Activity {
        Activity { busy: self.residency.engines(), awake: !self.residency.asleep(), ratio: self.actual_ratio() }
    }

    /// The state of OAG, with the counters up to now, and the present OA time.
    pub(crate) fn observed_now(&self) -> (MutexGuard<'_, State>, u64) {
        let mut state = self.observation.state();
        let now = self.clock.now();
        let time = max(self.generation.observation.timebase.ticks(now), state.now.at);
        state.settle(time, self.awake_ticks(now));
        (state, time)
    }

    /// Ticks of OA time in which the GT was not in RC6 up to `now`, in ns of the card's clock.
    fn awake_ticks(&self, now: u64) -> u64 {
        self.generation.observation.timebase.ticks(now.saturating_sub(self.residency.slept(now)))
    }

    /// Notes that an engine has begun or ended to run a context, or that RC6 was entered or left.
    #[inline]
    pub(super) fn note_activity(&self) {
        if self.observation.active() {
            self.activity_changed();
        }
    }

    #[cold]
    fn activity_changed(&self) {
        let mut state = self.observation.state();
        state.note(self.oa_time(), self.activity());
        drop(state);
        self.step_soon();
    }

    /// The unit has events that need no report at once.
    fn step_soon(&self) {
        if self.observation.enabled() {
            self.observation.step_by(self.clock.now().saturating_add(STEP_INTERVAL));
        }
    }

    /// A request of a frequency has been executed: before it, clocks had the frequency `before`.
    pub(super) fn note_request(&self) {
        let ratio = self.actual_ratio();
        let (mut state, time) = self.observed_now();
        state.set_idle_ratio(ratio);
        if state.now.activity.ratio == ratio {
            state.note_request(time);
        } else {
            state.note(time, self.activity());
        }
        drop(state);
        self.step_soon();
    }

    /// Begins or ends the use of the card's activity by the context on an engine. Returns the counters up to now.
    pub(crate) fn use_activity(&self, engine: EngineId, used: bool) -> MutexGuard<'_, State> {
        let (mut state, _) = self.observed_now();
        self.observation.set_active(Some(engine), used);
        if used {
            state.begin(self.activity());
        } else {
            self.end_if_unused(&mut state);
        }
        state
    }

    /// Initialises the frequency after power-on or a reset.
    pub(super) fn begin_observation(&self) {
        self.observation.state().set_idle_ratio(self.actual_ratio());
    }

    /// Resets OAG with its registers. The lock of the unit must be held.
    pub(crate) fn reset_observation(&self) {
        self.observation.reset();
        self.memory.count_traffic(false);
        self.registers.reset_range(OAG_BLOCK);
        self.registers.reset_register(OAGLBCTXCTRL);
        self.registers.reset_register(RPM_CONFIG1);
        self.registers.reset_register(NOA_WRITE);
        self.begin_observation();
    }

    /// Requests a report of a write of OAG_MMIOTRIGGER or of an internal trigger, from `engine` or the CPU.
    pub(crate) fn trigger_report(&self, request: ReportRequest, engine: Option<EngineId>) {
        let facts = self.generation.observation;
        let trigger = match request {
            ReportRequest::Mmio(value) => {
                let source = engine.map_or(SOURCE_CPU, |engine| (facts.source)(self.engine(engine)));
                Trigger { reason: reason::MMIO, source, context: value, valid: false }
            }
            ReportRequest::Internal(number) => {
                Trigger { reason: reason::INTERNAL << (number & 1), source: 0, context: 0, valid: false }
            }
        };
        self.request_report(trigger);
    }

    fn request_report(&self, trigger: Trigger) {
        if self.observation.enabled() {
            let mut state = self.observation.state();
            state.trigger(self.oa_time(), trigger);
            drop(state);
            self.observation.step_by(self.clock.now());
        }
    }

    /// Requests a report of a switch of the render engine to the context with this high dword of its descriptor, or to idle. Returns
    /// whether one is to be written.
    pub(crate) fn report_switch(&self, engine: EngineId, function: Function, descriptor: Option<u64>) -> bool {
        let render = self.engine(engine).class == EngineClass::Render;
        if !render || !self.observation.enabled() || self.registers.fields::<OaDebug>().no_switch_reports() {
            return false;
        }
        let source = (self.generation.observation.source)(self.engine(engine));
        // A VF's number is where the driver of the PF has 0 (OA-008).
        let context = descriptor.map_or(0, |descriptor| high(descriptor) | u32::from(function.number()));
        self.request_report(Trigger { reason: reason::SWITCH, source, context, valid: descriptor.is_some() });
        true
    }

    /// Executes a step of the unit. Returns whether more is due, and when the next step is, in ns of the card's clock.
    pub(crate) fn step_observation(&self, now: u64) -> (bool, u64) {
        let due = self.observation.due();
        if due > now {
            return (false, due);
        }
        let Some(mut writer) = self.observation.writer.try_lock() else {
            return (false, now.saturating_add(STEP_INTERVAL / 10));
        };
        let written = self.write_in_step(&mut writer, STEP_REPORTS);
        let interval = match written {
            Written::More => return (true, now),
            Written::All => STEP_INTERVAL,
            Written::Unanswered => UNANSWERED_INTERVAL,
        };
        let first = self.first_due().map_or(u64::MAX, |first| max(first, now.saturating_add(interval)));
        self.observation.step_at(first);
        // What was requested since may be due before.
        let first = self.first_due().map_or(first, |due| max(due, now.saturating_add(interval)).min(first));
        self.observation.step_by(first);
        (false, first)
    }

    /// When a report is due first, in ns of the card's clock.
    fn first_due(&self) -> Option<u64> {
        let first = self.observation.state().first_due()?;
        Some(self.generation.observation.timebase.nanoseconds(first))
    }

    /// Writes what is due, on behalf of an access to a register by the PF or of a command of the PF's context. Must not be called
    /// where a step of the unit may wait for the caller: deadlock.
    pub(crate) fn write_due_reports(&self, gam: &mut Gam<'_>) {
        let mut writer = self.observation.writer.lock();
        if self.write_reports(&mut writer.batch, gam, ACCESS_REPORTS) != Written::All {
            self.observation.step_by(self.clock.now());
        }
    }

    /// The same without a step of an engine.
    pub(crate) fn write_reports_of_access(&self) {
        let mut writer = self.observation.writer.lock();
        if self.write_in_step(&mut writer, ACCESS_REPORTS) != Written::All {
            let mut state = self.observation.state();
            if state.stopping() {
                state.abandon();
            }
        }
        self.publish_enable();
    }

    /// Executes a step of the unit, with its lock held: writes what is due, at most `limit` reports.
    fn write_in_step(&self, writer: &mut Writer, limit: usize) -> Written {
        let Writer { tlb, batch } = writer;
        let views = self.memory.step_views(UnitId::Observation);
        let mut gam = self.memory.gam(Function::PF, &views, tlb);
        self.write_reports(batch, &mut gam, limit)
    }

    /// OAG is no longer enabled if its disable is complete.
    fn publish_enable(&self) {
        if !self.observation.enabled() || self.observation.state().enabled() {
            return;
        }
        let (mut state, _) = self.observed_now();
        let ended = !state.enabled();
        if ended {
            self.observation.set_active(None, false);
            self.memory.count_traffic(false);
            self.end_if_unused(&mut state);
        }
        drop(state);
        if ended {
            self.trace_stream(false);
        }
    }

    fn end_if_unused(&self, state: &mut State) {
        if !self.observation.active() {
            state.end(self.awake_ticks(self.clock.now()));
        }
    }

    /// Distance of two reports of the timer in ns, if it is on.
    fn stream_period(&self) -> Option<u64> {
        let exponent = self.observation.state().now.settings.exponent()?;
        Some(self.generation.observation.timebase.nanoseconds(timer::period(exponent)))
    }

    /// The format of OAG's reports.
    fn stream_format(&self) -> &'static Format {
        let facts = self.generation.observation;
        let select = self.registers.fields::<OaControl>().select();
        format::find(facts.global, select).unwrap_or(facts.other)
    }

    /// The stream, if there has been one since power-on.
    pub fn stream_status(&self) -> Option<StreamStatus> {
        let (written, lost) = self.observation.counts();
        let enabled = self.observation.enabled();
        let some = enabled || written != 0 || lost != 0;
        let bytes = self.stream_format().bytes;
        let period_ns = self.stream_period();
        some.then(|| StreamStatus { unit: OAG.into(), enabled, period_ns, bytes, written, lost })
    }

    /// Traces the begin or the end of a stream.
    fn trace_stream(&self, enabled: bool) {
        self.trace.record(Function::PF, || {
            let (written, lost) = self.observation.counts();
            EventKind::Stream { unit: OAG.into(), enabled, period_ns: self.stream_period(), written, lost }
        });
    }

    /// Writes the reports that are due now, at most `limit`.
    fn write_reports(&self, batch: &mut Batch, gam: &mut Gam<'_>, limit: usize) -> Written {
        let until = self.oa_time();
        let mut left = limit;
        let written = loop {
            if left == 0 {
                break Written::More;
            }
            let most = left.min(MOST_REPORTS);
            let reports = self.write_batch(batch, gam, until, most);
            left = left.saturating_sub(reports);
            if gam.unanswered() {
                self.set_status(Flags { lost: 1, ..Flags::default() }, OaStatus::new());
                break Written::Unanswered;
            }
            if reports < most {
                break Written::All;
            }
        };
        self.publish_enable();
        written
    }

    /// Writes up to `most` reports that are due before `until`. Returns their number.
    fn write_batch(&self, batch: &mut Batch, gam: &mut Gam<'_>, until: u64, most: usize) -> usize {
        let debug: OaDebug = self.registers.fields();
        let buffer = Buffer::of(self.registers.fields::<OaBuffer>(), debug);
        let format = self.stream_format();
        let fits = u64::from(buffer.size).checked_div(format.bytes as u64).unwrap_or(0);
        let mut state = self.observation.state();
        batch.begin();
        let mut reports = 0;
        while reports < most
            && let Some(Due { at, trigger, ratio, ticks }) = state.next_report(until, debug, fits)
        {
            let id = ReportId {
                source: trigger.source,
                reason: trigger.reason,
                context_valid: trigger.valid,
                ratio: debug.frequency_in_id().then_some(ratio),
            };
            let header = Header { id: id.bits(), time: at & TIME_BITS, context: trigger.context, ticks };
            batch.add(format.write(header, state.reported(), &mut [0; LONGEST]));
            reports = reports.saturating_add(1);
        }
        let flags = state.take_flags();
        drop(state);
        let pointer = |register| buffer.offset(self.registers.value(register));
        let (head, tail) = (pointer(OAG_OAHEADPTR), pointer(OAG_OATAILPTR));
        let result = batch.write(gam, &buffer, (head, tail), format.bytes);
        if result.reports != 0 {
            // After the data: a driver reads up to the tail.
            self.registers.set(OAG_OATAILPTR, low(buffer.address(result.tail)));
            if buffer.half_full(head, result.tail) && !buffer.half_full(head, tail) {
                self.interrupts.raise_observation(HALF_FULL);
            }
        }
        let status = OaStatus::new().with_buffer_overflow(result.overflow).with_overrun(result.dropped != 0);
        self.set_status(flags, status);
        self.observation.count(result.reports, flags.lost.saturating_add(result.dropped));
        reports
    }

    /// Sets bits of OASTATUS.
    fn set_status(&self, flags: Flags, status: OaStatus) {
        let status = status
            .with_report_lost(flags.lost != 0)
            .with_buffer_overflow(status.buffer_overflow() || flags.overflow)
            .with_trigger_queue_full(flags.triggers);
        if u32::from(status) != 0 {
            self.registers.set_bits(OAG_OASTATUS, status.into());
        }
    }

    /// What the flexible counters count.
    pub(crate) fn flexible_counters(&self) -> [u32; REGISTERS] {
        EU_PERF_CNTL.map(|register| self.registers.value(register))
    }

    /// Returns whether a flexible counter may count: one counts while nothing is enabled, A19 or A20 (V13-244).
    pub(crate) fn counts_instructions(&self) -> bool {
        self.observation.active() || self.registers.value(EU_PERF_CNTL[6]) != EVENTS_OFF
    }

    /// Counts the work of kernels, and what the flexible counters count of it.
    pub(crate) fn count_kernel_work(&self, work: &KernelWork, flexible: &FlexibleCounts) {
        self.observation.state().count(|counters| counters.count_kernels(work, flexible));
    }

    /// Counts bytes of device memory that an engine or a cluster has read and written ([`Gam::take_traffic`]).
    pub(crate) fn count_memory_traffic(&self, bytes: [u64; 2]) {
        if self.observation.enabled() && bytes != [0, 0] {
            let of_128 = self.registers.fields::<SuperQueueControl>().units_of_128();
            let unit = if of_128 { BYTES_128 } else { FOUR_TRANSACTIONS };
            self.observation.state().count(|counters| counters.count_memory(bytes, unit));
        }
    }

    /// Changes a setting of the counters.
    fn change_setting(&self, setting: Setting) {
        self.change(|state, time| state.set(time, setting));
    }

    /// Changes settings of the counters at the present OA time.
    fn change(&self, change: impl FnOnce(&mut State, u64)) {
        let (mut state, time) = self.observed_now();
        change(&mut state, time);
        drop(state);
        self.step_soon();
    }
}

/// Bits of OA time in a report.
const TIME_BITS: u64 = (1 << 56) - 1;

/// A report that a write of a register requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportRequest {
    /// OAG_MMIOTRIGGER, with the value.
    Mmio(u32),
    /// An internal trigger, 0 or 1.
    Internal(u8),
}

/// Number of an element of an array: the longest has 64.
fn element_of(access: Access<'_>) -> u8 {
    u8::try_from(access.ordinal()).unwrap_or(u8::MAX)
}

impl Unit<XeHpg, Gt> for ObservationRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        let ordinal = element_of(access);
        let part = |value: u64, upper: bool| if upper { high(value) } else { low(value) };
        let counter = |number: u8| gt.observed_now().0.now.values.a(number, 1).next().unwrap_or(0);
        let element = |values: &[u64]| values.get(usize::from(ordinal)).copied().map_or(0, low);
        match *self {
            ObservationRegister::Control => {
                gt.registers.value(access.offset) | u32::from(OaControl::new().with_enable(gt.observation.enabled()))
            }
            ObservationRegister::GlobalControl
            | ObservationRegister::NoaWrite
            | ObservationRegister::NoaEnable
            | ObservationRegister::Comparison
            | ObservationRegister::Flexible
            | ObservationRegister::InternalTrigger(_) => gt.registers.value(access.offset),
            ObservationRegister::MmioTrigger => 0,
            ObservationRegister::Wide(first) => {
                part(counter(first.saturating_add(ordinal / 2)), !ordinal.is_multiple_of(2))
            }
            ObservationRegister::Narrow(first) => low(counter(first.saturating_add(ordinal))),
            ObservationRegister::Ticks => low(gt.observed_now().0.now.ticks),
            ObservationRegister::B => element(&gt.observed_now().0.now.values.b),
            ObservationRegister::C => element(&gt.observed_now().0.now.values.c),
        }
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        let ordinal = element_of(access);
        let before = gt.registers.value(access.offset);
        let stores = !matches!(
            self,
            ObservationRegister::MmioTrigger
                | ObservationRegister::Wide(_)
                | ObservationRegister::Narrow(_)
                | ObservationRegister::Ticks
                | ObservationRegister::B
                | ObservationRegister::C
        );
        if stores {
            gt.registers.set(access.offset, value);
        }
        match *self {
            ObservationRegister::Control => return gt.control_observation(OaControl::from(value)),
            ObservationRegister::GlobalControl => {
                gt.change_setting(Setting::Control(value));
                return Some(SideEffect::Observe);
            }
            ObservationRegister::NoaWrite => gt.change(|state, time| state.write_network(time, gt.die.name, value)),
            ObservationRegister::NoaEnable => {
                gt.change(|state, time| state.switch_network(time, value & NOA_ENABLE != 0));
            }
            ObservationRegister::Comparison => gt.change_setting(Setting::Block(ordinal, value)),
            ObservationRegister::InternalTrigger(number) => {
                let rises = value & !before & TRIGGER_INVERTED != 0;
                if value & TRIGGER_ON != 0 && rises {
                    return Some(SideEffect::Report(ReportRequest::Internal(number)));
                }
            }
            ObservationRegister::MmioTrigger => {
                let wanted = gt.observation.enabled() && !gt.registers.fields::<OaDebug>().no_mmio_reports();
                return wanted.then_some(SideEffect::Report(ReportRequest::Mmio(value)));
            }
            ObservationRegister::Wide(first) => {
                let counter = usize::from(first).saturating_add(usize::from(ordinal / 2));
                gt.observed_now()
                    .0
                    .change_values(|values| values.set_dword(counter, !ordinal.is_multiple_of(2), value));
            }
            ObservationRegister::Narrow(first) => {
                let counter = usize::from(first).saturating_add(ordinal.into());
                gt.observed_now().0.change_values(|values| values.set_dword(counter, false, value));
            }
            ObservationRegister::Flexible
            | ObservationRegister::Ticks
            | ObservationRegister::B
            | ObservationRegister::C => {}
        }
        None
    }
}

impl Gt {
    /// A write of OAG_OACONTROL.
    fn control_observation(&self, control: OaControl) -> Option<SideEffect> {
        let (mut state, time) = self.observed_now();
        if !control.enable() {
            state.disable(time);
        } else if !state.enabled() || state.stopping() {
            self.observation.set_active(None, true);
            self.memory.count_traffic(true);
            state.begin(self.activity());
            state.enable(time);
            drop(state);
            self.trace_stream(true);
        }
        Some(SideEffect::Observe)
    }
}
