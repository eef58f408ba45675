// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages to the sampler, as far as OpenCL uses them: sample, load and size of images without mip levels (group R of the
//! document on the ISA).

use super::operands::{MessageFault, Sent};
use super::texel::read_texel;
use crate::exec::fault::{AccessKind, FaultKind};
use crate::exec::memory::{
    Addressing, ChannelKind, ChannelOrder, Dimensions, Image, Memory, MemoryFault, Sampler, Surface,
};
use crate::exec::thread::{REG, Thread};
use crate::float::{f16_to_f32, f32_to_f16};
use crate::isa::descriptor::{
    BINDING, HEADER, SAMPLER, SAMPLER_KIND, SAMPLER_LANES, SAMPLER_NARROW, SAMPLER_NARROW_RESULT,
};

/// A decoded descriptor. ISA-250.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    kind: Kind,
    level: Level,
    index: u8,
    sampler: u8,
    lanes: u32,
    header: bool,
    /// Parameters have 16 bits.
    narrow: bool,
    /// Channels of the result have 16 bits.
    narrow_result: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Coordinates are floats: the number of parameters before them, and from one to the next.
    Sample(u32, u32),
    /// Coordinates are integers; with the level as third parameter if true.
    Load(bool),
    /// Size of the image.
    Size,
    /// Number of samples of a texel.
    Samples,
}

/// Where the level of detail of a sample comes from. Images have one level: it only chooses the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Zero,
    /// The first parameter: the level, or what is added to it.
    Parameter,
}

/// Decodes a descriptor. ISA-251.
pub fn decode(desc: u32) -> Result<Sample, FaultKind> {
    let kind = match SAMPLER_KIND.get32(desc) {
        0 | 24 => Kind::Sample(0, 1),
        // Bias or level; images have one level.
        1 | 2 => Kind::Sample(1, 1),
        // Two derivatives behind each coordinate.
        4 => Kind::Sample(0, 3),
        7 => Kind::Load(true),
        26 => Kind::Load(false),
        10 => Kind::Size,
        11 => Kind::Samples,
        _ => return Err(FaultKind::Message),
    };
    let lanes = match SAMPLER_LANES.get32(desc) {
        1 => 8,
        2 => 16,
        _ => return Err(FaultKind::Message),
    };
    let level = if matches!(kind, Kind::Sample(1, _)) { Level::Parameter } else { Level::Zero };
    Ok(Sample {
        kind,
        level,
        index: BINDING.get32(desc) as u8,
        sampler: SAMPLER.get32(desc) as u8,
        lanes,
        header: HEADER.is_set32(desc),
        narrow: SAMPLER_NARROW.is_set32(desc),
        narrow_result: SAMPLER_NARROW_RESULT.is_set32(desc),
    })
}

/// Executes a message.
pub fn execute(sample: &Sample, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Sent { operands, thread, lanes, environment } = sent;
    let Some(dst) = operands.dst else { return Ok(()) };
    let surface = match sample.index {
        0xfc => Surface::Bindless(operands.state_offset(thread)),
        index => Surface::Binding(index),
    };
    let memory = &mut *environment.memory;
    let fault = |fault: MemoryFault| MessageFault::of_access(fault, AccessKind::Read, surface, 0);
    let image = memory.image(surface).map_err(fault)?;
    operands.check_lengths(thread, u32::from(sample.header), 0)?;
    let header = |index| thread.u32(operands.payload(thread, 0, index));
    let (mask, offsets, pointer) =
        if sample.header { (header(2) >> 12 & 15, header(2) & 0xfff, header(3)) } else { (0, 0, 0) };
    // Distances that are added to the coordinates, which OpenCL does not have.
    if offsets != 0 {
        return Err(FaultKind::Message.into());
    }
    // EU-081: bit 0 of the pointer selects the bindless samplers; otherwise the sampler is that of the table.
    let pointer = (pointer & 1 != 0).then_some(pointer & !31);
    let sampler = match sample.kind {
        Kind::Sample(..) => Some(memory.sampler(pointer, sample.sampler).map_err(fault)?),
        _ => None,
    };
    // A parameter or a channel of the result has at least a register.
    let registers = |narrow| if narrow || sample.lanes == 8 { 1 } else { 2 };
    let (registers, result_registers) = (registers(sample.narrow), registers(sample.narrow_result));
    let first = u32::from(sample.header);
    let (response, _) = operands.lengths(thread);
    // Parameters that are not in the payload are 0.
    let count = operands.payload_length(thread);
    for lane in (0..sample.lanes.min(u32::from(lanes.size))).filter(|lane| lanes.enabled >> lane & 1 != 0) {
        let parameter = |index: u32| {
            let register = first + index * registers;
            match (register < count, sample.narrow) {
                (false, _) => 0,
                (true, false) => thread.u32(operands.payload(thread, register, lane)),
                (true, true) => half(thread, operands.payload(thread, register, lane / 2), lane, sample.kind),
            }
        };
        let failed = |error| fault(error).in_lane(lane);
        let texel = match (sample.kind, &sampler) {
            (Kind::Size, _) => size(&image),
            (Kind::Load(level), _) => {
                let z = if level { 3 } else { 2 };
                let at = [parameter(0), parameter(1), parameter(z)].map(u32::cast_signed);
                // An image has one level.
                let color = if level && parameter(2) != 0 {
                    border(&image, [0; 4])
                } else {
                    fetch(memory, &image, at, None).map_err(failed)?
                };
                image.select(color)
            }
            (Kind::Samples, _) => [1, 0, 0, 0],
            (Kind::Sample(skip, step), Some(sampler)) => {
                let at = [0, 1, 2].map(|index| f32::from_bits(parameter(skip + index * step)));
                let level = match sample.level {
                    Level::Zero => 0.0,
                    Level::Parameter => f32::from_bits(parameter(0)),
                };
                image.select(filtered(memory, &image, sampler, level, at).map_err(failed)?)
            }
            (Kind::Sample(..), None) => return Err(FaultKind::Surface.into()),
        };
        let mut slot = 0;
        for (channel, value) in texel.iter().enumerate() {
            // ISA-200: the response has as many channels as its length says.
            if mask >> channel & 1 == 0 && (slot + 1) * result_registers <= response {
                let base = dst + slot * result_registers * REG as u32;
                if sample.narrow_result {
                    let value = narrowed(*value, image.format.channel.kind(), sample.kind);
                    thread.set_u16(((base + lane * 2) & thread.grf_mask) as usize, value);
                } else {
                    thread.set_u32(((base + lane * 4) & thread.grf_mask) as usize, *value);
                }
                slot += 1;
            }
        }
    }
    Ok(())
}

/// A parameter of 16 bits as one of 32.
fn half(thread: &Thread, at: usize, lane: u32, kind: Kind) -> u32 {
    let value = (thread.u32(at) >> ((lane & 1) * 16)) as u16;
    if matches!(kind, Kind::Sample(..)) { f16_to_f32(value).to_bits() } else { u32::from(value) }
}

/// A channel of the result in 16 bits: a half, or an integer that is clamped.
fn narrowed(value: u32, format: ChannelKind, kind: Kind) -> u16 {
    match (kind, format) {
        (Kind::Size | Kind::Samples, _) | (_, ChannelKind::Uint) => value.min(0xffff) as u16,
        (_, ChannelKind::Sint) => (value.cast_signed().clamp(-0x8000, 0x7fff) as i16).cast_unsigned(),
        _ => f32_to_f16(f32::from_bits(value)),
    }
}

/// Width, height, depth or array elements, and number of levels.
fn size(image: &Image) -> [u32; 4] {
    let height = if image.dimensions == Dimensions::One { 0 } else { image.height };
    [image.width, height, image.depth, 1]
}

/// A texel; outside the image what the sampler says, without one 0.
fn fetch(
    memory: &mut dyn Memory,
    image: &Image,
    at: [i32; 3],
    sampler: Option<&Sampler>,
) -> Result<[u32; 4], MemoryFault> {
    let limits = [image.width, image.height, image.depth];
    let used = image.dimensions.count() as usize;
    let mut position = [0; 3];
    for index in 0..used {
        let limit = limits[index].max(1);
        let Some(inside) = wrap(at[index], limit, sampler.map(|sampler| sampler.addressing[index])) else {
            return Ok(border(image, sampler.map_or([0; 4], |sampler| sampler.border)));
        };
        position[index] = inside;
    }
    read_texel(memory, image, position)
}

/// What is outside of an image: the color of the border in the components that the format has, 0 in the others, and 1 for the
/// last component of formats without it, as OpenCL has it.
fn border(image: &Image, color: [u32; 4]) -> [u32; 4] {
    let [red, green, blue, alpha] = color;
    let one = image.format.one();
    match image.format.order {
        ChannelOrder::R | ChannelOrder::Depth => [red, 0, 0, one],
        ChannelOrder::Rg => [red, green, 0, one],
        ChannelOrder::Rgba | ChannelOrder::Bgra | ChannelOrder::Srgba | ChannelOrder::Sbgra => {
            [red, green, blue, alpha]
        }
        ChannelOrder::A => [0, 0, 0, alpha],
        ChannelOrder::Intensity => [red; 4],
        ChannelOrder::Luminance => [red, red, red, one],
    }
}

/// A coordinate inside `0..limit`, or `None` on the border.
fn wrap(at: i32, limit: u32, addressing: Option<Addressing>) -> Option<u32> {
    let size = i64::from(limit);
    let at = i64::from(at);
    let inside = match addressing {
        None | Some(Addressing::Border | Addressing::HalfBorder) => at,
        Some(Addressing::Clamp) => at.clamp(0, size - 1),
        Some(Addressing::Wrap) => at.rem_euclid(size),
        Some(Addressing::Mirror) => {
            let folded = at.rem_euclid(2 * size);
            if folded < size { folded } else { 2 * size - 1 - folded }
        }
        Some(Addressing::MirrorOnce) => (if at < 0 { -1 - at } else { at }).min(size - 1),
    };
    u32::try_from(inside).ok().filter(|inside| *inside < limit)
}

/// Samples at floating-point coordinates. EU-080, EU-083.
#[expect(clippy::cast_precision_loss, reason = "sizes of images are below 2^24")]
fn filtered(
    memory: &mut dyn Memory,
    image: &Image,
    sampler: &Sampler,
    level: f32,
    at: [f32; 3],
) -> Result<[u32; 4], MemoryFault> {
    let limits = [image.width, image.height, image.depth];
    let mut used = image.dimensions.count() as usize;
    let mut base = [0; 3];
    if image.array && used > 1 {
        // OpenCL: the nearest element, and the first or last one outside.
        used -= 1;
        let last = limits[used].saturating_sub(1).min(i32::MAX as u32).cast_signed();
        base[used] = (at[used].round_ties_even() as i32).clamp(0, last);
    }
    let mut scaled = [0.0; 3];
    for index in 0..used {
        let limit = limits[index] as f32;
        scaled[index] = if sampler.normalized { at[index] * limit } else { at[index] };
        if sampler.addressing[index] == Addressing::HalfBorder {
            scaled[index] = scaled[index].clamp(0.0, limit);
        }
    }
    // A level that is no number is the least one.
    let [least, greatest] = sampler.level.map(|level| f32::from(level) / 256.0);
    let filter = if level.max(least).min(greatest) > 0.0 { &sampler.minify } else { &sampler.magnify };
    if !filter.linear {
        for index in 0..used {
            let scaled = scaled[index];
            let at = if filter.rounding[index] { (scaled * 256.0).round() / 256.0 } else { scaled };
            base[index] = at.floor() as i32;
            // The edge itself is that of the last texel.
            if sampler.addressing[index] == Addressing::HalfBorder {
                base[index] = base[index].min(limits[index].saturating_sub(1).min(i32::MAX as u32).cast_signed());
            }
        }
        return fetch(memory, image, base, Some(sampler));
    }
    let mut weight = [0.0; 3];
    for index in 0..used {
        let shifted = scaled[index] - 0.5;
        base[index] = shifted.floor() as i32;
        // Weights have eight bits in hardware.
        let fraction = (shifted - shifted.floor()) * 256.0;
        weight[index] = if filter.rounding[index] { fraction.round() } else { fraction.floor() } / 256.0;
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
        let texel = fetch(memory, image, position, Some(sampler))?;
        for (sum, channel) in sum.iter_mut().zip(texel) {
            *sum += share * f32::from_bits(channel);
        }
    }
    Ok(sum.map(f32::to_bits))
}
