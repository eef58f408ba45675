// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A virtual Intel Data Center GPU Flex 170 with SR-IOV, as a library for VMMs that use the rust-vmm crates.
//!
//! ```toml
//! arctic-gpu = { path = "..." }
//! ```
//!
//! A VMM creates a [`VirtualCard`] and gets its PF and VFs as [`PciDevice`]s: configuration space, trapped or mapped
//! BARs, one MSI each, reset. It provides guest memory ([`GuestRam`] around a `vm-memory` address space), an
//! [`MsiSink`] for each function, and a [`Machine`], which is notified of BAR addresses and of enabled and disabled
//! VFs. `examples/in_process.rs` is a short, complete example, `examples/own_threads.rs` one with a thread and memory of the
//! VMM; the package `arctic-vmm` is a KVM-based VMM that uses the library.
//!
//! ```no_run
//! use std::io;
//! use std::sync::Arc;
//!
//! use arctic_gpu::vm_memory::{GuestAddress, GuestMemoryMmap};
//! use arctic_gpu::{Function, GuestRam, Machine, MsiSink, PciDevice, VirtualCard, card_file};
//!
//! struct Board;
//! struct Interrupt;
//!
//! impl MsiSink for Interrupt {
//!     fn trigger(&self) { /* write to the function's irqfd */ }
//! }
//!
//! impl Machine for Board {
//!     fn msi(&self, _function: Function) -> io::Result<Arc<dyn MsiSink>> {
//!         Ok(Arc::new(Interrupt))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ram = Arc::new(GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 30)])?);
//! let card = VirtualCard::builder(card_file::load("flex170")?).vfs(7).plug_into(Arc::new(Board), GuestRam::new(ram))?;
//! let mut id = [0; 4];
//! card.pf().read_config(0, &mut id);
//! assert_eq!(u32::from_le_bytes(id), 0x56c0_8086);
//! # Ok(())
//! # }
//! ```
//!
//! # Threads
//! * A card has a worker thread for each processor, at most 16, or `threads` of the card file's `[limits]`; [`Builder`] has other
//!   choices, also none. They run until the card is dropped, and execute the work that an access triggers (GuC requests, engines,
//!   kernels, interrupts).
//! * Every method may be called from any thread. Several vCPUs may access one function concurrently. An access is
//!   complete when the method returns, and never waits for a guest; a register read takes well under a microsecond. The
//!   slowest accesses are configuration writes that reset or enable functions, which wait for a step of each engine
//!   (under 1 ms each).
//! * [`Machine`] and [`MsiSink::route`] are called on the thread of the access, after the card has applied the change,
//!   with the function's configuration lock held. They must not call [`PciDevice::write_config`], [`PciDevice::reset`]
//!   or [`PciDevice::power_off`] (deadlock). Changes of one function are reported one at a time and in order.
//!   [`MsiSink::trigger`] and [`LineSink::set_level`] are called from any thread.
//! * On a loaded host, call [`scheduling::request_short_slice`] on the thread that creates the card and the vCPUs.
//! * The card calls into the VMM without engine or GuC locks held. The exceptions are [`MsiSink::trigger`],
//!   [`LineSink::set_level`] and the address space in [`GuestRam`], which therefore must not block. The module documentation of
//!   `arctic_device_model::sync` lists all locks in their order.
//!
//! # Lifetimes
//! * The card holds the machine and guest memory until it and all its functions are dropped. To avoid a reference
//!   cycle, a machine must hold the card as `Weak` and drop an `Arc<dyn PciDevice>` when [`Machine::bar_moved`] reports
//!   `None` for its BARs; otherwise machine and card leak.
//! * A [`BarMapping`] borrows its file. Once mapped, the mapping may outlive the card.
//! * Guest memory that is replaced (`GuestMemoryAtomic::replace`) is no longer used when
//!   [`VirtualCard::memory_changed`] returns; until then the card keeps the old mapping alive.
//! * [`PciDevice::reset`] must be called on a reset of the machine. [`PciDevice::power_off`] also clears the card's
//!   memory.
//!
//! # Panics and integer overflow
//! The card does not depend on the profile of the program that links it. Values of guests and clients are computed with
//! checked, saturating, wrapping or masked operations, so they cause neither a panic nor an overflow. `overflow-checks`
//! and `panic` may have any value; `cargo xtask long profiles` compares both extremes.
//! * A panic in the card is a bug in the card. With unwinding, a worker thread catches a panic in a step, resets the
//!   engine or the GuC that was stepped, and continues; a vfio-user server closes the connection that sent the message.
//!   A panic in a method that the VMM calls propagates to the VMM. Locks remain usable.
//! * With `panic = "abort"`, as in crosvm and Firecracker, such a bug ends the process.
//! * With `overflow-checks = true` for the packages `arctic-xehpg` and `arctic-base`, an overflow that the code does not
//!   expect is such a bug. Without it (Cargo's default), the value wraps. Accesses to memory are checked against their bounds in
//!   both cases, and isolation between functions does not depend on `unsafe` code of the card.
//! * The card allocates a bounded amount of memory for each function. A failed allocation ends the process.
//!
//! # Limits
//! VFs of a card without a PF driver and integrated GPUs can be saved and restored ([`SavedDevice`]); Flex cards as a whole
//! cannot. Accesses of the card to guest memory mark the bitmap of the VMM's memory. No MSI-X. Integrated GPUs have INTx ([`LineSink`]), Flex cards do
//! not. The user-space doorbell pages are trapped.
//!
//! # Stability
//! A VMM finds what it needs at the top of this crate; [`pci`] has the traits, [`card_file`] the cards. Enums and
//! structs that will grow are `#[non_exhaustive]`, and traits grow by methods with a default. Items that are hidden
//! from this documentation, and the hidden modules of `arctic-device-model`, are for the project's own tests and tools;
//! they change without a new major version.
//!
//! # Features
//! * `vm-device`: `vm_device::MmioBar` implements `DeviceMmio` for BARs.
//! * `event-manager`: implements `MutEventSubscriber` for [`IoEventHandler`].
//! * `vfio-user`: the server for VMMs in separate processes (`arctic_gpu::vfio_user`).
//!
//! There are no default features. The command-line program `arctic` is the package `arctic-cli`.

pub mod card;
pub mod card_file;
pub mod firmware;
mod line_limit;
pub mod pci;
mod ram;
pub mod report;
pub mod scheduling;
#[cfg(feature = "vfio-user")]
pub mod vfio_user;
#[cfg(feature = "vm-device")]
pub mod vm_device;

pub use arctic_device_model::gen6::profile::IntegratedProfile;
pub use arctic_device_model::gpu::WorkStatus;
pub use arctic_device_model::host::{Clock, HostClock};
pub use arctic_device_model::profile::CardProfile;
pub use arctic_device_model::profile::limits::Limits;
pub use arctic_device_model::profile::provision::{GgttAccess, VfLocalMemory};
pub use arctic_device_model::{gpu, inspect, trace};
pub use arctic_sriov;
pub use card::{Builder, CardError, CardFunction, IoEventHandler, IoEventThread, Topology, VirtualCard};
pub use card_file::{CardFile, CardFileError};
pub use pci::{
    Access, Bar, BarKind, BarMapping, Dma, DmaFault, DmaView, Event, Function, IoEvent, LineSink, Machine, MsiMessage,
    MsiSink, PciDevice, SavedDevice, StateError,
};
pub use ram::GuestRam;
pub use report::TrappedCounts;
pub use {vm_memory, vmm_sys_util};
