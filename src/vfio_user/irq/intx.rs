// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interrupt pin of a function for its client: a level that is masked when it is signalled (`VFIO_IRQ_INFO_AUTOMASKED`),
//! and the eventfd by which a client unmasks it without a message.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use arctic_device_model::sync::IgnorePoison;
use vmm_sys_util::epoll::{ControlOperation, Epoll, EpollEvent, EventSet};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

use super::{INTX, Notifier, Vectors};
use crate::pci::LineSink;

/// The level of the pin.
#[derive(Default)]
pub(super) struct Level {
    /// The function asserts its pin.
    asserted: bool,
    /// The level is not signalled: it was, and the client has not unmasked it since, or the client has masked it.
    masked: bool,
}

/// The level, shared with the thread that unmasks it. Locked before a notifier's eventfds; never held while waiting.
#[derive(Clone, Default)]
pub(super) struct Line(Arc<Mutex<Level>>);

impl Line {
    /// Changes the level, and signals it if it is asserted, not masked, and armed.
    fn change(&self, notifier: Option<&Notifier>, change: impl FnOnce(&mut Level)) {
        let mut level = self.0.lock().ignore_poison();
        change(&mut level);
        let Some(notifier) = notifier else { return };
        if !level.asserted && notifier.withdraw(INTX) {
            // It was not signalled, so the client does not unmask it.
            level.masked = false;
        }
        if level.asserted && !level.masked && notifier.is_armed(INTX) {
            level.masked = true;
            notifier.raise(INTX, 0);
        }
    }

    /// Masks or unmasks the level for the client of `notifier`.
    pub fn set_masked(&self, notifier: Option<&Notifier>, masked: bool) {
        self.change(notifier, |level| level.masked = masked);
    }
}

impl LineSink for Vectors {
    fn set_level(&self, asserted: bool) {
        self.line.change(self.notifier.load().as_deref(), |level| level.asserted = asserted);
    }
}

/// A thread that unmasks the level when the client signals an eventfd. Dropping it ends the thread.
///
/// The thread never reads the eventfd, because the client can make reads block: it waits for edges.
pub(super) struct Unmasker {
    stop: EventFd,
    thread: Option<JoinHandle<()>>,
}

impl Unmasker {
    pub fn start(fd: File, line: Line, notifier: Arc<Notifier>) -> io::Result<Self> {
        const STOP: u64 = 0;
        const UNMASK: u64 = 1;
        let (epoll, stop) = (Epoll::new()?, EventFd::new(EFD_NONBLOCK)?);
        let edge = EventSet::IN | EventSet::EDGE_TRIGGERED;
        epoll.ctl(ControlOperation::Add, stop.as_raw_fd(), EpollEvent::new(EventSet::IN, STOP))?;
        epoll.ctl(ControlOperation::Add, fd.as_raw_fd(), EpollEvent::new(edge, UNMASK))?;
        let body = move || {
            // Keeps the descriptor open, so that it stays registered.
            let _fd = fd;
            let mut events = [EpollEvent::default(); 2];
            loop {
                let ready = match epoll.wait(-1, &mut events) {
                    Ok(ready) => ready,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => return,
                };
                let ready = events.iter().take(ready);
                if ready.clone().any(|event| event.data() == STOP) {
                    return;
                }
                if ready.clone().any(|event| event.data() == UNMASK) {
                    line.set_masked(Some(&notifier), false);
                }
            }
        };
        let thread = thread::Builder::new().name("unmask".into()).stack_size(64 << 10).spawn(body)?;
        Ok(Unmasker { stop, thread: Some(thread) })
    }
}

impl Drop for Unmasker {
    fn drop(&mut self) {
        // An error means that the counter is at its maximum, which ends the thread as well.
        let _ = self.stop.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use vfio_bindings::bindings::vfio::*;

    use super::super::tests::{body, file, signalled};
    use super::*;
    use crate::vfio_user::Errno;

    const INDEX: u32 = VFIO_PCI_INTX_IRQ_INDEX;

    fn set(vectors: &Vectors, flags: u32, count: u32, fd: Option<&EventFd>) -> Result<(), Errno> {
        vectors.set(&body(flags, INDEX, 0, count), fd.map(file).into_iter().collect())
    }

    fn armed() -> (Vectors, EventFd) {
        let (vectors, fd) = (Vectors::new([1, 1, 0]), EventFd::new(libc::EFD_NONBLOCK).unwrap());
        set(&vectors, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 1, Some(&fd)).unwrap();
        (vectors, fd)
    }

    fn unmask(vectors: &Vectors) {
        set(vectors, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_UNMASK, 1, None).unwrap();
    }

    /// The level is signalled once, and again at each unmasking while it is asserted.
    #[test]
    fn an_asserted_level_is_signalled_again_when_it_is_unmasked() {
        let (vectors, fd) = armed();
        vectors.set_level(true);
        assert_eq!(signalled(&vectors, &fd), Some(1));
        vectors.set_level(true);
        vectors.set_level(false);
        vectors.set_level(true);
        assert_eq!(signalled(&vectors, &fd), None, "masked");
        unmask(&vectors);
        assert_eq!(signalled(&vectors, &fd), Some(1));
        vectors.set_level(false);
        unmask(&vectors);
        assert_eq!(signalled(&vectors, &fd), None, "not asserted");
        vectors.set_level(true);
        assert_eq!(signalled(&vectors, &fd), Some(1));
    }

    #[test]
    fn a_level_that_is_asserted_before_is_signalled_when_it_is_armed() {
        let (vectors, fd) = (Vectors::new([1, 1, 0]), EventFd::new(libc::EFD_NONBLOCK).unwrap());
        vectors.set_level(true);
        set(&vectors, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 1, Some(&fd)).unwrap();
        assert_eq!(signalled(&vectors, &fd), Some(1));
        set(&vectors, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER, 0, None).unwrap();
        unmask(&vectors);
        assert_eq!(signalled(&vectors, &fd), None, "disarmed");
        // The next client finds the level unmasked.
        vectors.clear();
        let (next, other) = (&vectors, EventFd::new(libc::EFD_NONBLOCK).unwrap());
        set(next, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 1, Some(&other)).unwrap();
        assert_eq!((signalled(next, &other), signalled(next, &fd)), (Some(1), None));
    }

    #[test]
    fn a_client_masks_and_unmasks_by_messages() {
        let (vectors, fd) = armed();
        set(&vectors, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_MASK, 1, None).unwrap();
        vectors.set_level(true);
        assert_eq!(signalled(&vectors, &fd), None);
        let unmask = VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_UNMASK;
        let mut bools = body(unmask, INDEX, 0, 1);
        assert_eq!(vectors.set(&bools, Vec::new()), Err(Errno::EINVAL), "no byte");
        bools.push(0);
        vectors.set(&bools, Vec::new()).unwrap();
        assert_eq!(signalled(&vectors, &fd), None);
        bools[20] = 1;
        vectors.set(&bools, Vec::new()).unwrap();
        assert_eq!(signalled(&vectors, &fd), Some(1));
    }

    /// KVM signals the eventfd at the end of the guest's interrupt. The client may do anything with its description.
    #[test]
    fn an_eventfd_unmasks_the_level() {
        let (vectors, fd) = armed();
        let by_event = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_UNMASK;
        for flags in [libc::EFD_NONBLOCK, 0] {
            let resample = EventFd::new(flags).unwrap();
            set(&vectors, by_event, 1, Some(&resample)).unwrap();
            vectors.set_level(true);
            for _ in 0..3 {
                let begun = Instant::now();
                while signalled(&vectors, &fd).is_none() {
                    assert!(begun.elapsed() < Duration::from_secs(10), "not signalled");
                    thread::yield_now();
                }
                resample.write(1).unwrap();
            }
            vectors.set_level(false);
            set(&vectors, by_event, 1, None).unwrap();
            unmask(&vectors);
            while fd.read().is_ok() {}
        }
        vectors.clear();
    }

    #[test]
    fn other_requests_are_refused() {
        let (vectors, fd) = armed();
        let (mask, unmask) = (VFIO_IRQ_SET_ACTION_MASK, VFIO_IRQ_SET_ACTION_UNMASK);
        for (flags, count, fd) in [
            (VFIO_IRQ_SET_DATA_NONE | mask, 0, None),
            (VFIO_IRQ_SET_DATA_NONE | mask | unmask, 1, None),
            (VFIO_IRQ_SET_DATA_EVENTFD | mask, 1, Some(&fd)),
            (VFIO_IRQ_SET_DATA_NONE | unmask, 2, None),
        ] {
            assert_eq!(set(&vectors, flags, count, fd), Err(Errno::EINVAL), "{flags:#x} {count}");
        }
        // MSI is masked in configuration space, and a function without a pin has nothing to mask.
        let none = VFIO_IRQ_SET_DATA_NONE | unmask;
        assert_eq!(vectors.set(&body(none, VFIO_PCI_MSI_IRQ_INDEX, 0, 1), Vec::new()), Err(Errno::EINVAL));
        assert_eq!(set(&Vectors::new([0, 1, 0]), none, 1, None), Err(Errno::EINVAL));
    }
}
