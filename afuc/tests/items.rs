// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `docs/items.md` assesses all items of the document, and its tests exist.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Names of all functions with `#[test]` below a directory.
fn tests_in(directory: &Path, names: &mut HashSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_in(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(path).unwrap();
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            for pair in lines.windows(2).filter(|pair| pair[0] == "#[test]") {
                names.extend(pair[1].strip_prefix("fn ").and_then(|rest| rest.split('(').next()).map(str::to_owned));
            }
        }
    }
}

#[test]
fn each_item_is_assessed_with_tests_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = HashSet::new();
    tests_in(&root.join("src"), &mut tests);
    tests_in(&root.join("tests"), &mut tests);
    let text = fs::read_to_string(root.join("docs/items.md")).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| AF-"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let mut counts = [0; 3];
    for (number, row) in (1..).zip(&rows) {
        let [item, subject, state, cited, reason] = row[..] else { panic!("{row:?}") };
        assert_eq!(item, format!("AF-{number:03}"), "each item once, in order");
        assert!(!subject.is_empty(), "{item}");
        let cited: Vec<&str> = cited.split(", ").filter(|name| !name.is_empty()).collect();
        for name in &cited {
            assert!(tests.contains(name.trim_matches('`')), "{item}: there is no test {name}");
        }
        match state {
            "exact" => counts[0] += 1,
            "approximate" => counts[1] += 1,
            "out of scope" => counts[2] += 1,
            other => panic!("{item}: {other}"),
        }
        assert_eq!(reason.is_empty(), state == "exact", "{item}: a reason, unless it is exact");
        assert_eq!(cited.is_empty(), state == "out of scope", "{item}: tests, unless it is out of scope");
    }
    assert_eq!(rows.len(), 125);
    let sentence = format!("{} exact, {} approximate,\n{} out of scope", counts[0], counts[1], counts[2]);
    assert!(text.contains(&sentence), "the sums are {counts:?}");
}

/// Each rule that a source cites, as AFC-nnn or as a range, is in `docs/rules.md`.
#[test]
fn cited_rules_are_listed() {
    fn sources(directory: &Path, texts: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, texts);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = fs::read_to_string(root.join("docs/rules.md")).unwrap();
    let mut texts = Vec::new();
    ["src", "tests", "benches"].iter().for_each(|name| sources(&root.join(name), &mut texts));
    let mut cited = 0;
    for text in &texts {
        for rest in text.split("AFC-").skip(1) {
            let number = |text: &str| text.get(..3)?.parse::<u32>().ok();
            let Some(first) = number(rest) else { continue };
            let last = rest[3..].strip_prefix("..").and_then(number).unwrap_or(first);
            for rule in first..=last {
                cited += 1;
                assert!(rules.contains(&format!("| AFC-{rule:03} | ")), "AFC-{rule:03}");
            }
        }
    }
    assert!(cited > 40);
}
