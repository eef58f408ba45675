// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Elements of all sizes, several for a lane: vectors, one behind the other in memory, and quads, of which some components are
//! transferred. ISA-214, ISA-216.

use super::super::access::{read_lanes, write_lanes};
use super::super::operands::{MessageFault, Sent};
use super::{Action, Lsc};
use crate::exec::memory::LaneSpans;
use crate::exec::thread::Thread;

/// Bytes of a lane in most messages.
const FEW: usize = 16;
/// Largest number of bytes of a lane: 64 elements of 8 bytes.
const MOST: usize = 512;

/// Elements of each lane that are consecutive in memory.
struct Part {
    /// First of them in the registers.
    slot: u32,
    /// Their distance from the lane's address in elements.
    distance: u32,
    /// Number.
    count: u32,
}

/// The parts of a message: one of a vector, those between the gaps of a quad's mask.
fn parts(lsc: &Lsc) -> impl Iterator<Item = Part> {
    let vector = lsc.vector;
    let mut mask = lsc.components;
    let mut slot = 0;
    let all = (mask == 0).then_some(Part { slot: 0, distance: 0, count: vector });
    all.into_iter().chain(std::iter::from_fn(move || {
        let distance = mask.trailing_zeros();
        let count = (mask.checked_shr(distance)?).trailing_ones();
        mask &= !(((1 << count) - 1) << distance);
        slot += count;
        Some(Part { slot: slot - count, distance, count })
    }))
}

/// Moves the elements of each lane. A lane of which some are outside the surface is counted once.
pub fn execute<const LANES: usize>(lsc: &Lsc, mut sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Some(data) = lsc.data(sent.operands) else { return Ok(()) };
    let surface = lsc.surface(sent.operands, sent.thread);
    let addresses = &lsc.addresses::<LANES>(sent.operands.src0, sent.thread);
    let mut outside = 0;
    let mut result = Ok(());
    for part in parts(lsc) {
        let addresses = addresses.map(|address| address.wrapping_add(u64::from(part.distance * lsc.memory_size)));
        let enabled = sent.lanes.enabled;
        let element = lsc.memory_size as usize;
        let spans = LaneSpans { surface, addresses: &addresses, enabled, element, size: part.count as usize * element };
        result = match (lsc.action, spans.size <= FEW) {
            (Action::Load, true) => load::<LANES, FEW>(lsc, &part, data, &spans, &mut sent, &mut outside),
            (Action::Load, false) => load::<LANES, MOST>(lsc, &part, data, &spans, &mut sent, &mut outside),
            (_, true) => store::<LANES, FEW>(lsc, &part, data, &spans, &mut sent, &mut outside),
            (_, false) => store::<LANES, MOST>(lsc, &part, data, &spans, &mut sent, &mut outside),
        };
        if result.is_err() {
            break;
        }
    }
    sent.environment.note_lanes(outside, sent.lanes.instruction);
    result
}

/// Loads the elements of a part, at most `MOST` bytes of a lane.
fn load<const LANES: usize, const MOST: usize>(
    lsc: &Lsc,
    part: &Part,
    data: u32,
    spans: &LaneSpans<'_>,
    sent: &mut Sent<'_, '_>,
    outside: &mut u32,
) -> Result<(), MessageFault> {
    let Sent { thread, lanes, environment, .. } = sent;
    let mut buffer = [[0; MOST]; LANES];
    let bytes = &mut buffer.as_flattened_mut()[..LANES * spans.size];
    let result = read_lanes(lsc.slm, spans, bytes, outside, environment);
    // Lanes behind one that fails are not loaded.
    let failed = result.as_ref().err().and_then(|fault| fault.place().lane);
    let loaded = spans.enabled & failed.map_or(!0, |lane| (1 << lane) - 1);
    for index in 0..part.count {
        let at = lsc.component(data, part.slot + index, lanes.size);
        let place = |lane: usize| lane * spans.size + index as usize * spans.element;
        for (lane, _) in spans.iter().filter(|(lane, _)| loaded >> lane & 1 != 0) {
            let element = &bytes[place(lane)..][..spans.element];
            set(lsc, thread, at + lane as u32 * lsc.register_size, element);
        }
    }
    result
}

/// Stores the elements of a part, at most `MOST` bytes of a lane.
fn store<const LANES: usize, const MOST: usize>(
    lsc: &Lsc,
    part: &Part,
    data: u32,
    spans: &LaneSpans<'_>,
    sent: &mut Sent<'_, '_>,
    outside: &mut u32,
) -> Result<(), MessageFault> {
    let Sent { thread, lanes, environment, .. } = sent;
    let mut buffer = [[0; MOST]; LANES];
    let bytes = &mut buffer.as_flattened_mut()[..LANES * spans.size];
    for index in 0..part.count {
        let at = lsc.component(data, part.slot + index, lanes.size);
        for (lane, _) in spans.iter() {
            let start = lane * spans.size + index as usize * spans.element;
            let element = &mut bytes[start..start + spans.element];
            get(lsc, thread, at + lane as u32 * lsc.register_size, element);
        }
    }
    write_lanes(lsc.slm, spans, bytes, outside, environment)
}

/// Writes an element to registers. ISA-214: the rest of a wider element is 0.
pub fn set(lsc: &Lsc, thread: &mut Thread, at: u32, element: &[u8]) {
    let mut bytes = [0u8; 8];
    let start = if lsc.high { 2 } else { 0 };
    bytes[start..start + element.len()].copy_from_slice(element);
    match lsc.register_size {
        4 => thread.write_registers(at, &bytes[..4]),
        size => thread.write_registers(at, &bytes[..size as usize]),
    }
}

/// Reads an element from registers.
fn get(lsc: &Lsc, thread: &Thread, at: u32, element: &mut [u8]) {
    let at = if lsc.high { at + 2 } else { at };
    match element.as_chunks_mut::<4>() {
        ([dword], []) => thread.copy_registers(at, dword),
        _ => thread.copy_registers(at, element),
    }
}
