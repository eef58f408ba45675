// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The runner of guests: fetches QEMU, kernel and IGT, builds guest images, boots them and evaluates their logs.
//!
//! [`boot::run`] and [`igt::run`] are the two scenarios; the other modules support them. The device under test runs as
//! a separate process (`arctic serve`), so that a guest run tests the program that users start.

pub mod artifacts;
pub mod boot;
pub mod cache;
pub mod card;
pub mod clocks;
pub mod devices;
pub mod guest_process;
pub mod host_load;
pub mod igt;
pub mod image;
pub mod interrupt;
pub mod monitor;
pub mod nested;
pub mod process;
pub mod progress;
pub mod qemu;
pub mod report;
pub mod selftests;
pub mod skipped;
pub mod terminal;
pub mod tsc;
pub mod viommu;

use arctic_guest_agent::number;
pub use arctic_guest_agent::{driver, kernel_log, path, testcard};
