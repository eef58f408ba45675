// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The documents as numbered rules, parsed from the texts in `docs/spec`.

use serde::Serialize;

/// A document with the rules against which the card is checked.
#[derive(Clone, Debug)]
pub struct Document {
    /// Name in item numbers, such as `V8`.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// All rules, in document order.
    pub rules: Vec<Rule>,
}

/// One rule, as the document states it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Number within the document.
    #[serde(skip)]
    pub number: u16,
    /// Letter of the group to which it belongs.
    pub group: String,
    /// The mechanism that the group specifies.
    pub mechanism: String,
    /// The rule's title.
    pub title: String,
    /// Provenance class, such as `DOC` or `PTR`: how much of the rule is stated in the document itself.
    pub class: String,
    /// The facts, and their locations in the document.
    pub facts: Vec<String>,
}

impl Document {
    /// Parses the rules of document `name` from its text: headings `### Group B - Title` or `### B. Title`, and below
    /// them `**V8-001 Title** [CLASS]` with facts on the next lines, or `**V13-001.** **Title.** Facts`.
    pub fn parse(name: &'static str, title: &'static str, text: &str) -> Self {
        let mut rules: Vec<Rule> = Vec::new();
        let (mut group, mut mechanism) = (String::new(), String::new());
        let mut open = false;
        let prefix = format!("**{name}-");
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("### ") {
                let heading = heading.strip_prefix("Group ").unwrap_or(heading);
                let (letter, rest) = heading.split_once([' ', '.']).unwrap_or((heading, ""));
                // Text in parentheses describes the list and is not part of the title.
                let about = rest.trim_start_matches(['-', ' ']).split(" (").next().unwrap_or("");
                (group, mechanism) = (letter.into(), about.into());
                open = false;
            } else if let Some(rest) = line.strip_prefix(&prefix)
                && let Some(Ok(number)) = rest.get(..3).map(str::parse)
            {
                let (title, class, facts) = opening(&rest[3..]);
                let facts = facts.into_iter().collect();
                rules.push(Rule { number, group: group.clone(), mechanism: mechanism.clone(), title, class, facts });
                open = true;
            } else if line.is_empty() || line.starts_with(['#', '|']) {
                open = false;
            } else if let Some(rule) = rules.last_mut().filter(|_| open) {
                rule.facts.push(line.strip_prefix("- ").unwrap_or(line).into());
            }
        }
        Self { name, title, rules }
    }
}

/// The text after the number on a rule's first line: title, class, and facts if they are on the same line.
fn opening(rest: &str) -> (String, String, Option<String>) {
    if let Some(rest) = rest.strip_prefix(".** **") {
        let (title, facts) = rest.split_once("**").unwrap_or((rest, ""));
        let class = if facts.contains("[k7.2]") { "doc, k7.2" } else { "doc" };
        return (title.trim_end_matches(['.', ',', ':']).into(), class.into(), Some(facts.trim().into()));
    }
    if let Some(rest) = rest.strip_prefix(".** ") {
        return (rest.split('.').next().unwrap_or(rest).into(), "doc".into(), Some(rest.into()));
    }
    let (title, rest) = rest.split_once("**").unwrap_or((rest, ""));
    (title.trim().into(), rest.trim().trim_matches(['[', ']']).into(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_list_are_read() {
        let text = "# V1\n### Group B - Queues\n\n**V1-010 Eight \"slots\"** [DOC; bits DRV]\n- Facts: a; b.\n  c\n- L1.\n\n\
            prose\n**V1-012 Next** [PTR]\n- Facts: d.\n### C. Rings (a list)\n**V1-013.** **Start.** It starts. \
            **[k7.2]** twice.\n| table |\n**V1-014.** Untitled rule. More.\n## 3.\n**V2-001 No** [DOC]\n";
        let document = Document::parse("V1", "One", text);
        let rows: Vec<_> = document
            .rules
            .iter()
            .map(|rule| (rule.number, &*rule.group, &*rule.mechanism, &*rule.title, &*rule.class, rule.facts.len()))
            .collect();
        let expected = [
            (10, "B", "Queues", "Eight \"slots\"", "DOC; bits DRV", 3),
            (12, "B", "Queues", "Next", "PTR", 1),
            (13, "C", "Rings", "Start", "doc, k7.2", 1),
            (14, "C", "Rings", "Untitled rule", "doc", 1),
        ];
        assert_eq!(rows, expected);
        assert_eq!(document.rules[0].facts, ["Facts: a; b.", "  c", "L1."]);
    }
}
