// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the card adds to a kernel: host instructions of kernels of `eu/benches/kernels.zebin` as walkers of the compute engine
//! and as launches of the interpreter (`eu run`), counted by callgrind (target: at most 1.25 times the launch), and those of an
//! empty walker from its submission to its seqno. Then whole kernels with one worker and with two.
//!
//! `kernels card NAME COUNT` and `kernels launch NAME COUNT` execute a kernel so many times and check its results; `kernels card
//! empty COUNT` executes empty walkers. The difference of two counts is what one costs.
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "numbers are chosen by the benchmark")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arctic_device_model::card::Card;
use arctic_device_model::engine::walkers::WalkerTotals;
use arctic_device_model::generation::XE_HPG;
use arctic_device_model::gpu::WorkStatus;
use arctic_device_model::host::{Clock, Function, HostClock, ManualClock, NullHost};
use arctic_device_model::memory::Memories;
use arctic_device_model::memory::ggtt::GGTT_BYTES;
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::profile::CardProfile;
use arctic_device_model::topology::EngineClass;
use arctic_device_model::workers::Workers;
use arctic_eu::exec::payload::last_mask;
use arctic_eu::exec::thread::Thread;
use arctic_eu::launch::memory::{STATE_BYTES, Space, State};
use arctic_eu::launch::{Argument, Launch, LocalIds, Outcome, Range, Settings};
use arctic_eu::zebin::Zebin;
use arctic_mi::compute::{Bases, Walker, cfe_state, state_base_address, state_compute_mode};
use arctic_mi::{BATCH_BUFFER_END, Process, batch_buffer_start, store_data_imm};
use arctic_test_support::driver::{CardAccess, DriverState, GucDriver, SubmitToClass, instances};
use arctic_test_support::kernels::kernel;
use arctic_test_support::vfs::bench::{LAYOUT, at};
use arctic_test_support::{actions, ct, firmware, measure};
use vm_memory::Bytes;

/// Bytes of local memory.
const LOCAL: u64 = 1 << 30;
/// The driver's memory: address in local memory, GGTT address, bytes.
const OWN: (u64, u64, u64) = (64 << 20, 0x2000_0000, 8 << 20);
/// Local memory of address 0 of the process. A launch has its buffers at the same addresses from 64 KiB on.
const PROCESS: u64 = 128 << 20;
/// Bytes of the process's address space, mapped by pages of 2 MiB.
const PROCESS_BYTES: u64 = 512 << 20;
/// Addresses behind the buffers: code, surface states, binding table from their start on, and the batch.
const CODE: u64 = 384 << 20;
const SURFACES: u64 = 400 << 20;
const TABLE: u32 = 0x1_0000;
const BATCH: u64 = 416 << 20;
/// The context, the size of its ring, and of a submission in it.
const CONTEXT: u32 = 1;
const RING_BYTES: u32 = 0x1000;
const SUBMISSION_BYTES: u32 = 256;
/// Counts of which the difference is taken.
const COUNTS: [u32; 2] = [1, 2];
const EMPTY_COUNTS: [u32; 2] = [100, 1100];
/// Rounds of the timed kernels, of which the shortest counts.
const ROUNDS: usize = 5;

fn zebin() -> Zebin {
    Zebin::parse(include_bytes!("kernels.zebin").to_vec()).expect("a zebin")
}

/// A kernel with its range, its arguments, and the buffer with its results.
struct Case {
    name: &'static str,
    range: Range,
    arguments: Vec<(String, Argument)>,
    result: &'static str,
    /// Results after so many launches; none if a launch gives them.
    expected: Option<fn(u32) -> Vec<u32>>,
}

const ITEMS: u32 = 1 << 20;
const SIZE: u32 = 256;
/// Values of the matrices are small integers, of which each sum is exact.
const MASKS: [u32; 2] = [15, 7];

fn product(_: u32) -> Vec<u32> {
    let [a, b] = MASKS.map(|mask| (0..SIZE * SIZE).map(|index| index & mask).collect::<Vec<_>>());
    let rows = a.chunks_exact(SIZE as usize);
    let sums = rows.flat_map(|row| {
        let mut sums = [0; SIZE as usize];
        for (left, right) in row.iter().zip(b.chunks_exact(SIZE as usize)) {
            sums.iter_mut().zip(right).for_each(|(sum, right)| *sum += left * right);
        }
        sums
    });
    sums.map(|sum| (sum as f32).to_bits()).collect()
}

fn cases() -> Vec<Case> {
    let buffer = |count: u32, value: &dyn Fn(u32) -> u32| {
        Argument::Buffer((0..count).flat_map(|index| value(index).to_le_bytes()).collect())
    };
    let floats = |count: u32, mask: u32| buffer(count, &|index| ((index & mask) as f32).to_bits());
    let zeros = |count: u32| buffer(count, &|_| 0);
    let dword = |value: u32| Argument::Value(value.to_le_bytes().to_vec());
    let float = |value: f32| dword(value.to_bits());
    let case = |name, global, local, result, expected, arguments: Vec<(&str, Argument)>| Case {
        name,
        range: Range { global, local, offset: [0; 3] },
        arguments: arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        result,
        expected,
    };
    vec![
        case(
            "saxpy",
            [ITEMS, 1, 1],
            [256, 1, 1],
            "y",
            Some(|count| (0..ITEMS).map(|index| ((count * 2 * (index & 255)) as f32).to_bits()).collect()),
            vec![("y", zeros(ITEMS)), ("x", floats(ITEMS, 255)), ("a", float(2.0))],
        ),
        case(
            "sgemm",
            [SIZE, SIZE, 1],
            [16, 16, 1],
            "c",
            Some(product),
            vec![
                ("c", zeros(SIZE * SIZE)),
                ("a", floats(SIZE * SIZE, MASKS[0])),
                ("b", floats(SIZE * SIZE, MASKS[1])),
                ("n", dword(SIZE)),
            ],
        ),
        case(
            "reduction",
            [ITEMS, 1, 1],
            [256, 1, 1],
            "o",
            Some(|count| vec![(0..ITEMS).fold(0, |sum: u32, index| sum.wrapping_add(index)).wrapping_mul(count)]),
            vec![("o", zeros(1)), ("a", buffer(ITEMS, &|index| index)), ("t", Argument::Local(1024))],
        ),
        case(
            "mandelbrot",
            [512, 256, 1],
            [32, 4, 1],
            "o",
            None,
            vec![
                ("o", zeros(512 * 256)),
                ("width", dword(512)),
                ("left", float(-2.4)),
                ("top", float(-1.0)),
                ("step", float(0.00694)),
            ],
        ),
    ]
}

impl Case {
    fn of(name: &str) -> Case {
        cases().into_iter().find(|case| case.name == name).expect("the name of a kernel")
    }

    /// A launch with one worker. Local ids are in registers, as the walker has them.
    fn launch(&self) -> Launch {
        let settings = Settings { workers: 1, local_ids: LocalIds::Hardware, ..Settings::default() };
        Launch::new(&zebin(), Some(self.name), self.range, &self.arguments, settings).expect("a launch")
    }

    /// Executes the launch so many times. Returns the instructions of one.
    fn run_launch(&self, count: u32) -> u64 {
        let launch = self.launch();
        let mut instructions = 0;
        for _ in 0..count {
            let report = launch.run(&|_| {});
            assert_eq!(report.outcome, Outcome::Complete, "{}", self.name);
            instructions = report.instructions;
        }
        self.check("the launch", count, &launch.buffer(self.result).expect("a buffer"));
        instructions
    }

    /// Executes the kernel so many times by the card, stepped by this thread. Returns what that has executed.
    fn run_card(&self, count: u32) -> WalkerTotals {
        let launch = self.launch();
        let mut bench = Bench::counted();
        bench.load(self, &launch);
        (0..count).for_each(|_| bench.execute(&batch_buffer_start(Process(BATCH))));
        self.check_card(&bench, &launch, count);
        bench.totals()
    }

    fn check_card(&self, bench: &Bench, launch: &Launch, count: u32) {
        let (_, start, size) = launch.buffers.iter().find(|(name, ..)| name == self.result).expect("a buffer");
        let engine = bench.card.engines().lock(XE_HPG.engines.find(EngineClass::Compute, 0).expect("an engine"));
        let executed = engine.counters().walkers.executed;
        assert_eq!((executed.faults, executed.passed_over, executed.outside), (0, 0, 0), "{}: {executed:?}", self.name);
        assert!(engine.counters().skipped.by_name().is_empty());
        self.check("the card", count, &bench.read(*start, *size));
    }

    /// Compares bytes of the results with those of the host, or of a launch.
    fn check(&self, what: &str, count: u32, bytes: &[u8]) {
        let expected = match self.expected {
            Some(expected) => expected(count).iter().flat_map(|dword| dword.to_le_bytes()).collect(),
            None if what == "the launch" => return,
            None => {
                let launch = self.launch();
                launch.run(&|_| {});
                launch.buffer(self.result).expect("a buffer")
            }
        };
        assert!(bytes == expected, "{}: the results of {what} are wrong", self.name);
    }
}

/// A card with the PF's driver.
struct Bench {
    card: Arc<Card>,
    /// The clock, if this thread steps the card.
    clock: Option<Arc<ManualClock>>,
    access: CardAccess,
    state: DriverState,
    /// Number of submissions, which is stored at the end of each.
    seqno: u32,
}

impl GucDriver for Bench {
    fn access(&self) -> &dyn arctic_guc_driver::Access {
        &self.access
    }

    fn state(&self) -> &DriverState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut DriverState {
        &mut self.state
    }
}

impl Bench {
    /// A card that this thread steps, with a clock that this thread advances: the steps are the same in every run.
    fn counted() -> Bench {
        let clock = Arc::new(ManualClock::default());
        Bench::new(clock.clone(), Some(clock))
    }

    fn new(time: Arc<dyn Clock>, clock: Option<Arc<ManualClock>>) -> Bench {
        let mut profile: CardProfile = toml::from_str(include_str!("../configs/flex170.toml")).expect("a card");
        profile.local_memory = LOCAL;
        let region = |len| SharedRegion::anonymous(len).expect("memory");
        let memories = Memories { local: region(LOCAL as usize), ggtt: region(GGTT_BYTES), vfs: Vec::new() };
        let card = Card::power_on(&profile, memories, Arc::new(NullHost), Arc::new(NullHost), time);
        let access = CardAccess::of_pf(&card, OWN.0);
        let state = DriverState::new(OWN.1, LAYOUT.layout, OWN.0 + at::TABLES);
        let mut bench = Bench { card, clock, access, state, seqno: 0 };
        for page in 0..OWN.2 >> 12 {
            bench.access.set_entry((OWN.1 >> 12) + page, OWN.0 + (page << 12) | 3);
        }
        bench.write_firmware(&instances(&bench.card));
        bench.start_firmware();
        assert_eq!(bench.get(firmware::STATUS), firmware::READY, "the firmware has not started");
        bench.enable_rings(OWN.1 + ct::G2H);
        // Three tables: 512 GiB, 1 GiB, 2 MiB an entry.
        let table = |n: u64| at::TABLES + n * 0x1000;
        bench.poke64(table(0), OWN.0 + table(1) | 3);
        bench.poke64(table(1), OWN.0 + table(2) | 3);
        for page in 0..PROCESS_BYTES >> 21 {
            bench.poke64(table(2) + page * 8, PROCESS + (page << 21) | 0x883);
        }
        bench
    }

    /// Writes memory of the process.
    fn write(&self, at: u64, bytes: &[u8]) {
        assert!(at + bytes.len() as u64 <= PROCESS_BYTES);
        self.card.write_local(Function::PF, PROCESS + at, bytes);
    }

    fn write_dwords(&self, at: u64, dwords: &[u32]) {
        self.write(at, &dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect::<Vec<_>>());
    }

    fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let local = self.card.gt().memory.local();
        local.slice(PROCESS + at, len).and_then(|memory| memory.read_slice(&mut bytes, 0).ok()).expect("memory");
        bytes
    }

    /// Writes the buffers of a launch, surface states, code, and a batch with the walker that is the launch.
    fn load(&mut self, case: &Case, launch: &Launch) {
        for (start, size) in buffers(&launch.space) {
            self.write(start, &launch.space.peek(start, size));
        }
        for (at, state) in (SURFACES..).step_by(STATE_BYTES as usize).zip(&launch.space.states) {
            let State::Buffer { start, size } = state else { panic!("{}: {state:?}", case.name) };
            self.write_dwords(at, &raw_surface(*start, *size));
        }
        for (index, state) in &launch.space.bindings {
            let entry = SURFACES + u64::from(TABLE) + u64::from(*index) * 4;
            self.write_dwords(entry, &[*state as u32 * STATE_BYTES]);
        }
        for (at, bytes) in launch.code.used_bytes() {
            self.write(CODE + u64::from(at), bytes);
        }
        let bases = Bases { surface: SURFACES, instruction: CODE, bindless: SURFACES, ..Bases::default() };
        let state = [&state_base_address(&bases)[..], &state_compute_mode(false), &cfe_state(0)].concat();
        self.write_dwords(BATCH, &[&state[..], &walker(case, launch, &zebin()), &[BATCH_BUFFER_END]].concat());
    }

    /// Executes commands of the ring, and waits for the seqno behind them.
    fn execute(&mut self, commands: &[u32]) {
        self.seqno += 1;
        let store = store_data_imm(self.global(at::SCRATCH), self.seqno);
        let mut commands = [commands, &store].concat();
        commands.resize(SUBMISSION_BYTES as usize / 4, 0);
        let place = (self.seqno - 1) * SUBMISSION_BYTES % RING_BYTES;
        if self.seqno == 1 {
            self.submit(CONTEXT, EngineClass::Compute, &commands);
        } else {
            self.write_words(self.layout().ring(CONTEXT, 0) + u64::from(place), &commands);
            self.set_ring_tail(CONTEXT, (place + SUBMISSION_BYTES) % RING_BYTES);
            self.request(actions::SCHED_CONTEXT, &[CONTEXT]);
        }
        let started = Instant::now();
        while self.peek(at::SCRATCH) != self.seqno {
            let Some(clock) = &self.clock else {
                assert!(started.elapsed() < Duration::from_secs(60), "the walker did not end");
                std::thread::sleep(Duration::from_micros(100));
                continue;
            };
            match self.card.step() {
                WorkStatus::Busy => clock.advance(1000),
                WorkStatus::Idle(Some(at)) => clock.advance(at.saturating_sub(clock.now())),
                WorkStatus::Idle(None) => panic!("the card is idle before the seqno"),
            }
        }
        if self.clock.is_some() {
            // The context leaves the engine.
            while self.card.step() == WorkStatus::Busy {}
        }
        self.consume();
    }

    fn totals(&self) -> WalkerTotals {
        let engine = XE_HPG.engines.find(EngineClass::Compute, 0).expect("an engine");
        self.card.engines().lock(engine).counters().walkers
    }
}

/// Address and bytes of each buffer.
fn buffers(space: &Space) -> Vec<(u64, usize)> {
    let mut buffers = Vec::new();
    let mut last = u64::MAX;
    while let Some(buffer) = space.nearest(last) {
        buffers.push((buffer.start, buffer.size));
        last = buffer.start - 1;
    }
    buffers
}

/// The state of a buffer of bytes (EU-043).
fn raw_surface(start: u64, size: u64) -> [u32; 16] {
    let last = size as u32 - 1;
    let mut state = [0; 16];
    state[0] = 4 << 29 | 0x1ff << 18;
    state[2] = (last >> 7 & 0x3fff) << 16 | last & 0x7f;
    state[3] = (last >> 21) << 21;
    (state[8], state[9]) = (start as u32, (start >> 32) as u32);
    state
}

/// The walker of a launch: with the local ids, inline data and indirect data of its threads (EU-020).
fn walker(case: &Case, launch: &Launch, zebin: &Zebin) -> [u32; 39] {
    let kernel = zebin.kernel(Some(case.name)).expect("a kernel");
    let (local, simd) = (case.range.local, launch.simd());
    let mut thread = Thread::new(kernel.grf_count, 0);
    launch.start(&mut thread, [0; 3], 0, 0);
    let ids = kernel.per_thread / 32;
    let dimensions = if simd == 32 { ids / 2 } else { ids };
    let inline = std::array::from_fn(|dword| thread.grf(1 + ids as usize, dword));
    let slm = launch.local_memory();
    let walker = Walker {
        kernel: kernel.skip_per_thread,
        groups: launch.groups(),
        threads: launch.threads(),
        simd: simd.ilog2() - 3,
        last_mask: last_mask(local.iter().map(|size| u64::from(*size)).product(), simd),
        slm: if slm == 0 { 0 } else { slm.ilog2() - 9 },
        bindings: TABLE,
        inline: Some(inline),
    };
    let mut words = walker.words();
    words[3] = thread.grf(0, 0);
    words[4] |= 1 << 29 | ((1 << dimensions) - 1) << 26;
    words[6] = local[0] - 1 | (local[1] - 1) << 10 | (local[2] - 1) << 20;
    assert_eq!(kernel.walk_order, [0, 1, 2]);
    words
}

/// Executes walkers of one thread whose kernel ends at once. In a new context all bases are 0.
fn run_empty(count: u32) {
    let mut bench = Bench::counted();
    bench.write_dwords(0, &kernel(""));
    let walker = Walker::of(0).words();
    (0..count).for_each(|_| bench.execute(&walker));
    let totals = bench.totals();
    assert_eq!((totals.walkers, totals.executed.instructions), (count.into(), count.into()));
}

/// Host instructions of one execution.
fn instructions(side: &str, name: &str, [short, long]: [u32; 2]) -> Result<f64, String> {
    let count = |count: u32| measure::instructions(&[side.into(), name.into(), count.to_string()]);
    let difference = count(long)?.saturating_sub(count(short)?);
    Ok(difference as f64 / f64::from(long - short))
}

fn compare(name: &str) -> Result<(), String> {
    let case = Case::of(name);
    let executed = case.run_card(1).executed;
    assert_eq!(executed.instructions, case.run_launch(1), "{name}: the card executes other instructions");
    let [card, launch] = ["card", "launch"].map(|side| instructions(side, name, COUNTS));
    let (card, launch) = (card?, launch?);
    println!("{name}: {} groups of {} threads", executed.groups, executed.threads / executed.groups);
    println!("  {:<22} {:>10} {:>14} {:>14} {:>6}", "host instructions per", "number", "card", "launch", "ratio");
    for (what, number) in [
        ("kernel", 1),
        ("group", executed.groups),
        ("thread", executed.threads),
        ("message", executed.kinds.messages),
        ("instruction of EUs", executed.instructions),
    ] {
        let each = |count: f64| count / number as f64;
        println!("  {what:<22} {number:>10} {:>14.1} {:>14.1} {:>6.3}", each(card), each(launch), card / launch);
    }
    println!("  (target of the ratio: at most 1.25)");
    Ok(())
}

/// Seconds of a kernel with so many workers.
fn time(case: &Case, workers: usize) -> f64 {
    let launch = case.launch();
    let mut bench = Bench::new(Arc::new(HostClock::default()), None);
    let _workers = Workers::start(bench.card.clone(), workers, "").expect("threads");
    bench.load(case, &launch);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        bench.execute(&batch_buffer_start(Process(BATCH)));
        best = best.min(started.elapsed().as_secs_f64());
    }
    case.check_card(&bench, &launch, ROUNDS as u32);
    best
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [side, name, count] = arguments[..] {
        let count = count.parse().expect("a number");
        match (side, name) {
            ("card", "empty") => run_empty(count),
            ("card", _) => _ = Case::of(name).run_card(count),
            ("launch", _) => _ = Case::of(name).run_launch(count),
            _ => panic!("card or launch"),
        }
        return;
    }
    for name in ["saxpy", "sgemm", "reduction"] {
        if let Err(why) = compare(name) {
            println!("skipped: {why}");
        }
    }
    match instructions("card", "empty", EMPTY_COUNTS) {
        Ok(count) => {
            println!("an empty walker, from its submission to the end of its context: {count:.0} host instructions")
        }
        Err(why) => println!("skipped: {why}"),
    }
    for name in ["sgemm", "mandelbrot"] {
        let case = Case::of(name);
        let [one, two] = [1, 2].map(|workers| time(&case, workers) * 1e3);
        println!("{name}: {one:.1} ms with one worker, {two:.1} ms with two: {:.2} times (target: 1.5)", one / two);
    }
}
