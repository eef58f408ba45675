// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Code shared by the integration tests, benches and fuzz targets of several packages.
//!
//! Unit tests of the device model cannot use this crate: it links a separate build of the device model, and the types
//! of the two builds are distinct. What they share is in `arctic-mi` and `arctic-guc-driver`, which know no crate of the
//! device.
//!
//! Features: `vfio-user` adds the modules that need the library's vfio-user server, `machines` adds the machines of the
//! conformance suite.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "test code: numbers are chosen by the test"
)]
#![forbid(unsafe_code)]

/// Time limit of an assertion. It is `$limit` if the calling package is built with its feature `long-tests`, as the
/// long job `in-time` does on an idle host. Otherwise it is 20 times as much: the quick and the full tier run on loaded
/// hosts, where a limit of a second depends on the scheduler, and still fail if a thread is blocked.
#[macro_export]
macro_rules! in_time {
    ($limit:expr) => {
        if cfg!(feature = "long-tests") { $limit } else { 20 * $limit }
    };
}

pub mod bytes;
#[cfg(feature = "vfio-user")]
pub mod client;
pub mod differential;
pub mod document;
pub mod driver;
#[cfg(feature = "vfio-user")]
pub mod golden;
pub mod grammar;
pub mod harness;
pub mod kernels;
pub mod logged_ram;
#[cfg(feature = "machines")]
pub mod machine;
pub mod measure;
#[cfg(feature = "vfio-user")]
pub mod model;
#[cfg(feature = "vfio-user")]
pub mod null_machine;
pub mod poll;
pub mod process;
pub mod random;
pub mod replay;
#[cfg(feature = "vfio-user")]
pub mod served;
pub mod vfs;

pub use arctic_guc_driver::{actions, context, ct, firmware};
pub use arctic_mi as mi;
