// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI commands that move data between commands, registers and memory (V8-122..133).
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use arctic_sriov::number::qword;

use super::access::{address, bytes_kept};
use super::streamer::{Flow, Streamer};
use crate::command::mi::fields;
use crate::memory::{Fault, Space};
use crate::registers::engine_fields::PredicateResult;

impl Streamer<'_> {
    /// MI_STORE_DATA_IMM. Stores a dword, a qword, or the number of dwords given by the length.
    #[inline(always)]
    pub(super) fn store_data_imm(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let [header, low, high, data @ ..] = words else { return Ok(Flow::Illegal) };
        let space = self.space(fields::GLOBAL.is_set_in(*header));
        let mut at = address(*low, *high);
        if fields::STORE_PARTITION.is_set_in(*header) {
            at = self.partitioned(at);
        }
        match data {
            [value] => self.store(space, at, *value)?,
            [low, high] => self.store64(space, at, qword(*low, *high))?,
            [] => return Ok(Flow::Illegal),
            _ => self.store_run(space, at, data)?,
        }
        Ok(Flow::Next)
    }

    // Not inlined: `parse_straight` contains the stores of one or two dwords, and keeps fewer values in registers with
    // this one.
    #[inline(never)]
    fn store_run(&mut self, space: Space, mut at: u64, words: &[u32]) -> Result<(), Fault> {
        self.loops().effect();
        let mut bytes = [[0; 4]; 64];
        for chunk in words.chunks(bytes.len()) {
            for (raw, word) in bytes.iter_mut().zip(chunk) {
                *raw = word.to_le_bytes();
            }
            let written = bytes.get(..chunk.len()).unwrap_or_default().as_flattened();
            self.gam.write(space, at, written)?;
            at = at.wrapping_add(written.len() as u64);
        }
        Ok(())
    }

    /// MI_STORE_DATA_INDEX. Writes to the PPHWSP or the global status page at the offset in bits 11:2 of the second
    /// dword (V13-055).
    pub(super) fn store_data_index(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let [header, _, data @ ..] = words else { return Ok(Flow::Illegal) };
        let page = if fields::OWN_PAGE.is_set_in(*header) { self.running.lrc.pphwsp } else { self.global_page() };
        let at = page.wrapping_add(fields::INDEX.wide(words));
        match data {
            [value] => self.store(Space::Ggtt, at, *value)?,
            [low, high, ..] => self.store64(Space::Ggtt, at & !7, qword(*low, *high))?,
            [] => return Ok(Flow::Illegal),
        }
        Ok(Flow::Next)
    }

    /// MI_LOAD_REGISTER_IMM. The operands are pairs of register offset and value. In a non-privileged batch, one
    /// register that may not be written turns the whole command into a MI_NOOP (trap T35). In a VF's ring, only that
    /// register is skipped. Header bits 11:8 are byte write disables for all registers.
    pub(super) fn load_register_imm(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let [header, pairs @ ..] = words else { return Ok(Flow::Illegal) };
        let (pairs, _) = pairs.as_chunks();
        let addressing = fields::ADDRESSING.of(*header);
        if !self.requester().privileged() {
            for [raw, _] in pairs {
                let offset = self.mmio(*raw, addressing);
                if !self.may_write(offset) {
                    return Ok(Flow::Next);
                }
            }
        }
        let kept = bytes_kept(*header);
        for &[raw, value] in pairs {
            let offset = self.mmio(raw, addressing);
            match kept {
                0 => self.write_register(offset, value),
                u32::MAX => {}
                // Reads can have side effects, so the register is read only if the write is permitted.
                _ if self.may_write(offset) => {
                    let present = self.gt.streamer_read(self.id, offset);
                    self.write_register(offset, present & kept | value & !kept);
                }
                _ => {}
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn load_register_reg(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let &[header, source, destination, ..] = words else { return Ok(Flow::Illegal) };
        let source = self.mmio(source, fields::SOURCE_ADDRESSING.of(header));
        let value = self.read_register(source);
        let destination = self.named_register(header, destination);
        self.write_register(destination, value);
        Ok(Flow::Next)
    }

    /// Returns the register of an LRM or SRM, or the destination of an LRR.
    fn named_register(&self, header: u32, register: u32) -> u32 {
        self.mmio(register, fields::ADDRESSING.of(header))
    }

    /// Returns the memory address of an LRM or SRM.
    fn offset_address(&mut self, header: u32, low: u32, high: u32) -> u64 {
        let at = address(low, high);
        if fields::PARTITION.is_set_in(header) { self.partitioned(at) } else { at }
    }

    pub(super) fn load_register_mem(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let &[header, register, low, high, ..] = words else { return Ok(Flow::Illegal) };
        let offset = self.named_register(header, register);
        if !self.may_write(offset) {
            return Ok(Flow::Next);
        }
        let (space, at) = (self.space(fields::GLOBAL.is_set_in(header)), self.offset_address(header, low, high));
        let value = self.gam.read_u32(space, at)?;
        self.write_register(offset, value);
        Ok(Flow::Next)
    }

    /// MI_STORE_REGISTER_MEM. The register is read even if the store is dropped, as a GGTT store in a non-privileged
    /// batch is (T6).
    pub(super) fn store_register_mem(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let &[header, register, low, high, ..] = words else { return Ok(Flow::Illegal) };
        let global = fields::GLOBAL.is_set_in(header);
        if fields::RESULT_PREDICATE.is_set_in(header) && !self.registers.fields::<PredicateResult>().result() {
            return Ok(Flow::Next);
        }
        let offset = self.named_register(header, register);
        let requester = self.requester();
        let dropped = global && !requester.privileged();
        let value = self.read_register(offset);
        if dropped {
            self.refuse(requester);
            return Ok(Flow::Next);
        }
        let (space, at) = (self.space(global), self.offset_address(header, low, high));
        self.store(space, at, value)?;
        Ok(Flow::Next)
    }

    pub(super) fn copy_mem_mem(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let &[header, to_low, to_high, from_low, from_high, ..] = words else { return Ok(Flow::Illegal) };
        let from = self.space(fields::GLOBAL.is_set_in(header));
        let to = self.space(fields::DESTINATION_GLOBAL.is_set_in(header));
        let value = self.gam.read_u32(from, address(from_low, from_high))?;
        let at = address(to_low, to_high);
        self.store(to, at, value)?;
        Ok(Flow::Next)
    }

    /// MI_UPDATE_GTT. Writes entries, starting with the entry of the global address in the second dword.
    pub(super) fn update_gtt(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        self.loops().effect();
        let [_, _, entries @ ..] = words else { return Ok(Flow::Illegal) };
        let (entries, _) = entries.as_chunks();
        for (index, [low, high]) in (u64::from(fields::FIRST_PAGE.get(words))..).zip(entries) {
            self.gt.memory.ggtt().set_entry(index, qword(*low, *high).into());
        }
        Ok(Flow::Next)
    }
}
