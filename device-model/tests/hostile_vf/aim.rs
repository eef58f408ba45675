// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands and addresses that target resources of other functions.

use arctic_device_model::engine::id::EngineClass;
use arctic_device_model::world::Function;

use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::others::PF_GLOBAL;
use arctic_test_support::vfs::world::{ODD, RAM, REMOTE, private};

/// Returns an address of local memory outside the attacker's quota or address space.
pub fn foreign_local(random: &mut Random) -> u64 {
    match random.below(6) {
        // As device address: frames of the victims and the PF.
        0 => random.below(5 * LOCAL),
        // Slightly beyond the quota.
        1 => LOCAL + random.below(4 << 20),
        // The LMTT and the compression control data.
        2 => (1 << 30) - random.below(128 << 20),
        3 => (32 << 30) - 0x2000 + random.below(0x4000),
        4 => random.edge(),
        _ => LOCAL - 0x1000 + random.below(0x2000),
    }
}

/// Returns a guest-physical address: the attacker's own memory, or memory that only other functions' guests have.
pub fn foreign_system(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => RAM.0 + random.below(RAM.1 + 0x2000),
        1 => REMOTE.0 + random.below(REMOTE.1),
        2 => ODD.0,
        3 => random.edge(),
        _ => private(Function(random.below(4) as u8)) + random.below(0x1_0000),
    }
}

/// Returns a GGTT address of another function.
pub fn foreign_global(random: &mut Random) -> u64 {
    let of = |victim: Function, random: &mut Random| match random.below(3) {
        0 => base(victim) + at::RAM + random.below(RAM.1),
        1 => {
            base(victim)
                + random.of(&[0, 0x1000, 0x2000, at::RINGS, at::IMAGES, at::IMAGES + 0x4000])
                + random.below(0x1000)
        }
        _ => base(victim) + random.below(LOCAL),
    };
    match random.below(8) {
        0..3 => of(VICTIMS[0], random),
        3..6 => of(VICTIMS[1], random),
        6 => PF_GLOBAL + random.below(0x2_0000),
        _ => random.of(&[0, 0x3f_f000, base(Function(4)), 0xfee0_0000, 0xffff_f000, 0xffff_fffc, base(ATTACKER) - 4]),
    }
}

/// Returns an address in the part of the attacker's GGTT range with forged entries.
pub fn window(random: &mut Random) -> u64 {
    let pages = (at::WINDOW.end - at::WINDOW.start) >> 12;
    base(ATTACKER) + at::WINDOW.start + (random.below(pages) << 12) + random.below(0x1000)
}

/// Returns a forged GGTT entry.
pub fn entry(random: &mut Random) -> u64 {
    let (address, local) = match random.below(2) {
        0 => (foreign_local(random), 2),
        _ => (foreign_system(random), 0),
    };
    let flags = match random.below(4) {
        0 => random.below(0x1000),
        1 => random.below(8) << 2 | 1,
        _ => u64::from(VICTIMS[0].0) << 2 | 1,
    };
    address & !0xfff | flags & !2 | local | if random.one_in(8) { random.any() << 46 } else { 0 }
}

/// Returns a forged PPGTT entry.
pub fn process_entry(random: &mut Random) -> u64 {
    let flags = match random.below(4) {
        0 => random.below(0x1000),
        1 => 0x3 | random.of(&[0, 0x40, 0x80, 0x100]),
        _ => 0x803 | random.of(&[0, 0x80, 0x100]),
    };
    let address = match random.below(3) {
        0 => foreign_system(random),
        // References to its own page tables.
        1 if random.one_in(2) => at::TABLES + random.below(8) * 0x1000,
        _ => foreign_local(random),
    };
    address & !0xfff | flags
}

/// Returns a target address, and whether it is a GGTT address.
fn target(random: &mut Random) -> (u64, bool) {
    match random.below(4) {
        0 => (foreign_global(random), true),
        1 | 2 => (window(random), true),
        _ => (random.below(0x200_0000), false),
    }
}

/// Returns an address of the attacker's own memory for results.
fn own(random: &mut Random) -> u64 {
    SCRATCH + random.below(0x4000) * 4
}

/// Returns a command that reads or writes a target; data that it reads is stored in the attacker's memory.
pub fn command(random: &mut Random, class: EngineClass, registers: &[u32]) -> Vec<u32> {
    let (to, global) = target(random);
    let (to, high, gg) = (to as u32 & !3, (to >> 32) as u32, u32::from(global) << 22);
    let home = own(random) as u32;
    let data = random.dword();
    match random.below(14) {
        0 => vec![0x20 << 23 | gg | 2, to, high, data],
        1 => vec![0x20 << 23 | gg | 1 << 21 | 3, to & !7, high, data, data],
        // Register from memory, then to memory.
        2 | 3 => {
            vec![0x29 << 23 | gg | 1 << 19 | 2, 0x600, to, high, 0x24 << 23 | 1 << 22 | 1 << 19 | 2, 0x600, home, 0]
        }
        4 => vec![0x24 << 23 | gg | 2, random.of(registers), to, high],
        5 => vec![0x24 << 23 | 1 << 22 | 2, random.of(registers), home, 0],
        6 => vec![0x22 << 23 | 1, random.of(registers), data],
        7 => vec![0x2a << 23 | 1, random.of(registers), random.of(registers)],
        // Memory to memory: bit 22 selects the source's address space, bit 21 the destination's.
        8 => vec![0x2e << 23 | gg | 1 << 21 | 3, home, 0, to, high],
        9 => vec![0x2e << 23 | gg >> 1 | 1 << 22 | 3, to, high, home, 0],
        10 => vec![0x2f << 23 | gg | random.below(0x40) as u32 % 24 << 8 | 1, to & !7, high],
        11 => vec![0x1c << 23 | gg | 1 << 15 | (random.below(6) as u32) << 12 | 3, data, to, high, 0],
        12 if class == EngineClass::Copy => blit(random),
        13 if matches!(class, EngineClass::Render | EngineClass::Compute) => {
            vec![0x7a00_0004, 1 << 14 | 1 << 20 | gg << 2, to & !7, high, data, data]
        }
        12 => vec![0x31 << 23 | random.of(&[0, 1 << 8]) | 1, to, high],
        _ => vec![0x26 << 23 | 1 << 14 | 3, to & !7 | u32::from(global) << 2, high, data, data],
    }
}

/// Returns a copy, fill or control surface copy with PPGTT addresses, which map pages of all kinds.
fn blit(random: &mut Random) -> Vec<u32> {
    let address = |random: &mut Random| random.below(0x200_0000) as u32 & !0x3f;
    let (to, from) = (address(random), address(random));
    let home = own(random) as u32 & !0x3f;
    let rectangle = 16 | (1 + random.below(32) as u32) << 16;
    match random.below(5) {
        // XY_FAST_COPY_BLT, 32 bits per pixel.
        0 => vec![2 << 29 | 0x42 << 22 | 8, 3 << 24 | 64, 0, rectangle, home, 0, 0, 64, from, 0],
        1 => vec![2 << 29 | 0x42 << 22 | 8, 3 << 24 | 64, 0, rectangle, to, 0, 0, 64, from, 0],
        2 => vec![2 << 29 | 0x50 << 22 | 5, 3 << 24 | 0xf0 << 16 | 64, 0, rectangle, to, 0, random.dword()],
        // XY_CTRL_SURF_COPY_BLT: compression control to memory, and back.
        3 => {
            vec![2 << 29 | 0x48 << 22 | 3 | 1 << 20 | (random.below(4) as u32) << 8, from & !0xfff, 0, home & !0xfff, 0]
        }
        _ => vec![2 << 29 | 0x48 << 22 | 3 | 1 << 21 | (random.below(4) as u32) << 8, home & !0xfff, 0, to & !0xfff, 0],
    }
}

/// Returns a short stream of such commands, without a loop.
pub fn stream(random: &mut Random, class: EngineClass, registers: &[u32]) -> Vec<u32> {
    let mut words = Vec::new();
    for _ in 0..1 + random.below(4) {
        words.extend(command(random, class, registers));
    }
    words
}
