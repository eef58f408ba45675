// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Creates or checks the directory of `arctic serve`, locks it, and manages its contents.
//!
//! * `lock`: held with flock(2) until the program ends, never removed;
//! * `pf.sock`, `vf1.sock`, ...: functions, for tenants (the user, and the group of `--socket-group`);
//! * `operator/operator.sock`: all functions, for this user only;
//! * `report.json`: written on exit.
//!
//! A directory that other users may write to is refused, because its contents cannot be trusted. The directory is
//! opened once; everything except sockets is created relative to that descriptor (bind(2) accepts only a path).

mod running;

use std::fmt;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, fchown, flock, fstat, mkdirat, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, geteuid};

use crate::operator;
use arctic_gpu::vfio_user::socket;
use arctic_guest_runner::path;

pub use running::NotFound;

/// Maximum path length of a UNIX socket (`sockaddr_un`, without the terminating zero).
pub const SOCKET_PATH: usize = 107;
/// The directory of the operator socket.
const OPERATOR: &str = "operator";
const LOCK: &str = "lock";
const REPORT: &str = "report.json";
/// The report while it is being written.
const NEW_REPORT: &str = ".report.json.new";

/// The directory cannot be used. The message names the directory and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

impl Refused {
    fn new(text: impl fmt::Display) -> Self {
        Refused(text.to_string())
    }
}

/// A directory locked by this process.
pub struct RunDir {
    path: PathBuf,
    folder: OwnedFd,
    /// Holds the lock; closing the descriptor releases it.
    _lock: OwnedFd,
}

impl RunDir {
    /// Creates or checks `dir` and takes its lock; sockets with the names in `names` will be created in it. With
    /// `group`, its members may enter the directory.
    pub fn open(dir: &Path, group: Option<u32>, names: &[String]) -> Result<Self, Refused> {
        let (path, folder) = create(dir, group)?;
        let operator = format!("{OPERATOR}/{}", operator::NAME);
        let longest = names.iter().chain([&operator]).map(String::len).max();
        if path.as_os_str().len() + 1 + longest.unwrap_or(0) > SOCKET_PATH {
            let path = path.display();
            return Err(Refused::new(format_args!(
                "socket paths in {path} would exceed the limit of {SOCKET_PATH} bytes: choose a shorter --dir"
            )));
        }
        let lock = lock(&path, &folder)?;
        let dir = RunDir { path, folder, _lock: lock };
        dir.make_operator()?;
        // The operator socket is created last, and signals that the others are listening, so it is removed first.
        for name in [&operator].into_iter().chain(names) {
            dir.clear(name)?;
        }
        Ok(dir)
    }

    /// The directory's path, without symbolic links; it is UTF-8.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the operator socket. It must be created after all other sockets.
    pub fn operator_socket(&self) -> PathBuf {
        self.path.join(OPERATOR).join(operator::NAME)
    }

    /// Replaces `report.json` by `bytes`, mode 0600; a symbolic link there is replaced, not followed.
    pub fn write_report(&self, bytes: &[u8]) -> Result<(), Refused> {
        let write = || -> io::Result<()> {
            // May have been left by a killed process; the lock guarantees that it is not in use.
            let _ = unlinkat(&self.folder, NEW_REPORT, AtFlags::empty());
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&self.folder, NEW_REPORT, flags, Mode::RUSR | Mode::WUSR)?);
            file.write_all(bytes)?;
            Ok(renameat(&self.folder, NEW_REPORT, &self.folder, REPORT)?)
        };
        write().map_err(|error| {
            let _ = unlinkat(&self.folder, NEW_REPORT, AtFlags::empty());
            Refused::new(format_args!("{} cannot be written: {error}", self.path.join(REPORT).display()))
        })
    }

    fn make_operator(&self) -> Result<(), Refused> {
        let path = self.path.join(OPERATOR);
        match mkdirat(&self.folder, OPERATOR, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(Refused::new(format_args!("cannot create {}: {error}", path.display()))),
        }
        let folder = open_folder(&self.folder, OPERATOR, &path)?;
        let found = owned(&folder, &path)?;
        if found.st_mode & 0o077 != 0 {
            let path = path.display();
            return Err(Refused::new(format_args!("others may enter {path}: run chmod 700 {path}")));
        }
        Ok(())
    }

    /// Removes a stale socket.
    fn clear(&self, name: &str) -> Result<(), Refused> {
        let path = self.path.join(name);
        socket::remove_dead(&path).map_err(|error| refusal(&path, &error))
    }
}

/// Returns the path of the operator socket of the card in `dir`, which may be the socket itself; without `dir`, of the
/// only card that this user serves.
pub fn find_operator_socket(dir: Option<&Path>) -> Result<PathBuf, NotFound> {
    match dir {
        Some(dir) if dir.is_dir() => Ok(dir.join(OPERATOR).join(operator::NAME)),
        Some(socket) => Ok(socket.to_owned()),
        None => running::only_socket(&running::sockets()),
    }
}

/// The error for a socket at `path` that cannot be created.
pub fn refusal(path: &Path, error: &io::Error) -> Refused {
    let path = path.display();
    match error.kind() {
        ErrorKind::AddrInUse => Refused::new(format_args!("{path} is in use: another card is being served there")),
        ErrorKind::AlreadyExists => {
            Refused::new(format_args!("{path} cannot be created: {error}; remove it, or choose another --dir"))
        }
        _ => Refused::new(format_args!("{path} cannot be created: {error}")),
    }
}

/// Fails if the path is not UTF-8: QEMU takes the sockets' paths only in JSON.
fn in_json(path: &Path) -> Result<(), Refused> {
    path::in_json(path).map(drop).map_err(Refused::new)
}

/// Opens `dir`, creating it if necessary. A symbolic link as its last component is not followed.
fn create(dir: &Path, group: Option<u32>) -> Result<(PathBuf, OwnedFd), Refused> {
    in_json(dir)?;
    let unusable = |error: io::Error| Refused::new(format_args!("directory {} cannot be used: {error}", dir.display()));
    // `.`, `..` and `/` cannot be replaced by a symbolic link.
    let (parent, name) = match (dir.parent(), dir.file_name()) {
        (Some(parent), Some(name)) => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            DirBuilder::new().recursive(true).mode(0o755).create(parent).map_err(unusable)?;
            (parent.canonicalize().map_err(unusable)?, name)
        }
        _ => (dir.canonicalize().map_err(unusable)?, ".".as_ref()),
    };
    let path = if name == "." { parent.clone() } else { parent.join(name) };
    in_json(&path)?;
    let above = File::open(&parent).map_err(unusable)?;
    let created = match mkdirat(&above, name, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => {
            return Err(Refused::new(format_args!("directory {} cannot be created: {error}", path.display())));
        }
    };
    let folder = open_folder(&above, name, &path)?;
    if created && let Some(group) = group {
        fchown(&folder, None, Some(Gid::from_raw(group)))
            .and_then(|()| fchmod(&folder, Mode::RWXU | Mode::XGRP))
            .map_err(|error| {
                let path = path.display();
                Refused::new(format_args!("cannot change the group of {path} to {group} (--socket-group): {error}"))
            })?;
    }
    check(&folder, &path, group)?;
    Ok((path, folder))
}

fn open_folder(above: impl AsFd, name: impl rustix::path::Arg + Copy, path: &Path) -> Result<OwnedFd, Refused> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(&above, name, flags, Mode::empty()).map_err(|error| {
        let link = statat(&above, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink);
        let path = path.display();
        match error {
            Errno::LOOP | Errno::NOTDIR if link => {
                Refused::new(format_args!("{path} is a symbolic link: give the directory that it points to"))
            }
            Errno::NOTDIR => Refused::new(format_args!("{path} is not a directory: choose another --dir")),
            error => Refused::new(format_args!("directory {path} cannot be used: {error}")),
        }
    })
}

/// Fails unless the directory belongs to this user.
fn owned(folder: &OwnedFd, path: &Path) -> Result<Stat, Refused> {
    let found = fstat(folder)
        .map_err(|error| Refused::new(format_args!("directory {} cannot be used: {error}", path.display())))?;
    let (owner, user) = (found.st_uid, geteuid().as_raw());
    if owner != user {
        let path = path.display();
        return Err(Refused::new(format_args!(
            "{path} belongs to user {owner}, but the card is served by user {user}: choose another --dir"
        )));
    }
    Ok(found)
}

/// Checks that only the user may write to the directory, and that members of `group` may enter it.
fn check(folder: &OwnedFd, path: &Path, group: Option<u32>) -> Result<(), Refused> {
    let found = owned(folder, path)?;
    let path = path.display();
    if found.st_mode & 0o022 != 0 {
        return Err(Refused::new(format_args!(
            "others may write to {path}, and could replace its sockets: run chmod go-w {path}, or choose another --dir"
        )));
    }
    let enters = |group: u32| {
        let needed = if found.st_gid == group { 0o010 } else { 0o001 };
        found.st_mode & needed != 0
    };
    match group {
        Some(group) if !enters(group) => Err(Refused::new(format_args!(
            "the group {group} of --socket-group cannot enter {path}: run chgrp {group} {path} && chmod g+x {path}"
        ))),
        _ => Ok(()),
    }
}

fn lock(path: &Path, folder: &OwnedFd) -> Result<OwnedFd, Refused> {
    let cannot = |error: &dyn fmt::Display| {
        Refused::new(format_args!(
            "{} cannot be locked: {error}; remove it, or choose another --dir",
            path.join(LOCK).display()
        ))
    };
    // NONBLOCK: opening must not block if the file is a FIFO.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(folder, LOCK, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::LOOP) => return Err(cannot(&"it is a symbolic link")),
        Err(error) => return Err(cannot(&error)),
        Ok(file) => file,
    };
    if fstat(&file).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) != FileType::RegularFile) {
        return Err(cannot(&"not a regular file"));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => {
            Err(Refused::new(format_args!("{} is in use: another card is being served there", path.display())))
        }
        Err(error) => Err(cannot(&error)),
    }
}

#[cfg(test)]
mod tests;
