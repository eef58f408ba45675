// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A function's 4096 bytes of configuration space: reset value and write behaviour of each bit.

use std::ops::Range;

/// Size in bytes of a PCI Express function's configuration space.
pub const CONFIG_BYTES: usize = 4096;
/// Size in bytes of a conventional function's configuration space.
pub const CONVENTIONAL_CONFIG_BYTES: u64 = 256;

/// One register or part of one, 1 to 4 bytes wide. Bytes that no field covers read 0 and ignore writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    at: u16,
    bytes: u8,
    reset: u32,
    writable: u32,
    clear: u32,
    sticky: u32,
    live: u32,
}

impl Field {
    const fn new(at: u16, bytes: u8, reset: u32) -> Self {
        Field { at, bytes, reset, writable: 0, clear: 0, sticky: 0, live: 0 }
    }

    /// A read-only byte at offset `at`.
    pub const fn byte(at: u16, value: u8) -> Self {
        Self::new(at, 1, value as u32)
    }

    /// A read-only word of 16 bits.
    pub const fn word(at: u16, value: u16) -> Self {
        Self::new(at, 2, value as u32)
    }

    /// A read-only doubleword of 32 bits.
    pub const fn dword(at: u16, value: u32) -> Self {
        Self::new(at, 4, value)
    }

    /// The same field with the bits of `mask` writable (RW).
    pub const fn writable(self, mask: u32) -> Self {
        Field { writable: mask, ..self }
    }

    /// The same field with the bits of `mask` cleared by writing 1 to them (RW1C).
    pub const fn write_1_to_clear(self, mask: u32) -> Self {
        Field { clear: mask, ..self }
    }

    /// The same field with the bits of `mask` preserved across a Function Level Reset (the "S" in RWS; PCIe 6.6.2).
    pub const fn sticky(self, mask: u32) -> Self {
        Field { sticky: mask, ..self }
    }

    /// The same field with bits that only the function itself changes ([`ConfigSpace::set`]): read-only for software.
    pub const fn live(self, mask: u32) -> Self {
        Field { live: mask, ..self }
    }

    /// The bytes that the field covers.
    pub fn bytes(&self) -> Range<u16> {
        self.at..self.at.saturating_add(self.bytes.into())
    }

    /// The same field, moved up by `base` bytes: converts a capability-relative offset to an absolute one.
    pub const fn moved(self, base: u16) -> Self {
        Field { at: self.at.saturating_add(base), ..self }
    }
}

/// A list of fields that does not form a valid configuration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Two fields cover the byte at this offset.
    #[error("two configuration space fields overlap at byte {0:#x}")]
    Overlap(u16),
    /// The field at this offset extends beyond the 4096 bytes.
    #[error("the field at {0:#x} extends beyond configuration space")]
    OutOfRange(u16),
}

/// Kind of PCI Express reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Power-on, hot or bus reset: resets every bit (V13-114).
    Conventional,
    /// Function Level Reset: resets every bit that is not sticky (V13-115).
    FunctionLevel,
}

#[derive(Clone, Copy, Default)]
struct Byte {
    value: u8,
    reset: u8,
    writable: u8,
    clear: u8,
    sticky: u8,
    live: u8,
}

/// Configuration space, stored by byte so that accesses of any width and alignment are consistent.
#[derive(Clone)]
pub struct ConfigSpace(Box<[Byte]>);

impl ConfigSpace {
    /// Builds the space from `fields`, in its state after a conventional reset.
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Result<Self, LayoutError> {
        let mut bytes = vec![Byte::default(); CONFIG_BYTES];
        let mut claimed = vec![false; CONFIG_BYTES];
        for field in fields {
            let parts = [field.reset, field.writable, field.clear, field.sticky, field.live].map(u32::to_le_bytes);
            let [resets, writable, clear, sticky, live] = parts;
            let places = bytes.iter_mut().zip(&mut claimed).enumerate().skip(field.at.into());
            let mut places = places.take(field.bytes.into());
            for ((((reset, writable), clear), sticky), live) in
                resets.into_iter().zip(writable).zip(clear).zip(sticky).zip(live).take(field.bytes.into())
            {
                let (at, (byte, claimed)) = places.next().ok_or(LayoutError::OutOfRange(field.at))?;
                if std::mem::replace(claimed, true) {
                    return Err(LayoutError::Overlap(u16::try_from(at).unwrap_or(field.at)));
                }
                *byte = Byte { value: reset, reset, writable, clear, sticky, live };
            }
        }
        Ok(ConfigSpace(bytes.into_boxed_slice()))
    }

    /// Replaces the bytes that `field` covers, also those of other fields, by the field's reset value and masks. Bytes
    /// outside the space are dropped.
    pub fn replace(&mut self, field: Field) {
        let parts = [field.reset, field.writable, field.clear, field.sticky, field.live].map(u32::to_le_bytes);
        let [resets, writable, clear, sticky, live] = parts;
        let inside = self.0.get_mut(usize::from(field.at)..).unwrap_or_default();
        let masks = resets.into_iter().zip(writable).zip(clear).zip(sticky).zip(live);
        for (byte, ((((reset, writable), clear), sticky), live)) in
            inside.iter_mut().zip(masks).take(field.bytes.into())
        {
            *byte = Byte { value: reset, reset, writable, clear, sticky, live };
        }
    }

    /// Reads `data.len()` bytes starting at `offset`. Bytes outside the space read 0.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        let inside = usize::try_from(offset).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        data.fill(0);
        for (out, byte) in data.iter_mut().zip(inside) {
            *out = byte.value;
        }
    }

    /// Writes `data` starting at `offset` as software does, subject to the write masks. Bytes outside the space are
    /// dropped.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let inside = usize::try_from(offset).ok().and_then(|at| self.0.get_mut(at..)).unwrap_or_default();
        for (byte, new) in inside.iter_mut().zip(data) {
            let kept = byte.value & !byte.writable & !(byte.clear & new);
            byte.value = kept | new & byte.writable;
        }
    }

    /// Restores the reset value of every bit that `reset` affects.
    pub fn reset(&mut self, reset: Reset) {
        for byte in &mut self.0 {
            let kept = match reset {
                Reset::FunctionLevel => byte.sticky,
                _ => 0,
            };
            byte.value = byte.value & kept | byte.reset & !kept;
        }
    }

    /// The 16 bits at `at`; 0 outside the space.
    pub fn word(&self, at: u16) -> u16 {
        let mut data = [0; 2];
        self.read(at.into(), &mut data);
        u16::from_le_bytes(data)
    }

    /// The 32 bits at `at`; 0 outside the space.
    pub fn dword(&self, at: u16) -> u32 {
        let mut data = [0; 4];
        self.read(at.into(), &mut data);
        u32::from_le_bytes(data)
    }

    /// Sets the bits of `mask` in the 32 bits at `at` to `value`, bypassing the write masks.
    pub fn set(&mut self, at: u16, mask: u32, value: u32) {
        let inside = self.0.get_mut(usize::from(at)..).unwrap_or_default();
        for (byte, (mask, value)) in inside.iter_mut().zip(mask.to_le_bytes().into_iter().zip(value.to_le_bytes())) {
            byte.value = byte.value & !mask | value & mask;
        }
    }

    /// Replaces the bytes from `at` on with saved values. Fails with the offset of the first byte that differs in
    /// a bit that neither software nor the function changes; the bytes before it are then replaced.
    pub fn restore(&mut self, at: u16, values: &[u8]) -> Result<(), u16> {
        let inside = self.0.get_mut(usize::from(at)..).unwrap_or_default();
        for ((at, byte), value) in (at..).zip(inside).zip(values) {
            let variable = byte.writable | byte.clear | byte.live;
            if (byte.value ^ value) & !variable != 0 {
                return Err(at);
            }
            byte.value = *value;
        }
        Ok(())
    }

    /// Makes exactly the bits of `mask` in the 32 bits at `at` writable by software, for example when a BAR is resized.
    /// Bits that become read-only return to their reset value.
    pub fn set_writable(&mut self, at: u16, mask: u32) {
        let inside = self.0.get_mut(usize::from(at)..).unwrap_or_default();
        for (byte, mask) in inside.iter_mut().zip(mask.to_le_bytes()) {
            byte.writable = mask;
            byte.value = byte.value & mask | byte.reset & !mask;
        }
    }

    /// Makes the bits of `mask` in the 32 bits at `at` survive a Function Level Reset.
    pub fn set_sticky(&mut self, at: u16, mask: u32) {
        let inside = self.0.get_mut(usize::from(at)..).unwrap_or_default();
        for (byte, mask) in inside.iter_mut().zip(mask.to_le_bytes()) {
            byte.sticky |= mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    fn space() -> ConfigSpace {
        ConfigSpace::new([
            Field::dword(0, 0x56c0_8086),
            Field::word(4, 0x0010).writable(0x0546),
            Field::word(6, 0x8010).write_1_to_clear(0xf900),
            Field::word(8, 0).writable(0x00ff).sticky(0x000f),
        ])
        .unwrap()
    }

    /// PCIe 7.4: RO bits keep their value, RW bits take the written value, RW1C bits clear only where a 1 is written.
    #[test]
    fn masks_decide_what_a_write_does() {
        let mut space = space();
        space.write(0, &[0xff; 8]);
        assert_eq!(space.dword(0), 0x56c0_8086);
        assert_eq!(space.word(4), 0x0556);
        assert_eq!(space.word(6), 0x0010);
        space.write(4, &[0, 0, 0, 0]);
        assert_eq!(space.dword(4), 0x0010_0010);
    }

    #[test]
    fn sticky_bits_survive_only_a_function_level_reset() {
        proves!(
            [V13_114, V13_115],
            "a Function Level Reset preserves sticky bits; a conventional reset preserves none (pCIe 6.6.2)"
        );
        let mut space = space();
        space.write(8, &[0xff, 0xff]);
        space.reset(Reset::FunctionLevel);
        assert_eq!(space.word(8), 0x000f);
        space.reset(Reset::Conventional);
        assert_eq!(space.word(8), 0);
    }

    #[test]
    fn writable_bits_can_change() {
        proves!(
            V13_013,
            "when the writable mask changes, bits that remain writable keep their value and the others are reset"
        );
        let mut space = space();
        space.write(8, &[0xff, 0xff]);
        space.set_writable(8, 0xfff0);
        assert_eq!(space.word(8), 0x00f0);
        space.write(8, &[0xff, 0xff]);
        assert_eq!(space.word(8), 0xfff0);
        space.set_sticky(8, 0xf000);
        space.reset(Reset::FunctionLevel);
        assert_eq!(space.word(8), 0xf000);
    }

    /// Bytes outside the space read 0 and ignore writes, at the end of the space and far beyond it.
    #[test]
    fn accesses_outside_read_zeros() {
        let mut space = space();
        let mut data = [0xaa; 8];
        space.write(4094, &[1; 8]);
        space.read(4094, &mut data);
        assert_eq!(data, [0; 8]);
        space.write(u64::MAX, &[1]);
        space.read(u64::MAX - 1, &mut data);
        assert_eq!(data, [0; 8]);
    }

    #[test]
    fn a_table_with_an_overlap_or_a_stray_field_is_refused() {
        let overlap = ConfigSpace::new([Field::dword(0x50, 0), Field::byte(0x53, 0)]);
        assert_eq!(overlap.err(), Some(LayoutError::Overlap(0x53)));
        let stray = ConfigSpace::new([Field::dword(0xffe, 0)]);
        assert_eq!(stray.err(), Some(LayoutError::OutOfRange(0xffe)));
    }
}
