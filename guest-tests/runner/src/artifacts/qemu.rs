// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The program QEMU: the user's, or that of Debian's packages, which is started through their loader.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::LIBRARIES;
use crate::process;

/// The first version with vfio-user-pci.
const QEMU_MINIMUM: (u32, u32) = (11, 1);

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

    /// The user's QEMU.
    pub(super) fn own(program: &Path) -> Self {
        Self { program: program.to_owned(), arguments: Vec::new(), module_folder: None }
    }

    pub(super) fn of_debian(root: &Path) -> Self {
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
    pub(super) fn checked(self, name: &str) -> Result<(Self, String)> {
        let text = process::output(self.command().arg("--version"), name)?;
        let version = version(&text).with_context(|| format!("{name} is not QEMU: check --qemu"))?.to_owned();
        let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
        if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < QEMU_MINIMUM {
            bail!("{name} has version {version}, but the card needs {}.{} or later", QEMU_MINIMUM.0, QEMU_MINIMUM.1);
        }
        process::output(self.command().args(["-device", "vfio-user-pci,help"]), name)
            .with_context(|| format!("{name} has no vfio-user-pci device"))?;
        Ok((self, version))
    }
}

/// The version in the output of `--version`.
fn version(text: &str) -> Option<&str> {
    text.strip_prefix("QEMU emulator version ")?.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_have_no_version_of_qemu() {
        assert_eq!(version("QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1)\nCopyright (c)"), Some("11.1.3"));
        for text in ["", "true (GNU coreutils) 9.1\nLicense GPLv3+: GNU GPL version 3 or later", "qemu-img version 9"] {
            assert_eq!(version(text), None, "{text}");
        }
    }
}
