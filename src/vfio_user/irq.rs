// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Interrupt vectors of a function: eventfds provided by the client, signalled by a separate thread.
//!
//! A client shares the open file description of its eventfd with this process: it can clear O_NONBLOCK and fill the
//! counter at any time, and a `write` then blocks until the client reads. Therefore only a connection's notifier thread
//! writes to the client's eventfds. A card thread that raises an interrupt sets a bit and wakes the notifier; it never
//! waits for the client.

mod intx;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use arctic_device_model::sync::IgnorePoison;
use vmm_sys_util::signal::{Killable, register_signal_handler};

use self::intx::{Line, Unmasker};
use super::Errno;
use super::wire::{IRQ_INDEXES, IrqSet, parse};
use crate::pci::MsiSink;
use vfio_bindings::bindings::vfio::*;

/// Interrupt index of the interrupt pin.
const INTX: usize = VFIO_PCI_INTX_IRQ_INDEX as usize;
/// Interrupt index of MSI.
const MSI: usize = VFIO_PCI_MSI_IRQ_INDEX as usize;
/// Maximum number of vectors of one index: a notifier keeps one pending bit each.
const MAX_VECTORS: u32 = u32::BITS;
/// Time limit for [`MsiSink::settle`] to wait for the notifier; sufficient for a wake-up on a busy host.
pub(super) const SETTLE: Duration = Duration::from_millis(5);
/// Signal that interrupts a blocked `write` of a notifier. It is ignored by default.
const KICK: libc::c_int = libc::SIGURG;
/// Time limit for [`Vectors::clear`] to wait for a notifier to exit. A blocked notifier exits at the next signal.
const END: Duration = Duration::from_secs(1);

/// The eventfds of one function, by interrupt index (INTx, MSI, MSI-X) and vector. Raising an interrupt does not take a
/// lock.
pub struct Vectors {
    counts: [u32; IRQ_INDEXES],
    /// The notifier of the connection; created when it arms the first vector.
    notifier: ArcSwapOption<Notifier>,
    /// Held while a notifier is started or stopped; never taken by a thread that raises an interrupt.
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The interrupt pin.
    line: Line,
    /// Unmasks the pin's level when the client signals an eventfd.
    unmasker: Mutex<Option<Unmasker>>,
}

type Armed = [Vec<Option<Arc<File>>>; IRQ_INDEXES];

/// State shared by a connection's notifier thread and the threads that raise interrupts.
struct Notifier {
    /// Held only while an eventfd is looked up or replaced.
    armed: Mutex<Armed>,
    /// Vectors raised and not yet signalled, one bit each.
    pending: [AtomicU32; IRQ_INDEXES],
    /// Number of interrupts raised so far, and its value at the start of the last completed signalling round.
    raised: AtomicU32,
    signalled: AtomicU32,
    ended: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Notifier {
    fn armed(&self) -> MutexGuard<'_, Armed> {
        self.armed.lock().ignore_poison()
    }

    fn raise(&self, index: usize, vector: usize) {
        let Some(pending) = self.pending.get(index) else { return };
        pending.fetch_or(1 << vector, Ordering::AcqRel);
        self.raised.fetch_add(1, Ordering::AcqRel);
        // Ordering: last, and unconditional. The notifier then starts a round that counts this interrupt as signalled.
        self.wake();
    }

    /// Whether vector 0 of an index has an eventfd.
    fn is_armed(&self, index: usize) -> bool {
        self.armed().get(index).and_then(|fds| fds.first()).is_some_and(Option::is_some)
    }

    /// Withdraws the interrupts of an index that are raised and not yet signalled. Returns whether there was one.
    fn withdraw(&self, index: usize) -> bool {
        self.pending.get(index).is_some_and(|pending| pending.swap(0, Ordering::AcqRel) != 0)
    }

    fn wake(&self) {
        self.thread.get().inspect(|thread| thread.unpark());
    }

    /// Body of the notifier thread.
    fn run(&self) {
        while !self.ended.load(Ordering::Acquire) {
            let raised = self.raised.load(Ordering::Acquire);
            let mut any = false;
            for (index, pending) in self.pending.iter().enumerate() {
                let vectors = pending.swap(0, Ordering::AcqRel);
                any |= vectors != 0;
                for vector in (0..MAX_VECTORS as usize).filter(|vector| vectors >> vector & 1 != 0) {
                    let fd = self.armed().get(index).and_then(|fds| fds.get(vector).cloned().flatten());
                    fd.inspect(|fd| self.signal(fd));
                }
            }
            self.signalled.store(raised, Ordering::Release);
            if !any {
                thread::park();
            }
        }
    }

    /// Blocks until all interrupts raised before the call have been signalled, for at most [`SETTLE`]. Must not be
    /// called with the lock of an engine or of the GuC held: a client that blocks its eventfd would delay other
    /// functions.
    fn settle(&self) {
        let raised = self.raised.load(Ordering::Acquire);
        let begun = Instant::now();
        while !self.has_signalled(raised) && begun.elapsed() < SETTLE {
            thread::yield_now();
        }
    }

    /// Returns whether the first `raised` interrupts have been signalled.
    fn has_signalled(&self, raised: u32) -> bool {
        raised.wrapping_sub(self.signalled.load(Ordering::Acquire)) as i32 <= 0
    }

    #[cfg(test)]
    fn idle(&self) -> bool {
        self.has_signalled(self.raised.load(Ordering::Acquire))
    }

    /// Adds 1 to an eventfd. Blocks if the client has made the eventfd blocking and its counter is full, until the
    /// notifier is stopped.
    fn signal(&self, mut fd: &File) {
        while !self.ended.load(Ordering::Acquire) {
            match fd.write(&1_u64.to_ne_bytes()) {
                // [`KICK`], or another signal of the process.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Any other error is EAGAIN: the counter would overflow, so the event is pending already.
                _ => return,
            }
        }
    }
}

extern "C" fn interrupted(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

/// Installs the handler of [`KICK`], without SA_RESTART, because the signal must end a blocked `write` with EINTR.
fn install_kick() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| register_signal_handler(KICK, interrupted).map_err(|error| error.errno()));
    installed.map_err(io::Error::from_raw_os_error)
}

impl Vectors {
    /// Creates vectors that are all unarmed; `counts` is [`super::VECTORS`], at most 32 for each index.
    pub fn new(counts: [u32; IRQ_INDEXES]) -> Self {
        let counts = counts.map(|count| count.min(MAX_VECTORS));
        let (notifier, thread) = (ArcSwapOption::empty(), Mutex::default());
        Vectors { counts, notifier, thread, line: Line::default(), unmasker: Mutex::default() }
    }

    /// Number of vectors of an index; `None` for an index that does not exist.
    pub(super) fn count(&self, index: u32) -> Option<u32> {
        self.counts.get(usize::try_from(index).ok()?).copied()
    }

    /// Raises MSI `vector` without blocking. Has no effect if the guest has disabled MSI, because the client has then
    /// removed the eventfd.
    pub fn raise_msi(&self, vector: u16) {
        self.raise(MSI, usize::from(vector));
    }

    fn raise(&self, index: usize, vector: usize) {
        if self.counts.get(index).is_some_and(|count| vector < *count as usize)
            && let Some(notifier) = &*self.notifier.load()
        {
            notifier.raise(index, vector);
        }
    }

    /// Returns the notifier of this connection; the first call starts it.
    fn notifier(&self) -> io::Result<Arc<Notifier>> {
        let mut thread = self.thread.lock().ignore_poison();
        if let Some(notifier) = self.notifier.load_full() {
            return Ok(notifier);
        }
        install_kick()?;
        let notifier = Arc::new(Notifier {
            armed: Mutex::new(self.counts.map(|count| vec![None; count as usize])),
            pending: Default::default(),
            raised: AtomicU32::new(0),
            signalled: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            thread: OnceLock::new(),
        });
        let body = {
            let notifier = notifier.clone();
            move || notifier.run()
        };
        let started = thread::Builder::new().name("notifier".into()).stack_size(64 << 10).spawn(body)?;
        // Set before the notifier is visible to other threads.
        let _ = notifier.thread.set(started.thread().clone());
        *thread = Some(started);
        self.notifier.store(Some(notifier.clone()));
        Ok(notifier)
    }

    /// Arms MSI `vector` like a client.
    #[cfg(test)]
    pub(crate) fn arm_msi(&self, vector: usize, fd: File) {
        self.notifier().unwrap().armed()[MSI][vector] = Some(Arc::new(fd));
    }

    /// Blocks until all raised interrupts have been signalled.
    #[cfg(test)]
    pub(crate) fn wait(&self) {
        let begun = Instant::now();
        while self.notifier.load().as_ref().is_some_and(|notifier| !notifier.idle()) {
            assert!(begun.elapsed() < Duration::from_secs(10), "the notifier does not signal");
            thread::yield_now();
        }
    }

    /// Number of interrupts raised so far in this connection.
    pub(super) fn raised(&self) -> u32 {
        self.notifier.load().as_ref().map_or(0, |notifier| notifier.raised.load(Ordering::Acquire))
    }

    /// Disarms all vectors and stops the notifier; must be called when the client has disconnected. Returns even if the
    /// client blocks an eventfd.
    pub fn clear(&self) {
        drop(self.unmasker.lock().ignore_poison().take());
        self.line.set_masked(None, false);
        let mut thread = self.thread.lock().ignore_poison();
        let (Some(notifier), Some(started)) = (self.notifier.swap(None), thread.take()) else { return };
        notifier.ended.store(true, Ordering::Release);
        notifier.wake();
        let begun = Instant::now();
        while !started.is_finished() {
            if begun.elapsed() > END {
                log::error!(
                    "an interrupt notifier thread does not stop; it keeps one eventfd of a disconnected client"
                );
                return;
            }
            thread::sleep(Duration::from_micros(50));
            // Repeated, because a signal that arrives just before the `write` does not interrupt it.
            let _ = started.kill(KICK);
        }
        let _ = started.join();
    }

    /// Executes DEVICE_SET_IRQS with this body and descriptors `files`.
    pub(super) fn set(&self, body: &[u8], files: Vec<File>) -> Result<(), Errno> {
        let (set, data) = parse::<IrqSet>(body)?;
        let flags = set.flags.get();
        let [index, start, count] = [set.index, set.start, set.count].map(|field| field.get() as usize);
        let available = *self.counts.get(index).ok_or(Errno::EINVAL)? as usize;
        let end = start.checked_add(count).filter(|end| *end <= available).ok_or(Errno::EINVAL)?;
        match flags & VFIO_IRQ_SET_ACTION_TYPE_MASK {
            VFIO_IRQ_SET_ACTION_TRIGGER => {}
            // MSI is masked in configuration space.
            action @ (VFIO_IRQ_SET_ACTION_MASK | VFIO_IRQ_SET_ACTION_UNMASK) if (index, count) == (INTX, 1) => {
                return self.mask(action == VFIO_IRQ_SET_ACTION_MASK, flags & VFIO_IRQ_SET_DATA_TYPE_MASK, data, files);
            }
            _ => return Err(Errno::EINVAL),
        }
        match flags & VFIO_IRQ_SET_DATA_TYPE_MASK {
            VFIO_IRQ_SET_DATA_NONE if count == 0 => self.arm(index, 0, &mut vec![None; available].into_iter()),
            VFIO_IRQ_SET_DATA_NONE => (start..end).for_each(|vector| self.raise(index, vector)),
            VFIO_IRQ_SET_DATA_BOOL => {
                let fire = data.get(..count).ok_or(Errno::EINVAL)?;
                (start..end).zip(fire).filter(|(_, fire)| **fire != 0).for_each(|(n, _)| self.raise(index, n));
            }
            VFIO_IRQ_SET_DATA_EVENTFD if files.is_empty() => {
                self.arm(index, start, &mut vec![None; count].into_iter());
            }
            VFIO_IRQ_SET_DATA_EVENTFD if files.len() == count => {
                if !files.iter().all(is_eventfd) {
                    return Err(Errno::EINVAL);
                }
                self.notifier().map_err(|_| Errno::ENOMEM)?;
                self.arm(index, start, &mut files.into_iter().map(|file| Some(Arc::new(file))));
            }
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    /// Masks or unmasks the level of the pin: now, or when the client signals an eventfd.
    fn mask(&self, masked: bool, kind: u32, data: &[u8], mut files: Vec<File>) -> Result<(), Errno> {
        let notifier = self.notifier.load_full();
        match kind {
            VFIO_IRQ_SET_DATA_NONE => self.line.set_masked(notifier.as_deref(), masked),
            VFIO_IRQ_SET_DATA_BOOL => {
                if *data.first().ok_or(Errno::EINVAL)? != 0 {
                    self.line.set_masked(notifier.as_deref(), masked);
                }
            }
            VFIO_IRQ_SET_DATA_EVENTFD if !masked && files.len() <= 1 => {
                let mut unmasker = self.unmasker.lock().ignore_poison();
                drop(unmasker.take());
                if let Some(fd) = files.pop() {
                    if !is_eventfd(&fd) {
                        return Err(Errno::EINVAL);
                    }
                    let notifier = self.notifier().map_err(|_| Errno::ENOMEM)?;
                    let started = Unmasker::start(fd, self.line.clone(), notifier);
                    *unmasker = Some(started.map_err(|_| Errno::ENOMEM)?);
                }
            }
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    /// Replaces the eventfds of an index from vector `start` on. The level of the pin is unmasked when its eventfd is
    /// replaced.
    fn arm(&self, index: usize, start: usize, fds: &mut dyn Iterator<Item = Option<Arc<File>>>) {
        let Some(notifier) = self.notifier.load_full() else { return };
        // Interrupts raised earlier are signalled to the eventfd that was armed then.
        notifier.settle();
        for (slot, fd) in notifier.armed().get_mut(index).into_iter().flatten().skip(start).zip(fds) {
            *slot = fd;
        }
        if index == INTX {
            self.line.set_masked(Some(&notifier), false);
        }
    }
}

impl MsiSink for Vectors {
    fn trigger(&self) {
        self.raise_msi(0);
    }

    fn settle(&self) {
        if let Some(notifier) = &*self.notifier.load() {
            notifier.settle();
        }
    }
}

impl Drop for Vectors {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns whether a client's descriptor is an eventfd. Other types are rejected, because the client controls the
/// effect of a write to them.
fn is_eventfd(file: &File) -> bool {
    let kind = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    kind.is_ok_and(|kind| kind.as_os_str() == "anon_inode:[eventfd]")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::fd::{FromRawFd, IntoRawFd};

    use vmm_sys_util::eventfd::EventFd;

    use super::*;

    pub(super) fn body(flags: u32, index: u32, start: u32, count: u32) -> Vec<u8> {
        [20, flags, index, start, count].iter().flat_map(|field| field.to_le_bytes()).collect()
    }

    pub(crate) fn file(fd: &EventFd) -> File {
        // SAFETY: the descriptor is released by an `EventFd` and has no other owner.
        unsafe { File::from_raw_fd(fd.try_clone().unwrap().into_raw_fd()) }
    }

    const SET: u32 = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;

    /// The eventfd's count after all raised interrupts have been signalled.
    pub(super) fn signalled(vectors: &Vectors, fd: &EventFd) -> Option<u64> {
        vectors.wait();
        fd.read().ok()
    }

    #[test]
    fn an_armed_vector_signals_until_it_is_disarmed() {
        let vectors = Vectors::new([0, 1, 0]);
        let fd = EventFd::new(libc::EFD_NONBLOCK).unwrap();
        vectors.raise_msi(0);
        vectors.set(&body(SET, 1, 0, 1), vec![file(&fd)]).unwrap();
        assert_eq!(signalled(&vectors, &fd), None, "raised before it was armed");
        vectors.raise_msi(0);
        vectors.raise_msi(7);
        assert_eq!(signalled(&vectors, &fd), Some(1));
        vectors.set(&body(SET, 1, 0, 1), Vec::new()).unwrap();
        vectors.raise_msi(0);
        assert_eq!(signalled(&vectors, &fd), None, "a message without descriptors disarms");
    }

    /// A client clears O_NONBLOCK of the shared description and fills the counter. Raising and disarming do not block,
    /// the notifier exits, and no descriptor is kept.
    #[test]
    fn a_blocking_eventfd_holds_up_only_its_notifier() {
        let vectors = Vectors::new([0, 1, 0]);
        for _ in 0..20 {
            let fd = EventFd::new(0).unwrap();
            vectors.set(&body(SET, 1, 0, 1), vec![file(&fd)]).unwrap();
            fd.write(u64::MAX - 1).unwrap();
            for _ in 0..3 {
                vectors.raise_msi(0);
            }
            vectors.settle();
            let notifier = Arc::downgrade(&vectors.notifier.load_full().unwrap());
            vectors.clear();
            assert!(notifier.upgrade().is_none(), "the notifier has not ended");
            assert_eq!(fd.read().unwrap(), u64::MAX - 1);
        }
    }

    /// Before a vector is rearmed, the server waits up to [`SETTLE`] for earlier interrupts to be signalled to the
    /// previous eventfd.
    #[test]
    fn arming_waits_for_interrupts_raised_before() {
        let vectors = Vectors::new([0, 1, 0]);
        let fd = EventFd::new(0).unwrap();
        vectors.set(&body(SET, 1, 0, 1), vec![file(&fd)]).unwrap();
        fd.write(u64::MAX - 1).unwrap();
        vectors.raise_msi(0);
        let begun = Instant::now();
        vectors.set(&body(SET, 1, 0, 1), Vec::new()).unwrap();
        assert!(begun.elapsed() >= SETTLE, "{:?}", begun.elapsed());
        vectors.clear();
    }

    /// The next client's interrupts are signalled, regardless of the previous client's actions.
    #[test]
    fn a_notifier_for_each_connection() {
        let vectors = Vectors::new([0, 1, 0]);
        for _ in 0..3 {
            let fd = EventFd::new(libc::EFD_NONBLOCK).unwrap();
            vectors.arm_msi(0, file(&fd));
            vectors.trigger();
            assert_eq!(signalled(&vectors, &fd), Some(1));
            vectors.clear();
            vectors.trigger();
            assert_eq!(signalled(&vectors, &fd), None);
        }
    }

    #[test]
    fn only_an_eventfd_is_armed() {
        let vectors = Vectors::new([0, 1, 0]);
        let (_, pipe) = std::io::pipe().unwrap();
        let plain = vmm_sys_util::tempfile::TempFile::new().unwrap().into_file();
        for file in [plain, File::from(std::os::fd::OwnedFd::from(pipe))] {
            assert_eq!(vectors.set(&body(SET, 1, 0, 1), vec![file]), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn ranges_indexes_and_counts_are_checked() {
        let vectors = Vectors::new([0, 1, 0]);
        let fd = EventFd::new(libc::EFD_NONBLOCK).unwrap();
        for (index, start, count) in [(1, 0, 2), (1, 1, 1), (1, u32::MAX, u32::MAX), (3, 0, 0), (0, 0, 1)] {
            let result = vectors.set(&body(SET, index, start, count), vec![file(&fd)]);
            assert_eq!(result, Err(Errno::EINVAL), "{index} {start} {count}");
        }
        assert_eq!(vectors.set(&body(SET, 1, 0, 1), vec![file(&fd), file(&fd)]), Err(Errno::EINVAL));
        assert_eq!(vectors.set(&[0; 19], Vec::new()), Err(Errno::EINVAL));
    }

    #[test]
    fn the_client_can_fire_a_vector_itself() {
        let vectors = Vectors::new([0, 1, 0]);
        let fd = EventFd::new(libc::EFD_NONBLOCK).unwrap();
        vectors.set(&body(SET, 1, 0, 1), vec![file(&fd)]).unwrap();
        let none = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER;
        vectors.set(&body(none, 1, 0, 1), Vec::new()).unwrap();
        assert_eq!(signalled(&vectors, &fd), Some(1));
        let mut bools = body(VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_TRIGGER, 1, 0, 1);
        assert_eq!(vectors.set(&bools, Vec::new()), Err(Errno::EINVAL));
        bools.push(1);
        vectors.set(&bools, Vec::new()).unwrap();
        assert_eq!(signalled(&vectors, &fd), Some(1));
        vectors.set(&body(none, 1, 0, 0), Vec::new()).unwrap();
        vectors.raise_msi(0);
        assert_eq!(signalled(&vectors, &fd), None, "count 0 disarms the index");
    }
}
