//! What every door to the card gives: a machine with the card in it, as that machine's software and its VMM reach it.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use arctic_gpu::report::Report;

/// Virtual functions of the card under test.
pub const VFS: u8 = 3;
/// Bytes of guest memory that a test may use, from [`Machine::ram`] on.
pub const RAM_BYTES: u64 = 16 << 20;
/// Longest that anything may take which happens by itself.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Longest that a test may take: a door that hangs fails its test instead of hanging all.
const TEST_LIMIT: Duration = Duration::from_secs(120);

/// How a door shows virtual functions; a test judges only what the software behind that door would see.
#[derive(Clone, Copy, Debug)]
pub struct Shows {
    /// A VF's vendor and device ID can be read, as of any function in a guest of its own. Otherwise they read all ones,
    /// as on a bus (PCIe 9.3.4.1), and a VF that is not enabled is all ones altogether.
    pub vf_ids: bool,
    /// A VF's own BAR registers and memory space bit are there to be written, as the VMM routes by them. Otherwise they
    /// are hardwired to 0 and the PF's capability is all there is (PCIe 9.3.4.1).
    pub vf_bars: bool,
    /// Software places VF BARs in the PF's capability. Otherwise whoever connects the card does it in another way.
    pub places_vf_bars: bool,
    /// All functions are in one guest and see one memory. Otherwise each has the memory of its own guest.
    pub one_memory: bool,
    /// Guest memory has no file: the card asks the VMM for it, and what a register write has it do there is done after the
    /// write has been answered.
    pub asks_for_memory: bool,
}

/// A machine with the card in it. Functions are numbered as on the card: 0 is the PF, n is VF n.
///
/// Accesses must lie within the function's regions; what does not answer reads as all ones, as on a bus.
pub trait Machine {
    /// What software sees of VFs here.
    fn shows(&self) -> Shows;

    /// Reads configuration space, 1, 2 or 4 bytes.
    fn read_config(&mut self, function: u8, offset: u16, data: &mut [u8]);
    /// Writes configuration space, 1, 2 or 4 bytes.
    fn write_config(&mut self, function: u8, offset: u16, data: &[u8]);
    /// Reads a BAR, 1, 2, 4 or 8 bytes, as software does it here: in a trap, or through a memory slot.
    fn read_bar(&mut self, function: u8, bar: u8, offset: u64, data: &mut [u8]);
    /// Writes a BAR, 1, 2, 4 or 8 bytes.
    fn write_bar(&mut self, function: u8, bar: u8, offset: u64, data: &[u8]);

    /// Reads the same bytes the other way, any number of them: by the file that a VMM maps, or, where software goes
    /// that way, by the VMM's own access. False where there is no other way.
    fn read_beside(&mut self, function: u8, bar: u8, offset: u64, data: &mut [u8]) -> bool;
    /// Writes the same bytes the other way. False where there is no other way.
    fn write_beside(&mut self, function: u8, bar: u8, offset: u64, data: &[u8]) -> bool;

    /// First guest address of the memory that tests may use.
    fn ram(&self) -> u64;
    /// Reads memory of the function's guest, at a guest address.
    fn read_ram(&mut self, function: u8, address: u64, data: &mut [u8]);
    /// Writes memory of the function's guest, at a guest address.
    fn write_ram(&mut self, function: u8, address: u64, data: &[u8]);

    /// The message to program into the function's MSI capability.
    fn msi_message(&self, function: u8) -> (u64, u16) {
        (0xfee0_0000, 0x40 + u16::from(function))
    }
    /// MSIs of the function that have arrived since the last call.
    fn take_msis(&mut self, function: u8) -> u64;

    /// Software has given a BAR an address, in the function's header or in the PF's capability.
    fn placed(&mut self, _function: u8, _bar: u8, _address: u64) {}

    /// Four bytes at a guest address, whoever answers there; `None` at a door whose VMM has no bus of its own.
    fn read_bus(&mut self, _address: u64) -> Option<u32> {
        None
    }

    /// Conventional reset of one function, as a VMM does it when its machine is reset.
    fn reset(&mut self, function: u8);
    /// The machine is switched off and on again: nobody is connected in between, or the card is made anew.
    fn power_cycle(&mut self);

    /// What the card tells of accesses.
    fn report(&self) -> Report;
}

/// Accesses of plain widths.
impl dyn Machine + '_ {
    /// A byte of configuration space.
    pub fn config8(&mut self, function: u8, offset: u16) -> u8 {
        let mut data = [0];
        self.read_config(function, offset, &mut data);
        data[0]
    }

    /// Two bytes of configuration space.
    pub fn config16(&mut self, function: u8, offset: u16) -> u16 {
        let mut data = [0; 2];
        self.read_config(function, offset, &mut data);
        u16::from_le_bytes(data)
    }

    /// Four bytes of configuration space.
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

    /// Four bytes of a BAR.
    pub fn bar32(&mut self, function: u8, bar: u8, offset: u64) -> u32 {
        let mut data = [0; 4];
        self.read_bar(function, bar, offset, &mut data);
        u32::from_le_bytes(data)
    }

    /// Eight bytes of a BAR.
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

    /// A register of GTTMMADR.
    pub fn register(&mut self, function: u8, offset: u32) -> u32 {
        self.bar32(function, 0, offset.into())
    }

    /// Writes a register of GTTMMADR.
    pub fn set_register(&mut self, function: u8, offset: u32, value: u32) {
        self.set_bar32(function, 0, offset.into(), value);
    }

    /// Fills a part of a BAR by the quickest way there is.
    pub fn fill(&mut self, function: u8, bar: u8, offset: u64, bytes: &[u8]) {
        if !self.write_beside(function, bar, offset, bytes) {
            for (at, eight) in (offset..).step_by(8).zip(bytes.chunks(8)) {
                self.write_bar(function, bar, at, eight);
            }
        }
    }

    /// Four bytes of guest memory.
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

    /// Waits for an MSI of the function; gives how many came.
    pub fn wait_msi(&mut self, function: u8) -> u64 {
        let mut came = 0;
        eventually(&format!("an MSI of function {function}"), || {
            came += self.take_msis(function);
            came != 0
        });
        came
    }
}

/// Waits until something holds that happens by itself.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never happened: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// A test has taken too long.
static HUNG: AtomicBool = AtomicBool::new(false);

/// A test: its name, and what it does with a machine.
pub type Test = (&'static str, fn(&mut dyn Machine));

/// Runs the test `name` on a machine of its own, on a thread of that name.
///
/// A test that hangs is left behind with what it has, and those that wait for it fail too.
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
    // A machine may have to wait for its turn; it never comes if a test hangs that has it.
    while made.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
        assert!(!HUNG.load(Ordering::Relaxed), "another test hangs");
    }
    if made.recv_timeout(TEST_LIMIT) == Err(RecvTimeoutError::Timeout) {
        HUNG.store(true, Ordering::Relaxed);
        panic!("the test takes more than {TEST_LIMIT:?}");
    }
    if let Err(panic) = runner.join() {
        resume_unwind(panic);
    }
}
