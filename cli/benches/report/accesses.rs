// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Measures the most frequent operations of a driver, through the library and over vfio-user on the same host, with the
//! driver and transports of the conformance suite.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use arctic_guest_runner::interrupt;
use arctic_test_support::actions;
use arctic_test_support::machine::driver::context::COPY;
use arctic_test_support::machine::driver::{Driver, GUC_HOST_INTERRUPT, SCRATCH, VF_CAP};
use arctic_test_support::machine::transport::Machine;
use arctic_test_support::machine::{in_process, vfio_user};
use arctic_test_support::mi;

/// Average durations in seconds.
pub struct Durations {
    /// A register read.
    pub register_read: f64,
    /// A notification of the GuC.
    pub notification: f64,
    /// From a submission until its seqno is in memory.
    pub submission_to_seqno: f64,
    /// From a submission until its MSI. The interrupt handler, which makes about 10 accesses, is not included.
    pub submission_to_interrupt: f64,
}

/// The context that executes the submissions.
const CONTEXT: u32 = 1;
/// Size of its ring, which the driver makes one page.
const RING_BYTES: u32 = 0x1000;
/// Size of one submission: a store, and a user interrupt or as many MI_NOOPs. Divides the size of the ring.
const SUBMISSION_BYTES: u32 = 32;
/// Number of submissions with an interrupt.
const INTERRUPTS: u32 = 1000;
/// Time limit; no operation takes this long normally.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Measures the operations through the library, and over vfio-user with Cloud Hypervisor's vfio-user client.
pub fn measure() -> Result<[Durations; 2]> {
    let library = measure_transport(&mut *in_process::native(), 100)?;
    let vfio_user = measure_transport(&mut *vfio_user::split(), 1)?;
    Ok([library, vfio_user])
}

/// `access_factor` is the number of register accesses and notifications relative to those over vfio-user; submissions
/// are not scaled.
fn measure_transport(machine: &mut dyn Machine, access_factor: u32) -> Result<Durations> {
    let mut pf = Driver::pf_up(machine);
    let accesses = 2000 * access_factor;
    let register_read = average_seconds(accesses, |_| {
        machine.register(0, VF_CAP);
        Ok(())
    })?;
    let notification = average_seconds(accesses, |_| {
        machine.set_register(0, GUC_HOST_INTERRUPT, 0);
        Ok(())
    })?;
    pf.submit(machine, CONTEXT, COPY, &mi::store_data_imm(pf.global(SCRATCH), 0));
    // Ring offset of the next submission; submissions are written to the ring consecutively.
    let mut tail = SUBMISSION_BYTES;
    let mut submit = |machine: &mut dyn Machine, pf: &mut Driver, value: u32, interrupts: bool| {
        let interrupt_commands = if interrupts { [mi::USER_INTERRUPT, 0, 0, 0] } else { [0; 4] };
        let commands: [u32; 8] = std::array::from_fn(|n| match n {
            0..4 => mi::store_data_imm(pf.global(SCRATCH), value)[n],
            _ => interrupt_commands[n - 4],
        });
        pf.poke(machine, Driver::ring(CONTEXT) + u64::from(tail), &commands);
        tail = (tail + SUBMISSION_BYTES) % RING_BYTES;
        pf.set_ring_tail(machine, CONTEXT, tail);
        pf.request(machine, actions::SCHED_CONTEXT, &[CONTEXT]);
    };
    let submission_to_seqno = average_seconds(2000, |value| {
        submit(machine, &mut pf, value + 1, false);
        until(|| pf.peek(machine, SCRATCH) == value + 1)
    })?;
    pf.handle_interrupt(machine);
    machine.take_msis(0);
    let mut total = 0.0;
    for value in 0..INTERRUPTS {
        total += average_seconds(1, |_| {
            submit(machine, &mut pf, value, true);
            until(|| machine.take_msis(0) != 0)
        })?;
        pf.handle_interrupt(machine);
    }
    let submission_to_interrupt = total / f64::from(INTERRUPTS);
    Ok(Durations { register_read, notification, submission_to_seqno, submission_to_interrupt })
}

/// Average duration of `work` over `rounds`, in seconds. A signal is noticed before the rounds and in [`until`]: rounds that
/// do not wait take less than a second in all, and are not to be measured with the check.
fn average_seconds(rounds: u32, mut work: impl FnMut(u32) -> Result<()>) -> Result<f64> {
    interrupt::check()?;
    let start = Instant::now();
    (0..rounds).try_for_each(&mut work)?;
    Ok(start.elapsed().as_secs_f64() / f64::from(rounds))
}

/// Polls without sleeping. Fails after [`TIMEOUT`], or after a signal.
fn until(mut holds: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !holds() {
        interrupt::check()?;
        ensure!(start.elapsed() < TIMEOUT, "the card does not respond");
        spin_loop();
    }
    Ok(())
}
