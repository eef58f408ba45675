// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Collection of the claims that tests execute, for `cargo xtask mutants`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::{env, fs};

use crate::Item;

/// The environment variable with the directory to which tests write their claims; without it, nothing is written.
pub const VARIABLE: &str = "ARCTIC_CLAIMS";

/// The directory, and the file name of this process in it.
static TARGET: LazyLock<Option<(PathBuf, Mutex<BTreeSet<String>>)>> = LazyLock::new(|| {
    let folder = PathBuf::from(env::var_os(VARIABLE)?);
    Some((folder.join(std::process::id().to_string()), Mutex::default()))
});

/// Records the claim that the running test, in source `file`, proves `rule` of `item`; `table` if it compares a table
/// with a copy of its own. Use [`crate::proves!`].
///
/// Each claim is one line of a file of the process: binary, test, item, `table` or nothing, source file, rule, separated
/// by tabs.
///
/// # Panics
/// If the file cannot be written: a claim must not be lost.
pub fn record(item: Item, rule: &str, table: bool, file: &str) {
    let Some((path, recorded)) = &*TARGET else { return };
    let (binary, test) = running();
    let kind = if table { "table" } else { "" };
    let line = format!("{binary}\t{test}\t{item}\t{kind}\t{file}\t{rule}\n");
    let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
    if recorded.insert(line.clone()) {
        let opened = fs::File::options().create(true).append(true).open(path);
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "cannot write the claim to {}: {written:?}", path.display());
    }
}

/// The test binary and the test that this process runs. A runner of one test a process gives it as the argument after
/// or before `--exact`.
fn running() -> (String, String) {
    let mut arguments = env::args();
    let binary = arguments.next().unwrap_or_default();
    let test = arguments.find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let name = Path::new(&binary).file_name().unwrap_or_default().to_string_lossy().into_owned();
    (name, test)
}
