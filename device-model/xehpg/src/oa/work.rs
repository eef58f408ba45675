// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What engines do, as counters: threads and messages of kernels, and the flexible counters A7 to A20 (OA-050, OA-053).

use super::values::Values;
use crate::topology::EngineClass;
use arctic_base::registers::Bits;

/// Number of registers of the flexible counters; each has two counters.
pub const FLEXIBLE_REGISTERS: usize = 7;
/// The first flexible counter.
const FIRST_FLEXIBLE: usize = 7;

/// What kernels have executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelWork {
    /// Threads; two that are executed as a pair count once.
    pub threads: u64,
    /// Instructions.
    pub instructions: u64,
    /// Branches, calls and returns.
    pub control: u64,
    /// Messages.
    pub messages: u64,
    /// Products of matrices.
    pub products: u64,
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

/// Codes of increment events (V13-250), as far as the model has them.
mod event {
    pub const ALU0: u32 = 0x00;
    pub const SEND: u32 = 0x02;
    pub const SYSTOLIC: u32 = 0x09;
    pub const CONTROL: u32 = 0x11;
}

/// Coarse filters (V13-253).
mod coarse {
    pub const NONE: u32 = 0;
    /// Threads of walkers on the render engine.
    pub const WALKERS: u32 = 6;
    /// Threads of compute engines.
    pub const ASYNCHRONOUS: u32 = 9;
}

/// Fine filters (V13-254).
mod fine {
    pub const NONE: u32 = 0;
    pub const SEND: u32 = 5;
}

/// What a flexible counter counts: event, coarse and fine filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flexible {
    /// Increment event.
    pub event: u32,
    /// Coarse filter.
    pub coarse: u32,
    /// Fine filter.
    pub fine: u32,
}

impl Flexible {
    /// The two counters of a register EU_PERF_CNTL.
    pub fn of(register: u32) -> [Flexible; 2] {
        let [low, high] = [(Bits::new(3, 0), 24), (Bits::new(15, 12), 25)]
            .map(|(field, upper)| field.get(register) | Bits::bit(upper).get(register) << 4);
        let field = |high, low| Bits::new(high, low).get(register);
        [
            Flexible { event: low, coarse: field(7, 4), fine: field(11, 8) },
            Flexible { event: high, coarse: field(19, 16), fine: field(23, 20) },
        ]
    }

    /// What the counter counts of the work of kernels on an engine. Events and filters that the model cannot tell apart count
    /// nothing.
    pub fn count(self, work: &KernelWork, class: EngineClass) -> u64 {
        let passes = match self.coarse {
            coarse::NONE => true,
            coarse::WALKERS => class == EngineClass::Render,
            coarse::ASYNCHRONOUS => class == EngineClass::Compute,
            _ => false,
        };
        let others =
            work.control.saturating_add(work.messages).saturating_add(work.products).saturating_add(work.barriers);
        match (self.event, self.fine) {
            _ if !passes => 0,
            (event::ALU0, fine::NONE) => work.instructions.saturating_sub(others),
            (event::SEND, fine::NONE | fine::SEND) => work.messages,
            (event::SYSTOLIC, fine::NONE) => work.products,
            (event::CONTROL, fine::NONE) => work.control,
            _ => 0,
        }
    }
}

impl Values {
    /// Counts the work of kernels on an engine, with these values of EU_PERF_CNTL0 to 6. `all`: with what is counted for all
    /// contexts together.
    pub fn count_kernels(
        &mut self,
        work: &KernelWork,
        class: EngineClass,
        flexible: [u32; FLEXIBLE_REGISTERS],
        all: bool,
    ) {
        let counters = flexible.into_iter().flat_map(Flexible::of);
        for (counter, flexible) in (FIRST_FLEXIBLE..).zip(counters) {
            self.add(counter, flexible.count(work, class));
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
    use arctic_fidelity::proves;

    use super::*;

    const WORK: KernelWork = KernelWork {
        threads: 10,
        instructions: 1000,
        control: 70,
        messages: 200,
        products: 30,
        barriers: 4,
        slm_reads: 5,
        slm_writes: 6,
        memory: 150,
        atomics: 8,
    };

    /// Values that Intel's metric sets have, with what their equations call the counters.
    #[test]
    fn registers_of_metric_sets_are_decoded() {
        proves!(
            [V13_250, V13_253, V13_254],
            "event, coarse and fine filter of both counters of a register; an event of five bits has its highest apart"
        );
        let flexible = |event, coarse, fine| Flexible { event, coarse, fine };
        assert_eq!(Flexible::of(0x5004), [flexible(4, 0, 0), flexible(5, 0, 0)], "active, stall");
        assert_eq!(Flexible::of(0x200_1002), [flexible(2, 0, 0), flexible(0x11, 0, 0)], "send, control");
        assert_eq!(Flexible::of(0x200_200f), [flexible(0xf, 0, 0), flexible(0x12, 0, 0)], "systolic INT8, FP16");
        assert_eq!(Flexible::of(0xb_10a1), [flexible(1, 0xa, 0), flexible(1, 0xb, 0)], "ALU1 of task and mesh");
        assert_eq!(Flexible::of(0x0153_0952), [flexible(0x12, 5, 9), flexible(0, 3, 5)]);
    }

    #[test]
    fn events_are_instructions_by_kind() {
        proves!(
            [V13_251, V13_252],
            "filters that an event does not have, and events that the model does not have, count nothing"
        );
        let count = |event, coarse, fine, class| Flexible { event, coarse, fine }.count(&WORK, class);
        let render = |event| count(event, 0, 0, EngineClass::Render);
        assert_eq!([0x00, 0x02, 0x09, 0x11].map(render), [696, 200, 30, 70]);
        assert_eq!([0x01, 0x04, 0x05, 0x08, 0x1f].map(render), [0; 5]);
        assert_eq!(count(2, 6, 0, EngineClass::Render), 200);
        assert_eq!(count(2, 9, 5, EngineClass::Compute), 200);
        assert_eq!(count(2, 9, 0, EngineClass::Render), 0, "threads of another engine");
        assert_eq!(count(2, 1, 0, EngineClass::Render), 0, "there are no vertex shaders");
        assert_eq!(count(0, 0, 5, EngineClass::Render), 0, "no message");
    }

    #[test]
    fn seven_registers_drive_fourteen_counters() {
        proves!(
            [V13_249, V13_256],
            "EU_PERF_CNTL0 to 6 select what A7 to A20 count, two each; one set of registers is for all execution units, of which \
            the counters have the sum"
        );
        let mut values = Values::default();
        let registers = [0x200_1002, 0x0000_f00f, 0, 0, 0, 0, 0x200_1002];
        values.count_kernels(&WORK, EngineClass::Compute, registers, true);
        let counters: Vec<_> = values.a(7, 14).collect();
        assert_eq!(counters, [200, 70, 0, 0, 696, 696, 696, 696, 696, 696, 696, 696, 200, 70]);
        let others = [4, 30, 31, 32, 33, 34, 35].map(|counter| values.a(counter, 1).next().unwrap());
        assert_eq!(others, [10, 5, 6, 150, 0, 8, 4]);
    }
}
