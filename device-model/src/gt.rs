//! What engines and GuC share: memory, registers, interrupts, time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::id::EngineId;
use crate::interrupts::Interrupts;
use crate::memory::Memory;
use crate::registers::{Kind, Live, RegisterFile};
use crate::world::{Clock, ticks};

/// Context timestamp of one engine as MMIO sees it: ticks of the 19.2 MHz counter that the context has run.
#[derive(Default)]
pub struct ContextClock {
    /// While running: global ticks minus context ticks; while stopped: the context ticks.
    value: AtomicU64,
    running: std::sync::atomic::AtomicBool,
}

impl ContextClock {
    /// Starts counting from `context_ticks` at global tick `now`.
    pub fn start(&self, now: u64, context_ticks: u32) {
        self.value.store(now.wrapping_sub(u64::from(context_ticks)), Ordering::Relaxed);
        self.running.store(true, Ordering::Release);
    }

    /// Stops at global tick `now` and tells the context's ticks.
    pub fn stop(&self, now: u64) -> u32 {
        let ticks = self.read(now);
        self.running.store(false, Ordering::Release);
        self.value.store(u64::from(ticks), Ordering::Relaxed);
        ticks
    }

    /// The context's ticks at global tick `now`.
    pub fn read(&self, now: u64) -> u32 {
        let value = self.value.load(Ordering::Relaxed);
        if self.running.load(Ordering::Acquire) { now.wrapping_sub(value) as u32 } else { value as u32 }
    }
}

/// Something that a register write asks of a unit above the GT's shared parts; the card carries it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Host rang the GuC (GUC_HOST_INTERRUPT).
    RingGuc,
    /// GuC DMA was started (DMA_CTRL bit 0).
    StartGucDma,
    /// Resets, as written to GDRST.
    Reset(u32),
    /// The driver asks for a function reset (GU_CNTL bit 31).
    DriverFlr,
    /// An engine's reset handshake: value written to RESET_CTL.
    EngineReset(EngineId, u32),
}

/// The shared parts of the GT.
pub struct Gt {
    /// Translation and memories.
    pub memory: Memory,
    /// The register file.
    pub registers: RegisterFile,
    /// The interrupt tree.
    pub interrupts: Interrupts,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Context timestamp of each engine.
    pub context_clocks: [ContextClock; EngineId::COUNT],
}

impl Gt {
    /// Ticks of the 19.2 MHz counter.
    pub fn timestamp(&self) -> u64 {
        ticks(self.clock.now())
    }

    /// Registers and interrupt tree as after power-on.
    pub fn reset(&self) {
        self.registers.reset();
    }

    /// Reads the register at `offset` (a dword), by MMIO or by a command; 0 where none is modelled, and noted.
    pub fn read(&self, offset: u32) -> u32 {
        match self.registers.decode(offset) {
            None => {
                self.registers.note_unmodelled(offset, false);
                0
            }
            Some(decoded) => match decoded.register.kind {
                Kind::Live(live) => self.read_live(live, offset, decoded.ordinal, decoded.engine),
                _ => self.registers.value(offset),
            },
        }
    }

    /// Writes the register at `offset`; what it asks of a unit above comes back as a request.
    pub fn write(&self, offset: u32, value: u32) -> Option<Request> {
        match self.registers.decode(offset) {
            None => {
                self.registers.note_unmodelled(offset, true);
                None
            }
            Some(decoded) => match decoded.register.kind {
                Kind::Live(live) => self.write_live(live, offset, value, decoded.ordinal, decoded.engine),
                kind => {
                    self.registers.write_plain(offset, kind, value);
                    None
                }
            },
        }
    }

    fn read_live(&self, live: Live, offset: u32, ordinal: u16, engine: Option<EngineId>) -> u32 {
        let half = |value: u64| if ordinal == 0 { value as u32 } else { (value >> 32) as u32 };
        match live {
            Live::Timestamp => half(self.timestamp()),
            // 36 bits wide (contract E.7).
            Live::RingTimestamp => half(self.timestamp() & 0xf_ffff_ffff),
            Live::ContextTimestamp => {
                engine.map_or(0, |engine| self.context_clocks[engine.index()].read(self.timestamp()))
            }
            Live::MasterTile
            | Live::MasterGt
            | Live::GtInterrupt
            | Live::InterruptIdentity
            | Live::InterruptSelector => self.interrupts.read(live, ordinal),
            _ => self.registers.value(offset),
        }
    }

    fn write_live(
        &self,
        live: Live,
        offset: u32,
        value: u32,
        ordinal: u16,
        engine: Option<EngineId>,
    ) -> Option<Request> {
        match live {
            Live::MasterTile
            | Live::MasterGt
            | Live::GtInterrupt
            | Live::InterruptIdentity
            | Live::InterruptSelector => {
                self.interrupts.write(live, ordinal, value);
                None
            }
            Live::GucHostInterrupt => Some(Request::RingGuc),
            Live::Gdrst => Some(Request::Reset(value)),
            Live::ResetControl => engine.map(|engine| Request::EngineReset(engine, value)),
            _ => {
                self.registers.set(offset, value);
                None
            }
        }
    }
}
