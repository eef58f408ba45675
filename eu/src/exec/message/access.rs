// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses of messages to surfaces and to shared local memory.

use super::operands::{MessageFault, Operands};
use crate::exec::environment::Environment;
use crate::exec::fault::AccessKind;
use crate::exec::memory::{Access, Atomic, Surface, elements};
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

/// Applies an operation to an aligned element of `size` bytes of a surface or of shared local memory. `None` outside of it.
#[inline]
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
    let Some(bytes) = environment.group.slm.get_mut(at..at + size as usize) else { return Ok(None) };
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
