// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Busy time of engines by every counter that the driver and the card have.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::kernels::enable;
use super::run::one_guest;

const ARCTIC: &str = env!("CARGO_BIN_EXE_arctic");

/// What counters show of a load.
struct Shown {
    /// The report of `arctic guest load`.
    report: Value,
    /// Documents of `arctic status` before and after the load.
    status: [Value; 2],
    /// Lines of `arctic top` from before the load until after it.
    top: Vec<Value>,
}

impl Shown {
    /// Boots a guest that runs `command`, which ends with `arctic guest load`.
    fn of(arguments: &[&str], command: &str) -> Shown {
        let mut guest = Command::new(ARCTIC)
            .arg("boot")
            .args(arguments)
            .args(["--run", command])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut progress = BufReader::new(guest.stderr.take().unwrap()).lines().map_while(Result::ok);
        let card =
            progress.find_map(|line| Some(line.strip_prefix("card ")?.trim().split(':').next()?.to_owned())).unwrap();
        let rest = std::thread::spawn(move || progress.for_each(drop));
        let mut lines = BufReader::new(guest.stdout.take().unwrap()).lines().map_while(Result::ok);
        lines.find(|line| line.starts_with("loading ")).unwrap();
        // Nothing runs for a second, and for another one after the report.
        let mut top = Command::new(ARCTIC)
            .args(["top", &card, "--json", "--interval", "0.3"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = top.stdout.take().unwrap();
        let shown = std::thread::spawn(move || {
            let mut text = String::new();
            output.read_to_string(&mut text).unwrap();
            text
        });
        let before = status(&card);
        let report = lines.find_map(|line| serde_json::from_str(line.trim()).ok()).unwrap();
        let after = status(&card);
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert!(Command::new("kill").args(["-INT", &top.id().to_string()]).status().unwrap().success());
        let text = shown.join().unwrap();
        assert!(top.wait().unwrap().success());
        lines.for_each(drop);
        assert!(guest.wait().unwrap().success());
        rest.join().unwrap();
        println!("{report}");
        let top = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Shown { report, status: [before, after], top }
    }

    /// Seconds that contexts of a function have been on engines of the class, by `arctic status`.
    fn status(&self, function: usize, class: &str) -> f64 {
        let [before, after] = self
            .status
            .each_ref()
            .map(|status| status["functions"][function]["engine_time_ns"][class].as_f64().unwrap_or(0.0) / 1e9);
        after - before
    }

    /// The same by the part of each interval that `arctic top` shows.
    fn top(&self, part: impl Fn(&Value) -> &Value) -> f64 {
        self.top.iter().map(|line| part(line).as_f64().unwrap_or(0.0) * line["seconds"].as_f64().unwrap()).sum()
    }

    /// Checks that all counters of each engine agree with the kernel's events, within 2 % of these.
    fn agree(&self) {
        for of in self.report["engines"].as_array().unwrap() {
            let function = usize::try_from(of["function"].as_u64().unwrap()).unwrap();
            let engine = of["engine"].as_str().unwrap();
            let class = if engine.starts_with("ccs") { "compute" } else { "render" };
            let name = if function == 0 { "pf".to_owned() } else { format!("vf{function}") };
            let pmu = number(&of["pmu"]);
            let check = |what: &str, time: f64| within_2_percent(&format!("{name} {engine}, {what}"), time, pmu);
            // The driver of a VF shows neither fdinfo (xe: `show_run_ticks` of `xe_drm_client.c`) nor events (`xe_pmu_register`).
            match function {
                0 => check("fdinfo", number(&of["fdinfo"])),
                _ => assert!(of["fdinfo"].is_null(), "{of}"),
            }
            check("timestamps of its batches", number(&of["batches"]));
            check("arctic status", self.status(function, class));
            check("functions of arctic top", self.top(|line| &line["functions"][function]["busy"][class]));
            let of_engine =
                |line: &Value| line["engines"].as_array().unwrap().iter().position(|of| of["engine"] == engine);
            let position = of_engine(&self.top[0]).unwrap();
            check("engines of arctic top", self.top(|line| &line["engines"][position]["functions"][&name]));
        }
    }

    /// Parts of the time for which the engines of the report were busy, by the kernel's events.
    fn loads(&self) -> Vec<f64> {
        let engines = self.report["engines"].as_array().unwrap().iter();
        engines.map(|of| number(&of["pmu"]) / number(&self.report["seconds"])).collect()
    }
}

fn status(card: &str) -> Value {
    let output = Command::new(ARCTIC).args(["status", card, "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no figure"))
}

fn within_2_percent(what: &str, one: f64, other: f64) {
    println!("{what} {one:.4} s, the kernel's events {other:.4} s, {:+.2} %", (one / other - 1.0) * 100.0);
    assert!((one - other).abs() <= 0.02 * other, "{what} {one:.4} s, the kernel's events {other:.4} s");
}

/// The render engine is loaded to 30 %, the compute engine to 70 %, one after the other. The kernel's events, fdinfo, timestamps of
/// the batches, `arctic status` and `arctic top` agree about each, and counter A0 about both together.
#[test]
fn busy_time_is_the_same_by_every_counter() {
    let _one = one_guest();
    let shown = Shown::of(&[], "arctic guest load rcs0=30 ccs0=70 --seconds 10");
    shown.agree();
    let [render, compute] = [0, 1].map(|engine| number(&shown.report["engines"][engine]["pmu"]));
    within_2_percent("counter A0 of both", number(&shown.report["a0"]), render + compute);
    let loads = shown.loads();
    assert!((0.25..0.33).contains(&loads[0]) && (0.65..0.75).contains(&loads[1]), "loads {loads:?}");
}

/// VF 1 loads the render engine to 70 %, VF 2 to 30 %. The PF's events of each function agree with the timestamps that each VF's
/// batches store, `arctic status` and `arctic top`.
#[test]
fn busy_time_of_virtual_functions_is_the_same_by_every_counter() {
    let _one = one_guest();
    let command = enable(2) + "arctic guest load vf1:rcs0=70 vf2:rcs0=30 --seconds 10";
    let shown = Shown::of(&["--vfs", "2"], &command);
    shown.agree();
    let loads = shown.loads();
    // Less on a loaded host, where batches begin late.
    assert!((0.5..0.75).contains(&loads[0]) && (0.15..0.33).contains(&loads[1]), "loads {loads:?}");
}
