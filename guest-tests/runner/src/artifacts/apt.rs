// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Downloads signed packages with apt-get and unpacks them with dpkg-deb, in private directories. Requires neither root
//! nor access to the host's package database.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::mirror::{ACCEPT, MIRROR, Mirror, OUTDATED};
use crate::path;
use crate::process::{self, find_program};
use crate::progress::Progress;

/// A private apt configuration for one or more suites of a mirror.
pub struct Apt {
    folder: TempDir,
    suite: String,
    /// If the mirror's lists are not valid at this time, and the user does not accept that: apt's message.
    outdated: Option<String>,
}

/// A package that is downloaded with this version and contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Name of the package.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of the package's file, in lowercase hexadecimal.
    pub sha256: String,
}

impl Pin {
    /// The package as an argument of apt-get.
    fn argument(&self) -> String {
        format!("{}={}", self.name, self.version)
    }
}

impl Apt {
    /// Creates a private apt configuration in `parent` and downloads the package lists of `suites`. The last suite is
    /// the target release (`apt-get -t`). The directories are removed on drop.
    pub fn new(parent: &Path, mirror: &Mirror, suites: &[&str], progress: &dyn Progress) -> Result<Self> {
        for program in ["apt-get", "apt-cache", "dpkg-deb"] {
            if find_program(program).is_none() {
                bail!("{program} is not installed; without it, --qemu, --kernel and --modules are required");
            }
        }
        let folder = TempDir::with_prefix_in("apt-", parent)?;
        for part in ["etc/preferences.d", "etc/trusted.gpg.d", "state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.path().join(part))?;
        }
        fs::write(folder.path().join("state/status"), "")?;
        let mut sources = Vec::new();
        for suite in suites {
            sources.extend_from_slice(b"deb [");
            sources.extend_from_slice(path::assigned("signed-by", &mirror.keyring).as_bytes());
            sources.extend_from_slice(format!("] {} {suite} main\n", mirror.uri).as_bytes());
        }
        fs::write(folder.path().join("etc/sources.list"), sources)?;
        let suite = suites.last().copied().unwrap_or_default().to_owned();
        let mut apt = Self { folder, suite, outdated: None };
        let step = format!("reading Debian's package lists ({})", suites.join(", "));
        let update = ["-o", "APT::Update::Error-Mode=any", "update"];
        // Lists that are not valid at this time serve for pinned packages, whose contents are known.
        let at_any_time = [&["-o", "Acquire::Check-Valid-Until=false", "-o", "Acquire::Check-Date=false"], &update[..]];
        let checks = if mirror.accepts_outdated { at_any_time.concat() } else { update.to_vec() };
        if let Err(error) = apt.run("apt-get", &checks, &step, progress) {
            apt.outdated = outdated(&format!("{error:#}"));
            if apt.outdated.is_none() {
                return Err(error.context(format!(
                    "the Debian mirror {} has no lists that can be read ({MIRROR} names another one)",
                    mirror.uri
                )));
            }
            apt.run("apt-get", &at_any_time.concat(), &step, progress)?;
        }
        Ok(apt)
    }

    /// Fails if the newest packages of the mirror may be old ones.
    pub fn check_up_to_date(&self) -> Result<()> {
        match &self.outdated {
            None => Ok(()),
            Some(message) => bail!(
                "the Debian mirror is out of date, or this host's clock is wrong ({message}): set {MIRROR} to the URL of a \
                 current mirror or of a snapshot, or {OUTDATED}={ACCEPT} to take the newest packages of this one"
            ),
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let option = |name: &str, value: &str| path::assigned(name, Path::new(value));
        let path = |name: &str, part: &str| path::assigned(name, &self.folder.path().join(part));
        let options = [
            path("Dir::Etc", "etc"),
            path("Dir::Etc::sourcelist", "etc/sources.list"),
            option("Dir::Etc::sourceparts", "/dev/null"),
            path("Dir::State", "state"),
            path("Dir::State::status", "state/status"),
            path("Dir::Cache", "cache"),
            option("APT::Architecture", "amd64"),
            option("APT::Architectures", "amd64"),
            option("APT::Default-Release", ""),
            option("APT::Install-Recommends", "0"),
            option("APT::Get::List-Cleanup", "0"),
            // The directories belong to the current user; apt's sandbox user could not write to them.
            option("APT::Sandbox::User", "root"),
            option("Acquire::Languages", "none"),
            option("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false"),
            option("Acquire::Retries", "3"),
            option("Acquire::http::Timeout", "30"),
            option("Debug::NoLocking", "1"),
            option("APT::Status-Fd", "1"),
        ];
        for option in &options {
            command.arg("-o").arg(option);
        }
        command
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .current_dir(self.folder.path().join("cache/archives"));
        command
    }

    fn run(&self, program: &str, arguments: &[&str], step: &str, progress: &dyn Progress) -> Result<()> {
        progress.percent(step, 0);
        process::run_lines(self.command(program).arg("-q").args(arguments), program, |line| {
            if let Some(percent) = percent_of(line) {
                progress.percent(step, percent);
            }
        })
        .with_context(|| format!("{step} failed"))
    }

    /// Returns all package names that start with `prefix`.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>> {
        let text = process::output(self.command("apt-cache").args(["pkgnames", prefix]), "apt-cache")?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Downloads exactly the packages in `pins` and unpacks them into `root`. Returns false, without a download, if the
    /// mirror does not have one of them with this version and contents.
    pub fn unpack_pinned(&self, pins: &[Pin], root: &Path, progress: &dyn Progress) -> Result<bool> {
        let arguments: Vec<String> = pins.iter().map(Pin::argument).collect();
        let arguments: Vec<&str> = std::iter::once("download").chain(arguments.iter().map(String::as_str)).collect();
        // apt-get fails if a version is unknown, and verifies what it downloads by the lists' hashes.
        let Ok(offered) = self.uris(&arguments) else { return Ok(false) };
        if !pins.iter().all(|pin| offered.contains(pin)) {
            return Ok(false);
        }
        let names: Vec<&str> = pins.iter().map(|pin| pin.name.as_str()).collect();
        self.run("apt-get", &arguments, &step_of("fetching", &names), progress)?;
        self.unpack_archives(&self.archives()?, &step_of("unpacking", &names), root, progress)?;
        Ok(true)
    }

    /// Returns the packages that [`Apt::unpack`] would download, as pins.
    pub fn pins(&self, packages: &[&str], closure: bool) -> Result<Vec<Pin>> {
        let named = self.uris(&self.arguments(packages, closure))?;
        // Only for `download` apt prints the SHA-256 of each package.
        let exact: Vec<String> = named.iter().map(Pin::argument).collect();
        let exact: Vec<&str> = std::iter::once("download").chain(exact.iter().map(String::as_str)).collect();
        self.uris(&exact)
    }

    /// Returns the packages that apt-get would download; with empty hashes, if it does not print them.
    fn uris(&self, arguments: &[&str]) -> Result<Vec<Pin>> {
        let text = process::output(self.command("apt-get").args(["-q", "--print-uris"]).args(arguments), "apt-get")?;
        Ok(text.lines().filter_map(pin_of).collect())
    }

    /// The arguments of apt-get that download `packages`.
    fn arguments<'a>(&'a self, packages: &[&'a str], closure: bool) -> Vec<&'a str> {
        let mut arguments = match closure {
            true => vec!["-y", "--download-only", "-t", &self.suite, "install"],
            false => vec!["-t", &self.suite, "download"],
        };
        arguments.extend(packages);
        arguments
    }

    /// Downloads `packages` (`NAME` or `NAME=VERSION`), including all their dependencies if `closure` is set, and unpacks
    /// them into `root`.
    /// Returns the versions of `packages`, in order.
    pub fn unpack(
        &self,
        packages: &[&str],
        closure: bool,
        root: &Path,
        progress: &dyn Progress,
    ) -> Result<Vec<String>> {
        self.run("apt-get", &self.arguments(packages, closure), &step_of("fetching", packages), progress)?;
        let debs = self.archives()?;
        let versions = packages.iter().map(|package| {
            let name = package.split_once('=').map_or(*package, |(name, _)| name);
            let version = debs.iter().find_map(|deb| version_in_name(deb, name));
            version.with_context(|| format!("apt-get did not download the package {package}"))
        });
        let versions = versions.collect::<Result<Vec<String>>>()?;
        self.unpack_archives(&debs, &step_of("unpacking", packages), root, progress)?;
        Ok(versions)
    }

    /// The downloaded packages, sorted.
    fn archives(&self) -> Result<Vec<PathBuf>> {
        let archives = fs::read_dir(self.folder.path().join("cache/archives"))?;
        let mut debs: Vec<PathBuf> = archives.filter_map(|entry| Some(entry.ok()?.path())).collect();
        debs.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
        debs.sort();
        Ok(debs)
    }

    /// Unpacks the packages into `root`, without their documentation, and removes them.
    fn unpack_archives(&self, debs: &[PathBuf], step: &str, root: &Path, progress: &dyn Progress) -> Result<()> {
        fs::create_dir_all(root)?;
        for (number, deb) in debs.iter().enumerate() {
            progress.percent(step, u8::try_from(number * 100 / debs.len()).unwrap_or(100));
            process::run_lines(Command::new("dpkg-deb").arg("-x").arg(deb).arg(root), "dpkg-deb", |_| ())?;
            fs::remove_file(deb)?;
        }
        for unused in ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian"] {
            // Not every package set contains all of these directories.
            let _ = fs::remove_dir_all(root.join(unused));
        }
        Ok(())
    }
}

/// Text of a step: the first packages by name, and how many there are besides.
fn step_of(what: &str, packages: &[&str]) -> String {
    const NAMED: usize = 4;
    match packages.len().saturating_sub(NAMED) {
        0 => format!("{what} {}", packages.join(", ")),
        more => format!("{what} {} and {more} more", packages[..NAMED].join(", ")),
    }
}

/// Returns apt's message if it says that the lists are not valid at this time.
fn outdated(error: &str) -> Option<String> {
    let start = error
        .find("Release file for ")
        .filter(|_| ["is expired (", "is not valid yet ("].iter().any(|reason| error.contains(reason)))?;
    let sentence = &error[start..];
    Some(sentence.split_once(". ").map_or(sentence, |(sentence, _)| sentence).to_owned())
}

/// Parses a line of `apt-get --print-uris` for a package: `'URI' FILE BYTES SHA256:HASH`. The hash is empty if the line has
/// another or none.
fn pin_of(line: &str) -> Option<Pin> {
    let (_, rest) = line.strip_prefix('\'')?.split_once("' ")?;
    let sha256 = rest.rsplit_once(" SHA256:").map_or("", |(_, hash)| hash).to_owned();
    let file = rest.split(' ').next()?;
    let name = file.split_once('_')?.0.to_owned();
    let version = version_in_name(Path::new(file), &name)?;
    Some(Pin { name, version, sha256 })
}

/// Parses the percentage from a line of apt's status protocol, e.g. `dlstatus:3:0.8484:Retrieving file 3 of 73`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0 to 100")]
fn percent_of(line: &str) -> Option<u8> {
    let percent: f32 = line.strip_prefix("dlstatus:")?.split(':').nth(1)?.parse().ok()?;
    Some(percent.clamp(0.0, 100.0) as u8)
}

/// Returns the version from a file name `package_version_architecture.deb`, or `None` if it is the name of a
/// different package.
fn version_in_name(deb: &Path, package: &str) -> Option<String> {
    let rest = deb.file_name()?.to_str()?.strip_prefix(package)?.strip_prefix('_')?;
    // The colon after an epoch is escaped in file names.
    Some(rest.rsplit_once('_')?.0.replace("%3a", ":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_status_lines_give_percentages() {
        assert_eq!(percent_of("dlstatus:10:19.8456:Retrieving file 10 of 73"), Some(19));
        assert_eq!(percent_of("Get:1 somewhere"), None);
    }

    #[test]
    fn pins_are_read_from_the_uris_that_apt_prints() {
        let line =
            "'http://mirror.example/debian/pool/q/x_1%3a2.0%2bds-1_amd64.deb' x_1%3a2.0+ds-1_amd64.deb 7 SHA256:0a1b";
        let pin = Pin { name: "x".into(), version: "1:2.0+ds-1".into(), sha256: "0a1b".into() };
        assert_eq!((pin_of(line), pin.argument()), (Some(pin.clone()), "x=1:2.0+ds-1".into()));
        assert_eq!(pin_of("Reading package lists..."), None);
        assert_eq!(pin_of("'u' x_1_amd64.deb 7 MD5Sum:0a").unwrap().sha256, "");
    }

    /// The messages of apt 2.6 and 3.0.
    #[test]
    fn lists_that_are_not_valid_at_this_time_are_recognised() {
        let file = "Release file for http://mirror.example/debian/dists/sid/InRelease";
        for reason in ["is expired (invalid since 19d 4h)", "is not valid yet (invalid for another 5h 3s)"] {
            let error = format!("apt-get failed: {file} {reason}. Updates for this repository will not be applied.");
            assert_eq!(outdated(&error), Some(format!("{file} {reason}")));
        }
        assert_eq!(outdated("apt-get failed: Release file for x is missing"), None);
        assert_eq!(outdated("apt-get failed: Could not resolve host"), None);
    }

    #[test]
    fn versions_come_from_file_names() {
        let deb = Path::new("/a/qemu-system-x86_1%3a11.1.3+ds-1~bpo13+1_amd64.deb");
        assert_eq!(version_in_name(deb, "qemu-system-x86").unwrap(), "1:11.1.3+ds-1~bpo13+1");
        assert_eq!(version_in_name(deb, "qemu"), None);
    }
}
