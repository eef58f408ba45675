// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Load/store cache messages to ugm, slm and tgm (group O of the document on the ISA).

mod atomic;
mod block;
mod dwords;
mod elements;
mod vectors;

pub use dwords::{consecutive_dwords, gathered_dwords};
pub use vectors::vectors_of_dwords;

use super::access;
use super::operands::{Given, MessageFault, Operands, Sent, number};
use crate::exec::environment::MessageKind;
use crate::exec::fault::FaultKind;
use crate::exec::memory::{Atomic, Surface};
use crate::exec::thread::{REG, Thread};
use crate::isa::Instruction;
use crate::isa::descriptor::{LENGTH, RESPONSE};

/// A decoded descriptor. ISA-210.
#[derive(Clone, Copy, Debug)]
pub struct Lsc {
    action: Action,
    /// Executes it.
    function: AccessFunction,
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
    /// A block: one address, consecutive elements.
    transposed: bool,
    kind: u32,
    slm: bool,
    response: u32,
}

/// Function of an access, which is chosen by the shape of its elements and the number of lanes when the descriptor is decoded.
type AccessFunction = fn(&Lsc, Sent<'_, '_>) -> Result<(), MessageFault>;

/// A message with functions for each host.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A dword of each lane.
    Dwords {
        /// Lanes: 8, 16 or 32.
        lanes: u8,
        /// It stores.
        store: bool,
        /// Addresses have 64 bits.
        wide: bool,
        /// It is for shared local memory.
        slm: bool,
    },
    /// Two to four consecutive dwords of each lane.
    Vectors {
        /// Lanes: 8, 16 or 32.
        lanes: u8,
        /// Dwords.
        count: u8,
    },
}

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Access(Lsc),
    Fence { response: u32 },
}

impl Operation {
    /// What the operation does, on shared local memory or other memory.
    pub fn message_kind(&self, slm: bool) -> MessageKind {
        match self {
            Operation::Access(Lsc { action: Action::Atomic(_), .. }) if slm => MessageKind::SlmAtomic,
            Operation::Access(Lsc { action: Action::Atomic(_), .. }) => MessageKind::Atomic,
            Operation::Access(Lsc { action: Action::Load, .. }) if slm => MessageKind::SlmRead,
            Operation::Access(Lsc { action: Action::Store, .. }) if slm => MessageKind::SlmWrite,
            _ => MessageKind::Other,
        }
    }
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
    let kind = desc >> 29 & 3;
    let slm = sfid == super::SLM;
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
    // Components from the first on without gaps are a vector. The elements of form 2 have 32 bits, in memory and in registers.
    let consecutive = if quad && components & (components + 1) != 0 { 0 } else { elements };
    let by_lanes: [AccessFunction; 3] = match (action, form, consecutive) {
        (Action::Atomic(_), ..) => [atomic::execute::<8>, atomic::execute::<16>, atomic::execute::<32>],
        _ if transposed => [block::execute; 3],
        (_, 2, 1) => [dwords::execute::<8>, dwords::execute::<16>, dwords::execute::<32>],
        (_, 2, 2) => [vectors::execute::<8, 2>, vectors::execute::<16, 2>, vectors::execute::<32, 2>],
        (_, 2, 3) => [vectors::execute::<8, 3>, vectors::execute::<16, 3>, vectors::execute::<32, 3>],
        (_, 2, 4) => [vectors::execute::<8, 4>, vectors::execute::<16, 4>, vectors::execute::<32, 4>],
        _ => [elements::execute::<8>, elements::execute::<16>, elements::execute::<32>],
    };
    let function = match size {
        16 => by_lanes[1],
        32 => by_lanes[2],
        _ => by_lanes[0],
    };
    Ok(Operation::Access(Lsc {
        action,
        function,
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

impl Lsc {
    #[inline(always)]
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

    /// Addresses of the lanes. ISA-213.
    #[inline(always)]
    fn addresses<const LANES: usize>(&self, src: u32, thread: &Thread) -> [u64; LANES] {
        match self.address_size {
            4 => thread.dwords::<LANES>(src).map(u64::from),
            8 => {
                let mut all = [0; LANES];
                let half = LANES as u32 * 4;
                let halves = [thread.dwords::<LANES>(src), thread.dwords::<LANES>(src + half)];
                for (address, [low, high]) in all.iter_mut().zip(halves.as_flattened().as_chunks::<2>().0) {
                    *address = u64::from(*low) | u64::from(*high) << 32;
                }
                all
            }
            _ => {
                let mut words = [[0; 2]; LANES];
                thread.copy_registers(src, words.as_flattened_mut());
                words.map(|word| u64::from(u16::from_le_bytes(word)))
            }
        }
    }

    /// Byte offset of the registers that are loaded or stored. A load without a destination is a prefetch, and a store without a
    /// source has nothing to store.
    #[inline(always)]
    fn data(&self, operands: &Operands) -> Option<u32> {
        if self.action == Action::Load { operands.dst } else { operands.src1 }
    }

    /// Byte offset of element `component` of all lanes in the registers that begin at `base`. ISA-214.
    #[inline(always)]
    fn component(&self, base: u32, component: u32, size: u8) -> u32 {
        base + component * (u32::from(size) * self.register_size).next_multiple_of(REG as u32)
    }

    /// The message's shape, if it is one with functions for each host: 8, 16 or 32 lanes with no predicate or one for each lane, and
    /// no operand wraps in the thread's registers.
    pub fn shape(&self, from: &Instruction, operands: &Operands, registers: u32) -> Option<Shape> {
        let lanes = from.size;
        let store = self.action == Action::Store;
        let wide = self.address_size == 8;
        let count = if self.components == 0 { self.vector } else { self.components.count_ones() };
        let has_gaps = self.components & (self.components + 1) != 0;
        let data = self.data(operands)?;
        let fits = |at: u32, bytes: u32| at + bytes <= registers * REG as u32;
        let plain = matches!(lanes, 8 | 16 | 32)
            && from.predicate <= 1
            && self.has_dwords()
            && !self.transposed
            && matches!(self.action, Action::Load | Action::Store)
            && matches!(self.address_size, 4 | 8)
            && !has_gaps
            && fits(operands.src0, u32::from(lanes) * self.address_size)
            && fits(data, u32::from(lanes) * 4 * count);
        match count {
            1 if plain => Some(Shape::Dwords { lanes, store, wide, slm: self.slm }),
            2..=4 if plain => Some(Shape::Vectors { lanes, count: count as u8 }),
            _ => None,
        }
    }

    /// Executes the message for at least one lane.
    #[inline(always)]
    pub fn execute(&self, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
        (self.function)(self, sent)
    }

    /// Elements have 32 bits, in memory and in registers.
    fn has_dwords(&self) -> bool {
        (self.memory_size, self.register_size) == (4, 4)
    }
}

impl Operation {
    /// Executes the message.
    #[inline(always)]
    pub fn execute(&self, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
        match self {
            Operation::Access(_) if sent.lanes.enabled == 0 => Ok(()),
            Operation::Access(lsc) => lsc.execute(sent),
            Operation::Fence { response } => {
                access::fence(sent.operands, *response, sent.thread);
                Ok(())
            }
        }
    }
}
