// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card: registers, a timer, memory, and a pair of ports to the registers.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use arctic_gpu::arctic_sriov::bar::{Bar, BarKind};
use arctic_gpu::arctic_sriov::capability::Capability;
use arctic_gpu::arctic_sriov::config::Field;
use arctic_gpu::arctic_sriov::function::{FunctionError, PciFunction};
use arctic_gpu::arctic_sriov::header::{Identity, Pin};
use arctic_gpu::gpu::{
    Clock, ConfigRegisters, EventCount, FunctionStatus, Gpu, HardwareErrors, Host, IoEvents, Model, ModelReport,
    OwnMemory, OwnThreads, PowerOnError, RegisterMap, SaveRestore, Status, TouchedRegister, VirtualFunctions,
    WalkerCaptures, WorkStatus,
};
use arctic_gpu::inspect::{Inspect, Inspector};
use arctic_gpu::trace::Recorder;
use arctic_gpu::{BarMapping, Function, Limits};

/// The function's identity: an example device of QEMU's vendor ID.
pub const IDENTITY: Identity = Identity {
    vendor: 0x1234,
    device: 0x0f0f,
    revision: 1,
    class: 0x03_00_00,
    subsystem_vendor: 0x1234,
    subsystem: 1,
    serial: 0,
    pin: Some(Pin::A),
};

/// Offsets in BAR 0.
pub mod register {
    /// Reads [`super::MARK`].
    pub const MARK: u64 = 0;
    /// A write starts the timer, which expires after this number of nanoseconds.
    pub const TIMER: u64 = 8;
    /// Number of times that the timer has expired since the reset.
    pub const EXPIRED: u64 = 0xc;
    /// The value of the configuration register at 0x50.
    pub const CONFIGURED: u64 = 0x10;
    /// A write ends the interrupt request of the timer.
    pub const ACKNOWLEDGE: u64 = 0x14;
}

/// Value of the register [`register::MARK`].
pub const MARK: u32 = 0x5ce1_e701;

/// Size of BAR 2 in bytes.
const MEMORY: u64 = 1 << 20;

/// The description of the card.
pub struct Skeleton;

impl Model for Skeleton {
    fn name(&self) -> &str {
        "Skeleton"
    }

    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn total_vfs(&self) -> u8 {
        0
    }

    fn limits(&self) -> Limits {
        Limits::default()
    }

    fn posted_writes(&self) -> bool {
        true
    }

    fn physical_function(&self, _: u8) -> Result<PciFunction, FunctionError> {
        let bars =
            vec![Bar::memory_64(0, 256 << 10, false)?, Bar::memory_64(2, MEMORY, true)?, Bar::new(4, 64, BarKind::Io)?];
        let registers = [Field::dword(0x50, 0).writable(u32::MAX)];
        Ok(PciFunction::new(
            &IDENTITY,
            bars,
            &registers,
            &[Capability::msi_32(0x90), Capability::power_management(0xd0)],
        )?)
    }

    fn virtual_function(&self) -> Result<PciFunction, FunctionError> {
        Err(FunctionError::NoVirtualFunctions)
    }

    fn virtual_function_on_bus(&self) -> Result<PciFunction, FunctionError> {
        Err(FunctionError::NoVirtualFunctions)
    }

    fn register_map(&self) -> RegisterMap {
        RegisterMap {
            bar: 0,
            bar_name: "registers",
            bytes: 256 << 10,
            engines: Vec::new(),
            registers: Vec::new(),
            gaps: Vec::new(),
            views: None,
        }
    }

    fn power_on(&self, _: u8, _: bool, host: Host) -> Result<Arc<dyn Gpu>, PowerOnError> {
        let memory = tempfile::tempfile().and_then(|file| file.set_len(MEMORY).map(|()| file));
        Ok(Arc::new(SkeletonGpu {
            state: Mutex::default(),
            memory: memory.map_err(PowerOnError::Memory)?,
            wakeups: EventCount::new(),
            trace: Recorder::new(host.clock.clone()),
            host,
        }))
    }
}

/// A description with a VF, of the card that has none.
pub struct WithVf;

impl Model for WithVf {
    fn name(&self) -> &str {
        Skeleton.name()
    }

    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn total_vfs(&self) -> u8 {
        1
    }

    fn limits(&self) -> Limits {
        Skeleton.limits()
    }

    fn posted_writes(&self) -> bool {
        Skeleton.posted_writes()
    }

    fn physical_function(&self, vfs: u8) -> Result<PciFunction, FunctionError> {
        Skeleton.physical_function(vfs)
    }

    fn virtual_function(&self) -> Result<PciFunction, FunctionError> {
        Skeleton.physical_function(0)
    }

    fn virtual_function_on_bus(&self) -> Result<PciFunction, FunctionError> {
        Skeleton.physical_function(0)
    }

    fn register_map(&self) -> RegisterMap {
        Skeleton.register_map()
    }

    fn power_on(&self, vfs: u8, provisioned: bool, host: Host) -> Result<Arc<dyn Gpu>, PowerOnError> {
        Skeleton.power_on(vfs, provisioned, host)
    }
}

#[derive(Default)]
struct State {
    index: u32,
    deadline: Option<u64>,
    expired: u32,
    configured: u32,
    unmodelled: BTreeMap<u64, (u64, u64)>,
}

struct SkeletonGpu {
    state: Mutex<State>,
    memory: File,
    wakeups: EventCount,
    trace: Arc<Recorder>,
    host: Host,
}

impl SkeletonGpu {
    fn read_register(&self, offset: u64) -> u32 {
        let mut state = self.state.lock().unwrap();
        match offset {
            register::MARK => MARK,
            register::EXPIRED => state.expired,
            register::CONFIGURED => state.configured,
            _ => {
                state.unmodelled.entry(offset).or_default().0 += 1;
                0
            }
        }
    }

    fn write_register(&self, offset: u64, value: u32) {
        let mut state = self.state.lock().unwrap();
        if offset == register::TIMER {
            state.deadline = Some(self.host.clock.now() + u64::from(value));
            drop(state);
            self.wakeups.post();
        } else if offset == register::ACKNOWLEDGE {
            drop(state);
            self.host.interrupts.set_line(Function::PF, false);
        } else {
            state.unmodelled.entry(offset).or_default().1 += 1;
        }
    }
}

impl Inspect for SkeletonGpu {
    fn inspect(&self, to: &mut Inspector<'_>) {
        to.value("expired", self.state.lock().unwrap().expired);
    }
}

impl Gpu for SkeletonGpu {
    fn read(&self, _: Function, bar: u8, offset: u64, data: &mut [u8]) {
        let value = match (bar, offset) {
            (0, offset) => self.read_register(offset),
            (2, offset) => return self.memory.read_exact_at(data, offset).unwrap(),
            (4, 4) => {
                let index = self.state.lock().unwrap().index;
                self.read_register(index.into())
            }
            _ => u32::MAX,
        };
        data.iter_mut().zip(value.to_le_bytes()).for_each(|(to, from)| *to = from);
    }

    fn write(&self, _: Function, bar: u8, offset: u64, data: &[u8]) {
        let value = data.iter().take(4).rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        match (bar, offset) {
            (0, offset) => self.write_register(offset, value),
            (2, offset) => self.memory.write_all_at(data, offset).unwrap(),
            (4, 0) => self.state.lock().unwrap().index = value,
            _ => {}
        }
    }

    fn reset(&self, _: Function) {
        let mut state = self.state.lock().unwrap();
        *state = State { unmodelled: std::mem::take(&mut state.unmodelled), ..State::default() };
        drop(state);
        self.host.interrupts.set_line(Function::PF, false);
    }

    fn access_kinds(&self) -> &'static [&'static str] {
        &["registers", "memory", "ports"]
    }

    fn access_kind(&self, bar: u8, _: u64, _: bool) -> Option<usize> {
        Some(usize::from(bar / 2))
    }

    fn name_of(&self, _: Function, bar: u8, offset: u64) -> Option<String> {
        (bar == 0 && offset == register::MARK).then(|| "MARK".to_owned())
    }

    fn clock(&self) -> &dyn Clock {
        &*self.host.clock
    }

    fn work(&self) -> WorkStatus {
        let mut state = self.state.lock().unwrap();
        if state.deadline.is_none_or(|deadline| deadline > self.host.clock.now()) {
            return WorkStatus::Idle(state.deadline);
        }
        state.deadline = None;
        state.expired += 1;
        drop(state);
        self.host.interrupts.set_line(Function::PF, true);
        self.host.interrupts.raise(Function::PF, 0);
        WorkStatus::Busy
    }

    fn wakeups(&self) -> &EventCount {
        &self.wakeups
    }

    fn quiesce(&self) {
        drop(self.state.lock().unwrap());
    }

    fn report(&self) -> ModelReport {
        let state = self.state.lock().unwrap();
        let touched = |(offset, (reads, writes)): (&u64, &(u64, u64))| TouchedRegister {
            offset: u32::try_from(*offset).unwrap(),
            name: None,
            reads: *reads,
            writes: *writes,
            reason: None,
        };
        ModelReport { unmodelled: state.unmodelled.iter().map(touched).collect(), ..ModelReport::default() }
    }

    fn status(&self) -> Status {
        let ran = u64::from(self.state.lock().unwrap().expired);
        let times = BTreeMap::from([("timer".to_owned(), ran)]);
        let function = FunctionStatus { engine_time_ns: Some(times), ..FunctionStatus::default() };
        Status { functions: vec![function], ..Status::default() }
    }

    fn trace(&self) -> &Arc<Recorder> {
        &self.trace
    }

    fn vfs(&self) -> Option<&dyn VirtualFunctions> {
        None
    }

    fn own_memory(&self) -> Option<&dyn OwnMemory> {
        Some(self)
    }

    fn config_registers(&self) -> Option<&dyn ConfigRegisters> {
        Some(self)
    }

    fn events(&self) -> Option<&dyn IoEvents> {
        None
    }

    fn own_threads(&self) -> Option<&dyn OwnThreads> {
        None
    }

    fn hardware_errors(&self) -> Option<&dyn HardwareErrors> {
        None
    }

    fn walker_captures(&self) -> Option<&dyn WalkerCaptures> {
        None
    }

    fn saved_state(&self) -> Option<&dyn SaveRestore> {
        None
    }
}

impl OwnMemory for SkeletonGpu {
    fn mappings(&self, _: Function, bar: u8, _: bool) -> Vec<BarMapping<'_>> {
        let mapping = BarMapping { offset: 0, len: MEMORY, file: &self.memory, file_offset: 0 };
        (bar == 2).then_some(mapping).into_iter().collect()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        vec![self.memory.as_raw_fd()]
    }

    fn allocated(&self, _: Function) -> u64 {
        MEMORY
    }

    fn clear(&self, _: Function) {
        self.memory.set_len(0).and_then(|()| self.memory.set_len(MEMORY)).unwrap();
    }
}

impl ConfigRegisters for SkeletonGpu {
    fn config_written(&self, _: Function, offset: u64, data: &[u8]) {
        if let (0x50, Ok(value)) = (offset, data.try_into()) {
            self.state.lock().unwrap().configured = u32::from_le_bytes(value);
        }
    }
}
