//! An open DRM device of the card's, whichever driver it belongs to: its ioctls, its queries, and the errors of this layer.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::i915::I915;
use super::uapi::{self, Request};
use super::vm::{Bound, Fence, Place, Signal, Vm};
use super::xe::Xe;
use crate::driver::Driver;

/// Where the DRM nodes are.
const DRI: &str = "/dev/dri";

/// What went wrong between this program and the driver.
#[derive(Debug, thiserror::Error)]
pub enum DrmError {
    /// No render node belongs to a driver of the card's.
    #[error("no render node in {DRI} belongs to xe or i915")]
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
    /// The driver has no such thing.
    #[error("{0} has no {1}")]
    Unsupported(Driver, &'static str),
    /// No object of the address space is there.
    #[error("no buffer lies at {0:#x}")]
    Unbound(u64),
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
    /// The driver banned the queue, or reset the engine under it (it hung or faulted).
    #[error("the driver banned the queue after {0:?}")]
    Banned(Duration),
}

pub(super) type Result<T> = std::result::Result<T, DrmError>;

impl DrmError {
    /// `result` of a wait in the kernel that may end by `timeout`.
    pub(super) fn timed(result: Result<()>, timeout: Duration) -> Result<()> {
        match result {
            Err(Self::Ioctl { source, .. }) if source.raw_os_error() == Some(libc::ETIME) => {
                Err(Self::Timeout(timeout))
            }
            other => other,
        }
    }
}

/// One engine as user space may use it, by its class and its logical instance as the uAPIs of both drivers count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engine {
    /// `DRM_XE_ENGINE_CLASS_*`, which has the order of `I915_ENGINE_CLASS_*`.
    pub class: u16,
    /// Number in its class.
    pub instance: u16,
    /// The GT that it is in; 0 where the driver knows only one.
    pub gt: u16,
}

/// The engine classes in the drivers' order.
const CLASS_NAMES: [&str; 5] = ["rcs", "bcs", "vcs", "vecs", "ccs"];

impl Engine {
    /// `rcs0`, `vcs1`…; the instance is the logical one.
    pub fn name(&self) -> String {
        let class = CLASS_NAMES.get(usize::from(self.class)).copied().unwrap_or("class?");
        format!("{class}{}", self.instance)
    }

    /// Whether this is a copy engine.
    pub fn copies(&self) -> bool {
        self.class == 1
    }

    /// Whether this engine flushes with PIPE_CONTROL (render and compute) rather than MI_FLUSH_DW.
    pub fn has_pipe_control(&self) -> bool {
        matches!(self.class, 0 | 4)
    }
}

/// One memory region of the card, sizes in bytes.
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

/// One GT.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Gt {
    /// The id that engines name.
    pub id: u16,
    /// `main` or `media`.
    pub kind: &'static str,
    /// Rate of the timestamp registers in Hz.
    pub reference_clock: u32,
}

/// The card's configuration.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Config {
    /// PCI device id.
    pub device_id: u16,
    /// PCI revision.
    pub revision: u8,
    /// `DRM_XE_QUERY_CONFIG_FLAG_*`; i915 has none.
    pub flags: u64,
    /// Smallest alignment of addresses and sizes.
    pub min_alignment: u64,
    /// Bits of a GPU virtual address.
    pub va_bits: u64,
}

/// What this program asks of a kernel driver, in the words of its uAPI.
pub(super) trait Dialect: Sync {
    /// Every engine that user space may use, in the driver's order.
    fn engines(&self, device: &Device) -> Result<Vec<Engine>>;
    /// The memory regions.
    fn mem_regions(&self, device: &Device) -> Result<Vec<MemRegion>>;
    /// The GTs.
    fn gts(&self, device: &Device) -> Result<Vec<Gt>>;
    /// The configuration.
    fn config(&self, device: &Device) -> Result<Config>;
    /// Version of the GuC's submission interface, `major.minor.patch`.
    fn guc_submission_version(&self, device: &Device) -> Result<String>;
    /// An engine's timestamp as the driver reads it, and its width in bits.
    fn engine_cycles(&self, device: &Device, engine: Engine) -> Result<(u64, u32)>;
    /// Makes an empty address space; its id.
    fn create_vm(&self, device: &Device) -> Result<u32>;
    /// Ends address space `vm`.
    fn destroy_vm(&self, device: &Device, vm: u32) -> Result<()>;
    /// Allocates `size` bytes in `place` for use in `vm`; the object's handle.
    fn create_object(&self, device: &Device, vm: u32, place: Place, size: u64) -> Result<u32>;
    /// Where the object's CPU view is in the device's file.
    fn mmap_offset(&self, device: &Device, handle: u32) -> Result<u64>;
    /// Puts the object at its address in `vm`.
    fn bind(&self, device: &Device, vm: u32, bound: &Bound) -> Result<()>;
    /// Takes it away.
    fn unbind(&self, device: &Device, vm: u32, bound: &Bound) -> Result<()>;
    /// Makes a queue in `vm` that only `engine` serves; its id.
    fn create_queue(&self, device: &Device, vm: u32, engine: Engine) -> Result<u32>;
    /// Ends a queue.
    fn destroy_queue(&self, device: &Device, queue: u32) -> Result<()>;
    /// Submits the batch at `address`, one of the objects `bound` in the queue's address space, to run after the sync
    /// object `after` and to signal `signal`.
    fn exec(
        &self,
        device: &Device,
        queue: u32,
        address: u64,
        bound: &[Bound],
        after: Option<u32>,
        signal: Signal,
    ) -> Result<()>;
    /// Whether the driver has given the queue up.
    fn is_banned(&self, device: &Device, queue: u32) -> Result<bool>;
    /// Sleeps in the driver until the quadword at `pointer` is `value`.
    fn wait_user_fence(&self, device: &Device, queue: u32, pointer: u64, value: u64, timeout: Duration) -> Result<()>;
}

/// An open render node of one of the card's drivers.
pub struct Device {
    file: File,
    /// The node's path.
    pub path: PathBuf,
    /// Whose it is.
    pub driver: Driver,
    pub(super) dialect: &'static dyn Dialect,
    /// Instance numbers of the memory regions.
    vram: Option<u16>,
    system: u16,
}

impl Device {
    /// Opens `path`, or the first render node whose driver is one of the card's.
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
                .map_err(|source| DrmError::Os { what: format!("open {}", path.display()), source })?;
            let Some(driver) = Driver::named(&driver_name(&file)?) else { continue };
            let dialect: &'static dyn Dialect = match driver {
                Driver::Xe => &Xe,
                Driver::I915 => &I915,
            };
            let mut device = Device { file, path, driver, dialect, vram: None, system: 0 };
            for region in device.mem_regions()? {
                match region.class {
                    "vram" => device.vram = device.vram.or(Some(region.instance)),
                    _ => device.system = region.instance,
                }
            }
            return Ok(device);
        }
        Err(DrmError::NoDevice)
    }

    /// Every engine that user space may use, in the driver's order.
    pub fn engines(&self) -> Result<Vec<Engine>> {
        self.dialect.engines(self)
    }

    /// The memory regions.
    pub fn mem_regions(&self) -> Result<Vec<MemRegion>> {
        self.dialect.mem_regions(self)
    }

    /// The GTs.
    pub fn gts(&self) -> Result<Vec<Gt>> {
        self.dialect.gts(self)
    }

    /// The configuration.
    pub fn config(&self) -> Result<Config> {
        self.dialect.config(self)
    }

    /// Version of the GuC's submission interface, `major.minor.patch`.
    pub fn guc_submission_version(&self) -> Result<String> {
        self.dialect.guc_submission_version(self)
    }

    /// An engine's timestamp as the driver reads it, and its width in bits. Absent on a VF (EOPNOTSUPP) and with i915.
    pub fn engine_cycles(&self, engine: Engine) -> Result<(u64, u32)> {
        self.dialect.engine_cycles(self, engine)
    }

    /// A new address space.
    pub fn vm(&self) -> Result<Vm<'_>> {
        Vm::new(self)
    }

    /// A new fence, not signalled.
    pub fn fence(&self) -> Result<Fence<'_>> {
        Fence::new(self)
    }

    /// The instance number of the region that `place` is.
    pub(super) fn region(&self, place: Place) -> Result<u16> {
        match place {
            Place::Vram => self.vram.ok_or(DrmError::NoVram),
            Place::System => Ok(self.system),
        }
    }

    /// The file to map objects from.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn ioctl<R: Request>(&self, request: &mut R) -> Result<()> {
        ioctl(&self.file, request)
    }
}

fn ioctl<R: Request>(file: &File, request: &mut R) -> Result<()> {
    loop {
        // SAFETY: `Request` ties the number to a structure of this very layout, which outlives the call; pointers
        // inside it are set by this module, `vm` and the dialects alone, to memory that is alive and large enough across the call.
        let status = unsafe { libc::ioctl(file.as_raw_fd(), R::NUMBER as _, std::ptr::from_mut(request)) };
        if status == 0 {
            return Ok(());
        }
        let source = io::Error::last_os_error();
        match source.raw_os_error() {
            Some(libc::EINTR | libc::EAGAIN) => {}
            _ => return Err(DrmError::Ioctl { name: R::NAME, source }),
        }
    }
}

fn render_nodes() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(DRI).map_err(|_| DrmError::NoDevice)?;
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
pub(super) struct Table<'a> {
    pub name: &'static str,
    pub bytes: &'a [u8],
}

impl Table<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        let field = self.bytes.get(at..at + N).ok_or(DrmError::ShortQuery(self.name))?;
        field.try_into().map_err(|_| DrmError::ShortQuery(self.name))
    }

    pub fn u16(&self, at: usize) -> Result<u16> {
        self.bytes(at).map(u16::from_ne_bytes)
    }

    pub fn u32(&self, at: usize) -> Result<u32> {
        self.bytes(at).map(u32::from_ne_bytes)
    }

    pub fn u64(&self, at: usize) -> Result<u64> {
        self.bytes(at).map(u64::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract K.3, E.5: names as the uAPI's logical instances.
    #[test]
    fn engines_have_the_driver_s_names() {
        let engine = |class, instance| Engine { class, instance, gt: 0 };
        assert_eq!(engine(0, 0).name(), "rcs0");
        assert_eq!(engine(2, 1).name(), "vcs1");
        assert!(engine(1, 0).copies() && !engine(4, 0).copies());
        assert!(engine(4, 0).has_pipe_control() && !engine(3, 0).has_pipe_control());
    }

    #[test]
    fn a_short_query_answer_is_an_error() {
        let table = Table { name: "engines", bytes: &[1, 0, 0, 0, 0, 0] };
        assert_eq!(table.u32(0).unwrap(), 1);
        assert!(matches!(table.u32(4), Err(DrmError::ShortQuery("engines"))));
    }

    #[test]
    fn a_node_that_is_no_drm_device_is_refused() {
        assert!(Device::open(Some(Path::new("/dev/null"))).is_err());
    }
}
