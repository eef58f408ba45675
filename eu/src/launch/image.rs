// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Images and samplers of a launch.

use super::LaunchError;
use super::memory::{SAMPLER_BYTES, Space, State};
use crate::exec::memory::{Addressing, Image, ImageFormat, Sampler};
use crate::zebin;

/// Makes an image and returns the byte offset of its surface state, its address and its bytes.
pub fn create(
    space: &mut Space,
    name: &str,
    bytes: &[u8],
    size: [u32; 3],
    format: ImageFormat,
) -> Result<(u32, u64, usize), LaunchError> {
    let texel = u64::from(format.channels) * u64::from(format.bytes);
    let pitch = u64::from(size[0]) * texel;
    let slice = pitch * u64::from(size[1]);
    let total = usize::try_from(slice * u64::from(size[2])).unwrap_or(usize::MAX);
    let address = space.allocate(name, total)?;
    space.poke(address, &bytes[..bytes.len().min(total)]);
    let dimensions = if size[2] > 1 {
        3
    } else if size[1] > 1 {
        2
    } else {
        1
    };
    let image =
        Image { base: address, width: size[0], height: size[1], depth: size[2], pitch, slice, dimensions, format };
    let offset = space.add_state(State::Image(image));
    Ok((offset, address, total))
}

/// Adds a sampler and returns the pointer to it.
pub fn add_sampler(space: &mut Space, sampler: Sampler) -> u32 {
    space.samplers.push(sampler);
    (space.samplers.len() as u32 - 1) * SAMPLER_BYTES
}

/// The sampler that a kernel declares.
pub fn inline_sampler(from: &zebin::Sampler) -> Sampler {
    Sampler {
        addressing: match from.addressing.as_str() {
            "repeat" => Addressing::Wrap,
            "mirror" => Addressing::Mirror,
            "clamp_border" => Addressing::Border,
            _ => Addressing::Clamp,
        },
        linear: from.filter == "linear",
        normalized: from.normalized,
    }
}
