// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Documents agree with the program: members of the JSON documents, options of a guest's kernel.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use arctic_guest_runner::boot::BootReport;
use arctic_guest_runner::igt::IgtReport;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
}

/// The names between backticks in the first column of the tables of `text`.
fn first_column(text: &str) -> BTreeSet<&str> {
    let cells = text.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

/// docs/ci.md lists each member of the documents of `arctic boot --json` and `arctic igt --json`, and no other.
#[test]
fn members_of_json_documents_are_in_the_table() {
    let text = read("docs/ci.md");
    let (_, table) = text.split_once("\nMembers of the document").unwrap();
    let table = first_column(table.split("\n## ").next().unwrap());
    let members =
        |document: serde_json::Value| -> BTreeSet<String> { document.as_object().unwrap().keys().cloned().collect() };
    let boot = members(serde_json::to_value(BootReport::default()).unwrap());
    let igt = members(serde_json::to_value(IgtReport::default()).unwrap());
    let listed: BTreeSet<String> = table.into_iter().map(str::to_owned).collect();
    assert_eq!(listed, boot.union(&igt).cloned().collect());
}

/// dist/guest-kernel.config sets each option of docs/own-kernel.md, to the value that the document demands.
#[test]
fn kernel_options_of_the_document_are_in_the_fragment() {
    let text = read("docs/own-kernel.md");
    let (_, text) = text.split_once("\n## Options").unwrap();
    let options = first_column(text.split("\n## ").next().unwrap());
    assert!(options.len() > 50, "{options:?}");
    let fragment = read("dist/guest-kernel.config");
    let values: Vec<&str> = fragment.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    for option in options {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let set: Vec<&str> = values.iter().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect();
        let fits = matches!(set[..], [set] if ["y", "m"].contains(&set) && [set, ""].contains(&value));
        assert!(fits, "{option}: {set:?}");
    }
    for line in values {
        assert!(line.starts_with("CONFIG_") && (line.ends_with("=y") || line.ends_with("=m")), "{line}");
    }
}
