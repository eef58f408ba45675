// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Capability structures as lists of fields, and the standard and extended capability lists that link them.

use std::ops::Range;

use crate::config::Field;
use crate::header::CAPABILITIES_POINTER;
use crate::register::Register;
use crate::registers::{
    AfCapabilities, AfControl, DeviceCapabilities, DeviceCapabilities2, DeviceControl, DeviceControl2, DeviceStatus,
    LinkCapabilities, LinkControl, LinkStatus, MsiControl, PmCapabilities, PmControl,
};
use arctic_number::{high, low};

/// Power Management.
pub const ID_POWER_MANAGEMENT: u16 = 0x01;
/// Message Signalled Interrupts.
pub const ID_MSI: u16 = 0x05;
/// PCI Express.
pub const ID_EXPRESS: u16 = 0x10;
/// Advanced Features of a conventional function.
pub const ID_ADVANCED_FEATURES: u16 = 0x13;
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

/// Offset of the MSI message address, 32 or 64 bits.
pub const MSI_ADDRESS: u16 = 0x04;

/// Layout of an MSI capability, which the read-only bits of its message control register determine (PCI 3.0, 6.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsiLayout {
    /// The message address has 64 bits.
    wide: bool,
    /// The capability has mask bits and pending bits.
    maskable: bool,
}

impl MsiLayout {
    /// The layout of a capability with this message control register.
    pub fn of(control: MsiControl) -> Self {
        MsiLayout { wide: control.wide(), maskable: control.maskable() }
    }

    /// Whether the message address has 64 bits.
    pub fn wide(self) -> bool {
        self.wide
    }

    /// Offset of the message data, 16 bits.
    pub fn data(self) -> u16 {
        if self.wide { 0x0c } else { 0x08 }
    }

    /// Offsets of the mask bits and of the pending bits, if the capability has them.
    #[allow(clippy::arithmetic_side_effects, reason = "the data lies at 0x0c at most")]
    pub fn masking(self) -> Option<(u16, u16)> {
        self.maskable.then(|| (self.data() + 4, self.data() + 8))
    }
}

/// Link speed of 16 GT/s.
const SPEED_16GT: u8 = 4;
/// Link width in lanes.
const WIDTH_16: u8 = 16;
/// Maximum payload 128 bytes.
const DEVICE_CAPABILITIES: DeviceCapabilities = DeviceCapabilities::new()
    .with_extended_tag(true)
    .with_role_based_error_reporting(true)
    .with_function_level_reset(true);
const LINK_CAPABILITIES: LinkCapabilities = LinkCapabilities::new()
    .with_speed(SPEED_16GT)
    .with_width(WIDTH_16)
    .with_aspm_l0s(true)
    .with_aspm_l1(true)
    .with_aspm_optionality(true);
/// Completion timeout range B.
const DEVICE_CAPABILITIES_2: DeviceCapabilities2 = DeviceCapabilities2::new()
    .with_completion_timeout_ranges(0b10)
    .with_completion_timeout_disable(true)
    .with_tag_10_bit_completer(true)
    .with_tag_10_bit_requester(true)
    .with_extended_format(true);
/// Maximum read request 512 bytes.
const DEVICE_CONTROL_RESET: DeviceControl = DeviceControl::new()
    .with_relaxed_ordering(true)
    .with_extended_tag(true)
    .with_no_snoop(true)
    .with_max_read_request_size(2);
/// All fields but the payload size, which is hardwired.
const DEVICE_CONTROL_WRITABLE: DeviceControl = DeviceControl::new()
    .with_correctable_error_reporting(true)
    .with_non_fatal_error_reporting(true)
    .with_fatal_error_reporting(true)
    .with_unsupported_request_reporting(true)
    .with_relaxed_ordering(true)
    .with_extended_tag(true)
    .with_no_snoop(true)
    .with_max_read_request_size(0b111);
const DEVICE_STATUS_ERRORS: DeviceStatus = DeviceStatus::new()
    .with_correctable_error(true)
    .with_non_fatal_error(true)
    .with_fatal_error(true)
    .with_unsupported_request(true);
const LINK_CONTROL_WRITABLE: LinkControl = LinkControl::new()
    .with_aspm(0b11)
    .with_read_completion_boundary(true)
    .with_common_clock(true)
    .with_extended_synch(true);
const DEVICE_CONTROL_2_WRITABLE: DeviceControl2 = DeviceControl2::new()
    .with_completion_timeout(0xf)
    .with_completion_timeout_disable(true)
    .with_tag_10_bit_requester(true);
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
                Field::register(DEVICE_CAPABILITIES),
                Field::register(DEVICE_CONTROL_RESET).writable(DEVICE_CONTROL_WRITABLE.value()),
                Field::register(DeviceStatus::new()).write_1_to_clear(DEVICE_STATUS_ERRORS.value()),
                Field::register(LINK_CAPABILITIES),
                // Properties of the link, not reset by an FLR.
                Field::register(LinkControl::new())
                    .writable(LINK_CONTROL_WRITABLE.value())
                    .sticky(LINK_CONTROL_WRITABLE.value()),
                // Negotiated at full speed and width, with the slot's reference clock.
                Field::register(LinkStatus::new().with_speed(SPEED_16GT).with_width(WIDTH_16).with_slot_clock(true)),
                Field::register(DEVICE_CAPABILITIES_2),
                Field::register(DeviceControl2::new()).writable(DEVICE_CONTROL_2_WRITABLE.value()),
                Field::dword(0x2c, LINK_CAPABILITIES_2),
                // Link Control 2: all fields but Selectable De-emphasis.
                Field::word(0x30, SPEED_16GT.into()).writable(0xffbf).sticky(0xffbf),
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
                Field::register(DEVICE_CAPABILITIES),
                Field::register(DeviceControl::new()),
                Field::register(DeviceStatus::new()).write_1_to_clear(DEVICE_STATUS_ERRORS.value()),
                Field::register(LINK_CAPABILITIES),
                Field::register(DEVICE_CAPABILITIES_2),
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
        Self::msi_with(at, MsiControl::new().with_wide(true).with_maskable(true))
    }

    /// MSI with a 32-bit address and one vector, without masking, as on conventional functions.
    pub fn msi_32(at: u16) -> Self {
        Self::msi_with(at, MsiControl::new())
    }

    #[allow(clippy::arithmetic_side_effects, reason = "the offsets of a layout are below 0x20")]
    fn msi_with(at: u16, control: MsiControl) -> Self {
        let layout = MsiLayout::of(control);
        let writable = MsiControl::new().with_enable(true).with_multiple_enable(0b111);
        let mut body = vec![
            // One message.
            Field::register(control).writable(writable.value()),
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
        let writable = PmControl::new().with_power_state(0b11).with_pme_enable(true);
        let cleared = PmControl::new().with_pme_status(true);
        Self::standard(
            ID_POWER_MANAGEMENT,
            at,
            [
                // As Linux reports for the real card.
                Field::register(PmCapabilities::new().with_version(3).with_pme_d0(true).with_pme_d3hot(true)),
                Field::register(PmControl::new().with_no_soft_reset(true))
                    .writable(writable.value())
                    .write_1_to_clear(cleared.value()),
            ],
        )
    }

    /// Power management of version 2 with D0 and D3hot, without PME, as on conventional functions. No_Soft_Reset is clear:
    /// the transition from D3hot to D0 resets the function (PCI PM 1.2, 5.4.1).
    pub fn power_management_2(at: u16) -> Self {
        let capabilities = PmCapabilities::new().with_version(2).with_device_specific_initialization(true);
        let writable = PmControl::new().with_power_state(0b11);
        let control = Field::register(PmControl::new()).writable(writable.value());
        Self::standard(ID_POWER_MANAGEMENT, at, [Field::register(capabilities), control])
    }

    /// Advanced Features: Function Level Reset of a conventional function. A reset completes before the write that initiates
    /// it, so no transaction is ever pending.
    pub fn advanced_features(at: u16) -> Self {
        let capabilities =
            AfCapabilities::new().with_length(6).with_transactions_pending(true).with_function_level_reset(true);
        let body = [Field::register(capabilities), Field::register(AfControl::new())];
        Self::standard(ID_ADVANCED_FEATURES, at, body)
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
