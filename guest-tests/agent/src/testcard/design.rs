// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The contents of the test card: a grid with castellations, four corner circles, colour ramps, and in the centre a
//! circle with an arctic night scene, colour bars, the name, a grey ramp and gratings.

use super::font;
use super::{Canvas, HEIGHT, Op, Rect, WIDTH};
use crate::number::count;

const NIGHT: u32 = 0x0b_16_26;
const WHITE: u32 = 0xf4_f8_fb;
const BLACK: u32 = 0x05_07_0a;
const ICE: u32 = 0x9f_d8_f0;
const SKY_TOP: u32 = 0x03_08_18;
const SKY_HORIZON: u32 = 0x14_3a_55;
const GRID_LINE: u32 = 0x3d_5f_7d;
/// Ground of the corner circles.
const CORNER: u32 = 0x12_2a_40;

/// Side of a grid square; the screen has 32 by 18 of them.
const GRID: u32 = 60;
/// Side of the square scene, of which a circle is shown.
const SCENE: u32 = 960;
/// Top of the scene on the screen, in the centre of which it is.
const SCENE_TOP: u32 = (HEIGHT - SCENE) / 2;

/// Bands of the scene: first row and end row (exclusive).
const SKY: (u32, u32) = (0, 330);
const BARS: (u32, u32) = (330, 450);
const NAME_BAND: (u32, u32) = (450, 600);
const GREYS: (u32, u32) = (600, 666);
const GRATINGS: (u32, u32) = (666, 732);
const SEA: (u32, u32) = (732, SCENE);

/// Colour bars at 75 percent, brightest first, and near-black.
const COLOUR_BARS: [u32; 8] =
    [0xbf_bf_bf, 0xbf_bf_00, 0x00_bf_bf, 0x00_bf_00, 0xbf_00_bf, 0xbf_00_00, 0x00_00_bf, 0x10_10_10];

/// The peaks along the horizon: column, height, half width at the base.
const PEAKS: [(u32, u32, u32); 7] =
    [(110, 96, 150), (265, 132, 170), (420, 74, 120), (560, 158, 200), (705, 92, 140), (830, 124, 150), (940, 84, 130)];

/// The name in the centre.
const NAME: &str = "ARCTIC";

/// A text on the screen: the column of its centre, its top row, and the size of a glyph's pixel.
struct Label {
    text: &'static str,
    centre: u32,
    y: u32,
    scale: u32,
    colour: u32,
}

const LABELS: [Label; 6] = {
    const fn label(text: &'static str, centre: u32, y: u32, scale: u32, colour: u32) -> Label {
        Label { text, centre, y, scale, colour }
    }
    /// Distance in pixels of a label's centre from the nearer screen edge: between the corner circles and the central one.
    const FROM_EDGE: u32 = 520;
    let sea = SCENE_TOP + SEA.0;
    [
        label("FLEX 170", WIDTH / 2, sea + 50, 7, ICE),
        label("VIRTUAL GPU 8086:56C0", WIDTH / 2, sea + 122, 3, WHITE),
        label("XY_FAST_COLOR_BLT", FROM_EDGE, HEIGHT - 87, 3, ICE),
        label("XY_FAST_COPY_BLT", WIDTH - FROM_EDGE, HEIGHT - 87, 3, ICE),
        label("1920 X 1080 XRGB8888", FROM_EDGE, 66, 3, ICE),
        label("TILE4 TO LINEAR", WIDTH - FROM_EDGE, 66, 3, ICE),
    ]
};

/// A list of operations under construction.
struct Painter {
    operations: Vec<Op>,
}

/// Returns all operations, in order. Fills and copies stay within their canvases.
pub fn operations() -> Vec<Op> {
    let mut painter = Painter { operations: Vec::new() };
    painter.backdrop();
    painter.ramps();
    painter.corners();
    painter.sky();
    painter.mountains();
    painter.bands();
    painter.sea();
    painter.circle();
    painter.texts();
    painter.operations
}

/// Interpolates each colour component from `from` (`step` 0) to `to` (`step` equal to `steps`).
fn blend(from: u32, to: u32, step: u32, steps: u32) -> u32 {
    [16, 8, 0].into_iter().fold(0, |colour, shift| {
        let (a, b) = (from >> shift & 0xff, to >> shift & 0xff);
        let part = (a * (steps - step) + b * step + steps / 2) / steps;
        colour | part << shift
    })
}

/// A smooth wave between 0 and 255 with a period of 256, composed of parabolas.
fn wave(phase: u32) -> u32 {
    let (half, x) = (phase / 128 % 2, phase % 128);
    let bump = x * (128 - x) / 32;
    if half == 0 { 128 + bump.min(127) } else { 128 - bump.min(128) }
}

/// Returns a pseudo-random number of 24 bits, the same for an `index` in each run.
fn pseudo_random(index: u32) -> u32 {
    let mixed = (index + 1).wrapping_mul(0x9e37_79b1);
    (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca77) >> 8
}

/// Returns half the chord of a circle in a pixel row whose centre is `distance_half_pixels` from the centre of the circle.
fn half_chord(radius: u32, distance_half_pixels: u32) -> u32 {
    ((4 * radius * radius).saturating_sub(distance_half_pixels * distance_half_pixels)).isqrt() / 2
}

impl Painter {
    fn fill(&mut self, on: Canvas, (x, y): (u32, u32), (width, height): (u32, u32), colour: u32) {
        self.operations.push(Op::Fill { on, rect: Rect { x, y, width, height }, colour });
    }

    fn fill_screen(&mut self, at: (u32, u32), size: (u32, u32), colour: u32) {
        self.fill(Canvas::Screen, at, size, colour);
    }

    fn fill_scene(&mut self, at: (u32, u32), size: (u32, u32), colour: u32) {
        self.fill(Canvas::Scene, at, size, colour);
    }

    /// Draws a filled circle, row by row; its centre is the corner between four pixels.
    fn disc(&mut self, (x, y): (u32, u32), radius: u32, colour: u32) {
        for row in 0..2 * radius {
            let chord = half_chord(radius, (2 * row + 1).abs_diff(2 * radius));
            if chord > 0 {
                self.fill_screen((x - chord, y - radius + row), (2 * chord, 1), colour);
            }
        }
    }

    /// Draws a night-blue gradient, grid lines, and black and white blocks along the edges.
    fn backdrop(&mut self) {
        const STEP: u32 = 12;
        for y in (0..HEIGHT).step_by(STEP as usize) {
            self.fill_screen((0, y), (WIDTH, STEP), blend(NIGHT, 0x1c_3d_5a, y, HEIGHT));
        }
        for x in (GRID..WIDTH).step_by(GRID as usize) {
            self.fill_screen((x - 1, 0), (2, HEIGHT), GRID_LINE);
        }
        for y in (GRID..HEIGHT).step_by(GRID as usize) {
            self.fill_screen((0, y - 1), (WIDTH, 2), GRID_LINE);
        }
        const EDGE: u32 = 20;
        for column in 0..WIDTH / GRID {
            let colours = if column % 2 == 0 { [WHITE, BLACK] } else { [BLACK, WHITE] };
            self.fill_screen((column * GRID, 0), (GRID, EDGE), colours[0]);
            self.fill_screen((column * GRID, HEIGHT - EDGE), (GRID, EDGE), colours[1]);
        }
        for row in 0..HEIGHT / GRID {
            let colours = if row % 2 == 0 { [WHITE, BLACK] } else { [BLACK, WHITE] };
            let (top, bottom) = (if row == 0 { EDGE } else { 0 }, if row == HEIGHT / GRID - 1 { EDGE } else { 0 });
            let height = GRID - top - bottom;
            self.fill_screen((0, row * GRID + top), (EDGE, height), colours[0]);
            self.fill_screen((WIDTH - EDGE, row * GRID + top), (EDGE, height), colours[1]);
        }
    }

    /// Draws red, green and blue ramps left of the circle, and hues right of it.
    fn ramps(&mut self) {
        const STEPS: u32 = 32;
        const ROWS: u32 = 12;
        /// Distance of the middle of the ramps from the middle of the screen.
        const ABOVE_CENTRE: u32 = 6;
        let top = HEIGHT / 2 - STEPS * ROWS / 2 - ABOVE_CENTRE;
        for (index, colour) in (0..).zip([0xff_30_30, 0x30_e0_50, 0x40_70_ff]) {
            let x = 180 + GRID * index;
            for step in 0..STEPS {
                self.fill_screen((x, top + step * ROWS), (GRID, ROWS), blend(BLACK, colour, step, STEPS - 1));
            }
        }
        const HUES: [u32; 7] = [0xff_30_30, 0xff_d0_30, 0x40_e0_50, 0x30_d8_e0, 0x40_60_ff, 0xe0_40_d0, 0xff_30_30];
        for step in 0..STEPS {
            let place = step * 6 * 16 / STEPS;
            let (from, part) = ((place / 16) as usize, place % 16);
            let hue = blend(HUES[from], HUES[from + 1], part, 16);
            for (index, towards) in (0..).zip([WHITE, hue, BLACK]) {
                let x = WIDTH - 180 - GRID * (3 - index);
                self.fill_screen((x, top + step * ROWS), (GRID, ROWS), blend(hue, towards, 1, 2));
            }
        }
    }

    /// Draws a circle with a cross in each corner.
    fn corners(&mut self) {
        for x in [3 * GRID, WIDTH - 3 * GRID] {
            for y in [3 * GRID, HEIGHT - 3 * GRID] {
                self.disc((x, y), 114, WHITE);
                self.disc((x, y), 110, CORNER);
                self.disc((x, y), 60, ICE);
                self.disc((x, y), 57, CORNER);
                self.fill_screen((x - 110, y - 1), (220, 2), WHITE);
                self.fill_screen((x - 1, y - 110), (2, 220), WHITE);
                self.disc((x, y), 6, 0xff_5a_3c);
            }
        }
    }

    /// Draws night, stars and two curtains of aurora.
    fn sky(&mut self) {
        const ROWS: u32 = 6;
        for y in (SKY.0..SKY.1).step_by(ROWS as usize) {
            self.fill_scene((0, y), (SCENE, ROWS), blend(SKY_TOP, SKY_HORIZON, y, SKY.1));
        }
        for star in 0..170 {
            let (x, y) = (pseudo_random(2 * star) % SCENE, pseudo_random(2 * star + 1) % 230);
            let size = if star % 9 == 0 { 2 } else { 1 };
            let size = (size.min(SCENE - x), size);
            self.fill_scene((x, y), size, blend(0x60_78_98, WHITE, pseudo_random(star + 999) % 16, 16));
        }
        // Two curtains of thin columns; each has wavy edges and fades upwards.
        const COLUMN: u32 = 4;
        const SEGMENT: u32 = 8;
        for (depth, foot, length, low, high) in
            [(0, 190, 120, 0x2a_e0_8c, 0x7a_3c_c8), (1, 236, 150, 0x58_f0_a0, 0x20_90_b0)]
        {
            for x in (0..SCENE).step_by(COLUMN as usize) {
                let sway = wave(x / 2 + 70 * depth) / 4 + wave(x + x / 3 + 40 * depth) / 9;
                let glow = 90 + wave(3 * x + 90 * depth) / 3 + wave(7 * x + 31 * depth) / 5;
                let bottom = foot - 60 + sway;
                let segments = (length * (160 + wave(2 * x + 50 * depth) / 3) / 256) / SEGMENT;
                for segment in 0..segments {
                    let y = (bottom - segment * SEGMENT).max(SEGMENT);
                    let night = blend(SKY_TOP, SKY_HORIZON, y - y % ROWS, SKY.1);
                    let light = blend(low, high, segment, segments);
                    // A sharp lower edge and a long fade upwards.
                    let strength = match segment {
                        0 => glow / 3,
                        1 => glow * 3 / 4,
                        _ => glow * (segments - segment) / segments,
                    };
                    let strength = strength.min(240);
                    if strength > 24 {
                        self.fill_scene((x, y - SEGMENT), (COLUMN, SEGMENT), blend(night, light, strength, 256));
                    }
                }
            }
        }
    }

    /// Draws dark peaks with snow, in front of the aurora.
    fn mountains(&mut self) {
        /// Number of rows over which the snow thins out.
        const SNOW_FADE_ROWS: u32 = 28;
        /// Width of the snow's teeth where they begin, and distance between them.
        const SNOW_TOOTH_WIDTH: u32 = 26;
        for (index, (column, height, half)) in (0..).zip(PEAKS) {
            let rock = if index % 2 == 0 { 0x12_26_3a } else { 0x18_30_48 };
            for row in (0..height).step_by(2) {
                let reach = (half * (row + 2) / height).max(1);
                // A deterministic jagged edge.
                let jag = |side: u32| pseudo_random(row / 6 + 31 * side + 77 * index) % 7;
                let left = column.saturating_sub(reach + jag(0));
                let right = (column + reach + jag(1)).min(SCENE);
                let y = SKY.1 - height + row;
                self.fill_scene((left, y), (right - left, 2), rock);
                // The light comes from the left: bright snow on that side, a blue shade on the other. Below the snow
                // line the snow ends in teeth that narrow from row to row.
                let line = height * 2 / 5;
                let fade = row.saturating_sub(line).min(SNOW_FADE_ROWS);
                let width = SNOW_TOOTH_WIDTH - SNOW_TOOTH_WIDTH * fade / SNOW_FADE_ROWS;
                let mut x = left;
                while width > 0 && x < right {
                    let lit = x + SNOW_TOOTH_WIDTH / 2 <= column;
                    let end = (x + width).min(right);
                    let colour =
                        if lit { blend(WHITE, ICE, row, height) } else { blend(0x8f_b8_d4, 0x4a_74_98, row, height) };
                    self.fill_scene((x, y), (end - x, 2), colour);
                    x += SNOW_TOOTH_WIDTH;
                }
            }
        }
    }

    /// Draws colour bars, the background of the name, greys and gratings.
    fn bands(&mut self) {
        for (index, colour) in (0..).zip(COLOUR_BARS) {
            self.fill_scene((120 * index, BARS.0), (120, BARS.1 - BARS.0), colour);
        }
        self.fill_scene((0, NAME_BAND.0), (SCENE, NAME_BAND.1 - NAME_BAND.0), BLACK);
        for y in [NAME_BAND.0, NAME_BAND.1 - 4] {
            self.fill_scene((0, y), (SCENE, 4), ICE);
        }
        for step in 0..16 {
            let level = step * 17;
            let colour = level << 16 | level << 8 | level;
            self.fill_scene((60 * step, GREYS.0), (60, GREYS.1 - GREYS.0), colour);
        }
        // Lines of 8, 6, 4, 3, 2 and 1 pixels, the finest in the middle, where a copy displaced by one pixel is
        // visible.
        let height = GRATINGS.1 - GRATINGS.0;
        self.fill_scene((0, GRATINGS.0), (SCENE, height), 0x80_80_80);
        let mut x = 24;
        for line in [8, 6, 4, 3, 2, 1, 1, 2, 3, 4, 6, 8] {
            const GROUP: u32 = 76;
            let mut offset = 0;
            while offset + 2 * line <= GROUP - 4 {
                self.fill_scene((x + offset, GRATINGS.0), (line, height), WHITE);
                self.fill_scene((x + offset + line, GRATINGS.0), (line, height), BLACK);
                offset += 2 * line;
            }
            x += GROUP;
        }
    }

    /// Draws dark water with the aurora's reflection and ice floes.
    fn sea(&mut self) {
        const ROWS: u32 = 4;
        let depth = SEA.1 - SEA.0;
        for y in (SEA.0..SEA.1).step_by(ROWS as usize) {
            self.fill_scene((0, y), (SCENE, ROWS), blend(0x1f_6a_70, 0x04_10_22, y - SEA.0, depth));
        }
        for glint in 0..150 {
            let row = pseudo_random(3 * glint + 1) % depth;
            let width = 16 + pseudo_random(3 * glint + 2) % (24 + row / 3);
            let x = pseudo_random(3 * glint) % (SCENE - width);
            let colour = blend(0x5a_e0_a8, 0x0c_30_48, row, depth);
            self.fill_scene((x, SEA.0 + row - row % 2), (width, 2), colour);
        }
    }

    /// Draws the circle: a white rim, then the rows of the scene, copied from the tiled surface.
    fn circle(&mut self) {
        let radius = SCENE / 2;
        let centre = (WIDTH / 2, HEIGHT / 2);
        self.disc(centre, radius + 8, WHITE);
        self.disc(centre, radius + 4, BLACK);
        for row in 0..SCENE {
            let chord = half_chord(radius, (2 * row + 1).abs_diff(SCENE));
            if chord > 0 {
                self.operations.push(Op::Copy {
                    from: Canvas::Scene,
                    rect: Rect { x: radius - chord, y: row, width: 2 * chord, height: 1 },
                    to: Canvas::Screen,
                    x: centre.0 - chord,
                    y: SCENE_TOP + row,
                });
            }
        }
    }

    /// Draws the name and the labels.
    fn texts(&mut self) {
        let name = SCENE_TOP + NAME_BAND.0;
        self.text(NAME, WIDTH / 2, name + 33, 12, (WHITE, 0x58_b8_e8), BLACK);
        for Label { text, centre, y, scale, colour } in LABELS {
            self.label(text, centre, y, scale, colour);
        }
    }

    /// Draws text on a dark box.
    fn label(&mut self, text: &str, centre: u32, y: u32, scale: u32, colour: u32) {
        let width = text_width(text, scale) + 6 * scale;
        let box_colour = 0x0a_16_24;
        self.fill_screen((centre - width / 2, y - 3 * scale), (width, (font::HEIGHT + 6) * scale), box_colour);
        self.text(text, centre, y, scale, (colour, colour), box_colour);
    }

    /// Draws text centred at the column `centre`. Each character is drawn once on the glyph canvas, with a fill per run
    /// of pixels, and then copied to each of its positions. The colour changes from the first to the second from top to
    /// bottom. A character without a glyph is a space.
    fn text(&mut self, text: &str, centre: u32, y: u32, scale: u32, colours: (u32, u32), ground: u32) {
        let size = (font::WIDTH * scale, font::HEIGHT * scale);
        let mut drawn: Vec<char> = Vec::new();
        let mut x = centre - text_width(text, scale) / 2;
        for character in text.chars() {
            if let Some((_, rows)) = font::GLYPHS.iter().find(|(glyph, _)| *glyph == character) {
                let known = drawn.iter().position(|other| *other == character);
                let place = count(known.unwrap_or(drawn.len())) * (size.0 + scale);
                if known.is_none() {
                    drawn.push(character);
                    self.fill(Canvas::Glyphs, (place, 0), size, ground);
                    for (row, bits) in (0..).zip(rows) {
                        for (run, length) in font::runs(*bits) {
                            let colour = blend(colours.0, colours.1, row, font::HEIGHT);
                            let at = (place + run * scale, row * scale);
                            self.fill(Canvas::Glyphs, at, (length * scale, scale), colour);
                        }
                    }
                }
                let rect = Rect { x: place, y: 0, width: size.0, height: size.1 };
                self.operations.push(Op::Copy { from: Canvas::Glyphs, rect, to: Canvas::Screen, x, y });
            }
            x += (font::WIDTH + 1) * scale;
        }
    }
}

/// Width of `text` in pixels, without the gap after the last character.
fn text_width(text: &str, scale: u32) -> u32 {
    let characters = count(text.chars().count());
    (characters * (font::WIDTH + 1)).saturating_sub(1) * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blend_returns_its_ends_at_step_0_and_steps() {
        assert_eq!(blend(0x12_34_56, 0xfe_dc_ba, 0, 7), 0x12_34_56);
        assert_eq!(blend(0x12_34_56, 0xfe_dc_ba, 7, 7), 0xfe_dc_ba);
        assert_eq!(blend(0, 0xff_ff_ff, 1, 2), 0x80_80_80);
    }

    #[test]
    fn wave_spans_0_to_255() {
        assert_eq!((wave(64), wave(192)), (255, 0));
        assert!((0..1024).all(|phase| wave(phase) < 256));
    }

    #[test]
    fn half_chord_is_zero_outside_the_circle() {
        assert_eq!(half_chord(480, 1), 479);
        assert_eq!(half_chord(480, 959), 21);
        assert_eq!(half_chord(480, 961), 0);
    }

    #[test]
    fn each_character_but_the_space_has_a_glyph() {
        for text in LABELS.iter().map(|label| label.text).chain([NAME]) {
            let missing = |character: &char| !font::GLYPHS.iter().any(|(glyph, _)| glyph == character);
            assert!(text.chars().filter(missing).all(|character| character == ' '), "{text}");
        }
    }

    /// The guest submits all operations, so their number is limited to keep the batches few.
    #[test]
    fn number_of_operations_is_within_limits() {
        let count = operations().len();
        assert!((2_000..20_000).contains(&count), "{count} operations");
    }
}
