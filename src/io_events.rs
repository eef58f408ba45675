//! Registers whose writes come as events: who hears them rings for the guest.

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

/// GUC_HOST_INTERRUPT (contract B.6): any write rings the GuC.
const GUC_HOST_INTERRUPT: u64 = 0x19_01f0;
/// VF_CAP_REG: the drivers write it as a barrier, after each submission, and mean nothing by it (xe: xe_device_wmb).
const VF_CAP: u64 = 0x19_01f8;

/// VF_SW_FLAG(0..3): the mailbox, whose requests are written dword by dword and then rung for (contract B.6).
pub(crate) const MAILBOX: Range<u64> = 0x19_0240..0x19_0250;

/// The events of a function: the register that rings first, then the one whose writes nobody needs to hear.
pub(crate) fn new() -> io::Result<[IoEvent; 2]> {
    let event = |offset| {
        let event = EventFd::new(EFD_NONBLOCK)?;
        Ok::<_, io::Error>(IoEvent { bar: GTTMMADR_BAR, offset, len: 4, event })
    };
    Ok([event(GUC_HOST_INTERRUPT)?, event(VF_CAP)?])
}

/// Serves the events of one function: for VMMs with an event loop of their own. With the feature `event-manager` it is
/// a subscriber; any other loop polls [`IoEventHandler::as_raw_fd`] and calls [`IoEventHandler::ring`].
pub struct IoEventHandler {
    function: Weak<CardFunction>,
    /// Its own: a loop may listen to it for longer than there is a card.
    event: EventFd,
}

impl IoEventHandler {
    pub(crate) fn new(function: &Arc<CardFunction>) -> Option<io::Result<Self>> {
        let event = function.io_events().first()?.event.try_clone();
        Some(event.map(|event| IoEventHandler { function: Arc::downgrade(function), event }))
    }

    /// The descriptor has become readable: the guest has rung, once or many times.
    pub fn ring(&self) {
        match self.function.upgrade() {
            Some(function) => function.serve_doorbell(),
            // Nobody hears it any more; taken, it does not wake the loop again.
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
            log::error!("doorbells cannot be listened to: {error}");
        }
    }
}

/// A thread that serves the events of all functions; it ends when this is dropped.
pub struct IoEventThread {
    stop: Arc<(AtomicBool, EventFd)>,
    thread: Option<JoinHandle<()>>,
}

impl IoEventThread {
    pub(crate) fn start(handlers: Vec<IoEventHandler>) -> io::Result<Self> {
        /// Handlers have their index for a token.
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
