// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Measurements of trapped accesses (of a probe and of a submission in a guest) and of the card's memory with and
//! without a guest.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use arctic_gpu::gpu::Model;
use arctic_guest_runner::boot::{self, Mode, Sink};
use arctic_guest_runner::card::CardProcess;
use arctic_guest_runner::guest_process::Options;
use arctic_guest_runner::process;
use arctic_guest_runner::progress::StderrProgress;
use vmm_sys_util::tempdir::TempDir;

use crate::memory::{self, MemoryUse};
use crate::trace::{self, Access};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_arctic");
/// The card under test.
const CARD: &str = "flex170";
/// RCS0's RING_TIMESTAMP, which `arctic guest submit` reads before each phase and after the last one.
const MARK: u64 = 0x2358;
/// Number of submissions in the measured phase; the phase that is subtracted has none. If one interrupt covers several
/// submissions, fewer accesses are counted per submission. Host load therefore can only lower the result; an increase
/// is due to the card or the driver.
const COUNT: u32 = 500;
/// Time from the start of the guest's job until the guest is idle.
const SETTLED: Duration = Duration::from_secs(2);

/// Measures the host memory used by a card process without a client.
pub fn idle_card() -> Result<MemoryUse> {
    let folder = TempDir::new().context("cannot create a temporary directory")?;
    let log = folder.as_path().join("log");
    let options = Options::new(PROGRAM.into(), CARD, arctic_gpu::card_file::load(CARD)?.identity().device);
    let served = options.served().context("the options have no card")?;
    let card = CardProcess::start(&served, folder.as_path(), &log)?;
    std::thread::sleep(Duration::from_millis(500));
    let held = memory::of_the_card();
    card.stop()?;
    held
}

/// Results of a probe in an otherwise idle guest.
pub struct Probe {
    /// Trapped accesses by region, from power-on to the guest's shutdown.
    pub trapped: BTreeMap<String, u64>,
    /// The card's memory while the guest was idle.
    pub held: MemoryUse,
}

/// Records the card's memory usage when the guest prints `idle`.
#[derive(Default)]
struct MemoryAtIdle {
    printed: Vec<u8>,
    held: Option<Result<MemoryUse>>,
}

impl Sink for MemoryAtIdle {
    fn output(&mut self, bytes: &[u8]) {
        self.printed.extend_from_slice(bytes);
        if self.held.is_none() && self.printed.windows(4).any(|word| word == b"idle") {
            self.held = Some(memory::of_the_card());
        }
    }

    fn errors(&mut self, _: &[u8]) {}
}

/// Boots a guest that only probes the card.
pub fn probe() -> Result<Probe> {
    let options = Options::new(PROGRAM.into(), CARD, arctic_gpu::card_file::load(CARD)?.identity().device);
    let mut sink = MemoryAtIdle::default();
    let job = Mode::Run(format!("sleep {}; test -e /dev/dri/renderD128 && echo idle && sleep 1", SETTLED.as_secs()));
    let report = boot::run(&options, &job, &mut sink, &StderrProgress::default())?;
    ensure!(report.ok, "xe did not probe the card (the guest's log: {})", report.log.display());
    let held = sink.held.context("the guest did not print that it is idle")??;
    Ok(Probe { trapped: report.trapped, held })
}

/// Trapped accesses per empty submission.
pub struct Submission {
    /// With a pause after each submission, so each has a separate interrupt.
    pub apart: BTreeMap<Access, f64>,
    /// Without pauses; the next batch is often submitted before the interrupt has been handled.
    pub back_to_back: BTreeMap<Access, f64>,
}

/// Boots a guest that submits empty batches, with every trapped access logged by the card.
pub fn submission() -> Result<Submission> {
    let submit = format!("arctic guest submit --count 0 --count {COUNT} --engine rcs0");
    let mut command = Command::new(PROGRAM);
    command.args(["boot", "--card", CARD, "--json", "--run", &format!("{submit} --pause 2000 && {submit}")]);
    command.env("RUST_LOG", "arctic_gpu=trace");
    let text = process::output(&mut command, "arctic boot")?;
    let report: serde_json::Value = serde_json::from_str(&text).context("arctic boot printed no valid report")?;
    let folder = report["log"].as_str().context("the report of arctic boot has no log directory")?;
    let path = Path::new(folder).join("card.log");
    let log = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let phases = trace::phases(&String::from_utf8_lossy(&log), MARK);
    let [nothing, apart, _, quick_nothing, quick] = phases.as_slice() else {
        anyhow::bail!("expected 5 phases in {}, found {}", path.display(), phases.len());
    };
    Ok(Submission {
        apart: trace::per_submission((0, nothing), (COUNT, apart))?,
        back_to_back: trace::per_submission((0, quick_nothing), (COUNT, quick))?,
    })
}
