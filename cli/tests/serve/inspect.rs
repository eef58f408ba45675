// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic inspect` on a served card of each family.

use std::path::Path;

use vmm_sys_util::tempdir::TempDir;

use crate::{arctic, connect_pf, fails, serve};

fn inspect(dir: &Path, arguments: &[&str]) -> String {
    let output = arctic(&[&["inspect", dir.to_str().unwrap()], arguments].concat()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The tree of each family has the parts that the help names. Each part is visited, by the program alone.
#[test]
fn each_part_of_a_served_card_is_shown() {
    for (card, parts) in [
        ("small", &["status", "pci", "registers", "engines", "guc", "functions", "memory"][..]),
        ("ivb", &["status", "pci", "registers", "engines", "functions"]),
    ] {
        let temp = TempDir::new().unwrap();
        let dir = temp.as_path();
        let options = if card == "small" { &["--vfs", "1"][..] } else { &[] };
        let served = serve(card, dir, options);
        let pf = connect_pf(dir);
        let names = inspect(dir, &[]);
        let names: Vec<_> = names.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(names, parts, "{card}");
        for part in parts {
            let document: serde_json::Value =
                serde_json::from_str(&inspect(dir, &[part, "--depth", "9", "--json"])).unwrap();
            assert!(document.as_object().is_some_and(|parts| !parts.is_empty()), "{card}: {part}");
        }
        let document: serde_json::Value =
            serde_json::from_str(&inspect(dir, &["status", "--depth", "9", "--json"])).unwrap();
        assert_eq!(document["functions"]["0"]["connected"], true, "{document}");
        assert_eq!(inspect(dir, &["pci/pf/connected"]), "pci/pf/connected  yes\n");
        assert!(inspect(dir, &["pci/pf/config/0x000"]).starts_with("pci/pf/config/0x000  0x"));
        drop(pf);
        assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    }
}

/// Shells are given the next names of a path; a part that is missing is named with those beside it.
#[test]
fn paths_are_completed() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let served = serve("small", dir, &[]);
    assert_eq!(inspect(dir, &["--complete", "e"]), "engines/\n");
    assert_eq!(inspect(dir, &["--complete", "engines/RC"]), "engines/rcs0/\n");
    assert_eq!(inspect(dir, &["--complete", "registers/GDR"]), "registers/GDRST\n");
    assert_eq!(inspect(dir, &["--complete", "no/such"]), "");
    let (status, text) = fails(&["inspect", dir.to_str().unwrap(), "engines/xcs0"]);
    assert_eq!(status, Some(1));
    assert!(text.starts_with("arctic: engines has no xcs0: it has rcs0, bcs0, "), "{text}");
    let (status, text) = fails(&["inspect", dir.to_str().unwrap(), &"x/".repeat(40)]);
    assert_eq!((status, text.contains("at most 32 are possible")), (Some(1), true), "{text}");
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

/// The state is shown again until the card is no longer served.
#[test]
fn a_part_is_watched_until_the_end_of_the_card() {
    let temp = TempDir::new().unwrap();
    let dir = temp.as_path();
    let served = serve("small", dir, &[]);
    let words = ["inspect", dir.to_str().unwrap(), "engines/rcs0/loaded", "--watch", "1", "--json"];
    let watching =
        arctic(&words).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
    let output = watching.wait_with_output().unwrap();
    let (lines, text) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && text.contains("the card is no longer served"), "{text}");
    assert!(lines.lines().count() >= 2 && lines.lines().all(|line| line == "false"), "{lines}");
}
