// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Images and samplers, as an implementor of [`super::memory::Memory`] describes them.

/// An image. EU-043.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Virtual address of the first texel.
    pub base: u64,
    /// Width in texels.
    pub width: u32,
    /// Height in texels; of an array of lines, the number of elements.
    pub height: u32,
    /// Depth in texels; of an array of planes, the number of elements.
    pub depth: u32,
    /// Bytes between rows.
    pub pitch: u64,
    /// Bytes between slices.
    pub slice: u64,
    /// Coordinates of a texel, that of array elements among them.
    pub dimensions: Dimensions,
    /// The last coordinate is the number of an array element.
    pub array: bool,
    /// The array's elements are the faces of cubes, six each in the order +x, -x, +y, -y, +z, -z: samplers have a direction.
    /// Typed messages have planes.
    pub cube: bool,
    /// The level that it is, and those that follow.
    pub levels: Levels,
    /// Format of a texel.
    pub format: ImageFormat,
    /// What samplers return as the components of a color (EU-043).
    pub components: [Component; 4],
    /// For the implementor of [`super::memory::Memory`], which makes the image and gets it back with each access: tiling and
    /// compression, for instance. The interpreter does not look at it.
    pub handle: u64,
}

/// The levels of detail of an image: which of its surface's levels it is, and how many levels it has. EU-043.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Number of the level in the surface.
    pub number: u8,
    /// Number of levels from this one on, 1 to 15: each has half of the size of the one before.
    pub count: u8,
    /// Least level that samplers read, from this one on, in units of 1/256.
    pub least: u16,
}

impl Levels {
    /// The only level of a surface.
    pub const ONE: Levels = Levels { number: 0, count: 1, least: 0 };
}

/// A component of a color as samplers return it: a constant, or a component as the format has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as they are")]
pub enum Component {
    Zero,
    One,
    Red,
    Green,
    Blue,
    Alpha,
}

impl Component {
    /// Those of a color as it is.
    pub const COLOR: [Component; 4] = [Component::Red, Component::Green, Component::Blue, Component::Alpha];
}

impl Image {
    /// A color as samplers return it.
    pub fn select(&self, color: [u32; 4]) -> [u32; 4] {
        if self.components == Component::COLOR {
            return color;
        }
        let [red, green, blue, alpha] = color;
        self.components.map(|component| match component {
            Component::Zero => 0,
            Component::One => self.format.one(),
            Component::Red => red,
            Component::Green => green,
            Component::Blue => blue,
            Component::Alpha => alpha,
        })
    }

    /// The level that is `level` levels further on, as the only one of an image. The level exists.
    #[inline]
    pub fn level(&self, level: u8) -> Image {
        let half = |size: u32| if size == 0 { 0 } else { size.checked_shr(level.into()).unwrap_or(0).max(1) };
        let lines = self.dimensions == Dimensions::One || self.dimensions == Dimensions::Two && self.array;
        let volume = self.dimensions == Dimensions::Three && !self.array && !self.cube;
        Image {
            width: half(self.width),
            height: if lines { self.height } else { half(self.height) },
            depth: if volume { half(self.depth) } else { self.depth },
            levels: Levels { number: self.levels.number.saturating_add(level), ..Levels::ONE },
            ..*self
        }
    }

    /// Virtual address of a texel of a linear image with one level. Addresses wrap.
    pub fn texel(&self, [x, y, z]: [u32; 3]) -> u64 {
        let offset = |at: u32, distance: u64| u64::from(at).wrapping_mul(distance);
        let row = self.base.wrapping_add(offset(z, self.slice)).wrapping_add(offset(y, self.pitch));
        row.wrapping_add(offset(x, self.format.texel_bytes() as u64))
    }

    /// Bytes of a row of media block messages, for which the width of a surface counts dwords, whatever its format.
    /// EU-045.
    pub fn media_row_bytes(&self) -> u64 {
        u64::from(self.width) * 4
    }

    /// Virtual address of a byte of a row of a linear image. Addresses wrap.
    pub fn media_byte(&self, x: u32, y: u32) -> u64 {
        self.base.wrapping_add(u64::from(y).wrapping_mul(self.pitch)).wrapping_add(x.into())
    }
}

/// Number of coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimensions {
    /// Width.
    One = 1,
    /// Width and height.
    Two,
    /// Width, height and depth.
    Three,
}

impl Dimensions {
    /// The number.
    pub fn count(self) -> u32 {
        self as u32
    }
}

/// Format of a texel: its channels and their encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageFormat {
    /// Channels in memory and their places in a color.
    pub order: ChannelOrder,
    /// Encoding of each channel.
    pub channel: Channel,
}

impl ImageFormat {
    /// Channels in memory.
    pub fn channels(self) -> u8 {
        match self.order {
            ChannelOrder::R
            | ChannelOrder::A
            | ChannelOrder::Intensity
            | ChannelOrder::Luminance
            | ChannelOrder::Depth => 1,
            ChannelOrder::Rg => 2,
            ChannelOrder::Rgba | ChannelOrder::Bgra | ChannelOrder::Srgba | ChannelOrder::Sbgra => 4,
        }
    }

    /// Bytes of a texel, at most 16.
    pub fn texel_bytes(self) -> usize {
        usize::from(self.channels()) * self.channel.bytes()
    }

    /// The number 1 in a component of a color: of an integer format an integer, else a float.
    pub fn one(self) -> u32 {
        match self.channel.kind() {
            ChannelKind::Uint | ChannelKind::Sint => 1,
            ChannelKind::Unorm | ChannelKind::Snorm | ChannelKind::Float => 1.0f32.to_bits(),
        }
    }

    /// True if the last component of a color is in memory. Where it is not, it is 1.
    pub fn has_alpha(self) -> bool {
        use ChannelOrder::{A, Bgra, Intensity, Rgba, Sbgra, Srgba};
        matches!(self.order, A | Bgra | Intensity | Rgba | Sbgra | Srgba)
    }

    /// True if the first three components are stored by the curve of sRGB.
    pub fn is_srgb(self) -> bool {
        matches!(self.order, ChannelOrder::Srgba | ChannelOrder::Sbgra)
    }
}

/// Channels of a texel in the order of memory, and the components of a color that they are. EU-082, OpenCL 3.0 (5.3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelOrder {
    /// The first component.
    R,
    /// The first two.
    Rg,
    /// All four.
    Rgba,
    /// All four, the first and third exchanged.
    Bgra,
    /// All four, the first three by the curve of sRGB.
    Srgba,
    /// As `Srgba`, the first and third exchanged.
    Sbgra,
    /// The last component; the others are 0.
    A,
    /// One channel for all four components.
    Intensity,
    /// One channel for the first three components.
    Luminance,
    /// The first component, of a depth image.
    Depth,
}

/// Encoding of a channel: its kind and its bits. EU-082.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named by kind and bits")]
pub enum Channel {
    Unorm8,
    Unorm16,
    Snorm8,
    Snorm16,
    Uint8,
    Uint16,
    Uint32,
    Sint8,
    Sint16,
    Sint32,
    Float16,
    Float32,
}

impl Channel {
    /// Bytes of the channel.
    pub fn bytes(self) -> usize {
        match self {
            Channel::Unorm8 | Channel::Snorm8 | Channel::Uint8 | Channel::Sint8 => 1,
            Channel::Unorm16 | Channel::Snorm16 | Channel::Uint16 | Channel::Sint16 | Channel::Float16 => 2,
            Channel::Uint32 | Channel::Sint32 | Channel::Float32 => 4,
        }
    }

    /// Conversion of the channel.
    pub fn kind(self) -> ChannelKind {
        match self {
            Channel::Unorm8 | Channel::Unorm16 => ChannelKind::Unorm,
            Channel::Snorm8 | Channel::Snorm16 => ChannelKind::Snorm,
            Channel::Uint8 | Channel::Uint16 | Channel::Uint32 => ChannelKind::Uint,
            Channel::Sint8 | Channel::Sint16 | Channel::Sint32 => ChannelKind::Sint,
            Channel::Float16 | Channel::Float32 => ChannelKind::Float,
        }
    }
}

/// Conversion of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// 0 to 1.
    Unorm,
    /// -1 to 1.
    Snorm,
    /// Unsigned integer.
    Uint,
    /// Signed integer.
    Sint,
    /// Float.
    Float,
}

/// How coordinates outside an image are treated. EU-080.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Repeats.
    Wrap,
    /// Repeats, every other time mirrored.
    Mirror,
    /// The nearest texel.
    Clamp,
    /// The border.
    Border,
    /// Mirrored once, then the nearest texel.
    MirrorOnce,
    /// The nearest place on the edge of the image, at which a weighted mean has half of the border.
    HalfBorder,
    /// The texels of the next face of a cube. Of other images the nearest texel.
    Cube,
    /// Repeats, every other time mirrored at the centers of the texels at the edges, which are not repeated.
    MirrorEdge,
}

/// How texels are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Weighted mean of the nearest texels, not the nearest one.
    pub linear: bool,
    /// The coordinate of each axis is rounded to the fraction's eight bits; truncated otherwise. EU-080: address rounding.
    pub rounding: [bool; 3],
    /// Several weighted means along the longer axis of the area that derivatives give; `linear` is set.
    pub anisotropic: bool,
}

/// How the levels of an image are chosen by the level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelFilter {
    /// The level is the least level of detail of the sampler.
    None,
    /// The nearest level.
    Nearest,
    /// Weighted mean of the two levels around it.
    Linear,
}

/// What a texel is compared by with the reference of a message: the result is 0 if `texel COMPARISON reference` holds, and 1
/// otherwise. EU-080: shadow function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as they are")]
pub enum Comparison {
    Always,
    Never,
    Less,
    Equal,
    LessOrEqual,
    Greater,
    NotEqual,
    GreaterOrEqual,
}

/// What is made of the texels that a filter reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Their weighted mean.
    Mean,
    /// The least value of those with a weight.
    Minimum,
    /// The greatest value of those with a weight.
    Maximum,
}

/// A sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// Addressing of each axis.
    pub addressing: [Addressing; 3],
    /// Filter at levels of detail up to 0.
    pub magnify: Filter,
    /// Filter at levels of detail above 0.
    pub minify: Filter,
    /// Choice of the level.
    pub levels: LevelFilter,
    /// Coordinates are 0 to 1.
    pub normalized: bool,
    /// Least and greatest level of detail, in units of 1/256.
    pub level: [u16; 2],
    /// The level of detail is brought into these bounds before it decides between magnification and minification; otherwise
    /// behind that.
    pub clamps_first: bool,
    /// What is added to computed levels of detail, -16 to 16, in units of 1/256.
    pub bias: i16,
    /// Largest ratio of the axes of an area for an anisotropic filter, 2 to 16.
    pub anisotropy: u8,
    /// Comparison of messages with a reference.
    pub comparison: Comparison,
    /// What is made of the texels.
    pub reduction: Reduction,
    /// Coordinates outside the face of a cube have [`Addressing::Cube`], whatever the addressing is.
    pub overrides_cubes: bool,
    /// Color of the border: floats, or integers of an integer format. Of formats without a component it is 0, the last 1.
    pub border: [u32; 4],
}

impl Sampler {
    /// A sampler of OpenCL: one addressing for all axes, one filter, and a border of 0.
    pub fn uniform(addressing: Addressing, linear: bool, normalized: bool) -> Sampler {
        let filter = Filter { linear, rounding: [linear; 3], anisotropic: false };
        Sampler {
            addressing: [addressing; 3],
            magnify: filter,
            minify: filter,
            levels: LevelFilter::Nearest,
            normalized,
            level: [0, 14 << 8],
            clamps_first: true,
            bias: 0,
            anisotropy: 2,
            comparison: Comparison::Always,
            reduction: Reduction::Mean,
            overrides_cubes: true,
            border: [0; 4],
        }
    }
}
