// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Processor time on a loaded host.

use std::io;

/// The time slice that [`request_short_slice`] requests, in nanoseconds: the shortest that Linux accepts.
const SLICE: u64 = 100_000;

/// Requests a time slice of 0.1 ms for the calling thread, and for the threads and processes that it creates afterwards
/// (Linux 6.12 and later; without effect before). Must be called before [`VirtualCard::new`](crate::VirtualCard::new) to
/// apply to the card's threads.
///
/// The thread's share of the processor does not change, but it preempts threads with longer slices when it is woken, as
/// long as it has not used up its share. A trapped access, a GuC request or an interrupt of a guest wakes up to six
/// threads of the VMM and the card in turn. On a host with ten busy threads a core each wakeup takes up to 30 ms
/// otherwise, and the driver's timeout of 1 s for a GuC response expires.
///
/// # Errors
/// The error of `sched_getattr` or `sched_setattr`, for example `EPERM` or `ENOSYS` under a seccomp filter.
pub fn request_short_slice() -> io::Result<()> {
    let mut attributes = current()?;
    // The runtime of other policies has another meaning or none.
    if [libc::SCHED_OTHER, libc::SCHED_BATCH].contains(&(attributes.sched_policy.cast_signed())) {
        attributes.sched_runtime = SLICE;
        // SAFETY: the kernel reads the `size` bytes of a live structure.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
        succeeded(result)?;
    }
    Ok(())
}

/// Policy, nice value and time slice of the calling thread.
fn current() -> io::Result<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the structure consists of integers.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most `size` bytes to a live structure of that size.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    succeeded(result)?;
    Ok(attributes)
}

fn succeeded(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread and those that it creates have the short slice; policy and nice value stay as they were.
    #[test]
    fn a_short_slice_is_inherited_and_changes_nothing_else() {
        let (before, after, inherited) = std::thread::spawn(|| {
            // SAFETY: no memory is involved; the call applies to this thread.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 7) };
            let before = current().unwrap();
            request_short_slice().unwrap();
            (before, current().unwrap(), std::thread::spawn(|| current().unwrap()).join().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!((before.sched_nice, before.sched_policy), (7, 0));
        for thread in [after, inherited] {
            assert_eq!((thread.sched_nice, thread.sched_policy), (7, 0));
            // Kernels without this setting report 0.
            assert!([SLICE, 0].contains(&thread.sched_runtime), "{}", thread.sched_runtime);
        }
    }
}
