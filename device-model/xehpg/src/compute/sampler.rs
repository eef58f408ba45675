// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! SAMPLER_STATE: how a kernel samples images (EU-080).

use arctic_base::command::Field;
use arctic_eu::exec::memory::{Addressing, Comparison, Filter, LevelFilter, Reduction, Sampler};

/// Dwords of a sampler state.
pub const SAMPLER_DWORDS: usize = 4;
/// Bytes of a sampler state.
pub const SAMPLER_BYTES: usize = SAMPLER_DWORDS * 4;

/// Fields of SAMPLER_STATE that the interpreter has (NEO `hw_cmds_generated_xe_hpg_core.inl`; Mesa gen125.xml).
mod fields {
    use super::Field;

    pub const BIAS: Field = Field::value("Texture LOD Bias", 0, 13, 1);
    pub const LEVELS: Field = Field::value("Mip Mode Filter", 0, 21, 20);
    pub const PRECLAMP: Field = Field::value("LOD PreClamp Mode", 0, 28, 27);
    pub const CUBES: Field = Field::flag("Cube Surface Control Mode", 1, 0);
    pub const COMPARISON: Field = Field::value("Shadow Function", 1, 3, 1);
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
    pub const REDUCES: Field = Field::flag("Reduction Type Enable", 3, 9);
    pub const REDUCTION: Field = Field::value("Reduction Type", 3, 23, 22);
    pub const ANISOTROPY: Field = Field::value("Maximum Anisotropy", 3, 21, 19);
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

/// Values of the filters. All others are linear.
mod map_filter {
    pub const NEAREST: u32 = 0;
    pub const ANISOTROPIC: u32 = 2;
}

/// Values of [`fields::PRECLAMP`] with which levels of detail are bounded behind the choice of the filter; with all others before.
const CLAMP_NONE: u32 = 0;

/// Values of the addressing modes, by their codes.
const ADDRESSING: [Addressing; 8] = [
    Addressing::Wrap,
    Addressing::Mirror,
    Addressing::Clamp,
    Addressing::Cube,
    Addressing::Border,
    Addressing::MirrorOnce,
    Addressing::HalfBorder,
    Addressing::MirrorEdge,
];

/// Values of [`fields::COMPARISON`], by their codes. Drivers program the opposite of what an interface asks for: a texel for which
/// it holds gives 0 (Mesa genX_init_state.c: `vk_to_intel_shadow_compare_op`).
const COMPARISONS: [Comparison; 8] = [
    Comparison::Always,
    Comparison::Never,
    Comparison::Less,
    Comparison::Equal,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::NotEqual,
    Comparison::GreaterOrEqual,
];

/// Values of [`fields::LEVELS`], by their codes; 2 is reserved.
const LEVELS: [LevelFilter; 4] = [LevelFilter::None, LevelFilter::Nearest, LevelFilter::Nearest, LevelFilter::Linear];

/// Values of [`fields::REDUCTION`], by their codes; that of a comparison, 1, is that of its message.
const REDUCTIONS: [Reduction; 4] = [Reduction::Mean, Reduction::Mean, Reduction::Minimum, Reduction::Maximum];

/// The value of a field with this table.
fn of<T: Copy>(words: &[u32], field: Field, table: &[T], fallback: T) -> T {
    usize::try_from(field.get(words)).ok().and_then(|code| table.get(code).copied()).unwrap_or(fallback)
}

/// Decodes a state, except for the color of the border. Its offset from the base of the state is returned if coordinates can
/// be on the border.
pub(super) fn decode(words: &[u32; SAMPLER_DWORDS]) -> (Sampler, Option<u64>) {
    let addressing = fields::ADDRESSING.map(|field| of(words, field, &ADDRESSING, Addressing::Clamp));
    let filter = |mode: Field, rounding: [Field; 3]| Filter {
        linear: mode.get(words) != map_filter::NEAREST,
        rounding: rounding.map(|field| field.is_set(words)),
        anisotropic: mode.get(words) == map_filter::ANISOTROPIC,
    };
    // Fields of 12 bits, in units of 1/256.
    let level = |field: Field| u16::try_from(field.get(words)).unwrap_or(u16::MAX);
    // 13 bits, signed, in units of 1/256.
    let bias = fields::BIAS.get(words).wrapping_shl(19).cast_signed().wrapping_shr(19);
    let ratio = u8::try_from(fields::ANISOTROPY.get(words)).unwrap_or(0).saturating_add(1).saturating_mul(2);
    let reduction = of(words, fields::REDUCTION, &REDUCTIONS, Reduction::Mean);
    let sampler = Sampler {
        addressing,
        magnify: filter(fields::MAGNIFY, fields::MAGNIFY_ROUNDING),
        minify: filter(fields::MINIFY, fields::MINIFY_ROUNDING),
        levels: of(words, fields::LEVELS, &LEVELS, LevelFilter::Nearest),
        normalized: !fields::NOT_NORMALIZED.is_set(words),
        level: [level(fields::LEAST_LEVEL), level(fields::GREATEST_LEVEL)],
        clamps_first: fields::PRECLAMP.get(words) != CLAMP_NONE,
        bias: i16::try_from(bias).unwrap_or(0),
        anisotropy: ratio,
        comparison: of(words, fields::COMPARISON, &COMPARISONS, Comparison::Always),
        reduction: if fields::REDUCES.is_set(words) { reduction } else { Reduction::Mean },
        overrides_cubes: fields::CUBES.is_set(words),
        border: [0; 4],
    };
    let has_border = addressing.iter().any(|mode| matches!(mode, Addressing::Border | Addressing::HalfBorder));
    (sampler, has_border.then(|| fields::BORDER.wide(words)))
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
                        filter << 17 | filter << 14 | 1 << 20 | 2 << 27,
                        0xe00 << 8 | 1,
                        0x1240,
                        code << 6 | code << 3 | code | u32::from(!normalized) << 10 | rounding,
                    ];
                    let (sampler, border) = decode(&words);
                    assert_eq!(sampler, Sampler::uniform(mode, linear, normalized));
                    assert_eq!(border, matches!(code, 4 | 6).then_some(0x1240));
                }
            }
        }
    }

    #[test]
    fn fields_are_separate() {
        let words = [1 << 17, 0x123 << 20 | 0x456 << 8, 0, 1 << 16 | 1 << 13 | 1 << 6 | 2 << 3 | 5];
        let (sampler, border) = decode(&words);
        assert_eq!(sampler.addressing, [Addressing::Mirror, Addressing::Clamp, Addressing::MirrorOnce]);
        assert_eq!(sampler.magnify, Filter { linear: true, rounding: [false, true, false], anisotropic: false });
        assert_eq!(sampler.minify, Filter { linear: false, rounding: [false, false, true], anisotropic: false });
        assert_eq!((sampler.level, border), ([0x123, 0x456], None));
        assert!(!sampler.clamps_first && !sampler.overrides_cubes);
    }

    /// Samplers of Vulkan: levels, bias, comparison, anisotropy, reduction and cubes (Mesa gen125.xml).
    #[test]
    fn samplers_of_vulkan() {
        proves!(EU_080, "levels, bias, shadow functions, anisotropy, reduction and the modes of cubes");
        let sampler = |dword: usize, value: u32| {
            let mut words = [0; SAMPLER_DWORDS];
            words[dword] = value;
            decode(&words).0
        };
        let levels = [0, 1, 3].map(|code| sampler(0, code << 20).levels);
        assert_eq!(levels, [LevelFilter::None, LevelFilter::Nearest, LevelFilter::Linear]);
        assert_eq!([0x180, 0x1fff, 0x1000].map(|bias| sampler(0, bias << 1).bias), [0x180, -1, -0x1000]);
        let comparisons = [0, 1, 2, 3, 4, 5, 6, 7].map(|code| sampler(1, code << 1).comparison);
        assert_eq!(comparisons, COMPARISONS);
        assert_eq!(
            [(2, 0), (2, 7), (0, 3)].map(|(filter, code)| {
                let words = [filter << 14, 0, 0, code << 19];
                let (sampler, _) = decode(&words);
                (sampler.minify.anisotropic, sampler.minify.linear, sampler.anisotropy)
            }),
            [(true, true, 2), (true, true, 16), (false, false, 8)]
        );
        let reductions = [2, 3].map(|code| [0, 1].map(|enable| sampler(3, code << 22 | enable << 9).reduction));
        assert_eq!(reductions, [[Reduction::Mean, Reduction::Minimum], [Reduction::Mean, Reduction::Maximum]]);
        assert!(sampler(1, 1).overrides_cubes && sampler(0, 2 << 27).clamps_first);
        assert_eq!(
            sampler(3, 3 << 6 | 7 << 3).addressing,
            [Addressing::Cube, Addressing::MirrorEdge, Addressing::Wrap]
        );
    }
}
