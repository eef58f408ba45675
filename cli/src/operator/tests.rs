// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use arctic_device_model::gpu::{CaptureProgress, WalkerCapture, WalkerRequest};
use arctic_device_model::host::{Function, ManualClock};
use arctic_device_model::trace::{Event, EventKind, Recorder, Subscription};
use arctic_test_support::poll::eventually;
use serde_json::value::{RawValue, to_raw_value};
use vmm_sys_util::tempdir::TempDir;

use super::client::Events;
use super::server::{Backend, MOST_CONNECTIONS};
use super::subscribers::MOST_SUBSCRIBERS;
use super::*;
use crate::capture::Heading;

/// A backend that has the errors "a" and "b", a status of `status_bytes` bytes, and the recorder's events.
struct TestBackend {
    recorder: Arc<Recorder>,
    status_bytes: usize,
    /// Number of requests carried out.
    requests: Arc<AtomicUsize>,
    /// Held by a test while error registers are not to be read.
    held: Arc<Mutex<()>>,
}

impl Backend for TestBackend {
    fn carry_out(&self, request: Request) -> Result<Box<RawValue>, String> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        match request {
            Request::Inject { error } if ["a", "b"].contains(&error.as_str()) => {
                Ok(to_raw_value(&Raised { raised: error }).unwrap())
            }
            Request::Inject { error } => Err(format!("no error {error}")),
            Request::Status {} => Ok(to_raw_value(&"x".repeat(self.status_bytes)).unwrap()),
            _ => {
                drop(self.held.lock().unwrap());
                Ok(to_raw_value(&()).unwrap())
            }
        }
    }

    fn subscribe(&self, filter: Filter) -> Result<(Heading, Subscription), String> {
        Ok((Heading::new("test", Some("ivy-bridge")), self.recorder.subscribe(filter)))
    }

    /// Captures of walker 1 wait, those of walker 2 are done, those of walker 3 fail.
    fn capture(&self, request: WalkerRequest) -> Result<Box<dyn WalkerCapture>, String> {
        match request.number {
            1..=3 => Ok(Box::new(TestCapture { number: request.number, bytes: request.most_bytes, steps: 0 })),
            _ => Err("no such walker".into()),
        }
    }

    /// Function 1 has [`STATE`] bytes, in pieces of different lengths; of function 2 the save fails after some of them.
    fn save(&self, function: u8, out: &mut dyn Write) -> Result<Done, String> {
        let state: Vec<u8> = (0..STATE).map(byte_at).collect();
        let mut rest = &state[..];
        let mut length = 1;
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(length.min(rest.len()));
            out.write_all(piece).map_err(|error| error.to_string())?;
            rest = later;
            length *= 3;
            if function == 2 && length > 1 << 10 {
                return Err("it has failed".into());
            }
        }
        Ok(Done { function: "vf1".into() })
    }

    /// Function 1 takes the bytes that it was saved with, until their end; function 2 takes a few.
    fn restore(&self, function: u8, from: &mut dyn Read) -> Result<Done, String> {
        let mut state = vec![0; if function == 2 { 100 } else { STATE }];
        from.read_exact(&mut state).map_err(|error| error.to_string())?;
        assert!(state.iter().enumerate().all(|(at, byte)| *byte == byte_at(at)));
        match function {
            1 => Ok(Done { function: "vf1".into() }),
            _ => Err("it is another one".into()),
        }
    }
}

/// Bytes of a saved function.
const STATE: usize = 5_000_001;

/// A capture whose file has `bytes` bytes.
struct TestCapture {
    number: u64,
    bytes: usize,
    steps: u64,
}

/// A byte of a capture: the low byte of its place.
fn byte_at(at: usize) -> u8 {
    at.to_le_bytes()[0]
}

impl WalkerCapture for TestCapture {
    fn wait(&mut self, limit: Duration) -> CaptureProgress {
        self.steps += 1;
        match (self.steps, self.number) {
            (1, _) => CaptureProgress::Waiting { begun: 0, kernel: 0 },
            (2, _) => CaptureProgress::Capturing { kernel: 0x40 },
            (_, 1) => {
                thread::sleep(limit);
                CaptureProgress::Capturing { kernel: 0x40 }
            }
            (_, 2) => CaptureProgress::Done((0..self.bytes).map(byte_at).collect()),
            _ => CaptureProgress::Failed("it has failed".into()),
        }
    }
}

struct Fixture {
    _dir: TempDir,
    path: PathBuf,
    recorder: Arc<Recorder>,
    requests: Arc<AtomicUsize>,
    held: Arc<Mutex<()>>,
    server: Server,
}

fn fixture(status_bytes: usize) -> Fixture {
    let dir = TempDir::new().unwrap();
    let path = dir.as_path().join(NAME);
    let recorder = Recorder::new(Arc::new(ManualClock::default()));
    let requests = Arc::<AtomicUsize>::default();
    let held = Arc::<Mutex<()>>::default();
    let backend =
        TestBackend { recorder: recorder.clone(), status_bytes, requests: requests.clone(), held: held.clone() };
    let server = Server::start(&path, backend).unwrap();
    Fixture { _dir: dir, path, recorder, requests, held, server }
}

const INJECT: &str = "{\"request\":\"inject\",\"error\":\"a\"}\n";
const RAISED: &str = "{\"ok\":{\"raised\":\"a\"}}\n";

/// Sends `bytes` and returns all that the server sends until it or the client closes the connection.
fn exchange(path: &Path, bytes: &[u8]) -> String {
    let mut client = UnixStream::connect(path).unwrap();
    let _ = client.write_all(bytes);
    let _ = client.shutdown(Shutdown::Write);
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}

fn subscribe(path: &Path, filter: Filter) -> Result<Events, Failure> {
    Connection::open(path).unwrap().trace(filter)
}

#[test]
fn requests_of_a_connection_are_answered_in_order() {
    let fixture = fixture(10);
    let mut connection = Connection::open(&fixture.path).unwrap();
    for error in ["a", "b"].into_iter().cycle().take(50) {
        let answer: Raised = connection.request(&Request::Inject { error: error.into() }).unwrap();
        assert_eq!(answer.raised, error);
    }
    let refused = connection.request::<Raised>(&Request::Inject { error: "c".into() }).unwrap_err();
    assert_eq!(refused.to_string(), "no error c");
    connection.request::<()>(&Request::ErrorRegisters {}).unwrap();
    let lines = [INJECT, "{\"error\":\"c\",\"request\":\"inject\"}\n", "{\"request\":\"error-registers\"}\n"].concat();
    assert_eq!(
        exchange(&fixture.path, lines.as_bytes()),
        [RAISED, "{\"error\":\"no error c\"}\n{\"ok\":null}\n"].concat()
    );
    drop(fixture.server);
    assert!(!fixture.path.exists());
    assert!(matches!(connection.request::<()>(&Request::ErrorRegisters {}), Err(Failure::Socket(_))));
}

#[test]
fn lines_that_are_not_requests_are_answered_with_an_error() {
    let fixture = fixture(10);
    let deep = "[".repeat(4000);
    for line in [
        "",
        "status",
        "{\"request\":\"inject\"}",
        "{\"request\":\"halt\"}",
        "{\"request\":\"inject\",\"error\":\"a\",\"more\":1}",
        "{\"request\":\"status\",\"more\":1}",
        "{\"request\":\"inject\",\"error\":1}",
        "{\"request\":\"trace\",\"filter\":{\"engine\":1}}",
        "\u{0}\u{7f}\\",
        deep.as_str(),
    ] {
        let text = exchange(&fixture.path, format!("{line}\n{INJECT}").as_bytes());
        let (first, second) = text.split_once('\n').unwrap();
        assert!(first.starts_with("{\"error\":\"not a request: "), "{line}: {first}");
        assert_eq!(second, RAISED, "{line}");
    }
    assert!(exchange(&fixture.path, b"\xff\xfe\n").starts_with("{\"error\":\"not a request: "));
    // Without its end, a line is not a request.
    assert_eq!(exchange(&fixture.path, b"{\"request\":\"status\"}"), "");
    // Too long: the rest of the line cannot be distinguished from a request. The server may close before all has arrived.
    let mut client = UnixStream::connect(&fixture.path).unwrap();
    client.write_all(&[b' '; LONGEST_REQUEST]).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "{\"error\":\"no request: the line exceeds 4096 bytes\"}\n");
}

/// Clients that send nothing, or a byte at a time, give way to others, have a connection for a bounded time, and do not
/// delay the end of the server.
#[test]
fn idle_clients_do_not_block_others() {
    let fixture = fixture(10);
    let idle: Vec<_> = (0..3 * MOST_CONNECTIONS).map(|_| UnixStream::connect(&fixture.path).unwrap()).collect();
    for _ in 0..3 {
        assert_eq!(exchange(&fixture.path, INJECT.as_bytes()), RAISED);
    }
    let mut gave_way = String::new();
    (&idle[0]).read_to_string(&mut gave_way).unwrap();
    assert_eq!(gave_way, "{\"error\":\"no request: another client has this connection's place\"}\n");
    let last = UnixStream::connect(&fixture.path).unwrap();
    // A client that sends a byte now and then is disconnected at the time limit of the line.
    let started = Instant::now();
    let mut slow = &last;
    while slow.write_all(b" ").is_ok() {
        assert!(started.elapsed() < TIME_LIMIT * 4);
        thread::sleep(Duration::from_millis(100));
    }
    assert!(started.elapsed() > TIME_LIMIT / 2);
    let begun = Instant::now();
    drop(fixture.server);
    assert!(begun.elapsed() < TIME_LIMIT / 2, "the server waits for idle clients");
    drop(idle);
}

/// If all clients have requests carried out, the next one is refused; one that sends requests all the time gives way after
/// an answer.
#[test]
fn busy_clients_are_not_disconnected() {
    let fixture = fixture(10);
    let held = fixture.held.lock().unwrap();
    let busy: Vec<_> = (0..MOST_CONNECTIONS)
        .map(|_| {
            let mut client = UnixStream::connect(&fixture.path).unwrap();
            client.write_all(b"{\"request\":\"error-registers\"}\n").unwrap();
            client
        })
        .collect();
    let mut refused = Connection::open(&fixture.path).unwrap();
    let error = refused.request::<()>(&Request::ErrorRegisters {}).unwrap_err().to_string();
    assert_eq!(error, "too many clients are connected to the operator socket");
    drop(held);
    for client in &busy {
        let mut answer = String::new();
        BufReader::new(client).read_line(&mut answer).unwrap();
        assert_eq!(answer, "{\"ok\":null}\n");
    }
    drop(busy);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..MOST_CONNECTIONS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let mut connection = Connection::open(&fixture.path).unwrap();
                    let request = Request::Inject { error: "a".into() };
                    while connection.request::<Raised>(&request).is_ok() {
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                }
            });
        }
        thread::sleep(Duration::from_millis(100));
        let answer = exchange(&fixture.path, INJECT.as_bytes());
        stop.store(true, Ordering::Relaxed);
        assert_eq!(answer, RAISED);
    });
}

/// A client that sends requests without reading answers, or reads a byte at a time, is disconnected.
#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let fixture = fixture(60 << 10);
    for read in [0, 1] {
        let before = fixture.requests.load(Ordering::Relaxed);
        let mut client = UnixStream::connect(&fixture.path).unwrap();
        client.set_write_timeout(Some(TIME_LIMIT / 10)).unwrap();
        let started = Instant::now();
        loop {
            let failed = client.write_all(b"{\"request\":\"status\"}\n").err();
            if failed.is_some_and(|error| !is_pause(&error)) {
                break;
            }
            assert!(started.elapsed() < TIME_LIMIT * 5);
            let _ = client.read(&mut [0; 1][..read]);
        }
        let answered = fixture.requests.load(Ordering::Relaxed) - before;
        assert!((1..100).contains(&answered), "{answered}");
    }
    let mut connection = Connection::open(&fixture.path).unwrap();
    assert_eq!(connection.request::<String>(&Request::Status {}).unwrap().len(), 60 << 10);
}

#[test]
fn each_subscriber_receives_the_events_of_its_filter() {
    let fixture = fixture(10);
    let filter = |function| Filter { functions: vec![function], ..Filter::default() };
    let mut subscribers = [1, 2].map(|function| subscribe(&fixture.path, filter(function)).unwrap());
    assert_eq!(subscribers[0].heading, Heading::new("test", Some("ivy-bridge")));
    for function in [1, 2, 3] {
        fixture.recorder.record(Function::new(function).unwrap(), || EventKind::Msi { vector: function.into() });
    }
    for (events, function) in subscribers.iter_mut().zip([1, 2]) {
        let line = events.next().unwrap().unwrap();
        let event: Event = serde_json::from_str(&line).unwrap();
        assert_eq!((event.function, event.what), (function, EventKind::Msi { vector: function.into() }), "{line}");
        assert_eq!(events.next().unwrap(), None);
    }
    // Requests are answered beside them.
    assert_eq!(exchange(&fixture.path, INJECT.as_bytes()), RAISED);
    let [mut kept, dropped] = subscribers;
    drop(dropped);
    drop(fixture.server);
    eventually("the subscriptions end", || !fixture.recorder.on());
    assert_eq!(kept.next().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn subscribers_are_limited_and_leave_connections_for_requests() {
    let fixture = fixture(10);
    let all: Vec<_> = (0..MOST_SUBSCRIBERS).map(|_| subscribe(&fixture.path, Filter::default()).unwrap()).collect();
    let refused = subscribe(&fixture.path, Filter::default()).err().unwrap().to_string();
    assert_eq!(refused, "too many clients receive the card's events");
    assert_eq!(exchange(&fixture.path, INJECT.as_bytes()), RAISED);
    drop(all);
    eventually("the subscriptions end", || !fixture.recorder.on());
    eventually("a new subscription", || subscribe(&fixture.path, Filter::default()).is_ok());
}

/// The card does not wait for a subscriber that does not read, and the subscriber is disconnected.
#[test]
fn a_subscriber_that_does_not_read_is_disconnected() {
    let fixture = fixture(10);
    let _silent = subscribe(&fixture.path, Filter::default()).unwrap();
    let started = Instant::now();
    while fixture.recorder.on() {
        assert!(started.elapsed() < TIME_LIMIT * 5, "the subscriber is still connected");
        fixture.recorder.record(Function::PF, || EventKind::Guc { mailbox: false, fence: 0, dwords: vec![1; 64] });
    }
}

fn request_capture(path: &Path, walker: u64, mib: u32) -> Result<WaitingCapture, Failure> {
    Connection::open(path).unwrap().capture(&Request::Capture { filter: Filter::default(), walker, mib })
}

#[test]
fn a_capture_is_sent_with_its_steps() {
    let fixture = fixture(10);
    let mut capture = request_capture(&fixture.path, 2, 3).unwrap();
    let mut steps = Vec::new();
    while steps.len() < 3 {
        steps.extend(capture.next().unwrap());
    }
    let done = CaptureStep::Done { bytes: 3 << 20 };
    assert_eq!(steps, [CaptureStep::Waiting { begun: 0, kernel: 0 }, CaptureStep::Capturing { kernel: 0x40 }, done]);
    let file = capture.file(3 << 20).unwrap();
    assert!(file.len() == 3 << 20 && file.iter().zip(0..).all(|(byte, at)| *byte == byte_at(at)));
    let mut failed = request_capture(&fixture.path, 3, 1).unwrap();
    let step = std::iter::from_fn(|| Some(failed.next().unwrap())).flatten().nth(2).unwrap();
    assert_eq!(step, CaptureStep::Failed { reason: "it has failed".into() });
    assert_eq!(failed.next().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    // One that waits ends with the server.
    let mut waiting = request_capture(&fixture.path, 1, 1).unwrap();
    assert!(waiting.next().is_ok());
    drop(fixture.server);
    eventually("the end of the connection", || waiting.next().is_err());
}

#[test]
fn captures_without_a_meaning_are_refused() {
    let fixture = fixture(10);
    for (walker, mib, reason) in [
        (0, 1, "walkers are counted from 1"),
        (1, 0, "a capture has 1 to 1024 MiB of memory"),
        (1, 1025, "a capture has 1 to 1024 MiB of memory"),
        (4, 1, "no such walker"),
    ] {
        let refused = request_capture(&fixture.path, walker, mib).err().unwrap();
        assert_eq!(refused.to_string(), reason);
    }
}

#[test]
fn saved_state_is_transferred() {
    let fixture = fixture(10);
    let open = || Connection::open(&fixture.path).unwrap();
    let mut state = Vec::new();
    assert_eq!(open().save(1, &mut state).unwrap().function, "vf1");
    assert!(state.len() == STATE && state.iter().enumerate().all(|(at, byte)| *byte == byte_at(at)));
    assert_eq!(open().restore(1, &mut &state[..]).unwrap().function, "vf1");
    // A request that fails after a part of the transfer.
    let refused = open().save(2, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.to_string(), "it has failed");
    let refused = open().restore(2, &mut &state[..]).unwrap_err();
    assert_eq!(refused.to_string(), "it is another one");
    let refused = open().restore(1, &mut &state[..STATE - 1]).unwrap_err();
    assert_eq!(refused.to_string(), "failed to fill whole buffer");
    // What the function does not take is left.
    let longer = [&state[..], &state[..]].concat();
    open().restore(1, &mut &longer[..]).unwrap();
    // The file fails.
    let mut small = [0; 1000];
    assert!(matches!(open().save(1, &mut &mut small[..]), Err(TransferError::File(_))));
    open().request::<()>(&Request::ErrorRegisters {}).unwrap();
}

/// A client that sends no pieces, or what is none, fails its own request, and after a time.
#[test]
fn pieces_of_a_hostile_client_end_its_request() {
    let fixture = fixture(10);
    const RESTORE: &str = "{\"request\":\"restore\",\"function\":1}\n";
    for (pieces, reason) in [
        ("", "unexpected end of file"),
        ("{\"piece\":1048577}\n", "a piece of 1048577 bytes, more than 1048576"),
        ("{\"piece\":-1}\n", "the line before a piece has no length"),
        ("{\"piece\":18446744073709551615}\n", "a piece of 18446744073709551615 bytes, more than 1048576"),
        ("no piece\n", "the line before a piece has no length"),
        ("{\"piece\":8}\n1234", "unexpected end of file"),
        ("{\"piece\":0}\n", "failed to fill whole buffer"),
    ] {
        let text = exchange(&fixture.path, format!("{RESTORE}{pieces}").as_bytes());
        assert_eq!(text, format!("{{\"error\":\"{reason}\"}}\n"), "{pieces}");
    }
    // One that waits with half a piece, and does not end its connection.
    let mut client = UnixStream::connect(&fixture.path).unwrap();
    client.write_all(format!("{RESTORE}{{\"piece\":8}}\n1234").as_bytes()).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "{\"error\":\"timed out\"}\n");
    // One that does not read what it is sent.
    let mut client = UnixStream::connect(&fixture.path).unwrap();
    client.write_all(b"{\"request\":\"save\",\"function\":1}\n").unwrap();
    thread::sleep(TIME_LIMIT + Duration::from_millis(500));
    let mut part = Vec::new();
    client.read_to_end(&mut part).unwrap();
    assert!(part.len() < STATE, "{} bytes", part.len());
    assert_eq!(exchange(&fixture.path, INJECT.as_bytes()), RAISED);
}
