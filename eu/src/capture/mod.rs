// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A captured walker: a dispatch that a card has executed, with the memory that its threads accessed, before and after it. A
//! [`Replay`] executes it again without the card, and compares the memory.
//!
//! A capture has what a card has decoded of its state (bases, surfaces, samplers), so that neither a card nor its formats are needed
//! to execute it, and the commands that this was decoded from, for readers. `docs/capture.md` describes the format of files.

mod format;
mod memory;
mod planes;
mod replay;

use std::collections::BTreeMap;

pub use format::{CaptureError, MAGIC, VERSION};
pub use memory::{Comparison, Difference, ReplayMemory};
pub use planes::{Planes, Tile};
pub use replay::{Ended, Replay, ReplayObserver, ReplayStop};

use crate::exec::memory::{Image, Sampler, SurfaceMemory};
use crate::exec::payload::Dispatch;

/// Bytes of a page of a capture.
pub const PAGE_BYTES: usize = 4096;
/// Bits of a virtual address. Higher ones are ignored in bases, offsets and sums. EU-006.
pub const ADDRESS: u64 = (1 << 48) - 1;
/// Most threads of a group. EU-091.
pub const MOST_THREADS: u32 = 128;
/// Most bytes of shared local memory of a group. EU-050.
pub const MOST_SLM: u32 = 65536;

/// A walker with the memory that its threads accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Where it was captured.
    pub origin: Origin,
    /// Commands that set the state of the context (STATE_BASE_ADDRESS and others), one behind the other.
    pub commands: Vec<u32>,
    /// Dwords of COMPUTE_WALKER.
    pub walker: Vec<u32>,
    /// What is executed.
    pub launch: CapturedLaunch,
    /// Surfaces that messages named, decoded. Their names are different.
    pub surfaces: Vec<(SurfaceName, CapturedSurface)>,
    /// Samplers that messages named, decoded. Their names are different.
    pub samplers: Vec<(SamplerName, Option<Sampler>)>,
    /// Pages that threads accessed, or that their code is in.
    pub pages: BTreeMap<PageName, Page>,
    /// How the walker ended.
    pub end: CapturedEnd,
}

/// Where a walker was captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Function of its context: 0 for the PF.
    pub function: u8,
    /// Name of its engine.
    pub engine: String,
    /// Its number among the walkers that were counted, from 1.
    pub number: u64,
}

/// What a walker executes: its range of groups, and what their threads start with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedLaunch {
    /// What threads start with. At most [`MOST_THREADS`] threads.
    pub dispatch: Dispatch,
    /// Registers of a thread, 128 or 256.
    pub registers: u32,
    /// Bytes of shared local memory of a group, at most [`MOST_SLM`].
    pub slm: u32,
    /// Virtual address that addresses of code are relative to.
    pub instruction_base: u64,
    /// Offset of the kernel from the instruction base.
    pub kernel: u32,
    /// Offset of the system routine from the instruction base. EU-061.
    pub system_routine: Option<u32>,
    /// Most bytes of code that are translated; a thread that comes to more ends.
    pub code_limit: u32,
    /// Virtual address that stateless messages are relative to.
    pub general_base: u64,
    /// First group to execute; `None` if there is none.
    pub first: Option<[u32; 3]>,
    /// First group of the range.
    pub start: [u32; 3],
    /// End of the range in each direction.
    pub end: [u32; 3],
    /// Directions in the order in which groups are executed, the innermost first.
    pub order: [u8; 3],
}

impl CapturedLaunch {
    /// Virtual address of the kernel.
    pub fn kernel_address(&self) -> u64 {
        self.instruction_base.wrapping_add(self.kernel.into()) & ADDRESS
    }

    /// The group after `group` (EU-024).
    pub fn after(&self, mut group: [u32; 3]) -> Option<[u32; 3]> {
        for axis in self.order {
            let axis = usize::from(axis) % 3;
            if group[axis].saturating_add(1) < self.end[axis] {
                group[axis] += 1;
                return Some(group);
            }
            group[axis] = self.start[axis];
        }
        None
    }

    /// Number of groups.
    pub fn groups(&self) -> u64 {
        let sizes = self.start.iter().zip(self.end).map(|(start, end)| u64::from(end.saturating_sub(*start)));
        if self.dispatch.threads == 0 { 0 } else { sizes.fold(1, u64::saturating_mul) }
    }
}

/// The name of a surface in a message, as far as it selects a surface state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SurfaceName {
    /// Entry of the binding table.
    Binding(u8),
    /// Byte offset from the bindless surface base.
    Bindless(u32),
    /// Byte offset from the surface state base.
    State(u32),
}

/// A surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedSurface {
    /// Virtual address of its state.
    pub address: u64,
    /// Its memory for messages with untyped elements.
    pub memory: SurfaceMemory,
    /// Its texels for typed, media block and sampler messages.
    pub image: CapturedImage,
}

/// The texels of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturedImage {
    /// It is no image.
    None,
    /// An image whose tiling, compression or format the card does not support.
    Unsupported,
    /// An image without texels: reads give 0, writes are dropped. The handle of the image is 0.
    Null(Image),
    /// An image, whose handle is 0, and where its texels are.
    Texels(Image, Planes),
}

/// The name of a sampler in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SamplerName {
    /// Bindless pointer, if it is a bindless one.
    pub pointer: Option<u32>,
    /// Number.
    pub index: u8,
}

/// The name of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageName {
    /// Virtual address, a multiple of [`PAGE_BYTES`] below 2^48.
    pub address: u64,
    /// It has the bytes that accesses to a compressed image deliver; otherwise those of memory. A capture has one of both.
    pub compressed: bool,
}

/// The bytes of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// All are 0.
    Zeros,
    /// These.
    Bytes(Box<[u8; PAGE_BYTES]>),
}

impl Content {
    /// The content of these bytes.
    pub fn of(bytes: Box<[u8; PAGE_BYTES]>) -> Content {
        if bytes.iter().all(|byte| *byte == 0) { Content::Zeros } else { Content::Bytes(bytes) }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; PAGE_BYTES] {
        match self {
            Content::Zeros => &[0; PAGE_BYTES],
            Content::Bytes(bytes) => bytes,
        }
    }
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// It reads as 0, and writes are dropped.
    Null,
    /// Memory.
    Memory {
        /// Its bytes before the walker's first access.
        before: Content,
        /// Its bytes after the walker, if they are others.
        after: Option<Content>,
    },
}

/// How a captured walker ended on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedEnd {
    /// Groups that have ended.
    pub groups: u64,
    /// Instructions that were executed.
    pub instructions: u64,
    /// Why it went no further.
    pub reason: EndReason,
}

/// Why a captured walker went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// All groups have ended.
    Complete,
    /// An access has failed, of this instruction or of its code.
    Fault(EndPlace),
    /// All threads of a group that have not ended wait for a barrier that none of them will complete.
    Barrier(EndPlace),
}

/// Where a captured walker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndPlace {
    /// Group.
    pub group: [u32; 3],
    /// Thread in the group.
    pub thread: u32,
    /// Virtual address of the instruction.
    pub address: u64,
}
