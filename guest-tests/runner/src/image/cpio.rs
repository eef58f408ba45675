// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The initramfs as a tree of nodes, written in the kernel's `newc` cpio format. Output is deterministic.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::number::count;

/// The file tree of an initramfs. Paths are relative, without a leading slash.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug)]
enum Node {
    Folder,
    File { mode: u32, content: Content },
    Link(String),
}

#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    /// A host file, read when the tree is written.
    Host(PathBuf),
}

impl Tree {
    /// Adds the directory `path` and its parents.
    pub fn folder(&mut self, path: &str) {
        self.parents(path);
        self.nodes.entry(path.to_owned()).or_insert(Node::Folder);
    }

    /// Adds a file with the permission bits `mode`, replacing an existing node.
    pub fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.parents(path);
        self.nodes.insert(path.to_owned(), Node::File { mode, content: Content::Bytes(bytes.into()) });
    }

    /// Adds the host file `host` as `path`; symbolic links are followed.
    pub fn copy(&mut self, path: &str, mode: u32, host: &Path) {
        self.parents(path);
        self.nodes.insert(path.to_owned(), Node::File { mode, content: Content::Host(host.to_owned()) });
    }

    /// Adds all files below the host directory `host` under `path`; symbolic links are kept as links.
    pub fn copy_folder(&mut self, path: &str, host: &Path) -> Result<()> {
        self.folder(path);
        let entries = fs::read_dir(host).with_context(|| format!("{} cannot be read", host.display()))?;
        for entry in entries {
            let entry = entry?;
            let inside = format!("{path}/{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.copy_folder(&inside, &entry.path())?;
            } else if kind.is_symlink() {
                self.link(&inside, &fs::read_link(entry.path())?.to_string_lossy());
            } else if kind.is_file() {
                self.copy(&inside, 0o644, &entry.path());
            }
        }
        Ok(())
    }

    /// Adds a symbolic link `path` to `target`.
    pub fn link(&mut self, path: &str, target: &str) {
        self.parents(path);
        self.nodes.insert(path.to_owned(), Node::Link(target.to_owned()));
    }

    fn parents(&mut self, path: &str) {
        let slashes: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        for at in slashes {
            self.nodes.entry(path[..at].to_owned()).or_insert(Node::Folder);
        }
    }

    /// Writes the tree as one archive, including the trailer. Its length is a multiple of 4, so that archives can be
    /// concatenated.
    pub fn write(&self, out: &mut impl Write) -> Result<()> {
        for (number, (path, node)) in self.nodes.iter().enumerate() {
            let inode = count(number) + 1;
            match node {
                Node::Folder => entry(out, inode, path, 0o040_755, &[])?,
                Node::Link(target) => entry(out, inode, path, 0o120_777, target.as_bytes())?,
                Node::File { mode, content: Content::Bytes(bytes) } => {
                    entry(out, inode, path, 0o100_000 | mode, bytes)?
                }
                Node::File { mode, content: Content::Host(host) } => {
                    let bytes = fs::read(host).with_context(|| format!("{} cannot be read", host.display()))?;
                    entry(out, inode, path, 0o100_000 | mode, &bytes)?;
                }
            }
        }
        entry(out, 0, "TRAILER!!!", 0, &[])?;
        Ok(())
    }

    /// Writes the tree to `file` through a buffer.
    pub fn write_to(&self, file: &mut File) -> Result<()> {
        let mut out = io::BufWriter::with_capacity(1 << 20, file);
        self.write(&mut out)?;
        out.flush().context("the image cannot be written")
    }
}

/// Writes one `newc` entry: 13 fields of 8 hexadecimal digits, the name, and the data; name and data are padded to 4
/// bytes.
fn entry(out: &mut impl Write, inode: u32, path: &str, mode: u32, data: &[u8]) -> Result<()> {
    let size = u32::try_from(data.len()).with_context(|| format!("{path} is too large for an initramfs"))?;
    let name_size = count(path.len()) + 1;
    let links = if mode & 0o170_000 == 0o040_000 { 2 } else { 1 };
    // inode, mode, uid, gid, links, mtime, size, device (major, minor), rdev (major, minor), name size, checksum
    let fields = [inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
    write!(out, "070701")?;
    for field in fields {
        write!(out, "{field:08x}")?;
    }
    out.write_all(path.as_bytes())?;
    out.write_all(&[0; 4][..1 + padding(110 + path.len() + 1)])?;
    out.write_all(data)?;
    out.write_all(&[0; 4][..padding(data.len())])?;
    Ok(())
}

fn padding(length: usize) -> usize {
    length.wrapping_neg() & 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_kernels_layout() {
        let mut tree = Tree::default();
        tree.file("a/b", 0o755, *b"hello");
        tree.link("l", "a/b");
        let mut bytes = Vec::new();
        tree.write(&mut bytes).unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let first =
            "070701000000010000 41ed 00000000000000000000000200000000000000000000000000000000000000000000000000000002\
                     00000000a\0"
                .replace(' ', "");
        assert!(text.starts_with(&first), "{text}");
        // The header (110) with "a/b\0" (4) is 2 bytes short of a multiple of 4.
        assert!(text.contains("a/b\0\0\0hello\0\0\x00070701"), "{text}");
        assert!(text.contains("l\0a/b\x00070701") && text.ends_with("TRAILER!!!\0\0\0\0"), "{text}");
    }

    #[test]
    fn the_same_tree_gives_the_same_bytes() {
        let build = |paths: [&str; 3]| {
            let mut tree = Tree::default();
            paths.iter().for_each(|path| tree.file(path, 0o644, *path));
            let mut bytes = Vec::new();
            tree.write(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(build(["x/1", "x/2", "y"]), build(["y", "x/2", "x/1"]));
    }
}
