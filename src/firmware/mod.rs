//! Stand-in firmware: files of our own bytes with the headers that drivers check before they upload them.
//!
//! The card runs no firmware code (its GuC and HuC are part of the device model), but a driver refuses to probe without
//! the GuC's file, and i915 complains without the HuC's. Intel's own files work as well.

mod guc;
mod huc;

/// A file as the drivers request it.
pub struct File {
    /// Path below a firmware folder.
    pub path: &'static str,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// All files that drivers request for DG2.
pub fn files() -> [File; 2] {
    [File { path: guc::FILE, bytes: guc::file() }, File { path: huc::FILE, bytes: huc::file() }]
}

const VENDOR: u32 = 0x8086;
/// 1 January 2026: year, month and day in binary-coded decimal.
const DATE: u32 = 0x2026_0101;
/// What stands where a signature would; the GuC's boot ROM refuses a signature of zeros.
const NO_SIGNATURE: &str = "Not signed by Intel. ";

/// `bytes` of text in place of a signature.
fn no_signature(bytes: usize) -> impl Iterator<Item = u8> {
    NO_SIGNATURE.bytes().cycle().take(bytes)
}

/// The bytes of little-endian dwords.
fn bytes_of(dwords: &[u32]) -> impl Iterator<Item = u8> {
    dwords.iter().flat_map(|dword| dword.to_le_bytes())
}
