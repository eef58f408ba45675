// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs the program `arctic` with real guests and checks its reports.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use arctic_device_model::sync::IgnorePoison;
use serde_json::Value;

static ONE_GUEST: Mutex<()> = Mutex::new(());

pub fn one_guest() -> MutexGuard<'static, ()> {
    ONE_GUEST.lock().ignore_poison()
}

/// Runs the program. Returns its exit status and the JSON document from stdout. Progress is printed to stderr.
pub fn arctic(arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arctic"));
    command.args(arguments).arg("--json").env_remove("RUST_LOG").stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().unwrap();
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("arctic {arguments:?} ({}): {error}: {}", output.status, String::from_utf8_lossy(&output.stdout))
    });
    (output.status.code(), document)
}

pub fn list(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/igt").join(name)
}

/// Returns the results that are not `wanted`; a failing assertion prints them.
pub fn others<'a>(document: &'a Value, wanted: &str) -> Vec<&'a Value> {
    document["results"].as_array().unwrap().iter().filter(|result| result["result"] != wanted).collect()
}

/// Checks that each virtual function was enabled and probed, and that workloads passed on an engine of each class.
pub fn all_worked(report: &Value, vfs: usize, classes: &[&str]) {
    let lines = report["vfs"].as_array().unwrap();
    assert_eq!(lines.len(), vfs);
    for line in lines {
        assert_eq!((&line["ok"], &line["problem"]), (&Value::Bool(true), &Value::Null));
        let engines: Vec<&str> = line["engines"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for class in classes {
            assert!(engines.iter().any(|engine| engine.starts_with(class)), "{class}: {line}");
        }
        assert!(line["lmem_bytes"].as_u64().unwrap() > 0 && line["ggtt_bytes"].as_u64().unwrap() > 0, "{line}");
    }
}

/// Number of migrations of a run.
pub fn migrations(report: &Value) -> usize {
    let steps = report["steps"].as_array().unwrap().iter();
    steps.filter(|step| step["name"].as_str().is_some_and(|name| name.starts_with("migration "))).count()
}

pub const CLASSES: [&str; 5] = ["rcs", "bcs", "vcs", "vecs", "ccs"];
