// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses of messages to surfaces and to shared local memory.

use super::operands::{MessageFault, Operands};
use crate::exec::environment::Environment;
use crate::exec::fault::AccessKind;
use crate::exec::memory::{Access, Atomic, LaneFault, LaneSpans, Surface, elements};
use crate::exec::thread::{REG, Thread};

/// Bits of an address in shared local memory. ISA-222: compilers set higher ones.
const SLM_MASK: u64 = (1 << 17) - 1;

/// Reads elements of `element` bytes from a surface or from shared local memory (ISA-221, ISA-222).
#[inline]
pub fn read(
    slm: bool,
    surface: Surface,
    address: u64,
    element: u32,
    bytes: &mut [u8],
    environment: &mut Environment<'_>,
) -> Result<Access, MessageFault> {
    let element = element as usize;
    if !slm {
        let result = environment.memory.read(surface, address, element, bytes);
        return result.map_err(|fault| MessageFault::of_access(fault, AccessKind::Read, surface, address));
    }
    let at = (address & SLM_MASK) as usize;
    let memory = environment.group.slm.get(at..).unwrap_or_default();
    let (within, rest) = bytes.split_at_mut(elements(memory.len().min(bytes.len()), element));
    within.copy_from_slice(&memory[..within.len()]);
    rest.fill(0);
    Ok(if rest.is_empty() { Access::Inside } else { Access::Outside })
}

/// Writes elements of `element` bytes to a surface or to shared local memory (ISA-221, ISA-222).
#[inline]
pub fn write(
    slm: bool,
    surface: Surface,
    address: u64,
    element: u32,
    bytes: &[u8],
    environment: &mut Environment<'_>,
) -> Result<Access, MessageFault> {
    let element = element as usize;
    if !slm {
        let result = environment.memory.write(surface, address, element, bytes);
        return result.map_err(|fault| MessageFault::of_access(fault, AccessKind::Write, surface, address));
    }
    let at = (address & SLM_MASK) as usize;
    let memory = environment.group.slm.get_mut(at..).unwrap_or_default();
    let (within, rest) = bytes.split_at(elements(memory.len().min(bytes.len()), element));
    memory[..within.len()].copy_from_slice(within);
    Ok(if rest.is_empty() { Access::Inside } else { Access::Outside })
}

/// Reads what the lanes of a message load, as [`crate::exec::memory::Memory::read_lanes`], from a surface or from shared local
/// memory.
#[inline]
pub fn read_lanes(
    slm: bool,
    lanes: &LaneSpans<'_>,
    bytes: &mut [u8],
    outside: &mut u32,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    if !slm {
        let result = environment.memory.read_lanes(lanes, bytes, outside);
        return result.map_err(|fault| of_lane(lanes, fault, AccessKind::Read));
    }
    if (lanes.size, lanes.element) == (4, 4) {
        let memory = &environment.group.slm;
        let dwords = bytes.as_chunks_mut::<4>().0;
        for (lane, at) in places(lanes) {
            let within = memory.get(at..).and_then(|rest| rest.first_chunk::<4>());
            *outside |= u32::from(within.is_none()) << lane;
            if let Some(value) = dwords.get_mut(lane) {
                *value = *within.unwrap_or(&[0; 4]);
            }
        }
    } else {
        for (lane, at) in places(lanes) {
            let memory = environment.group.slm.get(at..).unwrap_or_default();
            let bytes = lanes.bytes_mut(bytes, lane);
            let (within, rest) = bytes.split_at_mut(elements(memory.len().min(bytes.len()), lanes.element));
            within.copy_from_slice(&memory[..within.len()]);
            rest.fill(0);
            *outside |= u32::from(!rest.is_empty()) << lane;
        }
    }
    Ok(())
}

/// Writes what the lanes of a message store, as [`read_lanes`] reads it.
#[inline]
pub fn write_lanes(
    slm: bool,
    lanes: &LaneSpans<'_>,
    bytes: &[u8],
    outside: &mut u32,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    if !slm {
        let result = environment.memory.write_lanes(lanes, bytes, outside);
        return result.map_err(|fault| of_lane(lanes, fault, AccessKind::Write));
    }
    if (lanes.size, lanes.element) == (4, 4) {
        let memory = &mut environment.group.slm;
        let dwords = bytes.as_chunks::<4>().0;
        for (lane, at) in places(lanes) {
            let within = memory.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>());
            *outside |= u32::from(within.is_none()) << lane;
            if let (Some(into), Some(value)) = (within, dwords.get(lane)) {
                *into = *value;
            }
        }
    } else {
        for (lane, at) in places(lanes) {
            let memory = environment.group.slm.get_mut(at..).unwrap_or_default();
            let bytes = lanes.bytes(bytes, lane);
            let within = elements(memory.len().min(bytes.len()), lanes.element);
            memory[..within].copy_from_slice(&bytes[..within]);
            *outside |= u32::from(within < bytes.len()) << lane;
        }
    }
    Ok(())
}

/// Each enabled lane and its place in shared local memory.
#[inline(always)]
fn places(lanes: &LaneSpans<'_>) -> impl Iterator<Item = (usize, usize)> {
    lanes.iter().map(|(lane, address)| (lane, (address & SLM_MASK) as usize))
}

/// The fault of a lane of a message.
#[cold]
fn of_lane(lanes: &LaneSpans<'_>, LaneFault { lane, fault }: LaneFault, kind: AccessKind) -> MessageFault {
    let address = lanes.addresses.get(lane as usize).copied().unwrap_or(0);
    MessageFault::of_access(fault, kind, lanes.surface, address).in_lane(lane)
}

/// Applies an operation to an aligned element of `size` bytes of a surface or of shared local memory. `None` outside of it.
#[inline(always)]
pub fn atomic(
    slm: bool,
    surface: Surface,
    address: u64,
    size: u32,
    operation: Atomic,
    operands: [u64; 2],
    environment: &mut Environment<'_>,
) -> Result<Option<u64>, MessageFault> {
    if !slm {
        let result = environment.memory.atomic(surface, address, size, operation, operands);
        return result.map_err(|fault| MessageFault::of_access(fault, AccessKind::Atomic, surface, address));
    }
    let at = (address & SLM_MASK) as usize;
    let Some(rest) = environment.group.slm.get_mut(at..) else { return Ok(None) };
    if size == 4 && !operation.is_float() {
        let Some(bytes) = rest.first_chunk_mut::<4>() else { return Ok(None) };
        let old = u32::from_le_bytes(*bytes);
        *bytes = operation.apply_to_dword(old, operands.map(|operand| operand as u32)).to_le_bytes();
        return Ok(Some(old.into()));
    }
    let Some(bytes) = rest.get_mut(..size as usize) else { return Ok(None) };
    let old = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let new = operation.apply(old, operands, size);
    bytes.copy_from_slice(&new.to_le_bytes()[..size as usize]);
    Ok(Some(old))
}

/// Orders accesses before and after it, and clears the registers of the response.
pub fn fence(operands: &Operands, response: u32, thread: &mut Thread) {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    if let Some(dst) = operands.dst {
        for index in 0..response {
            let at = (dst + index * REG as u32) & thread.grf_mask;
            thread.file[at as usize..at as usize + REG].fill(0);
        }
    }
}
