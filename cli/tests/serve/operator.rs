// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The operator socket of `arctic serve`, and `arctic inject`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use arctic_test_support::client::GTTMMADR;
use vfio_user::Client;
use vmm_sys_util::tempdir::TempDir;

use crate::{arctic, connect_pf, fails, serve};

fn read(client: &mut Client, offset: u64) -> u32 {
    let mut value = [0; 4];
    client.region_read(GTTMMADR, offset, &mut value).unwrap();
    u32::from_le_bytes(value)
}

fn inject(dir: &Path, arguments: &[&str]) -> String {
    let output = arctic(&[&["inject", dir.to_str().unwrap()], arguments].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Errors raised by the program are in the registers that the PF's client reads and clears (V13-284).
#[test]
fn errors_reach_the_registers_of_a_served_card() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let served = serve("small", dir, &[]);
    let mut pf = connect_pf(dir);
    let text = inject(dir, &["correctable-l3", "fatal-soc"]);
    assert_eq!(text, "raised correctable-l3: single-bit error in the L3 cache\nraised fatal-soc: error of the SoC\n");
    let registers: serde_json::Value = serde_json::from_str(&inject(dir, &["--json"])).unwrap();
    assert_eq!(registers["registers"][0]["gt"], 1);
    assert_eq!(registers["registers"][2]["device"], 1 << 16);
    for (offset, value) in [(0x10_0160, 1), (0x10_017c, 1), (0x10_0174, 1 << 16), (0x19_0010, 1 << 26 | 1 << 28)] {
        assert_eq!(read(&mut pf, offset), value, "{offset:#x}");
        pf.region_write(GTTMMADR, offset, &u32::to_le_bytes(value)).unwrap();
        assert_eq!(read(&mut pf, offset), 0, "{offset:#x}");
    }
    let text = inject(dir, &[]);
    let last: Vec<_> = text.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(last, ["fatal", "0x00000000", "0x00000000", "-", "set"], "{text}");
    assert_eq!(
        inject(&dir.join("operator/operator.sock"), &["nonfatal-gsc", "--json"]),
        "{\"raised\":[\"nonfatal-gsc\"]}\n"
    );
    assert_eq!(read(&mut pf, 0x10_0178), 1 << 8);
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

#[test]
fn every_listed_error_is_taken() {
    let temp = TempDir::new().unwrap();
    let served = serve("small", temp.as_path(), &[]);
    let list = inject(temp.as_path(), &["--list"]);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names.len(), 31);
    let json: Vec<serde_json::Value> = serde_json::from_str(&inject(temp.as_path(), &["--list", "--json"])).unwrap();
    assert_eq!(json.iter().map(|error| error["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
    assert_eq!(inject(temp.as_path(), &names).lines().count(), names.len());
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

#[test]
fn mistakes_are_refused_in_one_sentence() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path().join("card");
    let dir = dir.to_str().unwrap();
    let (status, text) = fails(&["inject", dir, "fatal-soc"]);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("no card is being served at"), "{text}");
    let served = serve("small", Path::new(dir), &[]);
    // Nothing is raised.
    let (status, text) = fails(&["inject", dir, "fatal-soc", "fatal-sock"]);
    assert_eq!(text, "arctic: the card has no error fatal-sock: `arctic inject --list` prints those that it has\n");
    assert_eq!(status, Some(2));
    assert!(!inject(Path::new(dir), &[]).contains("0x00010000"));
    let integrated = temp.as_path().join("integrated");
    let other = serve("ivb", &integrated, &[]);
    for arguments in [&[][..], &["--list"], &["fatal-soc"]] {
        let (status, text) = fails(&[&["inject", integrated.to_str().unwrap()], arguments].concat());
        assert_eq!(
            (status, text.as_str()),
            (Some(1), "arctic: the card reports no hardware errors: an integrated GPU has no registers for them\n")
        );
    }
    assert_eq!(other.end(libc::SIGTERM).0, Some(0));
    let mut client = UnixStream::connect(Path::new(dir).join("operator/operator.sock")).unwrap();
    client.write_all(b"{\"request\":\"inject\",\"error\":\"fatal-sock\"}\nhalt\n").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    let (first, second) = text.split_once('\n').unwrap();
    assert_eq!(first, "{\"error\":\"the card has no error \\\"fatal-sock\\\"\"}");
    assert!(second.starts_with("{\"error\":\"not a request: "), "{second}");
    // The socket of a function.
    let (status, text) = fails(&["inject", Path::new(dir).join("pf.sock").to_str().unwrap()]);
    assert!(status == Some(1) && text.contains("does not respond"), "{text}");
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

/// One connection takes requests of each kind, and ends with events.
#[test]
fn a_connection_takes_all_requests() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let served = serve("small", dir, &[]);
    let _pf = connect_pf(dir);
    let mut client = UnixStream::connect(dir.join("operator/operator.sock")).unwrap();
    let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
    let mut request = |line: &str| -> serde_json::Value {
        client.write_all(format!("{line}\n").as_bytes()).unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    assert_eq!(request(r#"{"request":"status"}"#)["ok"]["functions"][0]["connected"], true);
    assert_eq!(request(r#"{"request":"error-registers"}"#)["ok"]["registers"].as_array().unwrap().len(), 3);
    assert!(
        request(r#"{"request":"trace","filter":{"engine":1}}"#)["error"].as_str().unwrap().contains("unknown field")
    );
    assert_eq!(request(r#"{"request":"trace"}"#)["ok"]["arctic_capture"], 1);
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    assert!(lines.next().is_none(), "the connection outlives the server");
}
