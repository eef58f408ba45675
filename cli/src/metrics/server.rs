// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! An HTTP server for the metrics and the health of a card, on an address of the loopback interface. It answers `GET
//! /metrics` and `GET /healthz` and closes the connection; number of connections, length of a request and time are limited,
//! and silent clients give way to others.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arctic_gpu::card::status::Status;
use arctic_gpu::vfio_user::StartError;

use crate::connections::{self, Client, Notices, Stream, is_pause, send};

/// Maximum number of concurrent connections.
const MOST_CONNECTIONS: usize = 8;
/// Maximum length of a request in bytes.
const LONGEST_REQUEST: usize = 8192;
/// Maximum number of header fields of a request.
const MOST_FIELDS: usize = 64;
/// Time limit for a client to send a request, and to receive the answer.
const TIME_LIMIT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });
/// Media type of OpenMetrics text.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A running server. Dropping it closes all connections and stops its threads.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the metrics of the card with this `status` at `address`; with port 0, at a free port.
    pub fn start(address: SocketAddr, status: impl Fn() -> Status + Send + Sync + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let stop = stop.clone();
            let status = Arc::new(status);
            let serve = move |client: &Arc<Client<TcpStream>>| serve(client, &*status);
            let accept = move || {
                let busy = answer("503 Service Unavailable", "text/plain", "too many clients are connected\n");
                let late = answer("408 Request Timeout", "text/plain", "no request; another client is served\n");
                let notices = Notices { refused: busy.as_bytes(), gave_way: late.as_bytes() };
                connections::accept(&listener, &stop, ("metrics client", MOST_CONNECTIONS), &notices, serve);
            };
            thread::Builder::new().name("metrics".into()).spawn(accept).map_err(StartError::of("start a thread"))?
        };
        Ok(Server { address, stop, thread: Some(thread) })
    }

    /// The address, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        connections::end(&self.stop, || TcpStream::connect(self.address), self.thread.take());
    }
}

/// A request, as far as it determines the answer.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    /// `GET /metrics`.
    Metrics,
    /// `GET /healthz`.
    Health,
    /// A request that is answered with this status line's code and reason.
    Refused(&'static str),
}

/// Answers one request.
fn serve(client: &Client<TcpStream>, status: &dyn Fn() -> Status) -> io::Result<()> {
    let (code, kind, body) = match client.receive(|| request(client.stream()))? {
        Request::Metrics => match super::text(status()) {
            Ok(text) => ("200 OK", OPENMETRICS, text),
            Err(error) => ("500 Internal Server Error", "text/plain", format!("{error}\n")),
        },
        // A card that does not return a snapshot is not healthy: the client's time limit ends its probe.
        Request::Health => {
            drop(status());
            ("200 OK", "text/plain", "ok\n".to_owned())
        }
        Request::Refused(code) => (code, "text/plain", format!("{code}\n")),
    };
    client.answer(|| send(client.stream(), TIME_LIMIT, answer(code, kind, &body).as_bytes()))
}

/// An answer with this status line's code and reason.
fn answer(code: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// Receives a request. Fails if the client ends the connection first.
fn request(client: &TcpStream) -> io::Result<Request> {
    let started = Instant::now();
    let mut received = Vec::new();
    loop {
        if let Some(request) = parse(&received) {
            return Ok(request);
        }
        let left = TIME_LIMIT.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Ok(Request::Refused("408 Request Timeout"));
        }
        let mut bytes = [0; 1024];
        match client.read_within(left, &mut bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => received.extend(bytes.iter().take(count)),
            // At the time limit, the loop ends above.
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Parses the start of a connection; `None` if the request is not complete.
fn parse(received: &[u8]) -> Option<Request> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(received) {
        Ok(httparse::Status::Partial) if received.len() < LONGEST_REQUEST => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Some(Request::Refused("431 Request Header Fields Too Large"));
        }
        Err(_) => return Some(Request::Refused("400 Bad Request")),
        Ok(httparse::Status::Complete(_)) => {}
    }
    // A complete request has both.
    let path = request.path.and_then(|path| path.split('?').next());
    Some(match (request.method, path) {
        (Some("GET"), Some("/metrics")) => Request::Metrics,
        (Some("GET"), Some("/healthz")) => Request::Health,
        (Some("GET"), _) => Request::Refused("404 Not Found"),
        _ => Request::Refused("405 Method Not Allowed"),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn status() -> Status {
        serde_json::from_value(serde_json::json!({
            "card": "a \"card\"", "topology": "together", "uptime_seconds": 7.5, "total_vfs": 1, "enabled_vfs": 0,
            "resident_bytes": 4096, "firmware": { "guc": "70.53.0" }, "engines": [],
            "functions": [{
                "function": 0, "contexts": 3, "on": [], "engine_time_ns": { "copy": 1_500_000_000_u64 },
                "engine_resets": 2, "cat_errors": 1, "skipped_contexts": 0, "skipped_user_commands": 4,
                "kernels": {"walkers": 5, "groups": 60, "instructions": 700, "faults": 8},
                "skipped_driver_commands": 5, "quota": { "local_memory": 1 << 20, "ggtt_size": 0 },
                "enabled": true, "connected": false, "power_state": "D3hot", "bus_master": false, "guest_sections": 0,
                "trapped": { "config": 6 }, "memory_bytes": 8192,
            }, {
                "function": 1, "enabled": false, "connected": false, "power_state": "D0", "bus_master": false,
                "guest_sections": 0, "trapped": {}, "memory_bytes": 0,
            }],
        }))
        .unwrap()
    }

    fn server() -> Server {
        Server::start("127.0.0.1:0".parse().unwrap(), status).unwrap()
    }

    /// Sends `bytes` and returns the answer.
    fn exchange(server: &Server, bytes: &[u8]) -> String {
        let mut client = TcpStream::connect(server.address()).unwrap();
        client.set_read_timeout(Some(TIME_LIMIT * 10)).unwrap();
        let _ = client.write_all(bytes);
        let mut text = Vec::new();
        // A client whose request is refused may be reset, because the server has not read all of it.
        let _ = client.read_to_end(&mut text);
        String::from_utf8(text).unwrap()
    }

    const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";

    #[test]
    fn metrics_are_by_function_and_in_the_format_of_openmetrics() {
        let answer = exchange(&server(), GET);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains(OPENMETRICS), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        for line in [
            "arctic_card_info{card=\"a \\\"card\\\"\",topology=\"together\",guc=\"70.53.0\"} 1",
            "# TYPE arctic_engine_time_seconds counter",
            "# UNIT arctic_engine_time_seconds seconds",
            "arctic_engine_time_seconds_total{function=\"pf\",class=\"copy\"} 1.5",
            "arctic_engine_resets_total{function=\"pf\"} 2",
            "arctic_translation_faults_total{function=\"pf\"} 1",
            "arctic_skipped_commands_total{function=\"pf\",origin=\"user\"} 4",
            "arctic_walkers_total{function=\"pf\"} 5",
            "arctic_thread_groups_total{function=\"pf\"} 60",
            "arctic_eu_instructions_total{function=\"pf\"} 700",
            "arctic_kernel_faults_total{function=\"pf\"} 8",
            "arctic_skipped_commands_total{function=\"pf\",origin=\"driver\"} 5",
            "arctic_local_memory_quota_bytes{function=\"pf\"} 1048576",
            "arctic_host_memory_bytes{function=\"vf1\"} 0",
            "arctic_function_awake{function=\"pf\"} 0",
            "arctic_trapped_accesses_total{function=\"pf\",kind=\"config\"} 6",
            "arctic_uptime_seconds 7.5",
        ] {
            assert!(body.lines().any(|found| found == line), "{line}\n{body}");
        }
        assert!(!body.contains("arctic_contexts{function=\"vf1\"}"), "a value that the function lacks");
        assert!(body.ends_with("# EOF\n"), "{body}");
    }

    #[test]
    fn requests_are_parsed_and_limited() {
        let refused = |code| Some(Request::Refused(code));
        let long = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &vec![b'x'; LONGEST_REQUEST]].concat();
        let many = [b"GET /metrics HTTP/1.1\r\n".as_slice(), &b"a: b\r\n".repeat(MOST_FIELDS + 1)].concat();
        for (bytes, expected) in [
            (GET, Some(Request::Metrics)),
            (b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", Some(Request::Metrics)),
            (b"GET /healthz HTTP/1.1\r\n\r\n", Some(Request::Health)),
            (b"GET / HTTP/1.1\r\n\r\n", refused("404 Not Found")),
            (b"POST /metrics HTTP/1.1\r\n\r\n", refused("405 Method Not Allowed")),
            (b"\x16\x03\x01\x00\x00", refused("400 Bad Request")),
            (b"GET /metrics HTTP/1.1\r\nHost", None),
            (b"", None),
            (&long, refused("431 Request Header Fields Too Large")),
            (&many, refused("431 Request Header Fields Too Large")),
        ] {
            assert_eq!(parse(bytes), expected, "{}", String::from_utf8_lossy(&bytes[..bytes.len().min(40)]));
        }
    }

    /// Clients that send nothing, or one byte at a time, give way to others, and without others they are disconnected
    /// after the time limit.
    #[test]
    fn slow_clients_do_not_hold_the_server() {
        let server = server();
        let started = Instant::now();
        let mut silent: Vec<TcpStream> =
            (0..3 * MOST_CONNECTIONS).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        silent.iter_mut().step_by(2).for_each(|client| drop(client.write_all(b"GET /")));
        let answer = exchange(&server, GET);
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        let mut text = String::new();
        silent[1].read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 408") && text.ends_with("another client is served\n"), "{text}");
        while started.elapsed() < TIME_LIMIT + TIME_LIMIT / 2 {
            // A byte does not extend the time.
            silent.iter_mut().for_each(|client| drop(client.write_all(b"G")));
            thread::sleep(Duration::from_millis(20));
        }
        assert!(exchange(&server, GET).starts_with("HTTP/1.1 200 OK"));
        for client in &mut silent {
            client.set_read_timeout(Some(TIME_LIMIT * 10)).unwrap();
            let mut text = String::new();
            let _ = client.read_to_string(&mut text);
            assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
        }
    }

    #[test]
    fn dropping_the_server_ends_its_connections_and_frees_the_port() {
        let server = server();
        let address = server.address();
        let mut client = TcpStream::connect(address).unwrap();
        let started = Instant::now();
        drop(server);
        assert!(started.elapsed() < TIME_LIMIT, "it waits for a client");
        let _ = client.read_to_end(&mut Vec::new());
        assert!(TcpStream::connect(address).is_err());
    }
}
