// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Faces of cubes: which one a direction meets, and which texels are beyond its edges.

/// Axes of a face: that of its normal, those of its columns and of its rows, each with its sign.
struct Axes {
    normal: (usize, i32),
    column: (usize, i32),
    row: (usize, i32),
}

const fn axes(normal: (usize, i32), column: (usize, i32), row: (usize, i32)) -> Axes {
    Axes { normal, column, row }
}

const X: usize = 0;
const Y: usize = 1;
const Z: usize = 2;

/// Faces in the order of array elements (Vulkan: cube map face selection).
const FACES: [Axes; 6] = [
    axes((X, 1), (Z, -1), (Y, -1)),
    axes((X, -1), (Z, 1), (Y, -1)),
    axes((Y, 1), (X, 1), (Z, 1)),
    axes((Y, -1), (X, 1), (Z, -1)),
    axes((Z, 1), (X, 1), (Y, -1)),
    axes((Z, -1), (X, -1), (Y, -1)),
];

/// Number of the face whose normal has the axis, in its direction or against it.
fn number(axis: usize, negative: bool) -> usize {
    axis * 2 + usize::from(negative)
}

/// Number of the face that a direction meets: of the largest component, of equal ones that of z, then that of y.
pub fn met_by([x, y, z]: [f32; 3]) -> u32 {
    let [ax, ay, az] = [x, y, z].map(f32::abs);
    let (axis, value) = match () {
        () if az >= ax && az >= ay => (Z, z),
        () if ay >= ax => (Y, y),
        () => (X, x),
    };
    number(axis, value < 0.0) as u32
}

/// Coordinates of a direction in the plane of a face, 0 to 1 on the face. Directions that do not meet it have coordinates as
/// far as the plane has them.
pub fn projected(number: u32, direction: [f32; 3]) -> [f32; 2] {
    let axes = &FACES[number as usize % FACES.len()];
    let along = |(axis, sign): (usize, i32)| direction[axis] * sign as f32;
    let distance = along(axes.normal).abs();
    [axes.column, axes.row].map(|axis| (along(axis) / distance + 1.0) * 0.5)
}

/// A texel at, or beyond by one, the edge of a face of `size` texels: the number of its face, its column and its row. `None` for
/// the texel beyond both edges of a corner, which no face has.
pub fn across(start: u32, size: i32, [column, row]: [i32; 2]) -> Option<(u32, [i32; 2])> {
    let size = size.clamp(1, 1 << 20);
    let place = [column, row].map(|at| at.clamp(-1, size));
    let outside = place.map(|at| at < 0 || at >= size);
    if outside == [false; 2] {
        return Some((start, place));
    }
    if outside == [true; 2] {
        return None;
    }
    let axes = &FACES[start as usize % FACES.len()];
    // Centers of texels are at odd coordinates, the faces at plus and minus `size`.
    let mut at = [0; 3];
    let (axis, sign) = axes.normal;
    at[axis] = sign * size;
    for ((axis, sign), place) in [axes.column, axes.row].into_iter().zip(place) {
        at[axis] = sign * (2 * place + 1 - size);
    }
    // The texel beyond the edge is the first one behind it: one from the edge along the old normal.
    let (beyond, _) = if outside[0] { axes.column } else { axes.row };
    let negative = at[beyond] < 0;
    at[axis] = sign * (size - 1);
    let next = number(beyond, negative);
    let axes = &FACES[next];
    let texel = |(axis, sign): (usize, i32)| (sign * at[axis] + size - 1) / 2;
    Some((next as u32, [texel(axes.column), texel(axes.row)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of a texel in space, in double precision, by the table of the OpenGL specification.
    fn position(face: u32, size: i32, [column, row]: [i32; 2]) -> [f64; 3] {
        let [s, t] = [column, row].map(|at| (2.0 * f64::from(at) + 1.0) / f64::from(size) - 1.0);
        match face {
            0 => [1.0, -t, -s],
            1 => [-1.0, -t, s],
            2 => [s, 1.0, t],
            3 => [s, -1.0, -t],
            4 => [s, -t, 1.0],
            _ => [-s, -t, -1.0],
        }
    }

    fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn directions_meet_the_texels_that_they_go_through() {
        for size in [1, 2, 5, 8] {
            for face in 0..6 {
                for texel in (0..size).flat_map(|row| (0..size).map(move |column| [column, row])) {
                    let direction = position(face, size, texel).map(|value| (value * 3.0) as f32);
                    assert_eq!(met_by(direction), face, "{direction:?}");
                    let place = projected(face, direction).map(|at| (at * size as f32).floor() as i32);
                    assert_eq!(place, texel, "face {face} of {size}");
                }
            }
        }
    }

    /// A texel beyond an edge is the one of the next face that is nearest to the texel at the edge.
    #[test]
    fn texels_beyond_an_edge_are_the_nearest_ones_of_the_next_plane() {
        for size in [1, 2, 5, 8] {
            let step = 2.0 / f64::from(size);
            for face in 0..6 {
                for along in 0..size {
                    for (inside, outside) in [
                        ([0, along], [-1, along]),
                        ([size - 1, along], [size, along]),
                        ([along, 0], [along, -1]),
                        ([along, size - 1], [along, size]),
                    ] {
                        let (next, texel) = across(face, size, outside).unwrap();
                        assert_ne!(next, face);
                        assert!(texel.iter().all(|at| (0..size).contains(at)), "{texel:?} of {size}");
                        let apart = distance(position(face, size, inside), position(next, size, texel));
                        // Both are half a step from the edge, at a right angle.
                        assert!((apart - step / 2f64.sqrt()).abs() < 1e-9, "face {face} {outside:?}: {next} {texel:?}");
                    }
                }
                for corner in [[-1, -1], [-1, size], [size, -1], [size, size]] {
                    assert_eq!(across(face, size, corner), None);
                }
                assert_eq!(across(face, size, [0, size - 1]), Some((face, [0, size - 1])));
            }
        }
    }

    #[test]
    fn any_numbers_have_a_plane() {
        for value in [f32::NAN, f32::INFINITY, 0.0, -0.0] {
            assert!(met_by([value; 3]) < 6);
            let _ = projected(met_by([value; 3]), [value; 3]);
        }
        let _ = across(u32::MAX, i32::MAX, [i32::MIN, 0]);
    }
}
