// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands and addresses that target resources of other functions.

use arctic_device_model::host::Function;
use arctic_device_model::memory::ggtt::GgttEntry;
use arctic_device_model::topology::EngineClass;
use arctic_test_support::mi::blt::{self, Area, Control, Depth, Surface};
use arctic_test_support::mi::{self, At, Compare, Global, PostSync, Reg};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::others::PF_GLOBAL;
use arctic_test_support::vfs::world::{ODD, RAM, REMOTE, private};

/// Returns an address of local memory that is usually outside the attacker's quota.
pub fn foreign_local(random: &mut Random) -> u64 {
    match random.below(6) {
        // If used untranslated as a device address: a frame of any VF or of the PF.
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

/// Returns a guest-physical address in memory of the attacker's guest or in memory that only one function's guest maps,
/// or an arbitrary or boundary value.
pub fn foreign_system(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => RAM.0 + random.below(RAM.1 + 0x2000),
        1 => REMOTE.0 + random.below(REMOTE.1),
        2 => ODD.0,
        3 => random.edge(),
        _ => private(Function::new(random.below(4) as u8).unwrap()) + random.below(0x1_0000),
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
        _ => random.of(&[
            0,
            0x3f_f000,
            base(Function::new(4).unwrap()),
            0xfee0_0000,
            0xffff_f000,
            0xffff_fffc,
            base(ATTACKER) - 4,
        ]),
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
        0 => (foreign_local(random), true),
        _ => (foreign_system(random), false),
    };
    let flags = match random.below(4) {
        0 => GgttEntry::from(random.below(0x1000)),
        1 => GgttEntry::assigned(random.below(8) as u8),
        _ => GgttEntry::assigned(VICTIMS[0].number()),
    };
    address & !0xfff | u64::from(flags.with_local(local)) | if random.one_in(8) { random.any() << 46 } else { 0 }
}

/// Returns a forged PPGTT entry.
pub fn process_entry(random: &mut Random) -> u64 {
    let flags = match random.below(4) {
        0 => random.below(0x1000),
        1 => 0x3 | random.of(&[0, 0x40, 0x80, 0x100]),
        _ => LOCAL_PAGE | random.of(&[0, 0x80, 0x100]),
    };
    let address = match random.below(3) {
        0 => foreign_system(random),
        // References to the attacker's page tables.
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

/// Returns a GGTT address for results, in the attacker's memory.
fn own(random: &mut Random) -> u64 {
    SCRATCH + random.below(0x4000) * 4
}

/// Returns a command that reads or writes a target; data that it reads is stored in the attacker's memory.
pub fn command(random: &mut Random, class: EngineClass, registers: &[u32]) -> Vec<u32> {
    let (to, global) = target(random);
    let (address, to, aligned) = (to, At::new(global, to & !3), At::new(global, to & !7));
    let home = Global(own(random));
    let data = random.dword();
    let both = u64::from(data) << 32 | u64::from(data);
    let write = PostSync::Immediate(both);
    let gpr = Reg::Own(mi::GPR0);
    match random.below(14) {
        0 => mi::store_data_imm(to, data).to_vec(),
        1 => mi::store_data_imm_qword(aligned, both).to_vec(),
        2 | 3 => [mi::load_register_mem(gpr, to), mi::store_register_mem(gpr, home)].concat(),
        4 => mi::store_register_mem(Reg::Mmio(random.of(registers)), to).to_vec(),
        5 => mi::store_register_mem(Reg::Mmio(random.of(registers)), home).to_vec(),
        6 => mi::load_register_imm(Reg::Mmio(random.of(registers)), data).to_vec(),
        7 => mi::load_register_reg(Reg::Mmio(random.of(registers)), Reg::Mmio(random.of(registers))).to_vec(),
        8 => mi::copy_mem_mem(home, to).to_vec(),
        9 => mi::copy_mem_mem(to, home).to_vec(),
        10 => mi::atomic(random.below(0x40) as u32 % 24, aligned).to_vec(),
        11 => mi::semaphore_wait(to, random.of(&Compare::ALL), data).to_vec(),
        12 if class == EngineClass::Copy => blit(random),
        13 if matches!(class, EngineClass::Render | EngineClass::Compute) => mi::pipe_control(aligned, write).to_vec(),
        12 => mi::batch_buffer_start(At::new(random.one_in(2), address & !3)).to_vec(),
        _ => mi::flush_dw(aligned, write).to_vec(),
    }
}

/// Returns a copy, a fill or a control surface copy. Its PPGTT addresses are in a range with pages of all kinds.
fn blit(random: &mut Random) -> Vec<u32> {
    let address = |random: &mut Random| random.below(0x200_0000) & !0x3f;
    let (to, from, home) = (address(random), address(random), own(random) & !0x3f);
    let surface = |address| Surface::linear(address, 64);
    let area = Area::of(16, 1 + random.below(32) as u32);
    let copy = |to, from| blt::fast_copy(&surface(from), area, &surface(to), 0, 0, Depth::Bits32).to_vec();
    match random.below(5) {
        0 => copy(home, from),
        1 => copy(to, from),
        2 => blt::color(&surface(to), Depth::Bits32, area, random.dword()).to_vec(),
        how => {
            // Copies compression control data to or from memory.
            let blocks = 1 + random.below(4) as u32;
            let (from, to, home) = (from & !0xfff, to & !0xfff, home & !0xfff);
            match how {
                3 => blt::ctrl_surf_copy(Control::Memory(home), Control::Surface(from), blocks).to_vec(),
                _ => blt::ctrl_surf_copy(Control::Surface(to), Control::Memory(home), blocks).to_vec(),
            }
        }
    }
}

/// Returns one to four commands generated by [`command`], without MI_BATCH_BUFFER_END.
pub fn stream(random: &mut Random, class: EngineClass, registers: &[u32]) -> Vec<u32> {
    let mut words = Vec::new();
    for _ in 0..1 + random.below(4) {
        words.extend(command(random, class, registers));
    }
    words
}
