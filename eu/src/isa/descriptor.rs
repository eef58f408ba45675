// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fields of the descriptors of messages to data ports 0 and 1 and to the sampler, and the types of data-port messages.
//! ISA-200, ISA-225 to ISA-228, ISA-250.

use super::fields::{Bits, bit, bits};

/// Index in the binding table.
pub const BINDING: Bits = bits(7, 0);
/// Type of a data-port message.
pub const KIND: Bits = bits(18, 14);
/// The payload begins with a header.
pub const HEADER: Bits = bit(19);
/// Length of the response in registers.
pub const RESPONSE: Bits = bits(24, 20);
/// Length of source 0 in registers.
pub const LENGTH: Bits = bits(28, 25);

/// Components that are not transferred, of typed and untyped messages.
pub const DISABLED: Bits = bits(11, 8);
/// Number of lanes of an untyped message: 1 for 16, 2 for 8.
pub const UNTYPED_LANES: Bits = bits(13, 12);
/// Lanes of a typed message: 1 for the lower eight, 2 for the upper eight.
pub const SLOT_GROUP: Bits = bits(13, 12);
/// Operation of a typed atomic message.
pub const ATOMIC: Bits = bits(11, 8);
/// A typed atomic message has the upper eight lanes.
pub const ATOMIC_UPPER: Bits = bit(12);
/// A typed atomic message returns the texel before.
pub const ATOMIC_RETURNS: Bits = bit(13);
/// Size of a block.
pub const BLOCK_SIZE: Bits = bits(10, 8);
/// A block of data port 0 has hwords, not owords.
pub const HWORDS: Bits = bit(13);
/// Units of a block at a 64-bit address: 0 and 1 for owords, 3 for hwords.
pub const A64_UNITS: Bits = bits(12, 11);
/// Elements of a scattered message at 64-bit addresses: 0 bytes, 1 dwords, 2 qwords.
pub const A64_ELEMENT: Bits = bits(9, 8);
/// Bytes of its byte elements, or number of its other ones, as a power of two.
pub const A64_COUNT: Bits = bits(11, 10);
/// It has 16 lanes, not 8.
pub const A64_SIXTEEN: Bits = bit(12);
/// A scattered message has 16 lanes, not 8.
pub const SIXTEEN: Bits = bit(8);
/// Bytes in memory of an element of a byte-scattered message, as a power of two.
pub const ELEMENT: Bits = bits(11, 10);
/// Distance between the rows of a media block, other than that of the surface.
pub const MEDIA_PITCH: Bits = bits(10, 8);

/// A scratch block, of data port 0.
pub const SCRATCH: Bits = bit(18);
/// It is written.
pub const SCRATCH_WRITE: Bits = bit(17);
/// Registers of a scratch block, as a power of two.
pub const SCRATCH_SIZE: Bits = bits(13, 12);
/// Offset of a scratch block in registers.
pub const SCRATCH_OFFSET: Bits = bits(11, 0);

/// Number of the sampler in the table, or from the header's pointer on.
pub const SAMPLER: Bits = bits(11, 8);
/// Type of a message to the sampler.
pub const SAMPLER_KIND: Bits = bits(16, 12);
/// Number of lanes of a message to the sampler: 1 for 8, 2 for 16.
pub const SAMPLER_LANES: Bits = bits(18, 17);
/// Its parameters have 16 bits.
pub const SAMPLER_NARROW: Bits = bit(29);
/// Channels of its result have 16 bits.
pub const SAMPLER_NARROW_RESULT: Bits = bit(30);

/// Values of [`KIND`] of data port 0.
#[allow(missing_docs, reason = "named like the messages of ISA-225 and ISA-227")]
pub mod dc0 {
    pub const OWORD_READ: u32 = 0;
    pub const OWORD_ALIGNED_READ: u32 = 1;
    pub const DWORD_READ: u32 = 3;
    pub const BYTE_READ: u32 = 4;
    pub const QWORD_READ: u32 = 5;
    pub const FENCE: u32 = 7;
    pub const OWORD_WRITE: u32 = 8;
    pub const DWORD_WRITE: u32 = 11;
    pub const BYTE_WRITE: u32 = 12;
    pub const QWORD_WRITE: u32 = 13;
}

/// Values of [`KIND`] of data port 1.
#[allow(missing_docs, reason = "named like the messages of ISA-226 and ISA-227")]
pub mod dc1 {
    pub const UNTYPED_READ: u32 = 1;
    pub const MEDIA_READ: u32 = 4;
    pub const TYPED_READ: u32 = 5;
    pub const TYPED_ATOMIC: u32 = 6;
    pub const UNTYPED_WRITE: u32 = 9;
    pub const MEDIA_WRITE: u32 = 10;
    pub const TYPED_WRITE: u32 = 13;
    pub const A64_SCATTERED_READ: u32 = 0x10;
    pub const A64_UNTYPED_READ: u32 = 0x11;
    pub const A64_BLOCK_READ: u32 = 0x14;
    pub const A64_BLOCK_WRITE: u32 = 0x15;
    pub const A64_UNTYPED_WRITE: u32 = 0x19;
    pub const A64_SCATTERED_WRITE: u32 = 0x1a;
}
