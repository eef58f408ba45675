// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers as data: one table per unit, from which decoding, reset, access rules and the report of unmodelled
//! accesses are derived.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod card_fields;
pub mod engine;
pub(crate) mod engine_fields;
pub(crate) mod engine_offsets;
mod engine_registers;
mod file;
pub mod fuses;
mod gsc;
pub mod guc;
pub mod interrupt;
pub mod known;
pub mod memory;
pub mod observation;
pub mod power;
pub mod power_fields;
pub mod ranges;
mod render;
pub mod steering;
#[cfg(test)]
pub(crate) mod tests;
pub mod tile;
pub mod whitelist;
mod workaround;

pub use arctic_base::registers::{
    Bits, Copies, Family, FunctionRegisters, Kind, Replicated, Touches, Unit, all_selected, masked,
};
pub use card_fields::CardFields;
use card_fields::card_fields;
pub use engine::{ClockRegister, EngineRegister};
pub use engine_registers::EngineRegisters;
pub use file::RegisterFile;
pub use gsc::HeciWindow;
pub use guc::GucRegister;
pub use interrupt::InterruptRegister;
pub use memory::MemoryRegister;
pub use observation::ObservationRegister;
pub use power::PowerRegister;
pub use tile::ResetRegister;

use crate::doorbell::DoorbellRegister;
use crate::topology::{Classes, EngineClass, EngineId, EngineInfo};

/// Size of the decoded register space in bytes; GTTMMADR is empty between its end and the doorbells (V13-003).
pub const REGISTER_BYTES: u32 = 4 << 20;

/// The family Xe-HPG, for the types of `arctic-base`.
#[derive(Clone, Copy, Debug)]
pub enum XeHpg {}

impl Family for XeHpg {
    type Live = Live;
    type Scope = Scope;
    type Engine = EngineId;
    type Range = ranges::Range;
}

/// A register, or an array of registers. Offsets are in GTTMMADR, or relative to the engine's base in the engine table.
pub type Register = arctic_base::registers::Register<XeHpg>;
/// Result of decoding an offset; the range has the forcewake domain and the replication of a register of the GT
/// (V13-129).
pub type Decoded = arctic_base::registers::Decoded<XeHpg>;
/// An access to a register with behaviour.
pub type Access<'d> = arctic_base::registers::Access<'d, XeHpg>;

/// A register with side effects or a computed value: the unit that owns it, and the register of that unit. Its
/// behaviour is its [`Unit`]. For arrays, the register's ordinal selects the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Live {
    /// Timestamps (`gt/clock.rs`).
    Clock(ClockRegister),
    /// Doorbell block ([`crate::doorbell`]).
    Doorbell(DoorbellRegister),
    /// Submission, errors and reset of an engine (`gt/engine_control.rs`).
    Engine(EngineRegister),
    /// The GuC (`gt/guc.rs`).
    Guc(GucRegister),
    /// A dword of a HECI window (`gt/gsc.rs`).
    Heci(HeciWindow),
    /// The interrupt tree (`gt/interrupt.rs`).
    Interrupt(InterruptRegister),
    /// TLB and local memory translation (`gt/memory.rs`).
    Memory(MemoryRegister),
    /// Observation (`gt/observation.rs`).
    Observation(ObservationRegister),
    /// Forcewake, RC6, frequency, PCODE and sensors (`gt/power.rs`).
    Power(PowerRegister),
    /// Resets of several units (`gt/reset.rs`).
    Reset(ResetRegister),
}

/// Owner of a register's state, which determines the access rights of a VF's command streams (V13-052, V13-080): a
/// value that one function leaves in a register must be neither readable nor effective for another. The PF's driver can
/// access all registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// State of the card, or of the engine independent of its context: reads 0, writes are dropped.
    Card,
    /// Identical for all functions, a constant or a clock: readable.
    Common,
    /// Execution position of the running context: readable.
    Position,
    /// State of the engine's power context: a context switch does not change it, and every context may read and write
    /// it. Each function starts with the reset value, so that no function reads another function's value.
    Power,
    /// State of the context on engines of these classes, saved and restored with it: readable and writable.
    Context(Classes),
    /// State of the context on this engine only.
    ContextOf(EngineClass, u8),
}

impl Scope {
    /// Returns whether the register is part of the context images of `engine`.
    pub fn kept_by(self, engine: &EngineInfo) -> bool {
        match self {
            Scope::Context(classes) => classes.has(engine.class),
            Scope::ContextOf(class, instance) => (class, instance) == (engine.class, engine.instance),
            Scope::Card | Scope::Common | Scope::Position | Scope::Power => false,
        }
    }
}

/// First offset of the block that has the registers with [`Copies::PerFunction`] (V13-005). By MMIO, a VF accesses its
/// own; all other registers read 0 there, and writes to them are dropped. The PF accesses those of VF n at n times
/// [`VIEW_STRIDE`] above its own register.
pub const VIEW_BASE: u32 = 0x19_0000;
/// Distance between the PF's views of the functions' registers in bytes: the view of VF n is n times this above the
/// PF's own registers (xe: xe_mmio_init_vf_view).
pub const VIEW_STRIDE: u32 = 0x400;

/// A single register with [`Scope::Card`] and one value.
pub const fn register(offset: u32, name: &'static str, kind: Kind<Live>, reset: u32, source: &'static str) -> Register {
    Register { offset, name, kind, reset, count: 1, stride: 4, source, scope: Scope::Card, copies: Copies::One }
}

/// An array of `count` registers, `stride` bytes apart, with [`Scope::Card`] and one value each.
pub const fn array(
    offset: u32,
    name: &'static str,
    kind: Kind<Live>,
    reset: u32,
    (count, stride): (u16, u32),
    source: &'static str,
) -> Register {
    Register { offset, name, kind, reset, count, stride, source, scope: Scope::Card, copies: Copies::One }
}

/// The registers of a generation.
pub struct RegisterTables {
    /// Registers by absolute offset, one table per unit.
    pub card: &'static [&'static [Register]],
    /// Registers of every engine, by offset from its base.
    pub engine: &'static [Register],
    /// Forcewake domain and replication of the GT's registers.
    pub ranges: &'static ranges::Ranges,
    /// Registers that non-privileged batches may access.
    pub whitelists: &'static whitelist::Whitelists,
}

/// The registers of Xe-HPG.
pub static XE_HPG_REGISTERS: RegisterTables = RegisterTables {
    card: TABLES,
    engine: engine::TABLE,
    ranges: &ranges::XE_HPG_RANGES,
    whitelists: &whitelist::XE_HPG_WHITELISTS,
};

/// The card-wide tables, one per unit.
const TABLES: &[&[Register]] = &[
    tile::TABLE,
    fuses::TABLE,
    power::TABLE,
    steering::TABLE,
    memory::TABLE,
    guc::TABLE,
    gsc::TABLE,
    interrupt::TABLE,
    render::TABLE,
    observation::TABLE,
    workaround::TABLE,
];

/// State of contexts of all engines.
const EVERY: Scope = Scope::Context(Classes::ALL);
/// State of contexts of the render engine.
const RENDER: Scope = Scope::Context(Classes::RENDER);
/// State of contexts of render and compute engines.
const RENDER_COMPUTE: Scope = Scope::Context(Classes::RENDER_COMPUTE);
/// State of contexts of the copy engine.
const COPY: Scope = Scope::Context(Classes::COPY);

/// All bits are stored; no side effects.
const STORED: Kind<Live> = Kind::Storage(!0);
