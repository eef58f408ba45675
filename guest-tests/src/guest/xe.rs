//! An open xe device: its ioctls, its queries, and the errors of this layer.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::uapi::{self, EngineClassInstance, Request};
use super::vm::{Fence, Vm};

/// Where the DRM nodes are.
const DRI: &str = "/dev/dri";

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

pub(super) type Result<T> = std::result::Result<T, XeError>;

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

/// An open render node of the xe driver.
pub struct Device {
    pub(super) file: File,
    /// The node's path.
    pub path: PathBuf,
    /// Instance numbers of the memory regions.
    pub(super) vram: Option<u16>,
    pub(super) system: u16,
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
        Vm::new(self)
    }

    /// A new fence, not signalled.
    pub fn fence(&self) -> Result<Fence<'_>> {
        Fence::new(self)
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

    pub(super) fn ioctl<R: Request>(&self, request: &mut R) -> Result<()> {
        ioctl(&self.file, request)
    }
}

fn ioctl<R: Request>(file: &File, request: &mut R) -> Result<()> {
    loop {
        // SAFETY: `Request` ties the number to a structure of this very layout, which outlives the call; pointers
        // inside it are set by this module and `vm` alone, to memory that is alive and large enough across the call.
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
