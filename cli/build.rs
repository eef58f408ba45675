// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Generates the index of tests and code that name items of the documents, which `arctic fidelity` uses instead of the
//! source tree, and the version that `arctic --version` prints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

// A build script runs before the library is built and cannot link to it, so it includes the sources.
#[path = "src/fidelity/hash.rs"]
mod hash;
#[path = "src/fidelity/index.rs"]
#[allow(dead_code, reason = "the program parses the index, the build script only writes it")]
mod index;
#[path = "src/fidelity/scan.rs"]
mod scan;

/// Directory of the IGT lists that guest tests run, relative to the repository root.
const LISTS: &str = "cli/tests/igt";

/// Excluded sources: the report's own sources, the macros, `xtask` and tests of its output name items only as examples,
/// which proves nothing.
const OWN: [&str; 6] = [
    "cli/src/fidelity/",
    "cli/src/commands/fidelity.rs",
    "cli/tests/fidelity.rs",
    "cli/tests/serve/output.rs",
    "fidelity/",
    "xtask/",
];

/// Directory of the package with links to the sources of the other packages, at their paths from the repository root. A
/// package of crates.io has the sources themselves there, because cargo follows links.
const OTHERS: &str = "scanned";

fn main() -> io::Result<()> {
    let variable = |name| env::var_os(name).map(PathBuf::from).ok_or_else(|| io::Error::other("not run by cargo"));
    let package = variable("CARGO_MANIFEST_DIR")?;
    let mut files = BTreeMap::new();
    for folder in ["src", "tests", "benches"] {
        gather(&package.join(folder), &format!("cli/{folder}/"), &mut files)?;
    }
    gather(&package.join(OTHERS), "", &mut files)?;
    let commit = commit(&package).map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo::rustc-env=ARCTIC_VERSION={}{commit}", env!("CARGO_PKG_VERSION"));
    let mut index = scan::index(&files);
    let sources = files.iter().filter(|(path, _)| path.ends_with(".rs"));
    index.hashes = sources.map(|(path, text)| (path.clone(), hash::hash(text.as_bytes()))).collect();
    fs::write(variable("OUT_DIR")?.join("fidelity-index.txt"), index.to_string())
}

/// Reads all sources and IGT lists below `folder` (at `prefix` from the repository root) and registers their
/// directories with cargo as triggers for rebuilds. The files are keyed by path from the repository root.
fn gather(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let from_root = format!("{prefix}{name}");
        if path.is_dir() {
            gather(&path, &format!("{from_root}/"), files)?;
            continue;
        }
        let is_list = from_root.starts_with(LISTS) && name.ends_with(".txt");
        if (name.ends_with(".rs") || is_list) && !OWN.iter().any(|own| from_root.starts_with(own)) {
            files.insert(from_root, fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// Returns the abbreviated commit of the checkout that has this package, in the directory `package`, as `cli/`; `None`
/// if the sources are not in a git checkout. Registers the files that git writes on every change of HEAD, also in a
/// linked worktree, with cargo as triggers for rebuilds.
fn commit(package: &Path) -> Option<String> {
    const ARGUMENTS: [&str; 8] =
        ["rev-parse", "--show-prefix", "--git-path", "HEAD", "--git-path", "logs/HEAD", "--short", "HEAD"];
    let output = Command::new("git").args(ARGUMENTS).current_dir(package).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    // The prefix is another one if the sources are a subfolder of another repository.
    let ["cli/", head, log, commit] = text.lines().collect::<Vec<_>>()[..] else { return None };
    // HEAD changes when another branch is checked out; its reflog also changes with each commit. Files that do not
    // exist, such as a disabled reflog, are skipped, because cargo would rebuild every time.
    for file in [head, log].iter().filter(|file| package.join(file).exists()) {
        println!("cargo::rerun-if-changed={file}");
    }
    Some(commit.to_owned())
}
