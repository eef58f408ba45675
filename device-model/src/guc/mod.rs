//! The GuC's interface: firmware upload, mailbox, CT buffers, its actions, and the scheduler behind them.

pub mod action;
pub mod activity;
pub mod ads;
pub mod adverse;
mod capture;
pub mod client;
pub mod context;
mod control;
pub mod ctb;
pub mod doorbell;
pub mod firmware;
pub mod hwconfig;
pub mod hxg;
pub mod kernel;
pub mod klv;
pub mod mailbox;
pub mod names;
pub mod parallel;
mod provisioner;
pub mod provisioning;
pub mod queue;
mod relay;
pub mod rotation;
pub mod scheduler;
pub mod seat;
mod service;
pub mod share;
pub mod slpc;

#[cfg(test)]
mod tests;

use crate::engine::{EngineReport, Engines};
use crate::execlist::buffer::CsbPort;
use crate::gt::Gt;
use crate::memory::Tlb;
use crate::profile::provision::Quota;
use crate::world::{Function, functions};
use ads::{Ads, EngineMap};
use client::Client;
pub use control::FunctionReset;
use firmware::{Firmware, LoadFailure};
use hxg::{Error, Outgoing};
use kernel::{Counters, Heritage, Kernel};
use scheduler::{Scheduler, Turn};

/// How a step of the GuC ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// When it wants to be called again at the latest (clock time in ns); `None` if only a ring or a report can give it
    /// work.
    pub next: Option<u64>,
    /// Functions (a bit each) whose host has new messages: GUC2HOST is to be raised, once no lock is held.
    pub interrupts: u64,
    /// Functions whose interrupt is in memory already (memory-based): only the MSI is left to be sent.
    pub messages: u64,
}

/// The micro-controller's state.
#[derive(Default)]
pub struct Guc {
    kernel: Option<Box<Kernel>>,
    tlb: Tlb,
    reports: Vec<EngineReport>,
    out: Vec<(Function, Outgoing)>,
    heritage: Heritage,
    /// What each VF has been given by the card itself; empty where a PF driver does that.
    quotas: Vec<Quota>,
}

impl Guc {
    /// A GuC in reset.
    pub fn new() -> Self {
        Self::default()
    }

    /// DMA_CTRL was started: moves and checks the firmware, and starts it (contract B.4 step 20). Once a kernel runs the
    /// DMA engine is its own, and the host's order is ignored (V13-180).
    pub fn start_dma(&mut self, gt: &Gt) {
        if !firmware::dma_started(gt) {
            return;
        }
        let views = gt.memory.views();
        let mut gam = gt.memory.gam(Function::PF, &views, &mut self.tlb);
        if self.kernel.is_none()
            && let Some(loaded) = firmware::load(gt, &mut gam)
        {
            let boot = |firmware: Firmware| match Ads::read(&mut gam, firmware.ads()) {
                Ok(ads) if firmware.ads() != 0 => Ok((firmware, ads)),
                _ => Err(LoadFailure::init_data()),
            };
            let status = match loaded.and_then(boot) {
                Ok((firmware, ads)) => {
                    // The FIFOs of context switches outlive a reset of engines and GuC (V13-204).
                    gt.csb_ports.iter().for_each(CsbPort::clear);
                    log::info!("GuC firmware {:?}, interface {:?}", firmware.release, firmware.submission);
                    self.kernel = Some(Box::new(Kernel::new(gt, firmware, ads, std::mem::take(&mut self.heritage))));
                    firmware::STATUS_READY
                }
                Err(failure) => {
                    log::warn!("GuC firmware refused: status {:#010x}", failure.status());
                    failure.status()
                }
            };
            gt.registers.set(firmware::GUC_STATUS, status);
        }
        firmware::finish_dma(gt);
    }

    /// The GuC is reset (GDRST bit 3): firmware, CT buffers, contexts and configurations are gone.
    pub fn reset(&mut self, gt: &Gt) {
        if let Some(kernel) = self.kernel.take() {
            self.heritage = kernel.heritage();
        }
        self.out.clear();
        gt.permit_rc6(false);
        gt.doorbells.reset();
        gt.registers.set(firmware::GUC_STATUS, firmware::STATUS_RESET);
    }

    /// Comes up without a PF driver, and gives VFs 1, 2, ... their `quotas`: from now on the card plays the PF. What is
    /// wrong with the quotas is told.
    pub fn play_pf(&mut self, gt: &Gt, engines: &Engines, quotas: &[Quota]) -> Result<(), Error> {
        self.reset(gt);
        self.quotas = quotas.to_vec();
        let shared = self.revive(gt, engines);
        // Whose the memory was before is nothing to those who have it now.
        engines.stand_still(|| (1..).map_while(Function::vf).zip(quotas).for_each(|(vf, _)| gt.memory.clear_vf(vf)));
        shared
    }

    /// Comes up again after a reset, if the card plays the PF; else its driver does that.
    pub fn revive(&mut self, gt: &Gt, engines: &Engines) -> Result<(), Error> {
        if self.quotas.is_empty() || self.kernel.is_some() {
            return Ok(());
        }
        let ads = Ads { map: EngineMap::of(engines.present()), ..Ads::default() };
        let mut kernel = Box::new(Kernel::new(gt, Firmware::built_in(), ads, std::mem::take(&mut self.heritage)));
        kernel.plays_pf = true;
        let views = gt.memory.views();
        let mut turn = Turn::new(gt, engines, &views, &mut self.tlb, Function::PF, &mut self.out);
        let shared = provisioner::share_out(&mut kernel, &mut turn, &self.quotas);
        self.kernel = Some(kernel);
        gt.registers.set(firmware::GUC_STATUS, firmware::STATUS_READY);
        shared
    }

    /// Whether VF_SW_FLAG(0) of `function` holds a request that is not answered yet.
    pub fn mailbox_holds_request(gt: &Gt, function: Function) -> bool {
        mailbox::holds_request(gt, function)
    }

    /// The driver of `function` rang: answers a request in its mailbox, before the access completes.
    pub fn mailbox(&mut self, gt: &Gt, engines: &Engines, function: Function) {
        let Some(kernel) = &mut self.kernel else { return };
        if !mailbox::holds_request(gt, function) {
            return;
        }
        let views = gt.memory.views();
        let mut turn = Turn::new(gt, engines, &views, &mut self.tlb, function, &mut self.out);
        mailbox::answer(kernel, &mut turn);
    }

    /// A VF is in FLR, by itself or because VF Enable was cleared (V13-117, V13-127).
    pub fn function_reset(&mut self, gt: &Gt, engines: &Engines, function: Function) -> FunctionReset {
        gt.doorbells.reset_function(function);
        let Some(kernel) = &mut self.kernel else {
            // Nobody leads the reset, and there is no work; what the VF has mapped goes all the same.
            gt.memory.ggtt().empty_vf(function);
            return FunctionReset::Led;
        };
        let views = gt.memory.views();
        let mut turn = Turn::new(gt, engines, &views, &mut self.tlb, function, &mut self.out);
        control::function_reset(kernel, &mut turn, function)
    }

    /// The memory of a VF has been cleared whose reset was [`FunctionReset::Unled`].
    pub fn finish_reset(&mut self, gt: &Gt, engines: &Engines, function: Function) {
        let Some(kernel) = &mut self.kernel else { return };
        let views = gt.memory.views();
        let mut turn = Turn::new(gt, engines, &views, &mut self.tlb, function, &mut self.out);
        control::finish_reset(kernel, &mut turn, function);
    }

    /// One bounded piece of work: CT buffers of the functions that rang (a bit each), engine reports, time slices.
    pub fn step(&mut self, gt: &Gt, engines: &Engines, rang: u64) -> Step {
        engines.take_reports(&mut self.reports);
        // Requests that were not answered when they came.
        for function in functions(rang).filter(|function| mailbox::holds_request(gt, *function)) {
            if gt.memory.asks_client(function) {
                self.mailbox(gt, engines, function);
            }
        }
        let Some(kernel) = &mut self.kernel else { return Step::default() };
        let views = gt.memory.views();
        let mut turn = Turn::new(gt, engines, &views, &mut self.tlb, Function::PF, &mut self.out);
        kernel.step(&mut turn, &self.reports, rang)
    }

    /// What is loaded, while it runs.
    pub fn firmware(&self) -> Option<Firmware> {
        self.kernel.as_ref().map(|kernel| kernel.firmware)
    }

    /// The scheduler, while the firmware runs.
    pub fn scheduler(&self) -> Option<&Scheduler> {
        self.kernel.as_ref().map(|kernel| &kernel.scheduler)
    }

    /// What is kept for `function`, if there is anything.
    pub fn client(&self, function: Function) -> Option<&Client> {
        self.kernel.as_ref()?.clients.get(function)
    }

    /// How requests went since the last boot.
    pub fn counters(&self) -> Counters {
        self.kernel.as_ref().map_or_else(Counters::default, |kernel| kernel.counters)
    }
}
