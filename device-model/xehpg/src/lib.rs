// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The Xe-HPG family of GPUs: registers, memory, command streamers, copy engine, GuC, interrupts.
//!
//! It does not depend on sockets or a PCI transport. Its interfaces to the VMM are [`host::Dma`],
//! [`host::InterruptSink`] and [`host::Clock`], and [`gpu::Gpu`] in the other direction, all of `arctic-base`.
//!
//! # Interface
//! VMMs use the crate `arctic-gpu`, which presents the card as PCI functions. A [`profile::CardProfile`] describes a
//! card, [`card::Card`] is the card, [`pci`] has its BARs, [`hardware_error`] has the errors that it can report. Semantic versioning applies to
//! these modules, as far as `arctic-device-model` re-exports them.
//!
//! The other public modules have the units of the card, for the project's own tests, tools and decoders. They are
//! hidden from the documentation, are not an interface, and change without a new major version.
//! `cargo doc --document-private-items -p arctic-xehpg` documents them.
#![forbid(unsafe_code)]

// The modules of the base have paths below the root of each family's crate.
use arctic_base::{event_count, gpu, host, report, state, trace};

pub mod card;
pub mod hardware_error;
pub mod pci;
pub mod profile;
pub mod sync;

#[doc(hidden)]
pub mod blitter;
#[doc(hidden)]
pub mod command;
#[doc(hidden)]
pub mod compute;
#[doc(hidden)]
pub mod context_image;
#[doc(hidden)]
pub mod decode;
#[doc(hidden)]
pub mod doorbell;
#[doc(hidden)]
pub mod engine;
mod execlist;
#[doc(hidden)]
pub mod gate;
#[doc(hidden)]
pub mod generation;
#[doc(hidden)]
pub mod gt;
#[doc(hidden)]
pub mod guc;
mod heci;
#[doc(hidden)]
pub mod interrupts;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod oa;
#[doc(hidden)]
pub mod pcode;
#[doc(hidden)]
pub mod registers;
mod residency;
#[doc(hidden)]
#[doc(hidden)]
pub mod sensors;
mod state_tree;
#[doc(hidden)]
pub mod topology;
#[doc(hidden)]
pub mod units;
