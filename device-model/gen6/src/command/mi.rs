// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI commands (IVB-140..165, G67-120).

use arctic_base::command::row::{self, MiTable, Predication, by_opcode};
use arctic_base::command::{Length, Rule, Rules};

/// Action of an MI command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mi {
    /// MI_NOOP.
    Noop,
    /// MI_USER_INTERRUPT.
    UserInterrupt,
    /// MI_WAIT_FOR_EVENT.
    WaitForEvent,
    /// A command that needs no action, because the model executes in order: flushes, and arbitration between contexts.
    Ordered,
    /// MI_ARB_CHECK.
    ArbCheck,
    /// MI_BATCH_BUFFER_END.
    BatchEnd,
    /// MI_BATCH_BUFFER_START.
    BatchStart,
    /// MI_CONDITIONAL_BATCH_BUFFER_END.
    ConditionalEnd,
    /// MI_SEMAPHORE_MBOX.
    Semaphore,
    /// MI_SET_CONTEXT.
    SetContext,
    /// MI_STORE_DATA_IMM.
    StoreData,
    /// MI_STORE_DATA_INDEX.
    StoreIndex,
    /// MI_LOAD_REGISTER_IMM.
    LoadRegister,
    /// MI_UPDATE_GTT.
    UpdateGtt,
    /// MI_STORE_REGISTER_MEM.
    StoreRegister,
    /// MI_LOAD_REGISTER_MEM.
    LoadRegisterMemory,
    /// MI_FLUSH_DW.
    FlushDw,
    /// A command that the model does not execute: it is skipped and counted.
    Skipped,
}

/// One MI command. Every engine has all of them.
pub type MiCommand = row::MiCommand<Mi, ()>;

/// Header bit: the address is in the GGTT.
pub const USE_GGTT: u32 = 1 << 22;

/// Allowed without privilege.
const FREE: Rule = Rule::ALLOWED;
/// Not allowed without privilege.
const PRIVILEGED: Rule = Rule::DROPPED;
/// Not allowed without privilege on an address in the GGTT.
const GGTT_PRIVILEGED: Rule = Rule::unless(USE_GGTT);

const ONE: Length = Length::SINGLE;
/// A length field of 6 bits.
const SIX: Length = Length::field(0x3f);
/// A length field of 8 bits.
const EIGHT: Length = Length::field(0xff);
/// A length field of 10 bits.
const TEN: Length = Length::field(0x3ff);

/// A command, and the rule by which a batch that is not privileged executes it as MI_NOOP (IVB-133, IVB-134). It has no
/// fields yet: the disassembler does not know the family.
const fn row(opcode: u8, name: &'static str, length: Length, rule: Rule, action: Mi) -> MiCommand {
    MiCommand {
        opcode,
        name,
        length,
        least: if length.mask() == 0 { 1 } else { 2 },
        classes: (),
        rules: Rules::new(rule, Rule::ALLOWED),
        predication: Predication::Never,
        action,
        fields: &[],
        group: None,
    }
}

/// The commands of Ivy Bridge.
pub const TABLE: &[MiCommand] = &[
    row(0x00, "MI_NOOP", ONE, FREE, Mi::Noop),
    row(0x02, "MI_USER_INTERRUPT", ONE, FREE, Mi::UserInterrupt),
    row(0x03, "MI_WAIT_FOR_EVENT", ONE, PRIVILEGED, Mi::WaitForEvent),
    row(0x04, "MI_FLUSH", ONE, FREE, Mi::Ordered),
    row(0x05, "MI_ARB_CHECK", ONE, PRIVILEGED, Mi::ArbCheck),
    row(0x07, "MI_REPORT_HEAD", ONE, PRIVILEGED, Mi::Skipped),
    row(0x08, "MI_ARB_ON_OFF", ONE, PRIVILEGED, Mi::Ordered),
    row(0x0a, "MI_BATCH_BUFFER_END", ONE, FREE, Mi::BatchEnd),
    row(0x0b, "MI_SUSPEND_FLUSH", ONE, PRIVILEGED, Mi::Ordered),
    row(0x0c, "MI_PREDICATE", ONE, FREE, Mi::Skipped),
    row(0x0d, "MI_TOPOLOGY_FILTER", ONE, FREE, Mi::Skipped),
    row(0x14, "MI_DISPLAY_FLIP", SIX, PRIVILEGED, Mi::Skipped),
    row(0x16, "MI_SEMAPHORE_MBOX", SIX, FREE, Mi::Semaphore),
    row(0x18, "MI_SET_CONTEXT", SIX, PRIVILEGED, Mi::SetContext),
    row(0x19, "MI_URB_CLEAR", SIX, FREE, Mi::Skipped),
    row(0x20, "MI_STORE_DATA_IMM", TEN, GGTT_PRIVILEGED, Mi::StoreData),
    row(0x21, "MI_STORE_DATA_INDEX", SIX, PRIVILEGED, Mi::StoreIndex),
    row(0x22, "MI_LOAD_REGISTER_IMM", EIGHT, PRIVILEGED, Mi::LoadRegister),
    row(0x23, "MI_UPDATE_GTT", EIGHT, PRIVILEGED, Mi::UpdateGtt),
    row(0x24, "MI_STORE_REGISTER_MEM", SIX, PRIVILEGED, Mi::StoreRegister),
    row(0x26, "MI_FLUSH_DW", SIX, FREE, Mi::FlushDw),
    // Its payload only has a length (IVB-162).
    row(0x27, "MI_CLFLUSH", TEN, FREE, Mi::Ordered),
    row(0x28, "MI_REPORT_PERF_COUNT", SIX, GGTT_PRIVILEGED, Mi::Skipped),
    row(0x29, "MI_LOAD_REGISTER_MEM", SIX, GGTT_PRIVILEGED, Mi::LoadRegisterMemory),
    // Bits 7:6 of the header are not part of the length.
    row(0x31, "MI_BATCH_BUFFER_START", SIX, FREE, Mi::BatchStart),
    row(0x36, "MI_CONDITIONAL_BATCH_BUFFER_END", SIX, GGTT_PRIVILEGED, Mi::ConditionalEnd),
];

/// The commands by opcode.
pub static BY_OPCODE: MiTable<Mi, ()> = by_opcode(TABLE);
