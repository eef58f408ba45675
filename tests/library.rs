// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Checks of the library as a dependency: it builds without its features, its documentation builds without warnings,
//! and its example runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A separate target directory, because the current one is locked.
fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into).join("library")
}

/// Runs cargo in this package.
fn cargo(arguments: &str, rustdoc_flags: &str) -> Output {
    eprintln!("cargo {arguments}: takes up to two minutes the first time");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).env("CARGO_TARGET_DIR", target()).env("RUSTDOCFLAGS", rustdoc_flags);
    cargo.args(arguments.split(' ')).output().expect("cargo runs")
}

fn succeeded(arguments: &str, rustdoc_flags: &str) -> String {
    let Output { status, stdout, stderr } = cargo(arguments, rustdoc_flags);
    assert!(status.success(), "cargo {arguments}: {status}\n{}", String::from_utf8_lossy(&stderr));
    String::from_utf8_lossy(&stdout).into_owned()
}

/// The example has fewer than 150 lines and prints the expected lines in a package that has only the library, without
/// features, as its dependency. (As an example of this package it would be built with the dev-dependencies' features.)
#[test]
fn the_example_shows_the_card_in_one_process() {
    let source = include_str!("../examples/in_process.rs");
    assert!(source.lines().count() < 150, "{} lines", source.lines().count());
    let package = target().join("in_process");
    fs::create_dir_all(package.join("src")).unwrap();
    fs::write(package.join("src/main.rs"), source).unwrap();
    fs::copy(root().join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let manifest = format!(
        "[package]\nname = \"in_process\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\narctic-gpu = {{ path = {:?} }}\n",
        root()
    );
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    let output = succeeded(&format!("run --quiet --manifest-path {}", package.join("Cargo.toml").display()), "");
    for line in [
        "pf: BAR 2 is memory at 0x5000000000..0x5080000000",
        "pf: writes to 0x40001901f0 are events",
        "function 0: MSI is Some(MsiMessage { address: fee00000, data: 31 })",
        "GUC_STATUS: 0x1",
        "vf2: BAR 2 is memory at 0x7020000000..0x7040000000",
        "VF 2 says it is one: 1",
        "2 VFs are gone",
        "nobody answers: 0xffffffff",
    ] {
        assert!(output.lines().any(|found| found == line), "no line {line:?} in\n{output}");
    }
}

/// The library builds with only the feature `event-manager`, and the `event_loop` test passes.
#[test]
fn an_event_manager_can_serve_notifications_of_the_guc() {
    succeeded("check -p arctic-gpu --lib --features event-manager", "");
    let output = succeeded("test -p arctic-gpu --features event-manager --test event_loop", "");
    assert!(output.contains("handlers_serve_notifications_of_the_guc ... ok"), "{output}");
}

#[test]
fn documentation_builds_without_a_warning() {
    let all = "-p arctic-gpu -p arctic-sriov -p arctic-device-model -p arctic-guest-agent -p arctic-guest-runner \
               -p arctic-vmm -p arctic-cli";
    succeeded(&format!("doc --no-deps --all-features {all}"), "-D warnings");
    // Documentation for users of the library without features.
    succeeded("doc --no-deps -p arctic-gpu", "-D warnings");
}
