// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Malformed commands that no driver sends.

use proptest::prelude::*;

use super::*;
use crate::command::Blt;
use crate::memory::{Directory, FaultType};

const PAGES: u32 = 16;

fn copy(corners: [u32; 2], to: u32, from: u32) -> [u32; 8] {
    [XY_SRC_COPY_BLT | WRITE, 3 << 24 | 0xcc << 16 | 4096, corners[0], corners[1], to, 0, 4096, from]
}

/// BLT-002: an empty or inverted rectangle accesses no memory.
#[test]
fn empty_rectangles_access_no_memory() {
    let mut bench = BlitBench::new(PAGES);
    let absent = PAGES * PAGE;
    for (first, second) in [
        (point(0, 0), point(0, 0)),
        (point(5, 5), point(5, 9)),
        (point(9, 0), point(3, 8)),
        (point(32767, 32767), point(-32768, -32768)),
    ] {
        assert_eq!(bench.run(&copy([first, second], absent, absent), 1), Ok(1));
        let control = 1 << 31 | 3 << 24 | 0xf0 << 16;
        bench.run(&[XY_SETUP_MONO_PATTERN_SL_BLT, control, 0, 0, absent, 0, 0, 0, 0], 1).unwrap();
        assert_eq!(bench.run(&[XY_SCANLINES_BLT, first, second], 1), Ok(1));
    }
    for size in [0, 1 << 16, 1] {
        assert_eq!(bench.run(&[COLOR_BLT, 0xf0 << 16 | 4, size, absent, 0], 1), Ok(1));
        assert_eq!(bench.run(&[SRC_COPY_BLT, 1 << 30 | 0xcc << 16 | 4, size, absent, 4, absent], 1), Ok(1));
    }
}

/// IVB-039: a missing page is a fault with the address of the pixel, of the destination or the source; the rows before it are
/// written, and the blit goes on where it stopped once the page is there.
#[test]
fn missing_pages_are_faults_at_the_pixel() {
    let mut bench = BlitBench::new(PAGES);
    let before = bench.fill_random((PAGES * PAGE) as usize, 8);
    let fault = |address, write| Fault { space: Space::Ggtt, address, kind: FaultType::Page, write };
    let to = 14 * PAGE;
    let mut blit = bench.decode(&copy([0, point(1024, 3)], to, 0)).unwrap().unwrap();
    assert_eq!(blit.step(&bench.memory(), Space::Ggtt, usize::MAX), Err(fault(PAGES * PAGE, true)));
    assert!(bench.read(to, 2 * PAGE as usize) == before[..2 * PAGE as usize]);
    let from = bench.run(&copy([0, point(1, 1)], 0, PAGES * PAGE + 0x123), usize::MAX);
    assert_eq!(from, Err(fault(PAGES * PAGE + 0x123, false)));
    // A page that the guest does not have.
    bench.ggtt.set(3, Pte(0x0fff_f001));
    assert_eq!(bench.run(&copy([0, point(1, 1)], 3 * PAGE + 8, 0), usize::MAX), Err(fault(3 * PAGE + 8, true)));
    let space = Space::Ppgtt(Directory { first: 0, loaded: 0 });
    let mut blit = bench.decode(&copy([0, point(1, 1)], 8, 4)).unwrap().unwrap();
    let result = blit.step(&bench.memory(), space, 1);
    assert!(matches!(result, Err(Fault { kind: FaultType::UnloadedDirectory, .. })), "{result:?}");
}

/// Addresses of pixels wrap at 32 bits, above the end and below the base.
#[test]
fn addresses_wrap_at_32_bits() {
    let mut bench = BlitBench::new(PAGES);
    let before = bench.fill_random((PAGES * PAGE) as usize, 9);
    // Row 1 of a surface at the end of the space is at the start of it.
    let base = 0u32.wrapping_sub(4096);
    bench.run(&copy([point(0, 1), point(1024, 3)], base, 4 * PAGE), usize::MAX).unwrap();
    assert!(bench.read(0, 8192) == before[4 * PAGE as usize..][..8192]);
    // The pixel left of and above the base.
    bench.run(&copy([point(-4, -1), point(0, 0)], 4096 + 16, 8 * PAGE), usize::MAX).unwrap();
    assert!(bench.read(0, 16) == before[8 * PAGE as usize..][..16]);
    let fault = bench.run(&copy([point(-4, -1), point(0, 0)], 16, 8 * PAGE), usize::MAX).unwrap_err();
    assert_eq!(fault.address, base);
}

/// The largest rectangles with the largest pitches, positive and negative, take many steps, of which each is bounded.
#[test]
fn the_largest_rectangles_take_bounded_steps() {
    let bench = &mut BlitBench::new(PAGES);
    (0..PAGES).for_each(|page| bench.ggtt.set(page, Pte(1)));
    // Of a pitch of 0, all rows are in the same pages.
    let corners = [point(-32768, -32768), point(32767, 32767)];
    let base = (PAGES / 2) * PAGE;
    let mut blit = bench
        .decode(&[XY_COLOR_BLT | WRITE, 0xf0 << 16, point(-32768, -32768), point(32767, 32767), base, 5])
        .unwrap()
        .unwrap();
    assert!(blit.cost() > 1 << 32);
    for _ in 0..100 {
        assert_eq!(blit.step(&bench.memory(), Space::Ggtt, 1 << 16), Ok(Progress::More));
    }
    for pitch in [0x7fff, 0x8000, 0xffff] {
        let tiled = [XY_SRC_COPY_BLT | WRITE | 1 << 11 | 1 << 15, 3 << 24 | 0x66 << 16 | pitch, corners[0], corners[1]];
        let tiled = [&tiled[..], &[u32::MAX, corners[0], pitch, u32::MAX]].concat();
        assert!(bench.run(&tiled, 1 << 16).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Arbitrary dwords are executed, skipped or end in a fault; none panics.
    #[test]
    fn any_dwords_end(
        commands in proptest::collection::vec((0..blitter::COMMANDS.len(), any::<[u32; 9]>(), any::<u16>(), -1isize..=1), 1..6),
        swctrl: u32,
        holes: u16,
    ) {
        let mut bench = BlitBench::new(PAGES);
        bench.swctrl = swctrl;
        (0..PAGES).filter(|page| holes >> page & 1 != 0).for_each(|page| bench.ggtt.set(page, Pte(0)));
        for (command, mut dwords, small, more) in commands {
            let row = &blitter::COMMANDS[command];
            let length = row.lengths.first().copied().unwrap_or(5);
            let length = if small & 0xf000 == 0 { length.saturating_add_signed(more).clamp(2, 9) } else { length };
            // Also plausible values: small addresses and coordinates.
            (0..9).filter(|n| small >> n & 1 != 0).for_each(|n| dwords[n] &= 0x003f_ffff);
            dwords[0] = 2 << 29 | u32::from(row.opcode) << 22 | dwords[0] & 0x3f_ff00 | (length as u32 - 2);
            let valid = row.action != Blt::Skipped && row.lengths.contains(&length);
            match bench.decode(&dwords[..length]) {
                Ok(Some(mut blit)) => {
                    prop_assert!(valid);
                    for _ in 0..20 {
                        if blit.step(&bench.memory(), Space::Ggtt, 20_000) != Ok(Progress::More) {
                            break;
                        }
                    }
                }
                Ok(None) => prop_assert!(matches!(row.action, Blt::Setup | Blt::SetupMono | Blt::SetupClip)),
                Err(BlitError::Unmodelled { .. }) => {}
                Err(_) => prop_assert!(!valid),
            }
        }
    }
}
