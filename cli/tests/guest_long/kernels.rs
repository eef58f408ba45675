// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guests with OpenCL and Level Zero: many functions at once, endless kernels.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::run::{arctic, one_guest, others};

const ARCTIC: &str = env!("CARGO_BIN_EXE_arctic");

/// Shell commands that enable VFs and store the PCI addresses of the PF and of its VFs in `$pf` and `$vfs`.
pub fn enable(vfs: usize) -> String {
    format!(
        "sys=/sys/bus/pci/devices; \
         for d in $sys/*; do [ \"$(cat $d/device)\" = 0x56c0 ] && pf=$(basename $d); done; \
         echo {vfs} > $sys/$pf/sriov_numvfs || exit 2; \
         vfs=$(for link in $sys/$pf/virtfn*; do basename $(readlink $link); done)\n"
    )
}

/// Runs shell commands in a guest with the drivers, and returns its exit status and output.
fn run(options: &[&str], commands: &str) -> (Option<i32>, String) {
    let mut boot = Command::new(ARCTIC);
    boot.args(["boot", "--compute", "--timeout", "1500"]).args(options).args(["--run", commands]);
    let output = boot.output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The kernels of each function of a report, which are right.
fn kernels_are_right(report: &Value, functions: usize) {
    assert_eq!(others(report, "pass"), Vec::<&Value>::new());
    let of = report["compute"].as_array().unwrap();
    assert_eq!(of.len(), functions);
    for function in of {
        let kernels = function["kernels"].as_array().unwrap();
        let wrong: Vec<&Value> = kernels.iter().filter(|kernel| kernel["verdict"] != "right").collect();
        assert!(kernels.len() >= 25 && wrong.is_empty(), "{wrong:?}");
    }
}

/// PF and seven VFs in one guest, then PF and three VFs in guests of their own: kernels of all functions at the same time.
#[test]
fn kernels_on_many_functions() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--compute", "--vfs", "7"]);
    kernels_are_right(&report, 8);
    assert_eq!(status, Some(0));
    let (status, report) = arctic(&["boot", "--compute", "--vfs", "3", "--split"]);
    kernels_are_right(&report, 4);
    assert_eq!(status, Some(0));
}

/// Eighty times: the process of an endless kernel is killed, and the next process computes at once.
#[test]
fn kernels_after_killed_processes() {
    let _one = one_guest();
    // The first process takes seconds to make its context.
    let rounds = "arctic guest compute --only vadd || exit 2; \
        for n in $(seq 80); do \
        arctic guest compute --only endless --timeout 3 > /tmp/hung && exit 3; \
        grep -q HUNG /tmp/hung || exit 4; \
        arctic guest compute --only vadd > /tmp/next || { cat /tmp/next; exit 5; }; \
        echo round $n; done";
    let (status, text) = run(&[], rounds);
    assert_eq!((status, text.matches("round ").count()), (Some(0), 80), "{text}");
}

/// Twenty times: an endless kernel of a VF, which is reset (FLR); its driver is bound again, and the next process computes at once.
/// xe waits for itself for ever if it is unbound while it makes a dump (`xe_devcoredump_deferred_snap_work` frees the dump, and so
/// cancels itself), so the dump is awaited.
#[test]
fn kernels_after_resets_of_their_function() {
    let _one = one_guest();
    let rounds = enable(1)
        + "arctic guest compute --device $vfs --only vadd || exit 2
        for n in $(seq 20); do
        arctic guest compute --device $vfs --only endless --timeout 60 > /tmp/hung 2>&1 &
        sleep 2
        echo 1 > $sys/$vfs/reset || exit 3
        for p in $(pidof arctic); do kill -9 $p; done
        wait
        grep -q HUNG /tmp/hung && exit 4
        sleep 3
        for dump in /sys/class/devcoredump/*/data; do [ -e $dump ] && echo 1 > $dump; done
        echo $vfs > /sys/bus/pci/drivers/xe/unbind || exit 5
        echo $vfs > /sys/bus/pci/drivers/xe/bind || exit 6
        arctic guest compute --device $vfs --only vadd > /tmp/next || { cat /tmp/next; exit 7; }
        echo round $n; done";
    let (status, text) = run(&["--vfs", "1"], &rounds);
    assert_eq!((status, text.matches("round ").count()), (Some(0), 20), "{text}");
}

/// Instructions of kernels, and time on the compute engine in nanoseconds, of each of `functions` functions of a card.
fn work(card: &str, functions: usize) -> Vec<(u64, u64)> {
    let output = Command::new(ARCTIC).args(["status", card, "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let of = |function: &Value| {
        (number(&function["kernels"]["instructions"]), number(&function["engine_time_ns"]["compute"]))
    };
    status["functions"].as_array().unwrap().iter().take(functions).map(of).collect()
}

/// PF and seven VFs execute endless kernels on one engine. The first VF has twice the quantum of the others, and so twice the
/// share of the engine's time, within 5 %.
#[test]
fn kernels_share_an_engine_by_quanta() {
    let _one = one_guest();
    let commands = enable(7)
        + "echo 8 > $sys/$pf/sriov_admin/.bulk_profile/exec_quantum_ms || exit 3
        echo 16 > $sys/$pf/sriov_admin/vf1/profile/exec_quantum_ms || exit 4
        for f in $pf $vfs; do arctic guest compute --device $f --only endless --timeout 1000 > /dev/null 2>&1 & done
        sleep 1000";
    let mut guest = Command::new(ARCTIC)
        .args(["boot", "--compute", "--vfs", "7", "--memory", "4096", "--timeout", "1200", "--run", &commands])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(guest.stderr.take().unwrap()).lines().map_while(Result::ok);
    let card = lines.find_map(|line| Some(line.strip_prefix("card ")?.trim().split(':').next()?.to_owned())).unwrap();
    let progress = std::thread::spawn(move || lines.for_each(drop));
    let start = Instant::now();
    let mut before = work(&card, 8);
    loop {
        std::thread::sleep(Duration::from_secs(3));
        let now = work(&card, 8);
        if now.iter().zip(&before).all(|(now, before)| now.0 > before.0) {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(300), "not all kernels have begun: {now:?}");
        before = now;
    }
    let before = work(&card, 8);
    std::thread::sleep(Duration::from_secs(30));
    let times: Vec<f64> = work(&card, 8).iter().zip(&before).map(|(now, before)| (now.1 - before.1) as f64).collect();
    // As by Ctrl-C, so that it ends the guest.
    assert!(Command::new("kill").args(["-INT", &guest.id().to_string()]).status().unwrap().success());
    guest.wait().unwrap();
    progress.join().unwrap();
    let total: f64 = times.iter().sum();
    let shares: Vec<f64> = times.iter().map(|time| time / total).collect();
    println!("shares of the engine: {shares:.3?}");
    for (function, share) in shares.iter().enumerate() {
        let due = if function == 1 { 2.0 } else { 1.0 } / 9.0;
        assert!(
            (share / due - 1.0).abs() < 0.05,
            "function {function} has {share:.3} of the engine, not {due:.3}: {shares:?}"
        );
    }
}
