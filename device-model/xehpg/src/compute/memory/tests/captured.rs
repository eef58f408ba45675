// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory that is captured: what a replay finds and leaves is what the card has.

use std::time::Duration;

use arctic_eu::capture::{Capture, ReplayMemory};

use super::images::{SHAPES, state};
use super::*;
use crate::compute::capture::{CaptureJob, Captures};
use crate::compute::report::{RunStop, WalkerCounts};
use crate::compute::state::ComputeState;
use crate::compute::walker::Walker;
use crate::gpu::{CaptureProgress, WalkerCapture, WalkerRequest};
use crate::trace::Filter;

/// What accesses of a test return, of the card and of its replay.
type Accesses<'a> = &'a dyn Fn(&mut dyn Memory) -> Vec<Vec<u8>>;

/// Captures the accesses.
fn capture(world: &World, accesses: Accesses<'_>) -> (Result<Capture, String>, Vec<Vec<u8>>) {
    let captures = Arc::<Captures>::default();
    let request = WalkerRequest { filter: Filter::default(), number: 1, most_bytes: 8 << 20 };
    let mut waiting = captures.request(request).unwrap();
    let walker = Walker::new(&arctic_mi::compute::Walker::of(0).words(), &ComputeState::default(), [0; 3]).unwrap();
    let mut job: Box<CaptureJob> = captures.begin(Function::PF, "ccs0", &walker, &ComputeState::default()).unwrap();
    let mut found = Vec::new();
    world.once(|memory| {
        found = accesses(&mut CapturingMemory::new(memory, &mut *job));
        job.hold(&RunStop::Done, WalkerCounts::default(), None);
        while !job.is_given_up() && job.copy_pages(memory) {}
    });
    let result = match waiting.wait(Duration::ZERO) {
        CaptureProgress::Done(bytes) => Ok(Capture::parse(&bytes).unwrap()),
        CaptureProgress::Failed(reason) => Err(reason),
        other => panic!("{other:?}"),
    };
    (result, found)
}

/// Captures the accesses, and makes them again on the capture. Returns the capture.
fn check(world: &World, accesses: Accesses<'_>, what: &str) -> Capture {
    let (capture, found) = capture(world, accesses);
    let capture = capture.unwrap();
    let mut replay = ReplayMemory::new(&capture);
    assert_eq!(accesses(&mut replay), found, "{what}");
    let comparison = replay.compare();
    assert_eq!(comparison.first, None, "{what}");
    assert!(comparison.written > 0, "{what}");
    capture
}

const IMAGE: Surface = Surface::State(0x40, 0);

#[test]
fn images_of_all_layouts_are_replayed() {
    let world = World::new();
    let places =
        || (0..5).flat_map(|z| (0..60).step_by(7).flat_map(move |y| (0..100).step_by(9).map(move |x| [x, y, z])));
    for (kind, tile_mode, _) in SHAPES {
        // Not compressed; compressed, in blocks that are not and that are.
        for (compressed, control) in [(false, 0), (true, 0), (true, 0x5c)] {
            let what =
                format!("type {kind}, tile mode {tile_mode}, compressed: {compressed}, control data {control:#x}");
            world.set_control(control);
            world.put_state(0x40, &state(kind, tile_mode, compressed));
            let accesses = |memory: &mut dyn Memory| {
                let image = memory.image(IMAGE).unwrap();
                for [x, y, z] in places().filter(|[x, ..]| x % 2 == 0) {
                    memory.write_texel(&image, [x, y, z], &[x as u8, y as u8, z as u8, 0x5a]).unwrap();
                }
                let mut found: Vec<Vec<u8>> = places()
                    .map(|at| {
                        let mut bytes = [0; 4];
                        memory.read_texel(&image, at, &mut bytes).unwrap();
                        bytes.to_vec()
                    })
                    .collect();
                memory.write_row(&image, 50, 37, &[0x77; 61]).unwrap();
                let mut row = [0; 200];
                memory.read_row(&image, 13, 37, &mut row).unwrap();
                found.push(row.to_vec());
                found
            };
            let capture = check(&world, &accesses, &what);
            let any = capture.pages.keys().filter(|page| page.compressed).count();
            assert_eq!(any != 0, compressed, "{what}");
        }
    }
}

/// Accesses across pages of local memory, of guest memory, and of a NULL page; atomic operations; a part outside of a surface.
#[test]
fn memory_of_all_kinds_is_replayed() {
    let world = World::new();
    world.put_state(0x40, &buffer(LOCAL_VA + PAGE - 8, 20));
    let accesses = |memory: &mut dyn Memory| {
        let mut found = Vec::new();
        let mut read = |memory: &mut dyn Memory, surface, at, len: usize| {
            let mut bytes = vec![0xee; len];
            let access = memory.read(surface, at, 4, &mut bytes);
            bytes.push(u8::from(access == Ok(Access::Inside)));
            found.push(bytes);
        };
        for (surface, at, bytes, access) in [
            (Surface::Flat, LOCAL_VA + PAGE - 4, &[1; 16][..], Access::Inside),
            (Surface::Flat, GUEST_VA - 4, &[2; 16], Access::Inside),
            (Surface::Flat, NULL_VA + 4, &[3; 16], Access::Inside),
            (IMAGE, 16, &[4; 8], Access::Outside),
        ] {
            assert_eq!(memory.write(surface, at, 4, bytes), Ok(access));
        }
        memory.atomic(Surface::Flat, LAST_VA + 8, 8, Atomic::Add, [5, 0]).unwrap();
        memory.atomic(Surface::Flat, GUEST_VA + 10, 2, Atomic::Sub, [5, 0]).unwrap();
        memory.atomic(IMAGE, 4, 4, Atomic::Umax, [9, 0]).unwrap();
        assert!(memory.write(Surface::Flat, UNMAPPED_VA, 4, &[1; 4]).is_err());
        for (surface, at, len) in
            [(Surface::Flat, LOCAL_VA + PAGE - 8, 32), (Surface::Flat, GUEST_VA - 8, 32), (Surface::Flat, NULL_VA, 32)]
        {
            read(memory, surface, at, len);
        }
        read(memory, IMAGE, 0, 32);
        read(memory, Surface::Flat, LAST_VA, 16);
        found
    };
    let capture = check(&world, &accesses, "memory");
    assert_eq!(capture.surfaces.len(), 1);
}

#[test]
fn memory_that_is_not_mapped_is_not_captured() {
    let world = World::new();
    let accesses = |memory: &mut dyn Memory| {
        let mut bytes = [0; 4];
        assert_eq!(memory.read(Surface::Flat, REMOTE_VA, 4, &mut bytes), Ok(Access::Inside));
        vec![bytes.to_vec()]
    };
    assert!(capture(&world, &accesses).0.unwrap_err().contains("does not map"));
}

/// The same memory through an image and as it is.
#[test]
fn pages_with_and_without_compression_are_not_captured() {
    let world = World::new();
    world.set_control(0x5c);
    world.put_state(0x40, &state(1, 3, true));
    let accesses = |memory: &mut dyn Memory| {
        let image = memory.image(IMAGE).unwrap();
        let mut bytes = [0; 4];
        memory.read_texel(&image, [0; 3], &mut bytes).unwrap();
        let access = memory.read(Surface::Flat, LARGE_VA, 4, &mut bytes);
        assert_eq!(access, Ok(Access::Inside));
        Vec::new()
    };
    assert!(capture(&world, &accesses).0.unwrap_err().contains("with and without compression"));
}
