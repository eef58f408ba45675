// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Measures the most frequent operations of a driver, through the library and over vfio-user on the same host, with the
//! driver and transports of the conformance suite.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use arctic_test_support::machine::driver::context::COPY;
use arctic_test_support::machine::driver::{Driver, GUC_HOST_INTERRUPT, SCRATCH, VF_CAP};
use arctic_test_support::machine::transport::Machine;
use arctic_test_support::machine::{in_process, vfio_user};
use arctic_test_support::mi;

/// The measured operations, in the order of [`Seconds`].
pub const NAMES: [&str; 4] =
    ["register read", "notification of the GuC", "submission to its seqno", "submission to its interrupt"];

/// Duration of each of [`NAMES`] in seconds.
pub type Seconds = [f64; NAMES.len()];

/// The context that executes the submissions.
const CONTEXT: u32 = 1;
/// Size in bytes of its ring and of one submission.
const RING_BYTES: u32 = 0x1000;
const STEP: u32 = 32;
/// Time limit; no operation takes this long normally.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Measures the operations through the library, and over vfio-user with the client of another project.
pub fn measure() -> Result<[Seconds; 2]> {
    let library = through(&mut *in_process::native(), 100)?;
    let vfio_user = through(&mut *vfio_user::split(), 1)?;
    Ok([library, vfio_user])
}

/// `often` is the factor for the number of accesses, relative to the number over a socket.
fn through(machine: &mut dyn Machine, often: u32) -> Result<Seconds> {
    let mut pf = Driver::pf_up(machine);
    let register = each(2000 * often, |_| {
        machine.register(0, VF_CAP);
        Ok(())
    })?;
    let notification = each(2000 * often, |_| {
        machine.set_register(0, GUC_HOST_INTERRUPT, 0);
        Ok(())
    })?;
    pf.submit(machine, CONTEXT, COPY, &mi::store_data_imm(pf.global(SCRATCH), 0));
    // Ring offset of the next submission; submissions are written to the ring consecutively.
    let mut place = STEP;
    let mut submit = |machine: &mut dyn Machine, pf: &mut Driver, value: u32, interrupts: bool| {
        let interrupt_commands = if interrupts { [mi::USER_INTERRUPT, 0, 0, 0] } else { [0; 4] };
        let commands: [u32; 8] = std::array::from_fn(|n| match n {
            0..4 => mi::store_data_imm(pf.global(SCRATCH), value)[n],
            _ => interrupt_commands[n - 4],
        });
        pf.poke(machine, Driver::ring(CONTEXT) + u64::from(place), &commands);
        place = (place + STEP) % RING_BYTES;
        pf.poke(machine, Driver::image(CONTEXT) + 0x1000 + 7 * 4, &[place]);
        pf.request(machine, 0x1000, &[CONTEXT]);
    };
    let seqno = each(2000, |value| {
        submit(machine, &mut pf, value + 1, false);
        until(|| pf.peek(machine, SCRATCH) == value + 1)
    })?;
    pf.handle_interrupt(machine);
    machine.take_msis(0);
    let interrupt = each(1000, |value| {
        submit(machine, &mut pf, value, true);
        until(|| machine.take_msis(0) != 0)?;
        pf.handle_interrupt(machine);
        Ok(())
    })?;
    Ok([register, notification, seqno, interrupt])
}

/// Average duration of `work` over `rounds`, in seconds.
fn each(rounds: u32, mut work: impl FnMut(u32) -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    (0..rounds).try_for_each(&mut work)?;
    Ok(start.elapsed().as_secs_f64() / f64::from(rounds))
}

/// Waits by busy polling, like a driver that has nothing else to do.
fn until(mut holds: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !holds() {
        ensure!(start.elapsed() < TIMEOUT, "the card does not respond");
        spin_loop();
    }
    Ok(())
}
