// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Placeholder firmware: generated files with the headers that drivers check before they upload them.
//!
//! The card runs no firmware code (its GuC and HuC are part of the device model), but drivers do not probe without the
//! GuC firmware file, and i915 logs a warning without the HuC firmware file. Intel's own files work as well.

mod guc;
mod huc;

pub use arctic_device_model::profile::{GucVersions, Version};

/// A firmware file requested by the drivers.
pub struct File {
    /// Path below a firmware directory.
    pub path: &'static str,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// All files that drivers request for DG2. That of the GuC claims the interface that a card claims by default.
pub fn files() -> [File; 2] {
    files_claiming(GucVersions::default())
}

/// As [`files`], with a claimed interface that was checked ([`GucVersions::check`]).
pub fn files_claiming(versions: GucVersions) -> [File; 2] {
    [File { path: guc::FILE, bytes: guc::file(versions) }, File { path: huc::FILE, bytes: huc::file() }]
}

const VENDOR: u32 = 0x8086;
/// 1 January 2026: year, month and day in binary-coded decimal.
const DATE: u32 = 0x2026_0101;
/// The text that replaces a signature; the GuC's boot ROM rejects a signature of zeros.
const NO_SIGNATURE: &str = "Not signed by Intel. ";

/// `bytes` of text that replace a signature.
fn no_signature(bytes: usize) -> impl Iterator<Item = u8> {
    NO_SIGNATURE.bytes().cycle().take(bytes)
}

/// The bytes of little-endian dwords.
fn bytes_of(dwords: &[u32]) -> impl Iterator<Item = u8> {
    dwords.iter().flat_map(|dword| dword.to_le_bytes())
}
