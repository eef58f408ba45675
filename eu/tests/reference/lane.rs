// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! One lane of an instruction: its operands, and the choice of the function of its opcode.

use super::value::{Finish, Operand, Outcome, holds};
use super::{float, integer};

/// What an operation on a lane depends on.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    pub src: [Operand; 3],
    /// The element of acc0 of this lane. ISA-121.
    pub accumulator: Operand,
    /// Bits 63:32 of that element, if it is a dword.
    pub high: u32,
    /// The lane's predicate, for sel. ISA-066.
    pub predicate: bool,
    pub writes_accumulator: bool,
    /// Truth table of bfn.
    pub function: u8,
    pub finish: Finish,
}

/// Integers compared by their exact values, ISA-065.
fn integer_condition(lane: &Lane) -> bool {
    holds(lane.finish.condition, Some(lane.src[0].integer().cmp(&lane.src[1].integer())))
}

/// ISA-066 for integers.
fn integer_sel(lane: &Lane) -> Outcome {
    let first = if lane.finish.condition == 0 { lane.predicate } else { integer_condition(lane) };
    lane.finish.integer(lane.src[usize::from(!first)].integer())
}

/// ISA-067 for integers.
fn integer_csel(lane: &Lane) -> Outcome {
    let first = holds(lane.finish.condition, Some(lane.src[2].integer().cmp(&0)));
    lane.finish.integer(lane.src[usize::from(!first)].integer())
}

/// Result of a lane of the instruction with this mnemonic; `None` if this reference does not have it.
pub fn evaluate(name: &str, lane: &Lane) -> Option<Outcome> {
    let on_floats = float::applies(lane);
    Some(match (name, on_floats) {
        ("add", false) => integer::add(lane),
        ("add", true) => float::add(lane),
        ("mul", false) => integer::mul(lane),
        ("mul", true) => float::mul(lane),
        ("mad", false) => integer::mad(lane),
        ("mad", true) => float::mad(lane),
        ("mac", false) => integer::mac(lane),
        ("mac", true) => float::mac(lane),
        // ISA-123: the addresses of the lanes are those of a region; then it is a move.
        ("mov" | "movi", false) => integer::mov(lane),
        ("mov", true) => float::mov(lane),
        ("sel", false) => integer_sel(lane),
        ("sel", true) if lane.finish.condition == 0 => float::sel_predicated(lane),
        ("sel", true) => float::sel_condition(lane),
        ("csel", false) => integer_csel(lane),
        ("csel", true) => float::csel(lane),
        ("cmp" | "cmpn", false) => float::truth(lane, integer_condition(lane)),
        ("cmp", true) => float::cmp(lane),
        ("cmpn", true) => float::cmpn(lane),
        ("frc", true) => float::frc(lane),
        ("rndu", true) => float::rndu(lane),
        ("rndd", true) => float::rndd(lane),
        ("rnde", true) => float::rnde(lane),
        ("rndz", true) => float::rndz(lane),
        ("avg", false) => integer::avg(lane),
        ("add3", false) => integer::add3(lane),
        ("dp4a", false) => integer::dp4a(lane),
        ("mach", false) => integer::mach(lane),
        ("addc", false) => integer::addc(lane),
        ("subb", false) => integer::subb(lane),
        ("not", false) => integer::not(lane),
        ("and", false) => integer::and(lane),
        ("or", false) => integer::or(lane),
        ("xor", false) => integer::xor(lane),
        ("bfn", false) => integer::bfn(lane),
        ("shl", false) => integer::shl(lane),
        ("shr", false) => integer::shr(lane),
        ("asr", false) => integer::asr(lane),
        ("rol", false) => integer::rol(lane),
        ("ror", false) => integer::ror(lane),
        ("bfe", false) => integer::bfe(lane),
        ("bfi1", false) => integer::bfi1(lane),
        ("bfi2", false) => integer::bfi2(lane),
        ("bfrev", false) => integer::bfrev(lane),
        ("cbit", false) => integer::cbit(lane),
        ("lzd", false) => integer::lzd(lane),
        ("fbh", false) => integer::fbh(lane),
        ("fbl", false) => integer::fbl(lane),
        _ => return None,
    })
}
