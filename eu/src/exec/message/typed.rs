// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Typed reads and writes of images, and media blocks (ISA-226, EU-045, EU-084).

use super::{Environment, Message, MessageFault, Operation};
use crate::exec::memory::{Access, ChannelKind, Image, ImageFormat, Memory, Surface};
use crate::exec::thread::{REG, Thread};
use crate::exec::uop::{FaultKind, Uop};
use crate::float::{F, HF, Round, f16_to_f32};

/// A typed access of eight lanes.
#[derive(Clone, Copy, Debug)]
pub struct Typed {
    store: bool,
    index: u8,
    components: u32,
    header: bool,
}

/// A rectangle of bytes of a surface. EU-045.
#[derive(Clone, Copy, Debug)]
pub struct Media {
    store: bool,
    index: u8,
}

/// Decodes the rest of data port 1.
pub fn decode(desc: u32) -> Result<Operation, FaultKind> {
    let (index, header) = (desc as u8, desc >> 19 & 1 != 0);
    match desc >> 14 & 31 {
        kind @ (5 | 13) => {
            Ok(Operation::Typed(Typed { store: kind == 13, index, components: !(desc >> 8) & 15, header }))
        }
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
    for lane in (0..8).filter(|lane| enabled >> lane & 1 != 0) {
        let coordinate = |index: u32| {
            if index < coordinates { thread.u32(message.payload(thread, first + index, lane)) } else { 0 }
        };
        let [x, y, z] = position(&image, [coordinate(0), coordinate(1), coordinate(2)]);
        let inside = x < image.width && y < image.height && z < image.depth;
        let fault = |kind| (kind, Some(lane));
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
            environment.note(Access::Outside, uop, lane);
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

/// Reads a texel as four channels of 32 bits: floats, or integers of an integer format.
pub fn read_texel(memory: &dyn Memory, image: &Image, [x, y, z]: [u32; 3]) -> Result<[u32; 4], FaultKind> {
    let ImageFormat { channels, bytes, kind, bgra } = image.format;
    let size = usize::from(bytes.clamp(1, 4));
    let mut buffer = [0u8; 16];
    let all = &mut buffer[..size * usize::from(channels.clamp(1, 4))];
    let _ = memory.read(Surface::Flat, memory.texel(image, x, y, z), all)?;
    let one = if matches!(kind, ChannelKind::Uint | ChannelKind::Sint) { 1 } else { 1.0f32.to_bits() };
    let mut texel = [0, 0, 0, one];
    for (channel, value) in texel.iter_mut().zip(all.chunks_exact(size)) {
        let raw = value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        *channel = from_channel(raw, bytes, kind);
    }
    if bgra {
        texel.swap(0, 2);
    }
    Ok(texel)
}

#[expect(clippy::cast_precision_loss, reason = "channels have at most 16 bits")]
fn from_channel(raw: u32, bytes: u8, kind: ChannelKind) -> u32 {
    let bits = u32::from(bytes) * 8;
    let signed = (raw << (32 - bits)).cast_signed() >> (32 - bits);
    match kind {
        ChannelKind::Uint => raw,
        ChannelKind::Sint => signed.cast_unsigned(),
        ChannelKind::Unorm => (raw as f32 / ((1u64 << bits) - 1) as f32).to_bits(),
        ChannelKind::Snorm => (signed as f32 / ((1u64 << (bits - 1)) - 1) as f32).max(-1.0).to_bits(),
        ChannelKind::Float if bytes == 2 => f16_to_f32(raw as u16).to_bits(),
        ChannelKind::Float => raw,
    }
}

/// Writes four channels as a texel.
fn write_texel(memory: &dyn Memory, image: &Image, [x, y, z]: [u32; 3], mut texel: [u32; 4]) -> Result<(), FaultKind> {
    let ImageFormat { channels, bytes, kind, bgra } = image.format;
    if bgra {
        texel.swap(0, 2);
    }
    let size = usize::from(bytes.clamp(1, 4));
    let mut buffer = [0u8; 16];
    let all = &mut buffer[..size * usize::from(channels.clamp(1, 4))];
    for (value, into) in texel.iter().zip(all.chunks_exact_mut(size)) {
        into.copy_from_slice(&to_channel(*value, bytes, kind).to_le_bytes()[..size]);
    }
    let _ = memory.write(Surface::Flat, memory.texel(image, x, y, z), all)?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "channels have at most 16 bits")]
fn to_channel(value: u32, bytes: u8, kind: ChannelKind) -> u32 {
    let bits = u32::from(bytes) * 8;
    let number = f32::from_bits(value);
    let scaled = |low: f32, most: u64| {
        let clamped = if number.is_nan() { 0.0 } else { number.clamp(low, 1.0) };
        (clamped * most as f32).round_ties_even() as i32
    };
    match kind {
        ChannelKind::Uint if bits == 32 => value,
        ChannelKind::Uint => value.min((1 << bits) - 1),
        ChannelKind::Sint if bits == 32 => value,
        ChannelKind::Sint => {
            let limit = 1i32 << (bits - 1);
            value.cast_signed().clamp(-limit, limit - 1).cast_unsigned()
        }
        ChannelKind::Unorm => scaled(0.0, (1u64 << bits) - 1).cast_unsigned(),
        ChannelKind::Snorm => scaled(-1.0, (1u64 << (bits - 1)) - 1).cast_unsigned(),
        ChannelKind::Float if bytes == 2 => HF.convert(value, F, Round::NearestEven),
        ChannelKind::Float => value,
    }
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
    let row_bytes = u64::from(image.width) * u64::from(image.format.channels) * u64::from(image.format.bytes);
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
