// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Typed, media and sampler messages on images that the memory places.

use arctic_eu::exec::memory::{Addressing, Channel, Filter, Sampler};
use arctic_eu::exec::{Fault, FaultKind, Stop};

use super::{Page, run, thread};

/// Texels and rows go through the memory, which places them by the image's handle; a row is as long as the image is wide in
/// dwords, whatever its format (IGT's surfaces of R8).
#[test]
fn texels_and_rows_are_those_of_the_memory() {
    let mut memory = Page::new();
    let mut state = thread();
    for lane in 0..8 {
        state.set_grf(10, lane, lane as u32);
        state.set_grf(11, lane, 2);
        state.set_grf(12, lane, 0xa0 + lane as u32);
    }
    let before = memory.bytes.clone();
    let text = "send.dc1 (8|M0) r20 r10 null:0 0x0 0x04115E00\nsend.dc1 (8|M0) null r10 r12:1 0x0 0x04035E00";
    assert_eq!(run(text, &mut memory, &mut state), Stop::End);
    for lane in 0..8 {
        assert_eq!(state.grf(20, lane), u32::from(before[2 * 64 + 63 - lane]));
        assert_eq!(memory.bytes[2 * 64 + 63 - lane], 0xa0 + lane as u8);
    }
    // 32 bytes from byte 16 of row 1 on: beyond the sixteen texels, inside the sixteen dwords.
    for (dword, value) in [(0, 16), (1, 1), (2, 31)] {
        state.set_grf(30, dword, value);
    }
    state.next = 0;
    let text = "(W) send.dc1 (8|M0) r31 r30 null:0 0x0 0x02190000\n(W) send.dc1 (8|M0) null r30 r12:1 0x0 0x020A8000";
    let before = memory.bytes.clone();
    assert_eq!(run(text, &mut memory, &mut state), Stop::End);
    for byte in 0..32 {
        let value = state.grf(31, byte / 4) >> (byte % 4 * 8) & 0xff;
        assert_eq!(value, u32::from(before[64 + 63 - 16 - byte]), "{byte}");
        let stored = state.grf(12, byte / 4) >> (byte % 4 * 8) & 0xff;
        assert_eq!(u32::from(memory.bytes[64 + 63 - 16 - byte]), stored, "{byte}");
    }
}

/// ISA-226: eight lanes of the upper half of 16 channels are the upper slots, as Mesa's compiler has them, or the lower ones.
#[test]
fn typed_messages_of_eight_lanes_have_either_slot_group() {
    for (place, descriptor, passes) in
        [("M8", 0x0411_6E00, true), ("M8", 0x0411_5E00, true), ("M0", 0x0411_6E00, false)]
    {
        let mut memory = Page::new();
        let mut state = thread();
        for lane in 0..8 {
            state.set_grf(10, lane, lane as u32);
            state.set_grf(11, lane, 1);
        }
        // Channels 9 to 12.
        state.mask = 0x1e00;
        let text = format!("send.dc1 (8|{place}) r20 r10 null:0 0x0 {descriptor:#010X}");
        let stop = run(&text, &mut memory, &mut state);
        if !passes {
            assert!(matches!(stop, Stop::Fault(Fault { kind: FaultKind::Message, .. })), "{text}: {stop:?}");
            continue;
        }
        assert_eq!(stop, Stop::End, "{text}");
        for lane in 0..8 {
            let texel = if (1..5).contains(&lane) { u32::from(memory.bytes[64 + 63 - lane]) } else { 0 };
            assert_eq!(state.grf(20, lane), texel, "{text} {lane}");
        }
    }
}

/// A color of each lane at u and v, of a message to the sampler with this type.
fn sample(memory: &mut Page, message: u32, parameters: &[[f32; 8]]) -> [[u32; 8]; 4] {
    let mut state = thread();
    for (register, values) in parameters.iter().enumerate() {
        for (lane, value) in values.iter().enumerate() {
            state.set_grf(10 + register, lane, value.to_bits());
        }
    }
    let descriptor = (parameters.len() as u32) << 25 | 4 << 20 | 1 << 17 | message << 12;
    let text = format!("send.smpl (8|M0) r20 r10 null:0 0x0 {descriptor:#010X}");
    assert_eq!(run(&text, memory, &mut state), Stop::End, "{text}");
    [0, 1, 2, 3].map(|channel| [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| state.grf(20 + channel, lane)))
}

/// EU-080: each axis has its addressing; the border has the sampler's color.
#[test]
fn samplers_have_an_addressing_for_each_axis_and_a_border() {
    let mut memory = Page::new();
    let texel = |memory: &Page, x: u32, y: u32| u32::from(memory.bytes[(y * 64 + 63 - x) as usize]);
    let u = [-1.0, 0.0, 15.5, 16.0, -3.0, -40.0, 33.0, 7.0];
    let v = [0.0, -1.0, 3.0, 4.0, 1.0, 2.0, 9.0, -7.0];
    for (axes, columns, rows) in [
        (
            [Addressing::Wrap, Addressing::Clamp],
            [15, 0, 15, 0, 13, 8, 1, 7].map(Some),
            [0, 0, 3, 3, 1, 2, 3, 0].map(Some),
        ),
        (
            [Addressing::MirrorOnce, Addressing::Mirror],
            [0, 0, 15, 15, 2, 15, 15, 7].map(Some),
            [0, 0, 3, 3, 1, 2, 1, 6 - 5].map(Some),
        ),
        (
            [Addressing::Clamp, Addressing::Border],
            [0, 0, 15, 15, 0, 0, 15, 7].map(Some),
            [Some(0), None, Some(3), None, Some(1), Some(2), None, None],
        ),
        (
            [Addressing::HalfBorder, Addressing::Wrap],
            [0, 0, 15, 15, 0, 0, 15, 7].map(Some),
            [0, 3, 3, 0, 1, 2, 1, 1].map(Some),
        ),
    ] {
        let mut sampler = Sampler::uniform(Addressing::Wrap, false, false);
        sampler.addressing[..2].copy_from_slice(&axes);
        sampler.border = [0x55, 0x66, 0x77, 0x88];
        memory.sampler = Some(sampler);
        let [red, green, _, alpha] = sample(&mut memory, 24, &[u, v]);
        for lane in 0..8 {
            let expected = match (columns[lane], rows[lane]) {
                (Some(x), Some(y)) => texel(&memory, x, y),
                _ => 0x55,
            };
            // The format has one component: the others are 0, the last 1, on the border too.
            assert_eq!((red[lane], green[lane], alpha[lane]), (expected, 0, 1), "{axes:?} lane {lane}");
        }
    }
}

/// EU-080: the level of detail, within the sampler's bounds, chooses the filter; rounding bits round its weights.
#[test]
fn levels_choose_the_filter_and_rounding_bits_its_weights() {
    let mut memory = Page::new();
    memory.channel = Channel::Unorm8;
    let texel = |memory: &Page, x: u32| f32::from(memory.bytes[(63 - x) as usize]) / 255.0;
    // Between the centers of texels 3 and 4: 0.7 of 256 are 179.2, and 0.999 are 255.7.
    let (u, v) = ([4.2f32, 4.499, 4.2, 4.2, 4.2, 4.2, 4.2, 4.2], [0.5; 8]);
    let level = [0.0, 0.0, 0.5, 3.0, -1.0, f32::NAN, 1e9, f32::NEG_INFINITY];
    for (bounds, linear) in [
        ([0, 14 << 8], [false, false, true, true, false, false, true, false]),
        ([0, 0], [false; 8]),
        ([1 << 7, 1 << 8], [true; 8]),
    ] {
        for rounding in [false, true] {
            let mut sampler = Sampler::uniform(Addressing::Clamp, false, false);
            sampler.minify = Filter { linear: true, rounding: [rounding; 3], anisotropic: false };
            sampler.level = bounds;
            memory.sampler = Some(sampler);
            let [red, ..] = sample(&mut memory, 2, &[level, u, v]);
            for lane in 0..8 {
                let fraction = (u[lane] - 0.5 - 3.0) * 256.0;
                let weight = if rounding { fraction.round() } else { fraction.floor() } / 256.0;
                let mean = (1.0 - weight) * texel(&memory, 3) + weight * texel(&memory, 4);
                let expected = if linear[lane] { mean } else { texel(&memory, 4) };
                assert_eq!(f32::from_bits(red[lane]), expected, "{bounds:?} {rounding} lane {lane}");
            }
        }
    }
    // A nearest texel of a coordinate that is rounded to 1/256 first.
    let mut sampler = Sampler::uniform(Addressing::Clamp, false, false);
    sampler.magnify.rounding[0] = true;
    memory.sampler = Some(sampler);
    let [red, ..] = sample(&mut memory, 24, &[[3.999; 8], v]);
    assert_eq!(f32::from_bits(red[0]), texel(&memory, 4));
}
