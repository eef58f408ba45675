// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Speed of the interpreter: million instructions of 16 lanes a second on one core, by the fast way for this host and for any,
//! and by a plain loop over the lanes of the same decoded instructions (`plain.rs`), in turns in one process; then whole kernels, which
//! `kernels.zebin` has, on one core and on two, beside the same computations in C for the host (`cc -O2`, if there is one).
//!
//! With the name of a case and a number, so many of its instructions are executed, to be counted:
//! `valgrind --tool=callgrind target/release/deps/speed-* 'load, gather' 100000`.

mod plain;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use arctic_eu::exec::memory::{Addressing, Component, Dimensions, Image, Levels, Sampler};
use arctic_eu::exec::{self, Budget, Environment, Group, Host, Program, Stop, Thread, Way};
use arctic_eu::launch::memory::{Space, State};
use arctic_eu::launch::{Argument, Launch, Outcome, Range, Settings, parse_image_format};
use arctic_eu::text::assemble;
use arctic_eu::zebin::Zebin;
use rustix::time::{ClockId, clock_gettime};

/// Time of a measurement.
const TIME: Duration = Duration::from_millis(150);
/// Measurements, of which the median counts.
const ROUNDS: usize = 5;

/// A kernel: name, dispatch mask, text of the loop's body.
struct Case {
    name: &'static str,
    mask: u32,
    body: String,
}

/// Turns a loop without end; the budget ends it.
fn kernel(setup: &str, body: &str) -> Vec<u8> {
    let text = format!(
        "(W) mov (1|M0) r100.0<1>:ud 0x0:ud\n{setup}\nLOOP:\n{body}\n(W) add (1|M0) r100.0<1>:ud r100.0<0;1,0>:ud 0x1:ud\n\
         (W) cmp (1|M0) (ne)f1.0 null<1>:ud r100.0<0;1,0>:ud 0xFFFFFFFF:ud\n(W&f1.0) jmpi LOOP\n"
    );
    assemble(&text).unwrap_or_else(|errors| panic!("{}", errors.render(&text, "bench")))
}

fn cases() -> Vec<Case> {
    let mads: String = (0..16)
        .map(|index| {
            let dst = 20 + index % 8 * 2;
            format!("mad (16|M0) r{dst}.0<1>:f r{dst}.0<1;0>:f r60.0<1;0>:f r80.0<0>:f\n")
        })
        .collect();
    let integers: String = (0..16)
        .map(|index| {
            let dst = 20 + index % 8 * 2;
            format!("add (16|M0) r{dst}.0<1>:d r{dst}.0<1;1,0>:d r60.0<1;1,0>:d\n")
        })
        .collect();
    let branch = "
        and (16|M0) (eq)f0.0 null<1>:ud r60.0<1;1,0>:ud 0x1:ud
(f0.0)  goto (16|M0) NEXT NEXT
        add (16|M0) r20.0<1>:d r20.0<1;1,0>:d 1:w
NEXT:
        join (16|M0) AFTER
AFTER:
        add (16|M0) r22.0<1>:d r22.0<1;1,0>:d 1:w
";
    // The core of a 32-bit division: toward zero, reciprocal, products.
    let division = "
(W)     or (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x30:uw
        mov (16|M0) r30.0<1>:f r60.0<1;1,0>:ud
        math.inv (16|M0) r32.0<1>:f r30.0<1;1,0>:f
        mul (16|M0) r34.0<1>:f r30.0<1;1,0>:f r32.0<1;1,0>:f
        mad (16|M0) r36.0<1>:f r34.0<1;0>:f r32.0<1;0>:f r30.0<1>:f
        mov (16|M0) r38.0<1>:ud r36.0<1;1,0>:f
(W)     and (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0xFFFFFFCF:ud
";
    let send = |text: &str| format!("{text}\n").repeat(4);
    let case = |name, mask, body: String| Case { name, mask, body };
    vec![
        case("mad f, all lanes", 0xffff, mads.clone()),
        case("mad f, 15 of 16 lanes", 0x7fff, mads),
        case("add d, all lanes", 0xffff, integers),
        case("load, consecutive", 0xffff, send("send.ugm (16|M0) r20 r40 null:0 0x0 0x04200500")),
        case("load, gather", 0xffff, send("send.ugm (16|M0) r20 r44 null:0 0x0 0x04200500")),
        case("store, consecutive", 0xffff, send("send.ugm (16|M0) null r40 r60:2 0x0 0x04000504")),
        case("local memory load", 0xffff, send("send.slm (16|M0) r20 r48 null:0 0x0 0x04200500")),
        case("atomic add, local memory", 0xffff, send("send.slm (16|M0) null r48 r60:2 0x0 0x0400050C")),
        case("atomic add, global memory", 0xffff, send("send.ugm (16|M0) null r40 r60:2 0x0 0x0400050C")),
        case("sample, nearest", 0xffff, send("send.smpl (16|M0) r20 r60 null:0 0x0 0x08858000")),
        case("sample, linear", 0xffff, send("send.smpl (16|M0) r20 r60 null:0 0x0 0x08858100")),
        case("branch, divergent", 0xffff, branch.into()),
        case("integer division's core", 0xffff, division.into()),
    ]
}

/// Returns the CPU time of this thread in seconds. Other programs on the host affect it less than the time of day.
fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Executes this number of instructions.
type Runner = fn(&Program, &mut Thread, &mut Environment<'_>, u64) -> Stop;

fn fast(code: &Program, thread: &mut Thread, environment: &mut Environment<'_>, budget: u64) -> Stop {
    exec::run(code, thread, environment, Budget::instructions(budget), Way::Fast, &mut ())
}

/// Adds an image of 64 by 64 texels as entry 0 of the binding table, and samplers 0 for the nearest texel and 1 for a linear filter.
fn add_picture(space: &mut Space) {
    let base = space.allocate("picture", 64 * 64 * 4).unwrap();
    space.add_state(State::Image(Image {
        base,
        width: 64,
        height: 64,
        depth: 1,
        pitch: 256,
        slice: 0,
        dimensions: Dimensions::Two,
        array: false,
        cube: false,
        levels: Levels::ONE,
        format: parse_image_format("rgba8unorm").unwrap(),
        components: Component::COLOR,
        handle: 0,
    }));
    space.bindings.push((0, 0));
    for (number, linear) in [(0, false), (1, true)] {
        space.samplers.push(Sampler::uniform(Addressing::Clamp, linear, true));
        space.sampler_table.push((number, number.into()));
    }
}

struct Machine {
    code: Program,
    space: Space,
    thread: Thread,
    group: Group,
}

impl Machine {
    fn new(case: &Case, host: Host) -> Machine {
        let mut space = Space::new();
        let buffer = space.allocate("buffer", 1 << 20).unwrap() as u32;
        add_picture(&mut space);
        let code = Program::translate(&kernel("", &case.body), 0, 128, host);
        let mut thread = Thread::new(128, case.mask);
        // OpenCL's mode of floats.
        thread.set_u32(arctic_eu::exec::thread::CR, 0x4c0);
        thread.update_modes();
        for lane in 0..16usize {
            let mut set = |register: usize, value: u32| thread.set_grf(register + lane / 8, lane % 8, value);
            set(40, buffer + lane as u32 * 4);
            set(44, buffer + (lane as u32 * 40503 & 0xffff) * 4);
            set(48, lane as u32 * 4);
            set(60, (1.0f32 + lane as f32 * 1e-7).to_bits());
        }
        thread.set_grf(80, 0, 0.999f32.to_bits());
        Machine { code, space, thread, group: Group { slm: vec![0; 1024], ..Group::default() } }
    }

    /// Million instructions a second.
    fn measure(&mut self, run: Runner) -> f64 {
        let mut memory = &self.space;
        let mut environment = Environment::new(&mut memory, &mut self.group);
        let budget = 20_000;
        let start = Instant::now();
        let before = cpu_time();
        let mut count = 0;
        while start.elapsed() < TIME {
            let stop = run(&self.code, &mut self.thread, &mut environment, budget);
            assert_eq!(stop, Stop::Budget);
            count += budget;
        }
        count as f64 / (cpu_time() - before) / 1e6
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A kernel of `kernels.zebin` with its range and arguments, as `host.c` has them.
struct LoadedKernel {
    name: &'static str,
    range: Range,
    arguments: Vec<(String, Argument)>,
}

fn loaded_kernels() -> Vec<LoadedKernel> {
    let (items, size, [width, height]) = (1u32 << 20, 256u32, [512u32, 256]);
    let buffer = |count: u32, value: &dyn Fn(u32) -> u32| {
        Argument::Buffer((0..count).flat_map(|index| value(index).to_le_bytes()).collect())
    };
    let floats = |count: u32, mask: u32| buffer(count, &|index| ((index & mask) as f32).to_bits());
    let zeros = |count: u32| buffer(count, &|_| 0);
    let value = |bytes: [u8; 4]| Argument::Value(bytes.to_vec());
    let number = |value: f32| Argument::Value(value.to_le_bytes().to_vec());
    let loaded_kernel = |name, global, local, arguments: Vec<(&str, Argument)>| LoadedKernel {
        name,
        range: Range { global, local, offset: [0; 3] },
        arguments: arguments.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
    };
    vec![
        loaded_kernel(
            "saxpy",
            [items, 1, 1],
            [256, 1, 1],
            vec![("y", zeros(items)), ("x", floats(items, 255)), ("a", number(2.0))],
        ),
        loaded_kernel(
            "sgemm",
            [size, size, 1],
            [16, 16, 1],
            vec![
                ("c", zeros(size * size)),
                ("a", floats(size * size, 15)),
                ("b", floats(size * size, 7)),
                ("n", value(size.to_le_bytes())),
            ],
        ),
        loaded_kernel(
            "reduction",
            [items, 1, 1],
            [256, 1, 1],
            vec![("o", zeros(1)), ("a", buffer(items, &|index| index)), ("t", Argument::Local(1024))],
        ),
        loaded_kernel(
            "mandelbrot",
            [width, height, 1],
            [32, 4, 1],
            vec![
                ("o", zeros(width * height)),
                ("width", value(width.to_le_bytes())),
                ("left", number(-2.4)),
                ("top", number(-1.0)),
                ("step", number(0.00694)),
            ],
        ),
    ]
}

/// Seconds of the computations in C; none without a compiler.
fn host_times() -> HashMap<String, f64> {
    let program = std::env::temp_dir().join(format!("arctic-eu-host-{}", std::process::id()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/host.c");
    let compiled = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return HashMap::new();
    }
    let output = Command::new(&program).output().map(|output| output.stdout).unwrap_or_default();
    let _ = std::fs::remove_file(Path::new(&program));
    let text = String::from_utf8_lossy(&output).into_owned();
    let pair = |line: &str| line.split_once(' ').and_then(|(name, time)| Some((name.into(), time.parse().ok()?)));
    text.lines().filter_map(pair).collect()
}

/// Seconds of launches that run at the same time, each with this number of workers, and the instructions of one.
fn run_together(zebin: &Zebin, kernel: &LoadedKernel, launches: usize, workers: usize) -> (f64, u64) {
    let settings = Settings { workers, ..Settings::default() };
    let launch = || Launch::new(zebin, Some(kernel.name), kernel.range, &kernel.arguments, settings.clone()).unwrap();
    let launches: Vec<Launch> = std::iter::repeat_with(launch).take(launches).collect();
    let start = Instant::now();
    let reports: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = launches.iter().map(|launch| scope.spawn(move || launch.run(&|_| {}))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let time = start.elapsed().as_secs_f64();
    assert!(reports.iter().all(|report| report.outcome == Outcome::Complete));
    (time, reports[0].instructions)
}

/// Whole kernels: the shortest of five runs, in turns on one worker, on two, and as two launches at once with one worker each.
/// These share nothing, so that their speed is what the host gives to two workers.
fn full_kernels() {
    let zebin = Zebin::parse(include_bytes!("kernels.zebin").to_vec()).unwrap();
    let host = host_times();
    println!(
        "\n{:<28} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>7}",
        "whole kernels", "1 core, s", "million/s", "2 cores, s", "times 1", "host gives", "cc -O2, s", "ratio"
    );
    for loaded_kernel in loaded_kernels() {
        let mut best = [f64::INFINITY; 3];
        let mut instructions = 0;
        for _ in 0..ROUNDS {
            for ((launches, workers), best) in [(1, 1), (1, 2), (2, 1)].into_iter().zip(&mut best) {
                let (time, executed) = run_together(&zebin, &loaded_kernel, launches, workers);
                *best = best.min(time);
                instructions = executed;
            }
        }
        let rate = instructions as f64 / best[0] / 1e6;
        print!(
            "{:<28} {:>10.4} {rate:>10.1} {:>10.4} {:>10.2} {:>10.2}",
            loaded_kernel.name,
            best[0],
            best[1],
            best[0] / best[1],
            2.0 * best[0] / best[2]
        );
        match host.get(loaded_kernel.name) {
            Some(time) => println!(" {time:>10.5} {:>7.0}", best[0] / time),
            None => println!(" {:>10} {:>7}", "-", "-"),
        }
    }
}

/// Executes so many instructions of a case, and nothing else: what a profiler counts, less that of another number.
fn run_case(name: &str, instructions: &str) {
    let case = cases().into_iter().find(|case| case.name == name);
    let mut machine = Machine::new(&case.expect("a name of the table"), Host::detect());
    let mut memory = &machine.space;
    let mut environment = Environment::new(&mut memory, &mut machine.group);
    let budget = instructions.parse().expect("a number of instructions");
    assert_eq!(fast(&machine.code, &mut machine.thread, &mut environment, budget), Stop::Budget);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [name, instructions] = arguments.as_slice() {
        return run_case(name, instructions);
    }
    println!(
        "{:<28} {:>10} {:>10} {:>10} {:>7}",
        "million instructions a second", "fast", "portable", "plain", "ratio"
    );
    for case in cases() {
        let hosts = [Host::detect(), Host::Portable];
        let mut machines = hosts.map(|host| Machine::new(&case, host));
        let mut results = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            results[0].push(machines[0].measure(fast));
            results[1].push(machines[1].measure(fast));
            results[2].push(machines[0].measure(plain::run));
        }
        let [fast, portable, plain] = results.map(median);
        println!("{:<28} {fast:>10.1} {portable:>10.1} {plain:>10.2} {:>7.1}", case.name, fast / plain);
    }
    full_kernels();
}
