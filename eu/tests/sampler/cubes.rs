// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Cubes and arrays of them: faces of directions, and filters across their edges.

use super::{LANES, Picture, near, spread};
use arctic_eu::exec::FaultKind;
use arctic_eu::exec::memory::{Addressing, Dimensions, Filter};

const LINEAR: Filter = Filter { linear: true, rounding: [true; 3], anisotropic: false };

/// Cubes with faces of 8 by 8 texels.
fn cubes(count: u32) -> Picture {
    let mut picture = Picture::new([8, 8, 6 * count], Dimensions::Three, 4);
    (picture.image.cube, picture.image.array) = (true, count > 1);
    picture
}

/// Face and coordinates of a direction, by the table of the OpenGL and Vulkan specifications.
fn face([x, y, z]: [f64; 3]) -> (u32, [f64; 2]) {
    let [ax, ay, az] = [x.abs(), y.abs(), z.abs()];
    let (face, [s, t], distance) = if az >= ax && az >= ay {
        if z >= 0.0 { (4, [x, -y], az) } else { (5, [-x, -y], az) }
    } else if ay >= ax {
        if y >= 0.0 { (2, [x, z], ay) } else { (3, [x, -z], ay) }
    } else if x >= 0.0 {
        (0, [-z, -y], ax)
    } else {
        (1, [z, -y], ax)
    };
    (face, [s, t].map(|at| (at / distance + 1.0) / 2.0))
}

fn directions(seed: u32) -> [[f32; LANES]; 3] {
    [seed, seed + 1, seed + 2].map(|seed| spread(seed).map(|at| at * 2.0 - 1.0))
}

#[test]
fn directions_sample_their_plane_of_a_cube() {
    for (count, filter) in [(1, Filter { linear: false, ..LINEAR }), (1, LINEAR), (3, LINEAR)] {
        let mut picture = cubes(count);
        picture.sampler.overrides_cubes = false;
        (picture.sampler.magnify, picture.sampler.minify) = (filter, filter);
        for seed in 0..40 {
            let [x, y, z] = directions(seed);
            let cube = [0.0, 1.0, 2.0, 0.4, 1.6, -3.0, 9.0, 1.0];
            for (kind, level) in [(24, 0u8), (2, 2)] {
                let mut payload = vec![x, y, z, cube];
                if kind == 2 {
                    payload.insert(0, [2.0; LANES]);
                }
                let colors = picture.colors(kind, 0, &payload);
                for lane in 0..LANES {
                    let (face, at) = face([x[lane], y[lane], z[lane]].map(f64::from));
                    let element = cube[lane].round().clamp(0.0, count as f32 - 1.0) as u32;
                    let layer = element * 6 + face;
                    let expected = if filter.linear {
                        picture.linear(level, at, layer)
                    } else {
                        picture.nearest(level, at, layer)
                    };
                    near(colors[lane], expected, &format!("{count} cubes, level {level}, seed {seed}, lane {lane}"));
                }
            }
        }
    }
}

/// Colors on both sides of an edge are nearly the same, and so they are at the corners; without the mode of cubes they are not.
#[test]
fn filters_go_across_edges() {
    for (overrides, addressing, continuous) in
        [(true, Addressing::Clamp, true), (false, Addressing::Cube, true), (false, Addressing::Clamp, false)]
    {
        let mut picture = cubes(2);
        (picture.sampler.magnify, picture.sampler.minify) = (LINEAR, LINEAR);
        (picture.sampler.overrides_cubes, picture.sampler.addressing) = (overrides, [addressing; 3]);
        let mut largest = 0.0f32;
        for (axis, other, third) in [(0, 1, 2), (1, 2, 0), (2, 0, 1)] {
            for (sign, sign_of_other) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
                // Four places along an edge, the last near a corner, each on the one face and on the other.
                let mut parameters = [[0.0; LANES]; 4];
                parameters[3] = [1.0; LANES];
                for lane in 0..LANES {
                    let along = [-0.9, -0.2, 0.45, 0.999][lane / 2];
                    let inward = 0.9999;
                    let (a, b) = if lane % 2 == 0 { (1.0, inward) } else { (inward, 1.0) };
                    parameters[axis][lane] = sign * a;
                    parameters[other][lane] = sign_of_other * b;
                    parameters[third][lane] = along;
                }
                let colors = picture.colors(24, 0, &parameters);
                for pair in 0..LANES / 2 {
                    largest = largest.max((colors[pair * 2][0] - colors[pair * 2 + 1][0]).abs());
                }
            }
        }
        assert_eq!(largest < 0.02, continuous, "{overrides} {addressing:?}: {largest}");
    }
}

#[test]
fn sizes_and_loads_of_cubes_are_those_of_planes() {
    let mut picture = cubes(3);
    let found = picture.send(10, 0, &[[1; LANES]]).unwrap();
    assert_eq!(found.map(|values| values[0]), [4, 4, 18, 4], "faces of all cubes (Mesa divides them by six)");
    let loaded = picture.send(26, 0, &[[3; LANES], [5; LANES], [0, 5, 6, 17, 18, 7, 8, 9]]).unwrap();
    for (lane, layer) in [0, 5, 6, 17].into_iter().enumerate() {
        assert_eq!(f32::from_bits(loaded[0][lane]), picture.texel(0, [3, 5, layer])[0]);
    }
    assert_eq!(loaded[0][4], 0);
    // Derivatives of directions have no message.
    let zero = [0; LANES];
    assert_eq!(picture.send(4, 0, &[zero; 7]), Err(FaultKind::Message));
}

/// The level of a quad is that of its directions on the face.
#[test]
fn quads_of_directions_give_the_level() {
    let mut picture = cubes(1);
    // On +z: steps of a quarter of the face, which are two texels.
    let x = [-0.5, 0.0, -0.5, 0.0, 0.1, 0.1, 0.1, 0.1];
    let y = [0.3; LANES];
    let colors = picture.colors(0, 0, &[x, y, [1.0; LANES]]);
    for lane in 0..LANES {
        let (face, at) = face([x[lane], y[lane], 1.0].map(f64::from));
        let expected = picture.nearest(u8::from(lane < 4), at, face);
        near(colors[lane], expected, &format!("lane {lane}"));
    }
}
