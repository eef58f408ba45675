// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Malformed commands that no driver sends.

use arctic_base::blitter::ranges::TranslatedRanges;
use proptest::prelude::*;

use super::*;
use crate::blitter::BlitError;
use crate::command::blt::COMMANDS;
use crate::memory::{Access, FaultReason, Gam};

fn copy(corners: [u32; 2], to: u64, from: u64) -> [u32; 10] {
    [
        2 << 29 | 0x42 << 22 | 8,
        3 << 24 | 4096,
        corners[0],
        corners[1],
        low(to),
        high(to),
        0,
        4096,
        low(from),
        high(from),
    ]
}

/// An empty or inverted rectangle is a no-op and accesses no memory.
#[test]
fn empty_rectangles() {
    proves!(BLT_002, "no memory is accessed");
    let mut bench = BlitBench::new();
    for (first, second) in [
        (point(0, 0), point(0, 0)),
        (point(5, 5), point(5, 9)),
        (point(9, 0), point(3, 8)),
        (point(32767, 32767), point(-32768, -32768)),
    ] {
        assert_eq!(bench.run(&copy([first, second], HOLE, HOLE), usize::MAX), 1);
    }
}

/// A fault reports the address. Once the page is mapped, the blit resumes where it stopped.
#[test]
fn blit_resumes_after_a_fault() {
    proves!([BLT_040, BLT_042], "the completed part is not repeated");
    let mut bench = BlitBench::new();
    let data = bench.fill_random(0, MIB, 17);
    let mut blit = Blit::decode(&copy([0, point(1024, 256)], 5 * MIB, 0)).unwrap();
    let fault = bench.step(&mut blit, SPACE, usize::MAX).unwrap_err();
    let wanted =
        Fault { space: SPACE, address: HOLE, access: Access::Write, reason: FaultReason::NotPresent { level: 0 } };
    assert_eq!(fault, wanted);
    for page in 128..256 {
        bench.entry(0x6000, 256 + page, 0x803 | (FRAMES[1] + page * 4096));
    }
    // The completed part must not be repeated, because its source may have been overwritten.
    bench.write(0, &[0; 4096]);
    assert_eq!(bench.step(&mut blit, SPACE, usize::MAX), Ok(Progress::Done));
    assert!(bench.read(5 * MIB, MIB) == data);
}

/// A copy from or to guest memory that the VMM does not map faults with the access type of that operand.
#[test]
fn unmapped_guest_memory() {
    proves!(BLT_040, "address and access of each operand");
    let mut bench = BlitBench::new();
    bench.entry(0x5000, 0, 0x3 | (2 * MIB));
    for (to, from, access) in [(2 * MIB, 0, Access::Write), (0, 2 * MIB, Access::Read)] {
        let mut blit = Blit::decode(&copy([0, point(1024, 1)], to, from)).unwrap();
        let fault = bench.step(&mut blit, SPACE, usize::MAX).unwrap_err();
        assert_eq!((fault.address, fault.access, fault.reason), (2 * MIB, access, FaultReason::NotMapped));
    }
}

/// Guest memory that ends inside a page can be accessed up to its end. An access beyond it faults at the end, through
/// ranges that include this page already and through ranges that do not.
#[test]
fn guest_memory_that_ends_inside_a_page() {
    proves!(BLT_041, "translated ranges, and a copy, fault at the end of the mapping");
    const LEN: u64 = MIB - 0x800;
    const END: u64 = MAPPED + LEN;
    let mut bench = BlitBench::with_mapped(LEN);
    let views = bench.memory.views();
    let mut gam = bench.memory.gam(Function::PF, &views, &mut bench.tlb);
    let fault = Fault { space: SPACE, address: END, access: Access::Write, reason: FaultReason::NotMapped };
    let mut moved = TranslatedRanges::<Gam<'_>>::new(SPACE, Access::Write, false);
    assert_eq!(moved.write(&mut gam, END - 64, &[1; 64]), Ok(()));
    assert_eq!(moved.write(&mut gam, END - 32, &[2; 64]), Err(fault));
    assert_eq!(TranslatedRanges::<Gam<'_>>::new(SPACE, Access::Write, false).write(&mut gam, END, &[3; 8]), Err(fault));
    let mut data = [0; 64];
    gam.read(SPACE, END - 64, &mut data).unwrap();
    assert_eq!((&data[..32], &data[32..]), (&[1; 32][..], &[2; 32][..]));
    let mut blit = Blit::decode(&copy([0, point(16, 1)], END - 32, 0)).unwrap();
    assert_eq!(blit.step(&mut gam, SPACE, usize::MAX), Err(fault));
}

/// Unmodelled features, reserved values and short commands are rejected, each with its own error.
#[test]
fn refusals() {
    proves!(BLT_009, "each has its error");
    assert_eq!(Blit::decode(&[]).unwrap_err(), BlitError::Unknown(0));
    assert!(matches!(Blit::decode(&[2 << 29 | 0x42 << 22 | 8; 9]), Err(BlitError::Length { dwords: 9, .. })));
    // As long as its header says, which is no length of the command.
    assert!(matches!(Blit::decode(&[2 << 29 | 0x42 << 22 | 7; 9]), Err(BlitError::Length { dwords: 9, .. })));
    let mut block = [0u32; 22];
    block[0] = 2 << 29 | 0x41 << 22 | 2 << 19 | 20;
    assert!(Blit::decode(&block).is_ok());
    for (dword, value) in [(0, block[0] | 1 << 9), (17, 1), (20, 1)] {
        let mut other = block;
        other[dword] = value;
        assert!(matches!(Blit::decode(&other), Err(BlitError::Unmodelled { .. })), "dword {dword}");
    }
    for header in [block[0] | 4 << 19, block[0] | 3 << 12] {
        let mut other = block;
        other[0] = header;
        assert!(matches!(Blit::decode(&other), Err(BlitError::Reserved { .. })), "{header:#x}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Arbitrary dwords are decoded or rejected, and no blit panics.
    #[test]
    fn any_dwords(
        command in 0..COMMANDS.len(),
        length in 0usize..2,
        mut dwords: [u32; 22],
        small in proptest::collection::vec(0usize..22, 0..12),
        swctrl: u32,
    ) {
        let command = &COMMANDS[command];
        let length = command.lengths[length % command.lengths.len()];
        // Also try plausible values: upper halves of addresses, coordinates.
        small.iter().for_each(|index| dwords[*index] &= 0x3f_00ff);
        dwords[0] = 2 << 29 | u32::from(command.opcode) << 22 | dwords[0] & 0x3f_ff00 | (length as u32 - 2);
        let mut bench = BlitBench::new();
        for space in [SPACE, Space::Ggtt, Space::Ppgtt(u64::MAX)] {
            let Ok(mut blit) = Blit::decode_with(&dwords[..length], swctrl) else { return Ok(()) };
            for _ in 0..20 {
                if bench.step(&mut blit, space, 20_000) != Ok(Progress::More) {
                    break;
                }
            }
        }
    }
}
