// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The licence line of source files: the first line, or the second after a `#!` line.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::{git, root};

/// The line without comment markers.
const LICENCE: &str = "SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause";

/// Fails if a source file has no licence line. The error lists all such files.
pub fn check() -> Result<()> {
    let mut without = Vec::new();
    for file in git(&["ls-files"])? {
        let Some(line) = line_of(&file) else { continue };
        let text = fs::read_to_string(root().join(&file)).with_context(|| format!("cannot read {file}"))?;
        if !starts_with(&text, &line) {
            without.push(format!("{file}: {line}"));
        }
    }
    ensure!(without.is_empty(), "source files without the licence line:\n{}", without.join("\n"));
    Ok(())
}

/// Returns the licence line with the comment markers of a source file's language; `None` for other files.
fn line_of(file: &str) -> Option<String> {
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    match (file, extension) {
        (_, "rs") => Some(format!("// {LICENCE}")),
        (_, "c" | "h" | "S" | "ld") => Some(format!("/* {LICENCE} */")),
        (".ci/run", _) | (_, "sh") => Some(format!("# {LICENCE}")),
        _ => None,
    }
}

fn starts_with(text: &str, line: &str) -> bool {
    text.lines().find(|line| !line.starts_with("#!/")) == Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_the_first_or_below_the_interpreter() {
        let line = line_of("guest.sh").unwrap();
        assert!(starts_with(&format!("{line}\n# A script.\n"), &line));
        assert!(starts_with(&format!("#!/bin/sh\n{line}\n"), &line));
        assert!(!starts_with(&format!("# A script.\n{line}\n"), &line));
        assert!(!starts_with("#!/bin/sh\n", &line));
        assert!(!starts_with("", &line));
    }

    #[test]
    fn sources_have_the_line_in_their_own_comment_signs() {
        let signs = |file| line_of(file).map(|line| line.replace(LICENCE, "_"));
        assert_eq!(signs("src/lib.rs").unwrap(), "// _");
        for file in ["a/guest.c", "a/guest.h", "a/entry.S", "a/guest.ld"] {
            assert_eq!(signs(file).unwrap(), "/* _ */");
        }
        assert_eq!(signs(".ci/run").unwrap(), "# _");
        for file in ["README.md", "Cargo.toml", "fuzz/corpus/x/1", "docs/testcard.png"] {
            assert_eq!(signs(file), None);
        }
    }
}
