//! `arctic serve` and `arctic firmware` as a user meets them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use vfio_user::Client;
use vmm_sys_util::tempdir::TempDir;

fn arctic(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arctic"));
    command.args(arguments).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// A card being served, with its first line of output.
struct Served {
    process: Child,
    first_line: String,
}

impl Served {
    fn start(card: &str, dir: &Path, more: &[&str]) -> Served {
        let mut command = arctic(&["serve", "--card", card, "--dir", dir.to_str().unwrap()]);
        let mut process = command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first_line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first_line).unwrap();
        Served { process, first_line }
    }

    /// Sends `signal`; gives the exit status and what was said on stderr.
    fn end(mut self, signal: i32) -> (Option<i32>, String) {
        // SAFETY: `kill` touches no memory, and the process is ours and not yet reaped.
        assert_eq!(unsafe { libc::kill(self.process.id() as i32, signal) }, 0);
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (self.process.wait().unwrap().code(), text)
    }
}

/// Exit status and stderr of a command that ends by itself.
fn fails(arguments: &[&str]) -> (Option<i32>, String) {
    let output = arctic(arguments).output().unwrap();
    assert!(output.stdout.is_empty(), "{arguments:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_card_is_served_until_a_signal_and_leaves_only_its_report() {
    let dir = TempDir::new().unwrap();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let served = Served::start("small", dir.as_path(), &[]);
        let socket = dir.as_path().join("pf.sock");
        assert!(served.first_line.contains(socket.to_str().unwrap()), "{}", served.first_line);
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
        let left: Vec<_> = fs::read_dir(dir.as_path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["report.json"]);
    }
}

#[test]
fn json_is_one_document() {
    let dir = TempDir::new().unwrap();
    let served = Served::start("flex170", dir.as_path(), &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&served.first_line).unwrap();
    assert_eq!(json["card"], "Intel Data Center GPU Flex 170");
    assert_eq!(json["sockets"]["pf"], dir.as_path().join("pf.sock").to_str().unwrap());
    assert!(json["qemu"].as_array().unwrap().iter().any(|argument| argument == "-device"));
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

#[test]
fn what_cannot_be_served_is_refused_in_one_sentence() {
    let dir = TempDir::new().unwrap();
    let path = dir.as_path().to_str().unwrap();
    let served = Served::start("small", dir.as_path(), &[]);
    let (status, text) = fails(&["serve", "--card", "small", "--dir", path]);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("pf.sock is in use"), "{text}");
    assert_eq!(served.end(libc::SIGINT).0, Some(0), "the first one goes on");

    let card = dir.as_path().join("bad.toml");
    fs::write(&card, "name = \"x\"\nlocal_memory = \"3GiB\"\n").unwrap();
    let (status, text) = fails(&["serve", "--card", card.to_str().unwrap(), "--dir", path]);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("bad.toml line 2: ") && text.contains("\"2GiB\""), "{text}");

    let (status, text) = fails(&["serve", "--card", "small", "--dir", "/proc/nowhere"]);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
    let long = dir.as_path().join("x".repeat(110));
    let (status, text) = fails(&["serve", "--card", "small", "--dir", long.to_str().unwrap()]);
    assert!(status == Some(1) && text.contains("shorter --dir"), "{text}");

    assert_eq!(fails(&["serve", "--dir", path]).0, Some(2));
}

#[test]
fn firmware_is_written_where_the_kernel_looks() {
    let dir = TempDir::new().unwrap();
    let output = arctic(&["firmware", "--out", dir.as_path().to_str().unwrap()]).output().unwrap();
    assert!(output.status.success());
    let path = dir.as_path().join("i915/dg2_guc_70.bin");
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), path.to_str().unwrap());
    assert_eq!(fs::read(path).unwrap(), arctic_gpu::firmware::guc());
    let (status, text) = fails(&["firmware", "--out", "/proc/nowhere"]);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
}
