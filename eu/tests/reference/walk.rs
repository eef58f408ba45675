// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The walk of a single channel through code, as if it were alone: ISA-171 to ISA-178 read for one channel. A channel that
//! is alone never waits, so there are no masks and no waiting here: each branch is a choice between two addresses.

use std::collections::HashMap;

use arctic_eu::isa::{Instruction, Place, Source};

use super::state::State;

/// Code by the byte address of its instructions.
pub struct Program {
    pub instructions: HashMap<u32, Instruction>,
    /// Address of the first instruction, relative to the instruction base. ISA-179.
    pub base: u32,
}

/// The dword of a register operand that follows it by `index`.
fn at_dword(source: &Source, index: u8) -> Source {
    let mut source = *source;
    if let Source::Reg { place: Place::Grf { byte, .. }, .. } = &mut source {
        *byte += 4 * index;
    }
    source
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walked {
    /// At the message that ends the thread.
    End,
    /// After this number of instructions.
    Limit,
    /// At an address without an instruction, or at an instruction that the reference does not have.
    Lost(u32),
}

/// Walks `channel` alone from the first instruction, on its own copy of the registers.
pub fn walk(program: &Program, state: &mut State, channel: u32, limit: u64) -> Walked {
    state.mask = 1 << channel;
    let mut ip = 0u32;
    for _ in 0..limit {
        let Some(instruction) = program.instructions.get(&ip) else { return Walked::Lost(ip) };
        let next = ip + instruction.length();
        // ISA-022: distances are relative to the branch's own address.
        let mut jip = ip.wrapping_add_signed(instruction.jip);
        let mut uip = ip.wrapping_add_signed(instruction.uip);
        if instruction.register_target {
            // The register's distances are bytes, too; brc has both in one pair.
            let dword = |index| state.operand_bits(&at_dword(&instruction.src[0], index), 0) as u32;
            (jip, uip) = (ip.wrapping_add(dword(0)), ip.wrapping_add(dword(1)));
        }
        // ISA-175: jmpi has one predicate for the thread, that of its first channel.
        let of = if instruction.row.name == "jmpi" { u32::from(instruction.channel) } else { channel };
        let predicate = state.predicate(instruction, of);
        ip = match instruction.row.name {
            // ISA-178
            "send" if instruction.saturate => return Walked::End,
            "nop" | "sync" | "join" | "endif" => next,
            // ISA-171: true means that the channel jumps, forward and backward.
            "goto" | "halt" | "brc" if predicate => uip,
            // ISA-177: as goto, with one target.
            "jmpi" | "brd" if predicate => jip,
            // ISA-173: JIP is the instruction after the else, or the endif.
            "if" if !predicate => jip,
            "else" => jip,
            // ISA-174: a break leaves the loop, a cont takes part in the while.
            "while" if predicate => jip,
            "break" if predicate => uip + 16,
            "cont" if predicate => uip,
            "goto" | "halt" | "jmpi" | "brd" | "brc" | "if" | "while" | "break" | "cont" => next,
            // ISA-176: the destination receives the return address and the mask.
            "call" | "calla" => {
                if predicate {
                    // The target of calla is an address, relative to the instruction base.
                    let absolute = match instruction.register_target {
                        true => jip.wrapping_sub(ip),
                        false => instruction.jip as u32,
                    };
                    let location = state.destination(instruction.dst.place);
                    state.set_bytes(location, 4, u64::from(program.base + next));
                    if instruction.row.name == "calla" { absolute.wrapping_sub(program.base) } else { jip }
                } else {
                    next
                }
            }
            "ret" => (state.operand_bits(&instruction.src[0], 0) as u32).wrapping_sub(program.base),
            _ => {
                if state.execute(instruction).is_none() {
                    return Walked::Lost(ip);
                }
                next
            }
        };
    }
    Walked::Limit
}
