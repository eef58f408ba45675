// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Checks of the library as a dependency: it builds without its features, its documentation builds without warnings,
//! and its examples run.

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

/// The examples print the expected lines in a package that has only the library, without features, and `vm-memory` as its
/// dependencies. (As examples of this package they would be built with the dev-dependencies' features.) The one that shows the
/// card has fewer than 150 lines.
#[test]
fn the_examples_show_the_card_in_one_process() {
    let sources = [
        ("in_process", include_str!("../examples/in_process.rs")),
        ("migration", include_str!("../examples/migration.rs")),
        ("own_threads", include_str!("../examples/own_threads.rs")),
    ];
    assert!(sources[0].1.lines().count() < 150, "{} lines", sources[0].1.lines().count());
    let package = target().join("library_examples");
    fs::create_dir_all(package.join("src/bin")).unwrap();
    for (name, source) in sources {
        fs::write(package.join(format!("src/bin/{name}.rs")), source).unwrap();
    }
    fs::copy(root().join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    // The version is that of the lock file.
    let manifest = format!(
        "[package]\nname = \"library_examples\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\narctic-gpu = {{ path = {:?} }}\n\
         vm-memory = {{ version = \"*\", features = [\"backend-bitmap\"] }}\n",
        root()
    );
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    let run = |name: &str| {
        succeeded(&format!("run --quiet --bin {name} --manifest-path {}", package.join("Cargo.toml").display()), "")
    };
    let output = run("in_process");
    for line in [
        "pf: BAR 2 is memory at 0x5000000000..0x5080000000",
        "pf: writes to 0x40001901f0 are events",
        "pf: MSI is address 0xfee00000, data 0x31",
        "pf: GUC_STATUS is 0x1",
        "vf2: BAR 2 is memory at 0x7020000000..0x7040000000",
        "vf2: VF_CAP is 0x1",
        "2 VFs are disabled",
        "after the reset, GUC_STATUS reads 0xffffffff",
    ] {
        assert!(output.lines().any(|found| found == line), "no line {line:?} in\n{output}");
    }
    let output = run("own_threads");
    assert_eq!(output, "the GPU has written 0xc0ffee00; dirty pages: 0x100000000\n");
    let output = run("migration");
    for part in [
        " pages were written during the copy",
        "the function has ",
        "000 answers before the move, 1000 after it",
        "the physical function: saving the physical function or all of this card is not supported",
    ] {
        assert!(output.contains(part), "no {part:?} in\n{output}");
    }
}

/// The library builds with only the feature `event-manager`, and the `event_loop` test passes.
#[test]
fn an_event_manager_can_serve_notifications_of_the_guc() {
    succeeded("check -p arctic-gpu --lib --features event-manager", "");
    let output = succeeded("test -p arctic-gpu --features event-manager --test event_loop", "");
    assert!(output.contains("handlers_serve_notifications_of_the_guc ... ok"), "{output}");
}

/// The library builds with only the feature `vm-device`, and its test passes.
#[test]
fn bars_can_be_devices_of_vm_device() {
    succeeded("check -p arctic-gpu --lib --features vm-device", "");
    let output = succeeded("test -p arctic-gpu --features vm-device --test vm_device", "");
    assert!(output.contains("bars_are_on_the_bus_where_the_guest_has_put_them ... ok"), "{output}");
}

#[test]
fn documentation_builds_without_a_warning() {
    let all = "-p arctic-gpu -p arctic-sriov -p arctic-device-model -p arctic-guest-agent -p arctic-guest-runner \
               -p arctic-vmm -p arctic-cli";
    succeeded(&format!("doc --no-deps --all-features {all}"), "-D warnings");
    // Documentation for users of the library without features.
    succeeded("doc --no-deps -p arctic-gpu", "-D warnings");
}
