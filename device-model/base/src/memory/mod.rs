// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory behind the translations of a GPU: regions that a VMM maps, spans of one translation, and the order in which
//! memory is taken away from a function.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod access;
pub mod cell;
pub mod epoch;
pub mod region;
pub mod span;
mod without_messages;

pub use access::Zeroed;
pub use cell::CellValue;
pub use span::{CopyError, Span, SpanError};
pub use without_messages::WithoutMessages;

pub use crate::host::Access;
