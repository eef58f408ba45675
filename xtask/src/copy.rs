// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Copies of the repository in which files are changed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::{git, root};

/// Writes the repository's files, as they are in the work tree, to `folder`; those for which `changed` has a text get
/// that. Files that are already as they should be are not touched, so that cargo builds only the others.
pub fn write<'t>(folder: &Path, changed: impl Fn(&str) -> Option<&'t [u8]>) -> Result<()> {
    let files = git(&["ls-files", "--cached", "--others", "--exclude-standard"])?;
    let files: BTreeSet<String> =
        files.into_iter().filter(|path| root().join(path).symlink_metadata().is_ok()).collect();
    remove_others(folder, folder, &files)?;
    for path in &files {
        let (from, to) = (root().join(path), folder.join(path));
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        if from.is_symlink() {
            let target = fs::read_link(&from)?;
            if fs::read_link(&to).ok().as_ref() != Some(&target) {
                drop(fs::remove_file(&to));
                std::os::unix::fs::symlink(target, &to)?;
            }
            continue;
        }
        match changed(path) {
            Some(text) => write_if_other(&to, text)?,
            None => write_if_other(&to, &fs::read(&from).with_context(|| format!("cannot read {path}"))?)?,
        }
    }
    Ok(())
}

/// Removes files of the copy that the repository does not have.
fn remove_others(folder: &Path, top: &Path, files: &BTreeSet<String>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            remove_others(&path, top, files)?;
        } else if !path.strip_prefix(top).ok().and_then(Path::to_str).is_some_and(|path| files.contains(path)) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Writes `text` to `path`, unless the file has it.
pub fn write_if_other(path: &Path, text: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
