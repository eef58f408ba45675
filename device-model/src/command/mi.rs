//! MI commands (client 0): what the command streamer of every engine executes by itself (V8-097, V8-098).

use super::{Classes, Length};

/// What an MI command does; the command streamer's handler goes by this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mi {
    /// Nothing, or NOPID.
    Noop,
    /// Sets the global predicate from a result register.
    SetPredicate,
    /// Raises the user interrupt.
    UserInterrupt,
    /// Waits for a display event.
    WaitForEvent,
    /// Arbitration point.
    ArbCheck,
    /// Ring head to the PPHWSP.
    ReportHead,
    /// Permits or forbids preemption.
    ArbOnOff,
    /// Ends a batch.
    BatchBufferEnd,
    /// Computes MI_PREDICATE_RESULT.
    Predicate,
    /// Flips a display plane.
    DisplayFlip,
    /// Runs the ALU.
    Math,
    /// Hints at a semaphore that has changed.
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
    /// Ends a batch unless a comparison holds.
    ConditionalBatchBufferEnd,
    /// Nothing to do in a card whose memory is coherent, whose engines are awake and which has no display.
    NoEffect,
    /// State that nothing in the model reads; counted.
    StateOnly,
}

/// What a batch without privilege gets of a command (V8-171).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// All of it; the handler drops what a register or a post-sync address forbids.
    User,
    /// Nothing if any of these header bits asks for the global space.
    UserUnless(u32),
    /// Nothing at all.
    Kernel,
}

/// How MI_SET_PREDICATE_RESULT bears on a command (V8-140).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predication {
    /// Skipped while bit 0 is set.
    Global,
    /// Skipped while bit 0 is set if the command's own bit 15 asks for it.
    Explicit,
    /// Always executed.
    Never,
}

/// One MI command.
#[derive(Clone, Copy, Debug)]
pub struct MiCommand {
    /// Bits 28:23.
    pub opcode: u8,
    /// Name as the PRM writes it.
    pub name: &'static str,
    /// Length rule.
    pub length: Length,
    /// Fewest dwords that make sense; a shorter one is illegal.
    pub least: u8,
    /// Engines that have it.
    pub classes: Classes,
    /// What a batch without privilege gets.
    pub privilege: Privilege,
    /// How the global predicate bears on it.
    pub predication: Predication,
    /// What it does.
    pub action: Mi,
}

impl Mi {
    /// Whether the parser goes straight on behind the command, whatever it finds: it neither jumps nor waits, and does
    /// not look where it stands. Every engine has these.
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

const GGTT: u32 = 1 << 22;

macro_rules! commands {
    ($($opcode:literal $name:ident $length:expr, $least:literal, $classes:ident, $privilege:expr, $predication:ident
        => $action:ident;)*) => {
        /// All MI commands of DG2.
        pub const COMMANDS: &[MiCommand] = &[$(MiCommand {
            opcode: $opcode, name: stringify!($name), length: $length, least: $least, classes: Classes::$classes,
            privilege: $privilege, predication: Predication::$predication, action: Mi::$action,
        }),*];
    };
}

const SINGLE: Length = Length::SINGLE;

const fn field(mask: u32) -> Length {
    Length::field(mask)
}

use Privilege::{Kernel, User, UserUnless};

commands! {
    0x00 MI_NOOP SINGLE, 1, ALL, User, Global => Noop;
    0x01 MI_SET_PREDICATE SINGLE, 1, ALL, User, Never => SetPredicate;
    0x02 MI_USER_INTERRUPT SINGLE, 1, ALL, User, Global => UserInterrupt;
    0x03 MI_WAIT_FOR_EVENT SINGLE, 1, RENDER_COPY, User, Global => WaitForEvent;
    0x04 MI_WAIT_FOR_EVENT_2 SINGLE, 1, RENDER_COPY, User, Global => WaitForEvent;
    0x05 MI_ARB_CHECK SINGLE, 1, ALL, User, Global => ArbCheck;
    0x07 MI_REPORT_HEAD SINGLE, 1, ALL, Kernel, Global => ReportHead;
    0x08 MI_ARB_ON_OFF SINGLE, 1, ALL, Kernel, Global => ArbOnOff;
    0x0a MI_BATCH_BUFFER_END SINGLE, 1, ALL, User, Explicit => BatchBufferEnd;
    0x0b MI_SUSPEND_FLUSH SINGLE, 1, ALL, User, Global => NoEffect;
    0x0c MI_PREDICATE SINGLE, 1, RENDER_COMPUTE, User, Global => Predicate;
    0x0d MI_TOPOLOGY_FILTER SINGLE, 1, RENDER, User, Global => StateOnly;
    0x0e MI_SET_APPID SINGLE, 1, ALL, User, Global => StateOnly;
    0x12 MI_LOAD_SCAN_LINES_INCL field(0x3f), 2, RENDER_COPY, User, Global => NoEffect;
    0x13 MI_LOAD_SCAN_LINES_EXCL field(0x3f), 2, RENDER_COPY, User, Global => NoEffect;
    0x14 MI_DISPLAY_FLIP field(0xff), 3, RENDER_COPY, Kernel, Global => DisplayFlip;
    0x18 MI_SET_CONTEXT field(0xff), 2, RENDER_COMPUTE, User, Global => NoEffect;
    0x1a MI_MATH field(0xff), 2, ALL, User, Global => Math;
    0x1b MI_SEMAPHORE_SIGNAL field(0xff), 2, ALL, User, Global => SemaphoreSignal;
    0x1c MI_SEMAPHORE_WAIT field(0xff), 4, ALL, UserUnless(GGTT), Global => SemaphoreWait;
    0x1d MI_FORCE_WAKEUP field(0xff), 2, NOT_RENDER, User, Global => NoEffect;
    0x20 MI_STORE_DATA_IMM field(0x3ff), 4, ALL, UserUnless(GGTT), Global => StoreDataImm;
    0x21 MI_STORE_DATA_INDEX field(0xff), 3, ALL, Kernel, Global => StoreDataIndex;
    0x22 MI_LOAD_REGISTER_IMM field(0xff), 3, ALL, User, Global => LoadRegisterImm;
    0x23 MI_UPDATE_GTT field(0x3ff), 4, ALL, Kernel, Global => UpdateGtt;
    0x24 MI_STORE_REGISTER_MEM field(0xff), 4, ALL, User, Global => StoreRegisterMem;
    0x26 MI_FLUSH_DW field(0x3f), 3, NOT_RENDER, User, Global => FlushDw;
    0x27 MI_CLFLUSH field(0x3ff), 3, RENDER, User, Global => NoEffect;
    0x28 MI_REPORT_PERF_COUNT field(0x3f), 4, RENDER_COMPUTE, User, Global => ReportPerfCount;
    0x29 MI_LOAD_REGISTER_MEM field(0xff), 4, ALL, UserUnless(GGTT), Global => LoadRegisterMem;
    0x2a MI_LOAD_REGISTER_REG field(0xff), 3, ALL, User, Global => LoadRegisterReg;
    0x2e MI_COPY_MEM_MEM field(0xff), 5, ALL, UserUnless(GGTT | 1 << 21), Global => CopyMemMem;
    0x2f MI_ATOMIC field(0xff), 3, ALL, UserUnless(GGTT), Global => Atomic;
    0x31 MI_BATCH_BUFFER_START field(0xff), 3, ALL, User, Explicit => BatchBufferStart;
    0x36 MI_CONDITIONAL_BATCH_BUFFER_END field(0xff), 4, ALL, UserUnless(GGTT), Explicit => ConditionalBatchBufferEnd;
}

const fn by_opcode() -> [Option<&'static MiCommand>; 64] {
    let mut table = [None; 64];
    let mut n = 0;
    while n < COMMANDS.len() {
        table[COMMANDS[n].opcode as usize] = Some(&COMMANDS[n]);
        n += 1;
    }
    table
}

static BY_OPCODE: [Option<&'static MiCommand>; 64] = by_opcode();

/// The command of an MI header (bits 31:29 are 0).
#[inline]
pub fn lookup(header: u32) -> Option<&'static MiCommand> {
    BY_OPCODE[(header >> 23 & 0x3f) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the parser's short way relies on: it does not ask which engine it is on.
    #[test]
    fn every_engine_has_the_straight_commands() {
        assert!(COMMANDS.iter().filter(|command| command.action.straight()).all(|c| c.classes == Classes::ALL));
    }
}
