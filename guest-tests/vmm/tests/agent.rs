// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the bare-metal guest's agent: every command of the mailbox, in a VM without a card.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod common;

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arctic_vmm::agent::{Agent, AgentError, DATA, Width};
use arctic_vmm::{Exit, Running, Transcript, elf_guest, layout};
use vm_memory::{Bytes, GuestAddress};

fn main() -> ExitCode {
    common::main(tests![reads_and_writes, interrupts, the_end_of_the_guest_is_reported, no_theme,])
}

/// Memory that neither guest nor VMM uses.
const FREE: u64 = 0x180_0000;
const SOON: Duration = Duration::from_secs(20);

fn start(name: &str, command_line: &str) -> (Running, Agent, Transcript) {
    let (machine, transcript) = common::machine(name, command_line, 1, None);
    let running = machine.start().unwrap();
    let memory = running.vm().memory().clone();
    let agent = Agent::meet(memory, SOON).unwrap_or_else(|error| panic!("{error}: {}", transcript.text()));
    (running, agent, transcript)
}

/// Accesses have the requested width, and guest and host access the same memory.
fn reads_and_writes() {
    let (mut running, mut agent, transcript) = start("reads_and_writes", "agent");
    let memory = agent.memory().clone();
    let host = |at: u64| memory.load::<u64>(GuestAddress(at), Ordering::SeqCst).unwrap();
    agent.ping().unwrap();
    memory.store(0x8877_6655_4433_2211_u64, GuestAddress(FREE), Ordering::SeqCst).unwrap();
    for (width, expected) in
        [(Width::Byte, 0x11), (Width::Word, 0x2211), (Width::Dword, 0x4433_2211), (Width::Qword, 0x8877_6655_4433_2211)]
    {
        assert_eq!(agent.read(FREE, width), Ok(expected));
    }
    for (width, expected) in [
        (Width::Byte, 0x8877_6655_4433_22ff),
        (Width::Word, 0x8877_6655_4433_ffff),
        (Width::Dword, 0x8877_6655_ffff_ffff),
        (Width::Qword, u64::MAX),
    ] {
        agent.write(FREE, width, u64::MAX).unwrap();
        assert_eq!(host(FREE), expected);
    }
    // An unassigned address: reads return all ones, writes have no effect.
    agent.write(layout::MMIO32.start, Width::Dword, 1).unwrap();
    assert_eq!(agent.read(layout::MMIO32.start, Width::Dword), Ok(0xffff_ffff));

    agent.fill(FREE, 0x1000, 5, Width::Qword, 1).unwrap();
    assert_eq!([host(FREE), host(FREE + 8), host(FREE + 0xff8)], [5, 6, 5 + 511]);
    agent.copy(FREE + 0x1000, FREE, 0x1000, Width::Dword).unwrap();
    assert_eq!(host(FREE + 0x1ff8), 5 + 511);
    let bytes: Vec<u8> = (0..3000_u32).map(|n| n as u8).collect();
    agent.write_bytes(FREE, &bytes, Width::Qword).unwrap();
    let mut seen = vec![0; 3000];
    agent.read_bytes(FREE, &mut seen, Width::Byte).unwrap();
    assert_eq!(seen, bytes);

    assert_eq!(agent.copy(FREE, DATA + 1, 8, Width::Qword), Err(AgentError::Refused(3)), "an unaligned address");
    let short = Duration::from_millis(5);
    assert_eq!(agent.wait_value((FREE, Width::Byte), 0xff, 1, short), Err(AgentError::Timeout(0)));
    assert_eq!(agent.wait_value((FREE + 1, Width::Byte), 0x0f, 1, short), Ok(1));
    assert!(agent.time_reads(FREE, Width::Dword, 1000).unwrap().ticks > 0);
    assert!(agent.time_writes(FREE, Width::Dword, 1000, 7).unwrap().ticks > 0);

    agent.exit(0x5a).unwrap();
    assert_eq!(running.wait(Some(SOON)), Some(Exit::Value(0x5a)), "{}", transcript.text());
}

/// Self-IPIs are counted, and the agent can wait for them.
fn interrupts() {
    let (_running, mut agent, _) = start("interrupts", "agent");
    let icr = layout::LOCAL_APIC + 0x300;
    assert_eq!(agent.wait_interrupt(0x41, 1, Duration::from_millis(5)), Err(AgentError::Timeout(0)));
    for count in 1..=10 {
        // Self-IPI with vector 0x41.
        agent.write(icr, Width::Dword, 0x4_4041).unwrap();
        assert_eq!(agent.wait_interrupt(0x41, count, SOON), Ok(count));
    }
    assert_eq!(agent.halt(0x41, 10), Ok(10), "already taken");
    assert_eq!((agent.interrupts(0x41), agent.interrupts(0x42)), (10, 0));
    let machine = agent.machine().unwrap();
    assert_eq!(machine.msi_address, layout::LOCAL_APIC);
    assert!(machine.ticks_per_microsecond > 100);
}

/// A guest that fails prints the reason, and later commands fail with [`AgentError::Gone`].
fn the_end_of_the_guest_is_reported() {
    let (mut running, mut agent, transcript) = start("the_end_of_the_guest_is_reported", "agent");
    // An unmapped address.
    assert_eq!(agent.read(1 << 46, Width::Dword), Err(AgentError::Gone));
    assert_eq!(running.wait(Some(SOON)), Some(Exit::Value(elf_guest::exit::EXCEPTION)));
    let last = transcript.text();
    assert!(last.contains("FAIL exception 14") && last.contains("address 0x400000000000"), "{last}");
    assert_eq!(agent.ping(), Err(AgentError::Gone));
}

/// A command line without a theme ends the VM with an error.
fn no_theme() {
    let (machine, transcript) = common::machine("no_theme", "nothing", 1, None);
    assert_eq!(machine.run(SOON).unwrap(), Exit::Value(elf_guest::exit::USAGE));
    assert!(transcript.text().contains("names no theme"), "{}", transcript.text());
}
