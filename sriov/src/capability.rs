// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Capability structures as lists of fields, and the standard and extended capability lists that link them.

use std::ops::Range;

use crate::config::Field;
use crate::header::CAPABILITIES_POINTER;
use crate::number::{high, low};

/// Power Management.
pub const ID_POWER_MANAGEMENT: u16 = 0x01;
/// Message Signalled Interrupts.
pub const ID_MSI: u16 = 0x05;
/// PCI Express.
pub const ID_EXPRESS: u16 = 0x10;
/// Device Serial Number (extended).
pub const ID_SERIAL_NUMBER: u16 = 0x0003;
/// Vendor-Specific (extended).
pub const ID_VENDOR_SPECIFIC: u16 = 0x000b;
/// Alternative Routing-ID Interpretation (extended).
pub const ID_ARI: u16 = 0x000e;
/// Single Root I/O Virtualization (extended).
pub const ID_SRIOV: u16 = 0x0010;
/// VF Resizable BAR (extended).
pub const ID_VF_RESIZABLE_BAR: u16 = 0x0024;

/// Offset of Device Control in the PCI Express capability.
pub const DEVICE_CONTROL: u16 = 0x08;
/// Device Control: initiates a Function Level Reset; reads 0.
pub const INITIATE_FLR: u16 = 1 << 15;
/// Device Control: Fatal Error Reporting Enable.
pub const FATAL_REPORTING_ENABLE: u16 = 1 << 2;
/// Offset of Device Status in the PCI Express capability.
pub const DEVICE_STATUS: u16 = 0x0a;
/// Device Status: Fatal Error Detected.
pub const FATAL_ERROR_DETECTED: u16 = 1 << 2;
/// Offset of Power Management Control/Status in its capability. PowerState is in bits 1:0.
pub const PM_CONTROL: u16 = 0x04;
/// Offset of the MSI message control register.
pub const MSI_CONTROL: u16 = 0x02;
/// MSI message control: MSI Enable.
pub const MSI_ENABLE: u16 = 1 << 0;
/// Offset of the MSI message address, 32 or 64 bits.
pub const MSI_ADDRESS: u16 = 0x04;
/// MSI message control: the address has 64 bits.
const MSI_64_BIT: u16 = 1 << 7;
/// MSI message control: the capability has mask and pending bits.
const MSI_MASKABLE: u16 = 1 << 8;

/// Layout of an MSI capability, which the read-only bits of its message control register determine (PCI 3.0, 6.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsiLayout {
    control: u16,
}

impl MsiLayout {
    /// The layout of a capability with this message control register.
    pub fn of(control: u16) -> Self {
        MsiLayout { control: control & (MSI_64_BIT | MSI_MASKABLE) }
    }

    /// Whether the message address has 64 bits.
    pub fn wide(self) -> bool {
        self.control & MSI_64_BIT != 0
    }

    /// Offset of the message data, 16 bits.
    pub fn data(self) -> u16 {
        if self.wide() { 0x0c } else { 0x08 }
    }

    /// Offsets of the mask bits and of the pending bits, if the capability has them.
    #[allow(clippy::arithmetic_side_effects, reason = "the data lies at 0x0c at most")]
    pub fn masking(self) -> Option<(u16, u16)> {
        (self.control & MSI_MASKABLE != 0).then(|| (self.data() + 4, self.data() + 8))
    }
}

const SPEED_16GT: u16 = 4;
const WIDTH_16: u16 = 16 << 4;
/// Maximum payload 128 bytes, extended tags, role-based error reporting, FLR.
const DEVICE_CAPABILITIES: u32 = 1 << 28 | 1 << 15 | 1 << 5;
/// ASPM L0s and L1, optionality compliance.
const LINK_CAPABILITIES: u32 = (WIDTH_16 | SPEED_16GT) as u32 | 0b11 << 10 | 1 << 22;
/// Completion timeout range B, completion timeout disable, 10-bit tags, extended format.
const DEVICE_CAPABILITIES_2: u32 = 0x0013_0012;
/// Supported link speeds: 2.5, 5, 8 and 16 GT/s.
const LINK_CAPABILITIES_2: u32 = 0x1e;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chain {
    Standard,
    Extended { version: u8 },
}

/// One capability structure and its offset.
#[derive(Clone, Debug)]
pub struct Capability {
    chain: Chain,
    id: u16,
    at: u16,
    /// Fields after the header, at offsets relative to the capability.
    body: Vec<Field>,
}

impl Capability {
    /// Creates a capability in the first 256 bytes. The two header bytes (ID and next pointer) are added by
    /// [`Capability::chain()`].
    pub fn standard(id: u16, at: u16, body: impl Into<Vec<Field>>) -> Self {
        Capability { chain: Chain::Standard, id, at, body: body.into() }
    }

    /// Creates an extended capability. The four header bytes are added by [`Capability::chain()`].
    pub fn extended(id: u16, version: u8, at: u16, body: impl Into<Vec<Field>>) -> Self {
        Capability { chain: Chain::Extended { version }, id, at, body: body.into() }
    }

    /// Its ID.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The list that it belongs to.
    pub(crate) fn chain_kind(&self) -> Chain {
        self.chain
    }

    /// Its bytes in configuration space: header and fields.
    pub fn bytes(&self) -> Range<u16> {
        let header = match self.chain {
            Chain::Standard => 2,
            Chain::Extended { .. } => 4,
        };
        let end = self.body.iter().map(|field| field.bytes().end).fold(header, u16::max);
        self.at..self.at.saturating_add(end)
    }

    /// PCI Express endpoint, capability version 2, with Function Level Reset. Device capabilities are those that DG2
    /// cards report. The link reports the card's x16, 16 GT/s connection: the model has no upstream switch in front of
    /// the function.
    pub fn express(at: u16) -> Self {
        Self::standard(
            ID_EXPRESS,
            at,
            [
                // Version 2, endpoint.
                Field::word(0x02, 0x0002),
                Field::dword(0x04, DEVICE_CAPABILITIES),
                // Relaxed ordering, extended tags, no snoop; maximum read request 512 bytes. The payload size is
                // hardwired.
                Field::word(DEVICE_CONTROL, 0x2910).writable(0x791f),
                Field::word(DEVICE_STATUS, 0).write_1_to_clear(0x000f),
                Field::dword(0x0c, LINK_CAPABILITIES),
                // ASPM, read completion boundary, common clock, extended synch: properties of the link, not reset by an
                // FLR.
                Field::word(0x10, 0).writable(0x00cb).sticky(0x00cb),
                // Negotiated at full speed and width, with the slot's reference clock.
                Field::word(0x12, WIDTH_16 | SPEED_16GT | 1 << 12),
                Field::dword(0x24, DEVICE_CAPABILITIES_2),
                Field::word(0x28, 0).writable(0x101f),
                Field::dword(0x2c, LINK_CAPABILITIES_2),
                Field::word(0x30, SPEED_16GT).writable(0xffbf).sticky(0xffbf),
            ],
        )
    }

    /// PCI Express capability of a virtual function: the same capability registers as the physical function, and
    /// separate error status and FLR. All other controls belong to the physical function and read 0 (PCIe 9.3.5).
    pub fn express_virtual(at: u16) -> Self {
        Self::standard(
            ID_EXPRESS,
            at,
            [
                Field::word(0x02, 0x0002),
                Field::dword(0x04, DEVICE_CAPABILITIES),
                Field::word(DEVICE_CONTROL, 0),
                Field::word(DEVICE_STATUS, 0).write_1_to_clear(0x000f),
                Field::dword(0x0c, LINK_CAPABILITIES),
                Field::dword(0x24, DEVICE_CAPABILITIES_2),
                Field::dword(0x2c, LINK_CAPABILITIES_2),
            ],
        )
    }

    /// Alternative Routing-ID Interpretation: function numbers up to 255, required for 63 VFs behind one port (contract
    /// A.3). Bus scans must find only the physical function, so Next Function Number is 0. There are no function
    /// groups.
    pub fn ari(at: u16) -> Self {
        Self::extended(ID_ARI, 1, at, [Field::word(0x04, 0), Field::word(0x06, 0)])
    }

    /// MSI with a 64-bit address, one vector and per-vector masking. MSI-X must be absent: if it is present, the xe
    /// driver assumes memory-based interrupts (xe: xe_irq_msix_init).
    pub fn msi(at: u16) -> Self {
        Self::msi_with(at, MSI_64_BIT | MSI_MASKABLE)
    }

    /// MSI with a 32-bit address and one vector, without masking, as on conventional functions.
    pub fn msi_32(at: u16) -> Self {
        Self::msi_with(at, 0)
    }

    #[allow(clippy::arithmetic_side_effects, reason = "the offsets of a layout are below 0x20")]
    fn msi_with(at: u16, control: u16) -> Self {
        let layout = MsiLayout::of(control);
        let mut body = vec![
            // One message. Writable: MSI Enable and Multiple Message Enable.
            Field::word(MSI_CONTROL, control).writable(0x0071),
            Field::dword(MSI_ADDRESS, 0).writable(0xffff_fffc),
            Field::word(layout.data(), 0).writable(0xffff),
        ];
        if layout.wide() {
            body.push(Field::dword(MSI_ADDRESS + 4, 0).writable(0xffff_ffff));
        }
        if let Some((mask, pending)) = layout.masking() {
            body.extend([Field::dword(mask, 0).writable(1), Field::dword(pending, 0).live(1)]);
        }
        Self::standard(ID_MSI, at, body)
    }

    /// Power management with D0 and D3hot. No_Soft_Reset is set: GuC, CT buffers and memory keep their state in D3hot,
    /// which the xe driver enters after one second idle (xe: xe_pci_runtime_suspend).
    pub fn power_management(at: u16) -> Self {
        const NO_SOFT_RESET: u16 = 1 << 3;
        const PME_ENABLE: u32 = 1 << 8;
        const PME_STATUS: u32 = 1 << 15;
        Self::standard(
            ID_POWER_MANAGEMENT,
            at,
            [
                // Version 3; PME from D0 and D3hot, as Linux reports for the real card.
                Field::word(0x02, 1 << 14 | 1 << 11 | 3),
                Field::word(PM_CONTROL, NO_SOFT_RESET).writable(PME_ENABLE | 0b11).write_1_to_clear(PME_STATUS),
            ],
        )
    }

    /// Device Serial Number.
    pub fn serial_number(at: u16, serial: u64) -> Self {
        let body = [Field::dword(0x04, low(serial)), Field::dword(0x08, high(serial))];
        Self::extended(ID_SERIAL_NUMBER, 1, at, body)
    }

    /// Returns the offset of the first standard capability with this ID.
    pub fn find_standard(list: &[Capability], id: u16) -> Option<u16> {
        list.iter().find(|capability| capability.chain == Chain::Standard && capability.id == id).map(|found| found.at)
    }

    /// Returns the offset of the first extended capability with this ID.
    pub fn find_extended(list: &[Capability], id: u16) -> Option<u16> {
        list.iter().find(|capability| capability.chain != Chain::Standard && capability.id == id).map(|found| found.at)
    }

    /// Returns the fields of all capabilities, linked in list order. The first extended capability must be at 0x100.
    pub fn chain(list: &[Capability]) -> impl Iterator<Item = Field> {
        let standard = |capability: &&Capability| capability.chain == Chain::Standard;
        let first = list.iter().find(standard).map_or(0, |capability| capability.at);
        let pointer = Field::byte(CAPABILITIES_POINTER, (first & 0xff) as u8);
        let structures = list.iter().enumerate().flat_map(move |(n, capability)| {
            let same_chain = |other: &&Capability| standard(other) == standard(&capability);
            let next = list.iter().skip(n).skip(1).find(same_chain).map_or(0, |capability| capability.at);
            let header = match capability.chain {
                Chain::Standard => Field::word(0, next << 8 | capability.id),
                Chain::Extended { version } => {
                    Field::dword(0, u32::from(next) << 20 | u32::from(version) << 16 | u32::from(capability.id))
                }
            };
            std::iter::once(header).chain(capability.body.iter().copied()).map(|field| field.moved(capability.at))
        });
        std::iter::once(pointer).chain(structures)
    }
}
