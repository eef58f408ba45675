// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Inputs of kernels that are valid, from which a fuzzer starts.

use super::{Choices, Input};
use crate::differential::grammar::batch_address;
use crate::differential::layout::{BASE, HIGH, PAGE, at};
use crate::kernels::{ALONE_AT_BARRIER, COUNT, ENDLESS, kernel, set_address, taint};

/// Threads arrive at the barrier of the group, then each reads what all have added to shared local memory.
const MEET: &str = "
(W) and (1|M0) r10.0<1>:ud r0.2<0;1,0>:ud 0xFF:uw
(W) mov (1|M0) r11.0<1>:ud 0x0:ud
(W) send.slm (1|M0) null r11 r10:1 0x0 0x0200050C
(W) mov (1|M0) r12.0<1>:ud 0x0:ud
(W) mov (1|M0) r12.10<1>:ub r0.11<0;1,0>:ub
(W) mov (1|M0) r12.11<1>:ub r0.11<0;1,0>:ub
(W) send.gtwy (1|M0) null r12 null:0 0x0 0x02000004
(W) sync.bar null
(W) send.slm (1|M0) r13 r11 null:0 0x0 0x02100500
(W) mov (2|M0) r12.0<1>:ud r1.0<1;1,0>:ud
(W) send.ugm (1|M0) null r12 r13:1 0x0 0x0800058C
";
/// Adds to all of shared local memory and beyond it.
const BEYOND: &str = "
(W) mov (1|M0) r11.0<1>:ud 0x3F8:ud
(W) mov (8|M0) r10.0<1>:ud 0xAB:ud
(W) mov (1|M0) r15.0<1>:ud 0x40:ud
LOOP:
(W) send.slm (1|M0) null r11 r10:1 0x0 0x02000504
(W) send.slm (1|M0) r13 r11 null:0 0x0 0x02100500
(W) add (1|M0) r11.0<1>:ud r11.0<0;1,0>:ud 0x400:ud
(W) add (1|M0) r15.0<1>:d r15.0<0;1,0>:d -1:w
(W) cmp (1|M0) (ne)f0.0 null<1>:d r15.0<0;1,0>:d 0:w
(W&f0.0) jmpi LOOP
";
/// Loads, stores and adds by entry 0 of the binding table, with addresses of 16 lanes.
const BINDINGS: &str = "
(W) mov (16|M0) r44.0<1>:ud 0x10:ud
(W) mov (1|M0) r44.3<1>:ud 0xFFFFFFFC:ud
(W) mov (16|M0) r60.0<1>:ud 0x7:ud
send.ugm (16|M0) r20 r44 null:0 0x0 0x64200500
send.ugm (16|M0) null r44 r60:2 0x0 0x64000504
send.ugm (16|M0) null r44 r60:2 0x0 0x6400050C
send.ugm (16|M0) r20 r44 null:0 0x02000000 0x64200500
";
/// Loads by a surface state relative to the surface heap and the bindless heap, with scratch memory.
const HEAPS: &str = "
(W) mov (16|M0) r44.0<1>:ud 0x10:ud
(W) mov (16|M0) r60.0<1>:ud 0x7:ud
(W) mov (1|M0) a0.2<1>:ud 0x80:ud
send.ugm (16|M0) null r44 r60:2 a0.2 0x44000504
send.ugm (16|M0) r20 r44 null:0 a0.2 0x44200500
(W) mov (1|M0) a0.2<1>:ud 0x0:ud
send.ugm (16|M0) r20 r44 null:0 a0.2 0x24200500
";
/// Typed reads and writes, a media block, and a sample of the image, which is entry 3 of the binding table.
const IMAGES: &str = "
mov (8|M0) r10.0<1>:ud 0x3:ud
mov (8|M0) r11.0<1>:ud 0x2:ud
mov (8|M0) r40.0<1>:ud 0x55:ud
mov (8|M0) r41.0<1>:ud 0x55:ud
mov (8|M0) r42.0<1>:ud 0x55:ud
mov (8|M0) r43.0<1>:ud 0x55:ud
send.dc1 (8|M0) r20 r10 null:0 0x0 0x04415003
send.dc1 (8|M0) null r10 r40:4 0x0 0x04035003
(W) mov (1|M0) r10.2<1>:ud 0x1F:ud
(W) send.dc1 (1|M0) r31 r10 null:0 0x0 0x02190003
(W) send.dc1 (1|M0) null r10 r12:1 0x0 0x020A8003
send.smpl (8|M0) r20 r10 null:0 0x0 0x0442A003
";
/// Branches of channels.
const CHANNELS: &str = "
mov (16|M0) r20.0<1>:ud 0x0:ud
mov (8|M0) r22.0<1>:uw 0x76543210:uv
mov (16|M0) r24.0<1>:ud r22.0<1;1,0>:uw
LOOP:
add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x1:uw
cmp (16|M0) (gt)f0.0 null<1>:ud r24.0<1;1,0>:ud 0x0:uw
add (16|M0) r24.0<1>:d r24.0<1;1,0>:d -1:w
(f0.0) goto.b (16|M0) LOOP LOOP
join (16|M0) NEXT
NEXT:
";
/// Calls code by a pointer; that is the end of the thread of another kernel, or nothing.
const POINTERS: &str = "
(W) mov (1|M0) r5.4<1>:ud 0x1000:ud
calla (16|M0) r30.0 r5.4
(W) mov (1|M0) r5.0<1>:d 0x2000:w
(W) jmpi r5.0
";
/// Writes of state registers, and products of matrices.
const REGISTERS: &str = "
(W) mov (1|M0) sr0.2<1>:ud 0xFFFF:ud
(W) or (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x4C0:uw
(W) mov (8|M0) r20.0<1>:ud sr0.0<0;1,0>:ud
dpas.8x8 (8|M0) r64:d null:d r40:b r48.0:b
mul (8|M0) acc0.0<1>:d r20.0<8;8,1>:d r22.0<16;8,2>:uw
mach (8|M0) r22.0<1>:d r20.0<8;8,1>:d r23.0<8;8,1>:d
math.inv (8|M0) r24.0<1>:f r20.0<1;1,0>:f
";

/// A kernel of one access by 8 lanes with addresses of 64 bits, the first at `address` and each `distance` behind the one before.
fn lanes(address: u64, distance: u64, message: &str) -> String {
    let mut text = String::new();
    for lane in 0..8u32 {
        let at = address.wrapping_add(distance.wrapping_mul(lane.into()));
        let [low, high] = [at as u32, (at >> 32) as u32];
        let (register, sub) = (12 + lane / 4, lane % 4 * 2);
        text += &format!("(W) mov (1|M0) r{register}.{sub}<1>:ud {low:#x}:ud\n");
        text += &format!("(W) mov (1|M0) r{register}.{}<1>:ud {high:#x}:ud\n", sub + 1);
    }
    text + "mov (8|M0) r10.0<1>:ud 0x3:ud\n" + message + "\n"
}

/// A kernel that stores the dword `value` at `address`.
fn store(address: u64, value: u32) -> String {
    let mut text = format!("(W) mov (1|M0) r10.0<1>:ud {value:#x}:ud\n");
    set_address(&mut text, 12, address);
    text + "(W) send.ugm (1|M0) null r12 r10:1 0x0 0x08000584\n"
}

/// Returns the inputs, with names.
pub fn seeds() -> Vec<(String, Input)> {
    const LOAD: &str = "send.ugm (8|M0) r20 r12 null:0 0x0 0x04100580";
    const STORE: &str = "send.ugm (8|M0) null r12 r10:1 0x0 0x04000584";
    const ADD: &str = "send.ugm (8|M0) r20 r12 r10:1 0x0 0x0410058C";
    let mut texts: Vec<(String, String)> = [
        ("count", COUNT),
        ("endless", ENDLESS),
        ("alone", ALONE_AT_BARRIER),
        ("meet", MEET),
        ("beyond", BEYOND),
        ("bindings", BINDINGS),
        ("heaps", HEAPS),
        ("images", IMAGES),
        ("channels", CHANNELS),
        ("pointers", POINTERS),
        ("registers", REGISTERS),
        ("nothing", ""),
    ]
    .map(|(name, text)| (name.to_owned(), text.to_owned()))
    .into();
    let page = |page: u64| BASE + page * PAGE;
    let places = [
        ("data", page(at::DATA), 12),
        ("crossing", page(at::DATA) + PAGE - 2, 0),
        ("ram", page(at::RAM) + 4, 0x3fc),
        ("remote", page(at::REMOTE), 8),
        ("null", page(at::NULL), 64),
        ("read-only", page(at::READ_ONLY), 64),
        ("high", HIGH + page(at::DATA), 4),
        ("signed", 0xffff_8000_0000_0000, 0x1_0000_0000),
        ("status", page(at::PPHWSP), 4),
        ("foreign", page(at::FOREIGN), 4),
        ("tables", 0, 0x1000),
    ];
    for (place, address, distance) in places {
        for (kind, message) in [("load", LOAD), ("store", STORE), ("add", ADD)] {
            texts.push((format!("{kind}-{place}"), lanes(address, distance, message)));
        }
    }
    // The first instruction of the walker's own kernel, and a dword of its commands.
    texts.push(("own-code".into(), store(batch_address(1) + 8, 0x1234) + "L0:\n(W) jmpi L0\n"));
    texts.push(("own-commands".into(), store(batch_address(0) + 0x100, 0x7208_0025)));
    texts.push(("taint".into(), taint(128, 0, || 0xdead_beef)));
    let mut seeds = Vec::new();
    for (number, (name, text)) in (0u8..).zip(texts) {
        let code = kernel(&text).iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        // Functions, engines and costs in turn; half of the contexts leave the engine.
        let choices = Choices {
            flags: number & 3 | number << 3 & 0x20 | number << 5 & 0xc0 | u8::from(number % 5 == 4) << 3,
            shape: if name == "meet" || name == "beyond" { 0x25 } else { number % 2 },
            groups: 0x40 | number % 3,
            lanes: if number % 2 == 0 { 7 } else { 15 },
            second: 0,
        };
        seeds.push((name, Input { choices, changes: Vec::new(), code }));
    }
    let big: String = (200..256).map(|register| format!("(W) mov (8|M0) r{register}.0<1>:ud 0xAB:ud\n")).collect();
    let code = kernel(&big).iter().flat_map(|word| word.to_le_bytes()).collect();
    seeds.push((
        "large".into(),
        Input { choices: Choices { flags: 4, ..Choices::default() }, changes: Vec::new(), code },
    ));
    seeds
}
