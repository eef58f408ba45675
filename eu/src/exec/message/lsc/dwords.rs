// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A dword of each lane, which most messages move: consecutive ones by one access, from registers or to them; others by one
//! access for all lanes.

use super::super::Message;
use super::super::access::{read, read_lanes, write, write_lanes};
use super::super::operands::{MessageFault, Sent};
use super::{Action, Lsc};
use crate::exec::environment::Environment;
use crate::exec::memory::{Access, LaneSpans, Surface};
use crate::exec::thread::Thread;
use crate::exec::uop::Uop;

/// Lanes with consecutive addresses.
#[derive(Clone, Copy)]
struct Run {
    /// First lane.
    first: u32,
    /// Lanes from the first to the last one that is enabled, at least two.
    count: u32,
    /// Address of the first lane.
    start: u64,
}

impl Run {
    /// The run that all enabled lanes are; at least one lane is enabled.
    #[inline(always)]
    fn of<const LANES: usize>(lsc: &Lsc, src: u32, thread: &Thread, enabled: u32) -> Option<Run> {
        let first = enabled.trailing_zeros();
        let count = 32 - enabled.leading_zeros() - first;
        let all = u32::MAX >> (32 - LANES);
        let (start, is_run) = if lsc.address_size == 4 {
            let addresses = thread.dwords::<LANES>(src);
            // From the register, because an index that is not constant would put the array into memory.
            let start = thread.u32(((src + first * 4) & thread.grf_mask) as usize);
            let zero = start.wrapping_sub(first * 4);
            let differs = |index: usize| addresses[index] ^ zero.wrapping_add(index as u32 * 4);
            // Addresses of 32 bits do not wrap.
            let ends = start.checked_add(count * 4).is_some();
            (u64::from(start), ends && is_all_zero::<LANES>(differs, enabled, all))
        } else {
            let addresses = lsc.addresses::<LANES>(src, thread);
            let start = *addresses.get(first as usize)?;
            let zero = start.wrapping_sub(u64::from(first) * 4);
            let differs = |index: usize| u32::from(addresses[index] != zero.wrapping_add(index as u64 * 4));
            (start, is_all_zero::<LANES>(differs, enabled, all))
        };
        (is_run && count > 1).then_some(Run { first, count, start })
    }

    /// All lanes from the first to the last one are enabled.
    #[inline(always)]
    fn is_dense(self, enabled: u32) -> bool {
        let lanes = enabled >> self.first;
        lanes & lanes.wrapping_add(1) == 0
    }
}

/// True if `value` is 0 for each enabled lane.
#[inline(always)]
fn is_all_zero<const LANES: usize>(value: impl Fn(usize) -> u32, enabled: u32, all: u32) -> bool {
    let mut bits = 0;
    if enabled == all {
        for index in 0..LANES {
            bits |= value(index);
        }
    } else {
        // Without a branch for each lane.
        for index in 0..LANES {
            bits |= if enabled & 1 << index != 0 { value(index) } else { 0 };
        }
    }
    bits == 0
}

/// Address of the first lane, if those of the others are consecutive; addresses are in the registers from `src` on.
#[inline(always)]
fn start_of_all<const LANES: usize, const WIDE: bool>(src: u32, thread: &Thread) -> Option<u64> {
    if WIDE {
        let addresses = thread.qwords_within::<LANES>(src);
        let start = addresses[0];
        let mut differs = 0;
        for (index, address) in addresses.iter().enumerate() {
            differs |= address ^ start.wrapping_add(index as u64 * 4);
        }
        return (differs == 0).then_some(start);
    }
    let addresses = thread.dwords_within::<LANES>(src);
    let start = addresses[0];
    let mut differs = 0;
    for (index, address) in addresses.iter().enumerate() {
        differs |= address ^ start.wrapping_add(index as u32 * 4);
    }
    // Addresses of 32 bits do not wrap.
    (differs == 0 && start.checked_add(LANES as u32 * 4).is_some()).then_some(start.into())
}

/// Moves a dword of each lane, if all lanes are enabled and have consecutive addresses inside the surface, or none is enabled.
/// Returns false, without a change of registers, if not.
#[inline(always)]
pub fn consecutive_dwords<const LANES: usize, const STORE: bool, const WIDE: bool, const SLM: bool>(
    message: &Message,
    uop: &Uop,
    thread: &mut Thread,
    environment: &mut Environment<'_>,
) -> bool {
    let Some(lsc) = &message.lsc else { return false };
    let enabled = uop.enabled_of::<LANES>(thread);
    if enabled != u32::MAX >> (32 - LANES) {
        return enabled == 0;
    }
    let operands = &message.operands;
    let Some(start) = start_of_all::<LANES, WIDE>(operands.src0, thread) else { return false };
    let surface = lsc.surface(operands, thread);
    let access = if STORE {
        let Some(data) = operands.src1 else { return false };
        write(SLM, surface, start, 4, thread.bytes_within(data, LANES * 4), environment)
    } else {
        let Some(data) = operands.dst else { return false };
        read(SLM, surface, start, 4, thread.bytes_within_mut(data, LANES * 4), environment)
    };
    matches!(access, Ok(Access::Inside))
}

/// Moves a dword of each lane, where [`consecutive_dwords`] does not.
#[inline(always)]
pub fn gathered_dwords<const LANES: usize>(
    message: &Message,
    uop: &Uop,
    thread: &mut Thread,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    let Some(lsc) = &message.lsc else { return Ok(()) };
    let Some(data) = lsc.data(&message.operands) else { return Ok(()) };
    let lanes = uop.lanes(thread);
    let mut sent = Sent { operands: &message.operands, thread, lanes, environment };
    let surface = lsc.surface(sent.operands, sent.thread);
    let is_partial = lanes.enabled != u32::MAX >> (32 - LANES);
    if is_partial && run::<LANES>(lsc, surface, data, &mut sent) {
        return Ok(());
    }
    scattered::<LANES>(lsc, surface, data, sent)
}

/// Moves a dword of each lane.
pub fn execute<const LANES: usize>(lsc: &Lsc, mut sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Some(data) = lsc.data(sent.operands) else { return Ok(()) };
    let surface = lsc.surface(sent.operands, sent.thread);
    if run::<LANES>(lsc, surface, data, &mut sent) {
        return Ok(());
    }
    scattered::<LANES>(lsc, surface, data, sent)
}

/// Moves a dword of each lane, if the enabled lanes have consecutive addresses inside the surface. Returns false if not; registers
/// are not changed then.
#[inline(always)]
fn run<const LANES: usize>(lsc: &Lsc, surface: Surface, data: u32, sent: &mut Sent<'_, '_>) -> bool {
    let Sent { operands, thread, lanes, environment } = sent;
    let enabled = lanes.enabled;
    let load = lsc.action == Action::Load;
    let Some(run) = Run::of::<LANES>(lsc, operands.src0, thread, enabled) else { return false };
    let at = data + run.first * 4;
    let size = run.count as usize * 4;
    let access = match (load, run.is_dense(enabled)) {
        (true, true) => {
            thread.registers_mut(at, size).map(|bytes| read(lsc.slm, surface, run.start, 4, bytes, environment))
        }
        (true, false) => Some(read_to_buffer::<LANES>(lsc, surface, run, data, sent)),
        (false, true) => {
            thread.registers(at, size).map(|bytes| write(lsc.slm, surface, run.start, 4, bytes, environment))
        }
        (false, false) => None,
    };
    // Otherwise lane by lane, to count and to name those that are not inside.
    matches!(access, Some(Ok(Access::Inside)))
}

/// Loads the enabled lanes of a run. The registers change if all of it is inside the surface.
#[inline(never)]
fn read_to_buffer<const LANES: usize>(
    lsc: &Lsc,
    surface: Surface,
    run: Run,
    dst: u32,
    sent: &mut Sent<'_, '_>,
) -> Result<Access, MessageFault> {
    let mut values = [[0; 4]; LANES];
    let bytes = &mut values.as_flattened_mut()[run.first as usize * 4..][..run.count as usize * 4];
    let access = read(lsc.slm, surface, run.start, 4, bytes, sent.environment)?;
    if access == Access::Inside {
        sent.thread.set_dwords(dst, &values.map(u32::from_le_bytes), sent.lanes.enabled);
    }
    Ok(access)
}

/// The address of all enabled lanes, if it is the same.
#[inline(always)]
fn common<const LANES: usize>(addresses: &[u64; LANES], enabled: u32) -> Option<u64> {
    let first = *addresses.get(enabled.trailing_zeros() as usize)?;
    let mut differs = 0;
    for (index, address) in addresses.iter().enumerate() {
        differs |= u32::from(*address != first) << index;
    }
    (differs & enabled == 0).then_some(first)
}

/// Moves dwords at any addresses.
#[inline(always)]
fn scattered<const LANES: usize>(
    lsc: &Lsc,
    surface: Surface,
    data: u32,
    sent: Sent<'_, '_>,
) -> Result<(), MessageFault> {
    let Sent { operands, thread, lanes, environment } = sent;
    let addresses = &lsc.addresses::<LANES>(operands.src0, thread);
    let spans = LaneSpans { surface, addresses, enabled: lanes.enabled, element: 4, size: 4 };
    let mut outside = 0;
    if lsc.action == Action::Load
        && let Some(address) = common(addresses, lanes.enabled)
    {
        let mut value = [0; 4];
        if read(lsc.slm, surface, address, 4, &mut value, environment) == Ok(Access::Inside) {
            thread.set_dwords(data, &[u32::from_le_bytes(value); LANES], lanes.enabled);
            return Ok(());
        }
    }
    let mut values = thread.dwords::<LANES>(data).map(u32::to_le_bytes);
    let result = if lsc.action == Action::Load {
        let result = read_lanes(lsc.slm, &spans, values.as_flattened_mut(), &mut outside, environment);
        // Lanes that were not read have the values that they had.
        thread.set_dwords(data, &values.map(u32::from_le_bytes), u32::MAX >> (32 - LANES));
        result
    } else {
        write_lanes(lsc.slm, &spans, values.as_flattened(), &mut outside, environment)
    };
    environment.note_lanes(outside, lanes.instruction);
    result
}
