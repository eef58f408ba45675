// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The guest kernel: selects one of a suite's kernels, and locates its image and modules.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

/// The suite that provides QEMU and the kernel, preceded by the suite that provides their other dependencies.
pub(super) const SUITES: &[&str] = &["trixie", "trixie-backports"];

/// A kernel image with its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The bzImage.
    pub image: PathBuf,
    /// The modules directory, named after the release; contains `kernel/`.
    pub modules: PathBuf,
    /// The output of `uname -r` in the guest.
    pub release: String,
    /// Timer frequency in Hz (CONFIG_HZ); `None` if the kernel's configuration was not found.
    pub hz: Option<u32>,
    /// Files of the user in place of modules of the kernel, or in addition to them, by the module's name.
    pub own_modules: BTreeMap<String, PathBuf>,
}

impl Kernel {
    /// A user-supplied kernel. `modules` is `…/lib/modules/RELEASE`, or a directory that contains exactly one
    /// `lib/modules/RELEASE`.
    pub fn own(image: &Path, modules: &Path) -> Result<Self> {
        if !image.is_file() {
            bail!("the kernel {} is not a file", image.display());
        }
        let modules = match modules.join("lib/modules").is_dir() {
            true => only_folder(&modules.join("lib/modules"))?,
            false => fs::canonicalize(modules)
                .with_context(|| format!("the modules directory {} cannot be read", modules.display()))?,
        };
        let release = release(&modules)?;
        if !modules.join("modules.builtin").is_file() {
            bail!(
                "{} holds no modules: pass …/lib/modules/RELEASE as filled by `make modules_install`",
                modules.display()
            );
        }
        let image = fs::canonicalize(image)?;
        let hz = hz(&image, &modules, &release);
        Ok(Self { image, modules, release, hz, own_modules: BTreeMap::new() })
    }

    /// The kernel in unpacked packages of Debian: linux-binary and linux-modules, or linux-image of older suites.
    pub(super) fn of_debian(root: &Path) -> Result<Self> {
        let folders = ["usr/lib/modules", "lib/modules"].map(|folder| root.join(folder));
        let modules = only_folder(folders.iter().find(|folder| folder.is_dir()).unwrap_or(&folders[0]))?;
        let release = release(&modules)?;
        let images = [modules.join("vmlinuz"), root.join(format!("boot/vmlinuz-{release}"))];
        let image = images.into_iter().find(|image| image.is_file()).with_context(|| {
            format!("the packages of the kernel {release} contain no image: remove {}", root.display())
        })?;
        let hz = hz(&image, &modules, &release);
        Ok(Self { image, modules, release, hz, own_modules: BTreeMap::new() })
    }
}

/// The release that a directory of modules is named after.
fn release(modules: &Path) -> Result<String> {
    let name = modules.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).with_context(|| format!("{} is not named after a kernel's release", modules.display()))
}

/// Reads CONFIG_HZ from the kernel's configuration. The file is searched next to the modules (as in Debian and Fedora),
/// next to the image as `config-RELEASE`, and in the build tree of the modules or the image.
fn hz(image: &Path, modules: &Path, release: &str) -> Option<u32> {
    let beside = image.parent().map(|folder| folder.join(format!("config-{release}")));
    // The path is TREE/arch/x86/boot/bzImage.
    let tree = image.ancestors().nth(4).filter(|tree| image.starts_with(tree.join("arch/x86/boot")));
    let files = [
        Some(modules.join("config")),
        beside,
        Some(modules.join("build/.config")),
        tree.map(|tree| tree.join(".config")),
    ];
    files.into_iter().flatten().find_map(|file| hz_of(&fs::read_to_string(file).ok()?))
}

fn hz_of(config: &str) -> Option<u32> {
    let value = config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ="))?;
    value.trim().parse().ok().filter(|hz| (1..=10_000).contains(hz))
}

fn only_folder(parent: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(parent).with_context(|| format!("{} cannot be read", parent.display()))?;
    let folders: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    match folders.as_slice() {
        [folder] => Ok(fs::canonicalize(folder)?),
        _ => bail!("{} must contain the modules of one kernel, but contains {}", parent.display(), folders.len()),
    }
}

/// A Debian suite from which a kernel can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// Debian 12.
    Bookworm,
    /// Debian 13.
    Trixie,
    /// Newer packages for Debian 13.
    TrixieBackports,
    /// Debian's newest packages.
    Sid,
}

impl Suite {
    /// Its name, preceded by that of the suite that it is added to.
    pub(super) fn with_base(self) -> &'static [&'static str] {
        match self {
            Self::Bookworm => &["bookworm"],
            Self::Trixie => &["trixie"],
            Self::TrixieBackports => SUITES,
            Self::Sid => &["sid"],
        }
    }

    /// Name of its kernel in the cache.
    pub(super) fn entry(self) -> &'static str {
        match self {
            Self::Bookworm => "kernel-bookworm",
            Self::Trixie => "kernel-trixie",
            Self::TrixieBackports => "kernel-trixie-backports",
            Self::Sid => "kernel-sid",
        }
    }
}

/// Selects a release that has both packages: the newest 7.2, else the newest 7.x.
pub(super) fn newest(binaries: &[String], modules: &[String]) -> Option<String> {
    split_releases(binaries, modules)
        .filter_map(|release| Some((version(release)?, release)))
        .filter(|(version, _)| version.first() == Some(&7))
        .max_by_key(|(version, _)| (version.get(1) == Some(&2), version.clone()))
        .map(|(_, release)| release.to_owned())
}

/// Returns the packages of the newest kernel: `linux-binary`, `linux-modules` and `linux-base`, or one `linux-image` with
/// all.
pub(super) fn newest_packages(images: &[String], binaries: &[String], modules: &[String]) -> Option<Vec<String>> {
    let split = split_releases(binaries, modules).map(|release| (release, true));
    let images_only =
        images.iter().filter_map(|name| name.strip_prefix("linux-image-")).map(|release| (release, false));
    // Of two with one version, the last is taken: such an image package only depends on the three others.
    let all = images_only.chain(split).filter_map(|(release, split)| Some((version(release)?, release, split)));
    let (_, release, split) = all.max_by(|one, other| one.0.cmp(&other.0))?;
    let parts: &[&str] = if split { &["linux-binary", "linux-modules", "linux-base"] } else { &["linux-image"] };
    Some(parts.iter().map(|part| format!("{part}-{release}")).collect())
}

/// The releases that have both packages.
fn split_releases<'a>(binaries: &'a [String], modules: &'a [String]) -> impl Iterator<Item = &'a str> {
    let releases = binaries.iter().filter_map(|name| name.strip_prefix("linux-binary-"));
    releases.filter(|release| modules.iter().any(|name| name.strip_prefix("linux-modules-") == Some(release)))
}

/// Parses the version of a plain amd64 release such as `7.2.12+deb13-amd64` or `6.1.0-41-amd64`. Returns `None` for the
/// rt and cloud flavours.
fn version(release: &str) -> Option<Vec<u32>> {
    let numbers = release.strip_suffix("-amd64")?;
    let (numbers, suite) = numbers.split_once('+').unwrap_or((numbers, "deb"));
    let numbers: Option<Vec<u32>> = numbers.split(['.', '-']).map(|number| number.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() >= 3 && !suite.contains('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(prefix: &str, releases: &[&str]) -> Vec<String> {
        releases.iter().map(|release| format!("{prefix}{release}")).collect()
    }

    #[test]
    fn the_newest_7_2_wins_over_a_newer_series() {
        let releases = [
            "7.2.9+deb13-amd64",
            "7.2.12+deb13-amd64",
            "7.2.12+deb13-rt-amd64",
            "7.3.4+deb13-amd64",
            "7.2.13+deb13-amd64",
        ];
        let binaries = names("linux-binary-", &releases);
        // 7.2.13 has no modules package yet.
        let modules = names("linux-modules-", &releases[..4]);
        assert_eq!(newest(&binaries, &modules).unwrap(), "7.2.12+deb13-amd64");
    }

    #[test]
    fn older_suites_have_one_package_for_a_kernel() {
        let images = ["6.1.0-9-amd64", "6.1.0-41-amd64", "6.1.0-42-cloud-amd64", "6.1.0-43-amd64-unsigned", "amd64"];
        let packages = newest_packages(&names("linux-image-", &images), &[], &[]).unwrap();
        assert_eq!(packages, ["linux-image-6.1.0-41-amd64"]);
        let images = ["6.12.90+deb13-amd64", "7.2.12+deb13-amd64", "7.2.12+deb13-rt-amd64"];
        let split = ["7.2.12+deb13-amd64"];
        let [images, binaries, modules] =
            [names("linux-image-", &images), names("linux-binary-", &split), names("linux-modules-", &split)];
        let packages = newest_packages(&images, &binaries, &modules).unwrap();
        let parts = ["linux-binary", "linux-modules", "linux-base"].map(|part| format!("{part}-7.2.12+deb13-amd64"));
        assert_eq!(packages, parts);
        assert_eq!(newest_packages(&names("linux-image-", &["amd64", "cloud-amd64"]), &[], &[]), None);
    }

    #[test]
    fn the_newest_7_x_is_taken_when_7_2_has_gone() {
        let releases = ["7.9.1+deb13-amd64", "7.10.2+deb13-amd64", "7.10.3+deb13-cloud-amd64"];
        let chosen = newest(&names("linux-binary-", &releases), &names("linux-modules-", &releases));
        assert_eq!(chosen.unwrap(), "7.10.2+deb13-amd64");
        assert_eq!(newest(&[], &[]), None);
    }

    /// The configuration is found next to the modules, next to the image and in the build tree of either. Without a
    /// configuration the result is `None`.
    #[test]
    fn the_timers_frequency_is_in_the_kernels_configuration() {
        assert_eq!(hz_of("CONFIG_HZ_250=y\n# CONFIG_HZ_300 is not set\nCONFIG_HZ=250\n"), Some(250));
        assert_eq!((hz_of("CONFIG_HZ=0\n"), hz_of("CONFIG_HZ_250=y\n")), (None, None));
        for (file, image) in [
            ("lib/modules/7.2.0-dev/config", "bzImage"),
            ("boot/config-7.2.0-dev", "boot/vmlinuz"),
            ("lib/modules/7.2.0-dev/build/.config", "bzImage"),
            ("tree/.config", "tree/arch/x86/boot/bzImage"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            for path in [file, image, "lib/modules/7.2.0-dev/modules.builtin"] {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            let own = || Kernel::own(&folder.path().join(image), folder.path()).unwrap().hz;
            assert_eq!(own(), None, "{file}");
            fs::write(folder.path().join(file), "CONFIG_HZ=1000\n").unwrap();
            assert_eq!(own(), Some(1000), "{file}");
        }
    }

    #[test]
    fn own_modules_are_found_in_either_form() {
        let folder = tempfile::tempdir().unwrap();
        let modules = folder.path().join("lib/modules/7.2.0-dev");
        fs::create_dir_all(&modules).unwrap();
        let image = folder.path().join("bzImage");
        fs::write(&image, "").unwrap();
        assert!(Kernel::own(&image, folder.path()).unwrap_err().to_string().contains("holds no modules"));
        fs::write(modules.join("modules.builtin"), "").unwrap();
        assert_eq!(Kernel::own(&image, folder.path()).unwrap().release, "7.2.0-dev");
        assert_eq!(Kernel::own(&image, &modules).unwrap().release, "7.2.0-dev");
        assert!(Kernel::own(Path::new("/nowhere"), &modules).is_err());
    }
}
