//! What tests under KVM have in common: the bare-metal guest, its machine, and the harness that leaves out the tests that
//! this host cannot run.

// Not every test uses all of it.
#![allow(dead_code)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arctic_gpu::{card_file, firmware};
use arctic_vmm::agent::Agent;
use arctic_vmm::{Boot, CardConfig, Config, Exit, Transcript, Vm, bare_guest, layout};
use libtest_mimic::{Arguments, Trial};
use vm_memory::{Bytes, GuestAddress};
use vmm_sys_util::eventfd::EventFd;

/// RAM of the machines.
const RAM: u64 = 32 << 20;
/// RAM where the command line has the word `high`: some of it lies from 4 GiB on. Little of it is used.
const HIGH_RAM: u64 = layout::RAM_BELOW_4G + (64 << 20);
/// Where the guest finds the GuC's firmware: RAM that neither it nor the VMM uses.
const FIRMWARE: u64 = 0x100_0000;
/// What a guest's test may take. Alone on two processors it takes a second; tests share them with others.
const LIMIT: Duration = Duration::from_secs(120);

/// The guest's file. Without a compiler there is no test: that is a failure, and it says what to install.
pub fn guest() -> &'static Path {
    bare_guest::build().unwrap_or_else(|error| panic!("{error}"))
}

/// A test: its name, and what it does.
pub type Test = (&'static str, fn());

/// Functions as tests of their names.
#[macro_export]
macro_rules! tests {
    ($($test:ident),* $(,)?) => { &[$((stringify!($test), $test as fn())),*] };
}

/// Runs the tests of a program as libtest would, but that where this host cannot run them they are told by name, with the
/// reason, and counted as ignored: neither passed nor failed.
pub fn main(tests: &[Test]) -> ExitCode {
    let arguments = Arguments::from_args();
    let unable = bare_guest::unable();
    if let (Some(why), false) = (unable, arguments.list) {
        tests.iter().for_each(|(name, _)| println!("skipped: {name}: {why}"));
    }
    let trial = |&(name, test): &Test| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let trials = tests.iter().map(|test| trial(test).with_ignored_flag(unable.is_some()));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// A machine that runs the guest with this command line, to which the place of the firmware is added, and what it says.
pub fn machine(name: &str, command_line: &str, cpus: u8, card: Option<CardConfig>) -> (Vm, Transcript) {
    let file = &firmware::files()[0].bytes;
    let said = Transcript::default();
    let memory = if command_line.split(' ').any(|word| word == "high") { HIGH_RAM } else { RAM };
    let command_line = format!("{command_line} firmware={FIRMWARE:#x} firmware_bytes={}", file.len());
    let boot = Boot::Bare { elf: guest().into(), command_line };
    let machine = Vm::new(Config { boot, memory, cpus, card, output: Box::new(said.clone()) });
    let machine = machine.unwrap_or_else(|error| panic!("{name}: {error}"));
    machine.memory().write_slice(file, GuestAddress(FIRMWARE)).expect("the firmware fits into RAM");
    (machine, said)
}

/// A card with 2 GiB of local memory and four VFs.
pub fn card() -> Option<CardConfig> {
    Some(CardConfig { profile: card_file::load("small").expect("a built-in card"), vfs: 4 })
}

/// Runs a machine whose guest must say that its test went through; answers all that it said.
pub fn pass(name: &str, machine: Vm, said: &Transcript) -> String {
    let exit = machine.run(LIMIT).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = said.text();
    assert_eq!(exit, Exit::Value(bare_guest::exit::PASS), "{name}: the guest says\n{text}");
    assert!(text.contains("\nPASS ") && !text.contains("FAIL"), "{name}: the guest says\n{text}");
    text
}

/// What `guest/bench.h` numbers: a name, and the number.
pub const REPORTS: [(&str, u64); 13] = [
    ("exit", 0),
    ("register read", 1),
    ("register write", 2),
    ("ioeventfd that nobody hears", 3),
    ("hot register write", 4),
    ("ioeventfd that a thread hears", 5),
    ("doorbell", 6),
    ("write to local memory", 7),
    ("global entry", 8),
    ("request by mailbox", 9),
    ("request by message", 10),
    ("request by message, to its MSI", 11),
    ("submission, to its seqno", 12),
];

/// Has the guest measure on a machine with a card, beside bare exits and events of the same machine; ticks a piece in
/// the order of [`REPORTS`].
pub fn measure(name: &str, repeats: u32) -> Vec<f64> {
    // Where 32-bit BARs may be, and none is.
    let [quiet_at, heard_at] = [0x1000, 0x2000].map(|offset| layout::MMIO32.start + offset);
    let words = format!("bench event={quiet_at:#x} heard={heard_at:#x} repeats={repeats}");
    let (machine, said) = machine(name, &words, 1, card());
    let quiet = EventFd::new(0).expect("an event");
    let heard = EventFd::new(0).expect("an event");
    for (at, event) in [(quiet_at, &quiet), (heard_at, &heard)] {
        machine.add_io_event(at, event).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let over = Arc::new(AtomicBool::new(false));
    let listening = over.clone();
    let ears = heard.try_clone().expect("another descriptor");
    let listener = std::thread::spawn(move || {
        while !listening.load(Ordering::Acquire) {
            let _ = ears.read();
        }
    });
    let memory = machine.memory().clone();
    pass(name, machine, &said);
    over.store(true, Ordering::Release);
    heard.write(1).expect("the listener takes it");
    listener.join().expect("the listener does not panic");
    let ticks = |number| {
        let report = Agent::report(&memory, number).unwrap_or_else(|| panic!("{name}: no report {number}"));
        report.ticks as f64 / report.rounds as f64
    };
    REPORTS.iter().map(|(_, number)| ticks(*number)).collect()
}
