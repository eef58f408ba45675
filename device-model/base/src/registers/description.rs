// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What a card models at the offsets of its register space, for display: made of the rows of its tables, the same for every
//! family.

use std::fmt::{self, Debug, Display, Formatter};

use serde::Serialize;

use super::{Copies, Decoded, Family, Kind, RegisterFile};

/// Behaviour of a register for accesses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Behaviour {
    /// The bits in the mask are stored, the others do not change.
    Stored {
        /// The bits.
        mask: u32,
    },
    /// Writes are ignored.
    ReadOnly,
    /// Bits 31:16 of a write select which of bits 15:0 change.
    Masked,
    /// Writing 1 clears a bit.
    WriteOneToClear {
        /// The bits that can be cleared.
        mask: u32,
    },
    /// The value is computed, or accesses have side effects.
    SideEffects {
        /// The unit that has the register, and the register's name in it.
        unit: String,
    },
}

impl<L: Debug> From<Kind<L>> for Behaviour {
    fn from(kind: Kind<L>) -> Self {
        match kind {
            Kind::Storage(mask) => Behaviour::Stored { mask },
            Kind::ReadOnly => Behaviour::ReadOnly,
            Kind::Masked => Behaviour::Masked,
            Kind::Write1Clear(mask) => Behaviour::WriteOneToClear { mask },
            Kind::Live(unit) => Behaviour::SideEffects { unit: format!("{unit:?}") },
        }
    }
}

impl Display for Behaviour {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Behaviour::Stored { mask: u32::MAX } => write!(f, "stored"),
            Behaviour::Stored { mask } => write!(f, "stored, mask {mask:#010x}"),
            Behaviour::ReadOnly => write!(f, "read-only"),
            Behaviour::Masked => write!(f, "masked: bits 31:16 select the bits that are written"),
            Behaviour::WriteOneToClear { mask } => write!(f, "1 clears, mask {mask:#010x}"),
            Behaviour::SideEffects { unit } => write!(f, "side effects: {unit}"),
        }
    }
}

/// Access to a register by commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// It can be read.
    Read,
    /// It can be written, and reads 0.
    Write,
    /// It can be read and written.
    ReadWrite,
}

impl Permission {
    /// The permission to read, to write, or both; `None` for neither.
    pub fn new(read: bool, write: bool) -> Option<Self> {
        match (read, write) {
            (true, true) => Some(Permission::ReadWrite),
            (true, false) => Some(Permission::Read),
            (false, true) => Some(Permission::Write),
            (false, false) => None,
        }
    }
}

impl Display for Permission {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Permission::Read => "read",
            Permission::Write => "write",
            Permission::ReadWrite => "read and write",
        })
    }
}

/// The access that commands from one source have to a register after reset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandAccess {
    /// Source of the commands.
    pub from: &'static str,
    /// The access.
    pub access: Permission,
    /// The engines that execute them.
    pub engines: Vec<&'static str>,
}

/// What a card models at one offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RegisterDescription {
    /// Offset in the register space in bytes, a multiple of 4.
    pub offset: u32,
    /// Name in documents and drivers; that of an array's element has its index in brackets.
    pub name: String,
    /// The engine that has the register; absent for one of the card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<&'static str>,
    /// Behaviour for accesses of a CPU.
    pub behaviour: Behaviour,
    /// Value after reset, of the card's fuses and sizes. A computed value may differ.
    pub reset: u32,
    /// Value after reset in a VF, if each function has a value of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vf_reset: Option<u32>,
    /// Number of values, one for each instance of the unit that the fuses leave.
    pub instances: u32,
    /// Owner of the state.
    pub owner: String,
    /// The power domain that a driver must keep awake for an access; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awake: Option<String>,
    /// Access of commands, after reset: a driver may permit more.
    pub commands: Vec<CommandAccess>,
    /// Defining document, item or driver source.
    pub source: &'static str,
}

impl RegisterDescription {
    /// What the row says of the register at `offset` of `file`. The rest depends on the family: `engine`, `owner`, `awake` and
    /// `commands` are empty.
    pub fn of_row<F: Family>(file: &RegisterFile<F>, offset: u32, decoded: &Decoded<F>) -> Self {
        let vf_reset = match decoded.register.copies {
            Copies::PerFunction { vf_reset } => Some(vf_reset),
            Copies::One => None,
        };
        RegisterDescription {
            offset,
            name: decoded.name(),
            engine: None,
            behaviour: decoded.register.kind.into(),
            reset: decoded.reset,
            vf_reset,
            instances: file.existing_instances(decoded),
            owner: String::new(),
            awake: None,
            commands: Vec::new(),
            source: decoded.register.source,
        }
    }

    /// Name with the engine: `rcs0.RING_TAIL`, `GDRST`.
    pub fn full_name(&self) -> String {
        self.engine.map_or(self.name.clone(), |engine| format!("{engine}.{}", self.name))
    }
}

/// A range of offsets without modelled registers, and what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RegisterGap {
    /// First byte.
    pub start: u64,
    /// Last byte.
    pub end: u64,
    /// What is there, or why it is not modelled.
    pub what: &'static str,
}

/// The places at which the physical function accesses the registers of VFs that have one value per function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VfViews {
    /// Offset of these registers in each function.
    pub base: u32,
    /// The view of VF n is n times this above the physical function's own.
    pub stride: u32,
    /// Number of views.
    pub count: u32,
}

/// The register space of a card.
#[derive(Clone, Debug)]
pub struct RegisterMap {
    /// Index of the BAR.
    pub bar: u8,
    /// Its name.
    pub bar_name: &'static str,
    /// Size of the register space in bytes, from the start of the BAR.
    pub bytes: u32,
    /// The engines.
    pub engines: Vec<&'static str>,
    /// The registers, by offset.
    pub registers: Vec<RegisterDescription>,
    /// Known ranges of the BAR without modelled registers, by offset; they do not overlap.
    pub gaps: Vec<RegisterGap>,
    /// Views of the registers of VFs.
    pub views: Option<VfViews>,
}

/// What is at an offset of a [`RegisterMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOffset<'m> {
    /// A register; the number of the VF, if the offset is that of a view.
    Register(&'m RegisterDescription, Option<u32>),
    /// No modelled register; with the range, if what is there is known.
    Nothing(Option<&'m RegisterGap>),
}

impl RegisterMap {
    /// The register at this offset, which is not that of a view.
    pub fn register(&self, offset: u64) -> Option<&RegisterDescription> {
        let found = self.registers.binary_search_by_key(&offset, |register| register.offset.into());
        self.registers.get(found.ok()?)
    }

    /// The view in which `offset` is, and the offset of the function's register.
    fn view(&self, offset: u64) -> Option<(u32, u64)> {
        let views = self.views?;
        let distance = offset.checked_sub(views.base.into())?;
        let stride = u64::from(views.stride);
        let vf = u32::try_from(distance.checked_div(stride)?).ok()?;
        let at = u64::from(views.base).saturating_add(distance.checked_rem(stride)?);
        (1..=views.count).contains(&vf).then_some((vf, at))
    }

    /// What the dword that contains the byte `offset` of the BAR is.
    pub fn at(&self, offset: u64) -> AtOffset<'_> {
        let offset = offset & !3;
        if let Some(register) = self.register(offset) {
            return AtOffset::Register(register, None);
        }
        let view = self.view(offset).and_then(|(vf, at)| Some((vf, self.register(at)?)));
        match view.filter(|(_, register)| register.vf_reset.is_some()) {
            Some((vf, register)) => AtOffset::Register(register, Some(vf)),
            None => AtOffset::Nothing(self.gaps.iter().find(|gap| (gap.start..=gap.end).contains(&offset))),
        }
    }

    /// The registers with this name, with or without engine (`bcs0.RING_TAIL`, `bcs0 RING_TAIL`) and index, in any case; if
    /// there is none, those with a name that contains it.
    pub fn named(&self, name: &str) -> Vec<&RegisterDescription> {
        let wanted = name.trim().to_ascii_lowercase().replace(' ', ".");
        let is = |name: &str| name == wanted || name.split_once('[').is_some_and(|(array, _)| array == wanted);
        let matching = |fits: &dyn Fn(&str) -> bool| {
            let registers = self.registers.iter();
            let found = registers.filter(|register| {
                fits(&register.name.to_ascii_lowercase()) || fits(&register.full_name().to_ascii_lowercase())
            });
            found.collect::<Vec<_>>()
        };
        match matching(&is) {
            none if none.is_empty() => matching(&|name| name.contains(&wanted)),
            found => found,
        }
    }
}
