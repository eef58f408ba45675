// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest tests: each test boots an unmodified kernel with its own drivers and checks its output. At most 12 guests run,
//! each for less than a minute, the one with kernels for at most 90 s; longer tests are in `cli/tests/guest_long`.
//!
//! Tests run one at a time, because a guest occupies two cores. The first run downloads the packages into the cache.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use arctic_guest_runner::artifacts::modules;
use arctic_guest_runner::artifacts::{self, Own};
use arctic_guest_runner::cache::Cache;
use arctic_guest_runner::progress::NullProgress;
use arctic_guest_runner::tsc;
use arctic_test_support::process::skipped;
use serde_json::Value;
use tempfile::TempDir;

mod run;
use run::{CLASSES, all_worked, arctic, list, migrations, one_guest, others};

/// Debian's xe probes, a workload runs on every engine, the test picture is correct, and the kernel log has no errors.
/// Proves V13-027 and contract B, E and F as used by a driver.
#[test]
fn xe_boots_and_works_on_every_engine() {
    let _one = one_guest();
    boots_and_works_on_every_engine("xe");
}

/// The same checks with the same kernel's i915, which uses the card differently. Proves contract G as used by a
/// driver.
#[test]
fn i915_boots_and_works_on_every_engine() {
    let _one = one_guest();
    boots_and_works_on_every_engine("i915");
}

fn boots_and_works_on_every_engine(driver: &str) {
    let (status, report) = arctic(&["boot", "--driver", driver]);
    assert_eq!(report["driver"], driver);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!((status, &report["ok"], &report["inconclusive"]), (Some(0), &Value::Bool(true), &Value::Bool(false)));
    assert_eq!(report["clocks"].as_array().unwrap().len(), 1);
    let engines = ["rcs0", "bcs0", "vcs0", "vcs1", "vecs0", "vecs1", "ccs0"];
    assert_eq!(report["engines"], serde_json::json!(engines));
    for engine in engines {
        let ran = |what: &str| {
            let name = format!("{engine}: {what}");
            report["results"].as_array().unwrap().iter().any(|result| result["test"] == name.as_str())
        };
        let all = ["stores", "mi_math loop", "timestamp", "fence chain"];
        assert!(all.iter().all(|what| ran(what)), "{engine} has not run all workloads");
    }
    assert_eq!(report["taint"], 64);
    let modules: Vec<&str> = report["modules"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(modules.contains(&driver) && modules.contains(&"mei_gsc"), "{modules:?}");
    let picture = std::fs::File::open(report["picture"].as_str().unwrap()).unwrap();
    let picture = png::Decoder::new(std::io::BufReader::new(picture)).read_info().unwrap();
    assert_eq!((picture.info().width, picture.info().height), (1920, 1080));
    let unexplained = |register: &&Value| register["reason"].is_null();
    assert_eq!(
        report["unmodelled"].as_array().unwrap().iter().filter(unexplained).collect::<Vec<_>>(),
        Vec::<&Value>::new()
    );
}

/// Three virtual functions and their physical function in one guest of upstream QEMU: xe provisions, enables and probes
/// them, a workload runs on every engine class of each, they are disabled, and enabled again. Then the first is migrated twice while all
/// have work. Proves V13-001 and contract C and D as used by both drivers.
#[test]
fn vfs_are_enabled_work_and_are_migrated() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--vfs", "3", "--migrate", "2"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
    all_worked(&report, 3, &CLASSES);
    assert_eq!(migrations(&report), 2);
}

/// VFs provisioned from the card file probe and work although no guest has the physical function.
#[test]
fn virtual_functions_without_a_physical_guest() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--vfs", "2", "--provision", "config"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
    all_worked(&report, 2, &CLASSES);
}

/// Debian's unmodified OpenCL and Level Zero drivers compute on the PF and on a VF at the same time: each kernel has the results
/// that the CPU has, and the picture is the host's.
#[test]
fn boot_compute() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--compute", "--vfs", "1"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
    let functions = report["compute"].as_array().unwrap();
    assert_eq!(functions.iter().map(|of| &of["function"]).collect::<Vec<_>>(), ["pf", "vf1"]);
    for of in functions {
        let kernels = of["kernels"].as_array().unwrap();
        let wrong: Vec<&Value> = kernels.iter().filter(|kernel| kernel["verdict"] != "right").collect();
        assert!(kernels.len() >= 25 && wrong.is_empty(), "{wrong:?}");
        assert!(kernels.iter().all(|kernel| kernel["device_seconds"].as_f64().is_some()), "{kernels:?}");
        assert!(of["first_right_seconds"].as_f64().unwrap() > 0.0);
    }
    let picture = std::fs::File::open(report["picture"].as_str().unwrap()).unwrap();
    let picture = png::Decoder::new(std::io::BufReader::new(picture)).read_info().unwrap();
    assert_eq!((picture.info().width, picture.info().height), (512, 384));
}

/// All subtests of a short IGT list pass; none is skipped. A nonexistent subtest and a nonexistent test binary are both
/// reported as failures, and the next subtests still run.
#[test]
fn igt_short_list_passes_and_continues_after_failures() {
    let _one = one_guest();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("list");
    let short = std::fs::read_to_string(list("short.txt")).unwrap();
    let missing = ["xe_query@no-such-subtest", "xe_nothing@at-all"];
    std::fs::write(&file, format!("{}\n{}\n{short}", missing[0], missing[1])).unwrap();
    let (status, report) = arctic(&["igt", "--list", file.to_str().unwrap()]);
    let failed: Vec<_> =
        others(&report, "pass").into_iter().map(|result| (result["test"].clone(), result["result"].clone())).collect();
    assert_eq!(failed, missing.map(|test| (test.into(), "fail".into())));
    assert_eq!((status, &report["skipped"]), (Some(1), &Value::from(0)));
    let subtests = short.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(report["results"].as_array().unwrap().len(), subtests + missing.len());
    assert_eq!(report["clocks"].as_array().unwrap().len() as u64, report["guests"].as_u64().unwrap());
}

/// Debian's i915 probes an integrated GPU of Ivy Bridge, the workloads pass on every engine and through the aperture, the
/// test picture is correct, the kernel log has no errors, and eight IGT subtests pass, all in one guest.
#[test]
fn ivy_bridge_boots_works_and_passes_igt() {
    let _one = one_guest();
    integrated_gpu_works_and_passes_igt("ivb", "ivb-short.txt", &["all: mi_math"]);
}

/// The same on Sandy Bridge. The driver has no command parser for it, so batches cannot access registers.
#[test]
fn sandy_bridge_boots_works_and_passes_igt() {
    let _one = one_guest();
    integrated_gpu_works_and_passes_igt("snb", "snb-short.txt", &["rcs0: contexts", "bcs0: Y tiles", "all: mi_math"]);
}

fn integrated_gpu_works_and_passes_igt(card: &str, tests: &str, not_applicable: &[&str]) {
    let list = list(tests);
    let (status, report) = arctic(&["igt", "--card", card, "--work", "--list", list.to_str().unwrap()]);
    let skipped = others(&report, "pass").into_iter().map(|result| (&result["test"], &result["result"]));
    let (skip, expected): (Value, Vec<Value>) =
        ("skip".into(), not_applicable.iter().map(|test| (*test).into()).collect());
    assert_eq!(skipped.collect::<Vec<_>>(), expected.iter().map(|test| (test, &skip)).collect::<Vec<_>>());
    assert_eq!((status, &report["guests"], &report["inconclusive"]), (Some(0), &1.into(), &Value::Bool(false)));
    let results = report["results"].as_array().unwrap();
    let ran = |name: &str| results.iter().any(|result| result["test"] == name);
    for name in ["rcs0: contexts", "bcs0: test card", "vcs0: fence files", "all: fence ring", "aperture: Y tiles"] {
        assert!(ran(name), "{name}");
    }
    let subtests = results.iter().filter(|result| result["test"].as_str().unwrap().contains('@'));
    assert_eq!(subtests.count(), 8);
    let unexplained = report["unmodelled"].as_array().unwrap().iter().filter(|register| register["reason"].is_null());
    assert_eq!(unexplained.collect::<Vec<_>>(), Vec::<&Value>::new());
}

/// If a guest's clock rate differs from the host's, the run is inconclusive. The exit status shows this, regardless of
/// the command's status, and the report contains both times. The user's kernel arguments are appended to the program's,
/// so they take precedence.
#[test]
fn a_guest_with_a_wrong_clock_is_inconclusive() {
    let _one = one_guest();
    let Some(khz) = tsc::host_khz() else {
        return skipped("this host has no invariant TSC that guests use");
    };
    let append = format!("tsc_early_khz={}", khz / 2);
    let (status, report) = arctic(&["boot", "--no-card", "--run", "sleep 8; exit 7", "--append", &append]);
    assert_eq!((status, &report["status"], &report["inconclusive"]), (Some(125), &7.into(), &true.into()));
    let clock = &report["clocks"][0];
    let ratio = clock["guest_seconds"].as_f64().unwrap() / clock["host_seconds"].as_f64().unwrap();
    assert!((1.8..2.2).contains(&ratio), "{clock}");
}

/// Boots a kernel that has only the driver under test, with modules in each compression format that a kernel build
/// produces. `--run` returns the output and exit status of a command, and `--share` mounts a directory. The command waits
/// until mei has enumerated the firmware's clients and read the version in the card file.
#[test]
fn an_own_kernel_without_i915_and_with_gzip_modules_runs_a_command() {
    let _one = one_guest();
    let kernel = artifacts::obtain(&Own::default(), &Cache::open().unwrap(), &NullProgress).unwrap().kernel;
    let folder = TempDir::new().unwrap();
    let own = folder.path().join(&kernel.release);
    copy_modules(&kernel.modules, &own);
    let share = TempDir::new().unwrap();
    std::fs::write(share.path().join("word"), "glacier ").unwrap();
    let (image, own) = (kernel.image.to_str().unwrap(), own.to_str().unwrap());
    let command = "lsmod | grep -qw xe && lsmod | grep -qw 9p || exit 1
        cat /share/word
        for second in 0 1 2 3 4 5 6 7 8 9; do
            grep -m 1 -v :0.0.0.0 /sys/class/mei/mei0/fw_ver && exit 7
            sleep 1
        done";
    let share = ["--share", share.path().to_str().unwrap()];
    let arguments = ["boot", "--kernel", image, "--modules", own, "--run", command];
    let (status, report) = arctic(&[arguments.as_slice(), &share].concat());
    let output = Value::from("glacier 0:101.0.1.3185\n");
    assert_eq!((status, &report["status"], &report["output"]), (Some(7), &Value::from(7), &output), "{report:#}");
    assert_eq!(report["inconclusive"], false);
    // Requests the missing driver explicitly.
    let refused = ["boot", "--kernel", image, "--modules", own, "--driver", "i915", "--run", "true"];
    let refused = Command::new(env!("CARGO_BIN_EXE_arctic")).args(refused).stdin(Stdio::null()).output().unwrap();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(message.contains("has no module i915, which --driver i915 needs") && message.contains("CONFIG_DRM_I915"));
}

/// Copies a module directory without i915; compresses some modules with gzip and leaves one uncompressed.
fn copy_modules(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copy_modules(&path, &to.join(name));
            continue;
        }
        let name = name.to_str().unwrap();
        let target = |extension: &str| to.join(name.split(".ko").next().unwrap().to_owned() + extension);
        match name.split(".ko").next().unwrap() {
            "i915" => {}
            "xe" | "9pnet" | "drm" => {
                let file = std::fs::File::create(target(".ko.gz")).unwrap();
                let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
                gzip.write_all(&modules::unpacked(&path).unwrap()).unwrap();
                gzip.finish().unwrap();
            }
            "9p" => std::fs::write(target(".ko"), modules::unpacked(&path).unwrap()).unwrap(),
            _ => std::os::unix::fs::symlink(&path, to.join(name)).unwrap(),
        }
    }
}
