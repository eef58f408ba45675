// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of the compute pipeline: walkers and the state that kernels depend on
//! (compute-runtime: `hw_cmds_generated_xe_hpg_core.inl`; Mesa: `gen125.xml`).

use crate::{high, low};

const COMPUTE_WALKER: u32 = 0x7208_0025;
const STATE_BASE_ADDRESS: u32 = 0x6101_0014;
const STATE_COMPUTE_MODE: u32 = 0x6105_0000;
const CFE_STATE: u32 = 0x7200_0004;
/// The command changes the base address.
const MODIFY: u32 = 1;
/// COMPUTE_WALKER dword 4: a register of inline data follows the local ids.
const EMIT_INLINE: u32 = 1 << 25;
/// STATE_COMPUTE_MODE: threads have 256 registers; with the mask bit in the upper half.
const LARGE_GRF: u32 = 0x8000_8000;

/// A COMPUTE_WALKER.
#[derive(Clone, Copy, Debug)]
pub struct Walker {
    /// Offset of the kernel from the instruction base, a multiple of 64.
    pub kernel: u32,
    /// End of the range of groups in each dimension.
    pub groups: [u32; 3],
    /// Threads of a group.
    pub threads: u32,
    /// SIMD size: 0 for 8 lanes, 1 for 16, 2 for 32.
    pub simd: u32,
    /// Lanes of the last thread of a group.
    pub last_mask: u32,
    /// Shared local memory of a group: 0, or n for 2^(n-1) KiB.
    pub slm: u32,
    /// Offset of the binding table from its base, a multiple of 32.
    pub bindings: u32,
    /// Inline data, which threads have in r1.
    pub inline: Option<[u32; 8]>,
}

impl Walker {
    /// A walker of one group with one thread of 8 lanes.
    pub const fn of(kernel: u32) -> Walker {
        let (groups, last_mask) = ([1; 3], 0xff);
        Walker { kernel, groups, threads: 1, simd: 0, last_mask, slm: 0, bindings: 0, inline: None }
    }

    /// Returns the command.
    pub fn words(&self) -> [u32; 39] {
        let mut words = [0; 39];
        (words[0], words[5]) = (COMPUTE_WALKER, self.last_mask);
        words[4] = self.simd << 30 | if self.inline.is_some() { EMIT_INLINE } else { 0 };
        words[7..10].copy_from_slice(&self.groups);
        (words[18], words[22]) = (self.kernel, self.bindings);
        words[23] = self.threads & 0x3ff | self.slm << 16;
        words[31..].copy_from_slice(&self.inline.unwrap_or_default());
        words
    }
}

/// Base addresses, multiples of 4 KiB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bases {
    /// General state: stateless messages.
    pub general: u64,
    /// Surface states and binding tables.
    pub surface: u64,
    /// Samplers.
    pub dynamic: u64,
    /// Code.
    pub instruction: u64,
    /// Surface states of bindless messages.
    pub bindless: u64,
}

/// STATE_BASE_ADDRESS.
pub fn state_base_address(bases: &Bases) -> [u32; 22] {
    let mut words = [0; 22];
    words[0] = STATE_BASE_ADDRESS;
    let Bases { general, surface, dynamic, instruction, bindless } = *bases;
    for (at, address) in [(1, general), (4, surface), (6, dynamic), (10, instruction), (16, bindless)] {
        (words[at], words[at + 1]) = (low(address) | MODIFY, high(address));
    }
    words
}

/// STATE_COMPUTE_MODE: threads have 256 registers, or 128.
pub fn state_compute_mode(large: bool) -> [u32; 2] {
    [STATE_COMPUTE_MODE, if large { LARGE_GRF } else { LARGE_GRF & 0xffff_0000 }]
}

/// CFE_STATE. `scratch` is bits 31:10 of the scratch surface's state, as threads have them in r0.5.
pub fn cfe_state(scratch: u32) -> [u32; 6] {
    [CFE_STATE, scratch, 0, 0, 0, 0]
}
