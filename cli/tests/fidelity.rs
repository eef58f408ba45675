// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Every item of `promised` in `docs/fidelity.toml` has a test or a documented deviation, and `FIDELITY.md` is up to
//! date.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use arctic_cli::fidelity::{REGENERATE, Report};
use arctic_fidelity::items;
use serde_json::Value;

#[test]
fn every_promised_item_is_proved_or_listed() {
    let problems = Report::of_this_build().problems;
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// The build script finds the sources of the other packages of the workspace through the links in `scanned`.
#[test]
fn every_source_is_scanned() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = Command::new("git").args(["ls-files", "--full-name", ":/*.rs"]).current_dir(package).output();
    let sources = String::from_utf8(sources.unwrap().stdout).unwrap();
    let elsewhere = ["cli/", "afuc/"];
    let others = sources.lines().filter(|path| !elsewhere.iter().any(|folder| path.starts_with(folder)));
    let missing: Vec<&str> = others.filter(|path| !package.join("scanned").join(path).is_file()).collect();
    assert!(missing.is_empty(), "no link in cli/scanned leads to {missing:?}");
}

#[test]
fn no_item_is_left_out() {
    let report = Report::of_this_build();
    let count = |name: &str| report.items.iter().filter(|item| item.document == name).count();
    assert_eq!((count("V8"), count("V13")), (166, 288));
    assert_eq!((report.groups("V8").len(), report.groups("V13").len()), (20, 17));
    for item in &report.items {
        assert!(!item.rule.title.is_empty() && !item.rule.facts.is_empty() && !item.rule.class.is_empty(), "{item:?}");
    }
}

/// The constants by which tests name items are the documents' items.
#[test]
fn each_item_is_a_constant() {
    let constants: Vec<String> = [items::V8, items::V13].concat().iter().map(ToString::to_string).collect();
    assert_eq!(Report::of_this_build().items.iter().map(|item| item.id.clone()).collect::<Vec<_>>(), constants);
}

#[test]
fn the_page_is_in_step() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../FIDELITY.md");
    let (page, wanted) = (fs::read_to_string(path).unwrap_or_default(), Report::of_this_build().summary());
    let differs = page.lines().zip(wanted.lines()).find(|(is, wanted)| is != wanted);
    assert!(page == wanted, "FIDELITY.md is out of date: {REGENERATE}\nfirst line that differs: {differs:?}");
}

/// The program has no mutants: it does not contain the variable by which the copies of `cargo xtask mutants` select one.
#[test]
fn the_program_has_no_mutants() {
    let program = fs::read(env!("CARGO_BIN_EXE_arctic")).unwrap();
    let contains = |text: &str| program.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(contains("arctic fidelity --item V8-052"));
    assert!(!contains("ARCTIC_MUTANT"));
}

fn arctic(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_arctic")).arg("fidelity").args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_page_of_every_item_has_a_row_for_each() {
    let (status, page, _) = arctic(&["--markdown", "--every-item"]);
    let rows: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| V")?.split(' ').next()).collect();
    assert_eq!((status, rows.len()), (Some(0), 166 + 288));
    assert!(page.contains("| V8-153 | Shifts | exact | [`alu.rs::shifts_round_down`]"), "{rows:?}");
}

#[test]
fn scripts_get_an_array() {
    let (status, text, _) = arctic(&["--json"]);
    let items: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!((status, items.len()), (Some(0), 166 + 288));
    let item = items.iter().find(|item| item["id"] == "V13-010").unwrap();
    assert_eq!(item["status"], "approximate");
    assert!(
        item["tests"][0].as_str().unwrap().contains(".rs::") && item["note"].as_str().unwrap().len() > 20,
        "{item}"
    );
    let (_, text, _) = arctic(&["--json", "--document", "v13", "--status", "absent"]);
    let items: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(!items.is_empty() && items.iter().all(|item| item["status"] == "absent" && item["document"] == "V13"));
}

/// `arctic fidelity --json | head` ends without a message: the array is longer than a pipe holds.
#[test]
fn a_closed_pipe_ends_the_report() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_arctic"));
    let child = command.args(["fidelity", "--json"]).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn an_unknown_item_is_reported_in_one_sentence() {
    let (status, text, error) = arctic(&["--item", "V8-053x"]);
    assert_eq!((status, text.as_str()), (Some(1), ""));
    assert_eq!(error, "arctic: no document has an item V8-053x; the nearest is V8-053 (IDLE_CTXID = 0xFFFF)\n");
}
