// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Intel's OpenCL and Level Zero drivers with their compiler, of Debian's packages, and the programs of the host that come
//! with them: `ocloc` and `mke2fs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::LIBRARIES;
use super::fetcher::Fetcher;
use crate::cache::Cache;
use crate::process;
use crate::progress::Progress;

/// The packages, without dependencies. Debian's other suites have none of the drivers.
pub(super) const PACKAGES: &[&str] = &[
    "intel-opencl-icd",
    "libze-intel-gpu1",
    "libigc2",
    "libigdfcl2",
    "libze1",
    "ocl-icd-libopencl1",
    "intel-ocloc",
    "clinfo",
    "e2fsprogs",
];
/// The suite that has them.
pub(super) const SUITE: &str = "sid";
/// Those whose versions are reported.
pub(super) const REPORTED: &[&str] = &["intel-opencl-icd", "libigc2", "libze1"];

/// Disk space in MiB that downloading, unpacking and the image take together.
const DISK_MIB: u64 = 1300;

/// The unpacked packages.
#[derive(Clone, Debug)]
pub struct ComputeStack {
    /// Root of the tree.
    pub root: PathBuf,
    /// Root of the user's packages with all their dependencies, whose files take precedence over those of `root`.
    pub additions: Option<PathBuf>,
    /// Versions of the drivers and of the compiler.
    pub versions: BTreeMap<String, String>,
    /// Whether all packages have the versions that are known to pass.
    pub pinned: bool,
}

/// Checks the name of a package, which becomes an argument of apt-get: Debian's policy has lowercase letters, digits and `+-.`.
/// Returns what is wrong with it as one sentence.
pub fn check_package(name: &str) -> Result<(), String> {
    let first = name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    let rest = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte));
    // apt-get removes a package whose name ends with a minus.
    match first && rest && name.len() > 1 && !name.ends_with(['-', '+']) {
        true => Ok(()),
        false => Err(format!("{name:?} is not the name of a Debian package, such as python3-pyopencl")),
    }
}

/// Obtains the packages from the cache or from Debian: the pinned versions, else the newest; only the newest with `newest`.
/// Also obtains `packages` of the same suite with their dependencies, in the newest versions.
pub fn compute(cache: &Cache, newest: bool, packages: &[String], progress: &dyn Progress) -> Result<ComputeStack> {
    let mut fetcher = Fetcher::new(cache, progress, newest);
    if cache.entry(&fetcher.path("compute")).is_none() {
        check_space(&cache.scratch()?)?;
    }
    let mut versions = BTreeMap::new();
    let root = fetcher.entry("compute", &mut versions, Fetcher::compute).context(
        "Intel's OpenCL and Level Zero drivers, which --compute needs, cannot be downloaded from Debian sid: check the \
         network, or set ARCTIC_DEBIAN_MIRROR to a mirror that has sid; once they are in the cache, no network is needed",
    )?;
    let pinned = fetcher.summary().is_some_and(|summary| summary == "pinned");
    let additions = match packages {
        [] => None,
        packages => {
            let (root, of_packages) = fetcher.additions(packages).with_context(|| {
                format!("the packages of --packages cannot be obtained from Debian {SUITE}: {}", packages.join(", "))
            })?;
            versions.extend(of_packages);
            Some(root)
        }
    };
    Ok(ComputeStack { root, additions, versions, pinned })
}

/// Fails if the cache's file system has too little space.
fn check_space(folder: &Path) -> Result<()> {
    let Ok(space) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = (space.f_bavail * space.f_frsize) >> 20;
    if free < DISK_MIB {
        bail!(
            "--compute needs {DISK_MIB} MiB for packages and image, but {} has {free} MiB: free space there, or set \
             ARCTIC_CACHE to a directory with space",
            folder.display()
        );
    }
    Ok(())
}

impl ComputeStack {
    /// Returns a command for a program of the packages, started through their loader.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(self.root.join("usr/lib64/ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(self.root.join(LIBRARIES)).arg(program);
        command
    }

    /// Returns a command for the offline compiler, whose program has its version in its name.
    pub fn ocloc(&self) -> Result<Command> {
        let name = self.ocloc_name()?;
        Ok(self.command(&self.root.join("usr/bin").join(name)))
    }

    /// The name of the offline compiler's program.
    pub fn ocloc_name(&self) -> Result<String> {
        let folder = self.root.join("usr/bin");
        let entries = std::fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
        let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.find(|name| name.starts_with("ocloc")).context("the package intel-ocloc has no program ocloc")
    }

    /// Returns a command that makes ext4 file systems.
    pub fn mke2fs(&self) -> Command {
        let mut command = self.command(&self.root.join("usr/sbin/mke2fs"));
        command.env("MKE2FS_CONFIG", self.root.join("etc/mke2fs.conf"));
        command
    }

    /// The line of the report about versions other than those that are known to pass.
    pub fn note(&self) -> Option<String> {
        (!self.pinned).then(|| {
            let [known, ..] = REPORTED else { return String::new() };
            let version = super::pins::of("compute").into_iter().find(|pin| pin.name == *known);
            let version = version.map_or("none".to_owned(), |pin| pin.version);
            format!("the drivers are not the last ones that are known to pass ({known} {version})")
        })
    }

    /// Runs the offline compiler with `arguments` in `folder`.
    pub fn run_ocloc(&self, arguments: &[String], folder: &Path) -> Result<()> {
        // Errors of the source are printed to stdout.
        let mut lines = Vec::new();
        let mut command = self.ocloc()?;
        let run = process::run_lines(command.args(arguments).current_dir(folder), "ocloc", |line| {
            lines.push(line.to_owned());
        });
        let error = lines.iter().find(|line| line.contains("error")).or(lines.last()).cloned().unwrap_or_default();
        run.with_context(|| format!("ocloc cannot build a kernel: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_of_other_versions_is_noted() {
        let stack = ComputeStack { root: "/r".into(), additions: None, versions: BTreeMap::new(), pinned: true };
        assert_eq!(stack.note(), None);
        let note = ComputeStack { pinned: false, ..stack }.note().unwrap();
        assert!(
            note.starts_with("the drivers are not the last ones that are known to pass (intel-opencl-icd 2"),
            "{note}"
        );
    }

    #[test]
    fn names_of_packages_are_checked_before_apt_sees_them() {
        for name in ["python3-pyopencl", "libstdc++6", "g++-14", "r-base-core", "llama.cpp"] {
            assert_eq!(check_package(name), Ok(()), "{name}");
        }
        for name in ["", "a", "-y", "--help", "Python", "a b", "a=1", "libc6-", "libc6+", "a/sid", "./a.deb"] {
            assert!(check_package(name).is_err_and(|error| error.contains("is not the name")), "{name}");
        }
    }

    #[test]
    fn programs_are_started_through_the_loader_of_their_packages() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("usr/bin")).unwrap();
        std::fs::write(folder.path().join("usr/bin/ocloc-1.2"), "").unwrap();
        let root = folder.path().to_owned();
        let stack = ComputeStack { root: root.clone(), additions: None, versions: BTreeMap::new(), pinned: true };
        let command = stack.ocloc().unwrap();
        assert_eq!(command.get_program(), root.join("usr/lib64/ld-linux-x86-64.so.2"));
        assert_eq!(command.get_args().last().unwrap(), root.join("usr/bin/ocloc-1.2"));
        assert!(stack.mke2fs().get_envs().any(|(name, _)| name == "MKE2FS_CONFIG"));
        let none = ComputeStack { root: "/none".into(), ..stack };
        assert!(none.ocloc().is_err());
    }
}
