// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Canary words that identify the function to which data belongs.

use std::sync::LazyLock;

/// Number of words per function.
const WORDS: usize = 16;
/// Number of functions: the PF and three VFs.
const OWNERS: usize = 4;

struct Words {
    of: [[u32; WORDS]; OWNERS],
    /// Set for each 16-bit value that is the lower half of a canary.
    low: Vec<bool>,
}

static ALL: LazyLock<Words> = LazyLock::new(|| {
    let of: [[u32; WORDS]; OWNERS] = std::array::from_fn(|owner| {
        std::array::from_fn(|n| (mix((owner * WORDS + n) as u64 + 0xca11) >> 16) as u32 | 0x8000_0001)
    });
    let mut low = vec![false; 1 << 16];
    of.iter().flatten().for_each(|word| low[*word as usize & 0xffff] = true);
    Words { of, low }
});

fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Returns the canary for dword index `place` of data of function `owner`.
pub fn word(owner: u8, place: u64) -> u32 {
    ALL.of[usize::from(owner) % OWNERS][mix(place) as usize % WORDS]
}

/// Returns `len` bytes of canaries.
pub fn bytes(owner: u8, len: usize) -> Vec<u8> {
    (0..len as u64 / 4).flat_map(|place| word(owner, place).to_le_bytes()).collect()
}

/// Returns the owner of the canary `word`, or `None` if it is not a canary.
pub fn owner(word: u32) -> Option<u8> {
    if !ALL.low[word as usize & 0xffff] {
        return None;
    }
    (0..OWNERS).find(|owner| ALL.of[*owner].contains(&word)).map(|owner| owner as u8)
}

/// Returns position and owner of the first canary in `bytes`. A canary at an unaligned position counts only if it is
/// followed by another one.
pub fn find(bytes: &[u8]) -> Option<(usize, u8)> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    (0..bytes.len().saturating_sub(3)).find_map(|at| {
        let low = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if !ALL.low[usize::from(low)] {
            return None;
        }
        let found = owner(word(at)?)?;
        (at % 4 == 0 || word(at + 4).is_some_and(|next| owner(next).is_some())).then_some((at, found))
    })
}
