// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Clients that connect to the sockets of `arctic serve` and send nothing, or part of a message, give way to others.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use arctic_gpu::vfio_user::wire::command;
use arctic_test_support::client::{CONFIG, Raw, access};
use arctic_test_support::in_time;
use vmm_sys_util::tempdir::TempDir;

use crate::{arctic, serve, status};

/// Connects and sends `bytes`.
fn silent(path: &Path, bytes: &[u8]) -> UnixStream {
    let mut client = UnixStream::connect(path).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    client.write_all(bytes).unwrap();
    client
}

/// 38 clients of the operator socket, more than it has places for, and of clients that do not read their answers.
#[test]
fn silent_clients_of_the_operator_socket_do_not_keep_others_away() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &[]);
    let socket = dir.as_path().join("operator/operator.sock");
    for bytes in [&b""[..], b"{", b"{\"request\":\"status\"}\n", &b"{\"request\":\"status\"}\n".repeat(4000)] {
        let mut held: Vec<_> = (0..38)
            .map(|_| {
                let client = UnixStream::connect(&socket).unwrap();
                client.set_nonblocking(true).unwrap();
                // The last ones fill the socket.
                let _ = (&client).write(bytes);
                client
            })
            .collect();
        for _ in 0..3 {
            let start = Instant::now();
            assert_eq!(status(dir.as_path())["functions"][0]["connected"], false);
            assert!(start.elapsed() < in_time!(Duration::from_secs(2)), "{:?}", start.elapsed());
        }
        held[0].set_nonblocking(false).unwrap();
        held[0].set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut text = String::new();
        let _ = held[0].read_to_string(&mut text);
        if bytes.len() < 2 {
            assert_eq!(text, "{\"error\":\"no request: another client has this connection's place\"}\n");
        }
    }
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

/// Subscribers that have not read anything, or only the heading, give way to `arctic trace`, and one that reads does not.
#[test]
fn subscribers_that_do_not_read_give_way() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &[]);
    let socket = dir.as_path().join("operator/operator.sock");
    let subscribe = || silent(&socket, b"{\"request\":\"trace\"}\n");
    let reader = subscribe();
    let (mut of_reader, kept) = (BufReader::new(reader.try_clone().unwrap()), reader);
    let mut heading = String::new();
    of_reader.read_line(&mut heading).unwrap();
    assert!(heading.starts_with("{\"ok\":{\"arctic_capture\""), "{heading}");
    let reads = thread::spawn(move || {
        let mut all = Vec::new();
        let _ = of_reader.read_to_end(&mut all);
        all
    });
    let held: Vec<_> = (0..7)
        .map(|n| {
            let client = subscribe();
            if n % 2 == 0 {
                let mut heading = String::new();
                BufReader::new(client.try_clone().unwrap()).read_line(&mut heading).unwrap();
            }
            client
        })
        .collect();
    for round in 0..7 {
        let mut heading = String::new();
        let started = Instant::now();
        // Those that have read the heading are recognized by the sign of life that they do not read.
        let client = loop {
            let client = subscribe();
            heading.clear();
            BufReader::new(client.try_clone().unwrap()).read_line(&mut heading).unwrap();
            if heading.starts_with("{\"ok\":") {
                break client;
            }
            assert!(started.elapsed() < in_time!(Duration::from_secs(10)), "{round}: {heading}");
            thread::sleep(Duration::from_millis(50));
        };
        drop(client);
    }
    let trace =
        arctic(&["trace", dir.as_path().to_str().unwrap()]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut trace = trace.unwrap();
    thread::sleep(Duration::from_millis(500));
    assert!(trace.try_wait().unwrap().is_none(), "the trace was refused");
    trace.kill().unwrap();
    trace.wait().unwrap();
    drop(held);
    assert!(!reads.is_finished(), "a client that reads has lost its place");
    kept.shutdown(std::net::Shutdown::Both).unwrap();
    assert!(reads.join().unwrap().iter().all(|byte| *byte == b' '));
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

/// A client of a function's socket that has not negotiated the version gives way to a VMM; after that, others are refused.
#[test]
fn silent_clients_of_a_function_give_way_to_a_vmm() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &["--vfs", "1"]);
    let version = [&1_u16.to_le_bytes()[..], &1_u16.to_le_bytes(), &64_u32.to_le_bytes(), &[0; 8]].concat();
    for (function, name) in ["pf", "vf1"].into_iter().enumerate() {
        let socket = dir.as_path().join(format!("{name}.sock"));
        for bytes in [&b""[..], &version[..7], &version] {
            let mut held = [(); 3].map(|()| silent(&socket, bytes));
            let start = Instant::now();
            let mut vmm = Raw::connect(&socket);
            assert!(start.elapsed() < in_time!(Duration::from_secs(1)), "{:?}", start.elapsed());
            let mut refused = UnixStream::connect(&socket).unwrap();
            assert!(matches!(refused.read(&mut [0]), Ok(0)));
            // Partial messages of a VMM do not give way.
            let body = access(0, CONFIG, 4, &[]);
            let message = [&vmm.header(command::REGION_READ, &body).encode()[..], &body].concat();
            vmm.stream.write_all(&message[..20]).unwrap();
            thread::sleep(Duration::from_millis(200));
            let mut refused = UnixStream::connect(&socket).unwrap();
            assert!(matches!(refused.read(&mut [0]), Ok(0)));
            vmm.stream.write_all(&message[20..]).unwrap();
            let mut reply = [0; 36];
            vmm.stream.read_exact(&mut reply).unwrap();
            assert!(held.iter_mut().all(|client| matches!(client.read(&mut [0]), Ok(0) | Err(_))));
            // A process that another test has forked may have the descriptor until it executes its program. Until the
            // server has noticed the end of this connection, it refuses the clients of the next round.
            vmm.stream.shutdown(std::net::Shutdown::Both).unwrap();
            let ended = Instant::now();
            while status(dir.as_path())["functions"][function]["connected"] != false {
                assert!(ended.elapsed() < Duration::from_secs(10), "{name} has a client");
            }
        }
    }
    let (code, text) = served.end(libc::SIGTERM);
    assert!(code == Some(0) && text.contains("pf: disconnected a silent client: another one connects"), "{text}");
}

#[test]
fn silent_clients_of_the_metrics_do_not_keep_others_away() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &["--metrics", "127.0.0.1:0", "--json"]);
    let json: serde_json::Value = serde_json::from_str(served.first_line()).unwrap();
    let address = json["metrics"].as_str().unwrap().trim_start_matches("http://").trim_end_matches("/metrics");
    let connect = |bytes: &[u8]| {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(bytes).unwrap();
        client
    };
    let _held: Vec<_> = (0..38).map(|n| connect([&b""[..], b"GET /met"][n % 2])).collect();
    let start = Instant::now();
    let mut text = String::new();
    connect(b"GET /metrics HTTP/1.1\r\n\r\n").read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    assert!(start.elapsed() < in_time!(Duration::from_secs(2)), "{:?}", start.elapsed());
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}
