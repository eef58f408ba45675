// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Kernels in assembly, executed for all work items.

mod common;

use arctic_eu::exec::{FaultKind, Way};
use arctic_eu::launch::{Argument, Hang, Launch, LocalIds, Outcome, Range, Settings};
use arctic_eu::zebin::Zebin;
use common::{END, dwords, run};

/// Description of the kernel of the vectors, as ocloc writes it for buffers in a binding table.
const VADD: &str = "---
kernels:
  - name:            vadd
    execution_env:
      grf_count:       128
      inline_data_payload_size: 32
      offset_to_skip_per_thread_data_load: 192
      simd_size:       32
    payload_arguments:
      - arg_type:        global_id_offset
        offset:          0
        size:            12
      - arg_type:        enqueued_local_size
        offset:          12
        size:            12
      - arg_type:        arg_bypointer
        offset:          24
        size:            8
        arg_index:       0
        addrmode:        stateless
        addrspace:       global
      - arg_type:        arg_bypointer
        offset:          32
        size:            8
        arg_index:       1
        addrmode:        stateless
        addrspace:       global
      - arg_type:        arg_bypointer
        offset:          40
        size:            8
        arg_index:       2
        addrmode:        stateless
        addrspace:       global
      - arg_type:        arg_byvalue
        offset:          48
        size:            4
        arg_index:       3
    per_thread_payload_arguments:
      - arg_type:        local_id
        offset:          0
        size:            192
    binding_table_indices:
      - bti_value:       0
        arg_index:       0
      - bti_value:       1
        arg_index:       1
      - bti_value:       2
        arg_index:       2
kernels_misc_info:
  - name:            vadd
    args_info:
      - index:           0
        name:            a
      - index:           1
        name:            b
      - index:           2
        name:            c
      - index:           3
        name:            n
";

/// EU-029, EU-031, EU-034: the vectors' kernel with ids by hardware (groups of 64) and from memory (groups of 40), on the fast
/// and on the general way: c[i] = 3 i + 1 below n, everything else unchanged.
#[test]
fn the_vector_add_of_the_vectors_has_its_expected_memory() {
    let code = common::hex(include_str!("data/vadd.hex"));
    let zebin = Zebin::parse(common::zebin(&[("vadd", code)], VADD)).unwrap();
    let floats = |values: Vec<f32>| Argument::Buffer(values.iter().flat_map(|value| value.to_le_bytes()).collect());
    for (local, local_ids) in
        [(64, LocalIds::Driver), (40, LocalIds::Driver), (64, LocalIds::Memory), (8, LocalIds::Hardware)]
    {
        for way in [Way::Fast, Way::General] {
            let arguments = [
                ("a".to_string(), floats((0..1000).map(|i| i as f32).collect())),
                ("b".to_string(), floats((0..1000).map(|i| (2 * i + 1) as f32).collect())),
                ("c".to_string(), Argument::Buffer(vec![0xee; 4096])),
                ("n".to_string(), Argument::Value(1000u32.to_le_bytes().to_vec())),
            ];
            let global = 1000u32.next_multiple_of(local);
            let range = Range { global: [global, 1, 1], local: [local, 1, 1], offset: [0; 3] };
            let settings = Settings { local_ids, way, ..Settings::default() };
            let launch = Launch::new(&zebin, None, range, &arguments, settings).unwrap();
            let report = launch.run(&|_| {});
            assert_eq!((report.outcome, report.outside), (Outcome::Complete, 0));
            let c = dwords(&launch.buffer("c").unwrap());
            for (index, value) in c.iter().enumerate() {
                let expected = if index < 1000 { ((3 * index + 1) as f32).to_bits() } else { 0xeeee_eeee };
                assert_eq!(*value, expected, "{index}, groups of {local}, {local_ids:?}, {way:?}");
            }
        }
    }
}

/// Global id in r10 (16 lanes) for groups of 16 in X, and the address of element `id` of `a` in r12 and r14.
const PROLOG: &str = "
(W)     mul (1|M0) r6.0<1>:ud r0.1<0;1,0>:ud r4.6<0;1,0>:uw
        add (16|M0) r10.0<1>:ud r1.0<1;1,0>:uw r6.0<0;1,0>:ud
        shl (16|M0) r16.0<1>:ud r10.0<1;1,0>:ud 2:uw
        addc (8|M0) r18.0<1>:ud r16.0<1;1,0>:ud r4.6<0;1,0>:ud {AccWrEn}
        add (8|M0) r19.0<1>:ud acc0.0<1;1,0>:ud r4.7<0;1,0>:ud
        mov (8|M0) r12.0<2>:ud r18.0<1;1,0>:ud
        mov (8|M0) r12.1<2>:ud r19.0<1;1,0>:ud
        addc (8|M8) r18.0<1>:ud r17.0<1;1,0>:ud r4.6<0;1,0>:ud {AccWrEn}
        add (8|M8) r19.0<1>:ud acc0.0<1;1,0>:ud r4.7<0;1,0>:ud
        mov (8|M8) r14.0<2>:ud r18.0<1;1,0>:ud
        mov (8|M8) r14.1<2>:ud r19.0<1;1,0>:ud
";
const LOAD: &str = "        send.ugm (16|M0) r20 r12 null:0 0x0 0x08200580\n";
const STORE: &str = "        send.ugm (16|M0) null r12 r20:2 0x0 0x08000584\n";

fn kernel(body: &str) -> String {
    // Inline data is behind the three registers of local ids: r4.
    format!("{PROLOG}{LOAD}{body}{STORE}{END}")
}

/// Runs `body` on r20 of each item and compares with a function of id and value.
fn check(body: &str, expected: impl Fn(u32, u32) -> u32) {
    let input: Vec<u32> = (0..64u32).map(|index| index.wrapping_mul(0x9e37_79b9) >> 7).collect();
    let bytes = input.iter().flat_map(|value| value.to_le_bytes()).collect();
    let text = kernel(body);
    let (report, buffer) = run(&text, 16, "", 64, 16, bytes);
    assert_eq!((report.outcome, report.outside), (Outcome::Complete, 0), "{text}");
    for (index, (old, new)) in (0..).zip(input.iter().zip(dwords(&buffer))) {
        assert_eq!(new, expected(index, *old), "item {index}\n{body}");
    }
}

/// ISA-171, ISA-172: a loop with goto.b and a divergent number of turns, and a forward goto.
#[test]
fn divergent_loop_with_goto_and_join_ends_each_channel_after_its_turns() {
    check(
        "
        and (16|M0) r22.0<1>:ud r10.0<1;1,0>:ud 7:uw
HEAD:
        join (16|M0) NEXT
NEXT:
        cmp (16|M0) (eq)f0.0 null<1>:ud r22.0<1;1,0>:ud 0x0:ud
(f0.0)  goto (16|M0) AFTER AFTER
        add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x11:ud
        add (16|M0) r22.0<1>:d r22.0<1;1,0>:d -1:w
        goto.b (16|M0) AFTER HEAD
AFTER:
        join (16|M0) END
END:
        add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x1:ud
",
        |id, value| value + (id & 7) * 0x11 + 1,
    );
}

/// ISA-173, ISA-174: structured branches; break leaves the loop, cont goes to the while.
#[test]
fn structured_branches_enable_the_channels_of_their_blocks() {
    check(
        "
        cmp (16|M0) (lt)f0.0 null<1>:ud r10.0<1;1,0>:ud 0x14:ud
(f0.0)  if (16|M0) ELSE ENDIF
        mov (16|M0) r24.0<1>:ud 0x64:ud
        else (16|M0) ENDIF ENDIF
ELSE:
        mov (16|M0) r24.0<1>:ud 0xC8:ud
ENDIF:
        endif (16|M0) L1
L1:
        mov (16|M0) r32.0<1>:ud 0x0:ud
        and (16|M0) r34.0<1>:ud r10.0<1;1,0>:ud 3:uw
LOOP:
        add (16|M0) r32.0<1>:ud r32.0<1;1,0>:ud 0x1:ud
        cmp (16|M0) (gt)f0.0 null<1>:ud r32.0<1;1,0>:ud r34.0<1;1,0>:ud
(f0.0)  break (16|M0) WHILE WHILE
        and (16|M0) (eq)f1.0 null<1>:ud r32.0<1;1,0>:ud 0x1:ud
(f1.0)  cont (16|M0) WHILE WHILE
        add (16|M0) r24.0<1>:ud r24.0<1;1,0>:ud 0x1:ud
WHILE:
        while (16|M0) LOOP
        mov (16|M0) r20.0<1>:ud r24.0<1;1,0>:ud
",
        |id, _| {
            let odd = (1..=id & 3).filter(|turn| turn % 2 == 1).count() as u32;
            if id < 20 { 100 + odd } else { 200 + odd }
        },
    );
}

/// ISA-176: a subroutine that is called by some channels, and returns to all.
#[test]
fn call_under_divergence_runs_the_subroutine_for_its_channels_only() {
    let body = "
        and (16|M0) (eq)f0.0 null<1>:ud r10.0<1;1,0>:ud 0x1:ud
(f0.0)  call (16|M0) r30.0 SUB
        add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x5:ud
        jmpi DONE
SUB:
        add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x1000:ud
        ret (16|M0) r30.0
DONE:
";
    check(body, |id, value| value + if id % 2 == 0 { 0x1005 } else { 5 });
}

/// ISA-176: in a recursion, channels of outer calls wait at the join that inner calls reach, and stay there.
#[test]
fn recursion_enables_only_the_channels_of_its_call() {
    let body = "
        and (16|M0) r22.0<1>:ud r10.0<1;1,0>:ud 3:uw
(W)     mov (1|M0) a0.0<1>:uw 0x800:uw
        call (16|M0) r30.0 SUB
        mov (16|M0) r20.0<1>:ud r24.0<1;1,0>:ud
        jmpi DONE
SUB:
(W)     mov (2|M0) r[a0.0]<1>:ud r30.0<1;1,0>:ud
        mov (16|M0) r[a0.0,32]<1>:ud r22.0<1;1,0>:ud
(W)     add (1|M0) a0.0<1>:uw a0.0<0;1,0>:uw 0x60:uw
        cmp (16|M0) (lt)f0.0 null<1>:ud r22.0<1;1,0>:ud 0x2:ud
(f0.0)  goto (16|M0) LAST LAST
        add (16|M0) r22.0<1>:d r22.0<1;1,0>:d -1:w
        call (16|M0) r30.0 SUB
(W)     add (1|M0) a0.1<1>:uw a0.0<0;1,0>:uw 0xFFA0:uw
        mul (16|M0) r24.0<1>:d r24.0<1;1,0>:d r[a0.1,32]<2;1,0>:uw
        goto (16|M0) LAST BACK
LAST:
        join (16|M0) BACK
        mov (16|M0) r24.0<1>:ud 0x1:ud
BACK:
        join (16|M0) NEXT
NEXT:
(W)     add (1|M0) a0.0<1>:uw a0.0<0;1,0>:uw 0xFFA0:uw
(W)     mov (2|M0) r30.0<1>:ud r[a0.0]<1;1,0>:ud
        mov (16|M0) r22.0<1>:ud r[a0.0,32]<1;1,0>:ud
        ret (16|M0) r30.0
DONE:
";
    check(body, |id, _| [1, 1, 2, 6][(id & 3) as usize]);
}

/// ISA-054, ISA-055: register-indirect sources, one address and an address a lane.
#[test]
fn register_indirect_sources_read_the_addressed_elements() {
    check(
        "
        mov (16|M0) r40.0<1>:ud r20.0<1;1,0>:ud
        xor (16|M0) r42.0<1>:uw r1.0<1;1,0>:uw 0x3:uw
        shl (16|M0) r42.0<1>:uw r42.0<1;1,0>:uw 0x2:uw
        add (16|M0) a0.0<1>:uw r42.0<1;1,0>:uw 0x500:uw
        mov (16|M0) r20.0<1>:ud r[a0.0]<1,0>:ud
",
        |id, _| ((id ^ 3).wrapping_mul(0x9e37_79b9)) >> 7,
    );
}

/// ISA-185: int8 dpas against a triple loop, with the rows in src2 and the columns in src1. ISA-189: also as Intel's compiler
/// writes it in loops, behind a product that is overwritten.
#[test]
fn dpas_of_bytes_is_the_product_of_the_matrices() {
    for (start, products) in [
        ("r56", "dpas.8x8 (8|M0) r64:d r56:d r40:b r48.0:b"),
        ("r64", "dpas.8x8 (8|M0) r64:d null:d r64:b r64.0:b {Atomic}\ndpas.8x8 (8|M0) r64:d r64:d r40:b r48.0:b {$1}"),
    ] {
        product_of_bytes(start, products);
    }
}

/// The columns are in r40, the rows in r48, what they are added to in `start`; the result is to be in r64.
fn product_of_bytes(start: &str, products: &str) {
    let code = format!(
        "
(W)     mov (8|M0) r12.0<1>:ud r4.6<0;1,0>:ud
(W)     mov (1|M0) r12.1<1>:ud r4.7<0;1,0>:ud
(W)     send.ugm (1|M0) r40 r12 null:0 0x0 0x0280F580
(W)     add (1|M0) r12.0<1>:ud r12.0<0;1,0>:ud 0x100:ud
(W)     send.ugm (1|M0) r48 r12 null:0 0x0 0x0280F580
(W)     add (1|M0) r12.0<1>:ud r12.0<0;1,0>:ud 0x100:ud
(W)     send.ugm (1|M0) {start} r12 null:0 0x0 0x0280F580
        {products}
(W)     send.ugm (1|M0) null r12 r64:8 0x0 0x0200F584
"
    );
    let mut buffer: Vec<u8> = (0..768u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    buffer[512..].iter_mut().enumerate().for_each(|(index, byte)| {
        if index % 4 > 1 {
            *byte = 0
        }
    });
    let (report, after) = run(&format!("{code}{END}"), 8, "", 8, 8, buffer.clone());
    assert_eq!(report.outcome, Outcome::Complete);
    let result = dwords(&after[512..]);
    let start = dwords(&buffer[512..]);
    for m in 0..8 {
        for n in 0..8 {
            let sum: i32 = (0..32)
                .map(|k| {
                    let column = buffer[k / 4 * 32 + n * 4 + k % 4] as i8;
                    let row = buffer[256 + m * 32 + k] as i8;
                    i32::from(column) * i32::from(row)
                })
                .sum();
            assert_eq!(result[m * 8 + n], start[m * 8 + n].wrapping_add_signed(sum), "{m} {n}");
        }
    }
}

/// Stores r20 to local memory at the item's place in its group of 64.
const SHARE: &str = "
        and (16|M0) r30.0<1>:ud r1.0<1;1,0>:uw 0x3F:uw
        shl (16|M0) r32.0<1>:ud r30.0<1;1,0>:ud 2:uw
        send.slm (16|M0) null r32 r20:2 0x0 0x04000504
";
/// Arrives at the group's barrier.
const ARRIVE: &str = "
(W)     mov (8|M0) r50.0<1>:ud 0x0:ud
(W)     mov (2|M0) r50.10<1>:ub r0.11<0;1,0>:ub
(W)     send.gtwy (1|M0) null r50 null:0 0x0 0x02000004
";
const WAIT: &str = "(W)     sync.bar null\n";
/// Loads r20 from the place of the item that is as far from the group's end.
const TAKE: &str = "
        xor (16|M0) r34.0<1>:ud r30.0<1;1,0>:ud 0x3F:ud
        shl (16|M0) r36.0<1>:ud r34.0<1;1,0>:ud 2:uw
        send.slm (16|M0) r20 r36 null:0 0x0 0x04200500
";

/// Runs a body that turns the 64 values of each group around.
fn turns_groups_around(body: &str) {
    let input: Vec<u32> = (0..256).collect();
    let bytes = input.iter().flat_map(|value| value.to_le_bytes()).collect();
    let more = "      barrier_count: 1\n      slm_size: 256\n";
    let (report, buffer) = run(&kernel(body), 16, more, 256, 64, bytes);
    assert_eq!((report.outcome, report.outside), (Outcome::Complete, 0));
    let expected: Vec<u32> = (0..256).map(|id| id & !63 | (id & 63) ^ 63).collect();
    assert_eq!(dwords(&buffer), expected);
}

/// ISA-222, EU-052: threads exchange values by shared local memory and a barrier.
#[test]
fn barrier_makes_stores_to_local_memory_visible_to_the_group() {
    turns_groups_around(&[SHARE, ARRIVE, WAIT, TAKE].concat());
    // Turned around three times.
    let again = [SHARE, ARRIVE, WAIT, TAKE, ARRIVE, WAIT].concat().repeat(2);
    turns_groups_around(&[again.as_str(), SHARE, ARRIVE, WAIT, TAKE].concat());
}

/// ISA-242: a thread that arrives twice before it waits takes two notifications, as compilers do for split barriers.
#[test]
fn threads_arrive_twice_at_a_barrier_before_they_wait_for_both_completions() {
    turns_groups_around(&[SHARE, ARRIVE, ARRIVE, WAIT, WAIT, TAKE].concat());
    let again = [SHARE, ARRIVE, ARRIVE, WAIT, WAIT, TAKE, ARRIVE, WAIT].concat().repeat(2);
    turns_groups_around(&[again.as_str(), SHARE, ARRIVE, ARRIVE, WAIT, WAIT, TAKE].concat());
}

/// Threads of a group have turns: the first waits in a loop for what the last stores.
#[test]
fn thread_that_waits_for_a_later_thread_of_its_group_ends() {
    let body = "
(W)     mov (1|M0) r40.0<1>:ud 0x0:ud
(W)     and (1|M0) r41.0<1>:ud r0.2<0;1,0>:ud 0xFF:ud
(W)     cmp (1|M0) (eq)f0.0 null<1>:ud r41.0<0;1,0>:ud 0x3:ud
(W&f0.0) jmpi LAST
AGAIN:
(W)     send.slm (1|M0) r42 r40 null:0 0x0 0x02100500
(W)     cmp (1|M0) (ne)f0.0 null<1>:ud r42.0<0;1,0>:ud 0x7:ud
(W&f0.0) jmpi AGAIN
(W)     jmpi DONE
LAST:
(W)     mov (1|M0) r44.0<1>:ud 0x7:ud
(W)     send.slm (1|M0) null r40 r44:1 0x0 0x02000504
DONE:
        add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x1:ud
";
    let (report, buffer) = run(&kernel(body), 16, "      slm_size: 1024\n", 64, 64, vec![0; 256]);
    assert_eq!((report.outcome, report.outside), (Outcome::Complete, 0));
    assert_eq!(dwords(&buffer), [1; 64]);
}

/// ISA-218: 4096 items add their ids to one element.
#[test]
fn atomic_additions_of_all_groups_are_in_the_sum() {
    let count = format!(
        "{PROLOG}
(W)     mov (8|M0) r12.0<2>:ud r4.6<0;1,0>:ud
(W)     mov (8|M0) r12.1<2>:ud r4.7<0;1,0>:ud
(W)     mov (8|M0) r14.0<2>:ud r4.6<0;1,0>:ud
(W)     mov (8|M0) r14.1<2>:ud r4.7<0;1,0>:ud
        send.ugm (16|M0) null r12 r10:2 0x0 0x0800058C
{END}"
    );
    let (report, buffer) = run(&count, 16, "", 4096, 16, vec![0; 4]);
    assert_eq!(report.outcome, Outcome::Complete);
    assert_eq!(dwords(&buffer), [4096 * 4095 / 2]);
}

/// The ways in which a kernel cannot go on end in a report.
#[test]
fn faults_hangs_and_accesses_outside_are_reported_with_their_place() {
    let outcome = |text: &str| run(text, 16, "      barrier_count: 1\n", 16, 16, vec![0; 64]).0;
    let kind = |text: &str| match outcome(text).outcome {
        Outcome::Fault(kind, at) => (kind, at.instruction, at.lane),
        other => panic!("{other:?}"),
    };
    assert_eq!(kind("nop\nillegal\n"), (FaultKind::Illegal, 1, None));
    assert_eq!(kind(".inst 0x0000007e 0 0 0\n"), (FaultKind::Opcode, 0, None));
    assert_eq!(kind("nop\n"), (FaultKind::End, 0, None));
    assert_eq!(kind("(W) jmpi L4096\n"), (FaultKind::Target, 0, None));
    assert_eq!(kind("mov (8|M0) r200.0<1>:ud 0x0:ud\n"), (FaultKind::Register, 0, None));
    let dpas = "dpas.8x8 (8|M0) r64:q r56:q r40:q r48.0:q\n";
    assert_eq!(kind(dpas), (FaultKind::Types, 0, None));
    assert_eq!(kind("send.urb (8|M0) r2 r1 null:0 0x0 0x02100008\n"), (FaultKind::Message, 0, None));
    let wild = format!("mov (16|M0) r12.0<1>:ud 0x7:ud\n mov (16|M0) r14.0<1>:ud 0x7:ud\n{STORE}{END}");
    assert_eq!(kind(&wild), (FaultKind::Address, 2, Some(0)));
    let endless = outcome("L0:\n(W) jmpi L0\n");
    assert!(matches!(endless.outcome, Outcome::Hang(Hang::Limit, _)) && endless.instructions == 1_000_000);
    let lonely = outcome("(W) sync.bar null\n");
    assert!(matches!(lonely.outcome, Outcome::Hang(Hang::Barrier, _)));
}
