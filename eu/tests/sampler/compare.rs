// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Comparisons with a reference, and least and greatest texels.

use super::{LANES, Picture, spread, texel_value};
use arctic_eu::exec::memory::{Channel, ChannelOrder, Comparison, Filter, ImageFormat, Reduction};

type Holds = fn(f32, f32) -> bool;

/// The results of shadow functions: what texels and references are compared by, for a result of 0.
const COMPARISONS: [(Comparison, Holds); 8] = [
    (Comparison::Always, |_, _| true),
    (Comparison::Never, |_, _| false),
    (Comparison::Less, |texel, reference| texel < reference),
    (Comparison::Equal, |texel, reference| texel == reference),
    (Comparison::LessOrEqual, |texel, reference| texel <= reference),
    (Comparison::Greater, |texel, reference| texel > reference),
    (Comparison::NotEqual, |texel, reference| texel != reference),
    (Comparison::GreaterOrEqual, |texel, reference| texel >= reference),
];

const LINEAR: Filter = Filter { linear: true, rounding: [true; 3], anisotropic: false };

/// EU-080: each texel is compared, then results are weighted.
#[test]
fn results_of_comparisons_are_weighted() {
    for (comparison, holds) in COMPARISONS {
        let mut picture = Picture::plane(1);
        picture.sampler.comparison = comparison;
        let (u, v) = (spread(5), spread(6));
        let mut reference = spread(7);
        // One that is equal to a texel.
        reference[0] = texel_value(0, [(u[0] * 16.0) as u32, (v[0] * 8.0) as u32, 0]);
        let colors = picture.colors(25, 0, &[reference, u, v]);
        for lane in 0..LANES {
            let texel = texel_value(0, [(u[lane] * 16.0) as u32, (v[lane] * 8.0) as u32, 0]);
            let expected = if holds(texel, reference[lane]) { 0.0 } else { 1.0 };
            assert_eq!(colors[lane], [expected, 0.0, 0.0, 1.0], "{comparison:?} lane {lane}");
        }
        (picture.sampler.magnify, picture.sampler.minify) = (LINEAR, LINEAR);
        // With a level, and of a message with derivatives: all have one level.
        let level = [0.0; LANES];
        let messages: [(u32, Vec<[f32; LANES]>); 4] = [
            (25, vec![reference, u, v]),
            (3, vec![reference, u, v]),
            (6, vec![reference, level, u, v]),
            (20, vec![reference, u, level, level, v, level, level]),
        ];
        for (kind, payload) in messages {
            let colors = picture.colors(kind, 0, &payload);
            for lane in 0..LANES {
                let mut sum = 0.0;
                let (x, y) = (f64::from(u[lane]) * 16.0 - 0.5, f64::from(v[lane]) * 8.0 - 0.5);
                for (row, column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let share = |at: f64, upper: i32| {
                        let fraction = at - at.floor();
                        if upper == 0 { 1.0 - fraction } else { fraction }
                    };
                    let place = |at: f64, upper: i32, size: i32| (at.floor() as i32 + upper).clamp(0, size - 1) as u32;
                    let texel = texel_value(0, [place(x, column, 16), place(y, row, 8), 0]);
                    if !holds(texel, reference[lane]) {
                        sum += share(x, column) * share(y, row);
                    }
                }
                let found = f64::from(colors[lane][0]);
                assert!((found - sum).abs() < 0.01, "{kind} {comparison:?} lane {lane}: {found} for {sum}");
            }
        }
        // The four results of a gather.
        let colors = picture.colors(16, 0, &[reference, u, v]);
        for lane in 0..LANES {
            let (x, y) = ((u[lane] * 16.0 - 0.5).floor() as i32, (v[lane] * 8.0 - 0.5).floor() as i32);
            let expected = [[0, 1], [1, 1], [1, 0], [0, 0]].map(|[right, down]| {
                let texel = texel_value(0, [(x + right).clamp(0, 15) as u32, (y + down).clamp(0, 7) as u32, 0]);
                if holds(texel, reference[lane]) { 0.0 } else { 1.0 }
            });
            assert_eq!(colors[lane], expected, "{comparison:?} lane {lane}");
        }
    }
}

/// A reference for texels of 0 to 1 is brought into these bounds; another one is not.
#[test]
fn references_for_normalized_texels_are_bounded() {
    for (channel, expected) in [(Channel::Float32, 1.0), (Channel::Unorm16, 0.0)] {
        let mut picture = Picture::plane(1);
        picture.image.format = ImageFormat { order: ChannelOrder::R, channel };
        // All bits of a texel are 1: 1.0 of 16 bits, and no number of 32 bits, for which nothing holds but to be other.
        picture.red = |_, _| f32::from_bits(u32::MAX);
        picture.sampler.comparison = Comparison::GreaterOrEqual;
        let colors = picture.colors(25, 0, &[[1.5; LANES], spread(1), spread(2)]);
        assert_eq!(colors[0][0], expected, "{channel:?}");
    }
}

/// EU-080: of the texels with a weight.
#[test]
fn reductions_take_the_least_or_the_greatest_texel() {
    for (reduction, take) in [(Reduction::Minimum, f32::min as fn(f32, f32) -> f32), (Reduction::Maximum, f32::max)] {
        let mut picture = Picture::plane(1);
        picture.sampler.reduction = reduction;
        (picture.sampler.magnify, picture.sampler.minify) = (LINEAR, LINEAR);
        let mut u = spread(8);
        // Exactly at the center of a column, so that the next one has no weight.
        u[1] = 4.5 / 16.0;
        let v = spread(9);
        let colors = picture.colors(24, 0, &[u, v]);
        for lane in 0..LANES {
            let (x, y) = (u[lane] * 16.0 - 0.5, v[lane] * 8.0 - 0.5);
            let columns = if lane == 1 { vec![0] } else { vec![0, 1] };
            let texels = columns.iter().flat_map(|column| [(*column, 0), (*column, 1)]).map(|(column, row)| {
                let place = |at: f32, upper: i32, size: i32| (at.floor() as i32 + upper).clamp(0, size - 1) as u32;
                picture.texel(0, [place(x, column, 16), place(y, row, 8), 0])
            });
            let expected = texels.reduce(|a, b| [0, 1, 2, 3].map(|index| take(a[index], b[index]))).unwrap();
            assert_eq!(colors[lane], expected, "{reduction:?} lane {lane}");
        }
    }
}
