// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Register image of a logical ring context. The image is a list of MI_NOOP, MI_LOAD_REGISTER_IMM, one
//! MI_LOAD_REGISTER_MEM, MI_FORCE_WAKEUP and an end command (V8-046); in the engine context of an engine with a compute
//! pipeline, the commands of its state too. Parsing is bounded by the image's length.

use crate::command::gfx::Gfx;
use crate::command::mi::LRI;
use crate::compute::image_command;
use crate::context_image::{END, FORCE_WAKEUP, IMAGE_DWORDS, LRM, Layout, RELATIVE};
use crate::memory::{Fault, Gam, Space};
use crate::topology::{EngineClass, EngineId, EngineTable};

/// Type and opcode of a command.
const OPCODE: u32 = 0xff80_0000;

/// Returns the length in dwords of a command with a length field.
#[allow(clippy::arithmetic_side_effects, reason = "the field has 8 bits")]
const fn length(header: u32) -> usize {
    (header & 0xff) as usize + 2
}

/// A register image read from memory.
pub struct Image {
    words: [u32; IMAGE_DWORDS],
    /// Length in dwords of the engine's images.
    len: usize,
    /// Dword at which the engine context starts.
    engine_context: usize,
    class: EngineClass,
}

/// What an image has the engine execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A register load.
    Load(Load),
    /// A command of the compute pipeline: what it does, its first dword and its length.
    Compute(Gfx, usize, usize),
}

/// A register load in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The command's header.
    pub header: u32,
    /// Register offset as encoded in the command.
    pub register: u32,
    /// Value to load.
    pub value: Value,
}

/// Location of a value to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// In the command.
    Immediate(u32),
    /// In memory.
    At(u64),
}

/// Position of the execution in an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    at: usize,
    /// Header of the current LRI and its number of remaining pairs.
    open: (u32, usize),
}

impl Image {
    /// Reads an engine's image with this layout at global address `at`.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "the length is at most IMAGE_DWORDS, and chunks have four bytes"
    )]
    pub fn read(gam: &mut Gam<'_>, at: u64, layout: &Layout) -> Result<Self, Fault> {
        let len = layout.template.len().min(IMAGE_DWORDS);
        let mut image =
            Image { words: [0; IMAGE_DWORDS], len, engine_context: layout.format.engine_context, class: layout.class };
        let mut bytes = [0; IMAGE_DWORDS * 4];
        let bytes = &mut bytes[..image.len * 4];
        gam.read(Space::Ggtt, at, bytes)?;
        for (word, raw) in image.words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
        }
        Ok(image)
    }

    /// Returns dword `index`, or 0 beyond the end of the image.
    #[allow(clippy::indexing_slicing, reason = "the length is at most IMAGE_DWORDS")]
    #[inline]
    pub fn dword(&self, index: usize) -> u32 {
        self.words[..self.len].get(index).copied().unwrap_or(0)
    }

    /// Returns `dwords` dwords from `at` on; fewer at the end of the image.
    pub fn dwords(&self, at: usize, dwords: usize) -> &[u32] {
        let image = self.words.get(..self.len).unwrap_or_default();
        let rest = image.get(at..).unwrap_or_default();
        rest.get(..dwords).unwrap_or(rest)
    }

    /// The command of the compute pipeline at dword `at` of the engine context, and its length.
    fn compute(&self, at: usize) -> Option<(Gfx, usize)> {
        image_command(self.dword(at), self.class).filter(|_| at >= self.engine_context)
    }

    /// Checks whether `engine` can execute the image up to dword `until`. Fails with the dword index of the first
    /// command that is not valid in an image or that loads registers of another engine class (V8-007).
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the position lies within the image, and a command has at most 257 dwords"
    )]
    pub fn check(&self, engines: EngineTable, engine: EngineId, until: usize) -> Result<(), usize> {
        let until = until.min(self.len);
        let mut at = 0;
        while at < until {
            let header = self.dword(at);
            let dwords = match header & OPCODE {
                0 => 1,
                END_OPCODE if at < self.engine_context => 1,
                END_OPCODE => return Ok(()),
                LRI if !length(header).is_multiple_of(2) && self.are_of(engines, engine, header, at) => length(header),
                LRM if length(header) == 4 => 4,
                FORCE_WAKEUP => length(header),
                _ => self.compute(at).ok_or(at)?.1,
            };
            if at + dwords > self.len {
                return Err(at);
            }
            at += dwords;
        }
        Ok(())
    }

    /// Returns whether every relative offset of the LRI at dword `at` is valid for the engine's class.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "the position lies within the image, and a command has at most 257 dwords; chunks have two"
    )]
    fn are_of(&self, engines: EngineTable, engine: EngineId, header: u32, at: usize) -> bool {
        let pairs = self.words.get(at + 1..at + length(header)).unwrap_or_default();
        header & RELATIVE == 0 || pairs.chunks_exact(2).all(|pair| engines.takes_relative(engine, pair[0]))
    }

    /// Returns the next entry that starts before dword `until`. Returns `None` at the end of the image and at a
    /// command that [`Image::check`] rejects.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the position lies within the image, a command has at most 257 dwords, and a pair is left"
    )]
    #[inline]
    pub fn next(&self, cursor: &mut Cursor, until: usize) -> Option<Entry> {
        let until = until.min(self.len);
        while cursor.at < until {
            let at = cursor.at;
            let (header, pairs) = cursor.open;
            if pairs > 0 {
                *cursor = Cursor { at: at + 2, open: (header, pairs - 1) };
                let value = Value::Immediate(self.dword(at + 1));
                return Some(Entry::Load(Load { header, register: self.dword(at), value }));
            }
            let header = self.dword(at);
            cursor.at += match header & OPCODE {
                0 => 1,
                // The end command is ignored in the ring context: drivers write it after the common registers and
                // append the loads for memory-based interrupts (xe: empty_lrc_data).
                END_OPCODE if at < self.engine_context => 1,
                LRI => {
                    cursor.open = (header, (length(header) - 1) / 2);
                    1
                }
                LRM => {
                    cursor.at += 4;
                    let address = u64::from(self.dword(at + 3)) << 32 | u64::from(self.dword(at + 2));
                    return Some(Entry::Load(Load { header, register: self.dword(at + 1), value: Value::At(address) }));
                }
                FORCE_WAKEUP => length(header),
                _ => {
                    let Some((action, dwords)) = self.compute(at) else {
                        cursor.at = self.len;
                        return None;
                    };
                    cursor.at += dwords;
                    return Some(Entry::Compute(action, at, dwords));
                }
            };
        }
        None
    }
}

/// [`END`] without bit 0.
const END_OPCODE: u32 = END & OPCODE;

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;
    use crate::command::gfx::State;
    use crate::command::mi::lri;
    use crate::context_image::{POSTED, REMAP};
    use crate::topology::XE_HPG_ENGINES;

    fn image(words: &[u32]) -> Image {
        let mut image =
            Image { words: [0; IMAGE_DWORDS], len: words.len(), engine_context: 0x60, class: EngineClass::Compute };
        image.words[..words.len()].copy_from_slice(words);
        image
    }

    fn loads(image: &Image, mut cursor: Cursor, until: usize) -> Vec<(u32, Value)> {
        let entries = std::iter::from_fn(|| image.next(&mut cursor, until));
        let loads = entries.filter_map(|entry| match entry {
            Entry::Load(load) => Some((load.register, load.value)),
            Entry::Compute(..) => None,
        });
        loads.collect()
    }

    #[test]
    fn images_are_lists_of_loads() {
        proves!(
            V8_046,
            "headers encode 2n-1 in their low byte, and flags in bits 19, 17 and 12. MI_NOOPs are skipped and an \
            LRM is executed"
        );
        let headers = [13, 15, 9, 55].map(|n| lri(RELATIVE | POSTED, n));
        assert_eq!(headers, [0x1108_1019, 0x1108_101d, 0x1108_1011, 0x1108_106d]);
        assert_eq!((lri(POSTED, 2), lri(REMAP | POSTED, 6)), (0x1100_1003, 0x1102_100b));
        let image = image(&[0, lri(RELATIVE, 2), 0x34, 1, 0x30, 2, 0, LRM | 2, 0xa8, 0x1000, 1, 0, END]);
        let all = [(0x34, Value::Immediate(1)), (0x30, Value::Immediate(2)), (0xa8, Value::At(1 << 32 | 0x1000))];
        assert_eq!(loads(&image, Cursor::default(), 99), all);
        assert_eq!(loads(&image, Cursor::default(), 4), all[..1], "limit within a command");
        let mut cursor = Cursor::default();
        assert!(image.next(&mut cursor, 4).is_some() && image.next(&mut cursor, 4).is_none());
        assert_eq!(loads(&image, cursor, 99), all[1..], "continues within the command");
    }

    #[test]
    fn an_invalid_image_is_reported() {
        proves!(
            V8_007,
            "an image that is not valid for the engine's class is reported and not executed. Parsing stays within \
            the image"
        );
        let engine = XE_HPG_ENGINES.find(EngineClass::VideoDecode, 1).unwrap();
        let check = |words: &[u32]| image(words).check(XE_HPG_ENGINES, engine, words.len());
        assert_eq!(check(&[0, lri(RELATIVE, 1), 0x34, 0]), Ok(()));
        assert_eq!(check(&[0, lri(RELATIVE, 1), 0x1c_0034, 0]), Ok(()), "another instance of the class");
        assert_eq!(check(&[0, lri(RELATIVE, 1), 0x2_2034, 0]), Err(1), "another class");
        assert_eq!(check(&[0, lri(RELATIVE, 2), 0x34, 0]), Err(1), "truncated");
        assert_eq!(check(&[LRI, 0x34]), Err(0), "not pairs");
        assert_eq!(check(&[0, 0x1000_0002, 0, 0, 0]), Err(1), "MI_STORE_DATA_IMM");
        assert_eq!(check(&[0x7815_0009]), Err(0));
        let hostile = image(&[0x1000_0002, 0, 0, lri(0, 1), 0x34, 1]);
        assert_eq!(loads(&hostile, Cursor::default(), 6), []);
        assert_eq!(loads(&image(&[LRI | 0xff, 0x34]), Cursor::default(), 99).len(), 1);
    }

    /// EU-014: state commands are valid in the engine context of an engine with a compute pipeline, and nowhere else; other
    /// commands of the pipelines are not.
    #[test]
    fn state_commands_are_part_of_the_engine_context() {
        let engine = XE_HPG_ENGINES.find(EngineClass::Compute, 0).unwrap();
        let with = |at: usize, header: u32, class| {
            let mut words = [0; 0x90];
            words[at] = header;
            let image = Image { class, ..image(&words) };
            let entry = image.next(&mut Cursor::default(), words.len());
            (image.check(XE_HPG_ENGINES, engine, words.len()), entry)
        };
        let base = 0x6101_0014;
        let state = (Ok(()), Some(Entry::Compute(Gfx::State(State::BaseAddress), 0x62, 22)));
        assert_eq!(with(0x62, base, EngineClass::Compute), state);
        assert_eq!(with(0x62, base, EngineClass::Copy), (Err(0x62), None));
        assert_eq!(with(0x20, base, EngineClass::Render), (Err(0x20), None), "in the ring context");
        assert_eq!(with(0x62, 0x7805_0000, EngineClass::Compute), (Err(0x62), None), "another command");
        assert_eq!(with(0x8f, base, EngineClass::Compute).0, Err(0x8f), "truncated");
    }
}
