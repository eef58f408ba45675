// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Choice of the function of an operation on lanes, by operation and types; the general way for the rest.

use super::fault::FaultKind;
use super::lanes::{Host, Operation, shape};
use super::operand::{Fetch, Input, Store};
use super::thread::ACCUMULATORS;
use super::uop::{Kind, Uop};
use crate::isa::table::LaneOp;
use crate::isa::{Condition, Instruction, Place, Source, Type};

/// How the value of a source extends to more than 32 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// Not negative: unsigned types without negation.
    Unsigned,
    /// Fits in a signed dword.
    Signed,
    /// Unsigned types, of fewer than 32 bits or small: fits in both.
    Both,
    /// Neither: a negated unsigned dword, for instance.
    Neither,
}

fn sign(input: &Input) -> Sign {
    let plain = !input.negate && !input.abs;
    match input.ty {
        Type::Ub | Type::Uw | Type::Uv => {
            if plain {
                Sign::Both
            } else {
                Sign::Signed
            }
        }
        Type::B | Type::W | Type::V => Sign::Signed,
        // ISA-058: a negated dword is a dword.
        Type::D if input.fetch == Fetch::Constant && input.bits >> 31 & 1 == 0 && plain => Sign::Both,
        Type::D => Sign::Signed,
        Type::Ud if plain => {
            if input.fetch == Fetch::Constant && input.bits >> 31 & 1 == 0 {
                Sign::Both
            } else {
                Sign::Unsigned
            }
        }
        _ => Sign::Neither,
    }
}

/// True, false for a comparison of signed or unsigned dwords; `None` if the values fit in neither.
fn signedness(a: &Input, b: &Input) -> Option<bool> {
    match (sign(a), sign(b)) {
        (Sign::Neither, _) | (_, Sign::Neither) | (Sign::Unsigned, Sign::Signed) | (Sign::Signed, Sign::Unsigned) => {
            None
        }
        (Sign::Unsigned, _) | (_, Sign::Unsigned) => Some(false),
        _ => Some(true),
    }
}

/// Sets the kind of a uop for an operation on lanes.
pub fn classify(from: &Instruction, lane: LaneOp, uop: &mut Uop, host: Host) -> Result<(), FaultKind> {
    let sources = from.sources();
    let types: Vec<Type> = from.src[..sources].iter().map(|source| source.ty()).collect();
    // ISA-041: the hardware has no 64-bit types; copies of bits do no harm.
    if types.iter().chain([&from.dst.ty]).any(|ty| ty.size() == 8) && !is_wide_copy(from, lane) {
        return Err(FaultKind::Types);
    }
    if lane == LaneOp::Math && !(1..=7).contains(&from.modifier) {
        return Err(FaultKind::Unsupported);
    }
    let condition = if from.row.has_condition() { Condition::from_code(from.modifier) } else { None };
    if from.row.has_condition() && condition.is_none() && from.modifier != 0 {
        return Err(FaultKind::Unsupported);
    }
    uop.saturate = from.saturate;
    uop.acc_write = from.acc_write;
    // sel and csel read the condition, and do not write the flag. ISA-064.
    let reads_condition = matches!(lane, LaneOp::Sel | LaneOp::Csel);
    uop.condition = if reads_condition { None } else { condition };
    if from.src[..sources].iter().any(|source| matches!(source, Source::Imm { ty: Type::Ub | Type::B, .. })) {
        return Err(FaultKind::Types);
    }
    let general = uop.clone();
    // Registers that change by themselves, and those with an effect.
    let special = uop.writes_state || from.src[..sources].iter().any(is_live);
    if special {
        uop.kind = Kind::General;
    } else if let Some((operation, float_mode)) = choose(from, lane, sources, &types, uop) {
        let select = |operation| host.select(operation, from.size, shape(uop, operation));
        let function = select(operation);
        // Halves are rounded when they are written, to the nearest.
        uop.toward_zero = (float_mode && from.dst.ty != Type::Hf).then(|| select(operation.toward_zero()));
        uop.kind = if float_mode { Kind::Floats(function) } else { Kind::Lanes(function) };
    } else {
        *uop = general;
        uop.kind = Kind::General;
    }
    Ok(())
}

/// True for a copy of 64-bit integers. ISA-041, ISA-046.
fn is_wide_copy(from: &Instruction, lane: LaneOp) -> bool {
    let plain = matches!(from.src[0], Source::Reg { abs: false, negate: false, .. } | Source::Imm { .. });
    let wide = matches!(from.dst.ty, Type::Q | Type::Uq) && from.src[0].ty() == from.dst.ty;
    lane == LaneOp::Mov && wide && plain && !from.saturate && from.modifier == 0 && !from.acc_write
}

/// True for registers that change by themselves: ce and tm0.
fn is_live(source: &Source) -> bool {
    matches!(source, Source::Reg { place: Place::Arf { reg: 0x40 | 0xc0, .. }, .. })
}

/// The operation, and whether it depends on the floating-point mode.
fn choose(
    from: &Instruction,
    lane: LaneOp,
    sources: usize,
    types: &[Type],
    uop: &mut Uop,
) -> Option<(Operation, bool)> {
    let dst = from.dst.ty;
    let float = types.iter().any(|ty| ty.is_float());
    uop.accumulates = matches!(dst, Type::D | Type::Ud) && uop.dst.accumulator().is_some();
    let narrow = types.iter().chain([&dst]).all(|ty| ty.size() <= 4);
    if !narrow || writes_dwords_to_accumulators(from, uop) && !keeps_high_dwords(from, lane, uop) {
        return None;
    }
    let plain = from.src[..sources]
        .iter()
        .all(|source| matches!(source, Source::Reg { abs: false, negate: false, .. } | Source::Imm { .. }));
    // Copies of bits. ISA-046.
    let copies = lane == LaneOp::Mov || lane == LaneOp::Sel && from.modifier == 0;
    // Otherwise the copy of bits is that of an integer.
    let copies = copies && !uop.accumulates;
    if copies && !from.saturate && plain && types.iter().all(|ty| *ty == dst) && from.modifier == 0 && !from.acc_write {
        let bits = match dst.size() {
            1 => Type::Ub,
            2 => Type::Uw,
            _ => Type::Ud,
        };
        uop.dst.ty = bits;
        for input in &mut uop.src[..sources] {
            input.ty = bits;
        }
        return Some((if lane == LaneOp::Mov { Operation::Copy } else { Operation::Select }, false));
    }
    if float { floats(from, lane, sources, types, uop) } else { integers(from, lane, sources, types, uop) }
}

/// True if elements of accumulators are written that have more bits than their registers show. ISA-082.
fn writes_dwords_to_accumulators(from: &Instruction, uop: &Uop) -> bool {
    matches!(from.dst.ty, Type::D | Type::Ud) && (from.acc_write || uop.dst.accumulator().is_some())
}

/// True if the functions on lanes write all bits of these elements.
fn keeps_high_dwords(from: &Instruction, lane: LaneOp, uop: &Uop) -> bool {
    match (lane, uop.dst.accumulator()) {
        (_, Some(at)) => {
            let lanes = usize::from(from.size).next_power_of_two().max(8);
            let fits = !from.acc_write && uop.dst.store == Store::Packed && at + lanes * 4 <= ACCUMULATORS;
            fits && has_high_dwords(from, lane)
        }
        (LaneOp::Addc | LaneOp::Subb | LaneOp::Mach, None) => true,
        _ => false,
    }
}

/// True for operations with functions on lanes that have bits 63:32 of the result, for these types and modifiers.
fn has_high_dwords(from: &Instruction, lane: LaneOp) -> bool {
    let sources = &from.src[..from.sources()];
    let has = |source: &Source, negated: bool| match source {
        // ISA-058: a negated dword is a dword.
        Source::Reg { ty, abs: false, negate, .. } => {
            let is_integer = matches!(ty, Type::Ub | Type::B | Type::Uw | Type::W | Type::Ud | Type::D);
            is_integer && (!negate || negated || *ty == Type::D)
        }
        Source::Imm { ty, .. } => matches!(ty, Type::Uw | Type::W | Type::Ud | Type::D),
        Source::Reg { .. } => false,
    };
    match lane {
        LaneOp::And | LaneOp::Or | LaneOp::Xor | LaneOp::Not => sources.iter().all(|source| has(source, true)),
        LaneOp::Mov
        | LaneOp::Add
        | LaneOp::Add3
        | LaneOp::Mad
        | LaneOp::Mul
        | LaneOp::Shl
        | LaneOp::Shr
        | LaneOp::Asr
        | LaneOp::Rol
        | LaneOp::Ror
        | LaneOp::Bfn
        | LaneOp::Bfe
        | LaneOp::Bfi1
        | LaneOp::Bfi2
        | LaneOp::Bfrev
        | LaneOp::Cbit
        | LaneOp::Lzd
        | LaneOp::Fbl
        | LaneOp::Fbh => sources.iter().all(|source| has(source, false)),
        // Minimum and maximum.
        LaneOp::Sel => from.modifier != 0 && sources.iter().all(|source| has(source, false)),
        _ => false,
    }
}

fn floats(
    from: &Instruction,
    lane: LaneOp,
    sources: usize,
    types: &[Type],
    uop: &mut Uop,
) -> Option<(Operation, bool)> {
    use Operation as O;
    let dst = from.dst.ty;
    let all_float = types.iter().all(|ty| ty.is_float());
    let raw = !from.saturate
        && from.src[0].ty() == dst
        && matches!(from.src[0], Source::Reg { abs: false, negate: false, .. } | Source::Imm { .. });
    let halves = types.iter().all(|ty| *ty == Type::Hf);
    // The overflow condition is known to the general way only.
    if !all_float || from.row.has_condition() && from.modifier == Condition::Overflow as u8 {
        return None;
    }
    // The condition is that of a half, and the functions have that of the float that is rounded to it.
    let gives_halves = halves && dst == Type::Hf;
    if gives_halves && from.modifier != 0 && lane != LaneOp::Cmp && lane != LaneOp::Math {
        return None;
    }
    if dst == Type::Bf || types.contains(&Type::Bf) || from.acc_write && dst != Type::F {
        return None;
    }
    for (input, ty) in uop.src[..sources].iter_mut().zip(types) {
        if !input.set_modifier(true, false) {
            return None;
        }
        match (input.fetch, ty) {
            (Fetch::Constant, Type::Hf) => {
                let value = crate::float::f16_to_f32(input.bits as u16);
                input.bits = u64::from(value.to_bits());
            }
            (_, Type::F | Type::Hf | Type::Vf) => {}
            _ => return None,
        }
    }
    let to_float = dst == Type::F || dst == Type::Hf;
    uop.float = true;
    let condition = Condition::from_code(from.modifier);
    let operation = match lane {
        // ISA-046: without modifiers on one type it is raw.
        LaneOp::Mov if raw => O::Copy,
        LaneOp::Mov if to_float => O::FloatCopy,
        LaneOp::Mov if !from.saturate && from.modifier == 0 && from.src[0].ty() == Type::F => {
            uop.float = false;
            match dst {
                Type::D => O::ToSigned,
                Type::Ud => O::ToUnsigned,
                _ => return None,
            }
        }
        LaneOp::Add if to_float => O::FloatAdd,
        LaneOp::Mul if to_float => O::FloatMul,
        LaneOp::Mad if gives_halves => O::HalfMad,
        LaneOp::Mad if to_float => O::FloatMad,
        LaneOp::Frc if to_float => O::FloatFrc,
        LaneOp::Rndu if to_float => O::FloatCeil,
        LaneOp::Rndd if to_float => O::FloatFloor,
        LaneOp::Rnde if to_float => O::FloatEven,
        LaneOp::Rndz if to_float => O::FloatTrunc,
        LaneOp::Sel if to_float => match condition {
            Some(Condition::Ge) => O::FloatMax,
            Some(Condition::Lt) => O::FloatMin,
            _ => return None,
        },
        LaneOp::Csel if to_float => match condition {
            Some(Condition::Eq) => O::FloatCselEq,
            Some(Condition::Ne) => O::FloatCselNe,
            Some(Condition::Gt) => O::FloatCselGt,
            Some(Condition::Ge) => O::FloatCselGe,
            Some(Condition::Lt) => O::FloatCselLt,
            Some(Condition::Le) => O::FloatCselLe,
            _ => return None,
        },
        LaneOp::Math if to_float => match from.modifier {
            1 => O::MathInv,
            2 => O::MathLog,
            3 => O::MathExp,
            4 => O::MathSqrt,
            5 => O::MathRsqrt,
            6 => O::MathSin,
            7 => O::MathCos,
            _ => return None,
        },
        LaneOp::Cmp => {
            // The result is all ones: bits, not a number.
            uop.float = false;
            match condition {
                Some(Condition::Eq) => O::FloatEq,
                Some(Condition::Ne) => O::FloatNe,
                Some(Condition::Gt) => O::FloatGt,
                Some(Condition::Ge) => O::FloatGe,
                Some(Condition::Lt) => O::FloatLt,
                Some(Condition::Le) => O::FloatLe,
                Some(Condition::Unordered) => O::FloatUn,
                _ => return None,
            }
        }
        _ => return None,
    };
    Some((operation, true))
}

fn integers(
    from: &Instruction,
    lane: LaneOp,
    sources: usize,
    types: &[Type],
    uop: &mut Uop,
) -> Option<(Operation, bool)> {
    use Operation as O;
    let dst = from.dst.ty;
    let [a, b, c] = uop.src;
    let logic = from.row.is_logic();
    for (input, ty) in uop.src[..sources].iter_mut().zip(types) {
        if !input.set_modifier(false, logic) {
            return None;
        }
        if input.fetch == Fetch::Constant {
            input.bits = match ty {
                Type::W => input.bits as i16 as u64,
                Type::B => input.bits as i8 as u64,
                _ => input.bits,
            };
        }
    }
    if from.saturate || from.acc_write && dst.size() != 4 {
        return None;
    }
    if dst.is_float() {
        // int to float.
        if lane != LaneOp::Mov || dst != Type::F || from.modifier != 0 {
            return None;
        }
        let operation = match sign(&a) {
            Sign::Signed | Sign::Both => O::FromSigned,
            Sign::Unsigned => O::FromUnsigned,
            Sign::Neither => return None,
        };
        return Some((operation, true));
    }
    let condition = Condition::from_code(from.modifier);
    let compares = matches!(lane, LaneOp::Cmp | LaneOp::Sel | LaneOp::Csel | LaneOp::Cmpn);
    if !compares && condition.is_some_and(|condition| !is_condition_of_integer(condition)) {
        return None;
    }
    let operation = match lane {
        LaneOp::Mul if writes_dwords_to_accumulators(from, uop) => return product(O::MulWide, &a, &b),
        LaneOp::Mov => O::Copy,
        LaneOp::Add => O::Add,
        LaneOp::Add3 => O::Add3,
        LaneOp::Mul => O::Mul,
        LaneOp::Mad => O::Mad,
        LaneOp::And => O::And,
        LaneOp::Or => O::Or,
        LaneOp::Xor => O::Xor,
        LaneOp::Not => O::Not,
        LaneOp::Shl if a.ty.size() <= 4 => O::Shl,
        LaneOp::Shr => O::Shr,
        LaneOp::Asr => match sign(&a) {
            Sign::Unsigned => O::Shr,
            Sign::Signed | Sign::Both => O::Asr,
            Sign::Neither => return None,
        },
        LaneOp::Ror if types[0] == Type::Ud => O::Ror,
        LaneOp::Rol if types[0] == Type::Ud => O::Rol,
        LaneOp::Bfn => O::Bfn,
        LaneOp::Bfrev => O::Bfrev,
        LaneOp::Bfe => {
            if c.ty.is_signed() {
                O::BfeSigned
            } else {
                O::Bfe
            }
        }
        LaneOp::Bfi1 => O::Bfi1,
        LaneOp::Bfi2 => O::Bfi2,
        LaneOp::Cbit => O::Cbit,
        LaneOp::Lzd => O::Lzd,
        LaneOp::Fbl => O::Fbl,
        LaneOp::Fbh => {
            if a.ty.is_signed() {
                O::FbhSigned
            } else {
                O::Fbh
            }
        }
        LaneOp::Addc if types == [Type::Ud; 2] && !a.negate && !b.negate => O::Addc,
        LaneOp::Subb if types == [Type::Ud; 2] && !a.negate && !b.negate => O::Subb,
        LaneOp::Mach if from.acc_write => return product(O::MachHigh, &a, &b),
        LaneOp::Mach => return product(O::MachLow, &a, &b),
        LaneOp::Dp4a => match (b.ty.is_signed(), c.ty.is_signed()) {
            (false, false) => O::Dp4aUnsigned,
            (true, true) => O::Dp4aSigned,
            (true, false) => O::Dp4aLeft,
            (false, true) => O::Dp4aRight,
        },
        LaneOp::Cmp => {
            let signed = signedness(&a, &b)?;
            match (condition, signed) {
                (Some(Condition::Eq), _) => O::Eq,
                (Some(Condition::Ne), _) => O::Ne,
                (Some(Condition::Gt), false) => O::Gt,
                (Some(Condition::Ge), false) => O::Ge,
                (Some(Condition::Lt), false) => O::Lt,
                (Some(Condition::Le), false) => O::Le,
                (Some(Condition::Gt), true) => O::GtSigned,
                (Some(Condition::Ge), true) => O::GeSigned,
                (Some(Condition::Lt), true) => O::LtSigned,
                (Some(Condition::Le), true) => O::LeSigned,
                _ => return None,
            }
        }
        LaneOp::Sel if condition.is_none() => O::Select,
        LaneOp::Sel => {
            let signed = signedness(&a, &b)?;
            match (condition, signed) {
                (Some(Condition::Ge), false) => O::Max,
                (Some(Condition::Ge), true) => O::MaxSigned,
                (Some(Condition::Lt), false) => O::Min,
                (Some(Condition::Lt), true) => O::MinSigned,
                _ => return None,
            }
        }
        _ => return None,
    };
    Some((operation, false))
}

/// True for a condition of an integer's low bits. ISA-064. An overflow is known to the general way only.
fn is_condition_of_integer(condition: Condition) -> bool {
    !matches!(condition, Condition::Overflow | Condition::Unordered)
}

/// ISA-120: a step of a product of two dwords without modifiers, which can make a source one of more bits.
fn product(kind: Operation, a: &Input, b: &Input) -> Option<(Operation, bool)> {
    [a, b].iter().all(|input| !input.negate && !input.abs).then_some((kind, false))
}
