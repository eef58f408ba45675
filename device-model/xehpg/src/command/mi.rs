// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI commands (client 0), which the command streamers themselves execute (V8-097, V8-098).

pub mod fields;

use arctic_base::command::row;
pub use arctic_base::command::row::{Predication, lookup};
use arctic_base::command::{Length, Rule, Rules};
use bitfield_struct::bitfield;

use crate::topology::Classes;

/// Header of an MI command (V8-095). The other bits depend on the opcode.
#[bitfield(u32)]
pub struct MiHeader {
    #[bits(23)]
    __: u32,
    /// Opcode.
    #[bits(6)]
    opcode: u8,
    /// Client, 0 for MI commands.
    #[bits(3)]
    client: u8,
}

impl MiHeader {
    /// Returns the header of the MI command with this opcode, without flags and length.
    pub const fn of(opcode: u8) -> u32 {
        MiHeader::new().with_opcode(opcode).into_bits()
    }

    /// Returns the opcode of an MI command; `None` for a command of another client.
    pub fn mi_opcode(self) -> Option<u8> {
        (self.client() == 0).then(|| self.opcode())
    }
}

/// Header of MI_LOAD_REGISTER_IMM without flags and length.
pub const LRI: u32 = MiHeader::of(0x22);

/// Returns the header of an LRI with `registers` registers, which must be at least 1.
#[allow(clippy::arithmetic_side_effects, reason = "callers pass 1 to 128 registers")]
pub const fn lri(flags: u32, registers: u32) -> u32 {
    LRI | flags | (2 * registers - 1)
}

/// Action of an MI command; selects the handler in the command streamer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mi {
    /// No operation, or a write of NOPID.
    Noop,
    /// Sets the global predicate from a result register.
    SetPredicate,
    /// Raises the user interrupt.
    UserInterrupt,
    /// Waits for a display event.
    WaitForEvent,
    /// Preemption point.
    ArbCheck,
    /// Writes the ring head to the PPHWSP.
    ReportHead,
    /// Enables or disables preemption.
    ArbOnOff,
    /// Ends a batch.
    BatchBufferEnd,
    /// Computes MI_PREDICATE_RESULT.
    Predicate,
    /// Executes ALU instructions.
    Math,
    /// Signals the scheduler that a semaphore has changed.
    SemaphoreSignal,
    /// Waits for memory or a register.
    SemaphoreWait,
    /// Immediate data to memory.
    StoreDataImm,
    /// Immediate data to the PPHWSP.
    StoreDataIndex,
    /// Immediate data to registers.
    LoadRegisterImm,
    /// Writes entries of the GGTT.
    UpdateGtt,
    /// Register to memory.
    StoreRegisterMem,
    /// Flush with post-sync write.
    FlushDw,
    /// Performance report to memory.
    ReportPerfCount,
    /// Memory to register.
    LoadRegisterMem,
    /// Register to register.
    LoadRegisterReg,
    /// Memory to memory.
    CopyMemMem,
    /// Read-modify-write of memory.
    Atomic,
    /// Starts a batch.
    BatchBufferStart,
    /// Starts a batch that is executed again at every restore of the context.
    PrtBatchBufferStart,
    /// Ends a batch unless a condition is true.
    ConditionalBatchBufferEnd,
    /// No operation in the model, because memory is coherent and engines are always awake.
    NoEffect,
    /// Sets state that the model does not use, or sends a message to a display. Only counted.
    StateOnly,
}

/// One MI command. The set of engines is one of classes (V8-171, V13-044..076 for the rules).
pub type MiCommand = row::MiCommand<Mi, Classes>;

impl Mi {
    /// Returns whether the parser always continues with the next command: the command neither jumps nor waits, and does
    /// not depend on its address. Every engine has these commands.
    #[inline]
    pub const fn straight(self) -> bool {
        matches!(
            self,
            Mi::Noop
                | Mi::Math
                | Mi::StoreDataImm
                | Mi::LoadRegisterImm
                | Mi::StoreRegisterMem
                | Mi::LoadRegisterMem
                | Mi::LoadRegisterReg
                | Mi::CopyMemMem
                | Mi::Atomic
        )
    }
}

macro_rules! commands {
    ($($opcode:literal $name:ident $length:expr, $least:literal, $classes:ident, $user:expr, $vf:expr, $predication:ident
        => $action:ident;)*) => {
        /// All MI commands of DG2. The two columns after the engine classes are rules: first for an unprivileged batch
        /// of any function, then for the ring or a privileged batch of a virtual function. The ring and privileged
        /// batches of the physical function are not restricted.
        pub const COMMANDS: &[MiCommand] = &[$(MiCommand {
            opcode: $opcode, name: stringify!($name), length: $length, least: $least, classes: Classes::$classes,
            rules: Rules::new($user, $vf),
            predication: Predication::$predication, action: Mi::$action,
            fields: fields::$name.0, group: fields::$name.1,
        }),*];
    };
}

const SINGLE: Length = Length::SINGLE;

const fn field(mask: u32) -> Length {
    Length::field(mask)
}

const ALLOWED: Rule = Rule::ALLOWED;
const DROPPED: Rule = Rule::DROPPED;
const NOT_GLOBAL: Rule = Rule::unless(fields::GLOBAL.mask());
const NEITHER_GLOBAL: Rule = Rule::unless(fields::SOURCE_GLOBAL.mask() | fields::DESTINATION_GLOBAL.mask());
const OWN_PAGE_ONLY: Rule = Rule::only_with(fields::OWN_PAGE.mask());
const REPORT_NOT_GLOBAL: Rule = Rule::unless_operand(fields::REPORT_GLOBAL.mask());

commands! {
    0x00 MI_NOOP SINGLE, 1, ALL, ALLOWED, ALLOWED, Global => Noop;
    0x01 MI_SET_PREDICATE SINGLE, 1, ALL, ALLOWED, ALLOWED, Never => SetPredicate;
    0x02 MI_USER_INTERRUPT SINGLE, 1, ALL, ALLOWED, ALLOWED, Global => UserInterrupt;
    0x03 MI_WAIT_FOR_EVENT SINGLE, 1, RENDER_COPY, ALLOWED, DROPPED, Global => WaitForEvent;
    0x04 MI_WAIT_FOR_EVENT_2 SINGLE, 1, RENDER_COPY, ALLOWED, DROPPED, Global => WaitForEvent;
    0x05 MI_ARB_CHECK SINGLE, 1, ALL, ALLOWED, ALLOWED, Global => ArbCheck;
    0x07 MI_REPORT_HEAD SINGLE, 1, ALL, DROPPED, ALLOWED, Global => ReportHead;
    0x08 MI_ARB_ON_OFF SINGLE, 1, ALL, DROPPED, DROPPED, Global => ArbOnOff;
    0x0a MI_BATCH_BUFFER_END SINGLE, 1, ALL, ALLOWED, ALLOWED, Explicit => BatchBufferEnd;
    0x0b MI_SUSPEND_FLUSH SINGLE, 1, ALL, ALLOWED, ALLOWED, Global => NoEffect;
    0x0c MI_PREDICATE SINGLE, 1, RENDER_COMPUTE, ALLOWED, ALLOWED, Global => Predicate;
    0x0d MI_TOPOLOGY_FILTER SINGLE, 1, RENDER, ALLOWED, ALLOWED, Global => StateOnly;
    0x0e MI_SET_APPID SINGLE, 1, ALL, ALLOWED, ALLOWED, Global => StateOnly;
    0x12 MI_LOAD_SCAN_LINES_INCL field(0x3f), 2, RENDER_COPY, ALLOWED, DROPPED, Global => StateOnly;
    0x13 MI_LOAD_SCAN_LINES_EXCL field(0x3f), 2, RENDER_COPY, ALLOWED, DROPPED, Global => StateOnly;
    0x14 MI_DISPLAY_FLIP field(0xff), 3, RENDER_COPY, DROPPED, DROPPED, Global => StateOnly;
    0x18 MI_SET_CONTEXT field(0xff), 2, RENDER_COMPUTE, DROPPED, ALLOWED, Global => NoEffect;
    0x1a MI_MATH field(0xff), 2, ALL, ALLOWED, ALLOWED, Global => Math;
    0x1b MI_SEMAPHORE_SIGNAL field(0xff), 2, ALL, NOT_GLOBAL, ALLOWED, Global => SemaphoreSignal;
    0x1c MI_SEMAPHORE_WAIT field(0xff), 4, ALL, NOT_GLOBAL, ALLOWED, Global => SemaphoreWait;
    0x1d MI_FORCE_WAKEUP field(0xff), 2, NOT_RENDER, ALLOWED, ALLOWED, Global => NoEffect;
    0x20 MI_STORE_DATA_IMM field(0x3ff), 4, ALL, NOT_GLOBAL, ALLOWED, Global => StoreDataImm;
    0x21 MI_STORE_DATA_INDEX field(0xff), 3, ALL, DROPPED, OWN_PAGE_ONLY, Global => StoreDataIndex;
    0x22 MI_LOAD_REGISTER_IMM field(0xff), 3, ALL, ALLOWED, ALLOWED, Global => LoadRegisterImm;
    0x23 MI_UPDATE_GTT field(0x3ff), 4, ALL, DROPPED, DROPPED, Global => UpdateGtt;
    0x24 MI_STORE_REGISTER_MEM field(0xff), 4, ALL, ALLOWED, ALLOWED, Global => StoreRegisterMem;
    0x26 MI_FLUSH_DW field(0x3f), 3, NOT_RENDER, ALLOWED, ALLOWED, Global => FlushDw;
    0x27 MI_CLFLUSH field(0x3ff), 3, RENDER, ALLOWED, ALLOWED, Global => NoEffect;
    0x28 MI_REPORT_PERF_COUNT field(0x3f), 4, RENDER_COMPUTE, REPORT_NOT_GLOBAL, REPORT_NOT_GLOBAL, Global
        => ReportPerfCount;
    0x29 MI_LOAD_REGISTER_MEM field(0xff), 4, ALL, NOT_GLOBAL, ALLOWED, Global => LoadRegisterMem;
    0x2a MI_LOAD_REGISTER_REG field(0xff), 3, ALL, ALLOWED, ALLOWED, Global => LoadRegisterReg;
    0x2e MI_COPY_MEM_MEM field(0xff), 5, ALL, NEITHER_GLOBAL, ALLOWED, Global => CopyMemMem;
    0x2f MI_ATOMIC field(0xff), 3, ALL, NOT_GLOBAL, ALLOWED, Global => Atomic;
    0x31 MI_BATCH_BUFFER_START field(0xff), 3, ALL, ALLOWED, ALLOWED, Explicit => BatchBufferStart;
    0x36 MI_CONDITIONAL_BATCH_BUFFER_END field(0xff), 4, ALL, NOT_GLOBAL, ALLOWED, Explicit
        => ConditionalBatchBufferEnd;
    0x39 MI_PRT_BATCH_BUFFER_START field(0xff), 3, ALL, ALLOWED, ALLOWED, Global => PrtBatchBufferStart;
}

/// The commands by opcode.
pub type Table = row::MiTable<Mi, Classes>;

/// The commands of Xe-HPG.
pub static BY_OPCODE: Table = row::by_opcode(COMMANDS);

#[cfg(test)]
mod tests {
    use arctic_base::command::Requester;

    use super::*;

    #[test]
    fn rows_are_consistent() {
        for command in COMMANDS {
            command.check();
            let explicit = command.predication == Predication::Explicit;
            assert_eq!(command.fields.contains(&fields::PREDICATE), explicit, "{}", command.name);
        }
    }

    /// Preconditions of the parser's fast path, which checks neither the engine class nor rules on the second dword.
    #[test]
    fn every_engine_has_the_straight_commands() {
        let straight = || COMMANDS.iter().filter(|command| command.action.straight());
        assert!(straight().all(|command| command.classes == Classes::ALL));
        let rules = straight().flat_map(|command| Requester::ALL.map(|requester| command.rule(requester)));
        assert!(rules.into_iter().all(|rule| !rule.depends_on_operand()));
    }
}
