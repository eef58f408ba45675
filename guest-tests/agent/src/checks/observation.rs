// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Streams of the observation unit and the counters of a context, by xe: reports of the timer, of context switches and of writes
//! of the trigger register, with the counters of the set TestOa, of which the values are known.

use std::io::{ErrorKind, Read};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use arctic_mi::{self as mi, Process, Reg};

use super::{CheckEnvironment, program};
use crate::device::{DrmError, Engine};
use crate::observation::{OAG_256, OAR_256, Property, Stream, add_config, remove_config};
use crate::vm::Place;

/// The timer's exponent: a report every 213 us.
const EXPONENT: u64 = 12;
/// Distance of two reports of the timer in ticks.
const PERIOD: u32 = 2 << EXPONENT;
/// Reports of the timer that must be read.
const REPORTS: usize = 64;
/// Bytes of a report.
const BYTES: usize = 256;
/// OAG_OATAILPTR and OAG_MMIOTRIGGER.
const TAIL: u32 = 0xdb04;
const TRIGGER: u32 = 0xdb1c;
/// The value that the batch writes to the trigger register.
const MARKER: u32 = 0x00c0_ffee;
/// The set TestOa: NOA_WRITE, GT_NOA_ENABLE, and the comparisons of the B counters.
const TEST_OA: [(u32, u32); 18] = [
    (0xd04, 0x200),
    (0x9888, 0x1008_0ff3),
    (0xd940, 0x4),
    (0xd944, 0xffff),
    (0xd948, 0x3),
    (0xd94c, 0xffff),
    (0xd950, 0x7),
    (0xd954, 0xffff),
    (0xd958, 0x10_0002),
    (0xd95c, 0xfff7),
    (0xd960, 0x10_0002),
    (0xd964, 0xffcf),
    (0xd968, 0x10_0082),
    (0xd96c, 0xffef),
    (0xd970, 0x10_00c2),
    (0xd974, 0xffe7),
    (0xd978, 0x10_0001),
    (0xd97c, 0xffe7),
];
/// Parts of the clocks that its counters have.
const PARTS: [(u32, u32); 8] = [(0, 1), (1, 1), (1, 1), (1, 2), (1, 3), (1, 3), (1, 6), (2, 3)];

/// A report of 64 dwords.
struct Report(Vec<u32>);

impl Report {
    fn reason(&self) -> u32 {
        self.0[0] >> 19 & 0x7f
    }
}

/// A stream of each kind of report, and the counters of a context. A VF has none.
pub fn streams(env: &CheckEnvironment<'_>, engines: &[Engine]) -> Result<String> {
    let device = env.device;
    let render = engines.iter().find(|engine| engine.class == 0).context("no render engine")?;
    let added = add_config(device, "7389b9c9-de73-468d-83a8-b27776215e6b", &TEST_OA);
    // The driver of a VF may not read an engine's timestamp, and has no observation.
    if device.engine_cycles(*render).is_err() {
        return match added {
            Err(DrmError::Ioctl { source, .. }) if source.raw_os_error() == Some(libc::ENODEV) => {
                Ok("none on a virtual function".into())
            }
            other => bail!("the driver of a virtual function must have no observation, got {other:?}"),
        };
    }
    let set = added?;
    let checked = reports(env, *render, set).and_then(|reports| Ok((reports, counters(env, *render, set)?)));
    remove_config(device, set)?;
    let (reports, counters) = checked?;
    Ok(format!("{reports}; {counters}"))
}

/// Reads reports of all kinds and checks them.
fn reports(env: &CheckEnvironment<'_>, render: Engine, set: u64) -> Result<String> {
    let properties = [
        (Property::SampleOa, 1),
        (Property::OaMetricSet, set),
        (Property::OaFormat, OAG_256),
        (Property::OaPeriodExponent, EXPONENT),
        (Property::OaBufferSize, 1 << 20),
    ];
    let mut stream = Stream::open(env.device, &properties)?;
    let tails = trigger(env, render)?;
    ensure!(tails[0] != tails[1], "the write of the trigger register has not moved the tail: {tails:x?}");
    let start = Instant::now();
    let mut all = Vec::new();
    let timers = |all: &[Report]| all.iter().filter(|report| report.reason() == 1).count();
    while timers(&all) < REPORTS {
        ensure!(start.elapsed() < env.timeout, "{} reports of the timer in {:?}", timers(&all), start.elapsed());
        read(&mut stream, &mut all)?;
        sleep(Duration::from_millis(2));
    }
    let of = |reason: u32| all.iter().filter(move |report| report.reason() == reason);
    let timer: Vec<_> = of(1).collect();
    for pair in timer.windows(2) {
        let ticks = pair[1].0[1].wrapping_sub(pair[0].0[1]);
        ensure!(ticks == PERIOD, "two reports of the timer are {ticks} ticks apart, expected {PERIOD}");
    }
    for pair in all.windows(2) {
        check_test_oa(&pair[0], &pair[1])?;
    }
    let switches = of(8).filter(|report| report.0[0] >> 16 & 1 != 0 && report.0[2] != 0).count();
    ensure!(switches > 0, "no report of a switch to a context among {} reports", all.len());
    let marked: Vec<_> = of(64).map(|report| (report.0[0] >> 26, report.0[2])).collect();
    ensure!(marked == [(8, MARKER)], "expected one report of the render engine with the marker, got {marked:x?}");
    Ok(format!("{} reports of the timer, {switches} of switches, 1 of a batch", timer.len()))
}

/// The B counters of two consecutive reports have their parts of the clocks, to one clock.
fn check_test_oa(before: &Report, after: &Report) -> Result<()> {
    let delta = |dword: usize| after.0[dword].wrapping_sub(before.0[dword]);
    let clocks = delta(3);
    for (n, (part, of)) in PARTS.into_iter().enumerate() {
        let (found, expected) = (delta(48 + n), u64::from(clocks) * u64::from(part) / u64::from(of));
        ensure!(u64::from(found).abs_diff(expected) <= 1, "B{n}: {found} in {clocks} clocks, expected {expected}");
    }
    Ok(())
}

/// A user's batch writes the trigger register. Returns the tail before and after it.
fn trigger(env: &CheckEnvironment<'_>, render: Engine) -> Result<[u32; 2]> {
    let vm = env.device.vm()?;
    let queue = vm.queue(render)?;
    let memory = vm.buffer(Place::System, 4096)?;
    env.run(&vm, &queue, Place::System, |batch| {
        batch.push(&mi::store_register_mem(Reg::Mmio(TAIL), Process(memory.address())));
        batch.push(&mi::load_register_imm(Reg::Mmio(TRIGGER), MARKER));
        batch.push(&mi::store_register_mem(Reg::Mmio(TAIL), Process(memory.address() + 4)));
    })?;
    Ok([0, 4].map(|at| memory.mapping().read_u32(at)))
}

/// Two reports of a context's own counters, on a queue for which the driver has enabled them.
fn counters(env: &CheckEnvironment<'_>, render: Engine, set: u64) -> Result<String> {
    let vm = env.device.vm()?;
    let queue = vm.queue(render)?;
    let memory = vm.buffer(Place::System, 4096)?;
    let properties =
        [(Property::OaMetricSet, set), (Property::OaFormat, OAR_256), (Property::ExecQueueId, queue.id().into())];
    let _stream = Stream::open(env.device, &properties)?;
    let code = program(&vm, Place::System, |batch| {
        for n in 0..2_u32 {
            let to = Process(memory.address() + u64::from(n) * BYTES as u64);
            batch.push(&mi::report_perf_count(to, 0x100 + n));
        }
    })?;
    let fence = queue.submit(code.address())?;
    queue.wait(&fence, env.timeout)?;
    let report = |n: usize| Report((0..64).map(|dword| memory.mapping().read_u32(BYTES * n + 4 * dword)).collect());
    let (first, second) = (report(0), report(1));
    ensure!((first.0[0], second.0[0]) == (0x100, 0x101), "ids of the command: {:x} {:x}", first.0[0], second.0[0]);
    ensure!(first.0[2] == second.0[2], "both reports are of one context: {:x} {:x}", first.0[2], second.0[2]);
    let delta = |dword: usize| second.0[dword].wrapping_sub(first.0[dword]);
    let (clocks, busy) = (delta(3), delta(4));
    ensure!(busy == clocks, "A0 has {busy} clocks of {clocks}, all of which are the context's");
    check_test_oa(&first, &second)?;
    Ok(format!("A0 of a context has all of its {clocks} clocks"))
}

fn read(stream: &mut Stream, all: &mut Vec<Report>) -> Result<()> {
    let mut bytes = vec![0; 256 * BYTES];
    let read = match stream.file.read(&mut bytes) {
        Ok(read) => read,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error).context("read of the stream"),
    };
    let dwords = |report: &[u8]| Report(report.as_chunks().0.iter().map(|raw| u32::from_le_bytes(*raw)).collect());
    all.extend(bytes[..read].chunks_exact(BYTES).map(dwords));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(clocks: u32, b: [u32; 8]) -> Report {
        let mut dwords = vec![0; 64];
        dwords[3] = clocks;
        dwords[48..56].copy_from_slice(&b);
        Report(dwords)
    }

    #[test]
    fn a_wrong_counter_is_found() {
        let before = report(u32::MAX, [u32::MAX; 8]);
        let good = [0, 600, 600, 300, 200, 200, 100, 400].map(|b: u32| b.wrapping_sub(1));
        check_test_oa(&before, &report(599, good)).unwrap();
        for n in 0..8 {
            let mut wrong = good;
            wrong[n] = wrong[n].wrapping_add(2);
            check_test_oa(&before, &report(599, wrong)).unwrap_err();
        }
    }
}
