// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The downloaded components: their packages, and their entries in the cache.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::apt::Apt;
use super::kernel::{self, Kernel, SUITES, Suite};
use super::mirror::Mirror;
use super::qemu::Qemu;
use super::{Own, compute, pins};
use crate::cache::{Cache, Lock};
use crate::progress::Progress;

/// Names under which the versions of the kernel's packages are recorded.
pub(super) const KERNEL_PACKAGE: &str = "linux package";
pub(super) const SOURCE_PACKAGE: &str = "linux source";
/// Programs for a build of modules, besides the compiler: the kernel's headers depend on that.
const BUILD_TOOLS: &[&str] =
    &["make", "dash", "bash", "coreutils", "sed", "grep", "findutils", "mawk", "diffutils", "tar", "xz-utils"];
/// The program and the driver of a media job, and their suite.
const MEDIA: &[&str] = &["ffmpeg", "intel-media-va-driver"];
const MEDIA_SUITES: &[&str] = &["trixie"];
/// Number of sets of the user's packages in the cache.
const KEPT_ADDITIONS: usize = 2;
/// OVMF's code and variables in one file, in the package ovmf.
const OVMF_FILE: &str = "usr/share/ovmf/OVMF.fd";

/// A component of Debian's packages, of which there are pinned versions.
pub(super) struct Component {
    /// Name of its entry in the cache.
    pub(super) name: &'static str,
    pub(super) suites: &'static [&'static str],
    /// Whether its dependencies belong to it.
    pub(super) closure: bool,
    /// Returns the names of its packages, without dependencies.
    pub(super) packages: fn(&Apt) -> Result<Vec<String>>,
}

const QEMU: Component =
    Component { name: "qemu", suites: SUITES, closure: true, packages: |_| Ok(vec!["qemu-system-x86".into()]) };
const KERNEL: Component = Component { name: "kernel", suites: SUITES, closure: false, packages: kernel_packages };
const TOOLS: Component = Component {
    name: "tools",
    suites: SUITES,
    closure: true,
    packages: |_| Ok(vec!["busybox-static".into(), "kmod".into()]),
};
const IGT: Component = Component {
    name: "igt",
    suites: &["sid"],
    closure: true,
    packages: |_| Ok(vec!["igt-gpu-tools".into(), "igt-gpu-tools-tests".into()]),
};
const OVMF: Component =
    Component { name: "ovmf", suites: SUITES, closure: false, packages: |_| Ok(vec!["ovmf".into()]) };
const COMPUTE: Component = Component {
    name: "compute",
    suites: &[compute::SUITE],
    closure: true,
    packages: |_| Ok(compute::PACKAGES.iter().map(|name| (*name).into()).collect()),
};
/// The components whose packages are in `pinned.tsv`.
pub(super) const PINNED: [&Component; 6] = [&QEMU, &KERNEL, &TOOLS, &IGT, &OVMF, &COMPUTE];

/// The packages of the newest kernel 7.2, else of the newest 7.x.
fn kernel_packages(apt: &Apt) -> Result<Vec<String>> {
    let release = kernel::newest(&apt.names("linux-binary-7.")?, &apt.names("linux-modules-7.")?)
        .with_context(|| format!("{} has no kernel 7.x", SUITES.join(" and ")))?;
    Ok(["linux-binary", "linux-modules", "linux-base"].map(|part| format!("{part}-{release}")).into())
}

/// Metadata of a downloaded cache entry.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    versions: BTreeMap<String, String>,
    /// Whether all packages have the pinned versions.
    #[serde(default)]
    pinned: bool,
}

impl Record {
    const FILE: &str = "versions.json";

    fn of(entry: &Path) -> Result<Self> {
        let path = entry.join(Self::FILE);
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is corrupt: remove {}", path.display(), entry.display()))
    }
}

/// Obtains components from the cache, or downloads them into it.
pub(super) struct Fetcher<'a> {
    cache: &'a Cache,
    progress: &'a dyn Progress,
    lock: Option<Lock>,
    /// Package lists read so far, by suite.
    worlds: BTreeMap<&'static str, Apt>,
    /// Whether the newest packages are taken instead of the pinned ones.
    newest: bool,
    /// Whether the packages that were unpacked last are the pinned ones.
    unpacked_pins: bool,
    /// The components obtained so far, with whether they have the pinned versions.
    obtained: Vec<(String, bool)>,
}

impl<'a> Fetcher<'a> {
    pub(super) fn new(cache: &'a Cache, progress: &'a dyn Progress, newest: bool) -> Self {
        let (worlds, obtained) = (BTreeMap::new(), Vec::new());
        Fetcher { cache, progress, lock: None, worlds, newest, unpacked_pins: false, obtained }
    }

    /// Path in the cache of the component `name`.
    pub(super) fn path(&self, name: &str) -> String {
        format!("parts/{}{name}", if self.newest { "newest-" } else { "" })
    }

    /// Which versions the components have: "pinned", or the components that have others. `None` without components.
    pub(super) fn summary(&self) -> Option<String> {
        let others: Vec<&str> = self.obtained.iter().filter(|(_, pinned)| !pinned).map(|(name, _)| &**name).collect();
        match others.as_slice() {
            [] => (!self.obtained.is_empty()).then(|| "pinned".into()),
            others => Some(format!("not pinned: {}", others.join(", "))),
        }
    }

    /// Returns the root of the cached component `name`. If necessary, `fetch` unpacks it into a folder and returns its
    /// versions first. Adds the versions to `versions`.
    pub(super) fn entry(
        &mut self,
        name: &str,
        versions: &mut BTreeMap<String, String>,
        fetch: impl FnOnce(&mut Self, &Path) -> Result<Vec<(String, String)>>,
    ) -> Result<PathBuf> {
        let (root, record) = self.cached(&self.path(name), fetch)?;
        versions.extend(record.versions);
        self.obtained.push((name.to_owned(), record.pinned));
        Ok(root)
    }

    /// Returns the root and the record of the cache's entry `path`, which `fetch` fills first if there is none.
    fn cached(
        &mut self,
        path: &str,
        fetch: impl FnOnce(&mut Self, &Path) -> Result<Vec<(String, String)>>,
    ) -> Result<(PathBuf, Record)> {
        if self.cache.entry(path).is_none() && self.lock.is_none() {
            self.lock = Some(self.cache.lock(self.progress)?);
        }
        // Another process may have downloaded it before this one acquired the lock.
        let entry = match (self.cache.entry(path), self.lock.take()) {
            (Some(entry), lock) => {
                self.lock = lock;
                entry
            }
            (None, None) => bail!("{path} was removed from the cache: run again"),
            (None, Some(lock)) => {
                let entry = self.cache.install(&lock, path, |folder| {
                    self.unpacked_pins = false;
                    let versions = fetch(self, &folder.join("root"))?.into_iter().collect();
                    let record = Record { versions, pinned: self.unpacked_pins };
                    Ok(fs::write(folder.join(Record::FILE), serde_json::to_string_pretty(&record)?)?)
                })?;
                self.lock = Some(lock);
                entry
            }
        };
        let record = Record::of(&entry)?;
        Ok((entry.join("root"), record))
    }

    /// Returns QEMU and, if `own` requests it, UEFI firmware. Adds their versions to `versions`.
    pub(super) fn qemu_and_firmware(
        &mut self,
        own: &Own,
        versions: &mut BTreeMap<String, String>,
    ) -> Result<(Qemu, Option<PathBuf>)> {
        let qemu = match &own.qemu {
            Some(program) => {
                let (qemu, version) = Qemu::own(program).checked(&format!("the QEMU {}", program.display()))?;
                versions.insert("qemu".to_owned(), version);
                qemu
            }
            None => Qemu::of_debian(&self.entry("qemu", versions, Self::qemu)?),
        };
        let uefi = own.uefi.then(|| self.entry("ovmf", versions, Self::ovmf)).transpose()?;
        Ok((qemu, uefi.map(|root| root.join(OVMF_FILE))))
    }

    /// Unpacks the pinned packages of `component` into `root`, or the mirror's newest, if these are to be taken or if the
    /// mirror does not have the pinned ones. Returns the packages with their versions.
    fn unpack(&mut self, component: &Component, root: &Path) -> Result<Vec<(String, String)>> {
        let (progress, newest) = (self.progress, self.newest);
        let pins = if newest { Vec::new() } else { pins::of(component.name) };
        let apt = self.apt(component.suites)?;
        if !pins.is_empty() && apt.unpack_pinned(&pins, root, progress)? {
            self.unpacked_pins = true;
            return Ok(pins.into_iter().map(|pin| (pin.name, pin.version)).collect());
        }
        let failed = || format!("the pinned packages of {} are not in the mirror", component.name);
        if !newest {
            progress.print_line(&format!("{}: its newest are taken", failed()));
        }
        let obtain = || -> Result<Vec<(String, String)>> {
            apt.check_up_to_date()?;
            let packages = (component.packages)(apt)?;
            let names: Vec<&str> = packages.iter().map(String::as_str).collect();
            let versions = apt.unpack(&names, component.closure, root, progress)?;
            Ok(packages.into_iter().zip(versions).collect())
        };
        if newest { obtain() } else { obtain().with_context(failed) }
    }

    /// Returns the private apt configuration for `suites`, creating it on first use.
    pub(super) fn apt(&mut self, suites: &[&'static str]) -> Result<&Apt> {
        let suite = suites.last().copied().unwrap_or_default();
        match self.worlds.entry(suite) {
            Entry::Occupied(world) => Ok(world.into_mut()),
            Entry::Vacant(place) => {
                Ok(place.insert(Apt::new(&self.cache.scratch()?, &Mirror::of_host()?, suites, self.progress)?))
            }
        }
    }

    fn qemu(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let packages = self.unpack(&QEMU, root)?;
        let (_, version) = Qemu::of_debian(root).checked("Debian's QEMU")?;
        let package = version_of(&packages, "qemu-system-x86")?;
        Ok(vec![("qemu".into(), format!("{version} (qemu-system-x86 {package})"))])
    }

    pub(super) fn kernel(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let packages = self.unpack(&KERNEL, root)?;
        Ok(vec![(KERNEL_PACKAGE.into(), version_of(&packages, "linux-binary-")?)])
    }

    pub(super) fn kernel_of(&mut self, suite: Suite, root: &Path) -> Result<Vec<(String, String)>> {
        let progress = self.progress;
        let apt = self.apt(suite.with_base())?;
        apt.check_up_to_date()?;
        let [images, binaries, modules] =
            ["linux-image-", "linux-binary-", "linux-modules-"].map(|prefix| apt.names(prefix));
        let packages = kernel::newest_packages(&images?, &binaries?, &modules?)
            .with_context(|| format!("{} has no kernel", suite.with_base().join(" and ")))?;
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        let versions = apt.unpack(&packages, false, root, progress)?;
        Ok(vec![(KERNEL_PACKAGE.into(), versions[0].clone())])
    }

    /// Source and headers of the kernel in the cache, and the programs that its build runs.
    pub(super) fn module_sources(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let (cache, progress) = (self.cache, self.progress);
        let entry = cache.entry("parts/kernel").context("the kernel was removed from the cache: run again")?;
        let release = Kernel::of_debian(&entry.join("root"))?.release;
        let versions = Record::of(&entry)?.versions;
        let version = versions.get(KERNEL_PACKAGE).context("the version of the cached kernel is not recorded")?;
        let series: Vec<&str> = release.split('.').take(2).collect();
        let kernel =
            [format!("linux-source-{}={version}", series.join(".")), format!("linux-headers-{release}={version}")];
        let mut packages: Vec<&str> = kernel.iter().map(String::as_str).collect();
        packages.extend(BUILD_TOOLS);
        let unpacked = self.apt(SUITES)?.unpack(&packages, true, root, progress).with_context(|| {
            format!("the mirror may no longer have the kernel {version}: remove {} to get a newer one", entry.display())
        })?;
        Ok(vec![(SOURCE_PACKAGE.into(), unpacked[0].clone())])
    }

    pub(super) fn tools(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let packages = self.unpack(&TOOLS, root)?;
        ["busybox-static", "kmod"].iter().map(|name| Ok(((*name).into(), version_of(&packages, name)?))).collect()
    }

    fn ovmf(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let packages = self.unpack(&OVMF, root)?;
        Ok(vec![("ovmf".into(), version_of(&packages, "ovmf")?)])
    }

    pub(super) fn media(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let progress = self.progress;
        let apt = self.apt(MEDIA_SUITES)?;
        apt.check_up_to_date()?;
        let versions = apt.unpack(MEDIA, true, root, progress)?;
        for folder in ["dev", "proc", "sys", "tmp"] {
            fs::create_dir_all(root.join(folder))?;
        }
        // Debian's base-files makes these links in its script, which is not run here.
        for link in ["bin", "lib", "lib64"] {
            if !root.join(link).exists() {
                symlink(Path::new("usr").join(link), root.join(link))?;
            }
        }
        Ok(MEDIA.iter().map(|package| (*package).to_owned()).zip(versions).collect())
    }

    pub(super) fn compute(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let packages = self.unpack(&COMPUTE, root)?;
        compute::REPORTED.iter().map(|name| Ok(((*name).into(), version_of(&packages, name)?))).collect()
    }

    /// Obtains `packages` of the suite of the compute stack with all dependencies, from the cache or the newest of the mirror.
    /// Returns their root and their versions.
    pub(super) fn additions(&mut self, packages: &[String]) -> Result<(PathBuf, BTreeMap<String, String>)> {
        let names: BTreeSet<&str> = packages.iter().map(String::as_str).collect();
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        let path = format!("packages/{:016x}", hasher.finish());
        let (root, record) = self.cached(&path, |fetcher, root| {
            fetcher.cache.forget_oldest("packages", KEPT_ADDITIONS - 1);
            let progress = fetcher.progress;
            let apt = fetcher.apt(&[compute::SUITE])?;
            apt.check_up_to_date()?;
            let names: Vec<&str> = names.into_iter().collect();
            let versions = apt.unpack(&names, true, root, progress)?;
            Ok(names.into_iter().map(str::to_owned).zip(versions).collect())
        })?;
        Ok((root, record.versions))
    }

    pub(super) fn igt(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let packages = self.unpack(&IGT, root)?;
        Ok(vec![("igt".into(), version_of(&packages, "igt-gpu-tools-tests")?)])
    }
}

/// The version of the first package whose name begins with `name`.
fn version_of(packages: &[(String, String)], name: &str) -> Result<String> {
    let found = packages.iter().find(|(package, _)| package.starts_with(name));
    found.map(|(_, version)| version.clone()).with_context(|| format!("the packages of a component lack {name}"))
}
