// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The files of one client that back its sections: each file has one descriptor, and is mapped once for all of its
//! sections.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use rustix::fs::{OFlags, SealFlags, fcntl_get_seals, fcntl_getfl, fstatfs};
use rustix::process::{Resource, getrlimit};
use vm_memory::mmap::MmapRegionBuilder;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

use super::sections::Section;
use crate::vfio_user::Errno;
use crate::vfio_user::quota::{Account, Charge};
use crate::vfio_user::wire::DMA_WRITABLE;

/// Number of the backing of memory that is accessed by messages: the client sent no file, or one that can be neither
/// mapped nor accessed by system calls.
pub const CLIENT: u32 = u32::MAX;

/// The bits of an offset inside a page; mappings begin at a page of the file.
const PAGE_OFFSET: u64 = 4095;

/// A descriptor kept for one or more backings.
pub struct Kept {
    file: Arc<File>,
    _charge: Charge,
}

/// A client's file, or a part of it.
pub enum Backing {
    /// Mapped into this process; for a memory file that is sealed against truncation.
    Mapped(Mapped),
    /// Accessed by system calls; for a memory file that may be truncated, after which the system call fails.
    File(Arc<Kept>),
}

/// A range of a file that is mapped into this process.
pub struct Mapped {
    memory: MmapRegion,
    /// Offset of the first mapped byte in the file.
    start: u64,
    writable: bool,
    file: Arc<Kept>,
    _charge: Charge,
}

impl Mapped {
    /// Returns whether `[offset, offset + size)` of the file is mapped, with at least these rights.
    fn covers(&self, offset: u64, size: u64, writable: bool) -> bool {
        let end = self.start.checked_add(self.memory.size() as u64);
        self.start <= offset && offset.checked_add(size) <= end && (self.writable || !writable)
    }

    /// Bytes `[at, at + len)` of the section, truncated at its end. `at` must be inside the section.
    pub fn bytes(&self, section: &Section, at: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let rest = section.last.checked_sub(at)?.saturating_add(1);
        let len = len.min(usize::try_from(rest).unwrap_or(usize::MAX));
        let offset = usize::try_from(section.place(at)?.checked_sub(self.start)?).ok()?;
        self.memory.get_slice(offset, len).ok()
    }
}

impl Backing {
    fn file(&self) -> &Arc<Kept> {
        match self {
            Backing::Mapped(mapped) => &mapped.file,
            Backing::File(file) => file,
        }
    }

    /// Reads `data` from address `at`; the whole range must be inside the section.
    pub fn read(&self, section: &Section, at: u64, data: &mut [u8]) -> Option<()> {
        match self {
            Backing::Mapped(mapped) => mapped.bytes(section, at, data.len())?.read_slice(data, 0).ok(),
            Backing::File(file) => file.file.read_exact_at(data, section.place(at)?).ok(),
        }
    }

    /// Writes `data` to address `at`; the whole range must be inside the section.
    pub fn write(&self, section: &Section, at: u64, data: &[u8]) -> Option<()> {
        match self {
            Backing::Mapped(mapped) => mapped.bytes(section, at, data.len())?.write_slice(data, 0).ok(),
            Backing::File(file) => file.file.write_all_at(data, section.place(at)?).ok(),
        }
    }
}

/// The identity of a file: device, inode, access mode.
type Identity = (u64, u64, u32);

struct Slot {
    backing: Arc<Backing>,
    identity: Identity,
    /// Number of sections in the backing.
    sections: usize,
}

/// How a section is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Through a mapping.
    Mapped,
    /// By a system call for each access.
    SystemCalls,
    /// By a message to the client for each access.
    Messages,
}

/// The backings of one client, by number.
#[derive(Default)]
pub struct Backings {
    slots: Vec<Option<Slot>>,
    /// Numbers of the backings of each file.
    files: HashMap<Identity, Vec<u32>>,
    /// Number of sections that are accessed by messages.
    by_messages: usize,
    /// The backings have changed since the last call of [`Backings::changed`].
    changed: bool,
}

impl Backings {
    fn slot(&self, number: u32) -> Option<&Slot> {
        self.slots.get(number as usize)?.as_ref()
    }

    /// Returns the number of sections that are accessed by messages.
    pub fn by_messages(&self) -> usize {
        self.by_messages
    }

    /// Returns the backings by number if they have changed since the last call.
    pub fn changed(&mut self) -> Option<Vec<Option<Arc<Backing>>>> {
        let backing = |slot: &Option<Slot>| slot.as_ref().map(|slot| slot.backing.clone());
        std::mem::take(&mut self.changed).then(|| self.slots.iter().map(backing).collect())
    }

    /// Returns the number of the backing for `[offset, offset + size)` of `file` with these rights, and how it is
    /// accessed. A file that could be truncated is not mapped. The backing is kept until the last section in it is
    /// removed; [`Backings::release`] removes it if no section is added.
    ///
    /// Errors: EINVAL for a range beyond the end of the file or a file that is not a regular file, ENOSPC beyond a limit
    /// of `account`, ENOMEM if the file cannot be mapped with these rights.
    pub fn back(
        &mut self,
        file: File,
        offset: u64,
        size: u64,
        rights: u32,
        account: &Arc<Account>,
    ) -> Result<(u32, Access), Errno> {
        let end = offset.checked_add(size).ok_or(Errno::EINVAL)?;
        // Ordering: the seal is checked before the length is read, so the length cannot decrease afterwards.
        let sealed = sealed_against_shrinking(&file);
        let metadata = file.metadata().map_err(|_| Errno::EINVAL)?;
        // An access to a mapping beyond the end of the file faults. Directories and O_PATH descriptors also have a
        // length.
        if !metadata.is_file() || end > metadata.len() {
            return Err(Errno::EINVAL);
        }
        let in_memory = in_memory(&file);
        if !in_memory || !sealed && end > longest_file() {
            return Ok((CLIENT, Access::Messages));
        }
        let identity = identity(&file, &metadata)?;
        let of_file = self.files.get(&identity).map_or(&[][..], Vec::as_slice);
        let writable = rights & DMA_WRITABLE != 0;
        let suits = |number: &&u32| match self.slot(**number).map(|slot| &*slot.backing) {
            Some(Backing::Mapped(mapped)) => sealed && mapped.covers(offset, size, writable),
            Some(Backing::File(_)) => !sealed,
            None => false,
        };
        let access = if sealed { Access::Mapped } else { Access::SystemCalls };
        // The mapping of the whole file is the newest.
        if let Some(number) = of_file.iter().rev().find(suits) {
            return Ok((*number, access));
        }
        let kept = of_file.iter().find_map(|number| Some(self.slot(*number)?.backing.file().clone()));
        let kept = match kept {
            Some(kept) => kept,
            None => Arc::new(Kept { file: Arc::new(file), _charge: account.descriptor()? }),
        };
        let backing = match sealed {
            true => Backing::Mapped(map(kept, (offset, end), metadata.len(), writable, account)?),
            false => Backing::File(kept),
        };
        Ok((self.add(Slot { backing: Arc::new(backing), identity, sections: 0 }), access))
    }

    fn add(&mut self, slot: Slot) -> u32 {
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or(self.slots.len());
        // The quota of descriptors and mappings keeps the number far below `CLIENT`.
        let number = u32::try_from(index).unwrap_or(CLIENT);
        self.files.entry(slot.identity).or_default().push(number);
        match self.slots.get_mut(index) {
            Some(free) => *free = Some(slot),
            None => self.slots.push(Some(slot)),
        }
        self.changed = true;
        number
    }

    fn sections(&mut self, number: u32) -> Option<&mut usize> {
        match number {
            CLIENT => Some(&mut self.by_messages),
            number => self.slots.get_mut(number as usize)?.as_mut().map(|slot| &mut slot.sections),
        }
    }

    /// Counts the sections that a change of the table has added and removed, and removes the backings without sections.
    pub fn count(&mut self, added: &[Section], removed: &[Section]) {
        for section in added {
            if let Some(sections) = self.sections(section.backing) {
                *sections = sections.saturating_add(1);
            }
        }
        for section in removed {
            if let Some(sections) = self.sections(section.backing) {
                *sections = sections.saturating_sub(1);
            }
            self.release(section.backing);
        }
    }

    /// Removes the backing if it has no section.
    pub fn release(&mut self, number: u32) {
        let Some(slot) = self.slots.get_mut(number as usize) else { return };
        if let Some(Slot { identity, .. }) = slot.take_if(|slot| slot.sections == 0) {
            self.changed = true;
            if let Some(of_file) = self.files.get_mut(&identity) {
                of_file.retain(|other| *other != number);
                if of_file.is_empty() {
                    self.files.remove(&identity);
                }
            }
        }
    }
}

fn identity(file: &File, metadata: &Metadata) -> Result<Identity, Errno> {
    let mode = fcntl_getfl(file).map_err(|_| Errno::EINVAL)? & OFlags::RWMODE;
    Ok((metadata.dev(), metadata.ino(), mode.bits()))
}

/// Returns whether the file can never be truncated; the seal cannot be removed. QEMU's memory-backend-memfd sets it by
/// default (QEMU: backends/hostmem-memfd.c); files with a name cannot have it.
fn sealed_against_shrinking(file: &File) -> bool {
    fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}

/// Returns whether the file is in a tmpfs, which includes memfds. Only tmpfs always provides a page for an access:
/// hugetlbfs may run out of pages, which also raises SIGBUS, and other file systems may block on a disk or on a
/// user-space server that never replies.
fn in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|found| found.f_type == libc::TMPFS_MAGIC)
}

/// Maximum file size that this process may write: a write beyond it raises SIGXFSZ.
fn longest_file() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Maps the file of `len` bytes as a whole, or only the pages of the range `(from, to)` if the whole file exceeds the
/// limit of address space. Then every other section of the file needs a mapping of its own.
fn map(
    file: Arc<Kept>,
    (from, to): (u64, u64),
    len: u64,
    writable: bool,
    account: &Arc<Account>,
) -> Result<Mapped, Errno> {
    let pages = from & !PAGE_OFFSET;
    let (start, end, charge) = match account.mapping(len) {
        Ok(charge) => (0, len, charge),
        Err(_) => (pages, to, account.mapping(to.saturating_sub(pages))?),
    };
    let size = usize::try_from(end.saturating_sub(start)).map_err(|_| Errno::ENOMEM)?;
    let map = |rights| {
        MmapRegionBuilder::new(size)
            .with_file_offset(FileOffset::from_arc(file.file.clone(), start))
            .with_mmap_prot(rights)
            .with_mmap_flags(libc::MAP_SHARED | libc::MAP_NORESERVE)
            .build()
    };
    // One mapping serves the read-only sections of the file and those that the device may write: the table has the
    // rights of each. A file that is sealed against writing, or open for reading only, cannot be mapped writable. Such a
    // seal does not change an existing mapping.
    let (memory, writable) = match map(libc::PROT_READ | libc::PROT_WRITE) {
        Ok(memory) => (memory, true),
        Err(_) if !writable => (map(libc::PROT_READ).map_err(|_| Errno::ENOMEM)?, false),
        Err(_) => return Err(Errno::ENOMEM),
    };
    Ok(Mapped { memory, start, writable, file, _charge: charge })
}
