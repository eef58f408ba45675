// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of the operator: selection of the card if no directory is given, power states, rows of `arctic status`,
//! `arctic status --watch`, filters of `arctic trace`, metrics.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::ptr;

use arctic_test_support::client::{COMMAND, CONFIG, MEMORY_AND_BUS_MASTER};
use arctic_test_support::process::skipped;
use arctic_test_support::served::ChildProcess;
use vmm_sys_util::tempdir::TempDir;

use crate::{arctic, connect, connect_pf, eventually, fails, serve, status};

/// Offset of the pointer to the first capability in configuration space.
const CAPABILITIES: u64 = 0x34;
/// ID of the power management capability, and the offset of Control/Status in it.
const POWER_MANAGEMENT: u8 = 1;
const PM_CONTROL: u64 = 4;

/// A command without a directory, in one sentence and with status 2, names the directories of all cards of this user.
#[test]
fn with_several_cards_a_command_without_a_directory_lists_them() {
    let temps = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let served = temps.each_ref().map(|temp| serve("small", temp.as_path(), &[]));
    for command in [&["status"][..], &["status", "--watch"], &["trace"], &["inject"], &["inject", "fatal-soc"]] {
        let (status, text) = fails(command);
        assert_eq!((status, text.lines().count()), (Some(2), 1), "{command:?}: {text}");
        for temp in &temps {
            let dir = temp.as_path().canonicalize().unwrap();
            assert!(text.contains(dir.to_str().unwrap()), "{command:?}: {text}");
        }
    }
    for served in served {
        assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    }
}

/// A shell script in a network namespace of its own, in which no other card is served; `$0` is the program. `None` if the
/// host does not permit user namespaces.
fn isolated(script: &str) -> Option<Command> {
    let unshare = ["--map-root-user", "--net"];
    let permitted = Command::new("unshare").args(unshare).arg("true").stderr(Stdio::null()).status();
    if !permitted.is_ok_and(|status| status.success()) {
        skipped("this host does not permit user namespaces");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(unshare).args(["sh", "-ec", script, env!("CARGO_BIN_EXE_arctic")]).env_remove("RUST_LOG");
    Some(command)
}

/// Without a directory, a command uses the only card.
#[test]
fn command_without_a_directory_uses_the_only_card() {
    let temp = TempDir::new().unwrap();
    // The trap ends the server, which has the test's pipe, if a command fails. The server prints after its sockets listen.
    let script = "\"$0\" serve --card small --dir \"$1\" 2>&1 > \"$1.out\" & server=$!\n\
        trap 'kill $server' EXIT\n\
        for try in $(seq 600); do [ -s \"$1.out\" ] && break; kill -0 $server; sleep 0.05; done\n\
        [ -s \"$1.out\" ]\n\
        \"$0\" status --json\n\
        \"$0\" inject correctable-l3\n\
        \"$0\" inject\n\
        trap - EXIT\n\
        kill $server\nwait $server";
    let Some(mut command) = isolated(script) else { return };
    let output = command.arg(temp.as_path().join("card")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for line in ["{\"card\":\"Flex 170", "raised correctable-l3: ", "correctable  0x00000001"] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}: {text}");
    }
}

/// Without a directory and without a card, a command fails with status 1.
#[test]
fn command_without_a_directory_fails_without_a_card() {
    let script = "for command in status trace inject; do\n\
        if \"$0\" $command; then exit 1; else echo \"status $?\"; fi\n\
        done 2>&1";
    let Some(mut command) = isolated(script) else { return };
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let none = "arctic: this user serves no card: start one with `arctic boot` or `arctic serve`";
    assert_eq!((text.matches(none).count(), text.matches("status 1\n").count()), (3, 3), "{text}");
}

/// Writes the power state of the PF through its client.
fn set_power_state(pf: &mut vfio_user::Client, state: u8) {
    let mut byte = |at: u64| {
        let mut value = [0];
        pf.region_read(CONFIG, at, &mut value).unwrap();
        value[0]
    };
    let mut at = byte(CAPABILITIES);
    while byte(at.into()) != POWER_MANAGEMENT {
        at = byte(u64::from(at) + 1);
        assert_ne!(at, 0, "no power management capability");
    }
    pf.region_write(CONFIG, u64::from(at) + PM_CONTROL, &[state]).unwrap();
}

#[test]
fn an_error_for_a_pf_in_d3hot_is_raised_with_a_warning() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let served = serve("small", dir, &[]);
    let inject = || arctic(&["inject", dir.to_str().unwrap(), "nonfatal-soc"]).output().unwrap();
    let text = String::from_utf8(inject().stderr).unwrap();
    assert!(
        text.starts_with("arctic: warning: no guest is connected to the PF") && text.lines().count() == 1,
        "{text}"
    );
    let mut pf = connect_pf(dir);
    for (state, name, warns) in [(0, "D0", false), (3, "D3hot", true), (0, "D0", false)] {
        set_power_state(&mut pf, state);
        assert_eq!(status(dir)["functions"][0]["power_state"], name);
        let output = inject();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && output.stdout.starts_with(b"raised nonfatal-soc"), "{name}: {text}");
        let warning = text.contains("warning: the PF is in D3hot") && text.contains("power/control");
        assert_eq!((warning, text.lines().count()), (warns, usize::from(warns)), "{name}: {text}");
    }
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

/// The PF and VFs that are not enabled have a row; a card that provisions itself has quotas and firmware.
#[test]
fn status_has_a_row_for_each_vf_before_vf_enable() {
    for (options, state, quota) in
        [(&["--vfs", "2"][..], "absent", false), (&["--vfs", "2", "--provision", "config"], "no client", true)]
    {
        let temp = TempDir::new().unwrap();
        let served = serve("small", temp.as_path(), options);
        // A card that provisions itself has no socket of the PF.
        let mut pf = connect(temp.as_path(), "pf");
        if let Some(pf) = &mut pf {
            pf.region_write(CONFIG, COMMAND, &MEMORY_AND_BUS_MASTER).unwrap();
        }
        let document = status(temp.as_path());
        assert_eq!(document["functions"].as_array().unwrap().len(), 3);
        assert_eq!(document["functions"][2]["quota"]["local_memory"].as_u64().is_some_and(|bytes| bytes != 0), quota);
        assert_eq!(document["firmware"]["guc"].is_string(), quota, "{document}");
        assert_eq!((&document["schema"], document["functions"][2]["power_state"].is_null()), (&1.into(), !quota));
        assert_eq!(document["topology"], if quota { "provisioned" } else { "together" });
        let table = arctic(&["status", temp.as_path().to_str().unwrap()]).output().unwrap().stdout;
        let table = String::from_utf8(table).unwrap();
        for vf in ["vf1", "vf2"] {
            assert!(table.contains(&format!("\n{vf:<9} {state}")), "{table}");
        }
        assert_eq!(table.contains("firmware: guc not loaded"), !quota, "{table}");
        let words: Vec<&str> = table.split_whitespace().collect();
        let pf_row = words.windows(3).any(|words| words == ["pf", "idle", "D0"]);
        assert_eq!((pf_row, pf.is_some()), (!quota, !quota), "{table}");
        assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    }
}

/// The state is shown again until a signal, or until the card is no longer served; either is an orderly end.
#[test]
fn watching_ends_with_a_signal_or_with_the_card() {
    for signal in [Some(libc::SIGINT), None] {
        let temp = TempDir::new().unwrap();
        let dir = temp.as_path().to_str().unwrap();
        let served = serve("small", temp.as_path(), &[]);
        let arguments = ["status", dir, "--json", "--watch", "1"];
        let mut watch = ChildProcess::spawn(arctic(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        let mut uptime = || {
            let document: serde_json::Value = serde_json::from_str(&lines.next()?.unwrap()).unwrap();
            document["uptime_seconds"].as_f64()
        };
        let (first, second) = (uptime().unwrap(), uptime().unwrap());
        assert!(second - first > 0.5, "{first}, {second}");
        if let Some(signal) = signal {
            watch.signal(signal);
            assert!(watch.wait().unwrap().success());
        }
        assert_eq!(served.end(libc::SIGTERM).0, Some(0));
        assert!(watch.wait().unwrap().success());
        let mut text = String::new();
        watch.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, if signal.is_some() { "" } else { "the card is no longer served\n" });
    }
}

#[test]
fn status_with_an_invalid_watch_interval_is_a_usage_error() {
    let temp = TempDir::new().unwrap();
    for interval in ["0", "86401", "x"] {
        let (status, text) = fails(&["status", temp.as_path().to_str().unwrap(), "--watch", interval]);
        let expected = "expected a whole number of seconds, 1 to 86400";
        assert!(status == Some(2) && text.contains(expected), "{interval}: {status:?}: {text}");
    }
}

/// A filter that no event of the card can pass is refused, by the program and by the card.
#[test]
fn trace_filter_that_matches_no_event_is_refused() {
    for (card, options, filter, reason) in [
        ("ivb", &[][..], ["--function", "vf1"], "the card has no vf1: it has pf, and no VFs"),
        (
            "ivb",
            &[],
            ["--engine", "compute"],
            "the card has no ccs0, ccs1, ccs2, ccs3: its engines are rcs0, vcs0, bcs0",
        ),
        ("small", &["--vfs", "2"], ["--function", "vf9"], "the card has no vf9: it has pf, and vf1 to vf2"),
        (
            "small",
            &[],
            ["--engine", "vcs1"],
            "the card has no vcs1: its engines are rcs0, bcs0, ccs0, ccs1, ccs2, ccs3, vcs0, vcs2, vecs0, vecs1; \
              the driver's vcs1 is vcs2 of the card",
        ),
    ] {
        let temp = TempDir::new().unwrap();
        let served = serve(card, temp.as_path(), options);
        let (status, text) = fails(&[&["trace", temp.as_path().to_str().unwrap()], &filter[..]].concat());
        assert_eq!((status, text), (Some(2), format!("arctic: {reason}\n")));
        assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    }
    let temp = TempDir::new().unwrap();
    let served = serve("small", temp.as_path(), &["--vfs", "2"]);
    let request = b"{\"request\":\"trace\",\"filter\":{\"functions\":[1,3]}}\n";
    let mut client = std::os::unix::net::UnixStream::connect(temp.as_path().join("operator/operator.sock")).unwrap();
    std::io::Write::write_all(&mut client, request).unwrap();
    let mut line = String::new();
    BufReader::new(client).read_line(&mut line).unwrap();
    assert_eq!(line, "{\"error\":\"the card has no vf3: it has pf, and vf1 to vf2\"}\n");
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

/// A pseudo-terminal of 132 columns and 40 lines: the program's end, and the end that a test reads.
pub fn terminal() -> (OwnedFd, File) {
    let (mut master, mut slave) = (-1, -1);
    let size = libc::winsize { ws_row: 40, ws_col: 132, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the first two arguments are valid for writes, the last one for reads; null pointers are permitted for the others.
    assert_eq!(unsafe { libc::openpty(&mut master, &mut slave, ptr::null_mut(), ptr::null(), &size) }, 0);
    // SAFETY: openpty has returned two descriptors, which nothing else owns.
    unsafe { (OwnedFd::from_raw_fd(slave), File::from_raw_fd(master)) }
}

/// While there is no event, `arctic trace` prints that it is connected if stderr is a terminal.
#[test]
fn trace_reports_the_connection_on_a_terminal_only() {
    let temp = TempDir::new().unwrap();
    let served = serve("small", temp.as_path(), &[]);
    let trace = |stderr: Stdio, more: &[&str]| {
        let command = [&["trace", temp.as_path().to_str().unwrap()], more].concat();
        ChildProcess::spawn(arctic(&command).stdout(Stdio::null()).stderr(stderr))
    };
    let save = temp.as_path().join("save");
    let mut on_pipe = trace(Stdio::piped(), &["--save", save.to_str().unwrap()]);
    eventually("the file, which is created after the card has accepted the trace", || save.exists());
    let (slave, master) = terminal();
    let mut on_terminal = trace(slave.into(), &[]);
    // Open until the end: the command writes to the terminal again.
    let mut master = BufReader::new(master);
    let mut line = String::new();
    master.read_line(&mut line).unwrap();
    assert!(line.starts_with("connected to ") && line.trim_end().ends_with("waiting for events"), "{line}");
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    let mut text = String::new();
    on_pipe.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.starts_with("the card is no longer served\n"), "{text}");
    for child in [&mut on_terminal, &mut on_pipe] {
        assert!(child.wait().unwrap().success());
    }
}

/// A scrape by a plain TCP client, in the format of OpenMetrics, while the card is served.
#[test]
fn metrics_are_served_over_http() {
    let temp = TempDir::new().unwrap();
    let served = serve("small", temp.as_path(), &["--vfs", "1", "--metrics", "127.0.0.1:0", "--json"]);
    let document: serde_json::Value = serde_json::from_str(served.first_line()).unwrap();
    let url = document["metrics"].as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    let get = |path: &str| {
        let mut client = std::net::TcpStream::connect(address).unwrap();
        write!(client, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    };
    let scrape = || get("/metrics");
    let text = scrape();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("# EOF\n"), "{text}");
    let text_of_health = get("/healthz");
    assert!(text_of_health.starts_with("HTTP/1.1 200 OK\r\n") && text_of_health.ends_with("\r\n\r\nok\n"));
    assert!(text.contains("\narctic_function_connected{function=\"pf\"} 0\n"), "{text}");
    let mut pf = connect(temp.as_path(), "pf").unwrap();
    pf.region_read(CONFIG, 0, &mut [0; 4]).unwrap();
    let text = scrape();
    for line in [
        "arctic_card_info{card=\"Flex 170, 2 GiB\",topology=\"together\",guc=\"\"} 1",
        "arctic_function_connected{function=\"pf\"} 1",
        "arctic_function_enabled{function=\"vf1\"} 0",
        "arctic_function_awake{function=\"pf\"} 1",
        "arctic_skipped_commands_total{function=\"vf1\",origin=\"user\"} 0",
        "arctic_trapped_accesses_total{function=\"pf\",kind=\"config\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(
        !text.contains("arctic_function_awake{function=\"vf1\"}"),
        "a VF that is absent has no power state: {text}"
    );
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    assert!(std::net::TcpStream::connect(address).is_err());
    let (status, text) = fails(&["serve", "--card", "small", "--dir", "x", "--metrics", "0.0.0.0:9617"]);
    assert!(status == Some(2) && text.contains("not an address of the loopback interface"), "{text}");
}
