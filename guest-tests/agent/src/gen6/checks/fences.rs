// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Order of submissions: by sync objects, by fence files, by the objects that they use; and waits for objects.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::{CheckEnvironment, Found, passed};
use crate::batch::PostSync;
use crate::device::Engine;
use crate::gen6::batch::Batch;
use crate::gen6::gem::{Context, Object, Order, Program};
use crate::number::count;

/// Offsets in the memory of a chain: the number of the last submission, and a log of two timestamps for each.
const LAST: u32 = 0;
const LOG: u32 = 64;
/// Time in which work that does not wait for its fence would have run.
const EARLY: Duration = Duration::from_millis(20);

/// A batch that runs until the CPU ends it.
struct Spinner<'d> {
    program: Program<'d>,
}

impl<'d> Spinner<'d> {
    fn new(env: &CheckEnvironment<'d>) -> Result<Self> {
        let program = Program::new(env.device, |batch| {
            batch.push(&[0]).jump_to_start();
        })?;
        Ok(Spinner { program })
    }

    /// Replaces the first command by the end of the batch.
    fn end(&self) {
        self.program.object().memory().write_u32(0, arctic_mi::BATCH_BUFFER_END);
    }
}

impl Drop for Spinner<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Submission `link` of a chain: it logs when it began and ended, and that it was the last to run.
fn link<'o>(batch: &mut Batch<'o>, engine: Engine, memory: &'o Object<'o>, link: usize) {
    let at = LOG + 16 * count(link);
    batch.flush(engine, memory, at, PostSync::Timestamp);
    batch.store_dword(memory, LAST, count(link));
    batch.flush(engine, memory, at + 8, PostSync::Timestamp);
}

/// Checks that nothing has run before the spinner ended.
fn must_wait(memory: &Object<'_>) -> Result<()> {
    std::thread::sleep(EARLY);
    let early = memory.memory().read_u32(0);
    ensure!(early == 0, "submission {early} ran before the submission that it depends on");
    Ok(())
}

/// Checks that submissions 1 to `links` ran in order, each after the end of the one before.
fn must_be_in_order(memory: &Object<'_>, links: usize) -> Result<()> {
    let last = memory.memory().read_u32(0);
    ensure!(last as usize == links, "the last of {links} submissions to run was {last}");
    let at = |index: usize| memory.memory().read_u64(LOG as usize + 8 * index);
    for index in 2..2 * links + 1 {
        let (earlier, later) = (at(index), at(index + 1));
        ensure!(
            earlier != 0 && earlier <= later,
            "submission {} began or ended too early: timestamp {later:#x} after {earlier:#x}",
            index.div_ceil(2)
        );
    }
    Ok(())
}

/// Submissions alternate between two contexts of one engine; each waits for the sync object of the one before. The first
/// spins until the CPU ends it.
pub fn chain(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    const LINKS: usize = 12;
    let memory = env.object(4096)?;
    let contexts = [Context::new(env.device, engine)?, Context::new(env.device, engine)?];
    let programs = (1..=LINKS)
        .map(|number| Ok(Program::new(env.device, |batch| link(batch, engine, &memory, number))?))
        .collect::<Result<Vec<_>>>()?;
    let spinner = Spinner::new(env)?;
    let mut last = contexts[0].submit(&spinner.program, Order::default())?;
    for (index, program) in programs.iter().enumerate() {
        last = contexts[index % 2].submit(program, Order { after: Some(&last), explicit: true, ..Order::default() })?;
    }
    must_wait(&memory)?;
    spinner.end();
    contexts[(LINKS - 1) % 2].wait(&last, env.timeout)?;
    must_be_in_order(&memory, LINKS)?;
    passed(format!("{LINKS} submissions of two contexts, each after the other's"))
}

/// The same with one fence file for each submission.
pub fn files(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    const LINKS: usize = 6;
    chain_of_files(env, &[engine], LINKS)?;
    passed(format!("{LINKS} submissions, each after the fence file of the one before"))
}

/// Each engine in turn waits for the fence file of the one before, three times around.
pub fn ring(env: &CheckEnvironment<'_>, engines: &[Engine]) -> Result<Found> {
    let links = 3 * engines.len();
    chain_of_files(env, engines, links)?;
    passed(format!("{links} submissions on {} engines, each after the fence file of the one before", engines.len()))
}

fn chain_of_files(env: &CheckEnvironment<'_>, engines: &[Engine], links: usize) -> Result<()> {
    let memory = env.object(4096)?;
    let contexts =
        engines.iter().map(|engine| Ok(Context::new(env.device, *engine)?)).collect::<Result<Vec<Context<'_>>>>()?;
    let programs = (1..=links)
        .map(|number| {
            let engine = engines[number % engines.len()];
            Ok(Program::new(env.device, |batch| link(batch, engine, &memory, number))?)
        })
        .collect::<Result<Vec<_>>>()?;
    let spinner = Spinner::new(env)?;
    let mut last: OwnedFd = contexts[0].submit_file(&spinner.program, Order::default())?;
    for (index, program) in programs.iter().enumerate() {
        let order = Order { after_file: Some(&last), explicit: true, ..Order::default() };
        last = contexts[(index + 1) % engines.len()].submit_file(program, order)?;
    }
    must_wait(&memory)?;
    spinner.end();
    contexts[links % engines.len()].wait_file(&last, env.timeout)?;
    must_be_in_order(&memory, links)
}

/// Without fences, the driver orders submissions of all engines that write the same object.
pub fn order_by_objects(env: &CheckEnvironment<'_>, engines: &[Engine]) -> Result<Found> {
    let links = 3 * engines.len();
    let memory = env.object(4096)?;
    let contexts =
        engines.iter().map(|engine| Ok(Context::new(env.device, *engine)?)).collect::<Result<Vec<Context<'_>>>>()?;
    let spinner = Program::new(env.device, |batch| {
        batch.push(&[0]).store_dword(&memory, 32, 1).jump_to_start();
    })?;
    let programs = (1..=links)
        .map(|number| {
            let engine = engines[number % engines.len()];
            Ok(Program::new(env.device, |batch| link(batch, engine, &memory, number))?)
        })
        .collect::<Result<Vec<_>>>()?;
    let spinner = Spinner { program: spinner };
    contexts[0].submit(&spinner.program, Order::default())?;
    let mut last = None;
    for (index, program) in programs.iter().enumerate() {
        let number = (index + 1) % engines.len();
        last = Some((number, contexts[number].submit(program, Order::default())?));
    }
    must_wait(&memory)?;
    spinner.end();
    if let Some((number, fence)) = &last {
        contexts[*number].wait(fence, env.timeout)?;
    }
    must_be_in_order(&memory, links)?;
    passed(format!("{links} submissions on {} engines, ordered by the object that they write", engines.len()))
}

/// An object is busy while a batch uses it; a wait with a time limit ends at the limit, one without at the batch's end.
pub fn waits(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    let spinner = Spinner::new(env)?;
    let context = Context::new(env.device, engine)?;
    let object = spinner.program.object();
    ensure!(!object.is_busy()?, "an unused object is busy");
    let fence = context.submit(&spinner.program, Order::default())?;
    ensure!(object.is_busy()?, "the object of a running batch is not busy");
    ensure!(object.wait(EARLY).is_err(), "a wait for the object of a running batch ended");
    ensure!(fence.wait(EARLY).is_err(), "the sync object of a running batch has signalled");
    spinner.end();
    object.wait(env.timeout)?;
    context.wait(&fence, env.timeout)?;
    ensure!(!object.is_busy()?, "the object of a finished batch is busy");
    passed("busy, waits with and without success")
}
