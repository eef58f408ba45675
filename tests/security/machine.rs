// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A machine that records which VFs the card enables and disables.

use std::io;
use std::sync::{Arc, Mutex};

use arctic_gpu::gpu::Model;
use arctic_gpu::pci::Dma;
use arctic_gpu::{CardFunction, Function, Machine, MsiSink, PciDevice, Topology, VirtualCard, card_file};
pub use arctic_test_support::client::{COMMAND, MEMORY_AND_BUS_MASTER};
use arctic_test_support::null_machine::NullMachine;

pub const CONTROL: u64 = 0x328;
pub const TOTAL_VFS: u64 = 0x32e;
pub const NUM_VFS: u64 = 0x330;
pub const ENABLE_AND_MSE: u16 = 9;
/// Device Control of the Express capability, and its bit Initiate FLR.
pub const DEVICE_CONTROL: u64 = 0x78;
pub const FLR: u16 = 1 << 15;
pub const GTTMMADR: u8 = 0;
pub const LMEM: u8 = 2;

/// VF numbers of each notification, enabled (true) or disabled (false).
#[derive(Default)]
pub struct Witness(pub Mutex<Vec<(bool, Vec<u8>)>>);

impl Witness {
    fn notify(&self, came: bool, vfs: &[Arc<dyn PciDevice>]) {
        self.0.lock().unwrap().push((came, vfs.iter().map(|vf| vf.number().number()).collect()));
    }

    pub fn take(&self) -> Vec<(bool, Vec<u8>)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Machine for Witness {
    fn msi(&self, _: Function) -> io::Result<Arc<dyn MsiSink>> {
        Ok(Arc::new(NullMachine))
    }

    fn vfs_enabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        self.notify(true, vfs);
    }

    fn vfs_disabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        self.notify(false, vfs);
    }
}

/// Creates the small card with `vfs` VFs; memory space and bus mastering of the PF are enabled.
pub fn card(vfs: u8, topology: Topology, memory: Arc<dyn Dma>) -> (VirtualCard, Arc<Witness>) {
    let witness = Arc::new(Witness::default());
    let profile = card_file::load("small").unwrap();
    (plug(profile, vfs, topology, memory, &witness), witness)
}

/// Creates the card that `model` describes as [`card`] does.
pub fn plug(
    model: impl Model,
    vfs: u8,
    topology: Topology,
    memory: Arc<dyn Dma>,
    witness: &Arc<Witness>,
) -> VirtualCard {
    let builder = VirtualCard::builder(model).vfs(vfs).topology(topology);
    let card = builder.plug_into(witness.clone(), memory).unwrap();
    card.pf().write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
    witness.take();
    card
}

pub fn config(function: &CardFunction, offset: u64) -> u16 {
    let mut data = [0; 2];
    function.read_config(offset, &mut data);
    u16::from_le_bytes(data)
}

pub fn set_config(function: &CardFunction, offset: u64, value: u16) {
    function.write_config(offset, &value.to_le_bytes());
}

pub fn register(function: &CardFunction, offset: u64) -> u32 {
    let mut data = [0; 4];
    function.read_bar(GTTMMADR, offset, &mut data);
    u32::from_le_bytes(data)
}
