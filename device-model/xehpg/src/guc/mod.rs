// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GuC: firmware upload, mailbox, CT buffers, actions, and the scheduler.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod actions;
pub mod activity;
pub mod doorbell;
pub mod functions;
pub(crate) mod inspect;
pub mod load;
pub mod messages;
pub mod migration;
mod notices;
pub mod provisioning;
pub mod saved;
pub mod scheduler;
pub mod slpc;
pub mod state;
mod step;

#[cfg(test)]
mod tests;

use crate::engine::{EngineReport, Engines};
use crate::execlist::buffer::CsbPort;
use crate::gt::Gt;
use crate::host::{Function, RetryTime, functions};
use crate::interrupts::DMA_DONE;
use crate::memory::{GuestMappings, Tlb, ggtt};
use crate::profile::provision::Quota;
use crate::registers::guc::{DMA_CTRL, DmaCtrl, GUC_STATUS};
use crate::units::Units;
pub use actions::control::FunctionReset;
use actions::{builtin_pf, control, mailbox};
use functions::GucFunction;
use functions::context::GucContextId;
use functions::engine_map::EngineMap;
use load::ads::Ads;
use load::dma::{DmaEngine, Transfer};
use load::firmware::{self, Firmware, LoadFailure};
use messages::hxg::{Error, Outgoing};
use scheduler::{GucCtx, Scheduler};
use state::{Counters, GucState, PersistentState};

/// Time for which a transfer of the DMA engine is repeated because a client does not answer an access, in nanoseconds.
const MOST_UNANSWERED: u64 = 1_000_000_000;

/// Result of a GuC step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Time by which the next step must run, in ns of the card's clock; `None` if no step is needed until a function
    /// notifies the GuC or an engine reports an outcome.
    pub next: Option<u64>,
    /// Functions (one bit each) with new G2H messages. The caller must raise GUC2HOST for them after releasing all
    /// locks.
    pub interrupts: u64,
    /// Functions (one bit each) with a newly written memory-based interrupt. The caller must send their MSIs.
    pub messages: u64,
}

impl Step {
    /// Adds the functions with new messages of `other`.
    fn merge(&mut self, other: Step) {
        self.interrupts |= other.interrupts;
        self.messages |= other.messages;
    }
}

/// The emulated GuC.
pub struct Guc {
    /// The units for whose steps it waits.
    units: Units,
    state: Option<Box<GucState>>,
    tlb: Tlb,
    reports: Vec<EngineReport>,
    out: Vec<(Function, Outgoing)>,
    persistent: PersistentState,
    dma: DmaEngine,
    /// For how long a transfer has been repeated, by the card's clock.
    retry_time: RetryTime,
    /// Quotas of VFs 1, 2, ... if the card provisions the VFs itself; empty if a PF driver provisions them.
    quotas: Vec<Quota>,
}

impl Guc {
    /// Creates a GuC in reset. `units` are all units of the card that access memory, but the GuC.
    pub fn new(units: Units) -> Self {
        Guc {
            units,
            state: None,
            tlb: Tlb::default(),
            reports: Vec::new(),
            out: Vec::new(),
            persistent: PersistentState::default(),
            dma: DmaEngine::default(),
            retry_time: RetryTime::default(),
            quotas: Vec::new(),
        }
    }

    /// The units for whose steps the GuC waits: those below its lock.
    pub fn units(&self) -> &Units {
        &self.units
    }

    /// Handles a write to DMA_CTRL that sets the start bit: carries out the transfer and, if it is that of a kernel,
    /// checks and starts it (contract B.4 step 20). A rejected transfer changes no memory and sends no interrupt; that
    /// of a kernel leaves its reason in GUC_STATUS (V13-195). Running firmware owns the DMA engine, so further requests
    /// of the host are ignored (V13-180). If the fuses disable the GuC, no transfer starts or completes (V13-189).
    ///
    /// Returns whether the function's client has not answered an access through `views`, and the call must be repeated soon; DMA_CTRL
    /// still shows the transfer.
    pub fn start_dma(&mut self, gt: &Gt, engines: &Engines, views: &GuestMappings<'_>) -> bool {
        // Read once: a vCPU may write the register, which has no lock, during the transfer.
        let control: DmaCtrl = gt.registers.fields();
        if !control.start() || gt.guc_disabled() {
            return false;
        }
        let may_repeat = self.retry_time.may_repeat(gt.clock.now(), MOST_UNANSWERED);
        if self.state.is_none() && self.transfer(gt, engines, views, control, may_repeat) {
            return true;
        }
        self.retry_time.end();
        gt.registers.clear_bits(DMA_CTRL, DmaCtrl::new().with_start(true).into());
        false
    }

    /// Carries out a transfer. Returns whether it must be repeated, if it may be: an access was not answered.
    fn transfer(
        &mut self,
        gt: &Gt,
        engines: &Engines,
        views: &GuestMappings<'_>,
        control: DmaCtrl,
        may_repeat: bool,
    ) -> bool {
        let mut gam = gt.memory.gam(Function::PF, views, &mut self.tlb);
        let programmed = Transfer::programmed(gt, control);
        let run = |transfer: Transfer| self.dma.run(gt, &mut gam, transfer).map(|()| transfer);
        let done = programmed.and_then(run);
        if done.is_ok() {
            gt.interrupts.raise_guc(DMA_DONE);
        }
        if control.kernel() {
            let boot = |transfer: Transfer| {
                let firmware = firmware::load(gt, &mut gam, self.dma.kernel(transfer))?;
                match Ads::read(&mut gam, firmware.ads(), gt.generation, engines) {
                    Ok(ads) => Ok((transfer, firmware, ads)),
                    Err(_) if may_repeat && gam.unanswered() => Err(LoadFailure::init_data()),
                    Err(error) => {
                        log::warn!("GuC: {error}");
                        Err(LoadFailure::init_data())
                    }
                }
            };
            let status = match done.map_err(LoadFailure::from).and_then(boot) {
                Ok((transfer, firmware, ads)) => {
                    self.dma.protect(transfer);
                    // The context-status FIFOs keep their entries across engine and GuC resets; the firmware drains
                    // them at startup (V13-204).
                    gt.csb_ports.iter().for_each(CsbPort::clear);
                    log::info!("GuC firmware {:?}, submission interface {:?}", firmware.release, firmware.submission);
                    self.state = Some(Box::new(GucState::new(gt, firmware, ads, std::mem::take(&mut self.persistent))));
                    firmware::STATUS_READY
                }
                Err(_) if may_repeat && gam.unanswered() => return true,
                Err(failure) => {
                    log::warn!("GuC firmware rejected: GUC_STATUS {:#010x}", failure.status().into_bits());
                    failure.status()
                }
            };
            gt.registers.set(GUC_STATUS, status.into());
            return false;
        }
        done.is_err() && may_repeat && gam.unanswered()
    }

    /// Resets the GuC (GDRST bit 3). Discards the firmware, CT buffers, contexts and configurations.
    pub fn reset(&mut self, gt: &Gt) {
        if let Some(state) = self.state.take() {
            self.persistent = state.persistent();
        }
        self.out.clear();
        self.dma.release();
        self.retry_time.end();
        gt.permit_rc6(false);
        gt.drop_guc_forcewakes();
        gt.doorbells.reset();
        gt.registers.set(GUC_STATUS, firmware::STATUS_RESET.into());
    }

    /// Restarts the GuC with the built-in firmware and assigns `quotas` to VFs 1, 2, ... The card then performs the
    /// tasks of the PF driver. Returns an error if the quotas are invalid.
    pub fn start_without_pf_driver(&mut self, gt: &Gt, engines: &Engines, quotas: &[Quota]) -> Result<(), Error> {
        self.reset(gt);
        self.quotas = quotas.to_vec();
        let shared = self.restart_builtin(gt, engines);
        // Scrub the local memory: a VF must not read data of the previous owner.
        self.units
            .while_stopped(|| (1..).map_while(Function::vf).zip(quotas).for_each(|(vf, _)| gt.memory.clear_vf(vf)));
        shared
    }

    /// Restarts the GuC after a reset if the card performs the tasks of the PF driver. Otherwise does nothing, because
    /// the PF driver loads the firmware.
    pub fn restart_builtin(&mut self, gt: &Gt, engines: &Engines) -> Result<(), Error> {
        if self.quotas.is_empty() || self.state.is_some() {
            return Ok(());
        }
        if gt.guc_disabled() {
            return Err(Error::InvalidState);
        }
        let ads = Ads { map: EngineMap::from_present(gt.generation.engines, engines.present()), ..Ads::default() };
        let mut state =
            Box::new(GucState::new(gt, Firmware::built_in(gt.guc_versions), ads, std::mem::take(&mut self.persistent)));
        state.builtin_pf = true;
        let views = gt.memory.views();
        let mut ctx = GucCtx::new(gt, engines, &self.units, &views, &mut self.tlb, Function::PF, &mut self.out);
        let shared = builtin_pf::share_out(&mut state, &mut ctx, &self.quotas);
        self.state = Some(state);
        gt.registers.set(GUC_STATUS, firmware::STATUS_READY.into());
        shared
    }

    /// Returns whether VF_SW_FLAG(0) of `function` holds a pending request.
    pub fn mailbox_holds_request(gt: &Gt, function: Function) -> bool {
        mailbox::holds_request(gt, function)
    }

    /// Returns whether the mailbox request of `function` may wait for steps of engines, which may wait for its client.
    pub fn mailbox_waits_for_steps(gt: &Gt, function: Function) -> bool {
        mailbox::waits_for_steps(gt, function)
    }

    /// Executes the mailbox request of `function`, if any, and writes the reply. Called during the write to
    /// GUC_HOST_INTERRUPT, before that write completes. A request that may wait for the function's client there, and one
    /// with an access that was not answered through `views`, is executed by [`Guc::step`].
    pub fn mailbox(&mut self, gt: &Gt, engines: &Engines, views: &GuestMappings<'_>, function: Function) {
        let Some(state) = &mut self.state else { return };
        if !mailbox::holds_request(gt, function) {
            return;
        }
        let mut ctx = GucCtx::new(gt, engines, &self.units, views, &mut self.tlb, function, &mut self.out);
        mailbox::answer(state, &mut ctx);
    }

    /// Performs an FLR of a VF, initiated for this VF or caused by clearing VF Enable (V13-117, V13-127).
    pub fn function_reset(&mut self, gt: &Gt, engines: &Engines, function: Function) -> FunctionReset {
        gt.doorbells.reset_function(function);
        let Some(state) = self.state.as_mut() else {
            // Without firmware, there are no contexts, and no PF driver handles the reset. The memory that the VF has
            // written through its BARs stays assigned to it when firmware is loaded again.
            let granted = ggtt::indices(&self.persistent.functions[function].granted);
            gt.memory.ggtt().erase_vf(function, granted);
            gt.memory.begin_clearing(function);
            return FunctionReset::Unled;
        };
        let views = gt.memory.views();
        let mut ctx = GucCtx::new(gt, engines, &self.units, &views, &mut self.tlb, function, &mut self.out);
        control::function_reset(state, &mut ctx, function)
    }

    /// Continues a reset that returned [`FunctionReset::Unannounced`], after the VF's local memory has been released.
    /// Returns false if it must be released again, because the VF was reset meanwhile, and this function be called again
    /// then. Otherwise the caller must request a GuC step, which sends the notification.
    #[must_use]
    pub fn announce_reset(&mut self, gt: &Gt, engines: &Engines, function: Function) -> bool {
        if !gt.memory.end_emptying(function) {
            return false;
        }
        let Some(state) = &mut self.state else { return true };
        let views = gt.memory.views();
        let mut ctx = GucCtx::new(gt, engines, &self.units, &views, &mut self.tlb, function, &mut self.out);
        control::announce_reset(state, &mut ctx, function);
        true
    }

    /// Completes a reset that returned [`FunctionReset::Unled`], after the VF's memory has been cleared.
    pub fn finish_reset(&mut self, gt: &Gt, engines: &Engines, function: Function) {
        let last = gt.memory.end_clearing(function);
        let Some(state) = &mut self.state else { return };
        let views = gt.memory.views();
        let mut ctx = GucCtx::new(gt, engines, &self.units, &views, &mut self.tlb, function, &mut self.out);
        control::finish_reset(state, &mut ctx, function, last);
    }

    /// Executes the mailbox requests of `left` (one bit each), which were not executed during the notification, and those with an access
    /// that was not answered.
    pub fn serve_mailboxes(&mut self, gt: &Gt, engines: &Engines, left: u64) {
        let again = self.state.as_mut().map_or(0, |state| std::mem::take(&mut state.unanswered_mailboxes));
        for function in functions(left | again).filter(|function| mailbox::holds_request(gt, *function)) {
            self.mailbox(gt, engines, &gt.memory.views(), function);
        }
    }

    /// Performs a bounded amount of work: pending CT buffer requests, engine reports and time slices. `notified`
    /// contains the functions (one bit each) that have notified the GuC since the last step.
    pub fn step(&mut self, gt: &Gt, engines: &Engines, notified: u64) -> Step {
        engines.take_reports(&mut self.reports);
        let Some(state) = &mut self.state else { return Step::default() };
        let views = gt.memory.views();
        let mut ctx = GucCtx::new(gt, engines, &self.units, &views, &mut self.tlb, Function::PF, &mut self.out);
        state.step(&mut ctx, &self.reports, notified)
    }

    /// Returns whether the card acts as the PF, because no PF driver is present.
    pub fn has_builtin_pf(&self) -> bool {
        !self.quotas.is_empty()
    }

    /// Returns the running firmware; `None` if no firmware is running.
    pub fn firmware(&self) -> Option<Firmware> {
        self.state.as_ref().map(|state| state.firmware)
    }

    /// Returns the scheduler; `None` if no firmware is running.
    pub fn scheduler(&self) -> Option<&Scheduler> {
        self.state.as_ref().map(|state| &state.scheduler)
    }

    /// Returns the GuC's state of `function`; `None` if no firmware is running.
    pub fn function(&self, function: Function) -> Option<&GucFunction> {
        self.state.as_ref().map(|state| &state.scheduler.functions[function])
    }

    /// Returns the state of a VF, to save or restore it; `None` if no firmware is running. Doorbell rings that have not
    /// been served are served, and messages to functions are added to their channels.
    pub(crate) fn unit<'g>(
        &'g mut self,
        gt: &'g Gt,
        engines: &Engines,
        function: Function,
    ) -> Option<saved::VfUnits<'g>> {
        let state = self.state.as_deref_mut()?;
        let views = gt.memory.views();
        let mut ctx = GucCtx::new(gt, engines, &self.units, &views, &mut self.tlb, Function::PF, &mut self.out);
        migration::settle(state, &mut ctx, function);
        Some(saved::VfUnits { gt, guc: saved::Unit { guc: state, doorbells: &gt.doorbells, function } })
    }

    /// Pauses or resumes a VF, as the PF driver does by VF_CONTROL. A pause is complete once the VF's state is
    /// [`client::State::Paused`] with `notified` set. The caller must request a GuC step.
    pub(crate) fn set_paused(
        &mut self,
        gt: &Gt,
        engines: &Engines,
        function: Function,
        paused: bool,
    ) -> Result<(), Error> {
        let Some(state) = &mut self.state else { return Err(Error::InvalidState) };
        let views = gt.memory.views();
        let mut ctx = GucCtx::new(gt, engines, &self.units, &views, &mut self.tlb, Function::PF, &mut self.out);
        control::set_paused(state, &mut ctx, function, paused)
    }

    /// Returns the context assigned to a physical doorbell; `None` also if no firmware is running.
    pub fn doorbell(&self, index: u8) -> Option<GucContextId> {
        self.state.as_ref()?.doorbells.bound(index)
    }

    /// Returns the request counters since the firmware was started.
    pub fn counters(&self) -> Counters {
        self.state.as_ref().map_or_else(Counters::default, |state| state.counters)
    }
}
