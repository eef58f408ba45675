//! Registers as data: one table a unit; decode, reset, access rules and the report of unmodelled accesses come from it.

mod cell;
mod doorbell;
mod engine;
mod file;
mod fuses;
mod gsc;
mod guc;
mod interrupt;
pub mod known;
pub mod memory;
mod observation;
mod personality;
mod power;
pub mod ranges;
mod render;
mod steering;
#[cfg(test)]
mod tests;
mod tile;
mod workaround;

pub use cell::masked;
pub use doorbell::DoorbellRegister;
pub use file::{Decoded, RegisterFile, Touches, admitted};
pub use power::{GT_PERF_STATUS, RP_STATE_CAP, RPNSWREQ};
pub use steering::MCR_SELECTOR;
pub use tile::GU_DEBUG;

use crate::engine::id::{Classes, EngineClass, EngineId};

/// Bytes of register space that the card decodes; GTTMMADR has nothing between here and the doorbells (V13-003).
pub const REGISTER_BYTES: u32 = 4 << 20;

/// What an access of a register does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Keeps the written bits of the mask.
    Storage(u32),
    /// Constant or set by the card alone; writes are ignored.
    ReadOnly,
    /// Bits 31:16 select which of bits 15:0 are written; bits 31:16 read 0.
    Masked,
    /// A written 1 clears the bit, within the mask.
    Write1Clear(u32),
    /// Belongs to a unit that acts on reads or writes.
    Live(Live),
}

/// Registers with behaviour; the unit that acts is named by the variant. With an array the register's ordinal tells
/// which one was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Live {
    /// Forcewake request of the driver, a masked register: its low half appears in the acknowledge register (V13-135).
    Forcewake {
        /// Offset of the acknowledge register of element 0; arrays go on by 4.
        ack: u32,
    },
    /// GDRST: engine, GuC and full resets; the bits read 0 again at once (contract B.4, G.1).
    Gdrst,
    /// WOPCM base and size: the first write sets bit 0 (locked, valid), later ones are ignored (contract B.4).
    WopcmLock {
        /// Bits that a write can set.
        mask: u32,
    },
    /// GuC DMA control: masked; bit 0 starts a transfer and reads 0 when it is done.
    GucDma,
    /// GUC_HOST_INTERRUPT: the doorbell of mailbox and CT buffers.
    GucHostInterrupt,
    /// TLB invalidation request: done when the write is, reads 0.
    TlbInvalidate,
    /// LMEM_CFG: enable bit and directory of the local memory translation table (V13-107; contract D.5).
    LmemCfg,
    /// PCODE mailbox, data 0, data 1 by ordinal.
    Pcode,
    /// Power, energy and temperature readings of the PCU.
    Reading,
    /// A dword of a HECI window: 0 for GSC, 1 for GSCFI.
    Heci(u8),
    /// Free-running 19.2 MHz counter; ordinal 0 is the low, 1 the high dword.
    Timestamp,
    /// Idle state of the GT: bits 2:0 RC state.
    CoreStatus,
    /// RC6 residency in 1.28 us units.
    Rc6Residency,
    /// Actual frequency of the GT.
    PerfStatus,
    /// DG1_MSTR_TILE_INTR (V13-278).
    MasterTile,
    /// GFX_MSTR_IRQ (V13-279).
    MasterGt,
    /// GT_INTR_DW of bank = ordinal (V13-268).
    GtInterrupt,
    /// INTR_IDENTITY_REG of bank = ordinal (V13-270).
    InterruptIdentity,
    /// IIR_REG_SELECTOR of bank = ordinal (V13-269).
    InterruptSelector,
    /// Interrupt enables of a class (V13-265).
    InterruptEnable,
    /// Interrupt masks of one or two instances (V13-266).
    InterruptMask,
    /// GU_CNTL: bit 31 resets the function and reads 0, bit 7 reads 1 (local memory is initialised).
    GuCntl,
    /// An engine's RING_TIMESTAMP; ordinal 0 low, 1 high.
    RingTimestamp,
    /// An engine's CTX_TIMESTAMP.
    ContextTimestamp,
    /// An engine's ELSP: a dword for the submission queue (V8-011); reads 0.
    SubmitPort,
    /// An engine's RING_EXECLIST_CONTROL: bit 0 loads the submission queue (V8-013) and reads 0.
    ExeclistControl,
    /// The doorbell block's.
    Doorbell(DoorbellRegister),
    /// An engine's EIR: a written 1 clears an error that software can clear (V8-089).
    ErrorIdentity,
    /// An engine's EMR: what it lets through of ESR is in EIR (V8-089).
    ErrorMask,
    /// An engine's RESET_CTL: request in bit 0, ready in bit 1, catastrophic error in bit 2 (contract G.1).
    ResetControl,
}

/// Whose state a register is, and so what the command streams of a virtual function reach of it (V13-052, V13-080):
/// nothing that one function leaves in a register may be seen by another, or act on it. The PF's driver reaches all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The card's, or the engine's whoever runs on it: it reads 0, and what is written is dropped.
    Card,
    /// The same for everybody, a constant or a clock: it may be read.
    Common,
    /// Tells where the context stands that is running: it may be read.
    Position,
    /// The engine's, of its power context: no context switch changes it, and every context may read and write it. Each
    /// function starts with its reset value, so that none sees another's.
    Power,
    /// State of the context on engines of these classes, saved and restored with it: it may be read and written.
    Context(Classes),
    /// State of the context on this one engine.
    ContextOf(EngineClass, u8),
}

impl Scope {
    /// Whether the register is a part of the contexts that run on `engine`.
    pub fn kept_by(self, engine: EngineId) -> bool {
        let info = engine.info();
        match self {
            Scope::Context(classes) => classes.has(info.class),
            Scope::ContextOf(class, instance) => (class, instance) == (info.class, info.instance),
            Scope::Card | Scope::Common | Scope::Position | Scope::Power => false,
        }
    }
}

/// One register, or an array of them.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// Offset in GTTMMADR, or from the engine's base in the engine table.
    pub offset: u32,
    /// Name as the field writes it.
    pub name: &'static str,
    /// What an access does.
    pub kind: Kind,
    /// Value after reset.
    pub reset: u32,
    /// Elements of an array (1 for a single register).
    pub count: u16,
    /// Bytes from element to element.
    pub stride: u32,
    /// Document, item or driver source that defines it.
    pub source: &'static str,
    /// Whose state it is.
    pub scope: Scope,
}

impl Register {
    /// The same register as state of `scope`.
    const fn of(self, scope: Scope) -> Register {
        Register { scope, ..self }
    }
}

/// A single register, the card's.
pub const fn register(offset: u32, name: &'static str, kind: Kind, reset: u32, source: &'static str) -> Register {
    Register { offset, name, kind, reset, count: 1, stride: 4, source, scope: Scope::Card }
}

/// An array of `count` registers, `stride` bytes apart, the card's.
pub const fn array(
    offset: u32,
    name: &'static str,
    kind: Kind,
    reset: u32,
    (count, stride): (u16, u32),
    source: &'static str,
) -> Register {
    Register { offset, name, kind, reset, count, stride, source, scope: Scope::Card }
}

/// The card-wide tables, one a unit.
pub const TABLES: &[&[Register]] = &[
    tile::TABLE,
    fuses::TABLE,
    power::TABLE,
    steering::TABLE,
    memory::TABLE,
    guc::TABLE,
    doorbell::TABLE,
    gsc::TABLE,
    interrupt::TABLE,
    render::TABLE,
    observation::TABLE,
    workaround::TABLE,
];

/// The registers of every engine, by offset from its base.
pub const ENGINE_TABLE: &[Register] = engine::TABLE;

/// State of every context.
const EVERY: Scope = Scope::Context(Classes::ALL);
/// State of contexts of the render engine.
const RENDER: Scope = Scope::Context(Classes::RENDER);
/// State of contexts of render and compute engines.
const RENDER_COMPUTE: Scope = Scope::Context(Classes::RENDER_COMPUTE);
/// State of contexts of the copy engine.
const COPY: Scope = Scope::Context(Classes::COPY);

/// All bits stored, nothing else happens.
const STORED: Kind = Kind::Storage(!0);
