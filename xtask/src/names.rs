// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The word list of identifiers: `xtask/names.toml` has words that no name in the Rust sources contains, because no
//! engineer of the field would search for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, anyhow, ensure};
use arctic_source::tokens;
use serde::Deserialize;

use crate::{git, root};

/// The list, from the repository's root.
const LIST: &str = "xtask/names.toml";

/// Words and phrases with what to write instead of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// In lower case; the words of a phrase are separated by underscores.
    words: Vec<String>,
    /// What to write instead.
    advice: String,
}

/// An identifier that contains a word of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowance {
    name: String,
    /// Why: the name is given by a document or by another crate, for example.
    reason: String,
}

/// The contents of [`LIST`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Words that no identifier contains.
    word: Vec<Rule>,
    /// Phrases that no name of a test contains.
    phrase: Vec<Rule>,
    #[serde(default)]
    allow: Vec<Allowance>,
}

/// A use of an identifier.
struct Name {
    text: String,
    /// Line of the source, from 1.
    line: usize,
    /// It is the name of a function with the attribute `test`.
    is_test: bool,
}

/// Checks all Rust sources of the repository.
///
/// # Errors
/// If a name contains a word of the list, or an allowance has no use.
pub fn check() -> Result<()> {
    let text = fs::read_to_string(root().join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let list = List::parse(&text)?;
    let mut sources = BTreeMap::new();
    for path in git(&["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])? {
        if let Ok(text) = fs::read_to_string(root().join(&path)) {
            sources.insert(path, text);
        }
    }
    let problems = list.problems(&sources)?;
    problems.iter().for_each(|problem| println!("{problem}"));
    ensure!(problems.is_empty(), "{} problems with names: see {LIST}", problems.len());
    Ok(())
}

impl List {
    fn parse(text: &str) -> Result<Self> {
        let list: List = toml::from_str(text).with_context(|| format!("{LIST} is malformed"))?;
        let mut seen = BTreeSet::new();
        for word in list.word.iter().chain(&list.phrase).flat_map(|rule| &rule.words) {
            ensure!(seen.insert(word), "{LIST} has `{word}` twice");
        }
        let unexplained = list.allow.iter().find(|allowance| allowance.reason.trim().is_empty());
        ensure!(unexplained.is_none(), "{LIST}: an allowance has no reason");
        Ok(list)
    }

    /// Returns a line per name that contains a word or phrase of the list, and per allowance without a use.
    fn problems(&self, sources: &BTreeMap<String, String>) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let mut unused: BTreeSet<&str> = self.allow.iter().map(|allowance| allowance.name.as_str()).collect();
        // The sources use each name many times.
        let mut findings = BTreeMap::new();
        for (path, text) in sources {
            for name in names(text).with_context(|| format!("{path} is not Rust"))? {
                let key = (name.text.clone(), name.is_test);
                let Some((word, advice)) = *findings.entry(key).or_insert_with(|| self.finding(&name)) else {
                    continue;
                };
                if self.allow.iter().any(|allowance| allowance.name == name.text) {
                    unused.remove(name.text.as_str());
                    continue;
                }
                problems.push(format!("{path}:{}: {}: instead of `{word}`: {advice}", name.line, name.text));
            }
        }
        problems.extend(unused.into_iter().map(|name| format!("{LIST}: the allowance of {name} is not used")));
        Ok(problems)
    }

    /// The first word or phrase of the list in a name, with its advice.
    fn finding<'l>(&'l self, name: &Name) -> Option<(&'l str, &'l str)> {
        let joined = format!("_{}_", words(&name.text).join("_"));
        let has = |word: &&String| joined.contains(&format!("_{word}_"));
        let phrases = self.phrase.iter().filter(|_| name.is_test);
        let found = |rule: &'l Rule| Some((rule.words.iter().find(has)?.as_str(), rule.advice.as_str()));
        self.word.iter().chain(phrases).find_map(found)
    }
}

/// All identifiers of a source, in order.
fn names(source: &str) -> Result<Vec<Name>> {
    let tokens = tokens(source.parse().map_err(|error| anyhow!("{error}"))?);
    let mut names = Vec::new();
    let (mut is_test, mut before) = (false, "");
    for (at, token) in tokens.iter().enumerate() {
        let text = token.text.as_str();
        is_test = match text {
            // An attribute such as `#[test]` or `#[runtime::test]`, of the item that follows.
            "test" if tokens.get(at + 1).is_some_and(|next| next.text == "]") => true,
            ";" | "{" | "}" => false,
            _ => is_test,
        };
        if token.is_word() {
            let name = text.strip_prefix("r#").unwrap_or(text);
            names.push(Name { text: name.to_owned(), line: token.line, is_test: is_test && before == "fn" });
        }
        before = text;
    }
    Ok(names)
}

/// The words of an identifier, in lower case: parts between underscores and between cases; digits separate words.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let next = letters.get(at + 1);
        let starts = letter.is_uppercase()
            && (before.is_some_and(char::is_lowercase) || next.is_some_and(|next| next.is_lowercase()));
        if starts || !letter.is_alphabetic() {
            words.push(String::new());
        }
        if letter.is_alphabetic() {
            words.last_mut().expect("there is a word").extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "[[word]]\nwords = [\"told\", \"face\"]\nadvice = \"report\"\n\
        [[phrase]]\nwords = [\"no_more\"]\nadvice = \"the result\"\n\
        [[allow]]\nname = \"get_face\"\nreason = \"a trait of a crate\"\n";

    fn problems(source: &str) -> Vec<String> {
        let sources = BTreeMap::from([("a.rs".to_owned(), source.to_owned())]);
        List::parse(LIST).unwrap().problems(&sources).unwrap()
    }

    #[test]
    fn names_of_the_repository_contain_no_listed_word() {
        check().unwrap();
    }

    #[test]
    fn identifiers_are_split_at_underscores_cases_and_digits() {
        for (name, expected) in [
            ("is_told", &["is", "told"][..]),
            ("ToldFace", &["told", "face"]),
            ("GUCTold2", &["guc", "told"]),
            ("HOST_TOLD", &["host", "told"]),
            ("surface", &["surface"]),
            ("_", &[]),
        ] {
            assert_eq!(words(name), expected, "{name}");
        }
    }

    #[test]
    fn listed_word_is_reported_with_line_and_advice() {
        let found =
            problems("fn get_face() {}\nstruct ToldHost { r#face: u8 }\n// told\nconst S: &str = \"told {told}\";");
        assert_eq!(found, ["a.rs:2: ToldHost: instead of `told`: report", "a.rs:2: face: instead of `face`: report"]);
    }

    #[test]
    fn phrases_are_reported_in_test_names_only() {
        let test = "fn get_face() {}\n#[test]\n#[ignore]\nfn it_is_no_more() {}\nfn is_no_more() {}";
        assert_eq!(problems(test), ["a.rs:4: it_is_no_more: instead of `no_more`: the result"]);
    }

    #[test]
    fn unused_allowance_is_a_problem() {
        assert_eq!(problems("fn f() {}"), ["xtask/names.toml: the allowance of get_face is not used"]);
    }

    #[test]
    fn duplicate_word_and_missing_reason_are_errors() {
        let error = |list: &str| List::parse(list).err().unwrap().to_string();
        assert!(error(&LIST.replace("no_more", "told")).contains("has `told` twice"));
        assert!(error(&LIST.replace("a trait of a crate", " ")).contains("no reason"));
    }
}
