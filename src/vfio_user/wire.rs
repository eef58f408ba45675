// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Encoding of the messages of vfio-user protocol 0.0: header, commands, flags, limits and the structures of each body.
//!
//! Source: QEMU docs/interop/vfio-user.rst. Structures shared with the kernel's VFIO interface (region, interrupt and
//! device flags, the sparse-mmap capability) come from `vfio-bindings`. All fields are little-endian.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::ops::Range;

use arctic_sriov::number::count;
use vfio_bindings::bindings::vfio::*;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Errno;

/// Size of a message header in bytes.
pub const HEADER_LEN: usize = size_of::<WireHeader>();
/// Maximum data bytes of one access message, in both directions (capability `max_data_xfer_size`).
pub const MAX_DATA: usize = 1 << 20;
/// Minimum `max_data_xfer_size` of a client: each message requires a wait, and with a smaller limit an access of a page
/// would need more than 64 messages.
pub const LEAST_DATA: usize = 64;
/// Maximum size of a received message: the largest access with its header and fields.
pub const MAX_MESSAGE: usize = HEADER_LEN + 64 + MAX_DATA;
/// Maximum number of file descriptors in one message (capability `max_msg_fds`; QEMU sends no more).
pub const MAX_FDS: usize = 16;
/// Default limit of guest memory sections of one client (capability `max_dma_maps`); QEMU's own limit.
pub const MAX_DMA_MAPS: usize = 65535;

/// Command numbers.
pub mod command {
    /// Version and capabilities; the first message of a connection.
    pub const VERSION: u16 = 1;
    /// Adds a section of guest memory.
    pub const DMA_MAP: u16 = 2;
    /// Removes sections of guest memory.
    pub const DMA_UNMAP: u16 = 3;
    /// Kind of device, numbers of regions and interrupt indexes.
    pub const DEVICE_GET_INFO: u16 = 4;
    /// Size, flags and file of one region.
    pub const DEVICE_GET_REGION_INFO: u16 = 5;
    /// Vectors of one interrupt index.
    pub const DEVICE_GET_IRQ_INFO: u16 = 7;
    /// Arms, disarms or fires vectors.
    pub const DEVICE_SET_IRQS: u16 = 8;
    /// Reads from a region.
    pub const REGION_READ: u16 = 9;
    /// Writes to a region.
    pub const REGION_WRITE: u16 = 10;
    /// Server to client: reads guest memory that has no file descriptor.
    pub const DMA_READ: u16 = 11;
    /// Server to client: writes guest memory that has no file descriptor.
    pub const DMA_WRITE: u16 = 12;
    /// Resets the function.
    pub const DEVICE_RESET: u16 = 13;
}

/// Header flags: bits 3:0 distinguish commands from replies.
pub const FLAG_TYPE: u32 = 0xf;
/// Type of a reply.
pub const TYPE_REPLY: u32 = 1;
/// The sender of the command requests no reply, not even for an error.
pub const FLAG_NO_REPLY: u32 = 1 << 4;
/// The reply reports the error in the header's last field.
pub const FLAG_ERROR: u32 = 1 << 5;

/// DMA_MAP flag: the device may read the section.
pub const DMA_READABLE: u32 = 1 << 0;
/// DMA_MAP flag: the device may write the section.
pub const DMA_WRITABLE: u32 = 1 << 1;
/// DMA_MAP flags defined by later protocol versions: hints for the access to the file.
pub const DMA_HINTS: u32 = 1 << 2 | 1 << 3;

/// Number of supported interrupt indexes of a PCI device: INTx, MSI, MSI-X (`VFIO_PCI_*_IRQ_INDEX`).
pub const IRQ_INDEXES: usize = 3;
/// Number of regions of a PCI device: six BARs, ROM, configuration space, VGA (`VFIO_PCI_*_REGION_INDEX`).
pub const REGIONS: u32 = VFIO_PCI_NUM_REGIONS;

/// A message header. In a message under construction, [`Builder::finish`] sets the size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Chosen by the sender of the command, repeated in its reply.
    pub id: u16,
    /// One of [`command`].
    pub command: u16,
    /// Size of the whole message in bytes, including the header.
    pub size: u32,
    /// Type, NO_REPLY, ERROR.
    pub flags: u32,
    /// `errno` of a reply with [`FLAG_ERROR`].
    pub error: u32,
}

/// A header as it lies in a message.
#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct WireHeader {
    id: U16,
    command: U16,
    size: U32,
    flags: U32,
    error: U32,
}

impl Header {
    /// Decodes a header.
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Header {
        let WireHeader { id, command, size, flags, error } = zerocopy::transmute!(*bytes);
        Header { id: id.get(), command: command.get(), size: size.get(), flags: flags.get(), error: error.get() }
    }

    /// Encodes the header.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let Header { id, command, size, flags, error } = *self;
        zerocopy::transmute!(WireHeader {
            id: id.into(),
            command: command.into(),
            size: size.into(),
            flags: flags.into(),
            error: error.into(),
        })
    }

    /// Returns whether this is a reply to a command of this server.
    pub fn is_reply(&self) -> bool {
        self.flags & FLAG_TYPE == TYPE_REPLY
    }

    /// Returns whether the sender requests no reply.
    pub fn no_reply(&self) -> bool {
        self.flags & FLAG_NO_REPLY != 0
    }

    /// Number of bytes after the header; `None` for an invalid size.
    pub fn body_len(&self) -> Option<usize> {
        let size = usize::try_from(self.size).ok()?;
        size.checked_sub(HEADER_LEN).filter(|_| size <= MAX_MESSAGE)
    }
}

/// Defines structures of message bodies.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        })*
    };
}

structures! {
    /// VERSION, in both directions; JSON follows.
    Version {
        /// Major version.
        major: U16,
        /// Minor version.
        minor: U16,
    }
    /// The command DMA_MAP.
    DmaMap {
        /// Size of the structure.
        argsz: U32,
        /// [`DMA_READABLE`], [`DMA_WRITABLE`], [`DMA_HINTS`].
        flags: U32,
        /// Offset of the section in its file.
        offset: U64,
        /// Guest address.
        address: U64,
        /// Size in bytes.
        size: U64,
    }
    /// DMA_UNMAP, in both directions.
    DmaUnmap {
        /// Size of the structure.
        argsz: U32,
        /// `VFIO_DMA_UNMAP_FLAG_*`.
        flags: U32,
        /// Guest address.
        address: U64,
        /// Size in bytes.
        size: U64,
    }
    /// The fields of the command DEVICE_GET_INFO that have a meaning.
    DeviceQuery {
        /// Size of the client's buffer.
        argsz: U32,
    }
    /// The reply to DEVICE_GET_INFO.
    DeviceInfo {
        /// Size of the structure.
        argsz: U32,
        /// `VFIO_DEVICE_FLAGS_*`.
        flags: U32,
        /// Number of regions.
        regions: U32,
        /// Number of interrupt indexes.
        irqs: U32,
    }
    /// The fields of the commands DEVICE_GET_REGION_INFO and DEVICE_GET_IRQ_INFO that have a meaning.
    IndexQuery {
        /// Size of the client's buffer.
        argsz: U32,
        /// Not used.
        flags: U32,
        /// The region or interrupt index.
        index: U32,
    }
    /// The reply to DEVICE_GET_REGION_INFO (`vfio_region_info`); capabilities follow.
    RegionInfo {
        /// Size of the structure with its capabilities.
        argsz: U32,
        /// `VFIO_REGION_INFO_FLAG_*`.
        flags: U32,
        /// The region.
        index: U32,
        /// Offset of the first capability from the start of the structure; 0 without capabilities.
        cap_offset: U32,
        /// Size of the region in bytes.
        size: U64,
        /// Offset of the region in the file.
        offset: U64,
    }
    /// The capability with the mappable areas of a region (`vfio_region_info_cap_sparse_mmap`); the areas follow.
    SparseMmap {
        /// `VFIO_REGION_INFO_CAP_SPARSE_MMAP`.
        id: U16,
        /// Version of the capability.
        version: U16,
        /// Offset of the next capability; 0 for none.
        next: U32,
        /// Number of areas.
        areas: U32,
        /// 0.
        reserved: U32,
    }
    /// A mappable area of a region (`vfio_region_sparse_mmap_area`).
    SparseArea {
        /// Offset in the region.
        offset: U64,
        /// Size in bytes.
        size: U64,
    }
    /// The reply to DEVICE_GET_IRQ_INFO.
    IrqInfo {
        /// Size of the structure.
        argsz: U32,
        /// `VFIO_IRQ_INFO_*`.
        flags: U32,
        /// The interrupt index.
        index: U32,
        /// Number of its vectors.
        count: U32,
    }
    /// The command DEVICE_SET_IRQS; a byte for each vector may follow.
    IrqSet {
        /// Size of the structure.
        argsz: U32,
        /// `VFIO_IRQ_SET_*`.
        flags: U32,
        /// The interrupt index.
        index: U32,
        /// The first vector.
        start: U32,
        /// Number of vectors.
        count: U32,
    }
    /// REGION_READ and REGION_WRITE, in both directions; the data follow.
    RegionAccess {
        /// Offset in the region.
        offset: U64,
        /// The region.
        region: U32,
        /// Number of bytes.
        count: U32,
    }
    /// DMA_READ and DMA_WRITE, in both directions; the data follow.
    DmaAccess {
        /// Guest address.
        address: U64,
        /// Number of bytes.
        count: U64,
    }
}

/// Reads a structure at the front of a message body. Returns it and the bytes that follow. Fails with EINVAL if the body
/// is too short.
pub fn parse<T: FromBytes + KnownLayout + Immutable + Unaligned>(body: &[u8]) -> Result<(&T, &[u8]), Errno> {
    T::ref_from_prefix(body).map_err(|_| Errno::EINVAL)
}

/// A message under construction: space for the header, then the body.
#[derive(Default)]
pub struct Builder(Vec<u8>);

impl Builder {
    /// Starts a new message in the same buffer.
    pub fn clear(&mut self) -> &mut Self {
        self.0.clear();
        self.0.resize(HEADER_LEN, 0);
        self
    }

    /// Appends a structure.
    pub fn put(&mut self, structure: &(impl IntoBytes + Immutable)) -> &mut Self {
        self.bytes(structure.as_bytes())
    }

    /// Appends bytes.
    pub fn bytes(&mut self, data: &[u8]) -> &mut Self {
        self.0.extend_from_slice(data);
        self
    }

    /// Appends `len` zero bytes and returns them, to be filled in place.
    pub fn space(&mut self, len: usize) -> &mut [u8] {
        let from = self.0.len();
        self.0.resize(from.saturating_add(len), 0);
        self.0.get_mut(from..).unwrap_or_default()
    }

    /// Writes the header at the front and returns the whole message.
    pub fn finish(&mut self, mut header: Header) -> &[u8] {
        // Bodies are bounded by MAX_MESSAGE, far below 4 GiB.
        header.size = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        if let Some(front) = self.0.first_chunk_mut() {
            *front = header.encode();
        }
        &self.0
    }
}

const REGION_INFO_LEN: u32 = count(size_of::<RegionInfo>());
const SPARSE_HEADER_LEN: u32 = count(size_of::<SparseMmap>());
const SPARSE_AREA_LEN: u32 = count(size_of::<SparseArea>());
// The structures are those of the kernel's interface.
const _: () = assert!(size_of::<RegionInfo>() == size_of::<vfio_region_info>());
const _: () = assert!(size_of::<SparseMmap>() == size_of::<vfio_region_info_cap_sparse_mmap>());
const _: () = assert!(size_of::<SparseArea>() == size_of::<vfio_region_sparse_mmap_area>());

/// Appends the reply to DEVICE_GET_REGION_INFO for a region of `size` bytes with mappable `areas`, for a client with a
/// buffer of `argsz` bytes. Returns whether the reply is complete (and the file must be sent with it); otherwise it
/// contains only the required size, and the client repeats the request.
pub fn put_region_info(out: &mut Builder, index: u32, size: u64, areas: &[Range<u64>], argsz: u32) -> bool {
    let mappable = !areas.is_empty();
    // A region that is mappable as a whole needs no list of areas.
    let covers_all = |area: &Range<u64>| *area == (0..size);
    let areas = if areas.iter().any(covers_all) { &[] } else { areas };
    let caps_len = match count(areas.len()) {
        0 => 0,
        count => count.saturating_mul(SPARSE_AREA_LEN).saturating_add(SPARSE_HEADER_LEN),
    };
    let len = REGION_INFO_LEN.saturating_add(caps_len);
    let complete = argsz >= len;
    let with_caps = complete && caps_len != 0;

    let mut flags = 0;
    if size != 0 {
        flags |= VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
    }
    if mappable {
        flags |= VFIO_REGION_INFO_FLAG_MMAP;
    }
    if with_caps {
        flags |= VFIO_REGION_INFO_FLAG_CAPS;
    }
    out.put(&RegionInfo {
        argsz: len.into(),
        flags: flags.into(),
        index: index.into(),
        cap_offset: if with_caps { REGION_INFO_LEN } else { 0 }.into(),
        size: size.into(),
        offset: 0.into(),
    });
    if with_caps {
        out.put(&SparseMmap {
            id: ((VFIO_REGION_INFO_CAP_SPARSE_MMAP & 0xffff) as u16).into(),
            version: 1.into(),
            next: 0.into(),
            areas: count(areas.len()).into(),
            reserved: 0.into(),
        });
        for area in areas {
            out.put(&SparseArea { offset: area.start.into(), size: area.end.saturating_sub(area.start).into() });
        }
    }
    complete
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use super::*;

    /// vfio-user header: little-endian fields at 0, 2, 4, 8, 12.
    #[test]
    fn headers_survive_the_round_trip() {
        let header = Header { id: 0x1234, command: command::REGION_READ, size: 32, flags: FLAG_NO_REPLY, error: 22 };
        let bytes = header.encode();
        assert_eq!(bytes[..4], [0x34, 0x12, 9, 0]);
        assert_eq!(bytes[8], 0x10);
        assert_eq!(bytes[12..], [22, 0, 0, 0]);
        assert_eq!(Header::decode(&bytes), header);
        assert!(!header.is_reply() && header.no_reply());
        assert_eq!(header.body_len(), Some(16));
    }

    /// A message size below the header's or above that of the largest access is invalid.
    #[test]
    fn impossible_sizes_have_no_body() {
        let header = |size| Header { size, ..Header::default() };
        assert_eq!(header(15).body_len(), None);
        assert_eq!(header(16).body_len(), Some(0));
        assert_eq!(header(MAX_MESSAGE as u32).body_len(), Some(MAX_MESSAGE - HEADER_LEN));
        assert_eq!(header(MAX_MESSAGE as u32 + 1).body_len(), None);
        assert_eq!(header(u32::MAX).body_len(), None);
    }

    #[test]
    fn a_structure_beyond_the_body_is_invalid() {
        let (version, rest) = parse::<Version>(&[1, 0, 2, 0, 9]).unwrap();
        assert_eq!((version.major.get(), version.minor.get(), rest), (1, 2, &[9][..]));
        assert_eq!(parse::<Version>(rest).err(), Some(Errno::EINVAL));
    }
}
