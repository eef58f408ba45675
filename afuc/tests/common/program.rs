// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The program `afuc`, and a directory for its files.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Address of the first command buffer of [`Directory::trace`].
pub const BUFFER: u32 = 0x10_0000;

/// A directory that is removed at the end.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("afuc-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A trace with these command buffers, 4 KiB apart.
    pub fn trace(&self, buffers: &[&[u32]]) -> String {
        let mut words = vec![13, 4, 630];
        for (number, packets) in (0..).zip(buffers) {
            let (address, length) = (BUFFER + number * 0x1000, u32::try_from(packets.len()).unwrap());
            words.extend([3, 12, address, length * 4, 0, 12, length * 4]);
            words.extend(*packets);
            words.extend([6, 8, address, length]);
        }
        self.file("trace.rd", words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the program. Returns its exit code, stdout and stderr.
pub fn afuc(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_afuc")).args(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}
