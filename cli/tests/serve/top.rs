// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic top` beside the other displays of a card's state, and with a card that ends and is served again.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use arctic_test_support::client::{DATA, LMEM, Raw, Transport};
use arctic_test_support::served::ChildProcess;
use serde_json::Value;
use vmm_sys_util::tempdir::TempDir;

use crate::captures::run_walkers;
use crate::operator_commands::terminal;
use crate::{arctic, eventually, serve, status};

/// Starts `arctic top --json`, and returns its lines.
fn top(dir: &Path, interval: &str) -> (ChildProcess, impl Iterator<Item = Value>) {
    let command = ["top", dir.to_str().unwrap(), "--json", "--interval", interval];
    let mut child = ChildProcess::spawn(arctic(&command).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()))
}

/// The instructions of kernels are the same by `arctic status`, `arctic top` and the metrics, and the first two name the function.
#[test]
fn every_display_has_the_same_instructions() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let served = serve("small", dir, &["--vfs", "1", "--metrics", "127.0.0.1:0", "--json"]);
    let (child, mut lines) = top(dir, "0.1");
    assert_eq!(lines.next().unwrap()["execution_units"]["functions"], serde_json::json!({}));
    let mut pf = Raw::connect(&dir.join("pf.sock"));
    run_walkers(&mut pf);
    eventually("the store of the kernel", || pf.read_u32(LMEM, DATA) == 7);
    let (mut shown, mut instructions) = (0.0, 0.0);
    // The first lines may be of intervals before the walkers.
    for line in lines.take(100) {
        let units = &line["execution_units"];
        let rate = units["instructions"].as_f64().unwrap();
        let functions = if rate == 0.0 { serde_json::json!({}) } else { serde_json::json!({"pf": 1.0}) };
        assert_eq!(units["functions"], functions);
        shown += rate * line["seconds"].as_f64().unwrap();
        let kernels = &status(dir)["functions"][0]["kernels"];
        instructions = kernels["instructions"].as_f64().unwrap();
        if kernels["walkers"] == 2 && shown > instructions - 0.01 {
            break;
        }
    }
    assert!(instructions > 0.0 && (shown - instructions).abs() < 0.01, "{shown}, {instructions}");
    let document: Value = serde_json::from_str(served.first_line()).unwrap();
    let address = document["metrics"].as_str().unwrap().trim_start_matches("http://").trim_end_matches("/metrics");
    let mut client = std::net::TcpStream::connect(address).unwrap();
    write!(client, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    let line = format!("arctic_eu_instructions_total{{function=\"pf\"}} {instructions}");
    assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    drop(child);
}

/// A card that is killed ends the lines with a sentence; one that is served again within an interval is reported in a line.
#[test]
fn lines_end_with_the_card_and_report_a_restart() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let served = serve("small", dir, &[]);
    // A restart takes a part of the interval.
    let (mut child, mut lines) = top(dir, "2");
    assert_eq!(lines.next().unwrap()["restarted"], false);
    assert_eq!(served.end(libc::SIGKILL).0, None);
    let served = serve("small", dir, &[]);
    assert_eq!(lines.next().unwrap()["restarted"], true);
    assert_eq!(lines.next().unwrap()["restarted"], false);
    assert_eq!(served.end(libc::SIGKILL).0, None);
    assert!(lines.next().is_none() && child.wait().unwrap().success());
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "the card is no longer served\n");
}

/// On a terminal the end of the card is shown, and the view goes on when one is served at the same place.
#[test]
fn the_view_shows_that_a_card_ends_and_starts_again() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let served = serve("small", dir, &[]);
    let (slave, mut master) = terminal();
    let mut command = arctic(&["top", dir.to_str().unwrap(), "--interval", "0.2"]);
    let input = slave.try_clone().unwrap();
    let mut view = ChildProcess::spawn(command.stdin(input).stdout(slave).env("TERM", "xterm"));
    let mut keys = master.try_clone().unwrap();
    let output = Arc::new(Mutex::new(String::new()));
    let all = Arc::clone(&output);
    // It ends when all processes that a test of this program has started have closed the terminal.
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = master.read(&mut bytes) {
            all.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
    });
    let shown = |text: &str| eventually(text, || output.lock().unwrap().contains(text));
    shown("Flex 170");
    // It is up for longer than a request takes.
    thread::sleep(Duration::from_millis(500));
    assert_eq!(served.end(libc::SIGKILL).0, None);
    shown("the card is no longer served; waiting for another at the same place");
    let served = serve("small", dir, &[]);
    // Only cells that change are written.
    shown("was started again");
    keys.write_all(b"q").unwrap();
    assert!(view.wait().unwrap().success());
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}
