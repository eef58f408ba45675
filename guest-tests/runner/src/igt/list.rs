// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Test lists: one `binary@subtest` per line, in the format of IGT's own lists.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    /// The test program.
    pub binary: String,
    /// Its subtest; `None` for a program without subtests.
    pub subtest: Option<String>,
    /// The dynamic subtest, if only that is to be run.
    pub dynamic: Option<String>,
}

impl std::fmt::Display for Test {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.binary)?;
        [&self.subtest, &self.dynamic].into_iter().flatten().try_for_each(|part| write!(out, "@{part}"))
    }
}

/// Parses a list. Blank lines and `#` comments are ignored, as is a leading `igt@`.
pub fn parse(text: &str) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mut parts = line.strip_prefix("igt@").unwrap_or(line).split('@').map(str::to_owned);
        let test = Test { binary: parts.next().unwrap_or_default(), subtest: parts.next(), dynamic: parts.next() };
        let sound =
            |part: &str| !part.is_empty() && !part.contains(|letter: char| letter.is_whitespace() || letter == '/');
        let fields = [Some(&test.binary), test.subtest.as_ref(), test.dynamic.as_ref()];
        if parts.next().is_some() || !fields.into_iter().flatten().all(|part| sound(part)) {
            bail!("line {} is not of the form `binary@subtest`: {line}", number + 1);
        }
        tests.push(test);
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn igt_list_lines_of_all_forms_parse() {
        let text = "# comment\n\nigt@xe_query@query-engines\ncore_auth@many-magics # why\nmeta_test\nigt@xe_vm@a@b\n";
        let names: Vec<String> = parse(text).unwrap().iter().map(Test::to_string).collect();
        assert_eq!(names, ["xe_query@query-engines", "core_auth@many-magics", "meta_test", "xe_vm@a@b"]);
    }

    #[test]
    fn malformed_line_is_reported_with_its_number() {
        for line in ["a b@c", "../sh@x", "a@", "a@b@c@d"] {
            let error = parse(&format!("ok@fine\n{line}\n")).unwrap_err().to_string();
            assert!(error.starts_with("line 2 "), "{error}");
        }
    }
}
