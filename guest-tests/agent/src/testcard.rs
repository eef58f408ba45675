// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The test card: a picture of 1920 by 1080 pixels, defined as fills and copies, drawn by the guest with the copy
//! engine and by the host on the CPU.

mod design;
mod font;

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use sha2::{Digest, Sha256};

pub use design::operations;

/// Screen width in pixels.
pub const WIDTH: u32 = 1920;
/// Screen height in pixels.
pub const HEIGHT: u32 = 1080;
/// Size of the screen in bytes: XRGB8888, rows without gaps.
pub const BYTES: usize = (WIDTH * HEIGHT * 4) as usize;

/// A surface of 32-bit pixels to draw on; initially zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canvas {
    /// The visible screen, linear.
    Screen = 0,
    /// The scene inside the circle, drawn as a square and copied to the circle row by row; Tile4.
    Scene = 1,
    /// The glyphs to be copied to the screen; linear.
    Glyphs = 2,
}

impl Canvas {
    /// All canvases, in index order.
    pub const ALL: [Canvas; 3] = [Canvas::Screen, Canvas::Scene, Canvas::Glyphs];

    /// Width in pixels.
    pub const fn width(self) -> u32 {
        [WIDTH, 1024, 1024][self as usize]
    }

    /// Height in pixels.
    pub const fn height(self) -> u32 {
        [HEIGHT, 1024, 256][self as usize]
    }

    /// Row pitch in bytes.
    pub const fn pitch(self) -> u32 {
        self.width() * 4
    }

    /// Whether the layout is Tile4 (tiles of 128 bytes by 32 rows).
    pub const fn tiled(self) -> bool {
        matches!(self, Canvas::Scene)
    }
}

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rect {
    /// Left.
    pub x: u32,
    /// Top.
    pub y: u32,
    /// Width in pixels, at least one.
    pub width: u32,
    /// Height in pixels, at least one.
    pub height: u32,
}

/// One operation of the copy engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// XY_FAST_COLOR_BLT.
    Fill {
        /// The canvas to fill.
        on: Canvas,
        /// The pixels to fill.
        rect: Rect,
        /// 0x00RRGGBB.
        colour: u32,
    },
    /// XY_FAST_COPY_BLT; source and target must be different canvases.
    Copy {
        /// The source canvas.
        from: Canvas,
        /// The source pixels.
        rect: Rect,
        /// The target canvas.
        to: Canvas,
        /// Left in the target.
        x: u32,
        /// Top in the target.
        y: u32,
    },
}

/// SHA-256 of a picture's bytes; shown in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum(pub [u8; 32]);

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A difference between a picture and the test card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The size of the picture is wrong.
    #[error("the test card has {BYTES} bytes, the picture {0}")]
    Size(usize),
    /// Pixels differ.
    #[error(
        "test card: SHA-256 expected {expected}, got {found}; {pixels} pixels differ, first at ({x}, {y}): expected \
         {want:#010x}, got {got:#010x}"
    )]
    Pixels {
        /// Checksum of the CPU's rendering.
        expected: Checksum,
        /// Checksum of the picture.
        found: Checksum,
        /// Number of differing pixels.
        pixels: usize,
        /// Column of the first differing pixel.
        x: usize,
        /// Row of the first differing pixel.
        y: usize,
        /// Value of that pixel in the CPU's rendering.
        want: u32,
        /// Value of that pixel in the picture.
        got: u32,
    },
}

/// Returns the checksum of a picture's bytes.
pub fn checksum(pixels: &[u8]) -> Checksum {
    Checksum(Sha256::digest(pixels).into())
}

/// Draws the test card on the CPU: XRGB8888, little-endian, rows from the top without gaps, [`BYTES`] bytes.
pub fn render() -> Vec<u8> {
    let mut canvases = Canvas::ALL.map(|canvas| vec![0u32; (canvas.width() * canvas.height()) as usize]);
    for operation in operations() {
        match operation {
            Op::Fill { on, rect, colour } => {
                for y in rect.y..rect.y + rect.height {
                    let start = (y * on.width() + rect.x) as usize;
                    canvases[on as usize][start..start + rect.width as usize].fill(colour);
                }
            }
            Op::Copy { from, rect, to, x, y } => {
                let [source, target] =
                    canvases.get_disjoint_mut([from as usize, to as usize]).expect("a copy is between two canvases");
                for row in 0..rect.height {
                    let here = ((rect.y + row) * from.width() + rect.x) as usize;
                    let there = ((y + row) * to.width() + x) as usize;
                    let width = rect.width as usize;
                    target[there..there + width].copy_from_slice(&source[here..here + width]);
                }
            }
        }
    }
    canvases[Canvas::Screen as usize].iter().flat_map(|pixel| pixel.to_le_bytes()).collect()
}

/// Compares a picture with the CPU's rendering of the test card.
pub fn verify(raw: &[u8]) -> Result<Checksum, Mismatch> {
    if raw.len() != BYTES {
        return Err(Mismatch::Size(raw.len()));
    }
    let rendered = render();
    let (expected, found) = (checksum(&rendered), checksum(raw));
    let pixels = |bytes: &[u8]| -> Vec<u32> {
        let (pixels, _) = bytes.as_chunks::<4>();
        pixels.iter().map(|pixel| u32::from_le_bytes(*pixel)).collect()
    };
    let (want, got) = (pixels(&rendered), pixels(raw));
    let mut wrong = (0..want.len()).filter(|&index| want[index] != got[index]);
    match wrong.next() {
        None => Ok(found),
        Some(first) => Err(Mismatch::Pixels {
            expected,
            found,
            pixels: 1 + wrong.count(),
            x: first % WIDTH as usize,
            y: first / WIDTH as usize,
            want: want[first],
            got: got[first],
        }),
    }
}

/// Writes XRGB8888 pixels as a PNG. Fails if the file cannot be written or `pixels` does not have [`BYTES`] bytes.
pub fn save_png(path: &Path, pixels: &[u8]) -> io::Result<()> {
    if pixels.len() != BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, Mismatch::Size(pixels.len())));
    }
    let (pixels, _) = pixels.as_chunks::<4>();
    let rgb: Vec<u8> = pixels.iter().flat_map(|&[blue, green, red, _]| [red, green, blue]).collect();
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), WIDTH, HEIGHT);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&rgb)?;
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operations are not clipped by the hardware, so they must stay within their canvases.
    #[test]
    fn operations_stay_on_their_canvases() {
        let inside = |canvas: Canvas, x: u32, y: u32, rect: &Rect| {
            rect.width > 0 && rect.height > 0 && x + rect.width <= canvas.width() && y + rect.height <= canvas.height()
        };
        for operation in operations() {
            match operation {
                Op::Fill { on, rect, colour } => {
                    assert!(inside(on, rect.x, rect.y, &rect), "{operation:?}");
                    assert!(colour < 1 << 24, "{operation:?}");
                }
                Op::Copy { from, rect, to, x, y } => {
                    assert!(inside(from, rect.x, rect.y, &rect) && inside(to, x, y, &rect), "{operation:?}");
                    assert!(from != to, "{operation:?}");
                }
            }
        }
    }

    #[test]
    fn a_wrong_pixel_is_found_and_named() {
        let mut picture = render();
        let checksum = verify(&picture).unwrap();
        assert_eq!(checksum.to_string().len(), 64);
        let at = (WIDTH as usize * 7 + 5) * 4;
        picture[at] ^= 0x80;
        match verify(&picture) {
            Err(Mismatch::Pixels { pixels: 1, x: 5, y: 7, want, got, .. }) => assert_eq!(want ^ got, 0x80),
            other => panic!("{other:?}"),
        }
        assert_eq!(verify(&picture[4..]), Err(Mismatch::Size(BYTES - 4)));
    }

    #[test]
    fn picture_of_the_documentation_is_the_test_card() {
        let file = io::Cursor::new(include_bytes!("../../../docs/testcard.png"));
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut rgb).unwrap();
        assert_eq!((info.width, info.height, info.color_type), (WIDTH, HEIGHT, png::ColorType::Rgb));
        let drawn: Vec<u8> = render().chunks_exact(4).flat_map(|xrgb| [xrgb[2], xrgb[1], xrgb[0]]).collect();
        assert!(rgb == drawn, "docs/testcard.png differs from what is drawn");
    }

    #[test]
    fn a_png_holds_the_picture() {
        let path = std::env::temp_dir().join(format!("arctic-testcard-{}.png", std::process::id()));
        let picture = render();
        save_png(&path, &picture).unwrap();
        let mut reader = png::Decoder::new(io::BufReader::new(File::open(&path).unwrap())).read_info().unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut rgb).unwrap();
        assert_eq!((info.width, info.height, info.color_type), (WIDTH, HEIGHT, png::ColorType::Rgb));
        let at = WIDTH as usize * 540 + 960;
        assert_eq!(rgb[3 * at..3 * at + 3], [picture[4 * at + 2], picture[4 * at + 1], picture[4 * at]]);
    }
}
