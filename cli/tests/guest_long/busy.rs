// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Busy time of engines by every counter that the driver and the card have.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::run::one_guest;

const ARCTIC: &str = env!("CARGO_BIN_EXE_arctic");

/// Seconds that contexts of the PF have been on an engine of the class, by `arctic status`.
fn engine_seconds(card: &str, class: &str) -> f64 {
    let output = Command::new(ARCTIC).args(["status", card, "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    status["functions"][0]["engine_time_ns"][class].as_f64().unwrap_or(0.0) / 1e9
}

/// The render engine is loaded to 30 %, the compute engine to 70 %, one after the other. The kernel's events, fdinfo and `arctic status`
/// agree about each, and counter A0 about both together: all within 2 %.
#[test]
fn busy_time_is_the_same_by_every_counter() {
    let _one = one_guest();
    let mut guest = Command::new(ARCTIC)
        .args(["boot", "--run", "arctic guest load rcs0=30 ccs0=70 --seconds 10"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(guest.stderr.take().unwrap()).lines().map_while(Result::ok);
    let card =
        progress.find_map(|line| Some(line.strip_prefix("card ")?.trim().split(':').next()?.to_owned())).unwrap();
    let rest = std::thread::spawn(move || progress.for_each(drop));
    let mut lines = BufReader::new(guest.stdout.take().unwrap()).lines().map_while(Result::ok);
    let both = || ["render", "compute"].map(|class| engine_seconds(&card, class));
    lines.find(|line| line.starts_with("loading ")).unwrap();
    let before = both();
    let report: Value = lines.find_map(|line| serde_json::from_str(line.trim()).ok()).unwrap();
    let after = both();
    lines.for_each(drop);
    assert!(guest.wait().unwrap().success());
    rest.join().unwrap();
    println!("{report}");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no figure: {report}"));
    let agree = |what: &str, one: f64, other: f64| {
        println!("{what}: {one:.4} s, {other:.4} s");
        assert!((one - other).abs() <= 0.02 * other, "{what}: {one:.4} s and {other:.4} s");
    };
    for (engine, (before, after)) in before.into_iter().zip(after).enumerate() {
        let of = &report["engines"][engine];
        let (name, pmu, fdinfo) = (of["engine"].as_str().unwrap(), number(&of["pmu"]), number(&of["fdinfo"]));
        agree(&format!("{name}, fdinfo and events"), fdinfo, pmu);
        agree(&format!("{name}, arctic status and events"), after - before, pmu);
    }
    let [render, compute] = [0, 1].map(|engine| number(&report["engines"][engine]["pmu"]));
    agree("A0 and the events of both", number(&report["a0"]), render + compute);
    let loads = [render, compute].map(|busy| busy / number(&report["seconds"]));
    assert!((0.25..0.33).contains(&loads[0]) && (0.65..0.75).contains(&loads[1]), "loads {loads:?}");
}
