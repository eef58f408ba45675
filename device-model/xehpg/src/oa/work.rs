// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What kernels do, as counters: their threads, messages and barriers (OA-050).

use super::flexible::FlexibleCounts;
use super::values::Values;

/// The first flexible counter.
const FIRST_FLEXIBLE: usize = 7;

/// What kernels have executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelWork {
    /// Threads; two that are executed as a pair count once.
    pub threads: u64,
    /// Messages to barriers.
    pub barriers: u64,
    /// Reads of shared local memory.
    pub slm_reads: u64,
    /// Writes of shared local memory.
    pub slm_writes: u64,
    /// Messages to memory, without shared local memory.
    pub memory: u64,
    /// Atomic operations on memory or shared local memory.
    pub atomics: u64,
}

impl Values {
    /// Counts the work of kernels on an engine, and what the flexible counters count of it. `all`: with what is counted for all
    /// contexts together.
    pub fn count_kernels(&mut self, work: &KernelWork, flexible: &FlexibleCounts, all: bool) {
        for (counter, count) in (FIRST_FLEXIBLE..).zip(flexible) {
            self.add(counter, *count);
        }
        self.add(4, work.threads);
        if all {
            self.count_shared_memory(work.slm_reads, work.slm_writes);
        }
        self.add(32, work.memory);
        self.add(34, work.atomics);
        self.add(35, work.barriers);
    }

    /// Counts accesses to shared local memory, which all contexts have together (V13-245).
    pub fn count_shared_memory(&mut self, reads: u64, writes: u64) {
        self.add(30, reads);
        self.add(31, writes);
    }
}

#[cfg(test)]
mod tests {
    use arctic_eu::exec::profile::{InstructionClass, Operands, Pipe, Profile};
    use arctic_fidelity::proves;

    use super::*;
    use crate::compute::EuRates;
    use crate::generation::XE_HPG;
    use crate::oa::flexible::{self, UnitWork};
    use crate::registers::observation::EVENTS_OFF;
    use crate::topology::EngineClass;

    #[test]
    fn seven_registers_drive_fourteen_counters() {
        proves!(
            [V13_249, V13_256],
            "EU_PERF_CNTL0 to 6 select what A7 to A20 count, two each; one set of registers is for all execution units, of which \
            the counters have the sum"
        );
        let mut profile = Profile::default();
        for (unit, pipe, count) in
            [(0, Pipe::Send, 150), (3, Pipe::Send, 50), (1, Pipe::Control, 70), (2, Pipe::Float32, 9)]
        {
            profile.count(unit, InstructionClass { pipe, operands: Operands::Other }, count);
        }
        let rates = EuRates::new(u32::MAX, 0xff, 2050, XE_HPG.timebase);
        let registers = [0x200_1002, EVENTS_OFF, 0, 0, 0, 0, 0x200_1002];
        let flexible = flexible::counts(registers, &UnitWork::new(&profile, 8, &rates), EngineClass::Compute);
        let work = KernelWork { threads: 10, barriers: 4, slm_reads: 5, slm_writes: 6, memory: 150, atomics: 8 };
        let mut values = Values::default();
        values.count_kernels(&work, &flexible, true);
        let counters: Vec<_> = values.a(7, 14).collect();
        assert_eq!(counters, [200, 70, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 200, 70]);
        let others = [4, 30, 31, 32, 33, 34, 35].map(|counter| values.a(counter, 1).next().unwrap());
        assert_eq!(others, [10, 5, 6, 150, 0, 8, 4]);
    }
}
