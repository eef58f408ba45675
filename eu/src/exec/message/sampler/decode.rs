// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Descriptors of messages to the sampler: what a type asks for, and where its parameters are. ISA-250 to ISA-252.

use crate::exec::fault::FaultKind;
use crate::isa::descriptor::{
    BINDING, HEADER, SAMPLER, SAMPLER_KIND, SAMPLER_LANES, SAMPLER_NARROW, SAMPLER_NARROW_RESULT,
};

/// A decoded descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub form: Form,
    /// Index in the binding table, or 0xfc for the surface state of the extended descriptor.
    pub index: u8,
    /// Number of the sampler.
    pub sampler: u8,
    /// Number of lanes, 8 or 16.
    pub lanes: u32,
    pub header: bool,
    /// Parameters have 16 bits.
    pub narrow: bool,
    /// Channels of the result have 16 bits.
    pub narrow_result: bool,
}

/// What a message returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A color at coordinates that are floats.
    Sample,
    /// One component of the four texels that a linear filter reads.
    Gather,
    /// The texel at coordinates that are integers.
    Load,
    /// The level of detail.
    Level,
    /// Size of the image.
    Size,
    /// Number of samples of a texel.
    Samples,
}

/// Where the level of detail of a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelSource {
    /// It is 0.
    Zero,
    /// A parameter.
    Parameter,
    /// The differences of the coordinates of the four lanes of a quad.
    Quad,
    /// As [`LevelSource::Quad`], and a parameter is added.
    QuadWithBias,
    /// Derivatives among the parameters.
    Derivatives,
}

/// A type of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub operation: Operation,
    pub level: LevelSource,
    /// The first parameter is the reference for a comparison.
    pub compares: bool,
    /// Offsets of the texel in u and v are behind these coordinates.
    pub offsets: bool,
}

const fn row(code: u32, operation: Operation, level: LevelSource) -> (u32, Form) {
    (code, Form { operation, level, compares: false, offsets: false })
}

/// A row of a message with a reference.
const fn comparing(code: u32, operation: Operation, level: LevelSource) -> (u32, Form) {
    (code, Form { compares: true, ..row(code, operation, level).1 })
}

/// Types by their codes (Mesa `brw_sampler.c`: `sampler_opcode_descs`, with those of Gfx12.5).
const FORMS: [(u32, Form); 19] = [
    row(0, Operation::Sample, LevelSource::Quad),
    row(1, Operation::Sample, LevelSource::QuadWithBias),
    row(2, Operation::Sample, LevelSource::Parameter),
    comparing(3, Operation::Sample, LevelSource::Quad),
    row(4, Operation::Sample, LevelSource::Derivatives),
    comparing(5, Operation::Sample, LevelSource::QuadWithBias),
    comparing(6, Operation::Sample, LevelSource::Parameter),
    row(7, Operation::Load, LevelSource::Parameter),
    row(8, Operation::Gather, LevelSource::Zero),
    row(9, Operation::Level, LevelSource::Quad),
    row(10, Operation::Size, LevelSource::Parameter),
    row(11, Operation::Samples, LevelSource::Zero),
    comparing(16, Operation::Gather, LevelSource::Zero),
    (17, Form { offsets: true, ..row(17, Operation::Gather, LevelSource::Zero).1 }),
    (18, Form { offsets: true, ..comparing(18, Operation::Gather, LevelSource::Zero).1 }),
    comparing(20, Operation::Sample, LevelSource::Derivatives),
    row(24, Operation::Sample, LevelSource::Zero),
    comparing(25, Operation::Sample, LevelSource::Zero),
    row(26, Operation::Load, LevelSource::Zero),
];

/// Numbers of the parameters of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// The level of detail, or what is added to it.
    pub level: Option<u32>,
    /// Coordinates.
    pub coordinates: [u32; 3],
    /// Number of the cube, of arrays of cubes.
    pub cube: u32,
    /// Least level of detail, if the message can have one.
    pub least: Option<u32>,
}

impl Form {
    /// Numbers of the parameters. Payloads are the same for all images, with gaps for what an image does not need.
    pub fn places(self) -> Places {
        let start = u32::from(self.compares);
        let own = matches!(self.level, LevelSource::Parameter | LevelSource::QuadWithBias);
        let (level, first) = match self.operation {
            // The level is behind u and v.
            Operation::Load => (own.then_some(2), 0),
            Operation::Size => (Some(0), 0),
            _ => (own.then_some(start), start + u32::from(own)),
        };
        let coordinates = match (self.operation, self.level) {
            (Operation::Load, LevelSource::Parameter) => [0, 1, 3],
            // Two derivatives are behind u and v; Gfx12.5 has none of r.
            (_, LevelSource::Derivatives) => [first, first + 3, first + 6],
            _ if self.offsets => [first, first + 1, first + 4],
            _ => [first, first + 1, first + 2],
        };
        let [.., last] = coordinates;
        let least = match (self.operation, self.level) {
            (Operation::Sample, LevelSource::Derivatives) if !self.compares => Some(last + 1),
            (Operation::Sample, LevelSource::Quad) => Some(last + 2),
            (Operation::Sample, LevelSource::QuadWithBias) if !self.compares => Some(last + 2),
            _ => None,
        };
        Places { level, coordinates, cube: last + 1, least }
    }

    /// True if coordinates are floats, and there is a sampler.
    pub fn samples(self) -> bool {
        matches!(self.operation, Operation::Sample | Operation::Gather | Operation::Level)
    }
}

/// Decodes a descriptor.
pub fn decode(desc: u32) -> Result<Sample, FaultKind> {
    let code = SAMPLER_KIND.get32(desc);
    let (_, form) = FORMS.iter().find(|(known, _)| *known == code).ok_or(FaultKind::Message)?;
    let lanes = match SAMPLER_LANES.get32(desc) {
        1 => 8,
        2 => 16,
        _ => return Err(FaultKind::Message),
    };
    Ok(Sample {
        form: *form,
        index: BINDING.get32(desc) as u8,
        sampler: SAMPLER.get32(desc) as u8,
        lanes,
        header: HEADER.is_set32(desc),
        narrow: SAMPLER_NARROW.is_set32(desc),
        narrow_result: SAMPLER_NARROW_RESULT.is_set32(desc),
    })
}

/// What a header says: dwords 2 and 3. EU-081.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Bit `n`: component `n` is not returned.
    pub mask: u32,
    /// What is added to the coordinates of a texel: u, v, r, -8 to 7.
    pub offsets: [i32; 3],
    /// The component that a gather message returns.
    pub component: usize,
    /// Pointer to a bindless sampler.
    pub pointer: Option<u32>,
}

impl Header {
    /// Decodes the dwords (Mesa `brw_texture_offset`; component of a gather message: M0.2 bits 17:16).
    pub fn new(control: u32, pointer: u32) -> Header {
        let offset = |shift: u32| ((control >> shift) << 28).cast_signed() >> 28;
        Header {
            mask: control >> 12 & 15,
            offsets: [offset(8), offset(4), offset(0)],
            component: (control >> 16 & 3) as usize,
            // Bit 0 of the pointer selects the bindless samplers; otherwise the sampler is that of the table.
            pointer: (pointer & 1 != 0).then_some(pointer & !31),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The payloads of Mesa's table for Gfx12.5, by the code of a type.
    #[test]
    fn parameters_are_where_compilers_put_them() {
        let places = |code: u32| decode(code << 12 | 1 << 17).unwrap().form.places();
        let of = |level, coordinates, cube, least| Places { level, coordinates, cube, least };
        assert_eq!(places(0), of(None, [0, 1, 2], 3, Some(4)));
        assert_eq!(places(1), of(Some(0), [1, 2, 3], 4, Some(5)));
        assert_eq!(places(2), of(Some(0), [1, 2, 3], 4, None));
        assert_eq!(places(3), of(None, [1, 2, 3], 4, Some(5)));
        assert_eq!(places(4), of(None, [0, 3, 6], 7, Some(7)));
        assert_eq!(places(5), of(Some(1), [2, 3, 4], 5, None));
        assert_eq!(places(6), of(Some(1), [2, 3, 4], 5, None));
        assert_eq!(places(7), of(Some(2), [0, 1, 3], 4, None));
        assert_eq!(places(8), of(None, [0, 1, 2], 3, None));
        assert_eq!(places(16), of(None, [1, 2, 3], 4, None));
        assert_eq!(places(17), of(None, [0, 1, 4], 5, None));
        assert_eq!(places(18), of(None, [1, 2, 5], 6, None));
        assert_eq!(places(20), of(None, [1, 4, 7], 8, None));
        assert_eq!(places(24), of(None, [0, 1, 2], 3, None));
        assert_eq!(places(25), of(None, [1, 2, 3], 4, None));
        assert_eq!(places(26), of(None, [0, 1, 2], 3, None));
        for code in [12, 13, 14, 15, 19, 21, 22, 23, 27, 28, 29, 30, 31] {
            assert_eq!(decode(code << 12 | 1 << 17).unwrap_err(), FaultKind::Message, "{code}");
        }
    }

    #[test]
    fn headers_have_signed_offsets() {
        let header = Header::new(0x2_5f83, 0x41);
        assert_eq!(header, Header { mask: 5, offsets: [-1, -8, 3], component: 2, pointer: Some(0x40) });
        assert_eq!(Header::new(0, 0x40), Header::default());
    }
}
