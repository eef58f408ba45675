// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic-vmm`: boots a guest on KVM with the card in the same process.

mod cli;
mod terminal;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use arctic_vmm::{Exit, Vm};
use clap::Parser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::PoisonError;

/// Exit status after Ctrl-C.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    match run(cli::Args::parse()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("arctic-vmm: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: cli::Args) -> Result<u8, String> {
    let text = |error: arctic_vmm::Error| error.to_string();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| error.to_string())?;
    let vm = Vm::new(args.config()?).map_err(text)?;
    terminal::type_into(vm.console().clone()).map_err(|error| error.to_string())?;
    let keys = Arc::new(Mutex::new(terminal::KeyByKey::set()));
    let give_back = |keys: &Mutex<Option<terminal::KeyByKey>>| {
        keys.lock().unwrap_or_else(PoisonError::into_inner).take();
    };
    let mut running = vm.start().map_err(text)?;

    let interrupted = Arc::new(AtomicBool::new(false));
    let (stopper, stopped, terminal) = (running.stopper(), interrupted.clone(), keys.clone());
    thread::spawn(move || {
        for _ in signals.forever() {
            // A vCPU thread may block while writing to a full pipe. A second signal exits without waiting for it.
            if stopped.swap(true, Ordering::AcqRel) {
                give_back(&terminal);
                std::process::exit(INTERRUPTED.into());
            }
            stopper.stop();
        }
    });
    let exit = running.wait(None).unwrap_or(Exit::Killed);
    give_back(&keys);
    // The report of unmodelled accesses is always printed.
    if let Some(card) = running.vm().card() {
        eprint!("{}", card.report());
    }
    drop(running);
    match exit {
        Exit::PowerOff | Exit::Reset => Ok(0),
        // The exit status has 8 bits. A value other than 0 must not be truncated to 0.
        Exit::Value(value) => Ok(u8::try_from(value).unwrap_or(u8::MAX)),
        Exit::Killed if interrupted.load(Ordering::Acquire) => Ok(INTERRUPTED),
        Exit::Killed => Ok(1),
        Exit::TripleFault => Err("the guest crashed: a CPU had a triple fault".into()),
        Exit::Failed(why) => Err(why),
    }
}
