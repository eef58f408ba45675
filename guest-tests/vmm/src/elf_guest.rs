// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The bare-metal test guest: freestanding C in `guest/`, compiled by the tests at run time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, io};

use crate::{Boot, Config, Error, Exit, Vm};

/// Source files in `guest/`, in link order.
const SOURCES: [&str; 13] = [
    "entry.S",
    "cpu.c",
    "console.c",
    "main.c",
    "agent.c",
    "pci.c",
    "guc.c",
    "gpu.c",
    "pf.c",
    "vf.c",
    "bench.c",
    "bar_relocation.c",
    "random_access.c",
];
/// Freestanding code that uses only general-purpose registers, since not every KVM can interpret others.
const FLAGS: &str = "-std=gnu11 -O2 -Wall -Wextra -ffreestanding -nostdlib -static -no-pie -fno-pic -fno-pie \
    -mgeneral-regs-only -mno-red-zone -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none \
    -fno-tree-loop-distribute-patterns -Wl,--build-id=none -Wl,-z,noexecstack -T guest.ld";

/// Exit codes of the guest: `enum exit_code` of `guest/console.h`.
pub mod exit {
    /// The test selected by the command line passed.
    pub const PASS: u32 = 0x10;
    /// A check failed; the expected and the actual value are printed on the serial port.
    pub const FAIL: u32 = 0x11;
    /// A processor exception, printed on the serial port.
    pub const EXCEPTION: u32 = 0x12;
    /// The command line is invalid.
    pub const USAGE: u32 = 0x13;
}

/// Error of building the guest.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No compiler.
    #[error("the bare-metal test guest needs gcc ({0}): install it, on Debian with `apt-get install gcc`")]
    NoCompiler(#[source] io::Error),
    /// The output file cannot be written.
    #[error("the bare-metal test guest cannot be written next to the test program: {0}")]
    NoPlace(#[source] io::Error),
    /// The compiler failed.
    #[error("gcc failed to build the bare-metal test guest: {0}")]
    Refused(String),
}

/// Compiles the guest, once per process, and returns the path of the ELF file.
///
/// # Errors
/// A message that states the cause.
pub fn build() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| compile().map_err(|error| error.to_string()));
    built.as_deref().map_err(Clone::clone)
}

/// Returns the reason if tests with the guest cannot run on this host: there is no KVM, or KVM cannot run a minimal
/// guest. With `ARCTIC_KVM=required` in the environment, always returns `None`, so that no test is skipped.
pub fn unable() -> Option<&'static str> {
    static UNABLE: OnceLock<Option<String>> = OnceLock::new();
    let required = std::env::var("ARCTIC_KVM").is_ok_and(|value| value == "required");
    if required { None } else { UNABLE.get_or_init(missing_support).as_deref() }
}

fn missing_support() -> Option<String> {
    // The tests report other errors.
    let boot = Boot::Elf { elf: build().ok()?.into(), command_line: "nothing".into() };
    let config = Config { boot, memory: 32 << 20, cpus: 1, card: None, output: Box::new(io::sink()) };
    match Vm::new(config).and_then(|machine| machine.run(Duration::from_secs(120))) {
        Err(error @ (Error::NoKvm(_) | Error::Lacking(_))) => Some(error.to_string()),
        Ok(Exit::Failed(why)) => Some(format!("this host's KVM does not run bare-metal guests: {why}")),
        _ => None,
    }
}

fn compile() -> Result<PathBuf, BuildError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest");
    // The output is next to the running program, in the target directory. It is built under a unique name and renamed,
    // since other processes may build it concurrently.
    let program = std::env::current_exe().map_err(BuildError::NoPlace)?;
    let elf = program.with_file_name("bare-guest.elf");
    let fresh = program.with_file_name(format!("bare-guest-{}.elf", std::process::id()));
    let mut gcc = Command::new("gcc");
    gcc.current_dir(folder).args(FLAGS.split_ascii_whitespace()).args(SOURCES).arg("-o").arg(&fresh);
    let run = gcc.output().map_err(BuildError::NoCompiler)?;
    if !run.status.success() {
        return Err(BuildError::Refused(String::from_utf8_lossy(&run.stderr).into()));
    }
    fs::rename(&fresh, &elf).map_err(BuildError::NoPlace)?;
    Ok(elf)
}
