// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Documents agree with the program: members of the JSON documents, options of a guest's kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use arctic_gpu::card::status::Status;
use arctic_gpu::{card_file, gpu};
use arctic_guest_runner::boot::BootReport;
use arctic_guest_runner::igt::IgtReport;
use serde_json::json;

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

/// docs/install.md lists each member of the document of `arctic status --json` and of its functions, and no other.
#[test]
fn members_of_the_state_are_in_the_tables() {
    let function = gpu::FunctionStatus {
        function: 0,
        state: Some(gpu::FunctionState::Running),
        quota: Some(gpu::Quota::default()),
        contexts: Some(0),
        on: Vec::new(),
        engine_time_ns: Some(BTreeMap::new()),
        waiting: Some(BTreeMap::new()),
        messages: Some(0),
        engine_resets: Some(0),
        cat_errors: Some(0),
        skipped_contexts: Some(0),
        skipped_user_commands: Some(0),
        skipped_driver_commands: Some(0),
        kernels: Some(gpu::KernelCounts::default()),
    };
    let mut of_function = serde_json::to_value(function).unwrap();
    let further = json!({ "enabled": true, "connected": true, "power_state": "D0", "bus_master": true, "guest_sections": 0,
        "trapped": {}, "memory_bytes": 0 });
    of_function.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
    let status = json!({ "card": "", "topology": "split", "uptime_seconds": 0, "total_vfs": 0, "enabled_vfs": 0,
        "resident_bytes": 0, "engines": [], "functions": [of_function],
        "power": {},
        "stream": { "unit": "OAG", "enabled": true, "period_ns": 1, "bytes": 256, "written": 0, "lost": 0 } });
    let status = serde_json::to_value(serde_json::from_value::<Status>(status).unwrap()).unwrap();
    let members = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<String>>();
    let text = read("docs/install.md");
    let table = |heading: &str| {
        let (_, rest) = text.split_once(heading).unwrap_or_else(|| panic!("{heading}"));
        let table = rest.split("\n\n").nth(1).unwrap();
        first_column(table).into_iter().map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let mut document = members(&status);
    document.insert("schema".into());
    assert_eq!(table("\nMembers of the document of `arctic status"), document);
    assert_eq!(table("\nMembers of each object in `functions`"), members(&status["functions"][0]));
}

/// The keys that the parser of card files accepts in the section that `text` ends with, from its error on an unknown one.
fn accepted_keys(text: &str) -> BTreeSet<String> {
    let message = card_file::parse("x", &format!("{text}unknown_key = 1\n")).unwrap_err().to_string();
    let (_, keys) = message.split_once("`unknown_key`, expected ").unwrap_or_else(|| panic!("{message}"));
    assert!(!message.contains('…'), "{message}");
    keys.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A value of a type that no key has is refused with the key, what was found, and what is expected, in the words of the page.
fn check_type_error(text: &str, key: &str) {
    let without: String = text
        .lines()
        .filter(|line| !line.starts_with(&format!("{key} = ")))
        .fold(String::new(), |text, line| text + line + "\n");
    let message = card_file::parse("x", &format!("{without}{key} = 1.5\n")).unwrap_err().to_string();
    let known = message.contains("unknown family");
    assert!(known || message.contains(&format!(" {key}: ")), "{message}");
    assert!(message.contains("1.5") && message.contains("expected "), "{message}");
    for kind in ["u8", "u16", "u32", "u64", "i64", "struct", "enum", "sequence", "map"] {
        assert!(!message.split(|c: char| !c.is_alphanumeric()).any(|word| word == kind), "{message}");
    }
}

/// docs/card-files.md lists each key that card files accept in each section, and no other. Each value is checked.
#[test]
fn keys_of_card_files_are_in_the_tables() {
    let page = read("docs/card-files.md");
    let table = |heading: &str| -> BTreeSet<String> {
        let (_, section) = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{heading}"));
        let table = section.split("\n#").next().unwrap();
        first_column(table).into_iter().map(str::to_owned).collect()
    };
    let [flex, integrated] = ["flex170", "ivb"].map(|name| {
        let text = card_file::BUILT_IN.iter().find(|(built_in, _)| *built_in == name).unwrap().1;
        // Up to the first section: what follows belongs to the card.
        text.split_once("\n[").unwrap().0.to_owned() + "\n"
    });
    for (heading, card, section) in [
        ("## Flex cards", &flex, ""),
        ("### Fuses", &flex, "[fuses]\n"),
        ("### Frequency", &flex, "[frequency]\n"),
        ("### Power", &flex, "[power]\n"),
        ("### GuC", &flex, "[guc]\n"),
        ("### Firmware", &flex, "[firmware]\n"),
        ("### Provision", &flex, "[provision]\n"),
        ("### Provision", &flex, "[[provision.vf]]\n"),
        ("### Limits", &flex, "[limits]\n"),
        ("## Integrated GPUs", &integrated, ""),
        ("### Frequency", &integrated, "[frequency]\n"),
        ("### Limits", &integrated, "[limits]\n"),
    ] {
        let text = format!("{card}{section}");
        let keys = accepted_keys(&text);
        keys.iter().for_each(|key| check_type_error(&text, key));
        assert_eq!(table(heading), keys, "{heading}, {section}");
    }
    for (text, keys) in [
        ("[power.voltage]\n", &["max", "min"][..]),
        ("[power.package]\n", &["per_watt", "seconds"]),
        ("[power.memory]\n", &["per_watt", "seconds"]),
        ("[firmware.option_rom]\n", &["code", "data"]),
    ] {
        let expected = keys.iter().map(|key| (*key).to_owned()).collect();
        keys.iter().for_each(|key| check_type_error(&format!("{flex}{text}"), key));
        assert_eq!(accepted_keys(&format!("{flex}{text}")), expected, "{text}");
    }
}

/// The lines of Rust in docs/embedding.md are lines of the example, which is compiled.
#[test]
fn lines_of_the_embedding_page_are_of_the_example() {
    let (page, example) = (read("docs/embedding.md"), read("examples/in_process.rs"));
    let code = page.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(code.lines().count() > 3, "{code}");
    for line in code.lines() {
        assert!(example.lines().any(|known| known == line), "{line}");
    }
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
