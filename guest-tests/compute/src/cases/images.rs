// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Images: the copy engine fills them, a sampler reads them, typed writes write them, and the copy engine reads them.

use crate::half::to_half;
use crate::numbers::Numbers;
use crate::picture::{Access, Channel, Order, Picture, Shape, Storage};
use crate::problem::{Expected, Problem, bytes};

/// The formats that kernels may write.
const FORMATS: [(Order, &[Channel]); 4] =
    [(Order::R, ALL), (Order::Rg, ALL), (Order::Rgba, ALL), (Order::Bgra, &[Channel::Unorm8])];
const ALL: &[Channel] = &[
    Channel::Unorm8,
    Channel::Unorm16,
    Channel::Snorm8,
    Channel::Snorm16,
    Channel::Sint8,
    Channel::Sint16,
    Channel::Sint32,
    Channel::Uint8,
    Channel::Uint16,
    Channel::Uint32,
    Channel::Half,
    Channel::Float,
];

const STORAGES: [Storage; 3] = [Storage::Preferred, Storage::Uncompressed, Storage::Linear];

/// Numbers that no format changes when they are read and written: floats are finite, and of the two bytes for -1 there is one.
fn texels(picture: &Picture, numbers: &mut Numbers) -> Vec<u8> {
    let count = picture.bytes() / picture.channel.size();
    match picture.channel {
        Channel::Float => bytes(&numbers.list(count, |next| next.float(-100..100))),
        Channel::Half => bytes(&numbers.list(count, |next| to_half(f64::from(next.within(-4000..4000)) / 37.0))),
        Channel::Snorm8 => bytes(&numbers.list(count, |next| next.within(-127..128).to_le_bytes()[0])),
        Channel::Snorm16 => {
            let word = |next: &mut Numbers| i16::try_from(next.within(-0x7fff..0x8000)).unwrap_or_default();
            bytes(&numbers.list(count, word))
        }
        _ => numbers.list(picture.bytes(), |next| next.bits().to_le_bytes()[0]),
    }
}

/// The texels of an image in the reverse order along the axes that are `mirrored`.
fn mirrored(picture: &Picture, from: &[u8], axes: [bool; 3]) -> Vec<u8> {
    let [width, height, depth] = picture.size;
    let texel = picture.texel_bytes();
    let place = |at: usize, axis: usize| if axes[axis] { picture.size[axis] - 1 - at } else { at };
    let mut out = Vec::with_capacity(from.len());
    for (z, y, x) in (0..depth).flat_map(|z| (0..height).flat_map(move |y| (0..width).map(move |x| (z, y, x)))) {
        let at = ((place(z, 2) * height + place(y, 1)) * width + place(x, 0)) * texel;
        out.extend_from_slice(&from[at..at + texel]);
    }
    out
}

/// One image mirrored to another one of another storage.
fn mirror(picture: Picture, into: Storage, seed: u64) -> Problem {
    use Access::{Float, Signed, Unsigned};
    let kernel = match (picture.shape, picture.channel.access()) {
        (Shape::Line, Float) => "mirror_1d_f",
        (Shape::Line, Signed) => "mirror_1d_i",
        (Shape::Line, Unsigned) => "mirror_1d_ui",
        (Shape::Lines, Float) => "mirror_1d_array_f",
        (Shape::Lines, Signed) => "mirror_1d_array_i",
        (Shape::Lines, Unsigned) => "mirror_1d_array_ui",
        (Shape::Plane, Float) => "mirror_2d_f",
        (Shape::Plane, Signed) => "mirror_2d_i",
        (Shape::Plane, Unsigned) => "mirror_2d_ui",
        (Shape::Planes, Float) => "mirror_2d_array_f",
        (Shape::Planes, Signed) => "mirror_2d_array_i",
        (Shape::Planes, Unsigned) => "mirror_2d_array_ui",
        (Shape::Volume, Float) => "mirror_3d_f",
        (Shape::Volume, Signed) => "mirror_3d_i",
        (Shape::Volume, Unsigned) => "mirror_3d_ui",
        (Shape::Buffer, Float) => "mirror_buffer_f",
        (Shape::Buffer, Signed) => "mirror_buffer_i",
        (Shape::Buffer, Unsigned) => "mirror_buffer_ui",
    };
    let axes = match picture.shape {
        Shape::Line | Shape::Lines | Shape::Buffer => [true, false, false],
        Shape::Plane | Shape::Planes => [true, true, false],
        Shape::Volume => [true; 3],
    };
    let from = texels(&picture, &mut Numbers::new(seed));
    let expected = Expected::exact(&mirrored(&picture, &from, axes));
    let problem = Problem::new(kernel, picture.size, [picture.size[0], 1, 1]);
    problem.image(picture, from).output_image(Picture { storage: into, ..picture }, expected)
}

/// All formats and storages of one shape.
fn mirrors(shape: Shape, size: [usize; 3]) -> Vec<Problem> {
    let formats = FORMATS.iter().flat_map(|(order, channels)| channels.iter().map(|channel| (*order, *channel)));
    (0..)
        .zip(formats)
        .map(|(index, (order, channel))| {
            // Each format is read from one storage and written to the next one.
            let [storage, into] = [index, index + 1].map(|index| STORAGES[index % STORAGES.len()]);
            mirror(Picture { shape, size, order, channel, storage }, into, index as u64)
        })
        .collect()
}

pub(super) fn lines() -> Vec<Problem> {
    mirrors(Shape::Line, [113, 1, 1])
}

pub(super) fn arrays_of_lines() -> Vec<Problem> {
    mirrors(Shape::Lines, [61, 5, 1])
}

pub(super) fn planes() -> Vec<Problem> {
    mirrors(Shape::Plane, [75, 45, 1])
}

pub(super) fn arrays_of_planes() -> Vec<Problem> {
    mirrors(Shape::Planes, [37, 29, 3])
}

/// More than one tile of the largest of the layouts, in each dimension.
pub(super) fn volumes() -> Vec<Problem> {
    mirrors(Shape::Volume, [35, 33, 18])
}

pub(super) fn buffers() -> Vec<Problem> {
    mirrors(Shape::Buffer, [200, 1, 1])
}

pub(super) fn read_and_written() -> Problem {
    let picture = Picture {
        shape: Shape::Plane,
        size: [64, 40, 1],
        order: Order::Rgba,
        channel: Channel::Uint16,
        storage: Storage::Preferred,
    };
    let before = Numbers::new(7).list(64 * 40 * 4, |next| u16::try_from(next.within(0..60_000)).unwrap_or_default());
    let after: Vec<u8> = before.iter().flat_map(|value| (value + 1).to_le_bytes()).collect();
    let problem = Problem::new("increase", [64, 40, 1], [64, 1, 1]);
    problem.output_image_over(picture, bytes(&before), Expected::exact(&after))
}

/// An image of 16 by 8 texels, sampled on an area of three times its size.
fn sampled(kernel: &'static str, place: fn(i32, i32) -> Option<i32>) -> Problem {
    const SIZE: [usize; 2] = [16, 8];
    let picture = Picture {
        shape: Shape::Plane,
        size: [SIZE[0], SIZE[1], 1],
        order: Order::Rgba,
        channel: Channel::Uint8,
        storage: Storage::Preferred,
    };
    let from = texels(&picture, &mut Numbers::new(8));
    let texel = |x: Option<i32>, y: Option<i32>| match (x, y) {
        (Some(x), Some(y)) => {
            let at = usize::try_from(y * 16 + x).unwrap_or_default() * 4;
            [0, 1, 2, 3].map(|channel| u32::from(from[at + channel]))
        }
        _ => [0; 4],
    };
    let colors: Vec<u32> = (-8..16)
        .flat_map(|y| (-16..32).map(move |x| (x, y)))
        .flat_map(|(x, y)| texel(place(x, 16), place(y, 8)))
        .collect();
    Problem::new(kernel, [48, 24, 1], [16, 1, 1]).image(picture, from).output(Expected::exact(&colors))
}

pub(super) fn sampled_outside() -> Vec<Problem> {
    vec![
        sampled("sample_clamp", |at, size| (0..size).contains(&at).then_some(at)),
        sampled("sample_edge", |at, size| Some(at.clamp(0, size - 1))),
        sampled("sample_repeat", |at, size| Some(at.rem_euclid(size))),
        sampled("sample_mirrored", |at, size| {
            let at = at.rem_euclid(2 * size);
            Some(if at < size { at } else { 2 * size - 1 - at })
        }),
    ]
}

/// Means of texels: each corner of texels has the same distance to those around it, so that the means are exact.
fn corners(kernel: &'static str, shape: Shape, size: [usize; 3], channel: Channel) -> Problem {
    let picture = Picture { shape, size, order: Order::Rgba, channel, storage: Storage::Preferred };
    let count = picture.bytes() / channel.size();
    let mut numbers = Numbers::new(9);
    let values = numbers.list(count, |next| next.within(0..128));
    #[allow(clippy::cast_precision_loss, reason = "small integers")]
    let floats: Vec<f32> = values.iter().map(|value| *value as f32).collect();
    let texels = match channel {
        Channel::Half => bytes(&values.iter().map(|value| to_half(f64::from(*value))).collect::<Vec<u16>>()),
        _ => bytes(&floats),
    };
    let [width, height, depth] = size;
    let axes = if shape == Shape::Volume { 3 } else { 2 };
    let mut means = Vec::with_capacity(count);
    for (z, y, x) in (0..depth).flat_map(|z| (0..height).flat_map(move |y| (0..width).map(move |x| (z, y, x)))) {
        for channel in 0..4 {
            let around = (0..1usize << axes).map(|corner| {
                let place = |at: usize, axis: usize| at.saturating_sub(corner >> axis & 1);
                floats[((place(z, 2) * height + place(y, 1)) * width + place(x, 0)) * 4 + channel]
            });
            #[allow(clippy::cast_precision_loss, reason = "at most 8")]
            means.push(around.sum::<f32>() / (1usize << axes) as f32);
        }
    }
    Problem::new(kernel, size, [width, 1, 1]).image(picture, texels).output(Expected::exact(&means))
}

pub(super) fn linear_filters() -> Vec<Problem> {
    vec![
        corners("corners_2d", Shape::Plane, [40, 20, 1], Channel::Float),
        corners("corners_2d", Shape::Plane, [40, 20, 1], Channel::Half),
        corners("corners_3d", Shape::Volume, [20, 10, 6], Channel::Float),
    ]
}

/// The color of a texel of a format that kernels only read, or whose channels are not the color's.
fn color(order: Order, bytes: &[u8]) -> [f32; 4] {
    let value = |index: usize| f32::from(bytes[index]) / 255.0;
    let linear = |index: usize| match value(index) {
        value if value <= 0.040_45 => value / 12.92,
        value => ((value + 0.055) / 1.055).powf(2.4),
    };
    match order {
        Order::R => [value(0), 0.0, 0.0, 1.0],
        Order::A => [0.0, 0.0, 0.0, value(0)],
        Order::Rg => [value(0), value(1), 0.0, 1.0],
        Order::Rgba => [value(0), value(1), value(2), value(3)],
        Order::Bgra => [value(2), value(1), value(0), value(3)],
        Order::Intensity => [value(0); 4],
        Order::Luminance => [value(0), value(0), value(0), 1.0],
        Order::Srgba => [linear(0), linear(1), linear(2), value(3)],
        Order::Sbgra => [linear(2), linear(1), linear(0), value(3)],
    }
}

pub(super) fn colors() -> Vec<Problem> {
    use Order::{A, Bgra, Intensity, Luminance, R, Rg, Rgba, Sbgra, Srgba};
    let problem = |order: Order| {
        let size = [32, 8, 1];
        let picture =
            Picture { shape: Shape::Plane, size, order, channel: Channel::Unorm8, storage: Storage::Preferred };
        let from = texels(&picture, &mut Numbers::new(10));
        let colors: Vec<f32> = from.chunks(picture.texel_bytes()).flat_map(|texel| color(order, texel)).collect();
        Problem::new("colors", size, [32, 1, 1]).image(picture, from).output(Expected::near(&colors, 1e-6))
    };
    [R, A, Rg, Rgba, Bgra, Intensity, Luminance, Srgba, Sbgra].map(problem).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Argument;

    #[test]
    fn images_are_mirrored_along_their_axes() {
        let picture = Picture {
            shape: Shape::Planes,
            size: [2, 2, 2],
            order: Order::Rg,
            channel: Channel::Uint8,
            storage: Storage::Linear,
        };
        let from: Vec<u8> = (0..16).collect();
        let out = mirrored(&picture, &from, [true, true, false]);
        assert_eq!(out, [6, 7, 4, 5, 2, 3, 0, 1, 14, 15, 12, 13, 10, 11, 8, 9]);
    }

    /// Each format goes from every storage to every other one.
    #[test]
    fn formats_and_storages_of_a_shape() {
        let problems = planes();
        assert_eq!(problems.len(), 3 * ALL.len() + 1);
        for problem in &problems {
            let storages: Vec<Storage> = problem
                .arguments
                .iter()
                .filter_map(|argument| match argument {
                    Argument::Image { picture, .. } | Argument::OutputImage { picture, .. } => Some(picture.storage),
                    _ => None,
                })
                .collect();
            assert!(storages.len() == 2 && storages[0] != storages[1], "{storages:?}");
        }
    }
}
