// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Whatever the state and the parameters are, texels that are read are inside of the image: [`super::Picture`] checks each.

use arctic_eu::exec::FaultKind;
use arctic_eu::exec::memory::{
    Addressing, Channel, ChannelOrder, Comparison, Dimensions, Filter, ImageFormat, LevelFilter, Levels, Reduction,
    Sampler,
};
use proptest::prelude::*;

use super::{LANES, Picture};

fn filter() -> impl Strategy<Value = Filter> {
    (any::<bool>(), any::<[bool; 3]>(), any::<bool>()).prop_map(|(linear, rounding, anisotropic)| Filter {
        linear: linear || anisotropic,
        rounding,
        anisotropic,
    })
}

fn sampler() -> impl Strategy<Value = Sampler> {
    let modes = [
        Addressing::Wrap,
        Addressing::Mirror,
        Addressing::Clamp,
        Addressing::Border,
        Addressing::MirrorOnce,
        Addressing::HalfBorder,
        Addressing::Cube,
        Addressing::MirrorEdge,
    ];
    let comparisons = [Comparison::Always, Comparison::Less, Comparison::Equal];
    let levels = [LevelFilter::None, LevelFilter::Nearest, LevelFilter::Linear];
    let reductions = [Reduction::Mean, Reduction::Minimum, Reduction::Maximum];
    let choices = (
        prop::array::uniform3(prop::sample::select(modes.to_vec())),
        prop::sample::select(comparisons.to_vec()),
        prop::sample::select(levels.to_vec()),
        prop::sample::select(reductions.to_vec()),
    );
    (choices, filter(), filter(), any::<[u16; 2]>(), any::<i16>(), 2..=16u8, any::<[bool; 3]>()).prop_map(
        |((addressing, comparison, levels, reduction), magnify, minify, level, bias, anisotropy, flags)| Sampler {
            addressing,
            magnify,
            minify,
            levels,
            normalized: flags[0],
            level,
            clamps_first: flags[1],
            bias,
            anisotropy,
            comparison,
            reduction,
            overrides_cubes: flags[2],
            border: [1; 4],
        },
    )
}

/// Numbers as kernels may have them: any bits, small floats, and small integers.
fn parameter() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), (-3.0f32..20.0).prop_map(f32::to_bits), 0..20u32]
}

proptest! {
    #[test]
    fn texels_that_are_read_are_inside(
        sampler in sampler(),
        size in prop::array::uniform3(1..20u32),
        shape in 0..6usize,
        (count, first, least) in (1..=15u8, 0..8u8, any::<u16>()),
        control: u32,
        kind in 0..32u32,
        parameters in prop::collection::vec(prop::array::uniform8(parameter()), 1..14),
        integers: bool,
    ) {
        let (dimensions, array, cube) = [
            (Dimensions::One, false, false),
            (Dimensions::Two, true, false),
            (Dimensions::Two, false, false),
            (Dimensions::Three, true, false),
            (Dimensions::Three, false, false),
            (Dimensions::Three, true, true),
        ][shape];
        let [width, height, depth] = size;
        let size = match (dimensions, cube) {
            (_, true) => [width, width, depth * 6],
            (Dimensions::One, _) => [width, 1, 1],
            (Dimensions::Two, _) => [width, height, 1],
            (Dimensions::Three, _) => size,
        };
        let mut picture = Picture::new(size, dimensions, count);
        (picture.image.array, picture.image.cube) = (array, cube);
        picture.image.levels = Levels { number: first, count, least };
        picture.sampler = sampler;
        if integers {
            picture.image.format = ImageFormat { order: ChannelOrder::Rgba, channel: Channel::Uint32 };
        }
        // Lines of an array do not become fewer.
        let lines = dimensions == Dimensions::Two && array;
        prop_assume!(!lines || count == 1);
        let known = !matches!(kind, 12..=15 | 19 | 21..=23 | 27..=31);
        let derivatives = cube && matches!(kind, 4 | 20);
        let result = picture.send(kind, control & !(15 << 12), &parameters);
        prop_assert_eq!(result.is_ok(), known && !derivatives, "{} {:?}", kind, result);
        prop_assert!(result.is_ok() || result == Err(FaultKind::Message));
        prop_assert!(picture.reads.get() <= LANES as u32 * 16 * 2 * 8 * 3);
    }
}
