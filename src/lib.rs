//! A virtual Intel Data Center GPU Flex 170 with SR-IOV, as a library for VMMs in the manner of rust-vmm.
//!
//! ```toml
//! arctic-gpu = { path = "...", default-features = false }   # the library alone
//! ```
//!
//! A VMM makes a [`VirtualCard`] and gets its PF and VFs as [`PciDevice`]s: configuration space, BARs that are trapped or
//! mapped, one MSI each, reset. It gives guest memory ([`GuestRam`] around a `vm-memory` address space), an [`MsiSink`]
//! for each function, and as [`Machine`] hears where BARs are and which VFs exist. `examples/in_process.rs` shows all of
//! it in one page; the package `arctic-vmm` is a VMM on KVM that uses it.
//!
//! # Threads
//! * The card runs on threads of its own, at most four, from [`VirtualCard::new`] until it is dropped. What an access
//!   sets in motion beyond itself (the GuC's answers, engines at work, interrupts) happens there.
//! * Every method may be called from any thread. Several vCPUs may access one function at a time. An access is complete
//!   when it returns and never waits for a guest; a register read takes well under a microsecond. The longest are
//!   configuration writes that reset or enable functions, which wait for a step of each engine (under 1 ms each).
//! * [`Machine`] and [`MsiSink::route`] are called on the thread of the access, after the card has done its part.
//!   Changes of one function come one after the other and in order. [`MsiSink::trigger`] is called from any thread.
//! * The card never calls into the VMM with a lock of an engine or of the GuC held, except [`MsiSink::trigger`], which
//!   therefore must not block.
//!
//! # Lifetimes
//! * The card holds the machine and guest memory until it and all its functions are dropped. A machine that holds the
//!   card in turn holds it weakly, and lets go of functions as their BARs go.
//! * A [`BarMapping`] borrows the file; map it, and the mapping may outlive the card.
//! * Guest memory that is taken away (`GuestMemoryAtomic::replace`) is out of use when [`VirtualCard::memory_changed`]
//!   returns; until then the card keeps its mapping alive, never dangling.
//! * [`PciDevice::reset`] is a reset of the machine; [`CardFunction::power_off`] empties the card's memories as well.
//!
//! # Limits
//! No migration, no dirty tracking of guest memory, no INTx and no MSI-X. Doorbell pages of user space are trapped.
//!
//! # Features
//! * `event-manager`: [`IoEventHandler`] is a subscriber for that crate's loop.
//! * `vfio-user`: the server, for VMMs in other processes (`arctic_gpu::vfio_user`).
//! * `program` (default): the command line `arctic`.

pub mod card;
pub mod card_file;
#[cfg(feature = "program")]
pub mod cli;
#[cfg(feature = "program")]
pub mod decode;
#[cfg(feature = "vfio-user")]
pub mod dma;
#[cfg(feature = "program")]
pub mod fidelity;
pub mod firmware;
mod io_events;
#[cfg(feature = "program")]
pub mod listening;
pub mod pci;
mod ram;
pub mod report;
#[cfg(feature = "program")]
pub mod run_dir;
#[cfg(feature = "program")]
pub mod status_socket;
#[cfg(feature = "program")]
pub mod trace_socket;
#[cfg(feature = "vfio-user")]
pub mod vfio_user;

pub use arctic_device_model::profile::CardProfile;
pub use card::{Arrangement, CardError, CardFunction, VirtualCard};
pub use io_events::{IoEventHandler, IoEventThread};
pub use pci::{Bar, BarMapping, Function, IoEvent, Machine, MsiMessage, MsiSink, PciDevice};
pub use ram::GuestRam;
pub use {vm_memory, vmm_sys_util};
