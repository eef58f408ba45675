// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Remedies for errors of the set-up, by the error number: limits, memory, space, filters of system calls.

use std::error::Error;
use std::io;

use rustix::io::Errno;

/// The error number in the chain of causes of `error`, of the innermost error that has one.
fn errno(error: &(dyn Error + 'static)) -> Option<Errno> {
    let mut found = None;
    let mut next = Some(error);
    while let Some(error) = next {
        found = error.downcast_ref::<io::Error>().and_then(Errno::from_io_error).or(found);
        next = error.source();
    }
    found
}

/// What to do against an error of a call that creates a thread, a descriptor or memory. `None` if the error number does
/// not say it.
pub fn of_resource(error: &(dyn Error + 'static)) -> Option<&'static str> {
    Some(match errno(error)? {
        Errno::AGAIN => {
            "raise the limit of processes and threads (ulimit -u, TasksMax= of systemd, --pids-limit of a container), or \
             use fewer VFs"
        }
        Errno::MFILE => "raise the limit of open files (ulimit -n, LimitNOFILE= of systemd)",
        Errno::NFILE => "the host has no free files: raise fs.file-max",
        Errno::NOMEM | Errno::NOBUFS => {
            "free memory, raise the limit of memory (ulimit -v, MemoryMax= of systemd, --memory of a container), or use a \
             smaller card"
        }
        Errno::FBIG => "raise the limit of file sizes (ulimit -f, LimitFSIZE= of systemd), or use a smaller card",
        Errno::PERM | Errno::NOSYS => {
            "a filter of system calls forbids it (seccomp of a container, SystemCallFilter= of systemd): permit the call"
        }
        _ => return None,
    })
}

/// What to do against an error of a file or directory that `option` names.
pub fn of_path(error: &(dyn Error + 'static), option: &str) -> String {
    let of_limit = |errno| {
        matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS | Errno::FBIG | Errno::AGAIN)
    };
    if let Some(remedy) = of_resource(error).filter(|_| errno(error).is_some_and(of_limit)) {
        return remedy.into();
    }
    match errno(error) {
        Some(Errno::NOSPC | Errno::DQUOT) => format!("free space there, or choose another {option}"),
        Some(Errno::ROFS) => format!("the file system is read-only: choose another {option}"),
        Some(Errno::ACCESS | Errno::PERM) => format!("this user may not write there: choose another {option}"),
        _ => format!("choose another {option}"),
    }
}

/// The text of an error, with a remedy if there is one.
pub fn with_resource(error: &(dyn Error + 'static)) -> String {
    of_resource(error).map_or_else(|| error.to_string(), |remedy| format!("{error}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arctic_gpu::vfio_user::StartError;

    #[test]
    fn each_error_has_the_remedy_that_fits_it() {
        let of = |errno: Errno| {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            let inner: io::Error = StartError::of("start a thread")(io::Error::from(errno));
            assert_eq!(of_resource(&error), of_resource(&inner), "found in the chain");
            (of_resource(&error).unwrap_or("none"), of_path(&error, "--dir"))
        };
        for (errno, resource, path) in [
            (Errno::AGAIN, "limit of processes", "limit of processes"),
            (Errno::MFILE, "limit of open files", "limit of open files"),
            (Errno::NOMEM, "limit of memory", "limit of memory"),
            (Errno::PERM, "filter of system calls", "may not write there: choose another --dir"),
            (Errno::NOSPC, "none", "free space there, or choose another --dir"),
            (Errno::ROFS, "none", "read-only: choose another --dir"),
            (Errno::NOTDIR, "none", "choose another --dir"),
        ] {
            let (found, of_path) = of(errno);
            assert!(found.contains(resource) && of_path.contains(path), "{errno}: {found}, {of_path}");
            assert!(!found.contains("--dir"), "{found}");
        }
    }
}
