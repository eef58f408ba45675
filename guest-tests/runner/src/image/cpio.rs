// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The initramfs as a tree of nodes, written in the kernel's `newc` cpio format. Output is deterministic.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::number::count;

/// Type bits of a mode.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// The first field of a header.
const MAGIC: &str = "070701";
/// Length of a header: [`MAGIC`] and 13 fields of 8 hexadecimal digits.
const HEADER: usize = 6 + 13 * 8;

/// The file tree of an initramfs. Paths are relative, without a leading slash.
///
/// The kernel drops entries without an error if they are below a path that is no directory. A node that is added below a
/// file or link, in place of a directory, or as a directory in place of a file or link, is therefore an error, which
/// [`Tree::write`] reports. Files and links replace each other.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
    /// The first node that could not be added.
    conflict: Option<String>,
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
        self.insert(path, Node::Folder);
    }

    /// Adds a file with the permission bits `mode`.
    pub fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.insert(path, Node::File { mode, content: Content::Bytes(bytes.into()) });
    }

    /// Adds the host file `host` as `path`; symbolic links are followed.
    pub fn copy(&mut self, path: &str, mode: u32, host: &Path) {
        self.insert(path, Node::File { mode, content: Content::Host(host.to_owned()) });
    }

    /// Adds all directories, files and symbolic links below the host directory `host` under `path`. A file has the mode 0o755
    /// if the host's file is executable, otherwise 0o644; links are kept as links.
    ///
    /// # Errors
    /// If the directory contains a node of another type, or a name or a link's target that is not UTF-8.
    pub fn copy_folder(&mut self, path: &str, host: &Path) -> Result<()> {
        self.folder(path);
        let entries = fs::read_dir(host).with_context(|| format!("{} cannot be read", host.display()))?;
        for entry in entries {
            let entry = entry?;
            let inside = format!("{path}/{}", utf8(entry.file_name(), &entry.path())?);
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.copy_folder(&inside, &entry.path())?;
            } else if kind.is_symlink() {
                let target = fs::read_link(entry.path())?;
                self.link(&inside, &utf8(target.into_os_string(), &entry.path())?);
            } else if kind.is_file() {
                let is_executable = entry.metadata()?.permissions().mode() & 0o111 != 0;
                self.copy(&inside, if is_executable { 0o755 } else { 0o644 }, &entry.path());
            } else {
                bail!("{} is no directory, file or symbolic link", entry.path().display());
            }
        }
        Ok(())
    }

    /// Adds a symbolic link `path` to `target`.
    pub fn link(&mut self, path: &str, target: &str) {
        self.insert(path, Node::Link(target.to_owned()));
    }

    /// Adds a node and the directories above it, or records why it cannot be added.
    fn insert(&mut self, path: &str, node: Node) {
        for (at, _) in path.match_indices('/') {
            let parent = self.nodes.entry(path[..at].to_owned()).or_insert(Node::Folder);
            if !matches!(parent, Node::Folder) {
                let reason = format!("{path} is below {}, which is no directory", &path[..at]);
                self.conflict.get_or_insert(reason);
                return;
            }
        }
        let is_folder = |node: &Node| matches!(node, Node::Folder);
        match self.nodes.get(path) {
            Some(old) if is_folder(old) != is_folder(&node) => {
                let reason = format!("{path} is added as a directory and as a file or link");
                self.conflict.get_or_insert(reason);
            }
            _ => {
                self.nodes.insert(path.to_owned(), node);
            }
        }
    }

    /// Writes the tree as one archive, including the trailer. Its length is a multiple of 4, so that archives can be
    /// concatenated.
    ///
    /// # Errors
    /// If a node could not be added, a host file cannot be read, or `out` cannot be written.
    pub fn write(&self, out: &mut impl Write) -> Result<()> {
        if let Some(conflict) = &self.conflict {
            bail!("the guest image cannot be unpacked: {conflict}");
        }
        for (number, (path, node)) in self.nodes.iter().enumerate() {
            let inode = count(number) + 1;
            match node {
                Node::Folder => entry(out, inode, path, (DIRECTORY, 0o755), &[])?,
                Node::Link(target) => entry(out, inode, path, (SYMLINK, 0o777), target.as_bytes())?,
                Node::File { mode, content: Content::Bytes(bytes) } => {
                    entry(out, inode, path, (REGULAR, *mode), bytes)?
                }
                Node::File { mode, content: Content::Host(host) } => {
                    let bytes = fs::read(host).with_context(|| format!("{} cannot be read", host.display()))?;
                    entry(out, inode, path, (REGULAR, *mode), &bytes)?;
                }
            }
        }
        entry(out, 0, "TRAILER!!!", (0, 0), &[])?;
        Ok(())
    }

    /// Writes the tree to `file` through a buffer.
    pub fn write_to(&self, file: &mut File) -> Result<()> {
        let mut out = io::BufWriter::with_capacity(1 << 20, file);
        self.write(&mut out)?;
        out.flush().context("the image cannot be written")
    }
}

/// A name of the host, or a target of a link, which `path` has.
fn utf8(name: OsString, path: &Path) -> Result<String> {
    name.into_string().map_err(|_| anyhow!("{} has a name or target that is not UTF-8", path.display()))
}

/// Writes one `newc` entry: the header, the name, and the data; name and data are padded to 4 bytes. `kind` and `permissions`
/// make the mode.
fn entry(out: &mut impl Write, inode: u32, path: &str, (kind, permissions): (u32, u32), data: &[u8]) -> Result<()> {
    let size = u32::try_from(data.len()).with_context(|| format!("{path} is too large for an initramfs"))?;
    let name_size = count(path.len()) + 1;
    let links = if kind == DIRECTORY { 2 } else { 1 };
    // inode, mode, uid, gid, links, mtime, size, device (major, minor), rdev (major, minor), name size, checksum
    let fields = [inode, kind | permissions, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
    write!(out, "{MAGIC}")?;
    for field in fields {
        write!(out, "{field:08x}")?;
    }
    out.write_all(path.as_bytes())?;
    out.write_all(&[0; 4][..1 + padding(HEADER + path.len() + 1)])?;
    out.write_all(data)?;
    out.write_all(&[0; 4][..padding(data.len())])?;
    Ok(())
}

fn padding(length: usize) -> usize {
    length.wrapping_neg() & 3
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn bytes(tree: &Tree) -> Vec<u8> {
        let mut bytes = Vec::new();
        tree.write(&mut bytes).unwrap();
        bytes
    }

    /// Mode, name and data of each entry, without the trailer.
    fn rows(tree: &Tree) -> Vec<(u32, String, String)> {
        let bytes = bytes(tree);
        let (mut rest, mut rows) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            assert!(rest.starts_with(b"070701"));
            let field = |n: usize| u32::from_str_radix(str::from_utf8(&rest[6 + 8 * n..][..8]).unwrap(), 16).unwrap();
            let (size, name_size) = (field(6) as usize, field(11) as usize);
            let start = (110 + name_size).next_multiple_of(4);
            let text = |at: usize, len: usize| String::from_utf8(rest[at..at + len].to_vec()).unwrap();
            rows.push((field(1), text(110, name_size - 1), text(start, size)));
            rest = &rest[(start + size).next_multiple_of(4)..];
        }
        assert_eq!(rows.pop(), Some((0, "TRAILER!!!".to_owned(), String::new())));
        rows
    }

    fn error(tree: &Tree) -> String {
        tree.write(&mut Vec::new()).unwrap_err().to_string()
    }

    /// The fields are inode, mode, user, group, links, time, size, four device numbers, size of the name, and checksum.
    #[test]
    fn archive_of_folder_file_and_link_has_the_newc_headers() {
        let mut tree = Tree::default();
        tree.file("a/b", 0o750, *b"hello");
        tree.link("l", "a/b");
        let expected = [
            "070701 00000001 000041ed 00000000 00000000 00000002 00000000 00000000 00000000 00000000 00000000 00000000 \
             00000002 00000000 a 0",
            // The header (110) with "a/b\0" (4) is 2 bytes short of a multiple of 4.
            "070701 00000002 000081e8 00000000 00000000 00000001 00000000 00000005 00000000 00000000 00000000 00000000 \
             00000004 00000000 a/b 000 hello 000",
            "070701 00000003 0000a1ff 00000000 00000000 00000001 00000000 00000003 00000000 00000000 00000000 00000000 \
             00000002 00000000 l 0 a/b 0",
            "070701 00000000 00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 \
             0000000b 00000000 TRAILER!!! 0000",
        ];
        // Words of less than six digits, all 0, are bytes with the value 0.
        let zeros = |word: &str| word.len() < 6 && word.bytes().all(|byte| byte == b'0');
        let word = |word: &str| if zeros(word) { "\0".repeat(word.len()) } else { word.to_owned() };
        let expected: String = expected.iter().flat_map(|line| line.split(' ')).map(word).collect();
        assert_eq!(String::from_utf8(bytes(&tree)).unwrap(), expected);
    }

    #[test]
    fn the_same_tree_gives_the_same_bytes() {
        let build = |paths: [&str; 3]| {
            let mut tree = Tree::default();
            paths.iter().for_each(|path| tree.file(path, 0o644, *path));
            bytes(&tree)
        };
        assert_eq!(build(["x/1", "x/2", "y"]), build(["y", "x/2", "x/1"]));
    }

    #[test]
    fn copied_folder_has_the_hosts_files_links_and_execute_bits() {
        let host = tempfile::tempdir().unwrap();
        let at = |name: &str| host.path().join(name);
        fs::create_dir_all(at("in/empty")).unwrap();
        for (name, mode) in [("data", 0o600), ("in/script", 0o700)] {
            fs::write(at(name), name).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        symlink("in/script", at("link")).unwrap();
        let mut tree = Tree::default();
        tree.copy_folder("to", host.path()).unwrap();
        let expected = [
            (0o040_755, "to", ""),
            (0o100_644, "to/data", "data"),
            (0o040_755, "to/in", ""),
            (0o040_755, "to/in/empty", ""),
            (0o100_755, "to/in/script", "in/script"),
            (0o120_777, "to/link", "in/script"),
        ];
        assert_eq!(rows(&tree), expected.map(|(mode, name, data)| (mode, name.to_owned(), data.to_owned())));
    }

    #[test]
    fn copy_of_a_socket_or_of_a_name_that_is_not_utf_8_is_an_error() {
        let error = |host: &Path| Tree::default().copy_folder("to", host).unwrap_err().to_string();
        let host = tempfile::tempdir().unwrap();
        let _listener = UnixListener::bind(host.path().join("socket")).unwrap();
        assert!(error(host.path()).ends_with("socket is no directory, file or symbolic link"));
        for name_is_wrong in [true, false] {
            let host = tempfile::tempdir().unwrap();
            let wrong = OsString::from_vec(b"\xff".to_vec());
            let (name, target) = if name_is_wrong { (wrong, "a".into()) } else { ("a".into(), wrong) };
            symlink(target, host.path().join(name)).unwrap();
            assert!(error(host.path()).ends_with("has a name or target that is not UTF-8"));
        }
    }

    /// As `lib`, which is a link to `usr/lib`.
    #[test]
    fn node_below_a_link_or_file_is_an_error() {
        for (name, add) in [
            ("link", (|tree: &mut Tree| tree.link("lib", "usr/lib")) as fn(&mut Tree)),
            ("file", |tree| tree.file("lib", 0o644, "")),
        ] {
            let mut tree = Tree::default();
            add(&mut tree);
            tree.file("lib/firmware/a", 0o644, "");
            let reason = "the guest image cannot be unpacked: lib/firmware/a is below lib, which is no directory";
            assert_eq!(error(&tree), reason, "{name}");
        }
    }

    #[test]
    fn directory_and_other_node_of_one_path_are_an_error() {
        let reason = "the guest image cannot be unpacked: lib is added as a directory and as a file or link";
        let adds: [fn(&mut Tree); 2] = [|tree| tree.file("lib/a", 0o644, ""), |tree| tree.folder("lib")];
        for folder in adds {
            let adds: [fn(&mut Tree); 3] = [
                |tree| tree.link("lib", "usr/lib"),
                |tree| tree.file("lib", 0o644, ""),
                |tree| tree.copy("lib", 0o644, Path::new("/none")),
            ];
            for other in adds {
                let mut tree = Tree::default();
                folder(&mut tree);
                other(&mut tree);
                assert_eq!(error(&tree), reason);
            }
        }
        let mut tree = Tree::default();
        tree.link("lib", "usr/lib");
        tree.folder("lib");
        assert_eq!(error(&tree), reason);
    }

    #[test]
    fn files_and_links_replace_each_other() {
        let mut tree = Tree::default();
        tree.file("a", 0o644, "old");
        tree.link("a", "target");
        tree.link("b", "target");
        tree.file("b", 0o600, "new");
        let expected = [(0o120_777, "a", "target"), (0o100_600, "b", "new")];
        assert_eq!(rows(&tree), expected.map(|(mode, name, data)| (mode, name.to_owned(), data.to_owned())));
    }
}
