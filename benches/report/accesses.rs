//! What a driver does most, through the library and over vfio-user on the same machine: by the conformance suite's driver
//! and doors.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::door::Machine;
use crate::driver::context::{COPY, USER_INTERRUPT, store};
use crate::driver::{BELL, Driver, SCRATCH, VF_CAP};
use crate::{in_process, over_sockets};

/// What is measured, in the order of [`Seconds`].
pub const NAMES: [&str; 4] = ["register read", "doorbell", "submission to its seqno", "submission to its interrupt"];

/// Seconds that each of [`NAMES`] takes.
pub type Seconds = [f64; NAMES.len()];

/// The context that works.
const CONTEXT: u32 = 1;
/// Bytes of its ring, and of what one submission adds.
const RING_BYTES: u32 = 0x1000;
const STEP: u32 = 32;
/// Nothing takes as long by itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// Through the library, and over vfio-user with another project's client.
pub fn measure() -> Result<[Seconds; 2]> {
    let library = through(&mut *in_process::native(), 100)?;
    let vfio_user = through(&mut *over_sockets::split(), 1)?;
    Ok([library, vfio_user])
}

/// `often` is how many times more an access can be repeated than over a socket.
fn through(machine: &mut dyn Machine, often: u32) -> Result<Seconds> {
    let mut pf = Driver::pf_up(machine);
    let register = each(2000 * often, |_| {
        machine.register(0, VF_CAP);
        Ok(())
    })?;
    let doorbell = each(2000 * often, |_| {
        machine.set_register(0, BELL, 0);
        Ok(())
    })?;
    pf.submit(machine, CONTEXT, COPY, &store(pf.global(SCRATCH), 0));
    // The first submission of each kind is at the ring's next place.
    let mut place = STEP;
    let mut submit = |machine: &mut dyn Machine, pf: &mut Driver, value: u32, interrupts: bool| {
        let tells = if interrupts { [USER_INTERRUPT, 0, 0, 0] } else { [0; 4] };
        let commands: [u32; 8] = std::array::from_fn(|n| match n {
            0..4 => store(pf.global(SCRATCH), value)[n],
            _ => tells[n - 4],
        });
        pf.poke(machine, Driver::ring(CONTEXT) + u64::from(place), &commands);
        place = (place + STEP) % RING_BYTES;
        pf.poke(machine, Driver::image(CONTEXT) + 0x1000 + 7 * 4, &[place]);
        pf.tell(machine, 0x1000, &[CONTEXT]);
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
    Ok([register, doorbell, seqno, interrupt])
}

/// Seconds that `work` takes, on average of `rounds`.
fn each(rounds: u32, mut work: impl FnMut(u32) -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    (0..rounds).try_for_each(&mut work)?;
    Ok(start.elapsed().as_secs_f64() / f64::from(rounds))
}

/// Waits as a driver does that has nothing else to do.
fn until(mut holds: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !holds() {
        ensure!(start.elapsed() < PATIENCE, "the card does not answer");
        spin_loop();
    }
    Ok(())
}
