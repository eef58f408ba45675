// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Decodes a fuzzer's input bytes into a sequence of choices.

/// The remaining bytes of an input. After the end of the input every choice is 0.
pub struct Bytes<'b>(pub &'b [u8]);

impl<'b> Bytes<'b> {
    /// Returns whether bytes are left.
    pub fn more(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Returns the next two bytes.
    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// Returns the next four bytes.
    pub fn dword(&mut self) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// Returns the next eight bytes.
    pub fn qword(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// Returns the next `len` bytes, or fewer at the end of the input.
    pub fn take(&mut self, len: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Returns a value below `n`, which must be 1 to 65536.
    pub fn below(&mut self, n: u32) -> u32 {
        let value = if n <= 256 { u32::from(self.byte()) } else { u32::from(self.word()) };
        value % n
    }

    /// Returns an element of `list`, which must not be empty.
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u32) as usize]
    }

    /// Returns a boundary value or an arbitrary value.
    pub fn edge(&mut self) -> u64 {
        const EDGES: [u64; 20] = [
            0,
            1,
            2,
            3,
            4,
            7,
            8,
            0xfff,
            0x1000,
            0xffff,
            0x1_0000,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_f000,
            0xffff_ffff,
            1 << 32,
            1 << 47,
            1 << 63,
            u64::MAX - 7,
            u64::MAX,
        ];
        match self.byte() {
            choice @ 0..128 => EDGES[usize::from(choice) % EDGES.len()],
            128..192 => u64::from(self.byte()),
            192..224 => u64::from(self.word()),
            224..240 => self.dword().into(),
            _ => self.qword(),
        }
    }
}
