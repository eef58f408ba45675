// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The calls of `mutant!` and `proves!` in the sources.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::{git, root};

/// A call of `mutant!`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Number within the item, from 1.
    pub number: u8,
    /// Source file, from the repository's root.
    pub path: String,
}

/// All mutants by item, such as `V8-089`.
///
/// # Errors
/// If a mutant is not of the form `mutant!(V8_089, 1)`. One mutant may have several calls.
pub fn mutants() -> Result<BTreeMap<String, Vec<Mutant>>> {
    let mut mutants: BTreeMap<String, Vec<Mutant>> = BTreeMap::new();
    for (path, text) in texts()? {
        for (item, number) in calls(&text).with_context(|| path.clone())? {
            let of_item = mutants.entry(item).or_default();
            let mutant = Mutant { number, path: path.clone() };
            if !of_item.contains(&mutant) {
                of_item.push(mutant);
            }
        }
    }
    mutants.values_mut().for_each(|of_item| of_item.sort_by_key(|mutant| mutant.number));
    Ok(mutants)
}

/// The files that claim items.
pub fn claiming() -> Result<Vec<String>> {
    let claims = |text: &str| text.contains("proves!(") || text.contains("proves_table!(");
    Ok(texts()?.into_iter().filter(|(_, text)| claims(text)).map(|(path, _)| path).collect())
}

/// Every source file but those of the macros and of this task, with its text.
fn texts() -> Result<Vec<(String, String)>> {
    let own = |path: &String| path.starts_with("fidelity/") || path.starts_with("xtask/") || path.starts_with("cli/");
    let paths = git(&["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])?;
    let read = |path: String| {
        let text = fs::read_to_string(root().join(&path)).with_context(|| format!("cannot read {path}"))?;
        Ok((path, text))
    };
    paths.into_iter().filter(|path| !own(path) && root().join(path).is_file()).map(read).collect()
}

/// The items and numbers of the calls in a source.
fn calls(text: &str) -> Result<Vec<(String, u8)>> {
    let call = |rest: &str| {
        let arguments = rest.split(')').next().unwrap_or_default();
        let (item, number) = arguments.split_once(',').unwrap_or_default();
        let number = number.trim().parse();
        ensure!(number.is_ok() && item.contains('_'), "mutant!({arguments}) is not of the form mutant!(V8_089, 1)");
        Ok((item.trim().replace('_', "-"), number.unwrap_or_default()))
    };
    text.match_indices("mutant!(").map(|(at, word)| call(&text[at + word.len()..])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_name_item_and_number() {
        let text = "if mutant!(V8_089, 1) || arctic_fidelity::mutant!(\n V13_004,\n 12) {}";
        assert_eq!(calls(text).unwrap(), [("V8-089".to_owned(), 1), ("V13-004".to_owned(), 12)]);
        assert!(calls("mutant!(V8_089)").is_err() && calls("mutant!(V8_089, N)").is_err());
    }

    /// Without the feature a mutant is the constant `false`; only the command line of this task may enable it.
    #[test]
    fn no_package_enables_the_mutants() {
        for path in git(&["ls-files", "*Cargo.toml"]).unwrap() {
            let text = fs::read_to_string(root().join(&path)).unwrap();
            let enables = text.contains("\"mutants\"") || text.contains("arctic-fidelity/mutants");
            assert!(!enables, "{path} enables the feature mutants of arctic-fidelity");
        }
    }
}
