// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Levels of detail: from derivatives, within the bounds of samplers and surfaces, and the levels and the filter that they choose.
//! EU-080.

use crate::exec::memory::{Dimensions, Filter, Image, LevelFilter, Sampler};

/// Steps in a level.
const STEPS: f32 = 256.0;

/// How coordinates change from one pixel to its neighbours: by their differences in a row and in a column.
#[derive(Clone, Copy, Debug, Default)]
pub struct Derivatives {
    pub x: [f32; 3],
    pub y: [f32; 3],
}

/// The area of an image for which a color stands.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// Level of detail, without bias.
    pub level: f32,
    /// Number of weighted means along the longer axis, 1 to 16.
    pub probes: u32,
    /// The longer axis, in the units of the coordinates.
    pub axis: [f32; 3],
}

impl Derivatives {
    /// The area that they describe. `axes` coordinates are used; with a sampler of normalized coordinates, and on the face of a
    /// cube, they are multiplied by the size of the image.
    pub fn area(&self, image: &Image, sampler: &Sampler, axes: usize, anisotropic: bool) -> Area {
        let limits = [image.width, image.height, image.depth];
        let square = |change: &[f32; 3]| {
            let texels = (0..axes)
                .map(|index| if sampler.normalized { change[index] * limits[index] as f32 } else { change[index] });
            texels.map(|texels| texels * texels).sum::<f32>()
        };
        let (x, y) = (square(&self.x), square(&self.y));
        let (longer, shorter, axis) = if y > x { (y, x, self.y) } else { (x, y, self.x) };
        // Half of the logarithm of a square is that of the length.
        let level = longer.log2() * 0.5;
        let plane = image.dimensions == Dimensions::Two || image.dimensions == Dimensions::Three && image.array;
        if !(anisotropic && plane && !image.cube && longer > 0.0) {
            return Area { level, probes: 1, axis };
        }
        let ratio = (longer / shorter).sqrt();
        let most = f32::from(sampler.anisotropy.clamp(1, 16));
        let probes = if ratio < most { ratio.ceil().max(1.0) } else { most };
        Area { level: level - probes.log2(), probes: probes as u32, axis }
    }
}

/// What a level of detail chooses.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'s> {
    pub filter: &'s Filter,
    /// The level, from that of the image on.
    pub level: u8,
    /// The next level, if its weight is not 0.
    pub next: Option<(u8, f32)>,
    /// The level of detail within its bounds.
    pub clamped: f32,
}

impl<'s> Choice<'s> {
    /// Chooses by a level of detail with its bias. `least` is the least level of the message. A level that is no number is the
    /// least one.
    pub fn new(image: &Image, sampler: &'s Sampler, level: f32, least: f32) -> Choice<'s> {
        let [low, high] = sampler.level.map(|level| f32::from(level) / STEPS);
        let low = low.max(f32::from(image.levels.least) / STEPS).max(least);
        let clamped = level.max(low).min(high);
        let decides = if sampler.clamps_first { clamped } else { level };
        let filter = if decides > 0.0 { &sampler.minify } else { &sampler.magnify };
        if image.levels.count <= 1 {
            return Choice { filter, level: 0, next: None, clamped };
        }
        let last = image.levels.count - 1;
        // A float is cast to the nearest number of the type.
        let number = |level: f32| (level.floor() as u8).min(last);
        let (level, next) = match sampler.levels {
            LevelFilter::None => (number(low), None),
            LevelFilter::Nearest => (number(clamped + 0.5), None),
            LevelFilter::Linear => {
                let level = number(clamped);
                let weight = ((clamped - clamped.floor()) * STEPS).floor() / STEPS;
                let next = (clamped > 0.0 && level < last && weight > 0.0).then_some((level + 1, weight));
                (level, next)
            }
        };
        Choice { filter, level, next, clamped }
    }
}
