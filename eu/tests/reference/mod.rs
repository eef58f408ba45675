// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A second implementation of the instructions on lanes, written from the items of the document on the ISA alone: it shares
//! no code with the interpreter, which was not read for it, and does not use the floating-point arithmetic of the host.
//!
//! It is slow and plain: exact integers and numbers, one function an opcode, one lane after the other.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "bits are reinterpreted and masked all the time"
)]

pub mod exact;
pub mod float;
pub mod integer;
pub mod lane;
pub mod math;
pub mod state;
pub mod value;
pub mod walk;
