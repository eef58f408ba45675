// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GuC firmware file: a CSS header, and text instead of microcode and signature. Layout: xe: abi/uc_fw_abi.h
//! (`uc_css_header`), read by xe: xe_uc_fw.c and i915: intel_uc_fw.c.

use arctic_device_model::generation::Version;
use arctic_sriov::number::count;

use super::{DATE, GucVersions, VENDOR, bytes_of, no_signature};

/// Path of the file below a firmware directory, as requested by the driver for DG2 (xe: xe_uc_fw.c).
pub(super) const FILE: &str = "i915/dg2_guc_70.bin";

/// Size of the CSS header in bytes.
pub(super) const HEADER_BYTES: usize = 128;
/// Size of the RSA signature in dwords; more than 64, which makes the driver pass the signature's address instead of
/// its contents.
const RSA_DWORDS: u32 = 96;
/// Sizes in dwords of the modulus and the exponent, which the header counts but the file does not contain.
const MODULUS_DWORDS: u32 = 96;
const EXPONENT_DWORDS: u32 = 1;
/// Memory that the driver reserves for the firmware's private data after the ADS; the card's GuC needs none.
const PRIVATE_DATA_BYTES: u32 = 4096;

const MODULE_TYPE: u32 = 6;
const HEADER_VERSION: u32 = 0x1_0000;

/// The text that replaces the microcode.
const TEXT: &str = "Arctic stand-in GuC firmware.\n\
    This file is not Intel's firmware and holds no code for any processor: it satisfies the checks that a graphics \
    driver makes before it uploads firmware to the Arctic virtual card, whose GuC is part of the device model. \
    Real hardware will not run it.\n";

/// Size of the microcode section in bytes.
const UCODE_BYTES: usize = TEXT.len().next_multiple_of(4096);

/// The file's contents: header, and text instead of microcode and signature.
pub(super) fn file(GucVersions { release, abi }: GucVersions) -> Vec<u8> {
    let version = |version: Version| u32::from_be_bytes([0, version.major, version.minor, version.patch]);
    let header_dwords = count(HEADER_BYTES) / 4 + RSA_DWORDS + MODULUS_DWORDS + EXPONENT_DWORDS;
    let mut header = [0u32; HEADER_BYTES / 4];
    header[..7].copy_from_slice(&[
        MODULE_TYPE,
        header_dwords,
        HEADER_VERSION,
        0,
        VENDOR,
        DATE,
        header_dwords + count(UCODE_BYTES) / 4,
    ]);
    header[7..10].copy_from_slice(&[RSA_DWORDS, MODULUS_DWORDS, EXPONENT_DWORDS]);
    header[16] = version(release);
    header[17] = version(abi);
    header[30] = PRIVATE_DATA_BYTES;

    let mut file: Vec<u8> = bytes_of(&header).collect();
    file.extend_from_slice(TEXT.as_bytes());
    file.resize(HEADER_BYTES + UCODE_BYTES, 0);
    file.extend(no_signature(RSA_DWORDS as usize * 4));
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields by the names and offsets of xe: abi/uc_fw_abi.h, parsed like parse_css_header and guc_read_css_info.
    struct Parsed {
        ucode: usize,
        rsa: usize,
        release: [u32; 3],
        submission: [u32; 3],
        private_data: u32,
        build_type: u32,
    }

    fn parse(file: &[u8]) -> Result<Parsed, &'static str> {
        if file.len() < 128 {
            return Err("invalid size");
        }
        let dword = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let (header_dw, size_dw) = (dword(4), dword(24));
        let (key_dw, modulus_dw, exponent_dw) = (dword(28), dword(32), dword(36));
        if header_dw.wrapping_sub(key_dw).wrapping_sub(modulus_dw).wrapping_sub(exponent_dw).wrapping_mul(4) != 128 {
            return Err("unexpected header size");
        }
        let ucode = (size_dw - header_dw) as usize * 4;
        let rsa = key_dw as usize * 4;
        if file.len() < 128 + ucode + rsa {
            return Err("file shorter than its sections");
        }
        let version = |value: u32| [value >> 16 & 0xff, value >> 8 & 0xff, value & 0xff];
        Ok(Parsed {
            ucode,
            rsa,
            release: version(dword(64)),
            submission: version(dword(68)),
            private_data: dword(120),
            build_type: dword(124) >> 2 & 3,
        })
    }

    /// Contract B.4 step 18: checks that xe makes before it accepts the file.
    #[test]
    fn the_driver_accepts_the_file() {
        let parsed = parse(&file(GucVersions::default())).unwrap();
        // With which it migrates VFs.
        assert_eq!(parsed.release, [70, 55, 0]);
        assert!(parsed.release >= [70, 29, 2], "older releases are refused");
        assert_eq!(parsed.submission, [1, 27, 0]);
        assert_eq!(parsed.build_type, 0, "a production build");
        assert!(parsed.private_data.is_multiple_of(4096) && parsed.private_data <= 1 << 20);
    }

    /// Those of Intel's file for DG2 of 2026, with which xe does not migrate.
    #[test]
    fn other_versions_are_claimed() {
        let versions = GucVersions { release: "70.53.0".parse().unwrap(), abi: "1.26.0".parse().unwrap() };
        let parsed = parse(&file(versions)).unwrap();
        assert_eq!((parsed.release, parsed.submission), ([70, 53, 0], [1, 26, 0]));
    }

    /// Contract B.4 steps 19 and 20: the image fits in WOPCM, the signature is passed by address, the DMA copies header
    /// and microcode.
    #[test]
    fn the_upload_is_well_formed() {
        let file = file(GucVersions::default());
        let parsed = parse(&file).unwrap();
        assert!(parsed.rsa > 256, "UOS_RSA_SCRATCH(0) gets the signature's address");
        let dma = 128 + parsed.ucode;
        assert_eq!(dma + parsed.rsa, file.len(), "only header, microcode and signature");
        assert!(dma.is_multiple_of(4));
        assert!(dma + 16384 + 8192 <= 0x3f_3000, "fits in WOPCM");
    }

    #[test]
    fn placeholder_firmware_has_a_marker() {
        let file = file(GucVersions::default());
        assert!(file[HEADER_BYTES..].starts_with(b"Arctic stand-in GuC firmware."));
        assert!(parse(&file[..127]).is_err() && parse(&file[..file.len() - 1]).is_err());
    }
}
