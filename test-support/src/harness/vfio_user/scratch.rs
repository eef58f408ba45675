// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the harness of the vfio-user server serves and sends: a device that stores what is written, and files.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use arctic_gpu::vfio_user::{CONFIG_REGION, Device};
use arctic_gpu::{Bar, BarKind, BarMapping, PciDevice};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::bytes::Bytes;

/// Size in bytes of the files that may be mapped.
pub const FILE: u64 = 0x4000;

const MEMORY: BarKind = BarKind::Memory64 { prefetchable: true };

/// A device with a trapped BAR 0 of 4 KiB, a BAR 2 with a mappable file, and a configuration space. All of them store
/// the written data.
pub struct Scratch {
    bars: [Bar; 2],
    pub file: File,
    pub bytes: Mutex<BTreeMap<u32, Vec<u8>>>,
    pub resets: Mutex<u32>,
    pub disconnects: Mutex<u32>,
}

impl Scratch {
    pub fn new(fill: &[u8; 8]) -> Scratch {
        let file = memory_file(FILE, SealFlags::SHRINK);
        let regions = [(0, 0x1000), (2, FILE as usize), (CONFIG_REGION, 0x1000)];
        Scratch {
            bars: [Bar { index: 0, size: 0x1000, kind: MEMORY }, Bar { index: 2, size: FILE, kind: MEMORY }],
            file,
            bytes: Mutex::new(regions.map(|(region, size)| (region, fill.repeat(size / 8))).into()),
            resets: Mutex::new(0),
            disconnects: Mutex::new(0),
        }
    }

    fn read(&self, region: u32, offset: u64, data: &mut [u8]) {
        let from = offset as usize;
        data.copy_from_slice(&self.bytes.lock().unwrap()[&region][from..from + data.len()]);
    }

    fn write(&self, region: u32, offset: u64, data: &[u8]) {
        let from = offset as usize;
        self.bytes.lock().unwrap().get_mut(&region).unwrap()[from..from + data.len()].copy_from_slice(data);
    }
}

impl PciDevice for Scratch {
    fn number(&self) -> arctic_gpu::Function {
        arctic_gpu::Function::PF
    }

    fn bus_master(&self) -> bool {
        true
    }

    fn read_config(&self, offset: u64, data: &mut [u8]) {
        self.read(CONFIG_REGION, offset, data);
    }

    fn write_config(&self, offset: u64, data: &[u8]) {
        self.write(CONFIG_REGION, offset, data);
    }

    fn bars(&self) -> &[Bar] {
        &self.bars
    }

    fn read_bar(&self, bar: u8, offset: u64, data: &mut [u8]) {
        assert!(matches!(data.len(), 1 | 2 | 4 | 8), "access of {} bytes", data.len());
        self.read(bar.into(), offset, data);
    }

    fn write_bar(&self, bar: u8, offset: u64, data: &[u8]) {
        assert!(matches!(data.len(), 1 | 2 | 4 | 8), "access of {} bytes", data.len());
        self.write(bar.into(), offset, data);
    }

    fn mappings(&self, bar: u8) -> Vec<BarMapping<'_>> {
        let mapping = BarMapping { offset: 0x1000, len: 0x2000, file: &self.file, file_offset: 0x1000 };
        if bar == 2 { vec![mapping] } else { Vec::new() }
    }

    fn reset(&self) {
        *self.resets.lock().unwrap() += 1;
    }
}

impl Device for Scratch {
    fn pci(&self) -> &dyn PciDevice {
        self
    }

    fn admit(&self) -> Result<(), String> {
        Ok(())
    }

    fn disconnected(&self) {
        *self.disconnects.lock().unwrap() += 1;
    }
}

/// Returns a memfd that allows sealing, with the initial `seals`.
pub fn memory_file(bytes: u64, seals: SealFlags) -> File {
    let file = File::from(memfd_create("guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap());
    file.set_len(bytes).unwrap();
    seal(&file, seals);
    file
}

/// Adds seals; errors are ignored.
pub fn seal(file: &File, seals: SealFlags) {
    let _ = fcntl_add_seals(file, seals);
}

/// File descriptors that a client can send with a message, created on first use.
#[derive(Default)]
pub struct Descriptors([OnceCell<OwnedFd>; 9]);

impl Descriptors {
    /// The first `FILES` descriptors are memory files.
    pub const FILES: usize = 6;

    pub fn get(&self, n: usize) -> &OwnedFd {
        const SHRINK: SealFlags = SealFlags::SHRINK;
        let make = || match n {
            0 => memory_file(FILE, SHRINK).into(),
            1 => memory_file(FILE, SHRINK | SealFlags::GROW | SealFlags::SEAL).into(),
            2 => memory_file(FILE, SealFlags::empty()).into(),
            3 => memory_file(FILE, SealFlags::GROW).into(),
            4 => memory_file(0x800, SealFlags::empty()).into(),
            5 => memory_file(FILE, SealFlags::WRITE | SHRINK).into(),
            6 => File::open("/dev/null").unwrap().into(),
            7 => eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap(),
            _ => std::io::pipe().unwrap().0.into(),
        };
        self.0[n].get_or_init(make)
    }

    pub fn some(&self, bytes: &mut Bytes<'_>) -> Vec<RawFd> {
        let count = [0, 0, 1, 1, 1, 1, 2, 3][usize::from(bytes.byte() & 7)];
        (0..count).map(|_| self.get(usize::from(bytes.byte()) % self.0.len()).as_raw_fd()).collect()
    }
}
