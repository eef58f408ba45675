// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Handlers of the registers that a guest writes through eventfds (ioeventfd).

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};
use vmm_sys_util::poll::{EpollContext, EpollEvents};

use super::function::CardFunction;
use crate::pci::PciDevice;

/// Serves the events of one register of a function, for VMMs with their own event loop. With the feature `event-manager` it
/// implements `MutEventSubscriber`. Any other event loop must poll [`IoEventHandler::as_raw_fd`] and call
/// [`IoEventHandler::serve`].
pub struct IoEventHandler {
    function: Weak<CardFunction>,
    /// Index of the register in the function's events.
    register: usize,
    /// A duplicate descriptor, because an event loop may still poll it after the card was dropped.
    event: EventFd,
}

impl IoEventHandler {
    /// Creates the handlers of the registers of `function` that have an effect when they are written.
    pub(super) fn of(function: &Arc<CardFunction>) -> impl Iterator<Item = io::Result<Self>> {
        let events = function.io_events().iter().zip(function.io_registers()).enumerate();
        events.filter(|(_, (_, register))| register.effective).map(|(register, (event, _))| {
            Ok(IoEventHandler { function: Arc::downgrade(function), register, event: event.event.try_clone()? })
        })
    }

    /// Processes the guest's writes to the register since the last call. Must be called when the descriptor is
    /// readable.
    pub fn serve(&self) {
        match self.function.upgrade() {
            Some(function) => function.serve_event(self.register),
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
        self.serve();
    }

    fn init(&mut self, ops: &mut event_manager::EventOps) {
        let events = event_manager::Events::new(self, event_manager::EventSet::IN);
        if let Err(error) = ops.add(events) {
            log::error!("cannot add the eventfd of a register to the event loop: {error}");
        }
    }
}

/// A thread that serves the events of all functions; dropping this value stops it.
pub struct IoEventThread {
    stop: Arc<(AtomicBool, EventFd)>,
    thread: Option<JoinHandle<()>>,
}

impl IoEventThread {
    pub(super) fn start(handlers: Vec<IoEventHandler>) -> io::Result<Self> {
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
                tokens.filter_map(|token| handlers.get(usize::try_from(token).ok()?)).for_each(IoEventHandler::serve);
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
