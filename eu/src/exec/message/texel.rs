// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Texels of images as colors.

use super::color::{from_memory, to_memory};
use crate::exec::fault::FaultKind;
use crate::exec::memory::{Image, Memory, Surface};

/// Reads a texel as a color: floats, or integers of an integer format. The position is inside the image.
pub fn read_texel(memory: &dyn Memory, image: &Image, [x, y, z]: [u32; 3]) -> Result<[u32; 4], FaultKind> {
    let mut buffer = [0u8; 16];
    let bytes = &mut buffer[..image.format.texel_bytes()];
    // A flat access is inside or a fault.
    let _ = memory.read(Surface::Flat, memory.texel(image, x, y, z), 1, bytes)?;
    Ok(from_memory(bytes, image.format))
}

/// Writes a color as a texel. The position is inside the image.
pub fn write_texel(memory: &dyn Memory, image: &Image, [x, y, z]: [u32; 3], color: [u32; 4]) -> Result<(), FaultKind> {
    let mut buffer = [0u8; 16];
    let bytes = &mut buffer[..image.format.texel_bytes()];
    to_memory(color, image.format, bytes);
    let _ = memory.write(Surface::Flat, memory.texel(image, x, y, z), 1, bytes)?;
    Ok(())
}
