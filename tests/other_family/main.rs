// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A card of a family that the project does not have, built from public items alone: a conventional function with a
//! 64-bit, a prefetchable and an I/O BAR, an interrupt pin, an MSI with a 32-bit address, a register in configuration space
//! and a timer.
//! It runs in the process of its VMM and over vfio-user.

mod gpu;

use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use arctic_gpu::vfio_user::ecam::Ecam;
use arctic_gpu::vfio_user::wire::command;
use arctic_gpu::vfio_user::{ServedCard, Server, Settings};
use arctic_gpu::vm_memory::{GuestAddress, GuestMemoryMmap};
use arctic_gpu::{
    BarKind, CardError, Function, GuestRam, LineSink, Machine, MsiMessage, MsiSink, PciDevice, Topology, VirtualCard,
    inspect,
};
use arctic_test_support::client::{COMMAND, MEMORY_AND_BUS_MASTER, Raw, access};
use gpu::{IDENTITY, MARK, Skeleton, WithVf, register};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

const LIMIT: Duration = Duration::from_secs(20);
const MSI: u64 = 0x90;
/// Region index of configuration space.
const CONFIG: u32 = 7;

/// A machine that counts interrupts and records BAR addresses.
#[derive(Default)]
struct Slot {
    interrupts: Mutex<u32>,
    raised: Condvar,
    messages: Mutex<Vec<Option<MsiMessage>>>,
    placed: Mutex<Vec<(u8, Option<u64>)>>,
    /// The levels of the interrupt line, in order.
    levels: Mutex<Vec<bool>>,
}

struct Sink(Arc<Slot>);

impl MsiSink for Sink {
    fn route(&self, message: Option<MsiMessage>) {
        self.0.messages.lock().unwrap().push(message);
    }

    fn trigger(&self) {
        *self.0.interrupts.lock().unwrap() += 1;
        self.0.raised.notify_all();
    }
}

impl LineSink for Sink {
    fn set_level(&self, asserted: bool) {
        self.0.levels.lock().unwrap().push(asserted);
    }
}

struct Plugged(Arc<Slot>);

impl Machine for Plugged {
    fn msi(&self, _: Function) -> io::Result<Arc<dyn MsiSink>> {
        Ok(Arc::new(Sink(self.0.clone())))
    }

    fn line(&self, _: Function) -> Option<Arc<dyn LineSink>> {
        Some(Arc::new(Sink(self.0.clone())))
    }

    fn bar_moved(&self, _: &Arc<dyn PciDevice>, bar: u8, address: Option<u64>) -> io::Result<()> {
        self.0.placed.lock().unwrap().push((bar, address));
        Ok(())
    }
}

/// What a driver does with the function, over any transport.
trait Driver {
    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]);
    fn write(&mut self, region: u32, offset: u64, data: &[u8]);

    fn read32(&mut self, region: u32, offset: u64) -> u32 {
        let mut data = [0; 4];
        self.read(region, offset, &mut data);
        u32::from_le_bytes(data)
    }

    fn write32(&mut self, region: u32, offset: u64, value: u32) {
        self.write(region, offset, &value.to_le_bytes());
    }

    /// Sizes and places the BARs, enables both address spaces and bus mastering, and enables the MSI.
    fn probe(&mut self) {
        assert_eq!(self.read32(CONFIG, 0), u32::from(IDENTITY.device) << 16 | u32::from(IDENTITY.vendor));
        assert_eq!(self.read32(CONFIG, 0x3c) >> 8 & 0xff, 1, "INTA#");
        let sizes = [0x10, 0x18, 0x20].map(|at| {
            self.write32(CONFIG, at, u32::MAX);
            self.read32(CONFIG, at)
        });
        assert_eq!(sizes, [0xfffc_0004, 0xfff0_000c, 0xffc1]);
        self.write32(CONFIG, 0x10, 0xe000_0000);
        self.write32(CONFIG, 0x14, 1);
        self.write32(CONFIG, 0x18, 0xd000_0000);
        self.write32(CONFIG, 0x20, 0xe040);
        assert_eq!(self.read32(0, register::MARK), u32::MAX, "memory space is disabled");
        self.write(CONFIG, COMMAND, &MEMORY_AND_BUS_MASTER);
        assert_eq!(self.read32(0, register::MARK), MARK);
        assert_eq!(self.read32(4, 4), u32::MAX, "I/O space is disabled");
        self.write(CONFIG, COMMAND, &[7, 0]);
        self.write32(CONFIG, MSI + 4, 0xfee0_0000);
        self.write(CONFIG, MSI + 8, &[0x41, 0]);
        self.write(CONFIG, MSI + 2, &[1, 0]);
    }

    /// Uses the index and data ports, the configuration register and the memory.
    fn work(&mut self) {
        self.write32(4, 0, u32::try_from(register::MARK).unwrap());
        assert_eq!(self.read32(4, 4), MARK, "a register by its I/O ports");
        self.write32(CONFIG, 0x50, 0x1234_5678);
        assert_eq!(self.read32(0, register::CONFIGURED), 0x1234_5678, "a configuration write has reached the card");
        self.write32(2, 0x8000, 0xcafe);
        assert_eq!(self.read32(2, 0x8000), 0xcafe);
        self.write32(0, 0x3000, 1);
        self.write32(0, register::TIMER, 2_000_000);
    }
}

struct InProcess<'c>(&'c dyn PciDevice);

impl Driver for InProcess<'_> {
    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) {
        match region {
            CONFIG => self.0.read_config(offset, data),
            bar => self.0.read_bar(u8::try_from(bar).unwrap(), offset, data),
        }
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        match region {
            CONFIG => self.0.write_config(offset, data),
            bar => self.0.write_bar(u8::try_from(bar).unwrap(), offset, data),
        }
    }
}

struct Client(Raw);

impl Driver for Client {
    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) {
        let count = u32::try_from(data.len()).unwrap();
        let body = self.0.request(command::REGION_READ, &access(offset, region, count, &[]), &[]);
        data.copy_from_slice(&body[16..]);
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        let count = u32::try_from(data.len()).unwrap();
        self.0.request(command::REGION_WRITE, &access(offset, region, count, data), &[]);
    }
}

/// Waits until the timer has expired, which the driver sees in a register.
fn await_timer(driver: &mut dyn Driver) {
    let start = Instant::now();
    while driver.read32(0, register::EXPIRED) == 0 {
        assert!(start.elapsed() < LIMIT, "the timer has not expired");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The number of timers that have expired, which the family reports as the time of an engine.
fn timers(card: &VirtualCard) -> u64 {
    card.status().functions[0].gpu.engine_time_ns.as_ref().unwrap()["timer"]
}

#[test]
fn a_card_of_another_family_runs_in_process() {
    let slot = Arc::new(Slot::default());
    let ram = GuestRam::new(Arc::new(GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 20)]).unwrap()));
    let machine = Arc::new(Plugged(slot.clone()));
    let card = VirtualCard::builder(Skeleton).vfs(8).plug_into(machine, ram).unwrap();
    assert_eq!(card.total_vfs(), 0);
    let pf = card.pf();
    assert_eq!(pf.config_bytes(), 256);
    let kinds: Vec<_> = pf.bars().iter().map(|bar| (bar.index, bar.size, bar.kind)).collect();
    let memory = |prefetchable| BarKind::Memory64 { prefetchable };
    assert_eq!(kinds, [(0, 256 << 10, memory(false)), (2, 1 << 20, memory(true)), (4, 64, BarKind::Io)]);
    let mut driver = InProcess(&**pf);
    driver.probe();
    let message = MsiMessage { address: 0xfee0_0000, data: 0x41 };
    assert_eq!(slot.messages.lock().unwrap().last(), Some(&Some(message)));
    let placed = slot.placed.lock().unwrap().clone();
    for expected in [(0, Some(0x1_e000_0000)), (2, Some(0xd000_0000)), (4, Some(0xe040))] {
        assert!(placed.contains(&expected), "{expected:x?} of {placed:x?}");
    }
    driver.work();
    let interrupts = slot.interrupts.lock().unwrap();
    let (interrupts, timeout) = slot.raised.wait_timeout_while(interrupts, LIMIT, |count| *count == 0).unwrap();
    assert!(!timeout.timed_out(), "no interrupt of the timer");
    drop(interrupts);
    assert_eq!(driver.read32(0, register::EXPIRED), 1);
    assert_eq!(pf.mappings(2).len(), 1, "the memory can be mapped");
    assert!(pf.mappings(0).is_empty() && pf.mappings(4).is_empty());

    let trapped = pf.trapped();
    assert!(trapped.of("registers") > 4 && trapped.of("ports") == 3 && trapped.of("memory") == 2, "{trapped:?}");
    let report = card.report();
    assert_eq!(report.unmodelled.iter().map(|register| register.offset).collect::<Vec<_>>(), [0x3000]);
    let path = inspect::Path::new("expired").unwrap();
    assert!(matches!(card.inspect(&path, 0), Ok(inspect::Node::Number(_))));
    let status = card.status();
    assert_eq!((status.card.as_str(), status.total_vfs, timers(&card)), ("Skeleton", 0, 1));
    assert!(card.hardware_errors().is_empty() && !card.raise_hardware_error("none"));

    pf.reset();
    assert_eq!(driver.read32(CONFIG, COMMAND) & 7, 0);
    driver.probe();
    assert_eq!((driver.read32(0, register::EXPIRED), driver.read32(0, register::CONFIGURED)), (0, 0));
    assert_eq!(driver.read32(2, 0x8000), 0xcafe, "a reset keeps the memory");
    pf.power_off();
    driver.probe();
    assert_eq!(driver.read32(2, 0x8000), 0);
}

/// Such a card would let a guest enable VFs that nothing resets or clears.
#[test]
fn a_card_without_the_vfs_of_its_model_is_refused() {
    let ram = GuestRam::new(Arc::new(GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 20)]).unwrap()));
    let machine = Arc::new(Plugged(Arc::default()));
    let refused = VirtualCard::builder(WithVf).vfs(1).plug_into(machine, ram).err();
    assert!(matches!(refused, Some(CardError::NoVfs { described: 1 })), "{refused:?}");
}

#[test]
fn a_card_of_another_family_is_served() {
    let card = ServedCard::new(Skeleton, 0, Topology::Together, Ecam::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pf.sock");
    let function = card.functions().remove(0).function;
    let _server = Server::start(&path, function, Settings::default()).unwrap();
    let mut driver = Client(Raw::connect(&path));
    for (region, size) in [(0, 256 << 10), (2, 1 << 20), (4, 64), (CONFIG, 256)] {
        let fields = [32, 0, region, 0, 0, 0, 0, 0].map(u32::to_le_bytes).concat();
        let info = driver.0.request(command::DEVICE_GET_REGION_INFO, &fields, &[]);
        assert_eq!(u64::from_le_bytes(info[16..24].try_into().unwrap()), size, "region {region}");
    }
    driver.probe();
    driver.work();
    await_timer(&mut driver);
    driver.0.request(command::DEVICE_RESET, &[], &[]);
    driver.probe();
    assert_eq!(driver.read32(0, register::EXPIRED), 0);
    assert_eq!(timers(card.card()), 0);
}

/// Waits until the event was signalled, once.
fn await_event(event: &EventFd) {
    let start = Instant::now();
    let count = loop {
        match event.read() {
            Ok(count) => break count,
            Err(_) => assert!(start.elapsed() < LIMIT, "no interrupt"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(count, 1);
}

/// Interrupt Status.
const REQUESTED: u32 = 1 << 19;

/// The first half of a driver without MSI: it starts the timer with Interrupt Disable set, and enables the pin.
fn start_by_pin(driver: &mut dyn Driver) {
    driver.write(CONFIG, COMMAND, &[7, 4]);
    driver.write32(0, register::TIMER, 1000);
    await_timer(driver);
    assert_ne!(driver.read32(CONFIG, COMMAND) & REQUESTED, 0);
}

#[test]
fn the_pin_is_a_level_in_process() {
    let slot = Arc::new(Slot::default());
    let ram = GuestRam::new(Arc::new(GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 20)]).unwrap()));
    let card = VirtualCard::builder(Skeleton).plug_into(Arc::new(Plugged(slot.clone())), ram).unwrap();
    let pf = card.pf();
    let mut driver = InProcess(&**pf);
    start_by_pin(&mut driver);
    let levels = || std::mem::take(&mut *slot.levels.lock().unwrap());
    assert!(levels().is_empty(), "Interrupt Disable");
    driver.write(CONFIG, COMMAND, &[7, 0]);
    assert_eq!(levels(), [true]);
    driver.write(CONFIG, COMMAND, &[7, 4]);
    driver.write(CONFIG, COMMAND, &[7, 0]);
    assert_eq!(levels(), [false, true]);
    driver.write32(0, register::ACKNOWLEDGE, 0);
    assert_eq!((levels(), driver.read32(CONFIG, COMMAND) & REQUESTED), ([false].into(), 0));
    // With MSI enabled the pin is not asserted, whatever is requested.
    driver.write(CONFIG, MSI + 2, &[1, 0]);
    driver.write32(0, register::TIMER, 1000);
    let interrupts = slot.interrupts.lock().unwrap();
    let (interrupts, timeout) = slot.raised.wait_timeout_while(interrupts, LIMIT, |count| *count == 0).unwrap();
    assert!(!timeout.timed_out(), "no MSI");
    drop(interrupts);
    assert!(levels().is_empty());
    driver.write(CONFIG, MSI + 2, &[0, 0]);
    assert_eq!(levels(), [true]);
    pf.reset();
    assert_eq!((levels(), driver.read32(CONFIG, COMMAND) & REQUESTED), ([false].into(), 0));
}

/// As QEMU's and Cloud Hypervisor's clients use it: the eventfd is signalled once, and again at each unmasking while the
/// function asserts its pin.
#[test]
fn the_pin_is_an_automasked_interrupt_over_vfio_user() {
    let card = ServedCard::new(Skeleton, 0, Topology::Together, Ecam::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pf.sock");
    let _server = Server::start(&path, card.functions().remove(0).function, Settings::default()).unwrap();
    let mut driver = Client(Raw::connect(&path));
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    // EVENTFD, MASKABLE and AUTOMASKED of INTx; EVENTFD of MSI; no MSI-X.
    for (index, flags, count) in [(0, 7, 1), (1, 1, 1), (2, 0, 0)] {
        let info = driver.0.request(command::DEVICE_GET_IRQ_INFO, &words(&[16, 0, index, 0]), &[]);
        assert_eq!(info, words(&[16, flags, index, count]), "index {index}");
    }
    let event = EventFd::new(EFD_NONBLOCK).unwrap();
    // Eventfd of the trigger of INTx.
    driver.0.request(command::DEVICE_SET_IRQS, &words(&[20, 0x24, 0, 0, 1]), &[event.as_raw_fd()]);
    start_by_pin(&mut driver);
    assert!(event.read().is_err(), "Interrupt Disable");
    driver.write(CONFIG, COMMAND, &[7, 0]);
    await_event(&event);
    driver.write(CONFIG, COMMAND, &[7, 4]);
    driver.write(CONFIG, COMMAND, &[7, 0]);
    assert!(event.read().is_err(), "masked");
    let unmask = words(&[20, 0x11, 0, 0, 1]);
    for _ in 0..2 {
        driver.0.request(command::DEVICE_SET_IRQS, &unmask, &[]);
        await_event(&event);
    }
    driver.write32(0, register::ACKNOWLEDGE, 0);
    driver.0.request(command::DEVICE_SET_IRQS, &unmask, &[]);
    assert!(event.read().is_err(), "not asserted");
    // The MSI replaces the pin.
    let msi = EventFd::new(EFD_NONBLOCK).unwrap();
    driver.0.request(command::DEVICE_SET_IRQS, &words(&[20, 0x21, 0, 0, 0]), &[]);
    driver.0.request(command::DEVICE_SET_IRQS, &words(&[20, 0x24, 1, 0, 1]), &[msi.as_raw_fd()]);
    driver.write(CONFIG, MSI + 2, &[1, 0]);
    driver.write32(0, register::TIMER, 1000);
    await_event(&msi);
    assert!(event.read().is_err());
}
