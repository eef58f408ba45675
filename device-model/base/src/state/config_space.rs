// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The section of a function's configuration space.

use arctic_sriov::part::PartId;
use arctic_sriov::saved::SavedConfig;
use zerocopy::little_endian::U16;

use super::format::{Document, Record, Tag, Writer};
use super::{RestoreError, SavedState};

/// Largest number of parts of a function: one for each dword.
const MOST_PARTS: usize = 1024;

crate::record! {
    /// A part; its registers follow those of the part before in [`REGISTERS`].
    struct PartRecord[b"PCIP", 6] {
        /// 0 header, 1 standard capability, 2 extended capability, 3 device-specific registers.
        kind: u8,
        reserved: u8,
        /// ID of the capability, or offset.
        id: U16,
        /// Bytes of registers.
        len: U16,
    }
}

const REGISTERS: Tag = Tag(*b"PCIR");

impl SavedState for SavedConfig {
    const UNIT: &'static str = "configuration space";
    const TAGS: &'static [Tag] = &[PartRecord::TAG, REGISTERS];

    fn write(&self, to: &mut Writer) {
        let record = |(part, registers): (PartId, &[u8])| {
            let (kind, id) = match part {
                PartId::Header => (0, 0),
                PartId::Standard(id) => (1, id),
                PartId::Extended(id) => (2, id),
                PartId::DeviceSpecific(at) => (3, at),
            };
            // Configuration space has 4 KiB.
            let len = u16::try_from(registers.len()).unwrap_or(u16::MAX);
            PartRecord { kind, reserved: 0, id: id.into(), len: len.into() }
        };
        to.records(self.parts().map(record));
        to.bytes(REGISTERS, &self.parts().flat_map(|(_, registers)| registers).copied().collect::<Vec<_>>());
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let invalid = RestoreError::invalid::<SavedConfig>;
        let mut registers = from.bytes(REGISTERS)?;
        let mut parts = Vec::new();
        for PartRecord { kind, reserved: _, id, len } in from.records(MOST_PARTS)? {
            let part = match kind {
                0 if id.get() == 0 => PartId::Header,
                1 => PartId::Standard(id.get()),
                2 => PartId::Extended(id.get()),
                3 => PartId::DeviceSpecific(id.get()),
                _ => return Err(invalid("a part")),
            };
            let (taken, rest) =
                registers.split_at_checked(len.get().into()).ok_or(invalid("the registers of a part"))?;
            parts.push((part, taken));
            registers = rest;
        }
        if registers.is_empty() { Ok(SavedConfig::new(parts)) } else { Err(invalid("registers of no part")) }
    }
}
