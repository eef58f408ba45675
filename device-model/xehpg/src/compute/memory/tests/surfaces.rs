// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Surfaces, images and samplers.

use arctic_eu::exec::memory::{Addressing, Dimensions};

use super::*;

const DWORD: u32 = 0xfeed_c0de;

/// Shared local memory is the interpreter's.
#[test]
fn ways_to_address() {
    proves!(EU_040, "a value that is read by each way of addressing is the same dword");
    let world = World::new();
    world.write(LOCAL_VA + 0x120, &DWORD.to_le_bytes());
    world.put_state(0x40, &buffer(LOCAL_VA + 0x100, 64));
    world.bind(3, 0x40 | 0x3f);
    // The same state as seen from the bindless base, which is higher by 0x100.
    world.put_state(0x180, &buffer(LOCAL_VA + 0x20, 0x200));
    let ways = [
        (Surface::Flat, LOCAL_VA + 0x120),
        (Surface::Flat, LOCAL_VA + 0x120 | 0xffff << 48),
        (Surface::Stateless, 0x120),
        (Surface::Binding(3), 0x20),
        (Surface::Bindless(0x80), 0x100),
        (Surface::State(0x40, 7), 0x20),
    ];
    world.once(|memory| {
        for (surface, address) in ways {
            assert_eq!(load(memory, surface, address), Ok((DWORD, Access::Inside)), "{surface:?}");
        }
        for (n, (surface, address)) in (0..).zip(ways) {
            assert_eq!(store(memory, surface, address, n), Ok(Access::Inside));
            assert_eq!(load(memory, Surface::Flat, LOCAL_VA + 0x120), Ok((n, Access::Inside)), "{surface:?}");
        }
    });
}

#[test]
fn sums_have_48_bits() {
    proves!(EU_006, "bases have any upper bits, and sums are cut to 48 bits");
    let mut world = World::new();
    world.write(LOCAL_VA, &DWORD.to_le_bytes());
    // A buffer that ends at the end of the address space is no access to its beginning.
    world.put_state(0, &buffer(ADDRESS - 0xfff, 1 << 32));
    world.bases.general = LOCAL_VA.wrapping_sub(0xffff_fff0);
    world.once(|memory| {
        assert_eq!(load(memory, Surface::Stateless, 0xffff_fff0), Ok((DWORD, Access::Inside)));
        let fault = load(memory, Surface::State(0, 0), 0x1000).unwrap_err();
        assert_eq!(fault.address, Some(0));
        let fault = load(memory, Surface::Flat, ADDRESS - 1).unwrap_err();
        assert_eq!(fault.address, Some(ADDRESS - 1));
    });
}

#[test]
fn bounds() {
    proves!(EU_044, "bounds count by byte; elements that are not wholly inside read 0 and are not written");
    let world = World::new();
    world.write(LOCAL_VA + 0x100, &[0x11; 64]);
    world.put_state(0, &buffer(LOCAL_VA + 0x100, 10));
    let surface = Surface::State(0, 0);
    world.once(|memory| {
        let mut read = |address, element, len: usize| {
            let mut bytes = [0xee; 8];
            let access = memory.read(surface, address, element, &mut bytes[..len]).unwrap();
            (bytes[..len].to_vec(), access == Access::Inside)
        };
        assert_eq!(read(6, 4, 4), (vec![0x11; 4], true));
        assert_eq!(read(7, 4, 4), (vec![0; 4], false));
        assert_eq!(read(8, 1, 4), (vec![0x11, 0x11, 0, 0], false));
        assert_eq!(read(4, 4, 8), (vec![0x11, 0x11, 0x11, 0x11, 0, 0, 0, 0], false));
        assert_eq!(read(10, 1, 1), (vec![0], false));
        for far in [0xffff_ffff, u64::MAX, 1 << 48, u64::MAX - 3] {
            assert_eq!(read(far, 4, 4), (vec![0; 4], false), "{far:#x}");
        }
        let mut write = |address, element, bytes: &[u8]| memory.write(surface, address, element, bytes);
        assert_eq!(write(7, 4, &[0x22; 4]), Ok(Access::Outside));
        assert_eq!(write(u64::MAX, 4, &[0x22; 4]), Ok(Access::Outside));
        assert_eq!(write(8, 1, &[0x33; 4]), Ok(Access::Outside));
        assert_eq!(memory.atomic(surface, 12, 4, Atomic::Inc, [0; 2]), Ok(None));
        assert_eq!(memory.atomic(surface, 8, 4, Atomic::Inc, [0; 2]), Ok(None));
    });
    assert_eq!(
        world.read::<12>(LOCAL_VA + 0x100),
        [0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x33, 0x33, 0x11, 0x11]
    );
}

#[test]
fn null_surface() {
    proves!(EU_044, "a null surface has no memory, wherever its base is");
    let world = World::new();
    let mut words = buffer(UNMAPPED_VA, 64);
    words[0] = 7 << 29;
    world.put_state(0, &words);
    world.once(|memory| {
        let surface = Surface::State(0, 0);
        assert_eq!(load(memory, surface, 0), Ok((0, Access::Outside)));
        assert_eq!(store(memory, surface, 0, 1), Ok(Access::Outside));
        assert_eq!(memory.atomic(surface, 0, 8, Atomic::Inc, [0; 2]), Ok(None));
        let image = memory.image(surface).unwrap();
        assert_eq!((image.width, image.height, image.depth), (0, 0, 0));
        let mut bytes = [0xee; 4];
        memory.read_texel(&image, [0; 3], &mut bytes).unwrap();
        memory.write_texel(&image, [0; 3], &bytes).unwrap();
        assert_eq!((bytes, memory.take_fault()), ([0; 4], None));
    });
}

#[test]
fn scratch_surface() {
    proves!(EU_041, "a part for each hardware thread: beyond its end reads are 0 and stores dropped");
    let world = World::new();
    let mut words = buffer(LARGE_VA, 4096);
    words[0] = 6 << 29 | 0x1ff << 18;
    words[3] = 255;
    world.put_state(0x140, &words);
    world.once(|memory| {
        for thread in [0, 1, 4095] {
            assert_eq!(store(memory, Surface::State(0x140, thread), 252, thread + 1), Ok(Access::Inside));
            assert_eq!(store(memory, Surface::State(0x140, thread), 253, 9), Ok(Access::Outside));
            assert_eq!(load(memory, Surface::State(0x140, thread), 256), Ok((0, Access::Outside)));
        }
        assert_eq!(store(memory, Surface::State(0x140, 4096), 0, 9), Ok(Access::Outside));
        assert_eq!(load(memory, Surface::State(0x140, u32::MAX), 0), Ok((0, Access::Outside)));
        // Only the way with a thread has a part.
        assert_eq!(load(memory, Surface::Bindless(0x40), 0), Err(FaultKind::Surface.into()));
    });
    for thread in [0, 1, 4095] {
        assert_eq!(world.dword(LARGE_VA + u64::from(thread) * 256 + 252), thread + 1);
    }
}

/// A walker is executed with the states that it has used first.
#[test]
fn states_are_decoded_once_for_each_walker() {
    let world = World::new();
    let mut walker = Surfaces::default();
    world.write(LOCAL_VA, &[1, 0, 0, 0, 2, 0, 0, 0]);
    world.put_state(0, &buffer(LOCAL_VA, 64));
    let found = |walker: &mut Surfaces| world.step(walker, |memory| load(memory, Surface::Binding(0), 0).unwrap().0);
    assert_eq!(found(&mut walker), 1);
    world.put_state(0, &buffer(LOCAL_VA + 4, 64));
    assert_eq!((found(&mut walker), found(&mut Surfaces::default())), (1, 2));
}

#[test]
fn samplers() {
    proves!([EU_080, EU_081], "the state of a sampler, by number and by pointer");
    let world = World::new();
    let state = |addressing: u32| [0, 0xe00 << 8, 0x40, addressing << 6].map(u32::to_le_bytes);
    world.write(STATE_VA + 0xa00 + 32, state(2).as_flattened());
    world.write(STATE_VA + 0x800 + 0x60, state(4).as_flattened());
    world.write(STATE_VA + 0x840, [1u32, 2, 3, 4].map(u32::to_le_bytes).as_flattened());
    world.once(|memory| {
        let clamped = memory.sampler(None, 2).unwrap();
        assert_eq!((clamped.addressing[0], clamped.border), (Addressing::Clamp, [0; 4]));
        let bordered = memory.sampler(Some(0x60), 0).unwrap();
        assert_eq!((bordered.addressing[0], bordered.border), (Addressing::Border, [1, 2, 3, 4]));
        assert_eq!(memory.sampler(Some(0xffff_ffe0), 0).unwrap_err().kind, FaultKind::Address);
    });
}

#[test]
fn images() {
    proves!([EU_043, EU_084], "a linear image is read and written; one with several samples is refused by name");
    let world = World::new();
    let mut words = buffer(LOCAL_VA, 1);
    words[0] = 1 << 29 | 0xc7 << 18;
    words[2] = 3 << 16 | 7;
    words[3] = 63;
    world.put_state(0x40, &words);
    words[4] |= 1 << 3;
    world.put_state(0x80, &words);
    world.write(LOCAL_VA + 2 * 64 + 5 * 4, &[1, 2, 3, 4]);
    world.once(|memory| {
        let image = memory.image(Surface::State(0x40, 0)).unwrap();
        assert_eq!((image.width, image.height, image.dimensions), (8, 4, Dimensions::Two));
        let mut bytes = [0; 4];
        memory.read_texel(&image, [5, 2, 0], &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4]);
        memory.write_texel(&image, [7, 3, 0], &[5, 6, 7, 8]).unwrap();
        memory.read_row(&image, 28, 3, &mut bytes).unwrap();
        assert_eq!(bytes, [5, 6, 7, 8]);
        assert_eq!(memory.image(Surface::State(0x80, 0)), Err(FaultKind::Image.into()));
        assert_eq!(memory.image(Surface::Flat), Err(FaultKind::Surface.into()));
        // An image has no untyped elements.
        assert_eq!(load(memory, Surface::State(0x40, 0), 0), Err(FaultKind::Surface.into()));
    });
}

proptest::proptest! {
    /// Forged states, addresses and sizes cause no panic.
    #[test]
    fn hostile_states(
        words in proptest::array::uniform16(proptest::prelude::any::<u32>()),
        address in proptest::prelude::any::<u64>(),
        general in proptest::prelude::any::<u64>(),
        thread in proptest::prelude::any::<u32>(),
    ) {
        let mut world = World::new();
        world.put_state(0, &words);
        world.bind(255, 0);
        let mapped = VA + address % (8 * PAGE);
        for general in [general, LOCAL_VA] {
            world.bases.general = general;
            world.once(|memory| {
                for surface in [Surface::State(0, thread), Surface::Binding(255), Surface::Bindless(thread), Surface::Stateless, Surface::Flat] {
                    for address in [address, address & 0xffff_ffff, mapped, u64::MAX - (address & 63)] {
                        let mut bytes = [0; 64];
                        let _ = memory.read(surface, address, 8, &mut bytes);
                        let _ = memory.write(surface, address, 1, &bytes);
                        let _ = memory.atomic(surface, address, 2 << (address & 1), Atomic::Fadd, [1, 2]);
                        let addresses = [address; 32];
                        let lanes = LaneSpans { surface, addresses: &addresses, enabled: thread, element: 4, size: 12 };
                        let (mut bytes, mut outside) = ([0; 32 * 12], 0);
                        let _ = memory.read_lanes(&lanes, &mut bytes, &mut outside);
                        let _ = memory.write_lanes(&lanes, &bytes, &mut outside);
                    }
                    if let Ok(image) = memory.image(surface) {
                        let mut texel = [0; 16];
                        let texel = &mut texel[..image.format.texel_bytes()];
                        let _ = memory.read_texel(&image, [thread, 1, 2], texel);
                        let _ = memory.write_texel(&image, [u32::MAX; 3], texel);
                        let _ = memory.read_row(&image, thread, thread, &mut [0; 64]);
                    }
                }
                let _ = memory.sampler(Some(thread), 15);
                memory.take_cost();
            });
        }
    }
}
