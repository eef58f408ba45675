//! Interrupt vectors of a function: eventfds that the client hands over, signalled from any thread.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::sync::{PoisonError, RwLock};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use vmm_sys_util::eventfd::EventFd;

use super::Errno;
use super::wire::{Fields, IRQ_INDEXES};
use crate::pci::MsiSink;
use vfio_bindings::bindings::vfio::*;

/// Index of MSI among a PCI device's interrupts.
const MSI: usize = VFIO_PCI_MSI_IRQ_INDEX as usize;

/// The eventfds of one function, by interrupt index (INTx, MSI, MSI-X) and vector.
///
/// The lock is held for the length of one `write` to a non-blocking eventfd, so raising never waits for a client.
pub struct Vectors([RwLock<Vec<Option<EventFd>>>; IRQ_INDEXES]);

impl Vectors {
    /// All vectors unarmed; `counts` is [`super::VECTORS`].
    pub fn new(counts: [u32; IRQ_INDEXES]) -> Self {
        Vectors(counts.map(|count| RwLock::new((0..count).map(|_| None).collect())))
    }

    /// Sends MSI `vector`. Nothing happens where the guest has MSI disabled: the client has taken the eventfd away.
    pub fn raise_msi(&self, vector: u16) {
        self.signal(MSI, usize::from(vector));
    }

    fn signal(&self, index: usize, vector: usize) {
        let fds = self.0[index].read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(fd)) = fds.get(vector) {
            // The counter can only overflow (EAGAIN), and then the event is pending already.
            let _ = fd.write(1);
        }
    }

    /// Arms MSI `vector` as a client does.
    #[cfg(test)]
    pub(crate) fn arm_msi(&self, vector: usize, fd: EventFd) {
        self.0[MSI].write().unwrap_or_else(PoisonError::into_inner)[vector] = Some(fd);
    }

    /// Disarms everything: the client is gone.
    pub fn clear(&self) {
        for fds in &self.0 {
            fds.write().unwrap_or_else(PoisonError::into_inner).fill_with(|| None);
        }
    }

    /// Carries out DEVICE_SET_IRQS, whose body is `fields` and whose descriptors are `files`.
    pub(super) fn set(&self, mut fields: Fields<'_>, files: Vec<File>) -> Result<(), Errno> {
        let (_argsz, flags) = (fields.u32()?, fields.u32()?);
        let (index, start, count) = (fields.u32()? as usize, fields.u32()? as usize, fields.u32()? as usize);
        let fds = self.0.get(index).ok_or(Errno::EINVAL)?;
        let available = fds.read().unwrap_or_else(PoisonError::into_inner).len();
        let end = start.checked_add(count).filter(|end| *end <= available).ok_or(Errno::EINVAL)?;
        if flags & VFIO_IRQ_SET_ACTION_TYPE_MASK != VFIO_IRQ_SET_ACTION_TRIGGER {
            // Masking is for INTx, which the card does not have; MSI is masked in configuration space.
            return Err(Errno::EINVAL);
        }
        match flags & VFIO_IRQ_SET_DATA_TYPE_MASK {
            VFIO_IRQ_SET_DATA_NONE if count == 0 => {
                fds.write().unwrap_or_else(PoisonError::into_inner).fill_with(|| None);
            }
            VFIO_IRQ_SET_DATA_NONE => (start..end).for_each(|vector| self.signal(index, vector)),
            VFIO_IRQ_SET_DATA_BOOL => {
                let fire = fields.rest().get(..count).ok_or(Errno::EINVAL)?;
                (start..end).zip(fire).filter(|(_, fire)| **fire != 0).for_each(|(n, _)| self.signal(index, n));
            }
            VFIO_IRQ_SET_DATA_EVENTFD if files.is_empty() || files.len() == count => {
                let mut files = files.into_iter();
                let mut fds = fds.write().unwrap_or_else(PoisonError::into_inner);
                for slot in &mut fds[start..end] {
                    *slot = files.next().map(eventfd).transpose()?;
                }
            }
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }
}

impl MsiSink for Vectors {
    fn trigger(&self) {
        self.raise_msi(0);
    }
}

/// Takes a client's descriptor as an eventfd that cannot block whoever raises the interrupt. Other descriptors are
/// refused: a write to a file or a pipe can take as long as the client likes, whatever its flags say.
fn eventfd(file: File) -> Result<EventFd, Errno> {
    let kind = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(|_| Errno::EINVAL)?;
    if kind.as_os_str() != "anon_inode:[eventfd]" {
        return Err(Errno::EINVAL);
    }
    let flags = fcntl_getfl(&file).map_err(|_| Errno::EINVAL)?;
    fcntl_setfl(&file, flags | OFlags::NONBLOCK).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor comes out of a `File` and belongs to nobody else.
    Ok(unsafe { EventFd::from_raw_fd(file.into_raw_fd()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(flags: u32, index: u32, start: u32, count: u32) -> Vec<u8> {
        [20, flags, index, start, count].iter().flat_map(|field| field.to_le_bytes()).collect()
    }

    fn file(fd: &EventFd) -> File {
        // SAFETY: the descriptor comes out of an `EventFd` and belongs to nobody else.
        unsafe { File::from_raw_fd(fd.try_clone().unwrap().into_raw_fd()) }
    }

    const SET: u32 = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;

    #[test]
    fn an_armed_vector_signals_until_it_is_disarmed() {
        let vectors = Vectors::new([0, 1, 0]);
        let fd = EventFd::new(libc::EFD_NONBLOCK).unwrap();
        vectors.raise_msi(0);
        vectors.set(Fields(&body(SET, 1, 0, 1)), vec![file(&fd)]).unwrap();
        assert!(fd.read().is_err(), "raised before it was armed");
        vectors.raise_msi(0);
        vectors.raise_msi(7);
        assert_eq!(fd.read().unwrap(), 1);
        vectors.set(Fields(&body(SET, 1, 0, 1)), Vec::new()).unwrap();
        vectors.raise_msi(0);
        assert!(fd.read().is_err(), "a message without descriptors disarms");
    }

    #[test]
    fn a_blocking_eventfd_cannot_hold_up_the_card() {
        let vectors = Vectors::new([0, 1, 0]);
        let fd = EventFd::new(0).unwrap();
        fd.write(u64::MAX - 1).unwrap();
        vectors.set(Fields(&body(SET, 1, 0, 1)), vec![file(&fd)]).unwrap();
        vectors.raise_msi(0);
    }

    #[test]
    fn only_an_eventfd_is_armed() {
        let vectors = Vectors::new([0, 1, 0]);
        let (_, pipe) = std::io::pipe().unwrap();
        for file in [File::open("/dev/zero").unwrap(), File::from(std::os::fd::OwnedFd::from(pipe))] {
            assert_eq!(vectors.set(Fields(&body(SET, 1, 0, 1)), vec![file]), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn ranges_indexes_and_counts_are_checked() {
        let vectors = Vectors::new([0, 1, 0]);
        let fd = EventFd::new(libc::EFD_NONBLOCK).unwrap();
        for (index, start, count) in [(1, 0, 2), (1, 1, 1), (1, u32::MAX, u32::MAX), (3, 0, 0), (0, 0, 1)] {
            let result = vectors.set(Fields(&body(SET, index, start, count)), vec![file(&fd)]);
            assert_eq!(result, Err(Errno::EINVAL), "{index} {start} {count}");
        }
        assert_eq!(vectors.set(Fields(&body(SET, 1, 0, 1)), vec![file(&fd), file(&fd)]), Err(Errno::EINVAL));
        assert_eq!(vectors.set(Fields(&[0; 19]), Vec::new()), Err(Errno::EINVAL));
    }

    #[test]
    fn the_client_can_fire_a_vector_itself() {
        let vectors = Vectors::new([0, 1, 0]);
        let fd = EventFd::new(libc::EFD_NONBLOCK).unwrap();
        vectors.set(Fields(&body(SET, 1, 0, 1)), vec![file(&fd)]).unwrap();
        let none = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER;
        vectors.set(Fields(&body(none, 1, 0, 1)), Vec::new()).unwrap();
        assert_eq!(fd.read().unwrap(), 1);
        let mut bools = body(VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_TRIGGER, 1, 0, 1);
        assert_eq!(vectors.set(Fields(&bools), Vec::new()), Err(Errno::EINVAL));
        bools.push(1);
        vectors.set(Fields(&bools), Vec::new()).unwrap();
        assert_eq!(fd.read().unwrap(), 1);
        vectors.set(Fields(&body(none, 1, 0, 0)), Vec::new()).unwrap();
        vectors.raise_msi(0);
        assert!(fd.read().is_err(), "count 0 disarms the index");
    }
}
