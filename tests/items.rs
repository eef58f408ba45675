//! Every item of the documents that the card promises to keep is named by a test, or explained in `docs/fidelity.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// What the card promises: document, first and last item.
const PROMISED: [(&str, u16, u16); 2] = [("V13", 1, 128), ("V13", 257, 277)];

/// `docs/fidelity.toml`.
#[derive(Deserialize)]
struct Fidelity {
    item: Vec<Item>,
}

/// An item that is kept in part, or not.
#[derive(Deserialize)]
struct Item {
    id: String,
    status: Status,
    note: String,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// Kept, but for what the note says; a test names it too.
    Approximate,
    /// Not kept, for the reason that the note gives.
    Absent,
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

/// Items that `text` names: `V13-022`, and all of `V13-048..051`.
fn named(text: &str, items: &mut BTreeSet<String>) {
    let number =
        |at: usize| text.get(at..at + 3).filter(|digits| digits.bytes().all(|c| c.is_ascii_digit()))?.parse().ok();
    for document in ["V8", "V13"] {
        let prefix = format!("{document}-");
        for (at, _) in text.match_indices(&prefix) {
            let Some(first) = number(at + prefix.len()) else { continue };
            let mut end = at + prefix.len() + 3;
            let mut last: u16 = first;
            if text.get(end..end + 2) == Some("..") {
                end += 2;
                let skip = if text[end..].starts_with(&prefix) { prefix.len() } else { 0 };
                last = number(end + skip).unwrap_or(first);
            }
            items.extend((first..=last).map(|n| format!("{document}-{n:03}")));
        }
    }
}

/// The comment above each test of `text`, and the test itself.
fn tests(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_test = |line: &str| line.trim() == "#[test]";
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_test(line)) {
        let above =
            lines[..at].iter().rposition(|line| !line.trim().starts_with("//") && !line.trim().starts_with("#["));
        let indent = line.len() - line.trim_start().len();
        let closing = format!("{}}}", " ".repeat(indent));
        let below = lines[at..].iter().position(|line| *line == closing).unwrap_or(0);
        found.push(lines[above.map_or(0, |n| n + 1)..=at + below].join("\n"));
    }
    found
}

#[test]
fn every_promised_item_is_proved_or_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(root, &mut files);
    let mut proved = BTreeSet::new();
    for file in files.iter().filter(|file| !file.ends_with("tests/items.rs")) {
        for test in tests(&fs::read_to_string(file).unwrap()) {
            named(&test, &mut proved);
        }
    }
    let fidelity: Fidelity = toml::from_str(&fs::read_to_string(root.join("docs/fidelity.toml")).unwrap()).unwrap();
    let told: BTreeMap<_, _> = fidelity.item.iter().map(|item| (item.id.clone(), item)).collect();
    assert_eq!(told.len(), fidelity.item.len(), "an item is told twice");
    let mut wrong = Vec::new();
    for item in &fidelity.item {
        if item.note.trim().is_empty() {
            wrong.push(format!("{} has no note", item.id));
        }
        if item.status == Status::Approximate && !proved.contains(&item.id) {
            wrong.push(format!("{} is said to be kept in part, and no test names it", item.id));
        }
    }
    for (document, first, last) in PROMISED {
        for id in (first..=last).map(|n| format!("{document}-{n:03}")) {
            if !proved.contains(&id) && !told.contains_key(&id) {
                wrong.push(format!("{id} is neither named by a test nor explained"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} items:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn items_are_found_one_by_one_and_in_ranges() {
    let mut items = BTreeSet::new();
    named("V13-001, V13-003..005 and V8-100..V8-101; V13-1", &mut items);
    let expected = ["V13-001", "V13-003", "V13-004", "V13-005", "V8-100", "V8-101"];
    assert_eq!(items.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let source = "/// V13-009: not a test's.\nfn a() {}\n\n/// V13-010.\n#[test]\nfn b() {\n    x();\n}\n// V13-011\n";
    assert_eq!(tests(source), ["/// V13-010.\n#[test]\nfn b() {\n    x();\n}"]);
}
