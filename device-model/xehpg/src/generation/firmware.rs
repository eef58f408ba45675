// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interface of the GuC: versions, WOPCM, and the data structures that a driver prepares in memory.

use std::fmt;
use std::ops::Range;

/// A version with three components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major.
    pub major: u8,
    /// Minor.
    pub minor: u8,
    /// Patch.
    pub patch: u8,
}

/// As in `70.53.0`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version { major, minor, patch } = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl From<u32> for Version {
    fn from(packed: u32) -> Self {
        let [patch, minor, major, _] = packed.to_le_bytes();
        Version { major, minor, patch }
    }
}

/// Interface of a generation's GuC. Its actions and messages are in [`crate::guc`], which implements one interface.
pub struct FirmwareInterface {
    /// Release that the GuC reports if no PF driver loads a firmware, and that of the placeholder file, unless a card file has
    /// another one.
    pub release: Version,
    /// Version of the submission interface that it then reports to virtual functions.
    pub submission: Version,
    /// Releases that the model honours: of a newer one, drivers expect features that it does not have, and xe refuses older
    /// ones (xe: xe_uc_fw.c guc_read_css_info; MIG-005).
    pub releases: Range<Version>,
    /// Versions of the submission interface that the model honours, likewise.
    pub submissions: Range<Version>,
    /// Size of WOPCM on the die in bytes; larger values of the size register have no effect.
    pub wopcm_bytes: u32,
    /// Bytes of WOPCM that the GuC reserves at its start for its stack and data.
    pub wopcm_reserved: u32,
    /// The additional data structure.
    pub ads: AdsFormat,
}

/// Format of the additional data structure (ADS): offsets in bytes.
pub struct AdsFormat {
    /// Pointer to the scheduler policies.
    pub scheduler_policies: u64,
    /// Pointer to the system info.
    pub gt_system_info: u64,
    /// Pointers to the capture lists of one engine instance; 16 classes for the physical function, then 16 for VFs.
    pub instance_lists: u64,
    /// Likewise, for registers shared by the engines of a class.
    pub class_lists: u64,
    /// Likewise, but without classes, for registers of the whole GT.
    pub global_list: u64,
    /// Policies: global flags.
    pub policies_global_flags: u64,
    /// Policies: the values are used only if this field is 1.
    pub policies_is_valid: u64,
    /// System info: enabled masks of the classes, after the mapping table at its start.
    pub enabled_masks: u64,
}

impl AdsFormat {
    /// Logical instances of a class in the mapping table, a byte each (xe: GUC_MAX_INSTANCES_PER_CLASS).
    pub const INSTANCES: usize = 32;
    /// Physical instance of an unused entry of the mapping table; all larger values are invalid as well.
    pub const UNUSED: u8 = 32;
}

/// The GuC of Xe-HPG with the interface of release 70 (xe: xe_guc_fwif.h, abi/).
pub static XE_HPG_FIRMWARE: FirmwareInterface = FirmwareInterface {
    // The first ones with which xe migrates VFs, or a little newer (MIG-002, MIG-003, MIG-006).
    release: Version { major: 70, minor: 55, patch: 0 },
    submission: Version { major: 1, minor: 27, patch: 0 },
    releases: Version { major: 70, minor: 29, patch: 2 }..Version { major: 70, minor: 62, patch: 0 },
    submissions: Version { major: 1, minor: 1, patch: 0 }..Version { major: 1, minor: 36, patch: 0 },
    // Contract B.2.
    wopcm_bytes: 4 << 20,
    // xe: xe_wopcm.c GUC_WOPCM_RESERVED.
    wopcm_reserved: 16 << 10,
    // Contract B.7, B.13, K.2.
    ads: AdsFormat {
        scheduler_policies: 0x1004,
        gt_system_info: 0x1008,
        instance_lists: 0x109c,
        class_lists: 0x111c,
        global_list: 0x119c,
        policies_global_flags: 0x4c,
        policies_is_valid: 0x44,
        enabled_masks: 16 * AdsFormat::INSTANCES as u64,
    },
};
