//! A machine, from its configuration to its end.

use std::io;
use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use arctic_gpu::{Arrangement, CardProfile, GuestRam, IoEventThread, VirtualCard};
use kvm_bindings::{CpuId, KVM_MAX_CPUID_ENTRIES, KVM_PIT_SPEAKER_DUMMY, kvm_pit_config};
use kvm_ioctls::{Cap, Kvm, VcpuFd, VmFd};
use vmm_sys_util::eventfd::EventFd;

use crate::board::{Board, End};
use crate::boot::{self, Boot, BootInfo, LongMode};
use crate::error::{Error, Step};
use crate::memory::{self, Ram, Slots};
use crate::pci::{CardSlot, Host};
use crate::ports::{Console, Output, Ports};
use crate::{cpuid, layout, vcpu};

/// What a machine is made of.
pub struct Config {
    /// What it runs.
    pub boot: Boot,
    /// Bytes of RAM.
    pub memory: u64,
    /// CPUs.
    pub cpus: u8,
    /// The card behind its root port, or an empty slot.
    pub card: Option<CardConfig>,
    /// Where the serial port's output goes.
    pub output: Output,
}

/// A card to plug in.
#[derive(Debug)]
pub struct CardConfig {
    /// Its profile, from [`arctic_gpu::card_file::load`].
    pub profile: CardProfile,
    /// VFs that it offers.
    pub vfs: u8,
}

/// How a machine ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The guest wrote this to port 0xf4.
    Value(u32),
    /// The guest switched itself off.
    PowerOff,
    /// The guest asked for a reset, which this machine does not survive.
    Reset,
    /// A CPU had a fault while it was handling a fault.
    TripleFault,
    /// It was ended from outside.
    Killed,
    /// A CPU cannot go on; the text says which, why and where.
    Failed(String),
}

/// A machine that has not started yet.
pub struct Vm {
    board: Arc<Board>,
    console: Arc<Console>,
    vcpus: Vec<VcpuFd>,
    ram: Ram,
    slot: Arc<CardSlot>,
    _doorbells: Option<IoEventThread>,
}

impl Vm {
    /// Builds the machine and loads what it runs.
    ///
    /// # Errors
    /// [`Error::NoKvm`] where the host has no KVM for this process: tests skip themselves then.
    pub fn new(config: Config) -> Result<Self, Error> {
        let Config { boot, memory, cpus, card, output } = config;
        if cpus == 0 || cpus > layout::MAX_CPUS {
            return Err(Error::Cpus(cpus));
        }
        let kvm = Kvm::new().map_err(Error::NoKvm)?;
        for (capability, what) in [
            (Cap::Irqchip, "emulate interrupt controllers"),
            (Cap::Ioeventfd, "turn writes into events"),
            (Cap::Irqfd, "turn events into interrupts"),
            (Cap::UserMemory, "map memory of this process"),
            (Cap::ImmediateExit, "be stopped at once"),
        ] {
            if !kvm.check_extension(capability) {
                return Err(Error::Lacking(what));
            }
        }
        vcpu::handle_kicks()?;
        let vm = Arc::new(kvm.create_vm().step("make a machine")?);
        vm.set_tss_address(layout::KVM_TSS as usize).step("place its pages")?;
        vm.create_irq_chip().step("make interrupt controllers")?;

        let ram = memory::ram(memory)?;
        let slots = Arc::new(Slots::new(vm.clone()));
        slots.add_ram(&ram)?;

        let serial = EventFd::new(libc::EFD_NONBLOCK).step("an event")?;
        vm.register_irqfd(&serial, layout::SERIAL_IRQ).step("connect the serial port")?;
        let console = Arc::new(Console::new(serial, output));
        let slot = CardSlot::new(vm.clone(), slots);
        let card = card.map(|card| Self::plug(card, &slot, &ram)).transpose()?;
        let doorbells = card.as_ref().map(|card| card.serve_io_events().step("a thread for doorbells")).transpose()?;
        let vfs = card.as_ref().map_or(0, |card| card.total_vfs());
        let (ports, host) = (Ports::new(console.clone()), Host::new(card));
        let board = Arc::new(Board { ports, host, bars: slot.bars().clone(), end: End::default() });

        let supported = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES).step("say what its CPUs are")?;
        let mmio64 = layout::reachable_mmio64(cpuid::address_bits(&supported));
        let mmio64 = mmio64.ok_or(Error::Lacking("give its guests addresses of 39 bits"))?;
        let vcpus = Self::cpus(&kvm, &vm, &supported, cpus)?;
        match &boot {
            Boot::Bare { elf, command_line } => {
                let info = Self::describe(&ram, cpus, vfs, mmio64);
                let start = boot::bare::load(&ram, elf, info, command_line)?;
                for (number, vcpu) in (0..).zip(&vcpus) {
                    let stack = layout::STACKS + (number + 1) * layout::STACK_BYTES;
                    Self::enter(vcpu, &start, layout::BOOT_INFO, number, stack)?;
                    vcpu::make_runnable(vcpu)?;
                }
            }
            Boot::Linux { kernel, initrd, command_line } => {
                let pit = kvm_pit_config { flags: KVM_PIT_SPEAKER_DUMMY, ..Default::default() };
                vm.create_pit2(pit).step("make a timer")?;
                let start = boot::linux::load(&ram, kernel, initrd.as_deref(), command_line, cpus, &mmio64)?;
                // The others wait for it to start them.
                Self::enter(&vcpus[0], &start, 0, layout::BOOT_INFO, 0)?;
            }
        }
        Ok(Vm { board, console, vcpus, ram, slot, _doorbells: doorbells })
    }

    fn plug(card: CardConfig, slot: &Arc<CardSlot>, ram: &Ram) -> Result<Arc<VirtualCard>, Error> {
        let memory = GuestRam::new(ram.clone());
        Ok(Arc::new(VirtualCard::new(card.profile, card.vfs, Arrangement::Native, memory, slot.clone())?))
    }

    fn cpus(kvm: &Kvm, vm: &VmFd, supported: &CpuId, cpus: u8) -> Result<Vec<VcpuFd>, Error> {
        let tsc_deadline = kvm.check_extension(Cap::TscDeadlineTimer);
        let make = |number: u8| {
            let vcpu = vm.create_vcpu(number.into()).step("make a CPU")?;
            let cpuid = cpuid::for_cpu(supported, number, cpus, tsc_deadline);
            vcpu.set_cpuid2(&cpuid).step("tell a CPU what it is")?;
            vcpu::set_msrs(&vcpu);
            Ok(vcpu)
        };
        (0..cpus).map(make).collect()
    }

    fn enter(vcpu: &VcpuFd, start: &LongMode, rdi: u64, rsi: u64, rsp: u64) -> Result<(), Error> {
        let what = "set a CPU's registers";
        let sregs = start.segments(vcpu.get_sregs().step(what)?);
        vcpu.set_sregs(&sregs).step(what)?;
        vcpu.set_regs(&start.registers(rdi, rsi, rsp)).step(what)
    }

    /// The machine as a bare-metal guest is told.
    fn describe(ram: &Ram, cpus: u8, vfs: u8, mmio64: Range<u64>) -> BootInfo {
        use vm_memory::{GuestMemoryBackend, GuestMemoryRegion};
        let ram_below = |limit: u64| ram.iter().filter(|part| part.start_addr().0 < limit).map(|part| part.len()).sum();
        let ram_low = ram_below(layout::RAM_ABOVE_4G);
        let ram_all: u64 = ram_below(u64::MAX);
        BootInfo {
            ram_low,
            ram_high: ram_all - ram_low,
            ecam: layout::ECAM,
            bus_first: 0,
            bus_last: (layout::ECAM_BYTES >> 20) as u32 - 1,
            mmio32: layout::MMIO32.start,
            mmio32_size: layout::MMIO32.end - layout::MMIO32.start,
            mmio64: mmio64.start,
            mmio64_size: mmio64.end - mmio64.start,
            vfs: vfs.into(),
            pf_bus: layout::CARD_BUS.into(),
            cpus: cpus.into(),
            root_port_devfn: layout::ROOT_PORT.into(),
            ..BootInfo::default()
        }
    }

    /// The guest's RAM.
    pub fn memory(&self) -> &Ram {
        &self.ram
    }

    /// The card.
    pub fn card(&self) -> Option<&Arc<VirtualCard>> {
        self.board.host.card()
    }

    /// Turns the guest's writes of four bytes to an address where nothing else is into an event: what a doorbell is
    /// compared with.
    ///
    /// # Errors
    /// [`Error::Host`] where KVM has an event there already.
    pub fn add_io_event(&self, address: u64, event: &EventFd) -> Result<(), Error> {
        self.slot.add_io_event(address, event).step("an event at an address")
    }

    /// The serial port, to type into.
    pub fn console(&self) -> &Arc<Console> {
        &self.console
    }

    /// Runs the machine to its end, at most for `limit`; a machine that takes longer is [`Exit::Killed`].
    pub fn run(self, limit: Duration) -> Result<Exit, Error> {
        let mut running = self.start()?;
        Ok(running.wait(Some(limit)).unwrap_or_else(|| running.kill()))
    }

    /// Starts the CPUs.
    pub fn start(mut self) -> Result<Running, Error> {
        let vcpus = std::mem::take(&mut self.vcpus);
        // From here on dropping it ends what has been started, and then gives up the rest.
        let mut running = Running { board: self.board.clone(), threads: Vec::new(), vm: self };
        for (number, vcpu) in (0..).zip(vcpus) {
            running.threads.push(vcpu::Thread::start(number, vcpu, running.board.clone())?);
        }
        Ok(running)
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.slot.unplug();
    }
}

/// A machine whose CPUs run. Dropping it ends it.
pub struct Running {
    board: Arc<Board>,
    threads: Vec<vcpu::Thread>,
    /// All but the CPUs; given up after them.
    vm: Vm,
}

impl Running {
    /// Waits for the machine's end, at most for `limit`; none if it still runs then. The CPUs have left the guest when
    /// this returns an end.
    pub fn wait(&mut self, limit: Option<Duration>) -> Option<Exit> {
        let exit = self.board.end.wait(limit.map(|limit| Instant::now() + limit))?;
        self.threads.drain(..).for_each(vcpu::Thread::stop);
        Some(exit)
    }

    /// Ends the machine, if it has not ended by itself, and says how it ended.
    pub fn kill(&mut self) -> Exit {
        self.board.end.set(Exit::Killed);
        self.wait(None).unwrap_or(Exit::Killed)
    }

    /// A handle that ends the machine from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::downgrade(&self.board))
    }

    /// The machine that runs.
    pub fn vm(&self) -> &Vm {
        &self.vm
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ends a machine, of which it keeps nothing.
#[derive(Clone)]
pub struct Stopper(Weak<Board>);

impl Stopper {
    /// Ends it, if it has not ended yet.
    pub fn stop(&self) {
        if let Some(board) = self.0.upgrade() {
            board.end.set(Exit::Killed);
        }
    }
}

/// Output kept in memory, for tests: clones share it.
#[derive(Clone, Default)]
pub struct Transcript(Arc<Mutex<Vec<u8>>>);

impl Transcript {
    /// What has been said so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Write for Transcript {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// More than any test says; a guest that babbles must not take the host's memory.
        const MOST: usize = 16 << 20;
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if text.len() < MOST {
            text.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
