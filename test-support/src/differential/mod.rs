// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The parts of the differential test that its fuzz targets share: work made of random well-formed commands, a card
//! that runs it, and the reference model, which runs it again.

pub mod choice;
pub mod compare;
pub mod grammar;
mod guests;
pub(crate) mod layout;
mod reference;
pub(crate) mod world;
