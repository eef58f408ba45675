//! What tests with the bare-metal guest have in common: its file, its machine, and the reason where this host cannot
//! run it.

// Not every test uses all of it.
#![allow(dead_code)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arctic_gpu::{card_file, firmware};
use arctic_vmm::agent::Agent;
use arctic_vmm::{Boot, CardConfig, Config, Error, Exit, Transcript, Vm, bare_guest, layout};
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

/// A machine that runs the guest with this command line, to which the place of the firmware is added, and what it says.
/// None where this host cannot run it, which the test then says by name.
pub fn machine(name: &str, command_line: &str, cpus: u8, card: Option<CardConfig>) -> Option<(Vm, Transcript)> {
    static UNABLE: OnceLock<Option<String>> = OnceLock::new();
    if let Some(why) = UNABLE.get_or_init(unable) {
        skip(name, why);
        return None;
    }
    let file = &firmware::files()[0].bytes;
    let (machine, said) =
        build(format!("{command_line} firmware={FIRMWARE:#x} firmware_bytes={}", file.len()), cpus, card);
    let machine = machine.unwrap_or_else(|error| panic!("{name}: {error}"));
    machine.memory().write_slice(file, GuestAddress(FIRMWARE)).expect("the firmware fits into RAM");
    Some((machine, said))
}

fn build(command_line: String, cpus: u8, card: Option<CardConfig>) -> (Result<Vm, Error>, Transcript) {
    let said = Transcript::default();
    let memory = if command_line.split(' ').any(|word| word == "high") { HIGH_RAM } else { RAM };
    let boot = Boot::Bare { elf: guest().into(), command_line };
    (Vm::new(Config { boot, memory, cpus, card, output: Box::new(said.clone()) }), said)
}

/// Why this host cannot run such machines, if it cannot: there is no KVM, or KVM itself gives up on a guest that only
/// says that it has nothing to do.
fn unable() -> Option<String> {
    let (machine, said) = build("nothing".into(), 1, None);
    match machine.map(|machine| machine.run(LIMIT)) {
        Err(error @ (Error::NoKvm(_) | Error::Lacking(_))) => Some(error.to_string()),
        Ok(Ok(Exit::Failed(why))) => Some(format!("this host's KVM does not run bare-metal guests: {why}")),
        // Anything else is ours.
        Ok(Ok(Exit::Value(bare_guest::exit::USAGE))) => None,
        Ok(Ok(exit)) => panic!("a guest with nothing to do ended with {exit:?}: {}", said.text()),
        Ok(Err(error)) | Err(error) => panic!("{error}"),
    }
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

/// Whether this host cannot run the machine, which the test then says by name and goes without.
pub fn skipped<T>(name: &str, machine: &Result<T, Error>) -> bool {
    let Err(error @ (Error::NoKvm(_) | Error::Lacking(_))) = machine else {
        return false;
    };
    skip(name, error);
    true
}

/// Says that a test is skipped, and why. With `ARCTIC_KVM=required` in the environment it fails instead.
fn skip(name: &str, why: impl std::fmt::Display) {
    assert_ne!(std::env::var("ARCTIC_KVM").as_deref(), Ok("required"), "{name}: {why}");
    println!("skipped: {name}: {why}");
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
/// the order of [`REPORTS`]. None where this host cannot run it.
pub fn measure(name: &str, repeats: u32) -> Option<Vec<f64>> {
    // Where 32-bit BARs may be, and none is.
    let [quiet_at, heard_at] = [0x1000, 0x2000].map(|offset| layout::MMIO32.start + offset);
    let words = format!("bench event={quiet_at:#x} heard={heard_at:#x} repeats={repeats}");
    let (machine, said) = machine(name, &words, 1, card())?;
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
    Some(REPORTS.iter().map(|(_, number)| ticks(*number)).collect())
}
