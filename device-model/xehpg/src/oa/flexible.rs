// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The flexible counters A7 to A20: EU_PERF_CNTL0 to 6 select two each by an event and two filters (V13-249..254, V13-256; OA-053).

use std::array::from_fn;

use arctic_base::registers::Bits;
use arctic_eu::exec::profile::{InstructionClass, Operands, Pipe, Profile};

use crate::compute::{EuClocks, EuRates};
use crate::topology::EngineClass;

/// Number of registers; each has two counters.
pub const REGISTERS: usize = 7;
/// Number of counters.
pub const COUNTERS: usize = 2 * REGISTERS;

/// What the counters count of the work of a step.
pub type FlexibleCounts = [u64; COUNTERS];

/// What execution units have done.
pub struct UnitWork<'w> {
    profile: &'w Profile,
    /// Instructions of `profile`.
    instructions: u64,
    /// Clocks for them.
    clocks: EuClocks,
}

impl<'w> UnitWork<'w> {
    /// The work of groups with so many threads each.
    pub fn new(profile: &'w Profile, threads: u32, rates: &EuRates) -> UnitWork<'w> {
        let instructions = profile.sum(|_| true, |_| true);
        UnitWork { profile, instructions, clocks: rates.clocks(threads, instructions) }
    }
}

/// What an event counts.
#[derive(Clone, Copy)]
enum Counted {
    /// Instructions of these pipelines.
    Instructions(&'static [Pipe]),
    /// Clocks in which an instruction is executed.
    Active,
    /// Clocks in which a thread is loaded and none is executed.
    Stalled,
    /// Clocks by the part of the slots that have threads.
    Occupied,
    /// Clocks in which two pipelines execute an instruction. The model executes one instruction of a unit after the other.
    Both,
}

/// Which filters an event has beside none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filters {
    All,
    /// Rows, or numbers of units.
    Units,
    /// The same, and the start of messages.
    UnitsAndMessages,
}

/// An event with its code (V13-250) and its coarse and fine filters (V13-251).
struct Event(u32, Counted, Filters, Filters);

use Counted::{Active, Both, Instructions, Occupied, Stalled};
use Filters::{All, Units, UnitsAndMessages};
use Pipe::{Control, Float16, Float32, Integer16, Integer32, Math, Send, SystolicBf16, SystolicFp16, SystolicInt8};

const EVENTS: &[Event] = &[
    Event(0x00, Instructions(&[Float16, Float32]), All, All),
    Event(0x01, Instructions(&[Integer16, Integer32, Math]), All, Units),
    Event(0x02, Instructions(&[Send]), All, UnitsAndMessages),
    Event(0x03, Both, Units, Units),
    Event(0x04, Active, All, UnitsAndMessages),
    Event(0x05, Stalled, All, Units),
    Event(0x06, Instructions(&[Float16]), All, All),
    Event(0x07, Instructions(&[Float32]), All, All),
    Event(0x08, Occupied, Units, Units),
    Event(0x09, Instructions(&[SystolicBf16, SystolicFp16, SystolicInt8]), All, All),
    Event(0x0a, Both, Units, Units),
    Event(0x0c, Instructions(&[Integer16]), All, All),
    Event(0x0d, Instructions(&[Integer32]), All, All),
    Event(0x0e, Instructions(&[SystolicBf16]), All, All),
    Event(0x0f, Instructions(&[SystolicInt8]), All, All),
    Event(0x10, Instructions(&[Math]), All, All),
    Event(0x11, Instructions(&[Control]), Units, All),
    Event(0x12, Instructions(&[SystolicFp16]), All, All),
];

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

    /// What the counter counts of the work of kernels on an engine. A filter that the event does not have counts nothing: what the
    /// hardware does is implementation-specific.
    pub fn count(self, work: &UnitWork<'_>, class: EngineClass) -> u64 {
        let Some(Event(_, counted, coarse, fine)) = EVENTS.iter().find(|Event(code, ..)| *code == self.event) else {
            return 0;
        };
        let Some(row) = self.row(*coarse, class) else { return 0 };
        let Some(FineFilter { unit, passes }) = self.fine_filter(*fine) else { return 0 };
        let units =
            |number: usize| row.is_none_or(|row| number / 4 == row) && unit.is_none_or(|unit| number % 4 == unit);
        let sum = |passes: &dyn Fn(InstructionClass) -> bool| work.profile.sum(units, passes);
        // The clocks of these units.
        let share = |clocks: u64| {
            let clocks = u128::from(clocks).saturating_mul(sum(&passes).into());
            u64::try_from(clocks.checked_div(work.instructions.into()).unwrap_or(0)).unwrap_or(u64::MAX)
        };
        let clocks = work.clocks;
        match counted {
            Instructions(pipes) => sum(&|class| pipes.contains(&class.pipe) && passes(class)),
            Active => share(clocks.active),
            Stalled => share(clocks.loaded.saturating_sub(clocks.active)),
            Occupied => share(clocks.occupied),
            Both => 0,
        }
    }

    /// The row of units that passes the coarse filter, `Some(None)` for all; `None` if nothing passes (V13-253). Threads are of
    /// walkers on the render engine, or of compute engines: no other stage has any.
    fn row(self, filters: Filters, class: EngineClass) -> Option<Option<usize>> {
        match (self.coarse, filters) {
            (0, _) => Some(None),
            (6, All) => (class == EngineClass::Render).then_some(None),
            (7, _) => Some(Some(0)),
            (9, All) => (class == EngineClass::Compute).then_some(None),
            _ => None,
        }
    }

    /// The fine filter; `None` if nothing passes (V13-254). No source that this project has says which instructions are hybrid ones:
    /// none.
    fn fine_filter(self, filters: Filters) -> Option<FineFilter> {
        let instructions = |passes| Some(FineFilter { unit: None, passes });
        match (self.fine, filters) {
            (0, _) => instructions(|_| true),
            (2, All) => instructions(|class| class.operands == Operands::Ternary),
            (3, All) => instructions(|class| class.operands == Operands::Binary),
            (4, All) => instructions(|class| class.operands == Operands::Mov),
            (5, UnitsAndMessages) => instructions(|class| class.pipe == Send),
            (fine @ 7..=10, _) => {
                Some(FineFilter { unit: usize::try_from(fine.checked_sub(7)?).ok(), passes: |_| true })
            }
            _ => None,
        }
    }
}

/// What passes a fine filter.
struct FineFilter {
    /// Units with this number in their row; all without it.
    unit: Option<usize>,
    /// Instructions.
    passes: fn(InstructionClass) -> bool,
}

/// What the counters count of the work of kernels on an engine, with these values of EU_PERF_CNTL0 to 6.
pub fn counts(registers: [u32; REGISTERS], work: &UnitWork<'_>, class: EngineClass) -> FlexibleCounts {
    let mut counters = registers.into_iter().flat_map(Flexible::of);
    from_fn(|_| counters.next().map_or(0, |counter| counter.count(work, class)))
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;
    use crate::generation::XE_HPG;
    use crate::registers::observation::EVENTS_OFF;

    const RATES: (u32, u8, u32) = (u32::MAX, 0xff, 2050);

    fn rates() -> EuRates {
        EuRates::new(RATES.0, RATES.1, RATES.2, XE_HPG.timebase)
    }

    /// Instructions of each pipeline: with operands of each kind on units 0 and 5.
    fn profile() -> Profile {
        let mut profile = Profile::default();
        let pipes = [
            (Float16, 1),
            (Float32, 10),
            (Integer16, 100),
            (Integer32, 1000),
            (Math, 10_000),
            (SystolicBf16, 100_000),
            (SystolicFp16, 200_000),
            (SystolicInt8, 400_000),
            (Send, 1_000_000),
            (Control, 10_000_000),
        ];
        for (pipe, count) in pipes {
            let kinds = [(Operands::Mov, 1), (Operands::Binary, 2), (Operands::Ternary, 3), (Operands::Other, 1)];
            for (operands, times) in kinds {
                profile.count(0, InstructionClass { pipe, operands }, count * times);
            }
            profile.count(5, InstructionClass { pipe, operands: Operands::Mov }, count);
        }
        profile
    }

    fn count(event: u32, coarse: u32, fine: u32, class: EngineClass) -> u64 {
        let profile = profile();
        Flexible { event, coarse, fine }.count(&UnitWork::new(&profile, 1, &rates()), class)
    }

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
        assert_eq!(Flexible::of(EVENTS_OFF), [flexible(0x1f, 0, 0); 2]);
    }

    #[test]
    fn events_are_instructions_of_pipelines() {
        proves!(V13_250, "each event counts the instructions of its pipelines; 11111 and reserved codes count nothing");
        let all = |event| count(event, 0, 0, EngineClass::Render);
        let instructions = [0x06, 0x07, 0x0c, 0x0d, 0x10, 0x0e, 0x12, 0x0f, 0x02, 0x11].map(all);
        let each = [1, 10, 100, 1000, 10_000, 100_000, 200_000, 400_000, 1_000_000, 10_000_000];
        assert_eq!(instructions, each.map(|count| 8 * count));
        assert_eq!([0x00, 0x01, 0x09].map(all), [8 * 11, 8 * 11_100, 8 * 700_000]);
        assert_eq!([0x03, 0x0a, 0x0b, 0x13, 0x1f].map(all), [0; 5]);
    }

    #[test]
    fn events_of_clocks_follow_the_time_of_the_groups() {
        proves!(V13_252, "a thread in one of eight slots is an eighth of the occupancy");
        let all = |event| count(event, 0, 0, EngineClass::Render);
        let instructions = 8 * 11_711_111;
        assert_eq!(all(4), 2 * instructions);
        assert_eq!(all(5), 8 * instructions, "a thread waits eight of ten clocks");
        assert_eq!(all(8), 10 * instructions / 8);
    }

    #[test]
    fn coarse_filters_are_stages_and_rows() {
        proves!(
            V13_253,
            "threads of walkers of the render engine pass 0110, those of compute engines 1001, units of row 0 0111; other \
            stages have no threads"
        );
        let (render, compute) = (EngineClass::Render, EngineClass::Compute);
        let by = |coarse, class| count(0x0d, coarse, 0, class);
        assert_eq!([0, 6, 7, 9].map(|coarse| by(coarse, render)), [8000, 8000, 7000, 0]);
        assert_eq!([0, 6, 7, 9].map(|coarse| by(coarse, compute)), [8000, 0, 7000, 8000]);
        for coarse in [1, 2, 3, 4, 5, 8, 10, 11, 12, 13, 14, 15] {
            assert_eq!([by(coarse, render), by(coarse, compute)], [0; 2], "{coarse:#x}");
        }
    }

    #[test]
    fn fine_filters_are_operands_messages_and_units() {
        proves!(
            V13_254,
            "0010, 0011 and 0100 pass instructions with three and two operands and moves, 0101 messages, 0111 to 1010 the \
            units with the number 0 to 3 of their row"
        );
        let by = |event, fine| count(event, 0, fine, EngineClass::Render);
        assert_eq!([0, 1, 2, 3, 4].map(|fine| by(0x0d, fine)), [8000, 0, 3000, 2000, 2000]);
        assert_eq!([7, 8, 9, 10].map(|fine| by(0x0d, fine)), [7000, 1000, 0, 0]);
        assert_eq!([5, 7, 8].map(|fine| by(0x02, fine)), [8_000_000, 7_000_000, 1_000_000]);
        assert_eq!([6, 11, 12, 13, 14, 15].map(|fine| by(0x0d, fine)), [0; 6]);
        assert_eq!(by(0x04, 8), 2 * 11_711_111, "clocks of the unit");
        assert_eq!(by(0x04, 5), 2 * 8_000_000, "clocks with a message");
    }

    #[test]
    fn events_have_the_filters_of_the_table_only() {
        proves!(V13_251, "a filter that the event does not have counts nothing");
        // Event, coarse filters, fine filters.
        let stages = [0, 6, 7].as_slice();
        let rows = [0, 7].as_slice();
        let (any, units, messages) = ([0, 2, 3, 4, 7, 8].as_slice(), [0, 7, 8].as_slice(), [0, 5, 7, 8].as_slice());
        let table = [
            (0x00, stages, any),
            (0x01, stages, units),
            (0x02, stages, messages),
            (0x04, stages, messages),
            (0x05, stages, units),
            (0x06, stages, any),
            (0x07, stages, any),
            (0x08, rows, units),
            (0x09, stages, any),
            (0x0c, stages, any),
            (0x0d, stages, any),
            (0x0e, stages, any),
            (0x0f, stages, any),
            (0x10, stages, any),
            (0x11, rows, any),
            (0x12, stages, any),
        ];
        for (event, coarse, fine) in table {
            for filter in 0..16 {
                assert_eq!(count(event, filter, 0, EngineClass::Render) != 0, coarse.contains(&filter), "{event:#x}");
                assert_eq!(count(event, 0, filter, EngineClass::Render) != 0, fine.contains(&filter), "{event:#x}");
            }
        }
    }
}
