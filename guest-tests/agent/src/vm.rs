// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! GPU address spaces with their buffers, queues and fences.
//!
//! Each object borrows the object that created it, and releases its kernel resource when dropped.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::batch::Batch;
use super::device::{Device, DrmError, Engine, Result};
use super::mapping::Mapping;
use super::uapi;
use crate::number;

/// First GPU virtual address to be allocated. Page 0 stays unmapped to detect accesses to a null address.
const FIRST_ADDRESS: u64 = 16 << 20;
/// Command streamers prefetch beyond the current command (`xe_cs_prefetch_size` in IGT).
const PREFETCH: u64 = 4096;

/// The memory in which a buffer is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The card's local memory, mapped through its BAR.
    Vram,
    /// The guest's system memory.
    System,
}

/// An object bound at an address in an address space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// The object's handle.
    pub handle: u32,
    /// Its GPU virtual address.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
}

/// The completion signal of a submission.
#[derive(Clone, Copy, Debug)]
pub(super) enum Signal {
    /// Through the sync object with this handle.
    Syncobj(u32),
    /// Through a quadword in memory (xe only).
    UserFence {
        /// Its GPU virtual address.
        address: u64,
        /// The value to write.
        value: u64,
    },
}

/// A GPU address space.
pub struct Vm<'d> {
    device: &'d Device,
    id: u32,
    next: Cell<u64>,
    bound: RefCell<Vec<Bound>>,
}

impl<'d> Vm<'d> {
    /// Creates an empty address space of `device`.
    pub(super) fn new(device: &'d Device) -> Result<Self> {
        let id = device.api.create_vm(device)?;
        Ok(Vm { device, id, next: Cell::new(FIRST_ADDRESS), bound: RefCell::default() })
    }

    /// Allocates `size` bytes (rounded up to 64 KiB), binds them at an unused address and maps them for the CPU.
    pub fn buffer(&self, place: Place, size: u64) -> Result<Buffer<'_>> {
        let device = self.device;
        let size = size.max(1).next_multiple_of(64 << 10);
        let handle = device.api.create_object(device, self.id, place, size)?;
        // If a later step fails, dropping `object` closes the handle.
        let object = GemObject { device, handle };

        let offset = device.api.mmap_offset(device, handle)?;
        let mapping = Mapping::new(device.file(), offset, number::size(size))
            .map_err(|source| DrmError::Os { what: format!("mmap of {size} bytes of {place:?}"), source })?;

        let (address, next) = place_after(self.next.get(), size, device.alignment());
        self.next.set(next);
        let bound = Bound { handle, address, size };
        device.api.bind(device, self.id, &bound)?;
        self.bound.borrow_mut().push(bound);
        Ok(Buffer { vm: self, _object: object, mapping, address, place })
    }

    /// Creates a queue for `engine`.
    pub fn queue(&self, engine: Engine) -> Result<Queue<'_>> {
        let id = self.device.api.create_queue(self.device, self.id, engine)?;
        Ok(Queue { vm: self, id })
    }

    /// The device of this address space.
    pub fn device(&self) -> &'d Device {
        self.device
    }
}

/// Returns the address of a buffer of `size` bytes at or after `next`, and the first address that may follow it. The
/// addresses up to the next multiple of `alignment` belong to the buffer.
fn place_after(next: u64, size: u64, alignment: u64) -> (u64, u64) {
    // Large buffers are aligned to 2 MiB, which allows the driver to use 2 MiB pages.
    let alignment = if size >= 2 << 20 { alignment.max(2 << 20) } else { alignment };
    let address = next.next_multiple_of(alignment);
    // An unmapped gap follows each buffer, so that an overrun accesses the scratch page instead of the next buffer.
    (address, (address + size).next_multiple_of(alignment).max(address + size + (64 << 10)))
}

impl Drop for Vm<'_> {
    fn drop(&mut self) {
        // Errors cannot be reported from drop; the kernel cleans up at exit.
        let _ = self.device.api.destroy_vm(self.device, self.id);
    }
}

struct GemObject<'d> {
    device: &'d Device,
    handle: u32,
}

impl Drop for GemObject<'_> {
    fn drop(&mut self) {
        let _ = self.device.ioctl(&mut uapi::GemClose { handle: self.handle, pad: 0 });
    }
}

/// Memory accessible to the GPU (at [`Buffer::address`]) and to the CPU (through [`Buffer::mapping`]).
pub struct Buffer<'v> {
    vm: &'v Vm<'v>,
    // Closed after the unbind: `Drop for Buffer` runs before the fields are dropped.
    _object: GemObject<'v>,
    mapping: Mapping,
    address: u64,
    place: Place,
}

impl Buffer<'_> {
    /// GPU virtual address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The memory in which the buffer is allocated.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The CPU's mapping.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Writes `batch`, which must have been built for this buffer's address.
    pub fn load(&self, batch: &Batch) -> Result<()> {
        let bytes = 4 * batch.dwords().len() as u64 + PREFETCH;
        if bytes > self.mapping.len() as u64 {
            return Err(DrmError::BatchTooLong { batch: bytes, buffer: self.mapping.len() as u64 });
        }
        for (index, dword) in batch.dwords().iter().enumerate() {
            self.mapping.write_u32(4 * index, *dword);
        }
        Ok(())
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let mut all = self.vm.bound.borrow_mut();
        let Some(at) = all.iter().position(|bound| bound.address == self.address) else { return };
        let _ = self.vm.device.api.unbind(self.vm.device, self.vm.id, &all.swap_remove(at));
    }
}

/// A submission queue: an exec queue of xe, a context of i915.
pub struct Queue<'v> {
    vm: &'v Vm<'v>,
    id: u32,
}

impl<'v> Queue<'v> {
    /// The driver's number of the queue.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Submits the batch at `address`. The returned fence signals on completion.
    pub fn submit(&self, address: u64) -> Result<Fence<'v>> {
        let fence = self.device().fence()?;
        self.exec(address, None, Signal::Syncobj(fence.handle))?;
        Ok(fence)
    }

    /// Submits the batch at `address` to run after `after` has signalled. The returned fence signals on completion.
    pub fn submit_after(&self, address: u64, after: &Fence<'_>) -> Result<Fence<'v>> {
        let fence = self.device().fence()?;
        self.exec(address, Some(after.handle), Signal::Syncobj(fence.handle))?;
        Ok(fence)
    }

    /// Submits the batch at `address`. On completion the GPU writes `value` at byte `offset` of `memory`.
    pub fn submit_user_fence(&self, address: u64, memory: &Buffer<'_>, offset: u64, value: u64) -> Result<()> {
        self.exec(address, None, Signal::UserFence { address: memory.address + offset, value })
    }

    /// Waits in the driver until the quadword at byte `offset` of `memory` equals `value`.
    pub fn wait_user_fence(&self, memory: &Buffer<'_>, offset: usize, value: u64, timeout: Duration) -> Result<()> {
        let pointer = memory.mapping.pointer(offset, 8) as u64;
        self.device().api.wait_user_fence(self.device(), self.id, pointer, value, timeout)
    }

    /// Waits for a fence of this queue. Returns an error if the driver has banned the queue, since the fences of a
    /// banned queue signal too.
    pub fn wait(&self, fence: &Fence<'_>, timeout: Duration) -> Result<()> {
        let start = Instant::now();
        fence.wait(timeout)?;
        match self.device().api.is_banned(self.device(), self.id)? {
            true => Err(DrmError::Banned(start.elapsed())),
            false => Ok(()),
        }
    }

    fn device(&self) -> &'v Device {
        self.vm.device
    }

    fn exec(&self, address: u64, after: Option<u32>, signal: Signal) -> Result<()> {
        let bound = self.vm.bound.borrow();
        self.device().api.exec(self.device(), self.id, address, &bound, after, signal)
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        let _ = self.device().api.destroy_queue(self.device(), self.id);
    }
}

/// A DRM sync object signalled by one submission or bind.
pub struct Fence<'d> {
    device: &'d Device,
    handle: u32,
}

impl<'d> Fence<'d> {
    /// Creates an unsignalled fence.
    pub(super) fn new(device: &'d Device) -> Result<Self> {
        let mut create = uapi::SyncobjCreate::default();
        device.ioctl(&mut create)?;
        Ok(Fence { device, handle: create.handle })
    }

    /// Blocks until the fence has signalled. Fails with [`DrmError::Timeout`] after `timeout`.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        let mut wait = uapi::SyncobjWait {
            handles: std::ptr::from_ref(&self.handle) as u64,
            timeout_nsec: monotonic_after(timeout),
            count_handles: 1,
            ..Default::default()
        };
        DrmError::timed(self.device.ioctl(&mut wait), timeout)
    }

    /// The sync object's handle.
    pub(super) fn handle(&self) -> u32 {
        self.handle
    }
}

impl Drop for Fence<'_> {
    fn drop(&mut self) {
        let _ = self.device.ioctl(&mut uapi::SyncobjDestroy { handle: self.handle, pad: 0 });
    }
}

/// The CLOCK_MONOTONIC time `delay` from now, in nanoseconds.
fn monotonic_after(delay: Duration) -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    let delay = i64::try_from(delay.as_nanos()).unwrap_or(i64::MAX);
    (now.tv_sec * 1_000_000_000 + now.tv_nsec).saturating_add(delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of both drivers: addresses and reserved ranges are multiples of the alignment, and a gap of at least
    /// 64 KiB follows.
    #[test]
    fn buffers_are_placed_at_multiples_of_the_alignment() {
        for alignment in [64 << 10, 2 << 20] {
            let mut next = FIRST_ADDRESS;
            let mut end = 0;
            for size in [64 << 10, 128 << 10, 2 << 20, 64 << 10, (2 << 20) + (64 << 10), 2 << 20] {
                let (address, after) = place_after(next, size, alignment);
                assert!(address.is_multiple_of(alignment) && address >= end, "{size:#x} at {address:#x}");
                assert!(size < 2 << 20 || address.is_multiple_of(2 << 20), "{size:#x} at {address:#x}");
                assert!(after >= address + size + (64 << 10), "{size:#x} at {address:#x}");
                end = (address + size).next_multiple_of(alignment);
                next = after;
            }
        }
        assert_eq!(place_after(FIRST_ADDRESS, 64 << 10, 64 << 10), (FIRST_ADDRESS, FIRST_ADDRESS + (128 << 10)));
    }
}
