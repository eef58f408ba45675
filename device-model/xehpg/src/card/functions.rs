// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card's PCI Express functions: enabling and resetting VFs, doorbell windows and LMEM BARs.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use super::function_state::Emptying;
use super::{Card, Scrubber};
use crate::doorbell::{Page, Ring, Route};
use crate::gpu::VirtualFunctions;
use crate::gt::virtual_function::VirtualFunction;
use crate::guc::messages::hxg::Error;
use crate::guc::{Guc, doorbell};
use crate::host::{Function, MAX_VFS, functions};
use crate::profile::provision::Quota;
use crate::sync::IgnorePoison;
use crate::topology::EngineId;

/// Value of each byte read in response to an unsupported request.
const UNSUPPORTED: u8 = 0xff;

impl VirtualFunctions for Card {
    /// Handles the setting of VF Enable with NumVFs `count`, which is clamped to [`MAX_VFS`]. VFs 1 to `count` then
    /// exist, in their reset state.
    fn enable_vfs(&self, count: u8) {
        let count = count.min(MAX_VFS);
        let memory = &self.gt.memory;
        let mut written = 0;
        for vf in Function::first_vfs(count).skip(self.enabled_vfs().into()) {
            // An access that was in progress when the VFs were disabled may have changed their registers. A client may
            // have written to the regions that it maps at any time since.
            self.gt.vf(vf).into_iter().for_each(VirtualFunction::reset);
            memory.ggtt().empty_vf(vf);
            if memory.stores_data(vf) && memory.begin_emptying(vf) {
                written |= vf.bit();
            }
        }
        self.vfs.store(count, Ordering::Release);
        self.empty_and_announce(written);
    }

    /// Handles the clearing of VF Enable: every VF ceases to exist and loses its state through the FLR flow (V13-127).
    fn disable_vfs(&self) {
        let count = self.vfs.swap(0, Ordering::AcqRel);
        // The PF waits here, for which its own client must not be charged.
        let emptying = Function::first_vfs(count).filter_map(|vf| self.function_state_for(vf, Function::PF).reset());
        self.empty_and_announce(emptying.fold(0, |vfs, Emptying(vf)| vfs | vf.bit()));
    }

    fn enabled_vfs(&self) -> u8 {
        self.vfs.load(Ordering::Acquire)
    }

    /// Returns whether a function other than `function`, or a reset of one, currently waits for a unit. A step of
    /// `function` that waits for a response from its client may wait without a timeout only while this returns false. Does
    /// not block on a lock.
    fn delays_others(&self, function: Function) -> bool {
        if self.guc_pending.waiting(!function.bit()) || self.unit_locks().any(|lock| lock.delays_others(function)) {
            return true;
        }
        let now = self.gt.clock.now();
        // If an engine is due and not locked, no worker is available for it.
        let due = |id: &EngineId| self.engines.runnable(*id) && self.engines.next_poll(*id) <= now;
        self.engines.present().filter(due).any(|id| self.engines.try_lock(id).is_some())
    }
}

impl Card {
    /// Returns whether `function` exists. The PF always does, a VF only while VF Enable is set (V13-016).
    pub fn enabled(&self, function: Function) -> bool {
        function.number() <= self.enabled_vfs()
    }

    /// Provisions and enables VFs for use without a PF driver: VFs 1, 2, ... get `quotas` in this order (contract D.4).
    /// Returns the GuC's error if it rejects a quota.
    ///
    /// VFs that already exist lose their state, as when they are disabled.
    pub fn provision(&self, quotas: &[Quota]) -> Result<(), Error> {
        self.disable_vfs();
        let shared = self.guc().start_without_pf_driver(&self.gt, &self.engines, quotas);
        self.enable_vfs(u8::try_from(quotas.len()).unwrap_or(u8::MAX));
        shared
    }

    /// Handles an FLR of a VF, which continues to exist but loses its work and state (V13-116..125).
    pub fn reset_function(&self, function: Function) {
        if function.is_vf()
            && self.enabled(function)
            && let Some(Emptying(vf)) = self.function_state(function).reset()
        {
            self.empty_and_announce(vf.bit());
        }
    }

    /// Releases the local memory of the VFs in `vfs` (one bit each), which are in reset, and notifies the PF of each. A
    /// card with worker threads does this in a separate thread for each call. Otherwise it would delay the caller's
    /// configuration space access, and the client of a VF, which can delay system calls on the VF's memory file, could
    /// delay the FLR of another VF.
    pub(super) fn empty_and_announce(&self, vfs: u64) {
        let own = self.scrubber.get().filter(|_| vfs != 0).zip(self.this.upgrade());
        let Some((Scrubber { names, .. }, card)) = own else {
            return functions(vfs).for_each(|vf| self.empty_and_announce_one(vf));
        };
        let work = move || functions(vfs).for_each(|vf| card.empty_and_announce_one(vf));
        match std::thread::Builder::new().name(format!("{names}flr")).spawn(work) {
            Ok(thread) => {
                let mut threads = self.threads();
                threads.retain(|thread| !thread.is_finished());
                threads.push(thread);
            }
            Err(error) => {
                log::warn!("cannot start a thread for an FLR: {error}");
                functions(vfs).for_each(|vf| self.empty_and_announce_one(vf));
            }
        }
    }

    fn empty_and_announce_one(&self, vf: Function) {
        let stopping = || self.stopping.load(Ordering::Acquire);
        loop {
            self.guarded(|| self.gt.memory.empty(vf, stopping));
            // Again for a reset since the last pass. All such resets together cause one more pass.
            if self.guc_for(vf).announce_reset(&self.gt, &self.engines, vf) || stopping() {
                break;
            }
        }
        self.kick_guc(vf.bit());
    }

    pub(super) fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().ignore_poison()
    }

    /// Handles a notification of the GuC, a write of `function` to its GUC_HOST_INTERRUPT, and wakes a worker (contract
    /// B.6).
    pub fn notify_guc(&self, function: Function) {
        self.post_guc_notification(function);
        self.wake_workers();
    }

    /// Handles a notification of the GuC by `function` that arrived as an event (contract B.6), and requests a GuC step. A
    /// mailbox request is processed here, unless this may have to wait for the function's client; the GuC step then
    /// processes it. The caller must either run the step ([`Card::poll_guc`]) or wake a worker
    /// ([`Card::wake_workers`]).
    pub fn post_guc_notification(&self, function: Function) {
        if !self.enabled(function) {
            return;
        }
        if Guc::mailbox_holds_request(&self.gt, function) {
            let guc = if !self.gt.memory.may_wait_for_client(function) {
                Some(self.guc_for(function))
            } else if Guc::mailbox_waits_for_steps(&self.gt, function) {
                None
            } else {
                // The driver waits for 50 ms, in which a worker may not run. The GuC's step may wait for this thread.
                self.guc.try_lock()
            };
            match guc {
                // The function may have ceased to exist since the write. Its request is then dropped.
                Some(mut guc) if self.enabled(function) => {
                    guc.mailbox(&self.gt, &self.engines, &self.gt.memory.views_without_messages(), function);
                }
                Some(_) => {}
                None => self.guc_pending.leave_mailbox(function),
            }
        }
        self.guc_pending.notify(function.bit());
    }

    /// Handles an access to a page of the doorbell window of `function`, at BAR offset [`Page::offset`], including
    /// accesses that the VMM delivers as events. Returns whether a doorbell is armed for the page. Does not take the
    /// GuC's lock.
    pub fn ring_doorbell(&self, function: Function, page: Page) -> bool {
        let ring = doorbell::host::ring(&self.gt, function, page);
        if let Ring::Message { to: Route::Guc, .. } = ring {
            self.kick_guc(function.bit());
        }
        ring != Ring::Missed
    }

    /// Handles a read of `page` at `offset` of GTTMMADR: rings the doorbell.
    pub(super) fn read_doorbell(&self, function: Function, page: Page, offset: u64, data: &mut [u8]) {
        let missed = !self.ring_doorbell(function, page);
        doorbell::host::fill(missed, offset, data);
    }

    /// Reads the LMEM BAR of `function` at `offset`, for accesses that its VMM does not map directly.
    pub fn read_local(&self, function: Function, offset: u64, data: &mut [u8]) {
        if self.enabled(function) { self.gt.memory.read_bar(function, offset, data) } else { data.fill(UNSUPPORTED) }
    }

    /// Writes the LMEM BAR of `function` at `offset`.
    pub fn write_local(&self, function: Function, offset: u64, data: &[u8]) {
        if self.enabled(function) {
            self.gt.memory.write_bar(function, offset, data);
        }
    }
}
