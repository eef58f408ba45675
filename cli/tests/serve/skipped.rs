// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of user space that the card does not execute: in the log, in status, trace and report, and as a fault.

use std::fs;
use std::path::Path;

use arctic_test_support::client::{BATCH, DATA, LMEM, Raw, Transport};
use arctic_test_support::mi::header::MI_SET_APPID;
use arctic_test_support::mi::{self, Process};
use serde_json::Value;
use vmm_sys_util::tempdir::TempDir;

use crate::{arctic, eventually, serve, status};

/// Entry for a table of the next level: present and writable (xe: XE_PAGE_PRESENT, XE_PAGE_RW).
const TABLE: u64 = 1 << 1 | 1 << 0;
/// Entry for a page of 2 MiB in local memory (xe: XE_PDE_PS_2M, XE_PPGTT_PTE_DM).
const LARGE_LOCAL_PAGE: u64 = 1 << 11 | 1 << 7 | TABLE;

/// Writes page tables at address 0, as the context image has it: two pages of 2 MiB in local memory.
pub fn write_page_tables(pf: &mut Raw) {
    pf.enable();
    for (at, entry) in [
        (0, 0x1000 | TABLE),
        (0x1000, 0x2000 | TABLE),
        (0x2000, LARGE_LOCAL_PAGE),
        (0x2008, 0x20_0000 | LARGE_LOCAL_PAGE),
    ] {
        pf.write(LMEM, at, &entry.to_le_bytes());
    }
}

/// Runs a batch in the PPGTT that stores 7, has MI_SET_APPID twice, which each engine skips, and stores 8.
fn run_batch(pf: &mut Raw) {
    write_page_tables(pf);
    let store = |value| mi::store_data_imm(Process(DATA), value);
    let batch = [&store(7)[..], &[MI_SET_APPID; 2], &store(8), &[mi::BATCH_BUFFER_END, 0]].concat();
    pf.run(&mi::batch_buffer_start(Process(BATCH)), &batch);
}

fn report(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("report.json")).unwrap()).unwrap()
}

#[test]
fn skipped_user_commands_are_counted_in_status_log_report_and_trace() {
    let dir = TempDir::new().unwrap();
    let capture = dir.as_path().join("capture");
    let served = serve("small", dir.as_path(), &["--trace", capture.to_str().unwrap()]);
    let mut pf = Raw::connect(&dir.as_path().join("pf.sock"));
    run_batch(&mut pf);
    eventually("the end of the batch", || pf.read_u32(LMEM, DATA) == 8);
    let function = &status(dir.as_path())["functions"][0];
    let counts =
        ["skipped_user_commands", "skipped_contexts", "skipped_driver_commands"].map(|key| function[key].as_u64());
    assert_eq!(counts, [2, 1, 0].map(Some));
    let table = arctic(&["status", dir.as_path().to_str().unwrap()]).output().unwrap().stdout;
    let table = String::from_utf8(table).unwrap();
    // The PF's row; its last two columns are skipped commands and contexts with one.
    let row: Vec<&str> = table.lines().nth(2).unwrap().split_whitespace().collect();
    assert!(table.contains("SKIPPED   IN CTXS") && row.ends_with(&["2", "1"]), "{table}");
    let (code, text) = served.end(libc::SIGTERM);
    assert_eq!(code, Some(0));
    let warning =
        "function 0, bcs0: MI_SET_APPID of the context at 0x104000 is not executed: the results of its program";
    assert_eq!(text.matches(warning).count(), 1, "{text}");
    assert!(
        text.contains("were not executed: 2; results of these programs are not valid\n  pf bcs0: MI_SET_APPID 2\n"),
        "{text}"
    );
    let expected = serde_json::json!({
        "function": 0, "origin": "user", "engine": "bcs0", "command": "MI_SET_APPID", "count": 2,
    });
    assert_eq!(report(dir.as_path())["skipped_commands"], Value::from(vec![expected]));
    let trace = arctic(&["decode", capture.to_str().unwrap()]).output().unwrap().stdout;
    let trace = String::from_utf8(trace).unwrap();
    assert_eq!(trace.matches("skipped  MI_SET_APPID of user space is not executed").count(), 2, "{trace}");
}

/// The option overrides the card file. With `fault` the context stops at the first such command, and later commands have
/// no effect.
#[test]
fn option_and_card_file_select_what_an_unmodelled_command_does() {
    let dir = TempDir::new().unwrap();
    let file = dir.as_path().join("card.toml");
    let small = arctic_gpu::card_file::BUILT_IN.iter().find(|(name, _)| *name == "small").unwrap().1;
    let skip = "unmodelled = \"skip\"";
    assert!(small.contains(skip), "{small}");
    fs::write(&file, small.replace(skip, "unmodelled = \"fault\"")).unwrap();
    for (card, options, stops) in [
        ("small", &["--unmodelled", "fault"][..], true),
        (file.to_str().unwrap(), &[], true),
        (file.to_str().unwrap(), &["--unmodelled", "skip"], false),
    ] {
        let dir = TempDir::new().unwrap();
        let served = serve(card, dir.as_path(), options);
        let mut pf = Raw::connect(&dir.as_path().join("pf.sock"));
        run_batch(&mut pf);
        let count = if stops { 1 } else { 2 };
        let done = || status(dir.as_path())["functions"][0]["skipped_user_commands"] == count;
        eventually("the command", done);
        let value = if stops { 7 } else { 8 };
        eventually("the last store", || pf.read_u32(LMEM, DATA) == value);
        let (_, text) = served.end(libc::SIGTERM);
        assert_eq!(text.contains("is not executed: the context is stopped"), stops, "{text}");
        assert_eq!(report(dir.as_path())["undone"]["bcs0 MI_SET_APPID: state only"], count);
    }
}
