//! What the drivers did that the card does not model, as a document for people and programs (design rule 10).

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use serde::Serialize;

use crate::card::{Card, Trapped};
use crate::gt::Gt;
use crate::registers::{Decoded, Touches, known};

/// Accesses of GTTMMADR that a VMM could not do by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrappedAccesses {
    /// Register reads.
    pub register_reads: u64,
    /// Register writes.
    pub register_writes: u64,
    /// Reads and writes of GGTT entries.
    pub ggtt: u64,
    /// Accesses of the doorbell windows.
    pub doorbells: u64,
}

impl From<&Trapped> for TrappedAccesses {
    fn from(trapped: &Trapped) -> Self {
        TrappedAccesses {
            register_reads: trapped.register_reads.load(Ordering::Relaxed),
            register_writes: trapped.register_writes.load(Ordering::Relaxed),
            ggtt: trapped.ggtt.load(Ordering::Relaxed),
            doorbells: trapped.doorbells.load(Ordering::Relaxed),
        }
    }
}

/// A register that was touched, with what there is to say about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TouchedRegister {
    /// Offset in GTTMMADR; all ones stand for the touches beyond the list's limit.
    pub offset: u32,
    /// Its name, with the element in brackets for an array and the engine in front for an engine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Why it is not modelled; missing where nobody has thought of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// The report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Trapped accesses by class.
    pub trapped: TrappedAccesses,
    /// Registers that are not modelled, by offset.
    pub unmodelled: Vec<TouchedRegister>,
    /// Registers touched while their wake domain slept (V13-130); the access went through.
    pub asleep: Vec<TouchedRegister>,
    /// What engines were asked for and did not do, or did in part, by engine and name: 3D and media commands most of all.
    pub undone: BTreeMap<String, u64>,
}

impl Report {
    /// What has happened on `card` so far.
    pub fn of(card: &Card) -> Self {
        Report { trapped: card.trapped().into(), undone: card.engines().undone(), ..Report::of_registers(card.gt()) }
    }

    /// The registers' part.
    pub fn of_registers(gt: &Gt) -> Self {
        let describe = |(offset, touches): (u32, Touches)| TouchedRegister {
            offset,
            name: gt.registers.decode(offset).map(Decoded::name),
            reads: touches.reads,
            writes: touches.writes,
            reason: None,
        };
        let explain =
            |register: TouchedRegister| TouchedRegister { reason: known::reason(register.offset), ..register };
        Report {
            unmodelled: gt.registers.unmodelled().into_iter().map(describe).map(explain).collect(),
            asleep: gt.registers.asleep().into_iter().map(describe).collect(),
            ..Report::default()
        }
    }

    /// Unmodelled registers that nobody has given a reason for: what a developer has to look at.
    pub fn unexplained(&self) -> impl Iterator<Item = &TouchedRegister> {
        self.unmodelled.iter().filter(|register| register.reason.is_none())
    }
}
