// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of earlier versions is restored.

use std::fs;

use arctic_test_support::golden::{KINDS, directory, files, without_section};

/// Every file that a version has written is restored, with the values that its driver depends on.
#[test]
fn state_of_earlier_versions_is_restored() {
    for kind in &KINDS {
        let files = files(kind);
        assert!(!files.is_empty(), "{}: no file", kind.name);
        for file in files {
            println!("{}", file.display());
            (kind.check)(&fs::read(file).unwrap());
        }
    }
    let of_kinds: usize = KINDS.iter().map(|kind| files(kind).len()).sum();
    assert_eq!(fs::read_dir(directory()).unwrap().count(), of_kinds, "a file of no kind");
}

/// What this version writes is restored, too; the checks find that a part is missing.
#[test]
fn checks_of_saved_state_fail_if_a_part_is_missing() {
    for (kind, tag) in KINDS.iter().zip([b"CTXP", b"KWLK", b"REGS", b"GTTE"]) {
        let bytes = (kind.save)();
        (kind.check)(&bytes);
        let (other, check) = (without_section(&bytes, tag), kind.check);
        assert!(std::panic::catch_unwind(|| check(&other)).is_err(), "{} without a section", kind.name);
    }
}
