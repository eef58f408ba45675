// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of every engine, by offset from its base: ring, batch, errors and modes.

use bitfield_struct::bitfield;

use super::Kind::{Masked, ReadOnly, Storage};
use super::{Bits, Kind, Live, Register, STORED, Scope, register};

/// Condition codes, and exclusion of the ring while it waits for one (IVB-066).
pub const EXCC: u32 = 0x28;
/// Offset of the end of the commands in the ring (IVB-075).
pub const TAIL: u32 = 0x30;
/// TAIL: the offset.
pub const TAIL_OFFSET: Bits = Bits::new(20, 3);
/// Offset of the next command in the ring, and number of wraps (IVB-076).
pub const HEAD: u32 = 0x34;
/// HEAD: the offset.
pub const HEAD_OFFSET: Bits = Bits::new(20, 2);
/// HEAD: the render engine waits for a condition code; read-only.
pub const HEAD_WAITS: Bits = Bits::bit(0);
/// HEAD: number of wraps.
pub const HEAD_WRAPS: Bits = Bits::new(31, 21);
/// Address of the ring in the GGTT (IVB-077).
pub const START: u32 = 0x38;
/// Size and state of the ring (IVB-078).
pub const CTL: u32 = 0x3c;
/// CTL: commands of the ring do not write registers; of video engines only.
pub const CTL_NO_WRITES: Bits = Bits::bit(8);
/// CTL: where the head is reported to the status page; not of the render engine of Ivy Bridge.
pub const CTL_REPORT: Bits = Bits::new(2, 1);
/// CTL: number of pages less one.
pub const CTL_PAGES: Bits = Bits::new(20, 12);
/// CTL: the ring waits for an event; writing 1 ends the wait.
pub const CTL_WAIT: Bits = Bits::bit(11);
/// CTL: the ring waits for a semaphore.
pub const CTL_SEMAPHORE_WAIT: Bits = Bits::bit(10);
/// CTL: the ring is enabled.
pub const CTL_ENABLE: Bits = Bits::bit(0);
/// Semaphore register 0, the first of three (IVB-069).
pub const SYNC_0: u32 = 0x40;
/// Messages of the engine to the power unit, masked (IVB-065, G67-078).
pub const PSMI_CTL: u32 = 0x50;
/// PSMI_CTL: the engine does not tell the power unit that it is idle, and therefore stays awake.
pub const SLEEP_DISABLED: Bits = Bits::bit(0);
/// PSMI_CTL: the engine is asleep; read-only (i915: gt/intel_engine_regs.h, GEN6_BSD_SLEEP_INDICATOR).
pub const SLEEP_INDICATOR: Bits = Bits::bit(3);
/// Address of the last command with an error.
pub const IPEIR: u32 = 0x64;
/// Header of the current command.
pub const IPEHR: u32 = 0x68;
/// Idle units, one bit each.
pub const INSTDONE: u32 = 0x6c;
/// Instruction parser state.
pub const INSTPS: u32 = 0x70;
/// Address of the current command: in the ring or in a batch (G67-073).
pub const ACTHD: u32 = 0x74;
/// Address of the last fetch.
pub const DMA_FADD: u32 = 0x78;
/// Value of the last MI_NOOP with an identification (IVB-067).
pub const NOPID: u32 = 0x94;
/// Mask of the interrupt states that are written to the status page (IVB-091).
pub const HWSTAM: u32 = 0x98;
/// Mode of the command parser (IVB-055).
pub const MI_MODE: u32 = 0x9c;
/// MI_MODE: the parser is idle; read-only.
pub const MODE_IDLE: Bits = Bits::bit(9);
/// MI_MODE: UHPTR becomes invalid when the head is equal to it (IVB-056).
pub const MODE_INVALIDATE_POINTER: Bits = Bits::bit(11);
/// MI_MODE: MI_FLUSH is executed (IVB-144).
pub const MODE_FLUSH: Bits = Bits::bit(12);
/// MI_MODE: the parser must stop at the next command.
pub const MODE_STOP: Bits = Bits::bit(8);
/// Mask of the engine's interrupts, in the bit positions of the GT's registers (G67-047).
pub const IMR: u32 = 0xa8;
/// Error identity (IVB-093).
pub const EIR: u32 = 0xb0;
/// Error mask (IVB-093).
pub const EMR: u32 = 0xb4;
/// Error status (IVB-093).
pub const ESR: u32 = 0xb8;
/// EMR: reserved bits, which read as 1 (IVB-093).
pub const EMR_RESERVED: u32 = 0xffff_ff00;
/// EIR, ESR: errors that only a reset clears: the instruction error and the page-table error (IVB-093).
pub const FATAL_ERRORS: u32 = 0x11;
/// EIR, EMR, ESR: the instruction error, which only a reset clears.
pub const INSTRUCTION_ERROR: Bits = Bits::bit(0);
/// Instruction parser mode (IVB-064).
pub const INSTPM: u32 = 0xc0;
/// INSTPM: changes when MI_CLFLUSH is complete (IVB-162).
pub const CLFLUSH_TOGGLE: u32 = 1 << 11;
/// INSTPM: requests a sync flush, and reads 0 when it is complete (IVB-065).
pub const SYNC_FLUSH: Bits = Bits::bit(5);
/// State of the batch that was started from the ring (IVB-104).
pub const BB_STATE: u32 = 0x110;
/// BB_STATE: the batch is in the PPGTT.
pub const BB_PPGTT: Bits = Bits::bit(5);
/// New head offset, taken at MI_ARB_CHECK (IVB-081).
pub const UHPTR: u32 = 0x134;
/// Address of the current fetch in a batch (IVB-103).
pub const BB_ADDR: u32 = 0x140;
/// BB_ADDR, UHPTR, CCID: the rest of the register is valid.
pub const VALID: Bits = Bits::bit(0);
/// Ring offset at the last preemption (IVB-082).
pub const HEAD_PREEMPT: u32 = 0x14c;
/// Distance between the start of the batch and the current fetch (IVB-105).
pub const BB_ADDR_DIFF: u32 = 0x154;
/// Control of the watchdog (IVB-085).
pub const WATCHDOG_CONTROL: u32 = 0x178;
/// WATCHDOG_CONTROL: 0 starts the counter, 1 stops and resets it.
pub const WATCHDOG_STOP: Bits = Bits::new(30, 0);
/// Value of the counter at which the watchdog expires (IVB-086).
pub const WATCHDOG_THRESHOLD: u32 = 0x17c;
/// Counter of the watchdog (IVB-087).
pub const WATCHDOG_COUNTER: u32 = 0x190;
/// Current logical context (IVB-100).
pub const CCID: u32 = 0x180;

/// CCID (IVB-100).
#[bitfield(u32)]
pub struct Ccid {
    /// The context is saved when another one becomes current.
    pub valid: bool,
    #[bits(1)]
    __: u8,
    /// The extended state was restored.
    pub restore_extended: bool,
    /// The extended state is saved.
    pub save_extended: bool,
    #[bits(4)]
    __: u8,
    /// The image is in the GGTT.
    pub ggtt: bool,
    #[bits(3)]
    __: u8,
    /// Page of the image.
    #[bits(20)]
    pub page: u32,
}

impl Ccid {
    /// The bits that exist.
    pub const STORED: u32 = Ccid::new()
        .with_valid(true)
        .with_restore_extended(true)
        .with_save_extended(true)
        .with_ggtt(true)
        .with_page(0xf_ffff)
        .into_bits();

    /// Address of the image.
    pub const fn address(self) -> u32 {
        self.page() << 12
    }
}

/// Groups of page directory entries that may be used, one bit for 16 entries (IVB-032).
pub const PP_DCLV: u32 = 0x220;
/// Place of the page directory in the GGTT's table (IVB-033, G67-060).
pub const PP_DIR_BASE: u32 = 0x228;
/// PP_DIR_BASE: bits of the place of the page directory.
pub const DIRECTORY_BASE_MASK: u32 = 0xffff_0000;
/// Selects an entry of the page directory for a read of software (ILK-020).
pub const PP_DCIR: u32 = 0x500;
/// PP_DCIR: index of a dword in the page directory.
pub const DIRECTORY_INDEX: Bits = Bits::new(11, 2);
/// PP_DCDR: bits of the address, and the flags and the valid bit of an entry of the page directory (ILK-021).
pub const DIRECTORY_ENTRY_MASK: u32 = 0xffff_f0f1;
/// Mode of the address translation of Ivy Bridge (IVB-059).
pub const GFX_MODE: u32 = 0x29c;
/// GFX_MODE: the PPGTT is enabled (IVB-031).
pub const PPGTT_ENABLE: Bits = Bits::bit(9);
/// GFX_MODE: a full flush of the pipeline does not invalidate translations (IVB-036).
pub const EXPLICIT_INVALIDATION: Bits = Bits::bit(13);
/// Number of pixels that passed the depth test, of 64 bits (IVB-115).
pub const PS_DEPTH_COUNT: u32 = 0x350;
/// Time in units of 80 ns (IVB-116), of 64 bits.
pub const TIMESTAMP: u32 = 0x358;
/// TIMESTAMP: the bits that count, of both dwords (IVB-116).
pub const TIMESTAMP_MASK: u64 = (1 << 36) - 1;

/// Registers of an engine with behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineRegister {
    /// [`TAIL`]: a write makes commands visible.
    Tail,
    /// [`HEAD`]: written only while the ring is disabled.
    Head,
    /// [`CTL`].
    Control,
    /// [`MI_MODE`].
    Mode,
    /// [`INSTPM`].
    ParserMode,
    /// [`EIR`].
    Errors,
    /// [`EMR`].
    ErrorMask,
    /// [`WATCHDOG_CONTROL`].
    WatchdogControl,
    /// [`WATCHDOG_THRESHOLD`].
    WatchdogThreshold,
    /// [`WATCHDOG_COUNTER`].
    WatchdogCounter,
    /// [`PP_DIR_BASE`]: a write invalidates the translations of the PPGTT.
    DirectoryBase,
    /// [`PP_DCLV`]: as [`EngineRegister::DirectoryBase`].
    LoadedGroups,
    /// [`TIMESTAMP`], low dword.
    Timestamp,
    /// [`TIMESTAMP`], high dword.
    TimestampHigh,
    /// [`PSMI_CTL`] with its sleep indicator.
    SleepMessages,
    /// PP_DCDR: the entry of the page directory that PP_DCIR selects.
    DirectoryEntry,
    /// A read port of the TLB of the render engine: one of the latest pages of the command streamer (ILK-029).
    Translation,
    /// Reads as the engine's register at this offset from its base; read-only.
    Copy(u32),
}

pub(super) const fn live(register: EngineRegister) -> Kind<Live> {
    Kind::Live(Live::Engine(register))
}

/// A row with [`Scope::Engine`].
const fn row(offset: u32, name: &'static str, kind: Kind<Live>, reset: u32, source: &'static str) -> Register {
    register(offset, name, kind, reset, source).of(Scope::Engine)
}

const REGS: &str = "i915: gt/intel_engine_regs.h";

/// The registers of all generations.
pub const SHARED: &[Register] = &[
    row(EXCC, "EXCC", Masked, 0, "IVB-066"),
    row(TAIL, "RING_BUFFER_TAIL", live(EngineRegister::Tail), 0, "IVB-075"),
    row(HEAD, "RING_BUFFER_HEAD", live(EngineRegister::Head), 0, "IVB-076"),
    // Bits 31:29 are stored: drivers place rings above 512 MiB (G67-056).
    row(START, "RING_BUFFER_START", Storage(0xffff_f000), 0, "IVB-077, G67-056"),
    row(CTL, "RING_BUFFER_CTL", live(EngineRegister::Control), 0, "IVB-078"),
    Register { count: 2, ..row(SYNC_0, "SYNC", STORED, 0, "IVB-069") },
    row(0x54, "MAX_IDLE", STORED, 0, "G67-038"),
    row(IPEIR, "IPEIR", ReadOnly, 0, REGS),
    row(IPEHR, "IPEHR", ReadOnly, 0, REGS),
    row(INSTDONE, "INSTDONE", ReadOnly, !0, REGS),
    row(INSTPS, "INSTPS", ReadOnly, 0, REGS),
    row(ACTHD, "ACTHD", ReadOnly, 0, "G67-073"),
    row(DMA_FADD, "DMA_FADD", ReadOnly, 0, REGS),
    row(NOPID, "NOPID", ReadOnly, 0, "IVB-067"),
    row(HWSTAM, "HWSTAM", STORED, !0, "IVB-092"),
    row(MI_MODE, "MI_MODE", live(EngineRegister::Mode), 0, "IVB-055"),
    row(IMR, "IMR", STORED, !0, "IVB-092, G67-047"),
    row(EIR, "EIR", live(EngineRegister::Errors), 0, "IVB-093"),
    row(EMR, "EMR", live(EngineRegister::ErrorMask), !0, "IVB-093"),
    row(ESR, "ESR", ReadOnly, 0, "IVB-093"),
    row(INSTPM, "INSTPM", live(EngineRegister::ParserMode), 0, "IVB-064"),
    row(BB_STATE, "BB_STATE", ReadOnly, 0, "IVB-104"),
    row(UHPTR, "UHPTR", Storage(0xffff_fff9), 0, "IVB-081"),
    row(BB_ADDR, "BB_ADDR", ReadOnly, 0, "IVB-103"),
    row(HEAD_PREEMPT, "RING_BUFFER_HEAD_PREEMPT", ReadOnly, 0, "IVB-082"),
    row(BB_ADDR_DIFF, "BB_ADDR_DIFF", ReadOnly, 0, "IVB-105"),
    // It counts only after a start, although the document's reset value is that of a start.
    row(WATCHDOG_CONTROL, "PR_CTR_CTL", live(EngineRegister::WatchdogControl), 0, "IVB-085"),
    row(WATCHDOG_THRESHOLD, "PR_CTR_THRSH", live(EngineRegister::WatchdogThreshold), 0x0015_0000, "IVB-086"),
    row(WATCHDOG_COUNTER, "PR_CTR", live(EngineRegister::WatchdogCounter), 0, "IVB-087"),
    row(CCID, "CCID", Storage(Ccid::STORED), 0, "IVB-100"),
    row(0x1d0, "ECOSKPD", Masked, 0, REGS),
    row(PP_DIR_BASE, "PP_DIR_BASE", live(EngineRegister::DirectoryBase), 0, "IVB-033, G67-060"),
    register(TIMESTAMP, "TIMESTAMP", live(EngineRegister::Timestamp), 0, "IVB-116"),
    register(TIMESTAMP + 4, "TIMESTAMP_UDW", live(EngineRegister::TimestampHigh), 0, "IVB-116"),
];

/// The registers of Sandy Bridge.
pub const SANDY_BRIDGE: &[Register] = &[
    row(PSMI_CTL, "PSMI_CTL", live(EngineRegister::SleepMessages), 0, "G67-078"),
    row(PP_DCLV, "PP_DCLV", live(EngineRegister::LoadedGroups), !0, "ILK-022, G67-060"),
    row(PP_DCLV + 4, "PP_DCLV_UDW", ReadOnly, !0, "ILK-022"),
    // Ivy Bridge has GFX_MODE here, which the driver's error capture reads on both.
    row(GFX_MODE, "RESERVED_29C", ReadOnly, 0, "G67-061, G67-114"),
    row(PP_DCIR, "PP_DCIR", Storage(DIRECTORY_INDEX.mask()), 0, "ILK-020"),
    row(0x504, "PP_DCDR", live(EngineRegister::DirectoryEntry), 0, "ILK-021"),
    row(0x508, "PP_DCLV_READ", live(EngineRegister::Copy(PP_DCLV)), 0, "ILK-022"),
    row(0x50c, "PP_DCLV_READ_UDW", ReadOnly, !0, "ILK-022"),
    row(0x518, "PP_DIR_BASE_READ", live(EngineRegister::Copy(PP_DIR_BASE)), 0, "ILK-019, G67-060"),
];

/// The registers of the video engine of Sandy Bridge alone.
pub const SANDY_BRIDGE_VIDEO: &[Register] = &[Register { count: 2, ..row(0x198, "RNCID", STORED, 0, "G67-078") }];

/// The registers of Ivy Bridge.
pub const IVY_BRIDGE: &[Register] = &[
    row(0x48, "SYNC_2", STORED, 0, "IVB-069"),
    row(PSMI_CTL, "PSMI_CTL", Masked, 0, "IVB-065"),
    row(PP_DCLV, "PP_DCLV", live(EngineRegister::LoadedGroups), 0, "IVB-032"),
    row(PP_DCLV + 4, "PP_DCLV_UDW", ReadOnly, 0, "IVB-032"),
    // The header of the page says 800h, its text 2800h, with EXPLICIT_INVALIDATION.
    row(GFX_MODE, "GFX_MODE", Masked, 0x800, "IVB-059"),
];
