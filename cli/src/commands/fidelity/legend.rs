// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Meanings of the marks of items: the class, and the references in their rules. The documents in docs/spec have the same in their
//! introductions.

/// Marks of a class, and their meanings.
const MARKS: [(&str, &str); 19] = [
    ("DOC", "stated completely in the document"),
    ("PTR", "named in the document, bit layout defined elsewhere"),
    ("INF", "inferred from what the document or the drivers state"),
    ("DRV", "taken from the drivers"),
    ("SAME", "true of later generations too"),
    ("EVOLVED", "later generations have other layouts, sizes or rules"),
    ("VARIANT", "later generations have another layout, offset or size"),
    ("GEN7", "of Gen7 only"),
    ("OLD", "of older generations only"),
    ("K", "source: Linux's xe and i915"),
    ("XE", "source: Linux's xe"),
    ("IGT", "source: IGT GPU Tools"),
    ("GX", "source: Mesa's genxml"),
    ("BRW", "source: Mesa's compiler"),
    ("PRM", "source: Intel's public manuals"),
    ("NEO", "source: Intel's compute runtime"),
    ("GMM", "source: Intel's gmmlib"),
    ("IGC", "source: Intel's graphics compiler"),
    ("OBS", "source: observed in a run"),
];

/// The meanings of the marks in a class, such as `DOC behaviour, layout PTR` or `K, IGT, GX`.
pub fn of_class(class: &str) -> Vec<(&'static str, &'static str)> {
    let marks: Vec<String> =
        class.split(|c: char| !c.is_ascii_alphanumeric()).map(|word| word.to_ascii_uppercase()).collect();
    MARKS.into_iter().filter(|(mark, _)| marks.iter().any(|word| word == mark)).collect()
}

/// Whether a word begins with a reference, and the meaning of the reference.
type Reference = (fn(&str) -> bool, &'static str);

/// References in the rules of items.
const REFERENCES: [Reference; 3] = [
    (is_line, "L271: line 271 of the document's plain text"),
    (is_section, "B.6: section of the contract of Linux's drivers, docs/spec/xe-driver-contract.md"),
    (|word| word == "Test:", "Test: how the item can be tested"),
];

/// As in `L271-319`.
fn is_line(word: &str) -> bool {
    let number = word.trim_start_matches(['(', '[']).strip_prefix('L');
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// As in `(B.6)`.
fn is_section(word: &str) -> bool {
    let letter_and_number = word.strip_prefix('(').and_then(|section| section.split_once('.'));
    letter_and_number.is_some_and(|(letter, number)| {
        letter.len() == 1
            && letter.starts_with(|c: char| c.is_ascii_uppercase())
            && number.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// The meanings of the references that occur in the rules `facts`.
pub fn of_facts(facts: &[String]) -> Vec<String> {
    let occurs = |is: fn(&str) -> bool| facts.iter().flat_map(|fact| fact.split_whitespace()).any(is);
    REFERENCES.into_iter().filter(|(is, _)| occurs(*is)).map(|(_, meaning)| meaning.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::report::Report;

    use super::*;

    /// Each class in this build's report has a meaning, and each mark occurs in one.
    #[test]
    fn every_class_has_a_meaning() {
        let report = Report::of_this_build().unwrap();
        let without: Vec<_> = report.items.iter().filter(|item| of_class(&item.class).is_empty()).collect();
        assert!(without.is_empty(), "{without:?}");
        for (mark, _) in MARKS {
            let occurs = report.items.iter().any(|item| of_class(&item.class).iter().any(|(found, _)| *found == mark));
            assert!(occurs, "{mark}");
        }
    }

    #[test]
    fn references_in_a_rule_are_explained() {
        let meanings = |fact: &str| of_facts(&[fact.to_owned()]).len();
        assert_eq!(meanings("head and tail are below the size (B.6). L271-319, Test: amounts 0..70"), 3);
        assert_eq!(meanings("LRC (Intel) A.1 of 3.14, Testing"), 0);
        assert_eq!(meanings("shown (B.6, K.7)"), 1);
    }
}
