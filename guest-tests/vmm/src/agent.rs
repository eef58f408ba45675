// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The test mailbox, through which a test makes the vCPU of a bare-metal guest access memory and devices.
//!
//! The mailbox is one page of guest memory at [`MAILBOX`]; `guest/mailbox.h` defines the protocol. A guest started with
//! the command line `agent` serves it in ring 3, with real accesses of the vCPU, one command at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// Guest-physical address of the mailbox's page.
pub const MAILBOX: u64 = crate::layout::MAILBOX;
/// Address of the buffer for data of commands: [`DATA_BYTES`] in the mailbox's page.
pub const DATA: u64 = MAILBOX + 0x400;
/// Size of the buffer at [`DATA`].
pub const DATA_BYTES: usize = 1024;

/// "BAREBMBX".
const MAGIC: u64 = 0x5842_4d42_4552_4142;
const VERSION: u64 = 1;
const READY: u32 = 1;
const GONE: u32 = 2;
const NUMBER_OF_ARGUMENTS: usize = 6;
/// Time that the host waits for a response, in addition to the duration of the command.
const TIMEOUT: Duration = Duration::from_secs(20);

// Offsets in the page; `mailbox.h` asserts the offsets of the arrays.
mod at {
    pub const MAGIC: u64 = 0x000;
    pub const VERSION: u64 = 0x008;
    pub const STATE: u64 = 0x00c;
    pub const REQUEST: u64 = 0x010;
    pub const ANSWER: u64 = 0x018;
    pub const COMMAND: u64 = 0x020;
    pub const STATUS: u64 = 0x024;
    pub const ARGUMENT: u64 = 0x028;
    pub const RESULT: u64 = 0x058;
    pub const ACCESSES: u64 = 0x100;
    pub const REPORT: u64 = 0x200;
    pub const INTERRUPTS: u64 = 0x800;
}

/// `enum mailbox_command`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
enum Command {
    Nothing = 0,
    Read = 1,
    Write = 2,
    Copy = 3,
    Fill = 4,
    WaitInterrupt = 5,
    WaitValue = 6,
    TimeReads = 7,
    TimeWrites = 8,
    Machine = 9,
    Halt = 10,
    Exit = 11,
}

/// Error of a command.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AgentError {
    /// The guest does not serve the mailbox.
    #[error("no agent serves the mailbox within {0:?}: start the bare-metal guest with the command line `agent`")]
    Absent(Duration),
    /// The guest was built for another version of the mailbox.
    #[error("the agent's mailbox has version {0}, not {VERSION}: build guest and host from the same tree")]
    Version(u32),
    /// The guest has ended, by an exception or by [`Agent::exit`].
    #[error("the agent has ended: see the guest's last lines on the serial port")]
    Gone,
    /// The guest did not respond in time.
    #[error("no response of the agent within {0:?}: an access of its vCPU may hang in the VMM")]
    Silent(Duration),
    /// A wait for a condition timed out.
    #[error("a wait timed out; last value: {0:#x}")]
    Timeout(u64),
    /// The guest rejected the command.
    #[error("the agent rejected the command with status {0}: see `enum mailbox_status` of mailbox.h")]
    Refused(u32),
}

/// Size of an access of the vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Width {
    /// 8 bits.
    Byte = 1,
    /// 16 bits.
    Word = 2,
    /// 32 bits.
    Dword = 4,
    /// 64 bits.
    Qword = 8,
}

impl Width {
    /// Returns the width for a number of bytes; `None` if there is no such width.
    pub fn of(bytes: usize) -> Option<Self> {
        Some(match bytes {
            1 => Width::Byte,
            2 => Width::Word,
            4 => Width::Dword,
            8 => Width::Qword,
            _ => return None,
        })
    }
}

/// Properties of the VM for a driver in the guest.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Address of an MSI to the vCPU that serves the mailbox; its data is the vector.
    pub msi_address: u64,
    /// TSC ticks per microsecond.
    pub ticks_per_microsecond: u64,
}

/// A measurement by the guest.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Total TSC ticks of all rounds.
    pub ticks: u64,
    /// Number of rounds.
    pub rounds: u64,
}

/// Numbers of accesses to a function's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accesses {
    /// Reads.
    pub reads: u64,
    /// Writes that a VMM must trap.
    pub writes: u64,
    /// Writes to registers that can be ioeventfds.
    pub events: u64,
    /// Accesses to pages of the doorbell window.
    pub pages: u64,
}

/// The host's handle of a guest's mailbox.
pub struct Agent {
    memory: Arc<GuestMemoryMmap>,
    request: u64,
}

impl Agent {
    /// Waits for at most `within` until the guest with this memory serves its mailbox.
    ///
    /// # Errors
    /// [`AgentError::Absent`], [`AgentError::Version`], or [`AgentError::Gone`] if the guest has already ended.
    pub fn meet(memory: Arc<GuestMemoryMmap>, within: Duration) -> Result<Self, AgentError> {
        let mut agent = Agent { memory, request: 0 };
        let start = Instant::now();
        while (agent.load64(at::MAGIC), agent.load32(at::STATE)) != (MAGIC, READY) {
            if agent.load64(at::MAGIC) == MAGIC && agent.load32(at::STATE) == GONE {
                return Err(AgentError::Gone);
            }
            if start.elapsed() > within {
                return Err(AgentError::Absent(within));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if u64::from(agent.load32(at::VERSION)) != VERSION {
            return Err(AgentError::Version(agent.load32(at::VERSION)));
        }
        agent.request = agent.load64(at::ANSWER);
        Ok(agent)
    }

    /// The guest's memory.
    pub fn memory(&self) -> &Arc<GuestMemoryMmap> {
        &self.memory
    }

    /// No operation; tests whether the agent responds.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub fn ping(&mut self) -> Result<(), AgentError> {
        self.command(Command::Nothing, &[], Duration::ZERO).map(drop)
    }

    /// Makes the vCPU read from a guest-physical address, with an access of `width`.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub fn read(&mut self, address: u64, width: Width) -> Result<u64, AgentError> {
        Ok(self.command(Command::Read, &[address, width as u64], Duration::ZERO)?[0])
    }

    /// Makes the vCPU write the low bits of `value` to a guest-physical address, with an access of `width`.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub fn write(&mut self, address: u64, width: Width, value: u64) -> Result<(), AgentError> {
        self.command(Command::Write, &[address, width as u64, value], Duration::ZERO).map(drop)
    }

    /// Makes the vCPU copy `bytes` between guest-physical addresses, in accesses of `width` in ascending order.
    ///
    /// # Errors
    /// See [`AgentError`]; addresses and `bytes` must be multiples of `width`.
    pub fn copy(&mut self, to: u64, from: u64, bytes: u64, width: Width) -> Result<(), AgentError> {
        let long = Duration::from_micros(50) * u32::try_from(bytes / width as u64).unwrap_or(u32::MAX);
        self.command(Command::Copy, &[to, from, bytes, width as u64], long).map(drop)
    }

    /// Makes the vCPU fill `bytes` from `address` with `value`, `value + add`, ..., in accesses of `width`.
    ///
    /// # Errors
    /// See [`AgentError`]; `address` and `bytes` must be multiples of `width`.
    pub fn fill(&mut self, address: u64, bytes: u64, value: u64, width: Width, add: u64) -> Result<(), AgentError> {
        let long = Duration::from_micros(50) * u32::try_from(bytes / width as u64).unwrap_or(u32::MAX);
        self.command(Command::Fill, &[address, bytes, value, width as u64, add], long).map(drop)
    }

    /// Makes the vCPU read any number of bytes in accesses of `width`. The data passes through the mailbox's buffer.
    ///
    /// # Errors
    /// See [`AgentError`]; `address` and the length must be multiples of `width`.
    pub fn read_bytes(&mut self, address: u64, data: &mut [u8], width: Width) -> Result<(), AgentError> {
        for (part, at) in data.chunks_mut(DATA_BYTES).zip((address..).step_by(DATA_BYTES)) {
            self.copy(DATA, at, part.len() as u64, width)?;
            self.memory.read_slice(part, GuestAddress(DATA)).expect("the mailbox is in RAM");
        }
        Ok(())
    }

    /// Makes the vCPU write any number of bytes in accesses of `width`. The data passes through the mailbox's buffer.
    ///
    /// # Errors
    /// See [`AgentError`]; `address` and the length must be multiples of `width`.
    pub fn write_bytes(&mut self, address: u64, data: &[u8], width: Width) -> Result<(), AgentError> {
        for (part, at) in data.chunks(DATA_BYTES).zip((address..).step_by(DATA_BYTES)) {
            self.memory.write_slice(part, GuestAddress(DATA)).expect("the mailbox is in RAM");
            self.copy(at, DATA, part.len() as u64, width)?;
        }
        Ok(())
    }

    /// Returns the number of interrupts that the vCPUs have taken with a vector, in total.
    pub fn interrupts(&self, vector: u8) -> u64 {
        Self::interrupts_in(&self.memory, vector)
    }

    /// Like [`Agent::interrupts`], for any bare-metal guest with this memory.
    pub fn interrupts_in(memory: &GuestMemoryMmap, vector: u8) -> u64 {
        let at = GuestAddress(MAILBOX + at::INTERRUPTS + u64::from(vector) * 8);
        memory.load(at, Ordering::Acquire).expect("the mailbox is in RAM")
    }

    /// Waits until a vector has been taken at least `count` times in total. Returns the number.
    ///
    /// # Errors
    /// [`AgentError::Timeout`] after `within`.
    pub fn wait_interrupt(&mut self, vector: u8, count: u64, within: Duration) -> Result<u64, AgentError> {
        let arguments = [u64::from(vector), count, u64::try_from(within.as_micros()).unwrap_or(u64::MAX)];
        Ok(self.command(Command::WaitInterrupt, &arguments, within)?[0])
    }

    /// Waits until a read of `address` with `width`, masked, returns `value`. Returns the value read, unmasked.
    ///
    /// # Errors
    /// [`AgentError::Timeout`] after `within`.
    pub fn wait_value(
        &mut self,
        (address, width): (u64, Width),
        mask: u64,
        value: u64,
        within: Duration,
    ) -> Result<u64, AgentError> {
        let arguments = [address, width as u64, mask, value, u64::try_from(within.as_micros()).unwrap_or(u64::MAX)];
        Ok(self.command(Command::WaitValue, &arguments, within)?[0])
    }

    /// Measures the TSC ticks of `rounds` reads.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub fn time_reads(&mut self, address: u64, width: Width, rounds: u64) -> Result<Report, AgentError> {
        let ticks = self.command(Command::TimeReads, &[address, width as u64, rounds], Duration::from_secs(60))?[0];
        Ok(Report { ticks, rounds })
    }

    /// Measures the TSC ticks of `rounds` writes.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub fn time_writes(&mut self, address: u64, width: Width, rounds: u64, value: u64) -> Result<Report, AgentError> {
        let arguments = [address, width as u64, rounds, value];
        let ticks = self.command(Command::TimeWrites, &arguments, Duration::from_secs(60))?[0];
        Ok(Report { ticks, rounds })
    }

    /// Returns the properties of the VM for a driver.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub fn machine(&mut self) -> Result<Machine, AgentError> {
        let [msi_address, ticks_per_microsecond] = self.command(Command::Machine, &[], Duration::ZERO)?;
        Ok(Machine { msi_address, ticks_per_microsecond })
    }

    /// Halts the vCPU, inside KVM, until a vector has been taken at least `count` times in total. Returns the number.
    ///
    /// # Errors
    /// [`AgentError::Silent`] on timeout, after which the vCPU stays halted; otherwise see [`AgentError`].
    pub fn halt(&mut self, vector: u8, count: u64) -> Result<u64, AgentError> {
        Ok(self.command(Command::Halt, &[u64::from(vector), count], Duration::ZERO)?[0])
    }

    /// Ends the VM with this exit code.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub fn exit(mut self, code: u8) -> Result<(), AgentError> {
        self.command(Command::Exit, &[u64::from(code)], Duration::ZERO).map(drop)
    }

    /// Returns the guest's counts of its accesses to the registers of function `number` (0 is the PF; 7 counts VF 7 and
    /// all higher ones together). The theme `agent` does not count accesses.
    pub fn accesses(memory: &GuestMemoryMmap, number: u64) -> Accesses {
        let load =
            |at| memory.load::<u64>(GuestAddress(MAILBOX + at), Ordering::Acquire).expect("the mailbox is in RAM");
        let at = at::ACCESSES + number * 32;
        Accesses { reads: load(at), writes: load(at + 8), events: load(at + 16), pages: load(at + 24) }
    }

    /// Returns a guest's measurement by its index in `bench.h`; `None` if it was not measured.
    pub fn report(memory: &GuestMemoryMmap, number: u64) -> Option<Report> {
        let load =
            |at| memory.load::<u64>(GuestAddress(MAILBOX + at), Ordering::Acquire).expect("the mailbox is in RAM");
        let at = at::REPORT + number * 16;
        let report = Report { ticks: load(at), rounds: load(at + 8) };
        (load(at::MAGIC) == MAGIC && report.rounds != 0).then_some(report)
    }

    fn command(&mut self, command: Command, arguments: &[u64], long: Duration) -> Result<[u64; 2], AgentError> {
        debug_assert!(arguments.len() <= NUMBER_OF_ARGUMENTS);
        self.store32(at::COMMAND, command as u32);
        for (n, argument) in (0u64..).zip(arguments) {
            self.store64(at::ARGUMENT + n * 8, *argument);
        }
        self.request += 1;
        self.store64(at::REQUEST, self.request);
        self.wait_for_answer(TIMEOUT + long)?;
        let result = [self.load64(at::RESULT), self.load64(at::RESULT + 8)];
        match self.load32(at::STATUS) {
            0 => Ok(result),
            1 => Err(AgentError::Timeout(result[0])),
            status => Err(AgentError::Refused(status)),
        }
    }

    fn wait_for_answer(&self, within: Duration) -> Result<(), AgentError> {
        let start = Instant::now();
        let mut polls = 0u32;
        while self.load64(at::ANSWER) != self.request {
            if self.load32(at::STATE) != READY && self.load64(at::ANSWER) != self.request {
                return Err(AgentError::Gone);
            }
            if start.elapsed() > within {
                return Err(AgentError::Silent(within));
            }
            polls += 1;
            if polls < 2000 {
                std::hint::spin_loop();
            } else {
                // Let the vCPU and card threads use this CPU.
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    fn load32(&self, at: u64) -> u32 {
        self.memory.load(GuestAddress(MAILBOX + at), Ordering::Acquire).expect("the mailbox is in RAM")
    }

    fn load64(&self, at: u64) -> u64 {
        self.memory.load(GuestAddress(MAILBOX + at), Ordering::Acquire).expect("the mailbox is in RAM")
    }

    fn store32(&self, at: u64, value: u32) {
        self.memory.store(value, GuestAddress(MAILBOX + at), Ordering::Release).expect("the mailbox is in RAM");
    }

    fn store64(&self, at: u64, value: u64) {
        self.memory.store(value, GuestAddress(MAILBOX + at), Ordering::Release).expect("the mailbox is in RAM");
    }
}
