// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The components of a guest: QEMU, a kernel with its modules, busybox, depmod and IGT. Each is downloaded once or
//! supplied by the user.

mod apt;
mod kernel;
mod mirror;
mod pins;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, Lock};
use crate::process::{self, find_program};
use crate::progress::Progress;
use apt::Apt;
use mirror::Mirror;

pub use kernel::{Kernel, Suite};

/// The suite that provides QEMU and the kernel, preceded by the suite that provides their other dependencies.
const SUITES: &[&str] = &["trixie", "trixie-backports"];
const QEMU_MINIMUM: (u32, u32) = (11, 1);
/// Names under which the versions of the kernel's packages are recorded.
const KERNEL_PACKAGE: &str = "linux package";
const SOURCE_PACKAGE: &str = "linux source";
/// Programs for a build of modules, besides the compiler: the kernel's headers depend on that.
const BUILD_TOOLS: &[&str] =
    &["make", "dash", "bash", "coreutils", "sed", "grep", "findutils", "mawk", "diffutils", "tar", "xz-utils"];
/// The program and the driver of a media job, and their suite.
const MEDIA: &[&str] = &["ffmpeg", "intel-media-va-driver"];
const MEDIA_SUITES: &[&str] = &["trixie"];
/// OVMF's code and variables in one file, in the package ovmf.
const OVMF_FILE: &str = "usr/share/ovmf/OVMF.fd";
/// Library directory of an unpacked Debian tree.
pub const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// A component of Debian's packages, of which there are pinned versions.
struct Component {
    /// Name of its entry in the cache.
    name: &'static str,
    suites: &'static [&'static str],
    /// Whether its dependencies belong to it.
    closure: bool,
    /// Returns the names of its packages, without dependencies.
    packages: fn(&Apt) -> Result<Vec<String>>,
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
/// The components whose packages are in `pinned.tsv`.
const PINNED: [&Component; 5] = [&QEMU, &KERNEL, &TOOLS, &IGT, &OVMF];

/// The packages of the newest kernel 7.2, else of the newest 7.x.
fn kernel_packages(apt: &Apt) -> Result<Vec<String>> {
    let release = kernel::newest(&apt.names("linux-binary-7.")?, &apt.names("linux-modules-7.")?)
        .with_context(|| format!("{} has no kernel 7.x", SUITES.join(" and ")))?;
    Ok(["linux-binary", "linux-modules", "linux-base"].map(|part| format!("{part}-{release}")).into())
}

/// User-supplied components. Those that are `None` are downloaded from Debian.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// A bzImage; requires `modules`.
    pub kernel: Option<PathBuf>,
    /// `…/lib/modules/VERSION`, or a directory that contains `lib/modules/VERSION`.
    pub modules: Option<PathBuf>,
    /// The newest kernel of this suite instead of the default one. Not used with `kernel`.
    pub suite: Option<Suite>,
    /// UEFI firmware (OVMF) instead of QEMU's default, SeaBIOS.
    pub uefi: bool,
    /// QEMU 11.1 or later with vfio-user-pci.
    pub qemu: Option<PathBuf>,
    /// The mirror's newest packages instead of the pinned versions.
    pub newest: bool,
}

/// The program, arguments and environment with which QEMU is started.
#[derive(Clone, Debug, Default)]
pub struct Qemu {
    program: PathBuf,
    arguments: Vec<OsString>,
    module_folder: Option<PathBuf>,
}

impl Qemu {
    /// Returns a command with the arguments and environment that this QEMU needs to find its own files.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        if let Some(folder) = &self.module_folder {
            // Without this variable, a QEMU outside its installation prefix loads modules of another version and
            // aborts.
            command.env("QEMU_MODULE_DIR", folder);
        }
        command
    }

    /// The program itself, and the loader with its options if this QEMU is started through one.
    pub fn binary(&self) -> (&Path, Option<(&Path, &[OsString])>) {
        match self.arguments.iter().position(|argument| argument == "-L") {
            Some(end @ 1..) => (Path::new(&self.arguments[end - 1]), Some((&self.program, &self.arguments[..end - 1]))),
            _ => (&self.program, None),
        }
    }

    /// Returns the directories in which this QEMU looks for firmware, in its order.
    pub fn data_folders(&self) -> Result<Vec<PathBuf>> {
        let text = process::output(self.command().args(["-L", "help"]), "QEMU")?;
        Ok(text.lines().map(PathBuf::from).collect())
    }

    fn of_debian(root: &Path) -> Self {
        let arguments = [
            "--library-path".into(),
            root.join(LIBRARIES).into_os_string(),
            root.join("usr/bin/qemu-system-x86_64").into_os_string(),
            "-L".into(),
            root.join("usr/share/qemu").into_os_string(),
            "-L".into(),
            root.join("usr/share/seabios").into_os_string(),
        ];
        Self {
            program: root.join("usr/lib64/ld-linux-x86-64.so.2"),
            arguments: arguments.into(),
            module_folder: Some(root.join(LIBRARIES).join("qemu")),
        }
    }

    /// Checks the program's version and that it has the vfio-user-pci device.
    fn checked(self, name: &str) -> Result<(Self, String)> {
        let text = process::output(self.command().arg("--version"), name)?;
        let version =
            text.split_whitespace().skip_while(|word| *word != "version").nth(1).unwrap_or_default().to_owned();
        let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
        if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < QEMU_MINIMUM {
            bail!("{name} has version {version}, but the card needs {}.{} or later", QEMU_MINIMUM.0, QEMU_MINIMUM.1);
        }
        process::output(self.command().args(["-device", "vfio-user-pci,help"]), name)
            .with_context(|| format!("{name} has no vfio-user-pci device"))?;
        Ok((self, version))
    }
}

/// busybox and kmod's depmod.
#[derive(Clone, Debug)]
pub struct Tools {
    /// busybox, static or dynamically linked.
    pub busybox: PathBuf,
    depmod: Vec<OsString>,
}

impl Tools {
    /// Returns a command for kmod's depmod; busybox's depmod writes no binary indexes, which IGT requires.
    pub fn depmod(&self) -> Command {
        let mut command = Command::new(&self.depmod[0]);
        command.args(&self.depmod[1..]);
        command
    }

    fn of_debian(root: &Path) -> Self {
        let loader = root.join("usr/lib64/ld-linux-x86-64.so.2").into_os_string();
        let libraries = root.join(LIBRARIES).into_os_string();
        let kmod = root.join("usr/bin/kmod").into_os_string();
        // kmod is a multi-call binary that selects the command by argv[0].
        let depmod = vec![loader, "--library-path".into(), libraries, "--argv0".into(), "depmod".into(), kmod];
        Self { busybox: root.join("usr/bin/busybox"), depmod }
    }

    fn of_host() -> Option<Self> {
        Some(Self { busybox: find_program("busybox")?, depmod: vec![find_program("depmod")?.into()] })
    }
}

/// All components of a guest, with their versions for the report.
#[derive(Clone, Debug)]
pub struct Parts {
    /// QEMU.
    pub qemu: Qemu,
    /// Kernel image and modules.
    pub kernel: Kernel,
    /// Whether the kernel is user-supplied, or of a suite that the user has named.
    pub kernel_is_own: bool,
    /// UEFI firmware, if it was requested.
    pub uefi: Option<PathBuf>,
    /// Programs for the guest and for building its image.
    pub tools: Tools,
    /// Root of the unpacked IGT packages; `None` if QEMU and the kernel are user-supplied, the host has no apt, and IGT
    /// is not in the cache.
    pub igt: Option<PathBuf>,
    /// Versions by component, for the summary.
    pub versions: BTreeMap<String, String>,
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

/// Obtains each component from the user's options, else from the cache, else from Debian.
pub fn obtain(own: &Own, cache: &Cache, progress: &dyn Progress) -> Result<Parts> {
    let mut fetcher = Fetcher::new(cache, progress, own.newest);
    let mut versions = BTreeMap::new();
    let (qemu, uefi) = fetcher.qemu_and_firmware(own, &mut versions)?;
    let kernel = match (&own.kernel, &own.modules) {
        (Some(image), Some(modules)) => Kernel::own(image, modules)?,
        (None, None) => Kernel::of_debian(&match own.suite {
            Some(suite) => {
                fetcher.entry(suite.entry(), &mut versions, |fetcher, root| fetcher.kernel_of(suite, root))?
            }
            None => fetcher.entry("kernel", &mut versions, Fetcher::kernel)?,
        })?,
        (Some(_), None) => bail!("--kernel FILE needs its modules: add --modules DIR"),
        (None, Some(_)) => bail!("--modules DIR needs its kernel: add --kernel FILE"),
    };
    versions.insert("kernel".to_owned(), kernel.release.clone());
    // A host without apt is supported if QEMU and the kernel are user-supplied. The host's busybox and depmod are then
    // used.
    let all_own = own.qemu.is_some() && own.kernel.is_some() && find_program("apt-get").is_none();
    let tools = match Tools::of_host().filter(|_| all_own) {
        Some(tools) => tools,
        None => Tools::of_debian(&fetcher.entry("tools", &mut versions, Fetcher::tools)?),
    };
    let igt = match all_own && cache.entry(&fetcher.path("igt")).is_none() {
        true => None,
        false => Some(fetcher.entry("igt", &mut versions, Fetcher::igt)?),
    };
    let kernel_is_own = own.kernel.is_some() || own.suite.is_some();
    versions.extend(fetcher.summary().map(|summary| ("packages".to_owned(), summary)));
    Ok(Parts { qemu, kernel, kernel_is_own, uefi, tools, igt, versions })
}

/// Obtains QEMU alone, and UEFI firmware if `own` requests it, in the same way as [`obtain`].
pub fn qemu(own: &Own, cache: &Cache, progress: &dyn Progress) -> Result<(Qemu, Option<PathBuf>)> {
    let mut fetcher = Fetcher::new(cache, progress, own.newest);
    fetcher.qemu_and_firmware(own, &mut BTreeMap::new())
}

/// The files that modules of the downloaded kernel are built from.
#[derive(Clone, Debug)]
pub struct ModuleSources {
    /// The downloaded kernel.
    pub kernel: Kernel,
    /// Root of Debian's packages: the kernel's headers and source, and the compiler that the headers depend on.
    pub root: PathBuf,
    /// Versions of the packages.
    pub versions: BTreeMap<String, String>,
}

/// Obtains the downloaded kernel and the files to build its modules, from the cache or from Debian.
pub fn module_sources(cache: &Cache, progress: &dyn Progress) -> Result<ModuleSources> {
    let mut fetcher = Fetcher::new(cache, progress, false);
    let mut versions = BTreeMap::new();
    let kernel = Kernel::of_debian(&fetcher.entry("kernel", &mut versions, Fetcher::kernel)?)?;
    let root = fetcher.entry("module-sources", &mut versions, Fetcher::module_sources)?;
    let (kernel_version, version) = (&versions[KERNEL_PACKAGE], &versions[SOURCE_PACKAGE]);
    if kernel_version != version {
        bail!("the cache has the kernel {kernel_version} and the sources of {version}: remove {}", root.display());
    }
    Ok(ModuleSources { kernel, root, versions })
}

/// Obtains a root directory with ffmpeg and libva's driver for Intel GPUs, from the cache or from Debian. Its directories
/// `dev`, `proc`, `sys` and `tmp` are empty: a guest mounts file systems there.
pub fn media(cache: &Cache, progress: &dyn Progress) -> Result<PathBuf> {
    let mut fetcher = Fetcher::new(cache, progress, false);
    fetcher.entry("media", &mut BTreeMap::new(), Fetcher::media)
}

struct Fetcher<'a> {
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
    fn new(cache: &'a Cache, progress: &'a dyn Progress, newest: bool) -> Self {
        let (worlds, obtained) = (BTreeMap::new(), Vec::new());
        Fetcher { cache, progress, lock: None, worlds, newest, unpacked_pins: false, obtained }
    }

    /// Path in the cache of the component `name`.
    fn path(&self, name: &str) -> String {
        format!("parts/{}{name}", if self.newest { "newest-" } else { "" })
    }

    /// Which versions the components have: "pinned", or the components that have others. `None` without components.
    fn summary(&self) -> Option<String> {
        let others: Vec<&str> = self.obtained.iter().filter(|(_, pinned)| !pinned).map(|(name, _)| &**name).collect();
        match others.as_slice() {
            [] => (!self.obtained.is_empty()).then(|| "pinned".into()),
            others => Some(format!("not pinned: {}", others.join(", "))),
        }
    }

    /// Returns the root of the cached component `name`. If necessary, `fetch` unpacks it into a folder and returns its
    /// versions first. Adds the versions to `versions`.
    fn entry(
        &mut self,
        name: &str,
        versions: &mut BTreeMap<String, String>,
        fetch: impl FnOnce(&mut Self, &Path) -> Result<Vec<(String, String)>>,
    ) -> Result<PathBuf> {
        let path = self.path(name);
        if self.cache.entry(&path).is_none() && self.lock.is_none() {
            self.lock = Some(self.cache.lock(self.progress)?);
        }
        // Another process may have downloaded it before this one acquired the lock.
        let entry = match (self.cache.entry(&path), self.lock.take()) {
            (Some(entry), lock) => {
                self.lock = lock;
                entry
            }
            (None, None) => bail!("{path} was removed from the cache: run again"),
            (None, Some(lock)) => {
                let entry = self.cache.install(&lock, &path, |folder| {
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
        versions.extend(record.versions);
        self.obtained.push((name.to_owned(), record.pinned));
        Ok(entry.join("root"))
    }

    /// Returns QEMU and, if `own` requests it, UEFI firmware. Adds their versions to `versions`.
    fn qemu_and_firmware(
        &mut self,
        own: &Own,
        versions: &mut BTreeMap<String, String>,
    ) -> Result<(Qemu, Option<PathBuf>)> {
        let qemu = match &own.qemu {
            Some(program) => {
                let qemu = Qemu { program: program.clone(), arguments: Vec::new(), module_folder: None };
                let (qemu, version) = qemu.checked(&format!("the QEMU {}", program.display()))?;
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
    fn apt(&mut self, suites: &[&'static str]) -> Result<&Apt> {
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

    fn kernel(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let packages = self.unpack(&KERNEL, root)?;
        Ok(vec![(KERNEL_PACKAGE.into(), version_of(&packages, "linux-binary-")?)])
    }

    fn kernel_of(&mut self, suite: Suite, root: &Path) -> Result<Vec<(String, String)>> {
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
    fn module_sources(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
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

    fn tools(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let packages = self.unpack(&TOOLS, root)?;
        ["busybox-static", "kmod"].iter().map(|name| Ok(((*name).into(), version_of(&packages, name)?))).collect()
    }

    fn ovmf(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let packages = self.unpack(&OVMF, root)?;
        Ok(vec![("ovmf".into(), version_of(&packages, "ovmf")?)])
    }

    fn media(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
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

    fn igt(&mut self, root: &Path) -> Result<Vec<(String, String)>> {
        let packages = self.unpack(&IGT, root)?;
        Ok(vec![("igt".into(), version_of(&packages, "igt-gpu-tools-tests")?)])
    }
}

/// The version of the first package whose name begins with `name`.
fn version_of(packages: &[(String, String)], name: &str) -> Result<String> {
    let found = packages.iter().find(|(package, _)| package.starts_with(name));
    found.map(|(_, version)| version.clone()).with_context(|| format!("the packages of a component lack {name}"))
}

/// Returns the contents of `pinned.tsv` for the newest packages of the mirror.
pub fn newest_pins(cache: &Cache, progress: &dyn Progress) -> Result<String> {
    let lock = cache.lock(progress)?;
    let mut fetcher = Fetcher::new(cache, progress, true);
    let mut text = String::from(
        "# component, package, version, SHA-256; written by `cargo run -p arctic-guest-runner --example pins`\n",
    );
    for component in PINNED {
        let apt = fetcher.apt(component.suites)?;
        let packages = (component.packages)(apt)?;
        let names: Vec<&str> = packages.iter().map(String::as_str).collect();
        text += &pins::text(component.name, &apt.pins(&names, component.closure)?);
    }
    drop(lock);
    Ok(text)
}
