//! The guest's RAM, and what else KVM maps into its address space.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::VmFd;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion, MmapRegion};

use crate::error::{Error, Step};
use crate::layout::{self, PAGE};

/// The guest's RAM: one file in memory, so that other processes can be handed it.
pub type Ram = Arc<GuestMemoryMmap>;

/// Makes `bytes` of RAM: up to 2 GiB from address 0, the rest from 4 GiB on. The file is sealed against shrinking, so
/// that nobody who has it can take pages away under a mapping.
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
            ranges.push((GuestAddress(address), len as usize, Some(file)));
        }
    }
    let memory = GuestMemoryMmap::from_ranges_with_files(ranges);
    Ok(Arc::new(memory.map_err(|error| Error::Ram(io::Error::other(error)))?))
}

/// A sparse file in memory that cannot shrink.
fn sealed_memfd(bytes: u64) -> io::Result<File> {
    let file = File::from(memfd_create("guest-ram", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_len(bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK)?;
    Ok(file)
}

/// KVM's memory slots: RAM, and parts of BARs that come and go while the guest runs.
pub struct Slots {
    vm: Arc<VmFd>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// What slot n maps, if anything. A mapping is dropped only after KVM has let go of it.
    slots: Vec<Option<Mapped>>,
}

struct Mapped {
    guest: u64,
    memory: Memory,
}

/// Keeps what a slot maps alive.
enum Memory {
    Ram { _memory: Ram, host: u64, len: u64 },
    Part(MmapRegion),
}

impl Memory {
    /// Address in this process, and length.
    fn place(&self) -> (u64, u64) {
        match self {
            Memory::Ram { host, len, .. } => (*host, *len),
            Memory::Part(region) => (region.as_ptr() as u64, region.size() as u64),
        }
    }
}

/// A slot in use, to be handed back.
#[derive(Debug)]
pub struct SlotNumber(u32);

impl Slots {
    /// No slots yet.
    pub fn new(vm: Arc<VmFd>) -> Self {
        Slots { vm, table: Mutex::default() }
    }

    /// Gives the guest its RAM.
    pub fn add_ram(&self, ram: &Ram) -> Result<(), Error> {
        for region in ram.iter() {
            let host = ram.get_host_address(region.start_addr());
            let host = host.map_err(|error| Error::Ram(io::Error::other(error)))? as u64;
            let memory = Memory::Ram { _memory: ram.clone(), host, len: region.len() };
            self.insert(region.start_addr().0, memory).step("map the guest's RAM")?;
        }
        Ok(())
    }

    /// Maps `len` bytes of `file` from `offset` at the guest's address `guest`. From the return of this call on
    /// accesses there do not leave the guest any more.
    pub fn add_file(&self, guest: u64, file: &File, offset: u64, len: u64) -> io::Result<SlotNumber> {
        if !(guest | offset | len).is_multiple_of(PAGE) || len == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "KVM maps whole pages"));
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
        self.set(number as u32, guest, memory_size, userspace_addr)?;
        let mapped = Some(Mapped { guest, memory });
        match table.slots.get_mut(number) {
            Some(slot) => *slot = mapped,
            None => table.slots.push(mapped),
        }
        Ok(SlotNumber(number as u32))
    }

    /// Takes a slot away. KVM waits for every vCPU to have left it; when this returns the mapping is gone.
    pub fn remove(&self, slot: SlotNumber) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = table.slots.get_mut(slot.0 as usize) else { return };
        let Some(mapped) = place.take() else { return };
        if let Err(error) = self.set(slot.0, mapped.guest, 0, mapped.memory.place().0) {
            // The guest may still reach the mapping: it has to stay.
            log::error!("KVM did not take back a memory slot at {:#x}: {error}", mapped.guest);
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
        // SAFETY: `host` is a mapping of `len` bytes that the table keeps until KVM has given the slot back, or until
        // no CPU runs any more (`vm::Running`); KVM itself refuses slots that overlap in the guest.
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
