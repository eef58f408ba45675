// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Architecture registers and messages that compiled kernels do not show by their results, by kernels of a few lines.

mod common;

use arctic_eu::exec::FaultKind;
use arctic_eu::launch::Outcome;
use arctic_fidelity::proves;
use common::{END, dwords, run};

/// Address of element `id` of the buffer in r12 (8 lanes, 64 bits), id in r10; inline data is in r4.
const PROLOG: &str = "
(W)     mul (1|M0) r6.0<1>:ud r0.1<0;1,0>:ud r4.6<0;1,0>:uw
        add (8|M0) r10.0<1>:ud r1.0<1;1,0>:uw r6.0<0;1,0>:ud
        shl (8|M0) r16.0<1>:ud r10.0<1;1,0>:ud 2:uw
        addc (8|M0) r18.0<1>:ud r16.0<1;1,0>:ud r4.6<0;1,0>:ud {AccWrEn}
        add (8|M0) r19.0<1>:ud acc0.0<1;1,0>:ud r4.7<0;1,0>:ud
        mov (8|M0) r12.0<2>:ud r18.0<1;1,0>:ud
        mov (8|M0) r12.1<2>:ud r19.0<1;1,0>:ud
";
const STORE: &str = "        send.ugm (8|M0) null r12 r20:1 0x0 0x04000584\n";

/// r20 of each of the items of groups of `local`, after `body`.
fn results(body: &str, global: u32, local: u32) -> Vec<u32> {
    let text = format!("{PROLOG}{body}{STORE}{END}");
    let (report, buffer) = run(&text, 8, "", global, local, vec![0; 4 * global as usize]);
    assert_eq!((report.outcome, report.outside), (Outcome::Complete, 0), "{text}");
    dwords(&buffer)
}

#[test]
fn channel_enables_are_those_of_the_branch() {
    proves!(ISA_084, "ce has the lanes of the branch, shifted by the channel offset");
    let body = "
        mov (8|M0) r20.0<1>:ud 0x0:ud
        cmp (8|M0) (gt)f0.0 null<1>:ud r10.0<1;1,0>:ud 0x2:ud
(~f0.0) goto (8|M0) AFTER AFTER
(W)     mov (1|M0) r30.0<1>:ud ce<0;1,0>:ud
(W)     mov (1|M4) r30.1<1>:ud ce<0;1,0>:ud
        add (8|M0) r20.0<1>:ud r30.0<0;1,0>:ud r30.1<0;1,0>:ud
AFTER:
        join (8|M0) NEXT
NEXT:
";
    let sum = 0b1111_1000 + 0b1111;
    assert_eq!(results(body, 8, 8), [0, 0, 0, sum, sum, sum, sum, sum]);
}

/// ISA-061: the last thread of a group of 12 has four lanes. ISA-001: its number differs from that of the first.
#[test]
fn dispatch_mask_has_the_live_lanes_and_threads_have_numbers() {
    proves!(ISA_085, "sr0.2 has the live lanes, sr0.0 the thread's number in the bits that the item names");
    let masks = results("        mov (8|M0) r20.0<1>:ud sr0.2<0;1,0>:ud\n", 12, 12);
    assert_eq!(masks, [[0xff; 8].as_slice(), &[0xf; 4]].concat());
    let numbers = results("        mov (8|M0) r20.0<1>:ud sr0.0<0;1,0>:ud\n", 16, 16);
    assert!(numbers[0] != numbers[8] && numbers.iter().all(|number| number & !0x3fbf == 0), "{numbers:x?}");
}

/// oneDNN adds addresses of 64 bits in registers with destinations that do not begin at element 0, and takes the carry, or the low
/// dword of a product, from acc0 at the place of the destination.
#[test]
fn an_implicit_accumulator_begins_at_the_place_of_the_destination() {
    proves!(ISA_069, "carries, low dwords and results are at the destination's subregister in acc0");
    let body = "
(W)     mov (8|M0) acc0.0<1>:ud 0x55:ud
(W)     mov (8|M0) r30.0<1>:ud 0xFFFFFFF0:ud
(W)     addc (1|M0) r31.6<1>:ud r30.0<0;1,0>:ud 0x20:ud {AccWrEn}
(W)     mov (1|M0) r32.0<1>:ud acc0.6<0;1,0>:ud
(W)     mul (2|M0) acc0.2<1>:ud r30.0<1;1,0>:ud 0x10:uw
(W)     mach (2|M0) r33.2<1>:ud r30.0<1;1,0>:ud 0x10:ud {AccWrEn}
(W)     mov (2|M0) r32.1<1>:ud acc0.2<1;1,0>:ud
(W)     add (1|M0) r34.3<1>:ud r30.0<0;1,0>:ud 0x1:ud {AccWrEn}
(W)     mov (1|M0) r32.3<1>:ud acc0.3<0;1,0>:ud
(W)     mov (1|M0) r32.4<1>:ud r33.3<0;1,0>:ud
(W)     mov (1|M0) r32.5<1>:ud acc0.0<0;1,0>:ud
(W)     mov (2|M0) r32.6<1>:ud acc0.4<1;1,0>:ud
        mov (8|M0) r20.0<1>:ud r32.0<1;1,0>:ud
";
    // 0xfffffff0 * 16 is 0xf_ffff_ff00; the store of the group's other lanes has the same dword in each.
    let found = results(body, 8, 8);
    assert_eq!(found, [1, 0xffff_ff00, 0xffff_ff00, 0xffff_fff1, 0xf, 0x55, 0x55, 0x55]);
}

/// oneDNN multiplies a dword by a word in two steps, of which the second one has a constant in place of the high word; IGC has
/// the same dword in both.
#[test]
fn products_of_two_steps_add_the_accumulator() {
    proves!(ISA_120, "mach adds the product of src0 and src1's high word to the 64 bits that mul has left");
    proves!(ISA_082, "accumulators keep bits 63:32 of a product");
    let body = "
(W)     mov (8|M0) r30.0<1>:ud 0xFFFFFFF0:ud
(W)     mov (8|M0) r31.0<1>:d -3:w
(W)     mov (8|M0) r32.0<1>:ud 0x89ABCDEF:ud
(W)     mul (1|M0) acc0.2<1>:ud r30.0<0;1,0>:ud 0xFFFF:uw
(W)     mach (1|M0) r33.2<1>:ud r30.0<0;1,0>:ud 0:w {AccWrEn}
(W)     mov (1|M0) r20.0<1>:ud acc0.2<0;1,0>:ud
(W)     mov (1|M0) r20.1<1>:ud r33.2<0;1,0>:ud
(W)     mul (8|M0) acc0.0<1>:d r31.0<1;1,0>:d r32.0<2;1,0>:uw
(W)     mach (8|M0) r34.0<1>:d r31.0<1;1,0>:d r32.0<1;1,0>:ud {AccWrEn}
(W)     mov (1|M0) r20.2<1>:ud acc0.5<0;1,0>:ud
(W)     mov (1|M0) r20.3<1>:ud r34.5<0;1,0>:ud
(W)     mul (8|M0) acc0.0<1>:ud r30.0<1;1,0>:ud r32.0<16;8,2>:uw
(W)     mach (8|M0) r35.0<1>:ud r30.0<1;1,0>:ud r32.0<1;1,0>:ud
(W)     mov (1|M0) r20.4<1>:ud r35.7<0;1,0>:ud
(W)     mov (1|M0) acc0.0<1>:d -5:w
(W)     mach (1|M0) r36.0<1>:d r31.0<0;1,0>:d 0x10000:d {AccWrEn}
(W)     mov (1|M0) r20.5<1>:ud acc0.0<0;1,0>:ud
(W)     mov (1|M0) r20.6<1>:ud r36.0<0;1,0>:ud
(W)     addc (1|M0) r37.0<1>:ud r30.0<0;1,0>:ud 0x20:ud {AccWrEn}
(W)     mach (1|M0) r37.0<1>:ud r30.0<0;1,0>:ud 0:w {AccWrEn}
(W)     add (1|M0) r20.7<1>:ud acc0.0<0;1,0>:ud r37.0<0;1,0>:ud
";
    let (word, mixed) = (0xffff_fff0u64 * 0xffff, (-3i64 * 0x89ab_cdef).cast_unsigned());
    let low = 0xffff_fff0u32.wrapping_mul(0x89ab_cdef);
    let signed = (-5i64 - (3 << 16)).cast_unsigned();
    let [word, mixed, signed] = [word, mixed, signed].map(|wide| [wide as u32, (wide >> 32) as u32]);
    let found = results(body, 8, 8);
    assert_eq!(found, [word[0], word[1], mixed[0], mixed[1], low, signed[0], signed[1], 1]);
}

/// oneDNN's kernels of 16 lanes, which are dispatched with eight, enable the others so.
#[test]
fn writes_of_the_dispatch_mask_enable_channels() {
    proves!(ISA_085, "a write of sr0.2 sets the dispatch mask");
    let body = "
(W)     mov (1|M0) sr0.2<1>:ud 0xFFFF:ud
        mov (16|M0) r30.0<1>:ud 7:uw
        mov (8|M0) r20.0<1>:ud r31.0<1;1,0>:ud
";
    assert_eq!(results(body, 8, 8), [7; 8]);
}

/// ISA-088: the timestamp does not go back; the instruction pointer is that of the instruction.
#[test]
fn timestamp_grows_and_ip_is_the_address() {
    let body = "
(W)     mov (1|M0) r30.0<1>:ud tm0.0<0;1,0>:ud
        nop
(W)     mov (1|M0) r30.1<1>:ud tm0.0<0;1,0>:ud
        add (8|M0) r20.0<1>:d r30.1<0;1,0>:d -r30.0<0;1,0>:d
";
    assert!(results(body, 8, 8).iter().all(|ticks| (1..1000).contains(ticks)));
    let body = "
(W)     mov (1|M0) r30.0<1>:ud ip<0;1,0>:ud
(W)     mov (1|M0) r30.1<1>:ud ip<0;1,0>:ud
        add (8|M0) r20.0<1>:d r30.1<0;1,0>:d -r30.0<0;1,0>:d
";
    assert_eq!(results(body, 8, 8), [16; 8]);
}

/// ISA-081: null reads 0 and drops what is written; the condition is that of the result.
#[test]
fn null_reads_zero_and_conditions_of_it_are_written() {
    let body = "
        add (8|M0) (gt)f0.0 null<1>:d r10.0<1;1,0>:d -3:w
(f0.0)  sel (8|M0) r20.0<1>:ud null<0;1,0>:ud 7:uw
";
    assert_eq!(results(body, 8, 8), [7, 7, 7, 7, 0, 0, 0, 0]);
}

#[test]
fn sendc_is_send_and_quads_move_the_components_of_their_mask() {
    proves!(ISA_204, "sendc is executed as send");
    proves!(ISA_216, "a quad message moves the components of its mask, one register each");
    let text = format!(
        "{PROLOG}
(W)     mov (8|M0) r12.0<2>:ud r4.6<0;1,0>:ud
(W)     mov (8|M0) r12.1<2>:ud r4.7<0;1,0>:ud
        shl (8|M0) r16.0<1>:ud r10.0<1;1,0>:ud 4:uw
        add (8|M0) r12.0<2>:ud r12.0<2;1,0>:ud r16.0<1;1,0>:ud
        sendc.ugm (8|M0) r20 r12 null:0 0x0 0x0430B582
        add (8|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x100:uw
        add (8|M0) r21.0<1>:ud r21.0<1;1,0>:ud 0x200:uw
        send.ugm (8|M0) null r12 r20:2 0x0 0x0400A586
{END}"
    );
    let buffer: Vec<u8> = (0..32u32).flat_map(|index| index.to_le_bytes()).collect();
    let (report, after) = run(&text, 8, "", 8, 8, buffer);
    assert_eq!((report.outcome, report.outside), (Outcome::Complete, 0), "{text}");
    for (index, value) in (0..).zip(dwords(&after)) {
        // Components 0, 1 and 3 are loaded; the first two go to components 1 and 3.
        let first = index & !3;
        let expected = match index & 3 {
            1 => first + 0x100,
            3 => first + 1 + 0x200,
            _ => index,
        };
        assert_eq!(value, expected, "{index}");
    }
}

/// ISA-214: elements of one and two bytes are zero-extended, or the upper half of the register; ISA-217: at any address.
#[test]
fn narrow_elements_are_extended_and_addresses_need_no_alignment() {
    let buffer: Vec<u8> = (0..64u8).map(|byte| byte.wrapping_mul(37) | 0x80).collect();
    let at = |index: usize, size: usize| {
        (0..size).fold(0, |value, byte| value | u32::from(buffer[index + byte]) << (8 * byte))
    };
    for (descriptor, size, shift) in
        [(0x0410_0980u32, 1, 0), (0x0410_0b80, 2, 0), (0x0410_0d80, 2, 16), (0x0410_0580, 4, 0)]
    {
        for offset in 0..8 {
            let text = format!(
                "{PROLOG}
        add (8|M0) r14.0<2>:ud r12.0<2;1,0>:ud {offset}:uw
        mov (8|M0) r14.1<2>:ud r12.1<2;1,0>:ud
        send.ugm (8|M0) r20 r14 null:0 0x0 {descriptor:#x}
{STORE}{END}"
            );
            let (report, after) = run(&text, 8, "", 8, 8, buffer.clone());
            assert_eq!((report.outcome, report.outside), (Outcome::Complete, 0), "{text}");
            for (index, value) in dwords(&after)[..8].iter().enumerate() {
                assert_eq!(*value, at(index * 4 + offset, size) << shift, "{descriptor:#x} {offset} {index}");
            }
        }
    }
}

/// ISA-240, ISA-150: what is not supported ends in a fault that says what it is.
#[test]
fn messages_and_functions_of_other_units_are_faults() {
    proves!(ISA_201, "messages to units that the model does not have are faults");
    let fault = |line: &str| {
        let (report, _) = run(&format!("{line}\n{END}"), 8, "", 8, 8, vec![0; 64]);
        match report.outcome {
            Outcome::Fault(kind, _) => kind,
            other => panic!("{line}: {other:?}"),
        }
    };
    for line in [
        "(W) send.gtwy (1|M0) null r2 null:0 0x0 0x02000001",
        "send.urb (8|M0) null r2 null:0 0x0 0x02000007",
        "send.rc (8|M0) null r2 null:0 0x0 0x0200000C",
        "send.pixi (8|M0) r10 r2 null:0 0x0 0x02100000",
        "send.btd (8|M0) null r2 null:0 0x0 0x02000000",
        "send.dcro (8|M0) r10 r2 null:0 0x0 0x02100000",
        "send.tgm (8|M0) r10 r2 null:0 0x0 0x04180580",
    ] {
        assert_eq!(fault(line), FaultKind::Message, "{line}");
    }
    let madm = "madm (8|M0) r10.0<1>:f r2.0<1;0>:f r4.0<1;0>:f r6.0<1>:f";
    assert_eq!(fault(madm), FaultKind::Unsupported);
}

/// Kind and place of the fault of a text.
fn fault(text: &str) -> (FaultKind, u32) {
    let (report, _) = run(&format!("{text}\n{END}"), 8, "      barrier_count: 2\n", 8, 8, vec![0; 64]);
    match report.outcome {
        Outcome::Fault(kind, at) => (kind, at.instruction),
        other => panic!("{text}: {other:?}"),
    }
}

/// ISA-210 to ISA-228: forms of messages that are not executed as what they are end in a fault.
#[test]
fn forms_of_messages_that_are_not_supported_are_faults() {
    for (line, what) in [
        ("send.ugm (8|M0) r20 r12 null:0 0x0 0x04100581", "strided load"),
        ("send.ugm (8|M0) null r12 r20:1 0x0 0x04000585", "strided store"),
        ("send.ugm (8|M0) r20 r12 null:0 0x0 0x0410D580", "block of several lanes"),
        ("(W) send.ugm (1|M0) r20 r12 null:0 0x0 0x0210C980", "block of narrow elements"),
        ("send.ugm (8|M0) r20 r12 null:0 0x0 0x04100582", "quad without components"),
        ("send.ugm (8|M0) null r12 r20:1 0x0 0x0400098C", "atomic operation on bytes"),
        ("send.ugm (8|M0) null r12 r20:1 0x0 0x0400038C", "atomic operation on packed words"),
        ("send.ugm (8|M0) null r12 r20:2 0x0 0x04000793", "atomic operation on 64-bit floats"),
        ("(W) send.ugm (1|M0) null r12 r20:1 0x0 0x0200858C", "atomic operation on a block"),
        ("send.slm (8|M0) r20 r12 null:0 0x0 0x22100500", "surface of local memory"),
        ("send.dc0 (8|M0) r20 r12 null:0 0x0 0x02110CFD", "scattered elements of eight bytes in a dword"),
        ("send.dc0 (8|M0) r20 r12 null:0 0x0 0x024846FD", "block of an unknown size"),
        ("send.dc0 (8|M0) r20 r12 null:0 0x0 0x024864FD", "block of 16 hwords"),
        ("send.dc1 (8|M0) r20 r12 null:0 0x0 0x024D10FF", "A64 dual block"),
        ("send.dc1 (8|M0) r20 r12 null:0 0x0 0x024D1CFF", "A64 block of 16 hwords"),
        ("send.dc1 (8|M0) r20 r12 null:0 0x0 0x024140FC", "typed slots of 4 x 2"),
        ("send.dc1 (8|M0) r20 r12 null:0 0x0 0x024160FC", "typed upper slots of eight lanes"),
        ("send.dc1 (8|M0) r20 r12 null:0 0x0 0x02190100", "media block with another distance of rows"),
        ("(W) sync.host null", "wait for the host"),
    ] {
        let expected = if line.contains("sync") { FaultKind::Unsupported } else { FaultKind::Message };
        assert_eq!(fault(&format!("nop\n{line}")), (expected, 1), "{what}");
    }
    for (line, what) in [
        ("send.ugm (8|M0) null r12 null:0 0x0 0x04000584", "store without data"),
        ("send.ugm (8|M0) null r12 null:0 0x0 0x0400058C", "addition without a summand"),
        ("send.dc0 (8|M0) r20 r12 null:0 0x0 0x024044FD", "block without a header"),
        ("send.dc0 (8|M0) r20 r12 null:0 0x0 0x02140000", "scratch block without a header"),
        ("send.dc1 (8|M0) r20 r12 null:0 0x0 0x024504FF", "A64 block without a header"),
    ] {
        assert_eq!(fault(line), (FaultKind::Length, 0), "{what}");
    }
    let index = "send.ugm (8|M0) r20 r12 null:0 0xFE000000 0x62100500";
    assert_eq!(fault(index), (FaultKind::Surface, 0), "local memory as an entry of the binding table");
}

/// ISA-243: a barrier of another number, with some threads that only arrive, or a wait for one, ends in a fault at its place.
#[test]
fn named_barriers_are_faults() {
    let arrive = |dword: u32| {
        let setup = format!("(W) mov (8|M0) r50.0<1>:ud 0x0:ud\n(W) mov (1|M0) r50.2<1>:ud {dword:#x}:ud");
        format!("{setup}\n(W) send.gtwy (1|M0) null r50 null:0 0x0 0x02000004")
    };
    for dword in [0x0101_0001, 0x0101_001f, 0x0101_4000, 0x0101_8000, 0x0102_0000, 0x0201_0000] {
        assert_eq!(fault(&arrive(dword)), (FaultKind::Barrier, 2), "{dword:#x}");
    }
    assert_eq!(fault("(W) sync.bar ($1)"), (FaultKind::Unsupported, 0));
    let (report, _) = run(&format!("{}\n(W) sync.bar null\n{END}", arrive(0x0101_0000)), 8, "", 8, 8, vec![0; 64]);
    assert_eq!(report.outcome, Outcome::Complete);
}

/// ISA-227: blocks at 64-bit addresses, of owords and of hwords.
#[test]
fn blocks_at_64_bit_addresses_are_of_owords_or_hwords() {
    let buffer: Vec<u8> = (0..96u8).map(|byte| byte ^ 0x55).collect();
    // Descriptor, bytes, and the byte in the register at which they begin.
    for (descriptor, length, start) in [
        (0x021D_00FFu32, 16, 0),
        (0x021D_01FF, 16, 16),
        (0x021D_02FF, 32, 0),
        (0x021D_0AFF, 32, 0),
        (0x021D_18FF, 32, 0),
    ] {
        let text = format!(
            "
(W)     mov (8|M0) r30.0<1>:ud 0x0:ud
(W)     mov (8|M0) r20.0<1>:ud 0x0:ud
(W)     mov (2|M0) r30.0<1>:ud r4.6<1;1,0>:ud
(W)     add (1|M0) r30.0<1>:ud r30.0<0;1,0>:ud 0x20:uw
(W)     send.dc1 (8|M0) r20 r30 null:0 0x0 {descriptor:#x}
{PROLOG}{STORE}{END}"
        );
        let (report, after) = run(&text, 8, "", 8, 8, buffer.clone());
        assert_eq!((report.outcome, report.outside), (Outcome::Complete, 0), "{text}");
        let mut expected = [0; 32];
        expected[start..start + length].copy_from_slice(&buffer[32..32 + length]);
        assert_eq!(after[..32], expected, "{descriptor:#x}");
    }
}

/// ISA-121: the accumulator is read in the destination's type, and added in that of the sources.
#[test]
fn mac_adds_an_accumulator_of_another_type_by_its_value() {
    for (ty, written, read) in [
        ("hf", "r22.0<2>:hf", "r22.0<2;1,0>:hf"),
        ("bf", "r22.0<2>:bf", "r22.0<2;1,0>:bf"),
        ("d", "r22.0<1>:d", "r22.0<1;1,0>:d"),
    ] {
        let body = format!(
            "
        mov (8|M0) r24.0<1>:f 9.0:f
        mov (8|M0) r30.0<1>:f 3.0:f
        mov (8|M0) r31.0<1>:f 0.75:f
        mov (8|M0) acc0.0<1>:{ty} r24.0<1;1,0>:f
        mac (8|M0) {written} r30.0<1;1,0>:f r31.0<1;1,0>:f
        mov (8|M0) r20.0<1>:f {read}
"
        );
        let expected: f32 = if ty == "d" { 11.0 } else { 11.25 };
        assert_eq!(results(&body, 8, 8), [expected.to_bits(); 8], "{ty}");
    }
}
