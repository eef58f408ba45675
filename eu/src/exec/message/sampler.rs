// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages to the sampler, as far as OpenCL uses them: sample, load and size of images without mip levels (group R of the
//! document on the ISA).

use super::typed::read_texel;
use super::{Environment, Message, MessageFault};
use crate::exec::memory::{Addressing, Image, Memory, Sampler, Surface};
use crate::exec::thread::{REG, Thread};
use crate::exec::uop::{FaultKind, Uop};

/// A decoded descriptor. ISA-250.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    kind: Kind,
    index: u8,
    sampler: u8,
    lanes: u32,
    header: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Coordinates are floats. The number of parameters before them.
    Sample(u32),
    /// Coordinates are integers; with the level as third parameter if true.
    Load(bool),
    /// Size of the image.
    Size,
}

/// Decodes a descriptor. ISA-251.
pub fn decode(desc: u32) -> Result<Sample, FaultKind> {
    let kind = match desc >> 12 & 31 {
        0 | 24 => Kind::Sample(0),
        2 => Kind::Sample(1),
        7 => Kind::Load(true),
        26 => Kind::Load(false),
        10 => Kind::Size,
        _ => return Err(FaultKind::Message),
    };
    let lanes = match (desc >> 17 & 3, desc >> 29 & 1) {
        (1, 0) => 8,
        (2, 0) => 16,
        _ => return Err(FaultKind::Message),
    };
    // Returns of 16 bits are for other drivers.
    if desc >> 30 & 1 != 0 {
        return Err(FaultKind::Message);
    }
    Ok(Sample { kind, index: desc as u8, sampler: (desc >> 8 & 15) as u8, lanes, header: desc >> 19 & 1 != 0 })
}

/// Executes a message.
pub fn execute(
    sample: &Sample,
    message: &Message,
    thread: &mut Thread,
    uop: &Uop,
    enabled: u32,
    environment: &mut Environment<'_>,
) -> Result<(), MessageFault> {
    let fault = |kind| (kind, None);
    let Some(dst) = message.dst else { return Ok(()) };
    let surface = match sample.index {
        0xfc => Surface::Bindless(message.state_offset(thread)),
        index => Surface::Binding(index),
    };
    let memory = environment.memory;
    let image = memory.image(surface).map_err(fault)?;
    let header = |index: usize| thread.u32((message.src0 as usize + index * 4) & thread.grf_mask as usize);
    let (mask, pointer) = if sample.header { (header(2) >> 12 & 15, Some(header(3))) } else { (0, None) };
    let sampler = match sample.kind {
        Kind::Sample(_) => Some(memory.sampler(pointer, sample.sampler).map_err(fault)?),
        _ => None,
    };
    let registers = sample.lanes * 4 / REG as u32;
    let first = u32::from(sample.header);
    let (response, length) = message.lengths(thread);
    let count = length + message.second_length(thread);
    for lane in (0..sample.lanes.min(u32::from(uop.size))).filter(|lane| enabled >> lane & 1 != 0) {
        let parameter = |index: u32| {
            let register = first + index * registers;
            if register < count { thread.u32(message.payload(thread, register, lane)) } else { 0 }
        };
        let texel = match (sample.kind, &sampler) {
            (Kind::Size, _) => Ok(size(&image)),
            (Kind::Load(level), _) => {
                let z = if level { 3 } else { 2 };
                let at = [parameter(0), parameter(1), parameter(z)].map(u32::cast_signed);
                fetch(memory, &image, at, None)
            }
            (Kind::Sample(skip), Some(sampler)) => {
                let at = [0, 1, 2].map(|index| f32::from_bits(parameter(skip + index)));
                filtered(memory, &image, sampler, at)
            }
            (Kind::Sample(_), None) => Err(FaultKind::Surface),
        };
        let texel = texel.map_err(|kind| (kind, Some(lane)))?;
        let mut slot = 0;
        for (channel, value) in texel.iter().enumerate() {
            // ISA-200: the response has as many channels as its length says.
            if mask >> channel & 1 == 0 && (slot + 1) * registers <= response {
                let at = (dst + slot * registers * REG as u32 + lane * 4) & thread.grf_mask;
                thread.set_u32(at as usize, *value);
                slot += 1;
            }
        }
    }
    Ok(())
}

/// Width, height, depth or array elements, and number of levels.
fn size(image: &Image) -> [u32; 4] {
    match image.dimensions {
        0 | 1 => [image.width, 0, image.depth, 1],
        2 => [image.width, image.height, image.depth, 1],
        _ => [image.width, image.height, image.depth, 1],
    }
}

/// A texel; outside the image what the addressing says, without one 0.
fn fetch(
    memory: &dyn Memory,
    image: &Image,
    at: [i32; 3],
    addressing: Option<Addressing>,
) -> Result<[u32; 4], FaultKind> {
    let limits = [image.width, image.height, image.depth];
    let used = usize::from(image.dimensions.clamp(1, 3));
    let mut position = [0; 3];
    for index in 0..used {
        let limit = limits[index].max(1);
        let Some(inside) = wrap(at[index], limit, addressing) else { return Ok([0; 4]) };
        position[index] = inside;
    }
    read_texel(memory, image, position)
}

/// A coordinate inside `0..limit`, or `None` on the border.
fn wrap(at: i32, limit: u32, addressing: Option<Addressing>) -> Option<u32> {
    let size = i64::from(limit);
    let at = i64::from(at);
    let inside = match addressing {
        None | Some(Addressing::Border) => at,
        Some(Addressing::Clamp) => at.clamp(0, size - 1),
        Some(Addressing::Wrap) => at.rem_euclid(size),
        Some(Addressing::Mirror) => {
            let folded = at.rem_euclid(2 * size);
            if folded < size { folded } else { 2 * size - 1 - folded }
        }
    };
    u32::try_from(inside).ok().filter(|inside| *inside < limit)
}

/// Samples at floating-point coordinates. EU-080, EU-083.
#[expect(clippy::cast_precision_loss, reason = "sizes of images are below 2^24")]
fn filtered(memory: &dyn Memory, image: &Image, sampler: &Sampler, at: [f32; 3]) -> Result<[u32; 4], FaultKind> {
    let limits = [image.width, image.height, image.depth];
    let used = usize::from(image.dimensions.clamp(1, 3));
    let mut scaled = [0.0; 3];
    for index in 0..used {
        scaled[index] = if sampler.normalized { at[index] * limits[index] as f32 } else { at[index] };
    }
    let addressing = Some(sampler.addressing);
    if !sampler.linear {
        return fetch(memory, image, scaled.map(|value| value.floor() as i32), addressing);
    }
    let mut base = [0; 3];
    let mut weight = [0.0; 3];
    for index in 0..used {
        let shifted = scaled[index] - 0.5;
        base[index] = shifted.floor() as i32;
        // Weights have eight bits in hardware.
        weight[index] = ((shifted - shifted.floor()) * 256.0).round() / 256.0;
    }
    let mut sum = [0.0f32; 4];
    for corner in 0..1u32 << used {
        let mut share = 1.0;
        let mut position = base;
        for index in 0..used {
            let upper = corner >> index & 1 != 0;
            share *= if upper { weight[index] } else { 1.0 - weight[index] };
            position[index] = position[index].saturating_add(i32::from(upper));
        }
        if share == 0.0 {
            continue;
        }
        let texel = fetch(memory, image, position, addressing)?;
        for (sum, channel) in sum.iter_mut().zip(texel) {
            *sum += share * f32::from_bits(channel);
        }
    }
    Ok(sum.map(f32::to_bits))
}
