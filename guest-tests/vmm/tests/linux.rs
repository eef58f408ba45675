// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Linux on the reference VMM: an unmodified Debian kernel with its xe driver on PF and VFs. KVM cannot run Linux on
//! most CI hosts, so the VMM runs in a VM that QEMU emulates and in which KVM can (see `arctic_guest_runner::nested`).
//! The test therefore covers the VMM with Linux's own KVM on any host.
//!
//! A separate test program, since it is also installed in the guest, where it runs as `linux guest work`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use arctic_gpu::gpu::Model;
use arctic_guest_runner::image::nested::Extra;
use arctic_guest_runner::nested;
use arctic_guest_runner::progress::StderrProgress;
use libtest_mimic::{Arguments, Failed, Trial};

const TEST: &str = "linux_boots_and_xe_works_on_pf_and_vfs";
/// With the PF, more functions than are accessible without ARI.
const VFS: u8 = 9;
/// Four times the run time on a host with two idle cores.
const LIMIT: Duration = Duration::from_secs(400);

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "guest") {
        return arctic_guest_agent::main(arguments.collect());
    }
    let trial = Trial::test(TEST, || linux_boots_and_xe_works_on_pf_and_vfs().map_err(Failed::from));
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

/// The kernel discovers CPUs, interrupts, configuration space and windows through ACPI, and assigns the BARs of PF and
/// VFs below the root port. xe drives the PF through ioeventfds, irqfds and mapped memory and passes all checks. It
/// enables VFs, drives them and disables them, twice. The VM powers off. Neither kernel logs an error, no access to a
/// mappable range is trapped, and no unmodelled register is accessed.
fn linux_boots_and_xe_works_on_pf_and_vfs() -> Result<(), String> {
    let text = |error: anyhow::Error| format!("{error:#}");
    let firmware = tempfile::tempdir().map_err(|error| error.to_string())?;
    for file in arctic_gpu::firmware::files() {
        let path = firmware.path().join(file.path);
        let folder = path.parent().unwrap_or(firmware.path());
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, file.bytes))
            .map_err(|error| error.to_string())?;
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let vfs = VFS.to_string();
    let card = arctic_gpu::card_file::load("small").map_err(|error| error.to_string())?;
    let extra = Extra {
        device: card.identity().device,
        vmm: Path::new(env!("CARGO_BIN_EXE_arctic-vmm")),
        arguments: &["--memory", "768M", "--cpus", "2", "--card", "small", "--vfs", &vfs],
        program: &program,
        firmware: firmware.path(),
        vfs: VFS,
    };
    let outcome = nested::run(&extra, LIMIT, &StderrProgress::default()).map_err(text)?;
    let mut problems = outcome.problems();
    if outcome.proof("cpus") != Some("2") {
        problems.push(format!("expected two CPUs: {:?}", outcome.proof("cpus")));
    }
    for wanted in ["doorbells 0, ggtt 0, local_memory 0,", "unmodelled registers: none"] {
        if !outcome.log.contains(wanted) {
            problems.push(format!("the card's report does not contain \"{wanted}\""));
        }
    }
    let log = outcome.folder.join("console.log");
    if problems.is_empty() {
        println!("{} s, log: {}", outcome.took.as_secs(), log.display());
        return Ok(());
    }
    Err(format!("{}\n(log: {})", problems.join("\n"), log.display()))
}
