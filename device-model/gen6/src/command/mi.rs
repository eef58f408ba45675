// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI commands: action, engines, length and required privilege per opcode (IVB-140..165, G67-120).
//!
//! Haswell's MI_SET_PREDICATE (01h), MI_RS_CONTROL (06h), MI_URB_ATOMIC_ALLOC (09h), MI_RS_CONTEXT (0Fh), MI_MATH (1Ah)
//! and MI_LOAD_REGISTER_REG (2Ah) do not exist in these generations (i915: i915_cmd_parser.c, hsw_render_cmds): no table
//! has a row for them, and their headers are instruction errors.

pub mod fields;

use arctic_base::command::row::{self, MiTable, Predication, by_opcode, changed};
use arctic_base::command::{Length, Rule, Rules};

use crate::topology::Classes;

/// Action of an MI command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mi {
    /// MI_NOOP.
    Noop,
    /// MI_USER_INTERRUPT.
    UserInterrupt,
    /// MI_WAIT_FOR_EVENT.
    WaitForEvent,
    /// MI_FLUSH.
    Flush,
    /// MI_CLFLUSH.
    FlushLines,
    /// MI_SUSPEND_FLUSH.
    SuspendFlush,
    /// MI_ARB_ON_OFF.
    Arbitration,
    /// MI_PREDICATE.
    Predicate,
    /// MI_REPORT_HEAD.
    ReportHead,
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

/// One MI command.
pub type MiCommand = row::MiCommand<Mi, Classes>;

const FREE: Rule = Rule::ALLOWED;
const PRIVILEGED: Rule = Rule::DROPPED;
const GGTT_PRIVILEGED: Rule = Rule::unless(fields::GLOBAL.mask());
const REPORT_PRIVILEGED: Rule = Rule::unless_operand(fields::REPORT_GLOBAL.mask());

const ONE: Length = Length::SINGLE;
/// A length field of 6 bits.
const SIX: Length = Length::field(0x3f);
/// A length field of 8 bits.
const EIGHT: Length = Length::field(0xff);
/// A length field of 10 bits.
const TEN: Length = Length::field(0x3ff);

macro_rules! commands {
    ($(#[$about:meta])* $table:ident: $($opcode:literal $name:ident $length:expr, $least:literal, $classes:ident, $user:expr
        => $action:ident;)*) => {
        $(#[$about])*
        pub const $table: &[MiCommand] = &[$(MiCommand {
            opcode: $opcode, name: stringify!($name), length: $length, least: $least, classes: Classes::$classes,
            rules: Rules::new($user, Rule::ALLOWED),
            predication: Predication::Never, action: Mi::$action,
            fields: fields::$name.0, group: fields::$name.1,
        }),*];

        $(
            #[doc = concat!("Header of ", stringify!($name), ", without a length.")]
            pub const $name: u32 = $opcode << 23;
        )*
    };
}

commands! {
    /// The commands of both generations. The rule after the engine classes is for a batch without privilege, which
    /// executes a forbidden command as MI_NOOP (IVB-133, IVB-134).
    COMMON:
    0x00 MI_NOOP ONE, 1, ALL, FREE => Noop;
    0x02 MI_USER_INTERRUPT ONE, 1, ALL, FREE => UserInterrupt;
    0x03 MI_WAIT_FOR_EVENT ONE, 1, ALL, PRIVILEGED => WaitForEvent;
    0x04 MI_FLUSH ONE, 1, RENDER, FREE => Flush;
    0x05 MI_ARB_CHECK ONE, 1, ALL, PRIVILEGED => ArbCheck;
    0x07 MI_REPORT_HEAD ONE, 1, ALL, PRIVILEGED => ReportHead;
    0x08 MI_ARB_ON_OFF ONE, 1, ALL, PRIVILEGED => Arbitration;
    0x0a MI_BATCH_BUFFER_END ONE, 1, ALL, FREE => BatchEnd;
    0x0b MI_SUSPEND_FLUSH ONE, 1, ALL, PRIVILEGED => SuspendFlush;
    0x14 MI_DISPLAY_FLIP SIX, 3, RENDER_COPY, PRIVILEGED => Skipped;
    0x16 MI_SEMAPHORE_MBOX SIX, 3, ALL, FREE => Semaphore;
    0x18 MI_SET_CONTEXT SIX, 2, RENDER, PRIVILEGED => SetContext;
    0x19 MI_URB_CLEAR SIX, 2, RENDER, FREE => Skipped;
    0x20 MI_STORE_DATA_IMM TEN, 4, ALL, GGTT_PRIVILEGED => StoreData;
    0x21 MI_STORE_DATA_INDEX SIX, 3, ALL, PRIVILEGED => StoreIndex;
    0x22 MI_LOAD_REGISTER_IMM EIGHT, 3, ALL, PRIVILEGED => LoadRegister;
    0x23 MI_UPDATE_GTT EIGHT, 2, ALL, PRIVILEGED => UpdateGtt;
    0x24 MI_STORE_REGISTER_MEM SIX, 3, ALL, PRIVILEGED => StoreRegister;
    0x26 MI_FLUSH_DW SIX, 3, NOT_RENDER, FREE => FlushDw;
    // Its payload only has a length (IVB-162).
    0x27 MI_CLFLUSH TEN, 3, RENDER, FREE => FlushLines;
    0x28 MI_REPORT_PERF_COUNT SIX, 3, RENDER, REPORT_PRIVILEGED => Skipped;
    // Bits 7:6 of the header are not part of the length.
    0x31 MI_BATCH_BUFFER_START SIX, 2, ALL, FREE => BatchStart;
    0x36 MI_CONDITIONAL_BATCH_BUFFER_END SIX, 3, ALL, GGTT_PRIVILEGED => ConditionalEnd;
}

commands! {
    /// The commands that only Ivy Bridge has (G67-120).
    IVY_BRIDGE_ONLY:
    0x0c MI_PREDICATE ONE, 1, RENDER, FREE => Predicate;
    0x0d MI_TOPOLOGY_FILTER ONE, 1, RENDER, FREE => Skipped;
    0x29 MI_LOAD_REGISTER_MEM SIX, 3, ALL, GGTT_PRIVILEGED => LoadRegisterMemory;
}

/// The commands of Sandy Bridge by opcode: it has none that Ivy Bridge does not have.
pub static SANDY_BRIDGE: MiTable<Mi, Classes> = by_opcode(COMMON);

/// The commands of Ivy Bridge by opcode.
pub static IVY_BRIDGE: MiTable<Mi, Classes> = changed(&by_opcode(COMMON), IVY_BRIDGE_ONLY);
