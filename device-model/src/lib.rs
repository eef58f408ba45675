// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Device model of the card: registers, memory, command streamers, copy engine, GuC, interrupts.
//!
//! It does not depend on sockets or a PCI transport. Its interfaces to the VMM are [`host::Dma`],
//! [`host::InterruptSink`] and [`host::Clock`], and [`gpu::Gpu`] in the other direction.
//!
//! # Interface
//! VMMs use the crate `arctic-gpu`, which presents the card as PCI functions. The modules documented here are the
//! interface of this crate: a [`profile::CardProfile`] describes a card, [`card::Card`] is the card, [`gpu`] has the
//! traits that every family of GPUs implements, [`workers`] runs a GPU on threads, [`hardware_error`] has the errors that
//! the card can report, [`report`] and [`trace`] observe it, [`sync`] lists the locks. Semantic versioning applies to
//! them.
//!
//! The other public modules have the units of the card, for the project's own tests, tools and decoders. They are
//! hidden from the documentation, are not an interface, and change without a new major version.
//! `cargo doc --document-private-items -p arctic-device-model` documents them.
#![forbid(unsafe_code)]

pub mod card;
pub mod event_count;
pub mod gpu;
pub mod hardware_error;
pub mod host;
pub mod profile;
pub mod report;
pub mod sync;
pub mod trace;
pub mod workers;

#[doc(hidden)]
pub mod blitter;
#[doc(hidden)]
pub mod command;
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
pub mod pcode;
#[doc(hidden)]
pub mod registers;
mod residency;
#[doc(hidden)]
pub mod state;
#[doc(hidden)]
pub mod topology;
