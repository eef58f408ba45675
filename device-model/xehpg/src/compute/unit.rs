// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the execution units of an engine keep from walker to walker: translated kernels and the memory of threads. None of it
//! is visible to a kernel: threads start with the registers of their walker, and a translated kernel is used only where memory
//! has the bytes that it was made of (EU-047, EU-075).

use arctic_eu::exec::{Fetch, Host, Program, Workgroup};

use super::surfaces::Surfaces;
use super::walker::{MOST_CODE, Walker};

/// Most bytes of the host's memory that translated kernels take.
const MOST_PROGRAM_BYTES: usize = 16 << 20;
/// Most translated kernels.
const MOST_PROGRAMS: usize = 256;

/// A translated kernel: its offset from the instruction base, which the program has, and the program.
struct Kept {
    kernel: u32,
    program: Program,
}

/// Threads and shared local memory that no walker uses.
struct Spare {
    /// Number of threads, registers of a thread, bytes of shared local memory.
    shape: (usize, u32, usize),
    threads: Workgroup,
}

/// Cost of a part of a step, in instructions, after which the clock is checked: well under 0.2 ms of host work.
const PART_COST: u64 = 20_000;
/// Largest cost of a step, in instructions, if the clock does not end it before: with a clock that stands, steps end at the same
/// places in every run.
const STEP_COST: u64 = 200_000;

/// What the execution units of an engine keep.
pub struct ComputeUnit {
    /// Cost of a part of a step, in instructions, after which the clock is checked.
    pub part_cost: u64,
    /// Largest cost of a step, in instructions.
    pub step_cost: u64,
    host: Host,
    /// Translated kernels, the last one used at the end.
    programs: Vec<Kept>,
    program_bytes: usize,
    spare: Option<Spare>,
    surfaces: Option<Box<Surfaces>>,
}

impl Default for ComputeUnit {
    fn default() -> Self {
        ComputeUnit::with_costs(PART_COST, STEP_COST)
    }
}

impl ComputeUnit {
    /// Execution units that are stepped by these costs, in instructions.
    pub fn with_costs(part_cost: u64, step_cost: u64) -> Self {
        ComputeUnit {
            part_cost,
            step_cost,
            host: Host::detect(),
            programs: Vec::new(),
            program_bytes: 0,
            spare: None,
            surfaces: None,
        }
    }

    /// Takes the translated kernel of a walker, or begins one. Its bytes are compared with memory: a fetch that fails is no access of
    /// the walker.
    pub(super) fn take_program(&mut self, walker: &Walker, memory: &mut dyn Fetch) -> Program {
        let instruction = walker.bases.instruction;
        let is_of = |kept: &Kept| {
            (kept.kernel, kept.program.registers, kept.program.space().1)
                == (walker.kernel, walker.registers, instruction)
        };
        if let Some(at) = self.programs.iter().rposition(is_of) {
            let Kept { program, .. } = self.programs.remove(at);
            self.program_bytes = self.program_bytes.saturating_sub(program.host_bytes());
            if program.is_current(memory) {
                return program;
            }
        }
        let mut program = Program::new(0, instruction, walker.registers, self.host);
        program.set_limit(MOST_CODE);
        program
    }

    /// Keeps a translated kernel for other walkers.
    pub(super) fn keep_program(&mut self, kernel: u32, program: Program) {
        self.program_bytes = self.program_bytes.saturating_add(program.host_bytes());
        self.programs.push(Kept { kernel, program });
        while self.program_bytes > MOST_PROGRAM_BYTES || self.programs.len() > MOST_PROGRAMS {
            let Kept { program, .. } = self.programs.remove(0);
            self.program_bytes = self.program_bytes.saturating_sub(program.host_bytes());
        }
    }

    /// Takes threads for the groups of a walker.
    pub(super) fn take_threads(&mut self, count: usize, registers: u32, slm: usize) -> Workgroup {
        match self.spare.take_if(|spare| spare.shape == (count, registers, slm)) {
            Some(spare) => spare.threads,
            None => Workgroup::new(count, registers, slm),
        }
    }

    /// Keeps threads that no walker uses any more.
    pub(super) fn keep_threads(&mut self, threads: Workgroup, count: usize, registers: u32, slm: usize) {
        self.spare = Some(Spare { shape: (count, registers, slm), threads });
    }

    /// Takes memory for the surface states of a walker, without a state.
    pub(super) fn take_surfaces(&mut self) -> Box<Surfaces> {
        self.surfaces.take().unwrap_or_default()
    }

    /// Keeps memory of surface states.
    pub(super) fn keep_surfaces(&mut self, mut surfaces: Box<Surfaces>) {
        surfaces.clear();
        self.surfaces = Some(surfaces);
    }
}
