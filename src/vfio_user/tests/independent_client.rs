// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests this server with the `vfio_user` crate's client, an independent implementation.

use arctic_device_model::host;
use vfio_bindings::bindings::vfio::*;
use vfio_user::Client;
use vmm_sys_util::eventfd::EventFd;

use super::*;

#[test]
fn cloud_hypervisor_client_works_with_the_server() {
    let bench = ServerBench::new();
    let mut client = Client::new(&bench.path).unwrap();

    let bar2 = client.region(2).unwrap();
    assert_eq!(bar2.size, 0x4000);
    assert_eq!(bar2.sparse_areas.len(), 1);
    assert_eq!((bar2.sparse_areas[0].offset, bar2.sparse_areas[0].size), (BAR2_AREA.start, 0x2000));
    assert_eq!(bar2.file_offset.as_ref().unwrap().file().metadata().unwrap().len(), 0x4000);
    assert_eq!(client.region(CONFIG_REGION).unwrap().size, 4096);

    client.region_write(0, 0x40, &[1, 2, 3, 4]).unwrap();
    let mut data = [0; 4];
    client.region_read(0, 0x40, &mut data).unwrap();
    assert_eq!(data, [1, 2, 3, 4]);

    assert_eq!(client.get_irq_info(VFIO_PCI_MSI_IRQ_INDEX).unwrap().count, 1);
    let fd = EventFd::new(libc::EFD_NONBLOCK).unwrap();
    let flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    client.set_irqs(VFIO_PCI_MSI_IRQ_INDEX, flags, 0, 1, &[fd.as_raw_fd()]).unwrap();
    bench.vectors.raise_msi(0);
    bench.vectors.wait();
    assert_eq!(fd.read().unwrap(), 1);

    let memory = sealed(0x10000);
    client.dma_map(0, 0x8000_0000, 0x10000, memory.as_raw_fd()).unwrap();
    assert!(bench.memory.view().slice(0x8000_ffff, 1, host::Access::Read).is_some());
    client.dma_unmap(0x8000_0000, 0x10000).unwrap();
    assert_eq!(bench.memory.sections(), 0);

    client.reset().unwrap();
    assert_eq!(bench.device.resets.load(Ordering::Relaxed), 1);
    client.shutdown().unwrap();
    eventually("disconnect", || bench.device.disconnects.load(Ordering::Relaxed) == 1);
    Client::new(&bench.path).expect("a new client after the first");
}
