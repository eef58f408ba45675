// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages to data ports 0 and 1 for buffers: blocks and scattered elements (group P of the document on the ISA).

use super::{Environment, Message, MessageFault, Operation, lsc, number, typed};
use crate::exec::memory::{Access, Surface};
use crate::exec::thread::{REG, Thread};
use crate::exec::uop::{FaultKind, Uop};

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
    /// Elements of a lane that are transferred, by number.
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

/// Messages of data port 0.
pub fn decode_0(desc: u32) -> Result<Operation, FaultKind> {
    if desc >> 18 & 1 != 0 {
        if desc >> 19 & 1 == 0 {
            return Err(FaultKind::Length);
        }
        let (store, count) = (desc >> 17 & 1 != 0, 1 << (desc >> 12 & 3));
        return Ok(Operation::Scratch(Scratch { store, count, offset: (desc & 0xfff) * REG as u32 }));
    }
    let index = desc as u8;
    let kind = desc >> 14 & 31;
    let header = desc >> 19 & 1 != 0;
    let lanes = if desc >> 8 & 1 != 0 { 16 } else { 8 };
    let scattered = |store, memory_size, register_size| {
        // Of elements that fill a dword, the descriptor has the bytes in memory.
        let memory_size = match (memory_size, desc >> 10 & 3) {
            (1, 3) => return Err(FaultKind::Message),
            (1, code) => 1 << code,
            _ => memory_size,
        };
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
    match kind {
        0 | 1 | 8 => {
            let code = desc >> 8 & 7;
            let (length, start) = if desc >> 13 & 1 != 0 { hwords(code)? } else { owords(code)? };
            if !header {
                return Err(FaultKind::Length);
            }
            // The aligned form has a byte offset, the others count owords, but not from the stateless base.
            let owords = kind == 8 && !matches!(index, 0xfd | 0xff);
            Ok(Operation::Block(Block { store: kind == 8, index, length, start, a64: false, owords }))
        }
        3 => scattered(false, 4, 4),
        11 => scattered(true, 4, 4),
        4 => scattered(false, 1, 4),
        12 => scattered(true, 1, 4),
        5 => scattered(false, 8, 8),
        13 => scattered(true, 8, 8),
        7 => Ok(Operation::Fence { response: desc >> 20 & 31 }),
        _ => Err(FaultKind::Message),
    }
}

/// Messages of data port 1.
pub fn decode_1(desc: u32, size: u8) -> Result<Operation, FaultKind> {
    let index = desc as u8;
    let header = desc >> 19 & 1 != 0;
    let components = !(desc >> 8) & 15;
    match desc >> 14 & 31 {
        kind @ (1 | 9 | 0x11 | 0x19) => {
            let lanes = match desc >> 12 & 3 {
                1 => 16,
                2 => 8,
                _ => return Err(FaultKind::Message),
            };
            Ok(Operation::Scattered(Scattered {
                store: kind & 8 != 0,
                index: if kind & 0x10 != 0 { 0xff } else { index },
                memory_size: 4,
                register_size: 4,
                components,
                lanes,
                a64: kind & 0x10 != 0,
                header,
            }))
        }
        kind @ (0x14 | 0x15) => {
            let code = desc >> 8 & 7;
            // Owords, aligned or not, or hwords.
            let (length, start) = match desc >> 11 & 3 {
                0 | 1 => owords(code)?,
                3 => hwords(code)?,
                _ => return Err(FaultKind::Message),
            };
            if !header {
                return Err(FaultKind::Length);
            }
            Ok(Operation::Block(Block { store: kind == 0x15, index, length, start, a64: true, owords: false }))
        }
        _ => typed::decode(desc, size),
    }
}

/// Moves a block.
pub fn block(
    block: &Block,
    message: &Message,
    thread: &mut Thread,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    let header = message.src0 as usize;
    let offset = if block.a64 {
        u64::from(thread.u32(header)) | u64::from(thread.u32(header + 4)) << 32
    } else {
        u64::from(thread.u32(header + 8))
    };
    let offset = if block.owords { offset * 16 } else { offset };
    let surface = if block.a64 { Some(Surface::Flat) } else { message.surface(thread, block.index) };
    let (slm, surface) = (surface.is_none(), surface.unwrap_or(Surface::Flat));
    let mut buffer = [0u8; 512];
    let bytes = &mut buffer[..block.length as usize];
    let fault = |kind| (kind, None);
    if block.store {
        let at = message.payload(thread, 1, 0) as u32;
        for (index, byte) in (block.start..).zip(bytes.iter_mut()) {
            *byte = thread.file[((at + index) & thread.grf_mask) as usize];
        }
        let _ = lsc::write(slm, surface, offset, bytes, environment).map_err(fault)?;
    } else if let Some(dst) = message.dst {
        let _ = lsc::read(slm, surface, offset, bytes, environment).map_err(fault)?;
        for (index, byte) in (block.start..).zip(bytes.iter()) {
            thread.file[((dst + index) & thread.grf_mask) as usize] = *byte;
        }
    }
    Ok(())
}

/// Moves registers to or from scratch memory. The header's dword 5 has the surface as r0 has it (EU-041); a dword is written
/// if the channel of its number is enabled.
pub fn scratch(
    scratch: &Scratch,
    message: &Message,
    thread: &mut Thread,
    uop: &Uop,
    enabled: u32,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    let state = (thread.u32(((message.src0 + 20) & thread.grf_mask) as usize) & !0x3ff) >> 4;
    let surface = Surface::State(state, number(thread));
    let fault = |kind| (kind, None);
    let lanes = scratch.count * 8;
    let written = |dword: u32| uop.no_mask || enabled >> (dword % u32::from(uop.size.max(1))) & 1 != 0;
    if !scratch.store {
        let mut buffer = [0u8; 8 * REG];
        let bytes = &mut buffer[..lanes as usize * 4];
        let access = environment.memory.read(surface, scratch.offset.into(), bytes).map_err(fault)?;
        environment.note(access, uop, 0);
        let Some(dst) = message.dst else { return Ok(()) };
        for (index, dword) in (0..).zip(bytes.as_chunks::<4>().0).filter(|(index, _)| written(*index)) {
            thread.set_u32(((dst + index * 4) & thread.grf_mask) as usize, u32::from_le_bytes(*dword));
        }
        return Ok(());
    }
    for index in (0..lanes).filter(|index| written(*index)) {
        let at = message.payload(thread, 1, index);
        let bytes = thread.u32(at).to_le_bytes();
        let access = environment.memory.write(surface, (scratch.offset + index * 4).into(), &bytes).map_err(fault)?;
        environment.note(access, uop, index);
    }
    Ok(())
}

/// Moves elements of lanes.
pub fn scattered(
    scattered: &Scattered,
    message: &Message,
    thread: &mut Thread,
    uop: &Uop,
    enabled: u32,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    let surface = if scattered.a64 { Some(Surface::Flat) } else { message.surface(thread, scattered.index) };
    let (slm, surface) = (surface.is_none(), surface.unwrap_or(Surface::Flat));
    let first = u32::from(scattered.header);
    let address_size = if scattered.a64 { 8 } else { 4 };
    let address_registers = scattered.lanes * address_size / REG as u32;
    for lane in (0..scattered.lanes.min(u32::from(uop.size).max(8))).filter(|lane| enabled >> lane & 1 != 0) {
        let at = message.payload(thread, first, lane * address_size / 4);
        let mut address = u64::from(thread.u32(at));
        if scattered.a64 {
            address |= u64::from(thread.u32(at + 4)) << 32;
        }
        let components = (0..4u32).filter(|component| scattered.components >> component & 1 != 0);
        for (slot, component) in (0..).zip(components) {
            let address = address.wrapping_add(u64::from(component) * 4);
            let mut buffer = [0u8; 8];
            let bytes = &mut buffer[..scattered.memory_size as usize];
            let inside = slot * (scattered.lanes * scattered.register_size) + lane * scattered.register_size;
            let fault = |kind| (kind, Some(lane));
            let access = if scattered.store {
                let at = message.payload(thread, first + address_registers, inside / 4);
                for (index, byte) in bytes.iter_mut().enumerate() {
                    *byte = thread.file[(at + index) & thread.grf_mask as usize];
                }
                lsc::write(slm, surface, address, bytes, environment).map_err(fault)?
            } else if let Some(dst) = message.dst {
                let access = lsc::read(slm, surface, address, bytes, environment).map_err(fault)?;
                for (index, byte) in (0..).zip(&buffer[..scattered.register_size as usize]) {
                    thread.file[((dst + inside + index) & thread.grf_mask) as usize] = *byte;
                }
                access
            } else {
                Access::Inside
            };
            environment.note(access, uop, lane);
        }
    }
    Ok(())
}
