// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The parts of a function's configuration space: the header, each capability and the device-specific registers.

use std::fmt;
use std::ops::Range;

use crate::capability::{Capability, Chain};
use crate::config::Field;

/// Size in bytes of a type 0 header.
const HEADER_BYTES: u16 = 0x40;

/// Identifies a part of configuration space within a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartId {
    /// The type 0 header.
    Header,
    /// The standard capability with this ID.
    Standard(u16),
    /// The extended capability with this ID.
    Extended(u16),
    /// The device-specific registers at this offset.
    DeviceSpecific(u16),
}

impl fmt::Display for PartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartId::Header => write!(f, "header"),
            PartId::Standard(id) => write!(f, "capability {id:#x}"),
            PartId::Extended(id) => write!(f, "extended capability {id:#x}"),
            PartId::DeviceSpecific(at) => write!(f, "register {at:#x}"),
        }
    }
}

/// The parts of a function, with their bytes in configuration space.
pub(crate) fn all(device_specific: &[Field], capabilities: &[Capability]) -> Vec<(PartId, Range<u16>)> {
    let header = (PartId::Header, 0..HEADER_BYTES);
    let registers = device_specific.iter().map(|field| (PartId::DeviceSpecific(field.bytes().start), field.bytes()));
    let capabilities = capabilities.iter().map(|capability| {
        let id = match capability.chain_kind() {
            Chain::Standard => PartId::Standard(capability.id()),
            Chain::Extended { .. } => PartId::Extended(capability.id()),
        };
        (id, capability.bytes())
    });
    std::iter::once(header).chain(registers).chain(capabilities).collect()
}
