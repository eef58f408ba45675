// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The transport of the reference VMM: a vCPU makes each access, through KVM exits, memory slots and ioeventfds, and
//! receives the interrupts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arctic_device_model::sync::IgnorePoison;
use arctic_gpu::report::Report;
use arctic_gpu::{CardFunction, PciDevice, VirtualCard, card_file};
use arctic_test_support::machine::transport::{Machine, VFS, Visibility};
use arctic_vmm::agent::{Agent, Width};
use arctic_vmm::{Boot, CardConfig, Config, Error, Running, Transcript, Vm, elf_guest, layout};
use vm_memory::{Bytes, GuestAddress};

/// Bytes of guest memory.
const MEMORY: u64 = 64 << 20;
/// Start of the range that tests use, after the guest program.
const RAM: u64 = 16 << 20;
/// Interrupt vector of the PF. The vector of VF n is higher by n.
const VECTOR: u8 = 0x40;
/// Timeout for the guest to start.
const SOON: Duration = Duration::from_secs(60);
/// Widest access by the VMM, in bytes.
const WIDEST: usize = 8;

/// Serialises machines, since each guest's vCPU polls and never halts.
static TURN: Mutex<()> = Mutex::new(());

/// A machine with a guest that executes the test's accesses, and the lock that serialises machines.
struct Kvm {
    machine: Started,
    _turn: MutexGuard<'static, ()>,
}

struct Started {
    // The order of the fields is the drop order.
    agent: Agent,
    _running: Running,
    card: Arc<VirtualCard>,
    transcript: Transcript,
    msi_address: u64,
    /// Guest addresses of BARs.
    placed: BTreeMap<(u8, u8), u64>,
    /// Numbers of interrupts already returned by `take_msis`.
    taken: [u64; VFS as usize + 1],
}

/// The reference VMM.
pub fn reference_vmm() -> Box<dyn Machine> {
    let turn = TURN.lock().ignore_poison();
    let machine = Started::new().unwrap_or_else(|error| panic!("{error}"));
    Box::new(Kvm { machine, _turn: turn })
}

impl Started {
    fn new() -> Result<Self, Error> {
        let transcript = Transcript::default();
        let guest = elf_guest::build().unwrap_or_else(|error| panic!("{error}"));
        let boot = Boot::Elf { elf: guest.into(), command_line: "agent".into() };
        let card = Some(CardConfig { profile: card_file::load("small").unwrap().flex().unwrap(), vfs: VFS });
        let vm = Vm::new(Config { boot, memory: MEMORY, cpus: 1, card, output: Box::new(transcript.clone()) })?;
        let (memory, card) = (vm.memory().clone(), vm.card().unwrap().clone());
        let running = vm.start()?;
        let mut agent = Agent::meet(memory, SOON).unwrap_or_else(|error| panic!("{error}: {}", transcript.text()));
        let msi_address = agent.machine().unwrap().msi_address;
        let (placed, taken) = (BTreeMap::new(), Default::default());
        Ok(Started { agent, _running: running, card, transcript, msi_address, placed, taken })
    }

    fn function(&self, function: u8) -> &CardFunction {
        &self.card.functions()[usize::from(function)]
    }

    fn read(&mut self, address: u64, data: &mut [u8]) {
        let value = self.agent.read(address, Width::of(data.len()).unwrap());
        let value = value.unwrap_or_else(|error| panic!("read of {address:#x}: {error}: {}", self.transcript.text()));
        data.copy_from_slice(&value.to_le_bytes()[..data.len()]);
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        let mut value = [0; 8];
        value[..data.len()].copy_from_slice(data);
        let wrote = self.agent.write(address, Width::of(data.len()).unwrap(), u64::from_le_bytes(value));
        wrote.unwrap_or_else(|error| panic!("write to {address:#x}: {error}: {}", self.transcript.text()));
    }

    /// Returns the guest address of a configuration space register. The functions are on the root port's bus with
    /// consecutive function numbers.
    fn config(function: u8, offset: u16) -> u64 {
        layout::ECAM + (u64::from(layout::CARD_BUS) << 20) + (u64::from(function) << 12) + u64::from(offset)
    }

    /// Returns true if the guest accesses these bytes through a memory slot.
    fn in_slot(&self, function: u8, bar: u8, offset: u64, len: usize) -> bool {
        let parts = self.function(function).mappings(bar);
        parts.iter().any(|part| part.offset <= offset && offset + len as u64 <= part.offset + part.len)
    }
}

impl Machine for Kvm {
    fn visibility(&self) -> Visibility {
        Visibility { vf_ids: false, vf_bars: false, places_vf_bars: true, one_memory: true, memory_by_messages: false }
    }

    fn read_config(&mut self, function: u8, offset: u16, data: &mut [u8]) {
        self.machine.read(Started::config(function, offset), data);
    }

    fn write_config(&mut self, function: u8, offset: u16, data: &[u8]) {
        self.machine.write(Started::config(function, offset), data);
    }

    fn read_bar(&mut self, function: u8, bar: u8, offset: u64, data: &mut [u8]) {
        match self.machine.placed.get(&(function, bar)).copied() {
            Some(address) => self.machine.read(address + offset, data),
            None => data.fill(0xff),
        }
    }

    fn write_bar(&mut self, function: u8, bar: u8, offset: u64, data: &[u8]) {
        if let Some(address) = self.machine.placed.get(&(function, bar)).copied() {
            self.machine.write(address + offset, data);
        }
    }

    /// The guest uses memory slots; the alternative path is the access that the VMM would make at an exit.
    fn read_beside(&mut self, function: u8, bar: u8, offset: u64, data: &mut [u8]) -> bool {
        if !self.machine.in_slot(function, bar, offset, data.len()) {
            return false;
        }
        for (at, part) in (offset..).step_by(WIDEST).zip(data.chunks_mut(WIDEST)) {
            self.machine.function(function).read_bar(bar, at, part);
        }
        true
    }

    fn write_beside(&mut self, function: u8, bar: u8, offset: u64, data: &[u8]) -> bool {
        if !self.machine.in_slot(function, bar, offset, data.len()) {
            return false;
        }
        for (at, part) in (offset..).step_by(WIDEST).zip(data.chunks(WIDEST)) {
            self.machine.function(function).write_bar(bar, at, part);
        }
        true
    }

    fn ram(&self) -> u64 {
        RAM
    }

    fn read_ram(&mut self, _function: u8, address: u64, data: &mut [u8]) {
        self.machine.agent.memory().read_slice(data, GuestAddress(address)).unwrap();
    }

    fn write_ram(&mut self, _function: u8, address: u64, data: &[u8]) {
        self.machine.agent.memory().write_slice(data, GuestAddress(address)).unwrap();
    }

    fn msi_message(&self, function: u8) -> (u64, u16) {
        (self.machine.msi_address, u16::from(VECTOR + function))
    }

    fn take_msis(&mut self, function: u8) -> u64 {
        let count = self.machine.agent.interrupts(VECTOR + function);
        count - std::mem::replace(&mut self.machine.taken[usize::from(function)], count)
    }

    fn placed(&mut self, function: u8, bar: u8, address: u64) {
        self.machine.placed.insert((function, bar), address);
    }

    fn read_bus(&mut self, address: u64) -> Option<u32> {
        let mut data = [0; 4];
        self.machine.read(address, &mut data);
        Some(u32::from_le_bytes(data))
    }

    fn reset(&mut self, function: u8) {
        self.machine.function(function).reset();
    }

    fn power_cycle(&mut self) {
        let next = Started::new().unwrap();
        let before = std::mem::replace(&mut self.machine, next);
        let card = Arc::downgrade(&before.card);
        drop(before);
        assert!(card.upgrade().is_none(), "the card was not freed with its machine");
    }

    fn report(&self) -> Report {
        self.machine.card.report()
    }
}
