// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `cargo xtask fidelity`: makes the report on the items of the documents, `docs/fidelity.tsv` and `FIDELITY.md`.
//!
//! The report combines the documents (`docs/spec`), the claims of tests and the references in code, the results of
//! `cargo xtask mutants` (`docs/mutants.toml`) and the list of deviations (`docs/fidelity.toml`).

mod assessed;
pub mod claims;
mod deviations;
pub mod evidence;
pub mod index;
mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail, ensure};
use arctic_fidelity::document::{Document, Rule};
use arctic_fidelity::report::{self, Item, Report, Status};

use crate::mutants::basis::Basis;
use crate::mutants::results::{Outcome, Results};
use crate::root;
use claims::Claim;
use deviations::Deviations;
use evidence::{Findings, Found, Location};
use index::{Index, Test};

/// The documents, from the repository's root.
const DOCUMENTS: &str = "docs/spec";

/// The report as a table, and as a page.
const DATA: &str = "docs/fidelity.tsv";
const PAGE: &str = "FIDELITY.md";

/// Command line.
#[derive(clap::Args)]
pub struct FidelityArgs {
    /// Write nothing; fail if the files are out of date
    #[arg(long)]
    check: bool,
    /// Also write all items with their mutants, doubts and the code that implements them to FILE as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Makes the report.
pub fn run(arguments: &FidelityArgs) -> Result<()> {
    let found = of_the_checkout()?;
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&found)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let report = found.report();
    if arguments.check {
        return check(&report);
    }
    for (path, text) in [(DATA, report.table()), (PAGE, report.summary())] {
        if fs::read_to_string(root().join(path)).ok().as_ref() != Some(&text) {
            fs::write(root().join(path), text).with_context(|| format!("cannot write {path}"))?;
            println!("{path} is written");
        }
    }
    let stale: Vec<&str> = report.items.iter().filter(|item| item.stale).map(|item| item.id.as_str()).collect();
    if !stale.is_empty() {
        println!("{} stale items, which `cargo xtask mutants --changed` runs: {}", stale.len(), stale.join(" "));
    }
    Ok(())
}

/// Fails if the files are not those of `report`.
fn check(report: &Report) -> Result<()> {
    let read = |path: &str| fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"));
    let (stored, wanted) = (read(DATA)?, report.table());
    let differs = wanted.lines().find(|line| stored.lines().all(|stored| stored != *line)).unwrap_or("order of lines");
    let (first, _) = differs.split_once('\t').unwrap_or((differs, ""));
    ensure!(stored == wanted, "{DATA} is out of date ({first}): {}", report::REGENERATE);
    ensure!(read(PAGE)? == report.summary(), "{PAGE} is out of date: {}", report::REGENERATE);
    Ok(())
}

/// The report of the checkout.
///
/// # Errors
/// If a source or document cannot be read, or a claim or deviation is wrong.
pub fn of_the_checkout() -> Result<Findings> {
    let read = |path: &str| fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"));
    let deviations = Deviations::parse(&read("docs/fidelity.toml")?).map_err(|error| anyhow!(error))?;
    let results = Results::read()?;
    let basis = Basis::read()?;
    let (report, problems) = make(&documents()?, &basis, &deviations, &results, assessed::items()?);
    if !problems.is_empty() {
        bail!("{} problems:\n{}", problems.len(), problems.join("\n"));
    }
    Ok(report)
}

/// The documents of the checkout.
pub fn documents() -> Result<Vec<Document>> {
    let mut texts = Vec::new();
    for path in crate::git(&["ls-files", "--cached", "--others", "--exclude-standard", DOCUMENTS])? {
        if path.ends_with(".md") && root().join(&path).is_file() {
            texts.push(fs::read_to_string(root().join(&path)).with_context(|| format!("cannot read {path}"))?);
        }
    }
    Document::parse_all(texts.iter().map(String::as_str)).map_err(|error| anyhow!("{DOCUMENTS}: {error}"))
}

/// Makes the report, and lists what is wrong with claims and deviations. `others` are items that are assessed elsewhere.
fn make(
    documents: &[Document],
    basis: &Basis,
    deviations: &Deviations,
    results: &Results,
    others: Vec<(report::Document, Vec<Found>)>,
) -> (Findings, Vec<String>) {
    let mut report = Findings::default();
    let mut documents: Vec<&Document> = documents.iter().collect();
    documents.sort_by_key(|document| deviations.rank(&document.name));
    for document in documents {
        report.documents.push(report::Document { name: document.name.clone(), title: document.title.clone() });
        let items = document.rules.iter().map(|rule| item(&document.name, rule, basis, deviations, results));
        report.items.extend(items);
    }
    for (document, mut items) in others {
        report.documents.push(document);
        for item in &mut items {
            item.places = places(&basis.index, &item.id);
            add_evidence(item, basis, results);
        }
        report.items.extend(items);
    }
    let mut problems = Vec::new();
    deviations.check(&report.items, &mut problems);
    check_claims(&report, &basis.index, &mut problems);
    (report, problems)
}

fn places(index: &Index, id: &str) -> Vec<Location> {
    let item = Claim::of(id);
    let names = |claims: &[Claim]| {
        item.as_ref().is_some_and(|item| claims.iter().any(|claim| claim.names(&item.document, item.first)))
    };
    index.places.iter().filter(|(_, claims)| names(claims)).map(|(place, _)| place.clone()).collect()
}

/// What tests and mutants show about an item.
struct Evidence {
    /// The tests that claim it.
    tests: Vec<String>,
    outcome: Outcome,
    /// The outcome is that of other code or tests.
    stale: bool,
    /// Claims that no test executed.
    doubts: Vec<String>,
}

impl Evidence {
    fn of(document: &str, number: u16, basis: &Basis, results: &Results) -> Self {
        let id = format!("{document}-{number:03}");
        let names = |claims: &[Claim]| claims.iter().any(|claim| claim.names(document, number));
        let tests: Vec<&Test> = basis.index.tests.iter().filter(|test| names(&test.claims)).collect();
        let outcome = results.0.get(&id).cloned().unwrap_or_default();
        let stale = results.0.contains_key(&id) && outcome.hash != basis.hash(&id);
        let ran = |test: &Test| {
            let name = format!("::{}", test.name);
            test.is_of_list() || outcome.tests.iter().any(|test| test.ends_with(&name))
        };
        let doubts = tests.iter().filter(|test| !ran(test)).map(|test| format!("{test} claims it, but did not run"));
        Self { doubts: doubts.collect(), tests: tests.iter().map(ToString::to_string).collect(), outcome, stale }
    }
}

/// Adds tests and mutants to an item that a package assesses: what the package calls exact is exact if they prove it.
fn add_evidence(found: &mut Found, basis: &Basis, results: &Results) {
    let item = &mut found.item;
    let Some(number) = item.number() else { return };
    let Evidence { tests, outcome, stale, doubts } = Evidence::of(&item.document, number, basis, results);
    for test in tests {
        if !item.tests.contains(&test) {
            item.tests.push(test);
        }
    }
    if item.status == Status::Unproven {
        if outcome.proved() {
            item.status = if stale { Status::Stale } else { Status::Exact };
            item.note = None;
        } else if outcome.mutants.is_empty() {
            let has_rows = basis.rows.iter().any(|row| row.item == item.id);
            let reason = if has_rows { " Its mutants have not been run." } else { " It has no mutants." };
            item.note.iter_mut().for_each(|note| note.push_str(reason));
        }
    }
    item.stale = stale;
    found.doubts.extend(doubts);
    (found.mutants, found.coarse, found.tables) = (outcome.mutants, outcome.coarse, outcome.tables);
}

fn item(document: &str, rule: &Rule, basis: &Basis, deviations: &Deviations, results: &Results) -> Found {
    let id = format!("{document}-{:03}", rule.number);
    let Evidence { tests, outcome, stale, doubts } = Evidence::of(document, rule.number, basis, results);
    let listed = deviations.of(document, rule.number);
    let status = match listed.map(|entry| entry.status) {
        Some(status) if status != Status::Departs => status,
        Some(status) if outcome.proved() && !stale => status,
        None if outcome.proved() && !stale => Status::Exact,
        _ if outcome.proved() => Status::Stale,
        None if tests.is_empty() => Status::Unassessed,
        _ => Status::Unproven,
    };
    let places = places(&basis.index, &id);
    let item = Item {
        id,
        document: document.into(),
        group: rule.group.clone(),
        mechanism: rule.mechanism.clone(),
        title: rule.title.clone(),
        class: rule.class.clone(),
        facts: rule.facts.clone(),
        status,
        tests,
        stale,
        note: listed.map(|entry| entry.note.trim().to_owned()),
        driver: listed.and_then(|entry| entry.driver.clone()),
    };
    Found { item, mutants: outcome.mutants, coarse: outcome.coarse, tables: outcome.tables, doubts, places }
}

/// Checks for items that are named in the sources but do not exist in the documents.
fn check_claims(report: &Findings, index: &Index, problems: &mut Vec<String>) {
    let known: BTreeSet<&str> = report.documents.iter().map(|document| document.name.as_str()).collect();
    let ids: BTreeSet<&str> = report.items.iter().map(|item| item.id.as_str()).collect();
    let of_tests = index.tests.iter().map(|test| (test.to_string(), &test.claims));
    let of_places = index.places.iter().map(|(place, claims)| (format!("{}:{}", place.path, place.line), claims));
    for (source, claims) in of_tests.chain(of_places) {
        for claim in claims.iter().filter(|claim| known.contains(claim.document.as_str())) {
            // A range may have gaps, but its first and last item must exist.
            for end in [claim.first, claim.last] {
                if !ids.contains(format!("{}-{end:03}", claim.document).as_str()) {
                    problems.push(format!("{source} names {claim}; the document has no {}-{end:03}", claim.document));
                }
            }
        }
    }
    problems.dedup();
}

#[cfg(test)]
mod tests;
