// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Atomic operations. ISA-218. Lanes with the same address are applied in their order.

use super::super::access::{self, local_dwords};
use super::super::operands::{MessageFault, Sent};
use super::elements::set;
use super::{Action, Lsc};
use crate::exec::fault::{AccessKind, FaultAccess, FaultKind};
use crate::exec::memory::{Access, LaneSpans};

/// Applies an operation to an element of each lane.
pub fn execute<const LANES: usize>(lsc: &Lsc, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Action::Atomic(operation) = lsc.action else { return Ok(()) };
    let Sent { operands, thread, lanes, environment } = sent;
    let surface = lsc.surface(operands, thread);
    let addresses = &lsc.addresses::<LANES>(operands.src0, thread);
    let size = lsc.memory_size as usize;
    let mut values = [[[0u32; LANES]; 2]; 2];
    if let Some(src) = operands.src1 {
        for (index, halves) in (0..).zip(&mut values).take(operation.operands()) {
            let at = lsc.component(src, index, lanes.size);
            halves[0] = thread.dwords::<LANES>(at);
            if size == 8 {
                let pairs = [halves[0], thread.dwords::<LANES>(at + LANES as u32 * 4)];
                for (lane, [low, high]) in pairs.as_flattened().as_chunks::<2>().0.iter().enumerate() {
                    (halves[0][lane], halves[1][lane]) = (*low, *high);
                }
            }
        }
    }
    let result = operands.dst.filter(|_| lsc.response > 0);
    let spans = LaneSpans { surface, addresses, enabled: lanes.enabled, element: size, size };
    let [first, second] = [&values[0][0], &values[1][0]];
    if lsc.slm
        && lsc.has_dwords()
        && let Some((old, outside)) = local_dwords(&spans, operation, first, second, &mut environment.group.slm)
    {
        environment.note_lanes(outside, lanes.instruction);
        if let Some(dst) = result {
            thread.set_dwords(dst, &old, lanes.enabled);
        }
        return Ok(());
    }
    let mask = u64::MAX >> (64 - size * 8);
    for (lane, address) in spans.iter() {
        let value = |index: usize| {
            let [low, high] = &values[index];
            (u64::from(low[lane]) | u64::from(high[lane]) << 32) & mask
        };
        let values = [value(0), value(1)];
        let fault = |fault: MessageFault| fault.in_lane(lane as u32);
        if address & (size as u64 - 1) != 0 {
            let access = FaultAccess {
                kind: AccessKind::Atomic,
                surface: (!lsc.slm).then_some(surface),
                address,
                virtual_address: None,
            };
            return Err(fault(MessageFault::with_access(FaultKind::Alignment, access)));
        }
        let old = access::atomic(lsc.slm, surface, address, lsc.memory_size, operation, values, environment)
            .map_err(fault)?;
        if old.is_none() {
            environment.note(Access::Outside, lanes.instruction, lane as u32);
        }
        if let Some(dst) = result {
            let bytes = old.unwrap_or(0).to_le_bytes();
            let at = lsc.component(dst, 0, lanes.size) + lane as u32 * lsc.register_size;
            set(lsc, thread, at, &bytes[..size]);
        }
    }
    Ok(())
}
