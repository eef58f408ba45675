// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Items and ranges of items, as texts name them.

use std::fmt;

use arctic_fidelity::document;

/// One item or a range of items of a document: `V8-052`, `V13-048..051`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// Name of the document, such as `V8`.
    pub document: String,
    /// Number of the item, or of the first of the range.
    pub first: u16,
    /// Number of the last item of the range; equal to `first` for a single item.
    pub last: u16,
}

impl Claim {
    /// Returns whether it names item `number` of `document`.
    pub fn names(&self, document: &str, number: u16) -> bool {
        self.document == document && (self.first..=self.last).contains(&number)
    }

    /// All claims in `text`, in order: `V8-052` or its constant `V8_052`, and `V13-048..051` or `V13-048..V13-051`.
    pub fn all_in(text: &str) -> Vec<Self> {
        let mut found = Vec::new();
        let (mut at, mut before) = (0, ' ');
        while let Some(c) = text[at..].chars().next() {
            let starts = c.is_ascii_uppercase() && !before.is_ascii_alphanumeric();
            let Some((name, first, end)) = starts.then(|| document::id(&text[at..])).flatten() else {
                (at, before) = (at + c.len_utf8(), c);
                continue;
            };
            at += end;
            before = '0';
            let mut claim = Self { document: name.into(), first, last: first };
            if let Some(behind) = text[at..].strip_prefix("..") {
                let to = match document::id(behind) {
                    Some((other, last, end)) if other == name => Some((last, end)),
                    _ => document::number(behind),
                };
                if let Some((last, end)) = to.filter(|&(last, _)| last > first) {
                    claim.last = last;
                    at += 2 + end;
                }
            }
            found.push(claim);
        }
        found
    }

    /// Parses `text` if it is one item or range of items and nothing else.
    pub fn of(text: &str) -> Option<Self> {
        Self::all_in(text).into_iter().next().filter(|claim| claim.to_string() == text)
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:03}", self.document, self.first)?;
        if self.last != self.first { write!(f, "..{:03}", self.last) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_one_by_one_and_in_ranges() {
        let text = "V1-001, V1-003..005 and V2-100..V2-101; V1-1, V1-0001, AV1-002b, V1-T4, V1-009..002 (V1-010..V2-011) \
            IVB_143, äAF-007 xV1-001";
        let found: Vec<String> = Claim::all_in(text).iter().map(Claim::to_string).collect();
        let expected =
            ["V1-001", "V1-003..005", "V2-100..101", "AV1-002", "V1-009", "V1-010", "V2-011", "IVB-143", "AF-007"];
        assert_eq!(found, expected);
        let range = &Claim::all_in("V1-003..005")[0];
        assert!(range.names("V1", 4) && range.names("V1", 5) && !range.names("V1", 6) && !range.names("V2", 4));
        assert!(Claim::of("V1-003..005").is_some() && Claim::of("V1-003, V1-004").is_none());
    }
}
