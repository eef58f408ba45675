// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `cargo xtask mutants`: runs each mutant against the tests that claim its item, and writes `docs/mutants.toml`.
//!
//! Mutants are rows of `fidelity/mutants/`. One build of a copy of the repository has all of them (profile `mutants`),
//! and `ARCTIC_MUTANT` selects one; mutants of constants are built and run one after the other. The tests first run
//! without a mutant: this collects the claims that they execute, and only tests that pass count.

mod binaries;
// The report of `arctic fidelity` reads the results; this package writes them.
#[path = "../../../cli/src/fidelity/hash.rs"]
mod hash;
mod items;
#[path = "../../../cli/src/fidelity/results.rs"]
mod results;
mod rows;
mod tokens;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use binaries::{Claim, Test};
use hash::hash;
use items::Items;
use results::{Outcome, Results};
use rows::Row;
use tree::{Mutant, Tree};

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
    /// Run nothing; print the rows that do not fit the code, with proposals
    #[arg(long, conflicts_with_all = ["items", "changed", "minutes", "check"])]
    fix: bool,
}

/// Runs the mutants.
pub fn run(arguments: &Arguments) -> Result<()> {
    let started = Instant::now();
    let limit = arguments.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let (rows, items) = (rows::read()?, Items::read()?);
    rows::check(&rows, &items, arguments.fix)?;
    if arguments.fix {
        println!("all {} rows fit", rows.len());
        return Ok(());
    }
    let tree = Tree::new(crate::root().join("target/mutants/tree"), &rows, &items)?;
    let mutants = &tree.mutants;
    let alone = mutants.values().flatten().filter(|mutant| mutant.switch == 0).count();
    eprintln!("{} mutants; {alone} of constants, each built alone", mutants.values().flatten().count());
    let stored = fs::read_to_string(crate::root().join(RESULTS)).unwrap_or_default();
    let old = Results::parse(&stored).map_err(|error| anyhow::anyhow!("{RESULTS} cannot be read: {error}"))?;
    if arguments.changed && is_current(&old, mutants, &rows) {
        eprintln!("no source of a result has changed");
        return Ok(());
    }
    tree.write()?;
    let (tests, claims) = binaries::claims(&tree.folder, &claiming()?)?;
    let before = |item: &str| outcome_without_runs(item, &claims, mutants, &rows);
    let all: BTreeSet<String> = items_of(&claims).into_iter().chain(mutants.keys().cloned()).collect();
    let wanted = wanted(arguments, &all, before, &old)?;
    eprintln!("{} tests claim {} items; {} items to run", tests.len(), items_of(&claims).len(), wanted.len());

    let runs = Runs { tests: &tests, tree: &tree, started, limit };
    let (outcomes, left) = runs.all(&wanted)?;
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
    write(old, outcomes, &claims, mutants, arguments)
}

/// Returns whether each item with mutants or a result has a result of these sources and rows.
fn is_current(old: &Results, mutants: &BTreeMap<String, Vec<Mutant>>, rows: &[Row]) -> bool {
    let fresh = |item: &String| {
        old.0.get(item).is_some_and(|old| !old.is_stale(file_hash) && old.rows == rows::hash_of(rows, item))
    };
    // A claim in another file does not change the hash of any result: files with claims are compared, too.
    let recorded: BTreeSet<&String> = old.0.values().flat_map(|outcome| &outcome.sources).collect();
    let claiming = claiming().unwrap_or_default();
    mutants.keys().chain(old.0.keys()).all(fresh) && claiming.iter().all(|path| recorded.contains(path))
}

/// The items to run out of `all`, with their outcomes without runs.
fn wanted(
    arguments: &Arguments,
    all: &BTreeSet<String>,
    before: impl Fn(&str) -> Outcome,
    old: &Results,
) -> Result<Vec<(String, Outcome)>> {
    for item in &arguments.items {
        ensure!(all.contains(item), "no test that passes claims {item}, and {} has no mutant of it", rows::FOLDER);
    }
    let named = all.iter().filter(|item| arguments.items.is_empty() || arguments.items.contains(item));
    let with_outcome = named.map(|item| (item.clone(), before(item)));
    Ok(with_outcome.filter(|(item, outcome)| !(arguments.changed && is_of(old.0.get(item), outcome))).collect())
}

/// Returns whether a result is of the sources, rows and tests of `outcome`. Its hash is that of the sources: equal, if
/// they are the same files with the same contents.
fn is_of(old: Option<&Outcome>, outcome: &Outcome) -> bool {
    old.is_some_and(|old| {
        let of = |outcome: &Outcome| {
            (outcome.hash.clone(), outcome.rows.clone(), outcome.sources.clone(), outcome.tests.clone())
        };
        of(old) == of(outcome)
    })
}

/// The outcome of an item before its mutants have run.
fn outcome_without_runs(
    item: &str,
    claims: &[Claim],
    mutants: &BTreeMap<String, Vec<Mutant>>,
    rows: &[Row],
) -> Outcome {
    let of_item = || claims.iter().filter(|claim| claim.item == item);
    let code = mutants.get(item).into_iter().flatten().flat_map(|mutant| mutant.paths.clone());
    let sources = code.chain(of_item().map(|claim| claim.path.clone())).collect();
    Outcome {
        hash: results::hash_of(&sources, file_hash),
        sources,
        rows: rows::hash_of(rows, item),
        tests: of_item().map(|claim| claim.test.clone()).collect(),
        tables: of_item().filter(|claim| claim.table).map(|claim| claim.test.clone()).collect(),
        mutants: BTreeMap::new(),
    }
}

/// What all runs of mutants share.
struct Runs<'a> {
    tests: &'a BTreeMap<String, Test>,
    tree: &'a Tree,
    started: Instant,
    limit: Option<Duration>,
}

impl Runs<'_> {
    /// Runs the mutants of the items, one item a processor. Returns the outcomes, and the items for which the time did
    /// not suffice.
    fn all(&self, wanted: &[(String, Outcome)]) -> Result<(BTreeMap<String, Outcome>, Vec<String>)> {
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
        self.apart(&mut outcomes)?;
        Ok((outcomes, left))
    }

    /// Builds and runs the mutants that have no switch.
    fn apart(&self, outcomes: &mut BTreeMap<String, Outcome>) -> Result<()> {
        let mut built = false;
        for (item, outcome) in outcomes {
            let mutants = self.tree.mutants.get(item).into_iter().flatten().filter(|mutant| mutant.switch == 0);
            for mutant in mutants {
                self.tree.put(item, mutant.number)?;
                built = true;
                let fell = match binaries::build(&self.tree.folder, &[]) {
                    Ok(_) => self.fell(outcome, mutant),
                    Err(error) => anyhow::bail!("{item}/{}: {error}", mutant.number),
                };
                outcome.mutants.insert(mutant.number.to_string(), fell);
                self.tree.write()?;
            }
        }
        if built {
            binaries::build(&self.tree.folder, &[])?;
        }
        Ok(())
    }

    /// Runs the mutants of one item. `before` is its outcome without them.
    fn outcome(&self, item: &str, before: &Outcome) -> Outcome {
        let mut outcome = before.clone();
        for mutant in self.tree.mutants.get(item).into_iter().flatten().filter(|mutant| mutant.switch != 0) {
            let fell = self.fell(&outcome, mutant);
            outcome.mutants.insert(mutant.number.to_string(), fell);
        }
        outcome
    }

    /// Returns the tests of an item that fail with a mutant.
    fn fell(&self, outcome: &Outcome, mutant: &Mutant) -> BTreeSet<String> {
        let mut tests: Vec<(&String, &Test)> =
            outcome.tests.iter().filter_map(|name| self.tests.get_key_value(name)).collect();
        tests.sort_by_key(|(_, test)| test.duration);
        let mut fell = BTreeSet::new();
        for (name, test) in tests {
            if (test.duration <= QUICK || fell.is_empty()) && !test.passes_with(mutant.switch) {
                fell.insert(name.clone());
            }
        }
        fell
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
    fs::read(crate::root().join(path)).ok().map(|contents| hash(&contents))
}

/// The files that claim items.
fn claiming() -> Result<Vec<String>> {
    let own = |path: &String| path.starts_with("fidelity/") || path.starts_with("xtask/") || path.starts_with("cli/");
    let claims = |path: &String| {
        let text = fs::read_to_string(crate::root().join(path)).unwrap_or_default();
        text.contains("proves!(") || text.contains("proves_table!(")
    };
    let paths = crate::git(&["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])?;
    Ok(paths.into_iter().filter(|path| !own(path) && claims(path)).collect())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn row(item: &str, replace: &str) -> Row {
        Row { item: item.into(), number: 1, path: "a::b".into(), find: "1".into(), replace: replace.into() }
    }

    #[test]
    fn a_changed_row_makes_the_result_of_its_item_old() {
        let before = |replace: &str| outcome_without_runs("V8-001", &[], &BTreeMap::new(), &[row("V8-001", replace)]);
        assert!(is_of(Some(&before("2")), &before("2")));
        assert!(!is_of(Some(&before("2")), &before("3")));
        assert!(!is_of(None, &before("2")));
        let other = outcome_without_runs("V8-001", &[], &BTreeMap::new(), &[row("V8-001", "2"), row("V8-002", "3")]);
        assert!(is_of(Some(&before("2")), &other));
    }

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

    /// Packages that depend on `arctic-fidelity` by dependencies of these kinds, with all features.
    fn dependents(kinds: &str) -> BTreeSet<String> {
        let arguments =
            ["tree", "--workspace", "--all-features", "--offline", "--prefix=none", "-i", "arctic-fidelity"];
        let output =
            Command::new("cargo").args(arguments).args(["-e", kinds]).current_dir(crate::root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let names =
            text.lines().skip(1).filter_map(|line| line.split(' ').next()).filter(|name| !name.starts_with('['));
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn items_are_a_dependency_of_tests_and_xtask_only() {
        assert_eq!(dependents("normal,build"), BTreeSet::from(["xtask".to_owned()]));
        assert!(dependents("normal,dev").contains("arctic-device-model"));
    }
}
