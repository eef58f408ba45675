// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! An open DRM device of the card, with either driver: ioctls, queries, and the error type of this layer.

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
use crate::number::size;

/// Directory of the DRM nodes.
const DRI: &str = "/dev/dri";

/// An error of a driver operation.
#[derive(Debug, thiserror::Error)]
pub enum DrmError {
    /// No render node belongs to xe or i915.
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
        /// The operation that failed.
        what: String,
        /// The errno.
        source: io::Error,
    },
    /// A query's response is shorter than its count field requires.
    #[error("the response to the {0} query is too short")]
    ShortQuery(&'static str),
    /// The driver reported no local memory region.
    #[error("the card has no local memory")]
    NoVram,
    /// The driver does not support this feature.
    #[error("{0} has no {1}")]
    Unsupported(Driver, &'static str),
    /// No object of the address space contains this address.
    #[error("no buffer is bound at {0:#x}")]
    Unbound(u64),
    /// A batch does not fit into its buffer.
    #[error("a batch of {batch} bytes does not fit into a buffer of {buffer} bytes")]
    BatchTooLong {
        /// Batch size in bytes, including prefetch.
        batch: u64,
        /// Buffer size in bytes.
        buffer: u64,
    },
    /// A fence did not signal within the time limit.
    #[error("not finished after {0:?}")]
    Timeout(Duration),
    /// The driver banned the queue or reset its engine because of a hang or fault.
    #[error("the driver banned the queue after {0:?}")]
    Banned(Duration),
}

pub(super) type Result<T> = std::result::Result<T, DrmError>;

impl DrmError {
    /// Maps ETIME from a kernel wait with `timeout` to [`DrmError::Timeout`].
    pub(super) fn timed(result: Result<()>, timeout: Duration) -> Result<()> {
        match result {
            Err(Self::Ioctl { source, .. }) if source.raw_os_error() == Some(libc::ETIME) => {
                Err(Self::Timeout(timeout))
            }
            other => other,
        }
    }
}

/// One engine as exposed to user space, by class and logical instance. Both drivers' uAPIs use the same numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engine {
    /// `DRM_XE_ENGINE_CLASS_*`, numbered like `I915_ENGINE_CLASS_*`.
    pub class: u16,
    /// Instance number within its class.
    pub instance: u16,
    /// Its GT; 0 if the driver exposes only one.
    pub gt: u16,
}

/// The engine classes in the drivers' order.
const CLASS_NAMES: [&str; 5] = ["rcs", "bcs", "vcs", "vecs", "ccs"];

impl Engine {
    /// Returns the name with the logical instance, e.g. `rcs0` or `vcs1`.
    pub fn name(&self) -> String {
        let class = CLASS_NAMES.get(usize::from(self.class)).copied().unwrap_or("class?");
        format!("{class}{}", self.instance)
    }

    /// Returns whether this is a copy engine.
    pub fn copies(&self) -> bool {
        self.class == 1
    }

    /// Returns whether this engine flushes with PIPE_CONTROL (render and compute) rather than MI_FLUSH_DW.
    pub fn has_pipe_control(&self) -> bool {
        matches!(self.class, 0 | 4)
    }
}

/// An engine's timestamp, and when the driver has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineCycles {
    /// The timestamp in ticks of the GT's reference clock.
    pub cycles: u64,
    /// Its width in bits.
    pub width: u32,
    /// CLOCK_MONOTONIC before the read, in nanoseconds.
    pub cpu_timestamp: u64,
    /// Nanoseconds that the read took.
    pub cpu_delta: u64,
}

/// One memory region of the card, sizes in bytes.
#[derive(Clone, Debug, serde::Serialize)]
pub struct MemRegion {
    /// `sysmem` or `vram`.
    pub class: &'static str,
    /// Bit number in a placement mask.
    pub instance: u16,
    /// Minimum page size.
    pub min_page_size: u32,
    /// Usable size.
    pub total_size: u64,
    /// Size in use at the time of the query.
    pub used: u64,
    /// Size accessible to the CPU (VRAM only).
    pub cpu_visible_size: u64,
}

/// One GT.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Gt {
    /// The GT ID used in engine descriptions.
    pub id: u16,
    /// `main` or `media`.
    pub kind: &'static str,
    /// Rate of the timestamp registers in Hz.
    pub reference_clock: u32,
}

/// The card's configuration.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Config {
    /// PCI device ID.
    pub device_id: u16,
    /// PCI revision.
    pub revision: u8,
    /// `DRM_XE_QUERY_CONFIG_FLAG_*`; i915 has none.
    pub flags: u64,
    /// Minimum alignment of the addresses of objects; a range of addresses up to the next multiple belongs to the object.
    pub min_alignment: u64,
    /// Number of bits of a GPU virtual address.
    pub va_bits: u64,
    /// Whether programs have address spaces of their own.
    pub address_spaces: bool,
}

/// The driver operations that this program uses, implemented for each driver's uAPI.
pub(super) trait DriverApi: Sync {
    /// Returns all engines exposed to user space, in the driver's order.
    fn engines(&self, device: &Device) -> Result<Vec<Engine>>;
    /// The memory regions.
    fn mem_regions(&self, device: &Device) -> Result<Vec<MemRegion>>;
    /// The GTs.
    fn gts(&self, device: &Device) -> Result<Vec<Gt>>;
    /// The configuration.
    fn config(&self, device: &Device) -> Result<Config>;
    /// Version of the GuC submission interface, `major.minor.patch`.
    fn guc_submission_version(&self, device: &Device) -> Result<String>;
    /// Returns an engine's timestamp as read by the driver.
    fn engine_cycles(&self, device: &Device, engine: Engine) -> Result<EngineCycles>;
    /// Creates an empty address space and returns its ID.
    fn create_vm(&self, device: &Device) -> Result<u32>;
    /// Destroys address space `vm`.
    fn destroy_vm(&self, device: &Device, vm: u32) -> Result<()>;
    /// Allocates an object of `size` bytes in `place` for use in `vm` and returns its handle.
    fn create_object(&self, device: &Device, vm: u32, place: Place, size: u64) -> Result<u32>;
    /// Returns the offset in the device file at which the object can be mapped.
    fn mmap_offset(&self, device: &Device, handle: u32) -> Result<u64>;
    /// Binds the object at its address in `vm`.
    fn bind(&self, device: &Device, vm: u32, bound: &Bound) -> Result<()>;
    /// Removes the binding of the object in `vm`.
    fn unbind(&self, device: &Device, vm: u32, bound: &Bound) -> Result<()>;
    /// Creates a queue in `vm` for `engine` and returns its ID.
    fn create_queue(&self, device: &Device, vm: u32, engine: Engine) -> Result<u32>;
    /// Destroys a queue.
    fn destroy_queue(&self, device: &Device, queue: u32) -> Result<()>;
    /// Submits the batch at `address`, which must lie in one of the objects `bound` in the queue's address space. It
    /// runs after the sync object `after` has signalled, and signals `signal`.
    fn exec(
        &self,
        device: &Device,
        queue: u32,
        address: u64,
        bound: &[Bound],
        after: Option<u32>,
        signal: Signal,
    ) -> Result<()>;
    /// Returns whether the driver has banned the queue.
    fn is_banned(&self, device: &Device, queue: u32) -> Result<bool>;
    /// Waits in the driver until the quadword at `pointer` equals `value`.
    fn wait_user_fence(&self, device: &Device, queue: u32, pointer: u64, value: u64, timeout: Duration) -> Result<()>;
}

/// An open render node of one of the card's drivers.
pub struct Device {
    file: File,
    /// The node's path.
    pub path: PathBuf,
    /// The driver of the node.
    pub driver: Driver,
    pub(super) api: &'static dyn DriverApi,
    /// Instance numbers of the memory regions.
    vram: Option<u16>,
    system: u16,
    /// [`Config::min_alignment`].
    alignment: u64,
    /// [`Config::address_spaces`].
    address_spaces: bool,
}

impl Device {
    /// Opens `path`, or the first render node that belongs to xe or i915.
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
            let api: &'static dyn DriverApi = match driver {
                Driver::Xe => &Xe,
                Driver::I915 => &I915,
            };
            let mut device =
                Device { file, path, driver, api, vram: None, system: 0, alignment: 0, address_spaces: true };
            let config = device.config()?;
            (device.alignment, device.address_spaces) = (config.min_alignment, config.address_spaces);
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

    /// Returns all engines exposed to user space, in the driver's order.
    pub fn engines(&self) -> Result<Vec<Engine>> {
        self.api.engines(self)
    }

    /// The memory regions.
    pub fn mem_regions(&self) -> Result<Vec<MemRegion>> {
        self.api.mem_regions(self)
    }

    /// The GTs.
    pub fn gts(&self) -> Result<Vec<Gt>> {
        self.api.gts(self)
    }

    /// The configuration.
    pub fn config(&self) -> Result<Config> {
        self.api.config(self)
    }

    /// Version of the GuC submission interface, `major.minor.patch`.
    pub fn guc_submission_version(&self) -> Result<String> {
        self.api.guc_submission_version(self)
    }

    /// Returns an engine's timestamp as read by the driver. Not available on a VF (EOPNOTSUPP) and with i915.
    pub fn engine_cycles(&self, engine: Engine) -> Result<EngineCycles> {
        self.api.engine_cycles(self, engine)
    }

    /// Creates an address space.
    pub fn vm(&self) -> Result<Vm<'_>> {
        Vm::new(self)
    }

    /// Creates an unsignalled fence.
    pub fn fence(&self) -> Result<Fence<'_>> {
        Fence::new(self)
    }

    /// Minimum alignment of the addresses of objects, in bytes.
    pub(super) fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Returns whether programs have address spaces of their own.
    pub fn address_spaces(&self) -> bool {
        self.address_spaces
    }

    /// Returns the instance number of the memory region for `place`.
    pub(super) fn region(&self, place: Place) -> Result<u16> {
        match place {
            Place::Vram => self.vram.ok_or(DrmError::NoVram),
            Place::System => Ok(self.system),
        }
    }

    /// The device file, for mapping objects.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn ioctl<R: Request>(&self, request: &mut R) -> Result<()> {
        ioctl(&self.file, request).map(drop)
    }

    /// Executes a request of which a success returns a number.
    pub(super) fn ioctl_with_result<R: Request>(&self, request: &mut R) -> Result<i32> {
        ioctl(&self.file, request)
    }
}

fn ioctl<R: Request>(file: &File, request: &mut R) -> Result<i32> {
    loop {
        // SAFETY: `Request` ties the number to a structure of exactly this layout, which outlives the call. Pointers
        // inside it are set only by this module, `vm` and the dialects, to memory that is alive and large enough during
        // the call.
        let status = unsafe { libc::ioctl(file.as_raw_fd(), R::NUMBER as _, std::ptr::from_mut(request)) };
        if status >= 0 {
            return Ok(status);
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
    let length = size(version.name_len).min(name.len());
    Ok(String::from_utf8_lossy(&name[..length]).into_owned())
}

/// Reads the fields of a query's response.
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

    /// Contract K.3, E.5: names use the uAPI's logical instances.
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
