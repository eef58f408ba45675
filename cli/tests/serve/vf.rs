// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic vf`: functions of a served card are saved, restored, paused and resumed.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use arctic_test_support::client::{COMMAND, CONFIG, LMEM, MEMORY_AND_BUS_MASTER};
use vfio_user::Client;
use vmm_sys_util::tempdir::TempDir;

use crate::{arctic, connect, fails, serve, status};

/// Offsets in a VF's memory of which each has a different value: 40 in each of two parts.
fn places() -> impl Iterator<Item = u64> {
    [0x1000_u64, 32 << 20].into_iter().flat_map(|part| (part..).step_by(0x1_0000).take(40))
}

/// Runs a command that succeeds, and returns its output.
fn output(arguments: &[&str]) -> String {
    let output = arctic(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that fails, and returns its sentence.
fn sentence(arguments: &[&str]) -> String {
    let (status, text) = fails(arguments);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{arguments:?}: {text}");
    text
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

/// A client that has enabled the function's memory.
fn enabled(dir: &Path, name: &str) -> Client {
    let mut client = connect(dir, name).unwrap();
    client.region_write(CONFIG, COMMAND, &MEMORY_AND_BUS_MASTER).unwrap();
    client
}

#[test]
fn a_vf_is_saved_and_restored_with_its_memory() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let served = serve("small", &dir.join("card"), &["--vfs", "2", "--provision", "config"]);
    let (card, file) = (dir.join("card"), path(dir, "state"));
    let (vf1, vf2) = (path(&card, "vf1"), path(&card, "vf2"));
    let mut client = enabled(&card, "vf1");
    let write = |client: &mut Client, value: u64| {
        for at in places() {
            client.region_write(LMEM, at, &(at ^ value).to_le_bytes()).unwrap();
        }
    };
    let holds = |client: &mut Client, value: u64| {
        places().all(|at| {
            let mut bytes = [0; 8];
            client.region_read(LMEM, at, &mut bytes).unwrap();
            u64::from_le_bytes(bytes) == at ^ value
        })
    };
    write(&mut client, 0x1234_5678_9abc);
    let saved = output(&["vf", "save", &vf1, &file]);
    assert!(saved.starts_with("vf1 saved: ") && saved.trim_end().ends_with(&file), "{saved}");
    // Most of the memory has no data and is not in the file.
    let bytes = fs::metadata(&file).unwrap().len();
    assert!((80 * 8..16 << 20).contains(&bytes), "{bytes} bytes");
    // The function continues after the save.
    write(&mut client, 0);
    assert!(holds(&mut client, 0));
    let restored = output(&["vf", "restore", &vf1, &file, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&restored).unwrap();
    assert_eq!((&document["function"], &document["bytes"]), (&"vf1".into(), &bytes.into()));
    assert!(holds(&mut client, 0x1234_5678_9abc));
    // The command register is part of the state.
    let mut other = connect(&card, "vf2").unwrap();
    output(&["vf", "restore", &vf2, &file]);
    let mut command = [0; 2];
    other.region_read(CONFIG, COMMAND, &mut command).unwrap();
    assert_eq!(command, MEMORY_AND_BUS_MASTER);
    assert!(holds(&mut other, 0x1234_5678_9abc));
    // By standard output and input, and the file of the same state is the same.
    let again = arctic(&["vf", "save", &vf1, "-"]).output().unwrap();
    assert!(again.status.success() && again.stdout == fs::read(&file).unwrap(), "{}", again.stdout.len());
    let from = fs::File::open(&file).unwrap();
    let piped = arctic(&["vf", "restore", &vf1, "-"]).stdin(Stdio::from(from)).output().unwrap();
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

#[test]
fn a_paused_vf_stays_paused() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let served = serve("small", &dir.join("card"), &["--vfs", "1", "--provision", "config"]);
    let (card, file) = (dir.join("card"), path(dir, "state"));
    let vf1 = path(&card, "vf1.sock");
    let state = || status(&card)["functions"][1]["state"].clone();
    assert_eq!(state(), "running");
    assert_eq!(output(&["vf", "pause", &vf1]), "vf1 paused\n");
    assert!(state()["paused"].is_object(), "{}", state());
    output(&["vf", "save", &vf1, &file]);
    output(&["vf", "restore", &vf1, &file]);
    assert!(state()["paused"].is_object(), "{}", state());
    assert_eq!(sentence(&["vf", "pause", &vf1]), "arctic: vf1 was not paused: the function is not running\n");
    assert_eq!(output(&["vf", "resume", &vf1]), "vf1 continues\n");
    assert_eq!(state(), "running");
    assert_eq!(sentence(&["vf", "resume", &vf1]), "arctic: vf1 was not resumed: the function is not paused\n");
    output(&["vf", "save", &vf1, &file]);
    assert_eq!(state(), "running");
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

#[test]
fn the_error_names_what_differs() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let [one, two, other, led] = ["one", "two", "other", "led"].map(|name| dir.join(name));
    let config = ["--provision", "config"];
    let served = [
        serve("small", &one, &[&["--vfs", "1"][..], &config].concat()),
        serve("small", &two, &[&["--vfs", "2"][..], &config].concat()),
        serve("flex140", &other, &[&["--vfs", "1"][..], &config].concat()),
        serve("small", &led, &["--vfs", "1"]),
    ];
    let (vf1, file) = (path(&one, "vf1"), path(dir, "state"));
    output(&["vf", "save", &vf1, &file]);
    let restored = |card: &Path, file: &str| sentence(&["vf", "restore", &path(card, "vf1"), file]);
    // Half of the quotas, another device, a card with a PF driver.
    let text = restored(&two, &file);
    assert!(text.starts_with("arctic: vf1 was not restored: the saved function had "), "{text}");
    let text = restored(&other, &file);
    let expected = "vf1 was not restored: the saved state is of device 0x56c0 revision 0x08, this is device 0x56c1";
    assert!(text.contains(expected), "{text}");
    let text = restored(&led, &file);
    assert!(text.contains("not supported"), "{text}");
    // Not such a file, a part of it, none.
    let bytes = fs::read(&file).unwrap();
    let (half, text_file) = (path(dir, "half"), path(dir, "text"));
    fs::write(&half, &bytes[..bytes.len() / 2]).unwrap();
    fs::write(&text_file, "no state".repeat(64)).unwrap();
    for (file, expected) in [(&half, "vf1 was not restored: "), (&text_file, "vf1 was not restored: ")] {
        let text = restored(&one, file);
        assert!(text.contains(expected), "{text}");
    }
    let missing = restored(&one, &path(dir, "missing"));
    assert!(missing.contains("missing cannot be opened: "), "{missing}");
    // The function can be used after all that.
    output(&["vf", "restore", &vf1, &file]);
    let text = sentence(&["vf", "save", &path(&one, "vf2"), &file]);
    assert_eq!(text, "arctic: the card has no vf2: it has pf, and vf1 only\n");
    let text = sentence(&["vf", "save", &path(&one, "pf"), &path(dir, "of-pf")]);
    assert!(text.contains("only virtual functions"), "{text}");
    assert!(!dir.join("of-pf").exists());
    assert_eq!(fails(&["vf", "save", one.to_str().unwrap(), &file]).0, Some(2));
    for served in served {
        assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    }
    assert!(sentence(&["vf", "pause", &vf1]).contains("no card is being served at "));
}

/// An integrated GPU is saved as a whole.
#[test]
fn an_integrated_gpu_is_saved_and_restored() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let served = serve("ivb", &dir.join("card"), &[]);
    let (card, file) = (dir.join("card"), path(dir, "state"));
    let mut client = enabled(&card, "pf");
    /// A scratch register of Ivy Bridge's render engine in GTTMMADR: INSTPM.
    const INSTPM: u64 = 0x20c0;
    client.region_write(0, INSTPM, &0x0080_0080_u32.to_le_bytes()).unwrap();
    let value = |client: &mut Client| {
        let mut bytes = [0; 4];
        client.region_read(0, INSTPM, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    };
    let before = value(&mut client);
    output(&["vf", "save", &path(&card, "pf"), &file]);
    client.region_write(0, INSTPM, &0x0080_0000_u32.to_le_bytes()).unwrap();
    assert_ne!(value(&mut client), before);
    output(&["vf", "restore", &path(&card, "pf"), &file]);
    assert_eq!(value(&mut client), before);
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}
