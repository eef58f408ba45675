// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages to the sampler (group R of the document on the ISA): samples, comparisons, gathers, loads and sizes of images with
//! levels, of their arrays and of cubes.

mod address;
mod compare;
mod cube;
mod decode;
mod filter;
mod level;

pub use decode::{Sample, decode};

use address::{View, border, fetch};
use compare::Reference;
use decode::{Header, LevelSource, Operation, Places};
use filter::{Point, Sum};
use level::{Choice, Derivatives};

use super::operands::{MessageFault, Operands, Sent};
use crate::exec::fault::{AccessKind, FaultKind};
use crate::exec::memory::{ChannelKind, Dimensions, Image, Memory, MemoryFault, Sampler, Surface};
use crate::exec::thread::{REG, Thread};
use crate::float::{f16_to_f32, f32_to_f16};

/// Largest number of lanes of a message.
const LANES: usize = 16;
/// Lanes of a quad: two columns of two rows.
const QUAD: usize = 4;

/// Where the parameters of a message are in its payload.
#[derive(Clone, Copy)]
struct Layout {
    /// Register of the first one.
    first: u32,
    /// Registers of each.
    registers: u32,
    /// Registers of the payload.
    count: u32,
    narrow: bool,
}

/// The parameters of a message.
struct Parameters<'m> {
    operands: &'m Operands,
    thread: &'m Thread,
    layout: Layout,
}

impl Parameters<'_> {
    /// A parameter that is an integer. Those that are not in the payload are 0.
    #[inline]
    fn integer(&self, lane: u32, index: u32) -> u32 {
        let register = self.layout.first + index * self.layout.registers;
        let at = |index| self.operands.payload(self.thread, register, index);
        match (register < self.layout.count, self.layout.narrow) {
            (false, _) => 0,
            (true, false) => self.thread.u32(at(lane)),
            (true, true) => u32::from((self.thread.u32(at(lane / 2)) >> ((lane & 1) * 16)) as u16),
        }
    }

    /// A parameter that is a float.
    #[inline]
    fn float(&self, lane: u32, index: u32) -> f32 {
        let value = self.integer(lane, index);
        if self.layout.narrow { f16_to_f32(value as u16) } else { f32::from_bits(value) }
    }

    fn point(&self, lane: u32, places: &Places) -> [f32; 3] {
        let [u, v, w] = places.coordinates;
        [self.float(lane, u), self.float(lane, v), self.float(lane, w)]
    }
}

/// A message with the image and the sampler that it names.
struct Query<'q> {
    sample: &'q Sample,
    places: Places,
    image: Image,
    header: Header,
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
    let dword = |index| thread.u32(operands.payload(thread, 0, index));
    let header = if sample.header { Header::new(dword(2), dword(3)) } else { Header::default() };
    let sampler =
        if sample.form.samples() { Some(memory.sampler(header.pointer, sample.sampler).map_err(fault)?) } else { None };
    // Gfx12.5 has no derivatives of directions (Mesa lowers them to levels).
    if image.cube && sample.form.level == LevelSource::Derivatives {
        return Err(FaultKind::Message.into());
    }
    // A parameter or a channel of the result has at least a register.
    let registers = |narrow| if narrow || sample.lanes == 8 { 1 } else { 2 };
    let result_registers = registers(sample.narrow_result);
    let (response, _) = operands.lengths(thread);
    let first = u32::from(sample.header);
    let count = operands.payload_length(thread);
    let query = Query { sample, places: sample.form.places(), image, header };
    // Lanes of a quad have their coordinates whether they are enabled or not, and before the first result is written.
    let mut points = [[0.0; 3]; LANES];
    let quads = matches!(sample.form.level, LevelSource::Quad | LevelSource::QuadWithBias);
    let view = sampler.as_ref().map(|sampler| View::new(&query.image, sampler, None, None));
    let needs_level = sampler.as_ref().is_some_and(|sampler| query.needs_level(sampler));
    let quads = quads && needs_level;
    // The color of one level, whatever the level of detail is: what OpenCL samples.
    let is_plain =
        sample.form.operation == Operation::Sample && !(needs_level || sample.form.compares || query.image.cube);
    let layout = Layout { first, registers: registers(sample.narrow), count, narrow: sample.narrow };
    if quads {
        let parameters = Parameters { operands, thread, layout };
        for (lane, point) in (0..sample.lanes).zip(&mut points) {
            *point = parameters.point(lane, &query.places);
        }
    }
    for lane in (0..sample.lanes.min(u32::from(lanes.size))).filter(|lane| lanes.enabled >> lane & 1 != 0) {
        let parameters = Parameters { operands, thread, layout };
        let failed = |error| fault(error).in_lane(lane);
        let texel = match (&view, sample.form.operation) {
            (_, Operation::Size) => query.size(parameters.integer(lane, 0)),
            (_, Operation::Samples) => [1, 0, 0, 0],
            (_, Operation::Load) => query.load(memory, &parameters, lane).map_err(failed)?,
            (Some(view), _) if is_plain => {
                let at = parameters.point(lane, &query.places);
                let point = Point { at, layer: layer(view, at), offsets: header.offsets };
                let color = filter::color(memory, view, &view.sampler.magnify, &point).map_err(failed)?;
                query.image.select(color)
            }
            (Some(view), _) => {
                let quad = quads.then(|| {
                    let start = lane as usize / QUAD * QUAD;
                    [0, 1, 2].map(|index| points[start + index])
                });
                query.sampled(memory, view, &parameters, lane, quad).map_err(failed)?
            }
            (None, _) => return Err(FaultKind::Surface.into()),
        };
        let mut slot = 0;
        for (channel, value) in texel.iter().enumerate() {
            // ISA-200: the response has as many channels as its length says.
            if header.mask >> channel & 1 == 0 && (slot + 1) * result_registers <= response {
                let base = dst + slot * result_registers * REG as u32;
                if sample.narrow_result {
                    let value = narrowed(*value, query.result_kind());
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

/// A channel of the result in 16 bits: a half, or an integer that is clamped.
fn narrowed(value: u32, kind: ChannelKind) -> u16 {
    match kind {
        ChannelKind::Uint => value.min(0xffff) as u16,
        ChannelKind::Sint => (value.cast_signed().clamp(-0x8000, 0x7fff) as i16).cast_unsigned(),
        _ => f32_to_f16(f32::from_bits(value)),
    }
}

impl Query<'_> {
    /// Kind of the numbers of the result.
    fn result_kind(&self) -> ChannelKind {
        match self.sample.form.operation {
            Operation::Size | Operation::Samples => ChannelKind::Uint,
            Operation::Level => ChannelKind::Float,
            _ => self.image.format.channel.kind(),
        }
    }

    /// Width, height, depth or array elements or faces, and number of levels. Sizes of a level that the image does not have are 0.
    fn size(&self, level: u32) -> [u32; 4] {
        let count = self.image.levels.count;
        let Some(level) = u8::try_from(level).ok().filter(|level| *level < count) else {
            return [0, 0, 0, count.into()];
        };
        let image = self.image.level(level);
        let height = if image.dimensions == Dimensions::One { 0 } else { image.height };
        [image.width, height, image.depth, count.into()]
    }

    /// The texel at integers. Outside of the image and of its levels it is 0 in the components that the format has.
    fn load(&self, memory: &mut dyn Memory, parameters: &Parameters<'_>, lane: u32) -> Result<[u32; 4], MemoryFault> {
        let level = self.places.level.map_or(0, |index| parameters.integer(lane, index));
        let Some(level) = u8::try_from(level).ok().filter(|level| *level < self.image.levels.count) else {
            return Ok(self.image.select(border(&self.image, [0; 4])));
        };
        let mut at = self.places.coordinates.map(|index| parameters.integer(lane, index).cast_signed());
        let elements = u32::from(self.image.array || self.image.cube);
        let axes = self.image.dimensions.count().saturating_sub(elements).max(1) as usize;
        for (at, offset) in at.iter_mut().zip(self.header.offsets).take(axes) {
            *at = at.saturating_add(offset);
        }
        let color = match level {
            0 => fetch(memory, &self.image, at, None)?,
            level => fetch(memory, &self.image.level(level), at, None)?,
        };
        Ok(self.image.select(color))
    }

    /// True if the level of detail changes what is read or returned.
    fn needs_level(&self, sampler: &Sampler) -> bool {
        self.sample.form.operation == Operation::Level
            || self.image.levels.count > 1
            || sampler.magnify != sampler.minify
            || sampler.magnify.anisotropic
    }

    /// What a sampler makes of the image at a lane's coordinates.
    fn sampled(
        &self,
        memory: &mut dyn Memory,
        view: &View<'_>,
        parameters: &Parameters<'_>,
        lane: u32,
        quad: Option<[[f32; 3]; 3]>,
    ) -> Result<[u32; 4], MemoryFault> {
        let form = self.sample.form;
        let image = &self.image;
        let sampler = view.sampler;
        let at = parameters.point(lane, &self.places);
        let reference = form.compares.then(|| Reference::new(parameters.float(lane, 0), sampler.comparison, image));
        let mut offsets = self.header.offsets;
        if form.offsets {
            let [_, v, _] = self.places.coordinates;
            for (offset, index) in offsets.iter_mut().zip(v + 1..v + 3) {
                // Six bits, signed (Mesa: `OFFUV6`).
                *offset = (parameters.integer(lane, index) << 26).cast_signed() >> 26;
            }
        }
        let view = View { reference, face: image.cube.then(|| cube::met_by(at)), ..*view };
        let point = match view.face {
            None => Point { at, layer: layer(&view, at), offsets },
            Some(face) => {
                let [s, t] = cube::projected(face, at);
                let cube = if image.array { nearest_element(parameters.float(lane, self.places.cube)) } else { 0 };
                let cube = cube.clamp(0, (image.depth / 6).saturating_sub(1).cast_signed());
                Point { at: [s, t, 0.0], layer: cube * 6 + face.cast_signed(), offsets: [0; 3] }
            }
        };
        if form.operation == Operation::Gather {
            return filter::gathered(memory, &view, &sampler.magnify, &point, self.header.component);
        }
        let color = if self.needs_level(sampler) {
            let least = self.places.least.map_or(0.0, |index| parameters.float(lane, index));
            let (level, area) = self.level(sampler, parameters, lane, quad, &view);
            let choice = Choice::new(image, sampler, level, least);
            if form.operation == Operation::Level {
                return Ok([choice.clamped.to_bits(), level.to_bits(), 0, 0]);
            }
            self.of_levels(memory, &view, &point, &choice, &area)?
        } else {
            filter::color(memory, &view, &sampler.magnify, &point)?
        };
        Ok(image.select(color))
    }

    /// The level of detail of a lane with its bias, and the area from which it comes.
    fn level(
        &self,
        sampler: &Sampler,
        parameters: &Parameters<'_>,
        lane: u32,
        quad: Option<[[f32; 3]; 3]>,
        view: &View<'_>,
    ) -> (f32, level::Area) {
        let bias = f32::from(sampler.bias) / 256.0;
        let parameter = self.places.level.map_or(0.0, |index| parameters.float(lane, index));
        let none = |level| (level, level::Area { level, probes: 1, axis: [0.0; 3] });
        let derivatives = match (self.sample.form.level, quad) {
            (LevelSource::Zero, _) => return none(0.0),
            (LevelSource::Parameter, _) => return none(parameter + bias),
            (LevelSource::Derivatives, _) => {
                let [u, v, _] = self.places.coordinates;
                let derivative = |index| [u, v].map(|place| parameters.float(lane, place + index));
                let ([ux, vx], [uy, vy]) = (derivative(1), derivative(2));
                Derivatives { x: [ux, vx, 0.0], y: [uy, vy, 0.0] }
            }
            (LevelSource::Quad | LevelSource::QuadWithBias, quad) => quad_derivatives(quad.unwrap_or_default(), view),
        };
        let anisotropic = sampler.magnify.anisotropic || sampler.minify.anisotropic;
        let area = derivatives.area(&self.image, sampler, view.axes, anisotropic);
        (area.level + bias + parameter, area)
    }

    /// The weighted mean of the levels of a choice.
    fn of_levels(
        &self,
        memory: &mut dyn Memory,
        view: &View<'_>,
        point: &Point,
        choice: &Choice<'_>,
        area: &level::Area,
    ) -> Result<[u32; 4], MemoryFault> {
        let color = probed(memory, view, choice.level, point, choice, area)?;
        let Some((next, weight)) = choice.next else { return Ok(color) };
        let mut sum = Sum::new(view.sampler.reduction);
        sum.add(1.0 - weight, color);
        sum.add(weight, probed(memory, view, next, point, choice, area)?);
        Ok(sum.color())
    }
}

/// The color of a level: the mean of those at points of the longer axis of an area, if the filter is anisotropic.
fn probed(
    memory: &mut dyn Memory,
    view: &View<'_>,
    level: u8,
    point: &Point,
    choice: &Choice<'_>,
    area: &level::Area,
) -> Result<[u32; 4], MemoryFault> {
    let image;
    let view = match level {
        0 => *view,
        level => {
            image = view.image.level(level);
            View { image: &image, ..*view }
        }
    };
    if area.probes <= 1 || !choice.filter.anisotropic {
        return filter::color(memory, &view, choice.filter, point);
    }
    let mut sum = Sum::new(view.sampler.reduction);
    let count = area.probes as f32;
    for probe in 1..=area.probes {
        let along = probe as f32 / (count + 1.0) - 0.5;
        let mut at = point.at;
        for (at, axis) in at.iter_mut().zip(area.axis) {
            *at += along * axis;
        }
        sum.add(1.0 / count, filter::color(memory, &view, choice.filter, &Point { at, ..*point })?);
    }
    Ok(sum.color())
}

/// Differences of the coordinates of a quad; on the face of a cube, of the first lane's face.
fn quad_derivatives(quad: [[f32; 3]; 3], view: &View<'_>) -> Derivatives {
    let [start, right, down] = match view.face {
        None => quad,
        Some(_) => {
            let [start, ..] = quad;
            let face = cube::met_by(start);
            quad.map(|direction| {
                let [s, t] = cube::projected(face, direction);
                [s, t, 0.0]
            })
        }
    };
    let change = |to: [f32; 3]| [0, 1, 2].map(|index: usize| to[index] - start[index]);
    Derivatives { x: change(right), y: change(down) }
}

/// The number of an array element of a coordinate (OpenCL, Vulkan: the nearest one).
fn nearest_element(at: f32) -> i32 {
    at.round_ties_even() as i32
}

/// The array element of a coordinate: the first or last one outside.
fn layer(view: &View<'_>, at: [f32; 3]) -> i32 {
    if !view.layered {
        return 0;
    }
    let index = view.axes;
    let last = view.limits()[index].saturating_sub(1).min(i32::MAX as u32).cast_signed();
    nearest_element(at[index]).clamp(0, last)
}
