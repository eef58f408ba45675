// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The registers of the PCI Express, MSI, power management and Advanced Features capabilities (PCIe 7.5.2, 7.5.3, 7.7.1;
//! PCI 3.0, 6.8.1; PCI-SIG ECN "Advanced Capabilities for Conventional PCI").

use bitfield_struct::bitfield;

use crate::register::registers;

/// Device Capabilities.
#[bitfield(u32)]
pub struct DeviceCapabilities {
    /// Max_Payload_Size Supported: 128 bytes shifted by this value.
    #[bits(3)]
    pub max_payload_size: u8,
    #[bits(2)]
    __: u8,
    /// Extended Tag Field Supported.
    pub extended_tag: bool,
    #[bits(9)]
    __: u16,
    /// Role-Based Error Reporting.
    pub role_based_error_reporting: bool,
    #[bits(12)]
    __: u16,
    /// Function Level Reset Capability.
    pub function_level_reset: bool,
    #[bits(3)]
    __: u8,
}

/// Device Control.
#[bitfield(u16)]
pub struct DeviceControl {
    /// Correctable Error Reporting Enable.
    pub correctable_error_reporting: bool,
    /// Non-Fatal Error Reporting Enable.
    pub non_fatal_error_reporting: bool,
    /// Fatal Error Reporting Enable.
    pub fatal_error_reporting: bool,
    /// Unsupported Request Reporting Enable.
    pub unsupported_request_reporting: bool,
    /// Enable Relaxed Ordering.
    pub relaxed_ordering: bool,
    /// Max_Payload_Size: 128 bytes shifted by this value.
    #[bits(3)]
    pub max_payload_size: u8,
    /// Extended Tag Field Enable.
    pub extended_tag: bool,
    #[bits(2)]
    __: u8,
    /// Enable No Snoop.
    pub no_snoop: bool,
    /// Max_Read_Request_Size: 128 bytes shifted by this value.
    #[bits(3)]
    pub max_read_request_size: u8,
    /// Initiate Function Level Reset; reads 0.
    pub initiate_flr: bool,
}

/// Device Status.
#[bitfield(u16)]
pub struct DeviceStatus {
    /// Correctable Error Detected.
    pub correctable_error: bool,
    /// Non-Fatal Error Detected.
    pub non_fatal_error: bool,
    /// Fatal Error Detected.
    pub fatal_error: bool,
    /// Unsupported Request Detected.
    pub unsupported_request: bool,
    #[bits(12)]
    __: u16,
}

/// Link Capabilities.
#[bitfield(u32)]
pub struct LinkCapabilities {
    /// Max Link Speed: 4 is 16 GT/s.
    #[bits(4)]
    pub speed: u8,
    /// Maximum Link Width in lanes.
    #[bits(6)]
    pub width: u8,
    /// ASPM Support: L0s.
    pub aspm_l0s: bool,
    /// ASPM Support: L1.
    pub aspm_l1: bool,
    #[bits(10)]
    __: u16,
    /// ASPM Optionality Compliance.
    pub aspm_optionality: bool,
    #[bits(9)]
    __: u16,
}

/// Link Control.
#[bitfield(u16)]
pub struct LinkControl {
    /// ASPM Control.
    #[bits(2)]
    pub aspm: u8,
    __: bool,
    /// Read Completion Boundary.
    pub read_completion_boundary: bool,
    #[bits(2)]
    __: u8,
    /// Common Clock Configuration.
    pub common_clock: bool,
    /// Extended Synch.
    pub extended_synch: bool,
    __: u8,
}

/// Link Status.
#[bitfield(u16)]
pub struct LinkStatus {
    /// Current Link Speed: 4 is 16 GT/s.
    #[bits(4)]
    pub speed: u8,
    /// Negotiated Link Width in lanes.
    #[bits(6)]
    pub width: u8,
    #[bits(2)]
    __: u8,
    /// Slot Clock Configuration.
    pub slot_clock: bool,
    #[bits(3)]
    __: u8,
}

/// Device Capabilities 2.
#[bitfield(u32)]
pub struct DeviceCapabilities2 {
    /// Completion Timeout Ranges Supported: bit 1 is range B.
    #[bits(4)]
    pub completion_timeout_ranges: u8,
    /// Completion Timeout Disable Supported.
    pub completion_timeout_disable: bool,
    #[bits(11)]
    __: u16,
    /// 10-Bit Tag Completer Supported.
    pub tag_10_bit_completer: bool,
    /// 10-Bit Tag Requester Supported.
    pub tag_10_bit_requester: bool,
    #[bits(2)]
    __: u8,
    /// Extended Fmt Field Supported.
    pub extended_format: bool,
    #[bits(11)]
    __: u16,
}

/// Device Control 2.
#[bitfield(u16)]
pub struct DeviceControl2 {
    /// Completion Timeout Value.
    #[bits(4)]
    pub completion_timeout: u8,
    /// Completion Timeout Disable.
    pub completion_timeout_disable: bool,
    #[bits(7)]
    __: u8,
    /// 10-Bit Tag Requester Enable.
    pub tag_10_bit_requester: bool,
    #[bits(3)]
    __: u8,
}

/// Message Control of MSI.
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct MsiControl {
    /// MSI Enable.
    pub enable: bool,
    /// Multiple Message Capable: the power of two of the number of vectors.
    #[bits(3)]
    pub capable: u8,
    /// Multiple Message Enable: the power of two of the number of vectors that software uses.
    #[bits(3)]
    pub multiple_enable: u8,
    /// 64-bit address capable.
    pub wide: bool,
    /// Per-vector masking capable.
    pub maskable: bool,
    #[bits(7)]
    __: u8,
}

/// Power Management Capabilities.
#[bitfield(u16)]
pub struct PmCapabilities {
    /// Version.
    #[bits(3)]
    pub version: u8,
    #[bits(2)]
    __: u8,
    /// Device-Specific Initialization: after the generic D0 state the driver has to initialise the function.
    pub device_specific_initialization: bool,
    #[bits(5)]
    __: u8,
    /// PME can be asserted from D0.
    pub pme_d0: bool,
    #[bits(2)]
    __: u8,
    /// PME can be asserted from D3hot.
    pub pme_d3hot: bool,
    __: bool,
}

/// Power Management Control/Status.
#[bitfield(u16)]
pub struct PmControl {
    /// PowerState: 0 is D0, 3 is D3hot.
    #[bits(2)]
    pub power_state: u8,
    __: bool,
    /// No_Soft_Reset.
    pub no_soft_reset: bool,
    #[bits(4)]
    __: u8,
    /// PME_En.
    pub pme_enable: bool,
    #[bits(6)]
    __: u8,
    /// PME_Status, cleared by writing 1.
    pub pme_status: bool,
}

/// Length and AF Capabilities of Advanced Features.
#[bitfield(u16)]
pub struct AfCapabilities {
    /// Length of the capability in bytes.
    pub length: u8,
    /// Transactions Pending of AF Status is implemented.
    pub transactions_pending: bool,
    /// Initiate FLR of AF Control is implemented.
    pub function_level_reset: bool,
    #[bits(6)]
    __: u8,
}

/// AF Control.
#[bitfield(u16)]
pub struct AfControl {
    /// Initiate FLR; reads 0.
    pub initiate_flr: bool,
    #[bits(7)]
    __: u8,
    /// Transactions Pending, in AF Status: requests of the function have not completed.
    pub transactions_pending: bool,
    #[bits(7)]
    __: u8,
}

registers! {
    DeviceCapabilities: u32 at 0x04;
    DeviceControl: u16 at 0x08;
    DeviceStatus: u16 at 0x0a;
    LinkCapabilities: u32 at 0x0c;
    LinkControl: u16 at 0x10;
    LinkStatus: u16 at 0x12;
    DeviceCapabilities2: u32 at 0x24;
    DeviceControl2: u16 at 0x28;
    MsiControl: u16 at 0x02;
    PmCapabilities: u16 at 0x02;
    PmControl: u16 at 0x04;
    AfCapabilities: u16 at 0x02;
    AfControl: u16 at 0x04;
}
