// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Time slices on a loaded host.

use std::io;

/// The time slice that [`request_short_slice`] requests, in nanoseconds. Linux rounds shorter values up to this one.
const SLICE: u64 = 100_000;

/// Requests a time slice of 0.1 ms for the calling thread, and for the threads and processes that it creates afterwards
/// (Linux 6.12 and later; without effect before). Must be called before [`Builder::plug_into`](crate::Builder::plug_into)
/// to apply to the card's threads. Threads with another policy than `SCHED_OTHER` are not changed.
///
/// The thread's share of the processor does not change, but it preempts threads with longer slices when it is woken, as
/// long as it has not used up its share. A trapped access, a GuC request or an interrupt of a guest wakes several
/// threads of the VMM and the card in turn. With the default slice, xe's timeouts (1 s for a GuC response) expired now
/// and then with ten busy threads a core; with the short one they did not.
///
/// # Errors
/// The error of `sched_getattr` or `sched_setattr`, for example `EPERM` or `ENOSYS` under a seccomp filter.
pub fn request_short_slice() -> io::Result<()> {
    let mut attributes = attributes(0)?;
    // Threads of other policies do not preempt on wakeup, or have no slice.
    if attributes.sched_policy.cast_signed() == libc::SCHED_OTHER {
        attributes.sched_runtime = SLICE;
        // SAFETY: the kernel reads the `size` bytes of a live structure.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
        succeeded(result)?;
    }
    Ok(())
}

/// Returns the policy, nice value and time slice of thread `id`; 0 is the calling thread.
///
/// # Errors
/// The error of `sched_getattr`.
#[doc(hidden)]
pub fn attributes(id: libc::pid_t) -> io::Result<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the structure consists of integers.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most `size` bytes to a live structure of that size.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, id, &raw mut attributes, size, 0) };
    succeeded(result)?;
    Ok(attributes)
}

fn succeeded(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `set` on a new thread, requests the slice there, and returns the attributes before, afterwards, and those
    /// of a thread that it creates.
    fn requested(set: impl FnOnce() + Send + 'static) -> [libc::sched_attr; 3] {
        let thread = std::thread::spawn(|| {
            set();
            let before = attributes(0).unwrap();
            request_short_slice().unwrap();
            [before, attributes(0).unwrap(), std::thread::spawn(|| attributes(0).unwrap()).join().unwrap()]
        });
        thread.join().unwrap()
    }

    /// A thread and those that it creates have the short slice. Policy and nice value do not change.
    #[test]
    fn short_slice_is_inherited_and_other_attributes_are_kept() {
        let [before, after, inherited] = requested(|| {
            // SAFETY: no memory is involved; the calls apply to this thread.
            unsafe {
                assert_eq!(libc::sched_setscheduler(0, libc::SCHED_OTHER, &libc::sched_param { sched_priority: 0 }), 0);
                assert_eq!(libc::setpriority(libc::PRIO_PROCESS, 0, 19), 0);
            }
        });
        for thread in [after, inherited] {
            assert_eq!((thread.sched_nice, thread.sched_policy), (19, before.sched_policy));
            // Kernels without this setting report 0.
            assert!([100_000, 0].contains(&thread.sched_runtime), "{}", thread.sched_runtime);
        }
    }

    /// A batch thread keeps its slice.
    #[test]
    fn other_policies_keep_their_slice() {
        let [before, after, _] = requested(|| {
            // SAFETY: as above.
            let result =
                unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &libc::sched_param { sched_priority: 0 }) };
            assert_eq!(result, 0);
        });
        assert_eq!(before.sched_policy.cast_signed(), libc::SCHED_BATCH);
        assert_eq!((after.sched_policy, after.sched_runtime), (before.sched_policy, before.sched_runtime));
    }
}
