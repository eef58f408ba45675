// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The family of integrated GPUs Gen6 and Gen7 (Sandy Bridge, Ivy Bridge): registers, address translation, rings,
//! the copy engine, interrupts, power and the edges of the display. A generation is data ([`generation::Generation`]).
//!
//! It does not depend on sockets or a PCI transport. Its interfaces to the VMM are those of `arctic-base`: guest memory,
//! interrupts and time ([`arctic_base::host`]), and [`arctic_base::gpu::Gpu`] in the other direction. A
//! [`profile::IntegratedProfile`] describes a card, [`card::Card`] is the card. Semantic versioning applies to these two
//! modules, as far as `arctic-device-model` re-exports them.
//!
//! Not modelled: the display beyond its edges, the 3D and media pipelines.
#![forbid(unsafe_code)]

pub mod card;
pub mod profile;

#[doc(hidden)]
pub mod blitter;
#[doc(hidden)]
pub mod command;
#[doc(hidden)]
pub mod decode;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod generation;
#[doc(hidden)]
pub mod gt;
#[cfg(test)]
mod guest;
#[doc(hidden)]
pub mod interrupts;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod pcode;
#[doc(hidden)]
pub mod registers;
mod residency;
pub mod sync;
#[doc(hidden)]
pub mod topology;
