// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What threads start with: r0, local ids, inline data, architecture registers, dispatch mask.
#![allow(clippy::needless_range_loop, reason = "lanes have numbers, which the expected values depend on")]

use std::collections::BTreeSet;

use arctic_eu::exec::thread_number;

use super::kernels::*;
use super::*;

/// Distances of the dumps of threads and groups.
const OF_THREAD: u64 = 0x100;
const OF_GROUP: [u64; 3] = [0x1000, 0x4000, 0x1_0000];

/// A kernel that stores eight registers, from `first` on, at the address in the inline data, register `inline`, and the
/// distances of its group and thread. It uses registers 120 and 121.
pub(super) fn dump(first: u32, inline: u32) -> String {
    format!(
        "
(W)     mov (1|M0) r120.1<1>:ud r{inline}.1<0;1,0>:ud
(W)     shl (1|M0) r121.0<1>:ud r0.1<0;1,0>:ud 0xc:uw
(W)     shl (1|M0) r121.1<1>:ud r0.6<0;1,0>:ud 0xe:uw
(W)     shl (1|M0) r121.2<1>:ud r0.7<0;1,0>:ud 0x10:uw
(W)     and (1|M0) r121.3<1>:ud r0.2<0;1,0>:ud 0xff:ud
(W)     shl (1|M0) r121.3<1>:ud r121.3<0;1,0>:ud 0x8:uw
(W)     add (1|M0) r120.0<1>:ud r{inline}.0<0;1,0>:ud r121.0<0;1,0>:ud
(W)     add (1|M0) r120.0<1>:ud r120.0<0;1,0>:ud r121.1<0;1,0>:ud
(W)     add (1|M0) r120.0<1>:ud r120.0<0;1,0>:ud r121.2<0;1,0>:ud
(W)     add (1|M0) r120.0<1>:ud r120.0<0;1,0>:ud r121.3<0;1,0>:ud
(W)     send.ugm (1|M0) null r120 r{first}:8 0x0 0x0200F584
"
    )
}

impl EngineBench {
    /// Executes a walker of this kernel, with the state that the context begins with and `commands`.
    pub(super) fn execute(&mut self, text: &str, commands: &[u32], walker: &[u32]) -> Outcome {
        self.write(KERNELS, &kernel(text));
        self.batch(&[&instruction_base(VA)[..], commands, walker].concat())
    }

    /// Dwords that a thread has stored.
    pub(super) fn dumped<const N: usize>(&self, group: [u64; 3], thread: u64) -> [u32; N] {
        let of_group: u64 = group.iter().zip(OF_GROUP).map(|(id, distance)| id * distance).sum();
        let at = DATA + of_group + thread * OF_THREAD;
        std::array::from_fn(|dword| self.get(at + 4 * dword as u64))
    }
}

#[test]
fn r0_has_the_group_and_the_pointers() {
    proves!(
        EU_030,
        "r0 of each thread of 3 x 2 x 2 groups: indirect data, group, number, count of threads, sampler and binding table \
        pointers, and a number that the threads of a group do not share beside the scratch handle"
    );
    let mut bench = EngineBench::new(EngineClass::Compute);
    let mut words = walker(KERNELS, 3, &target(DATA));
    (words[3], words[8], words[9]) = (0x1240, 2, 2);
    (words[21], words[22], words[23]) = (0x60 | 7, 0x80 | 5, 3);
    let state = commands::front_end(0x1234_5400, 0x40);
    assert_eq!(bench.execute(&dump(0, 1), &state, &words), Outcome::Complete);
    for (x, y, z) in (0..12_u64).map(|n| (n % 3, n / 3 % 2, n / 6)) {
        let mut numbers = BTreeSet::new();
        for thread in 0..3_u64 {
            let mut r0: [u32; 8] = bench.dumped([x, y, z], thread);
            numbers.insert(r0[5] & 0x3ff);
            r0[5] &= !0x3ff;
            let number = thread as u32 | 3 << 24;
            assert_eq!(r0, [0x1240, x as u32, number, 0x60, 0x80, 0x1234_5400, y as u32, z as u32]);
        }
        assert_eq!(numbers.len(), 3);
    }
    assert_eq!(bench.engine.counters().walkers.executed.threads, 36);
}

/// Local ids of an item by its number in a group, with the dimensions of the order from the innermost on.
fn ids(number: u32, size: [u32; 3], order: [usize; 3]) -> [u32; 3] {
    let [inner, middle, outer] = order;
    let mut ids = [0; 3];
    ids[inner] = number % size[inner];
    ids[middle] = number / size[inner] % size[middle];
    ids[outer] = number / size[inner] / size[middle] % size[outer];
    ids
}

/// The orders of local ids, by the value of the field.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]];

#[test]
fn local_ids_and_inline_data_follow_r0() {
    proves!(
        [EU_031, EU_033],
        "ids of the emitted dimensions and then the inline data, for all SIMD sizes, emitted dimensions and orders of an 8 x \
        4 x 2 group: each lane against the formula"
    );
    proves!(EU_023, "each thread has the items from its number times the SIMD size on, and no other thread runs");
    let size = [8, 4, 2];
    for (code, simd) in [(0, 8), (1, 16), (2, 32)] {
        for (order, dimensions) in (0..).zip(ORDERS) {
            for emit in [0_u32, 1, 3, 7] {
                let mut bench = EngineBench::new(EngineClass::Compute);
                let rows = emit.count_ones() * if simd == 32 { 2 } else { 1 };
                let inline = 1 + rows;
                let threads = 64 / simd;
                let [low, high] = target(DATA);
                let mut words = walker(KERNELS, 1, &[low, high, 2, 3, 4, 5, 6, 0xabcd]);
                words[4] = code << 30 | 1 << 29 | emit << 26 | 1 << 25 | order << 22 | code << 17;
                words[6] = 7 | 3 << 10 | 1 << 20;
                (words[5], words[23]) = (!0, threads);
                assert_eq!(bench.execute(&dump(1, inline), &[], &words), Outcome::Complete);
                assert_eq!(bench.engine.counters().walkers.executed.threads, u64::from(threads));
                for thread in 0..threads {
                    let found: [u32; 64] = bench.dumped([0; 3], thread.into());
                    let word = |at: u32| found[at as usize / 2] >> (at % 2 * 16) & 0xffff;
                    for lane in 0..simd {
                        let ids = ids(thread * simd + lane, size, dimensions);
                        for axis in 0..emit.count_ones() {
                            let at = axis * rows / emit.count_ones() * 16 + lane;
                            assert_eq!(word(at), ids[axis as usize], "SIMD{simd} {order} {emit} {thread} {lane}");
                        }
                    }
                    let behind = (rows * 8) as usize;
                    assert_eq!(found[behind..behind + 8], [low, high, 2, 3, 4, 5, 6, 0xabcd]);
                }
                assert_eq!(bench.dumped([0; 3], threads.into()), [0; 8], "a thread more");
            }
        }
    }
}

/// Moves architecture registers to r2: cr0.0, cr0.1, sr0.0, both flags, a0 and an accumulator; then the sum of two floats that
/// are denormal, and, with denormals kept, in r3.1.
const ARCHITECTURE: &str = "
(W)     mov (1|M0) r2.0<1>:ud cr0.0<0;1,0>:ud
(W)     mov (1|M0) r2.1<1>:ud cr0.1<0;1,0>:ud
(W)     mov (1|M0) r2.2<1>:ud sr0.0<0;1,0>:ud
(W)     mov (1|M0) r2.3<1>:ud f0.0<0;1,0>:ud
(W)     mov (1|M0) r2.4<1>:ud f1.0<0;1,0>:ud
(W)     mov (1|M0) r2.5<1>:ud a0.0<0;1,0>:ud
(W)     mov (1|M0) r2.6<1>:ud acc0.0<0;1,0>:ud
(W)     mov (1|M0) r3.0<1>:ud 0x400000:ud
(W)     add (1|M0) r2.7<1>:f r3.0<0;1,0>:f r3.0<0;1,0>:f
(W)     or (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x80:uw
(W)     add (1|M0) r3.1<1>:f r3.0<0;1,0>:f r3.0<0;1,0>:f
";

#[test]
fn architecture_registers_have_their_first_values() {
    proves!(
        EU_032,
        "rounding, single program flow and exceptions of the descriptor are in cr0; denormals are flushed until the \
        kernel sets bit 7; flags, a0 and accumulators are 0"
    );
    let text = format!("{ARCHITECTURE}{}", dump(2, 1));
    let exceptions = [(1 << 7, 1 << 13), (1 << 11, 1 << 11), (1 << 13, 1 << 12), (1 << 19, 0), (0, 0)];
    for (descriptor, enabled) in exceptions {
        for rounding in 0..4 {
            for flow in [0, 1] {
                let mut bench = EngineBench::new(EngineClass::Compute);
                let mut words = walker(KERNELS, 1, &target(DATA));
                words[20] = descriptor | flow << 18;
                words[23] = 1 | rounding << 22;
                assert_eq!(bench.execute(&text, &[], &words), Outcome::Complete);
                let mut found: [u32; 10] = bench.dumped([0; 3], 0);
                found[2] = 0;
                let expected = [rounding << 4 | flow, enabled, 0, 0, 0, 0, 0, 0, 0x40_0000, 0x80_0000];
                assert_eq!(found, expected, "{descriptor:#x}");
            }
        }
    }
}

#[test]
fn running_threads_have_different_numbers() {
    proves!(
        [EU_032, EU_042],
        "sr0.0 of the 128 threads of the largest group: bits 3 and 6 are clear, and without them the numbers are \
        different and below 4,096, so that parts of a buffer by this number do not overlap"
    );
    let mut bench = EngineBench::new(EngineClass::Compute);
    let mut words = walker(KERNELS, 1, &target(DATA));
    words[23] = 128;
    let text = format!("{ARCHITECTURE}{}", dump(2, 1));
    assert_eq!(bench.execute(&text, &[], &words), Outcome::Complete);
    let numbers: Vec<u32> = (0..128).map(|thread| bench.dumped::<3>([0; 3], thread)[2]).collect();
    assert!(numbers.iter().all(|sr0| sr0 & 0x48 == 0 && sr0 >> 14 == 0), "{numbers:x?}");
    // As compiled code does: bits 2:0, 5:4, and those from 7 on.
    let packed = |sr0: u32| sr0 & 7 | (sr0 >> 4 & 3) << 3 | (sr0 >> 7) << 5;
    assert!(numbers.iter().all(|sr0| packed(*sr0) < 4096 && packed(*sr0) == thread_number(*sr0)));
    assert_eq!(numbers.iter().map(|sr0| packed(*sr0)).collect::<BTreeSet<_>>().len(), 128);
}

/// Moves 7 to the lanes of r2 and r3 that are enabled, after a divergence, then 9 to all lanes of r5 and r6.
const LANES: &str = "
        goto (16|M0) FIRST FIRST
FIRST:
        join (16|M0) SECOND
SECOND:
        mov (16|M0) r2.0<1>:ud 0x7:ud
(W)     mov (1|M0) r4.0<1>:ud sr0.2<0;1,0>:ud
(W)     mov (16|M0) r5.0<1>:ud 0x9:ud
";

#[test]
fn the_last_thread_has_the_mask_of_the_walker() {
    proves!(
        EU_034,
        "40 items at SIMD16: the third thread has the lanes of dword 5, the others all of them; those that are off stay \
        off, and instructions without mask ignore it. A group of one thread has the mask"
    );
    let text = format!("{LANES}{}", dump(2, 1));
    for threads in [3, 1] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        let mut words = walker(KERNELS, 2, &target(DATA));
        words[4] = 1 << 30 | 1 << 25;
        (words[5], words[23]) = (0xff00_00ff, threads);
        assert_eq!(bench.execute(&text, &[], &words), Outcome::Complete);
        for (group, thread) in (0..2).flat_map(|group| (0..threads).map(move |thread| (group, thread))) {
            let found: [u32; 40] = bench.dumped([group, 0, 0], thread.into());
            let last = thread == threads - 1;
            for lane in 0..16 {
                assert_eq!(found[lane], if last && lane >= 8 { 0 } else { 7 }, "{thread} {lane}");
            }
            assert_eq!((found[16] & 0xffff, &found[24..]), (if last { 0xff } else { 0xffff }, &[9; 16][..]));
        }
    }
}

#[test]
fn a_message_with_eot_ends_the_thread() {
    proves!(
        EU_035,
        "with both descriptors that compilers and IGT use the thread ends: its store before has been made, the one \
        behind is not, and no fault is counted"
    );
    for descriptor in ["0x02000010", "0x02000000"] {
        let end = format!("(W) send.gtwy (1|M0) null r127 null:0 0x0 {descriptor} {{EOT}}\n");
        let behind = STORE.replace("r1.0<1;1,0>", "r1.2<1;1,0>");
        let mut bench = EngineBench::new(EngineClass::Compute);
        let words = walker(KERNELS, 2, &[target(DATA), target(DATA + 4)].concat());
        assert_eq!(bench.execute(&format!("{STORE}{end}{behind}"), &[], &words), Outcome::Complete);
        assert_eq!((bench.get(DATA), bench.get(DATA + 4)), (7, 0), "{descriptor}");
        let executed = bench.engine.counters().walkers.executed;
        assert_eq!((executed.groups, executed.threads, executed.faults), (2, 2, 0));
    }
}

/// Overwrites all that a kernel can write: general registers, accumulators, flags, a0 and shared local memory.
fn overwrite() -> String {
    let mut text = String::from("(W) mov (8|M0) r2.0<1>:ud 0x0:ud\n(W) mov (8|M0) r3.0<1>:ud 0xdeadbeef:ud\n");
    for register in 4..128 {
        text += &format!("(W) mov (8|M0) r{register}.0<1>:ud 0xdeadbeef:ud\n");
    }
    text += "(W) send.slm (1|M0) null r2 r4:8 0x0 0x0200F504\n\
        (W) mov (8|M0) acc0.0<1>:ud 0xdeadbeef:ud\n(W) mov (8|M0) acc1.0<1>:ud 0xdeadbeef:ud\n\
        (W) mov (1|M0) f0.0<1>:ud 0xdeadbeef:ud\n(W) mov (1|M0) f1.0<1>:ud 0xdeadbeef:ud\n\
        (W) mov (8|M0) a0.0<1>:uw 0xbeef:uw\n(W) mov (8|M0) r2.0<1>:ud 0xdeadbeef:ud\n";
    text
}

/// Stores r2 to r121, then the first registers' worth of shared local memory, and the architecture registers.
fn store_all() -> String {
    let mut text = String::from("(W) mov (2|M0) r126.0<1>:ud r1.0<1;1,0>:ud\n");
    for first in (2..122).step_by(8) {
        text += &format!(
            "(W) send.ugm (1|M0) null r126 r{first}:8 0x0 0x0200F584\n\
            (W) add (1|M0) r126.0<1>:ud r126.0<0;1,0>:ud 0x100:uw\n"
        );
    }
    text += "(W) mov (8|M0) r2.0<1>:ud 0x0:ud\n(W) send.slm (1|M0) r10 r2 null:0 0x0 0x0280F500\n\
        (W) send.ugm (1|M0) null r126 r10:8 0x0 0x0200F584\n(W) add (1|M0) r126.0<1>:ud r126.0<0;1,0>:ud 0x100:uw\n\
        (W) mov (8|M0) r20.0<1>:ud acc0.0<1;1,0>:ud\n(W) mov (8|M0) r21.0<1>:ud acc1.0<1;1,0>:ud\n\
        (W) mov (1|M0) r22.0<1>:ud f0.0<0;1,0>:ud\n(W) mov (1|M0) r22.1<1>:ud f1.0<0;1,0>:ud\n\
        (W) mov (8|M0) r23.0<1>:uw a0.0<1;1,0>:uw\n(W) send.ugm (1|M0) null r126 r20:8 0x0 0x0200F584\n";
    text
}

#[test]
fn threads_have_nothing_of_another_context() {
    proves!(
        [EU_075, EU_050],
        "a kernel overwrites registers, flags, accumulators, a0 and shared local memory; a kernel of another context and \
        function on the same engine, with threads of the same shape, reads 0 in all of them"
    );
    let mut bench = EngineBench::new(EngineClass::Compute);
    for vf in [0, 3, 5] {
        bench.give(Function::new(vf).unwrap());
        for (number, text) in [(0, overwrite()), (1, store_all())] {
            let at = KERNELS + number * 0x4000;
            bench.write(DATA, &vec![0xcccc_cccc; 17 * 64]);
            bench.write(at, &kernel(&text));
            let mut words = walker(at, 1, &target(DATA));
            // 4 KiB of shared local memory.
            words[23] = 3 << 16 | 1;
            let context = bench.context(number);
            bench.write(BATCH + number * 0x1000, &[&instruction_base(VA)[..], &words, &[END]].concat());
            bench.emit(context, &start(VA + BATCH + number * 0x1000));
            assert_eq!(bench.submit(context), Outcome::Complete, "{vf} {number}");
        }
        assert_eq!(bench.engine.counters().walkers.executed.faults, 0);
        for dword in 0..17 * 64 {
            assert_eq!(bench.get(DATA + dword * 4), 0, "{vf}: block {}, dword {}", dword / 64, dword % 64);
        }
    }
}

#[test]
fn addresses_of_a_vf_go_through_its_table() {
    proves!(EU_075, "a kernel of a VF stores to the frame that the VF's LMTT has, and not to the frame of this number");
    const SEEN: u64 = 0x80_0000;
    const ELSEWHERE: u64 = 0xa0_0000;
    for vf in [0, 3] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        bench.give(Function::new(vf).unwrap());
        // The entries of the VF's table are exchanged.
        for (frame, behind) in [(4, 5), (5, 4)] {
            bench.put(LMTT + 0x1_0000 + 4 * frame, behind << 5 | 1);
        }
        let context = bench.kernel_context(0, STORE, 1, &target(SEEN));
        assert_eq!(bench.submit(context), Outcome::Complete);
        let stored = [SEEN, ELSEWHERE].map(|at| bench.get(at));
        assert_eq!(stored, if vf == 0 { [7, 0] } else { [0, 7] });
    }
}
