// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Command-line tests of `arctic serve` and `arctic firmware`.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tests: numbers are chosen by the test")]

mod captures;
mod faults;
mod folder;
mod inspect;
mod limits;
mod neighbours;
mod operator;
mod operator_commands;
mod output;
mod silent;
mod skipped;
mod top;
mod vf;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use arctic_test_support::client::{COMMAND, CONFIG, MEMORY_AND_BUS_MASTER};
use arctic_test_support::poll::eventually;
use arctic_test_support::served::Served;
use vfio_user::Client;
use vmm_sys_util::tempdir::TempDir;

fn arctic(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arctic"));
    command.args(arguments).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Serves the card in `dir`. Reads the first line of the server's output.
fn serve(card: &str, dir: &Path, more: &[&str]) -> Served {
    let mut command = arctic(&["serve", "--card", card, "--dir", dir.to_str().unwrap()]);
    Served::start(command.args(more).stderr(Stdio::piped()), |_| true)
}

/// Files that remain after an orderly exit: no socket.
pub const LEFT: [&str; 3] = ["lock", "operator", "report.json"];

/// Returns the names in the directory and in its subdirectory `operator`.
pub fn left(dir: &Path) -> Vec<String> {
    let names = |dir: &Path| -> Vec<_> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let mut left = [names(dir), names(&dir.join("operator"))].concat();
    left.sort();
    left
}

/// Returns the exit status and stderr of a command that prints nothing to stdout.
fn fails(arguments: &[&str]) -> (Option<i32>, String) {
    let output = arctic(arguments).output().unwrap();
    assert!(output.stdout.is_empty(), "{arguments:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Threads of the server have a short time slice (Linux 6.12 and later; 0 before).
#[test]
fn the_server_has_a_short_time_slice() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &[]);
    for thread in fs::read_dir(format!("/proc/{}/task", served.process.id())).unwrap() {
        let id = thread.unwrap().file_name().to_str().unwrap().parse().unwrap();
        let attributes = arctic_gpu::scheduling::attributes(id).unwrap();
        let (policy, slice) = (attributes.sched_policy, attributes.sched_runtime);
        assert!(policy != 0 || [100_000, 0].contains(&slice), "thread {id}: {slice} ns");
    }
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

#[test]
fn a_card_is_served_until_a_signal_and_leaves_only_its_report() {
    let dir = TempDir::new().unwrap();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let served = serve("small", dir.as_path(), &[]);
        let socket = dir.as_path().join("pf.sock");
        assert!(served.first_line().contains(socket.to_str().unwrap()), "{}", served.first_line());
        let mut client = Client::new(&socket).unwrap();
        let mut id = [0; 4];
        client.region_read(7, 0, &mut id).unwrap();
        assert_eq!(u32::from_le_bytes(id), 0x56c0_8086);
        let (status, text) = served.end(signal);
        assert_eq!(status, Some(0), "{text}");
        assert!(text.starts_with("trapped accesses: 1 (config 1,"), "{text}");
        let report: serde_json::Value =
            serde_json::from_slice(&fs::read(dir.as_path().join("report.json")).unwrap()).unwrap();
        assert_eq!(report["trapped"]["config"], 1);
        assert!(report["unmodelled"].as_array().unwrap().is_empty());
        assert_eq!(left(dir.as_path()), LEFT);
    }
}

/// Offsets of the SR-IOV capability in configuration space.
const NUM_VFS: u64 = 0x330;
const CONTROL: u64 = 0x328;
const VF_ENABLE_AND_MSE: [u8; 2] = [9, 0];

/// Returns a client of the function `name` of the card in `dir`; `None` if the connection is rejected.
fn connect(dir: &Path, name: &str) -> Option<Client> {
    Client::new(&dir.join(format!("{name}.sock"))).ok()
}

/// Connects to the PF's socket, and enables memory space and bus mastering.
fn connect_pf(dir: &Path) -> Client {
    let mut pf = connect(dir, "pf").unwrap();
    pf.region_write(CONFIG, COMMAND, &MEMORY_AND_BUS_MASTER).unwrap();
    pf
}

/// Counts the entries of a directory in /proc of the server, or the lines of a file in it.
fn count(served: &Served, what: &str) -> usize {
    let path = format!("/proc/{}/{what}", served.process.id());
    fs::read_dir(&path)
        .map(Iterator::count)
        .or_else(|_| fs::read_to_string(&path).map(|text| text.lines().count()))
        .unwrap()
}

fn status(dir: &Path) -> serde_json::Value {
    let output = arctic(&["status", dir.to_str().unwrap(), "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn config_u16(client: &mut Client, offset: u64) -> u16 {
    let mut data = [0; 2];
    client.region_read(CONFIG, offset, &mut data).unwrap();
    u16::from_le_bytes(data)
}

#[test]
fn vfs_have_sockets_beside_the_pf() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &["--vfs", "2", "--json"]);
    let json: serde_json::Value = serde_json::from_str(served.first_line()).unwrap();
    assert_eq!(json["sockets"]["vfs"].as_array().unwrap().len(), 2);
    let devices = |arguments: &serde_json::Value| {
        arguments.as_array().unwrap().iter().filter(|argument| *argument == "-device").count()
    };
    assert_eq!(devices(&json["qemu"]), 3);
    let mut pf = connect(dir.as_path(), "pf").unwrap();
    let mut vf = connect(dir.as_path(), "vf2").unwrap();
    assert_eq!((config_u16(&mut pf, 0x32e), config_u16(&mut vf, 0)), (2, 0xffff));
    pf.region_write(CONFIG, NUM_VFS, &[2, 0]).unwrap();
    pf.region_write(CONFIG, CONTROL, &VF_ENABLE_AND_MSE).unwrap();
    let mut vf_cap = [0; 4];
    vf.region_read(0, 0x19_01f8, &mut vf_cap).unwrap();
    assert_eq!(vf_cap, [1, 0, 0, 0]);
    let status = status(dir.as_path());
    assert_eq!((&status["topology"], &status["enabled_vfs"]), (&"together".into(), &2.into()));
    let function = |n: usize, what: &str| status["functions"][n][what].clone();
    assert_eq!([0, 1, 2].map(|n| function(n, "connected")), [true, false, true]);
    assert_eq!(function(2, "trapped")["register_reads"], 1);
    let (code, text) = served.end(libc::SIGTERM);
    assert!(code == Some(0) && text.contains("  vf2: 2 (config 1, register_reads 1)\n"), "{text}");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.as_path().join("report.json")).unwrap()).unwrap();
    assert_eq!(report["functions"]["vf2"]["register_reads"], 1);
}

#[test]
fn split_vfs_accept_clients_while_enabled() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &["--vfs", "2", "--split", "--json"]);
    let json: serde_json::Value = serde_json::from_str(served.first_line()).unwrap();
    assert_eq!((json["qemu_vfs"].as_array().unwrap().len(), &json["topology"]), (2, &"split".into()));
    let mut pf = connect(dir.as_path(), "pf").unwrap();
    let mut shim = connect(dir.as_path(), "vf1-config-only").unwrap();
    assert!(connect(dir.as_path(), "vf1").is_none(), "client accepted before VF Enable");
    pf.region_write(CONFIG, NUM_VFS, &[1, 0]).unwrap();
    pf.region_write(CONFIG, CONTROL, &VF_ENABLE_AND_MSE).unwrap();
    let mut vf = connect(dir.as_path(), "vf1").unwrap();
    assert_eq!((config_u16(&mut vf, 2), config_u16(&mut shim, 2)), (0x56c0, 0xffff));
    assert!(connect(dir.as_path(), "vf2").is_none(), "client of a disabled VF accepted");
    drop(vf);
    let mut vf = None;
    eventually("a new client after a disconnect", || {
        vf = connect(dir.as_path(), "vf1");
        vf.is_some()
    });
    // The VF's client stays connected when the VFs are disabled, and when the PF's client dies.
    let mut vf = vf.unwrap();
    for dies in [false, true] {
        match dies {
            false => pf.region_write(CONFIG, CONTROL, &[0, 0]).unwrap(),
            true => pf.shutdown().unwrap(),
        }
        eventually("the VF is gone", || config_u16(&mut vf, 2) == 0xffff);
        vf.reset().unwrap();
        assert!(connect(dir.as_path(), "vf1").is_none(), "a second client");
        eventually("a client of the PF", || {
            if dies && let Some(next) = connect(dir.as_path(), "pf") {
                pf = next;
                return true;
            }
            !dies
        });
        pf.region_write(CONFIG, NUM_VFS, &[1, 0]).unwrap();
        pf.region_write(CONFIG, CONTROL, &VF_ENABLE_AND_MSE).unwrap();
        vf.reset().unwrap();
        assert_eq!(config_u16(&mut vf, 2), 0x56c0);
    }
    let (code, text) = served.end(libc::SIGINT);
    assert!(code == Some(0) && text.contains("VF 1 does not exist yet: start its guest after"), "{text}");
}

#[test]
fn provisioned_vfs_need_no_pf() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &["--vfs", "3", "--provision", "config"]);
    assert!(
        served.first_line().contains("vf1.sock") && !served.first_line().contains("pf.sock"),
        "{}",
        served.first_line()
    );
    assert!(!dir.as_path().join("pf.sock").exists());
    let mut vf = connect(dir.as_path(), "vf3").unwrap();
    assert_eq!(config_u16(&mut vf, 2), 0x56c0);
    let output = arctic(&["status", dir.as_path().join("operator/operator.sock").to_str().unwrap()]).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("provisioned: 3 of 3 VFs enabled"), "{table}");
    assert!(words.contains("vf2 no client D0 256 MiB 1024 MiB 0/16384 16 ms 0.00 s 0 -"), "{table}");
    assert!(words.contains("vf3 no driver D0 256 MiB"), "{table}");
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    let (code, text) = fails(&["status", dir.as_path().to_str().unwrap()]);
    assert!(code == Some(1) && text.contains("no card is being served at"), "{text}");
}

/// Enabling and disabling VFs leaks no descriptor, mapping or thread.
#[test]
fn toggling_vf_enable_leaks_nothing() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &["--vfs", "31"]);
    let mut pf = connect(dir.as_path(), "pf").unwrap();
    let mut vf = connect(dir.as_path(), "vf31").unwrap();
    let mut toggle = |times| {
        for _ in 0..times {
            pf.region_write(CONFIG, NUM_VFS, &[31, 0]).unwrap();
            pf.region_write(CONFIG, CONTROL, &VF_ENABLE_AND_MSE).unwrap();
            assert_eq!(config_u16(&mut vf, 8), 8, "the revision");
            pf.region_write(CONFIG, CONTROL, &[0, 0]).unwrap();
            assert_eq!(config_u16(&mut vf, 8), 0xffff);
        }
    };
    toggle(20);
    let held = || ["fd", "task"].map(|what| count(&served, what));
    let (before, mappings) = (held(), count(&served, "maps"));
    toggle(300);
    assert_eq!(held(), before);
    // Allows for arenas of the allocator. A leak per VF and iteration would exceed this limit.
    assert!(count(&served, "maps") < mappings + 50, "{mappings} mappings before, {} after", count(&served, "maps"));
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

#[test]
fn json_is_one_document() {
    let dir = TempDir::new().unwrap();
    let served = serve("flex170", dir.as_path(), &["--json"]);
    let json: serde_json::Value = serde_json::from_str(served.first_line()).unwrap();
    assert_eq!(json["card"], "Intel Data Center GPU Flex 170");
    assert_eq!(json["sockets"]["pf"], dir.as_path().join("pf.sock").to_str().unwrap());
    assert!(json["qemu"].as_array().unwrap().iter().any(|argument| argument == "-device"));
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

/// The document has the fields that management software reads, regardless of other options, and no file is created.
#[test]
fn capabilities_are_printed_without_a_card() {
    let dir = TempDir::new().unwrap();
    let path = dir.as_path().join("card");
    for more in [&[][..], &["--card", "nonsense", "--dir", path.to_str().unwrap(), "--vfs", "2"]] {
        let output = arctic(&[&["serve", "--print-capabilities"], more].concat()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty() && !path.exists());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&json["type"], &json["protocol"]["name"]), (&"gpu".into(), &"vfio-user".into()));
        assert_eq!((&json["device"]["vendor"], &json["device"]["device"]), (&"0x8086".into(), &"0x56c0".into()));
        assert_eq!(json["device"]["max_vfs"], 63);
        let features: Vec<&str> =
            json["features"].as_array().unwrap().iter().map(|feature| feature.as_str().unwrap()).collect();
        assert!(["socket-group", "split", "vfs"].iter().all(|option| features.contains(option)), "{features:?}");
        assert!(!features.iter().any(|feature| feature.starts_with("print-")), "{features:?}");
        let card = &json["cards"][0];
        assert_eq!((&card["name"], &card["max_vfs"]), (&"flex170".into(), &31.into()));
        assert_eq!(card["local_memory_bytes"], 16_u64 << 30);
    }
}

/// The printed file of each built-in card is a card file, of which one is served.
#[test]
fn built_in_card_files_are_printed() {
    let dir = TempDir::new().unwrap();
    for (name, text) in arctic_gpu::card_file::BUILT_IN {
        let output = arctic(&["serve", "--print-card", name]).output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8(output.stdout).unwrap().as_str()), (Some(0), text));
    }
    let file = dir.as_path().join("lab.toml");
    fs::write(&file, arctic(&["serve", "--print-card", "small"]).output().unwrap().stdout).unwrap();
    let served = serve(file.to_str().unwrap(), &dir.as_path().join("card"), &[]);
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    let (status, text) = fails(&["serve", "--print-card", "flex9000"]);
    assert!(status == Some(2) && text.contains("flex170-63vf, small, ivb"), "{text}");
}

#[test]
fn a_card_that_cannot_be_served_is_refused_in_one_sentence() {
    let dir = TempDir::new().unwrap();
    let path = dir.as_path().to_str().unwrap();
    let served = serve("small", dir.as_path(), &[]);
    let (status, text) = fails(&["serve", "--card", "small", "--dir", path]);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("is in use: another card is being served there"), "{text}");
    assert_eq!(served.end(libc::SIGINT).0, Some(0), "exit status of the first server");

    let card = dir.as_path().join("bad.toml");
    fs::write(&card, "family = \"xehpg\"\nname = \"x\"\nlocal_memory = \"3MiB\"\n").unwrap();
    let (status, text) = fails(&["serve", "--card", card.to_str().unwrap(), "--dir", path]);
    assert_eq!((status, text.lines().count()), (Some(2), 1), "{text}");
    assert!(text.contains("bad.toml line 3 (family xehpg): ") && text.contains("\"16GiB\""), "{text}");

    let (status, text) = fails(&["serve", "--card", "small", "--dir", "/proc/nowhere"]);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
    let long = dir.as_path().join("x".repeat(110));
    let (status, text) = fails(&["serve", "--card", "small", "--dir", long.to_str().unwrap()]);
    assert!(status == Some(1) && text.contains("shorter --dir"), "{text}");

    for (arguments, remedy) in [
        (&["--vfs", "32"][..], "the card small has 31 VFs, not 32"),
        (&["--split"], "say with --vfs how many"),
        (&["--vfs", "20", "--pf-address", "00:1e.0"], "addresses for 15 VFs, not 20"),
        (&["--pf-address", "00:1f.0"], "the devices 00:00 and 00:1f are q35's own"),
        (&["--vfs", "-1"], "expected a whole number of VFs, 0 to 63"),
        (&["--spin", "x"], "expected a whole number of microseconds, 0 to 10000"),
    ] {
        let (status, text) = fails(&[&["serve", "--card", "small", "--dir", path], arguments].concat());
        assert_eq!(status, Some(2), "{text}");
        assert!(text.lines().next().is_some_and(|line| line.contains(remedy)), "{text}");
    }
    for arguments in [&["--vfs", "64"][..], &["--vfs", "1", "--ecam", "0x1234"], &["--pf-address", "1.0"]] {
        assert_eq!(fails(&[&["serve", "--card", "small", "--dir", path], arguments].concat()).0, Some(2));
    }
    assert_eq!(fails(&["serve"]).0, Some(2));
}

#[test]
fn firmware_is_written_to_the_folder_that_the_kernel_searches() {
    let dir = TempDir::new().unwrap();
    let output = arctic(&["firmware", "--out", dir.as_path().to_str().unwrap()]).output().unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let paths = ["i915/dg2_guc_70.bin", "i915/dg2_huc_gsc.bin"].map(|path| dir.as_path().join(path));
    assert_eq!(printed.lines().collect::<Vec<_>>(), paths.each_ref().map(|path| path.to_str().unwrap()));
    for (path, file) in paths.iter().zip(arctic_gpu::firmware::files()) {
        assert_eq!(fs::read(path).unwrap(), file.bytes);
    }
    let (status, text) = fails(&["firmware", "--out", "/proc/nowhere"]);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
}
