// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Logical contexts of the render engine: MI_SET_CONTEXT saves the registers of the current context to its image and
//! loads those of the next one (IVB-155, G67-090..092).
//!
//! The image is a batch of MI_LOAD_REGISTER_IMM commands (ILK-170): first those of the context, then those of its extended
//! state, then MI_BATCH_BUFFER_END. It is guest memory: a restore loads only registers of contexts, and reads no bytes
//! beyond the size of an image.

use super::registers::written_lanes;
use super::{Current, Engine};
use crate::command::mi::{MI_BATCH_BUFFER_END, MI_LOAD_REGISTER_IMM, fields};
use crate::command::{Command, Mi};
use crate::generation::LARGEST_CONTEXT;
use crate::gt::Gt;
use crate::memory::{Fault, Space};
use crate::registers::engine::{BB_STATE, CCID, Ccid, INSTPM, PP_DCLV, SYNC_FLUSH};
use crate::registers::{Kind, Scope, all_selected, masked};
use crate::topology::EngineClass;

/// Maximum number of register-value pairs of one MI_LOAD_REGISTER_IMM (i915: gt/intel_gpu_commands.h,
/// MI_LOAD_REGISTER_IMM_MAX_REGS).
const MAX_PAIRS: usize = 126;
/// Registers of the engine's own table that contexts have (IVB-006, IVB-104, IVB-187).
const ENGINE_REGISTERS: [u32; 3] = [INSTPM, BB_STATE, PP_DCLV];

impl Engine {
    /// Executes MI_SET_CONTEXT (IVB-155). Fails if an image is not mapped.
    pub(super) fn set_context(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let gt = current.gt;
        // Contexts are switched by the ring only.
        if self.batch.is_some() {
            self.skip(current.name);
            return Ok(());
        }
        let words = [current.header, current.dword(1)?];
        let old = Ccid::from_bits(self.value(gt, CCID));
        let new = Ccid::from_bits(words[1] & Ccid::STORED).with_valid(true);
        let same = old.valid() && old.page() == new.page();
        if same && !fields::CONTEXT_FORCE.is_set(&words) {
            return Ok(());
        }
        // A forced restore loads an image that software has changed, so the registers are not saved to it first (ILK-169
        // differs).
        if old.valid() && !same {
            self.save_context(current, old.address(), old.save_extended())?;
        }
        if !fields::CONTEXT_INHIBIT.is_set(&words) {
            self.restore_context(current, new.address(), new.restore_extended())?;
        }
        gt.registers.set(self.offset(gt, CCID), new.into_bits());
        // The command flushes the pipeline (ILK-128).
        self.flushed(current);
        Ok(())
    }

    /// Writes the registers of contexts to the image at `image`. Without the extended state, its part of the image is
    /// not changed.
    fn save_context(&self, current: &Current<'_>, image: u32, extended: bool) -> Result<(), Fault> {
        let gt = current.gt;
        let own = ENGINE_REGISTERS.map(|register| {
            let value = self.value(gt, register);
            [self.offset(gt, register), if register == INSTPM { all_selected(value) } else { value }]
        });
        let mut dwords = vec![0];
        push_register_loads(&mut dwords, own.into_iter().chain(register_values(gt, Scope::Context)));
        if extended {
            push_register_loads(&mut dwords, register_values(gt, Scope::Extended));
            dwords.push(MI_BATCH_BUFFER_END);
        }
        let bytes: Vec<u8> = dwords.into_iter().flat_map(u32::to_le_bytes).collect();
        current.memory.write(Space::Ggtt, image, &bytes)
    }

    /// Loads the registers of contexts from the image at `image`. Any other command ends the image.
    fn restore_context(&self, current: &Current<'_>, image: u32, extended: bool) -> Result<(), Fault> {
        let gt = current.gt;
        let mut bytes = [0; LARGEST_CONTEXT];
        let bytes = bytes.split_at_mut(gt.generation.context_bytes.min(LARGEST_CONTEXT)).0;
        current.memory.read(Space::Ggtt, image, bytes)?;
        let mut dwords = bytes.as_chunks::<4>().0;
        while let Some((header, rest)) = dwords.split_first() {
            let header = u32::from_le_bytes(*header);
            let command = gt.generation.commands.decode(header, EngineClass::Render);
            let Some(Command::Mi(row)) = command else { return Ok(()) };
            dwords = match row.action {
                Mi::Noop => rest,
                Mi::LoadRegister => {
                    let payload = row.length.dwords(header).saturating_sub(1) as usize;
                    let (payload, rest) = rest.split_at(payload.min(rest.len()));
                    let lanes = written_lanes(header);
                    for [offset, value] in payload.as_chunks::<2>().0 {
                        let (offset, value) =
                            (u32::from_le_bytes(*offset) & fields::LOADED_REGISTER.mask(), u32::from_le_bytes(*value));
                        self.restore_register(gt, offset, (value & lanes, lanes), extended);
                    }
                    rest
                }
                _ => return Ok(()),
            };
        }
        Ok(())
    }

    /// Loads the bits `lanes` of a register of contexts; the others are 0 in `value`. Other registers are not changed.
    fn restore_register(&self, gt: &Gt, offset: u32, (value, lanes): (u32, u32), extended: bool) {
        let Some(found) = gt.registers.decode(offset) else { return };
        let merged = |old: u32| old & !lanes | value;
        if ENGINE_REGISTERS.iter().any(|register| self.offset(gt, *register) == offset) {
            let mode = self.offset(gt, INSTPM) == offset;
            gt.registers.update(offset, |old| match mode {
                true => masked(old, value) & !SYNC_FLUSH.mask(),
                false => merged(old),
            });
            if self.offset(gt, PP_DCLV) == offset {
                gt.invalidate_translations(self.id);
            }
            return;
        }
        match (found.register.scope, found.register.kind) {
            (Scope::Extended, _) if !extended => {}
            // Software cannot write it, but a restore sets it (IVB-185).
            (Scope::Extended, Kind::ReadOnly) => drop(gt.registers.update(offset, merged)),
            (scope, kind) if scope.of_contexts() => gt.registers.write_plain(offset, kind.limited(lanes), value),
            _ => {}
        }
    }
}

/// The registers of `scope` with their values, as MI_LOAD_REGISTER_IMM writes them.
fn register_values(gt: &Gt, scope: Scope) -> impl Iterator<Item = [u32; 2]> + use<'_> {
    let registers = &gt.registers;
    let found = registers.listing().filter(move |(_, decoded)| decoded.register.scope == scope);
    found.map(|(offset, decoded)| {
        let value = registers.value(offset);
        [offset, if decoded.register.kind == Kind::Masked { all_selected(value) } else { value }]
    })
}

/// Appends commands that load `pairs`.
fn push_register_loads(dwords: &mut Vec<u32>, pairs: impl Iterator<Item = [u32; 2]>) {
    let pairs: Vec<_> = pairs.collect();
    for part in pairs.chunks(MAX_PAIRS) {
        let length = u32::try_from(part.len()).unwrap_or(1).saturating_mul(2).saturating_sub(1);
        dwords.push(MI_LOAD_REGISTER_IMM | length);
        dwords.extend(part.as_flattened());
    }
}
