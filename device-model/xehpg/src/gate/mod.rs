// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Isolation rules, which define the accesses that each function may make. Pure functions of the caller's inputs.
//!
//! The card calls them on its register, translation and memory paths. They do not allocate or lock, and do a bounded
//! amount of work. A function is identified by its number, 0 for the PF and 1 to 63 for the VFs. The caller takes the
//! number from its own state (the BAR that was accessed, the GuC's context record), never from a guest.

pub mod ggtt;
pub mod lmtt;

/// Number of the physical function.
pub const PF: u8 = 0;
