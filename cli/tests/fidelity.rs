// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic fidelity`: pages and JSON of the report that the program contains. The tests of `xtask` compare the report with
//! the sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

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

/// The array of `--json` with these arguments.
fn items(arguments: &[&str]) -> Vec<Value> {
    let (status, text, _) = arctic(&[&["--json"], arguments].concat());
    assert_eq!(status, Some(0));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn pages_are_those_of_the_checkout() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../FIDELITY.md")).unwrap();
    assert_eq!(arctic(&["--markdown"]).1, page);
    let (status, page, _) = arctic(&["--markdown", "--every-item"]);
    let items = items(&[]);
    let id = |item: &Value| format!("| {} | ", item["id"].as_str().unwrap());
    let missing: Vec<_> = items.iter().map(id).filter(|id| !page.contains(id.as_str())).collect();
    assert_eq!((status, missing), (Some(0), Vec::new()));
    let row = page.lines().find(|line| line.starts_with("| V8-153 | Shifts | exact | ")).unwrap();
    assert!(row.contains("[`alu.rs::shifts_round_down`]"), "{row}");
}

#[test]
fn scripts_get_an_array() {
    let all = items(&[]);
    let mut documents = BTreeMap::new();
    for item in &all {
        *documents.entry(item["document"].as_str().unwrap()).or_insert(0) += 1;
    }
    assert!(["V8", "V13", "IVB", "ILK", "AF"].iter().all(|name| documents[name] > 100), "{documents:?}");
    let item = all.iter().find(|item| item["id"] == "V13-010").unwrap();
    assert_eq!(item["status"], "approximate");
    assert!(
        item["tests"][0].as_str().unwrap().contains(".rs::") && item["note"].as_str().unwrap().len() > 20,
        "{item}"
    );
    let absent = items(&["--document", "v13", "--status", "absent"]);
    assert!(!absent.is_empty() && absent.iter().all(|item| item["status"] == "absent" && item["document"] == "V13"));
}

#[test]
fn an_unknown_document_is_reported_with_the_known_ones() {
    let (status, text, error) = arctic(&["--document", "V9"]);
    assert_eq!((status, text.as_str()), (Some(1), ""));
    assert!(error.starts_with("arctic: no document has the name V9; the documents are V8, V13, "), "{error}");
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
