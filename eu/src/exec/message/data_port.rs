// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages to data ports 0 and 1 for buffers: blocks and scattered elements (group P of the document on the ISA).

use super::access;
use super::operands::{MessageFault, Sent, number};
use crate::exec::fault::FaultKind;
use crate::exec::memory::{Access, Surface};
use crate::exec::thread::REG;
use crate::isa::descriptor::{
    A64_COUNT, A64_ELEMENT, A64_SIXTEEN, A64_UNITS, BINDING, BLOCK_SIZE, DISABLED, ELEMENT, HEADER, HWORDS, KIND,
    RESPONSE, SCRATCH, SCRATCH_OFFSET, SCRATCH_SIZE, SCRATCH_WRITE, SIXTEEN, UNTYPED_LANES, dc0, dc1,
};

/// Largest number of elements of a lane of a scattered message.
const MOST_COMPONENTS: u32 = 8;
/// Bytes of the elements of a block.
const DWORD: u32 = 4;

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Block(Block),
    Scratch(Scratch),
    Scattered(Scattered),
    Fence { response: u32 },
}

/// A block of owords or hwords. ISA-225.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    store: bool,
    index: u8,
    /// Bytes.
    length: u32,
    /// Byte in the first register at which a single oword begins.
    start: u32,
    /// The address is 64 bits in the header.
    a64: bool,
    /// The offset in the header counts owords.
    owords: bool,
}

/// Elements at the addresses of lanes. ISA-227.
#[derive(Clone, Copy, Debug)]
pub struct Scattered {
    store: bool,
    index: u8,
    /// Bytes of an element in memory.
    memory_size: u32,
    /// Bytes of an element in registers.
    register_size: u32,
    /// Bit `n`: element `n` of a lane is transferred.
    components: u32,
    lanes: u32,
    a64: bool,
    header: bool,
}

/// A block of registers in the thread's scratch memory. ISA-227.
#[derive(Clone, Copy, Debug)]
pub struct Scratch {
    store: bool,
    /// Registers.
    count: u32,
    /// Bytes.
    offset: u32,
}

/// Bytes of a block of owords by the code of its size, and the byte in the first register at which it begins.
fn owords(code: u32) -> Result<(u32, u32), FaultKind> {
    match code {
        0 => Ok((16, 0)),
        1 => Ok((16, 16)),
        2..=5 => Ok((16 << (code - 1), 0)),
        _ => Err(FaultKind::Message),
    }
}

/// As [`owords`], of a block of hwords.
fn hwords(code: u32) -> Result<(u32, u32), FaultKind> {
    if code < 4 { Ok((32 << code, 0)) } else { Err(FaultKind::Message) }
}

/// Decodes messages of data port 0.
pub fn decode_0(desc: u32) -> Result<Operation, FaultKind> {
    let header = HEADER.is_set32(desc);
    if SCRATCH.is_set32(desc) {
        if !header {
            return Err(FaultKind::Length);
        }
        return Ok(Operation::Scratch(Scratch {
            store: SCRATCH_WRITE.is_set32(desc),
            count: 1 << SCRATCH_SIZE.get32(desc),
            offset: SCRATCH_OFFSET.get32(desc) * REG as u32,
        }));
    }
    let index = BINDING.get32(desc) as u8;
    let lanes = if SIXTEEN.is_set32(desc) { 16 } else { 8 };
    let scattered = |store, memory_size, register_size| {
        Ok(Operation::Scattered(Scattered {
            store,
            index,
            memory_size,
            register_size,
            components: 1,
            lanes,
            a64: false,
            header,
        }))
    };
    let kind = KIND.get32(desc);
    match kind {
        dc0::OWORD_READ | dc0::OWORD_ALIGNED_READ | dc0::OWORD_WRITE => {
            let code = BLOCK_SIZE.get32(desc);
            let (length, start) = if HWORDS.is_set32(desc) { hwords(code)? } else { owords(code)? };
            if !header {
                return Err(FaultKind::Length);
            }
            let store = kind == dc0::OWORD_WRITE;
            // The aligned form has a byte offset, the others count owords, but not from the stateless base.
            let owords = store && !matches!(index, 0xfd | 0xff);
            Ok(Operation::Block(Block { store, index, length, start, a64: false, owords }))
        }
        dc0::DWORD_READ | dc0::DWORD_WRITE => scattered(kind == dc0::DWORD_WRITE, 4, 4),
        // Elements fill a dword; the descriptor has the bytes in memory.
        dc0::BYTE_READ | dc0::BYTE_WRITE => match ELEMENT.get32(desc) {
            code @ 0..=2 => scattered(kind == dc0::BYTE_WRITE, 1 << code, 4),
            _ => Err(FaultKind::Message),
        },
        dc0::QWORD_READ | dc0::QWORD_WRITE => scattered(kind == dc0::QWORD_WRITE, 8, 8),
        dc0::FENCE => Ok(Operation::Fence { response: RESPONSE.get32(desc) }),
        _ => Err(FaultKind::Message),
    }
}

/// Decodes messages of data port 1 to buffers; `None` for the others.
pub fn decode_1(desc: u32) -> Result<Option<Operation>, FaultKind> {
    let index = BINDING.get32(desc) as u8;
    let header = HEADER.is_set32(desc);
    match KIND.get32(desc) {
        kind @ (dc1::UNTYPED_READ | dc1::UNTYPED_WRITE | dc1::A64_UNTYPED_READ | dc1::A64_UNTYPED_WRITE) => {
            let lanes = match UNTYPED_LANES.get32(desc) {
                1 => 16,
                2 => 8,
                _ => return Err(FaultKind::Message),
            };
            Ok(Some(Operation::Scattered(Scattered {
                store: matches!(kind, dc1::UNTYPED_WRITE | dc1::A64_UNTYPED_WRITE),
                index,
                memory_size: 4,
                register_size: 4,
                components: DISABLED.get32(!desc),
                lanes,
                a64: matches!(kind, dc1::A64_UNTYPED_READ | dc1::A64_UNTYPED_WRITE),
                header,
            })))
        }
        kind @ (dc1::A64_SCATTERED_READ | dc1::A64_SCATTERED_WRITE) => {
            let code = A64_COUNT.get32(desc);
            // Bytes of an element in memory and in registers, and their number.
            let (memory_size, register_size, count) = match A64_ELEMENT.get32(desc) {
                0 if code < 3 => (1 << code, 4, 1),
                1 => (4, 4, 1 << code),
                2 => (8, 8, 1 << code),
                _ => return Err(FaultKind::Message),
            };
            Ok(Some(Operation::Scattered(Scattered {
                store: kind == dc1::A64_SCATTERED_WRITE,
                index,
                memory_size,
                register_size,
                components: (1 << count) - 1,
                lanes: if A64_SIXTEEN.is_set32(desc) { 16 } else { 8 },
                a64: true,
                header,
            })))
        }
        kind @ (dc1::A64_BLOCK_READ | dc1::A64_BLOCK_WRITE) => {
            let code = BLOCK_SIZE.get32(desc);
            // Owords, aligned or not, or hwords.
            let (length, start) = match A64_UNITS.get32(desc) {
                0 | 1 => owords(code)?,
                3 => hwords(code)?,
                _ => return Err(FaultKind::Message),
            };
            if !header {
                return Err(FaultKind::Length);
            }
            let store = kind == dc1::A64_BLOCK_WRITE;
            Ok(Some(Operation::Block(Block { store, index, length, start, a64: true, owords: false })))
        }
        _ => Ok(None),
    }
}

impl Operation {
    /// Executes the message.
    pub fn execute(&self, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
        match self {
            Operation::Block(from) => block(from, sent),
            Operation::Scratch(from) => scratch(from, sent),
            Operation::Scattered(from) => scattered(from, sent),
            Operation::Fence { response } => {
                access::fence(sent.operands, *response, sent.thread);
                Ok(())
            }
        }
    }
}

/// Moves a block. One with bytes outside its surface is counted once.
fn block(block: &Block, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Sent { operands, thread, lanes, environment } = sent;
    let registers = (block.start + block.length).div_ceil(REG as u32);
    let (stored, loaded) = if block.store { (registers, 0) } else { (0, registers) };
    operands.check_lengths(thread, 1 + stored, loaded)?;
    let header = operands.payload(thread, 0, 0);
    let offset = if block.a64 {
        u64::from(thread.u32(header)) | u64::from(thread.u32(header + 4)) << 32
    } else {
        u64::from(thread.u32(header + 8))
    };
    let offset = if block.owords { offset * 16 } else { offset };
    let surface = if block.a64 { Some(Surface::Flat) } else { operands.surface(thread, block.index) };
    let slm = surface.is_none();
    let surface = surface.unwrap_or(Surface::Flat);
    let mut buffer = [0u8; 512];
    let bytes = &mut buffer[..block.length as usize];
    let access = if block.store {
        for (index, byte) in (block.start..).zip(bytes.iter_mut()) {
            *byte = thread.file[operands.payload_byte(thread, 1, index)];
        }
        access::write(slm, surface, offset, DWORD, bytes, environment)?
    } else if let Some(dst) = operands.dst {
        let access = access::read(slm, surface, offset, DWORD, bytes, environment)?;
        for (index, byte) in (block.start..).zip(bytes.iter()) {
            thread.file[((dst + index) & thread.grf_mask) as usize] = *byte;
        }
        access
    } else {
        Access::Inside
    };
    environment.note(access, lanes.instruction, 0);
    Ok(())
}

/// Moves registers to or from scratch memory. The header's dword 5 has the surface as r0 has it (EU-041); a dword is written
/// if the channel of its number is enabled.
fn scratch(scratch: &Scratch, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Sent { operands, thread, lanes, environment } = sent;
    let (stored, loaded) = if scratch.store { (scratch.count, 0) } else { (0, scratch.count) };
    operands.check_lengths(thread, 1 + stored, loaded)?;
    let state = (thread.u32(((operands.src0 + 20) & thread.grf_mask) as usize) & !0x3ff) >> 4;
    let surface = Surface::State(state, number(thread));
    let dwords = scratch.count * 8;
    let written = |dword: u32| lanes.no_mask || lanes.enabled >> (dword % u32::from(lanes.size.max(1))) & 1 != 0;
    if !scratch.store {
        let mut buffer = [0u8; 8 * REG];
        let bytes = &mut buffer[..dwords as usize * 4];
        let access = access::read(false, surface, scratch.offset.into(), DWORD, bytes, environment)?;
        environment.note(access, lanes.instruction, 0);
        let Some(dst) = operands.dst else { return Ok(()) };
        for (index, dword) in (0..).zip(bytes.as_chunks::<4>().0).filter(|(index, _)| written(*index)) {
            thread.set_u32(((dst + index * 4) & thread.grf_mask) as usize, u32::from_le_bytes(*dword));
        }
        return Ok(());
    }
    for index in (0..dwords).filter(|index| written(*index)) {
        let at = operands.payload(thread, 1, index);
        let bytes = thread.u32(at).to_le_bytes();
        let at = (scratch.offset + index * 4).into();
        let access = access::write(false, surface, at, DWORD, &bytes, environment)?;
        environment.note(access, lanes.instruction, index);
    }
    Ok(())
}

/// Moves elements of lanes.
fn scattered(scattered: &Scattered, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Sent { operands, thread, lanes, environment } = sent;
    let surface = if scattered.a64 { Some(Surface::Flat) } else { operands.surface(thread, scattered.index) };
    let slm = surface.is_none();
    let surface = surface.unwrap_or(Surface::Flat);
    let first = u32::from(scattered.header);
    let address_size = if scattered.a64 { 8 } else { 4 };
    let address_registers = scattered.lanes * address_size / REG as u32;
    let registers = scattered.components.count_ones() * scattered.lanes * scattered.register_size / REG as u32;
    let (stored, loaded) = if scattered.store { (registers, 0) } else { (0, registers) };
    operands.check_lengths(thread, first + address_registers + stored, loaded)?;
    for lane in (0..scattered.lanes.min(u32::from(lanes.size).max(8))).filter(|lane| lanes.enabled >> lane & 1 != 0) {
        let at = operands.payload(thread, first, lane * address_size / 4);
        let mut address = u64::from(thread.u32(at));
        if scattered.a64 {
            address |= u64::from(thread.u32(at + 4)) << 32;
        }
        let components = (0..MOST_COMPONENTS).filter(|component| scattered.components >> component & 1 != 0);
        for (slot, component) in (0..).zip(components) {
            let address = address.wrapping_add(u64::from(component * scattered.memory_size));
            let mut buffer = [0u8; 8];
            let bytes = &mut buffer[..scattered.memory_size as usize];
            let inside = slot * (scattered.lanes * scattered.register_size) + lane * scattered.register_size;
            let fault = |fault: MessageFault| fault.in_lane(lane);
            let access = if scattered.store {
                let at = operands.payload(thread, first + address_registers, inside / 4);
                for (index, byte) in bytes.iter_mut().enumerate() {
                    *byte = thread.file[(at + index) & thread.grf_mask as usize];
                }
                access::write(slm, surface, address, scattered.memory_size, bytes, environment).map_err(fault)?
            } else if let Some(dst) = operands.dst {
                let access =
                    access::read(slm, surface, address, scattered.memory_size, bytes, environment).map_err(fault)?;
                for (index, byte) in (0..).zip(&buffer[..scattered.register_size as usize]) {
                    thread.file[((dst + inside + index) & thread.grf_mask) as usize] = *byte;
                }
                access
            } else {
                Access::Inside
            };
            environment.note(access, lanes.instruction, lane);
        }
    }
    Ok(())
}
