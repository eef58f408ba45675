// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Measures the most frequent operations of a driver, through the library and over vfio-user on the same host, with the
//! driver and transports of the conformance suite.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use arctic_guest_runner::interrupt;
use arctic_test_support::actions;
use arctic_test_support::machine::driver::context::{COPY, RENDER};
use arctic_test_support::machine::driver::pf::FREE;
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
    /// From the submission of an empty walker until the seqno behind it is in memory.
    pub walker_to_seqno: f64,
}

/// The context that stores values, on the copy engine.
const COPIES: u32 = 1;
/// The context with walkers, on the render engine.
const WALKERS: u32 = 2;
/// Size of a context's ring, which the driver makes one page.
const RING_BYTES: u32 = 0x1000;
/// A kernel that ends: `(W) send.gtwy (1|M0) null r127 null:0 0x0 0x02000010 {EOT}`.
const END_OF_THREAD: [u64; 2] = [0x0000_0004_8000_0031, 0x0000_0000_3020_7f0c];
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
    let scratch = pf.global(SCRATCH);
    let store = |value: u32| mi::store_data_imm(scratch, value);
    let mut copies = Submitter { context: COPIES, bytes: 32, tail: 32 };
    pf.submit(machine, COPIES, COPY, &copies.padded(&store(0)));
    let submission_to_seqno = average_seconds(2000, |value| {
        copies.submit(machine, &mut pf, &store(value + 1));
        until(|| pf.peek(machine, SCRATCH) == value + 1)
    })?;
    pf.handle_interrupt(machine);
    machine.take_msis(0);
    let mut total = 0.0;
    for value in 0..INTERRUPTS {
        total += average_seconds(1, |_| {
            copies.submit(machine, &mut pf, &[&store(value)[..], &[mi::USER_INTERRUPT]].concat());
            until(|| machine.take_msis(0) != 0)
        })?;
        pf.handle_interrupt(machine);
    }
    let submission_to_interrupt = total / f64::from(INTERRUPTS);
    let walker_to_seqno = measure_walker(machine, &mut pf)?;
    Ok(Durations { register_read, notification, submission_to_seqno, submission_to_interrupt, walker_to_seqno })
}

/// Measures a walker of one group of one thread, whose kernel ends at once.
fn measure_walker(machine: &mut dyn Machine, pf: &mut Driver) -> Result<f64> {
    for (at, half) in (FREE..).step_by(8).zip(END_OF_THREAD) {
        machine.set_bar64(0, 2, at, half);
    }
    let root = pf.map(machine, FREE, 2 << 20);
    let scratch = pf.global(SCRATCH);
    let store = |value: u32| mi::store_data_imm(scratch, value);
    let mut walkers = Submitter { context: WALKERS, bytes: 256, tail: 256 };
    pf.submit_process(machine, WALKERS, RENDER, root, &walkers.padded(&store(0)));
    // The instruction base of a new context is 0, as is the offset of the kernel. SIMD8 with all channels, one group of one
    // thread (EU-020).
    let mut walker = [0; 39];
    for (dword, value) in [(0, 0x7208_0025), (4, 1 << 25), (5, 0xff), (7, 1), (8, 1), (9, 1), (23, 1)] {
        walker[dword] = value;
    }
    average_seconds(2000, |value| {
        walkers.submit(machine, pf, &[&walker[..], &store(value + 1)].concat());
        until(|| pf.peek(machine, SCRATCH) == value + 1)
    })
}

/// A context that executes one submission after the other.
struct Submitter {
    context: u32,
    /// Size of a submission. Divides the size of the ring, so that none crosses its end.
    bytes: u32,
    /// Ring offset of the next submission; submissions are written to the ring consecutively.
    tail: u32,
}

impl Submitter {
    /// Commands, and MI_NOOPs behind them.
    fn padded(&self, commands: &[u32]) -> Vec<u32> {
        let mut padded = commands.to_vec();
        padded.resize(self.bytes as usize / 4, 0);
        padded
    }

    fn submit(&mut self, machine: &mut dyn Machine, pf: &mut Driver, commands: &[u32]) {
        pf.poke(machine, Driver::ring(self.context) + u64::from(self.tail), &self.padded(commands));
        self.tail = (self.tail + self.bytes) % RING_BYTES;
        pf.set_ring_tail(machine, self.context, self.tail);
        pf.request(machine, actions::SCHED_CONTEXT, &[self.context]);
    }
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
