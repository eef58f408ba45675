// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Files that may have input for an engine inside, and are not input themselves.

/// What the file is, with the way to its contents: by its first bytes.
const CONTAINERS: [(&[u8], &str); 4] = [
    (b"\x1f\x8b", "compressed: use `gzip -dc FILE | arctic decode -`"),
    (b"\x28\xb5\x2f\xfd", "compressed: use `zstd -dc FILE | arctic decode -`"),
    (b"\xfd7zXZ\0", "compressed: use `xz -dc FILE | arctic decode -`"),
    (b"\x7fELF", "an ELF file, of a program or a compiler: `eu disasm` reads kernels of the execution units"),
];

/// What a file with these bytes is, if it is none of an engine's.
pub fn of(bytes: &[u8]) -> Option<&'static str> {
    CONTAINERS.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_recognised_by_their_first_bytes() {
        let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default()).finish().unwrap();
        assert!(of(&gzip).unwrap().contains("gzip -dc"));
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(of(&program).unwrap().starts_with("an ELF file"));
        for bytes in [&b""[..], b"\x1f", b"**** Xe Device Coredump ****", &0x0500_0000_u32.to_le_bytes()] {
            assert_eq!(of(bytes), None, "{bytes:?}");
        }
    }
}
