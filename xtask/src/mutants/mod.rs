// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `cargo xtask mutants`: runs each mutant against the tests that claim its item, and writes `docs/mutants.toml`.
//!
//! One build has all mutants (feature `mutants` of `arctic-fidelity`, profile `mutants`); `ARCTIC_MUTANT` selects one.
//! The tests first run without a mutant: this collects the claims that they execute, and only tests that pass count.

mod binaries;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use arctic_fidelity::results::{self, Outcome, Results};

use binaries::{Claim, Test};
use sources::Mutant;

/// Results, relative to the repository's root.
const RESULTS: &str = "docs/mutants.toml";

/// A test counts as quick if it takes at most this long without a mutant. All quick tests of an item run with its
/// mutants; a slower test runs only if no quick test failed.
const QUICK: Duration = Duration::from_secs(2);

/// Command line.
#[derive(clap::Args)]
pub struct Arguments {
    /// Items such as V8-089; all if none is named
    #[arg(conflicts_with = "changed")]
    items: Vec<String>,
    /// Only items without a result or with a result of other sources
    #[arg(long)]
    changed: bool,
    /// Start no further mutant after this number of minutes, build included, and print the items that are not reached
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Do not write docs/mutants.toml; fail if an item that it records as proved is not
    #[arg(long)]
    check: bool,
}

/// Runs the mutants.
pub fn run(arguments: &Arguments) -> Result<()> {
    let started = Instant::now();
    let limit = arguments.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let mutants = sources::mutants()?;
    let stored = fs::read_to_string(crate::root().join(RESULTS)).unwrap_or_default();
    let old = Results::parse(&stored).map_err(|error| anyhow::anyhow!("{RESULTS} cannot be read: {error}"))?;
    if arguments.changed && is_current(&old, &mutants) {
        eprintln!("no source of a result has changed");
        return Ok(());
    }
    let (tests, claims) = binaries::claims()?;
    let wanted = wanted(arguments, &claims, &mutants, &old)?;
    eprintln!("{} tests claim {} items; {} items to run", tests.len(), items_of(&claims).len(), wanted.len());

    let runs = Runs { tests: &tests, mutants: &mutants, started, limit };
    let (outcomes, left) = runs.all(&wanted);
    let survivors = survivors(&outcomes);
    for (item, number) in &survivors {
        println!("{item}/{number} survived: no test that claims {item} fails");
    }
    let unproved: Vec<&String> =
        outcomes.iter().filter(|(_, outcome)| !outcome.proved()).map(|(item, _)| item).collect();
    println!(
        "{} of {} items proved; {} mutants survived; {:.0} s",
        outcomes.len() - unproved.len(),
        outcomes.len(),
        survivors.len(),
        started.elapsed().as_secs_f64()
    );
    if !left.is_empty() {
        println!("not reached in the time, their results stay stale: {}", join(&left));
    }
    let lost: Vec<&String> =
        unproved.into_iter().filter(|item| old.0.get(*item).is_some_and(Outcome::proved)).collect();
    if arguments.check {
        ensure!(lost.is_empty(), "recorded as proved in {RESULTS}, but not proved: {}", join(&lost));
        return Ok(());
    }
    write(old, outcomes, &claims, &mutants, arguments)
}

/// Returns whether each item with mutants or a result has a result of these sources.
fn is_current(old: &Results, mutants: &BTreeMap<String, Vec<Mutant>>) -> bool {
    let fresh = |item: &String| old.0.get(item).is_some_and(|outcome| !outcome.is_stale(file_hash));
    // A claim in another file does not change the hash of any result: files with claims are compared, too.
    let recorded: BTreeSet<&String> = old.0.values().flat_map(|outcome| &outcome.sources).collect();
    let claiming = sources::claiming().unwrap_or_default();
    mutants.keys().chain(old.0.keys()).all(fresh) && claiming.iter().all(|path| recorded.contains(path))
}

/// The items to run, with their outcomes without runs.
fn wanted(
    arguments: &Arguments,
    claims: &[Claim],
    mutants: &BTreeMap<String, Vec<Mutant>>,
    old: &Results,
) -> Result<Vec<(String, Outcome)>> {
    let claimed = items_of(claims);
    let all: BTreeSet<String> = claimed.iter().chain(mutants.keys()).cloned().collect();
    for item in &arguments.items {
        ensure!(all.contains(item), "no test that passes claims {item}, and no code has a mutant of it");
    }
    let named = all.into_iter().filter(|item| arguments.items.is_empty() || arguments.items.contains(item));
    let with_outcome = named.map(|item| {
        let outcome = outcome_without_runs(&item, claims, mutants);
        (item, outcome)
    });
    // The hash is that of the sources: equal, if they are the same files with the same contents.
    let current = |item: &String, outcome: &Outcome| {
        old.0.get(item).is_some_and(|old| {
            (&old.hash, &old.sources, &old.tests) == (&outcome.hash, &outcome.sources, &outcome.tests)
        })
    };
    Ok(with_outcome.filter(|(item, outcome)| !(arguments.changed && current(item, outcome))).collect())
}

/// The outcome of an item before its mutants have run.
fn outcome_without_runs(item: &str, claims: &[Claim], mutants: &BTreeMap<String, Vec<Mutant>>) -> Outcome {
    let of_item = || claims.iter().filter(|claim| claim.item == item);
    let code = mutants.get(item).into_iter().flatten().map(|mutant| mutant.path.clone());
    let sources = code.chain(of_item().map(|claim| claim.path.clone())).collect();
    Outcome {
        hash: results::hash_of(&sources, file_hash),
        sources,
        tests: of_item().map(|claim| claim.test.clone()).collect(),
        tables: of_item().filter(|claim| claim.table).map(|claim| claim.test.clone()).collect(),
        mutants: BTreeMap::new(),
    }
}

/// What all runs of mutants share.
struct Runs<'a> {
    tests: &'a BTreeMap<String, Test>,
    mutants: &'a BTreeMap<String, Vec<Mutant>>,
    started: Instant,
    limit: Option<Duration>,
}

impl Runs<'_> {
    /// Runs the mutants of the items, one item a processor. Returns the outcomes, and the items for which the time did
    /// not suffice.
    fn all(&self, wanted: &[(String, Outcome)]) -> (BTreeMap<String, Outcome>, Vec<String>) {
        let results = crate::in_parallel(wanted.len(), |n| {
            let elapsed = self.started.elapsed();
            if n != 0 && n.is_multiple_of(25) {
                eprintln!("{n} of {} items, {} s", wanted.len(), elapsed.as_secs());
            }
            self.limit.is_none_or(|limit| elapsed < limit).then(|| self.outcome(&wanted[n].0, &wanted[n].1))
        });
        let (mut outcomes, mut left) = (BTreeMap::new(), Vec::new());
        for ((item, _), outcome) in wanted.iter().zip(results) {
            match outcome {
                Some(outcome) => drop(outcomes.insert(item.clone(), outcome)),
                None => left.push(item.clone()),
            }
        }
        (outcomes, left)
    }

    /// Runs the mutants of one item. `before` is its outcome without them.
    fn outcome(&self, item: &str, before: &Outcome) -> Outcome {
        let mut outcome = before.clone();
        let mut tests: Vec<(&String, &Test)> =
            outcome.tests.iter().filter_map(|name| self.tests.get_key_value(name)).collect();
        tests.sort_by_key(|(_, test)| test.duration);
        for mutant in self.mutants.get(item).into_iter().flatten() {
            let mut fell = BTreeSet::new();
            for (name, test) in &tests {
                if (test.duration <= QUICK || fell.is_empty())
                    && !test.passes_with(&format!("{item}/{}", mutant.number))
                {
                    fell.insert((*name).clone());
                }
            }
            outcome.mutants.insert(mutant.number.to_string(), fell);
        }
        outcome
    }
}

/// Stores the outcomes. Results of items that no longer have a claim or a mutant are removed.
fn write(
    mut old: Results,
    outcomes: BTreeMap<String, Outcome>,
    claims: &[Claim],
    mutants: &BTreeMap<String, Vec<Mutant>>,
    arguments: &Arguments,
) -> Result<()> {
    let claimed = items_of(claims);
    old.0.retain(|item, _| claimed.contains(item) || mutants.contains_key(item));
    old.0.extend(outcomes);
    fs::write(crate::root().join(RESULTS), old.to_string()).with_context(|| format!("cannot write {RESULTS}"))?;
    if arguments.items.is_empty() {
        println!("{RESULTS} is written; `cargo run --release -- fidelity --markdown > FIDELITY.md` uses it");
    }
    Ok(())
}

fn items_of(claims: &[Claim]) -> BTreeSet<String> {
    claims.iter().map(|claim| claim.item.clone()).collect()
}

/// Items and numbers of the mutants that no test detected.
fn survivors(outcomes: &BTreeMap<String, Outcome>) -> Vec<(&String, &String)> {
    let mut survivors = Vec::new();
    for (item, outcome) in outcomes {
        survivors.extend(outcome.mutants.iter().filter(|(_, fell)| fell.is_empty()).map(|(number, _)| (item, number)));
    }
    survivors
}

fn join<T: AsRef<str>>(items: &[T]) -> String {
    items.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ")
}

/// Hash of a source file of the repository.
fn file_hash(path: &str) -> Option<String> {
    fs::read(crate::root().join(path)).ok().map(|contents| results::hash(&contents))
}
