// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Filters: which texels of a level are read, and what is made of them. EU-080, EU-083.

use super::address::View;
use crate::exec::memory::{Addressing, ChannelKind, Filter, Memory, MemoryFault, Reduction};

/// Where an image is sampled.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Coordinates that addressing is for.
    pub at: [f32; 3],
    /// Number of the array element, of an array and of a cube.
    pub layer: i32,
    /// What is added to the coordinates of texels.
    pub offsets: [i32; 3],
}

/// Coordinates in texels.
#[inline]
fn scaled(view: &View<'_>, point: &Point) -> [f32; 3] {
    let limits = view.limits();
    let mut scaled = [0.0; 3];
    for index in 0..view.axes {
        let limit = limits[index] as f32;
        scaled[index] = if view.sampler.normalized { point.at[index] * limit } else { point.at[index] };
        if view.sampler.addressing[index] == Addressing::HalfBorder {
            scaled[index] = scaled[index].clamp(0.0, limit);
        }
    }
    scaled
}

/// The texel with the least coordinates that a linear filter reads, and the weights of those beside it.
#[inline]
fn corner(view: &View<'_>, filter: &Filter, point: &Point) -> ([i32; 3], [f32; 3]) {
    let scaled = scaled(view, point);
    let mut base = [0; 3];
    let mut weight = [0.0; 3];
    for index in 0..view.axes {
        let shifted = scaled[index] - 0.5;
        base[index] = (shifted.floor() as i32).saturating_add(point.offsets[index]);
        // Weights have eight bits in hardware.
        let fraction = (shifted - shifted.floor()) * 256.0;
        weight[index] = if filter.rounding[index] { fraction.round() } else { fraction.floor() } / 256.0;
    }
    (base, weight)
}

/// A position with the number of the array element.
#[inline]
fn position(view: &View<'_>, mut at: [i32; 3], point: &Point) -> [i32; 3] {
    if let Some(layer) = at.get_mut(view.axes)
        && view.layered
    {
        *layer = point.layer;
    }
    at
}

/// The nearest texel.
#[inline]
fn nearest(memory: &mut dyn Memory, view: &View<'_>, filter: &Filter, point: &Point) -> Result<[u32; 4], MemoryFault> {
    let scaled = scaled(view, point);
    let limits = view.limits();
    let mut base = [0; 3];
    for index in 0..view.axes {
        let scaled = scaled[index];
        let at = if filter.rounding[index] { (scaled * 256.0).round() / 256.0 } else { scaled };
        base[index] = at.floor() as i32;
        // The edge itself is that of the last texel.
        if view.sampler.addressing[index] == Addressing::HalfBorder {
            base[index] = base[index].min(limits[index].saturating_sub(1).min(i32::MAX as u32).cast_signed());
        }
        base[index] = base[index].saturating_add(point.offsets[index]);
    }
    view.texel(memory, position(view, base, point))
}

/// The color at a point of a level. Integers are not weighted: they are those of the nearest texel.
#[inline]
pub fn color(
    memory: &mut dyn Memory,
    view: &View<'_>,
    filter: &Filter,
    point: &Point,
) -> Result<[u32; 4], MemoryFault> {
    let integers = matches!(view.image.format.channel.kind(), ChannelKind::Uint | ChannelKind::Sint);
    if !filter.linear || integers {
        return nearest(memory, view, filter, point);
    }
    let (base, weight) = corner(view, filter, point);
    let mut sum = Sum::new(view.sampler.reduction);
    for corner in 0..1u32 << view.axes {
        let mut share = 1.0;
        let mut at = base;
        for index in 0..view.axes {
            let upper = corner >> index & 1 != 0;
            share *= if upper { weight[index] } else { 1.0 - weight[index] };
            at[index] = at[index].saturating_add(i32::from(upper));
        }
        if share != 0.0 {
            sum.add(share, view.texel(memory, position(view, at, point))?);
        }
    }
    Ok(sum.color())
}

/// A component, 0 to 3, of the four texels that a linear filter reads: that with the greater row and the lesser column, and then
/// around to that with the lesser row and the lesser column. Without a reference it is a component that the surface selects.
pub fn gathered(
    memory: &mut dyn Memory,
    view: &View<'_>,
    filter: &Filter,
    point: &Point,
    component: usize,
) -> Result<[u32; 4], MemoryFault> {
    let (base, _) = corner(view, filter, point);
    let mut components = [0; 4];
    for (into, [right, down]) in components.iter_mut().zip([[0, 1], [1, 1], [1, 0], [0, 0]]) {
        let mut at = base;
        at[0] = at[0].saturating_add(right);
        if view.axes > 1 {
            at[1] = at[1].saturating_add(down);
        }
        let color = view.texel(memory, position(view, at, point))?;
        let [red, ..] = color;
        *into = if view.reference.is_some() { red } else { view.image.select(color)[component & 3] };
    }
    Ok(components)
}

/// What is made of texels with their weights.
pub struct Sum {
    reduction: Reduction,
    color: [f32; 4],
}

impl Sum {
    /// Of no texel.
    pub fn new(reduction: Reduction) -> Sum {
        let start = match reduction {
            Reduction::Mean => 0.0,
            Reduction::Minimum => f32::INFINITY,
            Reduction::Maximum => f32::NEG_INFINITY,
        };
        Sum { reduction, color: [start; 4] }
    }

    /// Adds a texel, whose weight is not 0.
    #[inline]
    pub fn add(&mut self, share: f32, texel: [u32; 4]) {
        for (sum, component) in self.color.iter_mut().zip(texel.map(f32::from_bits)) {
            *sum = match self.reduction {
                Reduction::Mean => *sum + share * component,
                Reduction::Minimum => sum.min(component),
                Reduction::Maximum => sum.max(component),
            };
        }
    }

    /// The color of all.
    pub fn color(&self) -> [u32; 4] {
        self.color.map(f32::to_bits)
    }
}
