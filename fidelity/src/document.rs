// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The documents as numbered items, parsed from the texts in `docs/spec`. A text is a document if it has items.

use std::collections::BTreeSet;

/// A document with the items against which the project is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What precedes the numbers of its items, such as `V8`.
    pub name: String,
    /// Title.
    pub title: String,
    /// All items, in document order.
    pub rules: Vec<Rule>,
}

/// One item, as the document states it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Number within the document.
    pub number: u16,
    /// Letter or number of the group to which it belongs.
    pub group: String,
    /// The mechanism that the group specifies.
    pub mechanism: String,
    /// The item's title.
    pub title: String,
    /// Marks in brackets, such as `DOC` or `PTR`: how much of the item is stated in the document itself.
    pub class: String,
    /// The facts, and their locations in the document.
    pub facts: Vec<String>,
}

/// Parses `text` if it begins with a document's name, `-` or `_`, and exactly three digits: name, number, and the offset of
/// the end. A name has capital letters and then digits, if any.
pub fn id(text: &str) -> Option<(&str, u16, usize)> {
    let letters = text.bytes().take_while(u8::is_ascii_uppercase).count();
    let name = letters + text[letters..].bytes().take_while(u8::is_ascii_digit).count();
    let digits = text[name..].strip_prefix(['-', '_']).filter(|_| letters > 0)?;
    let (number, end) = number(digits)?;
    Some((&text[..name], number, name + 1 + end))
}

/// Parses exactly three digits: the number, and the offset of its end.
pub fn number(text: &str) -> Option<(u16, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 3 { Some((text[..3].parse().ok()?, 3)) } else { None }
}

impl Document {
    /// Parses a text; `None` if it has no items. Headings of groups are `## Group B - Title`, `### B. Title` or
    /// `### 1.2 Title`. The first line of an item is `**V8-001 Title** [CLASS] facts` or
    /// `**V13-001.** **[CLASS] Title.** facts`; facts follow up to an empty line, a heading or a table.
    ///
    /// # Errors
    /// If an item of another document is among them, or two have one number.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let heading = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
        // What follows describes the list and is not part of the title.
        let title = [" - ", ": ", " ("].iter().fold(heading, |title, end| title.split(end).next().unwrap_or(title));
        let mut document = Self { name: String::new(), title: title.into(), rules: Vec::new() };
        let (mut group, mut mechanism) = (String::new(), String::new());
        let mut open = false;
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("### ").or_else(|| line.strip_prefix("## ")) {
                let heading = heading.strip_prefix("Group ").unwrap_or(heading);
                let (letter, rest) = heading.split_once(' ').unwrap_or((heading, ""));
                // Text in parentheses describes the list and is not part of the title.
                let about = rest.trim_start_matches(['-', ' ']).split(" (").next().unwrap_or("");
                (group, mechanism) = (letter.trim_end_matches('.').into(), about.into());
                open = false;
            } else if let Some(item) = line.strip_prefix("**")
                && let Some((name, number, end)) = id(item)
            {
                document.expect(name, number)?;
                let (title, class, facts) = opening(&item[end..]);
                let facts = facts.into_iter().collect();
                document.rules.push(Rule {
                    number,
                    group: group.clone(),
                    mechanism: mechanism.clone(),
                    title,
                    class,
                    facts,
                });
                open = true;
            } else if line.is_empty() || line.starts_with(['#', '|']) {
                open = false;
            } else if let Some(rule) = document.rules.last_mut().filter(|_| open) {
                rule.facts.push(line.strip_prefix("- ").unwrap_or(line).into());
            }
        }
        Ok(Some(document).filter(|document| !document.rules.is_empty()))
    }

    /// Parses all texts. The documents are ordered by name, numbers in names as numbers.
    ///
    /// # Errors
    /// If a text has errors, or two have one name.
    pub fn parse_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<Self>, String> {
        let mut documents: Vec<Self> = Vec::new();
        for text in texts {
            documents.extend(Self::parse(text)?);
        }
        let order = |document: &Self| {
            let letters = document.name.trim_end_matches(|c: char| c.is_ascii_digit());
            (letters.to_owned(), document.name[letters.len()..].parse::<u32>().unwrap_or(0))
        };
        documents.sort_by_key(order);
        let names: BTreeSet<&String> = documents.iter().map(|document| &document.name).collect();
        if names.len() != documents.len() {
            return Err(format!("two documents have one name: {names:?}"));
        }
        Ok(documents)
    }

    fn expect(&mut self, name: &str, number: u16) -> Result<(), String> {
        if self.rules.is_empty() {
            self.name = name.into();
        }
        if self.name != name {
            return Err(format!("{name}-{number:03} is among the items of {}", self.name));
        }
        match self.rules.iter().any(|rule| rule.number == number) {
            true => Err(format!("{name}-{number:03} is there twice")),
            false => Ok(()),
        }
    }
}

/// The text after the number on an item's first line: title, class, and facts if they are on the same line.
fn opening(rest: &str) -> (String, String, Option<String>) {
    if let Some(rest) = rest.strip_prefix(".** **") {
        let (title, facts) = rest.split_once("**").unwrap_or((rest, ""));
        let (class, title) = marks(title);
        let stated = if facts.contains("[k7.2]") { "doc, k7.2" } else { "doc" };
        let class = if class.is_empty() { stated.into() } else { class };
        return (title.trim().trim_end_matches(['.', ',', ':']).into(), class, Some(facts.trim().into()));
    }
    if let Some(rest) = rest.strip_prefix(".** ") {
        return (first_sentence(rest), "doc".into(), Some(rest.into()));
    }
    let (title, rest) = rest.split_once("**").unwrap_or((rest, ""));
    let (inner, title) = marks(title.trim());
    let (before, behind) = rest.split_at(rest.find('[').unwrap_or(rest.len()));
    let (outer, behind) = marks(behind);
    let facts = [before, behind].map(|facts| facts.trim().trim_start_matches("- ")).join(" ").trim().to_owned();
    let title = if title.is_empty() { first_sentence(&facts) } else { title.trim().trim_end_matches('.').into() };
    (title, if inner.is_empty() { outer } else { inner }, Some(facts).filter(|facts| !facts.is_empty()))
}

/// The marks in brackets at the beginning of `text`, without the brackets, and what follows.
fn marks(text: &str) -> (String, &str) {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((mark, behind)) = rest.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        found.push(mark);
        rest = behind;
    }
    (found.join(", "), rest)
}

fn first_sentence(text: &str) -> String {
    text.split(['.', ';']).next().unwrap_or(text).trim().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(document: &Document) -> Vec<(u16, &str, &str, &str, &str, usize)> {
        document
            .rules
            .iter()
            .map(|rule| (rule.number, &*rule.group, &*rule.mechanism, &*rule.title, &*rule.class, rule.facts.len()))
            .collect()
    }

    #[test]
    fn items_of_each_form_are_read() {
        let text = "# Volume 1, \"One\" (2023): a list\n### Group B - Queues\n\n**V1-010 Eight \"slots\"** [DOC; bits DRV]\n\
            - Facts: a; b.\n  c\n- L1.\n\nprose\n**V1-012 Next** [PTR]\n- Facts: d.\n### C. Rings (a list)\n\
            **V1-013.** **Start.** It starts. **[k7.2]** twice.\n| table |\n**V1-014.** Untitled rule. More.\n\
            **V1-015.** **[OLD] Marked.** Facts.\n## 3.1 Gates\n**V1-016 [R]** Facts; more.\n**V1-017 [R] Titled.** Facts\n\
            **V1-018 SELECT** 0x69, 1 dword [A][B 0x1] - 0.1:0 pipeline\n  [INF] more\n";
        let document = Document::parse(text).unwrap().unwrap();
        assert_eq!((&*document.name, &*document.title), ("V1", "Volume 1, \"One\""));
        let expected = [
            (10, "B", "Queues", "Eight \"slots\"", "DOC; bits DRV", 3),
            (12, "B", "Queues", "Next", "PTR", 1),
            (13, "C", "Rings", "Start", "doc, k7.2", 1),
            (14, "C", "Rings", "Untitled rule", "doc", 1),
            (15, "C", "Rings", "Marked", "OLD", 1),
            (16, "3.1", "Gates", "Facts", "R", 1),
            (17, "3.1", "Gates", "Titled", "R", 1),
            (18, "3.1", "Gates", "SELECT", "A, B 0x1", 2),
        ];
        assert_eq!(rows(&document), expected);
        assert_eq!(document.rules[0].facts, ["Facts: a; b.", "  c", "L1."]);
        assert_eq!(document.rules[7].facts, ["0x69, 1 dword 0.1:0 pipeline", "  [INF] more"]);
    }

    #[test]
    fn names_have_letters_and_digits() {
        let found: Vec<_> =
            ["V13-001", "AF_125,", "V1-0001", "V1-01", "-001", "13-001", "v8-001", "IVB-001..004"].map(id).into();
        let expected = [Some(("V13", 1, 7)), Some(("AF", 125, 6)), None, None, None, None, None, Some(("IVB", 1, 7))];
        assert_eq!(found, expected);
    }

    #[test]
    fn documents_are_ordered_by_name() {
        let all =
            Document::parse_all(["**V13-001 A** [B]", "no items", "**V8-001 A** [B]", "**AF-001 A** [B]"]).unwrap();
        assert_eq!(all.iter().map(|document| &*document.name).collect::<Vec<_>>(), ["AF", "V8", "V13"]);
    }

    #[test]
    fn an_item_is_there_once_and_a_text_has_one_document() {
        let error = |text: &str| Document::parse(text).unwrap_err();
        assert_eq!(error("**V1-002 A** [B]\n**V1-002 A** [B]\n"), "V1-002 is there twice");
        assert_eq!(error("**V1-002 A** [B]\n**V2-003 A** [B]\n"), "V2-003 is among the items of V1");
        assert!(Document::parse_all(["**V1-002 A** [B]"; 2]).unwrap_err().starts_with("two documents"));
        assert_eq!(Document::parse("# A\n**Bold** text"), Ok(None));
    }
}
