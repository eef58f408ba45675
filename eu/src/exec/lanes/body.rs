// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the functions of [`super`] have in common: sources are read, the operation is applied to all lanes, and enabled lanes
//! are written with their flags.

use super::wide::product;
use super::{Op, Operation, f};
use crate::exec::condition::conditions;
use crate::exec::operand::{Fetch, Input, Store};
use crate::exec::thread::{ACC, ACC_HIGH, FILE_BYTES, Thread};
use crate::exec::uop::Uop;
use crate::float::widened_half;
use crate::isa::Type;

#[inline(always)]
pub(super) fn fetch<const LANES: usize>(thread: &Thread, input: &Input) -> [u32; LANES] {
    let mut lanes = match input.fetch {
        Fetch::Packed => packed(thread, input.base as usize),
        Fetch::Constant => [input.bits as u32; LANES],
        Fetch::Scalar => [thread.u32(input.base as usize); LANES],
        Fetch::Strided => strided(thread, input),
        Fetch::Gather => gather(thread, input),
    };
    if input.modified {
        modify(&mut lanes, input);
    }
    lanes
}

/// Applies the modifier of a source.
#[inline(always)]
fn modify<const LANES: usize>(lanes: &mut [u32; LANES], input: &Input) {
    for lane in lanes {
        let value = (*lane & input.and ^ input.xor).wrapping_add(input.add) << input.unused;
        *lane = (value.cast_signed() >> input.unused).cast_unsigned();
    }
}

#[inline(always)]
pub(super) fn packed<const LANES: usize>(thread: &Thread, at: usize) -> [u32; LANES] {
    let mut raw = [[0; 4]; LANES];
    if let Some(bytes) = thread.file.get(at..at + LANES * 4) {
        // Copied whole, so that the loads are as wide as the stores before them.
        raw.copy_from_slice(bytes.as_chunks::<4>().0);
    }
    raw.map(u32::from_le_bytes)
}

/// Elements at regular distances, widened by their type. Lanes beyond the last one may be 0.
#[inline(never)]
fn strided<const LANES: usize>(thread: &Thread, input: &Input) -> [u32; LANES] {
    let at = |lane: usize| {
        let (row, column) = (lane >> input.row, lane & ((1 << input.row) - 1));
        input.base as usize + row * usize::from(input.vstride) + column * usize::from(input.hstride)
    };
    let mut lanes = [0; LANES];
    let step = if input.row == 0 { input.vstride } else { input.hstride };
    let is_even = input.row == 0 || input.vstride == input.hstride << input.row;
    match input.ty.size() {
        2 if is_even && step == 0 => lanes = [thread.u16(at(0)).into(); LANES],
        2 if is_even && step == 2 && at(LANES) <= FILE_BYTES => {
            let words = thread.file.get(at(0)..at(LANES)).unwrap_or_default();
            for (lane, word) in lanes.iter_mut().zip(words.as_chunks::<2>().0) {
                *lane = u16::from_le_bytes(*word).into();
            }
        }
        4 => lanes.iter_mut().enumerate().for_each(|(index, lane)| *lane = thread.u32(at(index))),
        2 => lanes.iter_mut().enumerate().for_each(|(index, lane)| *lane = thread.u16(at(index)).into()),
        _ => lanes.iter_mut().enumerate().for_each(|(index, lane)| {
            *lane = thread.file.get(at(index)).copied().unwrap_or(0).into();
        }),
    }
    match input.ty {
        Type::B => lanes.map(|lane| (lane as u8).cast_signed() as u32),
        Type::W => lanes.map(|lane| (lane as u16).cast_signed() as u32),
        Type::Hf => lanes.map(widened_half),
        Type::Bf => lanes.map(|lane| lane << 16),
        _ => lanes,
    }
}

#[inline(never)]
fn gather<const LANES: usize>(thread: &Thread, input: &Input) -> [u32; LANES] {
    let mut lanes = [0; LANES];
    for (index, lane) in (0..).zip(&mut lanes) {
        *lane = input.widened(thread, index);
    }
    lanes
}

/// Writes packed lanes of 32 bits, those that are enabled.
#[inline(always)]
pub(super) fn store<const LANES: usize>(thread: &mut Thread, at: usize, lanes: &[u32; LANES], enabled: u32) {
    let mut chosen = *lanes;
    if enabled != u32::MAX >> (32 - LANES) {
        let keep = packed::<LANES>(thread, at);
        for index in 0..LANES {
            chosen[index] = if enabled & 1 << index != 0 { lanes[index] } else { keep[index] };
        }
    }
    if let Some(bytes) = thread.file.get_mut(at..at + LANES * 4) {
        bytes.as_chunks_mut::<4>().0.copy_from_slice(&chosen.map(u32::to_le_bytes));
    }
}

/// Executes an operation on all lanes.
#[inline(always)]
pub fn body<O: Op, const LANES: usize>(thread: &mut Thread, uop: &Uop) {
    if let Some(kind) = O::WIDE {
        return product::<LANES>(thread, uop, kind);
    }
    let (channels, chosen) =
        if O::SELECTS { (uop.channels(thread), uop.predicate_bits(thread)) } else { (uop.enabled(thread), 0) };
    let a = fetch::<LANES>(thread, &uop.src[0]);
    let b = if O::SOURCES > 1 { fetch::<LANES>(thread, &uop.src[1]) } else { [0; LANES] };
    let c = if O::SOURCES > 2 { fetch::<LANES>(thread, &uop.src[2]) } else { [0; LANES] };
    let mut result = [0; LANES];
    if O::SELECTS {
        for index in 0..LANES {
            result[index] = if chosen & 1 << index != 0 { a[index] } else { b[index] };
        }
    } else {
        for index in 0..LANES {
            result[index] = O::lane(uop, a[index], b[index], c[index]);
        }
    }
    if uop.saturate {
        // ISA-068: NaN gives 0.
        for lane in &mut result {
            let value = f(*lane);
            *lane = if value > 0.0 { value.min(1.0) } else { 0.0 }.to_bits();
        }
    }
    if O::COMPARES {
        let mut bits = 0;
        for (index, lane) in result.iter().enumerate() {
            bits |= *lane & 1 << index;
        }
        uop.write_flag(thread, bits, channels);
    } else if uop.condition.is_some() {
        let bits = conditions(uop, &result);
        uop.write_flag(thread, bits, channels);
    }
    // Before an address register of the destination can change.
    let implicit = if uop.acc_write { uop.dst.resolved(thread).accumulator_offset() } else { 0 };
    match uop.dst.store {
        Store::Packed => store(thread, uop.dst.base as usize, &result, channels),
        Store::Null => {}
        Store::Scatter => uop.dst.scatter(thread, &result, channels, uop.float),
    }
    if uop.accumulates {
        store_high::<O, LANES>(thread, uop, [&a, &b, &c], &result, channels);
    }
    if uop.acc_write {
        let mut accumulator = [0; LANES];
        for index in 0..LANES {
            accumulator[index] = O::accumulator(uop, a[index], b[index], result[index]);
        }
        store(thread, ACC + implicit, &accumulator, channels);
        if matches!(uop.dst.ty, Type::D | Type::Ud) {
            // It is a carry, or a borrow.
            store(thread, ACC_HIGH + implicit, &[0; LANES], channels);
        }
    }
}

/// Writes bits 63:32 of dwords in accumulators, which the destination is. ISA-082.
#[inline(always)]
fn store_high<O: Op, const LANES: usize>(
    thread: &mut Thread,
    uop: &Uop,
    [a, b, c]: [&[u32; LANES]; 3],
    result: &[u32; LANES],
    enabled: u32,
) {
    let Some(at) = uop.dst.accumulator() else {
        return debug_assert!(false, "the destination is an accumulator");
    };
    let signs = [0, 1, 2].map(|index| if uop.src[index].ty.is_signed() { !0 } else { 0 });
    let mut high = [0; LANES];
    for index in 0..LANES {
        high[index] = O::high(uop, signs, [a[index], b[index], c[index]], result[index]);
    }
    store(thread, ACC_HIGH + at, &high, enabled);
}

/// Bit of a shape: a source has a modifier.
pub const MODIFIED: u8 = 0x80;
/// Bit of a shape: the destination is an accumulator with dwords.
pub const ACCUMULATES: u8 = 0x40;

/// The shape of an instruction's operands, if it is among those of [`quick_body`]: bit `n` is set if source `n` is one value
/// for all lanes, and [`MODIFIED`] if a source has a modifier.
pub fn shape(uop: &Uop, operation: Operation) -> Option<u8> {
    // The condition of a comparison is the operation.
    let is_unconditional = uop.condition.is_none() || operation.compares();
    let plain = !operation.is_wide()
        && uop.predicate <= 1
        && is_unconditional
        && !uop.saturate
        && !uop.acc_write
        && uop.dst.store != Store::Scatter;
    let mut splats = if uop.accumulates { ACCUMULATES } else { 0 };
    for (index, input) in uop.src[..operation.sources()].iter().enumerate() {
        if input.modified {
            splats |= MODIFIED;
        }
        match input.fetch {
            Fetch::Packed => {}
            Fetch::Constant | Fetch::Scalar => splats |= 1 << index,
            Fetch::Strided | Fetch::Gather => return None,
        }
    }
    plain.then_some(splats)
}

/// The body of an operation on packed or uniform operands, which most instructions have. Bit `n` of `SPLATS` is set if source `n`
/// is uniform; with modifiers or an accumulator, which few have, that is looked up.
#[inline(always)]
pub fn quick_body<O: Op, const LANES: usize, const SPLATS: u8, const MODIFIED: bool, const ACCUMULATES: bool>(
    thread: &mut Thread,
    uop: &Uop,
) {
    if O::SELECTS {
        return body::<O, LANES>(thread, uop);
    }
    let source = |index: usize| {
        let input = &uop.src[index];
        let is_packed = if MODIFIED || ACCUMULATES { input.fetch == Fetch::Packed } else { SPLATS >> index & 1 == 0 };
        if is_packed {
            packed::<LANES>(thread, input.base as usize)
        } else if input.fetch == Fetch::Constant {
            [input.bits as u32; LANES]
        } else {
            [thread.u32(input.base as usize); LANES]
        }
    };
    let mut a = source(0);
    let mut b = if O::SOURCES > 1 { source(1) } else { [0; LANES] };
    let mut c = if O::SOURCES > 2 { source(2) } else { [0; LANES] };
    if MODIFIED {
        // The modifier of a source without one changes nothing.
        modify(&mut a, &uop.src[0]);
        modify(&mut b, &uop.src[1]);
        modify(&mut c, &uop.src[2]);
    }
    let mut result = [0; LANES];
    for index in 0..LANES {
        result[index] = O::lane(uop, a[index], b[index], c[index]);
    }
    let enabled = uop.enabled_of::<LANES>(thread);
    if O::COMPARES {
        let mut bits = 0;
        for (index, lane) in result.iter().enumerate() {
            bits |= *lane & 1 << index;
        }
        uop.write_flag(thread, bits, enabled);
    }
    if ACCUMULATES {
        store_high::<O, LANES>(thread, uop, [&a, &b, &c], &result, enabled);
    }
    if uop.dst.store == Store::Packed {
        store(thread, uop.dst.base as usize, &result, enabled);
    }
}
