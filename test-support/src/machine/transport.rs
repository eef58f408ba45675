// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interface that each transport implements for the tests: a machine that contains the card, as guest software and
//! the VMM access it.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use arctic_gpu::report::Report;

use crate::poll::eventually;

/// Number of virtual functions of the card under test.
pub const VFS: u8 = 3;
/// Bytes of guest memory available to tests, starting at [`Machine::ram`].
pub const RAM_BYTES: u64 = 16 << 20;
/// Timeout for a whole test: a transport that hangs fails one test instead of blocking the run.
const TEST_LIMIT: Duration = Duration::from_secs(120);

/// How a transport presents virtual functions. A test checks only behaviour that guest software can observe over that
/// transport.
#[derive(Clone, Copy, Debug)]
pub struct Visibility {
    /// A VF's vendor and device ID can be read, as for an ordinary function in a separate guest. Otherwise they read
    /// all ones, as on a bus (PCIe 9.3.4.1), and all of a disabled VF's configuration space reads all ones.
    pub vf_ids: bool,
    /// A VF's own BAR registers and memory space enable are writable, because the VMM routes accesses by them.
    /// Otherwise they are hardwired to 0 and only the PF's SR-IOV capability places VF BARs (PCIe 9.3.4.1).
    pub vf_bars: bool,
    /// Software assigns the addresses of VF BARs through the PF's SR-IOV capability. Otherwise the VMM assigns them.
    pub places_vf_bars: bool,
    /// All functions are in one guest and share its memory. Otherwise each function is in a separate guest.
    pub one_memory: bool,
    /// Guest memory has no file descriptor. The card accesses it by messages to the VMM, and memory accesses that a
    /// register write causes happen after the reply to the write.
    pub memory_by_messages: bool,
}

/// A machine that contains the card. Function 0 is the PF, function n is VF n.
///
/// Accesses must lie within the function's regions. Reads of undecoded addresses return all ones, as on a bus.
pub trait Machine {
    /// Returns how this transport presents VFs.
    fn visibility(&self) -> Visibility;

    /// Reads 1, 2 or 4 bytes of configuration space.
    fn read_config(&mut self, function: u8, offset: u16, data: &mut [u8]);
    /// Writes 1, 2 or 4 bytes of configuration space.
    fn write_config(&mut self, function: u8, offset: u16, data: &[u8]);
    /// Reads 1, 2, 4 or 8 bytes of a BAR through the guest's usual path: a trapped access or a memory slot.
    fn read_bar(&mut self, function: u8, bar: u8, offset: u64, data: &mut [u8]);
    /// Writes 1, 2, 4 or 8 bytes of a BAR through the guest's usual path.
    fn write_bar(&mut self, function: u8, bar: u8, offset: u64, data: &[u8]);

    /// Reads any number of bytes of a BAR through the alternative path: the VMM's mapping of the BAR's file or, where
    /// the guest uses that mapping, an access of the VMM itself. Returns false if there is no alternative path.
    fn read_beside(&mut self, function: u8, bar: u8, offset: u64, data: &mut [u8]) -> bool;
    /// Writes bytes of a BAR through the alternative path. Returns false if there is none.
    fn write_beside(&mut self, function: u8, bar: u8, offset: u64, data: &[u8]) -> bool;

    /// Returns the first guest address of the memory available to tests.
    fn ram(&self) -> u64;
    /// Reads memory of the function's guest at a guest address.
    fn read_ram(&mut self, function: u8, address: u64, data: &mut [u8]);
    /// Writes memory of the function's guest at a guest address.
    fn write_ram(&mut self, function: u8, address: u64, data: &[u8]);

    /// Returns address and data to program into the function's MSI capability.
    fn msi_message(&self, function: u8) -> (u64, u16) {
        (0xfee0_0000, 0x40 + u16::from(function))
    }
    /// Returns the number of the function's MSIs since the last call.
    fn take_msis(&mut self, function: u8) -> u64;

    /// Called after software has assigned an address to a BAR, in the function's header or in the PF's SR-IOV
    /// capability.
    fn placed(&mut self, _function: u8, _bar: u8, _address: u64) {}

    /// Reads four bytes at a guest address, decoded by any device; `None` if the transport's VMM has no bus.
    fn read_bus(&mut self, _address: u64) -> Option<u32> {
        None
    }

    /// Performs a conventional reset of one function, as a VMM does when its VM is reset.
    fn reset(&mut self, function: u8);
    /// Powers the machine off and on: either disconnects every client, or replaces the card by a new one.
    fn power_cycle(&mut self);

    /// Returns the card's access report.
    fn report(&self) -> Report;
}

/// Accessors for fixed widths.
impl dyn Machine + '_ {
    /// Reads a byte of configuration space.
    pub fn config8(&mut self, function: u8, offset: u16) -> u8 {
        let mut data = [0];
        self.read_config(function, offset, &mut data);
        data[0]
    }

    /// Reads two bytes of configuration space.
    pub fn config16(&mut self, function: u8, offset: u16) -> u16 {
        let mut data = [0; 2];
        self.read_config(function, offset, &mut data);
        u16::from_le_bytes(data)
    }

    /// Reads four bytes of configuration space.
    pub fn config32(&mut self, function: u8, offset: u16) -> u32 {
        let mut data = [0; 4];
        self.read_config(function, offset, &mut data);
        u32::from_le_bytes(data)
    }

    /// Writes two bytes of configuration space.
    pub fn set_config16(&mut self, function: u8, offset: u16, value: u16) {
        self.write_config(function, offset, &value.to_le_bytes());
    }

    /// Writes four bytes of configuration space.
    pub fn set_config32(&mut self, function: u8, offset: u16, value: u32) {
        self.write_config(function, offset, &value.to_le_bytes());
    }

    /// Reads four bytes of a BAR.
    pub fn bar32(&mut self, function: u8, bar: u8, offset: u64) -> u32 {
        let mut data = [0; 4];
        self.read_bar(function, bar, offset, &mut data);
        u32::from_le_bytes(data)
    }

    /// Reads eight bytes of a BAR.
    pub fn bar64(&mut self, function: u8, bar: u8, offset: u64) -> u64 {
        let mut data = [0; 8];
        self.read_bar(function, bar, offset, &mut data);
        u64::from_le_bytes(data)
    }

    /// Writes four bytes of a BAR.
    pub fn set_bar32(&mut self, function: u8, bar: u8, offset: u64, value: u32) {
        self.write_bar(function, bar, offset, &value.to_le_bytes());
    }

    /// Writes eight bytes of a BAR.
    pub fn set_bar64(&mut self, function: u8, bar: u8, offset: u64, value: u64) {
        self.write_bar(function, bar, offset, &value.to_le_bytes());
    }

    /// Reads a register of GTTMMADR.
    pub fn register(&mut self, function: u8, offset: u32) -> u32 {
        self.bar32(function, 0, offset.into())
    }

    /// Writes a register of GTTMMADR.
    pub fn set_register(&mut self, function: u8, offset: u32, value: u32) {
        self.set_bar32(function, 0, offset.into(), value);
    }

    /// Fills a range of a BAR by the fastest available path.
    pub fn fill(&mut self, function: u8, bar: u8, offset: u64, bytes: &[u8]) {
        if !self.write_beside(function, bar, offset, bytes) {
            for (at, eight) in (offset..).step_by(8).zip(bytes.chunks(8)) {
                self.write_bar(function, bar, at, eight);
            }
        }
    }

    /// Reads four bytes of guest memory.
    pub fn ram32(&mut self, function: u8, address: u64) -> u32 {
        let mut data = [0; 4];
        self.read_ram(function, address, &mut data);
        u32::from_le_bytes(data)
    }

    /// Writes doublewords to guest memory.
    pub fn set_ram(&mut self, function: u8, address: u64, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write_ram(function, address, &bytes);
    }

    /// Waits for an MSI of the function; returns the number of MSIs.
    pub fn wait_msi(&mut self, function: u8) -> u64 {
        let mut came = 0;
        eventually(&format!("an MSI of function {function}"), || {
            came += self.take_msis(function);
            came != 0
        });
        came
    }
}

/// Set once a test has exceeded its time limit.
static HUNG: AtomicBool = AtomicBool::new(false);

/// A test: its name, and a function that runs it on a machine.
pub type Test = (&'static str, fn(&mut dyn Machine));

/// Runs the test `name` on a separate machine, on a thread of that name.
///
/// If the test hangs, its thread and its machine are leaked, and tests that still wait to open their machine fail too.
pub fn run(name: &str, open: fn() -> Box<dyn Machine>, test: fn(&mut dyn Machine)) {
    let (progress, made) = channel();
    let runner = thread::Builder::new().name(name.into()).spawn(move || {
        let mut machine = open();
        let _ = progress.send(());
        test(&mut *machine);
        drop(machine);
        let _ = progress.send(());
    });
    let runner = runner.unwrap();
    // Opening a machine may wait for exclusive use of the host's KVM; a hung test never releases it.
    while made.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
        assert!(!HUNG.load(Ordering::Relaxed), "another test has exceeded its time limit");
    }
    if made.recv_timeout(TEST_LIMIT) == Err(RecvTimeoutError::Timeout) {
        HUNG.store(true, Ordering::Relaxed);
        panic!("the test has not finished after {TEST_LIMIT:?}");
    }
    if let Err(panic) = runner.join() {
        resume_unwind(panic);
    }
}
