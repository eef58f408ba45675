// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Requests that the card executes while it waits for guest memory of the same client, which replies only after it has
//! sent the request: the access must not fail, and no work that the request does not end may be lost.

use std::time::{Duration, Instant};

use arctic_test_support::machine::bus::{enable_vfs, flr};
use arctic_test_support::machine::driver::context::COPY;
use arctic_test_support::machine::driver::{Driver, SCRATCH};
use arctic_test_support::machine::transport::Machine;
use arctic_test_support::machine::vfio_user::VfioUser;
use arctic_test_support::mi;
use arctic_test_support::poll::eventually;

/// Offset in the driver's memory that an endless batch counts in.
const COUNTER: u64 = SCRATCH + 32;
/// GDRST, and its bit of the first video engine, which is idle.
const RESET: u32 = 0x941c;
const VIDEO: u32 = 1 << 5;
/// VF_SW_FLAG(0) of VF 1 in the PF's registers.
const MAILBOX_OF_VF1: u32 = 0x19_0640;

/// No access fails sooner: a client has 400 ms in which others wait for it, and a second otherwise (`src/vfio_user/budget.rs`).
const LEAST_WAIT: Duration = Duration::from_millis(250);

/// A request of the client: its name, and what the guest or its VMM does.
type Request = (&'static str, fn(&mut dyn Machine));

/// Requests after which the PF's work goes on.
const HARMLESS: &[Request] = &[
    ("clear of VF Enable", |machine| enable_vfs(machine, 0)),
    ("FLR of a VF", |machine| flr(machine, 1)),
    ("reset of a VF by its VMM", |machine| machine.reset(1)),
    ("reset of an idle engine", |machine| machine.set_register(0, RESET, VIDEO)),
    ("write of a register", |machine| machine.set_register(0, MAILBOX_OF_VF1, 0)),
];

/// Requests that end all work.
const RESETS: &[Request] =
    &[("FLR of the PF", |machine| flr(machine, 0)), ("reset of the PF by its VMM", |machine| machine.reset(0))];

/// Starts context 1, which counts in memory in an endless loop.
fn start_counting(pf: &mut Driver, machine: &mut dyn Machine) {
    let batch = pf.global(Driver::batch(1));
    let add_one = mi::atomic_increment(pf.global(COUNTER));
    pf.poke(machine, Driver::batch(1), &[&add_one[..], &mi::batch_buffer_start(batch)].concat());
    pf.submit(machine, 1, COPY, &mi::batch_buffer_start(batch));
    wait_for_counts(pf, machine, "the start");
}

fn wait_for_counts(pf: &Driver, machine: &mut dyn Machine, what: &str) {
    let from = pf.peek(machine, COUNTER);
    eventually(&format!("counts after: {what}"), || pf.peek(machine, COUNTER).wrapping_sub(from) > 10);
}

/// The engine waits for its batch, or for the operand of an atomic operation. It may then read its batch again, because the
/// request ended its step.
pub fn an_engine_continues() {
    for (name, request) in HARMLESS {
        let mut machine = VfioUser::by_messages();
        let late = machine.late_replies();
        let mut pf = Driver::pf_with_vfs(&mut machine, 2);
        start_counting(&mut pf, &mut machine);
        late.hold(1);
        late.wait_for_one(name);
        request(&mut machine);
        wait_for_counts(&pf, &mut machine, name);
    }
}

/// The GuC waits for the ring of requests, with its lock held, which most of the requests need.
pub fn the_guc_continues() {
    for (name, request) in HARMLESS {
        let mut machine = VfioUser::by_messages();
        let late = machine.late_replies();
        let mut pf = Driver::pf_with_vfs(&mut machine, 2);
        pf.submit(&mut machine, 1, COPY, &mi::store_data_imm(pf.global(SCRATCH), 7));
        pf.wait_for(&mut machine, SCRATCH, 7);
        // The first of the two is the notification of the GuC.
        late.hold(2);
        pf.disable(&mut machine, 1);
        late.wait_for_one(name);
        let begun = Instant::now();
        request(&mut machine);
        pf.wait_disabled(&mut machine, 1);
        let took = begun.elapsed();
        // The GuC may also read the same dword of its ring in the next step. An access fails after a longer time only.
        let repeated = late.repeated();
        assert!(repeated == 0 || took < LEAST_WAIT, "{name}: {repeated} accesses have failed, after {took:?}");
    }
}

/// A reset of the card ends the access, and a driver that starts afterwards works.
pub fn a_reset_ends_the_access() {
    for (name, request) in RESETS {
        let mut machine = VfioUser::by_messages();
        let late = machine.late_replies();
        let mut pf = Driver::pf_with_vfs(&mut machine, 2);
        start_counting(&mut pf, &mut machine);
        late.hold(1);
        late.wait_for_one(name);
        request(&mut machine);
        let mut pf = Driver::pf_with_vfs(&mut machine, 2);
        pf.submit(&mut machine, 1, COPY, &mi::store_data_imm(pf.global(SCRATCH), 8));
        pf.wait_for(&mut machine, SCRATCH, 8);
    }
}
