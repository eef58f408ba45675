// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Groups that are smaller at the end of a range, and image formats: `data/limits.zebin` is `kernels/limits.cl` as ocloc compiles
//! it (`tests/peer.rs` writes it), and the results are those of plain loops.

mod common;

use arctic_eu::exec::Way;
use arctic_eu::float::{f16_to_f32, f32_to_f16};
use arctic_eu::launch::{Argument, Launch, LaunchError, LocalIds, Outcome, Range, Settings, parse_image_format};
use arctic_eu::zebin::Zebin;
use common::dwords;

const CODE: &[u8] = include_bytes!("data/limits.zebin");

fn run(kernel: &str, range: Range, settings: Settings, arguments: &[(&str, Argument)]) -> Launch {
    let zebin = Zebin::parse(CODE.to_vec()).unwrap();
    let arguments: Vec<_> = arguments.iter().map(|(name, value)| ((*name).to_string(), value.clone())).collect();
    let launch = Launch::new(&zebin, Some(kernel), range, &arguments, settings).unwrap();
    let report = launch.run(&|_| {});
    assert_eq!((report.outcome, report.outside), (Outcome::Complete, 0), "{kernel} {range:?}");
    let groups: u64 = launch.groups().iter().map(|count| u64::from(*count)).product();
    assert_eq!(report.groups, groups, "{kernel} {range:?}");
    launch
}

fn zeros(bytes: usize) -> Argument {
    Argument::Buffer(vec![0; bytes])
}

const RANGES: [([u32; 3], [u32; 3]); 7] = [
    ([100, 1, 1], [64, 1, 1]),
    ([7, 1, 1], [64, 1, 1]),
    ([33, 17, 1], [32, 8, 1]),
    ([10, 7, 1], [4, 4, 1]),
    ([9, 5, 7], [4, 3, 2]),
    ([3, 40, 2], [8, 16, 4]),
    ([24, 5, 1], [12, 5, 1]),
];

/// EU-023, EU-034, EU-052: local sizes, numbers of threads at the barrier, masks and local ids of groups of each size, with ids
/// by hardware and from memory.
#[test]
fn last_groups_of_a_range_have_the_rest_of_it() {
    for (global, local) in RANGES {
        for (way, local_ids) in
            [(Way::Fast, LocalIds::Driver), (Way::Fast, LocalIds::Memory), (Way::General, LocalIds::Hardware)]
        {
            let bytes = (global[0] * global[1] * global[2]) as usize * 4;
            let settings = Settings { way, local_ids, limit: 1_000_000, ..Settings::default() };
            let arguments =
                [("o", zeros(bytes)), ("p", zeros(bytes)), ("q", zeros(bytes)), ("t", Argument::Local(4096))];
            let launch = run("partial", Range { global, local, offset: [0; 3] }, settings, &arguments);
            let [o, p, q] = ["o", "p", "q"].map(|name| dwords(&launch.buffer(name).unwrap()));
            let groups = [0, 1, 2].map(|axis| global[axis].div_ceil(local[axis]));
            for index in 0..global[0] * global[1] * global[2] {
                let id = [index % global[0], index / global[0] % global[1], index / global[0] / global[1]];
                let group = [0, 1, 2].map(|axis| id[axis] / local[axis]);
                let first = [0, 1, 2].map(|axis| group[axis] * local[axis]);
                let size = [0, 1, 2].map(|axis| local[axis].min(global[axis] - first[axis]));
                // The item that is as far from the end of the group as this one from its start.
                let other = [0, 1, 2].map(|axis| first[axis] + size[axis] - 1 - (id[axis] - first[axis]));
                let opposite = (other[2] * global[1] + other[1]) * global[0] + other[0];
                let place = format!("{id:?} of {global:?} by {local:?}, {way:?}, {local_ids:?}");
                assert_eq!(o[index as usize], opposite, "{place}");
                let sizes = size[0] | size[1] << 8 | size[2] << 16 | local[0] << 24;
                assert_eq!(p[index as usize], sizes, "{place}");
                let numbers = group[0] | group[1] << 5 | group[2] << 10;
                let counts = groups[0] << 15 | groups[1] << 20 | groups[2] << 25;
                assert_eq!(q[index as usize], numbers | counts, "{place}");
            }
        }
    }
}

/// Sub-groups of a smaller group: the last has the rest of the group.
#[test]
fn subgroups_of_a_smaller_group_have_its_items() {
    let range = Range { global: [150, 1, 1], local: [64, 1, 1], offset: [0; 3] };
    let launch = run("lanes", range, Settings::default(), &[("o", zeros(600)), ("p", zeros(600))]);
    let [o, p] = ["o", "p"].map(|name| dwords(&launch.buffer(name).unwrap()));
    for index in 0..150u32 {
        let (group, local) = (index / 64, index % 64);
        let size = 64.min(150 - group * 64);
        let lanes = 16.min(size - local / 16 * 16);
        assert_eq!(o[index as usize], lanes | size.div_ceil(16) << 8 | local / 16 << 16, "{index}");
        let first = group * 64 + local / 16 * 16;
        assert_eq!(p[index as usize], (first..first + lanes).sum::<u32>(), "{index}");
    }
}

/// A driver divides the range only for programs that are built for it; and groups have at most 128 threads.
#[test]
fn ranges_that_no_driver_accepts_are_errors() {
    let error = |info: String, global: u32, local: u32| {
        let zebin = Zebin::parse(common::zebin(&[("k", common::code(common::END))], &info)).unwrap();
        let range = Range { global: [global, 1, 1], local: [local, 1, 1], offset: [0; 3] };
        let launch = Launch::new(&zebin, None, range, &[("a".into(), zeros(4))], Settings::default());
        match launch.map(|_| ()) {
            Err(LaunchError::Range(text)) => text,
            other => panic!("{other:?}"),
        }
    };
    let text = error(common::info(16, &["a"], ""), 100, 64);
    assert!(text.contains("no multiple of the local size 64") && text.contains("-cl-std=CL2.0"), "{text}");
    let text = error(common::info(1, &["a"], ""), 256, 256);
    assert!(text.contains("more than 128 threads"), "{text}");
}

/// Channels of a texel as numbers, by the name of the format.
fn channels(format: &str, texel: &[u8]) -> Vec<f64> {
    let linear = |byte: u8| {
        let value = f64::from(byte) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let word = |word: &[u8; 2]| u16::from_le_bytes(*word);
    match &format[format.find(|c: char| c.is_ascii_digit()).unwrap()..] {
        "8unorm" if format.starts_with('s') => {
            let mut all: Vec<f64> = texel.iter().map(|byte| linear(*byte)).collect();
            all[3] = f64::from(texel[3]) / 255.0;
            all
        }
        "8unorm" => texel.iter().map(|byte| f64::from(*byte) / 255.0).collect(),
        "16unorm" => texel.as_chunks::<2>().0.iter().map(|value| f64::from(word(value)) / 65535.0).collect(),
        "16f" => texel.as_chunks::<2>().0.iter().map(|value| f64::from(f16_to_f32(word(value)))).collect(),
        "32f" => texel.as_chunks::<4>().0.iter().map(|value| f64::from(f32::from_le_bytes(*value))).collect(),
        other => panic!("{other}"),
    }
}

/// The color of a texel, and that outside of the image: the tables of OpenCL.
fn color(format: &str, texel: &[u8]) -> ([f64; 4], [f64; 4]) {
    let channels = channels(format, texel);
    let clear = [0.0; 4];
    let opaque = [0.0, 0.0, 0.0, 1.0];
    match &format[..format.find(|c: char| c.is_ascii_digit()).unwrap()] {
        "r" => ([channels[0], 0.0, 0.0, 1.0], opaque),
        "rg" => ([channels[0], channels[1], 0.0, 1.0], opaque),
        "rgba" | "srgba" => ([channels[0], channels[1], channels[2], channels[3]], clear),
        "bgra" | "sbgra" => ([channels[2], channels[1], channels[0], channels[3]], clear),
        "a" => ([0.0, 0.0, 0.0, channels[0]], clear),
        "intensity" => ([channels[0]; 4], clear),
        "luminance" => ([channels[0], channels[0], channels[0], 1.0], opaque),
        other => panic!("{other}"),
    }
}

/// Numbers of OpenCL for order and type of the channels.
const FORMATS: [(&str, u32, u32); 14] = [
    ("r8unorm", 0x10b0, 0x10d2),
    ("rg16unorm", 0x10b2, 0x10d3),
    ("rgba16f", 0x10b5, 0x10dd),
    ("bgra8unorm", 0x10b6, 0x10d2),
    ("srgba8unorm", 0x10c1, 0x10d2),
    ("sbgra8unorm", 0x10c2, 0x10d2),
    ("a8unorm", 0x10b1, 0x10d2),
    ("a16unorm", 0x10b1, 0x10d3),
    ("a16f", 0x10b1, 0x10dd),
    ("a32f", 0x10b1, 0x10de),
    ("intensity8unorm", 0x10b8, 0x10d2),
    ("intensity16f", 0x10b8, 0x10dd),
    ("luminance16unorm", 0x10b9, 0x10d3),
    ("luminance32f", 0x10b9, 0x10de),
];

/// Bytes of an image of 8 x 4 texels.
fn texels(format: &str) -> Vec<u8> {
    let size = parse_image_format(format).unwrap().texel_bytes();
    let count = 32 * size;
    match format {
        _ if format.ends_with("16f") => {
            (0..count / 2).flat_map(|index| f32_to_f16(index as f32 / 64.0 - 0.5).to_le_bytes()).collect()
        }
        _ if format.ends_with("32f") => {
            (0..count / 4).flat_map(|index| (index as f32 * 0.3 - 2.0).to_le_bytes()).collect()
        }
        _ => (0..count).map(|index| (index * 37 % 256) as u8).collect(),
    }
}

const RANGE: Range = Range { global: [8, 4, 1], local: [8, 4, 1], offset: [0; 3] };

fn image(bytes: Vec<u8>, format: &str) -> Argument {
    Argument::Image { bytes, size: [8, 4, 1], format: parse_image_format(format).unwrap() }
}

/// EU-082, EU-083: formats of images that are read, with and without a sampler, and the border of the image.
#[test]
fn texels_of_each_format_have_the_colors_of_opencl() {
    for (format, order, kind) in FORMATS {
        let bytes = texels(format);
        let size = bytes.len() / 32;
        let sampler = Argument::parse("sampler:clamp,linear,pixels").unwrap();
        let arguments = [
            ("s", image(bytes.clone(), format)),
            ("t", sampler),
            ("o", zeros(512)),
            ("p", zeros(512)),
            ("q", zeros(8)),
        ];
        let launch = run("colors", RANGE, Settings::default(), &arguments);
        assert_eq!(dwords(&launch.buffer("q").unwrap()), [order, kind], "{format}");
        let [o, p] = ["o", "p"].map(|name| dwords(&launch.buffer(name).unwrap()));
        let texel = |x: i32, y: i32| {
            let inside = (0..8).contains(&x) && (0..4).contains(&y);
            let at = if inside { (y * 8 + x) as usize * size } else { 0 };
            let (color, border) = color(format, &bytes[at..at + size]);
            if inside { color } else { border }
        };
        for index in 0..128 {
            let (x, y, component) = (index as i32 / 4 % 8, index as i32 / 32, index % 4);
            let value = f64::from(f32::from_bits(o[index]));
            let expected = texel(x, y)[component];
            assert!((value - expected).abs() <= expected.abs() * 1e-7, "{format} {x} {y} {component}: {value}");
            // The corner of four texels.
            let expected = [(-1, -1), (0, -1), (-1, 0), (0, 0)].map(|(u, v)| texel(x + u, y + v)[component]);
            let expected = expected.iter().sum::<f64>() / 4.0;
            let value = f64::from(f32::from_bits(p[index]));
            assert!((value - expected).abs() < 1e-5, "{format} sampled {x} {y} {component}: {value}, not {expected}");
        }
    }
}

/// EU-084: the colors that are written are those that the texels have, within half a step.
#[test]
fn colors_are_written_to_the_channels_of_each_format() {
    let colors: Vec<f32> = (0..128).map(|index| ((index * 29) % 128) as f32 / 127.0).collect();
    let raw: Vec<u8> = colors.iter().flat_map(|value| value.to_le_bytes()).collect();
    for (format, ..) in FORMATS {
        let arguments = [("d", image(Vec::new(), format)), ("a", Argument::Buffer(raw.clone()))];
        let launch = run("paint", RANGE, Settings::default(), &arguments);
        let bytes = launch.buffer("d").unwrap();
        let size = bytes.len() / 32;
        // Steps of a channel; of the curve of sRGB, the largest.
        let step = match format {
            "srgba8unorm" | "sbgra8unorm" => 2.3 / 255.0,
            _ if format.ends_with("8unorm") => 1.0 / 255.0,
            _ if format.ends_with("16unorm") => 1.0 / 65535.0,
            _ if format.ends_with("16f") => 1.0 / 2048.0,
            _ => 0.0,
        };
        for index in 0..32 {
            let (color, _) = color(format, &bytes[index * size..(index + 1) * size]);
            // Components without a channel of their own.
            let kept: &[usize] = match &format[..format.find(|c: char| c.is_ascii_digit()).unwrap()] {
                "r" | "intensity" | "luminance" => &[0],
                "rg" => &[0, 1],
                "a" => &[3],
                _ => &[0, 1, 2, 3],
            };
            for component in kept {
                let (value, expected) = (color[*component], f64::from(colors[index * 4 + component]));
                assert!(
                    (value - expected).abs() <= step * 0.5 + 1e-7,
                    "{format} {index} {component}: {value}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn depth_images_have_the_depth_as_a_number() {
    for (format, step) in [("depth16unorm", 1.0 / 65535.0), ("depth32f", 0.0)] {
        let values: Vec<f32> = (0..32).map(|index| index as f32 / 32.0).collect();
        let bytes: Vec<u8> = match format {
            "depth32f" => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            _ => values.iter().flat_map(|value| ((value * 65535.0).round() as u16).to_le_bytes()).collect(),
        };
        let sampler = Argument::parse("sampler:clamp_edge,nearest,pixels").unwrap();
        let arguments = [("s", image(bytes, format)), ("t", sampler), ("o", zeros(128))];
        let launch = run("depths", RANGE, Settings::default(), &arguments);
        for (value, expected) in dwords(&launch.buffer("o").unwrap()).into_iter().zip(values) {
            assert!((f32::from_bits(value) - expected).abs() <= step, "{format} {expected}");
        }
    }
}
