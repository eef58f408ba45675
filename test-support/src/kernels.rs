// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Kernels of hostile and of ordinary contexts.

use std::fmt::Write;

use arctic_eu::text::assemble;
pub use arctic_mi::kernels::{ALONE_AT_BARRIER, COUNT, END_OF_THREAD, ENDLESS};

/// Bytes that each thread of [`probe`] writes.
pub const PROBE_BYTES: u64 = 64;
/// Bytes of shared local memory that one message of [`probe`] and [`taint`] accesses.
const SLM_BLOCK: u32 = 256;

/// Assembles a kernel that ends its thread, padded to a multiple of 16 bytes.
///
/// # Panics
/// If the text has an error.
pub fn kernel(text: &str) -> Vec<u32> {
    let bytes = assemble(&format!("{text}{END_OF_THREAD}")).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    let mut dwords: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|raw| u32::from_le_bytes(*raw)).collect();
    dwords.resize(dwords.len().next_multiple_of(4), 0);
    dwords
}

/// Instructions that set the qword `register`.`sub` to an immediate value.
pub fn set_address(text: &mut String, register: u32, address: u64) {
    for (sub, half) in [address as u32, (address >> 32) as u32].into_iter().enumerate() {
        writeln!(text, "(W) mov (1|M0) r{register}.{sub}<1>:ud {half:#x}:ud").unwrap();
    }
}

/// A kernel of which each thread stores the OR of all that it did not write: at `to` + 64 * thread, 8 dwords of its general and
/// architecture registers, then 8 dwords of the group's shared local memory. `registers` is 128 or 256, `slm` in bytes. In a
/// dispatch without inline data and local ids all of them are 0.
pub fn probe(registers: u32, slm: u32, to: u64) -> String {
    let mut text = String::new();
    for source in ["acc0.0<1;1,0>:ud", "acc1.0<1;1,0>:ud", "acc2.0<1;1,0>:ud", "acc3.0<1;1,0>:ud"] {
        writeln!(text, "(W) or (8|M0) r1.0<1>:ud r1.0<1;1,0>:ud {source}").unwrap();
    }
    for source in ["f0.0<0;1,0>:ud", "f1.0<0;1,0>:ud", "a0.0<0;1,0>:ud", "a0.2<0;1,0>:ud", "a0.4<0;1,0>:ud"] {
        writeln!(text, "(W) or (1|M0) r1.0<1>:ud r1.0<0;1,0>:ud {source}").unwrap();
    }
    for register in 2..registers {
        writeln!(text, "(W) or (8|M0) r1.0<1>:ud r1.0<1;1,0>:ud r{register}.0<1;1,0>:ud").unwrap();
    }
    text += "(W) mov (8|M0) r10.0<1>:ud r1.0<1;1,0>:ud\n(W) mov (8|M0) r11.0<1>:ud 0x0:ud\n";
    if slm != 0 {
        text += "(W) mov (1|M0) r14.0<1>:ud 0x0:ud\nSLM:\n(W) send.slm (1|M0) r20 r14 null:0 0x0 0x0280F500\n";
        for register in 20..28 {
            writeln!(text, "(W) or (8|M0) r11.0<1>:ud r11.0<1;1,0>:ud r{register}.0<1;1,0>:ud").unwrap();
        }
        writeln!(text, "(W) add (1|M0) r14.0<1>:ud r14.0<0;1,0>:ud {SLM_BLOCK:#x}:ud").unwrap();
        writeln!(text, "(W) cmp (1|M0) (lt)f0.0 null<1>:ud r14.0<0;1,0>:ud {slm:#x}:ud").unwrap();
        text += "(W&f0.0) jmpi SLM\n";
    }
    set_address(&mut text, 12, to);
    text += "
(W) and (1|M0) r15.0<1>:ud r0.2<0;1,0>:ud 0xff:ud
(W) shl (1|M0) r15.0<1>:ud r15.0<0;1,0>:ud 0x6:ud
(W) add (1|M0) r12.0<1>:ud r12.0<0;1,0>:ud r15.0<0;1,0>:ud
(W) send.ugm (1|M0) null r12 r10:2 0x0 0x0200D584
";
    text
}

/// Instructions that write the words of `word` to all registers from r2 on, to the accumulators, to flags and to shared local
/// memory.
pub fn taint(registers: u32, slm: u32, mut word: impl FnMut() -> u32) -> String {
    let mut text = String::new();
    for register in (2..registers).filter(|register| !(14..24).contains(register)) {
        writeln!(text, "(W) mov (8|M0) r{register}.0<1>:ud {:#x}:ud", word()).unwrap();
    }
    if slm != 0 {
        text += "(W) mov (1|M0) r14.0<1>:ud 0x0:ud\n";
        for register in 16..24 {
            writeln!(text, "(W) mov (8|M0) r{register}.0<1>:ud {:#x}:ud", word()).unwrap();
        }
        text += "FILL:\n(W) send.slm (1|M0) null r14 r16:8 0x0 0x0200F504\n";
        writeln!(text, "(W) add (1|M0) r14.0<1>:ud r14.0<0;1,0>:ud {SLM_BLOCK:#x}:ud").unwrap();
        writeln!(text, "(W) cmp (1|M0) (lt)f0.0 null<1>:ud r14.0<0;1,0>:ud {slm:#x}:ud").unwrap();
        text += "(W&f0.0) jmpi FILL\n";
    }
    for register in 14..24 {
        writeln!(text, "(W) mov (8|M0) r{register}.0<1>:ud {:#x}:ud", word()).unwrap();
    }
    for target in ["acc0", "acc1", "acc2", "acc3"] {
        writeln!(text, "(W) mov (8|M0) {target}.0<1>:ud {:#x}:ud", word()).unwrap();
    }
    for target in ["f0.0", "f1.0", "a0.0", "a0.2", "a0.4"] {
        writeln!(text, "(W) mov (1|M0) {target}<1>:ud {:#x}:ud", word()).unwrap();
    }
    text
}
