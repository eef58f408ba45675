// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Makes a constant of each item of the documents in `docs/spec`, and of the tables in which packages assess items.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

#[path = "src/document.rs"]
#[allow(dead_code, reason = "the build script needs only names and numbers")]
mod document;

/// The documents, relative to the package.
const FOLDER: &str = "../docs/spec";

/// The tables, relative to the package, with rows `| AF-001 | ...`. A checkout need not have the packages.
const TABLES: &[&str] = &["../afuc/docs/items.md", "../eu/docs/items.md"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let mut texts = Vec::new();
    for entry in fs::read_dir(FOLDER)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            texts.push(fs::read_to_string(path)?);
        }
    }
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
    fs::write(Path::new(&folder).join("items.rs"), out)
}
