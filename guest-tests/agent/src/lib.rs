// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The program inside the guest (`arctic guest`):
//! - `arctic guest work` runs checked batches on every engine.
//! - `arctic guest vfs` enables VFs and runs work on each.
//! - `arctic guest rounds` repeats a short workload while other guests run theirs.
//! - `arctic guest info` prints the card's properties.
//! - `arctic guest clock` prints the guest's clock beside the card's.
//! - `arctic guest submit` repeats an empty submission.
//! - `arctic guest hang` hangs an engine.
//! - `arctic guest load` keeps engines busy for a part of the time, and measures it by each counter.
//! - `arctic guest migrate` moves a VF and checks that its work goes on.
//! - `arctic guest flr` resets a VF repeatedly and checks each reset.
//! - `arctic guest compute` runs kernels through OpenCL and Level Zero.
//! - `arctic guest passthrough` passes VFs on to inner guests.

pub mod batch;
pub mod blt;
pub mod checks;
mod clock;
pub mod device;
pub mod driver;
mod flr;
mod gen6;
mod hang;
mod i915;
mod info;
pub mod kernel_log;
mod load;
mod mapping;
pub mod migrate;
pub mod number;
mod observation;
pub mod passthrough;
pub mod path;
pub mod pci_address;
mod picture;
mod pmu;
pub mod report;
mod stress;
mod submit;
mod sysfs;
pub mod testcard;
mod uapi;
mod vfio;
mod vfs;
pub mod vm;
mod work;
mod xe;

use std::ffi::OsString;
use std::process::ExitCode;

pub use arctic_guest_compute as compute;
use clap::Parser;

#[derive(Parser)]
#[command(name = "arctic guest", about = "Test programs for the card, to be run inside a guest")]
enum Command {
    /// Run checked batches on every engine; exits 0 only if all results are correct
    Work(work::Work),
    /// Print the engines, memory and firmware version as JSON
    Info(info::Info),
    /// Print CLOCK_MONOTONIC and the card's clock at one moment as one line of JSON, for `--guest-clock` of `arctic trace`
    Clock(clock::Clock),
    /// Submit empty batches to one engine, waiting for each before the next
    Submit(submit::Submit),
    /// Hang an engine and copy the driver's dump
    Hang(hang::Hang),
    /// Keep engines busy for a part of the time, and print how long they were busy by the kernel's events, by fdinfo and by the
    /// observation unit
    Load(load::Load),
    /// Save, move, restore and resume a VF that is busy, by the files of xe's PF driver in debugfs
    Migrate(migrate::Migrate),
    /// Reset a VF repeatedly; after each reset it must respond and its local memory must read as zero
    Flr(flr::Flr),
    /// Enable virtual functions, wait for their drivers and run a store, a copy and a fence on each engine class of
    /// each
    Vfs(vfs::Vfs),
    /// Run kernels through Intel's OpenCL and Level Zero drivers, and compare their results with the CPU; the drivers must be
    /// installed (docs/compute.md)
    Compute(compute::Compute),
    /// Pass VF 1 and VF 2 on to inner guests by vfio-pci, in a guest with a virtual IOMMU
    Passthrough(passthrough::Passthrough),
    /// Repeat a store, a copy and a fence on every engine class until a file appears
    Rounds(stress::StressLoop),
}

/// Runs the command in `args`, the arguments after `arctic guest` (`["work", "--out", "results.json"]`). Returns exit
/// code 0 on success, 1 if a check or the driver failed, 2 on a usage error.
pub fn main(args: Vec<OsString>) -> ExitCode {
    let command = match Command::try_parse_from(std::iter::once("arctic guest".into()).chain(args)) {
        Ok(command) => command,
        Err(error) => {
            // An error while printing is ignored and does not affect the exit code.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
        }
    };
    let result = match &command {
        Command::Work(work) => work::run(work),
        Command::Info(info) => info::run(info).map(|()| true),
        Command::Clock(clock) => clock::run(clock).map(|()| true),
        Command::Submit(submit) => submit::run(submit).map(|()| true),
        Command::Hang(hang) => hang::run(hang).map(|()| true),
        Command::Load(load) => load::run(load).map(|()| true),
        Command::Migrate(migrate) => migrate::run(migrate),
        Command::Flr(flr) => flr::run(flr).map(|()| true),
        Command::Vfs(vfs) => vfs::run(vfs),
        Command::Compute(compute) => compute::run(compute),
        Command::Passthrough(passthrough) => passthrough::run(passthrough),
        Command::Rounds(rounds) => stress::run(rounds),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("arctic guest: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_read() {
        use clap::CommandFactory;
        Command::command().debug_assert();
        assert_eq!(main(vec!["nothing".into()]), ExitCode::from(2));
        assert_eq!(main(vec!["--help".into()]), ExitCode::SUCCESS);
    }
}
