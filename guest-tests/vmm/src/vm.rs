// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Creating and running a VM.

use std::io;
use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use arctic_gpu::{CardProfile, GuestRam, IoEventThread, VirtualCard};
use arctic_sriov::number::{low, size};
use kvm_bindings::{CpuId, KVM_MAX_CPUID_ENTRIES, KVM_PIT_SPEAKER_DUMMY, kvm_pit_config};
use kvm_ioctls::{Cap, Kvm, VcpuFd, VmFd};
use std::sync::PoisonError;
use vmm_sys_util::eventfd::EventFd;

use crate::boot::{self, Boot, BootInfo, LongMode};
use crate::error::{Error, Step};
use crate::machine::{Board, End};
use crate::memory::{self, Ram, Slots};
use crate::pci::{CardSlot, Host};
use crate::ports::{Console, Output, Ports};
use crate::{cpuid, layout, vcpu};

/// The configuration of a VM.
pub struct Config {
    /// Program or kernel to run.
    pub boot: Boot,
    /// RAM in bytes.
    pub memory: u64,
    /// Number of CPUs.
    pub cpus: u8,
    /// The card below the root port; `None` for an empty slot.
    pub card: Option<CardConfig>,
    /// Destination of the serial port's output.
    pub output: Output,
}

/// Configuration of the card.
#[derive(Debug)]
pub struct CardConfig {
    /// Its profile, from [`arctic_gpu::CardFile::flex`].
    pub profile: CardProfile,
    /// Number of VFs that the card supports.
    pub vfs: u8,
}

/// Reason for the end of a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The guest wrote this value to port 0xf4.
    Value(u32),
    /// The guest powered off.
    PowerOff,
    /// The guest requested a reset, which ends the VM.
    Reset,
    /// A CPU had a triple fault.
    TripleFault,
    /// The host ended the VM.
    Killed,
    /// A CPU cannot continue; the text states the CPU, the reason and the address.
    Failed(String),
}

/// A VM that has not been started.
pub struct Vm {
    board: Arc<Board>,
    console: Arc<Console>,
    vcpus: Vec<VcpuFd>,
    ram: Ram,
    slot: Arc<CardSlot>,
    _io_events: Option<IoEventThread>,
}

impl Vm {
    /// Creates the VM and loads its program or kernel.
    ///
    /// # Errors
    /// [`Error::NoKvm`] if KVM is not available to this process; tests are skipped in this case.
    pub fn new(config: Config) -> Result<Self, Error> {
        let Config { boot, memory, cpus, card, output } = config;
        if cpus == 0 || cpus > layout::MAX_CPUS {
            return Err(Error::Cpus(cpus));
        }
        let kvm = Kvm::new().map_err(Error::NoKvm)?;
        for (capability, what) in [
            (Cap::Irqchip, "emulate interrupt controllers"),
            (Cap::Ioeventfd, "provide ioeventfds"),
            (Cap::Irqfd, "provide irqfds"),
            (Cap::UserMemory, "map memory of this process"),
            (Cap::ImmediateExit, "stop a vCPU immediately"),
        ] {
            if !kvm.check_extension(capability) {
                return Err(Error::Lacking(what));
            }
        }
        vcpu::handle_kicks()?;
        let vm = Arc::new(kvm.create_vm().step("create a VM")?);
        vm.set_tss_address(size(layout::KVM_TSS)).step("set the TSS address")?;
        vm.create_irq_chip().step("create interrupt controllers")?;

        let ram = memory::ram(memory)?;
        let slots = Arc::new(Slots::new(vm.clone()));
        slots.add_ram(&ram)?;

        let serial = EventFd::new(libc::EFD_NONBLOCK).step("an event")?;
        vm.register_irqfd(&serial, layout::SERIAL_IRQ).step("connect the serial port")?;
        let console = Arc::new(Console::new(serial, output));
        let slot = CardSlot::new(vm.clone(), slots);
        let card = card.map(|card| Self::plug(card, &slot, &ram)).transpose()?;
        let io_events =
            card.as_ref().map(|card| card.serve_io_events().step("a thread for register events")).transpose()?;
        let vfs = card.as_ref().map_or(0, |card| card.total_vfs());
        let (ports, host) = (Ports::new(console.clone()), Host::new(card));
        let board = Arc::new(Board { ports, host, bars: slot.bars().clone(), end: End::default() });

        let supported = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES).step("report the supported CPUID")?;
        let mmio64 = layout::reachable_mmio64(cpuid::address_bits(&supported));
        let mmio64 = mmio64.ok_or(Error::Lacking("give its guests 39-bit addresses"))?;
        let vcpus = Self::cpus(&kvm, &vm, &supported, cpus)?;
        match &boot {
            Boot::Elf { elf, command_line } => {
                let info = Self::describe(&ram, cpus, vfs, mmio64);
                let start = boot::elf::load(&ram, elf, info, command_line)?;
                for (number, vcpu) in (0..).zip(&vcpus) {
                    let stack = layout::STACKS + (number + 1) * layout::STACK_BYTES;
                    Self::enter(vcpu, &start, layout::BOOT_INFO, number, stack)?;
                    vcpu::make_runnable(vcpu)?;
                }
            }
            Boot::Linux { kernel, initrd, command_line } => {
                let pit = kvm_pit_config { flags: KVM_PIT_SPEAKER_DUMMY, ..Default::default() };
                vm.create_pit2(pit).step("create a timer")?;
                let start = boot::linux::load(&ram, kernel, initrd.as_deref(), command_line, cpus, &mmio64)?;
                // The other CPUs wait for a startup IPI.
                Self::enter(&vcpus[0], &start, 0, layout::BOOT_INFO, 0)?;
            }
        }
        Ok(Vm { board, console, vcpus, ram, slot, _io_events: io_events })
    }

    fn plug(card: CardConfig, slot: &Arc<CardSlot>, ram: &Ram) -> Result<Arc<VirtualCard>, Error> {
        let memory = GuestRam::new(ram.clone());
        Ok(Arc::new(VirtualCard::builder(card.profile).vfs(card.vfs).plug_into(slot.clone(), memory)?))
    }

    fn cpus(kvm: &Kvm, vm: &VmFd, supported: &CpuId, cpus: u8) -> Result<Vec<VcpuFd>, Error> {
        let tsc_deadline = kvm.check_extension(Cap::TscDeadlineTimer);
        let make = |number: u8| {
            let vcpu = vm.create_vcpu(number.into()).step("create a vCPU")?;
            let cpuid = cpuid::for_cpu(supported, number, cpus, tsc_deadline);
            vcpu.set_cpuid2(&cpuid).step("set a vCPU's CPUID")?;
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

    /// Returns the description of the VM for a bare-metal guest.
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
            bus_last: low(layout::ECAM_BYTES >> 20) - 1,
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

    /// The card, if any.
    pub fn card(&self) -> Option<&Arc<VirtualCard>> {
        self.board.host.card()
    }

    /// Adds an ioeventfd for the guest's four-byte writes to an unassigned address, as a reference for the cost of a
    /// notification of the GuC.
    ///
    /// # Errors
    /// [`Error::Host`] if there is already an ioeventfd at the address.
    pub fn add_io_event(&self, address: u64, event: &EventFd) -> Result<(), Error> {
        self.slot.add_io_event(address, event).step("an event at an address")
    }

    /// The serial port, for input.
    pub fn console(&self) -> &Arc<Console> {
        &self.console
    }

    /// Runs the VM until it ends. After `limit`, ends it with [`Exit::Killed`].
    pub fn run(self, limit: Duration) -> Result<Exit, Error> {
        let mut running = self.start()?;
        Ok(running.wait(Some(limit)).unwrap_or_else(|| running.kill()))
    }

    /// Starts the vCPU threads.
    pub fn start(mut self) -> Result<Running, Error> {
        let vcpus = std::mem::take(&mut self.vcpus);
        // From here on, dropping `running` stops the started threads before the VM is dropped.
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

/// A VM with running vCPUs. Dropping it ends the VM.
pub struct Running {
    board: Arc<Board>,
    threads: Vec<vcpu::Thread>,
    /// Everything except the vCPUs; dropped after them.
    vm: Vm,
}

impl Running {
    /// Waits until the VM has ended; returns `None` after `limit`. When this returns an exit, all vCPU threads have
    /// ended.
    pub fn wait(&mut self, limit: Option<Duration>) -> Option<Exit> {
        let exit = self.board.end.wait(limit.map(|limit| Instant::now() + limit))?;
        self.threads.drain(..).for_each(vcpu::Thread::stop);
        Some(exit)
    }

    /// Ends the VM, unless it has already ended, and returns its exit.
    pub fn kill(&mut self) -> Exit {
        self.board.end.set(Exit::Killed);
        self.wait(None).unwrap_or(Exit::Killed)
    }

    /// Returns a handle with which another thread can end the VM.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::downgrade(&self.board))
    }

    /// The running VM.
    pub fn vm(&self) -> &Vm {
        &self.vm
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ends a VM. Holds only a weak reference to it.
#[derive(Clone)]
pub struct Stopper(Weak<Board>);

impl Stopper {
    /// Ends the VM. Has no effect if it has already ended.
    pub fn stop(&self) {
        if let Some(board) = self.0.upgrade() {
            board.end.set(Exit::Killed);
        }
    }
}

/// Output kept in memory, for tests. Clones share the buffer.
#[derive(Clone, Default)]
pub struct Transcript(Arc<Mutex<Vec<u8>>>);

impl Transcript {
    /// Returns the output so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Write for Transcript {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// Size limit of the buffer, so that a guest cannot exhaust the host's memory. Exceeds the output of any test.
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
