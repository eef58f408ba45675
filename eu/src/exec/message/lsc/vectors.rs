// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Two to four consecutive dwords of each lane, as most vectors and quads are. ISA-214, ISA-216.

use super::super::Message;
use super::super::access::{read_lanes, write_lanes};
use super::super::operands::{MessageFault, Sent};
use super::{Action, Lsc};
use crate::exec::environment::Environment;
use crate::exec::memory::LaneSpans;
use crate::exec::thread::Thread;
use crate::exec::uop::Uop;

/// Moves `COUNT` dwords of each lane, as [`execute`].
#[inline(always)]
pub fn vectors_of_dwords<const LANES: usize, const COUNT: usize>(
    message: &Message,
    uop: &Uop,
    thread: &mut Thread,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    let lanes = uop.lanes(thread);
    match &message.lsc {
        Some(lsc) if lanes.enabled != 0 => {
            execute::<LANES, COUNT>(lsc, Sent { operands: &message.operands, thread, lanes, environment })
        }
        _ => Ok(()),
    }
}

/// Moves `COUNT` dwords of each lane. A lane of which some are outside the surface is counted once.
#[inline(always)]
pub fn execute<const LANES: usize, const COUNT: usize>(lsc: &Lsc, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Sent { operands, thread, lanes, environment } = sent;
    let Some(data) = lsc.data(operands) else { return Ok(()) };
    let surface = lsc.surface(operands, thread);
    let addresses = &lsc.addresses::<LANES>(operands.src0, thread);
    let spans = LaneSpans { surface, addresses, enabled: lanes.enabled, element: 4, size: COUNT * 4 };
    let mut buffer = [[[0; 4]; COUNT]; LANES];
    let mut outside = 0;
    let result = if lsc.action == Action::Load {
        let bytes = buffer.as_flattened_mut().as_flattened_mut();
        let result = read_lanes(lsc.slm, &spans, bytes, &mut outside, environment);
        // Lanes behind one that fails are not loaded.
        let failed = result.as_ref().err().and_then(|fault| fault.place().lane);
        let loaded = lanes.enabled & failed.map_or(!0, |lane| (1 << lane) - 1);
        for index in 0..COUNT as u32 {
            let at = lsc.component(data, index, lanes.size);
            thread.set_each_dword::<LANES>(at, loaded, |lane| u32::from_le_bytes(buffer[lane][index as usize]));
        }
        result
    } else {
        for index in 0..COUNT {
            let values = thread.dwords::<LANES>(lsc.component(data, index as u32, lanes.size));
            for (value, lane) in values.iter().zip(&mut buffer) {
                lane[index] = value.to_le_bytes();
            }
        }
        write_lanes(lsc.slm, &spans, buffer.as_flattened().as_flattened(), &mut outside, environment)
    };
    environment.note_lanes(outside, lanes.instruction);
    result
}
