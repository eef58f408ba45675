// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Levels of detail: where they come from, their bounds, and the levels and filters that they choose.

use super::{LANES, Picture, near, spread, texel_value};
use arctic_eu::exec::memory::{Dimensions, Filter, LevelFilter};

const LINEAR: Filter = Filter { linear: true, rounding: [true; 3], anisotropic: false };

/// The color of a level of detail: of the nearest level, or of the two around it.
fn expected(picture: &Picture, level: f64, at: [f64; 2], linear: bool) -> [f64; 4] {
    let last = f64::from(picture.image.levels.count - 1);
    let of = |level: f64| {
        let level = level.clamp(0.0, last) as u8;
        if linear { picture.linear(level, at, 0) } else { picture.nearest(level, at, 0) }
    };
    match picture.sampler.levels {
        LevelFilter::None => of(f64::from(picture.sampler.level[0]) / 256.0),
        LevelFilter::Nearest => of((level + 0.5).floor()),
        LevelFilter::Linear => {
            let (low, high) = (of(level.floor()), of(level.floor() + 1.0));
            let weight = if level <= 0.0 || level >= last { 0.0 } else { level - level.floor() };
            [0, 1, 2, 3].map(|index| low[index] * (1.0 - weight) + high[index] * weight)
        }
    }
}

fn plane(levels: LevelFilter, filter: Filter) -> Picture {
    let mut picture = Picture::plane(4);
    (picture.sampler.levels, picture.sampler.magnify, picture.sampler.minify) = (levels, filter, filter);
    picture
}

const NEAREST: Filter = Filter { linear: false, rounding: [false; 3], anisotropic: false };

/// EU-080: levels of messages with one, within the bounds of the sampler, with its bias.
#[test]
fn a_level_of_detail_chooses_levels() {
    let level = [0.0, 0.3, 0.5, 1.25, 2.75, 3.0, 9.0, -2.0];
    let (u, v) = (spread(10), spread(11));
    for levels in [LevelFilter::None, LevelFilter::Nearest, LevelFilter::Linear] {
        for (filter, linear) in [(NEAREST, false), (LINEAR, true)] {
            for ([low, high], bias) in
                [([0, 14 << 8], 0), ([1 << 8, 2 << 8], 0), ([0, 14 << 8], 0x180), ([0x80, 0x100], -0x100)]
            {
                let mut picture = plane(levels, filter);
                (picture.sampler.level, picture.sampler.bias) = ([low, high], bias);
                let colors = picture.colors(2, 0, &[level, u, v]);
                for lane in 0..LANES {
                    let biased = f64::from(level[lane]) + f64::from(bias) / 256.0;
                    let bounded = biased.clamp(f64::from(low) / 256.0, f64::from(high) / 256.0);
                    let at = [u[lane], v[lane]].map(f64::from);
                    let what = format!("{levels:?} linear {linear}, {low}..{high}, bias {bias}, lane {lane}");
                    near(colors[lane], expected(&picture, bounded, at, linear), &what);
                }
            }
        }
    }
}

/// The least level of a surface and that of a message bound the level, too.
#[test]
fn surfaces_and_messages_have_least_levels() {
    let (u, v) = (spread(12), spread(13));
    let mut picture = plane(LevelFilter::Nearest, NEAREST);
    picture.image.levels.least = 2 << 8;
    let colors = picture.colors(2, 0, &[[0.0; LANES], u, v]);
    near(colors[2], picture.nearest(2, [u[2], v[2]].map(f64::from), 0), "of the surface");
    picture.image.levels.least = 0;
    // With zeros for r and the array element.
    let (zero, same) = ([0.0; LANES], [0.25; LANES]);
    let colors = picture.colors(0, 0, &[same, same, zero, zero, [3.0; LANES]]);
    near(colors[5], picture.nearest(3, [0.25; 2], 0), "of the message");
    let colors = picture.colors(4, 0, &[u, zero, zero, v, zero, zero, zero, [1.0; LANES]]);
    near(colors[6], picture.nearest(1, [u[6], v[6]].map(f64::from), 0), "of the message with derivatives");
}

/// The longer of the two axes that derivatives give decides.
#[test]
fn derivatives_give_the_level() {
    let (u, v) = (spread(14), spread(15));
    // Texels of the image of 16 by 8 that a step is long: 1, 2, 4, 2 of v, 3 and 4, both axes, none, no number.
    let dudx = [1.0, 2.0, 4.0, 0.0, 3.0, 1.0, 0.0, f32::NAN].map(|texels: f32| texels / 16.0);
    let dvdx = [0.0, 0.0, 0.0, 2.0, 4.0, 0.0, 0.0, 0.0].map(|texels: f32| texels / 8.0);
    let dvdy = [0.0, 0.0, 1.0, 0.0, 0.0, 8.0, 0.0, 0.0].map(|texels: f32| texels / 8.0);
    let level = [0.0, 1.0, 2.0, 1.0, 5f64.log2(), 3.0, 0.0, 0.0];
    let zero = [0.0; LANES];
    for levels in [LevelFilter::Nearest, LevelFilter::Linear] {
        let mut picture = plane(levels, LINEAR);
        let colors = picture.colors(4, 0, &[u, dudx, zero, v, dvdx, dvdy]);
        for lane in 0..LANES {
            let at = [u[lane], v[lane]].map(f64::from);
            near(colors[lane], expected(&picture, level[lane], at, true), &format!("{levels:?} lane {lane}"));
        }
    }
}

/// Messages without a level have that of the differences in a quad of lanes; a bias is added.
#[test]
fn quads_of_lanes_give_the_level() {
    // Two quads, of which the second has steps of four texels in a row and of two in a column.
    let u = [0.1, 0.1, 0.1, 0.1, 0.25, 0.5, 0.25, 0.5];
    let v = [0.2, 0.2, 0.2, 0.2, 0.25, 0.25, 0.5, 0.5];
    for levels in [LevelFilter::Nearest, LevelFilter::Linear] {
        let mut picture = plane(levels, LINEAR);
        let bias = [0.0, 1.5, 2.0, 0.0, 0.0, 0.75, -1.0, -2.0];
        for (kind, payload) in [(0, vec![u, v]), (1, vec![bias, u, v])] {
            let colors = picture.colors(kind, 0, &payload);
            for lane in 0..LANES {
                let level = if lane < 4 { f64::NEG_INFINITY } else { 2.0 };
                let level = (level + if kind == 1 { f64::from(bias[lane]) } else { 0.0 }).max(0.0);
                let at = [u[lane], v[lane]].map(f64::from);
                near(colors[lane], expected(&picture, level, at, true), &format!("{kind} {levels:?} lane {lane}"));
            }
        }
        let found = picture.colors(9, 0, &[u, v]);
        assert_eq!((found[5][0], found[5][1]), (2.0, 2.0), "the level of detail");
        assert_eq!(found[0][0], 0.0);
    }
}

/// EU-080: the bounds apply before or behind the choice between magnification and minification.
#[test]
fn bounds_apply_before_or_behind_the_choice_of_the_filter() {
    let (u, v) = (spread(16), spread(17));
    for (first, linear) in [(true, true), (false, false)] {
        let mut picture = plane(LevelFilter::Nearest, NEAREST);
        picture.sampler.minify = LINEAR;
        picture.sampler.clamps_first = first;
        picture.sampler.level = [1 << 8, 14 << 8];
        let colors = picture.colors(2, 0, &[[0.0; LANES], u, v]);
        for lane in 0..LANES {
            let at = [u[lane], v[lane]].map(f64::from);
            near(colors[lane], expected(&picture, 1.0, at, linear), &format!("{first} lane {lane}"));
        }
    }
}

/// Loads and sizes of a level; those that do not exist are 0.
#[test]
fn loads_and_sizes_are_those_of_a_level() {
    for (dimensions, size) in [(Dimensions::Two, [16, 8, 1]), (Dimensions::Three, [16, 8, 6])] {
        let mut picture = Picture::new(size, dimensions, 4);
        let level = [0, 1, 2, 3, 4, 1, 1, u32::MAX];
        let found = picture.send(10, 0, &[level]).unwrap();
        let texel = [[3, 3, 3, 1, 0, 7, 8, 0], [1, 2, 0, 0, 0, 3, 0, 0], [0; 8]];
        let loaded = picture.send(7, 0, &[texel[0], texel[1], level, texel[2]]).unwrap();
        for lane in 0..LANES {
            let exists = level[lane] < 4;
            let [width, height, depth] = if exists { picture.size(level[lane] as u8) } else { [0; 3] };
            assert_eq!(found.map(|values| values[lane]), [width, height, depth, 4], "lane {lane}");
            let inside = exists && texel[0][lane] < width && texel[1][lane] < height;
            let at = [texel[0][lane], texel[1][lane], 0];
            let expected = if inside { texel_value(level[lane] as u8, at) } else { 0.0 };
            assert_eq!(f32::from_bits(loaded[0][lane]), expected, "lane {lane}");
        }
    }
}

/// Slices of volumes are halved, array elements are not.
#[test]
fn volumes_have_fewer_slices_in_each_level() {
    let mut picture = Picture::new([8, 8, 8], Dimensions::Three, 4);
    let (u, v, r) = (spread(18), spread(19), spread(20));
    for (array, level) in [(false, 1u8), (false, 3), (true, 2)] {
        picture.image.array = array;
        let element = r.map(|r| if array { (r * 7.0).round() } else { r });
        let colors = picture.colors(2, 0, &[[f32::from(level); LANES], u, v, element]);
        let slices = picture.size(level)[2];
        for lane in 0..LANES {
            let slice = if array { element[lane] as u32 } else { (r[lane] * slices as f32) as u32 };
            let expected = picture.nearest(level, [u[lane], v[lane]].map(f64::from), slice);
            near(colors[lane], expected, &format!("{array} level {level} lane {lane}"));
        }
    }
}
