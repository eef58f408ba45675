// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Downloads signed packages with apt-get and unpacks them with dpkg-deb, in private directories. Requires neither root
//! nor access to the host's package database.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::mirror::Mirror;
use crate::path;
use crate::process::{self, find_program};
use crate::progress::Progress;

/// A private apt configuration for one or more suites of a mirror.
pub struct Apt {
    folder: TempDir,
    suite: String,
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
        let apt = Self { folder, suite: suites.last().copied().unwrap_or_default().to_owned() };
        let step = format!("reading Debian's package lists ({})", suites.join(", "));
        apt.run("apt-get", &["-o", "APT::Update::Error-Mode=any", "update"], &step, progress)?;
        Ok(apt)
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
        let step = format!("fetching {}", packages.join(", "));
        let mut arguments = match closure {
            true => vec!["-y", "--download-only", "-t", &self.suite, "install"],
            false => vec!["-t", &self.suite, "download"],
        };
        arguments.extend(packages);
        self.run("apt-get", &arguments, &step, progress)?;
        let archives = self.folder.path().join("cache/archives");
        let mut debs: Vec<PathBuf> = fs::read_dir(&archives)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        debs.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
        debs.sort();
        let versions = packages.iter().map(|package| {
            let name = package.split_once('=').map_or(*package, |(name, _)| name);
            let version = debs.iter().find_map(|deb| version_in_name(deb, name));
            version.with_context(|| format!("apt-get did not download the package {package}"))
        });
        let versions = versions.collect::<Result<Vec<String>>>()?;
        fs::create_dir_all(root)?;
        let step = format!("unpacking {}", packages.join(", "));
        for (number, deb) in debs.iter().enumerate() {
            progress.percent(&step, u8::try_from(number * 100 / debs.len()).unwrap_or(100));
            process::run_lines(Command::new("dpkg-deb").arg("-x").arg(deb).arg(root), "dpkg-deb", |_| ())?;
            fs::remove_file(deb)?;
        }
        for unused in ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian"] {
            // Not every package set contains all of these directories.
            let _ = fs::remove_dir_all(root.join(unused));
        }
        Ok(versions)
    }
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
    fn versions_come_from_file_names() {
        let deb = Path::new("/a/qemu-system-x86_1%3a11.1.3+ds-1~bpo13+1_amd64.deb");
        assert_eq!(version_in_name(deb, "qemu-system-x86").unwrap(), "1:11.1.3+ds-1~bpo13+1");
        assert_eq!(version_in_name(deb, "qemu"), None);
    }
}
