// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Products of two dwords in two steps: `mul` leaves the product of a dword and a word in accumulators, `mach` adds that of the
//! other word. ISA-120.

use super::body::{fetch, packed, store};
use crate::exec::condition::conditions;
use crate::exec::operand::Store;
use crate::exec::thread::{ACC, ACC_HIGH, Thread};
use crate::exec::uop::Uop;

/// A step of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// The destination is an accumulator, and takes the product.
    Product,
    /// `mach` without AccWrEn: the low dword of the sum.
    Low,
    /// `mach` with AccWrEn: the high dword of the sum, and all of it to the accumulator.
    High,
}

/// Executes a step. Accumulators of the instruction end within acc7.
#[inline(always)]
pub fn product<const LANES: usize>(thread: &mut Thread, uop: &Uop, kind: Wide) {
    let channels = uop.enabled(thread);
    let [first, second] = [0, 1].map(|index| {
        let lanes = fetch::<LANES>(thread, &uop.src[index]);
        let signed = uop.src[index].ty.is_signed();
        lanes.map(|lane| if signed { i64::from(lane.cast_signed()) } else { i64::from(lane) })
    });
    let at = match kind {
        Wide::Product => match uop.dst.accumulator() {
            Some(at) => at,
            None => return debug_assert!(false, "the destination is an accumulator"),
        },
        Wide::Low | Wide::High => uop.dst.resolved(thread).accumulator_offset(),
    };
    let mut wide = [0u64; LANES];
    if kind == Wide::Product {
        for index in 0..LANES {
            wide[index] = first[index].wrapping_mul(second[index]).cast_unsigned();
        }
    } else {
        let (low, high) = (packed::<LANES>(thread, ACC + at), packed::<LANES>(thread, ACC_HIGH + at));
        for index in 0..LANES {
            let sum = first[index].wrapping_mul(second[index] >> 16).cast_unsigned() << 16;
            wide[index] = (u64::from(high[index]) << 32 | u64::from(low[index])).wrapping_add(sum);
        }
    }
    let low = wide.map(|wide| wide as u32);
    let high = wide.map(|wide| (wide >> 32) as u32);
    let result = if kind == Wide::High { high } else { low };
    if uop.condition.is_some() {
        let bits = conditions(uop, &result);
        uop.write_flag(thread, bits, channels);
    }
    if kind != Wide::Product {
        match uop.dst.store {
            Store::Packed => store(thread, uop.dst.base as usize, &result, channels),
            Store::Null => {}
            Store::Scatter => uop.dst.scatter(thread, &result, channels, false),
        }
    }
    if kind != Wide::Low {
        store(thread, ACC + at, &low, channels);
        store(thread, ACC_HIGH + at, &high, channels);
    }
}
