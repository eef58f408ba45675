// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Launch of a kernel of a zebin: memory, payload and groups as a driver makes them, executed on the host's cores.

mod arguments;
mod dispatch;
mod image;
mod implicit;
mod load;
pub mod memory;
mod payload;
mod printf;
mod region;

pub use arguments::{Argument, parse_image_format};
pub use dispatch::{GroupStatus, Hang, Location, Outcome, Report};
pub use printf::printf_text;

use thiserror::Error;

use crate::exec::{Host, Program, Thread, Way};
use crate::zebin::{Kernel, Zebin, ZebinError};
use memory::Space;
use region::Region;

/// Why a launch cannot be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LaunchError {
    /// The file.
    #[error(transparent)]
    Zebin(#[from] ZebinError),
    /// Memory of the host.
    #[error("no memory for {name} of {size} bytes: use a smaller one")]
    Memory {
        /// Name.
        name: String,
        /// Bytes.
        size: usize,
    },
    /// Arguments have no value: their names and types.
    #[error("no value for {0}: add `--arg NAME=VALUE` for each; a pointer can be `null`")]
    Missing(String),
    /// An argument is to have the buffer of another one, which has none.
    #[error("the argument {name} is to have the buffer of {other}, which has none of its own")]
    Same {
        /// Name.
        name: String,
        /// Name of the other argument.
        other: String,
    },
    /// The kernel has no such argument.
    #[error("the kernel has no argument {name}: it has {known}")]
    Unknown {
        /// Name that was given.
        name: String,
        /// Names of the arguments.
        known: String,
    },
    /// An argument has another kind.
    #[error("the argument {name} is {expected}: give it as {form}")]
    Kind {
        /// Name.
        name: String,
        /// Kind that the kernel expects.
        expected: &'static str,
        /// How to write it.
        form: &'static str,
    },
    /// Sizes of the range.
    #[error("{0}")]
    Range(String),
    /// Part of the payload.
    #[error("the kernel needs {0}, which is not supported")]
    Payload(String),
}

impl LaunchError {
    /// The error of an argument that the kernel does not have.
    pub fn unknown(kernel: &Kernel, name: &str) -> LaunchError {
        let known: Vec<&str> = kernel.arguments.iter().map(|argument| argument.name.as_str()).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        LaunchError::Unknown { name: name.into(), known }
    }
}

/// Sizes of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Work items.
    pub global: [u32; 3],
    /// Work items of a group.
    pub local: [u32; 3],
    /// First global id.
    pub offset: [u32; 3],
}

/// Which entry of the kernel is used. EU-031.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LocalIds {
    /// As a driver chooses: by hardware, if the sizes are powers of two.
    #[default]
    Driver,
    /// In registers at the start.
    Hardware,
    /// Loaded by the kernel from memory.
    Memory,
}

/// Settings of a launch.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Host threads; 0 for all.
    pub workers: usize,
    /// Instructions of a thread after which it is taken for endless.
    pub limit: u64,
    /// Instructions of all threads together after which the launch ends.
    pub total_limit: u64,
    /// Groups that are resident at once; 0 for as many as the card has threads and shared local memory for.
    pub resident: u64,
    /// Source of local ids.
    pub local_ids: LocalIds,
    /// Functions for lanes.
    pub host: Host,
    /// Way of execution.
    pub way: Way,
    /// Dimensions of the range, as kernels see their number; those with more than one work item if `None`.
    pub dimensions: Option<u8>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workers: 0,
            limit: 1 << 32,
            total_limit: u64::MAX,
            resident: 0,
            local_ids: LocalIds::Driver,
            host: Host::detect(),
            way: Way::Fast,
            dimensions: None,
        }
    }
}

/// A launch that is ready to run.
pub struct Launch {
    /// Name of the kernel.
    pub name: String,
    /// Translated code.
    pub code: Program,
    /// Memory, surfaces and samplers.
    pub space: Space,
    /// Buffers of the arguments: name, address, bytes.
    pub buffers: Vec<(String, u64, usize)>,
    /// Buffer of printf.
    pub printf: Option<u64>,
    kernel: Kernel,
    range: Range,
    settings: Settings,
    /// Groups of each size, by [`Range::region`].
    regions: [Option<Region>; 8],
    /// Bytes of shared local memory of a group.
    slm: usize,
}

impl Launch {
    /// Prepares a kernel with arguments by name.
    pub fn new(
        zebin: &Zebin,
        kernel: Option<&str>,
        range: Range,
        arguments: &[(String, Argument)],
        settings: Settings,
    ) -> Result<Launch, LaunchError> {
        zebin.check_target()?;
        let kernel = zebin.kernel(kernel)?.clone();
        payload::prepare(zebin, kernel, range, arguments, settings)
    }

    /// Threads of a full group.
    pub fn threads(&self) -> u32 {
        threads(self.range.full(), self.kernel.simd)
    }

    /// Threads of a group, which are fewer if it is a partial one.
    pub fn threads_of(&self, group: [u32; 3]) -> u32 {
        self.region(group).map_or(0, |region| threads(region.local, self.kernel.simd))
    }

    /// Groups in each direction.
    pub fn groups(&self) -> [u32; 3] {
        self.range.groups()
    }

    fn region(&self, group: [u32; 3]) -> Option<&Region> {
        self.regions[self.range.region(group)].as_ref()
    }

    /// Bytes of a buffer after the launch.
    pub fn buffer(&self, name: &str) -> Option<Vec<u8>> {
        let (_, address, size) = self.buffers.iter().find(|(found, ..)| found == name)?;
        Some(self.space.peek(*address, *size))
    }

    /// State of a thread of a group at its start. EU-030, EU-031, EU-032. Nothing for a group that the launch does not have.
    pub fn start(&self, thread: &mut Thread, group: [u32; 3], number: u32, hardware: u32) {
        let Some(region) = self.region(group) else { return };
        region.payload.write(thread, group, number, hardware);
        thread.base = self.code.base;
        thread.next = region.entry;
    }

    /// The dispatch's settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sizes of the launch.
    pub fn range(&self) -> &Range {
        &self.range
    }

    /// Bytes of shared local memory of a group.
    pub fn local_memory(&self) -> usize {
        self.slm
    }

    /// Lanes of a thread.
    pub fn simd(&self) -> u32 {
        self.kernel.simd
    }
}

/// Threads of a group of this size.
fn threads(local: [u32; 3], simd: u32) -> u32 {
    region::items(local).div_ceil(u64::from(simd.max(1))) as u32
}
