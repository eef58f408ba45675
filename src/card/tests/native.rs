// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the card in a machine with SR-IOV support, in the process of the VMM.

use arctic_device_model::host;
use arctic_fidelity::proves;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arctic_sriov::sriov_capability::{NUM_VFS, SRIOV_CONTROL, VF_BAR0};
use vm_memory::{Bytes, GuestAddress, GuestAddressSpace, GuestMemoryAtomic, GuestMemoryMmap};

use super::*;
use crate::pci::{Event, Machine, MsiMessage, MsiSink};
use crate::{GuestRam, IoEvent};

const SRIOV: u64 = 0x320;
const VF_CAP: u64 = 0x19_01f8;

/// The notifications of the card to its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notification {
    Bar(u8, u8, Option<u64>),
    Enabled(usize),
    Disabled(usize),
    Route(u8, Option<MsiMessage>),
    Fatal(u8),
    Remap(u8, u8),
}
use Notification::*;

#[derive(Default)]
struct Recorder {
    notifications: Arc<Mutex<Vec<Notification>>>,
    triggered: Arc<AtomicUsize>,
    settled: Arc<AtomicBool>,
    /// The function that gets no interrupt sink.
    refused: Option<Function>,
    /// No BAR gets an address.
    full: AtomicBool,
}

impl Recorder {
    fn record(&self, notifications: Notification) {
        self.notifications.lock().unwrap().push(notifications);
    }

    fn take(&self) -> Vec<Notification> {
        std::mem::take(&mut self.notifications.lock().unwrap())
    }
}

struct Msi(Function, Arc<Mutex<Vec<Notification>>>, Arc<AtomicUsize>, Arc<AtomicBool>);

impl MsiSink for Msi {
    fn route(&self, message: Option<MsiMessage>) {
        assert!(self.3.swap(false, Ordering::Relaxed), "interrupts sent under the old route must be delivered first");
        self.1.lock().unwrap().push(Route(self.0.number(), message));
    }

    fn trigger(&self) {
        self.2.fetch_add(1, Ordering::Relaxed);
    }

    fn settle(&self) {
        self.3.store(true, Ordering::Relaxed);
    }
}

impl Machine for Recorder {
    fn msi(&self, function: Function) -> io::Result<Arc<dyn MsiSink>> {
        if self.refused == Some(function) {
            return Err(io::Error::other("no descriptor left"));
        }
        Ok(Arc::new(Msi(function, self.notifications.clone(), self.triggered.clone(), self.settled.clone())))
    }

    fn bar_moved(&self, function: &Arc<dyn PciDevice>, bar: u8, address: Option<u64>) -> io::Result<()> {
        self.record(Bar(function.number().number(), bar, address));
        match address {
            Some(_) if self.full.load(Ordering::Relaxed) => Err(io::Error::other("no slot left")),
            _ => Ok(()),
        }
    }

    fn vfs_enabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        assert!(vfs.iter().all(|vf| vf.enabled()), "reported after they are enabled");
        self.record(Enabled(vfs.len()));
    }

    fn vfs_disabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        assert!(!vfs.iter().any(|vf| vf.enabled()), "reported after they are disabled");
        self.record(Disabled(vfs.len()));
    }

    fn fatal_error(&self, function: Function) {
        self.record(Fatal(function.number()));
    }

    fn mappings_changed(&self, function: &Arc<dyn PciDevice>, bar: u8) {
        self.record(Remap(function.number().number(), bar));
    }

    fn event(&self, function: &Arc<dyn PciDevice>, _: Event) {
        // The change is applied, and methods of the card may be called.
        function.enabled();
    }
}

struct Plugged {
    card: VirtualCard,
    machine: Arc<Recorder>,
    memory: GuestMemoryAtomic<GuestMemoryMmap<()>>,
}

fn guest(at: u64) -> GuestMemoryMmap<()> {
    GuestMemoryMmap::from_ranges(&[(GuestAddress(at), 0x1000)]).unwrap()
}

fn plugged(vfs: u8) -> Plugged {
    let machine = Arc::new(Recorder::default());
    let memory = GuestMemoryAtomic::new(guest(0x1000));
    let profile = card_file::load("small").unwrap();
    let builder = VirtualCard::builder(profile).vfs(vfs);
    let card = builder.plug_into(machine.clone(), GuestRam::new(memory.clone())).unwrap();
    Plugged { card, machine, memory }
}

impl Plugged {
    fn pf(&self) -> &CardFunction {
        self.card.pf()
    }

    fn vf(&self, number: usize) -> &CardFunction {
        &self.card.functions()[number]
    }

    fn sriov(&self, register: u16, value: u16) {
        self.pf().write_config(SRIOV + u64::from(register), &value.to_le_bytes());
    }

    /// Programs the VF BARs and enables VFs 1 to `count` with memory decoding.
    fn enable(&self, count: u16) {
        self.pf().write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
        for (register, address) in [(VF_BAR0, 0x60_0000_0000_u64), (VF_BAR0 + 8, 0x70_0000_0000)] {
            self.pf().write_config(SRIOV + u64::from(register), &address.to_le_bytes());
        }
        self.sriov(NUM_VFS, count);
        self.sriov(SRIOV_CONTROL, VF_ENABLE | VF_MEMORY_SPACE_ENABLE);
    }
}

/// Functions in the VMM's process have no client that connects to them.
#[test]
fn functions_in_process_are_connected() {
    for topology in [Topology::Native, Topology::Provisioned] {
        let ram = GuestRam::new(GuestMemoryAtomic::new(guest(0x1000)));
        let machine = Arc::new(Recorder::default());
        let builder = VirtualCard::builder(card_file::load("small").unwrap()).vfs(2).topology(topology);
        let card = builder.plug_into(machine, ram).unwrap();
        let connected: Vec<bool> = card.status().functions.iter().map(|function| function.connected).collect();
        assert_eq!(connected, [true; 3], "{topology:?}");
    }
}

/// An interrupt that would be lost stops the creation of the card, with the machine's reason.
#[test]
fn a_machine_without_interrupts_for_a_function_gets_no_card() {
    for (refused, name) in [(Function::PF, "pf"), (Function::new(2).unwrap(), "vf2")] {
        let machine = Arc::new(Recorder { refused: Some(refused), ..Recorder::default() });
        let ram = GuestRam::new(GuestMemoryAtomic::new(guest(0x1000)));
        let error = VirtualCard::builder(card_file::load("small").unwrap()).vfs(2).plug_into(machine, ram).err();
        let text = error.map(|error| error.to_string());
        assert_eq!(text, Some(format!("cannot connect the interrupts of {name}: no descriptor left")));
    }
}

/// A BAR that the machine could not place has no address, and is reported again at the next change.
#[test]
fn a_bar_that_was_not_placed_is_reported_again() {
    let Plugged { card, machine, .. } = plugged(0);
    card.pf().write_config(0x14, &0x60_u32.to_le_bytes());
    machine.take();
    machine.full.store(true, Ordering::Relaxed);
    let bars = || machine.take().into_iter().filter(|of| matches!(of, Bar(..))).collect::<Vec<_>>();
    let write = |value: [u8; 2]| card.pf().write_config(COMMAND, &value);
    write([2, 0]);
    let placed = bars();
    assert!(placed.contains(&Bar(0, 0, Some(0x60_0000_0000))), "{placed:x?}");
    write([2, 0]);
    assert_eq!(bars(), placed, "again");
    machine.full.store(false, Ordering::Relaxed);
    write([6, 0]);
    assert_eq!(bars(), placed, "and now with success");
    write([2, 0]);
    assert_eq!(bars(), []);
    machine.full.store(true, Ordering::Relaxed);
    card.pf().write_config(0x14, &0x61_u32.to_le_bytes());
    assert_eq!(bars(), [Bar(0, 0, Some(0x61_0000_0000))]);
    write([0, 0]);
    assert!(!bars().contains(&Bar(0, 0, None)), "it has no address to lose");
}

/// A VMM with SR-IOV support sees the capability in reads of any length, and VFs as on a physical bus: no IDs, no BARs.
#[test]
fn configuration_space_is_that_of_a_real_bus() {
    let plugged = plugged(2);
    let mut all = [0; 4096];
    plugged.pf().read_config(0, &mut all);
    assert_eq!((all[0x320], all[0x100]), (0x10, 0x03), "SR-IOV and serial number with their own capability IDs");
    assert_eq!(plugged.vf(1).read32(CONFIG_REGION, 8), u32::MAX, "not enabled");
    plugged.enable(2);
    plugged.vf(1).read_config(0, &mut all);
    assert_eq!((&all[..4], &all[0x10..0x28]), (&[0xff; 4][..], &[0; 0x18][..]));
    assert_eq!(plugged.vf(2).routing_offset(), 2);
    assert_eq!((plugged.card.total_vfs(), plugged.card.functions().len()), (2, 3));
}

#[test]
fn machine_is_notified_of_bar_and_vf_changes_in_order() {
    proves!(
        V13_016,
        "the machine is notified of BAR and VF changes in order, and each notification matches the state of the \
        card"
    );
    let plugged = plugged(2);
    for (register, address) in [(0x10, 0x40_0000_0000_u64), (0x18, 0x50_0000_0000)] {
        plugged.pf().write_config(register, &address.to_le_bytes());
    }
    assert_eq!(plugged.machine.take(), [], "nothing is decoded yet");
    plugged.pf().write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
    assert_eq!(plugged.machine.take(), [Bar(0, 0, Some(0x40_0000_0000)), Bar(0, 2, Some(0x50_0000_0000))]);
    plugged.pf().write_config(POWER + 4, &[3, 0]);
    assert_eq!(plugged.machine.take(), [Bar(0, 0, None), Bar(0, 2, None)], "D3hot");
    plugged.pf().write_config(POWER + 4, &[0, 0]);
    plugged.pf().write_config(0x10, &0x48_0000_0000_u64.to_le_bytes());
    plugged.machine.take();

    plugged.enable(2);
    let vf = |vf, bar0: Option<u64>| {
        [Bar(vf, 0, bar0), Bar(vf, 2, bar0.map(|_| 0x70_0000_0000 + u64::from(vf - 1) * (512 << 20)))]
    };
    let (one, two) = (vf(1, Some(0x60_0000_0000)), vf(2, Some(0x60_0100_0000)));
    assert_eq!(plugged.machine.take(), [&[Enabled(2)][..], &one, &two].concat());
    assert_eq!(plugged.vf(2).read32(GTTMMADR, VF_CAP), 1, "does not depend on the VF's own memory space bit");
    plugged.pf().write_config(SRIOV + u64::from(VF_BAR0), &0x68_0000_0000_u64.to_le_bytes());
    assert_eq!(plugged.machine.take(), [Bar(1, 0, Some(0x68_0000_0000)), Bar(2, 0, Some(0x68_0100_0000))]);
    plugged.sriov(SRIOV_CONTROL, VF_ENABLE);
    assert_eq!(plugged.machine.take(), [vf(1, None), vf(2, None)].concat());
    plugged.sriov(SRIOV_CONTROL, VF_ENABLE | VF_MEMORY_SPACE_ENABLE);
    plugged.machine.take();
    plugged.pf().write_config(EXPRESS + 9, &[0x80]);
    let notifications = plugged.machine.take();
    let at = |wanted: Notification| {
        notifications
            .iter()
            .position(|notifications| *notifications == wanted)
            .unwrap_or_else(|| panic!("{wanted:?} in {notifications:?}"))
    };
    assert!(at(Bar(1, 0, None)) < at(Disabled(2)), "unmapped before it is disabled");
    assert!(at(Bar(0, 0, None)) > 0 && !notifications.contains(&Enabled(2)));
}

#[test]
fn msi_routes_follow_configuration_space() {
    let plugged = plugged(1);
    plugged.pf().write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
    plugged.machine.take();
    plugged.pf().write_config(MSI + 4, &0xfee0_1000_u64.to_le_bytes());
    plugged.pf().write_config(MSI + 12, &[0x31, 0]);
    plugged.pf().write_config(MSI + 2, &[1]);
    let message = MsiMessage { address: 0xfee0_1000, data: 0x31 };
    assert_eq!(plugged.machine.take(), [Route(0, Some(message))]);
    plugged.pf().write_config(MSI + 12, &[0x32, 0]);
    assert_eq!(plugged.machine.take(), [Route(0, Some(MsiMessage { data: 0x32, ..message }))]);
    plugged.pf().write_config(MSI + 2, &[0]);
    assert_eq!(plugged.machine.take(), [Route(0, None)]);
    assert_eq!(plugged.machine.triggered.load(Ordering::Relaxed), 0);
}

/// The card accesses the current map of guest memory while the PF's bus mastering is enabled; a replaced map is
/// released.
#[test]
fn replaced_guest_memory_is_used_and_the_old_map_released() {
    let plugged = plugged(1);
    let memory = &super::model(&plugged.card).gt().memory;
    assert!(memory.views().of(Function::PF).slice(0x1000, 1, host::Access::Read).is_none(), "no bus mastering");
    plugged.pf().write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
    assert!(memory.views().of(Function::PF).slice(0x1000, 1, host::Access::Read).is_some());
    let old = plugged.memory.memory().into_inner();
    plugged.memory.lock().unwrap().replace(guest(0x8000));
    plugged.card.memory_changed();
    assert_eq!(Arc::strong_count(&old), 1, "the old map is no longer referenced");
    assert!(memory.views().of(Function::PF).slice(0x1000, 1, host::Access::Read).is_none());
    let view = memory.views();
    view.of(Function::PF).slice(0x8000, 4, host::Access::Write).unwrap().write_slice(&[1, 2, 3, 4], 0).unwrap();
    let mut seen = [0; 4];
    plugged.memory.memory().read_slice(&mut seen, GuestAddress(0x8000)).unwrap();
    assert_eq!(seen, [1, 2, 3, 4]);
}

/// Contract B.6: a pending notification of the GuC is processed before an access to the mailbox, regardless of delays of
/// the event thread. Otherwise a write could leave half of the next request in the mailbox when the notification is
/// processed, and a polling driver could miss its response.
#[test]
fn an_access_to_the_mailbox_processes_a_pending_notification() {
    let plugged = plugged(1);
    plugged.enable(1);
    let write = |function: &CardFunction, register| function.write_bar(GTTMMADR_BAR, register, &[0; 4]);
    let read = |function: &CardFunction, register| function.read_bar(GTTMMADR_BAR, register, &mut [0; 4]);
    for access in [&write as &dyn Fn(&CardFunction, u64), &read] {
        for function in plugged.card.functions() {
            let notification = &function.io_events()[0].event;
            for (register, taken) in [(0x19_0240, true), (0x19_024c, true), (0x19_023c, false), (0x19_0250, false)] {
                notification.write(1).unwrap();
                access(function, register);
                assert_eq!(notification.read().is_err(), taken, "{} {register:#x}", function.name());
            }
        }
    }
}

/// A notification event has the same effect as the register write. The GuC is in reset here and does not process the
/// mailbox; the test checks that the event is read from the descriptor.
#[test]
fn doorbell_events_are_read_while_their_thread_runs() {
    let plugged = plugged(1);
    plugged.enable(1);
    let thread = plugged.card.serve_io_events().unwrap();
    for function in plugged.card.functions() {
        let offsets =
            |events: &[IoEvent]| events.iter().map(|event| (event.bar, event.offset, event.len)).collect::<Vec<_>>();
        assert_eq!(offsets(function.io_events()), [(0, 0x19_01f0, 4), (0, 0x19_01f8, 4)]);
        let notification = &function.io_events()[0].event;
        notification.write(1).unwrap();
        crate::vfio_user::tests::eventually("the event is processed", || {
            // The read consumes the event if the thread has not done so; in that case the event is written again.
            notification.read().map(|_| notification.write(1).unwrap()).is_err()
        });
    }
    drop(thread);
    let notification = &plugged.pf().io_events()[0].event;
    notification.write(1).unwrap();
    assert_eq!(notification.read().unwrap(), 1, "the thread has stopped");
}

#[test]
fn hardware_errors_reach_the_machine() {
    proves!(
        [V13_286, V13_287],
        "a correctable error raises the PF's MSI; a fatal error sends a PCI Express message if the driver has enabled error reporting, and raises no MSI. Bits in configuration space and registers are cleared separately"
    );
    let Plugged { card, machine, .. } = plugged(1);
    let pf = card.pf();
    let triggered = || machine.triggered.swap(0, Ordering::Relaxed);
    pf.write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
    pf.write_config(MSI + 4, &0xfee0_0000_u32.to_le_bytes());
    pf.write_config(MSI + 2, &[1, 0]);
    pf.write_bar(GTTMMADR_BAR, 0x19_0008, &(1_u32 << 31).to_le_bytes());
    machine.take();
    triggered();
    let read = |offset| {
        let mut value = [0; 4];
        pf.read_bar(GTTMMADR_BAR, offset, &mut value);
        u32::from_le_bytes(value)
    };
    let detected = || {
        let mut status = [0; 2];
        pf.read_config(EXPRESS + 0x0a, &mut status);
        status[0] & 0xf
    };
    assert!(card.raise_hardware_error("correctable-l3"));
    assert_eq!((triggered(), machine.take(), detected(), read(0x10_017c)), (1, vec![], 0, 1));
    assert!(card.raise_hardware_error("fatal-soc"));
    assert_eq!((triggered(), machine.take(), detected()), (0, vec![], 4), "reporting is disabled");
    pf.write_config(EXPRESS + 0x0a, &[4, 0]);
    assert_eq!((detected(), read(0x10_0180), read(0x10_0174)), (0, 4, 1 << 16));
    pf.write_config(EXPRESS + 0x08, &[4, 0]);
    assert!(card.raise_hardware_error("fatal-soc"));
    assert_eq!((triggered(), machine.take(), detected()), (0, vec![Fatal(0)], 4));
    pf.write_bar(GTTMMADR_BAR, 0x10_0174, &(1_u32 << 16).to_le_bytes());
    assert_eq!((read(0x10_0174), read(0x10_0180), detected()), (0, 4, 4));
    let registers = &card.error_registers()[2];
    assert_eq!((&registers["severity"], &registers["device"]), (&"fatal".into(), &0.into()));
    assert_eq!(registers["message"], true);
    assert!(!card.raise_hardware_error("fatal-none"));
}

/// A VF's local memory is mapped up to its quota, and the machine learns of each change, from either side and to 0. Beyond the
/// quota an access comes to the card, reads all ones and writes nothing.
#[test]
fn mappings_follow_the_quota() {
    let host = plugged(2);
    let (gpu, vf) = (model(&host.card), host.vf(1));
    let mapped = || vf.mappings(2).iter().map(|part| part.offset..part.offset + part.len).collect::<Vec<_>>();
    host.enable(2);
    assert!(mapped().is_empty(), "the VF has no local memory yet");
    host.machine.take();
    for (quota, is_reported) in [(64 << 20, true), (64 << 20, false), (16 << 20, true), (1 << 30, true), (0, true)] {
        gpu.gt().memory.set_quota(Function::new(1).unwrap(), quota);
        gpu.notify_guc(Function::PF);
        let expected = if is_reported { vec![Remap(1, 2)] } else { Vec::new() };
        let start = Instant::now();
        let mut seen = Vec::new();
        while seen != expected && start.elapsed().as_secs() < 30 {
            seen.extend(host.machine.take());
        }
        assert_eq!(seen, expected, "{quota:#x}");
        let end = quota.min(512 << 20);
        assert_eq!(mapped(), if end == 0 { vec![] } else { vec![0..end] });
        if end < 512 << 20 {
            vf.write_bar(2, end, &[1; 4]);
            let mut data = [0; 4];
            vf.read_bar(2, end, &mut data);
            assert_eq!(data, [0xff; 4]);
        }
    }
}
