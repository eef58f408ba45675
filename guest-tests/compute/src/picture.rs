// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Images of OpenCL: dimensions, formats and memory.

/// Dimensions of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One line.
    Line,
    /// An array of lines.
    Lines,
    /// One plane.
    Plane,
    /// An array of planes.
    Planes,
    /// A volume.
    Volume,
    /// The texels of a buffer.
    Buffer,
}

/// Memory of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// As the driver chooses: tiled and compressed, if it can be.
    Preferred,
    /// Tiled, not compressed.
    Uncompressed,
    /// Rows one behind the other.
    Linear,
}

/// How kernels read and write texels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As floats.
    Float,
    /// As signed integers.
    Signed,
    /// As unsigned integers.
    Unsigned,
}

/// Encoding of a channel (`cl_channel_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named by kind and bits")]
pub enum Channel {
    Unorm8,
    Unorm16,
    Snorm8,
    Snorm16,
    Sint8,
    Sint16,
    Sint32,
    Uint8,
    Uint16,
    Uint32,
    Half,
    Float,
}

impl Channel {
    /// The number that OpenCL has for it.
    pub fn code(self) -> u32 {
        match self {
            Self::Snorm8 => 0x10d0,
            Self::Snorm16 => 0x10d1,
            Self::Unorm8 => 0x10d2,
            Self::Unorm16 => 0x10d3,
            Self::Sint8 => 0x10d7,
            Self::Sint16 => 0x10d8,
            Self::Sint32 => 0x10d9,
            Self::Uint8 => 0x10da,
            Self::Uint16 => 0x10db,
            Self::Uint32 => 0x10dc,
            Self::Half => 0x10dd,
            Self::Float => 0x10de,
        }
    }

    /// Size in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Unorm8 | Self::Snorm8 | Self::Sint8 | Self::Uint8 => 1,
            Self::Unorm16 | Self::Snorm16 | Self::Sint16 | Self::Uint16 | Self::Half => 2,
            Self::Sint32 | Self::Uint32 | Self::Float => 4,
        }
    }

    /// How kernels access it.
    pub fn access(self) -> Access {
        match self {
            Self::Sint8 | Self::Sint16 | Self::Sint32 => Access::Signed,
            Self::Uint8 | Self::Uint16 | Self::Uint32 => Access::Unsigned,
            _ => Access::Float,
        }
    }
}

/// Channels of a texel (`cl_channel_order`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as OpenCL names them")]
pub enum Order {
    R,
    A,
    Rg,
    Rgba,
    Bgra,
    Intensity,
    Luminance,
    Srgba,
    Sbgra,
}

impl Order {
    /// The number that OpenCL has for it.
    pub fn code(self) -> u32 {
        match self {
            Self::R => 0x10b0,
            Self::A => 0x10b1,
            Self::Rg => 0x10b2,
            Self::Rgba => 0x10b5,
            Self::Bgra => 0x10b6,
            Self::Intensity => 0x10b8,
            Self::Luminance => 0x10b9,
            Self::Srgba => 0x10c1,
            Self::Sbgra => 0x10c2,
        }
    }

    /// Number of channels.
    pub fn channels(self) -> usize {
        match self {
            Self::R | Self::A | Self::Intensity | Self::Luminance => 1,
            Self::Rg => 2,
            Self::Rgba | Self::Bgra | Self::Srgba | Self::Sbgra => 4,
        }
    }
}

/// An image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Its dimensions.
    pub shape: Shape,
    /// Number of texels in each dimension, that of array elements among them; 1 in those that it does not have.
    pub size: [usize; 3],
    /// Channels of a texel.
    pub order: Order,
    /// Encoding of a channel.
    pub channel: Channel,
    /// Its memory.
    pub storage: Storage,
}

impl Picture {
    /// Bytes of a texel.
    pub fn texel_bytes(&self) -> usize {
        self.order.channels() * self.channel.size()
    }

    /// Bytes of all texels one behind the other.
    pub fn bytes(&self) -> usize {
        self.size.iter().product::<usize>() * self.texel_bytes()
    }
}

impl std::fmt::Display for Picture {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [x, y, z] = self.size;
        write!(out, "{:?} {x}x{y}x{z} {:?} {:?} {:?}", self.shape, self.order, self.channel, self.storage)
    }
}
