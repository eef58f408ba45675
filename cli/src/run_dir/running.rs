// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Finds the cards that this user serves. The kernel's table of UNIX sockets has each operator socket with its path, as
//! long as a server listens on it; so no server has to register its directory, and a killed one leaves nothing behind.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::OPERATOR;
use crate::operator;

/// The UNIX sockets of this network namespace (proc_net(5)).
const SOCKETS: &str = "/proc/net/unix";
/// Flag of a socket that listens: `__SO_ACCEPTCON`.
const LISTENS: u32 = 1 << 16;
/// Number of the columns before the path, and the index of the flags among them.
const COLUMNS: usize = 7;
const FLAGS: usize = 3;

/// There is not exactly one card to choose.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// This user serves no card, or /proc is not mounted.
    #[error(
        "this user serves no card: start one with `arctic boot` or `arctic serve`, or give the card's directory \
         (`arctic serve --dir`)"
    )]
    None,
    /// This user serves several cards, in these directories.
    #[error("this user serves {} cards, so give the directory of one: {}", .0.len(), listed(.0))]
    Several(Vec<PathBuf>),
}

fn listed(dirs: &[PathBuf]) -> String {
    dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The operator sockets that listen and belong to this user, sorted by path. Empty if /proc is not mounted.
pub fn sockets() -> Vec<PathBuf> {
    let mut sockets = listening(&fs::read(SOCKETS).unwrap_or_default());
    let user = geteuid().as_raw();
    // Other users can listen on any path; the path may also be in another mount namespace.
    sockets.retain(|path| {
        fs::symlink_metadata(path).is_ok_and(|found| found.uid() == user && found.file_type().is_socket())
    });
    sockets
}

/// Returns the only one of `sockets`.
pub fn only_socket(sockets: &[PathBuf]) -> Result<PathBuf, NotFound> {
    match sockets {
        [] => Err(NotFound::None),
        [socket] => Ok(socket.clone()),
        several => Err(NotFound::Several(several.iter().filter_map(|socket| dir_of(socket)).collect())),
    }
}

/// The directory of a card with this operator socket; `None` if the path is not that of an operator socket.
fn dir_of(socket: &Path) -> Option<PathBuf> {
    socket.ends_with(Path::new(OPERATOR).join(operator::NAME)).then(|| socket.ancestors().nth(2).map(Path::to_owned))?
}

/// Returns the paths of the operator sockets that listen, from a table in the format of /proc/net/unix.
fn listening(table: &[u8]) -> Vec<PathBuf> {
    let mut sockets: Vec<PathBuf> = table.split(|byte| *byte == b'\n').filter_map(listener).collect();
    sockets.retain(|socket| socket.is_absolute() && dir_of(socket).is_some());
    sockets.sort();
    sockets.dedup();
    sockets
}

/// Returns the path of a socket that listens, from its line.
fn listener(line: &[u8]) -> Option<PathBuf> {
    let mut rest = line;
    let mut flags = None;
    for column in 0..COLUMNS {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|byte| *byte == b' ')?;
        let (word, after) = rest.split_at(end);
        if column == FLAGS {
            flags = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok();
        }
        rest = after;
    }
    // One space precedes the path, which may begin with further ones.
    let path = rest.strip_prefix(b" ")?;
    (flags? & LISTENS != 0).then(|| OsStr::from_bytes(path).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    /// The kernel's table has sockets without a path, abstract ones, and the server's end of each connection.
    #[test]
    fn listening_operator_sockets_are_read_from_the_kernels_table() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 34567 /tmp/b c/operator/operator.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 34568 /tmp/b c/operator/operator.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01   567 /tmp/a/operator/operator.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01   568 @/tmp/x/operator/operator.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01   569 /tmp/a/pf.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01   570 operator/operator.sock\n\
            0000000000000000: 00000003 00000000 00000000 0002 01 34569\n\
            half a line";
        let expected = paths(&["/tmp/a/operator/operator.sock", "/tmp/b c/operator/operator.sock"]);
        assert_eq!(listening(table.as_bytes()), expected);
        assert_eq!(listening(b""), paths(&[]));
    }

    #[test]
    fn only_one_socket_is_chosen() {
        let socket = |dir: &str| Path::new(dir).join("operator/operator.sock");
        assert_eq!(only_socket(&[socket("/a")]), Ok(socket("/a")));
        let text = only_socket(&[socket("/a"), socket("/b c")]).unwrap_err().to_string();
        assert_eq!(text, "this user serves 2 cards, so give the directory of one: /a, /b c");
        let text = only_socket(&[]).unwrap_err().to_string();
        assert!(text.contains("`arctic boot`") && text.contains("--dir"), "{text}");
    }

    /// A socket is found while a server listens on it, and not afterwards, even if its file is left.
    #[test]
    fn a_socket_is_found_while_it_listens() {
        let temp = vmm_sys_util::tempdir::TempDir::new().unwrap();
        let dir = temp.as_path().canonicalize().unwrap();
        fs::create_dir(dir.join(OPERATOR)).unwrap();
        let socket = dir.join(OPERATOR).join(operator::NAME);
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(sockets().contains(&socket));
        drop(listener);
        assert!(socket.exists() && !sockets().contains(&socket));
    }
}
