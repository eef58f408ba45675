// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Errors of the decoders of commands.

/// Reason why a command cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlitError {
    /// The copy engine does not have this command.
    #[error("header {0:#010x} is not a command of the copy engine")]
    Unknown(u32),
    /// The command does not have this length.
    #[error("{command}: invalid length of {dwords} dwords")]
    Length {
        /// Name of the command.
        command: &'static str,
        /// Length in dwords.
        dwords: usize,
    },
    /// A field has a value that the hardware reserves.
    #[error("{command}: {field} has the reserved value {value}")]
    Reserved {
        /// Name of the command.
        command: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// A field selects a feature that the hardware has but the model does not implement. The blit is not executed, and
    /// the caller must report it.
    #[error("{command}: {field} = {value} is not modelled")]
    Unmodelled {
        /// Name of the command.
        command: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
}
