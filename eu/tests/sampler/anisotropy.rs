// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Anisotropic filters: several weighted means along the longer axis.

use super::{LANES, Picture, near};
use arctic_eu::exec::memory::{Filter, LevelFilter};

const ANISOTROPIC: Filter = Filter { linear: true, rounding: [true; 3], anisotropic: true };

/// EU-080: as many means as the ratio of the axes says, and no more than the sampler permits, of a level that is finer.
#[test]
fn means_along_the_longer_axis() {
    for (most, ratio, probes) in
        [(16, 4.0f32, 4u32), (2, 4.0, 2), (16, 1.0, 1), (8, 3.0, 3), (4, 1e9, 4), (16, 16.0, 16)]
    {
        let mut picture = Picture::new([64, 64, 1], arctic_eu::exec::memory::Dimensions::Two, 7);
        (picture.sampler.minify, picture.sampler.magnify) = (ANISOTROPIC, ANISOTROPIC);
        picture.sampler.levels = LevelFilter::Nearest;
        picture.sampler.anisotropy = most;
        let longer = 16.0f32;
        let (u, v) = (0.43f32, 0.57f32);
        let (dudx, dvdy) = (longer / 64.0, longer / ratio / 64.0);
        let lanes = |value: f32| [value; LANES];
        let zero = lanes(0.0);
        let payload = [lanes(u), lanes(dudx), zero, lanes(v), zero, lanes(dvdy)];
        let colors = picture.colors(4, 0, &payload);
        let level = f64::from(longer / probes as f32).log2().round().max(0.0) as u8;
        let mut expected = [0.0; 4];
        for probe in 1..=probes {
            let along = f64::from(probe) / f64::from(probes + 1) - 0.5;
            let at = [f64::from(u) + if probes > 1 { along * f64::from(dudx) } else { 0.0 }, v.into()];
            for (sum, component) in expected.iter_mut().zip(picture.linear(level, at, 0)) {
                *sum += component / f64::from(probes);
            }
        }
        near(colors[3], expected, &format!("at most {most}, ratio {ratio}"));
        let reads = picture.reads.get() / LANES as u32;
        assert!((2 * probes..=4 * probes).contains(&reads), "{reads} texels for {probes} means");
    }
}

/// A message without derivatives has one mean.
#[test]
fn a_given_level_has_one_mean() {
    let mut picture = Picture::plane(4);
    (picture.sampler.minify, picture.sampler.magnify) = (ANISOTROPIC, ANISOTROPIC);
    picture.sampler.anisotropy = 16;
    let colors = picture.colors(2, 0, &[[1.0; LANES], [0.3; LANES], [0.6; LANES]]);
    near(colors[0], picture.linear(1, [0.3, 0.6], 0), "level 1");
    assert_eq!(picture.reads.get() / LANES as u32, 4);
}
