// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Typed reads, writes and atomic operations of images, and media blocks (ISA-226, EU-045, EU-084).

use super::operands::{MessageFault, Operands, Sent};
use super::texel::{read_texel, write_texel};
use crate::exec::environment::Environment;
use crate::exec::fault::{AccessKind, FaultKind, MemoryFault};
use crate::exec::memory::{Access, Atomic, Channel, ChannelOrder, Image, Surface};
use crate::exec::thread::{REG, Thread};
use crate::isa::descriptor::{
    ATOMIC, ATOMIC_RETURNS, ATOMIC_UPPER, BINDING, DISABLED, HEADER, KIND, MEDIA_PITCH, SLOT_GROUP, dc1,
};

/// Lanes of a typed message.
const LANES: u32 = 8;
/// Largest number of coordinates of a typed message: u, v, r and the level, which is that of the surface without it.
const COORDINATES: u32 = 4;
/// Number of the coordinate that is the level.
const LEVEL: u32 = 3;

/// Operations by their codes (Mesa `BRW_AOP_*`, IGC `GenISA_intatomictyped`). The commuted subtraction, the decrement that returns
/// the new value and the exchange of 64 bits are in no kernel of these compilers.
const ATOMICS: [(u32, Atomic); 13] = [
    (1, Atomic::And),
    (2, Atomic::Or),
    (3, Atomic::Xor),
    (4, Atomic::Store),
    (5, Atomic::Inc),
    (6, Atomic::Dec),
    (7, Atomic::Add),
    (8, Atomic::Sub),
    (10, Atomic::Smax),
    (11, Atomic::Smin),
    (12, Atomic::Umax),
    (13, Atomic::Umin),
    (14, Atomic::Cas),
];

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Typed(TypedAccess),
    Atomic(TypedAtomic),
    Media(MediaBlock),
}

/// A typed access of eight lanes.
#[derive(Clone, Copy, Debug)]
pub struct TypedAccess {
    store: bool,
    /// Index in the binding table.
    index: u8,
    /// Bit `n`: component `n` is transferred.
    components: u32,
    /// The payload begins with a header, of which nothing is used.
    header: bool,
    /// First of the eight lanes of the instruction.
    first: u32,
}

/// An atomic operation on the texels of eight lanes.
#[derive(Clone, Copy, Debug)]
pub struct TypedAtomic {
    operation: Atomic,
    /// The texels before are returned.
    returns: bool,
    /// Index in the binding table.
    index: u8,
    /// The payload begins with a header, of which nothing is used.
    header: bool,
    /// First of the eight lanes of the instruction.
    first: u32,
}

/// A rectangle of bytes of an image. EU-045.
#[derive(Clone, Copy, Debug)]
pub struct MediaBlock {
    store: bool,
    /// Index in the binding table.
    index: u8,
}

/// The first of the eight lanes of a message for the lower or the upper slots. The mask of enabled lanes begins at the
/// instruction's first channel, so that the slots are the lower or the upper eight lanes of an instruction of 16. An instruction of
/// eight lanes has those of its half of 16 channels, which compilers number either way (IGC as the lower slots, Mesa's brw as the
/// upper ones).
fn first_lane(upper: bool, size: u8, channel: u8) -> Result<u32, FaultKind> {
    match (upper, size) {
        (false, _) => Ok(0),
        (true, 16) => Ok(LANES),
        (true, 8) if u32::from(channel) & LANES != 0 => Ok(0),
        _ => Err(FaultKind::Message),
    }
}

/// Decodes typed and media messages of data port 1.
pub fn decode(desc: u32, size: u8, channel: u8) -> Result<Operation, FaultKind> {
    let index = BINDING.get32(desc) as u8;
    let header = HEADER.is_set32(desc);
    match KIND.get32(desc) {
        kind @ (dc1::TYPED_READ | dc1::TYPED_WRITE) => {
            let first = match SLOT_GROUP.get32(desc) {
                slots @ 1..=2 => first_lane(slots == 2, size, channel)?,
                _ => return Err(FaultKind::Message),
            };
            let components = DISABLED.get32(!desc);
            Ok(Operation::Typed(TypedAccess { store: kind == dc1::TYPED_WRITE, index, components, header, first }))
        }
        dc1::TYPED_ATOMIC => {
            let code = ATOMIC.get32(desc);
            let (_, operation) = ATOMICS.iter().find(|(known, _)| *known == code).ok_or(FaultKind::Message)?;
            Ok(Operation::Atomic(TypedAtomic {
                operation: *operation,
                returns: ATOMIC_RETURNS.is_set32(desc),
                index,
                header,
                first: first_lane(ATOMIC_UPPER.is_set32(desc), size, channel)?,
            }))
        }
        // A distance between rows other than that of the surface, and messages without the header that has the place.
        dc1::MEDIA_READ | dc1::MEDIA_WRITE if MEDIA_PITCH.is_set32(desc) || !header => Err(FaultKind::Message),
        kind @ (dc1::MEDIA_READ | dc1::MEDIA_WRITE) => {
            Ok(Operation::Media(MediaBlock { store: kind == dc1::MEDIA_WRITE, index }))
        }
        _ => Err(FaultKind::Message),
    }
}

/// The surface of a message and its image. Shared local memory has none.
fn image(
    operands: &Operands,
    thread: &Thread,
    index: u8,
    kind: AccessKind,
    environment: &mut Environment<'_>,
) -> Result<(Surface, Image), MessageFault> {
    let surface = operands.surface(thread, index).ok_or(FaultKind::Surface)?;
    let image = environment.memory.image(surface);
    let image = image.map_err(|fault| MessageFault::of_access(fault, kind, surface, 0))?;
    Ok((surface, image))
}

impl Operation {
    /// Executes the message.
    pub fn execute(&self, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
        match self {
            Operation::Typed(from) => typed(from, sent),
            Operation::Atomic(from) => atomic(from, sent),
            Operation::Media(from) => media(from, sent),
        }
    }
}

/// The registers of a typed message before its data: a header, and one of eight lanes for each coordinate in texels. There are
/// those of the image, and perhaps more, of which the fourth is the level and others are ignored.
struct Coordinates {
    /// Register of the first one.
    first: u32,
    /// Those that the image has.
    used: u32,
    /// Those in the payload.
    count: u32,
}

/// A texel that a lane names, and the level that has it; without the level if that does not exist.
struct Texel {
    at: [u32; 3],
    level: Option<Image>,
    inside: bool,
}

impl Coordinates {
    /// Those of a message with so many registers of data in its payload and in its response.
    fn new(
        operands: &Operands,
        thread: &Thread,
        image: &Image,
        header: bool,
        [stored, loaded]: [u32; 2],
    ) -> Result<Coordinates, MessageFault> {
        let first = u32::from(header);
        let used = image.dimensions.count();
        operands.check_lengths(thread, first + used + stored, loaded)?;
        let count = operands.payload_length(thread) - first - stored;
        if count > COORDINATES {
            return Err(FaultKind::Length.into());
        }
        Ok(Coordinates { first, used, count })
    }

    /// Register of the data.
    fn data(&self) -> u32 {
        self.first + self.count
    }

    /// The texel of a lane.
    #[inline]
    fn texel(&self, operands: &Operands, thread: &Thread, image: &Image, lane: u32) -> Texel {
        let register = |index| thread.u32(operands.payload(thread, self.first + index, lane));
        let at @ [x, y, z] = [0, 1, 2].map(|index| if index < self.used { register(index) } else { 0 });
        let number = if self.count > LEVEL { register(LEVEL) } else { 0 };
        let number = u8::try_from(number).ok().filter(|number| *number < image.levels.count.max(1));
        let level = number.map(|number| if number == 0 { *image } else { image.level(number) });
        let inside = level.as_ref().is_some_and(|image| x < image.width && y < image.height && z < image.depth);
        Texel { at, level, inside }
    }
}

/// Executes a typed access. Behind the coordinates are the components that are written. Lanes outside the image read 0 and write
/// nothing; they are counted. Components without a channel in the format read 0, the last 1.
fn typed(typed: &TypedAccess, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Sent { operands, thread, lanes, environment } = sent;
    let kind = if typed.store { AccessKind::Write } else { AccessKind::Read };
    let (surface, image) = image(operands, thread, typed.index, kind, environment)?;
    let data = typed.components.count_ones();
    let transferred = if typed.store { [data, 0] } else { [0, data] };
    let coordinates = Coordinates::new(operands, thread, &image, typed.header, transferred)?;
    let components = (0..4).filter(|component| typed.components >> component & 1 != 0);
    for lane in (0..LANES).filter(|lane| lanes.enabled >> (typed.first + lane) & 1 != 0) {
        let Texel { at, level, inside } = coordinates.texel(operands, thread, &image, lane);
        let fault = |fault: MemoryFault| {
            MessageFault::of_access(fault, kind, surface, image.texel(at)).in_lane(typed.first + lane)
        };
        let image = level.as_ref().filter(|_| inside);
        if typed.store {
            let mut texel = [0; 4];
            for (slot, component) in (coordinates.data()..).zip(components.clone()) {
                texel[component] = thread.u32(operands.payload(thread, slot, lane));
            }
            if let Some(image) = image {
                write_texel(environment.memory, image, at, texel).map_err(fault)?;
            }
        } else if let Some(dst) = operands.dst {
            let texel = match image {
                Some(image) => read_texel(environment.memory, image, at).map_err(fault)?,
                None => [0; 4],
            };
            for (slot, component) in (0..).zip(components.clone()) {
                let into = (dst + slot * REG as u32 + lane * 4) & thread.grf_mask;
                thread.set_u32(into as usize, texel[component]);
            }
        }
        if !inside {
            environment.note(Access::Outside, lanes.instruction, typed.first + lane);
        }
    }
    Ok(())
}

/// Executes an atomic operation on texels of one channel of 32 bits. Behind the coordinates are its operands, of an exchange first
/// what is compared. Lanes outside the image return 0 and change nothing; they are counted.
fn atomic(from: &TypedAtomic, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Sent { operands, thread, lanes, environment } = sent;
    let (surface, image) = image(operands, thread, from.index, AccessKind::Atomic, environment)?;
    let format = image.format;
    let one_channel = matches!(format.order, ChannelOrder::R | ChannelOrder::Depth);
    if !one_channel || !matches!(format.channel, Channel::Uint32 | Channel::Sint32 | Channel::Float32) {
        return Err(FaultKind::Image.into());
    }
    let transferred = [from.operation.operands() as u32, u32::from(from.returns)];
    let coordinates = Coordinates::new(operands, thread, &image, from.header, transferred)?;
    let [stored, _] = transferred;
    for lane in (0..LANES).filter(|lane| lanes.enabled >> (from.first + lane) & 1 != 0) {
        let Texel { at, level, inside } = coordinates.texel(operands, thread, &image, lane);
        let operand = |index| {
            let register = coordinates.data() + index;
            if index < stored { u64::from(thread.u32(operands.payload(thread, register, lane))) } else { 0 }
        };
        let values = [operand(0), operand(1)];
        let before = match level.as_ref().filter(|_| inside) {
            None => 0,
            Some(level) => environment.memory.atomic_texel(level, at, from.operation, values).map_err(|fault| {
                let fault = MessageFault::of_access(fault, AccessKind::Atomic, surface, image.texel(at));
                fault.in_lane(from.first + lane)
            })?,
        };
        if let (Some(dst), true) = (operands.dst, from.returns) {
            thread.set_u32(((dst + lane * 4) & thread.grf_mask) as usize, before as u32);
        }
        if !inside {
            environment.note(Access::Outside, lanes.instruction, from.first + lane);
        }
    }
    Ok(())
}

/// Executes a media block message. The header has the place of the first byte, signed: bytes in dword 0, rows in dword
/// 1; and in dword 2 the width in bytes (bits 5:0) and the number of rows (21:16), each less 1. Rows of the block are
/// packed, each padded to a power of two of at least four bytes. The width of the image counts dwords. The message is that of the
/// thread, and not of its lanes: it is sent as a whole if one lane is enabled, and otherwise not at all (IGT: the predicated write
/// of `gpgpu_shader__write_on_exception`).
///
/// Bytes outside the image read 0 and are not written; each row with one is counted.
fn media(media: &MediaBlock, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Sent { operands, thread, lanes, environment } = sent;
    if lanes.enabled == 0 {
        return Ok(());
    }
    let kind = if media.store { AccessKind::Write } else { AccessKind::Read };
    let (surface, image) = image(operands, thread, media.index, kind, environment)?;
    operands.check_lengths(thread, 1, 0)?;
    let header = |dword| thread.u32(operands.payload(thread, 0, dword));
    let (x, y) = (i64::from(header(0).cast_signed()), i64::from(header(1).cast_signed()));
    let (width, height) = ((header(2) & 63) + 1, (header(2) >> 16 & 63) + 1);
    let stride = width.next_power_of_two().max(4);
    let registers = (height * stride).div_ceil(REG as u32);
    let (stored, loaded) = if media.store { (registers, 0) } else { (0, registers) };
    operands.check_lengths(thread, 1 + stored, loaded)?;
    let row_bytes = image.media_row_bytes().cast_signed();
    for row in 0..height {
        let line = y + i64::from(row);
        // Columns of the block that are inside the image.
        let column = |at: i64| at.clamp(0, i64::from(width)) as usize;
        let columns =
            if (0..i64::from(image.height)).contains(&line) { column(-x)..column(row_bytes - x) } else { 0..0 };
        // Where columns are inside, the first is at a place inside the image.
        let first = (x + columns.start as i64) as u32;
        let line = line as u32;
        let fault = |fault| MessageFault::of_access(fault, kind, surface, image.media_byte(first, line));
        let mut buffer = [0; 64];
        let outside = columns.len() < width as usize;
        if media.store {
            for (byte, at) in buffer.iter_mut().zip(row * stride..).take(width as usize) {
                *byte = thread.file[operands.payload_byte(thread, 1, at)];
            }
            if !columns.is_empty() {
                environment.memory.write_row(&image, first, line, &buffer[columns]).map_err(fault)?;
            }
        } else if let Some(dst) = operands.dst {
            if !columns.is_empty() {
                environment.memory.read_row(&image, first, line, &mut buffer[columns]).map_err(fault)?;
            }
            for (byte, at) in buffer.iter().zip(dst + row * stride..).take(width as usize) {
                thread.file[(at & thread.grf_mask) as usize] = *byte;
            }
        }
        if outside {
            environment.note(Access::Outside, lanes.instruction, 0);
        }
    }
    Ok(())
}
