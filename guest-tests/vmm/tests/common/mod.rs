//! What tests with the bare-metal guest have in common: its file, its machine, and the reason where this host cannot run it.

// Not every test uses all of it.
#![allow(dead_code)]

use std::path::Path;
use std::time::Duration;

use arctic_gpu::{card_file, firmware};
use arctic_vmm::{Boot, CardConfig, Config, Error, Exit, Transcript, Vm, bare_guest};
use vm_memory::{Bytes, GuestAddress};

/// RAM of the machines.
pub const RAM: u64 = 32 << 20;
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
    let said = Transcript::default();
    let file = &firmware::files()[0].bytes;
    let command_line = format!("{command_line} firmware={FIRMWARE:#x} firmware_bytes={}", file.len());
    let boot = Boot::Bare { elf: guest().into(), command_line };
    let machine = Vm::new(Config { boot, memory: RAM, cpus, card, output: Box::new(said.clone()) });
    if skipped(name, &machine) {
        return None;
    }
    let machine = machine.unwrap_or_else(|error| panic!("{name}: {error}"));
    machine.memory().write_slice(file, GuestAddress(FIRMWARE)).expect("the firmware fits into RAM");
    Some((machine, said))
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

/// Whether this host cannot run the machine, which the test then says by name and goes without. With
/// `ARCTIC_KVM=required` in the environment it fails instead.
fn skipped<T>(name: &str, machine: &Result<T, Error>) -> bool {
    let Err(error @ (Error::NoKvm(_) | Error::Lacking(_))) = machine else {
        return false;
    };
    assert_ne!(std::env::var("ARCTIC_KVM").as_deref(), Ok("required"), "{name}: {error}");
    println!("skipped: {name}: {error}");
    true
}
