// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fault handling: VMMs that are killed, stall, send partial messages or never reply, and termination of the program in
//! these states.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use arctic_gpu::vfio_user::wire::{HEADER_LEN, command};
use arctic_test_support::client::*;
use arctic_test_support::in_time;
use arctic_test_support::served::{ChildProcess, Served};
use rustix::fs::{MemfdFlags, memfd_create};
use vmm_sys_util::tempdir::TempDir;

use crate::{LEFT, eventually, left, serve, status};

/// Time limit for the program's exit.
const IN_ORDER: Duration = Duration::from_secs(2);

fn pf(dir: &Path) -> Raw {
    Raw::connect(&dir.join("pf.sock"))
}

/// Waits until the server has released the PF's connection. Before that, a new client is rejected as a second client.
fn pf_is_free(dir: &Path) {
    eventually("the PF has no client", || status(dir)["functions"][0]["connected"] == false);
}

/// Returns a new client of the PF after the previous one has disconnected. Enables memory space and bus mastering.
fn next_client(dir: &Path) -> Raw {
    pf_is_free(dir);
    let mut raw = pf(dir);
    raw.enable();
    raw
}

fn vendor(raw: &mut Raw) -> u32 {
    raw.read_u32(CONFIG, 0)
}

/// Checks for an orderly exit: status 0, a report, no socket left, within the time limit.
fn ends(served: Served, dir: &Path, signal: i32) {
    let start = Instant::now();
    let (code, text) = served.end(signal);
    let took = start.elapsed();
    assert_eq!(code, Some(0), "{text}");
    assert!(took < in_time!(IN_ORDER), "{took:?}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(dir.join("report.json")).unwrap()).unwrap();
    assert!(report["trapped"]["config"].is_u64());
    assert_eq!(left(dir), LEFT);
}

/// States in which the VMM is killed.
const STATES: [&str; 5] = ["header", "body", "question", "reply", "spin"];

/// Helper, not a test: runs as a separate VMM process that enters a given state. The test below kills it.
#[test]
#[ignore = "helper process of killed_vmm_releases_the_card"]
fn vmm_process() {
    let (Ok(state), Ok(dir)) = (std::env::var("ARCTIC_TEST_VMM"), std::env::var("ARCTIC_TEST_DIR")) else { return };
    let mut raw = pf(Path::new(&dir));
    let body = access(0x19_0240, GTTMMADR, 4, &[1; 4]);
    let header = raw.header(command::REGION_WRITE, &body);
    let message = [&header.encode()[..], &body].concat();
    match state.as_str() {
        "header" => raw.stream.write_all(&message[..HEADER_LEN / 2]).unwrap(),
        "body" => raw.stream.write_all(&message[..HEADER_LEN + 7]).unwrap(),
        "question" | "reply" => {
            raw.map(IOVA, 0x2000, &[]);
            raw.fetch();
            let question = raw.question(Duration::from_secs(5)).expect("a DMA request of the engine");
            if state == "reply" {
                let half = [&question.header.encode()[..], &question.iova.to_le_bytes()].concat();
                raw.stream.write_all(&half).unwrap();
            }
        }
        _ => raw.spin(),
    }
    println!("there");
    std::io::stdout().flush().unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

fn vmm(state: &str, dir: &Path) -> ChildProcess {
    pf_is_free(dir);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "faults::vmm_process", "--nocapture"]);
    command.env("ARCTIC_TEST_VMM", state).env("ARCTIC_TEST_DIR", dir);
    let mut child = ChildProcess::spawn(command.stdout(Stdio::piped()).stderr(Stdio::inherit()));
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("there")), "{state}");
    child
}

/// Checks that an engine reads guest memory with a DMA request to the client and receives the reply.
fn fetches(raw: &mut Raw) {
    raw.fetch();
    let question = raw.question(Duration::from_secs(5)).expect("a DMA request of the engine");
    raw.answer(&question, Ok(0x5a));
    eventually("the fetched value", || raw.fetched() == 0x5a5a_5a5a);
}

/// SIGKILL of a VMM that has sent a partial header or a partial body, while an engine waits for its reply, after a
/// partial reply, and while an engine runs an endless batch: the engine is released, the card is in reset state and
/// works for the next VMM, and the program exits in an orderly way.
#[test]
fn killed_vmm_releases_the_card() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &[]);
    for round in 0..2 {
        for state in STATES {
            let mut child = vmm(state, dir.as_path());
            child.kill().unwrap();
            let killed = Instant::now();
            child.wait().unwrap();
            let mut raw = next_client(dir.as_path());
            assert_eq!(vendor(&mut raw), 0x56c0_8086, "{state}");
            assert!(!raw.spins(), "{state}: the killed VMM's batch still runs");
            assert!(killed.elapsed() < in_time!(Duration::from_secs(3)), "{state}, {round}: {:?}", killed.elapsed());
            assert_eq!(
                [0, 8].map(|at| raw.read_u32(LMEM, DATA + at)),
                [0, 0],
                "{state}: the card is not in reset state"
            );
            raw.map(IOVA, 0x2000, &[]);
            fetches(&mut raw);
        }
    }
    ends(served, dir.as_path(), libc::SIGTERM);
}

/// A second client's connection is closed immediately, a hundred times. The first client is not affected.
#[test]
fn second_client_is_refused_immediately() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &[]);
    let mut first = pf(dir.as_path());
    first.spin();
    for _ in 0..100 {
        let start = Instant::now();
        let mut second = std::os::unix::net::UnixStream::connect(dir.as_path().join("pf.sock")).unwrap();
        second.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert!(matches!(second.read(&mut [0; 1]), Ok(0)));
        assert!(start.elapsed() < in_time!(Duration::from_secs(1)), "{:?}", start.elapsed());
        assert_eq!(vendor(&mut first), 0x56c0_8086);
    }
    // The same after the first client has sent a partial message.
    let body = access(0, CONFIG, 4, &[]);
    let message = [&first.header(command::REGION_READ, &body).encode()[..], &body].concat();
    first.stream.write_all(&message[..20]).unwrap();
    let mut second = std::os::unix::net::UnixStream::connect(dir.as_path().join("pf.sock")).unwrap();
    assert!(matches!(second.read(&mut [0; 1]), Ok(0)));
    first.stream.write_all(&message[20..]).unwrap();
    let mut reply = [0; 36];
    first.stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[32..], 0x56c0_8086_u32.to_le_bytes());
    assert!((0..100).any(|_| first.spins()), "the first client's batch has stopped");
    ends(served, dir.as_path(), libc::SIGTERM);
}

/// The program terminates in an orderly way while an engine runs an endless batch, after a client has sent a partial
/// message, while an engine waits for a client's reply, and while a client does not read its replies.
#[test]
fn program_exits_in_order_in_each_situation() {
    type Make = fn(&mut Raw);
    let situations: [(&str, Make); 5] = [
        ("an engine runs an endless batch", |raw| raw.spin()),
        ("partial header", |raw| raw.stream.write_all(&[1; 5]).unwrap()),
        ("partial body", |raw| {
            let body = access(0, GTTMMADR, 4, &[1; 4]);
            let header = raw.header(command::REGION_WRITE, &body);
            raw.stream.write_all(&[&header.encode()[..], &body[..9]].concat()).unwrap();
        }),
        ("an engine waits for a reply", |raw| {
            raw.map(IOVA, 0x2000, &[]);
            raw.fetch();
            raw.question(Duration::from_secs(5)).expect("a DMA request of the engine");
        }),
        ("the client does not read replies", |raw| {
            let body = access(0, CONFIG, 4096, &[]);
            raw.stream.set_nonblocking(true).unwrap();
            let message = [&raw.header(command::REGION_READ, &body).encode()[..], &body].concat();
            // Until the server stops reading requests.
            for _ in 0..50 {
                while raw.stream.write_all(&message).is_ok() {}
                std::thread::sleep(Duration::from_millis(2));
            }
        }),
    ];
    for signal in [libc::SIGTERM, libc::SIGINT] {
        for (what, make) in situations {
            let dir = TempDir::new().unwrap();
            let served = serve("small", dir.as_path(), &["--vfs", "2", "--split"]);
            let mut raw = pf(dir.as_path());
            let mut shims = [1, 2].map(|vf| Raw::connect(&dir.as_path().join(format!("vf{vf}-config-only.sock"))));
            make(&mut raw);
            for shim in &mut shims {
                shim.stream.write_all(&[1; 5]).unwrap();
            }
            println!("{what}");
            ends(served, dir.as_path(), signal);
        }
    }
}

/// A killed server leaves its sockets behind. The next server with the same card file and directory replaces them and
/// starts with an empty card.
#[test]
fn killed_server_is_replaced_by_the_next() {
    let dir = TempDir::new().unwrap();
    for _ in 0..3 {
        let mut served = serve("small", dir.as_path(), &["--vfs", "1"]);
        let mut raw = pf(dir.as_path());
        raw.enable();
        for at in [DATA, 0, 64 << 20] {
            assert_eq!(raw.read_u32(LMEM, at), 0, "local memory of the previous card");
            raw.write(LMEM, at, &[0xaa; 4]);
        }
        assert_eq!(raw.read_u32(GTTMMADR, 8 << 20), 0, "the GGTT of the previous card");
        raw.write(GTTMMADR, 8 << 20, &[0xaa; 8]);
        raw.write(CONFIG, 0x330, &[1, 0]);
        raw.spin();
        served.process.kill().unwrap();
        served.process.wait().unwrap();
        for name in ["pf.sock", "vf1.sock", "operator/operator.sock"] {
            assert!(dir.as_path().join(name).exists(), "{name}: missing after the kill");
        }
        assert!(matches!(raw.stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
    let served = serve("small", dir.as_path(), &["--vfs", "1"]);
    let mut raw = next_client(dir.as_path());
    assert_eq!(vendor(&mut raw), 0x56c0_8086);
    ends(served, dir.as_path(), libc::SIGTERM);
}

/// Measures the limit: an engine waits 0.4 s for the first reply of a client that never replies, and for all later
/// replies together at most a tenth of the time, regardless of how often the driver makes the engine access guest
/// memory. Accesses of other functions to the card (registers of that engine, the GuC's state, memory) are delayed by
/// at most that time.
#[test]
fn client_that_never_answers_delays_others_within_the_limit() {
    const MEASURED: Duration = Duration::from_secs(5);
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &["--vfs", "1"]);
    let mut raw = pf(dir.as_path());
    raw.map(IOVA, 0x2000, &[]);
    let start = Instant::now();
    let (mut longest, mut held_up, mut rounds) = (Duration::ZERO, Duration::ZERO, 0);
    while start.elapsed() < MEASURED {
        raw.fetch();
        let before = Instant::now();
        // Waits for the engine's current step.
        raw.reset_engine();
        status(dir.as_path());
        let took = before.elapsed();
        longest = longest.max(took);
        held_up += took.saturating_sub(Duration::from_millis(100));
        rounds += 1;
    }
    let request_count = raw.questions.len();
    println!("{request_count} requests in {rounds} rounds; longest delay {longest:?}, total {held_up:?}");
    assert!(request_count >= 2, "fewer than two DMA requests");
    assert!(longest < in_time!(Duration::from_millis(700)), "{longest:?}");
    assert!(held_up < in_time!(Duration::from_millis(1200)), "{held_up:?} of {MEASURED:?}");
    // The client replies again, and the engine waits for its replies again.
    std::thread::sleep(Duration::from_secs(1));
    raw.questions.clear();
    fetches(&mut raw);
    ends(served, dir.as_path(), libc::SIGTERM);
}

/// The server does not map a memory file that the client may truncate, and logs this once. Truncation of a file in use
/// faults the context, and the card continues.
#[test]
fn truncated_memory_file_faults_only_its_context() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &[]);
    let mut raw = pf(dir.as_path());
    let file = std::fs::File::from(memfd_create("guest", MemfdFlags::CLOEXEC).unwrap());
    file.set_len(0x4000).unwrap();
    for n in 0..3 {
        raw.map(IOVA + n * 0x4000, 0x4000, &[file.as_raw_fd()]);
    }
    std::os::unix::fs::FileExt::write_all_at(&file, &[0x5a; 4], 0).unwrap();
    raw.fetch();
    eventually("the fetched value", || raw.fetched() == 0x5a5a_5a5a);
    assert!(raw.questions.is_empty(), "the server sent a DMA request for memory with a file");
    file.set_len(0).unwrap();
    raw.fetch();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(raw.fetched(), 0);
    assert_eq!(vendor(&mut raw), 0x56c0_8086);
    let (code, text) = served.end(libc::SIGTERM);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("the client may cut its memory file short").count(), 1, "{text}");
    let section = format!("section {IOVA:#x} to {:#x}", IOVA + 0x3fff);
    assert!(text.contains(&section), "{section}: {text}");
}
