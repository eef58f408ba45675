//! Registers as data: one table a unit; decode, reset, access rules and the report of unmodelled accesses come from it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;

use crate::engine::id::{EngineId, WakeDomain};

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
    /// Forcewake request: the acknowledge register (given as offset) follows (V13-136).
    Forcewake {
        /// Offset of the acknowledge register of element 0; arrays go on by 4.
        ack: u32,
    },
    /// GDRST: engine, GuC and full resets (contract B.4, G.1).
    Gdrst,
    /// GUC_STATUS.
    GucStatus,
    /// WOPCM base and size: a write sets bit 0 (locked, valid).
    WopcmLock,
    /// GuC DMA control: masked; bit 0 starts a transfer.
    GucDma,
    /// GUC_HOST_INTERRUPT: the doorbell of mailbox and CT buffers.
    GucHostInterrupt,
    /// TLB invalidation request registers: self-clearing.
    TlbInvalidate,
    /// LMEM_CFG: LMTT enable and directory.
    LmemCfg,
    /// PCODE mailbox, data 0, data 1 by ordinal.
    Pcode,
    /// Free-running 19.2 MHz counter; ordinal 0 is the low, 1 the high dword.
    Timestamp,
    /// Idle state of the GT: [2:0] RC state.
    CoreStatus,
    /// RC6 residency in 1.28 us units.
    Rc6Residency,
    /// Actual frequency of the GT.
    PerfStatus,
    /// Power and energy telemetry that changes with time.
    Telemetry,
    /// DG1_MSTR_TILE_INTR (V13-278).
    MasterTile,
    /// GFX_MSTR_IRQ.
    MasterGt,
    /// GT_INTR_DW of bank = ordinal.
    GtInterrupt,
    /// INTR_IDENTITY_REG of bank = ordinal.
    InterruptIdentity,
    /// IIR_REG_SELECTOR of bank = ordinal.
    InterruptSelector,
    /// HECI window (ordinal = dword within it), 0 for GSC, 1 for GSCFI.
    Heci(u8),
    /// GU_CNTL: bit 31 resets the function, bit 7 reads 1.
    GuCntl,
    /// An engine's RING_TIMESTAMP; ordinal 0 low, 1 high.
    RingTimestamp,
    /// An engine's CTX_TIMESTAMP.
    ContextTimestamp,
    /// An engine's RESET_CTL handshake.
    ResetControl,
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
    pub stride: u16,
    /// Document, item or driver source that defines it.
    pub source: &'static str,
}

/// A single register.
pub const fn register(offset: u32, name: &'static str, kind: Kind, reset: u32, source: &'static str) -> Register {
    Register { offset, name, kind, reset, count: 1, stride: 4, source }
}

/// An array of `count` registers, `stride` bytes apart.
pub const fn array(
    offset: u32,
    name: &'static str,
    kind: Kind,
    reset: u32,
    (count, stride): (u16, u16),
    source: &'static str,
) -> Register {
    Register { offset, name, kind, reset, count, stride, source }
}

/// A register that an offset decodes to.
#[derive(Clone, Copy, Debug)]
pub struct Decoded {
    /// Its definition.
    pub register: &'static Register,
    /// Element of the array.
    pub ordinal: u16,
    /// The engine whose block it is in, for engine registers.
    pub engine: Option<EngineId>,
}

/// How often an unmodelled register was touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Touches {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// Unmodelled offsets that the report keeps apart; more are counted together.
const MOST_UNMODELLED: usize = 4096;

/// All registers with their present values.
pub struct RegisterFile {
    values: Box<[AtomicU32]>,
    index: Box<[u16]>,
    decoded: Vec<Decoded>,
    unmodelled: Mutex<BTreeMap<u32, Touches>>,
}

impl RegisterFile {
    /// Builds the file from the card-wide tables and the table of engine registers, the latter once an engine.
    pub fn new(
        tables: &[&'static [Register]],
        engine_table: &'static [Register],
        engines: impl Iterator<Item = EngineId>,
    ) -> Self {
        let dwords = (REGISTER_BYTES / 4) as usize;
        let mut file = RegisterFile {
            values: (0..dwords).map(|_| AtomicU32::new(0)).collect(),
            index: vec![0; dwords].into_boxed_slice(),
            decoded: Vec::new(),
            unmodelled: Mutex::new(BTreeMap::new()),
        };
        for register in tables.iter().flat_map(|table| table.iter()) {
            file.place(register, 0, None);
        }
        for engine in engines {
            for register in engine_table {
                file.place(register, engine.info().mmio_base, Some(engine));
            }
        }
        file.reset();
        file
    }

    fn place(&mut self, register: &'static Register, base: u32, engine: Option<EngineId>) {
        for ordinal in 0..register.count {
            let at = (base + register.offset + u32::from(ordinal) * u32::from(register.stride)) / 4;
            let slot = &mut self.index[at as usize];
            debug_assert_eq!(*slot, 0, "two registers at {:#x}", at * 4);
            self.decoded.push(Decoded { register, ordinal, engine });
            *slot = self.decoded.len() as u16;
        }
    }

    /// Gives every register its reset value.
    pub fn reset(&self) {
        for (at, slot) in self.index.iter().enumerate() {
            if let Some(decoded) = self.decoded_slot(*slot) {
                self.values[at].store(decoded.register.reset, Ordering::Relaxed);
            }
        }
    }

    /// Gives the registers of one engine's block their reset values.
    pub fn reset_engine(&self, engine: EngineId) {
        let base = engine.info().mmio_base / 4;
        for (at, slot) in self.index.iter().enumerate().skip(base as usize).take(0x800 / 4) {
            if let Some(decoded) = self.decoded_slot(*slot) {
                self.values[at].store(decoded.register.reset, Ordering::Relaxed);
            }
        }
    }

    fn decoded_slot(&self, slot: u16) -> Option<&Decoded> {
        self.decoded.get(usize::from(slot).checked_sub(1)?)
    }

    /// The register at byte `offset` (its dword), if one is modelled there.
    #[inline]
    pub fn decode(&self, offset: u32) -> Option<&Decoded> {
        self.decoded_slot(*self.index.get((offset / 4) as usize)?)
    }

    /// The stored value, without side effect; 0 outside.
    #[inline]
    pub fn value(&self, offset: u32) -> u32 {
        self.values.get((offset / 4) as usize).map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    /// Stores a value, without side effect or mask: for the unit that owns the register.
    #[inline]
    pub fn set(&self, offset: u32, value: u32) {
        if let Some(cell) = self.values.get((offset / 4) as usize) {
            cell.store(value, Ordering::Release);
        }
    }

    /// Applies a guest's write to a register without behaviour of its own.
    pub fn write_plain(&self, offset: u32, kind: Kind, value: u32) {
        let old = self.value(offset);
        match kind {
            Kind::Storage(mask) => self.set(offset, old & !mask | value & mask),
            Kind::Masked => {
                let select = value >> 16;
                self.set(offset, old & !select & 0xffff | value & select);
            }
            Kind::Write1Clear(mask) => self.set(offset, old & !(value & mask)),
            Kind::ReadOnly | Kind::Live(_) => {}
        }
    }

    /// Notes that something touched an offset where no register is modelled.
    pub fn note_unmodelled(&self, offset: u32, write: bool) {
        let mut map = self.unmodelled.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let key = if map.len() < MOST_UNMODELLED || map.contains_key(&offset) { offset } else { u32::MAX };
        let touches = map.entry(key).or_default();
        if write { touches.writes += 1 } else { touches.reads += 1 }
    }

    /// Unmodelled offsets touched so far (`u32::MAX` stands for all beyond the report's limit).
    pub fn unmodelled(&self) -> BTreeMap<u32, Touches> {
        self.unmodelled.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Every register that the card models, by offset.
    pub fn listing(&self) -> impl Iterator<Item = (u32, &Decoded)> {
        self.index.iter().enumerate().filter_map(|(at, slot)| Some((at as u32 * 4, self.decoded_slot(*slot)?)))
    }
}

/// A range of registers that one wake domain keeps awake (V13-129).
#[derive(Clone, Copy, Debug)]
pub struct WakeRange {
    /// First byte.
    pub start: u32,
    /// Last byte.
    pub end: u32,
    /// The domain.
    pub domain: WakeDomain,
}
