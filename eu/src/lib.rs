// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#![doc = include_str!("../README.md")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "lanes, registers and offsets are reinterpreted and masked all the time, and floats are rounded"
)]

pub mod capture;
pub mod exec;
pub mod float;
pub mod isa;
#[cfg(feature = "launch")]
pub mod launch;
pub mod text;
#[cfg(feature = "launch")]
pub mod zebin;
