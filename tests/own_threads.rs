// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Cards that their VMM runs: on its own threads, with its own clock, and in a sandbox.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::os::fd::RawFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use arctic_gpu::vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};
use arctic_gpu::{Builder, CardFile, Clock, GuestRam, PciDevice, VirtualCard, WorkStatus, card_file};
use arctic_test_support::null_machine::NullMachine;

/// A clock that only the test advances.
#[derive(Default)]
struct Steps(AtomicU64);

impl Clock for Steps {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

type Ram = Arc<GuestMemoryMmap<()>>;

fn ram() -> Ram {
    Arc::new(GuestMemoryMmap::from_ranges(&[(GuestAddress(0), 1 << 20)]).unwrap())
}

fn builder(name: &str) -> Builder<CardFile> {
    VirtualCard::builder(card_file::load(name).unwrap())
}

fn plug(builder: Builder<CardFile>, ram: &Ram) -> VirtualCard {
    builder.plug_into(Arc::new(NullMachine), GuestRam::new(ram.clone())).unwrap()
}

/// Works until nothing is due now; returns the time until which nothing is.
fn run(card: &VirtualCard) -> Option<u64> {
    loop {
        match card.work() {
            WorkStatus::Idle(Some(until)) if until <= card.clock().now() => {}
            WorkStatus::Idle(until) => return until,
            WorkStatus::Busy => {}
        }
    }
}

/// A ring of an Ivy Bridge GPU at 0x10000, and in it stores of dwords to 0x20000.
struct Ring<'c> {
    card: &'c VirtualCard,
    ram: &'c Ram,
    tail: u32,
}

impl<'c> Ring<'c> {
    fn new(card: &'c VirtualCard, ram: &'c Ram) -> Self {
        let ring = Ring { card, ram, tail: 0 };
        card.pf().write_config(4, &6_u16.to_le_bytes());
        let (forcewake, ggtt, start, control) = (0xa188, 2 << 20, 0x2038, 0x203c);
        for (offset, value) in
            [(forcewake, 0x1_0001), (ggtt + 4, 0x1_0001), (ggtt + 8, 0x2_0001), (start, 0x1000), (control, 1)]
        {
            ring.write(offset, value);
        }
        ring
    }

    fn write(&self, offset: u64, value: u32) {
        self.card.pf().write_bar(0, offset, &value.to_le_bytes());
    }

    fn read(&self, offset: u64) -> u32 {
        let mut data = [0; 4];
        self.card.pf().read_bar(0, offset, &mut data);
        u32::from_le_bytes(data)
    }

    /// Submits a store of `value`.
    fn store(&mut self, value: u32) {
        let command: [u32; 4] = [0x1040_0002, 0, 0x2000, value];
        self.ram.write_obj(command, GuestAddress(0x1_0000 + u64::from(self.tail))).unwrap();
        self.tail += 16;
        self.write(0x2030, self.tail);
    }

    fn stored(&self) -> u32 {
        self.ram.read_obj(GuestAddress(0x2_0000)).unwrap()
    }
}

/// A card without threads executes nothing until its VMM calls `work`. The waker is called once after each time that
/// nothing was left to do, and not for work that was found without it.
#[test]
fn the_waker_is_called_once_after_each_idle_time() {
    let (ram, calls) = (ram(), Arc::new(AtomicU32::new(0)));
    let waker = calls.clone();
    let card = plug(builder("ivb").without_threads(move || _ = waker.fetch_add(1, Ordering::Relaxed)), &ram);
    let calls = || calls.swap(0, Ordering::Relaxed);
    let mut ring = Ring::new(&card, &ram);
    ring.store(1);
    assert_eq!((ring.stored(), calls()), (0, 0), "work was done, or the waker called, before the first call of `work`");
    run(&card);
    assert_eq!((ring.stored(), calls()), (1, 0));
    for value in 2..5 {
        ring.store(value);
        ring.store(value + 10);
        assert_eq!((ring.stored(), calls()), (if value == 2 { 1 } else { value + 9 }, 1), "store of {value}");
        run(&card);
        assert_eq!((ring.stored(), calls()), (value + 10, 0));
    }
}

/// The card has the time of its VMM's clock: TIMESTAMP of the render engine counts 80 ns of it.
#[test]
fn a_card_follows_the_clock_of_its_vmm() {
    let (ram, clock) = (ram(), Arc::new(Steps::default()));
    let card = plug(builder("ivb").clock(clock.clone()).without_threads(|| {}), &ram);
    let ring = Ring::new(&card, &ram);
    let start = ring.read(0x2358);
    for steps in [0_u32, 1, 1000] {
        let now = u64::from(steps) * 80;
        clock.0.store(now, Ordering::Relaxed);
        assert_eq!((card.clock().now(), ring.read(0x2358) - start), (now, steps));
    }
}

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let name = |task: io::Result<fs::DirEntry>| fs::read_to_string(task.unwrap().path().join("comm")).ok();
    let names = fs::read_dir("/proc/self/task").unwrap().filter_map(name).map(|name| name.trim_end().to_owned());
    names.collect()
}

/// The open descriptors of this process.
fn descriptors() -> BTreeSet<RawFd> {
    let number = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
    let listed: Vec<RawFd> = fs::read_dir("/proc/self/fd").unwrap().map(number).collect();
    // The directory was open while it was read.
    listed.into_iter().filter(|fd| fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok()).collect()
}

/// In a process of its own, because other tests start threads and open files too: a card has the threads that its VMM asked
/// for, and names all descriptors that it has opened.
#[test]
fn a_card_has_the_threads_and_descriptors_that_it_names() {
    const ALONE: &str = "ARCTIC_TEST_ALONE";
    let name = "a_card_has_the_threads_and_descriptors_that_it_names";
    if env::var_os(ALONE).is_none() {
        let test =
            Command::new(env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]).env(ALONE, "1").output();
        let test = test.unwrap();
        assert!(test.status.success(), "{}", String::from_utf8_lossy(&test.stdout));
        return;
    }
    let ram = ram();
    let (before, opened) = (threads().len(), descriptors());
    for (family, vfs) in [("small", 2), ("small", 0), ("ivb", 0)] {
        let card = plug(builder(family).vfs(vfs).without_threads(|| {}), &ram);
        assert_eq!(threads().len(), before, "{family}");
        let named: BTreeSet<RawFd> = card.descriptors().into_iter().collect();
        assert_eq!(&descriptors() - &opened, named, "{family} with {vfs} VFs");
        drop(card);
        assert_eq!(descriptors(), opened, "{family}");
    }
    let card = plug(builder("small").vfs(1).workers(NonZero::new(3).unwrap()).thread_names("gpu7-"), &ram);
    let expected = ["gpu7-gt0", "gpu7-gt1", "gpu7-gt2", "gpu7-scrub"];
    // A thread sets its name when it begins to run.
    let named = |name: &&str| threads().iter().any(|thread| thread == name);
    let start = Instant::now();
    while !expected.iter().all(named) {
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", threads());
        thread::yield_now();
    }
    assert_eq!(threads().len(), before + expected.len());
    drop(card);
    assert_eq!(threads().len(), before, "threads are left");
}

#[path = "../examples/own_threads.rs"]
#[allow(dead_code, reason = "the example's main function is the test")]
mod example;

/// The example, a VMM of at most 100 lines, runs.
#[test]
fn the_example_with_its_own_thread_runs() {
    let lines = include_str!("../examples/own_threads.rs").lines().count();
    assert!(lines <= 100, "{lines} lines");
    example::main().unwrap();
}
