// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The ascii85 encoding of the kernel's dumps: five characters per dword, `z` for zero (linux/ascii85.h).

/// Decodes at most `most` dwords of `text`, and returns whether there are more; `Err` is the position of the first
/// invalid character.
pub fn decode(text: &[u8], most: usize) -> Result<(Vec<u32>, bool), usize> {
    let mut dwords = Vec::with_capacity(most.min(text.len() / 5));
    let mut at = 0;
    while let Some(first) = text.get(at) {
        if dwords.len() == most {
            return Ok((dwords, true));
        }
        if *first == b'z' {
            dwords.push(0);
            at += 1;
            continue;
        }
        let mut value = 0u32;
        for n in 0..5 {
            let digit = text.get(at + n).and_then(|byte| byte.checked_sub(b'!')).filter(|digit| *digit < 85);
            let next = digit.and_then(|digit| value.checked_mul(85)?.checked_add(u32::from(digit)));
            value = next.ok_or(at + n)?;
        }
        dwords.push(value);
        at += 5;
    }
    Ok((dwords, false))
}

/// The bytes of dwords in memory order.
pub fn bytes(dwords: &[u32]) -> Vec<u8> {
    dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect()
}

/// The dwords of bytes; up to three trailing bytes are ignored.
pub fn dwords(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|raw| u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]])).collect()
}

/// Encodes dwords.
#[cfg(test)]
pub fn encode(dwords: &[u32]) -> String {
    let one = |dword: &u32| match *dword {
        0 => "z".to_string(),
        dword => (0..5u32).rev().map(|n| char::from(b'!' + (dword / 85u32.pow(n) % 85) as u8)).collect(),
    };
    dwords.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dwords_survive() {
        let all = [0, 1, 84, 85, 0x1234_5678, u32::MAX, 0];
        let decode_all = |text: &[u8]| decode(text, usize::MAX);
        assert_eq!(decode_all(encode(&all).as_bytes()), Ok((all.to_vec(), false)));
        assert_eq!(decode(encode(&all).as_bytes(), 6), Ok((all[..6].to_vec(), true)));
        assert_eq!(decode(encode(&all).as_bytes(), 7), Ok((all.to_vec(), false)));
        assert_eq!(decode_all(b"z!!"), Err(3));
        assert_eq!(decode_all(b"uuuuu"), Err(4), "more than 32 bits");
        assert_eq!(decode_all(b"!!!!~"), Err(4));
    }
}
