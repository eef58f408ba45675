// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Generates the version that `arctic --version` prints.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    // Cargo runs it again if a file changes that `commit` names; without one, if this file changes.
    println!("cargo::rerun-if-changed=build.rs");
    let commit = env::var_os("CARGO_MANIFEST_DIR").and_then(|package| commit(Path::new(&package)));
    let commit = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo::rustc-env=ARCTIC_VERSION={}{commit}", env!("CARGO_PKG_VERSION"));
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
