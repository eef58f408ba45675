// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the lanes of a message access, at once.

use arctic_eu::exec::memory::elements;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn spans(surface: Surface, addresses: &[u64], enabled: u32, element: usize, size: usize) -> LaneSpans<'_> {
    LaneSpans { surface, addresses, enabled, element, size }
}

/// Consecutive lanes, lanes with gaps, and lanes over pages of all kinds of memory.
#[test]
fn lanes_of_all_kinds_of_memory() {
    proves!(EU_073, "bytes of a NULL page read 0, also in a dword that has others, and stores to them are dropped");
    let world = World::new();
    let addresses: Vec<u64> = [
        LOCAL_VA + 4,
        LOCAL_VA + 1,
        LOCAL_VA + PAGE - 2,
        LOCAL_VA + PAGE + 0x10,
        GUEST_VA - 1,
        GUEST_VA + 8,
        REMOTE_VA - 3,
        REMOTE_VA + 16,
        NULL_VA - 2,
        NULL_VA + 4,
        LAST_VA - 1,
        LAST_VA + 0x100 | 0xffff << 48,
        LARGE_VA + 0x1f_fff0,
    ]
    .into();
    world.once(|memory| {
        let lanes = spans(Surface::Flat, &addresses, 0x1fff, 4, 4);
        let values: Vec<u8> = (1..=addresses.len() as u8 * 4).collect();
        let mut outside = 0;
        memory.write_lanes(&lanes, &values, &mut outside).unwrap();
        assert_eq!(memory.take_cost(), 3 * REMOTE_COST);
        let mut found = vec![0; values.len()];
        memory.read_lanes(&lanes, &mut found, &mut outside).unwrap();
        let mut expected = values;
        // Three lanes have bytes in memory of the client, which are stored and loaded. Lane 1 has written over the low byte of lane 0. Bytes in the NULL page read 0.
        expected[0] = 8;
        for zero in [8 * 4 + 2, 8 * 4 + 3, 9 * 4, 9 * 4 + 1, 9 * 4 + 2, 9 * 4 + 3, 10 * 4] {
            expected[zero] = 0;
        }
        assert_eq!((found, outside), (expected, 0));
        assert_eq!(memory.take_cost(), 3 * REMOTE_COST);
    });
}

/// The bytes of local memory are counted, whatever the addresses of the lanes have in common and wherever others are.
#[test]
fn local_memory_of_lanes_is_counted() {
    let world = World::new();
    let row = |start: u64, step: u64| (0..16).map(move |lane| start + step * lane).collect::<Vec<_>>();
    let mixed: Vec<u64> = row(LOCAL_VA, 12).into_iter().zip(row(GUEST_VA, 8)).flat_map(|(a, b)| [a, b]).collect();
    for (addresses, enabled, size, expected) in [
        (row(LOCAL_VA, 4), 0xffff, 4, 64),
        (row(LOCAL_VA, 4), 0x0ff0, 4, 32),
        (row(LOCAL_VA, 12), 0xffff, 4, 64),
        (row(LOCAL_VA, 16), 0x7fff, 8, 120),
        (row(LOCAL_VA, 20), 0xf00f, 12, 96),
        (row(LOCAL_VA + PAGE - 32, 4), 0xffff, 4, 64),
        (row(LOCAL_VA + PAGE - 34, 8), 0xffff, 4, 64),
        (row(LOCAL_VA, 0), 0xffff, 4, 64),
        (row(GUEST_VA, 4), 0xffff, 4, 0),
        (row(GUEST_VA, 12), 0xffff, 4, 0),
        (mixed.clone(), u32::MAX, 4, 64),
        (mixed, 0x5555_5555, 4, 64),
    ] {
        world.once(|memory| {
            let lanes = spans(Surface::Flat, &addresses, enabled, 4, size);
            let mut bytes = vec![0; addresses.len() * size];
            memory.read_lanes(&lanes, &mut bytes, &mut 0).unwrap();
            memory.write_lanes(&lanes, &bytes, &mut 0).unwrap();
            assert_eq!(memory.gam.take_traffic(), [expected; 2], "{addresses:x?} {enabled:x} {size}");
        });
    }
}

/// Of lanes with the same address, the last one's store remains. Lanes that are not enabled neither load nor store.
#[test]
fn equal_addresses_and_gaps() {
    let world = World::new();
    world.once(|memory| {
        let addresses = [LOCAL_VA; 16];
        let values: Vec<u8> = (0..64).collect();
        let mut outside = 0;
        memory.write_lanes(&spans(Surface::Flat, &addresses, 0x7fff, 4, 4), &values, &mut outside).unwrap();
        assert_eq!(load(memory, Surface::Flat, LOCAL_VA), Ok((0x3b3a_3938, Access::Inside)));
        let consecutive: Vec<u64> = (0..16).map(|lane| LOCAL_VA + lane * 4).collect();
        memory.write_lanes(&spans(Surface::Flat, &consecutive, 0xffff, 4, 4), &[0x55; 64], &mut outside).unwrap();
        memory.write_lanes(&spans(Surface::Flat, &consecutive, 0x00f0, 4, 4), &values, &mut outside).unwrap();
        memory.write_lanes(&spans(Surface::Flat, &consecutive, 0x8002, 4, 4), &values, &mut outside).unwrap();
        let mut found = [0; 64];
        memory.read_lanes(&spans(Surface::Flat, &consecutive, 0xffff, 4, 4), &mut found, &mut outside).unwrap();
        let mut expected = [0x55; 64];
        for range in [4..8, 16..32, 60..64] {
            expected[range.clone()].copy_from_slice(&values[range]);
        }
        assert_eq!(found, expected);
        let mut some = [0xee; 64];
        memory.read_lanes(&spans(Surface::Flat, &consecutive, 0x0306, 4, 4), &mut some, &mut outside).unwrap();
        for lane in 0..16 {
            let enabled = 0x0306 >> lane & 1 != 0;
            let bytes = lane * 4..lane * 4 + 4;
            assert_eq!(some[bytes.clone()], if enabled { expected[bytes].to_vec() } else { vec![0xee; 4] });
        }
    });
}

/// A lane that faults is named; lanes before it have their values.
#[test]
fn the_lane_of_a_fault_is_named() {
    let world = World::new();
    world.write(LOCAL_VA, &[1, 2, 3, 4]);
    world.once(|memory| {
        let addresses = [UNMAPPED_VA, LOCAL_VA, UNMAPPED_VA + 8, LOCAL_VA];
        let mut bytes = [0; 16];
        let fault = memory.read_lanes(&spans(Surface::Flat, &addresses, 0xe, 4, 4), &mut bytes, &mut 0).unwrap_err();
        assert_eq!((fault.lane, fault.fault.address), (2, Some(UNMAPPED_VA + 8)));
        assert_eq!(bytes, [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
        let fault = memory.write_lanes(&spans(Surface::Flat, &addresses, 0xd, 4, 4), &bytes, &mut 0).unwrap_err();
        assert_eq!((fault.lane, fault.fault.address), (0, Some(UNMAPPED_VA)));
        assert_eq!(memory.take_fault().unwrap().address, UNMAPPED_VA);
    });
}

/// Bytes of a plain model of the pages, in which the NULL page reads 0.
fn model_read(model: &[u8], at: usize, len: usize) -> Vec<u8> {
    (at..at + len).map(|at| if is_null(at) { 0 } else { model[at] }).collect()
}

fn is_null(at: usize) -> bool {
    (NULL_VA - VA..LAST_VA - VA).contains(&(at as u64))
}

/// Bytes of the surface of the property test. Its end is inside a page.
const SURFACE_BYTES: usize = (PAGES * PAGE) as usize - 0x123;

proptest! {
    /// Loads and stores of lanes are those of a plain array: flat or in a surface with its bounds, for all sizes,
    /// alignments, runs, masks and pages.
    #[test]
    fn lanes_of_a_plain_model(messages in vec(
        (any::<bool>(), any::<bool>(), 0..5usize, 0..4usize, any::<u32>(), vec(any::<u16>(), 32), 0..4u8), 1..16,
    )) {
        let world = World::new();
        world.put_state(0, &buffer(VA, SURFACE_BYTES as u64));
        let mut model = vec![0; (PAGES * PAGE) as usize];
        world.once(|memory| {
            for (n, (store, flat, form, size, mask, places, shape)) in messages.into_iter().enumerate() {
                let element = 1 << size;
                let size = element * [1, 1, 2, 3, 4][form];
                let limit = if flat { model.len() - size } else { model.len() + 0x100 };
                let places: Vec<usize> = match shape {
                    // Consecutive, perhaps unaligned, perhaps over the end of the surface.
                    0 => (0..32).map(|lane| (usize::from(places[0]) + lane * size).min(limit)).collect(),
                    // Near the first one.
                    1 => places.iter().map(|place| (usize::from(places[0]) + usize::from(place % 64)).min(limit)).collect(),
                    2 => places.iter().map(|place| (usize::from(*place) & !(element - 1)).min(limit)).collect(),
                    _ => places.iter().map(|place| usize::from(*place).min(limit)).collect(),
                };
                let surface = if flat { Surface::Flat } else { Surface::State(0, 0) };
                let base = if flat { VA } else { 0 };
                let addresses: Vec<u64> = places.iter().map(|place| base + *place as u64).collect();
                let mask = if shape == 0 && n % 2 == 0 { u32::MAX >> (mask % 32) } else { mask };
                let lanes = spans(surface, &addresses, mask, element, size);
                let mut expected_outside = 0;
                let mut outside = 0;
                let enabled = (0..32).filter(|lane| mask >> lane & 1 != 0);
                // Whole elements that are inside.
                let inside = |place: usize| {
                    if flat { size } else { elements(SURFACE_BYTES.saturating_sub(place).min(size), element) }
                };
                if store {
                    let values: Vec<u8> = (0..32 * size).map(|index| (index * 7 + n + 1) as u8).collect();
                    for lane in enabled {
                        let inside = inside(places[lane]);
                        expected_outside |= u32::from(inside < size) << lane;
                        for byte in 0..inside {
                            model[places[lane] + byte] = values[lane * size + byte];
                        }
                    }
                    prop_assert_eq!(memory.write_lanes(&lanes, &values, &mut outside), Ok(()));
                } else {
                    let mut values = vec![0xee; 32 * size];
                    let mut expected = values.clone();
                    for lane in enabled {
                        let inside = inside(places[lane]);
                        expected_outside |= u32::from(inside < size) << lane;
                        let bytes = &mut expected[lane * size..(lane + 1) * size];
                        bytes.fill(0);
                        bytes[..inside].copy_from_slice(&model_read(&model, places[lane], inside));
                    }
                    prop_assert_eq!(memory.read_lanes(&lanes, &mut values, &mut outside), Ok(()));
                    prop_assert_eq!(values, expected);
                }
                prop_assert_eq!(outside, expected_outside);
                memory.take_cost();
            }
            let mut all = vec![0; model.len()];
            for (at, chunk) in (0..).step_by(512).zip(all.chunks_mut(512)) {
                prop_assert_eq!(memory.read(Surface::Flat, VA + at, 1, chunk), Ok(Access::Inside));
            }
            prop_assert!(all == model_read(&model, 0, model.len()));
            Ok(())
        })?;
    }
}
