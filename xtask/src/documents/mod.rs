// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Checks that the paths, functions, types and tests that documents name in backticks exist.
//!
//! Of the text between backticks, these are checked:
//! * a path with `/`, or with the extension of a source or document: a file or folder of the repository, by its path from
//!   the top directory or the document's, or by the end of its path (`memory/ggtt.rs`);
//! * an identifier with `::`, `_`, `!`, `()` or a capital letter: a name that a source defines, or a word of a string in
//!   one, such as a register's name; of `A::b`, each part, and `b` as a part of `A`;
//! * a name that begins with `arctic-`: a package.
//!
//! Not checked are text with spaces (command lines, code), options, single words in lower case or in capitals, options of
//! the kernel's configuration, and of paths those that are absolute, begin with a variable or a home directory, have a
//! placeholder in capitals, are below `target`, or are of sockets. `documents.toml` lists the names of other projects.

mod names;

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use pulldown_cmark::{Event, Options, Parser};
use serde::Deserialize;

use self::names::Names;
use crate::{fidelity, git, root};

/// The list of other projects' names.
const LIST: &str = "xtask/documents.toml";

/// Documents that are not checked: generated ones, and transcriptions of other documents.
const EXCLUDED: [&str; 3] = ["FIDELITY.md", "docs/spec/", "docs/support.md"];

/// Extensions by which a name without `/` is a path.
const EXTENSIONS: [&str; 9] = ["rs", "md", "toml", "c", "h", "sh", "yml", "txt", "asm"];

/// [`LIST`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Names of other projects, by project.
    names: BTreeMap<String, Vec<String>>,
}

/// A name that does not exist.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// Path of the document.
    file: String,
    /// Line, from 1.
    line: usize,
    /// The name.
    name: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: `{}` does not exist", self.file, self.line, self.name)
    }
}

/// Returns whether a path is of files that a build or a running server creates, or has a placeholder in capitals.
fn is_outside(path: &str) -> bool {
    let is_placeholder = |part: &str| {
        let stem = part.split('.').next().unwrap_or_default();
        stem.len() > 1 && stem.chars().all(|c| c.is_ascii_uppercase())
    };
    let socket = Path::new(path).extension().is_some_and(|extension| extension == "sock");
    path.starts_with("target/") || socket || path.contains('/') && path.split('/').any(is_placeholder)
}

/// What text between backticks is.
#[derive(Debug, PartialEq, Eq)]
enum Kind<'t> {
    Path(&'t str),
    /// The parts of a path of identifiers.
    Identifier(Vec<&'t str>),
    Package(&'t str),
    /// Not checked.
    Other,
}

impl<'t> Kind<'t> {
    fn of(text: &'t str) -> Self {
        if text.contains(char::is_whitespace) || text.starts_with(['-', '/', '~', '$']) {
            return Kind::Other;
        }
        // Also files such as `.typos.toml`.
        if is_path(text.strip_prefix('.').unwrap_or(text)) {
            return if is_outside(text) { Kind::Other } else { Kind::Path(text) };
        }
        if text.starts_with("arctic-") && text.chars().all(|c| c.is_ascii_lowercase() || c == '-') {
            return Kind::Package(text);
        }
        let name = text.split(['(', '!', '<']).next().unwrap_or_default();
        let parts: Vec<&str> = name.split("::").collect();
        let is_identifier = |part: &&str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let mixed = name.contains(|c: char| c.is_ascii_uppercase()) && name.contains(|c: char| c.is_ascii_lowercase());
        if name.starts_with("CONFIG_") {
            return Kind::Other;
        }
        let distinct = parts.len() > 1 || name.contains('_') || mixed || text != name;
        if distinct && parts.iter().all(is_identifier) { Kind::Identifier(parts) } else { Kind::Other }
    }
}

/// Returns whether text without spaces has the form of a path: parts of letters, digits, `_`, `-`, `.`, braces and `*`.
fn is_path(text: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || "_-.{},*/".contains(c);
    let extension =
        text.rsplit_once('.').is_some_and(|(stem, extension)| !stem.is_empty() && EXTENSIONS.contains(&extension));
    text.chars().all(part) && (text.contains('/') || extension)
}

/// Returns the alternatives of a path with braces: of `a/{b,c}.rs`, `a/b.rs` and `a/c.rs`.
fn alternatives(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (choices, after))) => {
            choices.split(',').flat_map(|choice| alternatives(&format!("{before}{choice}{after}"))).collect()
        }
        None => vec![path.to_owned()],
    }
}

/// The code spans of a document, with their lines.
fn code_spans(text: &str) -> impl Iterator<Item = (usize, String)> {
    Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter().filter_map(|(event, range)| match event {
        Event::Code(code) => Some((text[..range.start].matches('\n').count() + 1, code.to_string())),
        _ => None,
    })
}

/// The repository, as documents refer to it.
struct Tree {
    /// Files and folders from the top directory, without `/` at the end.
    paths: HashSet<String>,
    names: Names,
    packages: HashSet<String>,
}

impl Tree {
    /// Reads the repository.
    fn read() -> Result<Self> {
        let mut tree = Tree { paths: HashSet::new(), names: Names::default(), packages: HashSet::new() };
        for file in git(&["ls-files", "--cached", "--others", "--exclude-standard"])? {
            let path = root().join(&file);
            if !path.exists() {
                continue;
            }
            let read = || fs::read_to_string(&path).with_context(|| format!("cannot read {file}"));
            if file.ends_with(".rs") {
                let stem = Path::new(&file).with_extension("");
                let module = stem.iter().rev().find(|part| !["mod", "lib", "main"].map(AsRef::as_ref).contains(part));
                let module = module.unwrap_or_default().to_string_lossy();
                tree.names.add(&module, &read()?).with_context(|| format!("cannot parse {file}"))?;
            }
            if file == "Cargo.toml" || file.ends_with("/Cargo.toml") {
                let manifest: toml::Table = read()?.parse().with_context(|| format!("cannot parse {file}"))?;
                let package = manifest.get("package").and_then(|package| package.get("name")?.as_str());
                tree.packages.extend(package.map(str::to_owned));
                package.into_iter().for_each(|name| tree.names.define(&name.replace('-', "_")));
            }
            tree.paths.extend(Path::new(&file).ancestors().map(|path| path.to_string_lossy().into_owned()));
        }
        // The constants that the build script of `fidelity/` makes.
        for document in fidelity::documents()? {
            document.rules.iter().for_each(|rule| tree.names.define(&format!("{}_{:03}", document.name, rule.number)));
        }
        Ok(tree)
    }

    fn has_path(&self, document: &str, path: &str) -> bool {
        let folder = Path::new(document).parent().unwrap_or(Path::new(""));
        alternatives(path).iter().all(|path| {
            let path = path.trim_start_matches("./").trim_end_matches('/');
            let beside = folder.join(path).to_string_lossy().into_owned();
            match path.split_once('*') {
                Some((before, after)) => {
                    self.paths.iter().any(|path| path.strip_prefix(before).is_some_and(|rest| rest.ends_with(after)))
                }
                None => {
                    let end = format!("/{path}");
                    [path, &beside].iter().any(|path| self.paths.contains(*path))
                        || self.paths.iter().any(|path| path.ends_with(&end))
                }
            }
        })
    }

    fn has_identifier(&self, parts: &[&str]) -> bool {
        let parts = match parts {
            ["crate" | "super" | "self", rest @ ..] => rest,
            parts => parts,
        };
        let crates = |part: &str| self.packages.contains(&part.replace('_', "-"));
        parts.iter().all(|part| self.names.has(part))
            && parts.windows(2).all(|pair| crates(pair[0]) || self.names.has_member(pair[0], pair[1]))
    }

    fn has(&self, document: &str, text: &str) -> bool {
        match Kind::of(text) {
            Kind::Path(path) => self.has_path(document, path),
            Kind::Identifier(parts) => self.has_identifier(&parts),
            Kind::Package(name) => self.packages.contains(name),
            Kind::Other => true,
        }
    }

    /// Returns the names in a document that do not exist. Of these, the names in `list` are counted as used instead.
    fn check(&self, document: &str, text: &str, list: &HashSet<&str>, used: &mut HashSet<String>) -> Vec<Finding> {
        let missing = code_spans(text).filter(|(_, name)| !self.has(document, name));
        let unlisted = missing.filter(|(_, name)| {
            let listed = list.contains(name.as_str());
            if listed {
                used.insert(name.clone());
            }
            !listed
        });
        unlisted.map(|(line, name)| Finding { file: document.to_owned(), line, name }).collect()
    }
}

/// Prints the names in documents that do not exist, and the unused names of [`LIST`].
///
/// # Errors
/// If there are any.
pub fn check() -> Result<()> {
    let findings = findings()?;
    findings.iter().for_each(|finding| println!("{finding}"));
    if !findings.is_empty() {
        bail!("{} names do not exist: correct them; {LIST} lists names of other projects", findings.len());
    }
    Ok(())
}

fn findings() -> Result<Vec<String>> {
    let text = fs::read_to_string(root().join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let list: List = toml::from_str(&text).with_context(|| format!("cannot parse {LIST}"))?;
    let listed: HashSet<&str> = list.names.values().flatten().map(String::as_str).collect();
    let tree = Tree::read()?;
    let (mut found, mut used) = (Vec::new(), HashSet::new());
    for document in git(&["ls-files", "*.md"])? {
        if EXCLUDED.iter().any(|excluded| document.starts_with(excluded)) || !root().join(&document).exists() {
            continue;
        }
        let text = fs::read_to_string(root().join(&document)).with_context(|| format!("cannot read {document}"))?;
        found.extend(tree.check(&document, &text, &listed, &mut used).iter().map(ToString::to_string));
    }
    let mut names: Vec<&String> = list.names.values().flatten().collect();
    names.sort();
    found.extend(names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| format!("{LIST}: `{}` twice", pair[0])));
    let unused = names.into_iter().filter(|name| !used.contains(*name));
    found.extend(unused.map(|name| format!("{LIST}: no document needs `{name}`")));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_name_only_what_exists() {
        let findings = findings().unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }

    fn tree() -> Tree {
        let mut names = Names::default();
        names.add("ggtt", "pub struct Ggtt; impl Ggtt { fn look_up() {} } fn a_test_passes() {}").unwrap();
        let paths = ["src", "src/memory", "src/memory/ggtt.rs", "docs", "docs/a.md", ".typos.toml"];
        let packages = HashSet::from(["arctic-gpu".to_owned()]);
        names.define("arctic_gpu");
        Tree { paths: paths.map(str::to_owned).into(), names, packages }
    }

    #[test]
    fn names_that_exist_are_no_findings() {
        for name in [
            "src/memory/ggtt.rs",
            "memory/ggtt.rs",
            "ggtt.rs",
            "memory/",
            "a.md",
            ".typos.toml",
            "docs/*.md",
            "src/{memory}/ggtt.rs",
            "Ggtt",
            "Ggtt::look_up",
            "Ggtt::look_up()",
            "a_test_passes",
            "arctic_gpu::Ggtt",
            "ggtt::Ggtt",
            "arctic-gpu",
        ] {
            assert!(Kind::of(name) != Kind::Other && tree().has("docs/b.md", name), "{name}");
        }
    }

    #[test]
    fn names_that_do_not_exist_are_findings() {
        for name in [
            "src/memory/gtt.rs",
            "gtt.rs",
            "emory/ggtt.rs",
            "src/{memory,other}/ggtt.rs",
            "other/*.md",
            ".typo.toml",
            "Gtt",
            "Ggtt::look_down",
            "a_test_fails",
            "ggtt::look_up",
            "call()",
            "check!",
            "arctic-cpu",
        ] {
            assert!(!tree().has("docs/b.md", name), "{name}");
        }
    }

    #[test]
    fn commands_options_and_places_on_the_host_are_not_checked() {
        for text in [
            "cargo xtask ci",
            "--vfs",
            "-vga",
            "/dev/kvm",
            "~/.cache/arctic",
            "$HOME/x.rs",
            "DIR/results",
            "flex170",
            "DIR",
            "CONFIG_PCI",
            "target/book",
            "fuzz/TARGET.tar.gz",
            "operator/operator.sock",
            "{\"ok\":1}",
            "x=y",
            ".word",
            "V13-004",
        ] {
            assert_eq!(Kind::of(text), Kind::Other, "{text}");
        }
    }

    #[test]
    fn a_finding_has_its_line_and_is_not_one_if_listed() {
        let text = "# A\n\nThe `Ggtt`, a\n`Missing` of\n\n```\n`Skipped`\n```\n\n| `xe_guc` | `Missing` |\n|---|---|\n";
        let mut used = HashSet::new();
        let findings = tree().check("a.md", text, &HashSet::from(["xe_guc", "Unused"]), &mut used);
        let places: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(places, ["a.md:4: `Missing` does not exist", "a.md:10: `Missing` does not exist"]);
        assert_eq!(used, HashSet::from(["xe_guc".to_owned()]));
    }
}
