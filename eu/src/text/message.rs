// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Description of messages in comments (groups N to R of the document on the ISA).

use crate::isa::descriptor::{
    ATOMIC, ATOMIC_UPPER, BLOCK_SIZE, DISABLED, HEADER, HWORDS, KIND, LENGTH, RESPONSE, SAMPLER, SAMPLER_KIND,
    SAMPLER_NARROW_RESULT, SCRATCH, SCRATCH_SIZE, SCRATCH_WRITE, dc0, dc1,
};
use crate::isa::{Descriptor, Instruction};

/// Names of LSC operations. ISA-211.
const LSC: [&str; 32] = [
    "load",
    "load_strided",
    "load_quad",
    "load_block2d",
    "store",
    "store_strided",
    "store_quad",
    "store_block2d",
    "atomic_iinc",
    "atomic_idec",
    "atomic_load",
    "atomic_store",
    "atomic_iadd",
    "atomic_isub",
    "atomic_smin",
    "atomic_smax",
    "atomic_umin",
    "atomic_umax",
    "atomic_icas",
    "atomic_fadd",
    "atomic_fsub",
    "atomic_fmin",
    "atomic_fmax",
    "atomic_fcas",
    "atomic_and",
    "atomic_or",
    "atomic_xor",
    "load_status",
    "store_uncompressed",
    "ccs",
    "read_state",
    "fence",
];

/// Names of typed atomic operations by their codes (IGA `MessageDecoderHDC.cpp`).
const TYPED_ATOMICS: [&str; 16] = [
    "64b integer compare and swap",
    "logical AND",
    "logical OR",
    "logical XOR",
    "store",
    "integer increment",
    "integer decrement",
    "integer add",
    "integer subtract",
    "commuted integer subtract",
    "signed-integer max",
    "signed-integer min",
    "unsigned-integer max",
    "unsigned-integer min",
    "integer compare and swap",
    "integer pre-decrement (returns pre-decrement value)",
];

/// Names of messages to the sampler by their types (IGA `MessageDecoderOther.cpp`).
const SAMPLER_KINDS: [&str; 32] = [
    "sample",
    "sample+LOD bias",
    "sample override LOD",
    "sample compare",
    "sample gradient",
    "sample compare+LOD bias",
    "sample compare+override LOD",
    "sample load",
    "sample gather4",
    "sample override lod",
    "sample res info",
    "sample info",
    "sample+killpix",
    "?",
    "?",
    "?",
    "sample gather4+compare",
    "sample gather4+pixel offset",
    "sample gather4 pixel offset+compare",
    "?",
    "sample derivatives+compare",
    "?",
    "sample min",
    "sample max",
    "sample with lod forced to 0",
    "sample compare+with lod forced to 0",
    "sample load with lod forced to 0",
    "?",
    "sample ld2 multi-sample wide",
    "sample load mcs auxiliary data",
    "sample load multi-sample",
    "sample multi-sample without mcs",
];

/// Lengths and operation of a message, as in `wr:2+0, rd:2; load.ugm.d32.a32.ca.ca.bti[0]`.
pub fn describe(from: &Instruction) -> String {
    let send = &from.send;
    let Descriptor::Imm(desc) = send.desc else {
        let length = match send.ex_desc {
            Descriptor::Reg(sub) if !send.exbso => format!("a0.{sub}[10:6]"),
            _ => send.src1_length.to_string(),
        };
        return format!("wr:a0.0[28:25]+{length}, rd:a0.0[24:20]");
    };
    let lsc = matches!(from.modifier, 13..=15);
    let header = if !lsc && HEADER.is_set32(desc) { "h" } else { "" };
    let source1 = match send.ex_desc {
        Descriptor::Reg(sub) if !send.exbso => format!("a0.{sub}[10:6]"),
        _ => send.src1_length.to_string(),
    };
    let lengths = format!("wr:{}{header}+{source1}, rd:{}", LENGTH.get32(desc), RESPONSE.get32(desc));
    let meaning = match from.modifier {
        13..=15 => lsc_text(from, desc),
        10 => data_port_0(desc),
        12 => data_port_1(desc),
        3 => gateway(desc).to_string(),
        2 => sampler(desc),
        _ => String::new(),
    };
    if meaning.is_empty() { lengths } else { format!("{lengths}; {meaning}") }
}

fn lsc_text(from: &Instruction, desc: u32) -> String {
    let port = ["tgm", "slm", "ugm"][usize::from(from.modifier - 13)];
    let operation = desc & 63;
    let Some(name) = LSC.get(operation as usize) else { return String::new() };
    if operation == 31 {
        return fence(port, desc);
    }
    let size = ["d8", "d16", "d32", "d64", "d8u32", "d16u32", "d16u32h", "?"][(desc >> 9 & 7) as usize];
    let quad = matches!(operation, 2 | 6);
    let vector = if quad {
        let names: String =
            "xyzw".chars().enumerate().filter(|(bit, _)| desc >> (12 + bit) & 1 != 0).map(|(_, c)| c).collect();
        format!(".{names}")
    } else {
        let count = [1, 2, 3, 4, 8, 16, 32, 64][(desc >> 12 & 7) as usize];
        let transposed = desc >> 15 & 1 != 0;
        let count = if count > 1 || transposed { format!("x{count}") } else { String::new() };
        format!("{count}{}", if transposed { "t" } else { "" })
    };
    let address = ["?", "a16", "a32", "a64"][(desc >> 7 & 3) as usize];
    let load = matches!(operation, 0..=3 | 27);
    let cache = match (desc >> 17 & 7, load) {
        _ if port == "slm" => "",
        (0, _) => "",
        (1, _) => ".uc.uc",
        (2, true) => ".uc.ca",
        (2, false) => ".uc.wb",
        (3, true) => ".ca.uc",
        (3, false) => ".wt.uc",
        (4, true) => ".ca.ca",
        (4, false) => ".wt.wb",
        (5, _) => ".st.uc",
        (6, true) => ".st.ca",
        (6, false) => ".st.wb",
        (_, true) => ".ri.ca",
        (_, false) => ".wb.wb",
    };
    let surface = match (desc >> 29 & 3, from.send.ex_desc) {
        (0, _) => String::new(),
        (3, Descriptor::Imm(value)) => format!(".bti[{}]", value >> 24),
        (kind, Descriptor::Imm(value)) => format!(".{}[0x{:X}]", ["", "bss", "ss", ""][kind as usize], value & !0x7ff),
        (kind, Descriptor::Reg(sub)) => format!(".{}[a0.{sub}]", ["", "bss", "ss", "bti"][kind as usize]),
    };
    format!("{name}.{port}.{size}{vector}.{address}{cache}{surface}")
}

fn fence(port: &str, desc: u32) -> String {
    let flush = ["none", "evict", "invalidate", "discard", "clean", "flushl3", "?", "?"][(desc >> 12 & 7) as usize];
    if flush == "?" {
        let scope = ["thread-group", "local", "tile", "gpu", "gpus", "system release", "system acquire", "?"];
        return format!("fence invalid flush type scoped to {}", scope[(desc >> 9 & 7) as usize]);
    }
    let scope = ["group", "local", "tile", "gpu", "gpus", "sysrel", "sysacq", "?"][(desc >> 9 & 7) as usize];
    format!("fence.{port}.{flush}.{scope}")
}

/// ISA-225.
fn data_port_0(desc: u32) -> String {
    if SCRATCH.is_set32(desc) {
        let direction = if SCRATCH_WRITE.is_set32(desc) { "write" } else { "read" };
        return format!("hword scratch block {direction} x{}", 1 << SCRATCH_SIZE.get32(desc));
    }
    match KIND.get32(desc) {
        kind @ (dc0::OWORD_READ | dc0::OWORD_ALIGNED_READ) => {
            let size = ["x1L", "x1H", "x2", "x4", "x8", "x16", "?", "?"][BLOCK_SIZE.get32(desc) as usize];
            let unit = if HWORDS.is_set32(desc) { "hword" } else { "oword" };
            let aligned = if kind == dc0::OWORD_ALIGNED_READ { "aligned " } else { "" };
            format!("{unit} {aligned}block read {size}")
        }
        dc0::FENCE => "fence".into(),
        dc0::OWORD_WRITE => "oword block write".into(),
        _ => String::new(),
    }
}

/// ISA-226, ISA-228: the mask disables channels.
fn data_port_1(desc: u32) -> String {
    let disabled = DISABLED.get32(desc);
    let channels: String =
        "xyzw".chars().enumerate().filter(|(bit, _)| disabled >> bit & 1 == 0).map(|(_, c)| c).collect();
    match KIND.get32(desc) {
        dc1::TYPED_READ => format!("typed surface read with {channels}{}", coordinates(desc)),
        dc1::TYPED_WRITE => format!("typed surface write with {channels}{}", coordinates(desc)),
        dc1::TYPED_ATOMIC => {
            let slots = if ATOMIC_UPPER.is_set32(desc) {
                "_sgh atomic 32-bit integer (slot group high)"
            } else {
                " atomic 32-bit integer"
            };
            format!("typed{slots} {}", TYPED_ATOMICS[ATOMIC.get32(desc) as usize])
        }
        dc1::UNTYPED_READ => format!("untyped surface read with {channels}"),
        dc1::UNTYPED_WRITE => format!("untyped surface write with {channels}"),
        _ => String::new(),
    }
}

/// Coordinates in the registers of source 0.
fn coordinates(desc: u32) -> &'static str {
    ["", "; u", "; u,v", "; u,v,r", "; u,v,r,lod"].get(LENGTH.get32(desc) as usize).copied().unwrap_or_default()
}

/// ISA-240.
fn gateway(desc: u32) -> &'static str {
    match desc & 15 {
        0 => "end of thread",
        1 => "signal event",
        2 => "monitor event",
        3 => "unmonitor event",
        4 => "signal barrier",
        6 => "wait for event",
        _ => "",
    }
}

/// ISA-250, ISA-251.
fn sampler(desc: u32) -> String {
    let width = match desc >> 17 & 3 | (desc >> 29 & 1) << 2 {
        1 => "simd8",
        2 => "simd16",
        3 => "simd32/64",
        5 => "simd8 high",
        6 => "simd16 high",
        _ => "simd",
    };
    let result = if SAMPLER_NARROW_RESULT.is_set32(desc) { " 16b" } else { "" };
    let kind = SAMPLER_KINDS[SAMPLER_KIND.get32(desc) as usize];
    format!("{width}{result} {kind} using sampler index {}", SAMPLER.get32(desc))
}
