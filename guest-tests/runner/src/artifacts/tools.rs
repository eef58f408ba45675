// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The programs that build the guest's image and run in it: those of the host, or of Debian's packages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::LIBRARIES;
use crate::process::find_program;

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

    pub(super) fn of_debian(root: &Path) -> Self {
        let loader = root.join("usr/lib64/ld-linux-x86-64.so.2").into_os_string();
        let libraries = root.join(LIBRARIES).into_os_string();
        let kmod = root.join("usr/bin/kmod").into_os_string();
        // kmod is a multi-call binary that selects the command by argv[0].
        let depmod = vec![loader, "--library-path".into(), libraries, "--argv0".into(), "depmod".into(), kmod];
        Self { busybox: root.join("usr/bin/busybox"), depmod }
    }

    pub(super) fn of_host() -> Option<Self> {
        Some(Self { busybox: find_program("busybox")?, depmod: vec![find_program("depmod")?.into()] })
    }
}
