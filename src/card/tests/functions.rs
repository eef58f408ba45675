// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of virtual functions: visibility, enabling, and client sessions.

use arctic_device_model::gpu::VirtualFunctions;
use arctic_device_model::host;
use arctic_fidelity::proves;
use std::collections::BTreeMap;

use arctic_sriov::sriov_capability::{NUM_VFS, SRIOV_CONTROL, VF_BAR0};
use vmm_sys_util::tempdir::TempDir;

use super::*;
use crate::vfio_user::tests::{Raw, access, dma_map, dma_unmap, eventually};
use crate::vfio_user::wire::command;
use crate::vfio_user::{Server, Settings};

/// The SR-IOV capability in the PF's configuration space.
const SRIOV: u64 = 0x320;
const TOTAL_VFS: u64 = SRIOV + 0xe;
pub(super) const NUM: u64 = SRIOV + NUM_VFS as u64;
pub(super) const CONTROL: u64 = SRIOV + SRIOV_CONTROL as u64;
pub(super) const BAR0: u64 = SRIOV + VF_BAR0 as u64;
pub(super) const BAR2: u64 = BAR0 + 8;
/// VF_CAP_REG: reads as 1 in a VF.
const VF_CAP: u64 = 0x19_01f8;

pub(super) fn together(vfs: u8) -> TestCard {
    served(card_file::load("small").unwrap(), vfs, Topology::Together).unwrap()
}

fn split(vfs: u8) -> TestCard {
    served(card_file::load("small").unwrap(), vfs, Topology::Split).unwrap()
}

impl TestCard {
    fn named(&self, name: &str) -> &CardFunction {
        self.served.card().all_functions.iter().find(|member| member.name() == name).unwrap()
    }

    pub(super) fn vf(&self, number: u8) -> &CardFunction {
        self.named(&format!("vf{number}"))
    }

    /// Performs the writes with which a PF driver enables VFs 1 to `count`, or disables all VFs (0).
    fn enable(&self, count: u16) {
        let pf = self.pf();
        if count == 0 {
            pf.write(CONFIG_REGION, CONTROL, &[0, 0]);
        }
        pf.write(CONFIG_REGION, NUM, &count.to_le_bytes());
        if count != 0 {
            pf.write(CONFIG_REGION, CONTROL, &(VF_ENABLE | VF_MEMORY_SPACE_ENABLE).to_le_bytes());
        }
    }
}

fn absent(vf: &CardFunction) -> bool {
    vf.read32(CONFIG_REGION, 8) == u32::MAX && vf.read32(GTTMMADR, VF_CAP) == u32::MAX
}

fn present(vf: &CardFunction) -> bool {
    vf.read32(CONFIG_REGION, 8) != u32::MAX && vf.read32(GTTMMADR, VF_CAP) == 1
}

#[test]
fn total_vfs_is_the_lesser_of_card_and_vmm() {
    proves!(
        V13_001,
        "TotalVFs is the value of the card file, limited to the number of VFs that the VMM supports; if it is 0, \
        there is no SR-IOV capability (contract A.3)"
    );
    for (given, offered) in [(1, 1), (31, 31), (63, 31)] {
        let card = together(given);
        assert_eq!(
            (card.served.card().total_vfs(), card.pf().read32(CONFIG_REGION, TOTAL_VFS) as u8),
            (offered, offered)
        );
        assert_eq!(card.functions.len(), usize::from(offered) + 1);
    }
    assert_eq!(together(0).pf().read32(CONFIG_REGION, SRIOV), 0);
    let mut profile = card_file::load("small").unwrap().flex().unwrap();
    profile.total_vfs = 0;
    let card = served(profile, 7, Topology::Split).unwrap();
    assert_eq!((card.functions.len(), card.pf().read32(CONFIG_REGION, SRIOV)), (1, 0));
}

/// QEMU reads all 4096 bytes in one access and hides SR-IOV and ARI if it finds them; a guest reads 4 bytes at a time.
#[test]
fn bulk_read_hides_capabilities_that_short_reads_have() {
    let card = together(2);
    let mut snapshot = [0; 4096];
    card.pf().read(CONFIG_REGION, 0, &mut snapshot);
    let id = |at: u64| u16::from_le_bytes([snapshot[at as usize], snapshot[at as usize + 1]]);
    assert_eq!((id(SRIOV), card.pf().read32(CONFIG_REGION, SRIOV) as u16), (0xb, 0x10));
    card.vf(1).read(CONFIG_REGION, 0, &mut snapshot);
    let ids = u32::from_le_bytes(snapshot[..4].try_into().unwrap());
    assert_eq!((ids, card.vf(1).read32(CONFIG_REGION, 0)), (0x56c0_8086, u32::MAX));
}

#[test]
fn vf_enable_enables_num_vfs_functions() {
    proves!(V13_016, "VFs respond to BAR accesses while VF Enable and VF MSE are set; NumVFs limits their number");
    for card in [together(3), split(3)] {
        for vf in 1..=3 {
            card.vf(vf).write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
            assert!(absent(card.vf(vf)), "VF {vf} before it is enabled");
        }
        card.pf().write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
        card.enable(2);
        for vf in 1..=2 {
            card.vf(vf).write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
        }
        assert_eq!(card.card().enabled_vfs(), 2);
        assert!(present(card.vf(1)) && present(card.vf(2)) && absent(card.vf(3)));
        card.pf().write(CONFIG_REGION, CONTROL, &VF_ENABLE.to_le_bytes());
        assert_eq!(card.vf(1).read32(GTTMMADR, VF_CAP), u32::MAX, "VF MSE is off");
        assert_ne!(card.vf(1).read32(CONFIG_REGION, 8), u32::MAX, "but the VF exists");
        card.pf().write(CONFIG_REGION, CONTROL, &(VF_ENABLE | VF_MEMORY_SPACE_ENABLE).to_le_bytes());
        assert!(present(card.vf(1)));
        card.enable(0);
        assert!(card.card().enabled_vfs() == 0 && absent(card.vf(1)) && absent(card.vf(2)));
    }
}

/// PCIe 9.3.3.7: NumVFs greater than TotalVFs is invalid; the card then enables no VF.
#[test]
fn more_vfs_than_there_are_cannot_be_enabled() {
    let card = together(2);
    for count in [3, 64, u16::MAX] {
        card.enable(count);
        assert!(card.card().enabled_vfs() == 0 && absent(card.vf(1)), "{count}");
        card.enable(0);
    }
    card.enable(2);
    assert_eq!(card.card().enabled_vfs(), 2);
}

#[test]
fn flr_resets_only_its_function_and_the_pfs_disables_vfs() {
    proves!(V13_116, "a VF's FLR leaves other VFs unchanged, and the VF stays enabled;");
    proves!(V13_115, "the PF's FLR disables all VFs");
    for card in [together(2), split(2)] {
        card.pf().write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
        card.enable(2);
        for vf in [card.vf(1), card.vf(2)] {
            vf.write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
            vf.write(GTTMMADR, 0x19_0240, &7u32.to_le_bytes());
            assert_eq!(vf.read32(GTTMMADR, 0x19_0240), 7);
        }
        card.vf(1).write(CONFIG_REGION, EXPRESS + 9, &[0x80]);
        assert!(present(card.vf(1)) && present(card.vf(2)));
        assert_eq!((card.vf(1).port.bus_master(), card.vf(2).port.bus_master()), (false, true));
        let scratch = |vf: u8| card.vf(vf).read32(GTTMMADR, 0x19_0240);
        assert_eq!((scratch(1), scratch(2)), (0, 7));
        card.pf().write(CONFIG_REGION, EXPRESS + 9, &[0x80]);
        assert!(absent(card.vf(1)) && absent(card.vf(2)) && card.card().enabled_vfs() == 0);
    }
}

/// In the PF's guest, the configuration-only function resets the VF like the VF's own function, and gives no other
/// access to it.
#[test]
fn config_only_function_resets_the_vf_and_has_no_bars() {
    let card = split(1);
    card.pf().write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    card.enable(1);
    let (vf, shim) = (card.vf(1), card.named("vf1-config-only"));
    assert!(shim.bars().is_empty());
    assert_eq!((shim.read32(CONFIG_REGION, 0), shim.read32(GTTMMADR, VF_CAP)), (u32::MAX, u32::MAX));
    vf.write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    vf.write(GTTMMADR, 0x19_0240, &7u32.to_le_bytes());
    let memory = guest_file(0x1000);
    card.memory("vf1").map(0x1000, 0x1000, 3, 0, Some(memory.try_clone().unwrap())).unwrap();
    card.memory("vf1-config-only").map(0x8000, 0x1000, 3, 0, Some(memory)).unwrap();
    shim.write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    let views = card.card().gt().memory.views();
    let view = views.of(Function::new(1).unwrap());
    assert!(view.slice(0x1000, 1, host::Access::Read).is_some() && view.slice(0x8000, 1, host::Access::Read).is_none());
    shim.write(CONFIG_REGION, EXPRESS + 9, &[0x80]);
    assert_eq!(vf.read32(GTTMMADR, 0x19_0240), 0);
}

#[test]
fn vf_windows_can_be_mapped() {
    proves!(
        V13_004,
        "a VF's BARs have the sizes in the PF's capability; the mappable ranges depend on the card file and the \
        VF's quota (contract A.4)"
    );
    let card = together(1);
    let vf = card.vf(1);
    assert_eq!((vf.size(0), vf.size(2)), (16 << 20, 512 << 20));
    assert_eq!((vf.areas(0), vf.areas(2)), (vec![8 << 20..16 << 20], vec![0..512 << 20]));
    assert!(vf.areas(1).is_empty() && vf.areas(CONFIG_REGION as u8).is_empty() && vf.areas(99).is_empty());
    let mut trapped = card_file::load("small").unwrap().flex().unwrap();
    trapped.ggtt = crate::GgttAccess::Trapped;
    let card = served(trapped, 1, Topology::Split).unwrap();
    assert!(card.vf(1).areas(0).is_empty(), "each access is trapped");
    assert!(card.vf(1).areas(2).is_empty(), "it has no local memory yet");
    card.card().gt().memory.set_quota(Function::new(1).unwrap(), 64 << 20);
    assert_eq!(card.vf(1).areas(2), [0..64 << 20]);
    card.card().gt().memory.set_quota(Function::new(1).unwrap(), 1 << 30);
    assert_eq!(card.vf(1).areas(2), [0..512 << 20]);
}

/// With `vf_local_memory = "trapped"`, no topology maps a VF's local memory: each access is translated, and beyond the quota
/// reads return all ones and writes are dropped, also after the quota was reduced. The PF's local memory is mapped.
#[test]
fn trapped_local_memory_ends_at_the_quota() {
    let mut profile = card_file::load("small").unwrap().flex().unwrap();
    profile.vf_local_memory = crate::VfLocalMemory::Trapped;
    profile.provision = toml::from_str("local_memory = \"64MiB\"").unwrap();
    for topology in [Topology::Together, Topology::Split, Topology::Provisioned] {
        let card = served(profile.clone(), 1, topology).unwrap();
        let function = card
            .served
            .card()
            .functions()
            .iter()
            .find(|function| function.number() == Function::new(1).unwrap())
            .unwrap();
        assert!(function.mappings(2).is_empty(), "{topology:?}");
        if topology != Topology::Provisioned {
            assert_eq!(card.served.card().functions()[0].mappings(2).len(), 1, "{topology:?}: the PF's");
        }
    }
    let card = served(profile, 1, Topology::Provisioned).unwrap();
    let vf = card.vf(1);
    vf.write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    for (offset, read) in [(0, 0x1234_5678), ((64 << 20) - 4, 0x1234_5678), (64 << 20, u32::MAX), (300 << 20, u32::MAX)]
    {
        vf.write(LMEM, offset, &0x1234_5678_u32.to_le_bytes());
        assert_eq!(vf.read32(LMEM, offset), read, "{offset:#x}");
    }
}

/// If no guest has the PF, the VFs exist from the start, with the resources given in the card file.
#[test]
fn a_provisioned_card_has_its_vfs_at_once() {
    let profile = card_file::load("small").unwrap().flex().unwrap();
    let card = served(profile.clone(), 3, Topology::Provisioned).unwrap();
    let names: Vec<_> = card.functions.iter().map(|served| served.name.clone()).collect();
    assert_eq!(names, ["vf1", "vf2", "vf3"]);
    card.vf(3).write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    assert!(present(card.vf(3)));
    let status = card.served.card().status();
    assert_eq!((status.enabled_vfs, status.functions[3].gpu.quota.as_ref().unwrap().local_memory), (3, 256 << 20));
    // No data remanence: a client must not be able to read data of the previous client.
    let file = card.vf(3).file_of(2);
    file.write_at(&[7; 8], 0x20_0000).unwrap();
    assert_eq!((card.vf(3).areas(2), card.vf(3).read32(LMEM, 0x20_0000)), (vec![0..256 << 20], 0x0707_0707));
    card.leave("vf3");
    card.vf(3).write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    assert_eq!(card.vf(3).read32(LMEM, 0x20_0000), 0);
    let greedy = toml::from_str("local_memory = \"1GiB\"").unwrap();
    let mut profile = profile;
    profile.provision = greedy;
    let error = served(profile, 3, Topology::Provisioned).err().unwrap().to_string();
    assert!(error.starts_with("3 VFs would get 3072 MiB of local memory"), "{error}");
}

#[test]
fn vf_bar_addresses_do_not_affect_accesses() {
    proves!(
        V13_014,
        "the guest chooses the addresses of its VF's BARs; they do not affect the memory that the BARs access"
    );
    let card = served(card_file::load("small").unwrap(), 1, Topology::Provisioned).unwrap();
    let vf = card.vf(1);
    for (bar0, bar2) in [(0xe000_0000_u64, 0x10_0000_0000_u64), (0x38_0000_0000, 0xc000_0000)] {
        vf.write(CONFIG_REGION, COMMAND, &[0; 2]);
        for (register, address) in [(0x10, bar0), (0x18, bar2)] {
            vf.write(CONFIG_REGION, register, &address.to_le_bytes());
        }
        vf.write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
        vf.write(LMEM, 0x4000, &bar2.to_le_bytes());
        let mut stored = [0; 8];
        vf.file_of(2).read_exact_at(&mut stored, 0x4000).unwrap();
        assert_eq!((vf.read32(GTTMMADR, 0x19_01f8), u64::from_le_bytes(stored)), (1, bar2));
    }
}

/// A card with its server sockets.
pub(super) struct Sockets {
    pub(super) card: TestCard,
    servers: BTreeMap<String, Server>,
    dir: TempDir,
}

impl Sockets {
    pub(super) fn new(card: TestCard) -> Self {
        let dir = TempDir::new().unwrap();
        let serve = |served: &Served| {
            let path = dir.as_path().join(format!("{}.sock", served.name));
            (served.name.clone(), Server::start(&path, served.function.clone(), Settings::default()).unwrap())
        };
        let requester = card.served.ecam_requester();
        let servers = card.functions.iter().chain(&requester).map(serve).collect();
        Sockets { card, servers, dir }
    }

    pub(super) fn connect(&self, name: &str) -> Raw {
        assert!(self.servers.contains_key(name), "{}", self.dir.as_path().display());
        Raw::connect(&self.dir.as_path().join(format!("{name}.sock")))
    }
}

pub(super) fn write(client: &mut Raw, region: u32, offset: u64, data: &[u8]) {
    let reply = client.request(command::REGION_WRITE, &access(offset, region, data.len() as u32, data));
    assert_eq!(reply.header.error, 0);
}

fn read32(client: &mut Raw, region: u32, offset: u64) -> u32 {
    client.request(command::REGION_READ, &access(offset, region, 4, &[])).u32(16)
}

/// A VF of another guest accepts connections only while it is enabled. Before that, a connection is closed immediately.
/// Its client stays connected when the VF is disabled, by the PF's guest or because the PF's client disconnects: it reads
/// all ones, and its other requests succeed. When the VF is enabled again, the same client uses it.
#[test]
fn split_vf_accepts_clients_while_enabled_and_keeps_them() {
    let sockets = Sockets::new(split(2));
    let mut pf = sockets.connect("pf").versed();
    sockets.connect("vf1-config-only").versed();
    assert!(sockets.connect("vf1").closed(), "not enabled yet");
    let enable = |pf: &mut Raw| {
        write(pf, CONFIG_REGION, NUM, &[1, 0]);
        write(pf, CONFIG_REGION, CONTROL, &(VF_ENABLE | VF_MEMORY_SPACE_ENABLE).to_le_bytes());
    };
    enable(&mut pf);
    assert!(sockets.connect("vf2").closed(), "NumVFs is 1");
    let mut vf = sockets.connect("vf1").versed();
    for round in 0..3 {
        write(&mut vf, CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
        assert_eq!(read32(&mut vf, GTTMMADR, VF_CAP), 1);
        if round == 1 {
            drop(pf);
            eventually("the PF's session has ended", || !sockets.card.vf(1).enabled());
            pf = sockets.connect("pf").versed();
        } else {
            write(&mut pf, CONFIG_REGION, CONTROL, &[0, 0]);
        }
        assert_eq!(read32(&mut vf, CONFIG_REGION, 0), u32::MAX);
        assert_eq!(read32(&mut vf, GTTMMADR, VF_CAP), u32::MAX);
        assert_eq!(vf.request(command::DMA_MAP, &dma_map(3, 0, 0x1000, 0x1000)).header.error, 0);
        assert_eq!(vf.request(command::DEVICE_RESET, &[]).header.error, 0);
        assert_eq!(vf.request(command::DMA_UNMAP, &dma_unmap(0, 0x1000, 0x1000)).header.error, 0);
        enable(&mut pf);
        assert_eq!(vf.request(command::DEVICE_RESET, &[]).header.error, 0);
        assert_eq!(read32(&mut vf, CONFIG_REGION, 0), 0x56c0_8086);
    }
}

/// When a VF's VMM terminates, the VF is reset and its guest memory is unmapped; other functions are not affected, and
/// a new VMM is accepted.
#[test]
fn vmm_exit_resets_its_vf_and_no_other() {
    let sockets = Sockets::new(split(2));
    let mut pf = sockets.connect("pf").versed();
    write(&mut pf, CONFIG_REGION, NUM, &[2, 0]);
    write(&mut pf, CONFIG_REGION, CONTROL, &(VF_ENABLE | VF_MEMORY_SPACE_ENABLE).to_le_bytes());
    let mut vfs = [1, 2].map(|vf| sockets.connect(&format!("vf{vf}")).versed());
    for vf in &mut vfs {
        write(vf, CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
        write(vf, GTTMMADR, 0x19_0240, &7u32.to_le_bytes());
        assert_eq!(vf.request(command::DMA_MAP, &dma_map(3, 0, 0x1000, 0x1000)).header.error, 0);
    }
    let [one, mut two] = vfs;
    drop(one);
    eventually("the session has ended", || !sockets.card.vf(1).connected());
    assert_eq!((sockets.card.memory("vf1").sections(), sockets.card.memory("vf2").sections()), (0, 1));
    assert_eq!(read32(&mut two, GTTMMADR, 0x19_0240), 7);
    let mut one = sockets.connect("vf1").versed();
    write(&mut one, CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    assert_eq!(read32(&mut one, GTTMMADR, 0x19_0240), 0, "reset, and still enabled");
    assert_eq!(sockets.card.card().enabled_vfs(), 2);
}
