// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Shared code of the tests under KVM: the bare-metal guest, its VM, and a test harness that ignores tests that cannot
//! run on this host.

// Some test programs do not use all items.
#![allow(dead_code)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arctic_gpu::{CardFile, VirtualCard, card_file, firmware};
use arctic_vmm::agent::Agent;
use arctic_vmm::{Boot, CardConfig, Config, Exit, Transcript, Vm, elf_guest, layout};
use libtest_mimic::{Arguments, Trial};
use vm_memory::{Bytes, GuestAddress};
use vmm_sys_util::eventfd::EventFd;

/// RAM of the VMs in bytes.
const RAM: u64 = 32 << 20;
/// RAM in bytes with the option `high` on the command line, partly above 4 GiB. Few of its pages are allocated.
const HIGH_RAM: u64 = layout::RAM_BELOW_4G + (64 << 20);
/// Address of the GuC firmware, in RAM that neither guest nor VMM uses.
const FIRMWARE: u64 = 0x100_0000;
/// Time limit of a guest. A guest runs for about a second on two idle CPUs, but tests run concurrently.
const LIMIT: Duration = Duration::from_secs(120);

/// Returns the guest's ELF file. Panics if there is no compiler, with a message that states what to install.
pub fn guest() -> &'static Path {
    elf_guest::build().unwrap_or_else(|error| panic!("{error}"))
}

/// A test: name and function.
pub type Test = (&'static str, fn());

/// Lists functions as tests, each with the function's name.
#[macro_export]
macro_rules! tests {
    ($($test:ident),* $(,)?) => { &[$((stringify!($test), $test as fn())),*] };
}

/// Runs the tests as libtest does. Tests that cannot run on this host are reported as ignored, and their names are
/// printed with the reason.
pub fn main(tests: &[Test]) -> ExitCode {
    let arguments = Arguments::from_args();
    let unable = elf_guest::unable();
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

/// Creates a VM that runs the guest with this command line, to which it adds address and size of the firmware. Returns
/// the VM and its output.
pub fn machine(name: &str, command_line: &str, cpus: u8, card: Option<CardConfig>) -> (Vm, Transcript) {
    let file = &firmware::files()[0].bytes;
    let transcript = Transcript::default();
    let memory = if command_line.split(' ').any(|word| word == "high") { HIGH_RAM } else { RAM };
    let command_line = format!("{command_line} firmware={FIRMWARE:#x} firmware_bytes={}", file.len());
    let boot = Boot::Elf { elf: guest().into(), command_line };
    let machine = Vm::new(Config { boot, memory, cpus, card, output: Box::new(transcript.clone()) });
    let machine = machine.unwrap_or_else(|error| panic!("{name}: {error}"));
    machine.memory().write_slice(file, GuestAddress(FIRMWARE)).expect("the firmware fits into RAM");
    (machine, transcript)
}

/// A card with 2 GiB of local memory and four VFs.
pub fn card() -> Option<CardConfig> {
    Some(CardConfig { profile: card_file::load("small").and_then(CardFile::flex).expect("a built-in card"), vfs: 4 })
}

/// Number of steps of the card's device model that have panicked.
pub fn panics(card: &VirtualCard) -> u64 {
    card.report().panics
}

/// Runs a VM. Panics unless the guest reports success. Returns the output.
pub fn pass(name: &str, machine: Vm, transcript: &Transcript) -> String {
    let exit = machine.run(LIMIT).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = transcript.text();
    assert_eq!(exit, Exit::Value(elf_guest::exit::PASS), "{name}: the guest's output:\n{text}");
    assert!(text.contains("\nPASS ") && !text.contains("FAIL"), "{name}: the guest's output:\n{text}");
    text
}

/// The reports of `guest/bench.h`: names and indexes.
pub const REPORTS: [(&str, u64); 13] = [
    ("exit", 0),
    ("register read", 1),
    ("register write", 2),
    ("ioeventfd without a waiting thread", 3),
    ("hot register write", 4),
    ("ioeventfd with a waiting thread", 5),
    ("notification of the GuC", 6),
    ("write to local memory", 7),
    ("global entry", 8),
    ("request by mailbox", 9),
    ("request by message", 10),
    ("request by message, to its MSI", 11),
    ("submission, to its seqno", 12),
];

/// Runs the guest's measurements in a VM with a card, including bare exits and bare ioeventfds. Returns TSC ticks per
/// operation, in the order of [`REPORTS`].
pub fn measure(name: &str, repeats: u32) -> Vec<f64> {
    // Unassigned addresses: no function has a 32-bit BAR.
    let [quiet_at, waited_at] = [0x1000, 0x2000].map(|offset| layout::MMIO32.start + offset);
    let words = format!("bench event={quiet_at:#x} waited={waited_at:#x} repeats={repeats}");
    let (machine, transcript) = machine(name, &words, 1, card());
    let quiet = EventFd::new(0).expect("an event");
    let waited = EventFd::new(0).expect("an event");
    for (at, event) in [(quiet_at, &quiet), (waited_at, &waited)] {
        machine.add_io_event(at, event).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let over = Arc::new(AtomicBool::new(false));
    let listening = over.clone();
    let waiting = waited.try_clone().expect("another descriptor");
    let listener = std::thread::spawn(move || {
        while !listening.load(Ordering::Acquire) {
            let _ = waiting.read();
        }
    });
    let memory = machine.memory().clone();
    pass(name, machine, &transcript);
    over.store(true, Ordering::Release);
    waited.write(1).expect("the listener reads the event");
    listener.join().expect("the listener does not panic");
    let ticks = |number| {
        let report = Agent::report(&memory, number).unwrap_or_else(|| panic!("{name}: no report {number}"));
        report.ticks as f64 / report.rounds as f64
    };
    REPORTS.iter().map(|(_, number)| ticks(*number)).collect()
}
