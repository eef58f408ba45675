// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Labels of a firmware that a machine executes.

use crate::machine::Machine;
use crate::names::packet_label;
use crate::text::Assembled;

/// A section's name, and its labels with their words.
type Section = (Option<String>, Vec<(String, u32)>);

/// Labels. A binary has none but those of its packet table after its bootstrap.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    sections: Vec<Section>,
}

impl Symbols {
    /// The labels of a source.
    pub fn of(assembled: &Assembled) -> Self {
        Self { sections: assembled.sections.iter().map(|part| (part.name.clone(), part.labels.clone())).collect() }
    }

    /// The labels of the section that a processor executes.
    fn labels(&self, machine: &Machine) -> impl Iterator<Item = &(String, u32)> {
        let name = machine.processor.section();
        let section = self.sections.iter().find(move |(section, _)| section.as_deref() == name);
        section.into_iter().flat_map(|(_, labels)| labels)
    }

    /// The word of a label.
    pub fn address(&self, machine: &Machine, label: &str) -> Option<u32> {
        let found = self.labels(machine).find(|(name, _)| name == label).map(|(_, address)| *address);
        found.or_else(|| {
            let generation = machine.bus.set().generation();
            let mut table = (0_u8..).zip(machine.bus.packet_table).filter(|(_, handler)| *handler != 0);
            table.find(|(opcode, _)| packet_label(*opcode, generation) == label).map(|(_, handler)| handler)
        })
    }

    /// The last label at or before a word, with the distance: `label+0x3`.
    pub fn place(&self, machine: &Machine, pc: u32) -> String {
        let at = |name: &str, distance: u32| match distance {
            0 => name.to_owned(),
            _ => format!("{name}+{distance:#x}"),
        };
        // Of labels at one word, the last.
        let label = self.labels(machine).filter(|(_, address)| *address <= pc).max_by_key(|(_, address)| *address);
        if let Some((name, address)) = label {
            return at(name, pc - address);
        }
        match machine.handler_of(pc) {
            Some((opcode, distance)) => at(&packet_label(opcode, machine.bus.set().generation()), distance),
            None => at("start", pc),
        }
    }
}
