// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Logical contexts of the render engine: MI_SET_CONTEXT saves the registers of the current context to its image and
//! loads those of the next one (IVB-155, G67-090..092).
//!
//! The image is a batch of MI_LOAD_REGISTER_IMM commands, which ends with MI_BATCH_BUFFER_END. It is guest memory: of an
//! image, only registers of contexts are loaded, and at most [`IMAGE`] bytes are read.

use super::{Current, Engine};
use crate::command::{Command, Mi};
use crate::memory::{Fault, PAGE_MASK, Space};
use crate::registers::engine::{CCID, VALID};
use crate::registers::{Kind, Scope};
use crate::topology::EngineClass;

/// Size of an image in bytes: 105 lines of 64 bytes (G67-090).
const IMAGE: u32 = 105 * 64;
/// MI_SET_CONTEXT: the image is not loaded.
const INHIBIT: u32 = 1 << 0;
/// MI_SET_CONTEXT: the image is loaded also if the context is the current one.
const FORCE: u32 = 1 << 1;
/// Bits of the command that CCID has: address, extended state, memory space.
const KEPT: u32 = 0xffff_f10c;
/// Pairs of one command.
const PAIRS: usize = 126;
/// MI_LOAD_REGISTER_IMM without its length.
const LOAD: u32 = 0x22 << 23;
/// MI_BATCH_BUFFER_END.
const END: u32 = 0x0a << 23;

impl Engine {
    /// MI_SET_CONTEXT.
    pub(super) fn set_context(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let gt = current.gt;
        // Contexts are of the render engine, and switched by the ring only.
        if gt.generation.engine(self.id).class != EngineClass::Render || self.batch.is_some() {
            self.skip(current.name);
            return Ok(());
        }
        let operand = current.dword(1)?;
        let (old, new) = (self.value(gt, CCID), operand & KEPT | VALID.mask());
        let same = VALID.is_set(old) && (old ^ new) & PAGE_MASK == 0;
        if same && operand & FORCE == 0 {
            return Ok(());
        }
        if VALID.is_set(old) && !same {
            self.save_context(current, old & PAGE_MASK)?;
        }
        if operand & INHIBIT == 0 {
            restore_context(current, new & PAGE_MASK)?;
        }
        gt.registers.set(self.offset(gt, CCID), new);
        Ok(())
    }

    /// Writes the registers of contexts to the image at `image`.
    fn save_context(&self, current: &Current<'_>, image: u32) -> Result<(), Fault> {
        let registers = &current.gt.registers;
        let of_contexts = registers.listing().filter(|(_, decoded)| decoded.register.scope == Scope::Context);
        let pairs: Vec<[u32; 2]> = of_contexts
            .map(|(offset, decoded)| {
                let select = if decoded.register.kind == Kind::Masked { 0xffff_0000 } else { 0 };
                [offset, registers.value(offset) | select]
            })
            .collect();
        let mut dwords = vec![0];
        for part in pairs.chunks(PAIRS) {
            let length = u32::try_from(part.len()).unwrap_or(1).saturating_mul(2).saturating_sub(1);
            dwords.push(LOAD | length);
            dwords.extend(part.as_flattened());
        }
        dwords.push(END);
        let bytes: Vec<u8> = dwords.into_iter().flat_map(u32::to_le_bytes).collect();
        current.memory.write(Space::Ggtt, image, &bytes)
    }
}

/// Loads the registers of contexts from the image at `image`. Another command than those of images ends it.
fn restore_context(current: &Current<'_>, image: u32) -> Result<(), Fault> {
    let gt = current.gt;
    let mut bytes = [0; IMAGE as usize];
    current.memory.read(Space::Ggtt, image, &mut bytes)?;
    let mut dwords = bytes.as_chunks::<4>().0.iter().map(|dword| u32::from_le_bytes(*dword));
    while let Some(header) = dwords.next() {
        let command = gt.generation.commands.decode(header, EngineClass::Render);
        let Some(Command::Mi(row)) = command else { return Ok(()) };
        match row.action {
            Mi::Noop => {}
            Mi::LoadRegister => {
                for _ in 0..row.length.dwords(header) / 2 {
                    let (Some(offset), Some(value)) = (dwords.next(), dwords.next()) else { return Ok(()) };
                    match gt.registers.decode(offset) {
                        Some(found) if found.register.scope == Scope::Context => {
                            gt.registers.write_plain(offset & !3, found.register.kind, value);
                        }
                        _ => {}
                    }
                }
            }
            _ => return Ok(()),
        }
    }
    Ok(())
}
