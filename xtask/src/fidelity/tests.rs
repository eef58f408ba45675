// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the report.

use std::collections::BTreeMap;

use super::*;
use crate::mutants::rows::Row;

const TEXT: &str = "# One\n### Group A - Rings\n**V1-001 Start** [DOC]\n- Facts: a.\n**V1-002 End** [DOC]\n\
    **V1-004 Wrap** [PTR]\n### Group B - Queues\n**V1-010 Slots** [DOC]\n**V1-011 Doors** [DOC]\n";
const TESTS: &str =
    "fn starts() { proves!(V1_001, \"\") }\nfn all() { proves!([V1_001, V1_002, V1_004, V1_010], \"\") }";
const MUTANTS: &str = "mutants = { 1 = [\"c::starts\"] }";

fn basis(tests: &str) -> Basis {
    let code = "/// V1-001\nconst START: u8 = 1;";
    let files = [("a/src/tests.rs", tests), ("b.rs", code)];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    Basis::new(Vec::new(), Default::default(), Index::of(&BTreeMap::from(files)).unwrap())
}

/// A result of V1-001, and one of V1-010. `hash`: that of the stored result of V1-001; `None`: the current one, so that the
/// result is not stale.
fn results(basis: &Basis, hash: Option<&str>, mutants: &str) -> Results {
    let hash = hash.map_or_else(|| basis.hash("V1-001"), str::to_owned);
    let text = format!(
        "[V1-001]\nhash = \"{hash}\"\ntests = [\"c::starts\"]\n{mutants}\n\
         [V1-010]\nhash = \"{}\"\ntests = [\"c::all\"]\ntables = [\"c::all\"]\n",
        basis.hash("V1-010")
    );
    Results::parse(&text).unwrap()
}

fn report(entries: &str, tests: &str, mutants: &str) -> (Findings, Vec<String>) {
    let basis = basis(tests);
    let documents = Document::parse_all([TEXT]).unwrap();
    make(&documents, &basis, &Deviations::parse(entries).unwrap(), &results(&basis, None, mutants), Vec::new())
}

#[test]
fn committed_report_matches_checkout() {
    check(&of_the_checkout().unwrap().report()).unwrap();
}

/// The documents in `docs/spec`, and those of `afuc` and `eu`.
#[test]
fn each_document_is_in_the_report() {
    let report = of_the_checkout().unwrap();
    let found: BTreeSet<&str> = report.documents.iter().map(|document| &*document.name).collect();
    let documents = documents().unwrap();
    let with_facts: BTreeSet<&str> = documents.iter().map(|document| &*document.name).collect();
    assert_eq!(found, with_facts.iter().copied().chain(["AF", "ISA"]).collect());
    assert_eq!(found.len(), report.documents.len());
    for name in found {
        assert!(report.items.iter().any(|item| item.document == name), "{name} has no items");
    }
    for item in &report.items {
        assert!(!item.title.is_empty() && !item.class.is_empty(), "{item:?}");
        assert!(!with_facts.contains(&*item.document) || !item.facts.is_empty(), "{item:?}");
    }
}

#[test]
fn status_follows_from_claims_results_and_deviations() {
    let entries = "promised = [\"V1-001..010\"]\n[[item]]\nid = \"V1-002\"\nstatus = \"approximate\"\nnote = \"Late.\"\n\
        [[item]]\nid = \"V1-004\"\nstatus = \"absent\"\nnote = \"No.\"\n\
        [[item]]\nid = \"V1-010\"\nstatus = \"departs\"\nnote = \"More.\"\ndriver = \"i915: intel_lrc.c, f\"\n";
    let (report, problems) = report(entries, TESTS, MUTANTS);
    assert_eq!(problems, Vec::<String>::new());
    let rows: Vec<_> = report.items.iter().map(|item| (&*item.id, item.status, item.tests.len())).collect();
    let expected = [
        ("V1-001", Status::Exact, 2),
        ("V1-002", Status::Approximate, 1),
        ("V1-004", Status::Absent, 1),
        ("V1-010", Status::Departs, 1),
        ("V1-011", Status::Unassessed, 0),
    ];
    assert_eq!(rows, expected);
    assert_eq!(report.items[0].doubts, ["a/src/tests.rs::all claims it, but did not run"]);
    assert_eq!((&report.items[1].note, report.items[0].places.len()), (&Some("Late.".to_owned()), 1));
    let drivers: Vec<_> = report.items.iter().filter_map(|item| item.driver.as_deref()).collect();
    assert_eq!(drivers, ["i915: intel_lrc.c, f"]);
}

#[test]
fn one_entry_lists_several_items() {
    let entries = "promised = [\"V1-001..011\"]\n[[item]]\nids = [\"V1-001..004\", \"V1-011\"]\n\
        status = \"absent\"\nnote = \"None.\"\n";
    let (report, problems) = report(entries, TESTS, MUTANTS);
    assert_eq!(problems, Vec::<String>::new());
    let rows: Vec<_> = report.items.iter().map(|item| (item.status, item.note.as_deref())).collect();
    let absent = (Status::Absent, Some("None."));
    assert_eq!(rows, [absent, absent, absent, (Status::Exact, None), absent]);
}

/// A mutant that survives or is coarse, a departure without a mutant, and a claim without a result prove nothing. Without
/// mutants, a test with its own copy of the table proves the item.
#[test]
fn item_is_exact_only_if_each_mutant_fails_a_test() {
    let entries = "promised = []\n[[item]]\nid = \"V1-004\"\nstatus = \"departs\"\nnote = \"a\"\ndriver = \"xe: a.c\"";
    for (mutants, status) in [
        (MUTANTS, Status::Exact),
        ("mutants = { 1 = [\"c::starts\"], 2 = [] }", Status::Unproven),
        ("", Status::Unproven),
        ("tables = [\"c::starts\"]", Status::Exact),
        ("mutants = { 1 = [\"c::starts\"] }\ncoarse = { 1 = \"40 of 100\" }", Status::Unproven),
    ] {
        let (report, _) = report(entries, TESTS, mutants);
        let found: Vec<_> = report.items.iter().map(|item| item.status).collect();
        let others = [Status::Unproven, Status::Unproven, Status::Exact, Status::Unassessed];
        assert_eq!(found, [[status].as_slice(), &others].concat(), "{mutants}");
    }
}

/// An item that a package calls exact is exact only if its mutants fail the tests that claim it; other states stay.
#[test]
fn mutants_prove_what_a_package_calls_exact() {
    let with_rows = |rows: Vec<Row>, status, mutants: &str, hash| {
        let mut basis = basis(TESTS);
        basis.rows = rows;
        let (report, _) = report("promised = []", TESTS, MUTANTS);
        let note = Some("Called exact.".to_owned());
        let mut item = Found { mutants: BTreeMap::new(), ..report.items[0].clone() };
        (item.item.status, item.item.note, item.item.tests) = (status, note, vec!["a/src/tests.rs::starts".to_owned()]);
        add_evidence(&mut item, &basis, &results(&basis, hash, mutants));
        assert_eq!(item.tests, ["a/src/tests.rs::starts", "a/src/tests.rs::all"]);
        (item.item.status, item.item.note)
    };
    let assessed = |status, mutants: &str, hash| with_rows(Vec::new(), status, mutants, hash);
    let called = |more: &str| Some(format!("Called exact.{more}"));
    assert_eq!(assessed(Status::Unproven, MUTANTS, None), (Status::Exact, None));
    assert_eq!(assessed(Status::Unproven, MUTANTS, Some("0")), (Status::Stale, None));
    assert_eq!(assessed(Status::Unproven, "mutants = { 1 = [] }", None), (Status::Unproven, called("")));
    assert_eq!(assessed(Status::Unproven, "", None), (Status::Unproven, called(" It has no mutants.")));
    let row =
        |item: &str| Row { item: item.into(), number: 1, path: "START".into(), find: "1".into(), replace: "2".into() };
    let status = |rows| with_rows(rows, Status::Unproven, "", None);
    assert_eq!(status(vec![row("V1-001")]), (Status::Unproven, called(" Its mutants have not been run.")));
    assert_eq!(status(vec![row("V1-002")]), (Status::Unproven, called(" It has no mutants.")));
    assert_eq!(assessed(Status::Approximate, MUTANTS, None), (Status::Approximate, called("")));
}

/// Such a result is that of other code or tests, and proves nothing.
#[test]
fn result_with_other_hash_is_stale() {
    let (basis, documents) = (basis(TESTS), Document::parse_all([TEXT]).unwrap());
    let status = |hash, mutants: &str, entry: &str| {
        let deviations = Deviations::parse(&format!("promised = []\n{entry}")).unwrap();
        let (report, _) = make(&documents, &basis, &deviations, &results(&basis, hash, mutants), Vec::new());
        (report.items[0].status, report.items[0].stale)
    };
    let departs = "[[item]]\nid = \"V1-001\"\nstatus = \"departs\"\nnote = \"a\"\ndriver = \"xe: a.c\"";
    let absent = "[[item]]\nid = \"V1-001\"\nstatus = \"absent\"\nnote = \"a\"";
    assert_eq!(status(None, MUTANTS, ""), (Status::Exact, false));
    assert_eq!(status(Some("0"), MUTANTS, ""), (Status::Stale, true));
    assert_eq!(status(Some("0"), "", ""), (Status::Unproven, true));
    assert_eq!(status(None, MUTANTS, departs), (Status::Departs, false));
    assert_eq!(status(Some("0"), MUTANTS, departs), (Status::Stale, true));
    assert_eq!(status(Some("0"), MUTANTS, absent), (Status::Absent, true));
}

#[test]
fn wrong_deviations_and_claims_are_reported() {
    let item = |id: &str, status: &str, note: &str| {
        format!("[[item]]\nid = \"{id}\"\nstatus = \"{status}\"\nnote = \"{note}\"\n")
    };
    let departs = |id: &str, driver: &str| item(id, "departs", "a") + driver;
    let several = |ids: &[&str]| format!("[[item]]\nids = {ids:?}\nstatus = \"absent\"\nnote = \"a\"\n");
    const NONE: &str = "";
    const NAMED: &str = "fn b() { proves!(V1_010, \"\") }";
    for (items, tests, problem) in [
        (String::new(), NONE, "V1-010 is promised, but neither claimed by a test nor listed"),
        (item("V1-010", "approximate", "a"), NONE, "V1-010 is listed as approximate, but no test claims it"),
        (item("V1-010", "absent", " "), NONE, "V1-010 has no note in docs/fidelity.toml"),
        (item("V1-010", "exact", "a"), NONE, "V1-010 is listed as exact: only tests give this status"),
        (item("V1-010", "stale", "a"), NONE, "V1-010 is listed as stale: only tests give this status"),
        (item("V1-010", "absent", "a").repeat(2), NONE, "V1-010 is listed twice"),
        (item("V1-010", "absent", "a") + &item("V1-002", "absent", "a"), NONE, "V1-002 must precede V1-010"),
        (
            item("V1-010", "absent", "a") + &item("V1-012", "absent", "a"),
            NONE,
            "docs/fidelity.toml lists V1-012, which is in no document",
        ),
        (
            item("V1-010", "absent", "a"),
            "fn b() { proves!(V1_003, \"\") }",
            "a/src/tests.rs::b names V1-003; the document has no V1-003",
        ),
        (departs("V1-010", "driver = \"xe: a.c\""), NONE, "V1-010 is listed as departs, but no test claims it"),
        (departs("V1-011", "driver = \"xe: a.c\""), NAMED, "V1-011 is listed as departs, but no test claims it"),
        (
            departs("V1-010", ""),
            NAMED,
            "V1-010 is listed as departs, but names no file of xe or i915, as in driver = \"xe: xe_lrc.c, FUNCTION\"",
        ),
        (
            item("V1-010", "absent", "a") + "driver = \"xe: a.c\"",
            NONE,
            "V1-010 is listed as absent, but names a driver's file: only an item that departs has one",
        ),
        (several(&["V1-001..003", "V1-010"]), NONE, "docs/fidelity.toml lists V1-003, which is in no document"),
        (several(&["V1-001..004", "V1-010", "V1-004"]), NONE, "V1-004 must precede V1-010\nV1-004 is listed twice"),
        (several(&["V1-001..010"]) + &item("V1-004", "absent", "b"), NONE, "V1-004 is listed twice"),
        (several(&["V1-010", "V1-002"]), NONE, "V1-002 must precede V1-010"),
        (
            several(&["V1-010", "V1-1"]),
            NONE,
            "docs/fidelity.toml lists V1-1, which is neither an item nor a range of items",
        ),
        (several(&[]), NAMED, "docs/fidelity.toml has an [[item]] without id and ids"),
    ] {
        let basis = basis(tests);
        let documents = Document::parse_all([TEXT]).unwrap();
        let deviations = Deviations::parse(&format!("promised = [\"V1-010\"]\n{items}")).unwrap();
        let (_, problems) = make(&documents, &basis, &deviations, &Results::default(), Vec::new());
        assert_eq!(problems.join("\n"), problem);
    }
}

#[test]
fn malformed_deviations_file_is_an_error() {
    let error = |text: &str| Deviations::parse(text).err().unwrap();
    assert_eq!(error("nonsense"), "docs/fidelity.toml cannot be read: key with no value, expected `=`");
    let entry = "promised = []\n[[item]]\nid = \"V1-010\"\nstatus = \"absent\"\nnote = \"a\"\nreason = \"b\"";
    assert_eq!(
        error(entry),
        "docs/fidelity.toml cannot be read: unknown field `reason`, expected one of `id`, `ids`, `status`, `note`, \
         `driver`"
    );
}
