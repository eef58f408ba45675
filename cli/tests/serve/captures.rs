// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic trace --walker`: a walker of a served card is saved with its memory, and executed again.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use arctic_eu::capture::{Capture, EndReason, Replay, ReplayStop};
use arctic_eu::exec::{Host, Way};
use arctic_test_support::client::{BATCH, CCS_BASE, DATA, IOVA, LMEM, Raw, Transport};
use arctic_test_support::kernels::{kernel, set_address};
use arctic_test_support::mi::compute::{Bases, Walker, state_base_address};
use arctic_test_support::mi::{self, Process};
use arctic_test_support::served::ChildProcess;
use vmm_sys_util::tempdir::TempDir;

use crate::skipped::write_page_tables;
use crate::{arctic, eventually, fails, serve};

/// Where the kernel is.
const KERNEL: u64 = DATA + 0x8000;

/// Executes two walkers on ccs0, each of two groups, that store 7 at [`DATA`].
pub fn run_walkers(pf: &mut Raw) {
    write_page_tables(pf);
    let mut text = "(W) mov (1|M0) r10.0<1>:ud 0x7:ud\n".to_owned();
    set_address(&mut text, 12, DATA);
    text += "(W) send.ugm (1|M0) null r12 r10:1 0x0 0x08000584\n";
    pf.words(KERNEL, &kernel(&text));
    let walker = Walker { groups: [2, 1, 1], ..Walker::of(KERNEL as u32) }.words();
    let batch = [&state_base_address(&Bases::default())[..], &walker, &walker, &[mi::BATCH_BUFFER_END, 0]].concat();
    pf.run_on(CCS_BASE, IOVA, &mi::batch_buffer_start(Process(BATCH)), &batch);
}

/// Starts a capture of the walker, and returns it when the card has accepted it.
fn capture(dir: &Path, walker: &str, file: &Path) -> ChildProcess {
    let command =
        ["trace", dir.to_str().unwrap(), "--engine", "ccs0", "--walker", walker, "--save", file.to_str().unwrap()];
    let mut child = ChildProcess::spawn(arctic(&command).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut line = String::new();
    let mut stderr = BufReader::with_capacity(1, child.stderr.as_mut().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("connected to ") && line.ends_with(&format!("waiting for walker {walker}\n")), "{line}");
    child
}

#[test]
fn a_walker_of_a_served_card_is_saved_and_executed_again() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let file = dir.join("walker.eu");
    let served = serve("small", dir, &[]);
    let mut pf = Raw::connect(&dir.join("pf.sock"));
    let child = capture(dir, "2", &file);
    let second = ["trace", dir.to_str().unwrap(), "--walker", "1", "--save", "other.eu"];
    let (status, text) = fails(&second);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("another client captures a walker"), "{text}");
    run_walkers(&mut pf);
    eventually("the store of the kernel", || pf.read_u32(LMEM, DATA) == 7);
    let output = child.wait_with_output();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    assert!(out.starts_with(&format!("{}: walker 2, ", file.display())), "{out}");
    assert!(err.contains(&format!("walker 1: kernel at {KERNEL:#x}\n")), "{err}");
    let capture = Capture::parse(&fs::read(&file).unwrap()).unwrap();
    assert_eq!((capture.origin.engine.as_str(), capture.origin.number), ("ccs0", 2));
    let mut replay = Replay::new(&capture, Host::detect(), 1000);
    assert_eq!(replay.step(1 << 20, Way::Fast, &mut ()), ReplayStop::End(EndReason::Complete));
    let comparison = replay.compare();
    assert_eq!((replay.groups(), comparison.written, comparison.bytes), (2, 1, 0));
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

/// A capture that ends without its walker leaves no file.
#[test]
fn captures_without_a_walker_end_in_one_sentence() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let file = dir.join("walker.eu");
    let served = serve("small", dir, &[]);
    let interrupted = capture(dir, "5", &file);
    interrupted.signal(libc::SIGINT);
    let ends = |child: ChildProcess, reason: &str| {
        let output = child.wait_with_output();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert_eq!(text, format!("arctic: walker 5 was not captured: {reason}\n"));
        assert!(!file.exists());
    };
    ends(interrupted, "interrupted after 0 walkers");
    // The place of the client that has gone is free.
    let mut left = None;
    eventually("the end of the first request", || {
        let command =
            ["trace", dir.to_str().unwrap(), "--engine", "ccs0", "--walker", "5", "--save", file.to_str().unwrap()];
        let mut child = ChildProcess::spawn(arctic(&command).stdout(Stdio::null()).stderr(Stdio::piped()));
        let mut line = String::new();
        BufReader::with_capacity(1, child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        let accepted = line.starts_with("connected to ");
        left = accepted.then_some(child);
        accepted
    });
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    ends(left.unwrap(), "the card is no longer served");
    for more in [&["--walker", "1"][..], &["--limit", "3"], &["--walker", "0", "--save", "x"]] {
        assert_eq!(fails(&[&["trace", dir.to_str().unwrap()], more].concat()).0, Some(2), "{more:?}");
    }
}
