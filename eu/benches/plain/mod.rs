// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The yardstick of the benches: operations on lanes as a plain loop, with region, type and operation looked at for each lane. It
//! has the operations of the benches; all others, and branches and messages, are executed by the library.

use arctic_eu::exec::thread::{FLAGS, REG};
use arctic_eu::exec::{self, Budget, Environment, Program, Stop, Thread, Way};
use arctic_eu::isa::table::{Execute, LaneOp};
use arctic_eu::isa::{Condition, Instruction, Place, Source, Type};

/// Executes this number of instructions.
pub fn run(code: &Program, thread: &mut Thread, environment: &mut Environment<'_>, budget: u64) -> Stop {
    let end = thread.executed + budget;
    while thread.executed < end {
        let index = code.uops[thread.next as usize].instruction;
        let instruction = code.instructions[index as usize].instruction.as_ref();
        if !thread.plain_floats || !instruction.is_some_and(|from| lanes(from, thread)) {
            match exec::run(code, thread, environment, Budget::instructions(1), Way::Fast, &mut ()) {
                Stop::Budget => {}
                stop => return stop,
            }
        } else {
            thread.executed += 1;
            thread.next += 1;
        }
    }
    Stop::Budget
}

/// Executes an operation on lanes; false if it is not one of those that the loop has.
fn lanes(from: &Instruction, thread: &mut Thread) -> bool {
    let Execute::Lane(operation) = from.row.execute else { return false };
    let sources = from.sources();
    let dword = |ty| matches!(ty, Type::F | Type::D | Type::Ud);
    let compares = operation == LaneOp::Cmp;
    let has = matches!(operation, LaneOp::Mov | LaneOp::Add | LaneOp::Mul | LaneOp::Mad | LaneOp::And | LaneOp::Cmp);
    let plain = !from.saturate && !from.acc_write && from.predicate == 0 && (from.modifier == 0 || has);
    let same = from.src[..sources].iter().all(|source| {
        let modified = matches!(source, Source::Reg { abs: true, .. } | Source::Reg { negate: true, .. });
        let known = matches!(source.ty(), Type::F | Type::D | Type::Ud | Type::W | Type::Uw);
        known && !modified && source.ty().is_float() == from.dst.ty.is_float()
    });
    let places = std::iter::once(from.dst.place).chain(from.src[..sources].iter().filter_map(|source| match source {
        Source::Reg { place, .. } => Some(*place),
        Source::Imm { .. } => None,
    }));
    let general = places.into_iter().all(|place| place.is_null() || matches!(place, Place::Grf { .. }));
    if !has || !plain || !same || !general || !dword(from.dst.ty) {
        return false;
    }
    let mut flags = 0;
    let condition = Condition::from_code(from.modifier);
    let mask = if from.no_mask { !0 } else { thread.mask >> from.channel };
    for lane in 0..u32::from(from.size) {
        let mut values = [0; 3];
        for (value, source) in values.iter_mut().zip(&from.src[..sources]) {
            *value = element(thread, source, lane);
        }
        let [a, b, c] = values;
        let result = if from.dst.ty == Type::F { float(operation, a, b, c) } else { integer(operation, a, b, c) };
        if let Some(condition) = condition {
            let order = match (compares, from.dst.ty) {
                (true, Type::F) => f32::from_bits(a).partial_cmp(&f32::from_bits(b)),
                (true, Type::D) => Some(a.cast_signed().cmp(&b.cast_signed())),
                (true, _) => Some(a.cmp(&b)),
                (false, Type::F) => f32::from_bits(result).partial_cmp(&0.0),
                (false, Type::D) => Some(result.cast_signed().cmp(&0)),
                (false, _) => Some(result.cmp(&0)),
            };
            flags |= u32::from(condition.holds(order)) << lane;
        }
        if let (Place::Grf { reg, byte }, true) = (from.dst.place, mask >> lane & 1 != 0) {
            let stride = u32::from(from.dst.stride) * from.dst.ty.size();
            thread.set_u32(usize::from(reg) * REG + usize::from(byte) + (lane * stride) as usize, result);
        }
    }
    if condition.is_some() {
        let all = u32::MAX >> (32 - u32::from(from.size));
        let shift = u32::from(from.flag & 1) * 16 + u32::from(from.channel);
        let at = FLAGS + usize::from(from.flag >> 1) * 4;
        let enabled = (mask & all).rotate_left(shift);
        thread.set_u32(at, thread.u32(at) & !enabled | flags.rotate_left(shift) & enabled);
    }
    true
}

/// An element of a source as 32 bits.
fn element(thread: &Thread, source: &Source, lane: u32) -> u32 {
    let (place, region, ty) = match *source {
        Source::Imm { value, ty } => return widened(value as u32, ty),
        Source::Reg { place, region, ty, .. } => (place, region, ty),
    };
    let Place::Grf { reg, byte } = place else { return 0 };
    let width = u32::from(region.width.max(1));
    let (row, column) = (lane / width, lane % width);
    let elements = row * u32::from(region.vstride.unwrap_or(0)) + column * u32::from(region.hstride);
    let at = usize::from(reg) * REG + usize::from(byte) + (elements * ty.size()) as usize;
    widened(if ty.size() == 4 { thread.u32(at) } else { thread.u16(at).into() }, ty)
}

fn widened(value: u32, ty: Type) -> u32 {
    match ty {
        Type::W => i32::from((value as u16).cast_signed()).cast_unsigned(),
        Type::Uw => value & 0xffff,
        _ => value,
    }
}

fn float(operation: LaneOp, a: u32, b: u32, c: u32) -> u32 {
    let [a, b, c] = [a, b, c].map(f32::from_bits);
    match operation {
        LaneOp::Add => a + b,
        LaneOp::Mul => a * b,
        LaneOp::Mad => b.mul_add(c, a),
        _ => a,
    }
    .to_bits()
}

fn integer(operation: LaneOp, a: u32, b: u32, c: u32) -> u32 {
    match operation {
        LaneOp::Add => a.wrapping_add(b),
        LaneOp::Mul => a.wrapping_mul(b),
        LaneOp::Mad => a.wrapping_add(b.wrapping_mul(c)),
        LaneOp::And => a & b,
        _ => a,
    }
}
