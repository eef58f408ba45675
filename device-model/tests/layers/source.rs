// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The paths in a source file, by its tokens: paths in macros, which are not parsed, count too.

use std::collections::BTreeMap;

use arctic_source::{Token, tokens, without_tests};

/// What one source file contains, outside items for tests.
#[derive(Debug, Default)]
pub struct File {
    /// Names of the modules that it declares in files of their own.
    pub modules: Vec<String>,
    /// Names in the crate's root that its paths start with, with line and path.
    pub uses: Vec<(String, usize, String)>,
    /// Its paths that leave the module: number of modules that are left, and the path from there.
    pub outside: Vec<(usize, Vec<String>)>,
    /// The names that it imports from modules below it, with the module of its folder.
    pub imports: BTreeMap<String, String>,
    /// Its words, each with the first line on which it is.
    pub words: BTreeMap<String, usize>,
    /// The paths of `use` that start with a name, as of another crate.
    pub named: Vec<Vec<String>>,
}

/// Scans the source of the module at `depth` below the crate's root: 1 for `gt`, 2 for `gt::power`.
pub fn scan(source: &str, depth: usize) -> File {
    let stream = source.parse().unwrap_or_else(|error| panic!("no Rust source: {error}"));
    let tokens = tokens(without_tests(stream));
    let word = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let mut file = File::default();
    // Nesting of braces, and its value at each open inline module.
    let (mut braces, mut inline) = (0_usize, Vec::new());
    // The paths of `use` that start with a name.
    let mut named = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        file.words.entry(word(i).to_owned()).or_insert(tokens[i].line);
        match word(i) {
            "mod" if word(i + 2) == ";" => file.modules.push(word(i + 1).to_owned()),
            "mod" if word(i + 2) == "{" => inline.push(braces),
            // `use<..>` of a type is no import.
            "use" if !matches!(word(i + 1), "crate" | "super" | "::" | "<") && inline.is_empty() => {
                let end = expand(&tokens, i + 1, &[], &mut named);
                if word(end) == "as"
                    && let Some(name) = named.last_mut().and_then(|path| path.last_mut())
                {
                    *name = word(end + 1).to_owned();
                }
            }
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                if inline.last() == Some(&braces) {
                    inline.pop();
                }
            }
            // A renamed root, whose name then begins paths, is reported as well.
            "crate" | "super" if matches!(word(i + 1), "::" | "as") => {
                let mut paths = Vec::new();
                let end = expand(&tokens, i, &[], &mut paths);
                for path in paths {
                    let supers = path.iter().take_while(|segment| *segment == "super").count();
                    let from_root = if path[0] == "crate" { 1 } else { supers };
                    let left = if path[0] == "crate" { depth } else { supers.saturating_sub(inline.len()).min(depth) };
                    if left == depth {
                        let name = path.get(from_root).cloned().unwrap_or_default();
                        file.uses.push((name, tokens[i].line, path.join("::")));
                    }
                    file.outside.push((left, path[from_root..].to_vec()));
                }
                i = end;
                continue;
            }
            _ => (),
        }
        i += 1;
    }
    file.named.clone_from(&named);
    for mut path in named {
        if path[0] == "self" {
            path.remove(0);
        }
        if let [module, .., name] = path.as_slice()
            && file.modules.contains(module)
        {
            // `self` in a group is the module before it.
            let name = if name == "self" { &path[path.len() - 2] } else { name };
            file.imports.insert(name.clone(), module.clone());
        }
    }
    file
}

/// Appends the paths of the tree that starts at `start`, such as `crate::{a, b::{c, d}}`. Returns the index after it.
fn expand(tokens: &[Token], start: usize, prefix: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let word = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let mut path = prefix.to_vec();
    let mut i = start;
    loop {
        if word(i) == "{" {
            i += 1;
            while !matches!(word(i), "}" | "") {
                i = expand(tokens, i, &path, paths);
                // A name after `as`, and the comma.
                while !matches!(word(i), "," | "}" | "") {
                    i += 1;
                }
                i += usize::from(word(i) == ",");
            }
            return i + 1;
        }
        if word(i) != "*" && !tokens.get(i).is_some_and(Token::is_word) {
            break;
        }
        path.push(word(i).to_owned());
        i += 1;
        if word(i) != "::" {
            break;
        }
        i += 1;
    }
    paths.push(path);
    i
}
