// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The kernels of `tests/kernels/extension.cl`, which pocl does not have, compiled in four ways, against plain loops.
//!
//! Needs the network once (`tests/tools.sh`).
#![cfg(feature = "long-tests")]

mod common;
mod random;
mod tools;

use arctic_eu::launch::{Argument, Launch, parse_image_format, printf_text};
use arctic_eu::zebin::Zebin;
use common::dwords;
use random::Random;
use tools::{BUILDS, Work, buffer, floats, ints, launch};

fn image(bytes: &[u8], size: [u32; 3], name: &str) -> Argument {
    Argument::Image { bytes: bytes.to_vec(), size, format: parse_image_format(name).unwrap() }
}

/// Runs a check on the kernels of each way to compile.
fn each_build(name: &str, check: impl Fn(&Zebin)) {
    let work = Work::new(name);
    for build in 0..BUILDS.len() {
        check(&work.compile("extension", build, "", ""));
    }
}

fn values(count: usize) -> Vec<i32> {
    let mut random = Random(23);
    (0..count).map(|_| random.next() as i32).collect()
}

/// ISA-176, ISA-179: calls of addresses in a table of constants; the functions read the implicit values from memory.
#[test]
fn functions_with_stacks_recurse_and_have_their_implicit_values() {
    let work = Work::new("pointers");
    let a = values(256);
    for build in 0..3 {
        let zebin = work.compile("extension", build, "-DPOINTERS", "-cl-ext=+__cl_clang_function_pointers");
        let arguments = [("o", buffer(&[0; 256])), ("a", buffer(&a))];
        let done = launch(&zebin, "pointers", [256, 1, 1], [64, 1, 1], &arguments);
        for (i, (value, a)) in (0..).zip(ints(&done, "o").into_iter().zip(&a)) {
            let expected = match a & 3 {
                0 => a.wrapping_add(i % 64),
                1 => a.wrapping_mul(3).wrapping_add(i + 1000 * (i / 64)),
                2 => a ^ (0x55 + 64 + 2560 + 400),
                _ => a.wrapping_add(1),
            };
            assert_eq!(value, expected, "{i}");
        }
        // The last group has eight items, and its functions have its values. The structure that they read has one local size,
        // so with the driver, too, they compute the global id from that of the group.
        let done = launch(&zebin, "pointers", [200, 1, 1], [64, 1, 1], &arguments);
        for (i, (value, a)) in (0..200).zip(ints(&done, "o").into_iter().zip(&a)) {
            let size = if i < 192 { 64 } else { 8 };
            let expected = match a & 3 {
                0 => a.wrapping_add(i % 64),
                1 => a.wrapping_mul(3).wrapping_add(i / 64 * size + i % 64 + 1000 * (i / 64)),
                2 => a ^ (0x55 + size + 2000 + 400),
                _ => a.wrapping_add(1),
            };
            assert_eq!(value, expected, "partial {i}");
        }
        let done = launch(&zebin, "recursion", [256, 1, 1], [64, 1, 1], &arguments);
        for (value, a) in ints(&done, "o").into_iter().zip(&a) {
            assert_eq!(value, (1..=a & 7).product(), "recursion of {}", a & 7);
        }
    }
}

/// EU-083, EU-084: images in one dimension, arrays, and reads and writes of one image.
#[test]
fn images_of_all_kinds_are_those_of_plain_loops() {
    let bytes: Vec<u8> = (0..8 * 4 * 3 * 4).map(|index| (index * 37 % 251) as u8).collect();
    let numbers: Vec<f32> = (0..16 * 3 * 4).map(|index| index as f32 * 0.37 - 20.0).collect();
    let raw: Vec<u8> = numbers.iter().flat_map(|value| value.to_le_bytes()).collect();
    each_build("images", |zebin| {
        let size = [8, 4, 3];
        let arguments =
            [("s", image(&bytes, size, "rgba8ui")), ("d", image(&[], size, "rgba8ui")), ("o", buffer(&[0; 3]))];
        let done = launch(zebin, "arrays", size, [8, 1, 1], &arguments);
        assert_eq!(ints(&done, "o"), [8 | 4 << 8 | 3 << 16, 0x10da, 0x10b5]);
        for (index, value) in done.buffer("d").unwrap().into_iter().enumerate() {
            let (layer, rest) = (index / 128, index % 128);
            assert_eq!(value, bytes[(2 - layer) * 128 + rest] + 1, "arrays {index}");
        }
        let size = [16, 3, 1];
        let arguments = [("s", image(&raw, size, "rgba32f")), ("d", image(&[], size, "rgba32f"))];
        let done = launch(zebin, "lines", size, [16, 1, 1], &arguments);
        for (index, value) in floats(&done, "d").into_iter().enumerate() {
            assert_eq!(value, numbers[(2 - index / 64) * 64 + index % 64], "lines {index}");
        }
        let size = [16, 1, 1];
        let arguments = [("s", image(&raw, size, "rgba32i")), ("d", image(&[], size, "rgba32i"))];
        let done = launch(zebin, "texels", size, [16, 1, 1], &arguments);
        for (value, old) in dwords(&done.buffer("d").unwrap()).into_iter().zip(dwords(&raw)) {
            assert_eq!(value, old.wrapping_mul(2).wrapping_add(16), "texels");
        }
        let done = launch(zebin, "inplace", [16, 3, 1], [16, 1, 1], &[("s", image(&raw, [16, 3, 1], "rgba32f"))]);
        for (value, old) in floats(&done, "s").into_iter().zip(&numbers) {
            assert_eq!(value, old + 1.0, "inplace");
        }
    });
}

/// A texel coordinate by the addressing of its name; `None` on the border.
fn address(mode: &str, at: i32, size: i32) -> Option<usize> {
    let inside = match mode {
        "repeat" => at.rem_euclid(size),
        "mirror" => {
            let folded = at.rem_euclid(2 * size);
            folded.min(2 * size - 1 - folded)
        }
        "clamp_edge" => at.clamp(0, size - 1),
        _ => at,
    };
    (0..size).contains(&inside).then_some(inside as usize)
}

/// A sample of 8 x 4 texels of four channels, in double precision.
fn sample(texels: &[f32], mode: &str, linear: bool, at: [f32; 2], channel: usize) -> f64 {
    let read = |x: i32, y: i32| match (address(mode, x, 8), address(mode, y, 4)) {
        (Some(x), Some(y)) => f64::from(texels[(y * 8 + x) * 4 + channel]),
        _ => 0.0,
    };
    if !linear {
        return read(at[0].floor() as i32, at[1].floor() as i32);
    }
    let [u, v] = at.map(|value| f64::from(value) - 0.5);
    let (x, y, a, b) = (u.floor() as i32, v.floor() as i32, u - u.floor(), v - v.floor());
    (1.0 - b) * ((1.0 - a) * read(x, y) + a * read(x + 1, y))
        + b * ((1.0 - a) * read(x, y + 1) + a * read(x + 1, y + 1))
}

/// EU-080, EU-083, ISA-252: each addressing mode, all filters and coordinates; elements of arrays are not mixed.
#[test]
fn samplers_filter_and_address_as_in_double_precision() {
    arctic_fidelity::proves!(EU_083, "nearest texels are exact, and linear filters near those of double precision");
    let mut random = Random(3);
    let texels: Vec<f32> = (0..3 * 128).map(|_| (random.next() >> 40) as f32 / (1 << 24) as f32).collect();
    let raw: Vec<u8> = texels.iter().flat_map(|value| value.to_le_bytes()).collect();
    each_build("samplers", |zebin| {
        for mode in ["clamp_edge", "clamp", "repeat", "mirror"] {
            for filter in ["nearest", "linear"] {
                for scale in ["normalized", "pixels"] {
                    // OpenCL has these for normalized coordinates only.
                    if scale == "pixels" && matches!(mode, "repeat" | "mirror") {
                        continue;
                    }
                    let sampler = Argument::parse(&format!("sampler:{mode},{filter},{scale}")).unwrap();
                    let zeros = Argument::Buffer(vec![0; 16 * 8 * 16]);
                    let arguments = [("s", image(&raw[..512], [8, 4, 1], "rgba32f")), ("t", sampler), ("o", zeros)];
                    let done = launch(zebin, "sampled", [16, 8, 1], [16, 1, 1], &arguments);
                    for (index, value) in floats(&done, "o").into_iter().enumerate() {
                        let (x, y) = (index / 4 % 16, index / 64);
                        let at = [x as f32 * 0.125 - 0.5, y as f32 * 0.25 - 0.75];
                        let at = if scale == "normalized" { [at[0] * 8.0, at[1] * 4.0] } else { at };
                        let expected = sample(&texels, mode, filter == "linear", at, index % 4);
                        assert!((f64::from(value) - expected).abs() < 6e-3, "{mode} {filter} {scale} {x} {y}");
                    }
                }
            }
        }
        let [t, u] = ["sampler:clamp,nearest,pixels", "sampler:clamp_edge,linear,pixels"]
            .map(|text| Argument::parse(text).unwrap());
        let zeros = Argument::Buffer(vec![0; 16 * 8 * 8]);
        let arguments = [("s", image(&raw[..512], [8, 4, 1], "rgba32f")), ("t", t), ("u", u), ("o", zeros)];
        let done = launch(zebin, "twosamplers", [16, 8, 1], [16, 1, 1], &arguments);
        for (index, value) in floats(&done, "o").into_iter().enumerate() {
            let at = [(index / 2 % 16) as f32 - 1.0, (index / 32) as f32];
            let (mode, linear) = if index % 2 == 0 { ("clamp", false) } else { ("clamp_edge", true) };
            let expected = sample(&texels, mode, linear, at, 3);
            assert!((f64::from(value) - expected).abs() < 6e-3, "two samplers {index}: {value}, not {expected}");
        }
        let sampler = Argument::parse("sampler:clamp_edge,linear,normalized").unwrap();
        let zeros = Argument::Buffer(vec![0; 16 * 4 * 16]);
        let arguments = [("s", image(&raw, [8, 4, 3], "rgba32f")), ("t", sampler), ("o", zeros)];
        let done = launch(zebin, "sampledarray", [16, 4, 1], [16, 1, 1], &arguments);
        for (index, value) in floats(&done, "o").into_iter().enumerate() {
            let (x, layer) = (index / 4 % 16, (index / 64).min(2));
            let at = [(x as f32 * 0.125 - 0.5) * 8.0, 1.0];
            let expected = sample(&texels[layer * 128..], "clamp_edge", true, at, index % 4);
            assert!((f64::from(value) - expected).abs() < 6e-3, "sampledarray {x} {layer}");
        }
    });
}

/// ISA-215, ISA-063: sub-groups in divergent code, ballots, clusters, block accesses of all widths and of images.
#[test]
fn subgroups_of_other_extensions_are_those_of_plain_loops() {
    let a = values(256);
    let mut random = Random(5);
    let bytes = random.bytes(4096);
    each_build("subgroups", |zebin| {
        let run = |kernel: &str, size: usize| {
            let arguments = [("o", buffer(&vec![0; size])), ("a", buffer(&a))];
            ints(&launch(zebin, kernel, [256, 1, 1], [64, 1, 1], &arguments), "o")
        };
        let group = |i: usize| &a[i & !15..(i & !15) + 16];
        for (i, value) in run("divided", 256).into_iter().enumerate() {
            let alike = |j: &usize| (group(i)[*j] ^ a[i]) & 1 == 0;
            let lanes: Vec<usize> = (0..16).filter(alike).collect();
            let expected = if a[i] & 1 != 0 {
                let sum = lanes.iter().fold(0i32, |sum, j| sum.wrapping_add(group(i)[*j]));
                let most = lanes.iter().filter(|j| **j <= i & 15).map(|j| group(i)[*j]).max().unwrap();
                sum.wrapping_add(most) ^ if lanes[0] == i & 15 { 0x1000 } else { 0 }
            } else {
                lanes.iter().fold(0, |all, j| all ^ group(i)[*j])
            };
            assert_eq!(value, expected, "divided {i}");
        }
        for (i, value) in run("ballots", 1024).as_chunks::<4>().0.iter().enumerate() {
            let bits = (0..16).fold(0u32, |bits, j| bits | ((group(i)[j] & 1) as u32) << j);
            let upto = bits & (2 << (i & 15)) - 1;
            let expected = [bits, bits.count_ones(), upto.count_ones(), bits >> (i & 15) & 1];
            assert_eq!(value.map(i32::cast_unsigned), expected, "ballots {i}");
        }
        for (i, value) in run("clusters", 256).into_iter().enumerate() {
            let (four, eight) = (i & 12, i & 8);
            let sum = group(i)[four..four + 4].iter().fold(0i32, |sum, value| sum.wrapping_add(*value));
            let most = *group(i)[eight..eight + 8].iter().max().unwrap();
            let lane = (i & 15) + 3;
            let down = if lane < 16 { group(i)[lane] } else { group(i)[(lane - 16) ^ 1] };
            assert_eq!(value, sum ^ most ^ down, "clusters {i}");
        }
        let all = |size: usize| Argument::Buffer(bytes[..size].to_vec());
        let zeros = |size: usize| Argument::Buffer(vec![0; size]);
        let arguments = [
            ("o", zeros(1024)),
            ("p", zeros(1024)),
            ("q", zeros(256)),
            ("a", all(1024)),
            ("b", all(1024)),
            ("c", all(256)),
        ];
        let done = launch(zebin, "widths", [64, 1, 1], [16, 1, 1], &arguments);
        let words = |bytes: &[u8]| -> Vec<u16> {
            bytes.as_chunks::<2>().0.iter().map(|word| u16::from_le_bytes(*word)).collect()
        };
        for (new, old) in words(&done.buffer("o").unwrap()).into_iter().zip(words(&bytes)) {
            assert_eq!(new, old.wrapping_mul(3), "words");
        }
        let longs = done.buffer("p").unwrap();
        for (new, old) in longs.as_chunks::<8>().0.iter().zip(bytes.as_chunks::<8>().0) {
            assert_eq!(u64::from_le_bytes(*new), u64::from_le_bytes(*old).wrapping_add(3), "longs");
        }
        for (new, old) in done.buffer("q").unwrap().into_iter().zip(&bytes) {
            assert_eq!(new, old.wrapping_add(3), "bytes");
        }
        let arguments = [("s", image(&bytes, [32, 8, 1], "rgba8ui")), ("d", image(&[], [32, 8, 1], "rgba8ui"))];
        let done = launch(zebin, "imageblocks", [32, 1, 1], [16, 1, 1], &arguments);
        for (index, (new, old)) in ints(&done, "d").into_iter().zip(dwords(&bytes)).enumerate() {
            let expected = if index < 128 { old.cast_signed().wrapping_add(1) } else { 0 };
            assert_eq!(new, expected, "imageblocks {index}");
        }
    });
}

fn text(launch: &Launch) -> String {
    launch.printf.map_or(String::new(), |address| printf_text(&launch.space, address))
}

/// ISA-218: atomics of floats on global and local memory; printf of all kinds of values.
#[test]
fn float_atomics_and_printf_are_those_of_plain_loops() {
    let a: Vec<f32> = values(256).into_iter().map(|value| (value >> 20) as f32 * 0.25).collect();
    let raw = Argument::Buffer(a.iter().flat_map(|value| value.to_le_bytes()).collect());
    each_build("floats", |zebin| {
        let arguments = [("c", buffer(&[0; 4])), ("a", raw.clone()), ("l", Argument::Local(64))];
        let done = launch(zebin, "floatatomics", [256, 1, 1], [64, 1, 1], &arguments);
        let least = a.iter().copied().fold(0.0, f32::min);
        // Sums of quarters are exact in any order.
        let expected = [a.iter().sum(), least, a.iter().copied().fold(0.0, f32::max), least];
        assert_eq!(floats(&done, "c"), expected);
        let done = launch(zebin, "texts", [16, 1, 1], [16, 1, 1], &[("a", raw.clone())]);
        let expected = format!(
            "-3    42|42   |00042 +7 7 ff 10 0xff\n2.35 1.000000e+10 0.0001 {:8.3}| text x % 123456789012 -1\n1,2,3,4 \
             1.500000,2.500000 -1,2,-3,4 1,2,3,4,5,6,7,8 1,-1\n",
            a[0]
        );
        assert_eq!(text(&done), expected);
    });
}
