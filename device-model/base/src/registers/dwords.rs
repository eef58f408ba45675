// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses in any width to a space of dwords.

/// Offset of the dword at `offset`, the first byte in it, and the number of bytes of an access of `len` bytes that are in
/// it.
fn part(offset: u64, len: usize) -> (u64, usize, usize) {
    let within = (offset % 4) as usize;
    (offset & !3, within, 4_usize.saturating_sub(within).min(len))
}

/// Reads `data` at `offset`: calls `read` with the offset of each dword, in order.
#[inline]
pub fn read_dwords(offset: u64, data: &mut [u8], mut read: impl FnMut(u64) -> u32) {
    let (mut at, mut rest) = (offset, data);
    while !rest.is_empty() {
        let (dword, within, len) = part(at, rest.len());
        let value = read(dword);
        let Some((bytes, after)) = rest.split_at_mut_checked(len) else { return };
        value.to_le_bytes().iter().skip(within).zip(&mut *bytes).for_each(|(byte, to)| *to = *byte);
        at = at.wrapping_add(len as u64);
        rest = after;
    }
}

/// Writes `data` at `offset`: calls `write` with the offset of each dword, its value, and its written bits. The other
/// bits of the value are 0.
#[inline]
pub fn write_dwords(offset: u64, data: &[u8], mut write: impl FnMut(u64, u32, u32)) {
    let (mut at, mut rest) = (offset, data);
    while !rest.is_empty() {
        let (dword, within, len) = part(at, rest.len());
        let Some((bytes, after)) = rest.split_at_checked(len) else { return };
        let (mut value, mut lanes) = ([0; 4], [0; 4]);
        for ((value, lane), byte) in value.iter_mut().zip(&mut lanes).skip(within).zip(bytes) {
            (*value, *lane) = (*byte, 0xff);
        }
        write(dword, u32::from_le_bytes(value), u32::from_le_bytes(lanes));
        at = at.wrapping_add(len as u64);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_is_split_into_dwords() {
        let mut written = Vec::new();
        write_dwords(6, &[1, 2, 3, 4, 5, 6, 7], |at, value, lanes| written.push((at, value, lanes)));
        assert_eq!(written, [(4, 0x0201_0000, 0xffff_0000), (8, 0x0605_0403, !0), (12, 0x07, 0xff)]);
        write_dwords(9, &[8, 9], |at, value, lanes| written.push((at, value, lanes)));
        assert_eq!(written.pop(), Some((8, 0x0009_0800, 0x00ff_ff00)));
        let (mut data, mut read) = ([0; 7], Vec::new());
        read_dwords(6, &mut data, |at| {
            read.push(at);
            0x0101_0101 * u32::try_from(at).unwrap() + 0x0302_0100
        });
        assert_eq!((data, read), ([6, 7, 8, 9, 10, 11, 12], vec![4, 8, 12]));
    }
}
