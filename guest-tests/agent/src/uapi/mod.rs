// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The DRM ioctl structures used by the guest program, with the layout of `drm.h`. The drivers' own structures are in
//! [`xe`] and [`i915`].
//!
//! All fields are plain integers, and every padding byte is a named field, so that zeroing a structure initialises all
//! of it.

pub mod i915;
pub mod xe;

use std::mem::size_of;

/// `_IOC` direction bits and the number layout of the generic ioctl ABI (x86, arm64).
const IOC_WRITE: u64 = 1;
const IOC_READ: u64 = 2;
const DRM_TYPE: u64 = b'd' as u64;
/// First driver-specific ioctl number (`DRM_COMMAND_BASE`).
const COMMAND_BASE: u64 = 0x40;

const fn ioc(direction: u64, number: u64, size: usize) -> u64 {
    direction << 30 | (size as u64) << 16 | DRM_TYPE << 8 | number
}

/// The argument structure of one ioctl.
///
/// # Safety
/// `NUMBER` must encode the size of `Self` and denote an ioctl with an argument of exactly this layout. The kernel may
/// write any bytes to it, so every bit pattern must be a valid value.
pub unsafe trait Request: Copy {
    /// The ioctl request number, including direction and size.
    const NUMBER: u64;
    /// The name used in error messages.
    const NAME: &'static str;
}

macro_rules! request {
    ($type:ty, $name:literal, $direction:expr, $number:expr, $size:literal) => {
        const _: () = assert!(size_of::<$type>() == $size);
        // SAFETY: number and layout are those of the uAPI header (size asserted above), and the structure contains only
        // integers.
        unsafe impl crate::uapi::Request for $type {
            const NUMBER: u64 = crate::uapi::ioc($direction, $number, size_of::<$type>());
            const NAME: &'static str = $name;
        }
    };
}

macro_rules! plain {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name { $(pub $field: $type),* }
    )*};
}

use {plain, request};

plain! {
    GemClose { handle: u32, pad: u32 }
    SyncobjCreate { handle: u32, flags: u32 }
    SyncobjDestroy { handle: u32, pad: u32 }
    /// `timeout_nsec` is an absolute CLOCK_MONOTONIC time.
    SyncobjWait {
        handles: u64, timeout_nsec: i64, count_handles: u32, flags: u32, first_signaled: u32, pad: u32,
        deadline_nsec: u64,
    }
    /// `drm_version`: the three lengths are `size_t`.
    Version {
        major: i32, minor: i32, patchlevel: i32, pad: u32, name_len: u64, name: u64, date_len: u64, date: u64,
        desc_len: u64, desc: u64,
    }
}

request!(Version, "DRM_IOCTL_VERSION", IOC_READ | IOC_WRITE, 0x00, 64);
request!(GemClose, "DRM_IOCTL_GEM_CLOSE", IOC_WRITE, 0x09, 8);
request!(SyncobjCreate, "DRM_IOCTL_SYNCOBJ_CREATE", IOC_READ | IOC_WRITE, 0xbf, 8);
request!(SyncobjDestroy, "DRM_IOCTL_SYNCOBJ_DESTROY", IOC_READ | IOC_WRITE, 0xc0, 8);
request!(SyncobjWait, "DRM_IOCTL_SYNCOBJ_WAIT", IOC_READ | IOC_WRITE, 0xc3, 40);

#[cfg(test)]
mod tests {
    use super::*;

    /// The request numbers equal those of the C header's macros (drm.h).
    #[test]
    fn request_numbers_are_those_of_the_header() {
        assert_eq!(Version::NUMBER, 0xc040_6400);
        assert_eq!(GemClose::NUMBER, 0x4008_6409);
        assert_eq!(SyncobjCreate::NUMBER, 0xc008_64bf);
        assert_eq!(SyncobjWait::NUMBER, 0xc028_64c3);
    }
}
