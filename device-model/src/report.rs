//! What the drivers did that the card does not model, as a document for people and programs (design rule 10).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::card::Card;
use crate::gt::Gt;
use crate::registers::{Decoded, Touches, known};

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
        Report { undone: card.engines().undone(), ..Report::of_registers(card.gt()) }
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
