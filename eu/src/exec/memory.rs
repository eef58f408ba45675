// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interface to memory, which the user of the interpreter implements, and the atomic operations.

pub use super::fault::MemoryFault;
pub use super::surface::Surface;
use crate::float::{f16_to_f32, f32_to_f16};

/// Whether an access was inside its surface. ISA-221: of elements that are wholly or partly outside, loads give 0 and stores
/// are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Access {
    /// All bytes were.
    Inside,
    /// Not all bytes were.
    Outside,
}

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
    /// Format of a texel.
    pub format: ImageFormat,
    /// For the implementor of [`Memory`], which makes the image and gets it back with each access: tiling and
    /// compression, for instance. The interpreter does not look at it.
    pub handle: u64,
}

impl Image {
    /// Virtual address of a texel of a linear image. Addresses wrap.
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
}

/// How texels are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Weighted mean of the nearest texels, not the nearest one.
    pub linear: bool,
    /// The coordinate of each axis is rounded to the fraction's eight bits; truncated otherwise. EU-080: address rounding.
    pub rounding: [bool; 3],
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
    /// Coordinates are 0 to 1.
    pub normalized: bool,
    /// Least and greatest level of detail, in units of 1/256.
    pub level: [u16; 2],
    /// Color of the border: floats, or integers of an integer format. Of formats without a component it is 0, the last 1.
    pub border: [u32; 4],
}

impl Sampler {
    /// A sampler of OpenCL: one addressing for all axes, one filter, and a border of 0.
    pub fn uniform(addressing: Addressing, linear: bool, normalized: bool) -> Sampler {
        let filter = Filter { linear, rounding: [linear; 3] };
        Sampler {
            addressing: [addressing; 3],
            magnify: filter,
            minify: filter,
            normalized,
            level: [0, 14 << 8],
            border: [0; 4],
        }
    }
}

/// An atomic operation on integers or floats. ISA-211, ISA-218.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named like the messages")]
pub enum Atomic {
    Inc,
    Dec,
    Load,
    Store,
    Add,
    Sub,
    Smin,
    Smax,
    Umin,
    Umax,
    Cas,
    Fadd,
    Fsub,
    Fmin,
    Fmax,
    Fcas,
    And,
    Or,
    Xor,
}

impl Atomic {
    /// The operation with this LSC opcode.
    pub fn from_opcode(opcode: u32) -> Option<Atomic> {
        use Atomic::{
            Add, And, Cas, Dec, Fadd, Fcas, Fmax, Fmin, Fsub, Inc, Load, Or, Smax, Smin, Store, Sub, Umax, Umin, Xor,
        };
        let all =
            [Inc, Dec, Load, Store, Add, Sub, Smin, Smax, Umin, Umax, Cas, Fadd, Fsub, Fmin, Fmax, Fcas, And, Or, Xor];
        all.get((opcode as usize).checked_sub(8)?).copied()
    }

    /// True for operations on floats.
    pub fn is_float(self) -> bool {
        matches!(self, Atomic::Fadd | Atomic::Fsub | Atomic::Fmin | Atomic::Fmax | Atomic::Fcas)
    }

    /// Number of operands in source 1.
    pub fn operands(self) -> usize {
        match self {
            Atomic::Inc | Atomic::Dec | Atomic::Load => 0,
            Atomic::Cas | Atomic::Fcas => 2,
            _ => 1,
        }
    }

    /// The value after the operation, for an element of `size` bytes.
    pub fn apply(self, old: u64, [first, second]: [u64; 2], size: u32) -> u64 {
        let shift = 64 - size * 8;
        let signed = |value: u64| (value << shift) as i64 >> shift;
        let mask = u64::MAX >> shift;
        let float = |value: u64| match size {
            8 => f64::from_bits(value),
            2 => f64::from(f16_to_f32(value as u16)),
            _ => f64::from(f32::from_bits(value as u32)),
        };
        #[expect(clippy::cast_possible_truncation, reason = "the sum of two floats, rounded once more exactly")]
        let bits = |value: f64| match size {
            8 => value.to_bits(),
            // A sum of two halves is a float.
            2 => u64::from(f32_to_f16(value as f32)),
            _ => u64::from((value as f32).to_bits()),
        };
        let result = match self {
            Atomic::Inc => old.wrapping_add(1),
            Atomic::Dec => old.wrapping_sub(1),
            Atomic::Load => old,
            Atomic::Store => first,
            Atomic::Add => old.wrapping_add(first),
            Atomic::Sub => old.wrapping_sub(first),
            Atomic::Smin => {
                if signed(first) < signed(old) {
                    first
                } else {
                    old
                }
            }
            Atomic::Smax => {
                if signed(first) > signed(old) {
                    first
                } else {
                    old
                }
            }
            Atomic::Umin => first.min(old),
            Atomic::Umax => first.max(old),
            Atomic::Cas => {
                if old == first {
                    second
                } else {
                    old
                }
            }
            Atomic::Fadd => bits(float(old) + float(first)),
            Atomic::Fsub => bits(float(old) - float(first)),
            // A NaN gives the other operand, and -0 is below +0: ISA-066.
            Atomic::Fmin => {
                let (x, y) = (float(old), float(first));
                if x.is_nan() || y < x || y == x && y.is_sign_negative() { first } else { old }
            }
            Atomic::Fmax => {
                let (x, y) = (float(old), float(first));
                if x.is_nan() || y > x || y == x && y.is_sign_positive() { first } else { old }
            }
            Atomic::Fcas => {
                if float(old) == float(first) {
                    second
                } else {
                    old
                }
            }
            Atomic::And => old & first,
            Atomic::Or => old | first,
            Atomic::Xor => old ^ first,
        };
        result & mask
    }
}

/// Bytes of the elements of `element` bytes, a power of two, that `bytes` has entirely.
pub fn elements(bytes: usize, element: usize) -> usize {
    bytes & !element.wrapping_sub(1)
}

/// Memory of a dispatch, as a thread reaches it. An implementor that host threads share is implemented for a reference.
///
/// An access that fails ends the thread in a fault, which names the access; the implementor gives the reason and, if it
/// knows it, the virtual address.
pub trait Memory {
    /// Reads elements of `element` bytes, a power of two. Elements that are not wholly inside the surface are 0.
    ///
    /// # Errors
    /// If the surface does not exist, or the address is in no memory.
    fn read(&mut self, surface: Surface, address: u64, element: usize, bytes: &mut [u8])
    -> Result<Access, MemoryFault>;

    /// Writes elements of `element` bytes, a power of two. Elements that are not wholly inside the surface are dropped.
    ///
    /// # Errors
    /// If the surface does not exist, or the address is in no memory.
    fn write(&mut self, surface: Surface, address: u64, element: usize, bytes: &[u8]) -> Result<Access, MemoryFault>;

    /// Applies an operation to an aligned element of 2, 4 or 8 bytes, atomically with respect to all other accesses. Returns
    /// the element before, or `None` outside the surface.
    ///
    /// # Errors
    /// If the surface does not exist, or the address is in no memory.
    fn atomic(
        &mut self,
        surface: Surface,
        address: u64,
        size: u32,
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<Option<u64>, MemoryFault>;

    /// Description of an image.
    ///
    /// # Errors
    /// If the surface does not exist, or is no image.
    fn image(&mut self, surface: Surface) -> Result<Image, MemoryFault>;

    /// Description of a sampler: by a bindless pointer in dword 3 of a header, or by number.
    ///
    /// # Errors
    /// If the sampler does not exist.
    fn sampler(&mut self, pointer: Option<u32>, index: u8) -> Result<Sampler, MemoryFault>;

    /// Reads the bytes of a texel that is inside the image. By default the image is linear.
    ///
    /// # Errors
    /// If the texel is in no memory.
    fn read_texel(&mut self, image: &Image, at: [u32; 3], bytes: &mut [u8]) -> Result<(), MemoryFault> {
        self.read(Surface::Flat, image.texel(at), 1, bytes).map(|_| ())
    }

    /// Writes the bytes of a texel that is inside the image. By default the image is linear.
    ///
    /// # Errors
    /// If the texel is in no memory.
    fn write_texel(&mut self, image: &Image, at: [u32; 3], bytes: &[u8]) -> Result<(), MemoryFault> {
        self.write(Surface::Flat, image.texel(at), 1, bytes).map(|_| ())
    }

    /// Reads bytes of a row of an image for a media block message, from byte `x` of row `y` on; all are inside the image
    /// ([`Image::media_row_bytes`]). By default the image is linear.
    ///
    /// # Errors
    /// If a byte is in no memory.
    fn read_row(&mut self, image: &Image, x: u32, y: u32, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        self.read(Surface::Flat, image.media_byte(x, y), 1, bytes).map(|_| ())
    }

    /// Writes bytes of a row of an image, as [`Memory::read_row`] reads them.
    ///
    /// # Errors
    /// If a byte is in no memory.
    fn write_row(&mut self, image: &Image, x: u32, y: u32, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.write(Surface::Flat, image.media_byte(x, y), 1, bytes).map(|_| ())
    }

    /// What the accesses since the last call have cost beyond what a message costs in any case ([`super::Budget`]), in
    /// instructions. It is asked for after each message. By default nothing.
    fn take_cost(&mut self) -> u64 {
        0
    }
}
