// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The directory of `arctic serve`: its requirements, its contents, and the permissions of its sockets.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;

use vmm_sys_util::tempdir::TempDir;

use crate::{LEFT, fails, left, serve, status};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn refused(dir: &Path) -> String {
    let (status, text) = fails(&["serve", "--card", "small", "--dir", dir.to_str().unwrap()]);
    assert_eq!((status, text.lines().count()), (Some(1), 1), "{text}");
    text
}

#[test]
fn sockets_have_modes_of_user_and_operator() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path().join("card");
    let served = serve("small", &dir, &["--vfs", "1", "--json"]);
    let json: serde_json::Value = serde_json::from_str(served.first_line()).unwrap();
    for (path, bits) in [
        ("", 0o700),
        ("operator", 0o700),
        ("lock", 0o600),
        ("pf.sock", 0o600),
        ("vf1.sock", 0o600),
        ("operator/operator.sock", 0o600),
    ] {
        assert_eq!(mode(&dir.join(path)), bits, "{path}");
    }
    let socket = dir.join("operator/operator.sock");
    assert_eq!(json["sockets"]["operator"], socket.to_str().unwrap());
    assert_eq!(status(&dir)["enabled_vfs"], 0);
    assert_eq!(status(&socket)["enabled_vfs"], 0);
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    assert_eq!((left(&dir), mode(&dir.join("report.json"))), (LEFT.map(String::from).to_vec(), 0o600));
}

#[test]
fn socket_group_has_access_to_functions_only() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path().join("card");
    let group = fs::metadata(temp.as_path()).unwrap().gid();
    let served = serve("small", &dir, &["--vfs", "1", "--socket-group", &group.to_string()]);
    let access = |path: &str| {
        let path = dir.join(path);
        (mode(&path), fs::metadata(&path).unwrap().gid() == group)
    };
    assert_eq!((access(""), access("vf1.sock"), access("pf.sock")), ((0o710, true), (0o660, true), (0o660, true)));
    assert_eq!([mode(&dir.join("operator")), mode(&dir.join("operator/operator.sock"))], [0o700, 0o600]);
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    let arguments = ["serve", "--card", "small", "--dir", dir.to_str().unwrap(), "--socket-group", "no such group"];
    let (status, text) = fails(&arguments);
    assert!(status == Some(2) && text.contains("there is no such group"), "{text}");
}

#[test]
fn run_directory_with_files_or_links_is_refused() {
    let temp = TempDir::new().unwrap();
    let at = |name: &str| temp.as_path().join(name);
    fs::create_dir(at("operator")).unwrap();
    fs::set_permissions(at("operator"), fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["pf.sock", "operator/operator.sock"] {
        fs::write(at(name), "precious").unwrap();
        assert!(refused(temp.as_path()).contains("it is a regular file, not a socket"));
        assert_eq!(fs::read_to_string(at(name)).unwrap(), "precious");
        fs::remove_file(at(name)).unwrap();
    }
    symlink("nowhere", at("pf.sock")).unwrap();
    let text = refused(temp.as_path());
    assert!(text.contains("it is a symbolic link") && !text.contains("another card"), "{text}");
    fs::remove_file(at("pf.sock")).unwrap();
    fs::set_permissions(temp.as_path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(refused(temp.as_path()).contains("others may write to"));
    fs::set_permissions(temp.as_path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(at("victim"), "precious").unwrap();
    symlink(at("victim"), at("report.json")).unwrap();
    let served = serve("small", temp.as_path(), &[]);
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    assert_eq!(fs::read_to_string(at("victim")).unwrap(), "precious");
    assert!(fs::read_to_string(at("report.json")).unwrap().contains("unmodelled"));
}

/// The first server that locks the directory serves, and the others exit, even if sockets of a killed server exist.
#[test]
fn one_of_several_concurrent_servers_serves() {
    let dir = TempDir::new().unwrap();
    let mut dead = serve("small", dir.as_path(), &["--vfs", "7"]);
    dead.process.kill().unwrap();
    dead.process.wait().unwrap();
    for _ in 0..5 {
        let starts: Vec<_> = (0..3)
            .map(|_| {
                let dir = dir.as_path().to_owned();
                std::thread::spawn(move || serve("small", &dir, &["--vfs", "7"]))
            })
            .collect();
        let mut served: Vec<_> = starts.into_iter().map(|start| start.join().unwrap()).collect();
        // A server that exits with an error writes nothing to stdout.
        let serving: Vec<_> = served.iter().enumerate().filter(|(_, served)| !served.first_line().is_empty()).collect();
        assert_eq!(serving.len(), 1);
        let one = served.remove(serving[0].0);
        for name in ["pf", "vf1", "vf7", "operator/operator"] {
            UnixStream::connect(dir.as_path().join(format!("{name}.sock"))).unwrap();
        }
        for mut other in served {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut other.process.stderr.take().unwrap(), &mut text).unwrap();
            assert_eq!(other.process.wait().unwrap().code(), Some(1), "{text}");
            assert!(text.contains("is in use: another card is being served there"), "{text}");
        }
        assert_eq!(one.end(libc::SIGKILL).0, None);
    }
    // Only the lock is checked: all sockets are stale.
    let lock = fs::File::open(dir.as_path().join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let other = serve("small", dir.as_path(), &["--vfs", "7"]);
    assert_eq!(other.first_line(), "", "a second server serves without the lock");
    let (code, text) = other.end(libc::SIGTERM);
    assert!(text.contains("is in use: another card is being served there"), "{code:?}: {text}");
}
