// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interface between a GPU of any family and the code that presents it as PCI functions, runs it on threads and
//! displays its state. A [`Model`] describes a card and powers it on; the [`Gpu`] is the running card.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::any::Any;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use arctic_sriov::function::{FunctionError, PciFunction};
use arctic_sriov::header::Identity;
use serde::Serialize;

pub use crate::event_count::EventCount;
pub use crate::host::{Clock, InterruptSink};
pub use crate::report::{Report as ModelReport, SkippedCommands, TouchedRegister};
pub use crate::status::{
    EngineStatus, FunctionState, FunctionStatus, KernelCounts, KernelStatus, PowerStatus, Quota, Status, StreamStatus,
};

use crate::host::{Dma, Function};
use crate::inspect::Inspect;
use crate::limits::Limits;
pub use crate::registers::{
    AtOffset, Behaviour, CommandAccess, Permission, RegisterDescription, RegisterGap, RegisterMap, VfViews,
};
pub use crate::state::StateError;
pub use crate::state::format::{Document, Kind, Tag, Writer};
use crate::trace::{Filter, Recorder};

/// Values with their names, as they appear in JSON documents.
pub type Values = serde_json::Map<String, serde_json::Value>;

/// The environment of a card.
#[derive(Clone)]
pub struct Host {
    /// Guest memory of each function, as far as its configuration space permits accesses.
    pub memory: Arc<dyn Dma>,
    /// Receiver of the interrupts.
    pub interrupts: Arc<dyn InterruptSink>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// The card cannot be powered on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PowerOnError {
    /// The files that back the BARs cannot be created.
    #[error("cannot create the card's memory files: {0}")]
    Memory(#[source] io::Error),
    /// The VFs cannot have the resources that the card's description assigns to them. The text is a sentence.
    #[error("{0}")]
    Resources(String),
}

/// A description of a card: its PCI functions, and how it is powered on.
pub trait Model {
    /// Display name.
    fn name(&self) -> &str;

    /// The PCI identity of the physical function and the VFs.
    fn identity(&self) -> Identity;

    /// Maximum number of VFs; 0 for a card without SR-IOV.
    fn total_vfs(&self) -> u8;

    /// Limits on the host resources that the clients of a served card may use.
    fn limits(&self) -> Limits;

    /// Whether a VMM may post writes to BARs: let the guest continue before a write is complete. If not, drivers of the
    /// card write memory through a BAR and then read it through another mapping, without an access to the card between.
    fn posted_writes(&self) -> bool;

    /// The physical function with a capability for `vfs` VFs; without the capability if `vfs` is 0.
    fn physical_function(&self, vfs: u8) -> Result<PciFunction, FunctionError>;

    /// A virtual function, with its BARs. Called only if the card has VFs.
    fn virtual_function(&self) -> Result<PciFunction, FunctionError>;

    /// The same virtual function on a bus with SR-IOV: without BARs, which the physical function describes. Called only
    /// if the card has VFs.
    fn virtual_function_on_bus(&self) -> Result<PciFunction, FunctionError>;

    /// The registers that the card models, as its tables have them.
    fn register_map(&self) -> RegisterMap;

    /// Creates the card with `vfs` VFs, powered on. If `provisioned`, no guest has the physical function: the card
    /// assigns the resources of all VFs itself.
    fn power_on(&self, vfs: u8, provisioned: bool, host: Host) -> Result<Arc<dyn Gpu>, PowerOnError>;
}

/// A range of a BAR that a VMM may map into its guest. Accesses to it read and write memory without side effects.
///
/// Offsets and length are multiples of 4 KiB. A VMM that cannot map the range must forward each access to the function.
#[derive(Clone, Copy, Debug)]
pub struct BarMapping<'f> {
    /// Offset in the BAR, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// The backing file; must be mapped shared, readable and writable.
    pub file: &'f File,
    /// Offset in the file, in bytes.
    pub file_offset: u64,
}

/// A register that may be written by events instead of accesses. The value written is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoRegister {
    /// Index of the BAR.
    pub bar: u8,
    /// Offset in the BAR.
    pub offset: u64,
    /// Width of the writes in bytes.
    pub len: u32,
    /// Whether a write has an effect. If not, its events need not be processed.
    pub effective: bool,
    /// Offsets in the BAR that must not be accessed before the events of earlier writes were processed.
    pub ordered: Range<u64>,
}

/// Result of [`Gpu::work`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStatus {
    /// Some work was executed. More may be pending.
    Busy,
    /// No work is due until the given time (ns of the card's clock) or the next wakeup ([`Gpu::wakeups`]).
    Idle(Option<u64>),
}

/// A hardware error that the card can report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReportableError {
    /// Name of the error.
    pub name: &'static str,
    /// The failure, in a few words.
    pub description: &'static str,
}

/// A running GPU.
///
/// What only some cards have is a trait of its own, which a method here returns: `None` if the card does not have it. None
/// of these methods has a default, so a family states what it lacks, and one that it has is complete.
///
/// Methods may be called concurrently from any thread. A method returns when all effects of the access are complete or
/// queued for [`Gpu::work`]; it never waits for a guest.
pub trait Gpu: Inspect + Any + Send + Sync {
    /// Reads BAR `bar` of `function` at `offset`, 1 to 8 bytes. Bytes that nothing decodes read all ones.
    fn read(&self, function: Function, bar: u8, offset: u64, data: &mut [u8]);

    /// Writes BAR `bar` of `function` at `offset`, 1 to 8 bytes.
    fn write(&self, function: Function, bar: u8, offset: u64, data: &[u8]);

    /// Resets `function`: a conventional reset of the physical function resets the card; an FLR of a VF resets the VF.
    fn reset(&self, function: Function);

    /// Names of the kinds of BAR accesses that are counted apart.
    fn access_kinds(&self) -> &'static [&'static str];

    /// Index in [`Gpu::access_kinds`] of an access; `None` if it is not counted.
    fn access_kind(&self, bar: u8, offset: u64, write: bool) -> Option<usize>;

    /// Name of what is at `offset` of BAR `bar` of `function`, for logs; `None` if it has no name.
    fn name_of(&self, function: Function, bar: u8, offset: u64) -> Option<String>;

    /// The card's clock.
    fn clock(&self) -> &dyn Clock;

    /// Executes a bounded amount of pending work. Several workers may call it at once. Must not panic: a panic in a
    /// step is contained by the card.
    fn work(&self) -> WorkStatus;

    /// Receives a wakeup when there may be new work. Workers sleep on it.
    fn wakeups(&self) -> &EventCount;

    /// Blocks until every step in progress has ended. Views of guest memory that these steps have taken are then no
    /// longer in use.
    fn quiesce(&self);

    /// Returns the report of unmodelled accesses and commands since power-on.
    fn report(&self) -> ModelReport;

    /// Takes a snapshot for display.
    fn status(&self) -> Status;

    /// The recorder of the card's events.
    fn trace(&self) -> &Arc<Recorder>;

    /// Its VFs. A card whose [`Model::total_vfs`] is not 0 has them.
    fn vfs(&self) -> Option<&dyn VirtualFunctions>;

    /// Its own memory.
    fn own_memory(&self) -> Option<&dyn OwnMemory>;

    /// Its own registers in configuration space.
    fn config_registers(&self) -> Option<&dyn ConfigRegisters>;

    /// The registers in BARs that may be written by events.
    fn events(&self) -> Option<&dyn IoEvents>;

    /// Its own threads besides the workers.
    fn own_threads(&self) -> Option<&dyn OwnThreads>;

    /// The hardware errors that it can report.
    fn hardware_errors(&self) -> Option<&dyn HardwareErrors>;

    /// The walkers that it can capture.
    fn walker_captures(&self) -> Option<&dyn WalkerCaptures>;

    /// What of it can be saved and restored.
    fn saved_state(&self) -> Option<&dyn SaveRestore>;
}

/// A card of which virtual functions, or which as a whole, can be saved and restored. The methods may be called as those of
/// [`Gpu`], but [`SaveRestore::pause`], which waits for the end of work.
pub trait SaveRestore {
    /// The kind of document that has the state of `function`; that of the physical function is the state of the whole card.
    ///
    /// # Errors
    /// [`StateError::Unsupported`] if it cannot be saved. The other methods must not be called then.
    fn saved_kind(&self, function: Function) -> Result<Kind, StateError>;

    /// Stops the work of the function: on return, no step uses its memory, and its work is in its memory and in its state. Its
    /// requests stay pending. If the work does not stop within `limit`, it continues, and the error is
    /// [`StateError::Busy`].
    fn pause(&self, function: Function, limit: Duration) -> Result<(), StateError>;

    /// Continues the work of a function that is paused.
    fn resume(&self, function: Function) -> Result<(), StateError>;

    /// Adds the state of a paused function to a document. It stays as it is.
    fn save(&self, function: Function, to: &mut Writer) -> Result<(), StateError>;

    /// Replaces the state of a paused function by that of a document, which may also have the sections `further` of the
    /// caller. Does not access the function's memory. Changes nothing if the function is not paused; any other error leaves
    /// it empty ([`SaveRestore::empty`]), but for the contents of its memory, and never restored in part.
    fn restore(&self, function: Function, from: &Document<'_>, further: &[Tag]) -> Result<(), StateError>;

    /// Size of the card's memory that the function has, in bytes, and the parts that contain data, ascending.
    fn contents(&self, function: Function) -> (u64, Vec<Range<u64>>);

    /// Reads that memory at `offset`.
    fn read_contents(&self, function: Function, offset: u64, data: &mut [u8]);

    /// Writes that memory at `offset`.
    fn write_contents(&self, function: Function, offset: u64, data: &[u8]);

    /// Clears that memory.
    fn clear_contents(&self, function: Function);

    /// Leaves a paused function as after a reset: drops what its driver has set up, and clears its memory. It stays paused.
    /// Changes nothing if the function is not paused, which is the error.
    fn empty(&self, function: Function) -> Result<(), StateError>;
}

/// A card with SR-IOV. The methods may be called as those of [`Gpu`].
pub trait VirtualFunctions {
    /// Enables VFs 1 to `count`, in their reset state.
    fn enable_vfs(&self, count: u8);

    /// Disables all VFs.
    fn disable_vfs(&self);

    /// Number of enabled VFs: VFs 1 to this number exist.
    fn enabled_vfs(&self) -> u8;

    /// Returns whether a step that waits for memory of `function` delays the work of other functions. Never waits.
    fn delays_others(&self, function: Function) -> bool;
}

/// A card with memory of its own, which keeps its contents over a reset. The methods may be called as those of [`Gpu`].
pub trait OwnMemory {
    /// The ranges of a BAR that may be mapped into a guest. With `limited`, a VF's memory is mapped up to its share, of
    /// which a change is reported ([`InterruptSink::mappings_changed`]); otherwise the ranges are constant.
    fn mappings(&self, function: Function, bar: u8, limited: bool) -> Vec<BarMapping<'_>>;

    /// The descriptors of all files that back the memory. A program that closes descriptors, to enter a sandbox, must keep them.
    fn descriptors(&self) -> Vec<RawFd>;

    /// Host memory allocated for the memory of `function`, in bytes.
    fn allocated(&self, function: Function) -> u64;

    /// Clears the memory of `function`, which was reset, before it returns; for the physical function, the memory of the
    /// whole card.
    fn clear(&self, function: Function);
}

/// A card with registers of its own in configuration space, besides those of its PCI capabilities.
pub trait ConfigRegisters {
    /// Software has written `data` to configuration space of `function` at `offset`. The registers of the function's
    /// PCI capabilities have taken effect. Called with the function's configuration lock held: must not call the host's
    /// machine.
    fn config_written(&self, function: Function, offset: u64, data: &[u8]);
}

/// A card with registers that may be written by events. The methods may be called as those of [`Gpu`].
pub trait IoEvents {
    /// The registers of each function that may be written by events.
    fn io_registers(&self) -> &'static [IoRegister];

    /// Processes a write of `function` to the register with this index in [`IoEvents::io_registers`]. The caller must
    /// then either call [`IoEvents::poll`] or post a wakeup.
    fn io_written(&self, function: Function, register: usize);

    /// Runs the work that [`IoEvents::io_written`] requested, if it can be done on the caller's thread. A thread that
    /// serves events calls this instead of waking the workers.
    fn poll(&self);
}

/// A card with threads of its own.
pub trait OwnThreads {
    /// Starts the threads, for workers that will call [`Gpu::work`]. `names` is the beginning of the threads' names. Called at most
    /// once.
    fn start_threads(&self, names: &str) -> io::Result<()>;

    /// Ends the threads. No method but this one and [`Gpu::work`] may be running.
    fn stop_threads(&self);
}

/// A card that reports hardware errors. The methods may be called as those of [`Gpu`].
pub trait HardwareErrors {
    /// The errors that the card can report.
    fn reportable(&self) -> Vec<ReportableError>;

    /// Makes the card report the error `name`. Returns false if it has no such error. Called without locks held.
    fn raise(&self, name: &str) -> bool;

    /// The error registers, a set of values for each severity.
    fn error_registers(&self) -> Vec<Values>;
}

/// A card that captures walkers, dispatches of a kernel, with the memory that they access. The methods may be called as those of
/// [`Gpu`].
pub trait WalkerCaptures {
    /// Requests the capture of a walker. The request ends when what is returned is dropped.
    ///
    /// # Errors
    /// If another request has not ended. The text is a sentence.
    fn capture_walker(&self, request: WalkerRequest) -> Result<Box<dyn WalkerCapture>, String>;
}

/// Which walker is captured, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkerRequest {
    /// Walkers that count: by function and engine.
    pub filter: Filter,
    /// Number of the walker among those that begin after the request, from 1.
    pub number: u64,
    /// Most bytes of memory that are captured.
    pub most_bytes: usize,
}

/// A requested capture.
pub trait WalkerCapture: Send {
    /// Waits for a change since the last call, for up to `limit`, and returns how far the request is.
    fn wait(&mut self, limit: Duration) -> CaptureProgress;
}

/// How far a requested capture is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureProgress {
    /// So many of the walkers that count have begun, and the last one has this kernel (virtual address).
    Waiting {
        /// Number of walkers.
        begun: u64,
        /// Address of the kernel of the last one; 0 if there is none.
        kernel: u64,
    },
    /// The walker is executed.
    Capturing {
        /// Address of its kernel.
        kernel: u64,
    },
    /// The bytes of the capture, once.
    Done(Vec<u8>),
    /// The walker was not captured. The text is a sentence without its end.
    Failed(String),
}
