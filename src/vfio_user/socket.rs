// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Listening UNIX sockets. Mode and group are set before a connection is possible, and only stale sockets are removed.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fchmod, fstat, lstat, open};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Length of the accept queue: the maximum that the system permits, as in the standard library.
const BACKLOG: i32 = -1;

/// A bound path. Dropping it removes the socket, unless another file has replaced it.
pub struct SocketPath {
    path: PathBuf,
    /// The socket's file: while it is open, its inode number is not reused.
    file: OwnedFd,
}

impl SocketPath {
    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        let own = fstat(&self.file).map(|own| (own.st_dev, own.st_ino));
        let found = lstat(&self.path).map(|found| (found.st_dev, found.st_ino));
        if own.is_ok() && own == found {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at `path`, with mode 0600, or 0660 and `group`. A socket that no program listens on is replaced; if several
/// programs replace one concurrently, more than one may succeed, so callers must hold a lock.
///
/// Errors: `AddrInUse` if a program listens on the path, `AlreadyExists` if the path exists and is not a socket; it is
/// not removed.
pub fn bind(path: &Path, group: Option<u32>) -> io::Result<(UnixListener, SocketPath)> {
    remove_dead(path)?;
    let address = SocketAddrUnix::new(path)?;
    let socket = new_socket(SocketFlags::CLOEXEC)?;
    // Linux gives the file the mode of the socket's own inode, minus the umask: never more than this.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    net::bind(&socket, &address)?;
    let file = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let bound = SocketPath { path: path.to_owned(), file };
    // Connections are refused until `listen`, so no client can connect before mode and group are final.
    if group.is_some() {
        std::os::unix::fs::lchown(path, None, group)?;
    }
    let mode = if group.is_some() { 0o660 } else { 0o600 };
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    net::listen(&socket, BACKLOG)?;
    Ok((socket.into(), bound))
}

/// Removes a socket at `path` that no program listens on. Errors as in [`bind`].
pub fn remove_dead(path: &Path) -> io::Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !kind.is_socket() {
        let what = name(kind);
        return Err(io::Error::new(ErrorKind::AlreadyExists, format!("it is {what}, not a socket")));
    }
    // Non-blocking: a program with a full accept queue listens as well.
    let probe = new_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    match net::connect(probe.as_fd(), &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(Errno::AGAIN) => Err(ErrorKind::AddrInUse.into()),
        Err(Errno::CONNREFUSED) => fs::remove_file(path),
        Err(error) => Err(error.into()),
    }
}

fn new_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Memory in bytes of what was sent on a UNIX socket and is not read yet, with the kernel's overhead; 0 if all was read.
pub fn unread(socket: impl AsFd) -> io::Result<usize> {
    /// `SIOCOUTQ` of unix(7), which is `TIOCOUTQ` (Linux: include/uapi/asm-generic/ioctls.h).
    const SIOCOUTQ: rustix::ioctl::Opcode = 0x5411;
    // SAFETY: the request writes one int, for which the getter has space.
    let bytes = unsafe { rustix::ioctl::ioctl(socket, rustix::ioctl::Getter::<SIOCOUTQ, libc::c_int>::new())? };
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// The name of a file type.
pub fn name(kind: fs::FileType) -> &'static str {
    if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_file() {
        "a regular file"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::os::unix::net::UnixStream;

    use vmm_sys_util::tempdir::TempDir;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn sockets_have_their_mode_and_are_removed() {
        let dir = TempDir::new().unwrap();
        let path = dir.as_path().join("pf.sock");
        let (_listener, bound) = bind(&path, None).unwrap();
        assert_eq!(mode(&path), 0o600);
        UnixStream::connect(&path).unwrap();
        drop(bound);
        assert!(!path.exists());
        let own = fs::metadata(dir.as_path()).unwrap().gid();
        let (_listener, _bound) = bind(&path, Some(own)).unwrap();
        assert_eq!((mode(&path), fs::metadata(&path).unwrap().gid()), (0o660, own));
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let dir = TempDir::new().unwrap();
        let path = dir.as_path().join("pf.sock");
        let (listener, bound) = bind(&path, None).unwrap();
        assert_eq!(bind(&path, None).err().unwrap().kind(), ErrorKind::AddrInUse);
        // A full accept queue.
        net::listen(&listener, 0).unwrap();
        let _waiting: Vec<_> = (0..3)
            .map_while(|_| {
                let client = new_socket(SocketFlags::NONBLOCK).unwrap();
                net::connect(&client, &SocketAddrUnix::new(&path).unwrap()).ok().map(|()| client)
            })
            .collect();
        assert_eq!(bind(&path, None).err().unwrap().kind(), ErrorKind::AddrInUse);
        drop(listener);
        let (_listener, second) = bind(&path, None).unwrap();
        drop(bound);
        assert!(path.exists(), "dropping the first does not remove the socket of the second");
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn only_sockets_are_removed() {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.as_path().join(name);
        fs::write(at("file"), "precious").unwrap();
        fs::create_dir(at("folder")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        let dead = at("dead");
        drop(UnixListener::bind(&dead).unwrap());
        symlink(&dead, at("link")).unwrap();
        for (name, what) in [
            ("file", "a regular file"),
            ("folder", "a directory"),
            ("dangling", "a symbolic link"),
            ("link", "a symbolic link"),
        ] {
            let error = bind(&at(name), None).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{name}");
            assert!(error.to_string().contains(what), "{name}: {error}");
            assert!(fs::symlink_metadata(at(name)).is_ok(), "{name} still exists");
        }
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "precious");
    }
}
