// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Finds the shared libraries of programs: through DT_NEEDED in an unpacked tree, and through the loader for host
//! programs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use goblin::elf::Elf;

use crate::process;

/// Returns the names of all libraries that `programs` need, directly or indirectly, with libraries looked up in
/// `folder`.
pub fn closure(programs: &[PathBuf], folder: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut todo = programs.to_vec();
    while let Some(path) = todo.pop() {
        for name in needed(&path)? {
            if names.insert(name.clone()) {
                todo.push(folder.join(name));
            }
        }
    }
    Ok(names)
}

fn needed(path: &Path) -> Result<Vec<String>> {
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    if !bytes.starts_with(b"\x7fELF") {
        // Scripts need no libraries.
        return Ok(Vec::new());
    }
    let elf = Elf::parse(&bytes).with_context(|| format!("{} is a corrupt ELF file", path.display()))?;
    Ok(elf.libraries.iter().map(|name| name.to_string()).collect())
}

/// A host program with its dynamic loader and libraries.
#[derive(PartialEq, Eq)]
pub struct HostProgram {
    /// The program without the sections that are not loaded, mostly debug information.
    pub loadable: Vec<u8>,
    /// Its dynamic loader; `None` for a static program.
    pub loader: Option<PathBuf>,
    /// The libraries as resolved by the loader: required name and file on this host.
    pub libraries: Vec<(String, PathBuf)>,
}

impl HostProgram {
    /// Runs the program's dynamic loader with `--list` to resolve its libraries.
    pub fn of(program: &Path) -> Result<Self> {
        let (loadable, loader) = read(program)?;
        match loader {
            Some(loader) => Self::resolved(program, loadable, loader, &[]),
            None => Ok(Self { loadable, loader: None, libraries: Vec::new() }),
        }
    }

    /// Like [`Self::of`], for a program that `loader` starts with `options`, such as its library path.
    pub fn started_by(loader: &Path, options: &[OsString], program: &Path) -> Result<Self> {
        let (loadable, _) = read(program)?;
        Self::resolved(program, loadable, loader.to_owned(), options)
    }

    fn resolved(program: &Path, loadable: Vec<u8>, loader: PathBuf, options: &[OsString]) -> Result<Self> {
        let mut command = Command::new(&loader);
        let listing = process::output(command.args(options).arg("--list").arg(program), "the dynamic loader")?;
        Ok(Self { loadable, loader: Some(loader), libraries: libraries(&listing) })
    }
}

/// Returns the loaded part of `program`, and the dynamic loader that it names.
fn read(program: &Path) -> Result<(Vec<u8>, Option<PathBuf>)> {
    let bytes = fs::read(program).with_context(|| format!("{} cannot be read", program.display()))?;
    let elf = Elf::parse(&bytes).with_context(|| format!("{} is not an ELF program", program.display()))?;
    let loadable = loadable(&bytes, &elf).with_context(|| format!("{} is a corrupt ELF file", program.display()))?;
    Ok((loadable, elf.interpreter.map(PathBuf::from)))
}

/// Returns a program truncated after its last loaded byte. The section headers are removed, since they are not needed
/// at run time. Their fields are at the offsets of `Elf64_Ehdr`.
fn loadable(bytes: &[u8], elf: &Elf<'_>) -> Option<Vec<u8>> {
    const SECTION_HEADERS: std::ops::Range<usize> = 0x28..0x30;
    const SECTION_COUNTS: std::ops::Range<usize> = 0x3c..0x40;
    let ends = elf.program_headers.iter().map(|header| header.p_offset.checked_add(header.p_filesz));
    let end = ends.collect::<Option<Vec<u64>>>()?.into_iter().max()?;
    let mut loadable = bytes.get(..usize::try_from(end).ok()?)?.to_owned();
    if elf.is_64 {
        loadable.get_mut(SECTION_HEADERS)?.fill(0);
        loadable.get_mut(SECTION_COUNTS)?.fill(0);
    }
    Some(loadable)
}

/// Parses the `name => /path (0x…)` lines of a loader's `--list` output.
fn libraries(listing: &str) -> Vec<(String, PathBuf)> {
    let line = |line: &str| {
        let (name, rest) = line.trim().split_once(" => ")?;
        let path = rest.rsplit_once(" (").map_or(rest, |(path, _)| path);
        // The loader is listed by path; it is added separately.
        (!name.contains('/')).then(|| (name.to_owned(), PathBuf::from(path)))
    };
    listing.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use super::*;

    #[test]
    fn the_running_tests_own_libraries_are_found() {
        let program = std::env::current_exe().unwrap();
        let host = HostProgram::of(&program).unwrap();
        assert!(host.loader.as_ref().is_some_and(|loader| loader.is_file()), "{:?}", host.libraries);
        assert!(
            host.libraries.iter().any(|(name, path)| name.starts_with("libc.so") && path.is_file()),
            "{:?}",
            host.libraries
        );
        let (_, libc) = host.libraries.iter().find(|(name, _)| name.starts_with("libc.so")).unwrap();
        let names = closure(&[program], libc.parent().unwrap()).unwrap();
        assert!(names.contains("libc.so.6") && names.iter().any(|name| name.starts_with("ld-linux")), "{names:?}");
    }

    /// The truncated program still runs and lists the same tests.
    #[test]
    fn the_loadable_part_of_a_program_runs() {
        use std::os::unix::fs::PermissionsExt;
        let program = std::env::current_exe().unwrap();
        let host = HostProgram::of(&program).unwrap();
        assert!(host.loadable.len() < fs::metadata(&program).unwrap().len() as usize);
        let folder = tempfile::tempdir().unwrap();
        let short = folder.path().join("short");
        fs::write(&short, &host.loadable).unwrap();
        fs::set_permissions(&short, fs::Permissions::from_mode(0o755)).unwrap();
        // Started through the loader, which opens the file for reading, so that a concurrent fork in another test
        // cannot cause ETXTBSY.
        let mut command = Command::new(host.loader.unwrap());
        let listing = process::output(command.arg(&short).arg("--list"), "the short program").unwrap();
        assert!(listing.contains("the_loadable_part_of_a_program_runs: test"), "{listing}");
    }

    #[test]
    fn loader_listings_are_read() {
        let text =
            "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x y/libc.so.6 (0x2)\n\t/lib64/ld.so => /usr/ld.so (0x3)\n";
        assert_eq!(libraries(text), [("libc.so.6".to_owned(), PathBuf::from("/lib/x y/libc.so.6"))]);
    }
}
