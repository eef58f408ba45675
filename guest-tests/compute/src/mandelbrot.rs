// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The picture that a kernel draws: the Mandelbrot set, as the number of steps of each point. The guest stores the numbers, and
//! the host compares them with its own and colours them.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use crate::problem::{Expected, Mismatch, bytes};

/// Width in pixels.
pub const WIDTH: usize = 512;
/// Height in pixels.
pub const HEIGHT: usize = 384;
/// Real part at the left edge.
pub const LEFT: f32 = -2.25;
/// Imaginary part at the upper edge.
pub const TOP: f32 = -1.125;
/// Distance of two pixels.
pub const SIZE: f32 = 3.0 / 512.0;
/// Most steps of a point.
pub const LIMIT: u32 = 128;

/// The number of steps of each point, from the top left.
pub fn render() -> Vec<u32> {
    let points = (0..HEIGHT).flat_map(|row| (0..WIDTH).map(move |column| (column, row)));
    points.map(|(column, row)| steps(column, row)).collect()
}

/// The number of steps of a point until it leaves the circle, at most [`LIMIT`].
fn steps(column: usize, row: usize) -> u32 {
    let (x0, y0) = point(column, row);
    if inside(x0, y0) { LIMIT } else { iterate(x0, y0) }
}

#[allow(clippy::cast_precision_loss, reason = "pixels are few")]
fn point(column: usize, row: usize) -> (f32, f32) {
    (LEFT + column as f32 * SIZE, TOP + row as f32 * SIZE)
}

/// The kernel's loop.
fn iterate(x0: f32, y0: f32) -> u32 {
    let (mut x, mut y, mut n) = (0f32, 0f32, 0);
    while n < LIMIT && x * x + y * y <= 4.0 {
        (x, y) = (x * x - y * y + x0, 2.0 * x * y + y0);
        n += 1;
    }
    n
}

/// Whether a point is in the cardioid or in the largest disc, and therefore never leaves. An emulated CPU takes seconds for
/// the steps of these points.
fn inside(x: f32, y: f32) -> bool {
    let y2 = y * y;
    let q = (x - 0.25) * (x - 0.25) + y2;
    q * (q + (x - 0.25)) <= 0.25 * y2 || (x + 1.0) * (x + 1.0) + y2 <= 0.0625
}

/// What is wrong with a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Pixels differ.
    #[error("the picture differs from the host's: {0}")]
    Pixels(Mismatch),
    /// It has not the size of a picture.
    #[error("the picture has {0} bytes, expected {size}", size = 4 * WIDTH * HEIGHT)]
    Size(usize),
}

/// Compares the numbers of steps, little-endian, with those that this function computes.
pub fn verify(raw: &[u8]) -> Result<(), Wrong> {
    if raw.len() != 4 * WIDTH * HEIGHT {
        return Err(Wrong::Size(raw.len()));
    }
    Expected::exact(&render()).compare(raw).map_err(Wrong::Pixels)
}

/// Writes the numbers of steps as a picture.
///
/// # Errors
/// If `raw` has not the size of a picture, or the file cannot be written.
pub fn save_png(path: &Path, raw: &[u8]) -> io::Result<()> {
    if raw.len() != 4 * WIDTH * HEIGHT {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, Wrong::Size(raw.len())));
    }
    let (steps, _) = raw.as_chunks::<4>();
    let rgb: Vec<u8> = steps.iter().flat_map(|steps| colour(u32::from_le_bytes(*steps))).collect();
    let (width, height) = (WIDTH.try_into(), HEIGHT.try_into());
    let size = (width.unwrap_or(0), height.unwrap_or(0));
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), size.0, size.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&rgb)?;
    writer.finish()?;
    Ok(())
}

/// The colour of a number of steps: black for points that do not leave, else from dark blue over white to orange.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "0 to 255")]
fn colour(steps: u32) -> [u8; 3] {
    const STOPS: [[f32; 3]; 5] =
        [[0.0, 7.0, 60.0], [32.0, 107.0, 203.0], [237.0, 255.0, 255.0], [255.0, 170.0, 0.0], [90.0, 20.0, 10.0]];
    if steps >= LIMIT {
        return [0; 3];
    }
    // Most points leave after few steps, so these have most of the colours.
    let at = (steps as f32 / LIMIT as f32).sqrt() * (STOPS.len() - 1) as f32;
    let index = (at as usize).min(STOPS.len() - 2);
    [0, 1, 2]
        .map(|part| (STOPS[index][part] + (STOPS[index + 1][part] - STOPS[index][part]) * (at - index as f32)) as u8)
}

/// The picture as the guest stores it.
pub fn raw(steps: &[u32]) -> Vec<u8> {
    bytes(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The points that are not iterated have the number of steps that the kernel's loop has.
    #[test]
    fn the_shortcut_changes_no_pixel() {
        let looped = (0..HEIGHT).flat_map(|row| {
            (0..WIDTH).map(move |column| {
                let (x0, y0) = point(column, row);
                iterate(x0, y0)
            })
        });
        assert!(looped.eq(render()));
    }

    #[test]
    fn the_picture_shows_the_set() {
        let steps = render();
        let at = |column: usize, row: usize| steps[row * WIDTH + column];
        // The centre of the cardioid, that of the disc, the corner, and 0.5 + 0.5 i.
        assert_eq!((at(384, 192), at(213, 192), at(0, 0)), (LIMIT, LIMIT, 1));
        assert!((3..20).contains(&at(469, 277)), "{}", at(469, 277));
        // The set is symmetric to the real axis, which is a row of pixels.
        assert_eq!(at(300, 192 + 100), at(300, 192 - 100));
    }

    #[test]
    fn a_wrong_pixel_is_found() {
        let mut picture = raw(&render());
        assert_eq!(verify(&picture), Ok(()));
        picture[4 * 1000] ^= 1;
        let error = verify(&picture).unwrap_err().to_string();
        assert!(error.starts_with("the picture differs from the host's: 1 of 196608 wrong, first at 1000:"), "{error}");
        assert_eq!(verify(&picture[1..]), Err(Wrong::Size(picture.len() - 1)));
    }

    #[test]
    fn a_png_holds_the_picture() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("picture.png");
        save_png(&path, &raw(&render())).unwrap();
        let mut reader = png::Decoder::new(io::BufReader::new(File::open(&path).unwrap())).read_info().unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut rgb).unwrap();
        assert_eq!((info.width as usize, info.height as usize), (WIDTH, HEIGHT));
        assert_eq!((&rgb[..3], colour(LIMIT)), (&colour(1)[..], [0; 3]));
        assert!(save_png(&path, &[0; 4]).is_err());
    }
}
