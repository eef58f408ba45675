// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Builds i915 with its self-tests from Debian's source, in Debian's own packages: no compiler of the host is used. Only
//! the module is built, against the headers of the kernel that the guest boots.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::artifacts::{self, ModuleSources};
use crate::cache::Cache;
use crate::process::{self, find_program};
use crate::progress::Progress;

const BUILD: &str = include_str!("build.sh");
const SUPPORT: &str = include_str!("support.h");
/// Number of builds that the cache keeps.
const KEPT: usize = 2;
/// Programs of the host that set up the build's namespaces, with their Debian packages.
const PROGRAMS: &[(&str, &str)] = &[("unshare", "util-linux"), ("mount", "mount"), ("chroot", "coreutils")];

/// The guest's kernel with an i915 that has self-tests.
#[derive(Debug)]
pub struct Built {
    /// The bzImage.
    pub image: PathBuf,
    /// Directory with `lib/modules/RELEASE`.
    pub modules: PathBuf,
    /// The module.
    pub i915: PathBuf,
}

/// Returns the modules of the downloaded kernel, with i915 replaced. They are built if the cache does not have them.
pub fn modules(cache: &Cache, progress: &dyn Progress) -> Result<Built> {
    let sources = artifacts::module_sources(cache, progress)?;
    let name = format!("selftests/{}", key(&sources.versions));
    let entry = match cache.entry(&name) {
        Some(entry) => entry,
        None => {
            let lock = cache.lock(progress)?;
            match cache.entry(&name) {
                Some(entry) => entry,
                None => {
                    cache.forget_oldest("selftests", KEPT - 1);
                    progress.print_line("building i915 with its self-tests, about 5 CPU minutes");
                    let scratch = cache.scratch()?;
                    cache.install(&lock, &name, |folder| build(&sources, folder, &scratch))?
                }
            }
        }
    };
    let modules = entry.join("lib/modules").join(&sources.kernel.release);
    Ok(Built { image: sources.kernel.image, i915: modules.join("updates/i915.ko"), modules: entry })
}

/// Everything that determines the built modules.
fn key(versions: &BTreeMap<String, String>) -> String {
    let mut hash = Sha256::new();
    for (name, version) in versions {
        hash.update(format!("{name} {version}\n"));
    }
    hash.update(BUILD);
    hash.update(SUPPORT);
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Builds the modules in `scratch` and writes the kernel's modules directory, with links to its other files, to
/// `folder`.
fn build(sources: &ModuleSources, folder: &Path, scratch: &Path) -> Result<()> {
    let missing: Vec<&str> =
        PROGRAMS.iter().filter(|(program, _)| find_program(program).is_none()).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        bail!("a build of kernel modules needs the Debian packages {}: install them", missing.join(", "));
    }
    let release = &sources.kernel.release;
    let work = tempfile::tempdir_in(scratch)?;
    fs::write(work.path().join("build.sh"), BUILD)?;
    fs::write(work.path().join("support.h"), SUPPORT)?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["sh", "build.sh", "enter"]).arg(&sources.root).arg(release).arg(work.path());
    let mut log = String::new();
    let result = process::run_lines(command.current_dir(work.path()), "the build of i915", |line| {
        log.push_str(line);
        log.push('\n');
    });
    if let Err(error) = result {
        let path = std::env::temp_dir().join("arctic-selftests-build.log");
        fs::write(&path, log)?;
        return Err(error).with_context(|| {
            format!("building needs root or unprivileged user namespaces; the compiler's output: {}", path.display())
        });
    }
    let target = folder.join("lib/modules").join(release);
    link(&sources.kernel.modules, &target)?;
    fs::create_dir(target.join("updates"))?;
    for name in ["i915.ko", "prime_numbers.ko"] {
        fs::copy(work.path().join(name), target.join("updates").join(name)).with_context(|| name.to_owned())?;
    }
    Ok(())
}

/// Links the files of `from` into a new directory `to`, with the same subdirectories, except the kernel's own i915.
fn link(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("{} cannot be read", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            link(&entry.path(), &target)?;
        } else if !entry.file_name().to_string_lossy().starts_with("i915.ko") {
            symlink(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Returns the groups of live self-tests in the module's parameters `igt__LINE__live_NAME`, in order of their lines.
pub fn groups(module: &[u8]) -> Vec<(u32, String)> {
    let parameters = module.split(|byte| *byte == 0).filter_map(|text| {
        let name = std::str::from_utf8(text).ok()?.strip_prefix("parmtype=igt__")?.strip_suffix(":bool")?;
        let (line, name) = name.split_once("__live_")?;
        Some((line.parse().ok()?, name.to_owned()))
    });
    let mut groups: Vec<_> = parameters.collect();
    groups.sort();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_in_the_order_of_their_lines() {
        let module = b"\x7fELF\0parmtype=igt__17__live_uncore:bool\0parmtype=igt__9__mock_x:bool\0license=GPL\0\
            parmtype=igt__16__live_sanitycheck:bool\0parmtype=live_selftests:int\0";
        assert_eq!(groups(module), [(16, "sanitycheck".into()), (17, "uncore".into())]);
    }

    /// The directories of the modules are real, which the image's search for modules requires, and the files links.
    #[test]
    fn i915_is_left_out_of_the_linked_modules() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("kernel/i915")).unwrap();
        for name in ["modules.builtin", "kernel/i915/i915.ko.xz", "kernel/i915/kvmgt.ko.xz"] {
            fs::write(from.join(name), name).unwrap();
        }
        link(&from, &to).unwrap();
        assert!(!to.join("kernel").is_symlink() && !to.join("kernel/i915/i915.ko.xz").exists());
        assert_eq!(fs::read_to_string(to.join("kernel/i915/kvmgt.ko.xz")).unwrap(), "kernel/i915/kvmgt.ko.xz");
    }

    /// Another kernel version is another build.
    #[test]
    fn the_key_depends_on_the_versions() {
        let versions = |version: &str| BTreeMap::from([("linux source".to_owned(), version.to_owned())]);
        assert_eq!(key(&versions("7.2.12-1")), key(&versions("7.2.12-1")));
        assert_ne!(key(&versions("7.2.12-1")), key(&versions("7.2.13-1")));
    }
}
