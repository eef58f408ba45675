// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The HuC firmware file, which on hardware is loaded by the GSC: a code partition directory with two entries, the
//! manifest with the version, and the image. Layout: i915: intel_gsc_binary_headers.h, read by i915: intel_huc_fw.c
//! (`intel_huc_fw_get_binary_info`).

use arctic_sriov::number::{byte, count};

use super::{DATE, VENDOR, bytes_of, no_signature};

/// Path of the file below a firmware directory, as requested by i915 for DG2 (i915: intel_uc_fw.c).
pub(super) const FILE: &str = "i915/dg2_huc_gsc.bin";

/// Release in the manifest: major, minor, hotfix, build.
const RELEASE: [u16; 4] = [7, 10, 16, 0];

/// `$CPD`.
const DIRECTORY_MARKER: u32 = 0x4450_4324;
/// Version of the directory's header, version of its entries, size of the header in bytes, no flags.
const DIRECTORY_VERSIONS: [u8; 4] = [2, 1, byte(DIRECTORY_BYTES), 0];
const DIRECTORY_BYTES: usize = 20;
/// Offset of the checksum in the header.
const DIRECTORY_CRC: usize = 16;
const PARTITION: &[u8; 4] = b"HUCP";

const ENTRY_BYTES: usize = 24;
/// An entry name in the directory, zero-padded.
type Name = [u8; 12];
const MANIFEST: Name = *b"HUCP.man\0\0\0\0";
const IMAGE: Name = *b"huc_fw\0\0\0\0\0\0";

/// Size of a manifest's header in bytes, without the signature fields.
const MANIFEST_BYTES: usize = 128;
const MANIFEST_TYPE: u32 = 4;
const MANIFEST_VERSION: u32 = 0x1_0000;
/// `$MN2`.
const MANIFEST_MARKER: u32 = 0x324e_4d24;
/// Sizes in dwords of the modulus (also of the signature) and of the exponent after the header.
const MODULUS_DWORDS: u32 = 96;
const EXPONENT_DWORDS: u32 = 1;

/// The text that replaces the image. As on every DG2, it has no CSS header, so the image cannot be loaded by the GuC's
/// DMA.
const TEXT: &str = "Arctic stand-in HuC firmware.\n\
    This file is not Intel's firmware and holds no code for any processor: it satisfies the checks that a graphics \
    driver makes before it waits for the card's security controller to load it. The Arctic virtual card comes up with \
    its HuC loaded. Real hardware will not run it.\n";

/// The file's contents.
pub(super) fn file() -> Vec<u8> {
    let parts = [(MANIFEST, manifest()), (IMAGE, TEXT.as_bytes().to_vec())];
    let mut directory: Vec<u8> = bytes_of(&[DIRECTORY_MARKER, count(parts.len())]).collect();
    directory.extend(DIRECTORY_VERSIONS);
    directory.extend(PARTITION);
    directory.extend([0; 4]);
    let mut at = DIRECTORY_BYTES + ENTRY_BYTES * parts.len();
    for (name, bytes) in &parts {
        directory.extend(name);
        directory.extend(bytes_of(&[count(at), count(bytes.len()), 0]));
        at += bytes.len();
    }
    let checksum = crc32(&directory);
    directory[DIRECTORY_CRC..DIRECTORY_BYTES].copy_from_slice(&checksum.to_le_bytes());
    directory.into_iter().chain(parts.into_iter().flat_map(|(_, bytes)| bytes)).collect()
}

fn manifest() -> Vec<u8> {
    let words = count(MANIFEST_BYTES) / 4 + 2 * MODULUS_DWORDS + EXPONENT_DWORDS;
    let mut header = [0u32; MANIFEST_BYTES / 4];
    header[..8].copy_from_slice(&[MANIFEST_TYPE, words, MANIFEST_VERSION, 0, VENDOR, DATE, words, MANIFEST_MARKER]);
    let [major, minor, hotfix, build] = RELEASE.map(u32::from);
    header[9] = minor << 16 | major;
    header[10] = build << 16 | hotfix;
    header[30] = MODULUS_DWORDS;
    header[31] = EXPONENT_DWORDS;
    let signature = (2 * MODULUS_DWORDS + EXPONENT_DWORDS) as usize * 4;
    bytes_of(&header).chain(no_signature(signature)).collect()
}

/// CRC-32 (ISO 3309) of a directory with a zero checksum field.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| crc >> 1 ^ if crc & 1 != 0 { 0xedb8_8320 } else { 0 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the version that i915 reads from the file, and the offset of an image that can be loaded by DMA; parsed
    /// like `intel_huc_fw_get_binary_info`.
    fn parse(file: &[u8]) -> Result<([u16; 4], Option<usize>), &'static str> {
        let dword = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        if file.len() < 20 || dword(0) != 0x4450_4324 || file[8] != 2 || file[9] != 1 || file[10] < 20 {
            return Err("invalid directory header");
        }
        let entries = dword(4) as usize;
        let first = usize::from(file[10]);
        if file.len() < first + 24 * entries {
            return Err("too small");
        }
        let (mut version, mut image) = (Err("no manifest"), None);
        for at in (0..entries).map(|index| first + 24 * index) {
            let name = file[at..at + 12].split(|byte| *byte == 0).next().unwrap();
            let offset = (dword(at + 12) & 0x1ff_ffff) as usize;
            match name {
                b"HUCP.man" => {
                    let half = |n: usize| {
                        u16::from_le_bytes(file[offset + 36 + 2 * n..offset + 38 + 2 * n].try_into().unwrap())
                    };
                    version = Ok([half(0), half(1), half(2), half(3)]);
                }
                b"huc_fw" if dword(offset) == 6 && dword(offset + 16) == 0x8086 => image = Some(offset),
                _ => {}
            }
        }
        Ok((version?, image))
    }

    /// Contract G.4: i915 finds the manifest's version, and no image to load by DMA.
    #[test]
    fn the_driver_accepts_the_file() {
        assert_eq!(parse(&file()), Ok(([7, 10, 16, 0], None)));
        assert!(parse(&file()[..40]).is_err());
    }

    /// Every section is at the offset in its entry, the sections are contiguous up to the end of the file, and the
    /// checksum matches the directory.
    #[test]
    fn the_directory_is_consistent() {
        let file = file();
        let dword = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let mut end = DIRECTORY_BYTES + 2 * ENTRY_BYTES;
        for at in [DIRECTORY_BYTES, DIRECTORY_BYTES + ENTRY_BYTES] {
            assert_eq!(dword(at + 12) as usize, end);
            end += dword(at + 16) as usize;
        }
        assert_eq!(end, file.len());
        let manifest = DIRECTORY_BYTES + 2 * ENTRY_BYTES;
        assert_eq!((dword(manifest), dword(manifest + 4), dword(manifest + 24)), (4, 0xe1, 0xe1));
        let mut directory = file[..manifest].to_vec();
        directory[DIRECTORY_CRC..DIRECTORY_BYTES].fill(0);
        assert_eq!(dword(DIRECTORY_CRC), crc32(&directory));
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926, "the check value of CRC-32");
    }
}
