// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the tests, benches and fuzz targets of several packages share.
//!
//! Only integration tests, benches and fuzz targets can use it: in the unit tests of the device model, its types would
//! be those of another build of that crate.
//!
//! Features: `vfio-user` adds what needs the library with its server, `machines` the machines of the conformance suite.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "test code: numbers are chosen by the test"
)]
#![forbid(unsafe_code)]

pub mod bytes;
#[cfg(feature = "vfio-user")]
pub mod client;
pub mod context;
pub mod ct;
pub mod differential;
pub mod driver;
pub mod firmware;
pub mod grammar;
pub mod harness;
#[cfg(feature = "machines")]
pub mod machine;
pub mod mi;
pub mod process;
pub mod random;
pub mod replay;
pub mod vfs;
