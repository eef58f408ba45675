// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! QEMU accepts the arguments that `arctic serve` prints, and creates every function.
//!
//! QEMU is taken from the cache that `arctic boot` fills. It exits before the guest's first instruction.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use arctic_guest_runner::artifacts::{self, Own, Qemu};
use arctic_guest_runner::cache::Cache;
use arctic_guest_runner::progress::StderrProgress;
use arctic_test_support::poll::eventually;
use arctic_test_support::served::{ChildProcess, Served};
use serde_json::{Value, json};

/// Serves a card in `dir`. Reads the server's output up to the line for which `is_last` holds.
fn serve(dir: &Path, arguments: &[&str], is_last: impl Fn(&str) -> bool) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arctic"));
    Served::start(command.arg("serve").arg("--dir").arg(dir).args(arguments).env_remove("RUST_LOG"), is_last)
}

/// Starts QEMU through a shell, with `text` as further arguments. Returns the number of the card's functions in QEMU,
/// and the slot and function of each PCI device on the root bus.
fn start(qemu: &Qemu, text: &str, more: &str) -> Result<(usize, Vec<(u64, u64)>), String> {
    let qemu = qemu.command();
    let mut command = Command::new("sh");
    let script = format!("exec \"$@\" {text} {more} -S -display none -qmp stdio");
    command.args(["-c", &script, "sh"]).arg(qemu.get_program()).args(qemu.get_args());
    command.envs(qemu.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let questions = [
        json!({ "execute": "qmp_capabilities" }),
        json!({ "execute": "qom-list", "arguments": { "path": "/machine/peripheral" } }),
        json!({ "execute": "query-pci" }),
        json!({ "execute": "quit" }),
    ];
    let questions: String = questions.iter().map(|question| format!("{question}\n")).collect();
    // QEMU does not read its input if it has rejected the arguments.
    let _ = process.stdin.take().unwrap().write_all(questions.as_bytes());
    let output = process.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let replies = output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let lists: Vec<Value> = replies.filter_map(|reply: Value| reply.get("return").cloned()).collect();
    let entries = |n: usize| lists.get(n).and_then(Value::as_array).cloned().unwrap_or_default();
    let functions = entries(1).iter().filter(|entry| entry["type"] == "child<vfio-user-pci>").count();
    let devices = entries(2).first().and_then(|bus| bus["devices"].as_array().cloned()).unwrap_or_default();
    let place = |device: &Value| Some((device["slot"].as_u64()?, device["function"].as_u64()?));
    Ok((functions, devices.iter().filter_map(place).collect()))
}

#[test]
fn qemu_starts_with_the_printed_arguments() {
    let cache = Cache::open().unwrap();
    let qemu = artifacts::obtain(&Own::default(), &cache, &StderrProgress::default()).unwrap().qemu;
    for (arguments, functions) in [
        (&["--card", "small"][..], 1),
        (&["--card", "small", "--vfs", "1"], 2),
        (&["--card", "small", "--vfs", "7"], 8),
        (&["--card", "small", "--vfs", "9"], 10),
        (&["--card", "flex170-63vf", "--vfs", "63"], 64),
        (&["--card", "flex170-63vf", "--vfs", "63", "--pci-port"], 64),
        (&["--card", "small", "--vfs", "2", "--split"], 3),
        (&["--card", "small", "--vfs", "2", "--provision", "config"], 1),
        (&["--card", "ivb"], 1),
    ] {
        let dir = tempfile::tempdir().unwrap();
        // The first block of arguments: indented lines, all except the last with a trailing backslash.
        let served = serve(dir.path(), arguments, |line| line.starts_with(' ') && !line.ends_with('\\'));
        let text: Vec<_> = served.lines.iter().filter(|line| line.starts_with(' ')).map(String::as_str).collect();
        let found = start(&qemu, &text.join("\n"), "");
        assert_eq!(found.as_ref().map(|(functions, _)| *functions), Ok(functions), "{arguments:?}: {found:?}");
    }
}

/// The arguments of several cards together make one machine with all of their functions.
#[test]
fn qemu_starts_with_the_arguments_of_several_cards() {
    let cache = Cache::open().unwrap();
    let qemu = artifacts::obtain(&Own::default(), &cache, &StderrProgress::default()).unwrap().qemu;
    for (cards, further, functions) in [(2, &["--vfs", "2"][..], 6), (3, &["--vfs", "2", "--pci-port"], 9)] {
        let dir = tempfile::tempdir().unwrap();
        let served: Vec<Served> = (1..=cards)
            .map(|number| {
                let number = number.to_string();
                let own = ["--card", "small", "--card-number", &number];
                let is_last = |line: &str| line.starts_with(' ') && !line.ends_with('\\');
                serve(&dir.path().join(&number), &[&own[..], further].concat(), is_last)
            })
            .collect();
        let text = served.iter().map(|card| {
            let lines = card.lines.iter().filter(|line| line.starts_with(' '));
            lines.map(String::as_str).collect::<Vec<_>>().join("\n")
        });
        let found = start(&qemu, &text.collect::<Vec<_>>().join(" \\\n"), "");
        assert_eq!(found.as_ref().map(|(functions, _)| *functions), Ok(functions), "{further:?}: {found:?}");
    }
}

/// The program of docs/integrated.md fills pixels by the ring of Ivy Bridge's copy engine, and the log names its accesses, by the
/// commands of the page.
#[test]
fn the_smallest_blit_of_the_documents_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/integrated.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = |text: &str, fence: &str| {
        let (_, block) = text.split_once(fence).unwrap();
        block.split_once("```\n").map(|(block, rest)| (block.to_owned(), rest.to_owned())).unwrap()
    };
    let (program, rest) = block(&page, "```c\n");
    let (commands, _) = block(&rest, "Run:\n\n```\n");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("blit.c"), program).unwrap();
    let own = Path::new(env!("CARGO_BIN_EXE_arctic")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([own.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut shell = Command::new("sh");
    let output = shell.args(["-exc", &commands]).current_dir(dir.path()).env("PATH", path).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}

/// The slots of the card's functions do not conflict with devices that the user adds, although QEMU assigns the slots
/// of those devices before it creates the card's functions.
#[test]
fn there_is_room_for_the_users_devices() {
    let cache = Cache::open().unwrap();
    let qemu = artifacts::obtain(&Own::default(), &cache, &StderrProgress::default()).unwrap().qemu;
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    std::fs::File::create(&disk).unwrap().set_len(1 << 20).unwrap();
    let served = serve(&dir.path().join("card"), &["--card", "flex170-63vf", "--vfs", "63"], |line| {
        line.starts_with(' ') && !line.ends_with('\\')
    });
    let text: Vec<_> = served.lines.iter().filter(|line| line.starts_with(' ')).map(String::as_str).collect();
    let more = format!("-vga std -nic user -drive if=virtio,format=raw,file={} -device virtio-rng-pci", disk.display());
    let found = start(&qemu, &text.join("\n"), &more);
    let (functions, places) = found.unwrap();
    assert_eq!(functions, 64);
    let own = |slot: u64| places.contains(&(slot, 0));
    assert!((1..=4).all(own) && !own(5), "display, NIC, disk and random numbers: {places:?}");
}

/// QEMU also accepts the arguments in the JSON document.
#[test]
fn qemu_starts_with_the_documents_arguments() {
    let cache = Cache::open().unwrap();
    let qemu = artifacts::obtain(&Own::default(), &cache, &StderrProgress::default()).unwrap().qemu;
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), &["--card", "small", "--vfs", "9", "--json"], |_| true);
    let document: Value = serde_json::from_str(served.first_line()).unwrap();
    let quoted = |argument: &Value| format!("'{}'", argument.as_str().unwrap().replace('\'', r"'\''"));
    let text: Vec<_> = document["qemu"].as_array().unwrap().iter().map(quoted).collect();
    let found = start(&qemu, &text.join(" "), "");
    assert_eq!(found.as_ref().map(|(functions, _)| *functions), Ok(10), "{found:?}");
}

/// QEMU does not transfer the state of the card, and refuses to migrate and to save a machine that `arctic qemu` has started.
#[test]
fn qemu_refuses_to_migrate_the_card() {
    // The program finds QEMU in the cache.
    artifacts::obtain(&Own::default(), &Cache::open().unwrap(), &StderrProgress::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (disk, socket) = (dir.path().join("disk"), dir.path().join("qmp"));
    File::create(&disk).unwrap().set_len(1 << 20).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_arctic"));
    command.args(["qemu", "--card", "small", "--no-console", "--memory", "512", "--disk"]).arg(&disk).arg("--");
    command.args(["-S", "-qmp"]).arg(format!("unix:{},server=on,wait=off", socket.display()));
    let mut process = ChildProcess::spawn(command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::null()));
    let mut monitor = None;
    eventually("QEMU listens", || {
        monitor = UnixStream::connect(&socket).ok();
        monitor.is_some() || process.try_wait().unwrap().is_some()
    });
    let mut monitor = monitor.expect("QEMU runs");
    let mut answers = BufReader::new(monitor.try_clone().unwrap()).lines();
    let mut query = |question: Value| {
        writeln!(monitor, "{question}").unwrap();
        let answers = answers.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        answers.into_iter().find(|answer| answer.get("return").or(answer.get("error")).is_some()).unwrap()
    };
    query(json!({ "execute": "qmp_capabilities" }));
    let file = format!("file:{}", dir.path().join("saved").display());
    let refused = query(json!({ "execute": "migrate", "arguments": { "uri": file } }));
    let reason = refused["error"]["desc"].as_str().unwrap_or_default();
    assert!(reason.contains("'the-card-cannot-be-migrated' does not support live migration"), "{refused}");
    let command = json!({ "execute": "human-monitor-command", "arguments": { "command-line": "savevm one" } });
    let refused = query(command);
    let reason = refused["return"].as_str().unwrap_or_default();
    assert!(reason.contains("'the-card-cannot-be-migrated' does not support live migration"), "{refused}");
    query(json!({ "execute": "quit" }));
    assert_eq!(process.wait().unwrap().code(), Some(0));
}
