// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Hash by which results of mutants notice that a source has changed.

/// FNV-1a of 64 bits in hexadecimal. It detects changes, not forgeries.
pub fn hash(contents: &[u8]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", contents.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of the algorithm's authors.
    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(
            [hash(b""), hash(b"a"), hash(b"foobar")],
            ["cbf29ce484222325", "af63dc4c8601ec8c", "85944171f73967e8"]
        );
    }
}
