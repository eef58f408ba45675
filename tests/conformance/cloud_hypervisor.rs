// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Repeats Cloud Hypervisor's accesses to a vfio-user device before and while a guest uses it, in the same order and
//! with its client crate (from its `pci/src/vfio.rs` and `pci/src/vfio_user.rs`; `docs/cloud-hypervisor.md` names the
//! commit). No guest runs in this test.

use std::fs::File;
use std::os::fd::AsRawFd;

use arctic_gpu::vfio_user::ecam::Ecam;
use arctic_gpu::vfio_user::{ServedCard, Server, Settings};
use arctic_gpu::{Topology, card_file};
use arctic_test_support::client::MEMORY_AND_BUS_MASTER;
use vfio_bindings::bindings::vfio::*;
use vfio_user::Client;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};
use vmm_sys_util::eventfd::EventFd;
use vmm_sys_util::tempdir::TempDir;
use vmm_sys_util::tempfile::TempFile;

const CONFIG: u32 = VFIO_PCI_CONFIG_REGION_INDEX;
/// Offset of the Command register in configuration space.
const COMMAND: u32 = 4;
const GUC_HOST_INTERRUPT: u64 = 0x19_01f0;
const MAILBOX: u64 = 0x19_0240;

/// Cloud Hypervisor's `Vfio`: accesses configuration space by doublewords and ignores errors.
struct Wrapper(Client);

impl Wrapper {
    fn read_config_dword(&mut self, offset: u32) -> u32 {
        let mut data = [0; 4];
        self.0.region_read(CONFIG, offset.into(), &mut data).unwrap();
        u32::from_le_bytes(data)
    }

    fn write_config(&mut self, offset: u32, data: &[u8]) {
        self.0.region_write(CONFIG, offset.into(), data).unwrap();
    }

    /// Returns the size of a BAR in bytes, determined as by `allocate_bars`. Does not restore the register.
    fn size_of(&mut self, register: u32) -> u64 {
        let flags = self.read_config_dword(register);
        self.write_config(register, &[0xff; 4]);
        let mut size = u64::from(self.read_config_dword(register));
        if flags & 4 != 0 {
            self.write_config(register + 4, &[0xff; 4]);
            size |= u64::from(self.read_config_dword(register + 4)) << 32;
        } else if size != 0 {
            size |= 0xffff_ffff_0000_0000;
        }
        match size & !0xf {
            0 => 0,
            size => !size + 1,
        }
    }

    fn enable_msi(&mut self, event: &EventFd) {
        let flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
        self.0.set_irqs(VFIO_PCI_MSI_IRQ_INDEX, flags, 0, 1, &[event.as_raw_fd()]).unwrap();
    }

    fn disable_msi(&mut self) {
        let flags = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER;
        self.0.set_irqs(VFIO_PCI_MSI_IRQ_INDEX, flags, 0, 0, &[]).unwrap();
    }

    /// Returns the GuC's response to VF_RESET (contract C.1).
    fn reset_by_mailbox(&mut self) -> u32 {
        self.0.region_write(0, MAILBOX, &0x5507_u32.to_le_bytes()).unwrap();
        self.0.region_write(0, GUC_HOST_INTERRUPT, &[1, 0, 0, 0]).unwrap();
        let mut answer = [0; 4];
        arctic_test_support::poll::eventually("the GuC's response", || {
            self.0.region_read(0, MAILBOX, &mut answer).unwrap();
            answer[3] >> 7 == 1
        });
        u32::from_le_bytes(answer)
    }

    /// Returns the IDs of all standard and of all extended capabilities.
    fn parse_capabilities(&mut self) -> (Vec<u8>, Vec<u16>) {
        let mut standard = Vec::new();
        let mut at = self.read_config_dword(0x34) & 0xff;
        while at != 0 {
            let header = self.read_config_dword(at & !3);
            standard.push(header as u8);
            at = header >> 8 & 0xff;
        }
        let mut extended = Vec::new();
        let mut at = 0x100;
        while at != 0 {
            let header = self.read_config_dword(at);
            extended.push(header as u16);
            at = header >> 20;
        }
        (standard, extended)
    }
}

/// A device is added to a VM, which boots, enables and disables MSI, and exits. Three VMs run this sequence in turn.
pub fn a_device_is_added_and_taken_away() {
    let profile = card_file::load("small").unwrap();
    let card = ServedCard::new(profile, 2, Topology::Provisioned, Ecam::default()).unwrap();
    let dir = TempDir::new().unwrap();
    let path = dir.as_path().join("vf1.sock");
    let function = card.functions().remove(0).function;
    let _server = Server::start(&path, function, Settings::default()).unwrap();
    for machine in 0..3 {
        let mut client = Client::new(&path);
        arctic_test_support::poll::eventually("the next client connects", || {
            if client.is_err() {
                client = Client::new(&path);
            }
            client.is_ok()
        });
        let mut device = Wrapper(client.unwrap());
        assert!(!device.0.resettable(), "the client inverts this flag, so it sends no reset");
        let counts: Vec<_> = (0..3).map(|index| device.0.get_irq_info(index).unwrap().count).collect();
        assert_eq!(counts, [0, 1, 0], "INTx, MSI, MSI-X");
        let (standard, extended) = device.parse_capabilities();
        assert_eq!((standard, extended), (vec![0x10, 0x05], vec![0x0e]));
        let sizes: Vec<_> = [0x10, 0x18, 0x20, 0x24, 0x30].map(|register| device.size_of(register)).into();
        assert_eq!(sizes, [16 << 20, 512 << 20, 0, 0, 0]);
        for (bar, size) in [(0, 16 << 20), (2, 512 << 20)] {
            let region = device.0.region(bar).unwrap();
            assert_eq!(region.size, size, "the BAR size differs from the region size");
            assert_ne!(region.flags & VFIO_REGION_INFO_FLAG_MMAP, 0);
            assert!(region.file_offset.is_some());
        }

        // The guest driver's sequence: enable memory space and bus mastering, then MSI. The VMM sets the eventfd before
        // MSI Enable.
        device.write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
        let event = EventFd::new(libc::EFD_NONBLOCK).unwrap();
        for on in [true, false, true] {
            match on {
                true => device.enable_msi(&event),
                false => device.disable_msi(),
            }
            device.write_config(0xae, &[u8::from(on), 0]);
            assert_eq!(device.read_config_dword(0xac) >> 16 & 1, u32::from(on), "machine {machine}");
            assert_eq!(device.reset_by_mailbox(), 0xf000_0000);
        }
        device.0.shutdown().unwrap();
    }
}

/// What ends a VF in another guest.
#[derive(Clone, Copy, Debug)]
enum End {
    VfEnableCleared,
    PfReset,
    PfClientDies,
}

/// A VF in a guest of its own ceases to exist because of the PF's guest. Its VMM stays connected: reads return all ones,
/// writes are dropped, requests of the VMM succeed, and the mapped GGTT window shows no other data. When the VF exists
/// again and is reset, it works.
pub fn disabled_vf_keeps_its_connection() {
    const VF_CAP: u64 = 0x19_01f8;
    const GGTT_WINDOW: u64 = 8 << 20;
    let card = ServedCard::new(card_file::load("small").unwrap(), 2, Topology::Split, Ecam::default()).unwrap();
    let dir = TempDir::new().unwrap();
    let _servers: Vec<_> = card
        .functions()
        .into_iter()
        .map(|served| {
            let path = dir.as_path().join(format!("{}.sock", served.name));
            Server::start(&path, served.function, Settings::default()).unwrap()
        })
        .collect();
    let connect = |name: &str| {
        let path = dir.as_path().join(name);
        let mut client = Client::new(&path);
        arctic_test_support::poll::eventually("a connection", || {
            if client.is_err() {
                client = Client::new(&path);
            }
            client.is_ok()
        });
        Wrapper(client.unwrap())
    };
    let enable = |pf: &mut Wrapper| {
        pf.write_config(0x330, &[1, 0]);
        pf.write_config(0x328, &[9, 0]);
    };
    let register = |vf: &mut Wrapper, offset: u64| {
        let mut data = [0; 4];
        vf.0.region_read(0, offset, &mut data).unwrap();
        u32::from_le_bytes(data)
    };
    let mut pf = connect("pf.sock");
    enable(&mut pf);
    let mut vf = connect("vf1.sock");
    let ram = tempfile();
    let event = EventFd::new(libc::EFD_NONBLOCK).unwrap();
    let window = {
        let region = vf.0.region(0).unwrap();
        let file = region.file_offset.as_ref().expect("a mapping of the GGTT window");
        let place = FileOffset::new(file.file().try_clone().unwrap(), file.start() + GGTT_WINDOW);
        MmapRegion::<()>::from_file(place, 4096).unwrap()
    };
    for end in [End::VfEnableCleared, End::PfReset, End::PfClientDies] {
        vf.0.dma_map(0, 0x10_0000, 0x1_0000, ram.as_raw_fd()).unwrap();
        vf.write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
        assert_eq!(register(&mut vf, VF_CAP), 1, "{end:?}");
        vf.0.region_write(0, MAILBOX + 4, &[7; 4]).unwrap();
        window.as_volatile_slice().write_slice(&[7; 8], 0).unwrap();

        match end {
            End::VfEnableCleared => pf.write_config(0x328, &[0, 0]),
            End::PfReset => pf.0.reset().unwrap(),
            End::PfClientDies => {
                pf.0.shutdown().unwrap();
                pf = connect("pf.sock");
            }
        }
        arctic_test_support::poll::eventually("the VF is gone", || vf.read_config_dword(0) == u32::MAX);
        assert_eq!([4, 0x10, 0x34, 0x100].map(|offset| vf.read_config_dword(offset)), [u32::MAX; 4], "{end:?}");
        vf.write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
        vf.0.region_write(0, MAILBOX + 4, &[9; 4]).unwrap();
        assert_eq!((register(&mut vf, VF_CAP), register(&mut vf, MAILBOX + 4)), (u32::MAX, u32::MAX), "{end:?}");
        vf.0.dma_map(0, 0x20_0000, 0x1_0000, ram.as_raw_fd()).unwrap();
        vf.enable_msi(&event);
        vf.disable_msi();
        assert_eq!(vf.0.get_irq_info(VFIO_PCI_MSI_IRQ_INDEX).unwrap().count, 1);
        vf.0.reset().unwrap();
        vf.0.dma_unmap(0x10_0000, 0x1_0000).unwrap();
        vf.0.dma_unmap(0x20_0000, 0x1_0000).unwrap();
        assert_eq!(vf.read_config_dword(0), u32::MAX, "{end:?}");

        enable(&mut pf);
        vf.0.reset().unwrap();
        assert_eq!((vf.read_config_dword(0), vf.read_config_dword(4) & 7), (0x56c0_8086, 0), "{end:?}");
        vf.write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
        assert_eq!((register(&mut vf, VF_CAP), register(&mut vf, MAILBOX + 4)), (1, 0), "{end:?}");
        let mut entry = [1; 8];
        window.as_volatile_slice().read_slice(&mut entry, 0).unwrap();
        assert_eq!(entry, [0; 8], "{end:?}: the entries that the VF wrote before");
    }
}

/// Guest memory.
fn tempfile() -> File {
    let file = TempFile::new().unwrap().into_file();
    file.set_len(0x1_0000).unwrap();
    file
}
