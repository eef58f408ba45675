// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A problem: one launch of a kernel, and what its buffers hold afterwards.

use crate::half::from_half;
use crate::picture::Picture;

/// One launch of a kernel.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Name of the kernel in its program.
    pub kernel: &'static str,
    /// Number of items in each dimension.
    pub global: [usize; 3],
    /// Number of items of a group in each dimension; each divides that of `global`.
    pub local: [usize; 3],
    /// The kernel's arguments.
    pub arguments: Vec<Argument>,
    /// The lines that the kernel prints, in any order.
    pub printed: Vec<String>,
}

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A buffer that the kernel reads.
    Input(Vec<u8>),
    /// A buffer that the kernel writes: its contents before the launch, and those expected afterwards.
    Output {
        /// Contents before the launch.
        before: Vec<u8>,
        /// Expected contents afterwards.
        expected: Expected,
    },
    /// An image that the kernel reads.
    Image {
        /// Its dimensions, format and memory.
        picture: Picture,
        /// Its texels, one behind the other.
        texels: Vec<u8>,
    },
    /// An image that the kernel writes: its texels before the launch, and those expected afterwards.
    OutputImage {
        /// Its dimensions, format and memory.
        picture: Picture,
        /// Texels before the launch.
        before: Vec<u8>,
        /// Expected texels afterwards.
        expected: Expected,
    },
    /// Shared local memory of this many bytes.
    Local(usize),
    /// A value.
    Scalar(Vec<u8>),
}

impl Argument {
    /// What the memory of an output holds before the launch, and what is expected in it afterwards.
    pub fn output(&self) -> Option<(&[u8], &Expected)> {
        match self {
            Self::Output { before, expected } | Self::OutputImage { before, expected, .. } => Some((before, expected)),
            _ => None,
        }
    }
}

/// The type of a buffer's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Unsigned 8-bit integers.
    U8,
    /// Unsigned 32-bit integers.
    U32,
    /// Signed 32-bit integers.
    I32,
    /// Signed 64-bit integers.
    I64,
    /// Single precision.
    F32,
    /// Half precision.
    F16,
}

impl Kind {
    /// Size of an element in bytes.
    fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::I64 => 8,
        }
    }

    /// The element as text.
    fn text(self, bytes: &[u8]) -> String {
        match self {
            Self::F32 | Self::F16 => self.number(bytes).to_string(),
            Self::I64 => integer(bytes, i64::from_le_bytes).to_string(),
            Self::I32 => integer(bytes, i32::from_le_bytes).to_string(),
            Self::U32 => integer(bytes, u32::from_le_bytes).to_string(),
            Self::U8 => integer(bytes, u8::from_le_bytes).to_string(),
        }
    }

    /// The element as a number, of floating-point types only.
    fn number(self, bytes: &[u8]) -> f32 {
        match self {
            Self::F16 => from_half(integer(bytes, u16::from_le_bytes)),
            _ => integer(bytes, f32::from_le_bytes),
        }
    }
}

/// Decodes `bytes`, which must be as many as the type has.
fn integer<T, const N: usize>(bytes: &[u8], decode: fn([u8; N]) -> T) -> T {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    decode(array)
}

/// A type of a buffer's elements and of values.
pub trait Element: Copy {
    /// Appends the little-endian bytes of the value.
    fn append(self, bytes: &mut Vec<u8>);
}

/// A type of results.
pub trait Compared: Element {
    /// The type.
    const KIND: Kind;
}

macro_rules! elements {
    ($($type:ty),*) => {
        $(impl Element for $type {
            fn append(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

macro_rules! compared {
    ($($type:ty: $kind:ident),*) => {
        $(impl Compared for $type {
            const KIND: Kind = Kind::$kind;
        })*
    };
}

elements!(u8, i16, u16, u32, i32, i64, f32);
// `u16` stands for the bits of a half.
compared!(u8: U8, u16: F16, u32: U32, i32: I32, i64: I64, f32: F32);

/// The little-endian bytes of `values`.
pub fn bytes<T: Element>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(values));
    values.iter().for_each(|value| value.append(&mut bytes));
    bytes
}

/// The expected contents of a buffer.
#[derive(Clone, Debug)]
pub struct Expected {
    kind: Kind,
    bytes: Vec<u8>,
    /// Largest permitted difference, relative to the expected value or to 1 if that is smaller; 0 for equal bits.
    tolerance: f32,
}

impl Expected {
    /// Exactly `values`.
    pub fn exact<T: Compared>(values: &[T]) -> Self {
        Self { kind: T::KIND, bytes: bytes(values), tolerance: 0.0 }
    }

    /// `values` with a difference of at most `tolerance`, relative to a value or to 1 if that is smaller.
    pub fn near(values: &[f32], tolerance: f32) -> Self {
        Self { tolerance, ..Self::exact(values) }
    }

    /// The expected contents as bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.kind.size()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Compares a buffer's contents with the expected ones.
    pub fn compare(&self, found: &[u8]) -> Result<(), Mismatch> {
        debug_assert_eq!(found.len(), self.bytes.len(), "buffers are read as a whole");
        if found == self.bytes {
            return Ok(());
        }
        let size = self.kind.size();
        let pairs = found.chunks_exact(size).zip(self.bytes.chunks_exact(size));
        let mut wrong = pairs.enumerate().filter(|(_, (found, expected))| !self.matches(found, expected));
        let Some((first, (found, expected))) = wrong.next() else { return Ok(()) };
        let (found, expected) = (self.kind.text(found), self.kind.text(expected));
        Err(Mismatch { wrong: 1 + wrong.count(), of: self.len(), first, found, expected })
    }

    fn matches(&self, found: &[u8], expected: &[u8]) -> bool {
        if found == expected {
            return true;
        }
        let (found, expected) = match (self.kind, self.tolerance > 0.0) {
            (Kind::F32 | Kind::F16, true) => (self.kind.number(found), self.kind.number(expected)),
            _ => return false,
        };
        (found - expected).abs() <= self.tolerance * expected.abs().max(1.0)
    }
}

/// Elements that differ from the expected ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wrong} of {of} wrong, first at {first}: got {found}, expected {expected}")]
pub struct Mismatch {
    /// Number of wrong elements.
    pub wrong: usize,
    /// Number of elements.
    pub of: usize,
    /// Index of the first wrong element.
    pub first: usize,
    /// The value found there.
    pub found: String,
    /// The value expected there.
    pub expected: String,
}

/// The kernel and its images.
impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.kernel)?;
        self.arguments.iter().try_for_each(|argument| match argument {
            Argument::Image { picture, .. } | Argument::OutputImage { picture, .. } => write!(out, ", {picture}"),
            _ => Ok(()),
        })
    }
}

impl Problem {
    /// A launch of `items` items in one dimension, in groups of `group`, without arguments.
    pub fn linear(kernel: &'static str, items: usize, group: usize) -> Self {
        Self::new(kernel, [items, 1, 1], [group, 1, 1])
    }

    /// A launch without arguments.
    pub fn new(kernel: &'static str, global: [usize; 3], local: [usize; 3]) -> Self {
        Self { kernel, global, local, arguments: Vec::new(), printed: Vec::new() }
    }

    /// Adds a buffer that the kernel reads.
    pub fn input<T: Element>(mut self, values: &[T]) -> Self {
        self.arguments.push(Argument::Input(bytes(values)));
        self
    }

    /// Adds a buffer that the kernel writes, with a pattern that is no result before.
    pub fn output(self, expected: Expected) -> Self {
        let before = vec![0xa5; expected.bytes.len()];
        self.output_over(before, expected)
    }

    /// Adds a buffer with the contents `before` that the kernel changes.
    pub fn output_over(mut self, before: Vec<u8>, expected: Expected) -> Self {
        debug_assert_eq!(before.len(), expected.bytes.len());
        self.arguments.push(Argument::Output { before, expected });
        self
    }

    /// Adds an image that the kernel reads.
    pub fn image(mut self, picture: Picture, texels: Vec<u8>) -> Self {
        debug_assert_eq!(texels.len(), picture.bytes());
        self.arguments.push(Argument::Image { picture, texels });
        self
    }

    /// Adds an image that the kernel writes, with texels that are no result before.
    pub fn output_image(self, picture: Picture, expected: Expected) -> Self {
        let before = vec![0xa5; expected.bytes.len()];
        self.output_image_over(picture, before, expected)
    }

    /// Adds an image with the texels `before` that the kernel changes.
    pub fn output_image_over(mut self, picture: Picture, before: Vec<u8>, expected: Expected) -> Self {
        debug_assert_eq!((before.len(), expected.bytes.len()), (picture.bytes(), picture.bytes()));
        self.arguments.push(Argument::OutputImage { picture, before, expected });
        self
    }

    /// Adds shared local memory of this many bytes.
    pub fn local(mut self, size: usize) -> Self {
        self.arguments.push(Argument::Local(size));
        self
    }

    /// Adds a value.
    pub fn scalar<T: Element>(mut self, value: T) -> Self {
        self.arguments.push(Argument::Scalar(bytes(&[value])));
        self
    }

    /// Adds the lines that the kernel prints.
    pub fn printed(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.printed = lines.into_iter().collect();
        self.printed.sort();
        self
    }

    /// Number of items.
    pub fn items(&self) -> usize {
        self.global.iter().product()
    }

    /// Number of groups in each dimension.
    pub fn groups(&self) -> [usize; 3] {
        [0, 1, 2].map(|axis| self.global[axis] / self.local[axis])
    }

    /// Compares the contents of the output buffers, in the order of the arguments, and the printed text with what is
    /// expected. Returns the first difference.
    pub fn check(&self, outputs: &[Vec<u8>], printed: &str) -> Result<(), String> {
        let expected = self.arguments.iter().filter_map(|argument| argument.output().map(|(_, expected)| expected));
        let several = outputs.len() > 1;
        for (index, (expected, found)) in expected.zip(outputs).enumerate() {
            expected.compare(found).map_err(|mismatch| match several {
                true => format!("output {index}: {mismatch}"),
                false => mismatch.to_string(),
            })?;
        }
        let mut lines: Vec<&str> = printed.lines().collect();
        lines.sort_unstable();
        let missing = self.printed.iter().find(|line| !lines.contains(&line.as_str()));
        match missing {
            _ if lines == self.printed => Ok(()),
            Some(missing) => {
                Err(format!("printed {} lines of {}, without {missing:?}", lines.len(), self.printed.len()))
            }
            None => Err(format!("printed {} lines, expected {}", lines.len(), self.printed.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_is_found_and_named() {
        let expected = Expected::exact(&[1u32, 2, 3, 4]);
        assert_eq!(expected.compare(&bytes(&[1u32, 2, 3, 4])), Ok(()));
        let mismatch = expected.compare(&bytes(&[1u32, 7, 3, 9])).unwrap_err();
        assert_eq!(mismatch.to_string(), "2 of 4 wrong, first at 1: got 7, expected 2");
        let mismatch = Expected::exact(&[-1i64]).compare(&bytes(&[5i64])).unwrap_err();
        assert_eq!(mismatch.to_string(), "1 of 1 wrong, first at 0: got 5, expected -1");
        let mismatch = Expected::exact(&[0x3c00u16]).compare(&bytes(&[0x4000u16])).unwrap_err();
        assert_eq!(mismatch.to_string(), "1 of 1 wrong, first at 0: got 2, expected 1");
    }

    /// The tolerance is relative to large values and absolute for small ones; a value that is no number is wrong.
    #[test]
    fn floats_may_differ_by_the_tolerance() {
        let expected = Expected::near(&[1000.0, 0.0, 1.0], 1e-3);
        assert_eq!(expected.compare(&bytes(&[1000.9f32, -0.0009, 1.0])), Ok(()));
        assert_eq!(expected.compare(&bytes(&[1001.1f32, 0.0011, 1.0])).unwrap_err().wrong, 2);
        assert_eq!(expected.compare(&bytes(&[1000f32, 0.0, f32::NAN])).unwrap_err().first, 2);
        assert_eq!(Expected::exact(&[1.0f32]).compare(&bytes(&[1.0f32 + f32::EPSILON])).unwrap_err().wrong, 1);
    }

    #[test]
    fn printed_lines_may_have_any_order() {
        let problem = Problem::linear("print", 2, 2).printed(["b".to_owned(), "a".to_owned()]);
        assert_eq!(problem.check(&[], "a\nb\n"), Ok(()));
        assert_eq!(problem.check(&[], "a\n").unwrap_err(), "printed 1 lines of 2, without \"b\"");
        assert_eq!(problem.check(&[], "a\nb\nb\n").unwrap_err(), "printed 3 lines, expected 2");
    }

    #[test]
    fn the_output_of_several_is_named() {
        let problem = Problem::linear("two", 1, 1).output(Expected::exact(&[1u32])).output(Expected::exact(&[2u32]));
        let error = problem.check(&[bytes(&[1u32]), bytes(&[3u32])], "").unwrap_err();
        assert_eq!(error, "output 1: 1 of 1 wrong, first at 0: got 3, expected 2");
        assert_eq!((problem.items(), problem.groups()), (1, [1, 1, 1]));
    }
}
