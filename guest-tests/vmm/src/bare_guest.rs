//! The bare-metal test guest: freestanding C in `guest/`, which the tests compile when they run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, io};

use crate::{Boot, Config, Error, Exit, Vm};

/// What the linker puts together, in `guest/`.
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
    "moves.c",
    "chaos.c",
];
/// No operating system, no libraries, no registers but the general ones, which is all that every KVM interprets.
const FLAGS: &str = "-std=gnu11 -O2 -Wall -Wextra -ffreestanding -nostdlib -static -no-pie -fno-pic -fno-pie \
    -mgeneral-regs-only -mno-red-zone -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none \
    -fno-tree-loop-distribute-patterns -Wl,--build-id=none -Wl,-z,noexecstack -T guest.ld";

/// How the guest ends: `enum exit_code` of `guest/console.h`.
pub mod exit {
    /// The test of the command line went through.
    pub const PASS: u32 = 0x10;
    /// A line on the serial port says what was expected and what was seen.
    pub const FAIL: u32 = 0x11;
    /// A processor exception, which a line describes.
    pub const EXCEPTION: u32 = 0x12;
    /// The command line asks for what the guest cannot do.
    pub const USAGE: u32 = 0x13;
}

/// Why there is no guest.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No compiler.
    #[error("the bare-metal test guest needs gcc ({0}): install it, on Debian with `apt-get install gcc`")]
    NoCompiler(#[source] io::Error),
    /// Nowhere to put it.
    #[error("the bare-metal test guest cannot be put beside the program that wants it: {0}")]
    NoPlace(#[source] io::Error),
    /// The compiler refuses the source.
    #[error("gcc refuses the bare-metal test guest: {0}")]
    Refused(String),
}

/// Compiles the guest, once a process, and answers where the ELF file is.
///
/// # Errors
/// A text that says what is missing.
pub fn build() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| compile().map_err(|error| error.to_string()));
    built.as_deref().map_err(Clone::clone)
}

/// Why tests with the guest are to be left out on this host, if they are: there is no KVM, or KVM itself gives up on a
/// guest that only says that it has nothing to do. With `ARCTIC_KVM=required` in the environment nothing is left out.
pub fn unable() -> Option<&'static str> {
    static UNABLE: OnceLock<Option<String>> = OnceLock::new();
    let required = std::env::var("ARCTIC_KVM").is_ok_and(|value| value == "required");
    if required { None } else { UNABLE.get_or_init(look).as_deref() }
}

fn look() -> Option<String> {
    // Whatever else is wrong is for the tests to find.
    let boot = Boot::Bare { elf: build().ok()?.into(), command_line: "nothing".into() };
    let config = Config { boot, memory: 32 << 20, cpus: 1, card: None, output: Box::new(io::sink()) };
    match Vm::new(config).and_then(|machine| machine.run(Duration::from_secs(120))) {
        Err(error @ (Error::NoKvm(_) | Error::Lacking(_))) => Some(error.to_string()),
        Ok(Exit::Failed(why)) => Some(format!("this host's KVM does not run bare-metal guests: {why}")),
        _ => None,
    }
}

fn compile() -> Result<PathBuf, BuildError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest");
    // Beside the program that runs, which is in the target folder; others may be at it as well.
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
