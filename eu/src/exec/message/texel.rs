// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Texels of images as colors.

use super::color::{from_memory, to_memory};
use crate::exec::memory::{Image, Memory, MemoryFault};

/// Reads a texel as a color: floats, or integers of an integer format. The position is inside the image.
pub fn read_texel(memory: &mut dyn Memory, image: &Image, at: [u32; 3]) -> Result<[u32; 4], MemoryFault> {
    let mut buffer = [0u8; 16];
    let bytes = &mut buffer[..image.format.texel_bytes()];
    memory.read_texel(image, at, bytes)?;
    Ok(from_memory(bytes, image.format))
}

/// Writes a color as a texel. The position is inside the image.
pub fn write_texel(memory: &mut dyn Memory, image: &Image, at: [u32; 3], color: [u32; 4]) -> Result<(), MemoryFault> {
    let mut buffer = [0u8; 16];
    let bytes = &mut buffer[..image.format.texel_bytes()];
    to_memory(color, image.format, bytes);
    memory.write_texel(image, at, bytes)
}
