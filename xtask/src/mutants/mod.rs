// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `cargo xtask mutants`: runs each mutant against the tests that claim its item, and writes `docs/mutants.toml`.
//!
//! Mutants are rows of `fidelity/mutants/`. One build of a copy of the repository has all of them (profile `mutants`),
//! and `ARCTIC_MUTANT` selects one; mutants of constants are built and run one after the other. The tests first run
//! without a mutant: this collects the claims that they execute, and only tests that pass count.

pub mod basis;
mod binaries;
pub mod hash;
mod items;
pub mod results;
pub mod rows;
pub mod tokens;
mod tree;
mod units;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use basis::Basis;
use binaries::{Claim, Test};
use results::{Outcome, RESULTS, Results};
use tree::{Mutant, Tree};
use units::Units;

/// A test counts as quick if it takes at most this long without a mutant. All quick tests of an item run with its
/// mutants. A slower test runs only if no test without random inputs failed before, a slower one with random inputs only if
/// no test failed.
const QUICK: Duration = Duration::from_secs(2);

/// After this time no further test runs with a mutant that one has detected.
const ENOUGH: Duration = Duration::from_secs(60);

/// Command line.
#[derive(clap::Args)]
pub struct MutantsArgs {
    /// Items such as V8-089; all if none is named
    #[arg(conflicts_with = "changed")]
    items: Vec<String>,
    /// Only items without a result or with a stale one
    #[arg(long)]
    changed: bool,
    /// Start no further mutant after this number of minutes, build included, and print the items that are not reached
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Do not write docs/mutants.toml; fail if an item that it records as proved is not
    #[arg(long)]
    check: bool,
    /// Run nothing; print the rows that do not fit the code, with proposals
    #[arg(long, conflicts_with_all = ["items", "changed", "minutes", "check"])]
    fix: bool,
}

/// Runs the mutants.
pub fn run(arguments: &MutantsArgs) -> Result<()> {
    let started = Instant::now();
    let limit = arguments.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let basis = Basis::read()?;
    rows::check(&basis.rows, &basis.code, arguments.fix)?;
    if arguments.fix {
        println!("all {} rows fit", basis.rows.len());
        return Ok(());
    }
    let tree = Tree::new(crate::root().join("target/mutants/tree"), &basis.rows, &basis.code)?;
    let mutants = &tree.mutants;
    let alone = mutants.values().flatten().filter(|mutant| mutant.switch == 0).count();
    eprintln!("{} mutants; {alone} of constants, each built alone", mutants.values().flatten().count());
    let old = Results::read()?;
    let wanted = wanted(arguments, &basis, &old)?;
    if arguments.changed && wanted.is_empty() {
        eprintln!("no result is stale");
        return Ok(());
    }
    tree.write()?;
    let packages = packages(&wanted, &basis, mutants);
    let found = binaries::claims(&tree.folder, &packages, &basis.index.claiming(), &basis.claiming(&wanted))?;
    let (tests, claims) = (found.tests, found.claims);
    let wanted: Vec<(String, Outcome)> =
        wanted.into_iter().map(|item| (item.clone(), outcome_without_runs(&item, &claims, &basis))).collect();
    eprintln!("{} tests claim {} items; {} items to run", tests.len(), items_of(&claims).len(), wanted.len());

    let written = (!arguments.check).then(|| Mutex::new(old.clone()));
    let runs = Runs { tests: &tests, units: &found.units, tree: &tree, packages, started, limit, written };
    let (outcomes, left) = runs.all(&wanted)?;
    let survivors = survivors(&outcomes);
    for (item, number) in &survivors {
        println!("{item}/{number} survived: no test that claims {item} fails");
    }
    for (item, outcome) in &outcomes {
        for (number, share) in &outcome.coarse {
            println!("{item}/{number} is coarse and proves nothing: {share} unit tests fail");
        }
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
    write(old, outcomes, &basis)
}

/// The items to run.
fn wanted(arguments: &MutantsArgs, basis: &Basis, old: &Results) -> Result<BTreeSet<String>> {
    let all = basis.items();
    for item in &arguments.items {
        ensure!(all.contains(item), "no test claims {item}, and {} has no mutant of it", rows::FOLDER);
    }
    let named = all.into_iter().filter(|item| arguments.items.is_empty() || arguments.items.contains(item));
    let is_current = |item: &String| old.0.get(item).is_some_and(|old| old.hash == basis.hash(item));
    Ok(named.filter(|item| !(arguments.changed && is_current(item))).collect())
}

/// The packages with tests that claim the items, or with sources that their mutants change.
fn packages(
    wanted: &BTreeSet<String>,
    basis: &Basis,
    mutants: &BTreeMap<String, Vec<Mutant>>,
) -> BTreeSet<&'static str> {
    let changed = wanted.iter().filter_map(|item| mutants.get(item)).flatten().flat_map(|mutant| &mutant.paths);
    let changed = changed.map(|path| binaries::package_of(path));
    let claiming = wanted.iter().flat_map(|item| basis.tests(item)).flat_map(|test| binaries::packages_of(&test.path));
    changed.chain(claiming).collect()
}

/// The outcome of an item before its mutants have run.
fn outcome_without_runs(item: &str, claims: &[Claim], basis: &Basis) -> Outcome {
    let of_item = || claims.iter().filter(|claim| claim.item == item);
    let tests = |wanted: &dyn Fn(&Claim) -> bool| {
        of_item().filter(|claim| wanted(claim)).map(|claim| claim.test.clone()).collect::<BTreeSet<String>>()
    };
    Outcome {
        hash: basis.hash(item),
        tests: tests(&|_| true),
        random: tests(&|claim| basis.is_random(claim)),
        tables: tests(&|claim| claim.table),
        ..Outcome::default()
    }
}

/// What all runs of mutants share.
struct Runs<'a> {
    tests: &'a BTreeMap<String, Test>,
    units: &'a Units,
    tree: &'a Tree,
    /// The packages to build.
    packages: BTreeSet<&'static str>,
    started: Instant,
    limit: Option<Duration>,
    /// What docs/mutants.toml has, if it is written. Each outcome is written at once, so that a run that is interrupted is
    /// not lost.
    written: Option<Mutex<Results>>,
}

impl Runs<'_> {
    /// Runs the mutants of the items, one item a processor. Returns the outcomes, and the items for which the time did
    /// not suffice.
    fn all(&self, wanted: &[(String, Outcome)]) -> Result<(BTreeMap<String, Outcome>, Vec<String>)> {
        let results = crate::in_parallel(wanted.len(), |n| {
            if n != 0 && n.is_multiple_of(25) && !self.is_over() {
                eprintln!("{n} of {} items, {} s", wanted.len(), self.started.elapsed().as_secs());
            }
            let (item, before) = &wanted[n];
            let outcome = self.outcome(item, before)?;
            if self.tree.mutants.get(item).into_iter().flatten().all(|mutant| mutant.switch != 0) {
                self.store(item, &outcome);
            }
            Some(outcome)
        });
        let (mut outcomes, mut left) = (BTreeMap::new(), Vec::new());
        for ((item, _), outcome) in wanted.iter().zip(results) {
            match outcome {
                Some(outcome) => drop(outcomes.insert(item.clone(), outcome)),
                None => left.push(item.clone()),
            }
        }
        left.extend(self.apart(&mut outcomes)?);
        Ok((outcomes, left))
    }

    /// Builds and runs the mutants that have no switch, each by itself, unless the time is over. Returns the items for which it
    /// did not suffice, without their outcomes.
    fn apart(&self, outcomes: &mut BTreeMap<String, Outcome>) -> Result<Vec<String>> {
        let mut left = Vec::new();
        'items: for (item, outcome) in outcomes.iter_mut() {
            let mutants = self.tree.mutants.get(item).into_iter().flatten().filter(|mutant| mutant.switch == 0);
            let mutants: Vec<&Mutant> = mutants.collect();
            if mutants.is_empty() {
                continue;
            }
            for mutant in mutants {
                if self.is_over() {
                    left.push(item.clone());
                    continue 'items;
                }
                self.tree.put(item, mutant.number)?;
                if let Err(error) = binaries::build(&self.tree.folder, &self.packages, &BTreeSet::new()) {
                    anyhow::bail!("{item}/{}: {error}", mutant.number);
                }
                self.run(outcome, mutant);
                self.tree.write()?;
            }
            self.store(item, outcome);
        }
        outcomes.retain(|item, _| !left.contains(item));
        Ok(left)
    }

    /// Runs the mutants of one item, unless the time is over. `before` is its outcome without them.
    fn outcome(&self, item: &str, before: &Outcome) -> Option<Outcome> {
        let mut outcome = before.clone();
        for mutant in self.tree.mutants.get(item).into_iter().flatten().filter(|mutant| mutant.switch != 0) {
            if self.is_over() {
                return None;
            }
            self.run(&mut outcome, mutant);
        }
        (!self.is_over()).then_some(outcome)
    }

    fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.started.elapsed() >= limit)
    }

    /// Writes an outcome; the end of the run writes all of them and reports errors.
    fn store(&self, item: &str, outcome: &Outcome) {
        if let Some(written) = &self.written {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            written.0.insert(item.to_owned(), outcome.clone());
            let _ = fs::write(crate::root().join(RESULTS), written.to_string());
        }
    }

    /// Runs one mutant, and adds what it does to the outcome of its item.
    fn run(&self, outcome: &mut Outcome, mutant: &Mutant) {
        let number = mutant.number.to_string();
        outcome.coarse.extend(self.units.coarse(mutant).map(|share| (number.clone(), share)));
        let fell = self.fell(outcome, mutant);
        outcome.mutants.insert(number, fell);
    }

    /// Returns the tests of an item that fail with a mutant.
    fn fell(&self, outcome: &Outcome, mutant: &Mutant) -> BTreeSet<String> {
        let mut tests: Vec<(&String, &Test)> =
            outcome.tests.iter().filter_map(|name| self.tests.get_key_value(name)).collect();
        tests.sort_by_key(|(_, test)| test.duration);
        let (mut fell, started) = (BTreeSet::new(), Instant::now());
        for (name, test) in tests {
            // Tests that do not end with the mutant take long.
            let quick = test.duration <= QUICK && started.elapsed() < ENOUGH;
            if (quick || adds_proof(name, &fell, &outcome.random)) && !test.passes_with(mutant.switch) {
                fell.insert(name.clone());
            }
        }
        fell
    }
}

/// Returns whether a failure of the test would prove more than those of the tests in `fell`.
fn adds_proof(test: &String, fell: &BTreeSet<String>, random: &BTreeSet<String>) -> bool {
    if random.contains(test) { fell.is_empty() } else { fell.is_subset(random) }
}

/// Stores the outcomes. Results of items that no longer have a claim or a mutant are removed.
fn write(mut old: Results, outcomes: BTreeMap<String, Outcome>, basis: &Basis) -> Result<()> {
    let all = basis.items();
    old.0.retain(|item, _| all.contains(item));
    old.0.extend(outcomes);
    fs::write(crate::root().join(RESULTS), old.to_string()).with_context(|| format!("cannot write {RESULTS}"))?;
    println!("{RESULTS} is written; `cargo xtask fidelity` uses it");
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

#[cfg(test)]
mod tests {
    use super::items::Items;
    use super::*;
    use crate::workspace::dependents;

    /// Production code does not mention mutants: no function, table, match arm or static exists for one.
    #[test]
    fn production_code_has_no_mutants() {
        let sources = Items::read().unwrap().sources;
        assert!(sources.len() > 100, "{}", sources.len());
        for source in sources {
            let text = source.text.to_lowercase();
            assert!(!text.contains("mutant"), "{} mentions mutants", source.path);
        }
    }

    #[test]
    fn slow_test_runs_if_its_failure_proves_more() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let random = set(&["r", "s"]);
        let adds = |test: &str, fell: &[&str]| adds_proof(&test.to_owned(), &set(fell), &random);
        assert!(adds("a", &[]) && adds("a", &["r"]) && !adds("a", &["b"]) && !adds("a", &["b", "r"]));
        assert!(adds("s", &[]) && !adds("s", &["r"]) && !adds("s", &["b"]));
    }

    #[test]
    fn items_are_a_dependency_of_tests_and_of_the_programs_with_the_report() {
        let programs = ["arctic-cli", "xtask"].map(str::to_owned);
        assert_eq!(dependents("arctic-fidelity", false), BTreeSet::from(programs));
        assert!(dependents("arctic-fidelity", true).contains("arctic-device-model"));
    }
}
