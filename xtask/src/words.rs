// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The word list: words that make documentation hard to read, counted in comments and documents.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{git, root};

/// Words and phrases, in lower case.
const WORDS: &[&str] = &[
    "who",
    "whoever",
    "whom",
    "whose",
    "nobody",
    "somebody",
    "door",
    "doors",
    "judge",
    "judges",
    "judged",
    "house",
    "houses",
    "told",
    "is no more",
    "are no more",
    "goes round",
    "lets go",
    "comes by",
    "at hand",
    "by hand",
];
/// Permitted total number of uses, for quotations and for the few cases in which the word is correct.
const LIMIT: usize = 60;

/// Counts the uses in the repository and prints the number; with `list`, also prints each use.
pub fn check(list: bool) -> Result<()> {
    let mut uses = Vec::new();
    for file in git(&["ls-files"])?.iter().filter(|file| is_checked(file)) {
        let text = fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))?;
        for (number, line) in text.lines().enumerate() {
            let words = uses_in(comment(Path::new(file), line));
            uses.extend(words.into_iter().map(|word| format!("{file}:{}: {word}", number + 1)));
        }
    }
    if list {
        uses.iter().for_each(|found| println!("{found}"));
    }
    println!("{} uses of words that the documentation should not use, at most {LIMIT} permitted", uses.len());
    ensure!(uses.len() <= LIMIT, "replace some of them: cargo xtask words --list");
    Ok(())
}

/// Returns true for sources and documents, except the specifications, generated documents and this file, which has the
/// list.
fn is_checked(file: &str) -> bool {
    let source = [".rs", ".c", ".h"].iter().any(|extension| file.ends_with(extension));
    let document = (file.ends_with(".md") || file.ends_with(".toml")) && !file.starts_with("docs/spec/");
    (source || document) && !["FIDELITY.md", "xtask/src/words.rs"].contains(&file)
}

/// Returns the prose in a line: the comment in a line of a source file, the whole line of a document.
fn comment<'l>(file: &Path, line: &'l str) -> &'l str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("rs" | "c" | "h") => line.split_once("//").map_or("", |(_, comment)| comment),
        _ => line,
    }
}

fn uses_in(text: &str) -> Vec<&'static str> {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    let text = text.to_lowercase();
    let count = |word: &&'static str| {
        let whole = |at: usize| {
            let after = text[at + word.len()..].chars().next();
            !text[..at].ends_with(letter) && !after.is_some_and(letter)
        };
        text.match_indices(*word).filter(|(at, _)| whole(*at)).count()
    };
    WORDS.iter().flat_map(|word| std::iter::repeat_n(*word, count(word))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_matches_are_delimited() {
        let found = |file: &str, line: &'static str| uses_in(comment(Path::new(file), line));
        assert_eq!(found("a.rs", "let who = 1; // Whoever is told, is no more."), ["whoever", "told", "is no more"]);
        assert_eq!(found("a.rs", "let who = 1;"), [""; 0]);
        assert_eq!(found("a.md", "the whole indoor door, a who_is"), ["door"]);
    }

    #[test]
    fn files_are_chosen() {
        assert!(["src/lib.rs", "README.md", "docs/sriov.md", "a/guest.c"].into_iter().all(is_checked));
        assert!(!["docs/spec/vol8.md", "FIDELITY.md", "fuzz/corpus/x/1", "Cargo.lock"].into_iter().any(is_checked));
    }
}
