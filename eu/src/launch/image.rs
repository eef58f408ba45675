// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Images and samplers of a launch.

use super::LaunchError;
use super::memory::{SAMPLER_BYTES, Space, State};
use crate::exec::memory::{
    Addressing, ChannelKind, ChannelOrder, Component, Dimensions, Image, ImageFormat, Levels, Sampler,
};
use crate::zebin;

/// Makes an image and returns the byte offset of its surface state, its address and its bytes.
pub fn create(
    space: &mut Space,
    name: &str,
    bytes: &[u8],
    size: [u32; 3],
    format: ImageFormat,
    kind: &str,
) -> Result<(u32, u64, usize), LaunchError> {
    let pitch = u64::from(size[0]) * format.texel_bytes() as u64;
    let slice = pitch.saturating_mul(u64::from(size[1]));
    let total = usize::try_from(slice.saturating_mul(u64::from(size[2]))).unwrap_or(usize::MAX);
    let address = space.allocate(name, total)?;
    space.poke(address, &bytes[..bytes.len().min(total)]);
    let (dimensions, array) = shape(kind, size);
    let [mut width, height, depth] = size;
    // As Intel's runtime makes the surfaces of images that only media block messages reach.
    if kind.starts_with("image_2d_media") {
        width = u32::try_from(pitch / 4).unwrap_or(u32::MAX);
    }
    let components = Component::COLOR;
    let image = Image {
        base: address,
        width,
        height,
        depth,
        pitch,
        slice,
        dimensions,
        array,
        cube: false,
        levels: Levels::ONE,
        format,
        components,
        handle: 0,
    };
    let offset = space.add_state(State::Image(image));
    Ok((offset, address, total))
}

/// Number of coordinates of an image of this type, and whether the last is that of an array. Files of older compilers do not
/// have the type.
fn shape(kind: &str, size: [u32; 3]) -> (Dimensions, bool) {
    let array = kind.contains("_array");
    let dimensions = match kind {
        "" if size[2] > 1 => Dimensions::Three,
        "" if size[1] > 1 => Dimensions::Two,
        "" => Dimensions::One,
        _ if kind.starts_with("image_3d") => Dimensions::Three,
        _ if kind.starts_with("image_1d") || kind == "image_buffer" => {
            if array {
                Dimensions::Two
            } else {
                Dimensions::One
            }
        }
        _ if array => Dimensions::Three,
        _ => Dimensions::Two,
    };
    (dimensions, array)
}

/// Numbers of OpenCL for the type of an image's channels and for their order, which kernels ask for.
pub fn numbers(format: ImageFormat) -> (u64, u64) {
    let channel = format.channel;
    let size = u64::from(channel.bytes().trailing_zeros());
    let kind = match channel.kind() {
        ChannelKind::Snorm => 0x10d0 + size,
        ChannelKind::Unorm => 0x10d2 + size,
        ChannelKind::Sint => 0x10d7 + size,
        ChannelKind::Uint => 0x10da + size,
        ChannelKind::Float => 0x10dc + size,
    };
    let order = match format.order {
        ChannelOrder::R => 0x10b0,
        ChannelOrder::A => 0x10b1,
        ChannelOrder::Rg => 0x10b2,
        ChannelOrder::Rgba => 0x10b5,
        ChannelOrder::Bgra => 0x10b6,
        ChannelOrder::Intensity => 0x10b8,
        ChannelOrder::Luminance => 0x10b9,
        ChannelOrder::Depth => 0x10bd,
        ChannelOrder::Srgba => 0x10c1,
        ChannelOrder::Sbgra => 0x10c2,
    };
    (kind, order)
}

/// Adds a sampler and returns the pointer to it.
pub fn add_sampler(space: &mut Space, sampler: Sampler) -> u32 {
    space.samplers.push(sampler);
    (space.samplers.len() as u32 - 1) * SAMPLER_BYTES
}

/// The sampler that a kernel declares.
pub fn inline_sampler(from: &zebin::Sampler) -> Sampler {
    let addressing = match from.addressing.as_str() {
        "repeat" => Addressing::Wrap,
        "mirror" => Addressing::Mirror,
        "clamp_border" => Addressing::Border,
        _ => Addressing::Clamp,
    };
    Sampler::uniform(addressing, from.filter == "linear", from.normalized)
}
