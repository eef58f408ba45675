//! A small safe layer over the xe driver's uAPI: devices, address spaces, buffers, queues and fences.
//!
//! Everything lives as long as what it was made from, and gives itself back when dropped.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::mapping::Mapping;
use super::uapi::{self, EngineClassInstance, Request};

/// Where the DRM nodes are.
const DRI: &str = "/dev/dri";
/// First GPU virtual address handed out: page 0 stays unmapped, so that a null address is noticed.
const FIRST_ADDRESS: u64 = 16 << 20;
/// Command streamers fetch ahead of the command that they execute (`xe_cs_prefetch_size` in IGT).
const PREFETCH: u64 = 4096;

/// What went wrong between this program and the driver.
#[derive(Debug, thiserror::Error)]
pub enum XeError {
    /// No render node belongs to the xe driver.
    #[error("no render node in {DRI} belongs to the xe driver")]
    NoDevice,
    /// An ioctl failed.
    #[error("{name}: {source}")]
    Ioctl {
        /// The uAPI's name of the request.
        name: &'static str,
        /// The errno.
        source: io::Error,
    },
    /// A file or mapping operation failed.
    #[error("{what}: {source}")]
    Os {
        /// What was tried.
        what: String,
        /// The errno.
        source: io::Error,
    },
    /// A query's answer is shorter than its own count says.
    #[error("the answer to the {0} query is too short")]
    ShortQuery(&'static str),
    /// The driver named no region of this kind.
    #[error("the card has no local memory")]
    NoVram,
    /// A batch does not fit into its buffer.
    #[error("a batch of {batch} bytes does not fit into a buffer of {buffer} bytes")]
    BatchTooLong {
        /// Bytes of the batch, prefetch included.
        batch: u64,
        /// Bytes of the buffer.
        buffer: u64,
    },
    /// A fence did not signal in time.
    #[error("not finished after {0:?}")]
    Timeout(Duration),
    /// The driver banned the queue (it hung or faulted).
    #[error("the driver banned the queue after {0:?}")]
    Banned(Duration),
}

type Result<T> = std::result::Result<T, XeError>;

/// One engine as user space may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine(pub EngineClassInstance);

/// The engine classes in the order of `DRM_XE_ENGINE_CLASS_*`.
const CLASS_NAMES: [&str; 5] = ["rcs", "bcs", "vcs", "vecs", "ccs"];

impl Engine {
    /// `rcs0`, `vcs1`…; the instance is the logical one that the uAPI shows.
    pub fn name(&self) -> String {
        let class = CLASS_NAMES.get(usize::from(self.0.engine_class)).copied().unwrap_or("class?");
        format!("{class}{}", self.0.engine_instance)
    }

    /// Whether this is a copy engine.
    pub fn copies(&self) -> bool {
        self.0.engine_class == 1
    }

    /// Whether this engine flushes with PIPE_CONTROL (render and compute) rather than MI_FLUSH_DW.
    pub fn has_pipe_control(&self) -> bool {
        matches!(self.0.engine_class, 0 | 4)
    }
}

/// One memory region of the card (`drm_xe_mem_region`), sizes in bytes.
#[derive(Clone, Debug, serde::Serialize)]
pub struct MemRegion {
    /// `sysmem` or `vram`.
    pub class: &'static str,
    /// Bit number in a placement mask.
    pub instance: u16,
    /// Smallest page.
    pub min_page_size: u32,
    /// Usable size.
    pub total_size: u64,
    /// In use when asked.
    pub used: u64,
    /// What the CPU can reach (VRAM only).
    pub cpu_visible_size: u64,
}

/// One GT (`drm_xe_gt`).
#[derive(Clone, Debug, serde::Serialize)]
pub struct Gt {
    /// The id that engines name.
    pub id: u16,
    /// `main` or `media`.
    pub kind: &'static str,
    /// Rate of the timestamp registers in Hz.
    pub reference_clock: u32,
}

/// The card's configuration (`drm_xe_query_config`).
#[derive(Clone, Debug, serde::Serialize)]
pub struct Config {
    /// PCI device id.
    pub device_id: u16,
    /// PCI revision.
    pub revision: u8,
    /// `DRM_XE_QUERY_CONFIG_FLAG_*`.
    pub flags: u64,
    /// Smallest alignment of addresses and sizes.
    pub min_alignment: u64,
    /// Bits of a GPU virtual address.
    pub va_bits: u64,
}

/// Which memory a buffer lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The card's local memory, mapped through its BAR.
    Vram,
    /// The guest's own memory.
    System,
}

/// An open render node of the xe driver.
pub struct Device {
    file: File,
    /// The node's path.
    pub path: PathBuf,
    vram: Option<u16>,
    system: u16,
}

impl Device {
    /// Opens `path`, or the first render node whose driver is xe.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let candidates = match path {
            Some(path) => vec![path.to_owned()],
            None => render_nodes()?,
        };
        for path in candidates {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .map_err(|source| XeError::Os { what: format!("open {}", path.display()), source })?;
            if driver_name(&file)? == "xe" {
                let mut device = Device { file, path, vram: None, system: 0 };
                for region in device.mem_regions()? {
                    match region.class {
                        "vram" => device.vram = device.vram.or(Some(region.instance)),
                        _ => device.system = region.instance,
                    }
                }
                return Ok(device);
            }
        }
        Err(XeError::NoDevice)
    }

    /// Every engine that user space may use, in the driver's order.
    pub fn engines(&self) -> Result<Vec<Engine>> {
        let answer = self.query(uapi::query::ENGINES, &[])?;
        let table = Table { name: "engines", bytes: &answer };
        (0..table.u32(0)? as usize)
            .map(|index| {
                let at = 8 + index * 32;
                Ok(Engine(EngineClassInstance {
                    engine_class: table.u16(at)?,
                    engine_instance: table.u16(at + 2)?,
                    gt_id: table.u16(at + 4)?,
                    pad: 0,
                }))
            })
            .collect()
    }

    /// The memory regions.
    pub fn mem_regions(&self) -> Result<Vec<MemRegion>> {
        let answer = self.query(uapi::query::MEM_REGIONS, &[])?;
        let table = Table { name: "memory regions", bytes: &answer };
        (0..table.u32(0)? as usize)
            .map(|index| {
                let at = 8 + index * 88;
                Ok(MemRegion {
                    class: if table.u16(at)? == uapi::MEM_CLASS_VRAM { "vram" } else { "sysmem" },
                    instance: table.u16(at + 2)?,
                    min_page_size: table.u32(at + 4)?,
                    total_size: table.u64(at + 8)?,
                    used: table.u64(at + 16)?,
                    cpu_visible_size: table.u64(at + 24)?,
                })
            })
            .collect()
    }

    /// The GTs.
    pub fn gts(&self) -> Result<Vec<Gt>> {
        let answer = self.query(uapi::query::GT_LIST, &[])?;
        let table = Table { name: "GT list", bytes: &answer };
        (0..table.u32(0)? as usize)
            .map(|index| {
                let at = 8 + index * 96;
                Ok(Gt {
                    id: table.u16(at + 4)?,
                    kind: if table.u16(at)? == 0 { "main" } else { "media" },
                    reference_clock: table.u32(at + 12)?,
                })
            })
            .collect()
    }

    /// The configuration.
    pub fn config(&self) -> Result<Config> {
        let answer = self.query(uapi::query::CONFIG, &[])?;
        let table = Table { name: "configuration", bytes: &answer };
        let info = |index: usize| table.u64(8 + 8 * index);
        let id = info(0)?;
        Ok(Config {
            device_id: id as u16,
            revision: (id >> 16) as u8,
            flags: info(1)?,
            min_alignment: info(2)?,
            va_bits: info(3)?,
        })
    }

    /// Version of the GuC's submission interface, `major.minor.patch`.
    pub fn guc_submission_version(&self) -> Result<String> {
        let answer = self.query(uapi::query::UC_FW_VERSION, &[0; 32])?;
        let table = Table { name: "firmware version", bytes: &answer };
        Ok(format!("{}.{}.{}", table.u32(8)?, table.u32(12)?, table.u32(16)?))
    }

    /// An engine's timestamp as the driver reads it, and its width in bits. Absent on a VF (EOPNOTSUPP).
    pub fn engine_cycles(&self, engine: Engine) -> Result<(u64, u32)> {
        let mut request = [0u8; 40];
        let id = engine.0;
        for (index, half) in [id.engine_class, id.engine_instance, id.gt_id].into_iter().enumerate() {
            request[2 * index..2 * index + 2].copy_from_slice(&half.to_ne_bytes());
        }
        request[8..12].copy_from_slice(&libc::CLOCK_MONOTONIC.to_ne_bytes());
        let answer = self.query(uapi::query::ENGINE_CYCLES, &request)?;
        let table = Table { name: "engine cycles", bytes: &answer };
        Ok((table.u64(16)?, table.u32(12)?))
    }

    /// A new address space.
    pub fn vm(&self) -> Result<Vm<'_>> {
        let mut create = uapi::VmCreate::default();
        self.ioctl(&mut create)?;
        Ok(Vm { device: self, id: create.vm_id, next: Cell::new(FIRST_ADDRESS) })
    }

    /// A new fence, not signalled.
    pub fn fence(&self) -> Result<Fence<'_>> {
        let mut create = uapi::SyncobjCreate::default();
        self.ioctl(&mut create)?;
        Ok(Fence { device: self, handle: create.handle })
    }

    fn query(&self, query: u32, input: &[u8]) -> Result<Vec<u8>> {
        let mut request = uapi::DeviceQuery { query, ..Default::default() };
        self.ioctl(&mut request)?;
        let mut answer = vec![0; (request.size as usize).max(input.len())];
        answer[..input.len()].copy_from_slice(input);
        request.data = answer.as_mut_ptr() as u64;
        self.ioctl(&mut request)?;
        Ok(answer)
    }

    fn ioctl<R: Request>(&self, request: &mut R) -> Result<()> {
        ioctl(&self.file, request)
    }
}

fn ioctl<R: Request>(file: &File, request: &mut R) -> Result<()> {
    loop {
        // SAFETY: `Request` ties the number to a structure of this very layout, which outlives the call; pointers
        // inside it are set by this module alone, to memory that is alive and large enough across the call.
        let status = unsafe { libc::ioctl(file.as_raw_fd(), R::NUMBER as _, std::ptr::from_mut(request)) };
        if status == 0 {
            return Ok(());
        }
        let source = io::Error::last_os_error();
        match source.raw_os_error() {
            Some(libc::EINTR | libc::EAGAIN) => {}
            _ => return Err(XeError::Ioctl { name: R::NAME, source }),
        }
    }
}

fn render_nodes() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(DRI).map_err(|_| XeError::NoDevice)?;
    let mut nodes: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("renderD")))
        .collect();
    nodes.sort();
    Ok(nodes)
}

fn driver_name(file: &File) -> Result<String> {
    let mut name = [0u8; 32];
    let mut version =
        uapi::Version { name: name.as_mut_ptr() as u64, name_len: name.len() as u64, ..Default::default() };
    ioctl(file, &mut version)?;
    let length = (version.name_len as usize).min(name.len());
    Ok(String::from_utf8_lossy(&name[..length]).into_owned())
}

/// A query's answer, read field by field.
struct Table<'a> {
    name: &'static str,
    bytes: &'a [u8],
}

impl Table<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        let field = self.bytes.get(at..at + N).ok_or(XeError::ShortQuery(self.name))?;
        field.try_into().map_err(|_| XeError::ShortQuery(self.name))
    }

    fn u16(&self, at: usize) -> Result<u16> {
        self.bytes(at).map(u16::from_ne_bytes)
    }

    fn u32(&self, at: usize) -> Result<u32> {
        self.bytes(at).map(u32::from_ne_bytes)
    }

    fn u64(&self, at: usize) -> Result<u64> {
        self.bytes(at).map(u64::from_ne_bytes)
    }
}

/// A GPU address space.
pub struct Vm<'d> {
    device: &'d Device,
    id: u32,
    next: Cell<u64>,
}

impl<'d> Vm<'d> {
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

impl Fence<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract K.3, E.5: names as the uAPI's logical instances.
    #[test]
    fn engines_have_the_driver_s_names() {
        let engine = |engine_class, engine_instance| {
            Engine(EngineClassInstance { engine_class, engine_instance, ..Default::default() })
        };
        assert_eq!(engine(0, 0).name(), "rcs0");
        assert_eq!(engine(2, 1).name(), "vcs1");
        assert!(engine(1, 0).copies() && !engine(4, 0).copies());
        assert!(engine(4, 0).has_pipe_control() && !engine(3, 0).has_pipe_control());
    }

    #[test]
    fn a_short_query_answer_is_an_error() {
        let table = Table { name: "engines", bytes: &[1, 0, 0, 0, 0, 0] };
        assert_eq!(table.u32(0).unwrap(), 1);
        assert!(matches!(table.u32(4), Err(XeError::ShortQuery("engines"))));
    }

    #[test]
    fn a_node_that_is_no_drm_device_is_refused() {
        assert!(Device::open(Some(Path::new("/dev/null"))).is_err());
    }
}
