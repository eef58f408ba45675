// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Model checking of the state that threads share without a global lock, in every order that the memory model
//! permits.
//!
//! Built with `--cfg loom`, `arctic_base::sync` consists of loom's types, and this test of the models. Otherwise its only
//! test builds and runs itself so, in a target folder of its own, because the flag changes every crate.
//!
//! loom executes each model repeatedly until it has covered all interleavings (with at most two switches away from a
//! runnable thread), including stale values that a load may return. A deadlock in a model indicates a lost wakeup; loom
//! reports it by a panic. loom has no time, so a sleep lasts until a wakeup.
//!
//! To run some of the models:
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test --release --target-dir target/loom -p arctic-xehpg --test loom -- part-of-a-name
//! ```
//! `LOOM_MAX_PREEMPTIONS` and loom's other variables set the limits of the search.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]
#![forbid(unsafe_code)]

#[cfg(loom)]
mod models;

/// Builds this test with `--cfg loom` and runs the models.
#[cfg(not(loom))]
#[test]
fn models_pass() {
    use std::path::Path;
    use std::process::{Command, Stdio};

    // A target folder of its own, below that of this build.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("loom");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--release", "--package=arctic-xehpg", "--test=loom", "--target-dir"]).arg(target);
    // One model at a time, so that its name is the last line if it ends the process: unwinding a thread of a model that
    // holds a lock may do so.
    cargo.args(["--", "models::", "--test-threads=1"]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    // Cargo reads the second variable only without the first.
    match std::env::var("CARGO_ENCODED_RUSTFLAGS") {
        Ok(flags) => cargo.env("CARGO_ENCODED_RUSTFLAGS", format!("{flags}\x1f--cfg\x1floom")),
        Err(_) => cargo.env("RUSTFLAGS", format!("{} --cfg loom", std::env::var("RUSTFLAGS").unwrap_or_default())),
    };
    let output = cargo.output().expect("cannot run cargo");
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "the models fail ({}):\n{stderr}\n{stdout}", output.status);
    let proof = "test models::wrong::wrong_orderings_are_found ... ok";
    assert!(stdout.contains(proof), "the build does not contain the models:\n{stdout}");
}
