// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of the compute pipeline of a context, as the commands that set it. Images of contexts of the render and compute
//! engines have these commands in their engine context, so a restore executes them as it executes those of a batch
//! (EU-002..011, EU-014).

use crate::command::gfx::{Gfx, State, XE_HPG_PIPELINES, lookup};
use crate::topology::EngineClass;

/// A command of the state: what it sets, its header, its position among [`ComputeState::commands`].
struct Slot {
    state: State,
    header: u32,
    first: usize,
}

/// Length in dwords of all commands.
pub const STATE_DWORDS: usize = 44;

/// Positions of the commands, in the order in which images have them.
const SELECT: usize = 0;
const MODE: usize = 1;
const FRONT_END: usize = 3;
const BASE: usize = 9;
const POOL: usize = 31;
const ROUTINE: usize = 35;
const RAY_TRACING: usize = 38;

/// The commands in this order.
const SLOTS: [Slot; 7] = [
    Slot { state: State::PipelineSelect, header: 0x6904_0000, first: SELECT },
    Slot { state: State::ComputeMode, header: 0x6105_0000, first: MODE },
    Slot { state: State::FrontEnd, header: 0x7200_0004, first: FRONT_END },
    Slot { state: State::BaseAddress, header: 0x6101_0014, first: BASE },
    Slot { state: State::BindingTablePool, header: 0x7919_0002, first: POOL },
    Slot { state: State::SystemRoutine, header: 0x6102_0001, first: ROUTINE },
    Slot { state: State::RayTracing, header: 0x6106_0004, first: RAY_TRACING },
];

/// Bit 0 of a base address or a size in STATE_BASE_ADDRESS: the command changes it.
const MODIFY: u32 = 1 << 0;
/// Groups of dwords of STATE_BASE_ADDRESS that one modify bit, in the first of them, covers: first dword and count.
const BASES: [(usize, usize); 11] =
    [(1, 2), (4, 2), (6, 2), (8, 2), (10, 2), (12, 1), (13, 1), (14, 1), (15, 1), (16, 3), (19, 3)];
/// Dword of STATE_BASE_ADDRESS without a modify bit: memory object control state of stateless accesses.
const STATELESS_MOCS: usize = 3;

/// Dwords of STATE_BASE_ADDRESS with the low half of an address.
const GENERAL: usize = 1;
const SURFACE: usize = 4;
const DYNAMIC: usize = 6;
const INSTRUCTION: usize = 10;
const BINDLESS_SURFACES: usize = 16;
const BINDLESS_SAMPLERS: usize = 19;

/// Bits of an address of 4 KiB pages.
const PAGES: u64 = 0xffff_ffff_f000;

/// STATE_COMPUTE_MODE: threads have 256 registers (EU-003).
const LARGE_GRF: u32 = 1 << 15;
/// CFE_STATE dword 1: the surface state of scratch memory (EU-004).
const SCRATCH: u32 = 0xffff_fc00;

/// The state of the compute pipeline of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComputeState {
    commands: [u32; STATE_DWORDS],
}

impl Default for ComputeState {
    /// The state of a context that has executed none of the commands: all values are 0.
    fn default() -> Self {
        let mut state = ComputeState { commands: [0; STATE_DWORDS] };
        for slot in &SLOTS {
            if let Some(header) = state.commands.get_mut(slot.first) {
                *header = slot.header;
            }
        }
        state.set_masks();
        state
    }
}

#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "all positions are constants within the commands"
)]
impl ComputeState {
    /// The commands that set the state.
    pub fn commands(&self) -> &[u32; STATE_DWORDS] {
        &self.commands
    }

    /// Makes each command set all that it can set.
    fn set_masks(&mut self) {
        self.commands[SELECT] |= 0xff00;
        self.commands[MODE + 1] |= 0xffff_0000;
        for (first, _) in BASES {
            self.commands[BASE + first] |= MODIFY;
        }
    }

    /// The dwords of the command that sets `state`.
    fn slot(&mut self, state: State) -> &mut [u32] {
        let at = SLOTS.iter().position(|slot| slot.state == state).unwrap_or(0);
        let end = SLOTS.get(at + 1).map_or(STATE_DWORDS, |next| next.first);
        &mut self.commands[SLOTS[at].first..end]
    }

    /// Executes a command of this state. What a shorter command lacks keeps its value: IGT's CFE_STATE has two dwords
    /// (`xe_compute`).
    pub fn execute(&mut self, state: State, words: &[u32]) {
        let kept = self.slot(state);
        let words = &words[..words.len().min(kept.len())];
        match (state, words) {
            (State::PipelineSelect, &[select, ..]) => kept[0] = masked(kept[0], select, select >> 8 & 0xff),
            (State::ComputeMode, &[_, mode, ..]) => kept[1] = masked(kept[1], mode, mode >> 16),
            (State::BaseAddress, _) => {
                if let Some(control) = words.get(STATELESS_MOCS) {
                    kept[STATELESS_MOCS] = *control;
                }
                for (first, count) in BASES {
                    if let Some(base) = words.get(first..first + count).filter(|base| base[0] & MODIFY != 0) {
                        kept[first..first + count].copy_from_slice(base);
                    }
                }
            }
            (
                State::FrontEnd | State::BindingTablePool | State::SystemRoutine | State::RayTracing,
                [_, values @ ..],
            ) => {
                kept[1..words.len()].copy_from_slice(values);
            }
            (_, []) | (State::ComputeMode, [_]) => {}
        }
    }

    /// Address of pages in the low half at this dword.
    fn pages(&self, at: usize) -> u64 {
        (u64::from(self.commands[at + 1]) << 32 | u64::from(self.commands[at])) & PAGES
    }

    fn base(&self, at: usize) -> u64 {
        self.pages(BASE + at)
    }

    /// General state base address (EU-005).
    pub fn general(&self) -> u64 {
        self.base(GENERAL)
    }

    /// Surface state base address.
    pub fn surface(&self) -> u64 {
        self.base(SURFACE)
    }

    /// Dynamic state base address.
    pub fn dynamic(&self) -> u64 {
        self.base(DYNAMIC)
    }

    /// Instruction base address.
    pub fn instruction(&self) -> u64 {
        self.base(INSTRUCTION)
    }

    /// Bindless surface state base address.
    pub fn bindless_surfaces(&self) -> u64 {
        self.base(BINDLESS_SURFACES)
    }

    /// Bindless sampler state base address.
    pub fn bindless_samplers(&self) -> u64 {
        self.base(BINDLESS_SAMPLERS)
    }

    /// Base address of binding tables: that of their pool, or the surface state base if no pool was allocated (EU-007).
    pub fn binding_tables(&self) -> u64 {
        let allocated = self.commands[POOL + 1..POOL + 4].iter().any(|dword| dword & !0xfff != 0);
        if allocated { self.pages(POOL + 1) } else { self.surface() }
    }

    /// Surface state of scratch memory: bits 31:10, as threads have it in r0.5 (EU-004, EU-030).
    pub fn scratch(&self) -> u32 {
        self.commands[FRONT_END + 1] & SCRATCH
    }

    /// Number of registers of a thread (EU-003).
    pub fn registers(&self) -> u32 {
        if self.commands[MODE + 1] & LARGE_GRF != 0 { 256 } else { 128 }
    }

    /// Offset of the system routine from the instruction base; `None` if STATE_SIP was not executed (EU-008, EU-061).
    pub fn system_routine(&self) -> Option<u32> {
        let low = self.commands[ROUTINE + 1] & !0xf;
        (low != 0).then_some(low)
    }
}

/// `old` with the bits of `new` that `mask` selects. The bits above those of the mask's width keep their values.
const fn masked(old: u32, new: u32, mask: u32) -> u32 {
    old & !mask | new & mask
}

/// The state that an engine of `class` has: those of the render and compute pipelines (EU-001).
pub fn has_compute(class: EngineClass) -> bool {
    matches!(class, EngineClass::Render | EngineClass::Compute)
}

/// The command with this header and its length in dwords, if images of contexts of `class` can have it: one of
/// [`ComputeState::commands`], or the walker in progress.
pub fn image_command(header: u32, class: EngineClass) -> Option<(Gfx, usize)> {
    if !has_compute(class) || header >> 29 != 3 {
        return None;
    }
    let command = lookup(&XE_HPG_PIPELINES, header, class)?;
    let is_kept = matches!(command.action, Gfx::State(_) | Gfx::Walker);
    is_kept.then(|| (command.action, command.length.dwords(header) as usize))
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    #[test]
    fn saved_commands_set_the_same_state() {
        proves!(
            [EU_004, EU_005, EU_007, EU_008, EU_011, EU_014],
            "each command sets its part of the state, and the saved commands set the same state"
        );
        let mut state = ComputeState::default();
        assert_eq!((state.registers(), state.scratch(), state.system_routine()), (128, 0, None));
        let mut base = [0; 22];
        base[0] = 0x6101_0014;
        for (at, value) in [(1, 0x1061), (4, 0xffa0_0061), (5, 0xffff_80ff), (6, 0x3001), (10, 0x4001), (16, 0x5001)] {
            base[at] = value;
        }
        base[18] = 0x7fbf;
        state.execute(State::BaseAddress, &base);
        state.execute(State::PipelineSelect, &[0x6904_8302]);
        state.execute(State::ComputeMode, &[0x6105_0000, 0x8018_8010]);
        state.execute(State::FrontEnd, &[0x7200_0004, 0x1234_5400, 0, 0x1000_8800, 0, 0]);
        assert_eq!(
            (state.general(), state.surface(), state.binding_tables()),
            (0x1000, 0x80ff_ffa0_0000, 0x80ff_ffa0_0000)
        );
        state.execute(State::BindingTablePool, &[0x7919_0002, 0x6000, 1, 0x1f_f000]);
        state.execute(State::SystemRoutine, &[0x6102_0001, 0x640, 0]);
        state.execute(State::RayTracing, &[0x6106_0004, 1, 2, 3, 4, 5]);
        assert_eq!((state.dynamic(), state.instruction(), state.bindless_surfaces()), (0x3000, 0x4000, 0x5000));
        assert_eq!((state.binding_tables(), state.scratch(), state.registers()), (0x1_0000_6000, 0x1234_5400, 256));
        assert_eq!(state.system_routine(), Some(0x640));

        let mut restored = ComputeState::default();
        let mut at = 0;
        while at < STATE_DWORDS {
            let header = state.commands()[at];
            let Some((Gfx::State(part), dwords)) = image_command(header, EngineClass::Compute) else { panic!("{at}") };
            restored.execute(part, &state.commands()[at..at + dwords]);
            at += dwords;
        }
        assert_eq!((at, restored), (STATE_DWORDS, state));
    }

    #[test]
    fn what_is_not_selected_keeps_its_value() {
        proves!([EU_002, EU_003, EU_005], "what a command does not select keeps its value");
        proves!(EU_006, "bits 63:48 of a base are ignored");
        let mut state = ComputeState::default();
        let mut base = [0; 22];
        (base[1], base[4], base[16], base[17], base[18]) = (0x1001, 0x2001, 0x5001, 7, 9);
        state.execute(State::BaseAddress, &base);
        let second: Vec<u32> = (0..22).map(|at| if at == 4 { 0x8001 } else { 0xffff_f000 }).collect();
        state.execute(State::BaseAddress, &second);
        assert_eq!(
            (state.general(), state.surface(), state.bindless_surfaces()),
            (0x1000, 0xf000_0000_8000 & PAGES, 0x7_0000_5000)
        );
        state.execute(State::ComputeMode, &[0x6105_0000, 0x8000_8000]);
        state.execute(State::ComputeMode, &[0x6105_0000, 0x0018_0010]);
        assert_eq!(state.registers(), 256);
        state.execute(State::ComputeMode, &[0x6105_0000, 0x8000_0000]);
        assert_eq!(state.registers(), 128);
        state.execute(State::PipelineSelect, &[0x6904_0302]);
        state.execute(State::PipelineSelect, &[0x6904_8080]);
        assert_eq!(state.commands()[0], 0x6904_ff82);
        state.execute(State::FrontEnd, &[0x7200_0004, 0x1234_5400, 0, 0x1000_8800, 0, 0]);
        state.execute(State::FrontEnd, &[0x7200_0000, 0x5400]);
        assert_eq!((state.scratch(), state.commands()[FRONT_END + 3]), (0x5400, 0x1000_8800), "a shorter command");
        (base[4], base[16]) = (0x3001, 0x6001);
        state.execute(State::BaseAddress, &base[..17]);
        assert_eq!((state.surface(), state.bindless_surfaces()), (0x3000, 0x7_0000_5000), "half a base");
    }
    /// Dwords of STATE_BASE_ADDRESS by the modify bit in the first of them.
    const GROUPS: [std::ops::Range<usize>; 11] =
        [1..3, 4..6, 6..8, 8..10, 10..12, 12..13, 13..14, 14..15, 15..16, 16..19, 19..22];

    #[test]
    fn each_base_and_size_has_its_modify_bit() {
        proves!(
            EU_005,
            "a command with one modify bit changes the base or size of this bit, and the control of stateless accesses, \
            and nothing else"
        );
        for group in GROUPS {
            let mut state = ComputeState::default();
            state.execute(State::BaseAddress, &[0x1111_1001; 22]);
            let before = state;
            let second: Vec<u32> = (0..22).map(|at| 0x2222_2000 | u32::from(at == group.start)).collect();
            state.execute(State::BaseAddress, &second);
            for (at, set) in second.iter().enumerate().skip(1) {
                let (old, new) = (before.commands()[BASE + at], state.commands()[BASE + at]);
                let expected = if at == 3 || group.contains(&at) { *set } else { old };
                assert_eq!(new, expected, "{at} of {group:?}");
            }
        }
    }
}
