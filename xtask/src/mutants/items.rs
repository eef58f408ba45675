// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The Rust items of the production sources, by path: `memory::gam::Gam::ggtt_page`. A path has the modules within the
//! crate, for a method its type, and the name; it has neither crate nor file, so a row of the mutants survives a move. Only
//! paths of `arctic-gen6` begin with `gen6`, because families have modules and items of the same names, and those of
//! `arctic-afuc` with `afuc`, those of `arctic-eu` with `eu`, because they are independent of the card.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;

use anyhow::{Context, Result};
use arctic_source::without_tests;
use quote::ToTokens;
use syn::spanned::Spanned;

use super::tokens::{self, Token};
use crate::{git, root};

/// A source file.
pub struct Source {
    /// Path from the repository's root.
    pub path: String,
    pub text: String,
}

/// A function, constant, static, or use of a macro at the level of items.
pub struct Item {
    /// Index of its source.
    pub source: usize,
    /// Without its attributes and documentation.
    pub tokens: Vec<Token>,
    pub code: Code,
}

/// When the code of an item runs.
pub enum Code {
    /// At run time: the body of a function, with its braces.
    Function { body: Range<usize> },
    /// At run time, in a function that returns `impl Trait`: its two versions of a body would have different types, so a
    /// single expression has to be exchanged.
    Opaque { body: syn::Block },
    /// While compiling: constants, statics, `const fn`, macros.
    Constant,
}

/// The items of all packages with mutants.
#[derive(Default)]
pub struct Items {
    pub sources: Vec<Source>,
    by_path: BTreeMap<String, Vec<Item>>,
}

/// Directories of sources that may have mutants; the modules of a crate begin below `src/`.
const FOLDERS: &[&str] = &[
    "device-model/base/src",
    "device-model/gen6/src",
    "device-model/xehpg/src",
    "sriov/src",
    "src",
    "afuc/src",
    "eu/src",
];

/// First names of the paths of packages that share names of modules with others.
const NAMED: &[(&str, &str)] = &[("device-model/gen6/", "gen6"), ("afuc/", "afuc"), ("eu/", "eu")];

impl Items {
    /// Reads the sources of the checkout.
    pub fn read() -> Result<Self> {
        let mut items = Items::default();
        let mut arguments = vec!["ls-files", "--cached", "--others", "--exclude-standard"];
        arguments.extend(FOLDERS);
        for path in git(&arguments)? {
            let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
            if path.ends_with(".rs") && !is_test && root().join(&path).is_file() {
                let text = fs::read_to_string(root().join(&path)).with_context(|| format!("cannot read {path}"))?;
                items.add(path, text)?;
            }
        }
        Ok(items)
    }

    /// Adds a source file.
    pub fn add(&mut self, path: String, text: String) -> Result<()> {
        let stream = text.parse().map_err(syn::Error::from).with_context(|| format!("{path} is not Rust"))?;
        let file: syn::File = syn::parse2(without_tests(stream)).with_context(|| format!("{path} is not Rust"))?;
        let mut walk = Walk { items: self, source: 0, text: &text, modules: modules(&path) };
        walk.source = walk.items.sources.len();
        file.items.iter().try_for_each(|item| walk.item(item))?;
        self.sources.push(Source { path, text });
        Ok(())
    }

    /// The items with this path: several if two traits of one type have a method of this name.
    pub fn get(&self, path: &str) -> &[Item] {
        self.by_path.get(path).map_or(&[], Vec::as_slice)
    }

    /// Paths that end in the last name of `path`, and, if there are such, in its last two.
    pub fn like(&self, path: &str) -> Vec<&str> {
        let tail = |names: usize| path.rsplitn(names + 1, "::").take(names).collect::<Vec<_>>();
        let ends = |names: usize| {
            let alike = move |found: &&String| found.rsplitn(names + 1, "::").take(names).eq(tail(names));
            self.by_path.keys().filter(alike).map(String::as_str).collect::<Vec<_>>()
        };
        let both = ends(2);
        if both.is_empty() { ends(1) } else { both }
    }
}

/// The modules of a file within its crate.
fn modules(path: &str) -> Vec<String> {
    let within = path.split_once("src/").map_or(path, |(_, within)| within);
    let mut names: Vec<String> = within.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if names.last().is_some_and(|last| last == "mod" || last == "lib") {
        names.pop();
    }
    if let Some((_, name)) = NAMED.iter().find(|(folder, _)| path.starts_with(folder)) {
        names.insert(0, (*name).into());
    }
    names
}

/// The walk through one file.
struct Walk<'a> {
    items: &'a mut Items,
    source: usize,
    text: &'a str,
    modules: Vec<String>,
}

impl Walk<'_> {
    fn item(&mut self, item: &syn::Item) -> Result<()> {
        match item {
            syn::Item::Mod(module) => {
                let Some((_, content)) = &module.content else { return Ok(()) };
                self.modules.push(module.ident.to_string());
                content.iter().try_for_each(|item| self.item(item))?;
                self.modules.pop();
            }
            syn::Item::Fn(function) => {
                self.add(
                    &function.sig.ident.to_string(),
                    &function.attrs,
                    function,
                    code(&function.sig, &function.block),
                )?;
            }
            syn::Item::Const(constant) => {
                self.add(&constant.ident.to_string(), &constant.attrs, constant, Code::Constant)?;
            }
            syn::Item::Static(constant) => {
                self.add(&constant.ident.to_string(), &constant.attrs, constant, Code::Constant)?;
            }
            syn::Item::Macro(found) if found.ident.is_none() => {
                let name = found.mac.path.segments.last().map(|segment| segment.ident.to_string());
                self.add(&name.unwrap_or_default(), &found.attrs, found, Code::Constant)?;
            }
            syn::Item::Impl(found) => {
                let syn::Type::Path(of) = &*found.self_ty else { return Ok(()) };
                let of = of.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
                for item in &found.items {
                    match item {
                        syn::ImplItem::Fn(function) => {
                            let name = format!("{of}::{}", function.sig.ident);
                            self.add(&name, &function.attrs, function, code(&function.sig, &function.block))?;
                        }
                        syn::ImplItem::Const(constant) => {
                            self.add(&format!("{of}::{}", constant.ident), &constant.attrs, constant, Code::Constant)?;
                        }
                        _ => {}
                    }
                }
            }
            syn::Item::Trait(found) => {
                for item in &found.items {
                    if let syn::TraitItem::Fn(function) = item
                        && let Some(block) = &function.default
                    {
                        let name = format!("{}::{}", found.ident, function.sig.ident);
                        self.add(&name, &function.attrs, function, code(&function.sig, block))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, name: &str, attributes: &[syn::Attribute], item: &impl Spanned, code: Code) -> Result<()> {
        let range = item.span().byte_range();
        let start = attributes.iter().map(|attribute| attribute.span().byte_range().end).max();
        let at = start.unwrap_or(range.start)..range.end;
        let mut tokens = tokens::split(&self.text[at.clone()])?;
        for token in &mut tokens {
            token.at = token.at.start + at.start..token.at.end + at.start;
        }
        let path = self.modules.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("::");
        self.items.by_path.entry(path).or_default().push(Item { source: self.source, tokens, code });
        Ok(())
    }
}

fn code(signature: &syn::Signature, block: &syn::Block) -> Code {
    let opaque =
        |kind: &syn::Type| arctic_source::tokens(kind.to_token_stream()).iter().any(|token| token.text == "impl");
    match &signature.output {
        _ if signature.constness.is_some() => Code::Constant,
        syn::ReturnType::Type(_, kind) if opaque(kind) => Code::Opaque { body: block.clone() },
        _ => Code::Function { body: block.span().byte_range() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(path: &str, text: &str) -> Items {
        let mut items = Items::default();
        items.add(path.into(), text.into()).unwrap();
        items
    }

    #[test]
    fn paths_have_modules_types_and_names() {
        let text = "mod inner { impl<'a> Gam<'a> { fn page(&self) {} } }\nconst fn two() -> u32 { 2 }\nstatic TABLE: u32 = 1;\n\
                    commands! { 1 A; }\n#[cfg(test)] mod tests { fn hidden() {} }\nimpl Iterator for B { fn next(&mut self) {} }";
        let items = items("device-model/xehpg/src/memory/gam.rs", text);
        let paths: Vec<&str> = items.by_path.keys().map(String::as_str).collect();
        assert_eq!(
            paths,
            [
                "memory::gam::B::next",
                "memory::gam::TABLE",
                "memory::gam::commands",
                "memory::gam::inner::Gam::page",
                "memory::gam::two"
            ]
        );
        assert!(matches!(items.get("memory::gam::two")[0].code, Code::Constant));
        assert_eq!(items.like("gam::Gam::page"), ["memory::gam::inner::Gam::page"]);
    }

    #[test]
    fn paths_of_packages_with_the_same_modules_have_a_first_name() {
        let mut items = items("device-model/xehpg/src/gt.rs", "fn at() {}");
        items.add("device-model/gen6/src/gt.rs".into(), "fn at() {}".into()).unwrap();
        items.add("afuc/src/gt.rs".into(), "fn at() {}".into()).unwrap();
        assert_eq!(["gt::at", "gen6::gt::at", "afuc::gt::at"].map(|path| items.get(path).len()), [1; 3]);
    }

    #[test]
    fn documentation_is_not_part_of_an_item() {
        let items = items("src/lib.rs", "/// Adds 1.\n#[inline]\npub fn next(n: u32) -> u32 { n + 1 }");
        let item = &items.get("next")[0];
        assert_eq!(item.tokens[0].text, "pub");
        assert_eq!(&items.sources[0].text[item.tokens[0].at.clone()], "pub");
    }
}
