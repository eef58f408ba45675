// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Code shared by the differential test and fuzz targets: a generator of work from random well-formed commands, a card
//! that executes it, and an independent reference model.
//!
//! The differential test covers an MI command only if it has an arm in `grammar/commands.rs`, which encodes it, and is
//! implemented in `reference/`. Both are written manually; the command table of the device model provides neither.

pub mod choice;
pub mod compare;
pub mod grammar;
mod guests;
pub(crate) mod initial;
pub(crate) mod layout;
pub mod minimise;
pub mod moved;
mod reference;
pub(crate) mod world;
