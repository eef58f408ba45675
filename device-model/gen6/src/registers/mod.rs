// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers as data. A unit has a table of the registers that all generations have, `SHARED`, and one for each
//! generation that has others; a unit without differences has one `TABLE`. The sources are items of the documents
//! (IVB-…, ILK-…), of the driver contract (G67-…), and files of the driver (i915: …).
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod arbiter;
pub mod copy;
pub mod display;
pub mod engine;
pub mod engines;
pub mod fence;
pub mod fuses;
pub mod interrupt;
pub mod layouts;
pub mod pch;
pub mod pipe;
pub mod power;
pub mod render;
#[cfg(test)]
mod tests;
mod workaround;

pub use arctic_base::registers::{Bits, Copies, Kind, Touches, Unit, all_selected, masked};

pub use display::DisplayRegister;
pub use engine::EngineRegister;
pub use interrupt::{Bank, InterruptRegister};
pub use power::PowerRegister;

use arctic_base::registers::{self as base, Family, Replicated, Table};

use self::engines::EngineInfo;
use crate::topology::EngineId;

/// Size of the register space in bytes, the lower half of GTTMMADR (G67-005).
pub const REGISTER_BYTES: u32 = 2 << 20;

/// The family, for the types of `arctic-base`.
#[derive(Clone, Copy, Debug)]
pub enum Gen6 {}

impl Family for Gen6 {
    type Live = Live;
    type Scope = Scope;
    type Engine = EngineId;
    type Range = Awake;
}

/// The range of registers that must be awake for an access (G67-035). None of its units is replicated.
#[derive(Debug)]
pub struct Awake;

impl Replicated for Awake {
    fn replication(&self) -> usize {
        0
    }

    fn instances(&self) -> u16 {
        1
    }
}

/// End of the range of registers that must be awake, which begins at 0 (G67-035).
const AWAKE_END: u32 = 0x4_0000;

/// A register, or an array of registers.
pub type Register = base::Register<Gen6>;
/// Result of decoding an offset.
pub type Decoded = base::Decoded<Gen6>;
/// An access to a register with behaviour.
pub type Access<'d> = base::Access<'d, Gen6>;
/// The register file.
pub type RegisterFile = base::RegisterFile<Gen6>;

/// A register with side effects or a computed value: the unit that owns it, and the register of that unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// Display edges (`gt/display.rs`).
    Display(DisplayRegister),
    /// Ring, modes and time of an engine (`gt/engine.rs`).
    Engine(EngineRegister),
    /// Interrupt registers (`gt/interrupt.rs`).
    Interrupt(InterruptRegister),
    /// Forcewake, RC6, frequency and PCODE (`gt/power.rs`).
    Power(PowerRegister),
    /// Fault register of an engine, or of one that is absent: clearing the valid bit clears the other fields (IVB-039,
    /// ILK-161).
    Fault,
    /// MTCH_CID_RST.
    MatchReset,
    /// GDRST: bits of the domains to reset; reads 0 when the reset is complete.
    Reset,
    /// A write ends accesses by earlier translations; reads 0.
    Barrier,
}

/// Owner of a register's state, which determines the resets that change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The device: changed only by a reset of the function.
    Device,
    /// The translation of CPU accesses to the aperture, which a write changes; reset as the device (ILK-063).
    Aperture,
    /// The engine that has the register in its table, or the render engine: changed also by a reset of its domain.
    Engine,
    /// A logical context of the render engine: changed also by MI_SET_CONTEXT, and by a reset of the render domain.
    Context,
    /// The extended state of a logical context: as [`Scope::Context`], if the command asks for it (IVB-106). The document
    /// has no list of these registers; the ones here are those that only commands of the 3D and GPGPU pipelines use.
    Extended,
}

impl Scope {
    /// The state is of a logical context.
    #[inline]
    pub fn of_contexts(self) -> bool {
        matches!(self, Scope::Context | Scope::Extended)
    }
}

/// A single register with [`Scope::Device`].
const fn register(offset: u32, name: &'static str, kind: Kind<Live>, reset: u32, source: &'static str) -> Register {
    Register { offset, name, kind, reset, count: 1, stride: 4, source, scope: Scope::Device, copies: Copies::One }
}

/// An array of `count` consecutive registers with [`Scope::Device`].
const fn array(
    offset: u32,
    name: &'static str,
    kind: Kind<Live>,
    reset: u32,
    count: u16,
    source: &'static str,
) -> Register {
    Register { count, ..register(offset, name, kind, reset, source) }
}

/// All bits are stored; no side effects.
const STORED: Kind<Live> = Kind::Storage(!0);

/// The registers of a generation.
#[derive(Debug)]
pub struct RegisterTables {
    /// Registers by absolute offset, one or more tables for each unit.
    pub card: &'static [&'static [Register]],
    /// Registers of every engine, by offset from its base. [`EngineInfo::rows`] are those of one engine.
    pub engine: &'static [&'static [Register]],
    /// Registers of every pipe of the display, by offset of pipe A.
    pub pipe: &'static [&'static [Register]],
    /// Number of pipes.
    pub pipes: u32,
}

impl RegisterTables {
    /// Builds the registers of a card with `engines`, in the reset state.
    pub fn file(&self, engines: &'static [EngineInfo]) -> RegisterFile {
        let card = self.card.iter().map(|rows| Table { rows, base: 0, engine: None });
        let engines = (0..).map(EngineId::new).zip(engines);
        let engine = engines.flat_map(|(id, info)| {
            let tables = self.engine.iter().copied().chain([info.rows]);
            tables.map(move |rows| Table { rows, base: info.base, engine: Some(id) })
        });
        let pipe = (0..self.pipes).flat_map(|pipe| {
            let base = pipe.saturating_mul(pipe::DISTANCE);
            self.pipe.iter().map(move |rows| Table { rows, base, engine: None })
        });
        let range = |offset| (offset < AWAKE_END).then_some(&Awake);
        RegisterFile::new(REGISTER_BYTES, card.chain(engine).chain(pipe), range, &[1])
    }
}

/// The registers of Sandy Bridge.
pub static SANDY_BRIDGE_REGISTERS: RegisterTables = RegisterTables {
    card: &[
        arbiter::SHARED,
        arbiter::SANDY_BRIDGE,
        render::SHARED,
        render::SANDY_BRIDGE,
        fence::SANDY_BRIDGE,
        fuses::TABLE,
        power::SHARED,
        interrupt::TABLE,
        display::SHARED,
        display::SANDY_BRIDGE,
        pch::TABLE,
    ],
    engine: &[engine::SHARED, engine::SANDY_BRIDGE],
    pipe: &[pipe::SHARED, pipe::SANDY_BRIDGE],
    pipes: 2,
};

/// The registers of Ivy Bridge.
pub static IVY_BRIDGE_REGISTERS: RegisterTables = RegisterTables {
    card: &[
        arbiter::SHARED,
        arbiter::IVY_BRIDGE,
        render::SHARED,
        render::IVY_BRIDGE,
        workaround::IVY_BRIDGE,
        fence::IVY_BRIDGE,
        fuses::TABLE,
        power::SHARED,
        power::IVY_BRIDGE,
        interrupt::TABLE,
        display::SHARED,
        display::IVY_BRIDGE,
        pch::TABLE,
    ],
    engine: &[engine::SHARED, engine::IVY_BRIDGE],
    pipe: &[pipe::SHARED, pipe::IVY_BRIDGE],
    pipes: 3,
};
