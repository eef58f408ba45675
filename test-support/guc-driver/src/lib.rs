// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A driver's side of the GuC, for tests of the device model and of its transports.
//!
//! The crate knows no crate of the device: it is written from the driver contract (`docs/spec/xe-driver-contract.md`).
//! A test implements [`Access`] (registers, and dwords of memory that the GGTT maps) and gets the protocol from
//! [`GucDriver`]: loading the firmware, mailbox, CT buffers, contexts. Hostile tests send any dwords by [`GucDriver::mail`]
//! and [`GucDriver::put`], and change what [`GucDriver::write_context`] has written.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
pub mod actions;
pub mod context;
pub mod ct;
mod driver;
pub mod firmware;
mod inbox;
pub mod provision;

pub use access::Access;
pub use driver::{DriverState, GucDriver, Layout};
pub use inbox::Inbox;
