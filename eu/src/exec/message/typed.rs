// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Typed reads and writes of images, and media blocks (ISA-226, EU-045, EU-084).

use super::color::{from_memory, to_memory};
use super::{Environment, Message, MessageFault, Operation};
use crate::exec::memory::{Access, Image, Memory, Surface};
use crate::exec::thread::{REG, Thread};
use crate::exec::uop::{FaultKind, Uop};

/// A typed access of eight lanes.
#[derive(Clone, Copy, Debug)]
pub struct Typed {
    store: bool,
    index: u8,
    components: u32,
    header: bool,
    /// First of the eight lanes.
    first: u32,
}

/// A rectangle of bytes of a surface. EU-045.
#[derive(Clone, Copy, Debug)]
pub struct Media {
    store: bool,
    index: u8,
}

/// Decodes the rest of data port 1.
pub fn decode(desc: u32, size: u8) -> Result<Operation, FaultKind> {
    let (index, header) = (desc as u8, desc >> 19 & 1 != 0);
    match desc >> 14 & 31 {
        kind @ (5 | 13) => {
            // The slots are the lower or the upper eight lanes of an instruction of 16.
            let first = match (desc >> 12 & 3, size) {
                (1, _) => 0,
                (2, 16) => 8,
                _ => return Err(FaultKind::Message),
            };
            Ok(Operation::Typed(Typed { store: kind == 13, index, components: !(desc >> 8) & 15, header, first }))
        }
        // A distance between rows other than that of the surface, and messages without the header that has the place.
        4 | 10 if desc >> 8 & 7 != 0 || !header => Err(FaultKind::Message),
        kind @ (4 | 10) => Ok(Operation::Media(Media { store: kind == 10, index })),
        _ => Err(FaultKind::Message),
    }
}

fn surface(message: &Message, thread: &Thread, index: u8) -> Surface {
    message.surface(thread, index).unwrap_or(Surface::Stateless)
}

/// Executes a typed access.
pub fn execute(
    typed: &Typed,
    message: &Message,
    thread: &mut Thread,
    uop: &Uop,
    enabled: u32,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    let image = environment.memory.image(surface(message, thread, typed.index)).map_err(|kind| (kind, None))?;
    let first = u32::from(typed.header);
    // ISA-226: coordinates, one register each, then data; the sources are one payload.
    let total = (message.lengths(thread).1 + message.second_length(thread)).saturating_sub(first);
    let data = if typed.store { typed.components.count_ones() } else { 0 };
    let coordinates = total.saturating_sub(data).min(4);
    for lane in (0..8).filter(|lane| enabled >> (typed.first + lane) & 1 != 0) {
        let coordinate = |index: u32| {
            if index < coordinates { thread.u32(message.payload(thread, first + index, lane)) } else { 0 }
        };
        let [x, y, z] = position(&image, [coordinate(0), coordinate(1), coordinate(2)]);
        let inside = x < image.width && y < image.height && z < image.depth;
        let fault = |kind| (kind, Some(typed.first + lane));
        if typed.store {
            let mut texel = [0u32; 4];
            let mut slot = first + coordinates;
            for (component, value) in texel.iter_mut().enumerate() {
                if typed.components >> component & 1 != 0 {
                    *value = thread.u32(message.payload(thread, slot, lane));
                    slot += 1;
                }
            }
            if inside {
                write_texel(environment.memory, &image, [x, y, z], texel).map_err(fault)?;
            }
        } else if let Some(dst) = message.dst {
            let texel = if inside { read_texel(environment.memory, &image, [x, y, z]).map_err(fault)? } else { [0; 4] };
            let (response, _) = message.lengths(thread);
            let mut slot = 0;
            for (component, value) in texel.iter().enumerate() {
                if typed.components >> component & 1 != 0 && slot < response {
                    let at = (dst + slot * REG as u32 + lane * 4) & thread.grf_mask;
                    thread.set_u32(at as usize, *value);
                    slot += 1;
                }
            }
        }
        if !inside {
            environment.note(Access::Outside, uop, typed.first + lane);
        }
    }
    Ok(())
}

/// Coordinates of a texel; an array's element is the last of an image's coordinates.
fn position(image: &Image, [x, y, z]: [u32; 3]) -> [u32; 3] {
    match image.dimensions {
        0 | 1 => [x, 0, 0],
        2 => [x, y, 0],
        _ => [x, y, z],
    }
}

/// Reads a texel as a color: floats, or integers of an integer format.
pub fn read_texel(memory: &dyn Memory, image: &Image, [x, y, z]: [u32; 3]) -> Result<[u32; 4], FaultKind> {
    let mut buffer = [0u8; 16];
    let bytes = &mut buffer[..usize::from(image.format.texel()).min(16)];
    let _ = memory.read(Surface::Flat, memory.texel(image, x, y, z), bytes)?;
    Ok(from_memory(bytes, image.format))
}

/// Writes a color as a texel.
fn write_texel(memory: &dyn Memory, image: &Image, [x, y, z]: [u32; 3], color: [u32; 4]) -> Result<(), FaultKind> {
    let mut buffer = [0u8; 16];
    let bytes = &mut buffer[..usize::from(image.format.texel()).min(16)];
    to_memory(color, image.format, bytes);
    let _ = memory.write(Surface::Flat, memory.texel(image, x, y, z), bytes)?;
    Ok(())
}

/// Executes a media block message: header dwords 0 and 1 are the position, dword 2 the size less 1.
pub fn media(
    media: &Media,
    message: &Message,
    thread: &mut Thread,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    let fault = |kind| (kind, None);
    let image = environment.memory.image(surface(message, thread, media.index)).map_err(fault)?;
    let word = |index: usize| thread.u32((message.src0 as usize + index * 4) & thread.grf_mask as usize);
    let (x, y, size) = (word(0), word(1), word(2));
    let (width, height) = ((size & 63) + 1, (size >> 16 & 63) + 1);
    let row_bytes = u64::from(image.width) * u64::from(image.format.texel());
    // Rows are packed, each padded to a power of two of at least four bytes.
    let stride = width.next_power_of_two().max(4);
    for row in 0..height {
        let (line, start) = (u64::from(y) + u64::from(row), u64::from(x));
        for column in 0..width {
            let inside = line < u64::from(image.height) && start + u64::from(column) < row_bytes;
            let address = image.base.wrapping_add(line * image.pitch + start + u64::from(column));
            let position = row * stride + column;
            let mut byte = [0];
            if media.store {
                let at = message.payload(thread, 1, 0) + position as usize;
                byte[0] = thread.file[at & thread.grf_mask as usize];
                if inside {
                    let _ = environment.memory.write(Surface::Flat, address, &byte).map_err(fault)?;
                }
            } else if let Some(dst) = message.dst {
                if inside {
                    let _ = environment.memory.read(Surface::Flat, address, &mut byte).map_err(fault)?;
                }
                thread.file[((dst + position) & thread.grf_mask) as usize] = byte[0];
            }
        }
    }
    Ok(())
}
