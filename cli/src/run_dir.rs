// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Creates or checks the directory of `arctic serve`, locks it, and manages its contents.
//!
//! * `lock`: held with flock(2) until the program ends, never removed;
//! * `pf.sock`, `vf1.sock`, ...: functions, for tenants (the user, and the group of `--socket-group`);
//! * `operator/operator.sock`: all functions, for this user only;
//! * `report.json`: written on exit.
//!
//! A directory that other users may write to is refused, because its contents cannot be trusted, and so is one in a
//! directory where any user can rename it (writable by others, without the sticky bit). The user must trust the owners and
//! groups of the directories above. The directory is opened once; everything except sockets is created relative to that
//! descriptor (bind(2) accepts only a path).

mod running;

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, fchown, flock, fstat, mkdirat, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, geteuid};

use crate::{operator, remedy};
use arctic_gpu::vfio_user::{StartError, socket};
use arctic_guest_runner::path;

pub use running::NotFound;

/// Maximum path length of a UNIX socket (`sockaddr_un`, without the terminating zero).
const MAX_SOCKET_PATH_BYTES: usize = 107;
/// The directory of the operator socket.
pub const OPERATOR: &str = "operator";
const LOCK: &str = "lock";
const REPORT: &str = "report.json";
/// The report while it is being written.
const NEW_REPORT: &str = ".report.json.new";

/// Mode of directories that are created above the run directory, whatever the umask: the group must pass through them.
const PARENT_MODE: u32 = 0o755;

/// An operation on the run directory failed. The message names the file or directory and, as far as there is one, the
/// remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RunDirError(String);

impl RunDirError {
    fn new(text: impl fmt::Display) -> Self {
        RunDirError(text.to_string())
    }

    fn in_use(path: &Path) -> Self {
        RunDirError(format!("{} is in use: another card is being served there", path.display()))
    }

    fn unusable(path: &Path, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        let remedy = remedy::of_path(&error, "--dir");
        RunDirError(format!("directory {} cannot be used: {error}; {remedy}", path.display()))
    }
}

/// A directory locked by this process.
pub struct RunDir {
    path: PathBuf,
    dir_fd: OwnedFd,
    /// Holds the lock; closing the descriptor releases it.
    _lock: OwnedFd,
}

impl RunDir {
    /// Creates or checks `dir` and takes its lock, which is held until the value is dropped. Sockets with the names in
    /// `names`, relative to the directory, will be created in it: stale ones are removed. With `group`, a group ID, its
    /// members may enter the directory; a new directory gets that group.
    ///
    /// # Errors
    ///
    /// If the directory cannot be created, is not only this user's to write, cannot be entered by the group or is in use
    /// by another card; if a path is not UTF-8 or too long for a socket; or if a file in it is in the way.
    pub fn open(dir: &Path, group: Option<u32>, names: &[String]) -> Result<Self, RunDirError> {
        let operator_socket = operator_socket_name();
        let longest = names.iter().chain([&operator_socket]).map(String::len).max();
        let (path, dir_fd) = open_or_create(dir, group, longest.unwrap_or(0))?;
        let lock = lock(&path, &dir_fd)?;
        let dir = RunDir { path, dir_fd, _lock: lock };
        dir.create_operator_dir()?;
        // The operator socket is created last, and signals that the others are listening, so it is removed first.
        for name in [&operator_socket].into_iter().chain(names) {
            dir.remove_stale_socket(name)?;
        }
        Ok(dir)
    }

    /// The directory's path, without symbolic links; it is UTF-8.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the operator socket. It must be created after all other sockets.
    pub fn operator_socket(&self) -> PathBuf {
        self.path.join(operator_socket_name())
    }

    /// Replaces `report.json` by `bytes`, mode 0600; a symbolic link there is replaced, not followed. On failure the old
    /// report stays. The report is not synchronised to the disk.
    ///
    /// # Errors
    ///
    /// If a file cannot be created, written or renamed in the directory.
    pub fn write_report(&self, bytes: &[u8]) -> Result<(), RunDirError> {
        let write = || -> io::Result<()> {
            // A killed process may have left this file; the lock guarantees that it is not in use.
            let _ = unlinkat(&self.dir_fd, NEW_REPORT, AtFlags::empty());
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&self.dir_fd, NEW_REPORT, flags, Mode::RUSR | Mode::WUSR)?);
            file.write_all(bytes)?;
            Ok(renameat(&self.dir_fd, NEW_REPORT, &self.dir_fd, REPORT)?)
        };
        write().map_err(|error| {
            let _ = unlinkat(&self.dir_fd, NEW_REPORT, AtFlags::empty());
            let path = self.path.join(REPORT);
            let remedy = match error.kind() {
                ErrorKind::IsADirectory | ErrorKind::AlreadyExists => "remove what is there".into(),
                _ => remedy::of_path(&error, "--dir"),
            };
            RunDirError::new(format_args!("{} cannot be written: {error}; {remedy}", path.display()))
        })
    }

    fn create_operator_dir(&self) -> Result<(), RunDirError> {
        let path = self.path.join(OPERATOR);
        match mkdirat(&self.dir_fd, OPERATOR, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(RunDirError::unusable(&path, error)),
        }
        let operator_fd = open_dir(&self.dir_fd, OPERATOR, &path)?;
        let stat = stat_if_owned(&operator_fd, &path)?;
        if stat.st_mode & 0o077 != 0 {
            let path = path.display();
            return Err(RunDirError::new(format_args!("others may enter {path}: run chmod 700 {path}")));
        }
        Ok(())
    }

    fn remove_stale_socket(&self, name: &str) -> Result<(), RunDirError> {
        let path = self.path.join(name);
        socket::remove_dead(&path).map_err(|error| socket_error(&path, &error))
    }
}

/// Path of the operator socket relative to the run directory.
fn operator_socket_name() -> String {
    format!("{OPERATOR}/{}", operator::NAME)
}

/// Returns the path of the operator socket of the card in the directory `dir_or_socket`, which may be the socket itself;
/// without it, of the only card that this user serves. Does not check that a server listens.
///
/// # Errors
///
/// Only without `dir_or_socket`: if this user serves no card or several.
pub fn find_operator_socket(dir_or_socket: Option<&Path>) -> Result<PathBuf, NotFound> {
    match dir_or_socket {
        Some(dir) if dir.is_dir() => Ok(dir.join(operator_socket_name())),
        Some(socket) => Ok(socket.to_owned()),
        None => running::only_socket(&running::sockets()),
    }
}

/// The error for a socket at `path` that cannot be created.
pub fn socket_error(path: &Path, error: &io::Error) -> RunDirError {
    let shown = path.display();
    match error.kind() {
        ErrorKind::AddrInUse => RunDirError::in_use(path),
        ErrorKind::AlreadyExists => {
            RunDirError::new(format_args!("{shown} cannot be created: {error}; remove it, or choose another --dir"))
        }
        _ => match error.get_ref().and_then(|inner| inner.downcast_ref::<StartError>()) {
            Some(step) => RunDirError::new(remedy::with_resource(step)),
            None => {
                let remedy = remedy::of_path(error, "--dir");
                RunDirError::new(format_args!("{shown} cannot be created: {error}; {remedy}"))
            }
        },
    }
}

/// Fails if the path is not UTF-8: QEMU takes the sockets' paths only in JSON.
fn check_utf8(path: &Path) -> Result<(), RunDirError> {
    path::in_json(path).map(drop).map_err(RunDirError::new)
}

/// Opens `dir`, creating it if necessary, for sockets with names of at most `longest_name` bytes. A symbolic link as its
/// last component is not followed.
fn open_or_create(dir: &Path, group: Option<u32>, longest_name: usize) -> Result<(PathBuf, OwnedFd), RunDirError> {
    check_utf8(dir)?;
    let (parent, name) = split_path(dir)?;
    let path = if name == "." { parent.clone() } else { parent.join(name) };
    check_utf8(&path)?;
    if path.as_os_str().len() + 1 + longest_name > MAX_SOCKET_PATH_BYTES {
        return Err(RunDirError::new(format_args!(
            "socket paths in {} would exceed the limit of {MAX_SOCKET_PATH_BYTES} bytes: choose a shorter --dir",
            path.display()
        )));
    }
    // The user may be allowed to enter the parent, but not to read it.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent_fd = openat(CWD, &parent, flags, Mode::empty()).map_err(|error| RunDirError::unusable(dir, error))?;
    check_parent(&parent_fd, &parent)?;
    let is_new = match mkdirat(&parent_fd, name, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(RunDirError::unusable(&path, error)),
    };
    let dir_fd = open_dir(&parent_fd, name, &path)?;
    if let (true, Some(group)) = (is_new, group) {
        grant_group(&dir_fd, &path, group).inspect_err(|_| {
            // So that the next attempt with another group does not find a directory that the group cannot enter.
            let _ = unlinkat(&parent_fd, name, AtFlags::REMOVEDIR);
        })?;
    }
    check_access(&dir_fd, &path, group)?;
    Ok((path, dir_fd))
}

/// Splits `dir` into its parent, which is created if necessary, without symbolic links, and its name. A path without a
/// final name (`..`, `/`) is canonicalised as a whole, and has the name `.`: it cannot be replaced by a symbolic link.
fn split_path(dir: &Path) -> Result<(PathBuf, &OsStr), RunDirError> {
    let unusable = |error: io::Error| RunDirError::unusable(dir, error);
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
        return Ok((dir.canonicalize().map_err(unusable)?, ".".as_ref()));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    create_parents(parent).map_err(unusable)?;
    Ok((parent.canonicalize().map_err(unusable)?, name))
}

/// Creates the directories of `parent` that do not exist.
fn create_parents(parent: &Path) -> io::Result<()> {
    let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    let missing: Vec<&Path> = parent.ancestors().take_while(is_missing).collect();
    for dir in missing.into_iter().rev() {
        match DirBuilder::new().mode(PARENT_MODE).create(dir) {
            Ok(()) => fs::set_permissions(dir, Permissions::from_mode(PARENT_MODE))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fails if any user can rename the directories in `parent`.
fn check_parent(parent_fd: &OwnedFd, parent: &Path) -> Result<(), RunDirError> {
    let stat = fstat(parent_fd).map_err(|error| RunDirError::unusable(parent, error))?;
    if stat.st_mode & 0o002 != 0 && stat.st_mode & 0o1000 == 0 {
        let parent = parent.display();
        return Err(RunDirError::new(format_args!(
            "all users may write to {parent}, and could replace its directories: run chmod +t {parent}, or choose another \
             --dir"
        )));
    }
    Ok(())
}

/// Gives a new directory to `group`, whose members may enter it.
fn grant_group(dir_fd: &OwnedFd, path: &Path, group: u32) -> Result<(), RunDirError> {
    fchown(dir_fd, None, Some(Gid::from_raw(group))).and_then(|()| fchmod(dir_fd, Mode::RWXU | Mode::XGRP)).map_err(
        |error| {
            let path = path.display();
            RunDirError::new(format_args!("cannot change the group of {path} to {group} (--socket-group): {error}"))
        },
    )
}

fn open_dir(parent_fd: impl AsFd, name: impl rustix::path::Arg + Copy, path: &Path) -> Result<OwnedFd, RunDirError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(&parent_fd, name, flags, Mode::empty()).map_err(|error| {
        let link = statat(&parent_fd, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
        let shown = path.display();
        match error {
            Errno::LOOP | Errno::NOTDIR if link => {
                RunDirError::new(format_args!("{shown} is a symbolic link: give the directory that it points to"))
            }
            Errno::NOTDIR => RunDirError::new(format_args!("{shown} is not a directory: choose another --dir")),
            error => RunDirError::unusable(path, error),
        }
    })
}

/// Returns the state of the directory; fails unless it belongs to this user.
fn stat_if_owned(dir_fd: &OwnedFd, path: &Path) -> Result<Stat, RunDirError> {
    let stat = fstat(dir_fd).map_err(|error| RunDirError::unusable(path, error))?;
    let owner = stat.st_uid;
    let user = geteuid().as_raw();
    if owner != user {
        let path = path.display();
        return Err(RunDirError::new(format_args!(
            "{path} belongs to user {owner}, but the card is served by user {user}: choose another --dir"
        )));
    }
    Ok(stat)
}

/// Checks that only the user may write to the directory, and that members of `group` may enter it.
fn check_access(dir_fd: &OwnedFd, path: &Path, group: Option<u32>) -> Result<(), RunDirError> {
    let stat = stat_if_owned(dir_fd, path)?;
    let path = path.display();
    if stat.st_mode & 0o022 != 0 {
        return Err(RunDirError::new(format_args!(
            "others may write to {path}, and could replace its sockets: run chmod go-w {path}, or choose another --dir"
        )));
    }
    let may_enter = |group: u32| {
        let needed = if stat.st_gid == group { 0o010 } else { 0o001 };
        stat.st_mode & needed != 0
    };
    match group {
        Some(group) if !may_enter(group) => Err(RunDirError::new(format_args!(
            "the group {group} of --socket-group cannot enter {path}: run chgrp {group} {path} && chmod g+x {path}"
        ))),
        _ => Ok(()),
    }
}

/// Takes the lock of the directory; closing the descriptor releases it.
fn lock(path: &Path, dir_fd: &OwnedFd) -> Result<OwnedFd, RunDirError> {
    let lock_error = |error: &dyn fmt::Display| {
        let lock = path.join(LOCK);
        RunDirError::new(format_args!(
            "{} cannot be locked: {error}; remove it, or choose another --dir",
            lock.display()
        ))
    };
    // NONBLOCK: opening must not block if the file is a FIFO.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(dir_fd, LOCK, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::LOOP) => return Err(lock_error(&"it is a symbolic link")),
        Err(error) => return Err(lock_error(&error)),
        Ok(file) => file,
    };
    let stat = fstat(&file).map_err(|error| lock_error(&error))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(lock_error(&"not a regular file"));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(RunDirError::in_use(path)),
        Err(error) => Err(lock_error(&error)),
    }
}

#[cfg(test)]
mod tests;
