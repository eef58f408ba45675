//! Capability structures as lists of fields, and the two chains that lead software to them.

use crate::config::Field;
use crate::header::CAPABILITIES_POINTER;

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

/// Device Control, from the start of the PCI Express capability.
pub const DEVICE_CONTROL: u16 = 0x08;
/// Device Control: starts a Function Level Reset, reads 0.
pub const INITIATE_FLR: u16 = 1 << 15;
/// Power Management Control/Status, from the start of its capability; PowerState is in its two lowest bits.
pub const PM_CONTROL: u16 = 0x04;
/// MSI message control.
pub const MSI_CONTROL: u16 = 0x02;
/// MSI message control: MSI Enable.
pub const MSI_ENABLE: u16 = 1 << 0;
/// MSI message address, 64 bits.
pub const MSI_ADDRESS: u16 = 0x04;
/// MSI message data, 16 bits.
pub const MSI_DATA: u16 = 0x0c;
/// MSI mask bits.
pub const MSI_MASK: u16 = 0x10;
/// MSI pending bits.
pub const MSI_PENDING: u16 = 0x14;

const SPEED_16GT: u16 = 4;
const WIDTH_16: u16 = 16 << 4;
/// 128 bytes of payload, extended tags, role-based errors, FLR.
const DEVICE_CAPABILITIES: u32 = 1 << 28 | 1 << 15 | 1 << 5;
/// ASPM L0s and L1, optionality compliance.
const LINK_CAPABILITIES: u32 = (WIDTH_16 | SPEED_16GT) as u32 | 0b11 << 10 | 1 << 22;
/// Completion timeout range B and its disable, 10-bit tags, extended format.
const DEVICE_CAPABILITIES_2: u32 = 0x0013_0012;
/// 2.5, 5, 8 and 16 GT/s.
const LINK_CAPABILITIES_2: u32 = 0x1e;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chain {
    Standard,
    Extended { version: u8 },
}

/// One capability structure at its place.
#[derive(Clone, Debug)]
pub struct Capability {
    chain: Chain,
    id: u16,
    at: u16,
    /// Fields after the header, at offsets from the capability's start.
    body: Vec<Field>,
}

impl Capability {
    /// A capability of the first 256 bytes; the two bytes of ID and next pointer come by themselves.
    pub fn standard(id: u16, at: u16, body: impl Into<Vec<Field>>) -> Self {
        Capability { chain: Chain::Standard, id, at, body: body.into() }
    }

    /// An extended capability; its header of four bytes comes by itself.
    pub fn extended(id: u16, version: u8, at: u16, body: impl Into<Vec<Field>>) -> Self {
        Capability { chain: Chain::Extended { version }, id, at, body: body.into() }
    }

    /// PCI Express endpoint, version 2, with Function Level Reset. Device capabilities are those that DG2 cards
    /// report; the link is the card's own, 16 lanes of 16 GT/s, as no switch of the card stands before the function.
    pub fn express(at: u16) -> Self {
        Self::standard(
            ID_EXPRESS,
            at,
            [
                // Version 2, endpoint.
                Field::word(0x02, 0x0002),
                Field::dword(0x04, DEVICE_CAPABILITIES),
                // Relaxed ordering, extended tags, no snoop; reads of 512 bytes. Payload size is hardwired.
                Field::word(DEVICE_CONTROL, 0x2910).writable(0x791f),
                Field::word(0x0a, 0).write_1_to_clear(0x000f),
                Field::dword(0x0c, LINK_CAPABILITIES),
                // ASPM, read completion boundary, common clock, extended synch: of the link, not of the function.
                Field::word(0x10, 0).writable(0x00cb).sticky(0x00cb),
                // As capable, and on the slot's clock.
                Field::word(0x12, WIDTH_16 | SPEED_16GT | 1 << 12),
                Field::dword(0x24, DEVICE_CAPABILITIES_2),
                Field::word(0x28, 0).writable(0x101f),
                Field::dword(0x2c, LINK_CAPABILITIES_2),
                Field::word(0x30, SPEED_16GT).writable(0xffbf).sticky(0xffbf),
            ],
        )
    }

    /// PCI Express of a virtual function: capabilities as its physical function, errors and FLR of its own; all other
    /// controls are the physical function's and read 0 (PCIe 9.3.5).
    pub fn express_virtual(at: u16) -> Self {
        Self::standard(
            ID_EXPRESS,
            at,
            [
                Field::word(0x02, 0x0002),
                Field::dword(0x04, DEVICE_CAPABILITIES),
                Field::word(DEVICE_CONTROL, 0),
                Field::word(0x0a, 0).write_1_to_clear(0x000f),
                Field::dword(0x0c, LINK_CAPABILITIES),
                Field::dword(0x24, DEVICE_CAPABILITIES_2),
                Field::dword(0x2c, LINK_CAPABILITIES_2),
            ],
        )
    }

    /// Alternative Routing-ID Interpretation: function numbers go to 255, as 63 VFs behind one port need (contract
    /// A.3). No function but the physical one is to be found by a scan, so the next function is 0; no function groups.
    pub fn ari(at: u16) -> Self {
        Self::extended(ID_ARI, 1, at, [Field::word(0x04, 0), Field::word(0x06, 0)])
    }

    /// MSI with a 64-bit address, one vector and per-vector masking. MSI-X is absent on purpose: the xe driver would
    /// take it for a card with memory-based interrupts (xe: xe_irq_msix_init).
    pub fn msi(at: u16) -> Self {
        Self::standard(
            ID_MSI,
            at,
            [
                // 64-bit, maskable, one message capable; writable: enable and multiple message enable.
                Field::word(MSI_CONTROL, 1 << 8 | 1 << 7).writable(0x0071),
                Field::dword(MSI_ADDRESS, 0).writable(0xffff_fffc),
                Field::dword(MSI_ADDRESS + 4, 0).writable(0xffff_ffff),
                Field::word(MSI_DATA, 0).writable(0xffff),
                Field::dword(MSI_MASK, 0).writable(1),
                Field::dword(MSI_PENDING, 0),
            ],
        )
    }

    /// Power management with D0 and D3hot. No_Soft_Reset: GuC, CT buffers and memory live through D3hot, where the xe
    /// driver puts an idle card after a second (xe: xe_pci_runtime_suspend).
    pub fn power_management(at: u16) -> Self {
        const NO_SOFT_RESET: u16 = 1 << 3;
        const PME_ENABLE: u32 = 1 << 8;
        const PME_STATUS: u32 = 1 << 15;
        Self::standard(
            ID_POWER_MANAGEMENT,
            at,
            [
                // Version 3; PME from D0 and D3hot, as the kernel says of the real card.
                Field::word(0x02, 1 << 14 | 1 << 11 | 3),
                Field::word(PM_CONTROL, NO_SOFT_RESET).writable(PME_ENABLE | 0b11).write_1_to_clear(PME_STATUS),
            ],
        )
    }

    /// Device Serial Number.
    pub fn serial_number(at: u16, serial: u64) -> Self {
        let body = [Field::dword(0x04, serial as u32), Field::dword(0x08, (serial >> 32) as u32)];
        Self::extended(ID_SERIAL_NUMBER, 1, at, body)
    }

    /// Where the first standard capability with this ID begins.
    pub fn find_standard(list: &[Capability], id: u16) -> Option<u16> {
        list.iter().find(|capability| capability.chain == Chain::Standard && capability.id == id).map(|found| found.at)
    }

    /// Where the first extended capability with this ID begins.
    pub fn find_extended(list: &[Capability], id: u16) -> Option<u16> {
        list.iter().find(|capability| capability.chain != Chain::Standard && capability.id == id).map(|found| found.at)
    }

    /// All fields of a list of capabilities, chained in its order; the first extended one belongs at 0x100.
    pub fn chain(list: &[Capability]) -> impl Iterator<Item = Field> {
        let standard = |capability: &&Capability| capability.chain == Chain::Standard;
        let first = list.iter().find(standard).map_or(0, |capability| capability.at);
        let pointer = Field::byte(CAPABILITIES_POINTER, first as u8);
        let structures = list.iter().enumerate().flat_map(move |(n, capability)| {
            let same_chain = |other: &&Capability| standard(other) == standard(&capability);
            let next = list[n + 1..].iter().find(same_chain).map_or(0, |capability| capability.at);
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
