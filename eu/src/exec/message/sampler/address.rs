// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Texels at positions that may be outside of the image: addressing, border and edges of cubes. EU-080.

use super::super::texel::read_texel;
use super::compare::Reference;
use super::cube;
use crate::exec::memory::{Addressing, ChannelOrder, Image, Memory, MemoryFault, Sampler};

/// What is read of one level of an image.
#[derive(Clone, Copy)]
pub struct View<'v> {
    /// The level, as an image of its own.
    pub image: &'v Image,
    pub sampler: &'v Sampler,
    /// Texels are compared with it.
    pub reference: Option<Reference>,
    /// The face of a cube on which positions are.
    pub face: Option<u32>,
    /// Number of coordinates of a texel that addressing is for: without that of array elements and faces.
    pub axes: usize,
    /// The coordinate behind these is the number of an array element or face.
    pub layered: bool,
}

impl<'v> View<'v> {
    /// The image of one level.
    #[inline]
    pub fn new(image: &'v Image, sampler: &'v Sampler, reference: Option<Reference>, face: Option<u32>) -> View<'v> {
        let count = image.dimensions.count() as usize;
        let layered = count > 1 && (image.array || image.cube);
        View { image, sampler, reference, face, axes: count - usize::from(layered), layered }
    }

    /// Sizes in texels.
    pub fn limits(&self) -> [u32; 3] {
        [self.image.width, self.image.height, self.image.depth]
    }

    /// A texel, or the result of its comparison.
    #[inline]
    pub fn texel(&self, memory: &mut dyn Memory, at: [i32; 3]) -> Result<[u32; 4], MemoryFault> {
        match self.face {
            None if self.reference.is_none() => fetch(memory, self.image, at, Some(self.sampler)),
            Some(face) if self.crosses_edges() => self.of_cube(memory, face, at),
            _ => self.of_plane(memory, at),
        }
    }

    /// Positions beyond an edge are on the next face.
    fn crosses_edges(&self) -> bool {
        self.sampler.overrides_cubes || self.sampler.addressing.contains(&Addressing::Cube)
    }

    fn of_plane(&self, memory: &mut dyn Memory, at: [i32; 3]) -> Result<[u32; 4], MemoryFault> {
        let color = fetch(memory, self.image, at, Some(self.sampler))?;
        Ok(self.compared(color))
    }

    fn compared(&self, color: [u32; 4]) -> [u32; 4] {
        match self.reference {
            None => color,
            Some(reference) => {
                let [red, ..] = color;
                [reference.compare(f32::from_bits(red)).to_bits(), 0, 0, 1f32.to_bits()]
            }
        }
    }

    /// A texel of a cube. That beyond a corner, which no face has, is the mean of the three texels at the corner.
    fn of_cube(&self, memory: &mut dyn Memory, face: u32, [x, y, z]: [i32; 3]) -> Result<[u32; 4], MemoryFault> {
        let size = self.image.width.min(i32::MAX as u32).cast_signed().max(1);
        let first = z - face.cast_signed();
        if let Some((face, [x, y])) = cube::across(face, size, [x, y]) {
            return self.of_plane(memory, [x, y, first + face.cast_signed()]);
        }
        let [column, row] = [x, y].map(|at| at.clamp(0, size - 1));
        let mut sum = [0.0f32; 4];
        for at in [[column, row], [x, row], [column, y]] {
            let (face, [x, y]) = cube::across(face, size, at).unwrap_or((face, [column, row]));
            let color = self.of_plane(memory, [x, y, first + face.cast_signed()])?;
            for (sum, component) in sum.iter_mut().zip(color) {
                *sum += f32::from_bits(component) / 3.0;
            }
        }
        Ok(sum.map(f32::to_bits))
    }
}

/// A texel; outside the image what the sampler says, without one 0.
pub fn fetch(
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
pub fn border(image: &Image, color: [u32; 4]) -> [u32; 4] {
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
        Some(Addressing::Clamp | Addressing::Cube) => at.clamp(0, size - 1),
        Some(Addressing::Wrap) => at.rem_euclid(size),
        Some(Addressing::Mirror) => {
            let folded = at.rem_euclid(2 * size);
            if folded < size { folded } else { 2 * size - 1 - folded }
        }
        Some(Addressing::MirrorOnce) => (if at < 0 { -1 - at } else { at }).min(size - 1),
        Some(Addressing::MirrorEdge) => {
            let folded = at.rem_euclid((2 * size - 2).max(1));
            if folded < size { folded } else { 2 * size - 2 - folded }
        }
    };
    u32::try_from(inside).ok().filter(|inside| *inside < limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [Addressing; 8] = [
        Addressing::Wrap,
        Addressing::Mirror,
        Addressing::Clamp,
        Addressing::Border,
        Addressing::MirrorOnce,
        Addressing::HalfBorder,
        Addressing::Cube,
        Addressing::MirrorEdge,
    ];

    proptest::proptest! {
        /// A position in the image is where it is; others are inside or on the border, and those that repeat have a period.
        #[test]
        fn wrapped_coordinates_are_inside(at: i32, near in -40i32..40, limit in 1u32..17) {
            for mode in MODES.map(Some).into_iter().chain([None]) {
                for at in [at, near] {
                    match wrap(at, limit, mode) {
                        Some(inside) => {
                            proptest::prop_assert!(inside < limit);
                            let stays = u32::try_from(at).is_ok_and(|at| at < limit);
                            proptest::prop_assert!(!stays || inside == at.cast_unsigned());
                        }
                        None => proptest::prop_assert!(matches!(
                            mode,
                            None | Some(Addressing::Border | Addressing::HalfBorder)
                        )),
                    }
                }
            }
        }
    }

    #[test]
    fn mirrors_repeat_their_edge_or_not() {
        let row = |mode| (-4..8).map(|at| wrap(at, 3, Some(mode)).unwrap()).collect::<Vec<_>>();
        assert_eq!(row(Addressing::Mirror), [2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1]);
        assert_eq!(row(Addressing::MirrorEdge), [0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]);
        assert_eq!(wrap(7, 1, Some(Addressing::MirrorEdge)), Some(0));
    }
}
