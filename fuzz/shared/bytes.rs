//! Choices that a fuzzer's bytes make, one after the other.

/// What is left of an input; after its end all choices are 0.
pub struct Bytes<'b>(pub &'b [u8]);

#[allow(dead_code)] // not every target needs each kind of choice
impl<'b> Bytes<'b> {
    /// Whether there is more to choose from.
    pub fn more(&self) -> bool {
        !self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    pub fn dword(&mut self) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    pub fn qword(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// The next `len` bytes, or as many as there are.
    pub fn take(&mut self, len: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A number below `n`, which is neither 0 nor more than 65536.
    pub fn below(&mut self, n: u32) -> u32 {
        let value = if n <= 256 { u32::from(self.byte()) } else { u32::from(self.word()) };
        value % n
    }

    /// One of a list.
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u32) as usize]
    }

    /// A number as attackers like them, or any.
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
