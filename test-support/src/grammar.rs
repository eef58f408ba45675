// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Generates mostly valid commands from the command tables, with operands that address memory and registers that a
//! guest must not access.

use arctic_device_model::command::blt;
use arctic_device_model::command::{self, Length};
use arctic_device_model::guc::actions;
use arctic_device_model::topology::EngineClass;

use crate::driver::{CONTEXTS, Places};
use crate::mi::{self, Global};
use crate::random::Random;

/// PPGTT addresses that are not mapped or not writable.
const HOLES: [u64; 7] = [0x18_4000, 0x19_0000, 0x19_4000, 0x60_0000, 0xc0_0000, 0x7fff_f000, 0xffff_ffff_f000];
/// PPGTT addresses of local memory, mapped and message-based guest memory, and NULL pages, with all page sizes.
const PAGES: [u64; 8] = [0, 0xf_f000, 0x10_0000, 0x17_f000, 0x18_0000, 0x20_0000, 0x40_0000, 0x80_0000];

impl Places {
    /// Returns a PPGTT address: mapped, at the end of a mapping, or unmapped.
    pub fn process_address(&self, random: &mut Random) -> u64 {
        match random.below(64) {
            0 => random.edge(),
            1 => random.of(&HOLES) + random.below(4096),
            2 => 0x4000_0000 + self.scratch + random.below(1 << 22),
            3..8 => self.batch(random.below(u64::from(CONTEXTS)) as u32) + random.below(64) * 4,
            _ => random.of(&PAGES) + random.below(4096),
        }
    }

    /// Returns a GGTT address: data structures of the GuC and of the streamers, guest memory, or unmapped.
    pub fn global_address(&self, random: &mut Random) -> u64 {
        let context = random.below(u64::from(CONTEXTS)) as u32;
        match random.below(28) {
            0 => random.edge(),
            1 => self.ctb + random.below(0x3000),
            2 => self.image(context, 0) + random.below(0x2000),
            3 => self.ring(context, 0) + random.below(0x1000),
            4 => self.batch(context) + random.below(0x1000),
            5 => self.tables + random.below(0x6000),
            6 => self.ram + random.below(0x4_0000),
            7 => self.remote + random.below(0x5000),
            8 => self.odd + random.below(0x10),
            9 => self.queues + random.below(0x2000),
            _ => self.scratch + random.below(0x1_0000),
        }
    }

    /// Returns one MI command.
    fn memory_interface(&self, random: &mut Random, class: EngineClass, listing: &[u32]) -> Vec<u32> {
        let command = loop {
            let command = &command::mi::COMMANDS[random.below(command::mi::COMMANDS.len() as u64) as usize];
            if command.classes.has(class) || random.one_in(100) {
                break command;
            }
        };
        let flags = match random.below(4) {
            0 | 1 => 0,
            2 => 1 << random.below(23),
            _ => random.any() as u32 & 0x7f_ffff,
        };
        let opcode = u32::from(command.opcode) << 23;
        let mask = command.length.mask();
        if command.length == Length::SINGLE {
            return vec![opcode | flags];
        }
        let least = u32::from(command.least).max(2);
        let dwords = match random.below(8) {
            0 => 2 + (random.any() as u32 & mask).min(200),
            1..=4 => least + random.below(3) as u32,
            _ => least,
        };
        let header = opcode | flags & !mask | (dwords - 2) & mask;
        let mut words = vec![header];
        let global = header >> 22 & 1 != 0;
        while words.len() < dwords as usize {
            let address = if global { self.global_address(random) } else { self.process_address(random) };
            match random.below(4) {
                0 => words.extend([register(random, listing), random.dword()]),
                1 => words.push(random.dword()),
                // ALU instructions of MI_MATH.
                2 if command.opcode == 0x1a => {
                    let opcode =
                        random.of(&[0x080, 0x081, 0x082, 0x100, 0x101, 0x105, 0x107, 0x180, 0x181, 0x480, 0x580]);
                    words.push(opcode << 20 | random.below(64) as u32 * 1024 | random.below(64) as u32);
                }
                _ => words.extend([address as u32, (address >> 32) as u32]),
            }
        }
        words.truncate(dwords as usize);
        words
    }

    /// Returns one copy engine command.
    fn blit(&self, random: &mut Random) -> Vec<u32> {
        let command = &blt::COMMANDS[random.below(blt::COMMANDS.len() as u64) as usize];
        let dwords = random.of(command.lengths);
        let mut words = vec![2 << 29 | u32::from(command.opcode) << 22 | dwords as u32 - 2];
        if random.one_in(3) {
            words[0] |= random.any() as u32 & 0x3f_ff00;
        }
        for at in 1..dwords {
            words.push(match (at, random.below(5)) {
                // Typical pitches, corners and addresses; otherwise any value.
                (1, 0..4) => 3 << 24 | random.of(&[64, 512, 4096, 0x7fff]),
                (2, 0..4) => random.below(64) as u32 | (random.below(64) as u32) << 16,
                (3, 0..4) => random.below(2048) as u32 | (random.below(2048) as u32) << 16,
                (4 | 8, 0..4) => self.process_address(random) as u32,
                (5 | 6 | 9, 0..4) => 0,
                (7, 0..4) => random.of(&[64, 512, 4096]),
                (_, 0) if random.one_in(4) => random.dword(),
                (_, 1) if random.one_in(4) => random.any() as u32 & 0x7fff_7fff,
                _ => 0,
            });
        }
        words
    }

    /// Returns one command for an engine of `class`, mostly well-formed.
    pub fn command(&self, random: &mut Random, class: EngineClass, listing: &[u32]) -> Vec<u32> {
        let mut words = match random.below(12) {
            0..4 if class == EngineClass::Copy => self.blit(random),
            // 3D and compute pipeline commands, with any length.
            0 => {
                let len = random.below(12) as u32;
                let mut words = vec![3 << 29 | random.any() as u32 & 0x1fff_0000 | len];
                words.extend((0..=len).map(|_| random.dword()));
                words
            }
            // PIPE_CONTROL.
            1 | 2 if matches!(class, EngineClass::Render | EngineClass::Compute) => {
                let (flags, global) = (random.any() as u32 & !(1 << 24 | 1 << 21), random.one_in(2));
                let at = if global { self.global_address(random) } else { self.process_address(random) };
                let flags = flags | u32::from(global) << 24;
                vec![0x7a00_0004, flags, at as u32, (at >> 32) as u32, random.dword(), random.dword()]
            }
            // MI_BATCH_BUFFER_START of any batch, which creates loops and nested batches.
            3 => {
                let to = self.batch(random.below(u64::from(CONTEXTS)) as u32) + random.below(16) * 4;
                let mut words = mi::batch_buffer_start(Global(to)).to_vec();
                words[0] |= random.of(&[0, 1 << 8, 1 << 22, 1 << 22 | 1 << 8]);
                words
            }
            _ => self.memory_interface(random, class, listing),
        };
        if random.one_in(100) {
            let at = random.below(words.len() as u64) as usize;
            words[at] ^= 1 << random.below(32);
        }
        words
    }

    /// Returns a stream of at most `dwords` dwords; it may end within a command, or with the end of a batch.
    pub fn stream(&self, random: &mut Random, class: EngineClass, listing: &[u32], dwords: usize) -> Vec<u32> {
        let mut words = Vec::new();
        while words.len() < dwords && !random.one_in(40) {
            words.extend(self.command(random, class, listing));
        }
        words.truncate(dwords - 1);
        if !random.one_in(6) {
            words.push(mi::BATCH_BUFFER_END);
        }
        words
    }
}

/// Returns a register offset, absolute or relative to the engine's base.
fn register(random: &mut Random, listing: &[u32]) -> u32 {
    match random.below(4) {
        0 => random.dword(),
        1 => random.below(0x800) as u32 & !3,
        2 => 0x600 + random.below(32) as u32 * 4,
        _ => random.of(listing),
    }
}

/// Returns items of a parallel context's work queue: submissions of context `id` with `width` members, NOOPs, and
/// random dwords.
pub fn work_items(random: &mut Random, id: u32, width: u32) -> Vec<u32> {
    (0..random.below(64))
        .flat_map(|_| match random.below(4) {
            0 => vec![random.dword()],
            1 => vec![4 | (random.below(4) as u32) << 16],
            _ => {
                let mut item = vec![5 | (width + 2) << 16, random.dword(), id | random.below(512) as u32 * 8 << 15];
                item.resize(3 + width as usize, random.below(512) as u32);
                item
            }
        })
        .collect()
}

/// Returns a number of payload dwords, mostly valid for an action with this `length`.
pub fn payload_len(random: &mut Random, length: actions::Length) -> usize {
    let least = match length {
        actions::Length::Exact(n) | actions::Length::AtLeast(n) | actions::Length::Pairs(n) => n,
        actions::Length::Either(a, b) => random.of(&[a, b]),
    };
    match random.below(6) {
        0 => random.below(254) as usize,
        1 => least + random.below(8) as usize,
        _ => least,
    }
}
