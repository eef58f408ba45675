// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Captured walkers: their files, and their replays.

mod common;
mod random;

use arctic_eu::capture::{
    Capture, CaptureError, CapturedImage, CapturedSurface, Content, EndPlace, EndReason, Page, PageName, Planes,
    Replay, ReplayMemory, ReplayStop, SamplerName, SurfaceName, Tile,
};
use arctic_eu::exec::memory::{
    Access, Addressing, Comparison, Component, Dimensions, Filter, Image, LevelFilter, Levels, Memory, MipLayout,
    Reduction, Sampler, Surface, SurfaceMemory,
};
use arctic_eu::exec::{FaultKind, Host, Way};
use arctic_eu::launch::parse_image_format;
use common::{CAPTURED_CODE, CAPTURED_DATA, END};
use random::Random;

/// Stores the local id of each item to `a[id]`.
const IDS: &str = "
        mov (16|M0) r10.0<1>:ud r1.0<1;1,0>:uw
        shl (16|M0) r12.0<1>:ud r10.0<1;1,0>:ud 2:uw
        add (16|M0) r12.0<1>:ud r12.0<1;1,0>:ud r4.6<0;1,0>:ud
        send.ugm (16|M0) null r12 r10:2 0x0 0x04000504
";

fn ids(left: &[u32]) -> Capture {
    common::capture(&common::code(&format!("{IDS}{END}")), 2, left)
}

fn run<'c>(capture: &'c Capture, budget: u64, limit: u64) -> (Replay<'c>, ReplayStop) {
    let mut replay = Replay::new(capture, Host::detect(), limit);
    loop {
        match replay.step(budget, Way::Fast, &mut ()) {
            ReplayStop::Budget => {}
            stop => return (replay, stop),
        }
    }
}

#[test]
fn a_replay_leaves_the_memory_of_the_card() {
    let all: Vec<u32> = (0..16).collect();
    let capture = ids(&all);
    for budget in [1, 7, 1 << 20] {
        let (replay, stop) = run(&capture, budget, 100);
        assert_eq!(stop, ReplayStop::End(EndReason::Complete));
        assert_eq!((replay.groups(), replay.instructions(), replay.ended()), (2, 10, None));
        let comparison = replay.compare();
        assert_eq!((comparison.pages, comparison.written, comparison.bytes, comparison.first), (2, 1, 0, None));
    }
    // The card has left another byte.
    let capture = ids(&[&all[..5], &[0x105], &all[6..]].concat());
    let comparison = run(&capture, 100, 100).0.compare();
    let first = comparison.first.unwrap();
    assert_eq!((comparison.bytes, first.address), (1, CAPTURED_DATA + 21));
    assert_eq!((first.card, first.replay, first.before, first.written), (1, 0, 0, true));
}

#[test]
fn a_replay_ends_where_it_cannot_go_on() {
    let code = |text: &str| common::code(&format!("{text}{END}"));
    // Without the page of the data.
    let mut capture = ids(&[]);
    capture.pages.pop_first();
    let place = |address| EndPlace { group: [0; 3], thread: 0, address };
    let stop = run(&capture, 100, 100).1;
    assert_eq!(stop, ReplayStop::End(EndReason::Fault(place(CAPTURED_CODE + 0x30))));
    let endless = common::capture(&code("L0:\n(W) jmpi L0\n"), 1, &[]);
    assert!(matches!(run(&endless, 100, 1000).1, ReplayStop::Limit(_)));
    // Threads that cannot go on end, and the others do not.
    let unsupported = common::capture(&code("(W) send.gtwy (1|M0) null r127 null:0 0x0 0x02000001\n"), 3, &[]);
    let (replay, stop) = run(&unsupported, 100, 1000);
    let ended = replay.ended().unwrap();
    assert_eq!((stop, ended.count, ended.place), (ReplayStop::End(EndReason::Complete), 3, place(CAPTURED_CODE)));
    assert_eq!(ended.reason, FaultKind::Message);
}

fn image(random: &mut Random) -> Image {
    let formats = ["r8ui", "rg16f", "rgba32f", "bgra8unorm", "srgba8unorm", "intensity16unorm", "depth32f"];
    Image {
        base: random.next() >> 16,
        width: random.below(1000) as u32,
        height: random.below(1000) as u32,
        depth: random.below(9) as u32,
        pitch: random.below(5000) as u64,
        slice: random.next(),
        dimensions: [Dimensions::One, Dimensions::Two, Dimensions::Three][random.below(3)],
        array: random.below(2) == 0,
        cube: random.below(2) == 0,
        levels: Levels {
            number: random.below(15) as u8,
            count: 1 + random.below(15) as u8,
            least: random.next() as u16,
        },
        format: parse_image_format(formats[random.below(formats.len())]).unwrap(),
        components: [Component::Zero, Component::One, Component::Alpha, Component::Red],
        handle: 0,
    }
}

fn planes(random: &mut Random) -> Planes {
    let tile = [
        None,
        Some(Tile { columns: 0x2cf, rows: 0xd30, slices: 0 }),
        Some(Tile { columns: 0x144f, rows: 0x2930, slices: 0xc280 }),
    ][random.below(3)];
    Planes {
        base: random.next() >> 20,
        pitch: random.below(5000) as u64,
        texel_bytes: [1, 2, 4, 8, 16][random.below(5)],
        rows: random.below(1000) as u32,
        first: random.below(3) as u32,
        corner: [random.below(9) as u32, random.below(9) as u32],
        mips: MipLayout {
            size: [random.below(1 << 14) as u32, random.below(1 << 14) as u32],
            align: [1 << random.below(8), 4 << random.below(3)],
            in_line: random.below(2) == 0,
        },
        tile,
        compressed: random.below(2) == 0,
    }
}

fn surface(random: &mut Random) -> CapturedSurface {
    let memory = match random.below(4) {
        0 => SurfaceMemory::Null,
        1 => SurfaceMemory::Buffer { base: random.next() >> 16, bytes: random.next() >> 30 },
        2 => SurfaceMemory::Scratch { base: random.next() >> 16, pitch: 64, threads: random.below(4096) as u64 },
        _ => SurfaceMemory::Texels,
    };
    let image = match random.below(4) {
        0 => CapturedImage::None,
        1 => CapturedImage::Unsupported,
        2 => CapturedImage::Null(image(random)),
        _ => CapturedImage::Texels(image(random), planes(random)),
    };
    CapturedSurface { address: random.next() >> 16, memory, image }
}

fn sampler(random: &mut Random) -> Sampler {
    let addressing = [Addressing::Wrap, Addressing::Cube, Addressing::MirrorEdge, Addressing::HalfBorder];
    let mut filter = || Filter {
        linear: random.below(2) == 0,
        rounding: [random.below(2) == 0, true, false],
        anisotropic: random.below(2) == 0,
    };
    let (magnify, minify) = (filter(), filter());
    Sampler {
        addressing: [0; 3].map(|_: u8| addressing[random.below(4)]),
        magnify,
        minify,
        normalized: random.below(2) == 0,
        levels: [LevelFilter::None, LevelFilter::Nearest, LevelFilter::Linear][random.below(3)],
        level: [random.below(9) as u16, 14 << 8],
        clamps_first: random.below(2) == 0,
        bias: random.next() as i16,
        anisotropy: 2 + random.below(15) as u8,
        comparison: [Comparison::Always, Comparison::Less, Comparison::GreaterOrEqual][random.below(3)],
        reduction: [Reduction::Mean, Reduction::Minimum, Reduction::Maximum][random.below(3)],
        overrides_cubes: random.below(2) == 0,
        border: [0; 4].map(|_: u8| random.next() as u32),
    }
}

fn content(random: &mut Random) -> Content {
    if random.below(2) == 0 {
        return Content::Zeros;
    }
    let mut bytes = Box::new([0; 4096]);
    let at = random.below(4096);
    bytes[at] = 1 + random.below(255) as u8;
    Content::Bytes(bytes)
}

/// A capture with values of all kinds.
fn any(random: &mut Random) -> Capture {
    let mut capture = ids(&[1, 2, 3]);
    let place = EndPlace { group: [1, 2, 3], thread: 4, address: random.next() >> 16 };
    capture.end.reason = [EndReason::Complete, EndReason::Fault(place), EndReason::Barrier(place)][random.below(3)];
    capture.launch.system_routine = (random.below(2) == 0).then_some(0x640);
    capture.launch.first = (random.below(4) != 0).then_some([1, 0, 0]);
    capture.launch.dispatch.simd = [8, 16, 32][random.below(3)];
    if random.below(2) == 0 {
        (capture.launch.dispatch.ids, capture.launch.dispatch.inline) = (None, None);
    }
    for number in 0..random.below(5) as u32 {
        let names =
            [SurfaceName::Binding(number as u8), SurfaceName::Bindless(number * 64), SurfaceName::State(number)];
        capture.surfaces.push((names[random.below(3)], surface(random)));
        let name = SamplerName { pointer: (random.below(2) == 0).then_some(number), index: number as u8 };
        let sampler = (random.below(4) != 0).then(|| sampler(random));
        capture.samplers.push((name, sampler));
        let name = PageName { address: 0x10_0000 + u64::from(number) * 4096, compressed: random.below(2) == 0 };
        let page = match random.below(4) {
            0 => Page::Null,
            _ => Page::Memory { before: content(random), after: (random.below(2) == 0).then(|| content(random)) },
        };
        capture.pages.insert(name, page);
    }
    capture.surfaces.sort_by_key(|(name, _)| *name);
    capture.samplers.sort_by_key(|(name, _)| *name);
    capture
}

#[test]
fn files_have_all_of_a_capture() {
    let mut random = Random(7);
    for _ in 0..500 {
        let capture = any(&mut random);
        let bytes = capture.to_bytes();
        assert!(Capture::is_file(&bytes));
        assert_eq!(Capture::parse(&bytes).unwrap(), capture);
    }
}

#[test]
fn damaged_files_are_refused_in_one_sentence() {
    let bytes = ids(&[1]).to_bytes();
    let error = |bytes: &[u8]| Capture::parse(bytes).unwrap_err();
    assert_eq!(error(b"\x7fELF"), CaptureError::Magic);
    for len in 0..bytes.len() {
        let text = error(&bytes[..len]).to_string();
        assert!(!text.is_empty() && !text.contains('\n') && !text.ends_with('.'), "{text}");
    }
    let mut other = bytes.clone();
    other[16] = 9;
    assert_eq!(error(&other), CaptureError::Version(9));
    let twice = [&bytes[..], &bytes[20..]].concat();
    assert_eq!(error(&twice), CaptureError::Twice("ORIG"));
    let later = [&bytes[..], b"NEXT\x02\0\0\0\0\0\0\0ab"].concat();
    assert_eq!(Capture::parse(&later).unwrap(), ids(&[1]), "a section of a later version");
    // The address of a page.
    let at = bytes.windows(8).position(|raw| raw == CAPTURED_DATA.to_le_bytes()).unwrap();
    let at = at + bytes[at + 1..].windows(8).position(|raw| raw == CAPTURED_DATA.to_le_bytes()).unwrap() + 1;
    let mut other = bytes;
    other[at] = 1;
    let value = CaptureError::Value { section: "PAGE", what: "the address of a page", value: CAPTURED_DATA + 1 };
    assert_eq!(error(&other), value);
}

#[test]
fn surfaces_of_a_capture_are_those_of_messages() {
    let mut capture = ids(&[]);
    let mut add = |name, memory, image| {
        capture.surfaces.push((name, CapturedSurface { address: 0, memory, image }));
    };
    let base = CAPTURED_DATA;
    add(SurfaceName::Binding(3), SurfaceMemory::Buffer { base: base + 16, bytes: 6 }, CapturedImage::None);
    add(SurfaceName::Bindless(64), SurfaceMemory::Null, CapturedImage::Unsupported);
    add(SurfaceName::State(0), SurfaceMemory::Scratch { base, pitch: 8, threads: 2 }, CapturedImage::None);
    capture.samplers.push((SamplerName { pointer: None, index: 1 }, None));
    let mut memory = ReplayMemory::new(&capture);
    for at in 0..16_u8 {
        assert_eq!(memory.write(Surface::Flat, base + u64::from(at) * 2, 2, &[at, 0]), Ok(Access::Inside));
    }
    let mut read = |surface, address| {
        let mut bytes = [0xee; 4];
        memory.read(surface, address, 2, &mut bytes).map(|access| (access, bytes))
    };
    assert_eq!(read(Surface::Binding(3), 0), Ok((Access::Inside, [8, 0, 9, 0])));
    assert_eq!(read(Surface::Binding(3), 4), Ok((Access::Outside, [10, 0, 0, 0])));
    assert_eq!(read(Surface::Bindless(64), 0), Ok((Access::Outside, [0; 4])));
    assert_eq!(read(Surface::State(0, 1), 2), Ok((Access::Inside, [5, 0, 6, 0])));
    assert_eq!(read(Surface::State(0, 2), 2), Ok((Access::Outside, [0; 4])));
    assert_eq!(read(Surface::Stateless, base), Ok((Access::Inside, [0, 0, 1, 0])));
    assert_eq!(read(Surface::Binding(4), 0).unwrap_err().kind, FaultKind::Address);
    assert_eq!(memory.image(Surface::Binding(3)).unwrap_err().kind, FaultKind::Surface);
    assert_eq!(memory.image(Surface::Bindless(64)).unwrap_err().kind, FaultKind::Image);
    assert_eq!(memory.sampler(None, 1).unwrap_err().kind, FaultKind::Surface);
    assert_eq!(memory.sampler(None, 2).unwrap_err().kind, FaultKind::Address);
}
