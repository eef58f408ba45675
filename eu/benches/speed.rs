// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Speed of the interpreter on one core, in million instructions of 16 lanes a second: the fast way, for this host and for any,
//! and a plain loop over lanes of the same decoded instructions, in turns in one process.

use std::time::{Duration, Instant};

use arctic_eu::exec::{self, Code, Environment, Group, Host, Stop, Thread, Way};
use arctic_eu::launch::memory::Space;
use arctic_eu::text::assemble;

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
        case("branch, divergent", 0xffff, branch.into()),
        case("integer division's core", 0xffff, division.into()),
    ]
}

struct Machine {
    code: Code,
    space: Space,
    thread: Thread,
    group: Group,
}

impl Machine {
    fn new(case: &Case, host: Host) -> Machine {
        let mut space = Space::new();
        let buffer = space.allocate("buffer", 1 << 20).unwrap() as u32;
        let code = Code::translate(&kernel("", &case.body), 0, 128, host);
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
    fn measure(&mut self, way: Way) -> f64 {
        let mut environment =
            Environment { memory: &self.space, group: &mut self.group, outside: 0, first_outside: None };
        let budget = 20_000;
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed() < TIME {
            let stop = exec::run(&self.code, &mut self.thread, &mut environment, budget, way, &mut ());
            assert_eq!(stop, Stop::Budget);
            count += budget;
        }
        count as f64 / start.elapsed().as_secs_f64() / 1e6
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    println!(
        "{:<28} {:>10} {:>10} {:>10} {:>7}",
        "million instructions a second", "fast", "portable", "plain", "ratio"
    );
    for case in cases() {
        let hosts = [Host::detect(), Host::Portable];
        let mut machines = hosts.map(|host| Machine::new(&case, host));
        let mut results = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            results[0].push(machines[0].measure(Way::Fast));
            results[1].push(machines[1].measure(Way::Fast));
            results[2].push(machines[0].measure(Way::Plain));
        }
        let [fast, portable, plain] = results.map(median);
        println!("{:<28} {fast:>10.1} {portable:>10.1} {plain:>10.2} {:>7.1}", case.name, fast / plain);
    }
}
