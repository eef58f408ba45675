// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Offsets of texels, and the four texels of a linear filter.

use super::{LANES, Picture, spread, texel_value};
use arctic_eu::exec::memory::{Component, Dimensions};

/// The header's fields for offsets of u and v.
fn control(u: i32, v: i32) -> u32 {
    (u & 15).cast_unsigned() << 8 | (v & 15).cast_unsigned() << 4
}

/// EU-081: offsets are added to the coordinates of texels, of samples and of loads, not to array elements.
#[test]
fn offsets_of_the_header_move_texels() {
    let mut picture = Picture::plane(1);
    picture.image.array = true;
    picture.image.dimensions = Dimensions::Three;
    picture.image.depth = 3;
    let layer = 2;
    for (du, dv) in [(0, 0), (1, 0), (-8, 7), (3, -2), (7, -8)] {
        let (u, v) = (spread(1), spread(2));
        let moved = |at: f32, size: i32, by: i32| ((at * size as f32).floor() as i32 + by).clamp(0, size - 1) as u32;
        let colors = picture.colors(24, control(du, dv) | 5, &[u, v, [layer as f32; LANES]]);
        for lane in 0..LANES {
            let at = [moved(u[lane], 16, du), moved(v[lane], 8, dv), layer];
            assert_eq!(colors[lane][0], texel_value(0, at), "{du} {dv} lane {lane}");
        }
        let texels = [[0, 3, 8, 12, 15, 9, 4, 11], [0, 1, 2, 3, 4, 5, 6, 7], [layer; LANES]];
        let loaded = picture.send(26, control(du, dv) | 5, &texels).unwrap();
        for lane in 0..LANES {
            let at = [texels[0][lane] as i32 + du, texels[1][lane] as i32 + dv];
            let inside = (0..16).contains(&at[0]) && (0..8).contains(&at[1]);
            let expected = if inside { texel_value(0, [at[0] as u32, at[1] as u32, layer]) } else { 0.0 };
            assert_eq!(f32::from_bits(loaded[0][lane]), expected, "{du} {dv} lane {lane}");
        }
    }
}

/// ISA-251: components are those of the texels around a point, counterclockwise from the lower left.
#[test]
fn gathered_texels_are_in_the_order_of_the_interfaces() {
    let mut picture = Picture::plane(2);
    let (u, v) = (spread(3), spread(4));
    let corner = |at: f32, size: f32| (at * size - 0.5).floor() as i32;
    let expected = |lane: usize, [du, dv]: [i32; 2]| {
        let (x, y) = (corner(u[lane], 16.0) + du, corner(v[lane], 8.0) + dv);
        [[0, 1], [1, 1], [1, 0], [0, 0]]
            .map(|[right, down]| [(x + right).clamp(0, 15) as u32, (y + down).clamp(0, 7) as u32, 0])
    };
    for component in 0..4usize {
        let colors = picture.colors(8, control(2, -3) | (component as u32) << 16, &[u, v]);
        for (lane, color) in colors.into_iter().enumerate() {
            let texels = expected(lane, [2, -3]).map(|at| picture.texel(0, at)[component]);
            assert_eq!(color, texels, "component {component} lane {lane}");
        }
    }
    // Offsets of six bits in the payload, behind u and v.
    let offsets = [[31, -32, 0, 5, -5, 1, -1, 12i32], [-32, 31, 0, 5, -5, 1, -1, 12]];
    let floats = |values: [f32; LANES]| values.map(f32::to_bits);
    let payload = [floats(u), floats(v), offsets[0].map(i32::cast_unsigned), offsets[1].map(i32::cast_unsigned)];
    let found = picture.send(17, 0, &payload).unwrap();
    for lane in 0..LANES {
        let texels = expected(lane, [offsets[0][lane], offsets[1][lane]]).map(|at| texel_value(0, at).to_bits());
        assert_eq!(found.map(|values| values[lane]), texels, "lane {lane}");
    }
    // The component is that of the color as the surface selects it.
    picture.image.components = [Component::One, Component::Red, Component::Zero, Component::Alpha];
    let colors = picture.colors(8, 1 << 16, &[u, v]);
    assert_eq!(colors[3], expected(3, [0, 0]).map(|at| texel_value(0, at)));
    assert_eq!(picture.colors(8, 0, &[u, v])[3], [1.0; 4]);
}
