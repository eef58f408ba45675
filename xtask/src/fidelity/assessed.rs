// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The items of documents that a package assesses in a table of its own: those of `afuc` and `eu`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use arctic_fidelity::report::{DEFAULT_CLASS, Document, Item, Status};

use super::evidence::Found;
use super::source::Source;
use crate::root;

/// A package's assessment.
struct Assessment {
    /// Name of the document, which precedes the numbers of its items.
    name: &'static str,
    title: &'static str,
    /// The table, from the repository's root.
    table: &'static str,
    /// Where its tests are.
    sources: [&'static str; 2],
    /// The criterion for `exact` in the package's table, for the note.
    criterion: Option<&'static str>,
    /// Names of the tests that compare the package with an implementation that shares no code with it. What they cover needs no
    /// mutants.
    comparing: &'static [&'static str],
}

/// A function with `#[test]`.
#[derive(Debug)]
struct Test {
    /// The file, from the repository's root.
    path: String,
    /// It is compiled only with the feature `long-tests`.
    is_long: bool,
}

/// The tests of a package by name.
type Tests = BTreeMap<String, Vec<Test>>;

const ASSESSMENTS: [Assessment; 2] = [
    Assessment {
        name: "AF",
        title: "Adreno microcode, as afuc/docs/items.md assesses it",
        table: "afuc/docs/items.md",
        sources: ["afuc/src", "afuc/tests"],
        criterion: Some("by the document and Mesa's tools"),
        comparing: &[],
    },
    Assessment {
        name: "ISA",
        title: "Instructions of the execution units, as eu/docs/items.md assesses them",
        table: "eu/docs/items.md",
        sources: ["eu/src", "eu/tests"],
        criterion: None,
        comparing: &[
            "bit_fields",
            "comparisons",
            "compiled_kernels_have_the_recorded_results",
            "conversions",
            "division_of_integers_is_exact",
            "each_channel_has_the_result_of_the_channel_alone",
            "each_lane_has_the_result_of_the_lane_alone",
            "float_atomics_and_printf_are_those_of_plain_loops",
            "functions_of_half_precision_are_within_one_unit",
            "functions_of_single_precision_are_within_the_bounds_of_opencl",
            "functions_with_stacks_recurse_and_have_their_implicit_values",
            "golden_results_are_those_of_pocl",
            "images_and_printf_are_those_of_plain_loops",
            "images_of_all_kinds_are_those_of_plain_loops",
            "kernels_have_the_results_of_pocl",
            "kernels_have_the_text_of_iga64",
            "lines_have_the_text_and_the_bytes_of_iga64",
            "logic_and_shifts",
            "products",
            "products_of_floats_are_fused_in_the_order_of_the_depth",
            "products_of_integers_are_those_of_a_triple_loop",
            "random_words_have_the_text_of_iga64",
            "samplers_filter_and_address_as_in_double_precision",
            "subgroups_dot_products_and_matrices_are_those_of_plain_loops",
            "subgroups_of_other_extensions_are_those_of_plain_loops",
            "sums",
        ],
    },
];

/// The documents and their items; none of a package that is not there.
pub fn items() -> Result<Vec<(Document, Vec<Found>)>> {
    let present = ASSESSMENTS.iter().filter(|assessment| root().join(assessment.table).is_file());
    present.map(Assessment::read).collect()
}

impl Assessment {
    fn read(&self) -> Result<(Document, Vec<Found>)> {
        let table =
            fs::read_to_string(root().join(self.table)).with_context(|| format!("cannot read {}", self.table))?;
        let [code, tests] = self.sources;
        let mut files = BTreeMap::new();
        for path in crate::git(&["ls-files", "--cached", "--others", "--exclude-standard", code, tests])? {
            if path.ends_with(".rs") && root().join(&path).is_file() {
                let text = fs::read_to_string(root().join(&path)).with_context(|| format!("cannot read {path}"))?;
                files.insert(path, text);
            }
        }
        let document = Document { name: self.name.into(), title: self.title.into() };
        Ok((document, self.parse(&table, &tests_of(&files)?)?))
    }

    /// Parses the rows `| AF-001 | subject | state | tests | reason |`, below headings `## A. Mechanism` if there are any.
    fn parse(&self, table: &str, tests: &Tests) -> Result<Vec<Found>> {
        for name in self.comparing {
            ensure!(tests.contains_key(*name), "{name}, which compares {}, does not exist", self.name);
        }
        let (mut group, mut mechanism) = ("-", "All items");
        let start = format!("| {}-", self.name);
        let mut items = Vec::new();
        for line in table.lines() {
            if let Some((letter, about)) = line.strip_prefix("## ").and_then(|heading| heading.split_once(". ")) {
                (group, mechanism) = (letter, about);
            } else if line.starts_with(&start) {
                let mut found = self.item(line, tests).with_context(|| format!("{}: {line}", self.table))?;
                (found.item.group, found.item.mechanism) = (group.into(), mechanism.into());
                items.push(found);
            }
        }
        Ok(items)
    }

    fn item(&self, line: &str, tests: &Tests) -> Result<Found> {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, subject, state, cited, reason] = cells[..] else { bail!("the row has not five cells") };
        let names = cited.split(", ").map(|name| name.trim_matches('`')).filter(|name| !name.is_empty());
        let test_of = |name| match tests.get(name).map(Vec::as_slice) {
            Some([test]) => Ok((name, test)),
            Some([first, second, ..]) => {
                bail!("{id} names the test {name}, which is in {} and in {}", first.path, second.path)
            }
            Some([]) | None => bail!("{id} names the test {name}, which does not exist"),
        };
        let cited = names.map(test_of).collect::<Result<Vec<_>>>()?;
        let criterion = self.criterion.map(|criterion| format!(", {criterion}")).unwrap_or_default();
        let not_proven = format!("Exact as {} assesses it{criterion}.", self.table);
        let (status, note) = match state {
            "compared" => (Status::Exact, None),
            // Only its mutants make an item exact by the rules of this report.
            "exact" => (Status::Unproven, Some(not_proven)),
            "approximate" => (Status::Approximate, Some(reason.to_owned())),
            "absent" | "out of scope" => (Status::Absent, Some(reason.to_owned())),
            other => bail!("{id} has the unknown state {other}"),
        };
        ensure!(note.as_deref() != Some(""), "{id} is {state} without a reason");
        ensure!(status == Status::Absent || !cited.is_empty(), "{id} is {state} without a test");
        let mut doubts = Vec::new();
        if status == Status::Exact {
            let comparing: Vec<_> = cited.iter().filter(|(name, _)| self.comparing.contains(name)).collect();
            ensure!(!comparing.is_empty(), "{id} is compared, but by none of its tests");
            if comparing.iter().all(|(_, test)| test.is_long) {
                doubts.push("only tests with the feature `long-tests` compare it".to_owned());
            }
        }
        let tests = cited.iter().map(|(name, test)| format!("{}::{name}", test.path)).collect();
        let item = Item {
            id: id.into(),
            document: self.name.into(),
            group: String::new(),
            mechanism: String::new(),
            title: subject.into(),
            class: DEFAULT_CLASS.into(),
            facts: Vec::new(),
            status,
            tests,
            stale: false,
            note,
            driver: None,
        };
        let (mutants, coarse, tables, places) = Default::default();
        Ok(Found { item, mutants, coarse, tables, doubts, places })
    }
}

/// The tests in `files`, which are keyed by path from the repository's root.
///
/// # Errors
/// If a file is not Rust.
fn tests_of(files: &BTreeMap<String, String>) -> Result<Tests> {
    let mut tests = Tests::new();
    for (path, text) in files {
        for function in Source::new(path, text)?.functions.into_iter().filter(|function| function.is_test) {
            tests.entry(function.name).or_default().push(Test { path: path.clone(), is_long: function.is_long });
        }
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGE: Assessment = Assessment {
        name: "ISA",
        title: "Sums",
        table: "p/docs/items.md",
        sources: ["p/src", "p/tests"],
        criterion: Some("by the book"),
        comparing: &["sums", "peer"],
    };

    /// `sums` and `peer` compare, `peer` only in the long tier; `runs` does not; `helper` is no test; `twice` are two tests.
    fn tests() -> Tests {
        let files = BTreeMap::from(
            [
                ("p/src/a.rs", "#[cfg(test)]\nmod tests {\n    #[test]\n    fn twice() {}\n}\n"),
                ("p/tests/long.rs", "#![cfg(feature = \"long-tests\")]\n#[test]\nfn peer() {}\n"),
                (
                    "p/tests/quick.rs",
                    "fn helper() {}\n#[test]\nfn runs() {}\n#[test]\nfn sums() {}\n#[test]\nfn twice() {}\n",
                ),
            ]
            .map(|(path, text)| (path.to_owned(), text.to_owned())),
        );
        tests_of(&files).unwrap()
    }

    fn row(state: &str, tests: &str, reason: &str) -> String {
        format!("# Items\n| item | subject |\n## B. Sums\n| ISA-001 | add | {state} | {tests} | {reason} |\n")
    }

    fn item(state: &str, cited: &str, reason: &str) -> Found {
        PACKAGE.parse(&row(state, cited, reason), &tests()).unwrap().remove(0)
    }

    fn error(state: &str, cited: &str, reason: &str) -> String {
        format!("{:#}", PACKAGE.parse(&row(state, cited, reason), &tests()).unwrap_err())
    }

    #[test]
    fn state_of_a_row_sets_status_and_note() {
        let note = "Exact as p/docs/items.md assesses it, by the book.";
        for (state, cited, reason, status, note) in [
            ("exact", "`runs`, `sums`", "", Status::Unproven, Some(note)),
            ("approximate", "`runs`", "text only", Status::Approximate, Some("text only")),
            ("absent", "", "another set", Status::Absent, Some("another set")),
            ("out of scope", "", "another set", Status::Absent, Some("another set")),
            ("compared", "`sums`", "", Status::Exact, None),
        ] {
            let item = item(state, cited, reason);
            assert_eq!((item.status, item.note.as_deref()), (status, note), "{state}");
        }
        let item = item("exact", "`runs`, `sums`", "");
        assert_eq!(item.tests, ["p/tests/quick.rs::runs", "p/tests/quick.rs::sums"]);
    }

    #[test]
    fn headings_above_a_row_are_its_group_and_mechanism() {
        let table = row("compared", "`sums`", "");
        let place = |table: &str| {
            let item = PACKAGE.parse(table, &tests()).unwrap().remove(0).item;
            (item.group, item.mechanism)
        };
        assert_eq!(place(&table), ("B".to_owned(), "Sums".to_owned()));
        assert_eq!(place(&table.replace("## B. Sums\n", "")), ("-".to_owned(), "All items".to_owned()));
    }

    #[test]
    fn compared_row_is_exact_only_with_a_comparing_test() {
        assert_eq!(item("compared", "`runs`, `sums`", "").status, Status::Exact);
        // `runs` is in the same file as `sums`.
        assert!(error("compared", "`runs`", "").ends_with("ISA-001 is compared, but by none of its tests"));
    }

    #[test]
    fn compared_row_is_doubted_if_only_the_long_tier_compares_it() {
        assert_eq!(item("compared", "`sums`, `peer`", "").doubts, Vec::<String>::new());
        assert_eq!(
            item("compared", "`runs`, `peer`", "").doubts,
            ["only tests with the feature `long-tests` compare it"]
        );
    }

    #[test]
    fn cited_name_that_is_not_one_test_is_an_error() {
        assert!(error("exact", "`none`", "").ends_with("ISA-001 names the test none, which does not exist"));
        assert!(
            error("exact", "`runs`, `helper`", "").ends_with("ISA-001 names the test helper, which does not exist")
        );
        let twice = error("exact", "`twice`", "");
        assert!(twice.ends_with("the test twice, which is in p/src/a.rs and in p/tests/quick.rs"), "{twice}");
    }

    #[test]
    fn row_with_unknown_state_or_without_test_or_reason_is_an_error() {
        assert!(error("exact", "", "").ends_with("ISA-001 is exact without a test"));
        assert!(error("absent", "", "").ends_with("ISA-001 is absent without a reason"));
        assert!(error("done", "`runs`", "").ends_with("ISA-001 has the unknown state done"));
    }

    #[test]
    fn comparing_test_that_does_not_exist_is_an_error() {
        let error = PACKAGE.parse("", &Tests::new()).unwrap_err().to_string();
        assert_eq!(error, "sums, which compares ISA, does not exist");
    }
}
