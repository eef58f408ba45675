// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Builds the index of tests and code that name items of the documents, so that `arctic fidelity` needs no source tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[path = "src/fidelity/index.rs"]
#[allow(dead_code, reason = "the program reads the index, the build script only writes it")]
mod index;
#[path = "src/fidelity/scan.rs"]
mod scan;

/// The directory of the IGT lists that guest tests run, from the repository's root.
const LISTS: &str = "tests/igt";

/// Excluded sources: those of the report itself name items as examples, which is no proof.
const OWN: [&str; 3] = ["src/fidelity/", "src/cli/fidelity.rs", "tests/fidelity.rs"];

fn main() -> io::Result<()> {
    let variable = |name| env::var_os(name).map(PathBuf::from).ok_or_else(|| io::Error::other("not run by cargo"));
    let root = variable("CARGO_MANIFEST_DIR")?;
    let mut files = BTreeMap::new();
    gather(&root, &root, &mut files)?;
    fs::write(variable("OUT_DIR")?.join("fidelity-index.txt"), scan::index(&files).to_string())
}

/// Reads all sources and IGT lists below `folder`, by path from `root`, and registers their directories with cargo for
/// rebuilds.
fn gather(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    let mut watched = false;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                gather(root, &path, files)?;
            }
            continue;
        }
        let from_root = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let is_list = from_root.starts_with(LISTS) && name.ends_with(".txt");
        // Cargo watches a directory with all its contents: the root is skipped because it contains the build output.
        if folder == root || !(name.ends_with(".rs") || is_list) {
            continue;
        }
        if !watched {
            println!("cargo::rerun-if-changed={}", folder.display());
            watched = true;
        }
        if !OWN.iter().any(|own| from_root.starts_with(own)) {
            files.insert(from_root, fs::read_to_string(&path)?);
        }
    }
    Ok(())
}
