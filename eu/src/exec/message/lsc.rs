// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Load/store cache messages to ugm, slm and tgm (group O of the document on the ISA).

use super::access::{self, read, write};
use super::operands::{Given, Lanes, MessageFault, Operands, Sent, number};
use crate::exec::environment::Environment;
use crate::exec::fault::{AccessKind, FaultAccess, FaultKind};
use crate::exec::memory::{Access, Atomic, Surface};
use crate::exec::thread::{REG, Thread};
use crate::isa::descriptor::{LENGTH, RESPONSE};

/// A decoded descriptor. ISA-210.
#[derive(Clone, Copy, Debug)]
pub struct Lsc {
    action: Action,
    /// Bytes of an address in the payload.
    address_size: u32,
    /// Bytes of an element in memory.
    memory_size: u32,
    /// Bytes of an element in registers.
    register_size: u32,
    /// The element in memory is the upper half of the element in registers.
    high: bool,
    /// Elements of a lane, one behind the other in memory.
    vector: u32,
    /// Components that are transferred, of a quad; 0 otherwise.
    components: u32,
    transposed: bool,
    kind: u32,
    slm: bool,
    response: u32,
}

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Access(Lsc),
    Fence { response: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Load,
    Store,
    Atomic(Atomic),
}

/// Decodes a descriptor. ISA-211. What is not decoded would be executed otherwise than the descriptor says: strided forms,
/// other sizes of blocks and of atomic elements, empty masks, and sources or responses that are too short (ISA-200).
pub fn decode(sfid: u8, desc: u32, size: u8, given: Given) -> Result<Operation, FaultKind> {
    let opcode = desc & 63;
    let response = RESPONSE.get32(desc);
    if opcode == 31 {
        return Ok(Operation::Fence { response });
    }
    let action = match opcode {
        0 | 2 => Action::Load,
        4 | 6 => Action::Store,
        8..=26 => Action::Atomic(Atomic::from_opcode(opcode).ok_or(FaultKind::Message)?),
        _ => return Err(FaultKind::Message),
    };
    let (kind, slm) = (desc >> 29 & 3, sfid == 14);
    // ISA-216: typed messages go to another data port on this hardware. ISA-222: shared local memory has no surfaces.
    if sfid == 13 || slm && kind != 0 {
        return Err(FaultKind::Message);
    }
    let quad = matches!(opcode, 2 | 6);
    let address_size = match desc >> 7 & 3 {
        1 => 2,
        2 => 4,
        3 => 8,
        _ => return Err(FaultKind::Message),
    };
    let (memory_size, register_size, high) = match desc >> 9 & 7 {
        0 => (1, 1, false),
        1 => (2, 2, false),
        2 => (4, 4, false),
        3 => (8, 8, false),
        4 => (1, 4, false),
        5 => (2, 4, false),
        6 => (2, 4, true),
        _ => return Err(FaultKind::Message),
    };
    let transposed = !quad && desc >> 15 & 1 != 0;
    let vector = if quad { 1 } else { [1, 2, 3, 4, 8, 16, 32, 64][(desc >> 12 & 7) as usize] };
    let components = if quad { desc >> 12 & 15 } else { 0 };
    let form = desc >> 9 & 7;
    let exists = match action {
        // ISA-218: elements of 32 and 64 bits, and of 16 in the lower half of a register's; no floats of 64 bits.
        Action::Atomic(operation) => {
            !transposed && vector == 1 && matches!(form, 2 | 3 | 5) && !(operation.is_float() && form == 3)
        }
        // ISA-215: one lane, elements of 32 or 64 bits.
        _ if transposed => size == 1 && matches!(form, 2 | 3),
        _ => !quad || components != 0,
    };
    if !exists {
        return Err(FaultKind::Message);
    }
    let registers = |count: u32, bytes: u32| (count * bytes).div_ceil(REG as u32);
    let element = registers(size.into(), register_size);
    let elements = if quad { components.count_ones() } else { vector };
    let moved = if transposed { registers(vector, memory_size) } else { elements * element };
    // A response of no registers is that of an atomic operation of which the old value is not needed.
    let (stored, loaded) = match action {
        Action::Load => (0, if given.dst { moved } else { 0 }),
        Action::Store => (moved, 0),
        Action::Atomic(operation) => (operation.operands() as u32 * element, if response > 0 { element } else { 0 }),
    };
    let short = LENGTH.get32(desc) < registers(size.into(), address_size) || response < loaded;
    if short || given.data.is_some_and(|length| length < stored) {
        return Err(FaultKind::Length);
    }
    Ok(Operation::Access(Lsc {
        action,
        address_size,
        memory_size,
        register_size,
        high,
        vector,
        components,
        transposed,
        kind,
        slm,
        response,
    }))
}

/// Largest number of bytes that a lane or a block moves: 64 elements of 8 bytes.
const MOST: usize = 512;

impl Lsc {
    fn surface(&self, operands: &Operands, thread: &Thread) -> Surface {
        match self.kind {
            0 => Surface::Flat,
            1 => Surface::Bindless(operands.state_offset(thread)),
            2 => Surface::State(operands.state_offset(thread), number(thread)),
            // ISA-225: 255 and 253 are no entries of the table, but addresses from the general state base.
            _ => match (operands.extended(thread) >> 24) as u8 {
                0xfd | 0xff => Surface::Stateless,
                index => Surface::Binding(index),
            },
        }
    }

    /// Address of a lane. ISA-213.
    fn address(&self, operands: &Operands, thread: &Thread, lane: u32) -> u64 {
        let at = ((operands.src0 + lane * self.address_size) & thread.grf_mask) as usize;
        match self.address_size {
            2 => u64::from(thread.u16(at)),
            4 => u64::from(thread.u32(at)),
            _ => u64::from(thread.u32(at)) | u64::from(thread.u32(at + 4 & thread.grf_mask as usize)) << 32,
        }
    }

    /// Byte offset of an element of a lane in the registers that begin at `base`. ISA-214.
    fn element(&self, base: u32, component: u32, lane: u32, size: u8) -> u32 {
        let block = (u32::from(size) * self.register_size).next_multiple_of(REG as u32);
        base + component * block + lane * self.register_size
    }
}

/// A message and what it works on.
#[derive(Clone, Copy)]
struct Job<'j> {
    lsc: &'j Lsc,
    surface: Surface,
    operands: &'j Operands,
    lanes: Lanes,
}

impl Operation {
    /// Executes the message.
    pub fn execute(&self, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
        match self {
            Operation::Access(from) => access(from, sent),
            Operation::Fence { response } => {
                access::fence(sent.operands, *response, sent.thread);
                Ok(())
            }
        }
    }
}

/// Moves elements, or applies an atomic operation to them.
fn access(lsc: &Lsc, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Sent { operands, thread, lanes, environment } = sent;
    if lanes.enabled == 0 {
        return Ok(());
    }
    let surface = lsc.surface(operands, thread);
    let job = Job { lsc, surface, operands, lanes };
    if let Action::Atomic(operation) = lsc.action {
        return atomic(&job, operation, thread, environment);
    }
    if lsc.transposed {
        return block(&job, thread, environment);
    }
    if lsc.memory_size == 4 && lsc.vector == 1 && lsc.components == 0 && span(&job, thread, environment) {
        return Ok(());
    }
    for lane in (0..u32::from(lanes.size)).filter(|lane| lanes.enabled >> lane & 1 != 0) {
        let address = lsc.address(operands, thread, lane);
        let outside = if lsc.components != 0 {
            quad(&job, thread, lane, address, environment)
        } else {
            vector(&job, thread, lane, address, environment)
        };
        let access = outside.map_err(|fault| fault.in_lane(lane))?;
        environment.note(access, lanes.instruction, lane);
    }
    Ok(())
}

/// Lanes of dwords with consecutive addresses, as one access. Returns false if that is not possible; then nothing but bytes
/// that are stored anyway has changed.
fn span(job: &Job<'_>, thread: &mut Thread, environment: &mut Environment<'_>) -> bool {
    let Job { lsc, surface, operands, lanes: Lanes { enabled, .. } } = *job;
    let first = enabled.trailing_zeros();
    let count = 32 - enabled.leading_zeros() - first;
    let lanes = enabled >> first;
    let dense = lanes & lanes.wrapping_add(1) == 0;
    if count < 2 || lsc.action == Action::Store && !dense {
        return false;
    }
    let start = lsc.address(operands, thread, first);
    let consecutive = (1..count).all(|index| {
        lanes >> index & 1 == 0
            || lsc.address(operands, thread, first + index) == start.wrapping_add(u64::from(index) * 4)
    });
    if !consecutive {
        return false;
    }
    let mut buffer = [0u8; 128];
    let bytes = &mut buffer[..count as usize * 4];
    if lsc.action == Action::Load {
        let Some(dst) = operands.dst else { return true };
        if read(lsc.slm, surface, start, 4, bytes, environment) != Ok(Access::Inside) {
            return false;
        }
        for (index, value) in (0..).zip(bytes.as_chunks::<4>().0) {
            if lanes >> index & 1 != 0 {
                let at = (dst + (first + index) * 4) & thread.grf_mask;
                thread.set_u32(at as usize, u32::from_le_bytes(*value));
            }
        }
        return true;
    }
    let Some(src) = operands.src1 else { return true };
    for (index, value) in (0..).zip(bytes.as_chunks_mut::<4>().0) {
        *value = thread.u32(((src + (first + index) * 4) & thread.grf_mask) as usize).to_le_bytes();
    }
    write(lsc.slm, surface, start, 4, bytes, environment) == Ok(Access::Inside)
}

/// The elements of a lane, one behind the other in memory.
fn vector(
    job: &Job<'_>,
    thread: &mut Thread,
    lane: u32,
    address: u64,
    environment: &mut Environment<'_>,
) -> Result<Access, MessageFault> {
    let Job { lsc, surface, operands, lanes } = *job;
    let mut buffer = [0u8; MOST];
    let size = lsc.memory_size as usize;
    let bytes = &mut buffer[..lsc.vector as usize * size];
    if lsc.action == Action::Load {
        let access = read(lsc.slm, surface, address, lsc.memory_size, bytes, environment)?;
        if let Some(dst) = operands.dst {
            for (component, element) in (0..).zip(bytes.chunks_exact(size)) {
                set(lsc, thread, lsc.element(dst, component, lane, lanes.size), element);
            }
        }
        return Ok(access);
    }
    let Some(src) = operands.src1 else { return Ok(Access::Inside) };
    for (component, element) in (0..).zip(bytes.chunks_exact_mut(size)) {
        get(lsc, thread, lsc.element(src, component, lane, lanes.size), element);
    }
    write(lsc.slm, surface, address, lsc.memory_size, bytes, environment)
}

/// Some of the four components of a lane. ISA-216.
fn quad(
    job: &Job<'_>,
    thread: &mut Thread,
    lane: u32,
    address: u64,
    environment: &mut Environment<'_>,
) -> Result<Access, MessageFault> {
    let Job { lsc, surface, operands, lanes } = *job;
    let mut all = Access::Inside;
    let mut buffer = [0u8; 8];
    let element = &mut buffer[..lsc.memory_size as usize];
    let components = (0..4).filter(|component| lsc.components >> component & 1 != 0);
    for (slot, component) in (0..).zip(components) {
        let address = address.wrapping_add(u64::from(component * lsc.memory_size));
        let access = if lsc.action == Action::Load {
            let access = read(lsc.slm, surface, address, lsc.memory_size, element, environment)?;
            if let Some(dst) = operands.dst {
                set(lsc, thread, lsc.element(dst, slot, lane, lanes.size), element);
            }
            access
        } else if let Some(src) = operands.src1 {
            get(lsc, thread, lsc.element(src, slot, lane, lanes.size), element);
            write(lsc.slm, surface, address, lsc.memory_size, element, environment)?
        } else {
            Access::Inside
        };
        if access == Access::Outside {
            all = access;
        }
    }
    Ok(all)
}

/// One address, consecutive elements of consecutive registers. ISA-215.
fn block(job: &Job<'_>, thread: &mut Thread, environment: &mut Environment<'_>) -> Result<(), MessageFault> {
    let Job { lsc, surface, operands, lanes } = *job;
    let address = lsc.address(operands, thread, 0);
    let mut buffer = [0u8; MOST];
    let bytes = &mut buffer[..(lsc.vector * lsc.memory_size) as usize];
    let fault = |fault: MessageFault| fault.in_lane(0);
    let access = if lsc.action == Action::Load {
        let access = read(lsc.slm, surface, address, lsc.memory_size, bytes, environment).map_err(fault)?;
        if let Some(dst) = operands.dst {
            for (index, byte) in (0..).zip(bytes.iter()) {
                thread.file[((dst + index) & thread.grf_mask) as usize] = *byte;
            }
        }
        access
    } else if let Some(src) = operands.src1 {
        for (index, byte) in (0..).zip(bytes.iter_mut()) {
            *byte = thread.file[((src + index) & thread.grf_mask) as usize];
        }
        write(lsc.slm, surface, address, lsc.memory_size, bytes, environment).map_err(fault)?
    } else {
        Access::Inside
    };
    environment.note(access, lanes.instruction, 0);
    Ok(())
}

/// ISA-218. Lanes with the same address are applied in their order.
fn atomic(
    job: &Job<'_>,
    operation: Atomic,
    thread: &mut Thread,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    let Job { lsc, surface, operands, lanes } = *job;
    for lane in (0..u32::from(lanes.size)).filter(|lane| lanes.enabled >> lane & 1 != 0) {
        let fault = |fault: MessageFault| fault.in_lane(lane);
        let address = lsc.address(operands, thread, lane);
        let mut values = [0; 2];
        if let Some(src) = operands.src1 {
            for (index, value) in (0..).zip(&mut values).take(operation.operands()) {
                let at = lsc.element(src, index, lane, lanes.size) & thread.grf_mask;
                *value = u64::from(thread.u32(at as usize));
                if lsc.register_size == 8 {
                    *value |= u64::from(thread.u32((at + 4 & thread.grf_mask) as usize)) << 32;
                }
                *value &= u64::MAX >> (64 - lsc.memory_size * 8);
            }
        }
        if !address.is_multiple_of(u64::from(lsc.memory_size)) {
            let access = FaultAccess {
                kind: AccessKind::Atomic,
                surface: (!lsc.slm).then_some(surface),
                address,
                virtual_address: None,
            };
            let unaligned = MessageFault::with_access(FaultKind::Alignment, access);
            return Err(fault(unaligned));
        }
        let old = access::atomic(lsc.slm, surface, address, lsc.memory_size, operation, values, environment)
            .map_err(fault)?;
        if old.is_none() {
            environment.note(Access::Outside, lanes.instruction, lane);
        }
        if let Some(dst) = operands.dst
            && lsc.response > 0
        {
            let bytes = old.unwrap_or(0).to_le_bytes();
            set(lsc, thread, lsc.element(dst, 0, lane, lanes.size), &bytes[..lsc.memory_size as usize]);
        }
    }
    Ok(())
}

/// Writes an element to registers. ISA-214: the rest of a wider element is 0.
fn set(lsc: &Lsc, thread: &mut Thread, at: u32, element: &[u8]) {
    let mut bytes = [0u8; 8];
    let start = if lsc.high { 2 } else { 0 };
    bytes[start..start + element.len()].copy_from_slice(element);
    for (index, byte) in (0..).zip(&bytes[..lsc.register_size as usize]) {
        thread.file[((at + index) & thread.grf_mask) as usize] = *byte;
    }
}

/// Reads an element from registers.
fn get(lsc: &Lsc, thread: &Thread, at: u32, element: &mut [u8]) {
    let start = if lsc.high { 2 } else { 0 };
    for (index, byte) in (start..).zip(element) {
        *byte = thread.file[((at + index) & thread.grf_mask) as usize];
    }
}
