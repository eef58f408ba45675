// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the pictures of timelines.

use arctic_timeline::{Instant, Slice, Timeline, Track};

use super::draw::svg;

const MS: u64 = 1_000_000;

fn slice(track: u64, depth: usize, begin: u64, end: u64, name: &str) -> Slice {
    Slice { track, depth, begin: begin * MS, end: end * MS, name: name.into(), values: Default::default() }
}

fn timeline() -> Timeline {
    let track = |name: &str, parent| Track { name: name.into(), parent, rank: 0 };
    Timeline {
        tracks: [(1, track("engines", None)), (2, track("rcs0", Some(1)))].into(),
        slices: vec![
            slice(2, 0, 0, 50, "vf1 (A)"),
            slice(2, 1, 10, 20, "waits"),
            slice(2, 0, 60, 100, "pf"),
            slice(2, 0, 55, 55, "vf2 (B)"),
        ],
        instants: vec![Instant { track: 2, at: 70 * MS, name: "reset".into(), values: Default::default() }],
    }
}

/// Begins, widths and colours of the shapes.
fn shapes(svg: &str) -> Vec<(usize, usize, &str)> {
    let of_path = |line| {
        let (shapes, colour) = str::strip_prefix(line, "<path d=\"M")?.split_once("z\" fill=\"")?;
        let of_shape = |shape: &str| {
            let (x, rest) = shape.split_once(' ')?;
            Some((x.parse().ok()?, rest.split_once('h')?.1.split_once('v')?.0.parse().ok()?))
        };
        Some(shapes.split("zM").filter_map(of_shape).map(|(x, width)| (x, width, colour.split_once('"').unwrap().0)))
    };
    let mut shapes: Vec<_> = svg.lines().filter_map(of_path).flatten().collect();
    shapes.sort_unstable();
    shapes
}

#[test]
fn slices_are_drawn_where_they_are_in_the_colours_of_their_functions() {
    let svg = svg(&timeline(), (0.0, f64::MAX)).unwrap();
    let [vf1, pf, waits, reset] = ["#1f77b4", "#7f7f7f", "#e8b4b8", "#d62728"];
    assert_eq!(shapes(&svg), [(150, 450, vf1), (240, 90, waits), (690, 360, pf), (780, 1, reset)]);
    assert!(svg.contains(">100 ms<") && svg.contains(">rcs0<") && svg.contains(">vf1<"), "{svg}");
}

#[test]
fn a_part_is_drawn() {
    let svg = svg(&timeline(), (60.0, 80.0)).unwrap();
    assert_eq!(shapes(&svg), [(150, 900, "#7f7f7f"), (600, 1, "#d62728")]);
    assert!(super::draw::svg(&timeline(), (100.0, 200.0)).is_none());
    let mut other = timeline();
    other.slices[0].track = 3;
    other.tracks.insert(3, Track { name: "ccs0".into(), parent: Some(1), rank: 1 });
    assert!(super::draw::svg(&other, (0.0, 80.0)).unwrap().contains(">ccs0<"));
    assert!(!super::draw::svg(&other, (60.0, 80.0)).unwrap().contains(">ccs0<"), "no event in this part");
}

/// A shape for a run of pixels, not for a slice.
#[test]
fn the_size_of_a_picture_is_limited() {
    let slices = (0..50_000).map(|n| slice(2, 0, 2 * n, 2 * n + 1, if n % 2 == 0 { "vf1" } else { "vf2" }));
    let svg = svg(&Timeline { slices: slices.collect(), ..timeline() }, (0.0, f64::MAX)).unwrap();
    assert!(svg.len() < 100 << 10, "{} bytes", svg.len());
}
