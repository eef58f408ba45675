//! Address spaces, the buffers in them, and the queues and fences that work on them.
//!
//! Everything lives as long as what it was made from, and gives itself back when dropped.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::mapping::Mapping;
use super::uapi;
use super::xe::{Device, Engine, Result, XeError};

/// First GPU virtual address handed out: page 0 stays unmapped, so that a null address is noticed.
const FIRST_ADDRESS: u64 = 16 << 20;
/// Command streamers fetch ahead of the command that they execute (`xe_cs_prefetch_size` in IGT).
const PREFETCH: u64 = 4096;

/// Which memory a buffer lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The card's local memory, mapped through its BAR.
    Vram,
    /// The guest's own memory.
    System,
}

/// A GPU address space.
pub struct Vm<'d> {
    device: &'d Device,
    id: u32,
    next: Cell<u64>,
}

impl<'d> Vm<'d> {
    /// An empty address space of `device`.
    pub(super) fn new(device: &'d Device) -> Result<Self> {
        let mut create = uapi::VmCreate::default();
        device.ioctl(&mut create)?;
        Ok(Vm { device, id: create.vm_id, next: Cell::new(FIRST_ADDRESS) })
    }

    /// Allocates `size` bytes (rounded up to 64 KiB), binds them at a fresh address and maps them for the CPU.
    pub fn buffer(&self, place: Place, size: u64) -> Result<Buffer<'_>> {
        let device = self.device;
        let size = size.max(1).next_multiple_of(64 << 10);
        let mut create = uapi::GemCreate { size, vm_id: self.id, ..Default::default() };
        (create.placement, create.flags, create.cpu_caching) = match place {
            Place::Vram => (
                1 << device.vram.ok_or(XeError::NoVram)?,
                uapi::GEM_CREATE_FLAG_NEEDS_VISIBLE_VRAM,
                uapi::GEM_CPU_CACHING_WC,
            ),
            Place::System => (1 << device.system, 0, uapi::GEM_CPU_CACHING_WB),
        };
        device.ioctl(&mut create)?;
        // From here on a failure must give the object back.
        let object = GemObject { device, handle: create.handle };

        let mut offset = uapi::GemMmapOffset { handle: object.handle, ..Default::default() };
        device.ioctl(&mut offset)?;
        let mapping = Mapping::new(&device.file, offset.offset, size as usize)
            .map_err(|source| XeError::Os { what: format!("mmap of {size} bytes of {place:?}"), source })?;

        // Large buffers at 2 MiB boundaries, so that the driver can use 2 MiB pages.
        let alignment = if size >= 2 << 20 { 2 << 20 } else { 64 << 10 };
        let address = self.next.get().next_multiple_of(alignment);
        // A hole after each buffer: an overrun hits the scratch page, not the neighbour.
        self.next.set(address + size + (64 << 10));
        self.bind(uapi::VM_BIND_OP_MAP, object.handle, address, size)?;
        Ok(Buffer { vm: self, _object: object, mapping, address, place })
    }

    /// A queue that only `engine` serves.
    pub fn queue(&self, engine: Engine) -> Result<Queue<'_>> {
        let mut create = uapi::ExecQueueCreate {
            width: 1,
            num_placements: 1,
            vm_id: self.id,
            instances: std::ptr::from_ref(&engine.0) as u64,
            ..Default::default()
        };
        self.device.ioctl(&mut create)?;
        Ok(Queue { device: self.device, id: create.exec_queue_id })
    }

    /// The device that this address space belongs to.
    pub fn device(&self) -> &'d Device {
        self.device
    }

    fn bind(&self, op: u32, obj: u32, addr: u64, range: u64) -> Result<()> {
        let fence = self.device.fence()?;
        let sync = fence.signal();
        let bind = uapi::VmBindOp { obj, pat_index: uapi::PAT_INDEX_WB, range, addr, op, ..Default::default() };
        self.device.ioctl(&mut uapi::VmBind {
            vm_id: self.id,
            num_binds: 1,
            bind,
            num_syncs: 1,
            syncs: std::ptr::from_ref(&sync) as u64,
            ..Default::default()
        })?;
        fence.wait(Duration::from_secs(10))
    }
}

impl Drop for Vm<'_> {
    fn drop(&mut self) {
        // Nobody is left to tell; the kernel cleans up at exit.
        let _ = self.device.ioctl(&mut uapi::VmDestroy { vm_id: self.id, ..Default::default() });
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

/// Memory that both the GPU (at [`Buffer::address`]) and the CPU (by [`Buffer::mapping`]) see.
pub struct Buffer<'v> {
    vm: &'v Vm<'v>,
    // Closed after the unbind and the unmap.
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

    /// Which memory it lives in.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The CPU's view.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Writes `batch`, which must have been built for this buffer's address.
    pub fn load(&self, batch: &Batch) -> Result<()> {
        let bytes = 4 * batch.dwords().len() as u64 + PREFETCH;
        if bytes > self.mapping.len() as u64 {
            return Err(XeError::BatchTooLong { batch: bytes, buffer: self.mapping.len() as u64 });
        }
        for (index, dword) in batch.dwords().iter().enumerate() {
            self.mapping.write_u32(4 * index, *dword);
        }
        Ok(())
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let _ = self.vm.bind(uapi::VM_BIND_OP_UNMAP, 0, self.address, self.mapping.len() as u64);
    }
}

/// A submission queue (`drm_xe_exec_queue`).
pub struct Queue<'v> {
    device: &'v Device,
    id: u32,
}

impl<'v> Queue<'v> {
    /// Submits the batch at `address`; the fence signals when it has finished.
    pub fn submit(&self, address: u64) -> Result<Fence<'v>> {
        let fence = self.device.fence()?;
        self.exec(address, fence.signal())?;
        Ok(fence)
    }

    /// Submits the batch at `address`; when it has finished the GPU writes `value` at byte `offset` of `memory`.
    pub fn submit_user_fence(&self, address: u64, memory: &Buffer<'_>, offset: u64, value: u64) -> Result<()> {
        self.exec(
            address,
            uapi::Sync {
                kind: uapi::SYNC_TYPE_USER_FENCE,
                flags: uapi::SYNC_FLAG_SIGNAL,
                addr: memory.address + offset,
                timeline_value: value,
                ..Default::default()
            },
        )
    }

    /// Sleeps in the driver until the quadword at byte `offset` of `memory` is `value`.
    pub fn wait_user_fence(&self, memory: &Buffer<'_>, offset: usize, value: u64, timeout: Duration) -> Result<()> {
        let mut wait = uapi::WaitUserFence {
            addr: memory.mapping.pointer(offset, 8) as u64,
            op: uapi::UFENCE_WAIT_OP_EQ,
            value,
            mask: u64::MAX,
            timeout: timeout.as_nanos() as i64,
            exec_queue_id: self.id,
            ..Default::default()
        };
        match self.device.ioctl(&mut wait) {
            Err(XeError::Ioctl { source, .. }) if source.raw_os_error() == Some(libc::ETIME) => {
                Err(XeError::Timeout(timeout))
            }
            other => other,
        }
    }

    /// Waits for a fence of this queue; a queue that the driver banned meanwhile is an error, although its fences
    /// signal.
    pub fn wait(&self, fence: &Fence<'_>, timeout: Duration) -> Result<()> {
        let start = Instant::now();
        fence.wait(timeout)?;
        let mut property = uapi::ExecQueueGetProperty {
            exec_queue_id: self.id,
            property: uapi::EXEC_QUEUE_GET_PROPERTY_BAN,
            ..Default::default()
        };
        self.device.ioctl(&mut property)?;
        if property.value != 0 { Err(XeError::Banned(start.elapsed())) } else { Ok(()) }
    }

    fn exec(&self, address: u64, sync: uapi::Sync) -> Result<()> {
        self.device.ioctl(&mut uapi::Exec {
            exec_queue_id: self.id,
            num_syncs: 1,
            syncs: std::ptr::from_ref(&sync) as u64,
            address,
            num_batch_buffer: 1,
            ..Default::default()
        })
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        let _ = self.device.ioctl(&mut uapi::ExecQueueDestroy { exec_queue_id: self.id, ..Default::default() });
    }
}

/// A DRM sync object that one submission or bind signals.
pub struct Fence<'d> {
    device: &'d Device,
    handle: u32,
}

impl<'d> Fence<'d> {
    /// A fence that has not signalled.
    pub(super) fn new(device: &'d Device) -> Result<Self> {
        let mut create = uapi::SyncobjCreate::default();
        device.ioctl(&mut create)?;
        Ok(Fence { device, handle: create.handle })
    }

    /// Waits until it has signalled.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        let mut wait = uapi::SyncobjWait {
            handles: std::ptr::from_ref(&self.handle) as u64,
            timeout_nsec: monotonic_after(timeout),
            count_handles: 1,
            ..Default::default()
        };
        match self.device.ioctl(&mut wait) {
            Err(XeError::Ioctl { source, .. }) if source.raw_os_error() == Some(libc::ETIME) => {
                Err(XeError::Timeout(timeout))
            }
            other => other,
        }
    }

    fn signal(&self) -> uapi::Sync {
        uapi::Sync {
            kind: uapi::SYNC_TYPE_SYNCOBJ,
            flags: uapi::SYNC_FLAG_SIGNAL,
            addr: self.handle.into(),
            ..Default::default()
        }
    }
}

impl Drop for Fence<'_> {
    fn drop(&mut self) {
        let _ = self.device.ioctl(&mut uapi::SyncobjDestroy { handle: self.handle, pad: 0 });
    }
}

/// The CLOCK_MONOTONIC time `delay` from now, in nanoseconds.
fn monotonic_after(delay: Duration) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to, and the clock id exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec + delay.as_nanos() as i64
}
