// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The thread that carries out the writes of [`Placement`].
//!
//! The VMM replies to a DMA message only after its own request to the PF has completed, so the writes cannot be sent
//! within that request. The thread holds no lock while it waits for a reply.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arctic_device_model::pci::{GTTMMADR_BAR, LMEM_BAR};
use arctic_device_model::sync::IgnorePoison;
use arctic_sriov::bar::BAR0;
use arctic_sriov::header::{COMMAND, Command, Identity};
use arctic_sriov::number::byte;

use super::Ecam;
use super::attempts::{Failure, Series};
use super::placement::{BarAddresses, Outcome, Placement, Step};
use super::window::{self, Pf, WindowError};
use crate::card::CardFunction;
use crate::line_limit::LineLimit;
use crate::vfio_user::memory::GuestMemory;
use crate::vfio_user::{ClientDma, DmaError};

/// The state of the PF from which the placement follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::vfio_user) struct PfState {
    /// The BAR addresses of the VFs that decode their BARs, VF 1 first.
    decoded: Vec<BarAddresses>,
    bus_master: bool,
    /// The VF BARs in its SR-IOV capability, decoded or not.
    vf_bars: BarAddresses,
}

impl PfState {
    /// Reads the state of `pf`. May be called with its configuration lock held.
    pub fn of(pf: &CardFunction) -> Self {
        let config = pf.port.config();
        let bars = |vf| Some([config.vf_bar_address(vf, GTTMMADR_BAR)?, config.vf_bar_address(vf, LMEM_BAR)?]);
        let decoded = (1..=config.vfs_decoding()).map_while(bars).collect();
        PfState { decoded, bus_master: pf.port.bus_master(), vf_bars: bars(1).unwrap_or_default() }
    }

    /// Returns whether the guest has assigned addresses to the VF BARs: not 0, their reset value. Otherwise the VMM
    /// may have placed the VFs itself, and nothing is written.
    fn assigned(&self) -> bool {
        self.vf_bars.iter().all(|address| *address != 0)
    }
}

struct Work {
    placement: Placement,
    pf: PfState,
    /// Number of triggers so far. A trigger starts new attempts after the thread has given up.
    triggers: u64,
    /// Number of times that the window may have moved.
    moves: u64,
    stop: bool,
}

struct Shared {
    work: Mutex<Work>,
    changed: Condvar,
}

impl Shared {
    /// A leaf lock, taken with a configuration lock held, so a holder must not block: it does not send, log or wait for
    /// another lock.
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().ignore_poison()
    }

    fn trigger(&self, change: impl FnOnce(&mut Work)) {
        let mut work = self.work();
        change(&mut work);
        work.triggers = work.triggers.wrapping_add(1);
        self.changed.notify_all();
    }

    /// Is not a trigger, and does not end a pause: the thread's own writes are observed too.
    fn observe(&self, change: impl FnOnce(&mut Placement)) {
        change(&mut self.work().placement);
        self.changed.notify_all();
    }

    /// Waits for `time`, or until there have been more than `triggers` triggers, or until the thread must end.
    fn pause<'s>(&'s self, work: MutexGuard<'s, Work>, time: Duration, triggers: u64) -> MutexGuard<'s, Work> {
        let idle = |work: &mut Work| !work.stop && work.triggers == triggers;
        self.changed.wait_timeout_while(work, time, idle).ignore_poison().0
    }
}

/// The thread that programs VF BARs; dropping this value stops it, after at most one message. VFs are counted from 1.
pub(in crate::vfio_user) struct BarPlacer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl BarPlacer {
    /// Starts the thread for `vfs` VFs of a PF with `identity`. The writes are sent to the client of `requester`, or, if
    /// it has none, to that of `pf`.
    pub fn start(
        ecam: Ecam,
        identity: Identity,
        vfs: u8,
        [requester, pf_memory]: [Arc<GuestMemory>; 2],
    ) -> io::Result<Self> {
        let (placement, pf) = (Placement::new(vfs.into()), PfState::default());
        let work = Mutex::new(Work { placement, pf, triggers: 0, moves: 0, stop: false });
        let shared = Arc::new(Shared { work, changed: Condvar::new() });
        let thread = {
            let shared = shared.clone();
            let lines = LineLimit::default();
            let run = move || Writer { shared: &shared, ecam, identity, requester, pf: pf_memory, lines }.run();
            thread::Builder::new().name("ecam".into()).spawn(run)?
        };
        Ok(BarPlacer { shared, thread: Some(thread) })
    }

    /// The PF has changed. Does not block.
    pub fn pf_changed(&self, pf: PfState) {
        self.shared.trigger(|work| {
            work.placement.want(&pf.decoded);
            work.pf = pf;
        });
    }

    /// Memory Space Enable of VF `number` was written, by the card or by the guest, or reset. Does not block.
    pub fn memory_space(&self, number: u8, on: bool) {
        self.shared.observe(|placement| placement.memory_space(index(number), on));
    }

    /// BAR `bar` of VF `number` was written, by the card or by the guest, or reset. Does not block.
    pub fn bar(&self, number: u8, bar: u8, address: u64) {
        let position = [GTTMMADR_BAR, LMEM_BAR].iter().position(|known| *known == bar);
        self.shared.observe(|placement| {
            position.into_iter().for_each(|bar| placement.bar(index(number), bar, address));
        });
    }

    /// A client has connected to VF `number`, or has disconnected from it.
    pub fn vf_client(&self, number: u8, connected: bool) {
        self.shared.trigger(|work| work.placement.attach(index(number), connected));
    }

    /// Must be called after a reset of the machine.
    pub fn machine_reset(&self) {
        self.shared.trigger(|work| {
            work.placement.machine_reset();
            work.moves = work.moves.wrapping_add(1);
        });
    }

    /// Must be called when the PF's client has disconnected.
    pub fn client_gone(&self) {
        self.shared.trigger(|work| {
            work.placement.client_gone();
            work.moves = work.moves.wrapping_add(1);
        });
    }

    /// A client has connected to the requester, or has disconnected from it.
    pub fn sender_changed(&self) {
        self.shared.trigger(|work| work.moves = work.moves.wrapping_add(1));
    }

    /// Returns whether VF `number` must not be used, because its BARs are not where the guest expects them.
    pub fn withholds(&self, number: u8) -> bool {
        self.shared.work().placement.withheld(index(number))
    }
}

/// Index of VF `number` in [`Placement`].
fn index(number: u8) -> usize {
    usize::from(number).wrapping_sub(1)
}

impl Drop for BarPlacer {
    fn drop(&mut self) {
        self.shared.work().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A write that was begun.
struct Attempt {
    client: Arc<ClientDma>,
    pf: Pf,
    /// Index of the VF in [`Placement`].
    vf: usize,
    step: Step,
    /// Number of moves of the window when the attempt began.
    moves: u64,
    /// When a search for the window must end.
    deadline: Instant,
    /// The window, if it was found before.
    window: Option<Ecam>,
}

/// What the thread keeps from one attempt to the next.
#[derive(Default)]
struct Progress {
    /// The attempts since the last success or trigger.
    series: Option<Series>,
    /// The window, and the number of its moves when it was found.
    found: Option<(Ecam, u64)>,
}

struct Writer<'w> {
    shared: &'w Shared,
    ecam: Ecam,
    identity: Identity,
    requester: Arc<GuestMemory>,
    pf: Arc<GuestMemory>,
    /// Limit on reports.
    lines: LineLimit,
}

impl Writer<'_> {
    fn run(&self) {
        let mut progress = Progress::default();
        while let Some(attempt) = self.begin(&mut progress) {
            let result = self.write(&attempt);
            self.finish(&attempt, result, &mut progress);
        }
    }

    /// Waits until a write is due and can be sent, and begins it. `None`: the thread must end.
    fn begin(&self, progress: &mut Progress) -> Option<Attempt> {
        let mut work = self.shared.work();
        while !work.stop {
            let (due, now) = (work.placement.due(), Instant::now());
            progress.series = progress.series.take().filter(|series| due && series.continues(work.triggers));
            let given_up = progress.series.as_ref().is_some_and(|series| series.is_over(now));
            if given_up {
                work.placement.give_up();
                if let Some(failure) = self.failure_to_report(progress, &work) {
                    drop(work);
                    self.report(failure);
                    work = self.shared.work();
                    continue;
                }
            }
            let ready = due && !given_up && work.pf.assigned();
            let client = ready.then(|| self.client(work.pf.bus_master)).flatten();
            let Some(client) = client else {
                // The guest may move the window before the next write.
                progress.found = None;
                work = self.shared.changed.wait(work).ignore_poison();
                continue;
            };
            let Some((vf, step)) = work.placement.begin() else { continue };
            let (pf, moves) = (Pf { identity: self.identity, vf_bars: work.pf.vf_bars }, work.moves);
            let window = progress.found.filter(|(_, then)| *then == moves).map(|(ecam, _)| ecam);
            let deadline = progress.series.get_or_insert_with(|| Series::new(work.triggers, now)).deadline();
            return Some(Attempt { client, pf, vf, step, moves, deadline, window });
        }
        None
    }

    /// Records the result of an attempt. After a failure, reports it if necessary, and waits before the next attempt.
    fn finish(&self, attempt: &Attempt, result: Result<Ecam, (WindowError, Outcome)>, progress: &mut Progress) {
        let mut work = self.shared.work();
        let outcome = result.map_or_else(|(_, outcome)| outcome, |_| Outcome::Done);
        let followed = work.placement.finish(outcome);
        let error = match result {
            Ok(ecam) if followed => {
                *progress = Progress { series: None, found: Some((ecam, attempt.moves)) };
                return;
            }
            Ok(_) => WindowError::NoEffect,
            Err((error, _)) => error,
        };
        progress.found = None;
        let Some(series) = &mut progress.series else { return };
        let pause = series.fail(Failure { vf: attempt.vf, error });
        let triggers = work.triggers;
        if work.stop || !series.continues(triggers) {
            return;
        }
        if let Some(failure) = self.failure_to_report(progress, &work) {
            drop(work);
            self.report(failure);
            work = self.shared.work();
        }
        drop(self.shared.pause(work, pause, triggers));
    }

    fn failure_to_report(&self, progress: &mut Progress, work: &Work) -> Option<Failure> {
        progress.series.as_mut()?.report(Instant::now(), |vf| work.placement.withheld(vf))
    }

    /// Returns the client that executes the writes.
    fn client(&self, bus_master: bool) -> Option<Arc<ClientDma>> {
        self.requester.client().or_else(|| self.pf.client().filter(|_| bus_master))
    }

    /// Executes `attempt`, in its window or in one that is located first. Returns the window.
    fn write(&self, attempt: &Attempt) -> Result<Ecam, (WindowError, Outcome)> {
        let client = &attempt.client;
        let read = |at, data: &mut [u8]| match self.continues(attempt) {
            true => Ok(client.read_uncharged(at, data)?),
            false => Err(WindowError::Stopped),
        };
        let ecam = attempt.window.map_or_else(|| window::locate(self.ecam, &attempt.pf, read), Ok);
        let ecam = ecam.map_err(|error| {
            let stopped = error == WindowError::Stopped;
            (error, if stopped { Outcome::Unsent } else { Outcome::Refused })
        })?;
        let number = byte(attempt.vf).saturating_add(1);
        match write_step(client, ecam.registers(number), attempt.step) {
            Ok(()) => Ok(ecam),
            Err(error @ DmaError::NoAnswer) => Err((error.into(), Outcome::Unanswered)),
            Err(error) => Err((error.into(), Outcome::Refused)),
        }
    }

    /// Logs that a VF cannot be used. Each trigger of the guest may lead to a report, so lines are limited. Must be called
    /// without locks.
    fn report(&self, Failure { vf, error }: Failure) {
        let Some(suppressed) = self.lines.admit(Instant::now()) else { return };
        let number = vf.saturating_add(1);
        log::warn!(
            "VF {number} reads all ones because its BARs cannot be programmed in the PF's guest ({error}): if the guest has \
             an IOMMU, boot it with iommu=pt or use the arguments of `arctic serve --viommu`, otherwise check --pf-address \
             and --ecam{suppressed}"
        );
    }

    /// Returns whether the search for the window may go on. It reads up to 257 addresses in each window, and each reply
    /// may take as long as the client has for it.
    fn continues(&self, attempt: &Attempt) -> bool {
        let work = self.shared.work();
        !work.stop && work.moves == attempt.moves && Instant::now() < attempt.deadline
    }
}

/// Writes the registers of the function at guest address `registers`.
fn write_step(client: &ClientDma, registers: u64, step: Step) -> Result<(), DmaError> {
    let command = |on: bool| {
        let value = Command::new().with_memory_space(on).into_bits();
        client.write_uncharged(registers.wrapping_add(COMMAND.into()), &value.to_le_bytes())
    };
    match step {
        Step::MemoryOff => command(false),
        Step::MemoryOn => command(true),
        Step::Bars(bars) => {
            let addresses: Vec<u8> = bars.iter().flat_map(|address| address.to_le_bytes()).collect();
            client.write_uncharged(registers.wrapping_add(BAR0.into()), &addresses)
        }
    }
}

#[cfg(test)]
mod tests;
