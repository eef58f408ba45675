// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! SAMPLER_STATE: how a kernel samples images (EU-080).

use arctic_base::command::Field;
use arctic_eu::exec::FaultKind;
use arctic_eu::exec::memory::{Addressing, Filter, Sampler};

/// Dwords of a sampler state.
pub const SAMPLER_DWORDS: usize = 4;
/// Bytes of a sampler state.
pub const SAMPLER_BYTES: usize = SAMPLER_DWORDS * 4;

/// Fields of SAMPLER_STATE that the interpreter has (NEO `hw_cmds_generated_xe_hpg_core.inl`; Mesa gen125.xml).
mod fields {
    use super::Field;

    pub const MAGNIFY: Field = Field::value("Mag Mode Filter", 0, 19, 17);
    pub const MINIFY: Field = Field::value("Min Mode Filter", 0, 16, 14);
    pub const LEAST_LEVEL: Field = Field::value("Min LOD", 1, 31, 20);
    pub const GREATEST_LEVEL: Field = Field::value("Max LOD", 1, 19, 8);
    pub const BORDER: Field = Field::offset("Border Color Pointer", 2, 23, 6);
    pub const ADDRESSING: [Field; 3] = [
        Field::value("TCX Address Control Mode", 3, 8, 6),
        Field::value("TCY Address Control Mode", 3, 5, 3),
        Field::value("TCZ Address Control Mode", 3, 2, 0),
    ];
    pub const NOT_NORMALIZED: Field = Field::flag("Non-normalized Coordinate Enable", 3, 10);
    pub const MAGNIFY_ROUNDING: [Field; 3] = [
        Field::flag("U Address Mag Filter Rounding Enable", 3, 18),
        Field::flag("V Address Mag Filter Rounding Enable", 3, 16),
        Field::flag("R Address Mag Filter Rounding Enable", 3, 14),
    ];
    pub const MINIFY_ROUNDING: [Field; 3] = [
        Field::flag("U Address Min Filter Rounding Enable", 3, 17),
        Field::flag("V Address Min Filter Rounding Enable", 3, 15),
        Field::flag("R Address Min Filter Rounding Enable", 3, 13),
    ];
}

/// Value of the filters for the nearest texel. All others are linear; that anisotropic ones are, is an approximation.
const NEAREST: u32 = 0;

/// Decodes a state, except for the color of the border. Its offset from the base of the state is returned if coordinates can
/// be on the border.
///
/// # Errors
/// [`FaultKind::Surface`] if an addressing mode is that of cubes or is reserved.
pub(super) fn decode(words: &[u32; SAMPLER_DWORDS]) -> Result<(Sampler, Option<u64>), FaultKind> {
    let mut addressing = [Addressing::Wrap; 3];
    for (addressing, field) in addressing.iter_mut().zip(fields::ADDRESSING) {
        *addressing = match field.get(words) {
            0 => Addressing::Wrap,
            1 => Addressing::Mirror,
            2 => Addressing::Clamp,
            4 => Addressing::Border,
            5 => Addressing::MirrorOnce,
            6 => Addressing::HalfBorder,
            _ => return Err(FaultKind::Surface),
        };
    }
    let filter = |mode: Field, rounding: [Field; 3]| Filter {
        linear: mode.get(words) != NEAREST,
        rounding: rounding.map(|field| field.is_set(words)),
    };
    // Fields of 12 bits, in units of 1/256.
    let level = |field: Field| u16::try_from(field.get(words)).unwrap_or(u16::MAX);
    let sampler = Sampler {
        addressing,
        magnify: filter(fields::MAGNIFY, fields::MAGNIFY_ROUNDING),
        minify: filter(fields::MINIFY, fields::MINIFY_ROUNDING),
        normalized: !fields::NOT_NORMALIZED.is_set(words),
        level: [level(fields::LEAST_LEVEL), level(fields::GREATEST_LEVEL)],
        border: [0; 4],
    };
    let has_border = addressing.iter().any(|mode| matches!(mode, Addressing::Border | Addressing::HalfBorder));
    Ok((sampler, has_border.then(|| fields::BORDER.wide(words))))
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    #[test]
    fn samplers_of_opencl() {
        proves!(EU_080, "the samplers of OpenCL: addressing, filters, coordinates, border");
        let modes = [
            (0, Addressing::Wrap),
            (1, Addressing::Mirror),
            (2, Addressing::Clamp),
            (4, Addressing::Border),
            (6, Addressing::HalfBorder),
        ];
        for (code, mode) in modes {
            for linear in [false, true] {
                for normalized in [false, true] {
                    let filter = u32::from(linear);
                    let rounding = if linear { 0x3f << 13 } else { 0 };
                    let words = [
                        filter << 17 | filter << 14,
                        0xe00 << 8,
                        0x1240,
                        code << 6 | code << 3 | code | u32::from(!normalized) << 10 | rounding,
                    ];
                    let (sampler, border) = decode(&words).unwrap();
                    assert_eq!(sampler, Sampler::uniform(mode, linear, normalized));
                    assert_eq!(border, matches!(code, 4 | 6).then_some(0x1240));
                }
            }
        }
    }

    #[test]
    fn fields_are_separate() {
        let words = [1 << 17, 0x123 << 20 | 0x456 << 8, 0, 1 << 16 | 1 << 13 | 1 << 6 | 2 << 3 | 5];
        let (sampler, border) = decode(&words).unwrap();
        assert_eq!(sampler.addressing, [Addressing::Mirror, Addressing::Clamp, Addressing::MirrorOnce]);
        assert_eq!(sampler.magnify, Filter { linear: true, rounding: [false, true, false] });
        assert_eq!(sampler.minify, Filter { linear: false, rounding: [false, false, true] });
        assert_eq!((sampler.level, border), ([0x123, 0x456], None));
        assert_eq!(decode(&[0, 0, 0, 3]), Err(FaultKind::Surface));
    }
}
