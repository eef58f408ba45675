// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Formats of images that the execution units convert (EU-082).

use arctic_eu::exec::memory::{Channel, ChannelOrder, ImageFormat};

const fn row(code: u32, order: ChannelOrder, channel: Channel) -> (u32, ImageFormat) {
    (code, ImageFormat { order, channel })
}

/// Codes of the field "Surface Format" (NEO `SURFACE_FORMAT`; Mesa isl.h `isl_format`).
const FORMATS: &[(u32, ImageFormat)] = &[
    row(0x000, ChannelOrder::Rgba, Channel::Float32),
    row(0x001, ChannelOrder::Rgba, Channel::Sint32),
    row(0x002, ChannelOrder::Rgba, Channel::Uint32),
    row(0x080, ChannelOrder::Rgba, Channel::Unorm16),
    row(0x081, ChannelOrder::Rgba, Channel::Snorm16),
    row(0x082, ChannelOrder::Rgba, Channel::Sint16),
    row(0x083, ChannelOrder::Rgba, Channel::Uint16),
    row(0x084, ChannelOrder::Rgba, Channel::Float16),
    row(0x085, ChannelOrder::Rg, Channel::Float32),
    row(0x086, ChannelOrder::Rg, Channel::Sint32),
    row(0x087, ChannelOrder::Rg, Channel::Uint32),
    row(0x0c0, ChannelOrder::Bgra, Channel::Unorm8),
    row(0x0c1, ChannelOrder::Sbgra, Channel::Unorm8),
    row(0x0c7, ChannelOrder::Rgba, Channel::Unorm8),
    row(0x0c8, ChannelOrder::Srgba, Channel::Unorm8),
    row(0x0c9, ChannelOrder::Rgba, Channel::Snorm8),
    row(0x0ca, ChannelOrder::Rgba, Channel::Sint8),
    row(0x0cb, ChannelOrder::Rgba, Channel::Uint8),
    row(0x0cc, ChannelOrder::Rg, Channel::Unorm16),
    row(0x0cd, ChannelOrder::Rg, Channel::Snorm16),
    row(0x0ce, ChannelOrder::Rg, Channel::Sint16),
    row(0x0cf, ChannelOrder::Rg, Channel::Uint16),
    row(0x0d0, ChannelOrder::Rg, Channel::Float16),
    row(0x0d6, ChannelOrder::R, Channel::Sint32),
    row(0x0d7, ChannelOrder::R, Channel::Uint32),
    row(0x0d8, ChannelOrder::R, Channel::Float32),
    row(0x0e3, ChannelOrder::Intensity, Channel::Float32),
    row(0x0e4, ChannelOrder::Luminance, Channel::Float32),
    row(0x0e5, ChannelOrder::A, Channel::Float32),
    row(0x106, ChannelOrder::Rg, Channel::Unorm8),
    row(0x107, ChannelOrder::Rg, Channel::Snorm8),
    row(0x108, ChannelOrder::Rg, Channel::Sint8),
    row(0x109, ChannelOrder::Rg, Channel::Uint8),
    row(0x10a, ChannelOrder::R, Channel::Unorm16),
    row(0x10b, ChannelOrder::R, Channel::Snorm16),
    row(0x10c, ChannelOrder::R, Channel::Sint16),
    row(0x10d, ChannelOrder::R, Channel::Uint16),
    row(0x10e, ChannelOrder::R, Channel::Float16),
    row(0x111, ChannelOrder::Intensity, Channel::Unorm16),
    row(0x112, ChannelOrder::Luminance, Channel::Unorm16),
    row(0x113, ChannelOrder::A, Channel::Unorm16),
    row(0x115, ChannelOrder::Intensity, Channel::Float16),
    row(0x116, ChannelOrder::Luminance, Channel::Float16),
    row(0x117, ChannelOrder::A, Channel::Float16),
    row(0x140, ChannelOrder::R, Channel::Unorm8),
    row(0x141, ChannelOrder::R, Channel::Snorm8),
    row(0x142, ChannelOrder::R, Channel::Sint8),
    row(0x143, ChannelOrder::R, Channel::Uint8),
    row(0x144, ChannelOrder::A, Channel::Unorm8),
    row(0x145, ChannelOrder::Intensity, Channel::Unorm8),
    row(0x146, ChannelOrder::Luminance, Channel::Unorm8),
];

/// The format with this code. `None` if the interpreter does not convert it.
pub(super) fn format(code: u32) -> Option<ImageFormat> {
    let (_, format) = FORMATS.iter().find(|(known, _)| *known == code)?;
    Some(*format)
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    #[test]
    fn codes_are_unique_and_ascending() {
        assert!(FORMATS.is_sorted_by(|(a, _), (b, _)| a < b));
    }

    #[test]
    fn formats_by_their_codes() {
        proves!(EU_082, "codes of formats; packed ones are refused");
        let found = |code| format(code).map(|ImageFormat { order, channel }| (order, channel));
        assert_eq!(found(0xc7), Some((ChannelOrder::Rgba, Channel::Unorm8)));
        assert_eq!(found(0x146), Some((ChannelOrder::Luminance, Channel::Unorm8)));
        assert_eq!(found(0xc2), None);
    }
}
