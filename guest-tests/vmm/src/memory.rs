// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The guest's RAM and all other memslots.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};

use arctic_sriov::number::{count, size};
use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::VmFd;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::sync::PoisonError;
use vm_memory::{FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion, MmapRegion};

use crate::error::{Error, Step};
use crate::layout::{self, PAGE};

/// The guest's RAM, backed by one memfd that can be passed to other processes.
pub type Ram = Arc<GuestMemoryMmap>;

/// Allocates `bytes` of RAM: up to 2 GiB from address 0, the rest from 4 GiB. The file is sealed against shrinking: a
/// process with its descriptor cannot remove pages of a mapping.
pub fn ram(bytes: u64) -> Result<Ram, Error> {
    if !(layout::LEAST_RAM..=layout::MOST_RAM).contains(&bytes) || !bytes.is_multiple_of(PAGE) {
        return Err(Error::RamSize(bytes));
    }
    let file = sealed_memfd(bytes).map_err(Error::Ram)?;
    let low = bytes.min(layout::RAM_BELOW_4G);
    let mut ranges = Vec::new();
    for (address, len, offset) in [(0, low, 0), (layout::RAM_ABOVE_4G, bytes - low, low)] {
        if len != 0 {
            let file = FileOffset::new(file.try_clone().map_err(Error::Ram)?, offset);
            ranges.push((GuestAddress(address), size(len), Some(file)));
        }
    }
    let memory = GuestMemoryMmap::from_ranges_with_files(ranges);
    Ok(Arc::new(memory.map_err(|error| Error::Ram(io::Error::other(error)))?))
}

/// Creates a sparse memfd that cannot shrink.
fn sealed_memfd(bytes: u64) -> io::Result<File> {
    let file = File::from(memfd_create("guest-ram", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_len(bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK)?;
    Ok(file)
}

/// KVM's memslots: RAM, and mapped ranges of BARs, which are added and removed while the guest runs.
pub struct Slots {
    vm: Arc<VmFd>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// The mapping of each slot, if in use. A mapping is dropped only after KVM has removed the slot.
    slots: Vec<Option<Mapped>>,
}

struct Mapped {
    guest: u64,
    memory: Memory,
}

/// Keeps the memory of a slot alive.
enum Memory {
    Ram { _memory: Ram, host: u64, len: u64 },
    Part(MmapRegion),
}

impl Memory {
    /// Returns the address in this process and the length.
    fn place(&self) -> (u64, u64) {
        match self {
            Memory::Ram { host, len, .. } => (*host, *len),
            Memory::Part(region) => (region.as_ptr() as u64, region.size() as u64),
        }
    }
}

/// A slot in use, for [`Slots::remove`].
#[derive(Debug)]
pub struct SlotNumber(u32);

impl Slots {
    /// Creates an empty slot table.
    pub fn new(vm: Arc<VmFd>) -> Self {
        Slots { vm, table: Mutex::default() }
    }

    /// Maps the guest's RAM.
    pub fn add_ram(&self, ram: &Ram) -> Result<(), Error> {
        for region in ram.iter() {
            let host = ram.get_host_address(region.start_addr());
            let host = host.map_err(|error| Error::Ram(io::Error::other(error)))? as u64;
            let memory = Memory::Ram { _memory: ram.clone(), host, len: region.len() };
            self.insert(region.start_addr().0, memory).step("map the guest's RAM")?;
        }
        Ok(())
    }

    /// Maps `len` bytes of `file` from `offset` at the guest address `guest`. When this returns, accesses to the range
    /// no longer cause exits.
    pub fn add_file(&self, guest: u64, file: &File, offset: u64, len: u64) -> io::Result<SlotNumber> {
        if !(guest | offset | len).is_multiple_of(PAGE) || len == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "KVM maps only whole pages"));
        }
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let region =
            MmapRegion::from_file(FileOffset::new(file.try_clone()?, offset), len).map_err(io::Error::other)?;
        self.insert(guest, Memory::Part(region)).map_err(|error| io::Error::from_raw_os_error(error.errno()))
    }

    fn insert(&self, guest: u64, memory: Memory) -> Result<SlotNumber, kvm_ioctls::Error> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let number = table.slots.iter().position(Option::is_none).unwrap_or(table.slots.len());
        let (userspace_addr, memory_size) = memory.place();
        self.set(count(number), guest, memory_size, userspace_addr)?;
        let mapped = Some(Mapped { guest, memory });
        match table.slots.get_mut(number) {
            Some(slot) => *slot = mapped,
            None => table.slots.push(mapped),
        }
        Ok(SlotNumber(count(number)))
    }

    /// Removes a slot. Blocks until no vCPU uses it, and then unmaps its memory.
    pub fn remove(&self, slot: SlotNumber) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = table.slots.get_mut(slot.0 as usize) else { return };
        let Some(mapped) = place.take() else { return };
        if let Err(error) = self.set(slot.0, mapped.guest, 0, mapped.memory.place().0) {
            // The guest may still access the mapping, so it must be kept.
            log::error!("KVM did not remove a memslot at {:#x}: {error}", mapped.guest);
            *place = Some(mapped);
        }
    }

    fn set(&self, slot: u32, guest: u64, len: u64, host: u64) -> Result<(), kvm_ioctls::Error> {
        let region = kvm_userspace_memory_region {
            slot,
            flags: 0,
            guest_phys_addr: guest,
            memory_size: len,
            userspace_addr: host,
        };
        // SAFETY: `host` is a mapping of `len` bytes that the table keeps until KVM has removed the slot, or until no
        // vCPU runs any more (`vm::Running`). KVM rejects slots that overlap in the guest.
        unsafe { self.vm.set_user_memory_region(region) }
    }
}

#[cfg(test)]
mod tests {
    use vm_memory::Bytes;

    use super::*;

    #[test]
    fn ram_is_split_around_the_hole_and_cannot_shrink() {
        let ram = ram(layout::RAM_BELOW_4G + (16 << 20)).unwrap();
        let regions: Vec<_> = ram.iter().map(|region| (region.start_addr().0, region.len())).collect();
        assert_eq!(regions, [(0, layout::RAM_BELOW_4G), (layout::RAM_ABOVE_4G, 16 << 20)]);
        ram.write_obj(7u64, GuestAddress(layout::RAM_ABOVE_4G)).unwrap();
        let file = ram.iter().next().unwrap().file_offset().unwrap().file();
        assert!(file.set_len(PAGE).is_err());
    }

    #[test]
    fn odd_sizes_of_ram_are_refused() {
        for bytes in [0, 1 << 20, (64 << 20) + 1, 1 << 40] {
            assert!(matches!(ram(bytes), Err(Error::RamSize(refused)) if refused == bytes), "{bytes:#x}");
        }
    }
}
