// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The components of a guest: QEMU, a kernel with its modules, busybox, depmod and IGT. Each is downloaded once or
//! supplied by the user.

mod apt;
mod compute;
mod fetcher;
mod kernel;
mod mirror;
pub mod modules;
mod pins;
mod qemu;
mod tools;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::cache::Cache;
use crate::process::find_program;
use crate::progress::Progress;
use fetcher::{Fetcher, KERNEL_PACKAGE, PINNED, SOURCE_PACKAGE};

pub use compute::{ComputeStack, check_package, compute};
pub use kernel::{Kernel, Suite};
pub use qemu::Qemu;
pub use tools::Tools;

/// Library directory of an unpacked Debian tree.
pub const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// User-supplied components. Those that are `None` are downloaded from Debian.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// A bzImage; requires `modules`.
    pub kernel: Option<PathBuf>,
    /// `…/lib/modules/VERSION`, or a directory that contains `lib/modules/VERSION`.
    pub modules: Option<PathBuf>,
    /// Modules, files that replace those of their names or are added to them. They must be built for the kernel.
    pub own_modules: Vec<PathBuf>,
    /// The newest kernel of this suite instead of the default one. Not used with `kernel`.
    pub suite: Option<Suite>,
    /// UEFI firmware (OVMF) instead of QEMU's default, SeaBIOS.
    pub uefi: bool,
    /// QEMU 11.1 or later with vfio-user-pci.
    pub qemu: Option<PathBuf>,
    /// The mirror's newest packages instead of the pinned versions.
    pub newest: bool,
}

/// All components of a guest, with their versions for the report.
#[derive(Clone, Debug)]
pub struct Parts {
    /// QEMU.
    pub qemu: Qemu,
    /// Kernel image and modules.
    pub kernel: Kernel,
    /// Whether the kernel or a module is user-supplied, or the kernel of a suite that the user has named.
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

/// Obtains each component from the user's options, else from the cache, else from Debian.
pub fn obtain(own: &Own, cache: &Cache, progress: &dyn Progress) -> Result<Parts> {
    let mut fetcher = Fetcher::new(cache, progress, own.newest);
    let mut versions = BTreeMap::new();
    let (qemu, uefi) = fetcher.qemu_and_firmware(own, &mut versions)?;
    let mut kernel = match (&own.kernel, &own.modules) {
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
    kernel.own_modules = modules::of_files(&kernel, &own.own_modules)?;
    versions.insert("kernel".to_owned(), kernel.release.clone());
    let files = kernel.own_modules.iter().map(|(name, file)| (format!("module {name}"), file.display().to_string()));
    versions.extend(files);
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
    let kernel_is_own = own.kernel.is_some() || own.suite.is_some() || !own.own_modules.is_empty();
    versions.extend(fetcher.summary().map(|summary| ("packages".to_owned(), summary)));
    Ok(Parts { qemu, kernel, kernel_is_own, uefi, tools, igt, versions })
}

/// Obtains QEMU alone, and UEFI firmware if `own` requests it, in the same way as [`obtain`].
pub fn qemu(own: &Own, cache: &Cache, progress: &dyn Progress) -> Result<(Qemu, Option<PathBuf>)> {
    let mut fetcher = Fetcher::new(cache, progress, own.newest);
    fetcher.qemu_and_firmware(own, &mut BTreeMap::new())
}

/// Obtains busybox alone, from the cache or from Debian.
pub fn busybox(cache: &Cache, newest: bool, progress: &dyn Progress) -> Result<PathBuf> {
    let mut fetcher = Fetcher::new(cache, progress, newest);
    Ok(Tools::of_debian(&fetcher.entry("tools", &mut BTreeMap::new(), Fetcher::tools)?).busybox)
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
