// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The picture of a timeline: a row for each track, slices in the colours of functions, other events as marks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use arctic_timeline::{Instant, Slice, Timeline, Track};

/// Sizes in pixels.
const LABELS: usize = 150;
const WIDTH: usize = 900;
const ROW: usize = 20;
const BAR: usize = 9;
const TOP: usize = 30;

/// Colours of functions: that of the PF, and those of VFs in turn.
const PF: &str = "#7f7f7f";
const VFS: [&str; 8] = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#17becf"];
/// Colours of slices within a context, by name.
const NESTED: [(&str, &str); 3] = [("batch", "#b8c4d0"), ("kernel", "#404040"), ("waits", "#e8b4b8")];
/// Colours of other events, by the begin of the name; the first that fits.
const MARKS: [(&str, &str); 8] = [
    ("GuC", "#5b8def"),
    ("MSI", "#2ca02c"),
    ("interrupt", "#98df8a"),
    ("doorbell", "#9467bd"),
    ("TLB", "#8c6d31"),
    ("reset", "#d62728"),
    ("events were lost", "#000000"),
    ("", "#bcbd22"),
];

/// The colour of a slice with this name, outside of all others.
fn colour(name: &str) -> &'static str {
    let function = name.split(' ').next().unwrap_or_default();
    let number = function.strip_prefix("vf").and_then(|number| number.parse::<usize>().ok());
    number.map_or(PF, |number| VFS[number.saturating_sub(1) % VFS.len()])
}

/// The colour of a slice within a context; `None` for a context.
fn nested(name: &str) -> Option<&'static str> {
    NESTED.iter().find(|(nested, _)| *nested == name).map(|(_, colour)| *colour)
}

fn mark(name: &str) -> (&'static str, &'static str) {
    MARKS.iter().find(|(begin, _)| name.starts_with(begin)).map_or(("", "#bcbd22"), |(begin, colour)| (begin, colour))
}

/// The part of the time that is drawn.
struct Axis {
    begin: f64,
    end: f64,
}

impl Axis {
    fn of(timeline: &Timeline, (from, to): (f64, f64)) -> Option<Axis> {
        let slices = timeline.slices.iter().flat_map(|slice| [slice.begin, slice.end]);
        let times = || slices.clone().chain(timeline.instants.iter().map(|instant| instant.at));
        let (first, last) = (times().min()? as f64, times().max()? as f64);
        let (begin, end) = (first + from * 1e6, (first + to * 1e6).min(last));
        (begin < end).then_some(Axis { begin, end })
    }

    /// Returns whether a part of the time between these is drawn.
    fn has(&self, begin: u64, end: u64) -> bool {
        begin as f64 <= self.end && end as f64 >= self.begin
    }

    /// The pixel of a time, if it is drawn.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the part is 0 to 1")]
    fn pixel(&self, at: f64) -> Option<usize> {
        let part = (at - self.begin) / (self.end - self.begin);
        (0.0..=1.0).contains(&part).then(|| ((part * WIDTH as f64) as usize).min(WIDTH - 1))
    }

    /// Marks of the axis: distance from its begin in ms.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let length = (self.end - self.begin) / 1e6;
        let power = 10f64.powf((length / 10.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|step| length / step <= 10.0);
        let step = step.unwrap_or(length);
        (0..=10).map(move |n| f64::from(n) * step).take_while(move |at| *at <= length)
    }
}

/// Colours of pixels in a row: of slices, that which covers most of the pixel.
fn pixels<'s>(
    slices: impl Iterator<Item = &'s Slice>,
    axis: &Axis,
    colour: impl Fn(&str) -> &'static str,
) -> Vec<(usize, usize, &'static str)> {
    let mut best = vec![(0.0, ""); WIDTH];
    let ns = (axis.end - axis.begin) / WIDTH as f64;
    for slice in slices {
        let (begin, end) = ((slice.begin as f64).max(axis.begin), (slice.end as f64).min(axis.end));
        if begin > end {
            continue;
        }
        let (Some(first), Some(last)) = (axis.pixel(begin), axis.pixel(end)) else { continue };
        for (pixel, best) in best.iter_mut().enumerate().take(last + 1).skip(first) {
            let (left, right) = (axis.begin + pixel as f64 * ns, axis.begin + (pixel + 1) as f64 * ns);
            let covered = end.min(right) - begin.max(left);
            if covered > best.0 {
                *best = (covered, colour(&slice.name));
            }
        }
    }
    let mut runs: Vec<(usize, usize, &str)> = Vec::new();
    for (pixel, (covered, colour)) in best.into_iter().enumerate() {
        match runs.last_mut() {
            Some((begin, length, last)) if *last == colour && *begin + *length == pixel => *length += 1,
            _ if covered > 0.0 => runs.push((pixel, 1, colour)),
            _ => {}
        }
    }
    runs
}

/// Tracks that have events in the part that is drawn, and those above them, in the order of a page: below their parents, by rank.
fn rows(timeline: &Timeline, axis: &Axis) -> Vec<(u64, usize)> {
    fn add(timeline: &Timeline, used: &BTreeSet<u64>, parent: Option<u64>, depth: usize, rows: &mut Vec<(u64, usize)>) {
        let below = timeline.tracks.iter().filter(|(_, track)| track.parent == parent);
        let mut below: Vec<(&u64, &Track)> = below.collect();
        below.sort_by_key(|(uuid, track)| (track.rank, **uuid));
        for (uuid, _) in below {
            let before = rows.len();
            rows.push((*uuid, depth));
            add(timeline, used, Some(*uuid), depth + 1, rows);
            if rows.len() == before + 1 && !used.contains(uuid) {
                rows.pop();
            }
        }
    }
    let slices = timeline.slices.iter().filter(|slice| axis.has(slice.begin, slice.end)).map(|slice| slice.track);
    let instants =
        timeline.instants.iter().filter(|instant| axis.has(instant.at, instant.at)).map(|instant| instant.track);
    let mut rows = Vec::new();
    add(timeline, &slices.chain(instants).collect(), None, 0, &mut rows);
    rows
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Draws a part of a timeline, in ms from its begin; `None` if there is nothing.
pub fn svg(timeline: &Timeline, part: (f64, f64)) -> Option<String> {
    let axis = Axis::of(timeline, part)?;
    let rows = rows(timeline, &axis);
    let height = TOP + rows.len() * ROW + 50;
    let mut svg = String::new();
    let (mut bars, mut points) = (Shapes::default(), Shapes::default());
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>",
        LABELS + WIDTH + 20
    );
    for tick in axis.ticks() {
        let x = LABELS + axis.pixel(axis.begin + tick * 1e6)?;
        let _ = writeln!(
            svg,
            "<path d=\"M{x} {TOP}V{}\" stroke=\"#e4e4e4\"/><text x=\"{x}\" y=\"{}\">{} ms</text>",
            TOP + rows.len() * ROW,
            TOP - 8,
            (tick * 1000.0).round() / 1000.0
        );
    }
    let (mut functions, mut marks, mut inner) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (place, (uuid, depth)) in rows.iter().enumerate() {
        let y = TOP + place * ROW;
        let name = timeline.tracks.get(uuid).map_or("", |track| &track.name);
        let weight = if *depth == 0 { " font-weight=\"bold\"" } else { "" };
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\"{weight}>{}</text>", 4 + depth * 12, y + 12, escaped(name));
        let of_row = |outer: bool| {
            timeline.slices.iter().filter(move |slice| slice.track == *uuid && (slice.depth == 0) == outer)
        };
        let is_function = |slice: &&Slice| nested(&slice.name).is_none();
        for (x, width, colour) in pixels(of_row(true).filter(is_function), &axis, colour) {
            functions.insert(colour);
            bars.add(colour, (x, y + 3), (width, BAR));
        }
        // Of an engine whose contexts are not known, batches have no slice around them.
        let within = of_row(false).chain(of_row(true).filter(|slice| !is_function(slice)));
        for (x, width, colour) in pixels(within, &axis, |name| nested(name).unwrap_or(PF)) {
            inner.insert(colour);
            bars.add(colour, (x, y + 3 + BAR), (width, 4));
        }
        let of_row = timeline.instants.iter().filter(|instant| instant.track == *uuid);
        let at = |instant: &Instant| Some((mark(&instant.name), axis.pixel(instant.at as f64)?));
        let drawn: BTreeSet<_> = of_row.filter_map(at).collect();
        for ((kind, colour), x) in drawn {
            marks.insert((kind, colour));
            let down = MARKS.iter().position(|(begin, _)| *begin == kind).unwrap_or(0);
            points.add(colour, (x, y + 3 + down), (1, 6));
        }
    }
    bars.draw(&mut svg);
    points.draw(&mut svg);
    let legend_at = TOP + rows.len() * ROW + 20;
    let mut x = 4;
    let named = |colour: &&str| match VFS.iter().position(|vf| vf == colour) {
        Some(n) => format!("vf{}", n + 1),
        None => "pf".into(),
    };
    let functions = functions.iter().map(|colour| (named(colour), *colour));
    let inner =
        NESTED.iter().filter(|(_, colour)| inner.contains(colour)).map(|(name, colour)| ((*name).to_owned(), *colour));
    let marks =
        marks.iter().map(|(kind, colour)| (if kind.is_empty() { "other".into() } else { (*kind).to_owned() }, *colour));
    let mut functions: Vec<_> = functions.collect();
    functions.sort();
    for (name, colour) in functions.into_iter().chain(inner).chain(marks) {
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{legend_at}\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"{}\">{name}</text>",
            x + 14,
            legend_at + 9
        );
        x += 30 + 7 * name.len();
    }
    svg += "</svg>\n";
    Some(svg)
}

/// Rectangles by their colours: a path for each colour.
#[derive(Default)]
struct Shapes(BTreeMap<&'static str, Vec<Rectangle>>);

/// Left, top, width and height.
type Rectangle = (usize, usize, usize, usize);

impl Shapes {
    /// Adds a rectangle, or lengthens the last one to the right.
    fn add(&mut self, colour: &'static str, (x, y): (usize, usize), (width, height): (usize, usize)) {
        let shapes = self.0.entry(colour).or_default();
        match shapes.last_mut() {
            Some((left, top, length, high)) if (*left + *length, *top, *high) == (x, y, height) => *length += width,
            _ => shapes.push((x, y, width, height)),
        }
    }

    fn draw(&self, svg: &mut String) {
        for (colour, shapes) in &self.0 {
            let shape = |(x, y, width, height): &Rectangle| format!("M{} {y}h{width}v{height}h-{width}z", LABELS + x);
            let path: String = shapes.iter().map(shape).collect();
            let _ = writeln!(svg, "<path d=\"{path}\" fill=\"{colour}\"/>");
        }
    }
}
