// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state before a run: memory with page tables, commands and data, and the context image.

use std::sync::OnceLock;

use crate::differential::layout::*;
use crate::differential::world::Work;

/// Pattern that fills memory that the context must not access, to detect reads.
pub const CANARY: u64 = 0xca9a_271e_d00d_5afe;

/// Returns `len` bytes of canaries, at most the size of [`RAM`].
pub fn canaries(len: usize) -> &'static [u8] {
    static CANARIES: OnceLock<Vec<u8>> = OnceLock::new();
    &CANARIES.get_or_init(|| CANARY.to_le_bytes().repeat(RAM.1 / 8))[..len]
}

/// Initial contents of memory.
pub struct InitialMemory {
    /// The context's part of local memory: page tables and data.
    pub local: Vec<u8>,
    pub ram: Vec<u8>,
    pub remote: Vec<u8>,
}

/// Returns the initial contents of memory for data pages with `seed`, which is below [`FILLS`].
pub fn initial_memory(seed: u64) -> &'static InitialMemory {
    static CONTENTS: [OnceLock<InitialMemory>; FILLS as usize] = [const { OnceLock::new() }; FILLS as usize];
    CONTENTS[seed as usize % FILLS as usize].get_or_init(|| {
        let mut local = tables();
        for at in (GGTT_DATA..READ_ONLY + PAGE).step_by(4) {
            local[at as usize..at as usize + 4].copy_from_slice(&fill(seed, at).to_le_bytes());
        }
        let part = |first: u64, len: usize| {
            (0..len as u64 / 4).flat_map(|n| fill(seed, first + n * 4).to_le_bytes()).collect::<Vec<u8>>()
        };
        InitialMemory { local, ram: part(RAM.0, RAM.1), remote: part(REMOTE.0, REMOTE.1) }
    })
}

/// Returns local memory with the PPGTT tables: those of the addresses below [`HIGH`], and those of the addresses above.
fn tables() -> Vec<u8> {
    let mut local = vec![0; LOCAL_BYTES];
    let mut put = |at: u64, value: u64| {
        local[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
    };
    let halves = [(0, POINTERS, DIRECTORY, TABLE), (HIGH, HIGH_POINTERS, HIGH_DIRECTORY, HIGH_TABLE)];
    for (first, pointers, directory, table) in halves {
        put(ROOT + (first >> 39) * 8, pointers | 3);
        put(pointers, directory | 3);
        put(directory + (BASE >> 21) * 8, table | 3);
        for page in BASE / PAGE..BASE / PAGE + at::END {
            let entry = match ppgtt(first / PAGE + page) {
                Page::Local(at) => at | 0x803,
                Page::LocalReadOnly(at) => at | 0x801,
                Page::Guest(iova) => iova | 3,
                Page::Null => 0x203,
                Page::Foreign | Page::Unmapped => 0,
            };
            put(table + (page & 0x1ff) * 8, entry);
        }
    }
    local
}

/// Returns the context's part of local memory before a run.
pub fn initial_local(work: &Work) -> Vec<u8> {
    let mut local = initial_memory(work.fill).local.clone();
    let mut put = |at: u64, word: u32| local[at as usize..at as usize + 4].copy_from_slice(&word.to_le_bytes());
    for (n, words) in (0u64..).zip(&work.batches) {
        for (at, word) in (0u64..).zip(words).take(PAGE as usize / 4) {
            put(BATCHES + n * PAGE + at * 4, *word);
        }
    }
    for (at, word) in (0u32..).zip(&work.ring) {
        put(RING + u64::from((work.head + at * 4) % RING_BYTES), *word);
    }
    for (at, word) in (0u64..).zip(image(work.head, work.tail())) {
        put(IMAGE + at * 4, word);
    }
    local
}

/// Returns an image like xe's default image, without state that does not affect the run (V8-046, V8-047).
pub fn image(head: u32, tail: u32) -> Vec<u32> {
    let mut words = vec![0; 0xc00];
    let mut group = |at: usize, header: u32, pairs: &[(u32, u32)]| {
        words[at] = header;
        for (n, (offset, value)) in pairs.iter().enumerate() {
            words[at + 1 + 2 * n] = *offset;
            words[at + 2 + 2 * n] = *value;
        }
    };
    let ring = (BASE + at::RING * PAGE) as u32;
    group(
        1,
        0x1108_1019,
        &[
            // Restore inhibited, no synchronous switch.
            (0x244, 0x0009_0009),
            (0x034, head),
            (0x030, tail),
            (0x038, ring),
            (0x03c, RING_BYTES - 0x1000 | 1),
            (0x168, 0),
            (0x140, 0),
            (0x110, 0),
            (0x1c0, 0),
            (0x1c4, 0),
            (0x1c8, 0),
            (0x180, 0),
            (0x2b4, 0),
        ],
    );
    let pointers = [0x28c, 0x288, 0x284, 0x280, 0x27c, 0x278, 0x274, 0x270].map(|offset| (offset, 0));
    let mut pointers: Vec<(u32, u32)> = [(0x3a8, 0)].into_iter().chain(pointers).collect();
    pointers[8].1 = ROOT as u32;
    group(0x21, 0x1108_1011, &pointers);
    words
}
