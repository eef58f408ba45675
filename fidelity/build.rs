// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Makes a constant of each item of the documents in `docs/spec`, and of the tables in which packages assess items, and the list of the
//! documents' texts.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

#[path = "src/document.rs"]
#[allow(dead_code, reason = "the build script needs only names and numbers")]
mod document;

/// The documents, relative to the package.
const FOLDER: &str = "docs/spec";

/// The tables, relative to the package, with rows `| AF-001 | ...`. A checkout need not have the packages.
const TABLES: &[&str] = &["../afuc/docs/items.md", "../eu/docs/items.md"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let mut paths: Vec<_> = fs::read_dir(FOLDER)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    let texts: Vec<String> = paths.iter().map(fs::read_to_string).collect::<io::Result<_>>()?;
    let documents = document::Document::parse_all(texts.iter().map(String::as_str)).map_err(io::Error::other)?;
    let mut items: Vec<(String, u16)> = Vec::new();
    for document::Document { name, rules, .. } in documents {
        items.extend(rules.iter().map(|rule| (name.clone(), rule.number)));
    }
    for path in TABLES.iter().filter(|path| Path::new(path).is_file()) {
        println!("cargo::rerun-if-changed={path}");
        let table = fs::read_to_string(path)?;
        let ids = table.lines().filter_map(|line| document::id(line.strip_prefix("| ")?));
        items.extend(ids.map(|(name, number, _)| (name.to_owned(), number)));
    }
    let mut out = String::new();
    for (name, number) in &items {
        let _ = write!(
            out,
            "/// Item `{name}-{number:03}`.\n\
             pub const {name}_{number:03}: Item = Item {{ document: {name:?}, number: {number} }};\n"
        );
    }
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("not run by cargo"))?;
    fs::write(Path::new(&folder).join("items.rs"), out)?;
    let package = env::current_dir()?;
    let mut list = "/// The documents.\nconst TEXTS: &[&str] = &[\n".to_owned();
    for path in &paths {
        let _ = writeln!(list, "    include_str!({:?}),", package.join(path));
    }
    fs::write(Path::new(&folder).join("texts.rs"), list + "];\n")
}
