// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages of kernels: ways of addressing, shared local memory, barriers, the gateway, typed writes.
#![allow(non_contiguous_range_endpoints, reason = "the lane between two ranges is off")]

use super::kernels::*;
use super::threads::dump;
use super::*;

/// Base addresses, offsets of [`DATA`], and what lies there.
const GENERAL: u64 = DATA + 0x2_0000;
pub(super) const STATES: u64 = DATA + 0x3_0000;
const BINDLESS: u64 = DATA + 0x3_1000;
pub(super) const POOL: u64 = DATA + 0x3_2000;
const VALUE: u64 = DATA + 0x2_0100;

/// The state of a buffer of bytes, as NEO writes it.
pub(super) fn buffer(at: u64, bytes: u32) -> [u32; 16] {
    let (last, address) = (bytes - 1, VA + at);
    let mut words = [0; 16];
    (words[0], words[2]) = (0x87fd_c000, last & 0x7f | (last >> 7) << 16);
    (words[8], words[9]) = (address as u32, (address >> 32) as u32 | 0xffff_0000);
    words
}

/// Loads the dword at [`VALUE`] in eight ways, into dword 0 of r20 to r27.
const LOADS: &str = "
(W)     mov (2|M0) r10.0<1>:ud r1.2<1;1,0>:ud
(W)     send.ugm (1|M0) r20 r10 null:0 0x0 0x02100580
(W)     mov (1|M0) r11.0<1>:ud 0x100:ud
(W)     send.ugm (1|M0) r21 r11 null:0 0xff000000 0x62100500
(W)     mov (1|M0) r12.0<1>:ud 0x10:ud
(W)     send.ugm (1|M0) r22 r12 null:0 0x3000000 0x62100500
(W)     mov (1|M0) a0.2<1>:ud 0x80:ud
(W)     send.ugm (1|M0) r23 r12 null:0 a0.2 0x22100500 {ExBSO}
(W)     mov (1|M0) a0.2<1>:ud 0x1080:ud
(W)     send.ugm (1|M0) r24 r12 null:0 a0.2 0x42100500 {ExBSO}
(W)     mov (1|M0) a0.2<1>:ud 0x42000:ud
(W)     send.ugm (1|M0) r25 r12 null:0 a0.2 0x42100500
(W)     mov (1|M0) r13.0<1>:ud 0x20:ud
(W)     send.slm (1|M0) null r13 r20:1 0x0 0x02000504
(W)     send.slm (1|M0) r26 r13 null:0 0x0 0x02100500
(W)     mov (8|M0) r127.0<1>:ud 0x0:ud
(W)     mov (1|M0) r127.2<1>:ud 0x100:ud
(W)     send.dc0 (8|M0) r27 r127 null:0 0x0 0x021842FD
";

/// STATE_BASE_ADDRESS with bases in [`DATA`], and the pool of binding tables.
pub(super) fn bases() -> Vec<u32> {
    let mut words = vec![0; 22];
    words[0] = 0x6101_0014;
    for (at, base) in [(1, GENERAL), (4, STATES), (10, 0), (16, BINDLESS)] {
        let address = VA + base;
        (words[at], words[at + 1]) = (address as u32 | 1, (address >> 32) as u32 | 0xffff_0000);
    }
    let pool = VA + POOL;
    words.extend([0x7919_0002, pool as u32, (pool >> 32) as u32, 0x1000]);
    words
}

#[test]
fn a_dword_is_loaded_in_each_way() {
    proves!(
        EU_040,
        "flat with upper bits, stateless by index 255 and 253, by an entry of the binding table, bindless, by a state from \
        the surface state base, and through shared local memory: the same dword"
    );
    proves!(EU_041, "the offset of a state in a0 is one of bytes with ExBSO, and of 64 bytes in bits 31:12 without");
    proves!(EU_045, "loads and stores of LSC and an aligned block read");
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.put(VALUE, 0xfeed_c0de);
    bench.write(POOL + 0x40, &[0, 0, 0, 0x2000]);
    // Each state has a base of its own; all messages load at offset 0x10.
    bench.write(STATES + 0x2000, &buffer(VALUE - 0x10, 0x14));
    bench.write(STATES + 0x1080, &buffer(VALUE - 0x10, 0x14));
    bench.write(BINDLESS + 0x80, &buffer(VALUE - 0x10, 0x14));
    let [low, high] = target(DATA);
    let [value_low, value_high] = target(VALUE);
    let mut words = walker(KERNELS, 1, &[low, high, value_low, value_high | 0xffff_0000]);
    (words[22], words[23]) = (0x40, 1 << 16 | 1);
    assert_eq!(bench.execute(&format!("{LOADS}{}", dump(20, 1)), &bases(), &words), Outcome::Complete);
    let found: [u32; 64] = bench.dumped([0; 3], 0);
    for way in 0..8 {
        assert_eq!(found[way * 8], 0xfeed_c0de, "{way}");
    }
    let executed = bench.engine.counters().walkers.executed;
    assert_eq!((executed.faults, executed.outside), (0, 0));
}

#[test]
fn pools_and_surfaces_have_different_bases() {
    proves!(
        EU_007,
        "the pointer of the descriptor is relative to the pool, and bits 31:6 of the entry to the surface state base; \
        without a pool, the pointer is relative to the surface state base"
    );
    for has_pool in [true, false] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        let table = if has_pool { POOL } else { STATES };
        bench.write(table + 0x40, &[0x3000 | 0x2a]);
        bench.write(STATES + 0x3000, &buffer(DATA + 0x100, 64));
        let mut words = walker(KERNELS, 1, &target(DATA));
        words[22] = 0x40;
        let text = "(W) mov (1|M0) r10.0<1>:ud 0x5:ud\n(W) mov (1|M0) r12.0<1>:ud 0x8:ud\n\
            (W) send.ugm (1|M0) null r12 r10:1 0x0 0x62000504\n";
        let state = bases();
        let commands = if has_pool { &state[..] } else { &state[..22] };
        assert_eq!(bench.execute(text, commands, &words), Outcome::Complete);
        assert_eq!(bench.get(DATA + 0x108), 5, "{has_pool}");
    }
}

#[test]
fn a_vector_add_beyond_its_buffer_changes_nothing_behind() {
    proves!(
        EU_044,
        "the vector add of 1,000 floats on a buffer of 500: elements behind it keep their bytes, and a is 0 where its \
        buffer has ended"
    );
    let (_, walker, indirect) = VECTORS[0];
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.vector_add(indirect);
    let states = place(0x80ff_ffa0_1000);
    // Bytes less 1 of a and of c: 1,200 and 2,000.
    bench.put(states + 8, 1199 & 0x7f | 1199 >> 7 << 16);
    bench.put(states + 0x80 + 8, 1999 & 0x7f | 1999 >> 7 << 16);
    let context = bench.walker_context(0, walker);
    assert_eq!(bench.submit(context), Outcome::Complete);
    for i in 0..1024u32 {
        let expected = match i {
            0..300 => (3.0 * i as f32 + 1.0).to_bits(),
            300..500 => (2.0 * i as f32 + 1.0).to_bits(),
            _ => 0x5555_5555,
        };
        assert_eq!(bench.get(place(C) + 4 * u64::from(i)), expected, "element {i}");
    }
}

/// Stores, adds to and loads a dword of shared local memory at r1.2, into r20 (the value before the addition), r21 and r22 (the dword
/// behind).
const SLM_ACCESSES: &str = "
(W)     mov (1|M0) r10.0<1>:ud r1.2<0;1,0>:ud
(W)     mov (1|M0) r11.0<1>:ud 0x11:ud
(W)     send.slm (1|M0) null r10 r11:1 0x0 0x02000504
(W)     mov (1|M0) r11.0<1>:ud 0x22:ud
(W)     send.slm (1|M0) r20 r10 r11:1 0x0 0x0210050C
(W)     send.slm (1|M0) r21 r10 null:0 0x0 0x02100500
(W)     add (1|M0) r12.0<1>:ud r10.0<0;1,0>:ud 0x4:uw
(W)     send.slm (1|M0) null r12 r11:1 0x0 0x02000504
(W)     send.slm (1|M0) r22 r12 null:0 0x0 0x02100500
";

#[test]
fn shared_local_memory_has_the_size_of_its_code() {
    proves!(
        [EU_050, EU_051],
        "for each code, the last dword is stored, added to and loaded, and the next one reads 0; codes from 8 on are \
        refused"
    );
    proves!(EU_044, "accesses behind the end of shared local memory read 0 and store nothing");
    let text = format!("{SLM_ACCESSES}{}", dump(20, 1));
    let [low, high] = target(DATA);
    for code in 1..8 {
        let mut bench = EngineBench::new(EngineClass::Compute);
        let bytes = 512 << code;
        for (place, behind) in [(bytes - 4, 0), (0, 0x22), (bytes / 2, 0x22)] {
            let mut words = walker(KERNELS, 1, &[low, high, place]);
            words[23] = code << 16 | 1;
            assert_eq!(bench.execute(&text, &[], &words), Outcome::Complete);
            let found: [u32; 24] = bench.dumped([0; 3], 0);
            assert_eq!([found[0], found[8], found[16]], [0x11, 0x33, behind], "{code} {place:#x}");
        }
        assert_eq!(bench.engine.counters().walkers.executed.outside, 2);
    }
    for code in 8..32 {
        let mut words = walker(KERNELS, 1, &[low, high, 0]);
        words[23] = code << 16 | 1;
        let outcome = EngineBench::new(EngineClass::Compute).execute(&text, &[], &words);
        assert!(matches!(outcome, Outcome::Halted(Halt::IllegalCommand { .. })), "{code}");
    }
}

#[test]
fn dwords_of_shared_local_memory_are_apart() {
    proves!(EU_051, "two dwords beside each other are stored and added to separately, at any offset of 4 bytes");
    let text = "
(W)     mov (1|M0) r10.0<1>:ud r1.2<0;1,0>:ud
(W)     add (1|M0) r12.0<1>:ud r10.0<0;1,0>:ud 0x4:uw
(W)     mov (1|M0) r11.0<1>:ud 0x11:ud
(W)     mov (1|M0) r13.0<1>:ud 0x44:ud
(W)     send.slm (1|M0) null r10 r11:1 0x0 0x02000504
(W)     send.slm (1|M0) null r12 r13:1 0x0 0x02000504
(W)     send.slm (1|M0) null r10 r11:1 0x0 0x0200050C
(W)     send.slm (1|M0) null r12 r13:1 0x0 0x0200050C
(W)     send.slm (1|M0) r20 r10 null:0 0x0 0x02100500
(W)     send.slm (1|M0) r21 r12 null:0 0x0 0x02100500
";
    let [low, high] = target(DATA);
    for place in [0, 4, 12, 0x3f8] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        let mut words = walker(KERNELS, 1, &[low, high, place]);
        words[23] = 1 << 16 | 1;
        assert_eq!(bench.execute(&format!("{text}{}", dump(20, 1)), &[], &words), Outcome::Complete);
        let found: [u32; 16] = bench.dumped([0; 3], 0);
        assert_eq!((found[0], found[8]), (0x22, 0x88), "{place:#x}");
    }
}

/// Signals the barrier of the group.
const SIGNAL: &str = "
(W)     mov (8|M0) r12.0<1>:ud 0x0:ud
(W)     mov (1|M0) r12.10<1>:ub r0.11<0;1,0>:ub
(W)     mov (1|M0) r12.11<1>:ub r0.11<0;1,0>:ub
(W)     send.gtwy (1|M0) null r12 null:0 0x0 0x02000004
";
const WAIT: &str = "(W) sync.bar null\n";

/// In four rounds each thread adds its number and 1 to a dword of shared local memory, and reads it behind a barrier into r20 to
/// r23. `between` is executed between signal and wait.
fn sums(between: &str) -> String {
    let mut text = String::from(
        "(W) mov (1|M0) r10.0<1>:ud 0x0:ud\n(W) and (1|M0) r11.0<1>:ud r0.2<0;1,0>:ud 0xff:ud\n\
        (W) add (1|M0) r11.0<1>:ud r11.0<0;1,0>:ud 0x1:uw\n(W) mov (8|M0) r24.0<1>:ud 0x0:ud\n",
    );
    for round in 20..24 {
        text += "(W) send.slm (1|M0) null r10 r11:1 0x0 0x0200050C\n";
        text += &format!("{SIGNAL}{between}{WAIT}");
        text += &format!("(W) send.slm (1|M0) r{round} r10 null:0 0x0 0x02100500\n");
        text += &format!("{SIGNAL}{between}{WAIT}");
    }
    text
}

/// Executes [`sums`] in two groups of 16 threads.
fn check_sums(bench: &mut EngineBench, between: &str, barriers: u32) {
    let mut words = walker(KERNELS, 2, &target(DATA));
    words[23] = 16 | 1 << 16 | 1 << 21 | barriers << 28;
    let text = format!("{}{}", sums(between), dump(20, 1));
    assert_eq!(bench.execute(&text, &[], &words), Outcome::Complete);
    for (group, thread) in (0..2).flat_map(|group| (0..16).map(move |thread| (group, thread))) {
        let found: [u32; 40] = bench.dumped([group, 0, 0], thread);
        let expected = [1, 2, 3, 4].map(|round| round * 136);
        assert_eq!([0, 8, 16, 24].map(|at| found[at]), expected, "{group} {thread}");
        assert_eq!(found[32], if between.is_empty() { 0 } else { 8 });
    }
    assert_eq!(bench.engine.counters().walkers.executed.faults, 0);
}

#[test]
fn barriers_order_the_threads_of_a_group() {
    proves!(
        EU_052,
        "eight barriers in a row: behind each all threads see the sum of all; with work between signal and wait too, and \
        however a step ends"
    );
    for between in ["", "(W) add (1|M0) r24.0<1>:ud r24.0<0;1,0>:ud 0x1:uw\n"] {
        for cost in [3, 100, 20_000] {
            let mut bench = EngineBench::new(EngineClass::Compute);
            bench.engine.unit = ComputeUnit::with_costs(cost, 200 * cost);
            check_sums(&mut bench, between, 1);
        }
    }
}

#[test]
fn results_do_not_depend_on_the_order_of_groups() {
    proves!(EU_024, "3 x 3 groups with a barrier have the same results in both orders of groups");
    let results = [0, 1].map(|order| {
        let mut bench = EngineBench::new(EngineClass::Compute);
        let mut words = walker(KERNELS, 3, &target(DATA));
        words[4] |= order << 5;
        (words[8], words[23]) = (3, 4 | 1 << 16);
        let text = format!("{}{}", sums(""), dump(20, 1));
        assert_eq!(bench.execute(&text, &[], &words), Outcome::Complete);
        let all = (0..36).map(|n| bench.dumped::<64>([n / 4 % 3, n / 12, 0], n % 4));
        (all.collect::<Vec<_>>(), bench.engine.counters().walkers.executed)
    });
    assert_eq!(results[0], results[1]);
    assert_eq!((results[0].1.groups, results[0].0[35][24]), (9, 40));
}

#[test]
fn more_barriers_are_accepted() {
    proves!(EU_054, "with each code of the number of barriers, one barrier works");
    for barriers in 0..8 {
        check_sums(&mut EngineBench::new(EngineClass::Compute), "", barriers);
    }
}

#[test]
fn other_messages_of_the_gateway_end_the_thread() {
    proves!(
        [EU_055, EU_073],
        "a thread that sends another message to the gateway ends before its store, and is counted; the walker ends"
    );
    for message in 0..16 {
        let mut bench = EngineBench::new(EngineClass::Compute);
        let text = format!("{SIGNAL}{STORE}").replace("0x02000004", &format!("{:#010x}", 0x0200_0000 | message));
        let executed = |bench: &mut EngineBench| {
            let outcome = bench.execute(&text, &[], &walker(KERNELS, 2, &target(DATA)));
            assert_eq!(outcome, Outcome::Complete);
            (bench.get(DATA), bench.engine.counters().walkers.executed.faults)
        };
        let known = matches!(message, 0 | 4);
        assert_eq!(executed(&mut bench), if known { (7, 0) } else { (0, 2) }, "{message}");
    }
}

#[test]
fn breakpoints_are_ignored() {
    proves!(EU_062, "an instruction with bit 30 set is executed like the same instruction without");
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.write(KERNELS, &kernel(STORE));
    for instruction in 0..3 {
        let at = KERNELS + instruction * 16;
        bench.put(at, bench.get(at) | 1 << 30);
    }
    let words = walker(KERNELS, 1, &target(DATA));
    let outcome = bench.batch(&[&instruction_base(VA)[..], &words].concat());
    assert_eq!((outcome, bench.get(DATA)), (Outcome::Complete, 7));
    assert_eq!(bench.engine.counters().walkers.executed.faults, 0);
}

/// Writes red, green, blue and alpha to eight texels of row 1, from column r1.2 on, with u, v and a level, with a header and
/// without.
fn typed_writes(descriptor: &str, header: bool) -> String {
    let (first, count) = if header { (9, 4) } else { (10, 3) };
    let length = count << 25;
    format!(
        "
(W)     mov (8|M0) r9.0<1>:ud 0x0:ud
(W)     mov (8|M0) r10.0<1>:ud 0x76543210:uv
(W)     add (8|M0) r10.0<1>:ud r10.0<1;1,0>:ud r1.2<0;1,0>:ud
(W)     mov (8|M0) r11.0<1>:ud 0x1:ud
(W)     mov (8|M0) r12.0<1>:ud 0x0:ud
(W)     mov (8|M0) r20.0<1>:ud 0x11:ud
(W)     mov (8|M0) r21.0<1>:ud 0x22:ud
(W)     mov (8|M0) r22.0<1>:ud 0x333:ud
(W)     mov (8|M0) r23.0<1>:ud 0x44:ud
        send.dc1 (8|M0) null r{first} r20:4 0x0 {:#010x}
",
        length | u32::from_str_radix(descriptor, 16).unwrap()
    )
}

#[test]
fn texels_are_written_in_their_format() {
    proves!(
        EU_084,
        "eight lanes with and without a header: four channels are converted to the format, with the largest value for what is \
        too large; lanes that are off or outside of the image write nothing"
    );
    for (header, descriptor) in [(false, "35003"), (true, "b5003")] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        bench.write(POOL + 0x40, &[0, 0, 0, 0x2000]);
        // 12 x 3 texels of R8G8B8A8_UINT in rows of 64 bytes.
        let mut image = buffer(DATA, 1);
        (image[0], image[2], image[3]) = (1 << 29 | 0xcb << 18, 2 << 16 | 11, 63);
        bench.write(STATES + 0x2000, &image);
        bench.write(DATA, &[0x5555_5555; 64]);
        for column in [1, 9] {
            let mut words = walker(KERNELS, 1, &[0, 0, column]);
            (words[5], words[22]) = (0x7f, 0x40);
            let outcome = bench.execute(&typed_writes(descriptor, header), &bases(), &words);
            assert_eq!(outcome, Outcome::Complete);
        }
        assert_eq!(bench.engine.counters().walkers.executed.faults, 0);
        for (at, row, column) in (0..64).map(|at| (at, at / 16, at % 16)) {
            let written = row == 1 && matches!(column, 1..8 | 9..12);
            let expected = if written { 0x44ff_2211 } else { 0x5555_5555 };
            assert_eq!(bench.get(DATA + at * 4), expected, "{header}: {column}, {row}");
        }
    }
}
