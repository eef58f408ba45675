// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Kernels that sample images with levels and cubes, compare texels, and apply atomic operations to them, as those of Vulkan do.

use super::kernels::*;
use super::messages::{POOL, STATES, bases, buffer};
use super::*;

/// Sampler states, from the dynamic state base on, which is [`STATES`].
const SAMPLERS: u64 = 0x800;
/// Texels of the image, and the results of eight lanes in each of four registers.
const IMAGE: u64 = DATA + 0x4_0000;
const RESULTS: u64 = DATA + 0x5_0000;

/// The state of an image of R32_FLOAT in rows of 256 bytes, whose levels are aligned to 128 bytes and 4 rows.
fn image(kind: u32, size: u32, changes: &[(usize, u32)]) -> [u32; 16] {
    let mut words = buffer(IMAGE, 1);
    words[0] = kind << 29 | 0xd8 << 18 | 1 << 16 | 3 << 14;
    (words[2], words[3]) = ((size - 1) << 16 | (size - 1), 255);
    for (dword, value) in changes {
        words[*dword] = *value;
    }
    words
}

/// Stores the registers from r60 on, as many as there are, as the lanes' results.
fn stores(registers: u32) -> String {
    let store = |index: u32| {
        format!(
            "(W)     mov (8|M0) r30.0<1>:ud 0x76543210:uv\n\
             (W)     shl (8|M0) r30.0<1>:ud r30.0<1;1,0>:ud 0x2:ud\n\
             (W)     add (8|M0) r30.0<1>:ud r30.0<1;1,0>:ud {:#x}:ud\n\
             send.ugm (8|M0) null r30 r{}:1 0x1000000 0x62000504\n",
            index * 32,
            60 + index
        )
    };
    (0..registers).map(store).collect()
}

/// Puts eight floats of small integers, each divided by `parts`, into a register.
fn floats(register: u32, numbers: &str, parts: f32) -> String {
    format!(
        "(W)     mov (8|M0) r{register}.0<1>:f {numbers}:v\n\
         (W)     mul (8|M0) r{register}.0<1>:f r{register}.0<1;1,0>:f {:#x}:f\n",
        (1.0 / parts).to_bits()
    )
}

/// Executes a kernel with the image as entry 0 of the binding table, its results as entry 1, and a sampler. Returns the engine.
fn run(text: &str, groups: u32, image: &[u32; 16], sampler: [u32; 4], texels: &[(u64, f32)]) -> EngineBench {
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.write(POOL + 0x40, &[0x2100, 0x2140, 0, 0]);
    bench.write(STATES + 0x2100, image);
    bench.write(STATES + 0x2140, &buffer(RESULTS, 256));
    bench.write(STATES + SAMPLERS, &sampler);
    for (offset, value) in texels {
        bench.put(IMAGE + offset, value.to_bits());
    }
    let mut words = walker(KERNELS, groups, &[]);
    (words[5], words[21], words[22]) = (0xff, SAMPLERS as u32, 0x40);
    let mut bases = bases();
    let dynamic = VA + STATES;
    (bases[6], bases[7]) = (dynamic as u32 | 1, (dynamic >> 32) as u32 | 0xffff_0000);
    assert_eq!(bench.execute(text, &bases, &words), Outcome::Complete);
    assert_eq!(bench.engine.counters().walkers.executed.faults, 0);
    bench
}

fn results(bench: &EngineBench, register: u64) -> [f32; 8] {
    [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| f32::from_bits(bench.get(RESULTS + register * 32 + lane * 4)))
}

/// Level 1 is below four rows of level 0, level 2 beside it behind 32 columns.
#[test]
fn levels_are_sampled_and_compared() {
    proves!(
        [EU_043, EU_080],
        "a kernel samples the levels of an image by the level of a message, with the filter between levels, and compares them with \
        a reference"
    );
    let texels: Vec<(u64, f32)> = (0..16)
        .map(|at| (at / 4 * 256 + at % 4 * 4, 1.0))
        .chain((0..4).map(|at| ((4 + at / 2) * 256 + at % 2 * 4, 2.0)))
        .chain([(4 * 256 + 128, 3.0)])
        .collect();
    // Three levels; a filter that is linear between them, and with the bounds first.
    let state = image(1, 4, &[(5, 2)]);
    let sampler = [3 << 20 | 2 << 27, 14 << 16 | 2 << 1, 0, 2 << 6 | 2 << 3 | 2];
    let setup = floats(11, "0x76543210", 4.0) + &floats(12, "0x22222222", 4.0) + &floats(13, "0x22222222", 4.0);
    // Levels of 0 to 7 quarters.
    let text = setup + "send.smpl (8|M0) r60 r11 null:0 0x0 0x06422000\n" + &stores(1);
    let bench = run(&text, 1, &state, sampler, &texels);
    assert_eq!(results(&bench, 0), [1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75]);
    // A texel that is less than the reference gives 0: references of 1 to 2.75, of level 1.
    let setup = floats(10, "0x76543210", 1.0)
        + "(W)     mul (8|M0) r10.0<1>:f r10.0<1;1,0>:f 0x3e800000:f\n(W)     add (8|M0) r10.0<1>:f r10.0<1;1,0>:f 0x3f800000:f\n"
        + &floats(11, "0x11111111", 1.0)
        + &floats(12, "0x22222222", 4.0)
        + &floats(13, "0x22222222", 4.0);
    let text = setup + "send.smpl (8|M0) r60 r10 null:0 0x0 0x08426000\n" + &stores(1);
    let bench = run(&text, 1, &state, sampler, &texels);
    assert_eq!(results(&bench, 0), [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn cubes_are_sampled_by_directions() {
    proves!(EU_043, "a kernel samples the faces of a cube by directions");
    // Faces of 4 by 4 texels, four rows from each other, each with its number.
    let texels: Vec<(u64, f32)> = (0..96).map(|at| (at / 4 * 256 + at % 4 * 4, (at / 16) as f32)).collect();
    let state = image(3, 4, &[(0, 3 << 29 | 0xd8 << 18 | 1 << 16 | 3 << 14 | 0x3f), (1, 1)]);
    let sampler = [1 << 20, 1, 0, 2 << 6 | 2 << 3 | 2];
    // Directions +x, -x, +y, -y, +z, -z, and two between.
    let text = floats(11, "0x2D0000F1", 1.0)
        + &floats(12, "0x1200F100", 1.0)
        + &floats(13, "0xF1F10000", 1.0)
        + "send.smpl (8|M0) r60 r11 null:0 0x0 0x06438000\n"
        + &stores(1);

    let bench = run(&text, 1, &state, sampler, &texels);
    assert_eq!(results(&bench, 0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 0.0]);
}

#[test]
fn threads_count_in_a_texel() {
    proves!(EU_045, "typed atomic operations of many threads on one texel, which return the texel before");
    let state = image(1, 4, &[(0, 1 << 29 | 0xd7 << 18 | 3 << 12)]);
    // All lanes of 40 groups add 1 to the texel at 3, 2; the greatest one that they have had is kept at 0, 0.
    let text = "
(W)     mov (8|M0) r10.0<1>:ud 0x3:ud
(W)     mov (8|M0) r11.0<1>:ud 0x2:ud
(W)     mov (8|M0) r12.0<1>:ud 0x1:ud
        send.dc1 (8|M0) r60 r10 r12:1 0x0 0x0411A700
(W)     mov (8|M0) r10.0<1>:ud 0x0:ud
(W)     mov (8|M0) r11.0<1>:ud 0x0:ud
        send.dc1 (8|M0) null r10 r60:1 0x0 0x04018C00
";
    let bench = run(text, 40, &state, [0; 4], &[]);
    // Tile4: 16 bytes by 4 rows are contiguous.
    assert_eq!([bench.get(IMAGE + 2 * 16 + 12), bench.get(IMAGE)], [320, 319]);
}
