// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Encoding of the messages of vfio-user protocol 0.0: header, commands, flags, limits and the fields of each body.
//!
//! Source: QEMU docs/interop/vfio-user.rst. Structures shared with the kernel's VFIO interface (region, interrupt and
//! device flags, the sparse-mmap capability) come from `vfio-bindings`. All fields are little-endian.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::ops::Range;

use arctic_sriov::number::count;
use vfio_bindings::bindings::vfio::*;

use super::Errno;

/// Size of a message header in bytes.
pub const HEADER_LEN: usize = 16;
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

/// A message header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Header {
    /// Decodes a header.
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Header {
        Header {
            id: u16::from_le_bytes([bytes[0], bytes[1]]),
            command: u16::from_le_bytes([bytes[2], bytes[3]]),
            size: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            flags: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            error: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
        }
    }

    /// Encodes the header.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0..2].copy_from_slice(&self.id.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.command.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.size.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.flags.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.error.to_le_bytes());
        bytes
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

/// The fields of a message body, read in order; EINVAL if the body is too short.
pub struct Fields<'b>(pub &'b [u8]);

impl<'b> Fields<'b> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Errno> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Errno::EINVAL)?;
        self.0 = rest;
        Ok(*head)
    }

    /// The next 16 bits.
    pub fn u16(&mut self) -> Result<u16, Errno> {
        self.take().map(u16::from_le_bytes)
    }

    /// The next 32 bits.
    pub fn u32(&mut self) -> Result<u32, Errno> {
        self.take().map(u32::from_le_bytes)
    }

    /// The next 64 bits.
    pub fn u64(&mut self) -> Result<u64, Errno> {
        self.take().map(u64::from_le_bytes)
    }

    /// The bytes after the fields read so far.
    pub fn rest(self) -> &'b [u8] {
        self.0
    }
}

/// A message under construction: space for the header, then the fields.
#[derive(Default)]
pub struct Builder(Vec<u8>);

impl Builder {
    /// Starts a new message in the same buffer.
    pub fn clear(&mut self) -> &mut Self {
        self.0.clear();
        self.0.resize(HEADER_LEN, 0);
        self
    }

    /// Appends 16 bits.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends 32 bits.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends 64 bits.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
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

const REGION_INFO_LEN: u32 = count(size_of::<vfio_region_info>());
const SPARSE_HEADER_LEN: u32 = count(size_of::<vfio_region_info_cap_sparse_mmap>());
const SPARSE_AREA_LEN: u32 = count(size_of::<vfio_region_sparse_mmap_area>());

/// Appends the reply to DEVICE_GET_REGION_INFO for a region of `size` bytes with mappable `areas`, for a client with a
/// buffer of `argsz` bytes. Returns whether the reply is complete (and the file must be sent with it); otherwise it
/// contains only the required size, and the client repeats the request.
pub fn put_region_info(out: &mut Builder, index: u32, size: u64, areas: &[Range<u64>], argsz: u32) -> bool {
    let mappable = !areas.is_empty();
    // A region that is mappable as a whole needs no list of areas.
    let whole = |area: &Range<u64>| *area == (0..size);
    let areas = if areas.iter().any(whole) { &[] } else { areas };
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
    out.u32(len).u32(flags).u32(index);
    out.u32(if with_caps { REGION_INFO_LEN } else { 0 });
    out.u64(size).u64(0);
    if with_caps {
        out.u16((VFIO_REGION_INFO_CAP_SPARSE_MMAP & 0xffff) as u16).u16(1).u32(0);
        out.u32(count(areas.len())).u32(0);
        for area in areas {
            out.u64(area.start).u64(area.end.saturating_sub(area.start));
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
        assert_eq!(Header::decode(&bytes), header);
        assert!(!header.is_reply() && header.no_reply());
        assert_eq!(header.body_len(), Some(16));
    }

    /// A message size below the header's or above that of the largest access is invalid.
    #[test]
    fn impossible_sizes_have_no_body() {
        let header = |size| Header { id: 0, command: 0, size, flags: 0, error: 0 };
        assert_eq!(header(15).body_len(), None);
        assert_eq!(header(16).body_len(), Some(0));
        assert_eq!(header(MAX_MESSAGE as u32).body_len(), Some(MAX_MESSAGE - HEADER_LEN));
        assert_eq!(header(MAX_MESSAGE as u32 + 1).body_len(), None);
        assert_eq!(header(u32::MAX).body_len(), None);
    }

    #[test]
    fn fields_end_with_the_body() {
        let mut fields = Fields(&[1, 0, 0, 0, 9]);
        assert_eq!(fields.u32(), Ok(1));
        assert_eq!(fields.u16(), Err(Errno::EINVAL));
        assert_eq!(fields.rest(), [9]);
    }
}
