// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of an inner guest that makes no progress, and a fault of QEMU's emulation that stops guests.
//!
//! QEMU 11.1 delivers an interrupt that VMRUN injects twice if another thread of QEMU stops the processor before the next
//! #VMEXIT: `helper_vmrun` leaves the vector in `exception_index`, and `cpu_handle_interrupt` then returns to
//! `cpu_handle_exception`, which delivers it as an exception, even while interrupts are disabled. The thread for RCU stops
//! the processor after each change of the memory map. The handler of an edge-triggered interrupt then waits for itself,
//! and a lock is taken twice. A stack has the frame of an interrupt with RF set and IF clear, which no processor writes.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::qmp::Monitor;

/// Commands of QEMU's monitor: their results are the state. The registers are read twice, after [`PAUSE`].
const COMMANDS: &[&str] = &["info status", REGISTERS, STACK, "x /16i $rip", "info lapic", "info pic"];
const REGISTERS: &str = "info registers";
const STACK: &str = "x /128gx $rsp";
/// Size of the kernel's stacks. The last quadword of the stack for interrupts is the stack pointer of the interrupted task.
const STACK_BYTES: u64 = 16 << 10;
const PAUSE: Duration = Duration::from_secs(1);

/// Code segment of the 64-bit kernel, the lowest addresses of its memory and of its text, and flags of the processor (AMD64 Vol 2, 3.1.6).
const KERNEL_CS: u64 = 0x10;
const KERNEL: u64 = 0xffff_8000_0000_0000;
const KERNEL_TEXT: u64 = 0xffff_ffff_8000_0000;
const RESERVED_1: u64 = 1 << 1;
const IF: u64 = 1 << 9;
const RF: u64 = 1 << 16;
const FLAGS: u64 = (1 << 22) - 1;

/// An inner guest was stopped by a fault of QEMU's emulation, not by the card or its driver.
#[derive(Debug)]
pub(super) struct DeliveredTwice {
    /// Name of the inner guest.
    pub guest: String,
}

impl fmt::Display for DeliveredTwice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "inner guest {} has stopped: QEMU's emulation of SVM delivered an interrupt to it twice",
            self.guest
        )
    }
}

impl std::error::Error for DeliveredTwice {}

/// The state of an inner guest.
pub(super) struct State {
    /// QEMU's threads in the outer kernel, then the results of the monitor's commands, each after its name.
    pub text: String,
}

impl State {
    /// Reads the state of the guest in the process `id` (QEMU). Takes [`PAUSE`], and the monitor's time.
    pub fn capture(id: u32, monitor: Result<Monitor>) -> Self {
        let mut text = threads(id);
        match monitor {
            Ok(mut monitor) => {
                text += &execute(&mut monitor, REGISTERS);
                thread::sleep(PAUSE);
                COMMANDS.iter().for_each(|command| text += &execute(&mut monitor, command));
                let state = Self { text };
                let link = state.stack_pointer().map(|pointer| (pointer | (STACK_BYTES - 1)) - 7);
                text = state.text;
                if let Some(link) = link {
                    let last = execute(&mut monitor, &format!("x /1gx {link:#x}"));
                    let interrupted = quadwords(&last).first().copied().filter(|pointer| *pointer >= KERNEL);
                    text += &last;
                    if let Some(pointer) = interrupted {
                        text += &execute(&mut monitor, &format!("x /128gx {pointer:#x}"));
                    }
                }
            }
            Err(error) => text += &format!("{error:#}\n"),
        }
        Self { text }
    }

    /// The stack pointer in the registers.
    fn stack_pointer(&self) -> Option<u64> {
        let (_, rest) = self.text.split_once(" RSP=")?;
        u64::from_str_radix(rest.split_whitespace().next()?, 16).ok()
    }

    /// Whether the processor has run with interrupts disabled each time, in the handler of an interrupt that was delivered
    /// while interrupts were disabled.
    pub fn delivered_twice(&self) -> bool {
        let field = |line: &str, name: &str| Some(line.split_once(name)?.1.split(' ').next()?.to_owned());
        let mut states = self.text.lines().filter(|line| line.starts_with("RIP=")).peekable();
        let stopped = states.peek().is_some()
            && states.all(|line| {
                let flags = field(line, "RFL=").and_then(|flags| u64::from_str_radix(&flags, 16).ok());
                flags.is_some_and(|flags| flags & IF == 0) && field(line, "HLT=").as_deref() == Some("0")
            });
        let frame = |values: &[u64]| {
            let &[instruction, segment, flags] = values else { return false };
            instruction >= KERNEL_TEXT
                && segment == KERNEL_CS
                && flags & !FLAGS == 0
                && flags & (RESERVED_1 | IF | RF) == RESERVED_1 | RF
        };
        stopped && quadwords(&self.text).windows(3).any(frame)
    }
}

/// The quadwords of all dumps of memory in `text`, in order.
fn quadwords(text: &str) -> Vec<u64> {
    let values = text.lines().filter_map(|line| {
        let (address, values) = line.split_once(": ")?;
        u64::from_str_radix(address.strip_prefix("0x").unwrap_or(address), 16).ok()?;
        Some(values)
    });
    let words = values.flat_map(str::split_whitespace).filter(|word| word.len() == 18);
    words.filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect()
}

fn execute(monitor: &mut Monitor, command: &str) -> String {
    let result = monitor.execute("human-monitor-command", json!({ "command-line": command }));
    let text = result.map_or_else(|error| format!("{error:#}"), |text| text.as_str().unwrap_or_default().to_owned());
    format!("{command}\n{}\n", text.replace('\r', ""))
}

/// State and kernel stack of each thread of the process `id`.
fn threads(id: u32) -> String {
    let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_else(|error| format!("{error}\n"));
    threads.map(|thread| format!("{}{}", read(thread.path().join("stat")), read(thread.path().join("stack")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a guest that waited for its own handler (kernel 7.2.12, QEMU 11.1.3).
    const STOPPED: &str = "info registers
RIP=ffffffff8143ccf8 RFL=00000006 [-----P-] CPL=0 II=0 A20=1 SMM=0 HLT=0
x /128gx $rsp
ffffc90000003c98: 0xffff88800828ca00 0xffff88800828caa8
ffffc90000003d88: 0xffff88801696be78 0xffffffffffffffff
ffffc90000003d98: 0xffffffff81aa5a40 0x0000000000000010
ffffc90000003da8: 0x0000000000010046 0xffffc90000003dc8
x /16i $rip
0xffffffff8143ccf8:  0f b6 03                 movzbl   (%rbx), %eax
";

    fn delivered_twice(text: &str) -> bool {
        State { text: text.to_owned() }.delivered_twice()
    }

    #[test]
    fn a_frame_with_rf_and_without_if_under_a_spinning_processor_is_the_emulators_fault() {
        assert!(delivered_twice(STOPPED));
    }

    #[test]
    fn the_frame_may_be_on_the_stack_of_the_interrupted_task() {
        let dump = "x /128gx 0xffffc90000653d38\n";
        let (here, frame) = STOPPED.split_once("ffffc90000003d98: ").unwrap();
        let text = format!("{here}x /16i $rip\n{dump}ffffc90000653d98: {frame}");
        assert!(delivered_twice(&text));
        let registers = "RSI=0000000000000001 RBP=0000000000000000 RSP=ffffc90000003f58\n";
        assert_eq!(State { text: registers.into() }.stack_pointer(), Some(0xffff_c900_0000_3f58));
    }

    #[test]
    fn state_of_a_waiting_guest_is_not_the_emulator_fault() {
        for (of, by) in [("HLT=0", "HLT=1"), ("RFL=00000006", "RFL=00000206"), ("10046", "00046"), ("10046", "10246")] {
            assert!(!delivered_twice(&STOPPED.replace(of, by)), "{of} {by}");
        }
        let later = "RIP=ffffffff8143ccf8 RFL=00000246 [-----P-] CPL=0 II=0 A20=1 SMM=0 HLT=0\n";
        assert!(!delivered_twice(&format!("{STOPPED}{later}")));
        assert!(!delivered_twice(""));
    }
}
