// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A PCI function opened through vfio-pci by group and container, as a VMM opens it. The structures have the layout of
//! `linux/vfio.h`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::mapping::Mapping;
use crate::number::size;

/// Index of the regions of a PCI device.
pub(super) const BAR0: u32 = 0;
pub(super) const BAR2: u32 = 2;
const CONFIG: u32 = 7;
/// Index of MSI among the interrupts of a PCI device.
const MSI: u32 = 1;

/// `VFIO_TYPE1v2_IOMMU`.
const TYPE1V2: libc::c_ulong = 3;
const GROUP_VIABLE: u32 = 1;
const DEVICE_RESET: u32 = 1;
const DMA_READ_WRITE: u32 = 3;
/// `VFIO_IRQ_SET_DATA_NONE`, `_DATA_EVENTFD` and `_ACTION_TRIGGER`.
const IRQ_NONE: u32 = 1;
const IRQ_EVENTFD: u32 = 4;
const IRQ_TRIGGER: u32 = 1 << 5;

/// Command register of PCI configuration space; memory space and bus mastering.
const COMMAND: u64 = 4;
const MEMORY_AND_MASTER: u16 = 6;

/// `_IO(';', 100 + n)`.
const fn request(n: u64) -> u64 {
    (b';' as u64) << 8 | (100 + n)
}

#[repr(C)]
#[derive(Default)]
struct GroupStatus {
    argsz: u32,
    flags: u32,
}

#[repr(C)]
struct DmaMap {
    argsz: u32,
    flags: u32,
    vaddr: u64,
    iova: u64,
    size: u64,
}

#[repr(C)]
struct DmaUnmap {
    argsz: u32,
    flags: u32,
    iova: u64,
    size: u64,
}

#[repr(C)]
#[derive(Default)]
struct DeviceInfo {
    argsz: u32,
    flags: u32,
    regions: u32,
    irqs: u32,
    cap_offset: u32,
    pad: u32,
}

/// `vfio_region_info`: size and offset in the device file, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Region {
    argsz: u32,
    pub flags: u32,
    index: u32,
    cap_offset: u32,
    pub size: u64,
    pub offset: u64,
}

#[repr(C)]
struct IrqSet {
    argsz: u32,
    flags: u32,
    index: u32,
    start: u32,
    count: u32,
    eventfd: i32,
}

/// `argsz` of a structure.
fn length<T>() -> u32 {
    crate::number::count(std::mem::size_of::<T>())
}

/// Calls an ioctl that takes a structure or ignores its argument.
fn ioctl<T>(file: &File, n: u64, argument: &mut T) -> io::Result<i32> {
    // SAFETY: each caller passes the structure that the uAPI declares for `n`, which starts with its size if the kernel
    // writes to it. Memory that it refers to is alive during the call.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), request(n) as _, std::ptr::from_mut(argument)) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

/// Calls an ioctl with an integer argument.
fn ioctl_value(file: &File, n: u64, value: libc::c_ulong) -> io::Result<i32> {
    // SAFETY: the kernel does not interpret the argument of this ioctl as a pointer.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), request(n) as _, value) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

/// An open function with its container. Dropping it closes the function, which the kernel then resets.
pub(super) struct Function {
    // Fields are dropped in this order: the kernel detaches the group when its last device is closed.
    device: File,
    _group: File,
    container: File,
}

impl Function {
    /// Opens the function at `address`, bound to vfio-pci, in IOMMU group `group`. The kernel resets it before the call
    /// returns.
    pub fn open(address: &str, group: &str) -> Result<Self> {
        let open = |path: &Path| {
            let file = OpenOptions::new().read(true).write(true).open(path);
            file.with_context(|| format!("{} cannot be opened", path.display()))
        };
        let container = open(Path::new("/dev/vfio/vfio"))?;
        let group_file = open(&Path::new("/dev/vfio").join(group))?;
        let mut status = GroupStatus { argsz: length::<GroupStatus>(), ..Default::default() };
        ioctl(&group_file, 3, &mut status).context("VFIO_GROUP_GET_STATUS")?;
        ensure!(status.flags & GROUP_VIABLE != 0, "group {group} is not viable: another driver has one of its devices");
        ioctl(&group_file, 4, &mut container.as_raw_fd()).context("VFIO_GROUP_SET_CONTAINER")?;
        ioctl_value(&container, 2, TYPE1V2).context("VFIO_SET_IOMMU with VFIO_TYPE1v2_IOMMU")?;
        let name = std::ffi::CString::new(address)?;
        // SAFETY: the argument is a terminated string that outlives the call.
        let fd = unsafe { libc::ioctl(group_file.as_raw_fd(), request(6) as _, name.as_ptr()) };
        ensure!(fd >= 0, "VFIO_GROUP_GET_DEVICE_FD: {}", io::Error::last_os_error());
        // SAFETY: the kernel has returned a new descriptor, which nothing else owns.
        let device = unsafe { File::from_raw_fd(fd) };
        Ok(Self { device, _group: group_file, container })
    }

    /// Maps `memory` at `iova` for the function's DMA.
    pub fn map_dma(&self, iova: u64, memory: &Mapping) -> Result<()> {
        let vaddr = memory.pointer(0, memory.len()) as u64;
        let bytes = memory.len() as u64;
        let mut map = DmaMap { argsz: length::<DmaMap>(), flags: DMA_READ_WRITE, vaddr, iova, size: bytes };
        ioctl(&self.container, 13, &mut map).map(drop).context("VFIO_IOMMU_MAP_DMA")
    }

    /// Removes the mapping of `bytes` at `iova`.
    pub fn unmap_dma(&self, iova: u64, bytes: usize) -> Result<()> {
        let mut unmap = DmaUnmap { argsz: length::<DmaUnmap>(), flags: 0, iova, size: bytes as u64 };
        ioctl(&self.container, 14, &mut unmap).context("VFIO_IOMMU_UNMAP_DMA")?;
        ensure!(unmap.size == bytes as u64, "VFIO_IOMMU_UNMAP_DMA has removed {} of {bytes} bytes", unmap.size);
        Ok(())
    }

    /// Fails unless the device can be reset and has regions and interrupts.
    pub fn check_info(&self) -> Result<()> {
        let mut info = DeviceInfo { argsz: length::<DeviceInfo>(), ..Default::default() };
        ioctl(&self.device, 7, &mut info).context("VFIO_DEVICE_GET_INFO")?;
        ensure!(info.flags & DEVICE_RESET != 0, "vfio cannot reset the function");
        ensure!(info.regions > CONFIG && info.irqs > MSI, "{} regions, {} interrupts", info.regions, info.irqs);
        Ok(())
    }

    /// Returns the region with index `index`.
    pub fn region(&self, index: u32) -> Result<Region> {
        let mut region = Region { argsz: length::<Region>(), index, ..Default::default() };
        ioctl(&self.device, 8, &mut region).with_context(|| format!("VFIO_DEVICE_GET_REGION_INFO {index}"))?;
        Ok(region)
    }

    /// Maps the first `bytes` of region `index`.
    pub fn map(&self, index: u32, bytes: usize) -> Result<Mapping> {
        let region = self.region(index)?;
        ensure!(size(region.size) >= bytes, "region {index} has {} bytes, fewer than {bytes}", region.size);
        Mapping::new(&self.device, region.offset, bytes).with_context(|| format!("region {index} cannot be mapped"))
    }

    /// Reads the dword at `offset` of region `index` by a system call.
    pub fn read_u32(&self, index: u32, offset: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        let at = self.region(index)?.offset + offset;
        self.device.read_exact_at(&mut bytes, at).with_context(|| format!("read {offset:#x} of region {index}"))?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Returns vendor and device ID, the vendor in the low half.
    pub fn id(&self) -> Result<u32> {
        self.read_u32(CONFIG, 0)
    }

    /// Enables memory space and bus mastering.
    pub fn enable(&self) -> Result<()> {
        let at = self.region(CONFIG)?.offset + COMMAND;
        self.device.write_all_at(&MEMORY_AND_MASTER.to_le_bytes(), at).context("write the command register")
    }

    /// Resets the function by FLR. Returns when the kernel has finished.
    pub fn reset(&self) -> Result<()> {
        ioctl_value(&self.device, 11, 0).map(drop).context("VFIO_DEVICE_RESET")
    }

    /// Connects MSI 0 to an event counter, triggers it by vfio and reads the counter. Returns whether it is 1.
    pub fn msi_loopback(&self) -> Result<bool> {
        // SAFETY: eventfd takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        ensure!(fd >= 0, "eventfd: {}", io::Error::last_os_error());
        // SAFETY: the kernel has returned a new descriptor, which nothing else owns.
        let counter = unsafe { File::from_raw_fd(fd) };
        let argsz = length::<IrqSet>();
        let flags = IRQ_EVENTFD | IRQ_TRIGGER;
        let mut set = IrqSet { argsz, flags, index: MSI, start: 0, count: 1, eventfd: fd };
        ioctl(&self.device, 10, &mut set).context("VFIO_DEVICE_SET_IRQS with an event counter")?;
        // Without data, the structure ends before the descriptor.
        (set.argsz, set.flags) = (argsz - 4, IRQ_NONE | IRQ_TRIGGER);
        ioctl(&self.device, 10, &mut set).context("VFIO_DEVICE_SET_IRQS as a trigger")?;
        let mut count = [0; 8];
        io::Read::read_exact(&mut &counter, &mut count).context("no interrupt has arrived")?;
        Ok(u64::from_ne_bytes(count) == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers and sizes of `linux/vfio.h`.
    #[test]
    fn requests_and_structures_are_those_of_the_header() {
        assert_eq!((request(3), request(10), request(14)), (0x3b67, 0x3b6e, 0x3b72));
        let sizes = [
            length::<GroupStatus>(),
            length::<DmaMap>(),
            length::<DmaUnmap>(),
            length::<DeviceInfo>(),
            length::<Region>(),
            length::<IrqSet>(),
        ];
        assert_eq!(sizes, [8, 32, 24, 24, 32, 24]);
    }

    #[test]
    fn a_group_that_does_not_exist_is_named() {
        let error = Function::open("0000:00:01.1", "no-such-group").err().unwrap();
        let text = format!("{error:#}");
        assert!(text.contains("/dev/vfio/") && text.contains("cannot be opened"), "{text}");
    }
}
