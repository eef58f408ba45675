// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A walk over all packets of a stream, with its indirect buffers and draw-state groups, executed or not.

use super::{Header, header};

/// What a stream consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// Packets by opcode; type-4 packets are at 4.
    pub packets: [u64; 128],
    /// Values in type-4 packets.
    pub registers: u64,
    /// Words, headers included.
    pub words: u64,
    /// Draw-state groups with words.
    pub groups: u64,
    /// Buffers, or the rest of one, that are not there, have a wrong header or exceed the limit.
    pub missing: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { packets: [0; 128], registers: 0, words: 0, groups: 0, missing: 0 }
    }
}

/// Largest depth of buffers in buffers.
const DEPTH: u32 = 4;
/// Words after which a walk ends: buffers that refer to themselves would never end otherwise.
const WORDS: u64 = 1 << 27;

/// Counts the packets of a buffer and of all that it refers to. `word` returns a word of memory.
pub fn walk(histogram: &mut Histogram, word: &dyn Fn(u64) -> Option<u32>, address: u64, words: u32) {
    buffer(histogram, word, address, words, 0);
}

fn buffer(sum: &mut Histogram, word: &dyn Fn(u64) -> Option<u32>, address: u64, words: u32, depth: u32) {
    let at = |index: u32| word(address.wrapping_add(u64::from(index) * 4));
    let mut index = 0;
    while index < words {
        let Some(packet) = at(index).filter(|_| sum.words < WORDS).and_then(header) else {
            sum.missing += 1;
            return;
        };
        let count = packet.count().min(words - index - 1);
        let payload = |number: u32| at(index + 1 + number).unwrap_or_default();
        let pair = |number: u32| u64::from(payload(number)) | u64::from(payload(number + 1)) << 32;
        match packet {
            Header::Registers { .. } => {
                sum.packets[4] += 1;
                sum.registers += u64::from(count);
            }
            Header::Operation { opcode, .. } => {
                sum.packets[usize::from(opcode)] += 1;
                // CP_INDIRECT_BUFFER
                if opcode == 0x3f && count >= 3 && depth < DEPTH {
                    buffer(sum, word, pair(0), payload(2) & 0xf_ffff, depth + 1);
                }
                // CP_SET_DRAW_STATE
                if opcode == 0x43 && depth < DEPTH {
                    for group in (0..count / 3).map(|group| group * 3) {
                        let length = payload(group) & 0xffff;
                        sum.groups += u64::from(length != 0);
                        buffer(sum, word, pair(group + 1), length, depth + 1);
                    }
                }
            }
        }
        sum.words += u64::from(count) + 1;
        index += count + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::operation;
    use super::*;

    #[test]
    fn walk_counts_buffers_and_groups_and_ends_with_the_depth() {
        let group = [0x4000_0101, 7];
        // A buffer that contains itself.
        let ring =
            [operation(0x43, &[2, 0x100, 0]), operation(0x3f, &[0, 0, 8]), operation(0x3f, &[0x900, 0, 1])].concat();
        let words = u32::try_from(ring.len()).unwrap();
        let word = |address: u64| match address {
            0x100.. => group.get(usize::try_from(address / 4 - 0x40).unwrap()).copied(),
            _ => ring.get(usize::try_from(address / 4).unwrap()).copied(),
        };
        let mut histogram = Histogram::default();
        walk(&mut histogram, &word, 0, words);
        assert_eq!(histogram.packets[0x43], 1 + u64::from(DEPTH));
        assert_eq!((histogram.groups, histogram.missing), (u64::from(DEPTH), 1));
        assert_eq!((histogram.packets[4], histogram.registers), (4, 4));
    }
}
