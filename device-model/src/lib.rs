// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The device models, for the crate `arctic-gpu`, which presents a card as PCI functions: [`gpu`] has the traits that
//! every family of GPUs implements, [`workers`] runs a GPU on threads, [`host`] has the interfaces to the VMM, [`report`]
//! and [`trace`] observe a card, [`sync`] lists the locks. Of the family Xe-HPG (`arctic-xehpg`), a
//! [`profile::CardProfile`] describes a card, [`card::Card`] is the card, [`pci`] has its BARs, and [`hardware_error`] has the
//! errors that it can report. [`gen6`] has the family of integrated GPUs (`arctic-gen6`), with modules of the same names. Semantic
//! versioning applies to these modules.
//!
//! The other modules have the units of a card, for the project's own tests, tools and decoders. They are hidden from
//! the documentation, are not an interface, and change without a new major version.
#![forbid(unsafe_code)]

pub use arctic_base::{event_count, gpu, host, inspect, limits, report, trace, workers};
pub use arctic_xehpg::{card, hardware_error, pci, profile, sync};

/// The family of integrated GPUs: Ivy Bridge.
pub mod gen6 {
    pub use arctic_gen6::{card, profile, sync};
    #[doc(hidden)]
    pub use arctic_gen6::{decode, generation, gt, interrupts, memory, pcode, registers, topology};
}

/// The disassembler of all families; the modules `decode` have what each family adds.
#[doc(hidden)]
pub mod disassembler {
    pub use arctic_base::command::{Addressing, Decode, Description, Remarks};
    pub use arctic_base::decode::batch::Batch;
    pub use arctic_base::decode::family::{Engine, Family, Kernels};
    pub use arctic_base::decode::show::{Names, Shown};
}
#[doc(hidden)]
pub use arctic_base::state;
#[doc(hidden)]
pub use arctic_xehpg::{
    blitter, command, compute, context_image, decode, doorbell, engine, gate, generation, gt, guc, interrupts, memory,
    pcode, registers, topology,
};
