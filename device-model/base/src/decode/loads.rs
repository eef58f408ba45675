// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Register loads of context images, which are lists of commands that load immediate values into registers.

use std::collections::VecDeque;

use crate::command::{Addressing, AddressingBits, Decode, Field, FieldKind, Group, Next, Requester};

/// A register that an image loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Index of the value in the image.
    pub index: usize,
    /// Offset of the register: the bits of the command's field.
    pub offset: u32,
    /// How the offset is meant.
    pub addressing: Addressing,
    /// The value.
    pub value: u32,
}

/// The register loads of `image`, up to the end of its commands or the first dword that is no command of `engine`.
pub fn loads<'i, D: Decode>(image: &'i [u32], engine: D) -> impl Iterator<Item = Load> + use<'i, D> {
    let mut at: usize = 0;
    let mut found = VecDeque::new();
    std::iter::from_fn(move || {
        loop {
            if let Some(load) = found.pop_front() {
                return Some(load);
            }
            let rest = image.get(at..)?;
            let command = engine.describe(*rest.first()?)?;
            let len = (command.dwords as usize).clamp(1, rest.len());
            let words = rest.get(..len)?;
            if let Some((group, (register, bits))) = command.group.and_then(|group| Some((group, register(group)?))) {
                let addressing = words.first().map_or(Addressing::default(), |header| bits.of(*header));
                let first = usize::from(group.first);
                let pairs = words.get(first..).unwrap_or_default().as_chunks().0.iter();
                found.extend((1_usize..).step_by(2).zip(pairs).map(|(distance, [offset, value])| Load {
                    index: at.saturating_add(first).saturating_add(distance),
                    offset: *offset & register.mask(),
                    addressing,
                    value: *value,
                }));
            } else if engine.remarks(words, Requester::PfKernel).next == Next::End {
                return None;
            }
            at = at.saturating_add(len);
        }
    })
}

/// If `group` has pairs of a register and its value, returns the register's field, and the header bits that say how the
/// registers are meant.
fn register(group: Group) -> Option<(Field, AddressingBits)> {
    match group.fields {
        [register, value] if register.dword == 0 && value.dword == 1 && group.dwords == 2 => {
            match (register.kind, value.kind) {
                (FieldKind::Register(bits), FieldKind::Hex) => Some((*register, bits)),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::toy::RENDER_1;

    fn found(image: &[u32]) -> Vec<(usize, u32, bool, u32)> {
        loads(image, RENDER_1).map(|load| (load.index, load.offset, load.addressing.relative, load.value)).collect()
    }

    #[test]
    fn loads_are_found_up_to_the_end_of_the_commands() {
        let image = [
            0,
            0x1108_0003,
            0x40,
            1,
            0xff80_0047,
            2,
            0x1000_0001,
            0,
            0,
            0x1100_0001,
            0x50,
            3,
            0x0500_0000,
            0x1100_0001,
            0,
            0,
        ];
        assert_eq!(found(&image), [(3, 0x40, true, 1), (5, 0x44, true, 2), (11, 0x50, false, 3)]);
    }

    #[test]
    fn a_damaged_image_ends_at_the_damage() {
        assert_eq!(found(&[0x1100_0005, 0x40, 1, 0x44]), [(2, 0x40, false, 1)], "truncated");
        assert_eq!(found(&[0x1100_0001, 0x40, 1, u32::MAX, 0x1100_0001, 0x40, 1]), [(2, 0x40, false, 1)]);
        assert_eq!(found(&[]), []);
    }
}
