// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the VM itself: its end by the guest, with programs of a few instructions, and by the host.

mod common;

use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use arctic_vmm::{Boot, Config, Exit, Transcript, Vm};
use tempfile::NamedTempFile;

fn main() -> ExitCode {
    common::main(tests![
        programs_end_the_machine_in_their_ways,
        the_rest_of_the_ram_is_above_4_gib,
        serial_output_of_the_guest_is_received,
        a_machine_that_does_not_end_is_ended,
        machines_leave_nothing_behind,
        an_impossible_card_is_refused_in_a_sentence,
        the_program_gives_the_guests_status,
        ctrl_c_ends_the_program,
    ])
}

/// Load address and entry point of the programs.
const ENTRY: u64 = 0x10_0000;
/// Timeout, longer than any of these programs runs on a loaded host.
const LONG: Duration = Duration::from_secs(30);

/// mov eax, 0x1234; out 0xf4, eax
const EXIT_0X1234: &[u8] = &[0xb8, 0x34, 0x12, 0, 0, 0xe7, 0xf4];
/// mov dx, 0x3f8; mov al, 'h'; out dx, al; mov al, 'i'; out dx, al; xor eax, eax; out 0xf4, eax
const PRINT_HI: &[u8] = &[0x66, 0xba, 0xf8, 0x03, 0xb0, b'h', 0xee, 0xb0, b'i', 0xee, 0x31, 0xc0, 0xe7, 0xf4];
/// An endless loop: jmp to itself
const SPIN: &[u8] = &[0xeb, 0xfe];
/// hlt, with interrupts disabled
const HALT: &[u8] = &[0xf4];
/// ud2, without an exception handler
const CRASH: &[u8] = &[0x0f, 0x0b];
/// mov al, 0xfe; out 0x64, al
const RESET: &[u8] = &[0xb0, 0xfe, 0xe6, 0x64];
/// mov dx, 0x600; mov al, 0x34 (SLP_EN, type 5); out dx, al
const POWER_OFF: &[u8] = &[0x66, 0xba, 0, 0x06, 0xb0, 0x34, 0xee];
/// Reads the IDs of the root port through the configuration window, and exits with them:
/// mov ecx, 0xb0008000; mov eax, [rcx]; out 0xf4, eax
const ROOT_PORT: &[u8] = &[0xb9, 0, 0x80, 0, 0xb0, 0x8b, 0x01, 0xe7, 0xf4];
/// The same through the legacy ports: mov eax, 0x80000800; mov dx, 0xcf8; out dx, eax; mov dx, 0xcfc; in eax, dx; out
/// 0xf4, eax
const ROOT_PORT_BY_PORTS: &[u8] =
    &[0xb8, 0, 0x08, 0, 0x80, 0x66, 0xba, 0xf8, 0x0c, 0xef, 0x66, 0xba, 0xfc, 0x0c, 0xed, 0xe7, 0xf4];
/// Writes to the last 4 bytes of 16 MiB above 4 GiB and exits with the value read back:
/// mov rcx, 0x100fffffc; mov dword [rcx], 0x77; mov eax, [rcx]; out 0xf4, eax
const HIGH_RAM: &[u8] =
    &[0x48, 0xb9, 0xfc, 0xff, 0xff, 0, 1, 0, 0, 0, 0xc7, 0x01, 0x77, 0, 0, 0, 0x8b, 0x01, 0xe7, 0xf4];
/// Only the CPU with index 2 in rsi ends the VM: cmp esi, 2; jne itself; mov eax, esi; out 0xf4, eax
const THIRD_CPU: &[u8] = &[0x83, 0xfe, 2, 0x75, 0xfe, 0x89, 0xf0, 0xe7, 0xf4];

/// Creates an ELF64 file with one segment.
fn elf(code: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // An x86-64 executable, version 1; entry, program headers at offset 64, no sections.
    head.extend([2u16, 62].map(u16::to_le_bytes).concat());
    head.extend(1u32.to_le_bytes());
    head.extend([ENTRY, 64, 0].map(u64::to_le_bytes).concat());
    head.extend(0u32.to_le_bytes());
    head.extend([64u16, 56, 1, 0, 0, 0].map(u16::to_le_bytes).concat());
    // PT_LOAD, readable and executable; offset, virtual and physical address, sizes, alignment.
    head.extend([1u32, 5].map(u32::to_le_bytes).concat());
    let len = code.len() as u64;
    head.extend([120, ENTRY, ENTRY, len, len, 16].map(u64::to_le_bytes).concat());
    file.write_all(&head).and_then(|()| file.write_all(code)).unwrap();
    file
}

fn config(file: &NamedTempFile, cpus: u8, output: &Transcript) -> Config {
    let boot = Boot::Elf { elf: file.path().into(), command_line: String::new() };
    Config { boot, memory: 16 << 20, cpus, card: None, output: Box::new(output.clone()) }
}

fn machine(code: &[u8], cpus: u8, output: &Transcript) -> Vm {
    Vm::new(config(&elf(code), cpus, output)).unwrap()
}

fn programs_end_the_machine_in_their_ways() {
    for (code, cpus, wanted) in [
        (EXIT_0X1234, 1, Exit::Value(0x1234)),
        (EXIT_0X1234, 4, Exit::Value(0x1234)),
        (CRASH, 1, Exit::TripleFault),
        (RESET, 1, Exit::Reset),
        (POWER_OFF, 1, Exit::PowerOff),
        (ROOT_PORT, 1, Exit::Value(0x000c_1b36)),
        (ROOT_PORT_BY_PORTS, 1, Exit::Value(0x000c_1b36)),
        (THIRD_CPU, 3, Exit::Value(2)),
    ] {
        let vm = machine(code, cpus, &Transcript::default());
        assert_eq!(vm.run(LONG).unwrap(), wanted, "{code:02x?}");
    }
}

/// RAM that does not fit below the windows is at 4 GiB; addresses above it are unassigned.
fn the_rest_of_the_ram_is_above_4_gib() {
    let file = elf(HIGH_RAM);
    for (more, wanted) in [(16 << 20, 0x77), (12 << 20, u32::MAX)] {
        let memory = arctic_vmm::layout::RAM_BELOW_4G + more;
        let machine = Vm::new(Config { memory, ..config(&file, 1, &Transcript::default()) }).unwrap();
        assert_eq!(machine.run(LONG).unwrap(), Exit::Value(wanted));
    }
}

fn serial_output_of_the_guest_is_received() {
    let transcript = Transcript::default();
    let vm = machine(PRINT_HI, 1, &transcript);
    assert_eq!(vm.run(LONG).unwrap(), Exit::Value(0));
    assert_eq!(transcript.text(), "hi");
}

/// Spinning and halted CPUs are stopped at the time limit, by a stopper, and when the VM is dropped.
fn a_machine_that_does_not_end_is_ended() {
    for code in [SPIN, HALT] {
        let vm = machine(code, 2, &Transcript::default());
        assert_eq!(vm.run(Duration::from_millis(50)).unwrap(), Exit::Killed);

        let mut running = machine(code, 2, &Transcript::default()).start().unwrap();
        assert_eq!(running.wait(Some(Duration::from_millis(20))), None);
        let stopper = running.stopper();
        std::thread::spawn(move || stopper.stop());
        assert_eq!(running.wait(Some(LONG)), Some(Exit::Killed));

        let start = Instant::now();
        drop(machine(code, 2, &Transcript::default()).start().unwrap());
        assert!(start.elapsed() < LONG);
    }
}

/// A dropped VM releases all its resources: many VMs in sequence leak no descriptors.
fn machines_leave_nothing_behind() {
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let profile = || arctic_gpu::card_file::load("small").unwrap().flex().unwrap();
    let build = || {
        let file = elf(EXIT_0X1234);
        let card = Some(arctic_vmm::CardConfig { profile: profile(), vfs: 2 });
        Vm::new(Config { card, ..config(&file, 1, &Transcript::default()) })
    };
    assert_eq!(build().unwrap().run(LONG).unwrap(), Exit::Value(0x1234));
    let before = descriptors();
    for _ in 0..60 {
        assert_eq!(build().unwrap().run(LONG).unwrap(), Exit::Value(0x1234));
    }
    // Other tests in this process run VMs concurrently, so the number varies slightly. Sixty leaked VMs would hold more
    // than 1200 descriptors.
    assert!(descriptors() < before + 60, "{before} descriptors before, {} after", descriptors());
}

fn an_impossible_card_is_refused_in_a_sentence() {
    let transcript = Transcript::default();
    let good = elf(EXIT_0X1234);
    let error = |config| Vm::new(config).err().map(|error| error.to_string());
    let cpus = error(config(&good, 17, &transcript)).unwrap();
    assert_eq!(cpus, "a guest cannot have 17 CPUs: give 1 to 16");
    let memory = error(Config { memory: 1 << 20, ..config(&good, 1, &transcript) }).unwrap();
    assert!(memory.contains("from 8 MiB to 128 GiB"), "{memory}");
    let mut script = NamedTempFile::new().unwrap();
    script.write_all(b"#!/bin/sh\necho this is no program for a machine\n").unwrap();
    let format = error(config(&script, 1, &transcript)).unwrap();
    assert!(format.contains("is not an ELF64 program for x86-64"), "{format}");
}

/// The program `arctic-vmm`: exit status and stdout of the guest, and a one-line message for an error.
fn the_program_gives_the_guests_status() {
    let program = || Command::new(env!("CARGO_BIN_EXE_arctic-vmm"));
    let run = |code: &[u8]| {
        let file = elf(code);
        program().args(["--no-card", "--memory", "16M", "--elf"]).arg(file.path()).output().unwrap()
    };
    let transcript = run(PRINT_HI);
    assert_eq!((transcript.status.code(), &transcript.stdout[..]), (Some(0), &b"hi"[..]));
    assert_eq!(run(EXIT_0X1234).status.code(), Some(255), "larger than an exit status");
    assert_eq!(run(POWER_OFF).status.code(), Some(0));
    let crashed = run(CRASH);
    assert_eq!(crashed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&crashed.stderr).starts_with("arctic-vmm: the guest crashed"));
    let wrong = program().args(["--kernel", "/dev/null"]).output().unwrap();
    let message = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!((wrong.status.code(), message.lines().count()), (Some(1), 1), "{message}");
    assert!(message.contains("/dev/null is not a bzImage"), "{message}");
}

fn ctrl_c_ends_the_program() {
    // Prints "hi", which shows that it runs, and spins.
    let file = elf(&[&PRINT_HI[..10], SPIN].concat());
    let mut child = Command::new(env!("CARGO_BIN_EXE_arctic-vmm"))
        .args(["--no-card", "--memory", "16M", "--elf"])
        .arg(file.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut greeting = [0; 2];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut greeting).unwrap();
    assert_eq!(&greeting, b"hi");
    // SAFETY: the child is running or is a zombie, so the process ID has not been reused.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
