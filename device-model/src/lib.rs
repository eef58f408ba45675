// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Device model of the card: registers, memory, command streamers, copy engine, GuC, interrupts.
//!
//! It does not depend on sockets, a PCI transport or files. Its interfaces to the VMM are [`host::Dma`],
//! [`host::InterruptSink`] and [`host::Clock`].
#![forbid(unsafe_code)]

pub mod blitter;
pub mod card;
pub mod command;
pub mod decode;
pub mod doorbell;
pub mod engine;
pub mod execlist;
pub mod generation;
pub mod gt;
pub mod guc;
pub mod heci;
pub mod host;
pub mod interrupts;
pub mod memory;
pub mod pcode;
pub mod profile;
pub mod registers;
pub mod report;
pub mod residency;
pub mod state;
pub mod sync;
pub mod topology;
pub mod trace;
