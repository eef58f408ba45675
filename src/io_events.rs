// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that a guest writes through eventfds (ioeventfd), and the handlers of these events.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use arctic_sriov::function::GTTMMADR_BAR;
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};
use vmm_sys_util::poll::{EpollContext, EpollEvents};

use crate::card::CardFunction;
use crate::pci::{IoEvent, PciDevice};

/// GUC_HOST_INTERRUPT (contract B.6). Any write notifies the GuC.
const GUC_HOST_INTERRUPT: u64 = 0x19_01f0;
/// VF_CAP_REG: the drivers write it as a write barrier after each submission; the write has no effect (xe:
/// xe_device_wmb).
const VF_CAP: u64 = 0x19_01f8;

/// VF_SW_FLAG(0..3), the mailbox. A driver writes a request dword by dword, then notifies the GuC (contract B.6).
pub(crate) const MAILBOX: Range<u64> = 0x19_0240..0x19_0250;

/// The events of a function: first GUC_HOST_INTERRUPT, then VF_CAP_REG, which needs no handling.
pub(crate) fn new() -> io::Result<[IoEvent; 2]> {
    let event = |offset| {
        let event = EventFd::new(EFD_NONBLOCK)?;
        Ok::<_, io::Error>(IoEvent { bar: GTTMMADR_BAR, offset, len: 4, event })
    };
    Ok([event(GUC_HOST_INTERRUPT)?, event(VF_CAP)?])
}

/// Serves the events of one function, for VMMs with their own event loop. With the feature `event-manager` it
/// implements `MutEventSubscriber`. Any other event loop must poll [`IoEventHandler::as_raw_fd`] and call
/// [`IoEventHandler::ring`].
pub struct IoEventHandler {
    function: Weak<CardFunction>,
    /// A duplicate descriptor, because an event loop may still poll it after the card was dropped.
    event: EventFd,
}

impl IoEventHandler {
    pub(crate) fn new(function: &Arc<CardFunction>) -> Option<io::Result<Self>> {
        let event = function.io_events().first()?.event.try_clone();
        Some(event.map(|event| IoEventHandler { function: Arc::downgrade(function), event }))
    }

    /// Processes the guest's writes to the register since the last call. Must be called when the descriptor is
    /// readable.
    pub fn ring(&self) {
        match self.function.upgrade() {
            Some(function) => function.serve_doorbell(),
            // The function was dropped. Reading the eventfd resets it; otherwise the loop would be woken repeatedly.
            None => drop(self.event.read()),
        }
    }
}

impl AsRawFd for IoEventHandler {
    fn as_raw_fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }
}

#[cfg(feature = "event-manager")]
impl event_manager::MutEventSubscriber for IoEventHandler {
    fn process(&mut self, _: event_manager::Events, _: &mut event_manager::EventOps) {
        self.ring();
    }

    fn init(&mut self, ops: &mut event_manager::EventOps) {
        let events = event_manager::Events::new(self, event_manager::EventSet::IN);
        if let Err(error) = ops.add(events) {
            log::error!("cannot add the doorbell eventfd to the event loop: {error}");
        }
    }
}

/// A thread that serves the events of all functions; dropping this value stops it.
pub struct IoEventThread {
    stop: Arc<(AtomicBool, EventFd)>,
    thread: Option<JoinHandle<()>>,
}

impl IoEventThread {
    pub(crate) fn start(handlers: Vec<IoEventHandler>) -> io::Result<Self> {
        /// The token of a handler is its index.
        const STOP: u64 = u64::MAX;
        let stop = Arc::new((AtomicBool::new(false), EventFd::new(EFD_NONBLOCK)?));
        let epoll = EpollContext::<u64>::new()?;
        epoll.add(&stop.1, STOP)?;
        for (token, handler) in (0..).zip(&handlers) {
            epoll.add(handler, token)?;
        }
        let stopped = stop.clone();
        let serve = move || {
            let events = EpollEvents::new();
            while !stopped.0.load(Ordering::Acquire) {
                let Ok(ready) = epoll.wait(&events) else { return };
                let tokens = ready.iter_readable().map(|event| event.token());
                tokens.filter_map(|token| handlers.get(usize::try_from(token).ok()?)).for_each(IoEventHandler::ring);
            }
        };
        let thread = thread::Builder::new().name("io-events".into()).spawn(serve)?;
        Ok(IoEventThread { stop, thread: Some(thread) })
    }
}

impl Drop for IoEventThread {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Release);
        // Cannot overflow: this is the only write.
        let _ = self.stop.1.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
