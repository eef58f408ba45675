// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The firmware of a command: an image with its labels.

use std::path::Path;

use arctic_afuc::container::Image;
use arctic_afuc::isa::Generation;
use arctic_afuc::machine::Machine;
use arctic_afuc::names::packet_label;
use arctic_afuc::text::{Assembled, Options, assemble};

use super::{Result, assemble_file, read_image};

/// The open firmware.
const OPEN: &str = include_str!("../../firmware/sqe-open.asm");

/// An image and, if it was assembled, the labels of its first section.
pub struct Firmware {
    pub image: Image,
    labels: Vec<(String, u32)>,
}

impl From<Assembled> for Firmware {
    fn from(assembled: Assembled) -> Self {
        let labels = assembled.sections.into_iter().next().map(|section| section.labels).unwrap_or_default();
        Self { image: assembled.image, labels }
    }
}

impl Firmware {
    /// Reads a firmware file, assembles a source, or returns the open firmware, which is for a6xx unless a7xx is named.
    /// `None` after the errors of a source were printed.
    pub fn open(path: &Path, generation: Option<Generation>) -> Result<Option<Self>> {
        if path.as_os_str() == "open" {
            let options = Options { generation: generation.or(Some(Generation::A6)) };
            return Ok(Some(assemble(OPEN, &options)?.into()));
        }
        if path.extension().is_some_and(|extension| extension == "asm") {
            return Ok(assemble_file(path, generation)?.map(Self::from));
        }
        let image = read_image(path, generation)?;
        Ok(Some(Self { image, labels: Vec::new() }))
    }

    /// The last label at or before a word, with the distance: `label+0x3`.
    pub fn place(&self, machine: &Machine, pc: u32) -> String {
        let at = |name: &str, distance: u32| match distance {
            0 => name.to_owned(),
            _ => format!("{name}+{distance:#x}"),
        };
        let label = self.labels.iter().filter(|(_, address)| *address <= pc).max_by_key(|(_, address)| *address);
        if let Some((name, address)) = label {
            return at(name, pc - address);
        }
        match machine.handler_of(pc) {
            Some((opcode, distance)) => at(&packet_label(opcode, machine.bus.generation()), distance),
            None => at("start", pc),
        }
    }
}
