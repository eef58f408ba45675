// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The firmware of a command: an image with its labels.

use std::path::Path;

use arctic_afuc::container::Image;
use arctic_afuc::isa::Generation;
use arctic_afuc::symbols::Symbols;
use arctic_afuc::text::{Assembled, Options, assemble};

use super::{Result, assemble_file, read_image};

/// The open firmware.
pub const OPEN: &str = include_str!("../../firmware/sqe-open.asm");

/// An image and its labels.
pub struct Firmware {
    pub image: Image,
    pub symbols: Symbols,
}

impl From<Assembled> for Firmware {
    fn from(assembled: Assembled) -> Self {
        Self { symbols: Symbols::of(&assembled), image: assembled.image }
    }
}

impl Firmware {
    /// Reads a firmware file, assembles a source, or returns the open firmware, which is for a6xx unless a7xx is named.
    /// `None` after the errors of a source were printed.
    pub fn open(path: &Path, generation: Option<Generation>) -> Result<Option<Self>> {
        if path.as_os_str() == "open" {
            if generation == Some(Generation::A5) {
                return Err("the open firmware is for a6xx and a7xx: use --gen 6 or --gen 7".into());
            }
            let options = Options { generation: generation.or(Some(Generation::A6)) };
            return Ok(Some(assemble(OPEN, &options)?.into()));
        }
        if path.extension().is_some_and(|extension| extension == "asm") {
            return Ok(assemble_file(path, generation)?.map(Self::from));
        }
        Ok(Some(Self { image: read_image(path, generation)?, symbols: Symbols::default() }))
    }
}
