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
    let at = place(address);
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
    let at = place(address);
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
    let memory = &environment.group.slm;
    match (lanes.size, lanes.element) {
        (4, 4) => read_chunks::<4>(memory, lanes, bytes, outside),
        (8, 4) => read_chunks::<8>(memory, lanes, bytes, outside),
        (12, 4) => read_chunks::<12>(memory, lanes, bytes, outside),
        (16, 4) => read_chunks::<16>(memory, lanes, bytes, outside),
        _ => {
            for (lane, address) in lanes.iter() {
                read_lane(memory, lanes.element, place(address), lanes.bytes_mut(bytes, lane), outside, lane);
            }
        }
    }
    Ok(())
}

/// Reads `SIZE` bytes of each lane.
#[inline(always)]
fn read_chunks<const SIZE: usize>(memory: &[u8], lanes: &LaneSpans<'_>, bytes: &mut [u8], outside: &mut u32) {
    for (into, (lane, at)) in bytes.as_chunks_mut::<SIZE>().0.iter_mut().zip(places(lanes)) {
        if lanes.enabled >> lane & 1 != 0 {
            match chunk::<SIZE>(memory, at) {
                Some(within) => *into = *within,
                None => read_lane(memory, lanes.element, at, into, outside, lane),
            }
        }
    }
}

/// Reads the bytes of a lane, of which some may be outside.
fn read_lane(memory: &[u8], element: usize, at: usize, bytes: &mut [u8], outside: &mut u32, lane: usize) {
    let memory = memory.get(at..).unwrap_or_default();
    let (within, rest) = bytes.split_at_mut(elements(memory.len().min(bytes.len()), element));
    within.copy_from_slice(&memory[..within.len()]);
    rest.fill(0);
    *outside |= u32::from(!rest.is_empty()) << lane;
}

/// Bytes of shared local memory, if all are inside.
#[inline(always)]
fn chunk<const SIZE: usize>(memory: &[u8], at: usize) -> Option<&[u8; SIZE]> {
    memory.get(at..at + SIZE)?.first_chunk()
}

/// As [`chunk`].
#[inline(always)]
fn chunk_mut<const SIZE: usize>(memory: &mut [u8], at: usize) -> Option<&mut [u8; SIZE]> {
    memory.get_mut(at..at + SIZE)?.first_chunk_mut()
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
    let memory = &mut environment.group.slm;
    match (lanes.size, lanes.element) {
        (4, 4) => write_chunks::<4>(memory, lanes, bytes, outside),
        (8, 4) => write_chunks::<8>(memory, lanes, bytes, outside),
        (12, 4) => write_chunks::<12>(memory, lanes, bytes, outside),
        (16, 4) => write_chunks::<16>(memory, lanes, bytes, outside),
        _ => {
            for (lane, address) in lanes.iter() {
                write_lane(memory, lanes.element, place(address), lanes.bytes(bytes, lane), outside, lane);
            }
        }
    }
    Ok(())
}

/// Writes `SIZE` bytes of each lane.
#[inline(always)]
fn write_chunks<const SIZE: usize>(memory: &mut [u8], lanes: &LaneSpans<'_>, bytes: &[u8], outside: &mut u32) {
    for (from, (lane, at)) in bytes.as_chunks::<SIZE>().0.iter().zip(places(lanes)) {
        if lanes.enabled >> lane & 1 != 0 {
            match chunk_mut::<SIZE>(memory, at) {
                Some(within) => *within = *from,
                None => write_lane(memory, lanes.element, at, from, outside, lane),
            }
        }
    }
}

/// Writes the bytes of a lane, of which some may be outside.
fn write_lane(memory: &mut [u8], element: usize, at: usize, bytes: &[u8], outside: &mut u32, lane: usize) {
    let memory = memory.get_mut(at..).unwrap_or_default();
    let within = elements(memory.len().min(bytes.len()), element);
    memory[..within].copy_from_slice(&bytes[..within]);
    *outside |= u32::from(within < bytes.len()) << lane;
}

/// Place of an address in shared local memory.
#[inline(always)]
fn place(address: u64) -> usize {
    (address & SLM_MASK) as usize
}

/// Each lane, enabled or not, and its place in shared local memory.
#[inline(always)]
fn places(lanes: &LaneSpans<'_>) -> impl Iterator<Item = (usize, usize)> {
    lanes.addresses.iter().map(|address| place(*address)).enumerate()
}

/// Applies an operation on integers of 32 bits to shared local memory, lane by lane. Returns the dwords before, and the lanes that
/// are outside, of which they are 0; `None`, without a change, if it is one on floats or an address is not aligned.
#[inline(always)]
pub fn local_dwords<const LANES: usize>(
    lanes: &LaneSpans<'_>,
    operation: Atomic,
    first: &[u32; LANES],
    second: &[u32; LANES],
    memory: &mut [u8],
) -> Option<([u32; LANES], u32)> {
    let mut unaligned = 0;
    for (lane, at) in places(lanes) {
        unaligned |= if lanes.enabled & 1 << lane != 0 { at } else { 0 };
    }
    if unaligned & 3 != 0 {
        return None;
    }
    // A loop for each operation, so that it is not looked up for each lane.
    macro_rules! apply {
        ($($name:ident)*) => {
            match operation {
                $(Atomic::$name => each_dword(lanes, first, second, memory, |old, operands| {
                    Atomic::$name.apply_to_dword(old, operands)
                }),)*
                Atomic::Fadd | Atomic::Fsub | Atomic::Fmin | Atomic::Fmax | Atomic::Fcas => return None,
            }
        };
    }
    Some(apply!(Inc Dec Load Store Add Sub Smin Smax Umin Umax Cas And Or Xor))
}

/// Changes a dword of each lane. Returns as [`local_dwords`].
#[inline(always)]
fn each_dword<const LANES: usize>(
    lanes: &LaneSpans<'_>,
    first: &[u32; LANES],
    second: &[u32; LANES],
    memory: &mut [u8],
    change: impl Fn(u32, [u32; 2]) -> u32,
) -> ([u32; LANES], u32) {
    let mut before = [0; LANES];
    let mut outside = 0;
    let operands = first.iter().zip(second);
    for (((lane, at), before), (first, second)) in places(lanes).zip(&mut before).zip(operands) {
        if lanes.enabled >> lane & 1 != 0 {
            match chunk_mut::<4>(memory, at) {
                Some(dword) => {
                    *before = u32::from_le_bytes(*dword);
                    *dword = change(*before, [*first, *second]).to_le_bytes();
                }
                None => outside |= 1 << lane,
            }
        }
    }
    (before, outside)
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
    let at = place(address);
    let Some(rest) = environment.group.slm.get_mut(at..) else { return Ok(None) };
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
