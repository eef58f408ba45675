// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state: what a unit of the card holds, for one virtual function or for a card without any, in a form that can be
//! stored and restored, on the same card or on another one.
//!
//! Each unit has a type for its saved state ([`SavedState`]) beside its code, and writes it as sections of a document
//! ([`format`](mod@format)), of records that are types of their own. Saved state of a function contains no data of other
//! functions, and no addresses or numbers of the card that differ where the function is provisioned differently: GGTT addresses are offsets in the function's range, contexts and doorbells have the function's own ids.
//!
//! Saved state that is restored comes from outside. A restore checks all of it, and fails instead of panicking.

mod config_space;
pub mod contents;
pub mod format;

use std::fmt;
use std::time::Duration;

pub use arctic_sriov::saved::{ConfigError, SavedConfig};
pub use format::{Document, FormatError, Record, Tag, Writer};

/// The saved state of one unit.
pub trait SavedState: Sized {
    /// Name of the unit, for messages.
    const UNIT: &'static str;
    /// The sections of its state.
    const TAGS: &'static [Tag];

    /// Adds the sections to a document.
    fn write(&self, to: &mut Writer);

    /// Returns the state of a document. Checks only that the state can be represented: the restore checks its values.
    fn read(from: &Document<'_>) -> Result<Self, RestoreError>;
}

/// A unit of the card that can save and restore its state for one function.
///
/// For both, the function must be stopped: none of its contexts is on an engine, and its requests are not executed
/// ([`SaveError::Running`], [`RestoreError::Running`]). Contexts that have left their engine are saved in the
/// function's memory. No engine or execution queue holds state of the function then.
pub trait SaveState {
    /// The saved state.
    type Saved: SavedState;

    /// Returns the unit's state of the function.
    fn save(&self) -> Result<Self::Saved, SaveError>;

    /// Replaces the unit's state of the function. After an error, it may be partially replaced.
    fn restore(&mut self, saved: &Self::Saved) -> Result<(), RestoreError>;
}

/// Reason why a function cannot be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// The function is not a VF.
    #[error("only virtual functions can be saved")]
    NotVirtual,
    /// No GuC firmware is running.
    #[error("the GuC is not running")]
    NoFirmware,
    /// The function is not stopped.
    #[error("the function is not paused")]
    Running,
    /// A GGTT address that the function has registered lies outside its range: it was provisioned differently then.
    #[error("{unit}: address {address:#x} is outside the function's GGTT range")]
    OutsideRange {
        /// The unit.
        unit: &'static str,
        /// The GGTT address.
        address: u64,
    },
}

/// Reason why saved state cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The function is not a VF.
    #[error("only virtual functions can be restored")]
    NotVirtual,
    /// No GuC firmware is running.
    #[error("the GuC is not running")]
    NoFirmware,
    /// The function is not stopped.
    #[error("the function is not paused")]
    Running,
    /// The function is provisioned differently than the saved one.
    #[error("the saved function had {resource} {saved:#x}, this one has {here:#x}")]
    Provisioning {
        /// The resource.
        resource: &'static str,
        /// Quota of the saved function.
        saved: u64,
        /// Quota of the function to restore.
        here: u64,
    },
    /// The saved state contains an invalid value.
    #[error("invalid saved state of {unit}: {what}")]
    Invalid {
        /// The unit.
        unit: &'static str,
        /// What is invalid.
        what: &'static str,
    },
    /// The bytes are not saved state that this version can read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The saved state is of another device.
    #[error("the saved state is of {saved}, this is {here}")]
    Device {
        /// The device of the saved state.
        saved: DeviceIdentity,
        /// The device to restore.
        here: DeviceIdentity,
    },
    /// The driver of the saved function uses a newer interface of the GuC than this one has.
    #[error("the driver of the saved function uses interface {saved} of the GuC, this one has {here}")]
    Interface {
        /// Version that the driver uses.
        saved: String,
        /// Version of this GuC.
        here: String,
    },
    /// The function was moved in the GGTT, and its driver uses an interface of the GuC in which it does not adapt addresses.
    #[error(
        "the driver of the saved function uses interface {version} of the GuC and cannot move to another GGTT range"
    )]
    NoRecovery {
        /// Version that the driver uses.
        version: String,
    },
    /// The configuration space cannot be that of this function.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// What must be equal of a device where saved state is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// PCI device ID.
    pub device: u16,
    /// PCI revision: the stepping.
    pub revision: u8,
}

impl fmt::Display for DeviceIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {:#06x} revision {:#04x}", self.device, self.revision)
    }
}

impl RestoreError {
    /// Returns the error for an invalid value in the saved state `T`.
    pub fn invalid<T: SavedState>(what: &'static str) -> Self {
        RestoreError::Invalid { unit: T::UNIT, what }
    }
}

/// Reason why a function or a card cannot be paused, saved, restored or resumed.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It is not supported. The text is a sentence without its end.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The work has not stopped in time, and continues.
    #[error("the function has not come to rest within {0:?}")]
    Busy(Duration),
    /// The function is not in a state in which this can be done.
    #[error("the function is not {0}")]
    Not(&'static str),
    /// It cannot be saved.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// It cannot be restored.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The file or stream, or the contents of local memory.
    #[error(transparent)]
    Contents(#[from] contents::ContentsError),
}

impl From<FormatError> for StateError {
    fn from(error: FormatError) -> Self {
        StateError::Restore(error.into())
    }
}
